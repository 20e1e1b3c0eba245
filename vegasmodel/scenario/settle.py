"""Completes the links and flows of a new scenario, and checks that all its fields fit together.

In the functions, ``links`` and ``flows`` are the links and the groups of flows, and ``all_flows``
are the single flows of all groups. ``packet_size`` and ``ack_size`` are the scenario's, in bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vegasmodel.fields import checked, rules
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.scenario.parts import MAX_FLOWS, Flow, Link, Member, Run
from vegasmodel.scenario.routes import members, path, size_of, transmission
from vegasmodel.scenario.varying import TIME

__all__ = ["MAX_GROUPS", "settle"]

MAX_GROUPS = 300  # more would make a result too large: it has a ratio for every pair of groups
DEFAULT_DELAY = 1e-3  # default propagation delay of a link, one way, s

Links = tuple[Link, ...]
Flows = tuple[Flow, ...]


def settle(
    links: Links, flows: Flows, packet_size: float, ack_size: float, run: Run
) -> tuple[Links, Flows]:
    """Complete a new scenario's links and flows, and check that all its fields fit together.

    Values given as text, such as buffers in bandwidth-delay products, become numbers. Links without
    a delay get their default delay. ``packet_size`` and ``ack_size`` are in bytes, and ``run`` has
    the duration. Raises ``FieldError`` if values contradict one another.
    """
    _check_counts(links, flows)
    _check_unique("link", enumerate(link.name for link in links))
    _check_unique("flow", enumerate(group.name for group in flows))
    _check_ratio_names([group.name for group in flows])
    _check_paths(links, flows)
    links, flows = _sizes_in_packets(links, flows, packet_size)
    all_flows = members(flows, run)
    links = _buffers_in_packets(links, all_flows, packet_size)
    # A group ``a`` of several flows has the flows ``a[0]``, ``a[1]``, ... So two flows may have the
    # same name although the names of the groups, checked above, differ.
    _check_unique("flow", ((member.group, member.name) for member in all_flows))
    _check_times(all_flows, run)
    _check_drops(links, all_flows)
    return _with_default_delays(links, all_flows, packet_size, ack_size), flows


def _check_counts(links: Links, flows: Flows) -> None:
    """Check that there are links and flows, and not too many."""
    if not links:
        raise FieldError("links", [], "at least one link")
    if not flows:
        raise FieldError("flows", [], "at least one group of flows")
    if len(links) > 1000:
        raise FieldError("links", len(links), "at most 1000 links")
    if len(flows) > MAX_GROUPS:
        allowed = f"at most {MAX_GROUPS} groups; count makes one of many like flows"
        raise FieldError("flows", len(flows), allowed)
    total = sum(group.count for group in flows)
    if total > MAX_FLOWS:
        raise FieldError("flow.count", total, f"at most {MAX_FLOWS} flows in all")


def _check_unique(what: str, names: Iterable[tuple[int, str]]) -> None:
    """Check that no two links, or no two flows (``what``), have the same name.

    Beside each name stands the index of its entry (``[[link]]`` or ``[[flow]]``) in the scenario.
    """
    seen: set[str] = set()
    for i, name in names:
        if name in seen:
            text = f"is the name of two {what}s"
            raise FieldError(f"{what}[{i}].name", name, "give each a name of its own", wrong=text)
        seen.add(name)


def _check_ratio_names(names: list[str]) -> None:
    """Check that no two pairs of groups have ratios of the same name.

    The groups ``a`` and ``b/c`` have the ratio ``a/b/c``, and so have ``a/b`` and ``c``.
    """
    if not any("/" in name for name in names):
        return
    seen: set[str] = set()
    for a, b in itertools.permutations(names, 2):
        ratio = f"{a}/{b}"
        if ratio in seen:
            name = a if "/" in a else b
            allowed = f'a name without "/", since two pairs of groups have the ratio {ratio}'
            raise FieldError(f"flow[{names.index(name)}].name", name, allowed)
        seen.add(ratio)


def _check_paths(links: Links, flows: Flows) -> None:
    """Check that the paths of all groups consist of names of links."""
    known = [link.name for link in links]
    for i, group in enumerate(flows):
        for name in group.path or ():
            if name not in known:
                allowed = f"the name of a link: {', '.join(known)[:80]}"
                raise FieldError(f"flow[{i}].path", name, allowed)


def _sizes_in_packets(links: Links, flows: Flows, packet_size: float) -> tuple[Links, Flows]:
    """Convert text that needs a packet size, such as ``"20 kB"``, to numbers in links and flows.

    A flow's fields are converted with the flow's packet size. The fields of links, and the rate of
    a flow's access links (``access``), are converted with the scenario's packet size.
    """
    sized = tuple(
        checked.resolve(link, f"link[{i}]", {}, packet_size) for i, link in enumerate(links)
    )
    groups = tuple(
        checked.resolve(group, f"flow[{i}]", {"access": packet_size}, size_of(group, packet_size))
        for i, group in enumerate(flows)
    )
    return sized, groups


def _buffers_in_packets(links: Links, all_flows: Sequence[Member], packet_size: float) -> Links:
    """Convert buffers given as times, or in bandwidth-delay products, to packets.

    A buffer given as a time holds the packets that the link transmits in this time. A
    bandwidth-delay product is the link's capacity times the mean RTT of the flows that cross the
    link. RED's thresholds are converted in the same way. ``packet_size`` is in bytes. Raises
    ``FieldError`` if a buffer or a threshold is given in one of these two ways, but no flow crosses
    the link.
    """
    filled = list(links)
    for i, link in enumerate(links):
        rtts = functools.partial(_rtts, links, all_flows, link.name)
        where = f"link[{i}].queue"
        queue_numbers = _in_packets(link, link.queue, rtts, packet_size, where)
        queue = checked.evolve(link.queue, queue_numbers, where) if queue_numbers else link.queue
        link_numbers = _in_packets(link, link, rtts, packet_size, f"link[{i}]")
        if link_numbers or queue != link.queue:
            filled[i] = dataclasses.replace(link, **link_numbers, queue=queue)
    return tuple(filled)


def _rtts(links: Links, all_flows: Sequence[Member], name: str) -> list[float]:
    """The RTTs of the flows that cross the link with this name, s."""
    return [
        member.rtt
        for member in all_flows
        if name in (crossed.name for crossed in path(links, member.flow))
    ]


def _in_packets(
    link: Link, part: Any, rtts: Callable[[], list[float]], packet_size: float, where: str
) -> dict[str, Any]:
    """Convert to packets the fields of ``part`` that were given as a time or in BDP.

    ``part`` is the link or its queue discipline, and ``where`` is its name in error messages.
    ``rtts()`` gives the RTTs of the flows that cross the link. ``packet_size`` is in bytes. Returns
    the numbers of packets by the names of the fields.
    """
    found: dict[str, Any] = {}
    for key, rule in ((f.name, f.metadata.get("rule")) for f in dataclasses.fields(part)):
        value = getattr(part, key)
        if not isinstance(rule, rules.BufferRule) or rules.known(value):
            continue
        place, text = f"{where}.{key}", str(value)
        found_rtts = rtts()
        if not found_rtts:
            raise FieldError(place, text, "a number of packets: no flow crosses this link")
        mean = math.fsum(found_rtts) / len(found_rtts)
        found[key] = rule.packets(text, place, packet_size, link.capacity, mean)
    return found


def _check_times(all_flows: Sequence[Member], run: Run) -> None:
    """Check that each flow starts and then stops before the end of the run, or at its end."""
    duration = run.duration
    for member in all_flows:
        where = f"flow[{member.group}]"
        if member.start >= duration:
            allowed = f"less than {exactly(duration)} s, the duration of the run (run.duration)"
            raise FieldError(f"{where}.start", checked.with_unit(TIME, member.start), allowed)
        if not member.start < member.stop <= duration:
            allowed = (
                f"more than {exactly(member.start)} s, the start, and at most "
                f"{exactly(duration)} s, the duration of the run (run.duration)"
            )
            raise FieldError(f"{where}.stop", checked.with_unit(TIME, member.stop), allowed)


def _rounded_up(value: float) -> float:
    """The least number with six significant digits that is at least ``value``, which is positive.

    A smaller one, as a bound in an error message, would be a value that is refused.
    """
    nearest = float(f"{value:.6g}")
    step = float(f"1e{math.floor(math.log10(value)) - 5}")
    return nearest if nearest >= value else float(f"{nearest + step:.6g}")


def _check_drops(links: Links, all_flows: Sequence[Member]) -> None:
    """Check that the packets that ns-2 drops on purpose belong to flows of the scenario."""
    names = {member.name for member in all_flows}
    for i, link in enumerate(links):
        for drop in link.drops:
            if drop.flow not in names:
                allowed = f"the name of a flow: {', '.join(sorted(names))[:80]}"
                raise FieldError(f"link[{i}].drops.flow", drop.flow, allowed)


def _with_default_delays(
    links: Links, all_flows: Sequence[Member], packet_size: float, ack_size: float
) -> Links:
    """Give links without a delay their default: 1 ms, or less if a flow's RTT is too short for it.

    A flow's RTT contains the delay of each link on its path twice, there and back, and the
    transmission times of a packet and its ACK. What is then left of it is divided evenly among the
    path's links without a delay, and none of them gets more. ``packet_size`` and ``ack_size`` are
    in bytes. Raises ``FieldError`` if an RTT is too short for the given delays and the transmission
    times.
    """
    # the default delay of each link, by its name, s: the least that a flow on it allows
    defaults: dict[str, float] = {}
    for member in all_flows:
        crossed = path(links, member.flow)
        given = 2 * math.fsum(link.delay for link in crossed if link.delay is not None)
        shortest = transmission(links, member.flow, packet_size, ack_size) + given
        if member.rtt < shortest:
            slowest = min(link.capacity for link in crossed)
            least = checked.with_unit(TIME, _rounded_up(shortest))
            raise FieldError(
                f"flow[{member.group}].rtt",
                checked.with_unit(TIME, member.rtt),
                f"at least {least}, the transmission times of a packet and its ACK and twice the "
                f"delays of the links (the slowest link carries {slowest:g} pkt/s)",
            )
        unset = [link.name for link in crossed if link.delay is None]
        for name in unset:
            share = (member.rtt - shortest) / (2 * len(unset))
            defaults[name] = min(defaults.get(name, DEFAULT_DELAY), share)
    return tuple(
        link
        if link.delay is not None
        else dataclasses.replace(link, delay=defaults.get(link.name, DEFAULT_DELAY))
        for link in links
    )
