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
from vegasmodel.fluid.rounds_queue import advance, burst, chance, overflow, waiting
from vegasmodel.fluid.rounds_sender import plan
from vegasmodel.fluid.rounds_state import CONNECTED, DATA, START, TIMER, Record, Records, jit
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
    p.rtt_sum, p.rtt_min, p.marked, p.sent_at = rtt_sum, rtt_min, marked, f.time
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
    lost, picked = chance(link, f.spread, f.since_queue)
    lost = max(lost, f.owes)
    if not link.ecn:
        lost, picked = lost + picked, 0.0
    if lost > 0.0:
        _drop(link, lost)
    lost += overflow(link, f.spread - lost)
    kept = f.spread - lost
    f.sent += f.spread
    f.lost += lost
    before, after = waiting(link, f.since_queue), waiting(link, link.queue)
    rtt_sum = kept * (f.rtt + 0.5 * (before + after))
    least = f.rtt + min(before, after)
    back = f.time + f.rtt + after
    return _push(f, ring, back, f.first, kept, lost, rtt_sum, least, int(picked > 0.0))


@jit
def _at_once(f: Record, ring: Records, link: Record, first: float, packets: float) -> bool:
    """Packets sent back to back at the end of the stretch: each finds those before it."""
    lost, picked = chance(link, packets, link.queue)
    if packets >= 1.0:
        lost = max(lost, f.owes)
    if not link.ecn:
        lost, picked = lost + picked, 0.0
    kept = burst(link, packets - lost)
    lost = packets - kept
    f.sent += packets
    f.lost += lost
    link.arrived += packets
    link.lost += lost
    mark, fine = int(picked > 0.0), True
    least = f.rtt + waiting(link, link.queue + 1.0)
    one = min(kept, 1.0)
    if kept > 0.0:
        link.queue += one
        fine = _push(f, ring, f.time + least, first, one, 0.0, one * least, least, mark)
    if packets > 1.0 or lost > 0.0:
        more = kept - one
        link.queue += more
        second = least + min(more, 1.0) / link.capacity
        last = f.rtt + waiting(link, link.queue)
        rtt_sum = 0.5 * more * (second + last)
        back, first = f.time + last, first + one
        fine = fine and _push(f, ring, back, first, more, lost, rtt_sum, second, mark)
    return fine


@jit
def finish(f: Record, ring: Records, link: Record) -> bool:
    """The flow's stretch is over: its packets are in the queue, or lost.  False: failed."""
    link.rate -= f.rate
    f.rate = 0.0
    fine = True
    f.retransmits += min(max(f.high - f.first, 0.0), f.spread + f.burst)
    f.high = max(f.high, f.first + f.spread + f.burst)
    if f.spread > 0.0:
        fine = _evenly(f, ring, link)
    elif f.again < 0.0 and f.burst == 0.0:
        back = f.time + f.rtt + waiting(link, link.queue)
        fine = _push(f, ring, back, f.first, 0.0, 0.0, 0.0, NEVER, 0)
    if f.again >= 0.0:
        f.retransmits += 1.0
        fine = _at_once(f, ring, link, f.again, 1.0) and fine
    if f.burst > 0.0:
        fine = _at_once(f, ring, link, f.first + f.spread, f.burst) and fine
    return fine


@jit
def _share_loss(flows: Records, who: int, before: float) -> None:
    """Synchronised losses (``devendictis``, hypothesis 5): all lose when one does."""
    if flows[who].lost == before:
        return
    owed = flows[who].owes > 0.0
    flows[who].owes = 0.0
    for i in range(flows.shape[0]):
        if i != who and not owed and flows[i].acked > flows[i].recover:
            flows[i].owes = 1.0


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
        active = f.high > 0.0 and link.now <= f.stop
        out_flow[k, i, 0] = window(f) if active else 0.0
        out_flow[k, i, 1] = f.sent
        out_flow[k, i, 2] = f.rtt + waiting(link, link.queue)
        out_flow[k, i, 3] = f.delivered
        out_flow[k, i, 4] = f.base
    out_queue[k] = max(link.queue - 1.0, 0.0)


@jit
def _handshake(f: Record, link: Record) -> float:
    """The SYN crosses the link as a small packet; seconds until the flow may send."""
    wait = link.queue / link.capacity
    link.queue += f.syn
    link.arrived += f.syn
    return f.rtt + wait - (1.0 - f.syn) / link.capacity


@jit
def _restart(f: Record, link: Record, now: float) -> None:
    """The first window, or what the timer sends: all at once, from ``next`` on."""
    if f.event == TIMER:
        expire(f)
    elif f.event == CONNECTED:  # the handshake's last ACK goes ahead of the data
        link.queue += f.syn
        link.arrived += f.syn
    f.event, f.first, f.spread, f.again = DATA, f.next, 0.0, -1.0
    f.burst = min(np.floor(window(f)), f.size - f.next)
    f.deadline = now + f.backoff * f.rto
    f.next += f.burst


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
    synchronised: bool,
) -> tuple[int, int]:
    """Run to ``end``; sample at ``times``.  Returns a status and the number of events."""
    np.random.seed(seed)
    link.next_urge = 1.0 + np.random.random()
    link.next_hazard = np.random.exponential()
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
            before = f.lost
            if not finish(f, rings[who], link):
                return FULL_RING, events
            if synchronised:
                _share_loss(flows, who, before)
            plan(f, rings[who], holes[who], now, parts)
        elif f.event == START and f.syn > 0.0:
            f.time = now + _handshake(f, link)
            f.event = CONNECTED
            continue
        else:
            _restart(f, link, now)
        f.since_queue = link.queue
        span = f.time - now
        if f.spread <= 1.0 or span < 1e-12:  # a packet is an instant, not a flow
            f.burst += f.spread
            f.spread = 0.0
        else:
            f.rate = f.spread / span
            link.rate += f.rate
        events += 1
        if events > 2_000_000_000:
            return TOO_MANY_EVENTS, events
