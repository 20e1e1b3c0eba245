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
    """Packets in flight during a recovery without SACK that repairs one lost packet per round trip.

    The sender counts its window from the first lost packet on.  Each duplicate ACK inflates the
    window by one packet.

    - First round trip: each packet that arrived after the first lost one causes a duplicate ACK.
      The first duplicate ACKs, as many as half a window, only make up for the cut of the window.
      Each of the others releases a packet.
    - Second round trip: the sender now counts its window from the second lost packet on.  So the
      packets that it sent after this one, before the recovery, take up a part of the window.
    - Later round trips: only the next lost packet is sent again.

    If partial ACKs deflate the window (RFC 2582, section 3), the sender can use the whole window.
    """
    if flow.partial_deflates:
        return flow.cwnd
    over = flow.holes - flow.recovery_left
    if over < 1.0:
        return max(flow.cwnd - flow.holes, 0.0) + 1.0
    return flow.flight_later if over < 2.0 else 1.0


@jit
def repairing(flow: Sender) -> float:
    """Packets in flight during a recovery in which SACK tells the sender which packets are lost.

    This is for a sender that still counts the lost packets as in flight.  In the first round trip
    the lost packets take up a part of the window, so few packets can be sent.  Then each ACK for a
    packet sent again releases two packets (tcp-sack1.cc: ``pipe_``).  So the packets in flight
    double in number in each round trip.
    """
    rounds: float = max(np.floor(flow.holes - flow.recovery_left), 0.0)
    flight: float = flow.flight_later * 2.0**rounds
    return flight


@jit
def growing(flow: Sender, now: LinkState, h: float) -> float:
    """The time in round trips, within a step of ``h`` seconds, during which ACKs move the window.

    ACKs do not move the window during a recovery or while the sender waits for its retransmission
    timer. After a loss that the sender has not yet detected, the ACKs of packets sent before the
    lost one still move the window. Later ACKs do not.
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
    """Let slow start double the window over ``g`` round trips, at most up to ssthresh.

    After a loss Tahoe sends again all packets from the first lost one on.  If in slow start every
    other packet was lost, half of the packets that Tahoe sends again had arrived before.  Their
    ACKs are duplicates, so the window grows by half per round trip instead of doubling.  When the
    sender has reached the end of the packets sent before, one ACK acknowledges all of them and
    releases a whole window.
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
    """Change the window during ``g`` round trips as its law decides.

    This is equation (S2) of the package ``sampled``. In slow start the rule of slow start decides
    instead of the law.
    """
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
    """Send packets until the packets in flight are as many as the window allows.

    This is equation (S3) of the package ``sampled``. If the window allows fewer packets than are in
    flight, the flow sends fewer packets than ACKs arrive.
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
    """Advance windows and packets in flight by a step of ``h`` seconds.

    The equations are (S2) and (S3) of the package ``sampled``. Some fields of each flow receive
    values for this step. ``extra`` is the number of packets sent in addition to one per ACK, and
    ``growth`` the window's growth in pkt/s. ``interval`` and ``still`` say when the window grew: by
    one packet every ``interval`` seconds, until ``still`` seconds before the end of the step.
    Returns whether any number of packets in flight changed.
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
