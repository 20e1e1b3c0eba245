"""The main loop of the simulator ``delayed``, whose equations are in ``feedback.py``.

The numbers of packets sent, arrived and lost are piecewise linear functions of time. A step is no
longer than the shortest delay between a sender and the queue. So all past values that a step needs
are known. A step ends early if the queue becomes empty or the buffer becomes full, or at an event
of a flow, such as its start or the news of a loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vegasmodel.engines.fluid.records import Flows
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats

GROWING, ALL, LOSS_BASED = 0, 1, 2  # which flows lose packets when the buffer overflows
TINY = 1e-12  # of a step: times that differ by less are equal
CLOCK_ERROR = 8.0 * 2.0**-52  # of the time: rounding error of a clock
SEARCH = 60  # most iterations that find when the queue becomes empty or the buffer full


class Past(NamedTuple):
    """The history of the queue and of the flows: one entry for each step that is still needed.

    Arrays about the queue have the shape [step], and arrays about the flows have [step, flow].
    """

    time: Floats
    delay: Floats  # s(t)
    exit: Floats  # t + s(t): when what arrives at t leaves the queue; it never falls
    sent: Floats  # A_i(t): packets sent by time t
    came: Floats  # A_i(t - f_i): packets that have reached the queue by time t
    lost: Floats  # those of ``came`` that were dropped
    early: Floats  # those of ``lost`` that found room: random loss, RED
    mean: Floats  # v(t), RED's average of the packets that wait
    growing: np.ndarray  # bool: the window grew in the step that ends at t


class Senders(NamedTuple):
    """The senders' state: arrays with one entry per flow, which the simulation changes in place."""

    forward_delay: Floats  # f_i: seconds from the sender to the queue
    window: Floats
    over_estimate: Floats  # x_i
    in_slow_start: np.ndarray  # bool: in slow start
    recovery_until: Floats  # time until which the window stays constant
    loss_heard: Floats  # when the sender hears of a loss, inf: none is on its way
    same_loss_until: Floats  # losses at the queue before this time belong to the last cut
    expected: Floats  # mean number of drops by random loss and RED so far in slow start
    acked: Floats  # N_i: packets of whose fate the sender has heard
    missed: Floats  # those of ``acked`` that were lost
    early: Floats  # those of ``missed`` that found room
    seen: Floats  # s_i: queueing delay of the packet whose ACK arrives now
    share: Floats  # backlog over window at that delay: Diff = share W
    outward: np.ndarray  # index in the past of what reaches the queue now
    inward: np.ndarray  # index in the past of what the sender hears of now


class Chance(NamedTuple):
    """The parameters of random loss and RED, which drop packets although the buffer has room."""

    loss: float  # probability that a packet is lost at random
    red: bool  # whether the queue is RED, which drops packets, too
    low: float  # RED's thresholds, packets
    high: float
    top: float  # RED's probability at ``high``
    gentle: bool  # above ``high`` RED's probability rises to 1 gradually; else it jumps to 1
    weight: float  # weight of one packet in RED's average queue


class Totals(NamedTuple):
    """Sums and time integrals for averages; they are set to 0 at the end of the warm-up."""

    delivered: Floats  # [flow] packets
    acked: Floats  # [flow] packets, lost ones among them
    seconds: Floats  # [flow] sum of the packets' round-trip times
    active: Floats  # [flow] seconds
    cuts: np.ndarray  # [flow] cuts of the window
    queue: Floats  # [2] integrals of c s dt and of dt


@jit
def between(times: Floats, values: Floats, k: int, last: int, t: float) -> float:
    """The value at time t of a curve: straight lines join the points (``times``, ``values``).

    ``times[k]`` is the last of the times up to t.  ``last`` is the index of the last point; after
    it the curve is constant.
    """
    if k >= last:
        return float(values[last])
    part = (t - times[k]) / (times[k + 1] - times[k])
    return float(values[k] + part * (values[k + 1] - values[k]))


