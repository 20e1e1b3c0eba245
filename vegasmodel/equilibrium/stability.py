"""Tells whether an equilibrium is stable under feedback delay, by its characteristic roots.

All flows share one link, and senders send when ACKs come. An ACK reports the queueing delay that
its packet met, so senders react to the queue with a delay. The simulator ``delayed`` solves the
equations of these flows. This module linearises them at an equilibrium.

Small disturbances of the equilibrium change with time t as e^(z t), where z is a root of the
characteristic function

    F(z) = p' K Lambda / (z (z + K)) + sum_i mu_i (e^(z R_i) - g_i(z)) / (e^(z R_i) - 1).

The equilibrium is stable if all roots have negative real parts. The symbols are:

- R_i: the round-trip time of flow i.
- Lambda: the number of packets that all flows together send per second.
- mu_i: the fraction of these packets that flow i sends.
- g_i: how flow i's window reacts to the queueing delay that its ACKs report (a transfer function).
- p': the derivative of RED's drop or mark probability with respect to the average queue.
- K: the speed, in 1/s, at which this average follows the queue.

If RED marks packets instead of dropping them, F lacks the first term. Without RED, p' is 0 and each
g_i is a constant. Let gamma_i be -g_i. Then the equilibrium is stable if the mean of the gamma_i,
weighted by the mu_i, is below 1. This mean is ``Loop.gain``.

``characteristic`` computes F and says how it is derived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vegasmodel.equilibrium import _roots
from vegasmodel.equilibrium._checks import numbers, positive, same_size
from vegasmodel.equilibrium._roots import TOLERANCE, Complex
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

SAME_RTT = 1e-9  # relative difference below which two RTTs count as one
SMALL_TERMS = 0.02  # above the frequencies searched, the terms of F from losses add up to less
MAX_PERIODS = 2000  # in the longest RTT, at the highest frequency; more would take gigabytes
# Disturbances that shrink to e^-MAX_DECAY or less within the longest RTT are not looked for: they
# decay fast.
MAX_DECAY = 6.0


@kinds.checked
@dataclass(frozen=True, eq=False)
class Loop:
    """The numbers of an equilibrium that decide its stability.

    The first five have one entry per flow i:

    - ``rtt``: R_i, the round-trip time with the queueing delay, s.
    - ``rate``: lambda_i, the rate at which the flow sends, pkt/s.
    - ``slope``: gamma_i, how strongly the window reacts to the queueing delay, without unit. It is
      -(dW_i/ds)/lambda_i, for a Vegas window W_i that keeps its backlog at a threshold while the
      queueing delay s changes: (T + x)/(s - x), or (T + s)/(s - x) in Linux, where T is the
      propagation delay and x the over-estimate of T. It is 0 for all other windows.
    - ``window``: W_i, packets.
    - ``climb``: m_i, how fast the window grows between losses, in packets per round trip, if
      losses limit the window. It is 0 for all other windows.

    The others describe the link:

    - ``loss``: p, the probability that a packet is lost or marked.
    - ``steep``: dp/dv, how strongly RED reacts to its average queue v, per packet.
    - ``pole``: K, in 1/s, the speed at which v follows the queue. If it is infinite, v is the
      queue.
    - ``marks``: True if RED marks packets and drops none.

    Raises ``FieldError`` for values out of range.
    """

    rtt: Floats
    rate: Floats
    slope: Floats
    window: Floats
    climb: Floats
    loss: float = 0.0
    steep: float = 0.0
    pole: float = math.inf
    marks: bool = False

    def __post_init__(self) -> None:
        """Check all fields."""
        one_per_flow = ("rtt", "rate", "slope", "window", "climb")
        same_size(**{name: getattr(self, name) for name in one_per_flow})
        positive("rtt", self.rtt)
        positive("rate", self.rate)
        numbers("slope", self.slope)
        positive("window", self.window)
        numbers("climb", self.climb)
        numbers("loss", self.loss, high=1.0, below=True)
        numbers("steep", self.steep)
        numbers("pole", self.pole, above=True, infinite=True)

    @property
    def gain(self) -> float:
        """Gamma, the mean of the flows' ``slope`` gamma_i, weighted by their rates.

        Without RED the equilibrium is stable if Gamma < 1, whatever the RTTs R_i are. Proof:
        without RED the characteristic function F is the weighted mean of

            (e^zR_i + gamma_i)/(e^zR_i - 1).

        If Re z >= 0, then |e^zR_i| >= 1, and the real part of this term is at least
        (1 - gamma_i)/2. So Re F is at least (1 - Gamma)/2, which is positive. Therefore F has no
        root with Re z >= 0. The proof does not say how fast disturbances decay.

        If Gamma > 1, infinitely many roots have Re z > 0. In Linux gamma_i always exceeds 1.

        At an unstable equilibrium the windows oscillate, but each moves by at most one packet per
        round trip. If a flow is alone on the link, its window oscillates with the amplitude
        gamma/(1 + gamma) packets.
        """
        return float(self.rate @ self.slope / self.rate.sum())

    @property
    def plain(self) -> bool:
        """Whether the loss probability does not depend on the queue, as at a link without RED."""
        return self.steep == 0.0


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether one equilibrium is stable, and the roots of its characteristic function F.

    - ``stable``: without RED, whether ``gain`` is below 1, which is an exact criterion. With RED,
      False if a root with real part 0 or more was found, and True if a complete search found no
      such root. It is ``None``, not known, if a search that is not complete found no such root:
      it may have missed one.
    - ``gain``: the mean of the flows' ``Loop.slope``, weighted by their rates. A flow's slope says
      how strongly its Vegas window reacts to the queueing delay. It is 0 for a window that does not
      follow Vegas's rule, such as Reno's.
    - ``roots``: the roots found, in 1/s, the one with the largest real part first. Of two conjugate
      roots only one is listed.
    - ``residual``: the largest |F| at a root, relative to the sum of the sizes of F's terms.
    - ``left`` and ``top``: the roots were searched where the real part is above ``left`` and the
      imaginary part between -``top`` and ``top``, in 1/s.
    - ``complete``: True if the search found as many roots as the argument principle counts, and
      ``residual`` is tiny. If it is True and there are no roots, disturbances with frequencies
      below ``top`` decay faster than e^(``left`` t); ``left`` is negative.

    If ``top`` is too large for a search, ``roots`` is empty and ``complete`` is False.
    """

    stable: bool | None
    gain: float
    roots: Complex
    residual: float
    complete: bool
    left: float
    top: float

    @property
    def root(self) -> complex:
        """The characteristic root with the largest real part, in 1/s.

        The result is NaN if no root was found. It is also NaN if the found root does not agree with
        ``stable``, because then the search may have missed the rightmost root.
        """
        fits = self.roots.size and self.stable == bool(self.roots[0].real < 0.0)
        return complex(self.roots[0]) if fits else complex(math.nan, math.nan)

    @property
    def period(self) -> float:
        """The period in s of the rightmost root's oscillation; infinite if that root is real.

        It is NaN if no root was found.
        """
        w = abs(self.root.imag)
        return 2.0 * math.pi / w if w > 0 else (math.inf if w == 0 else math.nan)


