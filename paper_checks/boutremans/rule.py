"""Rule (1) of ``boutremans`` as printed: once per round trip, without rounding and packets.

The paper simulated with ns and with "our own implementation of the congestion avoidance algorithm".
This module is such an implementation.  Each source measures an RTT, keeps the least one, and
changes its window by one packet or not at all.  ns-2 rounds Diff before it compares it with the
thresholds; this module does not.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from paper_checks.boutremans.scenes import CAPACITY
from paper_checks.runs import Floats

__all__ = ["SEEDS", "Course", "course"]

D = 0.2  # s, the propagation delay of all sources
EVERY = 2.0  # s, between arrivals
UNTIL, READ, STEP = 120.0, 90.0, 0.05  # s: the end, from where on it is read, and how often
FIRST = 2.0  # packets, the window that a source begins with
MIN_RTT = 0.01  # s, the least that a large random part leaves of an RTT
SEEDS = 5


@dataclass(frozen=True, eq=False)
class Course:
    """Windows and the queueing delay from ``READ`` to ``UNTIL``, every ``STEP``."""

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
    n: int, alpha: float, beta: float, noise: float = 0.0, known: bool = False, seed: int = 0
) -> Course:
    """``n`` sources, one of which joins every 2 s plus up to 0.1 s drawn by ``seed``.

    The queueing delay is that at which the rates cwnd/(d + Delta) add up to the capacity, so the
    queue reacts to the windows without delay.  ``noise``: standard deviation of the random part of
    each measured RTT, s.  ``known``: every source knows d.
    """
    rng = np.random.default_rng(seed)
    begin = EVERY * np.arange(n) + 0.1 * rng.random(n)
    events = [(float(t), i) for i, t in enumerate(begin)]
    heapq.heapify(events)
    W, least = [0.0] * n, [D if known else np.inf] * n
    total = 0.0
    windows, waits, at = [], [], READ
    while events:
        now, i = heapq.heappop(events)
        while at <= min(now, UNTIL):
            windows.append(list(W))
            waits.append(max(0.0, total / CAPACITY - D))
            at += STEP
        if now >= UNTIL:
            break
        RTT = D + max(0.0, total / CAPACITY - D)
        sample = max(RTT + noise * rng.standard_normal(), MIN_RTT)
        if not known:
            least[i] = min(least[i], sample)
        if W[i] == 0.0:  # its first packet waits behind those of the others
            moved = FIRST
        else:
            Diff = W[i] * (1 - least[i] / sample)
            moved = max(W[i] + (Diff < alpha) - (Diff > beta), 1.0)  # (1)
        total += moved - W[i]
        W[i] = moved
        heapq.heappush(events, (now + RTT, i))
    return Course(np.array(windows), np.array(waits))
