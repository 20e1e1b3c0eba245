"""Tracks one direction of a captured TCP connection: its bytes, retransmissions and copies.

A capture may show the same bytes in two segments. Either the sender sent the bytes twice: then the
later segment is a retransmission. Or the capture has one packet twice: then the later segment is a
copy. These rules decide which of the two the later segment is. The first rule that applies counts:

1. If its TCP timestamp is later than those of all earlier segments of the flow, it is a
   retransmission. If it has no timestamp, or the same as the latest so far, its IPv4 identifier is
   compared with the latest so far instead.
2. The other rules compare it with an earlier segment that begins and ends at the same bytes. The
   reader remembers only the last segments (``MAX_RECENT``). If none of them begins and ends at the
   same bytes, it is undecided.
3. If it and the earlier segment have IPv4 identifiers, equal ones mean a copy, different ones a
   retransmission.
4. If it and the earlier segment have TCP timestamps, different ones mean a retransmission.
5. If the time between the two is less than half the smallest RTT, it is a copy, because no sender
   retransmits so early. (An RTT is here the time from a segment to its ACK in the capture.)
6. Otherwise it is undecided.

IPv4 identifiers are ignored if the sender does not increase them from each new segment to the next.
If any segment of a flow is undecided, the flow's number of retransmissions is unknown.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterable

import numpy as np

from vegasmodel.packets.readers.ethernet import MTU

MAX_HOLES = 1000  # most ranges of missing bytes that are remembered for a flow
MAX_RECENT = 4096  # recent segments of a flow, among which copies are looked up
MAX_WINDOW = 1 << 30  # bytes that TCP can have in flight
# A capture counts as made at one end of the connection if the RTT from the place of the capture to
# this end is less than this fraction of the RTT to the other end.
NEAR_PART = 0.1
EARLY_PART = 0.5  # fraction of the RTT within which no sender retransmits
JUMBO_SIZE = 9000  # bytes of an IP packet in a jumbo frame
MAX_PER_ACK = 100  # packets: an ACK of more counts as an ACK of 100 packets
ACK_DELAY = 0.04  # s: Linux delays an ACK by at least this time (TCP_DELACK_MIN), others longer
MIN_TIMER = 0.2  # s: the shortest retransmission timer of Linux (TCP_RTO_MIN); others wait longer
TIMER_OVER_ROUND_TRIP = 1.5  # a timer is longer than the last round trip by more than this factor
# packets that Linux acknowledges at once at the start of a flow (TCP_MAX_QUICKACKS)
QUICK_ACKS = 16

# The kinds of captured segments. The bytes of a ``NEW`` one follow all bytes captured so far. The
# others have earlier bytes: ``OUT_OF_ORDER`` was sent before segments captured earlier, ``COPY`` is
# a packet that the capture has twice, ``RETRANSMITTED`` was sent again, and for ``UNSURE`` the
# capture does not tell which of these it is.
NEW, OUT_OF_ORDER, COPY, RETRANSMITTED, UNSURE = range(5)


class Flow:
    """What is known so far about one direction of a captured TCP connection.

    TCP's sequence numbers start again at 0 after 2**32 bytes.  The sequence numbers stored here
    keep growing instead.
    """

    # ``__init__`` explains each field
    __slots__ = (
        "acked",
        "acks",
        "adds_up",
        "at_sender",
        "begin",
        "clock_resets",
        "closed",
        "copies",
        "counted",
        "delays",
        "fin",
        "first",
        "headers",
        "high",
        "holes",
        "in_order",
        "increasing_ids",
        "index",
        "key",
        "largest",
        "last",
        "last_ack",
        "last_id",
        "last_stamp",
        "least_down",
        "least_up",
        "loopback",
        "missed",
        "mss",
        "number",
        "opened",
        "options",
        "pending",
        "per_ack",
        "recent",
        "regular",
        "stamped",
        "stamps",
        "syns",
        "total",
        "unsure",
        "up",
        "widest",
    )

    def __init__(self, index: int, key: tuple[object, ...], time: float, seq: int) -> None:
        """What is known of a flow of a capture before its first segment is counted.

        ``time`` is the time of this segment, s, and ``seq`` its sequence number.
        """
        self.index, self.key = index, key  # index in ``Bins.flow``; the pair (sender, receiver)
        self.number = 1  # 2 for the second connection with the same addresses and ports, ...
        self.first = self.last = time  # s, times of the first and the last segment
        # sequence numbers: of the first byte, after the highest captured byte, of the last ACK
        self.begin = self.high = self.acked = seq
        self.fin: int | None = None  # sequence number of the FIN
        self.holes: list[tuple[int, int]] = []  # bytes below high that were not seen, in order
        # The last segments, among which copies are looked up: first byte -> (end, IPv4 identifier,
        # TCP timestamp, time). An OrderedDict finds its oldest entry at once.
        self.recent: OrderedDict[int, tuple[int, int, int, float]] = OrderedDict()
        self.pending: deque[tuple[int, float]] = deque()  # end of a segment, when it was sent
        self.stamps: deque[tuple[int, float]] = deque()  # an ACK's timestamp, when it passed
        self.last_id = self.last_stamp = -1  # latest IPv4 identifier and TCP timestamp of the data
        self.last_ack = (-1, -1, -1)  # IPv4 identifier, ACK number and TCP timestamp
        self.increasing_ids = True  # the sender's IPv4 identifiers increase from segment to segment
        self.acks = 0  # number of ACKs
        self.total = 0  # bytes of data, retransmitted ones included
        self.largest = self.headers = 0  # bytes of data and of headers in the largest segment
        # bytes in segments that hold as much data as one or more full Ethernet packets: if these
        # are many, the network card joins or splits packets (``payload``)
        self.regular = 0
        self.syns = self.mss = 0  # number of SYNs with an MSS option, and the smallest MSS in bytes
        self.options = 0  # bytes of TCP options in a data segment
        # how often the capture's clock had been set back when this flow's last packet was captured
        self.clock_resets = 0
        self.copies = 0  # packets that the capture has twice
        # bytes that were acknowledged, but are not in the capture: all, and the longest range
        self.missed = self.widest = 0
        self.unsure = 0  # segments that may be retransmissions or not
        self.closed = False  # its FIN was acknowledged, so no more data can follow
        self.loopback = False  # sender and receiver are on the same machine
        self.at_sender = False  # the file itself says that the capture was made at the sender
        self.opened = False  # the capture has the sender's SYN
        self.delays = False  # the receiver delays its ACKs, as far as the last ACK tells
        self.in_order = False  # the last ACK was of new data
        self.per_ack: dict[int, int] = {}  # bytes acknowledged, by the number of packets per ACK
        self.counted = 0  # sum of these bytes
        # Round trips from the place of the capture, in s: ``up`` to the sender and back (the last
        # one measured), ``least_up`` the smallest of these, and ``least_down`` the smallest to the
        # receiver and back.
        self.up, self.least_up, self.least_down = 0.0, np.inf, np.inf
        self.stamped = False  # ``up`` was measured by an echoed timestamp, not by the handshake
        # true: an RTT is the time from a segment to its ACK plus ``up``; false: only this time,
        # because the capture was made at the sender, or ``up`` is not known yet
        self.adds_up = False

    @property
    def captured_at_sender(self) -> bool:
        """Whether it is certain that the capture was made at the sender.

        It is certain if the function that reads the file has set ``at_sender``: in a trace of ns-3,
        a TTL of 64 shows that no router has forwarded the packet yet.  It also counts as certain if
        the sender is much nearer than the receiver: the smallest round-trip time from the place of
        the capture to the sender is less than a tenth of that to the receiver.
        """
        return self.at_sender or self.least_up < NEAR_PART * self.least_down

    @property
    def captured_at_receiver(self) -> bool:
        """Whether it is certain that the capture was made at the receiver.

        It counts as certain if the receiver is much nearer than the sender: the smallest round-trip
        time from the place of the capture to the receiver is less than a tenth of that to the
        sender.  Both round-trip times must be known.
        """
        nearer = self.least_down < NEAR_PART * self.least_up < np.inf
        return nearer and not self.captured_at_sender

    @property
    def limit(self) -> int:
        """The most bytes of data that a packet may hold, according to the MSS options of the SYNs.

        A data segment's TCP options count towards the MSS, so their length is subtracted.  The
        result is 0 if the capture has no SYN with an MSS option.
        """
        return max(self.mss - self.options, 1) if self.mss else 0

    @property
    def payload(self) -> int:
        """Bytes of data in a full packet of this flow.

        Usually it is the size of the largest captured segment. But that segment may consist of
        several packets that the network card has joined or is going to split (offloading). So the
        result is at most what the MSS options of the SYNs allow. The capture may have no MSS
        option. If the segment then does not fit into a packet of 1500 bytes, the result is what
        fits into such a packet. There are two exceptions:

        - Both ends are on the same machine (``loopback``).
        - The segment fits into a jumbo frame of 9000 bytes, and less than half of the data is in
          segments that would fill one or more packets of 1500 bytes exactly.
        """
        if self.limit:
            return max(min(self.largest, self.limit), 1)
        if self.loopback or self.largest + self.headers <= MTU:
            return max(self.largest, 1)
        full = MTU - self.headers
        jumbo = self.largest + self.headers <= JUMBO_SIZE
        return self.largest if full < 1 or (jumbo and 2 * self.regular < self.total) else full

    def advance(self, size: int) -> int:
        """Count an ACK of ``size`` new bytes; return how many packets it acknowledges.

        The counts are kept in ``per_ack``, because they show whether the receiver delays its ACKs.
        An ACK of new data that follows a duplicate ACK is not counted: it acknowledges a missing
        packet together with all packets that arrived while it was missing.
        """
        packets = min(max(round(size / self.payload), 1), MAX_PER_ACK)
        if self.in_order:
            self.per_ack[packets] = self.per_ack.get(packets, 0) + size
            self.counted += size
        self.in_order = True
        return packets

    def waited(self, packets: int, between: float) -> bool:
        """Whether the receiver may have delayed an ACK while it waited for another packet.

        An ACK that may have been delayed gives no RTT. ``packets`` is the number of packets that
        it acknowledges. The result can be true only for an ACK of one packet, in two cases:

        - Most packets so far were acknowledged by ACKs of several packets.
        - The time from the acknowledged packet to the sender's next packet, ``between``, is more
          than ``ACK_DELAY`` seconds, and the ACK before this one acknowledged several packets or
          may have been delayed itself.
        """
        mostly = 2 * self.per_ack.get(1, 0) < self.counted
        self.delays = packets > 1 or mostly or (self.delays and between > ACK_DELAY)
        return self.delays and packets == 1

    @property
    def packets_per_ack(self) -> float:
        """How many packets an ACK acknowledges: the median over the flow's packets.

        ACKs of new data that follow a duplicate ACK are left out (``advance`` says why). The result
        is NaN if the flow has too few packets (``median_per_ack`` states how many it needs).
        """
        known = {packets: size / self.payload for packets, size in self.per_ack.items()}
        return median_per_ack(sorted(known.items()))

    @property
    def assumed(self) -> bool:
        """Whether ``payload``, the bytes of data in a full packet, is only a guess.

        A capture may show segments that are larger than a packet, because network cards split and
        join segments (offloading).  Whether ``payload`` is then a guess depends on the SYNs:

        - If the MSS options of both ends are known, it is no guess.
        - If only one is known, it is a guess if a segment is larger than this option allows.
        - If none is known, it is a guess if a segment does not fit into an Ethernet packet.
        """
        if self.limit:
            return self.syns < 2 and self.largest > self.limit
        return self.largest + self.headers > MTU

    def strange(self, start: int, end: int) -> bool:
        """Whether a segment with the bytes ``[start, end)`` is not part of the flow's data.

        Such a segment is a keep-alive, which repeats the last byte although it is acknowledged. Or
        it belongs to another connection between the same addresses and ports: its bytes lie before
        the flow's first byte, or farther ahead than a window reaches.
        """
        ahead = start > self.high + MAX_WINDOW or end > self.acked + 2 * MAX_WINDOW
        next_byte = self.high + self.closed  # a FIN counts as a byte
        keep_alive = end == start + 1 == next_byte and start < self.acked + self.closed
        return ahead or keep_alive or (self.opened and start < self.begin)

    def later(self, ident: int, stamp: int) -> bool | None:
        """Whether a segment was sent after all segments captured before it; ``None`` if unknown.

        The segment's TCP timestamp ``stamp`` is compared with the latest timestamp captured. If the
        two are equal, or if one is missing, the IPv4 identifier ``ident`` is compared with the
        latest identifier. But identifiers are not compared if the sender does not increase them
        from segment to segment.
        """
        if stamp >= 0 and self.last_stamp >= 0 and stamp != self.last_stamp:
            return _not_before(stamp, self.last_stamp, bits=32)
        if ident > 0 and self.last_id > 0 and self.increasing_ids and ident != self.last_id:
            return _not_before(ident, self.last_id, bits=16)
        return None

    def seen_again(self, start: int, end: int, ident: int, stamp: int, time: float) -> int:
        """Decide why the bytes ``[start, end)`` of a segment are captured again.

        ``ident`` is the segment's IPv4 identifier, ``stamp`` its TCP timestamp. The result is
        ``COPY`` if the same packet was captured twice, ``RETRANSMITTED`` if the sender sent the
        bytes again, and ``UNSURE`` if it can be either. The module's docstring gives the rules.
        """
        if self.later(ident, stamp):
            return RETRANSMITTED
        known = self.recent.get(start)
        if known is None or known[0] != end:
            return UNSURE
        _, old_id, old_stamp, then = known
        if old_id > 0 and ident > 0 and self.increasing_ids:
            return COPY if old_id == ident else RETRANSMITTED
        if stamp >= 0 and old_stamp >= 0 and stamp != old_stamp:
            return RETRANSMITTED
        return COPY if time - then < EARLY_PART * self.least_down < np.inf else UNSURE

    def sent(self, start: int, end: int, ident: int, stamp: int, time: float) -> None:
        """Remember a segment that was sent, so that later segments can be compared with it.

        It has the bytes ``[start, end)``.  ``ident`` is its IPv4 identifier, and ``stamp`` its TCP
        timestamp; -1 means that it has none.  The latest identifier and the latest timestamp are
        stored, too.
        """
        if ident > 0:
            # all its bytes are new, so it was sent last, and its identifier should be the latest
            if self.last_id > 0 and start >= self.high and self.later(ident, -1) is not True:
                self.increasing_ids = False
            if self.last_id < 0 or _not_before(ident, self.last_id, bits=16):
                self.last_id = ident
        if stamp >= 0 and (self.last_stamp < 0 or _not_before(stamp, self.last_stamp, bits=32)):
            self.last_stamp = stamp
        self.recent[start] = (end, ident, stamp, time)

    def fill(self, start: int, end: int) -> int:
        """Record that the bytes ``[start, end)`` are captured; return how many were in holes.

        A hole is a range of bytes that was not captured so far, although later bytes were.
        """
        holes, filled = self.holes, 0
        if not holes or start >= holes[-1][1] or end <= holes[0][0]:
            return 0
        # the last hole that begins at ``start`` or before; 1 << 62 is beyond the end of any hole
        i = max(bisect_right(holes, (start, 1 << 62)) - 1, 0)
        while i < len(holes) and holes[i][0] < end:
            low, high = holes[i]
            part = min(high, end) - max(low, start)
            if part <= 0:
                i += 1
                continue
            filled += part
            # what the hole still lacks: the bytes before ``start``, and those from ``end`` on
            remaining = [
                (a, b) for a, b in ((low, max(low, start)), (min(high, end), high)) if a < b
            ]
            holes[i : i + 1] = remaining
            i += len(remaining)
        return filled

    def hole(self, low: int, high: int) -> None:
        """Record a hole: the bytes ``[low, high)`` are missing in the capture so far.

        They lie beyond all bytes captured before.  If there are ``MAX_HOLES`` holes already, the
        first is forgotten, and the flow's number of retransmissions is then unknown.
        """
        if len(self.holes) == MAX_HOLES:
            self.holes.pop(0)
            self.unsure += 1
        self.holes.append((low, high))

    def pass_holes(self, acked: int) -> None:
        """Add to ``missed`` the number of bytes below ``acked`` that are not in the capture.

        These bytes were acknowledged, so the sender sent them, and the capture missed them.
        ``widest`` is the size in bytes of the largest hole (range of missing bytes) that was
        acknowledged, even in part.
        """
        while self.holes and self.holes[0][0] < acked:
            low, high = self.holes[0]
            self.missed += min(high, acked) - low
            self.widest = max(self.widest, high - low)
            if high > acked:
                self.holes[0] = (acked, high)
                return
            self.holes.pop(0)


def median_per_ack(counts: Iterable[tuple[int, float]]) -> float:
    """How many packets an ACK acknowledges: the median, in which each packet counts once.

    ``counts`` are pairs (n, number of packets that were acknowledged by ACKs of n packets), by
    increasing n. At the start of a flow, a receiver acknowledges up to ``QUICK_ACKS`` packets one
    by one, even if it delays its ACKs later. So the result is NaN for fewer than twice
    ``QUICK_ACKS`` packets.
    """
    known, up_to_here = list(counts), 0.0
    total = sum(number for _, number in known)
    if total < 2 * QUICK_ACKS:
        return math.nan
    for packets, number in known:
        up_to_here += number
        if 2 * up_to_here >= total:
            return float(packets)
    return math.nan


def as_long_as_timer(time: float, round_trip: float) -> bool:
    """Whether a sender may have waited for its retransmission timer during ``time`` seconds.

    ``round_trip`` is the last round trip in s, or 0 if it is unknown. Timers wait for at least
    ``MIN_TIMER`` seconds, and for more than ``TIMER_OVER_ROUND_TRIP`` round trips.
    """
    return time >= MIN_TIMER and TIMER_OVER_ROUND_TRIP * round_trip < time


def _not_before(number: int, other: int, bits: int) -> bool:
    """Whether ``number`` is equal to ``other`` or comes after it, on a counter of ``bits`` bits.

    Such a counter starts again at 0 after its largest value.  So ``number`` counts as coming after
    ``other`` if a count from ``other`` upwards reaches it within half of the counter's range.
    """
    return (number - other) % (1 << bits) < 1 << (bits - 1)
