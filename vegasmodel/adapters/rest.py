"""Computes by how much baseRTTs exceed propagation delays if Vegas flows start one after another.

At the start of a flow there is a queueing delay. A flow that measures its baseRTT counts this delay
as a part of its propagation delay. The function ``follow`` computes the delay from the steady state
of the flows that started earlier.

Other functions test the assumptions that ``follow`` makes. For example, ``settled`` tests whether
the earlier flows have enough time to reach their steady state before the next flow starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.adapters.common import rtts
from vegasmodel.equilibrium import settling
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Flow, Member, Scenario
from vegasmodel.scenario.placement import first_window, room, stack
from vegasmodel.stacks import Stack

# packets: after a first window of at most so many, as in ns-2, the queue empties
SMALL_FIRST_WINDOW = 2.0
NOTABLE_CHANGE = 0.1  # of the mean rate: smaller changes of a rate do not count
Mask = NDArray[np.bool_]  # which flows, [n]


class SteadyState(NamedTuple):
    """The steady state that the flows would reach if no flow started after a certain time.

    Both arrays have one entry for each flow of the scenario.
    """

    windows: Floats  # [n] packets; 0 for flows that start after this time
    delays: Floats  # [n] queueing delay of the flow's path, s, whether it has started or not


# (which flows have started, over-estimates of all) -> rates of these flows, delays of all paths
Solve = Callable[[Mask, Floats], tuple[Floats, Floats]]


def starts(scenario: Scenario) -> Floats:
    """The time at which each flow starts, in s."""
    return np.array([member.start for member in scenario.members])


def measures(scenario: Scenario) -> Mask:
    """For each flow, whether it measures its baseRTT.

    For the other flows the scenario gives the over-estimate of baseRTT.
    """
    return np.array([m.flow.measures_base for m in scenario.members])


def given(scenario: Scenario) -> Floats:
    """Each flow's ``over_estimate`` of baseRTT, s; 0 where the scenario says ``"measured"``."""
    x = [m.flow.over_estimate for m in scenario.members]
    return np.array([0.0 if value == "measured" else float(value) for value in x])


def together(scenario: Scenario) -> Assumption:
    """The assumption ``queue-empties-at-start``, for flows that start at the same time.

    Let us call these flows newcomers. ``follow`` assumes that a newcomer measures only the queueing
    delay that earlier flows cause. So at some time a packet of the newcomer must find no packets of
    other newcomers in the queue.

    - If the first windows of the newcomers have more packets than a link sends in their shortest
      round trip (``_crowded``), the queue is not yet empty when the first ACKs bring the next
      packets. Slow start doubles windows, so from then on the queue grows.
    - Slow start of ns-2 sends few packets at first, so the queue is empty at times in the first
      round trips. With a larger first window the queue may stay filled, but only if the RTTs
      differ. Then it is not known whether the assumption holds.
    - Linux's first window is 10 packets, and its slow start ends only when it has filled the queue.
      From then on the queue is never empty. If the newcomers have the same RTT, only one of them
      measures its true baseRTT. Each of the others finds first windows of other newcomers in the
      queue. If the RTTs differ, bursts of some newcomers usually fill the queue when packets of
      the others arrive. This affects mostly the newcomers with longer RTTs.

    The assumption is tested only if all flows keep a backlog, as Vegas does. Otherwise it counts as
    met.
    """
    name = "queue-empties-at-start"
    if not all(group.keeps_backlog for group in scenario.flows):
        return Assumption(name, True)
    bursts = any(first_window(scenario, group) > SMALL_FIRST_WINDOW for group in scenario.flows)
    # Linux's Vegas decides on the least RTT of a round, so its slow start fills the queue first
    fills = any(stack(scenario, group).least_of_round for group in scenario.flows)
    measured, when = measures(scenario), starts(scenario)
    moments, counts = np.unique(when, return_counts=True)
    for moment in moments[counts > 1]:
        newcomers = np.flatnonzero(when == moment)
        if not measured[newcomers].any():  # the scenario gives the baseRTTs of all newcomers
            continue
        if crowded := _crowded(scenario, [scenario.members[i] for i in newcomers]):
            return Assumption(name, False, crowded)
        if fills:
            detail = (
                "flows start together with bursts, and their slow start fills the queue; so some "
            )
            detail += "measure a baseRTT that is too large, and get more"
            return Assumption(name, False, detail)
        if bursts and np.ptp(rtts(scenario)[newcomers]) > 0.0:
            detail = (
                "flows of different RTTs start together; the bursts of one's slow start may keep"
            )
            detail += " the queue filled, and the others then measure a baseRTT that is too large"
            return Assumption(name, None, detail)
    return Assumption(name, True)


