"""The command ``predict``: every model for a scenario file, and hints where none answers."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from tests.commands.scenes import check_result, document
from tests.helpers import scenario
from vegasmodel.command_line.commands import run
from vegasmodel.results.prediction import Prediction
from vegasmodel.study import requirements


def test_predict_lists_every_closed_form(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        '[[link]]\ncapacity = "250 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\ncount = 2\n'
        'start = { every = "20 s" }\n'
    )
    doc = document(capsys, ["predict", str(path), "--json"])
    from vegasmodel.predictor import CLOSED_FORMS

    assert [r["model"] for r in doc["results"]] == list(CLOSED_FORMS)
    for result in doc["results"]:
        check_result(result)
        assert [f["name"] for f in result["flows"]] == ["vegas[0]", "vegas[1]"]
    bands = doc["results"][1]
    for flow in bands["flows"]:
        low, high = flow["throughput_range_pps"]
        assert low <= flow["throughput_pps"] <= high


def test_no_model_has_an_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[link]]\ncapacity = "9 pkt/s"\n[[flow]]\nlaw = "reno"\nrtt = "1 s"\n')
    assert run(["predict", str(path)]) == 0
    out, _ = capsys.readouterr()
    assert "minicycle has no answer: the equations need Vegas" in out


def test_rates_of_a_flow_that_is_not_always_there_say_over_which_time_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "late.toml"
    two = '[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\n[[flow]]\nname = "late"\nlaw = "vegas"\n'
    for start, told in (("0 s", False), ("300 s", True)):
        text = f'[[link]]\ncapacity = "250 pkt/s"\n{two}rtt = "40 ms"\nstart = "{start}"\n'
        path.write_text(text)
        assert run(["predict", str(path), "--model", "equilibrium"]) == 0
        said = "pkt/s: while the flow is active; Mbit/s and share: from warm-up to end."
        assert (said in capsys.readouterr().out) == told
    assert run(["explain", "pkt/s"]) == 0
    assert "over\n  the time in which it is active" in capsys.readouterr().out


def test_rates_of_a_flow_that_is_complete_before_the_end_say_over_which_time_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The tables gave two rates of one flow that differ, and no reason.

    At 250 packets/s a flow of 6000 packets ends before 60 s, and one of 60 000 does not.
    """
    path = tmp_path / "brief.toml"
    for size, told in ((6000, True), (60000, False)):
        path.write_text(
            '[[link]]\ncapacity = "250 pkt/s"\nbuffer = "20 pkt"\n'
            '[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\n'
            f'[[flow]]\nlaw = "reno"\nrtt = "40 ms"\nsize = "{size} pkt"\n'
            '[run]\nduration = "60 s"\nwarmup = "5 s"\nruns = 1\n'
        )
        assert run(["predict", str(path), "--model", "rounds"]) == 0
        said = "pkt/s: while the flow is active; Mbit/s and share: from warm-up to end."
        assert (said in capsys.readouterr().out) == told


