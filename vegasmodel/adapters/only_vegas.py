"""Holds functions for the models of a link on which all flows are Vegas.

For example, ``over_estimates`` computes by how much each flow over-estimates its propagation delay.
A flow does so if packets are queued while it measures its baseRTT.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import rest, waits
from vegasmodel.adapters.common import (
    MIDDLE,
    column,
    laws_within,
    left_out,
    one_link,
    plain_queue,
    rtts,
)
from vegasmodel.equilibrium import arrivals as arrival_order
from vegasmodel.equilibrium import secular
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import by_start
from vegasmodel.stacks import STACKS, dead_zone
from vegasmodel.status import Status

MAX_ORDER = 10_000  # flows whose arrivals are followed one by one: time grows with their square


def failure(status: int) -> str:
    """A text for a model without a result: how the solver of the steady state has ended."""
    return f"the solver of the steady state has no answer: {Status(int(status)).reason}"


def over_estimates(
    scenario: Scenario, alpha: Floats
) -> tuple[Floats, list[rest.SteadyState] | None]:
    """Over-estimates of the baseRTTs [n], s, and the steady state after each starting time.

    ``alpha`` [n] is the number of packets that each flow keeps queued. If there are more than
    ``MAX_ORDER`` flows, and a fast recursion can compute their over-estimates
    (``_has_fast_recursion``), only these are computed, to save time. The second result is then
    ``None``.
    """
    if alpha.size > MAX_ORDER and _has_fast_recursion(scenario):
        x, order = np.zeros(alpha.size), by_start(scenario)
        x[order] = arrival_order.arrive(alpha[order], scenario.links[0].capacity).x
        return x, None
    return rest.follow(scenario, _solver(scenario, alpha))


def _solver(scenario: Scenario, alpha: Floats) -> rest.Solve:
    """A function that computes the steady state of those flows that have started.

    Flows start one after another. A flow that starts measures its baseRTT in the steady state of
    the earlier flows. So ``rest.follow`` and other functions of ``rest`` need the steady state of
    only some of the flows. ``alpha`` [n] is the number of packets that each flow keeps queued.
    """
    rtt, c, variant = rtts(scenario), scenario.links[0].capacity, equation(scenario)

    def solve(started: rest.Mask, x: Floats) -> tuple[Floats, Floats]:
        """The rates (pkt/s) of the flows that have started, and the queueing delays (s [n]).

        ``started`` [n] is true for these flows. ``x`` [n] are the over-estimates of baseRTT, in s.
        All n flows cross the one link, so they have the same queueing delay.
        """
        state = secular.solve(alpha[started], x[started], c, rtt=rtt[started], variant=variant)
        return state.rates, np.full(x.size, float(state.delay))

    return solve


def settled(
    scenario: Scenario, states: list[rest.SteadyState] | None, backlog: Floats
) -> Assumption:
    """The assumption that the windows reach a steady state in time (``rest.settled``).

    They must do so before the next flow starts, and before the averages begin. ``states`` holds the
    steady state after each starting time. If it is None, the steady states were not computed, and
    the assumption is marked as unknown. ``backlog`` [n] is the number of packets that each flow
    keeps queued.
    """
    if states is None:
        return Assumption("settles-in-time", None, "not computed for so many arrivals")
    c = np.full(backlog.size, scenario.links[0].capacity)
    return rest.settled(scenario, states, backlog, c)


def many_packets(
    scenario: Scenario, x: Floats, rates: Floats, delay: float, *, simulated: bool = False
) -> Assumption:
    """The assumption that a few packets more or less in the queue hardly change the rates.

    ``rest.many_packets`` tests it: it compares ``rates`` (pkt/s [n]) with the rates that the
    equations give if each flow measures its baseRTT in a queue with fewer packets. All flows keep
    their present backlogs. These follow from ``rates``, the over-estimates of baseRTT in ``x`` (s
    [n]), and the queueing delay ``delay`` (s).

    How many packets fewer depends on where ``rates`` come from:

    - From equations: one packet, together with the motion of the queue that Vegas's windows cause
      (``waves_found``).
    - From a simulation (``simulated``): root(k) packets for a flow with k earlier flows. Each
      earlier flow has a packet more or less in the queue at some times, independently of the
      others. The simulation lacks these variations. It does contain the motion of the windows.

    The rates of a simulation also differ from those of the equations for other reasons. So the test
    then compares two sets of rates of the equations. Both are computed with the shorter queues that
    late flows find between trains of packets (``rest.dips``).
    """
    if x.size > MAX_ORDER:
        return Assumption("many-packets-queued", None, "not computed for so many arrivals")
    rtt, c = rtts(scenario), np.full(x.size, scenario.links[0].capacity)
    # backlog: window times (RTT - baseRTT), divided by RTT, or in Linux's Vegas by baseRTT
    divisor = rtt + (x if STACKS[equation(scenario)].backlog_over_base else delay)
    backlog = rates * (rtt + delay) * (delay - x) / divisor
    solve = _solver(scenario, backlog)
    if not simulated:
        return rest.many_packets(scenario, solve, c, rates, waves=waves_found(scenario))
    shorter_by = rest.dips(scenario, solve, x)
    _, states = rest.follow(scenario, solve, shorter_by)
    rates = states[-1].windows / (rtt + states[-1].delays)
    starts = rest.starts(scenario)
    earlier = np.searchsorted(np.sort(starts), starts)  # k, the number of earlier flows
    # ``rest.many_packets`` adds one packet itself: root(k - 1)^2 + 1^2 = root(k)^2
    of_other_packets = np.sqrt(np.maximum(earlier - 1, 0)) / c
    return rest.many_packets(scenario, solve, c, rates, shorter_by, of_other_packets)


def waves_found(scenario: Scenario) -> Floats:
    """By how much the queueing delay that late flows find is below its mean, s [n].

    Vegas decides late, so a window with alpha = beta rises and falls for ever, and moves the queue
    (``engines/fluid/late_decisions.py``). This is derived for a link on which all flows are Vegas
    flows with the variant ``paper``. In all other cases the result is 0. With ns-2's and Linux's
    Vegas this is right: it rounds its backlog, so its windows come to rest.
    """
    applies = reason_against(scenario) is None and len({m.start for m in scenario.members}) > 1
    if not (applies and STACKS[scenario.flows[0].variant].real_numbers):
        return np.zeros(len(scenario.members))
    from vegasmodel.engines.fluid.continuous import flows_of  # only where it is needed

    found: Floats = flows_of(scenario, trains=True).less_found
    return found


def _has_fast_recursion(scenario: Scenario) -> bool:
    """Whether the fast recursion ``arrivals.arrive`` can compute the over-estimates of baseRTT.

    It can if the flows start one at a time, if all measure their baseRTT, and if they compute the
    backlog as W (RTT - baseRTT)/RTT, with the window W. The papers and ns-2 do so; Linux divides by
    baseRTT.
    """
    distinct = len({m.start for m in scenario.members}) == len(scenario.members)
    return (
        distinct
        and bool(rest.measures(scenario).all())
        and not STACKS[equation(scenario)].backlog_over_base
    )


def too_many_arrivals(scenario: Scenario) -> str | None:
    """The reason why the over-estimates of baseRTT cannot be computed; ``None`` if they can.

    In general the steady state after each starting time is computed, and the next flows measure
    their baseRTT in it. The time for this grows with the square of the number of starting times, so
    at most ``MAX_ORDER`` are allowed. There is no such limit if a fast recursion can compute the
    over-estimates (``_has_fast_recursion``).
    """
    arrivals = len({m.start for m in scenario.members})
    if arrivals <= MAX_ORDER or _has_fast_recursion(scenario):
        return None
    return (
        f"over-estimates of baseRTT are computed for at most {MAX_ORDER} start times, unless no "
        "two flows start together, all measure their baseRTT, and none has Linux's Vegas"
    )


def equation(scenario: Scenario) -> str:
    """The variant whose equation for the equilibrium is used: ``linux`` or ``paper``.

    Linux divides by baseRTT when it computes the backlog. ns-2 divides by RTT, as the papers do. So
    the papers' equation is used for ns-2, too.
    """
    variant = scenario.flows[0].variant
    return variant if STACKS[variant].backlog_over_base else "paper"


def reason_against(scenario: Scenario) -> str | None:
    """Why models of Vegas flows on one link have no result for the scenario, or ``None``."""
    reason = one_link(scenario) or laws_within(scenario, ["vegas"])
    if reason is None and len({group.variant for group in scenario.flows}) > 1:
        reason = "the equations have one variant of Vegas for all flows"
    return reason


def fits(
    scenario: Scenario, x: Floats, states: list[rest.SteadyState] | None, queue: float
) -> Assumption:
    """The assumption that the buffer does not overflow (``rest.fits``).

    A flow's backlog is at most the larger of two numbers. One is the upper end of the dead zone, in
    which Vegas keeps its window. The other is gamma, at which slow start ends.

    ``x`` [n] are the over-estimates of baseRTT, in s. ``states`` holds the steady state after each
    starting time, or is ``None`` if it was not computed. ``queue`` is the number of packets that
    wait in the last of these states.
    """
    edge = column(scenario, lambda f: float(dead_zone(f.alpha, f.beta, f.variant)[1]))
    return rest.fits(
        scenario, x, states, np.maximum(edge, column(scenario, lambda f: f.gamma)), queue
    )


def hypotheses(
    scenario: Scenario, rates: Floats, *, one_threshold: bool = True
) -> list[Assumption]:
    """The assumptions that all models of Vegas flows on one link share.

    They are about the link's queue, and about features of the scenario that the models leave out.
    ``rates`` [n] are the predicted throughputs, pkt/s. With ``one_threshold``, the model also
    assumes that each flow has a single threshold.
    """
    rows = []
    if one_threshold:
        rows.append(
            Assumption(
                "single-threshold",
                not any(np.ptp(dead_zone(g.alpha, g.beta, g.variant)) for g in scenario.flows),
                f"{MIDDLE}, and the model bands gives the ranges of the rates",
            )
        )
    return [
        *map(brief, rows),
        plain_queue(scenario.links[0]),
        *left_out(scenario),
        waits.small_bursts(scenario, rates),
    ]


def brief(assumption: Assumption) -> Assumption:
    """The same assumption, but without its explanation if it holds."""
    return Assumption(assumption.name, assumption.holds) if assumption.holds else assumption
