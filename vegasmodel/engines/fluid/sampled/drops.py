"""Drops packets at the full buffer, in each time step of the simulator ``fluid``.

A packet is dropped, for example, if a window has grown by a packet for which there is no room. In
the functions, ``now`` is the link's present state, ``link`` has its constants, and ``c`` is its
capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import comes_in_trains, draw, victim
from vegasmodel.engines.fluid.sampled.follower import late_acks
from vegasmodel.engines.fluid.sampled.holes import count_hole
from vegasmodel.engines.fluid.sampled.line import silence
from vegasmodel.engines.fluid.sampled.loser import loser
from vegasmodel.engines.fluid.sampled.queue import RATE_ERROR, burst, excess_rate, in_network
from vegasmodel.engines.fluid.sampled.records import (
    DUPLICATES,
    NEVER,
    WINDOW_ERROR,
    Bottleneck,
    LinkState,
    Sender,
)
from vegasmodel.engines.fluid.sampled.recovery import needed
from vegasmodel.engines.tables import Table, jit, rare

AT_TIMEOUT = 2.0  # packets that ns-2's Vegas sends at once after a timeout; no sender sends more
MOST_AT_ONCE = 1e6  # more additional packets of a flow are an error of its law (``overflow``)


@jit
def duplicates_take(flow: Sender, now: LinkState, c: float) -> float:
    """The time in round trips in which the duplicate ACKs come that tell the sender of a loss.

    The duplicate ACKs come one after another, as the flow's packets do. If the packets stay
    together as a train, they come one transmission time of the link apart (1/``c``). Otherwise they
    are spread over the round trip.
    """
    train = flow.in_train or comes_in_trains(flow)
    packets = c * (flow.rtt + now.delay) if train else max(flow.in_flight, 1.0)
    return min(needed(flow, now, c), DUPLICATES) / packets


@rare
def lose(flow: Sender, now: LinkState, link: Bottleneck, packets: float, ago: float) -> None:
    """Record that the flow loses ``packets`` packets, ``ago`` seconds before the end of this step.

    The sender detects the loss about one round trip later, together with all further losses until
    then (``on_acks``). For this the function sets:

    - ``flow.detection_in``: the time until the detection, in round trips. For Linux senders
      (``line.py``) and at RED it includes ``flow.silence``, the time in which the ACKs come that
      report the loss.
    - ``flow.hears_in``: the same time in seconds, which is used at RED only.
    - ``flow.later_hole``: the time from the second loss to the detection, in round trips; 0 if no
      second packet is lost.
    - ``flow.later_delay``: at first ``NEVER``. ``on_acks`` then stores here the queueing delay that
      the duplicate ACKs will report.

    If windows are real numbers (``smooth`` in ``overflow``), ``on_acks`` does not wait for the
    round trip: the sender cuts its window at the end of this step. A loss at the full buffer then
    has ``packets`` = 0, because only the cut is simulated, and no packet in flight is lost. It
    counts as one packet in ``flow.lost``.
    """
    passed = max(now.step - ago, 0.0) / (flow.rtt + now.delay)  # of this step, before the loss
    if flow.at_red:
        count_hole(flow, now.step, ago)
    if flow.detection_in <= 0.0:
        flow.silence = silence(flow, now, passed, link.capacity) if flow.in_line else 0.0
        if flow.at_red:
            flow.silence = duplicates_take(flow, now, link.capacity)
        # at RED in a burst: by how much the packet waits longer than ``now.delay``, in round trips
        waits = max(now.red_waiting / link.capacity - now.delay, 0.0) / (flow.rtt + now.delay)
        flow.detection_in, flow.later_delay = 1.0 + passed + waits + flow.silence, NEVER
        flow.hears_in = flow.detection_in * (flow.rtt + now.delay)
        flow.later_hole = flow.detection_in - passed if packets > 1.0 else 0.0
    elif flow.later_hole == 0.0:
        flow.later_hole = flow.detection_in - passed
    flow.undetected = min(flow.undetected + packets, flow.in_flight)
    flow.held_back = min(flow.held_back, flow.in_flight - flow.undetected)
    flow.lost += max(packets, 1.0)
    now.drops += 1
    flow.rounds_at_rest = 0.0


@jit
def grown_ago(flow: Sender, packets: float) -> float:
    """How long before the end of the step the window began to grow by its last ``packets`` packets.

    The result is in seconds. In the last ``flow.still`` seconds of the step the window does not
    grow. Before that, it grows by one packet in ``flow.interval`` seconds. If it does not grow in
    the step, the result is ``NEVER``.
    """
    return flow.still + packets * flow.interval if flow.interval < NEVER else NEVER


@rare
def count_anew(now: LinkState, count: float) -> None:
    """Let RED count packets anew from ``count``, although it has dropped none at random.

    RED drops a packet at random as soon as ``red_passes`` falls to ``red_gap``
    (``random_drops.dropped``). Here ``red_gap`` is still below ``red_passes``, and may have any
    value from 0 to ``red_passes`` with equal probability. So the quotient of the two is a uniform
    random number on 0 .. 1. It becomes the new ``red_gap``, and no new number need be drawn.
    """
    now.red_gap /= now.red_passes
    now.red_count, now.red_passes = count, 1.0


@rare
def find_red_full(now: LinkState, link: Bottleneck, packets: float) -> None:
    """Let RED count ``packets`` packets that find the buffer full, as red.cc does (``enque``).

    RED's average moves towards the length of the full queue before the packets are dropped. RED
    then counts from 0 the packets since its last drop.
    """
    now.red_average += (1.0 - (1.0 - link.weight) ** packets) * (link.room - now.red_average)
    count_anew(now, 0.0)


@jit
def overflow_of_bursts(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Drop the packets of the flow's burst that find the buffer full.

    In slow start each ACK releases one packet more than it acknowledges. So packets arrive faster
    than the link sends them. The additional packets of one round trip are the burst. Those that
    arrive in this step are ``flow.extra``, and only they can be lost. A whole window that one ACK
    releases (``flow.window_sent``) is a burst, too. A burst can fill the buffer even if the flow's
    average rate is low.

    If the queue is RED, the function treats only bursts of Vegas's slow start
    (``decides_slow_start``), because this is not simulated packet by packet. ``random_drops.py``
    treats all other bursts at RED.
    """
    if link.red and not (flow.in_slow_start and flow.decides_slow_start):
        return
    if flow.window_sent > 0.0:  # one ACK has released a whole window
        over = np.ceil(link.capacity * now.delay + flow.window_sent - link.room - WINDOW_ERROR)
        if over > 0.0:
            flow.at_once -= over
            lose(flow, now, link, over, 0.0)
    elif flow.burst > 0.0 and flow.extra > 0.0:
        # by how many packets the queue exceeds the buffer when the burst has arrived
        over = link.capacity * now.delay + burst(flow, now, link.capacity) - link.room
        over = min(np.ceil(over - WINDOW_ERROR), flow.extra)
        if over > 0.0:
            flow.extra -= over
            flow.extra_lost += over
            flow.arrives = max(flow.arrives - over, 0.0)  # else RED might drop them once more
            flow.burst -= over
            flow.at_once = max(flow.at_once - over, 0.0)
            flow.lost_of_pairs = flow.in_slow_start  # of each pair sent upon an ACK, one is lost
            if link.red:
                find_red_full(now, link, over)
            # the losses began when the window began to grow by these packets
            lose(flow, now, link, over, grown_ago(flow, over) if flow.interval < NEVER else 0.0)


