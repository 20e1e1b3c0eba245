"""Computes throughputs under random loss: of one flow, and of flows that share one link.

``throughput`` computes the rate of one flow by a Markov chain, by the square-root law, or by PFTK,
the model of Padhye, Firoiu, Towsley and Kurose (1998). ``share`` computes the rates of flows that
share one link. Every packet is lost with probability ``p``, independently, before it reaches the
link. Times are in seconds, windows in packets, rates in packets per second. All results are
approximations. The docstring of each function says what it leaves out. ``symbolic.random_loss`` has
the derivations.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium import loss_rounds
from vegasmodel.equilibrium._checks import broadcast, numbers, positive, sender, word
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.equilibrium.loss_rounds import LAWS, Source
from vegasmodel.fields import kinds
from vegasmodel.fields.units import FieldError
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = [
    "Sender",
    "Share",
    "coarse_timeout",
    "hold_window",
    "own_queueing",
    "pftk",
    "random_factor",
    "share",
    "square_root",
    "throughput",
]

Method = Literal["rounds", "pftk", "square-root"]
METHODS = ("rounds", "pftk", "square-root")
FACTORS = 1000  # number of factors of an infinite product that are multiplied one by one
ROUNDS = 10_000  # most rounds of a search: enough to halve the longest interval of floats
TICK = 0.1  # s, of ns-2's coarse timer (tcpTick_) in the papers


@same_kind
@broadcast
def square_root(
    p: ArrayLike,
    rtt: ArrayLike,
    b: ArrayLike = 1.0,
    decrease: ArrayLike = 0.5,
    losses: Literal["periodic", "random"] = "random",
) -> Floats:
    """The square-root law: rate of AIMD without timeouts, pkt/s, ``K(d) / (rtt sqrt(b p))``.

    p is the loss probability, and ``b`` the number of packets per ACK. A loss multiplies the window
    by d = ``decrease``. The constant K depends on ``losses``:

    - "periodic": a loss comes every 1/p packets, and K = sqrt((1 + d) / (2 (1 - d))). For d = 1/2
      this is 1.2247.
    - "random": losses are independent, and K = 1 / (sqrt(2) (1 - d) m(d)), where m is
      ``random_factor``. For d = 1/2 this is 1.3098.

    The rate is infinite for p = 0 or d = 1. Arguments broadcast. Raises ``FieldError`` outside 0 <=
    p <= 1, 0 <= d <= 1, b > 0, rtt > 0.
    """
    word("losses", losses, ("periodic", "random"))
    p, rtt, b, d = _checked(p, rtt, b, decrease)
    with np.errstate(divide="ignore"):
        if losses == "periodic":
            constant = np.sqrt((1 + d) / (2 * (1 - d)))
        else:  # d = 1, no decrease: infinite, whatever the factor
            constant = 1 / (math.sqrt(2) * (1 - d) * random_factor(np.where(d < 1, d, 0.0)))
        return np.asarray(constant / (rtt * np.sqrt(b * p)))


@same_kind
def random_factor(decrease: ArrayLike) -> Floats:
    """The mean window at a loss, times sqrt(b p / 2), if losses are independent.

    The square-root law for random losses needs this factor (``square_root``). p is the loss
    probability, and one ACK acknowledges b packets. A loss multiplies the window by d =
    ``decrease``. The result is

        m(d) = sqrt(pi)/2 prod_{k>=1} (1 - d^(2k+1)) / (1 - d^(2k)).

    For a window W at a loss, let V = b p W^2/2. At the next loss V has become d^2 V + E, where E is
    exponential with mean 1. m(d) is the mean of sqrt(V) in the steady state. It is infinite for d =
    1.

    The factors with k < K = ``FACTORS`` are multiplied one by one. The logarithm of the product of
    all other factors is approximated by f'(K)/8 - f(K)/2, where f(u) = ln(1 - d^(2u)). This follows
    from the midpoint rule and the trapezoidal rule. The error is below 1e-11.

    Raises ``FieldError`` outside 0 <= d <= 1.
    """
    d = numbers("decrease", decrease, high=1.0)
    values, place = np.unique(d, return_inverse=True)  # many flows have the same
    return _random_factors(tuple(values.tolist()))[place].reshape(d.shape)


@functools.lru_cache(maxsize=2)  # a search for an equilibrium asks for the same again and again
def _random_factors(decrease: tuple[float, ...]) -> Floats:
    d = np.array(decrease, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        L = -2 * np.log(d)[..., None]  # f = ln(1 - exp(-L u)), f' = L/(exp(L u) - 1)
        k = np.arange(1.0, FACTORS)
        body = np.log(np.expm1(-L * (k + 0.5)) / np.expm1(-L * k)).sum(-1)
        last = L[..., 0] * FACTORS
        slope = np.where(last < 700, L[..., 0] / np.expm1(np.minimum(last, 700)), 0.0)
        log = body + slope / 8 - np.log(-np.expm1(-last)) / 2
    factor = math.sqrt(math.pi) / 2 * np.exp(np.where(d == 0, 0.0, log))
    return np.where(d == 1, np.inf, factor)


@same_kind
@broadcast
def pftk(
    p: ArrayLike,
    rtt: ArrayLike,
    timeout: ArrayLike,
    b: ArrayLike = 1.0,
    max_window: ArrayLike = math.inf,
    decrease: ArrayLike = 0.5,
) -> Floats:
    """Sending rate of the full PFTK model (timeouts, limited window), pkt/s; arguments broadcast.

    The formulas are equations (30)-(32) of Padhye, Firoiu, Towsley and Kurose (1998). ``p`` is the
    loss probability, ``rtt`` and ``timeout`` are in s, ``b`` is the number of packets per ACK, and
    ``max_window`` is the largest window in packets. In the paper a loss halves the window; here it
    multiplies the window by any ``decrease`` below 1.

    The model assumes that if a packet is lost, all later packets of the round trip are lost, too.
    If losses are independent, fewer packets are lost. So the model then predicts too many timeouts
    for SACK. As a function of p, the rate jumps where ``max_window`` begins to limit the window, as
    in the paper.

    For p = 0 the rate is ``max_window / rtt``, which may be infinite. For p = 1 the sender sends
    one packet whenever the longest timeout expires, so the rate is 1/(64 T_0) with T_0 =
    ``timeout``. Raises ``FieldError`` for arguments out of range.
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


