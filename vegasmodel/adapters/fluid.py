"""Predicts the flows' throughputs and delays in a scenario with the simulator ``fluid``.

The simulator integrates differential equations for the windows.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.adapters.common import NOBODY_SENDS, with_growth
from vegasmodel.adapters.fluid_assumptions import assumptions
from vegasmodel.engines.fluid.continuous import ContinuousRun
from vegasmodel.engines.fluid.methods import unsupported
from vegasmodel.engines.fluid.run import run as simulate
from vegasmodel.metrics import standard_error
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

NAME = "fluid"


def answer(scenario: Scenario) -> Prediction:
    """Simulate the scenario; average throughputs and delays from ``warmup`` to ``duration``.

    The prediction has no throughputs if the simulator cannot simulate the scenario or ends early,
    or if no flow sends between ``warmup`` and ``duration``.
    """
    obstacle = unsupported(scenario)
    if obstacle is not None:
        return Prediction.not_applicable(NAME, scenario, obstacle)
    run = simulate(scenario, math.inf)  # without curves
    if run.status != "done":
        reason = f"the integration ended early: {run.status}"
        return Prediction.not_applicable(NAME, scenario, reason)
    if np.isnan(run.throughput).all():
        return Prediction.not_applicable(NAME, scenario, NOBODY_SENDS)
    return of_run(scenario, run)


def of_run(scenario: Scenario, run: ContinuousRun) -> Prediction:
    """The prediction with the averages of a run, and whether each assumption holds in this run.

    ``run`` may hold means over several runs with different random numbers. The result then has the
    standard errors of the mean throughputs.
    """
    # [run, flow]
    runs = run.throughput[None] if run.throughput_runs is None else run.throughput_runs
    found = Prediction(
        NAME,
        scenario,
        run.throughput,
        throughput_se=standard_error(runs) if len(runs) > 1 else None,
        base_rtt=run.base_rtt,
        rtt_mean=run.rtt_mean,
        delivered=run.delivered,
        queue_mean=np.asarray(run.queue_mean),
        assumptions=assumptions(scenario, run),
        extra={"runs": len(runs), "throughput_runs": runs, "queue_runs": run.queue_runs},
    )
    return with_growth(found)
