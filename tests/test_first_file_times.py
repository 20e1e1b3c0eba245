"""The times in a file that ``new`` writes from a trace: starts, stops and the warm-up."""

import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import captures
from vegasmodel.command_line import newfile
from vegasmodel.packets import read
from vegasmodel.packets.measured import to_prediction
from vegasmodel.packets.trace import Trace, make
from vegasmodel.packets.trajectories import to_trace


def ending(samples: int) -> tuple[vm.Scenario, Trace]:
    """A scenario, and the trace of a run: one flow from 4 to 12 s, one until it is complete."""
    flows = (
        vm.Flow("vegas", "40 ms", variant="ns2"),
        vm.Flow("reno", "40 ms", variant="ns2", start="4 s", stop="12 s"),
        vm.Flow("reno", "40 ms", variant="ns2", name="brief", size=2000),
    )
    link, span = vm.Link("1250 pkt/s", buffer="40 pkt"), vm.Run("20 s", "2 s", runs=1)
    case = vm.Scenario((link,), flows, run=span, name="ending")
    return case, to_trace(vm.simulate(case, "rounds", samples=samples))


@pytest.mark.parametrize("samples", [21, 2001])
def test_a_file_from_a_simulated_trace_has_the_starts_and_stops(samples: int) -> None:
    """The file had neither, so models took each flow to send from the beginning to the end."""
    _, trace = ending(samples)
    file = vm.Scenario.from_toml(newfile.from_trace(trace, "ending")[0])
    vegas, reno, brief = file.flows
    assert (vegas.start, vegas.stop) == (0.0, None)
    assert (reno.start, reno.stop) == (4.0, 12.0)
    assert brief.start == 0.0
    delivers = trace.edges[1:][trace.get("throughput")[:, 2] > 0]
    step = 20.0 / (samples - 1)
    assert delivers[-1] - 2 * step <= brief.stop <= delivers[-1]


@pytest.mark.parametrize("samples", [21, 2001])
def test_a_simulated_trace_and_its_simulator_have_one_throughput(samples: int) -> None:
    """A flow of finite size was averaged over the whole time in the trace."""
    case, trace = ending(samples)
    rounds = vm.predict(case, model="rounds").throughput
    np.testing.assert_allclose(to_prediction(trace, case).throughput, rounds, rtol=0.02)


def test_a_flow_that_starts_just_before_the_end_does_not_move_the_warm_up() -> None:
    """Of 30 s; from a start at 15 s the warm-up ends at 20 s, and from one at 28 s at 10 s."""
    for late, warmup in ((15.0, 20.0), (28.0, 10.0)):
        figures = {"throughput": np.full((30, 2), 50.0), "first": [0.0, late]}
        trace = make("pcap", np.arange(1.0, 31.0), ["a", "b"], figures)
        text, *_ = newfile.from_trace(trace, "late")
        assert vm.Scenario.from_toml(text).run.warmup == pytest.approx(warmup)


@pytest.mark.parametrize(
    ("last", "pauses", "stop"),
    [
        (12.0, (), 12.0),
        (19.5, (), None),  # less than a second before the end of the trace
        (12.0, (2, 11), None),  # it was silent for longer before
        (17.0, (10, 11), 17.0),
    ],
)
def test_a_flow_that_ends_before_the_trace_stops_in_the_file(
    last: float, pauses: tuple[int, ...], stop: float | None
) -> None:
    """The trace lasts for 20 s; the second flow delivers nothing during its pause."""
    times = np.arange(1.0, 21.0)
    rates = np.full((20, 2), 500.0)
    rates[times > last + 1, 1] = 0.0
    rates[slice(*pauses) if pauses else slice(0), 1] = 0.0
    figures = {"throughput": rates, "rtt": np.full((20, 2), 0.05), "first": [0.0, 0.0]}
    trace = make("pcap", times, ["a", "b"], figures | {"last": [20.0, last]})
    text, *_ = newfile.from_trace(trace, "stops")
    first, second = vm.Scenario.from_toml(text).members
    assert first.stop == 20.0
    assert second.stop == (20.0 if stop is None else stop)
    assert ("  # the last packet; the flow ends" in text) is (stop is not None)
    if stop == 12.0:
        found = vm.compare(vm.Scenario.from_toml(text), trace, []).measured
        np.testing.assert_allclose(found.throughput, [500.0, 500.0])


@pytest.mark.parametrize("last", [500.0, 700.0])
def test_a_run_is_as_long_as_its_trace_of_more_than_600_s(last: float) -> None:
    """A trace of 900 s; the file had a run of 600 s, the default, and no start or stop after it."""
    times = np.arange(1.0, 901.0)
    rates = np.full((900, 3), 500.0)
    rates[times > last, 1] = 0.0
    rates[times < 600, 2] = 0.0
    figures = {"throughput": rates, "rtt": np.full((900, 3), 0.05), "first": [0.0, 0.0, 600.25]}
    trace = make("pcap", times, ["a", "b", "c"], figures | {"last": [900.0, last, 900.0]})
    text, *_ = newfile.from_trace(trace, "long")
    scenario = vm.Scenario.from_toml(text)
    assert scenario.run.duration == 900.0
    assert scenario.run.warmup == pytest.approx(600.25 + (900 - 600.25) / 3, rel=1e-6)
    assert [member.start for member in scenario.members] == [0.0, 0.0, 600.25]
    assert [member.stop for member in scenario.members] == [900.0, last, 900.0]


