"""Adapter of the light simulator of differential equations."""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters.common import left_out, one_recovery
from vegasmodel.engines.fluid import continuous
from vegasmodel.prediction import Assumption, Prediction
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
        assumptions=(_recovery(scenario, run), *_rest(scenario)),
    )


def _recovery(scenario: Scenario, run: continuous.ContinuousRun) -> Assumption:
    """The window's law has a cut, and in packets a rest of a round trip; no more of a recovery."""
    rest = continuous.in_packets(scenario, None)
    taken = f"a loss cuts the window at once{' and lets it rest a round trip' if rest else ''}"
    loss_based = np.array([member.flow.law != "vegas" for member in scenario.members])
    return one_recovery(scenario, taken, lost=bool(run.losses[loss_based].any()))


def _rest(scenario: Scenario) -> list[Assumption]:
    return [a for a in left_out(scenario) if a.name not in KNOWN]
