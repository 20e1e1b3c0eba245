"""Estimates from a trace the values that a scenario file needs.

These are the bottleneck's capacity and buffer, and each flow's RTT, baseRTT and alpha. The backlog
that the flow keeps is the estimate of alpha.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields import kinds
from vegasmodel.packets.activity import idle_flows
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
from vegasmodel.packets.full_queue import FEW, longest_wait
from vegasmodel.packets.gaps import mean_over_time, packets_in_all
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import Floats
from vegasmodel.stacks import STACKS

__all__ = ["Estimate", "Estimates", "estimate", "first_windows", "lost_packets"]

NEAR = 2  # packets by which the queues that two flows meet may differ
TRUNCATION = 19  # 0.95 / 0.05: factor on the distance of the two smallest RTTs (``_least``)
CLOCK = 1e-6  # s: kernels, and most captures, tell times in whole microseconds
PERIODS = 10  # of ``RUN`` packets: in fewer, one stall of a host matters too much
NEARLY = 0.9  # of the intervals
LARGER = "the capacity may be larger"
OTHERS = "if it carries other traffic, which the trace does not hold"
OVERFLOWS = 0.1  # of the lost packets; by chance, fewer are lost when the queue is longest
LATE = 0.01  # of a rate; less may be idle time at the ends of busy periods
LEAST_OF_BASE = "smallest RTT seen; more than the base if the queue never emptied"


@dataclass(frozen=True)
class Estimate:
    """An estimated value with its unit, and a text on how it was estimated (``how``).

    ``low`` to ``high`` is a range of plausible values, often from the lower to the upper quartile
    of the values in the trace.  If ``value`` is only a lower bound, ``high`` is infinite.
    """

    value: float
    low: float
    high: float
    unit: str
    how: str


@dataclass(frozen=True)
class Estimates:
    """Estimates from a trace, for the bottleneck and for each flow.

    ``capacity`` and ``buffer`` are those of the bottleneck, or ``None`` if unknown.  ``loss`` is
    the probability that a packet is lost at random, or ``None`` if the trace shows no such losses.
    ``rtt``, ``base_rtt`` and ``alpha`` map names of flows to estimates, and leave out the flows
    whose value is unknown.  The function ``estimate`` explains these four.
    """

    capacity: Estimate | None
    buffer: Estimate | None
    rtt: Mapping[str, Estimate]
    base_rtt: Mapping[str, Estimate]
    alpha: Mapping[str, Estimate]
    loss: Estimate | None = None

    def to_json(self) -> dict[str, object]:
        """The estimates as plain Python types, which can be written as JSON."""
        return dataclasses.asdict(self)


@kinds.checked
def estimate(
    trace: Trace, over_base: Collection[str] | None = None, capacity_pps: float | None = None
) -> Estimates:
    """Estimate capacity, buffer, losses, RTTs with empty queues, baseRTTs and alphas.

    - ``rtt`` is a flow's round-trip time with an empty queue.  All flows are assumed to share one
      queue.
    - ``base_rtt`` is the flow's smallest RTT in the trace.  A Vegas source does not know ``rtt``
      and uses its own smallest RTT instead.
    - ``alpha`` is the backlog that the flow keeps in the second half of its life, in packets.
    - ``loss`` is the part of all packets that was lost.  It is estimated only if most of them were
      lost while the queue was not full, as RTTs (``full_queue``) or lengths of the queue show.

    The backlog of a flow with window W is W (RTT - baseRTT) / RTT.  For the flows that
    ``over_base`` names, it is W (RTT - baseRTT) / baseRTT, as in the Vegas of Linux.  By default
    ``over_base`` has all flows if the trace's engine is ``linux``, and none otherwise.

    If the bottleneck's capacity is known, ``capacity_pps`` is it, in pkt/s.  It is then used where
    a delay is converted to packets.

    Flows whose RTTs the trace cannot tell apart have one and the same ``rtt`` (``_as_one``).

    The text ``how`` of each estimate says how it was found.  The estimates have these limits:

    - If the bottleneck was seldom busy, the estimated capacity is too low.  If RTTs show this, the
      capacity's ``high`` is infinite.
    - If the trace shows no packet that was lost when the queue was longest, the true buffer may be
      larger than estimated, and the buffer's ``high`` is infinite.  The same holds if the trace has
      no queue lengths, because the buffer is then computed from RTTs, whose largest value the trace
      may not have.
    - If the queue never emptied, the estimated ``rtt`` is too long.

    If a flow has little to send (``activity.idle_flows``), its RTTs are used only for its own
    ``rtt`` and ``base_rtt``.
    """
    bases = {name: base for name, base in zip(trace.flows, _bases(trace), strict=True) if base}
    capacity = _capacity(trace)
    if capacity_pps is not None:
        capacity = Estimate(capacity_pps, capacity_pps, capacity_pps, "pkt/s", "known")
    if capacity is not None and not capacity.value > 0:
        capacity = None
    idle = idle_flows(trace)  # their RTTs may be old or of another path
    busy = {name: base for name, base in bases.items() if name not in idle}
    if capacity is not None and capacity_pps is None and _bottleneck(trace) is None:
        capacity = _while_queued(trace, capacity, busy)
        capacity = capacity if capacity.value > 0 else None
    packet = 1.0 / capacity.value if capacity else np.inf
    rtts = bases | _as_one(_rtts(trace, busy, NEAR * packet), packet)
    if over_base is None:
        stack = STACKS.get(trace.engine)
        over_base = trace.flows if stack is not None and stack.backlog_over_base else ()
    alphas = _alphas(trace, bases, over_base)
    buffer, random = _buffer(trace, capacity, busy)
    loss = _loss(trace, random) if random else None
    return Estimates(capacity, buffer, rtts, bases, alphas, loss)


def _bottleneck(trace: Trace) -> int | None:
    """The index of the bottleneck, which is taken to be the link with the longest mean queue.

    The result is ``None`` if the trace shows no packet waiting at any link.
    """
    queue = trace.known("queue")
    if queue is None or not np.nanmax(queue, initial=0.0) > 0:
        return None
    means = mean_over_time(queue, np.diff(trace.edges))
    return int(np.nanargmax(means))


def _capacity(trace: Trace) -> Estimate | None:
    lengths = np.diff(trace.edges)
    link, served = _bottleneck(trace), trace.known("served")
    if link is not None and served is not None:
        found = _of_link(trace, link, served[:, link])
        if found is not None:
            return found
    known_rates = delivered_by_all(trace)
    if known_rates is None:
        return None
    total, whole = known_rates
    keep = whole.copy()
    keep[whole] = sending(total[whole], lengths[whole])
    rates = blocks(total[keep], lengths[keep])
    if not rates.max(initial=0.0) > 0:
        return None
    middle, value = np.quantile(rates, [0.5, 0.9])
    how = f"largest throughput of all flows together; {LARGER} if the link idles, or {OTHERS}"
    return Estimate(float(value), float(middle), float(rates.max()), "pkt/s", how)


def _of_link(trace: Trace, link: int, rate: Floats) -> Estimate | None:
    """The capacity of a link by the packets sent into it, ``rate`` per second in each interval."""
    lengths, queue, known = np.diff(trace.edges), trace.known("queue"), ~np.isnan(rate)
    counts, name = np.nan_to_num(rate) * lengths, trace.links[link]
    busy = known & (np.nan_to_num(queue[:, link]) >= 1 if queue is not None else lengths > 0)
    packets, seconds = busy_periods(busy, counts, lengths)
    most, long = 0.0, np.median((rate * lengths)[known]) > RUN
    if _only_these_flows(trace, float(counts.sum())):
        most = most_in_any_time(counts, lengths, _starts(trace))
    if packets.size and long:
        # such a long interval may contain idle times, even if its mean queue is long
        rates = blocks(rate[known], lengths[known], finest=len(lengths))
        middle, largest = float(np.median(rates)), max(float(rates.max()), most)
        usual = float(np.median((counts[busy] + 1.0) / lengths[busy]))
        # a full link sends as much in most of them, and in no time more
        if not most or usual >= largest * (1 - LATE):
            how = f"most packets sent into link {name} in an interval"
            return Estimate(largest, middle, largest, "pkt/s", how)
        packets = packets[:0]
    mean = float(packets.sum() / seconds.sum()) if packets.size else 0.0
    if most > mean * (1 + LATE):  # most intervals were partly idle
        how = f"most packets sent into link {name} in any time: a lower bound"
        return Estimate(most, most, np.inf, "pkt/s", how)
    if not packets.size:
        return None
    low, high = np.quantile(packets / seconds, [0.25, 0.75])
    edge = packets.size / packets.sum()
    low, high = min(low, mean * (1 - edge)), max(high, mean * (1 + edge))
    how = f"packets sent into link {name} while at least one waits"
    return Estimate(mean, float(low), float(high), "pkt/s", how)


def _starts(trace: Trace) -> Floats:
    """When each flow starts, and the end of the interval of its first delivery: [flow, 2].

    The times are in s from the trace's begin: 0 and infinite where they are unknown.
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
    """Whether a link that has sent so many ``packets`` sends hardly any but those of the flows.

    Other packets, such as ACKs in the reverse direction, may be small.  Then the number of packets
    per second says little about the link's capacity.
    """
    delivered = packets_in_all(trace)
    return delivered is not None and packets <= float(np.nansum(delivered)) * (1 + 1 / RUN)


