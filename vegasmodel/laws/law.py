"""Defines the class ``Law``: a congestion control law says how a window grows and shrinks.

A law consists of constants and of up to three functions:

- ``drift`` returns the growth of the window in packets per round trip.
- ``cut`` returns the window after a loss.
- ``remember`` is called at a loss. It returns a number, which the law's functions find in
  ``Source.memory`` until the next loss.

Each function takes one argument, a ``Source``, which holds the state of the sender. The simulators
compile the functions with Numba, so a function may use only what Numba can compile: arithmetic,
``math`` and most functions of NumPy. Some laws of this package have more functions, which only the
packet simulator ``rounds`` calls (``laws/packets.py``).
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.laws.packets import PacketRules


class Source(NamedTuple):
    """The state of a sender, which the functions of a congestion control law get.

    - ``window``: congestion window, packets; at a loss, the window before the cut.
    - ``rtt``, ``base_rtt``: round-trip time as the source measures it, and the least so far, s.
    - ``backlog``: its own packets in the queue, as its TCP implementation computes them.
    - ``elapsed``: seconds since its last loss, or since its start if there was none.
    - ``memory``: what ``remember`` returned at the last loss; 0 before the first loss.
    - ``alpha``, ``beta``: the flow's thresholds, packets.
    - ``round_trips``: number of round trips since its last loss, or since its start if there was
      none; a real number.
    """

    window: float  # congestion window, packets; at a loss, the window before the cut
    rtt: float  # round-trip time as the source measures it
    base_rtt: float  # least round-trip time that it has measured, or what the scenario gives
    backlog: float  # its own packets in the queue, as its TCP implementation computes them
    elapsed: float  # seconds since its last loss (since its start, if there was none)
    memory: float  # what ``remember`` returned at the last loss; 0 before any loss
    alpha: float  # threshold, packets; in ``fluid`` Vegas gets ``stacks.dead_zone`` instead
    beta: float  # threshold, packets; as for ``alpha``
    round_trips: float = 0.0  # since its last loss (since its start, if there was none)


class _Tested(Source):
    """A ``Source`` whose errors name what a law cannot do with it.

    ``ask`` calls a law's function with it. A ``Source`` is a tuple, so Python finds a method
    ``count`` in it, and the error that follows would not say that a ``Source`` has no such field.
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in ("count", "index"):  # methods of every tuple
            said = f"'Source' object has no attribute {name!r}"
            raise AttributeError(said, name=name, obj=self)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise _StoreError(name=name)


class _StoreError(AttributeError):
    """A law's function has assigned a value to an attribute of its ``Source``."""


_Tested.__name__ = "Source"  # Python's messages contain the name of the class

# If a function of a law returns a number whose magnitude is larger than ``LARGEST_ANSWER``, this is
# an error. Windows are never so large: even a link of 1 Tbit/s with an RTT of 1 s holds only about
# 1e8 packets.
LARGEST_ANSWER = 1e9
Rule = Callable[[Source], float]
Recovery = Literal["scoreboard", "hole by hole", "one hole", "slow start"]
SlowStart = Literal["until loss", "gamma", "none"]
PerAck = Literal["drift", "one a window", "thresholds"]


@dataclass(frozen=True)
class Law:
    """One law of congestion control.

    ``drift`` returns the change of the window in packets per round trip. A loss multiplies the
    window by ``decrease``. But if the law has a function ``cut``, this function returns the window
    after the loss. ``recovery`` says how the sender repairs its losses:

    * ``scoreboard``: the sender knows all missing packets, and retransmits them in one round trip.
    * ``hole by hole``: the sender learns of one missing packet per round trip.
    * ``one hole``: the sender retransmits one packet. If more are missing, it waits for its timer.
    * ``slow start``: the sender begins slow start with a window of one packet.

    Raises ``FieldError`` for a field of the wrong kind or out of range.
    """

    name: str
    drift: Rule  # packets per round trip by which the window moves outside slow start
    decrease: float = 0.5  # factor on the window at a loss; Vegas has ``Stack.decrease`` instead
    cut: Rule | None = None  # the window after a loss, in place of ``decrease``
    remember: Rule | None = None  # the memory after a loss; by default it is the window at the loss
    # ``per_ack`` says how the simulator ``rounds`` moves the window W in congestion avoidance:
    # - "drift": each ACK adds drift/W packets to W. Here drift is the result of the law's function
    #   ``drift``.
    # - "one a window": W grows by one packet per W ACKs, as in Reno. Each ACK adds 1/W packets, but
    #   in Linux the sender counts W ACKs, and then adds a whole packet.
    # - "thresholds": once per round trip the sender compares the backlog with alpha and beta, as
    #   Vegas does.
    per_ack: PerAck = "drift"
    packets: PacketRules | None = None  # the functions for ``per_ack``; None for "drift"
    once_a_round: bool = False  # it decides once per round trip, by what it measured in this time
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

    def __post_init__(self) -> None:
        where = f"law {self.name}"
        for name, optional in (("drift", False), ("cut", True), ("remember", True)):
            rule: Any = getattr(self, name)
            compiled = hasattr(rule, "py_func")  # by Numba
            if not (isinstance(rule, FunctionType) or compiled or (optional and rule is None)):
                allowed = "a function of a Source (def or lambda), which Numba can compile"
                if name == "cut" and isinstance(rule, Real):
                    allowed += f"; a constant factor is decrease={rule}"
                raise FieldError(f"{where}: {name}", rule, allowed)
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
    """A text for error messages: where a congestion control's function is, or empty if not known.

    An example is "my_law.py, line 7".  If ``error`` is given, the line is the one in the function
    at which this error occurred.
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


def must_return(name: str, source: Source) -> str:
    """A text for error messages: what the law's function ``name`` must return for ``source``."""
    saw = ", ".join(f"{key} {value:.6g}" for key, value in source._asdict().items())
    least = least_answer(name)
    return f"it must return a number from {least:g} to {LARGEST_ANSWER:g}; its Source had {saw}"


def _takes_one(rule: Any, where: str) -> None:
    """Raise ``FieldError`` unless a congestion control's function takes one argument."""
    try:
        takes = inspect.signature(rule)
    except (TypeError, ValueError):  # Python does not know it; the call will tell
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
    which it is called. The function may return a number or a truth value, which counts as 1 or 0.
    Raises ``FieldError`` if the function fails, or if its result is not from -1e9 to 1e9 (for
    ``cut`` from 0 to 1e9).
    """
    where, rule, least = f"law {law.name}: {name}", getattr(law, name), least_answer(name)
    allowed = must_return(name, source)
    _takes_one(rule, where)
    tested = _Tested(*source)
    try:
        found: Any = rule(tested)
    except _StoreError as error:
        said = f"a new value of {error.name}"
        reads = "the functions of a law only read their Source, and return numbers"
        kept = "remember returns the number to keep after a loss"
        raise FieldError(where, said, f"{reads}; {kept} ({place(rule, error)})") from error
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, AttributeError) and error.obj is tested:
            near = nearest(error.name, Source._fields)
            allowed = f"a Source has {', '.join(Source._fields)}{near} ({place(rule, error)})"
        else:
            allowed = f"{allowed} ({place(rule, error)})"
        raise FieldError(where, said, allowed, wrong="was raised") from error
    if not isinstance(found, Real | np.bool_) or not least <= float(found) <= LARGEST_ANSWER:
        raise FieldError(where, found, f"{allowed} ({place(rule)})")
    return float(found)
