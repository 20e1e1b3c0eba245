"""Warns if a trace and a scenario differ, or if the averages of the trace may be wrong.

Each warning is an assumption that does not hold, or of which it is not known whether it holds. A
function that tests an assumption returns a text: what is wrong, or an empty text.
"""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.fields.lists import few
from vegasmodel.metrics import Floats
from vegasmodel.packets.ack_delays import ack_delays
from vegasmodel.packets.activity import ends_early, idle_flows
from vegasmodel.packets.gaps import unknown_throughputs
from vegasmodel.packets.inspection import unlikely_units
from vegasmodel.packets.one_queue import apart
from vegasmodel.packets.pairing import Pairing
from vegasmodel.packets.trace import Trace
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario

NEGLIGIBLE_PART = 0.1  # a smaller part of an interval, or of the measured time, does not matter
SAME_START = 1.0  # s: start times closer than this count as the same
SAME_STOP = 1.0  # s: packets sent before a stop may arrive, or be sent again, for so long after it


def warnings(
    pairing: Pairing, trace: Trace, delivered: Floats, seconds: Floats
) -> tuple[Assumption, ...]:
    """The assumptions about a trace, compared with a scenario, that may not hold.

    ``trace`` is the trace of ``pairing`` in packets of the scenario's size. ``delivered`` has the
    throughputs, pkt/s, and ``seconds`` the measured part of each interval, both [time, flow] in the
    order of the scenario's flows.
    """
    scenario = pairing.scenario
    names = [member.name for member in scenario.members]
    failing = {  # what is wrong; an empty text if nothing is
        "same-starts": _starts(pairing),
        "same-stops": _stops(pairing),
        "same-delayed-acks": _delayed_acks(pairing),
        "warm-up-left-out": _coarse(trace, scenario),
        "whole-run": _whole(trace, scenario),
        "known-throughput": unknown_throughputs(names, delivered, seconds),
    }
    found = (Assumption(name, False, detail) for name, detail in failing.items() if detail)
    return (*_doubts(trace, scenario), *found)


def _starts(pairing: Pairing) -> str:
    """Say which flows of the trace start at other times than in the scenario; else an empty text.

    There is no warning if a flow starts in the trace at most ``SAME_START`` s earlier than in the
    scenario, or at most ``start_jitter`` + ``SAME_START`` s later.  Here ``start_jitter`` is the
    longest random delay of a start in the scenario, s.  Short flows that arrive at random are not
    compared.
    """
    firsts, scenario = pairing.trace.get("first"), pairing.scenario
    if firsts is None:
        return ""
    differences = []
    for member, i in zip(scenario.members, pairing.order, strict=True):
        first, start = float(firsts[i]), member.start
        late = first - start - scenario.run.start_jitter
        if member.flow.arrivals == "once" and max(late, start - first) > SAME_START:
            text = f"{member.name} starts at {start:g} s, in the trace at {first:.4g} s"
            differences.append(text)
    return few(differences, clauses=True)


def _stops(pairing: Pairing) -> str:
    """Say which flows of the trace stop at other times than in the scenario, by ``SAME_STOP`` s.

    The throughput of a flow is measured up to its ``stop``, so what the trace has of the flow after
    this time is left out. A flow that stops before the end of the warm-up has no throughput. There
    is no warning about a ``stop`` at the end of the run, because all averages end then.

    A flow may also stop earlier in the trace (``ends_early``). Its average then includes the time
    in which it is silent. A flow of finite size stops when it has sent all its data, so there is no
    warning about it.
    """
    lasts, scenario = pairing.trace.get("last"), pairing.scenario
    if lasts is None:
        return ""
    differences, ends = [], ends_early(pairing.trace)
    for member, i in zip(scenario.members, pairing.order, strict=True):
        last, stop = float(lasts[i]), min(member.stop, scenario.run.duration)
        end = ends.get(pairing.trace.flows[i], math.inf)
        if member.flow.long_lived and stop - end > SAME_STOP:
            text = f"{member.name} stops at {stop:g} s, in the trace at {end:.4g} s"
            text += "; its average includes the time from there on, in which it sends nothing"
            differences.append(text)
        if stop < scenario.run.duration and last - stop > SAME_STOP:
            text = f"{member.name} stops at {stop:g} s, in the trace at {last:.4g} s"
            text += "; what it sends after its stop is left out"
            differences.append(text)
    return few(differences, clauses=True)


