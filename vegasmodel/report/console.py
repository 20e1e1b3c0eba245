"""Prints texts, JSON documents, and tables that fit the width of the terminal."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from vegasmodel.fields.errors import FieldError, printable
from vegasmodel.fields.units import format_number
from vegasmodel.support.files import expect_writable, is_special

SCHEMA = 1  # version of the format of the JSON documents
# Least width of the output, in characters. In less, the library ``rich`` would leave out whole
# columns of a table, and the column of names first.
NARROWEST = 40
PLUS_MINUS = (
    "±: the standard error of the mean over the runs; if they are few, it may be too small by "
    "chance."
)


def console() -> Console:
    """A console of the Python library ``rich`` that prints on standard output.

    It is 80 columns wide if standard output is not a terminal, and never less than ``NARROWEST``.
    """
    made = _Output(highlight=False, markup=False, emoji=False, soft_wrap=False)
    made.width = max(made.width, NARROWEST)
    return made


class _Output(Console):
    """A console of the library ``rich``; raises ``BrokenPipeError`` if its output is not read.

    This happens, for example, if the output is piped into ``head``, which ends after ten lines.
    ``support.exits`` turns the error into an exit status.
    """

    def on_broken_pipe(self) -> None:
        """Raise the error; by default ``rich`` would end the process."""
        raise BrokenPipeError(errno.EPIPE, "broken pipe")


def plain(text: str) -> Text:
    """Text that the console prints literally.

    It may contain names that users chose. So nothing in it counts as markup, and control characters
    are replaced by visible escapes.
    """
    return Text("\n".join(printable(line) for line in text.split("\n")))


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output.

    The entry ``schema`` with the version of the format is added.
    """
    sys.stdout.write(json.dumps({"schema": SCHEMA, **document}, allow_nan=False, indent=1) + "\n")


def number(value: float | None, digits: int = 4) -> str:
    """A number as text for a table; a dash if it is unknown or not finite."""
    if value is None or not math.isfinite(value):
        return "-"
    return format_number(value, digits)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Table:
    """A table for the terminal: the first column is aligned left, the others are aligned right.

    ``columns`` are the heads of the columns. The text of a cell is printed literally: nothing in it
    counts as markup.
    """
    grid = Table(
        title=plain(title) if title else None, title_justify="left", box=None, padding=(0, 1)
    )
    for i, name in enumerate(columns):
        left = i == 0
        grid.add_column(
            plain(name),
            justify="left" if left else "right",
            overflow="fold" if left else "ellipsis",
            no_wrap=not left,
        )
    for row in rows:
        grid.add_row(*(plain(cell) for cell in row))
    return grid


def width(grid: Table) -> int:
    """The least width of the table, in characters, at which no cell is cut or wrapped."""
    return sum(
        column_width([str(c.header), *(str(cell) for cell in c.cells)]) for c in grid.columns
    )


def stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Group:
    """A table; if it does not fit the terminal, its columns are divided over several tables.

    These stand one below another. Each of them begins with the first column.
    """
    first, *others = zip(columns, *rows, strict=True)
    room = console().width - column_width(first)
    parts: list[list[Sequence[str]]] = [[]]
    for column in others:
        if parts[-1] and sum(map(column_width, [*parts[-1], column])) > room:
            parts.append([])
        parts[-1].append(column)
    shown: list[Table | Text] = []
    for part in parts:
        heads, *cells = zip(first, *part, strict=True)
        shown += [Text(), table(heads, cells)] if shown else [table(heads, cells, title)]
    return Group(*shown)


def fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], keep: int, title: str = ""
) -> tuple[Table, int]:
    """A table that fits the terminal, and the number of columns that are left out of it.

    The last columns are left out, but never the first ``keep`` ones.
    """
    shown = len(columns)
    while True:
        grid = table(columns[:shown], [row[:shown] for row in rows], title)
        if shown <= keep or width(grid) <= console().width:
            return grid, len(columns) - shown
        shown -= 1


def column_width(column: Sequence[str]) -> int:
    """The width of a table's column in characters, with the space on both sides of the text."""
    return 2 + max(len(line) for cell in column for line in cell.split("\n"))


def paragraphs(lines: Sequence[str], *, first: bool = False) -> None:
    """Print an empty line, and then each text as a paragraph by the function ``wrapped``.

    With ``first`` the empty line is left out, because nothing is printed above.
    """
    if lines and not first:
        console().print()
    for line in lines:
        wrapped(line)


def wrapped(line: str, indent: int = 2) -> None:
    """Print a text, with an indent of ``indent`` characters from the second line on.

    It is wrapped at the terminal's width, or at 100 characters if the terminal is wider.  A name
    with hyphens stays on one line.
    """
    out = console()
    text = textwrap.fill(
        line, width=min(out.width, 100), subsequent_indent=indent * " ", break_on_hyphens=False
    )
    out.print(plain(text))


def written(*paths: Path | None) -> None:
    """Print a line for each file that a command has written; ``None`` stands for no file.

    The lines are not wrapped, so that a path can be copied.
    """
    lines = [f"{path} is written." for path in paths if path is not None]
    if lines:
        console().print(plain("\n".join(["", *lines])), soft_wrap=True)


def output_path(path: Path, field: str, suffixes: Sequence[str]) -> Path:
    """Check, before a long computation, that its result can be written to ``path``.

    Returns ``path``. Raises ``FieldError`` unless it ends in one of ``suffixes``, its folder exists
    and it is not itself a folder, a device, a pipe or a socket. The error names the option
    ``field``. Raises ``OSError`` if the file cannot be written, for example ``PermissionError`` if
    the user may not write in its folder.
    """
    allowed = f"a path ending in {' or '.join(suffixes)} in a folder that exists"
    try:
        good = path.suffix.lower() in suffixes and path.parent.is_dir() and not path.is_dir()
        special = is_special(path)
    except (OSError, ValueError):
        good = special = False
    if special:
        text = "a plain file or a new name; a device, pipe or socket is not replaced"
        raise FieldError(field, str(path), text)
    if not good:
        raise FieldError(field, str(path), allowed)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "its folder cannot be written", str(path))
    expect_writable(path)
    return path


def left_out(number: int, where: str, what: str = "flow") -> list[str]:
    """The line below a table that says how many flows or groups (``what``) are not in it.

    ``number`` is how many are left out.  ``where`` is the end of the line, and says where the user
    finds the others.  If ``number`` is 0, the list is empty.
    """
    are = f"{what} is" if number == 1 else f"{what}s are"
    return [f"{number} more {are} not in the table; {where}."] if number else []
