"""Computes a digest of a congestion control law: a hash by which a changed law is recognised.

An interrupted sweep can be continued later, but only with the same laws (``study/sweep.py``). So
the sweep stores the digests of its laws. A law that a user writes consists of Python functions. Its
digest depends on their code, on the functions that they call, and on the variables that they read.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from vegasmodel.laws.law import Law
from vegasmodel.laws.reads import read_by

# types of values that their ``repr`` describes completely
_PLAIN = (str, bytes, int, float, complex, np.generic, enum.Enum, type(None))


def of_law(law: Law) -> str:
    """The digest of a law: a hash of its functions and of its other properties."""
    return of(*(getattr(law, field.name) for field in dataclasses.fields(law)))


def of(*values: Any) -> str:
    """The digest of some values, such as functions: a hash of 16 hexadecimal digits.

    Equal values have the same digest in every process.  A function's digest depends on its code, on
    the Python functions that it calls, and on the values that it reads from global variables, from
    an enclosing function and from modules, such as ``settings.GAIN``.  The digest does not depend
    on comments, on names of local variables, or on the place of the code in a file.  But with
    another version of Python the digest may differ, because that compiles the code differently.
    """
    return hashlib.sha256(_described(values, []).encode()).hexdigest()[:16]


def _described(value: Any, seen: list[FunctionType]) -> str:
    """A text that describes a value, for ``of`` to hash.

    Equal values have the same text in every process; different values have different texts.
    ``seen`` has the functions that the text contains so far. Each is described once only.
    """
    value = getattr(value, "py_func", value)  # the Python function of one that Numba has compiled
    if isinstance(value, FunctionType):
        if value in seen:
            return f"function {seen.index(value)}"
        seen.append(value)
        outside = [(name, _described(found, seen)) for name, found in read_by(value)]
        return f"function {_code(value.__code__, value.__doc__, seen)} reads {outside}"
    if isinstance(value, CodeType):  # of a function inside a function
        return _code(value, None, seen)
    if isinstance(value, tuple | list | frozenset):
        parts = [_described(each, seen) for each in value]
        return f"{type(value).__name__} {sorted(parts) if isinstance(value, frozenset) else parts}"
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype} {value.shape} {content}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    # a module, a class or a function in C; the caller describes what it uses of a module
    return f"{type(value).__name__} {getattr(value, '__name__', '')}"


def _code(code: CodeType, doc: str | None, seen: list[FunctionType]) -> str:
    """A text that describes a function's code without its docstring ``doc``, for ``of`` to hash."""
    constants = code.co_consts[1:] if doc and code.co_consts[0] == doc else code.co_consts
    parts = (code.co_code, code.co_exceptiontable, code.co_names, code.co_freevars, constants)
    return _described(parts, seen)
