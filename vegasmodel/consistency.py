"""What must hold between the parts of a scenario: names, times, paths and propagation.

``settle`` runs when a ``Scenario`` is made.  It turns into numbers what takes a packet size, puts a
buffer that is a time or a bandwidth-delay product into packets, fills in the links' default delays,
which depend on the round-trip times that cross them, and raises ``FieldError`` for every
combination that no network could be built from.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from vegasmodel import rules
from vegasmodel.units import FieldError

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario

MAX_FLOWS = 100_000
MAX_GROUPS = 300  # an answer has a ratio for every pair of them
DEFAULT_DELAY = 1e-3  # one way, seconds


def settle(scenario: Scenario) -> None:
    """Check all cross-field rules; put numbers for text and for ``delay = None``."""
    if not scenario.links:
        raise FieldError("link", [], "at least one [[link]]")
    if not scenario.flows:
        raise FieldError("flow", [], "at least one [[flow]]")
    if len(scenario.links) > 1000:
        raise FieldError("link", len(scenario.links), "at most 1000 links")
    if len(scenario.flows) > MAX_GROUPS:
        allowed = f"at most {MAX_GROUPS} groups; count makes one of many like flows"
        raise FieldError("flow", f"{len(scenario.flows)} tables", allowed)
    total = sum(group.count for group in scenario.flows)
    if total > MAX_FLOWS:
        raise FieldError("flow.count", total, f"at most {MAX_FLOWS} flows in all")
    _unique("link", [link.name for link in scenario.links])
    _unique("flow", [group.name for group in scenario.flows])
    _paths(scenario)
    _numbers(scenario)
    _buffers(scenario)
    _unique("flow", [member.name for member in scenario.members])
    _times(scenario)
    _drops(scenario)
    _delays(scenario)


def _unique(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            raise FieldError(f"{what}[{i}].name", name, f"a name that no other {what} has")
        seen.add(name)


def _paths(scenario: Scenario) -> None:
    known = [link.name for link in scenario.links]
    for i, group in enumerate(scenario.flows):
        for name in group.path or ():
            if name not in known:
                raise FieldError(
                    f"flow[{i}].path", name, f"names of links: {', '.join(known)[:80]}"
                )


def _numbers(scenario: Scenario) -> None:
    """What waits for a packet size: the scenario's, or of a flow its own, but for ``access``."""
    size = scenario.packet_size
    links = tuple(
        rules.resolve(link, f"link[{i}]", {}, size) for i, link in enumerate(scenario.links)
    )
    flows = tuple(
        rules.resolve(group, f"flow[{i}]", {"access": size}, scenario.size_of(group))
        for i, group in enumerate(scenario.flows)
    )
    object.__setattr__(scenario, "links", links)
    object.__setattr__(scenario, "flows", flows)


def _buffers(scenario: Scenario) -> None:
    """Packets for a buffer that is a time at full rate, or a bandwidth-delay product.

    That product is the link's capacity times the mean RTT of the flows that cross it.
    """
    links = list(scenario.links)
    for i, link in enumerate(links):
        if not rules.known(link.buffer):
            where, text = f"link[{i}].buffer", str(link.buffer)
            rtts = [
                member.rtt
                for member in scenario.members
                if link.name in (crossed.name for crossed in scenario.path(member.flow))
            ]
            if not rtts:
                raise FieldError(where, text, "a number of packets: no flow crosses this link")
            rule = rules.of(type(link), "buffer")
            mean = math.fsum(rtts) / len(rtts)
            packets = rule.packets(text, where, scenario.packet_size, link.capacity, mean)
            links[i] = dataclasses.replace(link, buffer=packets)
    object.__setattr__(scenario, "links", tuple(links))


def _times(scenario: Scenario) -> None:
    duration = scenario.run.duration
    for member in scenario.members:
        where = f"flow[{member.group}]"
        if member.start >= duration:
            raise FieldError(f"{where}.start", member.start, f"before duration, {duration:g} s")
        if not member.start < member.stop <= duration:
            allowed = f"after start, {member.start:g} s, and at most duration, {duration:g} s"
            raise FieldError(f"{where}.stop", member.stop, allowed)


def _drops(scenario: Scenario) -> None:
    names = {member.name for member in scenario.members}
    for i, link in enumerate(scenario.links):
        for drop in link.drops:
            if drop.flow not in names:
                allowed = f"the name of a flow: {', '.join(sorted(names))[:80]}"
                raise FieldError(f"link[{i}].drops.flow", drop.flow, allowed)


def _delays(scenario: Scenario) -> None:
    """A link's delay places a part of each crossing flow's RTT; more than the total is an error."""
    left: dict[
        str, float
    ] = {}  # per link: the least propagation that one of its unset delays may take, one way
    for member in scenario.members:
        group = member.flow
        links = scenario.path(group)
        given = 2 * sum(link.delay for link in links if link.delay is not None)
        least = scenario.transmission(group) + given
        if member.rtt < least:
            raise FieldError(
                f"flow[{member.group}].rtt",
                member.rtt,
                f"at least {least:.6g} s: transmission times of packet and ACK, and links' delays",
            )
        unset = [link.name for link in links if link.delay is None]
        for name in unset:
            share = (member.rtt - least) / (2 * len(unset))
            left[name] = min(left.get(name, DEFAULT_DELAY), share)
    filled = tuple(
        link
        if link.delay is not None
        else dataclasses.replace(link, delay=left.get(link.name, DEFAULT_DELAY))
        for link in scenario.links
    )
    object.__setattr__(scenario, "links", filled)
