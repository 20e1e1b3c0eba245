"""Pairing the flows of a trace with the flows of a scenario."""

import json
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import samples
from vegasmodel.command_line import newfile
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import read
from vegasmodel.packets.inspection import inspect
from vegasmodel.packets.measured import to_prediction
from vegasmodel.packets.pairing import pair
from vegasmodel.packets.trace import make


def scenario(*flows, run=""):
    """Flows given as ``law``, or as a table with more lines after it."""
    groups = "".join(
        f'[[flow]]\nlaw = "{law}"\nrtt = "50 ms"\n{more}\n'
        for law, _, more in (flow.partition("\n") for flow in flows)
    )
    return vm.Scenario.from_toml(
        f'packet_size = "1066 B"\n[[link]]\ncapacity = "500 pkt/s"\n{groups}'
        f'[run]\nduration = "6 s"\nwarmup = "1 s"\n{run}'
    )


def trace(names, controls=None, first=None, **more):
    variables = {"throughput": np.arange(1.0, 1 + 6 * len(names)).reshape(6, -1)}
    if first is not None:
        variables["first"] = first
    return make("linux", np.arange(1.0, 7.0), names, variables, controls=controls, **more)


def paired(found):
    return list(found.order), list(found.by)


def unknown(found):
    return [a.name for a in found.assumptions() if a.holds is None]


CAPTURED = ["10.0.0.1:40000>10.0.0.2:5001", "10.0.0.3:40000>10.0.0.2:5002", "[fd::1]:9>[fd::2]:22"]


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        ("10.0.0.1", 0),
        ("10.0.0.3:40000", 1),
        ("5002", 1),
        ("10.0.0.2:5001", 0),
        (CAPTURED[1], 1),
        ("fd::1", 2),
        ("[fd:0::2]:22", 2),
        ("[fd::2]", 2),
        ("::ffff:10.0.0.1", 0),
    ],
)
def test_match_is_a_name_an_address_a_port_or_both(text, flow):
    found = pair(trace(CAPTURED), scenario(f'vegas\nmatch = "{text}"'))
    assert paired(found) == ([flow], ["match"])
    assert unknown(found) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("40000", "fits 2 flows of the trace, not 1; 10.0.0.1:40000"),
        ("10.0.0.2", "fits"),
        ("500", "fits no flow of the trace; it has 10.0.0.1"),
        ("10.0.0.1:5001", "fits no flow"),
        ("5", "fits no flow"),
        ("::2", "fits no flow"),
    ],
)
def test_a_match_that_fits_none_or_several_is_refused(text, message):
    with pytest.raises(FieldError, match=r"flow 1, match.*" + message):
        pair(trace(CAPTURED), scenario(f'vegas\nmatch = "{text}"'))


def test_a_number_that_is_no_flow_s_name_fits_none_of_named_flows():
    named = trace(("1", "2"))
    with pytest.raises(FieldError, match=r"flow 1, match.*fits no flow of the trace; it has 1, 2"):
        pair(named, scenario('vegas\nmatch = "7"', "reno"))


NAMES = ["a\tb", "\x1b[31mred", "日本\u202e", "plain"]


def test_a_name_that_cannot_be_printed_is_matched_as_it_is_shown(tmp_path):
    """With a tab, an escape, a mark that turns the text around; the file that ``new`` writes fits.

    The flow whose name is the shown one itself comes first.
    """
    times, rates = np.arange(1.0, 9.0), np.full((8, 4), 100.0)
    trace = make("csv", times, NAMES, {"throughput": rates, "rtt": np.full((8, 4), 0.1)})
    text, _, _ = newfile.from_trace(trace, "new")
    fits = vm.Scenario.from_toml(text)
    assert [group.match for group in fits.flows] == [
        "a\\tb",
        "\\x1b[31mred",
        "日本\\u202e",
        "plain",
    ]
    assert pair(trace, fits).order == (0, 1, 2, 3)
    assert set(pair(trace, fits).by) == {"match"}
    trace.write(tmp_path / "t.parquet")
    found = [flow["match"] for flow in inspect(tmp_path / "t.parquet")["flows"]]
    assert found == [group.match for group in fits.flows]
    both = make("csv", times, ["a\tb", "a\\tb"], {"throughput": rates[:, :2]})
    one = vm.Scenario(fits.links, [vm.Flow("reno", 0.1, match="a\\tb")])
    assert pair(both, one).order == (1,)


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (["a\tb", "a\\tb"], ["a\\tb (2)", "a\\tb"]),  # one looks like the other
        (["a\\tb", "a\tb", "a\\tb (2)"], ["a\\tb", "a\\tb (3)", "a\\tb (2)"]),
        (["x" * 500, "y"], ["x" * 500, "y"]),
        (["\U000e0001" * 500, "y"], ["\\U000e0001" * 500, "y"]),  # 10 characters for one
    ],
)
def test_a_new_file_matches_each_flow_whatever_its_name(names, texts, tmp_path):
    n = len(names)
    rates = np.tile(np.arange(1.0, n + 1), (8, 1)) * 100
    values = {"throughput": rates, "rtt": np.full((8, n), 0.1)}
    trace = make("csv", np.arange(1.0, 9.0), names, values)
    text, *_ = newfile.from_trace(trace, "new")
    fits = vm.Scenario.from_toml(text)
    assert [group.match for group in fits.flows] == texts
    assert pair(trace, fits).order == tuple(range(n))
    trace.write(tmp_path / "t.parquet")
    assert [flow["match"] for flow in inspect(tmp_path / "t.parquet")["flows"]] == texts
    (tmp_path / "s.toml").write_text(fits.to_toml(), encoding="utf-8")
    assert vm.load(tmp_path / "s.toml") == fits


