"""Solves delay differential equations; delays may depend on the state, events may change the state.

    y'(t) = f(t, y(t), z),   z_k = y(t - tau_k(t, y(t))),   y(t) = phi(t) for t <= t_0

Here y is the state, tau_k is the k-th delay, and phi is the given past before the start t_0. The
method is the Runge-Kutta pair 5(4) of Dormand and Prince. For each step it also yields a polynomial
(the dense output), which gives the solution at any time in the step. The past values z_k are
computed from these polynomials.

The method was made for equations without delays and events. So the integrator adds four things:

* Breaks: a break of order n is a time at which the n-th derivative of the solution jumps. At a
  break of order 0 the solution itself jumps. The start is a break, and so is each event. If the
  delayed time t - tau_k passes a break of order n, then t is a break of order n + 1. A step ends
  when a delayed time passes a break of order 5 or less. Breaks of higher orders are ignored, as
  they do not make a method of order 5 less accurate.
* Short delays: if a delay is shorter than the step, f needs the solution inside the step. The step
  is then computed repeatedly, each time from its previous result, until it converges. If a delay
  becomes negative in this iteration, a shorter step is tried. If the delay is negative in the
  shortest possible step, too, the run ends, and its status says so.
* Events: an event occurs when a given function of time and state crosses 0. The function is
  evaluated at several points of each step. If its sign changes between two points, Brent's method
  finds the time of the event. An event may change the state.
* Memory: with the argument ``keep`` the integrator stores only the last ``keep`` seconds of the
  solution. No delay may be longer.

The integrator is general: it contains nothing about networks.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.integrate import RK45
from scipy.optimize import brentq

from vegasmodel.engines.delayed.past import (
    Break,
    ForgottenError,
    Lag,
    Memory,
    NegativeDelayError,
    Past,
    Piece,
    rounding,
)
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError, exactly
from vegasmodel.metrics import Floats

Right = Callable[[float, Floats, Floats], Floats]  # f(t, y [n], z [lag, n]) -> [n]

# Coefficients of Dormand and Prince's method, from SciPy: A, B and C of its stages, E of its error
# estimate, and P of Shampine's dense output
A, B, C, E, P = (np.asarray(getattr(RK45, name), dtype=np.float64) for name in "ABCEP")
ORDER = 5  # of the Runge-Kutta method; breaks of a higher order are ignored
SUBSAMPLES = 8  # parts of a step; an event is sought by its sign at the ends of each part
ITERATIONS = 12  # how often a step longer than a delay is computed, at most
AFTER = 1e-3  # part of a step after which an event that occurred at its start can occur again


@kinds.checked
@dataclass(frozen=True)
class Event:
    """An event of the integration: it occurs when ``function(t, y)`` crosses 0.

    With ``direction`` 1 only a rising function counts, with -1 only a falling one, and with 0 both.
    When the event occurs, the integrator calls ``action(t, y)``, and continues with the state that
    this function returns.  With ``terminal`` the event ends the integration.
    """

    function: Callable[[float, Floats], float]
    direction: int = 0
    action: Callable[[float, Floats], Floats] | None = None
    terminal: bool = False


class Occurrence(NamedTuple):
    """An event that occurred: time, index in the list of events, state before its action."""

    time: float
    event: int
    state: Floats


class _Crossing(NamedTuple):
    """Where in a step a delayed time first reaches a break: seconds after the step's start."""

    after: float
    order: int  # of the break


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution that ``integrate`` returns; it can be called as a function of time.

    Called with a time, or with an array of times, it returns the state y at each time.  With the
    argument ``keep`` of ``integrate``, only the last part of the solution is stored.
    """

    time: Floats  # [step] ends of the steps, t_0 first
    state: Floats  # [step, n]; after the action where an event moved the state
    sample: Floats  # [grid, n] at the times asked for; NaN where not reached
    events: tuple[Occurrence, ...]  # in the order of time
    breaks: tuple[Break, ...]  # the times at which the solution or a derivative of it jumps
    status: str  # "done", "event", or why it stopped early
    rejected: int  # number of steps that were tried again, shorter, because of their error
    _pieces: list[Piece] = field(repr=False)

    @property
    def success(self) -> bool:
        """Whether the integration reached the end of its time span or an event that ends it."""
        return self.status in ("done", "event")

    def __call__(self, t: float | Floats) -> Floats:
        """The state y at a time t, or at each time of an array t.

        Raises ``FieldError`` if t lies outside the time for which the solution is kept.
        """
        starts = [piece.start for piece in self._pieces]
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        if times.size and not starts[0] <= times.min() <= times.max() <= self._pieces[-1].end:
            low, high = exactly(starts[0]), exactly(self._pieces[-1].end)
            allowed = f"from {low} to {high}, where a solution is kept"
            raise FieldError("t", t, allowed)
        values = np.array([self._pieces[max(bisect_right(starts, u) - 1, 0)](u) for u in times])
        return values if np.ndim(t) else values[0]


class _Stepper:
    """Makes single Runge-Kutta steps of the delay equation, and estimates their errors.

    If a delay is shorter than the step, the equation needs the solution within the step itself.
    The step is then computed repeatedly, each time from its previous result, until it converges.
    """

    def __init__(self, f: Right, memory: Memory, rtol: float, atol: float | Floats) -> None:
        self.f, self.memory, self.rtol, self.atol = f, memory, rtol, atol

    def slope(self, t: float, y: Floats) -> Floats:
        """The derivative y' at time t and state y; the delayed states come from ``memory``."""
        return np.asarray(self.f(t, y, self.memory.past(t, y)), dtype=np.float64)

    def norm(self, x: Floats, y: Floats, new: Floats) -> float:
        """The root mean square of x / tolerance over the unknowns; 1 is the greatest error allowed.

        The tolerance of an unknown depends on its values in the states y and ``new``.
        """
        scale = self.atol + self.rtol * np.maximum(np.abs(y), np.abs(new))
        return float(np.sqrt(np.mean((x / scale) ** 2)))

    def attempt(self, t: float, y: Floats, h: float) -> tuple[Piece, Floats, float]:
        """Try one step of length h from time t and state y.

        Returns a polynomial that gives the solution within the step, the state at the end of the
        step, and the error divided by the tolerance.  If a delay is shorter than h, the step is
        computed repeatedly; the error is infinite if this does not converge.
        """
        memory = self.memory
        memory.current, memory.used_current = None, False
        # the slopes y' at the stages of Dormand and Prince's method; A to E and P are its
        # coefficients
        K = np.empty((7, y.size))
        K[0] = self.slope(t, y)
        # a straight line stands for the solution within the step until the first result
        guess = np.zeros((y.size, 4))
        guess[:, 0] = K[0]
        memory.current = Piece(t, h, y, guess, t + h)
        old: Floats | None = None
        try:
            for _ in range(ITERATIONS):  # one pass, unless a delay is shorter than the step
                for s in range(1, 6):
                    K[s] = self.slope(t + C[s] * h, y + h * (A[s, :s] @ K[:s]))
                new = y + h * (B @ K[:6])
                K[6] = self.slope(t + h, new)
                piece = Piece(t, h, y, K.T @ P, t + h)
                error = self.norm(h * (E @ K), y, new)
                if not memory.used_current or not math.isfinite(error):
                    return piece, new, error
                # The result depends on the solution within the step. It has converged if it changes
                # by less than a thousandth of the tolerance.
                if old is not None and self.norm(new - old, y, new) <= 1e-3:
                    return piece, new, error
                old, memory.current = new, piece
            return piece, new, math.inf
        finally:
            memory.current = None

    def first_step(self, t: float, y: Floats, span: float) -> float:
        """The length of a first step, in which y would change by 1 % at its present rate of change.

        ``span`` is the time left, and the step is at most that long.  If y or its derivative is
        nearly 0, the length is a thousandth of ``span``.
        """
        slope = self.slope(t, y)
        if slope.shape != y.shape:
            raise FieldError("f", f"shape {slope.shape}", f"a function of {y.size} derivatives")
        size, speed = self.norm(y, y, y), self.norm(slope, y, y)
        return min(span, 0.01 * size / speed if size > 1e-5 < speed else 1e-3 * span)


