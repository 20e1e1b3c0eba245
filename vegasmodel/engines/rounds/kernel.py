"""The main loop of the simulator ``rounds``: it handles the events of all flows in order of time.

Between two events a flow's packets arrive at a constant rate, and the length of the queue is a
linear function of time. So delays are exact: a packet that finds q packets in the queue leaves it
q/c seconds later, where c is the capacity in packets per second. The number of events in a round
trip has a limit, however many packets a round trip has (the function ``run.resolution``).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.laws import (
    cwnd_packets,
    in_slow_start,
    retransmission_timeout,
    window,
)
from vegasmodel.engines.rounds.losses import early_timer_expired
from vegasmodel.engines.rounds.queue import (
    advance,
    enqueue_handshake,
    far_from_full,
    never_full,
    room_for,
    share_capacity,
    waiting,
    waiting_now,
)
from vegasmodel.engines.rounds.sender import plan
from vegasmodel.engines.rounds.state import (
    CONNECTED,
    DATA,
    FIRST_BINADE,
    OPEN,
    REST,
    START,
    TIMER,
    Net,
    Queue,
    Sender,
    Table,
    jit,
    rare,
)
from vegasmodel.engines.rounds.timer import arm, syn_acknowledged, syn_lost, time_one_packet
from vegasmodel.engines.rounds.travel import (
    arrive_at_once,
    arrive_evenly,
    begin_arrivals,
    due,
    end_arrivals,
    hop,
    next_other_event,
    pass_no_packets,
    schedule,
)
from vegasmodel.engines.rounds.wait import begin_wait
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

DONE, FALL = int(Status.DONE), int(Status.FALL)  # plain integers for Numba
FULL_RING, TOO_MANY_EVENTS = int(Status.FULL_RING), int(Status.TOO_MANY_EVENTS)
MOST_EVENTS = 2_000_000_000
BURST_PARTS = 256.0  # stretches of a burst, at most


@jit
def _foresee(links: Table[Queue], k: int, time: float) -> None:
    """Record the time up to which a burst has used queue ``k``.

    This time may be ahead of the simulation's clock, because several packets of a burst are
    simulated in one event. On a link with Rate-Delay services the time is recorded for the queues
    of both classes.
    """
    link = links[k]
    link.foreseen = max(link.foreseen, time)
    if link.partner >= 0:
        links[link.partner].foreseen = link.foreseen


@rare
def _send_retransmission(net: Net, f: Sender) -> bool:
    """Send the packet that the flow retransmits now to its first queue; False if the run fails."""
    f.retransmits += 1.0
    f.sent += 1.0
    now, rtt = f.time, f.rtt
    return arrive_at_once(net, f.hop, now, f.retransmit, 1.0, 0.0, rtt, rtt, 0, now)


@jit
def finish_interval(net: Net, f: Sender) -> bool:
    """End an interval of sending: the packets that the flow sent evenly join its first queue.

    Packets that find the buffer full are lost. A retransmission at the interval's end is sent, too.
    If the interval ends with a burst, the caller sends it (``send_burst``). Returns False if the
    run fails.
    """
    h = net.hops[f.hop]
    link = net.links[h.link]
    if f.rate > 0.0:
        end_arrivals(link, f.rate, h.work)
        f.rate = 0.0
    fits = True
    e, now, rtt = f.hop, f.time, f.rtt
    f.retransmits += min(max(f.high - f.first, 0.0), f.spread + f.burst)
    f.high = max(f.high, f.first + f.spread + f.burst)
    if f.spread > 0.0:
        f.sent += f.spread
        found = f.since_queue
        fits = arrive_evenly(net, e, now, found, f.first, f.spread, 0.0, rtt, rtt, 0, now)
    elif f.retransmit < 0.0 and f.burst == 0.0:
        fits = pass_no_packets(net, e, now, f.first, 0.0, now)
    if f.retransmit >= 0.0:
        fits = _send_retransmission(net, f) and fits
    f.first += f.spread
    f.sent += f.burst
    f.left_at, f.burst_part = now, max(1.0, np.ceil(f.burst / BURST_PARTS))
    return fits


@jit
def send_burst(net: Net, f: Sender, at: float) -> bool:
    """Send the flow's burst into its first queue, packet by packet, from time ``at`` on.

    The packets follow one another at the rate of the access link. If the next event of another flow
    is earlier than the next packet, the rest of the burst is sent after that event. So packets of
    other flows may arrive in between. A Linux sender puts a burst into the queue at once, unless
    each packet waits a random time below TCP (netem_enqueue). Returns False if the run fails.
    """
    h = net.hops[f.hop]
    f.event = DATA
    fits, spread_out = True, not f.bursts_at_once or f.queue_wait > 0.0
    while f.burst > 0.0 and fits:
        if spread_out and due(net, f.hop, at) > next_other_event(net, f.hop):
            f.event, f.time = REST, at
            schedule(net, f.hop, at)
            return True
        packets = min(f.burst, f.burst_part)
        _foresee(net.links, h.link, at)
        advance(net.links, h.link, at)
        # The packets of a burst leave the sender one after another, over its access link. ns-2
        # stamps all of them with the time at which the burst begins. So in ns-2 the RTT of a packet
        # includes its wait for the packets of the burst before it. Linux stamps each packet when it
        # leaves (tcp_transmit_skb). So in Linux the RTT does not include this wait.
        sent_at = at if f.stamps_departure else f.left_at
        took = f.rtt + (at - sent_at)
        fits = arrive_at_once(net, f.hop, at, f.first, packets, 0.0, took, took, 0, sent_at)
        f.first += packets
        f.burst -= packets
        at += packets * f.gap
        if f.queue_wait > 0.0:  # the first has waited ``late``; none overtakes
            at = max(at, f.left_at - f.late + f.queue_wait * np.random.random())
    return fits


@rare
def _share_loss(flows: Table[Sender], who: int, before: float) -> None:
    """If flow number ``who`` has just lost a packet, let every other flow lose a packet, too.

    This is hypothesis 5 of ``devendictis``: losses are synchronised. Flows in recovery lose none. A
    loss that this function has caused does not cause others. ``before`` is the number of packets
    that flow ``who`` had lost before this event.
    """
    if flows[who].lost == before:
        return
    owed = flows[who].owed_loss > 0.0
    flows[who].owed_loss = 0.0
    for i in range(flows.shape[0]):
        if i != who and not owed and flows[i].acked > flows[i].recover:
            flows[i].owed_loss = 1.0


@rare
def _delivered(net: Net, f: Sender, now: float) -> float:
    """The number of the flow's packets whose ACKs are back at the sender by ``now``.

    The simulator handles the flow in intervals, and ``f.delivered`` counts all ACKs up to the end
    of the present interval. So ACKs that arrive after ``now`` must be subtracted. This is done only
    if the buffer is infinite and the interval is longer than the flow's RTT on an empty path. With
    a finite buffer, queue and interval are short, so these ACKs are few.
    """
    link = net.links[net.hops[f.hop].link]
    if not never_full(link) or f.ahead_until - f.ahead_since <= f.rtt or now >= f.ahead_until:
        return f.delivered
    part = (f.ahead_until - now) / (f.ahead_until - f.ahead_since)
    return f.delivered - np.ceil(f.ahead * min(part, 1.0))


@rare
def _end_warmup(net: Net, k: int) -> None:
    """Store the totals of queue ``k`` and of its flows at the end of warm-up.

    They are later subtracted from the totals at the end of the run. The flows are those whose path
    begins with this queue.
    """
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        if net.hops[f.hop].link == k:
            f.mark_delivered, f.mark_sent = _delivered(net, f, net.links[k].now), f.sent
            f.mark_lost, f.mark_retransmits, f.mark_acks = f.lost, f.retransmits, f.acks
            f.rtt_area, f.rtt_samples = 0.0, 0.0
    link = net.links[k]
    link.mark_area, link.mark_now = link.area, link.now
    link.warm = 1


@rare
def _take_sample(net: Net, k: int, out_flow: Floats, out_queue: Floats) -> None:
    """Store a sample of queue ``k``, and of the flows whose path begins with this queue.

    ``out_queue`` gets the number of waiting packets. ``out_flow`` gets, for each flow, the window,
    the packets sent, the RTT in seconds, the packets delivered, the baseRTT, and the packets lost.
    """
    link = net.links[k]
    row = link.sampled
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        if net.hops[f.hop].link != k:
            continue
        active = f.high > 0.0 and link.now <= f.stop and not (f.short_flow and f.acked >= f.size)
        rtt = f.rtt
        for e in range(f.hop, f.hop + f.hops):
            h = net.hops[e]
            rtt += waiting(net.links, h.link, net.links[h.link].queue, h.work)
        mine = out_flow[row, f.member]  # sums over the short flows of a group
        mine[0] += window(f) if active else 0.0
        mine[1] += f.sent
        mine[2] = rtt
        mine[3] += _delivered(net, f, link.now)
        mine[4] = f.base
        mine[5] += f.lost
    out_queue[row, k] = waiting_now(link)
    link.sampled += 1


@rare
def _take_due_samples(
    net: Net,
    now: float,
    times: Floats,
    out_flow: Floats,
    out_queue: Floats,
    warmup: float,
    end: float,
) -> float:
    """Take all samples that are due by ``now``; returns the time at which the next one is due.

    Warm-up also ends here, for each queue when its own clock has reached ``warmup``.
    """
    due = NEVER
    for k in range(net.links.shape[0]):
        link = net.links[k]
        until = min(now - link.shift, end)
        while link.sampled < times.shape[0] and times[link.sampled] <= until:
            advance(net.links, k, times[link.sampled])
            _take_sample(net, k, out_flow, out_queue)
        if not link.warm and until >= warmup:
            advance(net.links, k, warmup)
            _end_warmup(net, k)
        if not link.warm:
            due = min(due, warmup + link.shift)
        if link.sampled < times.shape[0]:
            due = min(due, times[link.sampled] + link.shift)
    return due


@rare
def _rtt_of_small(net: Net, f: Sender) -> float:
    """The RTT in seconds of a small packet, one of the handshake, in the queues as they are now."""
    rtt = f.rtt
    for e in range(f.hop, f.hop + f.hops):
        h = net.hops[e]
        link = net.links[h.link]
        if h.data:
            rtt += link.queue / link.capacity
            rtt -= (h.work - f.syn) / link.capacity
    return rtt


@rare
def _handshake(net: Net, f: Sender) -> float:
    """Simulate the TCP handshake; returns the seconds that it takes.

    The SYN joins the flow's first queue as a small packet. In ns-2 2.35 the SYN is packet 0,
    without data.
    """
    rtt = _rtt_of_small(net, f)
    first = net.hops[f.hop]
    if first.data:
        enqueue_handshake(net.links[first.link], f.syn)
    syn_acknowledged(f, f.time, rtt)
    return rtt


@rare
def _restart(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Send a burst: the flow's first window, or the packets that are due after a timeout."""
    if f.event == TIMER:
        if early_timer_expired(f, holes, now):
            f.event = DATA
            return
        retransmission_timeout(f, now)
    if f.next == 0.0:  # the clock of ns-2's Vegas begins
        f.round_start = now
    if f.event == CONNECTED and f.third_ack:  # its last ACK goes ahead of the data
        f.receiver_rtt = _rtt_of_small(net, f)  # from the SYN-ACK to this ACK
        enqueue_handshake(net.links[net.hops[f.hop].link], f.syn)
    f.event, f.first, f.spread, f.retransmit, f.late = DATA, f.next, 0.0, -1.0, 0.0
    f.burst = min(np.floor(window(f)), f.size - f.next)
    arm(f, now)
    if f.jitter > 0.0:
        f.burst = 0.0
        begin_wait(f, holes, now)
    time_one_packet(f)
    f.next += f.burst


