"""Finds a field of a scenario by its name, such as ``link.buffer`` or ``flow.vegas.alpha``.

In the following names, KEY is the field's key in a scenario file, and NAME is the name of a link or
of a group of flows.

- ``link.KEY`` is the value of KEY for all links, ``link.NAME.KEY`` for one link.
- ``flow.KEY`` is the value for all groups, ``flow.NAME.KEY`` for one group.
- ``link.queue.KEY`` is the value for the queues of all links. This name is allowed if all links
  have the same queue discipline.
- ``link.NAME.queue.KEY`` is the value for the queue of one link.
- ``run.KEY`` is a value of the run, such as ``run.duration``.
- ``packet_size`` and ``ack_size`` are values of the whole scenario.

If any group has a delay-based law, such as Vegas, then ``flow.alpha``, ``flow.beta`` and
``flow.gamma`` are the values for the groups with such a law only; otherwise for all groups.

If a group has alpha = beta, a change of its ``alpha`` alone also changes its ``beta``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vegasmodel.fields import rules
from vegasmodel.fields.checked import OneOf
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Boolean, Integer, Quantity, Unresolved
from vegasmodel.fields.units import KINDS
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.scenario.changes import THRESHOLDS, with_thresholds

__all__ = ["Field", "find", "known", "put"]

# keys whose values a study cannot vary, such as names
_FIXED_KEYS = ("name", "match", "path", "drops", "link", "flow", "run", "queue", "direction")
_PARTS = {"link": Link, "flow": Flow}  # the parts of a scenario of which there may be several
NUMBER = re.compile(  # a number, maybe with a unit
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)?\s*(.*)", re.DOTALL
)
_THRESHOLD_KEYS = {"alpha", "beta"}  # a user may ask for both together
_NAMES_IN_ERROR = 6  # names of fields in an error message


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a scenario that a study can vary, such as ``flow.rtt``, with its rule.

    The rule says which values are allowed.  A field may belong to several links, or to several
    groups of flows (entries ``[[flow]]``).  For example, ``flow.rtt`` belongs to all groups.
    """

    name: str  # such as "flow.rtt", as the user gives it
    part: str  # "link", "flow", "run" or "" for the scenario itself
    indices: tuple[int, ...]  # which links or groups
    key: str  # the attribute of the part, or of the link's queue if ``queue``
    queue: bool  # whether the field belongs to the queues of links
    rule: Any  # which values are allowed (``fields.rules``)

    @property
    def tail(self) -> str:
        """The last part of the field's name, which is its key in a scenario file."""
        return self.name.rpartition(".")[2]

    @property
    def plain(self) -> Any:
        """The rule for the field's values.

        If the field accepts tables besides numbers, this is the rule for the numbers.
        """
        either = isinstance(self.rule, OneOf) and self.rule.plain is not None
        return self.rule.plain if either else self.rule

    @property
    def number(self) -> bool:
        """Whether the field's values are numbers, and not words."""
        return isinstance(self.plain, (Quantity, Integer))

    @property
    def yes_no(self) -> bool:
        """Whether the field can only be true or false."""
        return isinstance(self.plain, Boolean)

    @property
    def unit(self) -> str:
        """The unit in which the package holds the field's values, such as ``s``.

        It is empty for counts, fractions and words.
        """
        return KINDS[self.plain.kind].unit if isinstance(self.plain, Quantity) else ""

    def read(self, text: str, scenario: Scenario) -> Any:
        """Read a value from text, such as ``20 ms``.  Raises ``FieldError`` if it is not allowed.

        A buffer as a time or in bandwidth-delay products is converted to packets.
        """
        if isinstance(self.plain, Integer):
            try:
                value: Any = int(text)
            except ValueError:
                value = text
            self.plain.check(value, self.name)
            return value
        if self.yes_no:
            return self.check({"true": True, "false": False}.get(text.strip().lower(), text))
        value = self.plain.read(text, self.name, self.size(scenario))
        if isinstance(value, Unresolved):  # a buffer as a time, or in bandwidth-delay products
            return self.of(scenario.replace({self.name: text}))
        return value

    def size(self, scenario: Scenario) -> float:
        """The packet size, in bytes, with which the field's values are converted to packets.

        A field of flows may belong to several groups of flows; an entry [[flow]] of the scenario is
        a group.  The field's values are converted with the packet size of the first of these
        groups.  Two kinds of fields use the scenario's packet size instead: ``access``, the rate
        of a flow's own access links, and the fields that belong to no flow.
        """
        if self.part == "flow" and self.key != "access":
            return scenario.size_of(scenario.flows[self.indices[0]])
        return scenario.packet_size

    def of(self, scenario: Scenario) -> Any:
        """The field's value in the scenario.

        If the field belongs to several links or groups of flows, it is the value of the first one.
        """
        return getattr(self._owners(scenario)[0], self.key)

    def check(self, value: Any) -> Any:
        """Check a value of the field and return it; numbers become Python's ``int`` or ``float``.

        Raises ``FieldError`` if the field's rule refuses the value.
        """
        number = rules.real(value)
        if self.number and not math.isnan(number):
            whole = isinstance(self.plain, Integer)
            value = int(value) if whole and number.is_integer() else number
        self.plain.check(value, self.name)
        return value

    def overlaps(self, other: Field) -> bool:
        """Whether this field and ``other`` are the same field of some link or group.

        An example is ``flow.rtt``, the RTT of all flows, and ``flow.NAME.rtt``, the RTT of one
        group of flows.  A study may not vary both.
        """
        same = (self.part, self.key, self.queue) == (other.part, other.key, other.queue)
        return same and (
            self.indices == other.indices or not {*self.indices}.isdisjoint(other.indices)
        )

    def moves_beta(self, scenario: Scenario) -> list[str]:
        """The groups of flows whose beta changes if this field changes; empty if it is not alpha.

        They are the groups of the field that have alpha = beta in the scenario.
        """
        if self.part != "flow" or self.key != "alpha":
            return []
        groups = [scenario.flows[i] for i in self.indices]
        return [g.name for g in groups if g.keeps_backlog and g.one_threshold]

    def apart(self, scenario: Scenario) -> list[Field]:
        """Split the field into one for each link or group: ``flow.a.rtt`` and ``flow.b.rtt``.

        If the field belongs to one link or group only, or to none, the list contains only the field
        itself.
        """
        if len(self.indices) < 2:
            return [self]
        parts: Sequence[Any] = scenario.links if self.part == "link" else scenario.flows
        rest = self.name.partition(".")[2]
        return [
            dataclasses.replace(self, name=f"{self.part}.{parts[i].name}.{rest}", indices=(i,))
            for i in self.indices
        ]

    def _owners(self, scenario: Scenario) -> list[Any]:
        """The objects of the scenario that have the field: links, queues, groups, the run, ..."""
        if self.part == "run":
            return [scenario.run]
        if not self.part:
            return [scenario]
        parts: Sequence[Any] = scenario.links if self.part == "link" else scenario.flows
        owners = [parts[i] for i in self.indices]
        return [owner.queue for owner in owners] if self.queue else owners