def _crowded(scenario: Scenario, newcomers: list[Member]) -> str:
    """A text on a link that sends the first windows of ``newcomers`` too slowly; "" if none.

    The ``newcomers`` are flows that start together. A link sends too slowly if it needs longer for
    all their first windows than the shortest round trip of those that cross it.
    """
    across: dict[tuple[str, str], list[Member]] = {}
    for member in newcomers:
        for link in scenario.path(member.flow):
            across.setdefault((link.name, member.flow.direction), []).append(member)
    for link in scenario.links:
        for direction in ("forward", "reverse"):
            crossing = across.get((link.name, direction), [])
            first = math.fsum(first_window(scenario, member.flow) for member in crossing)
            sent = link.capacity * min((member.rtt for member in crossing), default=math.inf)
            if len(crossing) > 1 and first > sent:
                return (
                    f"the first windows of {len(crossing)} flows that start together have "
                    f"{first:g} packets, and {link.name} sends {sent:.3g} in a round trip; so the "
                    "flows keep the queue filled, measure baseRTTs that are too large, and keep "
                    "more packets queued"
                )
    return ""


def follow(
    scenario: Scenario, solve: Solve, shorter_by: Floats | float = 0.0
) -> tuple[Floats, list[SteadyState]]:
    """The over-estimates of all flows' baseRTTs, and the steady state after each starting time.

    If a flow measures its baseRTT, its over-estimate is the queueing delay just before it starts,
    caused by the flows that started earlier. For all other flows the scenario gives the
    over-estimate.

    The function ``solve`` computes a steady state. Its arguments are which flows have started, and
    the over-estimates. ``shorter_by`` (s, one number or [n]) is subtracted from each measured
    over-estimate, but the difference is at least 0. A test that asks what happens if each flow
    finds one packet less in the queue, for example, sets ``shorter_by`` to 1/capacity.

    Returns the over-estimates [n] in s, and one ``SteadyState`` per starting time.
    """
    over_estimates, measuring = given(scenario), measures(scenario)
    when, rtt = starts(scenario), rtts(scenario)
    states: list[SteadyState] = []
    for moment in np.unique(when):
        if states:  # the over-estimates of the flows that start now and measure their baseRTTs
            new = measuring & (when == moment)
            over_estimates[new] = np.maximum(states[-1].delays - shorter_by, 0.0)[new]
        started = when <= moment
        rates, delays = solve(started, over_estimates)
        windows = np.zeros(over_estimates.size)
        windows[started] = rates * (rtt + delays)[started]
        states.append(SteadyState(windows, delays))
    return over_estimates, states


def dips(scenario: Scenario, solve: Solve, x: Floats) -> Floats:
    """By how much the least queueing delay that a flow found is below the steady state's, s, [n].

    The steady state is that of the flows that started earlier. In a simulation the queue varies
    about it, and a flow takes the least RTT for its baseRTT. So its over-estimate of baseRTT is the
    least queueing delay that it found. ``x`` [n] are these over-estimates; the earlier flows have
    them in the steady state, too. The result is 0 for flows that do not measure their baseRTTs, and
    for those that found a longer delay. ``solve`` computes a steady state, as for ``follow``.
    """
    when, measuring, shorter_by = starts(scenario), measures(scenario), np.zeros(x.size)
    delays: Floats = np.zeros(x.size)  # of the steady state before the flows ``new`` start
    for moment in np.unique(when):
        new = measuring & (when == moment)
        shorter_by[new] = np.maximum(delays - x, 0.0)[new]
        _, delays = solve(when <= moment, x)
    return shorter_by


