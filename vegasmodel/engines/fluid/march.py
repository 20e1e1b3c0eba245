"""Runs the main loop of the simulator ``fluid``, for windows that change at every instant.

``methods.py`` says for which scenarios this loop is used. The package ``sampled`` simulates all
others. The equations are in ``windows.py``. A step ends at each event: a flow starts or stops, a
window reaches or leaves a threshold, a queue forms or empties, the buffer overflows. Between events
the usual length of a step is a fraction of the shortest round trip.

Many functions have the same arguments. ``p`` holds the properties of the flows, and ``y`` holds the
present state (``records``). ``active`` [flow] says which flows are active. ``c`` is the capacity in
pkt/s. ``s_max`` is the queueing delay in seconds at which the buffer overflows.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from vegasmodel.engines import on_demand
from vegasmodel.engines.fluid.events import PROBE, SLACK, changed, horizon, time_to_change
from vegasmodel.engines.fluid.pauses import PAUSE, PAUSED
from vegasmodel.engines.fluid.records import (
    DELAY,
    SPAN,
    TIME,
    WAITED,
    Flows,
    Samples,
    State,
    Tally,
    empty_state,
)
from vegasmodel.engines.fluid.repeats import TRAIL, begin_cycle, record_instant, replay, skip_cycles
from vegasmodel.engines.fluid.slow_start import begin_slow_start, double
from vegasmodel.engines.fluid.tally import record_samples, seek, tally_step, zero_tally
from vegasmodel.engines.fluid.windows import REST, UP, delay_after, try_step
from vegasmodel.engines.on_demand import call
from vegasmodel.engines.tables import jit, making
from vegasmodel.metrics import Floats
from vegasmodel.status import Status

GROWING, ALL, LOSS_BASED = 0, 1, 2  # which flows lose packets when the buffer overflows
# why a march ended: plain integers for Numba
DONE, OVERFLOW, STUCK = int(Status.DONE), int(Status.OVERFLOW), int(Status.STUCK)
STALL = 2.0**-20  # part of a step: an event that comes sooner than this after another is a stall
MAX_STALLS = 8  # greatest number of stalls in a row; then no event ends the next step
# Indices of ``Workspace.carried``. At ``HALTED`` stands 1 if there was a pause, else 0. At ``DUE``
# stands the time of the next start or stop, and at ``INSTANTS`` the number of instants in the
# trail. The others are for local variables of ``march``; ``SLOPE`` and ``BEND`` are for ``trend``.
HALTED, DUE, INSTANTS, STALLS, JUMPED, SLOPE, BEND, MEAN, LENGTH = range(9)


class Workspace(NamedTuple):
    """Arrays that a simulation uses again in every step, so that it need not allocate new ones.

    The last entry of ``moves`` and ``last`` says whether there is a queue.
    """

    active: np.ndarray  # bool: which flows are active
    new: Floats  # windows at the end of this step
    moves: np.ndarray  # how each window moves in this step
    last: np.ndarray  # how each window moved in the step before
    mark: State  # the state just after the last overflow
    before: Tally  # the time integrals up to the last overflow
    trail: Floats  # [instant, (time, windows, queueing delay)] since the last overflow
    carried: Floats  # [9] what ``march`` needs to go on after a pause (indices ``HALTED`` ff.)


@jit
def set_delay(p: Flows, y: State, active: np.ndarray, c: float) -> None:
    """Compute the queueing delay anew, after windows have jumped.

    With this delay the flows' rates add up to the capacity, equation (W1) of ``windows.py``.
    """
    guess, h, s_max = y.now[DELAY], 0.0, np.inf  # no time passes, and no buffer is full
    y.now[DELAY] = delay_after(p, y, active, guess, h, c, s_max)


@jit
def cut_windows(
    p: Flows, y: State, active: np.ndarray, moves: np.ndarray, losers: int, lost: np.ndarray
) -> bool:
    """Cut the windows of the flows that lose packets when the buffer overflows.

    ``losers`` is a number that says which flows these are:

    - ``GROWING``, the usual choice: the flows whose windows grow. If a window is constant or falls,
      the source sends at most one packet per ACK. This packet takes the place in the buffer that
      the acknowledged packet has left. If a window grows, the source sends additional packets, and
      the full buffer has no room for these.
    - ``ALL``: all flows, as by hypothesis 5 of De Vendictis and Baiocchi (2002).
    - ``LOSS_BASED``: the flows whose windows grow, but no Vegas flows, which then never lose.

    ``moves`` says how each window moves. Each cut adds 1 to the flow's entry of ``lost``. Returns
    false if no window has become smaller.
    """
    cut = False
    for i in range(active.size):  # a flow that keeps a backlog, such as Vegas, is not loss-based
        loses = losers == ALL or (moves[i] == UP and (losers == GROWING or not p.keeps_backlog[i]))
        if active[i] and loses:
            new = max(y.window[i] * p.decrease[i], p.min_window[i])
            cut = cut or new < y.window[i]
            y.window[i] = new
            y.in_slow_start[i] = False
            y.recovery_until[i] = y.now[TIME] + p.recovery[i] * p.rtt[i]
            lost[i] += 1
    return cut


@jit
def start_and_stop(p: Flows, y: State, active: np.ndarray) -> float:
    """Start and stop the flows whose time has come; returns the time of the next start or stop."""
    t, s, due = y.now[TIME], y.now[DELAY], np.inf
    for i in range(active.size):
        sends = p.start[i] <= t < p.stop[i]
        if sends and not active[i]:
            y.window[i] = p.initial_window[i]
            # the queueing delay that it finds counts as propagation delay; ``less_found`` is by how
            # much the least delay that it finds is below the mean
            found = max(s - p.less_found[i], 0.0)
            y.over_estimate[i] = found if p.measures_base[i] else p.over_estimate[i]
            begin_slow_start(p, i, y)
        elif active[i] and not sends:
            y.window[i] = 0.0
        active[i] = sends
        if p.start[i] > t:
            due = min(due, p.start[i])
        elif p.stop[i] > t:
            due = min(due, p.stop[i])
    return due


@jit
def accept(
    p: Flows, y: State, active: np.ndarray, new: Floats, moves: np.ndarray, s1: float, later: float,
    c: float,
) -> bool:  # fmt: skip
    """Update the state at the end of a step: windows, slow start, queueing delay, clock and more.

    The step ends at the time ``later``, with the windows ``new`` and the queueing delay ``s1``.
    ``moves`` says how each window has moved. Returns whether slow start has ended in this step for
    any flow.

    ``c`` is the capacity in pkt/s.
    """
    # ``double`` ends the slow starts in which a window has doubled for the last time in this step,
    # and reduces these windows. ``least`` is the least queueing delay that flows may measure now.
    ended, least = double(p, y, active, new, moves, s1, c)
    reduced = ended  # the end of a slow start has reduced a window
    for i in range(active.size):
        if active[i]:
            ended = ended or (y.in_slow_start[i] and moves[i] != UP)
            y.in_slow_start[i] = y.in_slow_start[i] and moves[i] == UP
            y.window[i] = new[i]
            if p.measures_base[i]:
                y.over_estimate[i] = min(y.over_estimate[i], max(least - p.less_found[i], 0.0))
    y.now[TIME], y.now[DELAY] = later, s1
    if reduced:
        set_delay(p, y, active, c)
    return ended


def workspace(mark: State, before: Tally, trail: int = TRAIL) -> Workspace:
    """Allocate the arrays for a simulation, as ``march`` needs them.

    ``mark`` is any state of the simulation's flows, and ``before`` any tally of theirs. The
    simulation overwrites both. Several simulations, one after the other, may use the same arrays. A
    simulation records the states of its latest cycle; ``trail`` is the greatest number of these
    states.
    """
    n = mark.window.size
    return Workspace(
        np.zeros(n, np.bool_), np.empty(n), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64),
        mark, before, np.empty((trail, n + 2)), np.zeros(9),
    )  # fmt: skip


def samples_at(times: Floats, p: Flows, y: State, steps: Workspace) -> Samples:
    """Allocate the arrays for samples of a simulation at these ``times``, in seconds.

    ``times`` may be empty. ``p`` are the simulation's flows, ``y`` is its state, and ``steps`` is
    its ``Workspace``.
    """
    n = y.window.size
    following, values = np.zeros(1, np.int64), np.full((3 * n + 1, times.size), np.nan)
    samples = Samples(times, values, following, record_at=0, replay_at=0)
    if times.size == 0:
        return samples
    tally, new = steps.before, steps.new
    # compile two functions; the arguments only tell the types of those in later calls
    record = on_demand.address(record_samples, p, y, new, 0.0, 0.0, 0.0, tally, samples)
    cycle = on_demand.address(replay, steps.trail, 0, 0.0, 0.0, p.rtt, tally, tally, new, samples)
    return samples._replace(record_at=record, replay_at=cycle)


_workspace = making(workspace)  # for compiled code; Python code calls ``workspace``
_state = making(empty_state)


@jit
def _begin(y: State, active: np.ndarray, last: np.ndarray, mark: State) -> None:
    """Reset the arrays, because an earlier simulation may have used them.

    A flow counts as active if its window is not 0. Before the first step all windows count as
    constant, and the queue as empty. The windows at the last overflow are set to 0, so that the
    first cycle cannot seem to be a repetition.
    """
    for i in range(active.size):
        active[i], mark.window[i] = y.window[i] > 0.0, 0.0
    for i in range(last.size):
        last[i] = REST


@jit
def _prepare(p: Flows, y: State, c: float, samples: Samples, workspace: Workspace) -> None:
    """Make everything ready for the first step of ``march``, unless it goes on after a pause.

    ``c`` is the capacity in pkt/s.
    """
    carried = workspace.carried
    if carried[HALTED] == 0.0:
        carried[:] = 0.0
        seek(samples, y.now[TIME])
        _begin(y, workspace.active, workspace.last, workspace.mark)
        carried[DUE] = start_and_stop(p, y, workspace.active)
        set_delay(p, y, workspace.active, c)
        # no overflow has begun a cycle, so the trail counts as incomplete; the first step is short
        carried[INSTANTS], carried[JUMPED] = 1 + workspace.trail.shape[0], 1.0


@jit
def _step_to_event(
    p: Flows, y: State, c: float, s_max: float, workspace: Workspace, wanted: float, usual: float,
    remaining: float, trend: tuple[float, float], jumped: bool, stalls: int,
) -> tuple[float, float, float, int]:  # fmt: skip
    """Try a step of length ``wanted``; if an event comes sooner, try a step that ends at it.

    ``usual`` is the usual length of a step, and ``remaining`` the time to the next known event, in
    seconds. ``trend`` holds the time derivatives of the queueing delay. ``jumped`` says that the
    last step ended at an event such as a cut of windows. The present step is then very short, and
    only a full buffer can end it early. ``stalls`` counts steps in a row whose event came at once.
    The arrays ``new`` and ``moves`` of ``workspace`` receive the windows at the end of the step,
    and how they move.

    Returns four values for the last step that was tried: the length that it was meant to have, its
    actual length (less if the buffer becomes full before), the queueing delay at its end, and the
    new ``stalls``.

    ``c`` is the capacity in pkt/s, and ``s_max`` the queueing delay of a full buffer in seconds.
    """
    active, new, moves, last = workspace.active, workspace.new, workspace.moves, workspace.last
    h, s1 = try_step(p, y, active, wanted, trend, c, s_max, new, moves)
    # positive if an event lies within the step; -1: none is looked for
    passed = -1.0 if jumped or stalls > MAX_STALLS else changed(p, y, active, h, s1, c, last)
    if passed > 0.0:
        wanted = time_to_change(p, y, active, h, passed, trend, c, s_max, last)
        stalls = stalls + 1 if wanted <= STALL * usual else 0
        # if the event comes at once, a short step leads past it
        wanted = wanted if wanted > PROBE * usual else min(PROBE * usual, remaining)
        h, s1 = try_step(p, y, active, wanted, trend, c, s_max, new, moves)
    elif not jumped:
        stalls = 0
    return wanted, h, s1, stalls


@jit
def _end_overflow(
    p: Flows, y: State, c: float, s_max: float, losers: int, workspace: Workspace, out: Tally
) -> bool:
    """Cut windows because the buffer is full; returns False if it is still full afterwards.

    ``losers`` says which windows (``cut_windows``). ``out`` counts the cuts. ``c`` is the capacity
    in pkt/s, and ``s_max`` the queueing delay of a full buffer in seconds.
    """
    if not cut_windows(p, y, workspace.active, workspace.moves, losers, out.losses):
        return False
    set_delay(p, y, workspace.active, c)
    return not y.now[DELAY] >= s_max * (1.0 - SLACK)


@jit
def _skip_repeated(
    p: Flows, y: State, until: float, out: Tally, samples: Samples, workspace: Workspace, m: int
) -> int:
    """Skip further cycles up to the time ``until`` if the one that has just ended repeats.

    ``workspace.trail`` holds the steps of this cycle, ``m`` instants, or only a part of them if
    ``m`` is larger than its room. Samples in the skipped cycles are computed from these steps. So
    if samples are wanted and steps are missing, nothing is skipped. The state moves on to the end
    of the skipped cycles, where the next cycle begins. Returns the new number of instants.
    """
    sampled, k, ended = samples.record_at != 0, samples.following, y.now[TIME]
    trail, before = workspace.trail, workspace.before
    known = not sampled or k[0] == samples.times.size or m <= trail.shape[0]
    period = skip_cycles(y, out, workspace.mark, before, until, known)
    if sampled and y.now[TIME] > ended and k[0] < samples.times.size:
        cycle = (trail, m, period, y.now[TIME], p.rtt, before, out, workspace.new, samples)
        call(samples.replay_at, cycle)
    begin_cycle(out, before)
    return record_instant(trail, 0, y.now[TIME], y.window, y.now[DELAY])


@functools.partial(jit, negative_indices=False)
def march(
    p: Flows, y: State, c: float, s_max: float, losers: int, end: float,
    fraction: float, stop_at_loss: bool, skip: bool, out: Tally, samples: Samples,
    workspace: Workspace, pause: int,
) -> int:  # fmt: skip
    """Simulate up to time ``end``, or with ``stop_at_loss`` only up to the first overflow.

    The usual length of a step is ``fraction`` of the shortest round trip. ``losers`` says which
    flows lose at an overflow (``cut_windows``). The function fills in ``samples`` of the
    trajectories, and adds to the time integrals in ``out``.

    A cycle lasts from one overflow to the next. With ``skip``, cycles that repeat are skipped. If
    samples are wanted, all steps of the repeated cycle must have been recorded. So a cycle with
    more steps than ``workspace`` has room for is then not skipped.

    Returns ``DONE`` at the time ``end``, ``OVERFLOW`` after a stop at the first overflow, or
    ``STUCK`` if cutting the windows cannot end an overflow. After ``pause`` steps of all flows
    together it returns ``PAUSED``; the next call goes on as if there had been no pause
    (``pauses.py``).

    ``c`` is the capacity in pkt/s, and ``s_max`` the queueing delay of a full buffer in s.
    """
    sampled = samples.record_at != 0
    active, new, moves, last, _, _, trail, carried = workspace
    _prepare(p, y, c, samples, workspace)
    due = carried[DUE]
    m = int(carried[INSTANTS])  # if more than the trail holds, some are missing
    stalls = int(carried[STALLS])  # short steps in a row that brought another event at once
    # After an event, such as a cut, a short step shows how windows and queue move on.
    jumped = carried[JUMPED] != 0.0
    # first and second time derivatives of the queueing delay
    trend = carried[SLOPE], carried[BEND]
    # the mean slope of the queueing delay in the last step, and the length of this step
    mean, length = carried[MEAN], carried[LENGTH]
    carried[HALTED] = 0.0
    steps = 1 + pause // active.size
    while y.now[TIME] < end and steps > 0:
        steps -= 1
        t = y.now[TIME]
        # 1. Make a step, of the length ``wanted`` unless an event or a full buffer ends it early.
        usual, longest, until = horizon(p, y, active, last, fraction, min(due, end))
        remaining = until - t
        wanted = min(PROBE * usual if jumped else longest, remaining)
        wanted, h, s1, stalls = _step_to_event(
            p, y, c, s_max, workspace, wanted, usual, remaining, trend, jumped, stalls
        )
        # 2. The derivatives of the delay, from its mean slopes in this step and in the one before:
        # the next step extrapolates the delay with them.
        before_mean, mean = mean, (s1 - y.now[DELAY]) / h if h > 0.0 else 0.0
        bend = 2.0 * (mean - before_mean) / (h + length) if h > STALL * usual else 0.0
        trend, length = (mean + 0.5 * bend * h, bend), h
        full = h < wanted or s1 >= s_max
        later = until if h == remaining else t + h  # the time at the end of the step
        # 3. Record the step, and accept the state at its end.
        if sampled:
            call(samples.record_at, (p, y, new, s1, h, later, out, samples))
        tally_step(p, y, active, new, s1, h, c, out)
        jumped = accept(p, y, active, new, moves, s1, later, c)
        m = record_instant(trail, m, later, new, s1)
        for i in range(last.size):
            last[i] = moves[i]
        # 4. What happens at its end: an overflow, or flows start or stop.
        if full:
            if not _end_overflow(p, y, c, s_max, losers, workspace, out):
                return STUCK
            jumped = True
            if stop_at_loss:
                return OVERFLOW
            if skip:
                m = _skip_repeated(p, y, min(due, end), out, samples, workspace, m)
                later = y.now[TIME]
        if later == until:
            jumped = True
        if later >= due:
            due = start_and_stop(p, y, active)
            set_delay(p, y, active, c)
            jumped = True
    # what the next call needs to go on, if this one has paused
    carried[DUE], carried[INSTANTS], carried[STALLS], carried[JUMPED] = due, m, stalls, jumped
    carried[SLOPE], carried[BEND], carried[MEAN], carried[LENGTH] = trend[0], trend[1], mean, length
    carried[HALTED] = y.now[TIME] < end
    return PAUSED if carried[HALTED] else DONE


@making
def average_many(
    p: Flows, capacity: Floats, s_max: Floats, warmup: Floats, duration: Floats, losers: int,
    fraction: float, begin: int, end: int, unsampled: Samples, stopped: np.ndarray,
    of_flows: Floats, of_link: Floats,
) -> None:  # fmt: skip
    """Simulate the scenarios number ``begin`` to ``end`` - 1 of a batch, and store their averages.

    Each array of ``p`` has the shape [scenario, flow]. ``of_flows`` [average, scenario, flow]
    receives the throughput, the mean RTT, the baseRTT, the losses and the delivered packets of each
    flow. ``of_link`` [2, scenario] receives the mean queue, and the code that says how the
    simulation ended. No curves over time are stored, so ``unsampled`` holds no times. The function
    ends early, without results, soon after another thread has set ``stopped[0]``.

    ``losers`` says which flows lose at an overflow (``cut_windows``). The usual length of a step is
    ``fraction`` of the shortest round trip. ``s_max`` [scenario] is the queueing delay in seconds
    at which the buffer overflows. A simulation ends after ``duration`` seconds, and the averages
    begin after ``warmup`` seconds (both [scenario]).
    """
    n = p.rtt.shape[1]
    stop_at_loss, skip = False, True  # cycles that repeat are skipped
    arrays = _workspace(_state(n), zero_tally(n), 0)
    for k in range(begin, end):
        row = Flows(
            p.rtt[k], p.keeps_backlog[k], p.backlog_over_base[k], p.lower[k], p.upper[k],
            p.gamma[k], p.in_trains[k], p.slow_start_growth[k], p.growth[k], p.decrease[k],
            p.min_window[k], p.max_window[k], p.initial_window[k], p.recovery[k],
            p.measures_base[k], p.over_estimate[k], p.less_found[k], p.start[k], p.stop[k],
        )  # fmt: skip
        y = _state(n)
        code, out = DONE, zero_tally(n)
        for until in (warmup[k], duration[k]):
            if code == DONE:
                out = zero_tally(n)  # the sums begin anew after the warm-up
                code = PAUSED
                while code == PAUSED and not stopped[0]:
                    code = march(
                        row, y, capacity[k], s_max[k], losers, until, fraction, stop_at_loss, skip,
                        out, unsampled, arrays, PAUSE,
                    )  # fmt: skip
        throughput, rtt_mean, base_rtt = of_flows[0, k], of_flows[1, k], of_flows[2, k]
        losses, delivered = of_flows[3, k], of_flows[4, k]
        for i in range(n):
            known = code == DONE and row.start[i] < np.inf
            measures = known and row.keeps_backlog[i]  # only such a flow has a baseRTT
            throughput[i] = out.delivered[i] / out.active[i] if known else np.nan
            rtt_mean[i] = out.window[i] / out.delivered[i] if known else np.nan
            base_rtt[i] = row.rtt[i] + y.over_estimate[i] if measures else np.nan
            losses[i] = out.losses[i] if known else np.nan
            delivered[i] = out.delivered[i] if known else np.nan
        of_link[0, k] = out.queue[WAITED] / out.queue[SPAN] if code == DONE else np.nan
        of_link[1, k] = code
