"""Decides which flows lose packets at the full buffer, by RED and by random loss."""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.queue import RATE_ERROR, burst, excess_rate, red_probability
from vegasmodel.engines.fluid.sampled.records import (
    NEVER,
    WINDOW_ERROR,
    Bottleneck,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import Table, jit, rare

TRIES = 64  # pairs of packets that are drawn at most, to find two that meet


@jit
def seed(number: int) -> None:
    """Seed the random numbers of the simulation; other threads have their own."""
    np.random.seed(number)


@jit
def draw(now: LinkState) -> float:
    """A uniform random number on 0 .. 1; ``now.draws`` counts the calls."""
    now.draws += 1
    return np.random.random()


@jit
def draw_normal(now: LinkState) -> float:
    """A random number of the standard normal distribution; ``now.draws`` counts the calls."""
    now.draws += 1
    return np.random.normal()


@rare
def lose(flow: Sender, now: LinkState, packets: float, ago: float) -> None:
    """Record that the flow loses ``packets`` packets, ``ago`` seconds before the end of this step.

    ``flow.detection_in`` is set to one round trip: after this time the function ``on_acks`` lets
    the sender detect the loss. A second loss before then is detected together with the first.
    ``flow.later_hole`` holds how many round trips before this detection it occurred.

    If windows are real numbers (``smooth`` in ``overflow``), ``on_acks`` does not wait for the
    round trip: the sender cuts its window at the end of this step. A loss at the full buffer then
    has ``packets`` = 0, because only the cut is simulated, and no packet in flight is lost. It
    counts as one packet in ``flow.lost``.
    """
    passed = max(now.step - ago, 0.0) / (flow.rtt + now.delay)  # of this step, before the loss
    if flow.detection_in <= 0.0:
        flow.detection_in = 1.0 + passed
        flow.later_hole = flow.detection_in - passed if packets > 1.0 else 0.0
    elif flow.later_hole == 0.0:
        flow.later_hole = flow.detection_in - passed
    flow.undetected = min(flow.undetected + packets, flow.in_flight)
    flow.lost += max(packets, 1.0)
    flow.rounds_at_rest = 0.0


@rare
def victim(flows: Table[Sender], now: LinkState) -> int:
    """The flow to which an arriving packet belongs, drawn in proportion to the flows' rates."""
    total, s, last = 0.0, now.delay, 0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active:
            total += (flow.in_flight - flow.undetected) / (flow.rtt + s)
    left = draw(now) * total
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and flow.in_flight > flow.undetected:
            last = i
            left -= (flow.in_flight - flow.undetected) / (flow.rtt + s)
            if left <= 0.0:
                return i
    return last


@jit
def drop_at_random(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, s: float
) -> None:
    """Drop some of the ``packets`` that arrive in a step, by random loss and by RED.

    ``s`` is the mean queueing delay in the step if nothing is dropped.

    Random loss hits each packet with the same probability. In this model the number of packets
    between two losses is a real number with an exponential distribution.

    RED computes an average of the queue. While the link is idle, the average falls as if packets
    arrived at the rate of the link. From the average, RED computes a drop probability p:

    - If p is 1 before or after the step, RED drops packets until p is below 1 (``drop_all``).
    - If p is below 1, the number of packets between two drops is uniform on 1/p .. 2/p, as in ns-2
      (``wait_``). To this end p is added up over the packets. At a random value of the sum, uniform
      on 1 .. 2, the next packet is dropped.

    In both cases RED drops a packet only while more than one packet waits.
    """
    if link.loss > 0.0:
        now.loss_gap -= packets * link.loss
        while now.loss_gap <= 0.0:
            now.loss_gap += -np.log(1.0 - draw(now))
            lose(flows[victim(flows, now)], now, 1.0, 0.5 * now.step)
    if link.red:
        waits = max(link.capacity * s - 0.5, 0.0)
        before = now.red_average
        times = max(packets, link.capacity * now.step) if waits == 0.0 else packets
        now.red_average += (1.0 - (1.0 - link.weight) ** times) * (waits - now.red_average)
        if red_probability(link, max(before, now.red_average)) >= 1.0:
            now.red_average = before
            drop_all(flows, now, link, packets, waits)
            return
        chance = red_probability(link, now.red_average) if waits > 1.0 else 0.0
        if chance <= 0.0:
            now.red_passed = 0.0
            return
        now.red_passed += packets * chance
        while now.red_passed >= now.red_gap:
            now.red_passed -= now.red_gap
            now.red_gap = 1.0 + draw(now)
            lose(flows[victim(flows, now)], now, 1.0, 0.5 * now.step)


@rare
def drop_all(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, queue: float
) -> None:
    """Drop arriving packets until RED's average queue has fallen below its highest threshold.

    ``queue`` is the number of packets that wait. Each drop lowers it by one, and the average queue
    follows it. The drops end with the packets of this step.
    """
    for k in range(int(packets)):
        now.red_average += link.weight * (queue - now.red_average)
        if red_probability(link, now.red_average) >= 1.0 and queue > 1.0:
            lose(flows[victim(flows, now)], now, 1.0, now.step * (1.0 - k / packets))
            queue = max(queue - 1.0, 0.0)


@jit
def grown_ago(flow: Sender, packets: float) -> float:
    """How many seconds before the end of the step the window was smaller by ``packets`` packets.

    The result is ``NEVER`` if the window does not grow in the step.
    """
    return flow.still + packets * flow.interval if flow.interval < NEVER else NEVER


@jit
def overflow_of_bursts(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Drop the packets of the flow's burst that find the buffer full.

    A burst consists of packets that arrive faster than the link sends them. For example, in slow
    start it consists of the additional packets of one round trip. A whole window that one ACK
    releases (``window_sent``) is a burst, too. A burst can fill the buffer even if the flow's
    average rate is low.
    """
    if flow.window_sent > 0.0:
        over = np.ceil(link.capacity * now.delay + flow.window_sent - link.room - WINDOW_ERROR)
        if over > 0.0:
            lose(flow, now, over, 0.0)
    elif flow.burst > 0.0 and flow.extra > 0.0:
        over = link.capacity * now.delay + burst(flow, now, link.capacity) - link.room
        over = min(np.ceil(over - WINDOW_ERROR), flow.extra)
        if over > 0.0:
            flow.extra -= over
            flow.extra_lost += over
            flow.burst -= over
            flow.lost_of_pairs = flow.in_slow_start
            lose(flow, now, over, grown_ago(flow, over) if flow.interval < NEVER else 0.0)


@rare
def admit_alone(flows: Table[Sender], i: int, now: LinkState, link: Bottleneck) -> None:
    """Let the packet that a sender sends after a timeout arrive at the queue.

    The flow has no other packet in flight. If the buffer has room for a whole packet, the packet is
    accepted.

    The queue of this model is a real number, so there may be room for only a part f of a packet.
    The packet is then accepted with the probability f. In its place a packet of a flow drawn at
    random is lost, because the queue then holds a part of a packet too much. If the draw names the
    same flow, nothing is lost.

    If the packet is not accepted, the function ``overflow`` decides which packet is lost.
    """
    free = link.room - link.capacity * now.delay
    if draw(now) <= free:
        flows[i].extra = 0.0
        other = victim(flows, now)
        if free < 1.0 and other != i:
            lose(flows[other], now, 1.0, 0.0)


@rare
def last_to_grow(flows: Table[Sender], now: LinkState) -> int:
    """The flow that sent the last additional packet in this step; -1 if no flow sent one.

    A packet is additional if a flow sends more than one packet per ACK. If several flows sent
    theirs at the same time, one of these flows is drawn at random.
    """
    last, which, like = np.inf, -1, 0.0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and flow.extra > WINDOW_ERROR:
            ago = grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost)
            if ago < last - WINDOW_ERROR * last or which < 0:
                last, which, like = ago, i, 1.0
            elif ago <= last + WINDOW_ERROR * last:
                like += 1.0
                which = i if draw(now) * like < 1.0 else which
    return which


@jit
def arrival(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """Time from a packet's departure to the arrival of the packet that its ACK releases.

    Both events are at the queue. The time is the flow's propagation delay plus a random wait of the
    sender. It is divided by the transmission time of a packet at the link. Packets depart one
    transmission time apart. So the fractional part is the time from the latest departure to the
    arrival.
    """
    return flow.rtt * link.capacity + link.max_wait * draw(now)


@rare
def follower(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet if all RTTs are equal; -1 if none does.

    The buffer is full, and one ACK to flow ``grew`` has released two packets. If senders do not
    wait at random, each packet arrives equally long after a departure from the queue (``arrival``).
    So one packet arrives between two departures, and the second of the two packets is lost.

    A random wait can delay a packet until after the next departure; the packet is then late. The
    probability of this is ``late``. If the first of the two packets is late, the queue has room for
    the second one, which follows at once. Then the queue is full, and the next packet that is not
    late is lost. The number of packets before this one has a geometric distribution. The first
    packets to arrive are those of ``grew`` that come later in this round trip. After them come the
    packets of the other flows, one flow after another.

    It may be that all packets of a round trip are late, if ``late`` is close to 1. Then there is
    one place more in the queue: nothing is lost if only one packet is too many, and ``grew`` loses
    its second packet if there are more. ``over`` is the number of packets in flight for which link
    and buffer have no room. It is a real number, below 1 if one packet is too many.

    A flow that detects a loss stops sending for a while, which makes room, too. So nothing is lost
    if a flow detects an earlier loss before the first packet that is not late arrives. The two
    packets arrive ``ago`` seconds before the end of this step.

    Returns the flow, and the time in seconds from the arrival of the two packets to the loss.
    """
    if link.max_wait == 0.0:
        return grew, 0.0
    flow = flows[grew]
    after = max((flow.rtt * link.capacity + WINDOW_ERROR) % 1.0 - WINDOW_ERROR, 0.0)
    late = (after + link.max_wait - 1.0) / link.max_wait
    if late <= 0.0:
        return grew, 0.0
    total, until = 0.0, np.inf
    for i in range(flows.shape[0]):
        if flows[i].active:
            total += flows[i].in_flight
            if flows[i].detection_in > 0.0:
                until = min(until, flows[i].detection_in * (flows[i].rtt + now.delay))
    passed = np.floor(np.log(1.0 - draw(now)) / np.log(late))
    if passed > total:
        return (-1 if over < 1.0 else grew), 0.0
    if passed >= link.capacity * (until - now.step + ago):
        return -1, 0.0
    behind = max(flow.spare_acks, 0.0)
    if not (flow.grows_by_acks or flow.once_a_round):  # the place of its growth is unknown
        behind = flow.in_flight * draw(now)
    if passed <= behind:
        return grew, passed / link.capacity
    which, least = grew, np.inf
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and i != grew and flow.in_flight > 0.0:
            place = (flow.round_part * total + passed) % total - flow.in_flight  # < 0: in its train
            if place < least:
                which, least = i, place
    return which, passed / link.capacity


@rare
def loser(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet because flow ``grew`` has sent one too many for a full buffer.

    The result is -1 if there is room after all. (``follower`` explains this, ``over`` and ``ago``.)
    Also returns how many seconds after the arrival of that packet the loss occurs.

    Each departure from the queue makes room for one packet. If two packets arrive between two
    departures, the later one is lost (Floyd and Jacobson 1992, on phase effects).

    - If one ACK to flow ``grew`` released both packets, ``grew`` loses the second one.
    - If two ACKs released them, the function draws two packets at random, and the later one is
      lost.

    If RTTs differ, a random draw decides between the two cases. If all RTTs are equal, packets
    released by different ACKs arrive about one transmission time apart. The function ``follower``
    then decides.
    """
    alike, growth = True, 0.0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active:
            alike = alike and flow.rtt == flows[grew].rtt
            growth += max(flow.growth, 0.0)
    if alike:
        return follower(flows, grew, now, link, over, ago)
    meetings = 0.5 * link.capacity  # of two packets, a second
    for _ in range(TRIES):
        if draw(now) * (meetings + growth) >= meetings:
            return grew, 0.0
        i, j = victim(flows, now), victim(flows, now)
        a, b = arrival(flows[i], now, link), arrival(flows[j], now, link)
        if flows[i].rtt != flows[j].rtt or np.floor(a) != np.floor(b):
            return (i if a % 1.0 > b % 1.0 else j), 0.0
    return grew, 0.0


@rare
def drop_last(flows: Table[Sender], now: LinkState, link: Bottleneck) -> None:
    """Drop the additional packets for which there is no room, beginning with the last one."""
    s_max = link.room / link.capacity
    while True:
        excess = excess_rate(flows, s_max, link.capacity)
        which = last_to_grow(flows, now) if excess > RATE_ERROR * link.capacity else -1
        if which < 0:
            return
        flow = flows[which]
        ago = min(grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost), now.step)
        loses, later = loser(flows, which, now, link, excess * (flow.rtt + s_max), ago)
        if loses < 0:
            return
        flow.extra -= 1.0
        flow.extra_lost += 1.0
        lose(flows[loses], now, 1.0, ago - later)


@jit
def next_ago(flow: Sender) -> float:
    """Seconds from the first additional packet not yet handled to the end of the step."""
    return grown_ago(flow, flow.cwnd - flow.in_flight + flow.extra_lost + flow.extra - 1.0)


@rare
def drop_in_order(flows: Table[Sender], now: LinkState, link: Bottleneck, over: float) -> None:
    """Drop packets in a step in which Vegas reduces its window, in the order of events.

    When a window falls, the queue gets room for a packet, and the next additional packet takes this
    room. So it matters whether the window falls before the additional packet is sent. ``over`` is
    the sum of the flows' rates at a full buffer minus the capacity, in pkt/s. It counts neither the
    additional packets of this step nor the windows' falls.
    """
    s_max = link.room / link.capacity
    while True:
        first, which, like, falls = -1.0, -1, 1.0, False
        for i in range(flows.shape[0]):
            flow = flows[i]
            if flow.active and flow.extra > WINDOW_ERROR:
                ago = next_ago(flow)
                if ago > first + WINDOW_ERROR * first or which < 0:
                    first, which, like, falls = ago, i, 1.0, False
                elif ago >= first - WINDOW_ERROR * first and not falls:
                    like += 1.0
                    which = i if draw(now) * like < 1.0 else which
            if flow.active and flow.freed > 0.0 and flow.freed_ago > first:
                first, which, like, falls = flow.freed_ago, i, 1.0, True
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
        while over > RATE_ERROR * link.capacity:
            ago = min(first, now.step)
            loses, later = loser(flows, which, now, link, over * (flow.rtt + s_max), ago)
            if loses < 0:
                break
            lose(flows[loses], now, 1.0, ago - later)
            over -= 1.0 / (flows[loses].rtt + s_max)


@jit
def overflow(flows: Table[Sender], now: LinkState, link: Bottleneck, smooth: bool) -> None:
    """Drop the packets for which the full buffer has no room.

    If a window is constant or falls, the flow sends at most one packet per ACK. This packet takes
    the place that the acknowledged packet has left. So only additional packets make the buffer
    overflow.

    The function first treats bursts and single packets after a timeout. Then it goes through the
    other additional packets (``drop_last``, ``drop_in_order``). For each of them for which there is
    no room, the function ``loser`` names the flow that loses a packet.

    With ``smooth`` windows are real numbers. Then every flow whose window grows has one loss.
    """
    for i in range(flows.shape[0]):
        flow = flows[i]
        flow.extra_lost = 0.0
        if flow.active and not smooth:
            overflow_of_bursts(flow, now, link)
            if flow.extra == flow.in_flight == 1.0:
                admit_alone(flows, i, now, link)
    s_max = link.room / link.capacity
    over = excess_rate(flows, s_max, link.capacity)
    freed, sent = 0.0, 0.0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active:
            freed += flow.freed / (flow.rtt + s_max)
            sent += max(flow.extra, 0.0) / (flow.rtt + s_max)
    if over + freed <= RATE_ERROR * link.capacity:
        return
    if freed > 0.0:
        drop_in_order(flows, now, link, over + freed - sent)
    elif not smooth:
        drop_last(flows, now, link)
    elif last_to_grow(flows, now) >= 0:
        for i in range(flows.shape[0]):
            flow = flows[i]
            # a window that moves to and fro about a threshold slides there and does not grow
            if flow.active and flow.extra > 0.0 and flow.growth_before > 0.0:
                lose(flow, now, 0.0, 0.0)
