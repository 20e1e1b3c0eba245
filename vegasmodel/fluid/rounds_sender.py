"""The sender between two events: which ACKs come back next, and what it sends upon them.

A flow's packets travel as parcels: stretches of a round, each so many packets spread evenly over
some time.  ``plan`` takes the next stretch of returning ACKs, up to where anything changes (the
window passes a whole packet, the round ends, a third duplicate arrives, a silence is over), moves
the window by the flow's law and says how many packets leave, and when.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.fluid.rounds_laws import (
    NEVER,
    acks_to_change,
    cut,
    doubling,
    echo,
    end_round,
    grow,
    overdue,
    reduction,
    scoreboard,
    smooth,
    threshold,
    time_round,
    window,
)
from vegasmodel.fluid.rounds_state import (
    DATA,
    LINUX,
    OPEN,
    RECOVERY,
    RENO,
    TAHOE,
    TIMER,
    VEGAS,
    Record,
    Records,
    jit,
)
from vegasmodel.metrics import Floats


@jit
def room(f: Record, now: float) -> float:
    """Packets that the window lets out at once."""
    if now >= f.stop:
        return 0.0
    if f.phase == RECOVERY and scoreboard(f):
        free = window(f) - f.pipe
    else:
        free = window(f) - (f.next - f.acked)
    return max(free, 0.0)


@jit
def fresh(f: Record, packets: float) -> float:
    """Of ``packets`` that may leave, those that the flow still has to send."""
    return max(min(packets, f.size - f.next), 0.0)


@jit
def add_hole(f: Record, holes: Floats, first: float, count: float, sent_at: float) -> None:
    """The receiver misses these; a retransmission lost again is missed already."""
    if first < f.received:
        return
    f.received = first + count
    if (f.holes > 0 and holes[f.holes - 1, 1] == first) or f.holes == holes.shape[0]:
        holes[f.holes - 1, 1] = first + count
    else:
        holes[f.holes, 0], holes[f.holes, 1] = first, first + count
        holes[f.holes, 2] = sent_at
        f.holes += 1


@jit
def fill(f: Record, holes: Floats, first: float, count: float) -> float:
    """Packets arrive out of order: fill later holes.  Returns how many were new."""
    new = max(first + count - max(f.received, first), 0.0)
    f.received = max(f.received, first + count)
    kept = 0
    for k in range(f.holes):
        low, high = holes[k, 0], holes[k, 1]
        new += max(min(high, first + count) - max(low, first), 0.0)
        if first <= low < first + count:
            low = min(first + count, high)
        elif low < first < high:
            high = first  # the rare middle: what follows counts as received
        if low < high:
            holes[kept, 0], holes[kept, 1], holes[kept, 2] = low, high, holes[k, 2]
            kept += 1
    f.holes = kept
    f.acked = holes[0, 0] if kept > 0 else f.received
    return new


@jit
def _leave(f: Record, packets: float, spread: float) -> None:
    """Send ``packets`` new ones, at most ``spread`` of them evenly and the rest at the end.

    What one ACK releases leaves at once, when that ACK arrives: at the end.
    """
    packets = fresh(f, packets)
    f.first = f.next
    f.spread = min(packets, spread) if spread > 1.0 else 0.0
    f.burst = packets - f.spread
    f.next += packets


@jit
def _take(f: Record, p: Record, acks: float, now: float, sample: bool) -> float:
    """Take ``acks`` ACKs off the parcel; returns when the last of them arrives.

    ``sample``: they acknowledge something new, so Vegas times them.
    """
    part = acks / p.count
    end = now + max(p.back - now, 0.0) * part
    share = p.rtt_sum * part
    f.rtt_last = p.rtt_sum / p.count
    if sample:
        f.rtt_sum += share
        f.rtt_count += acks
        f.rtt_min = min(f.rtt_min, p.rtt_min)
        if f.law == VEGAS:
            smooth(f, f.rtt_last, acks)
        if math.isnan(f.known_base):
            f.base = min(f.base, p.rtt_min)
    f.rtt_area += share
    f.rtt_samples += acks
    f.acks += acks
    p.rtt_sum -= share
    p.first += acks
    p.count -= acks
    if p.count <= 1e-9:
        p.count = 0.0
    if p.marked:
        f.marked = 1
    return end


@jit
def _new(f: Record, p: Record, now: float, step: float) -> float:
    """ACKs of new data, in order."""
    decides = f.law == VEGAS and f.acked >= f.round_end
    if decides and f.variant != LINUX:
        end_round(f, now, f.next - f.acked)
    if f.marked:
        echo(f)
        f.marked = 0
    acks = min(_slice(p, now, step), acks_to_change(f))
    if f.round_end > f.acked:
        acks = min(acks, f.round_end - f.acked)
    elif decides and f.variant == LINUX:
        acks = 1.0
    end = _take(f, p, acks, now, True)
    f.acked += acks
    f.delivered += acks
    f.received = f.acked
    f.next = max(f.next, f.acked)
    f.dups = 0.0
    if decides and f.variant == LINUX:
        # the kernel counts the sample of the ACK on which it decides, ns-2 does not
        end_round(f, end, f.next - f.acked)
    swell = doubling(f)
    grow(f, acks)
    time_round(f, end)
    free = room(f, now)
    _leave(f, free, free if swell and acks > 1.0 else acks)
    return end


@jit
def _slice(p: Record, now: float, step: float) -> float:
    """A parcel that lasts longer than ``step`` is cut into shorter ones of whole packets."""
    span = p.back - now
    if span <= 1.5 * step:
        return p.count
    return min(max(np.floor(p.count * step / span + 0.5), 1.0), p.count)


@jit
def _allowed(f: Record, acks: float, now: float) -> float:
    """What a sender that knows its holes may send in recovery upon ``acks``."""
    if f.variant != LINUX or now >= f.stop:
        return room(f, now)
    return reduction(f, acks)


@jit
def _mend(f: Record, holes: Floats, free: float) -> None:
    """SACK in recovery: holes first, then new data."""
    free = np.floor(free + 1e-9)
    f.mend = max(f.mend, f.acked)
    for k in range(f.holes):
        if holes[k, 1] > f.mend and holes[k, 0] < f.recover and free > 0.0:
            f.first = max(holes[k, 0], f.mend)
            f.spread = min(free, holes[k, 1] - f.first)
            f.mend = f.first + f.spread
            f.pipe += f.spread
            f.released += f.spread
            return
    before = f.next
    _leave(f, free, free)
    f.pipe += f.next - before
    f.released += f.next - before


@jit
def _again(f: Record, end: float) -> None:
    """Fast retransmit of the first hole at ``end``; restarts the timer, times nothing sent."""
    f.again = f.acked
    f.deadline = end + f.backoff * f.rto
    f.timed, f.timed_at = f.high, -1.0


@jit
def _duplicate(f: Record, p: Record, holes: Floats, now: float, step: float) -> float:
    """ACKs of data beyond a hole."""
    acks, enough = _slice(p, now, step), threshold(f)
    if f.phase == OPEN and f.dups < enough:
        acks = 1.0 if f.law == VEGAS else min(acks, enough - f.dups)
    elif f.phase == RECOVERY and f.variant == LINUX:
        pass
    elif f.phase == RECOVERY and scoreboard(f):
        quiet = f.pipe - window(f)
        acks = min(acks, quiet) if quiet >= 1.0 else acks
    else:
        quiet = f.next - f.acked - window(f)
        acks = min(acks, quiet) if quiet >= 1.0 else acks
    end = now + max(p.back - now, 0.0) * acks / p.count
    if f.deadline < end:
        f.event = TIMER
        return max(now, f.deadline)
    first = p.first
    _take(f, p, acks, now, scoreboard(f))
    f.delivered += fill(f, holes, first, acks)
    f.dups += acks
    if f.phase == OPEN and f.dups < enough and overdue(f, end - holes[0, 2]):
        f.dups = enough
    if f.phase == RECOVERY:
        if scoreboard(f):
            f.pipe -= acks
            _mend(f, holes, _allowed(f, acks, now))
            return end
        f.inflated += acks
    elif f.dups == enough:
        if cut(f):
            _again(f, end)
            return end
        if f.law == TAHOE and f.next == f.acked:
            _leave(f, window(f), 0.0)
            f.deadline = end + f.backoff * f.rto
            return end
    elif f.dups > enough and f.inflated > 0.0:
        f.inflated += acks
    if f.dups >= enough:
        _leave(f, room(f, now), acks)
    return end


@jit
def _filled(f: Record, p: Record, holes: Floats, now: float, step: float) -> float:
    """The first hole fills: the ACK jumps to the next one, or to everything received."""
    ns2_vegas = f.law == VEGAS and f.variant != LINUX
    acks = min(_slice(p, now, step), holes[0, 1] - f.acked)
    if f.phase == OPEN:
        acks = min(acks, acks_to_change(f))
    if ns2_vegas or (f.phase == RECOVERY and not scoreboard(f)):
        acks = 1.0
    end = now + max(p.back - now, 0.0) * acks / p.count
    first, sent_at = p.first, holes[0, 2]
    _take(f, p, acks, now, f.variant == LINUX)
    f.delivered += fill(f, holes, first, acks)
    f.next = max(f.next, f.acked)
    f.deadline = end + f.backoff * f.rto
    if ns2_vegas:
        if f.acked > f.round_end:
            end_round(f, end, f.next - f.acked + 1.0)
        if f.acked > first + acks:  # the ACK speaks for a packet that was sent once: a sample
            f.rtt_sum += f.rtt_last if f.phase == RECOVERY else end - sent_at
            f.rtt_count += 1.0
    stays = f.phase == RECOVERY and f.acked < f.recover and f.holes > 0
    stays = stays and (f.law != RENO or scoreboard(f))
    if stays and _partial(f, holes, now, end, acks):
        return end
    counts = f.phase == OPEN or not scoreboard(f)
    if f.phase == RECOVERY and f.law == VEGAS and f.variant == LINUX:
        f.round_end, f.round_start = f.next, end  # begins a new cycle after the loss
        f.rtt_count = 0.0
    f.phase, f.inflated, f.dups = OPEN, 0.0, 0.0
    swell = doubling(f)
    if counts:
        grow(f, acks)
    free = room(f, now)
    _leave(f, free, free if swell and acks > 1.0 else acks)
    return end


@jit
def _partial(f: Record, holes: Floats, now: float, end: float, acks: float) -> bool:
    """A partial ACK in recovery: more is missing.  False: the sender does not see that."""
    if scoreboard(f):
        f.pipe -= 2.0 * acks
        _mend(f, holes, _allowed(f, acks, now))
        return True
    if f.law == VEGAS:  # looks twice for a packet that is out for too long
        f.worried -= 1.0
        if f.worried < 0.0 or not overdue(f, end - holes[0, 2]):
            return False
    _again(f, end)
    f.inflated = 0.0
    _leave(f, min(room(f, now), 2.0), 0.0)
    return True


@jit
def _pop(f: Record, ring: Records) -> None:
    f.head = (f.head + 1) % ring.shape[0]
    f.count -= 1


@jit
def _merge(f: Record, ring: Records, now: float, step: float) -> None:
    """Join short parcels of one round, so that a round has a bounded number of them."""
    while f.count > 1:
        p, after = ring[f.head], ring[(f.head + 1) % ring.shape[0]]
        whole = p.lost == 0.0 and p.marked == 0 and after.first == p.first + p.count
        if not whole or after.back - now > step or after.first == f.round_end or f.holes > 0:
            return
        after.first = p.first
        after.count += p.count
        after.rtt_sum += p.rtt_sum
        if p.count > 0.0:
            after.rtt_min = min(after.rtt_min, p.rtt_min)
        _pop(f, ring)


@jit
def _alone(f: Record, now: float) -> None:
    """No ACK will come: open the window, or wait for the timer."""
    if f.transit > 0:  # one will: parcels are on their way through other queues
        f.asleep, f.slept, f.event = 1, now, TIMER
        f.time = max(now, f.deadline) if f.holes > 0 else NEVER
        return
    free = np.floor(room(f, now) + 1e-9)
    if fresh(f, free) >= 1.0:
        _leave(f, free, 0.0)
        f.time = now
    elif f.high > f.acked:
        f.event, f.time = TIMER, max(now, f.deadline)
    else:
        f.time = NEVER


@jit
def plan(f: Record, ring: Records, holes: Floats, now: float, parts: int) -> None:
    """Set the flow's next stretch: its end ``time``, and what is sent until then."""
    f.event, f.since = DATA, now
    f.first, f.spread, f.burst, f.again = f.next, 0.0, 0.0, -1.0
    step = min(f.rtt_last / parts, f.longest)
    while f.count > 0:
        _merge(f, ring, now, step)
        p = ring[f.head]
        if p.count > 0.0:
            break
        if p.lost > 0.0:
            add_hole(f, holes, p.first, p.lost, p.sent_at)
            p.first += p.lost
            p.lost = 0.0
        if p.back <= now:
            _pop(f, ring)
            continue
        if f.holes > 0 and f.deadline < p.back:
            f.event, f.time = TIMER, max(now, f.deadline)
        else:
            f.time = p.back
            _pop(f, ring)
        return
    if f.count == 0:
        _alone(f, now)
        return
    p = ring[f.head]
    if p.first < f.acked:  # the receiver had it already: nothing changes
        extra = min(p.count, f.acked - p.first)
        f.time = _take(f, p, extra, now, False)
    elif p.first > f.acked:
        f.time = _duplicate(f, p, holes, now, step)
    elif f.holes > 0:
        f.time = _filled(f, p, holes, now, step)
    else:
        f.time = _new(f, p, now, step)
