"""Tests whether the thresholds of Vegas determine its window beside loss-based flows.

Vegas keeps its window while its backlog is from alpha to beta packets. Beside loss-based flows the
queue rises until packets are lost, and then falls. If the backlog of a Vegas flow is between alpha
and beta even at the fullest and at the emptiest queue, the thresholds never move its window. The
window then stays for ever where slow start has left it, and chance decides where this is.

The simulator ``fluid`` does not know the packets of slow start one by one. So where such a window
stays in ``fluid`` may be wrong even if the scenario leaves nothing to chance.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters.own_loop import delay_of
from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Scenario
from vegasmodel.scenario.placement import room, stack

NAME = "thresholds-reached"  # of the assumption
MARGIN = 1.0  # packets: a backlog that is nearer to a threshold may reach it at times


def delays(scenario: Scenario, windows: Floats, loses: np.ndarray) -> tuple[float, float]:
    """The queueing delays at the emptiest and at the fullest queue, in s.

    ``windows`` [flow] are mean windows in packets, and ``loses`` [flow] says which flows are cut by
    losses. The fullest queue is the full buffer. The emptiest one is that after a loss of each such
    flow. A window that grows evenly from d W to W, where d is its factor at a loss, has the mean
    (1 + d) W/2. So after the loss it is 2 d/(1 + d) times its mean.
    """
    link, members = scenario.links[0], scenario.members
    rtt = np.array([member.rtt for member in members])
    decrease = np.array([member.flow.decrease for member in members])
    after = np.where(loses, windows * 2.0 * decrease / (1.0 + decrease), windows)
    fullest = room(scenario, link, "forward") / link.capacity
    return delay_of(after, rtt, link.capacity, fullest), fullest


def backlogs(
    scenario: Scenario, windows: Floats, base_rtt: Floats, loses: np.ndarray
) -> tuple[Floats, Floats]:
    """Each flow's backlog, in packets, at the emptiest and at the fullest queue, two arrays [flow].

    ``windows`` [flow] are mean windows in packets, ``base_rtt`` [flow] are in s, and ``loses``
    [flow] says which flows are cut by losses. The backlog of a window W at the queueing delay s is
    W (T + s - baseRTT)/(T + s), and in Linux W (T + s - baseRTT)/baseRTT.
    """
    members = scenario.members
    rtt = np.array([member.rtt for member in members])
    over_base = [stack(scenario, member.flow).backlog_over_base for member in members]
    emptiest, fullest = delays(scenario, windows, loses)
    least, most = (
        np.maximum(windows * (rtt + s - base_rtt) / np.where(over_base, base_rtt, rtt + s), 0.0)
        for s in (emptiest, fullest)
    )
    return least, most


def rests_with_half(
    scenario: Scenario, windows: Floats, base_rtt: Floats, loses: np.ndarray
) -> Floats:
    """The largest window at which each flow rests if it rests with half of it, too, packets [flow].

    It is NaN for other flows, and for those whose thresholds move the window of ``windows``: one of
    its ``backlogs`` is outside the range ``Stack.dead_zone``. The arguments are those of
    ``backlogs``. In ns-2 and Linux this range is wider than from alpha to beta, because they round
    the backlog. Single packets decide whether another window rests whose backlog is in the wider
    range only. So the two windows rest here only if their backlogs are from alpha to beta.

    At the fullest queue, the window W has the backlog W (T + s - baseRTT)/(T + s), so the largest
    window is that whose backlog there is beta. Half of it has half of this backlog, so only its
    backlog at the emptiest queue is tested. If a Vegas window is smaller, the loss-based ones are
    larger: at an overflow, the sum of all windows is the same. Senders send whole packets, so both
    windows are rounded down to whole numbers.
    """
    members = scenario.members
    decrease = np.array([member.flow.decrease for member in members])
    least, most = backlogs(scenario, windows, base_rtt, loses)
    held = float((windows * 2.0 / (1.0 + decrease))[loses].sum())  # by the others at an overflow
    found = np.full(len(members), np.nan)
    for i, member in enumerate(members):
        implementation = stack(scenario, member.flow)
        low, high = implementation.dead_zone(member.flow.alpha, member.flow.beta)
        if not (member.flow.keeps_backlog and low <= least[i] and 0.0 < most[i] <= high):
            continue
        together = windows[i] + held
        largest = np.floor(min(windows[i] * member.flow.beta / most[i], together))
        half = np.floor(largest / 2.0)
        # if the loss-based flows starve all the time, they have no windows to be larger
        larger = (together - half) / held if held > 0.0 else 1.0
        others = np.where(loses, windows * larger, windows)
        others[i] = half
        smaller, _ = backlogs(scenario, others, base_rtt, loses)
        if half >= implementation.least_window and smaller[i] >= member.flow.alpha:
            found[i] = largest
    return found


def reached(
    scenario: Scenario,
    throughput: Floats | None,
    rtt_mean: Floats | None,
    base_rtt: Floats | None,
    lost: Floats | None,
    *,
    half_too: bool = False,
) -> Assumption:
    """The simulators' assumption that Vegas flows reach alpha or beta beside loss-based flows.

    It fails if for a Vegas flow the smaller of the two ``backlogs`` is above alpha and the larger
    one below beta, by more than ``MARGIN`` packets each. With ``half_too`` it also fails if the
    flow rests with half of its largest window at rest (``rests_with_half``), however near to a
    threshold its backlog is. It is tested only for flows over one drop-tail link, in one direction,
    of which a loss-based one loses packets.
    ``throughput`` [flow] is in pkt/s, ``rtt_mean`` and ``base_rtt`` [flow] are in s. ``lost``
    [flow] is above 0 for flows that lose packets after the warm-up.
    """
    link, members = scenario.links[0], scenario.members
    one_queue = len(scenario.links) == 1 and len({f.direction for f in scenario.flows}) == 1
    known = throughput is not None and rtt_mean is not None and base_rtt is not None
    if not (one_queue and known and lost is not None and isinstance(link.queue, DropTail)):
        return Assumption(NAME, True)
    vegas = np.array([member.flow.keeps_backlog for member in members])
    loses = ~vegas & (np.nan_to_num(lost) > 0.0)
    if not (vegas.any() and loses.any()) or not np.isfinite(link.buffer):
        return Assumption(NAME, True)
    windows = np.nan_to_num(np.asarray(throughput) * np.asarray(rtt_mean))
    rtt = np.array([member.rtt for member in members])
    given = np.asarray(base_rtt, dtype=np.float64)
    base = np.where(given > 0.0, given, rtt)  # NaN: nothing was measured
    least, most = backlogs(scenario, windows, base, loses)
    largest = np.full(len(members), np.nan)
    if half_too:
        largest = rests_with_half(scenario, windows, base, loses)
    resting = [
        f"{member.name}'s backlog stays between {low:.3g} and {high:.3g} packets (alpha "
        f"{member.flow.alpha:g}, beta {member.flow.beta:g})"
        + (
            f", and it would rest with any window from {top // 2:g} to {top:g} packets"
            if wide
            else ""
        )
        for member, low, high, top, wide in zip(
            members, least, most, largest, np.isfinite(largest), strict=True
        )
        if wide
        or (
            member.flow.keeps_backlog
            and low > member.flow.alpha + MARGIN
            and high < member.flow.beta - MARGIN
        )
    ]
    detail = (
        f"{few(resting, clauses=True)}; so the window stays where slow start or a rare loss has "
        "left it, and chance decides where this is"
    )
    return Assumption(NAME, not resting, detail if resting else "")