@kinds.checked
def characteristic(loop: Loop, z: complex | Complex) -> tuple[Complex, Complex, Floats]:
    """The characteristic function F(z), its derivative, and the sum of the sizes of F's terms.

    The equilibrium's characteristic roots are the z, in 1/s, at which F is 0. Each result has the
    shape of ``z``. Newton's method needs the derivative, and the sum shows how small |F| must be at
    a root: a tiny part of it.

    F follows from the equations (D1) to (D4) of ``engines/delayed/feedback.py``, linearised at the
    equilibrium. A disturbance that changes as e^zt has these amplitudes: sigma of the queueing
    delay, v of RED's average queue, a_i of the number of packets that flow i has sent, and w_i of
    its window. They satisfy

        a_i (1 - e^-zR_i) = w_i - lambda_i sigma e^-z(R_i - f_i)       packets sent, (D2), (D3)
        c z sigma = (1 - p) z sum_i a_i e^-zf_i - p' Lambda v          the queue, (D1)
        v = c sigma / (1 + z/K)                                        RED's average
        w_i = lambda_i g_i(z) sigma e^-z(R_i - f_i)                    the window, (D4)

    Here f_i is the time from sender i to the queue, Lambda the sum of the rates lambda_i, c the
    capacity, and p' the derivative of the loss p by the average queue. R_i, lambda_i, p and K are
    fields of ``Loop``. ``_reaction`` computes g_i. The module's docstring has the F that follows.
    F does not depend on the f_i, because they cancel.

    If RED marks packets, none are lost: 1 - p is replaced by 1, and the term with p' is absent.

    Hollot, Misra, Towsley and Gong (INFOCOM 2001) analyse RED in the same way. In their model all
    flows have the same RTT, and send at the rate W/RTT.
    """
    z = np.asarray(z, dtype=np.complex128)
    total = float(loop.rate.sum())  # Lambda
    value, slope = np.zeros(z.shape, np.complex128), np.zeros(z.shape, np.complex128)
    size = np.zeros(z.shape)
    tau = 1.0 / loop.pole
    lag = 1.0 + z * tau  # 1 + z/K
    with np.errstate(all="ignore"):
        if loop.steep > 0.0 and not loop.marks:
            term = loop.steep * total / (z * lag)
            value += term
            slope += -term * (1.0 / z + tau / lag)
            size += np.abs(term)
        for share, R, reacts in _classes(loop):
            g, g_z = _reaction(loop, reacts, z, lag)
            # the term share (e^zR - g)/(e^zR - 1), divided by e^zR above and below
            decay = np.exp(-z * R)
            value += share * (1.0 - g * decay) / (1.0 - decay)
            by_z = (g * R - g_z) * decay / (1.0 - decay) - (1.0 - g * decay) * R * decay / (
                1.0 - decay
            ) ** 2
            slope += share * by_z
            size += share * (1.0 + np.abs(g * decay)) / np.abs(1.0 - decay)
    return value, slope, size


