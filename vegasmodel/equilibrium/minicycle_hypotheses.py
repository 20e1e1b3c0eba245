"""Tests which hypotheses of the mini-cycle model hold in a cycle that ``minicycle.solve`` found.

The model is that of De Vendictis and Baiocchi (2002) for Vegas beside Reno. A cycle lasts from one
overflow of the buffer to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import minicycle_start
from vegasmodel.equilibrium.minicycle_cycle import Cycle
from vegasmodel.metrics import Floats
from vegasmodel.stacks import Variant, dead_zone

__all__ = ["Setting", "which_hold", "with_details"]

DUPLICATES = 3  # duplicate ACKs that start a fast retransmit


class Setting(NamedTuple):
    """The link and the flows for which ``which_hold`` tests De Vendictis and Baiocchi's hypotheses.

    The arrays broadcast with the fields of the ``Cycle`` that is tested.
    """

    M: Floats  # the bandwidth-delay product, packets
    B: Floats  # the buffer, packets
    alpha: Floats  # Vegas's thresholds, packets
    beta: Floats
    n_vegas: Floats  # numbers of Vegas and of Reno flows
    n_reno: Floats
    variant: Variant  # how Vegas computes and rounds its backlog
    max_window: float  # the largest window that the receiver allows, packets
    both_lose: bool  # whether the model has all flows lose at every overflow


def which_hold(cycle: Cycle, setting: Setting) -> dict[str, NDArray[np.bool_]]:
    """Whether each hypothesis of De Vendictis and Baiocchi's model holds, by the hypothesis's name.

    ``minicycle.hypotheses`` explains the hypotheses. The arrays have one entry for each cycle.
    """
    M, B, alpha, beta, n_V, n_R, variant, max_window, both_lose = setting
    largest = np.maximum(cycle.window_vegas.max(axis=-1), cycle.window_reno.max(axis=-1))
    both, growing = _both_lose(cycle), cycle.regime == "loss-limited"
    # the smallest window at a loss, of the flows that lose
    least_at_loss = cycle.window_reno[..., -1]
    least_at_loss = np.where(
        both, np.minimum(least_at_loss, cycle.window_vegas[..., -1]), least_at_loss
    )
    # the sum of the Vegas windows at which Vegas would stop growing, with B + 1 packets queued
    lower_limit, _ = dead_zone(alpha, alpha, variant)
    stop_window = minicycle_start.edge(lower_limit, variant, n_V, M).window(B + 1.0)
    return {
        "receiver-window": largest <= max_window,
        "large-bandwidth-delay": B < M,
        "fast-retransmit": least_at_loss > DUPLICATES,
        "empty-buffer-after-loss": _after_loss(cycle, n_V, n_R) <= M,
        **({"synchronised-losses": both & growing} if both_lose else {}),
        "one-cycle": ~(both & growing & (stop_window < M + B + 1.0)),
        "single-threshold": beta == alpha,
    }


def with_details(cycle: Cycle, setting: Setting) -> tuple[tuple[str, bool, str], ...]:
    """Whether each hypothesis holds in one cycle: the result of ``minicycle.hypotheses``.

    Each entry is (name, holds, detail). The arrays of ``cycle`` and ``setting`` must describe a
    single cycle.
    """
    holding = which_hold(cycle, setting)
    M, B, alpha, beta = (float(each) for each in setting[:4])
    windows = cycle.window_vegas, cycle.window_reno
    both = bool(_both_lose(cycle))
    largest = max(float(each.max()) for each in windows)
    least_at_loss = min(float(each[..., -1]) for each in (windows if both else windows[1:]))
    sum_after_loss = float(_after_loss(cycle, setting.n_vegas, setting.n_reno))
    # what is told about each hypothesis, whether it holds or not
    details = {
        "receiver-window": (
            f"the largest window is {largest:.4g} packets; the receiver allows "
            f"{setting.max_window:g} (max_window)"
        ),
        "large-bandwidth-delay": (
            f"the bandwidth-delay product is {M:.4g} packets, the buffer {B:g}"
        ),
        "fast-retransmit": (
            f"the smallest window at a loss is {least_at_loss:.4g} packets; fast retransmit needs "
            f"more than {DUPLICATES}"
        ),
        "empty-buffer-after-loss": (
            f"after a loss the windows add up to {sum_after_loss:.4g} packets; the "
            f"bandwidth-delay product is {M:.4g}"
        ),
        "synchronised-losses": (
            "at the loss Vegas still grows, so both overflow the buffer"
            if str(cycle.regime) == "loss-limited"
            else "at the loss Vegas no longer grows and fills only places just freed, so the other "
            "flow overflows the buffer; the model cuts Vegas's window all the same, and gives "
            "Vegas too little"
        ),
        "one-cycle": (
            ""
            if holding["one-cycle"]
            else "Vegas may also settle in a second cycle, in which it loses nothing"
        ),
        "single-threshold": f"alpha {alpha:g}, beta {beta:g}",
    }
    return tuple((name, bool(holds), details[name]) for name, holds in holding.items())


def _both_lose(cycle: Cycle) -> NDArray[np.bool_]:
    """Whether Vegas loses packets, too; its loss rate is then positive, or NaN."""
    return np.asarray(cycle.loss_rate_vegas != 0.0)


def _after_loss(cycle: Cycle, n_V: Floats, n_R: Floats) -> Floats:
    """The sum of the windows of ``n_V`` Vegas and ``n_R`` Reno flows after a loss, in packets."""
    return np.asarray(cycle.window_vegas[..., 0] * n_V + cycle.window_reno[..., 0] * n_R)
