"""Tests whether a user's own law moves its window far up and down, because it learns RTTs late.

An ACK tells its sender how long its packet waited in the queue, a round trip after it was sent. If
a law answers a short queue by a much larger window, the queue is long a round trip later. Then the
law makes the window small again, and so on. How the packets of a round trip follow one another then
decides how many packets the link sends. The equations of the simulator ``fluid`` know this only
roughly.

The test asks the law itself, for one round trip after the other. Let W_i(k) be the window of flow i
in round trip k, and s(k) the queueing delay that the windows cause. The windows of users' laws move
by

    W_i(k + 1) = W_i(k) + m_i(W_i(k), T_i + s(k - 1)),
    sum_i W_i(k)/(T_i + s(k)) = c,   or s(k) = 0 if the sum is below c at s(k) = 0.

Here m_i is the law's ``drift``, T_i the flow's RTT with empty queues, and c the capacity. All other
windows keep their means. By how much a window swings up and down depends on the whole function m_i,
not only on its slope at an equilibrium. So the test computes many round trips.
"""

from __future__ import annotations

import contextlib

import numpy as np

from vegasmodel.adapters.own_laws import own_source
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.laws.law import ask, ask_all
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario
from vegasmodel.scenario.placement import room

# round trips that the test computes, and how many of the last of them it looks at
ROUND_TRIPS, LOOKED_AT = 40, 20
SMALL_SWING = 0.1  # part of a window: smaller swings matter little
PUSH = 1.0  # packets by which the test moves each window at first
DELAY_ERROR = 1e-9  # relative error of a queueing delay at which Newton's method stops
LEAST_WINDOW = 1.0  # packets


def delay_of(windows: Floats, rtt: Floats, c: float, longest: float) -> float:
    """The queueing delay s, in s, at which windows of ``windows`` [n] packets fill the link.

    It solves sum_i W_i/(T_i + s) = c, with the RTTs T_i = ``rtt`` [n] in s of empty queues, and the
    capacity ``c`` in pkt/s. It is 0 if the sum is below c at s = 0, and at most ``longest``, in s.
    The sum is convex in s, so Newton's method from s = 0 never goes too far.
    """
    s = 0.0
    while True:
        rates = windows / (rtt + s)
        step = (float(rates.sum()) - c) / float((rates / (rtt + s)).sum())
        if step <= DELAY_ERROR * (s + float(rtt.min())) or s >= longest:
            return min(s, longest)
        s += step


def swings(
    scenario: Scenario, windows: Floats, base_rtt: Floats, kept: Floats | None = None
) -> Floats:
    """By how much users' laws move windows up and down again in a round trip, packets [n].

    At first the windows are ``windows`` [n] packets. The test adds ``PUSH`` packets to each window
    of a user's law, because a window may stay at an equilibrium that is not stable. ``base_rtt``
    [n] are the baseRTTs, s. ``kept`` [n, number] are the numbers that the laws keep at first; with
    None they are those of a law's start. No window exceeds what the link and its buffer hold.

    Of the last ``LOOKED_AT`` round trips, let U be the sum of all moves of a window up, and D of
    those down. The result is 2 min(U, D) divided by the number of these round trips. So it is 0 for
    a window that only grows until a packet is lost, and for windows of other laws. Raises
    ``FieldError`` if a function of a law fails.
    """
    link, members = scenario.links[0], scenario.members
    user_laws = {law.name: law for law in scenario.own_laws}
    own = {i: user_laws[m.flow.law] for i, m in enumerate(members) if m.flow.law in user_laws}
    numbers = {
        i: law.first if kept is None else tuple(kept[i, : len(law.state)]) for i, law in own.items()
    }
    rtt = np.array([member.rtt for member in members])
    longest = room(scenario, link, "forward") / link.capacity  # the delay of a full buffer, s
    most = np.maximum(link.capacity * (rtt + longest), LEAST_WINDOW)
    W = np.array(windows, dtype=np.float64)
    s = delay_of(W, rtt, link.capacity, longest)  # as the ACKs of a round trip report it
    W[list(own)] += PUSH
    up, down = np.zeros(W.size), np.zeros(W.size)
    for k in range(ROUND_TRIPS):
        later = delay_of(W, rtt, link.capacity, longest)
        before = W.copy()
        for i, law in own.items():
            base = float(base_rtt[i])
            seen = max(float(rtt[i]) + s, base)
            sender = own_source(scenario, i, float(W[i]), seen, base, numbers[i])
            if law.update is not None:
                numbers[i] = ask_all(law, "update", sender)
                sender = own_source(scenario, i, float(W[i]), seen, base, numbers[i])
            W[i] = min(max(W[i] + ask(law, "drift", sender), LEAST_WINDOW), most[i])
        if k >= ROUND_TRIPS - LOOKED_AT:
            up += np.maximum(W - before, 0.0)
            down += np.maximum(before - W, 0.0)
        s = later
    return 2.0 * np.minimum(up, down) / LOOKED_AT


def swings_little(
    scenario: Scenario,
    throughput: Floats,
    rtt_mean: Floats,
    base_rtt: Floats | None,
    kept: Floats | None,
) -> list[Assumption]:
    """The assumption of ``fluid`` that user-defined laws hardly move their windows up and down.

    It fails if ``swings`` exceeds the part ``SMALL_SWING`` of a flow's mean window. Beside Vegas it
    also fails if ``swings`` exceeds beta packets: Vegas keeps alpha to beta packets queued, and a
    queue that varies by more does not let it. ``throughput`` [flow] is in pkt/s, ``rtt_mean`` and
    ``base_rtt`` [flow] are in s, and ``kept`` [flow, number] are the numbers that the laws keep. If
    a function fails for one of the states, the test says nothing: a simulation may never meet this
    state. The list is empty if no flow has a user-defined law.
    """
    user_laws = {law.name for law in scenario.own_laws}
    if not user_laws:
        return []
    windows = np.nan_to_num(throughput * rtt_mean)
    base = np.array([member.rtt for member in scenario.members])
    if base_rtt is not None:
        base = np.where(base_rtt > 0.0, base_rtt, base)
    betas = [group.beta for group in scenario.flows if group.keeps_backlog]
    swing = np.zeros(windows.size)
    if windows.any():
        with contextlib.suppress(FieldError):
            swing = swings(scenario, windows, base, kept)
    wide = [
        f"{member.name} by {moved:.3g} packets of {window:.3g}"
        for member, moved, window in zip(scenario.members, swing, windows, strict=True)
        if member.flow.law in user_laws
        and window > 0.0
        and moved > min([SMALL_SWING * window, *betas])
    ]
    detail = (
        "the law learns of the queue a round trip late, so in each round trip it moves the window "
        f"up or down: {few(wide, clauses=True)}; the equations know only roughly how many packets "
        "the link then sends; rounds simulates this"
    )
    return [Assumption("own-law-swings-little", not wide, detail if wide else "")]
