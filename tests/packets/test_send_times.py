"""Whether senders wait before they send, as a trace of packets in ns-2 shows it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import samples
from vegasmodel.command_line import newfile
from vegasmodel.packets import read
from vegasmodel.packets.send_times import sent_at_once
from vegasmodel.packets.trace import Trace, make


def of(*parts: float) -> Trace:
    """A trace of flows that send these parts of their packets when an ACK arrives."""
    figures = {"throughput": np.full((50, len(parts)), 50.0), "sent_at_acks": list(parts)}
    return make("ns2", np.arange(1.0, 51.0), ["a", "b"][: len(parts)], figures)


def test_the_parts_agree_with_a_plain_loop() -> None:
    """Packets at their source that have the time of the last ACK there, of all packets there."""
    last, sent, at_acks = {}, {"1": 0, "2": 0}, {"1": 0, "2": 0}
    for text in (samples.DATA / "ns2_events.tr").read_text().splitlines():
        kind, time, at, to, what, _, _, flow, source, target, _, _ = text.split()
        if kind == "r" and what == "ack" and to == target.split(".")[0]:
            last[flow] = time
        elif kind == "+" and what == "tcp" and at == source.split(".")[0]:
            sent[flow] += 1
            at_acks[flow] += last.get(flow) == time
    found = read(samples.DATA / "ns2_events.tr").get("sent_at_acks")
    np.testing.assert_allclose(found, [at_acks[flow] / sent[flow] for flow in "12"])


@pytest.mark.ns2
@pytest.mark.parametrize(("wait", "flows"), [("0", {"1", "2"}), ("0.0005", set())])
def test_a_run_of_ns2_shows_whether_its_senders_wait(
    wait: str, flows: set[str], tmp_path: Path
) -> None:
    """``overhead_`` is the longest random wait of ns-2's senders, s."""
    script = (samples.DATA / "ns2_two_flows.tcl").read_text()
    (tmp_path / "run.tcl").write_text(f"Agent/TCP set overhead_ {wait}\n{script}")
    subprocess.run(["ns", "run.tcl", "12"], cwd=tmp_path, check=True, capture_output=True)
    assert set(sent_at_once(read(tmp_path / "out.tr"))) == flows


def test_a_file_says_that_senders_do_not_wait_and_why() -> None:
    text, _, guesses = newfile.from_trace(of(0.999, 0.91), "at once")
    assert [flow.send_jitter for flow in vm.Scenario.from_toml(text).flows] == [0.0, 0.0]
    assert "send_jitter" not in guesses
    assert "99 % of the packets are sent at the time when an ACK arrives" in text
    assert "# - send_jitter" not in text


def test_one_sender_of_which_it_is_unknown_leaves_a_guess() -> None:
    trace = of(0.95, 0.89)
    assert sent_at_once(trace) == {"a": 0.95}
    text, _, guesses = newfile.from_trace(trace, "one")
    assert text.count('send_jitter = "0 s"  # estimate: 95 %') == 1
    assert "send_jitter" in guesses
    assert sent_at_once(of(float("nan"))) == {}


@pytest.mark.parametrize(("jitter", "holds"), [("0 s", True), ("1 ms", False)])
def test_compare_says_whether_the_models_senders_wait_as_well(jitter: str, holds: bool) -> None:
    flow = vm.Flow("reno", "50 ms", name="a", send_jitter=jitter)
    s = vm.Scenario([vm.Link("60 pkt/s", buffer="5 pkt")], [flow], run=vm.Run("50 s", warmup="5 s"))
    for trace, expected in ((of(0.95), holds), (of(0.5), None)):
        (result,) = vm.compare(s, trace, models=["fluid"]).models
        (said,) = (a for a in result.assumptions if a.name == "same-jitter")
        assert said.holds is expected
