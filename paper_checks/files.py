"""Writes a ``Scenario`` as the text of a scenario file.

So the scenarios that the records run in ns-2 can be given to a reader as files.  Most keys that
have their default are left out.  Numbers are written in the most readable unit that gives the same
float when read back.  So the scenario that is read from the file has the same fingerprint, by which
its stored run is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vegasmodel.fields import toml_file
from vegasmodel.fields.units import parse
from vegasmodel.scenario import (
    Flow,
    Link,
    Pareto,
    ParetoArrivals,
    Poisson,
    RateDelay,
    Red,
    Run,
    Scenario,
    Staggered,
    Uniform,
)

__all__ = ["to_toml"]

# Units by kind, the most readable first; the last is the package's own.
UNITS = {
    "time": (("ms", 1e-3), ("s", 1.0)),
    "rate": (("Mbit/s", 1e6), ("pkt/s", 1.0)),
    "packets": (("pkt", 1.0),),
    "bytes": (("B", 1.0),),
    "frequency": (("1/s", 1.0),),
}


def to_toml(scenario: Scenario) -> str:
    """The text of a scenario file, from which ``Scenario.from_toml`` makes the same scenario."""
    packet_size = scenario.packet_size
    head = {
        "name": scenario.name,
        "packet_size": _quantity(packet_size, "bytes", packet_size),
        "ack_size": _quantity(scenario.ack_size, "bytes", packet_size),
    }
    parts = {
        "link": [_link(link, packet_size) for link in scenario.links],
        "flow": [_flow(flow, packet_size) for flow in scenario.flows],
        "run": _run(scenario.run),
    }
    return toml_file.write({**head, **parts})


def _quantity(value: float, kind: str, packet_size: float) -> str:
    """A text with a unit, such as ``"80 ms"``, from which exactly ``value`` is read again.

    ``value`` is in the package's own unit, for example in s for a time. ``kind`` is the kind of the
    quantity, a key of ``UNITS``. ``packet_size`` is in bytes.

    The function tries the units of this kind in their order, with 12 digits. It returns the first
    text from which the same float is read. If there is none, the text has all digits of the float
    and the package's own unit. An infinite value has the text ``"inf"``.
    """
    if math.isinf(value):
        return "inf"
    for unit, factor in UNITS[kind]:
        if kind == "time" and unit == "ms" and value >= 1.0:  # from 1 s on, times are in s
            continue
        # a rate in packets per second times the bits of a packet is a rate in bits per second
        per_packet = 8 * packet_size if unit == "Mbit/s" else 1.0
        text = f"{value * per_packet / factor:.12g} {unit}"
        if parse(text, kind, field=kind, packet_size=packet_size) == value:
            return text
    return f"{value!r} {UNITS[kind][-1][0]}"


def _changed(entries: Mapping[str, tuple[Any, Any, Any]]) -> dict[str, Any]:
    """The keys to write: of ``entries``, those whose value is not the default, with their texts.

    An entry is (value, default, text).
    """
    return {key: text for key, (value, default, text) in entries.items() if value != default}


# Each of the following functions writes a part of the scenario.  ``packet_size`` is in bytes.


def _link(link: Link, packet_size: float) -> dict[str, Any]:
    """The keys of a ``[[link]]`` table, without those that have their default."""
    default = Link(capacity=link.capacity)
    found = {
        "name": link.name,
        "capacity": _quantity(link.capacity, "rate", packet_size),
        "buffer": _quantity(link.buffer, "packets", packet_size),
        "queue": _queue(link, packet_size),
        "loss": link.loss,
        "drops": [{"flow": drop.flow, "packets": list(drop.packets)} for drop in link.drops],
    }
    # each key's value, default and text, for ``_changed``
    keys = {key: (getattr(link, key), getattr(default, key), text) for key, text in found.items()}
    chosen = {"name": link.name, "capacity": found["capacity"]} | _changed(keys)
    assert link.delay is not None
    return chosen | {"delay": _quantity(link.delay, "time", packet_size)}


def _queue(link: Link, packet_size: float) -> dict[str, Any]:
    """The table ``queue`` of a link, with the discipline and its parameters."""
    queue = link.queue
    if isinstance(queue, Red):
        default = Red(queue.min_threshold, queue.max_threshold)
        found: dict[str, Any] = {
            "discipline": "red",
            "min_threshold": _quantity(queue.min_threshold, "packets", packet_size),
            "max_threshold": _quantity(queue.max_threshold, "packets", packet_size),
        }
        optional = {  # value, default and what to write, for ``_changed``
            key: (getattr(queue, key), getattr(default, key), getattr(queue, key))
            for key in ("max_probability", "weight", "ecn", "gentle")
        }
        return found | _changed(optional)
    if isinstance(queue, RateDelay):
        return {"discipline": "rd", "k": queue.k, "delay_buffer": queue.delay_buffer}
    return {"discipline": "droptail"}


def _flow(flow: Flow, packet_size: float) -> dict[str, Any]:
    """The keys of a ``[[flow]]`` table, without those that have their default.

    ``packet_size`` is the scenario's, in bytes; the flow may have its own, ``own_size``.
    """
    default = Flow(law=flow.law, rtt=flow.rtt, variant=flow.variant)
    own_size = packet_size if flow.packet_size is None else flow.packet_size

    def text(key: str, kind: str) -> Any:
        """The value of ``key`` with a unit of its kind; ``None`` and words stay as they are."""
        value = getattr(flow, key)
        is_text = value is None or isinstance(value, str)
        return value if is_text else _quantity(value, kind, own_size)

    found = {
        "name": flow.name,
        "count": flow.count,
        "start": _start(flow, packet_size),
        "stop": text("stop", "time"),
        "size": _size(flow, own_size),
        "arrivals": _arrivals(flow, packet_size),
        **{key: text(key, "packets") for key in ("alpha", "beta", "gamma")},
        "decrease": flow.decrease,
        "over_estimate": text("over_estimate", "time"),
        "max_window": text("max_window", "packets"),
        "initial_window": text("initial_window", "packets"),
        "delayed_ack": flow.delayed_ack,
        "packet_size": text("packet_size", "bytes"),
        "direction": flow.direction,
        "service": flow.service,
        "path": list(flow.path or ()),
        "access": None if flow.access is None else _quantity(flow.access, "rate", packet_size),
        "send_jitter": text("send_jitter", "time"),
        "delay_noise": text("delay_noise", "time"),
    }
    # each key's value, default and text, for ``_changed``
    keys = {key: (getattr(flow, key), getattr(default, key), text) for key, text in found.items()}
    changed = _changed(keys)
    if "service" in changed:  # in a file the key is called ``class``
        changed["class"] = changed.pop("service")
    variant = {} if flow.variant == "paper" else {"variant": flow.variant}
    return {"law": flow.law, "rtt": _rtt(flow, packet_size), **variant, **changed}


def _rtt(flow: Flow, packet_size: float) -> Any:
    """The RTT of a flow, or the two ends between which those of a group are drawn."""
    if isinstance(flow.rtt, Uniform):
        ends = (flow.rtt.low, flow.rtt.high)
        return {"uniform": [_quantity(end, "time", packet_size) for end in ends]}
    return _quantity(flow.rtt, "time", packet_size)


def _start(flow: Flow, packet_size: float) -> Any:
    """When the flows of a group start: one time, or the first time and the interval."""
    if isinstance(flow.start, Staggered):
        return {
            "first": _quantity(flow.start.first, "time", packet_size),
            "every": _quantity(flow.start.every, "time", packet_size),
        }
    return _quantity(flow.start, "time", packet_size)


def _size(flow: Flow, packet_size: float) -> Any:
    """The size of a flow, or the distribution from which sizes are drawn."""
    if isinstance(flow.size, Pareto):
        mean = _quantity(flow.size.mean, "packets", packet_size)
        return {"pareto": {"mean": mean, "shape": flow.size.shape}}
    return _quantity(flow.size, "packets", packet_size)


def _arrivals(flow: Flow, packet_size: float) -> Any:
    """How short flows arrive: the table of a random process, or the word "once"."""
    if isinstance(flow.arrivals, Poisson):
        return {"poisson": _quantity(flow.arrivals.rate, "frequency", packet_size)}
    if isinstance(flow.arrivals, ParetoArrivals):
        rate = _quantity(flow.arrivals.rate, "frequency", packet_size)
        return {"pareto": {"rate": rate, "shape": flow.arrivals.shape}}
    return flow.arrivals


def _run(run: Run) -> dict[str, Any]:
    """The keys of the ``[run]`` table, without those that have their default."""
    found = {
        **{key: _quantity(getattr(run, key), "time", 1.0) for key in ("duration", "warmup")},
        "seed": run.seed,
        "runs": run.runs,
        "start_jitter": _quantity(run.start_jitter, "time", 1.0),
        "ns2_defaults": run.ns2_defaults,
    }
    default = Run()
    keys = {key: (getattr(run, key), getattr(default, key), text) for key, text in found.items()}
    return {"duration": found["duration"], "warmup": found["warmup"]} | _changed(keys)
