"""Finds the values of a scenario's field that meet a target, such as a share or a delay.

``design`` searches with one model. Other models or simulators can then check the values found.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from vegasmodel import measurement, same_case
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Quantity, listed
from vegasmodel.results.scatter import MIN_RUNS
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study import fields, models, no_effect, targets
from vegasmodel.study.ranges import of_field
from vegasmodel.study.scatter import answered, half_interval, run_rates, standard_error
from vegasmodel.study.search import outcome, texts
from vegasmodel.study.search.scan import scan
from vegasmodel.study.search.tried import Tried, counted
from vegasmodel.study.solutions import Design, Interval, Solution
from vegasmodel.support import progress

__all__ = ["design"]

NOTED_DIFFERENCE = 0.1  # of the target: a greater difference between two models is worth a note


def design(
    scenario: Scenario,
    solve: str,
    target: str,
    model: str = "rounds",
    *,
    between: tuple[float, float] | None = None,
    verify: str | Sequence[str] = ("rounds",),
    within: float = 0.05,
) -> Design:
    """Find the values of the field ``solve`` with which ``model`` meets ``target``.

    - ``solve``: a field, such as ``link.buffer``, ``flow.NAME.alpha`` or ``link.queue.k``.  If the
      scenario has alpha = beta, then beta changes with alpha, and a note says so.
    - ``target``: ``share:GROUP=0.3``, ``throughput:GROUP=5Mbit/s``, ``ratio:a/b=1``, ``jain=0.95``,
      ``delay=20ms`` or ``utilization=0.95``.  A share is one of all delivered bytes, and a
      throughput that of all flows of the group together, in Mbit/s.  ``share:A+B`` is the share of
      two groups together, and ``share:law:LAW`` that of all flows of a law.  ``ratio:A+B/law:LAW``
      is the mean throughput of a flow of the groups A and B, divided by that of a flow with the
      law.  A delay and a utilization are of the first link, or of the link that is named, as in
      ``delay:LINK=20ms``.  A bound has ``>=`` or ``<=`` in place of ``=``, as in
      ``share:GROUP>=0.3``.
    - ``model``: a model of ``predict``, or the packet-level simulator ``ns2`` or ``ns3``.
    - ``between``: the ends of the range that is searched, in seconds, packets or packets per second
      (default: the usual range of the field).

    A solution is ``exact`` if the model's value of the target's quantity differs from the target by
    at most 1e-6 of the target.  This is seldom possible if the field holds whole numbers, or if the
    quantity jumps as the field varies.  In these cases a value of the field is also a solution if
    the difference is at most the fraction ``within`` of the target.  Its ``note`` says why it is
    not exact.

    The values that meet a bound form intervals; ``intervals`` of the result has them, and
    ``solutions`` their ends.  An interval may reach to an end of the searched range.  What lies
    beyond the range, or between two values tried, is not known.

    ``verify`` is the name of another model or simulator, or a list of such names. Each is evaluated
    at each solution, or at the nearest whole number if it takes only whole numbers for the field.
    If the scenario has random elements and gives no number of runs, ns-2 and ns-3 make at least 3
    runs. A solution's ``achieved`` is the quantity by ``model``, and its ``verified`` has the
    quantities by the other models:

    - If one of these differs from ``achieved`` by more than 10 % of the target (or ``within``, if
      that is more), the solution's ``note`` says so.
    - If one differs by more than the whole target, the value is no solution: ``rejected`` of the
      result has it. But it stays a solution if the 95 % confidence intervals may explain the
      difference, or if the target is a bound that the other model meets, too.
    - An interval is left out if both of its ends are rejected.

    With several runs, ``achieved_se`` and ``verified_se`` are the standard errors of ``achieved``
    and ``verified``.  If half the width of a 95 % confidence interval is more than ``within`` times
    the target, a note says that the solution is doubtful.

    If the runs scatter, a value of the field is also a solution under two conditions: the quantity
    differs from the target by at most the fraction ``within``, and its 95 % confidence interval
    contains the target. Several such values are one solution, unless the quantity clearly moves
    away from the target between them. The solution's ``interval`` then has their ends, and its
    ``note`` says so.

    A target may have several solutions. The search may miss one between two of the values that it
    tries; ``scanned`` and ``tried`` of the result have their range and number. With a narrower
    ``between``, the values tried lie closer together. A note names each value at which the 95 %
    confidence interval of several runs contains the target, because a solution may be there.

    If some assumptions of ``model`` do not hold at a solution, ``broken`` has their names, and a
    note of the result says so.  Another note says if ns-2 or ns-3 runs another Vegas than the
    models (``same-vegas``).  A note says if a key of the scenario has no effect.  A note also warns
    if the target's GROUP is the name of a law, such as ``vegas``, and other groups have this law,
    too.

    Raises ``FieldError`` for bad input, and ``ExtraMissing`` or ``EngineMissing`` if a model needs
    something that is not installed.
    """
    expect(scenario)
    aim, field = targets.read(target, scenario), fields.find(scenario, solve, "solve")
    checks = [verify] if isinstance(verify, str) else listed(verify, "verify", "models")
    for each in checks:
        models.check_model(each, "verify")
    models.ready(model, *checks)
    verifiers = [name for name in dict.fromkeys(checks) if name != model]
    if not field.number:
        raise FieldError("solve", solve, "a field that holds a number")
    Quantity("fraction", high=1.0).check(within, "within")
    if within == 1.0:
        raise FieldError("within", within, "a part of the target, at least 0 and less than 1")
    span = of_field(scenario, field, between)
    with progress.counting(0) as count:
        tried = Tried(scenario, field, aim, model, span, within, count)
        scan(tried)
        notes: list[str] = []
        intervals: list[Interval] = []
        if aim.sense == "=":
            solutions, notes = outcome.solutions(tried)
        else:
            solutions, intervals = outcome.intervals(tried)
        verified = tuple(
            _verified(tried, _with_phase_effects(tried, each), verifiers) for each in solutions
        )
    reason = None if solutions else texts.why_none(tried, notes)
    moved_with_alpha = [
        f"the beta of {name} changes with its alpha" for name in field.moves_beta(scenario)
    ]
    ends = [{field.name: value} for value in (tried.values[0], tried.values[-1])]
    unused = [text.removesuffix(".") for text in no_effect.sentences(scenario, ends)]
    all_notes = [*aim.notes(scenario), *moved_with_alpha, *unused]
    if solutions:
        all_notes += [*notes, *_notes_on_solutions(tried, verified, verifiers)]
    rejected = tuple(each for each in verified if each.rejected_by)
    refused = {each.value for each in rejected}
    # an interval is left out only if both of its ends are rejected
    accepted = tuple(each for each in intervals if not {each.low, each.high} <= refused)
    if rejected and len(rejected) == len(verified):
        names = ", ".join(dict.fromkeys(name for each in rejected for name in each.rejected_by))
        reason = f"wherever {model} meets the target, {names} disagrees by more than the target"
    return Design(
        field=solve,
        target=aim.name,
        wanted=aim.value,
        model=model,
        scanned=(span.low, span.high),
        solutions=tuple(each for each in verified if not each.rejected_by),
        reason=reason,
        notes=tuple(all_notes),
        tried=tried.values.size,
        sense=aim.sense,
        intervals=accepted,
        rejected=rejected,
    )


def _with_enough_runs(scenario: Scenario, runs: int) -> Scenario:
    """A copy of the scenario with ``runs`` runs, or with ``MIN_RUNS`` runs if that is more.

    If no random numbers affect the runs, one run is enough in place of ``MIN_RUNS``.  If the
    scenario gives a number of runs itself, it is returned unchanged.
    """
    if scenario.run.runs is not None:
        return scenario
    least_runs = MIN_RUNS if scenario.by_chance else 1
    return scenario.replace({"run.runs": max(runs, least_runs)})


def _notes_on_solutions(
    tried: Tried, solutions: Sequence[Solution], verifiers: Sequence[str]
) -> list[str]:
    """Notes for a search that has found solutions.

    They say, in this order:

    - at how many tried values the model has no result;
    - at which values the scatter of runs may hide another solution;
    - at which solutions assumptions of the model do not hold;
    - whether one of the models ``verifiers`` runs another Vegas than the model.
    """
    broken = [
        f"{f'{each.value:.6g} {each.unit}'.strip()}: these assumptions of {tried.model} do not "
        f"hold: {', '.join(each.broken)}"
        for each in solutions
        if each.broken
    ]
    return [
        *texts.gaps(tried),
        *texts.hidden(tried, [each.value for each in solutions]),
        *broken,
        *same_case.other_vegas(tried.scenario, (tried.model, *verifiers)),
    ]


def _with_phase_effects(tried: Tried, solution: Solution) -> Solution:
    """Test the assumption ``phase-effects`` of ``rounds`` at a solution that the search has found.

    If it does not hold, the returned solution has it among its broken assumptions.  The search
    itself does not test it, because the test simulates the scenario again.
    """
    prediction = tried.predictions.get(solution.value)
    if tried.model != "rounds" or prediction is None:
        return solution
    from vegasmodel.engines.rounds import phases  # loads its machine code

    note = phases.effects(prediction.scenario, prediction)
    broken = (*solution.broken, *([note.name] if note.holds is False else ()))
    return dataclasses.replace(solution, broken=broken)


def _verified(tried: Tried, solution: Solution, others: Sequence[str]) -> Solution:
    """Evaluate other models at a solution that one model has found, and add their results to it.

    ``others`` are the names of the other models. For each, the target's quantity, such as a share,
    is added, with its standard error if that is known. The solution's note gets a remark in these
    cases:

    - The other model takes only whole numbers for the field, so the value was rounded for it.
    - It has no result, or its quantity is far from that of the first model.
    - The load of the link is low (``texts.idle``).
    - A standard error is so large that the solution is doubtful.

    The solution's ``rejected_by`` names the models that reject it (``_rejects``).
    """
    figures: dict[str, float | None] = {}  # the quantity by each of the other models
    errors: dict[str, float | None] = {}
    notes = [solution.note] if solution.note else []
    notes += texts.idle(tried, solution.value)
    runs = len(run_rates(tried.predictions.get(solution.value)))  # 0 if the model makes no runs
    doubts = texts.doubts(tried, tried.model, solution.achieved_se, runs)
    rejecting = []  # the models that reject the solution
    for name in others:
        value = solution.value
        if counted(tried.scenario, tried.field, name) and not value.is_integer():
            value = max(float(round(value)), 1.0)
            there = texts.with_unit(tried, value)
            notes.append(f"{name} was evaluated at {there}, because it takes only whole numbers")
        scenario = tried.scenario
        if name in measurement.ENGINES:
            scenario = _with_enough_runs(scenario, runs)
        points = tried.points_at(np.array([value]), scenario)
        found, (prediction,) = answered(points, name, tried.count)
        runs = max(runs, len(run_rates(prediction)))
        figure = float(tried.target.of(found, tried.scenario)[0])
        figures[name] = figure if math.isfinite(figure) else None
        errors[name] = standard_error(tried.target, prediction)
        doubts = doubts or texts.doubts(tried, name, errors[name], len(run_rates(prediction)))
        if figures[name] is None:
            notes.append(f"{name} has no answer: {found.reasons[0] or 'not this figure'}")
        elif (
            abs(figure - solution.achieved)
            > max(tried.within, NOTED_DIFFERENCE) * tried.target.value
        ):
            texts_of_two = tried.target.text(figure, 3), tried.target.text(solution.achieved, 3)
            notes.append(
                f"{name} disagrees with {tried.model}: {texts_of_two[0]}, not {texts_of_two[1]}"
            )
            error = errors[name]
            half_width = half_interval(error, len(run_rates(prediction))) if error else 0.0
            if _rejects(tried, solution, figure, half_width):
                rejecting.append(name)
    note = "; ".join(notes + doubts)
    return dataclasses.replace(
        solution, verified=figures, verified_se=errors, note=note, rejected_by=tuple(rejecting)
    )


def _rejects(tried: Tried, solution: Solution, figure: float, half_width: float) -> bool:
    """Whether another model, by which the target's quantity is ``figure``, rejects a solution.

    It does if the quantities by the two models differ by more than the target, and by more than the
    95 % confidence intervals of the two explain. ``half_width`` is half the width of the other
    model's interval. But if the target is a bound that ``figure`` meets, too, the other model does
    not reject the solution.
    """
    by_chance = half_width + tried.half_width_at.get(solution.value, 0.0)
    far = abs(figure - solution.achieved) - by_chance > tried.target.value
    return far and not tried.target.within_bound(figure)
