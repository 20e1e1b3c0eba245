"""Finds from a trace when a link was busy, and how fast it sent then.

A busy link sends as fast as its capacity allows, so ``capacity.py`` estimates the capacity from
these rates.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import ARRIVING

__all__ = [
    "RUN",
    "blocks",
    "busy_periods",
    "carried",
    "delivered_by_all",
    "follows_the_queue",
    "least_rates",
    "most_in_any_time",
    "queued",
    "rate_of_periods",
    "recovering",
    "sending",
    "tells_recoveries",
]

PACKETS_PER_BLOCK = 1000  # with fewer, one packet more or less changes the rate too much
NUMBER_OF_BLOCKS = (5, 100)  # the smallest and the largest number of blocks of a trace
RUN = 20  # packets: in a shorter busy period, an error of one packet at its ends matters too much
PAUSE = 1.0  # s: a shorter silence may be a sender that waits for a retransmission
# a host stalled if fewer packets than this part of capacity x wait left meanwhile
MIN_PART_OF_CAPACITY = 0.5


def delivered_by_all(trace: Trace) -> tuple[Floats, NDArray[np.bool_]] | None:
    """The throughput of all flows together, pkt/s, and whether it is known.

    Both arrays have a value for each interval of the trace. A flow is left out of the sum if the
    trace tells its throughput in no interval. In an interval the sum is known if the throughput of
    each flow in the sum is known. The result is ``None`` if the sum is known in no interval.
    """
    delivered = trace.known("throughput")
    if delivered is None:
        return None
    known = ~np.isnan(delivered)
    whole = np.all(known[:, known.any(axis=0)], axis=1)
    return (np.nansum(delivered, axis=1), whole) if np.any(whole) else None


def carried(trace: Trace, waits: Floats, capacity: float) -> Floats:
    """Replace delays that no queue at the link can have caused by NaN; return the result.

    ``waits`` has the delays beyond the RTT without queueing, s: [time, flow]. While a packet waits
    in the queue, the link sends ``capacity`` packets per second, and these are delivered during the
    wait. If less than half as many are delivered, no queue caused the delay: a host or a radio link
    stalled. All packets that it held back arrive at once after the stall. They must not count as
    sent during the wait. So the deliveries of each interval are limited to what the link can send
    in this interval.
    """
    known = delivered_by_all(trace)
    if known is None:
        return waits
    rates, whole = known
    # ``whole``: in which intervals the sum of all flows' throughputs is known
    # the packets delivered up to each edge of the intervals
    packets = np.concatenate([[0.0], np.cumsum(np.minimum(rates, capacity) * np.diff(trace.edges))])
    # A packet that arrives in an interval began to wait at ``begins``, or later in the interval.
    # Those delivered from then to the end of the interval are delivered ``during`` its wait.
    begins = trace.edges[:-1, None] - waits
    during = packets[1:, None] - np.interp(begins, trace.edges, packets)
    # a wait that began before the trace counts only from the trace's begin
    seconds = np.minimum(waits, trace.edges[1:, None] - trace.begin)
    with np.errstate(invalid="ignore"):
        stalled = whole[:, None] & (during < MIN_PART_OF_CAPACITY * capacity * seconds)
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

    ``waits`` has the delays beyond the RTT without queueing, s: [time, flow]. If a packet arrives
    at time t and has waited for a time w, the link was busy from t - w to t. The trace only tells
    the interval that contains t. With ``surely``, the result is true only where the link was busy
    for every t in that interval. Otherwise t is taken to be the end of that interval.
    """
    edges = trace.edges
    longest = np.fmax.reduce(waits, axis=1)  # the longest wait in each interval; NaN: none known
    longest = np.where(np.isfinite(longest), longest, 0.0)
    # The wait in interval i tells that the intervals firsts[i] to ends[i] - 1 were busy. Interval i
    # itself is one of them only without ``surely``.
    firsts = np.searchsorted(edges, edges[1:] - longest)
    ends = np.arange(len(edges) - 1) + (not surely)
    not_empty = firsts < ends
    # count for each interval the waits that tell so: +1 from firsts[i] on, -1 from ends[i] on
    steps = np.zeros(len(edges))
    np.add.at(steps, firsts[not_empty], 1)
    np.add.at(steps, ends[not_empty], -1)
    busy: NDArray[np.bool_] = np.cumsum(steps)[:-1] > 0
    return busy


