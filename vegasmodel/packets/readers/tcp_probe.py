"""Reads the text output of the Linux tracepoint ``tcp:tcp_probe``.

Such text may come from trace-cmd, ftrace or ``perf script``. The kernel writes an event for every
packet that a socket receives, before it handles the packet. So the effect of an ACK shows only in
the socket's next event.

Delivered bytes are the growth of ``snd_una``. A socket whose ``snd_una`` never changes sends no
data and is left out. An event does not contain the packet size; we infer it from the numbers of
bytes that ACKs acknowledge.
"""

from __future__ import annotations

import math
import re

from vegasmodel.packets.readers.ethernet import MOST_DATA, USUAL_DATA
from vegasmodel.packets.readers.snapshots import Snapshots
from vegasmodel.packets.readers.source import MAX_TIME, Source
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import MAX_FLOWS

SAMPLE_STEP = 0.005  # seconds: of a flow's events in such a step of time, only the last is kept
MIN_PAYLOAD = 256  # bytes: full packets with less data are not expected
_EVENT = re.compile(r"\s(\d{1,12}\.\d{1,9}): (?:tcp:)?tcp_probe:\s+(.*)")  # time, and the fields
# a field that is read: its name and its value
_FIELD = re.compile(r"(src|dest|snd_nxt|snd_una|snd_cwnd|srtt|sock_cookie)=(\S{1,80})")
# a note that the kernel had no room for some events
_LOST = re.compile(r"\[?LOST (\d{1,12}) EVENTS|lost (\d{1,12}) events", re.IGNORECASE)
_REQUIRED = ("src", "dest", "snd_nxt", "snd_una", "snd_cwnd")  # fields that every event must have


class _Socket:
    """The state of one connection while the file is read.

    - ``cookie``: the socket's number in the kernel (socket cookie); empty if the file lacks it.
    - ``una``, ``high``: ``snd_una`` and ``snd_nxt`` at the latest event.
    - ``bytes``: the bytes acknowledged so far.
    - ``divisor``: the greatest common divisor of the steps by which ``snd_una`` has grown.
    - ``number``: 1 for the first connection between the same two ends, 2 for the next, and so on.
    """

    __slots__ = ("bytes", "cookie", "divisor", "high", "number", "una")

    def __init__(self, cookie: str, una: int, high: int, number: int) -> None:
        self.cookie, self.una, self.high, self.number = cookie, una, high, number
        self.bytes = self.divisor = 0


def matches(head: bytes) -> bool:
    """Whether the beginning of the file contains an event of the tracepoint ``tcp_probe``."""
    return b"tcp_probe: " in head and b"snd_una=" in head


def read(source: Source) -> Trace:
    """Read the text of all ``tcp_probe`` events.  A ``TraceError`` names the line at fault."""
    snapshots, lost = Snapshots(source), 0  # ``lost``: events that the kernel could not store
    snapshots.width, snapshots.from_zero = SAMPLE_STEP, True
    origin = math.nan  # time of the first event, s
    sockets: dict[str, _Socket] = {}  # the two ends -> the current connection between them
    flows: dict[str, _Socket] = {}  # name of a flow -> its connection, also if it has ended
    for number, text in source.lines():
        event = _EVENT.search(text)
        if event is None:
            lost += _lost_events(source, number, text)
            continue
        fields = dict(_FIELD.findall(event[2]))
        if any(key not in fields for key in _REQUIRED):
            source.fail(f"line {number}", event[2][:60], f"the fields {', '.join(_REQUIRED)}")
        time = source.number(event[1], number, "a time", 0.0, MAX_TIME)
        origin = time if math.isnan(origin) else origin
        una, high = (_sequence(source, number, fields[key]) for key in ("snd_una", "snd_nxt"))
        # the flow is named after its two ends; later connections between them get a number
        ends = f"{fields['src']}>{fields['dest']}"
        socket = _follow(sockets, ends, fields.get("sock_cookie", ""), una, high)
        flow = f"{ends} #{socket.number}" if socket.number > 1 else ends
        if flow not in flows and len(flows) == MAX_FLOWS:
            source.fail(f"line {number}", flow[:60], f"at most {MAX_FLOWS} sockets")
        flows[flow] = socket
        sample = {
            "bytes": float(socket.bytes),
            "window": source.number(fields["snd_cwnd"], number, "snd_cwnd", 0.0, 2**32),
        }
        if "srtt" in fields:
            srtt = source.number(fields["srtt"], number, "srtt", 0.0, 2**32) * 1e-6
            sample["rtt"] = srtt or math.nan  # the kernel writes 0 before the first measurement
        snapshots.add(number, time - origin, flow, sample, 1.0)
    # a socket that has not sent any acknowledged data is left out
    snapshots.keep({flow for flow, socket in flows.items() if socket.bytes})
    for flow in snapshots.latest:
        snapshots.payload[flow] = _payload(flows[flow].divisor)
    about = {
        "format": "tcp:tcp_probe",
        "throughput": "growth of snd_una, without that by the last ACK",
        "window": "the kernel's cwnd",
        "rtt": "the kernel's smoothed RTT",
        "origin": repr(origin),
    }
    doubts = {
        "known-packet-size": "events do not state it; it is inferred from the numbers of bytes "
        "that ACKs acknowledge"
    }
    if lost:
        doubts["every-event"] = f"{lost} events were lost, of this or other kinds"
    return snapshots.trace("linux", about, doubts)


