"""Reads, checks and writes two fields of a scenario that need rules of their own.

One field is the law (congestion control) of a flow. The other lists the sequence numbers of packets
that ns-2 drops on purpose at a link. ``fields.rules.Rule`` explains the arguments of the methods.
"""

from __future__ import annotations

from typing import Any

from vegasmodel import laws
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import AsItIs, Integer, nearest

__all__ = ["LawRule", "PacketNumbers"]


class PacketNumbers:
    """Reads, checks and writes the sequence numbers of the packets that a link drops on purpose."""

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[int, ...]:
        """Read a list of packets' sequence numbers from a scenario file."""
        if not isinstance(value, list):
            raise FieldError(where, value, "a list of packet numbers")
        self.check(tuple(value), where)
        return tuple(value)

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a tuple of 1 to 10000 sequence numbers."""
        if not isinstance(value, tuple) or not 0 < len(value) <= 10_000:
            raise FieldError(where, value, "1 to 10000 packet numbers")
        for number in value:
            Integer(0, 2**31 - 1).check(number, where)

    def write(self, value: tuple[int, ...]) -> list[int]:
        """The sequence numbers as a list for a scenario file."""
        return list(value)


class LawRule(AsItIs):
    """Reads, checks and writes the name of a congestion control ("law"), such as ``vegas``.

    The law may be one of vegasmodel, one that the user registered, or one of another installed
    package.
    """

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless there is a congestion control law of this name."""
        if not (isinstance(value, str) and laws.known(value)):
            names = laws.names()
            text = f"one of {', '.join(names)}, or a law of your own (register_law, --laws)"
            raise FieldError(where, value, f"{text}{nearest(value, names)}")
