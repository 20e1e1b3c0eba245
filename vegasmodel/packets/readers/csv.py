"""Reads a CSV table of the senders' state (window, RTT, ...), a row per flow and sampling time.

The columns have the names that the Linux kernel uses, but another program may have written the
table. The trace counts as a measurement of the Linux kernel only if the table has the column
ca_state, the state of the kernel's loss recovery, which no other program reports. The values of
this column are not read.

The required columns are time (s), flow (its name), cwnd (packets), bytes_acked and snd_mss (bytes).
Optional columns are:

- cc: the congestion control.
- rtt_us: the smoothed RTT in microseconds. A row's rtt_us is ignored if its vegas_baseRTT_us says
  that Vegas has no RTT sample yet. Such an rtt_us is the RTT of the SYN, which is shorter than that
  of a data packet, because the SYN is smaller.
- total_retrans: the number of retransmissions.
- vegas_baseRTT_us: the baseRTT of Vegas in microseconds. If the table lacks this column, minrtt_us
  is used instead.

A window or an RTT is unknown if its cell is empty or contains "nan". An RTT of 0, 2147483647 or
4294967295 is unknown, too: the kernel reports these values before its first RTT sample.

The trace begins at the time of the first row. A window or an RTT in a row is that of the interval
which ends at this row. No interval ends at the first row, so only the counters of that row are
used.

Other columns are not read.  The entry ``known-columns`` of ``Trace.doubts`` names them, except
those in ``RECORDED_BUT_NOT_READ``, which our own measurements of the kernel (``scripts/kernel``)
also record.

The counters bytes_acked and total_retrans count from the start of the flow, so they never fall. If
a flow ends and a new connection replaces it, this connection needs a name of its own.

A line before the header is a comment if it begins with #. The same holds for lines after the
header, but only if the first column is time. If the last line lacks columns and a line break, the
file was cut off within this line, and the line is left out.

If the times in the table are seconds since 1970, the times in the trace count from the first sample
instead.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Sequence
from typing import NoReturn

from vegasmodel.fields.lists import few
from vegasmodel.fields.rules import nearest
from vegasmodel.packets.readers.snapshots import Sample, Snapshots
from vegasmodel.packets.readers.source import MAX_TIME, Source
from vegasmodel.packets.trace import Trace

# the columns that are read: those that must be present, and the others
REQUIRED = ("time", "flow", "cwnd", "bytes_acked", "snd_mss")
OPTIONAL = ("cc", "rtt_us", "total_retrans", "vegas_baseRTT_us", "minrtt_us", "ca_state")
# columns that scripts/kernel/traffic.py writes, but that this reader does not need
RECORDED_BUT_NOT_READ = {
    *("ssthresh", "unacked", "lost", "notsent_bytes", "delivered_pkts", "rwnd_limited_us"),
    *("vegas_enabled", "vegas_rttcnt", "vegas_minRTT_us"),
}
# units of required columns, for error messages
UNITS = {"time": "s", "cwnd": "packets", "bytes_acked": "bytes", "snd_mss": "bytes"}
# Words for a throughput in a column's name. The error for such a table says how to convert it.
RATE_WORDS = re.compile(
    "throughput|goodput|bandwidth|bitrate|bits?_?(/|per_)s|[kmg]?bps", re.IGNORECASE
)
UNKNOWN = ("", "nan")  # what DataFrame.to_csv, or str, writes for NaN
COMMENT = b"#"  # begins a line
KERNEL_COLUMN = "ca_state"  # a state that only a kernel tells
# the entries of a ``Sample`` that never fall, and their columns
COUNTERS = {"bytes": "bytes_acked", "retransmits": "total_retrans"}
# what the kernel reports before its first RTT sample as rtt_us, as Vegas's baseRTT, and as
# minrtt_us
NO_SAMPLE = (0.0, 2147483647.0, 4294967295.0)
EPOCH_TIMES = 1e9  # s; if the first time is at least this, times are taken as seconds since 1970
# what the error about a counter that falls says of it
NEVER_FALLS = (
    "a count since the flow's start, which never falls; the bytes of single intervals must be "
    "added up, and a connection that begins anew needs a name of its own"
)
MAX_COUNT = 1e18  # largest number allowed in a cell
MAX_NAME = 100  # characters of a flow's name
MAX_CONTROL = 16  # characters of a congestion control's name, the kernel's own limit


def matches(head: bytes) -> bool:
    """Whether the file's first line that is not a comment names all required columns."""
    first = header(head)[1].strip().split(",")
    return all(name in first for name in REQUIRED)


