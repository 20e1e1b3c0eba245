"""Records windows, queues and totals of all flows at given instants (samples).

At the end of the warm-up it also stores the totals so far, such as the number of packets that a
flow has delivered. They are later subtracted from the totals at the end of the run. So the results
do not include the warm-up.

The clock of each queue is ``link.shift`` seconds behind the simulation's clock (``travel.py`` says
why). A queue is sampled when its own clock reaches the instant of the sample. The flows whose path
begins at this queue are sampled at the same time. By the clock of a flow's sender this is earlier,
by the time from the sender to the queue (``Sender.way``). What ACKs change is counted by the clock
of the sender: a packet counts when its ACK reaches the sender, as in ns-2. Packets count as sent,
retransmitted or lost by the clock of the queue, which they reach ``Sender.way`` seconds later.

Samples do not change the run. The simulator computes the state of a queue at the times of events,
but the instant of a sample usually lies between two events. So a copy of the queue's record
(``Net.copies``) is advanced to the instant. The record itself is not advanced, because its rounding
errors would then depend on the instants of the samples.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import received_beyond
from vegasmodel.engines.rounds.laws import window
from vegasmodel.engines.rounds.queue import advance, waiting, waiting_now
from vegasmodel.engines.rounds.state import (
    BASE_RTT,
    DELIVERED,
    LOST,
    RTT,
    SENT,
    WINDOW,
    Net,
    Sender,
    rare,
)
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats

INSTANT = 1e-12  # seconds: shorter steps count as this long, to avoid a division by 0
ROUNDING = 1e-6  # packets: rounding error that a number of packets may have


@rare
def _part_ahead(f: Sender, now: float) -> float:
    """The fraction of the ACKs of the present step (``Sender.ahead``) that arrive after ``now``."""
    remaining = max(f.ahead_until - now, 0.0)
    return min(remaining / max(f.ahead_until - f.ahead_since, INSTANT), 1.0)


@rare
def _acks_after(f: Sender, now: float) -> float:
    """How many of the packets in ``f.acks`` have ACKs that arrive after ``now``."""
    return np.ceil(f.ahead_acks * _part_ahead(f, now) - ROUNDING)


@rare
def delivered_by(f: Sender, now: float) -> float:
    """How many of the flow's data packets have been acknowledged by cumulative ACKs until ``now``.

    The simulator processes the ACKs of a time interval together, when the interval begins. So
    ``f.delivered`` also counts packets whose ACKs arrive after ``now``. They are subtracted. The
    link sends one packet after another, so their ACKs arrive evenly spaced. An ACK that fills a
    hole, a range of missing packets, also acknowledges the packets behind it. Such an ACK is the
    last of its interval.
    """
    # ``part``: the fraction of the ACKs that come after ``now``; ``single``: packets with an ACK of
    # their own. The other packets of ``f.ahead`` are behind a hole that the last ACK fills.
    part, single = _part_ahead(f, now), min(f.ahead, f.ahead_acks)
    if part == 0.0:
        return f.delivered
    return f.delivered - np.ceil(single * part - ROUNDING) - (f.ahead - single)


@rare
def close(f: Sender, now: float) -> None:
    """Store the flow's totals at the time ``now``, at which the flow stops or the run ends.

    They are the fields ``last_...`` of the record. ``end_warmup_of`` also uses them for a moment.
    """
    acks = _acks_after(f, now)
    f.last_delivered = delivered_by(f, now)
    f.last_sent, f.last_lost, f.last_retransmits = f.sent, f.lost, f.retransmits
    f.last_rtt_total, f.last_rtt_packets = f.rtt_total - acks * f.rtt_last, f.rtt_packets - acks
    f.closed = 1


@rare
def _end_warmup(net: Net, k: int) -> None:
    """At the end of warm-up, store the totals of queue ``k``, and what flows have sent into it.

    At the end of the run the stored totals are subtracted, so that the results do not include
    warm-up.
    """
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        if net.hops[f.hop].link == k:
            f.mark_sent, f.mark_lost, f.mark_retransmits = f.sent, f.lost, f.retransmits
    link = net.links[k]
    link.mark_area, link.mark_now = link.area, link.now
    link.warm = 1


@rare
def end_warmup_of(f: Sender, now: float) -> None:
    """Store the flow's totals at the end of warm-up, the time ``now``: those that ACKs change.

    They go into the fields ``mark_...`` of the flow's record. At the end of the run they are
    subtracted from the totals in the fields ``last_...``. If the flow has stopped before ``now``,
    all its totals are stored, so that the differences are 0.
    """
    stopped, now = int(f.closed or now >= f.stop), min(now, f.stop)
    # How many packets are at the receiver behind a missing one? The simulator has processed some
    # ACKs that arrive after ``now``. If one of them fills a hole, it also acknowledges packets
    # behind the hole, which are still ``beyond`` it at ``now``.
    beyond = f.delivered - delivered_by(f, now) - _acks_after(f, now)
    f.mark_beyond = received_beyond(f) + max(beyond, 0.0)
    if not f.closed:  # write the totals into the fields ``last_...``; ``closed`` is set back below
        close(f, now)
    f.mark_delivered = f.last_delivered
    f.mark_rtt_total, f.mark_rtt_packets = f.last_rtt_total, f.last_rtt_packets
    if stopped:
        f.mark_sent, f.mark_lost = f.last_sent, f.last_lost
        f.mark_retransmits = f.last_retransmits
    f.closed, f.warm = stopped, 1


@rare
def _copy(net: Net, k: int, time: float) -> None:
    """Write into ``net.copies`` what queue ``k`` will be at ``time``, if no event comes before.

    A sample needs this state, but must not change the queue itself. If the link has two queues, one
    for each class of flows (Rate-Delay services), both are copied.
    """
    other = net.links[k].partner
    net.copies[k] = net.links[k]
    if other >= 0:
        net.copies[other] = net.links[other]
    advance(net.copies, k, time)


@rare
def _take_sample(net: Net, k: int, time: float, out_flow: Floats, out_queue: Floats) -> None:
    """Store a sample of queue ``k`` at ``time``, and of the flows whose path begins with it.

    ``out_queue`` gets the number of waiting packets. ``out_flow`` gets the numbers of each flow
    that ``state.py`` lists (``WINDOW`` to ``LOST``).
    """
    _copy(net, k, time)
    link = net.copies[k]
    row = link.sampled  # number of this sample
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        if net.hops[f.hop].link != k:
            continue
        active = f.high > 0.0 and link.now <= f.stop and not (f.short_flow and f.acked >= f.size)
        rtt = f.rtt  # the RTT in the empty network, and the waits in the queues of the path
        for e in range(f.hop, f.hop + f.hops):
            h = net.hops[e]
            queues = net.copies if h.link == k else net.links
            rtt += waiting(queues, h.link, queues[h.link].queue, h.work)
        values = out_flow[row, f.member]  # windows and counts are sums over a group's short flows
        values[WINDOW] += window(f) if active else 0.0
        values[SENT] += f.sent
        values[RTT] = rtt
        values[DELIVERED] += delivered_by(f, link.now)
        values[BASE_RTT] = f.base
        values[LOST] += f.lost
    out_queue[row, k] = waiting_now(link)
    net.links[k].sampled += 1


@rare
def take_due_samples(
    net: Net,
    now: float,
    times: Floats,
    out_flow: Floats,
    out_queue: Floats,
    warmup: float,
    end: float,
) -> float:
    """Take the samples that are due at ``now``; returns when this function must be called again.

    ``now`` and the result are in seconds, by the simulation's clock. Each queue has a clock of its
    own, which is ``link.shift`` seconds behind the simulation's clock (``travel.py`` says why). A
    queue is sampled when its own clock reaches one of the instants ``times``. ``_take_sample`` says
    what is stored in ``out_flow`` and ``out_queue``.

    When a queue's clock reaches ``warmup``, the function stores the totals of the queue, which will
    be subtracted from those at the end. The clock of a flow's sender is ``Sender.way`` seconds
    behind that of its first queue. So what ACKs have changed is stored so much later
    (``end_warmup_of``), or by ``kernel.march`` if the run ends before, at the time ``end``.
    """
    due = NEVER
    for k in range(net.links.shape[0]):
        link = net.links[k]
        until = min(now - link.shift, end)  # by the queue's own clock
        # samples at ``end`` come last: events at ``end`` itself belong to the run, too
        while link.sampled < times.shape[0] and times[link.sampled] <= until:
            if times[link.sampled] == end and now < NEVER:
                break
            _take_sample(net, k, times[link.sampled], out_flow, out_queue)
        if not link.warm and now >= warmup + link.shift:
            advance(net.links, k, warmup)
            _end_warmup(net, k)
        if not link.warm:
            due = min(due, warmup + link.shift)
        if link.sampled < times.shape[0]:
            due = min(due, times[link.sampled] + link.shift)
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        shift, ends = net.links[net.hops[f.hop].link].shift, warmup + f.way
        if not f.warm and min(now - shift, end) >= ends:
            end_warmup_of(f, ends)
        elif not f.warm:
            due = min(due, ends + shift)
    return due
