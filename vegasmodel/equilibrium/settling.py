"""How long windows take to reach their steady state.

Outside slow start a Vegas window moves by at most one packet per round trip. So a change of n
packets takes at least n round trips. In slow start the window grows faster: it doubles in one round
trip in Linux, and in two round trips in ns-2 and in the papers. Units: packets, seconds, packets
per second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

__all__ = ["alone", "first_peak", "lag", "later", "peak", "together"]

POINTS = 400  # of the delay on its way, at which speeds are compared
SLOW_START = 2.0  # round trips in which a window doubles, the slower of the stacks


@kinds.checked
def alone(windows: Floats, trips: Floats, backlog: Floats) -> float:
    """Time in s until the window of a flow that is alone on the link no longer changes.

    Slow start fills the link. Then the window grows by one packet per round trip until the flow
    keeps ``backlog`` packets queued. Each argument has one entry per flow: steady windows in
    packets, RTTs in s, backlogs in packets. Each flow is taken as if it were alone; the result is
    the longest of their times.
    """
    doublings = SLOW_START * np.log2(np.maximum(windows, 2.0))
    return float(((doublings + backlog) * trips).max())


@kinds.checked
def together(windows: Floats, trips: Floats, c: Floats) -> float:
    """Upper bound, in s, of the time until flows that start together have reached their windows.

    Slow start may give the whole link of capacity c (pkt/s) to any of the flows. So after slow
    start a window may have to fall from c RTT, or rise from 0, to its steady value, by one packet
    per round trip. ``windows`` are the steady values in packets and ``trips`` the RTTs in s.
    """
    most = c * trips
    swing = np.maximum(windows, most - windows) + SLOW_START * np.log2(np.maximum(most, 2.0))
    return float((swing * trips).max())


@kinds.checked
def later(before: Floats, after: Floats, trips: Floats) -> float:
    """Upper bound, in s, of the time from one equilibrium to the next, when new flows start.

    ``before`` and ``after`` are the windows [flow] in the two equilibria; a new flow has 0 before.
    At worst the windows of the earlier flows fall only after those of the new flows have risen.
    ``trips`` are the flows' RTTs in s; a window changes by one packet per RTT.
    """
    seconds = np.abs(after - before) * trips
    new = before == 0
    return float(seconds[new].max(initial=0.0) + seconds[~new].max(initial=0.0))


@kinds.checked
def peak(windows: Floats, rtt: Floats, c: float, new: tuple[Floats, Floats]) -> float:
    """An upper bound, in s, of the queueing delay Delta while the windows of new flows rise.

    ``new`` holds the backlogs A_i (packets) and the over-estimates x_i of baseRTT (s) of the new
    flows.  At worst the earlier flows j keep their windows W_j.  Then the rates of all flows add up
    to the capacity c if sum_j W_j/(rtt_j + Delta) + sum_i A_i/(Delta - x_i) = c.  This equation is
    solved for Delta.
    """
    poles = np.concatenate([-rtt, new[1]])
    return float(secular.solve(np.concatenate([windows, new[0]]), poles, c).delay)


@kinds.checked
def first_peak(backlog: Floats, rtt: Floats, c: float) -> float:
    """Upper bound, s, of the queueing delay while flows start together in an empty network.

    At worst slow start gives the whole link of capacity c to the flow with the longest RTT d.  This
    flow then keeps its window c d, so its rate c d/(d + Delta) falls below c as the queueing delay
    Delta grows.  The difference goes to the other flows.  Their window growth stops when they keep
    backlogs of A packets in all, that is, when c - c d/(d + Delta) = A/Delta.
    """
    A, d = float(backlog.sum()), float(rtt.max())
    if backlog.size == 1:
        return A / c
    return float((A + np.sqrt(A * A + 4.0 * c * A * d)) / (2.0 * c))


@kinds.checked
def lag(
    upper: Floats,
    held: Floats,
    x: Floats,
    rtt: Floats,
    c: float,
    newcomer: tuple[float, float, float],
    between: tuple[float, float],
    doubling: float,
) -> float:
    """Ratio of the speed at which earlier flows' windows must fall to that at which they can fall.

    A new flow raises the queueing delay Delta from one equilibrium to the next; ``between`` holds
    the two delays. An earlier flow j has the propagation delay d_j (``rtt``), the over-estimate
    x_j of baseRTT and the round-trip time T_j. It keeps its window ``held`` [n] until its backlog
    reaches ``upper`` [n], the greatest backlog at which Vegas keeps its window. From then on its
    rate must be r_j = upper_j/(Delta - x_j), so its window W_j has to fall. Let -G be the
    derivative, by Delta, of the sum of all earlier flows' rates. The window of the new flow grows
    by v packets in each of its round trips T_n. Then

        dDelta/dt = v/(T_n^2 G),   -dW_j/dDelta = upper_j (d_j + x_j)/(Delta - x_j)^2.

    The product of the two, -dW_j/dt, is the speed at which window j has to fall. A window can fall
    by at most one packet in T_j. So the ratio of the two speeds is the product times T_j. The
    greatest ratio over all earlier flows and delays is returned. At most 1 means that all windows
    can fall fast enough. If it exceeds 1, some window falls too slowly. Then Delta exceeds its
    value in the next equilibrium for a time, and meanwhile the other flows have lower rates than in
    that equilibrium.

    ``newcomer`` holds the over-estimate, the propagation delay and gamma of the new flow, whose
    window is W. In congestion avoidance v = 1. In slow start, while the backlog is at most gamma, W
    doubles in ``doubling`` round trips, and v is the larger of 1 and W ln 2/``doubling``. The
    equation for dDelta/dt leaves out that the new flow's own rate W/T_n falls, too, as Delta grows.
    To include this, T_n^2 G + W is used in place of T_n^2 G.
    """
    over, d, gamma = newcomer
    first, last = between
    delay = np.linspace(first, last, POINTS + 1)[1:, None]
    T, y = rtt + delay, np.maximum(delay - x, 1e-300)
    edge, kept = upper / y, held / T
    slides: NDArray[np.bool_] = edge <= kept
    rates = np.where(slides, edge, kept)
    give = np.where(slides, edge / y, kept / T).sum(axis=1)
    mine = np.maximum(c - rates.sum(axis=1), 0.0)  # the newcomer's rate
    T_n, gap = d + delay[:, 0], delay[:, 0] - over
    slow = mine * gap <= gamma
    speed = np.where(slow, np.maximum(mine * T_n * np.log(2.0) / doubling, 1.0), 1.0)
    pace = speed / (T_n**2 * give + mine * T_n)  # its own rate falls, too, as the delay grows
    wanted = np.where(slides, edge * (rtt + x) / y * T, 0.0).max(axis=1)
    return float((wanted * pace).max(initial=0.0))
