"""Processes the ACKs that come back to a sender, and computes which packets it then sends.

The packets of a flow travel in groups, and so do their ACKs. The simulator assumes that the ACKs of
a group are evenly spaced. To save time, one call of ``plan`` processes several ACKs of a group
together: those that arrive within a certain fraction of a round trip. ``plan`` changes the window
as the flow's congestion control does at these ACKs. Then it computes how many packets leave, and
when.

ACKs that are processed together must have the same effect. So ``plan`` processes fewer of them if
the effect changes, for example at the end of a round trip. If the retransmission timer expires
before the next ACK arrives, ``plan`` processes no ACK, and the expiry is the sender's next event.

In the functions, ``f`` is the record of a sender, and ``holes`` is the table of the packets that
its receiver misses (``acks.add_hole``). ``h`` is the flow's first hop, whose ring buffer, in
``rings``, has the groups of packets that are on their way to the sender. ``now`` is the time in
seconds.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import (
    acknowledge,
    add_hole,
    limit_flight,
    per_packet,
    portion,
    send,
    send_nothing,
    send_or_wait,
    sendable,
    sent_twice,
    usable_window,
    waits_first,
    whole_usable,
)
from vegasmodel.engines.rounds.bictcp import sample
from vegasmodel.engines.rounds.delayed_ack import (
    adapt_ato,
    delack_expiry,
    delay_duplicate,
    delay_new_ack,
    packets_per_ack,
    pause_ended,
    sample_single,
    use_quick_acks,
)
from vegasmodel.engines.rounds.laws import (
    acks_to_change,
    decide_per_ack,
    deflate,
    end_round,
    enter_cwr,
    grow,
    in_cwr,
    in_flight,
    in_slow_start,
    restart_when_idle,
    window,
)
from vegasmodel.engines.rounds.losses import (
    acks_fill_hole,
    duplicate_acks,
    duplicate_waits,
    duplicates_alike,
    fill,
    sack_seconds,
)
from vegasmodel.engines.rounds.repair import retransmission_lost
from vegasmodel.engines.rounds.scoreboard import count_flight
from vegasmodel.engines.rounds.state import (
    DATA,
    FIRST,
    HOLE_BY_HOLE,
    OPEN,
    RECOVERY,
    SENT_AT,
    TIMER,
    WITHOUT_ROUNDS,
    Hop,
    Parcel,
    Sender,
    Table,
    apart,
    jit,
    parcel,
    pop,
    rare,
)
from vegasmodel.engines.rounds.timer import restart_timer, time_one_packet
from vegasmodel.engines.rounds.wait import begin_wait, end_wait
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _before_new_data(f: Sender) -> None:
    """Do what a sender does first when an ACK of new data arrives.

    - Vegas with the variant ``ns2`` or ``paper`` takes back what duplicate ACKs have added to its
      window (``deflate``).
    - Vegas of ns-2 2.35 begins with a window of one packet. At the ACK of its second packet, which
      has the number 1, the window becomes ``first_window`` (``second_packet_first``).
    - If packet 0 was a SYN, it does not count as delivered.
    - If the ACK reports a congestion mark (ECN), the sender cuts its window.
    """
    if f.overdue_checks:  # Vegas with the variant ``ns2`` or ``paper``
        deflate(f)
        f.rechecks = 0.0
        if f.second_packet_first and f.acked == 1.0:
            f.cwnd = max(f.cwnd, f.first_window)  # ns-2: delay_growth_
    if f.syn_in_window and f.acked == 0.0:
        f.arrived -= 1.0
        f.delivered -= 1.0
    if f.marked:
        enter_cwr(f)
        f.marked = 0


@jit
def _acks_at_once(f: Sender, acks: float, each: float, untimed: float, gives_sample: bool) -> float:
    """How many of the next ``acks`` ACKs of new data the simulator processes in one step.

    To process several ACKs in one step saves time, but it is exact only if all have the same
    effect. So a step ends at the latest with one of these ACKs, whichever comes first:

    - The ACK at which the window reaches its next whole number of packets.
    - The ACK before the one that ends the round trip.
    - After a cut because of an ECN mark (CWR), the ACK of the last packet sent before the cut.
      Until this ACK has come, ns-2's CUBIC (``halves_rate``) processes only one ACK in a step.
    - The last ACK before the ACKs begin to give RTT samples, or cease to give them.

    Each ACK acknowledges ``each`` packets. ``gives_sample`` is True if the first ACK gives an RTT
    sample, because its packet was sent only once. If ``gives_sample`` is False, no ACK of a packet
    with a number below ``untimed`` gives a sample.
    """
    to_change = acks_to_change(f)  # ACKs until the window is at its next whole number
    if each > 1.0 and f.counts_packets:  # Linux: an ACK of two packets counts like two ACKs
        to_change /= each
    acks = min(acks, max(np.floor(to_change), 1.0))
    if in_cwr(f):
        if f.halves_rate:
            return 1.0
        acks = max(min(acks, np.ceil((f.recover - f.acked) / each)), 1.0)
    if f.round_end > f.acked:
        acks = min(acks, np.ceil((f.round_end - f.acked - each + 1.0) / each))
    if not gives_sample:
        return min(acks, np.ceil((untimed - f.acked) / each))
    if f.acked < f.stale:
        return min(acks, np.ceil((f.stale - f.acked) / each))
    return acks


@jit
def _new_acks(f: Sender, p: Parcel, first: float, now: float, step: float) -> float:
    """Process the next ACKs of new data: those of the first packets of ``p``.

    ``p`` is a group of packets that travel together, and no packet before it is missing. Each ACK
    acknowledges one packet, or two if ACKs are delayed. ``first`` is the time at which the ACK of
    the group's first packet arrives at the sender if it is not delayed. The function processes the
    ACKs that arrive within about ``step`` seconds from ``now`` on, or fewer (``_acks_at_once``).
    Returns the time at which the last of the ACKs arrives, or would arrive if it were not delayed.
    """
    # Vegas (variants ``ns2`` and ``paper``) takes no RTT sample from packets with numbers below
    # ``untimed``: they count as sent twice, or ns-2 has stored wrong sending times for them
    # (``overdue.leave_stale``)
    untimed = max(sent_twice(f), f.untimed)
    if f.stale <= f.acked < f.stale_end:
        untimed = max(untimed, f.stale_end)
    gives_sample = not f.overdue_checks or f.acked >= untimed  # the first ACK gives an RTT sample
    adapt_ato(f, 1.0, first, first)  # how long the receiver now delays an ACK
    # number of packets that an ACK acknowledges, and number of those that arrive in the step
    each, ready = packets_per_ack(f), portion(p, now, step)
    if f.delack_packets + ready < each:  # too few packets: the receiver delays the ACK
        return delay_new_ack(f, p, now)
    f.marked, p.marked = max(f.marked, p.marked), 0
    _before_new_data(f)
    acks = ready if each == 1.0 else np.floor((f.delack_packets + ready) / each)
    # whether the first ACK ends a round trip, so that the congestion control decides
    decides = f.rounds and f.acked + each - 1.0 >= f.round_end
    if decides or f.duplicate_held:
        acks = 1.0
    elif acks != 1.0:
        acks = _acks_at_once(f, acks, each, untimed, gives_sample)
    # Linux's Vegas (``decides_late``) decides only after it has taken the RTT sample of this ACK
    if decides and not f.decides_late:
        # seconds until this ACK arrives: the one of the last packet that it acknowledges
        until = max(p.back - now, 0.0) * (each - f.delack_packets) / p.packets
        f.next = max(f.next, f.acked + each)  # a timeout had set it back (newack in ns-2's tcp.cc)
        end_round(f, now + until, in_flight(f) - each + 1.0, each)
    empties_flight = in_flight(f) <= each  # the first ACK acknowledges all packets in flight
    f.arrival_sent_at = p.sent_at
    # the packets of ``p`` whose ACKs come; ``delack_packets`` earlier ones have waited for an ACK
    packets = acks * each - f.delack_packets
    end = acknowledge(f, p, packets, now, acks if gives_sample else 0.0)
    f.received = f.acked + acks * each
    # the packets behind the first one also adapt the receiver's delay; when the first of them came
    second = end if packets <= 2.0 else first + (end - first) / (packets - 1.0)
    adapt_ato(f, packets - 1.0, second, end)
    use_quick_acks(f, acks)
    _advance_window(f, acks, each, now, end, decides, empties_flight)
    return end


@rare
def _single_ack(f: Sender, holes: Floats, at: float, delay: float) -> float:
    """Process the ACK of a single packet; returns the time at which this ACK arrives.

    The receiver has delayed the ACK by ``delay`` seconds. The ACK arrives at the time ``at``, or
    later if SACK blocks make it longer.
    """
    acks, packets = 1.0, 1.0
    if f.holes > 0 and holes[f.first_hole, FIRST] == f.acked:
        return fill(f, holes, acks, packets, f.latest_sent_at, at, at)
    # whether the ACK gives an RTT sample: for ns-2's Vegas only if its packet counts as sent once
    gives_sample = not f.overdue_checks or f.acked >= max(sent_twice(f), f.untimed)
    gives_sample = gives_sample and not f.stale <= f.acked < f.stale_end
    _before_new_data(f)
    decides = f.rounds and f.acked >= f.round_end  # the ACK ends a round trip
    if decides and not f.decides_late:
        f.next = max(f.next, f.acked + 1.0)
        end_round(f, at, in_flight(f), packets)
    if gives_sample:
        sample_single(f, delay)
    _advance_window(f, acks, packets, at, at, decides, in_flight(f) <= packets)
    return at


@jit
def _advance_window(
    f: Sender,
    acks: float,
    each: float,
    now: float,
    end: float,
    decides: bool,
    empties_flight: bool,
) -> None:
    """Process ``acks`` ACKs of new data: change the window, and send what it then allows.

    Each ACK acknowledges ``each`` packets. The last ACK arrives at the time ``end``. If it ends a
    round trip, so that the congestion control law decides, ``decides`` is True. (Then ``acks`` is
    1.) ``empties_flight`` is True if the first ACK acknowledges all packets that were in flight.

    The law decides before or after the RTT sample of the deciding ACK is taken. In Linux
    (``decides_late``) it is after, so this function calls ``end_round``. Otherwise the caller has
    called it already.

    The window of ns-2's CUBIC (``grows_when_full``) does not grow if fewer packets than cwnd are in
    flight when the ACK arrives. There are fewer while the sender waits for a random time before it
    sends (``send_jitter``), or if ``max_window`` is below cwnd.
    """
    packets = acks * each
    # ``full`` says whether cwnd packets are in flight when an ACK arrives. If several ACKs are
    # processed together, this is taken to be so, because the sender sends between these ACKs.
    full = acks > 1.0 or in_flight(f) >= np.floor(f.cwnd)  # cwnd alone, without ``max_window``
    f.acked += packets
    f.arrived += packets
    f.delivered += packets
    f.delack_packets = 0.0
    f.next = max(f.next, f.acked)
    f.dupacks = 0.0
    if not f.scoreboard:
        # duplicate ACKs of packets sent twice may have enlarged the window, outside a recovery, too
        f.inflated = 0.0
        # An ACK of new data ends the fast recovery. NewReno's (HOLE_BY_HOLE) ends only if the ACK
        # acknowledges all packets that were in flight when it began.
        if f.recovery != HOLE_BY_HOLE or f.acked >= f.recover:
            f.phase = OPEN
    if decides and f.decides_late:
        end_round(f, end, in_flight(f), packets)
    if (f.without & WITHOUT_ROUNDS) != 0 and f.overdue_checks:  # an experiment with Vegas
        decide_per_ack(f)
    if f.hystart:  # Linux's CUBIC: the RTT samples may end slow start
        sample(f, f.rtt_last, end, f.acked, acks)
    slow_start = in_slow_start(f)  # each ACK may then release more packets than it acknowledges
    if full or not f.grows_when_full:
        grow(f, packets if f.counts_packets else acks, end)
    restart_timer(f, end)
    if empties_flight:
        restart_when_idle(f)
    limit_flight(f)
    if not waits_first(f, acks):
        free = usable_window(f, now)
        # Of the packets that leave, this many leave evenly while the ACKs arrive, and the rest at
        # ``end``. In slow start all leave evenly, else one for each packet acknowledged.
        spread = free if slow_start else packets
        send_or_wait(f, free, 1.0 if acks <= 1.0 else spread)


@jit
def _merge(f: Sender, rings: Table[Parcel], h: Hop, now: float, step: float) -> None:
    """Join the next groups of packets (``Parcel``) if their ACKs arrive within ``step`` seconds.

    This saves time, because the ACKs of a group are processed together. Groups stay separate if the
    sender must process their ACKs separately, for example if a packet between them is lost or
    marked, or if the first ACK of the second group ends a round trip.
    """
    while h.count > 1:
        p, after = parcel(rings, h, 0), parcel(rings, h, 1)
        if after.back - now > step or after.first == f.round_end:
            return
        intact = p.lost == 0.0 and p.marked == 0 and after.first == p.first + p.packets
        one_by_one = f.holes > 0 and (f.overdue_checks or f.phase == RECOVERY)  # ACKs count singly
        if not intact or one_by_one:
            return
        after.first = p.first
        after.packets += p.packets
        after.rtt_sum += p.rtt_sum
        if p.packets > 0.0:
            after.rtt_min = min(after.rtt_min, p.rtt_min)
        pop(h)


@jit
def _armed(f: Sender) -> bool:
    """Whether the retransmission timer runs.

    It runs if packets are unacknowledged (RFC 6298, 5.2). It also runs if data are left to send,
    but the window is below one packet. The sender can then send again when the timer expires,
    because the window becomes one or two packets. In ns-2 (``idle_timer``) it also runs while the
    sender waits a random time with no packet in flight (``laws.idle_timeout``).
    """
    waits = f.idle_timer and f.wait_ends < NEVER
    return f.high > f.acked or waits or (window(f) < 1.0 and f.next < f.size)


@jit
def _wait_or_delay_end(f: Sender) -> float:
    """When the sender's random wait or the receiver's delay of an ACK ends, whichever is first.

    A random wait is a wait of the sender before it sends (``wait.py``). The result is ``NEVER`` if
    the sender is not in such a wait, and the receiver does not delay an ACK.
    """
    return min(f.wait_ends, delack_expiry(f))


@apart
def _end_wait_or_delay(f: Sender, holes: Floats, now: float) -> None:
    """End the sender's random wait or the receiver's delay of an ACK, whichever ends first.

    At the end of its wait the sender sends packets. At the end of an ACK's delay the ACK arrives at
    the sender. ``f.time`` becomes the time of this event.
    """
    if f.duplicate_held and f.delack_expires <= f.wait_ends:  # the ACK is a duplicate ACK
        f.duplicate_held, f.time = False, max(now, f.delack_expires)
        f.dupacks += 0.0 if f.scoreboard else 1.0  # a SACK sender sees that nothing is new
    elif delack_expiry(f) <= f.wait_ends:
        f.time = _single_ack(f, holes, max(now, f.delack_expires), f.delack_delay)
        pause_ended(f)
    else:
        end_wait(f, holes, now)


@jit
def _event_before(f: Sender, holes: Floats, until: float, now: float) -> bool:
    """Process the sender's next event if it comes before the time ``until``; else return False.

    There are three such events: the sender's random wait (``send_jitter``) ends, the receiver's
    delay of an ACK ends, or the retransmission timer expires.
    """
    timeout = f.deadline if _armed(f) else NEVER  # when the retransmission timer expires
    if _wait_or_delay_end(f) < min(until, timeout):
        _end_wait_or_delay(f, holes, now)
    elif timeout < until:
        f.event, f.time = TIMER, max(now, timeout)
    else:
        return False
    return True


@rare
def _no_acks_due(f: Sender, holes: Floats, now: float) -> None:
    """Decide what the sender does next if no ACK is on its way from the last queue to the sender.

    The sender sends what the window allows, or it waits. It may wait for packets that are still on
    their way through queues, for the end of its random wait or of an ACK's delay, or for the
    retransmission timer. If it has nothing to wait for, no event is planned (``f.time`` is
    ``NEVER``).
    """
    timeout = f.deadline if _armed(f) else NEVER  # when the retransmission timer expires
    until = _wait_or_delay_end(f)
    if until < timeout and (f.transit == 0 or until <= now):
        _end_wait_or_delay(f, holes, now)
        return
    if f.transit > 0:  # ACKs will come: packets are still on their way through queues
        f.awaits_parcels, f.awaits_since = 1, now
        if until < timeout:
            f.event, f.time = DATA, max(now, until)
        else:
            f.event, f.time = TIMER, max(now, timeout)
        return
    free = whole_usable(f, now)
    if sendable(f, free) >= 1.0 and f.wait_ends == NEVER:
        send(f, free, 0.0)
        f.time = now
    elif _armed(f):
        f.event, f.time = TIMER, max(now, f.deadline)
    else:
        f.time = NEVER


@jit
def plan(f: Sender, rings: Table[Parcel], h: Hop, holes: Floats, now: float, parts: float) -> None:
    """Process the flow's next ACKs, and plan which packets the sender then sends.

    These packets leave in an interval that ends at ``f.time``. If a timer expires before the next
    ACK arrives, the expiry is planned instead. ``parts`` is the number of intervals into which the
    simulator divides a round trip.

    ``f.ahead`` and ``f.ahead_acks`` record how many packets these ACKs deliver, and how many ACKs
    there are. A sample of the totals within the interval needs both numbers, because some of the
    ACKs arrive only after the sample (``samples.py``).
    """
    step = min(f.rtt_last / parts, f.longest_stretch)
    # process each ACK by itself: packets have delays of their own, or ACKs may arrive in a wait
    if f.noise > 0.0 or f.queue_wait > 0.0 or f.waits_long:
        step = 0.0
    f.time = f.ahead_since = now
    delivered, acks = f.delivered, f.acks
    while True:
        f.event = DATA
        send_nothing(f)
        before = f.delivered + f.acks
        _process_next(f, rings, h, holes, f.time, step)
        if f.delivered + f.acks != before:  # ACKs have arrived
            f.ahead_until = f.time
        if f.jitter > 0.0 and f.event == DATA:
            begin_wait(f, holes, f.time)
        # no packet leaves while the sender waits or an ACK is delayed: go on to what comes next
        idle = f.event == DATA and f.spread == 0.0 and f.burst == 0.0 and f.retransmit < 0.0
        if not idle or _wait_or_delay_end(f) == NEVER or f.awaits_parcels:
            break
    f.ahead, f.ahead_acks = f.delivered - delivered, f.acks - acks
    time_one_packet(f)
    if f.overdue_checks and f.first < f.high:  # Vegas stores when it sends a missing packet again
        for k in range(f.first_hole, f.holes):
            if f.first <= holes[k, FIRST] < f.first + f.spread + f.burst:
                holes[k, SENT_AT] = f.time


@jit
def _process_next(
    f: Sender, rings: Table[Parcel], h: Hop, holes: Floats, now: float, step: float
) -> None:
    """Process the sender's next ACKs, or one event that comes before them.

    There are four such events: the sender's random wait (``wait.py``) ends, the receiver's delay of
    an ACK ends, the retransmission timer expires, or a pause without ACKs ends. ``f.time`` becomes
    the time of the event or of the last of the ACKs. If the retransmission timer expires,
    ``f.event`` becomes ``TIMER``. (The caller, ``plan``, has set it to ``DATA``.)

    ACKs that arrive within about ``step`` seconds are processed together. Packets that were lost
    ahead of the next ACKs become holes: the receiver misses them.

    The ring buffer has the groups of packets (``Parcel``) whose ACKs come next. A group has no
    packets if all of them were lost, or if it stands for a pause. In both cases no ACK arrives
    until the time ``Parcel.back``.
    """
    while h.count > 0:
        _merge(f, rings, h, now, step)
        p = parcel(rings, h, 0)
        if p.packets > 0.0:  # its ACKs come next
            break
        if p.lost > 0.0:
            if f.phase == RECOVERY and f.finds_lost_again:
                retransmission_lost(f, holes, p.first, p.lost)
            add_hole(f, holes, p.first, p.lost, p.sent_at)
            count_flight(f, holes)
            p.first += p.lost
            p.lost = 0.0
        if p.back <= now:
            pop(h)
            continue
        # a pause: its end is the next event, unless one of the other three events comes before
        if not _event_before(f, holes, p.back, now):
            f.time = p.back
            pop(h)
        return
    if h.count == 0:
        _no_acks_due(f, holes, now)
        return
    _parcel_arrives(f, parcel(rings, h, 0), holes, now, step)


@jit
def _parcel_arrives(f: Sender, p: Parcel, holes: Floats, now: float, step: float) -> None:
    """Process the next ACKs, those of the packets ``p``, or an event that comes before them.

    ``p`` is a group of packets that travel together. If an event comes before the first of their
    ACKs (``_event_before``), the function handles only this event, and no ACK. Otherwise it
    processes the ACKs that arrive within about ``step`` seconds.
    """
    # when the first ACK would arrive without SACK blocks, and when it arrives with them: they make
    # the ACK longer
    bare = now + per_packet(p.back - now, p.packets)
    arrives = max(bare + sack_seconds(f, holes), now)
    if not _event_before(f, holes, arrives, now):
        held = f.duplicate_held  # the receiver still delays the ACK of a duplicate
        _packets_arrive(f, p, holes, max(bare, now), now, step)
        if held:  # the arriving packet has ended this delay: one ACK answers both
            f.duplicate_held = False


@jit
def _packets_arrive(
    f: Sender, p: Parcel, holes: Floats, first: float, now: float, step: float
) -> None:
    """Process the next ACKs, those of the packets ``p``, by the function that fits their kind.

    ``p`` is a group of packets that travel together. This function is called if no wait and no
    timer ends before the first of these ACKs arrives. ``first`` is the time of this arrival if the
    receiver does not delay the ACK. ACKs that arrive within about ``step`` seconds from ``now`` on
    may be processed together.
    """
    if p.first < f.acked and duplicate_waits(f, p):  # the receiver has this packet already
        f.time = delay_duplicate(f, p, now)
    elif p.first < f.acked and f.scoreboard:  # SACK shows that no packet is new
        extra = min(p.packets, duplicates_alike(f, p))
        f.time = acknowledge(f, p, extra, now, 0.0)
    elif p.first != f.acked + f.delack_packets and f.delack_packets > 0.0:
        f.time = _single_ack(f, holes, first, 0.0)  # a packet out of order ends the delay
        # The receiver answers this packet and the one before by one ACK, which is no duplicate.
        # The next call of this function counts it as one, so the count begins at -1. (Linux counts
        # every packet that SACK reports, see tcp_rack_reo_wnd.)
        if not f.rack:
            f.dupacks = -1.0
    elif p.first != f.acked + f.delack_packets:  # an earlier packet is missing
        f.time = duplicate_acks(f, p, holes, now, step)
    elif f.holes > 0:
        f.time = acks_fill_hole(f, p, holes, now, step)
    else:
        f.time = _new_acks(f, p, first, now, step)