def tells_recoveries(trace: Trace, flows: Collection[str]) -> bool:
    """Whether ``recovering`` finds all times in which one of these flows lacks a lost packet.

    It does so if the trace tells when each of the flows sent packets again. It also does so if the
    throughputs are those of arriving data: a lost packet then does not hold back the data behind
    it, so there are no such times.
    """
    if trace.provenance.get("throughput") == ARRIVING:
        return True
    again = trace.known("retransmits")
    if again is None:
        return False
    return all(np.isfinite(again[:, trace.flows.index(name)]).any() for name in flows)


def recovering(trace: Trace, waits: Floats) -> NDArray[np.bool_]:
    """Whether a flow may lack a packet that was lost, in each interval of the trace: [time].

    While a flow lacks a packet, its ACK number stands still. When the packet has arrived, the ACK
    number leaps. So the throughput seen in ACKs is too low at first, and then too high. The flow is
    taken to lack a packet for a time around each retransmission:

    - This time begins after the last delivery before the retransmission, but at most ``PAUSE``
      seconds before the retransmission.
    - It lasts up to the flow's next RTT sample or delivery, as ``_end_of_lack`` says.

    ``waits`` has queueing delays, which are known where RTTs are: [time, flow]. Flows without any
    RTT are left out.
    """
    found, resent = np.zeros(len(trace.edges) - 1, dtype=bool), trace.known("retransmits")
    delivered = trace.known("throughput")
    arrivals = trace.provenance.get("throughput") == ARRIVING
    if resent is None or delivered is None or arrivals:
        return found
    for i in range(len(trace.flows)):
        # indices of the intervals in which the flow has RTTs, deliveries and retransmissions
        measured = np.flatnonzero(np.isfinite(waits[:, i]))
        came, again = (np.flatnonzero(values[:, i] > 0) for values in (delivered, resent))
        if not (measured.size and came.size):
            continue
        # the intervals that are ``PAUSE`` seconds before each retransmission
        earliest = np.searchsorted(trace.edges, trace.edges[again] - PAUSE)
        for resend, limit in zip(again.tolist(), earliest.tolist(), strict=True):
            before = came[: np.searchsorted(came, resend)]
            begin = max(before[-1] + 1 if before.size else 0, limit)
            end = _end_of_lack(trace.edges, resend, measured, came, again)
            found[max(min(begin, resend - 1), 0) : end] = True
    return found


def _end_of_lack(
    edges: Floats,
    resend: int,
    measured: NDArray[np.intp],
    came: NDArray[np.intp],
    again: NDArray[np.intp],
) -> int:
    """The first interval in which a flow surely has the packet that it sent again in ``resend``.

    It is the interval after the flow's next RTT sample or, if there is none, after its last
    delivery.

    The next RTT sample may be late only because the flow has nothing to send after the recovery.
    This is assumed if the sample comes more than ``PAUSE`` seconds after the last delivery before
    it, and nothing is sent again after that delivery. The result is then the interval after that
    delivery.

    ``edges`` are the times at which intervals begin or end, s. The other arguments are indices of
    intervals: the flow has RTTs in ``measured``, deliveries in ``came`` and retransmissions in
    ``again``.
    """
    after = np.searchsorted(measured, resend, side="right")
    if after == measured.size:
        return int(max(came[-1], resend)) + 1
    sample = measured[after]
    # the last delivery before the RTT sample, and the last retransmission up to it
    delivery = came[: np.searchsorted(came, sample)][-1:]
    latest_resend = again[np.searchsorted(again, sample, side="right") - 1]
    if (
        delivery.size
        and edges[sample] - edges[delivery[0] + 1] > PAUSE
        and delivery[0] >= latest_resend
    ):
        return int(delivery[0]) + 1
    return int(sample) + 1


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


def most_in_any_time(packets: Floats, lengths: Floats, starts: Floats) -> float:
    """The largest rate in any successive intervals of the trace, pkt/s.

    ``packets`` and ``lengths`` (s) have one value per interval. In a time T a link of capacity C
    sends at most C T + 1 packets of one size. So one packet is subtracted from the number sent, and
    the result is at most C. SYNs are subtracted, too, because they are smaller than other packets.
    A flow's SYN may pass between the flow's start and its first delivery; ``starts`` has these two
    times for each flow, in s from the trace's begin.

    Only times of 1, 2, 4, ... intervals are looked at, and only if at least ``RUN`` packets are
    sent in them.
    """
    sums, times = (np.concatenate([[0.0], np.cumsum(values)]) for values in (packets, lengths))
    # how many flows have started, and how many have delivered a packet, before each edge
    started, delivering = (np.searchsorted(np.sort(moments), times) for moments in starts.T)
    most = 0.0
    for n in 2 ** np.arange(len(packets).bit_length()):
        counts, seconds = sums[n:] - sums[:-n], times[n:] - times[:-n]
        # a SYN may be in these intervals if its flow has started but had not delivered before
        enough, subtracted = counts >= RUN, 1 + started[n:] - delivering[:-n]
        most = max(
            most, float(np.max((counts - subtracted)[enough] / seconds[enough], initial=0.0))
        )
    return most


