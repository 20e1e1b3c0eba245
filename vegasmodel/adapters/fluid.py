"""Adapter of the light simulator of differential equations."""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters.common import left_out
from vegasmodel.engines.fluid import continuous
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

NAME = "fluid"
KNOWN = ("window-not-limited", "one-ack-a-packet", "all-flows-present")  # the model has these


def answer(scenario: Scenario) -> Prediction:
    """Throughputs by simulation over ``warmup .. duration``."""
    try:
        run = continuous.run(scenario)
    except ValueError as error:  # more than the model has equations for
        return Prediction.not_applicable(NAME, scenario, str(error))
    if run.status != "done":
        reason = f"the integration ended early: {run.status}"
        return Prediction.not_applicable(NAME, scenario, reason)
    return Prediction(
        NAME,
        scenario,
        run.throughput,
        base_rtt=run.base_rtt,
        rtt_mean=run.rtt_mean,
        queue_mean=np.asarray(run.queue_mean),
        assumptions=tuple(a for a in left_out(scenario) if a.name not in KNOWN),
    )
