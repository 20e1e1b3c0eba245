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

    The wait of its sender is uniform on 0 .. ``max_wait``. The packet is late if the wait and
    ``after_departure`` add up to more than 1.
    """
    after = after_departure(flow, link, shortest)
    if after + WINDOW_ERROR >= 1.0:
        return 1.0
    return max(1.0 - (1.0 - after) / link.max_wait, 0.0) if link.max_wait > 0.0 else 0.0


@jit
def in_a_row(late: float, left: float) -> float:
    """How many packets in a row are late if each is late with the probability ``late``.

    k packets are all late with the probability ``late``^k. So if ``left`` is a random number with
    the standard exponential distribution, the result is a random number with the right
    distribution: the largest k with -k ln ``late`` <= ``left``.
    """
    if late >= 1.0:
        return np.inf
    packets: float = np.floor(left / -np.log(late)) if late > 0.0 else 0.0
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

    The packets are counted from two packets that one ACK to flow ``grew`` has released. These two
    arrive ``ago`` seconds before the end of this step. ``total`` is the number of packets in flight
    of all flows: after so many packets a flow's train begins again. Returns the flow, and how many
    packets of its train are still to come.
    """
    since = since_begin(flows[grew], now, ago)
    which, least = grew, np.inf
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and i != grew and flow.in_flight > 0.0:
            # how much of the flow's round trip is over since its train began
            begun = flow.place + since if flows[grew].in_line else flow.round_part
            place = (begun * total + passed) % total - flow.in_flight  # < 0: in its train
            if place < least:
                which, least = i, place
    return which, -least if least < 0.0 else flows[which].in_flight


@rare
def arrives_later(
    before: Sender, behind: Sender, now: LinkState, link: Bottleneck, shortest: float
) -> bool:
    """Draw whether the last packet of a train arrives later than the first of the next train.

    The last packet, of the flow ``before``, is late. The first packet of the flow ``behind`` is
    not. So both arrive between the same two departures. The last packet can be the later one only
    if its flow has the longer propagation delay.
    """
    a = after_departure(before, link, shortest)
    b = after_departure(behind, link, shortest)
    if a <= b:
        return False
    least = max(a, 1.0)  # it is late
    last = least + draw(now) * max(a + link.max_wait - least, 0.0)
    most = min(b + link.max_wait, 1.0)  # it is not late
    return last % 1.0 > b + draw(now) * (most - b)


@rare
def follower(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet while the packets of all flows stay in order; -1 if none does.

    The buffer is full, and one ACK to flow ``grew`` has released two packets. They arrive ``ago``
    seconds before the end of this step. If no packet is late, they arrive between the same two
    departures, and the second is lost.

    If the first of the two packets is late, both find room. But then the queue is full, and the
    next packet that is not late is lost. Packets arrive in this order: first those of ``grew`` that
    come later in this round trip, then those of the other flows, one flow after another. A packet
    of each flow is late with the probability ``lateness``. If this probability is the same for all
    flows, the number of late packets before the loss has a geometric distribution. If it is 1 for a
    flow whose RTT is longer, this flow loses nothing in this way, and the other flows lose all.

    There are six further rules:

    - All packets of a round trip may be late. The queue then has room for one packet more. So
      nothing is lost if there is only one packet too many. If there are more, ``grew`` loses its
      second packet. ``over`` is the number of packets in flight for which link and buffer have no
      room. It is a real number, below 1 if one packet is too many.
    - If the first packet of a train is not late, but the last packet of the train ahead is, the two
      arrive between the same two departures. The later one is lost (``arrives_later``).
    - A receiver that delays its ACKs acknowledges two packets at once, so packets are late in
      pairs.
    - Such a receiver may hold back the last packet of a flow's train (the flow's packets in flight,
      one behind the other). The queue is then longer by one packet while the flow's next train
      passes (``queue.hold_back_from_train``). If the queue is too long only at that time, other
      flows lose nothing.
    - A flow that detects a loss stops sending for a while, which makes room. So nothing is lost if
      a flow detects an earlier loss before the first packet that is not late arrives.
    - In Linux each packet waits for a time of its own. So the second of the two packets may be late
      although the first is not. The order in which the flows' trains arrive tells which packets
      follow (``line.py``).

    Returns the flow, and the time in seconds from the arrival of the two packets to the loss.
    """
    flow, shortest = flows[grew], shortest_delay(flows)
    if flow.in_line:
        line_up(flows, grew, now, link.capacity, ago)
    late = lateness(flow, link, shortest)
    if late <= 0.0:
        return grew, 0.0
    total, until = 0.0, np.inf  # packets in flight; seconds until a flow detects an earlier loss
    for i in range(len(flows)):
        if flows[i].active:
            total += flows[i].in_flight
            if flows[i].detection_in > 0.0:
                until = min(until, flows[i].detection_in * (flows[i].rtt + now.delay))
    left = -np.log(1.0 - draw(now))  # ``in_a_row``, for all packets up to the loss
    if flow.in_line and in_a_row(late, left) == 0.0 and draw(now) < late:
        left = -np.log(late) - np.log(1.0 - draw(now))
    behind = max(flow.spare_acks, 0.0)
    known = flow.in_train and (flow.grows_by_acks or flow.once_a_round or flow.in_line)
    if not known:  # the window grows at a random ACK of the train
        behind = flow.in_flight * draw(now)
    which, ahead, passed = grew, grew, 0.0
    run = in_a_row(late, left) * flow.acked_at_once
    while run > behind:  # the rest of this train is late
        left += np.log(late) * behind / flow.acked_at_once
        passed += behind
        if passed > total:
            return (-1 if over < 1.0 else grew), 0.0
        ahead = which
        which, behind = next_train(flows, grew, now, passed, total, ago)
        behind = max(behind, 1.0)
        late = lateness(flows[which], link, shortest)
        run = in_a_row(late, left) * flow.acked_at_once
    passed += run
    if passed >= link.capacity * (until - now.step + ago):
        return -1, 0.0
    if which != grew and over <= flow.held_back:
        return -1, 0.0
    if run == 0.0 and arrives_later(flows[ahead], flows[which], now, link, shortest):
        which = ahead
    return which, passed / link.capacity
