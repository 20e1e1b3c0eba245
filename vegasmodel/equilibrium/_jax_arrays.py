"""Lets functions that compute with NumPy take JAX arrays, and return JAX arrays for them.

The function ``sum_of_others`` computes with either of the two libraries.

JAX is never imported here. If an argument is a JAX array, the user has imported JAX.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])


def is_jax(value: Any) -> bool:
    """Whether a value is a JAX array or tracer, without importing JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def need_float64() -> None:
    """Raise ``ValueError`` unless JAX computes with 64-bit floats. JAX must have been imported."""
    jax = sys.modules["jax"]
    if jax.numpy.result_type(float) != np.float64:
        raise ValueError(
            "closed forms need 64-bit floats: call them within jax.enable_x64(True), "
            "or set JAX_ENABLE_X64=1"
        )


def same_kind(function: _Function) -> _Function:
    """Make a function that computes with NumPy return JAX arrays if it gets a JAX array.

    The numbers are those that NumPy computes. JAX cannot trace the function. So inside ``jit``,
    ``vmap`` or ``grad`` the function raises ``ValueError``. It also raises ``ValueError`` for a JAX
    array if JAX computes with 32-bit floats.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        """Call the function with NumPy arrays in place of JAX arrays."""
        jax_values = [value for value in (*args, *named.values()) if is_jax(value)]
        if not jax_values:
            return function(*args, **named)
        need_float64()
        if any(isinstance(value, sys.modules["jax"].core.Tracer) for value in jax_values):
            raise ValueError(
                f"{function.__name__} computes with NumPy, so JAX cannot trace it: call it outside "
                "jit, vmap and grad"
            )
        numpy_args = [np.asarray(value) if is_jax(value) else value for value in args]
        numpy_named = {
            k: np.asarray(value) if is_jax(value) else value for k, value in named.items()
        }
        return _as_jax(function(*numpy_args, **numpy_named))

    return cast("_Function", call)


def _as_jax(result: Any) -> Any:
    """Convert the NumPy arrays in ``result`` to JAX arrays.

    Floats and NumPy scalars become JAX arrays, too. Tuples and dataclasses are searched for such
    values. Arrays of texts, and all other objects, stay as they are.
    """
    if isinstance(result, np.ndarray | np.generic | float):
        numeric = np.asarray(result).dtype.kind in "fib"
        return sys.modules["jax"].numpy.asarray(result) if numeric else result
    if isinstance(result, tuple):
        parts = [_as_jax(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {f.name: _as_jax(getattr(result, f.name)) for f in dataclasses.fields(result)}
        return dataclasses.replace(result, **fields)
    return result


def sum_of_others(values: Any, numpy: Any) -> Any:
    """For each flow i, the sum of ``values`` [..., n] over all other flows, [..., n].

    ``numpy`` is the module that computes: ``numpy``, or ``jax.numpy`` for JAX arrays.

    The function adds the sum over the flows before i and the sum over the flows after i.
    Subtracting the entry of flow i from the sum over all flows would be inexact if this entry were
    nearly all of that sum.
    """
    pad = [(0, 0)] * (values.ndim - 1)
    before = numpy.cumsum(numpy.pad(values, [*pad, (1, 0)])[..., :-1], axis=-1)
    after = numpy.cumsum(numpy.pad(values, [*pad, (0, 1)])[..., :0:-1], axis=-1)[..., ::-1]
    return before + after