def _while_queued(trace: Trace, capacity: Estimate, bases: Mapping[str, Estimate]) -> Estimate:
    """The throughput of all flows while RTTs show that packets wait, if they do so for long enough.

    Unlike ``capacity``, which is estimated from throughputs alone, it leaves out the times in which
    the link may be idle.  The trace must tell RTTs, and in which times packets are lacking
    (``tells_recoveries``).  If not, ``capacity`` is returned.

    If RTTs vary for another reason than a queue, as on a radio link, they show a queue when there
    is none.  The throughput at these times is then less than at most times.  If so, or if the times
    are too short, the result is a lower bound, and says so (``_at_least``).

    RTTs that do not follow the queue do not tell these times.  But if they show in ``NEARLY`` all
    intervals that packets wait, the link was busy, and ``capacity`` is returned.  If not, the
    result is a lower bound, too.
    """
    least, known = trace.known("rtt_min"), delivered_by_all(trace)
    rtt = trace.known("rtt") if least is None else least
    if rtt is None or known is None or not tells_recoveries(trace, bases):
        return capacity
    total, whole = known
    lengths, waits = np.diff(trace.edges), rtt - _of_flows(trace, bases)
    waits = carried(trace, waits, capacity.value)
    lacks, how = recovering(trace, waits), "throughput of all flows together"
    if least is None or not follows_the_queue(trace):
        empty = ~(np.fmin.reduce(waits, axis=1) * capacity.value >= 1.0)
        if np.sum(empty) <= max((1.0 - NEARLY) * empty.size, 1.0):  # one has the least RTT
            return capacity
        how += "; RTTs do not show a queue in nearly all intervals"
        return _at_least(trace, lacks, np.zeros((0, 2)), how)
    periods = {}
    for surely in (True, False):
        busy = queued(trace, waits, surely=surely) & whole
        periods[surely] = np.transpose(busy_periods(busy & ~lacks, total * lengths, lengths))
    packets, seconds = periods[True].T
    enough = PERIODS * RUN
    if packets.sum() >= enough:
        low, value, high = rate_of_periods(packets, seconds)
        edge = 1 + packets.size / packets.sum()  # an error of one packet in each busy period
        if high * (1 + 1 / RUN) >= capacity.low:
            how += f" while RTTs show a queue; {LARGER} {OTHERS}"
            return Estimate(value, min(low, value / edge), max(high, value * edge), "pkt/s", how)
        how += "; it is no larger while RTTs show a queue"
    elif busy_periods(busy, total * lengths, lengths)[0].sum() < enough:
        how += "; RTTs show a queue too seldom to tell more"
    elif periods[False].sum(axis=0)[0] < enough:
        how += "; packets are sent again too often to tell more"
    else:
        how += "; RTTs show a queue for too short times to tell more"
    return _at_least(trace, lacks, periods[False], how)


