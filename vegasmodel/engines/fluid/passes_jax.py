"""Advances one scenario by one step, with JAX: the passes of the loop in ``batch_jax.py``.

``windows.py`` has the equations. They describe the windows of senders that share one link, without
feedback delay. The queueing delay at the end of a step is the one at which the rates of the flows
add up to the capacity. A fixed number of Newton iterations finds this queueing delay.

Usually a step is a fraction of the scenario's shortest round trip. While the queueing delay changes
slowly, a step may be longer. Such a long step ends, at the latest, when the backlog of a Vegas flow
is expected to reach alpha or beta. Within a step of the usual length the backlog may pass alpha or
beta. This causes a small error, so averages differ slightly from those of the engine ``threads``,
whose steps end when a backlog reaches alpha or beta. In slow start a window grows so fast that the
error would not be small. So if a backlog reaches gamma within a step, which ends slow start, the
next pass repeats the step with half its length, down to a small part of it (``SHORTEST``).

A step must end when a queue forms, the buffer overflows, a flow starts or stops, or a fast recovery
ends. It is not known in advance when a queue forms or the buffer overflows. If one of these two
events happens within a step, the next pass repeats the step, so that it ends at the event.

Many functions have the same arguments. ``p`` holds the properties of the flows of one scenario
(``records.Flows``), and ``y`` holds the scenario's state. ``c`` is the capacity in pkt/s.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from vegasmodel.engines.fluid.repeats import REPEATS
from vegasmodel.engines.fluid.slow_start import TRAIN_LENGTH
from vegasmodel.engines.fluid.windows import STEP_ERROR
from vegasmodel.laws.vegas import LEAST_WINDOW, PART_KEPT

if TYPE_CHECKING:
    from vegasmodel.engines.fluid.records import Batch, Flows

# A step with ``fraction`` = 1 may change s by these parts of T + s and of s - x (``_slowly``).
TRIP, GAP = 2.0**-6, 2.0**-5
ITERATIONS = 6  # of Newton's method in a step (``_solve``)
SHORTEST = 2.0**-8  # part of a step: the shortest step to which the end of a slow start halves it

Array = Any


class _Totals(NamedTuple):
    """Sums and time integrals since warmup, [flow] or scalars, from which averages are computed."""

    delivered: Array  # packets
    window: Array  # integral of W dt
    active: Array  # seconds
    lost: Array  # cuts of the window at overflows
    queue: Array  # integral of c s dt
    time: Array  # seconds


class _Mark(NamedTuple):
    """The state just after an overflow.

    It is compared with the state just after the next overflow.  If both are equal, the cycle of the
    windows repeats.
    """

    t: Array  # time of the overflow, seconds
    window: Array
    over_estimate: Array
    totals: _Totals  # up to this time


class Moving(NamedTuple):
    """The state of one scenario, which each step (``one_pass``) advances.

    ``t`` is the time and ``s`` the queueing delay, both in seconds. The fields from ``active`` to
    ``recovery_until`` have one entry per flow; ``active`` says whether the flow sends, and
    ``records.State`` explains the others.  The other fields up to ``slowly`` are single values.
    """

    t: Array
    s: Array
    active: Array
    window: Array
    over_estimate: Array
    in_slow_start: Array
    doubled: Array
    doubling_from: Array
    recovery_until: Array
    full: Array  # the next step ends when s reaches ``level``
    level: Array  # 0: a queue forms at the end of that step; s_max: the buffer overflows there
    begun: Array  # a queue formed at the end of the last step
    jumped: Array  # windows have jumped: the next pass only computes s for them
    stuck: Array  # the simulation has failed: cutting windows cannot end an overflow
    slowly: Array  # seconds: longest step while s changes slowly; 0: steps of the usual length
    soon: Array  # seconds until a backlog is expected to reach gamma, which ends a slow start
    totals: _Totals
    mark: _Mark


def _threshold(e: Array, T: Array, x: Array, s: Array, by_base_rtt: Array) -> tuple[Array, Array]:
    """The window W at which Vegas's backlog is e packets, and its derivative dW/ds.

    T is the propagation delay, s the queueing delay, and x the flow's over-estimate of T, all in
    seconds. So the RTT is T + s, and Vegas's baseRTT is T + x. The backlog is W (s - x)/(T + s),
    so W = e (T + s)/(s - x). In Linux (``by_base_rtt`` is True) the backlog is W (s - x)/(T + x),
    so W = e (T + x)/(s - x). In both cases dW/ds = -e (T + x)/(s - x)^2, because the two windows
    differ by e: (T + s)/(s - x) = (T + x)/(s - x) + 1.

    If s <= x, Vegas sees no backlog at any window. An infinite e stands for no threshold. In both
    cases W is infinite and the derivative 0. ``windows.threshold`` computes the same without JAX.
    """
    reached = (s > x) & (e < jnp.inf)
    # JAX also evaluates the formulas where they do not hold; there 1 avoids a division by 0
    gap, e = jnp.where(reached, s - x, 1.0), jnp.where(reached, e, 1.0)
    base_rtt = T + x
    window = jnp.where(reached, e * jnp.where(by_base_rtt, base_rtt, T + s) / gap, jnp.inf)
    return window, jnp.where(reached, -e * base_rtt / (gap * gap), 0.0)


def _ends(p: Flows, y: Moving) -> Array:
    """The backlogs at which windows cease to grow: alpha, or in slow start gamma.

    In slow start they are infinite where ``_double`` decides whether slow start ends.
    """
    return jnp.where(y.in_slow_start, jnp.where(p.in_trains, jnp.inf, p.gamma), p.lower)


class _Motion(NamedTuple):
    """Whether each flow's window grows or shrinks, and the window at which this ends (``goal``).

    ``goal`` is the window with which Vegas's backlog equals one of its thresholds.  It depends on
    the queueing delay.  When the window has reached ``goal``, the backlog may stay at the
    threshold, while the window changes with ``goal``.  The window then slides on the threshold
    (``slides``).
    """

    moves: Array  # 1: grows, -1: shrinks
    slides: Array  # bool
    goal: Array  # the window at the threshold that it slides on or is about to reach
    goal_by_s: Array  # derivative of ``goal`` with respect to the queueing delay


def _ahead(p: Flows, y: Moving, s1: Array, h: Array) -> tuple[Array, Array, Array, _Motion]:
    """All flows' windows at the end of a step of length h, if the queueing delay is then s1.

    A window rests, or it moves in one of six ways: it grows throughout the step (``grows``), until
    it reaches the lower threshold of Vegas (``on_low``), or until it reaches ``max_window``
    (``capped``); or it shrinks throughout the step (``falls``), down to the upper threshold
    (``on_high``), or down to ``min_window`` (``floored``). JAX computes the result of each way for
    all flows, and ``choose`` then selects.

    Returns the windows, their derivatives with respect to s1 and to h, and a ``_Motion`` that says
    how the windows move.  Without JAX, ``windows.window_after`` computes this for one flow.
    """
    W = y.window
    # the step has h ``pace`` round trips; ``bend`` is the derivative of this number by s1
    pace = 0.5 * (1.0 / (p.rtt + y.s) + 1.0 / (p.rtt + s1))
    bend = -0.5 * h / ((p.rtt + s1) * (p.rtt + s1))
    # the window that grows throughout the step (``up``), and its growth per round trip at the end
    surge = jnp.exp(jnp.where(y.in_slow_start, p.slow_start_growth * h * pace, 0.0))
    rate = jnp.where(y.in_slow_start, W * surge * p.slow_start_growth, p.growth)
    up = jnp.where(y.in_slow_start, W * surge, W + p.growth * h * pace)
    low, low_by_s = _threshold(_ends(p, y), p.rtt, y.over_estimate, s1, p.backlog_over_base)
    high, high_by_s = _threshold(p.upper, p.rtt, y.over_estimate, s1, p.backlog_over_base)
    down = W - h * pace
    below = jnp.minimum(low, p.max_window) > W  # the window has to grow
    grows = below & (up < jnp.minimum(low, p.max_window))  # it grows throughout the step
    on_low = below & ~grows & (low <= p.max_window)  # it reaches the lower threshold
    met, met_by_s, met_by_h = _met(p, y, on_low, low, low_by_s, up, rate, pace, bend)
    capped = below & ~grows & ~on_low  # it reaches ``max_window``
    above = ~below & ~y.in_slow_start & (high < W) & (p.min_window < W)  # it has to shrink
    on_high = above & (high >= jnp.maximum(down, p.min_window))  # it reaches the upper threshold
    falls = above & ~on_high & (down > p.min_window)  # it shrinks throughout the step
    floored = above & ~on_high & ~falls  # it reaches ``min_window``
    free = y.active & (y.t >= y.recovery_until)  # the flow is active and not in fast recovery

    def choose(
        up: Array, low: Array, cap: Array, high: Array, down: Array, floor: Array, rest: Array
    ) -> Array:
        """For each flow, the argument that belongs to the way in which its window moves.

        The arguments stand for ``grows``, ``on_low``, ``capped``, ``on_high``, ``falls`` and
        ``floored``. The last one, ``rest``, is for all other cases, and for a flow that is not
        ``free`` to change its window.
        """
        moved = jnp.where(grows, up, jnp.where(on_low, low, jnp.where(capped, cap, rest)))
        moved = jnp.where(on_high, high, jnp.where(falls, down, jnp.where(floored, floor, moved)))
        return jnp.where(free, moved, rest)

    new = choose(up=up, low=met, cap=p.max_window, high=high, down=down, floor=p.min_window, rest=W)
    by_s = choose(
        up=rate * bend, low=met_by_s, cap=0.0, high=high_by_s, down=-bend, floor=0.0, rest=0.0
    )
    by_h = choose(up=rate * pace, low=met_by_h, cap=0.0, high=0.0, down=-pace, floor=0.0, rest=0.0)
    moves = jnp.where(free, 1.0 * grows - falls, 0.0)
    upward = jnp.where(moves == 0, on_low | (~on_high & (s1 < y.s)), moves > 0)
    goal, goal_by_s = jnp.where(upward, low, high), jnp.where(upward, low_by_s, high_by_s)
    return new, by_s, by_h, _Motion(moves, free & (on_low | on_high), goal, goal_by_s)


def _met(
    p: Flows, y: Moving, on_low: Array, low: Array, low_by_s: Array, up: Array, rate: Array,
    pace: Array, bend: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The windows at the end of a step in which Vegas's backlog reaches a threshold from below.

    Returns the windows, and their derivatives with respect to two numbers: the queueing delay s1 at
    the end of the step, and the length h of the step. The caller uses the results only of flows for
    which ``on_low`` is true.

    The threshold is alpha, or gamma in slow start. The window W grows until the backlog reaches it.
    In the rest of the step there are two cases. If alpha = beta, W changes with the queueing delay
    so that the backlog stays at the threshold. If alpha < beta (``stays``), W keeps the value that
    it had when the backlog reached the threshold.

    For ``stays`` we need the time at which the backlog reaches the threshold. Let L be the window
    with which the backlog equals the threshold, and g = W/L - 1. At the start of the step
    g = g0 < 0. If W grew throughout the step, g would be g1 > 0 at its end. At the wanted time g is
    0. By linear interpolation this is after the fraction ``part`` = -g0/(g1 - g0) of the step.

    ``low`` is L at the end of the step, and ``low_by_s`` its derivative by s1. ``up`` is the window
    if it grew throughout the step, and ``rate`` its growth per round trip at the end. The step has
    h ``pace`` round trips, and ``bend`` is the derivative of this number by s1.
    """
    W = y.window
    stays = on_low & (p.lower < p.upper)
    # the RTT at the start of the step, in Linux the baseRTT: Vegas divides by it
    divisor = p.rtt + jnp.where(p.backlog_over_base, y.over_estimate, y.s)
    g0 = W * (y.s - y.over_estimate) / (_ends(p, y) * divisor) - 1.0
    # JAX computes all formulas for all flows: other numbers where ``stays`` is false, so that no
    # division by 0 occurs
    g0, g1 = jnp.where(stays, g0, -1.0), jnp.where(stays, up / low - 1.0, 1.0)
    part = -g0 / (g1 - g0)
    part_by_up = g0 / ((g1 - g0) * (g1 - g0)) / jnp.where(stays, low, 1.0)
    gain = up - W
    met = jnp.where(stays, W + gain * part, low)
    # the derivatives of ``met`` by the number of round trips in the step, and by s1 through L
    by_trips = rate * (part + gain * part_by_up)
    by_L = jnp.where(stays, gain * part_by_up * -up * low_by_s / jnp.where(stays, low, 1.0), 0.0)
    met_by_s = jnp.where(stays, by_trips * bend + by_L, low_by_s)
    return met, met_by_s, jnp.where(stays, by_trips * pace, 0.0)


