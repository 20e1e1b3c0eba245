"""Drops packets where the trains of several flows meet, although the link is idle at other times.

A train consists of the packets that one flow has in flight. While the windows do not fill the link,
these packets stay close together, because ACKs return at the rate at which the link sent the
packets (Jacobson 1988, self-clocking). The train passes the queue once per round trip (Zhang,
Shenker and Clark 1991, clustering). Trains of flows with different RTTs sometimes meet at the
queue. Then packets arrive faster than the link sends them, and a small buffer overflows.

The package ``sampled`` computes the queueing delay from the windows. While the windows do not fill
the link, this delay is 0. So this module counts separately how many packets, q, wait because trains
meet. The first and the last packet of a train each wait q/c seconds, where c is the capacity.
Between these two the packets of the train arrive at an even rate.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.drops import draw, draw_normal, lose
from vegasmodel.engines.fluid.sampled.records import GAMMA, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare

LOOK = 0.1  # round trips after which a flow that had no packets in flight is looked at again
FAR = 4.0  # standard deviations; farther from a full buffer chance does not matter
MOST = 64  # flows; the trains of more flows overlap so often that their sum is nearly even


@rare
def meetings_matter(flows: Table[Sender], link: Bottleneck) -> bool:
    """Whether trains of packets can meet at the queue and fill the buffer.

    A train is the packets in flight of one flow, which stay together while the windows do not fill
    the link.  The result is True if all these conditions hold:

    - Some RTTs differ.
    - The buffer is smaller than what the link sends in the longest RTT.  While the windows do not
      fill the link, fewer packets than this are in flight.  So trains cannot fill a larger buffer.
    - Some flow is not Vegas.  If all are, their trains grow slowly, and stretch when they meet,
      until the windows fill the link.
    - There are at most ``MOST`` flows.
    """
    differ, grows, longest = False, False, 0.0
    for i in range(flows.shape[0]):
        differ = differ or flows[i].rtt != flows[0].rtt
        grows = grows or flows[i].slow_start != GAMMA
        longest = max(longest, flows[i].rtt)
    small = link.room < link.capacity * longest
    return differ and grows and small and flows.shape[0] <= MOST


@rare
def begin_train(flow: Sender, now: LinkState, c: float) -> None:
    """Let a flow that starts send its first train of packets now."""
    flow.arriving, flow.train, flow.train_rate = False, flow.in_flight, 0.0
    flow.front, flow.end = now.time, now.time + flow.in_flight / c


@jit
def begins(flow: Sender, now: LinkState, t: float, wait: float, link: Bottleneck) -> bool:
    """Begin the train of packets whose first packet arrives at the queue at time ``t``.

    A train is the packets in flight of one flow. Its first packet waits ``wait`` seconds in the
    queue. Returns False if no packet arrives at ``t``, for example because ACKs release nothing
    just after a cut; the first packet then comes later.

    From one round trip to the next the train keeps its length in seconds. But this length is at
    least the time that the link needs to send the train's packets. In slow start and in a recovery
    from several losses it is equal to this time.

    If the sender waits a random time, up to J seconds, before each packet, without changing their
    order, a train grows by J/2 per round trip on average. The reason is that the first packet waits
    J/2 on average, but the longest wait among the following packets is nearly J.
    """
    n = flow.in_flight - flow.undetected
    if n < 0.5:
        flow.front += LOOK * flow.rtt
        flow.end, flow.train = flow.front, 0.0
        return False
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

    The number of drops is ``over``, randomly rounded up or down to a whole number. They occur
    ``ago`` seconds before the end of this step. For each drop, two flows whose trains arrive now
    are drawn at random. Of two packets that arrive between two departures from the full queue, the
    later one is lost, as in ``drops.loser``. Trains of equal RTTs keep their distance and do not
    meet. So nothing is dropped if all trains that arrive have the same RTT.
    """
    low, high = np.inf, 0.0
    for i in range(flows.shape[0]):
        if flows[i].active and flows[i].arriving:
            low, high = min(low, flows[i].rtt), max(high, flows[i].rtt)
    if low == high:
        return
    for _ in range(int(over + draw(now))):
        i = arriving(flows, now, -1)
        j = arriving(flows, now, i)
        if j >= 0 and place(flows[j], now, link) > place(flows[i], now, link):
            i = j
        if flows[i].in_flight - flows[i].undetected >= 1.0:
            lose(flows[i], now, 1.0, ago)


