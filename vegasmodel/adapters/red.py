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
MAX_RTTS = 8  # if flows have more different RTTs, fast oscillations are not searched for


def answer(scenario: Scenario) -> Prediction:
    """The rates of the flows, and the mean queue at which these rates add up to the capacity.

    A flow that measures its baseRTT is assumed to measure it without error.
    """
    queue = scenario.links[0].queue
    if not isinstance(queue, Red):
        reason = "the link does not drop or mark early (queue discipline red)"
        return Prediction.not_applicable(NAME, scenario, reason)
    if (undefined := _not_evaluable(scenario, queue)) is not None:
        return Prediction.not_applicable(NAME, scenario, undefined)
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
    flows = _flows(scenario, queue)
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
        loss_rate=np.full(len(scenario.members), 0.0 if queue.ecn else root.loss),
        queue_mean=np.array([root.queue]),
        assumptions=(
            *_hypotheses(scenario, root.kind),
            _stable_queue(scenario, flows, curve, root, queue.weight),
            *_average_within_corners(flows, curve, root, queue.weight),
            _room_for_bursts(scenario, root.queue),
            settles(scenario),
            waits.short(scenario, root.rates),
            *_left_out_here(scenario),
        ),
    )


def _flows(scenario: Scenario, queue: Red) -> Flows:
    """The flows' properties as the model's equations take them.

    A measured baseRTT counts as exact. ``max_window`` is lowered by the packets whose ACKs the
    receiver delays (``held_by_receiver``). If RED only marks packets (ECN), a mark halves every
    window, so ``decrease`` is left out.
    """
    from vegasmodel.equilibrium import red

    given = [m.flow.over_estimate for m in scenario.members]
    return red.Flows(
        vegas=np.array([m.flow.keeps_backlog for m in scenario.members]),
        rtt=rtts(scenario),
        alpha=threshold(scenario),
        over_estimate=np.array([0.0 if x == "measured" else float(x) for x in given]),
        decrease=None if queue.ecn else column(scenario, lambda f: f.decrease),
        max_window=np.array(
            [m.flow.max_window - held_by_receiver(scenario, m) for m in scenario.members]
        ),
        ack_every=column(scenario, lambda f: _counted_every(scenario, f)),
    )


def _counted_every(scenario: Scenario, flow: Flow) -> float:
    """The number of acknowledged packets for which the flow's window W grows by 1/W packets."""
    return 2.0 if flow.delayed_ack and not stack(scenario, flow).counts_packets else 1.0


def _not_evaluable(scenario: Scenario, queue: Red) -> str | None:
    """The reason why the model's equations cannot be evaluated; ``None`` if they can.

    There must be one link, and no flow may be Tahoe, which the equations do not have. The buffer
    must hold packets, because the model computes a mean queue. Each flow must reduce its window at
    a loss. If RED marks packets instead of dropping them (ECN), this is not needed, because a mark
    halves every window.
    """
    if several := one_link(scenario):
        return several
    if any(find(g.law).recovery == "slow start" for g in scenario.flows):
        return "the equations do not have the law tahoe"
    if scenario.links[0].buffer == 0.0:
        return "no packet can wait in a buffer of 0, so there is no mean queue"
    uncut = [g.name for g in scenario.flows if g.decrease == 1.0]
    if uncut and not queue.ecn:  # a mark halves every window
        return f"a loss does not reduce the window of {uncut[0]} (decrease = 1)"
    return None


