"""Inverse problems: finds the value of a field with which a model meets a target.

The model is evaluated at many values of the field. Between two values where ``achieved - wanted``
changes sign, a root is searched. If the difference comes near zero and then moves away with the
same sign, it may have touched zero or crossed it twice in between; so more values are tried there.
Two roots are missed if they lie between neighbouring values and the differences at the values
around show no such turn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import comparison
from vegasmodel.engines.fluid.run import papers_only
from vegasmodel.fields.rules import Integer, listed
from vegasmodel.fields.units import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.prediction import Prediction, with_error
from vegasmodel.scatter import MIN_RUNS
from vegasmodel.scenario import Scenario, expect
from vegasmodel.stacks import STACKS
from vegasmodel.study import fields, points, targets
from vegasmodel.study.fields import Field
from vegasmodel.study.ranges import Range, of_field
from vegasmodel.study.scatter import answered, half_interval, run_rates, standard_error
from vegasmodel.study.targets import Target
from vegasmodel.support.html_table import html_table

__all__ = ["Design", "Solution", "design"]

EXACT = 1e-6  # of the target
SCAN = {
    "rounds": 13,
    "fluid": 33,
    **dict.fromkeys(comparison.ENGINES, 9),
}  # else SCAN_POINTS
SCAN_POINTS = 65
TURNS = 4  # times that values around turns are refined
COUNTED = ("buffer", "max_window", "initial_window")  # packets, which simulators count as whole
ERROR_PROBABILITY = 1e-2  # of the wrong side of the target, at which there are enough random runs
THRESHOLDS = ("alpha", "beta", "gamma")


@dataclass(frozen=True)
class Solution:
    """A value of the field that meets the target, and what the model answers there."""

    value: float
    unit: str
    achieved: float  # by the model, at exactly this value
    exact: bool  # the target is met to 1e-6 of it
    scenario: Scenario  # the scenario with this value
    achieved_se: float | None = None  # standard error over the runs, if they are random
    verified: dict[str, float | None] = field(default_factory=dict)
    verified_se: dict[str, float | None] = field(default_factory=dict)
    note: str = ""
    interval: tuple[float, float] | None = None  # every value scanned in it meets the target

    def to_json(self) -> dict[str, Any]:
        """The solution as an entry of the JSON document of the command ``design``."""
        return {
            "value": self.value,
            "unit": self.unit,
            "achieved": self.achieved,
            "achieved_se": self.achieved_se,
            "exact": self.exact,
            "interval": self.interval,
            "verified": self.verified,
            "verified_se": self.verified_se,
            "note": self.note or None,
        }


@dataclass(frozen=True)
class Design:
    """All values that were found; if there is none, the reason."""

    field: str
    target: str
    wanted: float
    model: str
    scanned: tuple[float, float]
    solutions: tuple[Solution, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """How many solutions were found: ``none``, ``one`` or ``several``."""
        return ("none", "one", "several")[min(len(self.solutions), 2)]

    def _repr_html_(self) -> str:
        notes = "; ".join([*(each.note for each in self.solutions if each.note), *self.notes])
        title = f"{self.field} for {self.target} = {self.wanted:g} by {self.model}"
        if not self.solutions:
            return html_table(f"{title}: no value, {self.reason}", [], [])
        others = list(dict.fromkeys(name for each in self.solutions for name in each.verified))
        rows = [
            [
                f"{each.value:.6g} {each.unit}".strip(),
                _shown(each.achieved, each.achieved_se),
                *(_shown(each.verified.get(n), each.verified_se.get(n)) for n in others),
            ]
            for each in self.solutions
        ]
        columns = [self.field, self.model, *others]
        return html_table(f"{title}: {notes}" if notes else title, columns, rows)

    def to_json(self) -> dict[str, Any]:
        """The JSON document of the command ``design``, without its schema."""
        return {
            "field": self.field,
            "target": self.target,
            "wanted": self.wanted,
            "model": self.model,
            "scanned": self.scanned,
            "solutions": [solution.to_json() for solution in self.solutions],
            "status": self.status,
            "reason": self.reason,
            "notes": list(self.notes),
        }


def _shown(value: float | None, error: float | None) -> str:
    return "-" if value is None else with_error(value, error)


def design(
    scenario: Scenario,
    solve: str,
    target: str,
    model: str = "rounds",
    *,
    between: tuple[float, float] | None = None,
    verify: Sequence[str] = ("rounds",),
    within: float = 0.05,
) -> Design:
    """The values of the field ``solve`` with which ``model`` meets ``target``.

    ``solve``: ``link.buffer``, ``flow.NAME.alpha``, ``link.queue.k``, ...  ``target``:
    ``share:GROUP=0.3``, ``ratio:a/b=1``, ``jain=0.95``, ``delay=20ms`` or ``utilization=0.95``.
    ``model``: a model of ``predict``, or ``ns2``.  ``between``: the ends of the range that is
    searched, in seconds, packets or packets per second (default: the usual range of the field).

    If the field holds whole numbers, or if the model's answer jumps, a target is seldom met within
    1e-6.  Then the best value is a solution if it meets the target within the fraction ``within``.
    Such a solution is not ``exact``, and its ``note`` says why.

    The models or simulators in ``verify`` are run at each solution; their results are in
    ``verified``.  If the scenario is random and does not give a number of runs, ns-2 and ns-3 run
    as often as ``rounds`` did at that value, and at least 3 times.

    If the results of the runs differ, ``achieved_se`` and ``verified_se`` are the standard errors
    of their means (not for ``delay``).  If half the 95 % interval is wider than ``within``, a note
    says that it is uncertain whether the solution meets the target.  Raises ``FieldError`` for bad
    input, ``ExtraMissing``, ``EngineMissing``.
    """
    expect(scenario)
    aim, where = targets.read(target, scenario), fields.find(scenario, solve)
    checks = listed(verify, "verify", "models")
    points.ready(model, *checks)
    others = [name for name in dict.fromkeys(checks) if name != model]
    if not where.number:
        raise FieldError("solve", solve, "a field that holds a number")
    if not 0 <= within < 1:
        raise FieldError("within", within, "a part of the target, at least 0 and less than 1")
    search = _Search(scenario, where, aim, model, of_field(scenario, where, between), within)
    solutions, notes = search.solutions()
    verified = tuple(_verified(search, each, others) for each in solutions)
    reason = None if solutions else search.why_none(notes)
    ends = (search.range.low, search.range.high)
    notes = notes if solutions else []
    return Design(solve, aim.name, aim.value, model, ends, verified, reason, tuple(notes))


class _Search:
    """The state of a search: the model's answers so far over the range of the field."""

    def __init__(
        self, scenario: Scenario, where: Field, aim: Target, model: str, span: Range, within: float
    ) -> None:
        self.scenario, self.field, self.aim, self.model = scenario, where, aim, model
        self.within, self.range = within, span
        self.whole = counted(scenario, where, model)
        self.x: Floats = np.empty(0)
        self.y: Floats = np.empty(0)  # achieved - wanted
        self.rough: set[float] = set()  # values at which only the side of the target is known
        self.made: dict[float, Prediction] = {}  # the simulator's answers
        self.reasons: dict[str, int] = {}  # why there is no answer, and at how many values

    def miss(self, x: NDArray[Any], *, whole: bool = False) -> Floats:
        """The model's answer minus the target at the values ``x`` of the field.

        Answers are kept, so the model is asked once per value.  ``whole``: as in ``_ask``.
        """
        flat = np.ravel(np.asarray(x, dtype=np.float64))
        y = np.full(flat.size, np.nan)
        new, place = np.unique(flat, return_inverse=True)
        known = dict(zip(self.x.tolist(), self.y.tolist(), strict=True))
        ask = np.array([value for value in new.tolist() if value not in known])
        if ask.size:
            answered = self._ask(ask, whole=whole)
            known |= dict(zip(ask.tolist(), answered.tolist(), strict=True))
            order = np.argsort(np.concatenate([self.x, ask]), kind="stable")
            self.x = np.concatenate([self.x, ask])[order]
            self.y = np.concatenate([self.y, answered])[order]
        y = np.array([known[value] for value in new.tolist()])[place]
        return y.reshape(np.shape(x))

    def _ask(self, x: Floats, *, whole: bool = False) -> Floats:
        """Evaluate the model at the values ``x`` of the field; return the answer minus the target.

        ``whole``: make all runs, even if a few runs show on which side of the target the answer is.
        """
        found, made = answered(self._points(x), self.model, None if whole else self._sided)
        self.made |= {value: one for value, one in zip(x.tolist(), made, strict=False) if one}
        for reason in found.reasons:
            if reason:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self.aim.of(found, self.scenario) - self.aim.value

    def _points(self, x: Floats) -> points.Points:
        integer = isinstance(self.field.plain, Integer)
        column = x.astype(np.int64) if integer else x
        return points.Points(self.scenario, (self.field,), (column,))

    def _sided(self, runs: Sequence[Prediction]) -> bool:
        """Whether these runs show, by Student's t, on which side of the target the mean lies."""
        from scipy.special import stdtrit

        made, n = runs[0].scenario, len(runs)
        value = float(self.field.of(made))
        figures = points.collected(self._points(np.full(n, value)), runs)
        miss = self.aim.of(figures, made) - self.aim.value
        error = miss.std(ddof=1) / math.sqrt(n)
        sure = bool(abs(miss.mean()) > stdtrit(n - 1, 1.0 - 0.5 * ERROR_PROBABILITY) * error)
        if sure:
            self.rough.add(value)
        return sure

    def _settle(self) -> bool:
        """Make all runs at the values that may be solutions; return whether runs were missing."""
        ends = [i for pair in self._met() for i in pair]
        ends += [self._nearer(*pair) for pair in self._crossings()]
        few = np.array([i for i in dict.fromkeys(ends) if self.x[i] in self.rough], np.intp)
        if few.size:
            self.y[few] = self._ask(self.x[few], whole=True)
            self.rough -= set(self.x[few].tolist())
        return bool(few.size)

    def solutions(self) -> tuple[list[Solution], list[str]]:
        """All solutions in the range, and notes on jumps of the answer past the target."""
        self.miss(self.range.values(SCAN.get(self.model, SCAN_POINTS), self.whole))
        if self.model not in comparison.ENGINES:
            for _ in range(TURNS if self.model != "rounds" else 1):
                self.miss(self._turns())
        self._follow()
        while self._settle():
            self._follow()
        found, notes = [], []
        for low, high in self._met():
            found.append(self._solution(low, high))
        steps: dict[int, list[str]] = {}  # jumps past the target, by the nearest value
        for left, right in self._crossings():
            near = self._nearer(left, right)
            if abs(self.y[near]) <= self.within * self.aim.value:
                steps.setdefault(near, []).append(self._step(left, right))
            else:
                notes.append(f"{self.aim.name} jumps {self._step(left, right)}")
        found += [self._nearest(near, said) for near, said in steps.items()]
        return sorted(found, key=lambda each: each.value), notes

    def _close(self) -> NDArray[np.bool_]:
        return np.abs(self.y) <= EXACT * self.aim.value

    def _met(self) -> list[tuple[int, int]]:
        """Stretches of values that all meet the target: the indices of first and last value."""
        inside = np.concatenate([[False], self._close(), [False]])
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    def _crossings(self) -> list[tuple[int, int]]:
        """Pairs of neighbouring values on opposite sides of the target, neither of which meets it.

        A pair is two indices.
        """
        y, close = self.y, self._close()
        with np.errstate(invalid="ignore"):
            across = (y[:-1] * y[1:] < 0) & ~close[:-1] & ~close[1:]
        return [(int(i), int(i) + 1) for i in np.flatnonzero(across)]

    def _nearer(self, left: int, right: int) -> int:
        return left if abs(self.y[left]) <= abs(self.y[right]) else right

    def _turns(self) -> Floats:
        """New values to try beside each value at which the answer comes near the target and turns.

        The answer may reach the target between that value and its neighbours.
        """
        x, y = self.x, self.y
        new: list[float] = []
        for i in range(1, x.size - 1):
            a, b, c = np.sign(y[i]) * y[i - 1 : i + 2]
            if np.isfinite([a, b, c]).all() and 0 < b <= min(a, c) and b < max(a, c):
                for low, high in ((x[i - 1], x[i]), (x[i], x[i + 1])):
                    new += np.linspace(low, high, 6)[1:-1].tolist()
        return self.range.rounded(np.array(new), self.whole)

    def _follow_integers(self) -> None:
        """Find neighbouring whole numbers with answers on opposite sides of the target.

        The search narrows each gap between two such values that are not neighbours.  In each step
        the model is evaluated at two values inside the gap, in parallel on two cores.  In the first
        step these are the whole numbers beside an estimated root.  The estimate takes the answer to
        be linear in the field's value, or in its logarithm if the range is logarithmic.  In later
        steps the two values divide the gap into thirds.
        """
        guessed = False
        while gaps := [(a, b) for a, b in self._crossings() if self.x[b] - self.x[a] > 1]:
            ask: list[float] = []
            for left, right in gaps:
                a, b = self.x[left], self.x[right]
                if guessed:
                    ask += [a + (b - a) / 3, b - (b - a) / 3]
                    continue
                part = self.y[left] / (self.y[left] - self.y[right])
                root = a * (b / a) ** part if self.range.log else a + (b - a) * part
                ask += [min(max(whole, a + 1), b - 1) for whole in (np.floor(root), np.ceil(root))]
            guessed = True
            self.miss(self.range.rounded(np.array(ask), whole=True), whole=True)

    def _follow(self) -> None:
        """Find the value of the field at each place where the answer crosses the target."""
        pairs = self._crossings()
        if not pairs:
            return
        if self.whole:
            self._follow_integers()
            return
        from scipy.optimize import elementwise

        a = np.array([self.x[i] for i, _ in pairs])
        b = np.array([self.x[j] for _, j in pairs])
        rough = self.model == "rounds" or self.model in comparison.ENGINES
        width = 1e-4 if rough else 4e-16
        root = elementwise.find_root(
            self.miss,
            (a, b),
            tolerances={"xatol": 0.0, "xrtol": width, "fatol": 0.0, "frtol": 0.0},
            maxiter=100,
        )
        good = np.isfinite(root.x)
        self.miss(np.concatenate([root.x[good], *(end[good] for end in root.bracket)]))

    def _solution(self, low: int, high: int) -> Solution:
        """The solution in a stretch of values that all meet the target (indices ``low .. high``).

        It is the scenario's own value of the field if the stretch contains that value, and else the
        best value.
        """
        inside = range(low, high + 1)
        own = self.field.of(self.scenario)
        best = min(inside, key=lambda i: (abs(self.y[i]), self.x[i]))
        wide = self.x[high] - self.x[low] > 1e-3 * abs(self.x[high])
        if not wide:
            return self._at(best)
        kept = [i for i in inside if self.x[i] == own]
        text = self._text(self.x[low]), self._text(self.x[high])
        note = f"every value tried from {text[0]} to {text[1]} meets the target"
        ends = (float(self.x[low]), float(self.x[high]))
        return dataclasses.replace(self._at(kept[0] if kept else best), note=note, interval=ends)

    def _at(self, i: int) -> Solution:
        value = float(self.x[i])
        exact = bool(self._close()[i])
        put = fields.put(self.scenario, {self.field: self.field.check(value)})
        made = self.made.get(value)
        error = standard_error(self.aim, made)
        achieved = float(self.y[i] + self.aim.value)
        return Solution(value, self.field.unit, achieved, exact, put, achieved_se=error)

    def unsure(self, model: str, error: float | None, runs: int) -> list[str]:
        """A note if ``runs`` runs are too few to tell whether the target is met within ``within``.

        ``error``: the standard error of the model's answer for the quantity that has the target.
        """
        if error is None or half_interval(error, runs) <= self.within * self.aim.value:
            return []
        half = half_interval(error, runs)
        return [
            f"doubtful: the 95 % interval of {runs} runs of {model} is {half:.2g} to either side, "
            f"more than {100 * self.within:g} % of the target"
        ]

    def _nearest(self, near: int, steps: list[str]) -> Solution:
        what = "no whole number meets it exactly" if self.whole else "the answer moves in steps"
        note = f"{what}: {self.aim.name} goes {' and '.join(steps)}"
        return dataclasses.replace(self._at(near), note=note)

    def _step(self, left: int, right: int) -> str:
        def at(i: int) -> str:
            digits = 2 if self.x[i] in self.rough else 6
            return f"{self.y[i] + self.aim.value:.{digits}g} at {self._text(self.x[i])}"

        return f"from {at(left)} to {at(right)}"

    def _text(self, value: float) -> str:
        digits = 12 if self.whole else 9
        return f"{value:.{digits}g} {self.field.unit}".strip()

    def why_none(self, jumps: list[str]) -> str:
        """Why no value in the range meets the target."""
        span = (
            f"{self.field.name} from {self._text(self.range.low)} to {self._text(self.range.high)}"
        )
        known = self.y[np.isfinite(self.y)] + self.aim.value
        first = next(iter(self.reasons), "it does not give this figure")
        if not known.size:
            return f"{self.model} has no answer at any value of {span}: {first}"
        low, high = float(known.min()), float(known.max())
        if known.size == 1:
            said = f"{self.model} answers at one value of {span}, with {self.aim.name} {low:.6g}"
        elif high - low <= EXACT * abs(high):
            said = f"{self.aim.name} is {low:.6g} over {span}: it does not depend on it"
        else:
            said = f"over {span}, {self.aim.name} goes from {low:.6g} to {high:.6g}"
        if jumps:
            said += f"; {'; '.join(jumps)}"
        missing = int(np.isnan(self.y).sum())
        if missing:
            said += f"; {self.model} has no answer at {missing} of {self.y.size} values: {first}"
        return said


