"""Iterates Vegas's window rule, equation (1) of Boutremans and Le Boudec, as the paper prints it.

The rule is applied once per round trip, without rounding and without single packets.

Diff is the backlog that a source computes from its window and RTTs.  d is the propagation delay of
a source, and Delta the queueing delay.

The paper simulated with ns and with "our own implementation of the congestion avoidance algorithm".
This module is such an implementation.  Each source measures an RTT, keeps the least one, and
changes its window by one packet (or by another step) or not at all.  ns-2 rounds Diff before it
compares it with the thresholds; here this is an option.
"""

import heapq
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from paper_checks.boutremans.scenes import CAPACITY
from vegasmodel.metrics import Floats

__all__ = ["SEEDS", "Course", "course", "rates", "unhurried"]

D = 0.2  # s, the propagation delay of all sources
ARRIVAL_INTERVAL = 2.0  # s, between arrivals
# s: windows are recorded from this time on, for so long, at such intervals
RECORD_FROM, RECORD_FOR, RECORD_EVERY = 90.0, 30.0, 0.05
FIRST_WINDOW = 2.0  # packets, the window that a source begins with
MIN_RTT = 0.01  # s, the least RTT that is measured, however negative its random part is
SEEDS = 5  # runs of each case, which differ in the start times


@dataclass(frozen=True, eq=False)
class Course:
    """The windows and the queueing delay over time: recorded for 30 s, every 0.05 s."""

    windows: Floats  # [times, sources] packets
    wait: Floats  # [times] s

    @property
    def rates(self) -> Floats:
        """cwnd/RTT, pkt/s [times, sources]."""
        return np.asarray(self.windows / (D + self.wait)[:, None])

    @property
    def both_ways(self) -> NDArray[np.bool_]:
        """Whether the window of each source both grows and shrinks."""
        steps = np.diff(self.windows, axis=0)
        return np.asarray((steps > 0).any(axis=0) & (steps < 0).any(axis=0))

    @property
    def swing(self) -> Floats:
        """Difference of the largest and the least window of each source, packets."""
        return np.asarray(np.ptp(self.windows, axis=0))


@cache
def course(
    n: int,
    alpha: float,
    beta: float,
    noise: float = 0.0,
    known: bool = False,
    seed: int = 0,
    every: float = ARRIVAL_INTERVAL,
    step: float = 1.0,
    rounded: bool = False,
) -> Course:
    """The windows and the queueing delay of ``n`` Vegas sources that join a link one by one.

    One source joins every ``every`` seconds, plus up to 0.1 s drawn with ``seed``.

    The queueing delay Delta is that at which the rates cwnd/(d + Delta) add up to the capacity, so
    the queue reacts to the windows at once.  ``noise``: standard deviation of the random part of
    each measured RTT, s.  ``known``: every source knows d, its propagation delay, and need not
    measure it.  ``step``: the change of a window in a round trip, packets.  ``rounded``: Diff, the
    backlog, is rounded to a whole number before it is compared with alpha and beta, as in ns-2.

    The course is recorded from ``RECORD_FROM`` on, but not before ``every`` seconds have passed
    since the last source joined.
    """
    rng = np.random.default_rng(seed)
    begin = every * np.arange(n) + 0.1 * rng.random(n)
    events = [(float(t), i) for i, t in enumerate(begin)]  # when source i next applies the rule
    heapq.heapify(events)
    W, base_rtt = [0.0] * n, [D if known else np.inf] * n
    # the sum of all windows; since all sources have the same d, the rates add up to
    # total/(D + Delta), and so the queueing delay Delta is total/CAPACITY - D
    total = 0.0
    windows, waits, record_at = [], [], max(RECORD_FROM, n * every)
    until = record_at + RECORD_FOR
    while True:
        now, i = events[0]
        while record_at <= now and record_at <= until:
            windows.append(list(W))
            waits.append(max(0.0, total / CAPACITY - D))
            record_at += RECORD_EVERY
        if now >= until:
            break
        wait, window = total / CAPACITY - D, W[i]
        RTT = D + wait if wait > 0.0 else D  # a call of max would take longer
        measured = max(RTT + noise * rng.standard_normal(), MIN_RTT) if noise else RTT
        if not known and measured < base_rtt[i]:
            base_rtt[i] = measured
        if window == 0.0:  # it joins: its first packet waits behind those of the others
            changed = FIRST_WINDOW
        else:
            Diff = window * (1 - base_rtt[i] / measured)
            if rounded:
                Diff = float(int(Diff + 0.5))
            changed = max(window + step * ((Diff < alpha) - (Diff > beta)), 1.0)  # (1)
        total += changed - window
        W[i] = changed
        heapq.heapreplace(events, (now + RTT, i))
    return Course(np.array(windows), np.array(waits))


def unhurried(alpha: float) -> float:
    """A time between arrivals, s, that is enough for the queue to come to rest after each arrival.

    It is enough even if windows change by steps of half a packet.  It is proportional to alpha^2:
    the number of round trips that the last of 20 sources needs is proportional to its window, and
    so to alpha.  The queueing delay in each round trip is proportional to alpha, too.
    """
    return 30.0 * alpha**2


@cache
def rates(n: int, alpha: float, every: float, step: float, rounded: bool) -> Floats:
    """Mean rates of ``n`` sources with alpha = beta, by the rule, pkt/s [seeds, sources].

    One source joins every ``every`` seconds, and the seeds move these times.  ``step`` is the
    change of a window in a round trip, packets; ``rounded``: the backlog is rounded, as in ns-2.
    """
    courses = (
        course(n, alpha, alpha, seed=seed, every=every, step=step, rounded=rounded)
        for seed in range(SEEDS)
    )
    return np.array([each.rates.mean(axis=0) for each in courses])
