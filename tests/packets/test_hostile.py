"""Hostile files: the reader answers in bounded time and memory, with one clear line."""

import contextlib
import gc
import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import arrivals, read, reference
from vegasmodel.packets.readers import bins
from vegasmodel.packets.trace import TraceError
from vegasmodel.packets.trace_file import KEY, MAX_CELLS, MAX_ROWS
from vegasmodel.scenario import Flow, Link, ParetoArrivals, Scenario

EVENT = b"r 0.1 0 1 tcp 1000 ------- 0 0.0 1.0 0 0\n"
VARIABLE = b"0.1 0 0 1 0 cwnd_ 2\n"


def read_alone(inputs: list[bytes], folder: Path) -> list[str]:
    """The result of reading traces in a separate process, and the kB of memory that it took.

    An endless loop there does not stop the tests.
    """
    paths = [folder / f"trace{i}" for i in range(len(inputs))]
    for path, data in zip(paths, inputs, strict=True):
        path.write_bytes(data)
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (90, 90))\n"  # compiling takes 15 of them
        "from vegasmodel.packets import read\n"
        "from vegasmodel.packets.trace import TraceError\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        print(f'ends at {read(path).edges[-1]:.1f}', flush=True)\n"
        "    except TraceError as error:\n"
        "        print(error, flush=True)\n"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])\n"
    )
    command = [sys.executable, "-c", code, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


def test_a_long_run_of_digits_or_blanks_in_an_ns2_line(tmp_path):
    end = b"5.0 0 1 tcp 1000 ------- 0 0.0 1.0 1 1\n"
    hostile = [
        EVENT + b"r " + b"0" * 250 + end,
        EVENT + b"r" + b" " * 250 + end,
        VARIABLE + b"0" * 250 + b"5.0 0 0 1 0 cwnd_ 2\n",
        VARIABLE + b" " * 250 + b"5.0 0 0 1 0 cwnd_ 2\n",
    ]
    assert read_alone(hostile, tmp_path)[:-1] == ["ends at 5.0"] * len(hostile)


def trace_file(path: Path, rows: int, flows: list[str], **widths: int) -> bytes:
    """A trace file with any names and rows, and zeros in lists; small because it is compressed."""
    about = {"schema": 1, "engine": "e", "begin": -1.0, "scenario": None, "provenance": {}}
    about |= {"controls": {}, "doubts": {}, "flows": flows, "links": [], "static": {}}
    table = pa.table({"time": np.arange(rows, dtype=float)})
    for name, width in widths.items():
        zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * width)), width)
        table = table.append_column(name, zeros)
    table = table.replace_schema_metadata({KEY: json.dumps(about)})
    pq.write_table(table, path, compression="zstd", row_group_size=rows)
    return path.read_bytes()


def varint(number: int, length: int) -> bytes:
    """A number in Thrift's encoding, with exactly this many bytes."""
    number *= 2
    return bytes([number >> 7 * i & 0x7F | (0x80 if i < length - 1 else 0) for i in range(length)])


def test_a_name_as_long_as_a_book(tmp_path):
    path = tmp_path / "trace"
    trace_file(path, 1, ["x" * 200_000, *map(str, range(9999))])
    tracemalloc.start()
    with pytest.raises(TraceError, match="names of at most"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    trace_file(path, 1, ["x" * 500])
    assert read(path).flows == ["x" * 500]


def test_small_files_that_ask_for_much_memory(tmp_path):
    """A million row groups and column chunks that do not exist; or all values that fit."""
    flows = 39
    data = trace_file(tmp_path / "small", 1, ["a"])
    end = int.from_bytes(data[-8:-4], "little")
    footer, hostile = data[-8 - end : -8], []
    number = bytes([999_999 & 127 | 128, 999_999 >> 7 & 127 | 128, 999_999 >> 14])
    for at, byte in enumerate(footer):
        if byte & 15 == 12 and 0 < byte >> 4 < 15:  # perhaps a list of structures
            forged = footer[:at] + b"\xfc" + number + footer[at + 1 :]
            hostile.append(data[: -8 - end] + forged + len(forged).to_bytes(4, "little") + b"PAR1")
    assert len(hostile) >= 3
    rows = MAX_CELLS // flows - 1
    full = trace_file(tmp_path / "full", rows, list(map(str, range(flows))), throughput=flows)
    assert len(full) < 1e6
    *said, memory = read_alone([*hostile, full], tmp_path)
    assert said[-1] == f"ends at {rows - 1:.1f}"
    assert int(memory) < 500_000


def test_room_for_more_flows_is_made_before_it_is_taken():
    """128 flows take 11 x 128 x 4096 numbers of 8 bytes, 46 MB; 256 flows take no more."""
    sums = bins.Bins()
    while sums.flow.shape[1] < 128:
        sums.grow_flows()
    assert sums.flow.nbytes == 11 * 128 * 4096 * 8
    tracemalloc.start()
    sums.grow_flows()
    assert sums.flow.nbytes == 11 * 128 * 4096 * 8
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


@pytest.mark.parametrize("which", range(4))
def test_a_file_that_states_fewer_rows_than_it_holds(which, tmp_path):
    path, rows = tmp_path / "trace", 2_000_000
    data = trace_file(path, rows, ["a"])
    places = [found.start() for found in re.finditer(re.escape(varint(rows, 4)), data[-2000:])]
    assert len(places) == 4  # of the file, its row group, and each number of values
    forged = bytearray(data)
    at = len(data) - 2000 + places[which]
    forged[at : at + 4] = varint(1000, 4)
    path.write_bytes(forged)
    before = pa.total_allocated_bytes()
    if which < 2:
        with pytest.raises(TraceError, match="rows"):
            read(path)
    else:  # the rows are there, or they are not
        with contextlib.suppress(TraceError):
            assert len(read(path).edges) == rows + 1
    gc.collect()  # a table may wait in a cycle of references, such as an error's traceback
    assert pa.total_allocated_bytes() - before < 1e6


@pytest.mark.parametrize("reading", [read, reference.scenario_of])
def test_more_rows_than_any_trace_has(reading, tmp_path):
    path = tmp_path / "trace"
    trace_file(path, MAX_ROWS + 1, ["a"])
    with pytest.raises(TraceError, match="rows"):
        reading(path)


def test_arrivals_whose_gaps_are_nearly_all_short():
    law = ParetoArrivals(rate=50.0, shape=1.0000001)
    flow = Flow(law="reno", rtt=0.08, size=30.0, arrivals=law)
    with pytest.raises(FieldError, match="arrivals"):
        arrivals.times(flow, 0.0, 100.0, np.random.default_rng(1))


def test_more_groups_than_pairs_can_be_shown_of():
    flows = tuple(Flow(law="reno", rtt=0.08, name=str(i)) for i in range(301))
    with pytest.raises(FieldError, match="at most 300 groups"):
        Scenario(links=(Link(1000.0),), flows=flows)
    many = Flow(law="reno", rtt=0.08, count=10_001)
    assert len(Scenario(links=(Link(1000.0),), flows=(many,)).members) == 10_001
