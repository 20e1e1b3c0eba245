"""Counts the new packets that ns-2's NewReno has in flight when a recovery ends, at a RED queue.

A hole is a lost packet. During the recovery NewReno fills one hole in each round trip: it sends the
lost packet again. The last holes may be far apart: when RED's average queue falls, RED drops fewer
of the packets that arrive. When NewReno fills one of these last holes, the window slides by many
packets. So NewReno sends new packets before the recovery ends.

Their number is computed while RED drops packets, before the recovery begins. At each drop after the
first, ``count_hole`` takes the number of packets since the drop before. By this many packets the
window will slide when the hole before is filled. From this, ``next_hole`` computes how many new
packets will then be in flight. The number after the last drop is the result. When the recovery
begins, it is stored in ``new_at_end``.

The ACK that ends the recovery releases a burst. The new packets in flight affect the burst in two
ways (``random_drops.burst_arrives``):

- Some of them are still in the queue when the burst arrives.
- Their ACKs reach the sender soon after it has sent the burst. Each releases a packet, which
  follows the burst closely. If packets of the burst are lost, those that follow cause duplicate
  ACKs. So the sender detects the losses early. Without the new packets in flight, the packets
  behind the burst would be sent a round trip after it.
"""

from __future__ import annotations

from vegasmodel.engines.fluid.sampled.records import Sender
from vegasmodel.engines.tables import rare


@rare
def count_hole(flow: Sender, step: float, ago: float) -> None:
    """Record that RED drops a packet of the flow, ``ago`` seconds before the end of this time step.

    ``step`` is the length of the time step in seconds. Each drop leaves a hole. If it is not the
    first that the sender will hear of, ``next_hole`` computes how many new packets will be in
    flight when the recovery has filled the hole before.

    In a step, drops at a full buffer are recorded first, from the last to the first, and then RED's
    other drops. So this drop may be earlier than the latest one so far. The hole before is then
    that of this drop.
    """
    part = 0.0  # packets that the flow has sent in this step before the dropped one
    if step > 0.0:
        part = flow.arrives * min(max(1.0 - ago / step, 0.0), 1.0)
    # ``gap``: packets sent since the latest drop so far; it is negative if this drop was earlier.
    # (``sent_since`` gets all of this step at its end.)
    gap = flow.sent_since + part
    if gap >= 0.0:
        flow.sent_since = -part
    if flow.detection_in <= 0.0:  # the first drop: no loss waits for its detection
        flow.new_in_flight = flow.new_beyond = 0.0
    else:
        next_hole(flow, max(abs(gap), 1.0))


@rare
def next_hole(flow: Sender, gap: float) -> None:
    """Count the new packets in flight a round trip after a recovery has filled a hole.

    A hole is a lost packet that the receiver still misses. The next one comes ``gap`` packets after
    the packet that filled the hole. So the ACK that reports the filled hole lets the window slide
    by ``gap`` packets. It also takes back what earlier duplicate ACKs added to the window. Then
    each new packet that arrives causes a duplicate ACK, and each of these adds one packet to the
    window again. ns-2's NewReno sends at most two new packets at the ACK of the filled hole, and at
    most two at each duplicate ACK (tcp-newreno.cc: ``send_much`` with a burst of 2).

    ``new_beyond`` is the number of outstanding packets minus the window without these additions. If
    it is negative, the window has room.
    """
    at_ack = min(max(gap - flow.new_beyond, 0.0), 2.0)  # new packets at the ACK of the filled hole
    flow.new_beyond += at_ack - gap
    # New packets at the duplicate ACKs. Each of these adds one packet to the window. So it releases
    # no packet while too many are outstanding, then one, and a second one while there is room.
    duplicates, room = flow.new_in_flight, max(-flow.new_beyond, 0.0)
    later = max(duplicates + min(duplicates, room) - max(flow.new_beyond, 0.0), 0.0)
    flow.new_beyond += later
    flow.new_in_flight = at_ack + later