@jit
def index(times: Floats, k: int, last: int, t: float) -> int:
    """The index of the last entry of ``times`` that is not after t.

    Only the entries from index k to index ``last`` are searched.
    """
    while k < last and times[k + 1] <= t:
        k += 1
    return k


@jit
def arrive(y: Senders, past: Past, last: int, t: float, came: Floats) -> float:
    """Compute how many packets of each flow have reached the queue from the start up to time t.

    ``past`` is the history, and ``last`` the index of its last entry. Writes the numbers into
    ``came`` [flow] and returns their sum over the flows.
    """
    total = 0.0
    for i in range(came.size):
        k = index(past.time, y.outward[i], last, t - y.forward_delay[i])
        came[i] = between(past.time, past.sent[:, i], k, last, t - y.forward_delay[i])
        total += came[i]
    return total


@jit
def dropped(chance: Chance, mean: float) -> float:
    """Probability that random loss or RED drops a packet at an average queue of ``mean`` packets.

    RED computes a base probability p_b from the average queue.  With the option ``wait_`` of ns-2,
    the distance from one drop of RED to the next lies between 1/p_b and 2/p_b - 1 packets, and all
    distances in this range are equally likely.  The mean distance is (3/p_b - 1)/2 packets, so RED
    drops the fraction 2 p_b/(3 - p_b) of the packets.
    """
    if not chance.red or mean <= chance.low:
        return chance.loss
    base = chance.top * (mean - chance.low) / (chance.high - chance.low)
    if mean > chance.high:
        over = (mean - chance.high) / chance.high
        base = min(chance.top + (1.0 - chance.top) * over, 1.0) if chance.gentle else 1.0
    return 1.0 - (1.0 - chance.loss) * (1.0 - 2.0 * base / (3.0 - base))


@jit
def averaged(chance: Chance, mean: float, came: float, queue: float) -> float:
    """RED's average queue, in packets, after ``came`` more packets have arrived.

    ``mean`` is the average before they arrive.  Each packet moves the average towards the present
    queue (``queue``), by the fraction ``weight`` of the difference between the two.  ``came`` also
    counts the packets that the link could have sent while the queue was empty.
    """
    if chance.weight >= 1.0:
        return queue
    left: float = np.exp(np.log1p(-chance.weight) * came)
    return queue + (mean - queue) * left


@jit
def queue_step(
    y: Senders, past: Past, last: int, h: float, c: float, s_max: float, loss: float, came: Floats
) -> tuple[float, float, float]:
    """Advance the queue by h seconds, or less if it becomes empty or full before.

    Returns the length of the step in seconds, the queueing delay s at its end, and the number of
    packets that overflow.  Writes into ``came`` [flow] how many packets of each flow have reached
    the queue by the end of the step.  The delay stays within 0 .. s_max and follows

        c ds/dt = (1 - p) sum_i A_i'(t - f_i) - c.

    Here c is the capacity in pkt/s, and p (``loss``) is the probability that random loss or RED
    drops a packet.  A_i(t) is the number of packets that flow i has sent by time t, and A_i' is its
    derivative.  A packet of flow i reaches the queue f_i seconds after it is sent.
    """
    t, s = past.time[last], past.delay[last]
    equal = TINY * h + CLOCK_ERROR * t
    before = 0.0
    for i in range(came.size):
        before += past.came[last, i]
    free = arrive(y, past, last, t + h, came) - before
    s1 = s + (1.0 - loss) * free / c - h
    if s1 > s_max and s >= s_max - equal:
        return h, s_max, c * (s1 - s_max)
    if s1 < 0.0 and s <= equal:
        return h, 0.0, 0.0
    if 0.0 <= s1 <= s_max:
        return h, s1, 0.0
    edge = 0.0 if s1 < 0.0 else s_max
    low, high, f_low, f_high = 0.0, h, s - edge, s1 - edge
    side, middle = 0, h
    for _ in range(SEARCH):
        middle = low + (high - low) * f_low / (f_low - f_high)
        free = arrive(y, past, last, t + middle, came) - before
        f = s + (1.0 - loss) * free / c - middle - edge
        if abs(f) <= equal or high - low <= equal:
            break
        if f * f_low > 0.0:
            low, f_low = middle, f
            f_high *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            high, f_high = middle, f
            f_low *= 0.5 if side == -1 else 1.0
            side = -1
    return middle, edge, 0.0


