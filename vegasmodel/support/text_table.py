"""Makes small tables as plain text.

Python's prompt and notebooks show such a table line by line, as ``print`` would.
"""

from __future__ import annotations

from collections.abc import Sequence

from vegasmodel.fields.errors import printable

__all__ = ["Text", "text_table"]


class Text(str):
    """A string that Python's prompt and notebooks show line by line, as ``print`` would."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def text_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Text:
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
    return Text("\n".join([printable(title), *lines]))
