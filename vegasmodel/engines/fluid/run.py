"""Runs the simulator ``fluid``: computes averages and trajectories of flows over one link.

There are two methods. In ``continuous.py`` windows change at every instant. The package ``sampled``
proceeds in small steps of time; it simulates, for example, the TCP of ns-2 or Linux. ``methods.py``
decides which of the two methods simulates a scenario.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.fluid.continuous import ContinuousRun
from vegasmodel.engines.fluid.methods import (
    all_continuous,
    by_chance,
    one_run_suffices,
    unsupported,
)
from vegasmodel.engines.fluid.one_run import march_arguments, one_run, room
from vegasmodel.engines.fluid.senders import own_law, senders
from vegasmodel.engines.starts import start_times
from vegasmodel.fields import kinds
from vegasmodel.fields.rules import MAX_RUNS, Integer
from vegasmodel.laws import foreign
from vegasmodel.results.scatter import MIN_RUNS, enough
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status
from vegasmodel.support.progress import series

__all__ = ["run"]


@kinds.checked
def run(
    scenario: Scenario, sample: float | None = None, *, runs: int | None = None
) -> ContinuousRun:
    """Simulate the scenario from time 0 to its ``duration`` by the equations of the windows.

    The result holds one sample of each trajectory every ``sample`` seconds (default: a thousandth
    of the duration). If ``sample`` is infinite, there are none.

    Runs may differ by chance, for one of these reasons: start times are random, senders wait a
    random time before they send, the link has RED or random loss, or random numbers decide which
    flow loses a packet at the full buffer. If ``continuous.py`` simulates the scenario
    (``all_continuous``), only start times can be random.

    Averages are means over ``runs`` runs. By default there is one run if runs do not differ by
    chance. If they do, there are as many as the scenario states, or else 3 to 5
    (``scatter.enough``). If ``continuous.py`` simulates the scenario and start times are not
    random, there is one run, whatever ``runs`` is. The trajectories are those of the first run.

    Raises ``ValueError`` for a wrong argument, if the model cannot simulate the scenario, or if a
    function of a user's law returns an unusable number.
    """
    if runs is not None:
        Integer(1, MAX_RUNS).check(runs, "runs")
    reason = unsupported(scenario)
    if reason is not None:
        raise ValueError(reason)
    if all_continuous(scenario):
        smooth = _continuous(scenario, sample, runs)
        raise_faults(scenario)
        return smooth
    time = continuous.instants(scenario.run.duration, sample)
    flows = senders(scenario)  # the records before any flow has started; each run gets a copy
    common = march_arguments(scenario, flows)
    with series() as under_way:
        found = [one_run(scenario, common, flows.copy(), 0, time)]
        chance = by_chance(scenario) or found[0]["draws"] > 0
        number = runs or (scenario.run.runs if chance else 1)
        while not _enough_runs(found, number):
            under_way.wanted = max(number or MIN_RUNS, len(found) + 1)
            found.append(one_run(scenario, common, flows.copy(), len(found), np.empty(0)))
    raise_faults(scenario)
    # the samples are those of the first run; all numbers of one run are averaged over the runs
    record = found[0]["record"]
    averages = [name for name in found[0] if name not in ("record", "draws", "timeouts", "kept")]
    mean = {name: np.mean([each[name] for each in found], axis=0) for name in averages}
    propagation = np.array([member.rtt for member in scenario.members])
    n = propagation.size
    queueing = record[:, n : n + 1]
    return ContinuousRun(
        time=time,
        window=record[:, :n],
        rate=record[:, :n] / (flows["rtt"] + queueing),
        rtt=propagation + queueing,
        queue=np.minimum(scenario.links[0].capacity * queueing, room(scenario)),
        lost=record[:, n + 1 : 2 * n + 1],
        delivered_so_far=record[:, 2 * n + 1 :],
        status=Status.DONE.reason,
        throughput_runs=np.array([each["throughput"] for each in found]),
        queue_runs=np.array([each["queue_mean"] for each in found]),
        by_chance=chance,
        timeouts=np.sum([each["timeouts"] for each in found], axis=0),
        kept=found[0]["kept"],
        **mean,
    )


def _continuous(scenario: Scenario, sample: float | None, runs: int | None) -> ContinuousRun:
    """Simulate the scenario by ``continuous.py``, whose windows change at every instant.

    If start times are random, there are several runs (``run`` says how many). The averages are then
    means over the runs, and the trajectories are those of the first run. If a run fails, the result
    is that run alone.
    """
    if one_run_suffices(scenario):
        return continuous.run(scenario, sample, trains=True)
    found: list[ContinuousRun] = []
    number = runs or scenario.run.runs
    with series() as under_way:
        while not found or not _enough_runs([vars(each) for each in found], number):
            under_way.wanted = max(number or MIN_RUNS, len(found) + 1)
            starts = start_times(scenario, len(found))
            spacing = sample if not found else math.inf  # curves of the first run only
            found.append(continuous.run(scenario, spacing, starts=starts, trains=True))
            if found[-1].status != Status.DONE.reason:
                return found[-1]
    averages = ("throughput", "delivered", "base_rtt", "rtt_mean", "queue_mean", "losses")
    changes: dict[str, Any] = {
        name: np.mean([getattr(each, name) for each in found], axis=0) for name in averages
    }
    changes["throughput_runs"] = np.array([each.throughput for each in found])
    changes["queue_runs"] = np.array([each.queue_mean for each in found])
    return replace(found[0], **changes, by_chance=True)


def _enough_runs(found: list[dict[str, Any]], number: int | None) -> bool:
    """Whether no further run of the simulation is needed.

    ``number`` is the number of runs to make. If it is None, ``scatter.enough`` decides by the
    throughputs of the runs ``found`` so far.
    """
    if number is not None:
        return len(found) >= number
    return enough(np.array([each["throughput"] for each in found]))


def raise_faults(scenario: Scenario) -> None:
    """Raise ``LawFault`` if a function of a user's law or of CUBIC returned an unusable number.

    The functions of all other laws are compiled into the simulator and are not checked.
    """
    flows = [group for group in scenario.flows if foreign((group.law,))]
    laws = {own_law(scenario, group) for group in flows}
    for law in sorted(laws, key=lambda law: law.name):
        from vegasmodel.engines.outside import raise_faults

        raise_faults(law)
