"""Defines the class ``Law``: a congestion control law says how a window grows and shrinks.

A law consists of constants and of up to four functions:

- ``drift`` returns the growth of the window in packets per round trip.
- ``cut`` returns the window after a loss.
- ``remember`` is called at a loss. It returns a number, which the law's functions find in
  ``Source.memory`` until the next loss.
- ``update`` is called once per round trip. It returns the numbers that the law keeps (``state``).
  For a law that keeps such numbers, ``remember`` returns them, too.

Each function takes one argument, a ``Source``, which holds the state of the sender. The simulators
compile the functions with Numba, so a function may use only what Numba can compile: arithmetic,
``math`` and most functions of NumPy. Some laws of this package have more functions, which only the
packet simulator ``rounds`` calls (``laws/packets.py``).
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, get_args

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.laws.packets import PacketRules
from vegasmodel.laws.source import (
    LARGEST_ANSWER,
    Source,
    State,
    StoreError,
    checked_state,
    tested,
    with_numbers,
)

FUNCTIONS = ("drift", "cut", "remember", "update")
"""The functions of a law that the simulators call by their addresses (``engines/outside.py``)."""
Rule = Callable[[Any], float]
"""A function of a ``Source``, which may have the numbers of the law (``Law.state``) as fields."""
Numbers = Callable[[Any], float | tuple[float, ...]]
"""A function of a ``Source`` that returns the numbers that a law keeps (``Law.state``)."""
Recovery = Literal["scoreboard", "hole by hole", "one hole", "slow start"]
SlowStart = Literal["until loss", "gamma", "none"]
PerAck = Literal["drift", "one a window", "thresholds"]


@dataclass(frozen=True)
class Law:
    """One law of congestion control.

    ``drift`` returns the change of the window in packets per round trip. A loss multiplies the
    window by ``decrease``. But if the law has a function ``cut``, this function returns the window
    after the loss. ``state`` has the names and the first values of the numbers that the law keeps.
    They are further fields of the law's ``Source``. ``update`` returns their new values once per
    round trip, before ``drift`` decides, but not during a recovery. ``remember`` returns them at a
    loss, before ``cut`` is called. ``recovery`` says how the sender repairs its losses:

    * ``scoreboard``: the sender knows all missing packets, and retransmits them in one round trip.
    * ``hole by hole``: the sender learns of one missing packet per round trip.
    * ``one hole``: the sender retransmits one packet. If more are missing, it waits for its timer.
    * ``slow start``: the sender begins slow start with a window of one packet.

    Raises ``FieldError`` for a field of the wrong kind or out of range.
    """

    name: str
    drift: Rule  # the growth of the window outside slow start, packets per round trip
    decrease: float = 0.5  # factor on the window at a loss; Vegas has ``Stack.decrease`` instead
    cut: Rule | None = None  # the window after a loss, in place of ``decrease``
    remember: Numbers | None = None  # what to keep at a loss; without it, the window at the loss
    state: State = ()  # names and first values of the numbers that the law keeps
    update: Numbers | None = None  # the new values of these numbers after a round trip
    # ``per_ack`` says how the simulator ``rounds`` moves the window W in congestion avoidance:
    # - "drift": each ACK adds drift/W packets to W. Here drift is the result of the law's function
    #   ``drift``.
    # - "one a window": W grows by one packet per W ACKs, as in Reno. Each ACK adds 1/W packets, but
    #   in Linux the sender counts W ACKs, and then adds a whole packet.
    # - "thresholds": once per round trip the sender compares the backlog with alpha and beta, as
    #   Vegas does.
    per_ack: PerAck = "drift"
    packets: PacketRules | None = None  # the functions for ``per_ack``; None for "drift"
    once_a_round: bool = False  # it decides once per round trip, by what it measured in this round
    delay_based: bool = False  # it reads the round-trip time or a quantity computed from it
    overdue_checks: bool = False  # at ACKs it checks for overdue packets, if ``Stack`` says so
    slow_start: SlowStart = "until loss"  # "gamma": slow start also ends at a backlog of gamma
    recovery: Recovery = "scoreboard"
    is_cubic: bool = False  # with ``Stack.bictcp``, ``rounds`` runs the kernel's CUBIC instead
    # ``kernel_drift`` is set for CUBIC only, whose ``drift`` follows RFC 9438. The CUBIC of Linux,
    # which ns-2 also contains, lets the window grow differently. If a flow runs this CUBIC
    # (``bictcp`` of the ``Stack``, which describes its TCP implementation), the simulator ``fluid``
    # calls ``kernel_drift``, and uses the function that it returns in place of ``drift``. The
    # arguments are two fields of the ``Stack`` (``reno_windows``: in how many RTTs the window that
    # Reno would have grows by a packet; ``whole_window``: whether windows are whole numbers), and
    # whether the RTTs of all flows are equal.
    kernel_drift: Callable[[float, bool, bool], Rule] | None = None
    # (stack's name, flow's ``decrease``) -> a text on what the rules above leave out of the law
    left_out: Callable[[str, float], str] | None = None

    @property
    def keeps_backlog(self) -> bool:
        """Whether the sender keeps a backlog between alpha and beta, as Vegas does."""
        return self.per_ack == "thresholds"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that the law keeps (``state``)."""
        return tuple(name for name, _ in self.state)

    @property
    def first(self) -> tuple[float, ...]:
        """The first values of the numbers that the law keeps (``state``)."""
        return tuple(value for _, value in self.state)

    def returns_state(self, function: str) -> bool:
        """Whether the law's function of this name returns all numbers that the law keeps."""
        return function in ("remember", "update") and len(self.state) > 0

    def source(self, plain: Source, numbers: Iterable[float] | None = None) -> Any:
        """The ``Source`` that the law's functions get: ``plain`` and the numbers that it keeps.

        Without ``numbers``, these have their first values.
        """
        return with_numbers(self.names)(*plain, *(self.first if numbers is None else numbers))

    def __post_init__(self) -> None:
        """Check all fields, and make pairs of ``state``, which may be given as a dictionary."""
        where = f"law {self.name}"
        object.__setattr__(self, "state", checked_state(where, self.state))
        # the functions, and whether they fit the numbers that the law keeps
        for name in FUNCTIONS:
            rule: Any = getattr(self, name)
            compiled = hasattr(rule, "py_func")  # by Numba
            left_out = rule is None and name != "drift"
            if not (isinstance(rule, FunctionType) or compiled or left_out):
                allowed = "a function of a Source (def or lambda), which Numba can compile"
                if name == "cut" and isinstance(rule, Real):
                    allowed += f"; a constant factor is decrease={rule}"
                raise FieldError(f"{where}: {name}", rule, allowed)
        if self.update is not None and not self.state:
            said = "a law with state, which names the numbers that update returns"
            raise FieldError(f"{where}: update", place(self.update) or "update", said)
        if self.state and self.update is None and self.remember is None:
            said = "a law with a function update or remember, which returns these numbers"
            raise FieldError(f"{where}: state", ", ".join(self.names), said)
        # the constants
        for name in ("once_a_round", "delay_based"):
            if not isinstance(getattr(self, name), bool):
                raise FieldError(f"{where}: {name}", getattr(self, name), "True or False")
        if self.left_out is not None and not callable(self.left_out):
            raise FieldError(f"{where}: left_out", self.left_out, "a function that gives a text")
        decrease: Any = self.decrease
        if not isinstance(decrease, Real) or not 0.0 < float(decrease) <= 1.0:
            raise FieldError(f"{where}: decrease", decrease, "a number in (0, 1]")
        for name, choices in (
            ("recovery", Recovery),
            ("slow_start", SlowStart),
            ("per_ack", PerAck),
        ):
            value: Any = getattr(self, name)
            if not isinstance(value, str) or value not in get_args(choices):
                allowed = f"one of {', '.join(get_args(choices))}"
                raise FieldError(f"{where}: {name}", value, allowed)


