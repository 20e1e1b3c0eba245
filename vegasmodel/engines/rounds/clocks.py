"""Finds how far the clock of each queue lags behind the clock of the simulation.

``travel.py`` explains why each queue has a clock of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats

BISECTIONS = 40  # halvings of the range that contains S (``clocks``)


def clocks(
    links: NDArray[np.void], hops: NDArray[np.void], first: NDArray[np.int64], step: float
) -> tuple[float, Floats]:
    """The greatest length of an interval of arrivals, and the lag of each queue, both in seconds.

    The simulator handles packets that arrive evenly over an interval as one event, at the
    interval's end. Only then does it know which of them are lost. But the first packet may reach
    the next queue before that. So the next queue must be simulated later, with a lag behind the
    simulation's clock.

    Let the interval last S seconds, and let the next queue be d seconds away. Then the lag must
    grow by at least S - d from one queue to the next. The queues of a flow form a cycle, because
    ACKs return to the sender. So lags that meet all these conditions exist only if S is at most the
    mean of d over each cycle of queues.

    The function finds the largest such S. It returns S/1.5 as the greatest length, because an
    interval may last 1.5 times as long as intended (``acks.portion``). If ``step``, the desired
    length, is shorter, it returns ``step``. With a single queue the length is not limited, and the
    lag is 0.
    """
    if len(links) == 1:
        return math.inf, np.zeros(1)
    # the queue that follows that of each hop; after a flow's last hop, its first one
    target = np.roll(hops["link"], -1)
    ends = np.append(first[1:], len(hops)) - 1
    target[ends] = hops["link"][first]
    # the classes of a Rate-Delay link share a clock
    clock = np.arange(len(links))
    paired = links["partner"] >= 0
    clock[paired] = np.minimum(clock[paired], links["partner"][paired])
    source, target_clock = clock[hops["link"]], clock[target]
    shifts = _shifts(source, target_clock, hops["to_next"], 1.5 * step, len(links))
    if shifts is not None:  # the desired length is short enough
        return step, shifts[clock]
    # search by bisection
    low, high = 0.0, 1.5 * step
    best = np.zeros(len(links))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        shifts = _shifts(source, target_clock, hops["to_next"], middle, len(links))
        if shifts is None:
            high = middle
        else:
            low, best = middle, shifts
    return low / 1.5, best[clock]


def _shifts(
    source: NDArray[np.int64], target: NDArray[np.int64], gaps: Floats, span: float, n: int
) -> Floats | None:
    """The least time by which each of ``n`` queues must lag behind the simulation's clock, seconds.

    From each queue in ``source`` to the queue that follows it, in ``target``, the lag must grow by
    at least ``span`` - ``gaps``. Here ``span`` is the length of an interval, and ``gaps`` are the
    delays between the queues, both in seconds (S and d in ``clocks``, which gives the reason). The
    method is the Bellman-Ford algorithm. Returns None if no lags meet these conditions.
    """
    shift = np.zeros(n)
    for _ in range(n + 1):
        before = shift.copy()
        np.maximum.at(shift, target, shift[source] + (span - gaps))
        if np.array_equal(before, shift):
            return shift
    return None
