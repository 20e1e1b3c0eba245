"""The command ``ratio``: flows and models without a scenario file."""

import json
from pathlib import Path

import pytest

from tests.commands.scenes import RATIO, check_result, document
from vegasmodel.command_line.commands import run


def test_ratio_json(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, [*RATIO, "--json"])
    assert set(doc) == {"schema", "scenario", "results"}
    by_name = {r["model"]: r for r in doc["results"]}
    cycle = by_name["minicycle"]
    check_result(cycle)
    assert [f["name"] for f in cycle["flows"]] == ["vegas", "reno"]
    vegas, reno = (f["throughput_pps"] for f in cycle["flows"])
    assert cycle["ratios"]["vegas/reno"] == pytest.approx(vegas / reno)
    assert cycle["ratios"]["reno/vegas"] == pytest.approx(reno / vegas)
    assert cycle["flows"][0]["throughput_bps"] == pytest.approx(vegas * 8 * 1000)
    assert vegas + reno <= 1080 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("flow", "key"),
    [("vegas:alpha=3,alpha=5", "alpha"), ("vegas: beta=3, beta =3", "beta"), ("reno:law=x", "law")],
)
def test_a_key_of_a_flow_is_given_once(
    flow: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratio", "--capacity", "1080pkt/s", flow, "reno"]) == 2
    said = f"flow: {flow!r} is not allowed; each key once; {key} is given twice"
    assert capsys.readouterr() == ("", f"vegasmodel: {said}\n")


@pytest.mark.parametrize(
    ("flow", "what"),
    [
        ("2xvegas", 'write "vegas:count=2"'),
        ("12 reno:rtt=50ms", 'write "reno:count=12"'),
        ("2", 'a law; for several flows write "vegas:count=2"'),
        (
            "vegas:alpha=3:beta=3",
            'a comma before the second key, as in "vegas:alpha=3,beta=3"',
        ),
    ],
)
def test_a_flow_in_another_notation_is_told_ours(
    flow: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratio", "--capacity", "1080pkt/s", flow, "reno"]) == 2
    assert capsys.readouterr() == ("", f"vegasmodel: flow: {flow!r} is not allowed; {what}\n")


def test_the_defaults_of_ratio_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Who gives neither --rtt nor --buffer reads the RTT, and what minicycle lacks."""
    assert run(["ratio", "--capacity", "1080pkt/s", "vegas", "reno"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("ratio (bottleneck: 1080 pkt/s, buffer inf pkt; RTT 80 ms; packets of")
    assert "Reno never loses and there is no cycle; give a `buffer`." in said
    assert "Others can: --model fluid, --model rounds." in said
    run(["ratio", "--capacity", "1080pkt/s", "vegas:rtt=20ms", "vegas"])
    assert "; RTT 20 ms to 80 ms; packets" in " ".join(capsys.readouterr().out.split())


def test_thresholds_that_a_law_does_not_use_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["ratio", "--capacity", "1080pkt/s", "--buffer", "20pkt", "vegas:alpha=1"]
    for flow, said in (
        ("reno:alpha=3", "reno: alpha has no effect; reno has no thresholds."),
        ("reno:alpha=3,beta=4,name=r", "r: alpha, beta have no effect; reno has no thresholds."),
        ("reno", None),
    ):
        assert run([*options, flow]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert said in out if said else "no effect" not in out


def test_ratio_text_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RATIO) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "minicycle" in out
    assert "vegas/reno" in out
    assert max(map(len, out.splitlines())) <= 80


def test_no_closed_form_has_two_renos(capsys: pytest.CaptureFixture[str]) -> None:
    """The message proposes a command that exists."""
    assert run(["ratio", "--capacity", "250pkt/s", "reno", "reno"]) == 0
    out, _ = capsys.readouterr()
    assert "Others can: --model fluid, --model rounds." in out
    assert max(map(len, out.splitlines())) <= 80


def test_ratio_asks_one_model_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Two equal Reno flows: no closed form knows them, ``fluid`` gives each half of the link."""
    asked = ["ratio", "--capacity", "250pkt/s", "--buffer", "20pkt", "reno", "reno:name=other"]
    assert run([*asked, "--model", "fluid", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["model"] == "fluid"
    assert result["ratios"]["reno/other"] == pytest.approx(1.0, abs=0.01)
    assert run([*asked, "--model", "rounts"]) == 2
    assert "did you mean 'rounds'?" in capsys.readouterr().err


def test_several_models_are_asked_and_each_answers_or_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["--model", "red", "--model", "fluid", "--model", "minicycle", "--model", "fluid"]
    results = document(capsys, [*RATIO, *asked, "--json"])["results"]
    assert [(r["model"], r["applicable"]) for r in results] == [
        ("red", False), ("fluid", True), ("minicycle", True),
    ]  # fmt: skip
    assert run([*RATIO, *asked]) == 0
    assert "red has no answer:" in capsys.readouterr().out
    assert run([*RATIO, "--model", "fluid", "--model", "flud"]) == 2
    assert "did you mean 'fluid'?" in capsys.readouterr().err


def test_only_ratios_that_are_left_out_are_said_to_be_in_the_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = ["ratio", "--capacity", "1000pkt/s", "--model", "equilibrium"]
    three = [f"vegas:name={name}" for name in ("a", "b", "c")]
    many = [f"vegas:name=v{i}" for i in range(51)]
    for flows, said in (
        (three, None),
        ([*three, "vegas:name=d"], "(the JSON output lists all ratios of the groups)"),
        (many, "(the JSON output lists all 51 groups and their ratios)"),
    ):
        assert run([*case, *flows]) == 0
        out = capsys.readouterr().out
        assert "JSON" not in out if said is None else said in out


def test_a_law_of_the_user_needs_no_scenario_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "own.py"
    path.write_text("import vegasmodel\nvegasmodel.register_law('ratio-own', lambda f: 1.0)\n")
    case = ["ratio", "--capacity", "1000pkt/s", "--buffer", "20pkt", "ratio-own", "reno"]
    (result,) = document(capsys, [*case, "--laws", str(path), "--model", "fluid", "--json"])[
        "results"
    ]
    assert [flow["law"] for flow in result["flows"]] == ["ratio-own", "reno"]
    assert result["applicable"]


def test_no_other_simulator_can_answer_for_a_law_that_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "own.py"
    rule = "lambda f: float('nan') if f.window > 25.0 else 1.0"
    path.write_text(f"import vegasmodel\nvegasmodel.register_law('hint-own', {rule})\n")
    case = ["ratio", "--capacity", "1000pkt/s", "--buffer", "20pkt", "hint-own", "reno"]
    run([*case, "--laws", str(path), "--model", "fluid"])
    out = " ".join(capsys.readouterr().out.split())
    assert "law hint-own" in out
    assert "Others can" not in out


def test_a_truth_value_is_shown_as_the_user_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The message had Python's word, True."""
    assert run(["ratio", "--capacity", "100pkt/s", "vegas:alpha=true", "reno"]) == 2
    assert "flow 1, alpha: 'true' is not allowed; a number of" in capsys.readouterr().err