def many_packets(
    scenario: Scenario,
    solve: Solve,
    c: Floats,
    rates: Floats,
    shorter_by: Floats | float = 0.0,
    waves: Floats | float = 0.0,
) -> Assumption:
    """The assumption that a few packets more or less in the queue hardly change the rates.

    The baseRTT of a flow is the least RTT that it measures. In the equations it is the mean RTT of
    the steady state at the flow's start. But a queue of whole packets varies, most of all if
    senders wait at random before they send.

    The test shortens the queueing delay that a flow finds at its start by ``shorter_by`` plus
    root(waves^2 + 1/c^2), for each flow that measures its baseRTT. The assumption fails if this
    changes some flow's rate by more than ``NOTABLE_CHANGE`` of the mean rate. The terms are:

    - ``shorter_by`` (s, [n]): a known difference between the mean delay and the delay that a flow
      finds. ``rates`` contain it already. In the simulator ``fluid``, trains of packets cause it.
    - 1/c (s): one packet. ``c`` [n] is the capacity of the slowest link on each flow's path, pkt/s.
    - ``waves`` (s, [n]): other variation of the queue, independent of that packet, so the squares
      are added. The caller says what causes it (``only_vegas.many_packets``).

    ``rates`` [n] are the flows' rates, pkt/s. ``solve`` computes a steady state, as for ``follow``.
    """
    change_of_delay = np.hypot(1.0 / c, waves)
    _, states = follow(scenario, solve, shorter_by + change_of_delay)
    last = states[-1]  # after all flows have started, as for ``rates``
    with np.errstate(invalid="ignore"):
        changed = last.windows / (rtts(scenario) + last.delays)
        change = np.abs(changed - rates) / rates.mean()
    if not np.isfinite(change).all():
        return Assumption("many-packets-queued", None, "these flows have no steady state")
    worst = int(np.argmax(change))
    holds = bool(change[worst] <= NOTABLE_CHANGE)
    packets_less = float((change_of_delay * c).max())
    packets = f"up to {packets_less:.2g} packets less" if np.any(waves) else "one packet less"
    name, would_get = scenario.members[worst].name, changed[worst]
    detail = (
        f"with {packets} in the queue that each late flow finds, {name} would get "
        f"{would_get:.4g} pkt/s, not {rates[worst]:.4g}"
    )
    return Assumption("many-packets-queued", holds, "" if holds else detail)


def settled(
    scenario: Scenario, states: list[SteadyState], backlog: Floats, c: Floats
) -> Assumption:
    """The assumption that each steady state is reached in time.

    When a flow that measures its baseRTT starts, the earlier flows must have reached a steady
    state. After the last start, the steady state must be reached before the averages begin
    (``warmup``).

    ``backlog`` [n] is the number of packets that each flow keeps queued. ``c`` [n] is the capacity
    of the slowest link on each flow's path, pkt/s. ``states`` holds the steady state after each
    starting time.
    """
    rtt, when, measuring = rtts(scenario), starts(scenario), measures(scenario)
    # the time at which the windows have come to rest, s, and the windows then
    at_rest, windows_before = -np.inf, np.zeros(rtt.size)
    for i, (moment, state) in enumerate(zip(np.unique(when), states, strict=True)):
        if at_rest > moment and np.any(measuring & (when == moment)):
            return _late(at_rest, f"the next start is at {moment:.4g} s")
        # ``time_needed``: the time in which the windows come to rest after this start, s
        trips, started = rtt + state.delays, when <= moment
        windows = state.windows[started]
        if i:
            time_needed = settling.later(windows_before[started], windows, trips[started])
        elif started.sum() == 1:
            after_slow_start = _windows_after_slow_start(scenario, state.windows - backlog)
            time_needed = settling.alone(
                windows, trips[started], backlog[started], after_slow_start[started]
            )
        else:
            time_needed = settling.together(windows, trips[started], c[started])
        at_rest, windows_before = max(at_rest, moment) + time_needed, state.windows
    if at_rest > scenario.run.warmup:
        return _late(at_rest, f"the averages begin at {scenario.run.warmup:.4g} s")
    return Assumption("settles-in-time", True)


def skips_slow_start(flow: Flow, implementation: Stack) -> bool:
    """Whether a flow with this TCP implementation starts without slow start.

    In ns-2 a Vegas flow does so if the scenario gives its over-estimate of baseRTT. It then
    measures its baseRTT before it starts, by a few packets alone in the empty network (a probe).
    """
    return implementation.probes_base and not flow.measures_base


