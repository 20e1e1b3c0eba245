"""Converts text with units (``"1.5 Mbit/s"``, ``"13.2 ms"``, ``"20 pkt"``) to floats and back.

Users write such text in scenario files, on the command line and in Python, for example in
``Link("10 Mbit/s")``. Inside the package nearly every quantity is a float in seconds, packets or
packets per second.

A table of units converts the common form, one number and one unit. The library pint converts all
other text, such as ``"12 kB / (4 ms)"``. It is set up with the units of networks only, so a metre
is an error. The table and pint must give exactly the same float for the same text, because a stored
result of ns-2 or Linux is found by a hash of the floats of its scenario.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vegasmodel.fields.errors import FieldError, exactly

if TYPE_CHECKING:
    from pint import Quantity, UnitRegistry

__all__ = [
    "Kind",
    "format_number",
    "format_rate",
    "format_time",
    "needs_packet_size",
    "parse",
    "write",
]

# pairs of a kind of quantity and a unit that it may have, beside the one in ``KINDS``; "" is a
# number without a unit
MORE_UNITS = (("packets", ""), ("buffer", ""), ("fraction", "%"))
NO_EXPONENT_BELOW = 1e7  # tables show greater numbers with an exponent
MAX_TEXT = 200  # characters; pint's parser gets no longer text


@dataclass(frozen=True)
class Kind:
    """A kind of quantity, such as a time or a rate.

    ``unit`` is the unit of such a quantity inside the package. ``allowed`` is a text for error
    messages: it says what a user may write.
    """

    unit: str
    allowed: str


KINDS = {
    "time": Kind("s", 'a time such as "80 ms"'),
    "packets": Kind("pkt", 'a number of packets such as "20 pkt"'),
    "buffer": Kind("pkt", 'packets such as "20 pkt", "100 ms" at full rate, or "1 BDP"'),
    "bdp": Kind("BDP", 'a multiple of the bandwidth-delay product such as "1 BDP"'),
    "bytes": Kind("B", 'a size such as "500 B"'),
    "rate": Kind("pkt/s", 'a rate such as "1080 pkt/s" or "1.5 Mbit/s"'),
    "frequency": Kind("1/s", 'a frequency such as "50 1/s"'),
    "fraction": Kind("", 'a fraction such as 0.1 or "10 %"'),
}

UNITS = (  # as most people write them, for hints
    "s", "ms", "us", "pkt", "B", "kB", "MB", "pkt/s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s",
    "bps", "kbps", "Mbps", "Gbps",
)  # fmt: skip
_DEFINITIONS = (  # of prefixes and units, in pint's language
    "tera- = 1e12 = T-",
    "kilo- = 1e3 = k- = K-",
    "mega- = 1e6 = M-",
    "giga- = 1e9 = G-",
    "milli- = 1e-3 = m-",
    "micro- = 1e-6 = u- = µ- = μ-",
    "nano- = 1e-9 = n-",
    "kibi- = 1024 = Ki-",
    "mebi- = 1048576 = Mi-",
    "second = [time] = s = sec",
    "minute = 60 s = min",
    "hour = 3600 s = h",
    "bit = [data] = b",
    "byte = 8 bit = B",
    "BDP = [bdp]",
    "packet = [packet] = pkt = pkts = packets",
    "hertz = 1 / s = Hz",
    "bps = bit / s",
    "percent = 0.01 = %",
)


# finds units below a bit or byte, which are refused: "75 mB" (millibytes) is a slip for "75 MB"
_LESS_THAN_A_BIT = re.compile(
    r"(?<![^\W\d_])(milli|micro|nano|[mnu\u00b5\u03bc])(bit|byte|bps|[bB])s?(?![^\W\d_])"
)
_MILLI = ("m", "milli")  # which some users write for millions
_NUMBER_UNIT = re.compile(
    r"([+-]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*)"
)
_BDP = re.compile(r"(?<![^\W\d_])bdp(?![^\W\d_])", re.IGNORECASE)  # no other unit differs in case
_TOKENS = re.compile(  # of a text for pint: spaces, numbers, names of units, operators, all else
    r"(?P<space>\s+)|(?P<one>1(?=\s*/))|(?P<number>(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)"
    r"(?:[eE][+-]?[0-9]+)?)|(?P<unit>[^\W\d_]+|%)|(?P<operator>//|[-+*/()])|(?P<else>.)", re.DOTALL
)  # fmt: skip


@functools.cache
def _common_units() -> dict[str, tuple[float, str]]:
    """A table of the common units by name, such as ``"ms"`` or ``"Mbit/s"``.

    Each entry gives the unit as a multiple of another unit. For example, the entry of ``"ms"`` is
    ``(0.001, "s")``, because 1 ms is 0.001 s. Units that are not in the table are converted by the
    library pint, which takes long to import.
    """
    above_one = {"": 1.0, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "K": 1e3, "Ki": 1024.0}
    above_one["Mi"] = 1048576.0  # 1024^2
    below_one = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}
    table = {"": (1.0, ""), "%": (0.01, "%"), "1/s": (1.0, "1/s"), "Hz": (1.0, "1/s")}
    table |= {"min": (60.0, "s"), "h": (3600.0, "s"), "BDP": (1.0, "BDP")}
    data_units = {"bit": (0.125, "B"), "b": (0.125, "B"), "B": (1.0, "B"), "byte": (1.0, "B")}
    data_units |= dict.fromkeys(("pkt", "pkts", "packet", "packets"), (1.0, "pkt"))
    table |= {f"{prefix}s": (scale, "s") for prefix, scale in (above_one | below_one).items()}
    for prefix, scale in above_one.items():
        table[f"{prefix}bps"] = (scale * 0.125, "B/s")
        for name, (factor, unit) in data_units.items():
            table[f"{prefix}{name}"] = (scale * factor, unit)
            table[f"{prefix}{name}/s"] = (scale * factor, f"{unit}/s")
    return table


@functools.cache
def _registry() -> UnitRegistry[float]:
    """The units that the library pint knows here: those of ``_DEFINITIONS`` only."""
    from pint import UnitRegistry  # this import takes longer than all closed forms

    registry: UnitRegistry[float] = UnitRegistry(
        None, preprocessors=[lambda s: s.replace("%", " percent")]
    )
    for line in _DEFINITIONS:
        registry.define(line.replace(" = %", ""))
    return registry


def parse(
    text: object,
    kind: str,
    *,
    field: str,
    packet_size: float | None = None,
    low: float = 0.0,
    high: float = math.inf,
    low_open: bool = False,
    infinite: bool = False,
) -> float:
    """Convert text with a unit to a float in the package's unit for this kind of quantity.

    ``kind`` is a key of ``KINDS``. The result must lie in ``low <= value <= high``. With
    ``low_open`` it must not be ``low`` itself. ``inf`` is allowed only with ``infinite``.

    If ``packet_size``, in bytes, is given, bits and bytes are converted to packets, and packets to
    bytes, where the kind needs it. Then ``"1 Mbit/s"``, for example, is allowed as a rate in pkt/s.

    A finite number without a unit is allowed for the kinds ``packets``, ``buffer`` and ``fraction``
    only.

    Raises ``FieldError``, which names ``field``, if the text is not allowed.
    """
    allowed = _allowed(kind, low, high, low_open=low_open, infinite=infinite)
    try:
        value = _to_float(text, kind, field, allowed, packet_size)
    except FieldError as error:
        meant = _did_you_mean(text, kind, packet_size)
        raise FieldError(field, text, f"{error.allowed}{meant}", wrong=error.wrong) from None
    if math.isnan(value) or (math.isinf(value) and not (infinite and value > 0)):
        raise FieldError(field, text, allowed)
    if not low <= value <= high or (low_open and value == low):
        raise FieldError(field, text, allowed)
    return value


def _did_you_mean(text: object, kind: str, packet_size: float | None) -> str:
    """A hint for an error message, such as ``; did you mean '20 ms'?``, or an empty text.

    There is a hint in three cases:

    - The text has thousandths of a bit or byte in place of millions, such as ``2 mbit/s``.
    - The text has a unit with wrong capitals, such as ``20 MS``.
    - The text is an amount of data, such as ``20 Mbit``, in place of a rate. The hint is then the
      amount per second: ``'20 Mbit/s'``.
    """
    slip = _LESS_THAN_A_BIT.search(text) if isinstance(text, str) else None
    if isinstance(text, str) and slip and slip[1] in _MILLI:
        return f"; did you mean {f'{text[: slip.start()]}M{text[slip.start(2) :]}'!r}?"
    if kind == "rate" and isinstance(text, str) and text.strip()[-1:].isalpha():
        each_second = f"{text.strip()}/s"
        if _readable(each_second, kind, packet_size):
            return f"; an amount is no rate: did you mean {each_second!r}?"
    parts = (
        re.fullmatch(r"\s*([-+.\deE]+)\s*([A-Za-z/]+)\s*", text) if isinstance(text, str) else None
    )
    unit = parts and next((u for u in UNITS if u.lower() == parts[2].lower()), None)
    if parts is None or unit is None or unit == parts[2]:
        return ""
    corrected = f"{parts[1]} {unit}"
    kinds = (kind, "time") if kind == "buffer" else (kind,)
    if any(_readable(corrected, each, packet_size) for each in kinds):
        return f"; did you mean {corrected!r}?"
    return ""


def _readable(text: str, kind: str, packet_size: float | None) -> bool:
    """Whether the text is a quantity of this ``kind``, or will be one with a packet size."""
    with contextlib.suppress(FieldError):
        _to_float(text, kind, "", "", packet_size)
        return True
    return needs_packet_size(text, kind)


def needs_packet_size(text: object, kind: str) -> bool:
    """Whether a packet size is needed to convert the text to a quantity of this ``kind``.

    For example, ``"20 kB"`` as a number of packets needs one.
    """
    if kind not in ("packets", "buffer", "rate") or not isinstance(text, str):
        return False
    try:
        _to_float(text, kind, "", "", None)
    except FieldError:
        try:
            _to_float(text, kind, "", "", 1.0)  # any packet size serves for this test
        except FieldError:
            return False
        return True
    return False


def write(value: float, kind: str) -> str:
    """The value as text that ``parse`` reads as exactly the same float.

    Examples are ``"80 ms"``, ``"1080 pkt/s"`` and ``"inf"``. A time below 1 s is written in ms or
    us, with six significant digits, but only if ``parse`` reads this short text as exactly the same
    float. Otherwise it is written in s, with all digits. ``kind`` is the kind of quantity, such as
    "time".
    """
    unit = KINDS[kind].unit
    if math.isinf(value):
        return "inf"
    text = f"{value!r}".removesuffix(".0")
    if kind == "time" and 0 < value < 1:
        scale, short = (1e3, "ms") if value >= 1e-3 else (1e6, "us")
        shorter = f"{round(value * scale, 9):g}"
        if float(shorter) * _common_units()[short][0] == value:
            return f"{shorter} {short}"
    return f"{text} {unit}".strip()


def _allowed(kind: str, low: float, high: float, *, low_open: bool, infinite: bool) -> str:
    """What a user may write for a quantity, for error messages; ``parse`` has the arguments."""
    unit = f" {KINDS[kind].unit}" if KINDS[kind].unit else ""
    parts = [f"{'more than' if low_open else 'at least'} {exactly(low)}{unit}"]
    if math.isfinite(high):
        parts.append(f"at most {exactly(high)}{unit}")
    text = "a number such as 1.5" if kind == "fraction" and high > 1.0 else KINDS[kind].allowed
    return f"{text}, {' and '.join(parts)}" + (' (or "inf")' if infinite else "")


def _to_float(
    text: object, kind: str, field: str, allowed: str, packet_size: float | None
) -> float:
    """Convert text, or a number without a unit, as ``parse`` does, but accept any range.

    ``allowed`` is the text of the error for a value that is not allowed. ``kind`` is the kind of
    quantity, such as "time".
    """
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        raise FieldError(field, text, allowed)
    if not isinstance(text, str):
        if kind not in ("packets", "buffer", "fraction") and math.isfinite(text):
            raise FieldError(field, text, f"a unit is needed: {allowed}")
        return _as_float(text, field, allowed)
    stripped = _BDP.sub("BDP", text.strip())
    if stripped in ("inf", "infinity"):
        return math.inf
    if len(text) > MAX_TEXT or not stripped or "**" in text or "^" in text:
        raise FieldError(field, text, allowed)
    return _convert(stripped, kind, field, allowed, packet_size)


def _as_float(number: float, field: str, allowed: str) -> float:
    """The number as a float; ``FieldError`` for a whole number that is too large for one."""
    try:
        return float(number)
    except OverflowError:
        raise FieldError(field, number, allowed) from None


def _convert(text: str, kind: str, field: str, allowed: str, packet_size: float | None) -> float:
    """The text's number in the unit of its kind (``KINDS``); ``FieldError`` if it has none.

    A unit of the table of common units is converted here, and any other by pint (``_by_pint``).
    """
    if slip := _LESS_THAN_A_BIT.search(text):
        reason = f'"{slip[1]}" stands for a small part of a bit or byte'
        # a text such as "2 mb" gets the hint "did you mean '2 Mb'?" (``_did_you_mean``), which says
        # enough; any other text gets what is allowed
        mega = slip[1] in _MILLI
        raise FieldError(field, text, reason if mega else f"{reason}: {allowed}")
    if "," in text:  # pint would read "4,32" as 432
        raise FieldError(field, text, "no comma in a number; write a point before the decimals")
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None and not re.fullmatch("inf[^0-9]*", text):  # "inf s" is left to pint
        raise FieldError(field, text, f"a number is needed: {allowed}")
    if match is None or match[2] not in _common_units():
        if not _readable_for_pint(text):
            raise FieldError(field, text, f"one number and its unit: {allowed}")
        return _by_pint(text, kind, field, allowed, packet_size)
    # ``unit`` is one of s, B, pkt, B/s, pkt/s and so on; ``target`` is the one that the kind needs
    number, (scale, unit), target = float(match[1]), _common_units()[match[2]], KINDS[kind].unit
    if unit == target or (kind, unit) in MORE_UNITS:
        return number * scale
    if unit == "":
        raise FieldError(field, text, f"a unit is needed: {allowed}")
    if packet_size is not None and unit.replace("B", "pkt") == target:  # bytes to packets
        return number * (1.0 / packet_size) * scale  # pint rounds in this order, too
    if packet_size is not None and unit.replace("pkt", "B") == target:
        return number * packet_size * scale
    raise FieldError(field, text, allowed)


def _readable_for_pint(text: str) -> bool:
    """Whether the library pint reads a quantity such as ``"2 * 10 ms"`` as people do.

    pint leaves out signs that it does not know, and multiplies what stands side by side. So it
    reads ``"1:30 min"`` as 30 minutes, and ``"5 < 6"`` as 30. Therefore two conditions must hold:

    - The text consists of numbers, names of units, the operators ``+ - * /`` and parentheses only.
    - Each number and each ``(`` is the first part of the text, or follows an operator. The 1 of
      ``"50 1/s"`` is an exception.
    """
    previous = ""
    for token in _TOKENS.finditer(text):
        kind, sign = str(token.lastgroup), token[0]
        if kind == "else" or sign == "//":
            return False
        if (kind == "number" or sign == "(") and previous not in ("", "operator"):
            return False
        if kind != "space":
            previous = "unit" if sign == ")" else kind  # after both, a number must not follow
    return True


def _by_pint(text: str, kind: str, field: str, allowed: str, packet_size: float | None) -> float:
    """Convert ``text``, a number with a unit, by the library pint, to the unit of its ``kind``.

    ``kind`` is a key of ``KINDS``, such as "time". ``packet_size`` in bytes converts bytes to
    packets and back; with ``None`` this is an error. An error names ``field``, and says what is
    ``allowed``.
    """
    registry = _registry()
    try:
        quantity: Quantity[float] = registry.Quantity(text)
        value = float(quantity.magnitude)
    except Exception:  # pint raises tokenizer, syntax, zero-division and own errors
        raise FieldError(field, text, allowed) from None
    if (kind, "") in MORE_UNITS and str(quantity.units) in ("", "dimensionless"):
        return value
    target = KINDS[kind].unit or "dimensionless"
    if quantity.unitless and target != "dimensionless":
        raise FieldError(field, text, f"a unit is needed: {allowed}")
    size: Quantity[float] = registry.Quantity(packet_size or 1.0, "B/pkt")
    # tries: as written, bytes -> packets, packets -> bytes
    for factor in (1.0,) if packet_size is None else (1.0, 1.0 / size, size):
        try:
            return float((quantity * factor).to(target).magnitude)
        except Exception:  # noqa: S112 - not this dimension: try the next
            continue
    raise FieldError(field, text, allowed)


def format_number(value: float, digits: int = 4) -> str:
    """A number as text for a table, with ``digits`` significant digits.

    If the number has more digits before the point, but is below 10^7 (``NO_EXPONENT_BELOW``), it is
    rounded to a whole number, such as ``71183``. So it has no exponent.
    """
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < NO_EXPONENT_BELOW else text


def format_rate(rate: float, packet_size: float) -> str:
    """A rate in packets and in bits for a table, such as ``125 pkt/s (1 Mbit/s)``."""
    bits = rate * packet_size * 8
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits >= scale:
            return f"{format_number(rate)} pkt/s ({bits / scale:.3g} {unit})"
    return f"{format_number(rate)} pkt/s ({bits:.3g} bit/s)"


def format_time(seconds: float | None) -> str:
    """A time as text in the unit that reads best, such as ``13.2 ms``; ``-`` if it is unknown."""
    if seconds is None:
        return "-"
    if math.isinf(seconds):
        return "inf"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds:.4g} s"
