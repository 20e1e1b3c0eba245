"""Finds the different outcomes of a scenario, and the share of random starts that lead to each.

A start is a choice of start times, initial windows and a seed. In some scenarios the start decides
which throughputs the flows get. So the model is run from many random starts.

Starts with nearly equal throughputs are linked. An outcome is a group of starts that are linked
directly or through other starts (single linkage). So the throughputs of two starts may differ much
and still belong to one outcome, if those of other starts lie between them without a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import predictor
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Quantity
from vegasmodel.metrics import Floats, delivered
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario, expect
from vegasmodel.study import models, not_held
from vegasmodel.study.starts import Start, starts
from vegasmodel.support.shown import Shown, Table

__all__ = [
    "Basins",
    "Outcome",
    "basins",
    "check_tolerance",
    "grouped",
    "linked",
    "outcomes",
    "sets",
]

TOLERANCE = 0.05  # of the mean throughput: runs that differ by less have the same outcome
OUTCOME_HEADS = [
    "% of starts",
    "95 % interval",
]  # of a table of outcomes, before the flows' columns
FLOW_COLUMNS = 6  # a table shows the throughputs of at most so many flows
STANDARD_ERRORS = 4.0  # averages may differ by so many and still have the same outcome


@dataclass(frozen=True, eq=False)
class Outcome:
    """One outcome of a scenario: a group of random starts that lead to similar throughputs.

    A start is a choice of start times, initial windows and a seed. ``throughput``, ``low`` and
    ``high`` are the mean, the least and the greatest throughput of each flow over the starts of the
    group, [flow] pkt/s. ``share`` is the group's share of all starts with a result.
    """

    throughput: Floats  # mean over its starts
    low: Floats
    high: Floats
    starts: int
    share: float  # of the starts that have an answer
    share_se: float  # standard error of that share, binomial; 0 if the share is 1
    interval: tuple[float, float]  # 95 % interval of the share (Wilson)
    example: int  # index of the start whose throughputs are nearest to the mean

    def cells(self, flows: int) -> list[str]:
        """The outcome's cells in a table, under ``OUTCOME_HEADS`` and the names of ``flows`` flows.

        A flow's cell has the mean, the least and the greatest of its throughputs, pkt/s.
        """
        share = f"{100 * self.share:.3g} ± {100 * self.share_se:.2g}"
        low, high = self.interval
        spans = zip(self.throughput[:flows], self.low, self.high, strict=False)
        rates = [f"{mean:.4g} ({least:.4g}..{most:.4g})" for mean, least, most in spans]
        return [share, f"{100 * low:.3g}..{100 * high:.3g}", *rates]

    def to_json(self) -> dict[str, Any]:
        """The outcome as an entry of the list ``outcomes`` in the JSON of the command ``basins``.

        An outcome is a group of random starts that lead to similar throughputs.
        """
        return {
            "throughput_pps": self.throughput.tolist(),
            "throughput_range_pps": np.stack([self.low, self.high], axis=-1).tolist(),
            "starts": self.starts,
            "share_of_starts": self.share,
            "share_of_starts_se": self.share_se,
            "share_of_starts_interval": list(self.interval),
            "example": self.example,
        }


class OfStarts(Shown):
    """A result about many random starts of a scenario, each of which leads to an outcome."""

    scenario: Scenario
    model: str
    starts: tuple[Start, ...]
    outcome: NDArray[np.intp]  # [start] index of the outcome; -1 where there is no answer
    reasons: tuple[str, ...]  # why there is no answer, each once

    @property
    def answered(self) -> int:
        """The number of random starts for which the model has a result."""
        return int((self.outcome >= 0).sum())

    def _listed(self, heads: Sequence[str], rows: list[list[str]]) -> Table:
        """A table of outcomes, which has columns for up to ``FLOW_COLUMNS`` flows after ``heads``.

        The title says how many starts have an answer. If none has one, there are no rows, and the
        title also has the first reason.
        """
        title = (
            f"{self.model} on {self.scenario.name}: {self.answered} of {len(self.starts)} starts"
        )
        if not rows:
            return Table(f"{title}; {next(iter(self.reasons), 'no throughput')}", [], [])
        names = [member.name for member in self.scenario.members][:FLOW_COLUMNS]
        return Table(f"{title}; pkt/s: mean (least..greatest)", [*heads, *names], rows)


@dataclass(frozen=True, eq=False, repr=False)
class Basins(OfStarts):
    """The different outcomes (throughputs) of a scenario, and which random starts lead to each.

    ``table`` gives a text with a line for each outcome, and columns for up to six flows.

    A start consists of start times, initial windows and a seed.  Two starts are linked if their
    throughputs differ by at most the fraction ``tolerance`` of the mean throughput.  Starts that
    are linked, directly or through other starts, have the same outcome.  ``broken`` has the names
    of the assumptions that do not hold, and at how many starts.
    """

    scenario: Scenario
    model: str
    tolerance: float
    starts: tuple[Start, ...]
    throughput: Floats  # [start, flow] pkt/s; NaN: no answer; 0: never active after the warm-up
    outcome: NDArray[np.intp]  # [start] index into ``outcomes``; -1 where there is no answer
    outcomes: tuple[Outcome, ...]  # most starts first
    reasons: tuple[str, ...]  # why there is no answer, each once
    broken: Mapping[str, int] = field(default_factory=dict)  # at how many starts each does not hold

    def __repr__(self) -> str:
        """One line: the number of outcomes, and the shares of starts that lead to the first six.

        If no start has a result, the line has the first reason.
        """
        if not self.outcomes:
            reason = next(iter(self.reasons), "no throughput")
            return f"<Basins {self.model}: no answer from any start, {reason}>"
        shares = ", ".join(f"{each.share:.3g}" for each in self.outcomes[:6])
        n = len(self.outcomes)
        many = f"{n} outcome{'s' * (n != 1)}"
        return f"<Basins {self.model}: {many}, shares of starts {shares}>"

    @property
    def _shown(self) -> Table:
        """A table with a row for each outcome."""
        return self._listed(OUTCOME_HEADS, [each.cells(FLOW_COLUMNS) for each in self.outcomes])

    def to_json(self) -> dict[str, Any]:
        """Most of the JSON document of the command ``basins``.

        The command adds the entries ``sets`` and ``against`` and the version number of the format.
        """
        return {
            "scenario": self.scenario.name,
            "model": self.model,
            "flows": [member.name for member in self.scenario.members],
            "tolerance": self.tolerance,
            "starts": len(self.starts),
            "answered": self.answered,
            "outcomes": [each.to_json() for each in self.outcomes],
            "points": [
                {
                    "start_s": list(start.times),
                    "initial_window": list(start.windows),
                    "seed": start.seed,
                    "outcome": None if where < 0 else int(where),
                    "throughput_pps": None if where < 0 else rates.tolist(),
                }
                for start, where, rates in zip(
                    self.starts, self.outcome, self.throughput, strict=True
                )
            ],
            "reasons": list(self.reasons),
            "broken": dict(self.broken),
        }


def basins(
    scenario: Scenario,
    model: str = "rounds",
    *,
    starts: int = 200,
    seed: int = 1,
    phase: float | None = None,
    windows: tuple[int, int] | None = None,
    order: bool = False,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Basins:
    """The outcomes of ``scenario`` by ``model``, and the share of random starts that lead to each.

    ``model`` is a model of ``predict``, or the packet-level simulator ``ns2`` or ``ns3``.  It is
    run once from each of ``starts`` random starts.  Every model gets the same starts if ``seed`` is
    the same.  A start changes the scenario as follows:

    - With ``order``, the flows first exchange their start times at random.
    - Each flow starts later by a random time, uniform from 0 to ``phase`` seconds (default: the
      longest RTT).
    - Each flow gets a random initial window, a whole number of packets from the range ``windows``.
      By default the range begins at 1. It ends at the slowest link's capacity times the longest
      RTT, divided by the number of flows. This end is rounded up; it is at least 2 and at most
      1,000,000. With ``(0, 0)`` the flows keep their own initial windows. A flow with
      ``over_estimate = 0`` always keeps its own.
    - The simulator gets a random seed and makes one run.  The field ``start_jitter`` has no effect.

    A random start has no result if it moves a flow's start time past the flow's ``stop``, or past
    the end of the run.  The shares hold only for starts that are drawn in this way.

    Starts with nearly the same throughputs have the same outcome.  More exactly, two starts are
    linked if no flow's throughput differs by more than ``tolerance`` times the mean throughput of
    all flows and starts.  Starts that are linked, directly or through others, have the same
    outcome.

    ``threads`` is the number of threads of a simulator (by default one per core).  After each
    start, the function ``progress`` is called with two numbers: the starts done so far, and all
    starts.

    Raises ``FieldError`` for bad input, and ``ExtraMissing`` or ``EngineMissing`` if the model
    needs something that is not installed.
    """
    expect(scenario)
    models.ready(model)
    check_tolerance(tolerance)
    if progress is not None and not callable(progress):
        raise FieldError("progress", progress, "a function of two numbers: starts done, starts")
    random_starts = _distribution(scenario, phase, windows, order=order).draw(
        scenario, starts, seed
    )
    scenarios = [_scenario_from(start, scenario) for start in random_starts]
    found = models.predictions(scenarios, model, threads, brief=True, progress=progress)
    rates = np.full((starts, len(scenario.members)), np.nan)
    for k, answer in enumerate(found):
        if isinstance(answer, Prediction) and answer.throughput is not None:
            rates[k] = delivered(answer.throughput)
    # an entry without a prediction is a pair: a status and the reason
    reasons = dict.fromkeys(each[1] for each in found if not isinstance(each, Prediction))
    outcome = grouped(rates, tolerance)
    each_outcome = outcomes(rates, outcome)
    broken = not_held.counted(not_held.of_prediction(answer) for answer in found)
    return Basins(
        scenario=scenario,
        model=model,
        tolerance=tolerance,
        starts=tuple(random_starts),
        throughput=rates,
        outcome=outcome,
        outcomes=each_outcome,
        reasons=tuple(reasons),
        broken=broken,
    )


_distribution = starts  # the function ``starts``, under a name that is no argument of ``basins``


def check_tolerance(tolerance: float) -> None:
    """Raise ``FieldError`` unless the tolerance is above 0 and below 1.

    Two runs have the same outcome if no flow's throughput differs between them by more than the
    fraction ``tolerance`` of the mean throughput.
    """
    Quantity("fraction", high=1.0, low_open=True).check(tolerance, "tolerance")
    if tolerance == 1.0:
        raise FieldError(
            "tolerance", tolerance, 'a fraction above 0 and below 1, or a percentage such as "5 %"'
        )


def _scenario_from(start: Start, scenario: Scenario) -> Scenario | str:
    """The scenario with the start times, windows and seed of a start, or why there is none."""
    try:
        return start.of(scenario)
    except FieldError as error:
        return str(error)


def grouped(rates: Floats, tolerance: float) -> NDArray[np.intp]:
    """Group random starts of a scenario by their throughputs; return each start's group [start].

    A start is a choice of start times, initial windows and a seed.  ``rates`` [start, flow] are the
    throughputs.  Two starts are linked if no flow's throughput differs by more than ``tolerance``
    times the mean of all throughputs.  Starts that are linked, directly or through others, are one
    group: they have the same outcome.  Group 0 has the most starts.  A start with a throughput of
    NaN gets -1.
    """
    good = rates[np.isfinite(rates).all(axis=1)]
    scale = float(good.mean()) if good.size else 1.0
    return linked(rates / (scale if scale > 0 else 1.0), tolerance)


def linked(features: Floats, tolerance: float, errors: Floats | None = None) -> NDArray[np.intp]:
    """Group runs from different starts by their results.  Runs in one group have the same outcome.

    Each run begins with its own choice of start times, initial windows and seed. Row i of
    ``features`` has the numbers that describe the result of run i, such as the flows' throughputs.
    Two runs are linked if they differ by at most ``tolerance`` in every feature. Runs that are
    linked, directly or through other runs, have the same outcome (single linkage).

    Returns the number of each run's outcome in an array. Outcome 0 has the most runs, outcome 1 the
    next most, and so on. A run with NaN among its features gets -1.

    ``errors`` are the standard errors of the features, in an array of the same shape. If they are
    given, two runs may differ by more: by ``tolerance`` plus 4 standard errors
    (``STANDARD_ERRORS``) of the difference.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    outcome = np.full(len(features), -1, np.intp)
    complete = np.flatnonzero(np.isfinite(features).all(axis=1))
    if not complete.size:
        return outcome
    values = features[complete]
    value_errors = np.zeros_like(values) if errors is None else errors[complete]
    # First find the pairs that would be linked if all errors were as large as the largest. Of these
    # keep the pairs that are linked by their own errors.
    reach = tolerance + STANDARD_ERRORS * math.sqrt(2.0) * float(value_errors.max())
    pairs = cKDTree(values).query_pairs(reach, p=np.inf, output_type="ndarray")
    one, other = pairs.T  # the indices of the two runs of each pair
    error_of_difference = np.hypot(value_errors[one], value_errors[other])
    allowed = tolerance + STANDARD_ERRORS * error_of_difference  # [pair, feature]
    near = (abs(values[one] - values[other]) <= allowed).all(axis=1)
    one, other = one[near], other[near]
    # a matrix [run, run] with 1 for each linked pair
    links = csr_array(
        (np.ones(one.size, np.int8), (one, other)),
        shape=(complete.size, complete.size),
    )
    _, group = connected_components(links, directed=False)  # [run] the number of its outcome
    # number the groups by their sizes, the largest first
    size = np.bincount(group)
    rank = np.empty(size.size, np.intp)
    rank[np.argsort(-size, kind="stable")] = np.arange(size.size)
    outcome[complete] = rank[group]
    return outcome


