"""Runs the main loop of the simulator ``rounds``, which processes all events in order of time.

In most events, packets of one flow reach a queue: one packet if a round trip has few packets,
otherwise several (``resolution.py``). Other events are the start of a flow, the end of its TCP
handshake, and the expiry of a timer.

``march`` is the main loop. ``sender.py`` decides what a flow sends, and ``start.py`` how it starts.
``travel.py`` moves packets from queue to queue, and ``queue.py`` computes how a queue delays and
drops them. ``samples.py`` records what the flows and queues do.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import random

import numpy as np

from vegasmodel.engines.rounds.laws import cwnd_packets, in_slow_start, window
from vegasmodel.engines.rounds.onward import comes_first, schedule
from vegasmodel.engines.rounds.queue import advance, intervals
from vegasmodel.engines.rounds.random_drops import draw_next_loss
from vegasmodel.engines.rounds.samples import (
    close,
    delivered_by,
    end_warmup_of,
    take_due_samples,
)
from vegasmodel.engines.rounds.sender import plan
from vegasmodel.engines.rounds.start import count_active, start_or_restart
from vegasmodel.engines.rounds.state import (
    DATA,
    FIRST_BINADE,
    OPEN,
    REST,
    Group,
    Net,
    Queue,
    Sender,
    Table,
    jit,
    rare,
)
from vegasmodel.engines.rounds.travel import (
    arrive_at_once,
    arrive_evenly,
    begin_arrivals,
    end_arrivals,
    hop,
    pass_no_packets,
)
from vegasmodel.engines.rounds.turns import at_store, begin_shares
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

# why a run stopped: plain integers for Numba
DONE, FALL = int(Status.DONE), int(Status.FALL)
FULL_RING, PAUSED = int(Status.FULL_RING), int(Status.PAUSED)
# indices of the numbers that one call of ``march`` hands on to the next
SAMPLE_DUE, ROWS_USED, SEED = range(3)
BURST_PARTS = 256.0  # greatest number of parts in which a burst enters its first queue


@jit
def _foresee(links: Table[Queue], k: int, time: float) -> None:
    """Record in ``foreseen`` that a packet of a burst arrives at queue ``k`` at time ``time``.

    A burst is simulated in one event, although its packets arrive one after another. After this
    event the queue has been simulated up to the arrival of the burst's last packet, ``foreseen``.
    Packets of other flows that arrive before ``foreseen`` are therefore handled a little late. The
    check for late packets, ``travel._note_lateness``, must not count them, so it needs
    ``foreseen``. The two queues of a Rate-Delay link have the same ``foreseen``.
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
    # One packet. Its travel time is that of the whole round trip in the empty network from the
    # beginning; each queue then adds the wait there.
    now, rtt = f.time, f.rtt
    return arrive_at_once(net, f.hop, now, Group(f.retransmit, 1.0, 0.0, rtt, rtt, 0, now))


@jit
def finish_interval(net: Net, f: Sender) -> bool:
    """End the flow's present interval of sending; returns False if the run fails.

    An interval of sending is a time in which the simulator lets a flow send packets evenly, or no
    packets. At the interval's end the flow may also send a retransmission and a burst. This
    function decides which of the evenly sent packets are lost at the flow's first queue, and sends
    the retransmission. The caller sends the burst (``send_burst``).
    """
    h = net.hops[f.hop]
    link = net.links[h.link]
    if f.rate > 0.0:  # packets have arrived at the queue at this rate
        end_arrivals(link, f.rate, h.work)
        f.rate = 0.0
    fits = True
    e, now, rtt = f.hop, f.time, f.rtt
    # ``spread`` packets were sent evenly, from number ``first`` on, and ``burst`` packets leave
    # now. Those with numbers below ``high`` are retransmissions.
    f.retransmits += min(max(f.high - f.first, 0.0), f.spread + f.burst)
    f.high = max(f.high, f.first + f.spread + f.burst)
    if f.spread > 0.0:
        f.sent += f.spread
        # none is lost or marked yet; their travel time begins as the RTT of the empty network
        group = Group(f.first, f.spread, 0.0, rtt, rtt, 0, now)
        fits = arrive_evenly(net, e, now, f.since_queue, group)
    elif f.retransmit < 0.0 and f.burst == 0.0:  # the flow has sent nothing
        fits = pass_no_packets(net, e, now, f.first, 0.0, now)
    if f.retransmit >= 0.0:  # the number of a packet to be sent again
        fits = _send_retransmission(net, f) and fits
    f.first += f.spread
    f.sent += f.burst
    # ``send_burst`` sends ``burst_part`` packets at a time: one, unless the burst is very long
    f.left_at, f.burst_part = now, max(1.0, np.ceil(f.burst / BURST_PARTS))
    return fits


