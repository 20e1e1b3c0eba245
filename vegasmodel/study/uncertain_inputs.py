"""Defines the fields of a scenario that are known only with errors, and the sizes of these errors.

``of_errors`` reads the errors that a user gives, such as ``{"rtt": "5 %"}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer, Quantity
from vegasmodel.fields.units import KINDS
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study import fields
from vegasmodel.study.fields import Field

__all__ = ["Input", "numbers", "of_errors"]

# short names, such as rtt for the RTTs of all groups: the part of the scenario that has the key
SHORT_NAMES = {"rtt": "flow", "over_estimate": "flow", "capacity": "link"}


@dataclass(frozen=True, eq=False)
class Input:
    """One field, or several fields that have the same random error.

    If ``share`` is True, the error is a fraction of each field's value.  Otherwise it is an amount
    in the fields' unit.  ``sd`` is the standard deviation of this fraction or amount.  The function
    ``sensitivity`` has no errors; there ``sd`` only sets the step by which it changes the fields.
    """

    name: str  # as the user gives it
    fields: tuple[Field, ...]
    values: tuple[float, ...]  # of the fields, in the scenario
    share: bool
    sd: float

    def amount(self, by: float) -> str:
        """A change of the fields as text, such as ``+0.2 %``, or ``-0.0002 s`` if it is an amount.

        ``by`` is the change: a fraction of the fields' values, or an amount in their unit.
        """
        return f"{100.0 * by:+.2g} %" if self.share else f"{by:+.2g} {self.fields[0].unit}".strip()

    def moved(self, scenario: Scenario, by: float) -> Scenario:
        """A copy of the scenario with the fields changed by ``by``, a fraction or an amount.

        Raises ``FieldError`` if the scenario does not allow the new values.
        """
        new = [value * (1.0 + by) if self.share else value + by for value in self.values]
        return fields.put(scenario, dict(zip(self.fields, new, strict=True)))


def of_errors(scenario: Scenario, errors: Mapping[str, str | float]) -> list[Input]:
    """The fields that have errors, and the standard deviations, as ``uncertainty`` explains them.

    Raises ``FieldError`` in the same cases as ``uncertainty``, except for a wrong model.
    """
    expect(scenario)
    if not isinstance(errors, Mapping) or not errors:
        raise FieldError("errors", errors, 'a mapping such as {"rtt": "5 %"}')
    inputs = [_input(scenario, name, error) for name, error in errors.items()]
    for i, given in enumerate(inputs):
        for other in inputs[:i]:
            if _changed_keys(given) == _changed_keys(other):
                same = f"it means the same as {other.name}, and its error would count twice"
                raise FieldError("errors", given.name, same, wrong="is given twice")
            _expect_independent(scenario, given, other)
            _expect_independent(scenario, other, given)
    return inputs


def numbers(
    scenario: Scenario, name: str, where: str = "field", also: Sequence[str] = ()
) -> tuple[tuple[Field, ...], tuple[float, ...]]:
    """The field called ``name``, split into one for each link or group of flows, and their values.

    For example, ``flow.rtt`` becomes ``flow.a.rtt`` and ``flow.b.rtt``. A field that belongs to one
    link or group only, or to none, is not split. ``fields.find`` explains ``where`` and ``also``.

    Raises ``FieldError`` for a field that takes only whole numbers or words, and for a value that
    is not a finite number.
    """
    found = fields.find(scenario, name, where, also).apart(scenario)
    for field in found:
        value = field.of(scenario)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not field.number or not number or not math.isfinite(value):
            allowed = "a finite number, to have a slope or an error"
            if isinstance(field.plain, Quantity):
                allowed += f": set {field.tail} to {KINDS[field.plain.kind].allowed}"
            raise FieldError(field.name, value, allowed)
        if isinstance(field.plain, Integer):
            allowed = "a number that need not be whole, to have a slope or an error"
            raise FieldError(field.name, value, allowed)
    return tuple(found), tuple(float(field.of(scenario)) for field in found)


def _changed_keys(given: Input) -> set[tuple[Any, ...]]:
    """The keys of the scenario that an input changes, as a set of tuples.

    The caller compares the sets of two inputs, to find out whether they change the same key. A
    tuple has the part of the scenario (link, flow or run), the index of the link or group, the key,
    and whether the key belongs to the link's queue.
    """
    return {
        (field.part, i, field.key, field.queue)
        for field in given.fields
        for i in (field.indices or (0,))
    }


def _expect_independent(scenario: Scenario, given: Input, other: Input) -> None:
    """Raise ``FieldError`` if a change of ``given``, an alpha, also changes a beta of ``other``.

    This is so if a group of flows (``[[flow]]`` table) has alpha = beta, because its beta then
    changes with its alpha.
    """
    tied = {i for i, group in enumerate(scenario.flows) if group.one_threshold}
    moved = {
        ("flow", i, "beta", False)
        for i in tied
        if ("flow", i, "alpha", False) in _changed_keys(given)
    }
    if moved & _changed_keys(other):
        wrong = f"moves with {given.name}, because alpha = beta"
        raise FieldError("errors", other.name, "give the error of only one of them", wrong=wrong)


def _input(scenario: Scenario, name: str, error: str | float) -> Input:
    """One entry of the user's errors: the name of a field, or a short name, and its error.

    Raises ``FieldError`` if the error is not positive, or has the wrong form.
    """
    names = [name]
    if SHORT_NAMES.get(name) == "link":
        names = [f"link.{link.name}.{name}" for link in scenario.links]
    elif name in SHORT_NAMES:
        groups = [g for g in scenario.flows if name != "over_estimate" or g.keeps_backlog]
        names = [f"flow.{group.name}.{name}" for group in groups]
    # for each of these names, its fields (one for each link or group) and their values
    known = [numbers(scenario, each, "errors", tuple(SHORT_NAMES)) for each in names]
    parts = tuple(part for parts, _ in known for part in parts)
    values = tuple(value for _, values in known for value in values)
    # a plain number and a percentage are fractions of the value; any other text is an amount
    share = not isinstance(error, str) or error.strip().endswith("%")
    where = f"uncertain {name}"
    sd = math.nan
    if not share and parts:
        sd = _amount(scenario, parts[0], str(error), where)
    elif share and any(values):
        sd = _fraction(str(error).strip())
    elif share:
        allowed = f"an amount in its unit: {name} is 0, and a share of 0 is 0"
        raise FieldError(where, error, allowed)
    if not 0.0 < sd < math.inf:
        allowed = "a share above 0 such as 5 %, or an amount above 0 in its unit"
        raise FieldError(where, error, allowed)
    if not isinstance(error, str) and sd > 1.0:
        unit = f" {parts[0].unit}".rstrip()
        allowed = (
            "a number is a share of the value, at most 1 (0.05 is 5 %); "
            f'an amount is text with its unit, such as "{error:g}{unit}"'
        )
        raise FieldError(where, error, allowed)
    return Input(name=name, fields=parts, values=values, share=share, sd=sd)


def _amount(scenario: Scenario, field: Field, text: str, where: str) -> float:
    """The standard deviation in a text such as ``2 ms``, in the field's own unit.

    Raises ``FieldError``, which names ``where``, if the text is no value of the field.
    """
    try:
        return float(field.read(text.strip(), scenario))
    except FieldError as wrong:
        allowed = f'{wrong.allowed}; or a share of the value such as "5 %"'
        raise FieldError(where, text, allowed) from None


def _fraction(text: str) -> float:
    """The number in a text such as ``0.05`` or ``5 %``; NaN if the text has another form."""
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return math.nan