@rare
def arriving(flows: Table[Sender], now: LinkState, but: int) -> int:
    """Draw a flow whose train arrives now, with a probability in proportion to the train's rate.

    Flow ``but`` is left out; -1 leaves out none. The result is -1 if no other flow's train arrives.
    """
    total = now.trains_rate - (flows[but].train_rate if but >= 0 else 0.0)
    left, last = draw(now) * total, -1
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and flow.arriving and i != but:
            last = i
            left -= flow.train_rate
            if left <= 0.0:
                break
    return last


@jit
def place(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """The time from a departure at the queue to the next arrival of a packet of the train.

    The unit is the time in which the link sends a packet. Without random waits, the packets of a
    train follow one another at the link's rate, so each arrives at the same time after a departure.
    """
    return (flow.phase + link.max_wait * draw(now)) % 1.0


@rare
def count_trains(flows: Table[Sender], now: LinkState, c: float) -> None:
    """Add up the rates of the trains that arrive now, after a flow has started or stopped."""
    now.trains, now.trains_rate, now.trains_variance = 0, 0.0, 0.0
    now.trains_time = now.trains_due = now.time
    for i in range(flows.shape[0]):
        if flows[i].active and flows[i].arriving:
            change_rate(now, flows[i].train_rate, c, 1)


@jit
def change_rate(now: LinkState, r: float, c: float, trains: int) -> None:
    """Add a train of rate ``r`` to the trains that arrive now, or remove it from them.

    ``trains`` is 1 to add the train and -1 to remove it. ``c`` is the capacity.
    """
    now.trains += trains
    now.trains_rate += trains * r
    now.trains_variance += trains * r * (1.0 - r / c)
    if now.trains == 0:
        now.trains_rate = now.trains_variance = 0.0  # no rounding errors remain


@jit
def meet(flows: Table[Sender], now: LinkState, link: Bottleneck, h: float) -> None:
    """Move the trains on by ``h`` seconds; drop packets where trains meet at a full buffer.

    Let r_i be the rates of the trains that arrive. The queue q grows at the sum of r_i less the
    capacity c. A train that others have stretched has gaps: in each transmission time a packet
    arrives with probability r_i/c. So the number of packets that arrive in a time t has the
    variance r_i (1 - r_i/c) t. If several trains arrive, a normal random number of mean 0 is added
    to q. Its variance is the sum of the trains' variances.

    While the windows fill the link on average, the functions in ``drops`` drop packets instead.
    """
    c, stop, fills = link.capacity, now.time + h, now.delay > 0.0
    while now.trains_due <= stop:
        first, which = np.inf, -1
        for i in range(flows.shape[0]):
            flow = flows[i]
            if flow.active:
                due = flow.end if flow.arriving else flow.front
                if due < first:
                    first, which = due, i
        now.trains_due = first
        if first > stop:
            return
        t = max(first, now.trains_time)
        passed = t - now.trains_time
        q = now.trains_queue + (now.trains_rate - c) * passed
        if now.trains > 1 and not fills:
            deviation = np.sqrt(max(now.trains_variance, 0.0) * passed)
            if q + FAR * deviation > link.room:
                q += deviation * draw_normal(now)
            if q > link.room:
                drop_where_trains_meet(flows, now, link, q - link.room, stop - t)
        now.trains_queue, now.trains_time = max(min(q, link.room), 0.0), t
        flow = flows[which]
        wait = now.trains_queue / c
        if flow.arriving:
            flow.arriving, flow.end = False, t + flow.rtt + wait
            change_rate(now, flow.train_rate, c, -1)
        elif begins(flow, now, t, wait, link):
            change_rate(now, flow.train_rate, c, 1)
