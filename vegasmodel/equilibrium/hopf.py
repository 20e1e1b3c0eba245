"""Finds the curve in the plane of two parameters on which an equilibrium loses its stability.

The parameters are x and y. An equilibrium can lose its stability in a Hopf bifurcation: a pair of
characteristic roots, i w and -i w, crosses the imaginary axis. Then F(i w; x, y) = 0, where F is
the characteristic function (``stability.py``). Its real and its imaginary part give two equations
for ln x, ln y and ln w. These two equations define a curve, which ``continuation.py`` follows.

Stability may also change without a root on the axis. A Vegas window is limited either by the
threshold of its backlog or by losses. Where the limit changes from one to the other, the linearised
equation of the window changes abruptly, and the stability may change, too. The class ``Jump``
describes such a change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vegasmodel.equilibrium._checks import count, positive, same_size
from vegasmodel.equilibrium.continuation import MAX_POINTS, Equations, follow
from vegasmodel.equilibrium.stability import Loop, assess, characteristic
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = ["Crossing", "Jump", "Make", "Scan", "crossings", "trace"]

Make = Callable[[float, float], Loop | None]  # the loop at (x, y); None: no equilibrium there

STEP = 0.2  # greatest step along the curve, in the variables (ln x, ln w, ln y)
# Rounding may put the root i w slightly to the right of the imaginary axis. A root that is farther
# to the right than this fraction of w is another root, which makes the equilibrium unstable.
RIGHT_OF_AXIS = 1e-5
ROUNDING = 1e-12  # fraction of x by which rounding may put a result outside its interval
CLOSE = 1.001  # Newton's method begins when the upper end of the interval is this times the lower


@dataclass(frozen=True)
class Crossing:
    """A point at which a pair of characteristic roots of an equilibrium is on the imaginary axis.

    The equilibrium is that of flows and a link with two varied parameters, whose values at this
    point are ``x`` and ``y``. The two roots, i w and -i w, solve F(z) = 0, where F is the
    characteristic function; ``frequency`` is w in 1/s. ``residual`` is the relative error of this
    equation: |F(i w)| over the sum of the sizes of F's terms, or NaN if there is no equilibrium at
    (x, y).

    ``leading`` is true if a complete search found no root right of the axis. Then the point is on
    the boundary of stability.
    """

    x: float
    y: float
    frequency: float
    residual: float
    leading: bool


@dataclass(frozen=True)
class Jump:
    """A change of stability for which no Hopf bifurcation was found.

    x and y are the two parameters that are varied. At y = ``y`` the equilibrium is stable at one of
    x = ``low`` and x = ``high``, and unstable at the other. In between, no characteristic root was
    found on the imaginary axis, or there is no equilibrium at some x.
    """

    low: float
    high: float
    y: float


@dataclass(frozen=True)
class Scan:
    """The changes of stability that were found along a line of constant y.

    ``points`` are Hopf bifurcations, at which two characteristic roots are on the imaginary axis.
    ``jumps`` are changes of stability without such roots. ``stable`` says for each value of x
    whether the equilibrium is stable there; it is None if there is no equilibrium, or if its
    stability is not known.
    """

    points: tuple[Crossing, ...]
    jumps: tuple[Jump, ...]
    stable: tuple[bool | None, ...]


@kinds.checked
def crossings(make: Make, xs: Floats, y: float) -> Scan:
    """Where stability changes at a fixed ``y``, as x runs through the values ``xs``.

    x and y are two parameters of the flows and the link. ``make(x, y)`` returns the equations
    linearised about the equilibrium (``Loop``), or None if there is no equilibrium. ``xs`` are
    positive and rising. A change is found between two neighbouring values if the equilibrium is
    stable at one and unstable at the other. So the function misses two changes between the same two
    values, and a change beside a value without an equilibrium. Raises ``FieldError`` if ``y`` or a
    value in ``xs`` is not positive.
    """
    same_size(xs=xs)
    xs, y = positive("xs", xs), float(positive("y", y))
    points: list[Crossing] = []
    jumps: list[Jump] = []
    stable: list[bool | None] = []
    # the value before x, and the largest real part of the roots there
    before: tuple[float, float] | None = None
    for x in xs:
        growth = _largest_real_part(make, float(x), y)
        stable.append(None if growth is None else growth < 0.0)
        if before is not None and growth is not None and (before[1] < 0.0) != (growth < 0.0):
            change = _locate_change(make, before[0], float(x), y)
            if isinstance(change, Jump):
                jumps.append(change)
            else:
                points.append(change)
        before = None if growth is None else (float(x), growth)
    return Scan(tuple(points), tuple(jumps), tuple(stable))


@kinds.checked
def trace(
    make: Make,
    begin: Crossing,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    most: int = 100,
) -> list[Crossing]:
    """The boundary of stability through the point ``begin``, followed in both directions.

    x and y are two parameters of the flows and the link. ``make(x, y)`` returns the equations
    linearised about the equilibrium (``Loop``), or None if there is no equilibrium. In each
    direction the boundary ends at a limit of ``x_range`` or ``y_range``, where no next point is
    found, or after ``most`` points. Raises ``ValueError`` for arguments out of range, and if no
    point of the boundary is found near ``begin``.
    """
    for name, pair in (("x_range", x_range), ("y_range", y_range)):
        if not 0.0 < pair[0] < pair[1] < math.inf:
            raise FieldError(name, pair, "two positive numbers, the lower one first")
    count("most", most, 1, MAX_POINTS)
    ends = (math.log(y_range[0]), math.log(y_range[1]))
    # where ``follow`` begins: the unknowns ln x and ln w, and the parameter ln y within ``ends``
    unknowns = np.log([begin.x, begin.frequency])
    log_y = min(max(math.log(begin.y), ends[0]), ends[1])
    low, high = math.log(x_range[0]), math.log(x_range[1])
    # the two halves of the boundary: y falls at first in one, and rises at first in the other
    halves = []
    for rising in (False, True):
        branch = follow(
            _equations(make), unknowns, log_y, ends, scale=np.ones(3), step=STEP, rising=rising,
            most=most, within=lambda v: low <= v[0] <= high,
        )  # fmt: skip
        points = np.column_stack([branch.x, branch.parameter])
        if branch.status == Status.LEFT_RANGE:  # the last point is outside the ranges
            points = points[:-1]
        halves.append(points)
    # the first half backwards, then the second; ``begin`` is in both
    return [_crossing(make, *point) for point in np.exp([*halves[0][::-1], *halves[1][1:]])]


def _largest_real_part(make: Make, x: float, y: float) -> float | None:
    """The largest real part, in 1/s, of the characteristic roots at the parameters ``x`` and ``y``.

    ``make(x, y)`` returns the linearised equations, or None if there is no equilibrium. The result
    is None if there is no equilibrium, or if its stability is not known. If no root was found, the
    result is minus infinity for a stable equilibrium, and infinity for an unstable one.
    """
    loop = make(x, y)
    if loop is None:
        return None
    found = assess(loop)
    if found.stable is None:
        return None
    if math.isnan(found.root.real):
        return -math.inf if found.stable else math.inf
    return found.root.real


def _locate_change(make: Make, low: float, high: float, y: float) -> Crossing | Jump:
    """The change of stability at ``y`` that lies between x = ``low`` and x = ``high``.

    The interval of x is divided at its geometric mean, and the half with the change is kept, until
    ``high`` is at most ``CLOSE`` times ``low``. Newton's method then searches for the value of x at
    which two characteristic roots are on the imaginary axis. If it finds none in the interval, the
    change is a ``Jump``. It is also a ``Jump`` if there is no equilibrium at a value of x that
    the bisection tries.
    """
    at_low = _largest_real_part(make, low, y)
    while high / low > CLOSE:
        middle = math.sqrt(low * high)
        at_middle = _largest_real_part(make, middle, y)
        if at_middle is None or at_low is None:
            return Jump(low, high, y)
        low, high = (middle, high) if (at_middle < 0.0) == (at_low < 0.0) else (low, middle)
    for end in (high, low):  # Newton's method begins with the root at one end, or at the other
        loop = make(end, y)
        w = 0.0 if loop is None else abs(assess(loop).root.imag)
        if w > 0.0:
            ln_y = math.log(y)
            try:  # one point of the curve, so only Newton's method runs
                point = follow(
                    _equations(make), np.log([end, w]), ln_y, (ln_y - 1.0, ln_y + 1.0),
                    scale=np.ones(3), most=1,
                )  # fmt: skip
            except ValueError:
                continue
            x, w = np.exp(point.x[0])
            if low * (1.0 - ROUNDING) <= x <= high * (1.0 + ROUNDING):
                return _crossing(make, min(max(x, low), high), w, y)
    return Jump(low, high, y)


def _equations(make: Make) -> Equations:
    """The two real equations that hold on the boundary of stability.

    The boundary is a curve in the plane of two parameters, x and y. On it i w and -i w are
    characteristic roots, with a real w. The equations are the real and the imaginary part of
    F(i w; x, y) = 0, where F is the characteristic function of the linearised equations that
    ``make(x, y)`` returns. Their unknowns are ln x and ln w, and their parameter is ln y. F is
    divided by the sum of the sizes of its terms.
    """

    def misfit(u: Floats, ln_y: float) -> Floats:
        """Both parts of F at the unknowns ``u``, ln x and ln w, and at ``ln_y``.

        They are NaN if there is no equilibrium, or if x, w or y is too large or too small for a
        float.
        """
        with np.errstate(over="ignore"):
            x, w, y = np.exp([*u, ln_y])
        sane = np.all(np.isfinite([x, w, y]) & (np.array([x, w, y]) > 0.0))
        loop = make(float(x), float(y)) if sane else None
        return np.full(2, np.nan) if loop is None else _relative(loop, float(w))

    return misfit


def _relative(loop: Loop, w: float) -> Floats:
    """The real and the imaginary part of F(i w), divided by the sum of the sizes of F's terms."""
    f, _, size = characteristic(loop, 1j * w)
    relative = complex(f) / float(size)
    return np.array([relative.real, relative.imag])


def _crossing(make: Make, x: float, w: float, y: float) -> Crossing:
    """The ``Crossing`` at the parameters ``x`` and ``y`` with the roots i w and -i w.

    It is leading if a complete search found no root right of the imaginary axis. Rounding may put
    the roots i w and -i w there, but by less than the fraction ``RIGHT_OF_AXIS`` of w.
    """
    loop = make(float(x), float(y))
    if loop is None:
        return Crossing(float(x), float(y), float(w), residual=math.nan, leading=False)
    verdict = assess(loop)
    leading = verdict.complete and not np.any(verdict.roots.real > RIGHT_OF_AXIS * w)
    residual = float(np.hypot(*_relative(loop, float(w))))
    return Crossing(float(x), float(y), float(w), residual, bool(leading))
