"""The trace type, its file, what it tells about a scenario, and the Linux reference runs."""

import dataclasses
import hashlib
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

import vegasmodel as vm
from tests.packets import mutations, samples
from vegasmodel.fields.units import FieldError
from vegasmodel.packets import TraceError, measured, read
from vegasmodel.packets.activity import idle_flows, windows_a_round_trip
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.inspection import doubts, inspect
from vegasmodel.packets.trace import VARIABLES, assemble, make
from vegasmodel.packets.trace_file import KEY, metadata

ROOT = Path(__file__).parent.parent.parent
LINUX = ROOT / "vegasmodel" / "packets" / "reference" / "linux"

# summary.csv of the runs: throughput (pkt/s), share, Vegas's baseRTT at the end (ms), and mean
# smoothed RTT (ms) of the first and second flow, over the last two thirds.
SUMMARY = {
    "e1a_2M_40ms_a3b3": ((55.556, 194.442), (0.2222, 0.7778), (40.035, 56.21), (72.0, 72.0)),
    "e1b_2M_40ms_a2b4": ((55.556, 194.442), (0.2222, 0.7778), (40.033, 56.212), (72.0, 72.0)),
    "e1d_2M_40ms_a2b4_iw2": ((88.198, 161.8), (0.3528, 0.6472), (40.031, 56.212), (68.0, 68.0)),
    "e1h_2M_40ms_a10b10_iw2": (
        (61.291, 188.707),
        (0.2452, 0.7548),
        (40.031, 68.212),
        (105.92, 105.97),
    ),
    "e1j1_2M_320ms_a3b3": ((95.506, 154.492), (0.382, 0.618), (320.031, 336.205), (356.0, 356.0)),
}


def kernel_log(second=1.0, trip=1.0, byte=1.0):
    """A CSV of one flow that delivers 10 packets of 1000 B in each of 100 round trips of 50 ms.

    The arguments are factors by which time, RTT and bytes are wrong.
    """
    lines = [
        f"{0.05 * k * second:.9g},a,10,{10_000 * k * byte:g},1000,{5e4 * trip:g}"
        for k in range(101)
    ]
    return "\n".join(["time,flow,cwnd,bytes_acked,snd_mss,rtt_us", *lines]).encode()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, None),
        ({"byte": 8}, "8 windows in an RTT, as if bits were taken for bytes"),
        ({"trip": 1e-3}, "0.001 of its window"),
        ({"second": 1e3}, "0.001 of its window"),
        ({"trip": 1e4}, "an RTT of 500 s, as if milliseconds"),
        ({"second": 1e-6}, "Gbit/s, as if bits"),
    ],
)
def test_a_column_in_another_unit_is_doubted(wrong, said, tmp_path):
    (tmp_path / "log.csv").write_bytes(kernel_log(**wrong))
    doubt = inspect(tmp_path / "log.csv")["doubts"].get("usual-units", "")
    assert (said or "") in doubt
    assert bool(doubt) == bool(said)


def test_a_comparison_has_the_doubt_about_units_too(tmp_path, capsys):
    scenario = vm.Scenario(
        [vm.Link(3000.0, buffer=20.0)], [vm.Flow("reno", 0.05, name="a")], run=vm.Run(5.0, 1.0)
    )
    for byte, doubted in ((1, False), (8, True)):
        (tmp_path / "log.csv").write_bytes(kernel_log(byte=byte))
        found = vm.compare(scenario, tmp_path / "log.csv", "network")
        said = {each.name: each.holds for each in found.measured.assumptions}
        assert ("usual-units" in said) is doubted
        assert said.get("usual-units") is None
        found.print_table()
        printed = capsys.readouterr().out
        assert ("trace: usual-units is not known: a delivers 8 windows" in printed) is doubted


@pytest.mark.parametrize(("column", "doubted"), [("minrtt_us", True), ("vegas_baseRTT_us", False)])
def test_an_alpha_by_minrtt_says_that_it_may_be_a_packet_too_high(column, doubted, tmp_path):
    """The kernel's minrtt may be that of the SYN; the window is 10 and RTT / baseRTT is 5 / 4."""
    header, *rows = kernel_log().decode().split("\n")
    text = "\n".join([f"{header},{column}", *(f"{row},40000" for row in rows)])
    (tmp_path / "log.csv").write_text(text)
    trace = read(tmp_path / "log.csv")
    found = estimate(trace, over_base=trace.flows).alpha["a"]
    assert found.value == pytest.approx(2.5)
    assert ("up to a packet too high" in found.how) is doubted


