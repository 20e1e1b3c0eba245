"""Decides whose packet is lost after a window has grown so far that the buffer overflows.

When a flow's window grows, the flow sends one packet in addition to those that its ACKs release. If
the buffer has no room for so many packets, one of the packets that arrive about then is lost. It
need not be the additional packet. If this one finds a free place, a packet that comes later finds
none, and the later packet may belong to another flow.

In the functions, ``now`` holds what changes at the link, such as the queue and the state of the
random numbers (``LinkState``), and ``link`` its constants, such as the capacity (``Bottleneck``).
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import draw, victim
from vegasmodel.engines.fluid.sampled.follower import follower
from vegasmodel.engines.fluid.sampled.records import Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare

# Probability that the queue has the greatest of three equally frequent lengths. The queue has three
# lengths if packets of two RTTs are well mixed (``loser_of_mixed``).
LONGEST = 1.0 / 3.0
# ``loser_of_mixed`` draws at most so many pairs of packets, until it finds two that arrive between
# the same two departures from the queue.
TRIES = 64


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
    are those with a full buffer. The function ``loser`` uses the result as the probability that
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
    remaining = draw(now) * total
    for j in range(len(flows)):
        weight = sway(flows[grew], flows[j], now) if flows[j].active else 0.0
        if weight > 0.0:
            last = j
            remaining -= weight
            if remaining <= 0.0:
                return j
    return last


@jit
def differ(a: float, b: float, now: LinkState, link: Bottleneck) -> bool:
    """Draw whether two RTTs, in seconds, differ so much that packets do not keep their order.

    Let two packets of these RTTs depart one after the other, the one with the longer RTT first. The
    packets that their ACKs release then arrive closer together, by the difference of the RTTs. If
    the difference is at least one transmission time, they may arrive in the other order, so the
    result is True. If it is a part d of a transmission time, it is True with the probability d.
    """
    difference = abs(a - b) * link.capacity  # in transmission times
    return difference >= 1.0 or (difference > 0.0 and draw(now) < difference)


@jit
def later(flows: Table[Sender], i: int, j: int, now: LinkState, link: Bottleneck) -> int:
    """Which of two flows' packets arrives later, if both arrive between the same two departures."""
    a, b = arrival(flows[i], now, link), arrival(flows[j], now, link)
    return i if a % 1.0 > b % 1.0 else j


@jit
def count_rtts(flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck) -> int:
    """Count the different RTTs of the active flows: 1, 2, or 3 for more than two.

    The count begins with the RTT of flow ``grew``, whose window has grown. RTTs that differ by less
    than a transmission time may count as one (``differ`` draws whether).
    """
    count, other = 1, 0.0  # ``other``: the latest RTT that differs from that of flow ``grew``
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.rtt != flows[grew].rtt:
            if count == 1:
                count = 2
            elif count == 2 and differ(flow.rtt, other, now, link):
                count = 3
            other = flow.rtt
    return count


@jit
def growth_of_all(flows: Table[Sender]) -> float:
    """The sum of the growth of all windows that grow, in packets per second."""
    growth = 0.0
    for i in range(len(flows)):
        if flows[i].active:
            growth += max(flows[i].growth, 0.0)
    return growth


@rare
def loser_of_trains(
    flows: Table[Sender], grew: int, near: int, now: LinkState, link: Bottleneck, over: float,
    ago: float,
) -> tuple[int, float]:  # fmt: skip
    """The result of ``loser`` if the packets of flows ``grew`` and ``near`` form separate trains.

    Let flow L have the longer and flow S the shorter RTT, with a difference of d transmission
    times. L's packets return d transmission times later than S's. So where S's train follows L's,
    the end of L's train and the beginning of S's arrive together, and the queue grows by up to d
    packets. It keeps this length while the rest of S's train arrives. Where L's train follows S's,
    there is a gap, in which the queue gets shorter again. The buffer overflows where the queue is
    longest:

    - If S sends an additional packet, S loses this packet, or another one soon after.
    - If L sends an additional packet, the queue is longer from then on. It is longest when packets
      of both flows arrive, and the later one is then lost.

    ``follower`` finds this flow, because it knows that L's packets arrive d transmission times
    later. It assumes that the packets of a train keep their order. In Linux they do not, because
    each packet waits for a time of its own. There the two cases are applied directly.

    ``over`` is the number of packets in flight for which link and buffer have no room. The
    additional packet arrived ``ago`` seconds before the end of this step.
    """
    if flows[grew].in_train or not flows[grew].whole_window:  # in order; or not Linux
        return follower(flows, grew, now, link, over, ago)
    shorter = flows[grew].rtt < flows[near].rtt
    return (grew if shorter else later(flows, grew, near, now, link)), 0.0


