"""Evaluates the mini-cycle model for a scenario in which Vegas and Reno share a drop-tail buffer.

The model is that of De Vendictis and Baiocchi (2002). It divides the time from one loss to the next
into mini-cycles, that is into round trips.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from vegasmodel.adapters.common import LOSS_BASED, one_link, services_isolated
from vegasmodel.adapters.minicycle_assumptions import assumptions
from vegasmodel.adapters.minicycle_inputs import counts, given, losing, room, vegas_group
from vegasmodel.equilibrium import minicycle
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.stacks import STACKS
from vegasmodel.status import Status

NAME = "minicycle"


def answer(scenario: Scenario) -> Prediction:
    """The throughputs of Vegas and Reno flows in a steady cycle from one loss to the next.

    This is the mini-cycle model of De Vendictis and Baiocchi. With ``variant = "paper"`` it keeps
    their hypothesis 5: both sources lose packets when the buffer overflows. With the other variants
    a source loses packets only if its window grows at that moment. Reno's window always grows;
    Vegas's grows only while its backlog is below its threshold.

    If several steady cycles are found, ``throughput_range`` covers all of them.
    """
    why = reason(scenario)
    if why is not None:
        return Prediction.not_applicable(NAME, scenario, why)
    values, losers = given(scenario), losing(scenario)
    cycle = steady(scenario, values, losers)
    if int(cycle.status) != Status.DONE:
        return Prediction.not_applicable(NAME, scenario, "the equations have no periodic solution")
    known = assumptions(scenario, values, cycle)
    cycles = [cycle]
    if any(a.name == "one-cycle" and not a.holds for a in known):
        other = steady(scenario, values, "reno")
        # it is a second steady cycle only if Vegas does not grow at the overflow, and loses nothing
        cycles += [other] if str(other.regime) != "loss-limited" else []
    is_vegas = np.array([m.flow.keeps_backlog for m in scenario.members])
    rtt, queue = scenario.members[0].rtt, float(cycle.queue_mean)
    return Prediction(
        NAME,
        scenario,
        _per_flow(is_vegas, cycle.vegas, cycle.reno),
        throughput_range=_throughput_range(is_vegas, cycles),
        base_rtt=np.where(is_vegas, rtt, np.nan),
        rtt_mean=np.full(is_vegas.size, rtt + queue / scenario.links[0].capacity),
        loss_rate=_per_flow(is_vegas, cycle.loss_rate_vegas, cycle.loss_rate_reno),
        queue_mean=np.array([queue]),
        utilization_links=np.array([float(cycle.utilization)]),
        assumptions=known,
    )


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
        return "the buffer is infinite: Reno never loses and there is no cycle; give a `buffer`"
    vegas = [g for g in scenario.flows if g.keeps_backlog]
    shared = ("alpha", "beta", "gamma", "decrease", "variant")
    if len({tuple(getattr(g, name) for name in shared) for g in vegas}) > 1:
        return f"the equations have one {', one '.join(shared)} for all Vegas flows"
    if any(g.decrease != 0.5 for g in scenario.flows if not g.keeps_backlog):
        return "the equations halve the loss-based window; a decrease other than 0.5 is given"
    return None


def steady(
    scenario: Scenario, values: Mapping[str, Floats], losers: minicycle.Losers
) -> minicycle.Cycle:
    """The steady cycle of the scenario for each entry of ``values``: arrays of one shape.

    ``values`` maps the scenario's fields to their values. For some values there are many steady
    cycles, which differ in Vegas's window. Vegas's window at the start (``_starting_window``) then
    decides which of these cycles is the result. This window takes long to compute, so it is
    computed only for those values. ``losers`` says which flows lose packets at an overflow
    (``minicycle.solve``).
    """
    any_start = np.asarray(1.0)  # packets
    cycle = _from_start(scenario, values, losers, any_start)
    # the entries for which there are many steady cycles; these are solved again, from Vegas's
    # window at the start
    many = cycle.vegas_range[..., 0] < cycle.vegas_range[..., 1]
    if not np.any(many):
        return cycle
    values_of_many = {name: value[many] for name, value in values.items()}
    solved_again = _from_start(
        scenario, values_of_many, losers, _starting_window(scenario, values_of_many)
    )
    merged = {}
    for field in dataclasses.fields(cycle):
        entries = np.array(getattr(cycle, field.name))
        new_entries = getattr(solved_again, field.name)
        if entries.dtype.kind == "U":  # room for the longest word
            entries = entries.astype(np.result_type(entries, new_entries))
        entries[many] = new_entries
        merged[field.name] = entries
    return minicycle.Cycle(**merged)


def _from_start(
    scenario: Scenario, values: Mapping[str, Floats], losers: minicycle.Losers, start: Floats
) -> minicycle.Cycle:
    """The steady cycle whose Vegas window is nearest to ``start``.

    ``start`` is in packets. ``values`` maps the scenario's fields to their values, arrays of one
    shape. ``losers`` says which flows lose packets at an overflow (``minicycle.solve``). With the
    variants ``ns2`` and ``linux`` the equations contain that Vegas's window follows the queue two
    round trips late.
    """
    variant, (n_vegas, n_reno) = vegas_group(scenario).variant, counts(scenario)
    return minicycle.solve(
        values["capacity"],
        values["rtt"],
        room(scenario, values["buffer"]),
        values["alpha"],
        values["decrease"],
        beta=values["beta"],
        losers=losers,
        variant=variant,
        response=0.0 if STACKS[variant].real_numbers else 2.0,
        n_vegas=n_vegas,
        n_reno=n_reno,
        start=start,
    )


def _starting_window(scenario: Scenario, values: Mapping[str, Floats]) -> Floats:
    """The window of one Vegas source, in packets, at the start of the first cycle.

    The model may have many steady cycles, which differ in Vegas's window. The window at the start
    then decides which of them is the result. There are three cases:

    - All Vegas flows start before all Reno flows. The window is the one that Vegas flows reach
      alone on the link (``minicycle.window_alone``).
    - Some Reno flow starts before all Vegas flows. The window is Vegas's initial window.
    - Otherwise all flows are taken to start together. The window is that of Vegas after the first
      overflow of the buffer (``minicycle.first_window``).

    ``values`` has the values of the scenario's fields, arrays of one shape.
    """
    vegas = [m.start for m in scenario.members if m.flow.keeps_backlog]
    reno = [m.start for m in scenario.members if not m.flow.keeps_backlog]
    variant, (n_vegas, n_reno) = vegas_group(scenario).variant, counts(scenario)
    if min(vegas) > min(reno):
        return values["initial_window"]
    if max(vegas) < min(reno):
        return minicycle.window_alone(
            values["capacity"], values["rtt"], values["alpha"], variant=variant, n_vegas=n_vegas
        )
    return minicycle.first_window(
        values["capacity"],
        values["rtt"],
        room(scenario, values["buffer"]),
        values["alpha"],
        values["decrease"],
        beta=values["beta"],
        gamma=values["gamma"],
        variant=variant,
        initial=values["initial_window"],
        n_vegas=n_vegas,
        n_reno=n_reno,
    )


def _throughput_range(
    is_vegas: np.ndarray[tuple[int], np.dtype[np.bool_]], cycles: list[minicycle.Cycle]
) -> Floats | None:
    """The least and greatest throughput of each flow over all steady cycles, [n_flows, 2].

    ``is_vegas`` [n_flows] is True for a Vegas flow. The result is ``None`` if Vegas has the same
    throughput in all cycles.
    """
    vegas = np.array([c.vegas_range for c in cycles if int(c.status) == Status.DONE])
    reno = np.array([c.reno_range for c in cycles if int(c.status) == Status.DONE])
    if vegas.min() == vegas.max():
        return None
    ends = [[x.min(), x.max()] for x in (vegas, reno)]
    return np.where(is_vegas[:, None], ends[0], ends[1])


def _per_flow(is_vegas: np.ndarray[tuple[int], np.dtype[np.bool_]], v: Floats, r: Floats) -> Floats:
    """The value of each flow, [n_flows]: ``v`` for Vegas flows and ``r`` for Reno flows."""
    return np.where(is_vegas, float(v), float(r))
