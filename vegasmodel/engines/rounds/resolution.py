"""Decides into how many intervals the simulator ``rounds`` divides a round trip of a flow.

The packets of the flow that arrive at a queue in one interval are one event. If there are more
intervals than packets, each packet is an event of its own. So the number of intervals limits the
computing time for a round trip, however large the capacity is.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.access import is_slow
from vegasmodel.scenario import Red, Scenario
from vegasmodel.scenario.placement import work

__all__ = [
    "CONTENDED",
    "SINGLY",
    "held_packets",
    "is_coarse",
    "resolution",
    "unlimited_window",
]

# numbers of intervals in a round trip (``resolution`` says when each is used)
UNCONTENDED = 64  # the order of packets decides little
CONTENDED = 1024  # the order of packets decides which flow loses packets
PAIR_CALM = 20, 32  # far from losses, for one or two flows: the least and the greatest number
SINGLY = 2**16  # near losses: each packet is an event of its own
SINGLY_SLOW_ACCESS = 2**13  # the same, if access links are slow
# With so many intervals for each packet of a round trip, no interval has two packets
# (``acks.portion``).
PER_PACKET = 1.5


def resolution(scenario: Scenario) -> tuple[int, int]:
    """The numbers of intervals into which a round trip of a flow is divided: near losses, and far.

    All packets of a flow that arrive at a queue in one interval are one event, and the simulator
    takes them as evenly spaced. So fewer intervals need less computing time. Both numbers are
    approximate.

    If all buffers are infinite, no packet is lost at a full buffer. Then the two numbers are equal.
    They are ``CONTENDED`` if ACKs are delayed or senders wait as in case 2 below, otherwise
    ``UNCONTENDED``. The rest of this text is about scenarios with a finite buffer.

    The first number is used near losses: while the flow is in slow start or in recovery, while one
    of its packets is missing, or while the buffer is nearly full. There the order of single packets
    decides how many are lost, which flow loses them, and whether a timeout follows. Long intervals
    would also smooth out the bursts that a growing window or delayed ACKs cause. So each packet is
    an event of its own (``SINGLY`` intervals), with two exceptions:

    - A round trip has too many packets for this (``is_coarse``). The number is ``CONTENDED``.
    - Access links are slow. Packets then wait there, so a window may become much larger than what
      the links and their buffers hold. There must be memory for all these packets, so there are
      fewer intervals: ``SINGLY_SLOW_ACCESS``, or ``PER_PACKET`` times the number of packets that
      the path and the buffer hold, whichever is more. But there are never more intervals than there
      would be with fast access links.

    The second number is used far from losses: in congestion avoidance without missing packets,
    while more than half of the buffer is free. (As the buffer fills, the number changes to the
    first one, as ``queue.intervals`` explains.) The first of these cases that applies decides:

    1. ACKs are delayed, so that packets leave in pairs. The number is the same as near losses,
       because long intervals would smooth out the pairs.
    2. The senders wait a random time before they send, the link may be idle for long
       (``_often_idle``), and a round trip has more than ``UNCONTENDED`` packets a flow. The number
       is ``CONTENDED``. An idle link has no queue that would even out the gaps from the waits. But
       the simulator neglects the waits if several ACKs arrive in one interval (``wait.py``).
    3. There are more than two flows, different RTTs, different packet sizes, several links or a RED
       queue, or a buffer is so small that the packets of one interval would fill it. The number is
       ``CONTENDED``, because the order in which packets arrive decides which flow loses.
    4. One or two flows share a single link, and the senders wait a random time before they send.
       The number is ``UNCONTENDED``.
    5. One or two flows share a single link, and the path holds at most ``UNCONTENDED`` packets. The
       number is ``UNCONTENDED``.
    6. In all other cases the number is the square root of the number of packets that the path and
       the buffer hold, but within the range ``PAIR_CALM``. More intervals cost time and hardly
       change the results.
    """
    members = scenario.members
    equal_flows = len({(member.rtt, work(scenario, member.flow)) for member in members}) == 1
    red = any(isinstance(link.queue, Red) for link in scenario.crossed)
    pipe, held = held_packets(scenario)
    delays_acks = any(group.delayed_ack for group in scenario.flows)
    buffers = _finite_buffers(scenario)
    waits = any(scenario.jitter(group) > 0.0 for group in scenario.flows)
    uneven = waits and pipe > UNCONTENDED * len(members) and _often_idle(scenario)
    one_or_two = equal_flows and len(members) <= 2 and not red and len(scenario.crossed) == 1
    if not buffers:
        both = CONTENDED if delays_acks or uneven else UNCONTENDED
        return both, both
    near = CONTENDED if is_coarse(scenario) else SINGLY
    if any(is_slow(scenario, group) for group in scenario.flows):
        near = min(near, max(SINGLY_SLOW_ACCESS, math.ceil(PER_PACKET * held)))
    if delays_acks:  # case 1
        return near, near
    if uneven or not one_or_two or pipe > PAIR_CALM[0] * min(buffers):  # cases 2 and 3
        return near, CONTENDED
    if waits or pipe <= UNCONTENDED:  # cases 4 and 5
        return near, UNCONTENDED
    return near, int(np.clip(math.sqrt(held), *PAIR_CALM))


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
    return bool(_finite_buffers(scenario)) and PER_PACKET * held_packets(scenario)[1] > SINGLY
