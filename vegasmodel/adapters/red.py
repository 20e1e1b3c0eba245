"""Evaluates the RED model for a scenario in which Vegas and loss-based flows share a RED queue.

The model finds the mean queue at which the rates of the flows add up to the capacity.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.adapters import waits
from vegasmodel.adapters.common import (
    LEAST_BUFFER,
    MIDDLE,
    column,
    left_out,
    one_link,
    one_recovery,
    paper_equation,
    rtts,
    threshold,
)
from vegasmodel.adapters.warm_up import settles
from vegasmodel.laws import find
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Red, Scenario
from vegasmodel.scenario.placement import held_by_receiver, stack
from vegasmodel.stacks import dead_zone

if TYPE_CHECKING:
    from vegasmodel.equilibrium.red import Curve, Equilibrium, Flows

NAME = "red"
FEW = 8  # with more different RTTs, fast oscillations are not searched for


def answer(scenario: Scenario) -> Prediction:
    """The rates of the flows, and the mean queue at which these rates add up to the capacity.

    A flow that measures its baseRTT is assumed to measure it without error.
    """
    queue = scenario.links[0].queue
    reason = one_link(scenario)
    if reason is None and any(find(g.law).recovery == "slow start" for g in scenario.flows):
        reason = "the equations do not have the law tahoe"
    if not isinstance(queue, Red):
        reason = "the link does not drop or mark early (queue discipline red)"
    if reason is None and isinstance(queue, Red):
        reason = _undefined(scenario, queue)
    if reason is not None or not isinstance(queue, Red):
        return Prediction.not_applicable(NAME, scenario, reason or "")
    from vegasmodel.equilibrium import red  # only for a link that needs it

    link = scenario.links[0]
    curve = red.Curve(
        queue.min_threshold,
        queue.max_threshold,
        queue.max_probability,
        gentle=queue.gentle,
        ecn=queue.ecn,
        buffer=link.buffer,
    )
    vegas = np.array([m.flow.keeps_backlog for m in scenario.members])
    given = [m.flow.over_estimate for m in scenario.members]
    flows = red.Flows(
        vegas=vegas,
        rtt=rtts(scenario),
        alpha=threshold(scenario),
        over_estimate=np.array([0.0 if x == "measured" else float(x) for x in given]),
        decrease=None if queue.ecn else column(scenario, lambda f: f.decrease),
        max_window=np.array(
            [m.flow.max_window - held_by_receiver(scenario, m) for m in scenario.members]
        ),
        ack_every=column(scenario, lambda f: _counted_every(scenario, f)),
    )
    roots = red.equilibria(flows, curve, link.capacity)
    if not roots:
        return Prediction.not_applicable(
            NAME,
            scenario,
            "no equilibrium: even if RED marks every packet, the flows send more than the capacity",
        )
    root = roots[0]
    delay = root.queue / link.capacity
    return Prediction(
        NAME,
        scenario,
        root.rates,
        rtt_mean=rtts(scenario) + delay,
        loss_rate=np.full(vegas.size, 0.0 if queue.ecn else root.loss),
        queue_mean=np.array([root.queue]),
        assumptions=(
            *_hypotheses(scenario, root.kind),
            _holds(scenario, flows, curve, root, queue.weight),
            _room(scenario, root.queue),
            settles(scenario),
            waits.short(scenario, root.rates),
            *_rest(scenario),
        ),
    )


def _counted_every(scenario: Scenario, flow: Flow) -> float:
    """The number of acknowledged packets for which the flow's window W grows by 1/W packets."""
    return 2.0 if flow.delayed_ack and not stack(scenario, flow).counts_packets else 1.0


def _undefined(scenario: Scenario, queue: Red) -> str | None:
    """The reason why the model's equations cannot be evaluated; ``None`` if they can.

    There are two conditions: packets can wait in the buffer, and each flow reduces its window at a
    loss. If RED only marks packets (ECN), the second is not needed, because a mark halves every
    window.
    """
    if scenario.links[0].buffer == 0.0:
        return "no packet can wait in a buffer of 0, so there is no mean queue"
    uncut = [g.name for g in scenario.flows if g.decrease == 1.0]
    if uncut and not queue.ecn:  # a mark halves every window
        return f"a loss does not reduce the window of {uncut[0]} (decrease = 1)"
    return None


