"""Predicts the flows' throughputs and delays in a scenario with the simulator ``rounds``.

The simulator moves groups of packets through a network of queues.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from vegasmodel.adapters.common import (
    NOBODY_SENDS,
    losses_end_growth,
    settles,
    whole_thresholds,
    with_growth,
)
from vegasmodel.engines.rounds import answers, phases
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

NAME = "rounds"


def answer(scenario: Scenario) -> Prediction:
    """Simulate the scenario, average from ``warmup`` to ``duration``, and test for phase effects.

    A phase effect occurs if packets of several flows arrive at the queue in a fixed order, so that
    always the same flow loses. The test repeats the simulation: with random waits of the senders if
    the scenario has none, and without them if it has some (``phases.effects``).
    """
    found = figures(scenario)
    if not found.applicable:
        return found
    note = phases.effects(scenario, found)
    return dataclasses.replace(found, assumptions=(*found.assumptions, note))


def figures(scenario: Scenario, enough: answers.Enough | None = None) -> Prediction:
    """The simulator's prediction for a scenario, without the test for phase effects.

    That test would double the time. ``enough`` is a function of the predictions of all runs so far:
    it says whether no further run is needed.
    """
    found = answers.answer(scenario, enough=enough)
    if found.extra.get("status", "done") != "done":
        reason = f"the simulation ended early: {found.extra['status']}"
        return Prediction.not_applicable(NAME, scenario, reason, found.assumptions)
    if found.throughput is not None and np.isnan(np.asarray(found.throughput)).all():
        return Prediction.not_applicable(NAME, scenario, NOBODY_SENDS, found.assumptions)
    notes = (losses_end_growth(scenario), settles(scenario), whole_thresholds(scenario))
    found = dataclasses.replace(found, assumptions=(*found.assumptions, *notes))
    return with_growth(found)