@rare
def _count_active(net: Net, f: Sender, change: int) -> None:
    """Record that a flow starts (``change`` is 1) or ends (``change`` is -1).

    A link with Rate-Delay services has two classes of flows, R and D. Each such link on the flow's
    path counts the active flows of both classes, and then divides its capacity anew between the
    classes.
    """
    f.active += change
    for e in range(f.hop, f.hop + f.hops):
        k = net.hops[e].link
        if net.hops[e].data and net.links[k].partner >= 0:
            advance(net.links, k, net.links[k].now)
            net.links[k].active += change
            share_capacity(net.links, k)


@jit
def _far_from_loss(f: Sender, link: Queue, calm: int) -> bool:
    """Whether the flow's next interval of even sending may be long, because no loss is likely.

    Three conditions must hold for this. The flow is not in slow start. None of its packets is
    missing. The buffer of its first queue has room for several packets (``far_from_full``). The
    flow's window then grows by about a packet per round trip, so it changes little in one interval.
    As long as a queue neither overflows nor runs empty, only the total number of arrivals matters.
    ``calm`` is the number of such intervals in a round trip.
    """
    steady = f.phase == OPEN and f.holes == 0 and not in_slow_start(f)
    return steady and far_from_full(link, window(f) / calm)


@jit
def _send_interval(net: Net, f: Sender, who: int, now: float, synchronised: bool) -> bool:
    """End the flow's interval of sending, and send the burst that follows; False if the run fails.

    The packets of the burst leave one after another. If an event of another flow comes before the
    last of them has left, this function stops there and sets ``f.event`` to ``REST``. A later call
    sends the rest of the burst.
    """
    before = f.lost
    if f.event == DATA:
        if not finish_interval(net, f):
            return False
        now += f.gap if f.retransmit >= 0.0 else 0.0
    fits = send_burst(net, f, now)
    if synchronised:
        _share_loss(net.flows, who, before)
    return fits


