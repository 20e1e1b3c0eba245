"""Estimates from the RTTs in a trace how long packets wait in a full queue.

The buffer's size is estimated from this time and the capacity (``estimate.py``).
"""

from __future__ import annotations

import numpy as np

from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import Floats

__all__ = ["longest_wait"]

MOST = 0.95  # quantile of RTTs: a stall of a host makes fewer too long
FEW = 10  # losses, of which a few stalls can be a quarter
SPREAD = 0.2  # of the median: distance to the upper quartile of the delays of a full queue


def longest_wait(trace: Trace, waits: Floats) -> tuple[float, str]:
    """The queueing delay at the longest queue, s, and a text on the RTT that it comes from.

    ``waits`` has the queueing delays of the flows, s: [time, flow].

    The largest delay of a trace may come from a host or a radio link that stalled once, and not
    from the queue.  But at a drop-tail queue a flow loses a packet only when the queue is full.
    The queue grows until then, so between two losses the delay of a flow is largest when the queue
    is full.  The result is the median of these largest delays over all times between two losses,
    each weighted by its length.  The weights make short times matter little: after a loss of
    several packets, the next loss is near, and the queue need not have been full in between.  No
    weight is above that of the usual time between two losses, or one flow that seldom loses a
    packet would decide.

    If a quarter of these delays are longer than the median by more than the part ``SPREAD``, many
    packets were lost before the queue was full.  The result is then a delay that few of them exceed
    (``MOST``).  Of fewer than ``FEW`` delays, stalls may make a quarter too long, so the median
    counts.  If the trace shows no losses, the result is a delay that the flow with the longest
    delays seldom exceeds.
    """
    lengths, counts = np.diff(trace.edges), [trace.known(k) for k in ("retransmits", "loss")]
    found = [values for values in counts if values is not None]
    tops, weights = list[float](), list[float]()
    for i in range(len(trace.flows)):
        lost = next((v[:, i] for v in found if np.nansum(v[:, i]) > 0), np.zeros(0))
        ends = np.flatnonzero(np.nan_to_num(lost) > 0) + 1
        for first, end in zip([0, *ends], ends, strict=False):
            top = np.fmax.reduce(waits[first:end, i])
            if np.isfinite(top):
                tops.append(float(top))
                weights.append(float(lengths[first:end].sum()))
    if tops:
        spans = np.array(weights)
        spans = np.minimum(spans, _quantiles(spans, spans)[0])
        middle, high, most = _quantiles(np.array(tops), spans)
        if high - middle <= SPREAD * middle or len(tops) < FEW:
            return middle, f"largest RTT before a loss, median over {len(tops)} losses"
        how = f"largest RTT before a loss, {MOST:.0%} quantile over {len(tops)} losses"
        return most, f"{how}, which are not all of a full queue"
    parts = [np.quantile(w[np.isfinite(w)], MOST) for w in waits.T if np.isfinite(w).any()]
    return float(max(parts, default=0.0)), f"RTT, {MOST:.0%} quantile"


def _quantiles(values: Floats, weights: Floats) -> list[float]:
    """The median, the upper quartile and the quantile ``MOST`` of weighted values."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    places = np.searchsorted(total, total[-1] * np.array([0.5, 0.75, MOST]), side="right")
    return [float(values[order[place]]) for place in np.minimum(places, len(order) - 1)]
