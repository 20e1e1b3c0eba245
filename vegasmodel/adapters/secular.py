"""Computes the rates of Vegas flows that share one link, by the model ``equilibrium``.

In equilibrium each flow keeps its window. Vegas does so at any backlog in a certain range, for
example between alpha and beta. The model takes the backlog in the middle of this range.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import only_vegas, rest
from vegasmodel.adapters.common import (
    rtts,
    threshold,
)
from vegasmodel.equilibrium import secular
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status


def equilibrium(scenario: Scenario) -> Prediction:
    """The rates of Vegas flows in equilibrium, by equations (3) to (6) of Boutremans and Le Boudec.

    A flow's over-estimate of its baseRTT is given in the scenario, or is the queueing delay that
    the flow finds when it starts. Each flow's backlog is the middle of its dead zone
    (``threshold``). The dead zone is the range of backlogs in which Vegas holds its window. For the
    variant ``linux``, Linux's equation replaces the paper's.
    """
    name, reason = "equilibrium", only_vegas.reason_against(scenario)
    if reason is None:
        reason = only_vegas.too_many_arrivals(scenario)
    if reason is not None:
        return Prediction.not_applicable(name, scenario, reason)
    alpha, c, rtt = threshold(scenario), scenario.links[0].capacity, rtts(scenario)
    x, states = only_vegas.over_estimates(scenario, alpha)
    state = secular.solve(alpha, x, c, rtt=rtt, variant=only_vegas.equation(scenario))
    if state.status != Status.DONE:
        return Prediction.not_applicable(name, scenario, only_vegas.failure(state.status))
    return Prediction(
        name,
        scenario,
        state.rates,
        base_rtt=rtt + x,
        rtt_mean=rtt + state.delay,
        loss_rate=np.zeros(x.size),
        queue_mean=np.array([c * float(state.delay)]),
        assumptions=(
            only_vegas.fits(scenario, x, states, c * float(state.delay)),
            only_vegas.many_packets(scenario, x, state.rates, float(state.delay)),
            rest.together(scenario),
            *only_vegas.hypotheses(scenario, state.rates),
            only_vegas.settled(scenario, states, alpha),
        ),
    )
