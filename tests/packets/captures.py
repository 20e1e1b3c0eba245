"""Captures of random TCP connections in which every packet, loss and round trip is known.

A sender with a window, a path that loses, reorders and repeats packets, and a receiver that
answers.  A capture at either end holds their frames: cut, tagged, merged by the network card,
duplicated, or with a clock that jumps.
"""

import heapq
import itertools
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vegasmodel.packets import read
from vegasmodel.packets.trace import Trace

EPOCH = 1_700_000_000
ENDS = {4: (b"\x0a\0\0\1", b"\x0a\0\0\2"), 6: (b"\xfd" + bytes(14) + b"\1", b"\xfd" + bytes(15))}
FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass
class Options:
    """Unusual properties that a capture may have."""

    at: str = "sender"
    version: int = 4
    stamps: bool = True
    ids: bool = True
    syns: bool = True
    fins: bool = True
    mss: int = 1448
    merged: int = 1  # packets in a segment at most
    loss: float = 0.0
    swapped: float = 0.0
    repeated: float = 0.0  # by the network, before the receiver
    copied: float = 0.0  # frames that the capture holds twice
    vlans: int = 0
    snap: int = 262_144
    steps: int = 0  # times that the clock goes back
    stray: bool = False  # a RST with a random number
    connections: int = 1
    zero_length: bool = False  # of the IP packets that the card will cut
    ng: bool = False
    delayed_ack: bool = False
    packets: int = 60
    window: int = 12
    last: int = 0  # bytes of a short last packet
    skipped: int = 0  # frames before the capture begins


def draw(rng: random.Random) -> Options:
    """Random options."""
    at, version = rng.choice(("sender", "receiver")), rng.choice((4, 4, 6))
    mss, merged = rng.choice((500, 1208, 1428, 1448)), rng.choice((1, 1, 2, 4, 6, 40))
    syns = rng.random() < 0.8
    odd = {
        key: rng.choice((0.0, 0.0, part))
        for key, part in (("loss", 0.05), ("swapped", 0.05), ("repeated", 0.03), ("copied", 0.1))
    }
    packets, stamps = rng.choice((1, 5, 40, 90)), rng.random() < 0.7
    if merged > 1 and not syns:  # nothing tells the size, so the usual one
        mss = 1460 - 20 * (version == 6) - 12 * stamps
    return Options(
        at,
        version,
        stamps=stamps,
        ids=version == 4 and rng.random() < 0.8,
        syns=syns,
        fins=rng.random() < 0.7,
        mss=mss,
        merged=merged,
        vlans=rng.choice((0, 0, 1, 2)),
        snap=rng.choice((262_144, 262_144, 160, 128)),
        steps=rng.choice((0, 0, 0, 1, 3)),
        stray=rng.random() < 0.3,
        connections=rng.choice((1, 1, 1, 2, 3)) if syns else 1,
        zero_length=rng.random() < 0.2,
        ng=rng.random() < 0.5,
        delayed_ack=rng.random() < 0.5,
        packets=packets,
        skipped=0 if syns or packets < 90 else rng.choice((0, 25)),
        window=rng.choice((2, 8, 20, 50)),
        last=rng.choice((0, 0, 1, 333)),
        **odd,
    )


@dataclass
class Frame:
    """A frame at the place of the capture.

    Sequence numbers count from the connection's first byte.
    """

    time: float
    forward: bool
    seq: int
    size: int
    ack: int
    flags: int = ACK
    stamp: int = 0
    echo: int = 0
    ident: int = 0
    mss: int = 0
    again: bool = False
    step: int = 0  # of the connection: which transmission of its packet


@dataclass
class Truth:
    """The true values of one connection, in bytes of data; times in seconds."""

    delivered: int = 0
    sent: int = 0
    again: int = 0
    base: float = 0.0
    rtts: list[float] = field(default_factory=list)


def _near_the_end(rng: random.Random, most: int) -> int:
    """A number of 32 bits; every second one begins again at 0 after at most ``most`` steps."""
    number = rng.randrange(2**32)
    return number if number % 2 else 2**32 - 1 - number % most