def _excess(p: Flows, c: Array, y: Moving, s1: Array, h: Array) -> tuple[Array, Array, Array]:
    """The sum of the flows' rates at the end of a step minus the capacity, in pkt/s.

    The step has the length h, and the queueing delay is s1 at its end.  While there is a queue, the
    rates add up to the capacity, and the result is 0.  ``_solve`` looks for the s1, or the h, with
    the result 0.  Also returns the derivatives of the result with respect to s1 and to h.
    """
    W, by_s, by_h, _ = _ahead(p, y, s1, h)
    rtt = p.rtt + s1
    total = jnp.sum(W / rtt) - c
    return total, jnp.sum(by_s / rtt - W / (rtt * rtt)), jnp.sum(by_h / rtt)


def _solve(p: Flows, case: Batch, y: Moving, h: Array) -> tuple[Array, Array]:
    """The queueing delay at the end of a step, and the length of the step.

    If the flag ``y.full`` is false, the length is h, and the function computes the delay.  If it is
    true, the step ends at the delay ``y.level``, and the function computes the length.  Without
    JAX, ``windows.delay_after`` and ``windows.time_to`` do this.
    """
    c, level, full = case.capacity, y.level, y.full
    empty = ~full & (_excess(p, c, y, jnp.zeros_like(y.s), h)[0] <= 0)

    guess = jnp.where(full, 0.5 * h, y.s)
    low, high = jnp.zeros_like(h), jnp.where(full, h, jnp.inf)
    done = empty
    for _ in range(ITERATIONS):  # unrolled: one kernel and no memory traffic between iterations
        f, by_s, by_h = _excess(p, c, y, jnp.where(full, level, guess), jnp.where(full, guess, h))
        slope = jnp.where(full, by_h, by_s)
        before = (f > 0) != full  # the root lies above the guess
        low, high = jnp.where(before, guess, low), jnp.where(before, high, guess)
        new = jnp.where(slope != 0, guess - f / jnp.where(slope != 0, slope, 1.0), low)
        done = done | (~full & ~y.jumped & (f > 0) & (guess > case.s_max))  # the buffer overflows
        # in place of a Newton step that leaves low .. high; without an upper limit, a larger guess
        half = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * low + 1.0 / c)
        inside = ((low < new) & (new < high)) | (jnp.abs(new - guess) <= STEP_ERROR * guess)
        guess = jnp.where(done, guess, jnp.where(inside, new, half))
    s1 = jnp.where(full, level, jnp.where(empty, 0.0, guess))
    return s1, jnp.where(full, guess, h)


