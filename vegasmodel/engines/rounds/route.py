"""Finds the queues of a scenario, the queues that each flow crosses, and the delays between them.

A link has one queue in each direction in which data packets cross it. (With the Rate-Delay services
of Podlesny and Williamson it has two, one for each class of flows.) ACKs that cross the link in
this direction pass through the same queue. If only ACKs cross the link in a direction, it has no
queue there, and delays the ACKs by a constant time. In three cases the link nevertheless has a
queue, for ACKs alone (``ack_queues.py``).

A flow with slow access links crosses two more queues (``access.py``): first the queue of its access
link at the sender, and last the queue of its access link at the receiver. A flow whose delay has
noise (``delay_noise``) also crosses the queue at the sender. Its packets get their random delay
between this queue and the next one.

The key of a queue consists of its link, its direction and its class of flows. In the functions,
``queues`` is a dictionary of the queues found so far: it maps each queue's key to its index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.access import (
    ENDS,
    RECEIVER,
    SENDER,
    is_slow,
    queues_at_sender,
)
from vegasmodel.engines.rounds.ack_queues import ack_queues, opposite
from vegasmodel.engines.rounds.classes import Key, class_record, class_stores, share_changes
from vegasmodel.engines.rounds.clocks import clocks
from vegasmodel.engines.rounds.state import DROPTAIL, HOP, LINK, RED
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Link, Member, RateDelay, Red, Scenario
from vegasmodel.scenario.placement import (
    access_leg,
    empty_rtt,
    link_stack,
    queue_of,
    to_first_link,
    work,
)

BLOCK = 8.0  # bytes of a SACK block in an ACK
INSTANT = 1e-8  # packets: if a queue serves less between two moments, they count as one instant
# the disciplines that ``rounds`` can simulate, as ``state.Queue`` stores them
DISCIPLINES = MappingProxyType({"droptail": DROPTAIL, "red": RED, "rd": DROPTAIL})


class Hop(NamedTuple):
    """One queue on the path of one flow, which the flow's data packets or its ACKs cross.

    The fields become those of the same name in ``state.Hop``.
    """

    link: int  # index of the queue
    data: bool  # data cross it, not ACKs
    last: bool  # the next stop is the sender
    precedes: bool  # an arrival comes before a departure of the same instant
    work: float  # size of one of the flow's packets here, in packets of the scenario
    block: float  # size of a SACK block in one of the flow's ACKs here; 0: there is none
    block_time: float  # seconds that the receiver's access link takes to send this block
    wire: float  # seconds on the last wire before it
    to_next: float  # seconds to the next queue in the empty network


@dataclass(frozen=True)
class Routes:
    """The queues of a scenario, and the path of each flow through them."""

    keys: tuple[Key, ...]  # the link, direction and class of each queue
    links: NDArray[np.void]  # [queue] their records (``state.Queue``)
    # The records of hops (``state.Hop``), each of which is one queue on one flow's path: first the
    # hops of Rate-Delay classes, which belong to no flow, then those of each flow in a row.
    hops: NDArray[np.void]
    first: NDArray[np.int64]  # [flow] index of its first hop
    shares: Floats  # when the shares of Rate-Delay classes change (``state.Net.shares``)
    longest: float  # seconds that an interval of arrivals may last (``clocks.clocks``)

    @property
    def data_queues(self) -> int:
        """Number of queues that the data packets of at least one flow cross."""
        hops = self.hops[self.first[0] :]
        found = set(hops["link"][hops["data"] == 1])
        return len([k for k in found if self.keys[k][1] not in ENDS])


def _key(link: Link, direction: str, group: Flow) -> Key:
    """The key of the queue at ``link`` that the flows of ``group`` cross in this direction."""
    return link.name, direction, queue_of(link, group)


def _ack_queue(link: Link, group: Flow, queues: dict[Key, int]) -> int | None:
    """The index of the queue at ``link`` that the ACKs of the flows of ``group`` join, or ``None``.

    If data packets of other flows cross the link in the direction of the ACKs, the ACKs join the
    queue of these packets. (On a link with Rate-Delay services this is the queue of the flow's
    class.) Otherwise the link may have a queue for ACKs alone. Such a queue has no class, so the
    class in its key is empty. If the link has no such queue either, the result is ``None``: the
    link then delays ACKs by a constant time.
    """
    way = opposite(group.direction)
    acks_alone = queues.get((link.name, way, ""))
    return queues.get(_key(link, way, group), acks_alone)


def _queues(scenario: Scenario) -> dict[Key, int]:
    """All queues of the scenario: the key of each, and its index."""
    found: dict[Key, int] = {}
    for group in scenario.flows:
        for link in scenario.path(group):
            for service in link.queue.services:  # also a class without flows: it lends its share
                found.setdefault((link.name, group.direction, service), len(found))
    for key in ack_queues(scenario, found):
        found[key] = len(found)
    queued = [queues_at_sender(scenario, group) for group in scenario.flows]
    slow = [is_slow(scenario, group) for group in scenario.flows]
    for member in scenario.members:
        for end, has_queue in ((SENDER, queued), (RECEIVER, slow)):
            if has_queue[member.group]:
                found[member.name, end, ""] = len(found)
    return found


def _droptail(capacity: float, room: float, record: NDArray[np.void]) -> None:
    """Fill in the ``record`` of a drop-tail queue in which ``room`` packets can wait."""
    record["capacity"], record["buffer"] = capacity, room
    record["discipline"], record["partner"], record["packets_per_work"] = DROPTAIL, -1, 1.0


def _link_record(scenario: Scenario, link: Link, key: Key, record: NDArray[np.void]) -> None:
    """Fill in the ``record`` of the queue with this key at ``link``: its constant parameters."""
    _, direction, service = key
    acks_alone = _acks_alone(scenario, link, direction)
    # an infinite buffer: no ACK is lost in a queue that only ACKs cross
    room = math.inf if acks_alone else link.room(link_stack(scenario), service)
    _droptail(link.capacity, room, record)
    # a finite number even if the link loses every packet
    record["loss_hazard"] = -math.log1p(-min(link.loss, 1.0 - 1e-12))
    if acks_alone:
        return
    record["discipline"] = DISCIPLINES[link.queue.discipline]
    if isinstance(link.queue, RateDelay):
        class_record(scenario, link, key, link.queue.k, record)
    if isinstance(link.queue, Red):
        record["mark_limit"] = link_stack(scenario).marks_up_to
        for name in (
            "min_threshold",
            "max_threshold",
            "max_probability",
            "weight",
            "ecn",
            "gentle",
        ):
            record[name] = getattr(link.queue, name)


def _acks_alone(scenario: Scenario, link: Link, direction: str) -> bool:
    """Whether only ACKs cross the link in this direction: no flow sends data over it."""
    return not any(g.direction == direction and link in scenario.path(g) for g in scenario.flows)


def _stops(scenario: Scenario, member: Member, queues: dict[Key, int]) -> list[tuple[int, bool]]:
    """The queues that a flow crosses, in order: the index of each queue, and whether data cross it.

    If no data of the flow cross the queue, the flow's ACKs cross it on the way back.
    """
    group, path = member.flow, scenario.path(member.flow)
    keys = [(member.name, SENDER, "")] if queues_at_sender(scenario, group) else []
    keys += [_key(link, group.direction, group) for link in path]
    keys += [(member.name, RECEIVER, "")] if is_slow(scenario, group) else []
    stops = [(queues[key], True) for key in keys]
    back = (_ack_queue(link, group, queues) for link in reversed(path))
    return stops + [(k, False) for k in back if k is not None]


def wires_between(scenario: Scenario, member: Member, ack_queues_at: list[bool]) -> list[Floats]:
    """The seconds that a packet or ACK takes on each wire between the queues of a flow's path.

    There is one array for each queue, in the order of ``_stops``. It has the wires from this queue
    to the next, or from the last queue back to the first. The time on a wire includes transmission
    and propagation, but no waiting. ``ack_queues_at`` says for each link of the way back whether it
    has a queue for the flow's ACKs.
    """
    group = member.flow
    path = scenario.path(group)
    data = work(scenario, group)
    ack = scenario.ack_size / scenario.packet_size
    access, leg = scenario.access_rate(group), access_leg(scenario, member)
    # Seconds on the access wires: ``first`` for data at the sender, ``out`` for data at the
    # receiver, and ``back`` for ACKs at either of them.
    out, back = data / access + leg, ack / access + leg
    first = out
    if group.delay_noise > 0.0:  # the first wire then has the propagation delays of all four
        first, out, back = out + 3.0 * leg, out - leg, back - leg
    queued = queues_at_sender(scenario, group)
    wires = [[first]] if queued else []
    wires += [[data / link.capacity + link.delay] for link in path]
    wires += [[]] if is_slow(scenario, group) else []  # a slow access link at the receiver: a queue
    wires[-1] += [out, back]
    for link, has_queue in zip(reversed(path), ack_queues_at, strict=True):
        if has_queue:
            wires.append([])
        wires[-1].append(ack / link.capacity + link.delay)
    wires[-1] += [back] if queued else [back, first]
    return [np.array(wire) for wire in wires]


def _distances(scenario: Scenario, member: Member, ack_queues_at: list[bool]) -> Floats:
    """Seconds from each queue of a flow's path to the next, and from the last back to the first.

    They include propagation and transmission, but no waiting in queues. ``ack_queues_at`` says for
    each link of the way back whether it has a queue for the flow's ACKs.
    """
    gaps = [float(wires.sum()) for wires in wires_between(scenario, member, ack_queues_at)]
    # the last distance is adjusted, so that the sum is exactly the RTT in spite of rounding errors
    gaps[-1] = empty_rtt(scenario, member) - math.fsum(gaps[:-1])
    return np.array(gaps)


def routes(scenario: Scenario, members: list[Member], step: float) -> Routes:
    """Find all queues of a scenario, and the paths of the flows ``members`` through them.

    The simulator handles the packets that arrive in an interval as one event; ``step`` is the
    desired length of such an interval, in seconds.
    """
    queues = _queues(scenario)
    links = _queue_records(scenario, members, queues)
    hops, starts = _hop_records(scenario, members, queues, links["capacity"])
    # what decides which of several events at one instant comes first
    links["instant"] = INSTANT
    if link_stack(scenario).scheduled_ties:
        hops["lead"] = _leads(hops["link"], hops["wire"])
    else:  # elsewhere events do not fall on exactly the same instant
        hops["wire"] = 0.0
    _sizes(links, hops)
    span, shift = clocks(links, hops, starts, step)
    links["shift"] = shift
    # the classes of Rate-Delay links have hops, too, which stand before those of flows
    stores = class_stores(links, hops)
    hops = np.concatenate([stores, hops])
    hops["idle"], hops["ends_parcel"], hops["blocks"] = 1, -1, -1.0
    hops["early"] = hops["lead"] * INSTANT / links["capacity"][hops["link"]]
    shares = share_changes(scenario, queues, links)
    return Routes(tuple(queues), links, hops, starts + len(stores), shares, span)


def _queue_records(
    scenario: Scenario, members: list[Member], queues: dict[Key, int]
) -> NDArray[np.void]:
    """Make the record (``state.Queue``) of each queue, in the order of the indices in ``queues``.

    The key of a queue has three parts: the link's name, the direction, and the class of flows with
    Rate-Delay services ("" without them). For a queue of a flow's own access links they are the
    flow's name, the end of the path, and "".
    """
    links = np.zeros(len(queues), LINK)
    by_name = {link.name: link for link in scenario.links}
    access = {member.name: scenario.access_rate(member.flow) for member in members}
    for key, k in queues.items():
        name, direction, service = key
        if direction in ENDS:
            _droptail(access[name], math.inf, links[k])
            continue
        _link_record(scenario, by_name[name], key, links[k])
        if service:  # the link has a second queue, for the other class
            other_class = "delay" if service == "rate" else "rate"
            links[k]["partner"] = queues[name, direction, other_class]
    return links


def _hop_records(
    scenario: Scenario, members: list[Member], queues: dict[Key, int], capacity: Floats
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Make the records of all hops (``state.Hop``), and the index of each flow's first hop.

    A hop is one queue on the path of one flow. The hops of a flow follow one another. Flows of one
    group with equal RTTs take the same path, unless they cross the queues of their own access
    links. ``capacity`` [queue] are the queues' capacities in packets/s.
    """
    paths: dict[tuple[int, float, str], list[Hop]] = {}
    rows: list[tuple[float, ...]] = []
    first = []
    for i, member in enumerate(members):
        first.append(len(rows))
        own_queues = member.name if (member.name, SENDER, "") in queues else ""
        key = member.group, member.rtt, own_queues
        if key not in paths:
            paths[key] = _path(scenario, member, queues, capacity)
        rows += [(i, *hop) for hop in paths[key]]
    hops = np.zeros(len(rows), HOP)
    for name, column in zip(("flow", *Hop._fields), zip(*rows, strict=True), strict=True):
        hops[name] = column
    return hops, np.array(first)


