"""Completes a scenario file that lacks keys, with estimates from a trace of the same network.

The file may leave out a flow's RTT, and a Vegas flow's thresholds: alpha, or alpha and beta. If
only beta is missing, it has its default. If there is only one link, the file may also leave out the
link's capacity and buffer, and the probability ``loss`` of random losses.

If the duration is missing, the run is taken to end with the trace. The warm-up is the time before
averages begin. If it is missing, it has its default in two cases: the trace is at least as long as
the duration that the file states, or the file states none and the trace has the default duration.
Otherwise it usually lasts until the last flow has started, plus a third of the time from this start
to the trace's end (``run_times``).

A trace shows each Vegas flow's backlog, the number of packets that the flow kept queued. It does
not show the thresholds. Vegas holds its window at any backlog between alpha and beta, so many pairs
(alpha, beta) agree with the trace. Several flows share their thresholds: those of one table
``[[flow]]``, or, with the TCP of Linux, all flows of a host. If the backlogs of the flows that
share thresholds agree with a single value of alpha = beta, this value is the estimate. Otherwise
alpha is the smallest of these backlogs, and beta the largest. If the file gives beta, the estimate
of alpha is at most this beta. TCP implementations compute the backlog in different ways, so the
estimate depends on the implementation that the flow runs (``variant``).

If the trace says that it was made from the scenario of the file, nothing is estimated: what the
file leaves out has its default, as in the run that made the trace.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vegasmodel.fields.errors import MISSING, FieldError, in_words, printable
from vegasmodel.laws import find, names
from vegasmodel.metrics import Floats
from vegasmodel.packets.buffer import lost_packets
from vegasmodel.packets.capacity import bound_of_mean_size, capacity_of
from vegasmodel.packets.estimate import (
    Estimates,
    at_least_window,
    capacity_by_bytes,
    estimate,
    lost_later,
)
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.filled import Filled
from vegasmodel.packets.gaps import packets_in_all
from vegasmodel.packets.pairing import Pairing, pair
from vegasmodel.packets.run_times import as_long_as
from vegasmodel.packets.sizes import in_packets_of
from vegasmodel.packets.trace import Trace
from vegasmodel.scenario import DropTail, Flow, Scenario
from vegasmodel.scenario.placement import work
from vegasmodel.stacks import STACKS

__all__ = ["DEFAULT", "EstimateError", "complete"]

# stand for missing keys until the trace has told them; valid beside any other values of a file
PLACEHOLDERS = {"capacity": "1e9 pkt/s", "rtt": "1e6 s"}
DEFAULT = "the trace cannot tell: the default"  # ``how`` of a key that has no estimate


def complete(table: Mapping[str, Any], trace: Trace) -> tuple[Scenario, tuple[Filled, ...]]:
    """Estimate the missing keys of a scenario file from a trace.

    ``table`` is the file's content. Returns the completed scenario and the estimates. Raises
    ``FieldError`` in four cases: a key in the file is wrong; the flows of the file cannot be paired
    with those of the trace; a required key cannot be estimated from the trace; the completed
    scenario is not valid (``EstimateError``).
    """
    made_from = _scenario_of(trace, table)
    if made_from is not None:
        return made_from, ()
    table, filled = as_long_as(trace, table)
    links, flows = _tables(table, "link"), _tables(table, "flow")
    # the missing keys of the only link, and those of each table [[flow]]
    link_gaps = [key for key in ("capacity", "buffer") if len(links) == 1 and key not in links[0]]
    gaps = [
        [
            key
            for key in ("rtt", "alpha")
            if key not in flow and (key == "rtt" or _keeps_backlog(flow))
        ]
        for flow in flows
    ]
    if not link_gaps and not any(gaps):
        return Scenario.from_dict(table), tuple(filled)
    # a scenario with placeholders for what is missing, to pair its flows with those of the trace
    completed = copy.deepcopy(dict(table))
    draft = _draft(completed, link_gaps, gaps)
    pairing = pair(trace, draft)
    # the trace with its numbers of packets converted to the packet sizes of the scenario
    trace, _ = in_packets_of(pairing)
    known = _estimates(trace, pairing.order, draft, "capacity" not in link_gaps)
    # random losses are estimated only beside the missing buffer of a drop-tail link
    with_buffer = "buffer" in link_gaps and isinstance(draft.links[0].queue, DropTail)
    if not with_buffer or "loss" in links[0]:
        known = dataclasses.replace(known, loss=None)
    filled += [_link(key, known, draft, trace) for key in link_gaps]
    filled += [_filled("link[0].loss", known.loss, 0.0)] if known.loss is not None else []
    filled += _of_flows(trace, pairing.order, draft, known, gaps, flows)
    _write_into(completed, [entry for entry in filled if not entry.key.startswith("run.")])
    try:
        return Scenario.from_dict(completed), tuple(filled)
    except FieldError as error:
        raise EstimateError(error, _names_at(error.field, pairing)) from None


def _estimates(
    trace: Trace, order: Sequence[int], draft: Scenario, capacity_stated: bool
) -> Estimates:
    """All estimates from the trace, with the capacity in packets of the scenario's ``packet_size``.

    ``draft`` is the file's scenario, with placeholders for what the file lacks (``_draft``). For
    each flow of the scenario, ``order`` has its index in the trace. ``capacity_stated`` says
    whether the file has the capacity of its only link.
    """
    over_base = {
        trace.flows[i]
        for i, member in zip(order, draft.members, strict=True)
        if STACKS[member.flow.variant].backlog_over_base
    }
    stated = None
    if len(draft.links) == 1 and capacity_stated:
        stated = draft.links[0].capacity / (_mean_size(trace, order, draft) or 1.0)
    known = estimate(trace, over_base, stated)
    if len({member.flow.direction for member in draft.members}) > 1:
        known = dataclasses.replace(known, capacity=_of_one_way(trace, draft))
    return dataclasses.replace(known, capacity=_by_bytes(known.capacity, trace, order, draft))


def _of_one_way(trace: Trace, draft: Scenario) -> Estimate | None:
    """The capacity of the only link if flows send in both directions; ``None`` if it is not known.

    The throughputs of all flows then add up to what the link carries in both directions together,
    which is more than its capacity. So the function does not use them. It uses the packets that
    the trace shows sent into the link in one direction. If packets differ in size, the sizes of
    these packets are not known, and neither is the capacity. ``draft`` is the file's scenario.
    """
    sizes = {draft.size_of(member.flow) for member in draft.members}
    if sizes != {draft.packet_size}:
        return None
    return capacity_of(
        dataclasses.replace(trace, data=trace.data.drop_vars("throughput", errors="ignore"))
    )


def _of_flows(
    trace: Trace,
    order: Sequence[int],
    draft: Scenario,
    known: Estimates,
    gaps: list[list[str]],
    tables: list[Mapping[str, Any]],
) -> list[Filled]:
    """The estimates of the keys that the tables ``[[flow]]`` of the file lack.

    ``gaps`` has the missing ones of the keys ``rtt`` and ``alpha`` for each of these ``tables``.
    ``known`` has what the trace tells, and ``draft`` is the file's scenario, with placeholders for
    what the file lacks (``_draft``). For each flow of the scenario, ``order`` has its index in the
    trace.
    """
    named = [(trace.flows[i], member) for i, member in zip(order, draft.members, strict=True)]
    filled = []
    for g, missing in enumerate(gaps):
        names = [name for name, member in named if member.group == g]
        if "rtt" in missing:
            filled.append(_rtt(g, names, known))
        if "alpha" in missing:
            variant, without_beta = draft.flows[g].variant, "beta" not in tables[g]
            if STACKS[variant].shared_thresholds:
                names = [
                    name
                    for name, member in named
                    if member.flow.variant == variant and "alpha" in gaps[member.group]
                ]
            found = [known.alpha[name] for name in names if name in known.alpha]
            lossy = any(lost_later(trace, name) for name in names if name in known.alpha)
            least = STACKS[variant].least_window
            small = any(at_least_window(trace, n, least) for n in names if n in known.alpha)
            flow = draft.flows[g]
            filled += _thresholds(g, found, flow, without_beta, lossy=lossy, small=small)
    return filled


def _scenario_of(trace: Trace, table: Mapping[str, Any]) -> Scenario | None:
    """The scenario of a file, if the trace says that it records a run of it; else ``None``."""
    if trace.scenario is None:
        return None
    try:
        scenario = Scenario.from_dict(table)
    except FieldError:  # the file lacks a key, or has a mistake
        return None
    return scenario if scenario.fingerprint() == trace.scenario else None


class EstimateError(FieldError):
    """Raised if an estimate from a trace is not allowed in a scenario.

    ``key`` is the key of the scenario file, such as ``flow[0].rtt``. If it belongs to a flow, the
    message also names the flow of the trace.
    """

    def __init__(self, error: FieldError, names: Sequence[str]) -> None:
        """Make an error for a wrong estimate from ``error``, which the scenario has raised.

        The scenario consists of the file and of the estimates of what the file lacks. The user has
        not written the value that ``error`` calls wrong. So the message says that the value is an
        estimate from the trace, and that the user may write the key into the file instead.

        ``names`` are the names in the trace of the flows whose value this is. It is empty if the
        key belongs to no flow, such as the capacity of a link.
        """
        self.key = error.field
        who = f", of {names[0]}" if names else ""
        who += f" and {len(names) - 1} more" if len(names) > 1 else ""
        value = f"{error.value:.4g}" if isinstance(error.value, float) else error.value
        text = f"{in_words(error.field)} = {value}"
        allowed = f"{error.allowed}; or state it in the scenario file"
        super().__init__(f"trace, its estimates{who}", text, allowed, wrong=error.wrong)


def _names_at(key: str, pairing: Pairing) -> list[str]:
    """The names in the trace of the flows that have the key, such as ``flow[0].rtt``.

    The result is empty if the key belongs to a link or to the whole scenario.
    """
    found = re.match(r"flow\[(\d+)\]", key)
    members = zip(pairing.scenario.members, pairing.order, strict=True)
    return [
        printable(pairing.trace.flows[i])
        for member, i in members
        if found and member.group == int(found[1])
    ]


def _by_bytes(
    found: Estimate | None, trace: Trace, order: Sequence[int], draft: Scenario
) -> Estimate | None:
    """Convert an estimated capacity to packets of the scenario's ``packet_size`` per second.

    ``found`` is the estimate in packets of any size per second: it counts a small packet as much as
    a large one. It is returned unchanged if all flows have packets of ``packet_size``, or if the
    trace tells no throughputs. Otherwise it is multiplied by the mean size of the packets, except
    if it is only a lower bound (``_bound_in_bytes``). ``draft`` is the scenario. For each of its
    flows, ``order`` has the flow's index in the trace.
    """
    mean_size = _mean_size(trace, order, draft)
    if found is None or mean_size is None:
        return found
    if not math.isinf(found.high) or bound_of_mean_size(trace):
        how = f"{found.how}; counted by bytes, as packets differ in size"
        value, low, high = (mean_size * rate for rate in (found.value, found.low, found.high))
        return dataclasses.replace(found, value=value, low=low, high=high, how=how)
    return _bound_in_bytes(found, trace, order, draft)


def _bound_in_bytes(
    found: Estimate, trace: Trace, order: Sequence[int], draft: Scenario
) -> Estimate:
    """A lower bound of the capacity in packets of the scenario's ``packet_size`` per second.

    It is the largest of three values:

    - the bound ``found``, in packets of any size per second.  It comes from one part of the trace,
      in which all packets may have been small, so it is converted by the size of the smallest;
    - the bytes that the flows deliver in the whole trace, divided by its length;
    - the estimate from the flows' throughputs in bytes (``capacity_by_bytes``). The range of the
      result begins at the low end of this estimate's range, if no other bound is larger.

    ``draft`` is the scenario. For each of its flows, ``order`` has the flow's index in the trace.
    """
    packets, sizes = _delivered(trace, order, draft)
    by_smallest = found.value * float(sizes[packets > 0].min())
    in_all = float(packets @ sizes) / float(trace.edges[-1] - trace.edges[0])
    value, how = by_smallest, f"{found.how}; sizes differ, so each packet counts as the smallest"
    if in_all > value:
        value, how = in_all, "all bytes that the flows deliver in the trace: a lower bound"
    sizes_in_trace = np.full(len(trace.flows), np.nan)  # in the order of the trace's flows
    sizes_in_trace[list(order)] = sizes
    least_of_bytes, of_bytes = capacity_by_bytes(trace, sizes_in_trace)
    low = max(value, least_of_bytes)
    if of_bytes > value:
        value, how = of_bytes, f"{found.how}; counted by bytes, as packets differ in size"
    return dataclasses.replace(found, value=value, low=low, how=how)


def _mean_size(trace: Trace, order: Sequence[int], draft: Scenario) -> float | None:
    """The mean size of the packets in the trace, divided by the scenario's ``packet_size``.

    It is ``None`` if all flows have packets of this size, or if the trace tells no throughputs.
    ``draft`` is the scenario. For each of its flows, ``order`` has the flow's index in the trace.
    """
    packets, sizes = _delivered(trace, order, draft)
    if np.all(sizes == 1.0) or not packets.sum() > 0:
        return None
    return float(packets @ sizes / packets.sum())


def _delivered(trace: Trace, order: Sequence[int], draft: Scenario) -> tuple[Floats, Floats]:
    """Each flow's delivered packets, and their size divided by ``packet_size``: two arrays [flow].

    The sizes contain the headers that ns-2 adds (``placement.header``).  The numbers of packets are
    0 where the trace does not tell them. For each flow of the scenario, ``order`` has its index in
    the trace.
    """
    sizes = np.array([work(draft, member.flow) for member in draft.members], dtype=float)
    packets = packets_in_all(trace)
    known = np.zeros(len(sizes)) if packets is None else np.nan_to_num(packets[list(order)])
    return known, sizes


def _tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The list of tables ``[[link]]`` or ``[[flow]]`` of a file; ``key`` is ``link`` or ``flow``.

    The list is empty if the file has no such tables.
    """
    found = table.get(key)
    good = isinstance(found, list) and all(isinstance(entry, Mapping) for entry in found)
    return found if good and isinstance(found, list) else []


