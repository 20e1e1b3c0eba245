"""What an implementation of TCP adds to a law, one stack a file: ``paper``, ``ns2``, ``linux``.

A scenario's ``variant`` names the stack.  Closed forms, simulators and packet drivers all take
the dead zone of Vegas and the limit of a buffer from here.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.stacks.linux import LINUX
from vegasmodel.stacks.ns2 import NS2
from vegasmodel.stacks.paper import PAPER
from vegasmodel.stacks.stack import Stack

__all__ = ["STACKS", "Stack", "dead_zone", "waiting_room"]

Floats = NDArray[np.float64]

STACKS = MappingProxyType({stack.name: stack for stack in (PAPER, NS2, LINUX)})
"""The stacks by name."""


def dead_zone(alpha: ArrayLike, beta: ArrayLike, variant: str) -> tuple[Floats, Floats]:
    """Backlogs below which a Vegas window grows and above which it shrinks, packets.

    Between them it rests.  The lower edge belongs to the dead zone, the upper one in ``paper``
    only.  Raises ``ValueError`` for an unknown variant, and where beta is below alpha.
    """
    stack = find(variant)
    a, b = np.broadcast_arrays(
        np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    )
    if np.any(b < a):
        raise ValueError("beta is below alpha: the window never rests")
    return np.maximum(a - stack.below_alpha, 0.0), b + stack.above_beta


def waiting_room(buffer: ArrayLike, variant: str) -> Floats:
    """Packets that can wait at a drop-tail queue of ``buffer``, that in transmission not counted.

    Raises ``ValueError`` for an unknown variant.
    """
    room: Floats = np.maximum(
        np.asarray(buffer, dtype=np.float64) - find(variant).limit_counts, 0.0
    )
    return room


def find(variant: str) -> Stack:
    """The stack of that name.  Raises ``ValueError``: which there are."""
    if variant not in STACKS:
        raise ValueError(f"variant {variant!r}: one of {', '.join(STACKS)}")
    return STACKS[variant]


def __dir__() -> list[str]:
    return sorted(__all__)
