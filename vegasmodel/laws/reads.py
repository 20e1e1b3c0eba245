"""Finds what the functions of a law read from outside: variables, constants and other functions.

A user's law of congestion control consists of Python functions. They may call other functions, and
read global variables, variables of an enclosing function, and variables of modules, such as
``settings.GAIN``. If one of these changes, the law changes, although the code of its functions is
the same. Then the functions must be compiled again, and a stored sweep cannot be continued.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import itertools
import random
from collections.abc import Hashable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from vegasmodel.laws.law import FUNCTIONS, Law

_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")  # instructions of Python that read an attribute


def read_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the variables that a function reads from outside.

    The defaults of its arguments count, too.
    """
    code, known = function.__code__, function.__globals__
    # variables of enclosing functions, by name; all others are global
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name, *attributes in _read_from_outside(code):
        value = _content(cells[name]) if name in cells else known.get(name)
        yield name, value
        for each in attributes:
            if isinstance(value, ModuleType):
                value = getattr(value, each, None)
                yield each, value
    yield "defaults", function.__defaults__
    yield "defaults by name", tuple((function.__kwdefaults__ or {}).items())


def state(function: Any) -> tuple[Hashable, ...]:
    """The values that a law's function reads from outside, such as global variables.

    The values that are read by the Python functions that it calls are included. The result of a
    later call is equal if no value has changed in between. Arrays are compared by their numbers.
    Other objects that cannot be hashed are compared by their identity only.
    """
    return tuple(_hashed(value) for value in _all_read_by(function, set()))


def draws(law: Law) -> bool:
    """Whether a congestion control draws random numbers by ``random`` or ``np.random``."""
    read = (_all_read_by(getattr(law, name), set()) for name in FUNCTIONS)
    sources = random.Random, np.random.RandomState
    return any(
        isinstance(getattr(value, "__self__", None), sources)
        for value in itertools.chain.from_iterable(read)
    )


def _all_read_by(function: Any, seen: set[FunctionType]) -> Iterator[Any]:
    """Yield the values that a function reads, and those that the functions it calls read.

    ``seen`` has the functions that were searched before. They are not searched again.
    """
    function = getattr(function, "py_func", function)  # the Python function that Numba compiled
    if isinstance(function, FunctionType) and function not in seen:
        seen.add(function)
        for _, value in read_by(function):
            yield value
            yield from _all_read_by(value, seen)


def _hashed(value: Any) -> Hashable:
    """What stands for a value in ``state``: it can be hashed, and is equal for equal values."""
    if isinstance(value, np.ndarray):
        numbers = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
        return value.dtype.str, value.shape, numbers
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value  # 1 and 1.0 are equal, but may be compiled to different code


@functools.cache
def _read_from_outside(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """The outside variables that the code reads, such as ``("np", "random", "normal")``.

    Each result is a variable's name, followed by the names of the attributes that the code reads.
    Functions inside the code count, too.
    """
    found = dict[tuple[str, ...], None]()  # only its keys matter: a set that keeps the order
    steps = list(dis.get_instructions(code))
    for i, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            attributes = itertools.takewhile(lambda x: x.opname in _ATTRIBUTE, steps[i + 1 :])
            found[(step.argval, *(each.argval for each in attributes))] = None
    inside = (_read_from_outside(each) for each in code.co_consts if isinstance(each, CodeType))
    return tuple(found | dict.fromkeys(itertools.chain(*inside)))


def _content(cell: CellType) -> Any:
    """The value of a variable of an enclosing function, which Python keeps in a cell."""
    try:
        return cell.cell_contents
    except ValueError:  # the enclosing function has not assigned the variable
        return None
