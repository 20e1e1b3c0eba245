"""Simulates the senders in the simulator ``delayed``: how ACKs and losses change windows.

Many functions have the same arguments. ``flows`` holds the properties of the flows (``Flows``),
``senders`` holds the state of the senders, and ``past`` is the history of queue and flows. ``last``
is the index of the latest entry of the history. ``i`` is the index of a flow.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.delayed.state import Past, Senders, between, index
from vegasmodel.engines.fluid.records import Flows
from vegasmodel.engines.tables import jit


@jit
def fraction_until(W: float, W1: float, g0: float, g1: float, e: float) -> float:
    """The fraction of a step after which the backlog reaches the threshold e (packets).

    Let g be the ratio of Vegas's backlog to its window.  In the step the window goes linearly from
    ``W`` to ``W1``, and g goes linearly from ``g0`` to ``g1``.  The backlog is the product of the
    two.  So the time at which it equals e is given by a quadratic equation, and the function
    returns the solution within the step.
    """
    dW, dg = W1 - W, g1 - g0
    a, b, f = dW * dg, W * dg + g0 * dW, W * g0 - e
    root = np.sqrt(max(b * b - 4.0 * a * f, 0.0))
    # both roots of the equation, in a form without cancellation; the one in [0, 1] is the result
    q = -0.5 * (b + root) if b > 0.0 else -0.5 * (b - root)
    first = f / q if q != 0.0 else 0.0
    second = q / a if a != 0.0 else np.inf
    part = first if 0.0 <= first <= 1.0 else second
    return min(max(part, 0.0), 1.0)


@jit
def congestion_avoidance(
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
    # the windows after the step if the backlog stays below ``lower``, or above ``upper``
    up = max(min(np.sqrt(W * W + 2.0 * climb * acks), cap), W)
    down = min(max(np.sqrt(max(W * W - 2.0 * acks, 0.0)), floor), W)
    if W * g0 < lower:
        if up * g1 <= lower:
            return float(up)
        part = fraction_until(W, up, g0, g1, lower)
        turn = W + part * (up - W)  # the window when the backlog reaches the threshold
    elif W * g0 > upper:
        if down * g1 >= upper:
            return float(down)
        part = fraction_until(W, down, g0, g1, upper)
        turn = W + part * (down - W)
    else:
        if lower <= W * g1 <= upper:
            return W
        part = fraction_until(W, W, g0, g1, lower if W * g1 < lower else upper)
        turn = W
    # the windows at which the backlog equals the thresholds at the end of the step
    low = lower / g1 if g1 > 0.0 else np.inf
    high = upper / g1 if g1 > 0.0 else np.inf
    # the rest of the step: the window follows the threshold, but no faster than ``up`` and ``down``
    rest = 1.0 - part
    target = min(max(turn, low), high)
    return float(min(max(target, turn - rest * (W - down)), turn + rest * (up - W)))


@jit
def process_reports(
    flows: Flows, senders: Senders, past: Past, last: int, i: int, t: float
) -> float:
    """Process the ACKs and the reports of losses that reach the sender of flow i by time t.

    Updates the sender's state in ``senders``, such as its baseRTT.  Outside recovery from a loss
    the window changes as ``moved_window`` says.  Returns the number of lost packets of which the
    sender learns now, whether the full buffer, random loss or RED dropped them.

    ``last`` is the index of the latest entry of the history ``past``.
    """
    # ``at`` is the time at which the packets whose ACKs arrive at t left the queue
    at = t - flows.rtt[i] + senders.forward_delay[i]
    k = index(past.exit, senders.arrived_index[i], last, at)
    senders.arrived_index[i] = k
    u = between(past.exit, past.time, k, last, at)  # when they reached the queue
    acked = between(past.exit, past.arrived[:, i], k, last, at)  # packets whose fate is known at t
    lost = between(past.exit, past.lost[:, i], k, last, at)  # the lost ones among them
    # packets lost by random loss or RED, not by a full buffer
    lost_at_random = between(past.exit, past.random_drops[:, i], k, last, at)
    acks = max(acked - senders.acked[i], 0.0)
    random_drops = max(lost_at_random - senders.known_random_drops[i], 0.0)
    newly_lost: float = max(lost - senders.known_lost[i], 0.0)
    senders.acked[i], senders.known_lost[i] = acked, lost
    senders.known_random_drops[i], senders.reported_delay[i] = lost_at_random, max(at - u, 0.0)
    if flows.measures_base[i] and u >= flows.start[i] + senders.forward_delay[i]:
        senders.over_estimate[i] = min(senders.over_estimate[i], senders.reported_delay[i])
    base = flows.rtt[i] + senders.over_estimate[i]
    excess_delay = senders.reported_delay[i] - senders.over_estimate[i]  # RTT - baseRTT
    g0, g1 = senders.backlog_share[i], 0.0  # the ratio of backlog to window, before and now
    if excess_delay > 0.0:
        rtt = flows.rtt[i] + senders.reported_delay[i]
        g1 = excess_delay / (base if flows.backlog_over_base[i] else rtt)
    senders.backlog_share[i] = g1
    W = senders.window[i]
    if W > 0.0 and t > senders.recovery_until[i]:
        senders.window[i] = moved_window(flows, senders, i, acks, g0, g1, random_drops)
    return newly_lost


@jit
def moved_window(
    flows: Flows, senders: Senders, i: int, acks: float, g0: float, g1: float, random_drops: float
) -> float:
    """The window of flow i after a step in which its sender learns the fate of ``acks`` packets.

    Each of these packets was delivered or lost.  ``random_drops`` is the expected number of those
    that random loss and RED dropped.  In the step the ratio of backlog to window goes from ``g0``
    to ``g1``.  In slow start each of the ``acks`` packets enlarges the window; slow start ends in
    this step if the backlog reaches gamma, or by a drop.

    In TCP one drop multiplies the window W by ``decrease``.  In slow start this model adds up
    ``random_drops`` over the steps.  When the sum reaches 1, W is multiplied by ``decrease`` once,
    and slow start ends.  Outside slow start the drops reduce W smoothly: in each step W is
    multiplied by exp(-(1 - decrease) random_drops) (Misra, Gong and Towsley 2000).
    """
    W, cap, floor = senders.window[i], flows.max_window[i], flows.min_window[i]
    # Drops and ACKs change W in the same step, but the code computes one change after the other. To
    # keep the error small, it applies the square root of the factor for drops twice, before the
    # change by ACKs and after it (Strang splitting).
    root_of_cut = np.exp(-0.5 * (1.0 - flows.decrease[i]) * random_drops)
    if senders.in_slow_start[i]:
        senders.expected_drops[i] += random_drops
        up = min(W + (np.exp(flows.slow_start_growth[i]) - 1.0) * acks, cap)
        if senders.expected_drops[i] >= 1.0:
            senders.in_slow_start[i] = False
            return float(max(up * flows.decrease[i], floor))
        if up * g1 <= flows.gamma[i]:
            return float(up)
        part = fraction_until(W, up, g0, g1, flows.gamma[i])
        senders.in_slow_start[i] = False
        W, acks, g0 = W + part * (up - W), (1.0 - part) * acks, g0 + part * (g1 - g0)
        root_of_cut = 1.0  # the drops of this step are in ``expected_drops``
    W = max(W * root_of_cut, floor)
    W = congestion_avoidance(
        W, acks, flows.growth[i], g0, g1, flows.lower[i], flows.upper[i], floor, cap
    )
    return float(max(W * root_of_cut, floor))


@jit
def sent_so_far(flows: Flows, senders: Senders, i: int, t: float, sent: float) -> float:
    """The number of packets that flow i may have sent by time t: the larger of A and N + W.

    A (``sent``) is the number of packets sent so far, and W is the window.  N is the number of
    packets that the sender knows to be delivered or lost.  After a cut of the window, N + W may be
    less than A. The sender then waits for ACKs.  In its first round trip a flow has no ACKs, and
    sends its initial window at a constant rate.  A flow that is not active sends nothing more.
    """
    if not flows.start[i] <= t < flows.stop[i]:
        return sent
    allowed: float = senders.acked[i] + senders.window[i]
    if t < flows.start[i] + flows.rtt[i]:
        allowed = flows.initial_window[i] * (t - flows.start[i]) / flows.rtt[i]
    return max(sent, allowed)


@jit
def apply_due_events(flows: Flows, senders: Senders, t: float, cuts: np.ndarray) -> float:
    """Start and stop the flows that are due at time t, and cut windows where a loss is detected.

    Each cut adds 1 to the flow's entry of ``cuts``. Returns the next time at which a step has to
    end.
    """
    due = np.inf
    for i in range(senders.window.size):
        if not flows.start[i] <= t < flows.stop[i]:  # the flow is not active
            senders.window[i], senders.loss_heard[i] = 0.0, np.inf
        elif senders.window[i] == 0.0:  # the flow starts
            senders.window[i] = flows.initial_window[i]
            senders.in_slow_start[i] = flows.slow_start_growth[i] > 0.0
            senders.over_estimate[i] = np.inf if flows.measures_base[i] else flows.over_estimate[i]
            senders.backlog_share[i] = 0.0
        if t >= senders.loss_heard[i]:  # the sender learns of a loss
            senders.window[i] = max(senders.window[i] * flows.decrease[i], flows.min_window[i])
            senders.in_slow_start[i] = False
            senders.recovery_until[i] = t + flows.recovery[i] * flows.rtt[i]
            # packets that arrive at the queue until then were sent before the cut
            senders.same_loss_until[i], senders.loss_heard[i] = t + senders.forward_delay[i], np.inf
            cuts[i] += 1
        # a step ends at each of these times; in its first RTT a flow sends its initial window
        for time in (
            flows.start[i], flows.start[i] + flows.rtt[i], flows.stop[i], senders.loss_heard[i],
            senders.recovery_until[i], senders.same_loss_until[i],
        ):  # fmt: skip
            if time > t:
                due = min(due, time)
    return due
