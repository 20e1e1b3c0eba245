"""The command line: the documented JSON, text in 80 columns, hostile names, exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from paper_checks.summary import VERDICTS
from vegasmodel.command_line.commands import run

RATIO = [
    "ratio", "--capacity", "1080pkt/s", "--rtt", "60ms", "--buffer", "20pkt",
    "vegas:alpha=3,beta=3", "reno",
]  # fmt: skip

RESULT_KEYS = {
    "model", "applicable", "reason", "flows", "ratios", "jain", "utilization", "queue_mean_pkt",
    "assumptions", "seconds",
}  # fmt: skip
FLOW_KEYS = {
    "name", "law", "throughput_pps", "throughput_bps", "throughput_range_pps", "throughput_se_pps",
    "base_rtt_s", "rtt_mean_s", "loss_rate", "acks", "retransmits",
}  # fmt: skip


def document(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> dict[str, Any]:
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    result: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    assert result["schema"] == 1
    return result


def check_result(result: dict[str, Any]) -> None:
    assert set(result) >= RESULT_KEYS
    for flow in result["flows"]:
        assert set(flow) == FLOW_KEYS
    for assumption in result["assumptions"]:
        assert set(assumption) == {"name", "holds", "detail"}
    if result["applicable"]:
        assert result["reason"] is None
    else:
        assert result["reason"]
        assert result["ratios"] == {}


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


def test_ratio_text_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RATIO) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "minicycle" in out
    assert "vegas/reno" in out
    assert max(map(len, out.splitlines())) <= 80


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["equilibrium", "--capacity", "250pkt/s", "--over-estimate", "0ms,16.2ms"],
        ["arrivals", "--n", "3"],
        ["rd", "--rate", "10", "--delay", "0", "--capacity", "100 Mbit/s"],
    ],
)
def test_closed_form_commands(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    document(capsys, [*arguments, "--json"])
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80


def test_an_equilibrium_of_whole_packets_is_one_of_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In ns-2 each of the two backlogs may be from 2.5 to 3.5 packets, in Linux from 3 to 4."""
    asked = ["equilibrium", "--capacity", "1000pkt/s", "--alpha", "3", "--rtt", "50ms"]
    for variant, low, high in (("ns2", 2.5, 3.5), ("linux", 3.0, 4.0)):
        told = document(capsys, [*asked, "--variant", variant, "--json"])
        ends = [1000.0 * low / (low + high), 1000.0 * high / (low + high)]
        np.testing.assert_allclose(told["rates_range_pps"], [ends, ends], rtol=1e-9)
        if variant == "ns2":  # in Linux the queue also depends on the RTT
            delays = [2.0 * low / 1000.0, 2.0 * high / 1000.0]
            np.testing.assert_allclose(told["queueing_delay_range_s"], delays, rtol=1e-9)
        assert run([*asked, "--variant", variant]) == 0
        out, _ = capsys.readouterr()
        assert f"{ends[0]:.1f} to {ends[1]:.1f}" in out
        assert "one of many equilibria" in " ".join(out.split())
        assert max(map(len, out.splitlines())) <= 80
    assert "rates_range_pps" not in document(capsys, [*asked, "--json"])


