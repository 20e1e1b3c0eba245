"""Defines the base class of all queue disciplines, which says how many packets a queue may hold.

A link asks its discipline how many packets can wait in each of its queues. A discipline is a frozen
dataclass of its parameters, derived from ``Discipline``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.fields.checked import ShownAsCall
from vegasmodel.stacks.stack import Floats, Stack


@dataclass(frozen=True, repr=False)
class Discipline(ShownAsCall):
    """The properties that most queue disciplines share; a discipline that differs overrides them.

    - ``services``: the names of the queues that share a link. A single queue has the name "".
    - ``limit_counts``: True if, in scenarios whose links behave as in ns-2, the limit of a queue
      also counts the packet in transmission.
    - ``random``: True if random numbers decide which packets are dropped or marked.
    """

    services: ClassVar[tuple[str, ...]] = ("",)
    limit_counts: ClassVar[bool] = True
    random: ClassVar[bool] = False

    def limits(self, buffer: float) -> tuple[float, ...]:
        """How many packets each queue of the link holds at most, as whole numbers.

        The queues are in the order in which the class names them (``services``). Most disciplines
        have a single queue, whose limit is the link's ``buffer`` in packets, rounded down.
        """
        return (float(np.floor(buffer)),)

    def waiting(self, limit: ArrayLike, stack: Stack) -> Floats:
        """How many packets can wait in a queue that holds at most ``limit`` packets.

        ``limit`` is a number or an array. ``stack`` is the TCP implementation that decides how
        links behave. If they behave as in ns-2, the limit of most queues also counts the packet in
        transmission (``limit_counts``), which does not wait. So one packet fewer can wait there (at
        least 0).
        """
        counted = stack.limit_counts if self.limit_counts else 0.0
        return np.maximum(np.asarray(limit, dtype=np.float64) - counted, 0.0)
