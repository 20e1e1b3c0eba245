"""Evaluates a model at many points, which are copies of one scenario with other values.

The models ``minicycle`` and ``fluid`` compute many points together where they can, which takes less
time. Otherwise ``fluid`` and the other simulators run several points at the same time, in threads.
All other models evaluate one point after the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import comparison, predictor
from vegasmodel.adapters import fluid, minicycle, minicycle_many
from vegasmodel.adapters.common import NOBODY_SENDS
from vegasmodel.engines.fluid import run as fluid_run
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import FieldError
from vegasmodel.metrics import Floats, delivered, jains, known_mean, relative_uncertainty
from vegasmodel.packets.engine import EngineFailed
from vegasmodel.prediction import Prediction, active_part, silent
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status
from vegasmodel.study import not_held
from vegasmodel.study.fields import Field, put
from vegasmodel.support.threads import pool

Enough = Callable[[Sequence[Prediction]], bool]
__all__ = [
    "FAILED",
    "NOT_ALLOWED",
    "NO_ANSWER",
    "OK",
    "STATUS",
    "Figures",
    "Points",
    "answers",
    "check_model",
    "collected",
    "predictions",
    "ready",
]

OK, NO_ANSWER, NOT_ALLOWED, FAILED = range(4)
STATUS = ("done", "no answer", "values not allowed together", "run failed")
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
DERIVED = (
    "throughput_bps",
    "share",
    "share_se",
    "queueing_delay",
)  # computed from the others and the scenario


@dataclass(frozen=True)
class Points:
    """Points of a study: one scenario with different values of some of its fields.

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

    def scenarios(self) -> list[Scenario | str]:
        """The scenario of each point.

        If the values at a point contradict one another, the entry is a text that says why.
        """
        return [_scenario(self, i) for i in range(len(self))]

    @property
    def by_group(self) -> bool:
        """Whether the number of flows varies from point to point.

        If so, ``Figures`` has one entry for each group, where it otherwise has one for each flow.
        The entry of the share is the share of the whole group. The entries of all other quantities
        are means over the group's flows.
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
    """A model's results at each point of a study; NaN where the model does not give one.

    Rates are in pkt/s, times in seconds.  The arrays down to ``loss_rate`` are [point, flow], with
    flows in the order of ``Points.flows``.
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
    group_share: Floats  # [point, group] share of all bytes delivered by the group's flows together
    jain: Floats  # [point]
    uncertainty: Floats  # [point] of the least certain throughput (``relative_uncertainty``)
    queue_mean: Floats  # [point, link] packets
    queueing_delay: Floats  # [point, link] s: the mean queue divided by the capacity
    utilization: Floats  # [point, link]
    status: NDArray[np.int8]  # [point] an index of STATUS
    reasons: tuple[str, ...]  # [point] why the status is not OK; else empty
    broken: tuple[str, ...]  # [point] assumptions that do not hold, as ``not_held`` writes them


def check_model(model: str, field: str = "model") -> None:
    """Raise ``FieldError`` unless ``model`` is the name of a model or of a packet-level simulator.

    The error names ``field`` as the wrong argument.
    """
    known = (*predictor.MODELS, *comparison.ENGINES)
    if not isinstance(model, str) or model not in known:
        raise FieldError(field, model, f"one of {', '.join(known)}{nearest(model, known)}")


def ready(*models: str) -> None:
    """Check before a long computation that the models exist, and that ns-2 and ns-3 are installed.

    Raises ``FieldError`` for an unknown name, and ``EngineMissing`` if ns-2 or ns-3 is among
    ``models`` and is not installed.
    """
    for model in models:
        check_model(model)
    for engine in set(models) & set(comparison.ENGINES):
        from vegasmodel.packets import ns2, ns3

        (ns3 if engine == "ns3" else ns2).version()


def answers(
    points: Points, model: str, threads: int | None = None, enough: Enough | None = None
) -> Figures:
    """The model's results at every point.

    A point without an answer is marked in ``status`` and does not affect the others.  ``threads``
    is the number of threads of a simulator; by default there is one per core.  ``enough`` is
    explained in ``predictions``.  Raises ``ExtraMissing`` or ``EngineMissing`` if the model needs
    something that is not installed.
    """
    if model == "minicycle":
        found = _by_arrays(points)
        if found is not None:
            return found
    scenarios = points.scenarios()
    if model == "fluid" and not points.by_group and _closed(scenarios):
        return _fluid(points, scenarios, threads)
    return collected(points, predictions(scenarios, model, threads, enough=enough))