def test_a_delay_queue_without_room_is_said_to_pass_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A tenth of 4 packets is no whole packet; of 20 packets it is 2."""
    asked = ["rd", "--rate", "1", "--delay", "1", "--capacity", "1000pkt/s"]
    told = document(capsys, [*asked, "--buffer", "4", "--json"])
    assert told["buffer_D_pkt"] == 0
    assert "get nothing" in told["note"]
    assert document(capsys, [*asked, "--buffer", "20", "--json"])["note"] is None
    assert run([*asked, "--buffer", "4"]) == 0
    assert "get nothing" in " ".join(capsys.readouterr().out.split())


FAILING = ["equilibrium", "--capacity", "3pkt/s", "--alpha", "1e-80,1,1"]
FAILING += ["--over-estimate", "1s,0.5s,0s"]  # 1/(1 - 0.5) + 1/(1 - 0) = 3: what is left is lost


def test_a_solver_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FAILING) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "failed" in err
    assert run([*FAILING, "--json"]) == 1
    out, _ = capsys.readouterr()
    document = json.loads(out, parse_constant=pytest.fail)
    assert document["rates_pps"] == [None] * 3
    assert document["status"].startswith("failed")


def test_a_simulation_that_ends_early(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vegasmodel import simulation
    from vegasmodel.engines.rounds import answers
    from vegasmodel.prediction import Prediction

    path = tmp_path / "s.toml"
    path.write_text('[[link]]\ncapacity = "9 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "1 s"\n')
    broken = {"status": "too many events"}
    monkeypatch.setattr(
        answers, "answer", lambda s, **_: Prediction("rounds", s, np.full(1, np.nan), extra=broken)
    )
    (result,) = document(capsys, ["predict", str(path), "--model", "rounds", "--json"])["results"]
    assert result["reason"] == "the simulation ended early: too many events"
    assert not result["applicable"]
    real = simulation.simulate
    monkeypatch.setattr(
        simulation, "simulate", lambda *a, **k: real(a[0], "fluid").assign_attrs(broken)
    )
    assert run(["simulate", str(path)]) == 1
    assert "too many events" in capsys.readouterr().err


BLOATED = """
[[link]]
capacity = "1080 pkt/s"
buffer = "1e5 pkt"
[[flow]]
law = "vegas"
variant = "linux"
rtt = "60 ms"
[[flow]]
law = "reno"
rtt = "60 ms"
[run]
duration = "200 s"
"""


def test_a_simulation_that_fails_shows_no_numbers_and_writes_no_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vegasmodel.engines.rounds import run as rounds

    path, trace, picture = tmp_path / "s.toml", tmp_path / "t.parquet", tmp_path / "p.png"
    path.write_text(BLOATED)
    monkeypatch.setattr(rounds, "_RING", 2**12)
    monkeypatch.setattr(rounds, "_PARCELS", 2**12)
    data = vm.simulate(vm.load(path))
    assert data["rate"].min() >= 0.0  # NaN after the failure
    assert np.isnan(data["window"].values[-1]).all()
    asked = ["simulate", str(path), "--out", str(trace), "--plot", str(picture)]
    assert run(asked) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "buffer of bottleneck 100000 packets; largest window " in err
    assert "of reno" in err
    assert run([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert "more packets are under way" in found["provenance"]["status"]
    assert {f["rate_pps"] for f in found["flows"]} == {None}
    assert list(tmp_path.iterdir()) == [path]


def test_a_huge_buffer_has_room_for_its_packets() -> None:
    scenario = vm.Scenario.from_toml(BLOATED)
    assert vm.simulate(scenario).attrs["status"] == "done"


def test_no_closed_form_has_two_renos(capsys: pytest.CaptureFixture[str]) -> None:
    """The message proposes a command that exists."""
    assert run(["ratio", "--capacity", "250pkt/s", "reno", "reno"]) == 0
    out, _ = capsys.readouterr()
    assert "Others can: --model fluid, --model rounds." in out
    assert max(map(len, out.splitlines())) <= 80


LINUX = Path(__file__).parents[1] / "paper_checks" / "linux" / "e1a_2M_40ms_a3b3.toml"
TRACE = Path(__file__).parents[1] / "vegasmodel/packets/reference/linux/e1a_2M_40ms_a3b3.parquet"


def test_compare_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--trace", str(TRACE), "--json"])
    measured = doc["results"][-1]
    assert measured["model"] == "trace"
    check_result(measured)
    # summary.csv of the runs: 0.2222 and 0.7778 of the link
    assert measured["ratios"]["first/second"] == pytest.approx(0.2222 / 0.7778, rel=0.01)
    for errors in doc["errors"].values():
        assert set(errors) == {"throughput_nrmse", "ratio", "base_rtt"}
    assert abs(doc["errors"]["rounds"]["throughput_nrmse"]) < 0.05
    strict = ["compare", str(LINUX), "--trace", str(TRACE), "--max-error", "0"]
    assert run(strict) == 1
    _, err = capsys.readouterr()
    worst = min(errors["throughput_nrmse"] for errors in doc["errors"].values())
    assert err.endswith(f"no model is within --max-error 0; the best errs by {worst:.2g}\n")


def test_compare_takes_a_model_as_predict_does(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--model", "bands", "--json"])
    assert [result["model"] for result in doc["results"]] == ["bands", "trace"]
    assert run(["compare", str(LINUX), "--model", "bandz"]) == 2
    assert "model: 'bandz' is not allowed" in capsys.readouterr().err


def test_the_stored_linux_run_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--json"])
    assert doc["results"][-1]["model"] == "trace"


def test_simulate_convert_and_read_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        '[[link]]\ncapacity = "250 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\ncount = 2\n'
        '[run]\nduration = "20 s"\nwarmup = "5 s"\n'
    )
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    picture = tmp_path / "p.png"
    doc = document(
        capsys,
        ["simulate", str(scenario), "--out", str(first), "--plot", str(picture), "--json"],
    )
    assert [f["name"] for f in doc["flows"]] == ["vegas[0]", "vegas[1]"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    late = document(capsys, ["simulate", str(scenario), "--model", "delayed", "--json"])
    assert late["provenance"]["model"] == "delayed"
    doc = document(capsys, ["convert", str(first), "--out", str(second), "--json"])
    assert doc["flows"] == ["vegas[0]", "vegas[1]"]
    from vegasmodel import packets

    assert packets.read(first).data.identical(packets.read(second).data)


def test_paper(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["paper", "boutremans", "--json"])
    doc = json.loads(capsys.readouterr().out)
    discrepant = [c for c in doc["checks"] if c["verdict"] == "discrepant"]
    assert status == (1 if discrepant else 0)
    keys = {"paper", "item", "kind", "printed", "computed", "tolerance", "verdict", "note"}
    assert all(set(c) >= keys for c in doc["checks"])


def test_paper_shows_the_items_of_one_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["paper", "boutremans", "--json"])
    every = json.loads(capsys.readouterr().out)["checks"]
    wanted = [c for c in every if c["verdict"] == "erratum"]
    assert 0 < len(wanted) < len(every)
    run(["paper", "boutremans", "--json", "--verdict", "erratum"])
    assert json.loads(capsys.readouterr().out)["checks"] == wanted
    run(["paper", "boutremans", "--verdict", "erratum"])
    said = " ".join(capsys.readouterr().out.split())
    assert "docs/errata.md lists the formulas that are wrong" in said
    run(["paper", "boutremans", "--verdict", "erratum"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if line.endswith(VERDICTS) and "discrepant" not in line]
    assert len(rows) == len(wanted)
    assert all(row.endswith(" erratum") for row in rows)
    for verdict in ("--verdict", "eratum"), ("--verdict", "blocked", "--draw", "3"):
        assert run(["paper", "boutremans", *verdict]) == 2
        assert "--verdict" in capsys.readouterr().err
    asked = {"_VEGASMODEL_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    for key, value in {**asked, "COMP_WORDS": "vegasmodel paper --verdict er"}.items():
        monkeypatch.setenv(key, value)
    run()
    assert capsys.readouterr().out == "plain,erratum\n"


def test_no_model_has_an_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[link]]\ncapacity = "9 pkt/s"\n[[flow]]\nlaw = "reno"\nrtt = "1 s"\n')
    assert run(["predict", str(path)]) == 0
    out, _ = capsys.readouterr()
    assert "minicycle has no answer: the equations need Vegas" in out


HOSTILE = ["[exec touch x]", "$env(HOME); touch x", "a;`touch x`", '"quoted" {brace', "[bold]b[/]"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = json.dumps(name)
    path = tmp_path / f"{name.replace('/', '|')}.toml"
    path.write_text(
        f'name = {quoted}\n[[link]]\nname = {quoted}\ncapacity = "250 pkt/s"\nbuffer = "9 pkt"\n'
        f'[[flow]]\nname = {quoted}\nlaw = "vegas"\nrtt = "40 ms"\n[[flow]]\nlaw = "reno"\n'
        'rtt = "40 ms"\n'
    )
    doc = document(capsys, ["predict", str(path), "--json"])
    assert doc["scenario"] == name
    assert doc["results"][0]["flows"][0]["name"] == name
    assert run(["predict", str(path)]) == 0
    out, _ = capsys.readouterr()
    assert name in out.replace("\n", " ")
    picture = tmp_path / f"{name.replace('/', '|')}.png"
    assert run(["predict", str(path), "--plot", str(picture)]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {path.name, picture.name}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_command_without_an_example_is_not_documented() -> None:
    from vegasmodel.command_line.commands import app

    for name, command in app.commands.items():
        assert f"Example: vegasmodel {name}" in (command.help or "")


def test_help_and_no_heavy_imports() -> None:
    code = (
        "import sys, io, contextlib\n"
        "from vegasmodel.command_line.commands import run\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    assert run({[*RATIO, '--json']!r}) == 0\n"
        "heavy = {'jax', 'numba', 'scipy.optimize', 'matplotlib', 'sympy', 'xarray', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


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


@pytest.mark.parametrize("twice", [["--rtt", "1s", "--rtt", "2s"], ["--rtt=1s", "--rtt=1s"]])
def test_an_option_of_one_value_is_not_given_twice(
    capsys: pytest.CaptureFixture[str], twice: list[str]
) -> None:
    assert run(["ratio", "--capacity", "9pkt/s", "vegas", "reno", *twice]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "vegasmodel: Option '--rtt' is given more than once.\n")
    assert run([*RATIO, "--json", "--json"]) == 0  # a flag has no value


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
    case = vm.Scenario((vm.Link(1000.0, buffer=20),), flows, run=vm.Run(60.0, 20.0))
    (tmp_path / "web.toml").write_text(case.to_toml())
    assert run(["predict", str(tmp_path / "web.toml"), "--model", "rounds"]) == 0
    assert "rounds: enough-runs is not known: one run" in capsys.readouterr().out
    assert run(["predict", str(tmp_path / "web.toml"), "--model", "rounds", "--runs", "3"]) == 0
    assert "enough-runs is not known" not in capsys.readouterr().out


def test_explain_lists_the_names_of_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    said = capsys.readouterr().out.replace("\n  ", "")
    assert "phase-effects" in said
    assert "own-law-repairs" in said


def test_an_error_about_an_option_calls_a_number_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message has no word that only programmers use, such as float."""
    assert run(["rd", "--rate", "abc", "--delay", "3", "--capacity", "9pkt/s"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "vegasmodel: Invalid value for '--rate-flows' / '--rate': 'abc' is not a valid number.\n"
    )


def test_simulate_says_for_which_flow_an_assumption_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It named the assumption only; ``predict`` names the flow, too."""
    path = tmp_path / "slow.toml"
    flows = [vm.Flow("reno", "50 ms", access="800 kbit/s", name="modem"), vm.Flow("vegas", "50 ms")]
    path.write_text(vm.Scenario([vm.Link("1 Mbit/s", buffer=20)], flows).to_toml())
    for command in (["simulate", str(path)], ["predict", str(path), "--model", "rounds"]):
        assert run([*command]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "rounds: bottleneck-is-the-link does not hold: modem." in out
