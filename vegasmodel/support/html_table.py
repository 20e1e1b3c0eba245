"""Makes small HTML tables for notebooks.

Every cell is escaped, because it may hold a name that a user chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["html_table"]

MAX_ROWS = 30  # rows that a notebook's output shows


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The HTML text of a table with the caption ``title``.

    The first column is aligned left, the others right.  At most 30 rows are shown; a line below the
    table says how many more there are.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if i else "left"}">{escape(cell)}</td>'
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows[:MAX_ROWS]
    )
    more = f"<p>... {len(rows) - MAX_ROWS} more</p>" if len(rows) > MAX_ROWS else ""
    caption = f'<caption style="text-align:left">{escape(title)}</caption>'
    return f"<table>{caption}<tr>{head}</tr>{body}</table>{more}"
