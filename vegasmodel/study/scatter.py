"""Estimates the standard error of a quantity for which ``design`` has a target, such as a share.

If the runs of a simulator are random, the quantity differs from run to run. Its standard error is
estimated from several runs, by the jackknife.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.metrics import Floats, student_t
from vegasmodel.results.prediction import Prediction
from vegasmodel.study import models, points
from vegasmodel.study.points import Figures, Points
from vegasmodel.study.targets import Target
from vegasmodel.support.progress import Count

if TYPE_CHECKING:
    from vegasmodel.engines.rounds.answers import Enough

__all__ = ["answered", "half_interval", "run_rates", "standard_error"]


def answered(
    searched: Points, model: str, count: Count, enough: Enough | None = None
) -> tuple[Figures, list[Prediction | None]]:
    """Evaluate the model at these points; return its results and the ``Prediction`` of each point.

    A point is a copy of a scenario in which the searched field has another value. The caller needs
    the predictions because they have the throughputs of single runs. If the model computes all
    points together, it makes one run at each, and the entries of the list are ``None``. An entry is
    also ``None`` if the model has no prediction at the point. ``models.predictions`` explains
    ``enough``. The points are added to ``count``, which the progress line shows.
    """
    before = count.done
    count.number += len(searched)

    def progress(done: int, _: int) -> None:
        """Show that ``done`` of these points are finished."""
        count.done = before + done

    figures = models.at_once(searched, model, None)
    if figures is not None:
        progress(len(searched), len(searched))
        return figures, [None] * len(searched)
    found = models.predictions(searched.scenarios(), model, None, enough=enough, progress=progress)
    point_predictions = [entry if isinstance(entry, Prediction) else None for entry in found]
    return points.collected(searched, found), point_predictions


def run_rates(found: Prediction | None) -> Floats:
    """The flows' throughputs in each run, [run, flow] pkt/s; an empty array if they are unknown."""
    rates = None if found is None else found.extra.get("throughput_runs")
    return np.empty((0, 0)) if rates is None else np.asarray(rates)


def standard_error(target: Target, found: Prediction | None) -> float | None:
    """The standard error of the target's quantity, such as a share, by the jackknife.

    The quantity is computed from the mean throughputs of ``n`` runs.  Without run ``k``, its value
    would be ``T_k``.  The scatter of these ``n`` values around their mean, ``mean(T)``, gives the
    standard error ``se`` (Efron, "The jackknife, the bootstrap and other resampling plans", 1982,
    equation 3.5):

        se^2 = (n - 1)/n * sum_k (T_k - mean(T))^2

    If the quantity is a delay, it is computed from the mean queues of the runs instead.

    Returns ``None`` if there is no such error: for example, if ``found`` does not have the
    throughputs of at least two runs.
    """
    rates = run_rates(found)
    n = len(rates)
    if found is None or n < 2:
        return None
    # the prediction without run k, for each k
    without = [_with_rates(found, rate) for rate in _means_without(rates)]
    if target.kind == "delay":
        queues = found.extra.get("queue_runs")
        if queues is None:
            return None
        without = [dataclasses.replace(found, queue_mean=mean) for mean in _means_without(queues)]
    figure = target.of(
        points.collected(Points(found.scenario, fields=(), columns=()), without), found.scenario
    )
    # Differences from the first, so that the error is exactly 0 if all runs are equal: the
    # differences are then 0, while a mean of equal numbers may be rounded.
    difference = figure - figure[0]
    # (3.5) of Efron
    error = math.sqrt((n - 1) / n * float(np.sum((difference - difference.mean()) ** 2)))
    return error if math.isfinite(error) else None


def _means_without(runs: Floats) -> Floats:
    """The mean over all runs but run k, for each k: [run, ...] from values [run, ...]."""
    change = runs - runs[0]  # exactly 0 if all runs are equal, as in ``standard_error``
    means: Floats = runs[0] + (change.sum(axis=0) - change) / (len(runs) - 1)
    return means


def _with_rates(found: Prediction, rates: Floats) -> Prediction:
    """A copy of the prediction with the throughputs ``rates`` [flow], in pkt/s.

    If the prediction has the number of packets that each flow delivered, this number changes in
    proportion to the throughput. The utilization is computed anew from the throughputs.
    """
    packets, mean = found.delivered, np.asarray(found.throughput)
    if packets is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            packets = np.where(mean > 0, packets * rates / mean, packets)
    return dataclasses.replace(found, throughput=rates, delivered=packets, utilization_links=None)


def half_interval(error: float, n: int) -> float:
    """Half the width of the 95 % confidence interval (Student's t) of a mean over ``n`` runs.

    ``error`` is the standard error of the mean.
    """
    return student_t(n - 1) * error
