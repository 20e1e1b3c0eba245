"""Finds from a trace when a link was busy, and how fast it sends then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import Floats

__all__ = [
    "RUN",
    "blocks",
    "busy_periods",
    "carried",
    "delivered_by_all",
    "follows_the_queue",
    "most_in_any_time",
    "queued",
    "rate_of_periods",
    "without_pauses",
]

BLOCK = 1000  # packets in a block; with fewer, the rate is too coarse
BLOCKS = (5, 100)  # least and greatest number of blocks
RUN = 20  # packets: in a shorter busy period, an error of one packet at its ends matters too much
PAUSE = 1.0  # s: a shorter silence may be a sender that waits for a retransmission
HALF = 0.5  # of the packets that must leave a queue in a packet's wait


def delivered_by_all(trace: Trace) -> tuple[Floats, NDArray[np.bool_]] | None:
    """The throughput of all flows together, pkt/s, and where it is known: both [time].

    Flows of which the trace tells no throughput are left out.  The result is ``None`` if the
    throughput is known in no interval.
    """
    delivered = trace.known("throughput")
    if delivered is None:
        return None
    told = ~np.isnan(delivered)
    whole = np.all(told[:, told.any(axis=0)], axis=1)
    return (np.nansum(delivered, axis=1), whole) if np.any(whole) else None


def carried(trace: Trace, waits: Floats, capacity: float) -> Floats:
    """``waits``, with NaN in place of delays that cannot be those of a queue at the link.

    ``waits`` has delays beyond the RTT without queueing, s: [time, flow].  While a packet waits in
    the queue, the link sends the packets before it, ``capacity`` of them per second.  They are
    delivered in the time of this wait.  If less than half of them are, a host or a radio link
    stalled.  What stalled arrives at once afterwards, so no interval counts for more than the link
    sends in it.
    """
    known = delivered_by_all(trace)
    if known is None:
        return waits
    rates, whole = known
    packets = np.concatenate([[0.0], np.cumsum(np.minimum(rates, capacity) * np.diff(trace.edges))])
    begins = trace.edges[:-1, None] - waits
    before = packets[1:, None] - np.interp(begins, trace.edges, packets)
    seconds = np.minimum(waits, trace.edges[1:, None] - trace.begin)
    with np.errstate(invalid="ignore"):
        stalled = whole[:, None] & (before < HALF * capacity * seconds)
    return np.where(stalled, np.nan, waits)


def follows_the_queue(trace: Trace) -> bool:
    """Whether the RTTs in a trace follow the queue from one round trip to the next.

    They do so if they are not smoothed, as those of a kernel are, and if the trace's intervals are
    no longer than the median RTT.
    """
    rtt = trace.known("rtt_min")
    rtt = trace.known("rtt") if rtt is None else rtt
    if rtt is None or "smoothed" in trace.provenance.get("rtt", ""):
        return False
    return bool(np.median(np.diff(trace.edges)) <= np.nanmedian(rtt))


def queued(trace: Trace, waits: Floats, *, surely: bool) -> NDArray[np.bool_]:
    """Whether a packet waited at the link, in each interval of the trace: [time].

    ``waits`` has delays beyond the RTT without queueing, s: [time, flow].  If a packet arrives at
    time t and has waited for a time w, the link was busy from t - w to t.  The trace only tells the
    interval that contains t.  So ``surely`` leaves out what is busy only for late t in it.

    An interval does not count from the first retransmission of a flow up to its next RTT.  In this
    time the ACK number stands still and then leaps, so throughputs are too low, then too high.
    """
    edges, again = trace.edges, trace.known("retransmits")
    ends, counts = np.arange(len(edges) - 1) + (not surely), np.zeros(len(edges))
    longest = np.fmax.reduce(waits, axis=1)
    longest = np.where(np.isfinite(longest), longest, 0.0)
    firsts = np.searchsorted(edges, edges[1:] - longest)
    some = firsts < ends
    np.add.at(counts, firsts[some], 1)
    np.add.at(counts, ends[some], -1)
    busy: NDArray[np.bool_] = np.cumsum(counts)[:-1] > 0
    if again is not None:
        for i in range(len(trace.flows)):
            measured = np.flatnonzero(np.isfinite(waits[:, i]))
            for lost in np.flatnonzero(again[:, i] > 0):
                after = np.searchsorted(measured, lost, side="right")
                end = measured[after] + 1 if after < measured.size else len(busy)
                busy[max(lost - 1, 0) : end] = False
    return busy


def busy_periods(
    busy: NDArray[np.bool_], packets: Floats, lengths: Floats
) -> tuple[Floats, Floats]:
    """Find the busy periods of a link: how many packets it sends in each, and the duration, s.

    A busy period consists of successive intervals of the trace.  The arguments have one value per
    interval: whether the link is busy, how many packets it sends, and the interval's length, s.
    Periods with fewer than ``RUN`` packets are left out, because an error of one packet at their
    ends would matter too much.
    """
    edges = np.flatnonzero(np.diff(busy, prepend=False, append=False))
    sums = [np.concatenate([[0.0], np.cumsum(values)]) for values in (packets, lengths)]
    counts, seconds = (total[edges[1::2]] - total[edges[::2]] for total in sums)
    long = counts >= RUN
    return counts[long], seconds[long]


def most_in_any_time(packets: Floats, lengths: Floats) -> float:
    """The largest rate in any successive intervals of the trace, less one packet, pkt/s.

    ``packets`` and ``lengths`` (s) have one value per interval.  In a time T a link of capacity C
    sends at most C T + 1 packets of one size, so the result is at most C.  Only times of 1, 2, 4,
    ... intervals are looked at, in which at least ``RUN`` packets are sent: among fewer packets, a
    small one, such as a SYN, matters too much.
    """
    sums, times = (np.concatenate([[0.0], np.cumsum(values)]) for values in (packets, lengths))
    most = 0.0
    for n in 2 ** np.arange(len(packets).bit_length()):
        counts, seconds = sums[n:] - sums[:-n], times[n:] - times[:-n]
        enough = counts >= RUN
        most = max(most, float(np.max((counts - 1.0)[enough] / seconds[enough], initial=0.0)))
    return most


def rate_of_periods(packets: Floats, seconds: Floats) -> tuple[float, float, float]:
    """The lower quartile, median and upper quartile of the rates in busy periods, pkt/s.

    A period counts by its number of ``packets``.  ``seconds`` are the durations.
    """
    rates = packets / seconds
    order = np.argsort(rates)
    total = np.cumsum(packets[order])
    places = np.searchsorted(total, total[-1] * np.array([0.25, 0.5, 0.75]))
    low, middle, high = (float(rates[order[place]]) for place in places)
    return low, middle, high


def without_pauses(rates: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Leave out the times in which no flow sends, such as the time between two transfers.

    ``rates`` (pkt/s) and ``lengths`` (s) have one value per interval of the trace.  Nobody sends if
    nothing is delivered for more than a second (``PAUSE``), and for longer than ``RUN`` packets
    take on average.
    """
    silent = np.flatnonzero(np.diff(rates <= 0, prepend=False, append=False))
    times, packets = np.concatenate([[0.0], np.cumsum(lengths)]), float(rates @ lengths)
    keep = np.ones(len(rates), dtype=bool)
    for first, end in zip(silent[::2], silent[1::2], strict=True):
        long = times[end] - times[first]
        keep[first:end] = long <= PAUSE or long * packets <= RUN * times[-1]
    return rates[keep], lengths[keep]


def blocks(rates: Floats, lengths: Floats, finest: int = BLOCKS[1]) -> Floats:
    """Divide the trace into blocks of equal duration; return the mean rate in each, in pkt/s.

    ``rates`` (pkt/s) and ``lengths`` (s) have one value per interval of the trace.  The number of
    blocks is such that a block has about ``BLOCK`` packets on average, but at least 5 and at most
    ``finest``.
    """
    packets = np.concatenate([[0.0], np.cumsum(rates * lengths)])
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    count = int(np.clip(packets[-1] / BLOCK, BLOCKS[0], max(finest, BLOCKS[0])))
    ends = np.linspace(0.0, times[-1], count + 1)
    found: Floats = np.diff(np.interp(ends, times, packets)) / np.diff(ends)
    return found
