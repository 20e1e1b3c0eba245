"""Searches for the values of a field with which a model meets a target.

The target is a wanted value of a quantity, such as a flow's share. The model predicts this quantity
for many values of the field. If the quantity crosses the target between two neighbouring values,
the search narrows the interval. It ends at a value that meets the target, or at a jump across the
target.

The quantity may also come nearer to the target and move away again. It may then reach the target
between the values tried, so more values are tried there (not with ns-2 and ns-3).

If the quantity crosses the target twice between two neighbouring values, the search may miss both
crossings.

The quantity may be random: a mean over a few runs. Then a value of the field also counts as a
solution if the quantity is within a tolerance of the target (``within``), and its 95 % confidence
interval contains the target. The search does not go on near such a value, because chance alone
would decide where the quantity crosses the target. Several such values are one solution if at no
value between them the quantity is surely farther from the target.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import measurement
from vegasmodel.engines.fluid.run import papers_only
from vegasmodel.fields.rules import Integer
from vegasmodel.fields.units import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.study import fields, points
from vegasmodel.study.fields import Field
from vegasmodel.study.ranges import Range
from vegasmodel.study.scatter import answered, half_interval, run_rates, standard_error
from vegasmodel.study.solutions import Interval, Solution
from vegasmodel.study.targets import Target
from vegasmodel.support.progress import Count

__all__ = ["Search", "counted"]

EXACT = 1e-6  # of the target
SCAN = {  # values tried first; with other models SCAN_POINTS
    "rounds": 13,
    "fluid": 33,
    **dict.fromkeys(measurement.ENGINES, 9),
}
SCAN_POINTS = 65
TURNS = 4  # times that more values are tried around turns (not for ``rounds``: once)
COUNTED = ("buffer", "max_window", "initial_window")  # packets, which simulators count as whole
ERROR_PROBABILITY = 1e-2  # significance level of the test in ``_sided``
THRESHOLDS = ("alpha", "beta", "gamma")


class Search:
    """A search for the values of a field with which a model meets a target.

    The target is a wanted value of a quantity, such as a share.  ``x`` holds all values of the
    field that were tried, sorted.  ``y`` holds the model's value of the quantity at each of them,
    minus the target (NaN if the model has no result).  ``count`` counts the values for the progress
    line.
    """

    def __init__(
        self,
        scenario: Scenario,
        where: Field,
        aim: Target,
        model: str,
        span: Range,
        within: float,
        count: Count,
    ) -> None:
        self.scenario, self.field, self.aim, self.model = scenario, where, aim, model
        self.within, self.range, self.count = within, span, count
        self.whole = counted(scenario, where, model)  # whether only whole numbers are tried
        if self.whole and math.ceil(span.low) > math.floor(span.high):
            ends = f"{span.low:g}:{span.high:g}"
            raise FieldError("between", ends, f"a range with a whole number, for {model}")
        self.x: Floats = np.empty(0)
        self.y: Floats = np.empty(0)  # achieved - wanted
        self.rough: set[float] = set()  # values at which only the side of the target is known
        self.made: dict[float, Prediction] = {}  # by value
        self.halves: dict[float, float] = {}  # by value: half the 95 % interval
        self.broken: dict[float, tuple[str, ...]] = {}  # by value: assumptions that do not hold
        self.reasons: dict[str, int] = {}  # why there is no answer, and at how many values

    def miss(self, x: NDArray[Any], *, whole: bool = False) -> Floats:
        """The model's quantity minus the target, at each value of the field in ``x``.

        The model is evaluated only at values that were not tried before; these are added to
        ``self.x`` and ``self.y``.  With ``whole``, the simulator ``rounds`` makes all runs, even if
        a few already show on which side of the target the quantity is (``_ask``).
        """
        flat = np.ravel(np.asarray(x, dtype=np.float64))
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
        """Evaluate the model at each value in ``x``; return the target's quantity minus the target.

        The simulator ``rounds`` may make several runs for a value, and the quantity is their mean.
        By default it stops once the runs show whether the mean lies above or below the target. With
        ``whole``, it makes all runs.

        Predictions are kept in ``self.made``, and reasons for missing ones in ``self.reasons``.
        """
        enough = None if whole else self._sided
        found, made = answered(self._points(x), self.model, self.count, enough)
        self.made |= {value: one for value, one in zip(x.tolist(), made, strict=False) if one}
        for value in (value for value, one in zip(x.tolist(), made, strict=False) if one):
            error, runs = standard_error(self.aim, self.made[value]), self.made[value].runs
            self.halves[value] = half_interval(error, runs) if error else 0.0
        names = [tuple(each.split()) for each in found.broken]
        self.broken |= dict(zip(x.tolist(), names, strict=True))
        for reason in found.reasons:
            if reason:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self.aim.of(found, self.scenario) - self.aim.value

    def _points(self, x: Floats) -> points.Points:
        integer = isinstance(self.field.plain, Integer)
        column = x.astype(np.int64) if integer else x
        return points.Points(self.scenario, (self.field,), (column,))

    def _sided(self, runs: Sequence[Prediction]) -> bool:
        """Whether these runs show on which side of the target the mean lies (Student's t-test).

        ``runs`` holds one prediction for each run, all for the same value of the field. If the runs
        show it, no more runs are made, and the value is added to ``self.rough``.
        """
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
        """Make all runs of ``rounds`` at each value that may be a solution.

        At some values ``rounds`` made only a few runs, because they showed on which side of the
        target the mean lies. A solution needs the mean of all runs. Returns whether any of the
        values had too few runs.
        """
        if self.aim.sense == "=":
            ends = [i for pair in self._met() for i in pair]
            ends += [self._nearer(*pair) for pair in self._crossings()]
        else:
            ends = [i for pair in self._held() for i in pair]
        few = np.array([i for i in dict.fromkeys(ends) if self.x[i] in self.rough], np.intp)
        if few.size:
            self.y[few] = self._ask(self.x[few], whole=True)
            self.rough -= set(self.x[few].tolist())
        return bool(few.size)

    def solutions(self) -> tuple[list[Solution], list[str]]:
        """Find the solutions in the range; return them in the order of their values, and notes.

        A note tells of a jump without a solution: at two neighbouring values the model's quantity
        lies on different sides of the target, but at neither near enough to be a solution.
        """
        self._look()
        found: dict[int, Solution] = {}  # by the index of the value
        notes = []
        for low, high in self._met():
            one = self._solution(low, high)
            found[int(np.searchsorted(self.x, one.value))] = one
        steps: dict[int, list[str]] = {}  # jumps past the target, by the nearest value
        for left, right in self._crossings():
            near = self._nearer(left, right)
            if abs(self.y[near]) <= self.within * self.aim.value:
                steps.setdefault(near, []).append(self._step(left, right))
            else:
                notes.append(f"{self.aim.name} jumps {self._step(left, right)}")
        found |= {near: self._nearest(near, said) for near, said in steps.items()}
        across = set(found)
        for i in np.flatnonzero(self._open()).tolist():
            note = f"the 95 % interval of its {len(run_rates(self.made.get(self.x[i])))} runs "
            found.setdefault(i, dataclasses.replace(self._at(i), note=f"{note}contains the target"))
        places = self._places(sorted(found))
        return [self._merged(found, place, across) for place in places], notes

    def intervals(self) -> tuple[list[Solution], list[Interval]]:
        """Find the values in the range that meet a target such as ``share:vegas>=0.3``.

        Returns the ends of the intervals that these values form, and the intervals.
        """
        self._look()
        chance, last = self._open(), self.x.size - 1
        found = [
            Interval(
                float(self.x[low]),
                float(self.x[high]),
                float(self.x[low - 1]) if low > 0 else None,
                float(self.x[high + 1]) if high < last else None,
                int(chance[low : high + 1].sum()),
            )
            for low, high in self._held()
        ]
        ends = dict.fromkeys(i for pair in self._held() for i in pair)
        return [self._at(i) for i in ends], found

    def _held(self) -> list[tuple[int, int]]:
        """The ranges of neighbouring tried values that meet a bound such as ``share:vegas>=0.3``.

        A range is given by the indices of its first and last value.  A value at which chance
        decides on which side of the target the quantity is does not split a range.
        """
        slack = EXACT * self.aim.value
        with np.errstate(invalid="ignore"):
            met = self.y >= -slack if self.aim.sense == ">=" else self.y <= slack
        held = []
        for low, high in _runs(met | self._open()):
            inside = low + np.flatnonzero(met[low : high + 1])
            held += [(int(inside[0]), int(inside[-1]))] if inside.size else []
        return held

    def _look(self) -> None:
        """Evaluate the model over the range, and near each place where it crosses the target."""
        self.miss(self.range.values(SCAN.get(self.model, SCAN_POINTS), self.whole))
        if self.model not in measurement.ENGINES:
            for _ in range(1 if self.model == "rounds" or any(self.halves.values()) else TURNS):
                self.miss(self._turns())
        self._follow()
        while self._settle():
            self._follow()

    def _open(self) -> NDArray[np.bool_]:
        """At which values the quantity is near the target, and chance decides on which side."""
        half = np.array([self._half(i) for i in range(self.x.size)])
        near = np.minimum(half, self.within * self.aim.value)
        with np.errstate(invalid="ignore"):
            return np.asarray((half > 0) & (np.abs(self.y) <= near))

    def _places(self, found: list[int]) -> list[list[int]]:
        """Group the indices of solutions; those that chance alone keeps apart are one place.

        Chance keeps two solutions apart if at no value between them the quantity is surely farther
        from the target than at the two.
        """
        half = np.array([self._half(i) for i in range(self.x.size)])
        places: list[list[int]] = []
        for i in found:
            if places and half[i] > 0:
                before, between = places[-1][-1], slice(places[-1][-1] + 1, i)
                most = max(abs(self.y[k]) + half[k] for k in (before, i))
                with np.errstate(invalid="ignore"):  # a value without an answer is no solution
                    sure = np.isnan(self.y) | (np.abs(self.y) - half > most)
                if half[before] > 0 and not sure[between].any():
                    places[-1].append(i)
                    continue
            places.append([i])
        return places

    def _merged(self, found: dict[int, Solution], place: list[int], across: set[int]) -> Solution:
        """One solution for a place with several; it has the interval of their values.

        It is the one nearest to the target among those at which the quantity crosses the target
        (``across``), or among all if there are none.
        """
        best = min(place, key=lambda i: (i not in across, abs(self.y[i])))
        if len(place) == 1:
            return found[best]
        ends = (float(self.x[place[0]]), float(self.x[place[-1]]))
        note = f"{found[best].note}; " if found[best].note else ""
        note += f"chance decides which of {len(place)} values from {self.text(ends[0])} to "
        note += f"{self.text(ends[1])} is the best: their 95 % intervals overlap"
        return dataclasses.replace(found[best], note=note, interval=ends)

    def _close(self) -> NDArray[np.bool_]:
        return np.abs(self.y) <= EXACT * self.aim.value

    def _met(self) -> list[tuple[int, int]]:
        """The ranges of neighbouring tried values that all meet the target.

        A range is given by the indices of its first and last value.
        """
        return _runs(self._close())

    def _crossings(self) -> list[tuple[int, int]]:
        """The pairs of neighbouring tried values between which the quantity crosses the target.

        A pair holds the indices of the two values. Neither of the two meets the target itself.
        """
        y, close = self.y, self._close()
        with np.errstate(invalid="ignore"):
            across = (y[:-1] * y[1:] < 0) & ~close[:-1] & ~close[1:]
        return [(int(i), int(i) + 1) for i in np.flatnonzero(across)]

    def _nearer(self, left: int, right: int) -> int:
        return left if abs(self.y[left]) <= abs(self.y[right]) else right

    def _turns(self) -> Floats:
        """New values to try where the model's quantity comes near the target without crossing it.

        In such a place, the quantity at three neighbouring values lies on the same side of the
        target. At the middle value it is at least as near to the target as at the other two, and
        nearer than at one of them. The new values lie between the middle value and its neighbours,
        because the quantity may reach the target there.
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
        """Search for neighbouring whole numbers between which the quantity crosses the target.

        At first, the tried numbers have gaps between them. Each gap over which the quantity crosses
        the target is narrowed in steps. In each step the model is evaluated at two numbers inside
        the gap. In the first step, interpolation estimates the place of the crossing, and the two
        numbers are the whole numbers beside this place. In later steps, they divide the gap into
        thirds.
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
        """Narrow the interval around each place where the model's quantity crosses the target."""
        if self.whole:
            self._follow_integers()
            return
        there = self._open()
        pairs = [pair for pair in self._crossings() if not there[list(pair)].any()]
        if not pairs:
            return
        from scipy.optimize import elementwise

        a = np.array([self.x[i] for i, _ in pairs])
        b = np.array([self.x[j] for _, j in pairs])
        rough = self.model in ("rounds", *measurement.ENGINES) or any(self.halves.values())
        width = 1e-4 if rough else 4e-16
        root = elementwise.find_root(
            self._side,
            (a, b),
            tolerances={"xatol": 0.0, "xrtol": width, "fatol": 0.0, "frtol": 0.0},
            maxiter=100,
        )
        good = np.isfinite(root.x)
        self.miss(np.concatenate([root.x[good], *(end[good] for end in root.bracket)]))

    def _side(self, x: NDArray[Any]) -> Floats:
        """Like ``miss``, but 0 where chance decides on which side of the target it is."""
        miss = self.miss(x)
        there = np.isin(x, self.x[self._open()])
        return np.where(there, 0.0, miss)

    def _solution(self, low: int, high: int) -> Solution:
        """One solution for successive tried values that all meet the target.

        ``low`` and ``high`` are the indices of the first and the last of these values. The solution
        is the value at which the quantity is nearest to the target. If the values span a wide
        interval, the solution also has this interval and a note. It is then the scenario's own
        value of the field, if this is one of the values.
        """
        inside = range(low, high + 1)
        own = self.field.of(self.scenario)
        best = min(inside, key=lambda i: (abs(self.y[i]), self.x[i]))
        wide = self.x[high] - self.x[low] > 1e-3 * abs(self.x[high])
        if not wide:
            return self._at(best)
        kept = [i for i in inside if self.x[i] == own]
        text = self.text(self.x[low]), self.text(self.x[high])
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
        broken = self.broken.get(value, ())
        return Solution(
            value, self.field.unit, achieved, exact, put, achieved_se=error, broken=broken
        )

    def unsure(self, model: str, error: float | None, runs: int) -> list[str]:
        """A list with a note if ``runs`` runs are too few to tell whether the target is met.

        They are too few if the 95 % confidence interval is too wide: half its width is more than
        ``self.within`` times the target. ``error`` is the standard error of the target's quantity,
        and ``model`` the name of the model for the note.

        The list is empty if the runs suffice, or if ``error`` is ``None``.
        """
        if error is None or half_interval(error, runs) <= self.within * self.aim.value:
            return []
        half = self.aim.text(half_interval(error, runs), 2)
        return [
            f"doubtful: the 95 % interval of {runs} runs of {model} is {half} to either side, "
            f"more than {100 * self.within:g} % of the target"
        ]

    def _nearest(self, near: int, steps: list[str]) -> Solution:
        what = "no whole number meets it exactly" if self.whole else "the result changes in steps"
        if self._half(near) > 0 and not self.whole:
            what = "the runs scatter"
        note = f"{what}: {self.aim.name} goes {' and '.join(steps)}"
        return dataclasses.replace(self._at(near), note=note)

    def _step(self, left: int, right: int) -> str:
        def at(i: int) -> str:
            digits = 2 if self.x[i] in self.rough else 6
            return f"{self.aim.text(self.y[i] + self.aim.value, digits)} at {self.text(self.x[i])}"

        sides = ("below", "above") if self.y[left] < 0 else ("above", "below")
        return f"from {at(left)}, {sides[0]} the target, to {at(right)}, {sides[1]} it"

    def text(self, value: float) -> str:
        """A value of the searched field as text, with its unit."""
        digits = 12 if self.whole else 9
        return f"{value:.{digits}g} {self.field.unit}".strip()

    def _almost(self) -> str:
        """A text that says how near to the target the model came, if no value meets the target.

        The text names the tried value at which the target's quantity, such as a share, is nearest.
        If the 95 % confidence interval of the quantity at this value contains the target, the text
        says that chance may have hidden a solution.
        """
        near = int(np.nanargmin(np.abs(self.y)))
        said, half = f"nearest is {self._answer(near)}", self._half(near)
        if abs(self.y[near]) <= half:
            runs = len(run_rates(self.made.get(float(self.x[near]))))
            half_text, wanted = self.aim.text(half, 2), self.aim.text(self.aim.value)
            said += (
                f": the 95 % interval of its {runs} runs ({half_text} to either side) contains the "
                f"target {wanted}, so chance may hide a solution: a larger run.runs measures more "
                "exactly, a larger `within` takes a rougher solution"
            )
        return said

    def _answer(self, i: int) -> str:
        """The quantity at a tried value, with its standard error: ``0.38 ± 0.02 at 3 pkt``."""
        error = standard_error(self.aim, self.made.get(float(self.x[i])))
        said = self.aim.text(self.y[i] + self.aim.value)
        said += f" ± {self.aim.text(error, 2)}" if error else ""
        return f"{said} at {self.text(self.x[i])}"

    def _half(self, i: int) -> float:
        """Half the width of the quantity's 95 % confidence interval; 0 if it is unknown."""
        return self.halves.get(float(self.x[i]), 0.0)

    def hidden(self, found: Sequence[float]) -> list[str]:
        """A text for each value that may be a further solution, hidden by the scatter of the runs.

        ``found`` are the values of the known solutions. At a hidden solution, the 95 % confidence
        interval of the model's quantity contains the target. A value near a known solution, or near
        a jump across the target, is not listed: at some value between the two, the quantity must be
        clearly farther from the target.
        """
        half = np.array([self._half(i) for i in range(self.x.size)])
        miss = np.abs(self.y)
        known = [*np.flatnonzero(np.isin(self.x, found)).tolist()]
        known += [i for pair in self._crossings() for i in pair]
        hidden: list[int] = []
        with np.errstate(invalid="ignore"):
            unsure = np.flatnonzero((miss <= half) & (half > 0))
        for i in sorted(unsure.tolist(), key=lambda i: float(miss[i])):
            between = [slice(min(i, k) + 1, max(i, k)) for k in (*known, *hidden)]
            farther = [np.any(miss[gap] - half[gap] > miss[i] + half[i]) for gap in between]
            if all(farther):
                hidden.append(i)
        return [
            f"{self.aim.name} is {self._answer(i)}: the 95 % interval of these runs contains the "
            "target, so chance may hide a solution there; look with a larger run.runs, and with a "
            "narrower range around it"
            for i in sorted(hidden)
        ]

    def why_none(self, jumps: list[str]) -> str:
        """A sentence that says why no value in the searched range meets the target.

        ``jumps`` are texts about places where the model's quantity jumps across the target.
        """
        span = f"{self.field.name} from {self.text(self.range.low)} to {self.text(self.range.high)}"
        known = self.y[np.isfinite(self.y)] + self.aim.value
        first = next(iter(self.reasons), "it does not give this figure")
        if not known.size:
            return f"{self.model} has no answer at any value of {span}: {first}"
        low, high = (self.aim.text(float(end)) for end in (known.min(), known.max()))
        tried = f"{self.model} was evaluated at {self.y.size} values of {span}"
        if known.size == 1:
            said = f"{tried} and has a result at one, with {self.aim.name} {low}"
        elif np.ptp(known) <= EXACT * abs(known.max()):
            said = f"{tried}: {self.aim.name} is {low} and does not depend on it"
        else:
            said = f"{tried}: {self.aim.name} goes from {low} to {high}; {self._almost()}"
        if jumps:
            said += f"; {'; '.join(jumps)}"
        return "; ".join([said, *self.gaps()])

    def gaps(self) -> list[str]:
        """A text on the values at which the model has no answer, with a reason; none if it has."""
        missing = int(np.isnan(self.y).sum())
        why = next(iter(self.reasons), "it does not give this figure")
        said = f"{self.model} has no answer at {missing} of {self.y.size} values: {why}"
        return [said] if missing else []


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The indices of the first and the last entry of each run of entries that are true."""
    inside = np.concatenate([[False], mask, [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def counted(scenario: Scenario, where: Field, model: str) -> bool:
    """Whether ``design`` tries only whole numbers for the field with this model.

    An initial window is always whole, and so is a field whose rule asks for whole numbers, such as
    a number of flows.

    If the model is a simulator, a buffer and a largest window are whole, too.  A threshold of Vegas
    is whole if the TCP implementation of a flow compares it with a rounded backlog.  (For ``fluid``
    this paragraph holds only if some flow has another variant than ``paper``.)
    """
    if isinstance(where.plain, Integer) or where.key == "initial_window":
        return True
    simulated = model in ("rounds", *measurement.ENGINES)
    if model == "fluid":
        simulated = not papers_only(scenario)
    if not simulated or where.queue:
        return False
    if where.key in THRESHOLDS and where.part == "flow":
        return any(not STACKS[scenario.flows[i].variant].real_numbers for i in where.indices)
    return where.key in COUNTED
