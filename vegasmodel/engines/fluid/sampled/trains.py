"""Drops packets where trains of several flows meet, although the link is idle at other times.

A train consists of the packets that one flow has in flight. While the windows do not fill the link,
these packets stay close together, because ACKs return at the rate at which the link sent the
packets (Jacobson 1988, self-clocking). The train passes the queue once per round trip (Zhang,
Shenker and Clark 1991, clustering). Trains of flows with different RTTs sometimes meet at the
queue. Then packets arrive faster than the link sends them, and a small buffer overflows.

The package ``sampled`` computes the queueing delay from the windows. While the windows do not fill
the link, this delay is 0. So this module counts separately how many packets wait because trains
meet. It follows the first and the last packet of each train. If such a packet finds q packets in
the queue, it waits for q/c seconds, where c is the capacity. The module assumes that the other
packets of the train arrive evenly between the first and the last.

In the functions, ``now`` is the link's present state, ``link`` has its constants, and ``c`` is its
capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import draw, draw_normal
from vegasmodel.engines.fluid.sampled.drops import lose
from vegasmodel.engines.fluid.sampled.loser import differ
from vegasmodel.engines.fluid.sampled.records import Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare

# round trips after which ``train_begins`` tries again if a flow has no packets in flight
LOOK = 0.1
FAR = 4.0  # standard deviations: chance does not matter if the buffer is this far from full
MOST_FLOWS = 64  # flows: trains of more flows overlap so often that packets arrive almost evenly


def meetings_matter(flows: np.ndarray, room: float, capacity: float) -> bool:
    """Whether trains of packets can meet at the queue and fill the buffer.

    ``flows`` are records of ``Sender``. ``room`` is the number of packets that can wait.

    A train is the packets in flight of one flow, which stay together while the windows do not fill
    the link. The result is True if all these conditions hold:

    - The RTTs are not all equal. Trains of equal RTTs keep their distance and do not meet.
    - The buffer holds less than the link sends in the longest RTT. A larger buffer cannot become
      full: it has room for all packets in flight, while the windows do not fill the link.
    - Some flow is not Vegas. Trains of Vegas grow so slowly that they do not fill the buffer.
    - There are at most ``MOST_FLOWS`` flows. More trains overlap so often that packets arrive
      almost evenly.
    """
    longest = flows["rtt"].max()
    # only Vegas decides once per round trip whether its slow start ends
    differ, grows = flows["rtt"].min() < longest, not np.all(flows["decides_slow_start"])
    return bool(differ and grows and room < capacity * longest and flows.size <= MOST_FLOWS)


@rare
def begin_train(flow: Sender, now: LinkState, c: float) -> None:
    """Let a flow that starts send its first train of packets now."""
    flow.arriving, flow.train, flow.train_rate = False, flow.in_flight, 0.0
    flow.front, flow.end = now.time, now.time + flow.in_flight / c


@jit
def train_begins(flow: Sender, now: LinkState, t: float, wait: float, link: Bottleneck) -> bool:
    """Begin the train of packets whose first packet arrives at the queue at time ``t`` (seconds).

    A train is the packets in flight of one flow. Its first packet waits ``wait`` seconds in the
    queue. Returns False if no packet arrives at ``t``. This happens for example just after the
    window is cut, when ACKs release no packets; the train then begins later.

    A train takes as many seconds to pass as in the last round trip, but at least as many as the
    link needs to send its packets. In slow start, and in a recovery from several losses, it takes
    just the time in which the link sends its packets.

    A sender may wait a random time of up to J seconds before each packet. Its train then takes J/2
    seconds longer in each round trip: the first packet is late by J/2 on average, but the last by
    nearly J.
    """
    n = flow.in_flight - flow.undetected
    if n < 0.5:  # no packet is in flight: look again a little later
        flow.front += LOOK * flow.rtt
        flow.end, flow.train = flow.front, 0.0
        return False
    # ``anew`` says that the length of the train does not depend on that of the last round trip
    anew = flow.in_slow_start or (flow.recovery_left > 0.0 and flow.holes > 1.0)
    if n < flow.train and flow.end > t and not anew:
        # After the window is cut, ACKs release nothing at first: the train's front is missing.
        flow.front = t + (flow.end - t) * (1.0 - n / flow.train)
        flow.train = n
        return False
    least, spread = n / link.capacity, 0.5 * link.max_wait / link.capacity
    flow.phase = draw(now)
    length = least if anew else max(flow.end - t + spread, least)
    flow.front = t + flow.rtt + wait
    flow.end = min(t + length, flow.front)
    flow.arriving, flow.train, flow.train_rate = True, n, n / length
    return True


@rare
def drop_where_trains_meet(
    flows: Table[Sender], now: LinkState, link: Bottleneck, over: float, ago: float
) -> None:
    """Drop packets because trains of packets meet at a full queue.

    A train is the packets in flight of one flow. The number of drops is ``over``, randomly rounded
    up or down to a whole number. The drops occur ``ago`` seconds before the end of this step.

    For each drop, two flows whose trains arrive now are drawn at random. A departure from the full
    queue makes room for one packet. One packet of each of the two flows arrives before the next
    departure, and the later of them is lost.

    Trains of equal RTTs keep their distance and do not meet. So nothing is lost if all trains that
    arrive have the same RTT, and seldom if their RTTs hardly differ (``loser.differ``).
    """
    low, high = np.inf, 0.0  # least and greatest RTT of the trains that arrive
    for i in range(len(flows)):
        if flows[i].active and flows[i].arriving:
            low, high = min(low, flows[i].rtt), max(high, flows[i].rtt)
    if not differ(low, high, now, link):
        return
    for _ in range(int(over + draw(now))):
        i = draw_arriving(flows, now, -1)
        j = draw_arriving(flows, now, i)
        if j >= 0 and arrival_phase(flows[j], now, link) > arrival_phase(flows[i], now, link):
            i = j
        if flows[i].in_flight - flows[i].undetected >= 1.0:
            lose(flows[i], now, link, 1.0, ago)


@rare
def draw_arriving(flows: Table[Sender], now: LinkState, without: int) -> int:
    """Draw a flow whose packets arrive now, with a probability in proportion to their rate.

    The packets of a flow arrive one behind the other, as a train. Flow ``without`` is left out; -1
    leaves out none. The result is -1 if no other flow's train arrives.
    """
    total = now.trains_rate - (flows[without].train_rate if without >= 0 else 0.0)
    remaining, last = draw(now) * total, -1
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and flow.arriving and i != without:
            last = i
            remaining -= flow.train_rate
            if remaining <= 0.0:
                break
    return last


@jit
def arrival_phase(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """The time from a departure from the queue until the next packet of a flow's train arrives.

    Of two packets that arrive between the same two departures, the later one may be lost. The unit
    is the time in which the link sends a packet. The packets of a train follow one another at the
    link's rate, so the result is the same for all of them. It varies only if the sender waits a
    random time before each packet.
    """
    return (flow.phase + link.max_wait * draw(now)) % 1.0


@rare
def count_trains(flows: Table[Sender], now: LinkState, c: float) -> None:
    """After a flow has started or stopped, add up the rates at which flows' packets arrive now."""
    now.recount = False
    now.trains, now.trains_rate, now.trains_variance = 0, 0.0, 0.0
    now.trains_time = now.trains_due = now.time
    for i in range(len(flows)):
        if flows[i].active and flows[i].arriving:
            change_rate(now, flows[i].train_rate, c, 1)


