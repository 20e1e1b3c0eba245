"""Whether receivers delay their ACKs, as captures show it."""

import random
from dataclasses import replace

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import captures
from tests.packets.captures import Options
from vegasmodel.command_line import newfile
from vegasmodel.command_line.commands import run
from vegasmodel.packets import read
from vegasmodel.packets.ack_delays import ack_delays
from vegasmodel.packets.trace import make


def capture(tmp_path, seed=1, **options):
    """The trace of a capture with these options; packets come at 200 to 3000 a second."""
    plain = replace(Options(), **{"packets": 600, "window": 20} | options)
    (tmp_path / "trace").write_bytes(captures.make(plain, random.Random(seed)).data)
    return read(tmp_path / "trace")


@pytest.mark.parametrize("delayed", [True, False])
@pytest.mark.parametrize("at", ["sender", "receiver"])
@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"loss": 0.03},
        {"merged": 40},
        {"syns": False},
        {"stamps": False},
        {"copied": 0.1},
        {"snap": 96, "vlans": 1},
        {"version": 6},
    ],
)
def test_captures_tell_whether_acks_are_delayed(delayed, at, odd, tmp_path):
    trace = capture(tmp_path, delayed_ack=delayed, at=at, **odd)
    (found,) = ack_delays(trace).values()
    assert (found.delayed, found.certain) == (delayed, True)


def test_short_flows_do_not_tell_it(tmp_path):
    """Linux acknowledges 16 packets at once at first; of 31 packets they are the majority."""
    assert ack_delays(capture(tmp_path, packets=31)) == {}
    assert ack_delays(capture(tmp_path, packets=40)) != {}


def test_a_capture_without_acks_does_not_tell_it(tmp_path):
    plain = replace(Options(), packets=600)
    lines = captures.Connection(plain, random.Random(1), 1.0)
    lines.run()
    seen = [frame for frame in lines.frames if frame.forward]
    records = [(frame.time, *captures._bytes(frame, (1, 2), plain)) for frame in seen]
    (tmp_path / "trace").write_bytes(captures._pcap(records, 65535))
    trace = read(tmp_path / "trace")
    assert trace.get("packets_per_ack") is None
    assert ack_delays(trace) == {}


def counted(per_ack, rate=100.0):
    """A trace of a flow that delivers ``rate`` packets a second for 50 s."""
    values = {"throughput": np.full((50, 1), rate), "packets_per_ack": [per_ack]}
    return make("pcap", np.arange(1.0, 51.0), ["a"], values)


@pytest.mark.parametrize(
    ("per_ack", "rate", "delayed", "certain"),
    [
        (1.0, 26.0, False, True),
        (1.0, 24.0, False, False),  # a packet in 42 ms: Linux may have waited 40 ms for another
        (2.0, 24.0, True, True),
        (3.0, 100.0, True, False),
        (44.0, 100.0, True, False),  # 64 kB joined by the network card
    ],
)
def test_what_is_uncertain_is_a_guess_in_the_file(per_ack, rate, delayed, certain):
    trace = counted(per_ack, rate)
    (found,) = ack_delays(trace).values()
    assert (found.delayed, found.certain) == (delayed, certain)
    text, _, guesses = newfile.from_trace(trace, "acks")
    assert vm.Scenario.from_toml(text).flows[0].delayed_ack is delayed
    assert ("delayed_ack of 1 flow" in guesses) is not certain
    said = "estimate" if certain else "a guess"
    (line,) = (line for line in text.splitlines() if line.startswith("delayed_ack = "))
    assert line.partition("  # ")[2] == f"{said}: {found.how}"
    assert "# - delayed_ack, under" not in text


def test_inspect_and_compare_say_it(tmp_path, capsys):
    capture(tmp_path, delayed_ack=True)
    assert run(["inspect", str(tmp_path / "trace")]) == 0
    assert "pkt/ACK" in capsys.readouterr().out
    assert run(["new", str(tmp_path / "s.toml"), "--from-trace", str(tmp_path / "trace")]) == 0
    s = vm.load(tmp_path / "s.toml")
    for delayed, told in ((True, []), (False, ["same-delayed-acks"])):
        other = s.replace({"flow.delayed_ack": delayed})
        found = vm.compare(other, tmp_path / "trace", []).measured.broken
        assert [a.name for a in found if a.name == "same-delayed-acks"] == told