def _hypotheses(scenario: Scenario, kind: str) -> list[Assumption]:
    """The assumptions on the congestion control laws of the flows, and on the fixed point.

    ``kind`` is that of the fixed point (``red.Equilibrium.kind``). With ``at-threshold`` or
    ``at-buffer`` the drop probability jumps at the mean queue of the fixed point. The probability
    that the model needs lies between its values before and after the jump. So the queue does not
    stay there, but oscillates about it.

    The model also takes Vegas to keep one certain backlog. Vegas with alpha < beta, or one that
    rounds its backlog, keeps any backlog of a range (``dead_zone``).
    """
    smooth = kind not in ("at-threshold", "at-buffer")
    vegas = [g for g in scenario.flows if g.keeps_backlog]
    # whether the two ends of each range are equal
    one_backlog = not any(np.ptp(dead_zone(g.alpha, g.beta, g.variant)) for g in vegas)
    return [
        Assumption(
            "steady-queue",
            smooth,
            "" if smooth else f"the queue oscillates about a jump of the drop probability ({kind})",
        ),
        Assumption("single-threshold", one_backlog, "" if one_backlog else MIDDLE),
        paper_equation(scenario),
        one_recovery(scenario, "a loss halves the window, as Reno's", ["reno"]),
    ]


def _stable_queue(
    scenario: Scenario, flows: Flows, curve: Curve, root: Equilibrium, weight: float
) -> Assumption:
    """The assumption that the model's fixed point is stable, so that the queue does not oscillate.

    The test linearises equations of the windows and the queue with feedback delay, and looks at
    their characteristic roots. It linearises them about their equilibrium
    (``stability.equilibrium_of``). If there is none, for example because RED marks packets (ECN),
    it linearises them about the fixed point of the model ``red`` (``about_red``).

    ``root`` is this fixed point, which the model has found for ``flows`` and RED's ``curve``.
    ``weight`` is the weight of the newest queue length in RED's average. The result is ``None``
    (not known) if the link is underloaded, if RED's loss jumps at the fixed point, or if not all
    characteristic roots that matter were found.
    """
    from vegasmodel.adapters.stability import equilibrium_of
    from vegasmodel.equilibrium import loop_rest
    from vegasmodel.equilibrium.stability import assess

    name = "stable-queue"
    if root.kind not in ("no-loss", "on-curve"):
        return Assumption(
            name, None, f"the drop probability has no slope at the fixed point ({root.kind})"
        )
    equilibrium, c = equilibrium_of(scenario), scenario.links[0].capacity
    if isinstance(equilibrium, str):
        loop = loop_rest.about_red(flows, curve, c, root, weight)
    else:
        loop = equilibrium.loop
    # with many different RTTs, search only for oscillations at least as slow as the longest RTT
    many = np.unique(loop.rtt).size > MAX_RTTS
    found = assess(loop, 2.0 * np.pi / float(loop.rtt.max()) if many else None)
    if found.stable is None:
        return Assumption(name, None, "not all of its characteristic roots were found")
    return Assumption(name, found.stable, "" if found.stable else _what_grows(found.period))


