"""One scenario as a script for ns-2.

The script is the fixed library ``ns2.tcl`` followed by calls of its procedures.  Flows and links
are numbered: no text of the user (names of the scenario, of flows, links or files) enters it, so
none can be run.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import resources

import numpy as np

from vegasmodel.packets.ns2_defaults import SETS
from vegasmodel.scenario import DropTail, Flow, Link, Member, Scenario
from vegasmodel.units import FieldError

__all__ = ["check", "script"]

_UNLIMITED = 1_000_000_000  # packets; ns-2 keeps limits in 32 bits
_AGENTS = {
    "vegas": "Agent/TCP/Vegas",
    "reno": "Agent/TCP/Reno",
    "newreno": "Agent/TCP/Newreno",
    "sack": "Agent/TCP/Sack1",
    "tahoe": "Agent/TCP",
}


def check(scenario: Scenario) -> None:
    """Raise ``FieldError`` for what ns-2 cannot do as the scenario defines it."""
    for i, link in enumerate(scenario.links):
        _check_link(link, f"link[{i}]")
    for i, flow in enumerate(scenario.flows):
        _check_flow(flow, f"flow[{i}]")


def _check_link(link: Link, where: str) -> None:
    if not link.buffer >= 2:
        raise FieldError(f"{where}.buffer", link.buffer, "at least 2 packets in ns-2")
    if not isinstance(link.queue, DropTail):
        raise FieldError(f"{where}.queue", link.queue.discipline, "droptail in ns-2")
    if link.loss or link.drops:
        raise FieldError(f"{where}.loss", link.loss, "no random or forced loss in ns-2")


def _check_flow(flow: Flow, where: str) -> None:
    if flow.law == "vegas":
        for key in ("alpha", "beta", "gamma"):
            if not float(getattr(flow, key)).is_integer():
                raise FieldError(
                    f"{where}.{key}", getattr(flow, key), "a whole number of packets in ns-2"
                )
        if flow.variant == "linux":
            raise FieldError(f"{where}.variant", flow.variant, "paper or ns2: ns-2 has its own")
    usual = 0.75 if flow.law == "vegas" else 0.5
    if flow.decrease != usual:
        raise FieldError(f"{where}.decrease", flow.decrease, f"{usual} in ns-2, which has it fixed")
    if flow.over_estimate != "measured":
        raise FieldError(f"{where}.over_estimate", flow.over_estimate, '"measured" in ns-2')
    if flow.arrivals != "once" or isinstance(flow.size, float) is False:
        raise FieldError(f"{where}.arrivals", "poisson or pareto", '"once" in ns-2')
    if flow.delay_noise:
        raise FieldError(f"{where}.delay_noise", flow.delay_noise, "0 s in ns-2")


@cache
def _library() -> str:
    return resources.files("vegasmodel.packets").joinpath("ns2.tcl").read_text(encoding="utf-8")


def script(scenario: Scenario, run: int = 0, interval: float | None = None) -> str:
    """The Tcl text that runs ``scenario`` once, with the seed of run number ``run``.

    ``interval``: seconds between two samples of windows and queues (none if ``None``).
    """
    check(scenario)
    rng = np.random.default_rng([scenario.run.seed, run])
    parts = [_library()]
    parts += [f"{s.cls} set {s.variable} {s.value}" for s in SETS[scenario.run.ns2_defaults]]
    parts += ["Agent set ttl_ 4096", f"begin {int(rng.integers(1, 2**31 - 1))}"]
    for i, link in enumerate(scenario.links):
        parts += _link(scenario, i, link)
    for f, member in enumerate(scenario.members):
        parts += _flow(scenario, f, member, _jitter(scenario, rng))
    parts += _ending(scenario, interval)
    return "\n".join(parts) + "\n"


def _number(value: float) -> str:
    return repr(float(value))


def _jitter(scenario: Scenario, rng: np.random.Generator) -> float:
    return float(rng.uniform(0.0, scenario.run.start_jitter)) if scenario.run.start_jitter else 0.0


def _link(scenario: Scenario, i: int, link: Link) -> list[str]:
    bits = link.capacity * scenario.packet_size * 8
    lines = [f"link {i} {_number(bits)} {_number(link.delay)}"]
    if math.isfinite(link.buffer):
        crossed = {"forward"} | {
            group.direction for group in scenario.flows if link in scenario.path(group)
        }
        # Reverse data meets the same buffer; ACKs alone have one without limit.
        lines += [f"limit {i} {way} {min(int(link.buffer), _UNLIMITED)}" for way in sorted(crossed)]
    lines.append(f"watch {i} forward")
    return lines


def _flow(scenario: Scenario, f: int, member: Member, jitter: float) -> list[str]:
    group = member.flow
    index = {link.name: i for i, link in enumerate(scenario.links)}
    path = scenario.path(group)
    route = " ".join(f"{index[link.name]} {group.direction}" for link in path)
    bits = scenario.access_rate(group) * scenario.packet_size * 8
    rest = member.rtt - scenario.transmission(group) - 2 * sum(link.delay for link in path)
    delay = max(rest, 0.0) / 4  # rounding may leave less than nothing
    sink = "Agent/TCPSink" + ("/Sack1" if group.law == "sack" else "")
    settings: dict[str, int] = {}
    if group.law == "vegas":
        settings = {f"v_{k}_": int(getattr(group, k)) for k in ("alpha", "beta", "gamma")}
    words = " ".join(f"{key} {value}" for key, value in settings.items())
    lines = [
        f"stations {f} {{{route}}} {_number(bits)} {_number(delay)}",
        f"connection {f} {_AGENTS[group.law]} {sink}{'/DelAck' if group.delayed_ack else ''}"
        f" {round(scenario.size_of(group))} {round(scenario.ack_size)}"
        f" {_window(scenario, member)} {{{words}}}",
    ]
    begin = min(member.start + jitter, scenario.run.duration)
    size = -1 if math.isinf(_size(group)) else math.ceil(_size(group))
    first = min(max(scenario.run.warmup, begin), member.stop)
    lines.append(f"$ns at {_number(first)} {{count {f} first}}")
    lines.append(f"start {f} {_number(begin)} {size}")
    lines.append(f"$ns at {_number(member.stop)} {{count {f} last}}")
    if member.stop < scenario.run.duration:
        lines.append(f"stop {f} {_number(member.stop)}")
    return lines


def _size(group: Flow) -> float:
    return group.size if isinstance(group.size, (int, float)) else math.nan


def _window(scenario: Scenario, member: Member) -> int:
    """``window_`` also sizes Vegas's ring of time stamps, so "no limit" has to be a number."""
    group = member.flow
    if math.isfinite(group.max_window):
        return int(group.max_window)
    path = scenario.path(group)
    slowest = min(link.capacity for link in path) * scenario.packet_size / scenario.size_of(group)
    buffers = sum(link.buffer for link in path if math.isfinite(link.buffer))
    return max(20_000, min(1_000_000, math.ceil(4 * (slowest * member.rtt + buffers))))


def _ending(scenario: Scenario, interval: float | None) -> list[str]:
    lines = []
    run = scenario.run
    for i, _ in enumerate(scenario.links):
        lines.append(f"$ns at {_number(run.warmup)} {{count_link {i} forward first}}")
        lines.append(f"$ns at {_number(run.duration)} {{count_link {i} forward last}}")
    if interval is not None:
        flows = " ".join(str(f) for f, _ in enumerate(scenario.members))
        links = " ".join(str(i) for i, _ in enumerate(scenario.links))
        lines.append(f"$ns at 0.0 {{sample {_number(interval)} {{{flows}}} {{{links}}}}}")
    # after the last counts: ns-2 runs events of one instant in the order of their making
    lines += [f"$ns at {_number(run.duration)} finish", "$ns run"]
    return lines