class _WindowConstants(NamedTuple):
    """What determines g(z), the reaction of a flow's window (``_reaction``).

    The symbols are those of ``Loop``.
    """

    gamma: float
    growth: float  # m/W
    decay: float  # m lambda/W^2, 1/s


def _classes(loop: Loop) -> list[tuple[float, float, _WindowConstants]]:
    """The flows, grouped into classes; flows of one class contribute equal terms to F.

    F is the characteristic function. Computing one term for each class, and not for each flow,
    saves time. Each class is returned as three values: its fraction of the sum of all rates, its
    RTT in s, and what determines the reaction of its windows.
    """
    # the rates of the flows of each class
    classes: dict[tuple[float, _WindowConstants], list[float]] = {}
    total = float(loop.rate.sum())
    for R, rate, gamma, W, m in zip(
        loop.rtt, loop.rate, loop.slope, loop.window, loop.climb, strict=True
    ):
        reacts = _WindowConstants(float(gamma), float(m / W), float(m * rate / W**2))
        classes.setdefault((float(R), reacts), []).append(float(rate))
    return [(math.fsum(rates) / total, R, reacts) for (R, reacts), rates in classes.items()]


def _reaction(loop: Loop, reacts: _WindowConstants, z: Complex, lag: Complex) -> tuple[Any, Any]:
    """How the window of a flow reacts to the queueing delay: the function g(z), and dg/dz.

    If the queueing delay that the ACKs report changes by sigma e^zt, the window W changes by
    w e^zt, where w = lambda g sigma and lambda is the flow's rate.

    - A constant window has g = 0.
    - A Vegas window at a threshold has g = -gamma (``Loop.slope``).
    - If losses limit the window, g depends on RED. Without RED the loss probability p does not
      depend on the queue, and g = 0. With RED

        g = -(m/W) (p'/p) c / ((1 + z/K) (z + 2 m lambda/W^2)).

    Here m is the window's growth in packets per round trip (``Loop.climb``), and c the capacity. p'
    is the derivative of p by RED's average queue (``Loop.steep``). K is the speed, in 1/s, at which
    this average follows the queue (``Loop.pole``). In the code m/W is ``growth``, m lambda/W^2 is
    ``decay``, and 1 + z/K is ``lag``.

    The formula follows in three steps. First, a loss takes the fraction kappa of the window. So
    while n packets are acknowledged, W changes by (m/W - p kappa W) n. Second, in equilibrium this
    is 0, so p kappa W = m/W. Let RED's average queue change by v e^zt, so p changes by p' v e^zt.
    To first order the change of W then satisfies

        z w = -lambda (2 m/W^2) w - lambda (m/W) (p'/p) v.

    Third, v = c sigma/(1 + z/K), and w = lambda g sigma. Solved for g, this is the formula.
    """
    gamma, growth, decay = reacts
    if growth == 0.0 or loop.steep == 0.0 or loop.loss == 0.0:
        return -gamma, 0.0
    # the capacity: the link is full, and carries all packets that RED does not drop
    c = float(loop.rate.sum()) * (1.0 if loop.marks else 1.0 - loop.loss)
    z_plus_2_decay = z + 2.0 * decay
    g = -growth * loop.steep / loop.loss * c / (lag * z_plus_2_decay)
    return g, -g * (1.0 / z_plus_2_decay + 1.0 / loop.pole / lag)


