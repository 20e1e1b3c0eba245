"""Defines targets of ``design`` and bounds of ``predict``, such as a share of at least 0.3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.fields import rules
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import needs_packet_size, parse
from vegasmodel.metrics import Floats

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.points import Figures

__all__ = ["KINDS", "UNITS", "Target", "read"]

KINDS = {
    "ratio": "ratio:a/b=1, mean throughput of a flow of group a over one of group b; several "
    "groups as in a share: ratio:a+b/law:LAW=1",
    "share": "share:GROUP=0.3, the group's part of all that is delivered; share:A+B=0.3 of several "
    "groups together; share:law:LAW=0.3 of all flows with a law",
    "jain": "jain=0.95, Jain's index over the flows",
    "delay": "delay=20ms or delay:LINK=20ms, the mean queueing delay at a link",
    "utilization": "utilization=0.95 or utilization:LINK=0.95, of a link",
    "throughput": "throughput:GROUP=5Mbit/s, what all flows of the group deliver together, from "
    "warm-up to end; several groups as in a share: throughput:A+B=5Mbit/s",
}
UNITS = {"delay": "s", "throughput": "Mbit/s"}  # of the other quantities: none
OF_A_LINK = ("delay", "utilization")  # of the first link, if none is named
NAMES_LISTED = 8  # names of groups or links that an error lists
OF_A_LAW = "law:"  # before a law's name: all groups with this law


@dataclass(frozen=True)
class Target:
    """A quantity, such as the share of a group, and the ``value`` that it should have.

    Units are those of ``unit``: a delay is in s, and a throughput in Mbit/s.

    With the ``sense`` ``>=`` or ``<=`` the quantity should be at least or at most ``value``.

    ``of`` computes the quantity from a model's results. ``groups`` are names of groups of flows
    (entries ``[[flow]]``), whose flows count together. A ratio divides their mean throughput by
    that of the groups ``over``. A delay and a utilization are of the link with the index ``link``.
    ``of_whom`` names the groups, as the user wrote them, or the link. It is empty for Jain's index,
    and for the only link of a scenario.
    """

    kind: str
    groups: tuple[str, ...]
    value: float
    link: int = 0
    of_whom: str = ""
    over: tuple[str, ...] = ()  # the groups whose mean throughput divides a ratio
    sense: str = "="  # or ">=" or "<="

    @property
    def name(self) -> str:
        """The quantity as text, such as ``jain``, ``share:vegas``, or ``delay:b`` for link b."""
        return f"{self.kind}:{self.of_whom}" if self.of_whom else self.kind

    @property
    def unit(self) -> str:
        """The unit of the quantity's value, such as ``s`` for a delay; empty if it has none."""
        return UNITS.get(self.kind, "")

    def text(self, value: float, digits: int = 6) -> str:
        """A value of the target's quantity, such as a delay, as text with its unit."""
        return f"{value:.{digits}g} {self.unit}".strip()

    def within_bound(self, value: float) -> bool:
        """Whether a value of the quantity meets the bound; False if the target is no bound."""
        if self.sense == "=":
            return False
        return value >= self.value if self.sense == ">=" else value <= self.value

    @property
    def all_groups(self) -> tuple[str, ...]:
        """The names of the target's groups (``[[flow]]`` tables); of a ratio, on both its sides."""
        return (*self.groups, *self.over)

    def of(self, figures: Figures, scenario: Scenario) -> Floats:
        """The model's value of the quantity at each point of a study: an array [point].

        A point is a copy of the scenario in which some fields have other values.  ``figures`` holds
        the model's results at all points.  The quantity is NaN where the model does not give it.
        """
        names = [group.name for group in scenario.flows]
        groups = [names.index(name) for name in self.groups]  # their indices
        if self.kind == "ratio":
            mean = figures.mean_of(groups)
            mean_of_divisor = figures.mean_of([names.index(name) for name in self.over])
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(mean_of_divisor > 0, mean / mean_of_divisor, np.nan)
        if self.kind == "share":
            share: Floats = figures.group_share[:, groups].sum(axis=1)
            return share
        if self.kind == "throughput":
            total: Floats = figures.group_bps[:, groups].sum(axis=1) / 1e6
            return total
        if self.kind == "jain":
            return figures.jain
        if self.kind == "delay":
            return figures.queueing_delay[:, self.link]
        return figures.utilization[:, self.link]

    def notes(self, scenario: Scenario) -> list[str]:
        """Warnings that the target names a group, although the user may mean all flows of a law.

        A group is a ``[[flow]]`` table.  There is one warning for each group of the target that has
        the name of a law, such as "vegas", if other groups have this law, too.
        """
        found = []
        for name in dict.fromkeys(self.all_groups):
            with_law = [group.name for group in scenario.flows if group.law == name]
            left_out = [group for group in with_law if group not in self.all_groups]
            if not left_out:
                continue
            asked = f"{self.name} takes {name!r} as the name of a group; other flows with the law "
            asked += f"{name} are not counted: {', '.join(left_out)}"
            whole = f"{OF_A_LAW}{name}" if self.kind == "ratio" else f"{self.kind}:{OF_A_LAW}{name}"
            found.append(f"{asked}; {whole} has all flows of this law")
        return found


