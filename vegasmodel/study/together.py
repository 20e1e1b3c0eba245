"""Evaluates a model at many points of a study in one call, which takes less time than many calls.

A point is a copy of a scenario in which some fields have other values. Only two models can do this:
the closed form ``minicycle`` and the simulator ``fluid``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.adapters import fluid, minicycle, minicycle_many
from vegasmodel.adapters.common import NOBODY_SENDS
from vegasmodel.engines.fluid import methods
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import foreign
from vegasmodel.metrics import Floats, delivered
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.status import Status
from vegasmodel.study import not_held
from vegasmodel.study.points import (
    NOT_ALLOWED,
    OK,
    STATUS,
    Figures,
    Points,
    of_arrays,
    packet_bits,
)

__all__ = ["by_fluid", "by_minicycle", "columns", "fits_one_batch"]


def columns(points: Points) -> dict[str, NDArray[Any]] | None:
    """The values of a sweep's varied fields, as input of ``minicycle`` for all points in one call.

    A point is one choice of the fields' values.  The result maps the key of each varied field, such
    as ``rtt``, to an array with one value per point.  If all Vegas flows of the scenario have
    beta = alpha, and ``alpha`` varies without ``beta``, then ``beta`` gets the values of ``alpha``.

    Returns ``None`` if the model cannot compute all points in one call, for example if ``alpha``
    varies and only some of the Vegas flows have beta = alpha.
    """
    scenario, values = points.scenario, {}
    for field, column in zip(points.fields, points.columns, strict=True):
        groups = field.indices if field.part == "flow" else ()
        of_link_or_flow = field.part in ("link", "flow") and not field.queue
        if not of_link_or_flow or not minicycle_many.takes(scenario, field.key, groups):
            return None
        values[field.key] = column
    if "alpha" in values and "beta" not in values:
        one_threshold = {group.one_threshold for group in scenario.flows if group.keeps_backlog}
        if len(one_threshold) > 1:  # some Vegas flows have beta = alpha, others have not
            return None
        if one_threshold == {True}:
            values["beta"] = values["alpha"]
    window = values.get("initial_window")
    return None if window is not None and np.any(window % 1.0) else values


def by_minicycle(points: Points) -> Figures | None:
    """The results of ``minicycle`` at all points of a study, computed together as arrays.

    A point is a copy of a scenario in which some fields have other values.  Returns ``None`` if the
    points cannot be computed together, for example because ``minicycle`` cannot take an array for a
    field that varies, or because a flow has a law for which there is no closed form.
    """
    scenario, values = points.scenario, columns(points)
    if values is None:
        return None
    cases = (points.scenario_or_reason(i) for i in range(len(points)))
    first = next((case for case in cases if not isinstance(case, str)), None)
    if first is None or foreign(group.law for group in first.flows) is not None:
        return None
    if minicycle.reason(first) is not None:
        return None
    allowed = _allowed(points, values)
    allowed_points = np.flatnonzero(allowed)
    # to save time, only two points are tested: the first and the last, which differ the most
    if not all(
        _only_these_differ(points, values, i) for i in (allowed_points[0], allowed_points[-1])
    ):
        return None
    # the results by name, and for each assumption of the model whether it holds, at these points
    found, holding = minicycle_many.answers(
        scenario, {key: column[allowed_points] for key, column in values.items()}
    )
    figures = _figures_of_minicycle(points, values, found, allowed)
    broken = np.full(len(points), "", object)
    broken[allowed_points] = not_held.of_arrays(holding)
    broken[figures.status != OK] = ""
    reasons = list(figures.reasons)
    # To find out the exact reason takes long, so it is done for the first 1000 points only.
    for k, i in enumerate(np.flatnonzero(~allowed).tolist()):
        reasons[i] = str(points.scenario_or_reason(i)) if k < 1000 else STATUS[NOT_ALLOWED]
    return dataclasses.replace(figures, reasons=tuple(reasons), broken=tuple(broken.tolist()))


def _figures_of_minicycle(
    points: Points,
    values: dict[str, NDArray[Any]],
    found: Mapping[str, Floats],
    allowed: NDArray[np.bool_],
) -> Figures:
    """Arrange the results of ``minicycle`` by point and flow; NaN at points that are not allowed.

    ``values`` are the varied fields' values at all points (``columns``).  ``found`` has the results
    at those points for which ``allowed`` is true, by name: one value each for every Vegas flow and
    for every other flow, such as ``vegas`` and ``reno``, the throughputs.
    """
    scenario, n = points.scenario, len(points)
    is_vegas = np.array([m.flow.keeps_backlog for m in scenario.members])  # [flow]

    def at_all_points(values: Floats) -> Floats:
        """An array [point, 1] with ``values`` at the allowed points, and NaN at the others."""
        whole = np.full(n, np.nan)
        whole[allowed] = values
        return whole[:, None]

    def per_flow(vegas: str, reno: str) -> Floats:
        """The result ``vegas`` for each Vegas flow, and ``reno`` for each other, [point, flow]."""
        return np.where(is_vegas, at_all_points(found[vegas]), at_all_points(found[reno]))

    rtt = values.get("rtt", np.full(n, scenario.members[0].rtt))
    status = np.zeros(n, np.int8)
    status[~allowed] = NOT_ALLOWED
    rates = per_flow("vegas", "reno")
    return of_arrays(
        points,
        bad=~np.isfinite(rates[:, 0]),
        why="the equations have no periodic solution",
        bits=packet_bits(scenario)[None],
        active=active_part(scenario)[None],
        capacity=np.broadcast_to(values.get("capacity", scenario.links[0].capacity), n),
        throughput=rates,
        loss_rate=per_flow("loss_rate_vegas", "loss_rate_reno"),
        rtt_mean=np.repeat(at_all_points(found["rtt_mean"]), is_vegas.size, axis=1),
        base_rtt=np.where(is_vegas, rtt[:, None], np.nan),
        queue_mean=at_all_points(found["queue_mean"]),
        utilization=at_all_points(found["utilization"]),
        status=status,
    )


def _only_these_differ(points: Points, values: dict[str, Any], i: int) -> bool:
    """Whether point ``i`` differs from the original scenario only in the fields of ``values``.

    Other fields may differ, too, because a change of one field may also change another: a buffer of
    ``"1 BDP"`` changes with the RTT.  Points with such changes cannot be computed together as
    arrays.  The result is also False if the values at the point contradict one another.
    """
    try:
        point, original = points.at(i), points.scenario
    except FieldError:
        return False
    link, vegas = point.links[0], [group for group in point.flows if group.keeps_backlog]
    at_point = {  # the values of the fields at the point, by key
        "capacity": [link.capacity],
        "buffer": [link.buffer],
        "rtt": [member.rtt for member in point.members],
        **{key: [getattr(g, key) for g in vegas] for key in minicycle_many.KEYS_OF_VEGAS},
    }
    in_original = {"capacity": original.links[0].capacity, "buffer": original.links[0].buffer}
    # the varied fields must have the values of ``values``; capacity and buffer must be unchanged,
    # unless they are varied
    return all(x == values[key][i] for key in values for x in at_point[key]) and all(
        at_point[key] == [x] for key, x in in_original.items() if key not in values
    )


def _allowed(points: Points, values: dict[str, Any]) -> NDArray[np.bool_]:
    """At which points of a study the values are valid, [point].

    In each ``[[flow]]`` table with Vegas, alpha must be at most beta.

    Each flow's RTT must be at least the time that its packet and the ACK need for transmission on
    the link and on the two access links.  If the scenario gives the link's delay, the RTT must be
    at least this time plus twice the delay.
    """
    scenario, n = points.scenario, len(points)
    good = np.ones(n, np.bool_)
    for group in scenario.flows:
        if group.keeps_backlog:
            good &= values.get("alpha", group.alpha) <= values.get("beta", group.beta)
    link = scenario.links[0]
    # whether the file gives the link's delay; if it does not, the delay follows from the RTTs
    delay_is_given = scenario._given[0][0].delay is not None
    capacity = values.get("capacity", np.asarray(link.capacity))
    # the RTT must be at least the transmission times, as in ``Scenario.transmission``, and delays
    for member in scenario.members:
        # the flow's packet and its ACK together, in packets of the scenario's ``packet_size``
        packets = (scenario.size_of(member.flow) + scenario.ack_size) / scenario.packet_size
        # by default an access link has 200 times the capacity of the link
        access = 200.0 * capacity if member.flow.access is None else member.flow.access
        least_rtt = packets * (1.0 / capacity + 2.0 / access) + (
            2.0 * link.delay if delay_is_given else 0.0
        )
        good &= values.get("rtt", member.rtt) >= least_rtt
    return good


def fits_one_batch(scenarios: Sequence[Scenario | str]) -> bool:
    """Whether ``fluid`` can compute all scenarios in one batch.

    A study evaluates ``fluid`` for copies of a scenario in which some fields have other values.  If
    the values of a copy are not valid, ``scenarios`` has a text in its place that says why
    (``Points.scenarios``).  Texts are left out here.  The result is False if only texts are given.

    For a batch, ``fluid`` must be able to simulate each scenario by its continuous equations
    (``engines/fluid/continuous.py``).  It can if every flow has the variant ``paper`` and a law for
    which there is such an equation, and if the link is drop-tail without random loss.  Start times
    must not be random.
    """
    valid = [scenario for scenario in scenarios if not isinstance(scenario, str)]
    return bool(valid) and all(
        methods.one_run_suffices(each) and methods.unsupported(each) is None for each in valid
    )


def by_fluid(points: Points, scenarios: Sequence[Scenario | str], threads: int | None) -> Figures:
    """The results of ``fluid`` at all points of a study, whose scenarios are ``scenarios``.

    An entry of ``scenarios`` may be a text instead, if the values at the point are not valid: the
    reason why (``Points.scenarios``).  The function ``fits_one_batch`` must return True for
    ``scenarios``.  ``threads`` is the number of threads; ``None`` stands for one per core.
    """
    from vegasmodel.engines.fluid import batch

    n = len(points)
    valid_points = [i for i, each in enumerate(scenarios) if not isinstance(each, str)]
    valid = [each for each in scenarios if not isinstance(each, str)]
    found = batch.run(valid, threads=threads)
    status, ended = np.full(n, NOT_ALLOWED, np.int8), np.zeros(n, np.bool_)
    status[valid_points] = OK
    ended[valid_points] = found.ok  # whether the run came to its end

    def at_all_points(values: Floats) -> Floats:
        """An array [point, ...] with ``values`` at the valid points, and NaN at the others."""
        rows = np.full((n, *values.shape[1:]), np.nan)
        rows[valid_points] = values
        return rows

    rates, queue = at_all_points(found.throughput), at_all_points(found.queue_mean[:, None])
    silent = ended & np.isnan(rates).all(axis=1)  # no flow is active between warm-up and end
    forward = [each.flow.direction == "forward" for each in points.scenario.members]
    capacity = at_all_points(np.array([each.links[0].capacity for each in valid]))
    active = at_all_points(np.array([active_part(each) for each in valid]))
    in_all = (delivered(rates) * active * forward).sum(axis=1)  # of all forward flows, pkt/s
    figures = of_arrays(
        points,
        bad=~ended | silent,
        why=f"the integration ended early: {Status.STUCK.reason}",
        bits=at_all_points(np.array([packet_bits(each) for each in valid])),
        active=active,
        capacity=capacity,
        throughput=rates,
        rtt_mean=at_all_points(found.rtt_mean),
        base_rtt=at_all_points(found.base_rtt),
        queue_mean=queue,
        utilization=(in_all / capacity)[:, None],
        status=status,
    )
    reasons = [
        each if isinstance(each, str) else NOBODY_SENDS if sends_nothing else reason
        for each, reason, sends_nothing in zip(scenarios, figures.reasons, silent, strict=True)
    ]
    broken = [""] * n
    for k, i in enumerate(valid_points):
        if figures.status[i] == OK:
            answer = fluid.of_run(valid[k], found.of(k, len(points.flows)))
            broken[i] = not_held.of_prediction(answer)
    return dataclasses.replace(figures, reasons=tuple(reasons), broken=tuple(broken))
