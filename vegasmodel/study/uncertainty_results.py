"""Holds the results of ``sensitivity`` and ``uncertainty``, and shows them as tables and JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vegasmodel.fields.units import format_number
from vegasmodel.metrics import Floats, percent, with_error
from vegasmodel.support.json_numbers import finite
from vegasmodel.support.shown import Shown, Table

__all__ = ["Sensitivity", "Uncertainty"]


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Shown):
    """How a model's throughputs depend on fields of the scenario.

    ``table`` gives a text with a line for each flow, and a column for each field.

    ``slopes`` [flow, field] holds d ln(throughput)/d(field).  The fields have the package's units,
    such as seconds.  A slope is NaN if the model has no result for the scenario or for nearby
    values of the field, or if a throughput is 0.  ``reason`` then says why; it is ``None`` if no
    slope is NaN.

    Each slope is computed with two step sizes, from below and from above.  ``smooth`` [field] is
    True if all of them give nearly the same slopes.  It is False, for example, at a value of the
    field where a slope jumps.

    ``broken`` has the names of the model's assumptions that do not hold in the scenario, or after a
    small change of a field.  If an assumption fails only after the change, the model may ignore the
    field: the slopes are then 0, although the true throughputs depend on the field.
    """

    model: str
    fields: tuple[str, ...]
    values: Floats
    slopes: Floats
    smooth: tuple[bool, ...]
    reason: str | None = None
    names: tuple[str, ...] = ()  # of the flows
    broken: tuple[str, ...] = ()  # assumptions that do not hold

    def to_json(self) -> dict[str, Any]:
        """The result as plain data: an entry for each field, with each flow's slope by its name.

        Fields are in seconds, packets or pkt/s. An unknown slope is ``None``.
        """
        return {
            "model": self.model,
            "fields": {
                field: {
                    "value": float(self.values[k]),
                    "slopes": dict(zip(self.names, map(finite, self.slopes[:, k]), strict=True)),
                    "smooth": self.smooth[k],
                }
                for k, field in enumerate(self.fields)
            },
            "broken": list(self.broken),
            "reason": self.reason,
        }

    def __repr__(self) -> str:
        """One line: the model, and the slopes of up to three flows by up to two fields."""
        slopes = [
            f"{name} by {field} {_cell(self.slopes[i, k])}"
            for i, name in enumerate(self.names[:3])
            for k, field in enumerate(self.fields[:2])
        ]
        more = ["..."] if self.slopes.size > len(slopes) else []
        return f"<Sensitivity {self.model}, d ln: {', '.join([*slopes, *more])}{self._doubts}>"

    @property
    def _doubts(self) -> str:
        """A text on what is wrong with the slopes; empty if nothing is.

        The text says why slopes are missing, or else in which fields they are not smooth. Then it
        names the assumptions that do not hold. Each of the two parts begins with a semicolon.
        """
        jumps = [name for name, smooth in zip(self.fields, self.smooth, strict=True) if not smooth]
        problem = self.reason or (f"not smooth: {', '.join(jumps)}" if jumps else "")
        return (f"; {problem}" if problem else "") + _not_held(self.broken)

    @property
    def _shown(self) -> Table:
        """A table of the slopes, with flows in rows and fields in columns."""
        rows = [[name, *map(_cell, row)] for name, row in zip(self.names, self.slopes, strict=True)]
        title = f"{self.model}: d ln(throughput)/d(field){self._doubts}"
        return Table(title, ["flow", *self.fields], rows)

    @property
    def elasticities(self) -> Floats:
        """The relative change of each throughput per relative change of each field, [flow, field].

        It is d ln(throughput)/d ln(field), which is the slope times the field's value.
        """
        return np.asarray(self.slopes * self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty(Shown):
    """How uncertain a model's throughput ratios are if fields of the scenario are uncertain.

    ``table`` gives a text with a line for each ratio: its value, its standard deviation, and the
    fraction of its variance that each field causes.

    A ratio is the mean throughput of one group's flows divided by that of another group's flows.
    ``ratios`` holds the value and the standard deviation of each ratio.  ``parts`` holds, for each
    ratio, the fraction of its variance that each field causes.  If a number in them is NaN,
    ``reason`` says why; otherwise ``reason`` is ``None``.

    The standard deviations are computed as if each ratio were a linear function of the fields
    (``method``).  ``rough`` names the fields for which this is far from true.  For such a field, at
    least one of the following holds:

    - If the field changes by one of its standard deviations, up or down, a ratio differs from the
      linear function by more than a quarter of the ratio's standard deviation.
    - If the field changes by two of its standard deviations, a ratio differs from the linear
      function by more than one standard deviation of the ratio.
    - The field cannot rise, or cannot fall, by one of its standard deviations.
    - The slope of a ratio jumps at the field's value.
    - The model has no result for nearby values of the field.

    ``smooth`` is True if there are no such fields.  If there are, use ``sweep`` instead, with
    random values of the fields (``docs/sweep.md`` has an example).

    The standard deviations count the errors of the fields only, not the model's own error.
    ``broken`` has the names of the model's assumptions that do not hold in the scenario, or after a
    change of a field by one standard deviation.
    """

    model: str
    fields: tuple[str, ...]
    deviations: Floats  # of the fields: fractions of the value; amounts in the package's units
    ratios: dict[str, tuple[float, float]]
    parts: dict[str, Floats]
    rough: tuple[str, ...] = ()  # fields
    reason: str | None = None
    broken: tuple[str, ...] = ()  # assumptions that do not hold

    @property
    def method(self) -> str:
        """How the standard deviations were computed."""
        return "first order"

    @property
    def smooth(self) -> bool:
        """Whether the ratios are nearly linear in all fields; ``rough`` names the exceptions."""
        return not self.rough

    def __repr__(self) -> str:
        """One line: the model, and up to six ratios with their standard deviations."""
        shown = [
            f"{name} {with_error(*value_and_sd)}"
            for name, value_and_sd in list(self.ratios.items())[:6]
        ]
        more = ["..."] if len(self.ratios) > 6 else []
        return f"<Uncertainty {self.model}: {', '.join([*shown, *more])}; {self._doubts}>"

    @property
    def _doubts(self) -> str:
        """A text on how far the standard deviations can be trusted.

        The text says how they were computed, for which fields this method is rough, and what they
        leave out. If they are missing, it says why instead. Then it names the assumptions that do
        not hold.
        """
        rough = f", rough in {', '.join(self.rough)}" if self.rough else ""
        shown = any("±" in with_error(*value_and_sd) for value_and_sd in self.ratios.values())
        sd = "±: standard deviation" if shown else "standard deviations of 0"
        method = f"{sd} to {self.method}{rough}, without the model's own error"
        return (self.reason or method) + _not_held(self.broken)

    @property
    def _shown(self) -> Table:
        """A row for each ratio: its value, its standard deviation, and each field's part of it."""
        rows = [
            [
                name,
                with_error(value, sd) if math.isfinite(value) else "-",
                _percent(sd / value if value > 0.0 else math.nan),
                *map(_percent, self.parts[name]),
            ]
            for name, (value, sd) in self.ratios.items()
        ]
        columns = ["ratio", "value", "±, %", *(f"part of {field}" for field in self.fields)]
        return Table(f"{self.model}: ratios of throughputs; {self._doubts}", columns, rows)

    def to_json(self) -> dict[str, Any]:
        """The result as an entry of the list ``uncertainty`` in a command's JSON document."""
        return {
            "model": self.model,
            "fields": dict(zip(self.fields, map(float, self.deviations), strict=True)),
            "ratios": {
                name: {
                    "value": finite(value),
                    "sd": finite(sd),
                    "parts": dict(zip(self.fields, map(finite, self.parts[name]), strict=True)),
                }
                for name, (value, sd) in self.ratios.items()
            },
            "method": self.method,
            "smooth": self.smooth,
            "rough": list(self.rough),
            "broken": list(self.broken),
            "reason": self.reason,
        }


def _cell(value: float) -> str:
    """A table's cell with the number; ``-`` if it is not known."""
    return format_number(value) if math.isfinite(value) else "-"


def _not_held(broken: tuple[str, ...]) -> str:
    """A text that names the assumptions that do not hold; empty if there are none.

    The text begins with a semicolon, because it follows another text.
    """
    return f"; does not hold: {', '.join(broken)}" if broken else ""


def _percent(part: float) -> str:
    """A table's cell with a part in percent; ``-`` if it is not known."""
    return percent(part) if math.isfinite(part) else "-"
