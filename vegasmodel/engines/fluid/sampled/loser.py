"""Decides whose packet is lost when a flow sends one packet more than the buffer can take.

This packet may itself get the last free place in the buffer. Then a packet that arrives later is
lost, and this later packet may belong to another flow.

In the functions, ``now`` is the link's present state, and ``link`` has its constants, such as the
capacity.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import draw, victim
from vegasmodel.engines.fluid.sampled.line import line_up, since_begin
from vegasmodel.engines.fluid.sampled.records import WINDOW_ERROR, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare

LONGEST = 1.0 / 3.0  # part of the time in which the queue has its greatest length (``loser``)
TRIES = 64  # pairs of packets that ``loser`` draws at most, to find two that meet


@jit
def arrival(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """Time from a packet's departure to the arrival of the packet that its ACK releases.

    Both events are at the queue. The time is the flow's propagation delay plus a random wait of the
    sender. It is divided by the transmission time of a packet at the link. Packets depart one
    transmission time apart. So the fractional part is the time from the latest departure to the
    arrival. It shows which of two packets arrives later (``later``).
    """
    return (flow.rtt - flow.wait) * link.capacity + link.max_wait * draw(now)


@jit
def late_packets(late: float, now: LinkState) -> float:
    """Draw at random how many packets in a row are late (``follower``).

    A packet is late if its sender's random wait delays it until after a departure from the queue.
    ``late`` is the probability of this.
    """
    packets: float = np.floor(np.log(1.0 - draw(now)) / np.log(late))
    return packets


@jit
def next_train(
    flows: Table[Sender], grew: int, now: LinkState, passed: float, total: float, ago: float
) -> int:
    """Find the flow whose train is at the queue when ``passed`` more packets have arrived.

    A train is the packets in flight of one flow, which follow one another. The packets are counted
    from two packets that one ACK to flow ``grew`` has released. These two arrive ``ago`` seconds
    before the end of this step. ``total`` is the number of packets in flight of all flows: after so
    many packets a flow's train begins again.
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
    return which


@jit
def lateness(flow: Sender, link: Bottleneck) -> float:
    """The probability that a packet is late, because of its sender's random wait (``follower``).

    A packet is late if it would arrive before a certain departure from the queue without the wait,
    but arrives after it. If no packet can be late, the result is 0 or below.
    """
    if link.max_wait == 0.0:
        return 0.0
    # transmission times from a departure to the arrival of a packet whose sender does not wait
    after = (flow.rtt - flow.wait) * link.capacity + WINDOW_ERROR
    after = max(after % 1.0 - WINDOW_ERROR, 0.0)
    # the wait is uniform on 0 .. ``max_wait``; the packet is late if the sum of the two exceeds 1
    return (after + link.max_wait - 1.0) / link.max_wait


