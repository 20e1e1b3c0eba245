"""The steady state of the rounds engine: whole packets, so whether they come back is counted.

A section is a moment at which a window falls.  Where windows, to the packet, and the times between
sections repeat, the motion is periodic; where no window moves, it is at rest.  Else it is neither,
and the long average is given with its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats

if TYPE_CHECKING:
    from vegasmodel.engines.rounds.run import Totals
    from vegasmodel.scenario import Scenario

FIRST = 1280  # round trips of the first try; the next, if any, are twice as long
SETTLED = 0.25  # of a try is transient
SAMPLES = 4  # a shortest round trip
FALL = 0.85  # a window that falls below this part of itself within a sample is a section
MOST = 24  # sections in a period
TIMES = 3  # periods that have to agree with the last one, within a packet
LONG = 2500  # round trips before an average may do
BLOCKS = 16
SURE = 0.005  # standard error over mean, at which a long average is long enough


@dataclass(frozen=True, eq=False)
class Steady:
    """What was found; arrays [flow].  ``period`` is 0 at rest, NaN where nothing repeats."""

    kind: str
    period: float
    sections: int  # in a period
    throughput: Floats
    spread: Floats
    window: Floats
    rtt_mean: Floats
    base_rtt: Floats
    queue_mean: float
    losses: Floats
    residual: float  # packets by which the windows of the last periods differ, at sections
    status: str  # "done", or why the run failed (the averages are then NaN)


def steady(scenario: Scenario, longest: float = FIRST) -> Steady:
    """Run on, once all flows are there that stay, until the motion repeats or has been averaged.

    ``longest`` bounds the run, in round trips.
    """
    from vegasmodel.engines.rounds.answers import STATUS
    from vegasmodel.engines.rounds.run import run

    members, duration = scenario.members, scenario.run.duration
    rtts = [member.rtt for member in members]
    gone = [member.stop for member in members if member.stop < duration]
    started = max([member.start for member in members] + gone)
    trips = float(FIRST)
    while True:
        trips = min(trips, longest)
        span = trips * max(rtts)
        end = started + span
        flows = tuple(
            replace(group, stop=group.stop if (group.stop or end) < duration else None)
            for group in scenario.flows
        )
        timing = replace(scenario.run, duration=end, warmup=started + SETTLED * span)
        samples = math.ceil(end / min(rtts) * SAMPLES) + 1
        totals = run(replace(scenario, flows=flows, run=timing), samples=samples)
        if totals.status:
            return _failure(len(rtts), STATUS[totals.status])
        found = _rest(totals) or _repeats(totals)
        last = trips >= longest
        if found is not None:
            return found
        average = _average(totals)
        busy = average.throughput > 0
        sure = np.all(average.spread[busy] <= SURE * average.throughput[busy])
        if last or (sure and trips > LONG):
            return average
        trips *= 2.0


def _settled(totals: Totals) -> int:
    """The sample from which on the motion counts."""
    begin = float(totals.link["mark_now"])
    return int(np.searchsorted(totals.times, begin))


def _rest(totals: Totals) -> Steady | None:
    window = totals.per_flow[_settled(totals) :, :, 0]
    if np.any(window.max(axis=0) > window.min(axis=0)):
        return None
    return _means(totals, _settled(totals), len(totals.times) - 1, "fixed point", 0.0, 0, 0.0)


def _sections(window: Floats) -> NDArray[np.intp]:
    """Samples at which some window is about to fall; those of one fall count once."""
    falls = np.any(window[1:] < FALL * window[:-1] - 1.0, axis=1)
    where = np.flatnonzero(falls)
    if where.size == 0:
        return where
    return where[np.diff(where, prepend=where[0] - SAMPLES - 1) > SAMPLES]


def _repeats(totals: Totals) -> Steady | None:
    """The least number of sections after which the motion repeats, if it does."""
    begin = _settled(totals)
    at = begin + _sections(totals.per_flow[begin:, :, 0])
    state, gaps = totals.per_flow[at, :, 0], np.diff(at)
    for k in range(1, min(MOST, (len(at) - 1) // (TIMES + 1)) + 1):
        before = np.arange(-k, 0) - k * np.arange(1, TIMES + 1)[:, None]
        moved = np.abs(state[-k:] - state[before]).max()
        if moved <= 1.0 and np.abs(gaps[-k:] - gaps[before]).max() <= 2:
            first, last = int(at[-1 - TIMES * k]), int(at[-1])
            period = float(totals.times[last] - totals.times[first]) / TIMES
            return _means(totals, first, last, "periodic", period, k, float(moved))
    return None


def _average(totals: Totals) -> Steady:
    return _means(
        totals, _settled(totals), len(totals.times) - 1, "neither found", math.nan, 0, math.nan
    )


def _means(
    totals: Totals, first: int, last: int, kind: str, period: float, sections: int, residual: float
) -> Steady:
    """Averages between two samples; ``spread`` over blocks where nothing repeats."""
    times, delivered = totals.times, totals.per_flow[:, :, 3]
    rates = (delivered[last] - delivered[first]) / (times[last] - times[first])
    spread = np.zeros_like(rates)
    if kind == "neither found":
        edges = np.linspace(first, last, BLOCKS + 1).astype(np.intp)
        blocks = np.diff(delivered[edges], axis=0) / np.diff(times[edges])[:, None]
        spread = blocks.std(axis=0, ddof=1) / math.sqrt(BLOCKS)
    part = slice(first, last)
    packets = np.diff(delivered[first : last + 1], axis=0)
    flows = totals.flows
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt = (totals.per_flow[part, :, 2] * packets).sum(axis=0) / packets.sum(axis=0)
    counted = float(times[-1] - totals.link["mark_now"])
    lasts = period if kind == "periodic" else math.nan
    losses = (flows["lost"] - flows["mark_lost"]) * lasts / counted
    return Steady(
        kind, period, sections, rates, spread, totals.per_flow[part, :, 0].mean(axis=0), rtt,
        totals.base, float(totals.queues[part, 0].mean()), losses, residual, "done",
    )  # fmt: skip


def _failure(n: int, status: str) -> Steady:
    nothing = np.full(n, np.nan)
    return Steady(
        "neither found", math.nan, 0, nothing, nothing, nothing, nothing, nothing, math.nan,
        nothing, math.nan, status,
    )  # fmt: skip
