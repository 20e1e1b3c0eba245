"""vegasmodel: how TCP Vegas and its rivals share a bottleneck.

Import it as ``vm``.  Submodules load when they are used, so that ``import vegasmodel`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vegasmodel import engines, equilibrium, metrics, packets, plots, symbolic
    from vegasmodel.comparison import Comparison, compare
    from vegasmodel.laws import register_law
    from vegasmodel.prediction import Assumption, Prediction
    from vegasmodel.predictor import predict, predict_all
    from vegasmodel.scenario import Flow, Link, Run, Scenario, load
    from vegasmodel.simulation import limit_cycle, simulate
    from vegasmodel.units import FieldError

__version__ = "0.1.0"

_MODULES = ("engines", "equilibrium", "metrics", "packets", "plots", "symbolic")
_NAMES = {
    "Assumption": "prediction",
    "Comparison": "comparison",
    "FieldError": "units",
    "Flow": "scenario",
    "Link": "scenario",
    "Prediction": "prediction",
    "Run": "scenario",
    "Scenario": "scenario",
    "compare": "comparison",
    "limit_cycle": "simulation",
    "register_law": "laws",
    "load": "scenario",
    "predict": "predictor",
    "predict_all": "predictor",
    "simulate": "simulation",
}

__all__ = [
    "Assumption",
    "Comparison",
    "FieldError",
    "Flow",
    "Link",
    "Prediction",
    "Run",
    "Scenario",
    "compare",
    "engines",
    "equilibrium",
    "limit_cycle",
    "load",
    "metrics",
    "packets",
    "plots",
    "predict",
    "predict_all",
    "register_law",
    "simulate",
    "symbolic",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"vegasmodel.{_NAMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"vegasmodel.{name}")
    else:
        raise AttributeError(f"module 'vegasmodel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