@jit
def send_burst(net: Net, f: Sender, at: float) -> bool:
    """Send the flow's burst into its first queue, from ``at`` on; returns False if the run fails.

    The packets follow one another at the rate of the access link. But if the first queue is that of
    a slow access link, they enter it at once (``Sender.gap`` is 0). If another flow has an event
    before the next packet, the rest of the burst is sent after that event.

    A burst of a Linux sender is not interrupted in this way, because Linux puts all its packets
    into the queue together (tcp_write_xmit). There are two exceptions: each packet waits a random
    time below TCP (``queue_wait``), or the link has Rate-Delay services.
    """
    h = net.hops[f.hop]
    f.event = DATA
    fits = True
    spread_out = not f.bursts_at_once or f.queue_wait > 0.0 or net.links[h.link].partner >= 0
    while f.burst > 0.0 and fits:
        if spread_out and not comes_first(net, f.hop, at):
            f.event, f.time = REST, at
            schedule(net, f.hop, at)
            return True
        packets = min(f.burst, f.burst_part)
        _foresee(net.links, h.link, at)
        advance(net.links, h.link, at)
        # A packet's RTT counts from its timestamp, ``sent_at``.
        #
        # In ns-2 all packets of a burst have the same timestamp: the time at which the burst begins
        # (``left_at``). The packets then leave one by one, at the rate of the access link. So the
        # RTT of a later packet includes the time that it waits for the earlier packets to leave.
        #
        # In Linux, too, all packets of a burst have the same timestamp (tcp_transmit_skb). But the
        # sender's link has no rate limit in our measurements (``docs/linux.md``). So the whole
        # burst enters the bottleneck's queue at the time of the timestamp, and no RTT includes a
        # wait before the queue. In this simulator the packets of a Linux burst enter the queue one
        # after another, at the rate of the access link. So each packet gets its own timestamp: the
        # time at which it enters the queue (``stamps_departure``). Then the simulated RTT does not
        # include a wait before the queue either.
        sent_at = at if f.stamps_departure else f.left_at
        took = f.rtt + (at - sent_at)  # the RTT if no packet waits in a queue
        group = Group(f.first, packets, 0.0, took, took, 0, sent_at)  # none is lost or marked yet
        fits = arrive_at_once(net, f.hop, at, group)
        f.first += packets
        f.burst -= packets
        at += packets * f.gap
        # Linux: TCP sent the whole burst ``late`` seconds before its first packet left the host.
        # Each packet leaves a random time after TCP sent it, but not before the previous packet.
        if f.queue_wait > 0.0:
            at = max(at, f.left_at - f.late + f.queue_wait * np.random.random())
    return fits