@rare
def loser_of_mixed(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, regular: bool
) -> int:
    """The flow that loses a packet if packets of different RTTs are well mixed.

    A random draw decides whether one ACK or two ACKs released the two packets that meet:

    - ``regular``: there are two RTTs. Packets with the longer and with the shorter RTT then depart
      from the queue in a nearly regular order. Let d be the difference of the RTTs in transmission
      times, and K the number of packets with the longer RTT among d departures. The length of the
      queue varies only with K, which is at most one above or below its mean. So the queue has three
      lengths, which are assumed to be equally frequent. If it has the longest, ``grew`` loses its
      second packet. Otherwise this packet finds room, and the queue is longer by one packet from
      then on. The buffer overflows later, when packets that two ACKs have released meet.
    - Otherwise the queue has many lengths. Let g be the number of packets per second by which the
      windows grow, and m the number of meetings of two flows' packets per second. One ACK released
      both packets with the probability g/(g + m), and two ACKs did with m/(g + m).

    If two ACKs released them, the function draws pairs of packets until two of them meet. The later
    packet of this pair is lost.
    """
    if regular and draw(now) < LONGEST:
        return grew
    growth = growth_of_all(flows)  # g
    # m: if packets arrive at random, one per transmission time, this gives half a pair on average
    meetings = 0.5 * link.capacity
    for _ in range(TRIES):
        if not regular and draw(now) * (meetings + growth) >= meetings:
            return grew  # one ACK released both packets
        i, j = victim(flows, now), victim(flows, now)  # the flows of two random packets
        # Two packets of different RTTs meet with a probability (``mixing``). Two packets of equal
        # RTTs meet if they arrive between the same two departures from the queue. They have left
        # the queue at different times. So if they meet, the whole parts of ``a`` and ``b`` differ.
        if differ(flows[i].rtt, flows[j].rtt, now, link):
            if draw(now) < mixing(flows[i], flows[j], link):
                return later(flows, i, j, now, link)
            continue
        a, b = arrival(flows[i], now, link), arrival(flows[j], now, link)
        if np.floor(a) != np.floor(b):
            return i if a % 1.0 > b % 1.0 else j
    return grew


@rare
def loser(
    flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck, over: float, ago: float
) -> tuple[int, float]:
    """The flow that loses a packet because flow ``grew`` has sent one too many for a full buffer.

    Each departure from the queue makes room for one packet. If two packets meet, that is, arrive
    between the same two departures, the later one is lost (Floyd and Jacobson 1992, on phase
    effects). Which packets can meet depends on the RTTs:

    - All RTTs are equal. Packets released by different ACKs then arrive about one transmission time
      apart, so they do not meet. All packets keep their order (``follower``).
    - Two RTTs differ little. The packets of each flow depart as a train, and the trains mix slowly
      (``loser_of_trains``). The probability of this case is 1 - ``mixing``. So the losses of a flow
      do not jump if RTTs that are equal begin to differ.
    - Otherwise packets of different flows are well mixed (``loser_of_mixed``).

    Returns the flow, and how many seconds after the arrival of the additional packet the loss
    occurs. The flow is -1 if there is room after all. ``follower.follower`` explains when this is
    so, and what ``over`` and ``ago`` mean.
    """
    rtts = count_rtts(flows, grew, now, link)
    if rtts == 1:
        return follower(flows, grew, now, link, over, ago)
    near = neighbour(flows, grew, now)
    mixed = mixing(flows[grew], flows[near], link) if near >= 0 else 1.0
    if draw(now) > mixed:
        return loser_of_trains(flows, grew, near, now, link, over, ago)
    return loser_of_mixed(flows, grew, now, link, rtts == 2 and mixed >= 1.0), 0.0
