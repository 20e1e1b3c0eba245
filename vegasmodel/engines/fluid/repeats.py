"""Speeds up a simulation: if the cycles of the windows repeat, whole cycles are skipped.

A cycle lasts from one overflow of the buffer to the next. If a user asks for samples of windows and
queue within a skipped cycle, they are copied from the last cycle that was simulated. The table
``trail`` has a row for each step of that last cycle. A row contains the time, the windows and the
queueing delay.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import SPAN, TIME, WAITED, Samples, State, Tally
from vegasmodel.engines.fluid.within_step import delivered_within
from vegasmodel.engines.tables import jit
from vegasmodel.metrics import Floats

REPEATS = 1e-9  # part of a window: cycles in which windows differ by less count as equal
TRAIL = 2**12  # greatest number of steps of a cycle that are stored


@jit
def rounded(x: float) -> float:
    """The whole number nearest to ``x``.

    ``x`` is a number of cycles or losses that has a rounding error.
    """
    count: float = np.floor(x + 0.5)
    return count


@jit
def record_instant(trail: Floats, m: int, t: float, window: Floats, s: float) -> int:
    """Store time, windows and queueing delay as entry ``m`` of ``trail``, if there is room for it.

    ``replay`` computes the samples of skipped cycles from these entries. Returns m + 1, also if
    there is no room: a number above the room then shows that entries are missing. The time is
    ``t``, and the queueing delay ``s``, both in seconds.
    """
    if m < trail.shape[0]:
        trail[m, 0], trail[m, 1 + window.size] = t, s
        for i in range(window.size):
            trail[m, 1 + i] = window[i]
    return m + 1


@jit
def _rate(trail: Floats, j: int, i: int, rtt: Floats) -> float:
    """The rate of flow i at entry j of ``trail``, in pkt/s; ``rtt`` [flow] excludes queueing."""
    rate: float = trail[j, 1 + i] / (rtt[i] + trail[j, 1 + rtt.size])
    return rate


@jit
def replay(
    trail: Floats, m: int, period: float, until: float, rtt: Floats, before: Tally, out: Tally,
    so_far: Floats, samples: Samples,
) -> None:  # fmt: skip
    """Fill in the samples of the skipped cycles: those at ``samples.times`` before ``until``.

    Each skipped cycle equals the last cycle that was simulated, which took ``period`` seconds.
    Entries 0 to m - 1 of ``trail`` hold the states of that cycle, and samples are interpolated
    between them. ``rtt`` [flow] are the RTTs without queueing.

    A sample also has each flow's numbers of losses and of packets delivered up to its time.
    ``before`` has these counts at the beginning of the simulated cycle, and ``out`` at the time
    ``until``. The counts of one cycle are the difference, divided by the number of cycles between.
    A sample's counts are those in ``before``, plus those of the whole cycles since, plus the
    packets delivered in the part of its own cycle that has passed. ``so_far`` [flow] is scratch
    space for these packets.
    """
    # the rows of ``values``: n windows, the queueing delay, n numbers of losses, n of packets; the
    # next sample to fill in is in column k
    times, values, k = samples.times, samples.values, samples.following[0]
    # the sample's cycle began at ``begun``, and the sample lies between entries j and j + 1
    j, begun, n = 0, trail[0, 0], rtt.size
    all_cycles = rounded((until - begun) / period)  # the simulated one and those skipped
    passed = 0.0  # whole cycles from the beginning of the simulated one to ``begun``
    so_far[:] = 0.0
    while k < times.size and times[k] < until:
        if times[k] - begun >= period:  # the sample is in a later cycle than the one before it
            cycles = np.floor((times[k] - begun) / period)
            j, begun = 0, begun + cycles * period
            passed = rounded((begun - trail[0, 0]) / period)
            so_far[:] = 0.0
        t = trail[0, 0] + (times[k] - begun)
        while j < m - 2 and trail[j + 1, 0] <= t:
            h = trail[j + 1, 0] - trail[j, 0]
            for i in range(n):
                so_far[i] += 0.5 * h * (_rate(trail, j, i, rtt) + _rate(trail, j + 1, i, rtt))
            j += 1
        after, h = t - trail[j, 0], trail[j + 1, 0] - trail[j, 0]
        for i in range(n + 1):
            step = trail[j + 1, 1 + i] - trail[j, 1 + i]
            values[i, k] = trail[j, 1 + i] + after / h * step
        for i in range(n):
            lost = rounded((out.losses[i] - before.losses[i]) / all_cycles)  # in each cycle
            values[n + 1 + i, k] = before.losses[i] + passed * lost
            first, last = _rate(trail, j, i, rtt), _rate(trail, j + 1, i, rtt)
            within = so_far[i] + delivered_within(after, h, first, last)
            delivered = (out.delivered[i] - before.delivered[i]) / all_cycles  # in each cycle
            values[2 * n + 1 + i, k] = before.delivered[i] + passed * delivered + within
        k += 1
    samples.following[0] = k


@jit
def skip_cycles(
    y: State, out: Tally, mark: State, before: Tally, until: float, known: bool
) -> float:
    """Skip whole cycles if the state after an overflow equals that after the previous overflow.

    A cycle lasts from one overflow to the next. The states are equal if the baseRTTs are, if no
    window differs by more than the fraction ``REPEATS``, and if no flow is in slow start. The clock
    and the integrals then move on as if the cycle had been repeated as often as it fits before the
    time ``until``. ``known`` is false if a user wants samples in these cycles, but not all steps of
    the cycle are stored, from which they could be computed. Nothing is skipped then.

    ``y`` and ``out`` are the present state and integrals. ``mark`` and ``before`` are those after
    the previous overflow. The function replaces ``mark`` by the present state, and ``begin_cycle``
    replaces ``before``. Returns the duration of the cycle in seconds.
    """
    period: float = y.now[TIME] - mark.now[TIME]
    same = True
    for i in range(y.window.size):
        same = same and abs(y.window[i] - mark.window[i]) <= REPEATS * y.window[i]
        same = same and y.over_estimate[i] == mark.over_estimate[i] and not y.in_slow_start[i]
    # the number of whole cycles that are skipped; each adds as much as the last one
    cycles = max(0.0, np.floor((until - y.now[TIME]) / period)) if same and known else 0.0
    y.now[TIME] += cycles * period
    mark.now[TIME] = y.now[TIME]
    for i in range(y.window.size):
        y.recovery_until[i] += cycles * period
        out.delivered[i] += cycles * (out.delivered[i] - before.delivered[i])
        out.window[i] += cycles * (out.window[i] - before.window[i])
        out.active[i] += cycles * (out.active[i] - before.active[i])
        out.losses[i] += np.int64(cycles) * (out.losses[i] - before.losses[i])
        mark.window[i], mark.over_estimate[i] = y.window[i], y.over_estimate[i]
    for k in (WAITED, SPAN):
        out.queue[k] += cycles * (out.queue[k] - before.queue[k])
    return period


@jit
def begin_cycle(out: Tally, before: Tally) -> None:
    """Copy the integrals ``out`` into ``before``, because the next cycle begins."""
    for i in range(out.delivered.size):
        before.delivered[i], before.window[i] = out.delivered[i], out.window[i]
        before.active[i], before.losses[i] = out.active[i], out.losses[i]
    for k in (WAITED, SPAN):
        before.queue[k] = out.queue[k]
