"""Small tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from vegasmodel.fields.units import printable

__all__ = ["text_table"]


def text_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The text of a table below the line ``title``.

    Columns of numbers are aligned right.  Control characters are escaped, because a cell may hold a
    name that a user chose.
    """
    filled = []
    for column in zip(columns, *rows, strict=True):
        cells = [printable(cell) for cell in column]
        numbers = all(cell[:1] in "-0123456789" for cell in cells[1:])
        width = max(map(len, cells))
        filled.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in cells])
    lines = ["  ".join(row).rstrip() for row in zip(*filled, strict=True)]
    return "\n".join([printable(title), *lines])