def _path(
    scenario: Scenario, member: Member, queues: dict[Key, int], capacity: Floats
) -> list[Hop]:
    """The path of a flow: the queues that its data and then its ACKs cross, in order.

    ``capacity`` [queue] are the queues' capacities in packets/s.
    """
    stops = _stops(scenario, member, queues)
    ack_queues_at = has_ack_queue(scenario, member, queues)
    gaps = _distances(scenario, member, ack_queues_at)
    # sizes of an ACK (index False) and of a data packet (index True)
    works = (scenario.ack_size / scenario.packet_size, work(scenario, member.flow))
    sack = find(member.flow.law).recovery == "scoreboard"
    block = BLOCK / scenario.packet_size if sack else 0.0
    # seconds that a packet takes on the link (an access link or another) before each queue
    wires = _last_wires(scenario, member, ack_queues_at)
    # whether events of one instant happen in the order in which they were scheduled, as in ns-2
    ties = link_stack(scenario).scheduled_ties and member.flow.delay_noise == 0.0
    return [
        Hop(
            link=k,
            data=data,
            last=j == len(stops) - 1,
            # ns-2 schedules an arrival when the packet enters the last wire, and a departure when
            # its transmission begins
            precedes=data and ties and wires[j] > works[data] / capacity[k],
            work=works[data],
            block=0.0 if data else block,
            block_time=0.0 if data else block / scenario.access_rate(member.flow),
            wire=wires[j],
            to_next=float(gap),
        )
        for j, ((k, data), gap) in enumerate(zip(stops, gaps, strict=True))
    ]


