"""The paper checks are a separate distribution, which the command finds if it is installed."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from setuptools import find_packages

from vegasmodel.command_line.commands import run
from vegasmodel.support import extras

ROOT = Path(__file__).parents[1]


def table(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_the_library_has_one_top_level_name() -> None:
    include = table("pyproject.toml")["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.split(".")[0] for name in find_packages(str(ROOT), include=include)} == {
        "vegasmodel"
    }


def test_the_papers_have_the_other_and_all_of_it() -> None:
    own = table("paper_checks/pyproject.toml")
    assert sorted(own["tool"]["setuptools"]["packages"]) == sorted(
        find_packages(str(ROOT), include=["paper_checks*"])
    )
    patterns = own["tool"]["setuptools"]["package-data"]["paper_checks"]
    folder = ROOT / "paper_checks"
    packed = {path for pattern in patterns for path in folder.glob(pattern)}
    assert packed >= {*folder.rglob("*.toml"), *folder.rglob("*.json")} - {
        folder / "pyproject.toml"
    }
    assert own["project"]["version"] == table("pyproject.toml")["project"]["version"]


def test_without_them_the_command_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(
        extras.importlib.util,
        "find_spec",
        lambda name: None if name == "paper_checks" else found(name),
    )
    assert run(["paper", "tsang", "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "pip install ./paper_checks" in said.err
