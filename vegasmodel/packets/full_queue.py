"""Estimates from the RTTs in a trace how long packets wait in a full queue.

The buffer's size is estimated from this time and the capacity (``buffer.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.packets.busy_times import follows_the_queue
from vegasmodel.packets.trace import Trace

__all__ = ["Wait", "longest_wait", "noise_of"]

HIGH_QUANTILE = 0.95  # quantile of RTTs; stalls of hosts make less than the other 5 % too long
ENOUGH_LOSSES = 10  # with fewer losses, a few stalls of a host may come before a quarter of them
MIN_DELAYS = 30  # of a flow; from fewer, their noise is not computed
DEVIATION_OVER_MEDIAN = 1.4826  # of normal values of mean 0: standard deviation / median magnitude
SPREAD = 0.2  # delays at a full queue differ at most by this part of them


class Wait(NamedTuple):
    """The queueing delay at the longest queue.

    - ``delay``: this delay, s.
    - ``how``: a text on the RTT that the delay comes from.
    - ``random``: the number of losses, if most of them came while the queue was not full; else 0.
      Packets of one window that are lost together count as one loss.
    """

    delay: float
    how: str
    random: int


class _Loss(NamedTuple):
    """What happened from one loss of a flow to the next one.

    - ``top``: the largest queueing delay, s.
    - ``last``: the last queueing delay measured before the next loss, s.
    - ``rank``: the part of all delays of the flow, from 0 to 1, that are shorter than ``last``.
    - ``full``: the queueing delay, s, that the flow seldom exceeds.
    - ``seconds``: the time between the two losses, s.
    """

    top: float
    last: float
    rank: float
    full: float
    seconds: float


def longest_wait(trace: Trace, waits: Floats) -> Wait:
    """The queueing delay at the longest queue.

    ``waits`` has the queueing delays of the flows, s: [time, flow].

    The largest delay of a trace may come from a host or a radio link that stalled once, and not
    from the queue. But at a drop-tail queue a flow loses a packet only when the queue is full. The
    queue grows until then, so between two losses the delay of a flow is largest when the queue is
    full. The result is the median of these largest delays over all times between two losses.

    Each delay is weighted by the length of the time between the losses. So short times matter
    little: after a loss of several packets, the next loss is near, and the queue need not have been
    full in between. The weights are limited to that of a usual time between losses. Without a
    limit, one flow that seldom loses a packet would decide.

    In two cases the result is not the median, but a delay that few of the largest delays exceed
    (the quantile ``HIGH_QUANTILE``):

    - Most packets are lost while the queue is not full (``_at_any_queue``).
    - A quarter of the largest delays are longer than the median by more than the fraction
      ``SPREAD``.

    If there are fewer than ``ENOUGH_LOSSES`` losses, a few stalls may make a quarter of the delays
    too long. So the result is then always the median, and no loss counts as random.

    If the trace shows no losses, the result is a delay that the flow with the longest delays seldom
    exceeds.
    """
    losses = [loss for i in range(len(trace.flows)) for loss in _losses(trace, waits, i)]
    if losses:
        tops = np.array([loss.top for loss in losses])
        # the weights: the time from the loss before to each loss, s, but at most the median time,
        # in which each time is weighted by itself
        spans = np.array([loss.seconds for loss in losses])
        spans = np.minimum(spans, _quantiles(spans, spans)[0])
        # ``seldom_exceeded`` is the quantile ``HIGH_QUANTILE`` of the largest delays
        median, upper_quartile, seldom_exceeded = _quantiles(tops, spans)
        random = len(losses) >= ENOUGH_LOSSES and follows_the_queue(trace) and _at_any_queue(losses)
        alike = upper_quartile - median <= SPREAD * median
        if not random and (alike or len(losses) < ENOUGH_LOSSES):
            how = f"largest RTT before a loss, median over {len(losses)} losses"
            return Wait(median, how, 0)
        how = f"largest RTT before a loss, {HIGH_QUANTILE:.0%} quantile over {len(losses)} losses"
        part = "most" if random else "many"
        how += f", {part} of which came while the queue was not full"
        return Wait(seldom_exceeded, how, len(losses) if random else 0)
    of_flows = (delays[np.isfinite(delays)] for delays in waits.T)
    seldom = [float(np.quantile(delays, HIGH_QUANTILE)) for delays in of_flows if delays.size]
    return Wait(max(seldom, default=0.0), f"RTT, {HIGH_QUANTILE:.0%} quantile", 0)


def noise_of(trace: Trace, waits: Floats, packet: float) -> float:
    """By how much noise may make the largest delay minus the least one too long, s.

    Noise is what hosts and other links add to a packet's RTT. Its standard deviation s is computed
    for each flow, and from s the error of the two extreme delays. The result is the median over the
    flows. ``waits`` has the queueing delays of the flows, s: [time, flow].

    **The standard deviation.** Noise differs from one packet to the next, but a queue grows and
    shrinks steadily, apart from bursts. So the second differences of a flow's delays come from the
    noise. If the noise of different packets is independent, their standard deviation is sqrt(6) s.
    It is computed from their median magnitude, which rare losses and stalls do not change.

    In an interval each flow may add a packet to the queue, or several if one ACK acknowledges
    several. These bursts alone can cause second differences of so many packets. So this number,
    times the transmission time ``packet`` of one packet, s, is subtracted (as a square, like
    variances).

    **The extremes.** The largest of m delays is too long by about s sqrt(2 ln m), and the least of
    n delays too short by s sqrt(2 ln n). For normal values these are the first terms of the
    expected extremes, which are a little smaller. Here m is the number of a flow's delays from one
    loss to the next, and n that of all its delays.

    The result is 0 if the RTTs in the trace do not follow the queue (``follows_the_queue``), or if
    every flow has fewer than ``MIN_DELAYS`` delays.
    """
    if not follows_the_queue(trace):
        return 0.0
    flows, per_ack = np.isfinite(waits).any(axis=0), trace.known("packets_per_ack")
    most_per_ack = 1.0 if per_ack is None else np.append(per_ack[np.isfinite(per_ack)], 1.0).max()
    burst = packet * np.count_nonzero(flows) * most_per_ack
    found = []
    for i in np.flatnonzero(flows).tolist():
        values = waits[np.isfinite(waits[:, i]), i]
        if values.size >= MIN_DELAYS:
            # the median magnitude of the second differences
            second = float(np.median(np.abs(np.diff(values, 2))))
            per_loss = values.size / max(len(_losses(trace, waits, i)), 1)
            extremes = sum(np.sqrt(2.0 * np.log(n)) for n in (per_loss, values.size))
            found.append(
                DEVIATION_OVER_MEDIAN * np.sqrt(max(second**2 - burst**2, 0.0) / 6.0) * extremes
            )
    return float(np.median(found)) if found else 0.0


def _losses(trace: Trace, waits: Floats, i: int) -> list[_Loss]:
    """The losses of flow ``i``, each with the delays of the flow since the loss before.

    If no delay is known between two losses, they count as one loss. ``waits`` [interval, flow] has
    the queueing delays in s, or NaN where they are not known.
    """
    # the flow's retransmissions in each interval; if the trace shows none of them, its drops
    counts = [trace.known(k) for k in ("retransmits", "loss")]
    found = [values[:, i] for values in counts if values is not None]
    lost = next((values for values in found if np.nansum(values) > 0), np.zeros(0))
    ends = np.flatnonzero(np.nan_to_num(lost) > 0) + 1  # after each interval with a loss
    known = np.isfinite(waits[:, i])
    if not ends.size or not known.any():
        return []
    lengths, delivered = np.diff(trace.edges), trace.known("throughput")
    packets = lengths if delivered is None else np.nan_to_num(delivered[:, i]) * lengths
    weights = packets[known] if packets[known].sum() > 0 else lengths[known]
    # ``total``: the part of all packets whose delay is shorter than each of the sorted delays
    values = waits[known, i]
    order = np.argsort(values)
    ranked = values[order]
    total = np.concatenate([[0.0], np.cumsum(weights[order])]) / weights.sum()
    full = float(np.quantile(values, HIGH_QUANTILE))
    result = []
    for first, end in zip([0, *ends], ends, strict=False):
        delays = waits[first:end, i][known[first:end]]
        if delays.size:
            # equal delays share a rank, so it is the mean of those below and those up to it
            places = [np.searchsorted(ranked, delays[-1], side=s) for s in ("left", "right")]
            rank = float(np.mean(total[places]))
            span = float(lengths[first:end].sum())
            result.append(_Loss(float(delays.max()), float(delays[-1]), rank, full, span))
    return result


def _at_any_queue(losses: list[_Loss]) -> bool:
    """Whether most of the losses in a trace came while the queue was not full.

    If packets are lost at random, whatever the queue, the delay just before a loss is like that of
    any packet.  Its rank among the delays of all packets is then 1/2 on average.  If packets are
    lost only when the queue is full, the rank is near 1.  So if the mean rank is below 3/4, most
    losses were random.  But a queue that is full most of the time also makes ranks of 1/2.  So a
    second condition is that most of the delays before losses are shorter than that of a full queue
    by more than the fraction ``SPREAD``.
    """
    short = [loss.last < (1 - SPREAD) * loss.full for loss in losses]
    return bool(np.mean(short) >= 0.5 and np.mean([loss.rank for loss in losses]) < 0.75)


def _quantiles(values: Floats, weights: Floats) -> list[float]:
    """The median, the upper quartile and the quantile ``HIGH_QUANTILE`` of weighted values."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    places = np.searchsorted(total, total[-1] * np.array([0.5, 0.75, HIGH_QUANTILE]), side="right")
    return [float(values[order[place]]) for place in np.minimum(places, len(order) - 1)]
