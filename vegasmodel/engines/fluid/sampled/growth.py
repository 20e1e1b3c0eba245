"""How windows move in a step, and how many packets leave for it: (S2) and (S3)."""

from __future__ import annotations

from vegasmodel.engines.fluid.records import jit
from vegasmodel.engines.fluid.sampled.law import cwnd, drift
from vegasmodel.engines.fluid.sampled.records import UNTIL_LOSS, Records
from vegasmodel.metrics import Floats


@jit
def grow(flows: Records, clock: Floats, h: float, smooth: bool) -> bool:
    """(S2) and (S3) over a step.

    ``grown``: packets that left on top of those that ACKs let go; ``pace``: of the window, pkt/s.
    """
    s, t, moved = clock[1], clock[0], False
    for i in range(flows.size):
        flows[i].grown = 0.0
        if not flows[i].on:
            continue
        g = h / (flows[i].rtt + s)
        W = flows[i].window
        if flows[i].asleep > t or flows[i].hold > 0.0:
            flows[i].hold = max(flows[i].hold - g, 0.0)
        elif flows[i].slow and flows[i].slow_start == UNTIL_LOSS:
            flows[i].window = min(W * 2.0 ** (flows[i].climb * g), max(flows[i].threshold, W))
            flows[i].slow = flows[i].window < flows[i].threshold
        elif flows[i].slow and flows[i].doubling == 1:
            flows[i].window = W * 2.0**g
        elif flows[i].slow or (flows[i].once and not smooth):  # what was decided holds this round
            flows[i].window = W + flows[i].drift * min(g, 1.0 - flows[i].part)
        else:
            flows[i].window = W + drift(flows, clock, i, smooth) * g
        flows[i].window = min(
            max(flows[i].window, flows[i].floor if flows[i].floor <= W else W), flows[i].cap
        )
        flows[i].paced = flows[i].pace
        flows[i].pace = (flows[i].window - W) / h if h > 0.0 else 0.0
        now = cwnd(flows, i, smooth)
        n = flows[i].flight
        if flows[i].asleep > t + h:
            now = 0.0
        if now > n:
            flows[i].grown = now - n
            flows[i].flight = now
        elif now < n:
            flows[i].flight = max(now, n - max(flows[i].drain, n) * g)
        moved = moved or flows[i].flight != n
    return moved
