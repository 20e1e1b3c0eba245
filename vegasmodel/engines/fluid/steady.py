"""Finds the steady state of senders whose windows are simulated in small steps of time.

The package ``sampled`` simulates these senders (``methods.py`` says in which scenarios). The search
records the state of senders and queue each time a window falls by a packet or more. The motion
counts as periodic if a state is recorded three times, with as many other records between the second
and the third time as between the first and the second. If no window moves any more, the state is a
fixed point. If the windows only grow during the whole search, there is no result. In all other
cases the result is an average over a long run, with its standard error. This error follows from the
differences between parts of the run, and from those between equal flows (``equal_flows.py``). If a
throughput still drifts one way in the longest run, there is no result. If random numbers decide
which packets are lost, the result is always an average.

In the package ``sampled`` windows usually are whole packets and move in jumps. So the motion has no
derivatives, and the result has no Floquet multipliers (the factors by which small disturbances grow
in a cycle).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vegasmodel.engines.equal_flows import least_error
from vegasmodel.engines.fluid.continuous import averages
from vegasmodel.engines.fluid.methods import unsupported
from vegasmodel.engines.fluid.one_run import advance, begin, march_arguments
from vegasmodel.engines.fluid.records import SPAN, Tally, empty_tally, reordered
from vegasmodel.engines.fluid.run import raise_faults
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.metrics import Floats, drift, standard_error
from vegasmodel.results.steady_state import LimitCycle
from vegasmodel.status import Status

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario

CLOSE = 1e-6  # packets: states that differ by at most this count as equal
STORED = 8  # greatest number of earlier states that are stored for the same whole windows
SEARCH = 1280.0  # round trips of the search for a cycle, unless ``longest`` is given
FIRST = 1280.0  # round trips of the first average; each further one is twice as long
LONGEST = 20_480.0  # round trips of the longest average
REST = 16.0  # if no window moves in 16 round trips, the windows are at rest
BLOCKS = 16  # number of equal parts of the time of an average
PRECISION = 0.005  # standard error over mean of averages that count as precise enough


class _Motion:
    """The senders and the link of a scenario, with functions that advance their state in time."""

    def __init__(self, scenario: Scenario) -> None:
        """Prepare the simulation, with the senders and the link at time 0."""
        from vegasmodel.engines.fluid.sampled.march import march
        from vegasmodel.engines.fluid.sampled.state import SIZE, write_state
        from vegasmodel.engines.states import difference
        from vegasmodel.engines.tables import direct

        # compiled functions, of which many calls follow, so they should be fast
        self._march = direct(march)
        self._write_state, self._difference = direct(write_state), direct(difference)
        self._scenario, self.flows = scenario, senders(scenario)
        # the steady state is that of the flows present at the end of the run: they never stop here
        stays = self.flows["stop"] >= scenario.run.duration
        self.flows["stop"][stays] = np.inf
        self.state = begin(scenario, self.flows, 0)
        self.n, self._longest_rtt = self.flows.size, self.flows["rtt"].max()
        # the time from which on all flows have started, and those that stop have stopped
        self.started = float(self.flows["start"].max())
        if not stays.all():
            self.started = max(self.started, float(self.flows["stop"][~stays].max()))
        self.link, self._march_arguments = scenario.links[0], march_arguments(scenario, self.flows)
        self._no_times, self._no_samples = np.empty(0), np.empty((0, 3 * self.n + 1))
        self.delay_based = np.array([m.flow.delay_based for m in scenario.members])
        self._row = np.empty(SIZE * self.n)  # room for a state (``now``)

    @property
    def time(self) -> float:
        """The simulated time so far, in seconds."""
        return float(self.state["time"][0])

    @property
    def trip(self) -> float:
        """The longest RTT of any flow at the present queueing delay, in seconds."""
        return float(self._longest_rtt + self.state["delay"][0])

    def integrate(self, end: float, tally: Tally, *, until_fall: bool = False) -> bool:
        """Simulate up to time ``end``; with ``until_fall``, only until a window falls.

        Only a fall by a packet or more at once counts, for example after a loss. The time integrals
        are added to ``tally``. Returns whether a window has fallen.
        """
        further = (*self._march_arguments, until_fall, tally, self._no_times, self._no_samples)
        code = advance(self._scenario, self._march, self.flows, self.state, end, *further)
        return code == Status.FALL

    def now(self) -> _State:
        """The present state of senders and link, and the count of random numbers drawn so far."""
        size = self._write_state(self._row, self.flows, self.state)
        return _State(self.time, self._row[:size].copy(), int(self.state["draws"][0]))

    def difference(self, one: _State, later: _State) -> float:
        """The largest difference between two states: ``one`` and a ``later`` one.

        The states count as equal if it is at most ``CLOSE``. The result is infinite if a random
        number was drawn in the time between the two states, because a random motion does not
        repeat. It may also be infinite if a difference exceeds ``CLOSE``, because the comparison
        stops there.

        The states contain for each flow the time since its last loss. Without a loss this time only
        grows. So a difference counts only if the flow has lost a packet between the two states.
        """
        if later.draws > one.draws:
            return math.inf
        n = self.n
        # ``row[:n]`` are the packets that the flows have lost, and ``row[n : 2 n]`` the times since
        # their last losses; the rest of the rows is compared first
        worst: float = self._difference(one.row, later.row, 2 * n, CLOSE)
        if worst < math.inf:
            lost = later.row[:n] > one.row[:n]
            since = np.abs(one.row[n : 2 * n] - later.row[n : 2 * n])
            worst = float(max(worst, since[lost].max(initial=0.0)))
        return worst

    def moved(self, window: Floats, kept: Floats) -> float:
        """How far the flows' windows, or numbers that their laws keep, are from earlier values.

        ``window`` [flow] and ``kept`` [flow, number] are these values. The result is the largest
        difference.
        """
        changed = np.abs(self.flows["kept"] - kept).max()
        return float(max(np.abs(self.flows["cwnd"] - window).max(), changed))

    def rested(self, window: Floats, kept: Floats) -> bool:
        """Whether all windows equal ``window``, an array [flow], and no loss can move them.

        The numbers that the flows' laws keep must equal ``kept``, too. The result is False if the
        link has random loss, if RED may drop a packet, or if a sender has not yet detected a loss.
        It is also False if a sender repairs losses or waits for its retransmission timer: its
        window will grow again.
        """
        if not self.moved(window, kept) <= CLOSE:
            return False
        drops = self.link.loss > 0.0 or self.state["red_count"][0] >= 0.0
        undetected = self.flows["undetected"].any()
        repairs = (self.flows["recovery_left"] > 0.0) | (self.flows["timeout_ends"] > self.time)
        return not (drops or undetected or repairs.any())


class _State(NamedTuple):
    """The state of senders and queue at one time.

    The search for a cycle compares it with earlier states (``_Motion.difference``).
    """

    time: float
    row: Floats  # as ``sampled.state`` writes it
    draws: int  # random numbers drawn so far


def steady(scenario: Scenario, longest: float | None = None) -> LimitCycle:
    """Find the steady state of a scenario that is simulated in time steps (package ``sampled``).

    A flow whose stop time comes before the end of the run is not a part of the steady state. So the
    search begins when all flows have started, and such flows have stopped. There are four results:

    - The motion is periodic: the averages are those of one cycle.
    - No window moves: the averages are those of one round trip.
    - The windows only grow: the averages are NaN, and ``status`` says why.
    - Otherwise the averages are over ``FIRST`` round trips. If the standard error of a throughput
      is more than ``PRECISION`` of it, or if a throughput drifts (``metrics.drift``), they are
      replaced by averages over the next 2 ``FIRST`` round trips, then over the next 4 ``FIRST`` and
      so on, up to ``LONGEST``. If a throughput drifts in the last of them, the averages are NaN.

    ``longest``, if given, replaces two numbers of round trips: ``SEARCH``, after which the search
    for a cycle ends, and ``LONGEST``. Raises ``ValueError`` if the model cannot simulate the
    scenario, or if a function of a user's law returns an unusable number.
    """
    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    motion, search = _Motion(scenario), SEARCH if longest is None else longest
    longest_average = LONGEST if longest is None else longest
    motion.integrate(motion.started, empty_tally(motion.n))
    found = _repeats(motion, motion.time + search * motion.trip)
    trips = min(FIRST, longest_average)
    while found is None:
        found, drifts = _average(motion, trips * motion.trip)
        least = least_error(scenario, found.throughput)
        found = replace(found, spread=np.maximum(found.spread, least))
        busy = found.throughput > 0
        precise = bool(np.all(found.spread[busy] <= PRECISION * found.throughput[busy]))
        if (drifts or not precise) and 2.0 * trips <= longest_average:
            trips, found = 2.0 * trips, None
        elif drifts:
            found = LimitCycle.failed(motion.n, Status.UNSETTLED.reason)
    raise_faults(scenario)
    return found


def _repeats(motion: _Motion, end: float) -> LimitCycle | None:
    """Simulate until a state has returned twice, or until no window changes any more.

    The state is recorded each time a window falls. It counts as returned twice only if the number
    of falls is the same from its first occurrence to the second and from the second to the third.

    Returns the steady state, or None if none is found before time ``end``. There is one exception:
    if the windows have only grown until then, a longer search would not help. The result is then a
    ``LimitCycle`` whose averages are NaN.
    """
    # earlier states, each with the number of its fall; the key has the windows in whole packets
    stored: dict[bytes, list[tuple[int, _State]]] = {}
    # The falls of windows are numbered, and ``fall`` is the number of the present one. When a state
    # occurs for the second time, it becomes ``second``, and ``second_fall`` is the number of this
    # fall. If the motion is periodic, the same state occurs again at the fall number ``due``.
    # ``tally`` has the integrals since ``second``, that is, over one period.
    fall, second_fall, due, tally = 0, 0, 0, empty_tally(motion.n)
    second = motion.now()
    sizes = list[float]()  # the sum of all windows after each 16 round trips without a fall
    while motion.time < end:
        window, kept = motion.flows["cwnd"].copy(), motion.flows["kept"].copy()
        if not motion.integrate(motion.time + REST * motion.trip, tally, until_fall=True):
            sizes.append(float(motion.flows["cwnd"].sum()))
            found = _rest(motion) if motion.rested(window, kept) else None
            if found is not None:
                return found
            continue
        fall += 1
        state, key = motion.now(), np.floor(motion.flows["cwnd"] + CLOSE).tobytes()
        if fall == due and motion.difference(second, state) <= CLOSE:
            period, residual = state.time - second.time, motion.difference(second, state)
            return _answer(motion, "periodic", period, due - second_fall, tally, residual=residual)
        # has this state occurred before? (not asked while the third time of another one is awaited)
        for number, earlier in reversed(stored.get(key, ())):  # ``number`` is that of its fall
            if fall >= due and motion.difference(earlier, state) <= CLOSE:
                second, second_fall, due = state, fall, fall + (fall - number)
                tally = empty_tally(motion.n)
                break
        stored[key] = [*stored.get(key, ())[-STORED:], (fall, state)]
    if fall == 0 and np.all(np.diff(sizes) > 0):  # the windows have only grown
        return LimitCycle.failed(motion.n, Status.UNSETTLED.reason)
    return None


def _rest(motion: _Motion) -> LimitCycle | None:
    """The result if no window moves: averages over one round trip of the longest RTT.

    Returns None if a window moves in this round trip after all, or if a number that a law keeps
    changes: it may move the window later.
    """
    window, kept = motion.flows["cwnd"].copy(), motion.flows["kept"].copy()
    tally = empty_tally(motion.n)
    motion.integrate(motion.time + motion.trip, tally)
    moved = motion.moved(window, kept)
    if moved > CLOSE:
        return None
    return _answer(motion, "fixed point", 0.0, 0, tally, residual=moved)


def _average(motion: _Motion, span: float) -> tuple[LimitCycle, bool]:
    """The result if windows and queue never repeat: averages over the next ``span`` seconds.

    The time is divided into equal parts.  The standard error of an average follows from the scatter
    of the averages over the parts.  Also returns whether a throughput drifts from part to part.
    """
    total, means = empty_tally(motion.n), []
    for _ in range(BLOCKS):
        block = empty_tally(motion.n)
        motion.integrate(motion.time + span / BLOCKS, block)
        means.append(block.delivered / block.queue[SPAN])
        for sum_, part in zip(total, block, strict=True):
            sum_ += part
    rates = np.array(means)
    answer = _answer(motion, "neither found", math.nan, 0, total, spread=standard_error(rates))
    return answer, bool(np.any(drift(rates, PRECISION)))


def _answer(
    motion: _Motion,
    kind: str,
    period: float,
    falls: int,
    tally: Tally,
    *,
    residual: float = math.nan,
    spread: Floats | None = None,
) -> LimitCycle:
    """The steady state of this ``kind``, with the averages over the time that ``tally`` covers.

    ``falls`` is the number of falls of windows in a period. The other arguments become fields of
    the result. ``residual`` is the greatest change of a window or a queue after one period, or at a
    fixed point after one round trip, in packets.
    """
    # in the order of the scenario's flows (``begin`` has sorted the senders)
    back = motion.flows["number"].argsort()
    flows, tally = motion.flows[back], reordered(tally, back)
    found = averages(tally)
    # ``wait`` is the mean random wait in the sender's host, which ``rtt`` includes
    with np.errstate(invalid="ignore", divide="ignore"):
        found["rtt_mean"] = tally.moving / tally.delivered - flows["wait"]
    base = flows["rtt"] - flows["wait"] + flows["over_estimate"]
    return LimitCycle(
        kind=kind,
        period=period,
        overflows=falls,
        spread=np.zeros(motion.n) if spread is None else spread[back],
        base_rtt=np.where(motion.delay_based, base, np.nan),
        losses=np.where(math.isnan(period), math.nan, tally.losses),  # in one period
        multipliers=np.empty(0),
        residual=residual,
        status=Status.DONE.reason,
        **found,
    )
