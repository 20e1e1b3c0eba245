"""If an extra is missing, one line tells how to install it, before any computation."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vegasmodel as vm
from vegasmodel.command_line.commands import run
from vegasmodel.engines.fluid import batch
from vegasmodel.equilibrium import network
from vegasmodel.support import extras

HEAD = '[[link]]\nname = "a"\ncapacity = "250 pkt/s"\nbuffer = "9 pkt"\n'
SECOND = '[[link]]\nname = "b"\ncapacity = "300 pkt/s"\n'
FLOWS = '[[flow]]\nname = "Végas"\nlaw = "vegas"\nrtt = "40 ms"\n'


@pytest.fixture
def scenarios(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The present folder, which has two scenarios."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(HEAD + FLOWS, encoding="utf-8")
    (tmp_path / "two.toml").write_text(HEAD + SECOND + FLOWS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, scenarios: Path) -> Path:
    """No extra is installed; a folder with two scenarios."""
    for extra, names in extras.MODULES.items():
        for name in names if extra != "testing" else ():  # pytest's plugin of it is at work
            monkeypatch.setitem(sys.modules, name, None)
    return scenarios


POOL = "vegasmodel.study.workers.pool"
# a command, the extra that it needs, and a function that it calls for its results
NEEDS = (
    (
        "ratio --capacity 99pkt/s vegas reno --plot p.png",
        "plot",
        "vegasmodel.predictor.predict_all",
    ),
    ("predict one.toml --plot p.png", "plot", "vegasmodel.predictor.predict_all"),
    ("simulate one.toml --plot p.png", "plot", "vegasmodel.simulation.simulate"),
    ("measure one.toml --plot p.png", "plot", "vegasmodel.measurement.run_engine"),
    ("compare one.toml --plot p.png", "plot", "vegasmodel.comparison.compare"),
    ("predict two.toml --model network", "network", "vegasmodel.equilibrium.network._polish"),
    ("sweep one.toml --over link.buffer=5,6 --out a.zarr", "sweep", POOL),
    ("sweep one.toml --over link.buffer=5,6 --out a --engine dask", "dask", POOL),
    ("paper devendictis --html p.html", "report", "paper_checks.runs.Runs._found"),
)


class Reached(BaseException):
    """A command has come to its results."""


def reach(*_: object, **__: object) -> None:
    raise Reached


@pytest.mark.parametrize(("line", "extra", "work"), NEEDS)
def test_a_command_says_what_it_lacks_before_it_computes(
    line: str, extra: str, work: str, bare: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(work, reach)
    assert run(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"pip install 'vegasmodel[{extra}]'" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("line", "extra", "work"), NEEDS)
def test_with_the_extra_the_command_computes(
    line: str, extra: str, work: str, scenarios: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, reach)
    with pytest.raises(Reached):
        run(line.split())


def test_over_two_links_the_other_models_answer(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["predict", "two.toml"]) == 0
    assert "vegasmodel[network]" in capsys.readouterr().out.replace("\n", "")
    assert run(["predict", "two.toml", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    (result,) = (r for r in results if r["model"] == "network")
    assert not result["applicable"]
    assert "vegasmodel[network]" in result["reason"]
    with pytest.raises(extras.ExtraMissing, match="network"):
        vm.predict(vm.load("two.toml"), "network")


@pytest.mark.parametrize(
    ("extra", "ask"),
    [
        ("plot", lambda: vm.plots.__getattr__("save")),
        ("symbolic", lambda: importlib.reload(importlib.import_module("vegasmodel.symbolic"))),
        ("network", lambda: network.solve([[1.0], [1.0]], [1.0, 2.0], [1.0])),
        ("jax", lambda: batch.run([vm.load("one.toml")], engine="jax")),
    ],
)
def test_so_does_python(extra: str, ask: Callable[[], Any], bare: Path) -> None:
    with pytest.raises(extras.ExtraMissing, match=rf"pip install 'vegasmodel\[{extra}\]'"):
        ask()


def test_the_strategies_say_which_extra_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(extras.ExtraMissing, match=r"pip install 'vegasmodel\[testing\]'"):
        importlib.reload(importlib.import_module("vegasmodel.testing"))


def test_every_extra_that_the_code_imports_is_declared() -> None:
    import tomllib

    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    optional = declared["project"]["optional-dependencies"]
    for extra, names in extras.MODULES.items():
        others = re.findall(r"vegasmodel\[([^]]*)]", " ".join(optional[extra]))
        wanted = [extra, *",".join(others).split(",")]
        brought = " ".join(" ".join(optional.get(e, ())) for e in wanted).replace("-", "_")
        assert all(name in brought for name in names), extra


def test_a_letter_that_the_locale_lacks(bare: Path) -> None:
    poor = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "vegasmodel", "predict", "one.toml"],
        env={**poor, "PYTHONCOERCECLOCALE": "0"}, capture_output=True, check=False, cwd=bare,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"V\xe9gas" in done.stdout
