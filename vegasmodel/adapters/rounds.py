"""Predicts the flows' throughputs and delays in a scenario with the simulator ``rounds``.

The simulator moves groups of packets through a network of queues.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from vegasmodel.adapters import own_loop, resting_windows
from vegasmodel.adapters.common import (
    NOBODY_SENDS,
    endless,
    losses_end_growth,
    whole_thresholds,
    with_growth,
)
from vegasmodel.adapters.own_laws import own_laws_change, own_laws_repair
from vegasmodel.engines.rounds import answers, phases
from vegasmodel.results import scatter
from vegasmodel.results.assumption import Assumption, sends_after_warm_up
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

NAME = "rounds"
OTHER_STARTS = 4  # runs with other start times, for a scenario with estimates (``_of_starts``)


def answer(scenario: Scenario) -> Prediction:
    """Simulate the scenario, average from ``warmup`` to ``duration``, and test for phase effects.

    A phase effect occurs if packets of several flows always reach the queue in the same order. The
    same flow then loses packets again and again. Random waits of the senders prevent this. If phase
    effects are possible, the test simulates the scenario again with such waits, or without them if
    the scenario has them, and compares the results (``phases.effects``). If values of the scenario
    are estimates, other start times may be tried, too (``_of_starts``).
    """
    found = figures(scenario)
    if not found.applicable:
        return found
    note = phases.effects(scenario, found)
    notes = tuple(
        _of_starts(scenario, found, each) if each.name == "insensitive-to-starts" else each
        for each in found.assumptions
    )
    return dataclasses.replace(found, assumptions=(*notes, note))


def _of_starts(scenario: Scenario, found: Prediction, note: Assumption) -> Assumption:
    """The assumption ``insensitive-to-starts``, tested with other start times where this matters.

    If nothing in a scenario is random, a single run gives the exact outcome, but only if each value
    of the scenario is exact. A slightly wrong RTT or start time has the same effect as other
    starts: packets meet the full queue in another order, which may lead to another outcome (see
    ``phases``). So if values are estimates, the scenario is simulated ``OTHER_STARTS`` more times,
    with each start delayed at random by up to the longest RTT. In other cases ``note``, what the
    runs of ``found`` say about the assumption, is the result.
    """
    exact = scenario.estimated_from is None
    if exact or scenario.by_chance or not phases.possible(scenario, found):
        return note
    delay = max(member.rtt for member in scenario.members)
    run = dataclasses.replace(scenario.run, start_jitter=delay, runs=OTHER_STARTS)
    moved = dataclasses.replace(scenario, run=run)
    others = answers.answer(moved)
    if others.extra.get("status", "done") != "done":
        return note
    rates = np.vstack([found.extra["throughput_runs"][:1], others.extra["throughput_runs"]])
    tested = scatter.insensitive(moved, rates)
    detail = f"starts were moved by up to {delay:.3g} s in all runs but the first; {tested.detail}"
    return dataclasses.replace(tested, detail=detail)


def figures(scenario: Scenario, enough: answers.Enough | None = None) -> Prediction:
    """The simulator's prediction for a scenario, without the test for phase effects.

    The prediction has no throughputs if the simulation ends early, or if no flow sends after the
    warm-up. If the outcome of a run is random and the scenario does not give the number of runs,
    the function ``enough`` is called after each run from the second on. Its argument is a list of
    the predictions of all runs so far. If it returns True, no further run is made.
    """
    found = answers.answer(scenario, enough=enough)
    if found.extra.get("status", "done") != "done":
        detail = endless(scenario)
        reason = f"{detail}; give a buffer or a max_window" if detail else found.extra["status"]
        return Prediction.not_applicable(NAME, scenario, f"the simulation ended early: {reason}")
    if found.throughput is not None and np.isnan(np.asarray(found.throughput)).all():
        return Prediction.not_applicable(NAME, scenario, NOBODY_SENDS)
    means = found.throughput, found.rtt_mean, found.base_rtt, found.extra.get("kept")
    lost = found.loss_rate is None or bool(np.nan_to_num(found.loss_rate).any())
    of_user_laws = (
        *own_laws_repair(scenario, found.loss_rate),
        *own_laws_change(scenario, *means),
    )
    notes = (
        losses_end_growth(scenario),
        own_loop.settles(scenario, *means, lost=lost),
        whole_thresholds(scenario),
        resting_windows.reached(scenario, *means[:3], found.loss_rate),
        *of_user_laws,
        *sends_after_warm_up(scenario, found.throughput),
    )
    found = dataclasses.replace(found, assumptions=(*found.assumptions, *notes))
    return with_growth(found)