@same_kind
@kinds.checked
def coarse_timeout(rtt: ArrayLike, tick: float = TICK) -> Floats:
    """Retransmission timeout in s of ns-2's coarse timer, with ns-2's old defaults.

    The timer measures each RTT as a whole number of ticks of ``tick`` seconds, at least 1. The
    timeout is srtt + 4 rttvar, computed in integers.

    - For an RTT below one tick, srtt is 1 tick and rttvar is 1/2 tick, so the timeout is 3 ticks.
    - For a longer RTT, srtt is about one RTT. The measured RTTs vary, which keeps rttvar at 3/4
      tick. So the timeout is ``rtt`` + 3 ticks.

    Raises ``FieldError`` unless ``rtt``, in s, and ``tick`` are positive.
    """
    rtt, tick = positive("rtt", rtt), float(positive("tick", tick))
    return np.where(rtt < tick, 3 * tick, rtt + 3 * tick)


@same_kind
@broadcast
def hold_window(
    rtt: ArrayLike,
    queueing: ArrayLike,
    alpha: ArrayLike = 1.0,
    over_estimate: ArrayLike = 0.0,
    capacity: ArrayLike = math.inf,
) -> Floats:
    """Window W at which Vegas stops growing: its backlog W (RTT - baseRTT) / RTT equals alpha.

    Windows and alpha are in packets, times in s, and ``capacity`` is in pkt/s. baseRTT is ``rtt +
    over_estimate``. The function returns the lesser of two windows:

    - Other flows cause the queueing delay, so RTT = ``rtt + queueing``. Then W is ``alpha RTT /
      (RTT - baseRTT)``, or infinite if RTT <= baseRTT.
    - The flow fills the link alone, so RTT = W / capacity. Then W is ``capacity baseRTT + alpha``.

    Arguments broadcast. Raises ``FieldError`` for arguments out of range.
    """
    T, q, a = positive("rtt", rtt), numbers("queueing", queueing), numbers("alpha", alpha)
    x = numbers("over_estimate", over_estimate, -math.inf)
    c = numbers("capacity", capacity, above=True, infinite=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shared = np.where(q > x, a * (T + q) / (q - x), np.inf)
    return np.minimum(shared, c * (T + x) + a)


@kinds.checked
@dataclass(frozen=True)
class Sender:
    """One TCP sender on a lossy link: its congestion control ``law`` and its parameters.

    ``rtt`` and ``timeout`` are in s, without queueing. ``ack_every`` is the number of packets per
    ACK: 2 with delayed ACKs. With ``counts_packets`` the window grows by the packets that ACKs
    acknowledge, as in Linux; otherwise it grows by the ACKs. With ``scoreboard`` ACKs list the lost
    packets (SACK), whatever the law: a recovery repairs all losses in one round trip, as in Linux.
    Tahoe starts again from one packet even then. The formulas ``pftk`` and ``square-root`` do not
    use ``scoreboard``. Only Vegas uses ``alpha`` and ``over_estimate``. By default ``timeout`` is
    computed by ``coarse_timeout``, and ``decrease`` is the usual window factor of the law at a
    loss. Raises ``FieldError`` for values out of range.
    """

    law: str
    rtt: float
    alpha: float = 1.0
    over_estimate: float = 0.0
    decrease: float | None = None
    max_window: float = math.inf
    ack_every: float = 1.0
    timeout: float | None = None
    counts_packets: bool = False
    scoreboard: bool = False

    def __post_init__(self) -> None:
        word("law", self.law, tuple(LAWS))
        sender(self, cut=False)

    @property
    def counted_every(self) -> float:
        """The number of acknowledged packets for which the window W grows by 1/W packets."""
        return 1.0 if self.counts_packets else self.ack_every


@kinds.checked
def throughput(
    flow: Sender,
    p: float,
    capacity: float = math.inf,
    buffer: float = math.inf,
    queueing: float = 0.0,
    method: Method = "rounds",
) -> float:
    """Rate of one flow on a lossy link, pkt/s.

    ``p`` is the loss probability, ``capacity`` is in pkt/s, and ``buffer`` in packets. ``queueing``
    is the delay in s that other flows' packets cause. All methods limit the window to the flow's
    ``max_window``, and for Vegas also to the window at which it stops growing (``hold_window``).
    For p = 1 the rate is 0. If p is so small that a window exceeds the range of floats, the rate
    may be NaN. There are three methods:

    - ``rounds``: the goodput by the Markov chain of ``loss_rounds``. A large window fills the
      buffer with the flow's own packets; if the buffer overflows, the window is cut.
    - ``pftk``: the sending rate by the function ``pftk``, at most the capacity.
    - ``square-root``: the sending rate by the function ``square_root``, at most the capacity.

    For Vegas the last two methods follow the approach of Samios and Vernon, but the formulas are
    our own. Raises ``FieldError`` for arguments out of range.
    """
    _link(p, capacity, buffer, method)
    numbers("queueing", queueing)
    if p == 1:
        return 0.0  # of what is sent nothing arrives
    source, law = _source(flow, p, capacity, buffer, queueing)
    if method == "rounds":
        return loss_rounds.goodput(source, law)
    R, hold = source.rtt, source.hold
    if method == "pftk":
        rate = pftk(p, R, source.timeout, flow.counted_every, hold, law.decrease)
    else:
        rate = np.minimum(square_root(p, R, flow.counted_every, law.decrease), hold / R)
    return min(float(rate), capacity)


@kinds.checked
def own_queueing(flow: Sender, p: float, capacity: float, buffer: float = math.inf) -> float:
    """The mean queueing delay in s of a flow that is alone on a lossy link.

    The flow's packets wait behind one another if its window exceeds ``capacity`` times the RTT. The
    delay is the mean RTT of the Markov chain of ``loss_rounds``, less ``flow.rtt``. The arguments
    are as in ``throughput``. The result is NaN for p = 1, because no packet arrives.
    """
    _link(p, capacity, buffer, "rounds")
    return loss_rounds.mean_rtt(*_source(flow, p, capacity, buffer, 0.0)) - flow.rtt


def _source(
    flow: Sender, p: float, capacity: float, buffer: float, queueing: float
) -> tuple[Source, loss_rounds.Recovery]:
    """The source of the Markov chain of ``loss_rounds`` for a flow, and how it recovers."""
    law = LAWS[flow.law]
    if flow.decrease is not None:
        law = dataclasses.replace(law, decrease=flow.decrease)
    if flow.scoreboard:
        law = dataclasses.replace(law, one_loss_only=False, round_per_hole=False)
    T_0 = float(coarse_timeout(flow.rtt)) if flow.timeout is None else flow.timeout
    hold = flow.max_window
    if find(flow.law).keeps_backlog:
        own = hold_window(flow.rtt, queueing, flow.alpha, flow.over_estimate, capacity)
        hold = min(hold, float(own))
    overflow = capacity * flow.rtt + buffer + 1  # one more is in transmission
    source = Source(
        p,
        flow.rtt + queueing,
        T_0 + queueing,
        capacity,
        hold,
        overflow,
        flow.ack_every,
        flow.counts_packets,
    )
    return source, law


@dataclass(frozen=True)
class Share:
    """The rates of flows on one lossy link, in pkt/s.

    ``queueing`` is the mean queueing delay in s, and ``loss`` the loss probability. ``regime`` says
    what limits the rates:

    - ``loss-limited``: even without a queue, the rates add up to at most the capacity;
    - ``capacity-limited``: the link is full, and the mean queue is below the buffer;
    - ``buffer-limited``: the buffer stays full, and ``loss`` is more than the random loss.

    ``residual`` is the sum of the rates divided by the capacity, less 1. In the last two regimes it
    must be almost 0. If it is not, no solution was found: ``status`` is ``NOT_CONVERGED``, and the
    rates are NaN. This happens if neither losses nor the buffer limits loss-based flows. If a
    number is too large for a float, such as the square of a window of 1e200 packets, ``status`` is
    ``INVALID``, ``regime`` is empty, and all numbers are NaN.
    """

    rates: Floats
    queueing: float
    loss: float
    residual: float
    regime: str
    status: Status


@kinds.checked
def share(
    flows: Sequence[Sender],
    p: float,
    capacity: float,
    buffer: float = math.inf,
    method: Method = "rounds",
) -> Share:
    """Rates of flows that share a lossy link, and the mean queueing delay q.

    Each flow sees RTT = rtt + q. The rates fall as q grows, and q is the least delay at which their
    sum does not exceed the capacity. If the sum exceeds the capacity even with a full buffer, the
    buffer overflows. All flows then see an additional loss probability, just so large that the sum
    equals the capacity.

    The model is a mean field: flows see each other's mean queue, but not each other's bursts. A
    single flow waits only behind its own packets, which ``throughput`` counts, so q is 0
    (``own_queueing`` gives this delay).

    ``p``, ``capacity``, ``buffer`` and ``method`` are as in ``throughput``. Raises ``FieldError``
    for arguments out of range, and if ``flows`` is empty.
    """
    _link(p, capacity, buffer, method)
    if len(flows) == 0:
        raise FieldError("flows", flows, "one or more flows")
    kinds = list(dict.fromkeys(flows))
    count = np.array([list(flows).count(kind) for kind in kinds], dtype=np.float64)

    def rates(queueing: float, loss: float) -> Floats:
        return np.array(
            [throughput(kind, loss, capacity, buffer, queueing, method) for kind in kinds]
        )

    def excess(queueing: float, loss: float) -> float:
        found = float(count @ rates(queueing, loss) / capacity - 1)
        if math.isnan(found):
            raise OverflowError
        return found

    try:
        queueing, loss, regime = _balance(excess, p, buffer / capacity)
        residual = excess(queueing, loss)
    except OverflowError:
        nothing = np.full(len(flows), np.nan)
        return Share(nothing, math.nan, math.nan, math.nan, "", Status.INVALID)
    found = dict(zip(kinds, rates(queueing, loss), strict=True))
    result = np.array([found[flow] for flow in flows])
    solved = regime == "loss-limited" or abs(residual) < 1e-6
    if not solved:
        result = np.full_like(result, np.nan)
    status = Status.DONE if solved else Status.NOT_CONVERGED
    return Share(result, queueing, loss, residual, regime, status)


def _balance(
    excess: Callable[[float, float], float], p: float, full: float
) -> tuple[float, float, str]:
    """The queueing delay, the loss probability and the regime of a ``Share``.

    ``excess`` gives the sum of the rates divided by the capacity, less 1, for a queueing delay and
    a loss probability. ``p`` is the probability of a random loss, and ``full`` the queueing delay
    of a full buffer in s.
    """
    if excess(0.0, p) <= 1e-12:
        return 0.0, p, "loss-limited"
    if math.isfinite(full) and excess(full, p) > 0:
        more = _root(lambda x: excess(full, p + x), 1e-6, 1.0 - p)
        return full, more + p, "buffer-limited"
    guess = full if math.isfinite(full) else 0.01
    return _root(lambda q: excess(q, p), guess, math.inf), p, "capacity-limited"


def _root(falling: Callable[[float], float], guess: float, high: float) -> float:
    """The root of a falling function between 0, where it is positive, and ``high``.

    The search begins between 0 and ``guess``, and goes on to larger numbers until the function is
    not positive. If it is still positive at the end of the search, this end is returned: ``high``,
    or a number above 1e9 if ``high`` is infinite.
    """
    from scipy.optimize import brentq

    low, top = 0.0, min(guess, high)
    while falling(top) > 0 and top < min(high, 1e9):
        low, top = top, min(4 * top, high)
    if falling(top) > 0:
        return top
    return float(brentq(falling, low, top, xtol=1e-14, rtol=1e-12, maxiter=ROUNDS))


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
