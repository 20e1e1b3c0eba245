"""Reads the XML file of ns-3's FlowMonitor, which has only totals for each flow's whole life.

Such a file becomes a trace with a single interval. FlowMonitor counts the ACKs of a flow as another
flow, in the reverse direction and with smaller packets. The trace leaves this other flow out.

- The size of a TCP flow's data packets is the mean size of its packets without the first two. These
  are the SYN and the ACK that follows, which have no data.
- The throughput counts all packets received, because FlowMonitor does not distinguish
  retransmissions.
- The RTT of a flow is the mean delay of its packets plus the mean delay of its ACKs.
- The smallest RTT is the delay of the first packet in one direction plus that of the first packet
  in the other. These are the SYN and the SYN-ACK, which pass the queue before the flow fills it.
  The result is slightly too short for data, because a SYN is smaller than a data packet and is
  transmitted faster. If these delays are unknown or the mean RTT is smaller, the mean RTT is taken.

A file with a document type declaration is refused: FlowMonitor writes none, and such a declaration
can make a small file expand to a huge one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from vegasmodel.fields.errors import exactly
from vegasmodel.metrics import Floats
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.sizes import HEADERS
from vegasmodel.packets.trace import Trace, assemble
from vegasmodel.packets.trace_variables import MAX_FLOWS

CHUNK = 1 << 16  # bytes read at a time
MAX_PENDING = 1 << 20  # bytes of one tag; the parser has to keep them in memory
MAX_DEPTH = 32  # levels of nested elements
MAX_COUNT = 1e15  # packets or bytes
MAX_SECONDS = 1e9  # largest time
_NUMBER = re.compile(  # a number, maybe with a unit of time: "+7.2e+08ns"
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?)(s|ms|us|ns|ps|fs)?", re.IGNORECASE
)
# seconds per unit; a time without a unit is in ns
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15, None: 1e-9}
# attributes of a flow in the file: times, and numbers of packets and bytes
_TIMES = ("timeFirstTxPacket", "timeLastTxPacket", "timeLastRxPacket", "delaySum")
_FIRST = "timeFirstRxPacket"  # a time that may be missing
_COUNTS = ("txBytes", "txPackets", "rxPackets", "lostPackets")
TCP = "6"  # the protocol's number in IP
Stats = dict[str, float]  # the attributes of one flow; times in s


class Address(NamedTuple):
    """The addresses and ports of a flow's two ends, and the number of its protocol in IP."""

    source: str
    source_port: str
    destination: str
    destination_port: str
    protocol: str