def _admit(p: Flows, y: Moving) -> Moving:
    """Start the flows whose start time has come, and stop those whose stop time has come.

    If a flow starts or stops, the sum of the windows jumps, and the flag ``jumped`` is set.  The
    next call of ``one_pass`` then computes the queueing delay for the new windows.
    """
    sends = (p.start <= y.t) & (y.t < p.stop)
    fresh, gone = sends & ~y.active, y.active & ~sends  # the flows that start, and those that stop
    return y._replace(
        active=sends,
        window=jnp.where(fresh, p.initial_window, jnp.where(gone, 0.0, y.window)),
        # the queueing delay that a new flow finds counts as propagation delay; the shortest one is
        # ``less_found`` seconds below the mean
        over_estimate=jnp.where(
            fresh,
            jnp.where(p.measures_base, jnp.maximum(y.s - p.less_found, 0.0), p.over_estimate),
            y.over_estimate,
        ),
        in_slow_start=jnp.where(fresh, p.slow_start_growth > 0, y.in_slow_start),
        # slow start in trains: the window and the delay at its first doubling (``_double``)
        doubled=jnp.where(
            fresh, jnp.where(p.in_trains, 2.0 * p.initial_window, jnp.inf), y.doubled
        ),
        doubling_from=jnp.where(fresh, y.s, y.doubling_from),
        jumped=y.jumped | jnp.any(fresh | gone),
        slowly=jnp.where(jnp.any(fresh | gone), 0.0, y.slowly),
    )


