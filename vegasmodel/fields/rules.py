"""Defines the rules for a scenario's fields: which values are allowed, in a file and in Python.

A rule turns a value of a scenario file into the value that Python uses, and back. It also checks
whether a value from a file or from Python is allowed. ``checked.py`` applies the rules to all
fields of a dataclass.
"""

from __future__ import annotations

import abc
import dataclasses
import difflib
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.fields.units import needs_packet_size, parse, write

T = TypeVar("T")

MAX_SAMPLES = 10_000_000
"""The greatest number of samples of one run; more may not fit into the memory."""
MAX_RUNS = 10_000
"""The greatest number of runs of one scenario, and of threads."""


class OrText(Generic[T]):
    """The type annotation of a field that is given as a ``T`` or as text with a unit.

    For example, a field with the annotation ``OrText[float]`` accepts 0.08 and ``"80 ms"``. Text is
    converted when the object is made, so a type checker takes the field's value to be a ``T``.
    """

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type) -> T: ...
        def __set__(self, instance: object, value: T | str) -> None: ...


class Listed(Generic[T]):
    """The type annotation of a field that is given as a list or a tuple of ``T``.

    The list becomes a tuple when the object is made, so a type checker takes the field's value to
    be a tuple.
    """

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type) -> tuple[T, ...]: ...
        def __set__(self, instance: object, value: Sequence[T]) -> None: ...


class ListedOrNone(Generic[T]):
    """The type annotation of a field that is given as ``Listed`` says, or is None."""

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type) -> tuple[T, ...] | None: ...
        def __set__(self, instance: object, value: Sequence[T] | None) -> None: ...


class Unresolved(str):
    """Text with a unit, such as ``"20 kB"`` or ``"1 BDP"``, that is not converted to a number yet.

    The conversion needs a packet size, a capacity or RTTs. The text is therefore converted when the
    link or flow that has it becomes part of a scenario, where these values are known.
    """

    __slots__ = ()


def known(*values: object) -> bool:
    """Whether all values are numbers, so that they can be compared.

    A value may also be text with a unit that cannot be converted yet (``Unresolved``), such as a
    buffer in BDP as long as no RTT is known.
    """
    return not any(isinstance(value, Unresolved) for value in values)


def real(value: Any) -> float:
    """The value as a float, for checks.

    Returns NaN if the value is not a real number or is too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or is_time_span(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def is_time_span(value: object) -> bool:
    """Whether the value is a time span of NumPy, ``numpy.timedelta64``, or an array of them.

    Python takes it for a whole number: that of its unit, such as 80000000 for 80 ms in ns.
    """
    return getattr(getattr(value, "dtype", None), "kind", "") == "m"


class Rule(Protocol):
    """How the value of a field is read from a scenario file, checked, and written to a file.

    In all rules, ``where`` is the field's name for error messages. ``packet_size`` is in bytes, or
    ``None`` if it is not known yet.
    """

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """Convert a value of a scenario file to the value that Python uses.

        If the conversion needs a packet size or an RTT that is not known yet, the value stays text
        (class ``Unresolved``). Raises ``FieldError`` if the value is not allowed.
        """

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is allowed."""

    def write(self, value: Any) -> Any:
        """Convert ``value`` for a scenario file: 0.08 s, for example, becomes the text ``"80 ms"``.

        ``read`` turns this text back into ``value``.
        """


