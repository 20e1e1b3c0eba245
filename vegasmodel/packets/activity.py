"""Tells how busy the flows of a trace are: how much of its window each delivers in a round trip."""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.packets.trace import Floats, Trace

__all__ = ["column", "windows_a_round_trip"]


def windows_a_round_trip(trace: Trace, flow: int) -> float:
    """The number of windows that a flow delivers per RTT, on average over its life.

    ``flow`` is its index in the trace. The result is the mean throughput divided by the mean of
    window / RTT. By Little's law it is about 1 for a flow that always has data to send. It is NaN
    if the throughput, the RTT or the window is unknown or 0.
    """
    begin, end = life(trace, flow)
    packets = float(np.nansum(column(trace, "throughput", flow) * np.diff(trace.edges)))
    pace = _pace(trace, flow)
    return packets / (pace * (end - begin)) if packets > 0 and end > begin else math.nan


def life(trace: Trace, flow: int) -> tuple[float, float]:
    """The times of a flow's first and last packet, s; those of the trace where they are unknown."""
    begin, end = float(trace.edges[0]), float(trace.edges[-1])
    firsts, lasts = trace.get("first"), trace.get("last")
    first = begin if firsts is None else float(firsts[flow])
    last = end if lasts is None else float(lasts[flow])
    return first if math.isfinite(first) else begin, last if math.isfinite(last) else end


def _pace(trace: Trace, flow: int) -> float:
    """The mean of window / RTT, in pkt/s; NaN if one of them is unknown."""
    rtt, window = column(trace, "rtt", flow), column(trace, "window", flow)
    with np.errstate(invalid="ignore"):
        known = (rtt > 0) & (window > 0)
    return float(np.mean(window[known] / rtt[known])) if known.any() else math.nan


def column(trace: Trace, variable: str, flow: int) -> Floats:
    """A flow's values of a variable that changes with time, [time]; NaN where they are unknown."""
    values = trace.known(variable)
    if values is None:
        return np.full(len(trace.edges) - 1, np.nan)
    one: Floats = values[:, flow]
    return one
