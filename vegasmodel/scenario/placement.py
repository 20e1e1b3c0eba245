"""Divides a flow's propagation delay among its links; finds the flow's TCP implementation.

A data packet crosses an access link at the sender, the scenario's links on the flow's path, and an
access link at the receiver. The ACK takes the same way back. So a round trip crosses access links
four times.

The field ``rtt`` of a flow is its round-trip time with empty queues. It consists of:

- the transmission times of the packet and the ACK on all links,
- the propagation delays of the scenario's links in both directions,
- the propagation delays of the four crossings of access links.

The first two parts are known. What remains of ``rtt`` is the last part. Each of the four crossings
gets a quarter of it.

Some TCP implementations add headers to the packet. The time to transmit these headers is not in
``rtt``; ``empty_rtt`` adds it.

In the functions below, a group is an entry of ``scenario.flows``: one or more flows with the same
settings. A member is a single flow of a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vegasmodel import stacks
from vegasmodel.fields.lists import few
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Link, Member, RateDelay, Scenario
from vegasmodel.stacks import Stack

# Mean waits of ACKs in queues, in transmission times of a data packet. ``rounds`` can simulate the
# queue of ACKs, and does so if they wait for longer than ``SHORT_WAIT``. The other models neglect
# waits up to ``NOTABLE_WAIT``; to Vegas such a wait is like a tenth of a queued packet.
SHORT_WAIT = 0.01
NOTABLE_WAIT = 0.1


def implementation(scenario: Scenario, group: Flow) -> str:
    """The name of the TCP implementation that the flows of ``group`` run, such as "linux"."""
    return stacks.running(group.law, group.variant, (other.variant for other in scenario.flows))


def stack(scenario: Scenario, group: Flow) -> Stack:
    """The properties of the TCP implementation that the flows of ``group`` run.

    The properties of ns-2 depend on the set of defaults that the scenario names
    (``run.ns2_defaults``).
    """
    return stacks.find(implementation(scenario, group), scenario.run.ns2_defaults)


def first_window(scenario: Scenario, group: Flow) -> float:
    """The number of packets that a flow of ``group`` sends in its first round trip."""
    return float(group.initial_window or stack(scenario, group).first_window)


def link_stack(scenario: Scenario) -> Stack:
    """The TCP implementation whose rules the scenario's links follow: ns-2 or ``paper``.

    In ns-2, for example, the limit of a buffer also counts the packet in transmission; with the
    variant ``paper`` it does not. The result has these rules as a ``Stack``.
    """
    return stacks.of_links(
        (group.law for group in scenario.flows),
        (group.variant for group in scenario.flows),
        (implementation(scenario, group) for group in scenario.flows),
    )


def with_crossed_link(scenario: Scenario) -> Scenario:
    """If all flows cross the same single link, the scenario without its other links.

    A model of one link can then be used. Otherwise the result is the scenario itself.
    """
    crossed = scenario.crossed
    if len(crossed) != 1 or len(scenario.links) == 1:
        return scenario
    return replace(scenario, links=crossed)


def shut_links(scenario: Scenario) -> list[str]:
    """The names of the links that drop every packet, because their buffers are too small for ns-2.

    ns-2 drops a packet that would bring a drop-tail queue to its limit, even if the link is idle.
    So a drop-tail queue with a limit below 2 packets drops every packet.  A RED queue does so only
    if its limit is below 1 packet.
    """
    if not link_stack(scenario).limit_counts:
        return []
    tight = (link for link in scenario.crossed if min(link.limits) < 1 + link.queue.limit_counts)
    return [link.name for link in tight]


def queue_of(link: Link, group: Flow) -> str:
    """The name of the queue at a link that the data packets of the flows of ``group`` join.

    At a link with Rate-Delay services it is "rate" or "delay". Any other link has one queue, named
    "".
    """
    return group.service if group.service in link.queue.services else ""


def room(scenario: Scenario, link: Link, direction: str) -> float:
    """How many packets can wait at a link for transmission in ``direction``.

    A link with Rate-Delay services has two queues, each with a limit of its own. The result is then
    the sum over the queues that some flow of the scenario joins.
    """
    rules = link_stack(scenario)
    queues = {
        queue_of(link, group)
        for group in scenario.flows
        if group.direction == direction and link in scenario.path(group)
    }
    return sum(link.room(rules, queue) for queue in queues)


def _slow_for_acks(scenario: Scenario, link: Link, direction: str) -> bool:
    """Whether ACKs may reach a link faster than it can send them.

    These are the ACKs of data that cross the link in ``direction``; the ACKs cross it in the
    opposite direction. Data arrive at most at the rate of the slowest link of their path. A
    receiver that delays ACKs sends one for two packets.
    """
    for group in scenario.flows:
        path = scenario.path(group)
        if group.direction != direction or link not in path:
            continue
        slowest = min(each.capacity for each in path)
        data_per_ack = scenario.size_of(group) * (2.0 if group.delayed_ack else 1.0)  # bytes
        if slowest * scenario.ack_size > link.capacity * data_per_ack:
            return True
    return False


def links_where_acks_wait(
    scenario: Scenario, neglected: float = SHORT_WAIT
) -> list[tuple[Link, str]]:
    """The links at which ACKs may wait so long that it matters, as pairs (link, direction).

    The direction is that of the data that these ACKs acknowledge.  ACKs wait if they may
    reach the link faster than it can send them (``_slow_for_acks``), or if large ACKs of different
    flows meet there (``_large_acks_meet``).  A wait of the second kind counts only if its mean is
    above ``neglected``, which counts transmission times of a data packet.
    """
    ways = ("forward", "reverse")
    pairs = [(link, way) for link in scenario.links for way in ways]
    return [
        pair
        for pair in pairs
        if _slow_for_acks(scenario, *pair) or _large_acks_meet(scenario, *pair, neglected)
    ]


def _large_acks_meet(scenario: Scenario, link: Link, direction: str, neglected: float) -> bool:
    """Whether large ACKs of different flows meet at a link, so that some of them have to wait.

    These are the ACKs of data that cross the link in ``direction``.  The data packets leave the
    link one after another.  If all these flows have the same path and the same delay from the link
    to the receiver and back, their ACKs return one after another, too, and none waits.  Otherwise
    ACKs of different flows may return at the same time.

    Let an ACK take the fraction r of a data packet's transmission time.  If data packets keep the
    link busy, and there is an ACK for each packet, the ACKs occupy the link's opposite direction
    for the fraction r of the time.  An ACK that arrives at a random time finds this direction
    occupied with probability r, and then waits for half an ACK's transmission time on average.  So
    its mean wait is r^2/2 transmission times of a data packet.  With n ACKs for each packet, it is
    n r^2/2.  ACKs are large if this is above ``neglected``.
    """
    members = [m for m in scenario.members if m.flow.direction == direction]
    members = [m for m in members if link in scenario.path(m.flow)]
    # for each flow its path, and the delay of its access link at the receiver, one way, in s
    returns = set()
    for member in members:
        # with random delays, all the access delay lies before the first link
        leg = 0.0 if member.flow.delay_noise > 0.0 else access_leg(scenario, member)
        returns.add((*(each.name for each in scenario.path(member.flow)), round(leg, 12)))
    if len(returns) < 2:
        return False
    occupied = [scenario.ack_size / scenario.size_of(m.flow) for m in members]
    sent = [0.5 if m.flow.delayed_ack else 1.0 for m in members]  # ACKs for each packet
    return max(0.5 * r * r * n for r, n in zip(occupied, sent, strict=True)) > neglected


def left_out_of_laws(scenario: Scenario, *, counted: bool = False) -> str:
    """A text that says where flows differ from the formulas of their laws; empty if none does.

    A law is a congestion control. For example, Linux's CUBIC ends slow start by HyStart, and the
    law ``cubic`` does not. Another difference is a flow's factor ``decrease`` at a loss, if the
    law's formulas assume another factor.

    Some TCP implementations have a CUBIC of their own. ``counted`` is true if the caller's
    simulator has this CUBIC, too. Then the text does not mention the flows that run it.
    """
    texts = (
        law.left_out(implementation(scenario, group), float(group.decrease))
        for group, law in ((group, find(group.law)) for group in scenario.flows)
        if law.left_out is not None
        and not (counted and law.is_cubic and stack(scenario, group).bictcp)
    )
    return "; ".join(sorted(set(texts) - {""}))


def access_ratio(scenario: Scenario, group: Flow) -> float:
    """The rate of a flow's access links, divided by that of the slowest link of its path."""
    return scenario.access_rate(group) / min(link.capacity for link in scenario.path(group))


