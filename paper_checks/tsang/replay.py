"""Figure 1's network, packet by packet, with the window rule as section 2.1 prints it.

ns-2's agent rounds the backlog to whole packets before it compares it with the thresholds, so the
thresholds are in effect alpha - 1/2 and beta + 1/2.  The rule of the paper's section 2.1 compares
the backlog itself.  Without the rounding tables 3 and 4 are reproduced, with it they are not.
Three more properties follow from the printed numbers; none of them is a number that could be tuned:

- The first packet gives an RTT sample.  In ns-2 2.35 it never does: a source's clock begins
  with its first packet, and a packet sent at 0 counts as not sent.  Here it gives a sample
  unless the sources start at 0; any other start time gives the same.
- In table 3 the shorter connection's first packet is the first at R1, in table 4 the longer
  one's: the indices of the same case differ.
- Table 4's averages begin at 10 s, not at "10 ms".

Everything else is ns-2's Vegas.  It decides once per round trip, on the mean RTT of its packets.
In slow start the window doubles every other round trip by one packet per ACK, and at the end of
slow start it is multiplied by 7/8.  The window does not grow while it is far from used up, that
is, while it exceeds ``next - acked`` by more than 2.  With ``rounded`` the windows are those of
ns-2 2.35 to the last digit, which a test checks.  No packet is lost, so there is no RED here.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from paper_checks.topology import SHORT
from paper_checks.tsang.scenes import BITS, base_rtt

__all__ = ["Connection", "Round", "alone", "replay"]

SHARED, ACCESS = 1.5e6, 1e7  # bit/s
ACK_BITS = 0.04 * BITS
GAMMA = 1.0
MAX_WINDOW = 30.0
DURATION = 60.0  # s
START = 0.01  # s


@dataclass(frozen=True)
class Round:
    """One decision of a source; rates in bit/s, as the paper prints them."""

    time: float  # s
    window: float  # packets
    expected: float  # data in transit/baseRTT
    actual: float  # packets of the round over their mean RTT


class Network:
    """An event queue ordered by time; events of the same instant are in the order of scheduling."""

    def __init__(self) -> None:
        self.now = 0.0
        self.forward = Wire(SHARED, SHORT)
        self.backward = Wire(SHARED, SHORT)
        self._events: list[tuple[float, int, Callable[[int], None], int]] = []
        self._made = 0

    def at(self, time: float, what: Callable[[int], None], packet: int) -> None:
        """Schedule what happens to a packet at ``time``: a call of ``what`` with its number."""
        heapq.heappush(self._events, (time, self._made, what, packet))
        self._made += 1

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
    free: float = 0.0

    def pass_on(self, time: float, bits: float) -> float:
        """The time at which a packet that arrives at ``time`` reaches the other end."""
        begin = self.free if self.free > time else time  # ``max`` takes a quarter of a run
        self.free = begin + bits / self.rate
        return self.free + self.delay


@dataclass
class Connection:
    """A Vegas source with its path and its receiver."""

    network: Network
    last: float  # s one way over the receiver's link
    alpha: float
    beta: float
    rounded: bool
    most: float = MAX_WINDOW
    known: float | None = None  # s, its least RTT; by default it measures it
    rounds: list[Round] = field(default_factory=list)
    received: list[float] = field(default_factory=list)  # times of ACKs
    visits: list[tuple[float, float]] = field(default_factory=list)  # to R1: when, how long, s

    def __post_init__(self) -> None:
        self.up, self.down = Wire(ACCESS, SHORT), Wire(ACCESS, self.last)
        self.ack_up, self.ack_down = Wire(ACCESS, self.last), Wire(ACCESS, SHORT)
        self.window, self.growth, self.slow, self.turn = 1.0, 0.0, True, True
        self.next, self.acked = 0, -1  # packets
        self.base = float("inf") if self.known is None else self.known
        self.mark, self.rtts = 0, list[float]()
        self.sent: dict[int, float] = {}

    # --- the way of a packet; only the shared links meet other traffic ----------------------

    def begin(self, packet: int) -> None:
        """Send the first packets; ``packet`` is the number of the first."""
        assert packet == self.next
        self.send()

    def send(self) -> None:
        """Send as many packets as the window allows."""
        now = self.network.now
        last = self.acked + int(self.window if self.window < self.most else self.most)
        for packet in range(self.next, last + 1):
            self.sent[packet] = now
            self.network.at(self.up.pass_on(now, BITS), self._forward, packet)
        self.next = max(self.next, last + 1)

    def _forward(self, packet: int) -> None:
        network, now = self.network, self.network.now
        across = network.forward.pass_on(now, BITS)
        self.visits.append((now, across - SHORT - now))
        received = self.down.pass_on(across, BITS)
        network.at(self.ack_up.pass_on(received, ACK_BITS), self._backward, packet)

    def _backward(self, packet: int) -> None:
        network = self.network
        across = network.backward.pass_on(network.now, ACK_BITS)
        network.at(self.ack_down.pass_on(across, ACK_BITS), self._ack, packet)

    # --- the window ------------------------------------------------------------------------

    def _ack(self, packet: int) -> None:
        now = self.network.now
        self.received.append(now)
        self.acked = packet
        if packet >= self.mark:
            self._decide()
        if self.growth == 1 and self.window >= self.most:
            self.growth = 0.0
        if self.growth > 0 and self.window - (self.next - self.acked) <= 2:
            self.window += self.growth
        sent = self.sent.pop(packet)
        if sent > 0.0:  # ns-2 2.35: the first packet's never counts
            self.rtts.append(now - sent)
            if self.known is None and now - sent < self.base:
                self.base = now - sent
        self.send()

    def _decide(self) -> None:
        """Vegas's decision, once per round trip.

        The packet just acknowledged counts for the next decision.
        """
        now, packets = self.network.now, self.next - self.mark
        mean = sum(self.rtts) / len(self.rtts) if self.rtts else now - self.sent[self.acked]
        if self.known is None:  # of a single packet: nothing of our own was in the way
            self.base = mean if packets <= 1 else min(self.base, mean)
        expected, actual = (self.next - self.acked) / self.base, packets / mean
        self.rounds.append(Round(now, self.window, BITS * expected, BITS * actual))
        backlog = (expected - actual) * self.base
        self._adjust(float(int(backlog + 0.5)) if self.rounded else backlog)
        self.mark = self.next
        self.rtts.clear()

    def _adjust(self, backlog: float) -> None:
        if self.slow and self.window < self.most:
            self.turn = not self.turn
            self.growth = float(self.turn)
            if self.turn and backlog > GAMMA:
                self.slow, self.growth = False, 0.0
                self.window = max(self.window * 7 / 8, 2.0)
        elif backlog > self.beta or (backlog == self.beta == self.alpha and not self.rounded):
            self.window, self.growth = max(self.window - 1, 2.0), 0.0
        else:
            self.growth = 1 / self.window if backlog < self.alpha else 0.0

    # --- what the paper reads --------------------------------------------------------------

    def rate(self, since: float) -> float:
        """ACKs a second from ``since`` to the end."""
        count = bisect_right(self.received, DURATION) - bisect_right(self.received, since)
        return count / (DURATION - since)

    def held(self, since: float) -> float:
        """Mean number of own packets that wait or are sent at R1, from ``since`` on."""
        return sum(stay for when, stay in self.visits if when > since) / (DURATION - since)

    def late(self, since: float) -> list[Round]:
        """Decisions after ``since``."""
        return [r for r in self.rounds if r.time > since]


def replay(
    x2: float,
    alpha: float = 1.0,
    beta: float = 3.0,
    longer_first: bool = False,
    rounded: bool = False,
    start: float = START,
    late: float = 0.0,
    most: float = MAX_WINDOW,
    known: bool = False,
) -> tuple[Connection, Connection]:
    """Both connections after 60 s: the one with the shorter delay, then the one with the longer.

    ``x2``: delay of the longer one's last link, ms; ``longer_first``: its packet is the first at
    R1; ``rounded``: backlogs are rounded as in ns-2; ``start``: when both start, s; ``late``: by
    how much the longer one starts later, s; ``most``: largest window, packets; ``known``: both know
    their least RTTs.
    """
    return _replay(x2, alpha, beta, longer_first, rounded, start, late, most, known)


@cache  # it would take the same case for another one if arguments had their names or were left out
def _replay(
    x2: float, alpha: float, beta: float, longer_first: bool, rounded: bool, start: float,
    late: float, most: float, known: bool,
) -> tuple[Connection, Connection]:  # fmt: skip
    network = Network()
    shorter, longer = (
        Connection(network, x * 1e-3, alpha, beta, rounded, most, base_rtt(x) if known else None)
        for x in (1e3 * SHORT, x2)
    )
    for source in (longer, shorter) if longer_first else (shorter, longer):
        network.at(start + (late if source is longer else 0.0), source.begin, 0)
    network.run()
    return shorter, longer


@cache
def alone(x2: float, alpha: float = 1.0, beta: float = 3.0) -> Connection:
    """A single connection whose last link takes ``x2`` ms, after 60 s."""
    network = Network()
    source = Connection(network, x2 * 1e-3, alpha, beta, rounded=False)
    network.at(START, source.begin, 0)
    network.run()
    return source