def _hypotheses(scenario: Scenario, kind: str) -> list[Assumption]:
    smooth = kind not in ("at-threshold", "at-buffer")
    vegas = [g for g in scenario.flows if g.keeps_backlog]
    one = not any(np.ptp(dead_zone(g.alpha, g.beta, g.variant)) for g in vegas)
    return [
        Assumption(
            "steady-queue",
            smooth,
            "" if smooth else f"the queue oscillates about a jump of the drop probability ({kind})",
        ),
        Assumption("single-threshold", one, "" if one else MIDDLE),
        paper_equation(scenario),
        one_recovery(scenario, "a loss halves the window, as Reno's", ["reno"]),
    ]


def _holds(
    scenario: Scenario, flows: Flows, curve: Curve, root: Equilibrium, weight: float
) -> Assumption:
    """The assumption that the model's fixed point is stable, so that the queue does not oscillate.

    The test linearises equations of the windows and the queue with feedback delay, and looks at
    their characteristic roots. It linearises them about the equilibrium that ``stability.place``
    finds. If there is none, for example because RED marks packets (ECN), it linearises them about
    the fixed point of the model ``red`` (``about_red``).

    ``root`` is this fixed point, which the model has found for ``flows`` and RED's ``curve``.
    ``weight`` is the weight of the newest queue length in RED's average. The result is ``None``
    (not known) if the link is underloaded, if RED's loss jumps at the fixed point, or if not all
    characteristic roots that matter were found.
    """
    from vegasmodel.adapters.stability import place
    from vegasmodel.equilibrium import loop_rest
    from vegasmodel.equilibrium.stability import assess

    name = "stable-queue"
    if root.kind not in ("no-loss", "on-curve"):
        return Assumption(
            name, None, f"the drop probability has no slope at the fixed point ({root.kind})"
        )
    rest, c = place(scenario), scenario.links[0].capacity
    if isinstance(rest, str):
        loop = loop_rest.about_red(flows, curve, c, root, weight)
    else:
        loop = rest.loop
    # with many different RTTs, search only for oscillations at least as slow as the longest RTT
    many = np.unique(loop.rtt).size > FEW
    found = assess(loop, 2.0 * np.pi / float(loop.rtt.max()) if many else None)
    if found.stable is None:
        return Assumption(name, None, "not all of its characteristic roots were found")
    return Assumption(name, found.stable, "" if found.stable else _swing(found.period))


def _room(scenario: Scenario, queue: float) -> Assumption:
    """The assumption that the buffer has room for bursts of packets beyond the mean queue.

    RED drops packets by its average of the queue, before the buffer is full. The equations contain
    only these drops. But the queue varies about its mean, because senders send in bursts. If the
    buffer has little room beyond the mean queue, packets also find it full. The queue is then
    shorter than predicted. The assumption fails if there is room for fewer than ``LEAST_BUFFER``
    packets, as in the models of a drop-tail queue.
    ``queue`` is the predicted mean queue, packets.
    """
    room = scenario.links[0].buffer - queue
    said = (
        f"beyond the mean queue of {queue:.3g} packets the buffer has room for {room:.3g}; bursts "
        "may overflow it, so that packets are lost that RED does not drop early"
    )
    holds = room >= LEAST_BUFFER
    return Assumption("buffer-holds-bursts", holds, "" if holds else said)


def _swing(period: float) -> str:
    """A text on what an unstable queue does; ``period`` is that of its fastest growing oscillation.

    It is in s, and infinite if the fastest growing deviation does not oscillate.
    """
    if math.isinf(period):
        return "a small deviation of the queue grows"
    return (
        "small oscillations of the queue grow, fastest the one with a period of "
        f"{period:.2g} s; large swings may have another period"
    )


def _rest(scenario: Scenario) -> list[Assumption]:
    known = ("window-not-limited", "one-ack-a-packet")
    return [a for a in left_out(scenario) if a.name not in known]
