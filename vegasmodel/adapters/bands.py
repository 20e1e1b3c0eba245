"""Computes the range of each Vegas flow's rate in equilibrium, by the model ``bands``.

The model is for scenarios in which all flows are Vegas and share a single link. Vegas leaves its
window unchanged while its backlog is in a certain range: from alpha to beta, or a wider range if
the TCP implementation rounds the backlog. So there are many equilibria. The model gives the least
and the greatest rate that each flow has in any of these equilibria.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import only_vegas, rest
from vegasmodel.adapters.arrivals import arrive, quasi_static
from vegasmodel.adapters.common import column, rtts, threshold
from vegasmodel.equilibrium import bands as threshold_bands
from vegasmodel.equilibrium import secular
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import by_start
from vegasmodel.stacks import dead_zone
from vegasmodel.status import Status

MAX_BAND = 4000  # flows; time and memory grow with the square of their number


def bands(scenario: Scenario) -> Prediction:
    """Each flow's least and greatest rate over all equilibria.

    Vegas keeps its window while its backlog is in its dead zone, about from alpha to beta
    (``stacks.dead_zone``). So there may be many equilibria. If flows measure their baseRTT, their
    over-estimates may differ between equilibria. The results are then bounds, and the true range
    may be smaller. ``throughput`` is that of the equilibrium with all backlogs in the middle of
    their dead zones.
    """
    reason = only_vegas.reason_against(scenario)
    if reason is None and len(scenario.members) > MAX_BAND:
        reason = f"the ranges are computed for at most {MAX_BAND} flows"
    if reason is not None:
        return Prediction.not_applicable("bands", scenario, reason)
    alpha, beta = (column(scenario, value) for value in (lambda f: f.alpha, lambda f: f.beta))
    variant, rtt, c = scenario.flows[0].variant, rtts(scenario), scenario.links[0].capacity
    edges = dead_zone(alpha, beta, variant)
    if np.any(edges[0] < 0.0) or np.all(edges[0] == 0.0):
        reason = (
            "Vegas may keep its window without a packet in the queue, so nothing determines the "
            "least queue"
        )
        return Prediction.not_applicable("bands", scenario, reason)
    # by how much each flow's baseRTT is too long, s, as it includes the queue of earlier flows:
    # if these keep their least (``x_low``) or their greatest (``x_high``) backlogs
    (x_low, _), (x_high, states) = (only_vegas.over_estimates(scenario, edge) for edge in edges)
    low, high = (
        threshold_bands.equilibria(alpha, beta, x, c, rtt=rtt, variant=variant)
        for x in (x_low, x_high)
    )
    if np.array_equal(x_low, x_high):
        least, greatest = low.rate_range
    else:  # the over-estimates depend on the backlogs that the earlier flows happen to keep
        least, greatest = threshold_bands.outer_range(low, high)
    x, _ = only_vegas.over_estimates(scenario, threshold(scenario))
    middle = secular.solve(
        threshold(scenario), x, c, rtt=rtt, variant=only_vegas.equation(scenario)
    )
    return Prediction(
        "bands",
        scenario,
        middle.rates,
        throughput_range=np.stack([least, greatest], axis=-1),
        base_rtt=rtt + x,
        assumptions=(
            only_vegas.fits(scenario, x_high, states, c * high.delay_range[1]),
            *_one_equilibrium(scenario, x, middle.rates, float(middle.delay), edges),
            *_bases_of_equilibria(scenario),
            rest.together(scenario),
            *only_vegas.hypotheses(scenario, middle.rates, one_threshold=False),
            only_vegas.settled(scenario, states, edges[1]),
        ),
    )


def _one_equilibrium(
    scenario: Scenario, x: Floats, rates: Floats, delay: float, edges: tuple[Floats, Floats]
) -> list[Assumption]:
    """The assumption ``many-packets-queued``: a few packets in the queue hardly change the rates.

    It is tested (``only_vegas.many_packets``) only if no flow has a range of backlogs, so that
    there is one equilibrium. Otherwise the model gives a range for each rate, which is mostly wider
    than the effect of a few packets, and the result is an empty list.

    ``x`` [n] are the over-estimates of baseRTT in s, ``rates`` [n] the rates in pkt/s, and
    ``delay`` the queueing delay in s. ``edges`` are the ends of the ranges of backlogs, packets.
    """
    if not np.array_equal(*edges):
        return []
    return [only_vegas.many_packets(scenario, x, rates, delay)]


def _bases_of_equilibria(scenario: Scenario) -> list[Assumption]:
    """The assumption ``quasi-static`` of ``bands``: late flows find the queue of an equilibrium.

    While a late flow is in slow start, its bursts may make earlier flows reduce their windows. The
    queue is then short between the bursts, and the late flow measures a smaller baseRTT than the
    model assumes. If all RTTs are equal, the rates that the packet simulator ``rounds`` computes
    still lie within the ranges of the model. If RTTs differ, some lie outside, so it is not known
    whether the assumption holds. Returns an empty list if RTTs are equal, or if no such bursts are
    expected.
    """
    measured = rest.measures(scenario)  # [flow] whether it measures its baseRTT
    several_starts = len({m.start for m in scenario.members}) > 1
    if not several_starts or not measured.all() or len({m.rtt for m in scenario.members}) == 1:
        return []
    state, path = arrive(scenario)
    if state.status != Status.DONE:
        return []
    if quasi_static(scenario, by_start(scenario), path).holds:
        return []
    detail = (
        "after bursts of a new flow's slow start the queue may be short for a moment; the new flow "
        "then measures a smaller baseRTT"
    )
    return [Assumption("quasi-static", None, detail)]
