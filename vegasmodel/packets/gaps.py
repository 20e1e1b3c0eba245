"""Computes means and sums of a trace's values, of which some are unknown (NaN).

An unknown value counts as the mean of the known ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.packets.trace import Floats, Trace

__all__ = [
    "known_part",
    "last_deliveries",
    "lives",
    "mean_over_time",
    "packets_in_all",
    "seconds_in",
    "unknown_throughputs",
    "with_unknown",
]

MOST = 0.1  # part of the time for which a throughput may be unknown without a warning


def lives(trace: Trace) -> Floats:
    """The times of each flow's first and last packet, s: [flow, 2].

    If they are unknown, they are the begin and the end of the trace.
    """
    begin, end = float(trace.edges[0]), float(trace.edges[-1])
    ends = []
    for name, other in (("first", begin), ("last", end)):
        values = trace.get(name)
        values = np.full(len(trace.flows), np.nan) if values is None else values
        ends.append(np.where(np.isfinite(values), values, other))
    return np.stack(ends, axis=1)


def last_deliveries(edges: Floats, delivered: Floats) -> Floats:
    """The end of the last interval in which each flow delivers packets, s: [flow].

    It is NaN if the flow delivers none.  ``edges`` bounds the intervals, s, and ``delivered`` has
    packets or throughputs, [time, flow].
    """
    busy = delivered > 0
    last: Floats = np.where(busy, edges[1:, None], -np.inf).max(axis=0, initial=-np.inf)
    return np.where(busy.any(axis=0), last, np.nan)


def seconds_in(trace: Trace, spans: Floats) -> Floats:
    """For how many seconds each interval of the trace overlaps with each of ``spans``.

    ``spans`` has the begin and end of each span, s: [span, 2].  The result is [time, span].
    """
    low, high = trace.edges[:-1, None], trace.edges[1:, None]
    overlap: Floats = np.minimum(high, spans[:, 1]) - np.maximum(low, spans[:, 0])
    return np.clip(overlap, 0.0, None)


def known_part(values: Floats, seconds: Floats) -> Floats:
    """For which part of its time a flow's value is known: [flow], from 0 to 1.

    ``values`` has NaN where the value is unknown, [time, flow].  ``seconds`` says how much of each
    interval belongs to the flow's time, [time, flow].  If a flow has no time at all, the result is
    1, or 0 if its value is unknown in every interval.
    """
    known = ~np.isnan(values)
    total, told = seconds.sum(axis=0), (seconds * known).sum(axis=0)
    part = np.divide(told, total, out=known.any(axis=0).astype(float), where=total > 0)
    return np.where(known.all(axis=0), 1.0, part)


def with_unknown(counts: Floats, parts: Floats) -> Floats:
    """Estimate the packets in the whole time from ``counts``, the packets in a part of the time.

    ``parts`` is this part as a fraction, from 0 to 1. The result is NaN where the part is 0.
    """
    out = np.full(counts.shape, math.nan)
    whole: Floats = np.divide(counts, parts, out=out, where=parts > 0)
    return whole


def mean_over_time(values: Floats, seconds: Floats) -> Floats:
    """The mean of each column of ``values``, [time, column], over the time in which it is known.

    ``seconds`` has the weights, [time].  A mean is NaN if its column is unknown throughout.
    """
    weight = np.where(np.isnan(values), 0.0, seconds[:, None])
    total, top = weight.sum(axis=0), (weight * np.nan_to_num(values)).sum(axis=0)
    mean: Floats = np.divide(top, total, out=np.full(total.shape, math.nan), where=total > 0)
    return mean


def packets_in_all(trace: Trace) -> Floats | None:
    """How many packets each flow delivers in the whole trace: [flow].

    Where its throughput is unknown between its first and its last packet, its mean throughput
    counts.  The result is NaN for a flow whose throughput is unknown throughout, and ``None`` if
    the trace has no throughputs.
    """
    delivered = trace.known("throughput")
    if delivered is None:
        return None
    counted = np.nansum(delivered * np.diff(trace.edges)[:, None], axis=0)
    return with_unknown(counted, known_part(delivered, seconds_in(trace, lives(trace))))


def unknown_throughputs(names: Sequence[str], delivered: Floats, seconds: Floats) -> str:
    """Say which flows' throughputs are unknown for more than a tenth of their time.

    The text is empty if there is no such flow.  ``delivered`` has the throughputs, [time, flow],
    and ``seconds`` how much of each interval belongs to the flow's time, [time, flow].
    """
    parts, totals = known_part(delivered, seconds), seconds.sum(axis=0)
    found = [
        f"{name}'s throughput is unknown "
        + ("throughout" if not part else f"for {(1.0 - part) * total:.4g} of {total:.4g} s")
        for name, part, total in zip(names, parts, totals, strict=True)
        if total > 0 and 1.0 - part > MOST
    ]
    return few(found, clauses=True)
