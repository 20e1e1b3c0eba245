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
- p': the derivative of RED's drop or mark probability by the average queue.
- K: the speed, in 1/s, at which this average follows the queue.

If RED marks packets instead of dropping them, F lacks the first term. Without RED, p' is 0 and each
g_i is a constant, -gamma_i. Then the equilibrium is stable if the mean of the gamma_i, weighted by
the mu_i, is below 1. This mean is ``Loop.gain``.

``characteristic`` computes F and says how it is derived.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium._checks import numbers, positive
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats

Complex = NDArray[np.complex128]

TOLERANCE = 1e-10  # of |F| at a root, over the sizes of its terms
LIKE = 1e-9  # RTTs that differ by less are one
SMALL = 0.02  # of F: what losses may add to it beyond the frequencies that are searched
TURN = 0.7  # radians that F may turn from a point of the contour to the next
MAX_CONTOUR_POINTS = 400_000  # points of a contour
MAX_PERIODS = 2000  # of the longest RTT within the box: what is beyond takes gigabytes
WIDE = 6.0  # longest RTTs: what dies out faster than e^-6 in one is not looked for


@kinds.checked
@dataclass(frozen=True, eq=False)
class Loop:
    """The numbers of an equilibrium that decide its stability; arrays are [flow].

    - ``rtt``: R_i, the round-trip time with the queueing delay, s.
    - ``rate``: lambda_i, packets sent per second.  ``window``: W_i, packets.
    - ``slope``: gamma_i = -(dW_i/ds)/lambda_i for a Vegas window that keeps its backlog at a
      threshold while the queueing delay s changes.  It is (T + x)/(s - x), or (T + s)/(s - x) in
      Linux, where T is the propagation delay and x the over-estimate of T.  It is 0 for all other
      windows.
    - ``climb``: m_i, packets per round trip by which a window grows, if losses limit it.  It is 0
      for all other windows.
    - ``loss``: p, the loss probability.  ``steep``: dp/dv, per packet of RED's average queue v.
    - ``pole``: K, 1/s, the speed at which v follows the queue (inf: at once).
    - ``marks``: True if RED marks packets with the probability p and drops none.

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
        """Gamma, the mean of the ``slope`` gamma_i over all flows, weighted by their rates.

        Without RED the equilibrium is stable if Gamma < 1, for any RTTs R_i.  Proof: without RED
        the characteristic function F is the mean, weighted by the rates, of the terms
        (e^zR_i + gamma_i)/(e^zR_i - 1).  For Re z >= 0 we have |e^zR_i| >= 1, so the real part of
        each term is at least (1 - gamma_i)/2 (a Moebius map).  So Re F >= (1 - Gamma)/2 > 0, and F
        has no root with Re z >= 0.  The proof does not show how fast disturbances decay: with
        unequal RTTs there are roots arbitrarily near the imaginary axis.

        If Gamma > 1, there are infinitely many roots with Re z > 0.  F has poles on the imaginary
        axis, at z = 2 pi k j/R_i with j^2 = -1 and k = 1, 2, ...  Elsewhere on the axis
        Re F = (1 - Gamma)/2 < 0.  So along a path on the axis that passes each pole on its right,
        each pole turns F once about 0.  In Linux gamma_i > 1 at either threshold.

        Even near an unstable equilibrium a window moves by at most a packet per round trip.  If a
        flow is alone on the link, its window W has the deviation w from the equilibrium, and turns
        where w(t) + gamma w(t - R) = 0.  So W oscillates with the amplitude gamma/(1 + gamma)
        packets.
        """
        return float(self.rate @ self.slope / self.rate.sum())

    @property
    def plain(self) -> bool:
        """Whether the loss probability does not depend on the queue, as at a link without RED."""
        return self.steep == 0.0


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether one equilibrium is stable, and the characteristic roots that were found.

    A root is a zero of the characteristic function F. Roots are searched in a box of the complex
    plane: real parts above ``left``, and imaginary parts between -``top`` and ``top``, all in 1/s.
    There may also be roots with imaginary parts beyond ``top``. With the default ``top``, losses
    hardly matter for these roots: beyond it the terms of F that come from losses add up to less
    than 0.02 (``_top``).

    Without RED, ``stable`` says whether ``gain`` (Gamma) is below 1, which is an exact criterion.
    With RED it says that no root with real part 0 or more was found in the box.

    ``roots`` are the roots found, in 1/s, in order of falling real part; one of each conjugate
    pair. ``residual`` is the largest |F| at a root over the sum of the sizes of F's terms.

    ``complete`` says that as many roots were found in the box as the argument principle counts. If
    ``complete`` is True and there are no roots, disturbances with frequencies below ``top`` decay
    faster than e^(``left`` t).

    The box is not searched if ``top`` exceeds ``MAX_PERIODS`` times 2 pi over the longest RTT.
    Then ``roots`` is empty, ``complete`` is False and, with RED, ``stable`` is False.
    """

    stable: bool
    gain: float
    roots: Complex
    residual: float
    complete: bool
    left: float
    top: float

    @property
    def root(self) -> complex:
        """The characteristic root with the largest real part, in 1/s; NaN if none was found."""
        return complex(self.roots[0]) if self.roots.size else complex(math.nan, math.nan)

    @property
    def period(self) -> float:
        """The period in s of the rightmost root's oscillation; infinite if that root is real."""
        w = abs(self.root.imag)
        return 2.0 * math.pi / w if w > 0 else (math.inf if w == 0 else math.nan)