def _scenario(points: Points, i: int) -> Scenario | str:
    try:
        return points.at(i)
    except FieldError as error:
        return str(error)


def predictions(
    scenarios: Sequence[Scenario | str],
    model: str,
    threads: int | None,
    *,
    brief: bool = False,
    enough: Enough | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Prediction | tuple[int, str]]:
    """Evaluate one model for each scenario; return its prediction, or a status and a reason.

    An entry of ``scenarios`` may be a text that says why there is no such scenario.  This text is
    returned as the reason.

    ``threads`` is the number of threads of a simulator; by default there is one per core.

    With ``brief``, ns-2 and ns-3 save time: they record no round-trip times, and sample windows and
    queues only at the start and at the end of a run.

    Only ``rounds`` uses the function ``enough``.  From the second run on, ``rounds`` calls it with
    one prediction for each run so far.  ``enough`` returns True if no further run is needed.

    After each scenario, ``progress`` is called with the number of scenarios done and of all.
    """
    beside = predictor.workers(threads)
    ask: Callable[[Scenario], Prediction]
    if model in comparison.ENGINES:
        ask = lambda scenario: comparison.run_engine(scenario, model, brief=brief)  # noqa: E731 - one line
    elif model == "rounds":
        from vegasmodel.adapters import rounds  # loads its machine code

        ask = lambda scenario: rounds.figures(scenario, enough)  # noqa: E731 - one line
    else:
        ask = lambda scenario: predictor.predict(scenario, model)  # noqa: E731 - one line

    def one(scenario: Scenario | str) -> Prediction | tuple[int, str]:
        if isinstance(scenario, str):
            return NOT_ALLOWED, scenario
        try:
            found = ask(scenario)
        except FieldError as error:  # the simulator lacks a feature of the scenario
            return NO_ANSWER, str(error)
        except (EngineFailed, ValueError, ArithmeticError) as error:
            return FAILED, str(error)
        if not found.applicable or found.throughput is None:
            return NO_ANSWER, found.reason or "no throughput"
        if np.any(~np.isfinite(found.throughput) & ~silent(scenario)):
            return FAILED, "the throughputs are not numbers"
        return found

    found = []
    with contextlib.ExitStack() as stack:
        each: Iterator[Prediction | tuple[int, str]] = map(one, scenarios)
        if model in ("fluid", "rounds", *comparison.ENGINES):  # they release Python's lock
            each = stack.enter_context(pool(beside)).map(one, scenarios)
        for answer in each:
            found.append(answer)
            if progress is not None:
                progress(len(found), len(scenarios))
    return found


def _blank(points: Points, n: int) -> dict[str, Any]:
    flows, groups, links = len(points.flows), len(points.scenario.flows), len(points.scenario.links)
    blank: dict[str, Any] = {name: np.full((n, flows), np.nan) for name in PER_FLOW}
    blank |= {name: np.full((n, groups), np.nan) for name in ("group_mean", "group_share")}
    blank |= {name: np.full((n, links), np.nan) for name in PER_LINK}
    blank |= {name: np.full(n, np.nan) for name in ("jain", "uncertainty")}
    return {**blank, "status": np.zeros(n, np.int8)}


def collected(points: Points, found: Sequence[Prediction | tuple[int, str]]) -> Figures:
    """Collect the predictions at all points in arrays.

    ``found`` [point] is the result of ``predictions``.  If ``points.by_group``, the results of the
    flows of a group are replaced by their mean.
    """
    table, reasons = _blank(points, len(found)), [""] * len(found)
    for i, answer in enumerate(found):
        if isinstance(answer, tuple):
            table["status"][i], reasons[i] = answer
            continue
        groups = np.array([member.group for member in answer.scenario.members])
        scenario, count = answer.scenario, np.bincount(groups)
        bits = np.asarray(answer.throughput) * _bits(scenario)
        share = _parts(np.asarray(answer.delivered_bps))
        values = {name: getattr(answer, name) for name in PER_FLOW if name not in DERIVED}
        for name, value in {**values, "throughput_bps": bits}.items():
            if value is not None:
                table[name][i] = np.bincount(groups, value) / count if points.by_group else value
        table["group_mean"][i] = [answer.groups[group.name] for group in answer.scenario.flows]
        table["group_share"][i] = np.bincount(groups, share)
        table["share"][i] = table["group_share"][i] if points.by_group else share
        table["share_se"][i] = _share_error(answer, groups if points.by_group else None)
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


