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
from vegasmodel.metrics import Floats, student_quantile
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
ERROR_PROBABILITY = 1e-2  # significance level of the test in ``_shows_side``


class Tried:
    """The values of a field that a search has tried, and the model's quantity at each of them.

    The quantity is that of the target, such as a share.  ``values`` holds all values of the field
    that were tried, sorted.  ``differences`` holds the model's quantity at each of them, minus the
    target (NaN if the model has no result).  So the search looks for differences of 0.

    ``field`` is the searched field, ``range`` the searched range of its values, and ``target`` the
    target.  A value also counts as a solution if the quantity differs from the target by at most
    the fraction ``within`` of it.  ``count`` counts the values for the progress line.
    """

    def __init__(
        self,
        scenario: Scenario,
        field: Field,
        target: Target,
        model: str,
        searched: Range,
        within: float,
        count: Count,
    ) -> None:
        """Begin with no values tried.

        ``field`` is the searched field, ``searched`` the searched range, and ``target`` the target.
        A value within the fraction ``within`` of the target is a solution, too. ``count`` counts
        the values for the progress line. Raises ``FieldError`` if the model takes only whole
        numbers for the field, and the range contains none.
        """
        self.scenario, self.field, self.target, self.model = scenario, field, target, model
        self.within, self.range, self.count = within, searched, count
        self.whole_numbers = counted(scenario, field, model)
        if self.whole_numbers and math.ceil(searched.low) > math.floor(searched.high):
            ends = f"{searched.low:g}:{searched.high:g}"
            raise FieldError("between", ends, f"a range with a whole number, for {model}")
        self.values: Floats = np.empty(0)  # the values of the field that were tried
        self.differences: Floats = np.empty(0)  # the quantity at each value, minus the target
        self.side_only: set[float] = set()  # values at which only the side of the target is known
        # what the model predicts, by value of the field
        self.predictions: dict[float, Prediction] = {}
        # half the width of the quantity's 95 % interval
        self.half_width_at: dict[float, float] = {}
        self.broken: dict[float, tuple[str, ...]] = {}  # the assumptions that do not hold
        self.loads: dict[float, float] = {}  # the utilization of the target's link
        self.reasons: dict[str, int] = {}  # why there is no answer, and at how many values

    @property
    def half_widths(self) -> Floats:
        """Half the width of the quantity's 95 % confidence interval at each of ``values``.

        It is 0 where it is unknown.
        """
        return np.array([self.half_width_at.get(value, 0.0) for value in self.values.tolist()])

    def evaluate(self, x: NDArray[Any], *, all_runs: bool = False) -> Floats:
        """The model's quantity minus the target, at each value of the field in ``x``.

        The model is evaluated only at values that were not tried before; these are added to
        ``values`` and ``differences``.  With ``all_runs``, the simulator ``rounds`` makes all runs,
        even if a few already show on which side of the target the quantity is.
        """
        flat = np.ravel(np.asarray(x, dtype=np.float64))
        distinct, index = np.unique(flat, return_inverse=True)
        known = dict(zip(self.values.tolist(), self.differences.tolist(), strict=True))
        new_values = np.array([value for value in distinct.tolist() if value not in known])
        if new_values.size:
            differences = self._evaluate_new(new_values, all_runs=all_runs)
            known |= dict(zip(new_values.tolist(), differences.tolist(), strict=True))
            order = np.argsort(np.concatenate([self.values, new_values]), kind="stable")
            self.values = np.concatenate([self.values, new_values])[order]
            self.differences = np.concatenate([self.differences, differences])[order]
        in_order_of_x = np.array([known[value] for value in distinct.tolist()])[index]
        return in_order_of_x.reshape(np.shape(x))

    def complete(self, incomplete: NDArray[np.intp]) -> None:
        """Make all runs of ``rounds`` at the values with these indices; keep the mean of each.

        At these values ``rounds`` made only a few runs, because these already showed on which side
        of the target the mean lies.
        """
        values = self.values[incomplete]
        self.differences[incomplete] = self._evaluate_new(values, all_runs=True)
        self.side_only -= set(values.tolist())

    def _evaluate_new(self, x: Floats, *, all_runs: bool = False) -> Floats:
        """Evaluate the model at each value in ``x``; return the target's quantity minus the target.

        The simulator ``rounds`` may make several runs for a value, and the quantity is their mean.
        By default ``rounds`` stops once the runs show whether the mean lies above or below the
        target. With ``all_runs``, it makes all runs.

        What the model predicts at each value is also kept, for example in ``self.predictions``.
        """
        enough = None if all_runs else self._shows_side
        found, predictions = answered(
            self.points_at(x, self.scenario), self.model, self.count, enough
        )
        values, loads = x.tolist(), found.utilization[:, self.target.link].tolist()
        for value, prediction, load, broken in zip(
            values, predictions, loads, found.broken, strict=True
        ):
            if prediction:
                self.predictions[value] = prediction
                error = standard_error(self.target, prediction)
                self.half_width_at[value] = half_interval(error, prediction.runs) if error else 0.0
            if not math.isnan(load):
                self.loads[value] = load
            self.broken[value] = tuple(broken.split())
        for reason in found.reasons:
            if reason:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
        return self.target.of(found, self.scenario) - self.target.value

    def points_at(self, x: Floats, scenario: Scenario) -> points.Points:
        """The copies of ``scenario`` in which the searched field has the values ``x``.

        The values become integers if the field's rule asks for whole numbers.
        """
        integer = isinstance(self.field.plain, Integer)
        column = x.astype(np.int64) if integer else x
        return points.Points(scenario, (self.field,), (column,))

    def _shows_side(self, runs: Sequence[Prediction]) -> bool:
        """Whether these runs show on which side of the target the mean quantity lies.

        ``rounds`` calls this function after each run, and makes no more runs if it returns True.
        Student's t-test decides: the mean of the runs must differ from the target significantly.

        ``runs`` holds one prediction for each run, all for the same value of the field. If the
        result is True, this value is added to ``self.side_only``, the values for which only the
        side of the target is known.
        """
        scenario, n = runs[0].scenario, len(runs)
        value = float(self.field.of(scenario))
        figures = points.collected(self.points_at(np.full(n, value), self.scenario), runs)
        differences = self.target.of(figures, scenario) - self.target.value
        error = differences.std(ddof=1) / math.sqrt(n)
        quantile = student_quantile(n - 1, ERROR_PROBABILITY)
        sure = bool(abs(differences.mean()) > quantile * error)
        if sure:
            self.side_only.add(value)
        return sure


def counted(scenario: Scenario, field: Field, model: str) -> bool:
    """Whether ``design`` tries only whole numbers for the field with this model.

    An initial window is always whole, and so is a field whose rule asks for whole numbers, such as
    a number of flows.

    If the model is a simulator, a buffer and a largest window are whole, too.  A threshold of Vegas
    is whole if the TCP implementation of a flow compares it with a rounded backlog.  (With
    ``fluid`` these fields are not whole if all flows have the variant ``paper``.)
    """
    if isinstance(field.plain, Integer) or field.key == "initial_window":
        return True
    simulated = model in ("rounds", *measurement.ENGINES)
    if model == "fluid":
        simulated = not papers_only(scenario)
    if not simulated or field.queue:
        return False
    if field.key in THRESHOLDS and field.part == "flow":
        return any(not STACKS[scenario.flows[i].variant].real_numbers for i in field.indices)
    return field.key in COUNTED
