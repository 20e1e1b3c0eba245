"""How far a simulated figure may lie from a printed one: the spread of the simulation itself.

The papers ran each case once, with sources that start at the same instant.  The run as described
gives the value; the same case with every start moved by up to one packet's time on the link shows
how much of the value hangs on the accident of phase.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from paper_checks.checks import Found, rounding
from paper_checks.runs import Floats, Measured, Runs
from vegasmodel.scenario import Scenario

__all__ = ["SEEDS", "averaged", "jittered", "simulated", "simulated_mean"]

SEEDS = 5
LIMIT = 0.1  # largest tolerance, as a part of the printed value
SOURCE = (
    "ns-2 2.35. Tolerance: rounding of the print and two standard deviations over 5 runs whose "
    "starts move by up to one packet's time, but at most 10 %."
)
SOURCE_MEAN = (
    "ns-2 2.35, mean of 5 seeds. Tolerance: rounding of the print and two standard deviations of "
    "one run, since the paper has one, but at most 10 %."
)

Statistic = Callable[[Floats], float]  # of the throughputs of one run, [flows] pkt/s


def jittered(scenario: Scenario) -> Scenario:
    """The scenario with ``SEEDS`` runs, starts moved by up to one packet's time."""
    run = dataclasses.replace(
        scenario.run, runs=SEEDS, start_jitter=1.0 / scenario.links[0].capacity
    )
    return dataclasses.replace(scenario, name=f"{scenario.name}-jittered", run=run)


def simulated(
    scenario: Scenario,
    statistic: Statistic,
    printed: float,
    unit: float,
    limit: float | None = None,
) -> Callable[[Runs], Found]:
    """The statistic of the run as described; ``unit`` is that of the last printed digit.

    ``limit``: largest tolerance, default ``LIMIT`` of the print.
    """
    most = LIMIT * abs(printed) if limit is None else limit

    def compute(runs: Runs) -> Found:
        value = statistic(runs(scenario).throughput[0])
        return _found(value, runs(jittered(scenario)), statistic, unit, most)

    return compute


def simulated_mean(
    scenario: Scenario, statistic: Statistic, printed: float, unit: float
) -> Callable[[Runs], Found]:
    """Mean of the statistic over the scenario's own runs, where chance is part of the case."""

    def compute(runs: Runs) -> Found:
        measured = runs(scenario)
        value = float(np.mean([statistic(row) for row in measured.throughput]))
        return _found(value, measured, statistic, unit, LIMIT * abs(printed))

    return compute


def _found(value: float, seeds: Measured, statistic: Statistic, unit: float, limit: float) -> Found:
    spread = np.array([statistic(row) for row in seeds.throughput])
    tolerance = rounding(unit) + 2 * float(spread.std(ddof=1))
    detail = f"Over the seeds {spread.min():.4g} to {spread.max():.4g}."
    return Found(value, max(rounding(unit), min(tolerance, limit)), detail)


def averaged(
    values: Floats, printed: float | Sequence[float], unit: float, detail: str = ""
) -> Found:
    """Means over the runs of ``values`` [runs] or [runs, entries] beside the paper's, also of 5.

    Tolerance: rounding of the print and two standard errors of the difference of two such means,
    but at most ``LIMIT`` of the print: the least of the entries', so that each entry keeps to it.
    """
    values = np.asarray(values, dtype=np.float64)
    spread = 2 * values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + 1 / SEEDS)
    entries = np.minimum(rounding(unit) + spread, LIMIT * np.abs(np.asarray(printed)))
    tolerance = max(rounding(unit), float(np.min(entries)))
    mean = values.mean(axis=0)
    return Found(mean.tolist() if mean.ndim else float(mean), tolerance, detail)
