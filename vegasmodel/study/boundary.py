"""Where the equilibrium turns unstable if two fields of a scenario vary, such as buffer and RTT.

The result is curves in the plane of the two fields.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vegasmodel.adapters.stability import place
from vegasmodel.equilibrium import hopf
from vegasmodel.equilibrium.stability import Loop
from vegasmodel.fields.rules import Integer, listed, real
from vegasmodel.fields.units import FieldError
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study import fields
from vegasmodel.study.fields import Field

__all__ = ["StabilityBoundary", "stability_boundary"]

SCAN = 17  # values of the first field in a scan
ROWS = 3  # values of the second field at which the first one is scanned
SAME = 1e-3  # difference of ln x below which a crossing lies on a traced curve


@dataclass(frozen=True, eq=False)
class StabilityBoundary:
    """Where the equilibrium turns unstable, as curves in the plane of two fields of the scenario.

    On a curve, two characteristic roots are purely imaginary (a Hopf bifurcation).  At a point with
    ``leading``, no other root has a positive real part, so stability changes there.

    ``jumps`` are places where stability changes without a Hopf bifurcation; no curve is traced from
    them.  ``units`` are the units of the two fields.
    """

    scenario: Scenario
    fields: tuple[str, str]
    units: tuple[str, str]
    curves: tuple[tuple[hopf.Crossing, ...], ...]
    jumps: tuple[hopf.Jump, ...] = ()

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
                        "values": [at.x, at.y],
                        "period_s": 2.0 * math.pi / at.frequency,
                        "residual": at.residual,
                        "leading": at.leading,
                    }
                    for at in curve
                ]
                for curve in self.curves
            ],
            "jumps": [{"between": [at.low, at.high], "at": at.y} for at in self.jumps],
        }


def stability_boundary(
    scenario: Scenario, over: Mapping[str, tuple[float, float]], most: int = 100
) -> StabilityBoundary:
    """Where the scenario's equilibrium turns unstable, as curves in the plane of two of its fields.

    ``over`` has the ranges of the two fields, ``{name: (low, high)}``, in seconds, packets or
    packets per second. The search scans the range of the first field for three values of the
    second. From each Hopf bifurcation that lies on no curve yet, it follows a curve in both
    directions, with at most ``most`` points in each. A boundary that none of the three scans
    crosses is not found.

    The equation of a curve is F(i w) = 0 with a real w > 0, where F is the characteristic function
    (``equilibrium.stability``).

    Raises ``FieldError`` for bad input, such as a field of whole numbers or a range that is not
    positive.
    """
    expect(scenario)
    Integer(1, 10_000).check(most, "most")
    if not isinstance(over, Mapping) or len(over) != 2:
        raise FieldError("over", over, "two fields, each with (LOW, HIGH)")
    names = [fields.find(scenario, name) for name in over]
    fields.expect_apart(names, "over")
    ranges = [_range(field, over[field.name]) for field in names]

    def make(x: float, y: float) -> Loop | None:
        try:
            moved = fields.put(scenario, dict(zip(names, (x, y), strict=True)))
        except FieldError:  # the values contradict one another
            return None
        found = place(moved)
        return None if isinstance(found, str) else found.loop

    curves: list[tuple[hopf.Crossing, ...]] = []
    jumps: list[hopf.Jump] = []
    xs = np.geomspace(*ranges[0], SCAN)
    for y in np.geomspace(*ranges[1], ROWS + 2)[1:-1]:
        scan = hopf.crossings(make, xs, float(y))
        jumps += scan.jumps
        for at in scan.points:
            if not any(_on(at, curve) for curve in curves):
                curves.append(tuple(hopf.trace(make, at, ranges[0], ranges[1], most)))
    first, second = names
    return StabilityBoundary(
        scenario, (first.name, second.name), (first.unit, second.unit), tuple(curves), tuple(jumps)
    )


def _range(field: Field, ends: tuple[float, float]) -> tuple[float, float]:
    two = listed(ends, f"over {field.name}", "two numbers")
    low, high = map(real, two) if len(two) == 2 else (math.nan, math.nan)
    if math.isnan(low + high):
        raise FieldError(f"over {field.name}", ends, "two numbers, (LOW, HIGH)")
    if not field.number or isinstance(field.plain, Integer):
        raise FieldError("over", field.name, "a field of numbers that need not be whole")
    if not 0.0 < low < high < math.inf:
        raise FieldError(f"over {field.name}", f"{low:g}:{high:g}", "LOW:HIGH, 0 < LOW < HIGH")
    return low, high


def _on(at: hopf.Crossing, curve: tuple[hopf.Crossing, ...]) -> bool:
    """Whether ``curve``, a boundary traced earlier, passes through the point ``at`` or very near.

    Between its computed points the curve is taken as straight lines in the logarithms of x and y.
    """
    x, y = math.log(at.x), math.log(at.y)
    points = np.log([(each.x, each.y) for each in curve])
    for one, two in itertools.pairwise(points):
        if min(one[1], two[1]) - 1e-9 <= y <= max(one[1], two[1]) + 1e-9:
            part = 0.5 if one[1] == two[1] else (y - one[1]) / (two[1] - one[1])
            if abs(one[0] + part * (two[0] - one[0]) - x) < SAME + 0.1 * abs(two[0] - one[0]):
                return True
    return False
