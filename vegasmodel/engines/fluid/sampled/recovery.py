"""Simulates how a sender reacts when it detects a loss.

The sender cuts its window. If all flows run TCP as in the papers, windows are real numbers and the
sender does nothing else. If windows are whole packets, the sender also retransmits, or waits for
its retransmission timer.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.law import allowed_in_flight, cut
from vegasmodel.engines.fluid.sampled.records import (
    DUPLICATES,
    GAMMA,
    HOLE_BY_HOLE,
    SCOREBOARD,
    SLOW_START,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import jit, rare

TIMER_TICK = 0.1  # seconds: tick of the clock of BSD's timer
TIMER_TICKS = 3.0  # ticks by which its timeout exceeds a steady RTT, as its integer rttvar stays 3
LONGEST_TIMEOUT = 64.0  # seconds; ns-2's longest timeout


@jit
def silent(flow: Sender) -> bool:
    """Whether all packets in flight are lost, so that no ACK can arrive."""
    return flow.undetected >= flow.in_flight


@jit
def too_few(flow: Sender) -> bool:
    """Whether too few packets in flight arrive for the three duplicate ACKs that report a loss.

    The result is False if all packets in flight are lost (``silent``). Laws with Vegas's slow start
    (``GAMMA``) need only one duplicate ACK.
    """
    left = flow.in_flight - flow.undetected
    return 0.0 < left < (1.0 if flow.slow_start == GAMMA else DUPLICATES)


@jit
def times_out(flow: Sender) -> bool:
    """Whether a sender that detects its losses must wait for its retransmission timer.

    A sender without RACK waits in two cases: too few duplicate ACKs can arrive, or more packets are
    lost than its recovery can repair (Reno repairs only one).
    """
    few = 1.0 if flow.slow_start == GAMMA else DUPLICATES
    arrived = allowed_in_flight(flow, False) - flow.undetected
    return not flow.rack and (silent(flow) or arrived < few or flow.undetected > flow.most_holes)


@jit
def sends_again(flow: Sender, now: LinkState, g: float) -> bool:
    """Whether the sender sends a lost packet again in the present step of ``g`` round trips.

    That is the first packet of a recovery which needs no timer. If this packet is lost, too, a
    sender with RACK would notice, but others wait for their timer. The result is False for RACK.
    """
    heard = 0.0 < flow.detection_in <= g and flow.timeout_ends <= now.time
    return heard and flow.recovery_left <= 0.0 and not (flow.rack or times_out(flow))


@rare
def forget_losses(flow: Sender) -> None:
    """Forget losses that a sender would detect while it waits for its retransmission timer.

    After the timeout the sender retransmits all packets from the first lost one on. So it also
    retransmits these lost packets.
    """
    flow.in_flight = max(flow.in_flight - flow.undetected, 0.0)
    flow.undetected = flow.detection_in = flow.later_hole = 0.0


@rare
def on_loss(flow: Sender, now: LinkState, smooth: bool) -> None:
    """Let the sender detect its losses, and react to them.

    The sender cuts its window. If windows are real numbers (``smooth``), it does nothing else. If
    windows are whole packets, it begins a recovery (Tahoe: slow start) or waits for its
    retransmission timer. It waits if its recovery cannot repair the losses (``times_out``), or if
    the first packet that it sends again is lost (``resend_lost``).
    """
    lost, W, left = flow.undetected, allowed_in_flight(flow, smooth), flow.detection_in
    begins = flow.in_slow_start
    flow.detection_in, flow.in_slow_start, flow.rounds_at_rest = 0.0, False, 0.0
    flow.round_drift, flow.held_back, flow.train_lacks = 0.0, 0.0, 0.0
    pairs, flow.lost_of_pairs = flow.lost_of_pairs, False
    timer, flow.resend_lost = times_out(flow) or flow.resend_lost, False
    few = 1.0 if flow.slow_start == GAMMA else DUPLICATES
    before = flow.in_flight
    flow.in_flight = max(before - lost, 0.0)
    flow.undetected = 0.0
    new = max(cut(flow, now, smooth), flow.min_window)
    if begins and flow.halves_in_slow_start:
        new = min(new, max(np.floor(0.5 * W), flow.min_window))
    flow.drain = before
    if smooth:
        flow.cwnd = flow.in_flight = new
        return
    if timer:
        if W - lost >= few:  # a fast retransmit came first
            W = 1.0 if flow.recovery == SLOW_START else new
        flow.ssthresh = max(np.floor(0.5 * W), 2.0)
        if before > lost:  # the ACK of a packet that arrived has ended the backoff (Karn)
            flow.backoff = 1.0
        flow.heard = flow.heard or before > lost
        pause = flow.rtt + now.delay + TIMER_TICKS * TIMER_TICK
        pause = flow.backoff * (pause if flow.heard or flow.first_rto == 0.0 else flow.first_rto)
        flow.timeouts += lost > 1.0
        flow.timeout_ends = now.time + min(pause, LONGEST_TIMEOUT)
        flow.backoff = min(2.0 * flow.backoff, LONGEST_TIMEOUT)
        flow.cwnd = 2.0 if flow.slow_start == GAMMA else 1.0
        flow.in_slow_start, flow.acks_left = flow.slow_start != GAMMA, 0.0
        return
    flow.cwnd, flow.ssthresh = new, max(new, 2.0)
    flow.recovery_left = 1.0 + left
    if flow.recovery == SLOW_START:
        flow.in_slow_start, flow.recovery_left, flow.acks_left = True, 0.0, 0.0
        flow.cwnd = 1.0 if flow.in_trains else 2.0**-left
        flow.resends_left = 2.0 * lost - 1.0 if pairs else 0.0
    elif flow.recovery == SCOREBOARD and not flow.rack:
        flow.flight_later = max(new - lost, 0.0) + 1.0
        flow.holes = max(np.ceil(np.log2(lost / flow.flight_later + 1.0)), 1.0)
        flow.recovery_left = flow.holes + left
    elif flow.recovery == HOLE_BY_HOLE:
        flow.recovery_left = lost + left
        flow.holes = lost
        flow.flight_later = min(max(new - lost, 0.0), max(new - flow.later_hole * W, 0.0)) + 1.0
