"""Rate-Delay services (``podlesny``): two queues behind one link, and how its buffer is split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.fields.rules import Checked, Choice, OrText, Quantity
from vegasmodel.fields.rules import declare as field

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateDelay(Checked):
    """Rate-Delay services (``podlesny``): two queues, served so that rates stand as k : 1 a flow.

    ``delay_buffer`` is the D queue's part of the buffer.
    """

    k: float = field(Quantity("fraction", low=1e-9, high=1e9), 1.0)
    delay_buffer: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    discipline: Literal["rd"] = field(Choice(("rd",)), "rd")


def split(buffer: ArrayLike, delay_buffer: ArrayLike) -> tuple[Floats, Floats]:
    """Buffers ``(B_R, B_D)`` of classes R and D, packets: all of the buffer, in whole packets.

    ``podlesny`` III gives D a tenth; a router counts packets, so D gets the nearest whole number
    (ties to even) and R the rest.  An infinite buffer is infinite for both, but for a class that
    gets no part of it.  Arguments broadcast.
    """
    B, part = np.broadcast_arrays(
        np.asarray(buffer, dtype=np.float64), np.asarray(delay_buffer, dtype=np.float64)
    )
    with np.errstate(invalid="ignore"):  # 0 of an infinite buffer
        whole = np.floor(B)
        B_D = np.where(part == 0.0, 0.0, np.rint(whole * part))
        B_R = np.where(part == 1.0, 0.0, np.where(np.isinf(B), B, whole - B_D))
    return B_R, B_D
