"""Estimates how much throughputs vary between random runs.

From this it follows whether the means over the runs are precise enough, or more runs are needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import (
    ENOUGH_PRECISION,
    Floats,
    percent,
    relative_uncertainty,
    standard_error,
    student_t,
)
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

SIMULATED = ("fluid", "rounds")  # the models that are simulators; their runs may differ by chance
STEADY = 0.02  # means over half and all of the measured time are equal if they differ by less
SENSITIVE = 0.1  # a coefficient of variation above it shows that starts matter
MIN_RUNS, MAX_RUNS = 3, 5  # runs, if runs are random and the scenario does not say how many
ADVISED_RUNS = 20  # runs that a message advises, or four times the present number if this is more
PIECES = 12  # number of equal pieces into which a run's measured time is divided (half_suffices)


def uncertainty(rates: Floats) -> Floats:
    """The relative uncertainty of each flow's mean throughput over the runs, [flows].

    ``rates`` [runs, flows] are the flows' throughputs in each run. The uncertainty is half the
    width of the 95 % confidence interval, divided by the mean. If a flow's mean is less than a
    tenth of the mean over all flows, the divisor is that tenth.
    """
    return relative_uncertainty(rates.mean(axis=0), standard_error(rates), len(rates))


def certain(rates: Floats) -> bool:
    """Whether every flow's mean throughput over the runs is precise enough.

    ``rates`` [runs, flows] are the flows' throughputs in each run. The means are precise enough if
    three conditions hold:

    - There are at least ``MIN_RUNS`` runs.
    - Each flow has a throughput either in all runs or in none.
    - No mean has a relative ``uncertainty`` above ``ENOUGH_PRECISION``.
    """
    known = np.isfinite(rates)
    if len(rates) < MIN_RUNS or np.any(known.any(axis=0) & ~known.all(axis=0)):
        return False
    return float(uncertainty(rates).max()) <= ENOUGH_PRECISION


def hopeless(rates: Floats) -> bool:
    """Whether the mean throughputs would probably be too imprecise even after ``MAX_RUNS`` runs.

    ``rates`` [runs, flows] are the flows' throughputs in the runs made so far. The function assumes
    that further runs scatter as much as these. It returns False for fewer than ``MIN_RUNS`` runs.
    """
    if len(rates) < MIN_RUNS:
        return False
    error = np.std(rates, axis=0, ddof=1) / math.sqrt(MAX_RUNS)
    uncertainties = relative_uncertainty(rates.mean(axis=0), error, MAX_RUNS)
    return float(uncertainties.max()) > ENOUGH_PRECISION


def enough(rates: Floats) -> bool:
    """Whether means over runs are precise enough, or there are ``MAX_RUNS`` runs already.

    The function ``certain`` says whether they are precise enough.

    ``rates`` [runs, flows] are the flows' throughputs in each run.
    """
    return certain(rates) or len(rates) >= MAX_RUNS


def half_suffices(pieces: Floats) -> bool:
    """Whether the first half of a run's measured time gives the same throughputs as the whole time.

    The measured time is divided into equal pieces.  ``pieces`` [pieces, flows] is the number of
    packets that each flow delivers in each piece.

    For each flow, d is the difference between the mean over the first half of the pieces and the
    mean over all pieces, divided by the latter, or by a tenth of the mean over all flows if this is
    more.  The half suffices if two conditions hold for every flow:

    - d is small: chance explains it (Student's t, 95 %), or it is at most 2 % (``STEADY``).  The
      test is for all flows together.  With a test for each flow, 5 of 100 flows would fail by
      chance.  For k flows it counts k - 1 differences (``student_t``), because the throughputs of
      flows that share a full link have one sum.
    - d is precise: its 95 % interval does not reach beyond ``ENOUGH_PRECISION``, the precision that
      an answer should have.  Without this condition a large d would be accepted if the pieces
      differ much by chance.  The interval is for each flow by itself: if a flow really differs by
      more than ``ENOUGH_PRECISION``, its d meets the condition with a probability of at most 2.5 %,
      however many flows there are.

    If the n pieces are independent and have the standard deviation s, the difference of the two
    means has the standard error s / sqrt(n).  We estimate s from the second half only.  In the
    first half the windows may still approach the steady state, which would make s too large.
    """
    first, second = np.split(pieces, 2)
    mean = pieces.mean(axis=0)
    divisor = np.maximum(np.maximum(mean, 0.1 * mean.mean()), 1e-300)  # above 0 if none delivers
    error = second.std(axis=0, ddof=1) / math.sqrt(len(pieces)) / divisor
    d = np.abs(first.mean(axis=0) - mean) / divisor
    freedom = len(second) - 1
    by_chance = student_t(freedom, max(pieces.shape[1] - 1, 1)) * error
    small = d <= np.maximum(by_chance, STEADY)
    precise = d + student_t(freedom) * error <= ENOUGH_PRECISION
    return bool(np.all(small & precise))


def insensitive(scenario: Scenario, rates: Floats) -> Assumption:
    """The assumption ``insensitive-to-starts``: that throughputs do not depend on the start times.

    ``rates`` [runs, flows] are the flows' throughputs in each run.

    - The assumption fails if the standard deviation of a flow's throughput over the runs is more
      than ``SENSITIVE`` times its mean. Smaller differences are common, because runs are finite.
    - It is not known whether the assumption holds if there is only one run, or if all runs have the
      same start times and their throughputs hardly differ.
    - In all other cases the assumption holds.
    """
    name, n = "insensitive-to-starts", len(rates)
    if n == 1:
        remedy = "a larger `runs`" if scenario.run.start_jitter > 0.0 else "`start_jitter` above 0"
        detail = f"one run, so no other starts were tried; {remedy} in the file asks for some"
        return Assumption(name, None, detail)
    mean, deviation = rates.mean(axis=0), rates.std(axis=0, ddof=1)
    spreads = np.nan_to_num(np.where(mean > 0, deviation / np.maximum(mean, 1e-300), 0))
    widest = int(spreads.argmax())
    detail = (
        f"over {n} runs the standard deviation of {scenario.members[widest].name}'s throughput is "
        f"{percent(float(spreads[widest]))} of its mean"
    )
    fails = bool(spreads[widest] > SENSITIVE)
    if fails:
        detail += "; the command `vegasmodel basins` counts the outcomes of many starts"
    starts_differ = scenario.run.start_jitter > 0.0 or scenario.random_arrivals
    if not starts_differ:
        detail += "; random waits or losses alone made these differences, since all runs start at "
        detail += "the same times (`start_jitter`)"
    if fails:
        return Assumption(name, False, detail)
    return Assumption(name, True if starts_differ else None, detail)


def enough_runs(scenario: Scenario, rates: Floats, *, chance: bool) -> Assumption:
    """The assumption ``enough-runs``: that the mean throughputs over the runs are precise enough.

    It holds if no mean has a relative ``uncertainty`` above ``ENOUGH_PRECISION``.  ``rates`` [run,
    flow] are the throughputs, in pkt/s.  ``chance`` says whether the results of a run are random.
    If they are not, one run is enough.  If they are, one run does not show whether the assumption
    holds.
    """
    n = len(rates)
    if n == 1 and chance:
        detail = "one run, in which chance has a part; `runs` in the scenario asks for more"
        return Assumption("enough-runs", None, detail)
    if n == 1:
        return Assumption("enough-runs", True, "one run, in which chance has no part")
    ever = np.isfinite(rates).any(axis=0)
    mean = np.full(rates.shape[1], np.nan)
    mean[ever] = np.nanmean(rates[:, ever], axis=0)
    return of_means(scenario, mean, standard_error(rates), n)


def of_means(scenario: Scenario, mean: Floats, error: Floats, n: int) -> Assumption:
    """The assumption ``enough-runs``: that the mean throughputs over ``n`` runs are precise enough.

    It holds if the relative uncertainty of each flow's mean is at most ``ENOUGH_PRECISION``
    (``relative_uncertainty``). ``mean`` [flows] are the means, and ``error`` [flows] are their
    standard errors. Both are NaN for a flow without a throughput. If a flow has a throughput in
    only some of the runs, its mean is over these runs, and its error is NaN. The assumption then
    fails.
    """
    partly = sometimes(mean, error)
    if partly.any():
        who = scenario.members[int(partly.argmax())].name
        detail = (
            f"{n} runs; {who} sends after the warm-up in some of them only; its mean is over these"
        )
        return Assumption("enough-runs", False, detail)
    uncertainties = relative_uncertainty(mean, error, n)
    worst = int(uncertainties.argmax())  # the flow with the least certain mean
    largest, name = float(uncertainties[worst]), scenario.members[worst].name
    known = mean[np.isfinite(mean)]
    detail = f"{n} runs; the 95 % interval of {name}'s mean is {percent(largest)} to either side"
    # If the flow gets almost nothing, its uncertainty is relative to a tenth of the mean over all
    # flows. A percentage would then be misleading, so the text has pkt/s.
    if known.size > 0 and mean[worst] < 0.1 * known.mean():
        half = student_t(n - 1) * float(error[worst])
        tenth = 0.1 * ENOUGH_PRECISION
        detail = (
            f"{n} runs; the 95 % interval of {name}'s mean is {mean[worst]:.3g} ± {half:.2g} "
            f"pkt/s; ± {tenth * float(known.mean()):.2g} would do, {percent(tenth)} of the mean "
            "over all flows"
        )
    holds = largest <= ENOUGH_PRECISION
    remedy = "" if holds else f"; `runs = {more_than(n)}` in the file asks for more"
    return Assumption("enough-runs", holds, detail + remedy)


def more_than(n: int) -> int:
    """A number of runs to advise if the means over ``n`` runs are too imprecise."""
    return max(ADVISED_RUNS, 4 * n)


def sometimes(mean: Floats, error: Floats) -> NDArray[np.bool_]:
    """Which flows have a throughput in some of the runs only, [flows].

    In a run in which a flow is not active after the warm-up, it has no throughput (NaN). ``mean``
    [flows] are the mean throughputs over the other runs, and ``error`` [flows] are their standard
    errors. A flow without a throughput in some runs has a mean, but NaN for its standard error.
    """
    return np.isfinite(mean) & np.isnan(error)


def as_near(near: Prediction, far: Prediction, measured: Prediction) -> bool:
    """Whether ``far`` may be farther from the measurement than ``near`` only by chance.

    ``near`` and ``far`` are the results of two models.  A model's distance is the length of the
    vector of its throughputs minus the measured ones.  The throughputs of the measurement and of
    simulators are means over runs, which have standard errors.  The function computes, to first
    order, by how much these errors can change the difference of the two distances (95 % interval).
    The answer is True if this possible change is at least as large as the difference itself.

    The errors of one result's flows may be correlated, because the flows share a link.  So the
    function adds their magnitudes, which is right for fully correlated errors, and too cautious for
    all others.  Results without standard errors are taken as exact.  If a flow has a throughput in
    some runs only, its error is unknown (NaN), and the answer is True.
    """
    truth = measured.throughput
    if near.throughput is None or far.throughput is None or truth is None:
        return False
    known = np.isfinite(truth)
    for result in (near, far, measured):
        error = result.throughput_se
        if error is not None and sometimes(result.throughput, error)[known].any():  # type: ignore[arg-type]  # it has rates
            return True
    errors = [(rates - truth)[known] for rates in (near.throughput, far.throughput)]
    distances = [float(np.linalg.norm(each)) for each in errors]
    # to first order, a small change of a vector v changes its length by v/|v| times this change
    of_near, of_far = (v / max(d, 1e-300) for v, d in zip(errors, distances, strict=True))
    # how the difference of the distances changes with each throughput of a result (up to sign)
    slopes = ((measured, of_near - of_far), (near, of_near), (far, of_far))
    changes = [
        student_t(result.runs - 1) * float(np.abs(slope) @ result.throughput_se[known])
        for result, slope in slopes
        if result.throughput_se is not None and result.runs > 1
    ]
    return distances[1] - distances[0] <= math.hypot(*changes)