@dataclasses.dataclass(frozen=True)
class Quantity:
    """The rule for a number with a unit, such as a time, that must lie within a range.

    ``kind`` is a key of ``units.KINDS``, such as ``"time"``. The number must lie in
    ``low <= value <= high``. With ``low_open`` it must not be ``low`` itself. Infinity is allowed
    only with ``infinite``.
    """

    kind: str
    low: float = 0.0
    high: float = math.inf
    low_open: bool = False
    infinite: bool = False

    def read(self, value: object, where: str, packet_size: float | None) -> float:
        """Read text with a unit as a float in the package's unit, such as s or pkt/s.

        A number of packets or a fraction may be given without a unit.  If the conversion needs a
        packet size and ``packet_size`` is None, the value stays text (class ``Unresolved``).
        ``where`` is the field's name for an error.
        """
        if packet_size is None and needs_packet_size(value, self.kind):
            return cast("float", Unresolved(value))
        return parse(
            value,
            self.kind,
            field=where,
            packet_size=packet_size,
            low=self.low,
            high=self.high,
            low_open=self.low_open,
            infinite=self.infinite,
        )

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a number within the range.

        The number is in the package's unit for this ``kind``, for example in s for ``"time"``.
        ``where`` is the field's name for the error.
        """
        number = real(value)
        finite = math.isfinite(number) or (self.infinite and number == math.inf)
        if (
            not finite
            or not self.low <= number <= self.high
            or (self.low_open and number == self.low)
        ):
            upper = f" and at most {exactly(self.high)}" if math.isfinite(self.high) else ""
            upper += "" if math.isfinite(self.high) or self.infinite else ", and finite"
            bound = "more than" if self.low_open else "at least"
            raise FieldError(where, value, f"a number, {bound} {exactly(self.low)}{upper}")

    def write(self, value: Any) -> Any:
        """Convert the number to text with its unit, such as ``"80 ms"``.

        A fraction has no unit and stays a number. Text that is not yet a number, such as
        ``"2 BDP"`` (``Unresolved``), stays text.
        """
        if isinstance(value, str):
            return str(value)
        return value if self.kind == "fraction" else write(value, self.kind)


class BufferRule(Quantity):
    """The rule for the size of a buffer: packets, bytes, a time, or bandwidth-delay products (BDP).

    All are converted to packets: bytes as soon as the packet size is known, a time or a number of
    BDP as soon as the capacity and the RTTs are known.
    """

    def read(self, value: object, where: str, packet_size: float | None) -> float:
        """Read a buffer from a scenario file.

        A time such as ``"100 ms"`` or a number of bandwidth-delay products such as ``"1 BDP"``
        stays text (``Unresolved``) until the capacity and the RTTs are known.  So does text in
        bytes if ``packet_size`` is None.  ``where`` is the field's name for an error.
        """
        for kind in ("time", "bdp"):
            try:
                parse(value, kind, field=where)
            except FieldError:
                continue
            return cast("float", Unresolved(value))
        return super().read(value, where, packet_size)

    def packets(
        self, text: str, where: str, packet_size: float, capacity: float, rtt: float
    ) -> float:
        """Convert a buffer's text, such as ``"100 ms"``, ``"1 BDP"`` or ``"20 kB"``, to packets.

        ``packet_size`` is in bytes, and ``capacity`` is that of the buffer's link in pkt/s. ``rtt``
        is the mean RTT in s of the flows that cross the link, or NaN if it is unknown. Raises
        ``FieldError`` for any other text, and for a number of BDP if ``rtt`` is unknown. ``where``
        is the field's name for the error.
        """
        for kind, packets_per_unit in (("time", capacity), ("bdp", capacity * rtt)):
            try:
                number = parse(text, kind, field=where)
            except FieldError:
                continue
            if math.isnan(packets_per_unit):
                raise FieldError(
                    where, text, "a number of packets or a time; no RTT is known for a BDP"
                )
            self.check(number * packets_per_unit, where)
            return number * packets_per_unit
        return super().read(text, where, packet_size)


class AsItIs(abc.ABC):
    """The base class of rules for values that are the same in a scenario file and in Python."""

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """The value, unchanged. Raises ``FieldError`` if it is not allowed."""
        self.check(value, where)
        return value

    @abc.abstractmethod
    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is allowed."""

    def write(self, value: Any) -> Any:
        """The value unchanged, because a scenario file holds the same value as Python."""
        return value