def _lose(losers: int, p: Flows, warmup: Array, due: Array, y: Moving, grows: Array) -> Moving:
    """If the step has ended in an overflow, cut windows.

    A cycle lasts from one overflow to the next. If cycles repeat, many are skipped at once.

    ``losers`` says which windows are cut: those that grow (0), all (1), or those of the loss-based
    flows that grow (2). ``grows`` says which windows grow. ``warmup`` is the end of the warm-up.
    Cycles are skipped only up to the time ``due``: the next start or stop of a flow, or the end of
    the warm-up or of the run.
    """
    hit = jnp.ones_like(grows) if losers == 1 else grows & (losers == 0 or ~p.keeps_backlog)
    # If ``y.full``, the step has ended when the queueing delay reached ``y.level``. This is 0 if a
    # queue forms, and above 0 if the buffer overflows.
    spilt = y.full & (y.level > 0)
    hit = hit & y.active & spilt
    cut = jnp.where(hit, jnp.maximum(y.window * p.decrease, p.min_window), y.window)
    lost = y._replace(
        stuck=y.stuck | (spilt & ~jnp.any(cut < y.window)),
        window=cut,
        in_slow_start=y.in_slow_start & ~hit,
        recovery_until=jnp.where(hit, y.t + p.recovery * p.rtt, y.recovery_until),
        totals=y.totals._replace(lost=y.totals.lost + (hit & (y.t > warmup))),
        slowly=jnp.where(spilt, 0.0, y.slowly),
        jumped=y.jumped | spilt,
        begun=y.full & ~spilt,
        full=jnp.zeros_like(y.full),
    )
    return _skip(warmup, due, lost, spilt)


