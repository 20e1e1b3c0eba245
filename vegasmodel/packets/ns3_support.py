"""Checks, before anything runs, whether ns-3 can simulate a scenario.

ns-3 deviates in some details from the meaning that the scenario's keys have elsewhere in this
package. For example, it rounds Vegas's backlog up. ``remarks`` lists these deviations.
"""

from __future__ import annotations

from vegasmodel.fields.checked import as_written
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import find
from vegasmodel.packets.engine import check_queue, queue_limits
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Flow, Link, RateDelay, Red, Scenario
from vegasmodel.stacks import STACKS

__all__ = [
    "ACK",
    "HEADERS",
    "LAWS",
    "MAX_BYTES",
    "MAX_PORTS",
    "check",
    "remarks",
    "stretch",
]

HEADERS = 42  # bytes of a packet that are not data: 2 of the link, 20 of IP, 20 of TCP
ACK = HEADERS  # bytes of an ACK
# the numbers by which our ns-3 program knows queue disciplines and congestion controls
QUEUES = {"droptail": 0, "red": 1, "rd": 2}
LAWS = {"vegas": 0, "newreno": 1, "sack": 1, "reno": 2, "cubic": 3}
MAX_FLOWS = 4000  # as in ns-2
MAX_PORTS = 60_000  # connections of a run, those of short flows included: each has its own port
MAX_BYTES = 2**30  # bytes of a window that TCP's window scaling allows


def stretch(scenario: Scenario, group: Flow) -> tuple[int, int]:
    """The numbers of the first and the last router that the data of a flow cross in ns-3.

    The routers are in a row: link i of the scenario lies between router i and router i + 1.
    ``group`` is the flow's entry in the scenario.  Raises ``FieldError`` if the flow's links do not
    follow one another in the scenario's file.
    """
    numbers = [scenario.links.index(link) for link in scenario.path(group)]
    step = 1 if group.direction == "forward" else -1
    if numbers != list(range(numbers[0], numbers[0] + step * len(numbers), step)):
        names = [link.name for link in scenario.path(group)]
        allowed = "in ns-3 the links of a path must follow one another in the file"
        raise FieldError("flow.path", names, allowed)
    ends = numbers[0], numbers[-1] + 1
    return ends if step > 0 else (numbers[0] + 1, numbers[-1])


def check(scenario: Scenario) -> None:
    """Raise ``FieldError`` if ns-3 cannot simulate the scenario.

    The message names the field, its value and what is possible instead.
    """
    if len(scenario.members) > MAX_FLOWS:
        raise FieldError("flow.count", len(scenario.members), f"at most {MAX_FLOWS} flows in ns-3")
    for i, link in enumerate(scenario.links):
        _link(link, f"link[{i}]")
    for i, flow in enumerate(scenario.flows):
        _flow(scenario, flow, f"flow[{i}]")
        stretch(scenario, flow)  # raises an error if the path leaves out a link


def remarks(scenario: Scenario) -> tuple[Assumption, ...]:
    """The details in which ns-3 interprets the scenario differently from the rest of the package.

    These remarks are printed with the result of a run.
    """
    detail = f"a connection begins with a SYN; ACKs have {ACK} B, and more if SACK reports gaps"
    found = [Assumption("ns3-packets", False, detail)]
    laws = {flow.law for flow in scenario.flows}
    if "vegas" in laws:
        detail = (
            "ns-3's Vegas takes the least RTT of each round trip, and rounds its backlog up (it "
            "grows only at or below alpha - 1); slow start doubles every RTT, and a loss need not "
            "cut the window by a quarter"
        )
        found.append(Assumption("ns3-vegas", False, detail))
    if "cubic" in laws:
        detail = (
            "in ns-3 CUBIC's slow start ends when the RTT doubles, or when ACKs follow one another "
            "closely for an RTT (HyStart); before release 3.41 CUBIC has no Reno-friendly region "
            "(RFC 9438 4.3)"
        )
        found.append(Assumption("ns3-cubic", False, detail))
    if laws & {"reno", "newreno"}:
        detail = "every law recovers from losses by SACK; without it ns-3 wastes capacity"
        found.append(Assumption("ns3-recovery", False, detail))
    if any(isinstance(link.queue, Red) for link in scenario.links):
        detail = "RED does not count the packet that waits last, in the device of the link"
        found.append(Assumption("ns3-red", False, detail))
    return tuple(found)


def _link(link: Link, where: str) -> None:
    """Raise ``FieldError`` if ns-3 cannot simulate a link; ``where`` is its place in the file."""
    check_queue(link, where, QUEUES, "ns-3")
    if link.drops:
        wrong = "cannot be dropped on purpose in ns-3"
        raise FieldError(
            f"{where}.drops", link.drops[0].packets, "use ns-2 (--engine ns2)", wrong=wrong
        )
    if link.buffer < (2 if isinstance(link.queue, Red) else 1):
        allowed = "at least 1 packet in ns-3, and at least 2 with RED"
        raise FieldError(f"{where}.buffer", as_written(link, "buffer"), allowed)
    if isinstance(link.queue, RateDelay) and min(queue_limits(link)) < 1:
        allowed = "at least 1 packet for each class in ns-3; delay_buffer divides the buffer"
        raise FieldError(f"{where}.buffer", as_written(link, "buffer"), allowed)


def _flow(scenario: Scenario, flow: Flow, where: str) -> None:
    """Raise ``FieldError`` if ns-3 cannot simulate ``flow``; ``where`` is its place in the file."""
    if flow.law not in LAWS:
        allowed = f"vegasmodel runs only {', '.join(LAWS)} there"
        raise FieldError(f"{where}.law", flow.law, allowed, wrong="cannot be measured in ns-3")
    # Our ns-3 program leaves ns-3's own factors, by which losses cut windows. So ``decrease`` must
    # be vegasmodel's default. For Vegas this depends on the TCP implementation (``variant``).
    default = STACKS[flow.variant].decrease if flow.keeps_backlog else find(flow.law).decrease
    if flow.decrease != default:
        allowed = f"{default:g}, the default, for which ns-3 takes a value of its own"
        raise FieldError(f"{where}.decrease", flow.decrease, allowed)
    for key in ("alpha", "beta", "gamma") if flow.law == "vegas" else ():
        value = float(getattr(flow, key))
        if not value.is_integer():
            raise FieldError(
                f"{where}.{key}", as_written(flow, key), "a whole number of packets in ns-3"
            )
    size = round(scenario.size_of(flow))
    if size <= HEADERS:
        raise FieldError("packet_size", size, f"more than ns-3's headers, {HEADERS} B")
    if not flow.measures_base:
        allowed = '"measured", because no error of baseRTT can be set in ns-3'
        raise FieldError(f"{where}.over_estimate", as_written(flow, "over_estimate"), allowed)
    if flow.delay_noise:
        raise FieldError(f"{where}.delay_noise", as_written(flow, "delay_noise"), "0 in ns-3")
    most = MAX_BYTES // size
    if flow.max_window < 2 or (most < flow.max_window < float("inf")):
        allowed = f"2 to {most} packets, or inf, in ns-3"
        raise FieldError(f"{where}.max_window", as_written(flow, "max_window"), allowed)