@pytest.mark.parametrize("run", list(SUMMARY))
def test_a_kernel_delivers_its_window_in_a_round_trip(run):
    """Little's law, on which the doubt stands."""
    trace = read(LINUX / f"{run}.parquet")
    np.testing.assert_allclose(windows_a_round_trip(trace), 1.0, atol=0.1)


def test_intervals_without_a_delivery_raise_no_doubt_of_units(tmp_path):
    """A window of 6 packets in an RTT of 60 ms: 2 packets every 20 ms, in intervals of 4 ms."""
    bursts = np.where(np.arange(500) % 5 == 4, 2 / 0.004, 0.0)[:, None]
    flow = {"throughput": bursts, "rtt": np.full((500, 1), 0.06), "window": np.full((500, 1), 6.0)}
    make("pcap", 0.004 * np.arange(1, 501), ["a"], flow).write(tmp_path / "fine.parquet")
    assert inspect(tmp_path / "fine.parquet")["doubts"] == {}


@pytest.mark.parametrize(
    ("figures", "idle"),
    [
        ({"rate": 0.7, "window": 10.0}, True),  # 0.7 packets a second, 10 in a round trip of 0.1 s
        ({"rate": 10.0, "window": 1.0}, False),  # starved: its window is one packet
        ({"rate": 2.0, "window": 2.0, "retransmits": 0.2}, False),  # it waits for its timer
        ({"rate": 2.0, "window": 2.0, "retransmits": 0.05}, True),  # 0.05 packets a second
        ({"rate": 20.0, "window": 100.0}, False),  # 2 % of the other's packets
        ({"rate": 0.5, "window": math.nan}, True),  # 5 packets in 10 s
        ({"rate": 2.0, "window": math.nan}, False),
        ({"rate": 0.0, "window": 10.0}, True),
        ({"rate": 15.0, "window": 100.0, "payload": 100.0}, True),  # 0.15 % of the other's bytes
    ],
)
def test_flows_that_have_little_to_send(figures, idle):
    """Beside a flow of 1000 pkt/s, which has a window of 100 packets in an RTT of 0.1 s."""
    full = {"rate": 1000.0, "window": 100.0, "retransmits": 20.0, "payload": 1000.0}
    each = {key: np.array([value, figures.get(key, 0.0)]) for key, value in full.items()}
    each["payload"][1] = figures.get("payload", 1000.0)
    rows = {key: np.tile(each[key], (10, 1)) for key in ("window", "retransmits")}
    rows |= {"throughput": np.tile(each["rate"], (10, 1)), "rtt": np.full((10, 2), 0.1)}
    trace = make("linux", np.arange(1.0, 11.0), ["a", "b"], rows | {"payload": each["payload"]})
    assert list(idle_flows(trace)) == ["b"] * idle
    assert doubts(trace).get("no-idle-flows", "").startswith("b delivers") == idle


def small(**changes):
    rng = np.random.default_rng(3)
    variables = {
        "throughput": rng.uniform(0, 500, (6, 2)),
        "rtt": rng.uniform(0.04, 0.08, (6, 2)),
        "queue": rng.uniform(0, 20, (6, 1)),
        "first": [0.0, 1.5],
    }
    given = {"links": ["bottleneck"], "scenario": "abc", "provenance": {"source": "a test"}}
    return make("ns2", np.arange(1.0, 7.0), ["a", "b"], variables, **(given | changes))


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


BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
VALUES = st.sampled_from((math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, 1 / 3)) | BITS
TEXT = st.text(st.characters(), max_size=8)  # any code point, surrogates and controls among them
NAMES = TEXT.filter(lambda name: not name.endswith("\0"))


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


@pytest.mark.parametrize("name", list(samples.every_format()))
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


def hostile():
    """Parquet files that are not our traces, by name."""
    about = metadata(small())

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
    about = metadata(make("x", [1.0], names, {"throughput": np.ones((1, flows))}))
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