@kinds.checked
def assess(loop: Loop, top: float | None = None, left: float | None = None) -> Stability:
    """Whether an equilibrium is stable, and its characteristic roots with the largest real parts.

    Newton's method finds the roots in a rectangle of the complex plane, starting from a grid of
    points. The argument principle tells how many roots the rectangle has. If fewer or more are
    found, the grid is refined. If the numbers still differ, ``complete`` is False in the result.

    The right side of the rectangle is so far right that no root lies beyond it. The other sides
    depend on the arguments, in 1/s:

    - ``left``: the left side is at -``left``, or slightly to the left of it. By default the
      rectangle grows to the left until it holds a root. It stops growing at the latest where
      disturbances shrink to e^-6 or less within the longest RTT.
    - ``top``: the imaginary parts lie between -``top`` and ``top``, or slightly beyond. The default
      is 4 pi/R or more, where R is the shortest RTT. Above this frequency, losses have little
      influence on the roots.

    Raises ``FieldError`` unless ``left`` and ``top`` are positive.
    """
    if top is not None:
        positive("top", top)
    if left is not None:
        positive("left", left)
    longest = float(loop.rtt.max())
    right = _right_side(loop)
    high = _between_poles(loop, _top_side(loop) if top is None else float(top))
    to_left = 0.25 / longest if left is None else float(left)  # from the imaginary axis, 1/s
    if high * longest > 2.0 * math.pi * MAX_PERIODS:
        none = np.empty(0, np.complex128)
        stable = _stable(loop, none, complete=False)
        return Stability(
            stable, loop.gain, none, residual=0.0, complete=False, left=-to_left, top=high
        )
    function = _roots.Function(
        lambda z: characteristic(loop, z),
        lambda top: _imaginary_poles(loop, top),
        _real_poles(loop),
        longest,
    )
    while True:
        edge = _left_side(loop, -to_left)
        count = _roots.count(function, edge, right, high)
        if count != 0 or to_left * longest >= MAX_DECAY or left is not None:
            break
        to_left *= 2.0
    found = _roots.search(function, edge, right, high, count)
    value, _, size = characteristic(loop, found)
    residual = float((np.abs(value) / size).max()) if found.size else 0.0
    all_found = count is not None and _roots.with_conjugates(found) == count
    complete = all_found and residual <= TOLERANCE
    stable = _stable(loop, found, complete)
    return Stability(stable, loop.gain, found, residual, complete, edge, high)


def _stable(loop: Loop, roots: Complex, complete: bool) -> bool | None:
    """Whether the equilibrium is stable; None if ``roots`` may lack a root that decides it.

    ``roots`` are the characteristic roots found, and ``complete`` says whether these are all that
    were searched.
    """
    if loop.plain:  # without RED: see ``Loop.gain``
        return loop.gain < 1.0
    if np.any(roots.real >= 0.0):
        return False
    return True if complete else None


