"""Holds the result of ``design``: the values of a scenario's field that meet a target.

The field is, for example, the buffer of a link, and the target a share of the throughput. The
result also says what the models predict at each of these values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from vegasmodel.metrics import with_error
from vegasmodel.scenario import Scenario
from vegasmodel.study.targets import UNITS
from vegasmodel.support.shown import Shown, Table

__all__ = ["Design", "Interval", "Solution"]

SAME_END = 1e-4  # fraction of an interval's end; a tried value nearer to the end is not named


@dataclass(frozen=True)
class Interval:
    """Tried values of the searched field that meet a target such as ``share:vegas>=0.3``.

    All tried values from ``low`` to ``high`` meet the target, with one exception: ``unsure`` is the
    number of those for which the runs do not show it, because their 95 % confidence interval
    contains the target.

    ``below`` is the next tried value below ``low``, and ``above`` the next above ``high``.  At
    ``below`` and ``above`` the target is not met, or the model has no result.  They are ``None`` at
    an end of the searched range, beyond which nothing is known.
    """

    low: float
    high: float
    below: float | None
    above: float | None
    unsure: int = 0

    def text(
        self, unit: str, exact: Collection[float], refused: Mapping[float, str] | None = None
    ) -> str:
        """The interval in words: ``from 1 pkt (the range's end) to 23 pkt (not at 24 pkt)``.

        ``unit`` is the unit of the field, here "pkt".  The parentheses give the next tried value,
        which does not meet the target.  They are left out if that value is very near the end of the
        interval, or if the end is in ``exact``, the values at which the quantity equals the target.
        At an end in ``refused``, other models disagree with the one that found it; the parentheses
        then have their names instead.
        """
        rejecting = refused or {}
        texts = []
        for end, beyond in ((self.low, self.below), (self.high, self.above)):
            very_near = beyond is not None and abs(beyond - end) <= SAME_END * abs(end)
            if end in rejecting:
                texts.append(f"{_with_unit(end, unit)} (rejected by {rejecting[end]})")
                continue
            beside = "the range's end" if beyond is None else f"not at {_with_unit(beyond, unit)}"
            texts.append(
                _with_unit(end, unit) + ("" if very_near or end in exact else f" ({beside})")
            )
        unsure = f"; for {self.unsure} of the values tried there the runs do not tell"
        return f"from {texts[0]} to {texts[1]}{unsure if self.unsure else ''}"


@dataclass(frozen=True)
class Solution:
    """A value of the searched field that meets the target of ``design``.

    If the target is a bound, such as ``share:vegas>=0.3``, many values meet it.  They form
    intervals, and a solution is an end of one of these.

    A solution also has the models' predictions of the target's quantity, such as a share, at this
    value.
    """

    value: float
    unit: str
    achieved: float  # the quantity, as the model predicts it at exactly this value
    exact: bool  # whether ``achieved`` differs from the target by at most 1e-6 of the target
    scenario: Scenario  # the scenario with this value
    achieved_se: float | None = None  # standard error over the runs, if they are random
    verified: dict[str, float | None] = field(default_factory=dict)  # the other models' values
    verified_se: dict[str, float | None] = field(default_factory=dict)
    note: str = ""
    interval: tuple[float, float] | None = None  # values in it meet the target, as far as known
    broken: tuple[str, ...] = ()  # names of the model's assumptions that do not hold there
    rejected_by: tuple[str, ...] = ()  # other models, if they disagree (``Design.rejected``)
    utilization: float | None = None  # of the target's link, else the first; by the model

    def to_json(self) -> dict[str, Any]:
        """The solution as an entry of the list ``solutions`` in the JSON document of ``design``."""
        return {
            "value": self.value,
            "unit": self.unit,
            "achieved": self.achieved,
            "achieved_se": self.achieved_se,
            "exact": self.exact,
            "utilization": self.utilization,
            "interval": self.interval,
            "verified": self.verified,
            "verified_se": self.verified_se,
            "note": self.note or None,
            "broken": list(self.broken),
            "rejected_by": list(self.rejected_by),
        }


@dataclass(frozen=True, repr=False)
class Design(Shown):
    """All values of a field that were found to meet a target; if there is none, the reason.

    The model whose name is ``model`` was evaluated to find them: at each tried value of the field
    it predicts the quantity of the target, such as a share.  Other models may check the values
    found.

    The ``sense`` of the target is ``=``, ``>=`` or ``<=``.  With ``>=`` or ``<=``, ``intervals``
    has the values that meet the target, and ``solutions`` the ends of these intervals.

    ``table`` gives a text with a line for each value, and what each model predicts at it.  Its
    title has the notes.

    ``wanted`` is the target's value.  ``scanned`` is the range of the field that was searched, and
    ``tried`` the number of values in it for which ``model`` was evaluated.  ``notes`` say:

    - where else the quantity by ``model`` jumps across the target,
    - where the scatter of runs may hide another solution,
    - which assumptions of ``model`` do not hold at a solution.

    ``rejected`` has the values at which ``model`` meets the target, but another model predicts a
    quite different quantity.  For example, the target is a share of 0.3, and the other model
    predicts a share of 0.7.  The quantities by the two models differ by more than the target's
    value, and by more than the scatter of runs explains.  These values do not count as solutions.
    ``Solution.rejected_by`` names the other models.
    """

    field: str
    target: str
    wanted: float
    model: str
    scanned: tuple[float, float]
    solutions: tuple[Solution, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()
    tried: int = 0
    sense: str = "="
    intervals: tuple[Interval, ...] = ()
    rejected: tuple[Solution, ...] = ()

    @property
    def status(self) -> str:
        """Whether the search found ``none``, ``one`` or ``several`` values or intervals."""
        found = self.solutions if self.sense == "=" else self.intervals
        return ("none", "one", "several")[min(len(found), 2)]

    @property
    def asked(self) -> str:
        """The target as text, such as ``share:vegas = 0.3``."""
        return f"{self.target} {self.sense} {self.wanted:g} {self.target_unit}".strip()

    @property
    def where(self) -> str:
        """The intervals of values that meet the target, in words; empty if there are none."""
        return "; ".join(self._intervals)

    @property
    def _intervals(self) -> list[str]:
        """Each interval in words, as ``Interval.text`` writes it."""
        ends = (*self.solutions, *self.rejected)
        exact = {each.value for each in ends if each.exact}
        refused = {each.value: ", ".join(each.rejected_by) for each in self.rejected}
        return [each.text(ends[0].unit, exact, refused) for each in self.intervals]

    @property
    def rejections(self) -> list[str]:
        """For each value in ``rejected``, a text that says why it is no solution."""
        return [
            f"{_with_unit(each.value, each.unit)} is no solution: {each.note}"
            for each in self.rejected
        ]

    @property
    def target_unit(self) -> str:
        """The unit of the target's quantity, such as ``s`` for a delay; empty if it has none."""
        return UNITS.get(self.target.partition(":")[0], "")

    @property
    def shows_load(self) -> bool:
        """Whether tables have a column ``load``, the utilization of the link at each solution.

        They do not have it if the target is a utilization itself, or if no utilization is known.
        """
        if self.target.partition(":")[0] == "utilization":
            return False
        return any(each.utilization is not None for each in self.solutions)

    def __repr__(self) -> str:
        """One line: the field, the target, the model, and up to six values that meet the target.

        If the target is a bound, the line has up to six intervals.  If there is no value, it says
        why.
        """
        values = [_with_unit(each.value, each.unit) for each in self.solutions]
        found = self._intervals or values
        more = ["..."] if len(found) > 6 else []
        result = ", ".join(found[:6] + more) or f"no value; {self.reason}"
        return f"<Design of {self.field} for {self.asked} by {self.model}: {result}>"

    @property
    def _shown(self) -> Table:
        """The table that ``table()`` and Jupyter show: a row for each solution.

        A row has the solution's value, and the target's quantity at this value by each model. A
        last column ``load`` has the utilization of the link there (``shows_load``). The title has
        the notes. If there is no solution, there are no rows, and the title says why.
        """
        title = f"{self.field} for {self.asked} by {self.model}"
        if not self.solutions:
            text = "; ".join([f"{title}: no value, {self.reason}", *self.rejections])
            return Table(text, [], [])
        solution_notes = [each.note for each in self.solutions if each.note]
        intervals = [self.where] if self.where else []
        notes = "; ".join([*intervals, *solution_notes, *self.rejections, *self.notes])
        verifiers = list(dict.fromkeys(name for each in self.solutions for name in each.verified))
        rows = [
            [
                _with_unit(each.value, each.unit),
                _cell(each.achieved, each.achieved_se),
                *(_cell(each.verified.get(n), each.verified_se.get(n)) for n in verifiers),
                *([_cell(each.utilization, None)] if self.shows_load else []),
            ]
            for each in self.solutions
        ]
        columns = [self.field, self.model, *verifiers, *(["load"] if self.shows_load else [])]
        return Table(f"{title}: {notes}" if notes else title, columns, rows)

    def to_json(self) -> dict[str, Any]:
        """The JSON document of the command ``design``.

        The command adds the scenario's name and the version number of the format.
        """
        return {
            "field": self.field,
            "target": self.target,
            "sense": self.sense,
            "wanted": self.wanted,
            "target_unit": self.target_unit,
            "model": self.model,
            "scanned": self.scanned,
            "tried": self.tried,
            "solutions": [solution.to_json() for solution in self.solutions],
            "rejected": [each.to_json() for each in self.rejected],
            "intervals": [dataclasses.asdict(each) for each in self.intervals],
            "status": self.status,
            "reason": self.reason,
            "notes": list(self.notes),
        }


def _with_unit(value: float, unit: str) -> str:
    """The value with six digits and its unit, as text."""
    return f"{value:.6g} {unit}".strip()


def _cell(value: float | None, error: float | None) -> str:
    """A table's cell with the value and its standard error; ``-`` if there is no value."""
    return "-" if value is None else with_error(value, error)