@kinds.checked
def characteristic(loop: Loop, z: complex | Complex) -> tuple[Complex, Complex, Floats]:
    """The characteristic function F(z), its derivative, and the sum of the sizes of F's terms.

    The equilibrium's characteristic roots are the z, in 1/s, at which F is 0.  Each result has the
    shape of ``z``.

    F follows from the equations (D1) to (D4) of ``engines/delayed/feedback.py``. Let a disturbance
    e^zt change the queueing delay by sigma, the number of packets that flow i has sent so far by
    a_i, its window by w_i, and RED's average queue by v:

        a_i (1 - e^-zR_i) = w_i - lambda_i sigma e^-z(R_i - f_i)       packets sent, (D2), (D3)
        c z sigma = (1 - p) z sum_i a_i e^-zf_i - p' Lambda v          the queue, (D1)
        v = c sigma / (1 + z/K)                                        RED's average
        w_i = lambda_i g_i(z) sigma e^-z(R_i - f_i)                    the window, (D4)

    Here f_i is the time from sender i to the queue, Lambda the sum of the rates lambda_i, c the
    capacity, and p' the derivative of the loss p by v; R_i, lambda_i, p and K are fields of
    ``Loop``.  The f_i cancel, and (1 - p) Lambda = c.  A Vegas window at its threshold has
    g_i = -gamma_i, its ``slope``; ``_answer`` has the g_i of a window that losses limit.

    Hollot, Misra, Towsley and Gong (INFOCOM 2001) analyse such a feedback loop of RED for flows
    that all have the same RTT, and that send at the rate W/RTT instead of upon ACKs.
    """
    z = np.asarray(z, dtype=np.complex128)
    total = float(loop.rate.sum())
    value, slope = np.zeros(z.shape, np.complex128), np.zeros(z.shape, np.complex128)
    size = np.zeros(z.shape)
    tau = 1.0 / loop.pole
    lag = 1.0 + z * tau  # 1 + z/K
    with np.errstate(all="ignore"):
        if loop.steep > 0.0 and not loop.marks:
            part = loop.steep * total / (z * lag)
            value += part
            slope += -part * (1.0 / z + tau / lag)
            size += np.abs(part)
        for share, R, kind in _classes(loop):
            g, g_z = _answer(loop, kind, z, lag)
            turn = np.exp(-z * R)
            part = share * (1.0 - g * turn) / (1.0 - turn)
            value += part
            bend = (g * R - g_z) * turn / (1.0 - turn) - (1.0 - g * turn) * R * turn / (
                1.0 - turn
            ) ** 2
            slope += share * bend
            size += share * (1.0 + np.abs(g * turn)) / np.abs(1.0 - turn)
    return value, slope, size