def test_each_model_that_all_asks_has_a_row_or_a_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        '[[link]]\ncapacity = "100 pkt/s"\nbuffer = "20 pkt"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "80 ms"\n[run]\nduration = "30 s"\nwarmup = "9 s"\n'
    )
    assert run(["predict", str(path), "--model", "all", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    silent = {each["model"]: each["reason"] for each in results if not each["applicable"]}
    assert len(silent) > 3
    for command in (["predict", str(path)], ["ratio", "--capacity", "100pkt/s", "reno"]):
        assert run([*command, "--model", "all"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for model in silent:
            assert re.search(rf"{model}\b[^.:]* ha(s|ve) no answer: ", text)
    assert run(["predict", str(path), "--model", "all"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(f" no answer: {reason}." in text for reason in silent.values())
    # by default the closed forms that have no answer are not named
    assert run(["predict", str(path), "--model", "fluid"]) == 0
    assert "no answer" not in capsys.readouterr().out


def test_a_hint_names_the_models_that_can_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    alone = ["ratio", "--capacity", "1000pkt/s", "--buffer", "20pkt", "vegas", "cubic"]
    assert run(alone) == 0
    out = capsys.readouterr().out
    assert "None of these models can answer. Others can: --model fluid, --model rounds." in out
    assert "network have no answer: no closed form has the law cubic" in out
    assert out.count("fluid") == out.count("rounds") == 1
    path = tmp_path / "two.toml"  # two links, which fluid does not have
    links = "".join(f'[[link]]\nname = "{x}"\ncapacity = "9 pkt/s"\n' for x in "ab")
    path.write_text(f'{links}[[flow]]\nlaw = "reno"\nrtt = "3 s"\n')
    assert run(["predict", str(path), "--model", "fluid"]) == 0
    assert "can answer. Others can: --model rounds." in capsys.readouterr().out
    path.write_text(f'{links}[[flow]]\nlaw = "cubic"\nrtt = "3 s"\n')
    assert run(["predict", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Others can: --model rounds." in out
    assert "fluid" not in out
    ended = '[[flow]]\nlaw = "reno"\nrtt = "3 s"\nstop = "5 s"\n[run]\nwarmup = "9 s"\n'
    path.write_text(f'[[link]]\ncapacity = "9 pkt/s"\n{ended}')  # no simulator has an answer
    assert run(["predict", str(path)]) == 0
    assert "None of these models can answer.\n" in capsys.readouterr().out


def test_predict_makes_as_many_runs_as_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    flow = '[[flow]]\nlaw = "vegas"\nrtt = "1 s"\n[run]\nstart_jitter = "1 s"\n'
    path.write_text(f'[[link]]\ncapacity = "9 pkt/s"\n{flow}')
    for n in (2, 7):
        asked = ["predict", str(path), "--model", "fluid", "--runs", str(n), "--json"]
        (result,) = document(capsys, asked)["results"]
        notes = {a["name"]: a["detail"] for a in result["assumptions"]}
        assert notes["enough-runs"].startswith(f"{n} runs;")
    assert run(["predict", str(path), "--runs", "0"]) == 2
    assert "--runs: 0 is not allowed" in capsys.readouterr().err


def test_a_single_run_that_depends_on_chance_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The throughputs stood there without a word, like those of a closed form."""
    flows = (
        vm.Flow("vegas", 0.06, variant="ns2"),
        vm.Flow("reno", 0.06, name="web", size=30.0, arrivals=vm.Poisson(2.0)),
    )
    case = vm.Scenario((vm.Link(1000.0, buffer=20),), flows, run=vm.Run(duration=60.0, warmup=20.0))
    (tmp_path / "web.toml").write_text(case.to_toml())
    assert run(["predict", str(tmp_path / "web.toml"), "--model", "rounds"]) == 0
    assert "rounds: enough-runs is not known: one run" in capsys.readouterr().out
    assert run(["predict", str(tmp_path / "web.toml"), "--model", "rounds", "--runs", "3"]) == 0
    assert "enough-runs is not known" not in capsys.readouterr().out


def test_by_default_a_line_says_how_to_add_the_simulators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever chooses models does not need the line, and a JSON document has no place for it."""
    said = "\n\nClosed forms only; --model all adds the simulators fluid and rounds.\n"
    path = tmp_path / "s.toml"
    path.write_text(
        scenario({"law": "vegas"}, {"law": "reno"}, buffer=20).to_toml(), encoding="utf-8"
    )
    asked = ["--capacity", "1080pkt/s", "--buffer", "20pkt", "vegas", "reno"]
    for command in (["predict", str(path)], ["ratio", *asked]):
        assert run(command) == 0
        out, err = capsys.readouterr()
        assert out.endswith(said)
        assert err == ""
        for more in (["--model", "minicycle"], ["--json"]):
            assert run([*command, *more]) == 0
            assert "Closed forms only" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_several_models_in_one_option_are_told_how_to_be_written(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(scenario({"law": "vegas"}).to_toml(), encoding="utf-8")
    assert run([command, str(path), "--model", "fluid,rounds"]) == 2
    said = "'fluid,rounds' is not allowed; one name; write --model NAME for each model"
    assert capsys.readouterr() == ("", f"vegasmodel: --model: {said}\n")


LAWS = """
packet_size = "1000 B"
[[link]]
capacity = "1000 pkt/s"
buffer = "30 pkt"
[[flow]]
name = "near"
law = "vegas"
rtt = "40 ms"
count = 2
[[flow]]
name = "far"
law = "vegas"
rtt = "40 ms"
[[flow]]
law = "reno"
rtt = "40 ms"
[run]
duration = "30 s"
warmup = "10 s"
"""


def test_totals_of_a_law_count_the_flows_of_all_its_groups(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS)
    (result,) = document(capsys, ["predict", str(path), "--model", "fluid", "--json"])["results"]
    assert [(law["name"], law["flows"]) for law in result["laws"]] == [("vegas", 3), ("reno", 1)]
    law, rates = result["laws"][0], [flow["throughput_bps"] for flow in result["flows"]]
    assert law["delivered_bps"] == pytest.approx(sum(rates[:3]))
    assert law["share"] == pytest.approx(sum(rates[:3]) / sum(rates))
    assert law["utilization"] == pytest.approx(sum(rates[:3]) / 8e6)
    shares = result["shares"]
    assert shares["near"] + shares["far"] == pytest.approx(law["share"])
    assert set(result["shares_se"]) <= {"near", "far", "reno"}
    assert run(["predict", str(path), "--model", "fluid"]) == 0
    out, _ = capsys.readouterr()
    (row,) = (line.split() for line in out.splitlines() if line.split()[:2] == ["vegas", "3"])
    assert row[2] == "fluid"
    assert float(row[3]) == pytest.approx(law["delivered_bps"] / 1e6, rel=1e-3)
    assert float(row[4]) == pytest.approx(100 * law["share"], abs=0.06)
    assert float(row[6]) == pytest.approx(law["utilization"], abs=6e-4)


def test_no_table_of_laws_if_each_law_has_one_group(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS.replace('name = "far"\nlaw = "vegas"', 'name = "far"\nlaw = "newreno"'))
    assert run(["predict", str(path), "--model", "fluid"]) == 0
    assert "Laws, all flows together" not in capsys.readouterr().out


def test_a_bound_that_a_prediction_misses_ends_the_command_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS)
    command = ["predict", str(path), "--model", "fluid", "--require"]
    assert run([*command, "share:law:vegas>=0.001", "--require", "share:reno<=0.999"]) == 0
    out, err = capsys.readouterr()
    assert "share:law:vegas >= 0.001 is met: fluid 0." in out
    assert not err
    assert run([*command, "share:law:vegas<=0.001", "--require", "jain>=0.01"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("vegasmodel: share:law:vegas <= 0.001 is missed: fluid 0.")
    assert err.count("\n") == 1
    assert "jain >= 0.01 is met" in out


def test_a_bound_is_in_the_json_document_whether_it_is_met_or_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS)
    assert run(["predict", str(path), "--model", "fluid", "--json", "--require", "jain<=0.01"]) == 1
    doc = json.loads(capsys.readouterr().out)
    (one,) = doc["requirements"]
    assert one["value"] == pytest.approx(doc["results"][0]["jain"])
    assert (one["model"], one["met"], one["unit"]) == ("fluid", False, "")


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("share:reno=0.3", "a bound with >= or <="),
        ("share:nobody>=0.3", "one of the groups of this scenario: near, far, reno"),
        ("reno>=0.3", "one of ratio, share"),
    ],
)
def test_a_wrong_bound_is_refused_before_the_models_run(
    bound: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS)
    assert run(["predict", str(path), "--require", bound]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"vegasmodel: --require: '{bound}' is not allowed; ")
    assert said in err


def test_a_bound_of_which_no_model_knows_the_figure_is_missed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS)  # `rate-delay` has no answer for a drop-tail link
    assert run(["predict", str(path), "--model", "rate-delay", "--require", "jain>=0.1"]) == 1
    said = "no model asked gives jain, so jain >= 0.1 is not known to hold"
    assert capsys.readouterr().err == f"vegasmodel: {said}\n"


def test_a_model_that_does_not_give_a_bounded_figure_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`random-loss` has no queues, so it cannot tell a delay."""
    path = tmp_path / "s.toml"
    path.write_text(LAWS.replace('buffer = "30 pkt"', 'buffer = "300 pkt"\nloss = 0.05'))
    models = ["--model", "random-loss", "--model", "fluid"]
    assert run(["predict", str(path), *models, "--require", "delay<=10s"]) == 0
    out, err = capsys.readouterr()
    assert "delay <= 10 s is not known: random-loss does not give it." in out
    assert "delay <= 10 s is met: fluid " in out
    assert not err


def test_a_bound_on_one_of_several_groups_of_a_law_is_told_of_all_flows_of_the_law(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(LAWS.replace('name = "near"', 'name = "vegas"'))
    bound = ["--require", "share:vegas>=0.001"]
    assert run(["predict", str(path), "--model", "fluid", *bound]) == 0
    out = " ".join(capsys.readouterr().out.split())
    said = "other flows with the law vegas are not counted: far; share:law:vegas has all"
    assert said in out
    assert run(["predict", str(path), "--model", "fluid", *bound, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert said in note


def test_a_miss_by_no_more_than_the_standard_error_is_said() -> None:
    case = vm.Scenario.from_toml(LAWS)
    rates = np.array([[100.0, 100, 100, 700], [110, 110, 110, 670], [90, 90, 90, 730]])
    found = Prediction(
        "rounds", case, rates.mean(axis=0), extra={"throughput_runs": rates}
    )  # shares of Reno: 0.70, 0.67 and 0.73, so their mean is 0.70 +- 0.0173
    for text, within in (("share:reno>=0.71", True), ("share:reno>=0.72", False)):
        bound = requirements.read(text, case)
        (one,) = requirements.checked(bound, case, [found])
        assert one.met is False
        assert one.se == pytest.approx(0.03 / math.sqrt(3), rel=1e-3)
        assert one.within_error is within
        assert ("by no more than the standard error" in requirements.missed(bound, [one])) is within
