"""Makes the points of a sweep: all combinations of given values, or random points within ranges.

A point gives one value to each field that varies.  The points are divided into rectangular blocks
of limited size.  A sweep computes and writes one block at a time, or several in parallel.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer, listed
from vegasmodel.scenario import Scenario, expect
from vegasmodel.scenario.parts import warn_of_ms
from vegasmodel.study import fields
from vegasmodel.study.fields import Field
from vegasmodel.study.points import Points

__all__ = ["Axis", "Block", "Grid", "make", "units_given"]

MAX_POINTS = 100_000_000  # points
MAX_VALUES = 10_000_000  # values of one field
DIGITS = 12  # significant digits of a grid's values, to avoid 0.060000000000000005
DRAW = "--draw (in Python draw)"  # for error messages, of the command and of the function
# how the values of a field may be written, for error messages
FORMS = f"START:STOP:STEP, a list a,b,c, or, only with {DRAW}, a range LOW..HIGH"

Block = tuple[slice, ...]  # the block's part of each dimension of the grid


@dataclass(frozen=True, eq=False)
class Axis:
    """A field that varies in a sweep, and its values.

    If ``drawn``, the field's values are random, and ``values`` holds the two ends of their range.
    """

    field: Field
    values: NDArray[Any]
    drawn: bool = False


@dataclass(frozen=True, eq=False)
class Grid:
    """The points of a sweep: a scenario, and the values that its fields take (``axes``).

    By default the points are all combinations of the values.  If ``draw`` is given, it is the
    number of points, and they are drawn at random with ``seed``.
    """

    scenario: Scenario
    axes: tuple[Axis, ...]
    draw: int | None
    seed: int

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the grid's dimensions: the fields' names, or ``point`` for random points."""
        return ("point",) if self.draw else tuple(axis.field.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of points along each dimension of the grid."""
        return (self.draw,) if self.draw else tuple(axis.values.size for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of points of the whole grid."""
        return math.prod(self.shape)

    @functools.cached_property
    def coordinates(self) -> dict[str, tuple[str, NDArray[Any]]]:
        """The dimension and the values of each field, by the field's name."""
        if not self.draw:
            return {axis.field.name: (axis.field.name, axis.values) for axis in self.axes}
        return {
            axis.field.name: ("point", self._drawn(i, axis)) for i, axis in enumerate(self.axes)
        }

    def _drawn(self, i: int, axis: Axis) -> NDArray[Any]:
        """The random values of the field number ``i``, one for each point."""
        rng = np.random.default_rng([self.seed, i])
        low, high = axis.values
        if isinstance(axis.field.plain, Integer):
            return rng.integers(low, high, self.draw, endpoint=True)
        return rng.uniform(low, high, self.draw)

    def chunks(self, largest: int) -> tuple[int, ...]:
        """The shape of a block of at most ``largest`` points.

        A block extends as far as possible along the grid's last dimension, then along the one
        before it, and so on.
        """
        shape, points = list(self.shape), largest  # points that the dimensions up to i may have
        for i in reversed(range(len(shape))):
            shape[i] = min(shape[i], max(points, 1))
            points //= shape[i]
        return tuple(shape)

    def blocks(self, chunks: tuple[int, ...]) -> Iterator[Block]:
        """Yield the blocks of the grid.

        ``chunks`` is their shape.  The last block along a dimension may be smaller.
        """
        starts = [range(0, n, step) for n, step in zip(self.shape, chunks, strict=True)]
        for corner in itertools.product(*starts):
            yield tuple(
                slice(first, min(first + step, n))
                for first, step, n in zip(corner, chunks, self.shape, strict=True)
            )

    def points(self, block: Block) -> Points:
        """The points of a block, in order; the values of the last dimension change fastest."""
        names = [axis.field for axis in self.axes]
        coordinates = [values for _, values in self.coordinates.values()]
        if self.draw:
            columns = [values[block[0]] for values in coordinates]
        else:
            parts = [values[part] for values, part in zip(coordinates, block, strict=True)]
            columns = [np.ravel(each) for each in np.meshgrid(*parts, indexing="ij")]
        return Points(self.scenario, tuple(names), tuple(columns))


def make(
    scenario: Scenario,
    over: Mapping[str, ArrayLike | str] | Sequence[str],
    draw: int | None = None,
    seed: int = 1,
) -> Grid:
    """Make the grid of a sweep from the values of its fields.

    ``over`` is a list of texts ``FIELD=VALUES``, or a mapping from field to values.  Without
    ``draw``, the points are all combinations of the fields' values, and no value may be a range
    ``LOW..HIGH``.  If ``draw`` is given, it is the number of points, and they are drawn at random
    with ``seed``.  Every field then needs a range ``LOW..HIGH`` as its values.

    Raises ``FieldError`` for an unknown field, a field given twice, bad values, or more points than
    ``MAX_POINTS``.
    """
    expect(scenario)
    if not isinstance(over, Mapping):
        what = 'texts FIELD=VALUES, or a dictionary such as {"link.buffer": [10, 20]}'
        over = listed(over, "over", what)
    pairs = list(over.items()) if isinstance(over, Mapping) else [_split(text) for text in over]
    if not pairs:
        raise FieldError("over", "nothing", f"FIELD={FORMS}")
    Integer(0, 2**31 - 1).check(seed, "seed")
    if draw is not None:
        Integer(1, MAX_POINTS).check(draw, "draw")
    axes = tuple(_axis(scenario, name, values) for name, values in pairs)
    fields.expect_apart([axis.field for axis in axes])
    for axis in axes:
        if axis.drawn != bool(draw):
            if draw:
                allowed = f"a range LOW..HIGH, because {DRAW} asks for random points"
            else:
                allowed = f"values, such as a,b,c; or give {DRAW}, the number of random points"
            wrong = "has a range LOW..HIGH" if axis.drawn else "has values"
            raise FieldError("over", axis.field.name, allowed, wrong=wrong)
    # A value such as "1 BDP" must not change with another field that varies.
    for (_, values), axis in zip(pairs, axes, strict=True):
        for other in axes:
            if other is not axis:
                _expect_fixed(axis, values, scenario, other)
    grid = Grid(scenario, axes, draw, seed)
    if grid.size > MAX_POINTS:
        raise FieldError("over", f"{grid.size} points", f"at most {MAX_POINTS} points")
    return grid


def units_given(scenario: Scenario, over: Sequence[str]) -> dict[str, tuple[str, float]]:
    """The unit in which the user gave the values of a field, if it is not the field's own unit.

    ``over`` are the texts ``FIELD=VALUES`` of a sweep.  The result maps the name of a field to the
    unit, and to the value of this unit in the field's own unit.  For example, a buffer given in ms
    at a link of 1080 pkt/s has ("ms", 1.08): the field's own unit is a packet, and the link sends
    1.08 packets in 1 ms.  Fields whose own unit is the second are left out, and so are fields with
    values in several units.
    """
    found = {}
    for name, text in map(_split, over):
        field = fields.find(scenario, name, "over")
        if not field.number or field.unit == "s":
            continue
        # each value as text, its number and its unit; a value of 0 needs no unit
        written = [(part, *fields.NUMBER.findall(part)[0]) for part in map(str.strip, _parts(text))]
        given = [(part, number, unit) for part, number, unit in written if number and float(number)]
        if given and len({unit for _, _, unit in given}) == 1:
            part, number, unit = given[0]
            unit_value = float(field.read(part, scenario)) / float(number)
            if abs(unit_value - 1.0) > 1e-9:
                found[name] = (unit, unit_value)
    return found


def _parts(values: str) -> list[str]:
    """The single values in the text START:STOP:STEP, a,b,c or LOW..HIGH."""
    return re.split("[,:]|[.][.]", values)


def _expect_fixed(axis: Axis, given: ArrayLike | str, scenario: Scenario, other: Axis) -> None:
    """Raise ``FieldError`` if a value of ``axis`` depends on the values of the axis ``other``.

    For example, a buffer of ``0.5 BDP`` is a different number of packets for each RTT.  ``given``
    are the values of ``axis`` as the user gave them.
    """
    field, texts = axis.field, _parts(given) if isinstance(given, str) else given
    for text in np.ravel(np.asarray(texts, dtype=object)).tolist():
        if not isinstance(text, str):  # a number in the field's own unit
            continue
        for value in np.sort(other.values)[[0, -1]]:  # the smallest and the largest
            try:
                changed_scenario = fields.put(scenario, {other.field: value.item()})
                unchanged = field.read(text, changed_scenario) == field.read(text, scenario)
            except FieldError:  # at this point the values contradict one another
                continue
            if not unchanged:
                wrong = f"changes with {other.field.name}, which varies, too"
                allowed = f"values in {field.unit}; or vary {other.field.name} alone, then "
                allowed += f"{field.name} follows it if the scenario file gives it as {text!r}"
                raise FieldError(field.name, text, allowed, wrong=wrong)


def _split(text: str) -> tuple[str, str]:
    """The name of the field and the text of its values in ``FIELD=VALUES``."""
    name, equals, values = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not values.strip():
        raise FieldError("over", text, f"FIELD={FORMS}")
    return name.strip(), values.strip()


def _axis(scenario: Scenario, name: str, values: ArrayLike | str) -> Axis:
    """The field called ``name`` with its values, as the user gives them: a text or an array."""
    field = fields.find(scenario, name, "over")
    if isinstance(values, str):
        return _parsed(scenario, field, values)
    array = np.atleast_1d(np.asarray(values, dtype=object))
    if array.ndim != 1 or not 0 < array.size <= MAX_VALUES:
        raise FieldError(name, array.shape, f"1 to {MAX_VALUES} values in a row")
    each = [value.item() if isinstance(value, np.generic) else value for value in array.tolist()]
    read = [field.read(v, scenario) if isinstance(v, str) else field.check(v) for v in each]
    if field.tail == "rtt":
        warn_of_ms(each[-1], 6)  # the user's line is 6 calls up
    return Axis(field, _checked(field, read))


def _parsed(scenario: Scenario, field: Field, text: str) -> Axis:
    """The field with the values in ``text``: START:STOP:STEP, a list a,b,c, or a range LOW..HIGH.

    Of a range, values are drawn at random later, so the result has only its two ends.
    """
    low, dots, high = text.partition("..")
    if dots:  # a range
        ends = [field.read(end, scenario) for end in (low, high)]
        fields.expect_units(field, (low, high), ends, field.name)
        if not (field.number and ends[0] < ends[1] < math.inf):
            raise FieldError(field.name, text, "a range of finite numbers, the lower end first")
        return Axis(field, np.array(ends), drawn=True)
    parts = text.split(":")
    if field.number and len(parts) == 3:
        return Axis(field, _stepped(scenario, field, parts, text))
    if len(parts) > 1 and field.number:
        raise FieldError(field.name, text, FORMS)
    parts = text.split(",")
    values = [field.read(part, scenario) for part in parts]
    fields.expect_units(field, parts, values, field.name)
    return Axis(field, _checked(field, values))


def _stepped(scenario: Scenario, field: Field, parts: list[str], text: str) -> NDArray[Any]:
    """The values START, START + STEP, ... up to STOP; ``parts`` are these three as texts.

    ``text`` is START:STOP:STEP as a whole, for an error.
    """
    start, stop = (field.read(part, scenario) for part in parts[:2])
    step = _step(scenario, field, parts[2])
    fields.expect_units(field, parts, (start, stop, step), field.name)
    # the factor keeps STOP among the values if rounding makes the quotient slightly too small
    steps = (stop - start) / step * (1 + 1e-12)
    if not 0 <= steps < MAX_VALUES:  # also if STOP is infinite, or the quotient too large
        allowed = f"START:STOP:STEP with START at most STOP, and at most {MAX_VALUES} values"
        raise FieldError(field.name, text, allowed)
    n = math.floor(steps) + 1
    if isinstance(field.plain, Integer):
        return np.arange(n) * int(step) + int(start)
    values = (start + step * np.arange(n)).tolist()
    return np.array([float(f"{value:.{DIGITS}g}") for value in values])


def _step(scenario: Scenario, field: Field, text: str) -> float:
    """Read ``text``, the STEP where a user has written the values as ``START:STOP:STEP``.

    Raises ``FieldError`` unless the step is a finite number above 0. If the field holds whole
    numbers, or is a buffer, the step must also be a value that the field accepts.
    """
    from vegasmodel.fields.units import parse

    if isinstance(field.plain, Integer):
        step = float(field.read(text, scenario))
        if not step:
            raise FieldError(field.name, text, "a step of at least 1")
        return step
    kind, size = field.plain.kind, field.size(scenario)
    if kind == "buffer":
        step = float(field.read(text, scenario))
        if not 0 < step < math.inf:
            raise FieldError(field.name, text, "a finite step, more than 0")
        return step
    return parse(text, kind, field=field.name, packet_size=size, low_open=True)


def _checked(field: Field, values: list[Any]) -> NDArray[Any]:
    """The values as an array of numbers, yes or no; values of other fields become texts.

    Raises ``FieldError`` if a value is given twice.
    """
    if len(set(values)) < len(values):
        raise FieldError(field.name, f"{len(values)} values", "each value once")
    if not (field.number or field.yes_no):
        return np.array([str(value) for value in values])
    return np.array(values)
