"""Chooses duration and warm-up to suit a trace, for a scenario file that leaves them out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Quantity
from vegasmodel.packets.activity import ends_early, idle_flows
from vegasmodel.packets.filled import Filled
from vegasmodel.packets.trace import Trace
from vegasmodel.scenario import Run
from vegasmodel.scenario.parts import WARMUP

__all__ = ["as_long_as"]

MIN_PART_AVERAGED = 0.2  # of a trace: averages begin so early that they cover at least this part


def as_long_as(trace: Trace, table: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Filled]]:
    """Fill in a missing ``duration`` and ``warmup`` of a scenario file, so that they fit the trace.

    A missing duration becomes the end of the trace, and a missing warm-up becomes the time that
    ``_warmup`` returns. In two cases nothing is filled in, and the defaults apply: the file states
    a duration and the trace is at least that long, or the file states no duration and the trace
    ends exactly at the default duration.

    Returns the completed table, and the list of the values that were filled in.
    """
    run = table.get("run", {})
    end = float(trace.edges[-1])
    if not isinstance(run, Mapping):
        return table, []
    stated = _stated_duration(run)
    if end == Run().duration if stated is None else end >= stated:
        return table, []
    found = {"duration": (end, "the end of the trace"), "warmup": _warmup(trace)}
    found = {key: value for key, value in found.items() if key not in run}  # run keeps its values
    times = {key: f"{value!r} s" for key, (value, _) in found.items()}
    filled = [Filled(f"run.{k}", v, v, v, "s", how) for k, (v, how) in found.items()]
    return {**table, "run": {**run, **times}}, filled


def _stated_duration(run: Mapping[str, Any]) -> float | None:
    """The ``duration`` of a file's table ``[run]``, s; ``None`` if it is missing or not a time."""
    try:
        return Quantity("time").read(run["duration"], "duration", None)
    except (KeyError, FieldError):
        return None


def _warmup(trace: Trace) -> tuple[float, str]:
    """The time at which averages of a trace should begin, s, and a text on how it was chosen.

    Usually averages begin a third of the way from the last flow's start to the end of the trace.
    But they begin at most ``WARMUP``, the longest default warm-up, after this start. The last flow
    may start so late that the averages would cover less than the fraction ``MIN_PART_AVERAGED`` of
    the trace. Then averages begin after a third of the whole trace, but at most ``WARMUP`` after
    its beginning. If the trace has only one interval, they begin at 0, because no part of it can be
    left out.

    All flows may end before the trace does. Their last packet then counts as the end of the trace,
    because nothing can be averaged after it. Flows that have little to send (``idle_flows``) are
    not considered.
    """
    if len(trace.edges) == 2:
        return 0.0, "the trace has one interval, of which no part can be left out"
    stops, idle = ends_early(trace), idle_flows(trace)
    last = [stops.get(flow, math.inf) for flow in trace.flows if flow not in idle]
    end = min(max(last, default=math.inf), float(trace.edges[-1]))
    end_name = "last packet" if end < trace.edges[-1] else "end of the trace"
    firsts = trace.known("first")
    starts = np.zeros(0) if firsts is None else firsts[firsts < end]
    start = float(np.nanmax(starts, initial=trace.begin))
    third = (end - start) / 3.0
    if end - start - min(third, WARMUP) < MIN_PART_AVERAGED * (end - trace.begin):
        start, third = trace.begin, (end - trace.begin) / 3.0
        start_name = "the trace's begin"
        how = f"a third of the {f'time to the {end_name}' if end < trace.edges[-1] else 'trace'}"
    else:
        start_name = "the last flow's start"
        how = f"a third of the time from the last flow's start to the {end_name}"
    if third > WARMUP:
        return start + WARMUP, f"{WARMUP:g} s after {start_name}"
    return start + third, how
