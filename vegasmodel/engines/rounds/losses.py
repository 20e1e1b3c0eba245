"""Simulates how a sender reacts to duplicate ACKs, and to ACKs that fill a hole.

A hole is a range of consecutive packets that the receiver misses. ``duplicate_acks`` processes a
group of duplicate ACKs at once, and ``acks_fill_hole`` a group of ACKs that fill a hole.
``laws.py`` changes the window. ``repair.py`` decides what is sent in a recovery with SACK. For the
Vegas of ns-2 and of the papers, ``overdue.py`` decides what is retransmitted.

Many functions have the same arguments. ``f`` is the record of a flow, and ``holes`` is the table of
its holes (``acks.add_hole``). A function that processes several ACKs together processes those that
arrive between the times ``now`` and ``end``, in seconds.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import (
    acknowledge,
    blocks,
    fill_holes,
    limit_flight,
    portion,
    received_beyond,
    send,
    send_nothing,
    send_or_wait,
    sent_twice,
    usable_window,
)
from vegasmodel.engines.rounds.bictcp import sample
from vegasmodel.engines.rounds.delayed_ack import (
    adapt_ato,
    begin_ack_delay,
    hold_duplicate,
    packets_per_ack,
)
from vegasmodel.engines.rounds.laws import (
    acks_to_change,
    cut,
    dupack_threshold,
    grow,
    in_flight,
    in_slow_start,
    outstanding,
    restart_when_idle,
    window,
)
from vegasmodel.engines.rounds.overdue import check_at_duplicate, check_at_filled, leave_stale
from vegasmodel.engines.rounds.repair import (
    allowed,
    find_lost_again,
    more_known_lost,
    record_first_resent,
    reenter_recovery,
    send_lost_or_wait,
)
from vegasmodel.engines.rounds.scoreboard import (
    count_flight,
    forget,
    forget_retransmissions,
    known_lost,
    recall,
)
from vegasmodel.engines.rounds.state import (
    AFTER,
    HOLE_BY_HOLE,
    ONE_HOLE,
    OPEN,
    RECOVERY,
    REORDERING,
    RETRANSMIT,
    SENT_AT,
    SLOW_START,
    TAIL_PROBE,
    TIMER,
    Parcel,
    Sender,
    jit,
    rare,
)
from vegasmodel.engines.rounds.timer import (
    arm,
    arm_reordering_timer,
    expiry,
    reordering_window,
    restart_timer,
    stop_timing,
)
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _receive(f: Sender, holes: Floats, first: float, packets: float, sent_at: float) -> float:
    """Record that ``packets`` packets have arrived while earlier ones are missing.

    The first of them has the number ``first``, and the last was sent at the time ``sent_at``.
    Returns how many of them the receiver did not have before. At the end of a recovery, ns-2's
    CUBIC forgets which packets have arrived. But the SACK block that reports the new packets also
    reports the packets next to them, so CUBIC learns of these again (``scoreboard.recall``).
    """
    if f.clears_scoreboard and f.phase == RECOVERY:
        recall(f, holes, first, packets)
    beyond = first + packets > f.received  # a higher number than any that arrived before
    new = fill_holes(f, holes, first, packets, sent_at)
    if f.finds_lost_again and f.phase == RECOVERY:
        find_lost_again(f, holes, packets, beyond)
    return new


@jit
def sack_seconds(f: Sender, holes: Floats) -> float:
    """Seconds by which the SACK blocks in an ACK lengthen the transmission of this ACK."""
    return blocks(f, holes) * f.block_delay if f.holes > 0 else 0.0


@rare
def fast_retransmit(f: Sender, end: float) -> None:
    """Retransmit the first missing packet at time ``end`` and restart the retransmission timer.

    The RTT measurement in progress is cancelled, because the RTT of a packet that was sent twice is
    ambiguous. Only ns-2's CUBIC does not cancel it (``every_ack_restarts``).
    """
    f.retransmit = f.acked
    arm(f, end)
    if not f.every_ack_restarts:
        stop_timing(f)


@jit
def _duplicate_of_cubic(f: Sender, holes: Floats, now: float, end: float) -> None:
    """Process a duplicate ACK for ns-2's CUBIC: it may begin a recovery, and packets may leave.

    A recovery begins if the first missing packet counts as lost (``scoreboard.known_lost``). If the
    sender waits a random time before it sends, this wait also delays the first retransmission of
    the recovery (send_much in tcp-linux.cc).

    At the end of each recovery the sender forgets which packets have arrived. If more than
    ``dup_thresh`` packets have arrived beyond the first missing one, some of them arrived before
    the last recovery ended. The sender has forgotten these, and knows only the arrivals that the
    SACK blocks of this ACK report (``scoreboard.forget``).
    """
    if f.phase == OPEN and f.holes > 0 and known_lost(f, holes, f.first_hole) > f.acked and cut(f):
        # ``cut`` has begun a recovery
        forget_retransmissions(f, holes)
        if received_beyond(f) > f.dup_thresh:
            forget(f, holes)
        count_flight(f, holes)
    limit_flight(f)
    if f.phase == RECOVERY:
        send_lost_or_wait(f, holes, usable_window(f, now), 1.0, end)
    else:
        _send_new_data(f, now, 1.0)


@jit
def duplicates_alike(f: Sender, p: Parcel) -> float:
    """How many of the first packets of ``p`` are duplicates with the same kind of ACK.

    ``p`` is a group of packets that travel together. A duplicate is a packet that the receiver has
    already: its number is below ``f.acked``. The receiver acknowledges duplicates at once, with one
    exception: if ns-2's receiver delays ACKs, it may also delay the ACK of the last duplicate, that
    with the number ``f.acked`` - 1 (``duplicate_waits``). So the result leaves this duplicate out,
    unless it is the only one.
    """
    duplicates = f.acked - p.first
    leaves_out_last = f.delays_duplicates and f.delayed_ack and duplicates > 1.0
    return duplicates - 1.0 if leaves_out_last else duplicates


@jit
def duplicate_waits(f: Sender, p: Parcel) -> bool:
    """Whether ns-2's receiver delays the ACK of a packet that it has already.

    The packet is the first of ``p``, a group of packets that travel together. The receiver delays
    the ACK only if it delays ACKs at all, if it has no packet with a higher number, and if it is
    not delaying another ACK.
    """
    last = f.delays_duplicates and p.first == f.acked - 1.0
    waits = last and packets_per_ack(f) > 1.0 and f.delack_packets == 0.0
    return waits and received_beyond(f) == 0.0


@jit
def _acks_alike(f: Sender, p: Parcel, acks: float, enough: float) -> float:
    """How many of the next ``acks`` duplicate ACKs the simulator processes together.

    For ns-2's CUBIC it processes each ACK separately. For other senders there are three cases:

    - No loss has been signalled yet. The duplicate ACK number ``enough`` signals the loss. The ACKs
      up to this one are processed together. But if the sender can act on an earlier ACK (Vegas of
      ns-2 or the papers, limited transmit), they are processed one by one.
    - A loss has been signalled. The first ACKs may release no packet, because too many packets are
      in flight. These ACKs are processed together. The first ACK that releases a packet is left for
      the next call.
    - The sender is in a recovery with Linux's PRR. All ACKs are processed together.
    """
    if f.counts_places:
        return 1.0
    if p.first < f.acked:
        acks = min(acks, duplicates_alike(f, p))
    if f.phase == OPEN and f.dupacks < enough:
        one_by_one = f.overdue_checks or f.limited_transmit
        return 1.0 if one_by_one else min(acks, enough - f.dupacks)
    if f.phase == RECOVERY and f.paced_recovery:
        return acks
    idle_acks = outstanding(f) - window(f)  # the next ACKs, which release no packet
    return min(acks, idle_acks) if idle_acks >= 1.0 else acks


@jit
def duplicate_acks(f: Sender, p: Parcel, holes: Floats, now: float, step: float) -> float:
    """Process the next duplicate ACKs; returns the time at which the last of them arrives.

    The receiver sends a duplicate ACK for each packet that arrives while an earlier one is missing,
    and for each packet that it already has. ``p`` is the group of packets that travel together and
    cause these ACKs. This function processes the ACKs that arrive within about ``step`` seconds
    from ``now`` on. It processes fewer if a later one of them may have another effect on the sender
    than the first ones (``_acks_alike``). The other ACKs are left for further calls.

    A timer of the sender may expire before the last of these ACKs arrives. Then this call processes
    no ACK, and returns the time of the expiry. This is a simplification: some of the ACKs may
    arrive before the expiry, but the simulator processes all of them after it.

    What an ACK does depends on the sender. ns-2's CUBIC (``counts_places``) and the Vegas of ns-2
    and of the papers (``overdue_checks``) have functions of their own. For all other senders there
    are two cases:

    - In a recovery, a sender with SACK sends the packets that the ACK allows. For a sender without
      SACK, the ACK enlarges the window by a packet.
    - Outside a recovery, a certain number of duplicate ACKs signals a loss. This number
      (``enough`` in the code) is usually three, in Linux sometimes less.
    """
    acks = _acks_alike(f, p, portion(p, now, step), f.dup_thresh)
    # ``bare`` is when the last of the ACKs processed here would arrive if it had no SACK blocks,
    # which make an ACK longer. (``p.back`` is the same time for the last ACK of the whole group.)
    bare = now + (p.back - now) * acks / p.packets
    end = max(bare, now)
    if f.deadline < end:
        f.event = TIMER
        return max(now, f.deadline)
    first = p.first  # ``acknowledge`` changes it
    samples = acks if f.scoreboard else 0.0  # with SACK a duplicate ACK gives an RTT sample, too
    acknowledge(f, p, acks, now, samples)
    if f.every_ack_restarts:  # ns-2's CUBIC
        arm(f, end)
    new = _receive(f, holes, first, acks, p.sent_at)
    f.arrived += new
    count_flight(f, holes)
    # Linux's receiver may delay duplicate ACKs; for others ``hold_duplicate`` returns 0
    end = max(bare + sack_seconds(f, holes), now) + hold_duplicate(f, acks)
    if f.hystart:
        sample(f, f.rtt_last, end, f.acked, acks)
    f.dupacks += acks
    if f.counts_places:  # ns-2's CUBIC: how far a packet is below the highest SACKed one decides
        _duplicate_of_cubic(f, holes, now, end)
        return end
    # seconds from the sending of the first missing packet to that of the last of these packets
    later = p.sent_at - holes[f.first_hole, SENT_AT]
    enough = dupack_threshold(f, later)
    if f.overdue_checks:  # Vegas of ns-2 and of the papers: the age of the missing packet decides
        check_at_duplicate(f, holes, acks, end)
    elif f.phase == RECOVERY:
        if f.scoreboard:  # SACK: these packets are no longer in the network
            f.pipe -= acks
            free = allowed(f, holes, acks, now, 0.0)  # 0: these are not partial ACKs
            send_lost_or_wait(f, holes, free, acks, end)
            return end
        f.inflated += acks
    elif f.dupacks == enough:  # the last of these ACKs signals a loss
        if cut(f):  # a recovery begins
            record_first_resent(f, holes)
            fast_retransmit(f, end)
            if not f.scoreboard:
                _send_new_data(f, now, 1.0)
            return end
        if f.recovery == SLOW_START and f.next == f.acked:  # Tahoe sends again from ``acked`` on
            send_or_wait(f, window(f), 0.0)
            arm(f, end)
            stop_timing(f)
            return end
    elif f.dupacks > enough and f.inflated > 0.0:  # ``cut`` has added three packets without a cut
        f.inflated += acks
    if f.dupacks >= enough:
        _send_new_data(f, now, acks)
    else:
        _limited_transmit(f, now, end, acks, later)
    return end


@jit
def _limited_transmit(f: Sender, now: float, end: float, acks: float, later: float) -> None:
    """Limited transmit (RFC 3042): send new packets at duplicate ACKs that signal no loss yet.

    ``acks`` is the number of these ACKs, and the last arrives at ``end``. Linux does this, and ns-2
    with the option ``singledup_``. A Linux sender also sets its reordering timer: if it expires,
    the first missing packet counts as lost. ``later`` is the time in seconds from the sending of
    this packet to the sending of the packet that caused the last of these ACKs.
    """
    if f.rack:
        send(f, min(usable_window(f, now) + f.dupacks, acks), acks)
        arm_reordering_timer(f, end, reordering_window(f) - later)
    elif f.limited_transmit and not f.overdue_checks and now < f.stop:
        free = np.floor(f.cwnd + f.dupacks) - in_flight(f)
        send(f, max(min(free, 1.0), 0.0), 0.0)


@jit
def _send_new_data(f: Sender, now: float, acks: float) -> None:
    """Send the new packets that the window allows at ``acks`` duplicate ACKs (RFC 5681 3.2).

    The function is called at the duplicate ACK that signals a loss, and at each later one. These
    ACKs enlarge the window, so that it may allow new packets. NewReno of ns-2 sends at most two new
    packets at each of these ACKs. For ns-2's CUBIC the function is called at duplicate ACKs outside
    a recovery.
    """
    free = usable_window(f, now)
    if f.recovery == HOLE_BY_HOLE and not f.overdue_checks:
        free = min(free, 2.0 * acks)  # ns-2 sends at most two packets at a duplicate ACK
    send_or_wait(f, free, acks)


@rare
def early_timer_expired(f: Sender, holes: Floats, now: float) -> bool:
    """Handle the expiry of a timer, unless it is the retransmission timer.

    Linux has two timers that expire before the retransmission timer:

    - When the reordering timer expires, the first missing packet counts as lost. A recovery begins,
      and the packet is retransmitted. Neither happens if a loss has cut the window before, and a
      packet that was sent before this cut is not yet acknowledged (``cut``).
    - When the timer of the tail probe expires, the sender sends one new packet or, if it has none,
      its last packet again.

    If the retransmission timer has expired, the function returns False, and the caller handles the
    timeout. Otherwise it returns True.
    """
    send_nothing(f)
    if f.timer_kind == RETRANSMIT:
        return False
    f.early_timers += 1.0
    if f.timer_kind == REORDERING and cut(f):  # a recovery begins
        record_first_resent(f, holes)  # in the table of holes
        fast_retransmit(f, now)  # sends the packet
    elif f.timer_kind == TAIL_PROBE:  # a new packet, even beyond the window
        f.deadline, f.timer_kind = expiry(f, now, f.rto), RETRANSMIT
        if f.next < f.size:
            f.burst = 1.0
        else:
            f.retransmit = f.high - 1.0
        f.next += f.burst
        f.probed = f.next
    else:  # the window was cut already for packets of this window
        f.deadline, f.timer_kind = expiry(f, now, f.rto), RETRANSMIT
    return True


@rare
def acks_fill_hole(f: Sender, p: Parcel, holes: Floats, now: float, step: float) -> float:
    """Process ACKs of packets that fill the first hole; returns when the last of them arrives.

    A hole is a range of consecutive packets that the receiver misses. When the hole is filled, the
    receiver also acknowledges the packets behind it, up to the next hole. ``p`` is the group of
    packets that travel together and fill the hole. The function processes the ACKs that arrive
    within about ``step`` seconds from ``now`` on.

    If the receiver has no packet behind the hole, it does not know that there is a hole. So it
    delays the ACK like any other (RFC 5681 4.2; in ns-2 ``DelAckSink::recv`` of tcp-sink.cc).
    """
    delays = packets_per_ack(f) > 1.0 and (f.delack_packets > 0.0 or received_beyond(f) == 0.0)
    if delays and f.delack_packets == 0.0:
        return begin_ack_delay(f, p, now)
    acks = min(portion(p, now, step), holes[f.first_hole, AFTER] - f.acked)
    if f.phase == OPEN:
        acks = min(acks, acks_to_change(f))
    # at each of these ACKs the sender may retransmit a packet, or the receiver delays the ACK
    if f.overdue_checks or (f.phase == RECOVERY and (f.halves_rate or not f.scoreboard)) or delays:
        acks = 1.0
    bare = now + (p.back - now) * acks / p.packets  # when the last ACK arrives, without SACK blocks
    end = max(bare, now)
    # only timestamps tell whether an ACK is of a retransmission, so that it can give an RTT sample
    acknowledge(f, p, acks, now, acks if f.timestamps else 0.0)
    adapt_ato(f, acks, end, end)
    return fill(f, holes, acks, acks + f.delack_packets, p.sent_at, now, bare)


@rare
def fill(
    f: Sender, holes: Floats, acks: float, packets: float, sent_at: float, now: float, bare: float
) -> float:
    """Process ``acks`` ACKs of ``packets`` packets that fill the first hole or follow it.

    A hole is a range of missing packets. The last of the packets was sent at the time ``sent_at``.
    Returns the time at which the last ACK arrives. Without SACK blocks, which make the ACK longer,
    this would be ``bare``. The result is at least ``now``.
    """
    none_left = in_flight(f) <= packets  # after these ACKs no packet is in flight
    before = f.acked
    below = sent_twice(f)  # packets below this number may have been sent twice
    f.delack_packets = 0.0
    f.arrived += _receive(f, holes, before, packets, sent_at)
    if f.syn_in_window and before == 0.0:
        f.arrived -= 1.0  # the SYN carries no data
    f.delivered = max(f.delivered, f.arrived - received_beyond(f))
    count_flight(f, holes)
    end = max(bare + sack_seconds(f, holes), now)
    f.next = max(f.next, f.acked)
    if f.hystart:
        sample(f, f.rtt_last, end, f.acked, acks)
    if f.overdue_checks:  # Vegas of ns-2 and of the papers
        leave_stale(f, before)
        check_at_filled(f, holes, end, below)
        return end
    # whether the sender stays in recovery; these ACKs then are partial ACKs
    stays = f.phase == RECOVERY and f.acked < f.recover and f.holes > 0
    if f.every_ack_restarts or not stays or f.recovery == ONE_HOLE:
        restart_timer(f, end)
    if stays and f.recovery != ONE_HOLE:
        _partial(f, holes, now, end, acks, f.acked - before)
    else:
        _grow_and_send(f, holes, now, end, acks, none_left)
    return end


@rare
def _grow_and_send(
    f: Sender, holes: Floats, now: float, end: float, acks: float, none_left: bool
) -> None:
    """Process ACKs of new data that end a recovery, or that arrive outside a recovery.

    The ``acks`` ACKs arrive between the times ``now`` and ``end``. The window grows, and the sender
    sends what the window allows. In ns-2 the window of a sender with SACK does not grow at the end
    of a recovery, unless a timeout began it (``sack_exit_rests``).

    ``none_left`` is True if no packet is in flight after these ACKs, before the sender sends again.
    Linux's Vegas then begins a new round trip with its next packets (``restart_when_idle``).
    """
    grows, lost_more = True, False
    if f.phase == RECOVERY:
        grows = not f.sack_exit_rests or f.timed_out == 1
        lost_more = _leave_recovery(f, holes, end)
    f.phase, f.inflated, f.dupacks = OPEN, 0.0, 0.0
    if lost_more:
        reenter_recovery(f, holes, acks)
        return
    slow_start = in_slow_start(f)  # each ACK may release more packets than it acknowledges
    if grows:
        grow(f, acks, end)
    if none_left:
        restart_when_idle(f)
    limit_flight(f)
    free = usable_window(f, now)
    # If several ACKs arrive in slow start, all packets leave evenly between ``now`` and ``end``.
    # Otherwise at most one packet for each ACK does, and the others leave with the last ACK.
    send_or_wait(f, free, free if slow_start and acks > 1.0 else acks)


@rare
def _leave_recovery(f: Sender, holes: Floats, end: float) -> bool:
    """Change the sender's record at the end of a recovery, at the time ``end``.

    Returns whether the sender knows that further packets are lost. Linux then begins another
    recovery at once (``more_known_lost``). ns-2's CUBIC begins it only when the next duplicate ACK
    arrives (``_duplicate_of_cubic``).
    """
    if f.restarts_rounds:
        f.round_end, f.round_start = f.next, end  # Vegas begins a new round trip after the loss
        f.rtt_count, f.rtt_min = 0.0, NEVER
    if f.sack_exit_rests:
        # ``cut`` does not cut the window until ``acked`` is above ``recover``. With -1 it is: the
        # next loss cuts the window.
        f.recover = -1.0
    if f.clears_scoreboard:
        f.pipe, f.timed_out = in_flight(f), 0
    return more_known_lost(f, holes)


@rare
def _partial(
    f: Sender, holes: Floats, now: float, end: float, acks: float, advanced: float
) -> None:
    """Process partial ACKs: ACKs of new data in recovery that leave other packets missing.

    ``advanced`` is the number of packets that the ``acks`` ACKs acknowledge. A sender with SACK
    sends as many packets as ``allowed`` returns. ns-2's CUBIC sends what its window allows. A
    NewReno sender retransmits the next missing packet. It also sends up to two new packets if the
    window allows them.

    NewReno of ns-2 2.35 follows RFC 2582. Only the first partial ACK of a recovery restarts the
    retransmission timer (``newreno_changes1_``). If a partial ACK acknowledges n packets, the
    window shrinks by n-1 packets (``partial_window_deflation_``). Here the window is ``cwnd`` plus
    ``inflated``, the packets that duplicate ACKs have added. ``inflated`` shrinks first, and stays
    at least 1; what is missing is taken from ``cwnd``.

    The ACKs arrive between the times ``now`` and ``end``, in s.
    """
    deflates = f.partial_deflates  # as in RFC 2582
    if not (deflates and f.partial):
        arm(f, end)
    f.partial = 1
    if f.counts_places:  # ns-2's CUBIC
        if f.timed_out:  # in the state TCP_CA_Loss the window grows (tcp-linux.cc)
            grow(f, acks, end)
        limit_flight(f)
        send_lost_or_wait(f, holes, usable_window(f, now), acks, end)
        return
    if f.scoreboard:
        f.backoff = 1.0
        f.pipe -= f.partial_in_pipe * acks  # 2 packets for each partial ACK in ns-2, else 1
        free = allowed(f, holes, acks, now, 1.0)  # 1: these are partial ACKs
        send_lost_or_wait(f, holes, free, acks, end)
        return
    f.retransmit = f.acked  # NewReno
    if f.acked > f.timed:  # the packet whose RTT was being measured is acknowledged
        f.backoff = 1.0
        stop_timing(f)
    if not deflates:
        f.inflated = 0.0
    elif f.inflated > advanced:
        f.inflated -= advanced - 1.0
    else:
        f.cwnd = max(f.cwnd - (advanced - f.inflated), 1.0)
        f.inflated = 1.0
    send_or_wait(f, min(usable_window(f, now), 2.0), 0.0)
