"""The queue: the delay that goes with the windows (S1), RED's average, and bursts."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from vegasmodel.engines.fluid.records import jit
from vegasmodel.engines.fluid.sampled.records import TIGHT, Records, Road
from vegasmodel.metrics import Floats


@jit
def delay(flows: Records, clock: Floats, c: float) -> float:
    """(S1): the queueing delay, by Newton's method, which from the left never overshoots."""
    s = clock[1]
    for _ in range(50):
        f, slope = -c, 0.0
        for i in range(flows.size):
            if flows[i].on:
                per = 1.0 / (flows[i].rtt + s)
                rate = (flows[i].flight - flows[i].lost) * per
                f += rate
                slope -= rate * per
        if slope == 0.0 or (s == 0.0 and f <= 0.0):
            return 0.0
        new = max(s - f / slope, 0.0)
        if abs(new - s) <= TIGHT * (new + 1e-6):
            return new
        s = new
    return s


@jit
def excess_rate(flows: Records, s_max: float, c: float) -> float:
    """(S1) at the full buffer: packets a second too many, if some flow has grown."""
    f = -c
    for i in range(flows.size):
        if flows[i].on:
            f += (flows[i].flight - flows[i].lost) / (flows[i].rtt + s_max)
    return f


@jit
def burst(flows: Records, clock: Floats, i: int, c: float) -> float:
    """Packets of a slow start's round that queue though on average none need wait.

    Its packets come as one train: two for each ACK, while the link lets one go.  So the queue grows
    by what the window has grown in this round, at least.
    """
    if not flows[i].slow:
        return 0.0
    return max(flows[i].window - flows[i].wide - c * (clock[1] - flows[i].deep), 0.0)


@jit
def red_probability(link: Road, average: float) -> float:
    """RED's drop probability p_b of the average queue."""
    if average < link.low:
        return 0.0
    if average < link.high:
        return link.top * (average - link.low) / (link.high - link.low)
    if link.gentle and average < 2.0 * link.high:
        return link.top + (1.0 - link.top) * (average - link.high) / link.high
    return 1.0