def _share_error(found: Prediction, groups: NDArray[Any] | None) -> Floats | float:
    """The standard error of each flow's share of all bytes delivered, by the jackknife, [flow].

    The shares are computed without each of the ``n`` runs in turn.  With ``T_k`` for a share
    without run ``k``, its standard error is (Efron, 1982, equation 3.5)

        se^2 = (n - 1)/n * sum_k (T_k - mean(T))^2

    This error takes into account that one flow gets what the others lose.  The standard errors of
    the throughputs do not show that.  ``groups`` [flow] are the groups of the flows.  If they are
    given, the result is the standard error of the groups' shares, [group].  It is NaN without the
    throughputs of at least two runs.
    """
    rates = np.asarray(found.extra.get("throughput_runs", ()))
    n, mean = len(rates), np.asarray(found.throughput)
    if n < 2:
        return math.nan
    bits = np.asarray(found.delivered_bps)  # a flow may be active for a part of the time
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = np.where(mean > 0, bits / mean, 0.0)
    part = _parts((rates.sum(axis=0) - rates) / (n - 1) * weight)
    if groups is not None:
        part = np.array([np.bincount(groups, each) for each in part])
    error: Floats = np.sqrt((n - 1) / n * ((part - part.mean(axis=0)) ** 2).sum(axis=0))
    return error


def _uncertainty(found: Prediction) -> float:
    """The largest relative uncertainty of a throughput; NaN without standard errors.

    The relative uncertainty is explained in ``metrics.relative_uncertainty``.
    """
    if found.throughput_se is None:
        return math.nan
    mean, error = np.asarray(found.throughput), np.asarray(found.throughput_se)
    return float(relative_uncertainty(mean, error, found.runs).max())


def _bits(scenario: Scenario) -> Floats:
    """The size of one data packet of each flow, in bits, [n_flows]."""
    return np.array([8.0 * scenario.size_of(member.flow) for member in scenario.members])


def _parts(bits: Floats) -> Floats:
    """Each flow's share of all data delivered; ``bits`` [..., flow] are the flows' bit/s."""
    bits = delivered(bits)
    with np.errstate(invalid="ignore", divide="ignore"):
        part: Floats = bits / bits.sum(axis=-1, keepdims=True)
    return part


def _of_arrays(
    points: Points,
    bad: NDArray[np.bool_],
    why: str,
    bits: Floats,
    active: Floats,
    capacity: Floats,
    **known: Any,
) -> Figures:
    """Make ``Figures`` from arrays, for a study with one link and a fixed number of flows.

    - ``known``: the model's results, by their names in ``Figures``.
    - ``bits``: the size of each flow's packets, in bits.
    - ``active``: the fraction of the measured time in which each flow is active.
    - ``capacity`` [point]: the link's capacity in pkt/s.
    - ``bad`` [point]: True at points without an answer.  All their results become NaN.  Their
      status becomes ``NO_ANSWER`` unless ``known`` gives another one than ``OK``.
    - ``why``: the reason why these points have no answer.

    ``bits`` and ``active`` are arrays [point, flow].  An array with one row holds for all points.
    """
    n = len(points)
    scenario, table = points.scenario, _blank(points, n)
    table |= known
    rates = table["throughput"]
    table["throughput_bps"] = rates * bits
    table["share"] = _parts(table["throughput_bps"] * active)
    table["queueing_delay"] = table["queue_mean"] / capacity[:, None]
    groups = np.array([member.group for member in scenario.members])
    for g in range(len(scenario.flows)):
        table["group_mean"][:, g] = known_mean(rates[:, groups == g].T)
        table["group_share"][:, g] = table["share"][:, groups == g].sum(axis=1)
    table["jain"] = jains(rates)
    table["status"][bad] = np.where(table["status"][bad] == OK, NO_ANSWER, table["status"][bad])
    for name in (*PER_FLOW, *PER_LINK, "group_mean", "group_share", "jain"):
        table[name][bad] = np.nan
    reasons = np.full(n, "", object)
    reasons[bad] = why
    return Figures(**table, reasons=tuple(reasons), broken=("",) * n)


