"""The sender between two events: which ACKs come back next, and what it sends upon them.

A flow's packets travel as parcels: stretches of a round, each so many packets spread evenly over
some time.  ``plan`` takes the next stretch of returning ACKs, up to where anything changes (the
window passes a whole packet, the round ends, a third duplicate arrives, a silence is over), moves
the window by the flow's law and says how many packets leave, and when.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import (
    acknowledge,
    add_hole,
    fresh,
    portion,
    room,
    send,
    send_or_wait,
)
from vegasmodel.engines.rounds.laws import (
    NEVER,
    acks_to_change,
    deflate,
    doubling,
    drift,
    echo,
    echoing,
    end_round,
    grow,
    in_flight,
    restart_when_idle,
    window,
)
from vegasmodel.engines.rounds.losses import duplicate, filled, retransmission_lost
from vegasmodel.engines.rounds.state import (
    DATA,
    HOLE_BY_HOLE,
    OPEN,
    RECOVERY,
    TIMER,
    WITHOUT_ROUNDS,
    Parcel,
    Sender,
    Table,
    around,
    jit,
)
from vegasmodel.engines.rounds.timer import restart_timer, watch
from vegasmodel.engines.rounds.wait import begin_wait, depart
from vegasmodel.metrics import Floats


@jit
def _new(f: Sender, p: Parcel, now: float, step: float) -> float:
    """ACKs of new data, in order."""
    untimed = max(f.resent, f.untimed)
    once = not f.overdue_checks or f.acked >= untimed
    if f.overdue_checks:
        deflate(f)
        f.rechecks = 0.0
        if f.second_packet_first and f.acked == 1.0:
            f.cwnd = max(f.cwnd, f.first_window)  # until now it was 1 (delay_growth_)
    if f.marked or p.marked:
        echo(f)
        f.marked = p.marked = 0
    acks = min(portion(p, now, step), acks_to_change(f))
    if echoing(f):
        acks = max(min(acks, f.recover - f.acked), 1.0)
    decides = f.rounds and f.acked >= f.round_end
    if decides:
        acks = 1.0
        if not f.decides_late:  # the kernel counts the sample of the ACK on which it decides
            end_round(f, now + max(p.back - now, 0.0) / p.count, in_flight(f))
    elif f.round_end > f.acked:
        acks = min(acks, f.round_end - f.acked)
    if not once:
        acks = min(acks, untimed - f.acked)
    alone = in_flight(f) <= 1.0
    end = acknowledge(f, p, acks, now, once)
    f.acked += acks
    f.delivered += acks
    f.received, f.received_at = f.acked, p.sent_at
    f.next = max(f.next, f.acked)
    f.dupacks = 0.0
    if not f.scoreboard:  # duplicates of what was sent twice may have swollen the window
        f.inflated = 0.0
        if f.recovery != HOLE_BY_HOLE or f.acked >= f.recover:
            f.phase = OPEN
    if decides and f.decides_late:
        end_round(f, end, in_flight(f))
    if (f.without & WITHOUT_ROUNDS) != 0 and f.overdue_checks:
        drift(f)
    swell = doubling(f)
    grow(f, acks)
    restart_timer(f, end)
    if alone:
        restart_when_idle(f)
    free = room(f, now)
    send_or_wait(f, free, free if swell and acks > 1.0 else acks)
    return end


@jit
def _pop(f: Sender, ring: Table[Parcel]) -> None:
    f.head = around(f.head + 1, ring)
    f.count -= 1


@jit
def _merge(f: Sender, ring: Table[Parcel], now: float, step: float) -> None:
    """Join short parcels of one round, so that a round has a bounded number of them."""
    while f.count > 1:
        p, after = ring[f.head], ring[around(f.head + 1, ring)]
        intact = p.lost == 0.0 and p.marked == 0 and after.first == p.first + p.count
        # of these ACKs every one counts
        each = f.holes > 0 and (f.overdue_checks or f.phase == RECOVERY)
        if not intact or each or after.back - now > step or after.first == f.round_end:
            return
        after.first = p.first
        after.count += p.count
        after.rtt_sum += p.rtt_sum
        if p.count > 0.0:
            after.rtt_min = min(after.rtt_min, p.rtt_min)
        _pop(f, ring)


@jit
def _armed(f: Sender) -> bool:
    """The timer runs: something is out, or a window of 0 lets nothing out."""
    return f.high > f.acked or (window(f) < 1.0 and f.next < f.size)


@jit
def _alone(f: Sender, holes: Floats, now: float) -> None:
    """No ACK will come: open the window, or wait for the timer."""
    due = f.deadline if _armed(f) else NEVER
    if f.wait_ends < due and (f.transit == 0 or f.wait_ends <= now):
        depart(f, holes, now)
        return
    if f.transit > 0:  # one will: parcels are on their way through other queues
        f.awaits_parcels, f.awaits_since = 1, now
        f.event, f.time = (
            (DATA, max(now, f.wait_ends)) if f.wait_ends < due else (TIMER, max(now, due))
        )
        return
    free = np.floor(room(f, now) + 1e-9)
    if fresh(f, free) >= 1.0:
        send(f, free, 0.0)
        f.time = now
    elif _armed(f):
        f.event, f.time = TIMER, max(now, f.deadline)
    else:
        f.time = NEVER


@jit
def plan(f: Sender, ring: Table[Parcel], holes: Floats, now: float, parts: int) -> None:
    """Set the flow's next stretch: its end ``time``, and what is sent until then."""
    step = min(f.rtt_last / parts, f.longest_stretch)
    f.time = now
    while True:
        f.event = DATA
        f.first, f.spread, f.burst, f.retransmit = f.next, 0.0, 0.0, -1.0
        _stretch(f, ring, holes, f.time, step)
        if f.jitter > 0.0 and f.event == DATA:
            begin_wait(f, holes, f.time)
        # nothing leaves while the sender waits: on to what comes next
        idle = f.event == DATA and f.spread == 0.0 and f.burst == 0.0 and f.retransmit < 0.0
        if not idle or f.wait_ends == NEVER or f.awaits_parcels:
            break
    watch(f)
    if f.overdue_checks and f.first < f.high:  # Vegas notes when it sends a missing packet again
        for k in range(f.holes):
            if f.first <= holes[k, 0] < f.first + f.spread + f.burst:
                holes[k, 2] = f.time


