"""Decides at which links a queue for ACKs alone is needed.

If only ACKs cross a link in one direction, the simulated link usually delays them by a constant
time. In three cases it has a queue for the ACKs instead:

- ACKs may arrive faster than the link sends them.
- ACKs are large, and ACKs of different flows may arrive at the same time. Some of them then have to
  wait.
- The links of the scenario behave as in ns-2, and ACKs of two flows often arrive at the link at the
  same time. The order in which the ACKs leave then matters, even if they are small.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.classes import Key
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.placement import link_stack, links_where_acks_wait, work

# packets: up to this bandwidth-delay product plus buffer, it matters which packet comes first
FEW_PACKETS = 256


def opposite(direction: str) -> str:
    """The opposite of a link's direction: "reverse" for "forward", and "forward" for "reverse"."""
    return "reverse" if direction == "forward" else "forward"


def ack_queues(scenario: Scenario, queues: dict[Key, int]) -> list[Key]:
    """The keys (link, direction, class) of all queues that are simulated only for ACKs.

    A link has such a queue if ACKs may wait there for long (``links_where_acks_wait``), or if ACKs
    of two flows often arrive there at the same time (``_meetings``). At other links ACKs are
    only delayed by a constant time. ``queues`` has the keys of the queues that data packets cross.
    The class in a key distinguishes the queues of one link; it is "" for a queue that ACKs have
    alone.
    """
    # links and directions whose queue the ACKs share with data packets
    data = {(name, direction) for name, direction, _ in queues}
    slow = [  # the ACKs of data packets go the opposite way
        (link.name, opposite(direction), "")
        for link, direction in links_where_acks_wait(scenario)
        if (link.name, opposite(direction)) not in data
    ]
    return list(dict.fromkeys([*slow, *_meetings(scenario, queues)]))


def _meetings(scenario: Scenario, queues: dict[Key, int]) -> list[Key]:
    """The keys of the queues for ACKs at links where ACKs often meet.

    ACKs of two flows meet if they arrive at a link at the same time. One of them then has to wait
    in a queue. The result is empty if every sender waits a random time before it sends, because
    ACKs then seldom meet. It is also empty if the links of the scenario do not behave as in ns-2.

    If data packets cross only one queue, ``_acks_meet`` decides. In a network of several links, the
    times at which packets leave a link shift whenever another link has been idle. So the ACKs of
    any two flows may meet. To save time, a link of such a network gets a queue for ACKs only if its
    bandwidth-delay product plus its buffer is at most ``FEW_PACKETS`` packets. This product is the
    capacity times the longest RTT of the flows on the link.
    """
    if not link_stack(scenario).scheduled_ties:
        return []
    if all(scenario.jitter(group) > 0 for group in scenario.flows):
        return []  # because of the waits, ACKs do not meet often
    if len(queues) == 1:
        ((name, direction, _),) = queues
        meet = direction == "forward" and _acks_meet(scenario, name)
        return [(name, "reverse", "")] if meet else []
    found = []
    for link in scenario.links:
        key = (link.name, "reverse", "")
        users = [m for m in scenario.members if link in scenario.path(m.flow)]
        directions = {direction for name, direction, _ in queues if name == link.name}
        if directions != {"forward"} or len(users) < 2:  # data go both ways, or ACKs cannot meet
            continue
        pipe = link.capacity * max(member.rtt for member in users)
        if pipe + link.buffer <= FEW_PACKETS:
            found.append(key)
    return found


def _acks_meet(scenario: Scenario, name: str) -> bool:
    """Whether ACKs of two flows often meet at a link on the way back, so that one has to wait.

    The link ``name`` has the only queue that data packets cross. The wait of an ACK is short, but
    it decides whose next packet reaches the bottleneck first. Only ACKs of flows with different
    RTTs are considered. The result is True in two cases:

    - All packets have the same size, and the halves of the RTTs of two flows, modulo the
      transmission time of a data packet, differ by less than the transmission time of an ACK. Then
      the ACKs of these flows meet: while the link is busy, packets leave it one transmission time
      apart, and their ACKs return to it half an RTT later.
    - The buffer is smaller than the bandwidth-delay product (of the longest RTT), so that the link
      is sometimes idle. After each idle time, packets leave at other times than before, so the
      ACKs of any two flows may meet. To save time, this case counts only if the bandwidth-delay
      product plus the buffer is at most ``FEW_PACKETS`` packets.
    """
    link = next(link for link in scenario.links if link.name == name)
    ack = scenario.ack_size / scenario.packet_size
    # halves of the RTTs, in transmission times
    halves = np.unique([member.rtt / 2.0 * link.capacity for member in scenario.members])
    pipe = 2.0 * halves[-1]
    if len(halves) > 1 and link.buffer < pipe and pipe + link.buffer <= FEW_PACKETS:
        return True
    if len({work(scenario, group) for group in scenario.flows}) > 1:
        return False  # ACKs of the same two flows do not meet again and again
    # differences between neighbours modulo 1; the last one is from the greatest to the least
    gaps = np.diff(np.sort(halves % 1.0), append=np.min(halves % 1.0) + 1.0)
    return len(halves) > 1 and bool(np.any(gaps < ack))