def _keeps_backlog(flow: Mapping[str, Any]) -> bool:
    """Whether the law of a table ``[[flow]]`` keeps a backlog, as Vegas does."""
    return find(str(flow.get("law"))).keeps_backlog if flow.get("law") in names() else False


def _draft(completed: dict[str, Any], link_gaps: list[str], gaps: list[list[str]]) -> Scenario:
    """Put placeholders for a missing capacity and missing RTTs; return the resulting scenario.

    This scenario serves to check the rest of the file, and to pair its flows with those of the
    trace.  ``completed`` is the content of the scenario file; the placeholders are written into it.
    A missing buffer or alpha keeps its default.  Raises ``FieldError`` if the file is wrong.
    ``link_gaps`` has the keys that the file's link lacks, and ``gaps`` those that each table
    ``[[flow]]`` lacks.
    """
    if "capacity" in link_gaps:
        completed["link"][0]["capacity"] = PLACEHOLDERS["capacity"]
    for g, missing in enumerate(gaps):
        if "rtt" in missing:
            completed["flow"][g]["rtt"] = PLACEHOLDERS["rtt"]
    return Scenario.from_dict(completed)


def _link(key: str, known: Estimates, draft: Scenario, trace: Trace) -> Filled:
    """The estimate of a missing key of the only link: ``capacity`` or ``buffer``.

    ``known`` has what the trace tells. ``draft`` is the file's scenario, with defaults or
    placeholders for missing keys; the default buffer is infinite.

    The buffer has its default if the trace does not tell it, or if packets are also lost before the
    queue is full (RED, random loss). It is infinite, too, if the trace tells only a lower bound, in
    two cases: no packet was lost, so no larger buffer would change the trace; or most losses were
    random, so the queue need not have been full. Raises ``FieldError`` if the trace does not tell
    the capacity.
    """
    place, link = f"link[0].{key}", draft.links[0]
    if key == "capacity":
        if known.capacity is None:
            raise FieldError(
                place, None, "this key is required: the trace cannot tell it", wrong=MISSING
            )
        return _filled(place, known.capacity)
    found = known.buffer
    if found is None or not link.loses_only_when_full:
        return Filled(place, link.buffer, 0.0, math.inf, "pkt", DEFAULT, link.buffer)
    # ``known.loss`` is the probability of random losses, or None if there were none. The trace
    # tells only a lower bound of the buffer if ``found.high`` is infinite.
    if lost_packets(trace) is False or (known.loss is not None and math.isinf(found.high)):
        how = f"{found.how}, so the default"
        return Filled(place, math.inf, found.low, math.inf, "pkt", how, link.buffer)
    if trace.engine == "ns2":
        # the estimate is the number of waiting packets
        how = f"{found.how}; one more, as ns-2's limit counts the packet in transmission"
        return _filled(place, _shifted(found, 1.0, how), link.buffer)
    return _filled(place, found, link.buffer)