def rate_of_periods(packets: Floats, seconds: Floats) -> tuple[float, float, float]:
    """The lower quartile, median and upper quartile of the rates in busy periods, pkt/s.

    Each period is weighted by its number of ``packets``. ``seconds`` are the durations of the
    periods.
    """
    rates = packets / seconds
    order = np.argsort(rates)
    total = np.cumsum(packets[order])
    places = np.searchsorted(total, total[-1] * np.array([0.25, 0.5, 0.75]))
    low, middle, high = (float(rates[order[place]]) for place in places)
    return low, middle, high


def sending(rates: Floats, lengths: Floats) -> NDArray[np.bool_]:
    """Whether some flow sends, in each interval: false in a pause, such as between two transfers.

    ``rates`` (pkt/s) and ``lengths`` (s) have one value per interval of the trace.  Nobody sends if
    nothing is delivered for more than a second (``PAUSE``), and for longer than ``RUN`` packets
    take on average.
    """
    # the intervals at which silences (rate 0) begin and end, in turn
    edges = np.flatnonzero(np.diff(rates <= 0, prepend=False, append=False))
    times, packets = np.concatenate([[0.0], np.cumsum(lengths)]), float(rates @ lengths)
    sends = np.ones(len(rates), dtype=bool)
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        seconds = times[end] - times[first]
        # ``RUN`` packets take RUN times[-1] / packets seconds on average
        sends[first:end] = seconds <= PAUSE or seconds * packets <= RUN * times[-1]
    return sends


def blocks(rates: Floats, lengths: Floats, finest: int = NUMBER_OF_BLOCKS[1]) -> Floats:
    """Divide the trace into blocks of equal duration; return the mean rate in each, in pkt/s.

    ``rates`` (pkt/s) and ``lengths`` (s) have one value per interval of the trace.  The number of
    blocks is such that a block has about ``PACKETS_PER_BLOCK`` packets on average, but at least 5
    and at most ``finest``.
    """
    packets, times = _sums(rates, lengths)
    ends = np.linspace(0.0, times[-1], _number(packets[-1], finest) + 1)
    found: Floats = np.diff(np.interp(ends, times, packets)) / np.diff(ends)
    return found


def least_rates(
    rates: Floats, lengths: Floats, clean: NDArray[np.bool_], uncounted: float
) -> Floats:
    """Lower bounds of the rate at which a link sent, one for each block of the trace, pkt/s.

    The blocks are those of the function ``blocks``, but each begins at the next end of a ``clean``
    interval ([time]). At such an end, at most ``uncounted`` packets have left the link and are not
    counted yet. They may be counted in the block that begins there. So ``uncounted`` is subtracted
    from the number of packets in each block. The trace's begin counts as the end of a clean
    interval.

    ``rates`` (pkt/s) and ``lengths`` (s) have one value per interval of the trace.
    """
    packets, times = _sums(rates, lengths)
    wanted = np.linspace(0.0, times[-1], _number(packets[-1], NUMBER_OF_BLOCKS[1]) + 1)[1:-1]
    places = np.flatnonzero(clean) + 1
    nearest = np.searchsorted(times[places], wanted)
    inner = places[nearest[nearest < places.size]]
    cuts = np.unique([0, *inner, len(rates)])
    found: Floats = (np.diff(packets[cuts]) - uncounted) / np.diff(times[cuts])
    return found


def _sums(rates: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """The packets delivered, and the seconds passed, up to each edge of the intervals."""
    packets, times = (np.concatenate([[0.0], np.cumsum(v)]) for v in (rates * lengths, lengths))
    return packets, times


def _number(packets: float, finest: int) -> int:
    """The number of blocks for a trace of so many packets; at most ``finest``, but at least 5."""
    return int(
        np.clip(packets / PACKETS_PER_BLOCK, NUMBER_OF_BLOCKS[0], max(finest, NUMBER_OF_BLOCKS[0]))
    )
