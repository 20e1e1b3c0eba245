"""Finds the roots of a complex function in a rectangle of the complex plane.

Newton's method finds the roots. It starts from each point of a grid. The argument principle tells
how many roots there are, so it shows whether some are missing. ``stability.py`` uses this module to
find the roots of a characteristic function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats

__all__ = ["TOLERANCE", "Complex", "Function", "count", "search", "with_conjugates"]

Complex = NDArray[np.complex128]
TOLERANCE = 1e-10  # greatest |f| at a root, divided by the sum of the sizes of f's terms
TURN = 0.7  # radians that the function may turn from a point of the contour to the next
MAX_CONTOUR_POINTS = 400_000  # points of a contour


class Function(NamedTuple):
    """A function of a complex variable in 1/s, whose roots are wanted, and what is known of it.

    The function is real on the real axis, and has a pole at 0.

    - ``at``: returns the function's value, its derivative, and the sum of the sizes of its terms.
    - ``axis``: returns its poles on the positive imaginary axis below a frequency, 1/s.
    - ``real``: its negative real poles, 1/s.
    - ``longest``: the longest delay in it, s, which sets the scale of the search.
    """

    at: Callable[[Complex], tuple[Complex, Complex, Floats]]
    axis: Callable[[float], Floats]
    real: Floats
    longest: float


def count(function: Function, left: float, right: float, top: float) -> int | None:
    """The number of roots in a rectangle of the complex plane.

    It is computed by the argument principle. In the rectangle the real parts lie in ``left`` ..
    ``right``, and the imaginary parts in -``top`` .. ``top``. The result is None if the angle of
    the function's value changes too fast along the border to be followed.
    """
    corners = [right, right + 1j * top, left + 1j * top, left]
    turned = 0.0  # radians, along the border of the rectangle's upper half
    for start, end in itertools.pairwise(corners):
        part = _turn(function, start, end, abs(left))
        if part is None:
            return None
        turned += part
    # The lower half is the mirror image, so the whole border turns the angle by 2 ``turned``.
    winding = round(turned / np.pi)
    if abs(turned / np.pi - winding) > 0.1:
        return None
    real = int((function.real > left).sum())
    # as many roots as turns plus poles; 1 is the pole at 0
    return winding + 1 + 2 * function.axis(top).size + real


def _turn(function: Function, start: complex, end: complex, apart: float) -> float | None:
    """The total change of the angle of the function's value, in radians, along a straight line.

    ``count`` adds these changes around a rectangle, which gives the number of roots in it. The
    line goes from ``start`` to ``end`` in the complex plane. Where the angle changes fast, the
    function is evaluated at more points. The result is None if it changes too fast to be followed.

    The function has poles on the imaginary axis. ``apart`` is the distance of the rectangle's left
    side from this axis. The first points of a line are nearer to one another than ``apart``.
    Otherwise the angle could make a full turn between two points near a pole, which would not be
    noticed.
    """
    first = 4.0 * abs(end - start) / apart  # number of the first points, if it is not extreme
    at = np.linspace(0.0, 1.0, int(min(max(256.0, first), MAX_CONTOUR_POINTS / 2)) + 1)
    f = function.at(np.asarray(start + at * (end - start), complex))[0]
    for _ in range(40):
        step = np.angle(f[1:] / f[:-1])
        fast = np.flatnonzero(~(np.abs(step) < TURN))
        if fast.size == 0:
            return float(step.sum())
        if at.size > MAX_CONTOUR_POINTS:
            return None
        between = 0.5 * (at[fast] + at[fast + 1])
        new = function.at(np.asarray(start + between * (end - start), complex))[0]
        at, f = np.insert(at, fast + 1, between), np.insert(f, fast + 1, new)
    return None


def search(
    function: Function, left: float, right: float, top: float, wanted: int | None
) -> Complex:
    """The roots in a rectangle of the complex plane, in order of falling real part.

    The real parts lie in ``left`` .. ``right``, the imaginary parts below ``top``. Of two conjugate
    roots only one is returned. Newton's method starts from each point of a grid. The grid is
    refined until ``wanted`` roots are found (conjugates counted), but at most three times. Many
    roots lie between the function's poles on the imaginary axis, so there the grid has more points.
    """
    step = 0.25 * math.pi / function.longest  # between two points of the grid; 1/s, as all these
    poles = np.concatenate([[0.0], function.axis(top), [top]])  # and ``top``, the last point
    found = np.empty(0, np.complex128)
    for refinement in (1, 2, 4, 8):
        # roots lie between poles, however near to each other these are
        part = (np.arange(2 * refinement) + 0.5) / (2 * refinement)
        width = np.diff(poles)[:, None]
        between = poles[:-1, None] + part * width  # imaginary parts
        aside = width * np.linspace(-0.5, 0.5, 2 * refinement + 1)  # real parts beside the axis
        real = np.linspace(left, right, 8 * refinement)
        imag = np.concatenate([[0.0], np.geomspace(1e-4 * step, step, 8 * refinement)])
        # points between the poles; points near the real axis; a grid over the rectangle; the roots
        # that a coarser grid has given
        starts = [
            (aside[:, :, None] + 1j * between[:, None, :]).ravel(),
            (real[:, None] + 1j * imag).ravel(),
            (real[:, None] + 1j * np.arange(step, top, step)).ravel(),
            found,
        ]
        found = _distinct(
            function,
            _newton(function, np.concatenate(starts), (left, right, top)),
            left,
            right,
            top,
        )
        if wanted is None or with_conjugates(found) == wanted:
            break
    return found


def _newton(function: Function, z: Complex, box: tuple[float, float, float]) -> Complex:
    """The points at which Newton's method ends, for the starting points ``z`` in the complex plane.

    The method looks for roots of the function. A starting point is dropped if the method goes from
    it to a point far outside the rectangle ``box``, which is (left, right, top).

    A root may be very close to a pole of the function. Newton's method would find such a root only
    from nearby. So each step is computed for the product of the function and all factors (z - p),
    where p are the nearest poles. This product has the same roots, but no pole nearby.
    """
    left, right, top = box
    longest = function.longest
    above = function.axis(1.5 * top)
    far = np.full(2, math.inf)
    poles = np.concatenate([-far, -above[::-1], [0.0], above, far])  # on the imaginary axis
    ends = [np.empty(0, np.complex128)]
    for _ in range(40):
        f, slope, _ = function.at(z)
        near = np.searchsorted(poles, z.imag)[:, None] + np.arange(-2, 2)  # two on either side
        with np.errstate(all="ignore"):
            # The derivative of f prod (z - p), divided by this product, is f'/f + sum 1/(z - p).
            away = z.real[:, None] + 1j * (z.imag[:, None] - poles[near])
            away = np.hstack([away, z[:, None] - function.real])
            step = 1.0 / (slope / f + np.sum(1.0 / away, axis=1))
            size, cap = np.abs(step), 0.5 * (np.abs(z) + 1.0 / longest)
            z = z - np.where(size > cap, step * cap / size, step)
        converged = size <= 1e-13 * np.abs(z)
        ends.append(z[converged])
        inside = (z.real > 4.0 * left) & (z.real < 4.0 * right) & (np.abs(z.imag) < 1.2 * top)
        z = z[inside & ~converged]
        if z.size == 0:
            break
    return np.concatenate([*ends, z])


def _distinct(function: Function, z: Complex, left: float, right: float, top: float) -> Complex:
    """The roots of the function among the points ``z``, each once.

    Only roots with a real part in ``left`` .. ``right`` and an imaginary part below ``top`` are
    returned, those with the largest real part first. Of two conjugate roots, the one with the
    positive imaginary part is returned.
    """
    f, _, size = function.at(z)
    with np.errstate(invalid="ignore"):
        z = z[np.abs(f) <= TOLERANCE * size]  # the roots
    z = np.where(z.imag < 0, z.conj(), z)
    near = 1e-7 / function.longest  # a root nearer to the real axis is real
    z = np.where(z.imag < near, z.real + 0j, z)
    z = z[(z.real > left) & (z.real <= right) & (z.imag < top)]
    z = z[np.argsort(z.imag, kind="stable")]
    # The points are divided where two neighbours by imaginary part are so far apart that they
    # cannot be the same root. So only points of one part need be compared, which saves time.
    apart = 10 * near + 1e-7 * np.abs(z).max(initial=0.0)
    gaps = np.flatnonzero(np.diff(z.imag) > apart) + 1
    kept: list[complex] = []
    longest = function.longest

    def key(root: complex) -> tuple[float, float]:
        """For the order of the result: falling real part, then rising imaginary part."""
        return -round(root.real * longest, 9), root.imag

    for begin, end in itertools.pairwise([0, *gaps, z.size]):
        part: list[complex] = []
        for one in sorted(z[begin:end].tolist(), key=key):
            if all(abs(one - other) > 10 * near + 1e-7 * abs(one) for other in part):
                part.append(one)
        kept += part
    return np.array(sorted(kept, key=key), dtype=np.complex128)


def with_conjugates(found: Complex) -> int:
    """The number of the roots ``found`` and of their conjugates, which ``found`` leaves out."""
    return 2 * int((found.imag > 0).sum()) + int((found.imag == 0).sum())
