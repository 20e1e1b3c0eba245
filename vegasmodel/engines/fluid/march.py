"""Marching the windows of ``windows.py`` through time, from event to event.

Events are stepped upon: a flow starts or stops, a window reaches or leaves a threshold, the queue
begins or ends, the buffer overflows.  Between them steps are a part of the shortest round trip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.engines.fluid.tally import (
    Tally,
    follow,
    note,
    nothing,
    replay,
    skip_cycles,
    tally_step,
)
from vegasmodel.engines.fluid.windows import (
    BOTH,
    DOWN,
    HIGH,
    LOW,
    REST,
    UP,
    Flows,
    State,
    attempt,
    delay_after,
    excess,
    foretold,
    jit,
    making,
    threshold,
    violation,
)
from vegasmodel.metrics import Floats

GROWING, ALL, LOSS_BASED = 0, 1, 2  # who loses when the buffer overflows
DONE, OVERFLOW, STUCK = 0, 1, 2  # why a march ended
FINE = 2.0**-30  # part of a step: long enough to show how all moves on after an event
SHORT = 2.0**-20  # part of a step: events that follow so soon are a stall
PATIENCE = 8  # stalls in a row before a whole step is taken, events or not
SLACK = 1e-11  # of a window: what it may pass a threshold by without an event
TRAIL = 2**12  # steps of a cycle that are kept
TRIP, GAP = 2.0**-6, 2.0**-4  # parts of T + s and of s - x that a step of one trip may change
AIM = -0.005 * SLACK  # of a window: where an event is stepped upon, just before it


class Desk(NamedTuple):
    """Where a march works; arrays [flow], ``moves`` and ``last`` with the queue's at the end."""

    on: np.ndarray  # bool: active
    new: Floats  # windows at the end of the step
    moves: np.ndarray  # how they move in it,
    last: np.ndarray  # ... and moved in the last one
    mark: State  # after the last overflow,
    before: Tally  # ... and the integrals then
    earlier: np.ndarray  # losses up to then
    trail: Floats  # [instant, (t, W .., s)] since then


@jit
def settle(p: Flows, y: State, on: np.ndarray, c: float) -> None:
    """The delay that goes with the windows as they are: (W1) after a jump."""
    y.clock[1] = delay_after(p, y, on, y.clock[1], 0.0, c, np.inf)


@jit
def lose(
    p: Flows, y: State, on: np.ndarray, moves: np.ndarray, losers: int, lost: np.ndarray
) -> bool:
    """Cut the windows of those who lose; false if no window could be cut.

    A source whose window stands or falls sends one packet per ACK, so it finds the place that
    its last packet left; the extra packet that does not fit is sent by one that grows.
    """
    cut = False
    for i in range(on.size):
        hit = losers == ALL or (moves[i] == UP and (losers == GROWING or not p.keeps_backlog[i]))
        if on[i] and hit:
            new = max(y.window[i] * p.decrease[i], p.floor[i])
            cut = cut or new < y.window[i]
            y.window[i] = new
            y.slow[i] = False
            y.held[i] = y.clock[0] + p.recovery[i] * p.rtt[i]
            lost[i] += 1
    return cut


@jit
def admit(p: Flows, y: State, on: np.ndarray) -> float:
    """Start and stop flows that are due; the time of the next start or stop."""
    t, due = y.clock[0], np.inf
    for i in range(on.size):
        active = p.start[i] <= t < p.stop[i]
        if active and not on[i]:
            y.window[i] = p.first[i]
            y.slow[i] = p.surge[i] > 0.0
            y.over[i] = y.clock[1] if p.measured[i] else p.over[i]
        elif on[i] and not active:
            y.window[i] = 0.0
        on[i] = active
        if p.start[i] > t:
            due = min(due, p.start[i])
        elif p.stop[i] > t:
            due = min(due, p.stop[i])
    return due


@jit
def changed(
    p: Flows, y: State, on: np.ndarray, h: float, s1: float, c: float, last: np.ndarray
) -> float:
    """How far a step of length h to s1 passes a change of motion, over the windows.

    Positive: some motion of the last step has ended within this one.
    """
    s, n = y.clock[1], on.size
    worst: float
    if s1 > 0.0 and last[n] == UP:
        worst = -s1 / p.rtt[0]
    else:
        spare = excess(p, y, on, s, 0.0, h, c)[0] / c
        worst = spare if last[n] == REST else -spare
    for i in range(n):
        if on[i]:
            v = violation(p, i, y, s, s1, h, last[i])
            worst = max(worst, v / y.window[i])
    return worst - SLACK


