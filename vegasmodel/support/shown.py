"""Shows results as a table: as text, and as HTML in a notebook."""

from __future__ import annotations

from typing import NamedTuple

from vegasmodel.support.html_table import html_table
from vegasmodel.support.text_table import Text, text_table

__all__ = ["Shown", "Table"]


class Table(NamedTuple):
    """The title of a table, the names of its columns, and its rows; every cell is a text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


class Shown:
    """A result that has a table, as text (``table``) and as HTML in a notebook.

    The docstring of the result's own class says what a row of the table stands for.
    """

    __slots__ = ()

    def table(self) -> Text:
        """The table as text, below a line that says what it shows."""
        return text_table(*self._shown)

    def _repr_html_(self) -> str:
        """The table as HTML, which a notebook asks for."""
        return html_table(*self._shown)

    @property
    def _shown(self) -> Table:
        """The table, which the result's own class makes."""
        raise NotImplementedError