def _at_least(trace: Trace, lacks: NDArray[np.bool_], periods: Floats, how: str) -> Estimate:
    """A lower bound of the capacity by the throughput of all flows together.

    ``lacks`` says in which intervals a flow may lack a lost packet.  ``periods`` are the numbers of
    packets, and the durations, s, of times in which packets may have waited: [period, 2].
    """
    total, whole = delivered_by_all(trace) or (np.zeros(lacks.size), np.ones(lacks.size, bool))
    lengths, less = np.diff(trace.edges), _unacknowledged(trace)
    clean = whole & ~lacks & (total > 0)
    clean = clean & np.append(clean[1:], False)  # few packets wait for an ACK at such an end
    keep = whole.copy()
    keep[whole] = sending(total[whole], lengths[whole])
    keep |= whole & lacks
    rates = least_rates(total[keep], lengths[keep], clean[keep], less)
    value = max(float(np.quantile(rates, 0.9)), 0.0)
    if periods[:, 0].sum() >= PERIODS * RUN:
        value = max(value, rate_of_periods(periods[:, 0] - less, periods[:, 1])[1])
    return Estimate(value, value, np.inf, "pkt/s", f"{how}: a lower bound")


def _unacknowledged(trace: Trace) -> float:
    """How many packets may have left the link beyond those counted, if none was lost.

    In a time T a link of capacity C sends at most C T + 1 packets of one size.  A receiver that
    delays its ACKs may have received packets that it has not acknowledged.
    """
    per_ack = trace.known("packets_per_ack")
    most = np.full(len(trace.flows), 2.0) if per_ack is None else np.nan_to_num(per_ack, nan=2.0)
    return 1.0 + float(np.sum(np.maximum(most - 1.0, 1.0)))


