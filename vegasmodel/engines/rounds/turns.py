"""Sends the packets of a link with Rate-Delay services, on which two classes of flows take turns.

Such a link (Podlesny and Williamson) has a queue for flows that want a high rate, and another for
flows that want a low delay. A packet that arrives joins the queue of its class. When the link is
free, a scheduler chooses the class that sends its first packet. Only then is it known how long this
packet has waited. Until then the packet is kept in the ring buffer of its class. (This buffer
belongs to a record of type ``Hop`` whose field ``stores`` is 1. All other records of this type
stand for a queue on the path of one flow.)

There are two schedulers: that of Podlesny and Williamson (``_by_volume``), and class-based queueing
with weighted round robin (``_by_rounds``). ns-2 does not have the scheduler of Podlesny and
Williamson, so our runs of ns-2 use class-based queueing.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.onward import forward_apart, mark_silent, push, schedule
from vegasmodel.engines.rounds.queue import advance, share_capacity
from vegasmodel.engines.rounds.state import Group, Hop, Net, Queue, apart, jit, parcel, pop
from vegasmodel.laws.packets import NEVER

NOTHING = 1e-9  # packets: a shorter queue counts as empty
MEMORY = 16.0  # packets over which class-based queueing takes a mean (cbq.cc: POWEROFTWO)


@apart
def join(net: Net, k: int, e: int, time: float, group: Group, work: float, silent: float) -> bool:
    """Add packets to queue ``k``, which holds the packets of one class of a Rate-Delay link.

    ``e`` is the hop at which the packets arrive at ``time``; a hop is one queue on one flow's path.
    It is -1 for a packet of a handshake, which the simulator does not follow beyond this queue.
    ``work`` is the size of each packet, in packets of the scenario's packet size. Two kinds of ACKs
    take no room here, so their ``work`` is 0: ACKs that are lost here, and ACKs that the receiver
    does not send at once (``silent`` ACKs, see ``delayed_ack.py``). Returns False if the memory for
    packets in flight is full; the run then fails.
    """
    link = net.links[k]
    # Each of the two classes keeps its waiting packets in the ring buffer of a hop. The hop of
    # class R (high rate), which has the lower number, also says whether the link is sending.
    hop_of_R = min(link.store, net.links[link.partner].store)
    store, server = net.hops[link.store], net.hops[hop_of_R]
    if push(net, store, time, 0.0, group) < 0:
        return False
    p = parcel(net.rings, store, store.count - 1)  # the group that ``push`` has added
    p.hop, p.work, p.silent = e, work, silent
    if e >= 0:
        net.flows[net.hops[e].flow].transit += 1
    if work > 0.0:
        link.queue += group.packets * work
        link.waiting += group.packets
    if server.idle:  # the link has no packet in transmission: it sends the next one now
        server.idle, server.time = 0, time
        schedule(net, hop_of_R, time)
    return True


@jit
def begin_shares(net: Net) -> None:
    """For each Rate-Delay link, schedule the first time at which the classes' shares change.

    The shares are the parts of the link's capacity that its two classes of flows get. In ns-2 the
    script of the run changes them at given times. If the links do not behave as in ns-2, no change
    is scheduled.
    """
    for e in range(net.flows[0].hop):
        _schedule_shares(net, e)


@jit
def _schedule_shares(net: Net, e: int) -> None:
    """Schedule the next time at which the script of an ns-2 run changes a Rate-Delay link's shares.

    The shares are the parts of the capacity that the link's two classes of flows get: R (high rate)
    and D (low delay). ``e`` is the index of the record (``state.Hop``) that holds the waiting
    packets of class D. Nothing happens if ``e`` belongs to class R.
    """
    h = net.hops[e]
    row = net.links[h.link].change
    if row < net.shares.shape[0] and net.shares[row, 0] == h.link:
        h.time = net.shares[row, 1]
        schedule(net, e, h.time)
    elif h.link > net.links[h.link].partner:
        schedule(net, e, NEVER)


@apart
def at_store(net: Net, e: int) -> bool:
    """Handle the next event of a Rate-Delay link; returns False if memory for packets is full.

    The link sends packets of two classes, R (high rate) and D (low delay). Each class has a record
    of its own in ``net.links``, and one in ``net.hops`` that holds its waiting packets. Two kinds
    of events happen at the link, and the record of index ``e`` in ``net.hops`` tells which kind
    this one is. If the record is that of class R, the transmission of a packet (of class R or D)
    ends. If it is that of class D, the classes' shares of the capacity change.
    """
    h = net.hops[e]
    link = net.links[h.link]
    if link.partner > h.link:  # class R, whose record comes before that of class D
        return _send_next(net, e)
    share_capacity(net.links[link.partner], link, net.shares[link.change, 2])
    link.change += 1
    _schedule_shares(net, e)
    return True


@jit
def _send_next(net: Net, e: int) -> bool:
    """End a transmission of a Rate-Delay link and begin the next one, if a packet is waiting.

    The link sends packets of two classes, R (high rate) and D (low delay). ``e`` is the index of
    the record (``state.Hop``) that holds the waiting packets of class R. Returns False if the
    memory for packets in flight is full.
    """
    h = net.hops[e]
    now, rate = h.time, net.links[h.link]
    delay = net.links[rate.partner]
    advance(net.links, h.link, now)
    _end_transmission(rate)
    _end_transmission(delay)
    fits = _pass_weightless(net, rate, now) and _pass_weightless(net, delay, now)
    if rate.waiting < NOTHING and delay.waiting < NOTHING:
        h.idle = 1
        rate.credit = delay.credit = 0.0  # WRR_CBQueue::deque finds no packet
        schedule(net, e, NEVER)
        return fits
    link = _by_rounds(net, rate, delay, now) if rate.class_based else _by_volume(net, rate, delay)
    fits = _send_first(net, link, now) and fits
    h.time = now + link.unsent / link.capacity
    schedule(net, e, h.time)
    return fits


@jit
def _end_transmission(link: Queue) -> None:
    """End the transmission of a packet of one class of a Rate-Delay link.

    ``link`` is the queue of this class. If no other packet waits in it, the sum of the packet sizes
    in the queue should be 0. Rounding errors may make it differ from 0, so the function sets it to
    0.
    """
    link.queue -= link.unsent
    link.served += link.unsent
    link.unsent = 0.0
    if link.waiting < NOTHING:
        link.served += link.queue
        link.queue = link.waiting = 0.0


@jit
def _pass_weightless(net: Net, link: Queue, now: float) -> bool:
    """Send on the groups of packets at the head of the queue that need no transmission.

    Such a group consists of ACKs without size (``join`` says which ACKs have none), or only of
    lost packets. Returns False if the memory for packets in flight is full.
    """
    store, fits = net.hops[link.store], True
    while store.count > 0:
        p = parcel(net.rings, store, 0)
        if p.work > 0.0 and p.packets > NOTHING:
            break
        fits = _go_on(net, store, p.packets, now) and fits
    return fits


@jit
def _send_first(net: Net, link: Queue, now: float) -> bool:
    """Begin to transmit the first packet of the queue ``link``.

    Returns False if the memory for packets in flight is full.
    """
    store = net.hops[link.store]
    p = parcel(net.rings, store, 0)
    part = min(p.packets, 1.0)
    link.waiting -= part
    link.unsent = part * p.work
    return _go_on(net, store, part, now)


@jit
def _go_on(net: Net, store: Hop, packets: float, now: float) -> bool:
    """Send the next ``packets`` waiting packets of one class of a Rate-Delay link on their way.

    ``store`` is the record that holds the waiting packets of this class, in groups. The ``packets``
    packets belong to the first group. Returns False if the memory for packets in flight is full.
    """
    p = parcel(net.rings, store, 0)
    wait = now - p.back  # seconds that these packets have waited here
    rtt_sum = p.rtt_sum * (packets / p.packets if p.packets > 0.0 else 1.0)  # without the wait
    ends = p.packets - packets < NOTHING  # nothing is left of the group
    lost, fits = p.lost if ends else 0.0, True
    if p.hop >= 0:  # not the packet of a handshake
        # the mean time that each of these packets has travelled, the wait here included
        spent = rtt_sum / packets + wait if packets > 0.0 else 0.0
        group = Group(p.first, packets, lost, spent, p.rtt_min + wait, p.marked, p.sent_at)
        fits = forward_apart(net, p.hop, now + net.hops[p.hop].to_next, group)
        if p.silent > 0.0:
            mark_silent(net, p.hop, p.silent)
    p.first += packets
    p.packets -= packets
    p.rtt_sum -= rtt_sum
    if ends:
        pop(store)
        if p.hop >= 0:
            net.flows[net.hops[p.hop].flow].transit -= 1
    return fits


@jit
def _first_work(net: Net, link: Queue) -> float:
    """The size of the first packet in queue ``link``, in packets of the scenario's packet size."""
    store = net.hops[link.store]
    return parcel(net.rings, store, 0).work