def left_out_access(scenario: Scenario) -> str:
    """A text for the prediction of a model without access links; empty if no access link is slow.

    An access link is slow if its rate is below twice that of the slowest link of the flow's path.
    It may then slow the flow, or space out its packets.
    """
    slow = [group for group in scenario.flows if access_ratio(scenario, group) < 2.0]
    names = [f"{group.name} ({scenario.access_rate(group):g} pkt/s)" for group in slow]
    text = "slow access links are left out, so a flow may get more than its own carries"
    return f"{text}: {few(names)}; the simulator rounds has them" if names else ""


def header(scenario: Scenario, group: Flow) -> float:
    """The bytes of headers that a flow's TCP implementation adds to the scenario's packet size.

    The result is 0 for some laws: ns-2's Vegas, for example, adds no headers.
    """
    tcp = stack(scenario, group)
    return 0.0 if group.law in tcp.own_packets else tcp.header


def work(scenario: Scenario, group: Flow) -> float:
    """The size of a data packet of ``group``, with headers, in units of ``Scenario.packet_size``.

    A link's capacity is in packets of ``Scenario.packet_size`` per second. So the packet's
    transmission time is this result divided by the capacity.
    """
    return (scenario.size_of(group) + header(scenario, group)) / scenario.packet_size


def forward_load(
    scenario: Scenario, delivered: Floats, seconds: float, *, headers: bool = True
) -> Floats:
    """The utilization of each link, [n_links]: the part of its capacity that forward flows use.

    ``delivered`` has the number of packets that each flow delivered in ``seconds``. Retransmitted
    packets do not count, and neither do ACKs. With ``headers``, the headers that the flows' TCP
    implementations add to the packets count, too.
    """
    used = np.zeros(len(scenario.links))
    index = {link.name: i for i, link in enumerate(scenario.links)}
    for member, packets in zip(scenario.members, delivered, strict=True):
        group = member.flow
        size = work(scenario, group) if headers else scenario.size_of(group) / scenario.packet_size
        if group.direction == "forward":
            for link in scenario.path(group):
                used[index[link.name]] += packets * size / seconds / link.capacity
    return used


