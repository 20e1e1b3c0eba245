"""Checks which assumptions of the mini-cycle model hold in a scenario.

The model (De Vendictis and Baiocchi 2002) predicts how Vegas and Reno share a drop-tail buffer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vegasmodel.adapters import waits
from vegasmodel.adapters.common import (
    CYCLES,
    LEAST_BUFFER,
    buffered,
    left_out,
    one_recovery,
    plain_queue,
)
from vegasmodel.adapters.minicycle_inputs import counts, losing, room, vegas_group
from vegasmodel.equilibrium import minicycle
from vegasmodel.equilibrium.minicycle_hypotheses import Setting, which_hold, with_details
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Scenario


def assumptions(
    scenario: Scenario, values: Mapping[str, Floats], cycle: minicycle.Cycle
) -> tuple[Assumption, ...]:
    """All assumptions of the mini-cycle model, and whether each holds in the steady ``cycle``.

    Among them are hypotheses 1 to 4 of De Vendictis and Baiocchi (section 3). By hypothesis 5 all
    flows lose packets at an overflow; for the variants ``ns2`` and ``linux`` the assumption of
    ``_only_growing`` replaces this hypothesis. Other assumptions are, for example, that the link
    has only one Vegas flow and one Reno flow, and that the run lasts for enough cycles.

    ``values`` has the values of the scenario's fields, as ``given`` returns them.
    """
    link, (n_vegas, n_reno) = scenario.links[0], counts(scenario)
    rows = with_details(cycle, _setting(scenario, values))
    return (
        *(Assumption(*row) for row in rows),
        *_only_growing(scenario, grows=str(cycle.regime) == "loss-limited"),
        _single(n_vegas, n_reno),
        _known_base(scenario, bool(cycle.queue_empties)),
        _recovery(scenario),
        _long_enough(scenario, float(cycle.period)),
        plain_queue(link),
        buffered(scenario),
        waits.short_trips(scenario),
        *left_out(scenario),
    )


def holding(
    scenario: Scenario, values: Mapping[str, Floats], cycle: minicycle.Cycle
) -> dict[str, NDArray[np.bool_]]:
    """Whether each assumption of the mini-cycle model holds, by its name, for these values.

    ``values`` has the values of the scenario's fields, arrays of one shape, and ``cycle`` the
    steady cycles for them. The result is True also if it is not known whether the assumption holds.
    """
    n_vegas, n_reno = counts(scenario)
    shape = np.shape(values["buffer"])
    # For each value of ``decrease``, the number of cycles after which the first window of a flow no
    # longer matters. It is computed once for each different value, because this takes long.
    decreases, index = np.unique(values["decrease"], return_inverse=True)
    first_cycles = np.array(
        [minicycle.forgotten_after(d, n_vegas, n_reno) for d in decreases.tolist()]
    )
    # the assumptions that do not depend on ``values``
    fixed = (
        *left_out(scenario),
        *_only_growing(scenario, grows=False),  # ``grows`` changes only a text, not used here
        _recovery(scenario),
        _single(n_vegas, n_reno),
        plain_queue(scenario.links[0]),
    )
    # a wait of one transmission time, the default of ``send_jitter``, never counts as long
    longest_wait = max(group.send_jitter or 0.0 for group in scenario.flows)
    longest_harmless = np.maximum(waits.LONGEST * values["rtt"], 1.0 / values["capacity"])
    # the default of ``access``, 200 times the link's capacity, is fast enough
    slowest_access = min(math.inf if g.access is None else g.access for g in scenario.flows)
    return {
        **{each.name: np.full(shape, each.holds is not False) for each in fixed},
        **which_hold(cycle, _setting(scenario, values)),
        "base-rtt-is-the-rtt": _knows_base(scenario, cycle.queue_empties),
        "settles-in-time": _lasts_long_enough(
            scenario, cycle.period, first_cycles[index].reshape(shape)
        ),
        "buffer-holds-bursts": values["buffer"] >= LEAST_BUFFER,
        waits.NAME: longest_wait <= longest_harmless,
        "bottleneck-is-the-link": slowest_access >= 2.0 * values["capacity"],
    }


def _setting(scenario: Scenario, values: Mapping[str, Floats]) -> Setting:
    """What ``minicycle_hypotheses.which_hold`` needs to test the model's hypotheses.

    ``values`` has the values of the scenario's fields, as ``given`` returns them.
    """
    n_vegas, n_reno = counts(scenario)
    return Setting(
        M=values["capacity"] * values["rtt"],
        B=room(scenario, values["buffer"]),
        alpha=values["alpha"],
        beta=values["beta"],
        n_vegas=np.array(float(n_vegas)),
        n_reno=np.array(float(n_reno)),
        variant=vegas_group(scenario).variant,
        max_window=min(group.max_window for group in scenario.flows),
        both_lose=losing(scenario) == "both",
    )


def _single(n_vegas: int, n_reno: int) -> Assumption:
    """The assumption that there is one Vegas flow and one Reno flow."""
    holds = n_vegas == n_reno == 1
    detail = "the model lets all flows of one kind go through the cycle at the same time"
    return Assumption("one-source-of-each-kind", holds, "" if holds else detail)


def _only_growing(scenario: Scenario, *, grows: bool) -> list[Assumption]:
    """The assumption that only flows whose windows grow lose packets at an overflow.

    A flow whose window is constant sends one packet per ACK, into the place in the queue that has
    just become free. For this, every packet must reach the queue equally long after the ACK that
    released it. If this time may vary, it is not known whether the assumption holds, because
    packets of several flows may then arrive at the full queue between two departures.

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


