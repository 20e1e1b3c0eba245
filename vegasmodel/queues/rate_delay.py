"""Rate-Delay services by Podlesny and Williamson: two queues share a link and its buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields.checked import Checked
from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.rules import Choice, OrText, Quantity

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateDelay(Checked):
    """Rate-Delay services (Podlesny and Williamson): two queues share a link and its buffer.

    Queue R is for a high rate, queue D for a low delay. A flow of queue R gets ``k`` times the rate
    of a flow of queue D. ``delay_buffer`` is the fraction of the buffer that queue D gets.
    """

    k: float = field(Quantity("fraction", low=1e-9, high=1e9), 1.0)
    delay_buffer: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    discipline: Literal["rd"] = field(Choice(("rd",)), "rd")


def split(buffer: ArrayLike, delay_buffer: ArrayLike) -> tuple[Floats, Floats]:
    """Buffers ``(B_R, B_D)`` of queues R and D in whole packets; they add up to the buffer.

    Podlesny and Williamson give queue D a tenth of the buffer. In this function D gets the fraction
    ``delay_buffer``, rounded to the nearest whole number of packets (ties to even), and R the rest.
    If the buffer is infinite, both parts are infinite; but a queue whose fraction is 0 gets 0.
    Arguments broadcast.
    """
    B, part = np.broadcast_arrays(
        np.asarray(buffer, dtype=np.float64), np.asarray(delay_buffer, dtype=np.float64)
    )
    with np.errstate(invalid="ignore"):  # 0 of an infinite buffer
        B_whole = np.floor(B)
        B_D = np.where(part == 0.0, 0.0, np.rint(B_whole * part))
        B_R = np.where(part == 1.0, 0.0, np.where(np.isinf(B), B, B_whole - B_D))
    return B_R, B_D
