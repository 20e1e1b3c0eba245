"""Writes one scenario as a script for ns-2.

The script is the fixed library ``ns2.tcl``, followed by calls of its procedures. Flows and links
are written as numbers. The script contains no text from the scenario, such as names of flows. So no
such text can be executed as a command.

In the functions, ``i`` is the number of a link, ``f`` that of a flow, and ``way`` is a direction of
a link: forward or reverse.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import arrivals, ns2_support
from vegasmodel.packets.engine import queue_limits, window_limit
from vegasmodel.packets.ns2_agents import AGENTS, LINUX, Settings
from vegasmodel.packets.ns2_defaults import SETS, UNSPACED
from vegasmodel.scenario import (
    Link,
    Member,
    RateDelay,
    Red,
    Scenario,
)
from vegasmodel.scenario.placement import bytes_per_turn, class_shares

__all__ = ["Script", "script"]

PROBE_PACKETS = 3  # sent through the empty network to measure a flow's baseRTT


@dataclass(frozen=True)
class Script:
    """The text of a script for ns-2.

    ``origin`` is the time, s, on ns-2's clock at which the scenario begins.  It is above 0 if some
    flows have to measure their baseRTT before the scenario begins.
    """

    text: str
    origin: float


@cache
def _library() -> str:
    """The Tcl procedures with which every script begins."""
    return resources.files("vegasmodel.packets").joinpath("ns2.tcl").read_text(encoding="utf-8")


def script(
    scenario: Scenario,
    run: int = 0,
    *,
    interval: float | None = None,
    rtts: bool = False,
    spaced: bool = True,
    stock: Collection[str] = (),
) -> Script:
    """The script for ns-2 that runs ``scenario`` once, with the seed of run number ``run``.

    The script samples windows and queues every ``interval`` seconds (``None``: never).  With
    ``rtts`` it records when each packet is sent and each ACK arrives, but not for short flows that
    arrive at random.  ``ns2.run`` explains ``spaced`` and ``stock``.  Raises ``FieldError`` if ns-2
    cannot simulate the scenario.
    """
    ns2_support.check(scenario)
    known = sorted({s.variable for settings in SETS.values() for s in settings})
    for name in stock:
        if name not in known:
            raise FieldError("stock", name, f"parameters of ns-2: {', '.join(known)}")
    rng = np.random.default_rng([scenario.run.seed, run])
    defaults = [s for s in SETS[scenario.run.ns2_defaults] if s.variable not in stock]
    defaults += [] if spaced else [UNSPACED]
    body = [f"{s.cls} set {s.variable} {s.value}" for s in defaults]
    # ``ttl_`` is the number of links after which ns-2 drops a packet. ``begin`` takes the seed.
    body += ["Agent set ttl_ 4096", f"begin {int(rng.integers(1, 2**31 - 1))}"]
    for i, link in enumerate(scenario.links):
        body += _link(scenario, i, link)
    for f, member in enumerate(scenario.members):
        body += _stations(scenario, f, member, rtts=rtts)
    probes, origin = _probes(scenario)
    body += probes
    body += _shares(scenario, origin)
    for f, member in enumerate(scenario.members):
        body += _life(scenario, f, member, origin, rng)
    body += _ending(scenario, origin, interval)
    return Script("\n".join([_library(), *body, ""]), origin)


def _number(value: float) -> str:
    """A number as a text from which ns-2 reads exactly this number."""
    return repr(float(value))


def _at(time: float, command: str) -> str:
    """The line that makes ns-2 run a command at a time on its clock, s."""
    return f"$ns at {_number(time)} {{{command}}}"


def _words(settings: dict[str, float | int | str]) -> str:
    """Names and values as a Tcl list, such as ``{limit_ 20}``."""
    return "{" + " ".join(f"{key} {value}" for key, value in settings.items()) + "}"


# --- links -------------------------------------------------------------------------------------


def _link(scenario: Scenario, i: int, link: Link) -> list[str]:
    """The script's lines for both directions of a link: queues, random losses and forced drops.

    Each line calls a procedure of ``ns2.tcl``.  ``link`` makes the link, ``shape`` or ``classes``
    sets up a queue, ``watch`` records what happens there, ``lossy`` drops packets at random, and
    ``force`` makes the forced drops: packets of a flow that the scenario names by their sequence
    numbers.

    If data cross the link in the reverse direction, this direction has the same queue and random
    losses as the forward one.  If only ACKs cross it, its queue is unlimited, and no packet is
    lost.
    """
    bits = link.capacity * scenario.packet_size * 8
    # the directions in which data cross the link; the forward one is always set up
    crossing = {group.direction for group in scenario.flows if link in scenario.path(group)}
    ways = sorted({"forward"} | crossing)
    kind = ns2_support.QUEUES[link.queue.discipline]
    reverse_kind = kind if "reverse" in ways else "DropTail"
    lines = [f"link {i} {_number(bits)} {_number(link.delay)} {kind} {reverse_kind}"]
    for way in ways:
        if isinstance(link.queue, RateDelay):
            lines += _classes(scenario, i, link, way)
        else:
            lines.append(f"shape {i} {way} {_words(_queue(scenario, link))}")
        lines.append(f"watch {i} {way}")
        if link.loss:
            lines.append(f"lossy {i} {way} {_number(link.loss)}")
    names = {member.name: f for f, member in enumerate(scenario.members)}
    for name in dict.fromkeys(drop.flow for drop in link.drops):
        packets = sorted({n for drop in link.drops if drop.flow == name for n in drop.packets})
        f = names[name]
        way = scenario.members[f].flow.direction
        lines.append(f"force {f} {i} {way} {{{' '.join(map(str, packets))}}}")
    return lines


def _queue(scenario: Scenario, link: Link) -> dict[str, float | int | str]:
    """The variables of ns-2's queue object for a link, by name.

    The scenario's ``buffer`` becomes ns-2's ``limit_``, because this limit is probably what the
    papers call the buffer (``docs/ns2.md`` says why).  In a DropTail queue of ns-2, the packet in
    transmission counts towards the limit.  In a RED queue it does not.
    """
    (limit,) = queue_limits(link)
    if not isinstance(link.queue, Red):
        return {"limit_": limit}
    red = link.queue
    return {
        "limit_": limit,
        "thresh_": _number(red.min_threshold),
        "maxthresh_": _number(red.max_threshold),
        "linterm_": _number(1 / red.max_probability),
        "q_weight_": _number(red.weight),
        "setbit_": str(red.ecn).lower(),
        "gentle_": str(red.gentle).lower(),
        "bytes_": "false",
        "queue_in_bytes_": "false",
        "mean_pktsize_": round(scenario.packet_size),
    }


def _classes(scenario: Scenario, i: int, link: Link, way: str) -> list[str]:
    """The script's lines for one direction of a Rate-Delay link: its two queues and their flows.

    Each queue belongs to a class of flows: the rate class gets a high rate, the delay class a low
    delay.  ns-2 serves the two classes by weighted round robin (``bytes_per_turn``). ``i`` is the
    number of the link, and ``way`` the direction.
    """
    (rate, delay), turn = queue_limits(link), bytes_per_turn(scenario, link, way)
    lines = [f"classes {i} {way} {turn} {rate} {delay}"]
    for service in ("rate", "delay"):
        members = [
            f
            for f, member in enumerate(scenario.members)
            if member.flow.service == service and link in scenario.path(member.flow)
        ]
        lines.append(f"belong {i} {way} {service} {{{' '.join(map(str, members))}}}")
    return lines


def _shares(scenario: Scenario, origin: float) -> list[str]:
    """The script's lines that divide the capacity of Rate-Delay links between the two classes.

    The shares change when flows start or stop (``class_shares``).  ``origin`` is the time on ns-2's
    clock at which the scenario begins, s.
    """
    lines = []
    for i, link in enumerate(scenario.links):
        for way in ("forward", "reverse"):
            for time, part in class_shares(scenario, link, way):
                lines.append(_at(origin + time, f"share {i} {way} {_number(part)}"))
    return lines


# --- flows -------------------------------------------------------------------------------------


def _stations(scenario: Scenario, f: int, member: Member, *, rtts: bool) -> list[str]:
    """The script's lines that make a flow's two hosts, their own access links and the TCP agents.

    Each line calls a procedure of ``ns2.tcl``. With ``rtts``, ns-2 also records when each packet is
    sent and each ACK arrives. ``f`` is the flow's number.
    """
    group = member.flow
    path = scenario.path(group)
    index = {link.name: i for i, link in enumerate(scenario.links)}
    route = " ".join(f"{index[link.name]} {group.direction}" for link in path)
    bits = scenario.access_rate(group) * scenario.packet_size * 8
    # The propagation delay of the access links, s. A round trip crosses an access link four times:
    # both ways, at both ends of the path. Each of these four legs has an equal part of the delay.
    access = member.rtt - scenario.transmission(group) - 2 * math.fsum(link.delay for link in path)
    access = max(access, 0.0)  # rounding may make it slightly negative
    leg = 0.0 if group.delay_noise else access / 4
    agent = AGENTS[group.law]
    sink = "Agent/TCPSink" + ("/Sack1" if agent.sack else "")
    agents = (
        f"{agent.name} {sink}{'/DelAck' if group.delayed_ack else ''}"
        f" {round(scenario.size_of(group))} {round(scenario.ack_size)}"
        f" {_words(_settings(scenario, f, member))}"
    )
    lines = [f"stations {f} {{{route}}} {_number(bits)} {_number(leg)}"]
    if group.delay_noise:  # the first leg has all of this delay, so that noise may reduce it to 0
        lines.append(f"noisy {f} {_number(access)} {_number(group.delay_noise)}")
    if group.arrivals != "once":  # many short transfers that arrive at random
        return [*lines, f"crowd {f} {agents}"]
    if rtts:
        lines.append(f"tap {f}")
    return [*lines, f"connection {f} {agents}"]


def _settings(scenario: Scenario, f: int, member: Member) -> Settings:
    """The variables of ns-2's object for a flow's sender, and their values."""
    group = member.flow
    settings: Settings = {"window_": window_limit(scenario, f)}
    settings |= AGENTS[group.law].settings(group)
    if scenario.jitter(group):
        settings["overhead_"] = _number(scenario.jitter(group))
    if group.initial_window is not None:
        first = group.initial_window
        # this agent sends its congestion window; window_ only ends the growth of this window
        most = group.max_window if AGENTS[group.law].name == LINUX else math.inf
        settings["windowInit_"] = int(min(first, most))
    if any(isinstance(link.queue, Red) and link.queue.ecn for link in scenario.path(group)):
        settings["ecn_"] = 1
    return settings


def _probes(scenario: Scenario) -> tuple[list[str], float]:
    """The script's lines for probes before the scenario, and the time, s, at which the last ends.

    A flow whose ``over_estimate`` is 0 must know its exact baseRTT.  It measures the baseRTT with a
    probe: before the scenario begins, it sends ``PROBE_PACKETS`` packets alone through the empty
    network.  The probes of several flows follow one another.
    """
    lines, time = [], 0.0
    for f, member in enumerate(scenario.members):
        if member.flow.over_estimate == 0.0:
            lines.append(f"probe {f} {_number(time)} {PROBE_PACKETS}")
            time += (2 * PROBE_PACKETS + 2) * member.rtt + 0.5  # more than the probe takes
    return lines, time


def _life(
    scenario: Scenario, f: int, member: Member, origin: float, rng: np.random.Generator
) -> list[str]:
    """The script's lines that start and stop a flow, and that read its packet counters.

    ``origin`` is the time on ns-2's clock at which the scenario begins, s. ``rng`` draws random
    start times and sizes.
    """
    run, group = scenario.run, member.flow
    begin = arrivals.start(run, member, rng)
    first = min(max(run.warmup, begin), member.stop)
    lines = [_at(origin + first, f"count {f} first")]
    if group.arrivals != "once":
        begins = arrivals.times(group, begin, member.stop, rng)
        sizes = arrivals.sizes(group, len(begins), rng)
        pairs = zip(begins, sizes, strict=True)
        lines += [_at(origin + t, f"arrive {f} {size}") for t, size in pairs]
    else:
        size = int(arrivals.sizes(group, 1, rng)[0])
        lines.append(f"start {f} {_number(origin + begin)} {size}")
    lines.append(_at(origin + member.stop, f"count {f} last"))
    if member.stop < run.duration and group.arrivals == "once":
        lines.append(f"stop {f} {_number(origin + member.stop)}")
    return lines


def _ending(scenario: Scenario, origin: float, interval: float | None) -> list[str]:
    """The script's lines that read the counters of links, take samples, and end the run.

    ``origin`` is the time on ns-2's clock at which the scenario begins, s. ``interval`` is the time
    between two samples, s (``None``: no samples).
    """
    run = scenario.run
    lines = []
    for i, _ in enumerate(scenario.links):
        lines.append(_at(origin + run.warmup, f"count_link {i} forward first"))
        lines.append(_at(origin + run.duration, f"count_link {i} forward last"))
    if interval is not None:
        flows = " ".join(str(f) for f, _ in enumerate(scenario.members))
        links = " ".join(str(i) for i, _ in enumerate(scenario.links))
        # a little less than the quotient: rounding must not add a sample at the end
        number = max(1, math.ceil(run.duration / interval * (1 - 1e-9)))
        every = f"{_number(origin)} {_number(interval)} {number}"
        lines.append(f"samples {every} {{{flows}}} {{{links}}}")
        lines.append(_at(origin + run.duration, f"sample {{{flows}}} {{{links}}}"))
    # after the last counts: ns-2 runs simultaneous events in the order in which they were made
    return [*lines, _at(origin + run.duration, "finish"), "$ns run"]
