"""Reads a trace file of any known format, which it recognises from the content."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import NoReturn

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError, printable
from vegasmodel.fields.rules import Choice
from vegasmodel.packets.readers.csv import REQUIRED, check_header, header
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import Trace, TraceError
from vegasmodel.packets.trace_file import read_parquet
from vegasmodel.support import progress

__all__ = ["FORMATS", "format_of", "read"]

# The formats that the package reads besides its own, each by the module of this name in
# ``readers``. A file is compared with them in this order.
FORMATS = (
    "csv",
    "ns2_tr",
    "ns3_ascii",
    "flowmon",
    "pcap",
    "iperf3",
    "tcp_probe",
    "ss",
)
KNOWN = (  # what an error expects of a file of unknown format
    "a trace of a known format: a capture (pcap, pcapng), ss -tin after lines of date +%s.%N, "
    "iperf3 --json, an event trace of ns-2 or ns-3, ns-3's FlowMonitor (XML), tcp_probe, Parquet "
    f"of vegasmodel, or a CSV table with the columns {', '.join(REQUIRED)}"
)
_PRINTED = (  # how lines that two programs print begin, and what to give in place of such a text
    (
        rb"[\d: .-]{1,40} IP6? [^>\n]{1,60} > [^>\n]{1,60}: ",
        "a capture that tcpdump -w FILE wrote; the text that tcpdump prints is not read",
    ),
    (
        rb"\[ *(\d+|ID)\] .{0,60}(sec|Interval) ",
        "the output of iperf3 --json; the text that iperf3 prints without --json is not read",
    ),
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the marks with which such texts begin
# the first bytes of a compressed file, and the program that unpacks it
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def read(path: str | Path, format: str = "auto") -> Trace:  # noqa: A002 - the option's name
    """Read a trace from a Parquet file of ``Trace.write`` or from a file in one of ``FORMATS``.

    ``format`` is ``parquet``, one of ``FORMATS``, or ``auto``, which recognises the format from the
    content. The function uses a bounded amount of memory, however long the file is.

    Raises ``FieldError`` for a wrong argument, and ``TraceError``, a kind of ``FieldError``, if the
    file cannot be read. The message names the file, the place in it if known, and what was expected
    there.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise FieldError(
            "path",
            type(path).__name__,
            "the name of a trace file, such as a CSV table that DataFrame.to_csv wrote; "
            "packets.trace.make makes a Trace of arrays",
        )
    Choice(("auto", "parquet", *FORMATS)).check(format, "format")
    try:
        with progress.series(f"reading {printable(Path(path).name)[:40]}"):
            return _read(path, format)
    except OSError as error:  # an error while the file is being read
        reason = error.strerror or "an input or output error"
        raise TraceError.unreadable(path, reason) from None


@kinds.checked
def format_of(path: str | Path) -> str:
    """Recognise the format of a trace file from its content: ``parquet`` or one of ``FORMATS``.

    Raises ``TraceError`` if the format is not known or the file cannot be read.
    """
    with Source(path) as source:
        if not source.head:
            raise TraceError(path, "", "an empty file", "a trace")
        return "parquet" if source.head[:4] == b"PAR1" else _recognised(source)


def _read(path: str | Path, format: str) -> Trace:  # noqa: A002 - as above
    """Read the file by the module of its format in ``packets/readers``, or as a Parquet file."""
    with Source(path) as source:
        if format == "parquet" or (format == "auto" and source.head[:4] == b"PAR1"):
            return read_parquet(path)
        if not source.head:
            raise TraceError(path, "", "an empty file", "a trace")
        reader = importlib.import_module(
            f"vegasmodel.packets.readers.{_recognised(source) if format == 'auto' else format}"
        )
        trace: Trace = reader.read(source)
        return trace


def _recognised(source: Source) -> str:
    """The format of a file that is not Parquet, by its first bytes.

    Raises ``TraceError`` if no format fits (``_fail_as_unknown``). The error says what to do if the
    file is compressed or is a text in UTF-16.
    """
    for magic, name in _COMPRESSED.items():
        if source.head.startswith(magic):
            source.fail(
                "byte 0", source.head[:4], f"a trace that is not compressed: {name} -d it first"
            )
    if source.head.startswith(_UTF_16):
        source.fail("byte 0", source.head[:4], "a text in UTF-8; this one seems to be in UTF-16")
    for name in FORMATS:
        if importlib.import_module(f"vegasmodel.packets.readers.{name}").matches(source.head):
            return name
    return _fail_as_unknown(source)


def _fail_as_unknown(source: Source) -> NoReturn:
    """Raise ``TraceError`` for a file in none of the known formats.

    If the file looks like a CSV table with missing columns, or has lines that ``tcpdump`` or
    ``iperf3`` prints, the error says what to do. Otherwise it quotes the first line, or the first
    bytes if they are no text, and lists the known formats.
    """
    check_header(source, sure=False)  # raises an error if the file looks like a CSV table
    for pattern, wanted in _PRINTED:
        found = re.search(rb"^" + pattern, source.head, re.MULTILINE)
        if found:
            line = source.head.count(b"\n", 0, found.start()) + 1
            source.fail(f"line {line}", found.group().decode(errors="replace")[:60], wanted)
    number, first = header(source.head)
    if first.strip() and first.strip().isprintable():
        source.fail(f"line {number}", first.strip()[:60], KNOWN)
    source.fail("byte 0", source.head[:16], KNOWN)