@making
def drop(
    p: Flows, y: Senders, past: Past, last: int, excess: float, s_max: float, losers: int,
    came: Floats, lost: Floats,
) -> None:  # fmt: skip
    """Decide which flows lose the packets that overflow in a step, and when their senders learn it.

    ``excess`` is the number of these packets, ``came`` [flow] counts all packets that have arrived
    at the queue so far, and ``s_max`` is the queueing delay of a full queue in s.  Each flow's part
    of the excess is added to ``lost`` [flow].  A loss makes a sender cut its window once.  Further
    losses of packets that it sent before this cut do not make it cut again.

    ``losers`` selects the flows that can lose packets: ``ALL`` flows; those whose windows grew when
    they sent the packets (``GROWING``); or the loss-based flows among these (``LOSS_BASED``).  The
    selected flows share the loss in proportion to their arrivals at the queue in the step.  If the
    loss exceeds these arrivals, all flows share it.

    ``GROWING`` is the usual choice.  A source whose window does not grow sends at most one packet
    per ACK, so it does not make the queue longer.  Only a source whose window grows sends
    additional packets, for which the full buffer has no room.
    """
    n, t = came.size, past.time[last]
    mine = np.zeros(n, np.bool_)
    total = 0.0
    for i in range(n):
        k = min(index(past.time, y.outward[i], last, t - y.forward_delay[i]) + 1, last)
        grew = past.growing[k, i]
        mine[i] = losers == ALL or (grew and (losers == GROWING or not p.keeps_backlog[i]))
        total += came[i] - past.came[last, i] if mine[i] else 0.0
    every = total < excess
    if every:
        total = came.sum() - past.came[last].sum()
    for i in range(n):
        flow = came[i] - past.came[last, i]
        if (every or mine[i]) and flow > 0.0:
            lost[i] += excess * flow / total
            if y.loss_heard[i] == np.inf and t >= y.same_loss_until[i]:
                y.loss_heard[i] = t + s_max + p.rtt[i] - y.forward_delay[i]


@jit
def reach(W: float, to: float, g0: float, g1: float, e: float) -> float:
    """The fraction of a step after which the backlog reaches the threshold e.

    Let g be the ratio of Vegas's backlog to its window.  In the step the window goes linearly from
    ``W`` to ``to``, and g goes linearly from ``g0`` to ``g1``.  The backlog is the product of the
    two.  So the time at which it equals e is given by a quadratic equation, and the function
    returns the solution within the step.
    """
    dW, dg = to - W, g1 - g0
    a, b, f = dW * dg, W * dg + g0 * dW, W * g0 - e
    root = np.sqrt(max(b * b - 4.0 * a * f, 0.0))
    # both roots, in a form without cancellation; the one in [0, 1] is taken
    q = -0.5 * (b + root) if b > 0.0 else -0.5 * (b - root)
    first = f / q if q != 0.0 else 0.0
    second = q / a if a != 0.0 else np.inf
    part = first if 0.0 <= first <= 1.0 else second
    return min(max(part, 0.0), 1.0)


