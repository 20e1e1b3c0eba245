"""The engine ``jax`` of ``batch.py``: it simulates many scenarios at the same time with JAX.

Each pass of a loop advances all scenarios by one step (``passes_jax.py``). On a CPU each thread
runs such a loop for a chunk of scenarios. When some scenarios of a chunk have ended, others take
their places.

The computation uses float64 in any configuration of JAX, and does not change that configuration.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from vegasmodel.engines.fluid.passes_jax import Array, Moving, begin, one_pass, runs
from vegasmodel.metrics import Floats

if TYPE_CHECKING:
    from vegasmodel.engines.fluid.records import Batch

CHUNK = 64  # scenarios that share a loop on a CPU
PASSES = 256  # passes of a loop, after which new scenarios replace those that have ended
FOREVER = 2**62  # number of passes on a GPU: all scenarios end before so many


def average(cases: Batch, losers: int, step: float, chunk: int | None) -> tuple[Floats, ...]:
    """Simulate all scenarios of a batch; returns the arrays of which ``BatchRun`` consists.

    The arrays have the shape [scenario, flow] or [scenario]. ``losers`` says which flows lose
    packets at an overflow, as a number (``passes_jax._lose``). ``step`` is the usual length of a
    step divided by the shortest round trip. ``chunk`` is the number of scenarios that are simulated
    together.
    """
    n = cases.capacity.size
    on_cpu = jax.default_backend() == "cpu"
    size = min(chunk or (CHUNK if on_cpu else n), n)
    start, advance = _compiled(losers)
    # vector instructions run along the last axis, so this is the axis of the scenarios
    flat: Batch = jax.tree.map(lambda a: np.ascontiguousarray(a.T), cases)
    state: Any = None

    def advanced(group: np.ndarray) -> Any:
        """Advance the scenarios with the indices ``group``; returns their states.

        If there are fewer than ``size``, some are repeated, so that all calls have the same shape:
        JAX compiles a function again for each new shape.
        """
        padded = np.resize(group, size)

        def part(tree: Any) -> Any:
            """The entries of these scenarios in each array of ``tree``."""
            return jax.tree.map(lambda a: a[..., padded], tree)

        with jax.enable_x64(True):
            y = start(part(flat)) if state is None else part(state)
            y = advance(part(flat), step, y, PASSES if on_cpu else FOREVER)
            return jax.tree.map(lambda a: np.array(a)[..., : group.size], y)

    running = np.arange(n)  # indices of the scenarios whose runs have not ended
    with ThreadPoolExecutor(max_workers=os.cpu_count() if on_cpu else 1) as pool:
        while running.size:
            groups = np.split(running, range(size, running.size, size))
            parts = list(pool.map(advanced, groups))
            moved = jax.tree.map(lambda *a: np.concatenate(a, axis=-1), *parts)
            state = moved if state is None else jax.tree.map(_put(running), state, moved)
            running = running[runs(flat, state)[running]]
    return _columns(flat, state)


def _put(places: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Make a function that writes the new states of some scenarios into the array of all states.

    The function is called as ``put(values, some)``. ``values`` is an array of the state, whose last
    axis has an entry for each scenario. ``put`` overwrites the entries with the indices ``places``
    with the array ``some``, and returns ``values``.
    """

    def put(values: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Write ``some`` into ``values``."""
        values[..., places] = some
        return values

    return put


@functools.cache
def _compiled(
    losers: int,
) -> tuple[Callable[[Batch], Any], Callable[[Batch, float, Any, int], Any]]:
    """Two compiled functions: one makes the scenarios' initial states, the other advances them.

    They are called as ``begin_all(cases)`` and ``advance_all(cases, fraction, states, passes)``.
    The second makes a given number of passes of its loop, or fewer for a scenario whose run ends
    before. A pass of the loop usually makes one time step. The other passes only find out where the
    next step must end, or the queueing delay after windows have jumped (``one_pass``). Passes are
    counted, and not time, because all scenarios make their passes together, but steps differ in
    length.

    ``losers`` says which flows lose packets at an overflow (``passes_jax._lose``): it is 0, 1 or 2.
    The compiled code is for this number only.
    """

    def advance(case: Batch, fraction: Array, y: Moving, passes: Array) -> Moving:
        """Advance one scenario by this number of passes, or to the end of its run.

        ``y`` is its state. ``fraction`` is the usual length of a step divided by the shortest round
        trip.
        """
        # ``a`` is the state, and the number of passes so far
        moved: Moving = jax.lax.while_loop(
            lambda a: runs(case, a[0]) & (a[1] < passes),
            lambda a: (one_pass(losers, case, fraction, a[0]), a[1] + 1),
            (y, 0),
        )[0]
        return moved

    # ``vmap`` makes functions of one scenario into functions of many, which are entries along the
    # last axis of each array. ``fraction`` and ``passes`` are one number for all scenarios.
    begin_all = jax.vmap(begin, in_axes=-1, out_axes=-1)
    advance_all = jax.vmap(advance, in_axes=(-1, None, -1, None), out_axes=-1)
    return jax.jit(begin_all), jax.jit(advance_all)


def _columns(case: Batch, y: Moving) -> tuple[Floats, ...]:
    """The arrays of which ``BatchRun`` consists, computed from the final states of all scenarios.

    Their shape is [scenario, flow] or [scenario].
    """
    # in the states the last axis is that of the scenarios; the results have it first
    p, totals = case.flows, y.totals
    failed = y.stuck | ~np.isfinite(totals.delivered.sum(axis=0))
    real = np.isfinite(p.start)  # a flow that never starts only fills the array (``batch.pack``)
    with np.errstate(invalid="ignore", divide="ignore"):
        throughput = totals.delivered / totals.active
        rtt_mean = totals.window / totals.delivered
        base_rtt = np.where(p.keeps_backlog & real, p.rtt + y.over_estimate, np.nan)
        losses = np.where(real, totals.lost, np.nan)
        delivered = np.where(real, totals.delivered, np.nan)
        queue = totals.queue / totals.time
    columns = throughput, rtt_mean, base_rtt, losses, delivered, queue
    return (*(np.where(failed, np.nan, values).T for values in columns), ~failed)
