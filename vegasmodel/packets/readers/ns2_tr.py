"""Reads ns-2 traces: events of packets (``+ - r d``) and traced variables of TCP agents.

One file may hold both. The traced variables are ``cwnd_``, ``rtt_``, ``ack_``, ``nrexmitpack_`` and
``ndatapack_``. The events, written by ``trace-all``, show:

- transmissions and retransmissions at a flow's source, and deliveries at its destination,
- the flow's drops at all links, and its packets in flight,
- the flow's RTTs, each from a packet's transmission to its ACK,
- how many packets each of its ACKs acknowledges,
- whether the flow began with a SYN without data,
- which part of its packets are sent at the time at which an ACK arrives,
- the queue of every link.

A packet that was sent twice gives no RTT. Nor does a packet smaller than the flow's largest one,
such as a SYN, because it is transmitted faster.

A trace of the bottleneck alone has no events at a flow's source or destination. RTTs are then
unknown. Deliveries are counted at the last node in the trace that the flow's first packet reached.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.packets.readers.bins import FIRST_ITEMS, SENT, Bins
from vegasmodel.packets.readers.segments import median_per_ack
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import Trace
from vegasmodel.packets.trace_variables import MAX_FLOWS, MAX_LINKS

BLOCK_BYTES = 1 << 22  # bytes read at a time
SLOTS = 1 << 15  # of the hash tables that find a flow or a link
SENT_SLOTS = 1 << 17  # packets whose times of transmission are remembered
MIN_PACKETS = 32  # of a flow; with fewer, ``_sent_at_acks`` would mostly show how the flow starts

# how the line of an event begins, and that of a traced variable
_EVENT = re.compile(rb"[-+rd]\s+[\d.e+-]+\s+\d+\s+\d+\s+\S+\s+\d+\s+\S+\s+\d+\s")
_VARIABLE = re.compile(rb"\d[\d.e+-]*\s+\d+\s+-?\d+\s+\d+\s+-?\d+\s+[a-zA-Z]\w*\s+-?[\d.]+")
# what the file should have, by the status BAD_LINE to REPEATED (``ns2_kernel``) of a wrong line
_MESSAGES = {
    4: "an ns-2 event (12 columns) or a traced variable (7 columns)",
    5: "a time from 0 to 1e+10 s",
    6: "a time that does not decrease",
    7: "lines of at most 4096 bytes",
    8: "each event once",
}


def matches(head: bytes) -> bool:
    """Whether one of the first 50 lines is a packet's event or a traced variable of ns-2."""
    lines = head.split(b"\n", 50)[:50]
    return any(_EVENT.match(line) or _VARIABLE.match(line.lstrip()) for line in lines)


def read(source: Source) -> Trace:
    """Read an ns-2 trace, block by block.  If a line is wrong, a ``TraceError`` names it.

    A wrong line without a line break at the end of the file was cut off, for example because ns-2
    was stopped.  It is left out, and the trace's ``doubts`` say so.

    The function ``scan`` adds up the counts of a block's lines. It stops early if a line is wrong,
    or if the arrays are too small for the line. ``_make_room_or_fail`` then enlarges the arrays,
    and ``scan`` goes on with that line.
    """
    from vegasmodel.packets.readers import ns2_kernel as kernel  # Numba loads here
    from vegasmodel.packets.readers.ns2_words import MAX_LINE

    tables, bins = _tables(), Bins()
    buffer: Any = np.empty(BLOCK_BYTES + MAX_LINE + 1, dtype=np.uint8)
    source.file.seek(source.start)
    # ``incomplete``: how many bytes of an incomplete line the last block ended with; they are
    # copied to the front of the next block. ``final``: whether the file has ended
    incomplete, final = 0, False
    while not final:
        got = source.file.readinto(buffer[incomplete : incomplete + BLOCK_BYTES])
        stop, position, final = incomplete + got, 0, got == 0
        while True:  # until all complete lines of the block are counted
            position = kernel.scan(
                buffer, position, stop, final, tables, bins.flow, bins.link, bins.begin, bins.width
            )
            status = int(tables.counts[kernel.STATUS])
            if status == kernel.DONE:
                break
            if final and status == kernel.BAD_LINE and _is_part_of_a_line(buffer[position:stop]):
                source.cut_short = bool(tables.counts[kernel.LINES])
            if source.cut_short:
                break
            tables = _make_room_or_fail(source, kernel, tables, bins, status, buffer[position:stop])
        incomplete = stop - position
        buffer[:incomplete] = buffer[position:stop].copy()
    return _finish(source, kernel, tables, bins)