def _skip(warmup: Array, due: Array, y: Moving, spilt: Array) -> Moving:
    """Skip whole cycles of the windows if they repeat; a cycle lasts from one overflow to the next.

    ``spilt`` says whether the step has ended in an overflow; nothing is skipped otherwise.  Cycles
    repeat if the state now equals the state just after the previous overflow.  Without JAX,
    ``repeats.skip_cycles`` does this.

    No cycle is skipped that would end after the time ``due``, or that contains the end of the
    warm-up (``warmup``).
    """
    # the state now, and that just after the previous overflow
    now, then = _Mark(y.t, y.window, y.over_estimate, y.totals), y.mark
    near = jnp.abs(now.window - then.window) <= REPEATS * now.window
    near = ~y.active | (near & (now.over_estimate == then.over_estimate) & ~y.in_slow_start)
    repeats = spilt & jnp.all(near) & ((then.t < warmup) == (now.t < warmup))
    period = now.t - then.t
    # how many cycles are skipped, and the totals after them: each cycle adds the same to the totals
    cycles = jnp.where(repeats, jnp.floor((due - now.t) / jnp.where(repeats, period, 1.0)), 0.0)
    totals = jax.tree.map(lambda a, b: a + cycles * (a - b), now.totals, then.totals)
    now = now._replace(t=now.t + cycles * period, totals=totals)
    return y._replace(
        t=now.t,
        recovery_until=y.recovery_until + cycles * period,
        totals=totals,
        mark=jax.tree.map(lambda a, b: jnp.where(spilt, a, b), now, then),
    )