@kinds.checked
def integrate(
    f: Right,
    span: tuple[float, float],
    history: Past | Sequence[float] | Floats,
    lags: Sequence[Lag] = (),
    *,
    start: Sequence[float] | Floats | None = None,
    events: Sequence[Event] = (),
    sample: Sequence[float] | Floats = (),
    rtol: float = 1e-6,
    atol: float | Floats = 1e-9,
    max_step: float = math.inf,
    keep: float = math.inf,
    max_steps: int = 1_000_000,
) -> Solution:
    """Solve the delay equation y' = f(t, y, z) from ``span[0]`` to ``span[1]``.

    Here y is the state at time t, and z holds the states at the delayed times t - tau.

    - ``history`` gives the states before the start: a function of time or a constant state.
    - ``lags`` are the delays tau in seconds: numbers, or functions ``tau(t, y, past)``, where
      ``past(u)`` is the state at an earlier time u.  The delayed time t - tau must grow with t.
    - ``start`` is the state at ``span[0]``.  Without it ``history`` gives this state.
    - ``events`` are the events to look for and act on (``Event``).
    - ``sample`` holds the times, in any order, at which the solution is wanted.
    - ``rtol`` and ``atol`` are the relative and the absolute tolerance for the error of a step.
    - ``max_step`` is the greatest length of a step in seconds, and ``max_steps`` the greatest
      number of steps.
    - ``keep`` is the time in seconds for which past states are stored.  No delay may be longer.

    Wrong arguments raise ``FieldError``.  If the integration fails later, ``Solution.status`` says
    why.
    """
    t, end = float(span[0]), float(span[1])
    if not end > t:
        raise FieldError("span", span, "two growing times")
    phi = history if callable(history) else _constant(history)
    before = np.atleast_1d(np.asarray(phi(t), dtype=np.float64))
    y = before.copy() if start is None else np.atleast_1d(np.array(start, dtype=np.float64))
    if y.shape != before.shape or y.ndim != 1:
        allowed = f"shape {before.shape}, that of the history"
        raise FieldError("start", f"shape {y.shape}", allowed)
    for name, given in (("rtol", rtol), ("atol", atol), ("max_step", max_step), ("keep", keep)):
        if not np.min(given) > 0:
            raise FieldError(name, given, "more than 0")
    for k, lag in enumerate(lags):
        if not callable(lag) and not 0 <= lag <= keep:
            raise FieldError(f"lags[{k}]", lag, f"a delay from 0 to keep = {keep}")
    grid = np.atleast_1d(np.asarray(sample, dtype=np.float64))
    if grid.ndim != 1 or np.any(np.isnan(grid)):
        raise FieldError("sample", sample, "times in one row, none of them NaN")
    order = np.argsort(grid, kind="stable")
    memory = Memory(phi, t, 1 if np.array_equal(before, y) else 0, lags)
    stepper = _Stepper(f, memory, rtol, atol)
    run = _Run(stepper, events, grid[order], end, keep, max_step).go(t, y, max_steps)
    asked = np.empty_like(run.sample)
    asked[order] = run.sample
    return replace(run, sample=asked)


