"""Moves groups of packets through each queue on a flow's path and back to the sender.

The packets of a group arrive at a queue evenly over an interval, or all at its end. The simulator
handles the group at the end of the interval: it finds which packets are lost and when the others
leave, and hands the group to the next queue. By that time the first packet of the group may already
have reached the next queue. So each queue has a clock, which runs ``Queue.shift`` seconds behind
the simulation's clock. This lag is so long that the next queue has not yet come to the time at
which the first packet arrives. Longer intervals need longer lags. No interval is longer than 1.5
times ``Sender.longest_stretch`` seconds, and the lags suffice for this length (``route._clocks``).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.acks import add_hole, blocks, fill_holes, portion
from vegasmodel.engines.rounds.delayed_ack import silent_packets
from vegasmodel.engines.rounds.queue import (
    advance,
    arrives_first,
    drop,
    enqueue,
    overflow,
    random_drops,
    room_for,
    waiting,
)
from vegasmodel.engines.rounds.state import (
    DATA,
    Hop,
    Net,
    Parcel,
    Queue,
    Sender,
    Table,
    apart,
    around,
    inlined,
    jit,
    rare,
)
from vegasmodel.laws.packets import NEVER

INSTANT = 1e-12  # seconds
TIE = 1e-10  # seconds; far below the time of an instruction


@jit
def due(net: Net, e: int, time: float) -> float:
    """The time at which the simulator handles an event that happens at ``time`` at hop ``e``.

    A hop is one queue on one flow's path. If the queue's clock is ``Queue.shift`` seconds behind
    the simulation's clock, the event is handled later by this time. If several packets arrive at
    the same instant, ns-2 handles them in a certain order (``route._leads``). To reproduce this
    order, an event is handled earlier by the tiny time ``Hop.early``.
    """
    h = net.hops[e]
    return time + net.links[h.link].shift - h.early


@jit
def schedule(net: Net, e: int, time: float) -> None:
    """Set the time of the next event of hop ``e`` to ``time``.

    A hop is one queue on one flow's path. ACKs of several flows can arrive at the same instant. In
    Linux a few instructions of the kernel then decide which one is handled first. For Linux the
    simulator therefore draws the order of such events at random.
    """
    net.keys[e] = due(net, e, time)
    if net.flows[net.hops[e].flow].random_ties:
        net.keys[e] += TIE * np.random.random()
    tree, n = net.tree, net.keys.shape[0]
    node = (e + n) // 2
    while node >= 1:
        a, b = tree[2 * node], tree[2 * node + 1]
        first = min(a, b) if net.keys[a] == net.keys[b] else a  # ties: the first in line
        tree[node] = b if net.keys[b] < net.keys[a] else first
        node //= 2


@jit
def next_other_event(net: Net, e: int) -> float:
    """The time of the earliest event at any hop other than ``e``, on the simulation's clock.

    A hop is one queue on the path of one flow.
    """
    node, best = e + net.keys.shape[0], NEVER
    while node > 1:
        best = min(best, net.keys[net.tree[node ^ 1]])
        node //= 2
    return best


@rare
def _enlarge(net: Net, holder: Sender | Hop, h: Hop) -> None:
    """Double the ring buffer of hop ``h``, unless it has its largest size or no memory is left.

    A hop is one queue on a flow's path, and its ring buffer holds groups of packets. Ring buffers
    begin small, because small ones stay in the processor's cache.
    """
    room, place = min(2 * h.room, h.most), net.free[0]
    if room == h.room or place + room > net.rings.shape[0]:
        return
    old, new = net.rings[h.ring : h.ring + h.room], net.rings[place : place + room]
    for k in range(holder.count):
        new[k] = old[around(holder.head + k, old)]
    h.ring, h.room, holder.head = place, room, 0
    net.free[0] += room


@jit
def push(
    holder: Sender | Hop,
    ring: Table[Parcel],
    back: float,
    first: float,
    count: float,
    lost: float,
    rtt_sum: float,
    rtt_min: float,
    marked: int,
    sent_at: float,
) -> int:
    """Add a group of packets (``Parcel``) to a ring buffer.

    ``holder`` is the record that counts the groups in this ring buffer. The arguments from ``back``
    on are the fields of the new group. A group may be empty; it then stands for a pause in which no
    packet arrives. Two pauses in a row are merged into one. Returns 1 if a group was added, 0 if a
    pause was merged, and -1 if the ring buffer is full.
    """
    if holder.count > 0:
        last = ring[around(holder.head + holder.count - 1, ring)]
        if count == 0.0 and lost == 0.0 and last.count == 0.0 and last.lost == 0.0:
            last.back = back  # one silence after another
            return 0
    if holder.count == ring.shape[0]:
        return -1
    p = ring[around(holder.head + holder.count, ring)]
    p.back, p.first, p.count, p.lost = back, first, count, lost
    p.rtt_sum, p.rtt_min, p.marked, p.sent_at = rtt_sum, rtt_min, marked, sent_at
    p.late, p.silent = 0.0, 0.0
    holder.count += 1
    return 1


@jit
def _lengthen(
    h: Hop,
    ring: Table[Parcel],
    back: float,
    first: float,
    count: float,
    rtt_sum: float,
    rtt_min: float,
    sent_at: float,
    step: float,
) -> bool:
    """Merge a group of packets into the last group that is on its way to the same queue.

    A group may be split at a queue. Merging limits the number of groups in a round trip. The
    merged group arrives within at most ``step`` seconds. ``back`` is the time at which its last
    packet arrives. The other arguments are fields of the new group (``Parcel``).

    Returns False if the two groups are not merged. This is so if the merged group would take longer
    to arrive, if a packet between the two is lost, if the last group has an ECN mark, or if fewer
    than two groups are on their way.
    """
    if h.count < 2 or count == 0.0:
        return False
    last = ring[around(h.head + h.count - 1, ring)]
    before = ring[around(h.head + h.count - 2, ring)]
    intact = last.count > 0.0 and last.lost == 0.0 and last.marked == 0
    if not intact or first != last.first + last.count or back - before.back > step:
        return False
    last.back, last.sent_at = back, sent_at
    last.count += count
    last.rtt_sum += rtt_sum
    last.rtt_min = min(last.rtt_min, rtt_min)
    return True


@jit
def _noise(f: Sender, h: Hop, back: float, sent_at: float) -> float:
    """Draw the random delay, in s, of a packet or ACK that would otherwise arrive at time ``back``.

    In ns-2 the access link in front of the first link has the random delay (noise). So the packet
    arrives early or late at the first link's queue. No packet overtakes the one before it. A packet
    that would overtake it arrives a transmission time of the access link later than it
    (``avoidReordering_`` in delay.cc).

    A packet enters the access link when the packets before it have left it. It gets the delay that
    was drawn last (``delay_`` in delay.cc). So in a burst, which leaves at ``sent_at``, all packets
    but the first have the same random delay.

    In Linux each packet may wait a random time in the host, below TCP (``queue_wait``). The
    simulator instead delays the packet's ACK by this time; the round trip takes as long. No ACK
    overtakes the one before it.
    """
    if h.last:
        arrival = max(h.latest, back + f.queue_wait * np.random.random())
    else:
        second = sent_at == h.burst_at and math.isnan(h.burst_noise)
        late = h.burst_noise
        if sent_at > h.burst_at or second:
            late = max(f.noise * np.random.normal(), -f.slack)
            h.burst_at, h.burst_noise = sent_at, late if second else math.nan
        arrival = back + late
        if arrival < h.latest:
            arrival = h.latest + f.gap
    h.latest = arrival
    return arrival - back


@jit
def _silence(f: Sender, h: Hop, back: float) -> float:
    """Seconds by which random delays move the end of a pause; negative if it ends earlier.

    In the pause no packet arrives. Without random delays (``_noise``) the pause would end at time
    ``back``, and the next packet would arrive then or later. A random delay can make this packet
    early by at most ``f.slack`` seconds. So the pause ends earlier by this time, but not before the
    arrival of the packet before it (``h.latest``). The random delays of ACKs are never negative.
    """
    return max(h.latest - back, 0.0 if h.last else -f.slack)


@inlined
def _forward(
    net: Net,
    e: int,
    back: float,
    first: float,
    count: float,
    lost: float,
    rtt_sum: float,
    rtt_min: float,
    marked: int,
    sent_at: float,
) -> bool:
    """Send a group of packets on from hop ``e`` to the next queue, or back to the sender.

    A hop is one queue on the path of a flow. The group's last packet arrives at time ``back``. The
    other arguments are fields of ``Parcel``. Returns False if the ring buffer of the groups on
    their way to the next queue, or to the sender, is full.
    """
    h = net.hops[e]
    f = net.flows[h.flow]
    late = 0.0
    if net.links[h.link].partner >= 0:  # in order, however the shares of the classes change
        back = max(back, h.latest)
        h.latest = back
    if (h.last and f.queue_wait > 0.0) or (e == f.hop and f.noise > 0.0):
        late = _noise(f, h, back, sent_at) if count > 0.0 else _silence(f, h, back)
        back, rtt_sum, rtt_min = back + late, rtt_sum + late * count, rtt_min + late
    if h.last:
        home = net.hops[f.hop]
        if f.count == home.room:
            _enlarge(net, f, home)
        ring = net.rings[home.ring : home.ring + home.room]
        done = push(f, ring, back, first, count, lost, rtt_sum, rtt_min, marked, sent_at)
        if f.queue_wait > 0.0 and done > 0:
            ring[around(f.head + f.count - 1, ring)].late = late
        if f.awaits_parcels:
            f.awaits_parcels, f.event, f.time = 0, DATA, f.awaits_since
            f.first, f.spread, f.burst, f.retransmit = f.next, 0.0, 0.0, -1.0
            schedule(net, f.hop, f.time)
    else:
        after = net.hops[e + 1]
        if after.count == after.room:
            _enlarge(net, after, after)
        ring = net.rings[after.ring : after.ring + after.room]
        done = 0
        plain = lost == 0.0 and marked == 0
        step = f.rtt_last / net.parts if f.noise == 0.0 else 0.0
        if not plain or not _lengthen(
            after, ring, back, first, count, rtt_sum, rtt_min, sent_at, step
        ):
            done = push(after, ring, back, first, count, lost, rtt_sum, rtt_min, marked, sent_at)
        f.transit += max(done, 0)
        if after.idle:
            after.idle = 0
            schedule(net, e + 1, after.time)
    return done >= 0


@apart
def _forward_more(
    net: Net,
    e: int,
    back: float,
    first: float,
    count: float,
    lost: float,
    rtt_sum: float,
    rtt_min: float,
    marked: int,
    sent_at: float,
) -> bool:
    """Do the same as ``_forward``, but as a function of its own in the compiled program.

    The compiler copies ``_forward`` into each function that calls it. ``arrive_at_once`` needs it
    twice. It calls ``_forward_more`` the second time, so it contains the code only once.
    """
    return _forward(net, e, back, first, count, lost, rtt_sum, rtt_min, marked, sent_at)


@jit
def _note_lateness(link: Queue, time: float) -> None:
    """Record in ``link.lateness`` the longest time by which a packet came too late.

    A packet that arrives at ``time`` is too late if its queue has already been simulated beyond
    ``time``. There is one exception: an event may handle a whole burst, and so simulate the queue
    up to ``link.foreseen``, when the burst's last packet arrives. A packet that arrives before that
    is too late only if the queue has been simulated beyond ``link.foreseen``.
    """
    link.lateness = max(link.lateness, link.now - max(time, link.foreseen))


@jit
def arrive_evenly(
    net: Net,
    e: int,
    time: float,
    found: float,
    first: float,
    packets: float,
    behind: float,
    spent: float,
    least: float,
    mark: int,
    sent_at: float,
) -> bool:
    """Handle packets that have arrived at the queue of hop ``e`` evenly over an interval.

    A hop is one queue on the path of a flow. Some of the packets may be lost here; the others
    travel on. The interval ends at ``time``, and the queue was ``found`` packets long when it
    began. ``spent`` and ``least`` are the mean and the least time in seconds that the packets have
    travelled so far. Directly behind these packets, ``behind`` packets were lost at earlier queues.
    ``first``, ``mark`` and ``sent_at`` are those of the group (``Parcel``). Returns False if the
    run fails.
    """
    h = net.hops[e]
    f, link = net.flows[h.flow], net.links[h.link]
    _note_lateness(link, time)
    first_here = arrives_first(h, link)
    join = packets - h.silent
    lost, picked = random_drops(link, join, found, h.data, first_here, f.ecn_capable)
    if e == f.hop:
        lost = max(lost, f.owed_loss)
    if lost > 0.0:
        drop(link, lost * h.work)
    lost += overflow(link, join - lost, h.work)
    lost = _count_lost(f, h, lost)
    kept = packets - lost
    before = waiting(net.links, h.link, found, h.work)
    after = waiting(net.links, h.link, link.queue, h.work)
    rtt_sum = kept * (spent + 0.5 * (before + after))
    least += min(before, after)
    back = time + h.to_next + after
    mark = max(mark, int(picked > 0.0))
    return _forward(net, e, back, first, kept, lost + behind, rtt_sum, least, mark, sent_at)


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


@inlined
def arrive_at_once(
    net: Net,
    e: int,
    time: float,
    first: float,
    packets: float,
    behind: float,
    spent: float,
    least: float,
    mark: int,
    sent_at: float,
) -> bool:
    """Handle packets that arrive at the queue of hop ``e`` at the same instant, one after another.

    Each packet waits behind those before it. The arguments have the same meaning as in
    ``arrive_evenly``. Returns False if the run fails.
    """
    h = net.hops[e]
    f, link = net.flows[h.flow], net.links[h.link]
    _note_lateness(link, time)
    first_here = arrives_first(h, link)
    lost, picked = random_drops(link, packets, link.queue, h.data, first_here, f.ecn_capable)
    if e == f.hop and packets >= 1.0:
        lost = max(lost, f.owed_loss)
    stay = room_for(link, packets - lost, first_here)
    lost = packets - stay
    link.arrived += packets * h.work
    link.lost += lost * h.work
    lost = _count_lost(f, h, lost)
    kept = packets - lost
    mark, fits = max(mark, int(picked > 0.0)), True
    wait = waiting(net.links, h.link, link.queue + h.work, h.work)
    one = min(kept, 1.0)
    if kept > 0.0:
        enqueue(link, min(stay, 1.0), h.work)
        rest = 0.0 if packets > 1.0 or lost > 0.0 else behind
        back = time + (h.to_next + wait)
        rtt = least + wait
        fits = _forward(net, e, back, first, one, rest, one * (spent + wait), rtt, mark, sent_at)
    if packets > 1.0 or lost > 0.0:
        more = kept - one
        enqueue(link, max(stay - 1.0, 0.0), h.work)
        gap = min(more, 1.0) * h.work / link.capacity
        last = waiting(net.links, h.link, link.queue, h.work)
        rtt_sum = 0.5 * more * ((spent + wait + gap) + (spent + last))
        back, first = time + (h.to_next + last), first + one
        lost += behind
        rtt = least + wait + gap
        go = _forward_more(net, e, back, first, more, lost, rtt_sum, rtt, mark, sent_at)
        fits = fits and go
    return fits


@apart
def pass_no_packets(
    net: Net, e: int, time: float, first: float, lost: float, sent_at: float
) -> bool:
    """Tell the next queue on the flow's path, or the sender, that no packet arrives until ``time``.

    Either the flow sent none, or they were all lost at earlier queues. Then ``lost`` is their
    number, ``first`` is the number of the first one, and the last was sent at ``sent_at``. Returns
    False if the run fails.
    """
    h = net.hops[e]
    queue = net.links[h.link].queue
    back = time + h.to_next + waiting(net.links, h.link, queue, h.work)
    return _forward(net, e, back, first, 0.0, lost, 0.0, NEVER, 0, sent_at)


@jit
def begin_arrivals(link: Queue, packets: float, work: float, now: float, end: float) -> float:
    """Let ``packets`` packets of a flow arrive at a queue evenly until ``end``; returns their rate.

    They arrive from ``now`` on, and each has the size ``work``. Their rate, in packets/s, is added
    to the queue's arrival rate. If there is at most one packet, or if the interval is too short,
    nothing is added and the result is 0: the packets then arrive together at ``end``.
    """
    span = end - max(now, link.now)
    if packets <= 1.0 or span < INSTANT:  # a packet is an instant, not a flow
        return 0.0
    _note_lateness(link, now)
    rate = packets / span
    link.rate += rate * work
    link.packet_rate += rate
    link.even += 1.0
    return rate


@jit
def end_arrivals(link: Queue, rate: float, work: float) -> None:
    """End an interval of even arrivals: subtract their rate from the queue's arrival rate.

    ``rate`` is their rate in packets/s, and ``work`` the size of each packet.
    """
    link.rate -= rate * work
    link.packet_rate -= rate
    link.even -= 1.0


@apart
def _silent(net: Net, e: int, p: Parcel, packets: float) -> float:
    """How many of the next ``packets`` packets of the group ``p`` have no ACK at hop ``e``.

    Hop ``e`` is a queue on the way of the flow's ACKs, and the packets arrive until ``Hop.time``.
    At the first of these queues the receiver decides which packets it does not answer. The group
    carries this decision to the others.
    """
    h = net.hops[e]
    if not net.hops[e - 1].data:
        return min(p.silent, packets)
    f, r = net.flows[h.flow], net.receivers[h.flow]
    return silent_packets(f, r, p.first, packets, h.time) if r.delayed_ack else 0.0


@apart
def _mark_silent(net: Net, e: int) -> None:
    """Record in the group that has just left hop ``e`` how many of its packets have no ACK."""
    h, after = net.hops[e], net.hops[e + 1]
    if not h.last:
        ring = net.rings[after.ring : after.ring + after.room]
        ring[around(after.head + after.count - 1, ring)].silent += h.silent


@apart
def _pass_silent(net: Net, e: int, time: float) -> bool:
    """Pass on those packets that arrive at hop ``e`` now and have no ACK; False if the run fails.

    They are ``Hop.silent`` in number, and the first of those that arrive. They take no room in the
    queue. But they travel as long as an ACK that joins it now, because the sender's record counts
    the pause of the delayed ACK from then on (``delayed_ack.py``).
    """
    h = net.hops[e]
    wait = waiting(net.links, h.link, net.links[h.link].queue + h.work, h.work)
    count, lost, back = h.silent, h.lost if h.burst == h.silent else 0.0, time + h.to_next + wait
    rtt_sum, least = count * (h.rtt + wait), h.min_rtt + wait
    fits = _forward_more(net, e, back, h.first, count, lost, rtt_sum, least, h.marked, h.sent_at)
    _mark_silent(net, e)
    h.first += count
    h.burst -= count
    return fits


@jit
def _next_interval(net: Net, e: int, now: float) -> None:
    """Begin the next interval in which packets of a flow arrive at the queue of hop ``e``.

    A hop is one queue on the path of a flow; this one is not the first. For the first queue
    ``sender.plan`` does this.
    """
    h = net.hops[e]
    ring = net.rings[h.ring : h.ring + h.room]
    if h.count == 0:
        h.idle, h.time = 1, now
        schedule(net, e, NEVER)
        return
    p, f = ring[h.head], net.flows[h.flow]
    now = max(now, min(net.links[h.link].now, p.back))  # after a timeout nothing came until now
    span, step = max(p.back - now, 0.0), min(f.rtt_last / net.parts, f.longest_stretch)
    share = portion(p, now, step) / p.count if p.count > 0.0 else 1.0
    packets = p.count * share
    h.time, h.first, h.spread, h.burst = now + span * share, p.first, packets, 0.0
    delays = f.delayed_ack and not h.data and packets > 0.0
    h.silent = _silent(net, e, p, packets) if delays else 0.0
    p.silent -= min(h.silent, p.silent)
    h.rtt = p.rtt_sum / p.count if p.count > 0.0 else 0.0
    h.min_rtt, h.marked, h.sent_at = p.rtt_min, p.marked, p.sent_at
    p.first += packets
    p.count -= packets
    p.rtt_sum -= p.rtt_sum * share
    h.ends_parcel, h.lost = 0, 0.0
    if p.count <= 1e-9:
        h.ends_parcel, h.lost = 1, p.lost
        h.head = around(h.head + 1, ring)
        h.count -= 1
    link = net.links[h.link]
    h.since_queue = link.queue
    h.rate = begin_arrivals(link, h.spread - h.silent, h.work, now, h.time)
    if h.rate == 0.0:
        h.burst, h.spread = h.spread, 0.0
    schedule(net, e, h.time)


@jit
def _report(net: Net, e: int) -> float:
    """Tell the receiver which packets have arrived; returns the size of its ACK's SACK blocks.

    The unit of the size is the scenario's packet size. The packets are those whose interval ends
    now at hop ``e``, a queue on the flow's path. If packets directly behind them are lost, the SACK
    blocks do not show it yet. The function does nothing and returns 0 unless hop ``e`` is the first
    queue on the way of the ACKs.
    """
    h = net.hops[e]
    if h.data or not net.hops[e - 1].data or net.receivers.shape[0] == 0:
        return 0.0
    r, holes = net.receivers[h.flow], net.missing[h.flow]
    if r.block == 0.0 and not r.delayed_ack:
        return 0.0
    count = h.spread + h.burst
    if count > 0.0:
        fill_holes(r, holes, h.first, count, 0.0)
    more = r.block * blocks(r, holes)
    if h.lost > 0.0:
        add_hole(r, holes, h.first + count, h.lost, 0.0)
    return more


@jit
def hop(net: Net, e: int) -> bool:
    """Handle the end of an interval in which packets arrive at hop ``e``; False if the run fails.

    A hop is one queue on the path of a flow; this one is not the first.
    """
    h = net.hops[e]
    now, fits = h.time, True
    link = net.links[h.link]
    advance(net.links, h.link, now)
    if h.rate > 0.0:
        end_arrivals(link, h.rate, h.work)
        h.rate = 0.0
    if h.ends_parcel >= 0:
        plain, more = h.work, _report(net, e)
        if h.spread > 0.0:
            fits = arrive_evenly(
                net,
                e,
                now,
                h.since_queue,
                h.first,
                h.spread,
                h.lost,
                h.rtt,
                h.min_rtt,
                h.marked,
                h.sent_at,
            )
            if h.silent > 0.0:
                _mark_silent(net, e)
        elif h.burst > 0.0:
            fits = _pass_silent(net, e, now) if h.silent > 0.0 else True
            if h.burst > 0.0:
                h.work += more
                go = arrive_at_once(
                    net, e, now, h.first, h.burst, h.lost, h.rtt, h.min_rtt, h.marked, h.sent_at
                )
                h.work, fits = plain, fits and go
        else:
            fits = pass_no_packets(net, e, now, h.first, h.lost, h.sent_at)
        net.flows[h.flow].transit -= h.ends_parcel
        h.ends_parcel = -1  # nothing is coming
    _next_interval(net, e, now)
    return fits
