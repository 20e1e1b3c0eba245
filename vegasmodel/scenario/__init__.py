"""The scenario, the input of every model: its class, its parts, and functions that change it."""

from vegasmodel.queues import DropTail, RateDelay, Red
from vegasmodel.scenario.parts import (
    LAWS,
    VARIANTS,
    Drop,
    Flow,
    Link,
    Member,
    Pareto,
    ParetoArrivals,
    Poisson,
    Run,
    Staggered,
    Uniform,
)
from vegasmodel.scenario.scenario import Scenario, expect, load
from vegasmodel.scenario.special_rules import BufferRule

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
