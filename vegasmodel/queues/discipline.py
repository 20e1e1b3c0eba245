"""What every queue discipline tells a simulator: its queues, and how many packets can wait there.

A discipline is a frozen dataclass of its parameters, derived from ``Discipline``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields.checked import Checked
from vegasmodel.stacks import Stack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Discipline(Checked):
    """The properties that most disciplines share; a discipline that differs overrides them.

    ``services`` names the queues that share a link; a single queue has the name "". With
    ``limit_counts``, the limit of a queue also counts the packet in transmission if the links
    behave as in ns-2 (``Stack.limit_counts``). ``random`` is true if random numbers decide which
    packets are dropped or marked.
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

    def room(self, buffer: float, stack: Stack, service: str = "") -> float:
        """How many packets can wait in the queue ``service``, without the one in transmission.

        ``buffer`` is the link's, in packets. ``stack`` says whether links behave as in ns-2, where
        the limit of most queues also counts the packet in transmission (``limit_counts``).
        """
        limit = self.limits(buffer)[self.services.index(service)]
        return float(waiting_room(limit, stack)) if self.limit_counts else limit


def waiting_room(limit: ArrayLike, stack: Stack) -> Floats:
    """How many packets can wait at a queue whose limit is ``limit`` packets (a number or an array).

    ``stack`` says how the links behave. If they behave as in ns-2, the limit also counts the packet
    in transmission, which does not wait. So one packet fewer can wait there (at least 0).
    """
    room: Floats = np.maximum(np.asarray(limit, dtype=np.float64) - stack.limit_counts, 0.0)
    return room