def _delayed_acks(pairing: Pairing) -> str:
    """Say whose receivers delay ACKs in the trace but not in the scenario, or vice versa."""
    known, differences = ack_delays(pairing.trace), []
    for member, i in zip(pairing.scenario.members, pairing.order, strict=True):
        found = known.get(pairing.trace.flows[i])
        if found and found.certain and found.delayed != member.flow.delayed_ack:
            value = str(member.flow.delayed_ack).lower()
            text = f"{member.name} has delayed_ack = {value}, in the trace {found.how}"
            differences.append(text)
    return few(differences, clauses=True)


def _coarse(trace: Trace, scenario: Scenario) -> str:
    """Warn if an interval of the trace is too long to leave the warm-up out of the averages.

    If the warm-up ends within an interval of the trace, the averages contain packets of the
    warm-up.  The function warns if this matters: if more than 10 % (``NEGLIGIBLE_PART``) of the
    interval lies in the warm-up, and the rest of the interval is more than 10 % of the measured
    time.
    """
    edges, warmup = trace.edges, scenario.run.warmup
    k = int(np.searchsorted(edges, warmup))
    if not 0 < k < len(edges):
        return ""
    low, high = float(edges[k - 1]), float(edges[k])
    measured = min(scenario.run.duration, float(edges[-1])) - warmup
    if (
        warmup - low <= NEGLIGIBLE_PART * (high - low)
        or high - warmup <= NEGLIGIBLE_PART * measured
    ):
        return ""
    return (
        f"an interval of the trace lasts from {low:.3g} to {high:.3g} s, so averages include a "
        f"part of the warm-up of {warmup:.3g} s, which the models leave out"
    )


def covered(trace: Trace, scenario: Scenario) -> tuple[float, float]:
    """The begin and the end, s, of the part of ``warmup .. duration`` that the trace covers.

    A trace may leave out times at which nothing is delivered. So the time before the trace counts
    as covered if no flow of the scenario starts before it. The time after the trace counts as
    covered if, at the trace's end, all flows of infinite size have stopped and all flows of finite
    size have started. Flows of finite size are then assumed to have delivered all their data.
    """
    run, members = scenario.run, scenario.members
    begin, end = float(trace.edges[0]), float(trace.edges[-1])
    if begin <= min(member.start for member in members):
        begin = run.warmup
    if end >= max(m.stop if m.flow.size == math.inf else m.start for m in members):
        end = run.duration
    return max(run.warmup, begin), min(run.duration, end)


def _whole(trace: Trace, scenario: Scenario) -> str:
    """Warn if the trace covers less than 90 % of the time over which the models average.

    The models average from ``run.warmup`` to ``run.duration``.
    """
    run, (begin, end) = scenario.run, covered(trace, scenario)
    if end - begin >= (1.0 - NEGLIGIBLE_PART) * (run.duration - run.warmup):
        return ""
    return (
        f"the trace lasts from {trace.edges[0]:.4g} to {trace.edges[-1]:.4g} s, so its averages "
        f"cover {begin:.4g} to {end:.4g} s, and the models' {run.warmup:.4g} to "
        f"{run.duration:.4g} s"
    )


def _doubts(trace: Trace, scenario: Scenario) -> tuple[Assumption, ...]:
    """List the assumptions about the trace that may not hold, and mark them as uncertain.

    Some of these doubts arose when the file was read (``Trace.doubts``). Two more are tested here:

    - ``usual-units``: the values have the units that the file's format prescribes. It is in doubt
      if values are so large or small that the file seems to have other units.
    - ``one-queue``: all flows share one queue. It is tested only if all flows of the scenario cross
      one link in one direction. It is in doubt if the RTTs of two flows do not rise and fall
      together.
    """
    idle = idle_flows(trace)
    found = {**trace.doubts, **unlikely_units(trace, idle)}
    one_queue = len(scenario.links) == 1 and len({g.direction for g in scenario.flows}) == 1
    others = apart(trace, idle) if one_queue else ""
    found |= {"one-queue": others} if others else {}
    return tuple(Assumption(name, None, detail) for name, detail in found.items())
