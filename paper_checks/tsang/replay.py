"""Simulates the network of figure 1 of Tsang and Chang, packet by packet.

Two Vegas sources share the link from the router R1 to the router R2.  The window rule is the one
that the paper's section 2.1 prints: it compares the backlog itself with the thresholds alpha and
beta.  ns-2's agent first rounds the backlog to whole packets, so its thresholds are in effect
alpha - 1/2 and beta + 1/2.  Without the rounding tables 3 and 4 are reproduced, with it they are
not.

The printed numbers show three more properties of the authors' simulation.  None of them is a number
that could be tuned:

- A source's first packet gives an RTT sample.  In ns-2 2.35 it never does: a source's clock begins
  with its first packet, so this packet is sent at 0, and ns-2 takes a sending time of 0 for a
  packet that was not sent.  Here the first packet gives no sample with ``start = 0``.  With any
  later start it gives one, and the results do not depend on the start.
- Both sources send their first packets at the same time.  In table 3 the packet of the connection
  with the shorter delay is the first at R1, in table 4 that of the other connection
  (``longer_first``).  Both tables have Jain's index for alpha = 1 and beta = 3, but they print
  different values, so the authors' simulations for the two tables differ.
- Table 4's averages begin at 10 s, not at "10 ms".

Everything else is ns-2's Vegas.  It decides once per round trip, on the mean RTT of its packets.
In slow start each ACK adds one packet to the window, but only in every other round trip.  At the
end of slow start the window is multiplied by 7/8.  The window does not grow while it is far from
used up, that is, while it exceeds ``next - acked`` by more than 2.  With ``rounded`` and
``start = 0`` each connection has as many ACKs as in ns-2 2.35, and with alpha = 1 and beta = 3 the
same last window; tests check both.  The link from R1 to R2 has a RED queue in the paper.  But RED
does not act there (section 3.1), so it is left out here.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from paper_checks.topology import USUAL_DELAY
from paper_checks.tsang.scenes import BITS_PER_PACKET, base_rtt

__all__ = ["Connection", "Round", "alone", "replay"]

SHARED, ACCESS = 1.5e6, 1e7  # bit/s: rates of the links between R1 and R2, of all other links
ACK_BITS = 0.04 * BITS_PER_PACKET  # an ACK has 40 B, a data packet 1000 B
GAMMA = 1.0  # packets: a larger backlog ends slow start
MAX_WINDOW = 30.0  # packets
DURATION = 60.0  # s
START = 0.01  # s, start of the sources


@dataclass(frozen=True)
class Round:
    """What a Vegas source compares at the end of a round trip, where it changes its window.

    The rates are in bit/s, as the paper prints them.
    """

    time: float  # s
    window: float  # packets, before the change
    expected: float  # data in transit/baseRTT
    actual: float  # data sent in the round trip/mean RTT


class Network:
    """The simulation's clock and events, and the links that both connections share.

    Events of the same instant happen in the order in which they were scheduled.
    """

    def __init__(self) -> None:
        self.now = 0.0  # s
        self.forward = Wire(SHARED, USUAL_DELAY)  # R1 to R2, for data
        self.backward = Wire(SHARED, USUAL_DELAY)  # R2 to R1, for ACKs
        # a heap; of each event: its time, its number, the function to call, and the function's
        # argument, the number of a packet
        self._events: list[tuple[float, int, Callable[[int], None], int]] = []
        self._scheduled = 0  # number of events so far

    def at(self, time: float, what: Callable[[int], None], packet: int) -> None:
        """Schedule a call of ``what`` at ``time``, with the number of a packet as its argument."""
        heapq.heappush(self._events, (time, self._scheduled, what, packet))
        self._scheduled += 1

    def run(self) -> None:
        """Process all events up to the end of the simulation."""
        events = self._events
        while events and events[0][0] <= DURATION:
            self.now, _, what, packet = heapq.heappop(events)
            what(packet)


@dataclass
class Wire:
    """A first-in-first-out link with an unlimited queue."""

    rate: float  # bit/s
    delay: float  # s
    free: float = 0.0  # s, the time at which all packets that have arrived so far are sent

    def pass_on(self, time: float, bits: float) -> float:
        """When a packet of ``bits`` that arrives at ``time`` reaches the other end, s."""
        begin = self.free if self.free > time else time  # the calls of max took 1/4 of a run's time
        self.free = begin + bits / self.rate
        return self.free + self.delay


@dataclass
class Connection:
    """A Vegas source with its path and its receiver.  Packets are numbered from 0."""

    network: Network  # the clock, and the links shared with the other connection
    last_delay: float  # s one way over the last link, from R2 to the receiver
    alpha: float  # packets
    beta: float  # packets
    round_backlog: bool  # whether the backlog is rounded to whole packets, as in ns-2
    max_window: float = MAX_WINDOW  # packets
    known_base: float | None = None  # s, a baseRTT given in advance; if None, it is measured
    rounds: list[Round] = field(default_factory=list)  # one for each decision so far
    received: list[float] = field(default_factory=list)  # times at which ACKs arrived, s
    visits: list[tuple[float, float]] = field(default_factory=list)  # at R1: arrival, stay, s

    def __post_init__(self) -> None:
        # the four links of this connection alone: two for data, two for ACKs
        self.to_r1, self.to_receiver = Wire(ACCESS, USUAL_DELAY), Wire(ACCESS, self.last_delay)
        self.ack_to_r2, self.ack_to_source = (
            Wire(ACCESS, self.last_delay),
            Wire(ACCESS, USUAL_DELAY),
        )
        self.window = 1.0  # packets
        self.per_ack = 0.0  # packets that each ACK adds to the window
        self.slow_start = True
        self.doubles = True  # in slow start: whether the window grows in this round trip
        self.next = 0  # the packet to be sent next
        self.acked = -1  # the last packet that was acknowledged
        self.base = float("inf") if self.known_base is None else self.known_base  # baseRTT, s
        # the first packet sent after the last decision; when its ACK arrives, Vegas decides again
        self.round_start = 0
        self.rtts = list[float]()  # s, the RTTs measured since the last decision
        self.sent: dict[int, float] = {}  # of each packet in flight the time at which it was sent

    # --- a packet and its ACK on their path -------------------------------------------------
    #
    # Only the links between R1 and R2 carry packets of both connections.  A packet's arrival at
    # one of these links is an event.  The time at which it leaves any other link is computed in
    # advance, without an event.

    def begin(self, packet: int) -> None:
        """Send the first packets; ``packet``, the argument of each event, is the first's number."""
        assert packet == self.next
        self.send()

    def send(self) -> None:
        """Send as many packets as the window allows."""
        now, limit = self.network.now, self.max_window
        last = self.acked + int(self.window if self.window < limit else limit)
        for packet in range(self.next, last + 1):
            self.sent[packet] = now
            self.network.at(self.to_r1.pass_on(now, BITS_PER_PACKET), self._at_r1, packet)
        self.next = max(self.next, last + 1)

    def _at_r1(self, packet: int) -> None:
        """A data packet arrives at the router R1; its receiver will send an ACK for it at once."""
        network, now = self.network, self.network.now
        at_r2 = network.forward.pass_on(now, BITS_PER_PACKET)
        self.visits.append((now, at_r2 - USUAL_DELAY - now))  # until its last bit has left R1
        received = self.to_receiver.pass_on(at_r2, BITS_PER_PACKET)
        network.at(self.ack_to_r2.pass_on(received, ACK_BITS), self._ack_at_r2, packet)

    def _ack_at_r2(self, packet: int) -> None:
        """The ACK of ``packet`` arrives at R2, on its way back."""
        network = self.network
        at_r1 = network.backward.pass_on(network.now, ACK_BITS)
        network.at(self.ack_to_source.pass_on(at_r1, ACK_BITS), self._ack, packet)

    # --- the window ------------------------------------------------------------------------

    def _ack(self, packet: int) -> None:
        """The ACK of ``packet`` arrives: change the window, measure the RTT, and send packets."""
        now = self.network.now
        self.received.append(now)
        self.acked = packet
        if packet >= self.round_start:  # the first ACK of a packet sent since the last decision
            self._decide()
        if self.per_ack == 1 and self.window >= self.max_window:  # no slow start beyond the limit
            self.per_ack = 0.0
        if self.per_ack > 0 and self.window - (self.next - self.acked) <= 2:  # it is nearly used up
            self.window += self.per_ack
        sent = self.sent.pop(packet)
        if sent > 0.0:  # a packet sent at 0 counts as not sent, as in ns-2
            self.rtts.append(now - sent)
            if self.known_base is None and now - sent < self.base:
                self.base = now - sent
        self.send()

    def _decide(self) -> None:
        """Vegas's decision, once per round trip.

        The RTT of the packet just acknowledged is a sample of the next round trip.
        """
        now, packets = self.network.now, self.next - self.round_start  # sent in this round trip
        mean = sum(self.rtts) / len(self.rtts) if self.rtts else now - self.sent[self.acked]
        if self.known_base is None:
            # a single packet has not waited behind the source's own packets, so ns-2 takes its RTT
            # for baseRTT, even if it is larger than baseRTT
            self.base = mean if packets <= 1 else min(self.base, mean)
        expected, actual = (self.next - self.acked) / self.base, packets / mean
        self.rounds.append(
            Round(now, self.window, BITS_PER_PACKET * expected, BITS_PER_PACKET * actual)
        )
        backlog = (expected - actual) * self.base
        self._adjust(float(int(backlog + 0.5)) if self.round_backlog else backlog)
        self.round_start = self.next
        self.rtts.clear()

    def _adjust(self, backlog: float) -> None:
        """Change the window, or what each ACK of the next round trip adds, by the ``backlog``.

        In Vegas's slow start the window doubles every second round trip, until the backlog exceeds
        gamma.  Later the window shrinks by a packet if the backlog is above beta, and grows by a
        packet in the next round trip if the backlog is below alpha.
        """
        # section 2.2: if alpha = beta, no backlog lets the window stay, so equality shrinks it
        at_both = backlog == self.beta == self.alpha and not self.round_backlog
        if self.slow_start and self.window < self.max_window:
            self.doubles = not self.doubles
            self.per_ack = float(self.doubles)
            if self.doubles and backlog > GAMMA:  # slow start ends
                self.slow_start, self.per_ack = False, 0.0
                self.window = max(self.window * 7 / 8, 2.0)
        elif backlog > self.beta or at_both:
            self.window, self.per_ack = max(self.window - 1, 2.0), 0.0
        else:
            self.per_ack = 1 / self.window if backlog < self.alpha else 0.0

    # --- what the paper reads --------------------------------------------------------------

    def rate(self, since: float) -> float:
        """ACKs a second from ``since`` to the end."""
        count = bisect_right(self.received, DURATION) - bisect_right(self.received, since)
        return count / (DURATION - since)

    def held(self, since: float) -> float:
        """Mean number of the connection's packets at the shared link, from ``since`` on.

        These packets wait or are in transmission.  By Little's law the mean is the sum of their
        stays, divided by the time.
        """
        return sum(stay for when, stay in self.visits if when > since) / (DURATION - since)

    def decisions(self, since: float) -> list[Round]:
        """The decisions after ``since``, s."""
        return [r for r in self.rounds if r.time > since]


