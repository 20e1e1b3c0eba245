"""Reads a log of repeated outputs of ``ss -tin``, each after a line with its time.

The time is alone on its line, as ``date +%s.%N`` (seconds) or ``date -Ins`` (ISO 8601) prints it.
The output of ``ss`` follows. The details of a socket, such as cwnd, are on a second line or, with
the option ``-O``, on the socket's own line. This command writes such a log::

    while sleep 0.1; do date +%s.%N; ss -tin dst 10.0.0.2; done > log

Times count from the first output. The packets delivered in an interval are the growth of
``bytes_acked``, divided by ``mss``.
"""

from __future__ import annotations

import datetime
import math
import re

from vegasmodel.packets.readers.snapshots import Sample, Snapshots
from vegasmodel.packets.readers.source import MAX_TIME, Source
from vegasmodel.packets.trace import Trace

# the line with the time, in seconds or as ISO 8601 has it
_SECONDS = re.compile(r"[#\s]*(\d{1,12}(?:[.,]\d{1,9})?)\s*")
_ISO = re.compile(
    r"[#\s]*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[-+]\d\d:?\d\d)?\s*"
)
# the line of a socket: its state, which may be missing, the bytes in its receive and send queues,
# and the address and port of both ends
_SOCKET = re.compile(
    r"(?:[A-Z][A-Z0-9-]{2,12}\s+)?\d+\s+\d+\s+(\S{1,80}:\w{1,6})\s+(\S{1,80}:\w{1,6})(?:\s|$)"
)
# a detail of a socket that is read: its name and its value
_DETAIL = re.compile(
    r"(?:^|\s)(cwnd|rtt|minrtt|mss|bytes_acked|bytes_retrans|bytes_sent|retrans):([\d./]{1,40})"
)
# the congestion control stands before the window scales, after flags such as ts and sack
_CONTROL = re.compile(r"(?:^|\s)([a-z][a-z0-9_-]{1,15}) (?:wscale|rto):")
_FLAGS = ("ts", "sack", "ecn", "ecnseen", "fastopen")
_HEADINGS = ("State", "Netid", "Recv-Q")  # how the line with the names of the columns begins


def matches(head: bytes) -> bool:
    """Whether the file's first lines have sockets with details such as cwnd, as ``ss`` prints them.

    ``head`` holds the first bytes of the file.
    """
    text = head.decode("utf-8", "replace")
    lines = text.split("\n", 200)[:200]
    sockets = any(_SOCKET.match(line.strip()) for line in lines)
    return sockets and re.search(r"\s(cwnd|rtt|mss):\d", text) is not None


def read(source: Source) -> Trace:
    """Read a log of outputs of ``ss -tin``, each below a line with its time.

    A ``TraceError`` names the line at fault.
    """
    snapshots = Snapshots(source)
    # the times of the current output and of the first one, s; the socket of the latest line
    now, origin, flow = math.nan, math.nan, ""
    for number, text in source.lines():
        stripped = text.strip()
        if not stripped or stripped.startswith(_HEADINGS):
            continue
        when = _time(stripped)
        if when is not None:
            if not (0 <= when <= MAX_TIME and not when < now):
                source.fail(f"line {number}", stripped[:60], "a time that does not decrease")
            if math.isnan(origin):  # sockets that appear later were not open before
                origin = when
                snapshots.begin()
            now, flow = when, ""
            continue
        # the line of a socket, which may have its details, or a line of details alone
        socket = _SOCKET.match(stripped)
        if socket:
            flow, details = f"{socket[1]}>{socket[2]}", stripped[socket.end() :]
        else:
            details = stripped
        fields = dict(_DETAIL.findall(details))
        if "cwnd" not in fields:
            if not socket and not text[:1].isspace():
                source.fail(f"line {number}", stripped[:60], "a time, or what ss -tin prints")
            continue
        if math.isnan(now):
            source.fail(
                f"line {number}",
                stripped[:60],
                "a line with the time before this one: seconds since 1970, as date +%s.%N prints",
            )
        if not flow:
            source.fail(
                f"line {number}",
                stripped[:60],
                "the line with the socket's addresses before its details",
            )
        sample = _sample(source, number, fields)
        if sample is None:  # no ACK has come yet
            continue
        mss = source.number(fields["mss"], number, "mss", 1.0, 1e18)
        control = _CONTROL.search(details)
        name = control[1] if control and control[1] not in _FLAGS else ""
        snapshots.add(number, now - origin, flow, sample, mss, name)
    about = {
        "format": "ss -tin",
        "throughput": "bytes_acked / mss",
        "window": "the kernel's cwnd",
        "rtt": "the kernel's smoothed RTT",
        "base_rtt": "the kernel's minrtt",
        "origin": repr(origin),
    }
    return snapshots.trace("linux", about)


def _time(text: str) -> float | None:
    """The time on a line, in seconds since 1970; ``None`` if the line holds something else."""
    found = _SECONDS.fullmatch(text)
    if found:
        return float(found[1].replace(",", "."))
    found = _ISO.fullmatch(text)
    if not found:
        return None
    zone = "+00:00" if found[3] in (None, "Z") else found[3]
    try:
        moment = datetime.datetime.fromisoformat(found[1].replace(" ", "T") + zone)
    except ValueError:
        return None
    return moment.timestamp() + float(f"0.{found[2] or 0}")


def _sample(source: Source, line: int, fields: dict[str, str]) -> Sample | None:
    """The cwnd, RTTs and counters of one socket, from the fields that ``ss`` prints.

    The result is ``None`` if ``ss`` prints no ``bytes_acked`` or no ``mss``. It prints no
    ``bytes_acked`` before the first ACK.
    """

    def number(name: str) -> float:
        """The number in a field; an error if it is negative or absurdly large."""
        return source.number(fields[name], line, name, 0.0, 1e18)

    if "bytes_acked" not in fields or "mss" not in fields:
        return None
    rtt, _, _ = fields.get("rtt", "nan").partition("/")
    sample = {
        "window": number("cwnd"),
        "bytes": number("bytes_acked"),
    }
    if "rtt" in fields:  # in ms; 0 means that there is no sample yet
        sample["rtt"] = source.number(rtt, line, "rtt", 0.0, 1e9) * 1e-3 or math.nan
    if "minrtt" in fields:
        sample["base_rtt"] = number("minrtt") * 1e-3 or math.nan
    if "bytes_retrans" in fields:
        sample["bytes_resent"] = number("bytes_retrans")
    elif "retrans" in fields:
        # "A/B": A retransmitted packets are not yet acknowledged, and B were retransmitted in all
        total = fields["retrans"].partition("/")[2]
        sample["retransmits"] = source.number(total, line, "retrans", 0.0, 1e18)
    else:
        # ss prints neither field before the first retransmission
        sample["retransmits"] = 0.0
    return sample
