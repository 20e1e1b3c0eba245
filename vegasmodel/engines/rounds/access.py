"""Decides which flows may have to wait at their access links.

Each flow has an access link of its own at the sender, and one at the receiver. (The short flows of
one ``[[flow]]`` table share these two links.) The method ``Scenario.access_rate`` returns the rate
of both. As in ns-2, the queues of access links are unlimited, so no packet is lost there. ACKs
hardly ever wait at access links, because ACKs are smaller than the packets that they acknowledge.
So only the data packets in these queues are simulated.

By default access links are 200 times as fast as the slowest link on the flow's path. Waits at
access links are then so short that, to save time, these queues are not simulated at all.
"""

from __future__ import annotations

from vegasmodel.scenario import Flow, Scenario
from vegasmodel.scenario.placement import access_ratio

ENDS = SENDER, RECEIVER = "sender", "receiver"  # in place of a direction in the key of a queue
# An access link needs no queue if it is at least ``STEADY`` times as fast as the slowest link on
# the flow's path. If the sender waits for random times before it sends, the access link must be at
# least ``RANDOM`` times as fast.
STEADY, RANDOM = 2.0, 10.0


def is_slow(scenario: Scenario, group: Flow) -> bool:
    """Whether packets may wait for one another at the flow's access links.

    ACKs reach a sender no faster than the slowest link sends packets, and an ACK allows at most two
    packets in slow start. So if senders do not wait at random, no packet waits at an access link
    that is at least twice as fast as the slowest link (``STEADY``). Packets of a burst are an
    exception. But even without this queue, a burst is simulated at the rate of the access link
    (``kernel.send_burst``).

    A sender that waits a random time (``send_jitter``) may send two packets with any gap between
    them. The second then waits for up to one transmission time of the access link. This matters
    little only if the access link is much faster than the slowest link (``RANDOM``).
    """
    return access_ratio(scenario, group) < (RANDOM if scenario.jitter(group) > 0.0 else STEADY)


def queues_at_sender(scenario: Scenario, group: Flow) -> bool:
    """Whether the flow's packets cross the queue of the access link at the sender.

    They do if the access link is slow. They also do if the flow has random delays
    (``delay_noise``): packets get these delays between this queue and the next one.
    """
    return group.delay_noise > 0.0 or is_slow(scenario, group)