@jit
def avoid(
    W: float, acks: float, climb: float, g0: float, g1: float, lower: float, upper: float,
    floor: float, cap: float,
) -> float:  # fmt: skip
    """The window after a step of congestion avoidance in which ``acks`` ACKs arrive.

    An ACK changes the window W by m/W packets, so W changes by m packets per round trip.  The law
    chooses m by the backlog: m is ``climb`` if the backlog is below ``lower``, -1 if it is above
    ``upper``, and 0 in between.  In the step the ratio g of the backlog to W goes from ``g0`` to
    ``g1``.  The window stays between ``floor`` and ``cap``.

    If the backlog reaches a threshold in the step, then for the rest of the step the window keeps
    the backlog between the thresholds, as far as its steepest rise and fall allow.
    """
    up = max(min(np.sqrt(W * W + 2.0 * climb * acks), cap), W)
    down = min(max(np.sqrt(max(W * W - 2.0 * acks, 0.0)), floor), W)
    if W * g0 < lower:
        if up * g1 <= lower:
            return float(up)
        part = reach(W, up, g0, g1, lower)
        turn = W + part * (up - W)
    elif W * g0 > upper:
        if down * g1 >= upper:
            return float(down)
        part = reach(W, down, g0, g1, upper)
        turn = W + part * (down - W)
    else:
        if lower <= W * g1 <= upper:
            return W
        part = reach(W, W, g0, g1, lower if W * g1 < lower else upper)
        turn = W
    low = lower / g1 if g1 > 0.0 else np.inf
    high = upper / g1 if g1 > 0.0 else np.inf
    left = 1.0 - part
    target = min(max(turn, low), high)
    return float(min(max(target, turn - left * (W - down)), turn + left * (up - W)))


@jit
def loss_report(p: Flows, y: Senders, past: Past, last: int, i: int, t: float) -> float:
    """Process the ACKs and the reports of losses that reach the sender of flow i by time t.

    Updates the sender's state in ``y``, such as its baseRTT.  Outside recovery from a loss the
    window changes as ``move`` says.  Returns the number of lost packets of which the sender learns
    now, whether the full buffer, random loss or RED dropped them.
    """
    at = t - p.rtt[i] + y.forward_delay[i]
    k = index(past.exit, y.inward[i], last, at)
    y.inward[i] = k
    u = between(past.exit, past.time, k, last, at)  # when they reached the queue
    acked = between(past.exit, past.came[:, i], k, last, at)
    missed = between(past.exit, past.lost[:, i], k, last, at)
    early = between(past.exit, past.early[:, i], k, last, at)
    acks, tossed = max(acked - y.acked[i], 0.0), max(early - y.early[i], 0.0)
    fresh: float = max(missed - y.missed[i], 0.0)
    y.acked[i], y.missed[i], y.early[i], y.seen[i] = acked, missed, early, max(at - u, 0.0)
    if p.measures_base[i] and u >= p.start[i] + y.forward_delay[i]:
        y.over_estimate[i] = min(y.over_estimate[i], y.seen[i])
    gap, base = y.seen[i] - y.over_estimate[i], p.rtt[i] + y.over_estimate[i]
    g0, g1 = y.share[i], 0.0
    if gap > 0.0:
        g1 = gap / (base if p.backlog_over_base[i] else p.rtt[i] + y.seen[i])
    y.share[i] = g1
    W = y.window[i]
    if W > 0.0 and t > y.recovery_until[i]:
        y.window[i] = move(p, y, i, acks, g0, g1, tossed)
    return fresh


@jit
def move(p: Flows, y: Senders, i: int, acks: float, g0: float, g1: float, tossed: float) -> float:
    """The window of flow i after a step in which its sender learns the fate of ``acks`` packets.

    Each of these packets was delivered or lost.  Random loss or RED dropped ``tossed`` of them.  In
    the step the ratio of backlog to window goes from ``g0`` to ``g1``.  Slow start ends in this
    step if the backlog reaches gamma, or by a drop (see the comment below).
    """
    W, cap, floor = y.window[i], p.max_window[i], p.min_window[i]
    # `tossed` is the expected number of drops by random loss and RED that the sender detects in
    # this step. In TCP one drop multiplies the window W by `decrease`. In slow start this model
    # adds up `tossed`, and multiplies W by `decrease` when the sum reaches 1. Slow start then ends.
    # Outside slow start the drops reduce W smoothly, by the factor exp(-(1 - decrease) tossed)
    # (Misra, Gong and Towsley 2000). In the same step ACKs change W, too. To keep the error small,
    # W is multiplied by the square root of this exponential factor (`yields`) twice: once before
    # the change by ACKs, and once after it (Strang splitting).
    yields = np.exp(-0.5 * (1.0 - p.decrease[i]) * tossed)
    if y.in_slow_start[i]:
        y.expected[i] += tossed
        up = min(W + (np.exp(p.slow_start_growth[i]) - 1.0) * acks, cap)
        if y.expected[i] >= 1.0:
            y.in_slow_start[i] = False
            return float(max(up * p.decrease[i], floor))
        if up * g1 <= p.gamma[i]:
            return float(up)
        part = reach(W, up, g0, g1, p.gamma[i])
        y.in_slow_start[i] = False
        W, acks, g0 = W + part * (up - W), (1.0 - part) * acks, g0 + part * (g1 - g0)
        yields = 1.0
    W = max(W * yields, floor)
    W = avoid(W, acks, p.growth[i], g0, g1, p.lower[i], p.upper[i], floor, cap)
    return float(max(W * yields, floor))


