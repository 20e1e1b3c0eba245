"""Evaluates the model of Rate-Delay services for a scenario.

A link with these services has two queues. The flows of class R have high rates, the flows of class
D have short queueing delays. The equations are (5) to (7) of Podlesny and Williamson.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vegasmodel.adapters import waits
from vegasmodel.adapters.common import column, left_out, one_link
from vegasmodel.adapters.warm_up import settles
from vegasmodel.equilibrium import rate_delay, secular
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Member, RateDelay, Scenario
from vegasmodel.scenario.placement import link_stack
from vegasmodel.stacks import dead_zone

# a fraction of the rate of class R: if its flows leave more idle, predicted rates are too high
IDLE_PART = 0.05
# a fraction of a rate: if over-estimates change it by more, the flows of a class are not equal
NOTABLE_CHANGE = 0.1
# The greatest number of start times for which ``_late_rates`` is called. It solves the rates of
# all flows that have started, once for each start time, so the work grows with both numbers.
MAX_STARTS = 100
# packets beyond alpha: with less room, one flow of alpha = 1 to 3 loses packets
ROOM_FOR_BURSTS = 4.0


def answer(scenario: Scenario) -> Prediction:
    """Each flow's rate at a link with Rate-Delay services.

    Such a link has two classes of flows: class R for a high rate, and class D for a short delay.
    The model gives the share of the capacity for each class. Flows of one class get equal parts of
    its share.
    """
    link = scenario.links[0]
    queue = link.queue
    if not isinstance(queue, RateDelay):
        reason = "the link does not offer Rate-Delay services (queue discipline rd)"
        return Prediction.not_applicable("rate-delay", scenario, reason)
    if several := one_link(scenario):
        return Prediction.not_applicable("rate-delay", scenario, several)
    in_D = np.array([m.flow.service == "delay" for m in scenario.members])  # true for class D
    n_D, n_R = int(in_D.sum()), int((~in_D).sum())
    # the throughputs of a flow of class R (high rate) and of one of class D (short delay), pkt/s
    rate_R, rate_D = rate_delay.flow_rates(n_R, n_D, link.capacity, queue.k)
    throughput = np.where(in_D, rate_D, rate_R)
    return Prediction(
        "rate-delay",
        scenario,
        throughput,
        assumptions=(
            *_hypotheses(scenario, queue, in_D),
            settles(scenario),
            waits.short(scenario, throughput),
            *left_out(scenario),
        ),
    )


def _hypotheses(
    scenario: Scenario, queue: RateDelay, in_D: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[Assumption]:
    """The model's assumptions, and whether each holds.

    Class D is meant for Vegas flows, and class R for loss-based flows. Each class has a queue of
    its own, and queue D is the one with the short delay. Each Vegas flow of class D keeps alpha
    packets in queue D. So queue D must have room for all these alphas and for a burst. ``queue``
    is the link's queue discipline, and ``in_D`` [n_flows] is true for flows of class D.
    """
    vegas = np.array([m.flow.keeps_backlog for m in scenario.members])
    marked = bool(np.all(vegas == in_D))
    # the packets that the Vegas flows of class D keep in queue D, and the packets it has room for
    wanted = float(column(scenario, lambda flow: flow.alpha)[vegas & in_D].sum())
    room = scenario.links[0].room(link_stack(scenario), "delay")
    needed = wanted + ROOM_FOR_BURSTS if wanted > 0.0 else 0.0
    lacks = "they lose some" if room < wanted else f"bursts need {needed:g} pkt of room"
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
            else f"queue D has room for {room:g} pkt, its flows keep {wanted:g} there; {lacks}",
        ),
        _windows_fill_link(scenario, queue, int((~in_D).sum()), int(in_D.sum())),
        _equal_flows(scenario),
        _one_backlog(scenario),
        _true_base_rtts(scenario, queue.k),
    ]


def _windows_fill_link(scenario: Scenario, queue: RateDelay, n_R: int, n_D: int) -> Assumption:
    """The assumption that loss-based flows of class R use almost all of the rate of their class.

    With Rate-Delay services each class has a queue of its own: class R for a high rate, and class D
    for a low delay. A loss cuts a window. If queue R is much shorter than the bandwidth-delay
    product at the rate of class R, the queue then runs empty. Until the windows have grown back,
    the rest of the rate goes to class D, or is not used. ``rate_delay.rate_utilization`` gives the
    part that the flows use if they all lose packets at the same time. The assumption fails if they
    leave more than the fraction ``IDLE_PART`` idle. ``n_R`` and ``n_D`` are the numbers of flows of
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
        if used < 1.0 - IDLE_PART:
            detail = (
                f"the R queue has room for {room:g} packets, and {float(S_R) * m.rtt:.4g} are on "
                "their way at the rate of its class; after losses the windows may use only "
                f"{used:.0%} of it"
            )
            return Assumption(name, False, detail)
    return Assumption(name, True)


def _equal_flows(scenario: Scenario) -> Assumption:
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
        if any(not g.one_threshold for g in of_class) and sum(g.count for g in of_class) > 1:
            detail = "start times decide how several Vegas flows divide the rate of their class"
            return Assumption("single-threshold", False, detail)
    return Assumption("single-threshold", True)


