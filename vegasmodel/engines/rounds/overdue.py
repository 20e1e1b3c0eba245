"""Finds lost packets as ns-2's Vegas does: a packet older than a fine timeout counts as lost.

The fine timeout is a timeout that is not rounded to clock ticks (``timer.overdue``). At duplicate
ACKs, and at the first two ACKs of new data after a retransmission, Vegas checks the first missing
packet. If this packet was sent longer ago than the fine timeout, it is called overdue, and Vegas
retransmits it. Because of an error in ns-2's code, some packets wrongly count as sent twice
(``leave_stale``). The Vegas of the papers (``variant = "paper"``) is simulated in the same way, but
without this error.

In the functions, ``f`` is the record of a Vegas flow, and ``holes`` is the table of the packets
that its receiver misses (``acks.add_hole``). ``end`` is the time in seconds at which the ACK
arrives, or the last of several ACKs.
"""

from __future__ import annotations

import math

from vegasmodel.engines.rounds.acks import send_or_wait, sendable, usable_window
from vegasmodel.engines.rounds.laws import cut_overdue, deflate, end_round, grow
from vegasmodel.engines.rounds.state import BEFORE_AT, SENT_AT, Sender, rare
from vegasmodel.engines.rounds.timer import overdue, restart_timer, update_mean
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@rare
def check_at_duplicate(f: Sender, holes: Floats, acks: float, end: float) -> None:
    """Process duplicate ACKs for Vegas with the variant ``ns2`` or ``paper``.

    These are the next ``acks`` duplicate ACKs, and the last arrives at ``end``. ``f.dupacks`` is
    the number of duplicate ACKs in a row up to this one. Vegas considers the first missing packet
    lost at the third duplicate ACK. At any other duplicate ACK it does so only if the packet is
    overdue, that is, older than Vegas's fine timeout. Then it cuts its window and retransmits the
    packet. If the packet is not considered lost, each duplicate ACK after the third enlarges the
    window by one packet.

    There is one exception. When the retransmission timer expires, all packets that were in flight
    are sent again anyway. Until a later packet is acknowledged, ``cut_overdue`` leaves the window
    as it is and returns False, and the missing packet is not retransmitted here.
    """
    # if no packet is missing, these are ACKs of packets that arrived twice
    sent_at = holes[f.first_hole, SENT_AT] if f.holes > 0 else end - f.rtt_last
    if (f.holes > 0 and overdue(f, end - sent_at)) or f.dupacks == 3.0:
        # ``cut_overdue`` cuts the window, and says whether to retransmit the packet
        if cut_overdue(f, sent_at, end):
            f.retransmit = f.acked
            holes[f.first_hole, SENT_AT] = end
    elif f.dupacks > 3.0:
        f.cwnd += acks


@rare
def leave_stale(f: Sender, before: float) -> None:
    """Record which later packets of ns-2's Vegas will wrongly count as sent twice.

    ns-2's Vegas stores when and how often each packet was sent. It does so in an array of
    ``max_window`` entries, which packets use in turn. An ACK should clear the entries of all
    packets that it acknowledges, from number ``before`` on. But it clears none if these entries
    continue from the end of the array at its beginning: the condition ``k <= seqno % v_maxwnd_`` of
    the loop in tcp-vegas.cc is then false at once.

    These entries are used again by later packets, whose numbers are higher by ``max_window``.
    The later packets then count as sent twice. So they give no RTT sample, and the loss of one of
    them halves the window.
    """
    if f.places < NEVER and before % f.places > (f.acked - 1.0) % f.places:
        f.stale, f.stale_end = before + f.places, f.acked + f.places


@rare
def check_at_filled(f: Sender, holes: Floats, end: float, sent_twice: float) -> None:
    """For Vegas with the variant ``ns2`` or ``paper``, process an ACK of a packet that was missing.

    The sender takes an RTT sample from the last packet that the ACK acknowledges. There are two
    exceptions: this packet's number is below ``sent_twice``, so that it may have been sent twice,
    or ns-2 wrongly counts it as sent twice, because of an older packet (``leave_stale``).
    ``holes`` has a row for each range of packets that the receiver misses.

    At the first and the second ACK of new data after a retransmission, the sender checks the first
    packet that is not acknowledged. If this packet is overdue (older than Vegas's fine timeout), it
    is retransmitted. If it is not overdue at the first ACK, there is no check at the second. After
    the check the sender sends what the window allows.

    If no packet is in flight, the packet that is checked was never sent. As ns-2 has no sending
    time for it, Vegas takes it for overdue, and sends it as a retransmission.

    The ACK arrives at the time ``end``, in s.
    """
    deflate(f)
    restart_timer(f, end)
    if f.acked > f.round_end:
        end_round(f, end, f.next - f.acked + 1.0, 1.0)
    grow(f, 1.0, end)
    stale = f.stale < f.acked <= f.stale_end
    if f.acked > sent_twice and not stale:  # the last packet acknowledged was sent once
        # It is the packet just before the first hole that is left. Without a hole it is the last
        # packet that has arrived.
        sent_at = holes[f.first_hole, BEFORE_AT] if f.holes > 0 else f.arrival_sent_at
        sample = end - sent_at
        f.rtt_sum += sample
        f.rtt_count += 1.0
        update_mean(f, sample, 1.0)
        if math.isnan(f.known_base):
            f.base = min(f.base, sample)
    if f.rechecks > 0.0:  # at two new ACKs after a loss, Vegas looks for an overdue packet
        f.rechecks -= 1.0
        # the next packet counts as overdue although it was never sent
        unsent = f.next == f.acked and sendable(f, 1.0) > 0.0 and end < f.stop
        if unsent or (f.holes > 0 and overdue(f, end - holes[f.first_hole, SENT_AT])):
            f.dupacks, f.retransmit = 3.0, f.acked  # it is sent again as after 3 duplicate ACKs
            if f.holes > 0:
                holes[f.first_hole, SENT_AT] = end
            f.resent = max(f.resent, f.acked + 1.0)
        else:
            f.rechecks = 0.0
    send_or_wait(f, usable_window(f, end), 0.0)
