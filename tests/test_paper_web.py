"""Stored answers of ``rounds`` on Web traffic: complete, marked if outdated, and used."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from paper_checks import web
from paper_checks.answers import answer
from paper_checks.code_hash import code_hash, structure
from paper_checks.models import remarks
from paper_checks.runs import Runs
from paper_checks.scenes import asked
from vegasmodel.scenario import Scenario


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [scenario for scenario in asked("podlesny", Runs()) if scenario.random_arrivals]


def test_every_scenario_has_an_answer(scenarios: list[Scenario]) -> None:
    assert len(scenarios) > 10
    for scenario in scenarios:
        found = web.stored(scenario)
        assert found.applicable
        assert found.throughput.shape == (len(scenario.members),)
        assert np.all(found.throughput >= 0)
        assert np.all(found.utilization <= 1 + 1e-6)


def test_the_table_reads_them(scenarios: list[Scenario]) -> None:
    read, stored = answer(scenarios[0], "rounds").throughput, web.stored(scenarios[0]).throughput
    assert read is not None
    np.testing.assert_array_equal(read, stored)


def test_another_scenario_has_none(scenarios: list[Scenario]) -> None:
    run = dataclasses.replace(scenarios[0].run, seed=98765)
    found = web.stored(dataclasses.replace(scenarios[0], run=run))
    assert not found.applicable
    assert "paper_checks.web" in str(found.reason)


def test_an_earlier_version_is_said_to_be_one(
    scenarios: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "version", lambda: "another")
    assert web.stored(scenarios[0]).reason == web.OLDER
    assert "earlier version" in remarks()
    assert web.main(["--check"]) == 1


CODE = """
def f(time, *, name=None):
    '''Return three values.'''
    return {**name}, time[:2], f"{time} s"
"""


def test_the_structure_of_code_is_the_same_in_each_version_of_python() -> None:
    name, time = (f"Name(id='{word}', ctx=Load())" for word in ("name", "time"))
    text = f"JoinedStr(values=[FormattedValue(value={time}, conversion=-1), Constant(value=' s')])"
    part = f"Subscript(value={time}, slice=Slice(upper=Constant(value=2)), ctx=Load())"
    assert structure(ast.parse(CODE)) == (
        "Module(body=[FunctionDef(name='f', args=arguments(args=[arg(arg='time')], "
        "kwonlyargs=[arg(arg='name')], kw_defaults=[Constant()]), body=[Return(value=Tuple("
        f"elts=[Dict(keys=[None], values=[{name}]), {part}, {text}], ctx=Load()))])])"
    )


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("    return", "    # now\n    return", True),  # a comment
        ("three values", "a dictionary,\n    a list and a text", True),
        ("    '''Return three values.'''\n", "", True),
        ("return {**name}, time[:2],", "return {\n  **name}, time[: 0x2],", True),  # layout
        ("[:2]", "[:3]", False),
        ("[:2]", "[2:]", False),
        ("{**name}", "{name: name}", False),
        (" s", " ms", False),
        ("None", "'None'", False),
        ("*, ", "", False),
    ],
)
def test_the_hash_is_of_the_code_alone(before: str, after: str, same: bool, tmp_path: Path) -> None:
    assert before in CODE
    found = []
    for file, text in (("1.py", CODE), ("2.py", CODE.replace(before, after))):
        (tmp_path / file).write_text(text)
        found.append(code_hash([tmp_path / file]))
    assert (found[0] == found[1]) is same