@rare
def _share_loss(flows: Table[Sender], who: int, before: float) -> None:
    """If flow number ``who`` has lost a packet in this event, make every other flow lose one, too.

    This is hypothesis 5 of De Vendictis and Baiocchi: losses are synchronised. Each of the other
    flows loses its packet when it sends next. Flows in recovery do not lose a packet. A loss that
    this function has caused does not cause further losses. ``before`` is the number of packets that
    flow ``who`` had lost before this event.
    """
    if flows[who].lost == before:
        return
    forced = flows[who].owed_loss > 0.0  # this function has caused the loss
    flows[who].owed_loss = 0.0
    for i in range(flows.shape[0]):
        if i != who and not forced and flows[i].acked > flows[i].recover:
            flows[i].owed_loss = 1.0


@jit
def _send_interval(net: Net, f: Sender, who: int, now: float, synchronised: bool) -> bool:
    """End the flow's interval of sending and send its burst.

    Over an interval of sending the simulator lets a flow send packets evenly, and processes them in
    one event at the interval's end. There the flow may also send a retransmission, and after it a
    burst: packets back to back, ``f.gap`` seconds apart.

    The event ``DATA`` is the end of an interval. If another flow has an event before the whole
    burst is sent, ``send_burst`` stops and sets ``f.event`` to ``REST``. This function is then
    called again to send the rest. ``who`` is the flow's number. If ``synchronised`` is True, a
    packet that this flow loses makes all other flows lose one (``_share_loss``).

    Returns False if the ring buffers have no room for the packets in flight; the run then fails.
    """
    lost_before = f.lost
    if f.event == DATA:
        if not finish_interval(net, f):
            return False
        if f.retransmit >= 0.0:  # it has just been sent; the burst follows behind it
            now += f.gap
    fits = send_burst(net, f, now)
    if synchronised:
        _share_loss(net.flows, who, lost_before)
    return fits


@jit
def _plan_next(net: Net, f: Sender, holes: Floats, now: float) -> None:
    """Plan the flow's next interval of sending.

    An interval of sending is a time over which the simulator lets a flow send evenly, in one event.
    It may be long if no loss is near: if the flow is neither in slow start nor in recovery, none of
    its packets is missing, and the buffer of its first queue has room for several packets
    (``queue.intervals``). The window then hardly changes within the interval. ``holes`` is the
    table of the packets that the flow's receiver misses (``acks.add_hole``).

    A flow stops being active when all its data are delivered, or at its stop time. Its totals are
    then final (``close``), and it no longer counts among the flows of a Rate-Delay class
    (``count_active``). A short flow whose data are delivered has no next interval.
    """
    h = net.hops[f.hop]
    parts = float(net.parts)  # intervals of sending per round trip
    if f.phase == OPEN and f.holes == 0 and not in_slow_start(f):
        parts = intervals(net.links[h.link], window(f), float(net.calm), parts)
    if now >= f.stop and not f.closed:
        close(f, f.stop)
    plan(f, net.rings, h, holes, now, parts)
    if f.acked >= f.size and f.finished == NEVER:
        f.finished = f.time
    if f.active and (now >= f.stop or f.acked >= f.size):
        count_active(net, f, -1)
    if f.short_flow and f.acked >= f.size:
        f.time, f.awaits_parcels = NEVER, 0


