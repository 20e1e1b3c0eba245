"""Random edits of valid traces, and traces of nearly a megabyte; readers must withstand them.

``mutate`` edits bytes, words and fields of any format.  In captures and Parquet files it also edits
lengths and headers between the parts, so that the edit reaches the code behind the framing.
"""

import io
import json
import random
import re
import struct
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.packets import samples
from vegasmodel.packets.trace import VARIABLES
from vegasmodel.packets.trace_file import KEY, MAX_CELLS, MAX_ROWS

LARGE = 990_000  # bytes

NASTY = (
    b"nan", b"inf", b"-inf", b"1e300", b"-1", b"9" * 30, b"1e-400", b"0", b"\x00", b"\xff" * 8,
    b"\n", b"<", b"&a;", b'<!DOCTYPE a [<!ENTITY a "aaaa">]>', b"4294967295", b"%s%n", b"1.5e9",
    b"e", b"0.0", b",", b"\t", b"\x7f\xff\xff\xff", b"--",
    b"99999999999", b"\xc3\x28", b"A" * 3000,
)  # fmt: skip


def mutate(name: str, sample: bytes, rng: random.Random) -> bytes:
    """One to six random edits of a sample of the format ``name``, some of its parts."""
    if name == "pcap" and rng.random() < 0.6:
        return _of_capture(sample, rng)
    if name == "parquet" and rng.random() < 0.8:
        sample = odd_parquet(rng) if rng.random() < 0.5 else sample
        return sample if rng.random() < 0.4 else _of_footer(sample, rng)
    return _of_bytes(sample, rng)


def _of_bytes(sample: bytes, rng: random.Random) -> bytes:
    """Edits of bytes, numbers, slices, long runs, lines; or the end cut off."""
    data = bytearray(sample)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        kind, at = rng.randrange(9), rng.randrange(len(data))
        length = min(rng.choice((1, 2, 4, 8, 40, 400)), len(data) - at)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at : at + length] = rng.choice(NASTY)
        elif kind == 3:
            data[at:at] = rng.choice(NASTY)
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length] * rng.choice((1, 2, 50))
        elif kind == 6:
            _word(data, at, rng)
        elif kind == 7:
            _stretch(data, at, rng)
        else:
            del data[at:]
    return bytes(data)


def _stretch(data: bytearray, at: int, rng: random.Random) -> None:
    """Put a long run of digits, blanks or the like before, into or after the word at ``at``."""
    while at > 0 and rng.random() < 0.9 and data[at - 1] not in b' \n\t,"=:':
        at -= 1
    run = rng.choice((b"0", b"9", b"1", b" ", b"\t", b"-", b".", b"0.", b"e"))
    data[at:at] = run * rng.choice((19, 60, 250, 300, 4000, 70_000))


def _word(data: bytearray, at: int, rng: random.Random) -> None:
    """Replace the word at ``at`` by a difficult one."""
    blanks = b' \n\t,"=:'
    low = high = at
    while low > 0 and data[low - 1] not in blanks and at - low < 50:
        low -= 1
    while high < len(data) and data[high] not in blanks and high - at < 50:
        high += 1
    data[low:high] = rng.choice(NASTY)


