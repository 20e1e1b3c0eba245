"""Computes how windows grow in a time step, and how many packets each sender then sends.

In the functions, ``now`` is the link's present state, and ``c`` its capacity in pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.sampled.chance import comes_in_trains
from vegasmodel.engines.fluid.sampled.law import allowed_in_flight, decide, drift, update
from vegasmodel.engines.fluid.sampled.line import end_recovery_in_line
from vegasmodel.engines.fluid.sampled.queue import hold_back, round_trip_of_train, train_part
from vegasmodel.engines.fluid.sampled.records import (
    DUPLICATES,
    HOLE_BY_HOLE,
    NEVER,
    SCOREBOARD,
    WINDOW_ERROR,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import Table, jit, rare


@jit
def new_in_later_round(flow: Sender) -> float:
    """New packets in flight in the third round trip of a recovery without SACK, or a later one.

    The sender retransmits the next lost packet, and usually sends nothing else. But at RED the last
    lost packets may be far apart. When one of them is repaired, the window moves on by many
    packets, and has room for new ones. ns-2's NewReno then sends two new packets at the partial
    ACK, and two more at each duplicate ACK. Each new packet in flight causes one duplicate ACK. So
    n new packets in one round trip lead to 2 n + 2 in the next: n + 2 doubles. The number in the
    last round trip is known (``new_at_end``, see ``holes.py``). So j round trips before the last
    one there are (``new_at_end`` + 2)/2^j - 2 new packets, but at least 0.
    """
    to_last = 2.0 ** np.floor(flow.recovery_left)  # 2^j, where j round trips are left
    new: float = max((flow.new_at_end + 2.0) / to_last - 2.0, 0.0)
    return new


@jit
def recovering(flow: Sender) -> float:
    """Packets in flight during a recovery without SACK, in which each round trip repairs one loss.

    Each round trip but the last ends with a partial ACK: it reports that the retransmitted packet
    has arrived, but asks for the next lost one. If partial ACKs deflate the window (RFC 2582,
    section 3), the packets in flight fill the window in each round trip. If they do not, the number
    depends on the round trip. In each of them one packet is the retransmitted one.

    The result leaves out packets that are lost during the recovery. They count as outstanding until
    the recovery ends, so ``send`` adds them.
    """
    if flow.partial_deflates:
        return flow.cwnd
    passed = flow.holes - flow.recovery_left  # round trips since the recovery began
    # First round trip: if n packets were outstanding at the loss of k packets, the n - k others
    # cause duplicate ACKs. Each of these lets one packet more be outstanding than the window W
    # allows. So W + n - k may be outstanding: n old packets and W - k new ones (none if k > W).
    if passed < 1.0:
        return max(flow.cwnd - flow.holes, 0.0) + 1.0
    # Second round trip: the window now begins at the second lost packet. So the packets sent after
    # that one take up a part of it. The rest has room for new packets, of which at most W - k are
    # sent (``recovery.on_loss`` computes and stores the number).
    if passed < 2.0:
        return flow.flight_later
    return 1.0 + new_in_later_round(flow)


@jit
def repairing(flow: Sender) -> float:
    """Packets in flight during a recovery in which SACK tells the sender which packets are lost.

    As in ns-2, the sender counts the lost packets as in flight. So it can send only
    ``flight_later`` packets in the first round trip. Later each ACK of a retransmitted packet
    releases two packets (tcp-sack1.cc: ``pipe_``). So the number of packets in flight doubles in
    each round trip.
    """
    rounds: float = max(np.floor(flow.holes - flow.recovery_left), 0.0)
    flight: float = flow.flight_later * 2.0**rounds
    return flight


@jit
def end_recovery(flow: Sender, now: LinkState, after: float, c: float) -> None:
    """Begin a new round trip, because a recovery or a wait for the retransmission timer has ended.

    ``after`` is the part of the new round trip that has passed at the beginning of this step. It is
    negative, because the recovery or the wait ends within the step. What happens next depends on
    the congestion control:

    - Vegas, for example, decides once per round trip how its window changes. If the flow's packets
      follow one another as a train, the sender has sent its latest train just before the ACK that
      ends the recovery. The ACKs of this train arrive in the last part of the new round trip
      (``train_part``), and ns-2's Vegas decides at the first of them. If the packets are spread
      over the round trip, it decides at once. Linux's Vegas (``restarts_rounds``) decides only
      after a whole round trip.
    - Reno, for example, enlarges its window by a part of a packet at each ACK. The first ACK that
      does so is the one that ends the recovery. There is one exception: if an ns-2 sender has SACK
      (``sack_exit_rests``), this ACK does not enlarge the window. The first round trip then brings
      one ACK too few, so the window reaches the next whole packet only after two round trips.
    - If Linux senders have equal RTTs, those that count ACKs as Reno does begin to count
      (``line.end_recovery_in_line``).

    ``c`` is the capacity in pkt/s.
    """
    decides = flow.once_a_round and not flow.restarts_rounds
    flow.round_part = after + (train_part(flow, now, c) if decides else 0.0)
    flow.burst, flow.round_delay = 0.0, now.delay
    flow.round_lasts = round_trip_of_train(flow, now, c)
    if flow.in_line:
        end_recovery_in_line(flow, now, c)
        return
    # ``spare_acks`` is the number of ACKs that come after the one at which the window last grew,
    # and ``rest`` the number of round trips for which the window rests.
    flow.spare_acks, flow.rest = 1.0, 0.0
    if flow.sack_exit_rests:
        flow.spare_acks, flow.rest = np.floor(flow.cwnd), 1.0


@jit
def growing(flow: Sender, now: LinkState, h: float, c: float) -> float:
    """How long ACKs change the window in a step of ``h`` seconds; the result is in round trips.

    ACKs do not change the window during a recovery, or while the sender waits for its
    retransmission timer. Between a loss and its detection, only the ACKs of packets sent before the
    lost packet change it. The last of these ACKs comes one packet before the ACK of the lost packet
    is due. Between that moment and the detection lies the time ``flow.silence``. ``c`` is the
    capacity in pkt/s.
    """
    step = h / (flow.rtt + now.delay)  # its length in round trips
    g = step
    idle = max(flow.recovery_left, (flow.timeout_ends - now.time) / (flow.rtt + now.delay))
    if idle > 0.0:
        flow.recovery_left = max(flow.recovery_left - step, 0.0)
        g = max(step - idle, 0.0)
        if step >= idle:
            end_recovery(flow, now, g - step, c)
    if flow.detection_in > 0.0:  # a loss is not detected yet
        # ``last_ack``: round trips until the last ACK of a packet sent before the lost one
        last_ack = flow.detection_in - flow.silence - 1.0 / max(flow.in_flight, 1.0)
        counted = max(min(g, last_ack), 0.0)
        flow.still += (g - counted) * (flow.rtt + now.delay)
        g = counted
    return g


@jit
def double(flow: Sender, now: LinkState, g: float, c: float) -> None:
    """Let the window grow in slow start during ``g`` round trips, at most up to ssthresh.

    The function is for all laws but Vegas. In Vegas's slow start, the function ``move`` changes the
    window itself.

    Without delayed ACKs, the window doubles in each round trip. Tahoe's slow start after a loss may
    be an exception. Tahoe sends again all packets from the first lost one on. If every other packet
    was lost, half of these packets had arrived before. The receiver answers them with duplicate
    ACKs, so the window grows only by half per round trip. When Tahoe has sent all of them again,
    one ACK acknowledges them and releases a whole window. ``c`` is the capacity in pkt/s.
    """
    W = flow.cwnd
    per_trip = 1.5 if flow.resends_left > 0.0 else 2.0  # factor on the window in a round trip
    flow.cwnd = min(W * per_trip ** (flow.drift_factor * g), max(flow.ssthresh, W))
    if flow.resends_left > 0.0:
        flow.resends_left = max(flow.resends_left - W * g, 0.0)
        flow.window_sent = flow.cwnd if flow.resends_left == 0.0 else 0.0
    flow.in_slow_start = flow.cwnd < flow.ssthresh
    if not flow.in_slow_start and flow.once_a_round and not flow.whole_window:
        decide(flow, now, c)  # for the rest of this round trip
    if not flow.in_slow_start and flow.in_train:
        per = 1.0 / (c * (flow.rtt + now.delay))  # one transmission time, in round trips
        after_slow_start(flow, W, g, per_trip**flow.drift_factor, per)


@jit
def double_in_trains(flow: Sender, now: LinkState, g: float, c: float) -> None:
    """Let the window grow in slow start during ``g`` round trips, but only while ACKs arrive.

    In slow start the packets in flight stay close together. Their ACKs arrive as a train (one
    directly behind the other) at the link's rate c, at the beginning of a round trip (Jacobson
    1988). Each ACK enlarges the window by one packet, and releases one packet more than it
    acknowledges. In the rest of the round trip no ACK arrives. There is none in the first round
    trip either: ``acks_left`` is 0 then. If packets waited already when the round trip began, ACKs
    arrive all the time.

    The next round trip begins with the ACK of the first packet of the train (``round_lasts``). This
    packet does not wait for the packets behind it, so the growth of the queue does not delay the
    ACK.
    """
    # ``x`` is the part of the round trip that is over, and ``rest`` what is left of the step
    trip, rest, x = flow.rtt + now.delay, g, flow.round_part
    while rest > 0.0 and flow.in_slow_start:
        per = trip / flow.round_lasts  # how much of this round passes in ``trip`` seconds
        W, spent = flow.cwnd, min(rest, max(1.0 - x, WINDOW_ERROR) / per)
        if flow.round_delay > 0.0 and flow.acks_left > 0.0:
            # packets waited when the round trip began: ACKs arrive all the time
            acks = (flow.in_flight - flow.undetected) * spent
        else:  # ACKs arrive as a train, at the link's rate
            acks = min(c * trip * spent, flow.acks_left)
            flow.acks_left -= acks
        flow.cwnd = min(W + flow.drift_factor * acks, max(flow.ssthresh, W))
        # a packet for each ACK, and one for each packet by which the window has grown
        flow.train_sent += acks + flow.cwnd - W
        flow.in_slow_start = flow.cwnd < flow.ssthresh
        x, rest = x + per * spent, rest - spent
        if x >= 1.0 - WINDOW_ERROR:  # the next round trip begins
            x, flow.acks_left = 0.0, flow.cwnd


@jit
def after_slow_start(flow: Sender, W: float, g: float, factor: float, per: float) -> None:
    """Compute when a window next grows after its slow start, which ends within the present step.

    The step is ``g`` round trips long. The window was ``W`` before the step, and grows by the
    factor ``factor`` in a round trip. All RTTs are equal. ``per`` is the time between two packets
    that follow one another, in round trips.

    This slow start has begun because the sender has detected a loss. In it the sender's packets
    follow one another as a short train, and so do their ACKs. A train of ACKs arrives one, two,
    three ... round trips after the detection. The window of a real sender grows only while ACKs
    arrive. But in this simulation, ``flow.cwnd`` grows all the time during slow start. So the
    function computes what the ACKs of the last train do after the end of slow start. It stores in
    ``flow.rest`` for how many round trips the window then rests, and in ``flow.spare_acks`` how
    many ACKs of the train then follow the one at which the window grows.

    Let N be ssthresh, and let slow start end within the ACKs of one train. If slow start went on,
    the window would be (1 + x) N after the last ACK of this train. Each ACK would have added one
    packet, so xN ACKs of this train come after the end of slow start. Each of them adds 1/N
    packets, and the window is then N + x. A window W needs W ACKs per packet of growth, so from N
    to N + 1 it needs N + 1/2 ACKs. From N + x on it still needs about (1 - x) (N + 1/2). It gets
    them from the next train, which has N ACKs. N - (1 - x) (N + 1/2) ACKs of this train are then
    left (``spare_acks``). If this number is negative, the window also needs ACKs of the train after
    it.
    """
    after = g - np.log(flow.cwnd / W) / np.log(factor)  # round trips of the step after slow start
    # round trips from the end of slow start to the end of the round trip in which it lies
    left = 1.0 - (flow.round_part + g - after + WINDOW_ERROR) % 1.0 + WINDOW_ERROR
    left = 0.0 if left >= 1.0 - WINDOW_ERROR else left
    N = np.floor(flow.cwnd + WINDOW_ERROR)
    one_plus_x = factor**left
    flow.spare_acks = N - (2.0 - one_plus_x) * (N + 0.5)
    flow.rest = left - after
    if flow.spare_acks < 0.0:
        flow.spare_acks += N
        flow.rest += 1.0
    # before the window grows, three duplicate ACKs come, and then the train's ACKs up to that one
    flow.rest += (DUPLICATES + N - flow.spare_acks) * per


@jit
def grow_by_acks(flow: Sender, m: float, g: float) -> tuple[float, float]:
    """Let the flow's window W grow for ``g`` round trips, if each ACK adds m/W packets to it.

    For Reno m is 1 (``opencwnd`` in tcp.cc). To grow from N packets to N + 1, W needs N + 1/2 ACKs,
    and a round trip brings N. There are two cases:

    - RTTs differ. The flow's packets are spread over the round trip, so W grows by N/(N + 1/2)
      packets per round trip.
    - All RTTs are equal (``in_train``). The flow's packets follow one another as a train. W grows
      by one packet per round trip, each time half an ACK later in the train. When the end of the
      train is reached (``spare_acks`` below 1/2), W rests for a round trip.

    With another m, W grows m times as fast. In the second case 1/2 is then replaced by 1/(2 m). If
    the receiver holds back a packet (``lacks``), a round trip brings one ACK less.

    Returns for how many of the ``g`` round trips W grows, and for how many it rests after that.
    """
    before = max(np.floor(flow.cwnd + WINDOW_ERROR), 1.0)  # whole packets; N afterwards
    if not flow.in_train:
        flow.cwnd += m * g * (before - flow.lacks) / (before + 0.5)
        return g, 0.0
    # all RTTs are equal: W first rests for what is left of its last rest, then grows
    moving = g - min(flow.rest, g)
    flow.rest -= g - moving
    flow.cwnd += m * moving
    N = np.floor(flow.cwnd + WINDOW_ERROR)
    if m <= 0.0 or flow.cwnd < before + 1.0 - WINDOW_ERROR:  # it has not reached a whole number
        return moving, 0.0
    # it has reached N; ``spare_acks`` ACKs of the train come after the one at which it did
    flow.spare_acks -= (0.5 + flow.lacks) * (N - before) / m
    if flow.spare_acks >= 0.5 / m - WINDOW_ERROR:
        return moving, 0.0
    # the end of the train is reached: W rests from the moment at which it reached N
    after = (flow.cwnd - N) / m  # round trips since then
    flow.cwnd, flow.rest = N, max(1.0 / max(m, 1.0) - after, 0.0)
    flow.spare_acks += N
    return moving - after, after


@jit
def move(flow: Sender, now: LinkState, g: float, c: float, smooth: bool) -> None:
    """Change the window during ``g`` round trips, by the rule of slow start or by the flow's law.

    Outside slow start the window moves by m packets per round trip, equation (S2) of the package
    ``sampled``. If the law decides once per round trip, m is what ``law.decide`` has stored. The
    window then grows only while ACKs arrive: in the first part of the round trip (``train_part``).
    In slow start at RED, too, a loss-based window grows only while ACKs arrive
    (``double_in_trains``). If ``smooth``, the law changes the window at every instant. ``c`` is the
    capacity.
    """
    W, doubling = flow.cwnd, flow.in_slow_start
    moving, after = g, 0.0  # round trips in which the window moves, then those in which it rests
    if comes_in_trains(flow):
        double_in_trains(flow, now, g, c)
        return
    if flow.in_slow_start and not flow.decides_slow_start:
        double(flow, now, g, c)
    elif flow.in_slow_start and flow.doubling == 1:  # Linux's Vegas
        flow.cwnd = W * 2.0**g
    elif flow.in_slow_start or (flow.once_a_round and not smooth):  # as decided for this round
        part = 1.0 if flow.in_slow_start else train_part(flow, now, c)
        moving = min(g, max(part - flow.round_part, 0.0))
        after = g - moving
        flow.cwnd = W + flow.round_drift * moving / part
    elif flow.compares:  # Linux's CUBIC: ``on_acks`` lets it grow, at certain ACKs
        moving, after = 0.0, g
    elif flow.grows_by_acks and not smooth:  # Reno, for example: each ACK adds a part of a packet
        moving, after = grow_by_acks(flow, drift(flow, now, smooth), g)
    else:
        flow.cwnd = W + drift(flow, now, smooth) * g
    # ``drops`` computes from these two when the additional packets have arrived
    flow.still += after * (flow.rtt + now.delay)
    flow.interval = moving * (flow.rtt + now.delay) / (flow.cwnd - W) if flow.cwnd > W else NEVER
    if doubling:
        # In slow start the packets by which the window grows are the burst of the round trip. The
        # part ``later`` of the growth comes after the end of this round trip.
        later = min(max(flow.round_part + g - 1.0, 0.0), g) / g
        if flow.round_drift > 0.0:
            later = 0.0  # it grows only up to the end of this round trip, for which Vegas decided
        flow.burst += (1.0 - later) * (flow.cwnd - W)
        flow.next_burst = later * (flow.cwnd - W)


@jit
def held_at_limit(flow: Sender, now: LinkState) -> float:
    """The mean number of packets whose ACK the receiver delays, if the window is ``max_window``.

    A receiver that delays ACKs acknowledges every second packet. If the window is odd, one packet
    is left over. It waits until it meets a pair, but at most for ``ack_pause``. A window of one
    packet waits for ``ack_pause`` each time.

    While no packets queue, each pair stays at its place in the round trip, and ``held_alone`` is
    the result. The queue of other flows moves the pairs. Two cases are then distinguished:

    - A window of three packets is one pair and one packet. Each time the packet has waited for
      ``ack_pause`` it comes later behind the pair by this time, until it meets the next pair. If
      the round trip lasts k to k + 1 times ``ack_pause``, this takes k + 1 round trips. The packet
      waits for one round trip of them in all.
    - Of larger windows pairs come at several times, which are not known here. The packet is assumed
      to wait once per round trip, for ``ack_pause`` at most. The result is too small at times.

    If the window is even, the result is 0. (``held_by_receiver`` gives such a number to the closed
    form ``red``, but without the queueing delay and the case of three packets.)
    """
    if not flow.holds_at_limit:
        return 0.0
    trip = flow.rtt + now.delay
    if flow.max_window < 2.0:
        return flow.ack_pause / (trip + flow.ack_pause)
    if now.delay == 0.0 and flow.held_alone > 0.0:
        return flow.held_alone
    if flow.max_window < 4.0:
        return 1.0 / (float(trip // flow.ack_pause) + 1.0)
    return min(1.0, flow.ack_pause / trip)


@jit
def send(flow: Sender, now: LinkState, h: float, smooth: bool) -> None:
    """Let the packets in flight follow the window, in a step of ``h`` seconds.

    This is equation (S3) of the package ``sampled``. If the window has room, the flow sends
    packets. If more packets are in flight than the window allows, the flow sends nothing, and ACKs
    reduce their number. In a recovery the flow may send less than the window allows. While it waits
    for its retransmission timer, it sends nothing. At the largest window (``max_window``), a packet
    whose ACK the receiver delays takes up room in the window, but is no longer in flight
    (``held_at_limit``).

    ``smooth`` says whether windows change at every instant, as in the papers.
    """
    allowed, n = allowed_in_flight(flow, smooth), flow.in_flight
    if flow.cwnd >= flow.max_window:
        allowed -= held_at_limit(flow, now)
    if flow.timeout_ends > now.time + h:  # it waits for its retransmission timer
        allowed = 0.0
    elif flow.recovery_left > 0.0 and flow.recovery == HOLE_BY_HOLE and not smooth:
        allowed = min(allowed, recovering(flow) + flow.undetected)
    elif flow.recovery_left > 0.0 and flow.recovery == SCOREBOARD and not (flow.rack or smooth):
        allowed = min(allowed, repairing(flow))
    if allowed > n:
        flow.extra = allowed - n  # packets sent in this step in addition to one per ACK
        flow.in_flight = allowed
    elif allowed < n:
        # In a round trip the ACKs of ``flow.drain`` packets come: as many as were in flight before
        # a loss cut the window.
        left = n - max(flow.drain, n) * h / (flow.rtt + now.delay)
        flow.in_flight = max(allowed, left, flow.undetected)  # no ACK comes of a lost packet


@rare
def drain_out(flow: Sender, now: LinkState, h: float) -> None:
    """Let the packets in flight of a flow that has stopped pass the queue, in ``h`` seconds.

    The sender sends no more packets. The link goes on sending those in the queue at its rate c. So
    the queue gets shorter by the packets that this flow no longer sends. Within a round trip its
    last packets have been acknowledged, and its number of packets in flight falls to 0.
    """
    left = flow.in_flight - flow.drain * h / (flow.rtt + now.delay)
    flow.in_flight = max(left, 0.0)


@jit
def decide_within(flow: Sender, now: LinkState, h: float, c: float, smooth: bool) -> None:
    """Let the law change the window within a step, at the time when a round trip ends.

    This is for ns-2's Vegas if all RTTs are equal. The step is ``h`` seconds long. If Vegas decides
    to reduce its window, it does so at once, and then has one packet less in the queue. The free
    place goes to the flow whose window grows next. As all RTTs are equal, this is the same flow in
    each round trip. So the window of this flow can grow although the buffer is full. ``freed_ago``
    tells ``drops.overflow`` how many seconds before the end of the step Vegas has decided. If
    windows change at every instant (``smooth``), the function does nothing. ``c`` is the capacity
    in pkt/s.
    """
    flow.decided, flow.freed, flow.freed_ago = False, 0.0, 0.0
    if not flow.in_train or not flow.once_a_round or flow.whole_window or smooth:
        return
    g = h / (flow.rtt + now.delay)
    busy = flow.in_slow_start or flow.recovery_left > 0.0 or flow.timeout_ends > now.time + h
    # no decision: the round trip does not end in this step, or the sender detects a loss in it
    if busy or flow.round_part + g < 1.0 or 0.0 < flow.detection_in <= g:
        return
    if flow.measures_base:
        flow.over_estimate = min(flow.over_estimate, flow.acked_delay)
    before = flow.cwnd
    update(flow, now, smooth)
    decide(flow, now, c)
    rests = flow.cwnd == before and flow.round_drift == 0.0
    flow.rounds_at_rest = flow.rounds_at_rest + 1.0 if rests else 0.0
    flow.decided = True
    flow.freed_ago = (flow.round_part + g - 1.0) * (flow.rtt + now.delay)


@jit
def packets_arriving(flow: Sender, now: LinkState, before: float, W: float, h: float) -> float:
    """The packets of the flow that reach the queue in a step of ``h`` seconds, without bursts.

    They are one packet for each ACK, and those by which the window has grown in this step. ``W``
    was the window, and ``before`` the number of packets in flight, when the step began. In a slow
    start at RED, ``double_in_trains`` has counted both kinds of packets in ``train_sent``.
    """
    if flow.train_sent != 0.0 or comes_in_trains(flow):
        return flow.train_sent
    acking = max(before - flow.held_back - flow.burst_lost, 0.0)  # packets whose ACKs come
    acked = acking * h / (flow.rtt + now.delay)
    grown = max(flow.cwnd - W, 0.0)
    return max(acked + min(flow.in_flight - before, grown), 0.0)


@jit
def grow(flows: Table[Sender], now: LinkState, h: float, c: float, smooth: bool) -> bool:
    """Advance windows and packets in flight by a step of ``h`` seconds.

    The equations are (S2) and (S3) of the package ``sampled``. The function also stores for each
    flow what happens in the step:

    - ``extra`` is the number of packets that the flow sends in addition to one per ACK.
    - ``growth`` is the growth of the window in pkt/s.
    - ``interval`` is the number of seconds per packet of growth, while the window grows.
    - ``still`` is the number of seconds at the end of the step in which the window does not grow.

    Returns whether the packets in flight of any flow have changed. ``smooth`` says whether windows
    change at every instant, as in the papers. The class ``Sender`` explains the fields of ``flow``.
    ``c`` is the link's capacity in pkt/s.
    """
    moved = False
    for i in range(len(flows)):
        flow = flows[i]
        flow.extra, flow.window_sent, flow.still, flow.interval = 0.0, 0.0, 0.0, NEVER
        flow.train_sent = flow.arrives = 0.0
        if not flow.active:  # it has stopped, or not started
            if flow.in_flight > 0.0:
                drain_out(flow, now, h)
                moved = True
            continue
        # the window moves, for the ``g`` round trips of the step in which ACKs change it
        W, n, recovers = flow.cwnd, flow.in_flight, flow.recovery_left > 0.0
        g = growing(flow, now, h, c)
        if g > 0.0:
            move(flow, now, g, c, smooth)
        decide_within(flow, now, h, c, smooth)
        flow.early_ago = 0.0  # ``hold_back`` sets it if the first ACK of a train releases two
        if flow.delays_acks:
            hold_back(flow, now, h, c)
        # the law may have left the range of windows; a timeout may have put W below ``min_window``
        flow.cwnd = min(max(flow.cwnd, min(flow.min_window, W)), flow.max_window)
        flow.growth_before = flow.growth
        flow.growth = (flow.cwnd - W) / h if h > 0.0 else 0.0
        if flow.samples_train and not flow.in_slow_start:  # mean growth, with or without ACKs now
            flow.growth = flow.round_drift / (flow.rtt + now.delay)
        # the sender sends until the window is full
        before = flow.in_flight
        send(flow, now, h, smooth)
        flow.arrives = packets_arriving(flow, now, before, W, h)
        if flow.decided:  # the window may have fallen, so that fewer packets are in flight
            flow.freed = max(before - flow.in_flight, 0.0)
        # one ACK may release many packets at once: a whole window in Tahoe's slow start
        # (``double``), or what the window has room for when a recovery like NewReno's ends
        flow.at_once = flow.window_sent
        if recovers and flow.recovery_left <= 0.0 and flow.recovery == HOLE_BY_HOLE:
            flow.burst += flow.extra
            flow.at_once = flow.extra
        moved = moved or flow.in_flight != n or flow.early_ago > 0.0
    return moved
