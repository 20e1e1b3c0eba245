"""Ten passages of code and documentation, drawn by a seed, to be read by somebody new to them.

    scripts/passages.py SEED [--number 10]

A passage is the docstring of a module, class or function of the package, a comment of at least two
lines, or a paragraph of README.md, CONTRIBUTING.md and docs/.  Each kind has the same chance, and
within it each passage.  The reader knows TCP and has not seen this project: is each understood at
the first reading?
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Passage = tuple[str, str]  # where, what


def docstrings(kinds: tuple[type, ...]) -> Iterator[Passage]:
    """Of every public and private part of the package of these kinds."""
    for path in sorted((ROOT / "vegasmodel").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds):
                said = ast.get_docstring(node)
                name = getattr(node, "name", "module")
                if said:
                    yield f"{path.relative_to(ROOT)}: {name}", said


def comments() -> Iterator[Passage]:
    """Of two lines and more."""
    for path in sorted((ROOT / "vegasmodel").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"(?:^ *# .*\n){2,}", text, re.MULTILINE):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}", re.sub(r"^ *# ?", "", found[0], flags=re.M)


def paragraphs() -> Iterator[Passage]:
    """Prose of the pages: no tables, lists of links or code."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for part in re.split(r"\n\s*\n", text):
            if len(part) > 120 and not part.lstrip().startswith(("|", "#", "!", "<")):
                yield str(page.relative_to(ROOT)), part.strip()


def main() -> None:
    """Print the passages that a seed draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--number", type=int, default=10)
    arguments = parser.parse_args()
    routines = (ast.FunctionDef, ast.ClassDef)
    kinds = [list(docstrings((ast.Module,))), list(docstrings(routines))]
    kinds += [list(comments()), list(paragraphs())]
    draw = random.Random(arguments.seed)  # noqa: S311 - no secrets
    for i in range(arguments.number):
        where, what = draw.choice(draw.choice(kinds))
        print(f"{i + 1}. {where}\n\n{what}\n")


if __name__ == "__main__":
    main()