@dataclasses.dataclass(frozen=True)
class Integer(AsItIs):
    """The rule for a whole number within a range."""

    low: int = 0
    high: int = 2**63 - 1

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a whole number in the range.

        A whole number of a NumPy type is allowed. ``where`` is the field's name for the error.
        """
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, numbers.Integral))
            or is_time_span(value)
            or not self.low <= int(value) <= self.high
        ):
            raise FieldError(where, value, f"a whole number from {self.low} to {self.high}")


@dataclasses.dataclass(frozen=True)
class Boolean(AsItIs):
    """The rule for a field that is true or false."""

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is ``True`` or ``False``."""
        if not isinstance(value, bool):
            raise FieldError(where, value, "true or false")


@dataclasses.dataclass(frozen=True)
class Choice(AsItIs):
    """The rule for a field whose value must be one of the texts in ``words``.

    For example, a flow's ``direction`` is ``"forward"`` or ``"reverse"``.
    """

    words: tuple[str, ...]

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is one of the allowed words.

        The error lists the allowed words. If one of them is similar to the value, the error also
        suggests this word (``nearest``). ``where`` is the field's name for the error.
        """
        if not isinstance(value, str) or value not in self.words:
            raise FieldError(
                where, value, f"one of {', '.join(self.words)}{nearest(value, self.words)}"
            )


@dataclasses.dataclass(frozen=True)
class Text(AsItIs):
    """The rule for a name: printable text on one line."""

    longest: int = 120

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is text of 1 to ``longest`` printable characters.

        A line break or another control character would break tables and log lines. ``where`` is the
        field's name for the error.
        """
        if (
            not isinstance(value, str)
            or not value.isprintable()
            or not 0 < len(value) <= self.longest
        ):
            raise FieldError(where, value, f"1 to {self.longest} printable characters on one line")


@dataclasses.dataclass(frozen=True)
class Texts:
    """The rule for a list of names without repeats.  With ``empty`` it may have no names."""

    empty: bool = False

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[str, ...]:
        """Turn a list from a scenario file into a tuple of names."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise FieldError(where, value, "a list of names")
        self.check(tuple(value), where)
        return tuple(value)

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a tuple of enough names without repeats."""
        good = isinstance(value, tuple) and all(isinstance(word, str) for word in value)
        if not good or not (value or self.empty) or len(set(value)) < len(value):
            many = "names" if self.empty else "at least one name"
            raise FieldError(where, value, f"a list of {many}, each once")

    def write(self, value: Any) -> list[str]:
        """The names as a list for a scenario file."""
        return list(value)


def listed(value: object, where: str, what: str) -> list[Any]:
    """Convert ``value``, such as a tuple, to a list.

    Raises ``FieldError`` if ``value`` is text, is not iterable, or is an array of dimension 0. The
    message names the field, ``where``, and says that the field must be a list of ``what``.
    """
    single = isinstance(value, str) or getattr(value, "ndim", 1) == 0
    if single or not isinstance(value, Iterable):
        raise FieldError(where, value, f"a list of {what}")
    return list(value)


def nearest(word: object, known: Sequence[str]) -> str:
    """A hint for an error message, such as ``; did you mean 'vegas'?``, or an empty text.

    The hint gives the entry of ``known`` that is most similar to ``word``. If none is similar, it
    gives the only entry that begins with ``word``, such as ``max_probability`` for ``max_p``, if
    ``word`` has three letters or more. Upper and lower case do not matter. Otherwise the text is
    empty.
    """
    by_lower_case = {entry.lower(): entry for entry in known}
    start = str(word)[:60].lower()
    match = difflib.get_close_matches(start, list(by_lower_case), n=1)
    if not match and len(start) >= 3:
        longer = [entry for entry in by_lower_case if entry.startswith(start)]
        match = longer if len(longer) == 1 else []
    return f"; did you mean {by_lower_case[match[0]]!r}?" if match else ""


def instead(word: object, known: Sequence[str], what: str = "keys") -> str:
    """What a user may write in place of ``word``, an unknown key, for an error message.

    The text names the entry of ``known`` that is most similar to ``word``, or all of ``known`` if
    none is similar. ``what`` says what the entries of ``known`` are.
    """
    hint = nearest(word, known).removeprefix("; ")  # "did you mean ...?", or empty
    return hint or f"allowed {what}: {', '.join(known)}"