def test_two_groups_cannot_claim_one_flow():
    with pytest.raises(FieldError, match=r"flow 2, match.*, which vegas fits already; give each"):
        pair(trace(CAPTURED), scenario('vegas\nmatch = "5001"', 'reno\nmatch = "10.0.0.1"'))


def test_a_group_of_several_takes_all_that_fit_its_match():
    found = pair(trace(CAPTURED), scenario('vegas\ncount = 2\nmatch = "10.0.0.2"', "reno"))
    assert paired(found) == ([0, 1, 2], ["match", "match", "order of appearance"])


def test_a_trace_flows_own_name_is_matched_before_ports():
    assert pair(trace(["2", "1"]), scenario('vegas\nmatch = "1"')).order == (1,)


def test_names_are_matched_one_by_one():
    """A name that agrees counts, even if others do not."""
    found = pair(trace(["other", "vegas"]), scenario("reno", "vegas"))
    assert paired(found) == ([0, 1], ["order of appearance", "name"])
    found = pair(trace(["vegas", "other"]), scenario("reno", "vegas"))
    assert paired(found) == ([1, 0], ["order of appearance", "name"])
    assert unknown(found) == ["flow-pairing"]


def test_the_congestion_control_pairs_what_names_do_not():
    known = {"a": "reno", "b": "vegas"}
    found = pair(trace(["a", "b"], known), scenario("vegas", "sack"))
    assert paired(found) == ([1, 0], ["congestion control"] * 2)
    assert unknown(found) == []
    # two alike: either is right; two that differ: a guess
    known |= {"c": "vegas"}
    alike = pair(trace(["a", "b", "c"], known), scenario("vegas\ncount = 2", "reno"))
    assert paired(alike) == ([1, 2, 0], ["congestion control"] * 3)
    two = scenario("vegas", 'vegas\nname = "v"\nalpha = 2', "reno")
    differ = pair(trace(["a", "b", "c"], known), two)
    assert paired(differ) == ([1, 2, 0], ["order of appearance"] * 2 + ["congestion control"])


def test_order_never_gives_a_flow_to_another_law():
    with pytest.raises(
        FieldError, match=r"'a' ran cubic, but vegas of the scenario is vegas; write match ="
    ):
        pair(trace(["a"], {"a": "cubic"}), scenario("vegas"))
    said = pair(trace(["a"], {"a": "cubic"}), scenario('vegas\nmatch = "a"'))
    (assumption,) = said.assumptions()
    assert (assumption.name, assumption.holds) == ("congestion-control", False)


def test_order_is_of_starts_and_first_packets():
    late = 'vegas\nstart = "2 s"'
    found = pair(trace(["a", "b"], first=[0.0, 2.0]), scenario(late, "reno"))
    assert paired(found) == ([1, 0], ["order of appearance"] * 2)
    found = pair(trace(["a", "b"], first=[2.0, 0.0]), scenario(late, "reno"))
    assert found.order == (0, 1)


def test_other_flows_of_the_trace_are_told():
    (assumption,) = pair(trace(["x", "vegas"]), scenario("vegas")).assumptions()
    assert (assumption.name, assumption.holds) == ("no-other-flows", False)
    # 1, 3, .. 11 and 2, 4, .. 12
    assert f"{100 * 36 / 78:.3g} %" in assumption.detail


