"""Tests whether two models or simulators lead to the same outcomes of a scenario equally often.

``basins`` runs each of the two from many random starts. A start is a choice of start times, initial
windows and a seed. Starts that lead to nearly the same throughputs have the same outcome. A
chi-squared test then compares how many starts of each model lead to each outcome.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.study.basins import Basins, grouped

__all__ = ["Agreement", "agreement"]

MAX_PARTS = 4  # most parts into which an outcome with a wide range of throughputs is divided
SAME_PART = 0.1  # of the tolerance: throughputs that differ by less should stay in one part
MIN_EXPECTED = 5.0  # least expected number of starts in a cell of the chi-squared test


@dataclass(frozen=True)
class Agreement:
    """Whether two models agree on the share of random starts that leads to each outcome.

    A start is a choice of start times, initial windows and a seed. Starts that lead to nearly the
    same throughputs have the same outcome. ``counts`` is the number of starts per model and
    outcome. ``p`` is the p-value of a chi-squared test for a difference between the models. The
    test merges outcomes with few starts; ``counts`` and ``ends`` list them unmerged.
    """

    counts: NDArray[np.intp]  # [2, outcome]
    ends: Floats  # [outcome, flow, 2] least and greatest throughput, pkt/s
    statistic: float  # chi-squared; 0 if only one outcome is left after the merging
    freedom: int  # degrees of freedom of the test
    p: float  # NaN, like ``statistic``, if one of the models has no result from any start
    alike: float  # share of the starts with the same outcome in both models, if both have a result

    def to_json(self) -> dict[str, Any]:
        """The result as the entry ``agreement`` of the JSON document of the command ``basins``."""
        return {
            "counts": self.counts.tolist(),
            "throughput_range_pps": self.ends.tolist(),
            "chi_squared": None if math.isnan(self.statistic) else self.statistic,
            "degrees_of_freedom": self.freedom,
            "p": None if math.isnan(self.p) else self.p,
            "same_start_same_outcome": None if math.isnan(self.alike) else self.alike,
        }


def agreement(one: Basins, other: Basins, tolerance: float | None = None) -> Agreement:
    """Test whether two models lead to the same outcomes equally often.

    Both models were run from random starts.  A start is a choice of start times, initial windows
    and a seed.  An outcome is a set of starts that lead to similar throughputs.  The question is
    whether the number of starts with each outcome differs between the models by more than chance
    explains.  ``one`` and ``other`` are what ``basins`` returned for two models of one scenario.

    First, the outcomes of the starts of both models are determined together.  Two starts have the
    same outcome if no flow's throughput differs by more than ``tolerance``.  They also have the
    same outcome if a chain of starts links them, in which this holds for each start and the next.
    ``tolerance`` is a fraction of the mean throughput; its default is ``one.tolerance``.

    Then the outcomes are changed in two ways:

    - Wide outcomes are divided into up to four parts, also in the result.  An outcome is wide if
      the throughputs of a flow differ in it by more than twice the tolerance.
    - Outcomes with too few starts are merged for the test; the result lists them separately.

    The test is Pearson's chi-squared test for two samples, which assumes independent starts.  With
    the same ``seed`` in ``basins``, both models have the same starts.  Chance alone then leads to a
    small p-value less often than with independent starts.
    """
    from scipy.stats import chi2_contingency

    tolerance = one.tolerance if tolerance is None else tolerance
    rates = np.vstack([one.throughput, other.throughput])
    # [start] the number of each start's outcome; the starts of ``other`` begin at ``split``
    label = _wide_split(rates, grouped(rates, tolerance), tolerance)
    split = len(one.throughput)
    n = int(label.max(initial=-1)) + 1
    counts = _counts(label, split, n)
    groups = [rates[label == i] for i in range(n)]
    ends = np.array([np.stack([group.min(axis=0), group.max(axis=0)], axis=-1) for group in groups])
    # the starts that both models have, and whether they lead to the same outcome
    of_other = {start: i for i, start in enumerate(other.starts)}
    pairs = [(i, of_other[start]) for i, start in enumerate(one.starts) if start in of_other]
    same = [label[i] == label[split + j] for i, j in pairs if label[i] >= 0 <= label[split + j]]
    alike = float(np.mean(same)) if same else math.nan
    per_model = counts.sum(axis=1)  # starts with a result
    if not per_model.all():
        return Agreement(
            counts=counts, ends=ends, statistic=math.nan, freedom=0, p=math.nan, alike=alike
        )
    smaller_share = float(per_model.min()) / max(float(per_model.sum()), 1.0)
    merged_label = _rare_merged(rates, label, smaller_share)
    table = _counts(merged_label, split, int(merged_label.max(initial=-1)) + 1)
    if table.shape[1] < 2:
        return Agreement(counts=counts, ends=ends, statistic=0.0, freedom=0, p=1.0, alike=alike)
    test = chi2_contingency(table, correction=False)
    return Agreement(
        counts=counts,
        ends=ends,
        statistic=float(test.statistic),
        freedom=int(test.dof),
        p=float(test.pvalue),
        alike=alike,
    )


def _wide_split(rates: Floats, label: NDArray[np.intp], tolerance: float) -> NDArray[np.intp]:
    """Split wide outcomes into up to ``MAX_PARTS`` parts each; return the starts' outcomes [start].

    A start is a run of a model from a random initial state.  An outcome is a group of starts with
    similar throughputs.  ``rates`` [start, flow] are the throughputs, and ``label`` [start] is the
    number of each start's outcome so far, negative if it belongs to none.  An outcome is wide if
    the throughputs of some flow differ, between its starts, by more than ``2 tolerance`` times the
    mean throughput of the flows.  The starts of a wide outcome are sorted into parts by the
    throughput of one flow: the flow whose throughputs differ most between these starts.  ``_cuts``
    returns the throughputs that separate the parts.  If it returns none, the outcome stays whole.
    """
    scale = float(rates[label >= 0].mean()) if np.any(label >= 0) else 1.0
    parted, n = label.copy(), int(label.max(initial=-1)) + 1
    for i in range(n):
        where = np.flatnonzero(label == i)
        width = np.ptp(rates[where], axis=0)
        if width.max() <= 2.0 * tolerance * scale:
            continue
        of_widest_flow = rates[where, int(np.argmax(width))]
        edges = _cuts(of_widest_flow, SAME_PART * tolerance * scale)
        # the number of each start's part, from 0 on; ``np.unique`` skips parts without a start
        _, part = np.unique(
            np.searchsorted(edges, of_widest_flow, side="right"), return_inverse=True
        )
        # part 0 keeps the number of the outcome; the others get the numbers n, n + 1, ...
        parted[where[part > 0]] = n + part[part > 0] - 1
        n += int(part.max())
    return parted


def _cuts(throughputs: Floats, near: float) -> Floats:
    """The throughputs at which to divide an outcome into up to ``MAX_PARTS`` parts of similar size.

    An outcome is a group of random starts with similar throughputs, and ``throughputs`` [start]
    holds one flow's throughputs. Cuts at the quantiles 1/MAX_PARTS, 2/MAX_PARTS and so on would
    make parts of equal size. But starts with nearly the same throughput should stay in one part. So
    a cut may lie up to half a part (in number of starts) away from its quantile. It is made where
    the fewest throughputs differ from the cut by less than ``near``. If this number is at least
    half the size of a part, there is no cut for this quantile.
    """
    ordered, n = np.sort(throughputs), throughputs.size
    # possible cuts: cut i lies between the throughputs i and i + 1
    cut_at = 0.5 * (ordered[1:] + ordered[:-1])
    # [cut] how many throughputs are near it
    number_near = np.searchsorted(ordered, cut_at + near, "right") - np.searchsorted(
        ordered, cut_at - near
    )
    cuts, starts_per_part = [], n / MAX_PARTS
    for quantile in np.arange(1, MAX_PARTS) * n / MAX_PARTS:  # as a number of starts
        candidates = np.arange(
            int(quantile - 0.5 * starts_per_part), int(quantile + 0.5 * starts_per_part)
        )
        if not candidates.size:
            continue
        # ``distance`` is below 1, so it decides only between cuts with equally many throughputs
        # near them: the one nearer to the quantile is chosen
        distance = np.abs(candidates + 1 - quantile) / n
        best = candidates[np.argmin(number_near[candidates] + distance)]
        if number_near[best] < 0.5 * starts_per_part:
            cuts.append(cut_at[best])
    return np.array(cuts)


def _rare_merged(rates: Floats, label: NDArray[np.intp], smaller_share: float) -> NDArray[np.intp]:
    """Merge rare outcomes; return the new outcome of each start as an index [start].

    An outcome is a group of random starts with similar throughputs. The chi-squared test needs at
    least ``MIN_EXPECTED`` expected starts of each model in each outcome. ``rates`` [start, flow]
    are the throughputs, and ``label`` [start] is the outcome of each start so far, negative without
    a result. ``smaller_share`` is the fraction of all starts that belongs to the model with fewer
    starts. So an outcome with n starts is rare if ``n * smaller_share`` is below ``MIN_EXPECTED``.
    If all rare outcomes together are still rare, the smallest other outcomes are merged with them,
    too.

    Outcomes with neighbouring throughputs are merged. The throughput is that of one flow: the flow
    whose throughputs differ most. A merged outcome is complete when it has enough starts for the
    test, and at least the fraction 1/``MAX_PARTS`` of all starts that are merged. The next merged
    outcome then begins. If the last one has too few starts for the test, it is merged with the one
    before.
    """
    size = np.bincount(label[label >= 0])  # [outcome] number of starts
    needed = MIN_EXPECTED / smaller_share  # starts of both models in an outcome, for the test
    rare = size * smaller_share < MIN_EXPECTED  # [outcome] whether it is to be merged
    if not rare.any():
        return label
    while size[rare].sum() * smaller_share < MIN_EXPECTED and not rare.all():
        rare |= size == size[~rare].min()
    where = np.flatnonzero((label >= 0) & rare[label])  # the starts with a rare outcome
    flow = int(np.argmax(np.ptp(rates[where], axis=0)))  # the flow whose throughputs differ most
    # [outcome] mean throughput of this flow
    mean = np.bincount(label[where], rates[where, flow], size.size) / np.maximum(size, 1)
    complete = max(needed, size[rare].sum() / MAX_PARTS)  # starts of a complete merged outcome
    # [outcome] the number of the merged outcome; these numbers begin after those of the others
    merged = np.arange(size.size)
    current, filled = size.size, 0  # the merged outcome that is being filled, and its starts so far
    for i in np.flatnonzero(rare)[np.argsort(mean[rare])]:
        merged[i] = current
        filled += size[i]
        if filled >= complete:
            current, filled = current + 1, 0
    if filled < needed:
        # the last merged outcome is too small: join it to the one before
        merged[merged == current] = max(current - 1, size.size)
    # number the outcomes that are left from 0 on; -1 stays for a start without a result
    new_label = np.where(label < 0, label, merged[label])
    remaining = np.unique(new_label[new_label >= 0])
    return np.where(label < 0, label, np.searchsorted(remaining, new_label))


def _counts(label: NDArray[np.intp], split: int, n: int) -> NDArray[np.intp]:
    """The number of random starts that lead to each outcome, for each of two models, [2, outcome].

    ``label`` [start] is the index of each start's outcome (its range of throughputs), or -1 if the
    start has no result. The first ``split`` entries are the starts of the first model. ``n`` is the
    number of outcomes.
    """
    parts = label[:split], label[split:]
    return np.array([np.bincount(part[part >= 0], minlength=n) for part in parts])