def _double(p: Flows, c: Array, y: Moving, moved: Moving) -> Moving:
    """End the doublings of windows that end in a step, which leads from ``y`` to ``moved``.

    When the window of a Vegas flow in slow start has doubled, Vegas compares its backlog with
    gamma. If the backlog is larger, slow start ends and the window is reduced. The flow's packets
    arrive as a train, just before which the queue is shortest. So all flows may measure a smaller
    baseRTT then. Without JAX, ``slow_start.double`` does this, and its module explains it.
    """
    # ``due``: the flows whose windows have doubled, to ``W``; the others get harmless numbers
    due = y.active & y.in_slow_start & (moved.window >= y.doubled)
    W, before = jnp.where(due, y.doubled, 1.0), jnp.where(due, y.window, 0.5)
    # which part of the step was over when the window had doubled, as it grows exponentially
    part = jnp.log(W / before) / jnp.log(jnp.where(due, moved.window, 2.0) / before)
    # the queueing delays at the end of the doubling and at its beginning
    s, r = y.s + (moved.s - y.s) * part, y.doubling_from

    def one_more(a: tuple[Array, Array]) -> tuple[Array, Array]:
        """Compute the queueing delay just before the train of one flow in ``to_do`` arrives.

        ``least`` is the least of these delays so far. ``slow_start.shortest`` has the equations.
        """
        to_do, least = a
        i = jnp.argmax(to_do)  # the first flow for which this is still to do
        trip, others = p.rtt[i] + s[i], p.rtt + s[i]  # the RTT of flow i, and those of all flows
        part = others / trip % 1.0  # q - floor(q)
        # which part of the gap in each other flow's packets has reached the queue
        come = jnp.minimum(1.0, (1.0 - part) * trip * c / (TRAIN_LENGTH * W[i]))
        # what is missing in the queue is W/c times the sum of the numbers in ``gap``
        gap = moved.window / others / c * jnp.maximum(part - 1.0 + come, 0.0)
        missing = jnp.sum(jnp.where(y.active & (jnp.arange(gap.size) != i), gap, 0.0))
        return to_do.at[i].set(False), jnp.minimum(least, s[i] - W[i] / c * missing)

    _, least = jax.lax.while_loop(lambda a: jnp.any(a[0]), one_more, (due, moved.s))
    # the mean queueing delay of the packets, Vegas's backlog, and whether slow start ends
    m = 0.5 * (r + s) + 0.5 * jnp.maximum(0.5 * W / c - jnp.maximum(s - r, 0.0), 0.0)
    backlog = W * (m - y.over_estimate) / (p.rtt + m)
    ends = due & (jnp.floor(backlog + 0.5) > p.gamma)
    low = jnp.minimum(moved.over_estimate, jnp.maximum(least - p.less_found, 0.0))
    return moved._replace(
        window=jnp.where(ends, jnp.maximum(PART_KEPT * W, LEAST_WINDOW), moved.window),
        in_slow_start=moved.in_slow_start & ~ends,
        doubled=jnp.where(due, 2.0 * W, y.doubled),
        doubling_from=jnp.where(due, s, r),
        over_estimate=jnp.where(p.measures_base & y.active, low, moved.over_estimate),
        jumped=moved.jumped | jnp.any(ends),
        slowly=jnp.where(jnp.any(ends), 0.0, moved.slowly),
    )


