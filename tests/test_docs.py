"""Statements of the documentation are true."""

import dataclasses
import importlib
import json
import re
import shlex
from pathlib import Path

import click
import jax
import pytest

import vegasmodel as vm
from tests.helpers import MIXED
from vegasmodel import laws, measurement, queues
from vegasmodel.command_line.commands import app, run
from vegasmodel.queues import RateDelay, Red
from vegasmodel.report import meanings
from vegasmodel.report.explanations import EXPLANATIONS
from vegasmodel.scenario import (
    VARIANTS,
    Drop,
    Flow,
    Link,
    Pareto,
    ParetoArrivals,
    Run,
    Scenario,
    Staggered,
)
from vegasmodel.study import sweep, targets

ROOT = Path(__file__).parents[1]
NO_MESSAGES = {  # words with hyphens that are no names of assumptions
    "at-buffer",
    "at-threshold",
    "buffer-limited",
    "loss-based",
    "loss-limited",
    "no-any-return",
    "no-loss",
    "ns-2",
    "ns-3",
    "on-curve",
    "point-to-point",
    "traffic-control",
    "utf-8",
}
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["tutorial", "how-to", "reference/messages"])
def test_the_examples_of_a_page_print_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command and program, in their order: ``scripts/examples.py --write`` renews them."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    precision = jax.config.jax_enable_x64
    try:
        assert importlib.import_module("examples").played(text) == text
    finally:
        jax.config.update("jax_enable_x64", precision)  # a recipe turns it on for its program


def test_every_assumption_is_explained() -> None:
    """Every name with hyphens in a module that answers stands on the page of messages."""
    page = (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))
    package = Path(vm.__file__).parent
    modules = [package / "comparison.py", package / "measurement.py"]
    for folder in ("adapters", "engines", "packets"):
        modules += (package / folder).rglob("*.py")
    said = set()
    for path in modules:
        text = path.read_text(encoding="utf-8")
        said |= set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', text))
    assert len(said) > 50
    assert said - explained - set(vm.MODELS) == NO_MESSAGES


