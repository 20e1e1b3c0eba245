"""Throughput under random loss: the square-root law, PFTK, Vegas, and flows that share one link.

PFTK is the model of Padhye, Firoiu, Towsley and Kurose (1998). Every packet is lost with
probability ``p``, independently, before it reaches the link. Times are in seconds, windows in
packets, rates in packets per second. All results are approximations. The docstring of each function
says what it leaves out. ``symbolic.random_loss`` has the derivations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium import loss_rounds
from vegasmodel.equilibrium._checks import numbers, positive, word
from vegasmodel.equilibrium.loss_rounds import LAWS, Source
from vegasmodel.fields import kinds
from vegasmodel.fields.units import FieldError
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = [
    "Flow",
    "Share",
    "coarse_timeout",
    "hold_window",
    "pftk",
    "random_factor",
    "share",
    "square_root",
    "throughput",
]

Method = Literal["rounds", "pftk", "square-root"]
METHODS = ("rounds", "pftk", "square-root")
FACTORS = 1000  # of an infinite product that are multiplied one by one
TICK = 0.1  # s, of ns-2's coarse timer (tcpTick_) in the papers


def square_root(
    p: ArrayLike,
    rtt: ArrayLike,
    b: ArrayLike = 1.0,
    decrease: ArrayLike = 0.5,
    losses: Literal["periodic", "random"] = "random",
) -> Floats:
    """The square-root law: rate of AIMD without timeouts, pkt/s, ``K(d) / (rtt sqrt(b p))``.

    p is the loss probability, ``b`` the packets per ACK, d = ``decrease`` the window factor at a
    loss. If losses come every 1/p packets, K = sqrt((1 + d) / (2 (1 - d))), 1.2247 for d = 1/2. If
    they are independent, K = 1 / (sqrt(2) (1 - d) m(d)), with m from ``random_factor``: 1.3098.
    Infinite for p = 0 or d = 1. Arguments broadcast.

    Raises ``FieldError`` outside 0 <= p <= 1, 0 <= d <= 1, b > 0, rtt > 0.
    """
    word("losses", losses, ("periodic", "random"))
    p, rtt, b, d = _checked(p, rtt, b, decrease)
    with np.errstate(divide="ignore"):
        if losses == "periodic":
            constant = np.sqrt((1 + d) / (2 * (1 - d)))
        else:  # d = 1, no decrease: infinite, whatever the factor
            constant = 1 / (math.sqrt(2) * (1 - d) * random_factor(np.where(d < 1, d, 0.0)))
        return np.asarray(constant / (rtt * np.sqrt(b * p)))


def random_factor(decrease: ArrayLike) -> Floats:
    """The mean window at a loss, times sqrt(b p / 2), if losses are independent.

    One ACK acknowledges b packets, p is the loss probability, and d = ``decrease`` the factor of
    the window at a loss.  The result is

        m(d) = sqrt(pi)/2 prod_{k>=1} (1 - d^(2k+1)) / (1 - d^(2k)).

    This is the mean of sqrt(V), where V has the same distribution as d^2 V + E, with an independent
    exponential E of mean 1.  Its moments obey E V^s = s E V^(s-1) / (1 - d^2s).  Infinite for
    d = 1.

    The product has infinitely many factors.  Those with k < K = ``FACTORS`` are multiplied one by
    one.  The logarithm of factor k is f(k + 1/2) - f(k), where f(u) = ln(1 - d^(2u)).  For all
    k >= K together, the sum of these logarithms is approximated by f'(K)/8 - f(K)/2.  For the
    integral I of f from K to infinity, the midpoint rule with its first correction gives
    sum f(k + 1/2) = I + f'(K)/24.  The trapezoidal rule gives sum f(k) = I + f(K)/2 - f'(K)/12.
    The difference of the two sums is the approximation.  Its error is below 1e-11.
    """
    d = numbers("decrease", decrease, high=1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        L = -2 * np.log(d)[..., None]  # f = ln(1 - exp(-L u)), f' = L/(exp(L u) - 1)
        k = np.arange(1.0, FACTORS)
        body = np.log(np.expm1(-L * (k + 0.5)) / np.expm1(-L * k)).sum(-1)
        last = L[..., 0] * FACTORS
        slope = np.where(last < 700, L[..., 0] / np.expm1(np.minimum(last, 700)), 0.0)
        log = body + slope / 8 - np.log(-np.expm1(-last)) / 2
    factor = math.sqrt(math.pi) / 2 * np.exp(np.where(d == 0, 0.0, log))
    return np.where(d == 1, np.inf, factor)


def pftk(
    p: ArrayLike,
    rtt: ArrayLike,
    timeout: ArrayLike,
    b: ArrayLike = 1.0,
    max_window: ArrayLike = math.inf,
    decrease: ArrayLike = 0.5,
) -> Floats:
    """Sending rate of the full PFTK model (timeouts, limited window), pkt/s; arguments broadcast.

    Padhye, Firoiu, Towsley and Kurose (1998), equations (30)-(32), for any window factor d; theirs
    is d = 1/2.  They assume that if a packet is lost, all later packets of the round are lost too,
    as at a drop-tail queue.  So for SACK the model predicts more timeouts than occur, never fewer.
    As a function of p, the published rate jumps where ``max_window`` begins to limit the window.
    For p = 0 the rate is max_window / rtt, which may be infinite.  For p = 1 the sender sends one
    packet whenever the longest timeout expires: the rate is 1/(64 T_0), where T_0 = ``timeout`` is
    the first timeout.  Raises ``FieldError`` as ``square_root``, and for d = 1.
    """
    p, rtt, b, d = _checked(p, rtt, b, decrease)
    T_0 = numbers("timeout", timeout)
    W_max = numbers("max_window", max_window, above=True, infinite=True)
    numbers("decrease", d, high=1.0, below=True)
    # Numerator and denominator times p (1 - p), so that both stay finite at p = 0 and p = 1
    keep = 1 - p
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        half = (b * (1 - d) + 1) / (2 * b * (1 - d**2))
        pW = p * half + np.sqrt((p * half) ** 2 + 2 * p * keep / (b * (1 - d**2)))  # their (13)
        limited = p * W_max < pW
        pX = np.where(  # rounds between losses: their (15), and section II-C
            limited, p * b * (1 - d) ** 2 / 2 * W_max + keep / W_max + p, b * (1 - d) * pW
        )
        pW = np.where(limited, p * W_max, pW)
        Q = _pftk_timeouts(p, np.where(limited, W_max, pW / p))
        f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
        rate = (keep * (keep + pW) + p * Q) / (rtt * keep * (pX + p) + p * Q * T_0 * f)
    return np.where(p == 0, W_max / rtt, rate)


def _pftk_timeouts(p: Floats, W: Floats) -> Floats:
    """Probability that a loss at window W leads to a timeout; 1 for W of at most 3 packets.

    This is equation (24) of the PFTK model (Padhye, Firoiu, Towsley and Kurose 1998).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        keep = np.log1p(-p)  # 1 - p rounds to 1 where p is small
        lost = -np.expm1(3 * keep)
        Q = lost * (1 + (1 - lost) * -np.expm1((W - 3) * keep)) / -np.expm1(W * keep)
    return np.where(W <= 3, 1.0, np.minimum(1.0, Q))