@jit
def _flow_event(
    net: Net, f: Sender, who: int, holes: Floats, now: float, synchronised: bool
) -> bool:
    """Handle the flow's next event at the first queue of its path; returns False if the run fails.

    There are five types of events: an interval of sending ends, the rest of a burst is due, a timer
    expires, the flow starts, or the flow's TCP handshake ends. (An interval of sending is a time
    over which the simulator lets a flow send evenly, in one event.) ``who`` is the flow's number,
    and ``holes`` is the table of the packets that its receiver misses (``acks.add_hole``). If
    ``synchronised`` is True, a packet that the flow loses makes all other flows lose one, too.
    """
    h = net.hops[f.hop]
    link = net.links[h.link]
    advance(net.links, h.link, now)
    if f.event == DATA and f.spread == 0.0 and f.burst == 0.0 and f.retransmit < 0.0:
        now = f.time = max(now, link.now)  # the flow has sent nothing in this interval
    f.awaits_parcels = 0
    if f.event == DATA or f.event == REST:
        if not _send_interval(net, f, who, now, synchronised):
            return False
        if f.event == REST:  # another event comes first, and after it the rest of the burst
            return True
        now = f.left_at
        _plan_next(net, f, holes, now)
    else:
        start_or_restart(net, f, holes, now)
    # The next interval, from ``now`` to ``f.time``, is planned. Its packets arrive at the queue
    # evenly from now on, if they are several and the interval is not longer than allowed. (In a
    # longer interval only one ACK arrives, and the packets that it allows leave at the end.)
    f.since_queue = link.queue
    too_long = f.time - now > 1.5001 * f.longest_stretch  # 1.5, and a margin for rounding
    f.rate = 0.0 if too_long else begin_arrivals(link, f.spread, h.work, now, f.time)
    if f.rate == 0.0:  # all packets leave at the end
        f.burst += f.spread
        f.spread = 0.0
    schedule(net, f.hop, f.time)
    return True


@rare
def _start_flows(net: Net, seed: int) -> None:
    """Prepare a new run: seed the random numbers and schedule the start of each flow."""
    np.random.seed(seed)
    random.seed(seed)  # Numba's other generator: users' functions may call ``random``
    for k in range(net.links.shape[0]):  # random loss: when the first packet is lost
        draw_next_loss(net.links[k])
    for e in range(net.hops.shape[0]):  # no packets are on their way yet
        schedule(net, e, NEVER)
    for i in range(net.flows.shape[0]):
        net.flows[i].time = net.flows[i].start
        schedule(net, net.flows[i].hop, net.flows[i].start)
    begin_shares(net)


@rare
def _set_rounding(net: Net, row: Floats) -> None:
    """Set the capacity and the delays to values that have rounding errors like those of ns-2.

    ns-2 rounds times, and its rounding errors grow as the simulated time grows
    (``rounding.roundings``). ``row`` contains the values for the present time: one row of the table
    ``grid``, an argument of ``march``. Its numbers are the capacity of each queue, the number of
    packets that counts as one instant at each queue, the size of a packet at each hop, and the
    delay from each hop to the next. (A hop is one queue on one flow's path.)
    """
    queues = net.links.shape[0]
    hops = (row.shape[0] - 2 * queues) // 2  # of flows
    # The first entries of ``net.hops`` are not hops of flows: they hold the waiting packets of
    # Rate-Delay classes (``stores``). They have no numbers in ``row``.
    stores = net.hops.shape[0] - hops
    for k in range(queues):
        net.links[k].capacity, net.links[k].instant = row[k], row[queues + k]
    for e in range(net.hops.shape[0]):
        h = net.hops[e]
        f, link = net.flows[h.flow], net.links[h.link]
        if not h.stores:
            at = 2 * queues + e - stores  # of the packet size; the delay is ``hops`` entries later
            work, to_next = row[at], row[at + hops]
            # ``link.rate`` has the flow's packet rate times its packet size, which changes here
            link.rate += (f.rate if e == f.hop else h.rate) * (work - h.work)
            h.work, h.to_next = work, to_next
        h.early = h.lead * link.instant / link.capacity


@rare
def _stop_queue(net: Net, k: int, now: float) -> None:
    """Simulate queue ``k`` until the time ``now``, at which the run stops."""
    advance(net.links, k, now)


@rare
def _last_acks(net: Net, f: Sender, holes: Floats, until: float) -> None:
    """Process the ACKs that reach the sender up to the time ``until``, after the run's last event.

    The time is by the clock of the flow's first queue. The packets that these ACKs allow are not
    sent, because they would reach the queue after the run.
    """
    while not f.closed and f.time < until and f.awaits_parcels == 0:
        if f.event == DATA:  # new packets are counted as sent
            f.high = max(f.high, f.first + f.spread + f.burst)
        elif f.event != REST:
            break
        _plan_next(net, f, holes, f.time if f.event == DATA else f.left_at)