def _classes(loop: Loop) -> list[tuple[float, float, tuple[float, float, float]]]:
    """The flows, grouped into classes; the flows of a class have equal terms in the equation F = 0.

    F is the characteristic function.  Returns for each class: its fraction of the sum of all
    rates, its RTT in s, and the three numbers (gamma, m/W, m lambda/W^2). gamma, m, W and lambda
    are the fields ``slope``, ``climb``, ``window`` and ``rate`` of ``Loop``.
    """
    rows: dict[tuple[float, ...], list[float]] = {}
    total = float(loop.rate.sum())
    for R, rate, gamma, W, m in zip(
        loop.rtt, loop.rate, loop.slope, loop.window, loop.climb, strict=True
    ):
        key = (float(R), float(gamma), float(m / W), float(m * rate / W**2))
        rows.setdefault(key, []).append(float(rate))
    return [(math.fsum(rates) / total, key[0], key[1:]) for key, rates in rows.items()]  # type: ignore[misc]


def _answer(
    loop: Loop, kind: tuple[float, float, float], z: Complex, lag: Complex
) -> tuple[Any, Any]:
    """How windows react to the queueing delay: the transfer function g(z) of a class, and dg/dz.

    A disturbance sigma e^zt of the delay changes the window of a flow with the rate lambda by
    lambda g sigma e^zt, apart from the feedback delay. If the backlog threshold limits the window,
    g = -gamma. If losses limit it, g = -(m/W) (p'/p) c / ((1 + z/K) (z + 2 m lambda/W^2)), where p'
    is the derivative of the loss p by RED's average queue, c the capacity, and the other symbols
    are those of ``Loop``.
    """
    gamma, per_window, decay = kind
    if per_window == 0.0 or loop.steep == 0.0 or loop.loss == 0.0:
        return -gamma, 0.0
    c = float(loop.rate.sum()) * (1.0 if loop.marks else 1.0 - loop.loss)
    own = z + 2.0 * decay
    g = -per_window * loop.steep / loop.loss * c / (lag * own)
    return g, -g * (1.0 / own + 1.0 / loop.pole / lag)


@kinds.checked
def assess(loop: Loop, top: float | None = None, left: float | None = None) -> Stability:
    """Whether an equilibrium is stable, and its characteristic roots with the largest real parts.

    Newton's method from a grid of points finds the roots in a box of the complex plane, and the
    argument principle counts them. If the two numbers differ, the grid is refined. If they still
    differ, the result's field ``complete`` is False.

    - To the right the box reaches as far as a root can lie.
    - To the left it is enlarged until it holds roots, unless ``left`` is given: then the left side
      is at -``left``, 1/s. It is enlarged at most until disturbances of roots beyond its left side
      shrink by a factor of e^-6 or less within the longest RTT.
    - Upwards it reaches ``top``, 1/s, or slightly more. By default this is the frequency of two
      periods within the shortest RTT, or a higher one if losses still matter there (``_top``).
    """
    if top is not None:
        positive("top", top)
    if left is not None:
        positive("left", left)
    longest = float(loop.rtt.max())
    right = _right(loop)
    high = _clear(loop, _top(loop) if top is None else float(top))
    way = 0.25 / longest if left is None else float(left)
    if high * longest > 2.0 * math.pi * MAX_PERIODS:
        none, stable = np.empty(0, np.complex128), loop.plain and loop.gain < 1.0
        return Stability(stable, loop.gain, none, 0.0, False, -way, high)
    while True:
        edge = _beside(loop, -way)
        count = _count(loop, edge, right, high)
        if count != 0 or way * longest >= WIDE or left is not None:
            break
        way *= 2.0
    found = _search(loop, edge, right, high, count)
    _, _, size = characteristic(loop, found)
    value = np.abs(characteristic(loop, found)[0])
    residual = float((value / size).max()) if found.size else 0.0
    roots_found = 2 * int((found.imag > 0).sum()) + int((found.imag == 0).sum())
    complete = count is not None and roots_found == count and residual <= TOLERANCE
    stable = loop.gain < 1.0 if loop.plain else not np.any(found.real >= 0.0)
    return Stability(bool(stable), loop.gain, found, residual, complete, edge, high)


def _right(loop: Loop) -> float:
    """An upper bound of the real parts of all characteristic roots, 1/s."""
    total, x = float(loop.rate.sum()), 1.0 / float(loop.rtt.max())
    while True:
        off = loop.steep * total / x if not loop.marks else 0.0
        for share, R, kind in _classes(loop):
            # |g| falls as Re z grows, and is largest where z is real
            g, _ = _answer(loop, kind, np.array(x + 0j), np.array(1.0 + x / loop.pole + 0j))
            off += share * (1.0 + abs(complex(g))) / math.expm1(min(x * R, 700.0))
        if off < 1.0:
            return x
        x *= 1.5


