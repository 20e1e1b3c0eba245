"""The target of ``design``: a quantity, such as a share or a delay, and its wanted value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.fields import rules
from vegasmodel.fields.units import FieldError, parse
from vegasmodel.metrics import Floats

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.points import Figures

__all__ = ["KINDS", "Target", "read"]

KINDS = {
    "ratio": "ratio:a/b=1, mean throughput of a flow of group a over one of group b",
    "share": "share:GROUP=0.3, the group's part of all that is delivered",
    "jain": "jain=0.95, Jain's index over the flows",
    "delay": "delay=20ms or delay:LINK=20ms, the mean queueing delay at a link",
    "utilization": "utilization=0.95 or utilization:LINK=0.95, of a link",
}
OF_A_LINK = ("delay", "utilization")  # of the first link, if none is named


@dataclass(frozen=True)
class Target:
    """A quantity, such as the share of a group, and the ``value`` that it should have.

    ``of`` computes the quantity from a model's results.  A share and a ratio are of ``groups``.  A
    delay and a utilization are of the link whose number is ``link``; ``link_name`` is empty if the
    scenario has only this link.
    """

    kind: str
    groups: tuple[str, ...]
    value: float
    link: int = 0
    link_name: str = ""

    @property
    def name(self) -> str:
        """The quantity as text, such as ``jain``, ``share:vegas``, or ``delay:b`` for link b."""
        of_whom = "/".join(self.groups) or self.link_name
        return f"{self.kind}:{of_whom}" if of_whom else self.kind

    @property
    def unit(self) -> str:
        """The unit of the quantity's value: ``s`` for a delay, else empty."""
        return "s" if self.kind == "delay" else ""

    def text(self, value: float, digits: int = 6) -> str:
        """A value of the quantity as text, with its unit."""
        return f"{value:.{digits}g} {self.unit}".strip()

    def of(self, figures: Figures, scenario: Scenario) -> Floats:
        """The quantity that has a target, at each point: an array [point].

        A point is a set of values of the fields that vary.  ``figures`` holds a model's results at
        all points.  The quantity is NaN at a point where the model does not give it.
        """
        index = [[group.name for group in scenario.flows].index(name) for name in self.groups]
        if self.kind == "ratio":
            a, b = (figures.group_mean[:, i] for i in index)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(b > 0, a / b, np.nan)
        if self.kind == "share":
            return figures.group_share[:, index[0]]
        if self.kind == "jain":
            return figures.jain
        if self.kind == "delay":
            return figures.queueing_delay[:, self.link]
        return figures.utilization[:, self.link]


def read(text: str, scenario: Scenario) -> Target:
    """Read a target from text such as ``share:vegas=0.3``.

    Raises ``FieldError`` if the text is not a target for this scenario.
    """
    if not isinstance(text, str):
        raise FieldError("target", text, "text such as share:vegas=0.3")
    head, equals, tail = text.rpartition("=")
    kind, colon, of_whom = head.partition(":")
    if not equals and (wanted := text.partition(":")[0]) in KINDS:
        raise FieldError("target", text, KINDS[wanted], wrong="lacks =VALUE")
    if not equals or kind not in KINDS:
        allowed = f"one of {'; '.join(KINDS.values())}{rules.nearest(kind, tuple(KINDS))}"
        raise FieldError("target", text, allowed)
    groups: tuple[str, ...] = ()
    link, link_name = 0, ""
    if kind in OF_A_LINK:
        link, link_name = _link(of_whom if colon else None, scenario, text)
    else:
        groups = _groups(kind, of_whom, bool(colon), scenario, text)
    if kind == "delay":
        value = parse(tail, "time", field="target", low_open=True)
    else:
        high = math.inf if kind == "ratio" else 1.0
        value = parse(tail, "fraction", field="target", low_open=True, high=high)
    return Target(kind, groups, value, link, link_name)


def _link(asked: str | None, scenario: Scenario, text: str) -> tuple[int, str]:
    """The number of the link with the name ``asked``, or of the first one, and the link's name.

    The name is empty if the scenario has one link.
    """
    names = [link.name for link in scenario.links]
    if asked is not None and asked not in names:
        kind = text.partition(":")[0]
        allowed = f"{kind}=VALUE, or {kind}:LINK=VALUE with a link of this scenario: "
        allowed += f"{', '.join(names[:8])}{rules.nearest(asked, names)}"
        raise FieldError("target", text, allowed)
    number = 0 if asked is None else names.index(asked)
    return number, names[number] if len(names) > 1 else ""


def _groups(kind: str, of_whom: str, given: bool, scenario: Scenario, text: str) -> tuple[str, ...]:
    names = [group.name for group in scenario.flows]
    listed = f"groups of this scenario: {', '.join(names[:8])}"
    if kind == "ratio":
        for a in names:
            for b in names:
                if of_whom == f"{a}/{b}" and a != b:
                    return (a, b)
        raise FieldError("target", text, f"ratio:a/b=VALUE with two {listed}")
    if kind == "share":
        if of_whom in names:
            return (of_whom,)
        nearest = rules.nearest(of_whom, names)
        raise FieldError("target", text, f"share:GROUP=VALUE with one of the {listed}{nearest}")
    if given:
        raise FieldError("target", text, KINDS[kind])
    return ()
