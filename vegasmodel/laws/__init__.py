"""Laws of congestion control, one a file: data, drift in the fluid limit, what a loss does.

``BUILT_IN`` is the registry; ``register_law`` adds a law from outside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from vegasmodel.fields.units import FieldError
from vegasmodel.laws import cubic, newreno, reno, sack, tahoe, vegas
from vegasmodel.laws.law import Law, Rule, Source, ask

__all__ = ["BUILT_IN", "Law", "Source", "find", "foreign", "names", "register_law"]

BUILT_IN: tuple[Law, ...] = (
    vegas.LAW,
    reno.LAW,
    newreno.LAW,
    sack.LAW,
    tahoe.LAW,
    cubic.LAW,
)
"""The registry: the package's own laws, one line each."""
_OF_THE_PAPERS = ("vegas", "reno", "newreno", "sack", "tahoe")  # what closed forms know
"""The package's own laws; the engines number them in this order."""

# what a rule is tried upon when it is registered
_USUAL = Source(20.0, 0.11, 0.1, 1.8, 1.0, 30.0, 2.0, 4.0)
_outside: dict[str, Law] = {}


def names() -> tuple[str, ...]:
    """Names of the laws that a scenario may use now."""
    return (*(law.name for law in BUILT_IN), *_outside)


def find(name: str) -> Law:
    """The law of that name.  Raises ``FieldError``: which there are."""
    for law in (*BUILT_IN, *_outside.values()):
        if law.name == name:
            return law
    raise FieldError("law", name, f"one of {', '.join(names())}")


def registered(laws: Iterable[str]) -> list[Law]:
    """Those of the laws that came from outside the package, each once."""
    return [_outside[name] for name in sorted(set(laws) & set(_outside))]


def foreign(laws: Iterable[str]) -> str | None:
    """Why only simulators can answer: laws that the papers do not have; None if there are none."""
    other = sorted({name for name in laws if name not in _OF_THE_PAPERS})
    return f"it does not know the law {', '.join(other)}" if other else None


def register_law(name: str, drift: Rule | None = None, **data: Any) -> Callable[[Rule], Rule]:
    """Add a law of congestion control, for both simulators; as a decorator, or with its drift.

        @vm.register_law("my-law", delay_based=True)
        def drift(f):
            return f.alpha - f.backlog      # packets a round trip

    The argument of ``drift``, ``cut`` and ``remember`` is a ``Source``; they give a float, and
    Numba compiles them: arithmetic and ``math``.  ``data`` holds the other fields of ``Law``.
    Where ``delay_based``, slow start ends at a backlog of gamma unless ``slow_start`` says other.
    A name that was registered before gets the new law.  Raises ``FieldError``; so does a model
    whose run finds a rule that fails, or that gives no number.
    """
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.strip()) <= 60:
        raise FieldError("law", name, "a printable name of at most 60 characters")
    if any(law.name == name for law in BUILT_IN):
        raise FieldError("law", name, "a name that no law of the package has")
    known = {field.name for field in dataclasses.fields(Law)} - {"name", "drift"}
    for key in data:
        if key not in known:
            raise FieldError(f"law {name}: {key}", data[key], f"one of {', '.join(sorted(known))}")
    if data.get("delay_based"):
        data.setdefault("slow_start", "gamma")

    def add(rule: Rule) -> Rule:
        law = Law(name, rule, **data)
        for each in ("drift", "cut", "remember"):
            if getattr(law, each) is not None:
                ask(law, each, _USUAL)
        _outside[name] = law
        return rule

    if drift is not None:
        add(drift)
    return add


def __dir__() -> list[str]:
    return sorted(__all__)
