"""Scenarios of Podlesny and Williamson, section IV, with the RD router, DropTail or RED/ECN.

The RD router has a queue for NewReno flows and one for Vegas flows.  ns-3 has this router.  ns-2
does not: two CBQ classes with weighted round robin stand in for it.  Their shares follow the number
of long-lived flows (Web flows do not count), and capacity that one class does not use goes to the
other.
"""

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Literal

from vegasmodel.queues import Queue
from vegasmodel.scenario import (
    DropTail,
    Flow,
    Link,
    Pareto,
    ParetoArrivals,
    Poisson,
    Red,
    Scenario,
    Uniform,
    load,
)

__all__ = [
    "QUEUES",
    "SCALE",
    "Discipline",
    "Web",
    "dumbbell",
    "one_way",
    "parking_lot",
    "single",
    "sudden",
]

FOLDER = Path(__file__).parent
SCALE = 0.2  # our numbers of flows, capacities and buffers over the paper's
FLOWS_PER_CLASS = 20  # NewReno flows, and Vegas flows; the paper has 100 of each
BITS_PER_PACKET = 8000.0
BUFFER_TIME = 0.25  # s that the link needs to send a full buffer
SHORTEST_RTT, LONGEST_RTT = 0.020, 0.300  # s, least and largest propagation RTT of the flows

Compared = Literal["rd", "droptail", "red"]
Discipline = Compared | Literal["red-high"]  # RED with higher thresholds, which we chose
QUEUES: tuple[Compared, ...] = ("droptail", "red", "rd")


@dataclasses.dataclass(frozen=True)
class Web:
    """Short flows that start at random times; half are NewReno, and half are Vegas."""

    rate: float  # flows per second, of both classes together
    size: float = 30.0  # packets, mean
    bursty: bool = False  # Pareto times between arrivals in place of exponential ones


def _queue(kind: Discipline, capacity: float, base: Queue) -> Queue:
    """The queue of the kind ``kind`` for a link of ``capacity`` pkt/s; ``base`` is that for RD."""
    if kind == "rd":
        return base
    if kind == "droptail":
        return DropTail()
    # The values that ns-2's RED chooses by default: thresholds for a target delay of 5 ms, a weight
    # with a time constant of one packet, and drop probabilities that rise to 1 above the upper
    # threshold. Only ``red-high`` has other thresholds.
    low, high = max(5.0, 0.005 * capacity / 2), 3 * max(5.0, 0.005 * capacity / 2)
    if kind == "red-high":
        low, high = 0.25 * BUFFER_TIME * capacity, 0.75 * BUFFER_TIME * capacity
    return Red(
        min_threshold=low,
        max_threshold=high,
        max_probability=0.1,
        weight=1 - math.exp(-1 / capacity),
        ecn=True,
        gentle=True,
    )


def _with_rtts(flow: Flow, capacity: float, low: float, high: float) -> Flow:
    """The flow with a propagation RTT between ``low`` and ``high`` seconds.

    ``capacity`` is the bottleneck's, pkt/s; the flow's access links have twice this rate.  The RTT
    of a scenario contains the transmissions, so they are added.
    """
    # s, transmissions of a data packet and its ACK (4 % of its size) at bottleneck and access links
    transmission = 1.04 * (1 / capacity + 2 / (2 * capacity))
    rtt = Uniform(low + transmission, high + transmission) if high > low else low + transmission
    return dataclasses.replace(flow, rtt=rtt, access=2 * capacity)


def _reverse(flow: Flow) -> Flow:
    """A flow like ``flow``, but in the reverse direction."""
    return dataclasses.replace(flow, name=f"{flow.law} back", direction="reverse")


def _short_flows(flow: Flow, web: Web, capacity: float) -> Flow:
    """The short flows ``web`` that have the law of ``flow``, on a link of ``capacity`` pkt/s."""
    rate = web.rate / 2  # the other half has the other law
    arrivals = ParetoArrivals(rate=rate, shape=1.1) if web.bursty else Poisson(rate=rate)
    size = Pareto(mean=web.size, shape=1.3)
    short = dataclasses.replace(
        flow, name=f"{flow.law} web", count=1, size=size, arrivals=arrivals, max_window=1000.0
    )
    return _with_rtts(short, capacity, low=0.1, high=0.1)


def _bottleneck(base: Link, kind: Discipline, capacity: float) -> Link:
    """The link ``base`` with another capacity, pkt/s, and a queue of the kind ``kind``."""
    buffer = float(int(BUFFER_TIME * capacity))
    queue = _queue(kind, capacity, base.queue)
    return dataclasses.replace(base, capacity=capacity, buffer=buffer, queue=queue)


