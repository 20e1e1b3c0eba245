"""The rounds engine: flows whose parcels meet in one first-in-first-out queue, event by event.

The FIFO's delay makes it exact between events: the k-th packet of a flow that finds the queue q
returns ``rtt + q/c`` later, and what its ACK releases arrives then.  Between two events of a flow
its packets arrive at a constant rate; at most a few tens of events make a round trip, whatever the
number of packets in it.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.fluid.rounds_laws import NEVER, expire, window
from vegasmodel.fluid.rounds_queue import advance, burst, chance, overflow
from vegasmodel.fluid.rounds_sender import plan
from vegasmodel.fluid.rounds_state import DATA, TIMER, Record, Records, jit
from vegasmodel.metrics import Floats

FINE, FULL_RING, TOO_MANY_EVENTS = 0, 1, 2  # status


@jit
def _push(
    f: Record,
    ring: Records,
    back: float,
    first: float,
    count: float,
    lost: float,
    rtt_sum: float,
    rtt_min: float,
    marked: int,
) -> bool:
    """A parcel sets out.  False: no room for it."""
    size = ring.shape[0]
    if f.count > 0:
        last = ring[(f.head + f.count - 1) % size]
        if count == 0.0 and lost == 0.0 and last.count == 0.0 and last.lost == 0.0:
            last.back = back  # one silence after another
            return True
    if f.count == size:
        return False
    p = ring[(f.head + f.count) % size]
    p.back, p.first, p.count, p.lost = back, first, count, lost
    p.rtt_sum, p.rtt_min, p.marked = rtt_sum, rtt_min, marked
    f.count += 1
    return True


@jit
def _drop(link: Record, packets: float) -> None:
    """Packets counted as arrived did not stay."""
    kept = max(link.queue - packets, 0.0)
    link.served -= packets - (link.queue - kept)
    link.queue = kept
    link.lost += packets


@jit
def _evenly(f: Record, ring: Records, link: Record) -> bool:
    """The stretch's evenly sent packets have arrived: who was lost, and when the rest return."""
    back, delay = f.rtt + link.queue / link.capacity, 0.5 * (f.since_queue + link.queue)
    lost, picked = chance(link, f.spread)
    if not link.ecn:
        lost, picked = lost + picked, 0.0
    if lost > 0.0:
        _drop(link, lost)
    over = overflow(link, f.spread - lost)
    lost += over
    kept = f.spread - lost
    f.sent += f.spread
    f.lost += lost
    least = f.rtt + min(f.since_queue, link.queue) / link.capacity
    back = f.rtt + link.queue / link.capacity
    rtt_sum = kept * (f.rtt + delay / link.capacity)
    return _push(f, ring, f.time + back, f.first, kept, lost, rtt_sum, least, int(picked > 0.0))


@jit
def _at_once(
    f: Record, ring: Records, link: Record, first: float, packets: float, offset: float
) -> bool:
    """Packets sent back to back at the end of the stretch: a new one finds those before it."""
    lost, picked = chance(link, packets)
    if not link.ecn:
        lost, picked = lost + picked, 0.0
    kept = burst(link, packets - lost, offset)
    lost = packets - kept
    found = max(link.queue + 0.5 * (kept + 1.0) - offset, 0.0)
    least = f.rtt + max(link.queue + 1.0 - offset, 0.0) / link.capacity
    link.arrived += packets
    link.lost += lost
    link.queue += kept
    f.sent += packets
    f.lost += lost
    back = f.time + f.rtt + max(link.queue - offset, 0.0) / link.capacity
    rtt_sum = kept * (f.rtt + found / link.capacity)
    return _push(f, ring, back, first, kept, lost, rtt_sum, least, int(picked > 0.0))


