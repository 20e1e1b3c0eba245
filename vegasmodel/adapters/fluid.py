"""Adapter of the simulator ``fluid``, which integrates differential equations."""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters.common import (
    NOBODY_SENDS,
    buffered,
    left_out,
    losses_end_growth,
    one_recovery,
    settles,
    whole_thresholds,
    with_growth,
)
from vegasmodel.engines.fluid.run import papers_only, unsupported
from vegasmodel.engines.fluid.run import run as simulate
from vegasmodel.laws import find
from vegasmodel.metrics import Floats
from vegasmodel.placement import left_out_of_laws, stack
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import Scenario

NAME = "fluid"
KNOWN = ("window-not-limited", "one-ack-a-packet", "all-flows-present")  # the model has these


def answer(scenario: Scenario) -> Prediction:
    """Simulate the scenario and average throughputs and delays over ``warmup .. duration``."""
    obstacle = unsupported(scenario)
    if obstacle is not None:
        return Prediction.not_applicable(NAME, scenario, obstacle)
    run = simulate(scenario)
    if run.status != "done":
        reason = f"the integration ended early: {run.status}"
        return Prediction.not_applicable(NAME, scenario, reason)
    if np.isnan(run.throughput).all():
        return Prediction.not_applicable(NAME, scenario, NOBODY_SENDS)
    found = Prediction(
        NAME,
        scenario,
        run.throughput,
        throughput_se=run.throughput_se,
        base_rtt=run.base_rtt,
        rtt_mean=run.rtt_mean,
        queue_mean=np.asarray(run.queue_mean),
        assumptions=(
            *(a for a in left_out(scenario, random_loss=True) if a.name not in KNOWN),
            _recovery(scenario, run.losses),
            losses_end_growth(scenario),
            *_unknown(scenario),
            buffered(scenario),
            settles(scenario),
            whole_thresholds(scenario),
            *_of_hosts(scenario, run.losses),
        ),
    )
    return with_growth(found)


def _recovery(scenario: Scenario, losses: Floats) -> Assumption:
    """The assumption that a loss does nothing but cut the window at once, as in the papers.

    In reality each law has a recovery of its own.
    """
    loss_based = np.array([not find(member.flow.law).delay_based for member in scenario.members])
    lost = papers_only(scenario) and bool(losses[loss_based].any())
    taken = 'without a variant ("ns2", "linux") a loss cuts the window at once'
    return one_recovery(scenario, taken, lost=lost)


def _of_hosts(scenario: Scenario, losses: Floats) -> list[Assumption]:
    """The assumption ``whole-stack``: what real TCP stacks add to the equations has no effect.

    A real stack adds probes, timers and a recovery; they have an effect if packets are lost.  It
    also begins a flow with a burst: the handshake and the first window.  The burst has an effect if
    a Vegas flow starts later than another flow, because it changes the baseRTT that this flow
    measures.  Returns a list of this one assumption, or of none if no flow runs a real stack.
    """
    members = scenario.members
    hosts = np.array([stack(scenario, member.flow).tail_probe for member in members])
    if not hosts.any():
        return []
    starts = np.array([member.start for member in members])
    delay_based = np.array([find(member.flow.law).delay_based for member in members])
    moved = (starts > starts.min()) | (scenario.run.start_jitter > 0 and len(members) > 1)
    late = hosts & delay_based & moved
    said = [
        *(["its probes, its timers and its recovery"] if losses[hosts].any() else []),
        *(["the burst with which a late Vegas begins"] if late.any() else []),
    ]
    detail = f"not in the equations: of the stack {' and '.join(said)}" if said else ""
    return [Assumption("whole-stack", not said, detail)]


def _unknown(scenario: Scenario) -> list[Assumption]:
    """The assumptions about what laws, stacks and the queue have and the equations lack."""
    lacking = left_out_of_laws(scenario)
    rows = (
        *([("whole-laws", False, lacking)] if lacking else ()),
        (
            "defaults-of-the-papers",
            papers_only(scenario) or scenario.run.ns2_defaults == "papers",
            "headers, handshake and timers of ns-2 2.35 are not in the equations",
        ),
    )
    return [Assumption(name, holds, "" if holds else detail) for name, holds, detail in rows]
