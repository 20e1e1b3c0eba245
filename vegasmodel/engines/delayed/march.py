"""Runs the main loop of the simulator ``delayed``, whose equations are in ``feedback.py``.

In each time step the loop advances the queue and the senders. Within a step the numbers of packets
sent, arrived and lost are linear functions of time. A step is no longer than the shortest delay
between a sender and the queue. So the packets that arrive in a step were sent in earlier steps. A
step ends early if the queue becomes empty, if the buffer becomes full, if a flow starts or stops,
or if a sender detects a loss.

Many functions have the same arguments. ``flows`` holds the properties of the flows (``Flows``),
``senders`` holds the state of the senders, and ``past`` is the history of queue and flows. ``last``
is the index of the latest entry of the history. ``c`` is the capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.delayed.queue import TINY, drop, drop_probability, queue_step, red_average
from vegasmodel.engines.delayed.senders import apply_due_events, process_reports, sent_so_far
from vegasmodel.engines.delayed.state import DropParameters, Past, Samples, Senders, Totals, index
from vegasmodel.engines.fluid.records import SPAN, WAITED, Flows
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats


@jit
def note_values(senders: Senders, past: Past, last: int, values: Floats) -> None:
    """Write what samples show of each flow at present into ``values`` [flow, 5].

    This is the window, the queueing delay that the latest ACK reports, and the packets sent,
    delivered and lost so far.
    """
    for i in range(senders.window.size):
        values[i, 0], values[i, 1] = senders.window[i], senders.reported_delay[i]
        values[i, 2], values[i, 4] = past.sent[last, i], past.lost[last, i]
        values[i, 3] = senders.acked[i] - senders.known_lost[i]


@jit
def store_samples(
    senders: Senders, past: Past, last: int, before: Floats, after: Floats, k: int, samples: Samples
) -> int:
    """Store the samples of the step that ends at entry ``last`` of the history.

    A sample is taken at each of ``samples.times`` within the step, by linear interpolation between
    the step's two ends.  ``before`` has the values of ``note_values`` at the beginning of the step,
    and ``after`` receives those at its end.  ``k`` is the index of the first time without a sample;
    the result is its new value.
    """
    times, begin, end = samples.times, past.time[last - 1], past.time[last]
    if k < times.size and times[k] <= end:
        note_values(senders, past, last, after)
    while k < times.size and times[k] <= end:
        part = (times[k] - begin) / (end - begin)
        for i in range(before.shape[0]):
            for j in range(before.shape[1]):
                samples.values[k, i, j] = before[i, j] + part * (after[i, j] - before[i, j])
        old = past.delay[last - 1]
        samples.delay[k] = old + part * (past.delay[last] - old)
        k += 1
    return k


@jit
def sender_step(
    flows: Flows, senders: Senders, past: Past, new: int, i: int, totals: Totals
) -> None:
    """Advance the sender of flow i to the end of the step, and add the step to the totals.

    The sender processes the reports of ACKs and losses that arrive in the step, and sends packets.
    ``new`` is the index of the step's entry in the history.
    """
    now, W, acked = past.time[new], senders.window[i], senders.acked[i]
    newly_lost = process_reports(flows, senders, past, new, i, now)
    acks = senders.acked[i] - acked
    past.sent[new, i] = sent_so_far(flows, senders, i, now, past.sent[new - 1, i])
    past.growing[new, i] = senders.window[i] > W
    sent_at = now - senders.forward_delay[i]  # when the packets that reach the queue now were sent
    senders.sent_index[i] = index(past.time, senders.sent_index[i], new, sent_at)
    totals.delivered[i] += acks - newly_lost
    totals.acked[i] += acks
    totals.seconds[i] += acks * (flows.rtt[i] + senders.reported_delay[i])
    totals.active[i] += now - past.time[new - 1] if W > 0.0 else 0.0


@jit
def red_mean_in_step(past: Past, last: int, wanted: float, longest: float) -> float:
    """RED's average queue in the middle of the next step, extrapolated from the step before.

    ``wanted`` is the length of the next step. If the step before was too short for a slope, the
    result is the average at its end. ``longest`` is the greatest length of a step. ``last`` is the
    index of the latest entry of the history ``past``.
    """
    mean: float = past.mean[last]
    if last:
        last_step = past.time[last] - past.time[last - 1]
        if last_step > TINY * longest:
            mean += 0.5 * wanted * (mean - past.mean[last - 1]) / last_step
    return mean


@jit
def store_red_average(
    past: Past, new: int, h: float, loss: float, c: float, drops: DropParameters
) -> None:
    """Store RED's average queue at the end of a step of ``h`` seconds, as entry ``new``.

    Each arriving packet moves the average. While the queue was empty, so does each packet that the
    link could have sent in addition (``idle``). ``loss`` is the probability of random drops. ``c``
    is the capacity in pkt/s.
    """
    last, s, s1 = new - 1, past.delay[new - 1], past.delay[new]
    arrivals = past.arrived[new].sum() - past.arrived[last].sum()
    # If the link was never idle, c (h + s1 - s) packets have joined the queue: it has sent c h.
    idle = max(c * (h + s1 - s) - (1.0 - loss) * arrivals, 0.0)
    halfway = 0.5 * c * (s + s1)  # the mean queue of the step
    past.mean[new] = red_average(drops, past.mean[last], arrivals + idle, halfway)


@making
def march(
    flows: Flows, senders: Senders, past: Past, last: int, c: float, s_max: float,
    drops: DropParameters, losers: int, end: float, longest: float, totals: Totals,
    samples: Samples, k: int,
) -> tuple[int, int]:  # fmt: skip
    """Integrate the equations up to time ``end`` by steps of at most ``longest`` seconds.

    ``past`` is the history (``Past``), ``last`` the index of its last entry, and ``k`` the index of
    the first of ``samples.times`` without a sample.  Returns the new ``last`` and ``k``.  If the
    arrays of the history are full, the function returns before ``end``; another call with more room
    goes on from there.  The caller can then handle signals such as Ctrl-C, which compiled code
    cannot.

    The sums and integrals over the steps are added to ``totals``.

    ``losers`` says which flows lose packets at an overflow (``drop``).  ``s_max`` is the queueing
    delay of a full queue in s, and ``drops`` has the parameters of random loss and RED.  ``c`` is
    the capacity in pkt/s.
    """
    n = senders.window.size
    arrived, before, after = np.empty(n), np.empty((n, 5)), np.empty((n, 5))
    due = apply_due_events(flows, senders, past.time[last], totals.cuts)  # the next event's time
    while past.time[last] < end and last + 1 < past.time.size:
        t = past.time[last]
        remaining = min(due, end) - t
        wanted = remaining if remaining <= longest * (1.0 + TINY) else longest
        mean = red_mean_in_step(past, last, wanted, longest) if drops.red else past.mean[last]
        # 1. The queue: it is advanced by ``h`` seconds, after which the queueing delay is ``s1``.
        # ``excess`` packets find the buffer full. The step becomes entry ``new`` of the history.
        loss = drop_probability(drops, mean)
        h, s1, excess = queue_step(senders, past, last, wanted, c, s_max, loss, arrived)
        now = min(due, end) if h == remaining else t + h
        new = last + 1
        past.time[new], past.delay[new], past.exit[new] = now, s1, now + s1
        past.arrived[new] = arrived
        store_red_average(past, new, h, loss, c, drops)
        # 2. The drops: at random, and at the full buffer.
        note_values(senders, past, last, before)
        for i in range(n):
            random_drops = loss * (arrived[i] - past.arrived[last, i])
            past.lost[new, i] = past.lost[last, i] + random_drops
            past.random_drops[new, i] = past.random_drops[last, i] + random_drops
        if excess > 0.0:
            drop(flows, senders, past, last, excess, s_max, losers, arrived, past.lost[new])
        # 3. The senders: ACKs and losses that they hear of in the step, and packets that they send.
        for i in range(n):
            sender_step(flows, senders, past, new, i, totals)
        totals.queue[WAITED] += 0.5 * (now - t) * c * (s1 + past.delay[last])
        totals.queue[SPAN] += now - t
        # 4. The samples in the step, and the events at its end.
        last = new
        k = store_samples(senders, past, last, before, after, k, samples)
        due = apply_due_events(flows, senders, now, totals.cuts)
    return last, k
