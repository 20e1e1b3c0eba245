"""Simulates the queue of ``delayed``: how packets arrive, and which flows lose packets.

Many functions have the same arguments. ``flows`` holds the properties of the flows (``Flows``),
``senders`` holds the state of the senders, and ``past`` is the history of queue and flows. ``last``
is the index of the latest entry of the history. ``drops`` holds the parameters of random loss and
RED.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.delayed.state import DropParameters, Past, Senders, between, index
from vegasmodel.engines.fluid.march import ALL, GROWING
from vegasmodel.engines.fluid.records import Flows
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats

TINY = 1e-12  # part of a step: times that differ by less count as equal
CLOCK_ERROR = 8.0 * 2.0**-52  # rounding error of a time, as a part of this time
SEARCH = 60  # most iterations that find when the queue becomes empty or the buffer full


@jit
def count_arrivals(senders: Senders, past: Past, last: int, t: float, arrived: Floats) -> float:
    """Compute how many packets of each flow have reached the queue up to time t.

    ``past`` is the history of the simulation: how many packets each flow had sent by earlier times.
    ``last`` is the index of its last entry. Writes the number of each flow into ``arrived`` [flow],
    and returns their sum over the flows.
    """
    total = 0.0
    for i in range(arrived.size):
        k = index(past.time, senders.sent_index[i], last, t - senders.forward_delay[i])
        arrived[i] = between(past.time, past.sent[:, i], k, last, t - senders.forward_delay[i])
        total += arrived[i]
    return total


@jit
def drop_probability(drops: DropParameters, mean: float) -> float:
    """Probability that random loss or RED drops a packet at an average queue of ``mean`` packets.

    RED computes a base probability p_b from the average queue.  With the option ``wait_`` of ns-2,
    the distance from one drop of RED to the next lies between 1/p_b and 2/p_b - 1 packets, and all
    distances in this range are equally likely.  The mean distance is (3/p_b - 1)/2 packets, so RED
    drops the fraction 2 p_b/(3 - p_b) of the packets.
    """
    if not drops.red or mean <= drops.low:
        return drops.loss
    base = drops.top * (mean - drops.low) / (drops.high - drops.low)
    if mean > drops.high:
        over = (mean - drops.high) / drops.high
        base = min(drops.top + (1.0 - drops.top) * over, 1.0) if drops.gentle else 1.0
    return 1.0 - (1.0 - drops.loss) * (1.0 - 2.0 * base / (3.0 - base))


@jit
def red_average(drops: DropParameters, mean: float, arrived: float, queue: float) -> float:
    """RED's average queue, in packets, after ``arrived`` more packets have arrived.

    ``mean`` is the average before they arrive, and ``queue`` the present queue.  Each packet moves
    the average towards the present queue, by the fraction ``weight`` of the difference between the
    two.  The average also falls while the queue is empty, as in ns-2.  So ``arrived`` then also
    counts the packets that the link could have sent.
    """
    if drops.weight >= 1.0:
        return queue
    decay: float = np.exp(np.log1p(-drops.weight) * arrived)  # (1 - weight)^arrived
    return queue + (mean - queue) * decay


@jit
def time_at_edge(
    senders: Senders, past: Past, last: int, h: float, c: float, loss: float, before: float,
    s1: float, edge: float, equal: float, arrived: Floats,
) -> float:  # fmt: skip
    """The time within a step of h seconds at which the queueing delay reaches ``edge``.

    At this delay, 0 or ``s_max``, the queue is empty or full. At the end of the step the delay
    would be ``s1``. ``before`` packets have arrived when the step begins. Delays and times that
    differ by less than ``equal`` seconds count as equal. The other arguments are those of
    ``queue_step``. The false-position method (Illinois) finds the time: if the same end of the
    interval moves twice in a row, the method halves the value at the other end.
    """
    t, s = past.time[last], past.delay[last]
    low, high, f_low, f_high = 0.0, h, s - edge, s1 - edge
    side, middle = 0, h  # ``side``: which end moved last, 1: ``low``, -1: ``high``
    for _ in range(SEARCH):
        middle = low + (high - low) * f_low / (f_low - f_high)
        more = count_arrivals(senders, past, last, t + middle, arrived) - before
        f = s + (1.0 - loss) * more / c - middle - edge
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
    return middle


@jit
def queue_step(
    senders: Senders,
    past: Past,
    last: int,
    h: float,
    c: float,
    s_max: float,
    loss: float,
    arrived: Floats,
) -> tuple[float, float, float]:
    """Advance the queue by h seconds, or less if it becomes empty or full before.

    Returns the length of the step in seconds, the queueing delay s at its end, and the number of
    packets that overflow.  Writes into ``arrived`` [flow] how many packets of each flow have
    reached the queue by the end of the step.  The delay stays within 0 .. s_max and follows

        c ds/dt = (1 - p) sum_i A_i'(t - f_i) - c.

    Here c is the capacity in pkt/s, and p (``loss``) is the probability that random loss or RED
    drops a packet.  A_i(t) is the number of packets that flow i has sent by time t, and A_i' is its
    derivative.  A packet of flow i reaches the queue f_i seconds after it is sent.

    ``last`` is the index of the last entry of the history ``past``. ``s_max`` is the queueing delay
    of a full queue, in s.
    """
    t, s = past.time[last], past.delay[last]
    equal = TINY * h + CLOCK_ERROR * t  # times that differ by less count as equal
    before = 0.0
    for i in range(arrived.size):
        before += past.arrived[last, i]
    more = count_arrivals(senders, past, last, t + h, arrived) - before  # arrivals in the step
    s1 = s + (1.0 - loss) * more / c - h  # the delay at the end, if it could leave 0 .. s_max
    if s1 > s_max and s >= s_max - equal:  # the queue stays full
        return h, s_max, c * (s1 - s_max)
    if s1 < 0.0 and s <= equal:  # it stays empty
        return h, 0.0, 0.0
    if 0.0 <= s1 <= s_max:
        return h, s1, 0.0
    # the queue becomes empty or full within the step, so the step ends there
    edge = 0.0 if s1 < 0.0 else s_max
    found = time_at_edge(senders, past, last, h, c, loss, before, s1, edge, equal, arrived)
    return found, edge, 0.0


@making
def drop(
    flows: Flows, senders: Senders, past: Past, last: int, excess: float, s_max: float, losers: int,
    arrived: Floats, lost: Floats,
) -> None:  # fmt: skip
    """Decide which flows lose the packets that overflow in a step, and when their senders learn it.

    ``excess`` is the number of these packets, ``arrived`` [flow] counts all packets that have
    arrived at the queue so far, and ``s_max`` is the queueing delay of a full queue in s.  Each
    flow's part of the excess is added to ``lost`` [flow].  A loss makes a sender cut its window
    once.  Further losses of packets that it sent before this cut do not make it cut again.

    ``losers`` selects the flows that can lose packets: ``ALL`` flows; those whose windows grew when
    they sent the packets (``GROWING``); or the loss-based flows among these (``LOSS_BASED``).  The
    selected flows share the loss in proportion to their arrivals at the queue in the step.  If the
    loss exceeds these arrivals, all flows share it.

    ``GROWING`` is the usual choice.  A source whose window does not grow sends at most one packet
    per ACK, so it does not make the queue longer.  Only a source whose window grows sends
    additional packets, for which the full buffer has no room.

    ``last`` is the index of the latest entry of the history ``past``.
    """
    n, t = arrived.size, past.time[last]
    can_lose = np.zeros(n, np.bool_)
    total = 0.0
    for i in range(n):
        # whether the window grew when the flow sent the packets that reach the queue in this step
        sent_at = t - senders.forward_delay[i]
        k = min(index(past.time, senders.sent_index[i], last, sent_at) + 1, last)
        grew = past.growing[k, i]
        can_lose[i] = losers == ALL or (grew and (losers == GROWING or not flows.keeps_backlog[i]))
        total += arrived[i] - past.arrived[last, i] if can_lose[i] else 0.0
    all_lose = total < excess
    if all_lose:
        total = arrived.sum() - past.arrived[last].sum()
    for i in range(n):
        arrivals = arrived[i] - past.arrived[last, i]
        if (all_lose or can_lose[i]) and arrivals > 0.0:
            lost[i] += excess * arrivals / total
            # The sender learns of the loss when the ACK of the lost packet would have arrived. This
            # loss causes no cut if another one is still to be learnt of, or if the packet was sent
            # before the last cut.
            if senders.loss_heard[i] == np.inf and t >= senders.same_loss_until[i]:
                senders.loss_heard[i] = t + s_max + flows.rtt[i] - senders.forward_delay[i]