def has_ack_queue(scenario: Scenario, member: Member, queues: dict[Key, int]) -> list[bool]:
    """For each link of a flow's way back, in order: whether it has a queue for the flow's ACKs."""
    path = scenario.path(member.flow)
    return [_ack_queue(link, member.flow, queues) is not None for link in reversed(path)]


def _last_wires(scenario: Scenario, member: Member, ack_queues_at: list[bool]) -> list[float]:
    """Seconds that a packet or ACK takes on the last wire before each queue of a flow's path.

    This wire is an access link, or the link before the queue on the path. There is one number for
    each queue, in the order of ``_stops``. ``ack_queues_at`` says for each link of the way back
    whether it has a queue for the flow's ACKs.
    """
    group, path = member.flow, scenario.path(member.flow)
    data, ack = work(scenario, group), scenario.ack_size / scenario.packet_size
    # no wire leads to the queue of the sender's own access link
    wires = [0.0] if queues_at_sender(scenario, group) else []
    wires += [to_first_link(scenario, member)]
    # The wire of a link leads to the queue of the next one. That of the last link leads to the
    # receiver, which has a queue for its access link only if this is slow.
    onward = [data / link.capacity + link.delay for link in path]
    wires += onward if is_slow(scenario, group) else onward[:-1]
    # the way back: the receiver's access link leads to the last link of the path, and so on
    back = [ack / scenario.access_rate(group) + access_leg(scenario, member)]
    back += [ack / link.capacity + link.delay for link in reversed(path[1:])]
    return wires + [wire for wire, has_queue in zip(back, ack_queues_at, strict=True) if has_queue]


