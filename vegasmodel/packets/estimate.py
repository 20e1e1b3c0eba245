"""What a trace suggests about the network and the sources: estimates, stated as such."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.packets.trace import Floats, Trace

__all__ = ["Estimate", "Estimates", "estimate"]

BLOCK = 1000  # packets: rates over fewer are mostly their own granularity
BLOCKS = (5, 100)
RUN = 20  # packets of a busy stretch: its ends are uncertain by one


@dataclass(frozen=True)
class Estimate:
    """A value with its unit, a range that the trace supports, and how it was found."""

    value: float
    low: float
    high: float
    unit: str
    how: str


@dataclass(frozen=True)
class Estimates:
    """Of the bottleneck and, by flow name, of the sources.  ``None``: the trace cannot tell."""

    capacity: Estimate | None
    buffer: Estimate | None
    base_rtt: Mapping[str, Estimate]
    alpha: Mapping[str, Estimate]

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return dataclasses.asdict(self)


def estimate(trace: Trace) -> Estimates:
    """Capacity, buffer, base RTTs and alphas.

    Each is as good as its ``how`` says: a link that was never busy shows less than its capacity,
    a buffer that never overflowed only a lower bound, a queue that never emptied an RTT above
    the base.
    """
    bases = {name: base for name, base in zip(trace.flows, _bases(trace), strict=True) if base}
    capacity = _capacity(trace)
    return Estimates(capacity, _buffer(trace, capacity, bases), bases, _alphas(trace, bases))


def _bottleneck(trace: Trace) -> int | None:
    """The link with the longest mean queue."""
    queue = trace.get("queue")
    if queue is None or not np.nanmax(queue, initial=0.0) > 0:
        return None
    return int(np.argmax(np.diff(trace.edges) @ np.nan_to_num(queue)))


def _capacity(trace: Trace) -> Estimate | None:
    lengths, delivered = np.diff(trace.edges), trace.get("throughput")
    link, served = _bottleneck(trace), trace.get("served")
    if link is not None and served is not None:
        queue = trace.get("queue")
        busy = np.nan_to_num(queue[:, link]) >= 1 if queue is not None else lengths > 0
        packets, seconds = _runs(busy, served[:, link] * lengths, lengths)
        if packets.size:
            low, high = np.quantile(packets / seconds, [0.25, 0.75])
            mean, edge = float(packets.sum() / seconds.sum()), packets.size / packets.sum()
            low, high = min(low, mean * (1 - edge)), max(high, mean * (1 + edge))
            how = f"packets sent into link {trace.links[link]} while at least one waits"
            return Estimate(mean, float(low), float(high), "pkt/s", how)
    if delivered is None:
        return None
    rates = _blocks(np.nansum(delivered, axis=1), lengths)
    if not rates.max() > 0:
        return None
    middle, value = np.quantile(rates, [0.5, 0.9])
    how = "largest throughput of all flows together; less than the capacity if the link idles"
    return Estimate(float(value), float(middle), float(rates.max()), "pkt/s", how)


def _runs(busy: NDArray[np.bool_], packets: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Packets and seconds of each stretch of busy intervals that is long enough to count them."""
    edges = np.flatnonzero(np.diff(busy, prepend=False, append=False))
    sums = [np.concatenate([[0.0], np.cumsum(values)]) for values in (packets, lengths)]
    counts, seconds = (total[edges[1::2]] - total[edges[::2]] for total in sums)
    long = counts >= RUN
    return counts[long], seconds[long]


def _blocks(rates: Floats, lengths: Floats) -> Floats:
    """Rates over some blocks of equal time, of ``BLOCK`` packets each where there are enough."""
    packets = np.concatenate([[0.0], np.cumsum(rates * lengths)])
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    count = int(np.clip(packets[-1] / BLOCK, *BLOCKS))
    ends = np.linspace(0.0, times[-1], count + 1)
    blocks: Floats = np.diff(np.interp(ends, times, packets)) / np.diff(ends)
    return blocks


def _bases(trace: Trace) -> list[Estimate | None]:
    given = [trace.get(name) for name in ("rtt_min", "rtt", "base_rtt")]
    known = [values for values in given if values is not None]
    result: list[Estimate | None] = []
    for i in range(len(trace.flows)):
        samples = np.concatenate([values[:, i] for values in known] or [np.zeros(0)])
        samples = samples[np.isfinite(samples)]
        if not samples.size:
            result.append(None)
            continue
        low, high = float(samples.min()), float(np.quantile(samples, 0.01))
        how = "smallest RTT seen; more than the base if the queue never emptied"
        result.append(Estimate(low, low, high, "s", how))
    return result


def _buffer(
    trace: Trace, capacity: Estimate | None, bases: Mapping[str, Estimate]
) -> Estimate | None:
    loss, again = trace.get("loss"), trace.get("retransmits")
    lost = next((values for values in (loss, again) if values is not None), None)
    overflowed = lost is not None and np.nansum(lost) > 0
    bound = "the queue overflowed" if overflowed else "nothing was lost: a lower bound"
    link, largest = _bottleneck(trace), trace.get("queue_max")
    if link is not None and largest is not None:
        top = float(np.nanmax(largest[:, link]))
        high = top if overflowed else np.inf
        return Estimate(top, top, high, "pkt", f"most packets that waited; {bound}")
    rtt = trace.get("rtt")
    if rtt is None or capacity is None or not bases:
        return None
    waits = [
        float(np.nanmax(rtt[:, i])) - bases[name].value
        for i, name in enumerate(trace.flows)
        if name in bases and np.isfinite(rtt[:, i]).any()
    ]
    if not waits or not max(waits) > 0:
        return None
    low, high = min(waits) * capacity.value, max(waits) * capacity.value
    how = f"(largest RTT - base RTT) capacity; {bound}"
    return Estimate(high, low, high if overflowed else np.inf, "pkt", how)


def _alphas(trace: Trace, bases: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The backlog that a Vegas source keeps, over the second half of its life.

    ``boutremans`` (1): alpha <= W (RTT - baseRTT) / RTT <= beta; the Linux kernel divides by
    baseRTT.
    """
    window, rtt, own = trace.get("window"), trace.get("rtt"), trace.get("base_rtt")
    if window is None or rtt is None:
        return {}
    times, linux = trace.data["time"].values, trace.engine == "linux"
    result = {}
    for i, name in enumerate(trace.flows):
        known = np.isfinite(window[:, i]) & np.isfinite(rtt[:, i]) & (rtt[:, i] > 0)
        if name not in bases or not known.any():
            continue
        known &= times >= np.median(times[known])
        base = np.full(len(times), bases[name].value)
        if own is not None:
            base = np.where(np.isfinite(own[:, i]), own[:, i], base)
        over = base if linux else rtt[:, i]
        known &= over > 0
        if not known.any():
            continue
        backlog = (window[:, i] * np.maximum(rtt[:, i] - base, 0.0))[known] / over[known]
        low, middle, high = np.quantile(backlog, [0.25, 0.5, 0.75])
        how = "W (RTT - baseRTT) / baseRTT" if linux else "W (RTT - baseRTT) / RTT"
        how += ", second half; between alpha and beta if the source is Vegas"
        result[name] = Estimate(float(middle), float(low), float(high), "pkt", how)
    return result
