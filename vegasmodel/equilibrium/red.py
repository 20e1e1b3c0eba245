"""Vegas and loss-based flows at a RED queue: the mean queue at which the flows fill the link.

A mean queue of q packets at the capacity c causes the queueing delay q/c, and RED's loss
probability p(q). Delay and loss determine the rate of each flow. At the equilibrium the rates add
up to c. There is at most one equilibrium (``equilibria`` has the proof). The module finds two
points close together on RED's curve p(q): at the first the rates add up to more than c, at the
second to less. So the equilibrium lies between them. The field ``certified`` says whether both
differences from c exceed the rounding errors, so that this is certain.

If the control loop is unstable, the queue oscillates, and its mean may differ from that of the
equilibrium. ``alpha`` is the backlog of a Vegas flow in the model. A real flow may keep any backlog
between its two thresholds.

The model was compared with ns-2 on 40 random cases (``python -m benchmarks.accuracy_red``). If RED
drops packets, the error of the mean queue is 6 % on average and at most 12 %. The larger error of
the two laws' rates is 9 % on average and at most 18 %. If RED marks packets, the error of the mean
queue is 19 % on average and at most 157 %. The larger error of the rates is then 26 % on average
and at most 104 %. In the worst case, 3 Vegas flows and a Reno flow share a link, and RED's
thresholds are 3 and 9 packets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium._checks import numbers, positive, word
from vegasmodel.equilibrium.random_loss import coarse_timeout, square_root
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

__all__ = ["Curve", "Equilibrium", "Flows", "demand", "effective", "equilibria", "simple_pftk"]

Spacing = Literal["wait", "uniform", "independent"]
SPACINGS = ("wait", "uniform", "independent")
EPS = float(np.finfo(np.float64).eps)


@kinds.checked
@dataclass(frozen=True)
class Curve:
    """RED's curve of loss over mean queue: its thresholds and the buffer, in packets.

    The fields are those of a ``queue`` table in a scenario file. ``spacing`` selects one of three
    ways in which RED spreads its drops (``effective``). With ``ecn`` packets are marked instead of
    dropped, so the model has no timeouts.
    """

    min_threshold: float
    max_threshold: float
    max_probability: float = 0.1
    gentle: bool = False
    ecn: bool = False
    buffer: float = math.inf
    spacing: Spacing = "wait"

    def __post_init__(self) -> None:
        numbers("min_threshold", self.min_threshold)
        numbers("max_threshold", self.max_threshold, self.min_threshold, above=True)
        numbers("max_probability", self.max_probability, high=1.0, above=True)
        numbers("buffer", self.buffer, above=True, infinite=True)
        word("spacing", self.spacing, SPACINGS)

    def corners(self) -> Floats:
        """The corners of RED's curve as rows (mean queue in packets, base drop probability).

        The curve rises from (0, 0) to a probability of 1. With ``gentle`` it reaches 1 linearly, at
        twice ``max_threshold``; otherwise it jumps to 1 at ``max_threshold``. If the buffer is
        shorter than that, the curve jumps to 1 where the buffer is full.
        """
        top, last = self.max_threshold, self.max_probability
        rows = [(0.0, 0.0), (self.min_threshold, 0.0), (top, last)]
        rows.append((2 * top, 1.0) if self.gentle else (top, 1.0))
        if self.buffer < rows[-1][0]:
            q = np.array([row[0] for row in rows])
            p = np.array([row[1] for row in rows])
            at = float(np.interp(self.buffer, q, p))
            if self.buffer == top:
                at = last
            rows = [row for row in rows if row[0] < self.buffer]
            rows += [(self.buffer, at), (self.buffer, 1.0)]
        return np.array(rows)


@kinds.checked
@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of a link with RED: fields that broadcast to one entry per flow.

    ``vegas`` is true for a Vegas flow and false for a loss-based one. ``rtt`` is the RTT without
    queueing, s. A loss multiplies the window by ``decrease``, by default 0.75 for Vegas and 0.5 for
    all other flows. (Under ECN it is not used: a mark halves the window of any flow.) Only Vegas
    flows use ``alpha`` (packets) and ``over_estimate``: by how many seconds baseRTT exceeds the RTT
    without queueing. ``timeout`` is the timeout without queueing, s; the queueing delay is added to
    it. If it is None, the function ``coarse_timeout`` computes it from ``rtt``. Raises
    ``FieldError`` for values out of range.
    """

    vegas: ArrayLike
    rtt: ArrayLike
    alpha: ArrayLike = 1.0
    over_estimate: ArrayLike = 0.0
    decrease: ArrayLike | None = None
    max_window: ArrayLike = math.inf
    ack_every: ArrayLike = 1.0
    timeout: ArrayLike | None = None

    def __post_init__(self) -> None:
        positive("rtt", self.rtt)
        numbers("alpha", self.alpha)
        numbers("over_estimate", self.over_estimate, -math.inf)
        numbers("max_window", self.max_window, above=True, infinite=True)
        positive("ack_every", self.ack_every)
        if self.decrease is not None:
            numbers("decrease", self.decrease, high=1.0, below=True)
        if self.timeout is not None:
            numbers("timeout", self.timeout)


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium: mean ``queue`` (packets), ``loss`` (or marks) per packet, ``rates`` (pkt/s).

    At this queue and loss the flows of a RED link fill the link, or send less than its capacity
    without any queue.

    ``kind`` says where on RED's curve of loss over queue it lies:

    - ``underloaded``: without queue, since the flows cannot fill the link;
    - ``no-loss``: below ``min_threshold``;
    - ``on-curve``: where the loss rises with the queue;
    - ``at-threshold`` or ``at-buffer``: where the curve is vertical.  The loss is such that the
      flows fill the link on average, and the queue oscillates about the jump.

    ``interval`` has two rows (queue, loss), which are points of the curve on the two sides of the
    equilibrium. At the first, the sum of the rates is more than the capacity c; at the second, it
    is less. ``certified`` says that the sum differs from c by more than rounding errors at both, so
    that the equilibrium certainly lies between them. If ``kind`` is ``underloaded``, both rows are
    (0, 0) and ``certified`` is True. ``residual`` is (sum of the rates - c)/c.
    """

    queue: float
    loss: float
    rates: Floats
    kind: str
    residual: float
    interval: Floats
    certified: bool


def effective(base: ArrayLike, spacing: Spacing = "wait") -> Floats:
    """The fraction p of the packets that RED drops at the base probability p_b.

    p_b is the probability that RED's curve gives for its mean queue. p also depends on ``spacing``,
    the way in which RED spreads its drops. RED counts the packets since its last drop. The number
    of packets from one drop to the next is random, with the mean 1/p. Let m = 1/p_b be whole. Then
    this number (derived in the module ``symbolic.red``) is:

    * ``wait`` (ns-2's ``wait_`` true, its default): uniform on m to 2m - 1, so
      p = 2 p_b / (3 - p_b).
    * ``uniform`` (``wait_`` false): uniform on 1 to m - 1, so p = 2 p_b. (If the count starts at 0,
      as in Floyd and Jacobson, it is uniform on 1 to m, so p = 2 p_b / (1 + p_b).)
    * ``independent``: each packet is dropped with probability p = p_b.
    """
    word("spacing", spacing, SPACINGS)
    p = numbers("base", base, high=1.0)
    if spacing == "wait":
        return np.asarray(2 * p / (3 - p))
    if spacing == "uniform":
        return np.minimum(1.0, 2 * p)
    return p


def simple_pftk(
    p: ArrayLike,
    rtt: ArrayLike,
    timeout: ArrayLike,
    b: ArrayLike = 1.0,
    decrease: ArrayLike = 0.5,
) -> Floats:
    """The sending rate of a flow that only losses limit, pkt/s, by the short formula of PFTK.

    It is ``1 / (1/square_root(p) + T_0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2))``, equation (33)
    of Padhye and others, for the loss probability p, the timeout T_0 in s and b packets per ACK.
    But the paper has another first term. Here it is the inverse of ``square_root``, the square-root
    law for random losses. With T_0 = 0 the rate is that of this law. Both terms of the denominator
    rise with p, and the first also rises with the RTT. So the rate falls as p or the RTT grows.
    """
    loss, T_0 = numbers("p", p, high=1.0), numbers("timeout", timeout)
    smooth = square_root(loss, rtt, b, decrease)
    stalls = np.minimum(1.0, 3 * np.sqrt(3 * np.asarray(b) * loss / 8)) * loss * (1 + 32 * loss**2)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 / smooth + T_0 * stalls))


@kinds.checked
def demand(flows: Flows, curve: Curve, queue: float, loss: float, capacity: float) -> Floats:
    """The rate that each flow delivers, pkt/s, at a mean queue in packets and a loss probability.

    A flow sends at the rate that ``simple_pftk`` gives, but at most at max_window / RTT. After a
    loss the flow's own factor ``decrease`` reduces its window. Under ECN there are no timeouts, and
    a mark halves every window. The sending rate of a Vegas flow is also at most
    ``alpha / (q/c - x)``, where q/c is the queueing delay and x the flow's over-estimate of
    baseRTT. Of the packets sent, the fraction 1 - loss is delivered (under ECN all). The rate is
    infinite if neither losses, nor the largest window, nor Vegas's backlog limits the flow.
    """
    positive("capacity", capacity)
    numbers("queue", queue)
    numbers("loss", loss, high=1.0)
    vegas, T, alpha, x, W_max, b = np.broadcast_arrays(
        np.asarray(flows.vegas, dtype=bool),
        *(
            np.asarray(v, dtype=np.float64)
            for v in (
                flows.rtt,
                flows.alpha,
                flows.over_estimate,
                flows.max_window,
                flows.ack_every,
            )
        ),
    )
    d: ArrayLike = 0.5  # a mark halves the window, that of ns-2's Vegas too
    if not curve.ecn:
        d = np.where(vegas, 0.75, 0.5) if flows.decrease is None else flows.decrease
    delay = queue / capacity
    RTT = T + delay
    if curve.ecn:
        T_0, arrive = np.zeros_like(T), 1.0
    else:
        given = coarse_timeout(T) if flows.timeout is None else np.asarray(flows.timeout)
        T_0, arrive = given + delay, 1.0 - loss
    rate = np.minimum(simple_pftk(loss, RTT, T_0, b, d), W_max / RTT)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        own = np.where(delay > x, alpha / (delay - x), np.inf)
    return arrive * np.where(vegas, np.minimum(rate, own), rate)


@kinds.checked
def equilibria(flows: Flows, curve: Curve, capacity: float) -> tuple[Equilibrium, ...]:
    """All equilibria of flows at a RED queue: one, or none if marks (ECN) cannot slow them enough.

    There is at most one. Proof: follow RED's curve (q, p). Each piece of it rises or is vertical,
    so along it neither the queue q nor the loss p ever falls. Each rate is continuous. It strictly
    falls in q, because the delay grows. It never rises in p, and strictly falls in p where losses
    limit the flow. So along the curve the sum of the rates strictly falls wherever q grows, and on
    a vertical piece as soon as losses limit a flow. Therefore the sum crosses the capacity c at
    most once.

    Raises ``FieldError`` for a capacity that is not positive.
    """
    positive("capacity", capacity)

    def point(s: float) -> tuple[float, float]:
        """The point (queue, loss) of RED's curve at the position s along it.

        The corners of the curve are at s = 0, 1, 2, ...  Between two corners, the queue and RED's
        base drop probability change linearly with s.
        """
        piece = min(int(s), len(corners) - 2)
        (q0, p0), (q1, p1) = corners[piece], corners[piece + 1]
        part = s - piece
        base = p0 + part * (p1 - p0)
        return float(q0 + part * (q1 - q0)), float(effective(base, curve.spacing))

    def excess(s: float) -> float:
        q, p = point(s)
        return float(demand(flows, curve, q, p, capacity).sum() / capacity - 1)

    corners = curve.corners()
    end = float(len(corners) - 1)
    if excess(0.0) <= 0:
        low, high = 0.0, 0.0
    elif excess(end) > 0:
        return ()
    else:
        low, high = bisect(excess, end)
    q, p = point(high)
    rates = demand(flows, curve, q, p, capacity)
    if low == high:  # the link is not filled even without a queue
        kind, shown = "underloaded", True
    else:
        kind = _kind(curve, q, p)
        low, high, shown = _certify(excess, low, high, end, rates.size)
    interval = np.array([point(low), point(high)])
    return (Equilibrium(q, p, rates, kind, float(rates.sum() / capacity - 1), interval, shown),)


def bisect(excess: Callable[[float], float], end: float) -> tuple[float, float]:
    """Find the root of the falling function ``excess`` in 0 .. ``end``, as exactly as floats allow.

    Returns two neighbouring floats (low, high) with the root between them.  The method is
    bisection.  It uses only the sign of the function, so the function's values may be infinite.
    """
    low, high = 0.0, end
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)


def _certify(
    excess: Callable[[float], float], low: float, high: float, end: float, n: int
) -> tuple[float, float, bool]:
    """Widen the interval ``low`` .. ``high`` until the signs of ``excess`` at its ends are certain.

    ``excess`` is the sum of the n flows' rates divided by the capacity, minus 1.  Each rate takes a
    few dozen rounded operations, so the sum has a relative error below (n + 64) eps.  A sign is
    certain if ``excess`` differs from 0 by more than that.  Returns the two ends, and whether both
    signs are certain.
    """
    doubt = (n + 64) * EPS
    width = EPS * max(high, 1.0)
    while width < end:
        if excess(low) > doubt and excess(high) < -doubt:
            return low, high, True
        low, high = max(low - width, 0.0), min(high + width, end)
        width *= 2
    return low, high, False


def _kind(curve: Curve, queue: float, loss: float) -> str:
    if loss == 0:
        return "no-loss"
    if queue == curve.buffer:
        return "at-buffer"
    jump = queue == curve.max_threshold and not curve.gentle
    return "at-threshold" if jump else "on-curve"
