"""The main loop of the simulator ``rounds``: it handles the events of all flows in order of time.

In most events, packets of one flow reach a queue: one packet if a round trip has few packets,
otherwise several (``run.resolution``). Other events are the start of a flow, the end of its TCP
handshake, and the expiry of a timer.

``march`` is the main loop. ``travel.py`` moves packets from queue to queue, and ``queue.py`` says
how a queue delays and drops them.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import usable_window
from vegasmodel.engines.rounds.laws import (
    cwnd_packets,
    in_slow_start,
    retransmission_timeout,
    window,
)
from vegasmodel.engines.rounds.losses import early_timer_expired, send_in_recovery
from vegasmodel.engines.rounds.onward import due, next_other_event, schedule
from vegasmodel.engines.rounds.queue import (
    advance,
    enqueue_handshake,
    intervals,
    never_full,
    room_for,
    share_by_flows,
    waiting,
    waiting_now,
)
from vegasmodel.engines.rounds.scoreboard import take_all_for_lost
from vegasmodel.engines.rounds.sender import plan
from vegasmodel.engines.rounds.state import (
    CONNECTED,
    DATA,
    FIRST_BINADE,
    OPEN,
    RECOVERY,
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
    end_arrivals,
    hop,
    pass_no_packets,
)
from vegasmodel.engines.rounds.turns import at_store, begin_shares, join
from vegasmodel.engines.rounds.wait import begin_wait
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

DONE, FALL = int(Status.DONE), int(Status.FALL)  # plain integers for Numba
FULL_RING, PAUSED = int(Status.FULL_RING), int(Status.PAUSED)
BURST_PARTS = 256.0  # stretches of a burst, at most


@jit
def _foresee(links: Table[Queue], k: int, time: float) -> None:
    """Record that a packet of a burst arrives at queue ``k`` at time ``time``.

    A burst is simulated in one event, although its packets arrive one after another. So the queue
    may be simulated beyond the time of the event. ``foreseen`` is the latest arrival recorded here.
    On a link with Rate-Delay services both queues have the same ``foreseen``.
    """
    link = links[k]
    link.foreseen = max(link.foreseen, time)
    if link.partner >= 0:
        links[link.partner].foreseen = link.foreseen


@rare
def _send_retransmission(net: Net, f: Sender) -> bool:
    """Send the flow's retransmitted packet into its first queue; returns False if the run fails."""
    f.retransmits += 1.0
    f.sent += 1.0
    now, rtt = f.time, f.rtt
    return arrive_at_once(net, f.hop, now, f.retransmit, 1.0, 0.0, rtt, rtt, 0, now)


@jit
def finish_interval(net: Net, f: Sender) -> bool:
    """End the flow's present interval of sending; returns False if the run fails.

    Over an interval of sending, a flow sends packets evenly, or none. At the interval's end it may
    also send a retransmission and a burst. This function decides which of the evenly sent packets
    are lost at the flow's first queue, and sends the retransmission. The caller sends the burst
    (``send_burst``).
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
    """Send the flow's burst into its first queue, from ``at`` on; returns False if the run fails.

    The packets follow one another at the rate of the access link. If another flow has an event
    before the next packet, the rest of the burst is sent after that event.

    A burst of a Linux sender is not interrupted by other flows: without an access link, Linux puts
    all its packets into the queue together (tcp_write_xmit). This does not hold if each packet
    waits a random time below TCP (``queue_wait``).
    """
    h = net.hops[f.hop]
    f.event = DATA
    fits = True
    spread_out = not f.bursts_at_once or f.queue_wait > 0.0 or net.links[h.link].partner >= 0
    while f.burst > 0.0 and fits:
        if spread_out and due(net, f.hop, at) > next_other_event(net, f.hop):
            f.event, f.time = REST, at
            schedule(net, f.hop, at)
            return True
        packets = min(f.burst, f.burst_part)
        _foresee(net.links, h.link, at)
        advance(net.links, h.link, at)
        # A packet's RTT counts from its timestamp, ``sent_at``. In ns-2 every packet of a burst has
        # the time at which the burst begins as its timestamp. The packets leave one by one, at the
        # rate of the access link. So the RTT of a later packet includes its wait for the earlier
        # ones. In Linux the timestamps of a burst are equal, too (tcp_transmit_skb). The Linux
        # machines that we measured have no access links (``docs/linux.md``), so the whole burst
        # enters the queue at its timestamp. Hence the timestamp of a Linux packet is here the time
        # at which the packet enters the queue.
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
    """If flow number ``who`` has lost a packet in this event, make every other flow lose one, too.

    This is hypothesis 5 of De Vendictis and Baiocchi: losses are synchronised. Each of the other
    flows loses its packet when it sends next. Flows in recovery do not lose a packet. A loss that
    this function has caused does not cause further losses.
    ``before`` is the number of packets that flow ``who`` had lost before this event.
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
    """How many of the flow's packets of data cumulative ACKs have acknowledged at time ``now``.

    The simulator processes the ACKs of a time interval together, when the interval begins. So
    ``f.delivered`` also counts ACKs that arrive after ``now``. If the buffer is infinite, an
    interval may be longer than the flow's RTT on an empty path. Then an estimate of these ACKs is
    subtracted. In all other cases they are few and are not subtracted.
    """
    link = net.links[net.hops[f.hop].link]
    if not never_full(link) or f.ahead_until - f.ahead_since <= f.rtt or now >= f.ahead_until:
        return f.delivered
    part = (f.ahead_until - now) / (f.ahead_until - f.ahead_since)
    return f.delivered - np.ceil(f.ahead * min(part, 1.0))


