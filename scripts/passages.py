"""Draws random passages of code and documentation, as a reading test for somebody new to them.

    scripts/passages.py SEED [--number 10] [--in-place]

A passage is a module's docstring, the docstring of a class or function, a comment of at least two
lines, or a paragraph of README.md, CONTRIBUTING.md and docs/.  Each of these four kinds is equally
likely, and so is each passage of a kind.  The question for a reader who knows TCP but not this
project: is each passage understood at the first reading?

With ``--in-place`` each passage is followed by the text in which a reader would meet it: the code
of the function, the lines around the comment, or the section of the page.
"""

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Passage = tuple[str, str, str]  # where it is, what it says, and the text around it
AROUND = 25  # lines of code shown on either side of a comment
LONGEST = 120  # lines of code or text shown around a passage


def docstrings(kinds: tuple[type, ...]) -> Iterator[Passage]:
    """The docstrings of all nodes of these ``kinds`` in the package, private ones included."""
    for path in sorted((ROOT / "vegasmodel").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, kinds):
                passage = ast.get_docstring(node)
                if passage and isinstance(node, ast.Module):
                    yield f"{path.relative_to(ROOT)}: module", passage, text
                elif passage:  # whole lines: a comment may follow the code of the last one
                    around = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                    yield f"{path.relative_to(ROOT)}: {node.name}", passage, around


def comments() -> Iterator[Passage]:
    """The package's comments of at least two lines."""
    for path in sorted((ROOT / "vegasmodel").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"(?:^ *# .*\n){2,}", text, re.MULTILINE):
            line = text.count("\n", 0, found.start()) + 1
            last = line + found[0].count("\n")
            around = "\n".join(text.splitlines()[max(line - AROUND, 0) : last + AROUND])
            passage = re.sub(r"^ *# ?", "", found[0], flags=re.M)
            yield f"{path.relative_to(ROOT)}:{line}", passage, around


def paragraphs() -> Iterator[Passage]:
    """The paragraphs of prose on the pages, without tables, headings, formulas and code."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        whole = page.read_text(encoding="utf-8")
        sections = re.split(r"^(?=#+ )", whole, flags=re.MULTILINE)
        text = re.sub(r"```.*?```", "", whole, flags=re.DOTALL)
        text = re.sub(r"^#+ .*\n", "\n", text, flags=re.MULTILINE)
        for part in re.split(r"\n\s*\n", text):
            if len(part) > 120 and not part.lstrip().startswith(("|", "!", "<", "$")):
                around = next((one for one in sections if part.strip() in one), "")
                yield str(page.relative_to(ROOT)), part.strip(), around


def main() -> None:
    """Print the passages that a seed draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--number", type=int, default=10)
    parser.add_argument("--in-place", action="store_true", help="show the text around each passage")
    arguments = parser.parse_args()
    routines = (ast.FunctionDef, ast.ClassDef)
    kinds = [list(docstrings((ast.Module,))), list(docstrings(routines))]
    kinds += [list(comments()), list(paragraphs())]
    draw = random.Random(arguments.seed)  # noqa: S311 - no secrets
    for i in range(arguments.number):
        where, what, around = draw.choice(draw.choice(kinds))
        print(f"{i + 1}. {where}\n\n{what}\n")
        if arguments.in_place:
            shown = "\n".join(around.splitlines()[:LONGEST])
            print(f"---- in its place ----\n{shown}\n----------------------\n")


if __name__ == "__main__":
    main()
