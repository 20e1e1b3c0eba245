"""Adapters of Vegas alone on one link: ``equilibrium``, ``bands``, ``arrivals`` and Bonald's form.

All four speak of Vegas flows alone on one link, and differ in the over-estimates ``x`` and in
whether the thresholds leave a set.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.adapters.common import column, laws_within, left_out, one_link, plain_queue, rtts
from vegasmodel.equilibrium import arrivals as arrival_order
from vegasmodel.equilibrium import bands as threshold_bands
from vegasmodel.equilibrium import secular
from vegasmodel.metrics import Floats
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.stacks import dead_zone

MAX_BAND = 4000  # flows; time and memory grow with the square
MAX_ORDER = 10_000  # flows whose order of arrival is followed one by one; time with the square
STATUS = {
    secular.NOT_CONVERGED: "the solver of the steady state did not converge",
    secular.INVALID: "a value is out of the range in which the steady state is solved",
    secular.ILL_CONDITIONED: "the inputs do not determine the steady state's digits",
}


def equilibrium(scenario: Scenario) -> Prediction:
    """``boutremans`` (3)-(6) with the over-estimates given, or those of the arrival order."""
    name, reason = "equilibrium", _reason(scenario)
    if reason is None:
        reason = _crowd(scenario)
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    x = over_estimates(scenario)
    c, rtt = scenario.links[0].capacity, rtts(scenario)
    state = secular.solve(threshold(scenario), x, c, rtt=rtt, variant=_law(scenario))
    if state.status != secular.OK:
        return Prediction.not_applicable(name, scenario, STATUS[int(state.status)])
    return Prediction(
        name,
        scenario,
        state.rates,
        base_rtt=rtt + x,
        rtt_mean=rtt + state.delay,
        loss_rate=np.zeros(x.size),
        queue_mean=np.array([c * float(state.delay)]),
        assumptions=tuple(_hypotheses(scenario, float(state.delay))),
    )


def arrivals(scenario: Scenario) -> Prediction:
    """Each flow takes the queue that it finds for a part of its propagation: exact recursion.

    Where the thresholds leave a band, the order of arrival also says where in it each flow rests.
    """
    name = "arrivals"
    given = [m.flow.over_estimate for m in scenario.members]
    reason = _reason(scenario)
    if reason is None and "measured" in given and set(given) != {"measured"}:
        reason = "over-estimates must be measured by all flows or given for all"
    if reason is None and not _recursion_is_plain(scenario) and len(given) > MAX_ORDER:
        reason = f"at most {MAX_ORDER} flows unless alpha = beta and the variant is paper"
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    order, rtt, c = _order(scenario), rtts(scenario), scenario.links[0].capacity
    alpha, beta = (column(scenario, value)[order] for value in (_alpha, _beta))
    state = arrival_order.arrive(
        alpha,
        c,
        beta=beta,
        rtt=rtt[order],
        x=None if "measured" in given else over_estimates(scenario)[order],
        variant=scenario.flows[0].variant,
    )
    if state.status != secular.OK:
        return Prediction.not_applicable(name, scenario, STATUS[int(state.status)])
    back = np.argsort(order)  # from order of arrival to order of the file
    delay = float(state.delays[-1])
    return Prediction(
        name,
        scenario,
        state.rates[back],
        base_rtt=rtt + state.x[back],
        rtt_mean=rtt + delay,
        loss_rate=np.zeros(order.size),
        queue_mean=np.array([c * delay]),
        assumptions=(_spaced(scenario), *_hypotheses(scenario, delay, one_threshold=False)),
    )


def arrivals_bonald(scenario: Scenario) -> Prediction:
    """Bonald's closed form as ``boutremans`` 3.1.2 prints it; its rates need not add up to c."""
    name = "arrivals-bonald"
    reason = _reason(scenario)
    alpha = threshold(scenario)
    if reason is None and len(set(alpha)) > 1:
        reason = "the closed form has one alpha for all flows"
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    c = scenario.links[0].capacity
    order = _order(scenario)
    x, rates = np.empty(alpha.size), np.empty(alpha.size)
    x[order], rates[order] = arrival_order.bonald(alpha.size, float(alpha[0]), c)
    delay = alpha.size * float(alpha[0]) / c * float((1.0 / np.arange(1, alpha.size + 1)).sum())
    return Prediction(
        name,
        scenario,
        rates,
        base_rtt=rtts(scenario) + x,
        assumptions=(_spaced(scenario), *_papers_vegas(scenario), *_hypotheses(scenario, delay)),
    )


