"""Tests how a user's own law moves its window once it has reached the mean state of a run.

The window may move far up and down, because senders learn RTTs late, or it may still grow.

An ACK tells its sender how long its packet waited in the queue, a round trip after it was sent. If
a law answers a short queue by a much larger window, the queue is long a round trip later. Then the
law makes the window small again, and so on. How the packets of a round trip follow one another then
decides how many packets the link sends. The equations of the simulator ``fluid`` know this only
roughly.

The test asks the law itself, for one round trip after the other. Let W_i(k) be the window of flow i
in round trip k, and s(k) the queueing delay that the windows cause. The windows of users' laws move
by

    W_i(k + 1) = W_i(k) + m_i(W_i(k), T_i + s(k - 1)),
    sum_i W_i(k)/(T_i + s(k)) = c,   or s(k) = 0 if the sum is below c at s(k) = 0.

Here m_i is the law's ``drift``, T_i the flow's RTT with empty queues, and c the capacity. All other
windows keep their means. By how much a window swings up and down depends on the whole function m_i,
not only on its slope at an equilibrium. So the test computes many round trips.

If the windows move away from the mean state of the run, although no packet is lost, this is not the
steady state: the averages of a longer run would differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.adapters import warm_up
from vegasmodel.adapters.own_laws import own_source
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.laws.law import ask, ask_all
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.scenario.placement import room

ROUND_TRIPS = 40  # that the test of swings computes
MOST_CALLS = 2000  # calls of laws in the test for a steady state; then it ends
SMALL_SWING = 0.1  # part of a window: smaller swings matter little
PUSH = 1.0  # packets by which the test moves each window at first
DELAY_ERROR = 1e-9  # relative error of a queueing delay at which Newton's method stops
LEAST_WINDOW = 1.0  # packets
AT_REST = 1e-9  # relative change in a round trip: smaller ones change no window by a tenth


def delay_of(windows: Floats, rtt: Floats, c: float, longest: float) -> float:
    """The queueing delay s, in s, at which windows of ``windows`` [n] packets fill the link.

    It solves sum_i W_i/(T_i + s) = c, with the RTTs T_i = ``rtt`` [n] in s of empty queues, and the
    capacity ``c`` in pkt/s. It is 0 if the sum is below c at s = 0, and at most ``longest``, in s.
    The sum is convex in s, so Newton's method from s = 0 never goes too far.
    """
    s = 0.0
    while True:
        rates = windows / (rtt + s)
        excess = float(rates.sum()) - c
        if excess <= 0.0 or s >= longest:
            return min(s, longest)
        step = excess / float((rates / (rtt + s)).sum())
        if step <= DELAY_ERROR * (s + float(rtt.min())):
            return s
        s += step


class Moves(NamedTuple):
    """How users' laws move windows in a round trip, on average; the windows of other laws rest."""

    window: Floats  # [flow] mean window of the run, packets
    later: Floats  # [flow] mean window in the last round trips of the test, packets
    up: Floats  # [flow] sum of all moves up, packets per round trip
    down: Floats  # [flow] sum of all moves down, packets per round trip

    @property
    def swings(self) -> Floats:
        """The part of the moves that other moves take back, packets per round trip, [flow].

        It is 0 for a window that only grows until a packet is lost.
        """
        return 2.0 * np.minimum(self.up, self.down)


def moves(
    scenario: Scenario,
    windows: Floats,
    base_rtt: Floats,
    kept: Floats | None = None,
    trips: int = ROUND_TRIPS,
) -> Moves:
    """How users' laws move windows in the second half of ``trips`` round trips.

    At first the windows are ``windows`` [n] packets, but ``PUSH`` packets more for a user's law:
    without this push, a window could stay at an equilibrium that is not stable. ``base_rtt`` [n]
    are the baseRTTs, s. ``kept`` [n, number] are the numbers that the laws keep at first; with None
    they are those of a law's start. No window exceeds what the link and its buffer hold, nor the
    receiver's window. The computation ends early if nothing moves any more. Raises ``FieldError``
    if a function of a law fails.
    """
    link, members = scenario.links[0], scenario.members
    user_laws = {law.name: law for law in scenario.own_laws}
    own = {i: user_laws[m.flow.law] for i, m in enumerate(members) if m.flow.law in user_laws}
    numbers = {
        i: law.first if kept is None else tuple(kept[i, : len(law.state)]) for i, law in own.items()
    }
    rtt = np.array([member.rtt for member in members])
    longest = room(scenario, link, "forward") / link.capacity  # the delay of a full buffer, s
    most = np.maximum(link.capacity * (rtt + longest), LEAST_WINDOW)
    most = np.minimum(most, [member.flow.max_window for member in members])
    W = np.array(windows, dtype=np.float64)
    s = delay_of(W, rtt, link.capacity, longest)  # as the ACKs of a round trip report it
    W[list(own)] += PUSH
    n = trips // 2  # round trips that count
    up, down, total = np.zeros(W.size), np.zeros(W.size), np.zeros(W.size)
    for k in range(trips):
        later = delay_of(W, rtt, link.capacity, longest)
        before, kept_before = W.copy(), dict(numbers)
        for i, law in own.items():
            base = float(base_rtt[i])
            seen = max(float(rtt[i]) + s, base)
            sender = own_source(scenario, i, float(W[i]), seen, base, numbers[i])
            if law.update is not None:
                numbers[i] = ask_all(law, "update", sender)
                sender = own_source(scenario, i, float(W[i]), seen, base, numbers[i])
            W[i] = min(max(W[i] + ask(law, "drift", sender), LEAST_WINDOW), most[i])
        if np.allclose([*W, later], [*before, s], AT_REST, 0.0) and numbers == kept_before:
            total += min(trips - k, n) * W  # in these round trips nothing would move
            break
        if k >= trips - n:
            total += W
            up += np.maximum(W - before, 0.0)
            down += np.maximum(before - W, 0.0)
        s = later
    return Moves(np.array(windows), total / n, up / n, down / n)


