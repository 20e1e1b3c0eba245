"""Estimates how long windows take to reach their steady state, and the longest queue meanwhile.

Outside slow start a Vegas window moves by at most one packet per round trip. So a change of n
packets takes at least n round trips. In slow start the window grows faster: it doubles in one round
trip in Linux, and in two round trips in ns-2 and in the papers. Units: packets, seconds, packets
per second. Arguments out of range raise ``FieldError``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import floats, numbers, positive, same_size
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws.vegas import PART_KEPT
from vegasmodel.metrics import Floats

__all__ = [
    "Earlier",
    "Newcomer",
    "alone",
    "first_peak",
    "lag",
    "later",
    "overstep",
    "peak",
    "slow_start_ends",
    "slow_start_overflows",
    "together",
]

DELAYS = 400  # values of the queueing delay at which ``lag`` compares speeds
SLOW_START = 2.0  # round trips in which slow start doubles a window, in the slowest stack


def _check_per_flow(**arrays: Floats) -> None:
    """Raise ``FieldError`` unless the arrays have one entry per flow, and none is below 0.

    An entry may be NaN, if its value is not known.
    """
    same_size(**arrays)
    for name, values in arrays.items():
        if np.any(values < 0.0):
            raise FieldError(name, float(values[values < 0.0][0]), "at least 0")


@kinds.checked
def alone(
    windows: Floats, trips: Floats, backlog: Floats, after_slow_start: Floats | None = None
) -> float:
    """Time in s until the window of a flow that is alone on the link no longer changes.

    Slow start ends when the window fills the link. If ``after_slow_start`` is given, it may end
    before, and leaves a window of at least so many packets. Then the window grows by one packet
    per round trip, until the flow has ``backlog`` packets in the queue. ``windows`` are the steady
    windows in packets, and ``trips`` the RTTs in s. For several flows, the result is the longest of
    the times that each would need alone.
    """
    _check_per_flow(windows=windows, trips=trips, backlog=backlog)
    doublings = SLOW_START * np.log2(np.maximum(windows, 2.0))
    growth = np.asarray(backlog, dtype=np.float64)
    if after_slow_start is not None:
        _check_per_flow(windows=windows, after_slow_start=after_slow_start)
        growth = np.maximum(growth, windows - after_slow_start)
    return float(((doublings + growth) * trips).max())


@kinds.checked
def slow_start_ends(gamma: Floats, bandwidth_delay: Floats) -> Floats:
    """The least window, packets, with which a Vegas flow alone on a link can leave slow start.

    This is for an implementation of Vegas that decides by the mean RTT of a round trip. In slow
    start each ACK releases two packets. So a window of W packets arrives at the link twice as fast
    as the link sends. Its last packet finds W/2 packets in the queue, and its average packet W/4.
    Let B be the bandwidth-delay product in packets (``bandwidth_delay``). The backlog that Vegas
    computes is

        W (W/4)/(B + W/4).

    Slow start ends when this backlog exceeds ``gamma`` packets, though the link is not yet full.
    Vegas then reduces its window by an eighth, so the result is 7/8 of that W.
    """
    same_size(gamma=gamma, bandwidth_delay=bandwidth_delay)
    _check_per_flow(gamma=gamma, bandwidth_delay=bandwidth_delay)
    g, B = (np.asarray(values, dtype=np.float64) for values in (gamma, bandwidth_delay))
    # PART_KEPT is 7/8; the rest is the positive root W of W^2/4 = g (B + W/4)
    return np.asarray(PART_KEPT * (g + np.sqrt(g * g + 16.0 * g * B)) / 2.0)


@kinds.checked
def slow_start_overflows(buffer: float, decrease: float) -> float:
    """The greatest window, packets, after a buffer overflow that ends slow start.

    Each ACK of slow start releases two packets. So if a window grows from w to w + n packets within
    a round trip, n packets have to wait in the queue. It has room for ``buffer`` packets, b. A
    whole round trip doubles the window. In a round trip without overflow it grows by at most b, so
    it ends at 2 b or less. In the next round trip the buffer overflows when the window has grown by
    b, to at most 3 b. The sender learns of the loss a round trip later. Until then its window may
    double. The sender then multiplies the window by ``decrease``, d. So the result is 6 d b.

    This is valid only if the buffer overflows before the window fills the link. ``buffer`` may be
    infinite.
    """
    b = float(numbers("buffer", buffer, infinite=True))
    d = float(numbers("decrease", decrease, high=1.0))
    return 6.0 * d * b if d else 0.0


@kinds.checked
def together(windows: Floats, trips: Floats, c: Floats) -> float:
    """Upper bound, in s, of the time in which flows that start together reach their steady windows.

    Slow start may give the whole capacity c (pkt/s) to one flow, and almost nothing to the others.
    So after slow start, a window may have to fall from c RTT packets, or rise from 0, to its steady
    value. A window moves by one packet per round trip. The result also contains the time of slow
    start. ``windows`` are the steady windows in packets, and ``trips`` the RTTs in s. c is one
    number, or one for each flow.
    """
    _check_per_flow(windows=windows, trips=trips, c=c if c.ndim else np.full(windows.shape, c))
    whole_link = c * trips  # the window of a flow that has the whole capacity
    rounds = np.maximum(windows, whole_link - windows) + SLOW_START * np.log2(
        np.maximum(whole_link, 2.0)
    )
    return float((rounds * trips).max())


@kinds.checked
def later(before: Floats, after: Floats, trips: Floats) -> float:
    """Upper bound, in s, of the time from one equilibrium to the next, when new flows start.

    ``before`` and ``after`` are the flows' windows in the two equilibria, in packets. A new flow
    has the window 0 before. ``trips`` are the RTTs in s. A window moves by one packet per RTT.

    At worst, the windows of the earlier flows begin to fall only when those of the new flows have
    risen. So the result is the longest time of a new flow plus the longest time of an earlier flow.
    """
    _check_per_flow(before=before, after=after, trips=trips)
    seconds = np.abs(after - before) * trips
    new = before == 0
    return float(seconds[new].max(initial=0.0) + seconds[~new].max(initial=0.0))


@kinds.checked
def peak(windows: Floats, rtt: Floats, c: float, new: tuple[Floats, Floats]) -> float:
    """Upper bound, in s, of the queueing delay Delta while the windows of new flows rise.

    At worst the earlier flows j keep their windows W_j. Their round-trip times without queueing are
    rtt_j. A new flow i stops at its backlog of A_i packets; x_i is its over-estimate of baseRTT in
    s. ``new`` holds the A_i and the x_i. The bound is the Delta at which the rates of all flows add
    up to the capacity c:

        sum_j W_j/(rtt_j + Delta) + sum_i A_i/(Delta - x_i) = c.
    """
    positive("c", c)
    _check_per_flow(windows=windows, rtt=rtt)
    A, x = floats("new", new[0]), floats("new", new[1])
    same_size(**{"new[0]": A, "new[1]": x})
    # an earlier flow has the rate of a flow with the backlog W_j and the over-estimate -rtt_j
    poles = np.concatenate([-rtt, x])
    return float(secular.balance(np.concatenate([windows, A]), poles, c).delay)


@kinds.checked
def first_peak(backlog: Floats, rtt: Floats, c: float) -> float:
    """Upper bound, s, of the queueing delay Delta while flows start together in an empty network.

    At worst slow start gives the whole capacity c to the flow with the longest RTT d, and this flow
    keeps its window c d. Its rate c d/(d + Delta) falls as the other flows fill the queue. The
    windows of the other flows grow until their backlogs are in the queue. These backlogs are at
    most A, the sum of the flows' backlogs in ``backlog`` (packets). ``rtt`` holds the flows'
    round-trip times without queueing. So the bound is the solution of

        c d/(d + Delta) + A/Delta = c.

    A flow that is alone causes the delay A/c.
    """
    positive("c", c)
    _check_per_flow(backlog=backlog, rtt=rtt)
    A, d = float(backlog.sum()), float(rtt.max())
    if backlog.size == 1:
        return A / c
    return float((A + np.sqrt(A * A + 4.0 * c * A * d)) / (2.0 * c))


@kinds.checked
@dataclass(frozen=True)
class Earlier:
    """The flows on a link before a new flow starts; arrays [flow].

    - ``upper``: the greatest backlog with which each flow keeps its window, packets;
    - ``held``: the window that it keeps until its backlog has grown to ``upper``, packets. It is
      infinite for a flow with a single threshold, whose window falls as soon as the delay grows;
    - ``x``: over-estimates of baseRTT, s;
    - ``rtt``: RTTs without queueing, s;
    - ``c``: the link's capacity, pkt/s.

    Raises ``FieldError`` for values out of range, and for arrays of different sizes.
    """

    upper: Floats
    held: Floats
    x: Floats
    rtt: Floats
    c: float

    def __post_init__(self) -> None:
        same_size(upper=self.upper, held=self.held, x=self.x, rtt=self.rtt)
        _check_per_flow(upper=self.upper, held=self.held, rtt=self.rtt)
        positive("c", self.c)


@kinds.checked
@dataclass(frozen=True)
class Newcomer:
    """A flow that starts on the link: its over-estimate of baseRTT and its RTT, s, and gamma.

    ``gamma`` is the backlog in packets at which its slow start ends. Raises ``FieldError`` for
    values out of range.
    """

    x: float
    rtt: float
    gamma: float

    def __post_init__(self) -> None:
        numbers("rtt", self.rtt)
        numbers("gamma", self.gamma)


@kinds.checked
def lag(
    earlier: Earlier, newcomer: Newcomer, between: tuple[float, float], doubling: float
) -> float:
    """How fast windows must fall when a new flow starts, relative to how fast they can fall.

    A window can fall by at most one packet per round trip. While the new flow's window grows, an
    earlier flow may have to reduce its window faster than that to stay in steady state. The result
    is the ratio of the two speeds, the greatest one over all earlier flows. If it exceeds 1, some
    window falls too slowly, and the queueing delay overshoots.

    The new flow raises the queueing delay Delta; ``between`` holds its values before and after, in
    s. An earlier flow j has the propagation delay d_j, the over-estimate x_j of baseRTT and the
    round-trip time T_j. At first it keeps its window, ``held`` packets. When its backlog has grown
    to ``upper`` packets, its window W_j must fall so that the backlog stays there:

        -dW_j/dDelta = upper_j (d_j + x_j)/(Delta - x_j)^2.

    The new flow has the window W, the round-trip time T_n and the rate W/T_n. In each round trip W
    grows by v packets. The rates of all earlier flows together fall by G pkt/s per second of Delta.
    The link stays full, so

        dDelta/dt = v/(T_n^2 G + W).

    The product of these two derivatives is the speed at which window j must fall. The window can
    fall at most at the speed 1/T_j, a packet per round trip.

    In slow start, that is while the new flow's backlog is at most gamma, W doubles in ``doubling``
    round trips: v = W ln 2/``doubling``, but at least 1. After that v = 1.
    """
    positive("doubling", doubling)
    delay, at_upper, reduces, new_rate = _growth(earlier, between)
    x, rtt = earlier.x, earlier.rtt
    T, y = rtt + delay, _measured_delay(delay, x, rtt)
    G = np.where(reduces, at_upper / y, earlier.held / T**2).sum(axis=1)
    T_n, new_y = newcomer.rtt + delay[:, 0], delay[:, 0] - newcomer.x
    W = new_rate * T_n
    slow_start = new_rate * new_y <= newcomer.gamma
    v = np.where(slow_start, np.maximum(W * np.log(2.0) / doubling, 1.0), 1.0)
    # dDelta/dt; the term W is there because the new flow's rate, too, falls as the delay grows
    delay_growth = v / (T_n**2 * G + W)
    # the greatest T_j (-dW_j/dDelta) of the earlier flows; ``at_upper`` is the rate upper/y
    needed = np.where(reduces, at_upper * (rtt + x) / y * T, 0.0).max(axis=1)
    return float((needed * delay_growth).max(initial=0.0))


@kinds.checked
def overstep(earlier: Earlier, newcomer: Newcomer, between: tuple[float, float]) -> float:
    """The greatest window at which slow start of a new flow can end, divided by its steady window.

    Slow start doubles the window again and again until the backlog exceeds gamma. Let w be the
    window with the backlog gamma. The last doubling may begin just below w, so it may end near 2 w.
    Then Vegas reduces the window by an eighth. The result is (7/8) 2 w/W, where W is the steady
    window. If it exceeds 1, slow start may carry the window past W. To find w, the function assumes
    that all earlier flows stay in steady state while the new flow's window grows.

    The new flow raises the queueing delay; ``between`` holds its values before and after, in s.
    """
    # many queueing delays in this range, and the new flow's rate at each of them
    delay, _, _, new_rate = _growth(earlier, between)
    # the new flow's windows, and the queueing delays that it measures
    windows, new_y = new_rate * (newcomer.rtt + delay[:, 0]), delay[:, 0] - newcomer.x
    slow_start = new_rate * new_y <= newcomer.gamma
    w, steady = windows[slow_start].max(initial=0.0), windows[-1]
    return float(2.0 * PART_KEPT * w / max(steady, 1e-300))  # the steady window may be 0


def _growth(
    earlier: Earlier, between: tuple[float, float]
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """The rates while a new flow raises the queueing delay and earlier flows stay in steady state.

    ``between`` holds the queueing delay in s before the new flow starts and in the new steady
    state. Returns ``DELAYS`` values of the queueing delay in this range [points, 1], s, and three
    arrays for these values:

    - the rate that each earlier flow has at the largest backlog with which it keeps its window
      [points, n], pkt/s,
    - whether its backlog is that large, so that it reduces its window [points, n]; otherwise it
      keeps its window,
    - the rate of the new flow [points], pkt/s.
    """
    _check_per_flow(between=np.array(between, dtype=np.float64))
    before, after = between
    delay = np.linspace(before, after, DELAYS + 1)[1:, None]
    # the rate with the backlog ``upper``, and the rate if the flow keeps its window
    at_upper = earlier.upper / _measured_delay(delay, earlier.x, earlier.rtt)
    at_kept_window = earlier.held / (earlier.rtt + delay)
    reduces: NDArray[np.bool_] = at_upper <= at_kept_window
    new_rate = np.maximum(earlier.c - np.where(reduces, at_upper, at_kept_window).sum(axis=1), 0.0)
    return delay, at_upper, reduces, new_rate


def _measured_delay(delay: Floats, x: Floats, rtt: Floats) -> Floats:
    """The queueing delay in s that each flow measures: ``delay`` less its over-estimate ``x``.

    ``x`` is the time by which the flow over-estimates baseRTT. If the difference is 0 or less, it
    is replaced by a tiny time. The backlog that follows from so short a time is always too small to
    make Vegas reduce its window. The time is long enough that a division by its square does not
    overflow.
    """
    return np.maximum(delay - x, 1e-30 * (rtt + delay))
