"""Closed forms and algebraic solvers, one model a file.  Arrays in, arrays out."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vegasmodel.equilibrium.secular import Equilibrium, queueing_delay, rates, solve

_NAMES = ("Equilibrium", "queueing_delay", "rates", "solve")  # of secular.py

__all__ = ["Equilibrium", "queueing_delay", "rates", "solve"]


def __getattr__(name: str) -> Any:
    """Models load when first used: ``vegasmodel.equilibrium.minicycle``."""
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.secular"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and any(m.name == name for m in pkgutil.iter_modules(__path__)):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