@rare
def _finish(net: Net, f: Sender, holes: Floats, warmup: float, end: float) -> None:
    """Store the flow's totals at the end of the run, the time ``end`` by the clock of the sender.

    By the clock of the flow's first queue this is ``Sender.way`` seconds later. If the warm-up ends
    within these seconds, the totals at its end, the time ``warmup``, are also stored here.
    """
    if not f.warm:  # the warm-up ends within these seconds
        _last_acks(net, f, holes, warmup + f.way)
        end_warmup_of(f, warmup + f.way)
    until = end + f.way
    _last_acks(net, f, holes, until)
    if not f.closed:
        close(f, min(until, f.stop))
    f.delivered, f.ahead = delivered_by(f, until), 0.0


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
    carried: Floats,
) -> tuple[int, int, float]:
    """Run the simulation up to time ``end`` and take samples at the instants ``times``.

    ``out_flow`` and ``out_queue`` receive the samples (``samples.py``). At the time ``warmup`` the
    totals so far are stored, to be subtracted from the final ones. ``holes`` [flow, hole, column]
    are the packets that receivers miss (``acks.add_hole``). If ``synchronised`` is True, a packet
    that one flow loses makes every other flow lose a packet, too (``_share_loss``).

    Returns the status (``Status``), the number of events, and the simulated time in seconds.

    From the time ``falls`` on, the run also stops at each event that reduces the number of whole
    packets in a flow's window, because the search for a steady state compares the states at these
    events (``cycle.py``). The status is then ``FALL``. All queues are simulated up to this event,
    and the next call continues the run.

    After ``most`` events the run stops, too, with the status ``PAUSED``, so that Python can react
    to Ctrl-C. The next call continues it as if it had not stopped. ``carried`` has three numbers
    that one call hands on to the next: the time at which samples are due (``SAMPLE_DUE``), the
    number of rows of ``grid`` that have been used (``ROWS_USED``), and the seed of the random
    numbers (``SEED``). Before the first call, two of them are 0: the time and the number of rows.
    The first call replaces the seed by -1.

    ``grid`` contains capacities and delays with rounding errors like those of ns-2. Each row is for
    a period that ends at a power of 2 seconds (``rounding.roundings``).
    """
    events, fits = 0, True
    if carried[SEED] >= 0.0:
        _start_flows(net, int(carried[SEED]))
        carried[SEED] = -1.0
    sample_due, used = carried[SAMPLE_DUE], int(carried[ROWS_USED])
    # end of the period of the present row of ``grid``, seconds
    limit = 2.0 ** (used - 1 + FIRST_BINADE) if used > 0 else 0.0
    while net.keys[net.tree[1]] < NEVER:
        e = net.tree[1]  # the hop (a queue on one flow's path) at which the next event happens
        h = net.hops[e]
        who = h.flow
        f = net.flows[who]
        now = f.time if e == f.hop else h.time
        clock = now + net.links[h.link].shift
        if clock >= sample_due:
            sample_due = take_due_samples(net, clock, times, out_flow, out_queue, warmup, end)
            carried[SAMPLE_DUE] = sample_due
        if now > end:
            schedule(net, e, NEVER)
            continue
        while now >= limit and used < grid.shape[0]:
            limit = 2.0 ** (used + FIRST_BINADE)
            _set_rounding(net, grid[used])
            used += 1
            carried[ROWS_USED] = used
        before = cwnd_packets(f) if now >= falls else 0.0
        if e == f.hop:  # the first queue of the flow's path
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
    take_due_samples(net, NEVER, times, out_flow, out_queue, warmup, end)
    for k in range(net.links.shape[0]):
        _stop_queue(net, k, end)
    for i in range(net.flows.shape[0]):
        _finish(net, net.flows[i], holes[i], warmup, end)
    return DONE, events, end
