"""Queue disciplines of a link: drop-tail, RED, Rate-Delay services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vegasmodel import rules
from vegasmodel.rules import Boolean, Checked, Choice, Quantity
from vegasmodel.rules import declare as field
from vegasmodel.units import FieldError


@dataclass(frozen=True)
class DropTail(Checked):
    """First in, first out; a packet that finds the buffer full is lost."""

    discipline: Literal["droptail"] = field(Choice(("droptail",)), "droptail")


@dataclass(frozen=True)
class Red(Checked):
    """Random early detection: drops or marks with a probability that grows with the mean queue."""

    min_threshold: float = field(Quantity("packets"))
    max_threshold: float = field(Quantity("packets", low_open=True))
    max_probability: float = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    weight: float = field(Quantity("fraction", high=1.0, low_open=True), 0.002)
    ecn: bool = field(Boolean(), False)
    gentle: bool = field(Boolean(), False)
    discipline: Literal["red"] = field(Choice(("red",)), "red")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_threshold <= self.min_threshold:
            raise FieldError(
                "queue.max_threshold",
                self.max_threshold,
                f"more than min_threshold, {self.min_threshold:g}",
            )


@dataclass(frozen=True)
class RateDelay(Checked):
    """Rate-Delay services (``podlesny``): two queues, served so that rates stand as k : 1 a flow.

    ``delay_buffer`` is the D queue's part of the buffer.
    """

    k: float = field(Quantity("fraction", low_open=True), 1.0)
    delay_buffer: float = field(Quantity("fraction", high=1.0, low_open=True), 0.1)
    discipline: Literal["rd"] = field(Choice(("rd",)), "rd")


Queue = DropTail | Red | RateDelay
_QUEUES: dict[str, type[Any]] = {"droptail": DropTail, "red": Red, "rd": RateDelay}


class QueueRule:
    """A queue table: ``discipline`` decides which keys it has."""

    def read(self, value: object, where: str, packet_size: float) -> Any:
        """Read the table by the rules of its discipline."""
        if not isinstance(value, Mapping):
            raise FieldError(where, value, 'a table such as { discipline = "droptail" }')
        Choice(tuple(_QUEUES)).check(value.get("discipline"), f"{where}.discipline")
        return rules.read(_QUEUES[value["discipline"]], value, where, packet_size)

    def check(self, value: Any, where: str) -> None:
        """Accept one of the disciplines."""
        if not isinstance(value, Queue):
            raise FieldError(where, value, "a DropTail, Red or RateDelay")