@jit
def _by_volume(net: Net, rate: Queue, delay: Queue) -> Queue:
    """Choose the class of a Rate-Delay link that sends next, as Podlesny and Williamson do.

    ``rate`` and ``delay`` are the queues of the classes R (high rate) and D (low delay). The result
    is one of them. The algorithm is figure 2 of the paper. While packets of both classes wait, the
    volumes L_R and L_D that the classes have sent (``volume``) grow in the ratio of their shares.
    The paper's delta L (``delay.lag``) is the volume by which class D is then behind its share. If
    R's queue becomes empty, what class D sends alone reduces delta L. What is left of it when R's
    packets come again is added to D's advantage.
    """
    if rate.waiting > 0.0 and delay.waiting > 0.0:
        # class R sends if its volume over its share is the smaller one
        rate_sends = rate.share * delay.volume > delay.share * rate.volume
        link = rate if rate_sends else delay
        link.volume += _first_work(net, link)
        delay.lag = max(rate.volume * delay.share / rate.share - delay.volume, 0.0)
        return link
    if rate.waiting > 0.0:
        rate.volume = delay.volume = 0.0
        return rate
    if delay.lag > 0.0:  # class D alone has packets: this one counts against what it may catch up
        delay.lag -= _first_work(net, delay)
    if delay.lag > 0.0:  # what is left is D's advantage; L_R stays as it is, as in figure 2
        delay.volume = -delay.lag
    else:
        rate.volume = delay.volume = 0.0
    return delay


