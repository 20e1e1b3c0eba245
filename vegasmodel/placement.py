"""Splits a flow's propagation delay over its path, and computes the size of its packets.

A path consists of the scenario's links and four access legs: from the sender to the first link,
from the last link to the receiver, and the same two for the ACKs. The field ``rtt`` of a flow is
the whole round trip with empty queues. What remains of it without the transmission times and the
delays of the links is split evenly over the four legs.
"""

from __future__ import annotations

from vegasmodel import stacks
from vegasmodel.laws import find
from vegasmodel.scenario import Flow, Member, Scenario
from vegasmodel.stacks import Stack


def implementation(scenario: Scenario, group: Flow) -> str:
    """The name of the TCP implementation that a group's senders run."""
    return stacks.running(group.law, group.variant, (other.variant for other in scenario.flows))


def stack(scenario: Scenario, group: Flow) -> Stack:
    """The group's TCP implementation, in the version that the scenario asks for."""
    return stacks.find(implementation(scenario, group), scenario.run.ns2_defaults)


def link_stack(scenario: Scenario) -> Stack:
    """The TCP implementation that decides how packets in the links' buffers are counted.

    For example, ns-2 counts the packet in transmission as one in the buffer.
    """
    return stacks.of_links(
        (group.law for group in scenario.flows),
        (group.variant for group in scenario.flows),
        (implementation(scenario, group) for group in scenario.flows),
    )


def left_out_of_laws(scenario: Scenario, *, counted: bool = False) -> str:
    """A text that says how the scenario's TCP implementations differ from our rules for the laws.

    The text is empty if they do not differ.  ``counted``: the caller simulates the implementation's
    own CUBIC, so the text need not mention CUBIC.
    """
    said = (
        law.left_out(implementation(scenario, group), float(group.decrease))
        for group, law in ((group, find(group.law)) for group in scenario.flows)
        if law.left_out is not None
        and not (counted and law.is_cubic and stack(scenario, group).bictcp)
    )
    return "; ".join(sorted(set(said) - {""}))


def header(scenario: Scenario, group: Flow) -> float:
    """Bytes of headers that a data packet of the group has beyond the scenario's packet size."""
    runs = stack(scenario, group)
    return 0.0 if group.law in runs.own_packets else runs.header


def work(scenario: Scenario, group: Flow) -> float:
    """The size of a data packet of the group with its headers, in packets of the scenario."""
    return (scenario.size_of(group) + header(scenario, group)) / scenario.packet_size


def empty_rtt(scenario: Scenario, member: Member) -> float:
    """The flow's RTT with all queues empty, s.

    This is the field ``rtt`` plus the time for which the headers beyond the scenario's packet size
    are transmitted.
    """
    group = member.flow
    more = work(scenario, group) - scenario.size_of(group) / scenario.packet_size
    slow = [link.capacity for link in scenario.path(group)] + [scenario.access_rate(group)] * 2
    return member.rtt + more * sum(1.0 / rate for rate in slow)


def access_leg(scenario: Scenario, member: Member) -> float:
    """The propagation delay of one access link in one direction, s.

    A round trip crosses an access link four times: two links, at the sender and at the receiver, in
    both directions.  Their delays are equal.
    """
    delays = 2.0 * sum(link.delay for link in scenario.path(member.flow))
    return (member.rtt - scenario.transmission(member.flow) - delays) / 4.0


def to_first_link(scenario: Scenario, member: Member) -> float:
    """Seconds from the sender to the first link: an access leg and its transmission time."""
    group = member.flow
    return access_leg(scenario, member) + work(scenario, group) / scenario.access_rate(group)
