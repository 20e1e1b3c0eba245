"""Finds the time within a step at which a window or the queue begins to behave in another way.

A window grows, shrinks, stays constant (it rests), or slides. A window slides if it changes with
the queue so that the backlog stays at one of Vegas's thresholds. The queue is empty, partly filled
or full. A step of the integration must end where a window or the queue passes from one of these
behaviours to another.

Many functions have the same arguments. ``p`` holds the properties of the flows, and ``y`` holds the
state at the beginning of a step (``records``). ``active`` [flow] says which flows are active.
``moves`` [flow] says how each window moves. ``c`` is the capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import DELAY, TIME, Flows, State
from vegasmodel.engines.fluid.windows import (
    BOTH,
    DOWN,
    HIGH,
    LOW,
    REST,
    UP,
    delay_after,
    ends_at,
    excess,
    extrapolate,
    threshold,
)
from vegasmodel.engines.tables import jit

PROBE = 2.0**-30  # part of a step: length of the step that shows how windows move after an event
SLACK = 1e-11  # part of a window by which it may pass a threshold without an event
# In a step with ``fraction`` = 1, the queueing delay s may change by the fraction ``TRIP`` of an
# RTT, T + s, or by the fraction ``GAP`` of the queueing delay that Vegas measures, s - x
# (``horizon``).
TRIP, GAP = 2.0**-6, 2.0**-4
AIM = -0.005 * SLACK  # a step ends just before the event, where ``changed`` is about this


@jit
def violation(p: Flows, i: int, y: State, s: float, s1: float, h: float, move: int) -> float:
    """By how many packets a window would pass its limit if it moved in one way for a whole step.

    The window is that of flow i. ``move`` says whether it grows (``UP``), shrinks (``DOWN``), rests
    (``REST``), or slides. A window slides if it changes with the queue so that the backlog stays at
    the lower threshold (``LOW``), at the upper one (``HIGH``), or at both if they are equal
    (``BOTH``). Each way to move has a limit. For example, Vegas's window grows only until its
    backlog reaches the lower threshold.

    The step has length h, and the queueing delay goes from s to s1. If the result is positive, the
    window begins to move in another way within the step.
    """
    W, x, slow = y.window[i], y.over_estimate[i], y.in_slow_start[i]
    if y.now[TIME] < y.recovery_until[i]:  # in fast recovery it rests, whatever the backlog is
        return -np.inf
    rtt, cap, floor = p.rtt[i], p.max_window[i], p.min_window[i]
    g = 0.5 * h * (1.0 / (rtt + s) + 1.0 / (rtt + s1))  # round trips in the step
    # the windows at which the backlog is at the lower and at the upper threshold
    low, _ = (
        ends_at(p, i, y, s1) if slow else threshold(p.lower[i], rtt, x, s1, p.backlog_over_base[i])
    )
    high, _ = threshold(p.upper[i], rtt, x, s1, p.backlog_over_base[i])
    up = W * np.exp(p.slow_start_growth[i] * g) if slow else W + p.growth[i] * g
    down = W - g
    # a window at rest: by how much it is too small to rest, or too large
    passed: float = max(low - W if cap > W else -np.inf, W - high if floor < W else -np.inf)
    if move == UP:
        passed = up - min(low, cap)
    elif move == DOWN:
        passed = max(high, floor) - down
    # A window that slides: by how much it cannot follow the threshold in the step. It grows and
    # shrinks only as fast as by ``up`` and ``down``. On the lower threshold it cannot shrink, and
    # on the upper one not grow, unless the two are equal.
    elif move == LOW:
        passed = max(low - min(up, cap), W - low)
    elif move == HIGH:
        passed = max(max(down, floor) - high, high - W)
    elif move == BOTH:
        passed = max(low - min(up, cap), max(down, floor) - high)
    return passed


@jit
def changed(
    p: Flows, y: State, active: np.ndarray, h: float, s1: float, c: float, last: np.ndarray
) -> float:
    """A number that is positive if a window or the queue begins to behave in another way in a step.

    Otherwise the number is negative. It passes 0 when the behaviour changes, so ``time_to_change``
    finds the time of the change as its zero. The step has length h and ends at the queueing delay
    s1.

    ``last`` describes the step before. ``last[i]`` says how the window of flow i moved: it grew
    (``UP``), shrank (``DOWN``), rested (``REST``), or slid (``LOW``, ``HIGH`` or ``BOTH``). The
    entry after those of the n flows, ``last[n]``, is about the queue: ``UP`` if there was one, and
    ``REST`` if it was empty.

    The result is the largest of these numbers, less the tolerance ``SLACK``:

    - For each window: the packets by which it would pass a limit if it moved on as in the step
      before, divided by the window. ``violation`` says which limit this is. For example, a growing
      window of Vegas has the limit at which its backlog reaches the lower threshold.
    - If the queue was empty: the flows' rates at the end of the step, if the queue is still empty
      then, minus the capacity, divided by the capacity. If this is positive, a queue forms.
    - If there was a queue: the same number with the opposite sign. If this is positive, the queue
      has emptied. As long as s1 is above 0, the number is instead -s1 divided by the first flow's
      propagation delay.

    ``c`` is the capacity in pkt/s.
    """
    s, n = y.now[DELAY], active.size
    worst: float
    if s1 > 0.0 and last[n] == UP:
        worst = -s1 / p.rtt[0]
    else:
        above, _, _ = excess(p, y, active, s, 0.0, h, c)  # sum of the rates minus the capacity
        above /= c
        worst = above if last[n] == REST else -above
    for i in range(n):
        if active[i]:
            passed = violation(p, i, y, s, s1, h, last[i])
            worst = max(worst, passed / y.window[i])
    return worst - SLACK


@jit
def time_to_change(
    p: Flows, y: State, active: np.ndarray, h: float, f_high: float,
    trend: tuple[float, float], c: float, s_max: float, last: np.ndarray,
) -> float:  # fmt: skip
    """The time within a step at which a window or the queue begins to move in another way.

    The step has length h. The function ``changed`` is 0 at the time sought. At the end of the step
    it has the value ``f_high``. The secant method finds the zero. It uses only points before the
    zero, because windows move in other ways after it. Where the secant fails, bisection or a chord
    between points on both sides takes its place. ``trend`` holds approximate first and second time
    derivatives of the queueing delay, ``s_max`` is the delay of a full buffer, and ``last`` says
    how each window moved in the step before. ``c`` is the capacity in pkt/s.
    """
    low, high = 0.0, h
    f_low = changed(p, y, active, 0.0, y.now[DELAY], c, last)
    if not f_low < 0.0:
        return 0.0
    # from the last but one point before the zero to the last, ``low``: difference in time and value
    step, f_step = 0.0, 0.0
    misses = 0  # how many points in a row lay beyond the zero
    for _ in range(60):  # limited, in case the method does not converge
        # The secant through the last two points before the zero. It is followed to the value
        # ``AIM``, a little below 0, so that the next point lies before the zero, too.
        middle = low - (f_low - AIM) * step / f_step if f_step > 0.0 else np.inf
        if not low < middle < high or misses > 1:
            # The chord from ``low`` to ``high``. ``changed`` mostly rises less steeply beyond its
            # zero, so this zero lies before that of the chord. The factor 4 makes the chord
            # steeper, so that it meets 0 earlier.
            middle = low + (high - low) * f_low / (f_low - 4.0 * f_high)
        if not low < middle < high or f_step < 0.0 or misses > 3:
            middle = 0.5 * (low + high)
        if not low < middle < high:  # no float lies between the two
            break
        # the queueing delay s1 at the time ``middle``, and the value of ``changed``
        guess = extrapolate(y.now[DELAY], trend, middle)
        s1 = delay_after(p, y, active, guess, middle, c, s_max)
        f = changed(p, y, active, middle, min(s1, s_max), c, last)
        if f > 0.0:
            high, f_high = middle, f
            misses += 1
        else:
            step, f_step = middle - low, f - f_low
            low, f_low = middle, f
            misses = 0
            if f > 2.0 * AIM:  # near enough to 0
                break
        if high - low <= PROBE * h:  # the time sought is known well enough
            break
    return low


@jit
def drift(p: Flows, y: State, active: np.ndarray, moves: np.ndarray) -> float:
    """The derivative s' = ds/dt of the queueing delay, if all windows continue to move as they do.

    No flow may be in slow start. Flow i has the window W_i and the propagation delay T_i. Its
    window changes with time and with s: dW_i/dt = u_i + v_i s'. If the window grows or shrinks,
    v_i = 0. If the window changes with s so that the backlog stays at a threshold (it slides),
    u_i = 0. If it rests, u_i = v_i = 0.

    While there is a queue, the flows' rates add up to the capacity c: sum_i W_i/(T_i + s) = c. The
    time derivative of this equation gives s':

        sum_i (u_i + (v_i - W_i/(T_i + s)) s')/(T_i + s) = 0

    ``moves`` says for each flow how its window moves (``windows.UP`` to ``BOTH``). It has one more
    entry, for the queue: ``UP`` if there is one. Without a queue the result is 0. ``horizon``
    derives the length of the next step from s'.
    """
    # ``push`` is the sum of u_i/(T_i + s), and ``give`` that of (W_i/(T_i + s) - v_i)/(T_i + s); so
    # s' is their quotient
    s, push, give = y.now[DELAY], 0.0, 0.0
    for i in range(active.size):
        if active[i]:
            per, by_s = 1.0 / (p.rtt[i] + s), 0.0  # ``by_s`` is v_i
            if moves[i] == UP:
                push += p.growth[i] * per * per
            elif moves[i] == DOWN:
                push -= per * per
            elif moves[i] != REST:
                edge = p.upper[i] if moves[i] == HIGH else p.lower[i]  # packets
                x, over_base = y.over_estimate[i], p.backlog_over_base[i]
                _, by_s = threshold(edge, p.rtt[i], x, s, over_base)
            give += (y.window[i] * per - by_s) * per
    queue = moves[active.size] == UP
    return push / give if queue else 0.0


@jit
def horizon(
    p: Flows, y: State, active: np.ndarray, moves: np.ndarray, fraction: float, until: float
) -> tuple[float, float, float]:
    """The usual length of the next step, its greatest length, and the latest time at which it ends.

    The usual length is ``fraction`` of the shortest round trip. For a flow in slow start, only a
    quarter of its round trip counts.

    If no flow is in slow start, steps may be longer while the queueing delay s changes slowly. The
    greatest length is that in which s changes by a small part of each flow's RTT, but at least the
    usual length. The window of a Vegas flow may follow the queue so that its backlog stays at a
    threshold. For such a flow, a small part of s - x takes the place of the small part of the RTT.
    Here x is the flow's over-estimate of the propagation delay, so s - x is the queueing delay that
    it measures.

    The step ends at ``until`` at the latest, or earlier if a flow's fast recovery ends earlier.
    """
    s, shortest, scale, slow = y.now[DELAY], np.inf, np.inf, False
    for i in range(active.size):
        if active[i]:
            trip = p.rtt[i] + s
            # exponential growth needs shorter steps than linear growth
            shortest = min(shortest, trip * (0.25 if y.in_slow_start[i] else 1.0))
            slow = slow or y.in_slow_start[i]
            slides = moves[i] == LOW or moves[i] == HIGH or moves[i] == BOTH
            scale = min(scale, GAP * (s - y.over_estimate[i]) if slides else TRIP * trip)
            if y.recovery_until[i] > y.now[TIME]:
                until = min(until, y.recovery_until[i])
    usual = fraction * shortest
    if slow:
        return usual, usual, until
    return usual, max(usual, fraction * scale / abs(drift(p, y, active, moves))), until