@pytest.mark.parametrize("late", [0.0, 1000.0])
def test_the_warm_up_of_a_long_trace_lasts_at_most_200_s_from_the_last_start(late: float) -> None:
    figures = {"throughput": np.full((400, 2), 50.0), "first": [0.0, late]}
    trace = make("pcap", np.arange(10.0, 4001.0, 10.0), ["a", "b"], figures)
    text, *_ = newfile.from_trace(trace, "long")
    assert vm.Scenario.from_toml(text).run.warmup == late + 200.0


def test_times_of_a_long_trace_have_their_microseconds() -> None:
    """A day; with six digits 43210.123456 s was 43210.1 s, and the run ended before its trace."""
    times = np.append(np.arange(60.0, 86400.0, 60.0), 86399.876543)
    rates = np.where(times[:, None] < [90000.0, 60000.0], 500.0, 0.0)
    moments = {"first": [0.0, 43210.123456], "last": [86399.876543, 60000.654321]}
    figures = {"throughput": rates, "rtt": np.full(rates.shape, 0.05)} | moments
    trace = make("pcap", times, ["a", "b"], figures)
    scenario = vm.Scenario.from_toml(newfile.from_trace(trace, "day")[0])
    assert scenario.run.duration == 86399.876543
    assert (scenario.members[1].start, scenario.members[1].stop) == (43210.123456, 60000.654321)


def test_times_of_a_capture_count_from_its_first_packet(tmp_path: Path) -> None:
    """Frames have the seconds since 1970; the second connection begins 700 s after the first."""
    plain = replace(captures.Options(), packets=400)
    rng, records = random.Random(3), []
    for number, begin in enumerate((0.0, 700.123456)):
        one = captures.Connection(plain, rng, begin)
        one.run()
        for frame in one.frames:
            data, whole = captures._bytes(frame, (7, 9), plain)
            at = data.index(struct.pack(">H", 40000))
            data = (
                data[:at]
                + data[at : at + 4].replace(
                    struct.pack(">H", 40000), struct.pack(">H", 40000 + number)
                )
                + data[at + 4 :]
            )
            records.append((frame.time, data, whole))
    (tmp_path / "t.pcap").write_bytes(captures._pcap(sorted(records), 65535))
    trace = read(tmp_path / "t.pcap")
    scenario = vm.Scenario.from_toml(newfile.from_trace(trace, "two")[0])
    first, second = trace.get("first")
    assert scenario.run.duration == pytest.approx(trace.edges[-1], abs=1e-6)
    assert scenario.members[0].start == pytest.approx(first, abs=1e-6)
    assert scenario.members[1].start == pytest.approx(second, abs=1e-6)
    assert second == pytest.approx(700.123456 + first, abs=0.2)


@pytest.mark.parametrize(
    ("ends", "warmup"),
    [
        ((20.0, 30.0), 10.0),  # a third of the time to the last packet
        ((20.0, 99.5), 100.0 / 3.0),  # one flow sends until the trace ends
    ],
)
def test_averages_begin_before_all_flows_have_ended(ends: tuple[float, ...], warmup: float) -> None:
    """Both flows start at 0; the trace lasts for 100 s."""
    times = np.arange(1.0, 101.0)
    rates = np.where(times[:, None] <= np.array(ends), 500.0, 0.0)
    figures = {"throughput": rates, "rtt": np.full((100, 2), 0.05), "first": [0.0, 0.0]}
    trace = make("pcap", times, ["a", "b"], figures | {"last": list(ends)})
    text, *_ = newfile.from_trace(trace, "early")
    scenario = vm.Scenario.from_toml(text)
    assert scenario.run.warmup == pytest.approx(warmup, rel=1e-5)
    measured = vm.compare(scenario, trace, []).measured.throughput
    assert measured[1] == pytest.approx(500.0, rel=0.02)


@pytest.mark.parametrize(("again", "stop"), [(0, 30.0), (1, 100.0)])
def test_a_silent_connection_of_a_kernel_s_trace_stops(
    again: int, stop: float, tmp_path: Path
) -> None:
    """The rows go on to 100 s, the end; with a retransmission at 60 s the sender is not done."""
    rows = ["time,flow,cwnd,bytes_acked,snd_mss,rtt_us,total_retrans"]
    for k in range(101):
        rows.append(f"{k},a,10,{k * 100_000},1000,50000,0")
        rows.append(f"{k},b,10,{min(k, 30) * 100_000},1000,50000,{again * (k >= 60)}")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    text, *_ = newfile.from_trace(read(tmp_path / "log.csv"), "log")
    assert [member.stop for member in vm.Scenario.from_toml(text).members] == [100.0, stop]
