"""Tells which packets a sender with SACK counts as lost, and what ns-2's CUBIC has in flight.

SACK tells the sender which packets have arrived. So the sender can keep a list of holes, that is of
ranges of packets that the receiver misses. Most functions of this module are for ns-2's CUBIC,
which clears its list of holes at the end of a recovery. So ns-2's CUBIC then forgets which packets
have arrived. But the next ACK reports at most three ranges of packets that have arrived, and CUBIC
learns of these again.

In the functions, ``f`` is the record of a sender, and ``holes`` is its list of holes, a table with
a row for each hole (``acks.add_hole``).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from vegasmodel.engines.rounds.acks import SACK_BLOCKS, add_hole
from vegasmodel.engines.rounds.laws import in_flight
from vegasmodel.engines.rounds.state import (
    AFTER,
    FIRST,
    FORGOTTEN,
    KNOWN_LOST,
    LOST_AGAIN,
    NOT_RESENT,
    Sender,
    jit,
    rare,
)
from vegasmodel.metrics import Floats


@rare
def forget_retransmissions(f: Sender, holes: Floats) -> None:
    """Treat all missing packets as not retransmitted, and none of them as known to be lost."""
    for k in range(f.first_hole, f.holes):
        holes[k, KNOWN_LOST], holes[k, NOT_RESENT], holes[k, LOST_AGAIN] = 0.0, holes[k, FIRST], 0.0


@jit
def forgotten(f: Sender, holes: Floats, k: int) -> bool:
    """Whether ns-2's CUBIC has forgotten that the packets behind hole ``k`` have arrived.

    A hole is a range of missing packets. The packets behind it are all packets up to the next hole.
    ns-2's CUBIC sends forgotten packets again. ``FORGOTTEN`` in the hole's row is the number of the
    first forgotten packet that was not sent again, or 0 if no packet is forgotten (``forget``).
    """
    return f.clears_scoreboard and k + 1 < f.holes and holes[k, FORGOTTEN] > 0.0


@rare
def forget(f: Sender, holes: Floats) -> None:
    """Let ns-2's CUBIC forget what the receiver has, except the three highest ranges of packets.

    When a recovery ends, ns-2's CUBIC clears its table of the packets that the receiver has
    (``ClearScoreBoard`` in tcp-linux.cc). If packets that were sent during the recovery are
    missing, another recovery begins. The ACK that begins it has at most three SACK blocks. Here
    they are assumed to report the highest ranges. All packets that these blocks do not report then
    count as lost, even if earlier blocks have reported them (``UpdateScoreBoard`` in
    scoreboard1.cc). So if the packets that have arrived lie in more than three ranges, some of them
    are sent again.
    """
    # Behind each hole is a range of packets that have arrived; behind the last one only if a packet
    # with a higher number has arrived.
    ranges = f.holes if holes[f.holes - 1, AFTER] < f.received else f.holes - 1
    for k in range(f.first_hole, ranges - SACK_BLOCKS):
        holes[k, FORGOTTEN] = holes[k, AFTER]


@rare
def recall(f: Sender, holes: Floats, first: float, packets: float) -> None:
    """Let ns-2's CUBIC learn from a SACK block about packets whose arrival it had forgotten.

    ``packets`` packets have arrived, from number ``first`` on. The first SACK block of their ACK
    reports the whole range to which they belong. Packets of this range that the sender has sent
    again no longer count as in flight.
    """
    for k in range(f.first_hole, f.holes - 1):
        if (
            forgotten(f, holes, k)
            and first <= holes[k + 1, FIRST]
            and holes[k, AFTER] <= first + packets
        ):
            # the forgotten packets from ``AFTER`` to before ``FORGOTTEN`` have been sent again
            f.pipe -= holes[k, FORGOTTEN] - holes[k, AFTER]
            holes[k, FORGOTTEN] = 0.0


@jit
def _lost_below(f: Sender, holes: Floats) -> float:
    """The number below which all missing packets count as lost for ns-2's CUBIC.

    A missing packet counts as lost if its number is lower by at least ``dup_thresh`` than the
    highest number that SACK reports. It does not matter how many of the packets between the two
    have arrived (``lost_seq_threshold`` in scoreboard1.cc). After a timeout, all missing packets
    that were sent before the timeout count as lost (``MarkLoss``).
    """
    last = f.holes - 1
    # the number after the highest one that SACK reports
    beyond = holes[last, FIRST] if last >= 0 and holes[last, AFTER] >= f.received else f.received
    return max(beyond - f.dup_thresh, f.recover if f.timed_out else 0.0)


@jit
def count_flight(f: Sender, holes: Floats) -> None:
    """Count the packets that ns-2's CUBIC takes to be in flight, and store the number in ``pipe``.

    These are all unacknowledged packets except two kinds: those that SACK has reported as arrived,
    and lost packets that were not sent again (``packets_in_flight`` in scoreboard1.h). For other
    senders the function does nothing.
    """
    if not f.counts_places:
        return
    f.pipe, below = in_flight(f), _lost_below(f, holes)
    for k in range(f.first_hole, f.holes):
        # the packets behind this hole that have arrived, up to the next hole; then the lost ones
        end = holes[k + 1, FIRST] if k + 1 < f.holes else max(f.received, holes[k, AFTER])
        f.pipe -= end - (holes[k, FORGOTTEN] if forgotten(f, holes, k) else holes[k, AFTER])
        f.pipe -= max(min(holes[k, AFTER], below) - max(holes[k, FIRST], holes[k, NOT_RESENT]), 0.0)


@rare
def take_all_for_lost(f: Sender, holes: Floats) -> None:
    """At a timeout of ns-2's CUBIC, count all packets as lost that SACK has not reported.

    The sender then sends only these packets again, not those that SACK has reported as arrived
    (``enter_loss`` in tcp-linux.cc, ``MarkLoss`` in scoreboard1.cc).
    """
    add_hole(f, holes, f.received, f.high - f.received, f.time)  # all beyond the last arrival
    forget_retransmissions(f, holes)
    count_flight(f, holes)


@jit
def known_lost(f: Sender, holes: Floats, k: int) -> float:
    """The packet number below which the sender knows all packets of hole ``k`` to be lost.

    A hole is a range of missing packets. If no packet of it is known to be lost, the result is the
    number of its first packet.
    """
    if f.counts_places:
        return min(holes[k, AFTER], max(_lost_below(f, holes), holes[k, FIRST]))
    # Linux has marked the hole; for others it is lost if a packet behind it has arrived
    lost = holes[k, KNOWN_LOST] > 0.0 if f.rack else holes[k, AFTER] < f.received
    return holes[k, AFTER] if lost else holes[k, FIRST]
