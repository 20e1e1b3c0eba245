"""How windows of whole packets grow in a step, and how many packets each sender then sends."""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.law import allowed_in_flight, drift
from vegasmodel.engines.fluid.sampled.records import (
    HOLE_BY_HOLE,
    NEVER,
    SCOREBOARD,
    UNTIL_LOSS,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import Table, jit


@jit
def recovering(flow: Sender) -> float:
    """Packets in flight in a recovery that repairs one hole per round trip, without a scoreboard.

    A hole is a missing packet.  The window counts from the first hole, and duplicate ACKs inflate
    it.

    - First round trip: each packet that arrives beyond the first hole causes a duplicate ACK.  The
      first ACKs, half a window of them, only make up for the cut of the window.  Each of the rest
      releases a packet.
    - Second round trip: the packets between the second hole and the end of the lost window occupy
      places in the window.
    - Later round trips: only the next missing packet is sent.

    If partial ACKs deflate the window (RFC 2582, section 3), the whole window stays in use.
    """
    if flow.partial_deflates:
        return flow.cwnd
    over = flow.holes - flow.recovery_left
    if over < 1.0:
        return max(flow.cwnd - flow.holes, 0.0) + 1.0
    return flow.flight_later if over < 2.0 else 1.0


@jit
def repairing(flow: Sender) -> float:
    """Packets in flight in a recovery with a scoreboard that counts lost packets as in flight.

    The lost packets leave less of the window for others in the first round trip.  Then each ACK
    that fills a hole releases two packets (tcp-sack1.cc: ``pipe_``).
    """
    rounds: float = max(np.floor(flow.holes - flow.recovery_left), 0.0)
    flight: float = flow.flight_later * 2.0**rounds
    return flight


@jit
def growing(flow: Sender, now: LinkState, h: float) -> float:
    """The part of a step of ``h`` seconds whose ACKs move the window, in round trips.

    ACKs do not count during a recovery or while the sender waits for its timer.  After a loss of
    which the sender has not yet heard, the ACKs count up to that of the packet before the lost one.
    """
    acked = h / (flow.rtt + now.delay)
    g = acked
    idle = max(flow.recovery_left, (flow.timeout_ends - now.time) / (flow.rtt + now.delay))
    if idle > 0.0:
        flow.recovery_left = max(flow.recovery_left - acked, 0.0)
        g = max(acked - idle, 0.0)
        if g > 0.0 and flow.slow_start == UNTIL_LOSS:  # the next train begins a round trip
            flow.round_part = g - acked
            flow.burst, flow.round_delay = 0.0, now.delay
    if flow.detection_in > 0.0:
        counted = max(min(g, flow.detection_in - 1.0 / max(flow.in_flight, 1.0)), 0.0)
        flow.still += (g - counted) * (flow.rtt + now.delay)
        g = counted
    return g


@jit
def double(flow: Sender, g: float) -> None:
    """Slow start: each ACK adds a packet to the window over ``g`` round trips, up to ssthresh.

    Tahoe sends again all packets from the first lost one on.  If every other packet of a train was
    lost, half of these had arrived, so their ACKs are duplicates and the window grows by half per
    round trip.  The last ACK of them speaks for all that had arrived and releases a whole window.
    """
    W = flow.cwnd
    per_trip = 1.5 if flow.resends_left > 0.0 else 2.0
    flow.cwnd = min(W * per_trip ** (flow.drift_factor * g), max(flow.ssthresh, W))
    if flow.resends_left > 0.0:
        flow.resends_left = max(flow.resends_left - W * g, 0.0)
        flow.window_sent = flow.cwnd if flow.resends_left == 0.0 else 0.0
    flow.in_slow_start = flow.cwnd < flow.ssthresh


@jit
def move(flow: Sender, now: LinkState, g: float, smooth: bool) -> None:
    """Move the window by the law's drift over ``g`` round trips, equation (S2)."""
    W, doubling, moving = flow.cwnd, flow.in_slow_start, g
    if flow.in_slow_start and flow.slow_start == UNTIL_LOSS:
        double(flow, g)
    elif flow.in_slow_start and flow.doubling == 1:
        flow.cwnd = W * 2.0**g
    elif flow.in_slow_start or (flow.once_a_round and not smooth):  # as decided for this round
        moving = min(g, 1.0 - flow.round_part)
        flow.cwnd = W + flow.round_drift * moving
    else:
        flow.cwnd = W + drift(flow, now, smooth) * g
    flow.still += (g - moving) * (flow.rtt + now.delay)
    flow.interval = moving * (flow.rtt + now.delay) / (flow.cwnd - W) if flow.cwnd > W else NEVER
    if doubling:
        later = min(max(flow.round_part + g - 1.0, 0.0), g) / g  # after the end of the round
        flow.burst += (1.0 - later) * (flow.cwnd - W)
        flow.next_burst = later * (flow.cwnd - W)


@jit
def send(flow: Sender, now: LinkState, h: float, smooth: bool) -> None:
    """Send what the window allows beyond the packets in flight, equation (S3).

    If the window allows fewer packets than are in flight, the flow sends fewer packets than ACKs
    arrive.
    """
    allowed, n = allowed_in_flight(flow, smooth), flow.in_flight
    if flow.timeout_ends > now.time + h:
        allowed = 0.0
    elif flow.recovery_left > 0.0 and flow.recovery == HOLE_BY_HOLE and not smooth:
        allowed = min(allowed, recovering(flow))
    elif flow.recovery_left > 0.0 and flow.recovery == SCOREBOARD and not (flow.rack or smooth):
        allowed = min(allowed, repairing(flow))
    if allowed > n:
        flow.extra = allowed - n
        flow.in_flight = allowed
    elif allowed < n:
        flow.in_flight = max(allowed, n - max(flow.drain, n) * h / (flow.rtt + now.delay))


@jit
def grow(flows: Table[Sender], now: LinkState, h: float, smooth: bool) -> bool:
    """Advance windows and packets in flight by a step of ``h`` seconds, equations (S2) and (S3).

    It sets these fields of each flow: ``extra``, the packets sent in addition to one per ACK,
    ``growth``, the window's growth in pkt/s, and ``interval`` and ``still``, which say when the
    window grew.  Returns whether any number of packets in flight changed.
    """
    moved = False
    for i in range(flows.shape[0]):
        flow = flows[i]
        flow.extra, flow.window_sent, flow.still, flow.interval = 0.0, 0.0, 0.0, NEVER
        if not flow.active:
            continue
        W, n, recovers = flow.cwnd, flow.in_flight, flow.recovery_left > 0.0
        g = growing(flow, now, h)
        if g > 0.0:
            move(flow, now, g, smooth)
        flow.cwnd = min(max(flow.cwnd, min(flow.min_window, W)), flow.max_window)
        flow.growth_before = flow.growth
        flow.growth = (flow.cwnd - W) / h if h > 0.0 else 0.0
        send(flow, now, h, smooth)
        if recovers and flow.recovery_left <= 0.0 and flow.recovery == HOLE_BY_HOLE:
            flow.burst += flow.extra  # the window counts from the last hole no more: a train
        moved = moved or flow.in_flight != n
    return moved
