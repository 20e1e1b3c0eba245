"""Fluid model: laws, queues, the integrator and its periodic steady state.

Names load when they are used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vegasmodel.fluid import batch, continuous, delay, feedback
    from vegasmodel.fluid.answers import answer
    from vegasmodel.fluid.return_map import LimitCycle, limit_cycle
    from vegasmodel.fluid.trajectories import simulate

_MODULES = ("batch", "continuous", "delay", "feedback")
_NAMES = {
    "LimitCycle": "return_map",
    "answer": "answers",
    "limit_cycle": "return_map",
    "simulate": "trajectories",
}

__all__ = [
    "LimitCycle",
    "answer",
    "batch",
    "continuous",
    "delay",
    "feedback",
    "limit_cycle",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"vegasmodel.fluid.{_NAMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"vegasmodel.fluid.{name}")
    else:
        raise AttributeError(f"module 'vegasmodel.fluid' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
