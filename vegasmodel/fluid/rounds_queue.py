"""How the link delays and drops: a fluid queue between events, whole packets at events.

``queue`` is the work in the system, in packets, the one in transmission included: a packet that
has just arrived waits for ``queue - 1`` others, and drop-tail takes it while that is at most
``buffer``.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.fluid.rounds_state import RED, Record, jit

ROUNDING = 1e-6  # packets


@jit
def advance(link: Record, now: float) -> None:
    """Serve until ``now``: dq/dt = sum of rates - c, and not below 0."""
    span = now - link.now
    if span <= 0.0:
        return
    slope = link.rate - link.capacity
    before = link.queue
    after = before + slope * span
    if after < 0.0:
        link.idle += after / slope  # since the link fell idle
        after = 0.0
        area = before * before / (-2.0 * slope) if slope < 0.0 else 0.0
    else:
        area = 0.5 * (before + after) * span
    full = link.buffer + 1.0
    if after > full:
        link.excess += after - full
        area -= 0.5 * (after - full) ** 2 / slope
        after = full
        link.served += link.capacity * span
    else:
        link.served += link.rate * span + before - after
    link.arrived += link.rate * span
    link.queue = after
    link.area += area
    link.now = now


@jit
def _early(link: Record) -> float:
    """RED's drop probability p_b of the average queue."""
    low, high, top = link.min_threshold, link.max_threshold, link.max_probability
    if link.average < low:
        return 0.0
    if link.average < high:
        return top * (link.average - low) / (high - low)
    if link.gentle and link.average < 2.0 * high:
        return top + (1.0 - top) * (link.average - high) / high
    return 1.0


@jit
def _observe(link: Record, packets: float, seen: float) -> None:
    """RED's moving average: one step per arrival, and one of 0 per packet an idle link misses."""
    missed = np.floor(link.capacity * link.idle)
    link.idle = 0.0
    link.average *= (1.0 - link.weight) ** missed
    link.average += (1.0 - (1.0 - link.weight) ** packets) * (seen - link.average)


@jit
def chance(link: Record, packets: float, before: float) -> tuple[float, float]:
    """How many of ``packets`` arrivals are lost by chance (random loss), and picked by RED.

    ``before``: work that the first of them found.
    """
    lost, picked = 0.0, 0.0
    if link.loss > 0.0:
        link.hazard += packets * -math.log1p(-min(link.loss, 1.0 - 1e-12))
        while link.hazard >= link.next_hazard and lost < packets:
            lost += 1.0
            link.hazard -= link.next_hazard
            link.next_hazard = np.random.exponential()
        if lost >= packets:
            link.hazard = 0.0
    if link.discipline == RED:
        # it looks at the packets that wait, without the one in transmission
        single = np.ceil(before - ROUNDING) - 1.0
        seen = max(single if packets <= 1.0 else 0.5 * (before + link.queue) - 1.5, 0.0)
        _observe(link, packets, seen)
        p = _early(link) if seen > 1.0 else 0.0
        if p == 0.0:
            link.urge = 0.0
        elif p >= 1.0:
            picked = packets
        else:  # ns-2 waits for 1/p packets, then the gap is uniform up to 2/p
            link.urge += p * packets
            if link.urge >= link.next_urge:
                picked = 1.0
                link.urge = 0.0
                link.next_urge = 1.0 + np.random.random()
    return lost, min(picked, packets - lost)


@jit
def waiting(link: Record, queue: float) -> float:
    """Seconds that the last of ``queue`` packets waits."""
    return max(queue - 1.0, 0.0) / link.capacity


@jit
def overflow(link: Record, packets: float) -> float:
    """Of ``packets`` that arrived evenly until now, those that found the buffer full: they go."""
    total = link.queue + link.excess - (link.buffer + 1.0)
    if total <= ROUNDING:
        return 0.0
    lost = min(np.ceil(total - ROUNDING), packets)
    link.queue = link.buffer + 1.0 + min(total - lost, 0.0)
    link.excess = max(total - lost, 0.0)
    link.lost += lost
    return lost


@jit
def burst(link: Record, packets: float) -> float:
    """Of ``packets`` that arrive at once, those that find room: the j-th finds q + j - 1."""
    room = np.floor(link.buffer + 1.0 - link.queue + ROUNDING)
    return min(max(room, 0.0), packets)
