"""Drops packets by RED and by random loss, in each time step of the simulator ``fluid``.

RED computes an average of the queue with each packet that arrives, and a drop probability p from
the average. While p is 0, a formula gives the average at the end of a step. Otherwise the step is
simulated packet by packet. Two kinds of packets are always simulated one by one: those that a flow
sends in slow start, and those of a burst, which one ACK releases together. For some round trips
after a burst, the packets of two flows may arrive in blocks, first those of one flow and then those
of the other (``blocks.py``).

In the functions, ``now`` is the link's present state, and ``link`` has its constants, such as the
capacity and the parameters of RED.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.blocks import burst_is_block, line_up_behind, sends
from vegasmodel.engines.fluid.sampled.chance import draw, round_passed, victim
from vegasmodel.engines.fluid.sampled.drops import count_anew, lose
from vegasmodel.engines.fluid.sampled.queue import delay, in_network, red_probability
from vegasmodel.engines.fluid.sampled.records import (
    DUPLICATES,
    WINDOW_ERROR,
    Bottleneck,
    LinkState,
    Sender,
)
from vegasmodel.engines.fluid.sampled.recovery import FRESH, needed, sends_again
from vegasmodel.engines.fluid.sampled.short_round import count_block_packet
from vegasmodel.engines.tables import Table, jit, rare

# The ACK that ends a recovery of NewReno releases a burst. The burst counts as a block
# (``blocks.py``) only if it consists of all packets that the flow then has in flight. During the
# recovery NewReno repairs one loss per round trip. It also sends many new packets, but only in the
# first two round trips (``growth.recovering``). If fewer than ``LEAST_LOSSES`` packets were lost,
# the recovery is so short that some of the new packets are still in flight at its end. Then the
# burst does not count as a block.
LEAST_LOSSES = 3.0


@jit
def drop_at_random(
    flows: Table[Sender], now: LinkState, link: Bottleneck, packets: float, s: float
) -> None:
    """Drop some of the ``packets`` that arrive in a step, by random loss and by RED.

    ``s`` is the queueing delay at the beginning of the step. Random loss hits each packet with the
    same probability. So the function counts packets down to the next loss (``now.loss_gap``), and
    draws at random which flow the lost packet belongs to.
    """
    if link.loss > 0.0:
        for i in range(len(flows)):
            flow = flows[i]
            g = now.step / (flow.rtt + s)
            retransmits = flow.active and sends_again(flow, now, g, link.capacity)
            if retransmits and not flow.real_numbers:  # the retransmission may be lost, too
                resend_at_random(flow, now, link)
            if flow.active and flow.resends > 0.0:
                lose_after_timeout(flow, now, link, g)
        now.loss_gap -= packets
        while now.loss_gap <= 0.0:  # packets are lost in the middle of the step
            now.loss_gap += packets_to_loss(now, link.loss)
            lose(flows[victim(flows, now)], now, link, 1.0, 0.5 * now.step)
    if link.red:
        arrive_at_red(flows, now, link, s)


@rare
def packets_to_loss(now: LinkState, loss: float) -> float:
    """Draw the number of packets from one random loss to the next; 1 means the very next packet.

    It has a geometric distribution, as each packet is lost with the probability ``loss``.
    """
    if loss >= 1.0:
        return 1.0
    packets: float = 1.0 + np.floor(np.log1p(-draw(now)) / np.log1p(-loss))
    return packets


@rare
def resend_at_random(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Draw whether the packet that the flow retransmits when it detects a loss is lost, too.

    If random loss hits the packet, the sender must wait for its retransmission timer
    (``recovery.on_loss``). The packet also counts among those that arrive in the next round trip.
    So that it is not exposed to random loss twice, the next random loss comes one packet later.
    """
    now.loss_gap += 1.0
    if draw(now) < link.loss:
        flow.resend_lost = True
        flow.lost += 1.0