def _bases(trace: Trace) -> list[Estimate | None]:
    """Each flow's smallest RTT; ``None`` if the trace has no RTT of the flow.

    It is the smallest value of the variables ``base_rtt`` (the source's own baseRTT) and
    ``rtt_min`` (the smallest RTT in an interval).  If the trace has neither for this flow, it is
    the smallest value of ``rtt``, the mean RTT in an interval.  ``rtt`` is the last choice, because
    in a kernel's trace it is the smoothed RTT.  Its first value is the RTT of the SYN, which is
    shorter than that of a data packet.

    ``low`` to ``high`` are the RTTs without queueing that agree with the smallest one seen.
    ``_least`` computes them.
    """
    result: list[Estimate | None] = []
    for i in range(len(trace.flows)):
        own = np.unique(_samples(trace, i, "base_rtt"))  # a running minimum
        seen = _samples(trace, i, "rtt_min")
        if not (own.size or seen.size):
            seen = _samples(trace, i, "rtt")
        result.append(_least(own, seen) if own.size or seen.size else None)
    return result


def _least(own: Floats, seen: Floats) -> Estimate:
    """Estimate a flow's RTT without queueing by the smallest RTT seen.

    ``own`` are the values of the source's own baseRTT, in increasing order, and ``seen`` are RTTs
    at different times.  One of the two may be empty.

    The true value may be smaller, because a packet waits a little even if the queue is empty, for
    example in the hosts. If the RTTs are a sample with the smallest values x1 < x2, the smallest
    possible value is above x1 - 19 (x2 - x1) with a probability of 95 %, for any distribution whose
    density is above 0 at its smallest possible value (Robson and Whitlock, Biometrika 51, 1964).
    This also holds if x1 and x2 are the last two values of a running minimum. The clock's
    resolution widens the range by 1 microsecond on both sides.
    """
    sample = np.sort(seen) if seen.size else own
    least = float(min(sample[0], own[0] if own.size else np.inf))
    others = sample[int(sample[0] == least) :]
    gap = float(others[0]) - least if others.size else 0.0
    low = max(least - TRUNCATION * gap - CLOCK, 0.0)
    return Estimate(least, low, least + CLOCK, "s", LEAST_OF_BASE)


def _samples(trace: Trace, flow: int, name: str) -> Floats:
    """All known values of a variable of a flow, such as ``rtt``."""
    given = trace.known(name)
    found = np.zeros(0) if given is None else given[:, flow]
    finite: Floats = found[np.isfinite(found)]
    return finite


