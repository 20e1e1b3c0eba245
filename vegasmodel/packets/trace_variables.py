"""Lists a trace's variables, and the limits on its values and size; defines ``TraceError``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vegasmodel.fields.errors import FieldError, printable, show

__all__ = ["VARIABLES", "TraceError", "Variable"]

SCHEMA = 1  # version of the format of trace files
MAX_FLOWS = 10_000
MAX_LINKS = 10_000
MAX_NAME = 500  # characters of a flow's or link's name: an array of names is as wide as the longest
TIMES = ("first", "last")  # variables that may be negative, because a trace may begin before 0 s
# what a trace's ``provenance`` says of throughputs that count data as they arrive; throughputs from
# ACK numbers stop instead while a lost packet is repaired
ARRIVING = "data that arrived"
LARGEST = 1e12  # no value is larger, in packets, packets per second or seconds


class TraceError(FieldError):
    """Raised if a trace file cannot be read.

    The message names the file, the place in it, the value found there and what is expected.
    """

    def __init__(self, path: str | Path, place: str, value: object, expected: str) -> None:
        name = printable(str(path))
        where = f"{name}, {place}" if place else name
        super().__init__(where, value, f"expected {expected}")
        self.args = (f"{where}: found {show(value)}, expected {expected}",)

    @classmethod
    def unreadable(cls, path: str | Path, reason: str) -> TraceError:
        """The error that says that a file cannot be opened or read, and gives ``reason``."""
        name = Path(path).name or str(path)
        error = cls(path, "", name, "a readable file")
        error.args = (f"{printable(str(path))}: {show(name)} cannot be read; {reason}",)
        return error


class Variable(NamedTuple):
    """Describes a variable of a trace, such as the RTT: its unit and its meaning.

    A variable has one value per interval and per flow or link; ``over`` is ``"flow"`` or
    ``"link"``.  If it is ``static``, it has one value per flow for the whole trace.
    """

    over: str
    unit: str
    meaning: str
    static: bool = False


VARIABLES = {
    "throughput": Variable("flow", "pkt/s", "packets delivered for the first time per second"),
    "sent": Variable("flow", "pkt", "data packets sent in the interval, again or not"),
    "retransmits": Variable("flow", "pkt", "data packets sent again in the interval"),
    "loss": Variable("flow", "pkt", "data packets dropped in the interval"),
    "acks": Variable("flow", "pkt", "ACKs that reached the source in the interval"),
    "window": Variable("flow", "pkt", "congestion window, or packets in flight; provenance says"),
    "rtt": Variable("flow", "s", "mean round-trip time of the interval"),
    "rtt_min": Variable("flow", "s", "smallest round-trip time of the interval"),
    "base_rtt": Variable("flow", "s", "the source's own baseRTT"),
    "queue": Variable("link", "pkt", "waiting packets, mean over the interval"),
    "queue_max": Variable("link", "pkt", "waiting packets, largest of the interval"),
    "served": Variable("link", "pkt/s", "packets sent into the link per second"),
    "served_size": Variable("link", "B", "mean size of the packets sent into the link"),
    "first": Variable("flow", "s", "time of the flow's first packet", static=True),
    "last": Variable("flow", "s", "time of the flow's last packet", static=True),
    "packet_size": Variable("flow", "B", "bytes of a full data packet", static=True),
    "payload": Variable("flow", "B", "bytes of data that count as one packet", static=True),
    "packets_per_ack": Variable(
        "flow", "pkt", "packets that an ACK acknowledges, median over the packets", static=True
    ),
    "sent_at_acks": Variable(
        "flow",
        "",
        "part of the packets sent at the time when an ACK arrived",
        static=True,
    ),
    "syn": Variable("flow", "", "1 if packet 0 was a SYN without data, else 0", static=True),
}