def header(head: bytes) -> tuple[int, str]:
    """The number and the text of the first line that is not a comment.

    ``head`` is the beginning of the file.
    """
    lines = enumerate(head.split(b"\n"), start=1)
    number, first = next(((n, line) for n, line in lines if line[:1] != COMMENT), (1, b""))
    return number, first.decode("ascii", "replace")


def check_header(source: Source, *, sure: bool = True) -> list[str]:
    """Return the column names in the header of a CSV table, and check them.

    The header is the first line that is not a comment.  Raises ``TraceError`` if it lacks required
    columns, if it has a column twice, if the columns are not separated by commas alone, or if lines
    end with CR.  If it has a column for throughputs in place of bytes_acked, the error says how to
    make a trace of them.

    ``sure`` is false if the file may have another format than CSV.  Missing columns are then an
    error only if at least two of the required columns are present, or a column for throughputs.
    """
    number, first = header(source.head)
    place = f"line {number}"
    names = [name.strip() for name in re.split("[,;\t]", first.strip())]
    missing = [name for name in REQUIRED if name not in names]
    rates = [name for name in names if RATE_WORDS.search(name)] if "bytes_acked" in missing else []
    has_two = len(missing) <= len(REQUIRED) - 2
    has_rates = bool(rates) and len(names) > 1 and first.strip().isprintable()
    is_table = sure or has_two or has_rates
    if is_table and "\r" in first.strip():
        source.fail(place, "CR", "a line break after it: LF, or CR LF; CR alone is none")
    if not missing and first.strip().split(",") != names:
        source.fail(place, first[:60], "columns separated by commas alone")
    if missing and is_table:
        hint = _throughputs(rates[0]) if rates else _similar(missing, names)
        wanted = f"the columns {', '.join(REQUIRED)}; missing: {', '.join(missing)}{hint}"
        source.fail(place, first.strip()[:120], wanted)
    twice = [name for name in (*REQUIRED, *OPTIONAL) if names.count(name) > 1]
    if twice and not missing:
        source.fail(place, twice[0], "each column once")
    return names


def _similar(missing: Sequence[str], names: Sequence[str]) -> str:
    """A hint for an error message: the new name of a column that is similar to a missing one.

    ``missing`` are required columns that the header lacks, and ``names`` are the columns that it
    has.  If none of these is similar, the hint says where the columns are explained.
    """
    for name in missing:
        near = difflib.get_close_matches(name, names, 1)
        if near:
            unit = f" (in {UNITS[name]})" if name in UNITS else ""
            return f"; if {near[0][:60]!a} is {name}{unit}, rename the column to {name}"
    needed = "bytes_acked" in missing
    why = "bytes_acked is what the flow has delivered since its start; " if needed else ""
    return f"; {why}docs/how-to.md, Record a trace, explains the columns"


def _throughputs(name: str) -> str:
    """A hint for an error message: how to make a trace from the throughputs in column ``name``."""
    return (
        f"; {name[:60]!a} seems to be a throughput: from it compute bytes_acked, the bytes that "
        "the flow has delivered since its start, give snd_mss, and leave the cells of cwnd empty; "
        "docs/how-to.md, Record a trace, has a program"
    )


def read(source: Source) -> Trace:
    """Read the whole CSV table.  If a line is wrong, a ``TraceError`` names it."""
    names = check_header(source)
    header_line, _ = header(source.head)
    # A line that begins with # is a comment only if the first column is the time. In other columns,
    # for example that of the flow's name, the # may be a part of the cell.
    has_comments = names[0] == "time"
    snapshots = Snapshots(source)
    first_samples: dict[str, tuple[float, float]] = {}  # each flow's first time and bytes_acked
    for number, text in source.lines():
        if number <= header_line or not text.strip() or (has_comments and text.startswith("#")):
            continue
        try:
            cells = next(csv.reader([text]))
        except (csv.Error, StopIteration):
            cells = []
        if len(cells) < len(names) and source.unended:
            source.cut_short = True
            break
        if len(cells) != len(names):
            source.fail(f"line {number}", text[:60], f"{len(names)} columns")
        row = dict(zip(names, cells, strict=True))
        time = source.number(row["time"], number, "a time", 0.0, MAX_TIME)
        name = row["flow"]
        if not 0 < len(name) <= MAX_NAME or name.endswith("\0"):
            source.fail(f"line {number}", name[:60], f"a name of 1 to {MAX_NAME} characters")
        mss = source.number(row["snd_mss"], number, "snd_mss", 1.0, MAX_COUNT)
        control = row.get("cc", "")[:MAX_CONTROL]
        sample, before = _sample(source, number, row), snapshots.counts.get(name, {})
        snapshots.add(number, time, name, sample, mss, control)
        if name in snapshots.connections:  # a counter has fallen, so the name has two connections
            _fail_for_a_fall(source, number, sample, before)
        first_samples.setdefault(name, (time, sample["bytes"]))
    about = {
        "format": "csv of samples",
        "throughput": "bytes_acked / snd_mss",
        "window": "cwnd",
        "rtt": "rtt_us, smoothed",
        "base_rtt": "vegas_baseRTT_us" if "vegas_baseRTT_us" in names else "minrtt_us",
    }
    first = min((time for time, _ in first_samples.values()), default=0.0)
    # times since 1970 are very large numbers: the trace then counts from its first sample
    origin = first if first >= EPOCH_TIMES else 0.0
    if origin:
        about["origin"] = repr(origin)
    engine = "linux" if KERNEL_COLUMN in names else "csv"
    doubts = {**_unknown_columns(names), **_doubts(snapshots, first_samples)}
    if source.cut_short:
        doubts["whole-file"] = "the file ends within a line, which is left out"
    return snapshots.trace(engine, about, doubts, origin=origin)