@jit
def _stretch(f: Sender, ring: Table[Parcel], holes: Floats, now: float, step: float) -> None:
    while f.count > 0:
        _merge(f, ring, now, step)
        p = ring[f.head]
        if p.count > 0.0:
            break
        if p.lost > 0.0:
            if f.phase == RECOVERY and f.rack:
                retransmission_lost(f, holes, p.first, p.lost)
            add_hole(f, holes, p.first, p.lost, p.sent_at)
            p.first += p.lost
            p.lost = 0.0
        if p.back <= now:
            _pop(f, ring)
            continue
        due = f.deadline if _armed(f) else NEVER
        if f.wait_ends < min(p.back, due):
            depart(f, holes, now)
            return
        if due < p.back:
            f.event, f.time = TIMER, max(now, due)
        else:
            f.time = p.back
            _pop(f, ring)
        return
    if f.count == 0:
        _alone(f, holes, now)
        return
    p = ring[f.head]
    first = now + max(p.back - now, 0.0) / p.count
    if f.wait_ends < min(first, f.deadline):
        depart(f, holes, now)
    elif f.deadline < first:
        f.event, f.time = TIMER, max(now, f.deadline)
    elif p.first < f.acked and f.scoreboard:  # it sees that nothing is new
        extra = min(p.count, f.acked - p.first)
        f.time = acknowledge(f, p, extra, now, False)
    elif p.first != f.acked:
        f.time = duplicate(f, p, holes, now, step)
    elif f.holes > 0:
        f.time = filled(f, p, holes, now, step)
    else:
        f.time = _new(f, p, now, step)
