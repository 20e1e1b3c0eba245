"""Tells whether Vegas increases, keeps or reduces the window of each flow on one link.

This depends on the windows of all flows. For two flows, ``plots/regions.py`` draws the plane of
their windows, with the region in which each window grows, stays or shrinks.

Flow i has the window W_i, the propagation delay d_i and the over-estimate x_i of this delay. The
link has the capacity c. The queueing delay Delta solves sum_i W_i/(d_i + Delta) = c; it is 0 if the
windows do not fill the link. Each flow computes its backlog, the left side of equation (3) of
Boutremans and Le Boudec (2000):

    Diff_i = W_i - W_i (d_i + x_i)/(d_i + Delta)

In Linux (``variant = "linux"``) the backlog is Diff_i times RTT/baseRTT, where RTT is d_i + Delta,
and baseRTT is d_i + x_i. The window grows if the backlog is below alpha, and shrinks if it is above
beta. In between the window does not change. Units: packets, seconds, packets per second.

Source: Boutremans and Le Boudec (2000), equations (1) and (3), figure 6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import VARIANTS, expect_broadcast, numbers, positive, word
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.stacks import find

__all__ = ["drift", "level", "reckoned"]


@same_kind
@kinds.checked
def reckoned(
    windows: ArrayLike,
    over_estimate: ArrayLike,
    capacity: float,
    rtt: ArrayLike,
    variant: str = "paper",
) -> tuple[Floats, Floats]:
    """The backlogs that the Vegas flows compute, and the queueing delay, at constant windows.

    ``windows``, in packets, has the shape [..., n] for n flows. ``over_estimate`` and ``rtt``, the
    propagation delay, are in s, and ``capacity`` is in pkt/s. Returns the backlogs in packets,
    [..., n], and the queueing delay in s, [...]. Raises ``FieldError`` for arguments out of range.
    """
    word("variant", variant, VARIANTS)
    c = float(positive("capacity", capacity))
    expect_broadcast({"windows": windows, "over_estimate": over_estimate, "rtt": rtt})
    W, d = numbers("windows", windows), positive("rtt", rtt)
    x = numbers("over_estimate", over_estimate, -np.inf)
    full = (W / d).sum(axis=-1) > c
    # The rates W/(d + delay) add up to the capacity. This is the equation of ``balance`` with the
    # windows in the place of alpha, and -d in that of x. A flow without window has no term in it.
    state = secular.balance(W, -d, c)
    delay = np.where(full, np.maximum(state.delay, 0.0), 0.0)
    rates = W / (d + delay[..., None])
    measured = delay[..., None] - x  # the queueing delay that a flow measures: RTT - baseRTT
    # RTT/baseRTT in Linux, which divides by baseRTT where the papers divide by the RTT
    factor = 1.0 + measured / (d + x) if find(variant).backlog_over_base else 1.0
    return rates * measured * factor, delay


@same_kind
def drift(
    windows: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    over_estimate: ArrayLike,
    capacity: float,
    rtt: ArrayLike,
    variant: str = "paper",
) -> NDArray[np.int64]:
    """Whether Vegas increases each window (1), keeps it (0) or reduces it (-1).

    A window grows if its flow's backlog is below ``lower`` packets, and shrinks if the backlog is
    above ``upper`` packets (equation (1) of Boutremans and Le Boudec). ``stacks.dead_zone``
    computes these two limits from alpha and beta. The other arguments and the errors are those of
    ``reckoned``.
    """
    limits = {"lower": lower, "upper": upper}
    expect_broadcast({"windows": windows, **limits, "over_estimate": over_estimate, "rtt": rtt})
    diff, _ = reckoned(windows, over_estimate, capacity, rtt, variant)
    low, high = numbers("lower", lower), numbers("upper", upper, infinite=True)
    below, above = diff < low, diff > high
    return below.astype(np.int64) - above


@same_kind
@kinds.checked
def level(
    edge: float,
    flow: int,
    over_estimate: ArrayLike,
    capacity: float,
    rtt: ArrayLike,
    delays: ArrayLike,
    variant: str,
) -> Floats:
    """The windows of two flows at which flow number ``flow`` has a backlog of ``edge`` packets.

    The result has one row with both windows for each queueing delay in ``delays``. Let Delta be the
    queueing delay, and x the flow's over-estimate of baseRTT. The flow has this backlog if its rate
    is edge/(Delta - x). (In the variant ``linux`` this rate is multiplied by baseRTT/RTT.) The
    other flow gets the rest of the capacity. A row is NaN if Delta <= x, or if the rate exceeds the
    capacity. ``over_estimate`` and ``rtt``, the propagation delay, are in s, and ``capacity`` is in
    pkt/s. Raises ``FieldError`` for arguments out of range.
    """
    word("variant", variant, VARIANTS)
    numbers("flow", flow, 0, 1)
    x, d = numbers("over_estimate", over_estimate, -np.inf), positive("rtt", rtt)
    for name, value in (("over_estimate", x), ("rtt", d)):
        if value.shape not in ((), (1,), (2,)):
            allowed = "one number, or one for each of the two flows"
            raise FieldError(name, f"shape {value.shape}", allowed)
    x, d = (np.broadcast_to(a, (2,)) for a in (x, d))
    delay, edge, c = (
        np.atleast_1d(numbers("delays", delays)),
        float(numbers("edge", edge)),
        float(positive("capacity", capacity)),
    )
    if delay.ndim != 1:
        raise FieldError("delays", f"shape {delay.shape}", "numbers in one row")
    measured = delay - x[flow]  # the queueing delay that the flow measures: RTT - baseRTT
    # RTT/baseRTT in Linux, which divides by baseRTT where the papers divide by the RTT
    factor = 1.0 + measured / (d[flow] + x[flow]) if find(variant).backlog_over_base else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = edge / (measured * factor)
    rate = np.where((measured > 0) & (rate <= c), rate, np.nan)
    rates = np.stack([rate, c - rate] if flow == 0 else [c - rate, rate], axis=-1)
    return rates * (d + delay[:, None])