def coarse_timeout(rtt: ArrayLike, tick: float = TICK) -> Floats:
    """Retransmission timeout of the coarse timer of ns-2's old defaults, seconds.

    The timer counts each RTT in whole ticks, at least 1, and computes the timeout srtt + 4 rttvar
    in integers.  For an RTT below one tick, srtt is 1 tick and rttvar stays at 1/2 tick, so the
    timeout is 3 ticks.  For a longer RTT the number of counted ticks varies and rttvar stays at 3/4
    tick, so the timeout is ``rtt`` + 3 ticks.
    """
    rtt, tick = positive("rtt", rtt), float(positive("tick", tick))
    return np.where(rtt < tick, 3 * tick, rtt + 3 * tick)


def hold_window(
    rtt: ArrayLike,
    queueing: ArrayLike,
    alpha: ArrayLike = 1.0,
    over_estimate: ArrayLike = 0.0,
    capacity: ArrayLike = math.inf,
) -> Floats:
    """Window at which Vegas stops growing: W (RTT - baseRTT) / RTT = alpha.

    baseRTT is ``rtt + over_estimate``.  RTT is ``rtt + queueing``, or W / capacity if that is more,
    because the window alone then fills the link.  In the first case W is
    ``alpha RTT / (RTT - baseRTT)``, and infinite if RTT <= baseRTT.  In the second case W is
    ``capacity baseRTT + alpha``.  The lesser of the two is returned.
    """
    T, q, a = positive("rtt", rtt), numbers("queueing", queueing), numbers("alpha", alpha)
    x = numbers("over_estimate", over_estimate, -math.inf)
    c = numbers("capacity", capacity, above=True, infinite=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.where(q > x, a * (T + q) / (q - x), np.inf)
    return np.minimum(shared, c * (T + x) + a)


@kinds.checked
@dataclass(frozen=True)
class Flow:
    """One source on a lossy link: its law and its parameters.

    ``ack_every`` is 2 with delayed ACKs.  Only Vegas uses ``alpha`` and ``over_estimate``.  By
    default ``timeout`` is ``coarse_timeout`` (queueing adds to it) and ``decrease`` is the law's
    own window factor.  Raises ``FieldError`` for values out of range.
    """

    law: str
    rtt: float
    alpha: float = 1.0
    over_estimate: float = 0.0
    decrease: float | None = None
    max_window: float = math.inf
    ack_every: float = 1.0
    timeout: float | None = None

    def __post_init__(self) -> None:
        word("law", self.law, tuple(LAWS))
        positive("rtt", self.rtt)
        numbers("alpha", self.alpha)
        numbers("over_estimate", self.over_estimate, -math.inf)
        numbers("max_window", self.max_window, above=True, infinite=True)
        positive("ack_every", self.ack_every)
        if self.decrease is not None:
            numbers("decrease", self.decrease, high=1.0)
        if self.timeout is not None:
            numbers("timeout", self.timeout)


@kinds.checked
def throughput(
    flow: Flow,
    p: float,
    capacity: float = math.inf,
    buffer: float = math.inf,
    queueing: float = 0.0,
    method: Method = "rounds",
) -> float:
    """Goodput of one flow on a lossy link, pkt/s.

    ``queueing`` is the delay (s) that other flows' packets cause. The method ``rounds`` is the
    Markov chain of ``loss_rounds``. There, if the window exceeds capacity times RTT, the excess
    packets queue behind the flow's own packets; if the buffer overflows, the window is cut. The
    methods ``pftk`` and ``square-root`` return the sending rate from the function of this name, but
    at most the capacity. For Vegas all methods limit the window to ``hold_window``. (With ``pftk``
    and ``square-root`` this is Samios and Vernon's approach, derived anew.)
    """
    _link(p, capacity, buffer, method)
    numbers("queueing", queueing)
    if p == 1:
        return 0.0  # of what is sent nothing arrives
    law = LAWS[flow.law]
    if flow.decrease is not None:
        law = dataclasses.replace(law, decrease=flow.decrease)
    R = flow.rtt + queueing
    T_0 = float(coarse_timeout(flow.rtt)) if flow.timeout is None else flow.timeout
    T_0 += queueing
    hold = flow.max_window
    if find(flow.law).per_ack == "thresholds":
        own = hold_window(flow.rtt, queueing, flow.alpha, flow.over_estimate, capacity)
        hold = min(hold, float(own))
    if method == "rounds":
        overflow = capacity * flow.rtt + buffer + 1  # one more is in transmission
        return loss_rounds.goodput(Source(p, R, T_0, capacity, hold, overflow, flow.ack_every), law)
    if method == "pftk":
        rate = pftk(p, R, T_0, flow.ack_every, hold, law.decrease)
    else:
        rate = np.minimum(square_root(p, R, flow.ack_every, law.decrease), hold / R)
    return min(float(rate), capacity)


@dataclass(frozen=True)
class Share:
    """The rates of flows on one lossy link.

    ``regime`` says what limits them:

    - ``loss-limited``: random losses leave capacity idle;
    - ``capacity-limited``: the link is full, and the mean queue is below the buffer;
    - ``buffer-limited``: the buffer stays full, and ``loss`` is more than the random loss.

    ``residual`` is the sum of the rates over the capacity, less 1.  If it is not small, ``status``
    is ``NOT_CONVERGED`` and the rates are NaN.  That happens where neither loss nor a buffer limits
    loss-based flows.
    """

    rates: Floats
    queueing: float
    loss: float
    residual: float
    regime: str
    status: Status


@kinds.checked
def share(
    flows: Sequence[Flow],
    p: float,
    capacity: float,
    buffer: float = math.inf,
    method: Method = "rounds",
) -> Share:
    """Rates of flows that share a lossy link, from a fixed point of the mean queueing delay q.

    Each flow sees RTT = rtt + q.  q is the least delay at which the sum of the rates does not
    exceed the capacity.  The rates fall as q grows, so q is unique.  If the sum exceeds the
    capacity even with a full buffer, the buffer overflows: all flows then see an additional loss
    probability, just large enough that the sum equals the capacity.  A single flow queues only
    behind its own packets (``throughput``), and q is 0.  The model is a mean field: flows see each
    other's mean queue, but not each other's bursts.
    """
    _link(p, capacity, buffer, method)
    if not flows:
        raise FieldError("flows", flows, "one or more flows")
    kinds = list(dict.fromkeys(flows))
    count = np.array([list(flows).count(kind) for kind in kinds], dtype=np.float64)

    def rates(queueing: float, loss: float) -> Floats:
        return np.array(
            [throughput(kind, loss, capacity, buffer, queueing, method) for kind in kinds]
        )

    def excess(queueing: float, loss: float) -> float:
        return float(count @ rates(queueing, loss) / capacity - 1)

    full = buffer / capacity
    queueing, loss, regime = 0.0, p, "capacity-limited"
    if excess(0.0, p) <= 1e-12:
        regime = "loss-limited"
    elif math.isfinite(full) and excess(full, p) > 0:
        queueing, regime = full, "buffer-limited"
        loss = _root(lambda x: excess(full, p + x), 1e-6, 1.0 - p) + p
    else:
        queueing = _root(lambda q: excess(q, p), full if math.isfinite(full) else 0.01, math.inf)
    found = dict(zip(kinds, rates(queueing, loss), strict=True))
    residual = excess(queueing, loss)
    result = np.array([found[flow] for flow in flows])
    solved = regime == "loss-limited" or abs(residual) < 1e-6
    if not solved:
        result = np.full_like(result, np.nan)
    status = Status.DONE if solved else Status.NOT_CONVERGED
    return Share(result, queueing, loss, residual, regime, status)


def _root(falling: Callable[[float], float], guess: float, high: float) -> float:
    """The root of a falling function that is positive at 0, between 0 and ``high``.

    The search starts with the interval up to ``guess``, and enlarges it if needed. If the function
    has no root below ``high``, ``high`` is returned (or a number above 1e9, if ``high`` is
    infinite).
    """
    from scipy.optimize import brentq

    low, top = 0.0, min(guess, high)
    while falling(top) > 0 and top < min(high, 1e9):
        low, top = top, min(4 * top, high)
    if falling(top) > 0:
        return top
    return float(brentq(falling, low, top, xtol=1e-14, rtol=1e-12))


def _link(p: float, capacity: float, buffer: float, method: str) -> None:
    numbers("p", p, high=1.0)
    numbers("capacity", capacity, above=True, infinite=True)
    numbers("buffer", buffer, infinite=True)
    word("method", method, METHODS)


def _checked(
    p: ArrayLike, rtt: ArrayLike, b: ArrayLike, decrease: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """The arguments as float64; ``FieldError`` names an argument that is out of range."""
    return (
        numbers("p", p, high=1.0),
        positive("rtt", rtt),
        positive("b", b),
        numbers("decrease", decrease, high=1.0),
    )
