"""Computes the rates, delays and buffers of the two classes of flows of Rate-Delay services.

A link with these services has two queues, one for each class. Class R is for flows that want a high
rate, class D for flows that want a short delay. A flow of class R gets k times the rate of a flow
of class D. The queue of class D has a small buffer, so its queueing delay is short. Podlesny and
Williamson describe these services in a paper, whose formulas this module evaluates. Two functions
are not from the paper: ``rate_utilization`` and ``delay_loss`` are approximations of our own.

Rates are in packets per second, times in seconds, buffers in packets. The arguments may be arrays,
which are broadcast as in NumPy. Arguments out of range raise ``FieldError``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.equilibrium._checks import broadcast, numbers, ordered, positive
from vegasmodel.equilibrium._jax_arrays import same_kind
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


@same_kind
@broadcast
def service_rates(
    n_rate: ArrayLike, n_delay: ArrayLike, capacity: ArrayLike, k: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """Service rates ``(S_R, S_D)`` of the classes R and D of a Rate-Delay link, pkt/s.

    These are equations (6) and (7) of Podlesny and Williamson. The link has a queue for loss-based
    flows (class R) and one for Vegas flows (class D). ``n_rate`` and ``n_delay`` are the numbers of
    active flows in R and D. A router estimates them, so they need not be whole. ``k`` is the target
    ratio of an R flow's rate to a D flow's.

    If one class has no flows, the other class gets the whole capacity. If neither has flows, both
    rates are NaN.

    Raises ``FieldError`` if a number of flows or the capacity is negative or infinite, or if ``k``
    is not positive and finite.
    """
    n_R = numbers("n_rate", n_rate)
    n_D = numbers("n_delay", n_delay)
    C = numbers("capacity", capacity)
    weight = positive("k", k)
    w_D, w_R, total = _weights(n_R, n_D, weight)
    with np.errstate(invalid="ignore"):  # 0/0: no flows at all
        S_R = C * (w_R * n_R / total)  # (6)
        S_D = C * (w_D * n_D / total)  # (7)
    return S_R, S_D


@same_kind
@broadcast
def volume_ratio(n_rate: ArrayLike, n_delay: ArrayLike, k: ArrayLike = 1.0) -> Floats:
    """Traffic of class D over that of class R, ``lambda = n_D / (k n_R)``.

    This is equation (5) of Podlesny and Williamson. n_D and n_R are the numbers of flows in the two
    classes, and k is the target ratio of an R flow's rate to a D flow's. The result is infinite if
    only class R has no flows, and NaN if neither class has any. Raises ``FieldError`` as
    ``service_rates`` does.
    """
    n_R, n_D = numbers("n_rate", n_rate), numbers("n_delay", n_delay)
    weight = positive("k", k)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _floats(n_D / weight / n_R)  # (5)


@same_kind
@broadcast
def flow_rates(
    n_rate: ArrayLike, n_delay: ArrayLike, capacity: ArrayLike, k: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """The mean rates of one flow of class R and of one of class D, pkt/s.

    They are ``k C/(n_D + k n_R)`` for R and ``C/(n_D + k n_R)`` for D. C is the capacity, n_R and
    n_D are the numbers of flows, and k is the target ratio of the two rates. Both queues are
    assumed never to run empty. The rate is NaN for a class without flows.
    """
    n_R, n_D = numbers("n_rate", n_rate), numbers("n_delay", n_delay)
    C = numbers("capacity", capacity)
    weight = positive("k", k)
    w_D, w_R, total = _weights(n_R, n_D, weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, delay = w_R * (C / total), w_D * (C / total)
    return np.where(n_R > 0, rate, np.nan), np.where(n_D > 0, delay, np.nan)


@same_kind
@broadcast
def served(
    S_R: ArrayLike, S_D: ArrayLike, demand_rate: ArrayLike, demand_delay: ArrayLike
) -> tuple[Floats, Floats]:
    """The rates of classes R and D, pkt/s, if each class may also use what the other leaves idle.

    This is the scheduler of figure 2 of Podlesny and Williamson. It guarantees the service rate S_R
    to class R and S_D to class D. ``demand_rate`` and ``demand_delay`` are the most that the flows
    of R and D can send, in pkt/s; they may be infinite.
    """
    s_R, s_D = numbers("S_R", S_R), numbers("S_D", S_D)
    d_R = numbers("demand_rate", demand_rate, infinite=True)
    d_D = numbers("demand_delay", demand_delay, infinite=True)
    capacity = s_R + s_D
    rate = np.minimum(d_R, np.maximum(s_R, capacity - np.minimum(d_D, s_D)))
    delay = np.minimum(d_D, np.maximum(s_D, capacity - np.minimum(d_R, s_R)))
    return rate, delay


@same_kind
@broadcast
def relative_fairness(
    total_delay: ArrayLike, n_delay: ArrayLike, total_rate: ArrayLike, n_rate: ArrayLike
) -> Floats:
    """Mean rate of a Vegas flow over a NewReno flow's, as in section IV of Podlesny and Williamson.

    It is ``(total_delay / n_delay) / (total_rate / n_rate)``. ``total_delay`` is what all Vegas
    flows get together, and ``total_rate`` what all NewReno flows get. Both are rates, or both are
    fractions of the capacity.

    In an example of the paper, 100 Vegas flows use 24 % of the capacity and 300 NewReno flows 74 %.
    The formula gives (24/100) / (74/300) = 0.973, and the paper 0.97.

    The result is infinite if only NewReno gets nothing, and NaN if both get nothing or if a class
    has no flows.
    """
    u_D, n_D = numbers("total_delay", total_delay), numbers("n_delay", n_delay)
    u_R, n_R = numbers("total_rate", total_rate), numbers("n_rate", n_rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        index = (u_D / n_D) / (u_R / n_R)
    return np.where((n_D > 0) & (n_R > 0), index, np.nan)


@same_kind
@broadcast
def split_buffer(buffer: ArrayLike, delay_buffer: ArrayLike = 0.1) -> tuple[Floats, Floats]:
    """The buffers ``(B_R, B_D)`` of the classes R and D, if they share the link's buffer.

    The buffer is rounded down to whole packets. Class D gets the fraction ``delay_buffer`` of it,
    rounded, and class R the rest. (In section III of Podlesny and Williamson the fraction is 0.1.)
    If the buffer is infinite, each class gets an infinite buffer, or 0 if its fraction is 0. Raises
    ``FieldError`` for a negative buffer or a fraction outside [0, 1].
    """
    B = numbers("buffer", buffer, infinite=True)
    return split(B, numbers("delay_buffer", delay_buffer, high=1.0))


@same_kind
@broadcast
def delay_bound(B_D: ArrayLike, S_D: ArrayLike) -> Floats:
    """Longest queueing delay of a packet of class D, ``d = B_D / S_D`` seconds.

    Class D holds the Vegas flows. B_D is its buffer in packets and S_D its service rate in pkt/s
    (section II-C of Podlesny and Williamson). The delay is infinite if S_D is 0.

    The bound holds exactly if packets are infinitely small. With real packets the delay may be
    longer, by at most one packet time of class R plus one of class D.
    """
    size = numbers("B_D", B_D, infinite=True)
    rate = numbers("S_D", S_D)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rate > 0, size / rate, np.inf)


@same_kind
@broadcast
def buffer_for_delay(delay: ArrayLike, S_D: ArrayLike) -> Floats:
    """The buffer of class D with which packets wait at most d seconds: ``B_D = S_D d`` packets.

    d is ``delay``, and S_D is the service rate of class D (the Vegas flows) in pkt/s.
    """
    return _floats(numbers("delay", delay) * numbers("S_D", S_D))


@same_kind
@broadcast
def needed_delay_buffer(
    n_delay: ArrayLike, alpha: ArrayLike, beta: ArrayLike
) -> tuple[Floats, Floats]:
    """The packets that n_D Vegas flows keep in the queue of class D: ``(n_D alpha, n_D beta)``.

    n_D is ``n_delay``. In the steady state each flow keeps at least alpha and at most beta packets
    in the queue, whatever the service rate. The results are these two numbers for all flows
    together. A buffer of n_D beta packets or more does not overflow in the steady state. With less
    than n_D alpha packets the buffer overflows again and again, because a window grows as long as
    its flow keeps less than alpha packets in the queue.

    This holds for flows that know their propagation delays. A flow that over-estimates baseRTT by x
    seconds keeps more packets in the queue: x times its rate in addition.
    """
    n_D = numbers("n_delay", n_delay)
    low, high = numbers("alpha", alpha), numbers("beta", beta)
    ordered(low, high)
    return _floats(n_D * low), _floats(n_D * high)


@same_kind
@broadcast
def loss_onset(B_D: ArrayLike, alpha: ArrayLike) -> Floats:
    """The number of Vegas flows above which class D loses packets: ``n_D > B_D / alpha``.

    Class D holds the Vegas flows, and B_D is its buffer in packets. With more flows, the buffer has
    no room for alpha packets of every flow. So their windows go on growing until it overflows.
    """
    return _floats(numbers("B_D", B_D, infinite=True) / positive("alpha", alpha))


@same_kind
@broadcast
def rate_utilization(
    rtt: ArrayLike, B_R: ArrayLike, S_R: ArrayLike, decrease: ArrayLike = 0.5
) -> Floats:
    """Fraction U of ``S_R`` that AIMD flows use if all of them lose at the same time.

    AIMD flows are those of class R, which want throughput. S_R is the service rate of this class in
    pkt/s, B_R its buffer in packets, and ``rtt`` the RTT without queueing in s. A loss multiplies
    the window by b = ``decrease``. Let y = 1 + B_R / (S_R rtt). Then U = 1 if
    y >= 1/b, and otherwise

        U = (1 - b^2) y^2 / (1 - 2 b y + y^2).

    This is an approximation for flows that lose at the same time (``symbolic.podlesny`` derives
    it). Flows that lose at different times leave less of ``S_R`` idle. So for flows with the same
    ``rtt`` and without timeouts, U is a lower bound.
    """
    T, B = numbers("rtt", rtt), numbers("B_R", B_R, infinite=True)
    S = numbers("S_R", S_R)
    b = numbers("decrease", decrease, high=1.0, below=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(S * T > 0, B / (S * T), np.inf)
        y = np.minimum(1.0 + excess, np.where(b > 0, 1.0 / b, np.inf))
    u = 1.0 / y  # y may be infinite, so y^2 is divided out of the fraction
    return _floats((1.0 - b**2) / (u**2 - 2.0 * b * u + 1.0))


@same_kind
@broadcast
def delay_loss(
    n_delay: ArrayLike,
    rtt: ArrayLike,
    B_D: ArrayLike,
    S_D: ArrayLike,
    alpha: ArrayLike = 1.0,
    decrease: ArrayLike = 0.75,
) -> Floats:
    """Loss probability p of Vegas flows in class D, if its buffer has no room for all backlogs.

    S_D is the service rate of class D in pkt/s, B_D its buffer in packets, and n_D (``n_delay``)
    the number of its flows. ``rtt`` is their RTT without queueing in s.

    If B_D is less than n_D alpha, the backlogs cannot all reach alpha. Assume that each window then
    always grows by one packet per RTT, and that a loss multiplies it by b = ``decrease``. This is
    AIMD, so

        p W^2 = (1 + b) / (2 (1 - b)),

    where W = (S_D rtt + B_D) / n_D is the mean window. ``symbolic.podlesny`` has the derivation.

    If B_D is at least n_D alpha, the result is 0. This is right only for flows that know their
    propagation delays. Flows that measure them may over-estimate them (``arrivals``). They then
    queue more packets, so fewer flows suffice to cause losses.

    If W is only a few packets, timeouts dominate, and the formula does not apply. Then use
    ``random_loss.share`` instead, with a link of capacity S_D and buffer B_D for class D alone.
    """
    n_D, T = numbers("n_delay", n_delay), numbers("rtt", rtt)
    B, S = numbers("B_D", B_D, infinite=True), numbers("S_D", S_D)
    a = numbers("alpha", alpha)
    b = numbers("decrease", decrease, high=1.0, below=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        window = (S * T + B) / n_D
        p = np.minimum(1.0, (1.0 + b) / (2.0 * (1.0 - b)) / window**2)
    return np.where(n_D * a > B, p, 0.0)


def _weights(n_R: Floats, n_D: Floats, k: Floats) -> tuple[Floats, Floats, Floats]:
    """The weights of one delay-class flow, of one rate-class flow, and of all flows together.

    They are 1, k and n_D + k n_R, each divided by max(k, 1) to avoid overflow. n_D and n_R are the
    numbers of flows of the two classes. A flow's rate is the capacity times its weight over the
    weight of all flows.
    """
    w_D = 1.0 / np.maximum(k, 1.0)
    return w_D, w_D * k, w_D * n_D + (w_D * k) * n_R


def _floats(value: Any) -> Floats:
    """The value as a float64 array; a scalar becomes an array without axes."""
    return np.asarray(value, dtype=np.float64)
