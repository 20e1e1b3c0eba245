"""The rules of three fields of a scenario. A rule reads, checks and writes the field's values.

The fields are the packets that a link drops on purpose, the congestion control law of a flow, and
the buffer of a link.
"""

from __future__ import annotations

import math
from typing import Any, cast

from vegasmodel import laws
from vegasmodel.fields.rules import AsItIs, Integer, Quantity, Unresolved, nearest
from vegasmodel.fields.units import FieldError, parse

__all__ = ["BufferRule", "LawRule", "PacketNumbers"]


class PacketNumbers:
    """Reads, checks and writes the sequence numbers of the packets that a link drops on purpose."""

    def read(self, value: object, where: str, packet_size: float | None) -> tuple[int, ...]:
        """Read a list of packets' sequence numbers from a scenario file."""
        if not isinstance(value, list):
            raise FieldError(where, value, "a list of packet numbers")
        self.check(tuple(value), where)
        return tuple(value)

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless the value is a tuple of 1 to 10000 packet numbers."""
        if not isinstance(value, tuple) or not 0 < len(value) <= 10_000:
            raise FieldError(where, value, "1 to 10000 packet numbers")
        for number in value:
            Integer(0, 2**31 - 1).check(number, where)

    def write(self, value: tuple[int, ...]) -> list[int]:
        """The packet numbers as a list for a scenario file."""
        return list(value)


class LawRule(AsItIs):
    """Reads, checks and writes the name of a congestion control law, such as ``vegas``.

    The law may be one of this package, one that the user registered, or one of an installed
    package.
    """

    def check(self, value: Any, where: str) -> None:
        """Raise ``FieldError`` unless there is a congestion control law of this name."""
        if not (isinstance(value, str) and laws.known(value)):
            names = laws.names()
            said = f"one of {', '.join(names)}, or a law of your own (register_law, --laws)"
            raise FieldError(where, value, f"{said}{nearest(value, names)}")


class BufferRule(Quantity):
    """Reads, checks and writes a buffer: packets, bytes, a time, or bandwidth-delay products (BDP).

    Bytes become packets only when the packet size is known, and a time or a number of BDP only when
    the capacity and the RTTs are known.
    """

    def read(self, value: object, where: str, packet_size: float | None) -> float:
        """Read a buffer from a scenario file.

        A time such as ``"100 ms"`` or a number of bandwidth-delay products such as ``"1 BDP"``
        stays text (``Unresolved``) until the capacity and the RTTs are known.  So does text in
        bytes if ``packet_size`` is None.
        """
        for kind in ("time", "bdp"):
            try:
                parse(value, kind, field=where)
            except FieldError:
                continue
            return cast("float", Unresolved(value))
        return super().read(value, where, packet_size)

    def packets(
        self, text: str, where: str, packet_size: float, capacity: float, rtt: float
    ) -> float:
        """Convert a buffer's text, such as ``"100 ms"``, ``"1 BDP"`` or ``"20 kB"``, to packets.

        ``packet_size`` is in bytes, and ``capacity`` is that of the buffer's link in pkt/s.
        ``rtt`` is the mean RTT in s of the flows that cross the link, or NaN if it is unknown.
        Raises ``FieldError`` for any other text, and for a number of BDP if ``rtt`` is unknown.
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
