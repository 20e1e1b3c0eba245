"""Decides into how many events the simulator ``rounds`` divides the packets of a round trip.

An event is the arrival of some packets of one flow at a queue. The function ``resolution`` limits
the number of events for each flow and queue in a round trip. If a round trip has fewer packets than
this limit, each packet is an event of its own. If it has more packets, an event stands for several
packets. So the computing time for a round trip is limited, however large the capacity is.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.access import is_slow
from vegasmodel.scenario import Red, Scenario
from vegasmodel.scenario.placement import work

__all__ = [
    "CONTENDED",
    "MOST_SINGLE",
    "SINGLE",
    "held_packets",
    "is_coarse",
    "resolution",
    "unlimited_window",
]

# limits on the number of events per flow and round trip (``resolution`` says when each holds)
UNCONTENDED = 64  # the order of packets decides little
CONTENDED = 1024  # the order of packets decides which flow loses packets
MOST_SINGLE = 2**16  # near losses, where each event is a single packet
ENDLESS = 2**13  # the same, if a window may exceed what the links and their buffers hold
PAIR_CALM = 20, 32  # far from losses, for one or two flows: the least and the greatest limit
SINGLE = 1.5  # with so many intervals per packet, no interval has two packets (``acks.portion``)


def resolution(scenario: Scenario) -> tuple[int, int]:
    """Two limits on the number of events of a flow at a queue in a round trip.

    An event is the arrival of some packets of one flow at a queue. The limits bound the computing
    time; both are approximate. If a limit exceeds the number of packets in a round trip, each
    packet is an event of its own. Otherwise an event stands for all packets of a flow that arrive
    in a certain interval of time, evenly spaced.

    The first limit holds for a flow near losses: in slow start, in recovery, while one of its
    packets is missing, or while the buffer is nearly full. There the order of single packets
    decides how many are lost, which flow loses them, and whether a timeout follows. Intervals would
    also smooth out the bursts that a growing window or delayed ACKs cause.

    - Usually the first limit is ``MOST_SINGLE``, so that each packet is an event of its own.
    - It is ``CONTENDED`` if a round trip has too many packets for ``MOST_SINGLE`` events
      (``is_coarse``).
    - If access links are slow, packets wait there, so a window may become much larger than what the
      links and their buffers hold. So that there is memory for all packets, the limit is then at
      most ``ENDLESS``, or ``SINGLE`` times the number of packets that the path and the buffer hold
      if that is more.

    The second limit holds far from losses: in congestion avoidance without missing packets, while
    more than half of the buffer is free. (As the buffer fills, the limit rises to the first one, as
    ``queue.intervals`` explains.) There are four cases:

    - ACKs are delayed, so that packets leave in pairs. The limit is the same as near losses,
      because longer intervals would smooth out the pairs.
    - The senders wait a random time before they send, the link may be idle for long
      (``_often_idle``), and a round trip has more than ``UNCONTENDED`` packets a flow. The limit is
      ``CONTENDED``. An idle link has no queue that would even out the gaps from the waits, and in
      longer intervals the simulator would neglect some of the waits (``wait.py``).
    - There are more than two flows, different RTTs, different packet sizes, several links or a RED
      queue, or a buffer is so small that a single interval would fill it. The limit is
      ``CONTENDED``, because the order in which packets arrive decides which flow loses.
    - Otherwise one or two flows with equal RTTs and packet sizes share a single link. The limit is
      ``UNCONTENDED`` if the senders wait a random time before they send, or if the path holds at
      most ``UNCONTENDED`` packets. If not, it is the square root of the number of packets that the
      path and the buffer hold, but within the range ``PAIR_CALM``. More intervals cost time and
      hardly change the results.

    If all buffers are infinite, the two limits are equal. They are ``CONTENDED`` if ACKs are
    delayed or the second case applies, otherwise ``UNCONTENDED``.
    """
    members = scenario.members
    equal_flows = len({(member.rtt, work(scenario, member.flow)) for member in members}) == 1
    red = any(isinstance(link.queue, Red) for link in scenario.crossed)
    pipe, held = held_packets(scenario)
    delays_acks = any(group.delayed_ack for group in scenario.flows)
    finite = _finite_buffers(scenario)
    waits = any(scenario.jitter(group) > 0.0 for group in scenario.flows)
    uneven = waits and pipe > UNCONTENDED * len(members) and _often_idle(scenario)
    one_or_two = equal_flows and len(members) <= 2 and not red and len(scenario.crossed) == 1
    if not finite:
        parts = CONTENDED if delays_acks or uneven else UNCONTENDED
        return parts, parts
    near = CONTENDED if is_coarse(scenario) else MOST_SINGLE
    if any(is_slow(scenario, group) for group in scenario.flows):
        near = min(near, max(ENDLESS, math.ceil(SINGLE * held)))
    if delays_acks:
        return near, near
    if not one_or_two or uneven or pipe > PAIR_CALM[0] * min(finite):
        return near, CONTENDED
    short = waits or pipe <= UNCONTENDED
    return near, UNCONTENDED if short else int(np.clip(math.sqrt(held), *PAIR_CALM))


def _often_idle(scenario: Scenario) -> bool:
    """Whether the link may be idle for long: there is one flow, or all flows are delay-based."""
    alone = len(scenario.members) == 1
    return alone or all(group.delay_based for group in scenario.flows)


def _finite_buffers(scenario: Scenario) -> list[float]:
    """The buffer sizes, in whole packets, of those links on flows' paths whose buffer is finite."""
    return [sum(link.limits) for link in scenario.crossed if not link.never_full]


def held_packets(scenario: Scenario) -> tuple[float, float]:
    """The bandwidth-delay product, in packets, and the sum of this product and the buffer.

    The product is the capacity of the fastest link times the longest RTT. The buffer is the largest
    finite buffer, or 0 if all buffers are infinite.
    """
    fastest = max(link.capacity for link in scenario.crossed)
    pipe = fastest * max(m.rtt for m in scenario.members)
    return pipe, pipe + max(_finite_buffers(scenario), default=0.0)


def unlimited_window(scenario: Scenario) -> float:
    """The largest ``max_window``, in packets, of the flows whose windows only this limit stops.

    The window of a flow grows up to its ``max_window`` if its congestion control is not delay-based
    and a link on its path has an infinite buffer. The result is 0 if there are no such flows.
    """
    return max(
        (
            group.max_window
            for group in scenario.flows
            if not group.delay_based and any(link.never_full for link in scenario.path(group))
        ),
        default=0.0,
    )


def is_coarse(scenario: Scenario) -> bool:
    """Whether a round trip has too many packets to simulate each by itself, even near losses.

    The result is False if all buffers are infinite.
    """
    return bool(_finite_buffers(scenario)) and SINGLE * held_packets(scenario)[1] > MOST_SINGLE
