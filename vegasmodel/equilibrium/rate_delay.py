"""Rate-Delay services (``podlesny``): two queues, served so that rates stand as k : 1 a flow.

Class R holds loss-based flows, class D delay-based ones.  Rates in pkt/s, times in seconds,
buffers in packets; all arguments broadcast.  What the paper states is exact here as there; what
goes beyond it (``rate_utilization``, ``delay_loss``) is an approximation and says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.metrics import Floats
from vegasmodel.queues.rate_delay import split

__all__ = [
    "buffer_for_delay",
    "delay_bound",
    "delay_loss",
    "flow_rates",
    "loss_onset",
    "needed_delay_buffer",
    "rate_utilization",
    "relative_fairness",
    "served",
    "service_rates",
    "split_buffer",
    "volume_ratio",
]


def service_rates(
    n_rate: ArrayLike, n_delay: ArrayLike, capacity: ArrayLike, k: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """Service rates ``(S_R, S_D)`` of the two queues, pkt/s: ``podlesny`` (6) and (7).

    ``n_rate`` and ``n_delay`` are the numbers of active flows; a router estimates them, so they
    need not be whole.  ``k`` is the target ratio of a class R flow's rate to a class D flow's.
    A class without flows gets nothing and the other one all; where neither has flows the
    equations leave the split open and both rates are NaN.

    Raises ``ValueError`` for a negative or non-finite number of flows, capacity or ``k <= 0``.
    """
    n_R = _checked("n_rate", n_rate)
    n_D = _checked("n_delay", n_delay)
    C = _checked("capacity", capacity)
    weight = _checked("k", k, positive=True)
    total = n_D + weight * n_R
    with np.errstate(invalid="ignore"):  # 0/0: no flows at all
        S_R = C * (weight * n_R / total)  # (6)
        S_D = C * (n_D / total)  # (7)
    return S_R, S_D


def volume_ratio(n_rate: ArrayLike, n_delay: ArrayLike, k: ArrayLike = 1.0) -> Floats:
    """Traffic served from D over that from R, ``lambda = n_D / (k n_R)``: ``podlesny`` (5).

    Infinite without class R flows, NaN without any.  Raises ``ValueError`` as ``service_rates``.
    """
    n_R, n_D = _checked("n_rate", n_rate), _checked("n_delay", n_delay)
    weight = _checked("k", k, positive=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _floats(n_D / (weight * n_R))  # (5)


def flow_rates(
    n_rate: ArrayLike, n_delay: ArrayLike, capacity: ArrayLike, k: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """Mean rate of one flow of each class, ``(S_R / n_R, S_D / n_D)`` = ``(k, 1) C/(n_D + k n_R)``.

    Both classes are taken as backlogged.  NaN for a class without flows.
    """
    n_R, n_D = _checked("n_rate", n_rate), _checked("n_delay", n_delay)
    C = _checked("capacity", capacity)
    weight = _checked("k", k, positive=True)
    total = n_D + weight * n_R
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, delay = weight * (C / total), C / total
    return np.where(n_R > 0, rate, np.nan), np.where(n_D > 0, delay, np.nan)


def served(
    S_R: ArrayLike, S_D: ArrayLike, demand_rate: ArrayLike, demand_delay: ArrayLike
) -> tuple[Floats, Floats]:
    """What the classes get when one cannot use its part: the link is work-conserving, Fig. 2.

    Each class is sure of its service rate, and what it leaves goes to the other.  ``demand_*``
    is the most that the class's flows can send (pkt/s, may be infinite).
    """
    s_R, s_D = _checked("S_R", S_R), _checked("S_D", S_D)
    d_R = _checked("demand_rate", demand_rate, finite=False)
    d_D = _checked("demand_delay", demand_delay, finite=False)
    capacity = s_R + s_D
    rate = np.minimum(d_R, np.maximum(s_R, capacity - np.minimum(d_D, s_D)))
    delay = np.minimum(d_D, np.maximum(s_D, capacity - np.minimum(d_R, s_R)))
    return rate, delay


def relative_fairness(
    total_delay: ArrayLike, n_delay: ArrayLike, total_rate: ArrayLike, n_rate: ArrayLike
) -> Floats:
    """Mean rate of a Vegas flow over that of a NewReno flow: ``podlesny`` section IV.

    ``(total_delay / n_delay) / (total_rate / n_rate)``; totals are rates or utilisations of the
    class.  The paper prints ``0.24 * 0.74/3 = 0.97`` for 24 % over 100 and 74 % over 300 flows:
    the value is that of this quotient, (0.24/1) / (0.74/3) = 0.973; the product is 0.059.
    Infinite where NewReno gets nothing, NaN where a class has no flows.
    """
    u_D, n_D = _checked("total_delay", total_delay), _checked("n_delay", n_delay)
    u_R, n_R = _checked("total_rate", total_rate), _checked("n_rate", n_rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        index = (u_D / n_D) / (u_R / n_R)
    return np.where((n_D > 0) & (n_R > 0), index, np.nan)


def split_buffer(buffer: ArrayLike, delay_buffer: ArrayLike = 0.1) -> tuple[Floats, Floats]:
    """Buffers ``(B_R, B_D)`` of the queues, whole packets, as ``queues.rate_delay.split`` has them.

    D gets the fraction ``delay_buffer`` (0.1 in section III).  Raises ``ValueError`` for a negative
    buffer or a fraction outside [0, 1].
    """
    B = _checked("buffer", buffer, finite=False)
    part = _checked("delay_buffer", delay_buffer)
    if np.any(part > 1):
        raise ValueError("delay_buffer: at most 1, a fraction of the buffer")
    return split(B, part)


def delay_bound(B_D: ArrayLike, S_D: ArrayLike) -> Floats:
    """Longest queueing delay of a D packet, ``d = B_D / S_D`` seconds; section II-C.

    In the fluid limit: a packet in transmission, and the scheduler's grain, add up to one
    packet's time of each class.  Infinite where ``S_D`` is 0.
    """
    size = _checked("B_D", B_D, finite=False)
    rate = _checked("S_D", S_D)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rate > 0, size / rate, np.inf)


def buffer_for_delay(delay: ArrayLike, S_D: ArrayLike) -> Floats:
    """The D buffer that bounds its queueing delay by ``delay``: ``B_D = S_D d`` packets."""
    return _floats(_checked("delay", delay) * _checked("S_D", S_D))


def needed_delay_buffer(
    n_delay: ArrayLike, alpha: ArrayLike, beta: ArrayLike
) -> tuple[Floats, Floats]:
    """Packets that ``n_delay`` Vegas flows keep in the D queue: ``(n_D alpha, n_D beta)``.

    Each flow holds alpha to beta packets whatever the service rate.  A buffer of the second
    size never overflows in the steady state; with less than the first it always does.  (With an
    over-estimated baseRTT a flow holds more: ``alpha + x_i`` times its rate.)
    """
    n_D = _checked("n_delay", n_delay)
    low, high = _checked("alpha", alpha), _checked("beta", beta)
    if np.any(high < low):
        raise ValueError("beta: at least alpha")
    return _floats(n_D * low), _floats(n_D * high)


def loss_onset(B_D: ArrayLike, alpha: ArrayLike) -> Floats:
    """Number of Vegas flows from which on the D queue loses packets: ``n_D > B_D / alpha``.

    Beyond it no flow ever sees its alpha packets queued: all grow until the buffer overflows.
    """
    return _floats(_checked("B_D", B_D, finite=False) / _checked("alpha", alpha, positive=True))


def rate_utilization(
    rtt: ArrayLike, B_R: ArrayLike, S_R: ArrayLike, decrease: ArrayLike = 0.5
) -> Floats:
    """Part of ``S_R`` that synchronised AIMD flows use: 1 where ``B_R >= (1/b - 1) S_R rtt``.

    With y = 1 + B_R / (S_R rtt) and the window factor b after a loss::

        U = (1 - b^2) y^2 / (1 - 2 b y + y^2)          for y < 1/b

    An approximation, derived in ``symbolic.podlesny``: a lower bound for any number of flows of
    one ``rtt`` without timeouts, since flows that do not lose together leave less idle.
    """
    T, B = _checked("rtt", rtt), _checked("B_R", B_R, finite=False)
    S = _checked("S_R", S_R)
    b = _checked("decrease", decrease)
    if np.any(b >= 1):
        raise ValueError("decrease: less than 1")
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(S * T > 0, B / (S * T), np.inf)
        y = np.minimum(1.0 + excess, np.where(b > 0, 1.0 / b, np.inf))
    u = 1.0 / y  # y may be infinite
    return _floats((1.0 - b**2) / (u**2 - 2.0 * b * u + 1.0))


def delay_loss(
    n_delay: ArrayLike,
    rtt: ArrayLike,
    B_D: ArrayLike,
    S_D: ArrayLike,
    alpha: ArrayLike = 1.0,
    decrease: ArrayLike = 0.75,
) -> Floats:
    """Loss probability of Vegas flows whose D buffer holds less than alpha packets of each.

    An approximation: such flows always grow by one packet an RTT and lose a factor b, so their
    mean window W = (S_D rtt + B_D) / n_D obeys the AIMD law p W^2 = (1 + b) / (2 (1 - b)),
    derived in ``symbolic.podlesny``.  0 where the buffer suffices for flows that know their
    propagation delays; flows that measure it over-estimate it (``arrivals``), want more, and lose
    where there are fewer of them.  At most 1, which it reaches
    where the law has left its ground: for windows of a few packets, where timeouts rule,
    ``random_loss.share`` of the class on its own (capacity S_D, buffer B_D) gives the loss.
    """
    n_D, T = _checked("n_delay", n_delay), _checked("rtt", rtt)
    B, S = _checked("B_D", B_D, finite=False), _checked("S_D", S_D)
    a = _checked("alpha", alpha)
    b = _checked("decrease", decrease)
    if np.any(b >= 1):
        raise ValueError("decrease: less than 1")
    with np.errstate(divide="ignore", invalid="ignore"):
        window = (S * T + B) / n_D
        p = np.minimum(1.0, (1.0 + b) / (2.0 * (1.0 - b)) / window**2)
    return np.where(n_D * a > B, p, 0.0)


def _checked(name: str, value: ArrayLike, *, positive: bool = False, finite: bool = True) -> Floats:
    """The value as float64; misuse is an error that names the argument."""
    array = np.asarray(value, dtype=np.float64)
    bad: Any = np.isnan(array) | (array < 0) | (finite & np.isinf(array))
    if np.any(bad) or (positive and np.any(array == 0)):
        kind = "more than 0" if positive else "at least 0"
        raise ValueError(f"{name}: {kind}{' and finite' if finite else ''}")
    return array


def _floats(value: Any) -> Floats:
    return np.asarray(value, dtype=np.float64)