def scenario(flows=("a", "b"), warmup=1.0, duration=6.0, start=0.0, size="inf"):
    groups = "".join(
        f'[[flow]]\nname = "{name}"\nlaw = "vegas"\nrtt = "40 ms"\nstart = "{start} s"\n'
        f'size = "{size}"\n'
        for name in flows
    )
    return vm.Scenario.from_toml(
        f'[[link]]\ncapacity = "500 pkt/s"\n{groups}'
        f'[run]\nwarmup = "{warmup} s"\nduration = "{duration} s"\n'
    )


def test_prediction_weighs_intervals_by_their_part_in_the_time_that_counts():
    rates = np.array([[100.0, 10.0], [200.0, 20.0], [300.0, 30.0]])
    losses = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    trace = make(
        "ns2",
        [1.0, 2.0, 4.0],
        ["b", "a"],
        {"throughput": rates, "loss": losses, "sent": rates, "retransmits": losses},
    )
    answer = measured.to_prediction(trace, scenario(warmup=0.5, duration=3.0))
    assert answer.model == "trace"
    # half of the first interval, the second, half of the last (2 s at 300)
    np.testing.assert_allclose(answer.throughput, np.array([55.0, 550.0]) / 2.5)
    np.testing.assert_allclose(answer.retransmits, [0.0, 0.5 + 2 + 2])
    np.testing.assert_allclose(answer.loss_rate, [0.0, 4.5 / (50 + 200 + 150)])
    assert answer.base_rtt is None
    assert answer.to_json()["flows"][0]["throughput_pps"] == pytest.approx(22.0)


def test_starts_that_differ_from_the_trace_s_are_said():
    trace = small_rates(np.full((6, 2), 100.0), first=[0.1, 3.2])
    (told,) = (
        a for a in measured.to_prediction(trace, scenario()).assumptions if a.name == "same-starts"
    )
    assert told.holds is False
    assert told.detail == "b starts at 0 s, in the trace at 3.2 s"
    same = small_rates(np.full((6, 2), 100.0), first=[0.1, 0.9])
    told = measured.to_prediction(same, scenario()).assumptions
    assert "same-starts" not in [a.name for a in told]


def test_prediction_counts_a_flow_only_while_it_is_active():
    rates = np.full((6, 2), 100.0)
    late = measured.to_prediction(small_rates(rates), scenario(start=3.0))
    np.testing.assert_allclose(late.throughput, [100.0, 100.0])
    rates[3:] = 0
    short = measured.to_prediction(small_rates(rates, last=[3.0, 3.0]), scenario(size="300 pkt"))
    np.testing.assert_allclose(short.throughput, [100.0, 100.0])
    silent = measured.to_prediction(small_rates(rates, last=[3.0, 3.0]), scenario())
    np.testing.assert_allclose(silent.throughput, [40.0, 40.0])


def gappy(rates, unknown, **more):
    """A trace of intervals of 1 s, without the throughputs at the index ``unknown``."""
    rates = np.array(rates, dtype=float)
    rates[unknown] = math.nan
    return make("csv", np.arange(1.0, len(rates) + 1), ["a", "b"], {"throughput": rates, **more})


def test_an_unknown_throughput_is_not_one_of_0():
    """The flows deliver 600 and 300 packets a second; in 3 of the 10 s measured it is unknown."""
    rates = np.tile([600.0, 300.0], (20, 1))
    seen = scenario(warmup=10.0, duration=20.0)
    whole = measured.to_prediction(gappy(rates, slice(0)), seen)
    for unknown in (slice(12, 15), slice(0, 5)):
        found = measured.to_prediction(gappy(rates, unknown), seen)
        np.testing.assert_allclose(found.throughput, [600.0, 300.0])
        np.testing.assert_allclose(found.delivered, whole.delivered)
        np.testing.assert_allclose(found.delivered_bps, whole.delivered_bps)
        said = [a.detail for a in found.assumptions if a.name == "known-throughput"]
        told = "a's throughput is unknown for 3 of 10 s; b's throughput is unknown for 3 of 10 s"
        assert said == ([told] if unknown.start else [])


