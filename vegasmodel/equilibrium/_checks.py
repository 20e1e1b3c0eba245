"""Checks the arguments of the functions of this package; a wrong value raises an error.

Many functions of this module have the argument ``name``, the name of the checked argument. It
appears in the error message.

Two functions, ``secular.solve`` and ``arrivals.arrive``, compute the steady states of many links at
once. If one link has a value out of range, they raise no error, so that all other links get their
results. The results of the link with the wrong value are NaN, and its status says why. (In some
cases ``arrivals.arrive`` raises an error all the same. Its docstring names these cases.)
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.fields.errors import MISSING, FieldError, exactly
from vegasmodel.fields.kinds import holds_bool
from vegasmodel.fields.rules import Choice, Integer
from vegasmodel.metrics import Floats
from vegasmodel.stacks import STACKS, find

T = TypeVar("T", bound=Callable[..., Any])

VARIANTS = tuple(STACKS)
MAX_COUNT = 10_000_000  # flows and the like: arrays of more entries may not fit into the memory


def numbers(
    name: str,
    value: ArrayLike,
    low: float = 0.0,
    high: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
    infinite: bool = False,
) -> Floats:
    """The argument ``name`` as float64; every entry must lie in the range ``low`` to ``high``.

    ``above`` excludes ``low`` itself, and ``below`` excludes ``high`` itself. NaN is not allowed,
    and infinity only with ``infinite``. Otherwise raises ``FieldError``, which shows the first
    entry that is not allowed.
    """
    array = floats(name, value)
    allowed_entries: Any = (array > low) if above else (array >= low)
    allowed_entries &= (array < high) if below else (array <= high)
    if not infinite:
        allowed_entries &= np.isfinite(array)
    if not np.all(allowed_entries):
        kind = f"more than {exactly(low)}" if above else f"at least {exactly(low)}"
        if low == -math.inf:
            kind = "any number"
        if high < math.inf:
            kind += f" and {'less than' if below else 'at most'} {exactly(high)}"
        elif not infinite:
            kind += ", and finite"
        raise FieldError(name, float(array[~allowed_entries].flat[0]), kind)
    return array


def sender(flow: Any, *, cut: bool) -> None:
    """Raise ``FieldError`` if a field of the sender ``flow`` is out of range.

    ``flow`` is a ``random_loss.Sender`` or a ``red.Flows``. The fields checked are those that both
    classes have. With ``cut``, the factor ``decrease`` must be below 1, so that a loss reduces the
    window.
    """
    positive("rtt", flow.rtt)
    numbers("alpha", flow.alpha)
    numbers("over_estimate", flow.over_estimate, -math.inf)
    numbers("max_window", flow.max_window, above=True, infinite=True)
    positive("ack_every", flow.ack_every)
    if flow.decrease is not None:
        numbers("decrease", flow.decrease, high=1.0, below=cut)
    if flow.timeout is not None:
        numbers("timeout", flow.timeout)


def floats(name: str, value: ArrayLike) -> Floats:
    """The value as a float64 array; raises ``FieldError`` unless it consists of numbers."""
    try:
        array = np.asarray(value)
        if holds_bool(value):
            raise TypeError("NumPy would read True as 1")
        # a masked array exists only if somebody imported numpy.ma; to import it here takes time
        masked = "numpy.ma" in sys.modules and np.ma.is_masked(value)
        if array.dtype.kind not in "iufO" or masked:
            raise TypeError("NumPy would read numbers from text, times, or masked entries")
        if array.dtype.kind == "O" and any(x is None for x in array.flat):
            raise TypeError("NumPy would read None as NaN")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise FieldError(name, value, "a number or an array of numbers") from None


def routing_matrix(routing: Any, high: float = math.inf) -> Floats:
    """The matrix ``routing`` as float64, with True as 1; its entries are from 0 to ``high``."""
    array = np.asarray(routing)
    return numbers("routing", array + 0 if array.dtype.kind == "b" else array, high=high)


def positive(name: str, value: ArrayLike) -> Floats:
    """The value as float64; raises ``FieldError`` unless every entry is positive and finite."""
    return numbers(name, value, above=True)


def count(name: str, value: Any, low: int = 1, high: int = MAX_COUNT) -> int:
    """The value as an int; raises ``FieldError`` unless it is an integer in ``low`` .. ``high``."""
    Integer(low, high).check(value, name)
    return int(value)


def expect_broadcast(
    arrays: Mapping[str, Any], without_flows: Mapping[str, Any] | None = None
) -> None:
    """Raise ``FieldError``, with the arrays' names and shapes, unless the arrays broadcast.

    The shapes of ``arrays`` must broadcast as in NumPy. The arrays in ``without_flows``, such as a
    link's capacity, lack the axis of the flows, which is then the last axis of ``arrays``. So a
    shape [...] in ``without_flows`` counts as [..., 1].

    Both map names to values. ``None`` stands for an argument that was not given; it is ignored.
    """
    full = {name: _shape(value) for name, value in arrays.items() if value is not None}
    short = {name: _shape(value) for name, value in (without_flows or {}).items()}
    try:
        np.broadcast_shapes(*full.values(), *((*shape, 1) for shape in short.values()))
    except ValueError:
        shapes = {name: shape for name, shape in (full | short).items() if shape}
        shapes_shown = ", ".join(map(str, shapes.values()))
        allowed = "shapes that broadcast"
        if short:
            allowed = f"{allowed}: {_in_words(full)} [..., n], and {_in_words(short)} [...]"
        raise FieldError(_in_words(shapes), f"shapes {shapes_shown}", allowed) from None


def some_flow(**arrays: Any) -> None:
    """Raise ``FieldError`` if an array has no entry along its last axis, which is that of flows."""
    for name, value in arrays.items():
        if _shape(value)[-1:] == (0,):
            shape = [min(length, 3) for length in _shape(value)]  # a JAX tracer has no values
            raise FieldError(name, np.zeros(shape).tolist(), "one value, or one for each flow")


def rtt_of(variant: str, rtt: Any) -> None:
    """Raise ``FieldError`` if ``rtt`` is None, but ``variant``'s steady state depends on it."""
    if rtt is None and find(variant).backlog_over_base:
        allowed = f"the variant {variant} needs it: its steady state depends on the RTT"
        raise FieldError("rtt", rtt, allowed, wrong=MISSING)