def _constant(value: Sequence[float] | Floats) -> Past:
    """A past in which the state was always ``value``."""
    state = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return lambda _: state


class _Run:
    """One integration from start to end: it chooses steps, finds events and takes samples."""

    def __init__(
        self,
        stepper: _Stepper,
        events: Sequence[Event],
        grid: Floats,
        end: float,
        keep: float,
        max_step: float,
    ) -> None:
        """Store the arguments.

        ``grid`` are the sample times in rising order, and ``end`` is the end of the integration.
        A step lasts at most ``max_step`` seconds. Past states are stored for ``keep`` seconds.
        """
        self.stepper, self.memory, self.events = stepper, stepper.memory, events
        self.grid, self.end, self.keep, self.max_step = grid, end, keep, max_step
        self.fired: set[int] = set()  # indices of the events that occurred at the start of the step
        self.rejected = 0

    def go(self, t: float, y: Floats, max_steps: int) -> Solution:
        """Integrate from time t and state y to the end, with at most ``max_steps`` steps.

        Each pass of the loop makes a step, and cuts it at the first event in it. It stores the
        solution of the step, takes the samples, and lets the event change the state. It notes the
        break at the end of the step, if there is one (the module explains breaks).

        The loop ends early if a step fails, if an event is ``terminal``, or if more than 50 steps
        in a row end at an event almost at their start: events then follow one another without end.
        """
        memory, t0 = self.memory, t
        times, states = [t], [y.copy()]
        found: list[Occurrence] = []
        samples = np.full((self.grid.size, y.size), np.nan)
        next_sample = int(np.searchsorted(self.grid, t))
        memory.pass_now(t, y)
        # ``h`` is the length of the step that is tried next; 0 means that ``first_step`` chooses it
        h, last_error, status, events_in_row = 0.0, 1.0, "done", 0
        while t < self.end:
            if len(times) > max_steps:
                status = (
                    f"it needs more than {max_steps} steps; a larger rtol needs fewer, unless a "
                    "part of the solution changes very fast"
                )
                break
            made = self._next(t, y, h, last_error)
            if isinstance(made, str):
                status = made
                break
            piece, new, error, passing, h = made
            last_error = max(error, 1e-4)  # one tiny error must not make later steps short
            # the first event in the step ends the step; several may occur at this time
            happened = self._first_events(piece)
            stop = happened[0][0] if happened else piece.end  # all ``happened`` at the same time
            piece = piece._replace(end=stop)
            memory.add(piece, self.keep)
            while next_sample < self.grid.size and self.grid[next_sample] <= stop:
                samples[next_sample] = piece(self.grid[next_sample])
                next_sample += 1
            events_in_row = events_in_row + 1 if happened and stop - t <= 1e-9 * (stop - t0) else 0
            t, y = stop, (piece(stop) if happened else new)
            self.fired = {index for _, index in happened}
            # An event makes a break of order 0 if it changes the state, else of order 1. A delayed
            # time that passes a break of order n makes one of order n + 1.
            if happened:
                found += [Occurrence(t, index, y.copy()) for _, index in happened]
                y, jumped = self._act(t, y)
                memory.breaks.append(Break(t, 0 if jumped else 1))
                h = 0.0
            elif passing is not None and passing < ORDER:
                memory.breaks.append(Break(t, passing + 1))
            times.append(t)
            states.append(y.copy())
            if any(self.events[index].terminal for _, index in happened):
                status = "event"
                break
            if events_in_row > 50:
                status = f"events accumulate at t = {t:.12g}"
                break
        return Solution(
            np.array(times), np.array(states), samples, tuple(found), tuple(memory.breaks),
            status, self.rejected, memory.pieces,
        )  # fmt: skip

    def _next(
        self, t: float, y: Floats, h: float, last_error: float
    ) -> tuple[Piece, Floats, float, int | None, float] | str:
        """Make the next step from time t and state y.

        ``h`` is the length that is tried first, or 0 if ``first_step`` is to choose it.
        ``last_error`` is the error of the step before, divided by the tolerance.  Returns the five
        values that describe the step (``_step`` lists them) or, if no step is possible, a text with
        the reason.
        """
        try:
            self.memory.pass_now(t, y)
            h = h or self.stepper.first_step(t, y, self.end - t)
            made = self._step(t, y, min(h, self.max_step), last_error)
        except NegativeDelayError as negative:
            return f"lags[{negative.k}] becomes negative at t = {t:.12g}"
        except ForgottenError as lost:
            return f"lags[{lost.k}] is longer than keep at t = {t:.12g}"
        return made or f"the step became too small at t = {t:.12g}"

    def _step(
        self, t: float, y: Floats, h: float, last_error: float
    ) -> tuple[Piece, Floats, float, int | None, float] | None:
        """Make one step from time t and state y: try length h, then shorter ones if needed.

        A step is too long if its error is too large.  It is also too long if one of the delayed
        times, t minus a delay, passes a break within the step.  A break of order n is a time at
        which the n-th derivative of the solution jumps.

        Returns five values:

        - the polynomial that gives the solution within the step,
        - the state at the end of the step,
        - the error divided by the tolerance,
        - the order of the break that a delayed time reaches at the end of the step; None if no
          delayed time does,
        - the length to try for the next step.

        Returns None if the step would become too short.  If a negative delay is the reason for
        that, the function raises ``NegativeDelayError`` instead.  ``last_error`` is the error of
        the step before, divided by the tolerance.
        """
        remaining, negative = self.end - t, None
        while True:
            h = remaining if h >= remaining * (1 - 1e-12) else h  # in spite of rounding errors
            # a step so short that rounding errors of the time spoil it
            if h <= 4 * np.spacing(max(abs(t), abs(self.end)) * 1e-3) or not t + h > t:
                if negative is not None:
                    raise negative
                return None
            try:
                piece, new, error = self.stepper.attempt(t, y, h)
                crossing = self._crossing(piece, new) if math.isfinite(error) else None
                # a delayed time passes a break within the step: the step must end there
                if crossing is not None and crossing.after < h * (1 - 1e-13):
                    h = max(crossing.after, 8 * np.spacing(max(abs(t), abs(self.end))))
                    if crossing.after > 0.0:
                        continue
                    piece, new, error = self.stepper.attempt(t, y, h)
            except NegativeDelayError as at_a_trial_state:
                negative, error, crossing = at_a_trial_state, math.inf, None
            if error <= 1.0:
                # A PI controller chooses the next length from the errors of the last two steps. Its
                # exponents are those of the program DOPRI5 of Hairer and Wanner for beta = 0.08.
                factor = 0.9 * max(error, 1e-10) ** -0.14 * last_error**0.08
                grown = h * min(max(factor, 0.2), 5.0)
                if h == remaining:  # rounding errors must not move the end of the run
                    piece = piece._replace(end=self.end)
                return piece, new, error, crossing.order if crossing else None, grown
            self.rejected += 1
            # the error is proportional to h^5
            h *= max(0.2, 0.9 * error**-0.2) if math.isfinite(error) else 0.25

    def _crossing(self, piece: Piece, new: Floats) -> _Crossing | None:
        """Find where in the step a delayed time t - delay first reaches a break.

        ``piece`` is the polynomial that gives the solution within the step, and ``new`` the state
        at its end.

        The step must end there, because the method needs a smooth solution within a step.  A break
        of order n is a time at which the n-th derivative of the solution jumps; n = 0 is the
        solution itself.  Returns None if no delayed time reaches a break within the step.
        """
        first: _Crossing | None = None
        memory, t, h = self.memory, piece.start, piece.h
        for k in range(len(memory.lags)):
            upcoming = memory.next_break(k)
            if upcoming is None:
                continue
            xi, order = upcoming

            def beyond(part: float, k: int = k, xi: float = xi) -> float:
                """By how many seconds t - tau_k is beyond the break, ``part`` s into the step."""
                u = t + part
                y = new if part == h else piece(u)
                return u - memory.delay(k, u, y) - xi

            memory.current = piece
            end = beyond(h)
            if end >= -rounding(t + h):  # it reaches the break by the end of the step
                root = h
                if end > rounding(t + h):  # it reaches the break before the end
                    root = 0.0 if beyond(0.0) >= 0.0 else float(brentq(beyond, 0.0, h, xtol=1e-15))
                if first is None or root < first.after:
                    first = _Crossing(root, order)
            memory.current = None
        return first

    def _first_events(self, piece: Piece) -> list[tuple[float, int]]:
        """The first events in the step, as a list of pairs: the time and the index of the event.

        ``piece`` is the polynomial that gives the solution within the step.  All pairs have the
        same time.  The list is empty if no event occurs in the step.
        """
        roots = []
        for index, event in enumerate(self.events):
            root = self._root(event, index, piece)
            if root is not None:
                roots.append((root, index))
        if not roots:
            return []
        first = min(roots)[0]
        return sorted((first, i) for root, i in roots if root - first <= rounding(first))

    def _root(self, event: Event, index: int, piece: Piece) -> float | None:
        """The first time in the step at which this event occurs, or None.

        ``piece`` is the polynomial that gives the solution within the step, and ``index`` the
        event's index in the list of events.  If the event has occurred at the start of the step,
        the search begins a little later.
        """

        def value(part: float) -> float:
            """The event's function when this part of the step is over."""
            u = piece.end if part == 1.0 else piece.start + part * piece.h
            return float(event.function(u, piece(u)))

        # the points of the step at which the function's sign is compared with that before
        parts = [AFTER if index in self.fired else 0.0]
        parts += [i / SUBSAMPLES for i in range(1, SUBSAMPLES + 1)]
        low, before = parts[0], value(parts[0])
        for high in parts[1:]:
            after = value(high)
            if before * after < 0.0 or (after == 0.0 and before != 0.0):
                rising = 1 if before < 0.0 else -1
                if event.direction in (0, rising):
                    part = float(brentq(value, low, high, xtol=1e-15)) if after else high
                    return piece.end if part == 1.0 else piece.start + part * piece.h
            low, before = high, after
        return None

    def _act(self, t: float, y: Floats) -> tuple[Floats, bool]:
        """Apply the actions of the events that have just occurred, in the order of their indices.

        The events have occurred at time t, in the state y.  Returns the state after the actions,
        and whether it differs from the state before them.
        """
        jumped = False
        for index in sorted(self.fired):
            action = self.events[index].action
            if action is not None:
                moved = np.asarray(action(t, y.copy()), dtype=np.float64)
                jumped = jumped or not np.array_equal(moved, y)
                y = moved
        return y, jumped