def outcomes(rates: Floats, outcome: NDArray[np.intp]) -> tuple[Outcome, ...]:
    """Describe each outcome: its mean throughputs, their range, and its share of the starts.

    A start is a choice of start times, initial windows and a seed; an outcome is a group of starts
    that lead to similar throughputs.  ``rates`` [start, flow] are the throughputs, pkt/s.
    ``outcome`` [start] is the index of each start's outcome, as ``grouped`` and ``linked`` return
    it.
    """
    return tuple(_outcome(rates, outcome, i) for i in range(outcome.max(initial=-1) + 1))


def _outcome(rates: Floats, outcome: NDArray[np.intp], i: int) -> Outcome:
    """Describe outcome number ``i``: mean throughputs, their range, and its share of the starts.

    ``rates`` [start, flow] are the throughputs, pkt/s. ``outcome`` [start] is the index of each
    start's outcome.
    """
    from scipy.stats import binomtest

    where = np.flatnonzero(outcome == i)  # its starts
    rates_here, n = rates[where], int((outcome >= 0).sum())
    mean, share = rates_here.mean(axis=0), where.size / n
    ends = binomtest(int(where.size), n).proportion_ci(method="wilson")
    nearest = where[np.argmin(np.abs(rates_here - mean).max(axis=1))]
    return Outcome(
        throughput=mean,
        low=rates_here.min(axis=0),
        high=rates_here.max(axis=0),
        starts=int(where.size),
        share=share,
        share_se=math.sqrt(share * (1.0 - share) / n),
        interval=(float(ends.low), float(ends.high)),
        example=int(nearest),
    )


def sets(scenario: Scenario) -> list[tuple[Prediction, Floats]]:
    """The predictions of the models in closed form that give each flow a range of rates.

    For example, if alpha < beta, Vegas has many steady states, with different rates.  Each
    prediction comes with an array [flow, 2] of the least and the greatest rate, pkt/s.
    """
    answers = predictor.predict_all(scenario, predictor.CLOSED_FORMS)
    return [(a, a.throughput_range) for a in answers if a.throughput_range is not None]