@jit
def finish(f: Record, ring: Records, link: Record) -> bool:
    """The flow's stretch is over: its packets are in the queue, or lost.  False: failed."""
    link.rate -= f.rate
    f.rate = 0.0
    fine = True
    offset = 0.0
    f.retransmits += min(max(f.high - f.first, 0.0), f.spread + f.burst)
    f.high = max(f.high, f.first + f.spread + f.burst)
    if f.spread > 0.0:
        fine = _evenly(f, ring, link)
    else:
        back = f.time + f.rtt + link.queue / link.capacity
        fine = _push(f, ring, back, f.first, 0.0, 0.0, 0.0, NEVER, 0)
        offset = max(1.0 - link.queue, 0.0)  # what finds the link idle does not wait for itself
    if f.again >= 0.0:
        f.retransmits += 1.0
        fine = _at_once(f, ring, link, f.again, 1.0, offset) and fine
    if f.burst > 0.0:
        first = f.first + f.spread
        fine = _at_once(f, ring, link, first, f.burst, offset) and fine
    return fine


@jit
def _mark(flows: Records, link: Record) -> None:
    """Warm-up is over: totals from here on count."""
    for i in range(flows.shape[0]):
        f = flows[i]
        f.mark_delivered, f.mark_sent, f.mark_lost = f.delivered, f.sent, f.lost
        f.mark_retransmits, f.mark_acks = f.retransmits, f.acks
        f.rtt_area, f.rtt_samples = 0.0, 0.0
    link.mark_area, link.mark_served, link.mark_now = link.area, link.served, link.now


@jit
def _record(flows: Records, link: Record, out_flow: Floats, out_queue: Floats, k: int) -> None:
    for i in range(flows.shape[0]):
        f = flows[i]
        active = f.high > 0.0 and link.now < f.stop
        out_flow[k, i, 0] = window(f) if active else 0.0
        out_flow[k, i, 1] = f.rate
        out_flow[k, i, 2] = f.rtt + link.queue / link.capacity
        out_flow[k, i, 3] = f.delivered
        out_flow[k, i, 4] = f.base
    out_queue[k] = link.queue


@jit
def march(
    flows: Records,
    rings: Records,
    holes: Floats,
    link: Record,
    times: Floats,
    out_flow: Floats,
    out_queue: Floats,
    warmup: float,
    end: float,
    parts: int,
    seed: int,
) -> tuple[int, int]:
    """Run to ``end``; sample at ``times``.  Returns a status and the number of events."""
    np.random.seed(seed)  # noqa: NPY002
    link.next_urge = 1.0 + np.random.random()  # noqa: NPY002
    link.next_hazard = np.random.exponential()  # noqa: NPY002
    n = flows.shape[0]
    k, marked, events = 0, False, 0
    for i in range(n):
        flows[i].time = flows[i].start
    while True:
        who, now = 0, flows[0].time
        for i in range(1, n):
            if flows[i].time < now:
                who, now = i, flows[i].time
        while k < times.shape[0] and times[k] <= min(now, end):
            advance(link, times[k])
            _record(flows, link, out_flow, out_queue, k)
            k += 1
        if not marked and now >= warmup:
            advance(link, warmup)
            _mark(flows, link)
            marked = True
        if now > end:
            advance(link, end)
            return FINE, events
        advance(link, now)
        f = flows[who]
        if f.event == DATA:
            if not finish(f, rings[who], link):
                return FULL_RING, events
            plan(f, rings[who], holes[who], now, parts)
        else:
            if f.event == TIMER:
                expire(f)
            f.event, f.first, f.spread, f.again = DATA, f.next, 0.0, -1.0
            f.burst = min(np.floor(window(f)), f.size - f.next)
            f.deadline = now + f.backoff * f.rto
            f.next += f.burst
        f.since_queue = link.queue
        span = f.time - now
        if span > 1e-12:
            f.rate = f.spread / span
            link.rate += f.rate
        elif f.spread > 0.0:
            f.burst += f.spread
            f.spread = 0.0
        events += 1
        if events > 2_000_000_000:
            return TOO_MANY_EVENTS, events
