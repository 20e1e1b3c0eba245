"""Tests whether a default answer of ``rounds`` is right about its own uncertainty.

    python -m benchmarks.accuracy_intervals [--seed 90117] [--cases 80]

By default ``rounds`` makes as many runs of a scenario as its result needs, and gives means with
their standard errors: this is its default answer.  The cases are random scenarios of the kinds of
``benchmarks.cost_beside_ns2``, drawn with another seed.  Cases whose runs are all equal are left
out, and those of short flows that arrive at random.  Each case has 8 default answers, with 8 seeds
of the scenario.  The truth is the mean of 40 whole runs with another seed.

The first table tests the confidence intervals of the answers, for each kind of scenario.  Its
columns are:

- ``cases``: the number of scenarios.
- ``runs``: the number of runs of an answer, mean over the answers.
- ``cost``: the simulated time of an answer, divided by that of one whole run; mean over the
  answers.
- ``coverage: mean``, ``least``: the part of the 95 % intervals of a case, of all flows and answers,
  that contain the truth.  The columns have its mean over the cases, and its least value.
- ``certain``: the part of the answers for which the assumption ``enough-runs`` holds.
- ``right``: of these answers, the part in which each flow's throughput is within 10 % of the truth
  (of a flow that gets almost nothing: within 1 % of the flows' mean throughput).
- ``error``: the largest error of a flow in an answer, divided by the flows' mean throughput; mean
  over the answers.

The line after the first table tells how many whole runs a case needs until the 95 % interval of
each flow is at most 10 % of the mean to either side.  Let s be the standard deviation of a flow's
throughput over the 40 runs, divided by the mean.  If s is known, (1.96 s / 0.1)^2 runs are needed.
The line is for the flow that needs most.

The second table tells whether a single run could state its own uncertainty.  It divides the time
after warm-up of each of the 40 runs into n pieces (``scatter.PIECES``).  If pieces were
independent, the standard error of a flow's throughput in a run would be s/sqrt(n), where s is the
standard deviation of its pieces.  The columns are:

- ``coverage: mean``, ``least``: the part of the 95 % intervals by this standard error, of all flows
  and runs of a case, that contain the truth; its mean over the cases, and its least value.
- ``ratio: median``, ``largest``: the standard deviation of a flow's throughput over the runs,
  divided by s/sqrt(n).  Of each case the median flow is taken.  The columns have the median over
  the cases, and the largest value.
- ``correlation``: of successive pieces of a run, median over the cases.  If it is not 0, the pieces
  are not independent.

The third table tests whether the answers are right about phase effects (``phase-effects``).  It has
the answers for scenarios in which phase effects are possible.  A scenario truly has a phase effect
if random waits of the senders matter: the 40 runs are compared with 24 whole runs in which senders
wait only if they do not wait in the 40 runs.  There is an effect if a flow's two means differ by
more than 10 % of the flows' mean throughput.  The first row is for scenarios that have an effect,
the second for those that have none.  The last three columns are the parts of the answers that
report an effect, leave it open, or report none.
"""

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy_cases import with_seed
from benchmarks.arguments import at_least
from benchmarks.cost_beside_ns2 import case
from vegasmodel.engines.rounds import answers, phases
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.starts import start_times
from vegasmodel.metrics import ENOUGH_PRECISION, Floats, student_t
from vegasmodel.results import scatter
from vegasmodel.scenario import Scenario

SEED = 90117
CASES = 80
RUNS = 40  # whole runs, whose mean is taken for the truth
OTHER_RUNS = 24  # whole runs in which senders wait if they do not in the others, or the other way
ANSWERS = 8  # to each case


class Answered(NamedTuple):
    """One default answer beside the truth."""

    covered: float  # part of the flows whose 95 % interval holds the truth
    runs: int
    cost: float  # simulated time, divided by that of one whole run
    certain: bool  # whether ``enough-runs`` holds
    right: bool  # whether each flow is within 10 % of the truth
    error: float  # the largest of a flow, divided by the flows' mean throughput
    said_effect: bool | None  # whether the answer reports phase effects; None: it leaves it open
    true_effect: bool  # whether there are phase effects in truth


