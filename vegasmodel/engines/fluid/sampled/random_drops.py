"""Drops packets by RED and by random loss, in each time step of ``fluid``.

RED computes an average of the queue with each packet that arrives, and a drop probability p from
the average. While p is 0, a formula gives the average after a step. Otherwise, and while a burst of
packets waits in the queue, packets arrive one by one.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import draw, victim
from vegasmodel.engines.fluid.sampled.drops import lose
from vegasmodel.engines.fluid.sampled.queue import red_probability
from vegasmodel.engines.fluid.sampled.records import Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit, rare


@jit
def drop_at_random(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, s: float
) -> None:
    """Drop some of the ``packets`` that arrive in a step, by random loss and by RED.

    ``s`` is the queueing delay at the beginning of the step.

    Random loss hits each packet with the same probability. In this model the number of packets
    between two losses is a real number with an exponential distribution.
    """
    if link.loss > 0.0:
        now.loss_gap -= packets * link.loss
        while now.loss_gap <= 0.0:
            now.loss_gap += -np.log(1.0 - draw(now))
            lose(flows[victim(flows, now)], now, link, 1.0, 0.5 * now.step)
    if link.red:
        arrive_at_red(flows, now, link, packets, s)


@jit
def arrive_at_red(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, s: float
) -> None:
    """Let the ``packets`` of a step arrive at RED, and the bursts of this step at its end.

    A burst consists of packets that one ACK releases, for example at the end of a recovery in which
    the sender has repaired losses hole by hole. The queue is then longer than the queueing delay s
    of equation (S1) says, which spreads the packets in flight evenly over the round trip. In the
    next round trip ACKs release fewer packets, because the ACKs of the burst come only at the end
    of that round trip.
    """
    c, bursts = link.capacity, now.red_waiting > 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if flow.bunch_left > 0.0:
            trips = now.step / (flow.rtt + s)
            packets -= min(flow.bunch * min(trips, flow.bunch_left), packets)
            flow.bunch_left -= trips
            flow.bunch = flow.bunch if flow.bunch_left > 0.0 else 0.0
        bursts = bursts or (flow.active and flow.at_once > 1.0)
    before, after = max(c * s - 0.5, 0.0), max(c * now.delay - 0.5, 0.0)
    longest = max(before, after)
    if not bursts and (longest <= 1.0 or max(now.red_average, longest) < link.min_threshold):
        times = max(packets, c * now.step) if longest == 0.0 else packets
        part = 1.0 - (1.0 - link.weight) ** times
        now.red_average += part * (0.5 * (before + after) - now.red_average)
        now.red_count = -1.0
        return
    queue = max(now.red_waiting, before)
    served = c * now.step if bursts or longest == 0.0 else before + packets - after
    queue = one_by_one(flows, now, link, packets, queue, served)
    for i in range(len(flows)):
        if flows[i].active and flows[i].at_once > 1.0:
            queue = burst_arrives(flows[i], now, link, queue)
    now.red_waiting = queue if bursts and queue > c * now.delay + 1.0 else 0.0


@rare
def one_by_one(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, queue: float,
    served: float,
) -> float:  # fmt: skip
    """Let the ``packets`` of a step arrive one by one; returns how many packets then wait.

    ``queue`` packets wait when the step begins, and in the step the link can send ``served``
    packets. Only whole packets arrive. The rest of ``packets`` is kept for later steps.
    """
    now.red_part += packets
    arrive = np.floor(now.red_part)
    now.red_part -= arrive
    each = served / max(packets, 1.0)
    for k in range(int(arrive)):
        if dropped(now, link, queue):
            lose(flows[victim(flows, now)], now, link, 1.0, now.step * (1.0 - k / arrive))
        else:
            queue += 1.0
        queue = after_service(now, link, queue - each)
    return queue if arrive > 0.0 else after_service(now, link, queue - served)


@rare
def burst_arrives(flow: Sender, now: LinkState, link: Bottleneck, queue: float) -> float:
    """Let a burst of the flow arrive at once; returns how many packets then wait.

    ``queue`` is the number of packets that wait before the burst arrives.
    """
    flow.bunch, flow.bunch_left = 0.0, 1.0
    for _ in range(int(flow.at_once)):
        if dropped(now, link, queue):
            lose(flow, now, link, 1.0, 0.0)
        else:
            queue += 1.0
            flow.bunch += 1.0
    return queue


@jit
def after_service(now: LinkState, link: Bottleneck, queue: float) -> float:
    """Correct the number of waiting packets, ``queue``, if it has become negative; returns it.

    If ``queue`` is below 0, the link has been idle, and the result is 0. RED's average then falls
    as if packets had arrived at the rate of the link.
    """
    if queue < 0.0:
        now.red_average *= (1.0 - link.weight) ** -queue
    return max(queue, 0.0)


@jit
def dropped(now: LinkState, link: Bottleneck, queue: float) -> bool:
    """Let a packet arrive that finds ``queue`` packets waiting; returns whether it is dropped.

    It is dropped if the buffer is full, or by RED. RED drops packets only while more than one
    waits. Let p be RED's base probability (``red_probability``), and n the number of packets since
    the last drop. The packet at which p rises above 0 passes, and the count begins with it. As in
    ns-2 with ``wait_`` (``modify_p`` in red.cc), a packet passes if n p < 1, and is dropped with
    the probability p/(2 - n p) if 1 <= n p < 2.
    """
    now.red_average += link.weight * (queue - now.red_average)
    if queue >= link.room:
        now.red_count, now.red_passes = 0.0, 1.0
        return True
    p = red_probability(link, now.red_average)
    if p <= 0.0 or queue <= 1.0:
        now.red_count = -1.0
        return False
    if now.red_count < 0.0 and p < 1.0:
        now.red_count, now.red_passes = 1.0, 1.0
        return False
    now.red_count += 1.0
    n_p = now.red_count * p
    if p < 1.0 and n_p < 1.0:
        return False
    now.red_passes *= 1.0 - p / (2.0 - n_p) if p < 1.0 and n_p + p < 2.0 else 0.0
    if now.red_passes > now.red_gap:
        return False
    now.red_count, now.red_passes, now.red_gap = 0.0, 1.0, draw(now)
    return True