def place(rule: Any, error: Exception | None = None) -> str:
    """A text for error messages that says where a congestion control's function is in its file.

    An example is "my_law.py, line 7".  If ``error`` is given, the line is the one in the function
    at which this error occurred.  The text is empty if Python does not know the file.
    """
    code = getattr(rule, "__code__", None)
    if code is None:
        return ""
    file, line = Path(code.co_filename).name, code.co_firstlineno
    if error is not None:
        for said in re.findall(rf'File ".*?{re.escape(file)}", line (\d+)', str(error)):  # Numba's
            line = int(said)
        for frame, at in traceback.walk_tb(error.__traceback__):
            line = at if frame.f_code.co_filename == code.co_filename else line
    return f"{file}, line {line}"


def must_return(law: Law, name: str, source: Source) -> str:
    """A text for error messages: what the law's function ``name`` must return for ``source``."""
    saw = ", ".join(f"{key} {value:.6g}" for key, value in source._asdict().items())
    what = "a number"
    if law.returns_state(name):
        count = "a number" if len(law.state) == 1 else f"{len(law.state)} numbers"
        what = f"{count} ({', '.join(law.names)})"
    limits = f"from {least_answer(name):g} to {LARGEST_ANSWER:g}"
    return f"it must return {what} {limits}; its Source had {saw}"