def same_size(**arrays: Any) -> None:
    """Raise ``FieldError``, with the arrays' names and shapes, unless all have the shape [n].

    The arrays have one entry for each of the n flows, and n is at least 1. ``None`` stands for an
    argument that was not given; it is ignored.
    """
    shapes = {name: _shape(value) for name, value in arrays.items() if value is not None}
    sizes = {*shapes.values()}
    if len(sizes) > 1 or any(len(shape) != 1 or shape[0] == 0 for shape in sizes):
        shapes_shown = ", ".join(map(str, shapes.values()))
        raise FieldError(
            _in_words(shapes), f"shapes {shapes_shown}", "one entry for each flow, [n]"
        )


def broadcast(function: T) -> T:
    """Make ``function`` raise ``FieldError`` unless all its arguments broadcast as in NumPy."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        expect_broadcast({**dict(zip(names, args, strict=False)), **given})
        return function(*args, **given)

    return cast("T", call)


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of the value as an array; () if it is none, which ``floats`` refuses."""
    try:
        return np.shape(value)
    except (TypeError, ValueError):  # an xarray.Dataset, or rows of different lengths
        return ()


def _in_words(names: Iterable[str]) -> str:
    """The names as text for a message, such as "alpha, beta and rtt"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def word(name: str, value: str, words: tuple[str, ...]) -> None:
    """Raise ``FieldError`` unless the value is one of the strings in ``words``."""
    Choice(words).check(value, name)


def ordered(alpha: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return alpha and beta unchanged, or raise ``FieldError`` if beta is below alpha.

    With beta below alpha, a Vegas window would grow or shrink at every backlog.
    """
    low, high = np.broadcast_arrays(alpha, beta)
    bad = high < low
    if np.any(bad):
        raise FieldError("beta", float(high[bad].flat[0]), "at least alpha")
    return alpha, beta
