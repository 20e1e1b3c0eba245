"""Finds at which values of two fields of a scenario, such as two RTTs, the equilibrium is unstable.

The equilibrium may be unstable because a sender learns of a change of the queue only one round trip
later. The result is the boundary between stable and unstable values: curves in the plane of the two
fields.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vegasmodel.adapters.stability import equilibrium_of
from vegasmodel.equilibrium import hopf
from vegasmodel.equilibrium.stability import Loop
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer, listed, real
from vegasmodel.fields.units import format_number
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study import fields
from vegasmodel.study.fields import Field
from vegasmodel.support.shown import Shown, Table

__all__ = ["StabilityBoundary", "stability_boundary"]

VALUES_PER_SCAN = 17  # values of the field along which stability is scanned
SCANS_PER_FIELD = 3  # values of the other field, one for each scan
# distance in the plane of ln x and ln y: a point so near to a traced curve lies on it
ON_CURVE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class StabilityBoundary(Shown):
    """Where the equilibrium turns unstable, as curves in the plane of two fields of the scenario.

    ``table`` gives a text with a line for each point of the curves.

    On a curve, two characteristic roots are purely imaginary (a Hopf bifurcation).  If a point of
    the curve has ``leading`` = True, no other root there has a positive real part.  So the
    equilibrium is stable on one side of this point, and unstable on the other.

    ``jumps`` are places where stability changes without a Hopf bifurcation; no curve is traced from
    them.  ``units`` are the units of the two fields.

    ``stable`` and ``unstable`` are the numbers of the scanned points at which the equilibrium is
    stable or unstable, and ``without_equilibrium`` is the number of those without one.
    """

    scenario: Scenario
    fields: tuple[str, str]
    units: tuple[str, str]
    curves: tuple[tuple[hopf.Crossing, ...], ...]
    jumps: tuple[hopf.Jump, ...] = ()
    stable: int = 0
    unstable: int = 0
    without_equilibrium: int = 0

    def __repr__(self) -> str:
        """One line: the two fields, the numbers of curves, of their points and of jumps."""
        return f"<StabilityBoundary of {self._title}>"

    @property
    def _title(self) -> str:
        """The scenario, the two fields, and how many curves, points and jumps were found."""
        points = sum(map(len, self.curves))
        every = self.stable + self.unstable + self.without_equilibrium
        parts = [
            f"{count} {word}{'s' * (count != 1)}"
            for count, word in ((len(self.curves), "curve"), (points, "point"))
        ]
        if self.jumps:
            parts.append(f"{len(self.jumps)} jump{'s' * (len(self.jumps) != 1)}")
        found = f"{self.scenario.name} over {' and '.join(self.fields)}: {', '.join(parts)}"
        return f"{found}; of {every} scanned points {self.stable} are stable"

    @property
    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns of a table of all points of the curves, and its rows."""
        names = [f"{n} ({u})" if u else n for n, u in zip(self.fields, self.units, strict=True)]
        rows = [
            [format_number(at.x, 6), format_number(at.y, 6),
             format_number(2 * math.pi / at.frequency), "yes" if at.leading else "no"]
            for curve in self.curves for at in curve
        ]  # fmt: skip
        return [*names, "period s", "separates"], rows

    @property
    def _shown(self) -> Table:
        """A table with points of the curves; only its title if no curve was found."""
        return Table(self._title, *(self.rows if self.curves else ([], [])))

    def to_json(self) -> dict[str, Any]:
        """The boundary as the entry ``boundary`` of the command ``stability``'s JSON document."""
        return {
            "fields": [
                {"name": name, "unit": unit or None}
                for name, unit in zip(self.fields, self.units, strict=True)
            ],
            "curves": [
                [
                    {
                        "values": [point.x, point.y],
                        "period_s": 2.0 * math.pi / point.frequency,
                        "residual": point.residual,
                        "leading": point.leading,
                    }
                    for point in curve
                ]
                for curve in self.curves
            ],
            "jumps": [{"between": [jump.low, jump.high], "at": jump.y} for jump in self.jumps],
            "scanned": {
                "stable": self.stable,
                "unstable": self.unstable,
                "without_equilibrium": self.without_equilibrium,
            },
        }


