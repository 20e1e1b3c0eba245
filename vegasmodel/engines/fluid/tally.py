"""Integrates rates, windows and the queue of ``fluid`` over time, to compute averages from them.

It also stores samples at given times: the windows, the queueing delay, and the packets lost and
delivered so far.

Many functions have the same arguments. ``p`` holds the properties of the flows, and ``y`` holds the
state at the beginning of a step (``records``). ``active`` [flow] says which flows are active.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import (
    DELAY,
    SPAN,
    TIME,
    WAITED,
    Flows,
    Samples,
    State,
    Tally,
    empty_tally,
)
from vegasmodel.engines.fluid.within_step import delivered_within
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats

zero_tally = making(empty_tally)  # for compiled code; Python code calls ``empty_tally``


@jit
def tally_step(
    p: Flows, y: State, active: np.ndarray, new: Floats, s1: float, h: float, c: float, out: Tally
) -> None:
    """Add one step of length h to the integrals in ``out``, by the trapezoidal rule.

    The step ends with the windows ``new`` and the queueing delay ``s1``. While there is a queue,
    the flows' rates add up to the capacity c at both ends of the step. With this rule the flows
    then deliver exactly c h packets in the step.
    """
    s = y.now[DELAY]
    for i in range(active.size):
        if active[i]:
            rate = y.window[i] / (p.rtt[i] + s) + new[i] / (p.rtt[i] + s1)
            out.delivered[i] += 0.5 * h * rate
            out.window[i] += 0.5 * h * (y.window[i] + new[i])
            out.active[i] += h
    out.queue[WAITED] += 0.5 * h * c * (s + s1)
    out.queue[SPAN] += h


@jit
def seek(samples: Samples, t: float) -> None:
    """Let the first sample at or after the time ``t`` be the next one to store."""
    k = 0
    while k < samples.times.size and samples.times[k] < t:
        k += 1
    samples.following[0] = k


@jit
def record_samples(
    p: Flows, y: State, new: Floats, s1: float, h: float, later: float, out: Tally, samples: Samples
) -> None:
    """Store the samples of a step of length h that ends at the time ``later``.

    A sample is taken at each of the ``samples.times`` within the step. Windows and queueing delay
    are interpolated linearly between their values at the beginning of the step (``y``) and at its
    end (``new`` and ``s1``). ``out`` holds the integrals up to the beginning of the step.
    """
    t, s, n, k = y.now[TIME], y.now[DELAY], new.size, samples.following[0]
    # the rows of ``values``: n windows, the queueing delay, n numbers of losses, n of packets
    times, values = samples.times, samples.values
    while k < times.size and times[k] <= later:
        part = (times[k] - t) / h if h > 0.0 else 1.0
        for i in range(n):
            values[i, k] = y.window[i] + part * (new[i] - y.window[i])
            values[n + 1 + i, k] = out.losses[i]
            first, last = y.window[i] / (p.rtt[i] + s), new[i] / (p.rtt[i] + s1)
            within = delivered_within(times[k] - t, h, first, last)
            values[2 * n + 1 + i, k] = out.delivered[i] + within
        values[n, k] = s + part * (s1 - s)
        k += 1
    samples.following[0] = k