def _slowly(p: Flows, y: Moving, fraction: Array, motion: _Motion) -> tuple[Array, Array]:
    """How long the next step may be, in seconds, while the queueing delay changes slowly.

    The slower the delay changes, the longer the step may be (``events.horizon`` gives the rule).
    The first result is this length, but at most the time after which a window is expected to reach
    a threshold of Vegas's backlog.  It is 0 if a flow is in slow start: the step then has its usual
    length or less.

    The second result is the time after which the backlog of a flow in slow start is expected to
    reach gamma, which ends slow start; it is infinite if there is no such flow.
    """
    # ``speed``: the time derivative of each window that grows or shrinks, in pkt/s; ``slope``: the
    # derivative by the queueing delay of a window that slides on a threshold; ``drift``: the time
    # derivative of the queueing delay (``events.drift`` derives it)
    per = 1.0 / (p.rtt + y.s)
    growth = jnp.where(y.in_slow_start, p.slow_start_growth * y.window, p.growth)
    speed = jnp.where(motion.moves > 0, growth, motion.moves) * per
    slope = jnp.where(motion.slides, motion.goal_by_s, 0.0)
    drift = jnp.sum(speed * per) / jnp.sum(jnp.where(y.active, (y.window * per - slope) * per, 0.0))
    drift = jnp.where(y.s > 0, drift, 0.0)
    # the delay may change by ``fraction`` times the smallest ``scale``
    scale = jnp.where(motion.slides, GAP * (y.s - y.over_estimate), TRIP * (p.rtt + y.s))
    longest = fraction * jnp.min(jnp.where(y.active, scale, jnp.inf)) / jnp.abs(drift)
    # seconds after which each window meets the window at which its backlog is at the threshold
    meets = (motion.goal - y.window) / (speed - motion.goal_by_s * drift)
    meets = jnp.where(y.active & ~motion.slides & (meets > 0), meets, jnp.inf)
    longest = jnp.fmin(jnp.where(drift == 0, jnp.inf, longest), jnp.min(meets))
    soon = jnp.min(jnp.where(y.in_slow_start, meets, jnp.inf))
    return jnp.where(jnp.any(y.active & y.in_slow_start), 0.0, longest), soon


def _tally(case: Batch, y: Moving, new: Array, s1: Array, length: Array) -> _Totals:
    """The totals after a step of ``length`` seconds, by the trapezoidal rule.

    The step ends with the windows ``new`` and the queueing delay ``s1``. A step before the end of
    the warm-up adds nothing. Without JAX, ``tally.tally_step`` computes this.
    """
    p, before = case.flows, y.totals
    warm = jnp.where(y.t >= case.warmup, 1.0, 0.0)
    counts = jnp.where(y.active, 0.5 * length * warm, 0.0)
    rate = y.window / (p.rtt + y.s) + new / (p.rtt + s1)
    return before._replace(
        delivered=before.delivered + counts * rate,
        window=before.window + counts * (y.window + new),
        active=before.active + 2 * counts,
        queue=before.queue + 0.5 * length * warm * case.capacity * (y.s + s1),
        time=before.time + length * warm,
    )