def test_the_command_explains_each_name_as_that_page_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8")
    plain = re.sub(r" \(\[[^\]]*\]\([^)]*\)\)", "", page)  # without links to pages
    shown = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", plain, re.MULTILINE))
    assert shown == {**meanings.ASSUMPTIONS, **meanings.COLUMNS, **meanings.WORDS}
    assert run(["explain", "phase-effects", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["meaning"] == shown["phase-effects"]
    assert list(said["models"]) == ["rounds"]
    assert run(["explain", "ln ratio error"]) == 0
    assert "ln(model / measured)" in capsys.readouterr().out
    assert run(["explain", "phase-effect"]) == 2
    assert "did you mean 'phase-effects'?" in capsys.readouterr().err


def test_the_accuracy_of_fluid_is_that_of_the_last_seed_in_its_table() -> None:
    page = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    table = page.partition("mean error of `fluid` |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    column = rows[0].index("28112671")
    cells = [row[column + 2] for row in rows[2:] if row[column + 2]]
    shown = [f"{cell.split()[0]} %" for cell in cells]
    assert len(shown) == 3
    said = vm.explain("fluid").partition("Accuracy: ")[2]
    assert re.findall(r"[\d.]+ %", said) == shown
    assert "docs/accuracy.md" in said


def test_the_fields_of_a_steady_state_are_explained() -> None:
    """The names ``spread``, ``residual`` and ``multipliers`` had no explanation."""
    said = vm.LimitCycle.__doc__ or ""
    for field in dataclasses.fields(vm.LimitCycle):
        assert f"- ``{field.name}``: " in said, field.name
    for name in ("spread", "residual", "multipliers", "overflows", "losses"):
        assert "steady state" in vm.explain(name)


def test_every_model_and_law_is_documented() -> None:
    models = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    scenario = (ROOT / "docs/scenario.md").read_text(encoding="utf-8")
    assert set(EXPLANATIONS) - {"delayed"} == set(vm.MODELS)  # only simulate knows delayed
    assert all(f"`{name}`" in models for name in vm.MODELS)
    assert all(re.search(rf"\b{law.name}\b", scenario) for law in laws.BUILT_IN)
    assert all(f"`{variant}`" in scenario for variant in VARIANTS)
    assert all(f'discipline = "{name}"' in scenario for name in queues.DISCIPLINES)


def test_every_command_and_option_says_what_it_does() -> None:
    """Each also has an example, which the page of commands shows."""
    for name, command in app.commands.items():
        said = command.help or ""
        assert f"Example: vegasmodel {name}" in said
        assert any("--json" in given.opts for given in command.params), name
        for given in command.params:
            if isinstance(given, click.Option):
                assert given.help, (name, given.name)
            elif given.metavar != "SCENARIO.toml":
                assert (given.metavar or "").strip("[]").removesuffix("...") in said, (name, given)


def test_the_recipes_name_the_keys_of_the_json_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row of the table names a key of an entry of ``results``, then keys of its entries."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    table = text.partition("| key | content |\n")[2].partition("\n\n")[0]
    Path("mixed.toml").write_text(MIXED, encoding="utf-8")
    assert run(["predict", "mixed.toml", "--model", "minicycle", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["results"]
    for row in table.splitlines()[1:]:
        first, content = (re.findall(r"`(\S+?)`", cell) for cell in row.split("|")[1:3])
        assert set(first) <= set(entry)
        inside = entry[first[0]]
        assert not content or set(content) <= set(inside[0] if first != ["ratios"] else inside)


def test_every_page_has_its_place_on_the_site() -> None:
    """Each page is in a list; gallery/, reference/ and validation.md are generated."""
    folder = ROOT / "docs"
    listed = set()
    for page in folder.rglob("*.md"):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            listed |= {line for line in block.splitlines() if line and not line.startswith(":")}
    there = {str(page.relative_to(folder).with_suffix("")) for page in folder.rglob("*.md")}
    assert there - listed == {"index"}
    made = {"gallery/index", "validation", "reference/commands", "reference/models"}
    assert listed - there == made | {"reference/python"}


def test_a_link_in_a_clone_leads_somewhere() -> None:
    """Only the front page links pages that ``make docs`` generates, and it says so."""
    links = re.compile(r"\]\((?!http)([^)#\s]+)(?:#[^)]*)?\)")
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    lost = {
        (page.name, target)
        for page in pages
        for target in links.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    }
    made = ["gallery/index", "reference/commands", "reference/models", "reference/python"]
    assert lost == {("index.md", f"{name}.md") for name in [*made, "validation"]}


def test_commands_in_the_readme_exist() -> None:
    known = set(app.commands)
    used = set(re.findall(r"bin/vegasmodel (\w+)", README))
    assert used
    assert used <= known


def _readme_scenario() -> str:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    return str(text)


def test_the_readme_scenario_is_read() -> None:
    assert vm.Scenario.from_toml(_readme_scenario()).name == "mixed"


def test_the_readme_scenario_copied_by_hand_compares_within_a_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No simulator is needed, because the run of ns-2 is stored."""
    (tmp_path / "mixed.toml").write_text(_readme_scenario(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measurement, "run_engine", pytest.fail)
    assert run(["compare", "mixed.toml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["results"][-1]["model"] == "ns2"
    errors = document["errors"]["rounds"]
    assert errors["throughput_nrmse"] < 0.01
    assert abs(errors["ratio"]) < 0.01
    for result in document["results"][:-1]:
        held = {a["name"]: a["holds"] for a in result["assumptions"]}
        assert not result["applicable"] or held["same-vegas"] is True, result["model"]
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own page
    assert "rounds" in capsys.readouterr().out


def test_the_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a whole program; the scenarios that it prints can be read again."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/scenario.md").read_text(), re.DOTALL)
    exec(compile(code, "docs/scenario.md", "exec"), {})  # noqa: S102 - our own page
    assert (
        vm.Scenario.from_toml(capsys.readouterr().out).links[0].buffer == 100.0
    )  # 2 * 1250 * 40 ms


def test_paths_named_in_the_docs_exist() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for path in re.findall(
            r"`((?:docs|vegasmodel|scripts|tests|benchmarks)/[\w/.-]+)`", page.read_text()
        ):
            assert (ROOT / path).exists(), (page.name, path)


def test_the_page_on_scenario_files_names_every_key() -> None:
    """Each key of each table is in one of the page's files, and both files can be read."""
    files = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/scenario.md").read_text(), re.DOTALL)
    tables = [vm.Scenario.from_toml(text) for text in files]
    assert [s.name for s in tables] == ["everything", "other-forms"]
    text = "\n".join(files)
    kinds = (Scenario, Link, Flow, Run, Red, RateDelay, Drop, Staggered, Pareto, ParetoArrivals)
    for kind in kinds:
        for key in dataclasses.fields(kind):
            name = key.metadata.get("key") or key.name
            assert re.search(rf"\b{name}\b *(=|\])", text), (kind.__name__, name)


def test_errors_name_a_table_as_that_page_says(tmp_path: Path) -> None:
    page = " ".join((ROOT / "docs/scenario.md").read_text().split())
    named = re.search(r"Errors count .*?: `(.*?)` is the `rtt` of the second `\[\[flow\]\]`", page)
    path = tmp_path / "wrong.toml"
    path.write_text(
        '[[link]]\ncapacity = "1080 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\n'
        '[[flow]]\nlaw = "reno"\nrtt = "-1 ms"\n'
    )
    with pytest.raises(vm.FieldError, match=re.escape(named[1])):
        vm.load(path)


def test_the_defaults_on_that_page_are_the_defaults() -> None:
    page = (ROOT / "docs/scenario.md").read_text()
    full = vm.Scenario.from_toml(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    bare = vm.Scenario.from_toml(
        'name = "everything"\n[[link]]\ncapacity = "1080 pkt/s"\n'
        '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"'
    )
    shown = dataclasses.asdict(full)
    for flow in shown["flows"]:  # what is shown there is what the defaults amount to
        flow |= dict.fromkeys(("stop", "initial_window", "packet_size", "path", "access", "match"))
        wait = flow.pop("send_jitter")
        assert wait == pytest.approx(bare.jitter(bare.flows[0]), rel=1e-3)
        flow["send_jitter"] = None
    shown["run"]["runs"] = shown["estimated_from"] = shown["guesses"] = None
    shown["links"][0]["delay"] = bare.links[0].delay
    assert shown == dataclasses.asdict(bare)


def test_the_examples_on_the_page_on_sweeps_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The examples run in their order in one folder; each command exits with 0."""
    (tmp_path / "mixed.toml").write_text(_readme_scenario(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/sweep.md").read_text()
    blocks = re.findall(r"```(python)?\n(.*?)```", page, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["", "", "python", "", "python", "python"]
    for kind, block in blocks:
        if kind == "python":
            exec(block, {})  # noqa: S102 - our own page
        else:
            for line in block.splitlines():
                assert run(shlex.split(line)[1:]) == 0, line
    out, err = capsys.readouterr()
    assert err == ""
    assert "0 points have no answer" in out
    assert "one 18.69" in out
    told = re.search(r"these, (\d+) lead to a\ncycle .* and (\d+) to a cycle", page)
    counts = re.findall(r"(\d+) starts .* (\[.*\])", out)
    assert counts == [(told[1], "[1. 1.]"), (told[2], "[0. 1.]")]
    ((first, drawn),) = re.findall(r"\('link.buffer',\) (.*)\n(.*)", out)
    assert float(first) < float(drawn) / 2


def test_the_examples_on_the_page_on_stability_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict, the boundary, and the verdicts on either side of the boundary's points."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/stability.md").read_text()
    for kind, block in re.findall(r"```(python|toml)?\n(.*?)```", page, re.DOTALL):
        if kind == "toml":
            (tmp_path / "red.toml").write_text(block, encoding="utf-8")
        elif kind == "python":
            exec(block, {})  # noqa: S102 - our own page
            assert re.match(r"True|\[", capsys.readouterr().out)
        else:
            first, second = (shlex.split(line)[1:] for line in block.splitlines())
            assert run([*first, "--json"]) == 0
            said = json.loads(capsys.readouterr().out)
            assert said["stable"]
            assert said["complete"]
            assert run(second) == 0
            traced = json.loads(capsys.readouterr().out)["boundary"]
    (curve,) = traced["curves"]
    assert [field["unit"] for field in traced["fields"]] == [None, "s"]
    for at in curve[2:-2:6]:
        weight, rtt = at["values"]
        for factor, stable in ((0.99, True), (1.01, False)):  # longer round trips swing
            fields = {"link.queue.weight": weight, "flow.rtt": factor * rtt}
            case = vm.load("red.toml").replace(fields)
            assert vm.stability(case).stable == stable


def test_the_page_on_sweeps_names_every_variable() -> None:
    page = (ROOT / "docs/sweep.md").read_text()
    assert all(f"`{name}`" in page for name in (*sweep.FIGURES, "broken", "status"))
    assert all(kind in page for kind in targets.KINDS)


TWO_VEGAS = {  # the rows of a table of docs/linux.md, and their scenario files
    "40 ms, 3 and 3 | 10": "e1a_2M_40ms_a3b3",
    "40 ms, 2 and 4 | 10": "e1b_2M_40ms_a2b4",
    "40 ms, 2 and 4 | 2": "e1d_2M_40ms_a2b4_iw2",
    "40 ms, 10 and 10 | 10": "vegas_vegas_2M_40ms_a10b10",
    "40 ms, 10 and 10 | 2": "e1h_2M_40ms_a10b10_iw2",
    "320 ms, 3 and 3 | 10": "vegas_vegas_2M_320ms_a3b3",
    "320 ms, 3 and 3 | 2": "e1j1_2M_320ms_a3b3",
}


@pytest.mark.parametrize("row", TWO_VEGAS)
def test_the_table_of_two_vegas_has_what_compare_prints(row: str) -> None:
    page = (ROOT / "docs" / "linux.md").read_text(encoding="utf-8")
    found = vm.compare(
        vm.load(ROOT / "paper_checks" / "linux" / f"{TWO_VEGAS[row]}.toml"), models=["rounds"]
    )
    cells = [
        f"{p.shares['second']:.3f} | {1e3 * p.base_rtt[1]:.1f} ms"
        for p in (found.measured, *found.models)
    ]
    assert f"| {row} | {' | '.join(cells)} |" in page


def test_the_page_on_laws_of_your_own_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words must be equal, numbers within 0.03, since results change slightly with a simulator."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/write-your-own-law.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    assert len(blocks) == 13
    names: dict[str, object] = {}
    number = r"-?\d+\.?\d*"
    for code, shown in blocks:
        exec(code, names)  # noqa: S102 - our own page
        printed = capsys.readouterr().out
        assert re.sub(number, "N", printed).split() == re.sub(number, "N", shown).split()
        found, expected = (
            [float(text) for text in re.findall(number, part)] for part in (printed, shown)
        )
        assert found == pytest.approx(expected, rel=0.01, abs=0.03), code
    law = blocks[0][0].split("\n\n\n")[1]
    assert len(law.splitlines()) <= 40
    # the law in a file, a scenario that names it, the command that runs both
    (scenario,) = re.findall(r"```toml\n# fast.toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "fast.toml").write_text(scenario)
    told = vm.predict(vm.load("fast.toml"), "fluid").throughput
    laws._registered.clear()
    monkeypatch.setattr(laws, "_files", {})
    (tmp_path / "fast.py").write_text(f"import vegasmodel as vm\n\n\n{law}\n")
    (commands,) = re.findall(r"```sh\n(vegasmodel .*?)\n```", page, re.DOTALL)
    command, swept = (line.removeprefix("vegasmodel ") for line in commands.splitlines())
    assert run(swept.split()) == 0
    assert "16 points" in capsys.readouterr().out
    assert run([*command.split(), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"][0]["flows"]
    assert [row["throughput_pps"] for row in rows] == pytest.approx(told)


def test_the_readme_writes_no_file_twice() -> None:
    """``new`` refuses a file that exists, so each of the commands needs a name of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"^\.venv/bin/vegasmodel new (\S+)", text, re.MULTILINE)
    assert len(set(names)) == len(names) > 1
