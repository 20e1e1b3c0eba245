"""Describes three kinds of TCP ("stacks"): TCP as in the papers on Vegas, as in ns-2, as in Linux.

A stack adds details to a congestion control law such as Vegas, for example timers and rounding. A
flow's field ``variant`` names its stack.

``dead_zone`` returns the two backlogs between which Vegas holds its window in a given stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.fields.errors import FieldError
from vegasmodel.stacks.linux import LINUX
from vegasmodel.stacks.ns2 import NS2, NS2_2_35
from vegasmodel.stacks.paper import PAPER
from vegasmodel.stacks.stack import Floats, Stack

__all__ = ["STACKS", "Stack", "Variant", "dead_zone"]

STACKS = MappingProxyType({stack.name: stack for stack in (PAPER, NS2, LINUX)})
"""The stacks by name: what a scenario's ``variant`` may be."""
Variant = Literal["paper", "ns2", "linux"]
"""The names of the stacks, for type annotations."""
# Stacks with several sets of defaults. The keys are the stack's name and a value of the scenario's
# key ``ns2_defaults``.
_EDITIONS = MappingProxyType({(NS2.name, "2.35"): NS2_2_35})


def dead_zone(alpha: ArrayLike, beta: ArrayLike, variant: str) -> tuple[Floats, Floats]:
    """The dead zone of Vegas: the backlogs (low, high), packets, between which it keeps its window.

    The window grows at a backlog below ``low`` and shrinks at one above ``high``. At the backlog
    ``low`` itself Vegas keeps its window. At the backlog ``high`` itself it does so only in the
    variant ``paper``. ``low`` is at least 0. Raises ``FieldError`` for an unknown variant and for
    beta below alpha.
    """
    stack = find(variant)
    a, b = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    if a.shape != b.shape:
        a, b = np.broadcast_arrays(a, b)
    if (b < a).any():
        raise FieldError("beta", beta, "at least alpha")
    return stack.dead_zone(a, b)


def find(variant: str, ns2_defaults: str = "papers") -> Stack:
    """The TCP implementation with the name ``variant``.

    For ns-2, ``ns2_defaults`` selects its default values: those of the time of the papers
    ("papers"), or those of release 2.35 ("2.35"). If there is no implementation of this name,
    ``FieldError`` lists all names.
    """
    if variant not in STACKS:
        raise FieldError("variant", variant, f"one of {', '.join(STACKS)}")
    return _EDITIONS.get((variant, ns2_defaults), STACKS[variant])


def running(law: str, variant: str, beside: Iterable[str]) -> str:
    """The name of the TCP implementation that a source with this law and variant runs.

    ``law`` names the source's congestion control. The result is usually ``variant`` itself. But
    ``paper`` implements Vegas only. With another law and the variant ``paper``, a source runs
    ns-2's implementation, as in the papers. It runs Linux's instead if other sources have the
    variant ``linux`` and none has ``ns2``. ``beside`` holds the variants of all sources of the
    scenario.
    """
    if STACKS[variant].implements(law):
        return variant
    complete_stacks = {name for name in beside if STACKS[name].laws is None}
    return complete_stacks.pop() if len(complete_stacks) == 1 else NS2.name


def of_links(laws: Iterable[str], variants: Iterable[str], running: Iterable[str]) -> Stack:
    """The TCP implementation that decides how the links of a scenario behave: ns-2 or ``paper``.

    A scenario has one or more groups of equal flows. The arguments have one entry per group: its
    congestion control, its variant, and the implementation that it runs (see ``running``).

    In a scenario with Vegas flows, the links behave as in ns-2 if a group has the variant ``ns2``.
    In a scenario without Vegas flows, they do so if a group runs ns-2's implementation. In all
    other cases the links behave as in ``paper``.
    """
    has_vegas = any(law in (PAPER.laws or ()) for law in laws)
    return NS2 if NS2.name in (variants if has_vegas else running) else PAPER


def __dir__() -> list[str]:
    return sorted(__all__)