@jit
def time_to_change(
    p: Flows, y: State, on: np.ndarray, h: float, f_high: float,
    trend: tuple[float, float], c: float, s_max: float, last: np.ndarray,
) -> float:  # fmt: skip
    """The part of h after which a motion changes: a root of ``changed`` from below.

    Beyond the root other motions hold and ``changed`` has another slope, so the secant goes
    through the last two points before it; the chord to the point beyond it is for when that fails.
    """
    low, high = 0.0, h
    f_low = changed(p, y, on, 0.0, y.clock[1], c, last)
    if not f_low < 0.0:
        return 0.0
    step, f_step = 0.0, 0.0  # from the point before ``low`` to it
    misses = 0  # points in a row that lay beyond the root
    for _ in range(60):
        middle = low - (f_low - AIM) * step / f_step if f_step > 0.0 else np.inf
        if not low < middle < high or misses > 1:
            # below the chord's root, since the slope beyond the root is mostly the smaller one
            middle = low + (high - low) * f_low / (f_low - 4.0 * f_high)
        if not low < middle < high or f_step < 0.0 or misses > 3:
            middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        guess = foretold(y.clock[1], trend, middle)
        s1 = delay_after(p, y, on, guess, middle, c, s_max)
        f = changed(p, y, on, middle, min(s1, s_max), c, last)
        if f > 0.0:
            high, f_high = middle, f
            misses += 1
        else:
            step, f_step = middle - low, f - f_low
            low, f_low = middle, f
            misses = 0
            if f > 2.0 * AIM:
                break
        if high - low <= FINE * h:
            break
    return low


@jit
def accept(
    p: Flows, y: State, on: np.ndarray, new: Floats, moves: np.ndarray, s1: float, later: float
) -> bool:
    """Make the end of a step the state.  True: a slow start ended."""
    ended = False
    for i in range(on.size):
        if on[i]:
            ended = ended or (y.slow[i] and moves[i] != UP)
            y.slow[i] = y.slow[i] and moves[i] == UP
            y.window[i] = new[i]
            if p.measured[i]:
                y.over[i] = min(y.over[i], s1)
    y.clock[0], y.clock[1] = later, s1
    return ended


@jit
def drift(p: Flows, y: State, on: np.ndarray, moves: np.ndarray) -> float:
    """ds/dt while all move as they do, (W1) differentiated: sum (m + (dW/ds - W) s')/(T + s) = 0.

    ``m``, packets/s: climb/(T + s) of a window that grows; dW/ds where it slides on a threshold.
    """
    s, push, give = y.clock[1], 0.0, 0.0
    for i in range(on.size):
        if on[i]:
            per, by_s = 1.0 / (p.rtt[i] + s), 0.0
            if moves[i] == UP:
                push += p.climb[i] * per * per
            elif moves[i] == DOWN:
                push -= per * per
            elif moves[i] != REST:
                e = p.upper[i] if moves[i] == HIGH else p.lower[i]
                by_s = threshold(e, p.rtt[i], y.over[i], s, p.over_base[i])[1]
            give += (y.window[i] * per - by_s) * per
    return push / give if moves[on.size] == UP else 0.0


@jit
def horizon(
    p: Flows, y: State, on: np.ndarray, moves: np.ndarray, fraction: float, until: float
) -> tuple[float, float, float]:
    """A fine step, a whole step, and the time that none may pass: ``until``, or a recovery's end.

    A step errs only in so far as the delay changes within it.  So where that moves slowly a step is
    longer: until T + s, or s - x where Vegas slides, has changed by a given part.
    """
    s, shortest, scale, slow = y.clock[1], np.inf, np.inf, False
    for i in range(on.size):
        if on[i]:
            trip = p.rtt[i] + s
            # an exponential wants shorter steps than a ramp
            shortest = min(shortest, trip * (0.25 if y.slow[i] else 1.0))
            slow = slow or y.slow[i]
            slides = moves[i] == LOW or moves[i] == HIGH or moves[i] == BOTH
            scale = min(scale, GAP * (s - y.over[i]) if slides else TRIP * trip)
            if y.held[i] > y.clock[0]:
                until = min(until, y.held[i])
    fine = fraction * shortest
    if slow:
        return fine, fine, until
    return fine, max(fine, fraction * scale / abs(drift(p, y, on, moves))), until


@making
def march(
    p: Flows, y: State, c: float, s_max: float, losers: int, end: float,
    fraction: float, stop_at_loss: bool, skip: bool, out: Tally, grid: Floats, record: Floats,
) -> int:  # fmt: skip
    """Integrate up to ``end``, or to the first overflow; DONE, OVERFLOW or STUCK.

    ``fraction`` is the step over the shortest round trip.  ``skip`` leaves out whole cycles once
    they repeat, unless a grid wants a cycle of more than ``TRAIL`` steps.  ``record[k]`` receives
    the windows and the delay at ``grid[k]``, linear within a step, and the losses of ``out``.
    """
    n, k = y.window.size, np.searchsorted(grid, y.clock[0])
    moves, last = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    mark = State(np.zeros(n), np.zeros(n), np.zeros(n, np.bool_), np.zeros(n), np.zeros(2))
    trail = np.empty((TRAIL if skip and grid.size > 0 else 0, n + 2))
    desk = Desk(
        y.window > 0.0, np.empty(n), moves, last, mark, nothing(n), out.losses.copy(), trail
    )
    return _march(
        p, y, c, s_max, losers, end, fraction, stop_at_loss, skip, out, grid, record, k, desk
    )