def empty_rtt(scenario: Scenario, member: Member) -> float:
    """The flow's RTT if all queues are empty, s.

    This is the sum of the field ``rtt`` and the time to transmit the headers that the flow's TCP
    implementation adds to its packets.
    """
    group = member.flow
    headers = work(scenario, group) - scenario.size_of(group) / scenario.packet_size  # in packets
    rates = [link.capacity for link in scenario.path(group)] + [scenario.access_rate(group)] * 2
    return member.rtt + headers * math.fsum(1.0 / rate for rate in rates)


def held_by_receiver(scenario: Scenario, member: Member) -> float:
    """The mean number of packets whose ACK the receiver delays, if the window stays at its limit.

    The limit is ``max_window``, and the link is assumed not to be full. A receiver that delays ACKs
    acknowledges every second packet. If the window is odd, the ACK of its last packet waits for the
    first packet of the next window. This takes a round trip, but at most the time of the receiver's
    timer (``Stack.ack_pause``). A window of one packet waits for the timer each time. The result is
    0 if the window is even or has no limit, or if the receiver does not delay ACKs.
    """
    flow, pause = member.flow, stack(scenario, member.flow).ack_pause
    if not flow.delayed_ack or math.isinf(flow.max_window) or flow.max_window // 1 % 2 == 0:
        return 0.0
    if flow.max_window < 2.0:
        return pause / (member.rtt + pause)
    return min(1.0, pause / member.rtt)


def access_leg(scenario: Scenario, member: Member) -> float:
    """The propagation delay of one access link in one direction, s.

    A flow has an access link at the sender and one at the receiver.  A round trip crosses each of
    them in both directions, which makes four crossings with equal delays.
    """
    delays = 2.0 * math.fsum(link.delay for link in scenario.path(member.flow))
    return (member.rtt - scenario.transmission(member.flow) - delays) / 4.0


def to_first_link(scenario: Scenario, member: Member) -> float:
    """The time in s that a data packet takes from the sender to the first link.

    It is the propagation delay of the access link and the packet's transmission time on it.
    """
    group = member.flow
    return access_leg(scenario, member) + work(scenario, group) / scenario.access_rate(group)


def class_shares(scenario: Scenario, link: Link, way: str) -> Iterator[tuple[float, float]]:
    """Yield pairs: a time, s, and the rate class's share of a Rate-Delay link from that time on.

    A class's share is the part of the link's capacity that it is to get in the direction ``way``.
    The shares of the rate class and the delay class are in the ratio k n_R : n_D (equation (5) of
    Podlesny and Williamson).  n_R and n_D are the numbers of active flows in the rate class and in
    the delay class.  So a flow of the rate class gets k times the capacity of a flow of the delay
    class.  Short flows that arrive at random do not count.

    The shares change when a flow that counts starts or stops.  While a class has no such flow, no
    shares are set, because the other class may then use the whole link anyway.
    """
    if not isinstance(link.queue, RateDelay):
        return
    k = link.queue.k
    lasting = [
        member
        for member in scenario.members
        if member.flow.arrivals == "once"
        and member.flow.direction == way
        and link in scenario.path(member.flow)
    ]
    for time in sorted({t for member in lasting for t in (member.start, member.stop)}):
        active = [m.flow.service for m in lasting if m.start <= time < m.stop]
        n_rate, n_delay = active.count("rate"), active.count("delay")
        if n_rate and n_delay:
            yield time, k * n_rate / (k * n_rate + n_delay)


def bytes_per_turn(scenario: Scenario, link: Link, way: str) -> int:
    """How many bytes a class with half of a Rate-Delay link's capacity sends per turn in ns-2.

    In ns-2 the two classes send in turn (weighted round robin).  If this number is b, a class with
    the share s of the capacity may send 2 s b bytes in each of its turns.  The shares are exact if
    each class may send at least one packet (the scenario's largest) per turn.  The result is the
    smallest whole number b for which this is always so.

    A larger number has a drawback.  If a class may send more bytes per turn than its buffer holds,
    it runs out of packets and does not use its share.
    """
    largest = max(scenario.size_of(group) for group in scenario.flows)
    shares = [part for _, part in class_shares(scenario, link, way)]
    least_share = min((min(part, 1.0 - part) for part in shares), default=0.5)
    return math.ceil(largest / (2.0 * least_share))
