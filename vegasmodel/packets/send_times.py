"""Tells from a trace whether senders wait before they send a packet (``send_jitter``).

A sender that does not wait sends a packet at the very time at which an ACK allows it.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.packets.trace import Trace

__all__ = ["sent_at_once"]

# of the packets; a sender sends the others at its start, or when a timer expires
MIN_PART_AT_ACKS = 0.9


@kinds.checked
def sent_at_once(trace: Trace) -> dict[str, float]:
    """The flows whose senders do not wait before they send, by name.

    The value of a flow is the part of its packets that the sender sent at the very time at which an
    ACK arrived; it is at least ``MIN_PART_AT_ACKS``. A flow is missing in the result if its sender
    may wait, or if the trace does not show whether it waits. A trace of packets in ns-2 shows this
    if it has the arrivals of ACKs at the sender.
    """
    parts = trace.known("sent_at_acks")
    if parts is None:
        return {}
    at_once = np.nan_to_num(parts) >= MIN_PART_AT_ACKS
    return {trace.flows[i]: float(parts[i]) for i in np.flatnonzero(at_once)}
