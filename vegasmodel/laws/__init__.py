"""Finds congestion control laws by their names, and adds laws that a user writes.

A law says how the window grows, and what a loss does to it. Each law of this package has a file in
this folder. The function ``drift`` of a law returns the growth of the window in packets per round
trip. Some laws also have functions that only the simulator ``rounds`` uses.

``BUILT_IN`` contains the laws of this package. A user adds a law with ``register_law``. Another
installed package may also offer a law, which is loaded when its name is first used.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.laws import discovery
from vegasmodel.laws.built_in import BUILT_IN
from vegasmodel.laws.law import (
    FUNCTIONS,
    Law,
    Numbers,
    Recovery,
    Rule,
    SlowStart,
    ask,
    ask_all,
    place,
)
from vegasmodel.laws.source import Source

__all__ = [
    "BUILT_IN", "Law", "Source", "add", "files", "find", "foreign", "known", "names",
    "register_file", "register_law", "registered",
]  # fmt: skip

_OF_THE_PAPERS = ("vegas", "reno", "newreno", "sack", "tahoe")  # those that closed forms predict

# By default a flow has its law's name, and texts such as ratio:a/b=1 contain it: no "/", no "="
NAMES = "a name of at most 60 letters, digits, hyphens and underscores, such as my-law"

# the arguments of ``register_law`` other than the name and the function ``drift``
PROPERTIES = (
    "cut", "decrease", "delay_based", "once_a_round", "recovery", "remember", "slow_start",
    "state", "update",
)  # fmt: skip

# When a law is registered, its functions are called once with each of these states of a sender.
_USUAL = Source(
    window=20.0,
    rtt=0.11,
    base_rtt=0.1,
    backlog=1.8,
    elapsed=1.0,
    memory=30.0,
    alpha=2.0,
    beta=4.0,
    round_trips=9.1,
)
# The same with a larger window. If ``cut`` returns less than a packet for both states, its author
# has returned a factor by mistake, not a window (``add``).
_LARGE = _USUAL._replace(window=200.0, backlog=18.0, memory=300.0)
TESTED = (_USUAL, _LARGE)
_registered: dict[str, Law] = {}  # the laws of users and of other packages, by name
_files: dict[Path, tuple[str, ...]] = {}  # the users' files that were run, and the laws of each


def names() -> tuple[str, ...]:
    """The names of all laws of congestion control that a scenario may use at present."""
    loaded = (*(law.name for law in BUILT_IN), *_registered)
    return (*loaded, *sorted(set(discovery.installed()) - set(loaded)))


def known(name: object) -> bool:
    """Whether there is a law of congestion control with this name."""
    loaded = any(law.name == name for law in BUILT_IN) or name in _registered
    return loaded or name in discovery.installed()


def find(name: str) -> Law:
    """The law of congestion control with the name ``name``.

    If an installed package offers the law, the module that registers it is imported first. Raises
    ``FieldError`` if that module fails or does not register the law. If no law has this name, the
    ``FieldError`` lists the names of all laws.
    """
    for law in (*BUILT_IN, *_registered.values()):
        if law.name == name:
            return law
    if name in discovery.installed():
        discovery.load(name)
        if name in _registered:
            return _registered[name]
        where = f"its entry point in the group {discovery.GROUP} names this module"
        said = f"{discovery.should_register(name)}, and does not ({where})"
        raise FieldError("law", name, said, wrong=discovery.NOT_LOADED)
    raise FieldError("law", name, f"one of {', '.join(names())}{nearest(name, names())}")


def registered(laws: Iterable[str]) -> list[Law]:
    """The laws of congestion control named in ``laws`` that are not laws of this package.

    A user or another package has registered them. Each is returned once, sorted by name.
    """
    return [_registered[name] for name in sorted(set(laws) & set(_registered))]


def foreign(laws: Iterable[str]) -> str | None:
    """Why the closed forms from the papers have no result for flows with these ``laws``.

    The closed forms are for Vegas, Reno, NewReno, SACK and Tahoe only. The result is a text that
    names the other congestion controls in ``laws``, or None if there are none.
    """
    other = sorted({name for name in laws if name not in _OF_THE_PAPERS})
    noun = "law" if len(other) == 1 else "laws"
    return f"no closed form has the {noun} {', '.join(other)}" if other else None


def register_law(
    name: str,
    drift: Rule | None = None,
    *,
    decrease: float | None = None,
    cut: Rule | None = None,
    remember: Numbers | None = None,
    state: Mapping[str, float] | None = None,
    update: Numbers | None = None,
    once_a_round: bool = False,
    delay_based: bool = False,
    slow_start: SlowStart | None = None,
    recovery: Recovery = "scoreboard",
    **unknown: Any,
) -> Callable[[Rule], Rule]:
    """Add a law of congestion control for the simulators ``fluid`` and ``rounds``.

    ``name`` has letters, digits, hyphens and underscores.  It does not begin with a hyphen, and is
    not the name of a law of the package, such as "reno", in small or capital letters.

    The law's function ``drift`` takes a ``Source``, which is the state of the sender. It returns
    the change of the window in packets per round trip. Use ``register_law`` as its decorator:

        @vm.register_law("my-law", delay_based=True)
        def drift(f):
            return f.alpha - f.backlog      # packets per round trip

    The other arguments are properties of the law:

    - ``decrease``: the factor by which a loss multiplies the window; 0.5 by default.
    - ``cut``: a function in place of ``decrease``. It takes a ``Source`` at a loss, and returns the
      window after the loss, packets.
    - ``remember``: a function that takes a ``Source`` at a loss, and returns a number. The law can
      read this number as ``memory`` until the next loss (example: ``laws/cubic.py``). By default it
      is the window at the loss. In a law with ``state`` it returns the new numbers of the state,
      before ``cut`` is called, and ``memory`` is the window at the loss.
    - ``state``: the names and first values of up to eight numbers that the law keeps, such as
      ``{"max_rtt": 0.0}``. They are further fields of the ``Source`` that its functions get.
    - ``update``: a function that takes a ``Source`` at the end of each round trip without a
      recovery, before the law decides. It returns the new numbers of the ``state`` as a tuple, in
      the order of ``state``.
    - ``once_a_round``: True if the window changes once per round trip, not when ACKs arrive.
    - ``delay_based``: True if the law reacts to delay.
    - ``slow_start``: when slow start ends: "until loss"; "gamma", at a loss or at a backlog of
      gamma; or "none", without slow start at the beginning. The default is "gamma" for a law with
      ``delay_based``, and "until loss" for others.
    - ``recovery``: how the sender repairs losses: "scoreboard" (as SACK does), "hole by hole" (as
      NewReno), "one hole" (as Reno) or "slow start" (as Tahoe).

    Numba compiles these functions and the Python functions that they call. Numba
    knows arithmetic, ``math`` and functions of NumPy. If the name is registered twice, the second
    law replaces the first.

    Raises ``FieldError`` for a wrong name, for a wrong or ``unknown`` property, and for a function
    that fails or returns no number. If a function fails only later, during a simulation,
    ``predict`` returns a prediction with ``applicable=False``, and ``simulate`` and ``limit_cycle``
    raise ``FieldError``.
    """
    _check_name(name)
    for key in unknown:
        near = nearest(key, PROPERTIES)
        raise FieldError(f"law {name}", key, f"a property of a law: {', '.join(PROPERTIES)}{near}")
    if cut is not None and decrease is not None:
        said = "leave it out: the function cut returns the window after a loss"
        raise FieldError(f"law {name}: decrease", decrease, said)

    usual_end: SlowStart = "gamma" if delay_based is True else "until loss"
    # ``Law`` checks the properties now, although the decorator gets the function ``drift`` later
    law = Law(
        name,
        lambda _: 0.0,
        decrease=0.5 if decrease is None else decrease,
        cut=cut,
        remember=remember,
        state={} if state is None else state,  # type: ignore[arg-type]  # ``Law`` makes pairs of it
        update=update,
        once_a_round=once_a_round,
        delay_based=delay_based,
        slow_start=usual_end if slow_start is None else slow_start,
        recovery=recovery,
    )

    def added(rule: Rule) -> Rule:
        """Add the law with this function ``drift``, and return the function."""
        add(dataclasses.replace(law, drift=rule))
        return rule

    if drift is not None:
        added(drift)
    return added


def _check_name(name: object) -> None:
    """Raise ``FieldError`` unless a user's law may have this name."""
    if callable(name):  # the decorator was used without parentheses, so it got the function itself
        said = getattr(name, "__name__", name)
        raise FieldError("law", said, 'a name in quotes, as in @vm.register_law("my-law")')
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w-]{0,59}", name):
        raise FieldError("law", name, NAMES)
    for ours in (law.name for law in BUILT_IN):
        if ours == name.casefold():
            said = "choose another name, such as my-law"
            wrong = "is the name of a law of the package"
            wrong += "" if ours == name else f", {ours}, but for capital letters"
            raise FieldError("law", name, said, wrong=wrong)


