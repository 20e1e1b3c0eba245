"""Code does not compare with the name of a law or a stack, but with its properties."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from vegasmodel.laws import BUILT_IN
from vegasmodel.stacks import STACKS

ROOT = Path(__file__).parents[1] / "vegasmodel"
NAMES = {law.name for law in BUILT_IN} | set(STACKS)

# Where a name is the subject.
SUBJECT = {
    "laws": "a law's own file, and the registry",
    "stacks": "a stack's own file, and the choice among them",
    "packets": "a driver writes the name of an agent into a script, a reader reads it in a trace",
    "symbolic": "a derivation is about the law of one paper",
}

FILES = {
    "equilibrium/heterogeneous.py": "a rate law of each, by the words of its own argument",
}
# Comparisons that are allowed: packet simulators and models, which users select by these names; and
# the losers in the mini-cycle, an option of a model with two laws.
OTHERS = {"engine", "model", "losers"}


def words(node: ast.expr) -> Iterator[str]:
    """Names in an expression; for a dotted name its last attribute."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part.id if isinstance(part, ast.Name) else part.attr


def asked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each comparison, membership test or ``match`` with such a name.

    A name counts if it is a string or a constant in capitals.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        if OTHERS & {word for side in sides for word in words(side)}:
            continue
        for side in sides:
            parts = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
            for part in parts:
                word: object = part.value if isinstance(part, ast.Constant) else None
                if isinstance(part, (ast.Name, ast.Attribute)):
                    name = part.id if isinstance(part, ast.Name) else part.attr
                    word = name.lower() if name.isupper() else None
                if isinstance(word, str) and word in NAMES:
                    yield node.lineno, word


def test_a_question_for_a_name_is_found() -> None:
    text = (
        "a = law == 'vegas'\nb = stack in ('linux', x)\nc = f.law != state.TAHOE\nd = x == 'other'"
        "\ne = engine == 'ns2'"
    )
    assert [*asked(ast.parse(text))] == [(1, "vegas"), (2, "linux"), (3, "tahoe")]


@pytest.mark.parametrize(
    "room", [*sorted({p.name for p in ROOT.iterdir() if p.is_dir()} - SUBJECT.keys()), "."]
)
def test_no_code_asks_for_a_name(room: str) -> None:
    files = ROOT.glob("*.py") if room == "." else (ROOT / room).rglob("*.py")
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        if str(path.relative_to(ROOT)) not in FILES
        for line, name in asked(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)
