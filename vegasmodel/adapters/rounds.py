"""Adapter of the event-driven simulator of packet trains."""

from __future__ import annotations

import dataclasses

from vegasmodel.engines.rounds import answers, phases
from vegasmodel.fields.units import FieldError
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

NAME = "rounds"


def answer(scenario: Scenario) -> Prediction:
    """Throughputs by simulation over ``warmup .. duration``, with and without phases."""
    try:
        found = answers.answer(scenario)
    except FieldError:  # a law of the user's that fails
        raise
    except ValueError as error:  # more than the engine simulates
        return Prediction.not_applicable(NAME, scenario, str(error))
    if found.extra.get("status", "done") != "done":
        reason = f"the simulation ended early: {found.extra['status']}"
        return Prediction.not_applicable(NAME, scenario, reason, found.assumptions)
    note = phases.effects(scenario, found)
    return dataclasses.replace(found, assumptions=(*found.assumptions, note))