def replay(
    x2: float,
    alpha: float = 1.0,
    beta: float = 3.0,
    longer_first: bool = False,
    rounded: bool = False,
    start: float = START,
    later_by: float = 0.0,
    max_window: float = MAX_WINDOW,
    known: bool = False,
) -> tuple[Connection, Connection]:
    """Simulate two Vegas connections for 60 s in the network of figure 1 of Tsang and Chang.

    Returns both: the one with the shorter delay, then the one with the longer.  They share the link
    behind the router R1.

    - ``x2``: the delay of the longer connection's last link, ms.
    - ``alpha``, ``beta``: the thresholds of both connections, packets.
    - ``longer_first``: whether the longer connection's packet is the first at R1.
    - ``rounded``: whether backlogs are rounded as in ns-2.
    - ``start``: when both start, s.
    - ``later_by``: by how much the longer connection starts later, s.
    - ``max_window``: the largest window of both, packets.
    - ``known``: whether both know their least RTTs from the beginning.
    """
    case = (x2, alpha, beta, longer_first, rounded, start, later_by, max_window, known)
    return _replay(*case)


@cache  # it takes f(1) and f(x=1) for two cases, so ``replay`` names none of the arguments
def _replay(
    x2: float, alpha: float, beta: float, longer_first: bool, rounded: bool, start: float,
    later_by: float, max_window: float, known: bool,
) -> tuple[Connection, Connection]:  # fmt: skip
    """``replay`` without default values, so that each case is simulated only once."""
    network = Network()
    shorter, longer = (
        Connection(
            network,
            last_delay=x * 1e-3,
            alpha=alpha,
            beta=beta,
            round_backlog=rounded,
            max_window=max_window,
            known_base=base_rtt(x) if known else None,
        )
        for x in (1e3 * USUAL_DELAY, x2)
    )
    # events at the same instant happen in the order of scheduling
    for source in (longer, shorter) if longer_first else (shorter, longer):
        network.at(start + (later_by if source is longer else 0.0), source.begin, 0)
    network.run()
    return shorter, longer


@cache
def alone(x2: float, alpha: float = 1.0, beta: float = 3.0) -> Connection:
    """A single Vegas connection after 60 s; its last link has a delay of ``x2`` ms.

    ``alpha`` and ``beta`` are in packets.
    """
    network = Network()
    source = Connection(network, last_delay=x2 * 1e-3, alpha=alpha, beta=beta, round_backlog=False)
    network.at(START, source.begin, 0)
    network.run()
    return source