@jit
def may_send(p: Flows, y: Senders, i: int, t: float, sent: float) -> float:
    """The number of packets that flow i may have sent by time t: the larger of A and N + W.

    A (``sent``) is the number of packets sent so far, and W is the window.  N is the number of
    packets that the sender knows to be delivered or lost.  After a cut of the window N + W is less
    than A, so the sender waits for ACKs.  In its first round trip a flow has no ACKs, and sends its
    initial window at a constant rate.  A flow that is not active sends nothing more.
    """
    if not p.start[i] <= t < p.stop[i]:
        return sent
    allowed: float = y.acked[i] + y.window[i]
    if t < p.start[i] + p.rtt[i]:
        allowed = p.initial_window[i] * (t - p.start[i]) / p.rtt[i]
    return max(sent, allowed)


@jit
def occur(p: Flows, y: Senders, t: float, cuts: np.ndarray) -> float:
    """Start and stop the flows that are due at time t, and cut windows where a loss is detected.

    Each cut adds 1 to the flow's entry of ``cuts``. Returns the next time at which a step has to
    end.
    """
    due = np.inf
    for i in range(y.window.size):
        if not p.start[i] <= t < p.stop[i]:
            y.window[i], y.loss_heard[i] = 0.0, np.inf
        elif y.window[i] == 0.0:
            y.window[i], y.in_slow_start[i] = p.initial_window[i], p.slow_start_growth[i] > 0.0
            y.over_estimate[i] = np.inf if p.measures_base[i] else p.over_estimate[i]
            y.share[i] = 0.0
        if t >= y.loss_heard[i]:
            y.window[i] = max(y.window[i] * p.decrease[i], p.min_window[i])
            y.in_slow_start[i] = False
            y.recovery_until[i] = t + p.recovery[i] * p.rtt[i]
            y.same_loss_until[i], y.loss_heard[i] = t + y.forward_delay[i], np.inf
            cuts[i] += 1
        for time in (
            p.start[i], p.start[i] + p.rtt[i], p.stop[i], y.loss_heard[i], y.recovery_until[i],
            y.same_loss_until[i],
        ):  # fmt: skip
            if time > t:
                due = min(due, time)
    return due


@jit
def note(
    y: Senders, past: Past, last: int, before: Floats, k: int, grid: Floats, record: Floats
) -> int:
    """Store the samples of the step that ends at entry ``last`` of the history.

    A sample is taken at each time of ``grid`` within the step, by linear interpolation between the
    step's two ends.  ``before`` has the flows' values at the beginning of the step, and ``k`` is
    the index of the first time of ``grid`` without a sample.  Returns the index of the first time
    of ``grid`` after the step.  The samples are written to ``record``, which ``march`` explains.
    """
    n, end = y.window.size, past.time[last]
    while k < grid.size and grid[k] <= end:
        part = (grid[k] - past.time[last - 1]) / (end - past.time[last - 1])
        for i in range(n):
            now = (
                y.window[i], y.seen[i], past.sent[last, i], y.acked[i] - y.missed[i],
                past.lost[last, i],
            )  # fmt: skip
            for j in range(5):
                record[k, 5 * i + j] = before[5 * i + j] + part * (now[j] - before[5 * i + j])
        old = past.delay[last - 1]
        record[k, 5 * n] = old + part * (past.delay[last] - old)
        k += 1
    return k


