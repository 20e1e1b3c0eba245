"""Simulates what a sender does at ACKs: it measures the delay, detects losses, moves its window.

A law is a congestion control. At the end of a round trip, Vegas computes how much its window will
change in the next round trip. Laws that a user has written with ``once_a_round = True`` do the
same. All other laws change the window throughout a round trip.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s. ``h`` is the
length of a step of the simulation in seconds, and ``g`` is the same length in round trips of the
flow. ``smooth`` says whether windows are real numbers that change at every instant, as in the
papers.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import round_passed
from vegasmodel.engines.fluid.sampled.law import counted, decide, source, update
from vegasmodel.engines.fluid.sampled.line import (
    begin_recovery,
    compare,
    grow_here,
    to_comparison,
)
from vegasmodel.engines.fluid.sampled.queue import (
    burst,
    delay_alone,
    round_trip_of_train,
    sends_pairs,
    train_part,
)
from vegasmodel.engines.fluid.sampled.records import (
    NEVER,
    WINDOW_ERROR,
    LinkState,
    Sender,
    moving,
)
from vegasmodel.engines.fluid.sampled.recovery import (
    end_backoff,
    forget_losses,
    on_loss,
    silent,
    too_few,
)
from vegasmodel.engines.tables import Table, jit
from vegasmodel.laws.vegas import PART_KEPT


@jit
def time_for_packets_in_hosts(flows: Table[Sender], now: LinkState, c: float) -> float:
    """The seconds in which the link would send the packets that wait in their hosts.

    A host waits for a random time before it sends a packet. Equation (S1) (docstring of the package
    ``sampled``) takes these packets for queued, as it does with all packets that exceed the
    bandwidth-delay product. So the time is a part of its queueing delay. But ns-2's Vegas measures
    its RTT from the end of a packet's wait, so ``end_round`` subtracts the time.

    Flow j sends r_j = n_j/(T_j + s) packets per second. Here n_j is the number of its packets on
    the way (``moving``), T_j its RTT without queues, and s the queueing delay. Its packets wait for
    w_j seconds on average (``wait_in_host``). By Little's law, sum_j r_j w_j packets wait in hosts.
    The link sends ``c`` packets per second.
    """
    waiting = 0.0
    for i in range(len(flows)):
        if flows[i].active:
            waiting += flows[i].wait_in_host * moving(flows[i]) / (flows[i].rtt + now.delay)
    return waiting / c


@jit
def part_sampled(flow: Sender, now: LinkState, g: float, c: float) -> float:
    """Which part of the packets sent in a step of ``g`` round trips gives RTT samples.

    It is 1 except for Vegas with equal RTTs (``samples_train``). There a round trip begins when the
    first packet of the flow's train arrives at the queue. Only the delays while the train passes
    the queue (``train_part``) count as samples. ``c`` is the capacity in pkt/s.
    """
    if not flow.samples_train:
        return 1.0
    return min(max(train_part(flow, now, c) - flow.round_part, 0.0), g) / g


@jit
def sample_delay(flows: Table[Sender], now: LinkState, h: float, c: float) -> float:
    """Add up for each flow the queueing delays of the packets that it sends in a step.

    Packets of a round trip follow one another at the link's rate, as one train (Jacobson 1988,
    self-clocking). A growing window adds packets to the train, and each of these delays the rest of
    the train by one transmission time. So the mean delay of a packet is at least the time in which
    the link sends half of the added packets, even if the queue is short. Packets that the flow adds
    in its own slow start are left out here, because ``queue.burst`` counts them.

    If ACKs are delayed and RTTs differ, a flow sends its packets in pairs, and the second packet of
    a pair waits for the first (``queue.delay_alone``). The receiver sends an ACK for every second
    packet, and the sender takes the RTT of this packet as a sample. It is the second packet of a
    pair if the window is even, and the first one if the window is odd (``queue.hold_back``). The
    least delay of a round trip also comes from these packets.

    Returns the number of packets that all flows send in the step. The step lasts ``h`` seconds, and
    ``c`` is the link's capacity in pkt/s.
    """
    s, arrivals, growth = now.delay, 0.0, 0.0
    for i in range(len(flows)):
        if flows[i].active:
            growth += max(flows[i].growth, 0.0)
    now.in_hosts = time_for_packets_in_hosts(flows, now, c)
    alone = delay_alone(flows, s, c)
    for i in range(len(flows)):
        flow = flows[i]
        if flow.active:
            trip = flow.rtt + s
            flow.delivery_rate = moving(flow) / trip
            sending = min(flow.in_flight, flow.cwnd) if flow.in_slow_start else flow.in_flight
            packets = (sending - flow.held_back) * h / trip
            arrivals += moving(flow) * h / trip
            # packets that growing windows add in a round trip, without this flow's slow start
            added = (growth - max(flow.growth, 0.0) * flow.in_slow_start) * trip
            samples = part_sampled(flow, now, h / trip, c) * packets
            second_of_pair = sends_pairs(flow) and flow.held_back == 0.0
            least = alone + (1.0 / c if second_of_pair else 0.0)
            flow.delay_sum += samples * (least + 0.5 * max(added / c - s, 0.0))
            flow.round_sent += samples
            flow.sent = samples
            flow.least_delay = min(flow.least_delay, least)
    return arrivals


@jit
def _decide_in_slow_start(flow: Sender, now: LinkState, c: float, smooth: bool) -> None:
    """End Vegas's slow start if the backlog exceeds gamma, and then reduce the window.

    If ``smooth``, windows are real numbers, and the window is not reduced. In slow start the Vegas
    of Linux doubles its window in each round trip, and the Vegas of ns-2 and of the papers in every
    other one. The Vegas of ns-2 and of the papers compares the backlog with gamma only before a
    round trip in which the window would double. If slow start goes on, ``round_drift`` tells the
    function ``move`` by how much to enlarge the window in this round trip. For Linux ``move`` does
    not need it. ``c`` is the capacity in pkt/s.
    """
    seen = source(flow, now, False)
    flow.round_drift = 0.0
    flow.doubles = 1 - flow.doubles if flow.doubling > 1 else 1  # 1: the window doubles now
    if flow.whole_window:  # Linux
        ends = np.floor(seen.backlog) > flow.gamma
        W = np.floor(flow.cwnd + WINDOW_ERROR)
        reduced = max(min(W, np.floor(W * seen.base_rtt / seen.rtt) + 1.0), 2.0)
    else:
        ends = flow.doubles == 1 and np.floor(seen.backlog + 0.5) > flow.gamma
        reduced = max(flow.cwnd * (1.0 if smooth else PART_KEPT), flow.min_window)
    if ends:
        flow.cwnd, flow.in_slow_start = reduced, False
    elif flow.doubles == 1 and flow.doubling > 1:
        flow.round_drift = flow.cwnd * counted(flow, 1.0 / c)  # its packets stay close together


@jit
def end_slow_start_at_gamma(flow: Sender, now: LinkState) -> None:
    """End the slow start of a user's law if the backlog exceeds gamma.

    Such a law has the slow start of its TCP implementation, in which the window doubles in each
    round trip. Only Vegas has a slow start of its own (``_decide_in_slow_start``).
    """
    if source(flow, now, False).backlog > flow.gamma:
        flow.in_slow_start, flow.ssthresh = False, max(np.floor(flow.cwnd), 2.0)


@jit
def decide_at_end(flow: Sender, now: LinkState, c: float, smooth: bool) -> None:
    """At the end of a round trip, end slow start, or let the law decide how the window moves next.

    If the sender's law has already decided in this step (``flow.decided``), it does not decide
    again. ``smooth`` says whether windows change at every instant, as in the papers. ``c`` is the
    capacity. The class ``Sender`` explains the fields of ``flow``.
    """
    if not flow.decided:
        update(flow, now, smooth)
    if flow.in_slow_start:
        if flow.decides_slow_start:
            _decide_in_slow_start(flow, now, c, smooth)
        elif flow.ends_at_gamma:
            end_slow_start_at_gamma(flow, now)
    elif flow.once_a_round and not (smooth or flow.decided):
        decide(flow, now, c)
        if flow.in_line:
            grow_here(flow, now, flow.round_part, c)


@jit
def store_delay(flow: Sender, now: LinkState, c: float) -> None:
    """Store the delay of the packets of a round trip, which ACKs report in the next round trip.

    It is their mean queueing delay (in Linux: the least), without the part ``now.in_hosts`` that is
    no delay in the queue (``sample_delay``). In ns-2 the packets of the first window give no RTT
    sample (docs/ns2.md), so the first samples come from the packets of the second round trip.
    """
    if flow.round_sent > 0.0:  # of a burst, half waits ahead of a packet
        mean = flow.delay_sum / flow.round_sent + 0.5 * burst(flow, now, c) / c
        measured = flow.least_delay if flow.least_of_round else mean
        flow.acked_delay = max(measured - now.in_hosts, 0.0)
    if flow.untimed and flow.heard:  # ACKs have come, but none of them gave an RTT sample
        flow.acked_delay, flow.untimed = max(now.delay - now.in_hosts, 0.0), False
    # the round trip that begins now: its sums, its burst and the queueing delay at its beginning
    flow.delay_sum, flow.round_sent, flow.least_delay = 0.0, 0.0, np.inf
    flow.burst, flow.next_burst, flow.round_delay = flow.next_burst, 0.0, now.delay


@jit
def end_round(flow: Sender, now: LinkState, c: float, smooth: bool) -> None:
    """End a sender's round trip.

    The sender learns its baseRTT from the delay that the ACKs of this round trip report. If it
    repairs no losses, slow start may end, or the law decides how the window moves next. ``c`` is
    the capacity in pkt/s, and ``smooth`` says whether windows change at every instant.
    """
    flow.heard = flow.heard or flow.in_flight > flow.undetected  # an ACK has come
    if flow.measures_base and flow.heard and not flow.untimed:
        flow.over_estimate = min(flow.over_estimate, flow.acked_delay)
    repairs = flow.recovery_left > 0.0 or flow.timeout_ends > now.time
    law_moves, before = not (repairs or flow.in_slow_start), flow.cwnd
    if not repairs:
        decide_at_end(flow, now, c, smooth)
        # with no loss and no retransmission under way, ACKs have ended the backoff of the timer
        if flow.detection_in <= 0.0 and flow.resends <= 0.0:
            flow.timer = flow.backoff = 1.0
    # count the round trips in which no decision has moved the window (``march.rests``)
    if not flow.decided:
        rests = law_moves and flow.cwnd == before and flow.round_drift == 0.0
        flow.rounds_at_rest = flow.rounds_at_rest + 1.0 if rests else 0.0
    store_delay(flow, now, c)


@jit
def hears_nothing(flow: Sender, now: LinkState) -> bool:
    """Whether ACKs that arrive now leave the sender's window as it is, because of a loss.

    They do so during a recovery, while the sender waits for its retransmission timer, and just
    before it detects a loss. In the last ``silence`` round trips before the detection, only
    duplicate ACKs arrive.
    """
    waits = flow.recovery_left > 0.0 or flow.timeout_ends > now.time
    return waits or 0.0 < flow.detection_in <= flow.silence


@jit
def to_detection(flow: Sender, now: LinkState, g: float) -> float:
    """Round trips until the sender hears of its losses, after a step of ``g`` round trips.

    A sender hears of a loss about an RTT after the packet was lost. This RTT is the one at the time
    of the loss. After the loss RED may drop all packets that arrive, and then the queue and the RTT
    get shorter. So at RED the function counts down seconds (``hears_in``), and converts them into
    round trips at the present RTT. At other queues it counts round trips.
    """
    if not flow.at_red:
        return flow.detection_in - g
    flow.hears_in -= now.step
    return flow.hears_in / (flow.rtt + now.delay)


@jit
def react_to_loss(
    flow: Sender, now: LinkState, ago: float, g: float, c: float, smooth: bool
) -> None:
    """Let a sender react to its losses, which it detected ``ago`` round trips before the step ends.

    Tahoe begins slow start, and with it a new round trip. Its earlier samples no longer count. The
    step is ``g`` round trips long, ``c`` is the capacity in pkt/s, and ``smooth`` says whether
    windows change at every instant.
    """
    before = flow.in_flight
    on_loss(flow, now, ago, c, smooth)
    if flow.in_line:
        begin_recovery(flow, now, before, ago, c)
    if flow.in_slow_start:
        flow.round_lasts = round_trip_of_train(flow, now, c)
        # the new round trip began ``ago`` round trips ago; ``on_acks`` adds ``round_passed`` again
        flow.round_part = ago - round_passed(flow, now, g)
        flow.burst, flow.next_burst = 0.0, 0.0
        flow.delay_sum, flow.round_sent, flow.least_delay = 0.0, 0.0, np.inf


@jit
def detect_loss(flow: Sender, now: LinkState, g: float, c: float, smooth: bool) -> bool:
    """Count down to the detection of the sender's losses; returns whether it reacts to them now.

    A step of ``g`` round trips has passed. ``c`` is the link's capacity in pkt/s, and ``smooth``
    says whether windows change at every instant, as in the papers.
    """
    if flow.later_delay == NEVER:  # a packet was lost in this step
        flow.later_delay = now.delay  # queueing delay of the packets sent after the lost one
    # round trips until the sender hears of its losses; 0 or less if it hears of them in this step
    left = to_detection(flow, now, g)
    # It is kept above 0: if a recovery is in progress, the sender reacts only when this has ended.
    flow.detection_in = max(left, WINDOW_ERROR)
    # Too few ACKs come in the recovery to report the loss. Packets that are sent after the recovery
    # cause the duplicate ACKs, a round trip later.
    if left <= 0.0 < flow.recovery_left and too_few(flow, now, c):
        flow.detection_in = flow.recovery_left + 1.0
        flow.hears_in = flow.detection_in * (flow.rtt + now.delay)
    if left <= 0.0 and flow.timeout_ends > now.time:  # the timeout repairs these losses, too
        forget_losses(flow)
        return False
    if smooth or (left <= 0.0 and (flow.recovery_left <= 0.0 or silent(flow))):
        react_to_loss(flow, now, -left, g, c, smooth)
        return True
    return False


@jit
def begin_round_within_step(flow: Sender, now: LinkState, c: float) -> None:
    """Begin a new round trip, of which the part ``round_part`` lies within the present step.

    The packets that the flow has sent in this part count for the new round trip. Their delays are
    samples of it if the flow samples its train (``samples_train``). The window also moves in this
    part, by a fraction of the change ``round_drift`` that the law has decided for the round trip.
    ``c`` is the capacity in pkt/s.
    """
    if flow.samples_train:
        flow.round_sent = min(flow.round_part, train_part(flow, now, c)) * flow.in_flight
        flow.delay_sum = flow.round_sent * now.delay
    if flow.round_drift != 0.0 and flow.recovery_left <= 0.0 and flow.timeout_ends <= now.time:
        part = 1.0 if flow.in_slow_start else train_part(flow, now, c)  # in which the window moves
        moved = flow.round_drift * min(flow.round_part / part, 1.0)
        flow.cwnd += moved
        flow.burst += moved * flow.in_slow_start


@jit
def on_acks(flow: Sender, now: LinkState, g: float, c: float, smooth: bool) -> int:
    """Process the ACKs that reach a sender in a step of ``g`` round trips.

    The sender may detect a loss, or complete a round trip. Returns 1 if it reacts to a loss, and 0
    otherwise. The comments name the fields of ``flow`` that each part of the function changes.

    ``smooth`` says whether windows change at every instant, as in the papers. ``c`` is the
    capacity.
    """
    # Linux's CUBIC compares its window with its target at certain ACKs: round trips until the next
    compares_in = to_comparison(flow, now, c) if flow.compares else np.inf
    # ``place``: the part of a round trip since the first packet of the flow's train arrived
    flow.place = (flow.place + g) % 1.0
    # ``over_estimate``: by how much baseRTT exceeds the propagation delay
    if smooth and flow.measures_base:
        flow.over_estimate = min(flow.over_estimate, now.delay)
    # ``resends`` is above 0 after a timeout, until the timer again has its usual length
    if flow.resends > 0.0:
        end_backoff(flow, now, g)
    # ``detection_in``: round trips until the sender hears of its losses; 0 if it has lost nothing
    reacts = flow.detection_in > 0.0 and detect_loss(flow, now, g, c, smooth)
    # ``trips``: round trips since the last cut of the window; a law may read this number
    flow.trips += g
    # ``rests_for``: seconds for which CUBIC must not yet compare again
    flow.rests_for = max(flow.rests_for - now.step, 0.0)
    if compares_in <= g and not (flow.in_slow_start or hears_nothing(flow, now)):
        compare(flow, now, g - compares_in, c)
    # ``round_part``: the part of the present round trip that is over
    flow.round_part += round_passed(flow, now, g)
    if flow.round_part >= 1.0:
        flow.round_part -= np.floor(flow.round_part)
        flow.round_lasts = round_trip_of_train(flow, now, c)
        end_round(flow, now, c, smooth)
        begin_round_within_step(flow, now, c)
    return int(reacts)
