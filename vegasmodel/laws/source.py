"""Defines ``Source``, the state of a sender, which the functions of a congestion control law get.

A law may keep numbers of its own (``Law.state``). Its functions then get a ``Source`` that has
these numbers as further fields (``with_numbers``).
"""

from __future__ import annotations

import collections
import functools
from keyword import iskeyword
from numbers import Real
from typing import Any, NamedTuple

from vegasmodel.fields.errors import FieldError

# If a function of a law returns a number whose magnitude is larger than ``LARGEST_ANSWER``, this is
# an error. Windows are never so large: even a link of 1 Tbit/s with an RTT of 1 s holds only about
# 1e8 packets.
LARGEST_ANSWER = 1e9
MOST_NUMBERS = 8  # numbers that a law may keep, at most
State = tuple[tuple[str, float], ...]


class Source(NamedTuple):
    """The state of a sender, which the functions of a congestion control law get.

    - ``window``: congestion window, packets; at a loss, the window before the cut.
    - ``rtt``: round-trip time as the source measures it, s.
    - ``base_rtt``: the least round-trip time so far, or the one that the scenario gives, s.
    - ``backlog``: its own packets in the queue, as its TCP implementation computes them.
    - ``elapsed``: seconds since its last loss, or since its start if there was none.
    - ``memory``: what ``remember`` returned at the last loss, or the window at that loss if the law
      has no ``remember`` or has ``state``; 0 before the first loss.
    - ``alpha``, ``beta``: the flow's thresholds, packets; in the simulator ``fluid`` the function
      ``drift`` of Vegas gets instead the two backlogs between which it keeps its window.
    - ``round_trips``: number of round trips since its last loss, or since its start if there was
      none; a real number.

    The numbers that a law keeps are further fields: if ``register_law`` was called with
    ``state={"max_rtt": 0.0}``, the functions of the law can read ``f.max_rtt``, too.
    """

    window: float
    rtt: float
    base_rtt: float
    backlog: float
    elapsed: float
    memory: float
    alpha: float
    beta: float
    round_trips: float = 0.0


@functools.cache
def with_numbers(names: tuple[str, ...]) -> Any:
    """The class of the ``Source`` of a law that keeps the numbers ``names``.

    These numbers are further fields, after those of ``Source``. Without ``names`` it is ``Source``.
    """
    return collections.namedtuple("Source", (*Source._fields, *names)) if names else Source


@functools.cache
def tested(kind: Any) -> Any:
    """A class like the ``Source`` class ``kind``, for the test calls of a law's functions.

    ``law.ask`` makes these calls. If a function reads a field that does not exist, or assigns a
    value to a field, the error says so. With a plain ``Source`` it would not always: because a
    ``Source`` is a tuple, ``f.count`` is a method of it, and the error would come later.
    """
    return type("Source", (_Tested, kind), {"__slots__": ()})


class _Tested:
    """Lets a law only read the fields of its ``Source``; the errors name what is not allowed.

    ``tested`` combines this class with a class of ``Source``.
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in ("count", "index"):  # methods of every tuple
            said = f"'Source' object has no attribute {name!r}"
            raise AttributeError(said, name=name, obj=self)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise StoreError(name=name)


class StoreError(AttributeError):
    """A law's function has assigned a value to an attribute of its ``Source``."""


def checked_state(where: str, given: Any) -> State:
    """The names and the first values of the numbers that a law keeps, as pairs.

    ``given`` has them as a dictionary or as pairs. Raises ``FieldError``, which begins with
    ``where``, for a name that Python does not allow or that ``Source`` has, for a value that is no
    number from -1e9 to 1e9, and for more than ``MOST_NUMBERS`` numbers.
    """
    try:
        pairs = dict(given)
    except (TypeError, ValueError):
        said = 'a dictionary of names and first values, such as {"max_rtt": 0.0}'
        raise FieldError(f"{where}: state", given, said) from None
    found: list[tuple[str, float]] = []
    for name, value in pairs.items():
        usual = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
        if not usual or name.startswith("_"):
            said = "a name of letters, digits and underscores, such as max_rtt"
            raise FieldError(f"{where}: state", name, said)
        if hasattr(Source, name):  # a field, or a method of every tuple
            said = f"choose a name other than {', '.join(Source._fields)}, count and index"
            raise FieldError(f"{where}: state", name, said, wrong="is a name of every Source")
        plain = isinstance(value, Real) and not isinstance(value, bool)
        if not plain or not abs(float(value)) <= LARGEST_ANSWER:
            said = f"a number from {-LARGEST_ANSWER:g} to {LARGEST_ANSWER:g}"
            raise FieldError(f"{where}: state, {name}", value, said)
        found.append((name, float(value)))
    if len(found) > MOST_NUMBERS:
        raise FieldError(f"{where}: state", len(found), f"at most {MOST_NUMBERS} numbers")
    return tuple(found)
