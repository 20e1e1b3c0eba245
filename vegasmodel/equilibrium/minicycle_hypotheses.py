"""Which hypotheses of the mini-cycle model hold in a cycle that ``minicycle.solve`` has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import minicycle_start as beginning
from vegasmodel.metrics import Floats
from vegasmodel.stacks import Variant, dead_zone

if TYPE_CHECKING:
    from vegasmodel.equilibrium.minicycle import Cycle

__all__ = ["DUPLICATES", "after_loss", "held"]

DUPLICATES = 3  # duplicate ACKs that start a fast retransmit


def held(
    cycle: Cycle,
    M: Floats,
    B: Floats,
    alpha: Floats,
    beta: Floats,
    n_V: Floats,
    n_R: Floats,
    *,
    variant: Variant,
    max_window: float,
) -> dict[str, NDArray[np.bool_]]:
    """Whether each hypothesis holds, by its name; ``minicycle.hypotheses`` says what they mean.

    ``M`` is the bandwidth-delay product and ``B`` the buffer, both in packets. ``n_V`` and ``n_R``
    are the numbers of Vegas and Reno flows. All arrays have the shape of the fields of ``cycle``.
    """
    peak = np.maximum(cycle.window_vegas.max(axis=-1), cycle.window_reno.max(axis=-1))
    both, growing = cycle.loss_rate_vegas > 0, cycle.regime == "loss-limited"
    least = cycle.window_reno[..., -1]
    least = np.where(both, np.minimum(least, cycle.window_vegas[..., -1]), least)
    lowest, _ = dead_zone(alpha, alpha, variant)
    stops = beginning.edge(lowest, variant, n_V, M).window(B + 1.0)
    return {
        "receiver-window": peak <= max_window,
        "large-bandwidth-delay": B < M,
        "fast-retransmit": least > DUPLICATES,
        "empty-buffer-after-loss": after_loss(cycle, n_V, n_R) <= M,
        "synchronised-losses": both & growing,
        "one-cycle": ~(both & growing & (stops < M + B + 1.0)),
        "single-threshold": beta == alpha,
    }


def after_loss(cycle: Cycle, n_V: Floats, n_R: Floats) -> Floats:
    """The sum of all windows after a loss, in packets."""
    return np.asarray(cycle.window_vegas[..., 0] * n_V + cycle.window_reno[..., 0] * n_R)
