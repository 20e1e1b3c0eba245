"""Computes the rates of Vegas flows that arrive one after another, by two models.

A flow that arrives later finds packets in the queue. So its baseRTT, the least RTT that it
measures, contains a queueing delay. The flow over-estimates its propagation delay by this queueing
delay. Two models compute the flows' rates:

- ``arrivals`` computes the over-estimates, one flow after another, from the steady state of the
  earlier flows. (If the scenario states the over-estimates, the model uses the stated ones.)
- ``arrivals-bonald`` is Bonald's closed form for flows that all have the same alpha.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vegasmodel.adapters import only_vegas, rest
from vegasmodel.adapters.common import (
    column,
    paper_equation,
    rtts,
    threshold,
)
from vegasmodel.equilibrium import arrivals as arrival_order
from vegasmodel.equilibrium import settling
from vegasmodel.equilibrium.settling import Earlier, Newcomer
from vegasmodel.laws.vegas import PART_KEPT
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.scenario.active_time import by_start
from vegasmodel.stacks import STACKS, dead_zone
from vegasmodel.status import Status


class Arrival(NamedTuple):
    """The steady state after the arrival of a flow; arrays [flow] in the order of arrival.

    The arrays have an entry for each flow that has arrived so far.
    """

    over_estimates: Floats  # of the flows' baseRTTs, s
    windows: Floats  # packets
    delay: float  # queueing delay, s


def arrivals(scenario: Scenario) -> Prediction:
    """The rates of Vegas flows that arrive one after another.

    Each flow mistakes the queueing delay at its start for propagation delay, unless the scenario
    gives the over-estimates of baseRTT. An exact recursion computes the steady state after each
    arrival. If Vegas keeps its window at any backlog in a range, for example between alpha and
    beta, the order of arrival also decides at which backlog in this range each flow stays.
    """
    name = "arrivals"
    measuring = rest.measures(scenario)
    reason = only_vegas.reason_against(scenario)
    if reason is None and measuring.any() and not measuring.all():
        reason = "over-estimates must be measured by all flows or given for all"
    if (
        reason is None
        and not _recursion_is_plain(scenario)
        and measuring.size > only_vegas.MAX_ORDER
    ):
        reason = (
            f"at most {only_vegas.MAX_ORDER} flows unless all measure their baseRTT, alpha = beta "
            "and the variant is paper"
        )
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    order, rtt, c = by_start(scenario), rtts(scenario), scenario.links[0].capacity
    with_path = measuring.size <= only_vegas.MAX_ORDER
    state, path = arrive(scenario, with_path)
    if state.status != Status.DONE:
        return Prediction.not_applicable(name, scenario, only_vegas.failure(state.status))
    file_order = np.argsort(order)  # puts arrays in order of arrival into the order of the file
    delay = float(state.delays[-1])
    states = _by_moment(scenario, order, path) if with_path else None
    return Prediction(
        name,
        scenario,
        state.rates[file_order],
        base_rtt=rtt + state.x[file_order],
        rtt_mean=rtt + delay,
        loss_rate=np.zeros(order.size),
        queue_mean=np.array([c * delay]),
        assumptions=(
            _one_at_a_time(scenario),
            only_vegas.fits(scenario, state.x[file_order], states, c * delay),
            only_vegas.many_packets(scenario, state.x[file_order], state.rates[file_order], delay),
            *only_vegas.hypotheses(scenario, state.rates[file_order], one_threshold=False),
            only_vegas.settled(scenario, states, threshold(scenario)),
            quasi_static(scenario, order, path),
        ),
    )


def arrive(
    scenario: Scenario, with_path: bool = True
) -> tuple[arrival_order.Arrivals, list[Arrival]]:
    """The steady state after all flows have arrived, and a list of the states after each arrival.

    An exact recursion computes each state from the one before. The list is empty unless
    ``with_path`` is true. The flows are in the order of arrival.

    If a flow measures its baseRTT, the recursion computes the over-estimates of all flows. So it is
    right only if all flows measure their baseRTT, or if the scenario gives all over-estimates.
    """
    order = by_start(scenario)
    given = None if rest.measures(scenario).any() else rest.given(scenario)[order]  # s
    alpha, beta = (
        column(scenario, value)[order] for value in (lambda f: f.alpha, lambda f: f.beta)
    )
    path: list[Arrival] = []

    def add(over_estimates: Floats, windows: Floats, delay: Floats) -> None:
        """Add the steady state after an arrival to ``path``."""
        path.append(Arrival(over_estimates=over_estimates, windows=windows, delay=float(delay)))

    state = arrival_order.arrive(
        alpha,
        scenario.links[0].capacity,
        beta=beta,
        rtt=rtts(scenario)[order],
        over_estimate=given,
        variant=scenario.flows[0].variant,
        each=add if with_path else None,
    )
    return state, path


def _by_moment(
    scenario: Scenario,
    order: np.ndarray[tuple[int], np.dtype[np.intp]],
    path: list[Arrival],
) -> list[rest.SteadyState]:
    """The steady state after each starting time of the scenario.

    ``path`` is the course of the network's steady states: it has one after each arrival of a flow.
    If several flows start at the same time, only the state after the last of them is returned.

    ``order`` lists the flows in the order in which they arrive. In each state of ``path`` the flows
    are in this order, and only those that have arrived. In each state of the result all flows are
    in the order of the scenario. A flow that has not started has the window 0.
    """
    when = rest.starts(scenario)[order]
    states = []
    for last in np.flatnonzero(np.append(np.diff(when) > 0, True)):
        windows = np.zeros(order.size)
        windows[order[: last + 1]] = path[last].windows
        states.append(rest.SteadyState(windows, np.full(order.size, path[last].delay)))
    return states


def quasi_static(
    scenario: Scenario,
    order: np.ndarray[tuple[int], np.dtype[np.intp]],
    path: list[Arrival],
) -> Assumption:
    """The assumption that earlier flows stay in steady state while a new flow's window grows.

    The assumption matters if Vegas keeps its window at any backlog in a range, for example between
    alpha and beta.  Then several steady states are possible after an arrival, and the windows'
    motion decides which of them is reached.  The assumption fails in three cases:

    * An earlier flow would have to reduce its window by more than a packet per round trip
      (``settling.lag``), which Vegas does not do.
    * Slow start of a new flow may end above the lower end of the range (``_passes_edge``).  The
      model takes the new flow to stay at this lower end.
    * There are several flows, and they run Linux's TCP.  Its slow start computes the backlog from
      the least RTT of a round trip.  While some packets still find an empty queue, this backlog is
      0.  So slow start ends only when it has filled the queue.

    ``order`` lists the flows in the order in which they arrive, and ``path`` has the steady state
    after each arrival: the over-estimates, the windows and the queueing delay.
    """
    name, members = "quasi-static", [scenario.members[i] for i in order]
    zones = [dead_zone(m.flow.alpha, m.flow.beta, m.flow.variant) for m in members]
    lower, upper = np.array(zones, dtype=np.float64).T
    # ``has_range``: the flows that keep their windows over a range of backlogs
    has_range, stack = upper > lower, STACKS[scenario.flows[0].variant]
    if not has_range.any() or len(members) == 1:
        return Assumption(name, True)
    ends = "the model bands gives all possible equilibria"
    if stack.least_of_round:
        detail = f"slow start of a new flow ends only when it has filled the queue; {ends}"
        return Assumption(name, False, detail)
    rtt, gamma = rtts(scenario)[order], np.array([m.flow.gamma for m in members])
    c = scenario.links[0].capacity
    # by how many packets per round trip an earlier flow would have to reduce its window
    fastest_shrink = 0.0
    # whether slow start may end above the lower end of the range
    may_overshoot = bool(np.any(gamma[has_range] > lower[has_range]))
    # the state before the first arrival
    nobody = Arrival(over_estimates=np.empty(0), windows=np.empty(0), delay=0.0)
    for i, (before, after) in enumerate(itertools.pairwise([nobody, *path])):
        # flow i arrives
        x = after.over_estimates
        newcomer = Newcomer(float(x[i]), float(rtt[i]), float(gamma[i]))
        delays, earlier = (before.delay, after.delay), None
        if i:
            # a flow without a range reduces its window as soon as the delay grows
            kept_windows = np.where(has_range[:i], before.windows, np.inf)
            earlier = Earlier(upper[:i], kept_windows, x[:i], rtt[:i], c)
            shrink = settling.lag(earlier, newcomer, delays, float(stack.doubling))
            fastest_shrink = max(fastest_shrink, shrink)
        if has_range[i] and not may_overshoot:
            may_overshoot = _passes_edge(members[i].flow, c, earlier, newcomer, delays)
    if may_overshoot:
        detail = "slow start may end above the least backlog at which Vegas keeps its window, and "
        detail += "the model takes the least"
        return Assumption(name, False, f"{detail}; {ends}")
    detail = (
        "while a new flow grows, an earlier flow would have to shrink its window by "
        f"{fastest_shrink:.3g} packets per round trip, and Vegas shrinks it by 1; so the queue "
        f"overshoots, and {ends}"
    )
    return Assumption(name, fastest_shrink <= 1.0, "" if fastest_shrink <= 1.0 else detail)


def _passes_edge(
    flow: Flow,
    c: float,
    earlier: Earlier | None,
    newcomer: Newcomer,
    delays: tuple[float, float],
) -> bool:
    """Whether slow start of a new flow may end above the lower edge of its dead zone.

    The dead zone is the range of backlogs in which Vegas keeps its window.  Slow start doubles the
    window, and a doubling may begin below the lower edge and end above it (``settling.overstep``).
    With the variant ``paper`` the result is False, because there the window grows smoothly.

    ``flow`` is the new flow's group in the scenario, and ``newcomer`` has its RTT and gamma.
    ``earlier`` are the flows that are there already; ``None``: there are none. c is the link's
    capacity in pkt/s. ``delays`` holds the queueing delays in the steady states before and after
    the new flow's arrival, s.
    """
    stack = STACKS[flow.variant]
    if stack.real_numbers or rest.skips_slow_start(flow, stack):
        return False
    # ns-2 rounds the backlog to whole packets, so slow start ends only half a packet above gamma
    gamma = newcomer.gamma + stack.above_beta
    if earlier is not None:
        rounding = replace(newcomer, gamma=gamma)
        # the greatest window at which slow start can end, in steady windows of the new flow
        return settling.overstep(earlier, rounding, delays) > 1.0
    # The flow is alone. Its bandwidth-delay product (in an array with one entry, which
    # ``slow_start_ends`` needs), and its queue in the steady state, packets:
    _, delay_after = delays
    product, queue = np.array([c * newcomer.rtt]), c * delay_after
    # Slow start ends when the backlog exceeds gamma: either once the link is full, or before. Vegas
    # then keeps the part ``PART_KEPT`` of its window. ``least`` is the least window that it keeps.
    kept_at_full_link = PART_KEPT * (product + gamma)
    kept_before = settling.slow_start_ends(np.array([gamma]), product)
    least = np.minimum(kept_before, kept_at_full_link)
    # The last doubling may begin just below the window that ends slow start, so Vegas may keep
    # twice as much. In the steady state its window is ``product`` + ``queue``.
    return bool(2.0 * least > product + queue)


def arrivals_bonald(scenario: Scenario) -> Prediction:
    """The rates of flows that arrive one after another, by Bonald's closed form.

    Section 3.1.2 of Boutremans and Le Boudec prints this form. The rates that it gives need not add
    up to the capacity.
    """
    name = "arrivals-bonald"
    reason = only_vegas.reason_against(scenario)
    alpha = threshold(scenario)
    if reason is None and len(set(alpha)) > 1:
        reason = "the closed form has one alpha for all flows"
    if reason is None:
        reason = only_vegas.too_many_arrivals(scenario)
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    c = scenario.links[0].capacity
    order = by_start(scenario)
    x, rates = np.empty(alpha.size), np.empty(alpha.size)
    x[order], rates[order] = arrival_order.bonald(alpha.size, float(alpha[0]), c)
    _, states = only_vegas.over_estimates(scenario, alpha)
    # Bonald's queueing delay of n flows: n S_n alpha/c, where S_n is 1 + 1/2 + ... + 1/n
    delay = alpha.size * float(alpha[0]) / c * float((1.0 / np.arange(1, alpha.size + 1)).sum())
    return Prediction(
        name,
        scenario,
        rates,
        base_rtt=rtts(scenario) + x,
        assumptions=(
            _one_at_a_time(scenario),
            _measured_base_rtts(scenario),
            paper_equation(scenario),
            only_vegas.fits(scenario, x, states, c * delay),
            *only_vegas.hypotheses(scenario, rates),
            only_vegas.settled(scenario, states, alpha),
            _rates_fill_link(scenario, float(rates.sum())),
        ),
    )


def _recursion_is_plain(scenario: Scenario) -> bool:
    """Whether the recursion is fast enough for any number of flows.

    It is if all flows are the papers' Vegas with alpha = beta, and measure their baseRTT.
    """
    groups = scenario.flows
    plain = all(g.one_threshold and STACKS[g.variant].real_numbers for g in groups)
    return plain and all(g.measures_base for g in groups)


def _measured_base_rtts(scenario: Scenario) -> Assumption:
    """The assumption that the scenario states no over-estimates of baseRTT."""
    return only_vegas.brief(
        Assumption(
            "base-rtt-measured",
            all(g.measures_base for g in scenario.flows),
            "the closed form has its own over-estimates; the given ones are not used",
        )
    )


def _rates_fill_link(scenario: Scenario, total: float) -> Assumption:
    """The assumption that the rates add up to the capacity; ``total`` is their sum, pkt/s."""
    c = scenario.links[0].capacity
    return only_vegas.brief(
        Assumption(
            "rates-fill-the-link",
            math.isclose(total, c, rel_tol=1e-9),
            f"the rates of the printed formula add up to {total:.4g} pkt/s, and the capacity is "
            f"{c:.4g}; the model arrivals solves the equation exactly",
        )
    )


def _one_at_a_time(scenario: Scenario) -> Assumption:
    """The assumption that no two flows start at the same time."""
    return only_vegas.brief(
        Assumption(
            "one-arrival-at-a-time",
            len({m.start for m in scenario.members}) == len(scenario.members),
            "each flow must find the others in equilibrium; some start together",
        )
    )
