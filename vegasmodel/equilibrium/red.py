"""Finds the mean queue at which Vegas and loss-based flows fill a link with RED.

A mean queue of q packets at the capacity c causes the queueing delay q/c, and RED's loss
probability p(q). Delay and loss determine the rate of each flow. At the equilibrium the rates add
up to c. There is at most one equilibrium (``equilibria`` has the proof). The module finds two
points close together on RED's curve p(q): at the first the rates add up to more than c, at the
second to less. So the equilibrium lies between the two points. This is certain if both differences
from c exceed the rounding errors; the field ``certified`` of the result says whether they do.

If the control loop is unstable, the queue oscillates, and its mean may differ from that of the
equilibrium. In the model each Vegas flow keeps a backlog of ``alpha`` packets. A real flow may keep
any backlog between its two thresholds.

The model was compared with ns-2 on 40 random scenarios (``python -m benchmarks.accuracy_red``). If
RED drops packets, the error of the mean queue is 6 % on average and at most 12 %. Each scenario has
two errors of rates, that of the Vegas flows and that of the loss-based flows. The larger of the two
is 9 % on average and at most 18 %. If RED marks packets, the error of the mean queue is 19 % on
average and at most 157 %. The larger error of the rates is then 26 % on average and at most 104 %.
In the scenario with the largest errors, 3 Vegas flows and a Reno flow share a link, and RED's
thresholds are 3 and 9 packets.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium._checks import (
    broadcast,
    expect_broadcast,
    floats,
    numbers,
    positive,
    sender,
    word,
)
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.equilibrium._loss_formulas import coarse_timeout, square_root
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

__all__ = ["Curve", "Equilibrium", "Flows", "demand", "effective", "equilibria", "simple_pftk"]

Spacing = Literal["wait", "uniform", "independent"]
SPACINGS = ("wait", "uniform", "independent")
EPS = float(np.finfo(np.float64).eps)  # the distance from 1 to the next float


@kinds.checked
@dataclass(frozen=True)
class Curve:
    """RED's curve: the drop probability as a function of the mean queue, in packets.

    The fields ``min_threshold`` to ``ecn`` are RED's parameters. They have the names and the
    meaning of the keys of a ``queue`` table in a scenario file. With ``ecn`` RED marks packets
    instead of dropping them, and the model has no timeouts. ``buffer`` is the size of the buffer in
    packets. ``spacing`` selects how RED spreads its drops (see ``effective``).
    """

    min_threshold: float
    max_threshold: float
    max_probability: float = 0.1
    gentle: bool = False
    ecn: bool = False
    buffer: float = math.inf
    spacing: Spacing = "wait"

    def __post_init__(self) -> None:
        """Check all fields."""
        numbers("min_threshold", self.min_threshold)
        numbers("max_threshold", self.max_threshold, self.min_threshold, above=True)
        numbers("max_probability", self.max_probability, high=1.0, above=True)
        numbers("buffer", self.buffer, above=True, infinite=True)
        word("spacing", self.spacing, SPACINGS)

    def corners(self) -> Floats:
        """The corners of RED's curve as rows (mean queue in packets, base drop probability).

        The probability is 0 up to ``min_threshold``. It then rises linearly to ``max_probability``
        at ``max_threshold``. Without ``gentle`` it jumps to 1 there. With ``gentle`` it continues
        to rise, and reaches 1 at twice ``max_threshold``.

        If the buffer is full before the probability reaches 1, the probability jumps to 1 at the
        full buffer.
        """
        top = self.max_threshold
        rows = [(0.0, 0.0), (self.min_threshold, 0.0), (top, self.max_probability)]
        rows.append((2 * top, 1.0) if self.gentle else (top, 1.0))
        if self.buffer < rows[-1][0]:
            q = np.array([row[0] for row in rows])
            p = np.array([row[1] for row in rows])
            at_buffer = float(np.interp(self.buffer, q, p))
            if self.buffer == top:  # where the probability jumps, its value before the jump
                at_buffer = self.max_probability
            rows = [row for row in rows if row[0] < self.buffer]
            rows += [(self.buffer, at_buffer), (self.buffer, 1.0)]
        return np.array(rows)


@kinds.checked
@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of a link with RED. A field holds one value per flow, or one value for all flows.

    - ``vegas``: True for a Vegas flow, False for a loss-based one.
    - ``rtt``: the RTT without queueing, s.
    - ``alpha``: the backlog that a Vegas flow keeps, packets.
    - ``over_estimate``: by how many seconds a Vegas flow's baseRTT exceeds ``rtt``.
    - ``decrease``: the factor by which a lost packet multiplies the window. The default is 0.75 for
      Vegas and 0.5 for all other flows. If RED marks packets (ECN), the factor is always 0.5, and
      ``decrease`` is not used.
    - ``max_window``: the largest window, packets.
    - ``ack_every``: the number of packets that one ACK acknowledges; 1 if windows grow by the
      acknowledged packets and not by the ACKs, as in Linux.
    - ``timeout``: the retransmission timeout without queueing, s. The model adds the queueing
      delay. The default is computed from ``rtt`` (``coarse_timeout``).

    Raises ``FieldError`` for values out of range.
    """

    vegas: bool | Sequence[bool] | NDArray[np.bool_]
    rtt: ArrayLike
    alpha: ArrayLike = 1.0
    over_estimate: ArrayLike = 0.0
    decrease: ArrayLike | None = None
    max_window: ArrayLike = math.inf
    ack_every: ArrayLike = 1.0
    timeout: ArrayLike | None = None

    def __post_init__(self) -> None:
        expect_broadcast(
            {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        )
        sender(self, cut=True)  # checks the ranges of the values


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium of the flows at a RED queue.

    ``queue`` is the mean queue in packets. ``loss`` is the fraction of packets that RED drops or
    marks at this queue. ``rates`` are the flows' rates in pkt/s. They add up to the capacity c,
    unless the flows cannot fill the link.

    ``kind`` is one of:

    - ``underloaded``: the flows cannot fill the link. Queue and loss are 0.
    - ``no-loss``: the queue is too short for RED to drop packets.
    - ``on-curve``: the queue is at a point where RED's loss rises with the queue.
    - ``at-threshold`` and ``at-buffer``: the loss jumps at this queue, which is ``max_threshold``
      or the full buffer. The real queue oscillates about the jump, and ``loss`` is the mean loss.

    ``interval`` holds two points (queue, loss) of RED's curve, one on either side of the
    equilibrium. At the first point the rates add up to more than c, at the second to less.
    ``certified`` is True if both differences from c exceed the rounding errors. Then the
    equilibrium certainly lies between the two points. If the link is underloaded, both points are
    (0, 0) and ``certified`` is True.

    ``residual`` is (sum of the rates - c)/c.
    """

    queue: float
    loss: float
    rates: Floats
    kind: str
    residual: float
    interval: Floats
    certified: bool


@same_kind
def effective(base: ArrayLike, spacing: Spacing = "wait") -> Floats:
    """The fraction p of the packets that RED drops at the base probability p_b.

    RED takes p_b from its mean queue. How often it drops also depends on ``spacing``, the rule by
    which it spreads its drops. The number of packets from one drop to the next is random, and its
    mean is 1/p. With m = 1/p_b, this number is:

    - ``wait`` (ns-2's default, ``wait_`` true): uniform on m to 2m - 1, so p = 2 p_b / (3 - p_b).
    - ``uniform`` (``wait_`` false): uniform on 1 to m - 1, so p = 2 p_b (at most 1).
    - ``independent``: geometric, because RED drops each packet with probability p = p_b.

    The module ``symbolic.red`` derives the first two results. They are exact if m is a whole
    number. Raises ``FieldError`` if ``base``, which is p_b, is outside 0 to 1.
    """
    word("spacing", spacing, SPACINGS)
    p = numbers("base", base, high=1.0)
    if spacing == "wait":
        return np.asarray(2 * p / (3 - p))
    if spacing == "uniform":
        return np.minimum(1.0, 2 * p)
    return p


@same_kind
@broadcast
def simple_pftk(
    p: ArrayLike,
    rtt: ArrayLike,
    timeout: ArrayLike,
    b: ArrayLike = 1.0,
    decrease: ArrayLike = 0.5,
) -> Floats:
    """The sending rate of a flow that only losses limit, pkt/s, by the short formula of PFTK.

    The loss probability is p, the RTT ``rtt`` and the timeout T_0 are in s, and one ACK
    acknowledges b packets. A loss multiplies the window by ``decrease``. The rate is

        rate = 1 / (1/square_root(p) + T_0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2)).

    This is equation (33) of Padhye and others, except for the first term of the denominator. Here
    this term is the inverse of ``square_root``, the square-root law for random losses. Without
    timeouts (T_0 = 0) the rate is that of the square-root law. Arguments broadcast. Raises
    ``FieldError`` for arguments out of range.
    """
    loss, T_0 = numbers("p", p, high=1.0), numbers("timeout", timeout)
    return _with_timeouts(square_root(loss, rtt, b, decrease), loss, T_0, floats("b", b))


def _with_timeouts(smooth: Floats, loss: ArrayLike, T_0: Floats, b: Floats) -> Floats:
    """The rate by ``simple_pftk`` of a flow whose rate without timeouts is ``smooth``, pkt/s.

    ``loss`` is the loss probability, T_0 the timeout in s, and b the number of packets per ACK.
    """
    loss = np.asarray(loss)
    # time per packet that the flow waits for timeouts, in units of T_0
    waits = np.minimum(1.0, 3 * np.sqrt(3 * b * loss / 8)) * loss * (1 + 32 * loss**2)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 / smooth + T_0 * waits))


@kinds.checked
def demand(flows: Flows, curve: Curve, queue: float, loss: float, capacity: float) -> Floats:
    """The rate that each flow delivers, pkt/s, at a given mean queue and loss probability.

    The mean queue q is in packets, the capacity c in pkt/s. The rate at which a flow sends is the
    smallest of:

    - the rate that losses allow, by ``simple_pftk``. If RED marks packets (ECN), a mark halves the
      window and there are no timeouts. If ``max_window`` keeps the window below the peaks that
      losses allow, the first term of the denominator in ``simple_pftk`` is replaced by RTT times
      ``limited``. At p = 0 the rate is max_window / RTT.
    - for Vegas only, alpha / (q/c - x). Here q/c is the queueing delay, and x is the flow's
      over-estimate of baseRTT. This limit applies only if q/c exceeds x.

    The rate is infinite if none of these limits the flow. Of the packets sent, the fraction
    1 - loss is delivered. With ECN all packets are delivered. Raises ``FieldError`` for arguments
    out of range.
    """
    positive("capacity", capacity)
    numbers("queue", queue)
    numbers("loss", loss, high=1.0)
    return _demand(flows, curve, capacity)(queue, loss)


def _demand(flows: Flows, curve: Curve, capacity: float) -> Callable[[float, float], Floats]:
    """Make a function of the queue and the loss that returns what ``demand`` returns.

    A search for the equilibrium calls this function some seventy times. So it does not check its
    arguments, and everything that does not depend on them is computed only once.
    """
    fields = (flows.rtt, flows.alpha, flows.over_estimate, flows.max_window, flows.ack_every)
    vegas, T, alpha, x, W_max, b = np.broadcast_arrays(
        np.asarray(flows.vegas, dtype=bool),
        *(np.asarray(values, dtype=np.float64) for values in fields),
    )
    d = cuts(flows, curve)
    # of the law: rate = constant / (RTT sqrt(b p))
    constant = square_root(p=1.0, rtt=1.0, b=1.0, decrease=d)
    if flows.timeout is None:
        timeout = coarse_timeout(T)
    else:
        timeout = np.asarray(flows.timeout, dtype=np.float64)

    def rates(queue: float, loss: float) -> Floats:
        """The rate that each flow delivers, pkt/s.

        The mean queue is ``queue`` packets, and RED drops or marks a packet with the probability
        ``loss``.
        """
        delay = queue / capacity
        RTT = T + delay
        T_0, arrive = (np.zeros_like(T), 1.0) if curve.ecn else (timeout + delay, 1.0 - loss)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # round trips per packet, without timeouts
            per_packet = np.maximum(np.sqrt(b * loss) / constant, limited(loss, W_max, b, d))
            rate = _with_timeouts(1.0 / (RTT * per_packet), loss, T_0, b)
            by_backlog = np.where(delay > x, alpha / (delay - x), np.inf)  # Vegas's limit
        return np.asarray(arrive * np.where(vegas, np.minimum(rate, by_backlog), rate))

    return rates


def cuts(flows: Flows, curve: Curve) -> Floats:
    """The factor by which a dropped packet multiplies each flow's window, or a marked one.

    RED marks packets if ``curve.ecn`` is true, and otherwise drops them.
    """
    vegas = np.asarray(flows.vegas, dtype=bool)
    if curve.ecn:  # a mark halves the window, also in ns-2's Vegas
        return np.full(vegas.shape, 0.5)
    if flows.decrease is None:
        return np.where(vegas, 0.75, 0.5)
    return np.asarray(flows.decrease, dtype=np.float64)


def limited(loss: float, W_max: Floats, b: Floats, d: Floats) -> Floats:
    """The number of round trips per packet if ``W_max`` packets limit the window.

    p is the loss probability ``loss``, and one ACK acknowledges b packets. A loss comes every 1/p
    packets and multiplies the window by d. The window grows from d W_max to W_max in
    b (1 - d) W_max round trips, in which the flow sends b (1 - d^2) W_max^2 / 2 packets. The window
    then stays at W_max while the flow sends the rest of the 1/p packets. So a packet takes

        1 / W_max + p b (1 - d)^2 W_max / 2

    round trips. This is the window-limited form of Padhye and others, for any d. It is least at
    W_max = sqrt(2 / (b p)) / (1 - d). At this W_max and above it the limit does not matter, and the
    result is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.sqrt(2.0 / (b * loss)) / (1.0 - d)
        rounds_per_packet = 1.0 / W_max + loss * b * (1.0 - d) ** 2 / 2.0 * W_max
    return np.where(W_max < peak, rounds_per_packet, 0.0)


@kinds.checked
def equilibria(flows: Flows, curve: Curve, capacity: float) -> tuple[Equilibrium, ...]:
    """The equilibrium of the flows at a RED queue, as a tuple of one entry.

    The tuple is empty if RED marks packets (ECN), and the marks cannot slow the flows enough.

    There is at most one equilibrium. Proof: follow RED's curve towards longer queues. Between any
    two points of it the queue q or the loss probability p grows, and neither falls. If q grows,
    each flow's rate falls (unless it is infinite), because the RTT grows. If p grows, each rate
    falls, because the flow loses more packets. So the sum of the rates falls, and equals the
    capacity at one point at most.

    The proof has one exception. If RED marks packets (ECN), p does not matter to a Vegas flow whose
    rate is limited by its backlog. So if all flows are such flows, points with the same q and
    different p can be equilibria. Their rates are equal.

    Raises ``FieldError`` for a capacity that is not positive.
    """
    positive("capacity", capacity)
    rates_at = _demand(flows, curve, capacity)
    corners = curve.corners()
    # A position on RED's curve is a pair: the number ``first`` of a corner, and a number ``t``,
    # which is 0 at this corner and 1 at the next one. Between them, the queue and RED's base drop
    # probability change linearly with t.

    def point(first: int, t: float) -> tuple[float, float]:
        """The queue, packets, and the fraction of packets dropped (``effective``) at a position."""
        queue, base = on_curve(corners, first, t)
        return queue, float(effective(base, curve.spacing))

    def excess(first: int, t: float) -> float:
        """The sum of the rates at a position, divided by the capacity, minus 1."""
        q, p = point(first, t)
        return float(rates_at(q, p).sum() / capacity - 1)

    # the root of ``excess`` lies behind the corner ``first``, between the t ``low`` and ``high``
    first, low, high = 0, 0.0, 0.0
    underloaded = not excess(0, 0.0) > 0  # the flows do not fill the link even without a queue
    if not underloaded:
        found = crossing(excess, len(corners) - 1)
        if found is None:
            return ()
        first, low, high = found
    q, p = point(first, high)
    rates = rates_at(q, p)
    if underloaded:
        kind, certified = "underloaded", True
    else:
        kind = _kind(curve, q, p)
        # the ends of the curve, counted from the corner ``first``
        ends = -float(first), float(len(corners) - 1 - first)
        low, high, certified = _certify(
            functools.partial(excess, first), low, high, ends, rates.size
        )
    interval = np.array([point(first, low), point(first, high)])
    return (Equilibrium(q, p, rates, kind, float(rates.sum() / capacity - 1), interval, certified),)


def on_curve(corners: Floats, first: int, t: float) -> tuple[float, float]:
    """The point (queue, base drop probability p_b) at a position on RED's curve.

    ``corners`` are the curve's corners (``Curve.corners``). The position is counted from the corner
    number ``first``: ``t`` is 0 at this corner, 1 at the next one, -1 at the one before, and so on.
    Between two corners, the queue and p_b change linearly with ``t``.
    """
    piece, part = first, t
    if not 0 <= t <= 1:  # the point lies on another piece of the curve
        piece = min(int(first + t), len(corners) - 2)
        part = first + t - piece
    (q0, p0), (q1, p1) = corners[piece], corners[piece + 1]
    return float(q0 + part * (q1 - q0)), float(p0 + part * (p1 - p0))


def crossing(excess: Callable[[int, float], float], pieces: int) -> tuple[int, float, float] | None:
    """Find where ``excess`` falls to 0 along a curve of so many ``pieces``.

    ``excess`` takes a position as ``on_curve`` does: a corner's number, and the position after this
    corner. Returns the number of the corner before the root, and two neighbouring positions with
    the root between them, or None if ``excess`` is positive along the whole curve.

    At the root RED's loss may be far below 1e-16. So positions count from the corner before it:
    floats near 0 are closer together than floats near 1.
    """
    for first in range(pieces):
        if excess(first, 1.0) <= 0:
            return first, *bisect(functools.partial(excess, first))
    return None


def bisect(excess: Callable[[float], float]) -> tuple[float, float]:
    """Find the root of the falling function ``excess`` in 0 .. 1, as exactly as floats allow.

    Returns two neighbouring floats (low, high) with the root between them. The method is
    bisection. It uses only the sign of the function, so the function's values may be infinite.
    """
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)


