"""Finds the equilibrium of flows with feedback delay, and linearises the equations about it.

``stability.py`` then tells whether the equilibrium is stable.

Long-lived flows share a link of capacity c. T is a flow's round trip without queues, s the queueing
delay, and p the loss probability. The flow's baseRTT is T + x; x is its over-estimate of T. The
flow's window W grows by m packets per round trip until its backlog reaches the threshold e. A loss
multiplies W by ``decrease``; let kappa = 1 - decrease. In equilibrium W is the smaller of two
windows:

    W = (m/(kappa p))^(1/2)     growth and losses balance (Misra, Gong and Towsley, for m = 1)
    W = e (T + s)/(s - x)       the backlog is e (Boutremans and Le Boudec 2000, (4))

In Linux the second window is W = e (T + x)/(s - x), because Linux divides by baseRTT, and not by
the RTT, when it computes the backlog. If s is at most x, only losses limit W. In addition, W is at
least ``least`` and at most ``most``, the bounds of the flow's window.

The flows fill the link, which determines the queueing delay s:

    sum over the flows of (1 - p) W/(T + s) = c

The left side falls as s grows, so there is at most one equilibrium. At a RED link, p includes RED's
drop probability at an average queue of c s packets.

A Vegas flow with alpha < beta may keep any backlog between these thresholds. If packets are lost,
the losses pull its window down until the backlog is at the lower threshold, so e is the lower
threshold. If no packets are lost, there are many equilibria, and ``adapters/stability.py``
linearises none of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium._checks import numbers, positive, same_size
from vegasmodel.equilibrium._loss_formulas import square_root
from vegasmodel.equilibrium.red import (
    Curve,
    Equilibrium,
    Flows,
    crossing,
    cuts,
    effective,
    limited,
    on_curve,
    rounding,
)
from vegasmodel.equilibrium.stability import Loop
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

__all__ = ["Rest", "Sources", "about_red", "rest"]

RESIDUAL = 1e-6  # greatest ``Rest.residual`` of an equilibrium that counts as found
AT_LIMIT = 1e-9  # greatest relative distance of a value from a limit that counts as reached


@kinds.checked
@dataclass(frozen=True, eq=False)
class Sources:
    """The flows of one link: each field is an array with one entry per flow.

    - ``rtt``: T, the round trip without queues, s.
    - ``edge``: e, the backlog in packets at which a window stops growing. It is infinite if the
      flow does not react to delay.
    - ``over_estimate``: x, by which the flow over-estimates T, s.
    - ``linux``: if true, the backlog is W (RTT - baseRTT)/baseRTT with the window W; if false, it
      is W (RTT - baseRTT)/RTT.
    - ``climb``: m, the growth of the window in packets per round trip.
    - ``decrease``: the factor by which a loss multiplies the window.
    - ``least`` and ``most``: the bounds of the window, packets.

    Raises ``FieldError`` for values out of range.
    """

    rtt: Floats
    edge: Floats
    over_estimate: Floats
    linux: NDArray[np.bool_]
    climb: Floats
    decrease: Floats
    least: Floats
    most: Floats

    def __post_init__(self) -> None:
        """Check all fields."""
        same_size(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})
        positive("rtt", self.rtt)
        numbers("edge", self.edge, above=True, infinite=True)
        numbers("over_estimate", self.over_estimate)
        positive("climb", self.climb)
        numbers("decrease", self.decrease, high=1.0, above=True)
        numbers("least", self.least)
        numbers("most", self.most, infinite=True)


@dataclass(frozen=True, eq=False)
class Rest:
    """An equilibrium, and the linearised equations about it.

    ``delay`` is the queueing delay in s, and ``window`` [flow] holds the windows in packets.
    ``loss`` is the probability that a packet is lost at random or by RED. ``residual`` is the
    relative error (sum of the delivered rates - c)/c, with the capacity c. ``loop`` holds the
    numbers of the linearised equations, for ``stability.py``.
    """

    delay: float
    window: Floats
    loss: float
    residual: float
    loop: Loop


@kinds.checked
def rest(
    sources: Sources,
    capacity: float,
    buffer: float = math.inf,
    loss: float = 0.0,
    curve: Curve | None = None,
    weight: float = 1.0,
) -> Rest | str:
    """The equilibrium of the flows and its linearised equations, or a message if there are none.

    The message says why there is no equilibrium, or why its equations cannot be linearised.

    ``sources`` are the flows. ``capacity`` is in pkt/s. ``buffer`` is the number of packets at
    which the queue overflows, and ``loss`` is the probability of random loss. ``curve`` is RED's
    curve of loss over its average queue, or None at a drop-tail link. RED is taken to drop packets,
    even if ``curve.ecn`` is true. ``weight`` is the weight of the newest queue in RED's average.
    Raises ``FieldError`` for values out of range.
    """
    c = float(positive("capacity", capacity))
    numbers("loss", loss, high=1.0, below=True)
    numbers("weight", weight, high=1.0, above=True)

    def delivered(queue: float, base: float) -> float:
        """The sum of the rates, less lost packets, at this queue and base drop probability."""
        p = loss + (1.0 - loss) * _drop_fraction(curve, base)
        return float(
            ((1.0 - p) * _windows(sources, queue / c, p) / (sources.rtt + queue / c)).sum()
        )

    found = _where_link_is_full(delivered, c, sources.rtt.size, buffer, curve)
    if isinstance(found, str):
        return found
    # the equilibrium is at the queue ``q`` and RED's base drop probability ``base``
    q, base = found
    p_red = _drop_fraction(curve, base)
    p = loss + (1.0 - loss) * p_red
    W = _windows(sources, q / c, p)
    R, rate = sources.rtt + q / c, W / (sources.rtt + q / c)
    residual = float((1.0 - p) * rate.sum() / c - 1.0)
    if abs(residual) > RESIDUAL:
        return (
            "the equilibrium cannot be computed exactly enough: the windows are so large that a "
            "rounding error of the queue changes the rates too much"
        )
    drop_slope = 0.0 if curve is None else (1.0 - loss) * _drop_slope(curve, q, p_red)
    slope, climb = _slope_and_climb(sources, W, q / c, p)
    # At each arriving packet, RED multiplies the old average by 1 - weight. So with ``rate``
    # packets per second, the average follows the queue at the speed K = -ln(1 - weight) rate.
    pole = math.inf if weight == 1.0 or curve is None else -math.log1p(-weight) * float(rate.sum())
    loop = Loop(R, rate, slope, W, climb, p, drop_slope, pole)
    return Rest(q / c, W, p, residual, loop)


def _drop_fraction(curve: Curve | None, base: float) -> float:
    """The fraction of the packets that RED drops at the base drop probability ``base``."""
    return 0.0 if curve is None else float(effective(base, curve.spacing))


def _where_link_is_full(
    delivered: Callable[[float, float], float],
    c: float,
    n: int,
    buffer: float,
    curve: Curve | None,
) -> tuple[float, float] | str:
    """The queue, and RED's base drop probability, at which ``n`` flows fill a link of capacity c.

    ``delivered(queue, base drop probability)`` is the sum of the rates of the packets that are not
    lost. ``buffer`` and ``curve`` are as in ``rest``. The function searches the curve of RED's base
    drop probability over the queue (``_corners``). Along this curve the sum falls, so it equals c
    at one point at most. Without RED the probability is 0 at every queue.

    If there is no such point, the result is a message that says why. The result is also a message
    if the point is a corner of the curve, because the equations cannot be linearised there.
    """
    if delivered(0.0, 0.0) <= c:
        return (
            "the flows do not fill the link, so there is no queue whose delay they could react to"
        )
    corners, message = _corners(buffer, curve)
    if corners[-1, 0] == math.inf:  # end the curve where the flows no longer fill the link
        # the first power of 2, up to 2^49 packets, that is long enough
        long_enough = (queue for queue in 2.0 ** np.arange(50) if delivered(queue, 0.0) < c)
        corners[-1, 0] = next(long_enough, math.inf)
    if corners[-1, 0] == math.inf:
        return (
            "there is no equilibrium: nothing ends the growth of a window; a finite buffer, "
            "random loss or max_window would"
        )
    if any(abs(delivered(*corner) / c - 1.0) <= rounding(n) for corner in corners[1:-1]):
        return (
            "the equilibrium's queue is exactly RED's min_threshold or max_threshold, where the "
            "slope of the drop probability jumps, so the equations cannot be linearised there; a "
            "slightly different threshold avoids this"
        )
    found = crossing(lambda first, t: delivered(*on_curve(corners, first, t)) - c, len(corners) - 1)
    if found is None or delivered(*corners[-1]) >= c:
        return message
    first, _, t = found
    return on_curve(corners, first, t)


@kinds.checked
def about_red(
    flows: Flows, curve: Curve, capacity: float, root: Equilibrium, weight: float
) -> Loop:
    """The equations linearised about ``root``, an equilibrium that the model ``red.py`` has found.

    ``weight`` is the weight of the newest queue length in RED's average. Each window is the flow's
    sending rate at ``root`` times the RTT. There are three kinds of windows:

    - Vegas's threshold alpha limits the window. It reacts to the queueing delay (``Loop.slope``).
    - Losses limit the window. Between losses it grows (``Loop.climb``): in Vegas by 1 packet per
      round trip, in all other laws by 1/``ack_every`` packets. This growth is assumed to balance
      the cuts at the loss probability of ``root``. But ``max_window`` may keep the window so far
      below the peaks that losses allow that the flow's rate is lower (``red.limited``). The window
      then grows only between a cut and the time at which it is back at ``max_window``. On average
      it grows by as much as the cuts take away.
    - The window stays at ``max_window``. It neither grows nor reacts.

    The equations leave timeouts out.

    Raises ``FieldError`` for a weight out of range.
    """
    positive("capacity", capacity)
    numbers("weight", weight, high=1.0, above=True)
    T, alpha, x, max_window, ack_every, vegas = np.broadcast_arrays(
        *(np.asarray(v, float) for v in (flows.rtt, flows.alpha, flows.over_estimate)),
        *(np.asarray(v, float) for v in (flows.max_window, flows.ack_every)),
        np.asarray(flows.vegas, dtype=bool),
    )  # fmt: skip
    s = root.queue / capacity  # the queueing delay
    sent = root.rates / (1.0 if curve.ecn else 1.0 - root.loss)  # rates before losses
    R, W = T + s, sent * (T + s)
    # ``at_threshold``: the windows that alpha limits
    with np.errstate(divide="ignore", invalid="ignore"):
        at_threshold = vegas & (sent * (s - x) >= alpha * (1.0 - AT_LIMIT))
        slope = np.where(at_threshold, (T + x) / (s - x), 0.0)
    by_losses = ~at_threshold & (max_window * (1.0 - AT_LIMIT) > W)  # losses limit the window
    # the speed at which RED's average follows the queue, as in ``rest``
    pole = math.inf if weight == 1.0 else -math.log1p(-weight) * float(sent.sum())
    drop_slope = _drop_slope(curve, root.queue, root.loss)
    d = cuts(flows, curve)  # the factors by which a loss multiplies the windows
    growth = np.where(vegas, 1.0, 1.0 / ack_every)  # packets per round trip
    # Round trips per packet: ``unlimited`` by the square-root law alone; ``limited`` gives more if
    # max_window keeps the window below its peaks. Per round trip p W packets are lost, and each
    # loss takes (1 - d) W from the window.
    unlimited = np.sqrt(ack_every * root.loss) / square_root(p=1.0, rtt=1.0, b=1.0, decrease=d)
    below_peaks = limited(root.loss, max_window, ack_every, d) > unlimited
    growth = np.where(below_peaks, np.minimum(growth, root.loss * (1.0 - d) * W**2), growth)
    climb = np.where(by_losses, growth, 0.0)
    return Loop(
        rtt=R, rate=sent, slope=slope, window=W, climb=climb,
        loss=root.loss, steep=drop_slope, pole=pole, marks=curve.ecn,
    )  # fmt: skip


def _corners(buffer: float, curve: Curve | None) -> tuple[Floats, str]:
    """The corners of the curve of RED's base drop probability over the queue, and a message.

    Each row is a corner: the queue in packets, and the probability (``Curve.corners``). The curve
    ends at the longest queue at which there can be an equilibrium: at a longer queue the buffer
    overflows, or RED drops every packet. The message explains why there is no equilibrium if the
    flows would need such a queue. Without RED the probability is 0.
    """
    if curve is None:
        message = (
            "the flows overflow the buffer, so their windows move in a cycle without equilibrium"
        )
        return np.array([(0.0, 0.0), (buffer, 0.0)]), message
    buffer = min(buffer, curve.buffer)
    if buffer <= 0.0:
        corners = np.zeros((1, 2))
    else:
        corners = dataclasses.replace(curve, buffer=buffer).corners()
    if len(corners) > 1 and corners[-1, 0] == corners[-2, 0]:  # the probability jumps to 1
        corners = corners[:-1]
    if buffer < curve.max_threshold:
        return corners, (
            "the buffer is full before RED drops enough packets, so the windows move in a cycle "
            "without equilibrium; a buffer above max_threshold lets RED act first"
        )
    return corners, (
        "RED drops too few packets up to its last threshold and every packet above it, so the "
        "queue oscillates about this threshold; a larger max_probability may give an equilibrium"
    )


def _drop_slope(curve: Curve, queue: float, p: float) -> float:
    """The derivative of RED's drop probability p with respect to its average queue.

    It is 0 if p is 0. Otherwise it is the slope of the base probability p_b, times the derivative
    of p with respect to p_b. The latter depends on ``curve.spacing`` (``red.effective``). With
    ``wait``, p = 2 p_b/(3 - p_b), so it is 6/(3 - p_b)^2 = (2 + p)^2/6.
    """
    if p == 0.0:
        return 0.0
    low, high, top = curve.min_threshold, curve.max_threshold, curve.max_probability
    slope = top / (high - low) if queue <= high else (1.0 - top) / high
    if curve.spacing == "wait":
        return (2.0 + p) ** 2 / 6.0 * slope
    return slope if curve.spacing == "independent" else 2.0 * slope


def _windows(sources: Sources, s: float, p: float) -> Floats:
    """The windows, packets, at the queueing delay ``s`` (in s) and the loss probability ``p``."""
    edge, by_loss = _limits(sources, s, p)
    return np.clip(np.minimum(edge, by_loss), sources.least, sources.most)


def _limits(sources: Sources, s: float, p: float) -> tuple[Floats, Floats]:
    """For each flow, the window at its backlog threshold and the window that losses allow.

    Both are in packets. At the first window the backlog equals the threshold ``edge``, if the
    queueing delay is ``s`` (in s). At the second, growth and cuts balance, if the loss probability
    is ``p``. The first is infinite if s does not exceed the flow's over-estimate of its propagation
    delay. The second is infinite if p is 0.
    """
    gap = s - sources.over_estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        divisor_rtt = np.where(sources.linux, sources.rtt + sources.over_estimate, sources.rtt + s)
        edge = np.where(gap > 0.0, sources.edge * divisor_rtt / gap, np.inf)
        by_loss = np.sqrt(sources.climb / ((1.0 - sources.decrease) * p))
    return edge, by_loss


def _slope_and_climb(sources: Sources, W: Floats, s: float, p: float) -> tuple[Floats, Floats]:
    """The fields ``slope`` and ``climb`` of ``Loop``: two arrays with one number per flow.

    ``W`` are the windows in equilibrium, ``s`` is the queueing delay in s, ``p`` the loss
    probability.

    ``slope`` is positive only for a window that the backlog threshold limits. It says how much this
    window W falls as s grows: it is -(dW/ds) divided by the rate W/(T + s), and has no unit. From
    W = e (T + s)/(s - x) follows (T + x)/(s - x). In Linux W is e (T + x)/(s - x), and the slope is
    (T + s)/(s - x). ``climb`` is positive only for a window that losses limit. It is the growth of
    the window in packets per round trip.

    A window at its least or greatest value has 0 in both arrays.
    """
    by_backlog, by_loss = _limits(sources, s, p)
    free = (sources.least < W) & (sources.most > W)
    at_threshold = free & (by_backlog <= by_loss)
    other_rtt = np.where(sources.linux, sources.rtt + s, sources.rtt + sources.over_estimate)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(at_threshold, other_rtt / (s - sources.over_estimate), 0.0)
    return slope, np.where(free & ~at_threshold, sources.climb, 0.0)