def _rtts(trace: Trace, bases: Mapping[str, Estimate], near: float) -> dict[str, Estimate]:
    """Estimate each flow's RTT with an empty queue, for flows that share one queue.

    The RTT of flow i at time t is d_i + q(t).  Here d_i is its RTT with an empty queue, and q(t) is
    the queueing delay, which is the same for all flows.  So the difference between the RTTs of two
    flows at the same time is the difference between their d_i.

    If a flow never meets an empty queue, its smallest RTT (``bases``) is longer than d_i.  For the
    flow that met the shortest queue, the smallest RTT is taken as d_i.  The d_i of another flow is
    this d_i plus the median difference between the RTTs of the two flows.

    Such a d_i replaces the flow's smallest RTT only if it is shorter by more than ``near`` seconds,
    and by more than half the distance between the quartiles of the differences.  A smaller gap
    means little, because two flows in one burst may meet queues that differ by a packet or two.
    """
    least_rtt = trace.known("rtt_min")
    rtt = trace.known("rtt") if least_rtt is None else least_rtt
    names = [name for name in trace.flows if name in bases]
    if rtt is None or len(names) < 2:
        return dict(bases)
    series = {name: rtt[:, trace.flows.index(name)] for name in names}
    longest = max(names, key=lambda name: np.isfinite(series[name]).sum())
    emptiest, least = longest, bases[longest].value
    for name in names:
        more = _difference(series[name], series[longest])
        if more is not None and bases[name].value - more[1] < least:
            emptiest, least = name, bases[name].value - more[1]
    result = dict(bases)
    for name in names:
        more = _difference(series[name], series[emptiest])
        if more is None or name == emptiest:
            continue
        low, middle, high = bases[emptiest].value + more
        if middle + max((high - low) / 2, near) < bases[name].value and low > 0:
            how = f"RTT beyond that of {emptiest}, which saw the shorter queue, plus its least RTT"
            result[name] = Estimate(float(middle), float(low), float(high), "s", how)
    return result


def _as_one(found: Mapping[str, Estimate], packet: float) -> dict[str, Estimate]:
    """Give one RTT to flows whose RTTs the trace does not tell apart.

    ``found`` are the estimated RTTs of the flows.  Those of two flows become one if two conditions
    hold.  First, the ranges of the estimates have a value in common, so the difference may be
    chance.  Second, the estimates differ by at most ``packet``, the time in which the bottleneck
    sends one packet, s.  So the difference is at most one packet of a window.

    The common RTT is the smallest estimate, or, if that is outside of some flow's range, the
    nearest value within all ranges.
    """
    result = dict(found)
    left = sorted(found, key=lambda name: found[name].value)
    while left:
        first = found[left[0]]
        most = first.value + packet
        alike = [n for n in left if found[n].low <= first.high and found[n].value <= most]
        if len(alike) > 1:
            low = max(found[name].low for name in alike)
            value = max(first.value, low)
            high = max(min(found[name].high for name in alike), value)
            how = f"one RTT for {len(alike)} flows, as the trace does not tell theirs apart: the "
            one = Estimate(value, low, high, "s", how + LEAST_OF_BASE)
            result |= dict.fromkeys(alike, one)
        taken = set(alike)
        left = [name for name in left if name not in taken]
    return result


def _difference(one: Floats, other: Floats) -> Floats | None:
    """Lower quartile, median and upper quartile of the difference between two flows' RTTs, s.

    ``one`` and ``other`` have the RTTs of the two flows at the same times.  The result is ``None``
    if there is no time at which both are known.
    """
    more = (one - other)[np.isfinite(one - other)]
    return np.quantile(more, [0.25, 0.5, 0.75]) if more.size else None


@kinds.checked
def first_windows(trace: Trace) -> dict[str, float]:
    """The first congestion window, packets, of each flow for which the trace shows it.

    Before a source has measured an RTT, no ACK has changed its window.  So only the intervals
    before a flow's first RTT are used.  The result is the first window in these intervals that is
    at least one packet, rounded down.  A flow without such a window, or without any RTT, is left
    out.  If the trace has packets in flight in place of windows, the result is empty.
    """
    window, rtt = trace.known("window"), trace.known("rtt")
    if window is None or rtt is None or "in flight" in trace.provenance.get("window", ""):
        return {}
    result = {}
    for i, name in enumerate(trace.flows):
        before = np.logical_and.accumulate(np.isnan(rtt[:, i])) & (window[:, i] >= 1)
        if before.any() and not np.isnan(rtt[:, i]).all():
            result[name] = float(np.floor(window[np.argmax(before), i]))
    return result