@jit
def change_rate(now: LinkState, r: float, c: float, trains: int) -> None:
    """Add a train with the rate ``r`` to the sums over all trains that arrive now, or remove it.

    A train is the packets in flight of one flow. ``trains`` is 1 to add the train and -1 to remove
    it. ``r`` and the capacity ``c`` are in pkt/s.
    """
    now.trains += trains
    now.trains_rate += trains * r
    now.trains_variance += trains * r * (1.0 - r / c)
    if now.trains == 0:
        now.trains_rate = now.trains_variance = 0.0  # no rounding errors remain


@jit
def next_event(flows: Table[Sender]) -> tuple[float, int]:
    """When the next train begins or ends at the queue, and which flow's train this is.

    Without active flows the time is infinite and the flow -1.
    """
    first, which = np.inf, -1
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            due = flow.end if flow.arriving else flow.front
            if due < first:
                first, which = due, i
    return first, which


@jit
def meet(flows: Table[Sender], now: LinkState, link: Bottleneck, h: float) -> None:
    """Move the trains on by ``h`` seconds; drop packets where trains meet at a full buffer.

    A train is the packets in flight of one flow. Let r_i be the rates at which trains arrive at the
    queue, and c the capacity. The queue q grows at the rate sum_i r_i - c.

    When trains pass the queue at the same time, their packets mix. Each train then takes longer and
    has gaps: in the time in which the link sends a packet, a packet of the train arrives with
    probability r_i/c. The number of its packets that arrive in a time t then has the variance
    r_i (1 - r_i/c) t. If several trains arrive and the buffer is nearly full, a normal random
    number of mean 0 is added to q. Its variance is the sum of the trains' variances.

    If the windows fill the link, equation (S1) of the package ``sampled`` gives the queue. Nothing
    is dropped here then: the module ``drops`` does that.

    The function goes through the events of the ``h`` seconds in the order of their times. An event
    is that a train begins to arrive, or has arrived. Between events the sums over all trains that
    arrive are constant: their number ``trains``, rate ``trains_rate`` and variance
    ``trains_variance``.
    """
    c, stop = link.capacity, now.time + h
    fills = now.delay > 0.0  # the windows fill the link
    if now.recount:
        count_trains(flows, now, c)
    while now.trains_due <= stop:
        first, which = next_event(flows)  # its time, and the flow whose train begins or ends
        now.trains_due = first
        if first > stop:
            break
        # the queue at this event; ``passed`` seconds after it was computed last
        t = max(first, now.trains_time)
        passed = t - now.trains_time
        q = c * now.delay if fills else now.trains_queue + (now.trains_rate - c) * passed
        if now.trains > 1 and not fills:
            deviation = np.sqrt(max(now.trains_variance, 0.0) * passed)
            if q + FAR * deviation > link.room:
                q += deviation * draw_normal(now)
            if q > link.room:
                drop_where_trains_meet(flows, now, link, q - link.room, stop - t)
        now.trains_queue, now.trains_time = max(min(q, link.room), 0.0), t
        # the event itself; the packet that arrives now waits for the queue ahead of it
        flow = flows[which]
        wait = now.trains_queue / c
        if flow.arriving:  # the last packet of the train; the next train ends a round trip later
            flow.arriving, flow.end = False, t + flow.rtt + wait
            change_rate(now, flow.train_rate, c, -1)
        elif train_begins(flow, now, t, wait, link):  # the first packet of a train
            change_rate(now, flow.train_rate, c, 1)
    if fills:
        now.trains_queue, now.trains_time = min(c * now.delay, link.room), stop