class Pieces(NamedTuple):
    """How the scatter of the pieces of a run compares with that over runs."""

    covered: float  # part of runs and flows whose 95 % interval, by the pieces, holds the truth
    # the standard deviation over the runs, divided by that expected from pieces; median over flows
    ratio: float
    lag: float  # correlation of successive pieces of a run; median over flows


def rates(scenario: Scenario, runs: int) -> tuple[Floats, Floats]:
    """Throughputs of each run, [run, flow] pkt/s, and of its pieces, [run, piece, flow]."""
    at = answers.pieces(scenario)
    made = [
        run(scenario, starts=start_times(scenario, k), seed=k + 1, samples=at) for k in range(runs)
    ]
    parts = [np.diff(one.delivered, axis=0) / np.diff(at)[:, None] for one in made]
    return np.array([answers.throughput(one) for one in made]), np.array(parts)


def of_pieces(whole: Floats, parts: Floats) -> Pieces:
    """Compare the throughputs of whole runs with those of their pieces.

    ``whole`` [run, flow] and ``parts`` [run, piece, flow] are the two results of ``rates``.
    """
    n = parts.shape[1]  # pieces of a run
    # [run, flow] the squared standard error of a run's mean, estimated from the run's pieces
    variance = parts.var(axis=1, ddof=1) / n
    half_width = student_t(n - 1) * np.sqrt(variance)  # of its 95 % interval
    covered = float(np.mean(np.abs(whole - whole.mean(axis=0)) <= half_width))
    off = parts - parts.mean(axis=1, keepdims=True)  # each piece less the mean of its run
    products = (off[:, 1:] * off[:, :-1]).sum(axis=(0, 1))  # of successive pieces, by flow
    squares = (off**2).sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(whole.var(axis=0, ddof=1) / variance.mean(axis=0))  # of each flow
        lag = products / squares
    return Pieces(covered, float(np.nanmedian(ratio)), float(np.nanmedian(lag)))


def needed(found: Floats) -> float:
    """How many runs make each flow's 95 % interval at most 10 % of its mean to either side.

    The standard deviation of the runs counts as known.  ``found`` has the throughputs of many runs,
    [runs, flows].  For a flow that gets almost nothing, a tenth of the flows' mean takes the place
    of its own mean.
    """
    mean = found.mean(axis=0)
    s = found.std(axis=0, ddof=1) / np.maximum(mean, 0.1 * mean.mean())
    return max(1.0, float(np.ceil((1.96 * s.max() / ENOUGH_PRECISION) ** 2)))


def judged(scenario: Scenario) -> tuple[list[Answered], float, Pieces]:
    """Judge the answers of ``rounds`` to one scenario by the truth, the mean of many other runs.

    Returns the judged answers, the number of runs that a precise mean needs (``needed``), and how
    well the pieces of a run show the scatter over runs (``of_pieces``).
    """
    base = with_seed(scenario, 1000)  # no answer has this seed
    whole, parts = rates(base, RUNS)  # of whole runs and of their pieces, pkt/s
    truth, true_effect = whole.mean(axis=0), False
    # there is a phase effect if the truth changes when senders that waited do not wait, or the
    # other way round
    if phases.possible(scenario):
        opposite, _ = next(phases.others(base, base.run))  # the opposite choice of waits
        other = rates(opposite, OTHER_RUNS)[0].mean(axis=0)
        true_effect = bool(np.any(np.abs(other - truth) > phases.DIFFERENT * truth.mean()))
    found = []
    for k in range(1, ANSWERS + 1):
        asked = with_seed(scenario, k)
        one = answers.answer(asked)
        by_run, n = one.extra["throughput_runs"], one.extra["runs"]
        off = np.abs(one.throughput - truth)  # the error of each flow, pkt/s
        no_effect = phases.effects(asked, one).holds
        found.append(
            Answered(
                covered=float(np.mean(off <= student_t(n - 1) * one.throughput_se)),
                runs=n,
                cost=sum(one.extra["durations"]) / scenario.run.duration,
                certain=scatter.certain(by_run),
                right=bool(np.all(off <= 0.1 * np.maximum(truth, 0.1 * truth.mean()))),
                error=off.max() / truth.mean(),
                said_effect=None if no_effect is None else not no_effect,
                true_effect=true_effect,
            )
        )
    return found, needed(whole), of_pieces(whole, parts)


