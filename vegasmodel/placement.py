"""Where a flow's round trip is spent, and how large its packets are on the wire.

``Scenario.transmission`` and the links' delays take their part of ``rtt``; the rest is split
evenly over four access legs.
"""

from __future__ import annotations

from vegasmodel.laws import find
from vegasmodel.scenario import Flow, Member, Scenario

HEADER = 40.0  # bytes; ns-2's tcpip_base_hdr_size_


def implementation(scenario: Scenario, group: Flow) -> str:
    """Whose code the sources of a group run, which decides how they count packets and time.

    ``paper`` is a law of Vegas.  Loss-based sources that say no more run beside the scenario's
    others: in Linux where these do, else in ns-2, as in the papers.
    """
    if group.law == "vegas" or group.variant != "paper":
        return group.variant
    stated = {other.variant for other in scenario.flows} - {"paper"}
    return "linux" if stated == {"linux"} else "ns2"


def left_out_of_laws(scenario: Scenario) -> str:
    """What the rules of the scenario's laws lack in the stacks where they run; empty: nothing."""
    rules = ((group, find(group.law).left_out) for group in scenario.flows)
    said = (
        lacks(implementation(scenario, group), float(group.decrease))
        for group, lacks in rules
        if lacks is not None
    )
    return "; ".join(sorted(set(said) - {""}))


def modern(scenario: Scenario, group: Flow) -> bool:
    """Whether the flow is of ns-2 with the defaults of 2.35, not those of the papers' years."""
    return implementation(scenario, group) == "ns2" and scenario.run.ns2_defaults == "2.35"


def work(scenario: Scenario, group: Flow) -> float:
    """A data packet of the group in packets of the scenario.

    ns-2 2.35 adds headers to those of its loss-based sources (useHeaders_).
    """
    headers = HEADER if modern(scenario, group) and group.law != "vegas" else 0.0
    return (scenario.size_of(group) + headers) / scenario.packet_size


def empty_rtt(scenario: Scenario, member: Member) -> float:
    """The flow's RTT with all queues empty: longer than its ``rtt`` by what headers take."""
    group = member.flow
    more = work(scenario, group) - scenario.size_of(group) / scenario.packet_size
    slow = [link.capacity for link in scenario.path(group)] + [scenario.access_rate(group)] * 2
    return member.rtt + more * sum(1.0 / rate for rate in slow)


def access_leg(scenario: Scenario, member: Member) -> float:
    """Seconds of propagation on each of the flow's four access legs."""
    delays = 2.0 * sum(link.delay for link in scenario.path(member.flow))
    return (member.rtt - scenario.transmission(member.flow) - delays) / 4.0


def ahead(scenario: Scenario, member: Member) -> float:
    """Seconds from the sender to the first link: an access leg, and its transmission."""
    group = member.flow
    return access_leg(scenario, member) + work(scenario, group) / scenario.access_rate(group)
