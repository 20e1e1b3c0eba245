"""Computes the rates of Vegas flows that cross several links, by the model ``network``.

The equilibrium of this model maximises a sum of utilities of the flows' rates. A result is returned
only if it satisfies the conditions of optimality within a small tolerance.

Several functions take the following arrays. ``routing`` [queue, flow] is 1 where the flow crosses
the queue, else 0. ``capacity`` [queue] has the capacities in pkt/s. ``x`` [flow] has the number of
seconds by which each flow over-estimates its propagation delay.
"""

from __future__ import annotations

import itertools

import numpy as np

from vegasmodel.adapters import only_vegas, rest, waits
from vegasmodel.adapters.common import (
    MIDDLE,
    column,
    laws_within,
    left_out,
    plain_queue,
    rtts,
    threshold,
)
from vegasmodel.equilibrium import network, secular
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Link, Scenario
from vegasmodel.scenario.placement import room, with_crossed_link
from vegasmodel.stacks import STACKS, dead_zone
from vegasmodel.status import Status

NAME = "network"


def answer(scenario: Scenario) -> Prediction:
    """The rates and queueing delays at which each Vegas flow's backlog equals its threshold.

    The backlog is the one that the flow computes: r (q - x), where r is its rate, q the queueing
    delay of its path, and x its over-estimate of the path's propagation delay. The threshold is the
    middle of the flow's dead zone (``common.threshold``). The dead zone is the range of backlogs
    in which Vegas holds its window.
    """
    reason = laws_within(scenario, ["vegas"])
    if reason is None and any(STACKS[g.variant].backlog_over_base for g in scenario.flows):
        reason = "the utility is that of the papers' equation; Linux divides by baseRTT"
    if reason is None and {scenario.size_of(g) for g in scenario.flows} != {scenario.packet_size}:
        reason = "the equations are for one packet size; some flows have their own"
    if reason is not None:
        return Prediction.not_applicable(NAME, scenario, reason)
    # one row for each queue that data cross: ``used`` has its link, and whether it is forward
    routing, used = _routing(scenario)
    capacity = np.array([scenario.links[i].capacity for i, _ in used])
    alpha = threshold(scenario)
    x, states = _over_estimates(scenario, routing, capacity)
    state = _solve(routing, capacity, alpha, x)
    if state.status != Status.DONE:
        return Prediction.not_applicable(
            NAME, scenario, "the solver's result does not satisfy the conditions of an optimum"
        )
    queues = _delays_of_queues(scenario, routing, used, capacity, state.prices) * capacity
    slowest = _slowest(routing, capacity)
    queue = np.zeros(len(scenario.links))
    for (link, forward), length in zip(used, queues, strict=True):
        if forward:
            queue[link] = length
    return Prediction(
        NAME,
        scenario,
        state.rates,
        base_rtt=rtts(scenario) + x,
        rtt_mean=rtts(scenario) + state.path_delay,
        loss_rate=np.zeros(x.size),
        queue_mean=queue,
        assumptions=(
            _no_overflow(scenario, x, states, used, queues),
            rest.many_packets(
                scenario,
                _solver(routing, capacity, alpha),
                slowest,
                state.rates,
                waves=only_vegas.waves_found(scenario),
            ),
            rest.together(scenario),
            *_hypotheses(scenario),
            waits.small_bursts(scenario, state.rates),
            rest.settled(scenario, states, alpha, slowest),
        ),
        extra={"kkt_residual": state.certificate.residual},
    )


def _routing(scenario: Scenario) -> tuple[Floats, list[tuple[int, bool]]]:
    """The routing matrix, and a list that says which queue each of its rows stands for.

    A row stands for a queue and a column for a flow. An entry is 1 if the flow crosses the queue,
    else 0. Each direction of a link has its own queue. In the list, a queue is a pair: the index of
    its link, and whether its direction is forward.
    """
    index = {link.name: i for i, link in enumerate(scenario.links)}
    rows: dict[tuple[int, bool], Floats] = {}
    for i, member in enumerate(scenario.members):
        forward = member.flow.direction == "forward"
        for link in scenario.path(member.flow):
            key = (index[link.name], forward)
            rows.setdefault(key, np.zeros(len(scenario.members)))[i] = 1.0
    used = sorted(rows)
    return np.array([rows[key] for key in used]), used


