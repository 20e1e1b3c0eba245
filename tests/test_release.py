"""The files of a release agree: version, licence, papers, Python versions."""

import re
import tomllib
from pathlib import Path

import paper_checks
import vegasmodel as vm

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.M) == [vm.__version__]
    assert PROJECT["version"] == vm.__version__
    assert f"## {vm.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_one_licence_everywhere() -> None:
    assert f"license: {PROJECT['license']}\n" in (ROOT / "CITATION.cff").read_text()


def test_each_paper_with_known_authors_can_be_cited() -> None:
    """``evaluation`` is a report whose text names no author."""
    citation = (ROOT / "CITATION.cff").read_text()
    named = set(re.findall(r'notes: "(\w+): ', citation))
    assert named == set(paper_checks.PAPERS) - {"evaluation"}


def test_the_workflow_runs_each_python_that_is_declared() -> None:
    workflow = (ROOT / ".github/workflows/tests.yml").read_text()
    (listed,) = re.findall(r"matrix: { python: \[(.*)\] }", workflow)
    declared = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if ":: 3." in c]
    assert re.findall(r'"(.*?)"', listed) == declared
    targets = set(re.findall(r"run: make (\w+)", workflow))
    assert targets <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
