"""Closed forms and algebraic solvers, one model a file.  Arrays in, arrays out."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def __getattr__(name: str) -> Any:
    """Models load when first used: ``vegasmodel.equilibrium.minicycle``."""
    if not name.startswith("_") and any(m.name == name for m in pkgutil.iter_modules(__path__)):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
