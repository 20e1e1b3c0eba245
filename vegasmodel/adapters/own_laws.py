"""Tests the assumptions that the simulators make about a user's own laws of congestion control."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from typing import Any

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.laws import Source, find
from vegasmodel.laws.law import ask
from vegasmodel.metrics import Floats, percent
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import Scenario

# a fraction of the window: outside slow start, usual laws grow by far less in a round trip
UNUSUAL_GROWTH = 0.75
ALWAYS_USUAL = 3.0  # packets: so much growth in a round trip is usual at small windows, too
MOST_LOST = 0.1  # of a flow's packets: if more are lost, its sender hardly repairs its losses


def own_source(
    scenario: Scenario,
    i: int,
    window: float,
    rtt: float,
    base_rtt: float,
    kept: Iterable[float] | None,
) -> Any:
    """The ``Source`` of flow ``i``, one second after a loss at this window.

    ``rtt`` and ``base_rtt`` are in s. ``kept`` [number] are the numbers that the flow's law keeps;
    without it a law has those of its start. ``memory`` is what the law's ``remember`` returns for
    this sender. Raises ``FieldError`` if ``remember`` fails.
    """
    flow = scenario.members[i].flow
    sender = Source(
        window=window,
        rtt=rtt,
        base_rtt=base_rtt,
        backlog=window * max(1.0 - base_rtt / rtt, 0.0),
        elapsed=1.0,
        memory=window,
        alpha=flow.alpha,
        beta=flow.beta,
        round_trips=1.0 / rtt,
    )
    law = find(flow.law)
    if law.remember is not None and not law.state:
        sender = sender._replace(memory=ask(law, "remember", sender))
    return law.source(sender, kept)


def own_growth(
    scenario: Scenario,
    i: int,
    throughput: Floats,
    rtt_mean: Floats,
    base_rtt: Floats | None,
    kept: Floats | None = None,
) -> tuple[float, float]:
    """By how many packets a user-defined law changes its window in a round trip, and the window.

    The law is that of flow ``i``. Its ``drift`` is called for the flow's mean window, mean RTT and
    baseRTT, one second after a loss at this window (``own_source``). ``throughput`` [flow] is in
    pkt/s, and ``rtt_mean`` and ``base_rtt`` [flow] in s. If there is no baseRTT, or it is NaN, the
    flow's RTT with empty queues takes its place. ``kept`` [flow, number] are the numbers that the
    flows' laws keep. Raises ``FieldError`` if a function fails.
    """
    member = scenario.members[i]
    law, rtt = find(member.flow.law), float(rtt_mean[i])
    window = float(throughput[i]) * rtt
    least = math.nan if base_rtt is None else float(base_rtt[i])
    base = least if least > 0.0 else member.rtt
    numbers = None if kept is None else kept[i, : len(law.state)]
    return ask(law, "drift", own_source(scenario, i, window, rtt, base, numbers)), window


def own_laws_change(
    scenario: Scenario,
    throughput: Floats | None,
    rtt_mean: Floats | None,
    base_rtt: Floats | None,
    kept: Floats | None = None,
) -> list[Assumption]:
    """The assumption that a user-defined law grows by less than its window in a round trip.

    It fails if ``drift`` exceeds both ``ALWAYS_USUAL`` packets and the fraction ``UNUSUAL_GROWTH``
    of the window. So large a result is seldom meant: the function may return the new window in
    place of the change. ``throughput`` [flow] is in pkt/s, and ``rtt_mean`` and ``base_rtt`` [flow]
    are in s. ``kept`` [flow, number] are the numbers that the flows' laws keep. Flows without a
    throughput are not tested. The list is empty if no flow has a user-defined law.
    """
    user_laws = {law.name for law in scenario.own_laws}
    if not user_laws or throughput is None or rtt_mean is None:
        return []
    fast_growing = []
    for i, member in enumerate(scenario.members):
        if member.flow.law not in user_laws or not throughput[i] * rtt_mean[i] > 0.0:
            continue
        with contextlib.suppress(FieldError):  # the run may never meet its mean state
            growth, window = own_growth(scenario, i, throughput, rtt_mean, base_rtt, kept)
            if growth > max(ALWAYS_USUAL, UNUSUAL_GROWTH * window):
                fast_growing.append(
                    f"that of {member.name} is {growth:.3g} at a window of {window:.3g}"
                )
    names = few(fast_growing, clauses=True)
    detail = f"drift returns the change in a round trip; {names}: did the function return the new "
    detail += "window instead of its change?"
    return [Assumption("own-law-returns-change", not fast_growing, detail if fast_growing else "")]


def own_laws_repair(scenario: Scenario, loss: Floats | None) -> list[Assumption]:
    """The assumption that flows with user-defined laws repair their losses.

    ``loss`` [n_flows] is the fraction of each flow's packets that is lost. The assumption fails if
    this fraction exceeds ``MOST_LOST`` for a flow with such a law. Flows over links with random
    loss are not tested. The list is empty if no flow has a user-defined law, or if ``loss`` is
    ``None``.
    """
    user_laws = {law.name: law for law in scenario.own_laws}
    if not user_laws or loss is None:
        return []
    lossy = [
        (member, rate, user_laws[member.flow.law].recovery)
        for member, rate in zip(scenario.members, loss, strict=True)
        if member.flow.law in user_laws
        and rate > MOST_LOST
        and not any(link.loss > 0.0 for link in scenario.path(member.flow))
    ]
    unrepaired = [
        f"{member.name} loses {percent(rate)} of its packets (recovery: {recovery!r})"
        for member, rate, recovery in lossy
    ]
    detail = f"{few(unrepaired, clauses=True)}: after a cut the window may still be larger than "
    detail += "the link and its buffer hold"
    if any(recovery != "scoreboard" for *_, recovery in lossy):
        detail += ', or recovery="scoreboard" may suit the law better'
    return [Assumption("own-law-repairs", not unrepaired, detail if unrepaired else "")]