@kinds.checked
def lost_packets(trace: Trace) -> bool | None:
    """Whether a packet was lost or retransmitted; ``None`` if the trace does not tell.

    The result is ``None`` if the trace shows no such packet, and for some flow it records neither
    losses nor retransmissions.
    """
    found = [trace.known(name) for name in ("loss", "retransmits")]
    counts = [values for values in found if values is not None]
    if any(np.nansum(values) > 0 for values in counts):
        return True
    told = [np.isfinite(values).any(axis=0) for values in counts]
    return False if told and bool(np.any(told, axis=0).all()) else None


BOUNDS = {
    True: "the queue overflowed",
    False: "nothing was lost: a lower bound",
    None: "the trace does not tell whether packets were lost: a lower bound",
}


def _buffer(
    trace: Trace, capacity: Estimate | None, bases: Mapping[str, Estimate]
) -> tuple[Estimate | None, int]:
    """The buffer, and the number of losses if most came while the queue was not full, else 0."""
    overflowed, again = lost_packets(trace), trace.known("retransmits")
    bound = BOUNDS[overflowed]
    link, largest = _bottleneck(trace), trace.known("queue_max")
    if link is not None and largest is not None and np.isfinite(largest[:, link]).any():
        return _of_lengths(trace, link, overflowed)
    rtt = trace.known("rtt")
    if rtt is None or capacity is None or not bases:
        return None, 0
    clean = "none across retransmissions" in trace.provenance.get("rtt", "")  # a capture's RTTs
    if again is not None and not clean:  # ACKs of packets behind a lost one are delayed
        rtt = np.where(again > 0, np.nan, rtt)
    waits = carried(trace, rtt - _of_flows(trace, bases), capacity.value)
    wait, how, random = longest_wait(trace, waits)
    if not wait > 0:
        return None, random
    most = wait * capacity.value
    if overflowed:  # a mean or a sample can miss the longest queue of its interval
        bound = "packets were lost, but an interval's RTT is not its largest: a lower bound"
    how = f"({how} - base RTT) capacity; {bound}"
    return Estimate(most, most, np.inf, "pkt", how), random


def _of_lengths(trace: Trace, link: int, lost: bool | None) -> tuple[Estimate, int]:
    """The buffer of a link by the longest queue in each interval, and the number of random losses.

    ``lost`` says whether any packet was lost.  The buffer is known if packets were dropped because
    the queue was full (``_overflowed``).  Otherwise the queue may never have overflowed.

    A loss is random if no link had its longest queue then.  Other links with queues of ``NEAR``
    packets at most do not count, nor does a queue that did not overflow.  The number is 0 unless
    most intervals with losses have random ones, and 0 for fewer than ``FEW`` losses.
    """
    largest, dropped = trace.get("queue_max"), trace.known("loss")
    largest = np.nan_to_num(np.zeros((1, 1)) if largest is None else largest)
    tops = largest.max(axis=0)
    top, bound, random, full = float(tops[link]), BOUNDS[lost], 0, lost
    drops = np.zeros(0) if dropped is None else np.nansum(dropped, axis=1)
    if lost and drops.sum() > 0:
        longest = largest >= tops
        served = trace.known("served")
        packets = np.diff(trace.edges)
        packets = packets if served is None else np.nan_to_num(served[:, link]) * packets
        told = _overflowed(longest[:, link], drops, packets)
        full = bool(told)
        counted = tops > NEAR
        counted[link] = full  # also a buffer of few packets
        short = ~np.any(longest[:, counted], axis=1)
        if drops.sum() >= FEW and np.mean(short[drops > 0]) > 0.5 and told is not None:
            random = round(float(drops[short].sum()))
        if told is None:
            bound = "packets were lost, but so many waited nearly always: a lower bound"
        elif not full:
            bound = "packets were lost while fewer waited: a lower bound"
    high = top if full else np.inf
    return Estimate(top, top, high, "pkt", f"most packets that waited; {bound}"), random


