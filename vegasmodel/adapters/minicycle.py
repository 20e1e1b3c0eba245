"""Evaluates the mini-cycle model for a scenario in which Vegas and Reno share a drop-tail buffer.

The model is that of De Vendictis and Baiocchi (2002), here called the paper ``devendictis``. The
model divides the time from one loss to the next into mini-cycles, that is into round trips.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

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
from vegasmodel.equilibrium.minicycle_hypotheses import Setting, told
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.placement import link_stack
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import DropTail, Flow, Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.status import Status

NAME = "minicycle"


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
    at, losers = given(scenario), losing(scenario)
    cycle = steady(scenario, at, losers)
    if int(cycle.status) != Status.DONE:
        return Prediction.not_applicable(NAME, scenario, "the equations have no periodic solution")
    assumptions = _hypotheses(scenario, at, cycle)
    cycles = [cycle]
    if any(a.name == "one-cycle" and not a.holds for a in assumptions):
        other = steady(scenario, at, "reno")
        cycles += [other] if str(other.regime) != "loss-limited" else []
    member = np.array([m.flow.keeps_backlog for m in scenario.members])
    rtt, queue = scenario.members[0].rtt, float(cycle.queue_mean)
    return Prediction(
        NAME,
        scenario,
        _per_flow(member, cycle.vegas, cycle.reno),
        throughput_range=_range(member, cycles),
        base_rtt=np.where(member, rtt, np.nan),
        rtt_mean=np.full(member.size, rtt + queue / scenario.links[0].capacity),
        loss_rate=_per_flow(member, cycle.loss_rate_vegas, cycle.loss_rate_reno),
        queue_mean=np.array([queue]),
        utilization_links=np.array([float(cycle.utilization)]),
        assumptions=(*assumptions, *left_out(scenario)),
    )


def given(scenario: Scenario) -> dict[str, Floats]:
    """The fields of the scenario that the equations take, by their names.

    They are those of the link and of the Vegas flows, and the RTT, which all flows share.
    """
    link, vegas = scenario.links[0], _vegas(scenario)
    first = vegas.initial_window
    values = {
        "capacity": link.capacity,
        "buffer": link.buffer,
        "rtt": scenario.members[0].rtt,
        "alpha": vegas.alpha,
        "beta": vegas.beta,
        "gamma": vegas.gamma,
        "decrease": vegas.decrease,
        "initial_window": minicycle.INITIAL[vegas.variant] if first is None else first,
    }
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}


def losing(scenario: Scenario) -> minicycle.Losers:
    """Which sources lose packets when the buffer overflows (``losers`` of ``minicycle.solve``).

    With the variant ``paper`` both sources do ("both"). With ``ns2`` and ``linux`` those sources do
    whose windows grow at that moment ("growing").
    """
    return "both" if STACKS[_vegas(scenario).variant].real_numbers else "growing"


def counts(scenario: Scenario) -> tuple[int, int]:
    """The numbers of Vegas and of loss-based flows."""
    vegas = sum(m.flow.keeps_backlog for m in scenario.members)
    return vegas, len(scenario.members) - vegas


def room(scenario: Scenario, buffer: ArrayLike) -> Floats:
    """How many packets can wait at the scenario's link if it has this ``buffer``.

    At a drop-tail link that behaves as in ns-2, one packet fewer than ``buffer`` can wait. The
    simulators round the buffer down to whole packets; this function does not. So the closed form is
    a smooth function of the buffer, and has a derivative by it (``sensitivity``).
    """
    return scenario.links[0].queue.waiting(buffer, link_stack(scenario))


def setting(scenario: Scenario, at: Mapping[str, Floats]) -> Setting:
    """The values that the tests of the model's hypotheses need (``minicycle_hypotheses.held``).

    ``at`` has the values of the scenario's fields, as ``given`` returns them.
    """
    n_vegas, n_reno = counts(scenario)
    return Setting(
        M=at["capacity"] * at["rtt"],
        B=room(scenario, at["buffer"]),
        alpha=at["alpha"],
        beta=at["beta"],
        n_vegas=np.array(float(n_vegas)),
        n_reno=np.array(float(n_reno)),
        variant=_vegas(scenario).variant,
        max_window=least_limit(scenario),
        both_lose=losing(scenario) == "both",
    )


def steady(
    scenario: Scenario, at: Mapping[str, Floats], losers: minicycle.Losers
) -> minicycle.Cycle:
    """The steady cycle of the scenario with the values ``at`` of its fields, arrays of one shape.

    At some values there are many steady cycles, which differ in Vegas's window. Vegas's window at
    the start (``_start``) then decides which of these cycles is the result. To compute the window
    at the start takes long, so it is computed for such values only.
    """
    cycle = _from_start(scenario, at, losers, np.asarray(1.0))
    many = cycle.vegas_range[..., 0] < cycle.vegas_range[..., 1]
    if not np.any(many):
        return cycle
    part = {name: value[many] for name, value in at.items()}
    again = _from_start(scenario, part, losers, _start(scenario, part))
    made = {}
    for field in dataclasses.fields(cycle):
        entries, new = np.array(getattr(cycle, field.name)), getattr(again, field.name)
        if entries.dtype.kind == "U":  # room for the longest word
            entries = entries.astype(np.result_type(entries, new))
        entries[many] = new
        made[field.name] = entries
    return minicycle.Cycle(**made)


def _from_start(
    scenario: Scenario, at: Mapping[str, Floats], losers: minicycle.Losers, start: Floats
) -> minicycle.Cycle:
    """The steady cycle whose Vegas window is nearest to ``start``.

    Vegas's window lags behind the queue by 2 round trips with the variants ``ns2`` and ``linux``.
    """
    variant, (n_vegas, n_reno) = _vegas(scenario).variant, counts(scenario)
    return minicycle.solve(
        at["capacity"],
        at["rtt"],
        room(scenario, at["buffer"]),
        at["alpha"],
        at["decrease"],
        beta=at["beta"],
        losers=losers,
        variant=variant,
        response=0.0 if STACKS[variant].real_numbers else 2.0,
        n_vegas=n_vegas,
        n_reno=n_reno,
        start=start,
    )


def _start(scenario: Scenario, at: Mapping[str, Floats]) -> Floats:
    """The window of one Vegas source, in packets, at the start of the first cycle.

    The model may have many steady cycles, which differ in Vegas's window. The window at the start
    then decides which of them is the result. There are three cases:

    - All Vegas flows start before all Reno flows. The window is the one that Vegas flows reach
      alone on the link (``minicycle.window_alone``).
    - Some Reno flow starts before all Vegas flows. The window is Vegas's initial window.
    - Otherwise all flows are taken to start together. The window is that of Vegas after the first
      overflow of the buffer (``minicycle.first_window``).

    ``at`` has the values of the scenario's fields, arrays of one shape.
    """
    starts = {law: [m.start for m in scenario.members if (m.flow.keeps_backlog) == law]
              for law in (True, False)}  # fmt: skip
    variant, (n_vegas, n_reno) = _vegas(scenario).variant, counts(scenario)
    if min(starts[True]) > min(starts[False]):
        return at["initial_window"]
    if max(starts[True]) < min(starts[False]):
        return minicycle.window_alone(
            at["capacity"], at["rtt"], at["alpha"], variant=variant, n_vegas=n_vegas
        )
    return minicycle.first_window(
        at["capacity"],
        at["rtt"],
        room(scenario, at["buffer"]),
        at["alpha"],
        at["decrease"],
        beta=at["beta"],
        gamma=at["gamma"],
        variant=variant,
        initial=at["initial_window"],
        n_vegas=n_vegas,
        n_reno=n_reno,
    )


def _vegas(scenario: Scenario) -> Flow:
    """A group of Vegas flows; the parameters are those of all (``reason``)."""
    return next(group for group in scenario.flows if group.keeps_backlog)


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
    scenario: Scenario, at: Mapping[str, Floats], cycle: minicycle.Cycle
) -> list[Assumption]:
    """The assumptions of the mini-cycle model.

    Among them are hypotheses 1 to 4 of De Vendictis and Baiocchi (section 3). Their hypothesis 5 is
    about which flows lose packets. It is among them too if the model keeps it; otherwise the
    assumption on this is that of ``only_growing``. Others are, for example, that the link has only
    one Vegas flow and one Reno flow, and that the run lasts for enough mini-cycles.
    """
    link, (n_vegas, n_reno) = scenario.links[0], counts(scenario)
    rows = told(cycle, setting(scenario, at))
    return [
        *(Assumption(*row) for row in rows),
        *only_growing(scenario, grows=str(cycle.regime) == "loss-limited"),
        single(n_vegas, n_reno),
        _known_base(scenario, bool(cycle.queue_empties)),
        recovery(scenario),
        _enough_cycles(scenario, float(cycle.period)),
        plain_queue(link),
        buffered(scenario),
    ]


def single(n_vegas: int, n_reno: int) -> Assumption:
    """The assumption that there is one Vegas flow and one Reno flow."""
    holds = n_vegas == n_reno == 1
    said = "the model lets all flows of one kind go through the cycle at the same time"
    return Assumption("one-source-of-each-kind", holds, "" if holds else said)


def only_growing(scenario: Scenario, *, grows: bool) -> list[Assumption]:
    """The assumption that only flows whose windows grow lose packets at an overflow.

    A flow whose window is constant sends one packet per ACK, into the place in the queue that has
    just become free. This is so only if every packet arrives as long after its ACK as any other
    packet. If it may arrive earlier or later, it is not known whether the assumption holds. Then
    packets of several flows may arrive at the full queue between two departures.

    ``grows`` says whether Vegas's window grows at an overflow in the model. The list is empty if
    the model assumes instead that all flows lose packets (``losing``).
    """
    if losing(scenario) == "both":
        return []
    name, queue, groups = "only-growing-windows-lose", scenario.links[0].queue, scenario.flows
    if not isinstance(queue, DropTail):
        return [Assumption(name, False, f"{queue.discipline} drops packets of any flow")]
    reasons = {
        "senders wait at random before they send (send_jitter)": any(
            scenario.jitter(group) > 0 for group in groups
        ),
        "propagation delays vary at random (delay_noise)": any(g.delay_noise > 0 for g in groups),
        "an ACK may release several packets of Vegas (delayed_ack)": any(
            group.delayed_ack and group.keeps_backlog for group in groups
        ),
        "slow access links space out the packets that an ACK releases (access)": any(
            scenario.access_rate(group)
            < scenario.access_rate(dataclasses.replace(group, access=None))
            for group in groups
        ),
    }
    why = [reason for reason, found in reasons.items() if found]
    if why:
        return [
            Assumption(name, None, f"{' and '.join(why)}, so other flows may lose packets, too")
        ]
    does = (
        "still grows, so Vegas loses packets, too" if grows else "does not grow, so it loses none"
    )
    return [Assumption(name, True, f"at an overflow Vegas {does}")]


def recovery(scenario: Scenario) -> Assumption:
    """The assumption that every loss-based flow recovers from a loss as Reno does."""
    return one_recovery(scenario, "a loss halves the window, as Reno's", ["reno"])


def _enough_cycles(scenario: Scenario, period: float) -> Assumption:
    """The assumption that the run is much longer than a cycle from one loss to the next.

    The prediction is the average over whole, identical cycles. A run also contains first cycles,
    which differ, and a last cycle, which is cut short. The assumption holds if the first cycles end
    within the warm-up (``minicycle.forgotten_after``), and ``CYCLES`` cycles fit into the rest of
    the run. ``period`` is the duration of the predicted cycle, in s.
    """
    forgotten = minicycle.forgotten_after(float(_vegas(scenario).decrease), *counts(scenario))
    settle = forgotten * period
    holds = bool(enough_cycles(scenario, np.array(period), np.array(forgotten)))
    detail = (
        f"losses come every {period:.4g} s, and the first {settle:.4g} s after the last start "
        f"depend on it; the warm-up should last longer than that, and the rest of the run at least "
        f"{CYCLES * period:.4g} s ({CYCLES} losses)"
    )
    return Assumption("settles-in-time", holds, "" if holds else detail)


def enough_cycles(scenario: Scenario, period: Floats, forgotten: Floats) -> NDArray[np.bool_]:
    """Whether the run contains enough cycles, each of ``period`` seconds, from loss to loss.

    ``forgotten`` is the number of cycles after which Vegas's first window no longer matters
    (``minicycle.forgotten_after``). They must end within the warm-up, and ``CYCLES`` cycles must
    fit into the rest of the run.
    """
    run, last = scenario.run, max(m.start for m in scenario.members)
    settled = last + forgotten * period <= run.warmup
    return np.asarray(settled & (CYCLES * period <= run.duration - run.warmup))


def least_limit(scenario: Scenario) -> float:
    """The smallest ``max_window`` of all flows, in packets."""
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
    """Whether every Vegas flow knows its true baseRTT, the RTT without queueing.

    A flow that measures its baseRTT finds the true one if the queue empties in every cycle
    (``empties``), or if no other flow starts earlier. For a flow that does not measure it, the
    scenario gives the over-estimate, which must be 0.
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