def find(scenario: Scenario, name: str, where: str = "field", also: Sequence[str] = ()) -> Field:
    """The field called ``name``.

    Raises ``FieldError`` if there is none; the error suggests a similar field if it finds one.
    ``where`` is the argument of the caller that the error names as wrong.  ``also`` has further
    names that the caller accepts; the error lists these, too.
    """
    for field in _all(scenario):
        if isinstance(name, str) and field.name == name:
            return field
    names = known(scenario)
    # fields whose names end with the given one: flow.rtt if the user gives rtt
    longer_names = [known for known in names if known.endswith(f".{name}")]
    hint = (
        f"; did you mean {longer_names[0]!r}?"
        if longer_names
        else rules.nearest(name, [*also, *names])
    )
    also_accepted = f"{', '.join(also)}, or " if also else ""
    if isinstance(name, str):  # the user may have tried to vary both thresholds: "alpha,beta"
        keys = {part.rpartition(".")[2] for part in name.split(",")}
        if keys == _THRESHOLD_KEYS:
            hint = "; if the scenario has alpha = beta, the field alpha changes both"
    examples = ", ".join(_examples(scenario, names))
    allowed = f"{also_accepted}a field of this scenario: {examples}{hint}"
    raise FieldError(where, name, allowed)


def expect_units(field: Field, texts: Sequence[str], values: Sequence[Any], where: str) -> None:
    """Raise ``FieldError`` if some of the texts have a unit, and others, such as 10, have none.

    ``texts`` are values of the field, such as the ends of a range, and ``values`` what they mean. A
    number without a unit counts packets, or is a fraction. Beside values in another unit it is
    probably a mistake: in ``10:60ms`` the user may mean 10 ms. 0 and infinity need no unit.
    ``where`` is the argument of the caller that the error names.
    """
    bare, other = "", ""  # the first number without a unit, and the first unit that changes a value
    for text, value in zip(texts, values, strict=True):
        number, unit = NUMBER.findall(text.strip())[0]
        if number and float(number):
            bare = bare or ("" if unit else number)
            other = other or (unit if float(number) != value else "")
    if field.number and bare and other:
        allowed = f"{bare}{field.unit}" if field.unit else "all values as fractions"
        wrong = f"has no unit beside values in {other}"
        raise FieldError(where, bare, f"write {bare}{other}, or {allowed}", wrong=wrong)


