"""Decides whose packet is lost at the full buffer while the packets stay in order.

If all RTTs are equal, the packets of a flow follow one another as a train (Jacobson 1988,
self-clocking), and the trains of all flows follow one another in the same order in every round
trip. They also keep this order if RTTs differ by less than the link takes to send a packet. The
function ``follower`` then says which packet is lost.

Each departure from the queue makes room for one packet. A packet departs, its ACK releases the
flow's next packet, and this one arrives at the queue after the flow's propagation delay and a
random wait of its sender. So two things decide between which two departures it arrives: the
propagation delay and the wait. A packet is *late* if it arrives one departure later than a packet
of the shortest propagation delay whose sender does not wait. The longer the propagation delay of a
flow, the more of its packets are late.

In the functions, ``now`` is the link's present state, and ``link`` has its constants, such as the
capacity. Times are in transmission times of a packet at the link, unless stated otherwise.
``shortest`` is the shortest propagation delay of the active flows in seconds.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import draw
from vegasmodel.engines.fluid.sampled.line import line_up, since_begin
from vegasmodel.engines.fluid.sampled.records import WINDOW_ERROR, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare


@jit
def shortest_delay(flows: Table[Sender]) -> float:
    """The shortest propagation delay of the active flows, in seconds."""
    shortest = np.inf
    for i in range(len(flows)):
        if flows[i].active:
            shortest = min(shortest, flows[i].rtt - flows[i].wait)
    return shortest


@jit
def after_departure(flow: Sender, link: Bottleneck, shortest: float) -> float:
    """Time from a departure to the arrival of a packet of the flow whose sender does not wait.

    The departure is the last one before a packet of the shortest propagation delay would arrive. So
    the result is below 1 for the flow with this propagation delay, and larger for other flows.
    """
    after = (shortest * link.capacity + WINDOW_ERROR) % 1.0 - WINDOW_ERROR
    return max(after, 0.0) + (flow.rtt - flow.wait - shortest) * link.capacity


@jit
def lateness(flow: Sender, link: Bottleneck, shortest: float) -> float:
    """The probability that a packet of the flow is late: it arrives after the next departure.

    Packets depart one transmission time of the link apart. The packet is late if its sender's wait
    and ``after_departure``, both in transmission times, add up to more than 1. The wait is uniform
    on 0 .. ``max_wait``. ``shortest`` is the shortest propagation delay of all flows, seconds.
    """
    after = after_departure(flow, link, shortest)
    if after + WINDOW_ERROR >= 1.0:
        return 1.0
    return max(1.0 - (1.0 - after) / link.max_wait, 0.0) if link.max_wait > 0.0 else 0.0


@jit
def in_a_row(late: float, exponential: float) -> float:
    """How many packets in a row are late if each is late with the probability ``late``.

    k packets are all late with the probability ``late``^k. So if ``exponential`` is a random number
    with the standard exponential distribution, the result is a random number with the right
    distribution: the largest k with -k ln ``late`` <= ``exponential``.
    """
    if late >= 1.0:
        return np.inf
    packets: float = np.floor(exponential / -np.log(late)) if late > 0.0 else 0.0
    return packets


@jit
def late_acks(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """Draw at random how many ACKs in a row release late packets, if all RTTs are equal."""
    late = lateness(flow, link, flow.rtt - flow.wait)
    return in_a_row(late, -np.log(1.0 - draw(now))) if late > 0.0 else 0.0


@jit
def next_train(
    flows: Table[Sender], grew: int, now: LinkState, passed: float, total: float, ago: float
) -> tuple[int, float]:
    """Find the flow whose train is at the queue when ``passed`` more packets have arrived.

    A train is the packets in flight of one flow, one behind the other. The packets are counted from
    two packets that one ACK to flow ``grew`` has released, ``ago`` seconds before the end of this
    step. ``total`` is the number of packets in flight of all flows: after so many packets a flow's
    train begins again. Returns the flow, and how many packets of its train are still to come.
    """
    since = since_begin(flows[grew], now, ago)
    which, least = grew, np.inf
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and i != grew and flow.in_flight > 0.0:
            # how much of the flow's round trip is over since its train began
            begun = flow.place + since if flows[grew].in_line else flow.round_part
            # How many packets have arrived since the end of the flow's train, when ``passed`` more
            # have arrived. If the number is negative, so many of its train are still to come.
            since_end = (begun * total + passed) % total - flow.in_flight
            if since_end < least:
                which, least = i, since_end
    return which, -least if least < 0.0 else flows[which].in_flight


@rare
def arrives_later(
    before: Sender, behind: Sender, now: LinkState, link: Bottleneck, shortest: float
) -> bool:
    """Draw whether the last packet of a train arrives later than the first of the next train.

    The last packet, of the flow ``before``, is late: it arrives after the next departure. The first
    packet of the flow ``behind`` is not late. So both arrive between the same two departures. The
    last packet can be the later one only if its flow has the longer propagation delay.

    ``shortest`` is the shortest propagation delay of all flows, seconds. Other times are in
    transmission times. A packet arrives a (or b) plus its sender's wait after a departure. The wait
    is uniform on 0 .. ``max_wait``. A packet is late if the sum exceeds 1.
    """
    a = after_departure(before, link, shortest)
    b = after_departure(behind, link, shortest)
    if a <= b:
        return False
    least = max(a, 1.0)  # the last packet is late: it arrives after 1
    last = least + draw(now) * max(a + link.max_wait - least, 0.0)
    most = min(b + link.max_wait, 1.0)  # the first packet is not late: it arrives before 1
    return last % 1.0 > b + draw(now) * (most - b)


@jit
def packets_in_flight(flows: Table[Sender]) -> float:
    """The number of packets in flight of all active flows."""
    total = 0.0
    for i in range(len(flows)):
        if flows[i].active:
            total += flows[i].in_flight
    return total


@jit
def until_detection(flows: Table[Sender], now: LinkState) -> float:
    """Seconds until the first flow detects an earlier loss; infinite if there is none."""
    until = np.inf
    for i in range(len(flows)):
        if flows[i].active and flows[i].detection_in > 0.0:
            until = min(until, flows[i].detection_in * (flows[i].rtt + now.delay))
    return until


@jit
def rest_of_train(flow: Sender, now: LinkState) -> float:
    """How many packets of the flow's train come after the one whose ACK enlarged the window.

    The simulation knows this number (``spare_acks``) for a flow whose packets follow one another,
    if its law fixes the ACK at which the window grows. For other flows the ACK is drawn at random.
    """
    known = flow.in_train and (flow.grows_by_acks or flow.once_a_round or flow.in_line)
    return max(flow.spare_acks, 0.0) if known else flow.in_flight * draw(now)


@jit
def first_on_time(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, total: float,
    exponential: float, ago: float,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Find the first packet that is not late after the two that one ACK to flow ``grew`` released.

    Packets arrive in this order: first those of ``grew`` that come later in this round trip, then
    those of the other flows, one train after another. A train is the packets in flight of one flow.
    A packet is late (it arrives after the next departure) with the probability ``lateness`` of its
    flow. So if these are equal, the number of late packets has a geometric distribution.
    ``exponential`` is the random number from which ``in_a_row`` computes this number. ``total`` is
    the number of packets in flight of all flows. The two packets arrive ``ago`` seconds before the
    end of this step.

    Returns four values about the packet found:

    - its flow, or -1 if all packets of a round trip are late;
    - the flow whose train is just ahead of it;
    - the number of late packets before it;
    - whether it is the first packet of its train.

    A receiver that delays its ACKs acknowledges two packets at once, so packets are late in pairs
    (``acked_at_once``).
    """
    flow, shortest = flows[grew], shortest_delay(flows)
    late = lateness(flow, link, shortest)
    behind = rest_of_train(flow, now)  # packets of the present train that are still to come
    which, ahead, passed = grew, grew, 0.0
    run = in_a_row(late, exponential) * flow.acked_at_once
    while run > behind:  # the rest of this train is late
        # for ``in_a_row``, each of these packets, or pairs, uses up -ln ``late`` of the number
        exponential += np.log(late) * behind / flow.acked_at_once
        passed += behind
        if passed > total:
            return -1, ahead, passed, False
        ahead = which
        which, behind = next_train(flows, grew, now, passed, total, ago)
        behind = max(behind, 1.0)
        late = lateness(flows[which], link, shortest)
        run = in_a_row(late, exponential) * flow.acked_at_once
    return which, ahead, passed + run, run == 0.0