def _takes_one(rule: Any, where: str) -> None:
    """Raise ``FieldError`` unless a congestion control's function takes one argument."""
    try:
        takes = inspect.signature(rule)
    except (TypeError, ValueError):  # Python does not know the arguments; the test call will fail
        return
    try:
        takes.bind(None)
    except TypeError:
        allowed = f"a function of one argument, the Source ({place(rule)})"
        raise FieldError(where, f"a function of {takes}", allowed) from None


def least_answer(name: str) -> float:
    """The least number that the function ``name`` of a congestion control may return.

    It is 0 for ``cut``, which returns a window, and -``LARGEST_ANSWER`` for the other functions.
    """
    return 0.0 if name == "cut" else -LARGEST_ANSWER


def ask(law: Law, name: str, source: Source) -> float:
    """Call a congestion control's function as a test, without compiling it; returns its result.

    ``name`` is the name of the function in ``law``, and ``source`` the state of the sender with
    which it is called (``law.source``). The function may return a number or a truth value, which
    counts as 1 or 0. If it returns all numbers that the law keeps, the result is the first of them.
    Raises ``FieldError`` if the function fails, or if its result is not from -1e9 to 1e9 (for
    ``cut`` from 0 to 1e9).
    """
    return ask_all(law, name, source)[0]


def ask_all(law: Law, name: str, source: Source) -> tuple[float, ...]:
    """All numbers that a congestion control's function returns, as ``ask`` tests them."""
    where, rule = f"law {law.name}: {name}", getattr(law, name)
    argument = tested(with_numbers(law.names))(*source)
    try:
        found: Any = rule(argument)
    except Exception as error:
        _takes_one(rule, where)
        allowed = must_return(law, name, source)
        raise _of_raised(law, name, argument, error, allowed) from error
    # the function returns one number, or in a tuple all numbers that the law keeps
    several = law.returns_state(name) and isinstance(found, tuple)
    all_found = found if several else (found,)
    expected = len(law.state) if law.returns_state(name) else 1
    least = least_answer(name)
    if len(all_found) != expected or not all(_usable(each, least) for each in all_found):
        raise FieldError(where, found, f"{must_return(law, name, source)} ({place(rule)})")
    return tuple(map(float, all_found))


def _of_raised(law: Law, name: str, source: Any, error: Exception, allowed: str) -> FieldError:
    """The error for a user whose congestion control's function ``name`` has raised ``error``.

    The function was called with ``source``, and ``allowed`` says what it must return. Two mistakes
    are frequent, so the message says what to do: the function assigns a value to a field of its
    ``Source``, or reads a field that a ``Source`` does not have.
    """
    where, at = f"law {law.name}: {name}", place(getattr(law, name), error)
    if isinstance(error, StoreError):
        reads = "the functions of a law only read their Source, and return numbers"
        kept = "remember returns the number to keep after a loss"
        if law.state:
            kept = f"update and remember return the new {', '.join(law.names)}"
        return FieldError(where, f"a new value of {error.name}", f"{reads}; {kept} ({at})")
    if isinstance(error, AttributeError) and error.obj is source:
        fields = with_numbers(law.names)._fields
        allowed = f"a Source has {', '.join(fields)}{nearest(error.name, fields)}"
    said = f"{type(error).__name__}: {error}"
    return FieldError(where, said, f"{allowed} ({at})", wrong="was raised")


def _usable(found: Any, least: float) -> bool:
    """Whether a result of a law's function is a number from ``least`` to ``LARGEST_ANSWER``."""
    return isinstance(found, Real | np.bool_) and least <= float(found) <= LARGEST_ANSWER
