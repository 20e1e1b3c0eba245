"""Rules of laws from outside the package, compiled so that the engine calls them by address.

The engine is compiled once, for any law: it knows a rule as a C function of eight floats.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vegasmodel.fields.units import FieldError
from vegasmodel.laws import Law, Source
from vegasmodel.laws.law import Rule


def _code(_: Any, builder: Any, __: Any, args: Any) -> Any:
    double = ir.DoubleType()
    kind = ir.FunctionType(double, [double] * len(Source._fields))
    function = builder.inttoptr(args[0], kind.as_pointer())
    values = [builder.extract_value(args[1], i) for i in range(len(Source._fields))]
    return builder.call(function, values)


def _typed(_: Any, __: Any, source: Any) -> Any:
    return types.float64(types.int64, source), _code


call = intrinsic(_typed)  # (address, Source) -> float, in compiled code: the rule at an address
_PLAIN = types.float64(*[types.float64] * len(Source._fields))


@functools.cache
def _compiled(rule: Rule) -> Any:
    inner = numba.njit(error_model="numpy")(rule)

    def plain(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta):  # type: ignore[no-untyped-def]
        return inner(Source(window, rtt, base_rtt, backlog, elapsed, memory, alpha, beta))

    return numba.cfunc(_PLAIN, error_model="numpy")(plain)


def address(law: Law, name: str) -> int:
    """Where the compiled rule ``name`` of a law lies; 0 if it has none.

    Raises ``FieldError`` where Numba cannot compile it.
    """
    rule = getattr(law, name)
    if rule is None:
        return 0
    try:
        return int(_compiled(rule).address)
    except numba.core.errors.NumbaError as error:
        reason = " ".join(str(error).split())[:120]
        allowed = f"a function of one Source that Numba compiles to a float ({reason})"
        raise FieldError(f"law {law.name}: {name}", name, allowed) from error
