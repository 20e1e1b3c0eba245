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
MAX_TURN = 0.7  # radians that the function may turn from a point of the contour to the next
MAX_CONTOUR_POINTS = 400_000  # points of a contour


class Function(NamedTuple):
    """A function of a complex variable in 1/s, whose roots are wanted, and what is known of it.

    The function is real on the real axis, and has a pole at 0.

    - ``evaluate``: returns its value, its derivative, and the sum of the sizes of its terms.
    - ``imaginary_poles``: returns its poles on the positive imaginary axis below a frequency, 1/s.
    - ``real_poles``: its negative real poles, 1/s.
    - ``longest_delay``: the longest delay in it, s, which sets the scale of the search.
    """

    evaluate: Callable[[Complex], tuple[Complex, Complex, Floats]]
    imaginary_poles: Callable[[float], Floats]
    real_poles: Floats
    longest_delay: float


def count(function: Function, left: float, right: float, top: float) -> int | None:
    """The number of roots in a rectangle of the complex plane.

    It is computed by the argument principle. In the rectangle the real parts lie in ``left`` ..
    ``right``, and the imaginary parts in -``top`` .. ``top``. The result is None if the angle of
    the function's value changes too fast along the border to be followed.
    """
    corners = [right, right + 1j * top, left + 1j * top, left]
    turned = 0.0  # radians, along the border of the rectangle's upper half
    for start, end in itertools.pairwise(corners):
        part = _angle_change(function, start, end, abs(left))
        if part is None:
            return None
        turned += part
    # The lower half is the mirror image, so the whole border turns the angle by 2 ``turned``.
    winding = round(turned / np.pi)
    if abs(turned / np.pi - winding) > 0.1:  # not a whole number of turns: the angle was lost
        return None
    real = int((function.real_poles > left).sum())
    # as many roots as turns plus poles; 1 is the pole at 0
    return winding + 1 + 2 * function.imaginary_poles(top).size + real


def _angle_change(function: Function, start: complex, end: complex, apart: float) -> float | None:
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
    fraction = np.linspace(0.0, 1.0, int(min(max(256.0, first), MAX_CONTOUR_POINTS / 2)) + 1)
    f = function.evaluate(np.asarray(start + fraction * (end - start), complex))[0]
    # each time, intervals with a fast change are halved; limited, in case the change stays fast
    for _ in range(40):
        step = np.angle(f[1:] / f[:-1])
        fast = np.flatnonzero(~(np.abs(step) < MAX_TURN))
        if fast.size == 0:
            return float(step.sum())
        if fraction.size > MAX_CONTOUR_POINTS:
            return None
        between = 0.5 * (fraction[fast] + fraction[fast + 1])
        new = function.evaluate(np.asarray(start + between * (end - start), complex))[0]
        fraction, f = np.insert(fraction, fast + 1, between), np.insert(f, fast + 1, new)
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
    # distance of two points of the grid, in 1/s as all these numbers: with the longest delay d, the
    # factor exp(-z d) turns by an eighth of a full turn from a point to the next
    step = 0.25 * math.pi / function.longest_delay
    # the ends of the intervals between poles; ``top`` ends the last one
    poles = np.concatenate([[0.0], function.imaginary_poles(top), [top]])
    intervals = np.diff(poles)[:, None]
    found = np.empty(0, np.complex128)
    for refinement in (1, 2, 4, 8):
        # points between neighbouring poles, on the imaginary axis and beside it
        part = (np.arange(2 * refinement) + 0.5) / (2 * refinement)
        imag = poles[:-1, None] + part * intervals
        aside = intervals * np.linspace(-0.5, 0.5, 2 * refinement + 1)
        between_poles = aside[:, :, None] + 1j * imag[:, None, :]
        # points near the real axis
        real = np.linspace(left, right, 8 * refinement)
        low = np.concatenate([[0.0], np.geomspace(1e-4 * step, step, 8 * refinement)])
        near_real_axis = real[:, None] + 1j * low
        # a grid over the rectangle
        grid = real[:, None] + 1j * np.arange(step, top, step)
        # the method also starts from the roots that the coarser grid has given
        starts = [between_poles.ravel(), near_real_axis.ravel(), grid.ravel(), found]
        end_points = _newton(function, np.concatenate(starts), (left, right, top))
        found = _distinct(function, end_points, left, right, top)
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
    longest = function.longest_delay
    # the poles on the imaginary axis, and two at infinity, so that each point has two on each side
    positive_poles = function.imaginary_poles(1.5 * top)
    infinite = np.full(2, math.inf)
    poles = np.concatenate([-infinite, -positive_poles[::-1], [0.0], positive_poles, infinite])
    end_points = [np.empty(0, np.complex128)]
    for _ in range(40):  # limited, because some points do not converge
        f, slope, _ = function.evaluate(z)
        nearest = np.searchsorted(poles, z.imag)[:, None] + np.arange(-2, 2)  # of each point z
        with np.errstate(all="ignore"):
            # The derivative of f prod (z - p), divided by this product, is f'/f + sum 1/(z - p).
            z_minus_p = z.real[:, None] + 1j * (z.imag[:, None] - poles[nearest])
            z_minus_p = np.hstack([z_minus_p, z[:, None] - function.real_poles])
            step = 1.0 / (slope / f + np.sum(1.0 / z_minus_p, axis=1))
            size, longest_step = np.abs(step), 0.5 * (np.abs(z) + 1.0 / longest)
            z = z - np.where(size > longest_step, step * longest_step / size, step)
        converged = size <= 1e-13 * np.abs(z)
        end_points.append(z[converged])
        inside = (z.real > 4.0 * left) & (z.real < 4.0 * right) & (np.abs(z.imag) < 1.2 * top)
        z = z[inside & ~converged]
        if z.size == 0:
            break
    return np.concatenate([*end_points, z])