def counted(scenario: Scenario, where: Field, model: str) -> bool:
    """Whether only whole numbers make sense for the field in this model.

    This is so for a number of flows and for a first window.  In a model that simulates single
    packets it is also so for every number of packets, and for Vegas's thresholds if the flow's
    stack rounds the backlog before it compares it with them.
    """
    if isinstance(where.plain, Integer) or where.key == "initial_window":
        return True
    simulated = model in ("rounds", *comparison.ENGINES)
    if model == "fluid":
        simulated = not papers_only(scenario)
    if not simulated or where.queue:
        return False
    if where.key in THRESHOLDS and where.part == "flow":
        return any(not STACKS[scenario.flows[i].variant].real_numbers for i in where.indices)
    return where.key in COUNTED


def _often(scenario: Scenario, runs: int) -> Scenario:
    """The scenario with ``runs`` runs, unless it gives a number of runs itself.

    If the scenario is random, it gets at least ``MIN_RUNS``.
    """
    if scenario.run.runs is not None:
        return scenario
    few = MIN_RUNS if scenario.by_chance else 1
    return scenario.replace({"run.runs": max(runs, few)})


def _verified(search: _Search, solution: Solution, others: Sequence[str]) -> Solution:
    """The solution, with what the models ``others`` answer at its value of the field.

    The answers are those for the quantity that has the target, such as a share.  Their standard
    errors are added, too.
    """
    figures: dict[str, float | None] = {}
    errors: dict[str, float | None] = {}
    notes = [solution.note] if solution.note else []
    runs = len(run_rates(search.made.get(solution.value)))
    doubts = search.unsure(search.model, solution.achieved_se, runs)
    for name in others:
        value = solution.value
        if counted(search.scenario, search.field, name) and not value.is_integer():
            value = max(float(round(value)), 1.0)
            notes.append(f"{name} was asked at {search._text(value)}, a whole number")
        scenario = search.scenario
        if name in comparison.ENGINES:
            scenario = _often(scenario, runs)
        asked = points.Points(scenario, (search.field,), (np.array([value]),))
        found, (made,) = answered(asked, name)
        runs = max(runs, len(run_rates(made)))
        figure = float(search.aim.of(found, search.scenario)[0])
        figures[name] = figure if math.isfinite(figure) else None
        errors[name] = standard_error(search.aim, made)
        doubts = doubts or search.unsure(name, errors[name], len(run_rates(made)))
        if figures[name] is None:
            notes.append(f"{name} has no answer: {found.reasons[0] or 'not this figure'}")
    note = "; ".join(notes + doubts)
    return dataclasses.replace(solution, verified=figures, verified_se=errors, note=note)