def bands(scenario: Scenario) -> Prediction:
    """For alpha <= beta: every flow's least and greatest rate over the set of equilibria."""
    reason = _reason(scenario)
    if reason is None and len(scenario.members) > MAX_BAND:
        reason = f"at most {MAX_BAND} flows: each has equilibria of its own"
    if reason is not None:
        return Prediction.not_applicable("bands", scenario, reason)
    alpha, beta = column(scenario, _alpha), column(scenario, _beta)
    variant = scenario.flows[0].variant
    x, rtt, c = over_estimates(scenario), rtts(scenario), scenario.links[0].capacity
    band = threshold_bands.equilibria(alpha, beta, x, c, rtt=rtt, variant=variant)
    low, high = band.rate_range
    middle = secular.solve(threshold(scenario), x, c, rtt=rtt, variant=_law(scenario))
    return Prediction(
        "bands",
        scenario,
        middle.rates,
        throughput_range=np.stack([low, high], axis=-1),
        base_rtt=rtt + x,
        assumptions=tuple(_hypotheses(scenario, float(middle.delay), one_threshold=False)),
    )


def threshold(scenario: Scenario) -> Floats:
    """The one backlog that stands for each flow's band: the middle of its dead zone."""
    return column(scenario, lambda f: float(sum(dead_zone(f.alpha, f.beta, f.variant))) / 2.0)


def over_estimates(scenario: Scenario) -> Floats:
    """``x_i`` of each flow: as given; measured ones from the arrival order where starts differ."""
    x = measured(scenario)
    for i, member in enumerate(scenario.members):
        if member.flow.over_estimate != "measured":
            x[i] = member.flow.over_estimate
    return x


def measured(scenario: Scenario) -> Floats:
    """Exact recursion: ``x`` is the queueing delay that the flows before have settled at.

    Flows that start together find the same queue.
    """
    x = np.zeros(len(scenario.members))
    if x.size > MAX_ORDER and _alone(scenario):
        order = _order(scenario)
        found = arrival_order.arrive(threshold(scenario)[order], scenario.links[0].capacity)
        x[order] = found.x
        return x
    alpha, rtt, c = threshold(scenario), rtts(scenario), scenario.links[0].capacity
    starts = np.array([m.start for m in scenario.members])
    for start in np.unique(starts)[1:]:
        before = starts < start
        state = secular.solve(alpha[before], x[before], c, rtt=rtt[before], variant=_law(scenario))
        x[starts == start] = state.delay
    return x


def _recursion_is_plain(scenario: Scenario) -> bool:
    groups = scenario.flows
    return all(g.alpha == g.beta and g.variant == "paper" for g in groups) and all(
        g.over_estimate == "measured" for g in groups
    )


def _alone(scenario: Scenario) -> bool:
    """Every flow arrives by itself, and the papers' equation holds: the plain recursion."""
    distinct = len({m.start for m in scenario.members})
    return distinct == len(scenario.members) and _law(scenario) == "paper"


def _crowd(scenario: Scenario) -> str | None:
    """Why the over-estimates of so many arrivals are not worked out; None if they are."""
    arrivals = len({m.start for m in scenario.members})
    if arrivals <= MAX_ORDER or _alone(scenario):
        return None
    return (
        f"at most {MAX_ORDER} moments of arrival, unless each flow has its own and none is Linux's"
    )


def _law(scenario: Scenario) -> str:
    """Which equation: ns-2's rounding widens the band about the middle but leaves it there."""
    return "linux" if scenario.flows[0].variant == "linux" else "paper"


def _reason(scenario: Scenario) -> str | None:
    reason = one_link(scenario) or laws_within(scenario, ["vegas"])
    if reason is None and len({group.variant for group in scenario.flows}) > 1:
        reason = "the equations have one variant of Vegas for all flows"
    return reason


def _hypotheses(
    scenario: Scenario, delay: float, *, one_threshold: bool = True
) -> list[Assumption]:
    link = scenario.links[0]
    queue = link.capacity * delay
    rows = [
        Assumption(
            "infinite-buffer",
            link.buffer == math.inf or queue <= link.buffer,
            f"the equations want a queue of {queue:.4g} pkt, the buffer holds {link.buffer:g}",
        )
    ]
    if one_threshold:
        rows.append(
            Assumption(
                "alpha-equals-beta",
                all(g.alpha == g.beta for g in scenario.flows),
                "alpha < beta leaves a set of equilibria (model bands); this is its middle",
            )
        )
    return [*map(_said, rows), plain_queue(link), *left_out(scenario)]


def _said(assumption: Assumption) -> Assumption:
    """The detail explains a failure; it has no place where the hypothesis holds."""
    return Assumption(assumption.name, assumption.holds) if assumption.holds else assumption


def _papers_vegas(scenario: Scenario) -> list[Assumption]:
    """What Bonald's form takes for granted: measured baseRTTs, and the papers' equation."""
    rows = [
        Assumption(
            "base-rtt-measured",
            all(g.over_estimate == "measured" for g in scenario.flows),
            "the closed form has its own over-estimates; the given ones are not used",
        ),
        Assumption(
            "paper-equation",
            all(g.variant != "linux" for g in scenario.flows),
            "Linux divides by baseRTT; the closed form is that of division by RTT",
        ),
    ]
    return [_said(row) for row in rows]


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