@rare
def lose_after_timeout(flow: Sender, now: LinkState, link: Bottleneck, g: float) -> None:
    """Draw which of the few packets that the flow sends at once after a timeout are lost at random.

    The sender sends one or two packets when the timer expires. Their ACKs come together a round
    trip later and release the next packets, and so on. If the sender sends none of these packets in
    the present step, which lasts ``g`` round trips, the function does nothing.

    ``drop_at_random`` also counts these packets, among all packets that arrive. So that none of
    them is exposed to random loss twice, the next random loss comes later by their number.

    A fresh packet is one that was not sent before the timeout. If the first fresh packet is lost,
    ACKs do not end the backoff (``recovery.end_backoff``).

    While ns-2's Vegas retransmits lost packets, it sends two packets at once: a lost one and the
    one behind it. The second one has usually arrived before the timeout, so its loss does no harm.
    """
    ago = now.time - flow.timeout_ends  # when it sends them: seconds before the end of the step
    if ago < 0.0 or flow.recovery_left > 0.0:
        return
    if ago >= now.step:  # the timer expired in an earlier step: it sends when a round trip ends
        passed = round_passed(flow, now, g)
        if flow.round_part + passed < 1.0:
            return
        ago = (flow.round_part + passed - 1.0) / passed * now.step
    lost = 0.0
    # Whether the first of them was already sent before the timeout, so that it is not fresh. The
    # packets still to be sent again are ``resends`` - ``FRESH``, for Vegas ``g`` fewer after this
    # step.
    retransmits = flow.resends - (g if flow.fine_timer else 0.0) > FRESH + WINDOW_ERROR
    for k in range(int(flow.in_flight - flow.undetected)):  # the packets that it sends now
        now.loss_gap += 1.0
        if draw(now) < link.loss and not (flow.fine_timer and retransmits and k > 0):
            lost += 1.0
            if k == 0 and not retransmits:
                flow.resends = FRESH + 1.0  # the fresh packet must be sent again
    if lost > 0.0:
        lose(flow, now, link, lost, ago)


@jit
def packets_between_bursts(flows: Table[Sender], now: LinkState, s: float) -> float:
    """The number of packets of all flows that arrive at RED in a step, without bursts.

    A burst consists of packets that one ACK releases, for example at the end of a recovery in which
    the sender has repaired one lost packet per round trip. The ACKs of the burst come together at
    the end of the next round trip. Until then fewer packets arrive: the function subtracts those
    that these ACKs would have released, if they came evenly. ``s`` is the queueing delay.
    """
    packets = 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if not flow.active:
            continue
        if flow.bunch_left > 0.0:  # the ACKs of the last burst, of ``bunch`` packets, have not come
            trips = now.step / (flow.rtt + s)
            flow.arrives = max(flow.arrives - flow.bunch * min(trips, flow.bunch_left), 0.0)
            flow.bunch_left -= trips
            flow.bunch = flow.bunch if flow.bunch_left > 0.0 else 0.0
        packets += flow.arrives
    return packets


@jit
def queue_is_uneven(flows: Table[Sender], now: LinkState) -> bool:
    """Whether more packets wait at RED than the equations say: in or after a burst or a train."""
    uneven = now.red_waiting > 0.0
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            uneven = uneven or flow.at_once > 1.0 or flow.train_sent > 0.0
    return uneven


@jit
def average_alone(
    now: LinkState, link: Bottleneck, packets: float, before: float, after: float
) -> None:
    """Update RED's average for a step in which RED drops nothing, and ``packets`` packets arrive.

    An arriving packet finds ``before`` packets at the beginning of the step, and ``after`` at its
    end. While the queue is empty, the average moves at least once per transmission time.
    """
    at_empty_queue = max(before, after) == 0.0
    moves = max(packets, link.capacity * now.step) if at_empty_queue else packets
    part = 1.0 - (1.0 - link.weight) ** moves
    now.red_average += part * (0.5 * (before + after) - now.red_average)
    now.red_count = -1.0


@jit
def arrive_at_red(flows: Table[Sender], now: LinkState, link: Bottleneck, s: float) -> None:
    """Let the packets of a step arrive at RED, and then the bursts of this step.

    ``s`` is the queueing delay at the beginning of the step. By the equations c s packets then
    wait, where c is the capacity. Equation (S1) gives this number: it spreads the packets in flight
    evenly over the round trip. In two cases more packets wait, so the function counts them itself
    (``red_waiting``) until they are no more than c s:

    - In slow start a flow's packets arrive as a train, faster than the link sends them. Each ACK
      releases two packets, and the link sends one of them before the next ACK comes. So the queue
      grows by one packet with each ACK.
    - In a burst, one ACK releases many packets (``packets_between_bursts``).

    Otherwise, if RED cannot drop a packet in this step, only its average changes.
    """
    c, uneven = link.capacity, queue_is_uneven(flows, now)
    packets = packets_between_bursts(flows, now, s)
    if now.time < now.ordered_until:
        now.red_waiting = block_by_block(flows, now, link, now.red_waiting, s)
        return
    # packets that an arriving packet finds, at the beginning and at the end of the step
    before, after = max(c * s - 0.5, 0.0), max(c * now.delay - 0.5, 0.0)
    longest = max(before, after)
    queue = max(now.red_waiting, before)
    if not uneven and (longest <= 1.0 or max(now.red_average, longest) < link.min_threshold):
        average_alone(now, link, packets, before, after)
        resends_arrive(flows, now, link, s, after)
        count_sent(flows)
        return
    # packets that the link sends; by the equations the queue goes from ``before`` to ``after``
    served = c * now.step if uneven or longest == 0.0 else before + packets - after
    queue = one_by_one(flows, now, link, packets, queue, served)
    resends_arrive(flows, now, link, s, queue)
    count_sent(flows)
    begins = -1  # the flow whose burst begins to arrive in blocks; -1: none
    for i in range(len(flows)):
        if flows[i].active and flows[i].at_once > 1.0:
            queue = burst_arrives(flows[i], now, link, queue)
            if s > 0.0 and begins_blocks(flows[i]):
                begins = i
    queue = min(queue, in_network(flows))  # no more packets wait than are in flight
    if uneven:
        now.delay = delay(flows, now, c)  # without the packets that were dropped in this step
    now.red_waiting = queue if uneven and queue > c * now.delay + 1.0 else 0.0
    if begins >= 0:
        line_up_behind(flows, begins, now, c, queue)
        now.red_waiting = queue