class Connection:
    """Packets of one connection over time.

    ``frames`` are those that pass the place of the capture.
    """

    def __init__(self, options: Options, rng: random.Random, begin: float) -> None:
        self.o, self.rng, self.begin = options, rng, begin
        self.frames: list[Frame] = []
        self.truth = Truth()
        sizes = [options.mss] * options.packets
        if options.last:
            sizes.append(min(options.last, options.mss))
        self.starts = [0, *itertools.accumulate(sizes)]
        self.rate, self.away, self.back = rng.uniform(200, 3000), rng.uniform(0.004, 0.05), 0.0
        self.back = rng.uniform(0.004, 0.05)
        self.idents = [rng.randrange(1, 65536), rng.randrange(1, 65536)]
        self.clocks = [_near_the_end(rng, 1000) for _ in range(2)]  # ms
        self.free = self.una = self.next = self.cum = self.dups = self.unacked = 0
        self.echo, self.latest, self.got = [0, 0], -1.0, set[int]()
        self.first: dict[int, float] = {}  # when a packet was sent, unless it was sent again
        self.events: list[tuple[float, int, str, tuple[object, ...]]] = []
        self.count = itertools.count()

    def at(self, time: float, what: str, *more: object) -> None:
        heapq.heappush(self.events, (time, next(self.count), what, more))

    def stamp(self, side: int, time: float) -> int:
        return (int(time * 1000) + self.clocks[side]) % 2**32

    def ident(self, side: int) -> int:
        self.idents[side] = self.idents[side] % 65535 + 1
        return self.idents[side] if self.o.ids else 0

    def run(self) -> float:
        """Simulate until all data is acknowledged; returns the time of the last frame."""
        open_at = self.begin + self.away + self.back
        sender = self.o.at == "sender"
        if self.o.syns:
            away, back = (0.0, self.away + self.back) if sender else (self.away, self.away + 2e-5)
            option = 12 * self.o.stamps
            sizes = [self.o.mss + option, self.o.mss + option]
            sizes[self.rng.randrange(2)] += self.rng.choice((0, 12, 7000))
            self.see(Frame(self.begin + away, True, -1, 0, 0, SYN, mss=sizes[0]))
            self.see(Frame(self.begin + back, False, -1, 0, 0, SYN | ACK, mss=sizes[1]))
            third = open_at if sender else open_at + self.away
            self.see(Frame(third + 1e-5, True, 0, 0, 0))
        self.at(open_at + 2e-5, "go")
        self.at(open_at + 0.3, "timer", 0)
        now, count = open_at, len(self.starts) - 1
        while self.events and self.una < count:
            now, _, what, more = heapq.heappop(self.events)
            getattr(self, what)(now, *more)
        if self.o.fins:
            end = self.starts[-1]
            shift = 0.0 if sender else self.away
            self.see(Frame(now + 1e-4 + shift, True, end, 0, 0, FIN | ACK))
            self.see(Frame(now + 0.1 + shift, False, 0, 0, end + 1))
        self.frames.sort(key=lambda frame: frame.time)
        self.truth.delivered, self.truth.base = self.starts[-1], self.away + self.back
        return now + 0.3

    def see(self, frame: Frame) -> None:
        side = 0 if frame.forward else 1
        frame.ident = frame.ident or self.ident(side)
        if self.o.stamps and not frame.stamp:
            frame.stamp, frame.echo = self.stamp(side, frame.time), self.echo[side]
        self.frames.append(frame)

    def go(self, now: float) -> None:
        while self.next < min(self.una + self.o.window, len(self.starts) - 1):
            self.send(now, self.next)
            self.next += 1

    def send(self, now: float, i: int) -> None:
        size, again = self.starts[i + 1] - self.starts[i], i in self.first or i < self.next
        self.truth.sent += size
        self.truth.again += size * again
        self.first[i] = -1.0 if again else now
        frame = Frame(now, True, self.starts[i], size, 0, again=again)
        frame.ident = self.ident(0)
        if self.o.stamps:
            frame.stamp, frame.echo = self.stamp(0, now), self.echo[0]
        if self.o.at == "sender":
            self.frames.append(frame)
        if self.rng.random() < self.o.loss:
            return
        self.free = max(self.free, now) + 1 / self.rate
        late = self.rng.uniform(0.001, 0.02) if self.rng.random() < self.o.swapped else 0.0
        self.at(self.free + self.away + late, "arrive", i, frame)
        if self.rng.random() < self.o.repeated:
            self.at(self.free + self.away + late + 0.0007, "arrive", i, frame)

    def arrive(self, now: float, i: int, sent: Frame) -> None:
        if self.o.at == "receiver":
            self.frames.append(Frame(**{**sent.__dict__, "time": now}))
        usual = i == self.cum
        self.got.add(i)
        while self.cum in self.got:
            self.cum += 1
        if usual or not self.o.stamps:
            self.echo[1] = sent.stamp
        self.unacked += 1
        if not usual or not self.o.delayed_ack or self.unacked >= 2:
            self.answer(now, self.cum)
        else:
            self.at(now + 0.04, "late", self.cum)

    def late(self, now: float, cum: int) -> None:
        if self.unacked and cum == self.cum:
            self.answer(now, cum)

    def answer(self, now: float, cum: int) -> None:
        self.unacked = 0
        frame = Frame(now + 1e-5, False, 0, 0, self.starts[cum])
        frame.ident = self.ident(1)
        if self.o.stamps:
            frame.stamp, frame.echo = self.stamp(1, now), self.echo[1]
        if self.o.at == "receiver":
            self.frames.append(frame)
        self.at(max(now + self.back, self.latest + 1e-6), "returned", cum, frame)
        self.latest = max(now + self.back, self.latest + 1e-6)

    def returned(self, now: float, cum: int, frame: Frame) -> None:
        if self.o.at == "sender":
            self.frames.append(Frame(**{**frame.__dict__, "time": now}))
        self.echo[0] = frame.stamp
        if cum > self.una:
            if self.first[cum - 1] >= 0:
                self.truth.rtts.append(now - self.first[cum - 1])
            self.una, self.dups = cum, 0
            self.at(now + 0.3, "timer", cum)
            self.go(now)
        else:
            self.dups += 1
            if self.dups == 3:
                self.send(now, self.una)

    def timer(self, now: float, una: int) -> None:
        if una == self.una:
            self.send(now, una)
            self.at(now + 0.3, "timer", una)


