"""From step to step, to the end: who starts and stops, how long a step is, what it adds up to."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import Tally, jit
from vegasmodel.engines.fluid.sampled.drops import drop_at_random, overflow
from vegasmodel.engines.fluid.sampled.growth import grow
from vegasmodel.engines.fluid.sampled.queue import delay
from vegasmodel.engines.fluid.sampled.records import NONE, Records, Road
from vegasmodel.engines.fluid.sampled.round_trip import on_acks, sample_delay
from vegasmodel.metrics import Floats

STILL = 4.0  # rounds in a row without a decision that moves a window: then none will come


@jit
def admit(flows: Records, clock: Floats) -> float:
    """Start and stop flows that are due; the time of the next start or stop."""
    t, due = clock[0], np.inf
    for i in range(flows.size):
        active = flows[i].start <= t < flows[i].stop
        if active and not flows[i].on:
            flows[i].window = flows[i].flight = flows[i].first
            flows[i].slow = flows[i].slow_start != NONE
            flows[i].threshold, flows[i].even = np.inf, 1
            flows[i].over = clock[1] if flows[i].measured else flows[i].over
            flows[i].told, flows[i].part, flows[i].drift = clock[1], 0.0, 0.0
            flows[i].wide, flows[i].deep = flows[i].window, clock[1]
            flows[i].seen, flows[i].sent, flows[i].least, flows[i].still = 0.0, 0.0, np.inf, 0.0
            flows[i].lost, flows[i].hear, flows[i].hold, flows[i].asleep = 0.0, 0.0, 0.0, 0.0
            flows[i].since, flows[i].memory, flows[i].backoff = t, 0.0, 1.0
        elif flows[i].on and not active:
            flows[i].window = flows[i].flight = flows[i].lost = 0.0
        flows[i].on = active
        if flows[i].start > t:
            due = min(due, flows[i].start)
        elif flows[i].stop > t:
            due = min(due, flows[i].stop)
    return due


@jit
def rests(flows: Records, link: Road) -> bool:
    """Nothing will move until a flow starts or stops."""
    if link.red or link.loss > 0.0:
        return False
    for i in range(flows.size):
        if flows[i].on and (
            not flows[i].once or flows[i].still < STILL or flows[i].slow or flows[i].hear > 0.0
        ):
            return False
    return True


@jit
def step_length(flows: Records, clock: Floats, link: Road, fraction: float, until: float) -> float:
    """How long the next step is: a part of the shortest round trip; while all rest, to the end."""
    h: float = until - clock[0]
    if not rests(flows, link):
        for i in range(flows.size):
            if flows[i].on:
                h = min(h, fraction * (flows[i].rtt + clock[1]))
    return h


@jit
def march(
    flows: Records, clock: Floats, link: Road, end: float, fraction: float, smooth: bool,
    out: Tally, grid: Floats, record: Floats,
) -> None:  # fmt: skip
    """Move on to ``end``.  ``fraction`` is the step over the shortest round trip.

    ``smooth``: no whole packets, no delay of decisions; the law's drift at every instant.
    """
    k = np.searchsorted(grid, clock[0])
    due = admit(flows, clock)
    clock[1] = delay(flows, clock, link.capacity)
    while clock[0] < end:
        until = min(due, end)
        h = step_length(flows, clock, link, fraction, until)
        later = until if h == until - clock[0] else clock[0] + h
        while k < grid.size and grid[k] <= later:
            for i in range(flows.size):
                record[k, i] = flows[i].window if flows[i].on else 0.0
                record[k, flows.size + 1 + i] = flows[i].gone
            record[k, flows.size] = clock[1]
            k += 1
        arrivals = sample_delay(flows, clock, h)
        moved = grow(flows, clock, h, smooth)
        if moved and link.room < np.inf:
            overflow(flows, clock, link, smooth)
        s, clock[0] = clock[1], later
        if link.red or link.loss > 0.0:
            drop_at_random(flows, clock, link, arrivals)
        clock[1] = delay(flows, clock, link.capacity)
        out.queue[0] += 0.5 * h * link.capacity * (s + clock[1])
        out.queue[1] += h
        for i in range(flows.size):
            if flows[i].on:
                rate = (flows[i].flight - flows[i].lost) / (flows[i].rtt + clock[1])
                out.delivered[i] += 0.5 * h * (flows[i].rate + rate)
                out.window[i] += h * flows[i].flight
                out.active[i] += h
                on_acks(flows, clock, i, h / (flows[i].rtt + s), link.capacity, smooth, out)
        if later >= due:
            due = admit(flows, clock)
            clock[1] = delay(flows, clock, link.capacity)
