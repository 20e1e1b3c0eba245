"""Summarises a trace: its format, its time span, and the counts and means of each flow."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.reading import format_of, read
from vegasmodel.packets.sizes import packet_sizes
from vegasmodel.packets.trace import Trace

__all__ = ["inspect"]


def inspect(path: str | Path, format: str = "auto") -> dict[str, Any]:  # noqa: A002 - an option
    """A summary of a trace file as plain data (``None``: unknown); errors as in ``read``."""
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
        "variables": [str(name) for name in trace.data.data_vars],
        "links": trace.links,
        "capacity_pps": None if capacity is None else _number(capacity.value),
        "flows": [_flow(trace, i) for i in range(len(trace.flows))],
        "provenance": dict(trace.provenance),
        "doubts": dict(trace.doubts),
    }


def _flow(trace: Trace, i: int) -> dict[str, Any]:
    name, steps = trace.flows[i], np.diff(trace.edges)

    def total(variable: str, weights: Any = 1.0) -> float | None:
        values = trace.known(variable)
        if values is None or np.isnan(values[:, i]).all():  # or unknown for this flow
            return None
        return _number(np.nansum(values[:, i] * weights))

    def of(variable: str, figure: Any) -> float | None:
        values = trace.known(variable)
        if values is None:
            return None
        values = values[i : i + 1] if values.ndim == 1 else values[:, i]
        values = values[np.isfinite(values)]
        return _number(figure(values)) if values.size else None

    least = [of(variable, np.min) for variable in ("rtt_min", "rtt", "base_rtt")]
    return {
        "name": name,
        "control": trace.controls.get(name),
        "match": name,
        "packets": total("throughput", steps),
        "sent": total("sent"),
        "lost": total("loss"),
        "retransmits": total("retransmits"),
        "first_s": of("first", np.min),
        "last_s": of("last", np.max),
        "packet_size_b": _number(packet_sizes(trace)[i]),
        "rtt_min_s": min((rtt for rtt in least if rtt is not None), default=None),
        "rtt_mean_s": of("rtt", np.mean),
        "base_rtt_s": of("base_rtt", np.min),
    }


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
