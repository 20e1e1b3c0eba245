"""What an ACK changes at the sender: which packets are in flight, and how many more it may send."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.laws import in_flight, window
from vegasmodel.engines.rounds.state import (
    RECOVERY,
    WITHOUT_TICKS,
    Parcel,
    Receiver,
    Sender,
    jit,
    rare,
)
from vegasmodel.engines.rounds.timer import update_mean
from vegasmodel.metrics import Floats


@jit
def usable_window(f: Sender, now: float) -> float:
    """How many packets the sender may send now: the window less the packets in flight, or 0."""
    if now >= f.stop:
        return 0.0
    out = f.pipe if f.phase == RECOVERY and f.scoreboard else in_flight(f)
    return max(window(f) - out, 0.0)


@jit
def sendable(f: Sender, packets: float) -> float:
    """``packets``, or the number of packets that the flow still has to send if that is less."""
    return max(min(packets, f.size - f.next), 0.0)


@rare
def add_hole(
    f: Sender | Receiver, holes: Floats, first: float, count: float, sent_at: float
) -> None:
    """Record that ``count`` packets are missing at the receiver, unless that is recorded already.

    A hole is a range of missing packets.  Its row in ``holes`` has six numbers: its first packet;
    the packet behind its last; when it was sent; when the packet before it was sent; whether Linux
    knows that it is lost; its first packet that has not been sent again.  ns-2's Vegas remembers
    when each packet was sent, so there each packet is a hole of its own.
    """
    if first < f.received:
        return
    f.received = first + count
    each = 1.0 if f.overdue_checks else count
    while count > 0.0:
        joins = not f.overdue_checks and f.holes > 0 and holes[f.holes - 1, 1] == first
        joins = joins and holes[f.holes - 1, 4] == 0.0
        if joins or f.holes == holes.shape[0]:
            holes[f.holes - 1, 1] = first + each
        else:
            holes[f.holes, 0], holes[f.holes, 1] = first, first + each
            holes[f.holes, 2], holes[f.holes, 3] = sent_at, f.received_at
            holes[f.holes, 4], holes[f.holes, 5] = 0.0, first
            f.holes += 1
        first, count = first + each, count - each


@jit
def fill_holes(
    f: Sender | Receiver, holes: Floats, first: float, count: float, sent_at: float
) -> float:
    """Packets arrive behind a missing one and fill holes; returns how many of them are new.

    A hole is a range of packets that are missing at the receiver.
    """
    new = max(first + count - max(f.received, first), 0.0)
    if new > 0.0:
        f.received_at = sent_at
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
            holes[kept, 0], holes[kept, 1] = low, high
            for column in range(2, holes.shape[1]):
                holes[kept, column] = holes[k, column]
            kept += 1
    f.holes = kept
    f.acked = holes[0, 0] if kept > 0 else f.received
    return new


@jit
def blocks(f: Sender | Receiver, holes: Floats) -> int:
    """Number of SACK blocks that an ACK carries, at most three (RFC 2018)."""
    beyond = f.holes
    if f.holes > 0 and holes[f.holes - 1, 1] >= f.received:
        beyond -= 1  # nothing was received beyond the last hole
    return min(beyond, 3)


@jit
def send(f: Sender, packets: float, spread: float) -> None:
    """Send ``packets`` new packets in this interval, of which ``spread`` leave evenly over it.

    The others are released by the interval's last ACK, and leave together when it arrives, at the
    end.
    """
    packets = sendable(f, packets)
    f.first = f.next
    f.spread = min(packets, spread) if spread > 1.0 else 0.0
    f.burst = packets - f.spread
    f.next += packets


@jit
def waits_first(f: Sender, acks: float) -> bool:
    """Whether the sender waits a random time before it sends what ``acks`` ACKs release.

    It waits if there is a single ACK (``wait.py``).  If several ACKs are treated as a group, the
    packets leave evenly instead.
    """
    return f.jitter > 0.0 and acks <= 1.0


@jit
def send_or_wait(f: Sender, packets: float, spread: float) -> None:
    """Send packets at once, or after the sender's random wait if there is one (``wait.py``)."""
    if not waits_first(f, spread):
        send(f, packets, spread)


@jit
def acknowledge(f: Sender, p: Parcel, packets: float, now: float, samples: float) -> float:
    """Process the ACKs of the next packets of a parcel; returns when the last of them arrives.

    A parcel is a group of packets that travel together.  ``samples`` is how many of the ``packets``
    packets were sent only once, so that their ACKs give RTT samples.
    """
    part = packets / p.count
    end = now + max(p.back - now, 0.0) * part
    share = p.rtt_sum * part
    f.rtt_last = p.rtt_sum / p.count
    f.latest = max(f.latest, p.sent_at)
    f.late = p.late
    if samples > 0.0:
        f.rtt_sum += share if samples == packets else share * samples / packets
        f.rtt_count += samples
        f.rtt_min = min(f.rtt_min, p.rtt_min)
        if f.overdue_checks or f.timestamps or (f.without & WITHOUT_TICKS) != 0:
            update_mean(f, f.rtt_last, samples)
        f.min_rtt = min(f.min_rtt, p.rtt_min)
        if math.isnan(f.known_base):
            f.base = min(f.base, p.rtt_min)
    f.rtt_area += share
    f.rtt_samples += packets
    f.acks += packets
    p.rtt_sum -= share
    p.first += packets
    p.count -= packets
    if p.count <= 1e-9:
        p.count = 0.0
    if p.marked:
        f.marked = 1
    return end


@jit
def portion(p: Parcel, now: float, step: float) -> float:
    """How many packets of a parcel to process in a step of about ``step`` seconds.

    A parcel is a group of packets that travel together, and these are the first to arrive.
    """
    span = p.back - now
    if span <= 1.5 * step:
        return p.count
    return min(max(np.floor(p.count * step / span + 0.5), 1.0), p.count)
