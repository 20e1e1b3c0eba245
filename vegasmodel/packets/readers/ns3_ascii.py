"""Reads ns-3's ascii traces of TCP over IPv4; each line is an event at a network device.

The first character of a line names the event: ``+`` a packet joins the device's transmit queue,
``-`` it leaves this queue, ``t`` it is transmitted, ``r`` it is received, ``d`` it is dropped.

Each flow is counted at its first device, the first one in the trace that sends the flow's data. The
reader counts the data that this device sends and the ACKs that it receives, like a capture made
there. Drops are counted at every device. The transmit queue of each device becomes a link of the
trace, named ``node/device``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vegasmodel.packets.readers import connections_trace
from vegasmodel.packets.readers.bins import QUEUE_MAX, SERVED, WAITED, Bins
from vegasmodel.packets.readers.connections import Connections, Key
from vegasmodel.packets.readers.source import MAX_TIME, Source
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import MAX_LINKS

# how a line begins: event, time, number of the node, number of the device, rest of the path
_LINE = re.compile(
    r"([-+drt]) (\S{1,40}) /NodeList/(\d{1,9})/"
    r"(?:DeviceList/(\d{1,9})|\$ns3::Ipv4L3Protocol)(\S*)"
)
# in the IPv4 header: bytes after it, source and destination address
_IP = re.compile(r"length: (\d{1,9}) ([\d.]{7,15}) > ([\d.]{7,15})\)")
_TCP = re.compile(  # the TCP header: ports, flags, sequence number, ACK number
    r"ns3::TcpHeader \((\d{1,5}) > (\d{1,5}) \[([^]]{0,60})\] Seq=(\d{1,10}) Ack=(\d{1,10})"
)
_ID = re.compile(r"Ipv4Header \([^)]{0,120}? id (\d{1,9})")  # IPv4 identifier
_STAMP = re.compile(r"TcpOptionTimestamp\((\d{1,10});(\d{1,10})\)")  # TCP timestamp and its echo
# the data: bytes in a packet, or the first and the last position of a part of such data
_PAYLOAD = re.compile(r"Payload \(size=(\d{1,9})\)|Payload Fragment \[(\d{1,9}):(\d{1,9})\]")
_HEAD = re.compile(rb"[-+drt] \S{1,40} /NodeList/\d")  # by which the format is recognised


def matches(head: bytes) -> bool:
    """Whether one of the first 50 lines looks like an event in an ascii trace of ns-3."""
    return any(_HEAD.match(line) for line in head.split(b"\n", 50)[:50])


def read(source: Source) -> Trace:
    """Read the whole ascii trace of ns-3.  If a line is wrong, a ``TraceError`` names it.

    A whole line ends with the closing parenthesis of the packet's last part, and each of its
    parentheses is closed.  If the last of several lines does not have these properties, and has no
    line break either, it was cut off, for example because ns-3 was stopped.  It is left out, and
    the trace's ``doubts`` say so.
    """
    connections = Connections(source, increasing_times=True)
    queues = _Queues(source, connections.bins)
    # flow -> the node and the device where it is counted: the first that sends its data
    counted_at: dict[Key, tuple[str, str | None]] = {}
    events = False  # whether the file has had a line with an event
    for number, text in source.lines():
        if not text or text[0] == "#":
            continue
        whole = text.endswith(")") and text.count("(") == text.count(")")
        if events and source.unended and not whole:
            source.cut_short = True
            break
        events = True
        line = _LINE.match(text)
        if line is None:
            source.fail(
                f"line {number}", text[:60], "an ns-3 event such as '+ 2.0 /NodeList/0/...'"
            )
        kind, when, node, device, _ = line.groups()
        where = f"line {number}"
        connections.clock(source.number(when, number, "a time", 0.0, MAX_TIME), where)
        if device is not None and kind in "+-":
            queues.event(f"{node}/{device}", kind, connections.now, where)
        packet = _packet(text, line.end())
        if packet is None:
            continue
        key, device_here, flags, size = packet.key, (node, device), packet.flags, packet.size
        if "SYN" in flags and kind in "+t":
            connections.syn(key, packet.seq, second="ACK" in flags, mss=0)
        sent = kind in "+t" or (kind == "d" and key in counted_at)  # the sender's queue may drop it
        if size and sent and counted_at.setdefault(key, device_here) == device_here:
            flow = connections.data(
                key,
                packet.seq,
                size,
                packet.headers,
                where,
                echo=packet.echo,
                stamp=packet.stamp,
                ident=packet.ident,
            )
            if flow is not None and " ttl 64 " in text:
                flow.at_sender = True  # no router has forwarded the packet yet
        if kind == "d":
            connections.lost(key, size)
        if "FIN" in flags and kind in "+t" and counted_at.get(key) == device_here:
            connections.fin(key, packet.seq + size)
        if (
            kind == "r"
            and "ACK" in flags
            and "RST" not in flags
            and counted_at.get(key[::-1]) == device_here
        ):
            connections.ack(key[::-1], packet.ack, stamp=packet.stamp, ident=packet.ident)
    cut = "the file ends within a line, which is left out"
    doubts = {"whole-file": cut} if source.cut_short else {}
    return connections_trace.make(
        connections,
        "ns3",
        lambda key: "{}:{}>{}:{}".format(*key[0], *key[1]),  # type: ignore[misc]  # pairs
        {"format": "ns-3 ascii"},
        ("sent", "retransmits", "loss", "acks"),
        links=list(queues.number),
        doubts=doubts,
    )


class _Packet(NamedTuple):
    """What a line of the trace says of a packet with TCP over IPv4."""

    key: Key  # the addresses and ports of the sender and the receiver
    flags: str
    seq: int
    ack: int
    size: int  # bytes of data
    headers: int  # bytes, those of IPv4 and TCP
    stamp: int  # the TCP timestamp and its echo, or -1
    echo: int
    ident: int  # of the IPv4 header, 16 bits


def _packet(text: str, begin: int) -> _Packet | None:
    """Read the packet that a line describes from position ``begin`` on; None if it has no TCP."""
    ip, tcp, identifier = _IP.search(text, begin), _TCP.search(text, begin), _ID.search(text, begin)
    if ip is None or tcp is None:
        return None
    sport, dport, seq, ack = (int(tcp[i]) for i in (1, 2, 4, 5))
    # the line may list the data in several parts, each with its size or its two ends
    size = sum(
        int(payload) if payload else max(int(b) - int(a), 0)
        for payload, a, b in _PAYLOAD.findall(text, tcp.end())
    )
    stamps = _STAMP.search(text, tcp.end())
    stamp, echo = (int(x) for x in stamps.groups()) if stamps else (-1, -1)
    key = ((ip[2], sport), (ip[3], dport))
    ident = (int(identifier[1]) if identifier else -1) & 0xFFFF
    headers = max(int(ip[1]) - size, 0)
    return _Packet(key, tcp[3], seq, ack, size, headers, stamp, echo, ident)


class _Queues:
    """Counts two kinds of packets per network device: those in its queue, and those that leave it.

    At the event ``+`` a packet joins the device's transmit queue, at ``-`` a packet leaves it.
    """

    def __init__(self, source: Source, bins: Bins) -> None:
        self.source, self.bins = source, bins
        self.number: dict[str, int] = {}  # device -> its number, the second index of Bins.link
        self.waiting: list[int] = []  # packets in the queue of each device, by its number
        self.since: list[float] = []  # time of the last event at each queue, s

    def event(self, name: str, kind: str, time: float, where: str) -> None:
        """Count a packet that joins or leaves the queue of the device ``name`` at ``time``, s.

        ``kind`` is ``+`` or ``-``. Since the last event at this queue its length was constant. The
        integral of the length over this time is added to the bins, and each bin's longest queue is
        updated. ``Bins`` counts the queue of a device as that of a link.

        If there are too many devices, a ``TraceError`` names the line of the trace by the text
        ``where``, such as "line 7".
        """
        bins, e = self.bins, self.number.get(name)
        if e is None:
            if len(self.number) == MAX_LINKS:
                self.source.fail(where, name, f"at most {MAX_LINKS} devices")
            if len(self.number) == bins.link.shape[1]:
                bins.grow_links()
            e = self.number[name] = len(self.number)
            self.waiting.append(0)
            self.since.append(time)
        waiting, since = self.waiting[e], self.since[e]
        if waiting and time > since:
            for k in range(bins.index(since), bins.index(time) + 1):
                low = bins.begin + k * bins.width  # the time at which bin k begins, s
                part = min(time, low + bins.width) - max(since, low)  # s of the time in bin k
                if part > 0:
                    bins.link[WAITED, e, k] += waiting * part
                    bins.link[QUEUE_MAX, e, k] = max(bins.link[QUEUE_MAX, e, k], waiting)
        self.since[e] = time
        self.waiting[e] = waiting + 1 if kind == "+" else max(waiting - 1, 0)
        if kind == "-":
            bins.link[SERVED, e, bins.index(time)] += 1