@jit
def late_acks(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """Draw at random how many ACKs in a row release late packets (``follower``).

    A packet is late if its sender's random wait delays it until after a departure from the queue.
    """
    late = lateness(flow, link)
    return late_packets(late, now) if late > 0.0 else 0.0


@rare
def follower(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet if all RTTs are equal; -1 if none does.

    The buffer is full, and one ACK to flow ``grew`` has released two packets. They arrive ``ago``
    seconds before the end of this step. Each departure from the queue makes room for one packet.
    If senders do not wait at random, each packet arrives equally long after a departure
    (``arrival``). So the two packets arrive between the same two departures, and the second is
    lost.

    If senders wait at random, a packet may be late: its sender's wait delays it until after the
    next departure. The probability of this is ``late``. If the first of the two packets is late,
    both find room. But then the queue is full, and the next packet that is not late is lost. The
    number of late packets before it has a geometric distribution. Packets arrive in this order:
    first those of ``grew`` that come later in this round trip, then those of the other flows, one
    flow after another.

    There are five further rules:

    - All packets of a round trip may be late, if ``late`` is close to 1. The queue then has room
      for one packet more. So nothing is lost if there is only one packet too many. If there are
      more, ``grew`` loses its second packet. ``over`` is the number of packets in flight for which
      link and buffer have no room. It is a real number, below 1 if one packet is too many.
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
    flow = flows[grew]
    if flow.in_line:
        line_up(flows, grew, now, link.capacity, ago)
    late = lateness(flow, link)
    if late <= 0.0:
        return grew, 0.0
    total, until = 0.0, np.inf  # packets in flight; seconds until a flow detects an earlier loss
    for i in range(len(flows)):
        if flows[i].active:
            total += flows[i].in_flight
            if flows[i].detection_in > 0.0:
                until = min(until, flows[i].detection_in * (flows[i].rtt + now.delay))
    passed = late_packets(late, now) * flow.acked_at_once
    if flow.in_line and passed == 0.0 and draw(now) < late:
        passed = 1.0 + late_packets(late, now)
    if passed > total:
        return (-1 if over < 1.0 else grew), 0.0
    if passed >= link.capacity * (until - now.step + ago):
        return -1, 0.0
    behind = max(flow.spare_acks, 0.0)
    known = flow.grows_by_acks or flow.once_a_round or flow.in_line
    if not known:  # the window grows at a random ACK of the train
        behind = flow.in_flight * draw(now)
    if passed <= behind:
        return grew, passed / link.capacity
    if over <= flow.held_back:
        return -1, 0.0
    which = next_train(flows, grew, now, passed, total, ago)
    return which, passed / link.capacity


@jit
def mixing(a: Sender, b: Sender, link: Bottleneck) -> float:
    """How well the packets of two flows with different RTTs are mixed: 0 (not at all) to 1.

    Let the RTTs differ by d transmission times. Suppose that two packets, one of each flow, depart
    from the queue d transmission times apart. Then the packets that their ACKs release may arrive
    at the queue together. The number of such pairs per round trip depends on the order of packets:

    - If packets depart in random order, it is p_a p_b N. Here N packets depart per round trip, and
      p_a and p_b are the flows' shares of them.
    - If each flow's packets depart as one train, it is at most d. Packets of both flows depart
      close together only where one train follows the other, once per round trip. There at most d
      pairs are d transmission times apart.

    The result is the second number divided by the first, d / (p_a p_b N), but at most 1. The RTTs
    are those with a full buffer. The function ``loser`` takes the result as a probability: that
    packets meet as often as in random order.
    """
    c, room = link.capacity, link.room
    trip = 0.5 * (a.rtt + b.rtt) * c + room  # N
    p_a = max(a.in_flight - a.undetected, 1.0) / (a.rtt * c + room)
    p_b = max(b.in_flight - b.undetected, 1.0) / (b.rtt * c + room)
    return min(abs(a.rtt - b.rtt) * c / (p_a * p_b * trip), 1.0)


@jit
def sway(flow: Sender, other: Sender, now: LinkState) -> float:
    """How much the queue varies for the packets of ``flow`` because of the packets of ``other``.

    The packets of the two flows depart from the queue in varying order. Their ACKs release new
    packets, which arrive after different RTTs. So the number of packets that wait varies. Its
    variance grows with the rate of ``other``, and with the difference of the two RTTs. The result
    is the product of this rate and this difference. ``neighbour`` draws a flow with these products
    as weights.
    """
    rate = (other.in_flight - other.undetected) / (other.rtt + now.delay)
    return max(rate, 0.0) * abs(other.rtt - flow.rtt)


@rare
def neighbour(flows: Table[Sender], grew: int, now: LinkState) -> int:
    """A flow, drawn at random, whose RTT differs from that of flow ``grew``.

    The probability of a flow is proportional to how much its packets make the queue vary for flow
    ``grew`` (``sway``). The result is -1 if no flow with another RTT has packets in flight.
    """
    total, last = 0.0, -1  # ``last``: the result if rounding errors leave a remainder
    for j in range(len(flows)):
        if flows[j].active:
            total += sway(flows[grew], flows[j], now)
    left = draw(now) * total
    for j in range(len(flows)):
        moves = sway(flows[grew], flows[j], now) if flows[j].active else 0.0
        if moves > 0.0:
            last = j
            left -= moves
            if left <= 0.0:
                return j
    return last


@jit
def later(flows: Table[Sender], i: int, j: int, now: LinkState, link: Bottleneck) -> int:
    """Which of two flows' packets arrives later, if both arrive between the same two departures."""
    a, b = arrival(flows[i], now, link), arrival(flows[j], now, link)
    return i if a % 1.0 > b % 1.0 else j


@rare
def loser(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet because flow ``grew`` has sent one too many for a full buffer.

    Returns this flow, and how many seconds after the arrival of the additional packet the loss
    occurs. The flow is -1 if there is room after all. ``follower`` explains when this is so, and
    what ``over`` and ``ago`` mean.

    Each departure from the queue makes room for one packet. If two packets meet, that is, arrive
    between the same two departures, the later one is lost (Floyd and Jacobson 1992, on phase
    effects).

    - If one ACK to flow ``grew`` released both packets, ``grew`` loses the second one.
    - If two ACKs released the packets, the function draws two packets at random, and the later one
      is lost.

    If all RTTs are equal, packets released by different ACKs arrive about one transmission time
    apart, so they do not meet. The function ``follower`` then finds the flow. If RTTs differ, a
    random draw decides whether one ACK or two ACKs released the two packets that meet:

    - Suppose that there are two different RTTs, and that the packets are well mixed (``mixing``).
      Packets with the longer and with the shorter RTT then depart from the queue in a nearly
      regular order. Let d be the difference of the RTTs in transmission times of a packet, and K
      the number of packets with the longer RTT among d departures. The length of the queue varies
      only with K. In a regular order K is at most one above or below its mean. So the queue takes
      three lengths, which are assumed to be equally frequent. If the queue has the longest of them,
      ``grew`` loses its second packet. Otherwise this packet finds room, and the queue is longer by
      one packet from then on. The buffer overflows later: when the queue is longest, and packets
      that two ACKs have released meet.
    - Otherwise the queue takes many lengths. Let g be the number of packets per second by which the
      windows grow, and m the number of meetings of two flows' packets per second. Then one ACK
      released both packets with the probability g/(g + m), and two ACKs did with m/(g + m).

    If two RTTs differ little, the packets of each of the two flows depart as a train, and the
    trains mix slowly (``mixing``). Let flow L have the longer and flow S the shorter RTT. L's
    packets return d transmission times later than S's. So where S's train follows L's, the end of
    L's train and the beginning of S's arrive together, and the queue grows by up to d packets. It
    keeps this length while the rest of S's train arrives. Where L's train follows S's, there is a
    gap, in which the queue gets shorter again. So with the probability 1 - ``mixing`` the buffer
    overflows where the queue is longest:

    - If S sends an additional packet, S loses this packet.
    - If L sends an additional packet, the queue is longer from then on. The buffer overflows when
      the queue has just reached its greatest length. At that time packets of both flows arrive, and
      the later one is lost.
    """
    # ``alike`` says whether all flows have the same RTT, and ``two`` whether there are at most two
    # different RTTs. ``other`` is an RTT that differs from that of flow ``grew``. ``growth`` is the
    # sum of the windows' growth in packets per second.
    alike, two, other, growth = True, True, 0.0, 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.rtt != flows[grew].rtt:
            two = two and (alike or flow.rtt == other)
            alike, other = False, flow.rtt
        if flow.active:
            growth += max(flow.growth, 0.0)
    if alike:
        return follower(flows, grew, now, link, over, ago)
    near = neighbour(flows, grew, now)
    mixed = mixing(flows[grew], flows[near], link) if near >= 0 else 1.0
    if draw(now) > mixed:
        first = flows[grew].rtt < flows[near].rtt
        return (grew if first else later(flows, grew, near, now, link)), 0.0
    regular = two and mixed >= 1.0
    if regular and draw(now) < LONGEST:
        return grew, 0.0
    meetings = 0.5 * link.capacity  # how often two packets meet, per second
    for _ in range(TRIES):
        if not regular and draw(now) * (meetings + growth) >= meetings:
            return grew, 0.0
        i, j = victim(flows, now), victim(flows, now)
        if flows[i].rtt != flows[j].rtt:
            if draw(now) < mixing(flows[i], flows[j], link):
                return later(flows, i, j, now, link), 0.0
            continue
        a, b = arrival(flows[i], now, link), arrival(flows[j], now, link)
        if np.floor(a) != np.floor(b):
            return (i if a % 1.0 > b % 1.0 else j), 0.0
    return grew, 0.0
