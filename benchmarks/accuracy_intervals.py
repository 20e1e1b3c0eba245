"""Measures how often the 95 % intervals of a default answer of ``rounds`` hold the true mean.

    python -m benchmarks.accuracy_intervals [--seed 90117] [--cases 80]

The cases are of the kinds of ``benchmarks.cost_beside_ns2``, drawn with another seed.  Cases
without chance and those of flows that arrive at random are left out.  Each case has 40 runs.  A
default answer takes 3 to 5 runs, so 8 answers follow: from runs 0, 5, 10 ... on.  The truth is the
mean of all runs that the answer has not used.

The table has the mean number of runs, and the coverage: the part of answers and flows whose
interval holds the truth, as a mean over cases, and the least of a case.  ``certain`` is the part of
answers for which ``enough-runs`` holds.  Of these, ``right`` is the part in which no flow is off by
more than 10 %.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.cost_beside_ns2 import case
from vegasmodel import scatter
from vegasmodel.engines.rounds import answers
from vegasmodel.engines.rounds.run import run
from vegasmodel.metrics import ENOUGH_PRECISION, Floats
from vegasmodel.scenario import Scenario

SEED = 90117
CASES = 80
RUNS = 40


def rates(scenario: Scenario) -> Floats:
    """Throughputs of each run, [run, flow] pkt/s."""
    runs = [run(scenario, starts=answers.starts_of(scenario, k), seed=k + 1) for k in range(RUNS)]
    return np.array([answers._throughput(scenario, one) for one in runs])


def taken(found: Floats) -> Floats:
    """Those of the runs ``found`` [run, flow] that a default answer takes."""
    n = scatter.MIN_RUNS
    while n < len(found) and scatter.uncertainty(found[:n]).max() > ENOUGH_PRECISION:
        n += 1
    return found[:n]


def judged(found: Floats) -> tuple[float, float, list[bool]]:
    """Coverage, mean number of runs, and for each certain answer whether it is right."""
    from scipy.special import stdtrit

    held, counts, right = [], [], []
    for first in range(0, RUNS, scatter.MAX_RUNS):
        used = taken(found[first : first + scatter.MAX_RUNS])
        n, mean = len(used), used.mean(axis=0)
        truth = np.delete(found, np.arange(first, first + n), axis=0).mean(axis=0)
        off = np.abs(mean - truth)
        held.append(np.mean(off <= stdtrit(n - 1, 0.975) * scatter.standard_error(used)))
        counts.append(n)
        if scatter.uncertainty(used).max() <= ENOUGH_PRECISION:
            right.append(bool(np.all(off <= 0.1 * np.maximum(truth, 0.1 * truth.mean()))))
    return float(np.mean(held)), float(np.mean(counts)), right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--cases", type=int, default=CASES)
    options = parser.parse_args()
    kinds: dict[str, list[tuple[float, float, list[bool]]]] = {}
    for i in range(options.cases):
        kind, scenario = case(i, options.seed)
        if scenario.by_chance:
            kinds.setdefault(kind, []).append(judged(rates(scenario)))
    print("| kind | cases | runs | coverage | least | certain | right |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, found in [*kinds.items(), ("all", [one for some in kinds.values() for one in some])]:
        covered, counts = ([one[k] for one in found] for k in (0, 1))
        right = [each for one in found for each in one[2]]
        certain = len(right) / (len(found) * RUNS / scatter.MAX_RUNS)
        print(
            f"| {kind.replace('_', ' ')} | {len(found)} | {np.mean(counts):.1f} "
            f"| {np.mean(covered):.2f} | {min(covered):.2f} | {certain:.2f} "
            f"| {np.mean(right) if right else np.nan:.2f} |"
        )


if __name__ == "__main__":
    main()