def row(name: str, cases: list[list[Answered]]) -> str:
    """A row of the first table: for scenarios of the kind ``name``, the answers to each case."""
    every = [one for some in cases for one in some]
    covered = [np.mean([one.covered for one in some]) for some in cases]
    certain = [one for one in every if one.certain]
    right = np.mean([one.right for one in certain]) if certain else np.nan
    return (
        f"| {name} | {len(cases)} | {np.mean([one.runs for one in every]):.1f} "
        f"| {np.mean([one.cost for one in every]):.1f} | {np.mean(covered):.2f} "
        f"| {min(covered):.2f} | {len(certain) / len(every):.2f} | {right:.2f} "
        f"| {np.mean([one.error for one in every]):.3f} |"
    )


def main() -> None:
    """Print the three tables, and the line after the first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=at_least(0), default=SEED)
    parser.add_argument("--cases", type=at_least(1), default=CASES)
    options = parser.parse_args()
    answered: dict[str, list[list[Answered]]] = {}  # by kind: the answers to each case
    pieces: dict[str, list[Pieces]] = {}  # by kind: for each case
    with_phases: list[Answered] = []  # answers to scenarios in which phase effects are possible
    runs_needed: list[float] = []  # of each case
    for i in range(options.cases):
        kind, scenario = case(i, options.seed)
        if scenario.by_chance:
            of_answers, needed_runs, of_runs = judged(scenario)
            answered.setdefault(kind, []).append(of_answers)
            runs_needed.append(needed_runs)
            pieces.setdefault(kind, []).append(of_runs)
            with_phases += of_answers if phases.possible(scenario) else []
    print_intervals(answered, np.array(runs_needed))
    print_pieces(pieces)
    print_phase_effects(with_phases)


def print_intervals(answered: dict[str, list[list[Answered]]], counts: Floats) -> None:
    """Print the first table, and the line on the number of runs that a case needs.

    ``answered`` has the answers to each case, by kind of scenario.  ``counts`` has ``needed`` of
    each case.
    """
    print("confidence intervals of the default answers:\n")
    print("| kind | cases | runs | cost | coverage: mean | least | certain | right | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    every = [one for some in answered.values() for one in some]
    for kind, cases in [*answered.items(), ("all", every)]:
        print(row(kind.replace("_", " "), cases))
    print(
        f"\nwhole runs for a 95 % interval of 10 % to either side: {np.median(counts):.0f} in the "
        f"median case; one in {np.mean(counts == 1):.0%} of the cases, and more than "
        f"{scatter.MAX_RUNS} in {np.mean(counts > scatter.MAX_RUNS):.0%}"
    )


def print_pieces(pieces: dict[str, list[Pieces]]) -> None:
    """Print the second table; ``pieces`` has the comparison for each case, by kind of scenario."""
    print("\nconfidence intervals by the pieces of a single run:\n")
    print("| kind | coverage: mean | least | ratio: median | largest | correlation |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    every = [one for each in pieces.values() for one in each]
    for kind, some in [*pieces.items(), ("all", every)]:
        covered, ratios, lags = np.array(some).T
        print(
            f"| {kind.replace('_', ' ')} | {covered.mean():.2f} | {covered.min():.2f} "
            f"| {np.median(ratios):.2g} | {ratios.max():.2g} | {np.median(lags):.2f} |"
        )


def print_phase_effects(with_phases: list[Answered]) -> None:
    """Print the third table, from the answers to scenarios that may have phase effects."""
    print("\nwhether the scenario has a phase effect, and what the answers say:\n")
    print("| has an effect | answers | say yes | leave it open | say no |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for true_effect, name in ((True, "yes"), (False, "no")):
        said = [one.said_effect for one in with_phases if one.true_effect == true_effect]
        parts = [np.mean([one is answer for one in said]) for answer in (True, None, False)]
        print(f"| {name} | {len(said)} | " + " | ".join(f"{part:.2f}" for part in parts) + " |")


if __name__ == "__main__":
    main()
