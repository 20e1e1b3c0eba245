"""The steady state of windows that decide once a round trip, or of any law's drift.

States are compared at the moments at which ACKs make a window fall by a packet or more: a cut, or a
step down of Vegas.  If the state of senders and queue returns, and returns once more after as many
such moments, the motion is periodic.  If no window moves, the state is a fixed point.  Otherwise,
and if the scenario is random, the answer is the long average with its standard error.  The windows
move in steps of whole packets, so there are no multipliers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vegasmodel.engines.fluid import run as fluid_run
from vegasmodel.engines.fluid.continuous import empty_tally
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.prediction import LimitCycle
from vegasmodel.status import Status

if TYPE_CHECKING:
    from vegasmodel.engines.fluid.records import Tally
    from vegasmodel.scenario import Scenario

CLOSE = 1e-6  # packets: states nearer than this are one
LIKE = 8  # states whose windows agree in whole packets, of which as many are remembered
FIRST = 1280.0  # round trips of the first average; the next, if any, are twice as long
LONGEST = 20_480.0  # round trips of the last
REST = 16.0  # round trips in which no window moves
BLOCKS = 16  # of an average
SURE = 0.005  # standard error over mean, at which an average is long enough
PAST = ("lost", "rounds_at_rest")  # columns that only add up,
INSTANTS = ("timeout_ends", "last_loss")  # ... that are times,
WITHIN_A_STEP = ("extra", "extra_lost", "growth_before", "delivery_rate")  # ... and made anew


class _Motion:
    """A scenario's senders and link, with functions that advance them."""

    def __init__(self, scenario: Scenario) -> None:
        from vegasmodel.engines.fluid.sampled.march import march

        self._march = march
        self.flows = fluid_run.senders(scenario)
        # the steady state is that of the flows present at the end, for as long as it takes
        stays = self.flows["stop"] >= scenario.run.duration
        self.flows["stop"][stays] = np.inf
        self.state = fluid_run.begin(scenario, self.flows, 0)
        self.n = self.flows.size
        self.started = float(self.flows["start"].max())
        if not stays.all():
            self.started = max(self.started, float(self.flows["stop"][~stays].max()))
        self.link, self._frame = scenario.links[0], fluid_run.frame(scenario)
        self._nowhere = np.empty((0, 2 * self.n + 1))
        self.delay_based = np.array([find(m.flow.law).delay_based for m in scenario.members])
        names = list(self.flows.dtype.names or ())
        moving = names[names.index("active") :]
        self._columns = [n for n in moving if n not in (*PAST, *INSTANTS, *WITHIN_A_STEP)]

    @property
    def time(self) -> float:
        return float(self.state["time"][0])

    @property
    def trip(self) -> float:
        """The longest round trip now, seconds."""
        return float(self.flows["rtt"].max() + self.state["delay"][0])

    def integrate(self, end: float, tally: Tally, *, until_fall: bool = False) -> bool:
        """Advance to ``end`` or until a window falls; True if one fell."""
        told = (*self._frame, until_fall, tally, np.empty(0), self._nowhere)
        return bool(self._march(self.flows, self.state, end, *told))

    def now(self) -> _State:
        """The part of the state on which the future depends."""
        flows = self.flows
        moving = np.array([flows[name].astype(np.float64) for name in self._columns])
        left = np.maximum(flows["timeout_ends"] - self.time, 0.0)
        queue = np.full(self.n, self.state["delay"][0])
        return _State(
            self.time, flows["cwnd"].copy(), np.array([*moving, left, queue]),
            self.time - flows["last_loss"], flows["lost"].copy(), int(self.state["draws"][0]),
        )  # fmt: skip

    def rested(self, before: _State) -> bool:
        """Whether no window has moved since ``before`` and no further loss can come."""
        moved = np.abs(self.flows["cwnd"] - before.window).max()
        drops = self.link.loss > 0.0 or self.state["red_passed"][0] > 0.0
        return bool(moved <= CLOSE) and not drops and not self.flows["undetected"].any()


class _State(NamedTuple):
    """State of senders and queue just after a window has fallen."""

    time: float
    window: Floats  # [flow]
    moving: Floats  # [column, flow]
    since: Floats  # [flow] seconds since the last loss
    lost: Floats  # [flow] packets so far
    draws: int  # by chance, so far

    def apart(self, later: _State) -> float:
        """The largest difference of two states; infinite if random numbers were drawn between them.

        The time since a flow's last loss counts only if the flow has lost a packet between them.
        """
        if later.draws > self.draws:
            return math.inf
        lost = later.lost > self.lost
        with np.errstate(invalid="ignore"):
            apart = np.where(self.moving == later.moving, 0.0, np.abs(self.moving - later.moving))
        return float(max(apart.max(), np.abs(self.since - later.since)[lost].max(initial=0.0)))


