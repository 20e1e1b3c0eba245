"""How much the answers of random runs differ from run to run, and how many runs are enough."""

from __future__ import annotations

import math

import numpy as np

from vegasmodel.metrics import ENOUGH_PRECISION, Floats, percent, relative_uncertainty
from vegasmodel.prediction import Assumption
from vegasmodel.scenario import Scenario

STEADY = 0.02  # coefficient of variation of a throughput over starts that is none
MIN_RUNS, MAX_RUNS = 3, 5  # runs where chance has a part and the scenario does not say how many
PIECES = 12  # of a run's measured time, whose scatter tells how sure a part of it is


def standard_error(rates: Floats) -> Floats:
    """The standard error of each flow's mean over runs, [n_flows]; ``rates`` [runs, n_flows]."""
    found: Floats = np.std(rates, axis=0, ddof=1) / math.sqrt(len(rates))
    return found


def uncertainty(rates: Floats) -> Floats:
    """Half the 95 % interval of each flow's mean, over that mean; ``rates`` [runs, flows]."""
    return relative_uncertainty(rates.mean(axis=0), standard_error(rates), len(rates))


def certain(rates: Floats) -> bool:
    """Whether every flow's mean throughput over these runs is precise enough.

    ``rates`` [runs, flows] are the throughputs. There must be at least ``MIN_RUNS`` runs, and half
    the 95 % interval of each mean must be at most ``ENOUGH_PRECISION`` of the mean.
    """
    return len(rates) >= MIN_RUNS and float(uncertainty(rates).max()) <= ENOUGH_PRECISION


def hopeless(rates: Floats) -> bool:
    """Whether the mean over ``MAX_RUNS`` runs that scatter like these would not be certain."""
    if len(rates) < MIN_RUNS:
        return False
    error = np.std(rates, axis=0, ddof=1) / math.sqrt(MAX_RUNS)
    doubts = relative_uncertainty(rates.mean(axis=0), error, MAX_RUNS)
    return float(doubts.max()) > ENOUGH_PRECISION


def enough(rates: Floats) -> bool:
    """Whether no further run is needed: the means are certain, or there are ``MAX_RUNS`` runs."""
    return certain(rates) or len(rates) >= MAX_RUNS


def half_suffices(pieces: Floats) -> bool:
    """Whether the first half of a run's measured time has the throughputs of the whole.

    ``pieces`` [pieces, flows]: what each flow delivers in equal pieces of that time.  Let s be the
    standard deviation of n pieces.  If they are independent, the means of half and whole differ by
    s / sqrt(n), one standard error.  They may differ by two, or by ``STEADY`` of the mean.
    """
    mean, half = pieces.mean(axis=0), pieces[: len(pieces) // 2].mean(axis=0)
    error = pieces.std(axis=0, ddof=1) / math.sqrt(len(pieces))
    small = STEADY * np.maximum(mean, 0.1 * mean.mean())
    return bool(np.all(np.abs(half - mean) <= np.maximum(2.0 * error, small)))


def insensitive(scenario: Scenario, rates: Floats) -> Assumption:
    """Whether the rates [runs, flows] of runs with different starts agree.

    It is not known of one run, and of runs that agree but all start at the same times.
    """
    name, n = "insensitive-to-starts", len(rates)
    if n == 1:
        return Assumption(name, None, "one run, so no other starts were tried")
    mean, deviation = rates.mean(axis=0), rates.std(axis=0, ddof=1)
    spreads = np.nan_to_num(np.where(mean > 0, deviation / np.maximum(mean, 1e-300), 0))
    most = int(spreads.argmax())
    detail = (
        f"coefficient of variation over {n} runs: {spreads[most]:.3f} "
        f"for {scenario.members[most].name}, the largest"
    )
    if spreads[most] > STEADY:
        return Assumption(name, False, detail)
    if scenario.run.start_jitter > 0.0 or scenario.random_arrivals:
        return Assumption(name, True, detail)
    return Assumption(name, None, f"{detail}; all runs start at the same times (`start_jitter`)")


def enough_runs(scenario: Scenario, rates: Floats, *, chance: bool) -> Assumption:
    """The assumption ``enough-runs``: that the mean throughputs over the runs are precise enough.

    It holds if half the 95 % interval of each flow's mean is at most ``ENOUGH_PRECISION`` of the
    mean.
    """
    n = len(rates)
    if n == 1 and chance:
        detail = "one run, in which chance has a part; `runs` in the scenario asks for more"
        return Assumption("enough-runs", None, detail)
    if n == 1:
        return Assumption("enough-runs", True, "one run, in which chance has no part")
    doubts = uncertainty(rates)
    unsure, of = float(doubts.max()), scenario.members[int(doubts.argmax())].name
    detail = f"{n} runs; the 95 % interval of {of}'s mean is {percent(unsure)} to either side"
    return Assumption("enough-runs", unsure <= ENOUGH_PRECISION, detail)
