"""Estimates how much throughputs vary between random runs, and whether there are enough runs."""

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
    """The standard error of each flow's mean throughput over the runs, [n_flows].

    ``rates`` [runs, n_flows] are the throughputs of each run.
    """
    found: Floats = np.std(rates, axis=0, ddof=1) / math.sqrt(len(rates))
    # runs that agree to the last bit have a mean that is rounded
    return np.where(np.ptp(rates, axis=0) > 0.0, found, 0.0 * found)


def uncertainty(rates: Floats) -> Floats:
    """Half of each mean throughput's 95 % confidence interval, divided by this mean, [flows].

    ``rates`` [runs, flows] are the throughputs of each run.
    """
    return relative_uncertainty(rates.mean(axis=0), standard_error(rates), len(rates))


def certain(rates: Floats) -> bool:
    """Whether every flow's mean throughput over these runs is precise enough.

    ``rates`` [runs, flows] are the throughputs. There must be at least ``MIN_RUNS`` runs, and half
    the 95 % confidence interval of each mean must be at most ``ENOUGH_PRECISION`` of the mean.
    """
    return len(rates) >= MIN_RUNS and float(uncertainty(rates).max()) <= ENOUGH_PRECISION


def hopeless(rates: Floats) -> bool:
    """Whether the means, to judge by these runs, would stay imprecise even with ``MAX_RUNS`` runs.

    ``rates`` [runs, flows] are the throughputs. It is assumed that further runs scatter as these
    do. The result is False for fewer than ``MIN_RUNS`` runs.
    """
    if len(rates) < MIN_RUNS:
        return False
    error = np.std(rates, axis=0, ddof=1) / math.sqrt(MAX_RUNS)
    doubts = relative_uncertainty(rates.mean(axis=0), error, MAX_RUNS)
    return float(doubts.max()) > ENOUGH_PRECISION


def enough(rates: Floats) -> bool:
    """Whether no further run is needed: the means are precise, or there are ``MAX_RUNS`` runs.

    ``rates`` [runs, flows] are the throughputs.
    """
    return certain(rates) or len(rates) >= MAX_RUNS


def half_suffices(pieces: Floats) -> bool:
    """Whether the first half of a run's measured time gives the same throughputs as the whole time.

    The time is divided into equal pieces.  ``pieces`` [pieces, flows] is what each flow delivers in
    each piece.  Let n be the number of pieces and s the standard deviation over them.  If the
    pieces are independent, the difference between the mean of the half and that of the whole has
    the standard error s / sqrt(n).  The means count as the same if they differ by at most two
    standard errors, or by at most ``STEADY`` of the mean.
    """
    mean, half = pieces.mean(axis=0), pieces[: len(pieces) // 2].mean(axis=0)
    error = pieces.std(axis=0, ddof=1) / math.sqrt(len(pieces))
    small = STEADY * np.maximum(mean, 0.1 * mean.mean())
    return bool(np.all(np.abs(half - mean) <= np.maximum(2.0 * error, small)))


def insensitive(scenario: Scenario, rates: Floats) -> Assumption:
    """The assumption ``insensitive-to-starts``: that throughputs do not depend on the start times.

    ``rates`` [runs, flows] are the throughputs of runs with different start times.  It is not known
    whether the assumption holds if there is only one run, or if the runs agree but all flows start
    at the same times in each.
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

    It holds if half the 95 % confidence interval of each flow's mean is at most
    ``ENOUGH_PRECISION`` of the mean.
    """
    n = len(rates)
    if n == 1 and chance:
        detail = "one run, in which chance has a part; `runs` in the scenario asks for more"
        return Assumption("enough-runs", None, detail)
    if n == 1:
        return Assumption("enough-runs", True, "one run, in which chance has no part")
    return of_means(scenario, rates.mean(axis=0), standard_error(rates), n)


def of_means(scenario: Scenario, mean: Floats, error: Floats, n: int) -> Assumption:
    """The assumption ``enough-runs`` of the mean throughputs over ``n`` runs.

    ``mean`` [flows] are these means and ``error`` [flows] their standard errors.
    """
    doubts = relative_uncertainty(mean, error, n)
    most = int(doubts.argmax())
    unsure, name = float(doubts[most]), scenario.members[most].name
    known = mean[np.isfinite(mean)]
    starved = known.size > 0 and mean[most] < 0.1 * known.mean()
    of = " of a tenth of the mean of all flows" if starved else ""
    detail = f"{n} runs; the 95 % interval of {name}'s mean is {percent(unsure)}{of} to either side"
    return Assumption("enough-runs", unsure <= ENOUGH_PRECISION, detail)
