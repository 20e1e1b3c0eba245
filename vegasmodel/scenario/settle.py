"""Completes the fields of a new scenario, and checks that they fit together."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from vegasmodel.fields import checked, rules
from vegasmodel.fields.units import FieldError
from vegasmodel.scenario.parts import MAX_FLOWS, Link

if TYPE_CHECKING:
    from vegasmodel.scenario.scenario import Scenario

__all__ = ["MAX_GROUPS", "settle"]

MAX_GROUPS = 300  # an answer has a ratio for every pair of groups
DEFAULT_DELAY = 1e-3  # one way, seconds


def settle(scenario: Scenario) -> None:
    """Complete the fields of a new scenario, and check that they fit together.

    Values given as text, such as buffers in bandwidth-delay products, become numbers. Links without
    a delay get their default delay. Raises ``FieldError`` if values contradict one another.
    """
    if not scenario.links:
        raise FieldError("links", [], "at least one link")
    if not scenario.flows:
        raise FieldError("flows", [], "at least one group of flows")
    if len(scenario.links) > 1000:
        raise FieldError("links", len(scenario.links), "at most 1000 links")
    if len(scenario.flows) > MAX_GROUPS:
        allowed = f"at most {MAX_GROUPS} groups; count makes one of many like flows"
        raise FieldError("flows", len(scenario.flows), allowed)
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
            said = f"is the name of two {what}s"
            raise FieldError(f"{what}[{i}].name", name, "give each a name of its own", wrong=said)
        seen.add(name)


def _paths(scenario: Scenario) -> None:
    known = [link.name for link in scenario.links]
    for i, group in enumerate(scenario.flows):
        for name in group.path or ():
            if name not in known:
                allowed = f"the name of a link: {', '.join(known)[:80]}"
                raise FieldError(f"flow[{i}].path", name, allowed)


def _numbers(scenario: Scenario) -> None:
    """Convert text that needs a packet size, such as ``"20 kB"``, to numbers in links and flows.

    A flow's fields are converted with the flow's packet size. The fields of links, and the rate of
    a flow's access links (``access``), are converted with the scenario's packet size.
    """
    size = scenario.packet_size
    links = tuple(
        checked.resolve(link, f"link[{i}]", {}, size) for i, link in enumerate(scenario.links)
    )
    flows = tuple(
        checked.resolve(group, f"flow[{i}]", {"access": size}, scenario.size_of(group))
        for i, group in enumerate(scenario.flows)
    )
    object.__setattr__(scenario, "links", links)
    object.__setattr__(scenario, "flows", flows)


def _buffers(scenario: Scenario) -> None:
    """Convert buffers given as times, or in bandwidth-delay products, to packets.

    A buffer given as a time holds the packets that the link transmits in this time. A
    bandwidth-delay product is the link's capacity times the mean RTT of the flows that cross the
    link. RED's thresholds are converted in the same way.  Raises ``FieldError`` if a link has such
    a value and no flow crosses the link.
    """
    links = list(scenario.links)
    for i, link in enumerate(links):
        where = f"link[{i}].queue"
        numbers = _in_packets(scenario, link, link.queue, where)
        queue = checked.evolve(link.queue, numbers, where)
        own = _in_packets(scenario, link, link, f"link[{i}]")
        if own or queue != link.queue:
            links[i] = dataclasses.replace(link, **own, queue=queue)
    object.__setattr__(scenario, "links", tuple(links))


def _in_packets(scenario: Scenario, link: Link, part: Any, where: str) -> dict[str, Any]:
    """Convert to packets the fields of ``part`` that were given as a time or in BDP.

    ``part`` is the link or its queue discipline, and ``where`` is its name in error messages.
    Returns the numbers of packets by the names of the fields.
    """
    found: dict[str, Any] = {}
    for key, rule in ((f.name, f.metadata.get("rule")) for f in dataclasses.fields(part)):
        value = getattr(part, key)
        if not isinstance(rule, rules.BufferRule) or rules.known(value):
            continue
        rtts = [
            member.rtt
            for member in scenario.members
            if link.name in (crossed.name for crossed in scenario.path(member.flow))
        ]
        place, text = f"{where}.{key}", str(value)
        if not rtts:
            raise FieldError(place, text, "a number of packets: no flow crosses this link")
        mean = math.fsum(rtts) / len(rtts)
        found[key] = rule.packets(text, place, scenario.packet_size, link.capacity, mean)
    return found


def _times(scenario: Scenario) -> None:
    duration = scenario.run.duration
    for member in scenario.members:
        where = f"flow[{member.group}]"
        if member.start >= duration:
            allowed = f"less than {duration:g} s, the duration of the run (run.duration)"
            raise FieldError(f"{where}.start", member.start, allowed)
        if not member.start < member.stop <= duration:
            allowed = (
                f"more than {member.start:g} s, the start, and at most {duration:g} s, "
                "the duration of the run (run.duration)"
            )
            raise FieldError(f"{where}.stop", member.stop, allowed)


def _drops(scenario: Scenario) -> None:
    names = {member.name for member in scenario.members}
    for i, link in enumerate(scenario.links):
        for drop in link.drops:
            if drop.flow not in names:
                allowed = f"the name of a flow: {', '.join(sorted(names))[:80]}"
                raise FieldError(f"link[{i}].drops.flow", drop.flow, allowed)


def _delays(scenario: Scenario) -> None:
    """Give links without a delay their default: 1 ms, or less if a flow's RTT is too short for it.

    A flow's RTT contains the delay of each link on its path twice, there and back, and the
    transmission times of a packet and its ACK. Raises ``FieldError`` if an RTT is too short for the
    given delays and the transmission times.
    """
    # the default delay of each link, s: 1 ms, or less if the RTT of a flow leaves less
    left: dict[str, float] = {}
    for member in scenario.members:
        group = member.flow
        links = scenario.path(group)
        given = 2 * math.fsum(link.delay for link in links if link.delay is not None)
        least = scenario.transmission(group) + given
        if member.rtt < least:
            slowest = min(link.capacity for link in links)
            raise FieldError(
                f"flow[{member.group}].rtt",
                member.rtt,
                f"at least {least:.6g} s, the transmission times of a packet and its ACK and twice "
                f"the delays of the links (the slowest link carries {slowest:g} pkt/s)",
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
