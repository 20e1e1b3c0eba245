"""The engine of ``batch.py`` on JAX: the self-clocked fluid of ``windows.py``, jit and vmap.

All scenarios take their steps together, each of its own length, a part of its shortest round trip;
one pass of the loop is one solution of (W1) at the end of a step, by a fixed number of bracketed
Newton iterations.  What costs a second solution is put off to the next pass: a step in which the
queue begins or overflows is solved again for the time of that, a jump for the delay after it.
Those, starts, stops and the ends of fast recovery are stepped upon; where a window meets a
threshold is not, so that averages differ from those of the other engine by the step's error.

float64 holds inside, whatever JAX's configuration, which is not changed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vegasmodel.metrics import Floats

if TYPE_CHECKING:
    from vegasmodel.fluid.batch import Batch
    from vegasmodel.fluid.windows import Flows

TIGHT = 1e-14  # relative tolerance of the equation of a step
ITERATIONS = 6
CHUNK = 64  # scenarios that share a loop on a CPU, and wait for the one with the most passes

Array = Any


def average(cases: Batch, losers: int, step: float, chunk: int | None) -> tuple[Floats, ...]:
    """The columns of ``BatchRun``, [scenario, flow] or [scenario], in float64."""
    n = cases.capacity.size
    on_cpu = jax.default_backend() == "cpu"
    size = min(chunk or (CHUNK if on_cpu else n), n)
    # those with as many round trips to do share a chunk, so that none waits long for another
    order = np.argsort(cases.duration / np.min(cases.flows.rtt, axis=1), kind="stable")
    padded = np.concatenate([order, np.repeat(order[-1:], -n % size)])
    groups = padded.reshape(-1, size)

    def one(group: np.ndarray) -> list[np.ndarray]:
        # the scenario is the last axis here: it is the one that vector instructions run along
        part: Batch = jax.tree.map(lambda a: np.ascontiguousarray(a[group].T), cases)
        with jax.enable_x64(True):
            return [np.asarray(a) for a in _compiled(losers)(part, step)]

    with ThreadPoolExecutor(max_workers=os.cpu_count() if on_cpu else 1) as pool:
        parts = list(pool.map(one, groups[::-1]))[::-1]  # the longest first
    back = np.empty(n, dtype=np.int64)
    back[order] = np.arange(n)
    return tuple(
        np.concatenate(column, axis=-1)[..., back].T for column in zip(*parts, strict=True)
    )


@functools.cache
def _compiled(losers: int) -> Callable[[Batch, float], tuple[Array, ...]]:
    mapped = jax.vmap(functools.partial(_simulate, losers), in_axes=(-1, None), out_axes=-1)
    compiled: Callable[[Batch, float], tuple[Array, ...]] = jax.jit(mapped)
    return compiled


class _Moving(NamedTuple):
    """State of one scenario; arrays [flow], else scalars."""

    t: Array
    s: Array
    on: Array
    window: Array
    over: Array
    slow: Array
    held: Array
    full: Array  # the step in hand is to be solved for the time at which s is ``level``
    level: Array  # 0 where the queue begins, s_max where it overflows
    begun: Array  # the last step ended where the queue begins
    jumped: Array  # the delay is to be solved for the windows as they are
    stuck: Array
    delivered: Array
    integral: Array  # of the windows
    active: Array
    lost: Array
    queue: Array  # integral of c s
    time: Array  # since warmup


def _threshold(e: Array, rtt: Array, over: Array, s: Array, linux: Array) -> tuple[Array, Array]:
    """``windows.threshold``."""
    gap = s - over
    base = rtt + over
    reached = (gap > 0) & (e < jnp.inf)
    gap, e = jnp.where(reached, gap, 1.0), jnp.where(reached, e, 1.0)
    window = jnp.where(reached, e * jnp.where(linux, base, rtt + s) / gap, jnp.inf)
    return window, jnp.where(reached, -e * base / (gap * gap), 0.0)


def _ahead(p: Flows, y: _Moving, s1: Array, h: Array) -> tuple[Array, Array, Array, Array]:
    """``windows.ahead`` for all flows: window, its slopes in s1 and h, and whether it grows."""
    W = y.window
    pace = 0.5 * (1.0 / (p.rtt + y.s) + 1.0 / (p.rtt + s1))
    bend = -0.5 * h / ((p.rtt + s1) * (p.rtt + s1))
    surge = jnp.exp(jnp.where(y.slow, p.surge * h * pace, 0.0))
    rate = jnp.where(y.slow, W * surge * p.surge, p.climb)
    up = jnp.where(y.slow, W * surge, W + p.climb * h * pace)
    low, low_by_s = _threshold(jnp.where(y.slow, p.gamma, p.lower), p.rtt, y.over, s1, p.linux)
    high, high_by_s = _threshold(p.upper, p.rtt, y.over, s1, p.linux)
    down = W - h * pace
    below = jnp.minimum(low, p.cap) > W
    grows = below & (up < jnp.minimum(low, p.cap))
    on_low = below & ~grows & (low <= p.cap)
    # A window that meets a falling threshold on its way rests from there on: where the chord of
    # W/L crosses 1, with part = -g0/(g1 - g0) of the step done, g = W/L - 1.
    e = jnp.where(y.slow, p.gamma, p.lower)
    falling = on_low & (p.lower < p.upper)
    g0 = W * (y.s - y.over) / (e * (p.rtt + jnp.where(p.linux, y.over, y.s))) - 1.0
    g0, g1 = jnp.where(falling, g0, -1.0), jnp.where(falling, up / low - 1.0, 1.0)
    part = -g0 / (g1 - g0)
    turn = g0 / ((g1 - g0) * (g1 - g0)) / jnp.where(falling, low, 1.0)
    gain = up - W
    met = jnp.where(falling, W + gain * part, low)
    along = rate * (part + gain * turn)
    slide = jnp.where(falling, gain * turn * -up * low_by_s / jnp.where(falling, low, 1.0), 0.0)
    met_by_s = jnp.where(falling, along * bend + slide, low_by_s)
    met_by_h = jnp.where(falling, along * pace, 0.0)
    capped = below & ~grows & ~on_low
    above = ~below & ~y.slow & (high < W) & (p.floor < W)
    on_high = above & (high >= jnp.maximum(down, p.floor))
    falls = above & ~on_high & (down > p.floor)
    floored = above & ~on_high & ~falls
    free = y.on & (y.t >= y.held)

    def choose(
        up: Array, low: Array, cap: Array, high: Array, down: Array, floor: Array, rest: Array
    ) -> Array:
        moved = jnp.where(grows, up, jnp.where(on_low, low, jnp.where(capped, cap, rest)))
        moved = jnp.where(on_high, high, jnp.where(falls, down, jnp.where(floored, floor, moved)))
        return jnp.where(free, moved, rest)

    new = choose(up, met, p.cap, high, down, p.floor, W)
    by_s = choose(rate * bend, met_by_s, 0.0, high_by_s, -bend, 0.0, 0.0)
    by_h = choose(rate * pace, met_by_h, 0.0, 0.0, -pace, 0.0, 0.0)
    return new, by_s, by_h, grows & free


def _excess(p: Flows, c: Array, y: _Moving, s1: Array, h: Array) -> tuple[Array, Array, Array]:
    """``windows.excess``: (W1) at the end of a step, and its slopes in s1 and h."""
    W, by_s, by_h, _ = _ahead(p, y, s1, h)
    rtt = p.rtt + s1
    total = jnp.sum(W / rtt) - c
    return total, jnp.sum(by_s / rtt - W / (rtt * rtt)), jnp.sum(by_h / rtt)


def _solve(p: Flows, case: Batch, y: _Moving, h: Array) -> tuple[Array, Array]:
    """Delay and length of a step: ``windows.delay_after``, or ``time_to`` where it is full."""
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
        done = done | (~full & ~y.jumped & (f > 0) & (guess > case.s_max))
        half = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * low + 1.0 / c)
        inside = ((low < new) & (new < high)) | (jnp.abs(new - guess) <= TIGHT * guess)
        guess = jnp.where(done, guess, jnp.where(inside, new, half))
    s1 = jnp.where(full, level, jnp.where(empty, 0.0, guess))
    return s1, jnp.where(full, guess, h)


def _admit(p: Flows, y: _Moving) -> _Moving:
    """Start and stop flows that are due; the delay is to be settled then."""
    active = (p.start <= y.t) & (y.t < p.stop)
    fresh, gone = active & ~y.on, y.on & ~active
    first = jnp.minimum(p.floor, p.cap)
    return y._replace(
        on=active,
        window=jnp.where(fresh, first, jnp.where(gone, 0.0, y.window)),
        over=jnp.where(fresh, jnp.where(p.measured, y.s, p.over), y.over),
        slow=jnp.where(fresh, p.surge > 0, y.slow),
        jumped=y.jumped | jnp.any(fresh | gone),
    )


def _lose(losers: int, p: Flows, y: _Moving, grows: Array) -> _Moving:
    """``windows_march.lose``, where the step has ended in an overflow."""
    hit = jnp.ones_like(grows) if losers == 1 else grows & (losers == 0 or ~p.vegas)
    spilt = y.full & (y.level > 0)
    hit = hit & y.on & spilt
    cut = jnp.where(hit, jnp.maximum(y.window * p.decrease, p.floor), y.window)
    return y._replace(
        stuck=y.stuck | (spilt & ~jnp.any(cut < y.window)),
        window=cut,
        slow=y.slow & ~hit,
        held=jnp.where(hit, y.t + p.recovery * p.rtt, y.held),
        lost=y.lost + hit,
        jumped=y.jumped | spilt,
        begun=y.full & ~spilt,
        full=jnp.zeros_like(y.full),
    )


def _pass(losers: int, case: Batch, fraction: Array, y: _Moving) -> _Moving:
    """One pass: a step; or the same step cut at the overflow; or the delay after a jump."""
    p, c = case.flows, case.capacity
    later = [jnp.where(times > y.t, times, jnp.inf) for times in (p.start, p.stop, y.held)]
    until = functools.reduce(jnp.minimum, [jnp.min(times) for times in later], case.duration)
    until = jnp.where(case.warmup > y.t, jnp.minimum(until, case.warmup), until)
    shortest = jnp.min(jnp.where(y.on, (p.rtt + y.s) * jnp.where(y.slow, 0.25, 1.0), jnp.inf))
    left = until - y.t
    h = jnp.where(y.jumped, 0.0, jnp.minimum(fraction * shortest, left))
    s1, length = _solve(p, case, y, h)
    begins = (y.s == 0) & (s1 > 0) & ~y.begun
    cut = ~y.full & ~y.jumped & ((s1 > case.s_max) | begins)
    new, _, _, grows = _ahead(p, y, s1, length)
    t = jnp.where(~y.jumped & (length == left), until, y.t + length)
    counts = jnp.where(y.on & (y.t >= case.warmup), 0.5 * length, 0.0)
    rate = y.window / (p.rtt + y.s) + new / (p.rtt + s1)
    moved = y._replace(
        t=t,
        s=s1,
        window=new,
        slow=y.slow & grows,
        over=jnp.where(p.measured & y.on, jnp.minimum(y.over, s1), y.over),
        delivered=y.delivered + counts * rate,
        integral=y.integral + counts * (y.window + new),
        active=y.active + 2 * counts,
        queue=y.queue + jnp.where(y.t >= case.warmup, 0.5 * length * c * (y.s + s1), 0.0),
        time=y.time + jnp.where(y.t >= case.warmup, length, 0.0),
    )
    moved = _admit(p, _lose(losers, p, moved, grows))
    settled = y._replace(s=s1, jumped=jnp.zeros_like(y.jumped), stuck=y.stuck | (s1 >= case.s_max))
    again = y._replace(full=cut, level=jnp.where(begins, 0.0, case.s_max))
    after: _Moving = jax.tree.map(
        lambda a, b, d: jnp.where(y.jumped, a, jnp.where(cut, b, d)), settled, again, moved
    )
    return after


def _simulate(losers: int, case: Batch, fraction: Array) -> tuple[Array, ...]:
    """One scenario from 0 to its duration: the columns of ``BatchRun``."""
    p = case.flows
    none, no = jnp.zeros_like(p.rtt), jnp.zeros(p.rtt.shape, bool)
    zero, false = jnp.zeros_like(case.capacity), jnp.zeros((), bool)
    y = _Moving(
        zero, zero, no, none, jnp.full_like(none, jnp.inf), no, none, false, zero, false, false,
        false,
        none, none, none, none, zero, zero,
    )  # fmt: skip
    y = jax.lax.while_loop(
        lambda y: (y.t < case.duration) & ~y.stuck,
        functools.partial(_pass, losers, case, fraction),
        _admit(p, y),
    )
    failed = y.stuck | ~jnp.isfinite(jnp.sum(y.delivered))

    def known(values: Array) -> Array:
        return jnp.where(failed, jnp.nan, values)

    return (
        known(y.delivered / y.active),
        known(y.integral / y.delivered),
        known(jnp.where(p.vegas & jnp.isfinite(p.start), p.rtt + y.over, jnp.nan)),
        known(jnp.where(jnp.isfinite(p.start), y.lost, jnp.nan)),
        known(y.queue / y.time),
        ~failed,
    )
