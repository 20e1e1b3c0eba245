"""The trace type and its file."""

import dataclasses
import json
import math
import random
import struct
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.packets import mutations, samples
from tests.packets.scenes import small
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import TraceError, read
from vegasmodel.packets.trace import VARIABLES, assemble, make
from vegasmodel.packets.trace_writing import KEY

BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
VALUES = st.sampled_from((math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, 1 / 3)) | BITS
TEXT = st.text(st.characters(), max_size=8)  # any code point, surrogates and controls among them
NAMES = TEXT.filter(lambda name: not name.endswith("\0"))


def same(one, other):
    """Equal bit for bit, including signs of NaN and of zero."""
    for field in dataclasses.fields(one):
        if field.name != "data":
            assert getattr(one, field.name) == getattr(other, field.name)
    assert list(one.data.sizes.items()) == list(other.data.sizes.items())
    assert set(one.data.variables) == set(other.data.variables)
    for name in one.data.variables:
        assert one.data[name].attrs == other.data[name].attrs
        left, right = one.data[name].values, other.data[name].values
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()


@st.composite
def traces(draw):
    """Any trace that a file may hold: any 64 bits as values, NaN with any sign and payload."""
    flows = draw(st.lists(NAMES, max_size=4, unique=True))
    links = draw(st.lists(NAMES, max_size=3, unique=True))
    begin = draw(st.one_of(st.just(0.0), st.integers(-(2**60), 2**60), st.floats(-1e9, 1e9)))
    steps = draw(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=5))
    times = np.cumsum([float(begin), *steps])[1:]
    assume(np.all(np.diff(times, prepend=float(begin)) > 0))  # a step may vanish beside 2**60
    variables = {}
    for name in draw(st.lists(st.sampled_from(list(VARIABLES)), unique=True)):
        size = len(flows) if VARIABLES[name].over == "flow" else len(links)
        shape = (size,) if VARIABLES[name].static else (len(times), size)
        count = math.prod(shape)
        values = draw(st.lists(VALUES, min_size=count, max_size=count))
        variables[name] = np.array(values, dtype=float).reshape(shape)
    return assemble(
        draw(TEXT),
        times,
        flows,
        variables,
        begin=begin,
        links=links,
        scenario=draw(st.none() | TEXT),
        provenance=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        controls=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        doubts=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
    )


