"""Draws the random start times and sizes of flows; ns-2 and ns-3 then simulate the same flows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.packets.engine import UNLIMITED
from vegasmodel.scenario import Flow, Member, Pareto, ParetoArrivals, Poisson, Run

__all__ = ["MAX_ARRIVALS", "sizes", "start", "times"]

MAX_ARRIVALS = 200_000  # most short flows of one entry of the scenario in a run

Integers = NDArray[np.int64]


def start(run: Run, member: Member, rng: np.random.Generator) -> float:
    """The start time of a flow in one run, s: its ``start`` in the scenario plus a random delay.

    The delay is uniform between 0 and the scenario's ``start_jitter``. A start later than the
    flow's ``stop`` is moved to ``stop``.
    """
    if not run.start_jitter:
        return member.start
    return min(member.start + float(rng.uniform(0.0, run.start_jitter)), member.stop)


def sizes(group: Flow, n: int, rng: np.random.Generator) -> Integers:
    """Draw the sizes of ``n`` flows in packets; -1 stands for a flow of infinite size.

    ``group`` is the entry of the scenario that describes these flows.  Its ``size`` is one size for
    all of them, or a Pareto distribution.  Sizes are rounded up to whole packets.
    """
    if isinstance(group.size, Pareto):
        shape = group.size.shape
        smallest = group.size.mean * (shape - 1) / shape  # a Pareto size is at least this
        drawn = np.ceil(smallest * (1 + rng.pareto(shape, n)))
        return np.asarray(np.minimum(drawn, UNLIMITED), dtype=np.int64)
    return np.full(n, -1 if math.isinf(group.size) else math.ceil(group.size), dtype=np.int64)


def times(group: Flow, begin: float, stop: float, rng: np.random.Generator) -> Floats:
    """Draw the times, s, in ``[begin, stop)`` at which short flows start.

    ``group`` is the entry of the scenario that describes these flows. Its ``arrivals`` says how
    many flows start per second, and how the times between starts are distributed.  Raises
    ``FieldError`` for more than ``MAX_ARRIVALS`` flows, and if the flows do not arrive at random.
    """
    process = group.arrivals
    if not isinstance(process, (Poisson, ParetoArrivals)):
        raise FieldError("group", group, "a group of flows that arrive at random")
    allowed = f"at most {MAX_ARRIVALS} arrivals in the time between start and stop"
    if process.rate * (stop - begin) > MAX_ARRIVALS:
        raise FieldError("flow.arrivals", process.rate, allowed)
    found: list[float] = []
    time = begin
    # Even if the expected number is allowed, more flows may be drawn: with a Pareto shape near 1,
    # most gaps are far shorter than the mean gap.
    while len(found) <= MAX_ARRIVALS:
        if isinstance(process, Poisson):
            time += float(rng.exponential(1 / process.rate))
        else:  # with this shortest gap, the mean of the Pareto distribution is 1/rate
            shortest = (process.shape - 1) / process.shape / process.rate
            time += shortest * (1 + float(rng.pareto(process.shape)))
        if time >= stop:
            return np.array(found)
        found.append(time)
    raise FieldError("flow.arrivals", process, allowed)
