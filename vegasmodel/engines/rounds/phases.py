"""Tests for phase effects: whether random waits of the senders change the throughputs.

Phase effects occur at a drop-tail queue: the packets of loss-based senders reach the full queue in
the same order again and again, so the same sender always loses packets (Floyd and Jacobson, 1992).
Phase effects do not occur if senders wait a random time of up to a packet's transmission time
before they send. The scenario says whether and how long its senders wait (``send_jitter``). To find
out whether phase effects matter, the throughputs of the scenario are compared with those of one or
two other simulations:

- If the scenario's senders wait, the same scenario is simulated without waits.
- If all senders wait less than a packet's transmission time, or not at all, the same scenario is
  simulated with waits of up to this time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from vegasmodel.engines.rounds.answers import answer, half_time
from vegasmodel.metrics import Floats, delivered, standard_error, student_t
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import DropTail, RateDelay, Run, Scenario
from vegasmodel.status import Status

DIFFERENT = 0.1  # of the mean throughput: smaller differences of throughputs do not count
ROUNDING = 1e-9  # error that the degrees of freedom may have
GROUPS_SHOWN = 6  # groups whose throughputs are written out


def possible(scenario: Scenario, found: Prediction | None = None) -> bool:
    """Whether phase effects are possible: the same flow may then lose packets again and again.

    ``found`` is the prediction for the scenario. Four conditions must hold:

    - A flow crosses a drop-tail queue that can overflow. (The queues of a Rate-Delay router are
      drop-tail, too.)
    - No short flows arrive at random.
    - There are at least two flows, and one of them is loss-based.
    - In a run of ``found`` a packet has found a buffer full. Otherwise no loss depends on the order
      in which packets reach a queue. If ``found`` is None, this condition is left out.

    If all flows are delay-based, like Vegas, the buffer may be too small for all the packets that
    they want to keep there. Then they lose packets, too. So flows that have lost packets after
    warm-up in ``found`` count as loss-based, unless links lose packets at random.
    """
    tails = DropTail | RateDelay
    can_overflow = any(
        isinstance(link.queue, tails) and not link.never_full for link in scenario.crossed
    )
    lasting = all(g.arrivals == "once" for g in scenario.flows)
    losers = sum(not member.flow.delay_based for member in scenario.members)
    by_chance = any(link.loss > 0.0 for link in scenario.crossed)
    if losers == 0 and not by_chance and found is not None and found.loss_rate is not None:
        losers = int(np.count_nonzero(np.nan_to_num(found.loss_rate)))
    several = losers > 0 and len(scenario.members) > 1
    full = found is None or found.extra.get("overflowed", True)
    return can_overflow and lasting and several and full


def _waiting(scenario: Scenario, run: Run, *, usual: bool) -> Scenario:
    """The scenario with another ``run`` and other waits of the senders.

    All senders wait for up to ``Scenario.usual_jitter`` if ``usual`` is True. Otherwise none waits.
    """
    flows = tuple(
        dataclasses.replace(group, send_jitter=scenario.usual_jitter(group) if usual else 0.0)
        for group in scenario.flows
    )
    return dataclasses.replace(scenario, flows=flows, run=run)


def others(scenario: Scenario, run: Run) -> Iterator[tuple[Scenario, str]]:
    """Yield the scenarios to compare with: the same, but with ``run`` and other waits of senders.

    There are one or two of them:

    - If a sender of the given scenario waits a random time before it sends, the first one is the
      scenario without such waits.
    - If all senders of the given scenario wait less than ``Scenario.usual_jitter``, or not at all,
      the last one is the scenario in which all senders wait for up to this time.

    Each comes with a text for the user. In this text ``{0}`` stands for the throughputs with the
    longer waits, and ``{1}`` for those with the shorter ones.
    """
    waits = [scenario.jitter(group) for group in scenario.flows]
    usual = [scenario.usual_jitter(group) for group in scenario.flows]
    with_and_without = "if senders wait at random (send_jitter): {0}; if they never do: {1}"
    more_and_less = (
        "if senders wait up to a packet's transmission time: {0}; if they wait less, as here: {1}"
    )
    if any(waits):
        yield _waiting(scenario, run, usual=False), with_and_without
    if all(wait < longest for wait, longest in zip(waits, usual, strict=True)):
        words = more_and_less if any(waits) else with_and_without
        yield _waiting(scenario, run, usual=True), words


def _error(one: Prediction) -> Floats | float:
    """The standard error of a prediction's throughputs, [n_flows], in packets/s.

    A single run does not show how much throughputs scatter. So after a single run the result is
    infinite if the outcome is random, and otherwise 0.
    """
    if one.throughput_se is not None:
        return one.throughput_se
    random = any(a.name == "enough-runs" and a.holds is None for a in one.assumptions)
    return math.inf if random else 0.0


def _differ(found: Prediction, changed: Floats, error: Floats, runs: int) -> bool | None:
    """Whether the throughputs ``changed`` [n_flows] differ from those of the prediction ``found``.

    A flow's two throughputs are far apart if their difference exceeds the fraction ``DIFFERENT`` of
    the mean throughput of all flows. The result is False if this is so for no flow. It is True if,
    for such a flow, the difference is also significant (``_reach``). Otherwise the result is None,
    because the difference may be due to chance.

    The differences of all flows are tested together. Of 40 flows, two would else be outside their
    95 % intervals by chance. The throughputs of n flows that share a full link have one sum, so
    n - 1 differences are counted.

    ``changed`` are means over ``runs`` runs, and ``error`` [n_flows] are their standard errors.
    Flows that send only during warm-up have no throughput and are left out.
    """
    mean = np.asarray(found.throughput)
    distance = np.abs(changed - mean)
    far_apart = distance > DIFFERENT * np.nanmean(mean)
    if not np.any(far_apart):
        return False
    own_error = np.broadcast_to(_error(found), mean.shape)
    tests = max(int(np.count_nonzero(np.isfinite(distance))) - 1, 1)
    # the distances that chance alone can cause; no flow but those far apart can decide
    by_chance = [
        _reach(one, other, found.runs, runs, tests) if tested else math.inf
        for tested, one, other in zip(far_apart, own_error, error, strict=True)
    ]
    return True if np.any(distance > np.array(by_chance)) else None


def _reach(one: float, other: float, n: int, m: int, tests: int = 1) -> float:
    """Half the width of the 95 % interval of the difference of two means, by Welch's t.

    If ``tests`` differences are tested together, the interval is so wide that chance takes any of
    them out of its interval with a probability of at most 5 % (``student_t``).

    ``one`` and ``other`` are the standard errors of the means, over ``n`` and ``m`` runs. The error
    of a mean that is not random is 0. The degrees of freedom are rounded down. If an error is
    infinite or NaN, so is the result.
    """
    error = math.hypot(one, other)
    if error == 0.0 or not math.isfinite(error):
        return error
    parts = [(e / error) ** 4 / max(runs - 1, 1) for e, runs in ((one, n), (other, m)) if e > 0.0]
    return student_t(int(1.0 / sum(parts) + ROUNDING), tests) * error


def effects(scenario: Scenario, found: Prediction) -> Assumption:
    """The assumption that phase effects do not matter, and whether it holds for ``found``.

    ``found`` is the prediction for the scenario. If phase effects are not possible (``possible``),
    or if ``found`` has no throughputs, the assumption holds. Otherwise the scenario is simulated
    with other waits of the senders (``others``). The assumption holds if the throughputs do not
    differ (``_differ``). It is unknown whether it holds if one of the other scenarios cannot be
    simulated, or if a difference may be due to chance.

    If ``found`` contains runs that measured for only half of the time after warm-up, the other
    scenarios are also measured for half of that time.
    """
    if not possible(scenario, found) or found.throughput is None:
        return Assumption("phase-effects", True)
    result = Assumption("phase-effects", True)
    half = min(found.extra["durations"]) < scenario.run.duration
    duration = half_time(scenario.run) if half else scenario.run.duration
    run = dataclasses.replace(scenario.run, runs=None, duration=duration)
    for changed, words in others(scenario, run):
        assumption = _compared(scenario, found, changed, words)
        if assumption.holds is False:
            return assumption
        if assumption.holds is None:
            result = assumption
    return result


def _compared(scenario: Scenario, found: Prediction, changed: Scenario, words: str) -> Assumption:
    """The assumption that other waits of the senders would not change the throughputs.

    A wait is the random time that a sender lets pass before it sends (``send_jitter``). ``found``
    is the prediction for ``scenario``. ``changed`` is the same scenario with other waits. It is
    simulated here, and the assumption holds if its throughputs are those of ``found``. ``words`` is
    a text for the case that they differ. It has the place ``{0}`` for the throughputs with the
    longer waits, and ``{1}`` for those with the shorter waits.

    ``changed`` is run once if its outcome is not random, and otherwise at least twice. Further runs
    are made only while a difference may be due to chance.
    """

    def decided(single: Sequence[Prediction]) -> bool:
        """Whether no further run is needed after the runs ``single`` of ``changed``."""
        rates = np.array([one.throughput for one in single])
        differ = _differ(found, rates.mean(axis=0), standard_error(rates), len(single))
        return differ is not None or bool(np.isinf(_error(found)).any())

    other = answer(changed, enough=decided) if changed.by_chance else answer(changed, runs=1)
    status = other.extra.get("status", Status.DONE.reason)
    if other.throughput is None or status != Status.DONE.reason:
        why = other.reason or f"the simulation ended early: {status}"
        detail = f"there is no simulation with other waits to compare with: {why}"
        return Assumption("phase-effects", None, detail)
    mean, changed_mean = np.asarray(found.throughput), np.asarray(other.throughput)
    error = np.zeros(changed_mean.size) if other.throughput_se is None else other.throughput_se
    differ = _differ(found, changed_mean, error, other.runs)
    if differ is False:
        return Assumption("phase-effects", True)
    flows = zip(scenario.flows, changed.flows, strict=True)
    waits_longer = any(scenario.jitter(one) > changed.jitter(other) for one, other in flows)
    # throughputs with the longer waits, and with the shorter ones
    longer, shorter = (mean, changed_mean) if waits_longer else (changed_mean, mean)
    most = int(np.nanargmax(np.abs(longer - shorter)))  # the flow that differs most
    flow = scenario.members[most]
    detail = f"pkt/s {words.format(_written(scenario, longer), _written(scenario, shorter))}"
    if scenario.flows[flow.group].count > 1:  # its group's mean may hide the difference
        detail += f"; {flow.name} differs most: {longer[most]:.4g} and {shorter[most]:.4g}"
    if differ is None:
        detail += "; the difference may be due to chance; more runs (`runs`) would tell"
    return Assumption("phase-effects", None if differ is None else False, detail)


def _written(scenario: Scenario, rates: Floats) -> str:
    """The mean throughput of each group of flows as text, for example "vegas 120, reno 380".

    ``rates`` [n_flows] are the flows' throughputs in packets/s.
    """
    groups, sent = np.array([member.group for member in scenario.members]), delivered(rates)
    parts = [
        f"{group.name} {sent[groups == i].mean():.4g}" for i, group in enumerate(scenario.flows)
    ]
    return ", ".join(parts[:GROUPS_SHOWN]) + (", ..." if len(parts) > GROUPS_SHOWN else "")
