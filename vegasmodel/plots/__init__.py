"""Results -> figures.  The only package that knows matplotlib; it loads when a name is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vegasmodel.extras import need

if TYPE_CHECKING:
    from vegasmodel.plots.dynamics import windows
    from vegasmodel.plots.regions import convergence_regions
    from vegasmodel.plots.shares import (
        base_rtt_by_arrival,
        class_shares,
        rate_by_arrival,
        throughput_bars,
        throughput_over_buffer,
    )
    from vegasmodel.plots.style import curves, figure, save
    from vegasmodel.plots.verdicts import model_errors

_NAMES = {
    "base_rtt_by_arrival": "shares",
    "class_shares": "shares",
    "convergence_regions": "regions",
    "curves": "style",
    "figure": "style",
    "model_errors": "verdicts",
    "rate_by_arrival": "shares",
    "save": "style",
    "throughput_bars": "shares",
    "throughput_over_buffer": "shares",
    "windows": "dynamics",
}

__all__ = [
    "base_rtt_by_arrival",
    "class_shares",
    "convergence_regions",
    "curves",
    "figure",
    "model_errors",
    "rate_by_arrival",
    "save",
    "throughput_bars",
    "throughput_over_buffer",
    "windows",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'vegasmodel.plots' has no attribute {name!r}")
    need("plot", f"vegasmodel.plots.{name}")
    value = getattr(importlib.import_module(f"vegasmodel.plots.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