@jit
def _plan_next(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Plan the flow's next interval of sending.

    A short flow that has delivered all its data has no further interval.
    """
    h = net.hops[f.hop]
    parts = net.calm if _far_from_loss(f, net.links[h.link], net.calm) else net.parts
    f.ahead, f.ahead_since = -f.delivered, now
    plan(f, net.rings[h.ring : h.ring + h.room], holes, now, parts)
    f.ahead, f.ahead_until = f.ahead + f.delivered, f.time
    if f.acked >= f.size and f.finished == NEVER:
        f.finished = f.time
    if f.active and (now >= f.stop or f.acked >= f.size):
        _count_active(net, f, -1)
    if f.short_flow and f.acked >= f.size:
        f.time, f.awaits_parcels = NEVER, 0


@rare
def _start_or_restart(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Handle the flow's start, the end of its TCP handshake, or the expiry of a timer.

    At its start the flow sends a SYN; if the SYN is lost, the flow starts again later. After the
    handshake it sends its first window. A flow without a handshake sends its first window at its
    start.
    """
    if f.event == START and not f.active:
        _count_active(net, f, 1)
    if f.event != START or f.syn == 0.0:
        _restart(net, f, holes, now)
    elif room_for(net.links[net.hops[f.hop].link], 1.0, 0) < 1.0:
        f.time = now + syn_lost(f)  # its SYN is lost
    else:
        f.time = now + _handshake(net, f)
        f.event = CONNECTED


@jit
def _flow_event(
    net: Net, f: Sender, who: int, holes: Floats, now: float, synchronised: bool
) -> bool:
    """Handle the next event of a flow at the first queue of its path; False if the run fails.

    There are five kinds of events: an interval of sending ends, the rest of a burst is due, a timer
    expires, the flow starts, and the flow's TCP handshake ends.
    """
    h = net.hops[f.hop]
    link = net.links[h.link]
    advance(net.links, h.link, now)
    if f.event == DATA and f.spread == 0.0 and f.burst == 0.0 and f.retransmit < 0.0:
        now = f.time = max(now, link.now)  # it slept: nothing came until now
    f.awaits_parcels = 0
    if f.event == DATA or f.event == REST:
        if not _send_interval(net, f, who, now, synchronised):
            return False
        if f.event == REST:
            return True
        now = f.left_at
        _plan_next(net, f, holes, now)
    else:
        _start_or_restart(net, f, holes, now)
    f.since_queue = link.queue
    # a gap that long is one ACK's, and what one ACK releases leaves at once
    slow = f.time - now > 1.5001 * f.longest_stretch
    f.rate = 0.0 if slow else begin_arrivals(link, f.spread, h.work, now, f.time)
    if f.rate == 0.0:
        f.burst += f.spread
        f.spread = 0.0
    schedule(net, f.hop, f.time)
    return True


@jit
def start_flows(net: Net, seed: int) -> None:
    """Prepare a new run: seed the random numbers and schedule the start of each flow."""
    np.random.seed(seed)
    for k in range(net.links.shape[0]):
        net.links[k].next_hazard = np.random.exponential()
    for e in range(net.hops.shape[0]):
        schedule(net, e, NEVER)
    for i in range(net.flows.shape[0]):
        net.flows[i].time = net.flows[i].start
        schedule(net, net.flows[i].hop, net.flows[i].start)


@rare
def _set_rounding(net: Net, row: Floats) -> None:
    """Set the capacity and the delays to their present values, as ns-2's clock rounds them.

    ns-2's clock rounds times, and the later the time, the more coarsely (``route.roundings``).
    ``row`` contains the values for the present time; it is a row of ``march``'s argument ``grid``.
    """
    n, m = net.links.shape[0], net.hops.shape[0]
    for k in range(n):
        net.links[k].capacity, net.links[k].instant = row[k], row[n + k]
    for e in range(m):
        h = net.hops[e]
        f, link = net.flows[h.flow], net.links[h.link]
        # what arrives evenly now has begun with the old size, and ends with the new one
        link.rate += (f.rate if e == f.hop else h.rate) * (row[2 * n + e] - h.work)
        h.work, h.to_next = row[2 * n + e], row[2 * n + m + e]
        h.early = h.lead * link.instant / link.capacity


@rare
def _stop_queue(net: Net, k: int, now: float) -> None:
    """Advance queue ``k`` to the time ``now``, at which the run stops."""
    advance(net.links, k, now)


@jit
def march(
    net: Net,
    holes: Floats,
    times: Floats,
    out_flow: Floats,
    out_queue: Floats,
    warmup: float,
    end: float,
    synchronised: bool,
    grid: Floats,
    falls: float,
) -> tuple[int, int, float]:
    """Run the simulation up to time ``end`` and take samples at the instants ``times``.

    Returns the status, the number of events, and the time on the simulation's clock. ``falls`` is a
    time. From then on, the function also returns, with the status ``FALL``, after each event that
    reduces the whole packets in a flow's window. It first advances all queues to the time of that
    event; the next call continues the run. ``grid`` says how ns-2's clock rounds times
    (``route.roundings``).
    """
    events, sample_due, fits = 0, 0.0, True
    binade, limit = -1, 0.0
    while net.keys[net.tree[1]] < NEVER:
        e = net.tree[1]
        h = net.hops[e]
        who = h.flow
        f = net.flows[who]
        now = f.time if e == f.hop else h.time
        clock = now + net.links[h.link].shift
        if clock >= sample_due:
            sample_due = _take_due_samples(net, clock, times, out_flow, out_queue, warmup, end)
        if now > end:
            schedule(net, e, NEVER)
            continue
        while now >= limit and binade + 1 < grid.shape[0]:
            binade += 1
            limit = 2.0 ** (binade + FIRST_BINADE)
            _set_rounding(net, grid[binade])
        before = cwnd_packets(f)
        fits = (
            _flow_event(net, f, who, holes[who], now, synchronised) if e == f.hop else hop(net, e)
        )
        events += 1
        if not fits:
            return FULL_RING, events, now
        if events > MOST_EVENTS:
            return TOO_MANY_EVENTS, events, now
        if now >= falls and cwnd_packets(f) < before:
            now += net.links[h.link].shift
            for k in range(net.links.shape[0]):
                _stop_queue(net, k, now - net.links[k].shift)
            return FALL, events, now
    _take_due_samples(net, NEVER, times, out_flow, out_queue, warmup, end)
    for k in range(net.links.shape[0]):
        _stop_queue(net, k, end)
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        f.delivered, f.ahead = _delivered(net, f, end), 0.0
    return DONE, events, end