def test_a_flow_without_any_known_throughput_has_none(tmp_path):
    trace = gappy(np.tile([600.0, 300.0], (20, 1)), (slice(None), 1))
    seen = scenario(warmup=10.0, duration=20.0, size="1000000 pkt")
    found = measured.to_prediction(trace, seen)
    np.testing.assert_array_equal(found.throughput, [600.0, math.nan])
    assert {a.name: a.detail for a in found.broken} == {
        "known-throughput": "b's throughput is unknown throughout"
    }
    assert found.unknown_flows == ("b",)
    assert found.shares == {"a": None, "b": None}
    assert found.jain is None
    (error,) = vm.compare(seen, trace, "network").errors.values()
    assert error == {"throughput_nrmse": None, "ratio": None, "base_rtt": None}
    known = vm.compare(seen, gappy(np.full((20, 2), 250.0), slice(0)), "network")
    assert known.measured.jain == pytest.approx(1.0)
    assert known.errors["network"]["throughput_nrmse"] == pytest.approx(0.0, abs=1e-6)
    late = scenario(flows=("a",), warmup=10.0, duration=20.0).flows[0]
    pair = [late, dataclasses.replace(late, name="b", start="9 s", stop="9.5 s")]
    ended = measured.to_prediction(trace, dataclasses.replace(seen, flows=pair))
    assert (ended.unknown_flows, ended.jain) == ((), 1.0)  # b is not active in this time
    trace.write(tmp_path / "t.parquet")
    told = inspect(tmp_path / "t.parquet")
    assert told["doubts"] == {"known-throughput": "b's throughput is unknown throughout"}
    assert told["flows"][1]["packets"] is None


def test_counts_and_loss_rates_leave_out_what_is_unknown():
    """A flow sends 100 packets a second and loses 10; another number is unknown in each interval.

    In the last three seconds all is known; nothing was lost before.
    """
    sent, lost, rates = (np.full((6, 2), value) for value in (100.0, 10.0, 90.0))
    lost[:3] = 0.0
    sent[3], lost[4] = math.nan, math.nan
    trace = gappy(rates, slice(0), sent=sent, loss=lost, acks=sent, retransmits=lost)
    found = measured.to_prediction(trace, scenario(warmup=0.0, duration=6.0))
    np.testing.assert_allclose(found.acks, 600.0)
    np.testing.assert_allclose(found.retransmits, 20.0 * 6 / 5)
    np.testing.assert_allclose(found.loss_rate, 10.0 / 400.0)


def test_a_queue_that_is_unknown_is_not_empty():
    """Link y's queue has 20 packets, x's has 8; y's is known for a quarter of the time only."""
    queue = np.tile([8.0, 20.0], (20, 1))
    queue[5:, 1] = math.nan
    given = {"throughput": np.full((20, 2), 250.0), "queue": queue, "served": queue * 50}
    times = np.arange(1.0, 21.0)
    trace = make("ns2", times, ["a", "b"], given, links=["x", "y"])
    found = measured.to_prediction(trace, scenario(warmup=1.0, duration=20.0))
    np.testing.assert_allclose(found.queue_mean, [20.0])
    assert "link y" in estimate(trace).capacity.how


def test_a_capacity_is_estimated_from_the_time_in_which_all_throughputs_are_known():
    rates = np.tile([600.0, 400.0], (40, 1))
    found = estimate(gappy(rates, slice(None, None, 2))).capacity
    assert (found.low, found.value, found.high) == pytest.approx((1000.0,) * 3)
    assert estimate(gappy(rates, (slice(None), 1))).capacity.value == pytest.approx(600.0)
    rates[:20, 0] = rates[20:, 1] = math.nan
    assert estimate(gappy(rates, slice(0))).capacity is None


def test_base_rtt_is_the_sources_own_or_else_the_smallest_rtt_so_far():
    own = np.column_stack([np.linspace(0.05, 0.04, 6), np.full(6, math.nan)])
    least = np.column_stack([[0.07, 0.04, 0.06, 0.05, 0.05, 0.03], np.full(6, 0.08)])
    rates, times = np.full((6, 2), 100.0), np.arange(1.0, 7.0)
    seen = scenario(warmup=2.0, duration=5.0)
    both = make(
        "linux", times, ["a", "b"], {"throughput": rates, "base_rtt": own, "rtt_min": least}
    )
    np.testing.assert_array_equal(
        measured.to_prediction(both, seen).base_rtt, [own[4, 0], math.nan]
    )
    packets = make("ns2", times, ["a", "b"], {"throughput": rates, "rtt_min": least})
    np.testing.assert_array_equal(measured.to_prediction(packets, seen).base_rtt, [0.04, 0.08])


