"""Lets a simulator call compiled functions that only some scenarios need, such as RED's drops.

This saves compile time. A simulator is compiled together with all functions that it calls in the
usual way. But a function that only some scenarios need is compiled separately, at the first
scenario that needs it. ``address`` compiles the function and returns its address in memory. The
simulator calls the function by this address (``call``).
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import map_layout

from vegasmodel.support.whole_program import WholeProgram

__all__ = ["address", "call"]


def address(step: Any, *arguments: Any) -> int:
    """The address in memory of the machine code of ``step``; compiled code gives it to ``call``.

    ``step`` is a function made by ``tables.jit``, and returns nothing. Its machine code is for
    arguments of the same types as ``arguments``. It is compiled now, unless this was done before.
    """
    program: WholeProgram = step
    return program.address(tuple(_kind(one) for one in arguments))


def _kind(value: Any) -> Any:
    """Numba's type of ``value``, as ``numba.typeof`` gives it.

    For a record with many fields, ``numba.typeof`` takes long at each call. So the types of records
    are kept.
    """
    if isinstance(value, np.void):
        return _record(value.dtype)
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        readonly = not value.flags.writeable
        return types.Array(_record(value.dtype), value.ndim, map_layout(value), readonly=readonly)
    return numba.typeof(value)


_record = functools.cache(numba.from_dtype)


def _code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Write the LLVM instructions of ``call``, by Numba's calling convention.

    ``values`` are the address of a compiled function and the tuple of its arguments. By Numba's
    convention a compiled function has two arguments more, which come first: pointers to the places
    of its result and of an error. Here the result is nothing, and the error is not read.
    """
    kinds = signature.args[1].types
    kind = context.call_conv.get_function_type(types.none, kinds)
    step = builder.inttoptr(values[0], kind.as_pointer())
    result = cgutils.alloca_once(builder, kind.args[0].pointee)
    error = cgutils.alloca_once(builder, kind.args[1].pointee)
    builder.store(ir.Constant(kind.args[0].pointee, None), result)
    arguments = [builder.extract_value(values[1], i) for i in range(len(kinds))]
    packed = context.get_arg_packer(kinds).as_arguments(builder, arguments)
    builder.call(step, [result, error, *packed])
    return context.get_dummy_value()


# (address, arguments) -> None, in compiled code: calls the step at this address
call = intrinsic(lambda _, __, arguments: (types.none(types.int64, arguments), _code))
