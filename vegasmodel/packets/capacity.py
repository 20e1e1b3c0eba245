"""Estimates from a trace the capacity of its bottleneck.

A link sends at its full capacity while packets wait in its queue. The trace tells when packets
waited, by the recorded lengths of the queue or by RTTs (``busy_times.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.packets.busy_times import (
    RUN,
    blocks,
    busy_periods,
    carried,
    delivered_by_all,
    follows_the_queue,
    least_rates,
    most_in_any_time,
    queued,
    rate_of_periods,
    recovering,
    sending,
    tells_recoveries,
)
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.gaps import mean_over_time, packets_in_all
from vegasmodel.packets.trace import Trace

__all__ = ["bottleneck", "bound_of_mean_size", "capacity_of", "of_flows", "while_queued"]

# with fewer packets in all busy periods, one stall of a host matters too much
ENOUGH_PACKETS = 10 * RUN
NEARLY_ALL = 0.9  # the part of the intervals that counts as nearly all of them
# Rates that differ by a smaller part count as equal, because busy periods may have idle ends.
EQUAL_RATES = 0.01
FEW = 0.01  # part of all packets: the packet sizes of a flow that has fewer hardly matter
# A trace may hold absurd numbers. Outside these limits they count as unknown.
MOST_PACKETS = 1e15  # greatest number of packets of one flow
POSSIBLE_SIZES = 1.0, 1e6  # least and greatest size of a packet, B
# parts of the texts ``how``, which say how an estimate was found
LARGER = "the capacity may be larger"
OTHERS = "if the link carries other traffic, which the trace does not hold"


def bottleneck(trace: Trace) -> int | None:
    """The index of the bottleneck, which is taken to be the link with the longest mean queue.

    The result is ``None`` if the trace shows no packet waiting at any link.
    """
    queue = trace.known("queue")
    if queue is None or not np.nanmax(queue, initial=0.0) > 0:
        return None
    means = mean_over_time(queue, np.diff(trace.edges))
    return int(np.nanargmax(means))


def capacity_of(trace: Trace) -> Estimate | None:
    """Estimate the capacity from the packets sent into the bottleneck, or from the throughputs.

    The throughputs are used if the packets sent into the bottleneck do not tell the capacity. The
    result is ``None`` if the trace tells neither.
    """
    link, served = bottleneck(trace), trace.known("served")
    if link is not None and served is not None:
        found = _of_link(trace, link, served[:, link])
        if found is not None:
            return found
    return _of_throughputs(trace, idles=True)


def _of_throughputs(trace: Trace, *, idles: bool) -> Estimate | None:
    """The capacity of a link by the rate at which the flows together deliver at the busiest times.

    ``idles`` is True if it is not known whether the link idles at times. Then the flows may have
    delivered less than the capacity in all parts of the trace, so the range has no upper end.
    """
    known_rates = delivered_by_all(trace)
    if known_rates is None:
        return None
    lengths = np.diff(trace.edges)
    total, are_known = known_rates
    used = are_known.copy()  # the intervals without pauses
    used[are_known] = sending(total[are_known], lengths[are_known])
    rates = blocks(total[used], lengths[used])
    if not rates.max(initial=0.0) > 0:
        return None
    median, value = np.quantile(rates, [0.5, 0.9])
    how = "throughput of all flows together, which a tenth of the intervals exceed; "
    how += f"{LARGER} if the link idles, or {OTHERS}" if idles else f"{LARGER} {OTHERS}"
    most = np.inf if idles else float(rates.max())
    return Estimate(float(value), float(median), most, "pkt/s", how)


def _of_link(trace: Trace, link: int, rate: Floats) -> Estimate | None:
    """The capacity of a link by the packets sent into it, ``rate`` per second in each interval.

    An interval is busy if on average at least one packet waits in it. Successive busy intervals are
    a busy period. The estimate is one of three:

    - Usually it is the mean rate in busy periods.
    - If some successive intervals have a larger rate than the busy periods, this rate is a lower
      bound.
    - If intervals are long (over ``RUN`` packets in the median one), a busy interval may contain
      idle times. Then the estimate is the largest rate in an interval. It is a lower bound unless
      the link sends as much in most intervals.

    The result is ``None`` if the packets do not tell the capacity.
    """
    lengths, queue, known = np.diff(trace.edges), trace.known("queue"), ~np.isnan(rate)
    rate, in_mean_size = _of_mean_size(trace, link, rate)
    counts, name = np.nan_to_num(rate) * lengths, trace.links[link]  # packets in each interval
    busy = known & (np.nan_to_num(queue[:, link]) >= 1 if queue is not None else lengths > 0)
    packets, seconds = busy_periods(busy, counts, lengths)  # of each busy period
    largest = 0.0  # the largest rate in successive intervals, pkt/s; 0 if it cannot be used
    if _only_these_flows(trace, float(counts.sum())):
        largest = most_in_any_time(counts, lengths, _starts(trace))
    # The packets of this largest rate may all be small ones. ``surely`` is the rate at which the
    # link could send packets of the mean size even then.
    surely = largest if in_mean_size else largest * _smallest(trace)
    how = f"most packets sent into link {name} in any time: a lower bound"
    bound = Estimate(largest, largest, np.inf, "pkt/s", how) if largest else None
    if packets.size and np.median((rate * lengths)[known]) > RUN:  # intervals are long
        rates = blocks(rate[known], lengths[known], finest=len(lengths))
        # the rate in the median busy interval; by chance its count may be one packet too small
        usual = float(np.median((counts[busy] + 1.0) / lengths[busy]))
        return _of_long_intervals(name, rates, usual, surely, bound)
    mean = float(packets.sum() / seconds.sum()) if packets.size else 0.0
    if surely > mean * (1 + EQUAL_RATES):  # most intervals were partly idle
        return bound
    return _of_busy_periods(name, packets, seconds) if packets.size else None


def _of_long_intervals(
    name: str, rates: Floats, usual: float, surely: float, bound: Estimate | None
) -> Estimate:
    """The capacity of a link by the largest rate at which packets were sent into it.

    ``rates`` are mean rates in blocks of the trace. ``surely`` is a rate that the link has reached
    at some time, or 0. ``usual`` is its rate in the median busy interval. All are in pkt/s. A link
    that is always busy sends as many packets in most intervals as in any other. So if ``usual`` is
    as large as the largest rate, this is the capacity. Otherwise it is only a lower bound, and
    ``bound`` is returned if it is given.
    """
    middle, largest = float(np.median(rates)), max(float(rates.max()), surely)
    how = f"most packets sent into link {name} in an interval"
    if usual >= largest * (1 - EQUAL_RATES):
        return Estimate(largest, middle, largest, "pkt/s", how)
    return bound or Estimate(largest, middle, np.inf, "pkt/s", f"{how}: a lower bound")


def _of_busy_periods(name: str, packets: Floats, seconds: Floats) -> Estimate:
    """The capacity of a link by its mean rate in busy periods.

    ``packets`` are sent into the link in each period, which lasts ``seconds``. The range goes from
    the lower to the upper quartile of the periods' rates. It is at least as wide as an error of one
    packet in each period would make it.
    """
    mean = float(packets.sum() / seconds.sum())
    low, high = np.quantile(packets / seconds, [0.25, 0.75])
    edge = packets.size / packets.sum()  # one packet in each period, as a part of all packets
    low, high = min(low, mean * (1 - edge)), max(high, mean * (1 + edge))
    how = f"packets sent into link {name} while at least one waits"
    return Estimate(mean, float(low), float(high), "pkt/s", how)


def _of_mean_size(trace: Trace, link: int, rate: Floats) -> tuple[Floats, bool]:
    """Convert a rate of packets sent into a link to a rate of packets of the flows' mean size.

    A link sends more packets per second while only small ones arrive, but not more bytes.  ``rate``
    has the packets per second in each interval.  The mean size is that of all packets that the
    flows deliver.  Returns the rate and whether it is converted.  It stays as it is if the trace
    does not tell the sizes in each interval, or if other packets pass the link, too.
    """
    # [interval, link] the mean size of the packets sent into each link, B
    served, known = trace.known("served_size"), _sizes(trace)
    counts = float(np.nansum(rate * np.diff(trace.edges)))  # packets in all
    if served is None or known is None or not _only_these_flows(trace, counts):
        return rate, False
    sizes, packets = known
    mean = float(sizes @ packets / packets.sum())
    sent = served[:, link]
    if np.any(np.isnan(sent) & (np.nan_to_num(rate) > 0)):
        return rate, False
    # SYNs make the mean size of an interval a bit smaller than the smallest full packets
    return rate * np.clip(np.nan_to_num(sent, nan=mean), sizes.min(), sizes.max()) / mean, True


def bound_of_mean_size(trace: Trace) -> bool:
    """Whether a lower bound of the capacity counts packets of the flows' mean size.

    It does if the trace tells the mean size of the packets that each link sends in an interval: n
    packets of this size are then counted as the number of packets of the mean size that have as
    many bytes (``_of_mean_size``). Otherwise all packets of the bound may be the smallest.
    """
    link, served = bottleneck(trace), trace.known("served")
    return (
        link is not None and served is not None and _of_mean_size(trace, link, served[:, link])[1]
    )


def in_mean_size(trace: Trace, capacity: Estimate) -> tuple[float, float]:
    """The capacity in packets of the flows' mean size per second, and the largest size over it.

    A lower bound of the capacity may come from a time in which all packets were small
    (``bound_of_mean_size``). It is then converted by the size of the smallest packets. The mean
    throughput of all flows over the whole trace is another lower bound, which needs no conversion.
    The larger of the two is returned. Flows with less than the fraction ``FEW`` of all packets do
    not count. If all sizes are equal or unknown, the capacity is returned as it is, with 1.
    """
    known = _sizes(trace)
    if known is None:
        return capacity.value, 1.0
    sizes, packets = known
    many = packets >= FEW * packets.sum()
    smallest, mean, largest = sizes[many].min(), sizes @ packets / packets.sum(), sizes[many].max()
    if largest <= smallest * (1 + EQUAL_RATES):
        return capacity.value, 1.0
    rate = capacity.value
    if math.isinf(capacity.high) and not bound_of_mean_size(trace):
        seconds = float(trace.edges[-1] - trace.edges[0])
        rate = max(rate * float(smallest / mean), float(packets.sum()) / seconds)
    return rate, float(largest / mean)


def _sizes(trace: Trace) -> tuple[Floats, Floats] | None:
    """The sizes and the numbers of packets of those flows of which the trace tells both.

    Sizes outside ``POSSIBLE_SIZES``, and more packets than ``MOST_PACKETS``, count as unknown.
    Returns ``None`` if both are known of no flow.
    """
    sizes, packets = trace.known("packet_size"), packets_in_all(trace)
    if sizes is None or packets is None:
        return None
    low, high = POSSIBLE_SIZES
    with np.errstate(invalid="ignore"):
        some = (sizes >= low) & (sizes <= high) & (packets > 0) & (packets <= MOST_PACKETS)
    return (sizes[some], packets[some]) if some.any() else None


def _smallest(trace: Trace) -> float:
    """The size of the smallest packets, divided by the mean size of all packets in the trace.

    At some times a link may send only small packets, and then it sends more packets per second than
    usual. A rate of such packets, multiplied by the result, is a rate of packets of the mean size.
    The result is 1 if the trace does not tell the packets' sizes.
    """
    known = _sizes(trace)
    if known is None:
        return 1.0
    sizes, packets = known
    return float(sizes.min() * packets.sum() / (sizes @ packets))


def _starts(trace: Trace) -> Floats:
    """When each flow starts, and the end of the interval of its first delivery: [flow, 2].

    The times are in s from the trace's begin. An unknown start is 0, and an unknown end of
    the interval is infinite.
    """
    firsts, delivered = trace.known("first"), trace.known("throughput")
    starts = np.zeros((len(trace.flows), 2))
    starts[:, 1] = np.inf
    if firsts is not None:
        starts[:, 0] = np.nan_to_num(firsts, nan=trace.begin) - trace.begin
    if delivered is not None:
        some = np.any(delivered > 0, axis=0)
        ends = trace.edges[1 + np.argmax(delivered > 0, axis=0)] - trace.begin
        starts[some, 1] = ends[some]
    return starts


def _only_these_flows(trace: Trace, packets: float) -> bool:
    """Whether a link that has sent ``packets`` packets sends hardly any but those of the flows.

    Other packets, such as ACKs in the reverse direction, may be small.  Then the number of packets
    per second says little about the link's capacity.
    """
    delivered = packets_in_all(trace)
    return delivered is not None and packets <= float(np.nansum(delivered)) * (1 + 1 / RUN)


def while_queued(trace: Trace, capacity: Estimate, bases: Mapping[str, Estimate]) -> Estimate:
    """Estimate the capacity from the throughput of all flows while RTTs show that packets wait.

    ``capacity`` is an estimate from throughputs alone. It may be too low, because the link may be
    idle at times. It is returned unchanged if the trace has no RTTs, or does not tell when flows
    wait for the retransmission of lost packets (``tells_recoveries``).

    The result is only a lower bound (``_at_least``) in three cases:

    - In the times in which RTTs surely show waiting packets, the link sends fewer than
      ``ENOUGH_PACKETS`` packets.
    - The throughput in these times is less than usual. Then RTTs vary for another reason than a
      queue, as on a radio link.
    - RTTs do not show at which times packets wait: they do not follow the queue
      (``follows_the_queue``), or the trace has only the mean RTT of each interval. There is one
      exception. If all delays are at least a packet's transmission time in nearly all intervals
      (``NEARLY_ALL``), the link was busy, and the range of ``capacity`` gets an upper end.
    """
    least, known = trace.known("rtt_min"), delivered_by_all(trace)
    rtt = trace.known("rtt") if least is None else least
    if rtt is None or known is None or not tells_recoveries(trace, bases):
        return capacity
    total, whole = known
    lengths, waits = np.diff(trace.edges), rtt - of_flows(trace, bases)
    waits = carried(trace, waits, capacity.value)  # without delays that no queue has caused
    # ``lacks``: in which intervals a flow may lack a lost packet
    lacks, how = recovering(trace, waits), "throughput of all flows together"
    if least is None or not follows_the_queue(trace):
        # the intervals in which some flow's delay is shorter than a packet takes at the link
        empty = ~(np.fmin.reduce(waits, axis=1) * capacity.value >= 1.0)
        # there is always such an interval: the one with the smallest RTT
        if np.sum(empty) <= max((1.0 - NEARLY_ALL) * empty.size, 1.0):
            return _of_throughputs(trace, idles=False) or capacity
        how += "; RTTs do not show a queue in nearly all intervals"
        return _at_least(trace, lacks, (np.zeros(0), np.zeros(0)), how)
    # the intervals in which packets surely waited, and those in which they may have waited
    busy, maybe_busy = (queued(trace, waits, surely=surely) & whole for surely in (True, False))
    # packets and seconds of the busy periods in these intervals in which no flow lacks a packet
    packets, seconds = busy_periods(busy & ~lacks, total * lengths, lengths)
    maybe = busy_periods(maybe_busy & ~lacks, total * lengths, lengths)
    if packets.sum() >= ENOUGH_PACKETS:
        low, value, high = rate_of_periods(packets, seconds)
        edge = 1 + packets.size / packets.sum()  # an error of one packet in each busy period
        if high * (1 + 1 / RUN) >= capacity.low:
            how += f" while RTTs show a queue; {LARGER} {OTHERS}"
            return Estimate(value, min(low, value / edge), max(high, value * edge), "pkt/s", how)
        how += "; it is no larger while RTTs show a queue"
    elif busy_periods(maybe_busy, total * lengths, lengths)[0].sum() < ENOUGH_PACKETS:
        how += "; RTTs show a queue too seldom to tell more"
    elif maybe[0].sum() < ENOUGH_PACKETS:
        how += "; packets are sent again too often to tell more"
    else:
        how += "; RTTs show a queue for too short times to tell more"
    return _at_least(trace, lacks, maybe, how)


def _at_least(
    trace: Trace, lacks: NDArray[np.bool_], periods: tuple[Floats, Floats], how: str
) -> Estimate:
    """A lower bound of the capacity by the throughput of all flows together.

    ``lacks`` says in which intervals a flow may lack a lost packet.  ``periods`` are the numbers of
    packets, and the durations, s, of times in which packets may have waited: two arrays [period].

    The result is the rate that a tenth of the trace's blocks exceed, or the median rate of the
    ``periods`` if that is larger.  A throughput counts packets when they are acknowledged, so the
    link may have sent some of a block's packets before the block.  Therefore as many packets as
    ``_unacknowledged`` returns are subtracted from those of each block and period.

    ``how`` is the beginning of the text that says how the estimate was found.
    """
    total, whole = delivered_by_all(trace) or (np.zeros(lacks.size), np.ones(lacks.size, bool))
    lengths, unacknowledged = np.diff(trace.edges), _unacknowledged(trace)
    # blocks begin at the ends of clean intervals: no flow lacks a packet, and packets are
    # delivered in the next interval, too, so few packets wait for an ACK
    clean = whole & ~lacks & (total > 0)
    clean = clean & np.append(clean[1:], False)
    # leave out pauses, but keep the times in which nothing is delivered because a packet is lost
    keep = whole.copy()
    keep[whole] = sending(total[whole], lengths[whole])
    keep |= whole & lacks
    rates = least_rates(total[keep], lengths[keep], clean[keep], unacknowledged)
    value = max(float(np.quantile(rates, 0.9)), 0.0)
    packets, seconds = periods
    if packets.sum() >= ENOUGH_PACKETS:
        _, median, _ = rate_of_periods(packets - unacknowledged, seconds)
        value = max(value, median)
    return Estimate(value, value, np.inf, "pkt/s", f"{how}: a lower bound")


def _unacknowledged(trace: Trace) -> float:
    """How many packets may have left the link beyond those counted, if none was lost.

    One is added because a link of capacity C may send C T + 1 packets of one size in a time T. The
    others have reached receivers that delay their ACKs, but are not acknowledged yet: for each flow
    this is the number of packets per ACK less one, but at least one.
    """
    per_ack = trace.known("packets_per_ack")  # 2 is assumed where it is unknown
    per_ack = np.full(len(trace.flows), 2.0) if per_ack is None else np.nan_to_num(per_ack, nan=2.0)
    return 1.0 + float(np.sum(np.maximum(per_ack - 1.0, 1.0)))


def of_flows(trace: Trace, bases: Mapping[str, Estimate]) -> Floats:
    """The smallest RTT of each flow of the trace, s; NaN for flows that ``bases`` lacks."""
    return np.array([bases[name].value if name in bases else np.nan for name in trace.flows])