def expect_apart(fields: Sequence[Field]) -> None:
    """Raise ``FieldError`` if two of the fields set the same key of one link or ``[[flow]]``."""
    for i, field in enumerate(fields):
        for other in fields[:i]:
            if field.overlaps(other):
                both = f"it sets the same key as {other.name}"
                raise FieldError("over", field.name, both, wrong="is given twice")


def known(scenario: Scenario) -> list[str]:
    """The names of all fields of the scenario that a study can vary, such as ``link.buffer``."""
    return [field.name for field in _all(scenario)]


def _examples(scenario: Scenario, names: list[str]) -> list[str]:
    """A few common ``names`` for an error message; the last entry says how many there are.

    The alpha of a group is among them only if the group keeps a backlog, as Vegas does.
    """
    without_alpha = {f"flow.{g.name}.alpha" for g in scenario.flows if not g.keeps_backlog}
    most_used = ("link.buffer", "link.capacity", "flow.rtt")
    shown = [name for name in most_used if name in names]
    shown += [name for name in names if name.startswith("link.queue.")]
    of_groups = [n for n in names if n.count(".") > 1 and n not in without_alpha]
    shown += [n for n in of_groups if n.endswith((".alpha", ".decrease"))]
    shown = shown[:_NAMES_IN_ERROR]
    return [*shown, f"... ({len(names)} in all)"] if len(names) > len(shown) else shown


def _all(scenario: Scenario) -> Iterator[Field]:
    """Yield all fields of the scenario that a study can vary.

    For example, the buffers of two links a and b are three fields: ``link.buffer`` sets both
    buffers, ``link.a.buffer`` and ``link.b.buffer`` set one each. The same holds for the groups of
    flows (entries ``[[flow]]`` of the scenario): ``flow.rtt`` sets the RTTs of all groups, and
    ``flow.NAME.rtt`` that of one group.
    """
    for part, cls in _PARTS.items():
        owners: Sequence[Any] = scenario.links if part == "link" else scenario.flows
        # pairs: how a field's name begins, and the indices of the links or groups that it sets
        places = [(part, tuple(range(len(owners))))]
        places += [(f"{part}.{owner.name}", (i,)) for i, owner in enumerate(owners)]
        for begin, indices in places:
            for field in _fields(cls, begin, part, indices, queue=False):
                if begin == "flow" and field.key in THRESHOLDS:
                    # beside a group with thresholds, flow.alpha, flow.beta and flow.gamma do not
                    # set the groups whose congestion control has none, such as Reno
                    field = dataclasses.replace(field, indices=with_thresholds(scenario.flows))
                yield field
            if part == "link":
                disciplines = {type(owners[i].queue) for i in indices}
                if len(disciplines) == 1:  # all these queues have the same keys
                    cls_of_queue = disciplines.pop()
                    yield from _fields(cls_of_queue, f"{begin}.queue", part, indices, queue=True)
    yield from _fields(Run, "run", "run", (), queue=False)
    yield from _fields(Scenario, "", "", (), queue=False)


def _fields(
    cls: type[Any], where: str, part: str, indices: tuple[int, ...], *, queue: bool
) -> Iterator[Field]:
    """Yield the fields of the dataclass ``cls``, such as ``Link``, that a study can vary.

    ``where`` is the beginning of their names, such as ``link.NAME``. ``part`` is the part of the
    scenario to which they belong, such as "link", and ``indices`` says to which links or groups of
    flows. With ``queue`` they belong to the queues of these links.
    """
    for each in dataclasses.fields(cls):
        key = each.metadata.get("key") or each.name
        if key not in _FIXED_KEYS and key != "discipline":
            name = f"{where}.{key}" if where else key
            yield Field(
                name=name,
                part=part,
                indices=indices,
                key=each.name,
                queue=queue,
                rule=each.metadata["rule"],
            )


def put(scenario: Scenario, values: Mapping[Field, Any]) -> Scenario:
    """A copy of the scenario in which these fields have these values.

    If a group of flows (an entry ``[[flow]]``) has alpha = beta, and ``values`` changes only its
    alpha, its beta changes with it.

    Raises ``FieldError`` if the values contradict one another, such as alpha above beta.
    """
    return scenario.replace({field.name: value for field, value in values.items()})