def _leads(links: NDArray[np.int64], wires: Floats) -> Floats:
    """For each hop a number from 0 to 1 that orders packets that reach a queue at the same instant.

    A hop is one queue on one flow's path. If packets of several flows arrive at once, that of the
    hop with the greatest number comes first. In ns-2 the event that was scheduled first comes
    first, and ns-2 schedules an arrival when the packet enters the last wire before the link. So
    the packet from the longest wire comes first. ``links`` has the index of each hop's queue, and
    ``wires`` the seconds that a packet takes on the last wire before this queue.
    """
    leads = np.zeros(len(wires))
    for k in set(links):
        hops = links == k  # those at this queue
        lengths, rank = np.unique(np.round(wires[hops], 12), return_inverse=True)
        leads[hops] = rank / max(len(lengths) - 1, 1)
    return leads


def _sizes(links: NDArray[np.void], hops: NDArray[np.void]) -> None:
    """Set the fields of each queue's record that depend on the sizes of the packets that cross it.

    The sizes are in packets of the scenario's packet size.
    """
    for k, link in enumerate(links):
        works = set(hops["work"][hops["link"] == k])
        link["mixed"] = len(works) > 1
        link["largest"] = link["packets_per_work"] = 1.0 / max(works, default=1.0)
        link["smallest"] = 1.0 / min(works, default=1.0)
