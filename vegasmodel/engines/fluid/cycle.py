"""Finds the steady state of senders that share one link: constant windows or a periodic motion.

If the buffer overflows again and again, the windows move in cycles from one overflow to the next
(De Vendictis and Baiocchi 2002, figure 2). The return map takes the windows just after an overflow
to the windows just after the next overflow. (If the motion repeats only after k overflows, the
return map covers k cycles at once.) If the windows are a fixed point of the map, their motion is
periodic. A small disturbance of the windows is multiplied in each period by certain factors, the
Floquet multipliers. They are the eigenvalues of the map's derivative at the fixed point.

One multiplier is always 0 and is left out. At each overflow the buffer is full, and the rates of
the flows add up to the capacity. So the windows satisfy one equation at every overflow. A
disturbance that violates this equation is gone after one cycle.

Another multiplier may be 1. Vegas with alpha < beta may hold its window anywhere in a range. If the
window that Vegas holds is disturbed within this range, the disturbance may last for ever. At an end
of the range, only a disturbance towards the inside lasts. So the map has a kink at this end, which
means that it has no derivative there, and no multipliers.

If the buffer does not overflow, the windows become constant. The map then takes the windows at one
time to the windows one round trip later (the longest round trip of all flows). The multipliers are
the eigenvalues of its derivative.

If the buffer overflows again and again but no cycle is found, the result holds averages over a long
time.

All this is for windows that change at every instant (``continuous.py``). For some scenarios the
windows are simulated in small steps of time instead (package ``sampled``); ``methods.py`` says for
which. For these scenarios ``steady.py`` finds the steady state.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.engines.fluid.continuous import (
    LOSERS,
    STEP,
    averages,
    check_method,
    flows_of,
    fresh,
    in_packets,
    limits,
    unsupported,
)
from vegasmodel.engines.fluid.methods import all_continuous
from vegasmodel.engines.fluid.pauses import whole
from vegasmodel.engines.fluid.records import DELAY, TIME, empty_tally
from vegasmodel.engines.fluid.steady import steady
from vegasmodel.engines.starts import start_times
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.results.steady_state import LimitCycle
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from vegasmodel.engines.fluid.records import State, Tally

CLOSE = 1e-9  # windows count as equal if they differ by at most this part of the largest
NUDGE = 1e-4  # part of a window: by so much ``_jacobian`` changes a window for finite differences
KINK = 1e-2  # part of this change: a larger second difference of the map shows a kink or a jump
MOST_OVERFLOWS = 8  # greatest number of overflows in a cycle
OVERFLOWS = 64  # overflows before Newton's method is first tried, and in each block of an average
BLOCKS = 16  # blocks of an average, from whose scatter its standard error is computed
LONGEST_WAIT = 1e4  # round trips to wait for an overflow, or for windows to come to rest
LASTING = 1000  # least number of round trips of a search, as a transient may take so long
INSTANT = 1e-6  # part of a round trip: if a cycle is shorter, cuts do not end the overflow


class _Motion:
    """The flows and the link of a scenario, with functions that advance their state in time."""

    def __init__(
        self,
        scenario: Scenario,
        losers: str,
        packets: bool | None,
        step: float,
        trains: bool,
        longest: float,
    ) -> None:
        """Prepare the simulation.

        ``losers`` says which flows lose packets at an overflow, and ``packets`` whether windows are
        whole packets. ``step`` is the length of a step divided by the shortest RTT, and ``trains``
        says whether slow start of Vegas sends each window as a train. ``longest`` is the greatest
        number of round trips in which the simulation waits for an overflow, or for windows to come
        to rest.
        """
        from vegasmodel.engines.fluid import march as windows_march

        self._march, self.longest = windows_march.march, longest
        self._losers, self._step = LOSERS.index(losers), step
        packets = in_packets(scenario, packets)
        self.c, self.s_max = limits(scenario, packets)
        flows = flows_of(scenario, packets, trains, start_times(scenario, 0))
        self.all_started = float(flows.start.max())
        # the steady state is that of the flows present at the end, for as long as it takes
        stays = flows.stop >= scenario.run.duration
        self.flows = flows._replace(stop=np.where(stays, np.inf, flows.stop))
        if not stays.all():
            self.all_started = max(self.all_started, float(flows.stop[~stays].max()))
        self.state, self.tally = fresh(self.flows)
        self.n = flows.rtt.size
        self._arrays = windows_march.workspace(*fresh(flows), 0)
        self._unsampled = windows_march.samples_at(np.empty(0), flows, self.state, self._arrays)

    def integrate(self, state: State, end: float, *, until_loss: bool, tally: Tally) -> int:
        """Simulate up to time ``end``, or with ``until_loss`` only up to the first overflow.

        If the simulation stops at an overflow, the windows are already cut. Returns the code
        (``Status``) that says why the simulation ended.
        """
        skip_cycles = False  # the search needs every overflow
        return whole(
            self._march, self.flows, state, self.c, self.s_max, self._losers, end, self._step,
            until_loss, skip_cycles, tally, self._unsampled, self._arrays,
        )  # fmt: skip

    def to_overflow(self, state: State, tally: Tally) -> int:
        """Simulate up to the next overflow; returns the code that says how this ended."""
        end = state.now[TIME] + self.longest * self.longest_rtt(state)
        return self.integrate(state, end, until_loss=True, tally=tally)

    def copy(self, state: State, window: Floats | None = None) -> State:
        """A copy of the state; if ``window`` is given, it replaces the windows in the copy."""
        copied = type(state)(*(part.copy() for part in state))
        if window is not None:
            copied.window[:] = window
        return copied

    def longest_rtt(self, state: State) -> float:
        """The longest RTT of any flow at the queueing delay of ``state``, in seconds."""
        return float(self.flows.rtt.max() + state.now[DELAY])


@kinds.checked
def limit_cycle(
    scenario: Scenario,
    *,
    losers: str | None = None,
    packets: bool | None = None,
    step: float = STEP,
    longest: float | None = None,
) -> LimitCycle:
    """Find the steady state of a scenario: a fixed point, a cycle, or averages over a long time.

    The averages of a cycle are those over one period. If start times are random
    (``start_jitter``), the flows start when they do in the first run of the simulator ``fluid``.

    There are two methods. The equations of ``continuous.py`` hold for windows that change at every
    instant. They are used if ``losers`` or ``packets`` is given. They are also used if every flow
    has ``variant = "paper"`` and a law of this package other than CUBIC, and the link is drop-tail
    without random loss. In all other cases ``steady.steady`` finds the steady state.

    ``continuous.run`` explains ``losers``, ``packets`` and ``step``. With the equations of
    ``continuous.py``, ``longest`` matters only if the buffer does not overflow. The function then
    compares the windows at the beginning and at the end of longer and longer intervals of time. If
    they still differ for an interval of about ``longest`` round trips (default ``LONGEST_WAIT``),
    the search fails. ``steady.steady`` explains what ``longest`` means there.

    If the search fails, the result is ``LimitCycle.failed``: its numbers are NaN, and its
    ``status`` says why.

    Raises ``ValueError`` for a wrong argument, if the model cannot simulate the scenario, or if a
    function of a user's law returns an unusable number.
    """
    chosen = losers is not None or packets is not None  # the user chooses the continuous equations
    if not chosen and not all_continuous(scenario):
        return steady(scenario, longest)
    trains = not chosen  # as ``predict`` does, let packets in slow start arrive as trains
    losers = "growing" if losers is None else losers
    longest = LONGEST_WAIT if longest is None else longest
    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    check_method(losers, step)
    motion = _Motion(scenario, losers, packets, step, trains, longest)
    state, tally = motion.state, motion.tally
    # simulate until all flows have started, then until the buffer overflows or windows are constant
    code = motion.integrate(state, motion.all_started, until_loss=False, tally=tally)
    if code == Status.DONE:
        code = _rest_or_loss(motion, state)
    if code == Status.DONE:
        return _fixed_point(motion, state)
    if code == Status.OVERFLOW:
        return _cycle(motion, state)
    return LimitCycle.failed(motion.n, Status(code).reason)


def _rest_or_loss(motion: _Motion, state: State) -> int:
    """Simulate until the buffer overflows, or until all windows have come to rest.

    The windows have come to rest if they are equal at the beginning and at the end of an interval
    of time. The first interval takes 16 round trips, and each further one is a quarter longer. The
    search fails when an interval would exceed ``motion.longest`` round trips.

    Returns ``OVERFLOW`` after an overflow, ``DONE`` at rest, ``UNSETTLED`` if the search fails, or
    ``STUCK`` if cutting the windows cannot end an overflow.
    """
    trips = 16.0
    while trips <= motion.longest:
        old = state.window.copy()
        end = state.now[TIME] + trips * motion.longest_rtt(state)
        code = motion.integrate(state, end, until_loss=True, tally=motion.tally)
        if code != Status.DONE:
            return code
        if np.abs(state.window - old).max() <= CLOSE * max(1.0, old.max()):
            return Status.DONE
        trips *= 1.25
    return Status.UNSETTLED


def _fixed_point(motion: _Motion, state: State) -> LimitCycle:
    """The result for a steady state in which all windows are constant.

    The result's averages, such as throughputs, are taken over one round trip of the flow with the
    longest RTT. The result's multipliers are the factors by which a small disturbance of the
    windows grows or shrinks in this time. They are the eigenvalues of a Jacobian matrix, which
    holds the derivatives of the windows after the round trip with respect to the windows before it.
    """
    trip = motion.longest_rtt(state)

    def after_trip(window: Floats) -> Floats:
        """The windows one round trip later, if they are ``window`` now."""
        moved = motion.copy(state, window)
        motion.integrate(
            moved, moved.now[TIME] + trip, until_loss=False, tally=empty_tally(motion.n)
        )
        return moved.window

    on = state.window > 0  # which flows are active
    tally = empty_tally(motion.n)
    jacobian = _jacobian(after_trip, state.window, on)
    residual = float(np.abs(after_trip(state.window) - state.window).max())
    moved = motion.copy(state)
    motion.integrate(moved, moved.now[TIME] + trip, until_loss=False, tally=tally)
    period, overflows, multipliers = 0.0, 0, _eigenvalues(jacobian)
    return _answer(motion, "fixed point", period, overflows, tally, state, multipliers, residual)


def _cycle(motion: _Motion, state: State) -> LimitCycle:
    """Find a cycle of the windows, which begins and ends at an overflow of the buffer.

    The function simulates until the windows after an overflow equal those after an earlier one. If
    this does not happen for many overflows, Newton's method looks for a cycle. If it finds none,
    and the simulation still does not repeat, the result holds averages over many overflows.

    In two cases there is no such result. If overflows cease, the windows may come to rest: the
    result is then a fixed point, or a failure if they do not (``_end``). If a cycle takes almost no
    time, cutting the windows does not end the overflow, and the result is a failure.
    """
    latest: list[Floats] = [state.window.copy()]  # windows after the latest overflows
    begin = state.now[TIME]  # time of the first overflow
    # overflows so far, and the number of them at which Newton's method is next tried
    count, attempt = 0, OVERFLOWS
    while count < 2 * OVERFLOWS or state.now[TIME] - begin < LASTING * motion.longest_rtt(state):
        before = state.now[TIME]
        code = motion.to_overflow(state, motion.tally)
        if code != Status.OVERFLOW:
            return _end(motion, state, code)
        count += 1
        latest = [*latest[-MOST_OVERFLOWS:], state.window.copy()]
        for k in range(1, len(latest)):  # are the windows those of k overflows before?
            if np.abs(latest[-1] - latest[-1 - k]).max() <= CLOSE * max(1.0, latest[-1].max()):
                # the buffer overflows again at once, so the cuts do not make room in it
                if state.now[TIME] - before < INSTANT * motion.longest_rtt(state):
                    return LimitCycle.failed(motion.n, Status.STUCK.reason)
                return _periodic(motion, state, k)
        if count == attempt:
            attempt *= 4
            for k in range(1, MOST_OVERFLOWS + 1):
                found = _newton(motion, state, k)
                if found is not None:
                    return _periodic(motion, found, k)
    return _average(motion, state)


def _end(motion: _Motion, state: State, code: int) -> LimitCycle:
    """The result of a search for a cycle if the simulation ended before the next overflow.

    The result is a fixed point if the windows come to rest, and a failure if they do not. ``code``
    says how the simulation ended: ``DONE`` if no overflow came for ``motion.longest`` round trips.
    """
    if code == Status.DONE:
        code = _rest_or_loss(motion, state)
        if code == Status.DONE:
            return _fixed_point(motion, state)
        code = Status.UNSETTLED
    return LimitCycle.failed(motion.n, Status(code).reason)


def _return_map(motion: _Motion, state: State, k: int) -> Callable[[Floats], Floats]:
    """Make a function that takes the windows after an overflow and returns those k overflows later.

    Each simulation begins in ``state``, but with the given windows. The function returns NaN if the
    k overflows do not occur.
    """

    def image(window: Floats) -> Floats:
        """The windows k overflows after those with the windows ``window``; NaN if it has none."""
        moved, tally = motion.copy(state, window), empty_tally(motion.n)
        if any(motion.to_overflow(moved, tally) != Status.OVERFLOW for _ in range(k)):
            return np.full(motion.n, np.nan)
        return moved.window

    return image


def _periodic(motion: _Motion, state: State, k: int) -> LimitCycle:
    """The result for a cycle of k overflows: averages over the cycle, and Floquet multipliers.

    Floquet multipliers are the factors by which a small disturbance of the windows grows or shrinks
    in each cycle. ``state`` is the state just after an overflow of the cycle.
    """
    image = _return_map(motion, state, k)
    on = state.window > 0  # which flows are active
    # without the last eigenvalue, which is 0 (see the top of this file)
    eigenvalues = _eigenvalues(_jacobian(image, state.window, on))[:-1]
    residual = float(np.abs(image(state.window) - state.window).max())
    tally, moved = empty_tally(motion.n), motion.copy(state)
    for _ in range(k):
        motion.to_overflow(moved, tally)
    period = float(moved.now[TIME] - state.now[TIME])
    return _answer(motion, "periodic", period, k, tally, moved, eigenvalues, residual)


def _newton(motion: _Motion, state: State, k: int) -> State | None:
    """Find a periodic motion of the windows, with k overflows of the buffer in each period.

    Newton's method searches for windows that are the same again after k overflows. The search
    begins in ``state``. Returns the state just after one of the overflows of the periodic motion.
    Returns None if the method fails, or if the periodic motion is not stable.
    """
    image = _return_map(motion, state, k)
    on, window = state.window > 0, state.window.copy()  # ``on``: which flows are active
    # The windows w sought are a solution of F(w) = w, where F is ``image``. A step dw of Newton's
    # method solves (1 - F') dw = F(w) - w.
    identity = np.eye(int(on.sum()))
    for _ in range(12):  # limited, in case the method does not converge
        moved = image(window)
        step = (moved - window)[on]
        if not np.all(np.isfinite(step)):
            return None
        jacobian = _jacobian(image, window, on)
        if np.abs(step).max() <= CLOSE * max(1.0, window.max()):
            stable = np.abs(_eigenvalues(jacobian)).max() < 1.0
            return motion.copy(state, window) if stable else None
        try:
            window[on] += np.linalg.solve(identity - jacobian, step)
        except np.linalg.LinAlgError:
            return None
        window[on] = np.maximum(window[on], motion.flows.min_window[on])
    return None


def _average(motion: _Motion, state: State) -> LimitCycle:
    """The result for a motion in which no cycle was found: averages over many overflows.

    The simulated time is divided into blocks with equal numbers of overflows. The standard error of
    a flow's throughput follows from its scatter over the blocks.
    """
    start, means, total = motion.copy(state), [], empty_tally(motion.n)
    for _ in range(BLOCKS):
        block = empty_tally(motion.n)
        for _ in range(OVERFLOWS):
            code = motion.to_overflow(state, block)
            if code != Status.OVERFLOW:
                return _end(motion, state, code)
        means.append(block.delivered / block.active)
        for sum_, part in zip(total, block, strict=True):
            sum_ += part
    spread = standard_error(np.array(means))
    residual = float(np.abs(state.window - start.window).max())
    period, overflows, no_multipliers = math.nan, 0, np.empty(0)
    return _answer(
        motion, "neither found", period, overflows, total, state, no_multipliers, residual, spread
    )


def _jacobian(image: Callable[[Floats], Floats], window: Floats, on: np.ndarray) -> Floats:
    """The Jacobian matrix of ``image``, a function from windows to windows.

    The derivatives are central differences. Only active flows (``on``) have a row and a column. A
    column holds the derivatives with respect to one window. The column is NaN if ``image`` has a
    jump or a kink at the present size of this window. An example of a jump: the next overflow cuts
    the window if the window is slightly larger, but not if it is slightly smaller. An example of a
    kink: Vegas with alpha < beta keeps its window if the window is slightly larger, and lets it
    grow if it is slightly smaller.
    """
    active, unchanged = np.flatnonzero(on), image(window)
    jacobian: Floats = np.empty((active.size, active.size))
    for column, i in enumerate(active):
        nudge = np.zeros_like(window)
        nudge[i] = NUDGE * max(1.0, window[i])
        larger, smaller = image(window + nudge), image(window - nudge)
        # the second difference of a smooth function would be far smaller than the nudge
        kink = np.abs(larger - 2.0 * unchanged + smaller)[on].max() > KINK * nudge[i]
        jacobian[:, column] = np.nan if kink else (larger - smaller)[on] / (2.0 * nudge[i])
    return jacobian


def _eigenvalues(matrix: Floats) -> np.ndarray:
    """The eigenvalues of a matrix, largest modulus first; NaN if an entry is not finite."""
    if not np.all(np.isfinite(matrix)):
        return np.full(len(matrix), np.nan)
    values = np.linalg.eigvals(matrix)
    return np.asarray(values[np.argsort(-np.abs(values))])


def _answer(
    motion: _Motion,
    kind: str,
    period: float,
    overflows: int,
    tally: Tally,
    state: State,
    multipliers: np.ndarray,
    residual: float,
    spread: Floats | None = None,
) -> LimitCycle:
    """The steady state of this ``kind``, with the averages over the time that ``tally`` covers.

    baseRTTs are those of ``state``. The other arguments become fields of the result.
    """
    flows = motion.flows
    return LimitCycle(
        kind=kind,
        period=period,
        overflows=overflows,
        spread=np.zeros(motion.n) if spread is None else spread,
        base_rtt=np.where(flows.keeps_backlog, flows.rtt + state.over_estimate, np.nan),
        losses=np.where(math.isnan(period), math.nan, tally.losses),
        multipliers=multipliers,
        residual=residual,
        status=Status.DONE.reason,
        **averages(tally),
    )