def _distinct(function: Function, z: Complex, left: float, right: float, top: float) -> Complex:
    """The roots of the function among the points ``z``, each once.

    Only roots with a real part in ``left`` .. ``right`` and an imaginary part below ``top`` are
    returned, those with the largest real part first. Of two conjugate roots, the one with the
    positive imaginary part is returned.
    """
    f, _, size = function.evaluate(z)
    with np.errstate(invalid="ignore"):
        z = z[np.abs(f) <= TOLERANCE * size]  # the roots
    z = np.where(z.imag < 0, z.conj(), z)
    real_below = 1e-7 / function.longest_delay  # a root nearer to the real axis is real
    z = np.where(z.imag < real_below, z.real + 0j, z)
    z = z[(z.real > left) & (z.real <= right) & (z.imag < top)]
    z = z[np.argsort(z.imag, kind="stable")]
    # The points are divided where two neighbours by imaginary part are so far apart that they
    # cannot be the same root. So only points of one part need be compared, which saves time.
    separate = 10 * real_below + 1e-7 * np.abs(z).max(initial=0.0)
    gaps = np.flatnonzero(np.diff(z.imag) > separate) + 1
    distinct: list[complex] = []
    longest = function.longest_delay

    def key(root: complex) -> tuple[float, float]:
        """For the order of the result: falling real part, then rising imaginary part."""
        return -round(root.real * longest, 9), root.imag

    for begin, end in itertools.pairwise([0, *gaps, z.size]):
        group: list[complex] = []
        for root in sorted(z[begin:end].tolist(), key=key):
            if all(abs(root - other) > 10 * real_below + 1e-7 * abs(root) for other in group):
                group.append(root)
        distinct += group
    return np.array(sorted(distinct, key=key), dtype=np.complex128)


def with_conjugates(found: Complex) -> int:
    """The number of the roots ``found`` and of their conjugates, which ``found`` leaves out."""
    return 2 * int((found.imag > 0).sum()) + int((found.imag == 0).sum())