def _is_part_of_a_line(rest: NDArray[np.uint8]) -> bool:
    """Whether the bytes have no line break."""
    return ord("\n") not in rest


def _tables() -> Any:
    """The ``ns2_kernel.Tables`` at the start of a trace; they have as much room as ``Bins``."""
    from vegasmodel.packets.readers import ns2_kernel as kernel

    return kernel.Tables(
        counts=np.zeros(4, dtype=np.int64),
        clock=np.zeros(1),
        flow=np.zeros((FIRST_ITEMS, kernel.FLOW_COLUMNS), dtype=np.int64),
        flow_times=np.zeros((FIRST_ITEMS, 3)),
        flow_slots=np.full(SLOTS, -1, dtype=np.int64),
        received=np.zeros((FIRST_ITEMS, kernel.WORDS), dtype=np.uint64),
        per_ack=np.zeros((FIRST_ITEMS, 1 + kernel.MAX_PER_ACK), dtype=np.int64),
        link=np.zeros((FIRST_ITEMS, 4), dtype=np.int64),
        link_times=np.zeros(FIRST_ITEMS),
        link_slots=np.full(SLOTS, -1, dtype=np.int64),
        sent_key=np.full((SENT_SLOTS, 2), -1, dtype=np.int64),
        sent_time=np.full(SENT_SLOTS, np.nan),
        words=np.zeros(24, dtype=np.int64),
        event=np.zeros(12, dtype=np.int64),
        when=np.zeros(1),
    )


def _make_room_or_fail(
    source: Source, kernel: Any, tables: Any, bins: Bins, status: int, rest: Any
) -> Any:
    """Enlarge the arrays for the line at which the function ``scan`` stopped in an ns-2 trace.

    ``kernel`` is the module of ``scan``. ``tables`` has what ``scan`` remembers, and ``bins`` the
    counts that it has added up. ``rest`` is the part of the trace from this line on.

    ``status`` says why ``scan`` stopped.  If the line's time is after the last interval, the
    intervals are made longer.  If the table of flows or of links is full, it is enlarged.  Returns
    the tables for the next call of ``scan``.  Raises ``TraceError`` if the line is wrong, or if the
    trace has too many flows or links.
    """
    line = int(tables.counts[kernel.LINES]) + 1
    text = bytes(rest[:200]).split(b"\n")[0]
    if status == kernel.BEYOND:
        bins.reach(float(tables.when[0]))
        return tables
    if status == kernel.FLOWS_FULL:
        if len(tables.flow) > MAX_FLOWS:
            source.fail(f"line {line}", text[:60], f"at most {MAX_FLOWS} flows")
        bins.grow_flows()
        names = ("flow", "flow_times", "received", "per_ack")
        return tables._replace(**{name: _double(getattr(tables, name)) for name in names})
    if status == kernel.LINKS_FULL:
        if len(tables.link) > MAX_LINKS:
            source.fail(f"line {line}", text[:60], f"at most {MAX_LINKS} links")
        bins.grow_links()
        return tables._replace(
            **{name: _double(getattr(tables, name)) for name in ("link", "link_times")}
        )
    return source.fail(f"line {line}", text[:60].decode("ascii", "replace"), _MESSAGES[status])


def _double(table: NDArray[Any]) -> NDArray[Any]:
    """A copy of the table with room for twice as many rows."""
    larger = np.zeros((2 * len(table), *table.shape[1:]), table.dtype)
    larger[: len(table)] = table  # the rest takes no memory until it is written to
    return larger