@jit
def begins_blocks(flow: Sender) -> bool:
    """Whether packets arrive in blocks after this flow's burst (``blocks.py``).

    A block is the packets that a flow has in flight, one behind the other. The burst is the first
    block, and a block of the other flow follows it. The result is true if the burst ends a long
    recovery (``LEAST_LOSSES``), and if the flow is not ns-2's Vegas. One of the two flows is ns-2's
    Vegas (``fine_timer``). Its losses are counted from a burst of the other flow on
    (``short_round.count_block_packet``), so its own bursts do not begin blocks.
    """
    return flow.in_blocks and not flow.fine_timer and flow.holes >= LEAST_LOSSES


@jit
def count_sent(flows: Table[Sender]) -> None:
    """Count the packets that each flow has sent in this step (``Sender.sent_since``)."""
    for i in range(len(flows)):
        flows[i].sent_since += flows[i].arrives
        flows[i].arrives = 0.0


@rare
def block_by_block(
    flows: Table[Sender], now: LinkState, link: Bottleneck, queue: float, s: float
) -> float:
    """Let the packets of a step arrive in the order of ``blocks.py``; returns how many then wait.

    A block is the packets that a flow has in flight, one behind the other. ``queue`` packets wait
    when the step begins, and ``s`` is the queueing delay then. In each transmission time the link
    sends one packet, and one packet arrives of each flow whose block is passing. A burst
    arrives at the end of the step.
    """
    c = link.capacity
    # only whole packets are sent in a step; the rest is kept for later steps
    now.red_part += c * now.step
    sent = np.floor(now.red_part)
    now.red_part -= sent
    for i in range(len(flows)):
        flows[i].arrives = 0.0  # the packets are counted one by one
    for k in range(int(sent)):  # one transmission time of the link after another
        ago = now.step * (1.0 - k / sent)  # s to the end of the step
        for i in range(len(flows)):
            flow = flows[i]
            if flow.active and sends(flow, now, now.time - ago, c, queue):
                flow.sent_since += 1.0
                now.red_waiting = queue
                lost = dropped(now, link, queue)
                count_block_packet(flow, lost)
                queue += not lost
                if lost:
                    lose(flow, now, link, 1.0, ago)
        queue = after_service(now, link, queue - 1.0)
    resends_arrive(flows, now, link, s, queue)
    for i in range(len(flows)):
        if flows[i].active and flows[i].at_once > 1.0:
            queue = burst_arrives(flows[i], now, link, queue)
    return queue


@rare
def flow_of_arrival(flows: Table[Sender], now: LinkState) -> int:
    """The flow of a packet that reaches RED in this step, drawn in proportion to ``arrives``."""
    total, last = 0.0, 0  # ``last``: the result if rounding errors leave a remainder
    for i in range(len(flows)):
        total += flows[i].arrives if flows[i].active else 0.0
    remaining = draw(now) * total
    for i in range(len(flows)):
        if flows[i].active and flows[i].arrives > 0.0:
            last = i
            remaining -= flows[i].arrives
            if remaining <= 0.0:
                return i
    return last


@jit
def resends_arrive(
    flows: Table[Sender], now: LinkState, link: Bottleneck, s: float, queue: float
) -> None:
    """Let the packets arrive that flows retransmit because they detect losses in this step.

    ``queue`` packets wait at the end of the step. ``s`` is the queueing delay at its beginning.
    """
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active and sends_again(flow, now, now.step / (flow.rtt + s), link.capacity):
            resend_arrives(flow, now, link, queue)