def matches(head: bytes) -> bool:
    """Whether the file begins like the XML of ns-3's FlowMonitor."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<FlowMonitor" in head


def read(source: Source) -> Trace:
    """Read the whole XML file.  If a line is wrong, a ``TraceError`` names it."""
    document = _Document(source)
    document.parse()
    flows = {key: stats for key, stats in document.flows.items() if stats["rxPackets"] > 0}
    names = {key: _name(key, document.addresses) for key in flows}
    if len(set(names.values())) < len(names):
        names = {key: f"{name} #{key}" for key, name in names.items()}
    by_address = {document.addresses[key]: key for key in flows if key in document.addresses}
    chosen, rtts, least = [], [], []
    for key, stats in flows.items():
        address = document.addresses.get(key)
        reverse_key = by_address.get(_reversed(address)) if address else None
        # the flow from sink to source
        reverse = flows.get(reverse_key) if reverse_key is not None else None
        if reverse is not None and _size(reverse) > _size(stats):
            continue  # the reverse flow has larger packets, so this one consists of its ACKs
        chosen.append(key)
        rtts.append(_mean_delay(stats) + _mean_delay(reverse))
        least.append(_first_delay(stats) + _first_delay(reverse))
    if not chosen:
        source.fail("", "no flow", "a flow that received packets")

    def column(name: str) -> Floats:
        """The attribute ``name`` of each of these flows."""
        return np.array([flows[key][name] for key in chosen])

    begin = float(column("timeFirstTxPacket").min())
    end = float(column("timeLastRxPacket").max())
    if not end > begin:
        source.fail("", end, "a flow that lasts longer than an instant")
    # the file has totals only, so the trace has a single interval: [None] makes arrays [1, flow]
    variables = {
        "throughput": column("rxPackets")[None] / (end - begin),
        "sent": column("txPackets")[None],
        "loss": column("lostPackets")[None],
        "rtt": np.array(rtts)[None],
        "rtt_min": np.fmin(least, rtts)[None],
        "first": column("timeFirstTxPacket"),
        "last": column("timeLastRxPacket"),
        "packet_size": np.array([_data_size(flows[k], document.addresses.get(k)) for k in chosen]),
    }
    about = {
        "format": "ns-3 FlowMonitor",
        "throughput": "packets received, repeats included",
        "rtt": "mean delay of the data plus mean delay of the ACKs",
        "rtt_min": "delay of the flow's first packet plus that of the first packet back",
        "packet_size": "the mean without the SYN and the first ACK, in whole bytes",
    }
    return assemble(
        "ns3", [end], [names[key] for key in chosen], variables, begin=begin, provenance=about
    )


class _Document:
    """Parses the XML of ns-3's FlowMonitor with expat, piece by piece to save memory.

    The dictionaries ``flows`` and ``addresses`` hold the statistics of each flow, and its addresses
    and ports, by the flow's id.
    """

    def __init__(self, source: Source) -> None:
        """Prepare the parser expat, which calls a method at the start and end of each element."""
        self.source = source
        self.flows: dict[int, Stats] = {}
        self.addresses: dict[int, Address] = {}
        self.path: list[str] = []  # names of the open elements, the outermost first
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse

    def parse(self) -> None:
        """Parse the file in chunks; raise ``TraceError`` if it is not XML of FlowMonitor."""
        source, fed = self.source, 0  # ``fed``: bytes that the parser has got so far
        source.file.seek(source.start)
        try:
            while chunk := source.file.read(CHUNK):
                self.parser.Parse(chunk, False)
                fed += len(chunk)
                if fed - self.parser.CurrentByteIndex > MAX_PENDING:
                    self._fail("a long tag", f"tags of at most {MAX_PENDING} bytes")
            self.parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, UnicodeError) as error:
            reason = expat.errors.messages.get(getattr(error, "code", 0), "encoding")
            self._fail(reason, "well-formed XML of FlowMonitor")

    def _fail(self, value: object, expected: str) -> None:
        """Raise ``TraceError``: the present line has ``value``, but should have ``expected``."""
        self.source.fail(f"line {self.parser.CurrentLineNumber}", value, expected)

    def _refuse(self, *_: object) -> None:
        """Refuse a document type or an entity; expat calls this at its declaration."""
        self._fail("a document type", "XML without document types and entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Process the beginning of an element; expat calls this with its name and attributes.

        An element ``Flow`` on the third level has the statistics of a flow or its addresses.
        """
        if not self.path and name != "FlowMonitor":
            self._fail(name[:60], "the element FlowMonitor")
        if len(self.path) >= MAX_DEPTH:
            self._fail("deep nesting", f"at most {MAX_DEPTH} levels")
        self.path.append(name)
        if name != "Flow" or len(self.path) != 3:
            return
        key = int(self._value(attributes, "flowId", 1e9))
        if self.path[1] == "FlowStats":
            self._check_new(key, self.flows)
            self.flows[key] = self._statistics(attributes)
            self._consistent(self.flows[key])
        elif self.path[1] in ("Ipv4FlowClassifier", "Ipv6FlowClassifier"):
            self._check_new(key, self.addresses)
            self.addresses[key] = Address(
                self._text(attributes, "sourceAddress", 50),
                self._text(attributes, "sourcePort", 50),
                self._text(attributes, "destinationAddress", 50),
                self._text(attributes, "destinationPort", 50),
                self._text(attributes, "protocol", 5),
            )

    def _check_new(self, key: int, known: Mapping[int, object]) -> None:
        """Raise ``TraceError`` if the flow is ``known`` already, or if there are too many flows.

        ACKs are flows, too, so the limit is twice that of a trace.
        """
        if key in known:
            self._fail(key, "each flowId once")
        if len(known) == 2 * MAX_FLOWS:
            self._fail(f"flow {2 * MAX_FLOWS + 1}", f"at most {2 * MAX_FLOWS} flows")

    def _statistics(self, attributes: dict[str, str]) -> Stats:
        """The statistics of a flow, from the attributes of its element."""
        times = [*_TIMES, *([_FIRST] if _FIRST in attributes else [])]
        stats = {key: self._value(attributes, key, MAX_SECONDS, seconds=True) for key in times}
        return stats | {key: self._value(attributes, key, MAX_COUNT) for key in _COUNTS}

    def _consistent(self, stats: Stats) -> None:
        """Raise ``TraceError`` if a flow received or lost more packets than it sent."""
        sent = stats["txPackets"]
        for what in ("rxPackets", "lostPackets"):
            if stats[what] > sent:
                self._fail(exactly(stats[what]), f"{what} of at most the {exactly(sent)} sent")

    def _text(self, attributes: dict[str, str], name: str, longest: int) -> str:
        """The attribute ``name``, of at most ``longest`` characters; "?" if it is missing."""
        text = attributes.get(name, "?")
        if len(text) > longest:
            self._fail(text[:60], f"{name} of at most {longest} characters")
        return text

    def _end(self, _: str) -> None:
        """Process the end of an element."""
        self.path.pop()

    def _value(
        self, attributes: dict[str, str], name: str, high: float, *, seconds: bool = False
    ) -> float:
        """The number in the attribute ``name``, at most ``high``; a time, in s, if ``seconds``."""
        text = attributes.get(name, "")
        found = _NUMBER.fullmatch(text) if len(text) < 64 else None
        value = float(found[1]) * (_UNITS[found[2]] if seconds else 1.0) if found else math.nan
        if not 0 <= value <= high or (found and found[2] and not seconds):
            kind = 'a time such as "+7.2e+08ns"' if seconds else "a number"
            self._fail(text[:60], f"{name}, {kind} from 0 to {exactly(high)}")
        return value


