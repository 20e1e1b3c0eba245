"""Draws the random numbers of a run of the simulator ``fluid``.

For example, ``victim`` draws the flow to which an arriving packet belongs. In the functions,
``now`` is the link's present state.
"""

from __future__ import annotations

import random

import numpy as np

from vegasmodel.engines.fluid.sampled.records import LinkState, Sender, moving
from vegasmodel.engines.tables import Table, jit, rare


@jit
def seed(number: int) -> None:
    """Seed the random numbers of compiled code in this thread.

    In each thread Numba has two generators of its own, so other threads are not affected. One is
    for NumPy's functions, the other for those of ``random``, which a user's congestion control may
    call.
    """
    np.random.seed(number)
    random.seed(number)


@jit
def draw(now: LinkState) -> float:
    """A uniform random number on 0 .. 1; ``now.draws`` counts the calls, for ``steady.py``."""
    now.draws += 1
    return np.random.random()


@jit
def draw_normal(now: LinkState) -> float:
    """A standard normal random number; ``now.draws`` counts the calls, for ``steady.py``."""
    now.draws += 1
    return np.random.normal()


@jit
def comes_in_trains(flow: Sender) -> bool:
    """Whether slow start lets the flow's packets arrive at RED as one train per round trip.

    In a train packets follow one another closely. Packets may also form trains for another reason,
    which the field ``in_train`` names: all RTTs are equal.
    """
    return flow.in_slow_start and flow.in_trains


@jit
def round_passed(flow: Sender, now: LinkState, g: float) -> float:
    """The part of the flow's round trip that passes in the present step of ``g`` round trips.

    Usually this part is ``g``, the length of the step divided by the present RTT. But in slow start
    at RED the flow's packets arrive as a train, one behind the other. The flow's round trip ends at
    the ACK of the train's first packet, so it lasts as long as the RTT of this packet
    (``round_lasts``, in seconds). The other packets wait longer in the queue.
    """
    return now.step / flow.round_lasts if comes_in_trains(flow) else g


@jit
def arrival_rate(flow: Sender, s: float) -> float:
    """The rate at which ACKs release packets of the flow, in pkt/s, at a queueing delay of ``s`` s.

    The rate leaves out packets that are lost or held back by the receiver (``moving``). It also
    leaves out those of the flow's last burst (``bunch``), because their ACKs come later, together.
    """
    return max(moving(flow) - flow.bunch, 0.0) / (flow.rtt + s)


@rare
def victim(flows: Table[Sender], now: LinkState) -> int:
    """The flow to which an arriving packet belongs, drawn in proportion to the flows' rates."""
    total, s, last = 0.0, now.delay, 0  # ``last``: the result if rounding errors leave a remainder
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            total += arrival_rate(flow, s)
    remaining = draw(now) * total
    for i in range(len(flows)):
        rate = arrival_rate(flows[i], s) if flows[i].active else 0.0
        if rate > 0.0:
            last = i
            remaining -= rate
            if remaining <= 0.0:
                return i
    return last
