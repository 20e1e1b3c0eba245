"""Stores the past solution of a delay differential equation, for the integrator that solves it.

There is one polynomial for each step of the integrator. It gives the solution at any time within
the step. The times at which the solution or one of its derivatives jumps are stored, too; they are
called breaks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vegasmodel.metrics import Floats

Past = Callable[[float], Floats]  # y at an earlier time
Lag = float | Callable[[float, Floats, Past], float]  # seconds, or tau(t, y, past)


class Break(NamedTuple):
    """A time at which the solution jumps (order 0), or its n-th derivative (order n)."""

    time: float
    order: int


class Piece(NamedTuple):
    """The solution within one step as a polynomial (dense output of the Runge-Kutta method).

    At time t the solution is y_0 + h Q (x, x^2, x^3, x^4), with x = (t - t_0)/h.  The step begins
    at the time t_0 with the state y_0, and Q is a matrix of coefficients.  The length of the step
    was h, but the polynomial is used only up to the time ``end``, because an event may have ended
    the step early.
    """

    start: float
    h: float
    y: Floats
    Q: Floats
    end: float

    def __call__(self, t: float) -> Floats:
        """The value of the step's polynomial at time t, even if t lies outside the step."""
        x = (t - self.start) / self.h
        value: Floats = self.y + self.h * x * (self.Q @ np.array([1.0, x, x * x, x * x * x]))
        return value


class NegativeDelayError(ValueError):
    """The k-th delay of a delay differential equation is below 0, so it needs a future state."""

    def __init__(self, k: int, tau: float, t: float) -> None:
        super().__init__(f"delay {k} is {tau!r} at t = {t!r}: a delay is at least 0")
        self.k = k


class ForgottenError(ValueError):
    """The k-th delay of a delay differential equation reaches back to a state no longer stored."""

    def __init__(self, k: int, tau: float, t: float) -> None:
        super().__init__(f"delay {k} is {tau!r} at t = {t!r}: longer than the past that is kept")
        self.k = k


class Memory:
    """The solution of a delay differential equation so far.

    It consists of the states that were given for the time before the start, and of a polynomial for
    each step.  A break is a time at which the solution or one of its derivatives jumps.  The
    equation uses the solution at the present time t and at delayed times t - tau_k.  ``passed[k]``
    is the number of breaks at or before t - tau_k.
    """

    def __init__(self, history: Past, start: float, order: int, lags: Sequence[Lag]) -> None:
        """``order`` is the order of the break at the ``start``."""
        self.history, self.t0, self.lags = history, start, lags
        self.pieces: list[Piece] = []
        self.starts: list[float] = []
        self.breaks = [Break(start, order)]
        self.passed = [0] * len(lags)  # for each delay, the number of breaks passed by t - tau_k
        self.current: Piece | None = None  # a first result for the step that is being made
        self.used_current = False  # whether ``at`` has returned a state within this step

    def add(self, piece: Piece, keep: float) -> None:
        """Store the polynomial that gives the solution within one step.

        Polynomials of steps that ended more than ``keep`` seconds before the end of this step are
        no longer needed. They are deleted many at once.
        """
        self.pieces.append(piece)
        self.starts.append(piece.start)
        cut = bisect_left(self.starts, piece.end - keep) - 1
        if cut > 64:  # each deletion at the head of a list takes time, so deletions are seldom
            del self.pieces[:cut], self.starts[:cut]

    def at(self, u: float, low: float = -math.inf, high: float = math.inf) -> Floats:
        """The state y at the time u.

        Before the start, it is the state that was given for that time.  After the start, it comes
        from the polynomial of the step that contains u; this may be the step that is being made
        (``current``).

        ``low`` and ``high`` are two successive breaks: times at which the solution or one of its
        derivatives jumps.  Only the steps between these two breaks are used.  If u lies outside the
        interval, the polynomial of the step nearest to u is extrapolated to u.
        """
        inside = min(max(u, low), high)
        if inside < self.t0 or high <= self.t0:
            return np.asarray(self.history(min(u, self.t0)), dtype=np.float64)
        last = self.pieces[-1] if self.pieces else None
        if self.current is not None and (last is None or inside >= last.end) and high > inside:
            self.used_current = self.used_current or u > self.current.start
            return self.current(u)
        if last is None:
            return np.asarray(self.history(self.t0), dtype=np.float64)
        index = (bisect_left if inside == high else bisect_right)(self.starts, inside) - 1
        return self.pieces[max(index, 0)](u)

    def delay(self, k: int, t: float, y: Floats) -> float:
        """The k-th delay of the delay differential equation at time t and state y, in seconds.

        Raises ``NegativeDelayError`` if it is below 0.
        """
        lag = self.lags[k]
        tau = float(lag(t, y, self.at) if callable(lag) else lag)
        if not tau >= 0:
            raise NegativeDelayError(k, tau, float(t))
        return tau

    def past(self, t: float, y: Floats) -> Floats:
        """The delayed states y(t - delay): one row for each delay, a column for each unknown.

        A break is a time at which the solution or one of its derivatives jumps.  In a step of the
        integrator no delayed time may pass a break, because the step assumes a smooth past.  So
        each delayed time stays between two successive breaks, ``low`` and ``high``.  A step that is
        only tried may take it beyond ``high``.  ``at`` then extrapolates the solution from before.

        Raises ``ForgottenError`` if a state is no longer stored, and ``NegativeDelayError`` if a
        delay is below 0.
        """
        z = np.empty((len(self.lags), y.size))
        for k in range(len(self.lags)):
            i = self.passed[k]  # how many breaks the delayed time t - tau has passed
            low = self.breaks[i - 1].time if i else -math.inf
            high = self.breaks[i].time if i < len(self.breaks) else math.inf
            tau = self.delay(k, t, y)
            if self.pieces and self.t0 <= t - tau < self.starts[0]:
                raise ForgottenError(k, tau, float(t))
            # Without delay the present state y is needed.  An event may just have changed it, and
            # ``at`` would give the state before the event.
            z[k] = y if tau == 0.0 else self.at(t - tau, low, high)
        return z

    def next_break(self, k: int) -> Break | None:
        """The next break that t - tau_k will reach, where tau_k is the k-th delay; None if none.

        A break is a time at which the solution or one of its derivatives jumps.
        """
        i = self.passed[k]
        return self.breaks[i] if i < len(self.breaks) else None

    def pass_now(self, t: float, y: Floats) -> None:
        """Count for each delay tau_k how many breaks t - tau_k has passed at time t.

        A break is a time at which the solution or one of its derivatives jumps. The state at this
        time is ``y``.
        """
        for k in range(len(self.lags)):
            upcoming = self.next_break(k)
            while upcoming and t - self.delay(k, t, y) >= upcoming.time - rounding(t):
                self.passed[k] += 1
                upcoming = self.next_break(k)


def rounding(t: float) -> float:
    """The difference in seconds that rounding errors may cause between two equal times near t."""
    return 1e-14 * max(1.0, abs(t))
