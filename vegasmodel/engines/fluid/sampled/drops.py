"""Whose packets are lost: at the full buffer, by RED, by chance."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import jit
from vegasmodel.engines.fluid.sampled.queue import burst, excess_rate, red_probability
from vegasmodel.engines.fluid.sampled.records import SAME, TIGHT, Records, Road
from vegasmodel.metrics import Floats

NEVER = 1e300


@jit
def seed(number: int) -> None:
    """Begin the draws of RED and of random loss, in this thread."""
    np.random.seed(number)


@jit
def lose(flows: Records, i: int, packets: float) -> None:
    """Packets of flow i are lost; a round trip later it hears of the first.

    None: an overflow of smooth windows, in which each that grows loses one and is cut at once.
    """
    flows[i].lost += packets
    flows[i].gone += max(packets, 1.0)
    flows[i].still = 0.0
    if flows[i].hear <= 0.0:
        flows[i].hear = 1.0


@jit
def victim(flows: Records, clock: Floats) -> int:
    """A packet that arrives now, drawn by the flows' rates."""
    total, s, last = 0.0, clock[1], 0
    for i in range(flows.size):
        if flows[i].on:
            total += flows[i].flight / (flows[i].rtt + s)
    left = np.random.random() * total
    for i in range(flows.size):
        if flows[i].on and flows[i].flight > 0.0:
            last = i
            left -= flows[i].flight / (flows[i].rtt + s)
            if left <= 0.0:
                return i
    return last


@jit
def drop_at_random(flows: Records, clock: Floats, link: Road, packets: float) -> None:
    """Random loss and RED, of so many arrivals.

    RED (Floyd and Jacobson 1993; ns-2's ``wait_``): the number of packets between two drops is
    uniform on 1/p .. 2/p, so the next falls when the sum of p since the last is uniform on 1 .. 2.
    """
    if link.loss > 0.0:
        clock[5] -= packets * -np.log1p(-link.loss)
        while clock[5] <= 0.0:
            clock[5] += -np.log(1.0 - np.random.random())
            lose(flows, victim(flows, clock), 1.0)
    if link.red:
        waits = max(link.capacity * clock[1] - 0.5, 0.0)
        clock[2] += (1.0 - (1.0 - link.weight) ** packets) * (waits - clock[2])
        chance = red_probability(link, clock[2]) if waits > 1.0 else 0.0
        if chance <= 0.0:
            clock[3] = 0.0
            return
        clock[3] += packets * chance
        while clock[3] >= clock[4]:
            clock[3] -= clock[4]
            clock[4] = 1.0 + np.random.random()
            lose(flows, victim(flows, clock), 1.0)


@jit
def overflow_of_bursts(flows: Records, i: int, clock: Floats, link: Road) -> None:
    """Packets of a slow start's train, and one of a sender that has woken, at a full buffer."""
    if flows[i].slow and flows[i].grown > 0.0:
        over = link.capacity * clock[1] + burst(flows, clock, i, link.capacity) - link.room
        over = min(np.ceil(over - SAME), flows[i].grown)
        if over > 0.0:
            flows[i].grown -= over
            flows[i].spilt += over
            lose(flows, i, over)
    # the only packet of a sender that has woken comes at any moment of a transmission
    alone = flows[i].grown == flows[i].flight == 1.0
    if alone and link.capacity * clock[1] + np.random.random() <= link.room:
        flows[i].grown = 0.0


@jit
def last_to_grow(flows: Records) -> int:
    """The flow whose packet on top of those that ACKs let go left last; -1: none is left.

    Of several that left at one instant, as those of like flows do, any: packets have an order.
    """
    last, which, like = np.inf, -1, 0.0
    for i in range(flows.size):
        if flows[i].on and flows[i].grown > SAME:
            over = flows[i].window - flows[i].flight + flows[i].spilt
            ago = over / flows[i].pace if flows[i].pace > 0.0 else NEVER
            if ago < last - SAME * last or which < 0:
                last, which, like = ago, i, 1.0
            elif ago <= last + SAME * last:
                like += 1.0
                which = i if np.random.random() * like < 1.0 else which
    return which


@jit
def overflow(flows: Records, clock: Floats, link: Road, smooth: bool) -> None:
    """Packets that find the buffer full: those that left last; if windows are smooth, one of each.

    Who stands or falls sends one packet an ACK, so it finds the place that its last packet left.
    Not so where senders wait at random: a wait is up to ``wait`` transmission times, and in each of
    these the place may go to whoever comes.  ACKs of one RTT come a transmission apart, so waits
    of at most that leave their order as it is.
    """
    for i in range(flows.size):
        flows[i].spilt = 0.0
        if flows[i].on and not smooth:
            overflow_of_bursts(flows, i, clock, link)
    s_max = link.room / link.capacity
    while excess_rate(flows, s_max, link.capacity) > TIGHT * link.capacity:
        which = last_to_grow(flows)
        if which < 0:
            return
        if smooth:
            for i in range(flows.size):
                # about a threshold a window goes to and fro: it slides there and does not grow
                if flows[i].on and flows[i].grown > 0.0 and flows[i].paced > 0.0:
                    lose(flows, i, 0.0)
            return
        flows[which].grown -= 1.0
        flows[which].spilt += 1.0
        if link.wait > 0.0 and np.random.random() < link.wait:
            other = victim(flows, clock)
            if link.wait > 1.0 or flows[other].rtt != flows[which].rtt:
                which = other  # by then the place is another's
        lose(flows, which, 1.0)
