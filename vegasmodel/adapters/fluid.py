"""Adapter of the fluid simulators; ``fluid.trajectories.engine`` says which one answers."""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters.common import left_out
from vegasmodel.fluid import answers, continuous
from vegasmodel.fluid.trajectories import engine
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario


def answer(scenario: Scenario) -> Prediction:
    """Throughputs by simulation over ``warmup .. duration``."""
    try:
        if engine(scenario) == "rounds":
            return answers.answer(scenario)
        run = continuous.run(scenario)
    except ValueError as error:  # more than the engine simulates
        return Prediction.not_applicable("fluid", scenario, str(error))
    if run.status != "done":
        reason = f"the integration ended early: {run.status}"
        return Prediction.not_applicable("fluid", scenario, reason)
    known = ("window-not-limited", "one-ack-a-packet", "all-flows-present")
    return Prediction(
        "fluid",
        scenario,
        run.throughput,
        base_rtt=run.base_rtt,
        rtt_mean=run.rtt_mean,
        queue_mean=np.asarray(run.queue_mean),
        assumptions=tuple(a for a in left_out(scenario) if a.name not in known),
        extra={"engine": "continuous"},
    )
