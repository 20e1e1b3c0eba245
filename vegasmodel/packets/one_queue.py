"""Finds flows of a trace whose packets do not wait in the same queue.

The RTTs of flows that share a queue rise and fall together. Estimates from a trace take it that all
flows share one queue, so a note says if the RTTs of two flows do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.busy_times import delivered_by_all, follows_the_queue
from vegasmodel.packets.trace import Trace

__all__ = ["apart"]

MIN_INTERVALS = 100  # in which the RTTs of both flows are known; from fewer, nothing is concluded
# Packets that arrive together wait one behind another, so RTTs always vary by a few packets. The
# test is only for RTTs that vary more: by at least this standard deviation, in packets.
MIN_DEVIATION = 5.0
MIN_CORRELATION = 0.25  # RTTs of flows in one queue correlate at least so much
MAX_FLOWS = 50  # all pairs of so many flows are tested


def apart(trace: Trace, idle: Collection[str]) -> str:
    """Say which two flows do not share a queue; the text is empty if RTTs do not show this.

    Two flows that share a queue meet the same queueing delay, so their RTTs rise and fall together.
    Two flows do not share a queue if the RTTs of both vary by several packets, but hardly
    correlate. Flows with little to send (``idle``) are left out. Of the others, only the first
    ``MAX_FLOWS`` are compared. The text is empty for traces that are not captures, because their
    RTTs may contain the waits of delayed ACKs. It is also empty if the trace's intervals are too
    long for RTTs to follow the queue (``follows_the_queue``).
    """
    rtt, known = trace.known("rtt"), delivered_by_all(trace)
    capture = "none across retransmissions" in trace.provenance.get("rtt", "")
    if rtt is None or known is None or not capture or not follows_the_queue(trace):
        return ""
    rates, whole = known
    lengths = np.diff(trace.edges)[whole]
    packet_time = lengths.sum() / max(float(rates[whole] @ lengths), 1.0)
    busy = [i for i, name in enumerate(trace.flows) if name not in idle][:MAX_FLOWS]
    # the two flows whose RTTs correlate least; empty if there is only one flow
    least_alike = min(
        itertools.combinations(busy, 2),
        key=lambda pair: _correlation(rtt, pair, packet_time),
        default=(),
    )
    if not least_alike or _correlation(rtt, least_alike, packet_time) >= MIN_CORRELATION:
        return ""
    one, other = (trace.flows[i] for i in least_alike)
    return (
        f"the RTTs of {one} and {other} vary, but not together, so their packets may wait in "
        "different queues; the estimates take it that all flows share one"
    )


def _correlation(rtt: Floats, pair: tuple[int, ...], packet_time: float) -> float:
    """The correlation of two flows' RTTs; 1 if they are too few or vary too little to tell.

    ``rtt`` has the RTTs, s: [time, flow].  ``pair`` are the indices of the two flows.
    ``packet_time`` is the mean time from one delivered packet to the next, over all flows, s.
    """
    both = rtt[:, list(pair)]
    both = both[np.isfinite(both).all(axis=1)]
    if len(both) < MIN_INTERVALS or not np.all(both.std(axis=0) >= MIN_DEVIATION * packet_time):
        return 1.0
    return float(np.asarray(np.corrcoef(both.T))[0, 1])