def _unknown_columns(names: Sequence[str]) -> dict[str, str]:
    """The assumption ``known-columns``, with a text that names the columns that are not known.

    The text also gives a hint: the known column with the most similar name, of those that the file
    lacks.  The result is empty if all columns are known.
    """
    found = []
    for name in names:
        if name in (*REQUIRED, *OPTIONAL) or name in RECORDED_BUT_NOT_READ:
            continue
        absent = [known for known in OPTIONAL if known not in names]
        found.append(f"column {name[:60]!a} is not known and not read{nearest(name, absent)}")
    if not found:
        return {}
    return {"known-columns": few(found, clauses=True)}


def _doubts(snapshots: Snapshots, first_samples: dict[str, tuple[float, float]]) -> dict[str, str]:
    """The assumption ``usual-units``: bytes_acked counts the bytes of the whole flow.

    It is in doubt if bytes_acked of a flow is the same number in the flow's first and last samples,
    and this number is at least the size of one segment: it may then count the bytes of each
    interval by itself. The text of the assumption names the first such flow. The result is empty if
    there is none. ``first_samples`` has each flow's first time, s, and first bytes_acked.
    """
    for name, (time, acked) in first_samples.items():
        constant = acked == snapshots.counts[name]["bytes"] and time < snapshots.latest[name]
        if constant and acked >= snapshots.payload[name]:
            found = f"{name}'s bytes_acked is always {acked:.15g}, as if it counted each interval"
            return {"usual-units": f"{found} by itself, not from the flow's start"}
    return {}


def _fail_for_a_fall(source: Source, line: int, sample: Sample, before: Sample) -> NoReturn:
    """Raise ``TraceError`` because a counter, such as bytes_acked, has decreased.

    The counter is lower in ``sample`` than in ``before``, the flow's previous sample.
    """
    fell = next(key for key in COUNTERS if sample.get(key, 0.0) < before.get(key, 0.0))
    found = f"{COUNTERS[fell]} {sample[fell]:.15g} after {before[fell]:.15g}"
    source.fail(f"line {line}", found, NEVER_FALLS)


def _sample(source: Source, line: int, row: dict[str, str]) -> Sample:
    """The state of one flow at one time, from a row of the table.

    ``row`` maps the names of the columns to the row's cells, and ``line`` is the number of the
    row's line, for an error. An unknown window or RTT is NaN.
    """

    def count(name: str) -> float:
        """The number in a cell, at least 0."""
        return source.number(row[name], line, name, 0.0, MAX_COUNT)

    def known(name: str) -> bool:
        """Whether the table has this column, and the cell a value."""
        return row.get(name, "").strip().lower() not in UNKNOWN

    def seconds(name: str) -> float:
        """The RTT in a cell in microseconds, converted to s; NaN if it is unknown."""
        value = count(name) if known(name) else 0.0
        return math.nan if value in NO_SAMPLE else value * 1e-6

    sample = {
        "window": count("cwnd") if known("cwnd") else math.nan,
        "bytes": count("bytes_acked"),
        "rtt": seconds("rtt_us"),
        "base_rtt": seconds("vegas_baseRTT_us" if "vegas_baseRTT_us" in row else "minrtt_us"),
    }
    if known("vegas_baseRTT_us") and math.isnan(sample["base_rtt"]):
        sample["rtt"] = math.nan  # so far only the RTT of the SYN
    if "total_retrans" in row:
        sample["retransmits"] = count("total_retrans")
    return sample
