"""Reads ``iperf3 --json``: bytes, retransmissions, window and RTT of each stream per interval.

With ``--json-stream`` each line is an event: the start, an interval, or the end. Warnings of iperf3
before the JSON are skipped.

If the receiver wrote the file, the bytes of an interval are those that arrived. If the sender wrote
it, they are the bytes that iperf3 passed to the kernel, and some of these may not have arrived. In
this case the trace has a warning (in ``Trace.doubts``). If the file states how many bytes arrived
in all, the warning gives this number.

The trace leaves out the intervals that iperf3 marks as omitted (its option ``--omit``).
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.readers.ethernet import USUAL_DATA
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import Trace, assemble
from vegasmodel.packets.trace_variables import MAX_FLOWS, TraceError

_WARNINGS = re.compile(rb"\s*(?:(?:warning|iperf3)\b[^\n]*\n\s*)*")  # lines before the JSON
_EVENT = re.compile(rb'\{\s*"event"\s*:')  # how a line of --json-stream begins
MAX_BYTES = 1 << 24  # bytes of a file
MAX_CELLS = 1 << 20  # streams times intervals
MAX_COUNT = 1e18  # largest number allowed in the file
Table = Mapping[str, Any]  # a JSON object


def matches(head: bytes) -> bool:
    """Whether the file begins like the output of ``iperf3 --json`` or ``--json-stream``."""
    start = _WARNINGS.sub(b"", head, count=1)
    if _EVENT.match(start):
        return b'"start"' in start[:60]
    return start.startswith(b"{") and b'"start"' in start[:60] and b'"intervals"' in head


def read(source: Source) -> Trace:
    """Read the output of ``iperf3 --json`` or ``--json-stream``.

    If a value is wrong, a ``TraceError`` names its key.
    """
    document = _Document(source)
    start, end = document.table("start"), document.table("end", needed=False)
    protocol = start.get("test_start", {})
    protocol = protocol.get("protocol", "TCP") if isinstance(protocol, dict) else "TCP"
    if protocol != "TCP":
        source.fail("start.test_start.protocol", protocol, "TCP")
    names = document.names(start)
    times, rows = document.intervals()
    # the streams' socket numbers in the order in which they appear
    sockets = list(dict.fromkeys(socket for row in rows for socket in row))
    if len(sockets) > MAX_FLOWS or len(sockets) * len(rows) > MAX_CELLS:
        source.fail("intervals", len(rows), f"at most {MAX_CELLS} values")
    if not sockets:
        source.fail("intervals", f"{len(rows)} without a stream", "streams of TCP")
    # socket number of a stream -> whether the host that wrote the file sends it
    sending = {socket: any(row.get(socket, {}).get("sender") for row in rows) for socket in sockets}
    segment_size = document.segment_size(start)
    flows = [names.get((socket, sending[socket]), f"{socket}") for socket in sockets]
    variables = _variables(times, rows, sockets, segment_size or float(USUAL_DATA))
    doubts = document.doubts(end, dict(zip(sockets, flows, strict=True)), sending)
    if not segment_size:
        doubts["known-packet-size"] = f"the file has no segment size; {USUAL_DATA} B are assumed"
    if document.source.cut_short:
        doubts["whole-file"] = "the file ends within a line, which is left out"
    control = end.get("sender_tcp_congestion")
    about = {
        "format": "iperf3 --json",
        "throughput": "bytes that iperf3 wrote at the sender, or read at the receiver",
        "window": "the kernel's cwnd",
        "rtt": "the kernel's smoothed RTT at the end of the interval",
    }
    return assemble(
        "linux",
        times[1:],
        flows,
        variables,
        begin=float(times[0]),
        provenance=about,
        controls=dict.fromkeys(flows, control[:16]) if isinstance(control, str) else {},
        doubts=doubts,
    )


def _variables(
    times: Floats, rows: list[dict[int, dict[str, float]]], sockets: list[int], payload: float
) -> dict[str, Floats]:
    """The variables of the trace, such as ``throughput`` in pkt/s, by their names in ``Trace``.

    ``times`` (s) and ``rows`` are the results of ``_Document.intervals``. ``sockets`` are the
    streams' socket numbers. A packet is taken to carry ``payload`` bytes of data.
    """
    grids = {  # [interval, stream]; NaN where the file has no value
        key: np.array(
            [[row.get(socket, {}).get(key, math.nan) for socket in sockets] for row in rows]
        )
        for key in ("bytes", "retransmits", "snd_cwnd", "rtt", "end")
    }
    lengths = np.diff(times)[:, None]
    # If an interval lacks a stream, the stream began later or had already ended. So it has
    # retransmitted nothing in this interval. But if the file never reports the stream's
    # retransmissions, their number stays unknown (NaN).
    has_retransmits = ~np.isnan(grids["retransmits"]).all(axis=0)
    absent = np.isnan(grids["bytes"]) & has_retransmits
    return {
        "throughput": np.nan_to_num(grids["bytes"]) / payload / lengths,
        "retransmits": np.where(absent, 0.0, grids["retransmits"]),
        "window": grids["snd_cwnd"] / payload,
        "rtt": np.where(grids["rtt"] > 0.0, grids["rtt"], math.nan) * 1e-6,  # 0: no sample yet
        "first": np.array([min(row[s]["start"] for row in rows if s in row) for s in sockets]),
        "last": np.nanmax(grids["end"], axis=0),
        "payload": np.full(len(sockets), payload),
    }


class _Document:
    """The parsed JSON output of iperf3; each method checks the values that it reads there."""

    def __init__(self, source: Source) -> None:
        """Parse the whole file: one JSON document, or a line of JSON for each event."""
        self.source = source
        source.file.seek(source.start)
        raw = source.file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            source.fail("", f"more than {MAX_BYTES} bytes", f"at most {MAX_BYTES}")
        text = _WARNINGS.sub(b"", raw, count=1)
        if _EVENT.match(text):
            self.root = self._joined(text)
        else:
            self.root = self._parsed(text, "byte 0", "one JSON document of iperf3")

    def _parsed(self, text: bytes, place: str, expected: str) -> dict[str, Any]:
        """Parse a JSON object; the error names its place in the file, and what is ``expected``."""
        try:
            root = json.loads(text, parse_constant=self._constant)
        except (ValueError, RecursionError):
            self.source.fail(place, text[:30], expected)
        if not isinstance(root, dict):
            self.source.fail(place, text[:30], "a JSON object")
        return root

    def _joined(self, text: bytes) -> dict[str, Any]:
        """Convert the output of ``iperf3 --json-stream`` to that of ``iperf3 --json``.

        The output of ``--json-stream`` has one line of JSON for each event; that of ``--json`` is a
        single JSON document. If the last line is incomplete, it is left out.
        """
        root: dict[str, Any] = {"intervals": []}
        for number, line in enumerate(io.BytesIO(text), start=1):
            if not line.strip():
                continue
            try:
                event = self._parsed(line, f"event {number}", "a line of JSON")
            except TraceError:
                if line.endswith(b"\n"):
                    raise
                self.source.cut_short = True
                break
            kind, data = event.get("event"), event.get("data")
            if kind == "interval":
                root["intervals"].append(data)
            elif kind in ("start", "end"):
                root[kind] = data
        return root

    def _constant(self, word: str) -> None:
        """Refuse ``NaN`` and ``Infinity``, which Python's JSON parser would accept."""
        self.source.fail("", word, "finite numbers")

    def table(self, key: str, *, needed: bool = True) -> Table:
        """The JSON object under ``key`` at the top level of the file.

        Raises ``TraceError`` if the value is not an object, or if the key is absent.  If ``needed``
        is false, an absent key gives an empty object instead.
        """
        found = self.root.get(key)
        if isinstance(found, dict):
            return found
        if needed or found is not None:
            self.source.fail(key, found if found is None else type(found).__name__, "an object")
        return {}

    def number(self, where: str, table: Table, key: str, default: float | None = None) -> float:
        """The number under ``key`` in the JSON object ``table``, or ``default`` if it is absent.

        Raises ``TraceError`` unless it lies in 0 .. ``MAX_COUNT``.  ``where`` names the object in
        the error.
        """
        value = table.get(key, default)
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not 0 <= value <= MAX_COUNT:
            self.source.fail(f"{where}.{key}", str(value)[:60], "a number from 0 to 1e+18")
        return float(value)

    def tables(self, where: str, value: object) -> list[Table]:
        """Return ``value`` if it is a list of JSON objects; raise ``TraceError`` otherwise.

        ``where`` names the value in the error.
        """
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.source.fail(where, type(value).__name__, "a list of objects")
        return value

    def names(self, start: Table) -> dict[tuple[int, bool], str]:
        """The name ``sender>receiver`` of each stream, such as ``10.0.0.1:5001>10.0.0.2:5201``.

        For each stream, the file states the address and port of the host that wrote the file
        (local) and of the other host (remote).  The list of connections in ``start`` does not state
        which of them sends.  So the result has two names of each stream, one for each direction.
        Its keys are pairs: the stream's socket number, and whether the local host sends.
        """
        found = {}
        for entry in self.tables("start.connected", start.get("connected", [])):
            ends = []  # ADDRESS:PORT of the local host, then of the remote host
            for side in ("local", "remote"):
                host = str(entry.get(f"{side}_host", "?"))[:50]  # no address is as long as this
                host = host.removeprefix("::ffff:")  # an IPv4 address, written as one of IPv6
                port = int(self.number("start.connected", entry, f"{side}_port", 0.0))
                ends.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
            socket = int(self.number("start.connected", entry, "socket"))
            found[socket, True] = ">".join(ends)
            found[socket, False] = ">".join(reversed(ends))
        if len(set(found.values())) < len(found):  # two streams have the same name
            self.source.fail("start.connected", "a pair of ports twice", "each pair once")
        return found

    def segment_size(self, start: Table) -> float:
        """Bytes of data in a full packet, as the file states; 0 if the file does not state them."""
        for key in ("tcp_mss", "tcp_mss_default"):
            if start.get(key):
                return self.number("start", start, key)
        return 0.0

    def intervals(self) -> tuple[Floats, list[dict[int, dict[str, float]]]]:
        """The times in s at which the intervals begin and end, and each interval's measurements.

        The measurements of an interval are a dictionary with one entry per stream; the key is the
        stream's socket number.  An entry has iperf3's numbers, such as ``bytes``, by their names.
        Intervals that iperf3 marks as omitted are left out.
        """
        edges, rows = list[float](), list[dict[int, dict[str, float]]]()
        for i, entry in enumerate(self.tables("intervals", self.root.get("intervals", []))):
            where = f"intervals[{i}].streams"
            row: dict[int, dict[str, float]] = {}
            for stream in self.tables(where, entry.get("streams", [])):
                if stream.get("omitted") is True:
                    continue
                socket = int(self.number(where, stream, "socket"))
                if socket in row:
                    self.source.fail(where, socket, "each socket once")
                row[socket] = {
                    key: self.number(where, stream, key) for key in ("start", "end", "bytes")
                }
                for key in ("retransmits", "snd_cwnd", "rtt"):
                    if key in stream:
                        row[socket][key] = self.number(where, stream, key)
                row[socket]["sender"] = float(stream.get("sender", True) is True)
            if row:
                low, high = (next(iter(row.values()))[key] for key in ("start", "end"))
                edges = edges or [low]
                if not edges[-1] < high < 1e9:
                    self.source.fail(where, high, "an end after that of the interval before")
                edges.append(high)
                rows.append(row)
        if not rows:
            self.source.fail("intervals", 0, "intervals with streams")
        return np.array(edges), rows

    def doubts(
        self, end: Table, names: Mapping[int, str], sending: Mapping[int, float]
    ) -> dict[str, str]:
        """Warn if the file has the sender's counts: some of the counted bytes may not have arrived.

        If the host that wrote the file sends a stream, it counts the bytes that iperf3 passed to
        its kernel.  If the file also has the receiver's counts, the warning gives both totals.  The
        result is empty if the host that wrote the file only receives.

        ``end`` is the object ``end`` of the file.  For each socket number, ``names`` has the
        stream's name, and ``sending`` says whether the host that wrote the file sends the stream.
        """
        if not any(sending.values()):
            return {}
        wrote = arrived = 0.0  # bytes of all streams that this host sends
        for entry in self.tables("end.streams", end.get("streams", [])):
            for side in ("sender", "receiver"):
                if not isinstance(entry.get(side, {}), dict):
                    self.source.fail(f"end.streams.{side}", "?", "an object")
            socket = entry.get("sender", {}).get("socket")
            if socket in names and sending.get(socket):
                wrote += self.number("end.streams.sender", entry["sender"], "bytes", 0.0)
                receiver = entry.get("receiver", {})
                arrived += self.number("end.streams.receiver", receiver, "bytes", 0.0)
        totals = f": {arrived:.0f} of {wrote:.0f} B arrived" if arrived else ""
        return {"bytes-arrived": f"the sender's iperf3 counts what the kernel took{totals}"}