def columns(points: Points) -> dict[str, NDArray[Any]] | None:
    """The values of the varied fields at all points, as input of the model ``minicycle``.

    The result maps each field's key, such as ``rtt``, to an array.  If ``alpha`` varies without
    ``beta``, and all Vegas groups have beta = alpha, ``beta`` gets the values of ``alpha``.

    Returns ``None`` if the model cannot compute all points at once.
    """
    scenario, values = points.scenario, {}
    for field, column in zip(points.fields, points.columns, strict=True):
        groups = field.indices if field.part == "flow" else ()
        fits = field.part in ("link", "flow") and not field.queue
        if not fits or not minicycle_many.takes(scenario, field.key, groups):
            return None
        values[field.key] = column
    if "alpha" in values and "beta" not in values:
        tied = {group.alpha == group.beta for group in scenario.flows if group.keeps_backlog}
        if len(tied) > 1:
            return None
        if tied == {True}:
            values["beta"] = values["alpha"]
    first = values.get("initial_window")
    return None if first is not None and np.any(first % 1.0) else values


def _by_arrays(points: Points) -> Figures | None:
    """The results of the model ``minicycle`` at all points, computed together as arrays.

    Returns ``None`` if this is not possible, for example because the model lacks a field that
    varies.
    """
    scenario, values = points.scenario, columns(points)
    if values is None:
        return None
    first = next((i for i in range(len(points)) if not isinstance(_scenario(points, i), str)), None)
    if first is None:
        return None
    start = points.at(first)
    if minicycle.reason(start) is not None:
        return None
    n = len(points)
    allowed = _allowed(points, values)
    kept = np.flatnonzero(allowed)
    if not all(_stands(points, values, i) for i in (kept[0], kept[-1])):
        return None
    found, holding = minicycle_many.answers(scenario, {k: v[kept] for k, v in values.items()})
    member = np.array([m.flow.keeps_backlog for m in scenario.members])

    def full(values: Floats) -> Floats:
        whole = np.full(n, np.nan)
        whole[kept] = values
        return whole[:, None]

    def per_flow(vegas: str, reno: str) -> Floats:
        return np.where(member, full(found[vegas]), full(found[reno]))

    rtt = values.get("rtt", np.full(n, scenario.members[0].rtt))
    status = np.zeros(n, np.int8)
    status[~allowed] = NOT_ALLOWED
    rates = per_flow("vegas", "reno")
    figures = _of_arrays(
        points, ~np.isfinite(rates[:, 0]), "the equations have no periodic solution",
        _bits(scenario)[None], active_part(scenario)[None],
        np.broadcast_to(values.get("capacity", scenario.links[0].capacity), n),
        throughput=rates,
        loss_rate=per_flow("loss_rate_vegas", "loss_rate_reno"),
        rtt_mean=np.repeat(full(found["rtt_mean"]), member.size, axis=1),
        base_rtt=np.where(member, rtt[:, None], np.nan),
        queue_mean=full(found["queue_mean"]),
        utilization=full(found["utilization"]),
        status=status,
    )  # fmt: skip
    reasons = list(figures.reasons)
    for k, i in enumerate(np.flatnonzero(~allowed).tolist()):  # a text for each would take long
        reasons[i] = str(_scenario(points, i)) if k < 1000 else STATUS[NOT_ALLOWED]
    broken = np.full(n, "", object)
    broken[kept] = not_held.of_arrays(holding)
    broken[figures.status != OK] = ""
    return dataclasses.replace(figures, reasons=tuple(reasons), broken=tuple(broken.tolist()))


