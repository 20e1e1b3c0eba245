"""Holds the points of a study, and collects a model's results at them in arrays.

A study, such as a sweep, evaluates a model at many points. A point is a copy of one scenario in
which some fields have other values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats, delivered, jains, known_mean, relative_uncertainty
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.scatter import sometimes
from vegasmodel.results.share_errors import share_errors, shares_of
from vegasmodel.scenario import Scenario
from vegasmodel.study import not_held
from vegasmodel.study.fields import Field, put

__all__ = [
    "FAILED",
    "NOT_ALLOWED",
    "NO_ANSWER",
    "OK",
    "STATUS",
    "Figures",
    "Points",
    "collected",
    "of_arrays",
    "packet_bits",
]

# The status of a point: the model has a result; it has none for this scenario; the values of the
# fields contradict one another; the run of the simulator failed. STATUS has their names.
OK, NO_ANSWER, NOT_ALLOWED, FAILED = range(4)
STATUS = ("done", "no answer", "values not allowed together", "run failed")
# the fields of ``Figures`` with an entry for each flow, each link and each group of flows
PER_FLOW = (
    "throughput",
    "throughput_bps",
    "throughput_se",
    "share",
    "share_se",
    "rtt_mean",
    "base_rtt",
    "loss_rate",
)
PER_LINK = ("queue_mean", "queueing_delay", "utilization")
PER_GROUP = ("group_mean", "group_known", "group_bps", "group_share", "group_share_se")
# fields that are not in a prediction, but computed from the others and the scenario
DERIVED = ("throughput_bps", "share", "share_se", "queueing_delay")


@dataclass(frozen=True)
class Points:
    """The points of a study: copies of one scenario in which some fields have other values.

    ``columns`` holds one array [point] per field, with the field's value at each point.
    """

    scenario: Scenario
    fields: tuple[Field, ...]
    columns: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def at(self, i: int) -> Scenario:
        """The scenario of point ``i``.

        Raises ``FieldError`` if the values at this point contradict one another.
        """
        values = [column[i].item() for column in self.columns]
        return put(self.scenario, dict(zip(self.fields, values, strict=True)))

    def scenario_or_reason(self, i: int) -> Scenario | str:
        """The scenario of point ``i``, or a text that says why there is none.

        There is none if the values at this point contradict one another.
        """
        try:
            return self.at(i)
        except FieldError as error:
            return str(error)

    def scenarios(self) -> list[Scenario | str]:
        """The scenario of each point, or the reason why there is none."""
        return [self.scenario_or_reason(i) for i in range(len(self))]

    @property
    def by_group(self) -> bool:
        """Whether the number of flows varies from point to point.

        If so, ``Figures`` has one entry for each group of flows (entry ``[[flow]]``), where it
        otherwise has one for each flow. The share and its standard error are those of the whole
        group. All other quantities are means over the group's flows that have a throughput.
        """
        return any(field.key == "count" for field in self.fields)

    @property
    def flows(self) -> list[str]:
        """The labels of the dimension ``flow`` in the results: the names of the flows.

        If the number of flows varies from point to point, they are the names of the groups.
        """
        owners: Sequence[Any] = self.scenario.flows if self.by_group else self.scenario.members
        return [owner.name for owner in owners]


@dataclass(frozen=True, eq=False)
class Figures:
    """A model's results at each point of a study, as arrays; NaN where the model gives no result.

    A point is a copy of the scenario in which some fields have other values.  Rates are in pkt/s,
    times in seconds.  The fields from ``throughput`` to ``loss_rate`` are arrays [point, flow],
    with flows in the order of ``Points.flows``.
    """

    throughput: Floats
    throughput_bps: Floats  # the same in bits per second
    throughput_se: Floats  # its standard error over runs
    share: Floats  # of all bytes delivered: the flow's, or if ``Points.by_group`` the group's
    share_se: Floats  # its standard error over runs
    rtt_mean: Floats
    base_rtt: Floats
    loss_rate: Floats
    group_mean: Floats  # [point, group] mean throughput of a flow
    group_known: Floats  # [point, group] how many flows of the group have a throughput
    group_bps: Floats  # [point, group] bits that all flows of the group deliver per second together
    group_share: Floats  # [point, group] share of all bytes delivered by the group's flows together
    group_share_se: Floats  # [point, group] its standard error over runs
    jain: Floats  # [point]
    uncertainty: Floats  # [point] of the least certain throughput (``relative_uncertainty``)
    queue_mean: Floats  # [point, link] packets
    queueing_delay: Floats  # [point, link] s: the mean queue divided by the capacity
    utilization: Floats  # [point, link]
    status: NDArray[np.int8]  # [point] an index of STATUS
    reasons: tuple[str, ...]  # [point] why the status is not OK; else empty
    broken: tuple[str, ...]  # [point] assumptions that do not hold, as ``not_held`` writes them

    def mean_of(self, groups: Sequence[int]) -> Floats:
        """The mean throughput per flow over all flows of these groups, pkt/s, [point].

        ``groups`` are indices of ``[[flow]]`` tables.
        """
        known = self.group_known[:, groups]
        total = np.where(known > 0, self.group_mean[:, groups] * known, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / known.sum(axis=1))


def _blank(points: Points, n: int) -> dict[str, Any]:
    """The fields of ``Figures`` for ``n`` points, by name, filled with NaN; the status is OK."""
    flows, groups, links = len(points.flows), len(points.scenario.flows), len(points.scenario.links)
    blank: dict[str, Any] = {name: np.full((n, flows), np.nan) for name in PER_FLOW}
    blank |= {name: np.full((n, groups), np.nan) for name in PER_GROUP}
    blank |= {name: np.full((n, links), np.nan) for name in PER_LINK}
    blank |= {name: np.full(n, np.nan) for name in ("jain", "uncertainty")}
    return {**blank, "status": np.zeros(n, np.int8)}


def collected(points: Points, found: Sequence[Prediction | tuple[int, str]]) -> Figures:
    """Collect the predictions at all points of a study in arrays.

    ``found`` [point] has the prediction at each point, or else a status and the reason why there is
    none.  If the number of flows varies from point to point (``points.by_group``), the arrays with
    an entry per flow have one per group of flows instead.
    """
    table, reasons = _blank(points, len(found)), [""] * len(found)
    for i, answer in enumerate(found):
        if isinstance(answer, tuple):
            table["status"][i], reasons[i] = answer
            continue
        # [flow] the index of its group, its throughput, and the bits delivered per second
        groups = np.array([member.group for member in answer.scenario.members])
        scenario, rates = answer.scenario, np.asarray(answer.throughput)
        bits = rates * packet_bits(scenario)
        delivered_bits = np.asarray(answer.delivered_bps)
        runs, share = answer.extra.get("throughput_runs", ()), shares_of(delivered_bits)
        # results that the prediction has for each flow
        values = {name: getattr(answer, name) for name in PER_FLOW if name not in DERIVED}
        for name, value in {**values, "throughput_bps": bits}.items():
            if value is not None:
                table[name][i] = _means(value, groups, rates) if points.by_group else value
        # results for each group of flows
        table["group_mean"][i] = [answer.groups[group.name] for group in answer.scenario.flows]
        table["group_known"][i] = np.bincount(groups, np.isfinite(rates))
        table["group_bps"][i] = [answer.group_bps[group.name] for group in answer.scenario.flows]
        table["group_share"][i] = np.bincount(groups, share)
        # shares, and their standard errors from the throughputs of several runs
        table["share"][i] = table["group_share"][i] if points.by_group else share
        table["group_share_se"][i] = share_errors(runs, delivered_bits, groups)
        table["share_se"][i] = share_errors(
            runs, delivered_bits, groups if points.by_group else None
        )
        # results for each link, and for the whole scenario
        for name in ("queue_mean", "utilization"):
            value = getattr(answer, name)
            if value is not None:
                table[name][i] = value
        capacity = np.array([link.capacity for link in scenario.links])
        table["queueing_delay"][i] = table["queue_mean"][i] / capacity
        table["jain"][i] = math.nan if answer.jain is None else answer.jain
        table["uncertainty"][i] = _uncertainty(answer)
    broken = tuple(not_held.of_prediction(answer) for answer in found)
    return Figures(**table, reasons=tuple(reasons), broken=broken)


def _means(values: Floats, groups: NDArray[Any], rates: Floats) -> Floats:
    """The mean of ``values`` [flow] over the flows of each group that have a throughput, [group].

    ``groups`` [flow] are the groups of the flows, and ``rates`` [flow] their throughputs.  A flow's
    throughput is NaN if the flow is never active between warm-up and end.  The mean is NaN for a
    group in which no flow has a throughput.
    """
    known, n = np.isfinite(rates), int(groups.max()) + 1
    total = np.bincount(groups[known], np.asarray(values)[known], n)
    with np.errstate(invalid="ignore"):
        mean: Floats = total / np.bincount(groups[known], minlength=n)
    return mean


def _uncertainty(found: Prediction) -> float:
    """The largest relative uncertainty of a throughput; NaN if a standard error is unknown.

    ``metrics.relative_uncertainty`` explains the relative uncertainty.  If a flow has a throughput
    in only some of the runs, the standard error of its throughput is unknown.
    """
    if found.throughput_se is None:
        return math.nan
    mean, error = np.asarray(found.throughput), np.asarray(found.throughput_se)
    if sometimes(mean, error).any():
        return math.nan
    return float(relative_uncertainty(mean, error, found.runs).max())


def packet_bits(scenario: Scenario) -> Floats:
    """The size of one data packet of each flow, in bits, [n_flows]."""
    return np.array([8.0 * scenario.size_of(member.flow) for member in scenario.members])


def of_arrays(
    points: Points,
    bad: NDArray[np.bool_],
    why: str,
    bits: Floats,
    active: Floats,
    capacity: Floats,
    **known: Any,
) -> Figures:
    """Make ``Figures`` from arrays, for a study with one link and a fixed number of flows.

    From the model's results, the function computes what depends on them: shares, bit rates, the
    values of groups of flows, and Jain's index.

    - ``known``: the model's results as arrays, by their names in ``Figures``.  ``throughput`` and
      ``queue_mean`` must be among them.
    - ``bits`` [point, flow]: the size of each flow's packets, in bits.
    - ``active`` [point, flow]: the fraction of the measured time in which each flow is active.
      ``bits`` and ``active`` may have a single row, which then holds for all points.
    - ``capacity`` [point]: the link's capacity in pkt/s.
    - ``bad`` [point]: True at points without results.  All their entries become NaN.  Their status
      becomes ``NO_ANSWER``, unless ``known`` has another ``status`` than ``OK`` there.
    - ``why``: the reason why these points have no results.
    """
    n = len(points)
    scenario, table = points.scenario, _blank(points, n)
    table |= known
    rates = table["throughput"]
    table["throughput_bps"] = rates * bits
    # A throughput is a mean over the time in which the flow is active, ``bps`` over all time.
    bps = delivered(table["throughput_bps"] * active)
    table["share"] = shares_of(bps)
    table["queueing_delay"] = table["queue_mean"] / capacity[:, None]
    groups = np.array([member.group for member in scenario.members])
    for g in range(len(scenario.flows)):
        inside = groups == g  # [flow] whether it belongs to the group
        table["group_mean"][:, g] = known_mean(rates[:, inside].T)
        table["group_known"][:, g] = np.isfinite(rates[:, inside]).sum(axis=1)
        table["group_bps"][:, g] = bps[:, inside].sum(axis=1)
        table["group_share"][:, g] = table["share"][:, inside].sum(axis=1)
    table["jain"] = jains(rates)
    table["status"][bad] = np.where(table["status"][bad] == OK, NO_ANSWER, table["status"][bad])
    for name in (*PER_FLOW, *PER_LINK, *PER_GROUP, "jain"):
        table[name][bad] = np.nan
    reasons = np.full(n, "", object)
    reasons[bad] = why
    return Figures(**table, reasons=tuple(reasons), broken=("",) * n)
