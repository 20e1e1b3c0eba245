"""Finds the packet sizes that a scenario file from a trace states, and the flows with a SYN.

A SYN tells ns-2's defaults since 2001, with which agents add headers to the packet size that a
script gives them.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.packets.sizes import HEADERS, packet_sizes
from vegasmodel.packets.trace import Trace
from vegasmodel.stacks import find

NS2_235 = find("ns2", "2.35")  # the TCP implementation: ns-2 with the defaults of its release 2.35


def usual_size(trace: Trace, flows: list[int]) -> dict[str, str]:
    """The most frequent packet size of some flows, such as ``{"packet_size": "1500 B"}``.

    ``flows`` are their indices.  The dictionary is empty if the trace shows no packet sizes.
    """
    known = sizes_of(trace)
    sizes = [size for i in flows if (size := known[i]) is not None]
    return {"packet_size": max(sizes, key=sizes.count)} if sizes else {}


def sizes_of(trace: Trace) -> list[str | None]:
    """Each flow's packet size, such as ``1500 B``; ``None`` if the trace does not show it.

    If a flow begins with a SYN, ns-2's agent adds headers to the packet size that a script gives
    it.  Then the result is this packet size, without the headers.
    """
    sizes, syns = packet_sizes(trace), begin_with_syn(trace)
    sizes -= [NS2_235.header if name in syns else 0.0 for name in trace.flows]
    return [f"{size:.6g} B" if size > 0 else None for size in sizes]


def begin_with_syn(trace: Trace) -> list[str]:
    """The flows of an ns-2 trace that begin with a SYN without data.

    With ns-2's defaults since 2001 (``NS2_235``), all agents but Vegas send one.
    """
    syn = trace.known("syn")
    return [] if syn is None else [trace.flows[i] for i in np.flatnonzero(syn == 1)]


def without_syn(trace: Trace) -> list[str]:
    """The flows of an ns-2 trace that send data at once, although other flows begin with a SYN."""
    syn = trace.known("syn")
    if syn is None or not begin_with_syn(trace):
        return []
    return [trace.flows[i] for i in np.flatnonzero(syn == 0)]


def size_note(trace: Trace) -> str:
    """The comment on ``packet_size``: how the trace tells it; empty if the trace does not say."""
    if begin_with_syn(trace):
        return (
            f"without the {NS2_235.header:g} B of headers that ns-2 2.35 adds for loss-based flows"
        )
    if trace.known("packet_size") is None:
        return f"the trace's payload and {HEADERS} B of headers"
    return trace.provenance.get("packet_size", "")
