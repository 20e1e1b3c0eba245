"""Defines data types of the simulator ``fluid``, for windows that change at every instant.

The package ``sampled``, which simulates whole packets, as ns-2 and Linux send them, has data types
of its own.

The types are named tuples of arrays, which compiled code can read:

- ``Flows`` holds the properties of the flows. The simulator ``delayed`` uses it, too.
- ``Batch`` holds several scenarios, which are simulated together (``batch.run``).
- ``State`` holds the state of a simulation at one time.
- ``Tally`` holds time integrals, from which averages are computed. The package ``sampled`` uses it,
  too.
- ``Samples`` holds the trajectories of a simulation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.metrics import Floats

TIME, DELAY = range(2)  # indices of ``State.now``
WAITED, SPAN = range(2)  # indices of ``Tally.queue``


class Flows(NamedTuple):
    """The properties of the flows, as arrays with one entry per flow, in seconds and packets.

    Diff is the backlog that Vegas computes: W (RTT - baseRTT)/RTT, or divided by baseRTT instead.
    For a loss-based flow the thresholds ``lower``, ``upper`` and ``gamma`` are infinite.
    """

    rtt: Floats  # T_i: RTT in the empty network
    keeps_backlog: np.ndarray  # bool: the flow runs Vegas; else its law is loss-based
    backlog_over_base: np.ndarray  # bool: Diff is divided by baseRTT, not by RTT
    lower: Floats  # the window grows while Diff is below this threshold
    upper: Floats  # the window shrinks while Diff is above this threshold
    gamma: Floats  # slow start ends when Diff exceeds this threshold
    in_trains: np.ndarray  # bool: slow start sends packets in trains (``slow_start.py``)
    slow_start_growth: Floats  # growth of ln W per round trip in slow start; 0: no slow start
    growth: Floats  # packets per round trip by which the window grows outside slow start
    decrease: Floats  # factor by which a loss multiplies the window
    min_window: Floats  # smallest window
    max_window: Floats  # largest window
    initial_window: Floats  # window at the start
    recovery: Floats  # round trips of fast recovery: the window stays constant after a cut
    measures_base: np.ndarray  # bool: the over-estimate x_i is the least queueing delay measured
    over_estimate: Floats  # x_i, if the scenario gives it
    less_found: Floats  # seconds by which a late flow finds less than the mean queueing delay
    start: Floats  # seconds
    stop: Floats  # seconds


class Batch(NamedTuple):
    """Several scenarios in arrays.

    The arrays in ``flows`` have the shape [scenario, flow], all others the shape [scenario].
    """

    flows: Flows
    capacity: Floats  # pkt/s
    s_max: Floats  # queueing delay at which the buffer overflows, s
    warmup: Floats  # s
    duration: Floats  # s


class State(NamedTuple):
    """The state of the flows and of the queue, in arrays that a simulation changes."""

    window: Floats  # [flow], 0 while a flow is inactive
    over_estimate: Floats  # [flow] x_i, infinite before the start
    in_slow_start: np.ndarray  # [flow] bool: in slow start
    doubled: Floats  # [flow] window at which Vegas next decides whether slow start ends
    doubling_from: Floats  # [flow] queueing delay when it decided last, s
    recovery_until: Floats  # [flow] time before which the window rests, in fast recovery
    now: Floats  # [2] the time t (``now[TIME]``) and the queueing delay s (``now[DELAY]``), s


class Tally(NamedTuple):
    """Integrals over time and counts of losses, from which a simulation's averages are computed."""

    delivered: Floats  # [flow] packets
    window: Floats  # [flow] integral of W dt; ``sampled``: of the packets in flight
    moving: Floats  # [flow] only ``sampled``: the same, without lost and held-back packets
    active: Floats  # [flow] seconds
    losses: np.ndarray  # [flow] events
    queue: Floats  # [2] ``WAITED``: time integral of the waiting packets c s; ``SPAN``: the time


def reordered(tally: Tally, order: np.ndarray) -> Tally:
    """The tally with the flows in another order: its flow k is flow ``order[k]`` of ``tally``."""
    changed = {name: getattr(tally, name)[order] for name in Tally._fields if name != "queue"}
    return tally._replace(**changed)


class Samples(NamedTuple):
    """The samples of a simulation's trajectories, in arrays that the simulation fills."""

    times: Floats  # [sample], seconds
    values: Floats  # [3 n + 1, sample]: windows, queueing delay (s), losses and packets delivered
    following: np.ndarray  # [1]: index of the first time that is still to come
    # addresses of compiled functions (``engines.on_demand``); 0: there are no samples
    record_at: int  # ``tally.record_samples``
    replay_at: int  # ``repeats.replay``


def empty_state(n: int) -> State:
    """The ``State`` of n flows at time 0, before any of them has started."""
    zeros, infinite = np.zeros(n), np.full(n, np.inf)
    return State(
        zeros,  # window
        infinite,  # over_estimate
        np.zeros(n, np.bool_),  # in_slow_start
        infinite.copy(),  # doubled
        zeros.copy(),  # doubling_from
        zeros.copy(),  # recovery_until
        np.zeros(2),  # now
    )


def empty_tally(n: int) -> Tally:
    """A ``Tally`` for n flows: the time integrals for the averages, all equal to zero."""
    return Tally(
        np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros(2)
    )
