"""Simulates the senders in the simulator ``delayed``: how ACKs and losses change windows.

Many functions have the same arguments. ``p`` holds the properties of the flows (``Flows``), ``y``
holds the state of the senders, and ``past`` is the history of queue and flows. ``last`` is the
index of the latest entry of the history. ``i`` is the index of a flow.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.delayed.state import Past, Senders, between, index
from vegasmodel.engines.fluid.records import Flows
from vegasmodel.engines.tables import jit


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

    If the backlog reaches a threshold within the step, the window moves in another way for the rest
    of the step: so that the backlog stays between the thresholds. But the window rises no faster
    than with m = ``climb``, and falls no faster than with m = -1.
    """
    up = max(min(np.sqrt(W * W + 2.0 * climb * acks), cap), W)
    down = min(max(np.sqrt(max(W * W - 2.0 * acks, 0.0)), floor), W)
    if W * g0 < lower:
        if up * g1 <= lower:
            return float(up)
        part = reach(W, up, g0, g1, lower)
        turn = W + part * (up - W)  # the window when the backlog reaches the threshold
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
    # the rest of the step: the window follows the threshold, but no faster than ``up`` and ``down``
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
    at = t - p.rtt[i] + y.forward_delay[i]  # when the packets whose ACKs arrive at t left the queue
    k = index(past.exit, y.inward[i], last, at)
    y.inward[i] = k
    u = between(past.exit, past.time, k, last, at)  # when they reached the queue
    acked = between(past.exit, past.came[:, i], k, last, at)  # packets whose fate is known at t
    missed = between(past.exit, past.lost[:, i], k, last, at)  # the lost ones among them
    early = between(past.exit, past.early[:, i], k, last, at)  # lost, but not at a full buffer
    acks, tossed = max(acked - y.acked[i], 0.0), max(early - y.early[i], 0.0)
    fresh: float = max(missed - y.missed[i], 0.0)
    y.acked[i], y.missed[i], y.early[i], y.seen[i] = acked, missed, early, max(at - u, 0.0)
    if p.measures_base[i] and u >= p.start[i] + y.forward_delay[i]:
        y.over_estimate[i] = min(y.over_estimate[i], y.seen[i])
    gap, base = y.seen[i] - y.over_estimate[i], p.rtt[i] + y.over_estimate[i]
    g0, g1 = y.share[i], 0.0  # backlog over window, before and now
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

    Each of these packets was delivered or lost.  ``tossed`` is the expected number of those that
    random loss and RED dropped.  In the step the ratio of backlog to window goes from ``g0`` to
    ``g1``.  Slow start ends in this step if the backlog reaches gamma, or by a drop (see the
    comment below).
    """
    W, cap, floor = y.window[i], p.max_window[i], p.min_window[i]
    # `tossed` is the expected number of drops by random loss and RED that the sender detects in
    # this step. In TCP one drop multiplies the window W by `decrease`. In slow start this model
    # adds up `tossed` over the steps. When the sum reaches 1, W is multiplied by `decrease` once,
    # and slow start ends. Outside slow start the drops reduce W smoothly: in each step W is
    # multiplied by exp(-(1 - decrease) tossed) (Misra, Gong and Towsley 2000). ACKs change W in the
    # same step, but the code computes one change after the other. To keep the error small, it makes
    # one half of the change by drops before the change by ACKs, and the other half after it (Strang
    # splitting). Each half multiplies W by `yields`, the square root of the factor above.
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
    packets that the sender knows to be delivered or lost.  After a cut of the window, N + W may be
    less than A. The sender then waits for ACKs.  In its first round trip a flow has no ACKs, and
    sends its initial window at a constant rate.  A flow that is not active sends nothing more.
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
        if not p.start[i] <= t < p.stop[i]:  # it is not active
            y.window[i], y.loss_heard[i] = 0.0, np.inf
        elif y.window[i] == 0.0:  # it starts
            y.window[i], y.in_slow_start[i] = p.initial_window[i], p.slow_start_growth[i] > 0.0
            y.over_estimate[i] = np.inf if p.measures_base[i] else p.over_estimate[i]
            y.share[i] = 0.0
        if t >= y.loss_heard[i]:  # the sender hears of a loss
            y.window[i] = max(y.window[i] * p.decrease[i], p.min_window[i])
            y.in_slow_start[i] = False
            y.recovery_until[i] = t + p.recovery[i] * p.rtt[i]
            y.same_loss_until[i], y.loss_heard[i] = t + y.forward_delay[i], np.inf
            cuts[i] += 1
        # a step ends at each of these times
        for time in (
            p.start[i], p.start[i] + p.rtt[i], p.stop[i], y.loss_heard[i], y.recovery_until[i],
            y.same_loss_until[i],
        ):  # fmt: skip
            if time > t:
                due = min(due, time)
    return due
