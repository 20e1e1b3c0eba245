"""Compiles the solver of Vegas's steady state with Numba.

The source code is in ``_secular_kernel.py`` and ``_secular_lanes.py``. The compiled code gives the
same results as plain Python to the last bit. This module is normally loaded for large inputs only,
because importing Numba takes longer than solving a small input in plain Python.

The compiler option fast-math is off. With fast-math the compiler may treat a rounding error, such
as (a + b) - a - b, as 0. But the solver needs these errors, because it corrects its sums by them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

import numba
from numba.extending import intrinsic

from vegasmodel.equilibrium import _secular_kernel as kernel
from vegasmodel.equilibrium import _secular_lanes as lanes
from vegasmodel.support.machine_code import compiled

# The functions to compile, in groups: arithmetic, and sums over a range of flows; sums over all
# flows of a link; the solver for one link; the solver for several links at a time. The groups are
# compiled in this order, because a function calls only functions of its own group and of earlier
# ones.
_SUMS_OF_A_RANGE = (
    "two_sum", "quotient", "distance", "survey", "rough_sums", "precise_sums", "write_rates",
    "root", "first_gap", "newton", "one_pole", "two_poles", "advance",
)  # fmt: skip
_SUMS_OF_A_LINK = ("survey_all", "rough_sums_all", "precise_sums_all", "write_all_rates")
_ONE_LINK = ("find_gap", "solve_case")
_SEVERAL_LINKS = (
    "copy_flows", "survey_lanes", "rough_sums_lanes", "precise_sums_lanes", "write_rates_lanes",
    "start_iteration", "excess_lanes", "step_lanes", "solve_lanes",
)  # fmt: skip

# the files from whose code the compiled functions are made; if one changes, they are compiled anew
_FILES = (str(kernel.__file__), str(lanes.__file__), __file__)

# Types of arguments: a float, a truth value, an integer, an input array, an array and a table of
# floats to write to, and a table of integers. With one signature a function is compiled only once.
# Input arrays may be read-only.
_F8, _FLAG = numba.float64, numba.boolean
_IN = numba.types.Array(_F8, 1, "C", readonly=True)
_OUT, _TABLE, _COUNTS = _F8[::1], _F8[:, ::1], numba.int64[:, ::1]
_INT = numba.int64
_SIGNATURES = {
    "solve_batch": numba.void(_IN, _IN, _IN, _FLAG, _IN, _INT, _OUT, _TABLE, _COUNTS),
    "solve_case": numba.types.Tuple((_F8, _F8, _F8, _INT, _INT))(
        _IN, _IN, _IN, _FLAG, _F8, _INT, _INT, _OUT, _TABLE
    ),
}


@intrinsic  # type: ignore[untyped-decorator]  # Numba
def _fused(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a b + c`` as one machine instruction, rounded once."""
    return _F8(a, b, c), lambda _context, builder, _signature, args: builder.fma(*args)


@numba.njit  # type: ignore[untyped-decorator]  # Numba
def _remainder(a: float, q: float, s: float) -> float:
    """The remainder ``a - q s`` of the division of a by s, where q is the rounded quotient.

    The compiled code uses this function in place of ``kernel.remainder``. Both give the exact
    remainder; this one needs only a fused multiply-add, which computes a - q s and rounds once.
    """
    return _fused(-q, s, a)  # type: ignore[no-any-return]  # Numba


def _source() -> dict[str, Any]:
    """The global names in the code that is to be compiled, each with its function or value.

    They come from ``_secular_kernel`` and ``_secular_lanes``, which find steady states of links.
    Only ``remainder`` is replaced, by a function that uses the processor's fused multiply-add.
    """
    return {**vars(kernel), **vars(lanes), "remainder": _remainder}


def _compile(
    scope: dict[str, Any],
    names: tuple[str, ...],
    suffix: str = "",
    *,
    threads: bool = False,
    inline: str = "never",
) -> dict[str, Any]:
    """Compile the functions ``names`` of ``scope``; returns a copy of ``scope`` that contains them.

    ``scope`` holds the global names that the functions use, each with its function or value. A
    function that is compiled later calls the compiled functions in the copy. With ``threads``,
    several threads share a loop over ``prange``. Files on disk keep the machine code. They have the
    function's name with ``suffix``, so a function that is compiled twice needs two suffixes.
    """
    options: dict[str, Any] = {"parallel": threads, "inline": inline}
    options |= {"error_model": "numpy", "nogil": True}
    scope = {**scope, "prange": numba.prange if threads else range}
    for name in names:
        source = scope[name]
        copy = FunctionType(source.__code__, scope, name + suffix)
        copy.__qualname__, copy.__module__ = name + suffix, source.__module__
        scope[name] = compiled(copy, _SIGNATURES.get(name), _FILES, **options)
    return scope


@functools.cache
def batch(threads: bool) -> Callable[..., None]:
    """Return the compiled ``solve_batch``, which finds the steady states of many links.

    With ``threads`` several threads share the links. Starting the threads takes milliseconds.
    """
    scope = _compile(_source(), _SUMS_OF_A_RANGE)
    # inline: a call takes time, because it counts the references to its arrays atomically
    scope = _compile(scope, _SUMS_OF_A_LINK, "_inline", inline="always")
    scope = _compile(scope, (*_ONE_LINK, *_SEVERAL_LINKS), "_batch")
    scope = _compile(scope, ("solve_batch",), "_threads" if threads else "_batch", threads=threads)
    return cast("Callable[..., None]", scope["solve_batch"])


@functools.cache
def case() -> Callable[..., tuple[float, float, float, int, int]]:
    """Return the compiled ``solve_case``, which finds the steady state of one link.

    Several threads share the flows if there are more than ``kernel.CHUNK``.
    """
    scope = _compile(_source(), _SUMS_OF_A_RANGE)
    scope = _compile(scope, _SUMS_OF_A_LINK, "_threads", threads=True)
    scope = _compile(scope, _ONE_LINK, "_threads")
    return cast("Callable[..., tuple[float, float, float, int, int]]", scope["solve_case"])
