"""Rate-Delay services by Podlesny and Williamson: one queue for high rate, one for low delay.

The two queues share a link and its buffer. The key ``class`` of a flow chooses one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.rules import Choice, OrText, Quantity
from vegasmodel.queues.discipline import Discipline
from vegasmodel.stacks.stack import Floats


@dataclass(frozen=True, repr=False)
class RateDelay(Discipline):
    """Rate-Delay services (Podlesny and Williamson): two queues share a link and its buffer.

    Queue R offers a high rate, and queue D a low delay. A flow in queue R is to get ``k`` times the
    rate of a flow in queue D. ``delay_buffer`` is the fraction of the buffer that queue D gets.
    """

    k: float = field(Quantity("fraction", low=1e-9, high=1e9), 1.0)
    delay_buffer: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    discipline: Literal["rd"] = field(Choice(("rd",)), "rd")
    services: ClassVar[tuple[str, ...]] = ("rate", "delay")

    def limits(self, buffer: float) -> tuple[float, ...]:
        """The limits of the queues R and D in whole packets, as ``split`` divides the buffer."""
        rate, delay = split(buffer, self.delay_buffer)
        return float(rate), float(delay)


def split(buffer: ArrayLike, delay_buffer: ArrayLike) -> tuple[Floats, Floats]:
    """Divide a link's buffer between its two queues: returns ``(B_R, B_D)``, in packets.

    Queue R is for flows that want a high rate, queue D for flows that want a low delay. The buffer
    is first rounded down to whole packets. Queue D gets the fraction ``delay_buffer`` of it,
    rounded to the nearest whole number, and queue R gets the rest.

    If the buffer is infinite, each queue gets an infinite buffer, or 0 if its fraction is 0.

    Numbers and arrays are allowed; NumPy's broadcasting rules apply.
    """
    B, fraction = np.broadcast_arrays(
        np.asarray(buffer, dtype=np.float64), np.asarray(delay_buffer, dtype=np.float64)
    )
    with np.errstate(invalid="ignore"):  # 0 of an infinite buffer
        B_whole = np.floor(B)
        B_D = np.where(fraction == 0.0, 0.0, np.rint(B_whole * fraction))
        B_R = np.where(fraction == 1.0, 0.0, np.where(np.isinf(B), B, B_whole - B_D))
    return B_R, B_D