def read(text: str, scenario: Scenario) -> Target:
    """Read a target, which is a quantity and its wanted value or its bound, from a text.

    An example is ``share:vegas=0.3``: the group ``vegas`` should get 0.3 of the throughput.  A
    throughput in pkt/s counts packets of the scenario's ``packet_size``.  Raises ``FieldError`` if
    the text is not a target for this scenario.
    """
    if not isinstance(text, str):
        raise FieldError("target", text, "text such as share:vegas=0.3")
    # "share:vegas>=0.3" has the kind "share", is of "vegas", and has the sense ">="
    head, equals, tail = text.rpartition("=")
    sense = _sense(text)
    kind, colon, of_whom = head.removesuffix(sense[:-1]).partition(":")  # without > or <
    if not equals and (wanted := text.partition(":")[0]) in KINDS:
        allowed = f"write {KINDS[wanted]}; for a bound write >= or <= (in quotes in a shell)"
        raise FieldError("target", text, allowed, wrong="lacks =VALUE")
    if not equals or kind not in KINDS:
        known = f"one of {', '.join(KINDS)} with its value, such as share:vegas=0.3"
        allowed = f"{known}{rules.nearest(kind, tuple(KINDS))}"
        raise FieldError("target", text, allowed)
    groups: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    link = 0
    if kind in OF_A_LINK:
        link, of_whom = _link(of_whom if colon else None, scenario, text)
    elif kind == "ratio":
        groups, over = _ratio(of_whom, scenario, text)
    elif kind in ("share", "throughput"):
        groups = _several(of_whom, scenario, text)
    elif colon:
        raise FieldError("target", text, KINDS[kind])
    value = _value(tail, kind, scenario, text)
    return Target(
        kind=kind, groups=groups, value=value, link=link, of_whom=of_whom, over=over, sense=sense
    )


def _value(value: str, kind: str, scenario: Scenario, text: str) -> float:
    """Convert the value of a target from text: a delay to s, a throughput to Mbit/s.

    ``kind`` is the target's quantity, one of ``KINDS``. ``text`` is the whole target, such as
    ``share:GROUP=0.3``, for the error message.
    """
    if kind == "delay":
        return parse(value, "time", field="target", low_open=True)
    if kind == "throughput":
        size = scenario.packet_size
        rate = parse(value, "rate", field="target", packet_size=size, low_open=True)
        return rate * size * 8 / 1e6
    if kind == "share" and needs_packet_size(value, "rate"):  # "5 Mbit/s"
        rest = text.removeprefix("share")
        allowed = f"a share of all delivered bytes, such as 0.3; for a rate write throughput{rest}"
        raise FieldError("target", text, allowed)
    high = math.inf if kind == "ratio" else 1.0
    return parse(value, "fraction", field="target", low_open=True, high=high)


def _sense(text: str) -> str:
    """The sign before the value of a target such as ``share:a>=0.3``: ``=``, ``>=`` or ``<=``."""
    head = text.rpartition("=")[0]
    return f"{head[-1]}=" if head.endswith((">", "<")) else "="


