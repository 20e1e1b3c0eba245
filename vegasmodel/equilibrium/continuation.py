"""Follows a curve of solutions as a parameter varies, past the folds where the curve turns back.

The modules ``hopf`` and ``minicycle_folds`` use this module. The n equations F(x, p) = 0 in n
unknowns x and one parameter p define curves. A branch is a part of such a curve. The method is
pseudo-arclength continuation (Keller 1977). It makes a step along the tangent of the branch. Then
Newton's method returns to the branch, within the plane perpendicular to the tangent. Neither the
step nor Newton's method keeps p fixed, so p may first rise and then fall.

A fold is a point at which p turns back: the tangent's component along p changes its sign. Brent's
method finds this point. It also finds a fold at a corner of the branch, where the tangent jumps
because the derivatives of F jump.

There is one limitation. Suppose that the tangent turns by more than a right angle at a corner. Then
the curve beyond the corner does not meet the plane in which Newton's method searches, however short
the step is. So Newton's method may find no next point. The result then ends at the corner, with the
status ``LOST``. (The angle is measured after x and p have been divided by the argument ``scale``.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vegasmodel.equilibrium._checks import count, floats, numbers, positive, same_size
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

__all__ = ["Branch", "Fold", "follow"]

Equations = Callable[[Floats, float], Floats]  # x [n], p -> F [n], whose values are of order 1
Slopes = Callable[[Floats, float], Floats]  # x [n], p -> [n, n + 1]: by x, then by p

MAX_RESIDUAL = 1e-12  # greatest |F| of a point that counts as a solution
DIFFERENCE = 1e-6  # step of finite differences if no slopes are given, as a fraction of ``scale``
MAX_POINTS = 1_000_000  # greatest number of points of a branch
NEWTON_STEPS = 12  # most steps of Newton's method
SHORTEST_STEP = 1e-10  # shortest step, as a fraction of the longest


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold: a point at which a branch of solutions turns back.

    The branch is a curve of solutions of F(x, parameter) = 0 (see ``follow``). Along the curve the
    parameter rises up to the fold and then falls, or the other way round.
    """

    x: Floats  # [n] the solution there
    parameter: float
    residual: float  # greatest |F| there
    greatest: bool  # the parameter is greatest here, on this stretch; else least


@dataclass(frozen=True, eq=False)
class Branch:
    """One branch: a connected part of the curve on which F(x, parameter) = 0 (see ``follow``).

    The curve is given by points, in the order in which they lie along it.
    """

    x: Floats  # [point, n]
    parameter: Floats  # [point]
    residual: Floats  # [point] greatest |F|
    rising: npt.NDArray[np.bool_]  # [point] the parameter rises along the branch here
    folds: tuple[Fold, ...]
    status: Status  # LEFT_RANGE, POINTS_USED_UP, or LOST: no next point was found