@making
def march(
    p: Flows, y: Senders, past: Past, last: int, c: float, s_max: float,
    chance: Chance, losers: int, end: float, longest: float, out: Totals, grid: Floats,
    record: Floats, k: int,
) -> tuple[int, int]:  # fmt: skip
    """Integrate the equations up to time ``end`` by steps of at most ``longest`` seconds.

    ``past`` is the history (``Past``), ``last`` the index of its last entry, and ``k`` the index of
    the first time of ``grid`` without a sample.  Returns the new ``last`` and ``k``.  If the arrays
    of the history are full, the function returns before ``end``; another call with more room goes
    on from there.  The caller can then handle signals such as Ctrl-C, which compiled code cannot.

    Row k of ``record`` receives the state at the time ``grid[k]``.  For each flow a row contains
    five numbers: the window, the queueing delay that the latest ACK reports, and the packets sent,
    delivered and lost so far.  The last number of a row is the queueing delay of the link.  The
    sums and integrals over the steps are added to ``out``.

    ``losers`` says which flows lose packets at an overflow (``drop``).  ``s_max`` is the queueing
    delay of a full queue in s, and ``chance`` has the parameters of random loss and RED.
    """
    n = y.window.size
    came, before = np.empty(n), np.zeros(5 * n)
    due = occur(p, y, past.time[last], out.cuts)
    while past.time[last] < end and last + 1 < past.time.size:
        t = past.time[last]
        left = min(due, end) - t
        wanted = left if left <= longest * (1.0 + TINY) else longest
        mean = past.mean[last]
        if last and chance.red:  # extrapolate RED's average to the middle of the step
            before_that = t - past.time[last - 1]
            if before_that > TINY * longest:
                mean += 0.5 * wanted * (mean - past.mean[last - 1]) / before_that
        loss = dropped(chance, mean)
        h, s1, excess = queue_step(y, past, last, wanted, c, s_max, loss, came)
        now = min(due, end) if h == left else t + h
        new = last + 1
        past.time[new], past.delay[new], past.exit[new] = now, s1, now + s1
        past.came[new] = came
        arrived = came.sum() - past.came[last].sum()
        # packets that the link could have sent in addition while the queue was empty
        idle = max(c * (h + s1 - past.delay[last]) - (1.0 - loss) * arrived, 0.0)
        halfway = 0.5 * c * (past.delay[last] + s1)
        past.mean[new] = averaged(chance, past.mean[last], arrived + idle, halfway)
        for i in range(n):
            tossed = loss * (came[i] - past.came[last, i])
            past.lost[new, i] = past.lost[last, i] + tossed
            past.early[new, i] = past.early[last, i] + tossed
            before[5 * i], before[5 * i + 1] = y.window[i], y.seen[i]
            before[5 * i + 2], before[5 * i + 4] = past.sent[last, i], past.lost[last, i]
            before[5 * i + 3] = y.acked[i] - y.missed[i]
        if excess > 0.0:
            drop(p, y, past, last, excess, s_max, losers, came, past.lost[new])
        for i in range(n):
            W, acked = y.window[i], y.acked[i]
            missed = loss_report(p, y, past, new, i, now)
            acks = y.acked[i] - acked
            past.sent[new, i] = may_send(p, y, i, now, past.sent[last, i])
            past.growing[new, i] = y.window[i] > W
            y.outward[i] = index(past.time, y.outward[i], new, now - y.forward_delay[i])
            out.delivered[i] += acks - missed
            out.acked[i] += acks
            out.seconds[i] += acks * (p.rtt[i] + y.seen[i])
            out.active[i] += now - t if W > 0.0 else 0.0
        out.queue[0] += 0.5 * (now - t) * c * (s1 + past.delay[last])
        out.queue[1] += now - t
        last = new
        k = note(y, past, last, before, k, grid, record)
        due = occur(p, y, now, out.cuts)
    return last, k
