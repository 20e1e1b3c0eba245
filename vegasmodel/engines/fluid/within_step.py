"""Computes how many packets a link delivers in a part of a time step of the simulator ``fluid``."""

from __future__ import annotations

from vegasmodel.engines.tables import jit


@jit
def delivered_within(after: float, h: float, first: float, last: float) -> float:
    """The packets delivered in the first ``after`` seconds of a step of length h.

    In the step the rate goes linearly from ``first`` to ``last``, as in the trapezoidal rule.
    """
    return after * (first + 0.5 * (after / h) * (last - first)) if after > 0.0 else 0.0