def _over_estimates(
    scenario: Scenario, routing: Floats, capacity: Floats
) -> tuple[Floats, list[rest.SteadyState]]:
    """Each flow's over-estimate of its baseRTT, s, and the steady state after each starting time.

    If a flow measures its baseRTT, its over-estimate is the queueing delay that it finds when it
    starts. Otherwise the scenario gives the over-estimate. ``routing`` [queue, flow] comes from
    ``_routing``, and ``capacity`` [queue] is in pkt/s.
    """
    return rest.follow(scenario, _solver(routing, capacity, threshold(scenario)))


def _solver(routing: Floats, capacity: Floats, alpha: Floats) -> rest.Solve:
    """A function that computes the steady state of those flows that have started.

    Flows start one after another. A flow that starts measures its baseRTT in the steady state of
    the earlier flows. So ``rest.follow`` and other functions of ``rest`` need the steady state of
    only some of the flows. ``alpha`` [n] is the number of packets that each flow keeps queued.
    ``routing`` [queue, n] is 1 for the queues that a flow crosses, and ``capacity`` [queue] is in
    pkt/s.
    """

    def solve(started: rest.Mask, x: Floats) -> tuple[Floats, Floats]:
        """The rates (pkt/s) of the flows that have started, and all flows' queueing delays (s [n]).

        ``started`` [n] is true for the flows that have started. ``x`` [n] are the over-estimates of
        baseRTT, in s. A flow's queueing delay is the sum of the delays of the links on its path.
        """
        # the links that these flows cross; no packets wait at the others
        links = routing[:, started].any(axis=1)
        state = _solve(routing[links][:, started], capacity[links], alpha[started], x[started])
        # ``prices`` are the links' queueing delays
        return state.rates, state.prices @ routing[links]

    return solve


def _slowest(routing: Floats, capacity: Floats) -> Floats:
    """The capacity of the slowest link on each flow's path, pkt/s."""
    return np.asarray(np.where(routing > 0, capacity[:, None], np.inf).min(axis=0))


def _solve(routing: Floats, capacity: Floats, alpha: Floats, x: Floats) -> network.Equilibrium:
    """The equilibrium of Vegas flows; for several links it is the solution of a convex problem.

    ``routing`` [queue, n] is 1 for the queues that a flow crosses, else 0. ``capacity`` [queue] is
    in pkt/s, ``alpha`` [n], the thresholds, in packets, and ``x`` [n], the over-estimates of
    baseRTT, in s.
    """
    if len(capacity) > 1:
        return network.solve(routing, capacity, alpha, x)
    equilibrium = secular.solve(alpha, x, float(capacity[0]))
    prices = np.array([float(equilibrium.delay)])
    proof = network.certificate(routing, capacity, alpha, x, equilibrium.rates, prices)
    good = equilibrium.status == Status.DONE and proof.residual < network.ACCURATE
    status = Status.DONE if good else Status.INACCURATE
    return network.Equilibrium(equilibrium.rates, prices, prices @ routing, proof, status)


