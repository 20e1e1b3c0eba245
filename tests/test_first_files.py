"""The first files of a user: ``new``, from a trace or without, and ``inspect``."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.command_line import newfile
from vegasmodel.command_line.commands import run
from vegasmodel.packets.filled import Filled
from vegasmodel.packets.pairing import pair
from vegasmodel.packets.trace import Trace, make
from vegasmodel.packets.trajectories import to_trace

EVENTS = Path(__file__).parent / "data" / "ns2_events.tr"
FLOWMON = Path(__file__).parent / "data" / "flowmon.xml"


def test_a_new_file_is_one_that_predict_takes_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "first.toml"]) == 0
    assert vm.load("first.toml").name == "first"
    capsys.readouterr()
    assert run(["predict", "first.toml", "--model", "minicycle", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["applicable"]
    assert run(["new", "first.toml"]) == 2
    assert "'first.toml' exists already; give another name, or --force" in capsys.readouterr().err
    assert run(["new", "first.toml", "--force"]) == 0
    assert run(["new", "first.txt"]) == 2


def test_without_a_name_the_file_is_printed_with_a_comment_on_its_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["new"]) == 0
    text = capsys.readouterr().out
    assert vm.Scenario.from_toml(text).links[0].buffer == 50.0  # 1 BDP: 1250 pkt/s, 40 ms
    assert "# capacity times the mean rtt of all flows" in text
    for key in ("packet_size", "capacity", "buffer", "law", "rtt", "variant", "count", "warmup"):
        assert any(line.startswith(f"{key} = ") and "#" in line for line in text.splitlines()), key
    assert run(["new", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["toml"], document["file"], document["schema"]) == (text, None, 1)


def test_a_buffer_in_bandwidth_delay_products_is_said_to_be_of_the_mean_rtt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["new", str(tmp_path / "a.toml")]) == 0
    text = (tmp_path / "a.toml").read_text()
    for buffer, said in (("1 BDP", "buffer 50 pkt (1 BDP at the mean RTT)"), ("9 pkt", "9 pkt;")):
        (tmp_path / "b.toml").write_text(text.replace("1 BDP", buffer))
        capsys.readouterr()
        assert run(["predict", str(tmp_path / "b.toml"), "--model", "minicycle"]) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def _new(trace: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON document of the command ``new`` with this trace."""
    assert run(["new", "--from-trace", str(trace), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_file_from_a_trace_holds_its_flows_and_its_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``compare`` finds each of the flows again by the line ``match``."""
    document = _new(EVENTS, capsys)
    s = vm.Scenario.from_toml(document["toml"])
    estimates = {e["key"]: e for e in document["estimates"]}
    assert estimates["link[0].capacity"]["low"] <= s.links[0].capacity
    assert s.links[0].capacity <= estimates["link[0].capacity"]["high"]
    written = {line.split(" = ")[0]: line for line in document["toml"].splitlines()}
    assert written["warmup"].startswith('warmup = "0.1999 s"')  # as run.warmup of the estimates
    assert written["capacity"].startswith('capacity = "181 pkt/s"')  # of 176.6 to 185.9
    assert [flow.match for flow in s.flows] == vm.packets.read(EVENTS).flows
    assert "a guess: the trace does not name its congestion control" in document["toml"]
    path = tmp_path / "t.toml"
    path.write_text(document["toml"], encoding="utf-8")
    compared = vm.compare(vm.load(path), trace=EVENTS, models=[])
    assert [pair["by"] for pair in compared.pairing] == ["match", "match"]


def test_a_syn_in_a_trace_of_ns2_tells_its_defaults_and_the_size_without_headers() -> None:
    """``ns2_two_flows.tcl`` gives a Vegas and a Reno flow 1000 B, and leaves stock ns-2's defaults.

    So Reno sends a SYN of 40 B, and then packets of 1040 B. The link has 1.5 Mbit/s.
    """
    trace = vm.packets.read(EVENTS)
    assert trace.data["syn"].values.tolist() == [0.0, 1.0]
    text, _, guesses = newfile.from_trace(trace, "late")
    s = vm.Scenario.from_toml(text)
    assert s.run.ns2_defaults == "2.35"
    assert [s.size_of(flow) for flow in s.flows] == [1000.0, 1000.0]
    assert [flow.law for flow in s.flows] == ["vegas", "reno"]
    assert 'law = "vegas"  # a guess: it sends no SYN, but other flows do' in text
    assert "ns2_defaults" not in guesses
    assert all(said.name != "packet-size" for said in pair(trace, s).assumptions())
    alone = dataclasses.replace(trace, data=trace.data.drop_vars("syn"))
    text, _, guesses = newfile.from_trace(alone, "unknown")
    assert "ns2_defaults" in guesses
    assert vm.Scenario.from_toml(text).run.ns2_defaults == "papers"


def test_what_a_trace_cannot_tell_is_a_guess_that_says_so() -> None:
    rates = {"throughput": [[10.0], [10.0]]}
    trace = make("linux", [1.0, 2.0], ["one"], rates, controls={"one": "vegas"})
    text, *_ = newfile.from_trace(trace, "guessed")
    s = vm.Scenario.from_toml(text)
    assert (s.flows[0].law, s.flows[0].variant) == ("vegas", "linux")
    assert "variant" not in (s.guesses or ())
    assert s.flows[0].rtt == 0.2  # 0.05 would be less than a packet takes at 10 pkt/s
    assert 'rtt = "200 ms"  # a guess: the trace cannot tell it' in text


def test_new_names_what_it_has_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.csv"
    rows = [f"{t},{flow},10,{90_000 * t},1000" for t in range(1, 9) for flow in "ab"]
    trace.write_text("time,flow,cwnd,bytes_acked,snd_mss\n" + "\n".join(rows) + "\n")
    assert run(["new", str(tmp_path / "t.toml"), "--from-trace", str(trace)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Guesses, because the trace does not tell them; correct them in the file: " in said
    assert "rtt of 2 flows" in said
    assert "law of 2 flows" in said
    assert "t.toml is written; first correct the laws in it, which are guesses; then try:" in said
    assert (tmp_path / "t.toml").read_text().startswith("# Correct the laws first: ")
    guesses = _new(trace, capsys)["guesses"]
    assert "law of 2 flows" in guesses
    assert guesses[-4:] == ["variant", "queue", "delayed_ack", "send_jitter"]
    path = tmp_path / "t.toml"
    assert all(f"# - {key}, under " in path.read_text() for key in guesses[-4:])
    assert "If your link has RED," in path.read_text()
    written = vm.load(path)
    assert written.guesses == tuple(guesses)
    assert vm.Scenario.from_toml(written.to_toml()) == written
    assert written.replace(guesses=None).fingerprint() == written.fingerprint()
    corrected = vm.Scenario.from_toml(written.replace(guesses=()).to_toml())
    assert corrected.guesses == ()  # all entries of the list deleted
    assert run(["compare", str(path), "--trace", str(trace), "--model", "equilibrium"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Guesses in the file (guesses): {', '.join(guesses)}." in said
    assert run(["new", str(tmp_path / "own.toml")]) == 0
    said = capsys.readouterr().out
    assert "Guesses" not in said
    assert "is written; try: vegasmodel predict" in " ".join(said.split())


def test_a_law_that_is_not_known_here_is_a_guess_that_names_it() -> None:
    rates = {"throughput": [[10.0, 9.0, 9.0], [10.0, 9.0, 9.0]]}
    ran = {"a": "bbr", "b": "cubic", "c": "x\n" * 99}
    trace = make("csv", [1.0, 2.0], ["a", "b", "c"], rates, controls=ran)
    text, *_ = newfile.from_trace(trace, "bbr")
    laws = [line for line in text.splitlines() if line.startswith("law")]
    assert laws[:2] == [
        'law = "reno"  # a guess: it ran bbr, a law that vegasmodel does not have',
        'law = "cubic"',
    ]
    assert [flow.law for flow in vm.Scenario.from_toml(text).flows] == ["reno", "cubic", "reno"]


def test_a_law_of_the_users_file_is_no_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_own_laws: None
) -> None:
    """``new`` had no option ``--laws``, so it wrote "reno" for a law of the user's own."""
    law, trace, path = (str(tmp_path / name) for name in ("my.py", "run.csv", "s.toml"))
    Path(law).write_text(
        "import vegasmodel as vm\n\n\n@vm.register_law('grows')\ndef grows(f):\n    return 2.0\n"
    )
    rows = (
        f"{t},{flow},20,{14480 * t},1448,50000,{cc}\n"
        for t in range(40)
        for flow, cc in (("a", "grows"), ("b", "cubic"))
    )
    Path(trace).write_text("time,flow,cwnd,bytes_acked,snd_mss,rtt_us,cc\n" + "".join(rows))
    assert run(["new", path, "--from-trace", trace, "--laws", law]) == 0
    said = capsys.readouterr().out
    assert f"try: vegasmodel predict {path} --model all --laws {law}" in said
    assert "law of" not in said  # no law is among the guesses
    assert [flow.law for flow in vm.load(path).flows] == ["grows", "cubic"]


def test_a_kernels_trace_is_of_linux_whatever_its_laws() -> None:
    rates = {"throughput": [[10.0, 9.0], [10.0, 9.0]]}
    controls = {"10.0.0.1:1": "cubic"}  # of the other flow it is not known
    trace = make("linux", [1.0, 2.0], ["10.0.0.1:1", "10.0.0.2:1"], rates, controls=controls)
    s = vm.Scenario.from_toml(newfile.from_trace(trace, "kernel")[0])
    named = [(flow.name, flow.law, flow.variant) for flow in s.flows]
    assert named == [("cubic-1", "cubic", "linux"), ("flow-2", "reno", "linux")]


def test_a_file_from_a_simulated_trace_has_its_laws_names_sizes_and_a_finite_buffer() -> None:
    flows = [
        vm.Flow("vegas", "60 ms", name="ours", variant="ns2"),
        vm.Flow("newreno", "80 ms", name="theirs"),
    ]
    run = vm.Run(duration="40 s", warmup="10 s")
    truth = vm.Scenario([vm.Link("2 Mbit/s", buffer="12 pkt")], flows, packet_size="500 B", run=run)
    data = vm.simulate(truth, "fluid")
    trace = to_trace(data)
    lost = data["lost"].values[-1] - data["lost"].values[0]
    assert trace.data["loss"].sum("time").values == pytest.approx(lost)
    assert lost.sum() > 0
    s = vm.Scenario.from_toml(newfile.from_trace(trace, "again")[0])
    assert s.packet_size == 500.0
    for flow, known in zip(s.flows, truth.flows, strict=True):
        assert (flow.name, flow.law, flow.variant) == (known.name, known.law, "ns2")
    assert s.links[0].buffer == pytest.approx(12.0, abs=1.0)
    assert pair(trace, s).assumptions() == ()
    renamed = [dataclasses.replace(flow, name=flow.law) for flow in reversed(truth.flows)]
    found = pair(trace, dataclasses.replace(truth, flows=renamed))
    assert (found.order, set(found.by)) == ((1, 0), {"congestion control"})


def test_an_estimated_buffer_is_written_in_whole_packets() -> None:
    """(99.99 ms - 60 ms) 1000 pkt/s = 39.99 packets, for a trace without losses recorded."""
    rates = {"throughput": np.full((9, 1), 1000.0), "rtt": np.full((9, 1), 0.09999)}
    rates["rtt"][0] = 0.06
    text, *_ = newfile.from_trace(make("pcap", np.arange(1.0, 10.0), ["a"], rates), "whole")
    (line,) = (line for line in text.splitlines() if line.startswith("buffer"))
    assert line.startswith('buffer = "40 pkt"  # estimate: ')  # without a bound beside the bound
    assert "the trace does not tell whether packets were lost" in line


@pytest.mark.parametrize(
    ("value", "low", "high", "ends"),
    [
        (1000.5, 999.8, 1000.5, "999.8 to 1000.5"),  # 1000.5 to four digits is 1000
        (1000.4567, 999.8, 1000.4567, "999.8 to 1000.5"),  # written as 1000.46, above the range
        (1000.5, 990.0, 1010.0, "990 to 1010"),
        (31.21, 19.414159, 31.214, "19.41 to 31.21"),
    ],
)
def test_an_estimate_lies_in_the_range_that_is_written_beside_it(
    value: float, low: float, high: float, ends: str
) -> None:
    entry = Filled("link[0].capacity", value, low, high, "pkt/s", "by hand")
    text, note = newfile._written(entry, 1000.0)
    assert note == f"estimate, {ends} pkt/s: by hand; packets of 1000 B"
    first, last = map(float, ends.split(" to "))
    assert first <= float(str(text).removesuffix(" pkt/s")) <= last


def test_inspect_counts_what_the_trace_file_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """The test counts drops and packet sizes in the text of the ns-2 trace."""
    lines = [line.split() for line in EVENTS.read_text().splitlines()]
    assert run(["inspect", str(EVENTS), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["engine"]) == ("ns2_tr", "ns2")
    for flow in document["flows"]:
        mine = [row for row in lines if row[7] == flow["name"] and row[4] in ("tcp", "cbr")]
        assert flow["lost"] == sum(row[0] == "d" for row in mine)
        assert flow["packet_size_b"] == max(float(row[5]) for row in mine)
        assert flow["match"] == flow["name"]
    assert run(["inspect", str(EVENTS)]) == 0
    text = capsys.readouterr().out
    assert f'match = "{document["flows"][0]["name"]}"' in text
    assert run(["inspect", str(FLOWMON)]) == 0
    text = capsys.readouterr().out
    assert "flowmon" in text
    assert '  match = "10.1.0.2:49153>10.1.0.6:5000"  # flow 2\n' in text
    assert text.count("10.1.0.2:49153") == 1  # its row in the table has the number


def test_inspect_gives_rates_and_mean_rtts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flow a sends from 1 s to 4 s; 60, 30 and 10 of its 100 packets have RTTs of 1, 2 and 4 s."""
    figures = {
        "throughput": np.array([[60.0, 8.0], [30.0, 8.0], [10.0, 8.0], [0.0, 8.0]]),
        "rtt": np.array([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan], [9.0, np.nan]]),
        "base_rtt": np.array([[0.5, np.nan], [0.3, np.nan], [0.4, np.nan], [np.nan, np.nan]]),
        "first": np.array([1.0, 1.0]),
        "last": np.array([4.0, 5.0]),
        "packet_size": np.array([500.0, 1000.0]),
    }
    trace = make("linux", np.arange(2.0, 6.0), ["a", "b"], figures, begin=1.0)
    trace.write(tmp_path / "t.parquet")
    assert run(["inspect", str(tmp_path / "t.parquet"), "--json"]) == 0
    a, b = json.loads(capsys.readouterr().out)["flows"]
    assert a["throughput_pps"] == pytest.approx(100 / 3)
    assert a["throughput_bps"] == pytest.approx(100 / 3 * 4000)
    assert a["rtt_mean_s"] == pytest.approx(0.6 * 1 + 0.3 * 2 + 0.1 * 4)
    assert a["base_rtt_s"] == 0.4
    assert (b["throughput_pps"], b["rtt_mean_s"], b["base_rtt_s"]) == (8.0, None, None)
    assert run(["inspect", str(tmp_path / "t.parquet")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "100", "33.33", "1", "s", "4", "s", "500", "1.6", "s"] in [r[:10] for r in rows]


def test_inspect_gives_the_capacity_in_bits_too(capsys: pytest.CaptureFixture[str]) -> None:
    """The link of ``ns2_two_flows.tcl`` has 1.5 Mbit/s."""
    assert run(["inspect", str(EVENTS), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["capacity_bps"] == pytest.approx(1.5e6, rel=0.04)
    assert run(["inspect", str(EVENTS)]) == 0
    said = f"of 1000 to 1040 B ({document['capacity_bps'] / 1e6:.4g} Mbit/s), an estimate"
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_log_of_ss_tells_sizes_least_rtt_and_thresholds_within_their_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """W (RTT - minrtt)/minrtt = 30 * 2.5/40 = 1.875, which Linux floors before it compares."""
    path = tmp_path / "ss.txt"
    detail = "\t vegas wscale:7,7 rto:204 rtt:42.5/2 mss:1448 pmtu:1500 cwnd:30 minrtt:40"
    head = "ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5001"
    lines = [f"{17e8 + k}\n{head}\n{detail} bytes_acked:{1 + 1448 * 700 * k}" for k in range(9)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = _new(path, capsys)
    s = vm.Scenario.from_toml(document["toml"])
    assert s.packet_size == 1448 + 52  # pmtu
    assert s.flows[0].alpha == s.flows[0].beta == math.floor(1.875)
    assert 'alpha = "1 pkt"' in document["toml"]
    for entry in document["estimates"]:
        if entry["key"].endswith(".alpha"):
            assert entry["low"] <= entry["value"] <= entry["high"]
        if entry["key"].endswith(".beta"):
            assert entry["low"] <= entry["value"]
            assert entry["high"] is None
    written = {line.split(" = ")[0]: line for line in document["toml"].splitlines()}
    assert "packets of 1500 B" in written["capacity"]
    assert 'buffer = "inf"' in written["buffer"]
    assert "nothing was lost" in written["buffer"]
    assert run(["inspect", str(path), "--json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["rtt_min_s"], flow["packet_size_b"]) == (0.04, 1500.0)
    assert run(["inspect", str(path)]) == 0
    assert "busiest link: 700 pkt/s of 1500 B" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["inspect", "new --from-trace"])
def test_no_trace_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), str(Path(__file__))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "a known format: a capture (pcap, pcapng), ss -tin" in err
    assert "the columns time, flow, cwnd, bytes_acked, snd_mss" in err


def test_inspect_shows_a_count_that_is_unknown_for_one_flow_as_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"throughput": np.full((4, 2), 50.0), "retransmits": np.full((4, 2), 3.0)}
    figures["retransmits"][:, 0] = np.nan
    make("pcap", np.arange(1.0, 5.0), ["a", "b"], figures).write(tmp_path / "t.parquet")
    assert run(["inspect", str(tmp_path / "t.parquet"), "--json"]) == 0
    flows = json.loads(capsys.readouterr().out)["flows"]
    assert [flow["retransmits"] for flow in flows] == [None, 12.0]
    assert run(["inspect", str(tmp_path / "t.parquet")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[-1] for row in rows if row[:1] in (["a"], ["b"])] == ["-", "12"]


@pytest.mark.parametrize(
    ("base", "written"),
    [
        (0.06, 'buffer = "1 BDP"  # a guess: the trace only tells that it is at least 39.99 pkt: '),
        (
            0.02,
            'buffer = "80 pkt"  # a guess: the trace only tells that it is at least 79.99 pkt: ',
        ),
        (None, 'buffer = "1 BDP"  # a guess: the trace cannot tell it'),
    ],
)
def test_an_infinite_buffer_is_never_written_for_a_flow_that_only_losses_stop(
    base: float | None, written: str
) -> None:
    """1000 pkt/s, of which nothing was lost; (99.99 ms - baseRTT) 1000 pkt/s packets waited.

    The BDP is 60 packets, or 20.
    """
    known = {"throughput": np.full((9, 1), 1000.0), "retransmits": np.zeros((9, 1))}
    if base is not None:
        known["rtt"] = np.full((9, 1), 0.09999)
        known["rtt"][0] = base
    text, _, guesses = newfile.from_trace(make("pcap", np.arange(1.0, 10.0), ["a"], known), "r")
    assert f"\n{written}" in text
    assert "buffer" in guesses
    assert vm.Scenario.from_toml(text).flows[0].law == "reno"


def kernel_csv(path: Path, rows: list[tuple[object, ...]]) -> Path:
    """A table of a kernel's samples: time, flow, cwnd, RTT, bytes_acked, vegas_baseRTT_us."""
    head = "time,flow,cc,ca_state,cwnd,rtt_us,bytes_acked,total_retrans,snd_mss,vegas_baseRTT_us"
    lines = [
        f"{time},{flow},vegas,0,{cwnd},{rtt},{acked},0,948,{base}"
        for time, flow, cwnd, rtt, acked, base in rows
    ]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def test_a_table_of_a_user_s_own_program_does_not_count_as_a_kernel_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.csv"
    rows = [f"{k},a,reno,20,{144800 * k},1448" for k in range(9)]
    path.write_text("\n".join(["time,flow,cc,cwnd,bytes_acked,snd_mss", *rows]) + "\n")
    text, *_ = newfile.from_trace(vm.packets.read(path), "own")
    assert "\nvariant" not in text
    assert run(["inspect", str(path)]) == 0
    assert ": csv; 0 to 8 s" in " ".join(capsys.readouterr().out.split()).replace(" :", ":")
    kernel = kernel_csv(
        tmp_path / "k.csv", [(t, "a", 9, 50000, 94800 * t, 40000) for t in range(9)]
    )
    assert 'variant = "linux"' in newfile.from_trace(vm.packets.read(kernel), "k")[0]


def test_the_rtt_of_a_syn_is_no_base_rtt_and_shows_the_first_window(tmp_path: Path) -> None:
    """Path: 320 ms for a packet, 316 ms for the SYN; initial windows of 2; starts at 0 and 40 s.

    The smoothed RTT of 317 ms is still mostly that of the SYN.
    """
    rows: list[tuple[object, ...]] = [
        (0.1, "a", 2, 316000, 1, 2147483647),
        (0.2, "a", 2, 316000, 1, 2147483647),
        (0.4, "a", 4, 317000, 1897, 320000),
        (40.2, "b", 2, 316000, 1, 2147483647),
        (40.4, "a", 40, 330000, 1000000, 320000),
        (40.4, "b", 4, 317000, 1897, 321000),
        *((70.4, flow, 40, 330000, 2000000, 320000) for flow in "ab"),
        *((100.4, flow, 40, 330000, 3000000, 320000) for flow in "ab"),
    ]
    path = kernel_csv(tmp_path / "k.csv", rows)
    scenario = vm.Scenario.from_toml(newfile.from_trace(vm.packets.read(path), "syn")[0])
    assert [flow.rtt for flow in scenario.flows] == [0.32, 0.32]
    assert [flow.initial_window for flow in scenario.flows] == [2.0, 2.0]
    late = scenario.flows[1].start
    assert isinstance(late, float)
    assert scenario.run.warmup == pytest.approx(late + (100.4 - late) / 3.0)


def test_a_window_that_a_capture_saw_in_flight_is_no_first_window() -> None:
    rtts, flight = [[math.nan], [0.3], [0.3]], [[3.0], [9.0], [9.0]]
    figures = {"throughput": [[10.0]] * 3, "rtt": rtts, "window": flight}
    for said, shown in (("bytes in flight over the full payload", None), ("the kernel's cwnd", 3)):
        trace = make("pcap", [1.0, 2.0, 3.0], ["a"], figures, provenance={"window": said})
        text, *_ = newfile.from_trace(trace, "first")
        assert vm.Scenario.from_toml(text).flows[0].initial_window == shown


def with_control_connection() -> Trace:
    """Two flows that fill a link, and one that sends 300 B in 30 s, whose smoothed RTT is old.

    An RTT is 40.1 ms and up to 24 ms in the queue.
    """
    times = np.arange(1, 301) / 10
    rtt = 0.0401 + 0.024 * (times % 3 / 3)[:, None] * [[0.0, 1.0, 1.0]]
    rtt[:, 0] = 0.041
    rate = np.array([[0.007, 130.0, 700.0]])
    figures = {
        "throughput": np.repeat(rate, 300, axis=0),
        "rtt": rtt,
        "window": np.where([True, False, False], 10.0, rate * rtt),
        "base_rtt": np.full((300, 3), 0.0401),
        "retransmits": np.zeros((300, 3)),
        "payload": [1448.0] * 3,
        "first": [0.0] * 3,
    }
    names = ["10.0.0.1:1>10.0.0.2:5201", "10.0.0.1:2>10.0.0.2:5201", "10.0.0.1:3>10.0.0.2:5201"]
    laws = dict(zip(names, ("cubic", "vegas", "cubic"), strict=True))
    return make("linux", times, names, figures, controls=laws)


def test_a_flow_that_has_little_to_send_is_left_out_as_a_comment() -> None:
    trace = with_control_connection()
    text, *_ = newfile.from_trace(trace, "idle")
    s = vm.Scenario.from_toml(text)
    assert [(flow.law, flow.match) for flow in s.flows] == [
        ("vegas", trace.flows[1]),
        ("cubic", trace.flows[2]),
    ]
    assert [flow.rtt for flow in s.flows] == pytest.approx([0.0401, 0.0401])
    said, rest = text.split("\n# Left out")
    assert "it delivers 0.21 packets in all" in rest
    compared = vm.compare(s, trace, models=["minicycle"])
    assert {"no-other-flows", "no-idle-flows"}.isdisjoint(
        a.name for a in compared.measured.assumptions
    )
    back = "\n".join(line.removeprefix("# ") for line in rest.splitlines()[1:])
    whole = vm.Scenario.from_toml(said + "\n" + back)
    assert whole.flows[2].match == trace.flows[0]
    assert whole.flows[2].rtt == pytest.approx(0.0401)
    (note,) = (a for a in pair(trace, whole).assumptions() if a.name == "no-idle-flows")
    assert note.holds is False
    assert note.detail.startswith(f"cubic-1, which is {trace.flows[0]}, delivers 0.21 packets")


def test_a_new_file_tells_the_doubts_about_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A window in bytes, where packets are expected."""
    rows = [f"{k},a,reno,{20 * 1448},{144800 * k},1448,200000" for k in range(9)]
    head = "time,flow,cc,cwnd,bytes_acked,snd_mss,rtt_us"
    path, out = tmp_path / "bytes.csv", tmp_path / "new.toml"
    path.write_text("\n".join([head, *rows]) + "\n")
    assert run(["new", str(out), "--from-trace", str(path)]) == 0
    said = "a delivers 0.000691 of its window in an RTT: it has little to send, or the window"
    assert f"usual-units: {said}" in " ".join(capsys.readouterr().out.split())
    assert f"# In doubt, usual-units: {said}" in out.read_text(encoding="utf-8")
    assert _new(path, capsys)["doubts"]["usual-units"].startswith(said)
    control = tmp_path / "control.parquet"
    with_control_connection().write(control)
    assert run(["new", str(out), "--force", "--from-trace", str(control)]) == 0
    assert "little to send; left out." in " ".join(capsys.readouterr().out.split())


def test_no_text_of_a_trace_breaks_the_comments_of_a_new_file() -> None:
    """The name of a flow that is left out stands in a comment."""
    figures = {"throughput": np.tile([500.0, 0.1], (9, 1)), "rtt": np.full((9, 2), 0.05)}
    times, bad = np.arange(1.0, 10.0), "b\x1b\u2028\nlaw = 1"
    trace = make("pcap", times, ["a", bad], figures, doubts={"whole-file": bad})
    text, *_ = newfile.from_trace(trace, "names")
    assert [flow.match for flow in vm.Scenario.from_toml(text).flows] == ["a"]
    assert "In doubt, whole-file: b\\x1b\\u2028\\nlaw = 1." in text
    assert [line for line in text.splitlines() if line.startswith("law")][1:] == []


def test_an_rtt_that_only_a_receiver_sees_is_a_guess_that_says_so() -> None:
    """The receiver answers within 30 us; at 1000 pkt/s a packet alone takes 1 ms."""
    figures = {
        "throughput": np.full((9, 2), 500.0),
        "rtt": np.tile([3e-5, 4e-5], (9, 1)) + 1e-6 * np.arange(9)[:, None],
    }
    trace = make("pcap", np.arange(1.0, 10.0), ["a", "b"], figures)
    text, *_ = newfile.from_trace(trace, "receiver")
    assert text.count('rtt = "50 ms"  # a guess: the trace\'s RTT is too short for this link') == 2
    assert 'buffer = "1 BDP"  # a guess' in text  # the queue is not in these RTTs
    assert [flow.rtt for flow in vm.Scenario.from_toml(text).flows] == [0.05, 0.05]
    assert "a capture at the receiver" not in text  # nothing says that it is one
    doubts = {"captured-at-the-sender": "a, b: what was sent is unknown elsewhere"}
    text, *_ = newfile.from_trace(dataclasses.replace(trace, doubts=doubts), "receiver")
    assert text.count("link; a capture at the receiver shows only a part of it\n") == 2
    assert 'buffer = "1 BDP"  # a guess' in text
