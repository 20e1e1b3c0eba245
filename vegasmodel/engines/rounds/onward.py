"""Sends groups of packets to the next queue or back to the sender, and finds the next event.

Each flow has a ring buffer for each queue on its path. The ring buffer keeps the groups of packets
that are on their way to this queue. There is one exception: the ring buffer of the flow's first
queue keeps the groups that are on their way back to the sender.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.acks import send_nothing
from vegasmodel.engines.rounds.state import (
    DATA,
    Group,
    Hop,
    Net,
    Parcel,
    Sender,
    Table,
    apart,
    inlined,
    jit,
    parcel,
    rare,
)

TIE = 1e-10  # seconds: longest random delay of an event, by which ties are broken at random


@jit
def due(net: Net, e: int, time: float) -> float:
    """The time at which the simulator handles an event that happens at ``time`` at hop ``e``.

    A hop is one queue on one flow's path. The clock of the queue is ``Queue.shift`` seconds behind
    the simulation's clock, so the event is handled later by this time. If several packets arrive at
    the same instant, ns-2 takes them in a certain order (``route._leads``). So that the simulator
    takes them in this order, too, each event is earlier by a tiny time (``Hop.early``).
    """
    h = net.hops[e]
    return time + net.links[h.link].shift - h.early


@jit
def schedule(net: Net, e: int, time: float) -> None:
    """Set the time of the next event of hop ``e`` to ``time``.

    A hop is one queue on one flow's path. ACKs of several flows can arrive at the same instant. In
    Linux it is then unpredictable which of them is handled first. So for Linux flows the order of
    such events is drawn at random.
    """
    key = due(net, e, time)
    if net.flows[net.hops[e].flow].random_ties:
        key += TIE * np.random.random()
    net.keys[e] = key
    # Find the hop with the earliest event by a tournament, a binary tree: its leaves are the hops,
    # and at each node two winners meet. Only the nodes above hop ``e`` can change.
    tree, node, winner = net.tree, e + net.keys.shape[0], e
    while node > 1:
        rival = tree[node ^ 1]  # the winner on the other side of the next node
        rival_key = net.keys[rival]
        # in a tie the lower index wins
        if rival_key < key or (rival_key == key and rival < winner):
            winner, key = rival, rival_key
        node //= 2
        tree[node] = winner


@jit
def comes_first(net: Net, e: int, time: float) -> bool:
    """Whether an event of hop ``e`` at ``time`` is handled before the next one of any other hop.

    A hop is one queue on the path of one flow. The result is also True if both are due at once.
    """
    key = due(net, e, time)
    if key <= net.keys[net.tree[1]]:  # this is often so, and then there is nothing to search
        return True
    # The tree of ``schedule``: from hop ``e`` up, the winners on the other side of each node are
    # the earliest of all other hops.
    node = e + net.keys.shape[0]
    while node > 1:
        if net.keys[net.tree[node ^ 1]] < key:
            return False
        node //= 2
    return True


@rare
def _enlarge(net: Net, h: Hop) -> None:
    """Double the ring buffer of hop ``h``, unless it has its largest size or no memory is left.

    A hop is one queue on a flow's path. Ring buffers begin small, because small ones stay in the
    processor's cache.
    """
    places, start = min(2 * h.places, h.most), net.free[0]
    if places > h.places and start + places <= net.rings.shape[0]:
        for k in range(h.count):
            net.rings[start + k] = parcel(net.rings, h, k)
        h.ring, h.places, h.head = start, places, 0
        net.free[0] += places


@jit
def push(net: Net, h: Hop, back: float, late: float, group: Group) -> int:
    """Add a group of packets (``Parcel``) to the ring buffer of hop ``h``.

    The last packet of the new group arrives at the time ``back``. This time contains the random
    delay ``late`` of its packets, in seconds (``_noise``); their RTTs in ``group`` do not. A group
    without packets stands for a pause in which no packet arrives. If the last group is a pause,
    too, the two are merged. Returns 1 if a group was added, 0 if a pause was merged, and -1 if the
    ring buffer is full.
    """
    if h.count == h.places:
        _enlarge(net, h)
    if h.count > 0:
        last = parcel(net.rings, h, h.count - 1)
        if group.packets == 0.0 and group.lost == 0.0 and last.packets == 0.0 and last.lost == 0.0:
            last.back = back  # one pause after another
            return 0
    if h.count == h.places:
        return -1
    p = parcel(net.rings, h, h.count)
    p.back, p.first, p.packets, p.lost = back, group.first, group.packets, group.lost
    p.rtt_sum = group.packets * group.rtt_mean + late * group.packets
    p.rtt_min = group.rtt_min + late
    p.marked, p.sent_at = group.marked, group.sent_at
    p.late, p.silent = 0.0, 0.0
    h.count += 1
    return 1


@jit
def _lengthen(
    rings: Table[Parcel], h: Hop, back: float, late: float, group: Group, step: float
) -> bool:
    """Merge a group of packets into the last group that is on its way to the same queue.

    The simulator may split a group at a queue. Merging limits the number of groups in a round trip.
    The last packet of the merged group arrives at the time ``back``. This time contains the random
    delay ``late`` of the new packets, in seconds; their RTTs in ``group`` do not.

    Returns False if the two groups are not merged, for one of these reasons:

    * They would arrive over more than ``step`` seconds. Their arrival begins when the last packet
      of the group before them arrives.
    * No group before them is on its way, so it is not known when their arrival begins.
    * Their packets do not follow one another, for example because a packet between them is lost.
    * One of them has no packets: it stands for a pause (``push``).
    * The last group has an ECN mark.
    """
    if h.count < 2 or group.packets == 0.0:
        return False
    last, before = parcel(rings, h, h.count - 1), parcel(rings, h, h.count - 2)
    intact = last.packets > 0.0 and last.lost == 0.0 and last.marked == 0
    if not intact or group.first != last.first + last.packets or back - before.back > step:
        return False
    last.back, last.sent_at = back, group.sent_at
    last.packets += group.packets
    last.rtt_sum += group.packets * group.rtt_mean + late * group.packets
    last.rtt_min = min(last.rtt_min, group.rtt_min + late)
    return True


@jit
def _noise(net: Net, f: Sender, h: Hop, back: float, sent_at: float) -> float:
    """Draw the random delay, in seconds, of a packet or an ACK.

    Without this delay it would arrive at the time ``back``. For ns-2, the access link in front of
    the flow's first link has the random delay. It may also be negative, but not below -``f.slack``.
    No packet overtakes the one before it. If the delay would let it do so, the packet arrives one
    transmission time of the access link after the one before it (``avoidReordering_`` in delay.cc).

    In a burst, which leaves at ``sent_at``, all packets but the first have the same delay. The
    reason is that ns-2 draws a delay when a packet reaches the access link, but uses the delay that
    was drawn last when the packet's transmission begins (``delay_`` in delay.cc). The first packet
    is transmitted at once. When the others are transmitted, all packets of the burst have reached
    the access link, so each of them gets the delay that the last packet has drawn.

    For a Linux sender each packet has a time ``sent_at`` of its own (``stamps_departure``). So the
    simulator draws a delay for each.

    In Linux each packet may wait a random time in the host, below TCP (``queue_wait``). The
    simulator delays the packet's ACK by this time instead. The round trip is the same. No ACK
    overtakes the one before it.
    """
    if h.last:
        arrival = max(h.latest, back + f.queue_wait * np.random.random())
    else:
        # The first packet of a burst draws its own delay, and the second that of all others. This
        # second delay is kept in ``burst_noise``, which is NaN until the second packet comes.
        first = sent_at != h.burst_at
        second = not first and math.isnan(h.burst_noise)
        late = h.burst_noise
        if first or second:
            late = max(f.noise * np.random.normal(), -f.slack)
            h.burst_at, h.burst_noise = sent_at, late if second else math.nan
        arrival = back + late
        if arrival < h.latest:
            arrival = h.latest + h.work / net.links[h.link].capacity
    h.latest = arrival
    return arrival - back


@jit
def _silence(f: Sender, h: Hop, back: float) -> float:
    """Seconds by which random delays move the end of a pause; negative if the pause ends earlier.

    In a pause no packet arrives. Without random delays (``_noise``) the pause would end at the time
    ``back``, and the next packet would arrive then or later. A random delay can make this packet
    early by at most ``f.slack`` seconds. So the pause ends earlier by ``f.slack``, but not before
    the last packet has arrived (``h.latest``). ACKs are never early, because their random delays
    are not negative.
    """
    return max(h.latest - back, 0.0 if h.last else -f.slack)


@inlined
def forward(net: Net, e: int, back: float, group: Group) -> bool:
    """Send a group of packets on from hop ``e`` to the next queue, or back to the sender.

    A hop is one queue on the path of a flow. The group's last packet arrives at the time ``back``.
    A ring buffer keeps the groups on their way to the same place. Returns False if it is full.
    """
    h = net.hops[e]
    f = net.flows[h.flow]
    late = 0.0  # seconds by which a random delay moves the arrival
    if (h.last and f.queue_wait > 0.0) or (e == f.hop and f.noise > 0.0):
        if group.packets > 0.0:
            late = _noise(net, f, h, back, group.sent_at)
        else:
            late = _silence(f, h, back)
        back += late
    if h.last:
        first_hop = net.hops[f.hop]  # its ring buffer keeps the groups on their way to the sender
        # 1: the ring buffer has one group more, 0: the group was merged, -1: there is no room
        added = push(net, first_hop, back, late, group)
        if f.queue_wait > 0.0 and added > 0:
            parcel(net.rings, first_hop, first_hop.count - 1).late = late
        if f.awaits_parcels:  # the sender has waited for ACKs: it goes on at once
            f.awaits_parcels, f.event, f.time = 0, DATA, f.awaits_since
            send_nothing(f)
            schedule(net, f.hop, f.time)
    else:
        next_hop = net.hops[e + 1]
        added = 0  # as above
        plain = group.lost == 0.0 and group.marked == 0  # only such groups are merged
        step = f.rtt_last / net.parts if f.noise == 0.0 else 0.0
        if not plain or not _lengthen(net.rings, next_hop, back, late, group, step):
            added = push(net, next_hop, back, late, group)
        f.transit += max(added, 0)
        if next_hop.idle:  # nothing was on its way there: its next interval begins now
            next_hop.idle = 0
            schedule(net, e + 1, next_hop.time)
    return added >= 0


@apart
def forward_apart(net: Net, e: int, back: float, group: Group) -> bool:
    """Do the same as ``forward``, but as a separate function in the compiled program.

    The compiler copies the code of ``forward`` to each place that calls it. Some places call
    ``forward_apart`` instead, so that the compiled program is smaller.
    """
    return forward(net, e, back, group)


@apart
def mark_silent(net: Net, e: int, silent: float) -> None:
    """Tell the next hop how many of the packets that have just left hop ``e`` have no ACK.

    A hop is one queue on the path of a flow; hop ``e`` is on the way of the flow's ACKs. If the
    receiver delays ACKs, it sends none for some packets. Their number ``silent`` is added to that
    of the last group of packets on its way to the next hop. After the flow's last hop comes no
    queue that needs the number, so nothing is done there.
    """
    h, next_hop = net.hops[e], net.hops[e + 1]
    if not h.last:
        parcel(net.rings, next_hop, next_hop.count - 1).silent += silent
