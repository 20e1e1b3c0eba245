"""Tests for phase effects: whether random waits of the senders change the answer.

Loss-based senders at a drop-tail queue can lock into phases: the same sender then loses packets
again and again (Floyd and Jacobson, 1992). If senders wait a short random time before they send,
this does not happen. So a scenario is simulated a second time. If its senders wait at random, they
do not wait in the second simulation. If they do not wait, they wait in the second simulation, for
as long as real hosts do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from vegasmodel.engines.rounds.answers import answer, halved
from vegasmodel.laws import find
from vegasmodel.metrics import Floats, delivered
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scatter import standard_error
from vegasmodel.scenario import DropTail, Scenario
from vegasmodel.status import Status

DIFFERENT = 0.1  # of the mean throughput: by so much two answers differ
GROUPS_SHOWN = 6  # groups whose throughputs are written out


def possible(scenario: Scenario, found: Prediction | None = None) -> bool:
    """Whether phase effects are possible at a drop-tail queue, so that the same flow always loses.

    They are possible if three conditions hold. A flow crosses a drop-tail queue that can overflow.
    All flows send without end. At least two flows have a loss-based law, or one does and a flow of
    another RTT is present. A single loss-based flow among Vegas flows of the same RTT shows no
    phase effects, because it alone loses packets.

    If there are Vegas flows only, those count as loss-based that have lost packets after the
    warm-up in ``found``, the prediction for the scenario. They lose packets if the buffer is too
    small for all the packets that they want to keep there.
    """
    crossed = [link for group in scenario.flows for link in scenario.path(group)]
    spills = any(isinstance(k.queue, DropTail) and not k.never_full for k in crossed)
    lasting = all(g.arrivals == "once" and g.size == math.inf for g in scenario.flows)
    losers = sum(not find(member.flow.law).delay_based for member in scenario.members)
    if losers == 0 and found is not None and found.loss_rate is not None:
        losers = int(np.count_nonzero(np.nan_to_num(found.loss_rate)))
    rtts = {member.rtt for member in scenario.members}
    mixed = losers > 0 and len(scenario.members) > 1 and (losers > 1 or len(rtts) > 1)
    return spills and lasting and mixed


def otherwise(scenario: Scenario) -> Scenario:
    """The scenario with the opposite choice of random waits before each sending.

    If senders wait in the given scenario, none waits in the result. If none waits, all wait in the
    result, for up to ``Scenario.usual_jitter`` seconds.
    """
    waits = any(scenario.jitter(group) > 0 for group in scenario.flows)
    flows = tuple(
        dataclasses.replace(group, send_jitter=0.0 if waits else scenario.usual_jitter(group))
        for group in scenario.flows
    )
    return dataclasses.replace(scenario, flows=flows)


def _error(one: Prediction) -> Floats | float:
    """The standard error of the throughputs of a prediction, [n_flows], in packets/s.

    It is 0 for a single run that is not random, and infinite for a single run of a random scenario.
    """
    if one.throughput_se is not None:
        return one.throughput_se
    unsure = any(a.name == "enough-runs" and a.holds is None for a in one.assumptions)
    return math.inf if unsure else 0.0


def _differ(found: Prediction, changed: Floats, error: Floats | float) -> bool | None:
    """Whether the throughputs ``changed`` [n_flows] differ from those of the prediction ``found``.

    They differ if, for one flow, the difference exceeds both the fraction ``DIFFERENT`` of the mean
    throughput and twice the difference's standard error. The result is None if the difference
    exceeds only the first limit, so that chance may be the reason. ``error`` is the standard error
    of ``changed``. Flows without a throughput, which send only during warm-up, are left out.
    """
    mean = np.asarray(found.throughput)
    distance = np.abs(changed - mean)
    far = distance > DIFFERENT * np.nanmean(mean)
    if not np.any(far):
        return False
    return True if np.any(far & (distance > 2.0 * np.hypot(_error(found), error))) else None


def effects(scenario: Scenario, found: Prediction) -> Assumption:
    """The assumption that there are no phase effects, and whether it holds for ``found``.

    ``found`` is the prediction for the scenario. The assumption holds if phase effects are not
    possible (``possible``). Otherwise a second scenario is simulated (``otherwise``): if senders
    wait at random before they send, they do not wait in the second scenario, and the other way
    round. The assumption holds if both have the same throughputs (``_differ``).

    If the second scenario is not random, one run suffices; its measured time is halved if ``found``
    contains runs of half the length. If it is random, there are at least two runs. More runs are
    made only while the throughputs differ and chance may be the reason.

    It remains unknown whether the assumption holds in two cases: the second scenario has no answer,
    or the throughputs differ and chance may be the reason. Chance may always be the reason if
    ``found`` is a single run of a random scenario.
    """
    if not possible(scenario, found) or found.throughput is None:
        return Assumption("phase-effects", True)

    def decided(single: Sequence[Prediction]) -> bool:
        rates = np.array([one.throughput for one in single])
        differ = _differ(found, rates.mean(axis=0), standard_error(rates))
        return differ is not None or bool(np.isinf(_error(found)).any())

    asked = otherwise(scenario)
    asked = dataclasses.replace(asked, run=dataclasses.replace(asked.run, runs=None))
    if asked.by_chance:
        other = answer(asked, enough=decided)
    else:
        half = min(found.extra["durations"]) < scenario.run.duration
        other = answer(halved(asked) if half else asked, runs=1)
    status = other.extra.get("status", Status.DONE.reason)
    if other.throughput is None or status != Status.DONE.reason:
        why = other.reason or f"the simulation ended early: {status}"
        return Assumption("phase-effects", None, f"no answer to compare with: {why}")
    mean, changed = np.asarray(found.throughput), np.asarray(other.throughput)
    differ = _differ(found, changed, 0.0 if other.throughput_se is None else other.throughput_se)
    if differ is False:
        return Assumption("phase-effects", True)
    waits = any(scenario.jitter(group) > 0 for group in scenario.flows)
    random, locked = (
        _written(scenario, one) for one in ((mean, changed) if waits else (changed, mean))
    )
    detail = f"pkt/s if senders wait at random (send_jitter): {random}; if they never do: {locked}"
    if differ is None:
        detail += "; chance may be the reason, more runs would tell"
    return Assumption("phase-effects", None if differ is None else False, detail)


def _written(scenario: Scenario, rates: Floats) -> str:
    """The mean throughput of each group of flows as text, for example "vegas 120, reno 380"."""
    groups, sent = np.array([member.group for member in scenario.members]), delivered(rates)
    parts = [
        f"{group.name} {sent[groups == i].mean():.4g}" for i, group in enumerate(scenario.flows)
    ]
    return ", ".join(parts[:GROUPS_SHOWN]) + (", ..." if len(parts) > GROUPS_SHOWN else "")
