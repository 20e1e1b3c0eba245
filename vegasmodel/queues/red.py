"""RED, random early detection: the queue drops or marks packets at random before it is full.

Source: Floyd and Jacobson, 1993.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from vegasmodel.fields.checked import as_written
from vegasmodel.fields.checked import declare as field
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.fields.rules import Boolean, BufferRule, Choice, OrText, Quantity, known
from vegasmodel.queues.discipline import Discipline


@dataclass(frozen=True, repr=False)
class Red(Discipline):
    """Random early detection (RED).

    An arriving packet is dropped at random; with ``ecn`` it is marked instead. The probability of
    a drop or a mark depends on the mean queue. It rises from 0 at ``min_threshold`` to
    ``max_probability`` at ``max_threshold``. Both thresholds are in packets, or are texts with any
    unit of a buffer, such as ``"5 ms"``. Beyond ``max_threshold`` the probability is 1; with
    ``gentle`` it rises to 1 at twice ``max_threshold``. ``weight`` is the weight of the newest
    queue length in the mean. Even with ``ecn``, ns-2 drops the packet if the probability is above
    ``Stack.marks_up_to``.
    """

    min_threshold: OrText[float] = field(BufferRule("buffer"))
    max_threshold: OrText[float] = field(BufferRule("buffer", low_open=True))
    max_probability: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    weight: OrText[float] = field(Quantity("fraction", high=1.0, low_open=True), 0.002)
    ecn: bool = field(Boolean(), False)
    gentle: bool = field(Boolean(), False)
    discipline: Literal["red"] = field(Choice(("red",)), "red")
    limit_counts: ClassVar[bool] = False
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check all fields; ``max_threshold`` must exceed ``min_threshold``."""
        super().__post_init__()
        thresholds = (self.min_threshold, self.max_threshold)
        if known(*thresholds) and self.max_threshold <= self.min_threshold:
            raise FieldError(
                "max_threshold",
                as_written(self, "max_threshold"),
                f"more than min_threshold, {exactly(self.min_threshold)} pkt",
            )
