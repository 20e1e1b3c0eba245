"""Defines the result of both solvers of Vegas's steady state (NumPy and JAX), a named tuple."""

from __future__ import annotations

from typing import Any, NamedTuple


class Equilibrium(NamedTuple):
    """The steady states of many links: NumPy arrays, or JAX arrays for JAX input.

    Each link has n flows. Flow i over-estimates its propagation delay by x_i. The gap is
    Delta - max x: the queueing delay Delta less the largest x_i. The residual is the relative error
    of the sum of the rates, which should be the capacity c.

    If a link's status is not 0 (``Status.DONE``), its delay, rates, gap and residual are NaN. The
    other values of the status are:

    - 1: the iteration has not converged.
    - 2: a value is not a number or out of range, there is no flow, or all x_i are so negative that
      the flows do not fill the link.
    - 3: the inputs do not determine the result to as many digits as the solver promises, or their
      squares overflow or underflow.
    """

    delay: Any  # Delta, s [...]
    rates: Any  # pkt/s [..., n]
    gap: Any  # Delta - max x, s [...]
    residual: Any  # (sum of rates - c) / c [...]
    iterations: Any  # passes over the flows [...]
    status: Any  # [...]
