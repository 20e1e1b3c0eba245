"""Simulates how a sender reacts when it detects a loss.

The sender cuts its window. If all flows run TCP as in the papers, windows are real numbers and the
sender does nothing else. If windows are whole packets, the sender also retransmits, or waits for
its retransmission timer.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.law import allowed_in_flight, cut
from vegasmodel.engines.fluid.sampled.records import (
    DUPLICATES,
    HOLE_BY_HOLE,
    NEVER,
    SCOREBOARD,
    SLOW_START,
    WINDOW_ERROR,
    LinkState,
    Sender,
)
from vegasmodel.engines.fluid.sampled.short_round import lose_base
from vegasmodel.engines.tables import jit, rare
from vegasmodel.stacks.stack import MIN_RTO

FINE_SLACK = 1.0 / 16.0  # part of an RTT by which ns-2's Vegas's v_timeout_ exceeds a steady RTT
# value of ``Sender.resends`` when all lost packets have been sent again, and a fresh one is next
FRESH = 2.0


@jit
def silent(flow: Sender) -> bool:
    """Whether all packets in flight are lost, so that no ACK can arrive."""
    return flow.undetected >= flow.in_flight


@jit
def needed(flow: Sender, now: LinkState, c: float) -> float:
    """The number of duplicate ACKs at which a sender sends a lost packet again.

    It is three. ns-2's Vegas (``fine_timer``) may need fewer: at each duplicate ACK it compares the
    age of the missing packet with a timeout of its own, which exceeds a steady RTT by the fraction
    ``FINE_SLACK``. If the packet is older than this timeout, Vegas retransmits it. So the number
    depends on the time between duplicate ACKs. If the flow's packets stay together as a train
    (``in_train``), the ACKs come one transmission time of the link apart (1/``c``). Otherwise they
    are spread over the round trip.

    After a timeout ns-2's Vegas counts no duplicate ACKs before the ACK of a packet that it has
    sent only once (tcp-vegas.cc: ``bug_fix_``).
    """
    if not flow.fine_timer:
        return DUPLICATES
    if flow.ignores_duplicates:
        return NEVER
    packets = c * (flow.rtt + now.delay) if flow.in_train else flow.in_flight
    expires: float = max(np.ceil(FINE_SLACK * packets), 1.0)
    return min(expires, DUPLICATES)


@jit
def too_few(flow: Sender, now: LinkState, c: float) -> bool:
    """Whether too few packets arrive to cause the duplicate ACKs that report a loss.

    The result is False if all packets in flight are lost (``silent``).
    """
    return 0.0 < flow.in_flight - flow.undetected < needed(flow, now, c)


@jit
def times_out(flow: Sender, now: LinkState, c: float) -> bool:
    """Whether a sender that detects its losses must wait for its retransmission timer.

    A sender without RACK waits in two cases: too few duplicate ACKs can arrive, or more packets are
    lost than its recovery can repair (Reno repairs only one). ``c`` is the capacity in pkt/s.
    """
    arrive = allowed_in_flight(flow, False) - flow.undetected  # packets that cause duplicate ACKs
    too_few_acks = arrive < needed(flow, now, c)
    too_many_losses = flow.undetected > flow.most_holes
    return not flow.rack and (silent(flow) or too_few_acks or too_many_losses)


@jit
def sends_again(flow: Sender, now: LinkState, g: float, c: float) -> bool:
    """Whether a recovery begins in the present step of ``g`` round trips, without a timeout.

    The sender then retransmits its first lost packet. If the retransmission is lost, too, the
    sender must wait for its timer. So the caller draws at random whether it is lost. A sender with
    RACK detects such a loss without the timer, so for it the result is False. ``c`` is the capacity
    in pkt/s.
    """
    heard = 0.0 < flow.detection_in <= g and flow.timeout_ends <= now.time
    return heard and flow.recovery_left <= 0.0 and not (flow.rack or times_out(flow, now, c))


@rare
def forget_losses(flow: Sender) -> None:
    """Forget losses that a sender would detect while it waits for its retransmission timer.

    After the timeout the sender retransmits all packets from the first lost one on. So it also
    retransmits these lost packets.
    """
    flow.in_flight = max(flow.in_flight - flow.undetected, 0.0)
    flow.undetected = flow.detection_in = flow.later_hole = flow.burst_lost = 0.0


@jit
def timeout(flow: Sender, now: LinkState) -> float:
    """The timeout of the sender's retransmission timer without any backoff, in seconds.

    Before the first ACK it is ``first_rto``. But if this is 0, a handshake has measured the RTT.

    After the first ACK, or after a handshake, the timeout is

        max(RTT + timer_slack, MIN_RTO)     in general
        max(timer_slack, MIN_RTO)           for BSD and ns-2, if no RTT exceeds a tick

    as in ``Stack.steady_timeout``. Senders of BSD and ns-2 measure RTTs in whole ticks of a clock,
    at least one (``tick``; it is 0 for Linux). If no RTT exceeds a tick, each sample is one tick,
    and the timeout is the fixed number of ticks ``timer_slack``, in which this RTT is included. A
    receiver that delays ACKs can make RTTs longer than a tick (``ack_pause``).

    The function does not matter for senders with RACK: in this model they never wait for this
    timer.
    """
    if not flow.heard and flow.first_rto > 0.0:
        return flow.first_rto
    trip = flow.rtt + now.delay
    longest = trip + flow.ack_pause * flow.delays_acks
    return max((0.0 if longest <= flow.tick else trip) + flow.timer_slack, MIN_RTO)


@rare
def back_off(flow: Sender) -> None:
    """Restart the sender's timer with a doubled timeout.

    All senders do this at each timeout. ns-2's Vegas also does it when it retransmits a packet at a
    duplicate ACK (tcp-vegas.cc: ``reset_rtx_timer(1)``), but not when it retransmits one at the
    next two ACKs of new data. ``end_backoff`` says how long the timeout stays doubled.
    """
    flow.timer = flow.backoff = min(2.0 * flow.backoff, flow.most_backoff)


@rare
def await_timer(flow: Sender, now: LinkState, lost: float, ago: float) -> None:
    """Let the sender wait for its retransmission timer, and then go on with its least window.

    ``lost`` packets are lost. The timer was last restarted ``ago`` round trips before.

    After the timeout ns-2's Vegas sends two packets at a time: the first lost one and the one
    behind it. So a round trip repairs one lost packet, or two if they follow each other. Of n
    packets in flight, the first and k others are lost, where k = ``lost`` - 1. The places of these
    others are taken to be random. The second packet is then lost with the probability k/(n - 1).
    Each of the n - 2 further pairs of neighbours is lost with the probability
    k (k - 1)/((n - 1) (n - 2)). So on average k^2/(n - 1) pairs of lost packets follow each other,
    and each pair saves a round trip. (This is too much for three lost packets in a row: they count
    as two pairs, but save only one round trip.)
    """
    pause = min(flow.timer * timeout(flow, now), flow.longest_rto)
    flow.timeouts += lost > 1.0
    flow.timeout_ends = now.time + pause - ago * (flow.rtt + now.delay)
    back_off(flow)
    trips = lost  # round trips, or for senders other than Vegas packets, until all are sent again
    if flow.fine_timer:  # ``in_flight`` leaves out the lost packets: n is the sum of the two
        trips = max(lost - (lost - 1.0) ** 2 / max(flow.in_flight + lost - 1.0, 1.0), 0.5 * lost)
    flow.resends, flow.ignores_duplicates = max(flow.resends, FRESH + trips), True
    flow.cwnd = 2.0 if flow.fine_timer else 1.0
    flow.in_slow_start, flow.acks_left = not flow.fine_timer, 0.0


@jit
def resend_lost_packets(flow: Sender, g: float) -> float:
    """Let a sender retransmit lost packets after a timeout for ``g`` round trips.

    ns-2's Vegas keeps a window of two packets then, so it takes a round trip for each lost packet
    (``await_timer``). Other senders retransmit a packet at each ACK. Returns for how many of the
    ``g`` round trips no lost packet is left.
    """
    can_resend = g if flow.fine_timer else g * (flow.in_flight - flow.undetected)
    to_resend = flow.resends - FRESH  # ``end_backoff`` explains ``resends``
    flow.resends -= min(can_resend, to_resend)
    return g * max(1.0 - to_resend / can_resend, 0.0)


@rare
def end_backoff(flow: Sender, now: LinkState, g: float) -> None:
    """Let the ACKs of a step of ``g`` round trips end the backoff of the sender's timer.

    After a timeout the backoff lasts until the ACK of a fresh packet, one that was sent only once
    (Karn and Partridge 1987). ``flow.resends`` counts down to this ACK, by 1 per round trip in its
    last two stages:

    - Above ``FRESH``, ``resends`` - ``FRESH`` lost packets must still be retransmitted.
    - From ``FRESH`` to 1, the first fresh packet is on its way.
    - At 1 the ACK of this packet comes. It ends the backoff, but still restarts the timer with the
      long timeout (tcp.cc: ``timerfix_`` is false).
    - At 0 the next ACK has restarted the timer with the usual timeout. This ACK comes at once if
      further packets are in flight, otherwise a round trip later.

    No ACK comes while all packets in flight are lost.
    """
    if flow.recovery_left > 0.0 or silent(flow):
        return
    g = min(g, (now.time - flow.timeout_ends) / (flow.rtt + now.delay))
    if g <= 0.0:  # the timer has not expired yet
        return
    if flow.resends > FRESH:
        g = resend_lost_packets(flow, g)
    flow.resends = max(flow.resends - g, 0.0)
    if flow.resends <= 1.0 + WINDOW_ERROR:  # the ACK of the fresh packet has come
        flow.backoff, flow.ignores_duplicates = 1.0, False
        if flow.in_flight - flow.undetected >= 2.0 * flow.acked_at_once:
            flow.resends = 0.0
    if flow.resends <= WINDOW_ERROR:  # a later ACK has restarted the timer, without backoff
        flow.resends, flow.timer = 0.0, 1.0


@rare
def _begin_repair(flow: Sender, lost: float, W: float, new: float, ago: float, pairs: bool) -> None:
    """Let a recovery begin, in which the sender repairs its ``lost`` losses without its timer.

    ``W`` is the window before the cut, and ``new`` the one after it. The sender has detected the
    losses ``ago`` round trips before the end of the step. From then on the recovery takes one round
    trip for Reno and Linux, and ``flow.holes`` round trips for others. Tahoe begins slow start
    instead, and its window has grown since the detection. If ``pairs``, slow start lost one of
    every two packets that an ACK released.
    """
    flow.cwnd, flow.ssthresh = new, max(new, 2.0)
    flow.recovery_left = 1.0 - ago
    if flow.recovery == SLOW_START:
        flow.in_slow_start, flow.recovery_left, flow.acks_left = True, 0.0, 0.0
        flow.cwnd = 1.0 if flow.in_trains else 2.0**ago
        flow.resends_left = 2.0 * lost - 1.0 if pairs else 0.0
    elif flow.recovery == SCOREBOARD and not flow.rack:
        # the recovery ends after the round trips in which f + 2 f + 4 f + ... reaches ``lost``
        flow.flight_later = max(new - lost, 0.0) + 1.0  # f, packets in flight in the first one
        flow.holes = max(np.ceil(np.log2(lost / flow.flight_later + 1.0)), 1.0)
        flow.recovery_left = flow.holes - ago
    elif flow.recovery == HOLE_BY_HOLE:  # NewReno: a round trip for each lost packet
        flow.recovery_left = lost - ago
        flow.holes = lost
        flow.new_at_end = 0.0  # for Vegas these packets are not simulated
        if not flow.fine_timer:
            flow.new_at_end = min(np.floor(flow.new_in_flight), max(new - 1.0, 0.0))
        # ``later_hole`` is the time from the second loss to the detection, in round trips. The
        # sender has sent W packets per round trip in this time.
        flow.flight_later = min(max(new - lost, 0.0), max(new - flow.later_hole * W, 0.0)) + 1.0


@rare
def _begin_timeout(
    flow: Sender, now: LinkState, c: float, lost: float, before: float, W: float, fast: bool
) -> None:
    """Let the sender wait for its retransmission timer, because it cannot repair its losses.

    ``before`` packets were in flight, and ``lost`` of them are lost. ``W`` is the window, of which
    half becomes ``ssthresh``. ``fast`` says whether a fast retransmit comes first, now. ``c`` is
    the capacity.
    """
    flow.ssthresh = max(np.floor(0.5 * W), 2.0)
    flow.heard = flow.heard or before > lost  # packets that arrive bring ACKs
    # ns-2's Vegas at RED may measure a far too small baseRTT after the timeout
    if flow.loses_base and now.time < now.ordered_until:
        lose_base(flow, c, before, before - lost, fast)
    # How many round trips ago was the retransmission timer restarted? A fast retransmit or an ACK
    # of new data restarts it, a duplicate ACK does not. The ACK of the first lost packet would have
    # come now. If there is a fast retransmit, it happens now, so the answer is 0. Otherwise the ACK
    # of the packet just ahead of the lost one restarted the timer. The ACKs of `before` packets
    # arrive evenly over a round trip. So the ACK of the packet ahead came 1/`before` round trips
    # ago.
    await_timer(flow, now, lost, 0.0 if fast else 1.0 / max(before, 1.0))


@rare
def on_loss(flow: Sender, now: LinkState, ago: float, c: float, smooth: bool) -> None:
    """Let the sender detect its losses, ``ago`` round trips before the step ends, and react.

    The sender cuts its window. If windows are real numbers (``smooth``), it does nothing else. If
    windows are whole packets, it begins a recovery (Tahoe: slow start) or waits for its
    retransmission timer. It waits if its recovery cannot repair the losses (``times_out``), or if
    its first retransmission is lost (``resend_lost``). ``c`` is the capacity in pkt/s.
    """
    # ``W`` is the window before the cut, and ``new`` the one after it
    lost, W = flow.undetected, allowed_in_flight(flow, smooth)
    slow_start = flow.in_slow_start
    # No loss waits for its detection any more. The change of the window that the law had decided
    # for this round trip (``round_drift``) is given up. The receiver holds back no packet.
    flow.detection_in, flow.in_slow_start, flow.rounds_at_rest = 0.0, False, 0.0
    flow.round_drift, flow.held_back, flow.lacks = 0.0, 0.0, 0.0
    # whether slow start lost one of every two packets, and whether the sender waits for its timer
    pairs, flow.lost_of_pairs = flow.lost_of_pairs, False
    timer, flow.resend_lost = times_out(flow, now, c) or flow.resend_lost, False
    fast = W - lost >= needed(flow, now, c)  # enough duplicate ACKs come for a fast retransmit
    before = flow.in_flight
    flow.in_flight = max(before - lost, 0.0)
    flow.undetected = flow.burst_lost = 0.0
    new = max(cut(flow, now, smooth), flow.min_window)
    if slow_start and flow.halves_in_slow_start:
        new = min(new, max(np.floor(0.5 * W), flow.min_window))
    flow.drain = before  # its ACKs let ``in_flight`` fall to the new window (``growth.send``)
    if smooth:
        flow.cwnd = flow.in_flight = new
        return
    if fast and flow.fine_timer:
        # A fast retransmit doubles the timeout of ns-2's Vegas. With the duplicate ACKs, the window
        # allows new + before - lost outstanding packets. If this is more than ``before``, the first
        # fresh packet is sent in the recovery, and its ACK comes at the end. Otherwise the packet
        # is sent at the end.
        back_off(flow)
        flow.resends = max(flow.resends, 1.0 if new > lost else FRESH)
    if timer:
        if fast:  # a fast retransmit came first, and has cut the window
            W = 1.0 if flow.recovery == SLOW_START else new
        _begin_timeout(flow, now, c, lost, before, W, fast)
    else:
        _begin_repair(flow, lost, W, new, ago, pairs)
