"""Whose packets are lost: at the full buffer, by RED, by chance."""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.queue import RATE_ERROR, burst, excess_rate, red_probability
from vegasmodel.engines.fluid.sampled.records import WINDOW_ERROR, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit

NEVER = 1e300  # seconds ago


@jit
def seed(number: int) -> None:
    """Begin the draws of RED and of random loss, in this thread."""
    np.random.seed(number)


@jit
def draw(now: LinkState) -> float:
    """A uniform draw on 0 .. 1, which is counted."""
    now.draws += 1
    return np.random.random()


@jit
def lose(flow: Sender, packets: float) -> None:
    """Packets of flow i are lost; a round trip later it hears of the first.

    None: an overflow of smooth windows, in which each that grows loses one and is cut at once.
    """
    flow.undetected += packets
    flow.lost += max(packets, 1.0)
    flow.rounds_at_rest = 0.0
    if flow.detection_in <= 0.0:
        flow.detection_in = 1.0


@jit
def victim(flows: Table[Sender], now: LinkState) -> int:
    """A packet that arrives now, drawn by the flows' rates."""
    total, s, last = 0.0, now.delay, 0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active:
            total += flow.in_flight / (flow.rtt + s)
    left = draw(now) * total
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and flow.in_flight > 0.0:
            last = i
            left -= flow.in_flight / (flow.rtt + s)
            if left <= 0.0:
                return i
    return last


@jit
def drop_at_random(flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float) -> None:
    """Random loss and RED, of so many arrivals.

    RED (Floyd and Jacobson 1993; ns-2's ``wait_``): the number of packets between two drops is
    uniform on 1/p .. 2/p, so the next falls when the sum of p since the last is uniform on 1 .. 2.
    """
    if link.loss > 0.0:
        now.loss_gap -= packets * -np.log1p(-link.loss)
        while now.loss_gap <= 0.0:
            now.loss_gap += -np.log(1.0 - draw(now))
            lose(flows[victim(flows, now)], 1.0)
    if link.red:
        waits = max(link.capacity * now.delay - 0.5, 0.0)
        now.red_average += (1.0 - (1.0 - link.weight) ** packets) * (waits - now.red_average)
        chance = red_probability(link, now.red_average) if waits > 1.0 else 0.0
        if chance <= 0.0:
            now.red_passed = 0.0
            return
        now.red_passed += packets * chance
        while now.red_passed >= now.red_gap:
            now.red_passed -= now.red_gap
            now.red_gap = 1.0 + draw(now)
            lose(flows[victim(flows, now)], 1.0)


@jit
def overflow_of_bursts(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Packets of a slow start's train, and one of a sender that has woken, at a full buffer."""
    if flow.in_slow_start and flow.extra > 0.0:
        over = link.capacity * now.delay + burst(flow, now, link.capacity) - link.room
        over = min(np.ceil(over - WINDOW_ERROR), flow.extra)
        if over > 0.0:
            flow.extra -= over
            flow.extra_lost += over
            lose(flow, over)
    # the only packet of a sender that has woken comes at any moment of a transmission
    alone = flow.extra == flow.in_flight == 1.0
    if alone and link.capacity * now.delay + draw(now) <= link.room:
        flow.extra = 0.0


@jit
def last_to_grow(flows: Table[Sender], now: LinkState) -> int:
    """The flow whose packet on top of those that ACKs let go left last; -1: none is left.

    Of several that left at one instant, as those of like flows do, any: packets have an order.
    """
    last, which, like = np.inf, -1, 0.0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active and flow.extra > WINDOW_ERROR:
            over = flow.cwnd - flow.in_flight + flow.extra_lost
            ago = over / flow.growth if flow.growth > 0.0 else NEVER
            if ago < last - WINDOW_ERROR * last or which < 0:
                last, which, like = ago, i, 1.0
            elif ago <= last + WINDOW_ERROR * last:
                like += 1.0
                which = i if draw(now) * like < 1.0 else which
    return which


@jit
def phase(flow: Sender, now: LinkState, link: Bottleneck) -> float:
    """When packets of a flow come after a departure, in transmission times of the link, 0 .. 1.

    ACKs clock them out, so they come a round trip after a departure, and the sender's wait.
    """
    return (flow.rtt * link.capacity + link.max_wait * draw(now)) % 1.0


@jit
def loser(flows: Table[Sender], grew: int, now: LinkState, link: Bottleneck) -> int:
    """Whose packet finds the buffer full, when flow ``grew`` has sent one too many.

    A departure makes room for one packet.  Two that come before the next are two of a window that
    grew, or of two flows whose RTTs differ: packets of one RTT keep a transmission time between
    them.  Chance brings the latter together; the later one is lost (Floyd and Jacobson 1992, on
    phase effects).
    """
    alike, growth = True, 0.0
    for i in range(flows.shape[0]):
        flow = flows[i]
        if flow.active:
            alike = alike and flow.rtt == flows[grew].rtt
            growth += max(flow.growth, 0.0)
    if alike:
        # waits of more than a transmission change their order
        return victim(flows, now) if link.max_wait > 1.0 else grew
    meetings = 0.5 * link.capacity  # of two packets, a second
    while draw(now) * (meetings + growth) < meetings:
        i, j = victim(flows, now), victim(flows, now)
        if flows[i].rtt != flows[j].rtt:
            return i if phase(flows[i], now, link) > phase(flows[j], now, link) else j
    return grew


@jit
def overflow(flows: Table[Sender], now: LinkState, link: Bottleneck, smooth: bool) -> None:
    """Packets that find the buffer full: those that left last; if windows are smooth, one of each.

    Who stands or falls sends one packet an ACK, so it finds the place that its last packet left,
    unless another was there first (``loser``).
    """
    for i in range(flows.shape[0]):
        flow = flows[i]
        flow.extra_lost = 0.0
        if flow.active and not smooth:
            overflow_of_bursts(flow, now, link)
    s_max = link.room / link.capacity
    while excess_rate(flows, s_max, link.capacity) > RATE_ERROR * link.capacity:
        which = last_to_grow(flows, now)
        if which < 0:
            return
        if smooth:
            for i in range(flows.shape[0]):
                flow = flows[i]
                # about a threshold a window goes to and fro: it slides there and does not grow
                if flow.active and flow.extra > 0.0 and flow.growth_before > 0.0:
                    lose(flow, 0.0)
            return
        flows[which].extra -= 1.0
        flows[which].extra_lost += 1.0
        lose(flows[loser(flows, which, now, link)], 1.0)