@rare
def follower(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet while the packets of all flows stay in order; -1 if none does.

    The buffer is full, and one ACK to flow ``grew`` has released two packets. They arrive ``ago``
    seconds before the end of this step. A packet is late if it arrives after the next departure
    (``lateness``), because its flow's RTT is longer or because its sender has waited. If the first
    of the two packets is not late, both arrive between the same two departures, and the second is
    lost. If it is late, both find room. But then the queue is full, and the next packet that is not
    late is lost (``first_on_time``). So if all packets of a flow with a longer RTT are late, this
    flow loses nothing in this way, and the other flows lose all. Comments in the function explain
    the exceptions.

    ``over`` is the number of packets in flight for which link and buffer have no room. It is a real
    number, below 1 if one packet is too many.

    Returns the flow, and the time in seconds from the arrival of the two packets to the loss.
    """
    flow, shortest = flows[grew], shortest_delay(flows)
    if flow.in_line:
        line_up(flows, grew, now, link.capacity, ago)
    late = lateness(flow, link, shortest)
    if late <= 0.0:
        return grew, 0.0
    # the random number from which ``in_a_row`` computes how many packets in a row are late
    exponential = -np.log(1.0 - draw(now))
    # In Linux each packet waits for a time of its own. So the second of the two packets may be late
    # although the first is not. The new random number then makes at least one packet late.
    if flow.in_line and in_a_row(late, exponential) == 0.0 and draw(now) < late:
        exponential = -np.log(late) - np.log(1.0 - draw(now))
    total = packets_in_flight(flows)
    which, ahead, passed, begins = first_on_time(flows, grew, now, link, total, exponential, ago)
    # If all packets of a round trip are late, the queue has room for one packet more.
    if which < 0:
        return (-1 if over < 1.0 else grew), 0.0
    # A flow that detects a loss stops sending for a while, which makes room.
    if passed >= link.capacity * (until_detection(flows, now) - now.step + ago):
        return -1, 0.0
    # A receiver that delays ACKs may hold back the last packet of the train of ``grew``. The queue
    # is then longer by one packet while the flow's next train passes
    # (``queue.hold_back_from_train``). If it is too long only then, other flows lose nothing.
    if which != grew and over <= flow.held_back:
        return -1, 0.0
    # The last packet of a train is late, and the first of the next train is not. So both arrive
    # between the same two departures, and the later one is lost.
    if begins and arrives_later(flows[ahead], flows[which], now, link, shortest):
        which = ahead
    return which, passed / link.capacity
