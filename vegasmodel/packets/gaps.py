"""Computes means and sums of a trace's values if some of them are unknown (NaN).

An unknown value counts as the mean of the known ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.trace import Trace

__all__ = [
    "first_and_last_packets",
    "known_part",
    "last_deliveries",
    "mean_over_time",
    "packets_in_all",
    "scaled_up",
    "seconds_in",
    "unknown_throughputs",
]

MOST_UNKNOWN = 0.1  # part of the time for which a throughput may be unknown without a warning


def first_and_last_packets(trace: Trace) -> Floats:
    """The times of each flow's first and last packet, s: [flow, 2].

    If the trace does not tell a first packet, the start of the trace takes its place. If it does
    not tell a last packet, the end of the trace does.
    """
    begin, end = float(trace.edges[0]), float(trace.edges[-1])
    ends = []
    for name, of_trace in (("first", begin), ("last", end)):
        values = trace.get(name)
        values = np.full(len(trace.flows), np.nan) if values is None else values
        ends.append(np.where(np.isfinite(values), values, of_trace))
    return np.stack(ends, axis=1)


def last_deliveries(edges: Floats, delivered: Floats) -> Floats:
    """For each flow, the end of the last interval in which it delivers packets, s: [flow].

    It is NaN if the flow delivers none.  ``edges`` has the times between the intervals, s, and
    ``delivered`` the packets or the throughput in each interval, [time, flow].
    """
    busy = delivered > 0
    last: Floats = np.where(busy, edges[1:, None], -np.inf).max(axis=0, initial=-np.inf)
    return np.where(busy.any(axis=0), last, np.nan)


def seconds_in(trace: Trace, spans: Floats) -> Floats:
    """For how many seconds each interval of the trace overlaps with each time span.

    ``spans`` has the start and end of each span, s: [span, 2].  The result is [time, span].
    """
    low, high = trace.edges[:-1, None], trace.edges[1:, None]
    with np.errstate(over="ignore"):  # a trace may hold absurd times; -inf is no overlap, either
        overlap: Floats = np.minimum(high, spans[:, 1]) - np.maximum(low, spans[:, 0])
    return np.clip(overlap, 0.0, None)


def known_part(values: Floats, seconds: Floats) -> Floats:
    """The fraction of a time span in which a value, such as the throughput, is known: [flow].

    Each flow may have its own span.  ``seconds`` says how much of each interval lies in the flow's
    span, s: [time, flow].  ``values`` is NaN where the value is unknown, [time, flow].  If the span
    of a flow is empty, the result is 1, or 0 if its value is unknown in every interval.
    """
    known = ~np.isnan(values)
    total, known_seconds = seconds.sum(axis=0), (seconds * known).sum(axis=0)
    part = np.divide(known_seconds, total, out=known.any(axis=0).astype(float), where=total > 0)
    return np.where(known.all(axis=0), 1.0, part)


def scaled_up(counts: Floats, parts: Floats) -> Floats:
    """Estimate the number of packets in a time span of which only a part was observed.

    ``counts`` are the packets in this part. ``parts`` is the part as a fraction of the span, from 0
    to 1. The result is ``counts / parts``, or NaN where the part is 0.
    """
    out = np.full(counts.shape, math.nan)
    whole: Floats = np.divide(counts, parts, out=out, where=parts > 0)
    return whole


def mean_over_time(values: Floats, seconds: Floats) -> Floats:
    """The mean of each column of ``values``, [time, column], over the time in which it is known.

    Each interval has the weight ``seconds``, [time].  NaN in ``values`` means unknown.  The mean of
    a column that is never known is NaN.
    """
    weight = np.where(np.isnan(values), 0.0, seconds[:, None])
    total, weighted_sum = weight.sum(axis=0), (weight * np.nan_to_num(values)).sum(axis=0)
    mean: Floats = np.divide(
        weighted_sum, total, out=np.full(total.shape, math.nan), where=total > 0
    )
    return mean


def packets_in_all(trace: Trace) -> Floats | None:
    """How many packets each flow delivers in the whole trace: [flow].

    In intervals between a flow's first and last packet in which its throughput is unknown, the flow
    is assumed to have its mean throughput.  The result is NaN for a flow whose throughput is never
    known, and ``None`` if the trace has no throughputs.
    """
    delivered = trace.known("throughput")
    if delivered is None:
        return None
    counted = np.nansum(delivered * np.diff(trace.edges)[:, None], axis=0)
    return scaled_up(
        counted, known_part(delivered, seconds_in(trace, first_and_last_packets(trace)))
    )


def unknown_throughputs(names: Sequence[str], delivered: Floats, seconds: Floats) -> str:
    """Say which flows' throughputs are unknown for more than a tenth of the time averaged over.

    The text is empty if there is no such flow.  ``delivered`` has the throughputs, [time, flow].
    ``seconds`` says how much of each interval belongs to the flow's averages, s: [time, flow].
    """
    parts, totals = known_part(delivered, seconds), seconds.sum(axis=0)
    found = [
        f"{name}'s throughput is unknown "
        + ("throughout" if not part else f"for {(1.0 - part) * total:.4g} of {total:.4g} s")
        for name, part, total in zip(names, parts, totals, strict=True)
        if total > 0 and 1.0 - part > MOST_UNKNOWN
    ]
    return few(found, clauses=True)
