"""Lets the functions of a user's law read and store the numbers that the law keeps.

A law may keep numbers of its own (``Law.state``), such as the largest RTT since the last loss. Each
sender's record has room for them (its field ``kept``). Compiled code passes the address of this
field to the C functions of the law (``outside.py``). The functions here are compiled into these C
functions. No other code has to know how many numbers a law keeps.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vegasmodel.laws.source import MOST_NUMBERS, Source, with_numbers
from vegasmodel.metrics import Floats

__all__ = ["KEPT", "Kept", "as_floats", "kept_at", "source_type", "store", "whole_source"]

Kept = Floats  # [MOST_NUMBERS]
KEPT = {"Kept": ("f8", (MOST_NUMBERS,))}
"""The NumPy type of the annotation ``Kept`` of a sender's record, for ``tables.layout``."""


# Numba's ``intrinsic`` defines a function of compiled code by LLVM instructions. It takes a Python
# function that returns two things: the types of the result and of the arguments, and a second
# Python function (``code`` below), which writes the instructions.
def _typed_place(_: Any, record: Any) -> Any:
    """The types of ``kept_at``, and the function that writes its instructions.

    ``record`` is Numba's type of a sender's record.
    """
    offset = record.offset("kept")  # bytes from the record's beginning to its field ``kept``

    def code(_: Any, builder: Any, __: Any, args: Any) -> Any:
        """Write the instructions that add ``offset`` to the address of the record."""
        word = ir.IntType(64)
        return builder.add(builder.ptrtoint(args[0], word), word(offset))

    return types.int64(record), code


kept_at = intrinsic(_typed_place)  # (a sender's record) -> address of its field ``kept``


def _pointers(builder: Any, address: Any, n: int) -> list[Any]:
    """LLVM's pointers to ``n`` floats that follow one another from ``address`` on."""
    begin = builder.inttoptr(address, ir.DoubleType().as_pointer())
    return [builder.gep(begin, [ir.IntType(64)(k)]) for k in range(n)]


def source_type(names: tuple[str, ...]) -> Any:
    """Numba's type of the ``Source`` of a law that keeps the numbers ``names``."""
    return types.NamedUniTuple(types.float64, len(Source._fields) + len(names), with_numbers(names))


def whole_source(names: tuple[str, ...]) -> Any:
    """A compiled function that adds to a ``Source`` the numbers ``names`` that its law keeps.

    It takes the ``Source`` and the address of the numbers.
    """
    kind = source_type(names)

    def code(context: Any, builder: Any, _: Any, args: Any) -> Any:
        """Write the instructions that make the new tuple from the two arguments."""
        plain = [builder.extract_value(args[0], i) for i in range(len(Source._fields))]
        kept = [builder.load(pointer) for pointer in _pointers(builder, args[1], len(names))]
        return context.make_tuple(builder, kind, [*plain, *kept])

    def typed(_: Any, source: Any, address: Any) -> Any:
        """The types of the compiled function, and the function that writes its instructions."""
        return kind(source, address), code

    return intrinsic(typed)


def _typed_floats(_: Any, returned: Any) -> Any:
    """The types and the instructions of ``as_floats``.

    A user's function may return a number or a tuple of numbers, and some may be integers. The C
    function that calls it needs a tuple of floats. ``returned`` is the type of what it returns.
    """
    is_tuple = isinstance(returned, types.BaseTuple)
    kinds = tuple(returned.types) if is_tuple else (returned,)  # the type of each number
    result = types.UniTuple(types.float64, len(kinds))

    def code(context: Any, builder: Any, _: Any, args: Any) -> Any:
        """Write the instructions that convert each number to a float."""
        numbers = args
        if is_tuple:  # the only argument is the tuple
            numbers = [builder.extract_value(args[0], i) for i in range(len(kinds))]
        floats = [
            context.cast(builder, number, kind, types.float64)
            for number, kind in zip(numbers, kinds, strict=True)
        ]
        return context.make_tuple(builder, result, floats)

    return result(returned), code


as_floats = intrinsic(_typed_floats)  # a number or a tuple of numbers -> a tuple of floats


def _typed_store(_: Any, numbers: Any, address: Any) -> Any:
    """The types and the instructions of ``store``."""

    def code(_: Any, builder: Any, __: Any, args: Any) -> Any:
        """Write the instructions that store each float at its address."""
        for k, pointer in enumerate(_pointers(builder, args[1], numbers.count)):
            builder.store(builder.extract_value(args[0], k), pointer)

    return types.void(numbers, address), code


store = intrinsic(_typed_store)  # (tuple of floats, address): store them from this address on