@kinds.checked
def follow(
    equations: Equations,
    x: npt.ArrayLike,
    parameter: float,
    ends: tuple[float, float],
    *,
    slopes: Slopes | None = None,
    scale: npt.ArrayLike = 1.0,
    step: float = 0.05,
    rising: bool = True,
    most: int = 10_000,
    within: Callable[[Floats], bool] | None = None,
) -> Branch:
    """Follow a branch of solutions of ``equations``, from a solution near ``x`` at ``parameter``.

    ``equations(x, p)`` returns n values for n unknowns x and the parameter p. At a solution all
    values are 0. They should be of order 1, and NaN where they are not defined. ``slopes(x, p)``
    returns their derivatives, [n, n + 1]: with respect to x, then with respect to p. Without
    ``slopes`` the derivatives are finite differences.

    ``rising`` says whether the parameter rises at the beginning of the branch. The branch ends in
    one of three ways:

    - At a new point the parameter is outside the interval ``ends``, or ``within(x)`` is false. This
      point is the last one.
    - The branch has ``most`` points.
    - No next point is found.

    ``step`` is the greatest length of a step. ``scale`` [n + 1] holds the units in which lengths
    are measured: one for each unknown, and the last for the parameter. If ``scale`` is one number,
    it is the unit of every unknown, and the parameter's unit is the length of ``ends``.

    Raises ``FieldError`` if ``parameter`` is outside ``ends``, and ``ValueError`` if no solution is
    found near ``x`` at ``parameter``.
    """
    guess = np.atleast_1d(numbers("x", x, -math.inf))
    same_size(x=guess)
    n, (low, high) = guess.size, ends
    positive("step", step)
    count("most", most, 1, MAX_POINTS)
    if np.shape(scale) not in ((), (n + 1,)):
        raise FieldError("scale", f"shape {np.shape(scale)}", f"one number, or {n + 1} of them")
    if not low < high:
        raise FieldError("ends", ends, "two growing numbers")
    if not low <= parameter <= high:
        raise FieldError("parameter", parameter, f"from {low} to {high}, the ends")
    unit = np.array(np.broadcast_to(positive("scale", scale), n + 1))
    if np.ndim(scale) == 0:
        unit[-1] = high - low
    curve = _Curve(equations, slopes, unit)
    _expect_shapes(equations, slopes, guess, parameter)
    # in the direction ``upright`` only the parameter rises; perpendicular to it, it is constant
    upright = np.append(np.zeros(n), 1.0)
    u = curve.in_plane(np.append(guess, parameter) / unit, upright)
    if u is None:
        raise ValueError(f"no solution is found near {guess.tolist()} at {parameter}")
    tangent = curve.tangent(u, upright if rising else -upright)

    def inside(u: Floats) -> bool:
        """Whether the branch goes on beyond the point ``u``, which is in the scaled variables."""
        v = u * unit
        return bool(low <= v[-1] <= high) and (within is None or within(v[:-1]))

    points, tangents, folds, status = curve.walk(u, tangent, step, most, inside)
    unscaled = np.array(points) * unit
    return Branch(
        unscaled[:, :-1], unscaled[:, -1], np.array([curve.residual(u) for u in points]),
        np.array([t[-1] > 0 for t in tangents]), tuple(folds), status,
    )  # fmt: skip


def _expect_shapes(
    equations: Equations, slopes: Slopes | None, x: Floats, parameter: float
) -> None:
    """Raise ``FieldError`` unless ``equations`` returns n values, and ``slopes`` [n, n + 1]."""
    n = x.size
    shape = floats("equations", equations(x, parameter)).shape
    if shape != (n,) and (n > 1 or shape != ()):
        raise FieldError("equations", f"shape {shape}", f"a function of {n} values")
    if slopes is not None:
        shape = floats("slopes", slopes(x, parameter)).shape
        if shape != (n, n + 1):
            raise FieldError("slopes", f"shape {shape}", f"a function of [{n}, {n + 1}] values")


