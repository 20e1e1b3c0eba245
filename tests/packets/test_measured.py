"""The averages of a trace, and those of the Linux reference runs."""

import dataclasses
import hashlib
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets.scenes import LINUX, ROOT, gappy, scenario, small
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import measured, read
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.inspection import inspect
from vegasmodel.packets.trace import make

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


@pytest.mark.parametrize(("first", "said"), [(4.1, False), (4.3, True)])
def test_a_start_may_be_late_by_the_start_jitter_and_a_second(first, said):
    seen = scenario()
    seen = dataclasses.replace(seen, run=dataclasses.replace(seen.run, start_jitter=3.2))
    trace = small_rates(np.full((6, 2), 100.0), first=[0.1, first])
    told = [a.name for a in measured.to_prediction(trace, seen).assumptions]
    assert ("same-starts" in told) is said


def test_without_counts_of_sent_packets_these_are_the_delivered_and_the_lost_ones():
    """Flow a has 90 packets delivered and 10 lost a second, flow b 60 and 40."""
    rates, lost = np.tile([90.0, 60.0], (6, 1)), np.tile([10.0, 40.0], (6, 1))
    dropped = measured.to_prediction(gappy(rates, slice(0), loss=lost), scenario())
    again = measured.to_prediction(gappy(rates, slice(0), retransmits=lost), scenario())
    both = gappy(rates, slice(0), retransmits=2.0 * lost, loss=lost)
    for found, how in (
        (dropped, "drops"),
        (again, "retransmissions"),
        (measured.to_prediction(both, scenario()), "drops"),
    ):
        np.testing.assert_allclose(found.loss_rate, [0.1, 0.4])
        assert found.extra["loss_rate"] == f"{how} over packets sent"


def test_packets_sent_in_the_warm_up_and_lost_after_it_make_no_loss_rate_above_one():
    """Of 100 packets sent in the first second, 60 are lost in the second one, in which 40 are."""
    rates, sent, lost = (np.zeros((6, 2)) for _ in range(3))
    sent[0], sent[1], lost[1] = 100.0, 40.0, 60.0
    trace = gappy(rates, slice(0), sent=sent, loss=lost)
    found = measured.to_prediction(trace, scenario(warmup=1.0, duration=6.0))
    np.testing.assert_array_equal(found.loss_rate, 1.0)


def test_the_mean_queue_leaves_out_the_warm_up_and_what_follows_the_run():
    """Of 4 s measured, the queue has 2 packets for half a second, then 4, 6, 8 and 10."""
    queue = np.array([[100.0], [100.0], [2.0], [4.0], [6.0], [8.0], [10.0], [100.0]])
    given = {"throughput": np.full((8, 2), 250.0), "queue": queue, "served": queue * 50}
    trace = make("ns2", np.arange(1.0, 9.0), ["a", "b"], given, links=["bottleneck"])
    found = measured.to_prediction(trace, scenario(warmup=2.5, duration=6.5))
    np.testing.assert_allclose(found.queue_mean, [(0.5 * 2 + 4 + 6 + 8 + 0.5 * 10) / 4.0])


def test_prediction_counts_a_flow_only_while_it_is_active():
    rates = np.full((6, 2), 100.0)
    late = measured.to_prediction(small_rates(rates), scenario(start=3.0))
    np.testing.assert_allclose(late.throughput, [100.0, 100.0])
    rates[3:] = 0
    short = measured.to_prediction(small_rates(rates, last=[3.0, 3.0]), scenario(size="300 pkt"))
    np.testing.assert_allclose(short.throughput, [100.0, 100.0])
    silent = measured.to_prediction(small_rates(rates, last=[3.0, 3.0]), scenario())
    np.testing.assert_allclose(silent.throughput, [40.0, 40.0])


def test_an_unknown_throughput_is_not_one_of_0():
    """The flows deliver 600 and 300 packets a second.

    In a part of the 10 s measured this is unknown; if it is over a tenth, the user is told.
    """
    rates = np.tile([600.0, 300.0], (20, 1))
    seen = scenario(warmup=10.0, duration=20.0)
    whole = measured.to_prediction(gappy(rates, slice(0)), seen)
    for unknown, seconds in (
        (slice(12, 15), 3),
        (slice(14, 16), 2),
        (slice(14, 15), 0),
        (slice(0, 5), 0),
    ):
        found = measured.to_prediction(gappy(rates, unknown), seen)
        np.testing.assert_allclose(found.throughput, [600.0, 300.0])
        np.testing.assert_allclose(found.delivered, whole.delivered)
        np.testing.assert_allclose(found.delivered_bps, whole.delivered_bps)
        said = [a.detail for a in found.assumptions if a.name == "known-throughput"]
        told = [f"{name}'s throughput is unknown for {seconds} of 10 s" for name in ("a", "b")]
        assert said == (["; ".join(told)] if seconds else [])


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


