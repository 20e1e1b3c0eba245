"""Converts the counts of packets in a trace to packets of the size that the scenario states.

The packets of a trace may have another size than those of the scenario with which it is compared.
The conversion changes the counts, but not the numbers of bytes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.pairing import Pairing
from vegasmodel.packets.trace import Trace
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario.placement import header

__all__ = ["HEADERS", "in_largest", "in_packets_of", "packet_sizes"]

HEADERS = 52  # bytes of IPv4 and TCP headers with timestamps
# The packet size in a trace is compared with the scenario's packet size in two ways:
# - The sizes are alike if they differ by at most ALIKE_BYTES bytes, and also by at most the
#   fraction ALIKE_PART of the scenario's size. The counts of a flow are converted if its sizes are
#   not alike.
# - The sizes are equal if they differ by at most the fraction EQUAL_PART of the scenario's size.
#   Sizes that are alike but not equal are not converted, but are named in a warning.
ALIKE_BYTES = 66  # the headers of Ethernet (14 bytes), IPv4 and TCP: a size may include them or not
ALIKE_PART = 0.2
EQUAL_PART = 0.01
# the variables of a trace that count packets
PER_FLOW = ("throughput", "sent", "retransmits", "loss", "window")
PER_LINK = ("queue", "queue_max", "served")


def in_packets_of(pairing: Pairing) -> tuple[Trace, tuple[Assumption, ...]]:
    """Convert a trace's numbers of packets to packets of the size that the scenario states.

    The numbers of bytes stay the same.  The numbers of a flow stay as they are in two cases:

    - The trace does not show the flow's packet size.
    - The packet sizes in the trace and in the scenario differ by at most ``ALIKE_BYTES`` bytes (the
      length of headers), and by at most 20 % (``ALIKE_PART``) of the scenario's size.

    Numbers of packets in queues are converted only if all flows of the trace are converted by the
    same factor.

    Returns the trace and a warning about sizes that differ.  The warning is the assumption
    ``packet-size``: that packets have the scenario's size.  Its text names up to three of the
    flows.  The assumption is marked as not holding if the trace states the packet sizes of all
    flows that are converted.  If one of these sizes was only inferred when the file was read, the
    assumption is marked as unknown.

    The warning also names flows that are not converted, if their sizes differ by more than 1 %
    (``EQUAL_PART``): a capacity in bit/s is divided by the scenario's packet size, so a wrong size
    gives the link another capacity in packets per second.  Headers that ns-2 adds to the scenario's
    packets (``placement.header``) are not counted as a difference.  The warning is empty if it
    names no flow.
    """
    trace, scenario = pairing.trace, pairing.scenario
    sizes = packet_sizes(trace)
    # ``converted`` and ``unconverted``: texts on flows whose counts are converted, and whose are
    # not
    factors, converted, unconverted, all_stated = np.ones(len(trace.flows)), [], [], True
    known = trace.known("packet_size")
    for member, i in zip(scenario.members, pairing.order, strict=True):
        wanted = scenario.size_of(member.flow)
        stated = known is not None and not np.isnan(known[i])
        with_headers = wanted + header(scenario, member.flow)
        text = f"{member.name} has {sizes[i]:g} B, not {wanted:g} B"
        if np.isnan(sizes[i]) or abs(sizes[i] - wanted) <= min(ALIKE_BYTES, ALIKE_PART * wanted):
            difference = min(abs(sizes[i] - size) for size in (wanted, with_headers))
            if stated and difference > EQUAL_PART * wanted:
                unconverted.append(text)
            continue
        factors[i] = sizes[i] / with_headers
        all_stated &= stated
        converted.append(text)
    if not converted and not unconverted:
        return trace, ()
    if not converted:
        detail = f"{few(unconverted, clauses=True)}: if the file has the capacity in bit/s, "
        detail += (
            "the capacity in packets per second is wrong; write the trace's size as `packet_size`"
        )
        return trace, (Assumption("packet-size", False, detail),)
    detail = (
        f"{few(converted + unconverted, clauses=True)}: the trace's counts are converted by bytes"
    )
    detail += " if sizes differ by more than headers" if unconverted else ""
    alike = bool(np.all(factors == factors[pairing.order[0]]))
    if not alike and any(name in trace.data for name in PER_LINK):
        detail += ", those of its queues are not"
    data = trace.data.copy()
    for name in (*PER_FLOW, *(PER_LINK if alike else ())):
        if name in data:
            data[name] = data[name] * (factors if name in PER_FLOW else factors[0])
    return dataclasses.replace(trace, data=data), (
        Assumption("packet-size", False if all_stated else None, detail),
    )


def in_largest(trace: Trace, sizes: Floats) -> Trace | None:
    """Convert the flows' numbers of packets to packets of the largest size.

    ``sizes`` are the sizes of the flows' packets, in any unit, [flow]. n packets of the size s are
    as many bytes as n s/S packets of the largest size S. So a lower bound of the link's capacity C
    in bytes/s follows from the converted trace in the same way as one in packets/s from a trace
    with packets of one size. For in a time T a link sends at most C T + S bytes. If the flows
    deliver B bytes in this time, and at most k further packets have left the link but are not
    acknowledged yet, the link has sent at most B + k S bytes. So C >= (B - (k + 1) S)/T.

    Returns ``None`` if this cannot be done: the trace has the packets sent into links, and does not
    tell to which flow they belong; or the size of some flow's packets is not known.
    """
    delivered = trace.known("throughput")
    if delivered is None or trace.known("served") is not None:
        return None
    delivers = np.nansum(delivered, axis=0) > 0
    if not delivers.any() or not np.all(np.isfinite(sizes[delivers])):
        return None
    factors = np.where(delivers, sizes / np.max(sizes[delivers]), 1.0)
    data = trace.data.copy()
    for name in PER_FLOW:
        if name in data:
            data[name] = data[name] * factors
    return dataclasses.replace(trace, data=data)


def packet_sizes(trace: Trace) -> Floats:
    """The size in bytes of a full packet of each flow, [flow]; NaN if the trace does not show it.

    If the trace shows only the payload, 52 bytes of headers (``HEADERS``) are added.
    """
    found = np.full(len(trace.flows), np.nan)
    # a packet size that the trace states replaces that computed from the payload
    for name, headers in (("payload", HEADERS), ("packet_size", 0)):
        values = trace.known(name)
        if values is not None:
            found = np.where(np.isnan(values) | (values <= 0), found, values + headers)
    return found