@cache
def dumbbell(
    n_rate: int = FLOWS_PER_CLASS,
    n_delay: int = FLOWS_PER_CLASS,
    *,
    kind: Discipline = "rd",
    mbit: float = 20.0,
    longest: float = LONGEST_RTT,
    web: Web | None = None,
    masked: tuple[int, int] = (0, 0),
) -> Scenario:
    """The scenario of the paper's figure 3: NewReno, Vegas and short flows share a link.

    ``n_rate`` NewReno and ``n_delay`` Vegas flows run in each direction.  ``web`` describes the
    short flows; with ``None`` there are none.  The link has ``mbit`` Mbit/s and a queue of the kind
    ``kind``.  The longest propagation RTT is ``longest`` s.

    A packet's mark tells the router which of its two queues the packet joins: the one for low delay
    (Vegas) or the one for a high rate (NewReno). ``masked`` has two numbers of flows whose mark is
    wrong: of NewReno flows marked as Vegas, and of Vegas flows marked as NewReno.
    """
    base = load(FOLDER / "dumbbell.toml")
    capacity = mbit * 1e6 / BITS_PER_PACKET
    newreno, vegas = (_with_rtts(flow, capacity, SHORTEST_RTT, longest) for flow in base.flows)
    flows = [
        dataclasses.replace(newreno, count=n_rate - masked[0]),
        dataclasses.replace(vegas, count=n_delay - masked[1]),
    ]
    # ``service`` is what a flow's mark tells the router
    if masked[0]:
        flows.append(
            dataclasses.replace(newreno, name="masked newreno", count=masked[0], service="delay")
        )
    if masked[1]:
        flows.append(
            dataclasses.replace(vegas, name="masked vegas", count=masked[1], service="rate")
        )
    flows += [
        dataclasses.replace(_reverse(newreno), count=n_rate),
        dataclasses.replace(_reverse(vegas), count=n_delay),
    ]
    name = f"podlesny-{kind}-{n_rate}-newreno-{n_delay}-vegas-{mbit:g}-Mbit-{1e3 * longest:g}-ms"
    if web is not None:
        flows += [_short_flows(flow, web, capacity) for flow in (newreno, vegas)]
        name += f"-web-{web.rate:g}-of-{web.size:g}{'-bursty' if web.bursty else ''}"
    if any(masked):
        name += f"-masked-{masked[0]}-{masked[1]}"
    link = _bottleneck(base.links[0], kind, capacity)
    return dataclasses.replace(base, name=name, links=(link,), flows=tuple(flows))


def single(scenario: Scenario) -> Scenario:
    """The scenario with one run only, since ns-2 takes a minute or so for each at full scale."""
    return scenario.replace({"run.runs": 1})


def one_way(scenario: Scenario) -> Scenario:
    """The scenario without the reverse flows."""
    flows = tuple(flow for flow in scenario.flows if flow.direction == "forward")
    return dataclasses.replace(scenario, name=f"{scenario.name}-one-way", flows=flows)


@cache
def sudden(kind: Discipline, begin: float, end: float) -> Scenario:
    """The scenario of section IV-G from its 60th second on: the number of Vegas flows changes.

    ``kind`` is the kind of queue.  There are 20 NewReno flows.  There are 4 Vegas flows at first,
    and 20 from 20 s on.  There are no reverse flows.  Averages are from ``begin`` to ``end`` s,
    counted from the paper's 60th second; ``end`` is at most 40 s, when the NewReno flows leave.
    """
    base = dumbbell(kind=kind)
    newreno, vegas = base.flows[:2]
    early = round(0.2 * FLOWS_PER_CLASS)  # number of Vegas flows before the change
    flows = [newreno, dataclasses.replace(vegas, count=early)]
    if end > 20.0:
        late = dataclasses.replace(
            vegas, name="late vegas", count=FLOWS_PER_CLASS - early, start=20.0
        )
        flows.append(late)
    changes = {"run.duration": end, "run.warmup": begin, "run.runs": 3}
    name = f"podlesny-{kind}-sudden-{begin:g}-to-{end:g}-s"
    return base.replace(changes, name=name, flows=tuple(flows))


@cache
def parking_lot(kind: Discipline) -> Scenario:
    """The scenario of section IV-H and figure 11: five bottlenecks in a row.

    Some flows cross all of them (pool A), and others cross only one.  ``kind`` is the kind of their
    queues.
    """
    base = load(FOLDER / "dumbbell.toml")
    capacity = SCALE * 100e6 / BITS_PER_PACKET
    delay = 5e-3  # s one way, of each bottleneck
    links = tuple(
        dataclasses.replace(_bottleneck(base.links[0], kind, capacity), name=f"L{i}", delay=delay)
        for i in range(1, 6)
    )
    transmission = 1.04 / capacity  # s, of a data packet and its ACK at one bottleneck
    of_each_law = [dataclasses.replace(flow, count=round(20 * SCALE)) for flow in base.flows]
    flows = []
    for flow in of_each_law:
        through = _with_rtts(flow, capacity, low=0.060, high=0.300)
        assert isinstance(through.rtt, Uniform)
        # its RTTs include one of the five bottlenecks already
        rtt = Uniform(through.rtt.low + 4 * transmission, through.rtt.high + 4 * transmission)
        through = dataclasses.replace(through, rtt=rtt)
        flows += [dataclasses.replace(through, name=f"{flow.law} A"), _reverse(through)]
        for link in links:
            over_one = _with_rtts(flow, capacity, low=0.060, high=0.300)
            flows.append(
                dataclasses.replace(over_one, name=f"{flow.law} {link.name}", path=(link.name,))
            )
    run = dataclasses.replace(base.run, runs=5 if kind == "rd" else 3)
    name = f"podlesny-{kind}-parking-lot"
    return dataclasses.replace(base, name=name, links=links, flows=tuple(flows), run=run)
