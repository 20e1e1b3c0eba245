"""TCP flows as seen at one point: segments pass one way, ACKs the other.

Everything is counted in bytes and divided by the flow's full payload at the end.  Delivered:
growth of the ACK number (of the data seen, where no ACK passes).  RTT: from a segment to the ACK
that ends with it, never across a retransmission.  Away from the sender that is only the part
behind the point; the part before it, from an ACK to the data that echoes its timestamp, is added
where it is not negligible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from vegasmodel.packets.readers.bins import (
    ACKS,
    AGAIN,
    DELIVERED,
    LOST,
    RTT_MIN,
    RTT_N,
    RTT_SUM,
    SENT,
    WINDOW_N,
    WINDOW_SUM,
    Bins,
)
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import MAX_FLOWS, Trace

Key = tuple[object, ...]  # both ends, the sender first
MAX_PENDING = 500_000  # segments and ACKs that wait for their answer, all flows together
MAX_SPAN = 1e9  # seconds between the first packet and the last
BACKWARDS = 1.0  # seconds by which a capture's clock may step back
JUMBO = 9000  # bytes: larger payloads are several packets that the network card will cut
HERE = 0.1  # the sender is at this point if its share of the RTT is smaller
MINOR = 0.01  # a direction with less of the other's bytes is requests, not a flow


class Flow:
    """State of one direction with data."""

    __slots__ = (
        "acked",
        "acks",
        "first",
        "headers",
        "high",
        "index",
        "largest",
        "last",
        "least_down",
        "least_up",
        "mss",
        "pending",
        "stamps",
        "total",
        "up",
    )

    def __init__(self, index: int, time: float, seq: int) -> None:
        self.index, self.first, self.last = index, time, time
        self.high = self.acked = seq
        self.pending: deque[tuple[int, float]] = deque()  # end of a segment, when it was sent
        self.stamps: deque[tuple[int, float]] = deque()  # an ACK's timestamp, when it passed
        self.acks = self.total = self.largest = self.headers = self.mss = 0
        self.up, self.least_up, self.least_down = 0.0, np.inf, np.inf

    @property
    def payload(self) -> float:
        """Bytes of data in a full packet."""
        if self.largest > JUMBO:
            return self.mss or 1448
        return self.largest or 1


class Connections:
    """All flows of a capture.  ``data`` and ``ack`` take packets in the order of time."""

    def __init__(self, source: Source) -> None:
        self.source, self.bins = source, Bins()
        self.flows: dict[Key, Flow] = {}
        self.origin: float | None = None
        self.now, self.bin, self.pending = 0.0, 0, 0

    def clock(self, time: float, place: str) -> float:
        """Seconds since the first packet; small steps back are held."""
        if self.origin is None:
            self.origin = time
        elapsed = time - self.origin
        if not self.now - BACKWARDS <= elapsed <= MAX_SPAN:
            self.source.fail(place, time, "a time that does not decrease, within 1e+09 s")
        self.now = max(elapsed, self.now)
        if self.now >= self.bins.end:
            self.bins.reach(self.now)
        self.bin = self.bins.index(self.now)
        return self.now

    def data(self, key: Key, seq: int, size: int, headers: int, echo: int, place: str) -> Flow:
        """A segment with ``size > 0`` bytes; ``echo`` is its timestamp echo, or -1."""
        time, flow = self.now, self.flows.get(key)
        if flow is None:
            flow = self._new(key, seq, place)
        table, i, k = self.bins.flow, flow.index, self.bin
        step = (seq - flow.high) & 0xFFFFFFFF
        start = flow.high + (step if step < 0x80000000 else step - 0x100000000)
        end = start + size
        table[SENT, i, k] += size
        flow.last = time
        flow.total += size
        if size > flow.largest:
            flow.largest, flow.headers = size, headers
        if start < flow.high:
            table[AGAIN, i, k] += size
            self.pending -= len(flow.pending)
            flow.pending.clear()
        elif self.pending < MAX_PENDING:
            flow.pending.append((end, time))
            self.pending += 1
        if end > flow.high:
            if not flow.acks:
                table[DELIVERED, i, k] += min(size, end - flow.high)
            flow.high = end
        stamps = flow.stamps
        while stamps and (echo - stamps[0][0]) & 0xFFFFFFFF < 0x80000000:
            stamp, passed = stamps.popleft()
            self.pending -= 1
            if stamp == echo:
                flow.up = time - passed
                flow.least_up = min(flow.least_up, flow.up)
        return flow

    def ack(self, flow: Flow, number: int, stamp: int) -> None:
        """An ACK for ``flow``; ``stamp`` is its timestamp, or -1."""
        time, table = self.now, self.bins.flow
        i, k = flow.index, self.bin
        if not flow.acks:
            table[DELIVERED, i, :] = 0
        flow.acks += 1
        table[ACKS, i, k] += 1
        step = (number - flow.acked) & 0xFFFFFFFF
        if step == 0 or step >= 0x80000000:
            return
        table[DELIVERED, i, k] += step
        table[WINDOW_SUM, i, k] += max(flow.high - flow.acked, step)
        table[WINDOW_N, i, k] += 1
        flow.acked += step
        flow.high = max(flow.high, flow.acked)
        stamps = flow.stamps
        if stamp >= 0 and self.pending < MAX_PENDING and (not stamps or stamps[-1][0] != stamp):
            stamps.append((stamp, time))
            self.pending += 1
        sent, pending = -1.0, flow.pending
        while pending and pending[0][0] <= flow.acked:
            end, then = pending.popleft()
            self.pending -= 1
            if end == flow.acked:
                sent = then
        if sent >= 0:
            self._rtt(flow, time - sent, k)

    def _rtt(self, flow: Flow, down: float, k: int) -> None:
        flow.least_down = min(flow.least_down, down)
        here = flow.least_up == np.inf or flow.least_up < HERE * flow.least_down
        rtt, table = (down if here else down + flow.up), self.bins.flow
        table[RTT_SUM, flow.index, k] += rtt
        table[RTT_N, flow.index, k] += 1
        if rtt < table[RTT_MIN, flow.index, k]:
            table[RTT_MIN, flow.index, k] = rtt

    def lost(self, key: Key, size: int) -> None:
        """A segment of a known flow was dropped."""
        flow = self.flows.get(key)
        if flow is not None:
            self.bins.flow[LOST, flow.index, self.bin] += size

    def _new(self, key: Key, seq: int, place: str) -> Flow:
        if len(self.flows) == MAX_FLOWS:
            self.source.fail(place, "one flow more", f"at most {MAX_FLOWS} flows")
        if len(self.flows) == self.bins.flow.shape[1]:
            self.bins.grow_flows()
            self.bin = self.bins.index(self.now)
        flow = self.flows[key] = Flow(len(self.flows), self.now, seq)
        return flow

    def trace(
        self,
        engine: str,
        names: Mapping[Key, str],
        reverse: Mapping[Key, Key],
        provenance: Mapping[str, str],
        known: tuple[str, ...],
        links: list[str] | None = None,
    ) -> Trace:
        """The trace of all flows but the minor directions of two-way connections."""
        chosen = [
            (names[key], flow)
            for key, flow in self.flows.items()
            if reverse[key] not in self.flows
            or flow.total >= MINOR * self.flows[reverse[key]].total
        ]
        if not chosen:
            self.source.fail("", "no flow", "TCP segments with data")
        flows = [flow for _, flow in chosen]
        payload = np.array([flow.payload for flow in flows], dtype=float)
        order = [flow.index for flow in flows]
        for row in (DELIVERED, SENT, AGAIN, LOST, WINDOW_SUM):
            self.bins.flow[row, order] /= payload[:, None]
        times = [[flow.first, flow.last] for flow in flows]
        variables = {
            "first": np.array(times)[:, 0],
            "last": np.array(times)[:, 1],
            "packet_size": payload + [flow.headers for flow in flows],
        }
        about = {
            "throughput": "growth of the ACK number",
            "window": "bytes in flight over the full payload",
            "rtt": "segment to its ACK, none across retransmissions",
            "packets": "bytes over the flow's full payload",
            "origin": repr(self.origin),
            **provenance,
        }
        return self.bins.trace(
            engine,
            self.now,
            [n for n, _ in chosen],
            order,
            variables,
            about,
            links=links,
            known=known,
        )
