"""The command ``paper``: its JSON document, and the records of one verdict."""

import json
import re

import pytest

from paper_checks.runs import FILE
from paper_checks.summary import VERDICTS
from vegasmodel.command_line.commands import run


def test_paper(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["paper", "boutremans", "--json"])
    doc = json.loads(capsys.readouterr().out)
    discrepant = [c for c in doc["checks"] if c["verdict"] == "discrepant"]
    assert status == (1 if discrepant else 0)
    keys = {"paper", "item", "kind", "printed", "computed", "tolerance", "verdict", "note"}
    assert all(set(c) >= keys for c in doc["checks"])


def test_paper_shows_the_records_of_one_verdict(
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


def test_help_names_every_simulator_that_a_live_run_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are the simulators of the stored runs, which ``--live`` makes again."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))["runs"].values()
    simulators = {entry["engine"].split()[0] for entry in stored}
    assert len(simulators) > 1
    run(["paper", "--help"])
    [live] = re.findall(r"--live (.*?)\.", " ".join(capsys.readouterr().out.split()))
    assert [name for name in simulators if name not in live] == []
