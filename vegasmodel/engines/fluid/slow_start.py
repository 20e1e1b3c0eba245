"""Ends the slow start of Vegas flows whose windows change at every instant.

In slow start the window of Vegas doubles in every other round trip. After each doubling Vegas
decides whether slow start ends (Brakmo and Peterson 1995, 3.3). As in ns-2 (tcp-vegas.cc), it
rounds the backlog to a whole number. If the rounded backlog exceeds gamma, slow start ends, and the
window is reduced by an eighth. The equations of ``windows.py`` contain only mean queues, so they
leave out two effects of single packets. This module adds them:

- While the window doubles to W, each ACK releases two packets. So W/2 additional packets arrive in
  one round trip. They wait in the queue even if the windows do not fill the link
  (``end_doubling``). From the delay of these packets Vegas computes a backlog. So slow start may
  end long before the windows fill the link.
- The packets of a window in slow start follow one another as a train (Jacobson 1988,
  self-clocking). The queue is longer than its mean just after the train has arrived, and shorter
  than its mean just before (``shortest``). We assume that a packet of each flow finds the shorter
  queue. This may reduce the flow's baseRTT.

Linux's Vegas decides by the least RTT of a round trip, which is the RTT of the first packet of a
train. So in this module the slow start of Linux's Vegas ends as soon as the backlog in
``windows.py`` exceeds gamma.

Many functions have the same arguments. ``p`` holds the properties of the flows, and ``y`` holds the
present state (``records``). ``active`` [flow] says which flows are active. ``c`` is the capacity in
pkt/s.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.engines.fluid.records import DELAY, Flows, State
from vegasmodel.engines.fluid.windows import REST
from vegasmodel.engines.tables import jit
from vegasmodel.laws.vegas import LEAST_WINDOW, PART_KEPT
from vegasmodel.metrics import Floats

# A train of packets takes so many times as long to arrive as the link needs to send its packets
# (``shortest`` explains the number).
TRAIN_LENGTH = 2.0


@jit
def begin_slow_start(p: Flows, i: int, y: State) -> None:
    """Let flow i, which starts now, begin slow start if its congestion control has one."""
    y.in_slow_start[i] = p.slow_start_growth[i] > 0.0
    y.doubled[i] = 2.0 * p.initial_window[i] if p.in_trains[i] else np.inf
    y.doubling_from[i] = y.now[DELAY]


@jit
def end_doubling(p: Flows, i: int, y: State, s: float, c: float) -> float:
    """End a doubling of the window of flow i, at the queueing delay s; returns the window then.

    In slow start the packets of a window follow one another closely: they are a train. Let W be the
    doubled window, r the queueing delay before the doubling, and c the capacity. The mean queueing
    delay m of the packets in this round trip has two parts:

    - While the window doubles, the delay that the windows cause (``windows.py``) goes from r to s.
      Its mean is (r + s)/2.
    - W/2 additional packets arrive in the train. The link needs W/(2 c) seconds to send them. The
      rise of the delay from r to s contains s - r of this time (nothing if s is below r). While the
      train arrives, the remainder is added to the delay evenly: nothing of it for the first packet
      of the train, all of it for the last one. So a packet waits for half of the remainder on
      average. When the link has sent the train, the remainder is gone.

    The sum is

        m = (r + s)/2 + max(W/(2 c) - max(s - r, 0), 0)/2.

    Let T be the propagation delay, and T + x the baseRTT that Vegas has measured (x is its
    over-estimate). The RTT is T + m, so Vegas's backlog W (RTT - baseRTT)/RTT is W (m - x)/(T + m).
    Vegas rounds it to a whole number. If the result exceeds gamma, slow start ends, and the window
    is reduced by an eighth. Otherwise the next doubling begins.
    """
    W: float = y.doubled[i]
    r = y.doubling_from[i]
    m = 0.5 * (r + s) + 0.5 * max(0.5 * W / c - max(s - r, 0.0), 0.0)
    backlog = W * (m - y.over_estimate[i]) / (p.rtt[i] + m)
    y.doubled[i], y.doubling_from[i] = 2.0 * W, s
    if np.floor(backlog + 0.5) > p.gamma[i]:
        y.in_slow_start[i] = False
        W = max(PART_KEPT * W, LEAST_WINDOW)
    return W


@jit
def shortest(
    p: Flows, active: np.ndarray, i: int, W: float, windows: Floats, s: float, c: float
) -> float:
    """The queueing delay just before the train of flow i arrives, if the mean delay is s.

    Flow i is in slow start and sends the packets of its window W as a train: one closely behind the
    other. Each train delays the packets of every other flow j that are behind it in the queue. So
    there is a gap in the packets of flow j. One round trip of flow j later, the gap reaches the
    queue: W r_j/c packets are missing there, where r_j is the rate of flow j, and c the capacity.
    Until then the queue is longer by this number. Let q be the RTT of flow j divided by that of
    flow i. On average over time, the gaps of q trains have not reached the queue yet. But just
    before the next train of flow i arrives, only the gaps of floor(q) trains have not. So the queue
    is then shorter than its mean by

        W r_j/c (q - floor(q))   packets.

    A gap is as long as a train. If it begins to reach the queue just before the next train, only a
    part of it comes in time. We take the length of a train as 2 W/c seconds, for this reason:

    - A train is longer than W/c, because packets of other flows lie between its packets. When the
      window doubles, W/2 new packets come in addition to those that arrived in the time of the
      previous train. If only this makes trains longer, they last (W + W/2 + W/4 + ...)/c, which is
      2 W/c.
    - In the round trips in which the window stays, a train also becomes longer, unless gaps reach
      the queue at the same time. If they never do, a train lasts 3 W/c seconds.

    ``p.rtt`` [flow] has the RTTs without queueing, in s. ``active`` [flow] says which flows are
    active, and ``windows`` [flow] holds their windows in packets.
    """
    trip, missing = p.rtt[i] + s, 0.0
    for j in range(active.size):
        if active[j] and j != i:
            other = p.rtt[j] + s
            part = other / trip % 1.0  # q - floor(q)
            arrived = min(1.0, (1.0 - part) * trip * c / (TRAIN_LENGTH * W))  # part of the gap
            missing += windows[j] / other / c * max(part - 1.0 + arrived, 0.0)
    return max(s - W / c * missing, 0.0)


@jit
def _delay_at_doubling(y: State, i: int, new: Floats, s: float) -> float:
    """The queueing delay when the window of flow i has doubled, by interpolation in the step.

    At the end of the step the windows are ``new``, and the queueing delay is ``s``.
    """
    before = y.now[DELAY]
    part = np.log(y.doubled[i] / y.window[i]) / np.log(new[i] / y.window[i])
    return float(before + (s - before) * part)


@jit
def double(
    p: Flows, y: State, active: np.ndarray, new: Floats, moves: np.ndarray, s: float, c: float
) -> tuple[bool, float]:
    """End the doublings of windows that end in this step, from the state y to the windows ``new``.

    Returns two values: whether slow start has ended for some flow, and the least queueing delay
    that flows may measure now. If slow start ends, the flow's window in ``new`` is reduced. Such a
    window counts as constant in this step (``moves``), so an overflow in the same step does not cut
    it again. The time at which a window has doubled is found by interpolation. The queueing delay
    is ``s`` at the end of the step. ``c`` is the capacity in pkt/s.
    """
    ended, least = False, s
    # two loops, as the second one changes windows from which the first one computes ``least``
    for i in range(active.size):
        if active[i] and y.in_slow_start[i] and new[i] >= y.doubled[i]:
            at = _delay_at_doubling(y, i, new, s)
            least = min(least, shortest(p, active, i, y.doubled[i], new, at, c))
    for i in range(active.size):
        if active[i] and y.in_slow_start[i] and new[i] >= y.doubled[i]:
            window = end_doubling(p, i, y, _delay_at_doubling(y, i, new, s), c)
            if not y.in_slow_start[i]:
                new[i], moves[i], ended = window, REST, True
    return ended, least