def _number(rng: random.Random) -> bytes:
    """A number of 1 to 8 bytes, often an extreme one."""
    size = rng.choice((1, 2, 4, 4, 8))
    top = 1 << 8 * size
    value = rng.choice((0, 1, 2, 16, top - 1, top // 2, top // 2 - 1, rng.randrange(top)))
    return (value % top).to_bytes(size, rng.choice(("big", "little")))


def records(capture: bytes) -> list[bytes]:
    """The header of a capture and its packets, or the blocks of a pcapng file, with lengths."""
    ng = capture[:4] == b"\x0a\x0d\x0d\x0a"
    at, parts = (0, []) if ng else (24, [capture[:24]])
    while at < len(capture):
        (size,) = struct.unpack_from("<I", capture, at + (4 if ng else 8))
        size += 0 if ng else 16
        parts.append(capture[at : at + size])
        at += size
    return parts


def _of_capture(sample: bytes, rng: random.Random) -> bytes:
    """Packets reordered, missing, repeated or cut; numbers in their headers changed."""
    parts = records(sample)
    for _ in range(rng.randint(1, 6)):
        kind, at = rng.randrange(6), rng.randrange(len(parts))
        part = bytearray(parts[at])
        if kind == 0:
            parts[at : at + 1] = [parts[at]] * rng.choice((0, 2, 50))
        elif kind == 1:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif kind == 2 and sample[0] != 0x0A:  # a shorter snap length
            part = part[: 16 + rng.randrange(80)]
            struct.pack_into("<I", part, 8, max(len(part) - 16, 0))
            parts[at] = bytes(part)
        else:
            number, where = _number(rng), rng.randrange(min(len(part), 110))
            part[where : where + len(number)] = number
            parts[at] = bytes(part)
        if not parts:
            break
    return b"".join(parts)


def _of_footer(sample: bytes, rng: random.Random) -> bytes:
    """Bytes of a Parquet file's footer changed, and its length corrected."""
    length = int.from_bytes(sample[-8:-4], "little")
    body, footer = sample[: -8 - length], bytearray(sample[-8 - length : -8])
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(footer)), rng.randrange(4)
        if kind == 0:  # a long number where a number may be
            top = rng.choice((1000, 999_999, 2**31 - 1, 2**32, 2**63 - 1, rng.randrange(2**64)))
            footer[at : at + rng.randint(0, 5)] = _varint(top)
        elif kind == 1:  # a list of very many
            footer[at : at + 1] = bytes([0xF0 | rng.choice((5, 6, 8, 12))]) + _varint(
                rng.choice((20, 9_999, 999_999, 2**31 - 1))
            )
        elif kind == 2:
            footer[at] = rng.randrange(256)
        else:
            del footer[at : at + rng.choice((1, 2, 8))]
            footer = footer or bytearray(1)
    return body + bytes(footer) + len(footer).to_bytes(4, "little") + b"PAR1"


def _varint(number: int) -> bytes:
    """As Thrift writes it: seven bits a byte."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1e308, "", "x", "x" * 501, "\0", "\ud800", [], [None], ["a", "a"],
    [0.5, None], [["b"]], {}, {"a": 1}, {"a": "b"}, {"throughput": [1.0]}, {"first": [None, 1.0]},
)  # fmt: skip


def odd_parquet(rng: random.Random) -> bytes:
    """A Parquet file similar to ours, with other types, sizes, metadata or encodings."""
    rows, flows = rng.choice((0, 1, 2, 5, 300)), rng.choice((0, 1, 2, 3))
    about: dict[str, Any] = {
        "schema": 1, "engine": "e", "begin": -1.0, "scenario": None, "provenance": {},
        "controls": {}, "doubts": {}, "flows": [f"f{i}" for i in range(flows)], "links": ["l"],
        "static": {"first": [0.5] * flows},
    }  # fmt: skip
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        key = rng.choice((*about, "static", "other"))
        if key in ("static", "provenance") and rng.random() < 0.7:
            about[key] = {rng.choice((*VARIABLES, "x")): rng.choice(ODD)}
        elif rng.random() < 0.8:
            about[key] = rng.choice(ODD)
        else:
            about.pop(key, None)
    times: Any = [float(i) for i in range(rows)]
    times = rng.choice((times,) * 8 + (times[::-1], [0.5] * rows))
    kind = rng.choice((pa.float64(),) * 12 + (pa.float32(), pa.int64(), pa.string()))
    columns = {"time": pa.array(times, pa.float64()).cast(kind, safe=False)}
    for name in rng.sample(sorted(VARIABLES), rng.randint(0, 4)):
        width = flows if rng.random() < 0.85 else rng.choice((0, 1, 2, 5))
        one = rng.choice(([0.5] * width,) * 8 + ([None] * width, [1e300] * width, None))
        kind = pa.list_(rng.choice((pa.float64(),) * 8 + (pa.float32(), pa.int64())), width)
        columns[name] = pa.array([one] * rows, pa.list_(pa.float64(), width)).cast(kind, safe=False)
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about)})
    file = io.BytesIO()
    pq.write_table(
        table,
        file,
        compression=rng.choice(("none", "zstd", "snappy", "gzip")),
        row_group_size=rng.choice((None, 1, 2)) if rows < 10 else None,
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(("1.0", "2.0")),
    )
    return file.getvalue()


def large(name: str, sample: bytes, rng: random.Random) -> bytes:
    """A trace of nearly a megabyte: parts of a sample repeated, with some numbers counting up."""
    if name == "parquet":
        return _large_parquet(rng)
    if name == "pcap":
        return _large_capture(sample, rng)
    if name == "iperf3":
        return _large_iperf3(sample, rng)
    if name == "flowmon" and rng.random() < 0.5:
        return _large_flowmon(sample, rng)
    if rng.random() < 0.2:  # one field or one line that is long
        at = rng.randrange(len(sample))
        run = rng.choice((b"0", b"9", b" ", b"x", b"<a>", b"[", b"1 ", b"1\n", b"\n", b"k:1 "))
        return sample[:at] + run * ((LARGE - len(sample)) // len(run)) + sample[at:]
    separator = b"<Flow " if name == "flowmon" else b"\n"
    head, *parts = sample.split(separator)
    low = rng.randrange(len(parts))
    unit = separator.join([b"", *parts[low : low + rng.choice((1, 2, 4, 40))]])
    numbers = [found.span() for found in re.finditer(rb"\d+(\.\d+)?", unit)]
    counted = set(rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 5)))))
    step = rng.choice((1, 1, 7, 0.001, 1000))
    whole, size = [head, *(separator + part for part in parts[:low])], len(sample)
    for i in count():
        made, end = bytearray(), 0
        for first, last in sorted(counted):
            number = float(unit[first:last][:15]) + i * step
            made += unit[end:first] + f"{number:.6f}".rstrip("0").rstrip(".").encode()
            end = last
        made += unit[end:]
        size += len(made)
        if size > LARGE:
            return b"".join([*whole, separator, *parts[-1:]])
        whole.append(bytes(made))
    raise AssertionError


def _large_capture(sample: bytes, rng: random.Random) -> bytes:
    """Repeated packets, each later than the one before, with one of their fields counting up."""
    ng = sample[0] == 0x0A
    head, size = records(sample)[: 2 if ng else 1], 0
    unit = rng.choices(records(sample)[len(head) :], k=rng.choice((1, 2, 20)))
    begin = 28 if ng else 16  # of the frame; behind it the addresses, ports, numbers
    field, step = begin + rng.randrange(14, 60), rng.choice((1, 1000, 2**20))
    snap, parts = rng.choice((0, 54, 70)) if not ng else 0, list(head)
    for i in count():
        for packet in unit:
            part = bytearray(packet)
            value = int.from_bytes(part[field : field + 4]) + i * step
            part[field : field + 4] = (value % 2**32).to_bytes(4)
            time = struct.unpack_from("<I", part, 16 if ng else 0)[0] + i
            struct.pack_into("<I", part, 16 if ng else 0, time % 2**32)
            if snap:
                part = part[: 16 + snap]
                struct.pack_into("<I", part, 8, len(part) - 16)
            size += len(part)
            if size > LARGE:
                return b"".join(parts)
            parts.append(bytes(part))
    raise AssertionError


def _large_iperf3(sample: bytes, rng: random.Random) -> bytes:
    """Very many intervals, streams or sockets: one document or events, as the sample has it."""
    found = [json.loads(line) for line in sample.splitlines()] if b'"event"' in sample else []
    document = {each["event"]: each["data"] for each in found} if found else json.loads(sample)
    one = (document.pop("interval") if found else document["intervals"][0])["streams"][0]
    streams, sockets = rng.choice((1, 2, 100, 2000)), rng.choice((1, 100, 10_000))
    intervals = []
    for i in range(4000 // streams):
        row = []
        for k in range(streams):
            row.append({**one, "socket": (i * streams + k) % max(sockets, streams)})
            row[-1] |= {"start": i * 0.1, "end": (i + 1) * 0.1}
        intervals.append({"streams": row})
    whole = json.dumps({**document, "intervals": intervals}).encode()
    return (samples.iperf3_stream(whole) if found else whole)[:LARGE]


def _large_flowmon(sample: bytes, rng: random.Random) -> bytes:
    """Very many flows, each with its own classifier or a shared one."""
    flows = sorted(re.findall(rb"<Flow [^>]*>", sample), key=len)
    place, flow = flows[0], flows[-1]
    number, few = rb'flowId="\d+"', rng.choice((1, 50, 10_000))
    places, figures, size = list[bytes](), list[bytes](), 0
    for i in count(1):
        figures.append(re.sub(number, b'flowId="%d"' % i, flow) + b"</Flow>")
        places.append(re.sub(number, b'flowId="%d"' % (i % few), place))
        places[-1] = re.sub(rb'sourcePort="\d+"', b'sourcePort="%d"' % i, places[-1]) + b"</Flow>"
        size += len(figures[-1]) + len(places[-1])
        if size > LARGE:
            break
    text = b"".join(figures), b"".join(places)
    return (
        b"<FlowMonitor><FlowStats>%b</FlowStats><Ipv4FlowClassifier>%b" % text
        + b"</Ipv4FlowClassifier></FlowMonitor>"
    )


def _large_parquet(rng: random.Random) -> bytes:
    """As many values or rows as a trace may have; the file is small, since the values are equal."""
    flows = rng.choice((1, 3, 39, 1000, 10_000))
    names = rng.sample(
        [name for name in VARIABLES if not VARIABLES[name].static], rng.choice((1, 3))
    )
    widths = {name: 1 if VARIABLES[name].over == "link" else flows for name in names}
    most = MAX_CELLS // max(sum(widths.values()), 1)
    rows = min(most, MAX_ROWS) + rng.choice((-1, 0, 0, 1))
    about = {
        "schema": 1, "engine": "e", "begin": -1.0, "scenario": None, "provenance": {},
        "flows": [f"f{i}" for i in range(flows)], "links": ["l"], "static": {},
    }  # fmt: skip
    columns: dict[str, Any] = {"time": np.arange(rows, dtype=float)}
    for name, width in widths.items():
        columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * width)), width)
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about)})
    file = io.BytesIO()
    pq.write_table(
        table,
        file,
        compression="zstd",
        row_group_size=rng.choice((None, rows)),
        use_dictionary=names,
        column_encoding={"time": "BYTE_STREAM_SPLIT"},
    )
    return file.getvalue()
