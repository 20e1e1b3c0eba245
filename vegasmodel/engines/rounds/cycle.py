"""Finds the steady state of the simulator ``rounds``, by running it until its state repeats.

The state of the simulator consists of the senders, the packets in flight and the queues. The search
records the state each time the number of whole packets in a flow's window falls. The motion counts
as periodic if a state is recorded three times, with as many other records between the second and
the third time as between the first and the second. If the motion is not periodic, the last three
quarters of the run decide. If all windows are constant in this time, the steady state is a fixed
point. Otherwise the result is an average over this time, with its standard error. This error
follows from the differences between parts of the time, and from those between equal flows
(``equal_flows.py``). If the average is not precise enough, or if a window still drifts to its
steady state, the search may be repeated in a longer run. If a window drifts in the longest run,
there is no result.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.equal_flows import least_error
from vegasmodel.engines.starts import start_times
from vegasmodel.fields import kinds
from vegasmodel.metrics import Floats, drift, standard_error
from vegasmodel.results.steady_state import LimitCycle
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status

if TYPE_CHECKING:
    from vegasmodel.engines.rounds.run import Simulation, Totals
    from vegasmodel.engines.rounds.snapshot import Observer, Snapshot

FIRST_TRIPS = 1280  # round trips of the first try; each further try has twice as many
LEFT_OUT = 0.25  # part of a try that is left out as transient
SAMPLES = 4  # number of samples per shortest RTT
STATE_TOLERANCE = 1e-6  # packets: states that differ by less count as equal
LONGEST_TIMEOUTS = 640.0  # seconds, ten of the longest timeouts: length of a try with timeouts
STATES_PER_KEY = 9  # stored states with the same key, at most (``_repeats``)
MAX_STORED = 2**24  # floats in all states that have been stored; with so many the search ends
LONGEST_DRIFT = 20_480.0  # round trips: length of a try with windows that drift
LEAST_TRIPS = 2500  # least number of round trips of a try whose averages can end the search
BLOCKS = (16, 8, 4)  # numbers of blocks from which ``_means`` computes standard errors
ENOUGH_PRECISION = 0.005  # standard error over mean of averages that count as precise
DRIFT_BLOCKS = 8  # parts of the time of an average, whose means show a drift (``_drifts``)


@kinds.checked
def steady(scenario: Scenario, longest: float | None = None) -> LimitCycle:
    """Find the steady state of a scenario by simulation.

    If the state of the simulator returns periodically, the result has means over two periods. If
    not, it has means over the last three quarters of a long run. The search begins when all flows
    have started, and all flows that stop before the end of the scenario's run have stopped.

    The search makes one or more tries. The first try simulates ``FIRST_TRIPS`` round trips, and
    each further try twice as many as the one before. Round trips are counted by the longest RTT.
    The search ends with the first try that meets one of these conditions:

    - The motion is periodic, or all windows are constant.
    - The try has more than ``LEAST_TRIPS`` round trips, its averages are precise
      (``ENOUGH_PRECISION``), and no window drifts (``_drifts``).
    - The try has ``longest`` round trips, the greatest number allowed.

    If ``longest`` is not given, the first try decides whether there are others. If a retransmission
    timer expires in the first try, further tries may last up to ``LONGEST_TIMEOUTS`` simulated
    seconds. If a window drifts in it, they may have up to ``LONGEST_DRIFT`` round trips. Otherwise
    there are no further tries.

    If start times are random (``start_jitter``), they are those of the first run of ``answer``.

    If a run fails, ``status`` says why, and all numbers of the result are NaN. The same holds if a
    window drifts in the last try. The field for Floquet multipliers is always empty.
    """
    from vegasmodel.engines.rounds.run import Simulation

    starts = start_times(scenario, 0)
    members, duration = scenario.members, scenario.run.duration
    rtts = [member.rtt for member in members]
    stops = [member.stop for member in members if member.stop < duration]
    started = max([float(starts.max()), *stops])
    trips = float(FIRST_TRIPS)
    while True:
        trips = min(trips, longest or trips)
        timed = _for_a_try(scenario, started, trips * max(rtts))
        samples = math.ceil(timed.run.duration / min(rtts) * SAMPLES) + 1
        simulation = Simulation(timed, samples=samples, starts=starts)
        with simulation.with_progress():
            status, found = _repeats(simulation, started)
            if found is not None:
                return found
            if status == Status.FALL:
                status, _ = simulation.proceed()
        if status != Status.DONE:
            return LimitCycle.failed(len(rtts), Status(status).reason)
        totals = simulation.totals(status)
        if _at_rest(totals):
            return _means(totals, "fixed point", period=0.0, residual=0.0)
        drifts = _drifts(totals)
        average = _means(totals, "neither found", period=math.nan, residual=math.nan)
        least = least_error(timed, average.throughput)
        average = replace(average, spread=np.maximum(average.spread, least))
        busy = average.throughput > 0
        precise = np.all(average.spread[busy] <= ENOUGH_PRECISION * average.throughput[busy])
        if longest is None:
            waited = bool(np.any(totals.flows["timeouts"] > 0))  # for a retransmission timer
            longest = max(
                trips,
                LONGEST_TIMEOUTS / max(rtts) if waited else 0.0,
                LONGEST_DRIFT if drifts else 0.0,
            )
        if trips >= longest or (precise and trips > LEAST_TRIPS and not drifts):
            return LimitCycle.failed(len(rtts), Status.UNSETTLED.reason) if drifts else average
        trips *= 2.0


def _for_a_try(scenario: Scenario, started: float, span: float) -> Scenario:
    """The same scenario, but its run ends ``span`` seconds after the time ``started``.

    A quarter of this time (``LEFT_OUT``) counts as warm-up. Flows that do not stop before the end
    of the given scenario go on to the new end.
    """
    end = started + span
    flows = tuple(
        group
        if group.stop is not None and group.stop < scenario.run.duration
        else replace(group, stop=None)
        for group in scenario.flows
    )
    timing = replace(scenario.run, duration=end, warmup=started + LEFT_OUT * span)
    return replace(scenario, flows=flows, run=timing)


def _repeats(simulation: Simulation, started: float) -> tuple[int, LimitCycle | None]:
    """Simulate until a state has returned twice, or until the run ends; finds periodic motions.

    From the time ``started`` on, the function looks at the state each time a flow's window falls.
    The motion counts as periodic if the same state occurs three times, with as many falls between
    the first and the second time as between the second and the third. The function also stops when
    it has stored ``MAX_STORED`` floats, those of dropped states included. Returns the status of the
    run, and the steady state, or None if it found no period.

    To store and compare all states in full would take long. So each state has a key: a few integers
    for each flow, such as its window rounded down to packets. When a key occurs for the first time,
    only the key is stored. When it occurs again, the full state is stored and compared with the
    stored states of the same key, which are the last ``STATES_PER_KEY`` ones. So if no other state
    had the key, a periodic motion is found when its state occurs for the fourth time: the first
    time gives the key only.
    """
    from vegasmodel.engines.rounds.snapshot import Observer

    observer = Observer(simulation.net, simulation.holes, simulation.capacity)
    # for each key the stored states, each with the index of the fall at which it was stored
    stored: dict[bytes, deque[tuple[int, Snapshot]]] = {}
    fall = 0  # index of the present fall; the falls of all flows are counted together
    # When a state equals a stored one, ``first`` becomes the stored one, and ``period`` the number
    # of falls between the two. If the motion is periodic, the state occurs for the third time at
    # the fall ``due``. Until then ``first`` stays as it is.
    first: Snapshot | None = None
    period, due = 0, -1
    n_stored = 0  # floats in all states that were stored
    status, now = simulation.proceed(started)
    while status == Status.FALL and n_stored < MAX_STORED:
        fall += 1
        key, row = observer.look(now)  # ``row``: the full state
        if key in stored:
            state = observer.keep(now, key, row)
            if fall == due and first is not None:  # the third time?
                residual = observer.difference(first, state, STATE_TOLERANCE)
                if residual <= STATE_TOLERANCE:
                    return status, _periodic(simulation, observer, first, state, period, residual)
            for index, earlier in reversed(stored[key]):
                difference = math.inf
                if fall > due:
                    difference = observer.difference(earlier, state, STATE_TOLERANCE)
                if difference <= STATE_TOLERANCE:
                    first, period, due = earlier, fall - index, fall + (fall - index)
                    break
            stored[key].append((fall, state))
            n_stored += state.state.size
        else:
            stored[key] = deque(maxlen=STATES_PER_KEY)
        status, now = simulation.proceed(started)
    return status, None


def _settled(totals: Totals) -> int:
    """Index of the first sample after the end of warm-up, at which the averages begin."""
    begin = float(totals.first_queue["mark_now"])
    return int(np.searchsorted(totals.times, begin))


def _at_rest(totals: Totals) -> bool:
    """Whether all windows are constant after warm-up, in all samples of the run."""
    window = totals.window[_settled(totals) :]
    return bool(np.all(window.max(axis=0) == window.min(axis=0)))


def _drifts(totals: Totals) -> bool:
    """Whether a window drifts after warm-up (``drift``): it is not in its steady state yet."""
    window = totals.window[_settled(totals) :]
    if len(window) < DRIFT_BLOCKS:
        return False
    parts = np.array_split(window, DRIFT_BLOCKS)
    return bool(np.any(drift(np.array([part.mean(axis=0) for part in parts]), ENOUGH_PRECISION)))


def _periodic(
    simulation: Simulation,
    observer: Observer,
    before: Snapshot,
    after: Snapshot,
    falls: int,
    residual: float,
) -> LimitCycle:
    """The steady state if the motion is periodic: means over two periods.

    The states ``before`` and ``after`` are equal, and two periods lie between them. ``falls`` is
    the number of falls of windows in one period, all flows together. ``residual`` is the largest
    difference between the two states, in packets.
    """
    from vegasmodel.engines.rounds.flows import sum_by_member
    from vegasmodel.engines.rounds.state import array

    # the flows' totals at the two states, and two periods as the time between them
    n, span = simulation.per_flow.shape[1], after.time - before.time
    old, new = (sum_by_member(observer.flows(one), n) for one in (before, after))

    def more(name: str) -> Floats:
        """How much the count ``name`` of each flow has grown between the two states."""
        counted: Floats = new[name] - old[name]
        return counted

    totals, links = simulation.totals(0), array(simulation.net.links).copy()
    links["mark_area"] = before.areas  # so that ``_waiting`` counts from the first state on
    first, last = np.searchsorted(simulation.times, (before.time, after.time))
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt = more("rtt_total") / more("rtt_packets")
    return LimitCycle(
        kind="periodic",
        period=0.5 * span,
        overflows=falls,
        throughput=more("delivered") / span,
        spread=np.zeros(n),
        window=totals.window[first:last].mean(axis=0),
        rtt_mean=rtt,
        base_rtt=totals.base,
        queue_mean=_waiting(totals, links, span),
        losses=0.5 * more("lost"),  # in one period
        multipliers=np.empty(0),
        residual=residual,
        status="done",
    )


def _waiting(totals: Totals, links: NDArray[np.void], span: float) -> float:
    """Mean number of packets that wait at the first link, over ``span`` seconds.

    ``links`` are the queues' records. They contain the totals at the beginning of these seconds and
    at their end.
    """
    from vegasmodel.engines.rounds.answers import waiting

    return float(totals.of_links(waiting(links))[0]) / span


def _means(totals: Totals, kind: str, period: float, residual: float) -> LimitCycle:
    """The result if the motion is not periodic: means over the run after its warm-up.

    ``LimitCycle`` is the class of all results of ``steady``, also of those without a cycle. Here
    ``kind`` is "fixed point" if all windows are constant. It is "neither found" if the search found
    neither a fixed point nor a periodic motion. ``kind``, ``period`` and ``residual`` become fields
    of the result.

    In the result, ``spread`` is the standard error of the throughputs, from the differences between
    parts of the run. It is 0 at a fixed point, and NaN if the run has too few samples. ``losses``
    and ``overflows`` count events in one period. At a fixed point there are none, so both are 0.
    Otherwise the period is unknown, so ``losses`` is NaN; ``overflows`` is an integer, which cannot
    be NaN, and stays 0.
    """
    times, delivered = totals.times, totals.delivered
    first, last = _settled(totals), len(times) - 1
    rates = (delivered[last] - delivered[first]) / (times[last] - times[first])
    spread = np.zeros_like(rates)
    # The time is divided into n blocks, and the standard error is computed from the blocks' means.
    # If the means of successive blocks correlate, the computed error is too small. Longer blocks
    # correlate less. So the error is computed for several n, and ``spread`` is the largest of these
    # errors.
    for n in BLOCKS if kind == "neither found" else ():
        if last - first < n:
            spread[:] = math.nan
            break
        edges = np.linspace(first, last, n + 1).astype(np.intp)
        blocks = np.diff(delivered[edges], axis=0) / np.diff(times[edges])[:, None]
        spread = np.maximum(spread, standard_error(blocks))
    part = slice(first, last)
    packets = np.diff(delivered[first : last + 1], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rtt = (totals.rtt[part] * packets).sum(axis=0) / packets.sum(axis=0)
    # The queue is summed up from the end of warm-up on, which is the time ``mark_now``. The flows
    # are known only at samples, so their means begin at the first sample at or after this time.
    span = float(times[-1] - totals.first_queue["mark_now"])
    window, queue = totals.window[part], _waiting(totals, totals.routes.links, span)
    losses = np.full_like(rates, math.nan if kind == "neither found" else 0.0)
    return LimitCycle(
        kind=kind,
        period=period,
        overflows=0,
        throughput=rates,
        spread=spread,
        window=window.mean(axis=0),
        rtt_mean=rtt,
        base_rtt=totals.base,
        queue_mean=queue,
        losses=losses,
        multipliers=np.empty(0),
        residual=residual,
        status="done",
    )
