"""Compiles the functions of a simulator, and makes arrays of records for these functions.

The decorators ``jit`` and ``making`` compile a function with Numba. ``making`` is for functions
that create arrays, ``jit`` for all others.

An array may hold, for example, one record for each sender. A class with annotated fields describes
the record. ``layout`` turns this class into the data type of a NumPy array. Compiled code reads a
field of record i as ``table[i].field``. For a type checker the array has the type ``Table``, so
the checker knows the fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from vegasmodel.support.linked_code import Marks
from vegasmodel.support.machine_code import compiled

_Function = TypeVar("_Function", bound=Callable[..., Any])
Row = TypeVar("Row", covariant=True)
# the annotation of a field -> its NumPy type
_COLUMNS: dict[str, tuple[Any, ...]] = {"bool": ("b1",), "int": ("i8",), "float": ("f8",)}


def making(function: _Function) -> _Function:
    """Compile a function that may create arrays, and keep its machine code on disk.

    It is compiled on its first call. Other Python threads can run while it runs. In the compiled
    function 1/0 is inf, as in NumPy.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "marks": Marks(quick=True)}
    return cast("_Function", compiled(function, whole_program=True, **options))


def jit(
    function: _Function,
    *,
    negative_indices: bool = True,
    forceinline: bool = False,
    rare: bool = False,
    apart: bool = False,
    quick: bool = True,
    distinct: bool = False,
) -> _Function:
    """Compile a function that creates no arrays; ``making`` is for functions that create some.

    The machine code is faster than that of ``making``, because it counts no references to objects.
    The options are:

    - ``negative_indices``: if False, the code is faster, but no index may be negative, and neither
      an end nor the step of a slice.
    - ``forceinline``: the function is copied into each function that calls it, whatever its size.
    - ``rare``: nothing is inlined, neither the function in its callers nor the functions that it
      calls. So it takes less time to compile.
    - ``apart``: the function is not inlined in its callers; functions that it calls may be.
    - ``quick``: LLVM optimises less, so it takes less time to compile. This makes only the code of
      ``engines/rounds`` slower.
    - ``distinct``: the code is faster, but arrays that Python passes may not share memory.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    options |= {"negative_indices": negative_indices, "forceinline": forceinline}
    marks = Marks(rare, apart, quick, distinct)
    return cast("_Function", compiled(function, whole_program=True, marks=marks, **options))


rare = functools.partial(jit, rare=True)  # for a function that its callers seldom call


def direct(function: _Function) -> _Function:
    """The machine code of a function that has been compiled for arguments of one set of types.

    Before a compiled function runs, Numba usually looks at the types of all arguments. For a short
    function this takes longer than the function itself. A call of the result does not look at the
    types. So its arguments must have the types for which the function was compiled. ``function`` is
    returned unchanged if it has not been compiled, if it has been compiled for several sets of
    types, or if it is machine code already.
    """
    made = list(getattr(function, "overloads", {}).values())
    return cast("_Function", made[0].entry_point) if len(made) == 1 else function


class Table(Protocol[Row]):
    """The type of an array of records in compiled code.

    An index gives a record, and a field's name gives that field of all records.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of records; its first entry is the number of records."""

    def __len__(self) -> int:
        """The number of records; ``len`` takes less time to compile than ``shape``."""

    @overload
    def __getitem__(self, place: int, /) -> Row: ...
    @overload
    def __getitem__(self, places: slice, /) -> Table[Row]: ...
    @overload
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...
    def __setitem__(self, place: int, row: Any, /) -> None: ...


def layout(record: type, more: Mapping[str, tuple[Any, ...]] | None = None) -> np.dtype[np.void]:
    """The NumPy data type of an array of records, made from the fields of the class ``record``.

    The fields of its base class come first. ``more`` gives the NumPy types of annotations other
    than ``bool``, ``int`` and ``float``.
    """
    columns, kinds = _COLUMNS | dict(more or {}), dict[str, str]()
    for part in reversed(record.__mro__):
        kinds |= vars(part).get("__annotations__", {})
    return np.dtype([(name, *columns[kind]) for name, kind in kinds.items()], align=True)


def array(table: Table[Any]) -> NDArray[Any]:
    """The records of a table as a NumPy array for plain Python code; nothing is copied."""
    return cast("NDArray[Any]", table)
