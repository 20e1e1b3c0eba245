"""Averages and samples of an integration, and how repeating cycles are skipped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.engines.fluid.windows import Flows, State, jit, making
from vegasmodel.metrics import Floats

REPEATS = 1e-9  # of a window: cycles that differ by less are the same


class Tally(NamedTuple):
    """Integrals since the last reset."""

    delivered: Floats  # [flow] packets
    window: Floats  # [flow] integral of W dt
    active: Floats  # [flow] seconds
    losses: np.ndarray  # [flow] events
    queue: Floats  # [2] integrals of c s dt and of dt


@making
def nothing(n: int) -> Tally:
    """Integrals at zero, for n flows."""
    return Tally(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros(2))


@jit
def tally_step(
    p: Flows, y: State, on: np.ndarray, new: Floats, s1: float, h: float, c: float, out: Tally
) -> None:
    """Add one step's integrals by the trapezoidal rule, which keeps sum r = c exact."""
    s = y.clock[1]
    for i in range(on.size):
        if on[i]:
            rate = y.window[i] / (p.rtt[i] + s) + new[i] / (p.rtt[i] + s1)
            out.delivered[i] += 0.5 * h * rate
            out.window[i] += 0.5 * h * (y.window[i] + new[i])
            out.active[i] += h
    out.queue[0] += 0.5 * h * c * (s + s1)
    out.queue[1] += h


@jit
def note(
    y: State, new: Floats, s1: float, h: float, later: float, lost: np.ndarray, k: int,
    grid: Floats, record: Floats,
) -> int:  # fmt: skip
    """Write down the grid times within a step; the number of the next one."""
    t, s, n = y.clock[0], y.clock[1], new.size
    while k < grid.size and grid[k] <= later:
        part = (grid[k] - t) / h if h > 0.0 else 1.0
        for i in range(n):
            record[k, i] = y.window[i] + part * (new[i] - y.window[i])
            record[k, n + 1 + i] = lost[i]
        record[k, n] = s + part * (s1 - s)
        k += 1
    return k


@jit
def follow(trail: Floats, m: int, t: float, window: Floats, s: float) -> int:
    """Write down the ``m``-th instant of a cycle; the number of the next one."""
    if m < trail.shape[0]:
        trail[m, 0], trail[m, -1] = t, s
        for i in range(window.size):
            trail[m, 1 + i] = window[i]
    return m + 1


@jit
def replay(
    trail: Floats, m: int, period: float, until: float, earlier: np.ndarray, lost: np.ndarray,
    k: int, grid: Floats, record: Floats,
) -> int:  # fmt: skip
    """Write down the grid times before ``until`` by the cycle whose ``m`` instants are known.

    ``earlier``: losses up to its end; ``lost``: up to ``until``.  Each cycle begins with a loss.
    """
    j, begun, n = 0, trail[0, 0], lost.size
    left = np.round((until - begun) / period) - 1.0  # cycles from its end to ``until``
    while k < grid.size and grid[k] < until:
        if grid[k] - begun >= period:
            cycles = np.floor((grid[k] - begun) / period)
            j, begun = 0, begun + cycles * period
        t = trail[0, 0] + (grid[k] - begun)
        while j < m - 2 and trail[j + 1, 0] <= t:
            j += 1
        part = (t - trail[j, 0]) / (trail[j + 1, 0] - trail[j, 0])
        for i in range(n + 1):
            record[k, i] = trail[j, 1 + i] + part * (trail[j + 1, 1 + i] - trail[j, 1 + i])
        gone = np.round((begun - trail[0, 0]) / period) - 1.0  # whole cycles since its end
        for i in range(n):
            record[k, n + 1 + i] = earlier[i] + gone * np.round((lost[i] - earlier[i]) / left)
        k += 1
    return k


@jit
def skip_cycles(
    y: State, out: Tally, mark: State, before: Tally, earlier: np.ndarray, until: float, known: bool
) -> float:
    """Just after an overflow: if it left the state as the last one did, go on by whole cycles.

    ``mark`` and ``before`` hold the state and the integrals after the last overflow, and are
    brought up to date.  ``earlier`` receives the losses up to now.  ``known``: what happens in a
    cycle is known.  Returns the period.
    """
    period: float = y.clock[0] - mark.clock[0]
    same = True
    for i in range(y.window.size):
        near = abs(y.window[i] - mark.window[i]) <= REPEATS * y.window[i]
        same = same and near and y.over[i] == mark.over[i] and not y.slow[i]
    cycles = max(0.0, np.floor((until - y.clock[0]) / period)) if same and known else 0.0
    y.clock[0] += cycles * period
    mark.clock[0] = y.clock[0]
    for i in range(y.window.size):
        y.held[i] += cycles * period
        out.delivered[i] += cycles * (out.delivered[i] - before.delivered[i])
        out.window[i] += cycles * (out.window[i] - before.window[i])
        out.active[i] += cycles * (out.active[i] - before.active[i])
        earlier[i] = out.losses[i]
        out.losses[i] += np.int64(cycles) * (out.losses[i] - before.losses[i])
        mark.window[i], mark.over[i] = y.window[i], y.over[i]
        before.delivered[i], before.window[i] = out.delivered[i], out.window[i]
        before.active[i], before.losses[i] = out.active[i], out.losses[i]
    for i in range(2):
        out.queue[i] += cycles * (out.queue[i] - before.queue[i])
        before.queue[i] = out.queue[i]
    return period
