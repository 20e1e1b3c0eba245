"""Fluid model: laws, queues, the integrator and its periodic steady state.

Names load when they are used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vegasmodel.fluid.answers import answer, simulate

_NAMES = {"answer": "answers", "simulate": "answers"}

__all__ = ["answer", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'vegasmodel.fluid' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"vegasmodel.fluid.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
