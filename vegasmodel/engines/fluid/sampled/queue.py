"""Computes the queueing delay at the link for given windows, and RED's drop probability.

In the functions, ``now`` is the link's present state, ``link`` has its constants, and ``c`` is its
capacity in pkt/s. Equation (S1) says that the flows' rates add up to the capacity:

    sum_i m_i/(T_i + s) = c,   or s = 0 if this sum is below c at s = 0        (S1)

Here s is the queueing delay, and flow i has the RTT T_i in the empty network. m_i is the number of
its packets in flight that are neither lost nor held back by the receiver (``records.moving``). The
docstring of the package ``sampled`` has this equation, too, with the parts of m_i.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.records import (
    WINDOW_ERROR,
    Bottleneck,
    LinkState,
    Sender,
    moving,
)
from vegasmodel.engines.tables import Table, jit

# Newton's method for (S1) ends when a step changes the queueing delay by at most this part of it.
DELAY_ERROR = 1e-12
# The buffer overflows if the sum of the rates in (S1), at the full buffer's queueing delay, exceeds
# the capacity by more than this part of it. A smaller excess is a rounding error.
RATE_ERROR = 1e-12


@jit
def in_network(flows: Table[Sender]) -> float:
    """The packets in flight of all flows, without those lost or held by a receiver (``moving``)."""
    packets = 0.0
    for i in range(len(flows)):
        if flows[i].in_flight > 0.0:
            packets += moving(flows[i])
    return packets


@jit
def delay(flows: Table[Sender], now: LinkState, c: float) -> float:
    """The queueing delay s at which the sum R(s) of the flows' rates is the capacity c.

    This is equation (S1). Newton's method solves it in the form 1/R(s) = 1/c, because 1/R is linear
    in s if all RTTs are equal, and nearly linear if they differ little. If all RTTs are equal, the
    equation is solved directly. The result is in seconds, and not below 0.
    """
    if flows[0].same_rtt:
        return max(in_network(flows) / c - flows[0].rtt, 0.0)
    s = now.delay
    for _ in range(50):  # limited, in case the method does not converge
        total, slope = 0.0, 0.0
        for i in range(len(flows)):
            flow = flows[i]
            if flow.in_flight > 0.0:
                per = 1.0 / (flow.rtt + s)
                rate = moving(flow) * per
                total += rate
                slope -= rate * per
        if slope == 0.0 or (s == 0.0 and total <= c):
            return 0.0
        # Newton's step for 1/R - 1/c = 0, with the slope R': s - (R/c) (R - c)/R'
        new = max(s - (total / c) * (total - c) / slope, 0.0)
        if abs(new - s) <= DELAY_ERROR * (new + 1e-6):  # 1 us: for delays near 0
            return new
        s = new
    return s


@jit
def excess_rate(flows: Table[Sender], s_max: float, c: float) -> float:
    """The sum of the flows' rates in (S1) minus the capacity, in pkt/s, if the buffer were full.

    If the result is positive, the buffer overflows. A flow's rate is the number of its packets that
    move now (``moving``), divided by its RTT at the full buffer's queueing delay ``s_max`` (s).
    ``c`` is the capacity in pkt/s.
    """
    if flows[0].same_rtt:  # every flow's record says whether all RTTs are equal
        return in_network(flows) / (flows[0].rtt + s_max) - c
    f = -c
    for i in range(len(flows)):
        flow = flows[i]
        if flow.in_flight > 0.0:
            f += moving(flow) / (flow.rtt + s_max)
    return f


@jit
def round_trip_of_train(flow: Sender, now: LinkState, c: float) -> float:
    """The RTT, in seconds, of a packet that reaches the queue now, as first of a train.

    A train consists of packets of one flow that follow one another closely. In slow start a flow's
    packets arrive as a train, faster than the link sends them. At RED more packets may then wait
    than ``now.delay`` times ``c``. If so, ``red_waiting`` is their number.
    """
    return flow.rtt + max(now.delay, now.red_waiting / c)


@jit
def burst(flow: Sender, now: LinkState, c: float) -> float:
    """How many packets of the flow's burst wait without being counted in the queueing delay.

    In slow start each ACK releases two packets, so more packets arrive than the link can send. The
    additional packets of a round trip are the burst. A recovery may also end with a burst. If the
    queueing delay has grown since the round trip began, a part of the burst is already counted in
    the delay. The function subtracts this part. ``c`` is the capacity in pkt/s.
    """
    return max(flow.burst - c * max(now.delay - flow.round_delay, 0.0), 0.0)


@jit
def train_part(flow: Sender, now: LinkState, c: float) -> float:
    """The fraction of a round trip in which the link sends the flow's packets, as one train.

    If all RTTs are equal, the n packets that a sender has in flight stay together as a train. The
    link sends this train at the beginning of the round trip, in n/c seconds. This is the fraction
    n/(c (T + s)) of the round trip; c is the capacity and T + s the RTT. The train of the ACKs
    lasts as long. If the packets are spread over the round trip (``samples_train`` is False), the
    result is 1.
    """
    if not flow.samples_train:
        return 1.0
    return min(max(flow.in_flight, 1.0) / (c * (flow.rtt + now.delay)), 1.0)


@jit
def sends_pairs(flow: Sender) -> bool:
    """Whether delayed ACKs let the flow send its packets in pairs, spread over the round trip."""
    return flow.delays_acks and not flow.in_train


@jit
def delay_alone(flows: Table[Sender], s: float, c: float) -> float:
    """The queueing delay of a packet that arrives alone, if the mean of all packets is ``s``.

    If packets arrive in pairs (``sends_pairs``), the first packet of a pair finds the same queue as
    a packet that arrives alone. The second waits for one transmission time more, 1/c. Let p packets
    per second arrive in pairs, of c packets per second in all. Then the part p/(2 c) of all packets
    waits for 1/c more, so the mean is p/(2 c^2) above the result.
    """
    pairs = 0.0  # p, packets per second
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and sends_pairs(flow):
            pairs += moving(flow) / (flow.rtt + s)
    return max(s - 0.5 * pairs / c / c, 0.0)


@jit
def hold_back(flow: Sender, now: LinkState, h: float, c: float) -> None:
    """Set ``held_back``: how many packets wait at the receiver for a delayed ACK, at most one.

    A receiver that delays its ACKs acknowledges every second packet (RFC 1122, 4.2.3.2). While the
    first of two packets waits for the second, it is neither in the queue nor on the link.
    ``hold_back_from_train`` treats flows of equal RTTs. In other cases a flow's packets are spread
    over the round trip, as pairs that follow one another at equal intervals:

    - If the window is even, the receiver acknowledges the packets of a pair together. The first
      waits only until the second arrives, at once. So no packet is held back.
    - If the window is odd, the receiver acknowledges the first packet of a pair together with the
      second of the pair before. So at nearly all times one packet is held back. But the receiver
      waits only for ``ack_pause``. If the next pair comes later, one packet per round trip waits
      for this time, and is then acknowledged alone. A packet that is alone in flight always waits
      for this time, because the sender sends no other before the ACK.

    After a loss the receiver acknowledges each packet at once, also while the sender waits for its
    retransmission timer. ``h`` is the length of the step in seconds. ``c`` is the link's capacity
    in pkt/s.
    """
    delays = flow.undetected <= 0.0 and flow.recovery_left <= 0.0 and not flow.in_slow_start
    delays = delays and flow.timeout_ends <= now.time
    if flow.in_train:
        hold_back_from_train(flow, now, delays, h, c)
        return
    trip, odd = flow.rtt + now.delay, np.floor(flow.in_flight) % 2.0
    # If n packets are in flight and n is odd, (n + 1)/2 pairs come in a round trip. ``joins`` says
    # whether the next pair comes within ``ack_pause``. If it does not, one packet per round trip
    # waits alone for ``ack_pause``, and ``alone`` is the part of the time in which it waits.
    joins = flow.in_flight > 1.0 and 2.0 * trip < (flow.in_flight + 1.0) * flow.ack_pause
    alone = flow.ack_pause / (trip + flow.ack_pause)
    flow.held_back = odd * delays * (1.0 if joins else alone)
    flow.lacks = flow.held_back if joins else 0.0


@jit
def hold_back_from_train(flow: Sender, now: LinkState, delays: bool, h: float, c: float) -> None:
    """When a round trip starts, set whether the receiver will hold back a packet after its train.

    If all RTTs are equal, a flow's packets follow one another as a train. If the window is odd, the
    last packet of the train waits at the receiver for the first packet of the next train. While it
    waits, trains of other flows find the queue shorter by one packet than this flow's own train.
    The first ACK of the next train is for two packets, and releases two at once. (``early_ago`` is
    the time since such a train began, in seconds.)

    The receiver waits only for ``ack_pause``. If the next train comes later, the receiver
    acknowledges the packet alone. The ACK releases a new packet, which arrives between two trains,
    and which the receiver then holds back. So in this case, too, the model assumes that a packet is
    held back all the time between two trains.

    ``held_back`` is the number of packets held back, 0 or 1. If it is 1 and the next train comes in
    time, the train of ACKs is one ACK shorter than the train of packets (``lacks``).

    ``delays`` says whether the receiver delays its ACKs now. ``h`` is the length of the step in
    seconds. ``c`` is the capacity in pkt/s.
    """
    trip = flow.rtt + now.delay
    began = (flow.round_part - 1.0) * trip + h  # seconds ago, at the end of this step
    if began < 0.0:  # no round trip starts in this step
        return
    # a little more than ``began``, because 0 means that no such train began in this step
    flow.early_ago = began + WINDOW_ERROR if flow.held_back > 0.0 else 0.0
    whole = flow.in_flight % 1.0 == 0.0  # not while it falls to a smaller window
    flow.held_back = flow.in_flight % 2.0 if delays and whole else 0.0
    joins = trip - flow.in_flight / c < flow.ack_pause  # the next train comes in time
    flow.lacks = flow.held_back if joins else 0.0


@jit
def red_probability(link: Bottleneck, average: float) -> float:
    """RED's base drop probability p_b at the average queue ``average``, in packets.

    It is 0 below the lower threshold, and rises linearly to ``max_probability`` at the upper one.
    Above that it is 1. With ``gentle`` it rises linearly there, too, to 1 at twice the threshold.
    """
    low, high, p_max = link.min_threshold, link.max_threshold, link.max_probability
    if average < low:
        return 0.0
    if average < high:
        return p_max * (average - low) / (high - low)
    if link.gentle and average < 2.0 * high:
        return p_max + (1.0 - p_max) * (average - high) / high
    return 1.0
