"""Moves groups of packets through each queue on a flow's path and back to the sender.

The packets of a group arrive at a queue evenly over an interval of time, or all at its end. The
simulator handles this arrival as one event at the end of the interval. It finds which packets are
lost and when the others leave, and sends the group on to the next queue. But the group's first
packet may reach the next queue before the interval is over. So when the event is handled, the
simulation of the next queue must not have gone beyond the arrival of the first packet there.

For this reason each queue has a clock of its own, which runs ``Queue.shift`` seconds behind the
simulation's clock. The shift is large enough for intervals of up to 1.5 times
``Sender.longest_stretch`` seconds, and no interval is longer (``clocks.py``).

The tuple ``Group`` holds, in this order: the number of a group's first packet, how many packets it
has, how many packets directly behind them were lost, the mean and the least time that its packets
have travelled, whether one has an ECN mark, and when the last was sent.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from vegasmodel.engines.rounds.acks import add_hole, blocks, fill_holes, portion
from vegasmodel.engines.rounds.delayed_ack import silent_packets
from vegasmodel.engines.rounds.onward import forward, forward_apart, mark_silent, schedule
from vegasmodel.engines.rounds.queue import (
    advance,
    arrives_first,
    drop,
    enqueue,
    overflow,
    room_for,
    waiting,
)
from vegasmodel.engines.rounds.random_drops import random_drops
from vegasmodel.engines.rounds.state import (
    Group,
    Hop,
    Net,
    Parcel,
    Queue,
    Sender,
    apart,
    inlined,
    jit,
    parcel,
    pop,
)
from vegasmodel.engines.rounds.turns import join
from vegasmodel.laws.packets import NEVER

INSTANT = 1e-12  # seconds: packets of a shorter interval arrive together


@jit
def _note_lateness(link: Queue, time: float) -> None:
    """Record in ``link.lateness`` the longest time by which a packet came too late, in seconds.

    A packet that arrives at ``time`` is too late if its queue has already been simulated beyond
    ``time``. This must not happen, so tests check that ``lateness`` is 0, apart from rounding
    errors.

    There is one exception. One event may simulate the queue during a whole burst, up to the arrival
    of the burst's last packet at the time ``link.foreseen``. So a packet that arrives earlier than
    that counts as too late only if the queue has been simulated beyond ``link.foreseen``.
    """
    link.lateness = max(link.lateness, link.now - max(time, link.foreseen))


@jit
def arrive_evenly(net: Net, e: int, time: float, found: float, group: Group) -> bool:
    """Handle packets that have arrived at the queue of hop ``e`` evenly over an interval.

    A hop is one queue on the path of a flow. Some of the packets may be lost here; the others
    travel on. The interval ends at ``time``. ``found`` is the queue when the interval began: the
    sum of the packets' sizes, in packets of the scenario's packet size. Returns False if the memory
    for packets in flight is full; the run then fails.
    """
    h = net.hops[e]
    f, link = net.flows[h.flow], net.links[h.link]
    _note_lateness(link, time)
    first_here = arrives_first(h, link)  # 1: before a departure at the same instant
    joining = group.packets - h.silent  # the others have no ACK that could join the queue
    lost, marks = random_drops(link, joining, found, h.data, first_here, f.ecn_capable)
    if e == f.hop:
        lost = max(lost, f.owed_loss)  # with synchronised losses
    if lost > 0.0:
        drop(link, lost * h.work)
    lost += overflow(link, joining - lost, h.work)
    lost = _count_lost(f, h, lost)
    kept = group.packets - lost
    # seconds that the first and the last packet of the interval wait here
    first_wait = waiting(net.links, h.link, found, h.work)
    last_wait = waiting(net.links, h.link, link.queue, h.work)
    back = time + h.to_next + last_wait  # when the last of the packets reaches the next queue
    spent = group.rtt_mean + 0.5 * (first_wait + last_wait)
    least = group.rtt_min + min(first_wait, last_wait)
    mark, lost = max(group.marked, int(marks > 0.0)), lost + group.lost
    return forward(net, e, back, Group(group.first, kept, lost, spent, least, mark, group.sent_at))


@jit
def _count_lost(f: Sender, h: Hop, lost: float) -> float:
    """Add lost packets or lost ACKs to the flow's totals; returns the number of lost data packets.

    For ACKs the result is 0: the next ACK also acknowledges the packets of a lost ACK.
    """
    if h.data:
        f.lost += lost
        return lost
    f.acks_lost += lost
    return 0.0


@apart
def _join_class(net: Net, e: int, time: float, group: Group, acks_lost: float) -> bool:
    """Add packets or ACKs to the queue of their class at a Rate-Delay link.

    Those of ``group`` have room. Behind these, ``acks_lost`` ACKs are lost here because the buffer
    is full. Lost ACKs travel on with the size 0, because the next ACK also acknowledges their
    packets. The lost data packets, ``group.lost``, are behind all these. Returns False if the
    memory for packets in flight is full; the run then fails.

    Hop ``e`` stands for this queue on the path of the flow.
    """
    h, fits, g = net.hops[e], True, group
    # the packets that have room, and then the ACKs that are lost; all else is as in ``group``
    if g.packets > 0.0 or acks_lost == 0.0:
        lost = g.lost if acks_lost == 0.0 else 0.0  # directly behind these packets
        joining = Group(g.first, g.packets, lost, g.rtt_mean, g.rtt_min, g.marked, g.sent_at)
        fits = join(net, h.link, e, time, joining, h.work, 0.0)
    if acks_lost > 0.0:
        first = g.first + g.packets
        lost_acks = Group(first, acks_lost, g.lost, g.rtt_mean, g.rtt_min, g.marked, g.sent_at)
        fits = join(net, h.link, e, time, lost_acks, 0.0, 0.0) and fits
    return fits


@inlined
def arrive_at_once(net: Net, e: int, time: float, group: Group) -> bool:
    """Handle packets that arrive at a queue at the same instant, one after another.

    Hop ``e`` stands for this queue on the path of one flow. Each packet waits behind those before
    it. Returns False if the memory for packets in flight is full; the run then fails.
    """
    # number of the first packet, number of packets, number of lost packets directly behind them,
    # mean and least time travelled so far, whether one has an ECN mark, and when the last was sent
    first, packets, lost_behind, travelled, least, mark, sent_at = group
    h = net.hops[e]
    f, link = net.flows[h.flow], net.links[h.link]
    _note_lateness(link, time)
    first_here = arrives_first(h, link)  # 1: before a departure at the same instant
    lost, marks = random_drops(link, packets, link.queue, h.data, first_here, f.ecn_capable)
    if e == f.hop and packets >= 1.0:
        lost = max(lost, f.owed_loss)  # with synchronised losses
    joining = room_for(link, packets - lost, first_here)  # number of packets that join the queue
    lost = packets - joining
    link.arrived += packets * h.work
    link.lost += lost * h.work
    lost = _count_lost(f, h, lost)
    kept = packets - lost  # number that travels on; ``lost`` is now 0 for ACKs (``_count_lost``)
    mark, fits = max(mark, int(marks > 0.0)), True
    if link.partner >= 0:
        group = Group(first, joining, lost + lost_behind, travelled, least, mark, sent_at)
        return _join_class(net, e, time, group, kept - joining)
    wait = waiting(net.links, h.link, link.queue + h.work, h.work)  # of the first packet
    # the first packet travels on by itself; losses follow it only if no second group does
    alone = min(kept, 1.0)
    others_follow = packets > 1.0 or lost > 0.0
    if kept > 0.0:
        enqueue(link, min(joining, 1.0), h.work)
        lost_next = 0.0 if others_follow else lost_behind
        arrival = time + (h.to_next + wait)  # at the next queue
        single = Group(first, alone, lost_next, travelled + wait, least + wait, mark, sent_at)
        fits = forward(net, e, arrival, single)
    # the others follow as a group, with the losses behind them
    if others_follow:
        others = kept - alone
        enqueue(link, max(joining - 1.0, 0.0), h.work)
        gap = min(others, 1.0) * h.work / link.capacity  # from the first packet to the second
        last_wait = waiting(net.links, h.link, link.queue, h.work)  # of the last packet
        # the waits rise evenly from the second packet's to the last one's
        mean = 0.5 * ((travelled + wait + gap) + (travelled + last_wait))
        arrival, soonest = time + (h.to_next + last_wait), least + wait + gap
        group = Group(first + alone, others, lost + lost_behind, mean, soonest, mark, sent_at)
        fits = forward_apart(net, e, arrival, group) and fits
    return fits


@apart
def pass_no_packets(
    net: Net, e: int, time: float, first: float, lost: float, sent_at: float
) -> bool:
    """Tell the next queue on the flow's path, or the sender, that no packet came until ``time``.

    If the flow sent no packet, ``lost`` is 0. Otherwise ``lost`` packets were lost at earlier
    queues: ``first`` is the number of the first of them, and the last was sent at ``sent_at``.
    Returns False if the memory for packets in flight is full; the run then fails.

    Hop ``e`` stands for the present queue on the flow's path.
    """
    # ``nobody`` is a group without packets, behind which ``lost`` packets were lost
    h, nobody = net.hops[e], Group(first, 0.0, lost, 0.0, NEVER, 0, sent_at)
    if net.links[h.link].partner >= 0:  # nothing joins the queue
        return lost == 0.0 or join(net, h.link, e, time, nobody, 0.0, 0.0)
    queue = net.links[h.link].queue
    back = time + h.to_next + waiting(net.links, h.link, queue, h.work)
    return forward(net, e, back, nobody)


@jit
def begin_arrivals(link: Queue, packets: float, work: float, now: float, end: float) -> float:
    """Let ``packets`` packets of a flow arrive at a queue evenly until ``end``; returns their rate.

    They arrive from ``now`` on, and each has the size ``work``. Their rate, in packets/s, is added
    to the queue's arrival rate. There are three exceptions: there is at most one packet, the
    interval is too short, or the link has a queue for each of two classes of flows (Rate-Delay
    services). Then nothing is added and the result is 0, because the packets arrive together at
    ``end``.
    """
    span = end - max(now, link.now)
    if packets <= 1.0 or span < INSTANT or link.partner >= 0:  # one packet is no fluid
        return 0.0
    _note_lateness(link, now)
    rate = packets / span
    link.rate += rate * work
    link.packet_rate += rate
    link.even += 1.0
    return rate


@jit
def end_arrivals(link: Queue, rate: float, work: float) -> None:
    """End what ``begin_arrivals`` has begun: packets of one flow no longer arrive evenly.

    Their rate ``rate`` (packets/s) is subtracted from the queue's arrival rate, and the flow from
    the number of flows whose packets arrive evenly. ``work`` is the size of each packet.
    """
    link.rate -= rate * work
    link.packet_rate -= rate
    link.even -= 1.0


@apart
def _silent(net: Net, e: int, p: Parcel, packets: float) -> float:
    """How many of the next ``packets`` packets of ``p`` have no ACK of their own.

    ``p`` is a group of packets that have travelled together; on the way back it stands for their
    ACKs. If the receiver delays ACKs, it sends no ACK for some of the packets. Hop ``e`` is a queue
    on the way of the flow's ACKs. At the first such queue, the number of packets without an ACK is
    computed from what the receiver knows. At all later queues, ``p.silent`` is this number.
    """
    h = net.hops[e]
    if not net.hops[e - 1].data:  # an earlier queue on the way of the ACKs has computed it
        return min(p.silent, packets)
    f, r = net.flows[h.flow], net.receivers[h.flow]
    return silent_packets(f, r, p.first, packets, h.time) if r.delayed_ack else 0.0


@apart
def _pass_silent(net: Net, e: int, time: float) -> bool:
    """Let packets without an ACK of their own pass the queue of hop ``e`` at the time ``time``.

    Hop ``e`` is a queue on the way of the flow's ACKs. The receiver does not acknowledge the first
    ``Hop.silent`` of the arriving packets at once, so no ACK joins the queue for them. They are
    simulated as if their ACK took no room in the queue, but waited there like an ACK that joins it
    now. The delay of a delayed ACK is added when the ACK reaches the sender (``delayed_ack.py``).
    Returns False if the memory for packets in flight is full; the run then fails.
    """
    h = net.hops[e]
    count = h.silent
    lost = h.lost if h.burst == count else 0.0  # these packets follow the last one of ``h.burst``
    if net.links[h.link].partner >= 0:
        group = Group(h.first, count, lost, h.rtt, h.rtt_min, h.marked, h.sent_at)
        fits = join(net, h.link, e, time, group, 0.0, count)
        h.first += count
        h.burst -= count
        return fits
    wait = waiting(net.links, h.link, net.links[h.link].queue + h.work, h.work)
    # when they reach the next queue, and the mean and the least time travelled until then
    back, spent, least = time + h.to_next + wait, h.rtt + wait, h.rtt_min + wait
    group = Group(h.first, count, lost, spent, least, h.marked, h.sent_at)
    fits = forward_apart(net, e, back, group)
    mark_silent(net, e, h.silent)
    h.first += count
    h.burst -= count
    return fits


@jit
def _next_interval(net: Net, e: int, now: float) -> None:
    """Begin the next interval in which packets of a flow arrive at the queue of hop ``e``.

    A hop is one queue on the path of a flow. Hop ``e`` is not the flow's first queue, for which
    ``sender.plan`` begins the intervals.
    """
    h = net.hops[e]
    if h.count == 0:  # nothing is on its way; ``onward.forward`` ends the idle time
        h.idle, h.time = 1, now
        schedule(net, e, NEVER)
        return
    p, f = parcel(net.rings, h, 0), net.flows[h.flow]
    now = max(now, min(net.links[h.link].now, p.back))  # after a timeout nothing came until now
    # ``span`` is the time in seconds until the last packet of the group ``p`` arrives, and ``step``
    # the desired length of an interval. ``share`` is the part of the group's packets that arrive in
    # the interval that begins now.
    span, step = max(p.back - now, 0.0), min(f.rtt_last / net.parts, f.longest_stretch)
    share = portion(p, now, step) / p.packets if p.packets > 0.0 else 1.0
    packets = p.packets * share
    # the end of the interval, its first packet, and the packets that arrive evenly and together
    h.time, h.first, h.spread, h.burst = now + span * share, p.first, packets, 0.0
    delays = f.delayed_ack and not h.data and packets > 0.0
    h.silent = _silent(net, e, p, packets) if delays else 0.0
    p.silent -= min(h.silent, p.silent)
    h.rtt = p.rtt_sum / p.packets if p.packets > 0.0 else 0.0
    h.rtt_min, h.marked, h.sent_at = p.rtt_min, p.marked, p.sent_at
    # these packets leave the group
    p.first += packets
    p.packets -= packets
    p.rtt_sum -= p.rtt_sum * share
    h.ends_parcel, h.lost = 0, 0.0
    if p.packets <= 1e-9:  # none is left of the group; the packets lost behind it come next
        h.ends_parcel, h.lost = 1, p.lost
        pop(h)
    link = net.links[h.link]
    h.since_queue = link.queue
    h.rate = begin_arrivals(link, h.spread - h.silent, h.work, now, h.time)
    if h.rate == 0.0:  # the packets arrive together, at the end of the interval
        h.burst, h.spread = h.spread, 0.0
    schedule(net, e, h.time)


@jit
def _report(net: Net, e: int) -> float:
    """Tell the receiver which packets have arrived; returns the number of SACK blocks in its ACK.

    The packets that have arrived are those whose ACKs reach hop ``e``, a queue on the flow's path,
    in the interval that ends now. If packets directly behind them were lost, the SACK blocks do not
    show this loss yet. The function returns 0 and tells the receiver nothing unless hop ``e`` is
    the first queue on the way of the ACKs, and the receiver's ACKs have SACK blocks or are delayed.
    """
    h = net.hops[e]
    if h.data or not net.hops[e - 1].data or net.receivers.shape[0] == 0:  # not the first such hop
        return 0.0
    r, holes = net.receivers[h.flow], net.missing[h.flow]
    if h.block == 0.0 and not r.delayed_ack:
        return 0.0
    count = h.spread + h.burst
    if count > 0.0:
        fill_holes(r, holes, h.first, count, 0.0)
    found = blocks(r, holes) if h.block > 0.0 else 0.0
    if h.lost > 0.0:
        add_hole(r, holes, h.first + count, h.lost, 0.0)
    return found


@jit
def _ask_receiver(net: Net, e: int) -> bool:
    """Find out which SACK blocks the arriving ACK has; returns True if they make it arrive later.

    A hop is one queue on the path of a flow. If hop ``e`` is the first queue on the way of the
    ACKs, the ACK has crossed the receiver's access link, which takes longer to send an ACK with
    SACK blocks. This time is very short, but ACKs of two flows often meet at the queue, and it then
    decides which of them comes first.
    """
    h = net.hops[e]
    if h.blocks >= 0.0 or h.ends_parcel < 0:  # known already, or no ACK is coming
        return False
    h.blocks = _report(net, e)
    if h.blocks == 0.0 or h.burst == 0.0 or h.spread > 0.0:
        return False
    h.time += h.blocks * h.block_time
    schedule(net, e, h.time)
    return True


@jit
def hop(net: Net, e: int) -> bool:
    """Handle the packets that have arrived at hop ``e`` in an interval that ends now.

    A hop is one queue on the path of a flow; hop ``e`` is not the first one. The packets have
    arrived evenly over the interval (``h.spread`` packets) or together at its end (``h.burst``). On
    the way back they stand for their ACKs. Some of them have no ACK of their own, because the
    receiver delays ACKs (``h.silent``). The function also begins the next interval. Returns False
    if the memory for packets in flight is full; the run then fails.
    """
    if _ask_receiver(net, e):  # the ACK comes later, because of its SACK blocks
        return True
    h = net.hops[e]
    now, fits = h.time, True
    link = net.links[h.link]
    advance(net.links, h.link, now)
    if h.rate > 0.0:
        end_arrivals(link, h.rate, h.work)
        h.rate = 0.0
    if h.ends_parcel >= 0:  # something was to arrive in the interval
        if h.spread > 0.0:
            group = Group(h.first, h.spread, h.lost, h.rtt, h.rtt_min, h.marked, h.sent_at)
            fits = arrive_evenly(net, e, now, h.since_queue, group)
            if h.silent > 0.0:
                mark_silent(net, e, h.silent)
        elif h.burst > 0.0:
            fits = _pass_silent(net, e, now) if h.silent > 0.0 else True
            if h.burst > 0.0:
                plain = h.work
                if h.blocks > 0.0:  # SACK blocks make the ACK larger
                    h.work += h.blocks * h.block
                group = Group(h.first, h.burst, h.lost, h.rtt, h.rtt_min, h.marked, h.sent_at)
                h.work, fits = plain, arrive_at_once(net, e, now, group) and fits
        else:  # a pause, or packets that were lost before
            fits = pass_no_packets(net, e, now, h.first, h.lost, h.sent_at)
        net.flows[h.flow].transit -= h.ends_parcel  # 1: the group of packets has left this hop
        h.ends_parcel, h.blocks = -1, -1.0  # nothing is coming
    _next_interval(net, e, now)
    return fits
