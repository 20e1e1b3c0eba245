"""Simulates how a queue delays and drops packets.

The simulation goes from event to event. At an event, whole packets join the queue or are dropped.
Between two events, the packets of a group may arrive evenly over time, and the link sends packets.
These arrivals and departures are computed as if packets were a fluid with constant rates.

Packets may differ in size. ``Queue.queue`` is the sum of the sizes of all packets at the link, in
units of the scenario's packet size. Multiplied by ``Queue.packets_per_work`` it gives the number of
packets at the link (``stock.py``). The packet in transmission is included in both. A drop-tail
buffer has room for ``Queue.buffer`` waiting packets, whatever their sizes. So if the buffer is
full, ``Queue.buffer`` + 1 packets are at the link.

A link with Rate-Delay services has two queues, for the classes R and D of flows (Podlesny and
Williamson). The two classes take turns, and the link sends whole packets. ``turns.py`` keeps the
waiting packets and decides which of them is next.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.state import Hop, Queue, Table, apart, inlined, jit, rare
from vegasmodel.engines.rounds.stock import (
    append,
    count,
    fluid,
    front_packets,
    remove_last,
    transmit,
)

TOLERANCE = 1e-6  # packets: rounding error that a sum of arrivals may have
EMPTY = 1e-9  # packets: a shorter queue counts as empty
NEAR = 4.0  # packets: a buffer with room for at most this many counts as nearly full


@jit
def advance(links: Table[Queue], k: int, now: float) -> None:
    """Simulate queue ``k`` from its last event to the time ``now``: packets arrive and leave.

    A link with Rate-Delay services has two queues, one for each class of flows. Both are simulated
    until ``now``.
    """
    link = links[k]
    if link.partner < 0:
        _serve(link, now, link.capacity)
    else:
        _send_on(link, now)
        _send_on(links[link.partner], now)


@jit
def _full(link: Queue) -> float:
    """The sum of the packet sizes at a link with a full buffer, in packets of the scenario's size.

    The packet in transmission is included.
    """
    packets = link.buffer + 1.0
    # the test saves time: a division by 1 takes as long as any other
    return packets if link.packets_per_work == 1.0 else packets / link.packets_per_work


@inlined
def _serve(link: Queue, now: float, capacity: float) -> None:
    """Simulate one queue from its last event to the time ``now``, as a fluid.

    The queue grows at the rate ``link.rate`` - ``capacity``. If this is negative, the queue shrinks
    until it is empty. What arrives at a full buffer is added to ``link.excess``. ``overflow`` later
    decides how many packets are lost.

    ``link.queue``, ``link.rate`` and ``capacity`` measure packets by their size, in units of the
    scenario's packet size. The comments call such a sum of sizes work. If all packets have the
    scenario's size, work is a number of packets.
    """
    span = now - link.now
    if span <= 0.0:
        return
    slope = link.rate - capacity  # growth of the queue per second
    before = link.queue
    after = before + slope * span
    # seconds in which the queue is not empty; ``area`` is the queue, integrated over the time step
    busy = span if after > 0.0 else before / -slope if slope < 0.0 else 0.0
    if after < 0.0:
        # Both numbers are negative: their quotient is the time in s since the queue became empty.
        link.idle += after / slope
        after = 0.0
        area = before * before / (-2.0 * slope) if slope < 0.0 else 0.0
    else:
        area = 0.5 * (before + after) * span
    # From here on ``area`` is in packets times seconds, no longer in work times seconds. ``full``
    # is the work at the link if the buffer is just full.
    if link.mixed:  # packets of several sizes cross the link
        sent = before + link.rate * span - after  # work
        area = _serve_sizes(link, sent, span, busy, capacity)
        count(link, after)  # sets ``packets_per_work`` by the sizes of the packets left
        # what does not fit is taken from the packets that have just arrived
        arrived, excess = link.rate * span, 0.0  # work; ``excess`` is the part that does not fit
        if arrived > 0.0:
            too_many = after * link.packets_per_work - link.buffer - 1.0  # packets
            excess = too_many * link.rate / max(link.packet_rate, EMPTY)  # times their mean size
        full = after - max(min(excess, arrived), 0.0)
    else:
        area *= link.packets_per_work
        full = _full(link)
    if after > full:
        link.excess += after - full
        if link.mixed:
            before_drop = fluid(link)  # packets at the link
            remove_last(link, after - full)
            count(link, full)
            # the dropped packets came evenly, so on average each is in ``area`` for half the step
            area -= 0.5 * (before_drop - fluid(link)) * span
        elif after - full <= 2.0 * slope * span:
            # Subtract what lies above the full queue: a triangle, as the queue has grown evenly. If
            # more than twice the growth lies above it, rounding errors have put it there: the queue
            # has been full all the time, and there is no triangle.
            area -= 0.5 * (after - full) ** 2 / slope * link.packets_per_work
        after = full
        link.served += capacity * span
    else:
        link.served += link.rate * span + before - after
    link.arrived += link.rate * span
    link.queue = after
    link.area += _waiting(link, area, busy)
    link.now = now


@apart
def _serve_sizes(link: Queue, work: float, span: float, busy: float, capacity: float) -> float:
    """Add arrivals to a queue with packets of several sizes, and remove the packets sent.

    ``_serve`` calls this for a time step of ``span`` seconds. During ``busy`` of these seconds the
    queue is not empty. ``work`` is the sum of the sizes of the packets sent, in packets of the
    scenario's packet size. ``capacity`` is in such packets per second.

    Returns the number of packets at the link, integrated over the time step (packets times
    seconds). Each packet counts as one, whatever its size. Of the packet in transmission only the
    unsent part counts.
    """
    arrived = 0.0  # packets
    if link.packet_rate > 0.0 and link.rate > EMPTY:
        # Arriving packets per unit of work, which is a packet of the scenario's packet size. The
        # number lies between those of the largest and of the smallest packets; rounding errors
        # may put the quotient outside this range.
        ratio = min(max(link.packet_rate / link.rate, link.largest), link.smallest)
        append(link, link.rate * span, 1.0 / ratio, 0)
        arrived = link.rate * span * ratio
    mean = fluid(link) - 0.5 * arrived  # mean number of packets at the link if none were sent
    return mean * busy - transmit(link, work) / capacity


@jit
def _waiting(link: Queue, area: float, busy: float) -> float:
    """The number of waiting packets, integrated over a time step (packets times seconds).

    ``area`` is the same integral for all packets at the link. It includes the unsent part of the
    packet in transmission, although this packet does not wait. On average, half of it is unsent. So
    half a packet is subtracted for the ``busy`` seconds in which the queue is not empty.

    Packets that arrive evenly over time are added to the queue like a fluid, bit by bit. But a real
    packet joins the queue as a whole, when its last bit has arrived. So on average the simulated
    queue is half a packet too long for each flow whose packets arrive evenly. The function
    subtracts this, too (``link.even`` is the number of these flows).
    """
    return area - 0.5 * (1.0 + link.even) * busy


@jit
def waiting_now(link: Queue) -> float:
    """How many packets wait at the link now; the packet in transmission does not count.

    The result is a whole number if packets arrive one by one. If packets arrive evenly, the queue
    is simulated as a fluid. The result is then a mean, which need not be whole.
    """
    if link.partner >= 0:
        return link.waiting
    if link.even == 0.0:
        return max(np.ceil(link.queue * link.packets_per_work - TOLERANCE) - 1.0, 0.0)
    packets = fluid(link) if link.mixed else link.queue * link.packets_per_work
    # without half of the packet in transmission, and half a packet for each flow (``_waiting``)
    return max(packets - 0.5 * (1.0 + link.even), 0.0)


@jit
def _send_on(link: Queue, now: float) -> None:
    """Simulate one queue of a Rate-Delay link from its last event to the time ``now``.

    Such a link has a queue for each of its two classes of flows, and ``link`` is one of them. If a
    packet of this queue is in transmission, the function subtracts the part that the link sends
    until ``now``. All other packets of the queue wait: no transmission begins in this time, because
    transmissions begin only at events (``turns.py``).
    """
    span = now - link.now
    if span <= 0.0:
        return
    sent = min(link.capacity * span, link.unsent)
    link.unsent -= sent
    link.queue -= sent
    link.served += sent
    link.area += link.waiting * span
    link.now = now


@rare
def share_capacity(rate: Queue, delay: Queue, part: float) -> None:
    """Divide the capacity of a Rate-Delay link between its two classes of flows.

    The high-rate class gets the fraction ``part``, and the low-delay class the rest. ``rate`` and
    ``delay`` are the queues of these classes. The scheduler of Podlesny and Williamson counts what
    each class has sent (``volume``); at new shares it counts from 0 again. ``shares_sum`` is
    computed in the same steps as in ns-2, so that it has the same rounding errors.
    """
    rate.shares_sum += part - rate.share
    rate.shares_sum += (1.0 - part) - delay.share
    rate.share, delay.share = part, 1.0 - part
    rate.volume = delay.volume = delay.lag = 0.0


@rare
def share_by_flows(links: Table[Queue], k: int) -> None:
    """Divide the capacity of a Rate-Delay link between its classes by their numbers of flows.

    ``k`` is the index of the queue of either class. Class R has n_R active flows and class D n_D.
    Equation (5) of Podlesny and Williamson gives the guaranteed shares of the capacity, S_R and
    S_D:

        S_R : S_D = w n_R : n_D.

    An R flow is to get w times the rate of a D flow; w is the paper's k (``class_weight``). If a
    class has no active flow, the other class may use the whole capacity. The shares then do not
    matter, and stay as they are.
    """
    one, two = links[k], links[links[k].partner]
    # ``store`` is the index of the array with a queue's waiting packets; class R has the first
    rate, delay = (one, two) if one.store < two.store else (two, one)
    if rate.active > 0.0 and delay.active > 0.0:
        of_rate = rate.class_weight * rate.active
        share_capacity(rate, delay, of_rate / (of_rate + delay.active))


@jit
def departure_due(link: Queue, found: float, tolerance: float) -> bool:
    """Whether one packet leaves the link at this very instant, and another one follows it.

    ``found`` is the number of packets at the link. Of the packet in transmission it counts only the
    unsent part. So at the end of a transmission ``found`` is a whole number, and it is at least 1
    if another packet waits. An error of at most ``tolerance`` packets is allowed. If packets differ
    in size, the number of packets of equal size at the front of the queue takes the place of
    ``found``.
    """
    if link.mixed:
        at_front = front_packets(link)
        return at_front > 0.0 and np.abs(at_front - np.rint(at_front)) < tolerance
    return found > 0.5 and np.abs(found - np.rint(found)) < tolerance


@jit
def arrives_first(h: Hop, link: Queue) -> int:
    """1 if an arrival at the queue of hop ``h`` comes before a departure of the same instant.

    A hop is one queue on the path of one flow. If flows keep a queue busy, ACKs come at the pace of
    departures. So packets often arrive at the very instant at which another packet leaves. The
    order of the two matters if the buffer is full: only an arrival after the departure finds room.
    In ns-2 the event that was scheduled first comes first. ns-2 schedules an arrival when the
    packet enters the last wire before the link, and a departure when the transmission begins.
    """
    if not link.mixed:
        return h.precedes
    return int(h.wire > link.leaving / link.capacity)


@jit
def waiting(links: Table[Queue], k: int, queue: float, work: float) -> float:
    """The seconds that the last packet in queue ``k`` waits until those before it have left.

    ``queue`` is the sum of the sizes of all packets in queue ``k``, with the last packet and the
    one in transmission. ``work`` is the size of the last packet. Both are in packets of the
    scenario's packet size.

    A link with Rate-Delay services has one queue for each of its two classes of flows. There the
    wait also depends on packets of the other class that arrive later, so the result is an estimate.
    If packets of the other class are waiting, queue ``k`` is assumed to get just its guaranteed
    share of the capacity.
    """
    link = links[k]
    before = max(queue - work, 0.0)
    if link.partner >= 0 and links[link.partner].waiting > 0.0:
        return before / (link.share * link.capacity)
    return before / link.capacity


@jit
def drop(link: Queue, work: float) -> None:
    """Remove dropped packets from the end of the queue.

    They were added to the queue when they arrived. ``work`` is the sum of their sizes, in packets
    of the scenario's packet size.
    """
    if link.mixed:
        remove_last(link, work)
        count(link, link.queue - work)
    after = max(link.queue - work, 0.0)
    # If less than ``work`` was left in the queue, the link has already sent a part of these
    # packets. This part must not count as sent.
    link.served -= work - (link.queue - after)
    link.queue = after
    link.lost += work


@jit
def overflow(link: Queue, packets: float, work: float) -> float:
    """Drop packets of one flow if the buffer has overflowed; returns how many are dropped.

    ``packets`` packets of this flow have arrived evenly over an interval that ends now. Let n
    packets, of any flows, have arrived while the buffer was full. Then n packets must be dropped,
    but it is not yet decided which flows lose them. The function drops n packets of this flow, but
    at most ``packets``. ``work`` is the size of each packet, in packets of the scenario's packet
    size.
    """
    # What follows is work, that is sums of packet sizes. ``offered`` would be at the link if all
    # packets had found room, and ``full`` is at the link if the buffer is just full.
    offered, full = link.queue + link.excess, _full(link)
    if link.mixed:  # the buffer counts packets, so this flow's packets fill the free places
        free = max(link.buffer + 1.0 - link.queue * link.packets_per_work, 0.0)
        full = link.queue + free * work
    too_much = offered - full
    if too_much * link.packets_per_work <= TOLERANCE:
        return 0.0
    link.overflowed = 1
    lost = min(np.ceil(too_much * link.packets_per_work - TOLERANCE), packets)
    dropped = lost * work
    # This flow's packets may be larger than those at the link. If their work exceeds what is there,
    # nothing stays, and the rest counts as sent no longer.
    if dropped > offered:
        link.served -= dropped - offered
        too_much = dropped - full
    stays = full + min(too_much - dropped, 0.0)  # ``lost`` is rounded up
    if link.mixed:
        remove_last(link, link.queue - stays)
        append(link, stays - link.queue, work, 0)
        count(link, stays)
    link.queue = stays
    link.excess = max(too_much - dropped, 0.0)  # other flows will lose these packets
    link.lost += dropped
    link.passed = 0.0  # RED counts from the last drop of any kind
    return lost


@jit
def room_for(link: Queue, packets: float, precedes: int) -> float:
    """How many of ``packets`` packets find room in the buffer if they all arrive now.

    ``precedes`` is 1 if ns-2 handles these arrivals before a departure at the same instant. A
    packet that departs at this instant then still occupies its place in the buffer.
    """
    if link.partner >= 0:
        room = np.floor(link.buffer - link.waiting)
    else:
        found = link.queue * link.packets_per_work  # packets at the link
        if link.now < link.handshake_leaves:  # a small packet of a handshake takes a whole place
            found += link.handshake_excess
        # one packet more than the buffer holds can be at the link: it is in transmission
        room = np.floor(link.buffer + 1.0 - found + link.instant)
        if precedes and departure_due(link, found, link.instant):
            room -= 1.0
    if room < packets:
        link.overflowed = 1
        link.passed = 0.0  # RED counts from the last drop of any kind
    return min(max(room, 0.0), packets)


@jit
def never_full(link: Queue) -> bool:
    """Whether the buffer is infinite, so that every arriving packet finds room."""
    return link.buffer == np.inf


@jit
def intervals(link: Queue, packets: float, calm: float, parts: float) -> float:
    """The number of intervals into which the simulator divides a flow's round trip.

    The simulator handles the packets that the flow sends in one interval as one event. ``packets``
    is the number of packets that the flow sends in the round trip. The result depends on the room
    in the buffer:

    - If more than half of the buffer is free, it is ``calm``.
    - If there is room for at most ``NEAR`` packets, it is ``parts``.
    - Otherwise intervals are so short that the flow sends at most three times as many packets in
      one interval as the buffer has room for. But there are at least ``calm`` and at most ``parts``
      intervals.
    """
    room = link.buffer - link.queue * link.packets_per_work
    if room > 0.5 * link.buffer:
        return calm
    return min(max(calm, packets / (3.0 * room)), parts) if room > NEAR else parts


@rare
def enqueue_handshake(link: Queue, work: float) -> None:
    """Add a packet of a TCP handshake to the queue; ``work`` is its size in data packets.

    This packet is smaller than a data packet. But the buffer counts packets, whatever their sizes.
    So the handshake packet takes as much room in the buffer as a data packet. If all other packets
    at the link have one size, the simulator finds their number from their sizes. What this leaves
    out is recorded until the handshake packet has left.
    """
    link.arrived += work
    if link.mixed:  # packets of several sizes are counted one by one
        enqueue(link, 1.0, work)
        return
    link.queue += work
    link.handshake_excess, link.handshake_leaves = 1.0 - work, link.now + link.queue / link.capacity


@jit
def enqueue(link: Queue, packets: float, work: float) -> None:
    """Add ``packets`` packets to the end of the queue; the caller has checked that there is room.

    ``work`` is the size of each packet, in packets of the scenario's packet size.
    """
    more = packets * work
    link.queue += more
    if link.mixed:
        append(link, more, work, 1)
        count(link, link.queue)