@jit
def _by_rounds(net: Net, rate: Queue, delay: Queue, now: float) -> Queue:
    """Choose the class of a Rate-Delay link that sends next, as ns-2's class-based queueing does.

    ``rate`` and ``delay`` are the queues of the classes R (high rate) and D (low delay). The result
    is one of them. The algorithm is that of ``WRR_CBQueue::deque`` in cbq.cc, a weighted round
    robin. In each round each class has one turn. In its turn it may send a number of bytes in
    proportion to its share.
    """
    rate_sends, permitted = _next_in_round(rate, delay, now)
    chosen = rate if rate_sends else delay
    keeps_turn = False  # whether the class may go on in this turn, because it has bytes left
    if permitted:
        work = _first_work(net, chosen)
        if chosen.credit > 0.0:
            chosen.credit -= np.rint(work * rate.packet_bytes)
        keeps_turn = chosen.credit > 0.0
        _note_use(chosen, rate, work, now)
    # class R has the next turn if it keeps its turn, or if class D does not keep its own
    rate.turn = int(rate_sends == keeps_turn)
    return chosen


@jit
def _next_in_round(rate: Queue, delay: Queue, now: float) -> tuple[bool, bool]:
    """Whether class R sends next (else class D), and whether the class that sends may send now.

    The class whose turn it is comes first. A class sends if it has a packet, may send now
    (``_permitted``), and has bytes left in this round. If nothing but bytes kept a class from
    sending, there is a second pass, in which such a class sends all the same. If no class may send
    now, the first one with a packet sends all the same.
    """
    rate_is_first = rate.turn == 1
    for again in (False, True):
        lacks_bytes = False  # ``deficit`` in cbq.cc
        for is_first in (True, False):
            is_rate = is_first == rate_is_first
            one, two = (rate, delay) if is_rate else (delay, rate)
            if not again and one.credit <= 0.0:
                one.credit += np.floor(one.share * (rate.round_bytes / rate.shares_sum))
            if one.waiting > 0.0:
                if not _permitted(one, two, rate, now):
                    _hold_back(one, now)
                elif one.credit > 0.0 or again:
                    return is_rate, True
                else:
                    lacks_bytes = True
            one.credit = 0.0  # it has nothing to send, must not send, or has no bytes left
        if not lacks_bytes:
            break
    first = rate if rate_is_first else delay
    return (first.waiting > 0.0) == rate_is_first, False