@pytest.mark.parametrize("last", [None, (math.nan, math.nan)])
def test_a_flow_of_finite_size_is_measured_until_it_delivers_no_more(last):
    """Flow a delivers 100 packets/s until 3 s; averages over 1 to 6 s had 40 packets/s."""
    rates = np.array([[100.0, 50.0]] * 3 + [[0.0, 50.0]] * 3)
    given = {"throughput": rates} | ({} if last is None else {"last": last})
    trace = make("ns2", np.arange(1.0, 7.0), ["a", "b"], given)
    found = measured.to_prediction(trace, scenario(size="300 kB"))
    np.testing.assert_allclose(found.throughput, [100.0, 50.0])
    np.testing.assert_allclose(found.delivered, [200.0, 250.0])
    endless = measured.to_prediction(trace, scenario())  # its pauses count
    np.testing.assert_allclose(endless.throughput, [40.0, 50.0])


def test_short_flows_that_arrive_at_random_are_measured_to_the_end():
    """The last packet of such a group is not the end of a flow: more may arrive."""
    rates = np.array([[100.0, 50.0]] * 3 + [[0.0, 50.0]] * 3)
    trace = make("ns2", np.arange(1.0, 7.0), ["a", "b"], {"throughput": rates, "last": (3.0, 6.0)})
    keys = {"size": 9.0, "arrivals": vm.Poisson(10.0)}
    case = scenario()
    short = dataclasses.replace(case.flows[0], **keys)
    group = dataclasses.replace(case, flows=(short, case.flows[1]))
    np.testing.assert_allclose(measured.to_prediction(trace, group).throughput, [40.0, 50.0])


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


@pytest.mark.parametrize(("last", "said"), [(2.9, False), (3.2, True)])
def test_a_flow_of_the_trace_that_goes_on_after_its_stop_is_said(last, said):
    """It had no throughput, and no word said why."""
    seen = scenario()
    flows = (seen.flows[0], dataclasses.replace(seen.flows[1], stop=2.0))
    seen = dataclasses.replace(seen, flows=flows)
    name = seen.flows[1].name
    lasts = [last if each == name else 6.0 for each in ("a", "b")]
    trace = small_rates(np.full((6, 2), 100.0), last=lasts)
    found = [a for a in measured.to_prediction(trace, seen).assumptions if a.name == "same-stops"]
    assert [(a.holds, a.detail) for a in found] == (
        [
            (
                False,
                f"{name} stops at 2 s, in the trace at 3.2 s; what it sends after its stop is "
                "left out",
            )
        ]
        if said
        else []
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "stops at 6 s, in the trace at 3 s; its average includes the time from there on"),
        ({"stop": 5.0}, "stops at 5 s, in the trace at 3 s; its average includes"),
        ({"stop": 4.0}, ""),  # sent at most a second after its last packet in the trace
        ({"size": 200.0}, ""),  # it has sent all its data
    ],
)
def test_a_flow_that_stops_earlier_in_the_trace_is_said(more, said):
    """The trace lasts 6 s, and one flow sends in its first 3 s only."""
    seen = scenario()
    flows = (dataclasses.replace(seen.flows[0], **more), seen.flows[1])
    seen = dataclasses.replace(seen, flows=flows)
    ends = {each: 3.0 if each == seen.flows[0].name else 6.0 for each in ("a", "b")}
    rates = np.array([[100.0 * (t <= end) for end in ends.values()] for t in range(1, 7)])
    trace = small_rates(rates, last=list(ends.values()))
    found = [a for a in measured.to_prediction(trace, seen).assumptions if a.name == "same-stops"]
    assert [said in a.detail for a in found] == ([True] if said else [])


@pytest.mark.parametrize(
    ("lasts", "said"),
    [
        ((3.0, 6.0), "a sends nothing after 3 s"),
        ((3.0, 3.0), None),
        ((2.0, 4.0), "a sends nothing after 2 s"),  # the trace goes on after both
    ],
)
def test_inspect_says_which_flows_end_before_the_others(lasts, said, tmp_path, capsys):
    path, file = str(tmp_path / "t.parquet"), tmp_path / "new.toml"
    rates = np.array([[100.0 * (t <= last) for last in lasts] for t in range(1, 7)])
    small_rates(rates, last=lasts).write(path)
    assert inspect(path)["doubts"].get("same-ends") == said
    assert run(["new", str(file), "--from-trace", path]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("; the file says so with `stop`." in told) is (said is not None)
    assert f'stop = "{lasts[0]:g} s"' in file.read_text()


@pytest.mark.parametrize("stop", [None, 6.0])
def test_a_flow_that_stops_at_the_end_of_the_run_may_go_on_after_it(stop):
    trace, seen = small_rates(np.full((6, 2), 100.0), last=[60.0, 60.0]), scenario()
    flows = [dataclasses.replace(flow, stop=stop) for flow in seen.flows]
    told = measured.to_prediction(trace, dataclasses.replace(seen, flows=tuple(flows))).assumptions
    assert "same-stops" not in [a.name for a in told]


@pytest.mark.parametrize(
    ("times", "length", "said"),
    [([0.5, 1.0, 1.5, 1.7], 0.5, "4 time bins of 500 ms"), ([1.0, 1.5, 3.0], None, "3 time bins")],
)
def test_inspect_says_how_long_time_bins_are(times, length, said, tmp_path, capsys):
    path = tmp_path / "t.parquet"
    make("ns2", times, ["a"], {"throughput": np.full((len(times), 1), 9.0)}).write(path)
    assert inspect(path)["bin_s"] == length
    assert run(["inspect", str(path)]) == 0
    first = " ".join(capsys.readouterr().out.partition("busiest link")[0].split())
    assert first.endswith(said)