def _delays_of_queues(
    scenario: Scenario,
    routing: Floats,
    used: list[tuple[int, bool]],
    capacity: Floats,
    prices: Floats,
) -> Floats:
    """The queueing delay of each queue in ``used``, s.

    ``routing`` and ``used`` come from ``_routing``, and ``capacity`` [queue] is in pkt/s.

    ``prices`` are the queueing delays that the solver has found. They need not be the right ones if
    the same flows cross two links of equal capacity: the rates then determine only the sum of the
    two delays. The flows' packets leave the first of these links at its capacity, one after
    another. So they find no queue at the second one, and the whole sum is the delay of the first.
    If some flows cross the two links in the opposite order, ``prices`` are left as they are.
    """
    delays, links = prices.copy(), [scenario.links[link] for link, _ in used]
    # the queues (indices) that the same flows cross and that have the same capacity
    interchangeable: dict[tuple[bytes, float], list[int]] = {}
    for i, row in enumerate(routing):
        interchangeable.setdefault((row.tobytes(), float(capacity[i])), []).append(i)
    for i, j in (
        pair for queues in interchangeable.values() for pair in itertools.permutations(queues, 2)
    ):
        if delays[j] > 0.0 and _crossed_first(scenario, routing[i], links[i], links[j]):
            delays[i], delays[j] = delays[i] + delays[j], 0.0
    return delays


def _crossed_first(scenario: Scenario, crosses: Floats, first: Link, second: Link) -> bool:
    """Whether all flows that cross both links cross ``first`` before ``second``.

    ``crosses`` [n_flows] is 1 for a flow that crosses the links, else 0.
    """
    paths = [scenario.path(m.flow) for m, on in zip(scenario.members, crosses, strict=True) if on]
    return all(path.index(first) < path.index(second) for path in paths)


def _no_overflow(
    scenario: Scenario,
    x: Floats,
    states: list[rest.SteadyState],
    used: list[tuple[int, bool]],
    queues: Floats,
) -> Assumption:
    """The assumption that no buffer overflows.

    ``queues`` has the lengths of all queues in the steady state, in packets. ``used`` says which
    queue each of them is: the index of its link, and whether it is the one in forward direction.

    If there is a single queue, ``rest.fits`` tests the assumption: it also looks at the time before
    the steady state, in which the queue may be longer. For this it needs ``x``, the over-estimates
    of baseRTT. It also needs ``states``: for each time at which flows start, the steady state of
    all flows that have started by then.

    If there are several queues, only their lengths in the steady state are compared with the
    buffers. So if these fit, but some buffer is finite, the result is ``None`` (not known).
    """
    if len(used) == 1:
        scenario = with_crossed_link(scenario)
        # the greatest backlog of each flow: where Vegas or its slow start stops growing
        greatest_backlogs = column(
            scenario, lambda f: max(float(dead_zone(f.alpha, f.beta, f.variant)[1]), f.gamma)
        )
        return rest.fits(scenario, x, states, greatest_backlogs, float(queues[0]))
    rooms = [
        room(scenario, scenario.links[link], "forward" if forward else "reverse")
        for link, forward in used
    ]
    if np.any(queues > rooms):
        return Assumption("infinite-buffer", False, "a link's queue exceeds its buffer")
    if np.all(np.isinf(rooms)):
        return Assumption("infinite-buffer", True)
    detail = "the queues fit in equilibrium; how long they are before that is not computed"
    return Assumption("infinite-buffer", None, detail)


def _hypotheses(scenario: Scenario) -> list[Assumption]:
    """The assumptions on thresholds, on queues, and on features that the model leaves out."""
    acks = "no-queueing-of-acks"
    both_ways = len({g.direction for g in scenario.flows}) > 1
    one_threshold = not any(np.ptp(dead_zone(g.alpha, g.beta, g.variant)) for g in scenario.flows)
    # ``left_out`` tests ``acks`` without regard to data packets in the opposite direction
    features = [each for each in left_out(scenario) if not (both_ways and each.name == acks)]
    # the first link in use whose queue is not drop-tail, or else the first link in use
    crossed = scenario.crossed
    link = next((k for k in crossed if k.queue.discipline != "droptail"), crossed[0])
    return [
        *([Assumption(acks, False, "ACKs wait behind reverse data")] if both_ways else []),
        Assumption("single-threshold", one_threshold, "" if one_threshold else MIDDLE),
        plain_queue(link),
        *features,
    ]