def _recovery(scenario: Scenario) -> Assumption:
    """The assumption that every loss-based flow recovers from a loss as Reno does."""
    return one_recovery(scenario, "a loss halves the window, as Reno's", ["reno"])


def _long_enough(scenario: Scenario, period: float) -> Assumption:
    """The assumption that warm-up and run are long enough for averages over equal cycles.

    A cycle lasts from one loss to the next, and ``period`` is its predicted duration in s. The
    model predicts the average over cycles that are all alike. In a run, the first cycles after the
    start of the last flow depend on the windows with which the flows started, and the end of the
    run cuts the last cycle short. The assumption holds if these first cycles end within the
    warm-up, and ``CYCLES`` cycles fit into the rest of the run.
    """
    first_cycles = minicycle.forgotten_after(
        float(vegas_group(scenario).decrease), *counts(scenario)
    )
    settled = max(m.start for m in scenario.members) + first_cycles * period
    holds = bool(_lasts_long_enough(scenario, np.array(period), np.array(first_cycles)))
    detail = (
        f"up to {settled:.4g} s the windows depend on how the flows started, so the warm-up should "
        f"last longer; the rest of the run should last at least {CYCLES * period:.4g} s, in which "
        f"{CYCLES} losses come"
    )
    return Assumption("settles-in-time", holds, "" if holds else detail)


def _lasts_long_enough(
    scenario: Scenario, period: Floats, first_cycles: Floats
) -> NDArray[np.bool_]:
    """The test of ``_long_enough``, for arrays with one value per case.

    A cycle lasts ``period`` seconds, from one loss to the next. ``first_cycles`` is the number of
    cycles after the start of the last flow that depend on the windows at the start
    (``minicycle.forgotten_after``). These cycles must end within the warm-up, and ``CYCLES`` cycles
    must fit into the rest of the run.
    """
    run, last = scenario.run, max(m.start for m in scenario.members)
    settled = last + first_cycles * period <= run.warmup
    return np.asarray(settled & (CYCLES * period <= run.duration - run.warmup))


def _known_base(scenario: Scenario, empties: bool) -> Assumption:
    """The assumption that Vegas knows its true baseRTT, the propagation delay T of the model.

    Flows that measure their baseRTT find the true one if the queue empties in every cycle, or if no
    flow starts before them. If the scenario gives an over-estimate of baseRTT instead, the
    assumption holds only if it is 0.
    """
    name = "base-rtt-is-the-rtt"
    if _knows_base(scenario, np.array(empties)):
        return Assumption(name, True)
    if _over_estimates(scenario):
        return Assumption(name, False, "the over-estimate is not in the equations")
    detail = "some Vegas flow starts beside others, and the queue that it finds never empties"
    return Assumption(name, False, detail)


def _knows_base(scenario: Scenario, empties: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether every Vegas flow knows its true baseRTT: one answer for each entry of ``empties``.

    The true baseRTT is the RTT without queueing. A flow that measures its baseRTT finds the true
    one if no other flow starts earlier, or if the queue empties in every cycle, from one loss to
    the next (``empties``). For a flow that does not measure its baseRTT, the scenario gives the
    over-estimate. Such a flow knows the true baseRTT only if this over-estimate is 0.
    """
    vegas = [m for m in scenario.members if m.flow.keeps_backlog]
    first = min(m.start for m in scenario.members)
    at_once = all(m.start == first for m in vegas if m.flow.measures_base)
    return (empties | at_once) & (not _over_estimates(scenario))


def _over_estimates(scenario: Scenario) -> bool:
    """Whether the scenario states an over-estimate of baseRTT above 0 for some Vegas flow."""
    vegas = [group for group in scenario.flows if group.keeps_backlog]
    return any(group.over_estimate not in ("measured", 0.0) for group in vegas)