def _overflowed(longest: NDArray[np.bool_], drops: Floats, packets: Floats) -> bool | None:
    """Whether packets were dropped because the queue was full; ``None`` if this cannot be told.

    The arguments have one value per interval: whether the queue had its ``longest`` length, and the
    numbers of ``drops`` and of all ``packets``.

    The queue was full if at least the part ``OVERFLOWS`` of the drops were at the longest length,
    and by two standard deviations more than chance explains, that is, more than their part of all
    packets.  If the queue has this length nearly always, even all drops are not so many.  If most
    drops were at shorter lengths, the longest length must have come twice: a full queue always has
    the same length, but the peaks of a RED queue differ.
    """
    number, at_longest = float(drops.sum()), float(drops[longest].sum())
    part = float(packets[longest].sum() / packets.sum()) if packets.sum() > 0 else 1.0
    chance = number * part + 2.0 * math.sqrt(number * part * (1.0 - part))
    if number <= chance:
        return None
    enough = at_longest >= OVERFLOWS * number and at_longest > chance
    times = np.count_nonzero(np.diff(longest, prepend=False) & longest)
    return bool(enough and (2 * at_longest >= number or times > 1))


def _loss(trace: Trace, losses: int) -> Estimate | None:
    """The probability that a packet is lost at random, if there were so many ``losses``.

    The range is two standard deviations of the number of losses, if they are independent.
    """
    delivered = packets_in_all(trace)
    packets = 0.0 if delivered is None else float(np.nansum(delivered))
    if not packets > 0:
        return None
    sent = packets + losses
    low, high = ((losses + side * 2 * math.sqrt(losses)) / sent for side in (-1, 1))
    how = "losses per packet sent; most came, at random or by RED, while the queue was not full"
    return Estimate(losses / sent, max(low, 0.0), min(high, 1.0), "", how)


def _of_flows(trace: Trace, bases: Mapping[str, Estimate]) -> Floats:
    """The smallest RTT of each flow of the trace, s; NaN for flows that ``bases`` lacks."""
    return np.array([bases[name].value if name in bases else np.nan for name in trace.flows])


def _alphas(
    trace: Trace, bases: Mapping[str, Estimate], over_base: Collection[str]
) -> dict[str, Estimate]:
    """Estimate the median backlog, packets, of each flow in the second half of its life.

    The backlog of a flow with window W is W (RTT - baseRTT) / RTT.  Vegas keeps it between its
    parameters alpha and beta (equation (1) of Boutremans and Le Boudec).  For the flows that
    ``over_base`` names, the divisor is baseRTT, as in the Vegas of Linux.

    The baseRTT is the source's own value if the trace has one.  Otherwise it is the flow's smallest
    RTT, from ``bases``.
    """
    window, rtt, own = trace.known("window"), trace.known("rtt"), trace.known("base_rtt")
    if window is None or rtt is None:
        return {}
    times = trace.data["time"].values
    result = {}
    for i, name in enumerate(trace.flows):
        known = np.isfinite(window[:, i]) & np.isfinite(rtt[:, i]) & (rtt[:, i] > 0)
        if name not in bases or not known.any():
            continue
        known &= times >= np.median(times[known])
        base = np.full(len(times), bases[name].value)
        if own is not None:
            base = np.where(np.isfinite(own[:, i]), own[:, i], base)
        over = base if name in over_base else rtt[:, i]
        known &= over > 0
        if not known.any():
            continue
        backlog = (window[:, i] * np.maximum(rtt[:, i] - base, 0.0))[known] / over[known]
        low, middle, high = np.quantile(backlog, [0.25, 0.5, 0.75])
        how = "W (RTT - baseRTT) / baseRTT" if name in over_base else "W (RTT - baseRTT) / RTT"
        how += ", second half; between alpha and beta if the source is Vegas"
        if "minrtt" in trace.provenance.get("base_rtt", ""):  # not Vegas's own baseRTT
            how += "; up to a packet too high if minrtt is the RTT of the SYN, which is small"
        result[name] = Estimate(float(middle), float(low), float(high), "pkt", how)
    return result
