"""The error for wrong input, ``FieldError``, and how its message shows fields and values."""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "MISSING", "NO_KEY", "FieldError", "exactly", "in_words", "printable", "show",
    "without_rounding_error",
]  # fmt: skip

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # a key that TOML writes without quotes

# two values of the argument ``wrong`` of ``FieldError``, for a missing field and an unknown key
MISSING = "missing"
NO_KEY = "is no key here"


class FieldError(ValueError):
    """Raised for wrong input, with a message of one line.

    The message names the field, the wrong value and what is allowed. ``wrong`` says what is wrong
    with the value. If ``wrong`` is ``MISSING``, the field was not given, and the message shows no
    value. If ``file`` is given, the field is a key of that file, and the message begins with the
    file's name. With a ``file``, or with ``toml``, the message shows the value as TOML writes it,
    else as Python does. The message names the field ``flow[0].rtt`` as "flow 1, rtt".
    """

    def __init__(
        self,
        field: str,
        value: object,
        allowed: str,
        *,
        wrong: str = "is not allowed",
        file: str = "",
        toml: bool = False,
    ) -> None:
        """Make the message: ``[FILE, ]FIELD: VALUE WRONG; ALLOWED``."""
        self.field: str = field
        self.value: object = value
        self.allowed: str = allowed
        self.wrong: str = wrong
        self.file: str = file
        self.toml: bool = toml or bool(file)
        place = f"{file}, {in_words(field, 'key ')}" if file else in_words(field)
        shown = _cut(_in_toml(value)) if self.toml else show(value)
        if isinstance(value, float) and _seems_a_bound(value, allowed):
            shown = repr(float(value))
        text = wrong if wrong == MISSING else f"{shown} {wrong}"
        super().__init__(f"{place}: {text}; {allowed}")

    def __reduce__(self) -> tuple[Callable[..., FieldError], tuple[Any, ...]]:
        """Let ``pickle`` and ``copy`` make the error again, from its message and its attributes.

        By default they would call the class with the message alone. So an error in another process
        would reach the user as a ``TypeError``.
        """
        return _again, (type(self), self.args, vars(self).copy())

    def of(self, field: str) -> FieldError:
        """The same error for another field: a copy in which only the field's name is changed."""
        return FieldError(
            field, self.value, self.allowed, wrong=self.wrong, file=self.file, toml=self.toml
        )

    def in_file(self, file: str) -> FieldError:
        """A copy of the error whose message also says that the field is a key of ``file``."""
        return FieldError(self.field, self.value, self.allowed, wrong=self.wrong, file=file)

    def in_toml(self) -> FieldError:
        """A copy of the error whose message shows the value as TOML writes it."""
        return FieldError(
            self.field, self.value, self.allowed, wrong=self.wrong, file=self.file, toml=True
        )


def _again(kind: type[FieldError], args: tuple[Any, ...], values: dict[str, Any]) -> FieldError:
    """An error of the class ``kind`` with these ``args`` and values of its attributes."""
    error = kind.__new__(kind, *args)
    vars(error).update(values)
    return error


def _seems_a_bound(value: float, allowed: str) -> bool:
    """Whether the value as ``show`` rounds it is a number in ``allowed``, but the value is not.

    An example is the least number above 1 where at most 1 is allowed.
    """
    rounded = without_rounding_error(value)
    return rounded != value and any(
        float(number) == rounded for number in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", allowed)
    )


def in_words(field: str, key: str = "") -> str:
    """A field as messages name it: ``flow[0].rtt`` is "flow 1, rtt".

    Messages count the tables ``[[flow]]`` and ``[[link]]`` of a scenario file from 1. ``key`` is
    put before the name of the key in its table, as in "flow 1, key rtt".
    """
    if not field.startswith(("flow[", "link[")):
        return key + field
    parts = [re.sub(r"\[(\d+)\]$", _from_1, part) for part in re.split(r"(?<=\])\.", field)]
    if not field.endswith("]"):
        parts[-1] = key + parts[-1]
    return ", ".join(parts)


def _from_1(index: re.Match[str]) -> str:
    """The index in a text such as ``[0]``, counted from 1: " 1"."""
    return f" {int(index[1]) + 1}"


def show(value: object) -> str:
    """A value as an error message shows it: its ``repr`` on one line, cut to 80 characters.

    A float is shown without the rounding error of its last digits. A tuple is shown as a list,
    because a list in a scenario file is a tuple in Python.
    """
    return _cut(_represented(value))


def _represented(value: object) -> str:
    """A value as ``show`` shows it, but not cut."""
    if type(value) is tuple:
        value = list(value)
    if isinstance(value, float):
        value = without_rounding_error(float(value))
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        text = "a number of thousands of digits"
    if "\n" in text:  # an array or a dataset; in text a line break is escaped
        text = " ".join(text.split())
    return text


def _cut(text: str) -> str:
    """The text, cut to 80 characters."""
    return text if len(text) <= 80 else text[:77] + "..."


def _in_toml(value: Any) -> str:
    """A value of a TOML file as TOML writes it: ``true``, 1979-05-27 or ``{ uniform = [1, 2] }``.

    In Python's notation they would be ``True``, ``datetime.date(1979, 5, 27)`` and
    ``{'uniform': [1, 2]}``, which are not in the user's file. Text has single quotes, as in Python.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_in_toml, value))}]"
    if isinstance(value, Mapping):
        keys = ", ".join(f"{_toml_key(key)} = {_in_toml(each)}" for key, each in value.items())
        return f"{{ {keys} }}" if keys else "{}"
    if isinstance(value, (datetime.date, datetime.time)):  # a date with a time is a date, too
        return value.isoformat()
    return _represented(value)


def _toml_key(key: object) -> str:
    """A key as TOML writes it: in quotes unless it has only letters, digits, - and _."""
    return str(key) if BARE_KEY.fullmatch(str(key)) else repr(str(key))


def exactly(number: float) -> str:
    """The number as a message shows a bound: with six digits if they suffice, else with all.

    Only its rounding error is left out. A bound with fewer digits than it has could allow a value
    that was refused: 0.1234567 s exceeds 0.1234566 s, but not 0.123457 s.
    """
    short, number = f"{number:g}", without_rounding_error(float(number))
    return short if float(short) == number else repr(number)


def without_rounding_error(value: float) -> float:
    """The number with as many digits as are certain after a calculation: 5e-05, not 4.99..96e-05.

    The greatest numbers, which would become infinite, are returned unchanged.
    """
    rounded = float(f"{value:.{sys.float_info.dig}g}")
    return rounded if math.isfinite(rounded) else value


def printable(text: str) -> str:
    """The text with each control character replaced by a visible escape, safe for a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
