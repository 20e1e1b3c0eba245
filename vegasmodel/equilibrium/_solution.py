"""The named tuple that the solvers of Vegas's steady state return, for NumPy and for JAX."""

from __future__ import annotations

from typing import Any, NamedTuple


class Equilibrium(NamedTuple):
    """The steady state of each case of a batch: NumPy arrays, or JAX arrays for JAX input.

    Where ``status`` is not ``Status.DONE``, every number of the case is NaN.  Status 1: the
    iteration has not converged.  2: a value is missing or out of range.  3: the inputs determine
    fewer digits than the solver promises, or they are so large or small that their squares overflow
    or underflow.
    """

    delay: Any  # Delta, s [...]
    rates: Any  # pkt/s [..., n]
    gap: Any  # Delta - max x, s [...]
    residual: Any  # (sum of rates - c) / c [...]
    iterations: Any  # passes over the flows [...]
    status: Any  # [...]