def test_a_flow_with_little_to_send_is_paired_only_by_name_or_for_lack_of_others():
    rates = {"throughput": np.tile([0.1, 100.0, 50.0], (6, 1))}
    laws = {"x": "cubic", "y": "vegas", "z": "cubic"}
    small = make("linux", np.arange(1.0, 7.0), ["x", "y", "z"], rates, controls=laws)
    found = pair(small, scenario("vegas", "cubic"))
    assert paired(found) == ([1, 2], ["congestion control"] * 2)
    assert found.assumptions() == ()  # 0.07 % of the packets
    found = pair(small, scenario("vegas", 'cubic\nname = "x"'))
    assert paired(found) == ([1, 0], ["congestion control", "name"])
    assert [a.name for a in found.assumptions()] == ["no-idle-flows", "no-other-flows"]
    named = pair(small, scenario("vegas", 'cubic\nname = "x"\nsize = "1 kB"'))
    assert [a.name for a in named.assumptions()] == ["no-other-flows"]  # it has little to send
    assert pair(small, scenario("vegas", "cubic\ncount = 2")).order == (1, 0, 2)


def test_a_trace_of_this_very_scenario_is_in_its_order():
    case = scenario("vegas", "reno")
    found = pair(trace(["1", "2"], scenario=case.fingerprint()), case)
    assert found.order == (0, 1)
    assert unknown(found) == []


def test_the_only_flow_is_no_guess():
    assert unknown(pair(trace(["x"]), scenario("vegas"))) == []


def test_flows_that_cannot_be_paired_are_refused():
    two = trace(["a", "b"])
    for flows, message in (
        (
            ("vegas", "reno", "sack"),
            r"'a, b' \(flows: 2\) cannot be paired with the scenario \(flows: 3\); name ",
        ),
        (("vegas",), "or write match = ... for each: vegas$"),
    ):
        with pytest.raises(FieldError, match=message):
            pair(two, scenario(*flows))


def test_match_is_no_part_of_the_network():
    plain, said = scenario("vegas"), scenario('vegas\nmatch = "5001"')
    assert plain.fingerprint() == said.fingerprint()
    with pytest.raises(FieldError, match=r"flow 1, match"):
        scenario("vegas\nmatch = 5001")


def capture(tmp_path, reno_first):
    """Two flows to one sink, 150 and 350 pkt/s: ports 40000 (Vegas, slow) and 40001 (Reno)."""
    packets = []
    for port, rate, begins in ((40000, 150.0, 0.010), (40001, 350.0, 0.0 if reno_first else 0.020)):
        run = samples.course(packets=int(rate * 6), window=8, rate=rate, delay=0.002)
        for time, frame in samples.frames(run):
            at = 34 if frame[26:30] == samples.SENDER else 36
            packets.append((begins + time, frame[:at] + port.to_bytes(2) + frame[at + 2 :]))
    path = tmp_path / f"{reno_first}.pcap"
    path.write_bytes(samples.pcap(sorted(packets, key=lambda pair: pair[0])))
    return path


@pytest.mark.parametrize("reno_first", [False, True])
def test_a_packet_that_comes_first_does_not_swap_the_flows(reno_first, tmp_path):
    """Without ``match`` the order decides, with a remark; with it the ratio is always 150/350."""
    path = capture(tmp_path, reno_first)
    assert len(read(path).flows) == 2
    guess = vm.compare(scenario("vegas", "reno"), path, models=("equilibrium",))
    (pairing,) = [a for a in guess.measured.assumptions if a.name == "flow-pairing"]
    assert pairing.holds is None
    sure = scenario('vegas\nmatch = "40000"', 'reno\nmatch = "40001"')
    result = vm.compare(sure, path, models=("equilibrium",))
    assert math.isclose(result.measured.ratios["vegas/reno"], 150 / 350, rel_tol=0.01)
    document = json.loads(json.dumps(result.to_json()))
    assert document["pairing"] == [
        {"flow": name, "trace": f"10.0.0.1:{port}>10.0.0.2:5001", "by": "match"}
        for name, port in (("vegas", 40000), ("reno", 40001))
    ]
    assert "vegas is 10.0.0.1:40000>10.0.0.2:5001 of the trace, by match." in result.table()


def test_an_interval_counts_by_the_packets_delivered_in_it() -> None:
    """100 packets of 0.1 s in the first second, 50 of 0.4 s in the half second after it."""
    flow = vm.Flow("reno", 0.05)
    asked = vm.Scenario((vm.Link(200.0),), (flow,), run=vm.Run(duration=1.5, warmup=0.0))
    measured = make(
        "test", [1.0, 1.5], ["reno"], {"throughput": [[100.0], [100.0]], "rtt": [[0.1], [0.4]]}
    )
    found = to_prediction(measured, asked)
    np.testing.assert_allclose(found.rtt_mean, (100 * 0.1 + 50 * 0.4) / 150)


def test_flows_of_a_trace_without_packets_are_no_part_of_it():
    silent = make("linux", np.arange(1.0, 7.0), ["a", "b"], {"throughput": np.zeros((6, 2))})
    found = pair(silent, scenario('reno\nname = "a"')).assumptions()
    assert "no-other-flows" not in [a.name for a in found]
