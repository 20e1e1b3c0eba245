"""The notebooks' cells run, at both ends of every slider; without Jupyter, which takes longer.

``make notebooks`` runs them in Jupyter itself.
"""

import ast
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib.figure import Figure

import vegasmodel as vm
from vegasmodel import comparison, measurement, same_case

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ALLOWED = {"vegasmodel", "numpy", "dataclasses", "IPython", "ipywidgets"}


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def ends(choice: Any) -> list[Any]:
    """First and last value that ipywidgets would offer for an abbreviation of ``interact``."""
    if isinstance(choice, tuple):
        low, high = choice[:2]
        step = choice[2] if len(choice) > 2 else (1 if isinstance(high, int) else 0.1)
        return [low, low + type(high)((high - low) / step + 1e-9) * step]
    options = list(choice)
    return [options[0], options[-1]]


class Shown:
    """Replaces IPython.display and ipywidgets, and counts what a reader would see."""

    def __init__(self) -> None:
        self.figures = 0
        self.drawing = True

    def display(self, *things: Any) -> None:
        for thing in things:
            if isinstance(thing, Figure) and self.drawing:
                assert thing._repr_png_().startswith(b"\x89PNG")
                self.figures += 1

    def interact(self, function: Any, **choices: Any) -> None:
        self.display(function())
        self.drawing = False  # costs most of the time
        for name, choice in choices.items():
            for value in ends(choice):
                function(**{name: value})
        self.drawing = True


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    def none_stored(scenario: vm.Scenario, engine: str = "ns2") -> None:
        pytest.fail(f"no stored run of {scenario.name!r}: vegasmodel.packets.reference makes one")

    monkeypatch.setattr(measurement, "run_engine", none_stored)
    shown = Shown()
    package, front, widgets = (ModuleType(n) for n in ("IPython", "IPython.display", "ipywidgets"))
    package.version_info = (9, 0)  # matplotlib asks
    front.display, front.Markdown = shown.display, str
    widgets.interact = shown.interact
    for module in (package, front, widgets):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_at_both_ends_of_every_slider(
    path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    made: list[vm.Comparison] = []

    def compare(*arguments: Any, **options: Any) -> vm.Comparison:
        made.append(comparison.compare(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(vm, "compare", compare)
    for cell in code(path):
        tree = ast.parse(cell)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)  # noqa: S102 - our own notebooks
        if isinstance(last, ast.Expr):  # Jupyter displays a cell's last value
            shown.display(eval(compile(ast.Expression(last.value), path.name, "eval"), names))  # noqa: S307 - our own notebooks
    assert shown.figures > 1
    for case in made:
        same = same_case.same_vegas(case.scenario, case.measured)
        assert all(assumption.holds for assumption in same), (case.scenario.name, same)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_a_question_and_answers_its_exercise(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert re.match(rf"# {path.name[0]}\. .+\n\n\*\*.*\?\*\*", texts[0], re.DOTALL)
    heads = re.findall(r"^## (Exercise|Solution)$", "\n".join(texts), re.MULTILINE)
    assert heads in ([], ["Exercise", "Solution"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path) -> None:
    """To remove them: .venv/bin/jupyter nbconvert --clear-output --inplace notebooks/NAME.ipynb"""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_use_public_names_only(path: Path) -> None:
    for cell in code(path):
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.ImportFrom):
                assert str(node.module).split(".")[0] in ALLOWED - {"vegasmodel"}
            elif isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= ALLOWED
            elif isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_")


def test_a_figure_shows_itself_in_a_notebook() -> None:
    fig = vm.plots.figure()
    assert fig._repr_png_().startswith(b"\x89PNG")
