"""What every stack says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """Figures of an implementation; counts in packets."""

    name: str
    below_alpha: float  # the window of Vegas rests from this much below alpha ...
    above_beta: float  # ... to this much above beta
    limit_counts: float  # packets in transmission that the limit of a drop-tail buffer counts
    doubling: int  # round trips in which slow start of Vegas doubles the window
    least_window: float
    alpha: float  # defaults of Vegas,
    beta: float
    gamma: float
    decrease: float  # ... its window factor after a loss
