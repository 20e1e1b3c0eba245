"""Computes the backlogs at which Vegas's windows come to rest if Vegas decides late.

In the equations of ``windows.py`` a window stops as soon as the backlog passes a threshold. A real
Vegas sender stops its window later, because it decides only once per round trip. It decides by the
mean RTT of the packets that were acknowledged in this round trip (Brakmo and Peterson 1995, 3.2;
tcp-vegas.cc). On average, these packets reached the queue 1.5 RTTs before the decision. The
decision then holds for the next round trip, in which it is half an RTT old on average. So a window
follows the queue with a delay of two RTTs (``LAG``). In an RTT a window changes by one packet. So
the delay has the following effects:

- If alpha = beta, the window grows for two RTTs after the backlog has risen above alpha, and
  shrinks for two RTTs after the backlog has fallen below alpha. So the window rises and falls like
  a triangular wave, by two packets to either side of its mean. The period of the wave is eight
  RTTs.
- If alpha < beta and no other flow shares the link, the window passes a threshold by about two
  packets, and then rests (``_alone``). If other flows share the link, they push the backlog past
  the threshold again, and the window moves again. We assume that the window varies by one packet to
  either side.

When the windows vary, the queue and the backlogs of all flows vary, too. Suppose that the backlog
of a flow with alpha < beta varies by A packets to either side of its mean. The flow's window moves
whenever the backlog is below alpha or above beta. So the window rests only if the mean backlog is
between alpha + A and beta - A. ``resting_range`` computes these two limits, and ``windows.py`` uses
them in place of alpha and beta.

If alpha + A is above beta - A, the window never rests. It grows about as often as it shrinks if the
mean backlog is in the middle between alpha and beta. So in this case ``resting_range`` returns this
middle for both limits.

A flow that starts late finds a queue that is sometimes longer and sometimes shorter than its mean.
``less_found`` computes by how much the shortest queue that such a flow finds is below the mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.fluid.records import Flows
from vegasmodel.metrics import Floats

FIRST_DOUBLING = 2.0  # round trips of slow start before a window doubles for the first time
LAG = 2.0  # round trips from a change of the queue to the change of the window that it causes
# round trips in place of ``LAG`` if a flow alone on the link changes the queue by shrinking its
# window: it holds a packet back one round trip sooner than a growing window adds one (``_alone``)
DOWN_LAG = 1.0
TO_DECISION = 0.5  # round trips to Vegas's next decision, on average


def resting_range(
    lower: Floats, upper: Floats, rtt: Floats, capacity: float, *, still: bool = False
) -> tuple[Floats, Floats]:
    """The least and the greatest mean backlog at which each window comes to rest, packets [n], [n].

    All flows are Vegas flows with the thresholds ``lower`` and ``upper`` (packets, [n]) and the
    propagation delays ``rtt`` (s, [n]). ``capacity`` is that of the link, pkt/s. If there is only
    one flow, ``_alone`` computes the result.

    If ``still``, no window with alpha < beta moves. The result is then the range in which a window
    stays that rests already.

    The backlog of flow i varies by A_i packets to either side of its mean (``_amplitudes``). So the
    window comes to rest if the mean backlog is at least A_i above ``lower``, and at least A_i below
    ``upper``. If no backlog meets both conditions, both results are the middle between the
    thresholds. The results are approximate, also because A_i is computed for a certain steady
    state: each backlog is in the middle between its thresholds, and no flow over-estimates its
    baseRTT.
    """
    middle = 0.5 * (lower + upper)
    if not np.any(lower < upper):
        return lower, upper
    if lower.size == 1:
        return _alone(lower, upper, rtt, middle / capacity)
    part, trip = middle / middle.sum(), rtt + middle.sum() / capacity
    moves = np.where(lower < upper, 0.0 if still else 0.5 * LAG, LAG)
    A = _amplitudes(part, trip, moves, np.flatnonzero(lower < upper))
    return np.minimum(lower + A, middle), np.maximum(upper - A, middle)


def _amplitudes(part: Floats, trip: Floats, moves: Floats, of: NDArray[np.intp]) -> Floats:
    """By how many packets A_i each backlog varies to either side of its mean, [n].

    Flow i has the RTT R_i (``trip``, s) and the part p_i (``part``) of the capacity c, so the part
    p_i of the queue belongs to it. The window of flow j varies by a_j packets (``moves``) to either
    side, so the queue varies by a_j k_j (``_lengthens`` computes k_j).

    The window of flow j is a triangular wave with the period 4 ``LAG`` R_j. Flow i computes its
    backlog from the mean queue in its own round trip. Over the time R_i, the mean of the wave
    varies less than the wave itself: by the factor g_ij = 1 - R_i/(4 ``LAG`` R_j), or not at all if
    this is negative. The waves of different flows have no fixed phases, so their squares add up:

        A_i = p_i sqrt(sum_j (a_j k_j g_ij)^2)   packets.

    ``of`` has the indices of the flows for which A_i is wanted; it is 0 for all others.
    """
    waves = moves * _lengthens(part, trip)  # a_j k_j
    A = np.zeros(part.size)
    for R_i in np.unique(trip[of]):  # a loop, as an array [n, n] might not fit into memory
        felt = waves * np.maximum(1.0 - R_i / (4.0 * LAG * trip), 0.0)  # a_j k_j g_ij
        flows = of[trip[of] == R_i]  # the flows with this RTT
        A[flows] = part[flows] * np.sqrt(felt @ felt)
    return A


def _alone(lower: Floats, upper: Floats, rtt: Floats, delay: Floats) -> tuple[Floats, Floats]:
    """The result of ``resting_range`` for one flow, whose queueing delay is about ``delay`` (s).

    One packet more in the window is one packet more in the queue. The sender computes the backlog
    W s/R from its present window W and from a late RTT R = T + s. So the part s/R of a packet
    counts at once, and the part T/R after two RTTs (``LAG``).

    - A growing window gains a packet per RTT. When Vegas sees the backlog pass alpha, it is already
      2 T/R packets above alpha. The next decision follows half an RTT later, on average. So the
      window rests 2 T/R + 1/2 packets above alpha (``up``).
    - If ``up`` is above beta, the window shrinks again. A growing window sends its additional
      packet at the end of a round trip, but a shrinking one holds a packet back at the beginning.
      So the queue follows it one RTT sooner, and the window rests T/R + 1/2 packets below beta
      (``down``).
    - If ``down`` is below alpha, the window never rests. Both results are then the middle between
      alpha and beta.
    """
    late = rtt / (rtt + delay)
    up, down = lower + LAG * late + TO_DECISION, upper - DOWN_LAG * late - TO_DECISION
    back = np.where(down >= lower, down, 0.5 * (lower + upper))
    low = np.where(up <= upper, up, back)
    return low, np.maximum(low, down)


def less_found(p: Flows, capacity: float) -> Floats:
    """By how much the queueing delay that late flows find is below its mean, s [n].

    A late flow counts the least queueing delay that it finds as propagation delay. In its first two
    round trips, R_i each, its window does not double yet, so the flow does not lengthen the queue
    (De Vendictis and Baiocchi 2002, equation (2)). Meanwhile the windows of the earlier flows move
    the queue. As Vegas decides late, the window of flow j is a triangular wave, by a_j packets
    (``LAG``) to either side. It changes the queue by a_j k_j packets (``_lengthens`` computes k_j).
    Two kinds of earlier flows do not count, because their windows rest: those with alpha < beta,
    and those whose ``max_window`` is below the window of the steady state.

    Two round trips of flow i are the part u = 2 R_i/(4 ``LAG`` R_j) of the wave's period, at most
    1. They begin at a random phase of the wave. With the probability u they contain the lowest
    point of the wave, which is one amplitude below the mean. Otherwise the wave is least at that
    end of the two round trips which is nearer to the lowest point. There it is u amplitudes below
    the mean on average. So on average the least value is below the mean by u + (1 - u) u, that is
    1 - (1 - u)^2, of the amplitude. This gives a depth for each flow j. The waves have no fixed
    phases, so the squares of the depths add up.

    ``p`` are the flows, all of them Vegas flows, and ``capacity`` is that of the link, pkt/s.
    """
    less, middle = np.zeros(p.rtt.size), 0.5 * (p.lower + p.upper)
    for i in range(less.size):
        before = (p.start < p.start[i]) & (p.stop > p.start[i])
        if not before.any() or middle[before].sum() == 0.0:
            continue
        delay = middle[before].sum() / capacity
        trip, part = p.rtt[before] + delay, middle[before] / middle[before].sum()
        moves = (p.lower == p.upper)[before] & (p.max_window[before] >= capacity * part * trip)
        waves = np.where(moves, LAG, 0.0) * _lengthens(part, trip)
        u = np.minimum(FIRST_DOUBLING * (p.rtt[i] + delay) / (4.0 * LAG * trip), 1.0)
        depths = waves * (1.0 - (1.0 - u) ** 2)
        less[i] = np.sqrt(depths @ depths) / capacity
    return less


def _lengthens(part: Floats, trip: Floats) -> Floats:
    """The packets k_j by which one packet more in the window of flow j lengthens the queue [n].

    Flow i has the part p_i of the capacity (``part``) and the RTT R_i (``trip``). By equation (W1)
    of ``windows.py``, k_j = 1/(R_j sum_i p_i/R_i).
    """
    k: Floats = 1.0 / (trip * (part / trip).sum())
    return k
