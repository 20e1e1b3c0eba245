"""Runs the main loop of the simulator ``delayed``, whose equations are in ``feedback.py``.

In each time step the loop advances the queue and the senders. Within a step the numbers of packets
sent, arrived and lost are linear functions of time. A step is no longer than the shortest delay
between a sender and the queue. So the packets that arrive in a step were sent in earlier steps. A
step ends early if the queue becomes empty, if the buffer becomes full, if a flow starts or stops,
or if a sender detects a loss.

Many functions have the same arguments. ``p`` holds the properties of the flows (``Flows``), ``y``
holds the state of the senders, and ``past`` is the history of queue and flows. ``last`` is the
index of the latest entry of the history. ``c`` is the capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.delayed.queue import TINY, averaged, drop, dropped, queue_step
from vegasmodel.engines.delayed.senders import loss_report, may_send, occur
from vegasmodel.engines.delayed.state import Chance, Past, Senders, Totals, index
from vegasmodel.engines.fluid.records import Flows
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats


@jit
def note(
    y: Senders, past: Past, last: int, before: Floats, k: int, grid: Floats, record: Floats
) -> int:
    """Store the samples of the step that ends at entry ``last`` of the history.

    A sample is taken at each time of ``grid`` within the step, by linear interpolation between the
    step's two ends.  ``before`` has the flows' values at the beginning of the step, and ``k`` is
    the index of the first time of ``grid`` without a sample.  Returns the index of the first time
    of ``grid`` after the step.  A row of ``record`` receives a sample: for each flow the window,
    the queueing delay that the latest ACK reports, and the packets sent, delivered and lost so far;
    then the queueing delay of the link.
    """
    n, end = y.window.size, past.time[last]
    while k < grid.size and grid[k] <= end:
        part = (grid[k] - past.time[last - 1]) / (end - past.time[last - 1])
        for i in range(n):
            now = (
                y.window[i], y.seen[i], past.sent[last, i], y.acked[i] - y.missed[i],
                past.lost[last, i],
            )  # fmt: skip
            for j in range(5):
                record[k, 5 * i + j] = before[5 * i + j] + part * (now[j] - before[5 * i + j])
        old = past.delay[last - 1]
        record[k, 5 * n] = old + part * (past.delay[last] - old)
        k += 1
    return k


@making
def march(
    p: Flows, y: Senders, past: Past, last: int, c: float, s_max: float,
    chance: Chance, losers: int, end: float, longest: float, out: Totals, grid: Floats,
    record: Floats, k: int,
) -> tuple[int, int]:  # fmt: skip
    """Integrate the equations up to time ``end`` by steps of at most ``longest`` seconds.

    ``past`` is the history (``Past``), ``last`` the index of its last entry, and ``k`` the index of
    the first time of ``grid`` without a sample.  Returns the new ``last`` and ``k``.  If the arrays
    of the history are full, the function returns before ``end``; another call with more room goes
    on from there.  The caller can then handle signals such as Ctrl-C, which compiled code cannot.

    Row k of ``record`` receives the state at the time ``grid[k]``.  For each flow a row contains
    five numbers: the window, the queueing delay that the latest ACK reports, and the packets sent,
    delivered and lost so far.  The last number of a row is the queueing delay of the link.  The
    sums and integrals over the steps are added to ``out``.

    ``losers`` says which flows lose packets at an overflow (``drop``).  ``s_max`` is the queueing
    delay of a full queue in s, and ``chance`` has the parameters of random loss and RED.
    """
    n = y.window.size
    came, before = np.empty(n), np.zeros(5 * n)
    due = occur(p, y, past.time[last], out.cuts)
    while past.time[last] < end and last + 1 < past.time.size:
        t = past.time[last]
        left = min(due, end) - t
        wanted = left if left <= longest * (1.0 + TINY) else longest
        mean = past.mean[last]
        if last and chance.red:  # extrapolate RED's average to the middle of the step
            before_that = t - past.time[last - 1]
            if before_that > TINY * longest:
                mean += 0.5 * wanted * (mean - past.mean[last - 1]) / before_that
        # the queue: a step of ``h`` seconds to the delay ``s1``, in which ``excess`` packets
        # overflow; it becomes entry ``new`` of the history
        loss = dropped(chance, mean)
        h, s1, excess = queue_step(y, past, last, wanted, c, s_max, loss, came)
        now = min(due, end) if h == left else t + h
        new = last + 1
        past.time[new], past.delay[new], past.exit[new] = now, s1, now + s1
        past.came[new] = came
        arrived = came.sum() - past.came[last].sum()
        # packets that the link could have sent in addition while the queue was empty
        idle = max(c * (h + s1 - past.delay[last]) - (1.0 - loss) * arrived, 0.0)
        halfway = 0.5 * c * (past.delay[last] + s1)
        past.mean[new] = averaged(chance, past.mean[last], arrived + idle, halfway)
        for i in range(n):
            tossed = loss * (came[i] - past.came[last, i])
            past.lost[new, i] = past.lost[last, i] + tossed
            past.early[new, i] = past.early[last, i] + tossed
            before[5 * i], before[5 * i + 1] = y.window[i], y.seen[i]
            before[5 * i + 2], before[5 * i + 4] = past.sent[last, i], past.lost[last, i]
            before[5 * i + 3] = y.acked[i] - y.missed[i]
        if excess > 0.0:
            drop(p, y, past, last, excess, s_max, losers, came, past.lost[new])
        # the senders: reports of ACKs and losses, the packets that they send, and the totals
        for i in range(n):
            W, acked = y.window[i], y.acked[i]
            missed = loss_report(p, y, past, new, i, now)
            acks = y.acked[i] - acked
            past.sent[new, i] = may_send(p, y, i, now, past.sent[last, i])
            past.growing[new, i] = y.window[i] > W
            y.outward[i] = index(past.time, y.outward[i], new, now - y.forward_delay[i])
            out.delivered[i] += acks - missed
            out.acked[i] += acks
            out.seconds[i] += acks * (p.rtt[i] + y.seen[i])
            out.active[i] += now - t if W > 0.0 else 0.0
        out.queue[0] += 0.5 * (now - t) * c * (s1 + past.delay[last])
        out.queue[1] += now - t
        last = new
        k = note(y, past, last, before, k, grid, record)
        due = occur(p, y, now, out.cuts)
    return last, k
