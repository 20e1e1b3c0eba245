"""Solves differential equations for windows of senders on one link, without feedback delay.

Flow i has the window W_i and the propagation delay T_i. The link has the capacity c and the
queueing delay s. (Boutremans and Le Boudec (2000) write d_i for T_i and Delta for s.) ACKs clock
the senders, so the queue follows the windows at once:

    sum_i W_i / (T_i + s) = c,   or s = 0 if this sum is below c at s = 0              (W1)

Outside slow start a window moves by m_i packets per round trip:

    dW_i/dt = m_i / (T_i + s),   m_i in Sgn_i(W_i, s)                                   (W2)

Sgn_i is the set of values that m_i may have. For Reno m_i is always 1 (1/2 if the receiver delays
ACKs). For Vegas m_i is 1 if the backlog is below alpha, -1 if it is above beta, and 0 in between
(Boutremans and Le Boudec, equation (1)).

If Vegas's backlog is exactly alpha, m_i may have any value from 0 to 1. If it is exactly beta, m_i
may have any value from -1 to 0. (If alpha = beta, the values are those from -1 to 1.) The window
can then slide: m_i takes the value with which the backlog stays at the threshold while the queue
changes (Filippov's solution of a discontinuous equation).

A step of length h solves (W1) and (W2) together, with the trapezoidal rule for 1/(T_i + s). Each
window at the end of the step is an explicit function of s at that time. So if h is given, s at the
end of the step is the only unknown, for any number of flows.

A window grows, shrinks, slides or rests (keeps its value). A step ends at the latest when a window
changes from one of these four motions to another. So the state at the end of a step is a smooth
function of the state at its beginning, and ``cycle.py`` can differentiate it. While all windows
slide or rest, the solution is exact; otherwise its error falls with h^2.

Many functions have the same arguments. ``p`` holds the properties of the flows, and ``y`` holds the
state at the beginning of a step (``records``). ``active`` [flow] says which flows are active.

Sources: Boutremans and Le Boudec (2000), section 3.1; De Vendictis and Baiocchi (2002), (5).
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import DELAY, TIME, Flows, State
from vegasmodel.engines.tables import jit
from vegasmodel.metrics import Floats

# How a window moves: it grows, shrinks or rests, or it slides on a threshold. That is, it changes
# with the queueing delay so that the backlog stays at alpha (``LOW``), at beta (``HIGH``), or at
# both because they are equal (``BOTH``).
UP, DOWN, REST, LOW, HIGH, BOTH = 1, -1, 0, 2, 3, 4
STEP_ERROR = 1e-14  # relative tolerance of the equations of a step
RATE_ERROR = 4.0 * 2.0**-52  # part of the capacity: rounding error of a sum of rates


@jit
def threshold(e: float, rtt: float, over: float, s: float, over_base: bool) -> tuple[float, float]:
    """Window W at which Vegas's backlog equals e packets, and its derivative dW/ds.

    T (``rtt``) is the propagation delay, s the queueing delay, and x (``over``) the flow's
    over-estimate of T. So the RTT is T + s, and Vegas's baseRTT is T + x.

    The backlog is W (RTT - baseRTT)/RTT, so W = e (T + s)/(s - x), equation (4) of Boutremans and
    Le Boudec. Linux divides by baseRTT instead (``over_base``), so there W = e (T + x)/(s - x).
    """
    gap = s - over
    if gap <= 0.0 or e == np.inf:
        return np.inf, 0.0
    base, part = rtt + over, e / gap
    return part * (base if over_base else rtt + s), -part * base / gap


@jit
def ends_at(p: Flows, i: int, y: State, s: float) -> tuple[float, float]:
    """Window at which slow start of flow i ends, at the queueing delay s; its derivative dW/ds.

    It is infinite for a loss-based flow, and where ``slow_start.py`` decides whether slow start
    ends. ``p`` holds the properties of the flows, and ``y`` the state at the beginning of the step.
    """
    if p.in_trains[i]:
        return np.inf, 0.0
    return threshold(p.gamma[i], p.rtt[i], y.over_estimate[i], s, p.backlog_over_base[i])


@jit
def window_after(
    p: Flows, i: int, y: State, s: float, s1: float, h: float
) -> tuple[float, float, float, int]:
    """Window W1 of flow i at the end of a step of length h from the queueing delay s to s1.

    T is the propagation delay, and W the window at the beginning of the step. The step lasts g
    round trips, with g = h/2 (1/(T + s) + 1/(T + s1)). Outside slow start W1 = W + m g, by equation
    (W2) of this module. The law chooses m from the state at the end of the step: m is positive if
    the window grows, -1 if it shrinks and 0 if it rests. In slow start the window grows
    exponentially with g. During a fast recovery it rests.

    The function tries these moves in turn. It first lets the window grow, up to the window ``low``
    at which the backlog is alpha (in slow start gamma) or up to ``cap``, the greatest window. If it
    need not grow, it lets the window shrink, down to the window ``high`` at which the backlog is
    beta, or down to ``floor``, the least window. If the window reaches ``low`` or ``high`` within
    the step, it slides on this threshold.

    Returns W1, its derivatives with respect to s1 and to h, and how the window moves (``UP``,
    ``DOWN``, ``REST``, or the threshold on which it slides).

    ``p`` holds the properties of the flows, and ``y`` the state at the beginning of the step.
    """
    W, x, slow = y.window[i], y.over_estimate[i], y.in_slow_start[i]
    if y.now[TIME] < y.recovery_until[i]:
        return W, 0.0, 0.0, REST
    rtt, cap, floor = p.rtt[i], p.max_window[i], p.min_window[i]
    per_s, per_s1 = 1.0 / (rtt + s), 1.0 / (rtt + s1)
    pace = 0.5 * (per_s + per_s1)  # g/h = dg/dh
    bend = -0.5 * h * per_s1 * per_s1  # dg/ds1
    # ``up``: the window if it grows throughout the step, with its derivatives by s1 and by h;
    # ``low``: the window at which its growth ends, with its derivative by s1
    if slow:
        up = W * np.exp(p.slow_start_growth[i] * h * pace)
        by_s, by_h = up * p.slow_start_growth[i] * bend, up * p.slow_start_growth[i] * pace
        low, low_by_s = ends_at(p, i, y, s1)
        if min(low, cap) <= W:
            return W, 0.0, 0.0, REST
    else:
        climb = p.growth[i]
        up, by_s, by_h = W + climb * h * pace, climb * bend, climb * pace
        low, low_by_s = threshold(p.lower[i], rtt, x, s1, p.backlog_over_base[i])
    equal = p.lower[i] == p.upper[i]  # alpha = beta
    if min(low, cap) > W:
        if up < min(low, cap):  # it grows throughout the step
            return up, by_s, by_h, UP
        # it reaches the threshold and slides, or reaches ``max_window`` and rests
        return (low, low_by_s, 0.0, BOTH if equal else LOW) if low <= cap else (cap, 0.0, 0.0, REST)
    high, high_by_s = low, low_by_s
    if slow or not equal:
        high, high_by_s = threshold(p.upper[i], rtt, x, s1, p.backlog_over_base[i])
    if high >= W or floor >= W:  # it need not shrink
        return W, 0.0, 0.0, BOTH if equal and cap > W > floor else REST
    down = W - h * pace
    if high >= max(down, floor):  # it shrinks to the threshold and slides
        return high, high_by_s, 0.0, BOTH if equal else HIGH
    return (down, -bend, -pace, DOWN) if down > floor else (floor, 0.0, 0.0, REST)


@jit
def excess(
    p: Flows, y: State, active: np.ndarray, s: float, s1: float, h: float, c: float
) -> tuple[float, float, float]:
    """The sum of the flows' rates at the end of a step minus the capacity c, in pkt/s.

    The step has length h and ends at the queueing delay s1. The rate of a flow is W1/(T + s1), with
    its window W1 at that time and its propagation delay T. Equation (W1) of this module demands
    that the result is 0. Also returns the derivatives of the result with respect to s1 and to h.

    ``p`` holds the properties of the flows, ``y`` the state at the beginning of the step, and
    ``active`` says which flows send.
    """
    total, by_s, by_h = -c, 0.0, 0.0
    for i in range(active.size):
        if active[i]:
            W, ds, dh, _ = window_after(p, i, y, s, s1, h)  # W1, and its two derivatives
            per = 1.0 / (p.rtt[i] + s1)
            rate = W * per
            total += rate
            by_s += (ds - rate) * per
            by_h += dh * per
    return total, by_s, by_h


@jit
def delay_after(
    p: Flows, y: State, active: np.ndarray, guess: float, h: float, c: float, s_max: float
) -> float:
    """Queueing delay s1 at the end of a step of length h.

    It is 0 if there is no queue. Otherwise the flows' rates at the end of the step add up to the
    capacity c. So s1 is the root of ``excess``, the sum of these rates minus c. The sum falls as s1
    grows. The delay of a full buffer is ``s_max``. A result above ``s_max`` means that the buffer
    overflows.

    Newton's method starts at ``guess``. It may oscillate, because the slope of ``excess`` jumps at
    some values of s1. So a bracket around the root is kept. If a Newton step leaves it, a secant
    step or a bisection replaces the Newton step.

    ``p`` holds the properties of the flows, ``y`` the state at the beginning of the step, and
    ``active`` says which flows send.
    """
    s = y.now[DELAY]
    low, high = -1.0, np.inf  # low < 0: it is not known yet whether there is a queue
    f_low, f_high, chords = 0.0, 0.0, 0
    for _ in range(100):  # limited, in case the method does not converge
        f, slope, _ = excess(p, y, active, s, guess, h, c)
        if f > 0.0:
            low, f_low = guess, f
            if guess > s_max:
                return guess
        elif guess == 0.0:
            return 0.0
        else:
            high, f_high = guess, f
        new = guess - f / slope
        if abs(new - guess) <= STEP_ERROR * guess or abs(f) <= RATE_ERROR * c:
            return max(new, 0.0)
        if not low < new < high or new < 0.0:  # Newton's step has left the bracket
            chords += 1
            if low < 0.0:
                new = 0.0
            elif chords % 3:  # a secant step; every third time a bisection
                new = low + (high - low) * f_low / (f_low - f_high)
            else:
                new = 0.5 * (low + high)
        guess = new
    return guess


@jit
def time_to(
    p: Flows, y: State, active: np.ndarray, s: float, h: float, c: float, s_max: float
) -> float:
    """Time within a step of length h at which the queueing delay reaches ``s_max`` (a full buffer).

    The step begins with the queueing delay ``s``. When the delay is ``s_max``, the flows' rates
    still add up to the capacity c. So the time is a root of ``excess``, the sum of the rates minus
    c, as a function of the step's length. Newton's method finds it. The root is known to be between
    ``low`` and ``high``; if a Newton step leaves this interval, a bisection replaces the step.

    ``p`` holds the properties of the flows, ``y`` the state at the beginning of the step, and
    ``active`` says which flows send.
    """
    low, high, guess = 0.0, h, 0.5 * h
    for _ in range(100):  # limited, in case the method does not converge
        f, _, slope = excess(p, y, active, s, s_max, guess, c)
        if f > 0.0:  # the windows are too large: the buffer is full before ``guess``
            high = guess
        else:
            low = guess
        new = guess - f / slope if slope != 0.0 else low
        if abs(new - guess) <= STEP_ERROR * h:
            return min(max(new, 0.0), h)
        if not low < new < high:
            new = 0.5 * (low + high)
        guess = new
    return guess


@jit
def extrapolate(s: float, trend: tuple[float, float], h: float) -> float:
    """A first guess of the queueing delay after h seconds, for the iterations of ``delay_after``.

    The delay is now s, and ``trend`` holds its first and second time derivatives.
    """
    slope, bend = trend
    return max(s + h * (slope + 0.5 * h * bend), 0.0)


@jit
def try_step(
    p: Flows, y: State, active: np.ndarray, h: float, trend: tuple[float, float], c: float,
    s_max: float, new: Floats, moves: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Try a step of at most h seconds, which ends early if the buffer becomes full.

    Returns the step's length and the queueing delay at its end. ``trend`` holds approximate first
    and second time derivatives of this delay.

    The function writes the windows at the end of the step into ``new``. It writes how each window
    moves into ``moves``, followed by one more entry: ``UP`` if there is a queue, else ``REST``.

    ``c`` is the capacity in pkt/s, and ``s_max`` the queueing delay of a full buffer in seconds.
    """
    s = y.now[DELAY]
    s1 = delay_after(p, y, active, extrapolate(s, trend, h), h, c, s_max)
    if s1 > s_max:
        s1, h = s_max, time_to(p, y, active, s, h, c, s_max)
    for i in range(active.size):
        new[i], moves[i] = 0.0, REST
        if active[i]:
            new[i], _, _, moves[i] = window_after(p, i, y, s, s1, h)
    moves[active.size] = UP if s1 > 0.0 else REST
    return h, s1