def one_pass(losers: int, case: Batch, fraction: Array, y: Moving) -> Moving:
    """Make one pass of the loop that advances a scenario; returns the new state.

    ``losers`` says which flows lose packets at an overflow (``_lose``). ``fraction`` is the usual
    length of a step divided by the shortest round trip.

    - Usually a pass makes one step.
    - If a queue forms or the buffer overflows within the step, the pass discards the step.  The
      next pass makes a step that ends at this event.
    - If a backlog reaches gamma within the step, so that slow start ends, the pass discards the
      step.  The next pass makes a step of half the length.
    - After windows have jumped (cuts, starts, stops), a pass only computes the queueing delay for
      the new windows.
    """
    p, c = case.flows, case.capacity

    def next_of(*times: Array) -> Array:
        """The earliest of these times that is still to come."""
        later = [jnp.min(jnp.where(a > y.t, a, jnp.inf)) for a in times]
        return functools.reduce(jnp.minimum, later)

    # a step of at most ``h`` seconds: it takes ``length``, and the queueing delay is then ``s1``
    due = next_of(p.start, p.stop, case.warmup, case.duration)
    until = jnp.minimum(due, next_of(y.recovery_until))
    # the shortest RTT; a quarter of the RTT in slow start, because the window then grows fast
    shortest = jnp.min(
        jnp.where(y.active, (p.rtt + y.s) * jnp.where(y.in_slow_start, 0.25, 1.0), jnp.inf)
    )
    left = until - y.t
    # a step is longer while s changes slowly, and shorter if slow start is about to end
    longest = jnp.maximum(fraction * shortest, y.slowly)
    least = SHORTEST * longest
    longest = jnp.minimum(longest, jnp.maximum(y.soon, least))
    h = jnp.where(y.jumped, 0.0, jnp.minimum(longest, left))
    s1, length = _solve(p, case, y, h)
    begins = (y.s == 0) & (s1 > 0) & ~y.begun  # a queue forms within the step
    cut = ~y.full & ~y.jumped & ((s1 > case.s_max) | begins)  # the step is discarded
    # the state at the end of the step
    new, _, _, motion = _ahead(p, y, s1, length)
    ended = jnp.any(y.active & y.in_slow_start & (motion.moves <= 0))  # a slow start, at gamma
    halved = ended & ~cut & ~y.full & ~y.jumped & (length > least)  # the step is discarded, too
    t = jnp.where(~y.jumped & (length == left), until, y.t + length)
    moved = y._replace(
        t=t,
        s=s1,
        window=new,
        in_slow_start=y.in_slow_start & (motion.moves > 0),
        over_estimate=jnp.where(
            p.measures_base & y.active,
            jnp.minimum(y.over_estimate, jnp.maximum(s1 - p.less_found, 0.0)),
            y.over_estimate,
        ),
        totals=_tally(case, y, new, s1, length),
    )
    # after an event, a step of the usual length shows how windows and queue move on
    event = y.full | (length == left) | jnp.any(y.in_slow_start & ~moved.in_slow_start)
    slowly, soon = _slowly(p, moved, fraction, motion)
    moved = moved._replace(slowly=jnp.where(event, 0.0, slowly), soon=soon)
    grows, doubled = motion.moves > 0, _double(p, c, y, moved)
    grows &= ~(moved.in_slow_start & ~doubled.in_slow_start)  # such a window was just reduced
    moved = _admit(p, _lose(losers, p, case.warmup, due, doubled, grows))
    # the three results of a pass: after a jump, for a discarded step, and for a step that is made
    settled = y._replace(s=s1, jumped=jnp.zeros_like(y.jumped), stuck=y.stuck | (s1 >= case.s_max))
    again = y._replace(
        full=cut,
        level=jnp.where(begins, 0.0, case.s_max),
        soon=jnp.where(halved, 0.5 * length, y.soon),
    )
    after: Moving = jax.tree.map(
        lambda a, b, d: jnp.where(y.jumped, a, jnp.where(cut | halved, b, d)),
        settled,
        again,
        moved,
    )
    return after


def begin(case: Batch) -> Moving:
    """The state of one scenario before the first pass of the loop."""
    p = case.flows
    none, no = jnp.zeros_like(p.rtt), jnp.zeros(p.rtt.shape, bool)
    zero, false = jnp.zeros_like(case.capacity), jnp.zeros((), bool)
    totals = _Totals(none, none, none, none, zero, zero)
    mark = _Mark(zero - 1.0, none, none, totals)  # no overflow yet: the time -1
    return _admit(
        p,
        Moving(
            t=zero,
            s=zero,
            active=no,
            window=none,
            over_estimate=jnp.full_like(none, jnp.inf),
            in_slow_start=no,
            doubled=jnp.full_like(none, jnp.inf),
            doubling_from=none,
            recovery_until=none,
            full=false,
            level=zero,
            begun=false,
            jumped=false,
            stuck=false,
            slowly=zero,
            soon=zero + jnp.inf,
            totals=totals,
            mark=mark,
        ),
    )


def runs(case: Batch, y: Moving) -> Array:
    """Whether the scenario still needs passes of the loop: it has neither failed nor ended."""
    return (y.t < case.duration) & ~y.stuck
