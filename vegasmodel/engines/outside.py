"""Compiles the functions of a user's own congestion control law, for use in the simulators.

A simulator is compiled once, for all laws, so it does not contain the functions of a user's law.
This module compiles each of these functions separately, as a C function, together with the Python
functions that it calls. The user's function takes a ``laws.source.Source``, which describes the
sender. The C function takes the fields of ``Source`` as floats.

A law may keep numbers of its own (``Law.state``). They are in the field ``kept`` of the sender's
record, and the last argument of the C function is the address of this field. The C function of a
law with such numbers reads them from there, and that of ``update`` or ``remember`` writes new ones.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vegasmodel.engines.kept_numbers import as_floats, source_type, store, whole_source
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import reads
from vegasmodel.laws.faults import LawFault, Record
from vegasmodel.laws.law import FUNCTIONS, Law, ask, least_answer, must_return, place
from vegasmodel.laws.source import LARGEST_ANSWER, Source, with_numbers
from vegasmodel.support.machine_code import a_law
from vegasmodel.support.numba_shortcuts import without_garbage_collection, without_lock_events


# Numba's ``intrinsic`` defines a function of compiled code by LLVM instructions. It takes a Python
# function that returns two things: the types of the result and of the arguments, and a second
# Python function, which writes the instructions.
def _code(_: Any, builder: Any, __: Any, args: Any) -> Any:
    """Write the instructions of ``call``: call the C function at an address with a ``Source``."""
    double = ir.DoubleType()
    kind = ir.FunctionType(double, [*[double] * len(Source._fields), ir.IntType(64)])
    function = builder.inttoptr(args[0], kind.as_pointer())
    values = [builder.extract_value(args[1], i) for i in range(len(Source._fields))]
    return builder.call(function, [*values, args[2]])


def _typed(_: Any, __: Any, source: Any, ___: Any) -> Any:
    """The types of ``call``, and the Python function that writes its instructions."""
    return types.float64(types.int64, source, types.int64), _code


# in compiled code: (address of a rule, Source, address of the numbers that its law keeps) -> float
call = intrinsic(_typed)
# the types of the C function of a rule
_PLAIN = types.float64(*[types.float64] * len(Source._fields), types.int64)


def _as_pointer(_: Any, builder: Any, __: Any, args: Any) -> Any:
    """Write the instruction of ``_pointer``: it makes a pointer to a float from an address."""
    return builder.inttoptr(args[0], ir.DoubleType().as_pointer())


_pointer = intrinsic(lambda _, __: (types.CPointer(types.float64)(types.int64), _as_pointer))
_thread = ctypes.pythonapi.PyThread_get_thread_ident  # ``threading.get_ident`` for compiled code
_thread.restype, _thread.argtypes = ctypes.c_ulong, ()


class _Compiled(NamedTuple):
    """A compiled function of a user's law, and the record of its unusable results.

    A result is unusable if it is NaN, too large or too small. An error in the function counts as
    NaN.
    """

    function: Any  # a C function made by Numba
    record: Record  # the arguments for which it returned an unusable result


def _jitted(function: Any, made: dict[FunctionType, Any]) -> Any:
    """Compile a function of a user's law with Numba, and also the Python functions that it calls.

    A copy of the function is compiled, so that the user's own function stays as it is. In the copy,
    the functions that it calls are replaced by their compiled forms. They are global variables of
    its module, or variables of a function around it (``cells``). ``made`` has the compiled forms of
    all functions compiled so far.
    """
    if not isinstance(function, FunctionType):
        return numba.njit(error_model="numpy")(function)
    if function not in made:
        variables = dict(function.__globals__)
        cells = tuple(CellType(cell.cell_contents) for cell in function.__closure__ or ())
        copy = FunctionType(
            function.__code__, variables, function.__name__, function.__defaults__, cells
        )
        made[function] = numba.njit(error_model="numpy")(copy)
        for name in function.__code__.co_names:
            if isinstance(variables.get(name), FunctionType):
                variables[name] = _jitted(variables[name], made)
        for cell in cells:
            if isinstance(cell.cell_contents, FunctionType):
                cell.cell_contents = _jitted(cell.cell_contents, made)
    return made[function]


def _compiled(law: Law, name: str) -> _Compiled:
    """The compiled form of the rule ``name`` of a user's law.

    The rule is compiled anew if something that it reads from outside, such as a global variable,
    has changed (``reads.state``).
    """
    with a_law:  # two threads would compile it twice, and one would read the other's record
        rule, stores = getattr(law, name), law.returns_state(name)
        return _compiled_with(rule, least_answer(name), law.names, stores, reads.state(rule))


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]  # Numba
def _record_fault(where: int, shape: tuple[int, int], source: Source) -> None:
    """Write the arguments for which a rule returned an unusable result into the rule's record.

    The record is a table of the given ``shape`` at the address ``where``, with a row for each
    thread. A row has the thread's number, and then the arguments of the first such call in a run,
    or NaN if there was none. Numba compiles this function once for all laws that keep numbers of
    the same names, and once for those that keep none.
    """
    for row in numba.carray(_pointer(where), shape):
        if row[0] == _thread():
            if math.isnan(row[1]):
                for i, field in enumerate(source):
                    row[1 + i] = field
            break


@functools.cache
def _compiled_with(
    rule: Any, least: float, names: tuple[str, ...], stores: bool, _: tuple[Any, ...]
) -> _Compiled:
    """Compile a rule, that is a function of a user's law, as a C function with a record of faults.

    The last argument, which is not used, holds what the rule reads from outside, such as a global
    variable. If that has changed, the cache of this function has no entry for it, so the rule is
    compiled again. A result below ``least`` is unusable. ``names`` are the numbers that the law
    keeps. ``stores`` says whether the rule returns them.
    """
    inner, record_fault = _jitted(rule, {}), _record_fault
    record = Record(len(Source._fields) + len(names))
    # compiled code finds the record by its address
    where, shape = np.int64(record.table.ctypes.data), record.table.shape
    if names:
        with_state = _with_state(inner, least, names, stores, where, shape)
        return _Compiled(_as_c_function(with_state, inner, names, stores), record)

    def plain(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta, trips, _):  # type: ignore[no-untyped-def]  # ``_PLAIN``
        """Call the rule with these numbers as a ``Source``; 0 if its result is unusable."""
        source = Source(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta, trips)
        value = math.nan
        try:  # noqa: SIM105 - Numba has no context managers
            value = inner(source)
        except Exception:  # noqa: S110 - C has no exceptions; ``raise_faults`` raises one later
            pass
        if least <= value <= LARGEST_ANSWER:
            return value
        record_fault(where, shape, source)
        return 0.0

    return _Compiled(_as_c_function(plain, inner, names, stores), record)


def _with_state(
    inner: Any, least: float, names: tuple[str, ...], stores: bool, where: Any, shape: Any
) -> Any:
    """As ``plain`` in ``_compiled_with``, for a law that keeps the numbers ``names``.

    ``inner`` is the compiled rule, and ``where`` and ``shape`` are arguments of ``_record_fault``.
    If the rule returns the new numbers (``stores``), the function stores them and returns the
    window.
    """
    record_fault, whole = _record_fault, whole_source(names)
    count = len(names) if stores else 1
    unknown = (math.nan,) * count

    def plain(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta, trips, kept):  # type: ignore[no-untyped-def]  # ``_PLAIN``
        """Call the rule; ``kept`` is the address of the numbers that the law keeps."""
        source = Source(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta, trips)
        seen, found = whole(source, kept), unknown
        try:  # noqa: SIM105 - Numba has no context managers
            found = as_floats(inner(seen))
        except Exception:  # noqa: S110 - C has no exceptions; ``raise_faults`` raises one later
            pass
        for value in found:
            if not least <= value <= LARGEST_ANSWER:
                record_fault(where, shape, seen)
                return 0.0
        if stores:
            store(found, kept)
            return window
        return found[0]

    return plain


def _as_c_function(plain: Any, inner: Any, names: tuple[str, ...], stores: bool) -> Any:
    """Compile ``plain``, which calls the compiled rule ``inner``, as a C function.

    Raises ``TypeError`` if the rule returns anything but a number, or but all numbers of ``names``
    if it ``stores`` them.
    """
    with without_garbage_collection(), without_lock_events():
        inner.get_call_template((source_type(names),), {})  # compiles it; fills in defaults
        _check(inner, names if stores else ())
        return numba.cfunc(_PLAIN, error_model="numpy")(plain)


def _check(inner: Any, names: tuple[str, ...]) -> None:
    """Raise ``TypeError`` unless a compiled rule returns a number, or all ``names`` in a tuple."""
    for signature in inner.nopython_signatures:
        kind = signature.return_type
        several = names and isinstance(kind, types.BaseTuple)
        kinds = tuple(kind.types) if several else (kind,)
        if not all(isinstance(each, types.Number | types.Boolean) for each in kinds):
            what = f"{len(names)} numbers" if names else "number"
            raise TypeError(f"in some branch it returns no {what}: each branch needs a return")
        if len(kinds) != max(len(names), 1):
            said = f"{len(names)} numbers ({', '.join(names)})"
            raise TypeError(f"it must return {said}, and returns {len(kinds)}")


def _reason(error: Exception) -> str:
    """Why Numba cannot compile the user's code, in at most 160 characters.

    It is the first line of Numba's message that concerns this code, without Numba's words on where
    it found the error. In three cases Numba's message is long or unclear, and the reason is a text
    of ours: a variable outside the function is of a kind that Numba cannot read, for example a
    list; ``except`` names an exception; or the function stores a global variable.
    """
    name = re.search(r"(?:to variable '|Untyped global name '|freevar\()(\w+)", str(error))
    if name:
        kinds = "a number, a truth value, text, a tuple of these or a NumPy array of numbers"
        return f"the variable {name[1]!r} outside the function must be {kinds}"
    if "exception_match" in str(error):
        return (
            "it cannot catch this exception; compiled code raises none for a division by zero, "
            "so test the divisor first"
        )
    if "STORE_GLOBAL" in str(error):
        return (
            "it cannot store a global variable; a law keeps numbers by `state` and `update` of "
            "register_law"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("Failed in nopython")]
    said = (telling or lines or [type(error).__name__])[0]
    return re.sub(r"\.*( Raised from .*)?$", "", said)[:160]


def address(law: Law, name: str) -> int:
    """The memory address of the compiled rule ``name`` of a law; 0 if the law has no such rule.

    A rule is one of the law's functions, for example ``drift``. Call this at the beginning of a
    run, in the thread that simulates. It clears the record of unusable results of the thread's
    earlier run, so that ``raise_faults`` can tell after the new run whether the rule returned one.
    Raises ``LawFault`` if Numba cannot compile the rule.
    """
    if getattr(law, name) is None:
        return 0
    compiled = _compile(law, name)
    compiled.record.begin()
    return int(compiled.function.address)


def _compile(law: Law, name: str) -> _Compiled:
    """The compiled rule ``name`` of a law; raises ``LawFault`` if Numba cannot compile it."""
    try:
        return _compiled(law, name)
    except Exception as error:  # whatever Numba raises at the user's code
        rule = getattr(law, name)
        said = getattr(rule, "__name__", rule)
        allowed = f"{_reason(error)} ({place(rule, error)})"
        wrong = "cannot be compiled by Numba"
        raise LawFault(f"law {law.name}: {name}", said, allowed, wrong=wrong) from None


def raise_faults(law: Law) -> None:
    """Raise ``LawFault`` if a function of the law returned an unusable number in the last run.

    The last run is the one that the present thread began last. A number is unusable if it is NaN,
    if its magnitude is too large, or if it is a negative window after a loss (``cut``). An error in
    the function counts as NaN. During the run an unusable result was replaced by 0, so that the run
    could end.
    """
    for name in FUNCTIONS:
        rule = getattr(law, name)
        fault = _compile(law, name).record.fault() if rule is not None else None
        if fault is not None:
            seen = with_numbers(law.names)(*fault)
            try:
                ask(law, name, seen)
            except FieldError as error:
                raise LawFault.of_error(error) from error
            # The Python function returns a usable number, so only the compiled one fails. For
            # example, it divides by zero without an error.
            said = getattr(rule, "__name__", rule)
            allowed = f"{must_return(law, name, seen)} ({place(rule)})"
            wrong = "returned no usable number when compiled by Numba"
            raise LawFault(f"law {law.name}: {name}", said, allowed, wrong=wrong)