def _true_base_rtts(scenario: Scenario, k: float) -> Assumption:
    """The assumption ``base-rtt-is-the-rtt``: Vegas flows know their RTTs without queueing.

    Earlier Vegas flows keep packets in the queue of their class. A late flow that measures its
    baseRTT counts the queueing delay of these packets as propagation delay, as on a link with one
    queue (Boutremans and Le Boudec, section 3). So it keeps more packets queued, and gets more than
    the earlier flows. A late flow is one that starts after the first Vegas flow of its class.

    The assumption holds if no late flow measures its baseRTT. Otherwise the class decides:

    - Class R: it fails. Vegas does not belong there, and we do not compute by how much its rates
      change.
    - Class D with at most ``MAX_STARTS`` start times: it fails if the measured baseRTTs change some
      rate by more than the fraction ``NOTABLE_CHANGE``, or if the rates are not found
      (``_late_rates``).
    - Class D with more start times: it fails, as we do not compute the rates.

    ``k`` is the wanted rate of a flow of class R over that of a flow of class D.
    """
    name = "base-rtt-is-the-rtt"
    for letter, service in (("R", "rate"), ("D", "delay")):
        vegas = [m for m in scenario.members if m.flow.service == service and m.flow.keeps_backlog]
        first = min((m.start for m in vegas), default=0.0)
        late = [m for m in vegas if m.start > first and m.flow.measures_base]
        if not late:
            continue
        detail = (
            f"{late[0].name} starts after another Vegas flow of class {letter}, counts the "
            "queueing delay of that flow's packets as propagation delay, and may get more"
        )
        if letter == "D" and len({m.start for m in vegas}) <= MAX_STARTS:
            late_rates, known = _late_rates(scenario, vegas, k)
            change = late_rates / known - 1.0
            if np.abs(change).max() <= NOTABLE_CHANGE:
                continue
            if np.isfinite(change).all():  # else the solver has failed
                gainer = int(np.argmax(change))  # the flow that gains most
                detail = (
                    f"{vegas[gainer].name} starts after other Vegas flows of class D, counts the "
                    "queueing delay of their packets as propagation delay, and may get "
                    f"{change[gainer]:.0%} more"
                )
        return Assumption(name, False, detail)
    return Assumption(name, True)


def _late_rates(scenario: Scenario, vegas: Sequence[Member], k: float) -> tuple[Floats, Floats]:
    """The rates of the flows of class D, pkt/s, after all flows have started.

    The first result are the rates with the baseRTTs that the flows measure, the second one the
    rates if they knew their baseRTTs.

    The flows ``vegas`` start one after another, as in the closed form ``arrivals``. But on a
    Rate-Delay link a new flow of class D raises the rate of its class, from S to S'. Until their
    windows have grown, the earlier flows cannot use this. In one round trip (rtt_i) their queue
    therefore falls by (S' - S) sum_i r_i rtt_i / S packets, where r_i are their rates before. The
    new flow meets only the packets that remain. If none remain, its baseRTT is right.

    Equations (3) to (6) of Boutremans and Le Boudec, with the rate of the class in place of the
    capacity, give the rates and the queue. ``k`` is as in ``_true_base_rtts``.
    """
    capacity = scenario.links[0].capacity
    # the start times of the flows of class R, which set the rate S of class D at each time
    starts_of_R = np.array([m.start for m in scenario.members if m.flow.service == "rate"])
    start, rtt = np.array([m.start for m in vegas]), np.array([m.rtt for m in vegas])
    # each flow's backlog: the middle of the range at which Vegas keeps its window
    alpha = np.array([sum(dead_zone(m.flow.alpha, m.flow.beta, m.flow.variant)) / 2 for m in vegas])
    given = [0.0 if m.flow.measures_base else float(m.flow.over_estimate) for m in vegas]
    measures = np.array([m.flow.measures_base for m in vegas])
    over_estimates, started_before = np.array(given), np.zeros(start.size, dtype=bool)
    variant = vegas[0].flow.variant
    rates, queue, S_before = np.zeros(start.size), 0.0, 0.0
    for moment in np.unique(start):
        started = start <= moment
        n_R = int((starts_of_R <= moment).sum())
        S = float(rate_delay.service_rates(n_R, int(started.sum()), capacity, k)[1])
        newcomers = started & ~started_before & measures
        if started_before.any():
            drained = (S / S_before - 1.0) * float(rates[started_before] @ rtt[started_before])
            over_estimates[newcomers] = max(queue - max(drained, 0.0), 0.0) / S
        state = secular.solve(
            alpha[started], over_estimates[started], S, rtt=rtt[started], variant=variant
        )
        rates[started], queue = np.asarray(state.rates), float(state.delay) * S
        started_before, S_before = started, S
    S = float(rate_delay.service_rates(starts_of_R.size, start.size, capacity, k)[1])
    late = secular.solve(alpha, over_estimates, S, rtt=rtt, variant=variant)
    known = secular.solve(alpha, given, S, rtt=rtt, variant=variant)
    return np.asarray(late.rates), np.asarray(known.rates)
