"""Counts a sender's packets at each ACK, for example those in flight and those that it may send.

It also records which packets the receiver misses. A hole is a range of consecutive missing packets.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math

import numpy as np

from vegasmodel.engines.rounds.laws import has_pipe, in_cwr, outstanding, window
from vegasmodel.engines.rounds.state import (
    AFTER,
    BEFORE_AT,
    COLUMNS,
    FIRST,
    FORGOTTEN,
    KNOWN_LOST,
    LOST_AGAIN,
    NOT_RESENT,
    OPEN,
    SENT_AT,
    Parcel,
    Sender,
    apart,
    jit,
    rare,
)
from vegasmodel.engines.rounds.timer import begin_mean, keeps_mean, update_mean
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats

SACK_BLOCKS = 3  # greatest number in an ACK: the limit with timestamps (RFC 2018)


@jit
def usable_window(f: Sender, now: float) -> float:
    """How many packets the sender may send now: the window less the packets in flight, at least 0.

    After a cut of its window, ns-2's CUBIC (``halves_rate``) may send a packet even if the window
    is full. It may do so while fewer packets than ``flight_limit`` are in flight. ``limit_flight``
    explains this limit. The result is 0 from the flow's stop time on.
    """
    if now >= f.stop:
        return 0.0
    free = max(window(f) - outstanding(f), 0.0)
    return max(free, 1.0) if f.halves_rate and f.flight_limit > outstanding(f) else free


@jit
def whole_usable(f: Sender, now: float) -> float:
    """How many whole packets the sender may send now."""
    return np.floor(usable_window(f, now) + 1e-9)  # a rounding error must not cost a packet


@jit
def limit_flight(f: Sender) -> None:
    """At an ACK, lower the limit on packets in flight that ns-2's CUBIC has after a cut.

    The limit holds from a cut of the window to the end of the recovery. At the cut it is the window
    before the cut. At an ACK it falls to one packet more than are in flight at that time. When the
    sender sends packets, it falls to the number of packets in flight before this sending
    (``note_flight``). The effect is that the sender sends a packet at every second ACK, until the
    packets in flight fit into the window. In tcp-linux.cc the limit is ``next_pkts_in_flight_``
    (send_much). Outside a recovery ``flight_limit`` is 0: the window alone decides.

    During the sender's random wait before it sends (``overhead_`` in ns-2), ACKs do not change the
    limit. The end of the wait lowers it (``wait.end_wait``).
    """
    if f.phase == OPEN and not in_cwr(f):
        f.flight_limit = 0.0
    elif f.wait_ends == NEVER:  # no wait is in progress
        f.flight_limit = min(f.flight_limit, outstanding(f) + 1.0)


@jit
def note_flight(f: Sender, before: float) -> None:
    """After ns-2's CUBIC has sent packets, lower its limit on packets in flight (``flight_limit``).

    ``before`` is the number of packets that were in flight before the sender sent the new ones. The
    limit falls to this number, but not below 1. ``limit_flight`` explains the limit.
    """
    if outstanding(f) > before:
        f.flight_limit = min(f.flight_limit, max(before, 1.0))


@jit
def sendable(f: Sender, packets: float) -> float:
    """How many of ``packets`` new packets the flow may send.

    There are two limits. One is the end of the flow's data. The other is the end of the receiver's
    window, which begins with the first unacknowledged packet (RFC 9293 3.8.6). The second limit
    does not hold for ns-2's CUBIC: it only compares the number of packets in flight with the size
    of the receiver's window (send_much in tcp-linux.cc).
    """
    limit = f.size - f.next
    if not f.counts_places:  # not ns-2's CUBIC
        limit = min(limit, f.acked + np.floor(f.max_window) - f.next)
    return max(min(packets, limit), 0.0)


@rare
def add_hole(f: Sender, holes: Floats, first: float, count: float, sent_at: float) -> None:
    """Record in ``holes`` that the receiver misses ``count`` packets, from number ``first`` on.

    ``sent_at`` is the time at which they were sent, in seconds. Packets that are recorded already
    are not recorded again. A hole is a range of consecutive missing packets. For the Vegas of ns-2
    and of the papers each missing packet is a hole of its own, because this Vegas needs the time at
    which each packet was sent. If ``holes`` has no free row, the last hole is extended to the new
    packets. Packets between that hole and the new packets then count as missing, even if they have
    arrived. The row of a hole has seven numbers:

    - ``FIRST``: the number of its first packet;
    - ``AFTER``: the number of the first packet after it;
    - ``SENT_AT``: the time at which its first packet was sent;
    - ``BEFORE_AT``: the time at which the packet before it was sent;
    - ``KNOWN_LOST``: 1 if Linux knows that its packets are lost, else 0; for ns-2's CUBIC this
      number is called ``FORGOTTEN`` (``scoreboard.forgotten``);
    - ``NOT_RESENT``: the number of its first packet that has not been retransmitted;
    - ``LOST_AGAIN``: 0, or at least 1 if its retransmission is lost, too, but the sender does not
      know this yet (``repair.retransmission_lost``).
    """
    if first < f.received:  # recorded already
        return
    f.received = first + count
    f.missing += count
    in_hole = 1.0 if f.overdue_checks else count  # number of packets in one hole
    while count > 0.0:
        joins = not f.overdue_checks and f.holes > 0 and holes[f.holes - 1, AFTER] == first
        joins = joins and holes[f.holes - 1, KNOWN_LOST] == 0.0
        if not joins and f.holes == holes.shape[0]:  # use the rows of filled holes again
            move_to_front(f, holes)
        if joins or f.holes == holes.shape[0]:  # extend the last hole
            f.missing += first - holes[f.holes - 1, AFTER]
            holes[f.holes - 1, AFTER] = first + in_hole
        else:
            holes[f.holes, FIRST], holes[f.holes, AFTER] = first, first + in_hole
            holes[f.holes, SENT_AT], holes[f.holes, BEFORE_AT] = sent_at, f.arrival_sent_at
            holes[f.holes, KNOWN_LOST], holes[f.holes, NOT_RESENT] = 0.0, first
            holes[f.holes, LOST_AGAIN] = 0.0
            f.holes += 1
        first, count = first + in_hole, count - in_hole


@rare
def move_to_front(f: Sender, holes: Floats) -> int:
    """Move the holes to the first rows of ``holes``; returns by how many rows they have moved.

    A hole is a range of packets that the receiver misses. The rows before the first hole are free,
    because their holes have been filled. The move makes room for further holes at the end.
    """
    free = f.first_hole
    for k in range(free, f.holes):
        for column in range(COLUMNS):
            holes[k - free, column] = holes[k, column]
    f.first_hole, f.holes = 0, f.holes - free
    return free


@rare
def split_hole(f: Sender, holes: Floats, k: int, at: float) -> int:
    """Divide hole ``k``, a range of missing packets; its second part begins with packet ``at``.

    Returns the row of the second part. If ``at`` is not inside hole ``k``, or if ``holes`` has no
    free row, nothing is divided and the result is the row of the hole.
    """
    if at <= holes[k, FIRST] or at >= holes[k, AFTER]:
        return k
    if f.holes == holes.shape[0]:  # the last row is in use, but the first rows may be free
        k -= move_to_front(f, holes)
    if f.holes == holes.shape[0]:
        return k
    for row in range(f.holes, k, -1):
        for column in range(COLUMNS):
            holes[row, column] = holes[row - 1, column]
    f.holes += 1
    holes[k, AFTER], holes[k + 1, FIRST] = at, at
    resent = holes[k, NOT_RESENT]
    holes[k, NOT_RESENT], holes[k + 1, NOT_RESENT] = min(resent, at), max(resent, at)
    if holes[k, FORGOTTEN] > 1.0:  # ns-2's CUBIC: what it has forgotten lies behind the second part
        holes[k, FORGOTTEN] = 0.0
    return k + 1


@jit
def _first_behind(f: Sender, holes: Floats, first: float) -> int:
    """The row of the first hole with a packet of number ``first`` or higher.

    A hole is a range of packets that the receiver misses. The holes are sorted by packet number, so
    the function uses binary search. If there is no such hole, the result is ``f.holes``.
    """
    low, high = f.first_hole, f.holes
    while low < high:
        middle = (low + high) // 2
        if holes[middle, AFTER] <= first:
            low = middle + 1
        else:
            high = middle
    return low


@apart
def fill_holes(f: Sender, holes: Floats, first: float, count: float, sent_at: float) -> float:
    """Record that ``count`` packets have arrived, from number ``first`` on.

    Returns how many of them are new. A packet is new if it has not arrived before. ``sent_at`` is
    the time at which the last of them was sent, in seconds. A hole is a range of packets that the
    receiver misses. If packets just before ``first`` were lost, the caller has recorded them as a
    hole already (``add_hole``).

    The packets fill holes, wholly or in part. If a hole begins before ``first`` and ends after it,
    the hole is divided: its packets before ``first`` stay missing. This happens if a sender sends
    all packets of a hole again, and the first of them are lost once more. The second part needs a
    row of its own in ``holes``. If no row is free, the hole stays as it is: all its packets still
    count as missing, and none of them counts as new.

    ``f.acked`` becomes the number of the first packet that is still missing. If no packet is
    missing, it becomes the number after the last packet that has arrived.
    """
    end = first + count
    new = max(end - max(f.received, first), 0.0)
    if new > 0.0:
        f.arrival_sent_at = sent_at
    f.received = max(f.received, end)
    # ``first_filled`` is the row of the first hole that the packets can fill
    first_filled = _first_behind(f, holes, first)
    if first_filled < f.holes and holes[first_filled, FIRST] < first:
        first_filled = split_hole(f, holes, first_filled, first)
        if holes[first_filled, FIRST] < first:  # no row was free, so the hole stays as it is
            first_filled += 1
    # the holes in the rows from ``first_filled`` to ``after_filled`` - 1 are filled completely
    after_filled = first_filled
    while after_filled < f.holes and holes[after_filled, AFTER] <= end:
        new += holes[after_filled, AFTER] - holes[after_filled, FIRST]
        f.missing -= holes[after_filled, AFTER] - holes[after_filled, FIRST]
        after_filled += 1
    # the next hole may be filled in part
    if after_filled < f.holes and holes[after_filled, FIRST] < end:
        new += end - holes[after_filled, FIRST]
        f.missing -= end - holes[after_filled, FIRST]
        holes[after_filled, FIRST] = end
    # remove the rows of the filled holes
    if first_filled == f.first_hole:
        f.first_hole = after_filled
    elif after_filled > first_filled:
        for k in range(after_filled, f.holes):
            for column in range(COLUMNS):
                holes[k - after_filled + first_filled, column] = holes[k, column]
        f.holes -= after_filled - first_filled
    if f.first_hole == f.holes:  # no hole is left
        f.first_hole = f.holes = 0
    f.acked = holes[f.first_hole, FIRST] if f.holes > 0 else f.received
    return new


@jit
def received_beyond(f: Sender) -> float:
    """How many packets have arrived beyond the first missing one; they cause duplicate ACKs."""
    return max(f.received - f.acked - f.missing, 0.0)


@jit
def blocks(f: Sender, holes: Floats) -> int:
    """The number of SACK blocks in the next ACK, at most ``SACK_BLOCKS``.

    A block reports a range of packets that have arrived. There is one such range behind each hole,
    that is behind each range of missing packets.
    """
    ranges = f.holes - f.first_hole
    if f.holes > 0 and holes[f.holes - 1, AFTER] >= f.received:
        ranges -= 1  # nothing was received beyond the last hole
    return min(ranges, SACK_BLOCKS)


@jit
def send(f: Sender, packets: float, spread: float) -> None:
    """Send ``packets`` new packets, or fewer if the flow may send fewer (``sendable``).

    The simulator divides time into intervals. If ``spread`` is above 1, the first ``spread``
    packets leave evenly spaced over the present interval. The others leave together at its end.
    """
    packets, before = sendable(f, packets), outstanding(f)
    f.first = f.next
    f.spread = min(packets, spread) if spread > 1.0 else 0.0
    f.burst = packets - f.spread
    f.next += packets
    f.pipe += packets if has_pipe(f) else 0.0
    note_flight(f, before)


@jit
def send_nothing(f: Sender) -> None:
    """Begin an interval in which the sender sends no packet as yet."""
    f.first, f.spread, f.burst, f.retransmit = f.next, 0.0, 0.0, -1.0


@jit
def waits_first(f: Sender, acks: float) -> bool:
    """Whether the sender waits a random time before it sends the packets that ``acks`` ACKs allow.

    Only a sender with random waits (``wait.py``) does so, and only if ``acks`` is at most 1. If the
    simulator processes several ACKs together, the packets leave evenly, without a wait.
    """
    return f.jitter > 0.0 and acks <= 1.0


@jit
def send_or_wait(f: Sender, packets: float, spread: float) -> None:
    """Send ``packets`` new packets, unless the sender first waits a random time (``wait.py``).

    If the sender waits, this function sends nothing, and ``sender.plan`` begins the wait. Otherwise
    ``spread`` of the packets leave evenly while the ACKs arrive, and the rest with the last ACK.
    """
    if not waits_first(f, spread):
        send(f, packets, spread)


@jit
def sent_twice(f: Sender) -> float:
    """Packets below this number may have been sent twice.

    After a timeout the sender sends all packets again, and ``next`` is the first that it has not
    sent again yet. If it waits a random time first, the ACKs of their first transmissions may come
    before.
    """
    return min(f.resent, f.next)


@jit
def per_packet(total: float, packets: float) -> float:
    """``total`` divided by ``packets``; a division by 1 is left out to save time."""
    return total if packets == 1.0 else total / packets


@jit
def acknowledge(f: Sender, p: Parcel, packets: float, now: float, samples: float) -> float:
    """Process the ACKs of the next ``packets`` packets of ``p``, a group that travels together.

    ``samples`` is the number of RTT samples that the ACKs give. It is 0 for example if the packets
    were sent more than once. The function removes the packets from the group, and updates these
    fields of the sender:

    - of the latest packets: their mean RTT (``rtt_last``), by how much a random wait delays their
      ACKs (``late``), and the greatest sending time so far (``latest_sent_at``);
    - of the present round trip, by the RTT samples: ``rtt_sum``, ``rtt_count`` and ``rtt_min``;
    - of the whole connection, by the RTT samples: the smoothed RTT, the least RTT (``min_rtt``) and
      baseRTT (``base``);
    - of the whole run, by the RTTs of all these packets: ``rtt_total``, ``rtt_packets``, ``acks``.

    The caller changes ``f.acked`` and the window. Returns the time at which the last of the ACKs
    arrives.
    """
    part = 1.0 if packets == p.packets else packets / p.packets  # of the group
    end = now + max(p.back - now, 0.0) * part
    rtts = p.rtt_sum * part  # the sum of the RTTs of these packets
    f.rtt_last = per_packet(p.rtt_sum, p.packets)
    # RACK in Linux: a missing packet that was sent before this time counts as lost
    f.latest_sent_at = max(f.latest_sent_at, p.sent_at)
    f.late = p.late
    if samples > 0.0:
        f.rtt_sum += rtts if samples == packets else rtts * samples / packets
        f.rtt_count += samples
        f.rtt_min = min(f.rtt_min, p.rtt_min)
        if keeps_mean(f):
            update_mean(f, f.rtt_last, samples)
        f.min_rtt = min(f.min_rtt, p.rtt_min)
        if math.isnan(f.known_base):
            f.base = min(f.base, p.rtt_min)
    elif f.overdue_checks and f.mean_rtt == 0.0:
        # ns-2's Vegas begins its smoothed RTT at its first ACK, even if this gives no RTT sample
        begin_mean(f, f.rtt_last)
    # the totals of the run, and what is left of the group
    f.rtt_total += rtts
    f.rtt_packets += packets
    f.acks += packets
    p.rtt_sum -= rtts
    p.first += packets
    p.packets -= packets
    if p.packets <= 1e-9:  # a rounding error
        p.packets = 0.0
    if p.marked:
        f.marked = 1
    return end


@jit
def portion(p: Parcel, now: float, step: float) -> float:
    """How many packets of ``p``, a group that travels together, the simulator processes at once.

    It processes the first packets of the group, whose ACKs arrive within about ``step`` seconds
    from ``now`` on. If the ACKs of all its packets arrive within 1.5 ``step`` seconds, it processes
    the whole group.
    """
    span = p.back - now
    if p.packets <= 1.0 or span <= 1.5 * step:
        return p.packets
    return min(max(np.floor(p.packets * step / span + 0.5), 1.0), p.packets)
