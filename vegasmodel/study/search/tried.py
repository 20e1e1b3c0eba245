"""Stores the values that the command ``design`` has tried, and the results at each.

``design`` searches for the value of one field of a scenario at which a quantity reaches a target.
For example, it finds the buffer at which a flow's share of the throughput is 30 %.  The buffer is
then the field, the share is the quantity, and 30 % is the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import measurement
from vegasmodel.engines.fluid.methods import papers_only
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer
from vegasmodel.metrics import Floats
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.changes import THRESHOLDS
from vegasmodel.stacks import STACKS
from vegasmodel.study import points
from vegasmodel.study.fields import Field
from vegasmodel.study.ranges import Range
from vegasmodel.study.scatter import answered, half_interval, standard_error
from vegasmodel.study.targets import Target
from vegasmodel.support.progress import Count

__all__ = ["Tried", "counted"]

COUNTED = ("buffer", "max_window", "initial_window")  # keys that simulators take as whole packets
ERROR_PROBABILITY = 1e-2  # significance level of the test in ``_sided``


class Tried:
    """The values of a field that a search has tried, and the model's quantity at each of them.

    The quantity is that of the target, such as a share.  ``x`` holds all values of the field that
    were tried, sorted.  ``y`` holds the model's value of the quantity at each of them, minus the
    target (NaN if the model has no result).

    ``field`` is the searched field, ``range`` the searched range of its values, and ``aim`` the
    target.  A value also counts as a solution if the quantity differs from the target by at most
    the fraction ``within`` of it.  ``count`` counts the values for the progress line.
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
        # by value of the field: the model's prediction, half the width of the quantity's 95 %
        # interval, the assumptions that do not hold, and the utilization of the link ``aim.link``
        self.made: dict[float, Prediction] = {}
        self.halves: dict[float, float] = {}
        self.broken: dict[float, tuple[str, ...]] = {}
        self.loads: dict[float, float] = {}
        self.reasons: dict[str, int] = {}  # why there is no answer, and at how many values

    @property
    def half(self) -> Floats:
        """Half the width of the quantity's 95 % confidence interval at each value in ``x``.

        It is 0 where it is unknown.
        """
        return np.array([self.halves.get(value, 0.0) for value in self.x.tolist()])

    def miss(self, x: NDArray[Any], *, whole: bool = False) -> Floats:
        """The model's quantity minus the target, at each value of the field in ``x``.

        The model is evaluated only at values that were not tried before; these are added to
        ``self.x`` and ``self.y``.  With ``whole``, the simulator ``rounds`` makes all runs, even if
        a few already show on which side of the target the quantity is.
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

    def complete(self, few: NDArray[np.intp]) -> None:
        """Make all runs of ``rounds`` at the values with the indices ``few``, and keep their mean.

        At these values ``rounds`` made only a few runs, because these already showed on which side
        of the target the mean lies.
        """
        self.y[few] = self._ask(self.x[few], whole=True)
        self.rough -= set(self.x[few].tolist())

    def _ask(self, x: Floats, *, whole: bool = False) -> Floats:
        """Evaluate the model at each value in ``x``; return the target's quantity minus the target.

        The simulator ``rounds`` may make several runs for a value, and the quantity is their mean.
        By default ``rounds`` stops once the runs show whether the mean lies above or below the
        target. With ``whole``, it makes all runs.

        Predictions are kept in ``self.made``, and reasons for missing ones in ``self.reasons``.
        """
        enough = None if whole else self._sided
        found, made = answered(self.points_at(x, self.scenario), self.model, self.count, enough)
        self.made |= {value: one for value, one in zip(x.tolist(), made, strict=False) if one}
        for value in (value for value, one in zip(x.tolist(), made, strict=False) if one):
            error, runs = standard_error(self.aim, self.made[value]), self.made[value].runs
            self.halves[value] = half_interval(error, runs) if error else 0.0
        loads = found.utilization[:, self.aim.link].tolist()
        self.loads |= {v: load for v, load in zip(x.tolist(), loads, strict=True) if load == load}
        names = [tuple(each.split()) for each in found.broken]
        self.broken |= dict(zip(x.tolist(), names, strict=True))
        for reason in found.reasons:
            if reason:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self.aim.of(found, self.scenario) - self.aim.value

    def points_at(self, x: Floats, scenario: Scenario) -> points.Points:
        """The copies of ``scenario`` in which the searched field has the values ``x``.

        The values become integers if the field's rule asks for whole numbers.
        """
        integer = isinstance(self.field.plain, Integer)
        column = x.astype(np.int64) if integer else x
        return points.Points(scenario, (self.field,), (column,))

    def _sided(self, runs: Sequence[Prediction]) -> bool:
        """Whether these runs show on which side of the target the mean quantity lies.

        Student's t-test decides this.

        ``runs`` holds one prediction for each run, all for the same value of the field. If the runs
        show the side, no more runs are made. The value is then added to ``self.rough``, the values
        for which only the side of the target is known.
        """
        from scipy.special import stdtrit

        made, n = runs[0].scenario, len(runs)
        value = float(self.field.of(made))
        figures = points.collected(self.points_at(np.full(n, value), self.scenario), runs)
        miss = self.aim.of(figures, made) - self.aim.value
        error = miss.std(ddof=1) / math.sqrt(n)
        sure = bool(abs(miss.mean()) > stdtrit(n - 1, 1.0 - 0.5 * ERROR_PROBABILITY) * error)
        if sure:
            self.rough.add(value)
        return sure


def counted(scenario: Scenario, where: Field, model: str) -> bool:
    """Whether ``design`` tries only whole numbers for the field with this model.

    An initial window is always whole, and so is a field whose rule asks for whole numbers, such as
    a number of flows.

    If the model is a simulator, a buffer and a largest window are whole, too.  A threshold of Vegas
    is whole if the TCP implementation of a flow compares it with a rounded backlog.  (With
    ``fluid`` these fields are not whole if all flows have the variant ``paper``.)
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