def stability_boundary(
    scenario: Scenario, over: Mapping[str, tuple[float, float]], most: int = 100
) -> StabilityBoundary:
    """Where the scenario's equilibrium turns unstable, as curves in the plane of two of its fields.

    ``over`` has the ranges of the two fields, ``{name: (low, high)}``, in seconds, packets or
    packets per second. The search scans the range of the first field for three values of the
    second, and the range of the second for three values of the first. From each Hopf bifurcation
    that lies on no curve yet, it follows a curve in both directions, with at most ``most`` points
    in each. A boundary that none of the six scans crosses is not found.

    ``jumps`` of the result are places where stability changes without a Hopf bifurcation. Only the
    three scans along the first field look for them.

    The equation of a curve is F(i w) = 0 with a real w > 0. F is the characteristic function, which
    the module ``equilibrium.stability`` defines.

    Raises ``FieldError`` for bad input, such as a field of whole numbers or a range that is not
    positive.
    """
    expect(scenario)
    Integer(1, 10_000).check(most, "most")
    if not isinstance(over, Mapping) or len(over) != 2:
        raise FieldError("over", over, "two fields, each with (LOW, HIGH)")
    names = [fields.find(scenario, name) for name in over]
    fields.expect_apart(names)
    ranges = [_range(field, over[field.name]) for field in names]

    def make(x: float, y: float) -> Loop | None:
        """The equations linearised about the equilibrium at the values x and y of the two fields.

        The result is ``None`` if there is no equilibrium.
        """
        try:
            moved = fields.put(scenario, dict(zip(names, (x, y), strict=True)))
        except FieldError:  # the values contradict one another
            return None
        found = equilibrium_of(moved)
        return None if isinstance(found, str) else found.loop

    curves: list[tuple[hopf.Crossing, ...]] = []
    jumps: list[hopf.Jump] = []
    # whether the equilibrium is stable at each scanned point; None if there is none, or if its
    # stability is not known
    scanned: list[bool | None] = []
    # scans along the first field, then along the second, for which the fields are exchanged
    for along_first, (along, other) in ((True, ranges), (False, ranges[::-1])):
        make_scanned = make if along_first else (lambda y, x: make(x, y))
        values = np.geomspace(*along, VALUES_PER_SCAN)
        # the values of the other field are inside its range, not at its ends
        for at_other in np.geomspace(*other, SCANS_PER_FIELD + 2)[1:-1]:
            scan = hopf.crossings(make_scanned, values, float(at_other))
            scanned += scan.stable
            if along_first:
                jumps += scan.jumps
            for at in scan.points:
                begin = at if along_first else dataclasses.replace(at, x=at.y, y=at.x)
                if not any(_lies_on(begin, curve) for curve in curves):
                    curves.append(tuple(hopf.trace(make, begin, ranges[0], ranges[1], most)))
    first, second = names
    return StabilityBoundary(
        scenario,
        fields=(first.name, second.name),
        units=(first.unit, second.unit),
        curves=tuple(curves),
        jumps=tuple(jumps),
        stable=scanned.count(True),
        unstable=scanned.count(False),
        without_equilibrium=scanned.count(None),
    )


def _range(field: Field, ends: tuple[float, float]) -> tuple[float, float]:
    """Check the range of a field that the user gives (``ends``), and return it as two floats."""
    two = listed(ends, f"over {field.name}", "two numbers")
    low, high = map(real, two) if len(two) == 2 else (math.nan, math.nan)
    if math.isnan(low + high):
        raise FieldError(f"over {field.name}", ends, "two numbers, (LOW, HIGH)")
    if not field.number or isinstance(field.plain, Integer):
        raise FieldError("over", field.name, "a field of numbers that need not be whole")
    if not 0.0 < low < high < math.inf:
        raise FieldError(f"over {field.name}", f"{low:g}:{high:g}", "LOW:HIGH, 0 < LOW < HIGH")
    return low, high


def _lies_on(at: hopf.Crossing, curve: tuple[hopf.Crossing, ...]) -> bool:
    """Whether the point ``at`` lies on or very near ``curve``, a boundary traced earlier.

    Between two of its computed points the curve is taken as a straight line in the logarithms of x
    and y. The curve itself bends away from this line, so a tenth of the line's length is allowed.
    """
    point = np.log([at.x, at.y])
    points = np.log([(each.x, each.y) for each in curve])
    for begin, end in itertools.pairwise(points):
        along = end - begin
        length = float(np.hypot(*along))
        part = np.clip((point - begin) @ along / max(length**2, 1e-300), 0.0, 1.0)
        if np.hypot(*(begin + part * along - point)) < ON_CURVE + 0.1 * length:
            return True
    return False