def steady(scenario: Scenario, longest: float | None = None) -> LimitCycle:
    """Run until the motion repeats or its average is known, once all long-lived flows have started.

    ``longest`` is the longest run after that, in round trips.  Raises ``ValueError`` where the
    model has no equation for the scenario.
    """
    reason = fluid_run.unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    motion, longest = _Motion(scenario), LONGEST if longest is None else longest
    motion.integrate(motion.started, empty_tally(motion.n))
    trips = min(FIRST, longest)
    found = _repeats(motion, motion.time + trips * motion.trip)
    while found is None:
        found = _average(motion, trips * motion.trip)
        busy = found.throughput > 0
        sure = bool(np.all(found.spread[busy] <= SURE * found.throughput[busy]))
        if not sure and 2.0 * trips <= longest:
            trips, found = 2.0 * trips, None
    fluid_run.sound(scenario)
    return found


def _repeats(motion: _Motion, end: float) -> LimitCycle | None:
    """Run until the state has returned twice, or rests; None if neither happens up to ``end``."""
    seen: dict[bytes, list[tuple[int, _State]]] = {}
    section, came, due, tally = 0, 0, 0, empty_tally(motion.n)
    first, sizes = motion.now(), list[float]()
    while motion.time < end:
        before = motion.now()
        if not motion.integrate(motion.time + REST * motion.trip, tally, until_fall=True):
            sizes.append(float(motion.flows["cwnd"].sum()))
            if motion.rested(before):
                return _rest(motion)
            continue
        section += 1
        state, key = motion.now(), np.floor(motion.flows["cwnd"] + CLOSE).tobytes()
        if section == due and first.apart(state) <= CLOSE:
            period, residual = state.time - first.time, first.apart(state)
            return _answer(motion, "periodic", period, due - came, tally, residual=residual)
        alike = [k for k, then in seen.get(key, ()) if then.apart(state) <= CLOSE]
        if alike and section >= due:
            first, came, due = state, section, 2 * section - alike[-1]
            tally = empty_tally(motion.n)
        seen[key] = [*seen.get(key, ())[-LIKE:], (section, state)]
    if section == 0 and np.all(np.diff(sizes) > 0):
        return _failure(motion)
    return None


def _rest(motion: _Motion) -> LimitCycle:
    """Averages over a round trip in which no window moves."""
    tally, before = empty_tally(motion.n), motion.now()
    motion.integrate(motion.time + motion.trip, tally)
    moved = float(np.abs(motion.flows["cwnd"] - before.window).max())
    return _answer(motion, "fixed point", 0.0, 0, tally, residual=moved)


def _average(motion: _Motion, span: float) -> LimitCycle:
    """The mean of the next ``span`` seconds, with its standard error over blocks."""
    total, means = empty_tally(motion.n), []
    for _ in range(BLOCKS):
        block = empty_tally(motion.n)
        motion.integrate(motion.time + span / BLOCKS, block)
        means.append(block.delivered / block.queue[1])
        for sum_, part in zip(total, block, strict=True):
            sum_ += part
    spread = np.std(means, axis=0, ddof=1) / math.sqrt(BLOCKS)
    return _answer(motion, "neither found", math.nan, 0, total, spread=spread)


def _answer(
    motion: _Motion,
    kind: str,
    period: float,
    sections: int,
    tally: Tally,
    *,
    residual: float = math.nan,
    spread: Floats | None = None,
) -> LimitCycle:
    flows, duration = motion.flows, tally.queue[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt_mean = tally.window / tally.delivered
    return LimitCycle(
        kind=kind,
        period=period,
        overflows=sections,
        throughput=tally.delivered / duration,
        spread=np.zeros(motion.n) if spread is None else spread,
        window=tally.window / duration,
        rtt_mean=rtt_mean,
        base_rtt=np.where(motion.delay_based, flows["rtt"] + flows["over_estimate"], np.nan),
        queue_mean=float(tally.queue[0] / duration),
        losses=np.where(math.isnan(period), math.nan, tally.losses),
        multipliers=np.empty(0),
        residual=residual,
        status=Status.DONE.reason,
    )


def _failure(motion: _Motion) -> LimitCycle:
    nan = np.full(motion.n, np.nan)
    return LimitCycle(
        "neither found", math.nan, 0, nan, nan, nan, nan, nan, math.nan,
        nan, np.empty(0), math.nan, Status.UNSETTLED.reason,
    )  # fmt: skip