@rare
def _end_warmup(net: Net, k: int) -> None:
    """At the end of warm-up, store the totals of queue ``k`` and of the flows that begin there.

    At the end of the run the stored totals are subtracted, so that the results do not include
    warm-up.
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

    ``out_queue`` gets the number of waiting packets. ``out_flow`` gets six numbers for each flow:
    the window, the packets sent, the RTT in seconds with the present queues, the packets delivered,
    the baseRTT, and the packets lost.
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
    """Take the samples that are due at ``now``; returns when this function must be called again.

    The clock of a queue is ``link.shift`` seconds behind the simulation's clock. Each queue is
    sampled when its own clock reaches one of ``times`` (``_take_sample`` says what goes into
    ``out_flow`` and ``out_queue``). When its clock reaches ``warmup``, the queue's warm-up ends.
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
    """The RTT in seconds that a small packet of the handshake has with the present queues."""
    rtt = f.rtt
    for e in range(f.hop, f.hop + f.hops):
        h = net.hops[e]
        link = net.links[h.link]
        if h.data:
            rtt += waiting(net.links, h.link, link.queue, 0.0)
            rtt -= (h.work - f.syn) / link.capacity
    return rtt


@rare
def _send_small(net: Net, f: Sender) -> None:
    """Add a small packet of the handshake to the flow's first queue."""
    k = net.hops[f.hop].link
    link = net.links[k]
    if link.partner < 0:
        enqueue_handshake(link, f.syn)
        return
    link.arrived += f.syn
    join(net, k, -1, link.now, 0.0, 1.0, 0.0, 0.0, 0.0, 0, link.now, f.syn, 0.0)


@rare
def _handshake(net: Net, f: Sender) -> float:
    """Simulate the TCP handshake; returns the seconds that it takes.

    The SYN, a small packet, joins the flow's first queue.
    """
    rtt = _rtt_of_small(net, f)
    if net.hops[f.hop].data:
        _send_small(net, f)
    syn_acknowledged(f, f.time, rtt)
    return rtt


@rare
def _send_missing(f: Sender, holes: Floats, now: float) -> None:
    """After a timeout of ns-2's CUBIC, send the first missing packet, or wait at random first."""
    f.event, f.first, f.spread, f.burst, f.retransmit, f.late = DATA, f.next, 0.0, 0.0, -1.0, 0.0
    arm(f, now)
    if f.jitter > 0.0:
        begin_wait(f, holes, now)
    else:
        send_in_recovery(f, holes, usable_window(f, now), 0.0)


