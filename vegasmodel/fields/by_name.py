"""Defines ``ByName``, a dictionary of results; the error for a wrong name lists the right names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.fields.rules import nearest

__all__ = ["ByName", "UnknownNameError"]

T = TypeVar("T")
MOST_NAMES = 10  # names that the error lists


class UnknownNameError(FieldError, KeyError):
    """Raised for a name that is not in a ``ByName``, a dictionary of results.

    The message lists up to ten of the dictionary's names, and gives the most similar one.
    """

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = list(known)
        allowed = f"the names are {few(names, MOST_NAMES)}" if names else "there are no results"
        super().__init__("name", name, f"{allowed}{nearest(name, names)}", wrong="is unknown")

    def __str__(self) -> str:  # that of KeyError would put the message in quotes
        return str(self.args[0])


class ByName(dict[str, T]):
    """A dictionary of results by the names of groups, of pairs of groups, or of models.

    It differs from a plain dictionary in one way: for a name that is not in it, ``[...]`` raises
    ``UnknownNameError``, a ``KeyError`` whose message lists the names.
    """

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownNameError(name, self)