def small_rates(rates, last=(6.0, 6.0), first=(0.0, 0.0)):
    times = np.arange(1.0, 7.0)
    static = {"first": first, "last": last}
    return make("ns2", times, ["a", "b"], {"throughput": rates, **static})


def test_a_trace_that_ends_before_the_warm_up_is_refused():
    with pytest.raises(FieldError, match=r"after the warm-up of 50 s: lower run\.warmup"):
        measured.to_prediction(small(), scenario(warmup=50.0, duration=100.0))


@pytest.mark.parametrize("run", list(SUMMARY))
def test_linux_runs_agree_with_their_summary(run):
    throughput, share, base, rtt = SUMMARY[run]
    s = vm.load(ROOT / "paper_checks" / "linux" / f"{run}.toml")
    trace = read(LINUX / f"{run}.parquet")
    assert trace.scenario == s.fingerprint()
    answer = measured.to_prediction(trace, s)
    # the summary counts between samples, 0.2 s apart in 67 s: 0.3 %
    np.testing.assert_allclose(answer.throughput, throughput, rtol=3e-3)
    np.testing.assert_allclose(answer.throughput / sum(answer.throughput), share, rtol=3e-3)
    np.testing.assert_allclose(answer.base_rtt * 1e3, base, atol=0.001)
    np.testing.assert_allclose(answer.rtt_mean * 1e3, rtt, rtol=1e-3)
    np.testing.assert_array_equal(answer.retransmits, [0, 0])


def test_linux_files_are_whole():
    sums = dict(line.split()[::-1] for line in (LINUX / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in LINUX.glob("*.parquet")}
    for name, digest in sums.items():
        assert hashlib.sha256((LINUX / name).read_bytes()).hexdigest() == digest


def test_estimates_of_a_linux_run():
    """250 pkt/s; 40 ms; the later flow's baseRTT was 56; alpha = beta = 3, a backlog in [3, 4)."""
    e = estimate(read(LINUX / "e1a_2M_40ms_a3b3.parquet"))
    assert e.capacity.value == pytest.approx(250, rel=1e-3)
    assert e.base_rtt["1"].value == pytest.approx(0.040, rel=2e-3)
    assert all(3 <= e.alpha[flow].value < 4 for flow in "12")
    assert e.buffer.high == math.inf
    assert "lower bound" in e.buffer.how


def test_estimates_of_an_ns2_run():
    """1.5 Mbit/s, packets of 1000 and 1040 B; with a queue limit of 10, 9 packets wait."""
    e = estimate(read(samples.DATA / "ns2_events.tr"))
    assert e.capacity.low < 1.5e6 / 8 / 1000
    assert e.capacity.high > 1.5e6 / 8 / 1040
    assert e.capacity.high < 1.1 * e.capacity.low
    assert e.buffer.value == 9
    assert "overflowed" in e.buffer.how


def test_estimates_of_a_fixed_window(tmp_path):
    """20 packets in flight at 500 pkt/s and 22 ms: 20 (40 - 22)/40 = 9 of them wait."""
    path = tmp_path / "t.pcap"
    path.write_bytes(samples.pcap(samples.frames(samples.course(2000))))
    e = estimate(read(path))
    (name,) = e.base_rtt
    assert e.capacity.value == pytest.approx(500, rel=0.02)
    assert e.base_rtt[name].value == pytest.approx(0.022, rel=1e-3)
    assert e.alpha[name].value == pytest.approx(9, rel=0.01)


def test_means_of_a_whole_life_bound_the_buffer_from_below():
    """FlowMonitor: 1216 packets were lost, the mean RTT is 110 and 139 ms above the least one."""
    buffer = estimate(read(samples.DATA / "flowmon.xml")).buffer
    assert 225 * 0.138 < buffer.low == buffer.value < 225 * 0.140  # each flow's wait is a bound
    assert buffer.high == math.inf
    assert "the queue overflowed" in buffer.how