def _average_within_corners(
    flows: Flows, curve: Curve, root: Equilibrium, weight: float
) -> list[Assumption]:
    """The assumption that RED's average queue stays between two corners of RED's curve.

    The model takes RED's loss at the mean queue. This is the mean loss only if the loss changes
    linearly with the average queue, over the range in which the average queue varies. At each
    corner of the curve the slope of the loss changes, or the loss jumps. If the average queue
    passes a corner at which the slope rises or the loss jumps, the mean loss is larger than the
    loss at the mean queue, so the queue is shorter than predicted. The slope falls only at
    ``max_threshold`` of a ``gentle`` curve with a large ``max_probability``. There the queue is
    longer than predicted.

    Here the average queue varies because a single flow's window rises and is cut. A loss at the
    window M multiplies it by d. Then it rises linearly from d M to M, so its mean W is (1+d)/2 M.
    So it varies by (1-d)/2 M = (1-d)/(1+d) W to either side. M is at most the limit ``max_window``.
    The queue varies by as many packets. From one loss of the flow to the next, the flow sends 1/p
    packets, where p is the loss probability. In this time all flows together send N packets. RED's
    average follows the queue with a lag of L = -1/log(1 - ``weight``) packets. So the average
    varies less than the queue, by the factor 1/sqrt(1 + (2 pi L/N)^2), that of a first-order filter
    for an oscillation of period N.

    The list is empty if the loss jumps at the mean queue itself. The assumption ``steady-queue``
    then says so.
    """
    from vegasmodel.equilibrium.red import cuts

    name = "average-within-thresholds"
    if root.kind in ("no-loss", "underloaded"):
        return [Assumption(name, True)]
    if root.kind != "on-curve":
        return []
    limit, alpha, x, T, vegas = (
        np.broadcast_to(np.asarray(v, dtype=np.float64), root.rates.shape)
        for v in (flows.max_window, flows.alpha, flows.over_estimate, flows.rtt, flows.vegas)
    )
    q, p, d, total = root.queue, root.loss, cuts(flows, curve), float(root.rates.sum())
    # [flow] rate at which the flow sends, pkt/s: with ECN no packet is dropped, only marked
    sent = root.rates / (1.0 if curve.ecn else 1.0 - p)
    delay = q / total
    # [flow] whether it is a Vegas flow whose window is limited by its backlog alpha, not by losses,
    # so that it hardly varies. Its baseRTT is too large by x, so it counts a queueing delay of only
    # ``delay`` - x. (1e-9 is for rounding errors)
    held = (vegas > 0) & (sent * (delay - x) >= alpha * (1.0 - 1e-9))
    # by how much each window, and so the queue, varies to either side of its mean, packets
    to_side = np.minimum((1.0 - d) / (1.0 + d) * sent * (T + delay), (1.0 - d) / 2.0 * limit)
    lag = 0.0 if weight == 1.0 else -1.0 / math.log1p(-weight)  # L
    with np.errstate(divide="ignore"):
        period = total / (p * root.rates)  # N
    # by how much RED's average varies to either side; the flow that makes it vary most counts
    swing = float(np.where(held, 0.0, to_side / np.hypot(1.0, 2.0 * np.pi * lag / period)).max())
    corners = curve.corners()[:, 0]
    low, high = corners[corners <= q].max(), corners[corners > q].min()
    corner = low if q - swing < low else high
    detail = (
        f"the window of one flow rises and is cut, so RED's average varies by about {swing:.2g} "
        f"pkt about its mean of {q:.3g}, beyond {corner:g} packets, where the slope of RED's drop "
        "probability changes; so the mean loss is not the loss at the mean queue"
    )
    holds = bool(low <= q - swing and q + swing <= high)
    return [Assumption(name, holds, "" if holds else detail)]


def _room_for_bursts(scenario: Scenario, queue: float) -> Assumption:
    """The assumption that the buffer has room for bursts of packets beyond the mean queue.

    RED drops packets by its average of the queue, before the buffer is full. The equations contain
    only these drops. But the queue varies about its mean, because senders send in bursts. If the
    buffer has little room beyond the mean queue, packets also find it full. The queue is then
    shorter than predicted. The assumption fails if there is room for fewer than ``LEAST_BUFFER``
    packets, as in the models of a drop-tail queue. ``queue`` is the predicted mean queue, packets.
    """
    room = scenario.links[0].buffer - queue
    detail = (
        f"beyond the mean queue of {queue:.3g} packets the buffer has room for {room:.3g}; bursts "
        "may overflow it, so that packets are lost that RED does not drop early"
    )
    holds = room >= LEAST_BUFFER
    return Assumption("buffer-holds-bursts", holds, "" if holds else detail)


def _what_grows(period: float) -> str:
    """A text on what an unstable queue does; ``period`` is that of its fastest growing oscillation.

    It is in s, and infinite if the fastest growing deviation does not oscillate.
    """
    if math.isinf(period):
        return "a small deviation of the queue grows"
    return (
        "small oscillations of the queue grow, fastest the one with a period of "
        f"{period:.2g} s; large swings may have another period"
    )


def _left_out_here(scenario: Scenario) -> list[Assumption]:
    """The assumptions of ``left_out``, except those on features that the equations contain."""
    in_equations = ("window-not-limited", "one-ack-a-packet")
    return [a for a in left_out(scenario) if a.name not in in_equations]
