"""Shared by the adapters: which features of a scenario a closed form leaves out, in words.

A hypothesis that fails stands in ``assumptions``; a model is inapplicable only where its
equations cannot be evaluated.  ``unanswerable`` gives that reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from vegasmodel.metrics import Floats
from vegasmodel.prediction import Assumption, Prediction
from vegasmodel.scenario import DropTail, Flow, Link, RateDelay, Scenario

LOSS_BASED = ("reno", "newreno", "sack", "tahoe")
RECOVERIES = {  # what a loss costs beyond the cut of the window
    "reno": "Reno waits for a timeout where several packets of a window are lost",
    "newreno": "NewReno repairs one lost packet a round trip",
    "sack": "SACK repairs several lost packets in a round trip",
    "tahoe": "Tahoe starts again from one packet",
}
Answer = Callable[[Scenario], Prediction]


def column(scenario: Scenario, value: Callable[[Flow], float]) -> Floats:
    """One float per flow, from its group."""
    return np.array([value(member.flow) for member in scenario.members], dtype=np.float64)


def rtts(scenario: Scenario) -> Floats:
    """Round-trip times with empty queues, one per flow."""
    return np.array([member.rtt for member in scenario.members], dtype=np.float64)


def one_link(scenario: Scenario) -> str | None:
    """Reason why a one-link, one-way model cannot be evaluated; ``None`` if it can."""
    if len(scenario.links) != 1:
        return f"the equations know one link; the scenario has {len(scenario.links)}"
    if {group.direction for group in scenario.flows} != {"forward"}:
        return "the equations know one direction; some flows are in reverse"
    sizes = {scenario.size_of(group) for group in scenario.flows}
    if sizes != {scenario.packet_size}:
        return "the equations know one packet size; some flows have their own"
    return None


def laws_within(scenario: Scenario, laws: Iterable[str]) -> str | None:
    """Reason if some flow follows another law than the model's equations have."""
    other = sorted({group.law for group in scenario.flows} - set(laws))
    return f"the equations do not have the law {', '.join(other)}" if other else None


def left_out(scenario: Scenario, *, random_loss: bool = False) -> list[Assumption]:
    """Features of the scenario that no equilibrium equation contains: each must be absent."""
    groups, run = scenario.flows, scenario.run
    starts = [member.start for member in scenario.members]
    stops = [member.stop for member in scenario.members]
    all_there = max(starts) < run.warmup and min(stops) == run.duration
    rows = [
        (
            "long-lived-flows",
            all(g.size == math.inf and g.arrivals == "once" for g in groups),
            "flows of finite size come and go; the steady state is never reached",
        ),
        (
            "all-flows-present",
            all_there,
            "some flow starts after warmup or stops before the end; the prediction is for all",
        ),
        ("no-delay-noise", all(g.delay_noise == 0 for g in groups), "delays are taken as fixed"),
        (
            "window-not-limited",
            all(g.max_window == math.inf for g in groups),
            "max_window is not in the equations",
        ),
        (
            "one-ack-a-packet",
            not any(g.delayed_ack for g in groups),
            "delayed ACKs are not in the equations",
        ),
        (
            "bottleneck-is-the-link",
            all(_fast_access(scenario, g) for g in groups),
            "access links slower than twice the bottleneck limit or space out packets",
        ),
        (
            "no-forced-drops",
            not any(link.drops for link in scenario.links),
            "forced drops are not in the equations",
        ),
    ]
    if not random_loss:
        lossless = all(link.loss == 0 for link in scenario.links)
        rows.append(("no-random-loss", lossless, "random loss is not in the equations"))
    return [Assumption(name, holds, "" if holds else detail) for name, holds, detail in rows]


def _fast_access(scenario: Scenario, group: Flow) -> bool:
    slowest = min(link.capacity for link in scenario.path(group))
    return scenario.access_rate(group) >= 2.0 * slowest


def one_recovery(
    scenario: Scenario, taken: str, known: Iterable[str] = (), *, lost: bool = True
) -> Assumption:
    """The assumption that all loss-based sources recover in the one way that the model has.

    ``taken`` says in words which way that is, ``known`` names the laws that really do so, ``lost``
    tells whether any packet is lost at all.
    """
    laws = {group.law for group in scenario.flows} - {"vegas"} - set(known)
    if not laws or not lost:
        return Assumption("recovery-as-taken", True)
    own = "; ".join(RECOVERIES.get(law, f"{law} has its own") for law in sorted(laws))
    return Assumption("recovery-as-taken", False, f"{taken}, whatever the law; {own}")


def plain_queue(link: Link) -> Assumption:
    """The closed forms queue first in, first out, without early drops."""
    holds = isinstance(link.queue, DropTail)
    detail = "" if holds else f"the link's discipline is {link.queue.discipline}"
    return Assumption("fifo-queue", holds, detail)


def services_isolated(scenario: Scenario) -> bool:
    """Whether a link has a queue for each class of its Rate-Delay services."""
    return any(isinstance(link.queue, RateDelay) for link in scenario.links)
