"""The network of the papers ``tsang`` and ``evaluation``: two sources that share one link.

The shared link goes from the router R1 to the router R2, and each source has links of its own
before and after it.
"""

import dataclasses

from vegasmodel.scenario import Link, Scenario

__all__ = ["USUAL_DELAY", "link_by_link", "shared"]

USUAL_DELAY = 1e-3  # s, one-way delay of every link but the one whose delay the papers vary
# pkt/s, the rate of the access links that a scenario adds to each flow's path; so high that they
# take no time
INSTANT = 1e9


def link_by_link(scenario: Scenario, last: tuple[float, float]) -> Scenario:
    """A scenario of one link and two flows, but with each access link as a link of the scenario.

    In a scenario with one link, the delay of a flow is split evenly over its access links.  But
    phase effects depend on which link has the delay.  So here each link gets the delay that the
    paper gives it: ``last`` has the seconds one way from R2 to each receiver, and every other link
    takes 1 ms.
    """
    access = scenario.access_rate(scenario.flows[0])
    shared = scenario.links[0]
    links = [dataclasses.replace(shared, name="R1-R2")]
    flows = []
    for i, (flow, delay) in enumerate(zip(scenario.flows, last, strict=True), 1):
        into, out = f"S{i}-R1", f"R2-D{i}"
        links += [
            Link(name=into, capacity=access, delay=USUAL_DELAY),
            Link(name=out, capacity=access, delay=delay),
        ]
        # s, of a data packet and its ACK at all links of the path
        transmission = (1 + scenario.ack_size / scenario.packet_size) * (
            1 / shared.capacity + 2 / access + 2 / INSTANT
        )
        # the factor: rounding must not make the RTT less than the links' delays, which is an error
        rtt = (2 * (2 * USUAL_DELAY + delay) + transmission) * (1 + 1e-12)
        path = (into, "R1-R2", out)
        flows.append(dataclasses.replace(flow, path=path, access=INSTANT, rtt=rtt))
    return dataclasses.replace(scenario, links=tuple(links), flows=tuple(flows))


def shared(scenario: Scenario) -> Scenario:
    """The scenario with the shared link only, for models that have only one link.

    The first link of the scenario is taken for the shared one.  The other links are left out if
    three conditions hold: all flows cross the first link, each other link serves one flow only, and
    each other link is faster than the first.  Then no packet waits at the other links in a fluid
    model.  If a condition does not hold, or if there is only one link, the result is the scenario
    itself.
    """
    first, *others = scenario.links
    paths = [flow.path or () for flow in scenario.flows]
    one_flow_each = all(sum(link.name in path for path in paths) == 1 for link in others)
    all_share = all(first.name in path for path in paths)
    faster = all(link.capacity > first.capacity for link in others)
    if not (others and one_flow_each and all_share and faster):
        return scenario
    flows = tuple(dataclasses.replace(f, path=None, access=None) for f in scenario.flows)
    return dataclasses.replace(scenario, links=(first,), flows=flows)
