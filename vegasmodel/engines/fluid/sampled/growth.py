"""How the windows of whole packets grow in a step, and how many packets leave for it.

Equations (S2) and (S3) are in the docstring of the package ``sampled``.
"""

from __future__ import annotations

from vegasmodel.engines.fluid.sampled.law import allowed_in_flight, drift
from vegasmodel.engines.fluid.sampled.records import UNTIL_LOSS, LinkState, Sender
from vegasmodel.engines.tables import Table, jit


@jit
def grow(flows: Table[Sender], now: LinkState, h: float, smooth: bool) -> bool:
    """Apply (S2) and (S3) over a step of ``h`` seconds; returns whether packets in flight changed.

    ``extra``: packets that left beyond those that ACKs released. ``growth``: of the window, pkt/s.
    """
    s, t, moved = now.delay, now.time, False
    for i in range(flows.shape[0]):
        flow = flows[i]
        flow.extra = 0.0
        if not flow.active:
            continue
        g = h / (flow.rtt + s)
        W = flow.cwnd
        if flow.timeout_ends > t or flow.recovery_left > 0.0:
            flow.recovery_left = max(flow.recovery_left - g, 0.0)
        elif flow.in_slow_start and flow.slow_start == UNTIL_LOSS:
            flow.cwnd = min(W * 2.0 ** (flow.drift_factor * g), max(flow.ssthresh, W))
            flow.in_slow_start = flow.cwnd < flow.ssthresh
        elif flow.in_slow_start and flow.doubling == 1:
            flow.cwnd = W * 2.0**g
        elif flow.in_slow_start or (flow.once_a_round and not smooth):  # as decided for this round
            flow.cwnd = W + flow.round_drift * min(g, 1.0 - flow.round_part)
        else:
            flow.cwnd = W + drift(flow, now, smooth) * g
        flow.cwnd = min(max(flow.cwnd, min(flow.min_window, W)), flow.max_window)
        flow.growth_before = flow.growth
        flow.growth = (flow.cwnd - W) / h if h > 0.0 else 0.0
        allowed = allowed_in_flight(flow, smooth)
        n = flow.in_flight
        if flow.timeout_ends > t + h:
            allowed = 0.0
        if allowed > n:
            flow.extra = allowed - n
            flow.in_flight = allowed
        elif allowed < n:
            flow.in_flight = max(allowed, n - max(flow.drain, n) * g)
        moved = moved or flow.in_flight != n
    return moved
