"""Has formulas for one flow under random loss: its rate, its timeout, the window that Vegas keeps.

Every packet is lost with probability p, independently. ``symbolic.random_loss`` has derivations of
the square-root law and of PFTK, the model of Padhye, Firoiu, Towsley and Kurose (1998).
"""

from __future__ import annotations

import functools
import math
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium._checks import broadcast, numbers, positive, word
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.metrics import Floats

FACTORS = 1000  # K in ``random_factor``, which multiplies the factors with k < K one by one
TICK = 0.1  # s, of ns-2's coarse timer (tcpTick_) in the papers

Number = TypeVar("Number", float, Floats)


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
    all other factors is the sum of f(k + 1/2) - f(k) over k >= K, where f(u) = ln(1 - d^(2u)). The
    midpoint rule gives the sum of the first terms, and the trapezoidal rule that of the second, as
    the integral of f from K on with a correction. The integrals cancel, and the corrections leave
    f'(K)/8 - f(K)/2. The error is below 1e-11.

    Raises ``FieldError`` outside 0 <= d <= 1.
    """
    d = numbers("decrease", decrease, high=1.0)
    values, index = np.unique(d, return_inverse=True)  # many flows have the same factor
    return _random_factors(tuple(values.tolist()))[index].reshape(d.shape)


@functools.lru_cache(maxsize=2)  # a search for an equilibrium repeats them
def _random_factors(decrease: tuple[float, ...]) -> Floats:
    """The factor m(d) for each number d in ``decrease``; ``random_factor`` gives the formulas."""
    d = np.array(decrease, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # as d^(2u) = exp(-L u): f(u) = ln(1 - exp(-L u)), and its derivative is L/(exp(L u) - 1)
        L = -2 * np.log(d)[..., None]
        k = np.arange(1.0, FACTORS)
        # the logarithm of the factors with k < K, then with the approximation of all others
        first_factors = np.log(np.expm1(-L * (k + 0.5)) / np.expm1(-L * k)).sum(-1)
        LK = L[..., 0] * FACTORS
        # exp(700) is just small enough for a float
        slope = np.where(LK < 700, L[..., 0] / np.expm1(np.minimum(LK, 700)), 0.0)  # f'(K)
        log = first_factors + slope / 8 - np.log(-np.expm1(-LK)) / 2
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
    If losses are independent, fewer packets are lost, and SACK repairs most losses without a
    timeout. So the model then predicts too many timeouts for SACK. As a function of p, the rate
    jumps where ``max_window`` begins to limit the window, as in the paper.

    For p = 0 the rate is ``max_window / rtt``, which may be infinite. For p = 1 the sender sends
    one packet whenever the longest timeout expires, so the rate is 1/(64 T_0) with T_0 =
    ``timeout``. Raises ``FieldError`` for arguments out of range.
    """
    p, rtt, b, d = _checked(p, rtt, b, decrease)
    T_0 = numbers("timeout", timeout)
    W_max = numbers("max_window", max_window, above=True, infinite=True)
    numbers("decrease", d, high=1.0, below=True)
    # The paper's rate is a quotient. Here both its numerator and its denominator are multiplied by
    # p (1 - p), so that they stay finite at p = 0 and p = 1. pW is p times the mean window at a
    # loss, pX is p times the mean number of round trips between losses, and Q is the probability
    # that a loss leads to a timeout.
    arrive = 1 - p
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # PFTK (13), for d = 1/2: W = (2 + b)/(3 b) + sqrt(8 (1 - p)/(3 b p) + ((2 + b)/(3 b))^2)
        first = (b * (1 - d) + 1) / (2 * b * (1 - d**2))
        pW = p * first + np.sqrt((p * first) ** 2 + 2 * p * arrive / (b * (1 - d**2)))
        limited = p * W_max < pW
        pX = np.where(  # rounds between losses: PFTK (15) and section II-C
            limited, p * b * (1 - d) ** 2 / 2 * W_max + arrive / W_max + p, b * (1 - d) * pW
        )
        pW = np.where(limited, p * W_max, pW)
        Q = _pftk_timeouts(p, np.where(limited, W_max, pW / p))
        rate = (arrive * (arrive + pW) + p * Q) / (
            rtt * arrive * (pX + p) + p * Q * T_0 * waits_in_a_row(p)
        )
    return np.where(p == 0, W_max / rtt, rate)


def waits_in_a_row(p: Number) -> Number:
    """The mean length of a series of timeouts, times 1 - p, in units of the first timeout.

    With probability p a further timeout follows a timeout. Each lasts twice as long as the one
    before, but never longer than 64 times the first. This is f(p) = 1 + p + 2 p^2 + ... + 32 p^6 of
    the PFTK model.
    """
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def _pftk_timeouts(p: Floats, W: Floats) -> Floats:
    """Probability that a loss at window W leads to a timeout; 1 for W of at most 3 packets.

    This is equation (24) of the PFTK model (Padhye, Firoiu, Towsley and Kurose 1998). ``p`` is the
    loss probability of a packet.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_arrive = np.log1p(-p)  # 1 - p rounds to 1 where p is small
        lost = -np.expm1(3 * log_arrive)
        Q = lost * (1 + (1 - lost) * -np.expm1((W - 3) * log_arrive)) / -np.expm1(W * log_arrive)
    return np.where(W <= 3, 1.0, np.minimum(1.0, Q))


@same_kind
def coarse_timeout(rtt: ArrayLike) -> Floats:
    """Retransmission timeout in s of ns-2's coarse timer, with ns-2's old defaults.

    The timer measures each RTT as a whole number of ticks of ``TICK`` seconds, at least 1. The
    timeout is srtt + 4 rttvar, computed in integers.

    - For an RTT below one tick, srtt is 1 tick and rttvar is 1/2 tick, so the timeout is 3 ticks.
    - For a longer RTT, srtt is about one RTT. The measured RTTs vary, which keeps rttvar at 3/4
      tick. So the timeout is ``rtt`` + 3 ticks.

    Raises ``FieldError`` unless ``rtt``, in s, is positive.
    """
    rtt = positive("rtt", rtt)
    return np.where(rtt < TICK, 3 * TICK, rtt + 3 * TICK)


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
