"""Rules for three fields with a form of their own: packet numbers, a law's name, a buffer."""

from __future__ import annotations

import math
from typing import Any, cast

from vegasmodel import laws
from vegasmodel.fields.rules import Integer, Later, Quantity, nearest
from vegasmodel.fields.units import FieldError, parse

__all__ = ["BufferRule", "LawRule", "PacketNumbers"]


class PacketNumbers:
    """Sequence numbers of packets to drop, each once."""

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[int, ...]:
        """A list of numbers, as it stands in a file."""
        if not isinstance(value, list):
            raise FieldError(where, value, "a list of packet numbers")
        self.check(tuple(value), where)
        return tuple(value)

    def check(self, value: Any, where: str) -> None:
        """1 to 10000 of them."""
        if not isinstance(value, tuple) or not 0 < len(value) <= 10_000:
            raise FieldError(where, value, "1 to 10000 packet numbers")
        for number in value:
            Integer(0, 2**31 - 1).check(number, where)

    def write(self, value: tuple[int, ...]) -> list[int]:
        """As ``read`` takes it."""
        return list(value)


class LawRule:
    """The name of a law: of the package, one that the user has registered, or an installed one."""

    def read(self, value: object, where: str, packet_size: float | None) -> Any:
        """A known name."""
        self.check(value, where)
        return value

    def check(self, value: Any, where: str) -> None:
        """A known name."""
        if not (isinstance(value, str) and laws.known(value)):
            names = laws.names()
            said = f"one of {', '.join(names)}{nearest(value, names)}"
            raise FieldError(where, value, f"{said}, or a law of a file given by --laws")

    def write(self, value: str) -> str:
        """As it is."""
        return value


class BufferRule(Quantity):
    """Packets; or a time, or bandwidth-delay products, which wait for a capacity and RTTs."""

    def read(self, value: object, where: str, packet_size: float | None) -> float:
        """``Later`` for a time and for ``"1 BDP"``."""
        for kind in ("time", "bdp"):
            try:
                parse(value, kind, field=where)
            except FieldError:
                continue
            return cast("float", Later(value))
        return super().read(value, where, packet_size)

    def packets(
        self, text: str, where: str, packet_size: float, capacity: float, rtt: float
    ) -> float:
        """The packets that it comes to at a link of ``capacity``, pkt/s, crossed by ``rtt``, s.

        ``rtt`` is NaN where there is none.
        """
        for kind, one in (("time", capacity), ("bdp", capacity * rtt)):
            try:
                number = parse(text, kind, field=where)
            except FieldError:
                continue
            if math.isnan(one):
                raise FieldError(where, text, "no BDP: there is no RTT here")
            self.check(number * one, where)
            return number * one
        return super().read(text, where, packet_size)