def slow_start_ends(flow: Flow, implementation: Stack, bandwidth_delay: float) -> float:
    """The least window, packets, that Vegas may have after slow start if it is alone on its path.

    Slow start ends because the backlog exceeds gamma. The result is infinite if slow start ends
    only when the link is full. ``bandwidth_delay`` is the bandwidth-delay product of the
    flow's path, packets. ``implementation`` is the flow's TCP implementation.
    """
    # Linux takes the least RTT of a round trip; until the link is full, the first packet of each
    # burst finds an empty queue, so the backlog is 0
    if implementation.least_of_round:
        return math.inf
    gamma = np.array([flow.gamma + 0.5])  # the backlog is rounded to a whole number of packets
    return float(settling.slow_start_ends(gamma, np.array([max(bandwidth_delay, 0.0)]))[0])


def _windows_after_slow_start(scenario: Scenario, bandwidth_delay: Floats) -> Floats:
    """A lower bound of each flow's window after its slow start, packets, if it starts alone.

    It is infinite if slow start ends only when the link is full. ``bandwidth_delay`` [n] is the
    bandwidth-delay product of each flow's path in packets.
    """

    def after_slow_start(member: Member, product: float) -> float:
        """The lower bound for one flow, whose bandwidth-delay product is ``product`` packets."""
        flow, implementation = member.flow, stack(scenario, member.flow)
        if skips_slow_start(flow, implementation):
            return implementation.least_window
        buffer = min(room(scenario, link, flow.direction) for link in scenario.path(flow))
        by_backlog = slow_start_ends(flow, implementation, product)  # if no packet is lost before
        # Does a loss end slow start? The last doubling may carry the window to twice
        # ``by_backlog``. If the window reaches ``product`` before, the link is full. So the bursts
        # of slow start may grow to the smaller of the two. They arrive twice as fast as the link
        # sends, so half of a burst must wait. If the buffer cannot hold this half, packets are
        # lost.
        largest_burst = min(product, 2.0 * by_backlog)
        if buffer < 0.5 * largest_burst:
            return implementation.least_window  # after several losses and a timeout
        return by_backlog

    pairs = zip(scenario.members, bandwidth_delay.tolist(), strict=True)
    return np.array([after_slow_start(member, product) for member, product in pairs])


def fits(
    scenario: Scenario, x: Floats, states: list[SteadyState] | None, backlog: Floats, queue: float
) -> Assumption:
    """The assumption that the buffer never overflows, neither in a steady state nor before it.

    Flows may start at different times. ``states`` holds the steady state after each starting time,
    and ``queue`` is the number of packets that wait in the last of these states. The assumption
    fails if the buffer cannot hold them. Before a steady state is reached, the queue may be longer,
    and only an upper bound of its length is known. If this bound exceeds the buffer, or is not
    computed because ``states`` is ``None``, it is not known whether the assumption holds.

    ``backlog`` [n] is the greatest backlog of each flow, in packets. ``x`` [n] holds the
    over-estimates of baseRTT, s.
    """
    name, link = "infinite-buffer", scenario.links[0]
    buffer_room = room(scenario, link, scenario.flows[0].direction)
    if buffer_room == math.inf:
        return Assumption(name, True)
    if queue > buffer_room:
        detail = f"the equations give a queue of {queue:.4g} pkt; the buffer holds {buffer_room:g}"
        return Assumption(name, False, detail)
    if states is None:
        return Assumption(name, None, "not computed for so many arrivals")
    rtt, when, c, longest = rtts(scenario), starts(scenario), link.capacity, 0.0
    for i, moment in enumerate(np.unique(when)):
        new, old = when == moment, when < moment
        if i:
            windows = states[i - 1].windows[old]
            delay = settling.peak(windows, rtt[old], c, (backlog[new], x[new]))
        else:
            delay = settling.first_peak(backlog[new], rtt[new], c)
        longest = max(longest, c * delay)  # the bound of the queue's length, packets
    if longest <= buffer_room:
        return Assumption(name, True)
    detail = f"before earlier flows shrink their windows the queue may reach {longest:.4g} pkt; "
    return Assumption(name, None, f"{detail}the buffer holds {buffer_room:g}")


def _late(at_rest: float, what: str) -> Assumption:
    """The assumption that windows rest in time, which fails; ``at_rest`` is when they do, s.

    ``what`` is a text on what happens before that time.
    """
    detail = (
        f"at a packet a round trip windows may need until {at_rest:.4g} s to come to rest; {what}"
    )
    return Assumption("settles-in-time", False, detail)