def _certify(
    excess: Callable[[float], float], low: float, high: float, ends: tuple[float, float], n: int
) -> tuple[float, float, bool]:
    """Widen the interval ``low`` .. ``high`` until the signs of ``excess`` at its ends are certain.

    A root of ``excess`` then certainly lies in the interval: the rounding errors of the rates
    cannot have changed the signs. ``excess`` is the sum of the rates of n flows divided by the
    capacity, minus 1. A sign is certain if ``excess`` differs from 0 by more than its ``rounding``.
    ``ends`` are the two ends of the curve, beyond which the interval cannot be widened.

    Returns the two ends of the interval, and whether both signs are certain.
    """
    doubt = rounding(n)
    start, end = ends
    width = max(EPS * high, math.ulp(0.0))
    while width < end - start:
        if excess(low) > doubt and excess(high) < -doubt:
            return low, high, True
        low, high = max(low - width, start), min(high + width, end)
        width *= 2
    return low, high, False


def rounding(n: int) -> float:
    """An upper bound of the rounding error of the sum of ``n`` rates divided by the capacity.

    It is (n + 64) eps, where eps is the distance from 1 to the next float. The n stands for the
    additions of the n rates, the 64 for the operations that compute one rate.
    """
    return (n + 64) * EPS


def _kind(curve: Curve, queue: float, loss: float) -> str:
    """The field ``kind`` of an ``Equilibrium`` on a full link, with this mean queue and loss."""
    if loss == 0:
        return "no-loss"
    if queue == curve.buffer:
        return "at-buffer"
    jump = queue == curve.max_threshold and not curve.gentle
    return "at-threshold" if jump else "on-curve"
