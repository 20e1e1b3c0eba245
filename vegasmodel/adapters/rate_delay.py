"""Evaluates the model of Rate-Delay services for a scenario.

A link with these services has two queues. The flows of class R have high rates, the flows of class
D have short queueing delays. The equations are (5) to (7) of Podlesny and Williamson.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import waits
from vegasmodel.adapters.common import column, left_out, one_link
from vegasmodel.adapters.warm_up import settles
from vegasmodel.equilibrium import rate_delay
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import RateDelay, Scenario
from vegasmodel.scenario.placement import link_stack

MOST_IDLE = 0.05  # of the rate of class R: if more is idle, the answer is too high
BURST = 4.0  # packets of room beyond alpha; with less, one flow of alpha = 1 to 3 loses packets


def answer(scenario: Scenario) -> Prediction:
    """Each flow's rate at a link with Rate-Delay services.

    Such a link has two classes of flows: one for a high rate, and one for a short delay. The model
    gives the share of the capacity for each class. Flows of one class get equal parts of its share.
    """
    queue = scenario.links[0].queue
    reason = one_link(scenario)
    if not isinstance(queue, RateDelay):
        reason = "the link does not offer Rate-Delay services (queue discipline rd)"
    if reason or not isinstance(queue, RateDelay):
        return Prediction.not_applicable("rate-delay", scenario, reason or "")
    link = scenario.links[0]
    delayed = np.array([m.flow.service == "delay" for m in scenario.members])
    n_D, n_R = int(delayed.sum()), int((~delayed).sum())
    rate, delay = rate_delay.flow_rates(n_R, n_D, link.capacity, queue.k)
    throughput = np.where(delayed, delay, rate)
    return Prediction(
        "rate-delay",
        scenario,
        throughput,
        assumptions=(
            *_hypotheses(scenario, queue, delayed),
            settles(scenario),
            waits.short(scenario, throughput),
            *left_out(scenario),
        ),
    )


def _hypotheses(
    scenario: Scenario, queue: RateDelay, delayed: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[Assumption]:
    low = np.array([m.flow.keeps_backlog for m in scenario.members])
    marked = bool(np.all(low == delayed))
    wanted = float(column(scenario, lambda flow: flow.alpha)[low & delayed].sum())
    room = scenario.links[0].room(link_stack(scenario), "delay")
    needed = wanted + BURST if wanted > 0.0 else 0.0
    losses = "they lose some" if room < wanted else f"bursts need {needed:g} pkt of room"
    return [
        Assumption(
            "proper-marking",
            marked,
            "" if marked else "a Vegas flow is in class R, or a loss-based flow in class D",
        ),
        Assumption(
            "delay-buffer-large-enough",
            room >= needed,
            ""
            if room >= needed
            else f"queue D has room for {room:g} pkt, its flows keep {wanted:g} there; {losses}",
        ),
        _fills(scenario, queue, int((~delayed).sum()), int(delayed.sum())),
        _alike(scenario),
        _one_backlog(scenario),
        _same_start(scenario),
    ]


def _fills(scenario: Scenario, queue: RateDelay, n_R: int, n_D: int) -> Assumption:
    """The assumption that loss-based flows of class R use almost all of the rate of their class.

    With Rate-Delay services each class has a queue of its own: class R for a high rate, and class D
    for a low delay. A loss cuts a window. If queue R is much shorter than the bandwidth-delay
    product at the rate of class R, the queue then runs empty. Until the windows have grown back,
    the rest of the rate goes to class D, or is not used. ``rate_delay.rate_utilization`` gives the
    part that the flows use if they all lose packets at the same time. The assumption fails if they
    leave more than the fraction ``MOST_IDLE`` idle. ``n_R`` and ``n_D`` are the numbers of flows of
    the classes.
    """
    name, link = "windows-fill-the-link", scenario.links[0]
    S_R, _ = rate_delay.service_rates(n_R, n_D, link.capacity, queue.k)
    room = link.room(link_stack(scenario), "rate")
    for m in scenario.members:
        flow = m.flow
        if flow.service == "delay" or flow.keeps_backlog or flow.decrease == 1.0:
            continue
        used = float(rate_delay.rate_utilization(m.rtt, room, float(S_R), flow.decrease))
        if used < 1.0 - MOST_IDLE:
            detail = (
                f"the R queue has room for {room:g} packets, and {float(S_R) * m.rtt:.4g} are on "
                "their way at the rate of its class; after losses the windows may use only "
                f"{used:.0%} of it"
            )
            return Assumption(name, False, detail)
    return Assumption(name, True)


def _alike(scenario: Scenario) -> Assumption:
    """The assumption that the flows of a class divide its rate equally.

    Flows that differ do not divide it equally: of two loss-based flows the one with the shorter RTT
    gets more, and of two Vegas flows the one with the larger alpha.
    """
    for name, service in (("R", "rate"), ("D", "delay")):
        of_class = [g for g in scenario.flows if g.service == service]
        kinds = {(g.law, g.rtt, *((g.alpha, g.beta) if g.keeps_backlog else ())) for g in of_class}
        if len(kinds) > 1:
            detail = f"flows of class {name} differ in their law, RTT, alpha or beta"
            return Assumption("alike-in-class", False, detail)
    return Assumption("alike-in-class", True)


def _one_backlog(scenario: Scenario) -> Assumption:
    """The assumption that several Vegas flows of a class have alpha = beta.

    Otherwise a flow may rest at any backlog from alpha to beta, and start times decide at which.
    """
    for service in ("rate", "delay"):
        of_class = [g for g in scenario.flows if g.service == service and g.keeps_backlog]
        if any(g.alpha < g.beta for g in of_class) and sum(g.count for g in of_class) > 1:
            detail = "start times decide how several Vegas flows divide the rate of their class"
            return Assumption("single-threshold", False, detail)
    return Assumption("single-threshold", True)


def _same_start(scenario: Scenario) -> Assumption:
    """The assumption that Vegas flows of a class know their true baseRTTs.

    Earlier Vegas flows keep packets in the queue of their class. A flow that measures its baseRTT
    counts the queueing delay of these packets as propagation delay, as on a link with one queue
    (Boutremans and Le Boudec, section 3). So it keeps more packets queued, and gets more than the
    earlier flows. The assumption fails if such a flow starts after another Vegas flow of its class.
    (At times a queue runs empty because the other class leaves some of its rate, and then the
    baseRTT is right all the same.)
    """
    name = "base-rtt-is-the-rtt"
    for letter, service in (("R", "rate"), ("D", "delay")):
        vegas = [m for m in scenario.members if m.flow.service == service and m.flow.keeps_backlog]
        first = min((m.start for m in vegas), default=0.0)
        late = [m for m in vegas if m.start > first and m.flow.measures_base]
        if late:
            said = (
                f"{late[0].name} starts after another Vegas flow of class {letter}, counts the "
                "queueing delay of its packets as propagation delay, and may get more"
            )
            return Assumption(name, False, said)
    return Assumption(name, True)
