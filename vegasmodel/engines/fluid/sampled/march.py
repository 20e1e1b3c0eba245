"""Runs the main loop of the package ``sampled``, which simulates in small steps of time.

In each step the loop starts and stops flows, and updates the windows and the queue. It also adds up
the time integrals from which the averages are computed.

In the functions, ``now`` is the link's present state, ``link`` has its constants, and ``c`` is its
capacity in pkt/s. A step lasts ``fraction`` of the shortest round trip, or less.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.pauses import PAUSED
from vegasmodel.engines.fluid.records import SPAN, WAITED, Tally
from vegasmodel.engines.fluid.sampled.chance import comes_in_trains
from vegasmodel.engines.fluid.sampled.drops import first_window_arrives, overflow
from vegasmodel.engines.fluid.sampled.growth import grow
from vegasmodel.engines.fluid.sampled.law import drift
from vegasmodel.engines.fluid.sampled.line import to_comparison
from vegasmodel.engines.fluid.sampled.queue import delay, round_trip_of_train, train_part
from vegasmodel.engines.fluid.sampled.records import (
    NEVER,
    WINDOW_ERROR,
    Bottleneck,
    LinkState,
    Sender,
    moving,
)
from vegasmodel.engines.fluid.sampled.round_trip import on_acks, sample_delay
from vegasmodel.engines.fluid.sampled.trains import begin_train
from vegasmodel.engines.fluid.within_step import delivered_within
from vegasmodel.engines.on_demand import call
from vegasmodel.engines.tables import Table, jit, rare
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

# round trips: longest step while trains of a slow start reach RED, or packets of a flow that has
# stopped leave the queue
SHORT_STEP = 1.0 / 16.0
ROUNDS_AT_REST = 4.0  # if no decision moves a window in 4 round trips, none ever will
# why a march ended: plain integers for Numba
DONE, FELL, TOO_MANY = int(Status.DONE), int(Status.FALL), int(Status.TOO_MANY_EVENTS)
FALL = 1.0 - 1e-9  # packets: the least decrease of a window that counts as a jump down


@rare
def begin_flow(flow: Sender, now: LinkState, link: Bottleneck) -> None:
    """Put a flow that starts now into its first state, and let its first window arrive.

    All packets of the first window are in flight at once. If the flow measures its baseRTT, the
    present queueing delay, in which it starts, counts as a part of the propagation delay.
    """
    flow.cwnd = flow.in_flight = flow.initial_window
    flow.in_slow_start = flow.starts_slowly
    flow.ssthresh, flow.doubles = np.inf, 1
    flow.untimed = flow.untimed_first
    if flow.measures_base:
        flow.over_estimate = np.inf if flow.untimed else now.delay
    begin_first_round(flow, now, link.capacity)
    forget_losses(flow, now.time)
    now.ordered_until = 0.0  # the blocks at RED do not contain this flow
    begin_train(flow, now, link.capacity)
    if flow.first_rto > 0.0:  # without a handshake its first packets may find a full buffer
        first_window_arrives(flow, now, link)


@rare
def begin_first_round(flow: Sender, now: LinkState, c: float) -> None:
    """Begin the first round trip of a flow; ``c`` is the capacity in pkt/s.

    The ACKs of this round trip will report the present queueing delay. Sums over its packets, the
    ACKs expected from earlier packets, and the rests of the window are 0.
    """
    flow.acked_delay = flow.round_delay = now.delay
    flow.round_part = flow.round_drift = 0.0
    flow.round_lasts = round_trip_of_train(flow, now, c)
    flow.delay_sum, flow.round_sent, flow.least_delay = 0.0, 0.0, np.inf
    # its bursts, and what is known of the ACKs that are to come
    flow.burst = flow.next_burst = 0.0
    flow.bunch = flow.bunch_left = 0.0
    flow.acks_left = flow.spare_acks = 0.0
    flow.held_back = flow.lacks = 0.0
    flow.heard = False
    # its place in its train, and times for which its window rests
    flow.place = 0.0
    flow.rest = flow.rests_for = 0.0


@rare
def forget_losses(flow: Sender, time: float) -> None:
    """Let a flow that starts at ``time``, in s, have no loss, no recovery and no timeout so far."""
    # losses that the sender has not detected
    flow.undetected = flow.detection_in = flow.later_delay = 0.0
    flow.hears_in = flow.silence = flow.burst_lost = 0.0
    # its recovery, and what it has sent since the last loss
    flow.recovery_left = flow.resends_left = 0.0
    flow.sent_since = flow.new_in_flight = flow.new_beyond = 0.0
    flow.lost_of_pairs = flow.resend_lost = False
    # its timer: the next timeout is not backed off
    flow.timeout_ends = flow.resends = 0.0
    flow.backoff = flow.timer = 1.0
    flow.ignores_duplicates = False
    # before the first loss, the time and the round trips since the last loss count from the start
    flow.last_loss, flow.trips, flow.memory = time, 0.0, 0.0


@rare
def admit(flows: Table[Sender], now: LinkState, link: Bottleneck) -> float:
    """Start and stop the flows whose time has come; returns the time of the next start or stop."""
    t, due = now.time, np.inf
    for i in range(len(flows)):
        flow = flows[i]
        active = flow.start <= t < flow.stop
        if active and not flow.active:
            begin_flow(flow, now, link)
        elif flow.active and not active:
            flow.in_flight = flow.drain = moving(flow)  # these still pass the queue (``drain_out``)
            flow.cwnd = flow.undetected = flow.held_back = 0.0
            flow.arriving = False
        flow.active = active
        flow.rounds_at_rest = 0.0  # a start or stop changes the queue, which may move any window
        if flow.start > t:
            due = min(due, flow.start)
        elif flow.stop > t:
            due = min(due, flow.stop)
    now.recount = True
    return due


@jit
def rests(flows: Table[Sender], link: Bottleneck) -> bool:
    """Whether all windows will keep their values until the next flow starts or stops.

    This can be known only if all laws decide once per round trip, as Vegas does.
    """
    if link.red or link.loss > 0.0:  # a random loss may change a window at any time
        return False
    for i in range(len(flows)):
        flow = flows[i]
        if not flow.active and flow.in_flight > 0.0:  # the queue gets shorter
            return False
        constant = flow.once_a_round and flow.rounds_at_rest >= ROUNDS_AT_REST
        # a user's law may have a function ``update``, which changes the numbers that it keeps
        constant = constant and flow.update_at == 0
        if flow.active and (not constant or flow.in_slow_start or flow.detection_in > 0.0):
            return False
    return True


@jit
def overflow_nears(flows: Table[Sender], now: LinkState, link: Bottleneck, fraction: float) -> bool:
    """Whether the buffer can overflow in the next step, which lasts ``fraction`` of a round trip.

    To judge this, the function lets each window grow by one packet per round trip; most windows do
    not grow faster. To be safe, it adds one packet to the queue.
    """
    packets = now.delay * link.capacity + 1.0
    for i in range(len(flows)):
        if flows[i].active:
            packets += fraction
    return packets > link.room


@jit
def next_event(flow: Sender, now: LinkState, c: float) -> float:
    """Round trips until the sender's next event, if its present state lasts.

    The events are:

    - the sender detects a loss, or its recovery ends;
    - a round trip of a Vegas sender ends, or the last packet of its train (its packets in flight,
      one behind the other) passes the queue;
    - Linux's CUBIC compares its window with its target, and may let it grow (``line.py``);
    - the window reaches the next whole number of packets.

    Events that are nearer than ``WINDOW_ERROR`` do not count. ``c`` is the capacity in pkt/s.
    """
    after = NEVER
    if flow.detection_in > WINDOW_ERROR:
        after = flow.detection_in
    if flow.recovery_left > WINDOW_ERROR:
        return min(after, flow.recovery_left)
    if flow.timeout_ends > now.time:  # it waits for a timeout
        return after
    if (flow.once_a_round or flow.delays_acks) and flow.round_part < 1.0 - WINDOW_ERROR:
        after = min(after, 1.0 - flow.round_part)
    if flow.samples_train:
        passes = train_part(flow, now, c) - flow.round_part
        after = min(after, passes) if passes > WINDOW_ERROR else after
    if 0.0 < flow.detection_in <= flow.silence + 1.0 / max(flow.in_flight, 1.0):
        return after  # no ACK moves the window before the loss is detected (``growing``)
    growth = 0.0  # packets per round trip
    if flow.once_a_round:  # its window grows only in the first ``part`` of the round trip
        part = 1.0 if flow.in_slow_start else train_part(flow, now, c)
        growth = flow.round_drift / part if flow.round_part < part else 0.0
    elif flow.compares and not flow.in_slow_start:
        compares_in = to_comparison(flow, now, c)
        after = min(after, compares_in) if compares_in > WINDOW_ERROR else after
    elif not flow.in_slow_start:
        growth = drift(flow, now, False)
    if growth > 0.0:
        # packets up to the next whole number
        left = np.floor(flow.cwnd + WINDOW_ERROR) + 1.0 - flow.cwnd
        after = min(after, left / growth + (flow.rest if flow.grows_by_acks else 0.0))
    return after


@jit
def step_in_train(flows: Table[Sender], now: LinkState, link: Bottleneck, fraction: float) -> float:
    """Length of the next step if all RTTs are equal, in round trips: at most ``fraction``.

    Steps end at fixed fractions of the first sender's round trip. So if windows and queue repeat a
    cycle, each cycle has the same steps. In two cases a step also ends right after the next event
    of any sender (``next_event``):

    - The buffer is nearly full. Then the order of events within a round trip decides which flow
      loses a packet.
    - RED may drop packets. In a longer step a sender would detect a loss late, and RED would drop
      more packets in the meantime.
    """
    part, first = fraction, True
    nears = now.red_count >= 0.0 or overflow_nears(flows, now, link, fraction)
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            # Steps end when k + 1/2 times ``fraction`` of the round trip is over, for k = 0, 1 ...
            # So the end of a round trip, where a law may decide, lies in the middle of a step.
            if first:
                passed = (flow.round_part / fraction + 0.5 + WINDOW_ERROR) % 1.0  # of this step
                part = (1.0 - passed + WINDOW_ERROR) * fraction
                first = False
            if nears:
                part = min(part, next_event(flow, now, link.capacity) + WINDOW_ERROR)
    return part


@jit
def to_train_end(flow: Sender, c: float) -> float:
    """Seconds until a flow's train of ACKs ends, or else until its next one begins.

    This is for slow start at RED. There a flow has one train of ACKs per round trip: they arrive
    one behind the other, at the beginning of the round trip. ``c`` is the capacity in pkt/s.
    """
    left = (1.0 - flow.round_part) * flow.round_lasts
    if flow.acks_left > 0.0 and flow.round_delay == 0.0:
        left = min(left, flow.acks_left / c)
    return max(left, WINDOW_ERROR * flow.round_lasts)


@jit
def step_length(
    flows: Table[Sender], now: LinkState, link: Bottleneck, fraction: float, smooth: bool,
    until: float,
) -> float:  # fmt: skip
    """Length of the next step in seconds: at most ``fraction`` of the shortest round trip.

    The step ends at the time ``until`` or before. If nothing will move any window before ``until``,
    it ends at ``until``, even if it is then longer than a round trip. It also ends when a train of
    ACKs of a slow start at RED ends, or when the next one begins (``to_train_end``). A train
    consists of packets, or of their ACKs, that follow one another closely.

    ``smooth`` says whether windows change at every instant, as in the papers.
    """
    h: float = until - now.time
    if not smooth and rests(flows, link):
        return h
    for i in range(len(flows)):
        flow = flows[i]
        # the queue at RED changes fast while the flow's slow start sends a train to it
        sends_train = flow.active and comes_in_trains(flow) and flow.timeout_ends <= now.time
        # within one round trip the last packets of a flow that has stopped leave the queue
        drains = not flow.active and flow.in_flight > 0.0
        if sends_train or drains:
            fraction = min(fraction, SHORT_STEP)
    # ``in_train`` has the same value for all flows: whether all RTTs are equal or nearly so
    if not smooth and flows[0].in_train:
        fraction = step_in_train(flows, now, link, fraction)
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active or flow.in_flight > 0.0:
            h = min(h, fraction * (flow.rtt + now.delay))
            if flow.active and comes_in_trains(flow):
                h = min(h, to_train_end(flow, link.capacity))
    return h


@jit
def take_sample(flows: Table[Sender], now: LinkState, out: Tally, record: Floats, k: int) -> None:
    """Write row ``k`` of ``record``: the state at the time ``grid[k]`` of ``march``.

    The columns are the windows, the queueing delay, the packets of each flow that were lost so far,
    and those that were delivered so far (from ``out``).
    """
    n = len(flows)
    for i in range(n):
        flow = flows[i]
        record[k, i] = flow.cwnd if flow.active else 0.0
        record[k, n + 1 + i], record[k, 2 * n + 1 + i] = flow.lost, out.delivered[i]
    record[k, n] = now.delay


@jit
def add_up(flow: Sender, i: int, now: LinkState, s: float, rate: float, out: Tally) -> None:
    """Add the present step to the time integrals ``out`` of flow ``i``, by the trapezoidal rule.

    ``s`` is the queueing delay when the step began, and ``rate`` the flow's rate of delivery at its
    end, in pkt/s.
    """
    h = now.step
    out.delivered[i] += 0.5 * h * (flow.delivery_rate + rate)
    out.window[i] += h * flow.in_flight
    at_first = flow.delivery_rate * (flow.rtt + s)  # packets that moved when the step began
    out.moving[i] += 0.5 * h * (at_first + moving(flow))
    out.active[i] += h
    flow.delay_sum += 0.5 * flow.sent * (now.delay - s)


@jit
def march(
    flows: Table[Sender], state: Table[LinkState], end: float, link: Bottleneck,
    fraction: float, smooth: bool, until_fall: bool, out: Tally, grid: Floats, record: Floats,
    pause: int,
) -> int:  # fmt: skip
    """Simulate up to time ``end``; with ``until_fall``, only until a window jumps down.

    A window jumps down if it falls by a packet or more at once, for example after a loss. The usual
    length of a step is ``fraction`` of the shortest round trip. If ``smooth``, windows are real
    numbers, and the law changes them at every instant.

    Returns ``DONE`` at the time ``end``, or ``FELL`` if it has stopped because a window jumped
    down. Returns ``TOO_MANY`` if a flow has too many packets to drop (``drops.overflow``).

    To let Ctrl-C stop a long simulation (``pauses.py``), the function also returns after about
    ``pause``/n time steps, where n is the number of flows. It then returns ``PAUSED``, and the next
    call goes on as if there had been no pause. Each time a flow loses packets counts as one more
    time step, because it may take as long to compute.

    ``out`` receives the time integrals. The rows of ``record`` receive samples at the times
    ``grid``: the windows, the queueing delay, the packets lost so far, and the packets delivered
    since ``out`` was empty.
    """
    now, fell, c, n = state[0], False, link.capacity, len(flows)
    k, due = now.sampled, now.due
    if not now.paused:
        k = 0
        while k < grid.size and grid[k] < now.time:
            k += 1
        due = admit(flows, now, link)
        now.delay = delay(flows, now, c)
    now.paused = False
    steps = 1 + pause // n
    while now.time < end and not (until_fall and fell):
        if steps <= 0:
            now.paused, now.sampled, now.due = True, k, due
            return PAUSED
        steps -= 1 + now.drops
        now.drops = 0
        # a step of ``h`` seconds, to the time ``later``
        until = min(due, end)
        h = step_length(flows, now, link, fraction, smooth, until)
        later = until if h == until - now.time else now.time + h
        first_sample, began = k, now.time  # of this step
        while k < grid.size and grid[k] <= later:
            take_sample(flows, now, out, record, k)
            k += 1
        now.step = h
        # windows grow, packets are sent and dropped, and the queueing delay follows
        arrivals = sample_delay(flows, now, h, c)
        moved = grow(flows, now, h, c, smooth)
        if moved and link.room < np.inf and not overflow(flows, now, link, smooth):
            return TOO_MANY
        if link.meet_at != 0:
            call(link.meet_at, (flows, now, link, h))
        s, now.time = now.delay, later
        now.delay = delay(flows, now, c)
        if link.drop_at != 0:
            call(link.drop_at, (flows, now, link, arrivals, s))
            now.delay = delay(flows, now, c)
        # the time integrals and the samples; then the ACKs of the step
        out.queue[WAITED] += 0.5 * h * (min(s * c, link.room) + min(now.delay * c, link.room))
        out.queue[SPAN] += h
        reacted = 0  # number of senders that have reacted to losses
        for i in range(n):
            flow = flows[i]
            if flow.active:
                rate = moving(flow) / (flow.rtt + now.delay)
                for j in range(first_sample, k):
                    within = delivered_within(grid[j] - began, h, flow.delivery_rate, rate)
                    record[j, 2 * n + 1 + i] += within
                add_up(flow, i, now, s, rate, out)
                before = flow.cwnd
                reacts = on_acks(flow, now, h / (flow.rtt + s), c, smooth)
                out.losses[i] += reacts
                reacted += reacts
                fell = fell or flow.cwnd <= before - FALL
        if later >= due:
            due = admit(flows, now, link)
            reacted = 1
        if reacted > 0:  # the packets that move have changed
            now.delay = delay(flows, now, c)
    return FELL if until_fall and fell else DONE
