"""Arrays of records as compiled code reads and writes them, with fields that a type checker sees.

A record is a class of annotated fields; ``layout`` makes the columns of a NumPy array from it, and
``Table`` is that array's type: ``table[i].field`` in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from vegasmodel.support.machine_code import compiled

_Function = TypeVar("_Function", bound=Callable[..., Any])
Row = TypeVar("Row", covariant=True)
_COLUMNS: dict[str, tuple[Any, ...]] = {"bool": ("b1",), "int": ("i8",), "float": ("f8",)}


def making(function: _Function) -> _Function:
    """Compile when first called, and keep the machine code on disk; threads run side by side.

    1/0 is inf as in NumPy.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    return cast("_Function", compiled(function, whole_program=True, **options))


def jit(function: _Function) -> _Function:
    """The same for what makes no arrays: references to those of the caller are not counted."""
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    return cast("_Function", compiled(function, whole_program=True, **options))


class Table(Protocol[Row]):
    """An array of records, as compiled code sees it: a row by its place, a column by its name."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows."""

    @overload
    def __getitem__(self, place: int, /) -> Row: ...
    @overload
    def __getitem__(self, places: slice, /) -> Table[Row]: ...
    @overload
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...


def layout(record: type, more: Mapping[str, tuple[Any, ...]] | None = None) -> np.dtype[np.void]:
    """The array's columns: the annotations of a record, its base's first.

    ``more``: what NumPy calls other annotations than ``bool``, ``int`` and ``float``.
    """
    columns, kinds = _COLUMNS | dict(more or {}), dict[str, str]()
    for part in reversed(record.__mro__):
        kinds |= vars(part).get("__annotations__", {})
    return np.dtype([(name, *columns[kind]) for name, kind in kinds.items()], align=True)


def array(table: Table[Any]) -> NDArray[Any]:
    """The same as NumPy sees it."""
    return cast("NDArray[Any]", table)
