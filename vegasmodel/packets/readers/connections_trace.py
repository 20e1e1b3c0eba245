"""Makes a trace of the TCP flows that a capture shows (``connections.py`` follows these flows).

``Trace.doubts`` names the assumptions about the capture that may not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.readers.bins import (
    ACKS,
    ARRIVED,
    DELIVERED,
    LOST,
    RETRANSMITTED,
    RTT_MIN,
    RTT_SUM,
    SENT,
    WINDOW_SUM,
)
from vegasmodel.packets.readers.connections import Connections, Key, reverse, signed
from vegasmodel.packets.readers.segments import Flow
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import ARRIVING

__all__ = ["make"]

SYN_AND_FIN = 2  # by which a SYN and a FIN together raise the ACK number
# A direction of a connection is a flow if it carries at least this fraction of the bytes of the
# reverse direction.
MIN_PART_OF_REVERSE = 0.01


def make(
    connections: Connections,
    engine: str,
    name: Callable[[Key], str],
    provenance: Mapping[str, str],
    known: tuple[str, ...],
    *,
    links: list[str] | None = None,
    doubts: Mapping[str, str] | None = None,
) -> Trace:
    """Make a trace of all flows.

    Each direction of a connection that carries data is a flow.  However, the trace leaves out a
    direction with less than a hundredth of the other direction's data, such as the requests for a
    download.  The function ``name`` makes a flow's name from its pair (sender, receiver).
    ``Bins.trace`` explains ``links`` and ``known``.  Raises ``TraceError`` if there is no flow.
    ``engine`` and ``provenance`` are fields of the trace.
    """
    totals = {(flow.key, flow.number): flow.total for flow in connections.all}
    flows = [
        flow
        for flow in connections.all
        if flow.total >= MIN_PART_OF_REVERSE * totals.get((reverse(flow.key), flow.number), 0)
    ]
    if not flows:
        connections.source.fail("", "no flow", "TCP segments with data")
    names = {flow.index: name(flow.key) + _number(flow.number) for flow in flows}
    payload = np.array([flow.payload for flow in flows], dtype=float)
    order = [flow.index for flow in flows]
    # of these flows, the captured data count as delivered, not the growth of the ACK number
    arrived = [flow.index for flow in flows if flow.captured_at_receiver or not flow.acks]
    connections.bins.flow[DELIVERED, arrived] = connections.bins.flow[ARRIVED, arrived]
    for row in (DELIVERED, SENT, RETRANSMITTED, LOST, WINDOW_SUM):  # from bytes to packets
        connections.bins.flow[row, order] /= payload[:, None]
    _forget_what_is_not_known(connections, flows)
    size = [math.nan if flow.assumed else flow.payload + flow.headers for flow in flows]
    variables: dict[str, Floats] = {
        "first": np.array([flow.first for flow in flows]),
        "last": np.array([flow.last for flow in flows]),
        "payload": payload,
        "packet_size": np.array(size, dtype=float),
        "packets_per_ack": np.array([flow.packets_per_ack for flow in flows]),
    }
    about = {
        "throughput": _counted(flows),
        "window": "bytes in flight over the full payload",
        "rtt": "segment to its ACK, none across retransmissions",
        "packets": "bytes over the flow's full payload: the SYNs', or its largest segment",
        "copies": str(sum(flow.copies for flow in flows)),
        "origin": repr(connections.origin),
        **provenance,
    }
    found = {**_doubts(connections, flows, names), **(doubts or {})}
    return connections.bins.trace(
        engine,
        connections.now,
        [names[index] for index in order],
        order,
        variables,
        about,
        links=links,
        known=known,
        doubts=found,
    )


def _counted(flows: list[Flow]) -> str:
    """A text that says what counts as delivered: the growth of the ACK number, or arriving data."""
    kinds = {flow.captured_at_receiver for flow in flows}
    if kinds == {True}:
        return ARRIVING
    if kinds == {False}:
        return "growth of the ACK number"
    return f"growth of the ACK number, or {ARRIVING} of flows captured at the receiver"


def _forget_what_is_not_known(connections: Connections, flows: list[Flow]) -> None:
    """Replace counts of the capture that are not those of the flow by NaN (unknown).

    - Only a capture at the sender shows what was sent and what is in flight. Elsewhere the RTT is
      known only if the round trip from the place of the capture to the sender was measured.
    - If the capture lacks segments, or if it is uncertain which of them are retransmissions, the
      numbers of segments sent and retransmitted are unknown.
    - If the capture has packets twice, and ACKs have no IPv4 identifiers by which copies are found,
      the number of ACKs is unknown.
    """
    table = connections.bins.flow
    for flow in flows:
        if not flow.captured_at_sender:
            table[[SENT, RETRANSMITTED, WINDOW_SUM], flow.index] = math.nan
            if math.isinf(flow.least_up):
                table[RTT_SUM, flow.index] = math.nan
                table[RTT_MIN, flow.index] = math.inf
        if flow.missed or flow.unsure:
            table[[SENT, RETRANSMITTED], flow.index] = math.nan
        last_ident, _, _ = flow.last_ack  # IPv4 identifier of the last ACK
        if flow.copies and last_ident <= 0:
            table[ACKS, flow.index] = math.nan


def _doubts(
    connections: Connections, flows: list[Flow], names: Mapping[int, str]
) -> dict[str, str]:
    """The assumptions about the capture that are in doubt, each with a text that says why.

    ``connections`` holds what is known of all connections in the capture. A flow is one direction
    of a connection; ``flows`` are the flows of the trace, and ``names`` maps the index of a flow to
    its name. Most texts begin with the names of the flows to which the doubt applies.
    """

    def names_of(test: Callable[[Flow], bool]) -> str:
        """The names of the flows for which ``test`` is true, as a list in words."""
        return few([names[flow.index] for flow in flows if test(flow)])

    # Two SYNs would tell the packet size by their MSS options. If ports were used again, the ACK
    # number jumps to that of the new connection, which looks like delivered data.
    doubts = {
        "known-packet-size": (
            names_of(lambda flow: flow.assumed),
            "segments larger than a packet, and not both SYNs; the payload is assumed",
        ),
        "captured-at-the-sender": (
            names_of(lambda flow: not flow.captured_at_sender),
            "times do not show that the sender is much nearer than the receiver; so what the "
            "sender sent, what it sent again and what was in flight are unknown",
        ),
        "whole-rtt": (
            names_of(lambda flow: not flow.captured_at_sender and not flow.stamped),
            "no data packet echoes the timestamp of an ACK; so only the handshake, if the capture "
            "has it, tells how long packets take between the sender and the place of the capture",
        ),
        "every-frame-captured": (
            names_of(lambda flow: flow.missed > 0),
            f"data was acknowledged that the capture lacks, at most {_megabytes(flows)} in one "
            "place; what was sent is unknown, and if the ports were used again without a FIN or "
            "SYN in the capture, this jump counts as delivered data",
        ),
        "retransmissions-told-from-copies": (
            names_of(lambda flow: flow.unsure > 0),
            "frames came again or late, and nothing tells why (IPv4 identifiers that count, or TCP "
            "timestamps, usually do); packets sent again are unknown",
        ),
        "acknowledgements-seen": (
            names_of(lambda flow: not flow.acks),
            "no ACK passes; what was seen counts as delivered",
        ),
    }
    found = {name: f"{who}: {what}" for name, (who, what) in doubts.items() if who}
    with_data = {flow.key for flow in connections.all}
    # Directions of connections of which the capture has ACKs, but no data. A growth of the ACK
    # number by a SYN and a FIN alone shows no data.
    acks_only = sum(
        key not in with_data and abs(signed(last - first)) > SYN_AND_FIN
        for key, (first, last) in connections.unseen.items()
    )
    if acks_only:
        count = "1 flow has" if acks_only == 1 else f"{acks_only} flows have"
        found["data-captured"] = f"{count} ACKs only; without its data a flow is left out"
    if connections.clock_resets:
        found["steady-clock"] = f"the capture's clock went back {connections.clock_resets} times"
    return found


def _megabytes(flows: list[Flow]) -> str:
    """The longest gap in a flow's captured data, over all flows, in MB as text."""
    return f"{max(flow.widest for flow in flows) / 1e6:.3g} MB"


def _number(number: int) -> str:
    """What follows a flow's name if it is not the first with the same addresses and ports."""
    return f" #{number}" if number > 1 else ""