@jit
def _under_limit(link: Queue, now: float) -> bool:
    """Whether the class of queue ``link`` has lately sent at most its share of the capacity."""
    return link.over_until < now - link.instant / link.capacity


@jit
def _permitted(one: Queue, two: Queue, rate: Queue, now: float) -> bool:
    """Whether class ``one`` may send now (``send_permitted`` in cbq.cc).

    ``one`` and ``two`` are the queues of the two classes of a Rate-Delay link. Class ``one`` may
    send if it has lately sent no more than its share of the capacity. If it has sent more, two
    conditions must hold. Both classes together must not have sent more than the link can carry. And
    class ``two`` must have sent more than its share, too, or have no packet waiting. ``rate`` is
    the queue of the high-rate class; its record also has the numbers for both classes together.
    """
    if _under_limit(one, now):
        one.held_back = 0
        return True
    room_on_link = rate.all_until <= now + rate.instant / rate.capacity
    return room_on_link and not (_under_limit(two, now) and two.waiting > 0.0)


@jit
def _hold_back(link: Queue, now: float) -> None:
    """Record that a class has a packet waiting but must not send now (``delayed`` in cbq.cc).

    A class that has sent more than its share counts as over its limit until ``over_until``. The
    function moves this time to an earlier one, but only once while the class is over its limit.
    """
    if link.over_until > now + link.instant / link.capacity and not link.held_back:
        link.over_until += (MEMORY - 1.0) * link.mean_idle
        link.held_back = 1


@jit
def _note_use(link: Queue, rate: Queue, work: float, now: float) -> None:
    """Record that a class of a Rate-Delay link begins to send a packet (``update`` in cbq.cc).

    ``link`` is the queue of this class, and ``work`` the size of the packet. ``rate`` is the queue
    of the high-rate class; its record also has the numbers for both classes together (``all_idle``,
    ``all_until``).

    If the class has lately sent more than its share, it counts as over its limit for a while. The
    same holds for both classes together if they have sent more than the link can carry. While they
    keep the link busy, they send just as much as it can carry. So ns-2's rounding errors decide
    whether they count as over their limit. ``capacity`` has these errors (``rounding.roundings``),
    and ``exact_capacity`` has none.
    """
    time, exact = work / link.capacity, work / link.exact_capacity
    end = now + time
    # by how much the class sends later than a class that sends just its share
    idle = (end - link.last_end) - exact / link.share
    link.mean_idle = min(link.mean_idle + (idle - link.mean_idle) / MEMORY, link.idle_limit)
    if link.mean_idle <= 0.0:  # it has lately sent more than its share
        link.over_until = end + time * (1.0 / link.share - 1.0)
        link.over_until += (1.0 - MEMORY) * link.mean_idle
    link.last_end = end
    # the same for both classes together, whose share is the whole capacity
    idle = (end - rate.all_end) - exact
    rate.all_idle = min(rate.all_idle + (idle - rate.all_idle) / MEMORY, rate.all_limit)
    if rate.all_idle <= 0.0:
        rate.all_until = end + (1.0 - MEMORY) * rate.all_idle
    rate.all_end = end
