"""Scenario files with missing keys, completed by a trace: accuracy, messages, refusals."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from benchmarks.estimates import without
from tests.packets import samples
from vegasmodel.command_line import newfile
from vegasmodel.command_line.commands import run
from vegasmodel.fields import toml_file
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import measured, read
from vegasmodel.packets.completion import complete
from vegasmodel.packets.trace import VARIABLES, assemble, make

ROOT = Path(__file__).parent.parent
NAME = "e1a_2M_40ms_a3b3"
WHOLE = ROOT / "paper_checks" / "linux" / f"{NAME}.toml"
TRACE = ROOT / "vegasmodel" / "packets" / "reference" / "linux" / f"{NAME}.parquet"
LEFT_OUT = ("capacity", "buffer", "rtt", "alpha", "beta")

TWO = {
    "link": [{}],
    "flow": [{"law": "vegas", "name": "1"}, {"law": "reno", "name": "2"}],
    "run": {"duration": "0.6 s", "warmup": "0.1 s"},
}


def test_of_a_linux_run_whose_second_source_never_saw_an_empty_queue():
    scenario, filled = complete(without(toml_file.read(WHOLE), *LEFT_OUT), read(TRACE))
    truth = vm.load(WHOLE)
    assert scenario.links[0].capacity == pytest.approx(truth.links[0].capacity, rel=1e-3)
    # its own baseRTT is 56 ms
    assert [m.rtt for m in scenario.members] == pytest.approx([0.04, 0.04], rel=2e-3)
    # thresholds of 3: the kernel holds a backlog in [3, 4), of which 3.5 is the middle
    assert all(abs(flow.alpha - 3) <= 0.5 and flow.beta == flow.alpha for flow in scenario.flows)
    assert scenario.links[0].buffer == math.inf
    how = {entry.key: entry.how for entry in filled}
    assert "nothing was lost" in how["link[0].buffer"]
    assert list(how) == [
        "link[0].capacity", "link[0].buffer", "flow[0].rtt", "flow[0].alpha", "flow[0].beta",
        "flow[1].rtt", "flow[1].alpha", "flow[1].beta",
    ]  # fmt: skip


def test_of_an_ns2_run_that_loses():
    """1.5 Mbit/s; 24 ms plus the transmissions of 1000 or 1040 B and of 40 B; a limit of 10."""
    scenario, filled = complete(TWO, read(samples.DATA / "ns2_events.tr"))
    # Reno's packets have 40 B of headers more
    (capacity,) = (e for e in filled if e.key == "link[0].capacity")
    assert capacity.low < 1.5e6 / 8 / 1000
    assert capacity.high > 1.5e6 / 8 / 1040
    bits = 8 / 1.5e6 + 2 * 8 / 10e6
    for member, size in zip(scenario.members, (1000, 1040), strict=True):
        assert member.rtt == pytest.approx(0.024 + (size + 40) * bits, rel=0.01)
    assert scenario.links[0].buffer == 10
    assert {e.key: e.unit for e in filled}["flow[0].rtt"] == "s"


def test_only_gaps_are_filled():
    table = toml_file.read(WHOLE)
    assert complete(table, read(TRACE)) == (vm.load(WHOLE), ())
    scenario, filled = complete(without(table, "rtt"), read(TRACE))
    assert [entry.key for entry in filled] == ["flow[0].rtt", "flow[1].rtt"]
    assert scenario.links == vm.load(WHOLE).links
    table["flow"][0] |= {"beta": 3}
    scenario, _ = complete(without(table, "alpha"), read(TRACE))
    assert scenario.flows[0].beta == 3
    assert scenario.flows[0].alpha <= 3


def steady(**variables):
    """Two flows of 100 pkt/s for ten seconds."""
    rates = np.full((10, 2), 100.0)
    return make("pcap", np.arange(1.0, 11.0), ["1", "2"], {"throughput": rates, **variables})


@pytest.mark.parametrize(
    ("variables", "changes", "said"),
    [
        ({}, {}, r"flow 1, rtt: .* the trace cannot tell it"),
        ({"rtt_min": np.full((10, 2), 1e-6)}, {}, "its estimates, of 1: .*rtt = 1 us.* at least"),
        ({}, {"link": [{}, {"name": "b"}]}, r"link 1, capacity: .* required"),
        ({}, {"link": [{"bufer": "3 pkt"}]}, "buffer"),
        ({}, {"link": 3}, "link: "),
        ({}, {"flow": [{"law": "vegas"}]}, r"'1, 2' .flows: 2. cannot be paired"),
        ({}, {"flow": 3}, "flow: "),
        ({}, {"flow": [{"law": "vgas"}]}, "vegas"),
        ({"throughput": np.zeros((10, 2))}, {}, r"link 1, capacity: .* cannot tell it"),
    ],
)
def test_what_cannot_be_completed_is_one_clear_line(variables, changes, said):
    with pytest.raises(FieldError, match=said) as caught:
        complete(TWO | changes, steady(**variables))
    assert str(caught.value).isprintable()


def test_what_the_trace_cannot_tell_stays_the_default_and_says_so():
    rtt = np.full((10, 2), 0.05)
    red = {"discipline": "red", "min_threshold": "5 pkt", "max_threshold": "15 pkt"}
    lossy = steady(rtt_min=rtt, rtt=rtt + 0.01, loss=np.ones((10, 2)))
    scenario, filled = complete(TWO | {"link": [{"queue": red}]}, lossy)
    assert scenario.links[0].buffer == math.inf
    assert (scenario.flows[0].alpha, scenario.flows[0].beta) == (1.0, 3.0)
    defaults = [e.key for e in filled if "the default" in e.how]
    assert defaults == ["link[0].buffer", "flow[0].alpha"]


@pytest.mark.parametrize(
    ("losses", "law", "buffer", "said"),
    [
        ({"loss": np.ones((10, 2))}, "vegas", 2.0, "packets were lost"),
        ({"retransmits": np.zeros((10, 2))}, "vegas", math.inf, "nothing was lost"),
        ({"retransmits": np.zeros((10, 2))}, "reno", math.inf, "nothing was lost"),
        ({"retransmits": [[0.0, math.nan]] * 10}, "vegas", 2.0, "does not tell whether packets"),
        ({}, "vegas", 2.0, "does not tell whether packets were lost"),
    ],
)
def test_a_buffer_told_by_mean_rtts_is_a_lower_bound(losses, law, buffer, said):
    """200 pkt/s and a wait of 10 ms give 2 packets.

    The default is kept if nothing was lost: a larger buffer would give the same trace.
    """
    rtt = np.full((10, 2), 0.05)
    flows = [{"law": law, "name": "1"}, {"law": "vegas", "name": "2"}]
    table = TWO | {"flow": flows, "link": [{"capacity": "200 pkt/s"}]}
    scenario, filled = complete(table, steady(rtt_min=rtt, rtt=rtt + 0.01, **losses))
    assert scenario.links[0].buffer == pytest.approx(buffer)
    (entry,) = (e for e in filled if e.key == "link[0].buffer")
    assert (entry.low, entry.high) == (pytest.approx(2.0), math.inf)
    assert said in entry.how
    assert "lower bound" in entry.how


def lossy():
    """500 pkt/s of 1000; 1 packet in 100 is lost at random, while 0 to 40 packets wait."""
    tops = 0.04 * np.random.default_rng(2).random(100)
    rtt = 0.05 + np.concatenate([np.linspace(0.0, top, 10) for top in tops])[:, None]
    again = (np.arange(1000) % 10 == 0)[:, None].astype(float)
    figures = {"throughput": np.full((1000, 1), 500.0), "rtt": rtt, "retransmits": again}
    return make("pcap", 0.02 * np.arange(1.0, 1001.0), ["a"], figures)


@pytest.mark.parametrize(
    ("stated", "estimated"),
    [
        ({}, {"link[0].buffer": math.inf, "link[0].loss": 0.01}),
        ({"buffer": "60 pkt"}, {}),  # a missing key with a default is estimated only if it matters
        ({"loss": 0.0}, {"link[0].buffer": None}),
    ],
)
def test_random_losses_are_estimated_with_the_buffer_that_they_hide(stated, estimated):
    table = {"link": [{"capacity": "1000 pkt/s", **stated}]}
    table["flow"] = [{"law": "reno", "name": "a", "rtt": "50 ms"}]
    scenario, filled = complete(table | {"run": {"duration": "20 s"}}, lossy())
    found = {entry.key: entry.value for entry in filled if entry.key.startswith("link")}
    assert set(found) == set(estimated)
    if None in estimated.values():
        assert 30.0 < found["link[0].buffer"] < 40.0  # by the capacity in the file; 500 were seen
    else:
        assert found == pytest.approx(estimated, rel=0.05)
    assert scenario.links[0].loss == found.get("link[0].loss", 0.0)


def test_a_new_file_has_the_random_losses_of_a_trace():
    text, _, guesses = newfile.from_trace(lossy(), "lossy")
    link = vm.Scenario.from_toml(text).links[0]
    assert link.loss == pytest.approx(0.01, rel=0.05)
    assert link.buffer == pytest.approx(25.0, rel=0.02)  # 1 BDP, more than the queue ever had
    assert "buffer" in guesses
    assert 'buffer = "1 BDP"  # a guess: ' in text


def of_kernel(*backlogs):
    """A trace of two Linux Vegas flows: baseRTTs of 100 ms, and these backlogs W (RTT - base)/base.

    ``backlogs`` has one row of the two flows' backlogs per second.
    """
    window = np.full((len(backlogs), 2), 20.0)
    rtt = 0.1 * (1.0 + np.array(backlogs) / window)
    known = {"window": window, "rtt": rtt, "base_rtt": np.full_like(rtt, 0.1)}
    rates = {"throughput": window / rtt}
    return make("linux", np.arange(1.0, len(backlogs) + 1), ["1", "2"], rates | known)


@pytest.mark.parametrize(
    ("backlogs", "alphas", "betas"),
    [
        # Linux holds a window if alpha <= floor(backlog) <= beta; 10 or 11 agrees with both flows
        ([[9.9, 10.6], [9.99, 11.1], [11.4, 11.5]] * 4, (10, 11), (10, 11)),
        ([[3.2, 3.9]] * 9, (3,), (3,)),
        ([[4.2, 2.3]] * 9, (2,), (4,)),
        ([[0.4, 2.3]] * 9, (1,), (2,)),
    ],
)
def test_flows_of_a_linux_host_have_one_pair_of_whole_thresholds(backlogs, alphas, betas):
    vegas = {"law": "vegas", "variant": "linux"}
    table = TWO | {"flow": [vegas | {"name": "1"}, vegas | {"name": "2"}]}
    scenario, filled = complete(table, of_kernel(*backlogs))
    one, two = scenario.flows
    assert (one.alpha, one.beta) == (two.alpha, two.beta)
    assert one.alpha in alphas
    assert one.beta in betas
    for entry in filled:
        if entry.key.endswith(("alpha", "beta")):
            assert entry.low <= entry.value <= entry.high


@pytest.fixture
def gaps(tmp_path):
    lines = [line for line in WHOLE.read_text().splitlines() if not line.startswith(LEFT_OUT)]
    path = tmp_path / "gaps.toml"
    path.write_text("\n".join(lines))
    return str(path)


def test_the_command_states_its_estimates(gaps, capsys):
    assert run(["compare", gaps, "--trace", str(TRACE), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    values = {entry["key"]: entry["value"] for entry in document["estimates"]}
    assert values["link[0].capacity"] == pytest.approx(250, rel=1e-3)
    assert values["link[0].buffer"] is None
    results = {result["model"]: result for result in document["results"]}
    assert {"equilibrium", "fluid", "rounds", "trace"} <= set(results)
    notes = {note["name"]: note for note in results["rounds"]["assumptions"]}
    assert "link 1, capacity" in notes["estimated-parameters"]["detail"]
    assert document["errors"]["rounds"]["throughput_nrmse"] < 0.05
    assert run(["compare", gaps, "--trace", str(TRACE)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Estimated from the trace" in said
    assert "If you know one of these values, write it into the file, even if it is" in said


def test_estimates_of_the_file_and_of_compare_are_one_assumption():
    """The models had the assumption twice, so `compare` printed "(fluid, fluid)"."""
    table = without(toml_file.read(WHOLE), "alpha", "beta") | {"estimated_from": "run.pcap"}
    answer = vm.compare(table, str(TRACE), ["equilibrium"]).results[0]
    (note,) = [a for a in answer.assumptions if a.name == "estimated-parameters"]
    assert "flow 1, alpha" in note.detail
    assert "run.pcap" in note.detail


def test_without_a_trace_the_same_file_is_refused(gaps, capsys):
    for command in ("compare", "predict"):
        assert run([command, gaps]) == 2
        said = capsys.readouterr()
        assert said.err.strip().endswith("this key is required")
        assert said.out == ""


def test_estimates_in_place_of_defaults_are_named(tmp_path, capsys):
    """Two Vegas flows of Linux kept 3.5 packets; the file leaves out their thresholds."""
    path = tmp_path / "s.toml"
    path.write_text(toml_file.write(without(toml_file.read(WHOLE), "alpha", "beta")))
    ask = ["compare", str(path), "--trace", str(TRACE), "--model", "fluid"]
    assert run(ask) == 0
    said = " ".join(capsys.readouterr().out.split())
    named = "flow 1, alpha = 3, not 2 pkt; flow 1, beta = 3, not 4 pkt; flow 2, alpha = 3, not 2"
    assert f"The models do not take the defaults of keys that the file leaves out: {named}" in said
    assert said.endswith("To keep a default, write it into the file: alpha = 2 (flow 1).")
    assert run([*ask, "--json"]) == 0
    first, *_ = json.loads(capsys.readouterr().out)["estimates"]
    assert (first["key"], first["value"], first["default"]) == ("flow[0].alpha", 3.0, 2.0)


def test_a_trace_of_the_scenario_of_the_file_replaces_no_default():
    """Vegas beside Reno rests at beta, so the estimate was alpha = 3, three times the default."""
    table = without(toml_file.read(WHOLE), "alpha", "beta")
    scenario, found = vm.Scenario.from_dict(table), read(TRACE)
    assert complete(table, dataclasses.replace(found, scenario=scenario.fingerprint())) == (
        scenario,
        (),
    )
    assert complete(table, dataclasses.replace(found, scenario="0" * 16))[1]


def test_a_whole_file_has_no_estimates(capsys):
    assert run(["compare", str(WHOLE), "--trace", str(TRACE), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["estimates"] == []
    assert "estimated-parameters" not in json.dumps(document["results"])


def test_a_file_that_new_wrote_counts_as_estimated(tmp_path, capsys):
    path = str(tmp_path / "new.toml")
    assert run(["new", "--from-trace", str(TRACE), path]) == 0
    written = vm.load(path)
    assert written.estimated_from == TRACE.name
    known = written.replace(estimated_from=None)
    assert known.fingerprint() == written.fingerprint()
    assert vm.Scenario.from_toml(written.to_toml()) == written != known
    capsys.readouterr()
    for case, told in ((written, True), (known, False)):
        compared = vm.compare(case, TRACE, models=["fluid"])
        notes = [a.detail for a in compared.models[0].assumptions if TRACE.name in a.detail]
        assert bool(notes) == told
        table = " ".join(compared.table().split())
        assert ("Their errors are a part of each model's error" in table) == told


def test_a_trace_that_is_shorter_than_a_run_by_default():
    """30 s: the run has the length of the trace, and its first third is the warm-up."""
    table = {
        "link": [{"capacity": "1.5 Mbit/s", "buffer": "10 pkt"}],
        "flow": [{"law": "reno", "name": "a", "rtt": "40 ms"}],
    }
    rates = np.full((30, 1), 100.0)
    trace = make("pcap", np.arange(1.0, 31.0), ["a"], {"throughput": rates})
    scenario, filled = complete(table, trace)
    assert (scenario.run.duration, scenario.run.warmup) == (30.0, 10.0)
    assert [entry.key for entry in filled] == ["run.duration", "run.warmup"]
    assert measured.to_prediction(trace, scenario).throughput == pytest.approx([100.0])
    own = {**table, "run": {"duration": "20 s", "warmup": "5 s"}}
    assert complete(own, trace) == (vm.Scenario.from_dict(own), ())


def test_a_run_that_is_shorter_than_its_trace_keeps_its_default_warm_up():
    """The warm-up was that of the trace: 33 s of a run of 20 s, an error."""
    table = {
        "link": [{"capacity": "1.5 Mbit/s", "buffer": "10 pkt"}],
        "flow": [{"law": "reno", "name": "a", "rtt": "40 ms"}],
        "run": {"duration": "20 s"},
    }
    trace = make("pcap", np.arange(1.0, 101.0), ["a"], {"throughput": np.full((100, 1), 100.0)})
    assert complete(table, trace) == (vm.Scenario.from_dict(table), ())
    table["run"] = {"duration": "0.05 h"}  # 180 s, after the trace's end
    scenario, _ = complete(table, trace)
    assert (scenario.run.duration, scenario.run.warmup) == (180.0, pytest.approx(100.0 / 3.0))


def test_traces_of_any_bits_give_figures_or_one_line():
    """A file may hold negative, infinite and absurd values; a warning fails the test."""
    rng = np.random.default_rng(5)
    odd = np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, -1.0, 1.0, 0.05])
    whole = {"link": [{"capacity": "100 pkt/s"}]}
    whole["flow"] = [flow | {"rtt": "80 ms"} for flow in TWO["flow"]]
    outcomes = {"figures": 0, "refused": 0}
    for case in range(150):
        rows, links, variables = int(rng.integers(1, 6)), int(rng.integers(0, 3)), {}
        for name, kind in VARIABLES.items():
            size = 2 if kind.over == "flow" else links
            shape = (size,) if kind.static else (rows, size)
            bits = np.frombuffer(rng.bytes(8 * math.prod(shape))).reshape(shape)
            forms = (bits, rng.choice(odd, shape), rng.uniform(0.0, 0.2, shape))
            if rng.random() < 0.6:
                variables[name] = forms[rng.integers(3)]
        times = np.cumsum(rng.uniform(0.1, 1.0, rows))
        names = [f"l{i}" for i in range(links)]
        trace = assemble(("ns2", "linux")[case % 2], times, ["1", "2"], variables, links=names)
        for table in (TWO, TWO | whole):
            try:
                scenario, filled = complete(table, trace)
                answer = measured.to_prediction(trace, scenario).to_json()
                json.dumps([answer, [e.to_json() for e in filled]], allow_nan=False)
                outcomes["figures"] += 1
            except FieldError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 25


def test_compare_takes_a_trace_that_was_read_as_it_takes_the_file():
    table = toml_file.read(WHOLE)
    given = without(table, *LEFT_OUT)
    by_file, by_trace = (vm.compare(given, t, models=["fluid"]) for t in (TRACE, read(TRACE)))
    assert by_trace.scenario == by_file.scenario
    assert by_trace.estimates == by_file.estimates
    np.testing.assert_array_equal(by_trace.measured.throughput, by_file.measured.throughput)
    with pytest.raises(FieldError, match=r"trace: 'int' is not allowed.*a Trace"):
        vm.compare(vm.load(WHOLE), trace=7)
