"""Tells from a trace whether the receivers delay their ACKs.

A receiver that delays its ACKs sends one ACK for two packets (RFC 1122). If no second packet comes,
it acknowledges the first one alone after a while, in Linux after 40 to 200 ms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.packets.gaps import lives, packets_in_all
from vegasmodel.packets.trace import Trace

__all__ = ["AckDelay", "ack_delays"]

PAUSE = 0.04  # s: Linux delays an ACK by at least this time, unless a second packet comes


class AckDelay(NamedTuple):
    """Whether a flow's receiver delays its ACKs, and a text on how this is known (``how``).

    If it is not ``certain``, ``delayed`` is the better guess for the scenario's ``delayed_ack``.
    """

    delayed: bool
    certain: bool
    how: str


@kinds.checked
def ack_delays(trace: Trace) -> dict[str, AckDelay]:
    """Whether the receiver of each flow delays its ACKs, by the flow's name.

    An ACK acknowledges two packets if the receiver delays its ACKs, otherwise one. But a receiver
    that delays its ACKs also acknowledges some packets alone: at the start of a flow, behind a lost
    packet, and if the next packet comes late. So the median over all packets decides. Two cases
    remain uncertain:

    - One packet per ACK, if the flow delivers less than one packet in 40 ms. Each ACK may then be
      a delayed one.
    - Three packets or more per ACK: the receiver's network card joins packets, or many ACKs are
      lost or left out on their way.

    A flow is also uncertain if the trace does not show how many packets its ACKs acknowledge. The
    result is empty if this is so for all flows. Captures show it, and traces of ns-2 and ns-3 that
    have packets or ns-2's variable ``ack_``.
    """
    per_ack = trace.known("packets_per_ack")
    if per_ack is None:
        return {}
    life = np.diff(lives(trace), axis=1)[:, 0]
    packets = packets_in_all(trace)
    packets = np.full(len(life), np.nan) if packets is None else packets
    return {
        name: _delay(per_ack[i], float(packets[i]) * PAUSE > float(life[i]))
        for i, name in enumerate(trace.flows)
    }


def _delay(per_ack: float, dense: bool) -> AckDelay:
    if np.isnan(per_ack):
        return AckDelay(False, False, "the trace has too few ACKs of this flow")
    if per_ack >= 2.5:
        why = "packets were joined at the receiver, or ACKs left out on their way"
        return AckDelay(
            True, False, f"an ACK acknowledges {per_ack:g} packets (median), as if {why}"
        )
    if per_ack >= 1.5:
        return AckDelay(True, True, "an ACK acknowledges 2 packets (median)")
    if dense:
        return AckDelay(False, True, "an ACK acknowledges 1 packet (median)")
    why = f"packets come more than {PAUSE * 1e3:g} ms apart, so each ACK may be a delayed one"
    return AckDelay(False, False, f"an ACK acknowledges 1 packet (median), but {why}")