def _right_side(loop: Loop) -> float:
    """An upper bound of the real parts of all characteristic roots, 1/s.

    A flow's term in the characteristic function is mu (1 + (1 - g)/(e^zR - 1)), and the mu add up
    to 1. So F(z) is 1 plus other terms. If their magnitudes add up to less than 1, F(z) is not 0.
    The function has bounds of the magnitudes, which fall as the real part x of z grows. It raises x
    until the bounds add up to less than 1.
    """
    total, x = float(loop.rate.sum()), 1.0 / float(loop.rtt.max())
    while True:
        others = loop.steep * total / x if not loop.marks else 0.0
        for share, R, reacts in _classes(loop):
            # |g| falls as Re z grows, and is largest where z is real
            g, _ = _reaction(loop, reacts, np.array(x + 0j), np.array(1.0 + x / loop.pole + 0j))
            exponent = min(x * R, 700.0)  # a larger one would overflow; the term is tiny anyway
            others += share * (1.0 + abs(complex(g))) / math.expm1(exponent)
        if others < 1.0:
            return x
        x *= 1.5  # a larger x is a bound, too: it only makes the search longer


def _top_side(loop: Loop) -> float:
    """A frequency in 1/s above which losses hardly change the characteristic function.

    At this frequency the terms of the function that come from losses add up to less than
    ``SMALL_TERMS``. It is at least 4 pi/R with the shortest RTT R: two periods within this RTT.
    """
    w, total = 4.0 * math.pi / float(loop.rtt.min()), float(loop.rate.sum())
    if loop.plain:
        return w
    while True:
        z, lag = np.array(1j * w), np.array(1.0 + 1j * (w / loop.pole))
        terms = 0.0 if loop.marks else loop.steep * total / abs(complex(z * lag))
        for share, _, reacts in _classes(loop):
            if reacts.growth > 0.0:
                terms += share * abs(complex(_reaction(loop, reacts, z, lag)[0]))
        if terms < SMALL_TERMS:
            return w
        w *= 1.3  # a higher frequency will do, too: it only makes the search longer


def _different_rtts(loop: Loop) -> Floats:
    """The different RTTs of the flows; RTTs that differ only by rounding errors count as one."""
    each = np.unique(loop.rtt)
    return np.asarray(each[np.concatenate([[True], np.diff(each) > SAME_RTT * each[1:]])])


def _imaginary_poles(loop: Loop, top: float) -> Floats:
    """The poles of the characteristic function on the imaginary axis: frequencies 2 pi k/R.

    R are the flows' RTTs, and k = 1, 2, ... Returns each frequency below ``top`` once, in 1/s.
    """
    # 6.28 is less than 2 pi, so that no pole below ``top`` is missing
    each = [2 * np.pi / R * np.arange(1, int(top * R / 6.28) + 2) for R in _different_rtts(loop)]
    poles = np.sort(np.concatenate(each))
    poles = poles[poles < top]
    return poles[np.diff(poles, prepend=0.0) > 10 * SAME_RTT * poles] if poles.size else poles


def _between_poles(loop: Loop, top: float) -> float:
    """A frequency at or slightly above ``top``, 1/s, far from the poles on the imaginary axis.

    The characteristic function has poles at the frequencies 2 pi k/R, where R are the flows' RTTs
    and k = 1, 2, ... The rectangle in which roots are searched ends at the returned frequency. Its
    border must not pass near a pole, because the function changes too fast there.
    """
    candidates, R = top * np.linspace(1.0, 1.05, 400), _different_rtts(loop)[:, None]
    turns = candidates * R / (2 * np.pi)
    distance = (np.abs(turns - np.round(turns)) / R).min(axis=0)
    return float(candidates[int(np.argmax(distance))])


def _real_poles(loop: Loop) -> Floats:
    """The negative real poles of the characteristic function, 1/s; it also has a pole at 0.

    They are the poles of the reactions g(z) of the windows (``_reaction``), and that of RED's
    average of the queue.
    """
    if loop.plain:  # there g(z) is constant
        return np.empty(0)
    decays = [-2.0 * reacts.decay for _, _, reacts in _classes(loop) if reacts.growth > 0.0]
    return np.unique([*decays, *([-loop.pole] if math.isfinite(loop.pole) else [])])


def _left_side(loop: Loop, edge: float) -> float:
    """The real part, in 1/s, of the left side of the rectangle in which roots are searched.

    It is ``edge``, unless a real pole of the characteristic function is close to ``edge``. Then the
    left side is moved to the left of the pole, because the function is too large near the pole.
    """
    for pole in _real_poles(loop):
        if abs(edge - pole) < 0.02 * abs(edge):
            edge = 1.05 * pole
    return edge
