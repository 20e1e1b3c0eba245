"""Writes a ``Scenario`` as the text of a scenario file.

So the scenarios that the records run in ns-2 can be given to a reader as files.  Most keys that
have their default are left out.  Numbers are written in the most readable unit that gives the same
float when read back.  So the scenario that is read from the file has the same fingerprint, by which
its stored run is found.

Each field of a scenario has a rule, which also writes its value as a text, a number or a table.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from vegasmodel.fields import toml_file
from vegasmodel.fields.units import parse
from vegasmodel.scenario import Flow, Link, RateDelay, Run, Scenario, Staggered

__all__ = ["to_toml"]

# Units by kind, the most readable first; the last is the package's own.
UNITS = {
    "time": (("ms", 1e-3), ("s", 1.0)),
    "rate": (("Mbit/s", 1e6), ("pkt/s", 1.0)),
    "packets": (("pkt", 1.0),),
    "bytes": (("B", 1.0),),
    "frequency": (("1/s", 1.0),),
}
# the kind of each unit that the rules of fields write
KINDS = {"us": "time", **{unit: kind for kind, units in UNITS.items() for unit, _ in units}}
QUANTITY = re.compile(rf"[\d.e+-]+ ({'|'.join(map(re.escape, KINDS))})")


def to_toml(scenario: Scenario) -> str:
    """The text of a scenario file, from which ``Scenario.from_toml`` makes the same scenario."""
    size = scenario.packet_size
    links = [
        # the delay is the last key
        _table(link, Link(link.capacity, delay=link.delay), ("name", "capacity"), size)
        | {"delay": _readable(f"{link.delay!r} s", size)}
        for link in scenario.links
    ]
    flows = []
    for flow in scenario.flows:
        default = Flow(flow.law, flow.rtt, variant=flow.variant)
        always = ("law", "rtt", *(["variant"] if flow.variant != "paper" else []))
        flows.append(_table(flow, default, always, size))
        if "class" in flows[-1]:
            flows[-1]["class"] = flows[-1].pop("class")  # the last key
    sizes = {"packet_size": f"{size!r} B", "ack_size": f"{scenario.ack_size!r} B"}
    head = {"name": scenario.name, **_readable(sizes, size)}
    run = _table(scenario.run, Run(), ("duration", "warmup"), size)
    return toml_file.write({**head, "link": links, "flow": flows, "run": run})


def _table(part: Any, default: Any, always: Sequence[str], packet_size: float) -> dict[str, Any]:
    """The TOML table of a link, a group of flows or the run: ``part``.

    A key is left out if its value is that in ``default``.  But the keys ``always`` are always
    written, before all others.  ``packet_size`` is the scenario's, in bytes.
    """
    fields = {field.name: field for field in dataclasses.fields(part)}
    changed = [name for name in fields if getattr(part, name) != getattr(default, name)]
    table = {}
    for name in dict.fromkeys([*always, *changed]):
        value = getattr(part, name)
        text: Any = None if value is None else fields[name].metadata["rule"].write(value)
        # The rule writes such a value as a table, without the keys that have their default. Here
        # three of these keys are put back, so that a reader of the file need not know the default.
        if isinstance(value, RateDelay):
            text |= {"k": value.k, "delay_buffer": value.delay_buffer}
        elif isinstance(value, Staggered):
            text = {"first": f"{value.first!r} s", **text}
        is_name = name in ("name", "path", "drops")  # may look like a number with a unit
        table[fields[name].metadata["key"] or name] = (
            text if is_name else _readable(text, packet_size)
        )
    return table


def _readable(value: Any, packet_size: float) -> Any:
    """A key's value as its rule has written it, but with each number in the most readable unit.

    ``value`` may be a text, a number, a list or a table.  A number with a unit becomes a text with
    12 digits, in the first of the units in ``UNITS`` in which the same float is read back.  If
    there is none, the text has all digits of the float and the package's own unit.  Rates in
    Mbit/s are computed with ``packet_size``, in bytes.
    """
    if isinstance(value, dict):
        return {key: _readable(entry, packet_size) for key, entry in value.items()}
    if isinstance(value, list):
        return [_readable(entry, packet_size) for entry in value]
    found = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return value
    kind = KINDS[found[1]]
    number = parse(value, kind, field=kind, packet_size=packet_size)
    for unit, factor in UNITS[kind]:
        if kind == "time" and unit == "ms" and number >= 1.0:  # from 1 s on, times are in s
            continue
        # a rate in packets per second times the bits of a packet is a rate in bits per second
        per_packet = 8 * packet_size if unit == "Mbit/s" else 1.0
        text = f"{number * per_packet / factor:.12g} {unit}"
        if parse(text, kind, field=kind, packet_size=packet_size) == number:
            return text
    return f"{number!r} {UNITS[kind][-1][0]}"