def add(law: Law) -> None:
    """Add a user's law of congestion control to the known laws.

    Each function of the law is first called as a test. Raises ``FieldError`` if a function
    fails, or if its result is not a number from -1e9 to 1e9 (for ``cut`` from 0 to 1e9). Raises it
    also if ``cut`` seems to return a factor: less than a packet, whatever the window is.
    """
    usual, large = law.source(_USUAL), law.source(_LARGE)
    for each in FUNCTIONS:
        if getattr(law, each) is not None:
            found = ask(law, each, usual)
            if each == "cut" and 0.0 < found < 1.0 and 0.0 < ask(law, each, large) < 1.0:
                said = f"the window after a loss, packets, not a factor: {found:.3g} * f.window"
                raise FieldError(f"law {law.name}: cut", found, f"{said} ({place(law.cut)})")
    if law.update is not None:  # test all functions with the numbers that ``update`` returns, too
        later = law.source(_USUAL, ask_all(law, "update", usual))
        for each in FUNCTIONS:
            if getattr(law, each) is not None:
                ask(law, each, later)
    _registered[law.name] = law


def register_file(path: str | Path) -> None:
    """Run a Python file that registers congestion controls, unless it was run before.

    Raises ``FieldError`` if the file cannot be run, if it registers no law, or if one of its laws
    has the name of a law from another file that was run before.
    """
    path = Path(path)
    if path.absolute() in _files:
        return
    before = dict(_registered)
    discovery.run(path)  # adds the file's laws to ``_registered``
    new = tuple(name for name, law in _registered.items() if before.get(name) is not law)
    if not new:
        raise FieldError("laws", str(path), discovery.ALLOWED)
    for other_file, its_laws in _files.items():
        if in_both := set(its_laws) & set(new):
            said = f"laws of other names than those of {other_file}: {', '.join(sorted(in_both))}"
            raise FieldError("laws", str(path), said)
    _files[path.absolute()] = new


def files() -> tuple[Path, ...]:
    """The Python files that register laws and that this process has run.

    If a study uses several processes, each new process runs the same files, so that it knows the
    same laws.
    """
    return tuple(_files)


def __dir__() -> list[str]:
    return sorted(__all__)
