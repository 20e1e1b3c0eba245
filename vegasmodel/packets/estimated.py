"""Defines ``Estimate``: an estimated value, and the range of values that agree with a trace."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """An estimated value with its unit, and a text on how it was estimated (``how``).

    ``low`` to ``high`` is a range of plausible values, often from the lower to the upper quartile
    of the values in the trace.  If ``value`` is only a lower bound, ``high`` is infinite.
    """

    value: float
    low: float
    high: float
    unit: str
    how: str
