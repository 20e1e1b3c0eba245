"""Tests for phase effects: whether the answer changes if the senders' timing becomes less exact.

Loss-based senders at a drop-tail queue can lock into phases: the same sender then loses again and
again (Floyd and Jacobson, 1992). A small random wait before each sending prevents this. So the
scenario is simulated twice: once with senders that do not wait, and once with senders that wait at
random. If no sender of the scenario waits, the waits of the second run are as long as those of real
hosts.
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


def possible(scenario: Scenario) -> bool:
    """Whether phase effects are possible at a drop-tail queue: the same flow then always loses.

    The queue must be able to overflow.  Several sources must react to loss, or one of them must
    share the link with a flow of another RTT.  One loss-based source beside Vegas sources of the
    same RTT shows no phase effects, since it alone loses packets.
    """
    crossed = [link for group in scenario.flows for link in scenario.path(group)]
    spills = any(isinstance(k.queue, DropTail) and not k.never_full for k in crossed)
    lasting = all(g.arrivals == "once" and g.size == math.inf for g in scenario.flows)
    losers = sum(not find(member.flow.law).delay_based for member in scenario.members)
    rtts = {member.rtt for member in scenario.members}
    mixed = losers > 0 and len(scenario.members) > 1 and (losers > 1 or len(rtts) > 1)
    return spills and lasting and mixed


def otherwise(scenario: Scenario) -> Scenario:
    """The scenario with the opposite choice of random waits before a packet is sent.

    If senders wait in the given scenario, they do not in the result.  If none waits, all do, up to
    ``Scenario.usual_jitter``.
    """
    waits = any(scenario.jitter(group) > 0 for group in scenario.flows)
    flows = tuple(
        dataclasses.replace(group, send_jitter=0.0 if waits else scenario.usual_jitter(group))
        for group in scenario.flows
    )
    return dataclasses.replace(scenario, flows=flows)


def _error(one: Prediction) -> Floats | float:
    """The standard error of the throughputs, [n_flows]; infinite if chance decides a single run."""
    if one.throughput_se is not None:
        return one.throughput_se
    unsure = any(a.name == "enough-runs" and a.holds is None for a in one.assumptions)
    return math.inf if unsure else 0.0


def _differ(found: Prediction, changed: Floats, error: Floats | float) -> bool | None:
    """Whether throughputs [n_flows] differ from those of ``found``; None if chance may be why.

    They differ if the difference of one of them exceeds both the fraction ``DIFFERENT`` of the mean
    and twice its standard error. ``error`` is the standard error of ``changed``.  Flows without a
    throughput, which send at no time that counts, are left out.
    """
    mean = np.asarray(found.throughput)
    distance = np.abs(changed - mean)
    far = distance > DIFFERENT * np.nanmean(mean)
    if not np.any(far):
        return False
    return True if np.any(far & (distance > 2.0 * np.hypot(_error(found), error))) else None


def effects(scenario: Scenario, found: Prediction) -> Assumption:
    """Compare the answer ``found`` with the answer for the opposite choice of random waits.

    If the other scenario is not random, it is run once, and for half the time if ``found`` has such
    runs. If it is random, it is run at least twice, and again as long as the answers differ and
    chance may be the reason.  In two cases it is unknown whether there is an effect: if chance may
    be the reason even after the last run, and if ``found`` is a single run of a random scenario.
    """
    if not possible(scenario) or found.throughput is None:
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
    """The mean throughput of each group as text, for example "vegas 120, reno 380"."""
    groups, sent = np.array([member.group for member in scenario.members]), delivered(rates)
    parts = [
        f"{group.name} {sent[groups == i].mean():.4g}" for i, group in enumerate(scenario.flows)
    ]
    return ", ".join(parts[:GROUPS_SHOWN]) + (", ..." if len(parts) > GROUPS_SHOWN else "")