def _mean_delay(stats: Stats | None) -> float:
    """The mean delay of a flow's packets, s; NaN if the flow is unknown."""
    return stats["delaySum"] / stats["rxPackets"] if stats is not None else math.nan


def _first_delay(stats: Stats | None) -> float:
    """The delay of a flow's first packet, s; NaN if it is unknown."""
    delay = stats.get(_FIRST, math.nan) - stats["timeFirstTxPacket"] if stats else math.nan
    return delay if delay > 0.0 else math.nan


def _size(stats: Stats) -> float:
    """The mean size of a flow's packets in bytes, including the IP header; NaN if it sent none."""
    return stats["txBytes"] / stats["txPackets"] if stats["txPackets"] else math.nan


def _data_size(stats: Stats, address: Address | None) -> float:
    """The size of a flow's data packets in bytes, including the IP header; NaN if it sent none.

    For TCP, the SYN and the ACK that follows are left out, because they have no data.
    """
    packets = stats["txPackets"] - 2.0
    if address is None or address.protocol != TCP or packets < 1.0:
        return _size(stats)
    return float(max(round((stats["txBytes"] - 2.0 * HEADERS) / packets), 1))


def _name(key: int, addresses: dict[int, Address]) -> str:
    """The name ``source>destination`` of the flow with the id ``key``; the id if unknown."""
    known = addresses.get(key)
    if known is None:
        return str(key)
    return f"{known.source}:{known.source_port}>{known.destination}:{known.destination_port}"


def _reversed(address: Address) -> Address:
    """The address of the flow in the other direction: source and destination change places."""
    source, source_port, destination, destination_port, protocol = address
    return Address(destination, destination_port, source, source_port, protocol)
