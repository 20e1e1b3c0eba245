"""Computes the averages of a measured trace, as a ``Prediction``.

Models return their results as ``Prediction`` objects, too, so both can be compared.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats, loss_rates
from vegasmodel.packets import trace_warnings
from vegasmodel.packets.gaps import (
    known_part,
    last_deliveries,
    mean_over_time,
    scaled_up,
    seconds_in,
)
from vegasmodel.packets.pairing import pair
from vegasmodel.packets.send_times import sent_at_once
from vegasmodel.packets.sizes import in_packets_of
from vegasmodel.packets.trace import Trace
from vegasmodel.results.assumption import sends_after_warm_up
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

__all__ = ["to_prediction"]


@kinds.checked
def to_prediction(trace: Trace, scenario: Scenario) -> Prediction:
    """Average a trace over ``warmup .. duration`` of the scenario, to compare it with models.

    A flow is measured in the part of this time in which it is active and which the trace covers.
    It is active from its start to its stop, or to its last packet if its size is finite.  If the
    trace does not tell the time of this packet, it is taken to be the end of the last interval in
    which the flow delivers packets.  Counts of packets are first converted to packets of the
    scenario's size (``sizes.in_packets_of``).  The result has

    - ``throughput``: the number of packets delivered for the first time, divided by the measured
      time, pkt/s.  It is NaN if the flow is not active between ``warmup`` and ``duration``.
    - ``delivered``, ``acks`` and ``retransmits``: counts over the measured time.
    - ``rtt_mean``: the mean RTT of the delivered packets, s.
    - ``base_rtt``, for Vegas only, s: the value that the sender itself uses, at the end of the
      measured time.  If the trace has no such values, it is the flow's smallest RTT until then.
      ``extra["base_rtt"]`` says which of the two it is.
    - ``loss_rate``: dropped packets / sent packets, at most 1.  If the trace does not record drops,
      it is retransmitted packets / sent packets.  ``extra["loss_rate"]`` says which of the two it
      is.  If the trace does not record sent packets, their number is taken to be the sum of the
      delivered packets and the dropped or retransmitted packets.
    - ``queue_mean``: the mean number of waiting packets at each link from ``warmup`` to
      ``duration``.

    ``extra["sent_at_once"]`` says whether the trace shows that no sender waits (``send_jitter``).

    If the trace covers only a part of ``warmup .. duration``, all averages are over this part, and
    ``delivered_time`` is its length, s.

    Where the trace does not tell a value (NaN), the value is taken to be the mean over the rest of
    the measured time.  So averages are over the time in which the value is known; they are NaN if
    there is none.  If the throughput of a flow is unknown for more than a tenth of the measured
    time, ``assumptions`` warns of this under the name ``known-throughput``.

    Flows are paired by the rules of ``pairing.pair``.  The result's ``model`` is "trace".  Its
    ``assumptions`` list what is uncertain about the trace or about the pairing of flows.

    Raises ``FieldError`` if flows cannot be paired, if the trace has no throughputs, or if it does
    not cover a flow that is active after ``warmup``.
    """
    pairing = pair(trace, scenario)
    order = list(pairing.order)
    trace, sizes = in_packets_of(pairing)
    delivered = trace.known("throughput")
    if delivered is None:
        raise FieldError("trace", trace.engine, "a trace with throughputs")
    spans = _spans(trace, scenario, _last_packet_times(trace, scenario, order))
    weights = _weights(trace, spans, order)
    seconds = seconds_in(trace, spans)
    counts = delivered * np.diff(trace.edges)[:, None]  # packets in each interval
    packets = _total(counts, order, weights, seconds)
    with np.errstate(invalid="ignore"):  # 0 packets in no time are no rate
        throughput = packets / (spans[:, 1] - spans[:, 0])
    loss, how = _loss(trace, order, weights, counts)
    # a flow of unknown throughput may have sent, so it gives no warning that it sent nothing
    unknown = known_part(delivered[:, order], seconds) == 0.0
    begin, end = trace_warnings.covered(trace, scenario)
    at_once = sent_at_once(trace)
    return Prediction(
        "trace",
        scenario,
        throughput,
        base_rtt=_base_rtt(trace, scenario, order, weights),
        rtt_mean=_mean(trace.known("rtt"), order, weights, counts),
        loss_rate=loss,
        acks=_total(trace.known("acks"), order, weights, seconds),
        retransmits=_total(trace.known("retransmits"), order, weights, seconds),
        delivered=packets,
        delivered_time=end - begin if end > begin else None,
        queue_mean=_queue(trace, scenario),
        assumptions=(
            *pairing.assumptions(),
            *sizes,
            *trace_warnings.warnings(pairing, trace, delivered[:, order], seconds),
            *sends_after_warm_up(scenario, np.where(unknown, np.inf, throughput)),
        ),
        extra={
            "engine": trace.engine,
            "scenario": trace.scenario,
            "pairing": pairing.to_json(),
            "base_rtt": "least RTT" if _has_least_rtts(trace) else "Vegas's own",
            "loss_rate": how,
            "sent_at_once": set(at_once).issuperset(trace.flows[i] for i in order),
        },
    )


def _last_packet_times(trace: Trace, scenario: Scenario, order: list[int]) -> Floats:
    """The time of the last packet of each flow of finite size, s: [flow].

    If the trace does not tell this time, it is the end of the last interval in which the flow
    delivers packets.  It is infinite for all flows that do not end by themselves: flows of infinite
    size, and sequences of short flows that arrive at random.  It is also infinite for a flow of
    which the trace shows no packet.  For each flow of the scenario, ``order`` has its index in the
    trace.
    """
    delivered, recorded = trace.known("throughput"), trace.get("last")
    last = np.full(len(order), np.nan) if recorded is None else recorded[order]
    if delivered is not None:
        seen = last_deliveries(trace.edges, delivered[:, order])
        last = np.where(np.isnan(last), seen, last)
    sized = [member.flow.one_transfer for member in scenario.members]
    return np.where(sized & ~np.isnan(last), last, np.inf)


def _spans(trace: Trace, scenario: Scenario, lasts: Floats) -> Floats:
    """The begin and end, s, of the time in which each flow is measured: [flow, 2].

    A flow is measured in the part of ``warmup .. duration`` in which it is active and which the
    trace covers.  For a flow that is not active in ``warmup .. duration``, begin and end are equal.
    ``lasts`` has the time of the last packet of each flow of finite size, s (else infinity).
    Raises ``FieldError`` if the trace does not cover an active flow.
    """
    run, edges = scenario.run, trace.edges
    spans = np.empty((len(lasts), 2))
    for k, member in enumerate(scenario.members):
        low = max(run.warmup, member.start, float(edges[0]))
        high = min(run.duration, member.stop, float(edges[-1]))
        if lasts[k] <= low or min(run.duration, member.stop) <= max(run.warmup, member.start):
            spans[k] = low, low
            continue
        high = min(high, float(lasts[k]))
        if not high > low:
            raise FieldError(
                "trace",
                f"{edges[0]:g} s to {edges[-1]:g} s",
                f"a trace that covers {member.name} after the warm-up of {run.warmup:g} s: "
                "lower run.warmup",
            )
        spans[k] = low, high
    return spans


def _weights(trace: Trace, spans: Floats, order: list[int]) -> Floats:
    """Which fraction of a flow's packets in an interval falls into its measured time: [time, flow].

    The time in which a flow is measured (``spans``) may begin or end within an interval.  The
    flow's packets are assumed to be evenly spread over the interval.  If the flow's first or last
    packet is in the interval, they are assumed to be evenly spread over the part in which the flow
    is active.  For each flow of the scenario, ``order`` has its index in the trace.
    """
    first, last = trace.get("first"), trace.get("last")
    low, high = trace.edges[:-1, None], trace.edges[1:, None]
    if first is not None and last is not None:
        active_low = np.fmax(low, first[order])
        active_high = np.fmin(high, last[order])
        # a flow of one packet, or an interval without packets of the flow: use the whole interval
        empty = ~(active_high > active_low)
        low, high = np.where(empty, low, active_low), np.where(empty, high, active_high)
    inside = np.minimum(high, spans[:, 1]) - np.maximum(low, spans[:, 0])
    weights: Floats = np.clip(inside, 0.0, None) / (high - low)
    return weights


@overload
def _total(values: Floats, order: list[int], weights: Floats, seconds: Floats) -> Floats: ...
@overload
def _total(
    values: Floats | None, order: list[int], weights: Floats, seconds: Floats
) -> Floats | None: ...
def _total(
    values: Floats | None, order: list[int], weights: Floats, seconds: Floats
) -> Floats | None:
    """Add up a count, such as packets, over the time in which each flow is measured: [flow].

    ``values`` has the count per interval and flow.  In intervals in which it is unknown, it is
    taken to be the mean over the rest of the measured time.  The result is NaN if the count is
    never known.  ``weights`` are from ``_weights``: the fraction of an interval's packets that is
    measured.  ``seconds`` has the measured part of each interval, s: [time, flow].  For each flow
    of the scenario, ``order`` has its index in the trace.
    """
    if values is None:
        return None
    chosen = values[:, order]
    return scaled_up(np.nansum(chosen * weights, axis=0), known_part(chosen, seconds))


def _mean(
    values: Floats | None, order: list[int], weights: Floats, delivered: Floats
) -> Floats | None:
    """The mean of a variable over the time in which each flow is measured: [flow].

    ``values`` has the variable, such as the RTT, per interval and flow.  An interval has the weight
    ``delivered``, the number of packets that the flow delivered in it, times the fraction of these
    packets that counts as measured (``weights``).  If the flow delivered nothing in any interval
    with a known value, the weights are ``weights`` alone.  The mean is NaN if no value is known in
    the time measured.  For each flow of the scenario, ``order`` has its index in the trace.
    """
    if values is None:
        return None
    chosen = values[:, order]
    known = ~np.isnan(chosen)
    weight = np.where(known, weights * np.nan_to_num(delivered[:, order]), 0.0)
    weight = np.where(weight.sum(axis=0) > 0, weight, np.where(known, weights, 0.0))
    total = weight.sum(axis=0)
    weighted_sum = (weight * np.where(known, chosen, 0.0)).sum(axis=0)
    mean: Floats = np.divide(
        weighted_sum, total, out=np.full(total.shape, math.nan), where=total > 0
    )
    return mean


def _base_rtt(trace: Trace, scenario: Scenario, order: list[int], weights: Floats) -> Floats | None:
    """The baseRTT of each Vegas flow at the end of the time in which it is measured, s: [flow].

    The trace may have the variable ``base_rtt``, the baseRTT that the sender itself uses. The
    result is then the variable's last value in that time, or NaN if there is none. If the trace
    lacks the variable but has each interval's smallest RTTs, the result is the flow's smallest RTT
    until the end of that time. If it has neither, the function returns None. For flows that are not
    Vegas the result is NaN.

    For each flow of the scenario, ``order`` has its index in the trace. ``weights`` are from
    ``_weights``; they are above 0 in the intervals in which a flow is measured.
    """
    own, smallest = trace.known("base_rtt"), trace.known("rtt_min")
    if own is None and smallest is None:
        return None
    result = np.full(len(order), math.nan)
    for k, member in enumerate(scenario.members):
        if member.flow.law != "vegas":
            continue
        inside = np.flatnonzero(weights[:, k] > 0)
        if own is not None:
            known = own[inside, order[k]]
            known = known[~np.isnan(known)]
            result[k] = known[-1] if known.size else math.nan
        elif smallest is not None and inside.size:
            result[k] = np.fmin.reduce(smallest[: inside[-1] + 1, order[k]])
    return result


def _has_least_rtts(trace: Trace) -> bool:
    """Whether ``_base_rtt`` gives the smallest RTTs seen, not the baseRTTs that Vegas had."""
    source = trace.provenance.get("base_rtt", "")  # what the reader of the file took as baseRTT
    return trace.known("base_rtt") is None or "minrtt" in source or "smallest RTT" in source


def _loss(
    trace: Trace, order: list[int], weights: Floats, delivered: Floats
) -> tuple[Floats | None, str]:
    """Each flow's loss rate, and a text on how it was computed.

    The loss rate is dropped packets / sent packets, at most 1 (``loss_rates``).  If the trace does
    not record drops, retransmitted packets are counted instead.  If it does not record sent
    packets, they are taken to be the delivered plus the lost ones.  An interval between two times
    of the trace is left out if either number is unknown there.  ``delivered`` has the packets
    delivered, [time, flow of the trace].  For each flow of the scenario, ``order`` has its index in
    the trace.  ``weights``, from ``_weights``, says which part of each interval lies in the
    measured time.
    """
    lost, resent, sent = (trace.known(name) for name in ("loss", "retransmits", "sent"))
    events, how = (lost, "drops") if lost is not None else (resent, "retransmissions")
    if events is None:
        return None, "not known"
    if sent is None:
        sent = delivered + events
    events = np.where(np.isnan(sent), np.nan, events)
    sent = np.where(np.isnan(events), np.nan, sent)
    all_lost, all_sent = (np.nansum(x[:, order] * weights, axis=0) for x in (events, sent))
    return loss_rates(all_lost, np.where(all_sent >= 1, all_sent, 0.0)), f"{how} over packets sent"


def _queue(trace: Trace, scenario: Scenario) -> Floats | None:
    """The mean number of packets waiting at each link of the scenario, in the trace: [link].

    The mean is over ``warmup .. duration`` of the scenario.  The result is ``None`` if the trace
    has no queues or covers no part of this time.

    Links of the scenario and the trace are paired by equal names.  A link without a partner has the
    mean NaN.  But if a scenario's only link has no partner, it gets the link of the trace with the
    longest mean queue.
    """
    queue = trace.known("queue")
    if queue is None:
        return None
    low, high = trace.edges[:-1], trace.edges[1:]
    run = scenario.run
    weight = np.clip(np.minimum(high, run.duration) - np.maximum(low, run.warmup), 0.0, None)
    if not weight.sum() > 0:
        return None
    means = mean_over_time(queue, weight)
    index = {name: i for i, name in enumerate(trace.links)}
    named = [means[index[k.name]] if k.name in index else math.nan for k in scenario.links]
    if len(scenario.links) == 1 and scenario.links[0].name not in index:
        named = [float(np.fmax.reduce(means))]
    return np.array(named)