def _top(loop: Loop) -> float:
    """A frequency in 1/s above which losses hardly change the characteristic function.

    At this frequency the terms of the function that come from losses add up to less than ``SMALL``.
    It is at least 4 pi/R with the shortest RTT R: two periods within this RTT.
    """
    w, total = 4.0 * math.pi / float(loop.rtt.min()), float(loop.rate.sum())
    if loop.plain:
        return w
    while True:
        z, lag = np.array(1j * w), np.array(1.0 + 1j * (w / loop.pole))
        off = 0.0 if loop.marks else loop.steep * total / abs(complex(z * lag))
        for share, _, kind in _classes(loop):
            if kind[1] > 0.0:
                off += share * abs(complex(_answer(loop, kind, z, lag)[0]))
        if off < SMALL:
            return w
        w *= 1.3


def _periods(loop: Loop) -> Floats:
    """The different RTTs of the flows; RTTs that differ only by rounding errors count as one."""
    each = np.unique(loop.rtt)
    return np.asarray(each[np.concatenate([[True], np.diff(each) > LIKE * each[1:]])])


def _axis(loop: Loop, top: float) -> Floats:
    """The poles of the characteristic function on the imaginary axis: frequencies 2 pi k/R.

    R are the flows' RTTs, k = 1, 2, ...  Returns each frequency in 0 .. ``top`` once, in 1/s.
    """
    each = [2 * np.pi / R * np.arange(1, int(top * R / 6.28) + 2) for R in _periods(loop)]
    poles = np.sort(np.concatenate(each))
    poles = poles[poles < top]
    return poles[np.diff(poles, prepend=0.0) > 10 * LIKE * poles] if poles.size else poles


def _clear(loop: Loop, top: float) -> float:
    """A frequency in 1/s, slightly above ``top``, that is far from the poles on the imaginary axis.

    The poles of the characteristic function are at the frequencies 2 pi k/R, with the flows' RTTs R
    and k = 1, 2, ...  The box in which roots are searched ends at the returned frequency, because
    the function changes too fast near a pole to be followed along the border of the box.
    """
    near, R = top * np.linspace(1.0, 1.05, 400), _periods(loop)[:, None]
    turns = near * R / (2 * np.pi)
    away = (np.abs(turns - np.round(turns)) / R).min(axis=0)
    return float(near[int(np.argmax(away))])


def _real_poles(loop: Loop) -> Floats:
    """The real poles of the characteristic function, 1/s; all are negative."""
    if loop.plain:
        return np.empty(0)
    decays = [-2.0 * kind[2] for _, _, kind in _classes(loop) if kind[1] > 0.0]
    return np.unique([*decays, *([-loop.pole] if math.isfinite(loop.pole) else [])])


def _beside(loop: Loop, edge: float) -> float:
    """Where to put the left side of the box in which roots are searched: a real part in 1/s.

    This is ``edge`` itself, unless a real pole of the characteristic function is close to it.  Then
    the side is moved to the left of the pole, because the function grows without bound there.
    """
    for pole in _real_poles(loop):
        if abs(edge - pole) < 0.02 * abs(edge):
            edge = 1.05 * pole
    return edge


def _count(loop: Loop, left: float, right: float, top: float) -> int | None:
    """The number of characteristic roots in a box of the complex plane, by the argument principle.

    The real parts lie in ``left`` .. ``right``, the imaginary parts in -``top`` .. ``top``. Returns
    None if the characteristic function turns so fast along the border of the box that its turns
    cannot be counted.
    """
    corners = [right, right + 1j * top, left + 1j * top, left]
    turned = 0.0
    for start, end in itertools.pairwise(corners):
        part = _turn(loop, start, end)
        if part is None:
            return None
        turned += part
    # the lower half is the mirror image
    winding = round(turned / np.pi)
    if abs(turned / np.pi - winding) > 0.1:
        return None
    real = int((_real_poles(loop) > left).sum())
    return winding + 1 + 2 * _axis(loop, top).size + real


