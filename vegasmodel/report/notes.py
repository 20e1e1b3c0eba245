"""Writes the sentences that stand under tables of predictions and measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vegasmodel import laws
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import format_time
from vegasmodel.measurement import ENGINES
from vegasmodel.metrics import student_t
from vegasmodel.report.console import PLUS_MINUS
from vegasmodel.results import rate_ranges
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.scatter import SIMULATED, more_than
from vegasmodel.results.texts import over_runs
from vegasmodel.scenario import Flow, Link, Red, Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.scenario.parts import LAWS
from vegasmodel.stacks.paper import PAPER

# If it is not known whether an assumption holds, ``notes`` only names it. But the one that stands
# here for a model is explained in full.
IN_FULL = {
    **dict.fromkeys(SIMULATED, "enough-runs"),
    "minicycle": "only-growing-windows-lose",
}
ENOUGH_RUNS = 5  # with fewer, a sentence warns of runs that agree by chance
OF_GROUPS = "A group's pkt/s is the mean over its flows. Its ± does not tell how the flows differ."
FORWARD = "Load, queue and queueing delay are those in the forward direction."
LOW_LOAD = 0.5  # below it a link is idle for more time than it is busy
NEARLY_ALL = 0.999  # two rates whose ratio is above this look equal in a table
TWO_AVERAGES = "pkt/s: while the flow is active; Mbit/s and share: from warm-up to end."


def legend(scenario: Scenario, shown: Sequence[Prediction], *, per_flow: bool) -> list[str]:
    """Sentences that explain figures in the tables, such as a standard error after ``±``.

    A sentence is left out if the tables have no figure that it explains. ``shown`` are the results
    in the tables. If a model predicts ranges of throughputs, a sentence gives these ranges, since
    the tables show only one throughput of each.
    """
    several = {group.name for group in scenario.flows if group.count > 1}
    scattered = {name for r in shown for name, error in r.groups_se.items() if error > 0}
    uncertain = [result for result in shown if _shows_error(result, per_flow=per_flow)]
    lines = {  # each sentence, and whether the tables have a figure that it explains
        TWO_AVERAGES: len(scenario.members) > 1 and _some_partly_active(scenario, shown),
        _plus_minus(uncertain): bool(uncertain),
        OF_GROUPS: bool(scattered & several),
        FORWARD: any(group.direction == "reverse" for group in scenario.flows),
    }
    ranges = [rate_ranges.in_tables(result, per_flow=per_flow) for result in shown]
    return [*(line for line, needed in lines.items() if needed), *filter(None, ranges)]


def _some_partly_active(scenario: Scenario, shown: Sequence[Prediction]) -> bool:
    """Whether some flow is active for only a part of the time from warm-up to end.

    A flow may start late or stop early, or it may end because its size is finite.  Whether a flow
    of finite size has ended is seen in the results ``shown``: the flow's mean rate over the whole
    time (``delivered_bps``) is then lower than its throughput, which is a mean over the active
    time.
    """
    if active_part(scenario).min() < 1.0:
        return True
    finite_size = [member.flow.one_transfer for member in scenario.members]
    return any(
        bool(np.any(finite_size & (each.delivered_bps < NEARLY_ALL * each.throughput_bps)))
        for each in shown
        if each.delivered_bps is not None and each.throughput_bps is not None
    )


def _plus_minus(results: Sequence[Prediction]) -> str:
    """The note below a table that explains ``±``.

    The note says over how many runs the standard error is taken, and gives for each result the
    widest 95 % interval (Student's t) of a group's throughput. If there are few runs, it warns that
    they may agree by chance. If the number of runs is unknown, the note is ``PLUS_MINUS``.
    """
    counts = sorted({result.runs for result in results})
    if not counts or counts[0] < 2:
        # a single run has no standard error, so the error was given with the result
        return PLUS_MINUS
    intervals = []
    for result in results:
        name, error = max(result.groups_se.items(), key=lambda item: np.nan_to_num(item[1]))
        if error > 0.0:
            half = f"{student_t(result.runs - 1) * error:.2g}"
            intervals.append(f"{name} ± {half} pkt/s by {result.model}")
    text = f"±: the standard error of the mean over {over_runs(results)}."
    text += f" Widest 95 % interval (Student's t): {', '.join(intervals)}." if intervals else ""
    if counts[0] < ENOUGH_RUNS:
        n = more_than(counts[0])
        command = "measure" if {result.model for result in results} <= set(ENGINES) else "predict"
        text += (
            f" {counts[0]} runs may agree by chance; `{command} --runs {n}`, or `runs = {n}` in "
        )
        text += "the file, asks for more."
    return text


def _shows_error(result: Prediction, *, per_flow: bool) -> bool:
    """Whether the tables show a standard error above 0 for this result.

    They show the standard errors of the groups' throughputs. With ``per_flow``, they also show
    those of the single flows' throughputs.
    """
    errors = list(result.groups_se.values())
    if per_flow and result.throughput_se is not None:
        errors += list(result.throughput_se)
    return any(error > 0 for error in errors)


def delays(scenario: Scenario, results: Sequence[Prediction]) -> list[str]:
    """A sentence with mean queueing delays: the link's mean queue divided by its capacity.

    For a trace without queues another sentence says how much longer its RTTs are than those of the
    scenario.  The list is empty if no result has a mean queue.  It is also empty if the scenario
    has several links, because the table of links then shows these delays.
    """
    if len(scenario.links) > 1:
        return []
    (link,) = scenario.links
    queues = [
        (result.model, float(result.queue_mean[0]))
        for result in results
        if result.applicable and result.queue_mean is not None
    ]
    texts = [f"{name} {format_time(q / link.capacity)}" for name, q in queues if math.isfinite(q)]
    longer = [
        f"{result.model} has no queue; its mean RTT is {format_time(more)} above the scenario's."
        for result in results
        if result.queue_mean is None and "pairing" in result.extra  # a trace
        if (more := _mean_excess_rtt(result)) > 0
    ]
    return [f"Mean queueing delay at {link.name}: {', '.join(texts)}.", *longer] if texts else []


def _mean_excess_rtt(result: Prediction) -> float:
    """By how much a packet's RTT exceeds its flow's RTT with empty queues, on average, s.

    It is NaN if the RTTs or the numbers of packets are unknown.
    """
    if result.rtt_mean is None or result.delivered is None:
        return math.nan
    members = zip(result.scenario.members, result.rtt_mean, result.delivered, strict=True)
    # for each flow its number of packets, and by how much its mean RTT exceeds the scenario's, s
    excesses = [(float(n), float(rtt - m.rtt)) for m, rtt, n in members if n > 0 and rtt > 0]
    packets = sum(n for n, _ in excesses)
    return sum(n * excess for n, excess in excesses) / packets if packets else math.nan


def idle(scenario: Scenario, results: Sequence[Prediction]) -> list[str]:
    """A sentence if congestion controls alone leave the busiest link idle for most of the time.

    The sentence names the models and measurements by which the link's load is below ``LOW_LOAD``.
    It also says how small the buffer is, if the link is a drop-tail one with less than a
    bandwidth-delay product of buffer: then overflows keep the windows small. It does not say so if
    no packet is lost by these models and measurements.

    The list is empty if something else than its congestion control limits a flow: its amount of
    data, the time in which it sends, its ``max_window``, or its own access link. It is also empty
    if a flow has the direction ``reverse``, because the load counts only the other direction.
    """
    limited = any(
        group.size != math.inf
        or group.arrivals != "once"
        or group.max_window != math.inf
        or group.access is not None
        or group.direction == "reverse"
        for group in scenario.flows
    )
    if limited or active_part(scenario).min() < 1.0:
        return []
    loads = {
        result.model: max(result.utilization)
        for result in results
        if result.applicable and result.utilization is not None
    }
    low = [f"{name} (load {load:.2g})" for name, load in loads.items() if load < LOW_LOAD]
    if not low:
        return []
    link_name = "link" if len(scenario.links) == 1 else "busiest link"
    text = (
        f"The {link_name} is idle for most of the time by {', '.join(low)}: the flows always have "
        "data to send, but their windows are too small to fill it."
    )
    link = scenario.links[0]
    rtts = [member.rtt for member in scenario.members]
    product = link.capacity * sum(rtts) / len(rtts)
    losses = [result.loss_rate for result in results if loads.get(result.model, 1.0) < LOW_LOAD]
    overflows = any(loss is None or np.nanmax(loss, initial=0.0) > 0.0 for loss in losses)
    small = link.loses_only_when_full and link.buffer < product
    if len(scenario.links) == 1 and small and overflows:
        text += (
            f" The buffer, {link.buffer:g} pkt, is small beside the bandwidth-delay product, "
            f"{product:.3g} pkt, so it overflows while the windows are small."
        )
    return [text]


def on_keys(scenario: Scenario) -> list[str]:
    """Sentences about keys of the scenario that the user may have meant in another way.

    They stand under tables, and in the list ``notes`` of JSON documents.
    """
    return [*without_effect(scenario), *_different_variants(scenario)]


def _different_variants(scenario: Scenario) -> list[str]:
    """A sentence if some Vegas flows have the default variant, ``paper``, and others another one.

    A user who adds a Vegas flow may have forgotten the key ``variant``. A flow with another
    congestion control needs no sentence: without the key it runs the TCP of the other flows.
    """
    variants = {group.name: group.variant for group in scenario.flows if group.keeps_backlog}
    if PAPER.name not in variants.values() or len({*variants.values()}) == 1:
        return []
    others = [f"{name} {variant}" for name, variant in variants.items() if variant != PAPER.name]
    default = [name for name, variant in variants.items() if variant == PAPER.name]
    verb = "have" if len(default) > 1 else "has"
    return [
        f"{few(default)} {verb} the variant {PAPER.name}, which is the default; other Vegas flows "
        f"have another one: {few(others)}."
    ]


def without_effect(scenario: Scenario) -> list[str]:
    """Sentences about keys of the scenario that have no effect, or only part of their usual one."""
    return [
        *(line for group in scenario.flows for line in _unused_by(group)),
        *(line for group in scenario.flows for line in _unused_class(scenario, group)),
        *(line for link in scenario.links for line in _unreached_red_keys(link)),
    ]


def _unused_by(group: Flow) -> list[str]:
    """Sentences about keys that the group's law does not use: ``decrease``, and keys for Vegas.

    A law that the user has written may use the keys for Vegas. So there is no sentence about these
    keys for such a law.
    """
    law = group.law
    if laws.find(law).cut is not None and "decrease" not in group._filled:
        reason = f"the function cut of {law} returns the window after a loss"
        return [f"{group.name}: decrease has no effect; {reason}."]
    if law not in LAWS or laws.find(law).delay_based:
        return []
    given = [key for key in ("alpha", "beta", "gamma") if key not in group._filled]
    verb = "have" if len(given) > 1 else "has"
    lines = {  # each sentence, and whether the scenario file gives the keys that it names
        f"{', '.join(given)} {verb} no effect; {law} has no thresholds.": bool(given),
        f"over_estimate has no effect; {law} uses no baseRTT.": not group.measures_base,
    }
    return [f"{group.name}: {line}" for line, is_given in lines.items() if is_given]


def _unused_class(scenario: Scenario, group: Flow) -> list[str]:
    """A sentence about the key ``class`` if the group crosses no link with Rate-Delay services."""
    served = any(group.service in link.queue.services for link in scenario.path(group))
    if "service" in group._filled or served:
        return []
    where = "no link on its path has the queue discipline rd"
    return [f"{group.name}: class has no effect; {where}."]


def _unreached_red_keys(link: Link) -> list[str]:
    """A sentence about RED's keys if the link's buffer is smaller than RED's ``max_threshold``.

    RED's mean queue never exceeds the buffer, so it never reaches this threshold, and perhaps not
    even ``min_threshold``.
    """
    queue, (limit, *_) = link.queue, link.limits
    if not isinstance(queue, Red) or limit >= queue.max_threshold:
        return []
    holds = f"the buffer holds only {limit:g} packets"
    if limit <= queue.min_threshold:
        reached = f"RED's mean queue never exceeds min_threshold, {queue.min_threshold:g} pkt"
        text = "RED drops or marks no packet, and packets are lost at the full buffer only"
    else:
        reached = f"RED's mean queue never reaches max_threshold, {queue.max_threshold:g} pkt"
        text = "the probability of a drop or mark stays below max_probability"
        text += ", and gentle has no effect" if queue.gentle else ""
    return [f"{link.name}: {holds}, so {reached}: {text}."]


def notes(results: Sequence[Prediction]) -> list[str]:
    """Sentences to print under a table of results.

    There is one for each assumption that the scenario does not meet, and one for each model without
    a prediction.  A sentence that is true of several models is printed once, with their names.

    It may not be known whether an assumption holds.  Such an assumption has a sentence of its own
    if a measurement makes it, or if the table ``IN_FULL`` has it for the model.  One more sentence
    names all other assumptions of this kind.
    """
    from vegasmodel.report.explanations import EXPLANATIONS

    # each text, with the models of which it is true; the names of the models will stand before it,
    # and "has" or "have" between them and a text " no answer: ..."
    lines: dict[str, list[str]] = {}
    unknown: dict[str, list[str]] = {}  # each assumption that is only named, with its models
    for result in results:
        if not result.applicable:
            lines.setdefault(f" no answer: {result.reason}.", []).append(result.model)
        for assumption in result.assumptions:
            in_full = assumption.name == IN_FULL.get(result.model)
            in_full = in_full or result.model not in EXPLANATIONS  # a measurement
            if assumption.holds is None and not in_full:
                unknown.setdefault(assumption.name, []).append(result.model)
            elif not assumption.holds:
                fails = "does not hold" if assumption.holds is False else "is not known"
                detail = f": {assumption.detail}" if assumption.detail else ""
                text = f": {assumption.name} {fails}{detail}{'' if detail.endswith('?') else '.'}"
                lines.setdefault(text, []).append(result.model)
    verb = {True: " have", False: " has"}
    sentences = [
        ", ".join(models) + (verb[len(models) > 1] if text.startswith(" no answer") else "") + text
        for text, models in lines.items()
    ]
    named = [f"{name} ({', '.join(models)})" for name, models in unknown.items()]
    holds = "these assumptions hold" if len(named) > 1 else "this assumption holds"
    text = f"Not known whether {holds}: {'; '.join(named)}."
    if "insensitive-to-starts" in unknown:
        text += " The command `vegasmodel basins` counts the outcomes of many starts."
    return [*sentences, *([text] if named else [])]
