"""The parts of a finding's page, and how its text is laid out.

A finding is a conclusion of a paper that we tested.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

__all__ = ["Page", "prose", "table"]

WIDTH = 100  # characters in a line of Markdown
LONGEST_NUMBER = 20  # characters: a table cell with more of them holds a sentence, not a number


@dataclass(frozen=True)
class Page:
    """A finding: its text in Markdown, without the title and the picture, and the picture."""

    title: str
    text: str
    figure: Figure
    caption: str


def prose(text: str) -> str:
    """The text with new line ends in its paragraphs, because numbers were put into them.

    Tables stay as they are.  An item of a list is a paragraph that begins with a dash.  No line
    ends within a word: if it ended at a word's hyphen, a browser would show a space after the
    hyphen.
    """

    def wrapped(part: str) -> str:
        """A paragraph with new line ends; further lines of a list's item are indented."""
        indent = "  " if part.startswith("- ") else ""
        return textwrap.fill(part, WIDTH, subsequent_indent=indent, break_on_hyphens=False)

    parts = text.split("\n\n")
    return "\n\n".join(part if part.startswith("|") else wrapped(part) for part in parts)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown.

    Columns of numbers are right-aligned, columns of sentences left-aligned.
    """
    sides = [
        "---" if max(map(len, map(str, column))) > LONGEST_NUMBER else "---:"
        for column in zip(*rows, strict=True)
    ]
    lines = [head, sides, *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