def _turn(loop: Loop, start: complex, end: complex) -> float | None:
    """The angle, in radians, by which the characteristic function turns about 0 along a line.

    The line is a straight one in the complex plane. The function is evaluated at more points where
    it turns fast. Returns None if it turns too fast to be followed.
    """
    at = np.linspace(0.0, 1.0, 257)
    f = characteristic(loop, np.asarray(start + at * (end - start), complex))[0]
    for _ in range(40):
        step = np.angle(f[1:] / f[:-1])
        fast = np.flatnonzero(~(np.abs(step) < TURN))
        if fast.size == 0:
            return float(step.sum())
        if at.size > MAX_CONTOUR_POINTS:
            return None
        more = 0.5 * (at[fast] + at[fast + 1])
        new = characteristic(loop, np.asarray(start + more * (end - start), complex))[0]
        at, f = np.insert(at, fast + 1, more), np.insert(f, fast + 1, new)
    return None


def _search(loop: Loop, left: float, right: float, top: float, count: int | None) -> Complex:
    """The characteristic roots in a box of the complex plane, in order of falling real part.

    The box has real parts from ``left`` to ``right`` and imaginary parts below ``top``. One root of
    each conjugate pair is returned. The grid of Newton's starting points is refined until ``count``
    roots are found, or three times at most.
    """
    step = 0.25 * math.pi / float(loop.rtt.max())
    poles = np.concatenate([[0.0], _axis(loop, top), [top]])
    found = np.empty(0, np.complex128)
    for refinement in (1, 2, 4, 8):
        # roots lie between poles, however near to each other these are
        part = (np.arange(2 * refinement) + 0.5) / (2 * refinement)
        width = np.diff(poles)[:, None]
        between = poles[:-1, None] + part * width
        aside = width * np.linspace(-0.5, 0.5, 2 * refinement + 1)
        real = np.linspace(left, right, 8 * refinement)
        imag = np.concatenate([[0.0], np.geomspace(1e-4 * step, step, 8 * refinement)])
        starts = [
            (aside[:, :, None] + 1j * between[:, None, :]).ravel(),
            (real[:, None] + 1j * imag).ravel(),
            (real[:, None] + 1j * np.arange(step, top, step)).ravel(),
            found,
        ]
        found = _distinct(
            loop, _newton(loop, np.concatenate(starts), (left, right, top)), left, right, top
        )
        roots_found = 2 * int((found.imag > 0).sum()) + int((found.imag == 0).sum())
        if count is None or roots_found == count:
            break
    return found


def _newton(loop: Loop, z: Complex, box: tuple[float, float, float]) -> Complex:
    """The points at which Newton's method ends, for the starting points ``z`` in the complex plane.

    The method searches roots of the characteristic function. It drops a starting point if its path
    leaves the box, widened by a margin.
    """
    left, right, top = box
    longest = float(loop.rtt.max())
    done = [np.empty(0, np.complex128)]
    for _ in range(40):
        f, slope, _ = characteristic(loop, z)
        with np.errstate(all="ignore"):
            step = f / slope
            size, cap = np.abs(step), 0.5 * (np.abs(z) + 1.0 / longest)
            z = z - np.where(size > cap, step * cap / size, step)
        rests = size <= 1e-13 * np.abs(z)
        done.append(z[rests])
        inside = (z.real > 4.0 * left) & (z.real < 4.0 * right) & (np.abs(z.imag) < 1.2 * top)
        z = z[inside & ~rests]
        if z.size == 0:
            break
    return np.concatenate([*done, z])


def _distinct(loop: Loop, z: Complex, left: float, right: float, top: float) -> Complex:
    """The roots of the characteristic function among the points ``z``, without repetitions.

    Only roots in the box are returned, those with the largest real part first. Of each conjugate
    pair it is the root with the positive imaginary part.
    """
    f, _, size = characteristic(loop, z)
    with np.errstate(invalid="ignore"):
        z = z[np.abs(f) <= TOLERANCE * size]
    z = np.where(z.imag < 0, z.conj(), z)
    near = 1e-7 / float(loop.rtt.max())
    z = np.where(z.imag < near, z.real + 0j, z)
    z = z[(z.real > left) & (z.real <= right) & (z.imag < top)]
    kept: list[complex] = []
    longest = float(loop.rtt.max())
    for one in sorted(z, key=lambda r: (-round(r.real * longest, 9), r.imag)):
        if all(abs(one - other) > 10 * near + 1e-7 * abs(one) for other in kept):
            kept.append(complex(one))
    return np.array(kept, dtype=np.complex128)