@rare
def _restart(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Send what the window allows, at the flow's start or after a timeout.

    Linux has two timers that expire before the retransmission timer: the reordering timer of RACK,
    and that of the tail loss probe. If one of them has expired, ``early_timer_expired`` decides
    what is sent instead. A sender with random waits first begins a wait. ns-2's CUBIC begins a
    recovery after a timeout: it retransmits only the packets that SACK has not reported as arrived.
    """
    if f.event == TIMER:
        if early_timer_expired(f, holes, now):
            f.event = DATA
            return
        retransmission_timeout(f, now)
        if f.phase == RECOVERY:
            take_all_for_lost(f, holes)
            _send_missing(f, holes, now)
            return
    if f.next == 0.0:  # the clock of ns-2's Vegas begins
        f.round_start = now
    if f.event == CONNECTED and f.third_ack:  # its last ACK goes ahead of the data
        f.receiver_rtt = _rtt_of_small(net, f)  # from the SYN-ACK to this ACK
        _send_small(net, f)
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

    A link with Rate-Delay services divides its capacity between two classes of flows, R and D. The
    shares depend on the numbers of active flows. So each such link on the flow's path divides its
    capacity anew. In ns-2 the shares change at given times instead (``turns.begin_shares``).
    """
    f.active += change
    for e in range(f.hop, f.hop + f.hops):
        k = net.hops[e].link
        if net.hops[e].data and net.links[k].partner >= 0 and not net.links[k].class_based:
            advance(net.links, k, net.links[k].now)
            net.links[k].active += change
            share_by_flows(net.links, k)


@jit
def _send_interval(net: Net, f: Sender, who: int, now: float, synchronised: bool) -> bool:
    """End the flow's interval of sending and send its burst; returns False if the run fails.

    An interval of sending is a time over which the simulator lets a flow send evenly, in one event.
    If another flow has an event before the whole burst is sent, ``send_burst`` stops and sets
    ``f.event`` to ``REST``. This function is then called again to send the rest. ``who`` is the
    flow's number. If ``synchronised`` is True, a packet that this flow loses makes all other
    flows lose one (``_share_loss``).
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

    An interval of sending is a time over which the simulator lets a flow send evenly, in one event.
    It may be long if no loss is near: if the flow is neither in slow start nor in recovery, none of
    its packets is missing, and the buffer of its first queue has room for several packets
    (``queue.intervals``). The window then hardly changes within the interval.

    A flow stops being active when all its data are delivered, or at its stop time. A short flow
    whose data are delivered has no next interval.
    """
    h = net.hops[f.hop]
    parts = float(net.parts)
    if f.phase == OPEN and f.holes == 0 and not in_slow_start(f):
        parts = intervals(net.links[h.link], window(f), float(net.calm), parts)
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

    At its start the flow sends a SYN. If the buffer is full, the SYN is lost, and the flow sends
    another one after a pause. After the handshake the flow sends its first window. A flow without a
    handshake sends its first window at its start.
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
    """Handle the flow's next event at the first queue of its path; returns False if the run fails.

    There are five types of events: an interval of sending ends, the rest of a burst is due, a timer
    expires, the flow starts, and the flow's TCP handshake ends. ``who`` and ``synchronised`` are
    those of ``_send_interval``.
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
    # an interval that long holds only one ACK, and what one ACK allows leaves at once
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
    begin_shares(net)


@rare
def _set_rounding(net: Net, row: Floats) -> None:
    """Set the capacity and the delays to values that have rounding errors like those of ns-2.

    ns-2 rounds times, and its rounding errors grow as the simulated time grows
    (``rounding.roundings``). ``row`` contains the values for the present time. It is a row of
    ``march``'s argument ``grid``.
    """
    n = net.links.shape[0]
    m = (row.shape[0] - 2 * n) // 2
    stores = net.hops.shape[0] - m  # the first hops, which belong to no flow
    for k in range(n):
        net.links[k].capacity, net.links[k].instant = row[k], row[n + k]
    for e in range(net.hops.shape[0]):
        h = net.hops[e]
        f, link = net.flows[h.flow], net.links[h.link]
        if not h.stores:
            work, to_next = row[2 * n + e - stores], row[2 * n + m + e - stores]
            # this flow's rate was added with the old packet size, and is subtracted with the new
            link.rate += (f.rate if e == f.hop else h.rate) * (work - h.work)
            h.work, h.to_next = work, to_next
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
    most: int,
    kept: Floats,
) -> tuple[int, int, float]:
    """Run the simulation up to time ``end`` and take samples at the instants ``times``.

    ``out_flow`` and ``out_queue`` receive the samples (``_take_sample``). At ``warmup`` the totals
    are stored (``_end_warmup``). ``holes`` [flow, hole, column] are the packets that receivers miss
    (``acks.add_hole``). If ``synchronised`` is True, a packet that one flow loses makes every other
    flow lose a packet, too (``_share_loss``).

    Returns the status, the number of events, and the simulated time in seconds.

    From the time ``falls`` on, the run also stops at each event that reduces a flow's window. The
    status is then ``FALL``. Only whole packets of the window count. All queues are simulated up to
    this event, and the next call continues the run.

    After ``most`` events the run stops, too, with the status ``PAUSED``. The next call continues it
    as if it had not stopped. ``kept`` has two numbers that calls hand on to the next one: when
    samples are due, and how many rows of ``grid`` have been used. Both are 0 at first.

    ``grid`` contains capacities and delays with rounding errors like those of ns-2
    (``rounding.roundings``).
    """
    events, fits = 0, True
    sample_due, used = kept[0], int(kept[1])
    limit = 2.0 ** (used - 1 + FIRST_BINADE) if used > 0 else 0.0
    while net.keys[net.tree[1]] < NEVER:
        e = net.tree[1]
        h = net.hops[e]
        who = h.flow
        f = net.flows[who]
        now = f.time if e == f.hop else h.time
        clock = now + net.links[h.link].shift
        if clock >= sample_due:
            sample_due = _take_due_samples(net, clock, times, out_flow, out_queue, warmup, end)
            kept[0] = sample_due
        if now > end:
            schedule(net, e, NEVER)
            continue
        while now >= limit and used < grid.shape[0]:
            limit = 2.0 ** (used + FIRST_BINADE)
            _set_rounding(net, grid[used])
            used += 1
            kept[1] = used
        before = cwnd_packets(f) if now >= falls else 0.0
        if e == f.hop:
            fits = _flow_event(net, f, who, holes[who], now, synchronised)
        else:
            fits = at_store(net, e) if h.stores else hop(net, e)
        events += 1
        if not fits:
            return FULL_RING, events, now
        if now >= falls and cwnd_packets(f) < before:
            now += net.links[h.link].shift
            for k in range(net.links.shape[0]):
                _stop_queue(net, k, now - net.links[k].shift)
            return FALL, events, now
        if events >= most:
            return PAUSED, events, now
    _take_due_samples(net, NEVER, times, out_flow, out_queue, warmup, end)
    for k in range(net.links.shape[0]):
        _stop_queue(net, k, end)
    for i in range(net.flows.shape[0]):
        f = net.flows[i]
        f.delivered, f.ahead = _delivered(net, f, end), 0.0
    return DONE, events, end