@dataclass
class Capture:
    """A file's bytes, and the true values of its connections."""

    data: bytes
    truths: list[Truth]
    frames: list[Frame]


def make(options: Options, rng: random.Random) -> Capture:
    """Connections on one pair of ports, one after the other, as one file."""
    begin, frames, truths, isns = 1.0, list[tuple[Frame, int]](), [], []
    for number in range(options.connections):
        one = Connection(options, rng, begin)
        begin = one.run()
        isns.append((_near_the_end(rng, 20_000), _near_the_end(rng, 20_000)))
        seen = _merged(one.frames, options)[options.skipped :]
        if options.skipped:
            _since(one.truth, seen)
        frames += [(frame, number) for frame in _copied(seen, options, rng)]
        truths.append(one.truth)
    if options.stray:
        where = rng.randrange(len(frames))
        stray = Frame(frames[where][0].time, False, 0, 0, rng.randrange(2**31), RST | ACK)
        frames.insert(where, (stray, frames[where][1]))
    records, shift = [], 0.0
    steps = {rng.randrange(1, len(frames) + 1) for _ in range(options.steps)}
    for i, (frame, number) in enumerate(frames):
        shift -= rng.uniform(0.002, 30.0) if i in steps else 0.0
        records.append((1000.0 + frame.time + shift, *_bytes(frame, isns[number], options)))
    write = _pcapng if options.ng else _pcap
    return Capture(write(records, options.snap), truths, [frame for frame, _ in frames])


def _merged(frames: list[Frame], options: Options) -> list[Frame]:
    """Neighbouring data frames that continue each other become one, as network cards merge them."""
    result: list[Frame] = []
    for frame in frames:
        last = result[-1] if result else None
        if (
            last is not None
            and frame.forward
            and frame.size
            and last.size
            and last.seq + last.size == frame.seq
            and last.stamp == frame.stamp
            and last.again == frame.again
            and last.size % options.mss == 0
            and last.size < options.merged * options.mss
            and frame.time - last.time < (2e-4 if options.at == "sender" else 5e-3)
        ):
            last.size, last.time = last.size + frame.size, frame.time
        else:
            result.append(Frame(**frame.__dict__))
    return result


def _copied(frames: list[Frame], options: Options, rng: random.Random) -> list[Frame]:
    result = []
    for frame in frames:
        result.append(frame)
        if rng.random() < options.copied and not frame.flags & SYN:
            result.append(Frame(**{**frame.__dict__, "time": frame.time + 2e-6}))
    return sorted(result, key=lambda frame: frame.time)


def _since(truth: Truth, frames: list[Frame]) -> None:
    """The true values for a capture that began later, from the byte of its first segment on."""
    data = [frame for frame in frames if frame.size]
    if not data:
        truth.delivered = truth.sent = truth.again = 0
        return
    first = data[0].seq
    for frame in frames:  # reordered: the flow begins with the lowest byte before an ACK beyond
        if frame.size:
            first = min(first, frame.seq)
        elif not frame.forward and frame.ack > first and frame.time > data[0].time:
            break
    truth.delivered -= first
    truth.sent = sum(frame.size for frame in data)
    truth.again = sum(frame.size for frame in data if frame.again)