def moves_of_run(
    scenario: Scenario,
    throughput: Floats | None,
    rtt_mean: Floats | None,
    base_rtt: Floats | None,
    kept: Floats | None,
    trips: int = ROUND_TRIPS,
) -> Moves | None:
    """How users' laws move windows that begin at the means of a run.

    ``throughput`` [flow] is in pkt/s, ``rtt_mean`` and ``base_rtt`` [flow] are in s, and ``kept``
    [flow, number] are the numbers that the laws keep. ``trips`` is the number of round trips that
    are computed. The result is None in these cases:

    - no flow has a user's law, or no flow sends;
    - there are several links, flows in both directions, or flows with access links: then a flow's
      RTT may have several queues;
    - the delay of a path varies at random: then a law answers more than the queue;
    - a law fails for one of the states; a simulation may never meet this state.
    """
    one_queue = len(scenario.links) == 1 and len({f.direction for f in scenario.flows}) == 1
    if any(group.access is not None or group.delay_noise > 0.0 for group in scenario.flows):
        return None
    if not (scenario.own_laws and one_queue) or throughput is None or rtt_mean is None:
        return None
    windows = np.nan_to_num(np.asarray(throughput) * np.asarray(rtt_mean))
    if not windows.any():
        return None
    base = np.array([member.rtt for member in scenario.members])
    if base_rtt is not None:
        base = np.where(np.asarray(base_rtt) > 0.0, base_rtt, base)
    try:
        return moves(scenario, windows, base, kept, trips)
    except FieldError:
        return None


def swings_little(scenario: Scenario, found: Moves | None) -> list[Assumption]:
    """The assumption of ``fluid`` that user-defined laws hardly move their windows up and down.

    It fails if a flow's ``Moves.swings`` exceeds the part ``SMALL_SWING`` of its mean window. If
    Vegas flows share the link, it also fails if the swings exceed beta packets: Vegas cannot keep
    alpha to beta packets in a queue that varies by more. Without ``found`` nothing is tested. The
    list is empty if no flow has a user-defined law.
    """
    user_laws = {law.name for law in scenario.own_laws}
    if not user_laws:
        return []
    betas = [group.beta for group in scenario.flows if group.keeps_backlog]
    wide = []
    if found is not None:
        wide = [
            f"{member.name} by {moved:.3g} packets of {window:.3g}"
            for member, moved, window in zip(
                scenario.members, found.swings, found.window, strict=True
            )
            if window > 0.0 and moved > min([SMALL_SWING * window, *betas])
        ]
    detail = (
        "the law learns of the queue a round trip late, so in each round trip it moves the window "
        f"up or down: {few(wide, clauses=True)}; the equations know only roughly how many packets "
        "the link then sends; rounds simulates this"
    )
    return [Assumption("own-law-swings-little", not wide, detail if wide else "")]


def settles(
    scenario: Scenario,
    throughput: Floats | None,
    rtt_mean: Floats | None,
    base_rtt: Floats | None,
    kept: Floats | None,
    lost: bool,
) -> Assumption:
    """The simulators' assumption that windows reach the steady state within the warm-up.

    ``warm_up.settles`` tests it for the laws of the package. If it does not fail there, it is
    tested here for users' laws, if all flows have such laws and send all the time after the
    warm-up, and no packet is ``lost`` in this time. Then only the laws move the windows. In a
    steady state they stay about their means. The test lets the laws move the windows for as many
    round trips as the run would have after the warm-up with empty queues, from ``ROUND_TRIPS`` to
    ``MOST_CALLS`` divided by the number of flows. They begin at the means. The assumption fails if
    the mean of a window over the second half of these round trips differs from the run's mean by
    more than the part ``SMALL_SWING``, and by more than ``PUSH`` packets. ``moves_of_run`` explains
    the other arguments.
    """
    found = warm_up.settles(scenario)
    user_laws = [law.name for law in scenario.own_laws]
    others = any(group.law not in user_laws for group in scenario.flows)
    all_long_lived = all(group.long_lived for group in scenario.flows)
    some_pause = not all_long_lived or bool((active_part(scenario) < 1.0).any())
    if found.holds is False or lost or others or some_pause:
        return found
    run, members = scenario.run, scenario.members
    trips = (run.duration - run.warmup) / min(member.rtt for member in members)
    trips = max(min(trips, MOST_CALLS / len(members)), ROUND_TRIPS)
    moved = moves_of_run(scenario, throughput, rtt_mean, base_rtt, kept, int(trips))
    if moved is None:
        return found
    for member, window, later in zip(members, moved.window, moved.later, strict=True):
        if window > 0.0 and abs(later - window) > max(SMALL_SWING * window, PUSH):
            detail = (
                f"no packet is lost, and from its mean of {window:.3g} packets the law of "
                f"{member.name} moves the window to {later:.3g}, so the window has not reached its "
                "steady state"
            )
            return Assumption(found.name, False, detail)
    return found