@rare
def free_places(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """Draw how many places of the full queue are free when a packet arrives at a random time.

    On average over time, n + f places are free; n is a whole number, and 0 <= f < 1. In each
    transmission time one packet departs and frees a place, and another packet arrives and takes it.
    If senders do not wait at random, the place is free for the fraction f of the transmission time.
    So n + 1 places are free between a departure and the next arrival, and n places otherwise.

    If senders wait at random, each arrival is later by a random time of its own. So the places of
    several departed packets may be free at the same time. The code goes through the departures,
    the latest one first. ``age`` is the time since such a departure, in transmission times.
    """
    free = link.room - link.capacity * (now.delay + flow.wait)
    places: float = np.floor(free)
    part, age = free - places, draw(now)
    while age < part + link.max_wait:
        # the place is free if the packet that is to take it has not come yet
        places += age < part + link.max_wait * draw(now)
        age += 1.0
    return max(places, 0.0)


@rare
def admit_by_timer(flows: Table[Sender], i: int, now: LinkState, link: Bottleneck) -> None:
    """Let the packets that the sender of flow ``i`` sends when a timeout ends reach the queue.

    The flow has no other packet in flight. The timer does not depend on the departures from the
    queue, so the packets arrive at a random time between two departures. They find as many free
    places as ``free_places`` says, and the others are lost.

    An accepted packet may take the place of a packet that would have arrived later. That packet
    then finds the buffer full. It belongs to a flow drawn at random; if the draw names the same
    flow, nothing is lost.
    """
    flow, free = flows[i], link.room - link.capacity * now.delay
    sent, found = flow.extra, flow.extra  # the packets sent, and those that find a free place
    if free < sent:
        found = min(free_places(flow, now, link), sent)
    flow.extra = 0.0
    if found < sent:
        lose(flow, now, link, sent - found, 0.0)
    # the packets accepted beyond ``free``, the mean number of free places: each of them takes the
    # place of a packet that would have arrived later
    taken = min(np.ceil(found - free - WINDOW_ERROR), found)
    for _ in range(int(taken)):
        other = victim(flows, now)
        if other != i:
            lose(flows[other], now, link, 1.0, 0.0)


@rare
def admit_alone(flows: Table[Sender], i: int, now: LinkState, link: Bottleneck) -> None:
    """Let packets of flow ``i`` arrive, which has no other packets in flight.

    After a timeout there may be two such packets, and ``admit_by_timer`` lets them arrive.
    Otherwise there is one. It is accepted if the buffer has room for a whole packet.

    The queue of this model is a real number, so there may be room for only a part f of a packet.
    The packet is then accepted with the probability f. If it is accepted, the queue is too long by
    a part of a packet. To make up for this, a flow is drawn at random and loses a packet; if the
    draw gives the same flow, nothing is lost. If the packet is not accepted, the function
    ``overflow`` decides which packet is lost.
    """
    if flows[i].resends > 0.0:
        admit_by_timer(flows, i, now, link)
        return
    free = link.room - link.capacity * now.delay
    if draw(now) <= free:
        flows[i].extra = 0.0
        other = victim(flows, now)
        if free < 1.0 and other != i:
            lose(flows[other], now, link, 1.0, 0.0)


@rare
def first_window_arrives(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Let the first window of a flow arrive at the queue, and drop what finds the buffer full.

    The queue of this model is a real number. If there is room for a part f of a packet, one more
    packet is accepted with the probability f.
    """
    over = flow.in_flight - max(link.room - link.capacity * now.delay, 0.0)
    if over > 0.0:
        lost = np.floor(over)
        lost += draw(now) < over - lost
        if lost > 0.0:
            lose(flow, now, link, lost, now.step)


@rare
def last_to_grow(flows: Table[Sender], now: LinkState) -> int:
    """The flow that sent the last additional packet in this step; -1 if no flow sent one.

    A packet is additional if a flow sends more than one packet per ACK. If several flows sent
    theirs at the same time, one of these flows is drawn at random.
    """
    # ``last``: seconds from the latest packet to the end of the step; ``ties``: number of flows
    # that sent a packet then
    last, which, ties = np.inf, -1, 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.extra > WINDOW_ERROR:
            # the window has grown by this number since the flow sent that packet
            ago = grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost)
            if ago < last - WINDOW_ERROR * last or which < 0:
                last, which, ties = ago, i, 1.0
            elif ago <= last + WINDOW_ERROR * last:
                ties += 1.0
                which = i if draw(now) * ties < 1.0 else which
    return which


@rare
def drop_last(flows: Table[Sender], now: LinkState, link: Bottleneck, held: float) -> None:
    """Drop packets if flows send additional packets for which the full buffer has no room.

    A packet is additional if a flow sends more than one packet per ACK. The function begins with
    the additional packet that was sent last, because the earlier ones took the room that there was.
    ``loser`` names the flow that loses a packet because this one was sent. It may be another flow.

    A receiver that delays ACKs may hold back one packet of its flow. The rates of the flows leave
    this packet out. But if all RTTs are equal, the packets in flight of a flow follow one another
    as a train, and the held-back packet is released with the flow's next train. So while this train
    passes the queue, the queue is longer by one packet (``queue.hold_back_from_train``). ``held``
    is the rate that this packet adds in this time, in pkt/s, or 0 if no flow has such a packet.
    """
    s_max = link.room / link.capacity  # the queueing delay of a full buffer
    while True:
        # by how much the flows' rates exceed the capacity, pkt/s; it falls with each packet dropped
        excess = excess_rate(flows, s_max, link.capacity)
        # ``held`` is the most that a held-back packet can add, whichever flow sent last
        which = last_to_grow(flows, now) if excess + held > RATE_ERROR * link.capacity else -1
        if which < 0:  # all packets fit, or no additional packet is left
            return
        flow = flows[which]
        excess += flow.held_back * held  # only what this flow's receiver holds back counts
        if excess <= RATE_ERROR * link.capacity:
            return
        over = excess * (flow.rtt + s_max)  # packets in flight for which there is no room
        # ``ago``: seconds from the arrival of the additional packet to the end of the step;
        # ``later``: seconds from this arrival to the loss, which flow ``losing`` has
        ago = min(grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost), now.step)
        losing, later = loser(flows, which, now, link, over, ago)
        if losing < 0:
            return
        flow.extra -= 1.0
        flow.extra_lost += 1.0
        lose(flows[losing], now, link, 1.0, ago - later)


@jit
def next_ago(flow: Sender) -> float:
    """The time from the sending of the flow's next additional packet to the end of the step, in s.

    A packet is additional if the flow sends more than one packet per ACK. The next one is the first
    that ``drop_in_order`` has not yet handled.
    """
    return grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost + flow.extra - 1.0)


@jit
def first_event(flows: Table[Sender], now: LinkState) -> tuple[int, float, bool]:
    """The first event of this step that ``drop_in_order`` has not yet handled.

    An event is that a flow sends an additional packet, or that a window falls. If several flows
    send additional packets at this time, one of them is drawn at random.

    Returns the event's flow (-1 if there is no event), the time in seconds from the event to the
    end of the step, and whether the event is the fall of a window.
    """
    # ``first``: seconds from the event to the end of the step; the first event has the greatest
    first, which, ties, falls = -1.0, -1, 1.0, False
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.extra > WINDOW_ERROR:
            ago = next_ago(flow)
            if ago > first + WINDOW_ERROR * first or which < 0:
                first, which, ties, falls = ago, i, 1.0, False
            elif ago >= first - WINDOW_ERROR * first and not falls:
                ties += 1.0
                which = i if draw(now) * ties < 1.0 else which
        if flow.active and flow.freed > 0.0 and flow.freed_ago > first:
            first, which, ties, falls = flow.freed_ago, i, 1.0, True
    return which, first, falls


@rare
def drop_in_order(flows: Table[Sender], now: LinkState, link: Bottleneck, over: float) -> None:
    """Drop packets in a step in which Vegas reduces its window, in the order of events.

    A packet is additional if a flow sends more than one packet per ACK. When a window falls, the
    flow does not send a packet for an ACK, so the queue gets room for a packet. The next additional
    packet takes this room. So it matters whether the window falls before the additional packet is
    sent. ``over`` is the sum of the flows' rates at a full buffer minus the capacity, in pkt/s. It
    leaves out the changes in this step: the additional packets, and the falls of windows.
    """
    s_max = link.room / link.capacity
    while True:
        which, first, falls = first_event(flows, now)
        if which < 0:
            return
        flow = flows[which]
        if falls:
            over -= flow.freed / (flow.rtt + s_max)
            flow.freed = 0.0
            continue
        sent = min(flow.extra, 1.0)
        flow.extra -= sent
        over += sent / (flow.rtt + s_max)
        held = flow.held_back / (flow.rtt + s_max)
        while over + held > RATE_ERROR * link.capacity:  # a packet finds no room
            ago = min(first, now.step)
            packets = (over + held) * (flow.rtt + s_max)  # in flight, for which there is no room
            losing, later = loser(flows, which, now, link, packets, ago)
            if losing < 0:
                break
            lose(flows[losing], now, link, 1.0, ago - later)
            over -= 1.0 / (flows[losing].rtt + s_max)


@rare
def drop_early(flows: Table[Sender], now: LinkState, link: Bottleneck) -> None:
    """Drop a packet of a train that begins with two packets at once, if there is no room for both.

    A train is the packets that a flow sends in one round trip, one behind the other. With delayed
    ACKs, the receiver may acknowledge the last packet of a train only when the first packet of the
    next train arrives: one ACK then acknowledges both. Upon this ACK the sender sends two packets
    at once, with which its following train begins. This happened ``flow.early_ago`` seconds ago;
    0 means that no such train began in this step.

    While this train passes, the queue is longer by one packet (``queue.hold_back_from_train``). If
    the buffer has no room for it, the train loses one packet. Which one depends on the random time
    that the sender waits before it sends each packet. A packet is late if it arrives after the next
    departure from the queue, because it then finds room. The first packet of the train that is not
    late is lost (``follower.follower``). If all are late, none is lost in this round trip.
    """
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.early_ago > 0.0:
            # the packets for which link and buffer have no room
            over = in_network(flows) + flow.held_back - link.capacity * flow.rtt - link.room
            if over <= WINDOW_ERROR:
                continue
            passed = flow.acked_at_once * late_acks(flow, now, link)  # late packets before the loss
            if passed < flow.in_flight - 1.0:
                lose(flow, now, link, 1.0, min(flow.early_ago, now.step) - passed / link.capacity)


@jit
def excess_unless_burst(flows: Table[Sender], link: Bottleneck) -> float:
    """By how much the flows' rates exceed the capacity at a full buffer (``excess_rate``).

    The result is -inf if a flow sends a burst at a RED queue, so that ``overflow`` drops nothing.
    The module ``random_drops`` drops those packets of the burst for which there is no room.
    """
    for i in range(len(flows)):
        if link.red and flows[i].active and flows[i].at_once > 1.0:
            return -np.inf
    return excess_rate(flows, link.room / link.capacity, link.capacity)


@jit
def freed_rate(flows: Table[Sender], s_max: float) -> float:
    """By how much the falls of windows in this step lower the flows' rates at a full buffer, pkt/s.

    ``s_max`` is the queueing delay of the full buffer.
    """
    freed = 0.0
    for i in range(len(flows)):
        if flows[i].active:
            freed += flows[i].freed / (flows[i].rtt + s_max)
    return freed


@jit
def held_rate(flows: Table[Sender], s_max: float) -> float:
    """The rate of one packet that a receiver holds back, at a full buffer, in pkt/s.

    ``s_max`` is the queueing delay of the full buffer. Of several such rates the result is the
    greatest. It is 0 if no receiver holds back a packet of a train. ``drop_last`` explains why this
    packet counts.
    """
    held = 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            held = max(held, flow.held_back * flow.in_train / (flow.rtt + s_max))
    return held


@jit
def sent_rate(flows: Table[Sender], s_max: float) -> float:
    """By how much the additional packets of this step raise the flows' rates at a full buffer.

    The result is in pkt/s. ``s_max`` is the queueing delay of the full buffer.
    """
    sent = 0.0
    for i in range(len(flows)):
        if flows[i].active:
            sent += max(flows[i].extra, 0.0) / (flows[i].rtt + s_max)
    return sent


@jit
def far_too_many(flows: Table[Sender], s_max: float, sent: float, c: float) -> bool:
    """Whether a law seems to enlarge its window without bound.

    There are two signs of this:

    - A flow has lost more than ``MOST_AT_ONCE`` packets that its sender does not yet know to be
      lost, and more than twice as many as link and buffer hold. (In a slow start, at most as many
      packets are lost as these hold.)
    - A flow sends more than ``MOST_AT_ONCE`` additional packets in this step, and the additional
      packets of all flows have a rate (``sent``, pkt/s) above the capacity ``c``.

    ``s_max`` is the queueing delay of the full buffer in seconds.
    """
    most, lost_too_many = 0.0, False
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            most = max(most, flow.extra)
            fits = c * (flow.rtt + s_max)  # packets that link and buffer hold
            lost_too_many = lost_too_many or flow.undetected > max(MOST_AT_ONCE, 2.0 * fits)
    return lost_too_many or (most > MOST_AT_ONCE and sent > c)


@jit
def overflow(flows: Table[Sender], now: LinkState, link: Bottleneck, smooth: bool) -> bool:
    """Drop the packets for which the full buffer has no room.

    If a window is constant or falls, the flow sends at most one packet per ACK. This packet takes
    the place that the acknowledged packet has left. So only additional packets make the buffer
    overflow.

    The function first treats bursts and single packets after a timeout. Then it goes through the
    other additional packets (``drop_last``, ``drop_in_order``). For each of them for which there is
    no room, the function ``loser`` names the flow that loses a packet.

    If ``smooth``, windows are real numbers. Then every flow whose window grows has one loss.

    Returns false if a congestion control law seems to enlarge its window without bound
    (``far_too_many``). The simulation then ends.
    """
    for i in range(len(flows)):
        flow = flows[i]
        flow.extra_lost = 0.0
        if flow.active and not smooth:
            overflow_of_bursts(flow, now, link)
            alone = AT_TIMEOUT if flow.resends > 0.0 else 1.0  # greatest number of such packets
            if 0.0 < flow.extra == flow.in_flight <= alone:  # the flow has no others in flight
                admit_alone(flows, i, now, link)
    s_max = link.room / link.capacity  # the queueing delay of the full buffer
    # By how much the flows' rates exceed the capacity, pkt/s: at the end of this step by ``over``,
    # and before windows have fallen in it by ``freed`` more. A packet that a receiver has held back
    # can add the rate ``held``. If the sum of the three is not above 0, no packet is lost.
    over = excess_unless_burst(flows, link)
    freed, held = freed_rate(flows, s_max), held_rate(flows, s_max)
    if over + freed + held <= RATE_ERROR * link.capacity:
        return True
    sent = sent_rate(flows, s_max)  # the rate that additional packets have added in this step
    if far_too_many(flows, s_max, sent, link.capacity):
        return False
    if freed > 0.0:  # windows fall in this step, too: the order of falls and packets matters
        drop_in_order(flows, now, link, over + freed - sent)
    elif not smooth:
        drop_last(flows, now, link, held)
    elif last_to_grow(flows, now) >= 0:
        for i in range(len(flows)):
            flow = flows[i]
            # a window that moves to and fro about a threshold does not count as growing
            if flow.active and flow.extra > 0.0 and flow.growth_before > 0.0:
                lose(flow, now, link, 0.0, 0.0)
    drop_early(flows, now, link)
    return True