@jit
def _march(
    p: Flows, y: State, c: float, s_max: float, losers: int, end: float,
    fraction: float, stop_at_loss: bool, skip: bool, out: Tally, grid: Floats, record: Floats,
    k: int, desk: Desk,
) -> int:  # fmt: skip
    """``march`` from the ``k``-th grid time on."""
    on, new, moves, last, mark, before, earlier, trail = desk
    due = admit(p, y, on)
    settle(p, y, on, c)
    m = 1 + TRAIL  # instants in the trail; more than it holds: not the whole cycle is there
    stalls = 0  # short steps in a row that brought another event at once
    jumped = True  # then a short step shows how all moves on
    trend, mean, length = (0.0, 0.0), 0.0, 0.0  # of the last step: the delay's slope and its length
    while y.clock[0] < end:
        t = y.clock[0]
        fine, whole, until = horizon(p, y, on, last, fraction, min(due, end))
        left = until - t
        wanted = min(FINE * fine if jumped else whole, left)
        h, s1 = attempt(p, y, on, wanted, trend, c, s_max, new, moves)
        over = -1.0 if jumped or stalls > PATIENCE else changed(p, y, on, h, s1, c, last)
        if over > 0.0:
            wanted = time_to_change(p, y, on, h, over, trend, c, s_max, last)
            stalls = stalls + 1 if wanted <= SHORT * fine else 0
            # at an event itself: a short step, whatever it brings
            wanted = wanted if wanted > FINE * fine else min(FINE * fine, left)
            h, s1 = attempt(p, y, on, wanted, trend, c, s_max, new, moves)
        elif not jumped:
            stalls = 0
        before_mean, mean = mean, (s1 - y.clock[1]) / h if h > 0.0 else 0.0
        bend = 2.0 * (mean - before_mean) / (h + length) if h > SHORT * fine else 0.0
        trend, length = (mean + 0.5 * bend * h, bend), h
        full = h < wanted or s1 >= s_max
        later = until if h == left else t + h
        k = note(y, new, s1, h, later, out.losses, k, grid, record)
        tally_step(p, y, on, new, s1, h, c, out)
        jumped = accept(p, y, on, new, moves, s1, later)
        m = follow(trail, m, later, new, s1)
        for i in range(last.size):
            last[i] = moves[i]
        if full:
            if not lose(p, y, on, moves, losers, out.losses):
                return STUCK
            settle(p, y, on, c)
            if y.clock[1] >= s_max * (1.0 - SLACK):
                return STUCK
            jumped = True
            if stop_at_loss:
                return OVERFLOW
            if skip:
                known = k == grid.size or m <= trail.shape[0]
                period = skip_cycles(y, out, mark, before, earlier, min(due, end), known)
                if y.clock[0] > later and k < grid.size:
                    k = replay(trail, m, period, y.clock[0], earlier, out.losses, k, grid, record)
                later = y.clock[0]
                m = follow(trail, 0, later, y.window, y.clock[1])
        if later == until:
            jumped = True
        if later >= due:
            due = admit(p, y, on)
            settle(p, y, on, c)
            jumped = True
    return DONE


@making
def average_many(
    p: Flows, capacity: Floats, s_max: Floats, warmup: Floats, duration: Floats, losers: int,
    fraction: float, begin: int, end: int, wide: Floats, narrow: Floats,
) -> None:  # fmt: skip
    """Averages of the scenarios ``begin .. end`` of a batch, whose arrays are [scenario, flow].

    ``wide`` receives throughput, mean RTT, baseRTT and losses; ``narrow`` the mean queue and
    why the march ended.
    """
    n = p.rtt.shape[1]
    grid, record = np.empty(0), np.empty((0, 2 * n + 1))
    for k in range(begin, end):
        row = Flows(
            p.rtt[k], p.keeps_backlog[k], p.over_base[k], p.lower[k], p.upper[k], p.gamma[k],
            p.surge[k], p.climb[k], p.decrease[k], p.floor[k], p.cap[k], p.first[k], p.recovery[k],
            p.measured[k], p.over[k], p.start[k], p.stop[k],
        )  # fmt: skip
        y = State(np.zeros(n), np.full(n, np.inf), np.zeros(n, np.bool_), np.zeros(n), np.zeros(2))
        code, out = DONE, nothing(n)
        for until in (warmup[k], duration[k]):
            if code == DONE:
                out = nothing(n)
                code = march(
                    row, y, capacity[k], s_max[k], losers, until, fraction, False, True,
                    out, grid, record,
                )  # fmt: skip
        for i in range(n):
            known = code == DONE and row.start[i] < np.inf
            wide[0, k, i] = out.delivered[i] / out.active[i] if known else np.nan
            wide[1, k, i] = out.window[i] / out.delivered[i] if known else np.nan
            wide[2, k, i] = row.rtt[i] + y.over[i] if known and row.keeps_backlog[i] else np.nan
            wide[3, k, i] = out.losses[i] if known else np.nan
        narrow[0, k] = out.queue[0] / out.queue[1] if code == DONE else np.nan
        narrow[1, k] = code
