"""Follows TCP flows in a capture, which shows data and ACKs as they pass one point of the path.

- Delivered bytes are the growth of the ACK number. An ACK of data beyond the last captured byte is
  ignored. In two cases the captured data count as delivered instead: the capture has no ACKs of the
  flow, or it was made at the flow's receiver. A capture at the receiver shows the arrival of all
  data, also behind a lost packet, where the ACK number does not grow.
- When the whole capture has been read, bytes are converted to packets. A full segment counts as one
  packet, and a smaller one as a part of a packet.
- An RTT is the time from a segment to the ACK of its last byte. Retransmissions give no RTT, and
  neither do segments that are in flight when a retransmission is sent. An ACK that the receiver may
  have delayed gives no RTT, either, because this delay (in Linux 40 to 200 ms) does not come from
  the network.
- In a capture that was not made at the sender, the time from a segment to its ACK is only a part of
  the RTT. The missing part is the round trip from the place of the capture to the sender and back.
  The reader measures it as the time from an ACK to the data segment that echoes the ACK's
  timestamp. Before the first such segment it uses the times of the TCP handshake. If the capture
  has no handshake either, the flow's RTTs are unknown.
- Only a capture at the sender shows what was sent, what was retransmitted and what is in flight.
- Two connections may use the same addresses and ports, one after the other. A SYN with a new
  sequence number begins a new connection. If the capture lacks this SYN, the new connection begins
  with its first data: these are data that follow the acknowledged FIN of the old connection, and
  that cannot be a part of it.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from vegasmodel.packets.readers import segments
from vegasmodel.packets.readers.bins import (
    ACKS,
    ARRIVED,
    DELIVERED,
    LOST,
    RETRANSMITTED,
    RTT_MIN,
    RTT_N,
    RTT_SUM,
    SENT,
    WINDOW_N,
    WINDOW_SUM,
    Bins,
)
from vegasmodel.packets.readers.ethernet import MTU
from vegasmodel.packets.readers.segments import MAX_RECENT, Flow
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace_variables import MAX_FLOWS

# Both ends (address and port) of one direction of a connection: the sender of its packets first
Key = tuple[object, ...]
MAX_PENDING = 500_000  # segments and ACKs that are not answered yet, of all flows together
MAX_RECENTS = 200_000  # recent segments of all flows, among which copies are looked up
MAX_HANDSHAKES = 100_000  # handshakes that are kept: the latest ones
MAX_SPAN = 1e9  # seconds between the first packet and the last
# s. A packet may have an earlier time than the packet before it. If the difference is at most this,
# the packets are out of order. If it is more, the clock of the capture was set back.
MAX_DISORDER = 1e-3


class Syn(NamedTuple):
    """A captured SYN: its sequence number, its MSS option in bytes (0: none) and its time, s."""

    seq: int
    mss: int
    time: float


@dataclass
class Handshake:
    """What a capture shows of a connection's handshake.

    - ``number``: 1 for the first connection between the same two ends, 2 for the next, and so on.
    - ``syns``: the SYN of each end whose SYN was captured, in the order of the SYNs.
    - ``far``: the time, s, from the first SYN to the second.  It is the round trip from the place
      of the capture to the end that answers, and back.
    - ``near``: the time, s, from the second SYN to the ACK that completes the handshake.  It is the
      round trip from the place of the capture to the end that opens the connection, and back.

    ``far`` and ``near`` are infinite as long as they are unknown.
    """

    number: int
    syns: dict[object, Syn] = field(default_factory=dict)
    clock_resets: int = 0  # how often the clock had been set back before the first SYN
    repeated: bool = False  # a SYN was sent again, so the times give no RTT
    over: bool = False  # the ACK of the second SYN has passed
    far: float = math.inf
    near: float = math.inf


class Connections:
    """Follows all TCP flows of a capture.

    The caller goes through the packets of the file in order.  For each packet it first calls
    ``clock`` with the packet's time.  It then calls all of ``syn``, ``data``, ``lost``, ``fin`` and
    ``ack`` that apply: for a packet with data and an ACK, both ``data`` and ``ack``.  (A capture
    has no lost packets, but a trace by ns-3 records drops: ``lost`` is for these.)  At the end,
    ``connections_trace.make`` makes a trace of the flows.
    """

    def __init__(self, source: Source, *, increasing_times: bool = False) -> None:
        """Begin with no connections; ``source`` is the capture.

        If ``increasing_times``, a packet with an earlier time than the one before is an error.
        """
        self.source, self.bins, self.increasing_times = source, Bins(), increasing_times
        # the flows (directions with data) of open connections, by the pair (sender, receiver)
        self.flows: dict[Key, Flow] = {}
        self.all: list[Flow] = []  # all flows, also those of connections that have ended
        self.handshakes: OrderedDict[frozenset[object], Handshake] = OrderedDict()
        # by the two ends: how many connections with data between them have ended
        self.counts: dict[frozenset[object], int] = {}
        # the first and the last ACK number of a flow whose data the capture lacks
        self.unseen: dict[Key, list[int]] = {}
        self.origin: float | None = None  # time of the first packet in the file, s
        # Times since the first packet, s: of the current packet, and the latest so far. ``shift``
        # is added to the times in the file, because the clock of the capture was set back.
        self.time, self.now, self.shift = 0.0, 0.0, 0.0
        self.bin = 0  # index of the bin (interval of time) of ``now``
        self.clock_resets = 0  # how often the clock was set back
        self.pending = 0  # how many entries ``Flow.pending`` and ``Flow.stamps`` of all flows have
        self.recents = 0  # how many entries ``Flow.recent`` of all flows has

    def clock(self, time: float, place: str) -> None:
        """Set ``self.time``, the time of the next packet in seconds since the first packet.

        ``time`` is the packet's time in the capture, s. It may be earlier than the latest time so
        far. If it is earlier by at most ``MAX_DISORDER`` seconds, the packets are out of order, and
        the time is used as it is. If it is earlier by more, the capture's clock was set back. This
        packet then gets the latest time so far. The same amount is added to all later times.

        Raises ``TraceError`` if the time is more than ``MAX_SPAN`` seconds from that of the first
        packet.  If the argument ``increasing_times`` of the class was true, it also raises
        ``TraceError`` for a time earlier than the latest.  The error names the packet by ``place``.
        """
        if self.origin is None:
            self.origin = time
        elapsed = time - self.origin + self.shift
        if elapsed < self.now and (self.increasing_times or not elapsed > -MAX_SPAN):
            self.source.fail(place, time, "a time that does not decrease")
        if elapsed < self.now - MAX_DISORDER:
            self.shift += self.now - elapsed
            elapsed = self.now
            self.clock_resets += 1
        if not elapsed <= MAX_SPAN:
            self.source.fail(place, time, "a time within 1e+09 s of the first")
        self.time = elapsed
        if elapsed > self.now:
            self.now = elapsed
        self.bin = self.bins.reach(self.now)

    def syn(self, key: Key, seq: int, *, second: bool, mss: int) -> None:
        """Process a SYN with the sequence number ``seq``.

        The SYN repeats an earlier one if its sender has sent a SYN with this number before. A
        SYN-ACK answers the first SYN of a handshake, if the capture has this first SYN. Every other
        SYN begins a new connection.  ``key`` is the SYN's pair (sender, receiver).  ``second`` is
        true for a SYN-ACK.  ``mss`` is the value of the MSS option in bytes, or 0 if the SYN has no
        such option.
        """
        ends = frozenset(key)
        known = self.handshakes.get(ends)
        sender, receiver = key
        if known is not None and sender in known.syns and known.syns[sender].seq == seq:
            known.repeated = True
            return
        if known is None or not second or sender in known.syns or receiver not in known.syns:
            known = self._open(key, ends)  # the SYN does not answer a SYN that was captured
        known.syns[sender] = Syn(seq, mss, self.time)

    def _open(self, key: Key, ends: frozenset[object]) -> Handshake:
        """Begin a new connection, and end an earlier one with the same addresses and ports.

        ``key`` is the pair (sender, receiver) of the new connection's first SYN.  ``ends`` is the
        set of these two ends.
        """
        self._end(key, ends)
        if len(self.handshakes) >= MAX_HANDSHAKES:
            self.handshakes.popitem(last=False)
        number = self.counts.get(ends, 0) + 1
        found = self.handshakes[ends] = Handshake(number, clock_resets=self.clock_resets)
        return found

    def _end(self, key: Key, ends: frozenset[object]) -> None:
        """End the connection between two addresses and ports, if there is one.

        ``key`` is the pair (sender, receiver) of one direction of the connection.  ``ends`` is the
        set of these two ends.
        """
        self.handshakes.pop(ends, None)
        for each in (key, reverse(key)):
            self.unseen.pop(each, None)
            flow = self.flows.pop(each, None)
            if flow is not None:
                self._forget_times(flow)
                self.recents -= len(flow.recent)
                flow.recent = OrderedDict()
                self.counts[ends] = flow.number

    def data(
        self,
        key: Key,
        seq: int,
        size: int,
        headers: int,
        place: str,
        *,
        echo: int = -1,
        stamp: int = -1,
        ident: int = -1,
    ) -> Flow | None:
        """Process a segment with ``size > 0`` bytes of data; return its flow.

        The result is ``None`` if the segment is a keep-alive, or if its bytes lie so far from those
        of the flow that it must belong to another connection with the same addresses and ports
        (``Flow.strange``).  A packet that the capture has twice is counted once.

        - ``key``: the segment's pair (sender, receiver).
        - ``seq``: the sequence number.
        - ``headers``: the length of the IP and TCP headers in bytes.
        - ``stamp``, ``echo``: the TCP timestamp, and the timestamp that the segment echoes; -1 if
          there is none.
        - ``ident``: the IPv4 identifier; -1 if there is none.
        - ``place``: the packet's place in the file, for an error.
        """
        self._complete_handshake(reverse(key))
        flow = self._flow_of(key, seq, size, place)
        # the bytes [start, end) of the segment; they do not start again at 0 after 2**32
        start = flow.high + signed(seq - flow.high)
        end = start + size
        if start < flow.begin:
            self._move_begin_back(flow, start)
        if flow.strange(start, end):
            return None
        if start >= flow.high:
            kind = segments.NEW
        else:
            kind = self._count_late(flow, start, end, ident, stamp)
        if kind == segments.COPY:
            return flow
        # count the segment, and note its largest size and headers
        table, i, k = self.bins.cells, flow.index, self.bin
        table[SENT, i, k] += size
        silent = self.now - flow.last  # s since the flow's last segment
        flow.last = self.now
        flow.total += size
        if size > flow.largest:
            flow.largest, flow.headers = size, headers
        if headers < MTU and size % (MTU - headers) == 0:  # it would fill Ethernet packets exactly
            flow.regular += size
        self._note_time(flow, end, kind)
        self._make_room(flow)
        flow.sent(start, end, ident, stamp, self.time)
        # new bytes, perhaps behind a hole of bytes that the capture lacks so far
        if end > flow.high:
            if start > flow.high:
                flow.hole(flow.high, start)
            table[ARRIVED, i, k] += end - max(start, flow.high)
            flow.high = end
        if echo >= 0 and flow.stamps:
            self._echo(flow, echo, silent, new=kind == segments.NEW)
        return flow

    def _flow_of(self, key: Key, seq: int, size: int, place: str) -> Flow:
        """The flow of a segment with data; a new one if the segment is the first of its flow.

        ``key`` is the segment's pair (sender, receiver), ``seq`` its sequence number, ``size`` its
        number of bytes of data, and ``place`` the packet's place in the file, for an error.  If the
        capture's clock was set back since the flow's last packet, the times of its earlier packets
        are dropped.
        """
        flow = self.flows.get(key)
        if flow is None or (flow.closed and self._begins_anew(flow, seq, size)):
            flow = self._new(key, seq, place)
        if flow.clock_resets != self.clock_resets:
            self._forget_times(flow)
        return flow

    def _note_time(self, flow: Flow, end: int, kind: int) -> None:
        """Store when a segment passed, because the time from new data to their ACK gives an RTT.

        ``end`` is the number of the byte after the segment, and ``kind`` says whether its data are
        new (``segments.NEW``).  When a segment is sent again, the times of all segments in flight
        are dropped: an ACK no longer tells which transmission it answers.
        """
        if kind in (segments.RETRANSMITTED, segments.UNSURE):
            self.pending -= len(flow.pending)
            flow.pending.clear()
        elif kind == segments.NEW and self.pending < MAX_PENDING:
            flow.pending.append((end, self.time))
            self.pending += 1

    def _begins_anew(self, flow: Flow, seq: int, size: int) -> bool:
        """Whether a segment after the acknowledged FIN of ``flow`` belongs to a new connection.

        If so, the function also ends the old connection.  The segment has ``size`` bytes of data
        from the sequence number ``seq`` on.  It belongs to the old connection in two cases: it
        repeats bytes of that connection, or it is a keep-alive with one byte in the place of the
        FIN.  (A sender may send keep-alives after its FIN, as long as the other end has sent no
        FIN.)  In all other cases it belongs to a new connection.
        """
        offset = signed(seq - flow.high)
        if flow.begin - flow.high <= offset <= -size or (offset, size) == (0, 1):
            return False
        self._end(flow.key, frozenset(flow.key))
        return True

    def _move_begin_back(self, flow: Flow, start: int) -> None:
        """Move ``flow.begin``, the first known byte of the flow, back to ``start``.

        This is needed if the first segments of a flow are captured out of order: a segment that
        begins at ``start`` then comes after a later one.  The bytes in between count as missing
        (``flow.holes``) until they are captured.  Nothing is done in three cases:

        - The capture has the flow's SYN, so the first byte is known.
        - The capture has an ACK of later bytes, which acknowledges those of the segment, too.
        - Bytes of the flow are missing in ``MAX_HOLES`` places already.
        """
        if flow.opened or flow.acked > flow.begin:
            return
        if len(flow.holes) < segments.MAX_HOLES:
            flow.holes.insert(0, (start, flow.begin))
            flow.begin = flow.acked = start

    def _count_late(self, flow: Flow, start: int, end: int, ident: int, stamp: int) -> int:
        """Count a segment that begins below the highest byte captured so far; return its kind.

        The segment holds the bytes ``[start, end)``. ``ident`` is its IPv4 identifier, and
        ``stamp`` its TCP timestamp; -1 means that it has none. The kind is one of these constants
        of ``segments``:

        - ``COPY``: the capture has the same packet twice. It is not counted again.
        - ``OUT_OF_ORDER``: the segment was captured after later ones, but sent before them.
        - ``RETRANSMITTED``: it was sent after them.
        - ``UNSURE``: the capture does not tell. The trace names the flows with such segments.

        Its bytes above the highest byte so far, if there are any, are left to the caller.
        """
        below = min(end, flow.high)
        first_seen = flow.fill(start, below)  # how many of its bytes the capture lacked so far
        seen_before = below - start - first_seen
        if seen_before:
            kind = flow.seen_again(start, end, ident, stamp, self.time)
        else:
            sent_later = flow.later(ident, stamp)
            kind = segments.RETRANSMITTED if sent_later else segments.OUT_OF_ORDER
            kind = segments.UNSURE if sent_later is None else kind
        if kind == segments.COPY:
            flow.copies += 1
            return kind
        flow.unsure += kind == segments.UNSURE
        table, i, k = self.bins.cells, flow.index, self.bin
        table[ARRIVED, i, k] += first_seen
        # the capture may lack the first transmission of bytes that are retransmitted
        lacked = first_seen if kind == segments.RETRANSMITTED else 0
        table[RETRANSMITTED, i, k] += seen_before or lacked
        return kind

    def _make_room(self, flow: Flow) -> None:
        """Make room for one more segment in ``flow.recent``; the caller then stores it there.

        ``flow.recent`` has the flow's latest segments.  If a later segment has the same bytes as
        one of these, the reader compares the two.  So it tells a packet that the capture has twice
        from a retransmission (``Flow.seen_again``).

        ``self.recents`` counts the segments of all flows, the new one included.  If this flow has
        ``MAX_RECENT`` of them, or all flows together have ``MAX_RECENTS``, the flow's oldest one is
        removed.  A flow that has none yet gets room even if all flows together have
        ``MAX_RECENTS``.
        """
        recent = flow.recent
        if len(recent) >= MAX_RECENT or (self.recents >= MAX_RECENTS and recent):
            recent.popitem(last=False)
        else:
            self.recents += 1

    def _echo(self, flow: Flow, echo: int, silent: float, *, new: bool) -> None:
        """Measure the round trip from the place of the capture to the sender and back.

        This round trip begins when an ACK passes the capture on its way to the sender.  It ends
        when the first data segment passes that echoes this ACK's timestamp, ``echo``.  A
        retransmission is not used: the sender's timer may send it long after the ACK whose
        timestamp it echoes.  ``new`` is true if the segment begins after all bytes captured so far,
        so that it is no retransmission of captured bytes.

        But it may still be a retransmission: of a packet that was lost before it reached the place
        of the capture.  So the measured time is also discarded if it is as long as a retransmission
        timer waits, and no segment of the flow was captured between the ACK and this segment.
        ``silent`` is the time since the flow's last segment, s.
        """
        stamps = flow.stamps
        # all stored ACKs whose timestamp is not later than ``echo``; timestamps count modulo 2**32
        while stamps and (echo - stamps[0][0]) & 0xFFFFFFFF < 0x80000000:
            stamp, passed = stamps.popleft()
            self.pending -= 1
            up = self.time - passed
            # whether the sender's retransmission timer may have sent this segment
            timer = silent >= up and segments.as_long_as_timer(up, flow.up)
            if new and stamp == echo and up >= 0 and not timer:
                flow.up = up
                if flow.up < flow.least_up:
                    flow.least_up = flow.up
                flow.stamped = True
                self._add_up_or_not(flow)

    def fin(self, key: Key, seq: int) -> None:
        """Store the sequence number ``seq`` of a flow's FIN: the number after its last byte.

        A FIN raises the ACK number by 1, like a byte of data.  The method ``ack`` needs the FIN's
        sequence number, so that it does not count the FIN as data.  ``key`` is the pair (sender,
        receiver) of the flow.
        """
        flow = self.flows.get(key)
        if flow is not None:
            flow.fin = flow.high + signed(seq - flow.high)

    def ack(self, key: Key, number: int, *, stamp: int = -1, ident: int = -1) -> None:
        """Process an ACK with the acknowledgement number ``number``.

        An ACK of new data adds to the delivered bytes and gives the bytes in flight, and it may
        give an RTT.  Two kinds of ACK are ignored:

        - A copy: it has the same IPv4 identifier, number and timestamp as the last ACK.
        - An ACK of bytes before the flow's first captured byte or after its last one.

        ``key`` is the pair (sender, receiver) of the acknowledged data.  ``stamp`` is the ACK's TCP
        timestamp and ``ident`` its IPv4 identifier; -1 means that it has none.
        """
        self._complete_handshake(key)
        flow = self.flows.get(key)
        if flow is None:  # the capture has no data of this flow so far
            if len(self.unseen) < MAX_FLOWS or key in self.unseen:
                self.unseen.setdefault(key, [number, number])[1] = number
            return
        if flow.clock_resets != self.clock_resets:  # the clock was set back since its last packet
            self._forget_times(flow)
        # all bytes before ``reached`` are acknowledged; a FIN counts as a byte, but is no data
        reached = flow.acked + signed(number - flow.acked)
        if reached == flow.high + 1 and flow.fin == flow.high:
            reached -= 1
            flow.closed = True
        this_ack = (ident, number, stamp)
        if not flow.begin <= reached <= flow.high or (ident > 0 and this_ack == flow.last_ack):
            return  # an ACK of bytes that the flow has not sent, or a copy of the last ACK
        flow.last_ack = this_ack
        flow.acks += 1
        self.bins.cells[ACKS, flow.index, self.bin] += 1
        if reached > flow.acked:
            self._ack_of_new_data(flow, reached, stamp)
        else:
            flow.in_order = False  # a duplicate ACK

    def _ack_of_new_data(self, flow: Flow, reached: int, stamp: int) -> None:
        """Count an ACK of all bytes before ``reached``, some of which were not acknowledged before.

        ``stamp`` is the ACK's TCP timestamp; -1 means that it has none.
        """
        time, table = self.time, self.bins.cells
        i, k = flow.index, self.bin
        packets = flow.advance(reached - flow.acked)  # how many the ACK acknowledges
        table[DELIVERED, i, k] += reached - flow.acked
        table[WINDOW_SUM, i, k] += flow.high - flow.acked  # in flight before this ACK
        table[WINDOW_N, i, k] += 1
        flow.acked = reached
        if flow.holes:  # acknowledged bytes that the capture lacks have arrived, too
            missed = flow.missed
            flow.pass_holes(reached)
            table[ARRIVED, i, k] += flow.missed - missed
        # when this ACK passed: a data segment may echo the ACK's timestamp (``_echo``)
        stamps = flow.stamps
        if stamp >= 0 and self.pending < MAX_PENDING and (not stamps or stamps[-1][0] != stamp):
            stamps.append((stamp, time))
            self.pending += 1
        # An RTT, if the last acknowledged byte ends a segment whose time is known. ``sent`` is the
        # time at which this segment passed; NaN, with which no comparison is true: it is unknown.
        sent, pending = math.nan, flow.pending
        while pending and pending[0][0] <= reached:
            end, passed = pending.popleft()
            self.pending -= 1
            if end == reached:
                sent = passed
        following = pending[0][1] if pending else time  # when the sender's next segment passed
        if not flow.waited(packets, following - sent) and time >= sent:
            self._count_rtt(flow, time - sent, k)

    def _complete_handshake(self, key: Key) -> None:
        """If a packet with an ACK is the third of a handshake, store the handshake's two RTTs.

        One is the round-trip time from the place of the capture to the client and back, the other
        that to the server and back (``Handshake.near`` and ``far``).  They are not stored if a SYN
        was sent more than once, because it is then unknown which SYN was answered, or if the clock
        was set back in between.  ``key`` is the pair (sender, receiver) of the data that the packet
        acknowledges; the packet itself may hold data, too.
        """
        handshake = self.handshakes.get(frozenset(key)) if self.handshakes else None
        if handshake is None or handshake.over or len(handshake.syns) < 2:
            return
        client, server = handshake.syns
        _, receiver = key
        if receiver == client:  # the client acknowledges what the server sent: its SYN
            handshake.over = True
            far = handshake.syns[server].time - handshake.syns[client].time
            near = self.time - handshake.syns[server].time
            clock_set = handshake.clock_resets != self.clock_resets
            if not handshake.repeated and far >= 0 and near >= 0 and not clock_set:
                handshake.far, handshake.near = far, near

    def _count_rtt(self, flow: Flow, down: float, k: int) -> None:
        """Count an RTT of a flow in the bin (interval of time) with the index ``k``.

        ``down`` is the time, s, from a segment to its ACK, both as they pass the place of the
        capture.  So it is the round trip from there to the receiver and back.  The RTT is ``down``
        plus ``flow.up``, the round trip from the place of the capture to the sender and back.  But
        it is only ``down`` if the capture was made at the sender, or if ``flow.up`` is unknown so
        far (``_add_up_or_not``).
        """
        if down < flow.least_down:
            flow.least_down = down
        self._add_up_or_not(flow)
        table, i = self.bins.cells, flow.index
        rtt = down + flow.up if flow.adds_up else down
        table[RTT_SUM, i, k] += rtt
        table[RTT_N, i, k] += 1
        if rtt < table[RTT_MIN, i, k]:
            table[RTT_MIN, i, k] = rtt

    def _add_up_or_not(self, flow: Flow) -> None:
        """Decide whether ``flow.up`` is added to an RTT of the flow (``_count_rtt``).

        ``flow.up`` is the last measured round trip from the place of the capture to the sender and
        back, s.  It is added unless the capture was made at the sender, or unless no such round
        trip has been measured yet.  If the decision changes, the RTTs counted so far are discarded,
        because they were computed in the other way.
        """
        adds_up = not (flow.captured_at_sender or math.isinf(flow.least_up))
        if adds_up is not flow.adds_up:
            flow.adds_up = adds_up
            self.bins.flow[RTT_SUM : RTT_N + 1, flow.index, :] = 0
            self.bins.flow[RTT_MIN, flow.index, :] = math.inf

    def lost(self, key: Key, size: int) -> None:
        """Count a dropped segment with ``size`` bytes of data, if its flow is known."""
        flow = self.flows.get(key)
        if flow is not None:
            self.bins.flow[LOST, flow.index, self.bin] += size

    def _forget_times(self, flow: Flow) -> None:
        """Drop the stored times of a flow's segments and ACKs, so that none of them gives an RTT.

        This is needed if the capture's clock was set back, because times before and after that
        cannot be compared.  It is also done when the connection has ended, to free memory.
        """
        self.pending -= len(flow.pending) + len(flow.stamps)
        flow.pending.clear()
        flow.stamps.clear()
        flow.clock_resets = self.clock_resets

    def _new(self, key: Key, seq: int, place: str) -> Flow:
        """Begin a flow with its first captured segment, whose sequence number is ``seq``.

        If the capture has the sender's SYN, the flow begins with the byte after it.  The round
        trips of the handshake, if it was captured, are the flow's first values of ``up`` and
        ``least_down``.  ``key`` is the pair (sender, receiver).  Raises ``TraceError``, which names
        the packet by ``place``, if there are too many flows for a trace.
        """
        if len(self.all) == MAX_FLOWS:
            self.source.fail(place, f"flow {MAX_FLOWS + 1}", f"at most {MAX_FLOWS} flows")
        if len(self.all) == self.bins.flow.shape[1]:
            self.bins.grow_flows()
            self.bin = self.bins.index(self.now)
        ends, flow = frozenset(key), Flow(len(self.all), key, self.now, seq)
        flow.clock_resets = self.clock_resets
        handshake = self.handshakes.get(ends)
        if handshake is None:
            flow.number = self.counts.get(ends, 0) + 1
        else:
            sizes = [syn.mss for syn in handshake.syns.values() if syn.mss]
            flow.number, flow.syns, flow.mss = handshake.number, len(sizes), min(sizes, default=0)
            sender, _ = key
            if sender in handshake.syns:
                flow.opened = True
                flow.begin = flow.high = flow.acked = handshake.syns[sender].seq + 1
            from_client = next(iter(handshake.syns)) == sender  # the client sends the flow's data
            flow.least_up = handshake.near if from_client else handshake.far
            flow.up = flow.least_up if math.isfinite(flow.least_up) else 0.0
            flow.least_down = handshake.far if from_client else handshake.near
        self.flows[key] = flow
        self.all.append(flow)
        return flow


def reverse(key: Key) -> Key:
    """Swap sender and receiver: the key of the other direction of a connection."""
    return key[::-1]


def signed(difference: int) -> int:
    """The difference of two sequence numbers modulo 2**32, as a number from -2**31 to 2**31 - 1."""
    return (difference + 0x80000000 & 0xFFFFFFFF) - 0x80000000
