"""Tests whether the thresholds of Vegas determine its window beside loss-based flows.

Vegas keeps its window while its backlog is from alpha to beta packets. Beside loss-based flows the
queue rises until packets are lost, and then falls. If the backlog of a Vegas flow is between alpha
and beta even at the fullest and at the emptiest queue, the thresholds never move its window. The
window then stays for ever where slow start has left it, and chance decides where this is.

The simulator ``fluid`` does not know the packets of slow start one by one. So where such a window
stays in ``fluid`` may be wrong even if the scenario leaves nothing to chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Scenario
from vegasmodel.scenario.placement import room, stack, work

NAME = "thresholds-reached"  # of the assumption
MARGIN = 1.0  # packets: a backlog that is nearer to a threshold may reach it at times
HALVINGS = 40  # of the interval that holds a queueing delay: 1e-12 of it is left
NOISE = (
    "not known: RTTs vary at random (delay_noise), so backlogs may reach alpha or beta by chance; "
    "without this, "
)


class Network(NamedTuple):
    """What decides the queueing delays: the link, and the paths and senders of the flows."""

    capacity: float  # of the link, pkt/s
    room: float  # packets that can wait at the link
    rtt: Floats  # [flow] with empty queues, s
    size: Floats  # [flow] of a data packet, in units of ``Scenario.packet_size``
    access: Floats  # [flow] packets of this size that the flow's access link sends, 1/s
    decrease: Floats  # [flow] factor of the window at a loss
    over_base: np.ndarray  # [flow] the backlog is W (RTT - baseRTT)/baseRTT, as in Linux

    def round_trips(self, windows: Floats, s: float) -> Floats:
        """The RTT of each flow at the queueing delay ``s`` of the link, in s, [flow].

        It is T + s, but at least W/a, the time in which the flow's access link sends the W packets
        of its window at the rate a. If this time is longer, packets wait at the access link.
        """
        return np.maximum(self.rtt + s, windows / self.access)

    def longest_delay(self, windows: Floats) -> float:
        """The queueing delay of the full buffer, in s.

        A buffer is a number of packets of any size. So the mean size of the packets in it counts.
        The flows' packets are taken to be in it in proportion to ``windows``.
        """
        total = float(windows.sum())
        mean = float(windows @ self.size) / total if total > 0.0 else 1.0
        return self.room * mean / self.capacity

    def delay(self, windows: Floats, longest: float) -> float:
        """The queueing delay, in s, at which ``windows`` [flow] fill the link; at most ``longest``.

        With the packet sizes l_i and the RTTs R_i(s) of ``round_trips``, it solves
        sum_i l_i W_i/R_i(s) = capacity. It is 0 if the sum is below the capacity at s = 0.
        """

        def full(s: float) -> bool:
            sent = self.size @ (windows / self.round_trips(windows, s))
            return float(sent) > self.capacity

        if not full(0.0):
            return 0.0
        low, high = 0.0, longest
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if full(middle) else (low, middle)
        return high

    def delays(self, windows: Floats, loses: np.ndarray) -> tuple[float, float]:
        """The queueing delays at the emptiest and at the fullest queue, in s.

        ``windows`` [flow] are mean windows in packets, and ``loses`` [flow] says which flows are
        cut by losses. The fullest queue is the full buffer. The emptiest one is that after a loss
        of each such flow. A window that grows evenly from d W to W, where d is its factor at a
        loss, has the mean (1 + d) W/2. So after the loss it is 2 d/(1 + d) times its mean.
        """
        after = np.where(loses, windows * 2.0 * self.decrease / (1.0 + self.decrease), windows)
        fullest = self.longest_delay(windows)
        return self.delay(after, fullest), fullest

    def backlogs(
        self, windows: Floats, base_rtt: Floats, loses: np.ndarray
    ) -> tuple[Floats, Floats]:
        """Each flow's backlog, in packets, at the emptiest and at the fullest queue, two [flow].

        ``windows`` and ``loses`` are those of ``delays``, and ``base_rtt`` [flow] is in s. The
        backlog of a window W with the RTT R is W (R - baseRTT)/R, and in Linux
        W (R - baseRTT)/baseRTT.
        """
        least, most = (
            np.maximum(windows * (R - base_rtt) / np.where(self.over_base, base_rtt, R), 0.0)
            for R in (self.round_trips(windows, s) for s in self.delays(windows, loses))
        )
        return least, most


def network(scenario: Scenario) -> Network:
    """The only link of the scenario, and its flows, which all cross it in the same direction."""
    link, members = scenario.links[0], scenario.members
    size = np.array([work(scenario, member.flow) for member in members])
    return Network(
        capacity=link.capacity,
        room=room(scenario, link, scenario.flows[0].direction),
        rtt=np.array([member.rtt for member in members]),
        size=size,
        access=np.array([scenario.access_rate(member.flow) for member in members]) / size,
        decrease=np.array([member.flow.decrease for member in members]),
        over_base=np.array([stack(scenario, member.flow).backlog_over_base for member in members]),
    )


def rests_with_half(
    scenario: Scenario, windows: Floats, base_rtt: Floats, loses: np.ndarray
) -> Floats:
    """The largest window at which each flow rests, if half of it rests, too, in packets [flow].

    A window rests if Vegas's thresholds never move it: its ``Network.backlogs`` at the emptiest and
    at the fullest queue lie between them. Chance decides at which of many such windows a flow
    stays. The arguments are those of ``Network.backlogs``. The result is NaN for all other flows,
    also if the flow's window in ``windows`` does not rest.

    The window in ``windows`` rests if its backlogs are in the range ``Stack.dead_zone``. In ns-2
    and Linux this range is wider than from alpha to beta, because they round the backlog. But
    single packets decide whether another window rests whose backlog is in the wider range only. So
    the largest window and its half rest only if their backlogs are from alpha to beta.

    The largest window is the largest whole number of packets whose backlog at the fullest queue is
    at most beta. Half of it has a smaller backlog there, so only its backlog at the emptiest queue
    is tested. At an overflow, the sum of all windows is the same: if the Vegas window is smaller,
    the loss-based ones are larger, and when these are 0, it cannot be larger. Senders send whole
    packets, so the half is rounded down.
    """
    members, known = scenario.members, network(scenario)
    least, most = known.backlogs(windows, base_rtt, loses)
    # the windows of the flows that lose, at an overflow
    held = float((windows * 2.0 / (1.0 + known.decrease))[loses].sum())
    longest = known.rtt + known.longest_delay(windows)
    found = np.full(len(members), np.nan)
    for i, member in enumerate(members):
        implementation = stack(scenario, member.flow)
        low, high = implementation.dead_zone(member.flow.alpha, member.flow.beta)
        if not (member.flow.keeps_backlog and low <= least[i] and 0.0 < most[i] <= high):
            continue
        together = windows[i] + held
        W = np.arange(1.0, np.floor(together) + 1.0)
        R = np.maximum(longest[i], W / known.access[i])
        base = base_rtt[i] if known.over_base[i] else R
        largest = float(np.count_nonzero(W * (R - base_rtt[i]) / base <= member.flow.beta))
        half = np.floor(largest / 2.0)
        # if the loss-based flows starve all the time, they have no windows to be larger
        larger = (together - half) / held if held > 0.0 else 1.0
        others = np.where(loses, windows * larger, windows)
        others[i] = half
        smaller, _ = known.backlogs(others, base_rtt, loses)
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

    It fails if for a Vegas flow the smaller of ``Network.backlogs`` is above alpha and the larger
    one below beta, by more than ``MARGIN`` packets each. With ``half_too`` it also fails if the
    flow rests with half of its largest window at rest (``rests_with_half``), however near to a
    threshold its backlog is. It is tested only for flows over one drop-tail link, in one direction,
    of which a loss-based one loses packets. The test takes no account of ``delay_noise``, by which
    a backlog may reach a threshold, too. So if a flow has it, the assumption is not known to fail.
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
    least, most = network(scenario).backlogs(windows, base, loses)
    largest = np.full(len(members), np.nan)
    if half_too:
        largest = rests_with_half(scenario, windows, base, loses)
    resting = []
    for member, low, high, top in zip(members, least, most, largest, strict=True):
        flow, wide = member.flow, np.isfinite(top)  # ``wide``: it also rests with half of ``top``
        between = low > flow.alpha + MARGIN and high < flow.beta - MARGIN
        if not (wide or (flow.keeps_backlog and between)):
            continue
        text = f"{member.name}'s backlog stays between {low:.3g} and {high:.3g} packets (alpha "
        text += f"{flow.alpha:g}, beta {flow.beta:g})"
        if wide:
            text += f", and it would rest with any window from {top // 2:g} to {top:g} packets"
        resting.append(text)
    detail = (
        f"{few(resting, clauses=True)}; so the window stays where slow start or a rare loss has "
        "left it, and chance decides where this is"
    )
    if resting and any(group.delay_noise > 0.0 for group in scenario.flows):
        return Assumption(NAME, None, NOISE + detail)
    return Assumption(NAME, not resting, detail if resting else "")
