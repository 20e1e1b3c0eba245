"""Stores the past of a delay differential equation: a polynomial for each step, and the breaks.

The polynomial gives the solution at any time within its step. A break is a time at which a
derivative of the solution jumps.
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


class Piece(NamedTuple):
    """The solution within one step as a polynomial (dense output of the Runge-Kutta method).

    At time t it is y_0 + h Q (x, x^2, x^3, x^4), with x = (t - t_0)/h.  The step begins at t_0 with
    the state y_0, and Q is a matrix of coefficients.  The step was made with length h, but it
    counts only up to ``end``, where an event may have ended it.
    """

    start: float
    h: float
    y: Floats
    Q: Floats
    end: float

    def __call__(self, t: float) -> Floats:
        """The step's polynomial at time t, which may also lie outside the step."""
        x = (t - self.start) / self.h
        value: Floats = self.y + self.h * x * (self.Q @ np.array([1.0, x, x * x, x * x * x]))
        return value


class NegativeDelayError(ValueError):
    """Delay number ``k`` is below 0, so it would need a future state."""

    def __init__(self, k: int, tau: float, t: float) -> None:
        super().__init__(f"delay {k} is {tau!r} at t = {t!r}: a delay is at least 0")
        self.k = k


class ForgottenError(ValueError):
    """Delay number ``k`` reaches beyond the past that is kept."""

    def __init__(self, k: int, tau: float, t: float) -> None:
        super().__init__(f"delay {k} is {tau!r} at t = {t!r}: longer than the past that is kept")
        self.k = k


class Memory:
    """The solution so far: the function before the start, the steps' polynomials, and the breaks.

    A break is a time at which a derivative of the solution jumps.  For each delay the class counts
    the breaks that the delayed time has passed.
    """

    def __init__(self, history: Past, start: float, order: int, lags: Sequence[Lag]) -> None:
        self.history, self.t0, self.lags = history, start, lags
        self.pieces: list[Piece] = []
        self.starts: list[float] = []
        self.breaks: list[tuple[float, int]] = [(start, order)]
        self.passed = [0] * len(lags)  # number of breaks that argument k has passed
        self.current: Piece | None = None  # the step that is being made
        self.used_current = False

    def add(self, piece: Piece, keep: float) -> None:
        """Append the polynomial of a step; drop those that are older than ``keep`` seconds."""
        self.pieces.append(piece)
        self.starts.append(piece.start)
        cut = bisect_left(self.starts, piece.end - keep) - 1
        if cut > 64:  # not every time: removal from a list's head costs its length
            del self.pieces[:cut], self.starts[:cut]

    def at(self, u: float, low: float = -math.inf, high: float = math.inf) -> Floats:
        """The state y(u), read from the polynomial between the breaks ``low`` and ``high``.

        A break is a time at which a derivative of the solution jumps.
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
        """The k-th delay in seconds; raises NegativeDelayError if it is below 0."""
        lag = self.lags[k]
        tau = float(lag(t, y, self.at) if callable(lag) else lag)
        if not tau >= 0:
            raise NegativeDelayError(k, tau, float(t))
        return tau

    def past(self, t: float, y: Floats) -> Floats:
        """The states at the times t - delay, as an array: a row per delay, a column per unknown."""
        z = np.empty((len(self.lags), y.size))
        for k in range(len(self.lags)):
            i = self.passed[k]
            low = self.breaks[i - 1][0] if i else -math.inf
            high = self.breaks[i][0] if i < len(self.breaks) else math.inf
            tau = self.delay(k, t, y)
            if self.pieces and self.t0 <= t - tau < self.starts[0]:
                raise ForgottenError(k, tau, float(t))
            # tau = 0 is the present, which may differ from the past's end where an event jumped
            z[k] = y if tau == 0.0 else self.at(t - tau, low, high)
        return z

    def next_break(self, k: int) -> tuple[float, int] | None:
        """The next break that the delayed time number k will reach: its time and its order.

        A break is a time at which a derivative of the solution jumps; its order is that of the
        derivative.
        """
        i = self.passed[k]
        return self.breaks[i] if i < len(self.breaks) else None

    def pass_now(self, t: float, y: Floats) -> None:
        """Count, for each delay, the breaks that the delayed time t - delay has reached at time t.

        A break is a time at which a derivative of the solution jumps.
        """
        for k in range(len(self.lags)):
            upcoming = self.next_break(k)
            while upcoming is not None and t - self.delay(k, t, y) >= upcoming[0] - rounding(t):
                self.passed[k] += 1
                upcoming = self.next_break(k)


def rounding(t: float) -> float:
    """The difference in seconds up to which two times near t count as equal."""
    return 1e-14 * max(1.0, abs(t))
