"""Evaluates the mini-cycle model for a scenario in which Vegas and Reno share a drop-tail buffer.

The model is that of the paper ``devendictis`` (De Vendictis and Baiocchi 2002). It divides the time
from one loss to the next into mini-cycles, that is into round trips.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.adapters.common import (
    CYCLES,
    LOSS_BASED,
    buffered,
    left_out,
    one_link,
    one_recovery,
    plain_queue,
    services_isolated,
)
from vegasmodel.equilibrium import minicycle
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.placement import link_stack
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import Flow, Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.status import Status

NAME = "minicycle"
NOWHERE: Mapping[str, Any] = MappingProxyType({})


def answer(scenario: Scenario) -> Prediction:
    """The throughputs in the steady cycle of the mini-cycle model.

    With ``variant = "paper"`` the model keeps hypothesis 5 of De Vendictis and Baiocchi: both
    sources lose packets when the buffer overflows. With the other variants a source loses packets
    only if its window grows at that moment. Reno's window always grows; Vegas's grows only while
    its backlog is below its threshold.

    If several steady cycles are found, ``throughput_range`` covers all of them.
    """
    why = reason(scenario)
    if why is not None:
        return Prediction.not_applicable(NAME, scenario, why)
    link = scenario.links[0]
    vegas = next(g for g in scenario.flows if g.keeps_backlog)
    member = np.array([m.flow.keeps_backlog for m in scenario.members])
    n_vegas, n_reno = int(member.sum()), int((~member).sum())
    buffer, losers, response = _reading(scenario, vegas)

    def from_start(losers: minicycle.Losers, start: float) -> minicycle.Cycle:
        return minicycle.solve(
            link.capacity,
            scenario.members[0].rtt,
            buffer,
            vegas.alpha,
            vegas.decrease,
            beta=vegas.beta,
            losers=losers,
            variant=vegas.variant,
            response=response,
            n_vegas=n_vegas,
            n_reno=n_reno,
            start=start,
        )

    def solve(losers: minicycle.Losers) -> tuple[minicycle.Cycle, float]:
        """The cycle, and the first window; this takes long, and matters only in a range."""
        cycle, start = from_start(losers, 1.0), 1.0
        if cycle.vegas_range[0] < cycle.vegas_range[1]:
            start = float(_start(scenario, vegas, n_vegas, n_reno))
            cycle = from_start(losers, start)
        return cycle, start

    cycle, start = solve(losers)
    if int(cycle.status) != Status.DONE:
        return Prediction.not_applicable(NAME, scenario, "the equations have no periodic solution")
    assumptions = _hypotheses(scenario, vegas, cycle, n_vegas, n_reno, start)
    cycles = [cycle]
    if any(a.name == "one-cycle" and not a.holds for a in assumptions):
        other, _ = solve("reno")
        cycles += [other] if str(other.regime) != "loss-limited" else []
    rtt = scenario.members[0].rtt
    queue = float(cycle.queue_mean)
    return Prediction(
        NAME,
        scenario,
        _per_flow(member, cycle.vegas, cycle.reno),
        throughput_range=_range(member, cycles),
        base_rtt=np.where(member, rtt, np.nan),
        rtt_mean=np.full(member.size, rtt + queue / link.capacity),
        loss_rate=_per_flow(member, cycle.loss_rate_vegas, cycle.loss_rate_reno),
        queue_mean=np.array([queue]),
        utilization_links=np.array([float(cycle.utilization)]),
        assumptions=(*assumptions, *left_out(scenario)),
    )


def _reading(scenario: Scenario, vegas: Flow) -> tuple[float, minicycle.Losers, float]:
    """What ``minicycle.solve`` needs of the scenario: buffer, losing sources, and response time.

    The buffer is the number of packets that can wait. The losing sources are the argument
    ``losers`` of ``minicycle.solve``: "both" with the variant ``paper``, and "growing" with ``ns2``
    and ``linux``. The response time is the number of round trips by which Vegas's window lags
    behind the queue. It is 0 with the variant ``paper``, and 2 with ``ns2`` and ``linux``.
    """
    buffer = float(room(scenario, scenario.links[0].buffer))
    return (buffer, "both", 0.0) if STACKS[vegas.variant].real_numbers else (buffer, "growing", 2.0)


def room(scenario: Scenario, buffer: ArrayLike) -> Floats:
    """How many packets can wait at the scenario's link if it has this ``buffer``.

    At a drop-tail link that behaves as in ns-2, one packet fewer than ``buffer`` can wait. The
    buffer is not rounded down to whole packets, as simulators do: the closed form is a smooth
    function of it, so that it has a slope (``sensitivity``).
    """
    return scenario.links[0].queue.waiting(buffer, link_stack(scenario))


def _start(
    scenario: Scenario, vegas: Flow, n_vegas: int, n_reno: int, at: Mapping[str, Any] = NOWHERE
) -> Floats:
    """The window of one Vegas source, in packets, at the start of the first cycle.

    The model may have many steady cycles, which differ in Vegas's window. The window at the start
    then decides which of them is the result. There are three cases:

    - All Vegas flows start before all Reno flows. The window is the one that Vegas flows reach
      alone on the link (``minicycle.window_alone``).
    - Some Reno flow starts before all Vegas flows. The window is Vegas's initial window.
    - Otherwise all flows are taken to start together. The window is that of Vegas after the first
      overflow of the buffer (``minicycle.first_window``).

    ``at`` maps names of fields to arrays of one shape. They replace the scenario's values.
    """
    starts = {law: [m.start for m in scenario.members if (m.flow.keeps_backlog) == law]
              for law in (True, False)}  # fmt: skip
    first = minicycle.INITIAL[vegas.variant]
    first = first if vegas.initial_window is None else vegas.initial_window
    first = at.get("initial_window", first)
    capacity = at.get("capacity", scenario.links[0].capacity)
    rtt, alpha = at.get("rtt", scenario.members[0].rtt), at.get("alpha", vegas.alpha)
    if min(starts[True]) > min(starts[False]):
        return np.asarray(first, dtype=np.float64)
    if max(starts[True]) < min(starts[False]):
        return minicycle.window_alone(capacity, rtt, alpha, variant=vegas.variant, n_vegas=n_vegas)
    return minicycle.first_window(
        capacity,
        rtt,
        room(scenario, at.get("buffer", scenario.links[0].buffer)),
        alpha,
        at.get("decrease", vegas.decrease),
        beta=at.get("beta", vegas.beta),
        gamma=at.get("gamma", vegas.gamma),
        variant=vegas.variant,
        initial=first,
        n_vegas=n_vegas,
        n_reno=n_reno,
    )


def _range(
    member: np.ndarray[tuple[int], np.dtype[np.bool_]], cycles: list[minicycle.Cycle]
) -> Floats | None:
    """The least and greatest throughput of each flow over all steady cycles, [n_flows, 2].

    The result is ``None`` if Vegas has the same throughput in all of them.
    """
    vegas = np.array([c.vegas_range for c in cycles if int(c.status) == Status.DONE])
    reno = np.array([c.reno_range for c in cycles if int(c.status) == Status.DONE])
    if vegas.min() == vegas.max():
        return None
    ends = [[x.min(), x.max()] for x in (vegas, reno)]
    return np.where(member[:, None], ends[0], ends[1])


def reason(scenario: Scenario) -> str | None:
    """The reason why the model cannot be evaluated for the scenario; ``None`` if it can."""
    other = one_link(scenario)
    if other is not None:
        return other
    if services_isolated(scenario):
        return "the equations have one queue for both laws; Rate-Delay services have two"
    laws = {g.law for g in scenario.flows}
    if not any(g.keeps_backlog for g in scenario.flows) or not laws & set(LOSS_BASED):
        return "the equations need Vegas and a loss-based law"
    if any(find(law).recovery == "slow start" for law in laws):
        return "the equations halve the window after a loss; Tahoe starts again from one packet"
    if len({m.rtt for m in scenario.members}) > 1:
        return "the equations have one round-trip time for all flows"
    if scenario.links[0].never_full:
        return "the buffer is infinite: Reno never loses and there is no cycle"
    vegas = [g for g in scenario.flows if g.keeps_backlog]
    shared = ("alpha", "beta", "gamma", "decrease", "variant")
    if len({tuple(getattr(g, name) for name in shared) for g in vegas}) > 1:
        return f"the equations have one {', one '.join(shared)} for all Vegas flows"
    if any(g.decrease != 0.5 for g in scenario.flows if not g.keeps_backlog):
        return "the equations halve the loss-based window; a decrease other than 0.5 is given"
    return None


def _hypotheses(
    scenario: Scenario,
    vegas: Flow,
    cycle: minicycle.Cycle,
    n_vegas: int,
    n_reno: int,
    start: float,
) -> list[Assumption]:
    """The assumptions of the mini-cycle model.

    Among them are hypotheses 1 to 5 of De Vendictis and Baiocchi (section 3). Others are, for
    example, that each law has one source, and that the run is long enough.
    """
    link = scenario.links[0]
    buffer, losers, response = _reading(scenario, vegas)
    rows = minicycle.hypotheses(
        link.capacity,
        scenario.members[0].rtt,
        buffer,
        vegas.alpha,
        vegas.decrease,
        max_window=least_limit(scenario),
        beta=vegas.beta,
        losers=losers,
        variant=vegas.variant,
        response=response,
        n_vegas=n_vegas,
        n_reno=n_reno,
        start=start,
    )
    return [
        *(Assumption(*row) for row in rows),
        single(n_vegas, n_reno),
        _known_base(scenario, bool(cycle.queue_empties)),
        recovery(scenario),
        _enough_cycles(scenario, float(cycle.period), vegas, n_vegas, n_reno),
        plain_queue(link),
        buffered(scenario),
    ]


def single(n_vegas: int, n_reno: int) -> Assumption:
    """The assumption that there is one flow of each law."""
    holds = n_vegas == n_reno == 1
    said = "several sources are taken to go through the cycle in step"
    return Assumption("one-source-of-each-kind", holds, "" if holds else said)


def recovery(scenario: Scenario) -> Assumption:
    """The assumption that every loss-based flow recovers from a loss as Reno does."""
    return one_recovery(scenario, "a loss halves the window, as Reno's", ["reno"])


def _enough_cycles(
    scenario: Scenario, period: float, vegas: Flow, n_vegas: int, n_reno: int
) -> Assumption:
    """The assumption that the run is much longer than a cycle from one loss to the next.

    The prediction is the average over whole, identical cycles. A run also contains first cycles,
    which differ, and a last cycle, which is cut short. The assumption holds if the first cycles end
    within the warm-up (``minicycle.forgotten_after``), and ``CYCLES`` cycles fit into the rest of
    the run. ``period`` is the duration of the predicted cycle, in s.
    """
    forgotten = minicycle.forgotten_after(vegas.decrease, n_vegas, n_reno)
    settle = forgotten * period
    holds = bool(enough_cycles(scenario, np.array(period), np.array(forgotten)))
    detail = (
        f"losses come every {period:.4g} s, and the first {settle:.4g} s after the last start "
        f"depend on it; the warm-up should last longer than that, and the rest of the run at least "
        f"{CYCLES * period:.4g} s ({CYCLES} losses)"
    )
    return Assumption("settles-in-time", holds, "" if holds else detail)


def enough_cycles(scenario: Scenario, period: Floats, forgotten: Floats) -> NDArray[np.bool_]:
    """Whether the run is long enough if a cycle lasts ``period`` seconds (``_enough_cycles``).

    ``forgotten`` is the number of cycles after which Vegas's first window no longer matters
    (``minicycle.forgotten_after``).
    """
    run, last = scenario.run, max(m.start for m in scenario.members)
    settled = last + forgotten * period <= run.warmup
    return np.asarray(settled & (CYCLES * period <= run.duration - run.warmup))


def least_limit(scenario: Scenario) -> float:
    """The smallest ``max_window`` of a flow, in packets."""
    return min(g.max_window for g in scenario.flows)


def _known_base(scenario: Scenario, empties: bool) -> Assumption:
    """The assumption that Vegas knows its true baseRTT, the propagation delay T of the model.

    Flows that measure their baseRTT find the true one if the queue empties in every cycle, or if no
    flow starts before them. If the scenario gives an over-estimate of baseRTT instead, the
    assumption holds only if it is 0.
    """
    name = "base-rtt-is-the-rtt"
    if known_base(scenario, np.array(empties)):
        return Assumption(name, True)
    if _over_estimates(scenario):
        return Assumption(name, False, "the over-estimate is not in the equations")
    detail = "some Vegas flow starts beside others, and the queue that it finds never empties"
    return Assumption(name, False, detail)


def known_base(scenario: Scenario, empties: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether Vegas knows its true baseRTT (``_known_base``).

    ``empties`` says whether the queue empties in a cycle.
    """
    vegas = [m for m in scenario.members if m.flow.keeps_backlog]
    first = min(m.start for m in scenario.members)
    at_once = all(m.start == first for m in vegas if m.flow.over_estimate == "measured")
    return (empties | at_once) & (not _over_estimates(scenario))


def _over_estimates(scenario: Scenario) -> bool:
    vegas = [group for group in scenario.flows if group.keeps_backlog]
    return any(group.over_estimate not in ("measured", 0.0) for group in vegas)


def _per_flow(member: np.ndarray[tuple[int], np.dtype[np.bool_]], v: Floats, r: Floats) -> Floats:
    return np.where(member, float(v), float(r))
