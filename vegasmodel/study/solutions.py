"""The result of ``design``: the values of a scenario's field that meet a target.

The field is, for example, the buffer of a link, and the target a share of the throughput. The
result also says what the models predict at each of these values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vegasmodel.metrics import with_error
from vegasmodel.scenario import Scenario
from vegasmodel.support.shown import Shown, Table

__all__ = ["Design", "Solution"]


@dataclass(frozen=True)
class Solution:
    """A value of the searched field that meets the target of ``design``.

    It comes with what the models predict at this value for the target's quantity, such as a share.
    """

    value: float
    unit: str
    achieved: float  # by the model, at exactly this value
    exact: bool  # whether ``achieved`` differs from the target by at most 1e-6 of the target
    scenario: Scenario  # the scenario with this value
    achieved_se: float | None = None  # standard error over the runs, if they are random
    verified: dict[str, float | None] = field(default_factory=dict)  # by the other models
    verified_se: dict[str, float | None] = field(default_factory=dict)
    note: str = ""
    interval: tuple[float, float] | None = None  # values in it meet the target, as far as known
    broken: tuple[str, ...] = ()  # names of the model's assumptions that do not hold there

    def to_json(self) -> dict[str, Any]:
        """The solution as an entry of the list ``solutions`` in the JSON document of ``design``."""
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
            "broken": list(self.broken),
        }


@dataclass(frozen=True, repr=False)
class Design(Shown):
    """All values of a field that were found to meet a target; if there is none, the reason.

    ``table`` gives a text with a line for each value, and what each model predicts at it.  Its
    title has the notes.

    ``wanted`` is the target's value.  ``scanned`` is the range of the field that was searched, and
    ``tried`` the number of values in it for which the model was evaluated.  ``notes`` say where
    else the model's quantity jumps across the target, where the scatter of runs may hide another
    solution, and which assumptions of the model do not hold at a solution.
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

    @property
    def status(self) -> str:
        """Whether the search found ``none``, ``one`` or ``several`` values."""
        return ("none", "one", "several")[min(len(self.solutions), 2)]

    @property
    def target_unit(self) -> str:
        """The unit of the target's quantity: ``s`` for a delay, else empty."""
        return "s" if self.target.partition(":")[0] == "delay" else ""

    def __repr__(self) -> str:
        """One line: the field, the target, the model, and up to six values that meet the target.

        If there is no such value, the line says why.
        """
        values = [f"{each.value:.6g} {each.unit}".strip() for each in self.solutions[:6]]
        more = ["..."] if len(self.solutions) > 6 else []
        said = ", ".join(values + more) or f"no value; {self.reason}"
        asked = f"{self.field} for {self.target} = {self.wanted:g} {self.target_unit}".strip()
        return f"<Design of {asked} by {self.model}: {said}>"

    @property
    def _shown(self) -> Table:
        notes = "; ".join([*(each.note for each in self.solutions if each.note), *self.notes])
        wanted = f"{self.wanted:g} {self.target_unit}".strip()
        title = f"{self.field} for {self.target} = {wanted} by {self.model}"
        if not self.solutions:
            return Table(f"{title}: no value, {self.reason}", [], [])
        others = list(dict.fromkeys(name for each in self.solutions for name in each.verified))
        rows = [
            [
                f"{each.value:.6g} {each.unit}".strip(),
                _cell(each.achieved, each.achieved_se),
                *(_cell(each.verified.get(n), each.verified_se.get(n)) for n in others),
            ]
            for each in self.solutions
        ]
        columns = [self.field, self.model, *others]
        return Table(f"{title}: {notes}" if notes else title, columns, rows)

    def to_json(self) -> dict[str, Any]:
        """The JSON document of the command ``design``.

        The command adds the scenario's name and the version number of the format.
        """
        return {
            "field": self.field,
            "target": self.target,
            "wanted": self.wanted,
            "target_unit": self.target_unit,
            "model": self.model,
            "scanned": self.scanned,
            "tried": self.tried,
            "solutions": [solution.to_json() for solution in self.solutions],
            "status": self.status,
            "reason": self.reason,
            "notes": list(self.notes),
        }


def _cell(value: float | None, error: float | None) -> str:
    return "-" if value is None else with_error(value, error)
