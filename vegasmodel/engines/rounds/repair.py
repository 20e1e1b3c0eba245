"""Decides in a recovery with SACK which packets count as lost, and which packets are sent.

In this Linux and ns-2's CUBIC differ from all other senders; the functions' docstrings say how.
In all functions, ``f`` is the record of a flow. ``holes`` is the table of the packets
that the flow's receiver misses (``acks.add_hole``). A hole is a range of consecutive missing
packets, and the table has a row for each hole.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import (
    move_to_front,
    note_flight,
    send,
    split_hole,
    usable_window,
    waits_first,
)
from vegasmodel.engines.rounds.laws import cut, outstanding, prr_allowance, restart_when_idle
from vegasmodel.engines.rounds.scoreboard import forget_retransmissions, forgotten, known_lost
from vegasmodel.engines.rounds.state import (
    AFTER,
    FIRST,
    FORGOTTEN,
    KNOWN_LOST,
    LOST_AGAIN,
    NOT_RESENT,
    SENT_AT,
    Sender,
    apart,
    jit,
    rare,
)
from vegasmodel.metrics import Floats

LATER_RETRANSMISSIONS = 5.0  # scoreboard1.cc: GetRtx() + (dupack_threshold + 1) < acked_rtx_id_


@jit
def _range_to_send(f: Sender, holes: Floats, k: int, column: int) -> tuple[float, float]:
    """The packets at hole ``k`` that must be sent again: the first one, and the first one after.

    With ``column`` ``NOT_RESENT`` they are the hole's lost packets that have not been retransmitted
    yet. With ``FORGOTTEN`` they are the packets behind the hole that ns-2's CUBIC has forgotten
    (``scoreboard.forget``). There are none if the second number is not above the first.
    """
    if column == NOT_RESENT:
        return max(holes[k, FIRST], holes[k, NOT_RESENT]), known_lost(f, holes, k)
    return holes[k, FORGOTTEN], holes[k + 1, FIRST] if forgotten(f, holes, k) else 0.0


@apart
def send_in_recovery(f: Sender, holes: Floats, free: float, acks: float) -> None:
    """Send up to ``free`` packets in recovery with SACK: first lost ones, then new ones.

    The record ``f`` has room for one single packet, and then one range of consecutive packets. One
    call sends no more than these. So if the lost packets lie in more ranges, it sends fewer than
    ``free`` packets.

    ``acks`` is the number of ACKs that are processed together. If it is more than one, the packets
    of the range leave evenly over the time in which these ACKs arrive.

    ns-2's CUBIC may have forgotten that some packets have arrived (``scoreboard.forget``). It sends
    these packets again, too.
    """
    free = np.floor(free + 1e-9)  # a rounding error must not cost a packet
    if free > 0.0 and f.pipe <= 0.0:
        restart_when_idle(f)
    for row in range(2 * f.first_hole, 2 * f.holes if free > 0.0 else 0):
        # each hole has two numbers ``row``: the even one for its lost packets, and then the odd one
        # for the forgotten packets behind it
        k, column = row // 2, NOT_RESENT if row % 2 == 0 else FORGOTTEN
        low, high = _range_to_send(f, holes, k, column)
        if low < high and free > 0.0:
            packets, before = min(free, high - low), outstanding(f)
            holes[k, column] = low + packets
            f.pipe += packets
            f.prr_out += packets
            note_flight(f, before)
            free -= packets
            if packets > 1.0 or f.retransmit >= 0.0 or free <= 0.0:
                f.first = low
                f.spread = packets if acks > 1.0 else 0.0
                f.burst = packets - f.spread
                return
            f.retransmit = low
    before = f.next
    send(f, free, free if acks > 1.0 else 0.0)
    f.prr_out += f.next - before


@jit
def send_lost_or_wait(f: Sender, holes: Floats, free: float, acks: float, end: float) -> None:
    """Send up to ``free`` packets in recovery with SACK, unless the sender first waits.

    Some senders wait for a random time before they send (``overhead_`` in ns-2). Then this function
    sends nothing, and ``sender.plan`` begins the wait. Linux does not wait in recovery. ``end`` is
    the time at which the last of ``acks`` ACKs arrives.

    If the lost packets lie in several ranges, one call of ``send_in_recovery`` may send fewer than
    ``free`` packets. The rest follows at ``f.wait_ends``, when the access link has sent the packets
    of this call. The function sets this time only if ``acks`` is 1.
    """
    if f.paced_recovery or not waits_first(f, acks):
        before = f.pipe
        send_in_recovery(f, holes, free, acks)
        sent = f.pipe - before
        if 0.0 < sent < np.floor(free) and acks <= 1.0 and not f.paced_recovery:
            f.wait_ends = end + sent * f.gap  # when the rest follows


@rare
def retransmission_lost(f: Sender, holes: Floats, first: float, lost: float) -> None:
    """Record that ``lost`` retransmitted packets, from number ``first`` on, are lost again.

    Only Linux and ns-2's CUBIC detect such a loss during a recovery: when packets arrive that were
    sent later (``find_lost_again``). If none arrives, they wait for the retransmission timer. The
    sender does not know of the loss yet. The function divides the hole with these packets, so that
    they are a hole of their own, and marks it by ``LOST_AGAIN``.
    """
    _count_later(f, holes, lost)  # these packets were sent later than others that are lost again
    if f.holes + 2 > holes.shape[0]:  # two divisions may follow
        move_to_front(f, holes)
    for k in range(f.first_hole, f.holes):
        if holes[k, FIRST] <= first < holes[k, AFTER]:
            row = split_hole(f, holes, k, first)  # of the hole that begins with packet ``first``
            split_hole(f, holes, row, first + lost)
            holes[row, LOST_AGAIN] = 1.0
            return


@jit
def _count_later(f: Sender, holes: Floats, packets: float) -> None:
    """Count ``packets`` retransmissions that were sent later than those that are lost again.

    ``LOST_AGAIN`` in a hole's row is this number plus 1, if its own retransmission is lost.
    """
    for k in range(f.first_hole, f.holes):
        holes[k, LOST_AGAIN] += packets if holes[k, LOST_AGAIN] > 0.0 else 0.0


@jit
def find_lost_again(f: Sender, holes: Floats, packets: float, beyond: bool) -> None:
    """Find out at an ACK which retransmissions are lost again, in a recovery.

    ``packets`` packets have just arrived. ``beyond`` is True if they have higher numbers than all
    that arrived before, and False if they are retransmissions. The retransmissions that are found
    lost no longer count as in flight, and will be sent again.

    A Linux sender knows of the loss when any packet arrives that was sent later
    (tcp_rack_detect_loss). ns-2's CUBIC knows it when a packet arrives that was first sent after
    the retransmission, or when the ``LATER_RETRANSMISSIONS``-th later retransmission arrives
    (``UpdateScoreBoard`` in scoreboard1.cc).
    """
    if not beyond:
        _count_later(f, holes, packets)
    for k in range(f.first_hole, f.holes):
        later = holes[k, LOST_AGAIN]  # 1 more than the number of later retransmissions; 0: not lost
        if later > 0.0 and (f.rack or beyond or later > LATER_RETRANSMISSIONS):
            # none of the hole's packets counts as retransmitted any more
            f.pipe -= max(holes[k, NOT_RESENT] - holes[k, FIRST], 0.0)
            holes[k, NOT_RESENT], holes[k, LOST_AGAIN] = holes[k, FIRST], 0.0


@jit
def mark_lost(f: Sender, holes: Floats) -> float:
    """Mark the packets that a Linux sender now knows to be lost; returns how many it marked.

    A missing packet is known to be lost if a packet that was sent later has arrived. The later
    packet may be a retransmission (tcp_rack_detect_loss). So the sender can detect even the loss of
    the last packet of a window. Marked packets no longer count as in flight.
    """
    found = 0.0
    for k in range(f.first_hole, f.holes):
        # a packet behind the hole has arrived, or one sent later than the hole's first packet
        later_arrived = holes[k, AFTER] < f.received or holes[k, SENT_AT] < f.latest_sent_at
        if holes[k, KNOWN_LOST] == 0.0 and later_arrived:
            holes[k, KNOWN_LOST] = 1.0
            found += holes[k, AFTER] - holes[k, FIRST]
    f.pipe -= found
    return found


@jit
def allowed(f: Sender, holes: Floats, acks: float, now: float, advanced: float) -> float:
    """How many packets a sender with SACK may send in recovery when ``acks`` ACKs arrive.

    Linux first marks the packets that it now knows to be lost, and then follows PRR
    (``laws.prr_allowance``). Every other sender sends what its window allows. ``advanced`` is 1 for
    partial ACKs and 0 for duplicate ACKs. At a partial ACK PRR may allow one packet more, unless
    Linux has just marked packets as lost.
    """
    if not f.paced_recovery or now >= f.stop:
        return usable_window(f, now)
    return prr_allowance(f, acks, 0.0 if mark_lost(f, holes) > 0.0 else advanced)


@rare
def record_first_resent(f: Sender, holes: Floats) -> None:
    """Record that the first missing packet is retransmitted at the beginning of a recovery.

    All other missing packets then count as not retransmitted. A Linux sender also marks the packets
    that it now knows to be lost, and counts the retransmitted packet as in flight.
    """
    forget_retransmissions(f, holes)
    holes[f.first_hole, NOT_RESENT] += 1.0
    if f.rack:
        mark_lost(f, holes)
        if f.pipe <= 0.0:
            restart_when_idle(f)
        f.pipe += 1.0


@rare
def more_known_lost(f: Sender, holes: Floats) -> bool:
    """Whether a Linux sender knows of further lost packets at the end of a recovery.

    If it does, it begins another recovery (tcp_time_to_recover).
    """
    known = 0.0
    for k in range(f.first_hole, f.holes):
        known += holes[k, KNOWN_LOST]
    return f.rack and known > 0.0


@rare
def reenter_recovery(f: Sender, holes: Floats, acks: float) -> None:
    """Begin a new recovery at the ACK that ends the old one, and cut the window again.

    A Linux sender does so if packets that it sent during the old recovery are known to be lost
    (``more_known_lost``). ``holes`` has a row for each range of missing packets. ``acks`` is the
    number of ACKs that are processed together; the last of them ends the old recovery. At least one
    packet is sent, as at the beginning of each recovery.
    """
    pipe = f.pipe - acks  # ``cut`` sets it for a recovery that duplicate ACKs begin
    cut(f)
    f.pipe, f.prr_delivered, f.prr_out = pipe, 0.0, 0.0
    mark_lost(f, holes)
    send_in_recovery(f, holes, max(prr_allowance(f, acks, 0.0), 1.0), acks)
