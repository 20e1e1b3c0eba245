"""Defines the scenario, the input of every model: ``Scenario`` and the classes of its parts.

``load`` reads a scenario from a file. ``expect`` raises an error if a value is not a ``Scenario``.
"""

from vegasmodel.fields.rules import BufferRule
from vegasmodel.queues import DropTail, RateDelay, Red
from vegasmodel.scenario.parts import (
    LAWS,
    VARIANTS,
    Drop,
    Flow,
    Link,
    Member,
    Run,
)
from vegasmodel.scenario.scenario import Scenario, expect, load
from vegasmodel.scenario.varying import Pareto, ParetoArrivals, Poisson, Staggered, Uniform

__all__ = [
    "LAWS",
    "VARIANTS",
    "BufferRule",
    "Drop",
    "DropTail",
    "Flow",
    "Link",
    "Member",
    "Pareto",
    "ParetoArrivals",
    "Poisson",
    "RateDelay",
    "Red",
    "Run",
    "Scenario",
    "Staggered",
    "Uniform",
    "expect",
    "load",
]


def __dir__() -> list[str]:
    return sorted(__all__)