def _bytes(frame: Frame, isns: tuple[int, int], o: Options) -> tuple[bytes, int]:
    """The bytes of the frame, and its length before it was cut."""
    mine, other = isns if frame.forward else isns[::-1]
    options = b""
    if frame.mss:
        options += struct.pack(">BBH", 2, 4, frame.mss)
    if o.stamps:
        options += b"\x01\x01\x08\x0a" + struct.pack(">II", frame.stamp, frame.echo)
    ports = (40000, 5001) if frame.forward else (5001, 40000)
    number = (other + 1 + frame.ack) % 2**32 if frame.flags & ACK else 0
    if frame.flags & SYN:
        number = (other + 1) % 2**32 if frame.flags & ACK else 0
    offset = (20 + len(options)) << 2
    seq = (mine + 1 + frame.seq) % 2**32
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, number, offset, frame.flags, 512, 0, 0) + options
    source, sink = ENDS[o.version] if frame.forward else ENDS[o.version][::-1]
    length = len(tcp) + frame.size + (20 if o.version == 4 else 0)
    said = 0 if length > 65535 or (o.zero_length and frame.size > o.mss) else length
    if o.version == 4:
        head = struct.pack(">BBHHHBBH", 0x45, 0, said, frame.ident, 0x4000, 64, 6, 0)
        ip = head + source + sink
    else:
        ip = struct.pack(">IHBB", 6 << 28, said, 6, 64) + source + sink
    kind = 0x0800 if o.version == 4 else 0x86DD
    tags = b"".join(struct.pack(">HH", 0x8100, 7) for _ in range(o.vlans))
    whole = bytes(12) + tags + struct.pack(">H", kind) + ip + tcp
    return (whole + bytes(max(min(frame.size, o.snap), 0)))[: o.snap], len(whole) + frame.size


def _pcap(records: list[tuple[float, bytes, int]], snap: int) -> bytes:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, 1)]
    for time, data, whole in records:
        micros = round((EPOCH + time) * 1e6)
        parts += [struct.pack("<IIII", *divmod(micros, 10**6), len(data), whole), data]
    return b"".join(parts)


def _pcapng(records: list[tuple[float, bytes, int]], snap: int) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = len(body) + 12
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts.append(block(1, struct.pack("<HHI", 1, 0, snap)))
    for time, data, whole in records:
        high, low = divmod(round((EPOCH + time) * 1e6), 2**32)
        parts.append(block(6, struct.pack("<IIIII", 0, high, low, len(data), whole) + data))
    return b"".join(parts)


def wrong(options: Options, capture: Capture, path: Path) -> tuple[str, str]:
    """The errors of a reading of the capture; and what it says about retransmissions.

    Delivered bytes must be exact; packets, too, unless the trace doubts their size.  Sent and
    retransmitted packets must be exact or unknown.
    """
    path.write_bytes(capture.data)
    trace = read(path)
    truths = [truth for truth in capture.truths if truth.sent]
    if len(trace.flows) != len(truths):
        return f"{len(trace.flows)} flows of {len(truths)}", ""
    size, lengths = trace.get("payload"), np.diff(trace.edges)[:, None]
    rate = trace.get("throughput")
    got = np.nansum(rate * lengths, axis=0) * size
    found, said = [], "exact"
    for i, truth in enumerate(truths):
        full = min(options.mss, max(frame.size for frame in capture.frames))
        if size[i] != full and "known-packet-size" not in trace.doubts:
            found.append(f"packets of {size[i]:g} B, not {full}")
        if abs(got[i] - truth.delivered) > 1e-6:
            found.append(f"delivered {got[i]:.6f} B of {truth.delivered}")
        for name, true in (("sent", truth.sent), ("retransmits", truth.again)):
            values = trace.get(name)
            if values is None or np.isnan(values[:, i]).all():
                said = "unknown"
                if not trace.doubts:
                    found.append(f"{name} unknown, and no word why")
            elif abs(np.sum(values[:, i]) * size[i] - true) > 1e-6:
                found.append(f"{name} {np.sum(values[:, i]) * size[i]:.6f} B of {true}")
        found += _wrong_rtt(trace, i, truth, options)
    return "; ".join(found), said


def _wrong_rtt(trace: Trace, i: int, truth: Truth, options: Options) -> list[str]:
    """Every measured RTT must be among the true ones (at the sender.

    Apart from clock and ticks).
    """
    least, most = trace.get("rtt_min"), trace.get("rtt")
    if least is None or most is None or np.isnan(least[:, i]).all() or "whole-rtt" in trace.doubts:
        return []
    if not truth.rtts:
        return [] if options.skipped else ["an RTT of nothing"]
    floor = min(truth.rtts) - 2e-6 if options.at == "sender" else truth.base - 2.1e-3  # ticks
    low, high = float(np.nanmin(least[:, i])), float(np.nanmax(most[:, i]))
    if low < floor:
        return [f"RTT of {low}, at least {floor}"]
    if options.at == "sender" and high > max(truth.rtts) + 2e-6:
        return [f"RTT of {high}, at most {max(truth.rtts)}"]
    return []


def told(options: Options) -> bool:
    """Whether the capture reveals retransmissions: it is at the sender, and frames have marks."""
    marked = options.ids or not (options.copied or options.loss or options.swapped)
    return options.at == "sender" and options.syns and marked and not options.steps