def _closed(scenarios: Sequence[Scenario | str]) -> bool:
    """Whether ``fluid`` can compute all scenarios in one batch.

    For this, ``fluid`` must be able to simulate each scenario, and its windows must change
    continuously.  They do if every flow has the variant ``paper`` and a law for which
    ``continuous.py`` has an equation, and if the link is drop-tail without random loss.  Start
    times must not be random.
    """
    known = [scenario for scenario in scenarios if not isinstance(scenario, str)]
    return bool(known) and all(
        fluid_run.one_run_suffices(each) and fluid_run.unsupported(each) is None for each in known
    )


def _fluid(points: Points, scenarios: Sequence[Scenario | str], threads: int | None) -> Figures:
    from vegasmodel.engines.fluid import batch

    n = len(points)
    kept = [i for i, each in enumerate(scenarios) if not isinstance(each, str)]
    known = [each for each in scenarios if not isinstance(each, str)]
    found = batch.run(known, threads=threads)
    status = np.full(n, NOT_ALLOWED, np.int8)
    status[kept] = OK

    def full(values: Floats) -> Floats:
        rows = np.full((n, *values.shape[1:]), np.nan)
        rows[kept] = values
        return rows

    rates, queue = full(found.throughput), full(found.queue_mean[:, None])
    ok = full(found.ok[:, None].astype(np.float64))[:, 0] == 1.0
    silent = ok & np.isnan(rates).all(axis=1)
    used = [each.flow.direction == "forward" for each in points.scenario.members]
    capacity = full(np.array([[each.links[0].capacity] for each in known]))
    active = full(np.array([active_part(each) for each in known]))
    figures = _of_arrays(
        points, ~ok | silent, f"the integration ended early: {Status.STUCK.reason}",
        full(np.array([_bits(each) for each in known])), active,
        capacity[:, 0],
        throughput=rates,
        rtt_mean=full(found.rtt_mean),
        base_rtt=full(found.base_rtt),
        queue_mean=queue,
        utilization=(delivered(rates) * active * used).sum(axis=1, keepdims=True) / capacity,
        status=status,
    )  # fmt: skip
    reasons = [
        each if isinstance(each, str) else NOBODY_SENDS if still else reason
        for each, reason, still in zip(scenarios, figures.reasons, silent, strict=True)
    ]
    broken = [""] * n
    for k, i in enumerate(kept):
        if figures.status[i] == OK:
            answer = fluid.of_run(known[k], found.of(k, len(points.flows)))
            broken[i] = not_held.of_prediction(answer)
    return dataclasses.replace(figures, reasons=tuple(reasons), broken=tuple(broken))


def _stands(points: Points, values: dict[str, Any], i: int) -> bool:
    """Whether point ``i`` differs from the original scenario only in the fields of ``values``.

    It may differ in more, because a change of one field may also change another: a buffer of
    ``"1 BDP"`` changes with the RTT.  Points with such changes cannot be computed together as
    arrays.  Returns False, too, if the values at the point contradict one another.
    """
    try:
        made, base = points.at(i), points.scenario
    except FieldError:
        return False
    link, vegas = made.links[0], [group for group in made.flows if group.keeps_backlog]
    held = {
        "capacity": [link.capacity],
        "buffer": [link.buffer],
        "rtt": [member.rtt for member in made.members],
        **{key: [getattr(g, key) for g in vegas] for key in minicycle_many.KEYS[3:]},
    }
    usual = {"capacity": base.links[0].capacity, "buffer": base.links[0].buffer}
    return all(x == values[key][i] for key in values for x in held[key]) and all(
        held[key] == [x] for key, x in usual.items() if key not in values
    )


def _allowed(points: Points, values: dict[str, Any]) -> NDArray[np.bool_]:
    """Which points have valid values, [point].

    In each Vegas group, alpha must be at most beta.

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
    given = scenario._given[0][0].delay is not None  # else the delay follows from the RTTs
    capacity = values.get("capacity", np.asarray(link.capacity))
    for member in scenario.members:  # as ``Scenario.transmission`` has it
        packets = (scenario.size_of(member.flow) + scenario.ack_size) / scenario.packet_size
        access = 200.0 * capacity if member.flow.access is None else member.flow.access
        least = packets * (1.0 / capacity + 2.0 / access) + (2.0 * link.delay if given else 0.0)
        good &= values.get("rtt", member.rtt) >= least
    return good