def _rtt(g: int, names: list[str], known: Estimates) -> Filled:
    """The estimated RTT of ``[[flow]]`` table number ``g``: the median over the flows of the table.

    ``names`` are the names of these flows in the trace. Raises ``FieldError`` if the trace tells
    the RTT of none of them.
    """
    place, found = f"flow[{g}].rtt", [known.rtt[name] for name in names if name in known.rtt]
    if not found:
        raise FieldError(
            place, None, "this key is required: the trace cannot tell it", wrong=MISSING
        )
    found.sort(key=lambda e: e.value)
    low, high = min(e.low for e in found), max(e.high for e in found)
    value = float(np.median([e.value for e in found]))
    return Filled(place, value, low, high, "s", found[len(found) // 2].how)


def _thresholds(
    g: int, found: list[Estimate], flow: Flow, without_beta: bool, *, lossy: bool, small: bool
) -> list[Filled]:
    """Estimates of alpha, and maybe beta, for the table ``[[flow]]`` number ``g``.

    ``without_beta`` says that the table has no beta; only then beta is estimated. ``found`` are the
    measured backlogs of the flows that have these thresholds: the flows of this table, or of
    several tables if a host has one alpha and one beta for all its flows, as in Linux. Vegas keeps
    its window constant while the backlog is at least alpha and at most beta. If one value agrees
    with all backlogs, it is the estimate of both alpha and beta. Otherwise alpha is the smallest
    backlog, and beta the largest. Some TCP implementations compare only the whole number of packets
    in the backlog with the thresholds; then the backlogs are rounded in the same way.

    A backlog between alpha and beta does not tell how far apart these are. So the range of alpha
    begins at the least value allowed, and that of beta has no upper end. If the flows are
    ``lossy``, the range of alpha has none either: losses may keep the backlog below alpha. If the
    window of some flow is ``small`` (``at_least_window``), its backlog may be above beta, so the
    range of beta begins at the least value allowed, too.

    If the trace has no backlogs, the result says that alpha has its default.
    """
    stack = STACKS[flow.variant]

    def counted(backlog: float) -> float:
        """The backlog as this TCP compares it with alpha: in whole packets, if it rounds."""
        return backlog if stack.real_numbers else float(math.floor(backlog + stack.below_alpha))

    # of each flow's backlog: the two ends of its range and the best value between them
    lows, values, highs = (
        [counted(getattr(e, end)) for e in found] for end in ("low", "value", "high")
    )
    # thresholds must be above 0, so at least 1 in whole packets
    smallest_allowed = 0.0 if stack.real_numbers else 1.0
    alpha, beta = max(min(values, default=0.0), smallest_allowed), max(values, default=0.0)
    if alpha <= 0.0 or beta < alpha:  # no backlogs, or backlogs of no whole packet
        return [Filled(f"flow[{g}].alpha", flow.alpha, 0.0, math.inf, "pkt", DEFAULT, flow.alpha)]
    if max(lows) <= min(highs):  # the ranges of all backlogs overlap: one value agrees with all
        mean = counted(float(np.mean([e.value for e in found])))
        alpha = beta = max(min(max(mean, *lows), *highs), smallest_allowed)
    pair = {"alpha": alpha, "beta": beta} if without_beta else {"alpha": min(alpha, flow.beta)}
    how = found[0].how
    low, high = max(min(lows), smallest_allowed), max(highs)
    if small:
        low = smallest_allowed
        how += f"; but a window is near {stack.least_window:g} packets, the least of this TCP, so "
        how += "beta may be less"
    top = math.inf if lossy else max(high, alpha)  # of alpha
    ends = {"alpha": (smallest_allowed, top), "beta": (min(low, beta), math.inf)}
    return [
        Filled(f"flow[{g}].{key}", value, *ends[key], "pkt", how, getattr(flow, key))
        for key, value in pair.items()
    ]


def _shifted(found: Estimate, by: float, how: str) -> Estimate:
    """The estimate with ``by`` added to its value and to both ends of its range."""
    value, low, high = found.value + by, found.low + by, found.high + by
    return dataclasses.replace(found, value=value, low=low, high=high, how=how)


def _filled(place: str, found: Estimate, default: float | None = None) -> Filled:
    """The entry for the key ``place``, such as ``link[0].buffer``, which the file lacks."""
    return Filled(place, found.value, found.low, found.high, found.unit, found.how, default)


def _write_into(completed: dict[str, Any], filled: list[Filled]) -> None:
    """Write the estimates into ``completed``, the content of the scenario file, with units.

    If the trace does not tell a key's value, the key is not written and has its default.
    """
    for entry in filled:
        what, _, key = entry.key.partition(".")
        kind, _, number = what.rstrip("]").partition("[")
        place = completed[kind][int(number)]
        if entry.how == DEFAULT:
            continue
        text = f"{entry.value!r} {entry.unit}" if math.isfinite(entry.value) else "inf"
        place[key] = text if entry.unit else entry.value