def _finish(source: Source, kernel: Any, tables: Any, bins: Bins) -> Trace:
    """Make a trace of what the function ``scan`` has counted in the whole file.

    ``kernel`` is the module of ``scan``, whose constants name the columns of ``tables``.  (It is an
    argument because ``read`` imports it only when it is needed: its import loads Numba.)  Raises
    ``TraceError`` if the file shows no flow.
    """
    flows, links = int(tables.counts[kernel.N_FLOWS]), int(tables.counts[kernel.N_LINKS])
    if flows == 0:  # the error is about the whole file, so it names no line
        source.fail("", "no flow", "data packets or traced variables")
    # [flow, column]; the columns, such as SIZE, are constants of the module ``ns2_kernel``
    rows, times = tables.flow[:flows], tables.flow_times[:flows]
    end = float(tables.clock[0])  # the time of the last line, s
    names, order = _names(kernel, rows)
    events = bool(rows[:, kernel.EVENTS].any())
    about = {
        "format": "ns-2 events" if events else "ns-2 traced variables",
        "throughput": "first deliveries at the destination" if events else "growth of ack_",
        "window": "cwnd_" if rows[:, kernel.CWND].any() else "packets in flight",
        "rtt": "first transmission to ACK, packets sent once" if events else "rtt_",
    }
    sizes = rows[order, kernel.SIZE].astype(float)
    variables: dict[str, Floats] = {
        "first": times[order, kernel.FIRST],
        "last": times[order, kernel.LAST],
        "packet_size": np.where(sizes > 0, sizes, np.nan),
        "packets_per_ack": np.array([median_per_ack(enumerate(tables.per_ack[i])) for i in order]),
        "syn": _syn(kernel, rows)[order],
        "sent_at_acks": _sent_at_acks(kernel, rows, bins)[order],
    }
    cut = "the file ends within a line, which is left out"
    # the counts that such a file shows; the trace leaves out the others
    shown = ("sent", "retransmits", "loss", "acks") if events else ("retransmits",)
    table = tables.link[:links]
    return bins.trace(
        "ns2",
        end,
        names,
        order,
        variables,
        about,
        links=[f"{a}-{b}" for a, b in table[:, [kernel.FROM, kernel.TO]]],
        known=shown,
        doubts={"whole-file": cut} if source.cut_short else {},
    )


def _syn(kernel: Any, rows: NDArray[Any]) -> Floats:
    """For each flow, 1 if its packet 0 was a SYN without data, and 0 if this packet carried data.

    A SYN is smaller than the data packets that follow.  The result is NaN if the trace does not
    show packet 0.  ``rows`` are the rows of ``Tables.flow``; the module ``kernel`` names their
    columns.
    """
    syn = rows[:, kernel.SYN].astype(float)
    shown = (rows[:, kernel.SIZE] > 0) & (rows[:, kernel.FULL_FROM] == 0)
    return np.where((syn > 0) | shown, syn, np.nan)


def _sent_at_acks(kernel: Any, rows: NDArray[Any], bins: Bins) -> Floats:
    """The part of each flow's packets that were sent at the moment when an ACK arrived.

    It is NaN for a flow with few packets.
    """
    sent = bins.flow[SENT, : len(rows)].sum(axis=1)
    return np.where(sent >= MIN_PACKETS, rows[:, kernel.AT_ACKS] / np.maximum(sent, 1.0), np.nan)


def _names(kernel: Any, rows: NDArray[Any]) -> tuple[list[str], list[int]]:
    """The names of the flows, and for each name the index of the flow's row in ``rows``.

    If the trace has a flow id for every flow and all ids differ, the ids are the names, in
    increasing order.  Otherwise a name is ``source>sink``, with both addresses and ports, and the
    names are in the order of ``rows``.
    """
    ids = rows[:, kernel.FID].tolist()
    if len(set(ids)) == len(ids) and min(ids) >= 0:
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return [str(ids[i]) for i in order], order
    names = [
        f"{_node(row[kernel.SRC])}.{row[kernel.SPORT]}>{_node(row[kernel.DST])}.{row[kernel.DPORT]}"
        for row in rows
    ]
    return names, list(range(len(rows)))


def _node(packed: int) -> str:
    """The address of a node as text.

    ``packed`` is the node's number.  If it is negative, it encodes a hierarchical address such as
    ``0.1.2``.
    """
    if packed >= 0:
        return str(packed)
    # as ``ns2_words._address`` encodes it: three bits for the number of parts, and 12 for each part
    code = -2 - int(packed)
    levels, code = code % 8, code // 8
    parts = []
    for _ in range(levels):
        parts.append(str(code % 4096))
        code //= 4096
    return ".".join(reversed(parts))
