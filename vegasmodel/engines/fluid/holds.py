"""Finds how many packets of a window at its limit wait at the receiver for a delayed ACK.

A receiver that delays its ACKs acknowledges every second packet (RFC 1122, 4.2.3.2). If the window
is odd, one packet is left over. It waits for the next packet, but only for a limited time, the
receiver's pause. Then the receiver acknowledges it alone. Its ACK releases one packet, which is
later in the next round trip by the pause. If it then arrives just ahead of a pair of packets, the
receiver acknowledges it together with the first packet of the pair. The second packet of the pair
is then left over. Otherwise the packet waits for the pause again.

So the mean number of packets that wait depends on where the pairs of the round trip are. While no
packets queue, a pair stays at its place. Its place stems from slow start: each time the pause ended
in slow start, the ACK released packets that follow one pause later. This module simulates these
packets of one flow, without any queue.
"""

from __future__ import annotations

import functools
import math
from collections import deque

from vegasmodel.stacks.stack import MIN_RTO, Stack

__all__ = ["MOST", "held_alone"]

# packets: the largest limit of a window for which the number is computed. In a larger window the
# packet that waits is less than 3 % of it.
MOST = 33.0
TRIPS = 100  # round trips of a simulation; the mean is over the second half
TICK = 0.004  # seconds; Linux counts times in ticks of its clock (Debian's kernel has 250 per s)
LONGEST_PAUSE = 0.2  # seconds; the kernel's TCP_DELACK_MAX


class _Receiver:
    """A receiver that delays ACKs: the packet that waits, and the time until which it waits.

    Linux adapts the pause to the flow, by a number of ticks called ato. ato doubles whenever a
    pause ends without a second packet (tcp_delack_timer_handler). If a packet follows the one
    before it within half of 40 ms, ato falls towards 40 ms. If it follows later but within ato, the
    new ato is half the old one plus the gap between the two packets (tcp_event_data_recv).
    """

    def __init__(self, stack: Stack, rtt: float) -> None:
        self.ends = math.inf  # time until which the ACK of a packet is delayed; infinite: none is
        self.stack, self.rtt = stack, rtt
        self.quick_left = stack.quick_acks  # so many further ACKs leave at once (start of a flow)
        self.least = self.ato = round(stack.ack_pause / TICK)  # ticks
        self.heard = 0.0  # time at which the latest packet arrived
        # the receiver's own timeout, from the RTT of the handshake
        self.timeout = math.ceil((rtt + max(2.0 * rtt, MIN_RTO)) / TICK)

    def end_pause(self) -> None:
        """The pause has ended: the receiver acknowledges one packet."""
        self.ends, self.ato = math.inf, min(2 * self.ato, self.timeout)

    def packet_arrives(self, at: float) -> int:
        """A packet arrives at time ``at``; returns how many packets are acknowledged now."""
        gap = at // TICK - self.heard // TICK  # ticks since the packet before it
        self.heard = at
        # the class says how Linux adapts ato
        if gap <= self.least // 2:
            self.ato = self.ato // 2 + self.least // 2
        elif gap < self.ato:
            self.ato = min(self.ato // 2 + int(gap), self.timeout)
        if self.quick_left > 0.0:  # at the start of a flow, each packet is acknowledged at once
            self.quick_left -= 1.0
            return 1
        if self.ends < math.inf:  # another packet waits: one ACK acknowledges both
            self.ends = math.inf
            return 2
        self.ends = self._end(at)  # this packet waits
        return 0

    def _end(self, at: float) -> float:
        """The end of a pause that begins at time ``at``; in Linux it is a tick of the clock."""
        if not self.stack.adapts_ack_pause:
            return at + self.stack.ack_pause
        pause = min(self.ato * TICK, max(self.rtt, self.stack.ack_pause), LONGEST_PAUSE)
        return (at // TICK + math.ceil(pause / TICK) + 1.0) * TICK


@functools.lru_cache(maxsize=1000)  # flows of a group often have the same RTT
def held_alone(stack: Stack, rtt: float, limit: float, first: float, capacity: float) -> float:
    """The mean number of packets that wait for a delayed ACK, if no packets queue at the link.

    The flow has the RTT ``rtt`` (seconds) and begins with a window of ``first`` packets. In slow
    start its window grows to the odd number ``limit`` and stays there. The link sends ``capacity``
    packets per second, so packets that are sent at once arrive 1/``capacity`` seconds apart.

    The result is ``limit`` minus the packets acknowledged per round trip, counted in the second
    half of the simulated time.
    """
    receiver = _Receiver(stack, rtt)
    packets, last = deque[float](), -math.inf  # arrival times of the packets in flight; the latest
    window, in_flight, now, counted = first, 0, 0.0, 0
    while True:
        # The sender sends what the window allows. A packet and its ACK take one RTT together. All
        # of this time is put before the packet's arrival, so ACKs reach the sender at once.
        while in_flight < min(math.floor(window), limit):
            last = max(last + 1.0 / capacity, now + rtt)
            packets.append(last)
            in_flight += 1
        # without packets on the way the only packet of a first window of 1 waits at the receiver
        if not packets or receiver.ends <= packets[0]:
            now, acked = receiver.ends, 1
            receiver.end_pause()
        else:
            now = packets.popleft()
            acked = receiver.packet_arrives(now)
        if now > TRIPS * rtt:
            return limit - counted / (0.5 * TRIPS)
        if acked > 0:
            window = min(window + (acked if stack.counts_packets else 1.0), limit)
            in_flight -= acked
            counted += acked if now > 0.5 * TRIPS * rtt else 0
