"""Replaces numbers that JSON cannot hold, which are NaN and the infinite ones, by ``None``."""

from __future__ import annotations

import math
from collections.abc import Iterable


def finite(value: float | None) -> float | None:
    """The number, or ``None`` if it is NaN or infinite."""
    return float(value) if value is not None and math.isfinite(value) else None


def all_finite(values: Iterable[float]) -> list[float | None]:
    """Each number, or ``None`` if it is NaN or infinite."""
    return [finite(value) for value in values]