class _Curve:
    """The curve of solutions of F(x, p) = 0, for n unknowns x and a parameter p.

    The methods use the scaled variables u: the n unknowns and then p, each divided by its entry in
    ``unit``.
    """

    def __init__(self, equations: Equations, slopes: Slopes | None, unit: Floats) -> None:
        self.equations, self.user_slopes, self.unit = equations, slopes, unit

    def equations_at(self, u: Floats) -> Floats:
        """F at the point ``u``, [n]."""
        v = u * self.unit
        return np.atleast_1d(np.asarray(self.equations(v[:-1], float(v[-1])), dtype=np.float64))

    def residual(self, u: Floats) -> float:
        """The greatest |F| at the point ``u``."""
        return float(np.abs(self.equations_at(u)).max())

    def slopes(self, u: Floats) -> Floats:
        """The Jacobian dF/du, [n, n + 1]: n equations F, n + 1 scaled variables u."""
        if self.user_slopes is not None:
            v = u * self.unit
            return np.asarray(self.user_slopes(v[:-1], float(v[-1])), dtype=float) * self.unit
        nudges = DIFFERENCE * np.eye(u.size)
        return np.stack(
            [
                (self.equations_at(u + e) - self.equations_at(u - e)) / (2.0 * DIFFERENCE)
                for e in nudges
            ],
            axis=-1,
        )

    def walk(
        self, u: Floats, tangent: Floats, step: float, most: int, inside: Callable[[Floats], bool]
    ) -> tuple[list[Floats], list[Floats], list[Fold], Status]:
        """Follow the curve from the point ``u`` in the direction ``tangent``.

        The walk ends at the first point for which ``inside`` is false, or after ``most`` points.
        Steps are at most ``step`` long. Returns the points, the tangents there, the folds, and how
        the walk ended.

        A fold is a point at which the parameter p stops rising and begins to fall, or the other way
        round. If p, the last component of a point, rises at one end of a step and falls at the
        other, there is a fold in the step. A step is halved if the next point is not found, or if
        its fold is not found.
        """
        points, tangents, folds = [u], [tangent], list[Fold]()
        length = step
        while len(points) < most:
            found = self.in_plane(u + length * tangent, tangent)
            new_tangent = None if found is None else self.tangent(found, tangent)
            turns_back = new_tangent is not None and tangent[-1] * new_tangent[-1] < 0.0
            fold = self.fold(u, tangent, length) if turns_back else None
            if (
                found is None
                or new_tangent is None
                or np.isnan(new_tangent).any()
                or (turns_back and fold is None)
            ):
                length *= 0.5
                if length < SHORTEST_STEP * step:
                    return points, tangents, folds, Status.LOST
                continue
            if fold is not None:
                folds.append(fold)
            u, tangent = found, new_tangent
            points.append(u)
            tangents.append(tangent)
            if not inside(u):
                return points, tangents, folds, Status.LEFT_RANGE
            length = min(step, 1.5 * length)  # after a failure it was shorter than ``step``
        return points, tangents, folds, Status.POINTS_USED_UP

    def in_plane(self, guess: Floats, across: Floats) -> Floats | None:
        """The point at which the curve of solutions crosses a plane, or None if none is found.

        The plane goes through the point ``guess``, and the vector ``across`` is perpendicular to
        the plane. Newton's method starts at ``guess``. To find the next point of the curve, the
        caller makes the plane perpendicular to the tangent. The parameter p is then not fixed, so
        the point is found even near a fold, where p turns back.
        """
        u = guess
        for _ in range(NEWTON_STEPS):
            # n + 1 equations for the n + 1 scaled variables: F = 0, and u lies in the plane
            misfit = np.append(self.equations_at(u), across @ (u - guess))
            if not np.all(np.isfinite(misfit)):
                return None
            if np.abs(misfit).max() <= MAX_RESIDUAL:
                return u
            try:
                u = u - np.linalg.solve(np.vstack([self.slopes(u), across]), misfit)
            except np.linalg.LinAlgError:
                return None
        return None

    def tangent(self, u: Floats, along: Floats) -> Floats:
        """The unit tangent of the curve at u; of its two directions, the one nearer to ``along``.

        It is NaN if F has no finite derivatives at u.
        """
        slopes = self.slopes(u)
        if not np.all(np.isfinite(slopes)):
            return np.full(u.size, np.nan)
        # the direction in which F does not change, the null vector of its derivatives
        _, _, directions = np.linalg.svd(slopes)
        direction = directions[-1]
        return np.asarray(math.copysign(1.0, direction @ along) * direction)

    def fold(self, u: Floats, tangent: Floats, length: float) -> Fold | None:
        """The fold within one step along the curve: there the parameter p is greatest or least.

        The step starts at the point ``u`` and goes the distance ``length`` in the direction
        ``tangent``. At the fold p stops rising and begins to fall, or the other way round. So the
        tangent's component along p changes its sign there. The result is None if Brent's method
        cannot find this change: a point of the curve is not found on the way, or the component has
        the same sign at both ends of the step.
        """
        from scipy.optimize import brentq

        latest = u  # the point of the curve that was computed last; in the end the fold

        def rise_of_p(distance: float) -> float:
            """The tangent's component along p, ``distance`` from the start; 0 at the fold."""
            nonlocal latest
            point = self.in_plane(u + distance * tangent, tangent)
            if point is None:
                return math.nan
            latest = point
            return float(self.tangent(point, tangent)[-1])

        try:
            brentq(rise_of_p, 0.0, length, xtol=1e-15, rtol=1e-14, maxiter=200)
        except ValueError:  # ``rise_of_p`` is NaN, or has one sign at both ends
            return None
        v = latest * self.unit
        greatest = bool(tangent[-1] > 0)  # p rises up to the fold, and then falls
        return Fold(v[:-1], float(v[-1]), self.residual(latest), greatest)