def _link(link_name: str | None, scenario: Scenario, text: str) -> tuple[int, str]:
    """The number and the name of the link ``link_name``; those of the first link if it is ``None``.

    If the scenario has only one link, the returned name is empty. ``text`` is the whole target,
    such as ``delay:LINK=20ms``, which is shown if there is no such link.
    """
    names = [link.name for link in scenario.links]
    if link_name is not None and link_name not in names:
        kind = text.partition(":")[0]
        sense = _sense(text)
        allowed = f"{kind}{sense}VALUE, or {kind}:LINK{sense}VALUE with a link of this scenario: "
        allowed += f"{few(names, NAMES_LISTED)}{rules.nearest(link_name, names)}"
        raise FieldError("target", text, allowed)
    number = 0 if link_name is None else names.index(link_name)
    return number, names[number] if len(names) > 1 else ""


def _ratio(of_whom: str, scenario: Scenario, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The groups (``[[flow]]`` tables) on either side of a ratio: ``a/b`` or ``a+b/law:reno``.

    ``of_whom`` is the ratio. ``text`` is the whole target, such as ``ratio:a/b=1``, which is shown
    if a group is unknown.
    """
    names = [group.name for group in scenario.flows]
    for a in names:  # a name may hold a /
        for b in names:
            if of_whom == f"{a}/{b}" and a != b:
                return (a,), (b,)
    first, slash, second = of_whom.partition("/")
    if not slash:
        listed = few(names, NAMES_LISTED)
        allowed = f"ratio:a/b{_sense(text)}VALUE with two groups of this scenario: {listed}"
        raise FieldError("target", text, allowed)
    sides = _several(first, scenario, text), _several(second, scenario, text)
    if both := [name for name in sides[0] if name in sides[1]]:
        allowed = f"different groups on the two sides; {', '.join(both)} would be on both"
        raise FieldError("target", text, allowed)
    return sides


def _several(of_whom: str, scenario: Scenario, text: str) -> tuple[str, ...]:
    """The names of the ``[[flow]]`` tables that ``of_whom`` means: ``a``, ``a+b`` or ``law:reno``.

    ``text`` is the whole target, such as ``share:a+b=0.3``, which is shown if a name is unknown.
    """
    names = [group.name for group in scenario.flows]
    parts = [of_whom] if of_whom in names else of_whom.split("+")  # a name may hold a +
    return tuple(dict.fromkeys(name for part in parts for name in _named(part, scenario, text)))


def _named(part: str, scenario: Scenario, text: str) -> list[str]:
    """The names of the ``[[flow]]`` tables that ``part`` stands for.

    ``part`` is the name of one table, or ``law:LAW``, which stands for all tables with this law.
    ``text`` is the whole target, such as ``share:a+b=0.3``, for the error message.
    """
    names = [group.name for group in scenario.flows]
    kind = next(each for each in KINDS if text.startswith(each))
    if part in names:
        return [part]
    if not part.startswith(OF_A_LAW):
        form = "ratio:a/b" if kind == "ratio" else f"{kind}:GROUP"
        allowed = f"{form}{_sense(text)}VALUE"
        allowed += " with one of the groups of this scenario: "
        its_law = any(group.law == part for group in scenario.flows)
        hint = f"; {OF_A_LAW}{part} means all flows with this law" if its_law else ""
        allowed += f"{few(names, NAMES_LISTED)}{hint or rules.nearest(part, names)}"
        raise FieldError("target", text, allowed)
    law, laws = part.removeprefix(OF_A_LAW), sorted({group.law for group in scenario.flows})
    if law not in laws:
        form = f"{kind}:law:LAW{_sense(text)}VALUE"
        allowed = "law:LAW in a ratio" if kind == "ratio" else form
        allowed += " with one of the laws of this scenario: "
        raise FieldError("target", text, f"{allowed}{', '.join(laws)}{rules.nearest(law, laws)}")
    return [group.name for group in scenario.flows if group.law == law]