@rare
def resend_arrives(flow: Sender, now: LinkState, link: Bottleneck, queue: float) -> None:
    """Let the packet arrive that the flow retransmits because it detects a loss in this step.

    ``queue`` packets would wait if the sender had sent a packet for each ACK. But it has sent none
    for the duplicate ACKs that report the loss, so fewer packets wait. If RED drops the
    retransmitted packet, the sender must wait for its retransmission timer (``recovery.on_loss``).
    """
    unsent = min(needed(flow, now, link.capacity), DUPLICATES)
    flow.resend_lost = dropped(now, link, max(queue - unsent, 0.0))
    flow.lost += flow.resend_lost


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
    sent = served / max(packets, 1.0)  # packets that the link sends from one arrival to the next
    for k in range(int(arrive)):
        now.red_waiting = queue  # a packet that is lost would have waited behind these (``lose``)
        if dropped(now, link, queue):
            ago = now.step * (1.0 - k / arrive)  # s from this arrival to the end of the step
            lose(flows[flow_of_arrival(flows, now)], now, link, 1.0, ago)
        else:
            queue += 1.0
        queue = after_service(now, link, queue - sent)
    return queue if arrive > 0.0 else after_service(now, link, queue - served)


@rare
def burst_arrives(flow: Sender, now: LinkState, link: Bottleneck, queue: float) -> float:
    """Let a burst of the flow arrive at once; returns how many packets then wait.

    ``queue`` is the number of packets that wait before the burst arrives.

    If the burst loses packets, packets that follow it cause duplicate ACKs, which tell of the loss.
    These come early if the flow has new packets in flight that it sent before the burst, because
    the ACKs of these packets release the packets that follow the burst. Besides the burst and these
    packets, one more counts as in flight: the one whose ACK has released the burst.
    """
    # ``bunch``: packets of the burst that pass; their ACKs come within the next round trip
    flow.bunch, flow.bunch_left = 0.0, 1.0
    clean, before = -1.0, queue  # ``clean``: packets of the burst that pass before the first drop
    known = flow.detection_in > 0.0  # the sender will hear of an earlier loss
    others = flow.in_flight - flow.at_once - 1.0  # packets that it sent before the burst
    for _ in range(int(flow.at_once)):
        now.red_waiting = queue
        flow.sent_since += 1.0
        if dropped(now, link, queue):
            clean = flow.bunch if clean < 0.0 else clean
            lose(flow, now, link, 1.0, 0.0)
            flow.burst_lost += 1.0
        else:
            queue += 1.0
            flow.bunch += 1.0
    if clean >= 0.0 and not known and others >= DUPLICATES:
        # behind the waiting packets come the duplicate ACKs, one transmission time apart
        flow.hears_in = flow.rtt + (queue + DUPLICATES) / link.capacity
        flow.detection_in = flow.hears_in / (flow.rtt + now.delay)
    burst_is_block(flow, now, link.capacity, before, clean, flow.bunch)
    return queue


@jit
def after_service(now: LinkState, link: Bottleneck, queue: float) -> float:
    """Correct the number of waiting packets, ``queue``, if it has become negative; returns it.

    If ``queue`` is below 0, the link has been idle: it could have sent -``queue`` packets more. The
    result is then 0, and RED's average falls as if so many packets had found an empty queue.
    """
    if queue < 0.0:
        now.red_average *= (1.0 - link.weight) ** -queue
    return max(queue, 0.0)


@jit
def dropped(now: LinkState, link: Bottleneck, queue: float) -> bool:
    """Let a packet arrive that finds ``queue`` packets waiting; returns whether it is dropped.

    It is dropped if the buffer is full, or by RED. RED drops packets only while more than one
    waits. Let p be RED's base probability (``red_probability``), and n the number of packets since
    the last drop. The packet at which p rises above 0 passes, whatever p is, and the count begins
    with it. As in ns-2 with ``wait_`` (``modify_p`` in red.cc), a packet passes if n p < 1, and is
    dropped with the probability p/(2 - n p) if 1 <= n p < 2.
    """
    now.red_average += link.weight * (queue - now.red_average)
    if queue >= link.room:  # the buffer is full
        count_anew(now, 0.0)
        return True
    p = red_probability(link, now.red_average)
    if p <= 0.0 or queue <= 1.0:
        now.red_count = -1.0
        return False
    if now.red_count < 0.0:  # p has just risen above 0
        count_anew(now, 1.0)
        return False
    now.red_count += 1.0
    n_p = now.red_count * p
    if p < 1.0 and n_p < 1.0:
        return False
    # ``red_passes`` is the probability that RED would have dropped no packet since the last drop.
    # RED drops a packet as soon as this falls to the random number ``red_gap``.
    now.red_passes *= 1.0 - p / (2.0 - n_p) if p < 1.0 and n_p + p < 2.0 else 0.0
    if now.red_passes > now.red_gap:
        return False
    now.red_count, now.red_passes, now.red_gap = 0.0, 1.0, draw(now)
    return True
