"""Estimates from a trace the values that a scenario file needs.

These are the bottleneck's capacity and buffer, and each flow's RTT, baseRTT and alpha. The backlog
that the flow keeps is the estimate of alpha.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats
from vegasmodel.packets.activity import idle_flows
from vegasmodel.packets.buffer import buffer_of, loss_of
from vegasmodel.packets.capacity import bottleneck, capacity_of, while_queued
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.sizes import in_largest
from vegasmodel.packets.trace import Trace
from vegasmodel.stacks import STACKS

__all__ = ["Estimate", "Estimates", "estimate", "first_windows"]

QUEUE_DIFFERENCE = 2  # packets: in one burst, the queues that two flows meet may differ by so much
TRUNCATION = 19  # 0.95 / 0.05: factor on the distance of the two smallest RTTs (``_smallest_rtt``)
# packets; the quartiles of a Vegas source's backlog are no farther apart
MAX_QUARTILE_DISTANCE = 4.0
CLOCK_STEP = 1e-6  # s: kernels, and most captures, tell times in whole microseconds
# ``how`` of an RTT that is the smallest seen, or the smallest mean of several packets
LEAST_OF_BASE = "smallest RTT seen; more than the base if the queue never emptied"
LEAST_OF_MEANS = (
    "smallest mean or smoothed RTT; the trace has no RTTs of single packets, so the base may be "
    "much less"
)


@dataclass(frozen=True)
class Estimates:
    """Estimates from a trace, for the bottleneck and for each flow.

    ``capacity`` and ``buffer`` are those of the bottleneck, or ``None`` if unknown. ``loss`` is the
    probability that a packet is lost at random, or ``None`` if the trace shows no such losses.
    ``rtt``, ``base_rtt`` and ``alpha`` map names of flows to estimates, and leave out the flows
    whose value is unknown. The function ``estimate`` explains ``loss`` and the estimates for flows.
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
    - ``loss`` is the part of all packets that was lost.  It is estimated only if most losses were
      random: RTTs (``full_queue``) or lengths of the queue show that the queue was not full.

    The backlog of a flow with window W is W (RTT - baseRTT) / RTT.  For the flows that
    ``over_base`` names, it is W (RTT - baseRTT) / baseRTT, as in the Vegas of Linux.  By default
    ``over_base`` has all flows if the trace's engine is ``linux``, and none otherwise.

    ``capacity_pps`` is the bottleneck's capacity in pkt/s, if it is known.  It is then used, in
    place of an estimate, where a delay is converted to packets.

    Flows whose RTTs the trace cannot tell apart have one and the same ``rtt`` (``_as_one``).

    The text ``how`` of each estimate says how it was found.  The estimates have these limits:

    - If the bottleneck was seldom busy, the estimated capacity is too low.  Unless RTTs or lengths
      of the queue show when packets waited, the capacity's ``high`` is infinite.
    - If the trace shows no packet that was lost when the queue was longest, the true buffer may be
      larger than estimated, and the buffer's ``high`` is infinite.  The same holds if the trace has
      no queue lengths, because the buffer is then computed from RTTs, whose largest value the trace
      may not have.
    - If the queue never emptied, the estimated ``rtt`` is too long.

    If a flow has little to send (``activity.idle_flows``), its RTTs are used only for its own
    ``rtt`` and ``base_rtt``.
    """
    bases = {
        name: base for name, base in zip(trace.flows, _smallest_rtts(trace), strict=True) if base
    }
    capacity = capacity_of(trace)
    if capacity_pps is not None:
        capacity = Estimate(capacity_pps, capacity_pps, capacity_pps, "pkt/s", "known")
    if capacity is not None and not capacity.value > 0:
        capacity = None
    # an idle flow has few RTTs, which may be old, and its packets may take another path
    idle = idle_flows(trace)
    busy = {name: base for name, base in bases.items() if name not in idle}
    if capacity is not None and capacity_pps is None and bottleneck(trace) is None:
        capacity = while_queued(trace, capacity, busy)
        capacity = capacity if capacity.value > 0 else None
    packet = 1.0 / capacity.value if capacity else np.inf
    rtts = bases | _as_one(_rtts(trace, busy, QUEUE_DIFFERENCE * packet), packet)
    if over_base is None:
        stack = STACKS.get(trace.engine)
        over_base = trace.flows if stack is not None and stack.backlog_over_base else ()
    alphas = _alphas(trace, bases, over_base)
    buffer, random = buffer_of(trace, capacity, {name: rtts[name] for name in busy})
    loss = loss_of(trace, random) if random else None
    return Estimates(capacity, buffer, rtts, bases, alphas, loss)


def capacity_by_bytes(trace: Trace, sizes: Floats) -> tuple[float, float]:
    """The link's capacity by the bytes that the flows deliver (``in_largest``).

    ``sizes`` are the sizes of the flows' packets, in any unit, [flow]. The result is the low end of
    the capacity's range and its estimate, in this unit per second. Both are 0 if the trace does not
    tell the bytes.
    """
    large, delivered = in_largest(trace, sizes), trace.known("throughput")
    found = None if large is None else estimate(large).capacity
    if found is None or delivered is None:
        return 0.0, 0.0
    largest = float(np.max(sizes[np.nansum(delivered, axis=0) > 0]))
    return largest * found.low, largest * found.value


def _smallest_rtts(trace: Trace) -> list[Estimate | None]:
    """Each flow's smallest RTT; ``None`` if the trace has no RTT of the flow.

    It is the smallest value of the variables ``base_rtt`` (the source's own baseRTT) and
    ``rtt_min`` (the smallest RTT in an interval).  If the trace has neither for this flow, it is
    the smallest value of ``rtt``, the mean RTT in an interval.  ``rtt`` is the last choice, because
    in a kernel's trace it is the smoothed RTT.  The first smoothed RTT is that of the SYN, which is
    shorter than that of a data packet.

    The range of an estimate, ``low`` to ``high``, has all RTTs without queueing that are possible
    beside the smallest RTT seen (``_smallest_rtt``). The range of a mean begins at 0: all packets
    of an interval may have waited, and the mean does not tell how long the shortest wait was.
    """
    result: list[Estimate | None] = []
    for i in range(len(trace.flows)):
        own_base_rtts = np.unique(_samples(trace, i, "base_rtt"))  # a running minimum
        rtts_seen, means = _samples(trace, i, "rtt_min"), _samples(trace, i, "rtt")
        if own_base_rtts.size or rtts_seen.size:
            result.append(_smallest_rtt(own_base_rtts, rtts_seen))
        elif means.size:
            least = float(means.min())
            result.append(Estimate(least, 0.0, least + CLOCK_STEP, "s", LEAST_OF_MEANS))
        else:
            result.append(None)
    return result


def _smallest_rtt(own_base_rtts: Floats, rtts_seen: Floats) -> Estimate:
    """Estimate a flow's RTT without queueing by the smallest RTT seen.

    ``own_base_rtts`` are the values of the source's own baseRTT, in increasing order, and
    ``rtts_seen`` are RTTs at different times.  One of the two may be empty.

    The true value may be smaller, because a packet waits a little even if the queue is empty, for
    example in the hosts. Let x1 < x2 be the smallest values in a sample of RTTs. With a probability
    of 95 %, the smallest possible RTT is above x1 - 19 (x2 - x1). This holds for any distribution
    whose density is above 0 at its smallest possible value (Robson and Whitlock, Biometrika 51,
    1964). It also holds if x1 and x2 are the last two values of a running minimum. The clock's
    resolution widens the range by 1 microsecond on both sides.
    """
    sample = np.sort(rtts_seen) if rtts_seen.size else own_base_rtts
    least = float(min(sample[0], own_base_rtts[0] if own_base_rtts.size else np.inf))
    # the second smallest RTT is sought among these; if ``least`` is one of them, it is left out
    others = sample[int(sample[0] == least) :]
    gap = float(others[0]) - least if others.size else 0.0
    low = max(least - TRUNCATION * gap - CLOCK_STEP, 0.0)
    return Estimate(least, low, least + CLOCK_STEP, "s", LEAST_OF_BASE)


def _samples(trace: Trace, flow: int, name: str) -> Floats:
    """All known values of a variable of a flow, such as ``rtt``."""
    given = trace.known(name)
    found = np.zeros(0) if given is None else given[:, flow]
    finite: Floats = found[np.isfinite(found)]
    return finite


def _rtts(trace: Trace, bases: Mapping[str, Estimate], negligible: float) -> dict[str, Estimate]:
    """Estimate each flow's RTT with an empty queue, for flows that share one queue.

    The RTT of flow i at time t is d_i + q(t).  Here d_i is its RTT with an empty queue, and q(t) is
    the queueing delay, which is the same for all flows.  So the difference between the RTTs of two
    flows at the same time is the difference between their d_i.

    If a flow never meets an empty queue, its smallest RTT (``bases``) is longer than d_i.  Let flow
    k be the one that met the shortest queue.  Its smallest RTT is taken as d_k.  For any other flow
    i, d_k plus the median difference between the RTTs of the flows i and k is an estimate of d_i.

    This estimate replaces the smallest RTT of flow i only if it is clearly shorter: by more than
    ``negligible`` seconds, and by more than half the distance between the quartiles of the
    differences. A smaller gap means little, because two flows in one burst may meet queues that
    differ by a packet or two. If one of them always comes later in the burst, or has fewer RTTs in
    each interval, the median is shifted by as much. So the range of the estimate is that between
    the quartiles, and ``negligible`` more on both sides. Its lower end is also lower by as much as
    d_k may be below the smallest RTT of flow k. And d_i is at most the smallest RTT seen.
    """
    least_rtt = trace.known("rtt_min")
    rtt = trace.known("rtt") if least_rtt is None else least_rtt
    names = [name for name in trace.flows if name in bases]
    if rtt is None or len(names) < 2:
        return dict(bases)
    series = {name: rtt[:, trace.flows.index(name)] for name in names}
    # Find flow k, the ``emptiest``. For this, each flow's smallest RTT is converted to an RTT of
    # the flow that has RTTs at the most times, by the median difference of their RTTs.
    reference = max(names, key=lambda name: np.isfinite(series[name]).sum())
    emptiest, least = reference, bases[reference].value
    for name in names:
        difference = _difference(series[name], series[reference])
        if difference is not None and bases[name].value - difference[1] < least:
            emptiest, least = name, bases[name].value - difference[1]
    # estimate the other flows' RTTs from that of flow k
    result = dict(bases)
    for name in names:
        difference = _difference(series[name], series[emptiest])
        if difference is None or name == emptiest:
            continue
        low, middle, high = bases[emptiest].value + difference
        if middle + max((high - low) / 2, negligible) < bases[name].value and low > 0:
            how = f"RTT beyond that of {emptiest}, which saw the shorter queue, plus its least RTT"
            least_possible = max(bases[emptiest].low + float(difference[0]) - negligible, 0.0)
            most_possible = min(float(high) + negligible, bases[name].high)
            result[name] = Estimate(float(middle), least_possible, most_possible, "s", how)
    return result


def _as_one(found: Mapping[str, Estimate], packet: float) -> dict[str, Estimate]:
    """Give one RTT to flows whose RTTs the trace does not tell apart.

    ``found`` are the estimated RTTs of the flows, each with a range from ``low`` to ``high``. The
    flows are tested in the order of their estimates. One RTT is given to the flow with the smallest
    estimate, and to each other flow that meets two conditions:

    - Its range has a value in common with the ranges of the flows that have got this RTT so far. So
      the differences of the estimates may be chance.
    - Its estimate is at most ``packet`` seconds above the smallest one. In this time the bottleneck
      sends one packet, so the difference changes a window by at most one packet.

    Their common RTT is the smallest estimate, or the greatest ``low`` of their ranges if that
    is larger. So it lies in the range of each of them. The true RTTs of the flows may differ. So
    the range of the common RTT holds the ranges of all these flows.

    The function then does the same with the remaining flows, until none remains.
    """
    result = dict(found)
    remaining = sorted(found, key=lambda name: found[name].value)
    while remaining:
        first = found[remaining[0]]
        # only flows with estimates up to this one can get the same RTT
        largest_estimate = first.value + packet
        not_told_apart, low, high = [], first.low, first.high
        for name in remaining:
            each = found[name]
            if each.value <= largest_estimate and max(low, each.low) <= min(high, each.high):
                not_told_apart.append(name)
                low, high = max(low, each.low), min(high, each.high)
        if len(not_told_apart) > 1:
            value = max(first.value, low)
            means = any(found[name].how == LEAST_OF_MEANS for name in not_told_apart)
            how = (
                f"one RTT for {len(not_told_apart)} flows, as the trace does not tell theirs "
                f"apart: the {LEAST_OF_MEANS if means else LEAST_OF_BASE}"
            )
            least = min(found[name].low for name in not_told_apart)
            most = max(found[name].high for name in not_told_apart)
            result |= dict.fromkeys(not_told_apart, Estimate(value, least, most, "s", how))
        taken = set(not_told_apart)
        remaining = [name for name in remaining if name not in taken]
    return result


def _difference(one: Floats, other: Floats) -> Floats | None:
    """Lower quartile, median and upper quartile of the difference between two flows' RTTs, s.

    ``one`` and ``other`` have the RTTs of the two flows at the same times.  The result is ``None``
    if there is no time at which both are known.
    """
    difference = (one - other)[np.isfinite(one - other)]
    return np.quantile(difference, [0.25, 0.5, 0.75]) if difference.size else None


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


def _alphas(
    trace: Trace, bases: Mapping[str, Estimate], over_base: Collection[str]
) -> dict[str, Estimate]:
    """Estimate the median backlog, packets, of each flow in the second half of its life.

    The backlog of a flow with window W is W (RTT - baseRTT) / RTT.  Vegas keeps it between its
    parameters alpha and beta (equation (1) of Boutremans and Le Boudec).  For the flows that
    ``over_base`` names, the divisor is baseRTT, as in the Vegas of Linux.

    The baseRTT is the source's own value if the trace has one.  Otherwise it is the flow's smallest
    RTT, from ``bases``.

    The window of a Vegas source at rest varies by about two packets to either side
    (``engines/fluid/late_decisions.py``).  If the lower and the upper quartile of the backlog
    differ by more than ``MAX_QUARTILE_DISTANCE``, the source may not be Vegas, and the text ``how``
    says so. But it may still be Vegas, if loss-based flows fill the queue and empty it again.

    After a loss, or in a timeout, the window of a Vegas source may be too small for a backlog of
    alpha.  So ``how`` also says if the flow lost packets in the second half of its life.
    """
    window, rtt, own_base_rtts = trace.known("window"), trace.known("rtt"), trace.known("base_rtt")
    if window is None or rtt is None:
        return {}
    result = {}
    for i, name in enumerate(trace.flows):
        known = _second_half(trace, i)
        if name not in bases or not known.any():
            continue
        base = np.full(known.size, bases[name].value)
        if own_base_rtts is not None:
            base = np.where(np.isfinite(own_base_rtts[:, i]), own_base_rtts[:, i], base)
        over = base if name in over_base else rtt[:, i]
        known &= over > 0
        if not known.any():
            continue
        backlog = (window[:, i] * np.maximum(rtt[:, i] - base, 0.0))[known] / over[known]
        low, middle, high = np.quantile(backlog, [0.25, 0.5, 0.75])
        how = "W (RTT - baseRTT) / baseRTT" if name in over_base else "W (RTT - baseRTT) / RTT"
        # losses may keep the backlog below alpha
        at_most = "" if lost_later(trace, name) else "alpha is at most this backlog, and "
        how += f", second half; if the source is Vegas, {at_most}beta is at least this backlog; "
        how += "beside flows that fill the queue it is near beta, and alpha may be far lower"
        how += _doubts(trace, i, float(low), float(high))
        result[name] = Estimate(float(middle), float(low), float(high), "pkt", how)
    return result


def _second_half(trace: Trace, i: int) -> NDArray[np.bool_]:
    """The intervals in the second half of the life of flow ``i`` with a known window and RTT."""
    window, rtt = trace.known("window"), trace.known("rtt")
    if window is None or rtt is None:
        return np.zeros(trace.data["time"].size, dtype=bool)
    known: NDArray[np.bool_] = np.isfinite(window[:, i]) & np.isfinite(rtt[:, i]) & (rtt[:, i] > 0)
    times = trace.data["time"].values
    return known & (times >= np.median(times[known])) if known.any() else known


def lost_later(trace: Trace, name: str) -> bool:
    """Whether a flow lost packets in the second half of its life, from which alpha is estimated.

    A loss or a timeout makes a window smaller than alpha and beta would, so alpha may then be above
    the backlog that the flow keeps.
    """
    i = trace.flows.index(name)
    known = _second_half(trace, i)
    later = np.arange(known.size) >= (np.argmax(known) if known.any() else known.size)
    counts = (trace.known("loss"), trace.known("retransmits"))
    return sum(float(np.nansum(each[later, i])) for each in counts if each is not None) > 0


def at_least_window(trace: Trace, name: str, least: float) -> bool:
    """Whether a flow's window was small for a quarter of the second half of the flow's life.

    Small means by less than a packet above ``least``, the least window of the flow's TCP. Vegas
    cannot make such a window a packet smaller, so the backlog may be above beta.
    """
    i = trace.flows.index(name)
    window, known = trace.known("window"), _second_half(trace, i)
    if window is None or not known.any():
        return False
    return bool(np.quantile(window[known, i], 0.25) < least + 1.0)


def _doubts(trace: Trace, i: int, low: float, high: float) -> str:
    """A text on what makes the estimated backlog of flow ``i`` doubtful; empty if nothing does.

    ``low`` and ``high`` are the quartiles of the backlog, packets.
    """
    how = ""
    if high - low > MAX_QUARTILE_DISTANCE:
        how += f"; doubtful, because a quarter of its values are below {low:.3g} pkt and a "
        how += f"quarter above {high:.3g}: Vegas at rest varies less, so the source may run "
        how += "another law, or other flows fill and empty the queue"
    if lost_later(trace, trace.flows[i]):
        how += "; doubtful, because the flow lost packets then, and each loss or timeout makes "
        how += "its window smaller than alpha and beta would, so alpha may be larger, too"
    if "minrtt" in trace.provenance.get("base_rtt", ""):  # not Vegas's own baseRTT
        how += "; up to a packet too high if minrtt is the RTT of the SYN, which is small"
    return how
