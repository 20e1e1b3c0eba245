"""Checks that each argument of a function is of the right kind, such as a number or an array.

The decorator ``checked`` adds this check to a function. It reads the allowed kinds from the
function's type annotations. An argument of another kind raises a ``FieldError``, whose message is
one line. The function itself checks the value of the argument, such as its range.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import is_time_span

__all__ = ["checked", "holds_bool"]

LARGEST = int(sys.float_info.max)  # greatest whole number that a float can hold

T = TypeVar("T", bound=Callable[..., Any])


class Kind(NamedTuple):
    """A kind of argument, such as a whole number: its description, and a test for values."""

    words: str  # the description, for the error
    accepts: Callable[[Any], bool]  # whether a value is of this kind
    array: bool = False  # the function takes a float64 array; lists are converted to one
    plain: type | None = None  # numbers of other classes, such as NumPy's, are converted to this
    alternatives: tuple[Kind, ...] = ()  # if not empty, a value may be of any of these kinds


def checked(function: T) -> T:
    """Make ``function`` check the kind of each argument before it runs.

    For a class, the arguments of its constructor are checked. NumPy's numbers are accepted where
    Python's are, and so are other numbers, such as fractions. Whole and real ones reach
    ``function`` as Python's ``int`` or ``float``; ``numpy.float64`` is a ``float`` already. A list
    or a number is converted to an array if the annotation is an array of floats. An argument with
    the annotation ``Any`` is not checked. A call with an argument of another kind raises
    ``FieldError``.
    """
    if isinstance(function, type):
        made: Any = function
        made.__init__ = checked(made.__init__)
        return function
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        # ``given`` are the arguments that the caller names
        kinds = _kinds(function)
        in_order = [_accepted(kinds[name], name, x) for name, x in zip(names, args, strict=False)]
        by_name = {name: _accepted(kinds.get(name), name, x) for name, x in given.items()}
        too_many = args[len(in_order) :]  # ``function`` then raises Python's usual error
        return function(*in_order, *too_many, **by_name)

    return cast("T", call)


def _accepted(kind: Kind | None, name: str, value: Any) -> Any:
    """The value of the argument ``name``, as an array or a number of Python if its kind asks so.

    Raises ``FieldError`` if the value is of another kind.
    """
    if kind is None:
        return value
    kinds = kind.alternatives or (kind,)
    found = next((each for each in kinds if each.accepts(value)), None)
    if found is None:
        raise FieldError(name, value, kind.words)
    if found.plain is not None and not isinstance(value, int | float):
        return found.plain(value)
    return np.asarray(value, dtype=np.float64) if found.array else value


@functools.cache
def _kinds(function: Callable[..., Any]) -> dict[str, Kind | None]:
    """The allowed kind of each argument of ``function``, by the argument's name.

    The annotations are read when ``function`` is first called, not when it is defined, because they
    may name classes of modules that are loaded later.
    """
    hints = typing.get_type_hints(function, vars(sys.modules[function.__module__]))
    return {name: _kind(hints.get(name, Any)) for name in inspect.signature(function).parameters}


def _kind(hint: Any) -> Kind | None:
    """The ``Kind`` of values that a type annotation allows; ``None`` if it allows any value."""
    if hint in (Any, object, inspect.Parameter.empty):
        return None
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint == ArrayLike:
        return _ARRAY
    hint = _without_alias(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_kind(arguments)
    if origin is Literal:
        return Kind(f"one of {', '.join(map(str, arguments))}", lambda x: _is_one_of(x, arguments))
    if origin is np.ndarray:
        entries = typing.get_args(arguments[1])
        if np.complex128 in entries:
            return Kind("an array of complex numbers", lambda x: _is_array(x, "iufc"))
        if np.bool_ in entries:
            return Kind("an array of True and False", lambda x: _is_array(x, "biuf"))
        # only an argument that is declared as an array of floats is converted to one
        return Kind(_ARRAY.words, _is_array, array=np.float64 in entries)
    if origin is tuple and Ellipsis not in arguments:
        return _tuple_kind([_kind(part) for part in arguments])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Kind("a mapping", lambda x: isinstance(x, Mapping))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _list_kind(_kind(arguments[0]), sized=issubclass(origin, Collection))
    if origin is Callable or hint is Callable:
        return Kind("a function", callable)
    cls = origin or hint
    return Kind(f"a {cls.__name__}", lambda x: isinstance(x, cls))


def _without_alias(hint: Any) -> Any:
    """The type that ``hint`` stands for if ``hint`` is an alias, else ``hint`` itself.

    NumPy 2.5 defines ``NDArray`` as an alias, with Python's statement ``type``. An annotation then
    holds only the alias. With older versions of NumPy it holds the type itself.
    """
    origin = typing.get_origin(hint) or hint
    if type(origin).__name__ != "TypeAliasType":  # a class of Python 3.12 and newer
        return hint
    args = typing.get_args(hint)
    return _without_alias(origin.__value__[args] if args else origin.__value__)


def _union_kind(hints: tuple[Any, ...]) -> Kind | None:
    """The ``Kind`` of values that a union allows, such as the annotation ``float | str``.

    ``hints`` has the annotations that the union joins. The result is ``None`` if one of them allows
    any value.
    """
    arrays = typing.get_args(ArrayLike)  # before NumPy 2.5, ArrayLike in a union is many parts
    if arrays and set(arrays) <= set(hints):
        hints = (ArrayLike, *(part for part in hints if part not in arrays))
    parts = [_kind(part) for part in hints]
    known = tuple(part for part in parts if part is not None)
    if len(known) < len(parts):
        return None
    words = " or ".join(part.words for part in known)
    return Kind(words, lambda x: any(part.accepts(x) for part in known), alternatives=known)


def _tuple_kind(parts: list[Kind | None]) -> Kind:
    """The ``Kind`` of a tuple with a fixed number of values, such as a pair.

    ``parts`` has the ``Kind`` of each value, or ``None`` if any value is allowed in this place.
    """

    def accepts(value: Any) -> bool:
        good = _is_collection(value) and len(value) == len(parts)
        return good and all(p is None or p.accepts(x) for p, x in zip(parts, value, strict=True))

    each = ", ".join("anything" if part is None else part.words for part in parts)
    return Kind(f"{len(parts)} values: {each}", accepts)


def _list_kind(entry: Kind | None, *, sized: bool) -> Kind:
    """The ``Kind`` of a list or another iterable object.

    ``entry`` is the ``Kind`` of its entries, or ``None`` if any entry is allowed.  With ``sized``,
    an iterator is not accepted, because it has no length. Otherwise its entries are not checked,
    because they can be read only once.
    """

    def accepts(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        if not isinstance(value, Collection):
            return not sized
        return _is_collection(value) and (entry is None or all(map(entry.accepts, value)))

    return Kind("a list" if entry is None else f"a list, each entry {entry.words}", accepts)


def _is_collection(value: Any) -> bool:
    """Whether the value has a length and entries; an array of dimension 0 has none."""
    return isinstance(value, Collection) and getattr(value, "ndim", 1) > 0


def _is_number(value: Any, kind: type, dtypes: str) -> bool:
    """Whether the value is a single number of the class ``kind``, such as ``numbers.Real``.

    True and False are not accepted. A NumPy number, or an array of dimension 0, is accepted if the
    code of its dtype's kind, such as ``f`` for floats, is in ``dtypes``. An integer that is too
    large for a float is accepted only if ``kind`` is ``numbers.Integral``.
    """
    if isinstance(value, kind) and not is_time_span(value):
        too_large = kind is not numbers.Integral and isinstance(value, int) and abs(value) > LARGEST
        return not isinstance(value, bool) and not too_large
    return _is_array(value, dtypes) and np.ndim(value) == 0


def holds_bool(value: Any) -> bool:
    """Whether the value is True or False, or a list or an array with such an entry.

    NumPy would silently use True as 1 and False as 0.
    """
    if isinstance(value, list | tuple):
        return not {*map(type, value)} <= {float, int} and any(map(holds_bool, value))
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "O":
        return any(map(holds_bool, np.asarray(value).flat))
    return kind == "b" or isinstance(value, bool)


def _is_array(value: Any, dtypes: str = "iuf") -> bool:
    """Whether the value is a number, an array or nested lists, with entries of these ``dtypes``.

    ``dtypes`` are NumPy's codes of kinds of numbers, such as ``f`` for floats. ``True`` and
    ``False`` count as numbers only with ``b``.
    """
    if type(value) is np.ndarray and value.dtype.kind in "biufc":  # no conversion needed
        return value.dtype.kind in dtypes
    # a masked array exists only if somebody imported numpy.ma; to import it here takes time
    if "numpy.ma" in sys.modules and np.ma.is_masked(value):
        return False
    if "b" not in dtypes and holds_bool(value):
        return False
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # fractions, and whole numbers above 64 bits
            # ``array + 0`` raises an error if an entry is no number: text, for example
            array = array if array.size == 0 else np.asarray(array + 0, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # also rows of different lengths
        return False
    return array.dtype.kind in dtypes


def _is_one_of(value: Any, words: tuple[Any, ...]) -> bool:
    """Whether the value is one of ``words`` and of the same type, so 1 does not count as True."""
    return any(type(value) is type(word) and value == word for word in words)


_ARRAY = Kind("a number or an array of numbers", _is_array)
_PLAIN: dict[Any, Kind] = {  # by the annotation
    int: Kind("a whole number", lambda x: _is_number(x, numbers.Integral, "iu"), plain=int),
    float: Kind("a number", lambda x: _is_number(x, numbers.Real, "iuf"), plain=float),
    complex: Kind("a complex number", lambda x: _is_number(x, numbers.Complex, "iufc")),
    bool: Kind("True or False", lambda x: isinstance(x, bool | np.bool_)),
    str: Kind("text", lambda x: isinstance(x, str)),
    Path: Kind("a path", lambda x: isinstance(x, Path)),
    None: Kind("None", lambda x: x is None),
    type(None): Kind("None", lambda x: x is None),
}
