"""What a sender does that hears of a loss: its cut, its recovery, its timer."""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import Tally, jit
from vegasmodel.engines.fluid.sampled.law import cut, cwnd
from vegasmodel.engines.fluid.sampled.records import (
    GAMMA,
    HOLE_BY_HOLE,
    ONE_HOLE,
    SLOW_START,
    Records,
)
from vegasmodel.metrics import Floats

DUPLICATES = 3.0  # that tell of a loss
TICK = 0.1  # seconds; the clock of BSD's timer. A steady RTT leaves it at RTT + 3 ticks:
TICKS = 3.0  # its variance is kept in quarters of a tick, and 3/4 decay no further
LONGEST_PAUSE = 64.0  # seconds; ns-2's longest timeout


@jit
def on_loss(flows: Records, clock: Floats, i: int, smooth: bool, out: Tally) -> None:
    """The sender hears of its losses."""
    lost, W = flows[i].lost, cwnd(flows, i, smooth)
    out.losses[i] += 1
    flows[i].hear, flows[i].slow, flows[i].still = 0.0, False, 0.0
    flows[i].drift = 0.0
    before = flows[i].flight
    flows[i].flight = max(before - lost, 0.0)
    flows[i].lost = 0.0
    few = 1.0 if flows[i].slow_start == GAMMA else DUPLICATES
    timer = (W - lost < few) or (flows[i].recovery == ONE_HOLE and lost > 1.0)
    new = max(cut(flows, clock, i, smooth), flows[i].floor)
    flows[i].drain = before
    if smooth:
        flows[i].window = flows[i].flight = new
        return
    if timer and not flows[i].rack:
        if W - lost >= few:
            W = new
        flows[i].threshold = max(np.floor(0.5 * W), 2.0)
        pause = flows[i].backoff * (flows[i].rtt + clock[1] + TICKS * TICK)
        flows[i].asleep = clock[0] + min(pause, LONGEST_PAUSE)
        flows[i].backoff = min(2.0 * flows[i].backoff, LONGEST_PAUSE)
        flows[i].window = 2.0 if flows[i].slow_start == GAMMA else 1.0
        flows[i].slow = flows[i].slow_start != GAMMA
        return
    flows[i].window, flows[i].threshold = new, max(new, 2.0)
    flows[i].hold = 1.0
    if flows[i].recovery == SLOW_START:
        flows[i].window, flows[i].slow = 1.0, True
    elif flows[i].recovery == HOLE_BY_HOLE:
        flows[i].hold = lost