def _lost_events(source: Source, line: int, text: str) -> int:
    """The number of events that the kernel lost, as stated in a line that is no such event.

    It is 0 if the line does not speak of lost events. Raises ``TraceError`` if the line seems to be
    an event, but has no time.
    """
    if "tcp_probe: " in text:
        source.fail(f"line {line}", text.strip()[:60], "a time in seconds before tcp_probe")
    note = _LOST.search(text)
    return int(note[1] or note[2]) if note else 0


def _sequence(source: Source, line: int, text: str) -> int:
    """Convert a sequence number from the kernel's form: hexadecimal, usually after ``0x``."""
    if not re.fullmatch(r"(0x)?[0-9a-f]{1,8}", text):
        source.fail(f"line {line}", text[:60], "a sequence number such as 0x1a2b")
    return int(text, 16)


def _follow(sockets: dict[str, _Socket], ends: str, cookie: str, una: int, high: int) -> _Socket:
    """Find the connection to which an event belongs, and update it.

    ``ends`` is the text ``SOURCE>DESTINATION`` of the event; ``sockets`` has the latest connection
    by this text. ``una`` and ``high`` are the event's ``snd_una`` and ``snd_nxt``; ``cookie`` is
    the socket's number in the kernel, or empty. A new connection has begun if the cookie has
    changed or ``snd_una`` has decreased. If the file has no cookies, a new connection has also
    begun if ``snd_una`` is above ``snd_nxt`` of the last event.
    """
    known = sockets.get(ends)
    if known is not None:
        step = (una - known.una) & 0xFFFFFFFF  # bytes acknowledged since the last event
        in_flight = (known.high - known.una) & 0xFFFFFFFF  # bytes at the last event
        # sequence numbers count modulo 2**32: a step of 2**31 or more means that ``una`` decreased
        same_connection = (
            known.cookie == cookie and step < 0x80000000 if cookie else step <= in_flight
        )
        if same_connection:
            known.bytes += step
            known.divisor = math.gcd(known.divisor, step)
            known.una, known.high = una, high
            return known
    number = known.number + 1 if known is not None else 1
    found = sockets[ends] = _Socket(cookie, una, high, number)
    return found


def _payload(divisor: int) -> float:
    """The bytes of data in a full packet, inferred from the steps by which ``snd_una`` has grown.

    ``divisor`` is the greatest common divisor of these steps. The result is the largest factor of
    ``divisor`` from ``MIN_PAYLOAD`` to ``MOST_DATA`` bytes. If there is no such factor, the result
    is ``USUAL_DATA``, the most common size. It is ``USUAL_DATA`` also if ``divisor`` is 2**20 or
    more, because a search for the factors of such a number would take too long.
    """
    for parts in range(1, 1 + divisor // MIN_PAYLOAD if divisor < 1 << 20 else 1):
        if divisor % parts == 0 and divisor // parts <= MOST_DATA:
            return float(divisor // parts)
    return float(USUAL_DATA)
