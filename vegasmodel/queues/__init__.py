"""Defines the queue disciplines of a link, one per file: drop-tail, RED, Rate-Delay services."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from vegasmodel.fields import checked
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.fields.rules import Choice
from vegasmodel.queues.discipline import Discipline
from vegasmodel.queues.droptail import DropTail
from vegasmodel.queues.rate_delay import RateDelay
from vegasmodel.queues.red import Red

__all__ = ["DISCIPLINES", "Discipline", "DropTail", "Queue", "QueueRule", "RateDelay", "Red"]

Queue = DropTail | Red | RateDelay
"""Any discipline."""
DISCIPLINES: Mapping[str, type[Any]] = MappingProxyType(
    {cls.discipline: cls for cls in get_args(Queue)}
)
"""The disciplines by name: what the key ``discipline`` of a scenario file may be."""


class QueueRule:
    """Reads, checks and writes the table ``queue`` of a link in a scenario file.

    The key ``discipline`` of the table decides which other keys are allowed.
    """

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """Make a ``Queue`` from the table ``value`` of a scenario file.

        ``where`` is the table's name, which errors show. ``packet_size`` is in bytes.

        Raises ``FieldError`` if ``value`` is not a table, if its discipline is missing or unknown,
        and if another key, or its value, is wrong.
        """
        if not isinstance(value, Mapping):
            kinds = ", ".join(cls.__name__ for cls in DISCIPLINES.values())
            allowed = f'a table such as {{ discipline = "droptail" }}; in Python one of {kinds}'
            raise FieldError(where, value, allowed)
        key = f"{where}.discipline"
        if "discipline" not in value:
            raise FieldError(key, None, f"one of {', '.join(DISCIPLINES)}", wrong=MISSING)
        Choice(tuple(DISCIPLINES)).check(value["discipline"], key)
        return checked.read(DISCIPLINES[value["discipline"]], value, where, packet_size)

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a ``Queue``."""
        if not isinstance(value, Queue):
            *others, last = (cls.__name__ for cls in DISCIPLINES.values())
            raise FieldError(where, value, f"a {', '.join(others)} or {last}")

    def write(self, value: Any) -> dict[str, Any]:
        """Convert the queue to a table for a scenario file, with the key ``discipline`` first."""
        return {"discipline": value.discipline} | checked.write_table(value)


def __dir__() -> list[str]:
    return sorted(__all__)
