"""Summarises a trace file: its format, its time span, and the counts and means of each flow."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.activity import (
    SAME_TIME,
    ends_early,
    idle_flows,
    windows_a_round_trip,
)
from vegasmodel.packets.capacity import bound_of_mean_size
from vegasmodel.packets.estimate import capacity_by_bytes, estimate
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.gaps import (
    first_and_last_packets,
    packets_in_all,
    seconds_in,
    unknown_throughputs,
)
from vegasmodel.packets.one_queue import apart
from vegasmodel.packets.pairing import match_texts
from vegasmodel.packets.reading import format_of, read
from vegasmodel.packets.sizes import packet_sizes
from vegasmodel.packets.trace import Trace
from vegasmodel.support.json_numbers import finite

__all__ = ["doubts", "inspect", "unlikely_units"]

LONGEST_RTT = 100.0  # s; a radio signal to the moon and back takes 2.6 s
MOST_BITS = 1e12  # per second and flow; the fastest network cards have 8e11
# By Little's law a flow that always has data to send delivers about one window in a round trip.
# If it delivers more or fewer windows than these, the units are doubtful.
MOST_OF_WINDOW, LEAST_OF_WINDOW = 4.0, 0.02
WHY_MORE = "bits were taken for bytes, or the RTT had another unit"  # reasons for more windows
WHY_LESS = "it has little to send, or the window, the RTT or the time has another unit"  # for fewer


def inspect(path: str | Path, format: str = "auto") -> dict[str, Any]:  # noqa: A002 - an option
    """Summarise the trace file at ``path`` as a dictionary; unknown values are ``None``.

    The numbers of packets of a flow are sums over the intervals in which they are known.  If the
    throughput is unknown for more than a tenth of the time between the flow's first and last
    packet, the entry ``doubts`` says so under the name ``known-throughput``.

    ``format`` is ``parquet``, one of ``reading.FORMATS``, or ``auto``, which recognises the format
    from the content.  Raises ``TraceError`` if the file cannot be read, and ``FieldError`` for a
    wrong argument.
    """
    found = format_of(path) if format == "auto" else format
    trace = read(path, format)
    capacity = estimate(trace).capacity
    return {
        "trace": str(path),
        "format": found,
        "engine": trace.engine,
        "begin_s": trace.begin,
        "end_s": float(trace.edges[-1]),
        "bins": len(trace.edges) - 1,
        "bin_s": _bin(trace),
        "variables": [str(name) for name in trace.data.data_vars],
        "links": trace.links,
        "capacity_pps": finite(None if capacity is None else capacity.value),
        "capacity_bps": finite(None if capacity is None else _bits(trace, capacity)),
        "flows": [_flow(trace, i, text) for i, text in enumerate(match_texts(trace.flows))],
        "provenance": dict(trace.provenance),
        "doubts": doubts(trace),
    }


def _bin(trace: Trace) -> float | None:
    """The length in s of the trace's intervals (time bins); ``None`` if they differ.

    Lengths count as equal if they differ by less than a thousandth. The last one may be shorter.
    """
    lengths = np.diff(trace.edges)
    first = float(lengths[0])
    alike = np.all(np.abs(lengths[:-1] - first) < 1e-3 * first) and lengths[-1] < 1.001 * first
    return first if alike else None


def _bits(trace: Trace, capacity: Estimate) -> float:
    """A link's estimated capacity in bit/s; NaN if the trace does not show the packets' sizes.

    The estimate in packets per second is of packets of their mean size.  If it is a lower bound,
    all of its packets may have been of the smallest size, unless the trace tells the sizes of the
    packets that the link sent (``bound_of_mean_size``). But if the trace tells the throughput of
    each flow in bytes, an estimate in bytes follows from them (``capacity_by_bytes``). The result
    is then the larger of the two.
    """
    sizes, packets = packet_sizes(trace), packets_in_all(trace)
    known = np.isfinite(sizes) & (np.zeros(1) if packets is None else np.nan_to_num(packets) > 0)
    if packets is None or not known.any():
        return math.nan
    mean = float(sizes[known] @ packets[known] / packets[known].sum())
    if math.isfinite(capacity.high) or bound_of_mean_size(trace):
        return 8.0 * mean * capacity.value
    smallest = float(sizes[known].min())
    return 8.0 * max(smallest * capacity.value, capacity_by_bytes(trace, sizes)[1])


def doubts(trace: Trace) -> dict[str, str]:
    """The assumptions about a trace that are in doubt: each name, and a text that says why.

    Some doubts arose when the file was read (``Trace.doubts``). Five assumptions are tested here,
    because they depend on the values:

    - ``usual-units``: the values have the units that the file's format prescribes.
    - ``no-idle-flows``: every flow has data to send most of the time.
    - ``one-queue``: the packets of all flows of a capture wait in the same queue.
    - ``known-throughput``: each flow's throughput is known for at least 90 % of its time.
    - ``same-ends``: all flows go on until the last of them ends.
    """
    idle = idle_flows(trace)
    found = {**trace.doubts, **unlikely_units(trace, idle)}
    if idle:
        texts = [f"{name} {reason}" for name, reason in idle.items()]
        found["no-idle-flows"] = few(texts, clauses=True)
    if others := apart(trace, idle):
        found["one-queue"] = others
    ends = ends_early(trace)
    lasts = {name: ends.get(name, math.inf) for name in trace.flows if name not in idle}
    latest = max(lasts.values(), default=math.inf)
    ends = {name: end for name, end in lasts.items() if latest - end > SAME_TIME}
    if ends:
        texts = [f"{name} sends nothing after {end:.4g} s" for name, end in ends.items()]
        found["same-ends"] = few(texts, clauses=True)
    delivered = trace.known("throughput")
    if delivered is not None:
        seconds = seconds_in(trace, first_and_last_packets(trace))
        unknown = unknown_throughputs(trace.flows, delivered, seconds)
        found |= {"known-throughput": unknown} if unknown else {}
    return found


def unlikely_units(trace: Trace, idle: Collection[str]) -> dict[str, str]:
    """Warn if a flow's values look as if the trace had other units than assumed.

    The values of a flow are unlikely in three cases:

    - Its median RTT is above 100 s.
    - Its throughput is above 1 Tbit/s in some interval.
    - It delivers more than 4 or less than 0.02 windows per RTT, on average over its life.

    Flows that have little to send (``idle``) are left out.  The result maps the name
    ``usual-units`` to a text about the first flow with unlikely values.  It is empty if there is no
    such flow.
    """
    windows, sizes = windows_a_round_trip(trace), packet_sizes(trace)
    for i, name in enumerate(trace.flows):
        if name in idle:
            continue
        rate, trip = _column(trace, "throughput", i), _median(_column(trace, "rtt", i))
        bits = 8.0 * float(sizes[i] * np.nanmax(rate, initial=0.0))
        per_trip = windows[i]
        if trip > LONGEST_RTT:
            text = f"has an RTT of {trip:.3g} s, as if milliseconds were taken for seconds"
        elif bits > MOST_BITS:
            text = f"delivers {1e-9 * bits:.3g} Gbit/s, as if bits were taken for bytes"
        elif per_trip > MOST_OF_WINDOW:
            text = f"delivers {per_trip:.3g} windows in an RTT, as if {WHY_MORE}"
        elif per_trip < LEAST_OF_WINDOW:
            text = f"delivers {per_trip:.3g} of its window in an RTT: {WHY_LESS}"
        else:
            continue
        return {"usual-units": f"{name} {text}"}
    return {}


def _median(values: Floats) -> float:
    """The median of the known values; NaN if there are none."""
    return float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan


def _column(trace: Trace, variable: str, flow: int) -> Floats:
    """The values of a variable of one flow in each interval; NaN where they are unknown."""
    values = trace.known(variable)
    return np.full(len(trace.edges) - 1, np.nan) if values is None else values[:, flow]


def _throughput(trace: Trace, i: int) -> float:
    """The packets that flow ``i`` delivers per second between its first and its last packet.

    NaN if the trace has no throughputs of the flow, or if all its packets have the same time.
    """
    packets, (first, last) = packets_in_all(trace), first_and_last_packets(trace)[i]
    return math.nan if packets is None or not last > first else float(packets[i] / (last - first))


def _mean_rtt(trace: Trace, i: int) -> float:
    """The mean RTT of the packets that flow ``i`` delivers, s; NaN if no RTT is known.

    If the flow delivers nothing while its RTT is known, all intervals have the same weight.
    """
    trips, rates = _column(trace, "rtt", i), _column(trace, "throughput", i)
    known = np.isfinite(trips)
    packets = np.nan_to_num(rates * np.diff(trace.edges))[known]
    if not known.any():
        return math.nan
    return float(np.average(trips[known], weights=packets if packets.any() else None))


def _flow(trace: Trace, i: int, match: str) -> dict[str, Any]:
    """The summary of flow ``i``.

    ``match`` is the text that stands for the flow in a scenario file. Unknown values are ``None``.
    """
    name, steps = trace.flows[i], np.diff(trace.edges)
    rate, size = _throughput(trace, i), float(packet_sizes(trace)[i])

    def total(variable: str, weights: Floats | float = 1.0) -> float | None:
        """The sum of a variable over the intervals, each multiplied by its weight."""
        values = trace.known(variable)
        if values is None or np.isnan(values[:, i]).all():  # or unknown for this flow
            return None
        return finite(np.nansum(values[:, i] * weights))

    def statistic_of(variable: str, statistic: Callable[[Floats], float]) -> float | None:
        """A statistic, such as ``np.min``, of the known values of a variable."""
        values = trace.known(variable)
        if values is None:
            return None
        # a variable has one value per flow, [flow], or one per interval, [interval, flow]
        values = values[i : i + 1] if values.ndim == 1 else values[:, i]
        values = values[np.isfinite(values)]
        return finite(statistic(values)) if values.size else None

    least = [statistic_of(variable, np.min) for variable in ("rtt_min", "rtt", "base_rtt")]
    return {
        "name": name,
        "control": trace.controls.get(name),
        "match": match,
        "packets": total("throughput", steps),
        "throughput_pps": finite(rate),
        "throughput_bps": finite(8.0 * size * rate),
        "sent": total("sent"),
        "lost": total("loss"),
        "retransmits": total("retransmits"),
        "first_s": statistic_of("first", np.min),
        "last_s": statistic_of("last", np.max),
        "packet_size_b": finite(size),
        "rtt_min_s": min((rtt for rtt in least if rtt is not None), default=None),
        "rtt_mean_s": finite(_mean_rtt(trace, i)),
        "base_rtt_s": statistic_of("base_rtt", lambda values: values[-1]),
        "packets_per_ack": statistic_of("packets_per_ack", np.min),
    }
