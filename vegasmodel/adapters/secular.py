"""Evaluates four models for a scenario in which only Vegas flows share one link.

The models are ``equilibrium``, ``bands``, ``arrivals`` and ``arrivals-bonald``. If a flow measures
its baseRTT while packets are queued, it over-estimates its propagation delay. The models differ in
how they get the over-estimates. They also differ in their results: ``bands`` gives the least and
the greatest rate of each flow in a set of equilibria, the others give one rate per flow.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.adapters import rest
from vegasmodel.adapters.common import (
    MIDDLE,
    column,
    laws_within,
    left_out,
    one_link,
    paper_equation,
    plain_queue,
    rtts,
)
from vegasmodel.equilibrium import arrivals as arrival_order
from vegasmodel.equilibrium import bands as threshold_bands
from vegasmodel.equilibrium import secular, settling
from vegasmodel.metrics import Floats
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.stacks import STACKS, dead_zone
from vegasmodel.status import Status

MAX_BAND = 4000  # flows; time and memory grow with the square of their number
MAX_ORDER = 10_000  # flows, if arrivals are followed one by one; time grows with the square


def _failure(status: int) -> str:
    return f"the solver of the steady state has no answer: {Status(int(status)).reason}"


def equilibrium(scenario: Scenario) -> Prediction:
    """The rates of Vegas flows in equilibrium, by equations (3) to (6) of Boutremans and Le Boudec.

    A flow's over-estimate of its baseRTT is given in the scenario, or is the queueing delay that
    the flow finds when it starts. Each flow's backlog is the middle of its dead zone
    (``threshold``). The dead zone is the range of backlogs in which Vegas holds its window. For the
    variant ``linux``, Linux's equation replaces the paper's.
    """
    name, reason = "equilibrium", _reason(scenario)
    if reason is None:
        reason = _too_many_arrivals(scenario)
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    alpha, c, rtt = threshold(scenario), scenario.links[0].capacity, rtts(scenario)
    x, rests = _rests(scenario, alpha)
    state = secular.solve(alpha, x, c, rtt=rtt, variant=_law(scenario))
    if state.status != Status.DONE:
        return Prediction.not_applicable(name, scenario, _failure(state.status))
    return Prediction(
        name,
        scenario,
        state.rates,
        base_rtt=rtt + x,
        rtt_mean=rtt + state.delay,
        loss_rate=np.zeros(x.size),
        queue_mean=np.array([c * float(state.delay)]),
        assumptions=(
            _fits(scenario, x, rests, c * float(state.delay)),
            _many_packets(scenario, x, state.rates, float(state.delay)),
            rest.together(scenario),
            *_hypotheses(scenario),
            _settled(scenario, rests, alpha),
        ),
    )


def arrivals(scenario: Scenario) -> Prediction:
    """The rates of Vegas flows that arrive one after another.

    Each flow mistakes the queueing delay at its start for propagation delay, unless the scenario
    gives the over-estimates of baseRTT. An exact recursion computes the steady state after each
    arrival. If Vegas holds its window in a range of backlogs, the order of arrival also decides
    where in this range each flow's backlog ends.
    """
    name = "arrivals"
    unknown = rest.measures(scenario)
    reason = _reason(scenario)
    if reason is None and unknown.any() and not unknown.all():
        reason = "over-estimates must be measured by all flows or given for all"
    if reason is None and not _recursion_is_plain(scenario) and unknown.size > MAX_ORDER:
        reason = f"at most {MAX_ORDER} flows unless alpha = beta and the variant is paper"
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    order, rtt, c = _order(scenario), rtts(scenario), scenario.links[0].capacity
    followed = unknown.size <= MAX_ORDER
    state, path = _arrive(scenario, followed)
    if state.status != Status.DONE:
        return Prediction.not_applicable(name, scenario, _failure(state.status))
    back = np.argsort(order)  # from order of arrival to order of the file
    delay = float(state.delays[-1])
    rests = _by_moment(scenario, order, path) if followed else None
    return Prediction(
        name,
        scenario,
        state.rates[back],
        base_rtt=rtt + state.x[back],
        rtt_mean=rtt + delay,
        loss_rate=np.zeros(order.size),
        queue_mean=np.array([c * delay]),
        assumptions=(
            _spaced(scenario),
            _fits(scenario, state.x[back], rests, c * delay),
            _many_packets(scenario, state.x[back], state.rates[back], delay),
            *_hypotheses(scenario, one_threshold=False),
            _settled(scenario, rests, threshold(scenario)),
            _quasi_static(scenario, order, path),
        ),
    )


def _arrive(
    scenario: Scenario, followed: bool = True
) -> tuple[arrival_order.Arrivals, list[tuple[Floats, Floats, float]]]:
    """The exact recursion over the arrivals, and the steady state after each of them.

    A steady state is given by over-estimates, windows and the queueing delay. The list is empty
    unless ``followed``. The flows are in the order of arrival.
    """
    order, unknown = _order(scenario), rest.measures(scenario)
    alpha, beta = (column(scenario, value)[order] for value in (_alpha, _beta))
    path: list[tuple[Floats, Floats, float]] = []
    state = arrival_order.arrive(
        alpha,
        scenario.links[0].capacity,
        beta=beta,
        rtt=rtts(scenario)[order],
        over_estimate=None if unknown.any() else rest.given(scenario)[order],
        variant=scenario.flows[0].variant,
        each=(lambda *step: path.append((step[0], step[1], float(step[2])))) if followed else None,
    )
    return state, path


def _by_moment(
    scenario: Scenario,
    order: np.ndarray[tuple[int], np.dtype[np.intp]],
    path: list[tuple[Floats, Floats, float]],
) -> list[rest.Rest]:
    """The steady state after each starting time of the scenario.

    ``path`` has the steady state after each arrival of a flow. If several flows start at the same
    time, only the state after the last of them is returned. In ``path`` the flows are in the order
    of arrival, in the result in the order of the scenario. A flow that has not started has the
    window 0.
    """
    when = rest.starts(scenario)[order]
    rests = []
    for last in np.flatnonzero(np.append(np.diff(when) > 0, True)):
        windows = np.zeros(order.size)
        windows[order[: last + 1]] = path[last][1]
        rests.append(rest.Rest(windows, np.full(order.size, path[last][2])))
    return rests


def _quasi_static(
    scenario: Scenario,
    order: np.ndarray[tuple[int], np.dtype[np.intp]],
    path: list[tuple[Floats, Floats, float]],
) -> Assumption:
    """The assumption that earlier flows stay in steady state while a new flow's window grows.

    If Vegas holds its window in a range of backlogs, several steady states are possible after an
    arrival.  Which of them is reached depends on how the windows move after the arrival.

    The assumption fails if an earlier flow would have to reduce its window by more than a packet
    per round trip (``settling.lag``).  It also fails if slow start may end above the lower end of
    this range (``_passes_edge``), where the model takes a new flow to stay.  Linux's slow start
    decides on the least RTT of a round trip, so it ends only when it has filled the queue.  For
    several Linux flows the assumption therefore fails.  ``order`` lists the flows in the order in
    which they arrive, and ``path`` has the steady state after each arrival: the over-estimates, the
    windows and the queueing delay.
    """
    name, members = "quasi-static", [scenario.members[i] for i in order]
    zones = [dead_zone(m.flow.alpha, m.flow.beta, m.flow.variant) for m in members]
    lower, upper = np.array(zones, dtype=np.float64).T
    loose, runs = upper > lower, STACKS[scenario.flows[0].variant]
    if not loose.any() or len(members) == 1:
        return Assumption(name, True)
    ends = "the set of equilibria (model bands) holds where it ends"
    if runs.least_of_round:
        detail = f"slow start of a newcomer ends only when it has filled the queue; {ends}"
        return Assumption(name, False, detail)
    rtt, gamma = rtts(scenario)[order], np.array([m.flow.gamma for m in members])
    c, worst, past = scenario.links[0].capacity, 0.0, bool(np.any(gamma[loose] > lower[loose]))
    for i, (x, _, delay) in enumerate(path):
        before = path[i - 1] if i else (x[:0], x[:0], 0.0)
        others = upper[:i], np.where(loose[:i], before[1], np.inf), x[:i], rtt[:i], c
        newcomer, between = (float(x[i]), float(rtt[i]), float(gamma[i])), (before[2], delay)
        if i:
            worst = max(worst, settling.lag(*others, newcomer, between, float(runs.doubling)))
        if loose[i] and not past:
            past = _passes_edge(members[i].flow, others, newcomer, between)
    if past:
        detail = "slow start may end past the lower edge of the band, where it begins"
        return Assumption(name, False, f"{detail}; {ends}")
    detail = (
        f"while a new flow grows, an earlier flow would have to shrink its window by {worst:.3g} "
        f"packets per round trip, and Vegas shrinks it by 1; so the queue overshoots, and {ends}"
    )
    return Assumption(name, worst <= 1.0, "" if worst <= 1.0 else detail)


def _passes_edge(
    flow: Flow,
    others: tuple[Floats, Floats, Floats, Floats, float],
    newcomer: tuple[float, float, float],
    between: tuple[float, float],
) -> bool:
    """Whether slow start of a new flow may end above the lower edge of its dead zone.

    The dead zone is the range of backlogs in which Vegas keeps its window.  Slow start doubles the
    window in one step, and so may carry the flow past the lower edge (``settling.overstep``).  With
    the variant ``paper`` the result is False, because the papers' window grows without steps.

    ``others`` are the first five arguments of ``settling.lag``, and describe the earlier flows.
    ``newcomer`` and ``between`` are the arguments with these names.
    """
    runs, (x, rtt, gamma) = STACKS[flow.variant], newcomer
    if runs.real_numbers or rest.skips_slow_start(flow, runs):
        return False
    gamma += runs.above_beta  # ns-2 rounds the backlog
    if others[0].size:
        return settling.overstep(*others, (x, rtt, gamma), between) > 1.0
    product, queue = others[-1] * np.array([[rtt], [between[1]]])  # packets; the flow is alone
    end = np.minimum(
        settling.slow_start_ends(np.array([gamma]), product), settling.LEFT * (product + gamma)
    )
    return bool(2.0 * end > product + queue)


def arrivals_bonald(scenario: Scenario) -> Prediction:
    """The rates of flows that arrive one after another, by Bonald's closed form.

    Section 3.1.2 of Boutremans and Le Boudec prints this form. The rates that it gives need not add
    up to the capacity.
    """
    name = "arrivals-bonald"
    reason = _reason(scenario)
    alpha = threshold(scenario)
    if reason is None and len(set(alpha)) > 1:
        reason = "the closed form has one alpha for all flows"
    if reason is None:
        reason = _too_many_arrivals(scenario)
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    c = scenario.links[0].capacity
    order = _order(scenario)
    x, rates, rests = np.empty(alpha.size), np.empty(alpha.size), _rests(scenario, alpha)[1]
    x[order], rates[order] = arrival_order.bonald(alpha.size, float(alpha[0]), c)
    delay = alpha.size * float(alpha[0]) / c * float((1.0 / np.arange(1, alpha.size + 1)).sum())
    return Prediction(
        name,
        scenario,
        rates,
        base_rtt=rtts(scenario) + x,
        assumptions=(
            _spaced(scenario),
            _measured(scenario),
            paper_equation(scenario),
            _fits(scenario, x, rests, c * delay),
            *_hypotheses(scenario),
            _settled(scenario, rests, alpha),
            _fills(scenario, float(rates.sum())),
        ),
    )


def bands(scenario: Scenario) -> Prediction:
    """Each flow's least and greatest rate over all equilibria.

    Vegas keeps its window while its backlog is in its dead zone, about from alpha to beta
    (``stacks.dead_zone``). So there may be many equilibria. If flows measure their baseRTT, their
    over-estimates may differ between equilibria. The results are then bounds, and the true range
    may be smaller. ``throughput`` is that of the equilibrium with all backlogs in the middle of
    their dead zones.
    """
    reason = _reason(scenario)
    if reason is None and len(scenario.members) > MAX_BAND:
        reason = f"at most {MAX_BAND} flows: each has equilibria of its own"
    if reason is not None:
        return Prediction.not_applicable("bands", scenario, reason)
    alpha, beta = column(scenario, _alpha), column(scenario, _beta)
    variant, rtt, c = scenario.flows[0].variant, rtts(scenario), scenario.links[0].capacity
    edges = dead_zone(alpha, beta, variant)
    if np.any(edges[0] < 0.0) or np.all(edges[0] == 0.0):
        reason = "a window holds though no packet of it waits: nothing fixes the least queue"
        return Prediction.not_applicable("bands", scenario, reason)
    (x_low, _), (x_high, rests) = (_rests(scenario, edge) for edge in edges)
    low, high = (
        threshold_bands.equilibria(alpha, beta, x, c, rtt=rtt, variant=variant)
        for x in (x_low, x_high)
    )
    if np.array_equal(x_low, x_high):
        least, greatest = low.rate_range
    else:  # over-estimates depend on where in their bands the earlier flows rest
        least, greatest = threshold_bands.outer_range(low, high)
    x, _ = _rests(scenario, threshold(scenario))
    middle = secular.solve(threshold(scenario), x, c, rtt=rtt, variant=_law(scenario))
    return Prediction(
        "bands",
        scenario,
        middle.rates,
        throughput_range=np.stack([least, greatest], axis=-1),
        base_rtt=rtt + x,
        assumptions=(
            _fits(scenario, x_high, rests, c * high.delay_range[1]),
            *_bases_of_equilibria(scenario),
            rest.together(scenario),
            *_hypotheses(scenario, one_threshold=False),
            _settled(scenario, rests, edges[1]),
        ),
    )


def _bases_of_equilibria(scenario: Scenario) -> list[Assumption]:
    """The assumption ``quasi-static`` of ``bands``: late flows find the queue of an equilibrium.

    While a newcomer is in slow start, its bursts may make earlier flows reduce their windows. The
    queue is then short between the bursts, and the newcomer measures a smaller baseRTT than in
    equilibrium. With equal RTTs the simulated rates (``rounds``) stay within their ranges all the
    same. With different RTTs some do not, so it is then not known whether the assumption holds.
    Returns no assumption if such bursts are not to be expected.
    """
    measured = rest.measures(scenario)
    late = len({m.start for m in scenario.members}) > 1 and bool(measured.all())
    if not late or len({m.rtt for m in scenario.members}) == 1:
        return []
    state, path = _arrive(scenario)
    if state.status != Status.DONE or _quasi_static(scenario, _order(scenario), path).holds:
        return []
    said = "a newcomer's slow start may empty the queue for a moment; its baseRTT is then smaller"
    return [Assumption("quasi-static", None, said)]


def threshold(scenario: Scenario) -> Floats:
    """The middle of each flow's dead zone, packets.

    While its backlog is in the dead zone, Vegas does not change its window. In the papers this zone
    is from alpha to beta. In ns-2 and Linux it is wider, because they compute the backlog in whole
    packets. Models with a single threshold use the middle of the zone.
    """
    return column(scenario, lambda f: float(sum(dead_zone(f.alpha, f.beta, f.variant))) / 2.0)


def _rests(scenario: Scenario, alpha: Floats) -> tuple[Floats, list[rest.Rest] | None]:
    """Over-estimates of the baseRTTs [n], s, and the steady state after each starting time.

    ``alpha`` [n] is the number of packets that each flow keeps queued. If there are more than
    ``MAX_ORDER`` flows and ``_alone`` is true, only the over-estimates are computed, which saves
    time. The second result is then ``None``.
    """
    if alpha.size > MAX_ORDER and _alone(scenario):
        x, order = np.zeros(alpha.size), _order(scenario)
        x[order] = arrival_order.arrive(alpha[order], scenario.links[0].capacity).x
        return x, None
    return rest.follow(scenario, _solver(scenario, alpha))


def _solver(scenario: Scenario, alpha: Floats) -> rest.Solve:
    """The function with which ``rest.follow`` solves for the steady state of some of the flows.

    ``alpha`` [n] is the number of packets that each flow keeps queued.
    """
    rtt, c, law = rtts(scenario), scenario.links[0].capacity, _law(scenario)

    def solve(there: rest.Mask, x: Floats) -> tuple[Floats, Floats]:
        state = secular.solve(alpha[there], x[there], c, rtt=rtt[there], variant=law)
        return state.rates, np.full(x.size, float(state.delay))

    return solve


def _settled(scenario: Scenario, rests: list[rest.Rest] | None, backlog: Floats) -> Assumption:
    if rests is None:
        return Assumption("settles-in-time", None, "not worked out for so many arrivals")
    c = np.full(backlog.size, scenario.links[0].capacity)
    return rest.settled(scenario, rests, backlog, c)


def _many_packets(scenario: Scenario, x: Floats, rates: Floats, delay: float) -> Assumption:
    """The assumption that one packet more or less in the queue hardly changes the rates.

    It is ``rest.many_packets``, for flows that keep the backlogs that they have at these ``rates``,
    pkt/s [n]. ``x`` [n] are the over-estimates of baseRTT, s, and ``delay`` is the queueing delay,
    s.
    """
    if x.size > MAX_ORDER:
        return Assumption("many-packets-queued", None, "not worked out for so many arrivals")
    rtt, c = rtts(scenario), np.full(x.size, scenario.links[0].capacity)
    base = x if STACKS[_law(scenario)].backlog_over_base else delay
    kept = rates * (rtt + delay) * (delay - x) / (rtt + base)
    return rest.many_packets(scenario, _solver(scenario, kept), c, rates)


def _recursion_is_plain(scenario: Scenario) -> bool:
    groups = scenario.flows
    return all(g.alpha == g.beta and STACKS[g.variant].real_numbers for g in groups) and all(
        g.over_estimate == "measured" for g in groups
    )


def _alone(scenario: Scenario) -> bool:
    """Whether the recursion ``arrivals.arrive`` alone can give the over-estimates of baseRTT.

    It can if the flows start one at a time, if all measure their baseRTT, and if they compute the
    backlog as W (RTT - baseRTT)/RTT, with the window W. The papers and ns-2 do so; Linux divides by
    baseRTT.
    """
    distinct = len({m.start for m in scenario.members}) == len(scenario.members)
    return (
        distinct
        and bool(rest.measures(scenario).all())
        and not STACKS[_law(scenario)].backlog_over_base
    )


def _too_many_arrivals(scenario: Scenario) -> str | None:
    """The reason why the over-estimates of baseRTT cannot be computed; ``None`` if they can.

    They cannot if the flows have more than ``MAX_ORDER`` starting times, unless ``_alone`` is true.
    """
    arrivals = len({m.start for m in scenario.members})
    if arrivals <= MAX_ORDER or _alone(scenario):
        return None
    return (
        f"at most {MAX_ORDER} moments of arrival, unless each flow has its own and none is Linux's"
    )


def _law(scenario: Scenario) -> str:
    """The variant whose equation for the equilibrium is used: ``linux`` or ``paper``.

    Linux divides by baseRTT when it computes the backlog. ns-2 divides by RTT, as the papers do. So
    the papers' equation is used for ns-2, too.
    """
    variant = scenario.flows[0].variant
    return variant if STACKS[variant].backlog_over_base else "paper"


def _reason(scenario: Scenario) -> str | None:
    reason = one_link(scenario) or laws_within(scenario, ["vegas"])
    if reason is None and len({group.variant for group in scenario.flows}) > 1:
        reason = "the equations have one variant of Vegas for all flows"
    return reason


def _fits(scenario: Scenario, x: Floats, rests: list[rest.Rest] | None, queue: float) -> Assumption:
    """The assumption that the buffer does not overflow (``rest.fits``).

    A flow's backlog is at most the larger of two numbers. One is the upper end of the dead zone, in
    which Vegas keeps its window. The other is gamma, at which slow start ends.
    """
    edge = column(scenario, lambda f: float(dead_zone(f.alpha, f.beta, f.variant)[1]))
    return rest.fits(
        scenario, x, rests, np.maximum(edge, column(scenario, lambda f: f.gamma)), queue
    )


def _hypotheses(scenario: Scenario, *, one_threshold: bool = True) -> list[Assumption]:
    rows = []
    if one_threshold:
        rows.append(
            Assumption(
                "single-threshold",
                not any(np.ptp(dead_zone(g.alpha, g.beta, g.variant)) for g in scenario.flows),
                f"{MIDDLE}, and the model bands gives the ranges of the rates",
            )
        )
    return [*map(_said, rows), plain_queue(scenario.links[0]), *left_out(scenario)]


def _said(assumption: Assumption) -> Assumption:
    """The same assumption, but without its explanation if it holds."""
    return Assumption(assumption.name, assumption.holds) if assumption.holds else assumption


def _measured(scenario: Scenario) -> Assumption:
    return _said(
        Assumption(
            "base-rtt-measured",
            all(g.over_estimate == "measured" for g in scenario.flows),
            "the closed form has its own over-estimates; the given ones are not used",
        )
    )


def _fills(scenario: Scenario, total: float) -> Assumption:
    c = scenario.links[0].capacity
    return _said(
        Assumption(
            "rates-fill-the-link",
            math.isclose(total, c, rel_tol=1e-9),
            f"the rates of the printed formula add up to {total:.4g} pkt/s, and the capacity is "
            f"{c:.4g}; the model arrivals solves the equation exactly",
        )
    )


def _spaced(scenario: Scenario) -> Assumption:
    return _said(
        Assumption(
            "one-arrival-at-a-time",
            len({m.start for m in scenario.members}) == len(scenario.members),
            "each flow must find the others in equilibrium; some start together",
        )
    )


def _alpha(flow: Flow) -> float:
    return flow.alpha


def _beta(flow: Flow) -> float:
    return flow.beta


def _order(scenario: Scenario) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.argsort([m.start for m in scenario.members], kind="stable")