@settings(derandomize=True, deadline=None, max_examples=80)
@given(traces())
def test_round_trip_bit_for_bit(trace):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        trace.write(path)
        same(read(path), trace)


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    names = [f"f{i}" for i in range(10_001)]
    trace = make("fluid", [1.0, 2.0], names, {"throughput": np.ones((2, len(names)))})
    with pytest.raises(FieldError, match="10000 flows"):
        trace.write(tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", samples.FORMATS)
def test_round_trip_of_every_reader(name, tmp_path):
    (tmp_path / "raw").write_bytes(samples.every_format()[name][0])
    trace = read(tmp_path / "raw")
    trace.write(tmp_path / "t.parquet")
    same(read(tmp_path / "t.parquet"), trace)


def test_a_trace_is_frozen_and_leaves_out_what_is_not_known():
    trace = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.engine = "ns3"
    assert trace.get("window") is None
    assert trace.edges.tolist() == [0.0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("times", "flows", "variables", "message"),
    [
        ([1, 1], ["a"], {}, "increasing times"),
        ([1, math.nan], ["a"], {}, "increasing times"),
        ([-1, 1], ["a"], {}, "increasing times"),
        ([], ["a"], {}, "increasing times"),
        ([1, 2], ["a", "a"], {}, "names that differ"),
        ([1, 2], ["a", "a\0"], {}, "end with NUL"),
        ([1, 2], ["a"], {"throughput": [[1.0]]}, "shape"),
        ([1, 2], ["a"], {"speed": [[1.0], [1.0]]}, "one of throughput"),
        ([1, 2], ["a"], {"throughput": [[1.0], [-3.0]]}, "^throughput: -3.0 .* at least 0 and"),
        ([1, 2], ["a"], {"rtt": [[math.nan], [-0.1]]}, "^rtt: -0.1 is not allowed"),
        ([1, 2], ["a"], {"sent": [[math.inf], [1.0]]}, "^sent: inf is not allowed"),
        ([1, 2], ["a"], {"window": [[1e13], [1.0]]}, r"^window: 1000.* at most 1e\+12"),
        ([1, 2], ["a"], {"packet_size": [-1.0]}, "^packet_size: -1.0 is not allowed"),
        ([1, 2], ["a"], {"first": [math.inf]}, "^first: inf .* any number and at most"),
    ],
)
def test_wrong_traces_are_refused(times, flows, variables, message):
    with pytest.raises(FieldError, match=message):
        make("ns2", times, flows, variables)


def test_what_a_trace_may_hold():
    """A trace may begin before 0, and NaN is a value that is not known."""
    values = {"throughput": [[0.0], [math.nan]], "loss": [[-0.0], [1.0]], "first": [-2.0]}
    trace = make("ns2", [-1, 1], ["a"], values, begin=-3.0)
    assert set(trace.data.data_vars) == set(values)


@pytest.mark.parametrize("left", [0.5, 0.99, 1.0])
def test_a_trace_file_that_is_cut_off_is_told(tmp_path, left):
    small().write(tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(data[: int(left * (len(data) - 1))])
    with pytest.raises(TraceError, match="found 'no end of a Parquet file: is it cut off") as error:
        read(tmp_path / "t.parquet")
    assert str(error.value).endswith("expected a Parquet file that this package wrote")


def hostile():
    """Parquet files that are not our traces, by name."""
    about = small()._about()

    def table(columns, **changes):
        return pa.table(columns).replace_schema_metadata({KEY: json.dumps(about | changes)})

    times = pa.array(np.arange(1.0, 7.0))
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(12)), 2)
    structs = pa.array([{"element": 0.0}] * 6)
    return {
        "plain": (pa.table({"time": times}), "metadata"),
        "version": (table({"time": times}, schema=99), "version 1"),
        "no time": (table({"throughput": pairs}), "wrote"),
        "text time": (table({"time": pa.array(["a"] * 6)}), "double"),
        "width": (table({"time": times, "throughput": pairs}, flows=["a"]), "lists of 1"),
        "struct": (table({"time": times, "throughput": structs}), "lists of 2"),
        "names": (table({"time": times}, flows=[1, 2]), "text"),
        "static": (table({"time": times}, static={"first": [1.0]}), "wrote"),
        "begin": (table({"time": times}, begin="0"), "begin"),
        "doubts": (table({"time": times}, doubts={"clock": 3}), "text"),
        "backwards": (table({"time": pa.array([2.0, 1.0])}), "wrote"),
        "null": (table({"time": pa.array([1.0, None])}), "wrote"),
        "many": (table({"time": pa.array(np.zeros(4_000_001))}), "rows"),
    }


def test_a_small_file_of_many_zeros_is_refused(tmp_path):
    """12 variables of 2 million zeros: 200 MB of memory from a few kB."""
    path, rows, flows = tmp_path / "t.parquet", 2000, 1000
    names = [f"f{i}" for i in range(flows)]
    about = make("x", [1.0], names, {"throughput": np.ones((1, flows))})._about()
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * flows)), flows)
    over = [name for name, kind in VARIABLES.items() if kind.over == "flow" and not kind.static]
    columns = {"time": pa.array(np.arange(1.0, rows + 1))} | dict.fromkeys(over, zeros)
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about)})
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 300_000
    with pytest.raises(TraceError, match="at most 16000000 doubles"):
        read(path)


@pytest.mark.parametrize("name", list(hostile()))
def test_hostile_parquet_is_refused(name, tmp_path):
    table, message = hostile()[name]
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=message) as caught:
        read(tmp_path / "t.parquet")
    assert str(caught.value).isprintable()


def test_damaged_parquet_is_refused_or_read(tmp_path):
    path = tmp_path / "t.parquet"
    small().write(path)
    whole, rng = path.read_bytes(), random.Random(8)
    refused = 0
    for _ in range(300):
        path.write_bytes(mutations.mutate("parquet", whole, rng))
        try:
            read(path, "parquet")
        except TraceError:
            refused += 1
    assert refused > 100


def test_a_trace_is_shown_in_one_line():
    values = {"throughput": np.ones((2, 2))}
    trace = make("ns2", [0.5, 1.0], ["a", "b"], values, links=["l"])
    assert repr(trace) == "<Trace of ns2: 0 to 1 s, 2 flows, 1 link>"