@pytest.mark.parametrize("seed", range(6))
def test_the_wait_of_a_delayed_ack_is_no_part_of_an_rtt(seed, tmp_path):
    """Of a window of 21 packets the last has no second packet, so its ACK comes 40 ms late.

    Without delayed ACKs, the same RTTs are at most shorter by a packet's time, 5 ms or less: an ACK
    of two packets releases two at once.
    """
    tops = {}
    for delayed in (True, False):
        plain = replace(Options(), packets=601, window=21, delayed_ack=delayed)
        made = captures.make(plain, random.Random(seed))
        (tmp_path / "trace").write_bytes(made.data)
        tops[delayed] = np.nanmax(read(tmp_path / "trace").get("rtt"))
        true = made.truths[0].rtts
        assert (max(true) > min(true) + 0.04) is delayed
    assert tops[True] <= tops[False] + 0.005


def ns2_events(delayed, lost=(), nodes=("0", "1", "2", "3"), packets=300):
    """An event trace of ns-2 between the nodes given: 100 packets/s, RTT 40 ms, an ACK per 1 or 2.

    Nodes 0 and 3 are the source and the sink; of the packets ``lost``, each is sent again 0.1 s
    later.  ACKs that follow a missing packet are sent at once.
    """
    events, got, cum, waiting = [], set(), -1, 0
    arrivals = [(0.01 * i + 0.1 * (i in lost) + 0.02, i) for i in range(packets)]
    for time, i in sorted(arrivals):
        steps = [(time - 0.02 + 0.006 * k, k, k + 1, "tcp", i) for k in range(3)]
        got.add(i)
        usual = i == cum + 1
        while cum + 1 in got:
            cum += 1
        waiting = waiting + 1 if usual and len(got) == cum + 1 else 2
        if not delayed or waiting >= 2:
            steps += [(time + 0.006 * k, 3 - k, 2 - k, "ack", cum) for k in range(3)]
            waiting = 0
        for begin, a, b, kind, seq in steps:
            size, ends = (1000, "0.0 3.0") if kind == "tcp" else (40, "3.0 0.0")
            if {str(a), str(b)} <= set(nodes):
                what = f"{a} {b} {kind} {size} ------- 1 {ends} {seq} {len(events)}"
                events += [(begin, f"+ {begin:.6f} {what}"), (begin, f"- {begin:.6f} {what}")]
                events.append((begin + 0.005, f"r {begin + 0.005:.6f} {what}"))
    return "\n".join(text for _, text in sorted(events, key=lambda event: event[0])) + "\n"


@pytest.mark.parametrize("delayed", [True, False])
@pytest.mark.parametrize("lost", [(), range(20, 300, 30)])
@pytest.mark.parametrize("nodes", [("0", "1", "2", "3"), ("1", "2")])
def test_event_traces_of_ns2_tell_whether_acks_are_delayed(delayed, lost, nodes, tmp_path):
    """Even the trace of the bottleneck alone does, which lacks the source and the sink."""
    (tmp_path / "out.tr").write_text(ns2_events(delayed, lost, nodes))
    trace = read(tmp_path / "out.tr")
    (found,) = ack_delays(trace).values()
    assert (found.delayed, found.certain) == (delayed, True)
    text, _, guesses = newfile.from_trace(trace, "sinks")
    assert vm.Scenario.from_toml(text).flows[0].delayed_ack is delayed
    assert not any("delayed_ack" in guess for guess in guesses)


def test_a_short_event_trace_of_ns2_does_not_tell_it(tmp_path):
    (tmp_path / "out.tr").write_text(ns2_events(True, packets=31))
    assert ack_delays(read(tmp_path / "out.tr")) == {}


@pytest.mark.parametrize("step", [1, 2])
def test_the_variable_ack_of_ns2_tells_it(step, tmp_path):
    lines = [f"{0.01 * i:.5f}  0  0  4  0  ack_ {i}" for i in range(200)[::step]]
    (tmp_path / "var.tr").write_text("\n".join(["0.00000  0  0  4  0  cwnd_ 1.000", *lines]) + "\n")
    (found,) = ack_delays(read(tmp_path / "var.tr")).values()
    assert (found.delayed, found.certain) == (step == 2, True)
