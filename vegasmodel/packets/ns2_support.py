"""Checks, before anything runs, whether ns-2 can simulate a scenario.

ns-2 deviates in some details from the meaning that the scenario's keys have elsewhere in this
package. For example, its buffer limit counts the packet in transmission. ``remarks`` lists these
deviations.
"""

from __future__ import annotations

from types import MappingProxyType

from vegasmodel.fields.checked import as_written
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.fields.lists import few
from vegasmodel.packets.engine import check_queue, queue_limits
from vegasmodel.packets.ns2_agents import AGENTS
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Flow, Link, RateDelay, Red, Scenario

__all__ = ["check", "remarks"]

MAX_FLOWS = 4000  # each node of ns-2 keeps a slot for every earlier node, so memory is quadratic
QUEUES = MappingProxyType({"droptail": "DropTail", "red": "RED", "rd": "CBQ/WRR"})  # ns-2's classes
HEADERS = 40  # bytes that ns-2.35 adds to packetSize_ in all TCP agents but Vegas (useHeaders_)
MAX_FORCED = 1_000_000  # highest number of a packet to drop; ns-2 keeps a slot for each below it


def check(scenario: Scenario) -> None:
    """Raise ``FieldError`` if ns-2 cannot simulate the scenario.

    The message names the field, its value and what is possible instead.
    """
    if len(scenario.members) > MAX_FLOWS:
        raise FieldError("flow.count", len(scenario.members), f"at most {MAX_FLOWS} flows in ns-2")
    for i, link in enumerate(scenario.links):
        _link(scenario, link, f"link[{i}]")
    for i, flow in enumerate(scenario.flows):
        if flow.law not in AGENTS:
            raise FieldError(
                f"flow[{i}].law",
                flow.law,
                f"vegasmodel runs only {', '.join(AGENTS)} there",
                wrong="cannot be measured in ns-2",
            )
        _flow(flow, f"flow[{i}]")


def remarks(scenario: Scenario) -> tuple[Assumption, ...]:
    """The details in which ns-2 interprets the scenario differently from the rest of the package.

    These remarks are printed with the result of a run.
    """
    found = []
    finite = [link for link in scenario.links if not link.never_full]
    if any(isinstance(link.queue, (DropTail, RateDelay)) for link in finite):
        detail = (
            "ns-2's limit counts the packet in transmission, too, so buffer - 1 packets can wait"
        )
        found.append(Assumption("ns2-buffer", False, detail))
    loss_based = [flow for flow in scenario.flows if flow.law != "vegas"]
    if scenario.run.ns2_defaults == "2.35" and loss_based:
        sizes = few([f"{flow.name} {scenario.size_of(flow) + HEADERS:g} B" for flow in loss_based])
        detail = f"ns-2.35 adds {HEADERS} B of headers to each packet of a loss-based flow: {sizes}"
        found.append(Assumption("ns2-headers", False, detail))
    if any(isinstance(link.queue, RateDelay) for link in scenario.links):
        detail = "class-based queueing is used; an ACK belongs to the class of its flow"
        found.append(Assumption("ns2-rate-delay", False, detail))
    if any(flow.law == "vegas" and flow.over_estimate == 0.0 for flow in scenario.flows):
        detail = "Vegas flows that know baseRTT begin with a window of 2, without slow start"
        found.append(Assumption("ns2-slow-start", False, detail))
    in_ns_2_35 = scenario.run.ns2_defaults == "2.35"
    if in_ns_2_35 and any(flow.law == "vegas" and flow.initial_window for flow in scenario.flows):
        detail = "in ns-2.35 Vegas has its initial_window only from the ACK of its second packet on"
        found.append(Assumption("ns2-initial-window", False, detail))
    if any(flow.delay_noise for flow in scenario.flows):
        detail = (
            "the noise is before the first link, with all of the propagation delay that is not on "
            "links, and packets stay in order"
        )
        found.append(Assumption("ns2-placement", False, detail))
    return tuple(found)


def _link(scenario: Scenario, link: Link, where: str) -> None:
    """Raise ``FieldError`` if ns-2 cannot simulate a link; ``where`` is its place in the file."""
    check_queue(link, where, QUEUES, "ns-2")
    if isinstance(link.queue, DropTail) and link.buffer < 2:
        allowed = "at least 2 packets in ns-2, whose limit counts the one in transmission"
        raise FieldError(f"{where}.buffer", as_written(link, "buffer"), allowed)
    if isinstance(link.queue, Red) and link.buffer < 1:
        allowed = "at least 1 packet in ns-2, whose RED otherwise drops every packet"
        raise FieldError(f"{where}.buffer", as_written(link, "buffer"), allowed)
    if isinstance(link.queue, RateDelay) and min(queue_limits(link)) < 2:
        allowed = "at least 2 packets for each class in ns-2; delay_buffer divides the buffer"
        raise FieldError(f"{where}.buffer", as_written(link, "buffer"), allowed)
    flows = {member.name: member.flow for member in scenario.members}
    for drop in link.drops:
        if max(drop.packets) > MAX_FORCED:
            raise FieldError(
                f"{where}.drops.packets", max(drop.packets), f"at most {MAX_FORCED} in ns-2"
            )
        if flows[drop.flow].arrivals != "once" or link not in scenario.path(flows[drop.flow]):
            allowed = "a flow that crosses this link and does not arrive at random (arrivals)"
            raise FieldError(f"{where}.drops.flow", drop.flow, allowed)


def _flow(flow: Flow, where: str) -> None:
    """Raise ``FieldError`` if ns-2 cannot simulate a table ``[[flow]]``, ``where`` in the file."""
    if flow.law == "vegas":
        _vegas(flow, where)
    fixed = AGENTS[flow.law].decrease  # the only factor that ns-2 has for the law, if any
    if fixed not in (None, flow.decrease):
        raise FieldError(f"{where}.decrease", flow.decrease, f"{exactly(fixed)}, as in ns-2")
    if flow.over_estimate not in ("measured", 0.0):
        allowed = '"measured" or "0 s": no other error of baseRTT can be set in ns-2'
        raise FieldError(f"{where}.over_estimate", as_written(flow, "over_estimate"), allowed)
    if flow.over_estimate == 0.0 and flow.arrivals != "once":
        raise FieldError(
            f"{where}.over_estimate", "0 s", '"measured" in ns-2 for flows that arrive at random'
        )
    if flow.initial_window is not None and flow.over_estimate == 0.0:
        allowed = 'leave it out if over_estimate is "0 s": such a flow begins with 2 in ns-2'
        raise FieldError(f"{where}.initial_window", as_written(flow, "initial_window"), allowed)
    if flow.max_window < 2:
        raise FieldError(
            f"{where}.max_window", as_written(flow, "max_window"), "at least 2 packets in ns-2"
        )


def _vegas(flow: Flow, where: str) -> None:
    """Raise ``FieldError`` if ns-2's Vegas does not have the flow's thresholds or its variant."""
    for key in ("alpha", "beta", "gamma"):
        value = float(getattr(flow, key))
        if not value.is_integer():
            raise FieldError(
                f"{where}.{key}", as_written(flow, key), "a whole number of packets in ns-2"
            )
    if flow.variant == "linux":
        allowed = "paper or ns2; docs/linux.md says how to record a trace of a Linux kernel"
        wrong = "cannot be measured in ns-2"
        raise FieldError(f"{where}.variant", "linux", allowed, wrong=wrong)
