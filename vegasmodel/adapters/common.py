"""Holds functions that adapters share; most test whether a scenario meets a model's assumption.

An adapter is a module of this folder that evaluates a model for a scenario and returns a
``Prediction``. The prediction's field ``assumptions`` says whether the scenario meets each
assumption of the model. A prediction has throughputs even if an assumption does not hold. If the
model's equations cannot be evaluated for the scenario, the prediction has no throughputs, but gives
the reason.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.laws import TESTED, Source, find
from vegasmodel.laws.law import Law, ask, ask_all
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import DropTail, Flow, Link, RateDelay, Red, Scenario
from vegasmodel.scenario.placement import (
    NOTABLE_WAIT,
    header,
    left_out_access,
    links_where_acks_wait,
    stack,
)
from vegasmodel.stacks import dead_zone

LOSS_BASED = ("reno", "newreno", "sack", "tahoe")  # Reno and its variants
RECOVERIES = {  # what recovery from a loss costs beside the cut of the window
    "reno": "Reno waits for a timeout where several packets of a window are lost",
    "newreno": "NewReno repairs one lost packet a round trip",
    "sack": "SACK repairs several lost packets in a round trip",
    "tahoe": "Tahoe starts again from one packet",
}
# packets: the smallest buffer that was compared with ns-2 (benchmarks/accuracy_cases.py)
LEAST_BUFFER = 12.0
CYCLES = 10  # with fewer cycles from loss to loss, an unfinished one changes the mean too much
LEAST_WINDOW = 1.1  # packets: a window with a smaller mean hardly ever exceeds one packet
LEAST_BACKLOG = 0.5  # packets: half of a window's change in a round trip
MIDDLE = (  # of the assumption ``single-threshold``, if it fails
    "Vegas keeps its window at any backlog in a range; the answer is for the middle of the range"
)
NOBODY_SENDS = "no flow sends between the end of the warm-up and the end of the run"


def column(scenario: Scenario, value: Callable[[Flow], float]) -> Floats:
    """For each flow, the number that ``value`` returns for the flow's entry in ``scenario.flows``.

    An entry may stand for several equal flows. The result is an array, [n_flows].
    """
    return np.array([value(member.flow) for member in scenario.members], dtype=np.float64)


def rtts(scenario: Scenario) -> Floats:
    """The round-trip time of each flow with empty queues, s."""
    return np.array([member.rtt for member in scenario.members], dtype=np.float64)


def threshold(scenario: Scenario) -> Floats:
    """The middle of each flow's dead zone, packets.

    While its backlog is in the dead zone, Vegas does not change its window. In the papers this zone
    is from alpha to beta. In ns-2 and Linux it is wider, because they compute the backlog in whole
    packets. Models with a single threshold use the middle of the zone.
    """
    return column(scenario, lambda f: float(sum(dead_zone(f.alpha, f.beta, f.variant))) / 2.0)


def one_link(scenario: Scenario) -> str | None:
    """The reason why a model of one link cannot be used for the scenario; ``None`` if it can.

    The scenario must have one link. All flows must go in the forward direction, and have the
    scenario's packet size.
    """
    if len(scenario.links) != 1:
        return f"the equations are for one link; the scenario has {len(scenario.links)}"
    directions = {group.direction for group in scenario.flows}
    if directions != {"forward"}:
        some = "some" if "forward" in directions else "all"
        return f"the equations are for the forward direction only; {some} flows are in reverse"
    sizes = {scenario.size_of(group) for group in scenario.flows}
    if sizes != {scenario.packet_size}:
        return "the equations are for one packet size; some flows have their own"
    return None


def laws_within(scenario: Scenario, laws: Iterable[str]) -> str | None:
    """The reason why a model with only these ``laws`` cannot be used for the scenario.

    The result is ``None`` if the law of every flow is in ``laws``.
    """
    other = sorted({group.law for group in scenario.flows} - set(laws))
    return f"the equations do not have the law {', '.join(other)}" if other else None


def _measures_base(scenario: Scenario) -> bool:
    """Whether some flow keeps a backlog, as Vegas does, and measures its own baseRTT."""
    return any(g.keeps_backlog and g.measures_base for g in scenario.flows)


def left_out(scenario: Scenario, *, random_loss: bool = False) -> list[Assumption]:
    """The closed forms' assumptions about features of a scenario that they do not model.

    Such features are, for example, delayed ACKs, a receiver's window, and flows that stop. There is
    one assumption for each feature. It holds if the scenario lacks the feature, or if the feature
    cannot matter. (``start_jitter`` does not matter if there is one flow, or if no flow measures
    its baseRTT.) If ``random_loss`` is True, the model's equations contain random loss, so no
    assumption about it is returned.
    """
    groups, run = scenario.flows, scenario.run
    starts = [member.start for member in scenario.members]
    stops = [member.stop for member in scenario.members]
    all_send = max(starts) <= run.warmup and min(stops) == run.duration
    later, tiny = later_defaults(scenario), _tiny_backlogs(scenario)
    rows = [  # for each assumption its name, whether it holds, and the detail if it does not
        (
            "long-lived-flows",
            all(g.long_lived for g in groups),
            "flows of finite size come and go; the steady state is never reached",
        ),
        (
            "all-flows-present",
            all_send,
            "some flow starts after warmup or stops before the end; the prediction is for all",
        ),
        (
            "fixed-starts",
            run.start_jitter == 0 or len(starts) == 1 or not _measures_base(scenario),
            f"start_jitter delays each start by up to {run.start_jitter:g} s, which is not in the "
            "equations; the order of the starts decides who over-estimates its baseRTT",
        ),
        (
            "no-delay-noise",
            all(g.delay_noise == 0 for g in groups),
            "delay_noise is not in the equations",
        ),
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
            not left_out_access(scenario),
            left_out_access(scenario),
        ),
        (
            "no-queueing-of-acks",
            not links_where_acks_wait(scenario, NOTABLE_WAIT),
            "ACKs (ack_size) may wait at a link: they come faster than it sends, or meet there",
        ),
        (
            "no-forced-drops",
            not any(link.drops for link in scenario.crossed),
            "forced drops are not in the equations",
        ),
        ("defaults-of-the-papers", not later, later),
        ("backlogs-of-half-a-packet", not tiny, tiny),
    ]
    if not random_loss:
        lossless = all(link.loss == 0 for link in scenario.crossed)
        rows.append(("no-random-loss", lossless, "random loss is not in the equations"))
    return [Assumption(name, holds, "" if holds else detail) for name, holds, detail in rows]


def _tiny_backlogs(scenario: Scenario) -> str:
    """Why no Vegas window can keep the backlog of the equations; empty if this does not matter.

    Vegas moves its window by a whole packet in a round trip, so with alpha = beta the window and
    its backlog move up and down by at least half a packet about their means. A backlog cannot be
    below 0. So its mean cannot be below half a packet, as the equations say if beta is. All flows
    then see an empty queue and a queue above beta at the same times, so they rise and fall
    together, and how slow start has divided the link among them stays. A lone flow fills the link.
    """
    small = [g for g in scenario.flows if g.keeps_backlog and g.beta < LEAST_BACKLOG]
    if not small or len(scenario.members) == 1:
        return ""
    texts = [f"{group.name} (beta {group.beta:g})" for group in small]
    return (
        f"a window moves by a whole packet in a round trip, so it cannot keep a backlog of less "
        f"than {LEAST_BACKLOG:g} packets: {few(texts)}; the starts of the flows may decide who "
        "gets more"
    )


def later_defaults(scenario: Scenario) -> str:
    """Why the TCP of ns-2 2.35 gives other throughputs than that of 1999; empty if it does not.

    Flows run the TCP of ns-2 2.35 with ``ns2_defaults = "2.35"``. It adds headers to the packets of
    every law but Vegas (``longer_packets``). Its retransmission timers are finer (``tcpTick_``).
    This matters for every law if a link loses packets before its buffer is full. The closed forms
    have neither in their equations.
    """
    longer = longer_packets(scenario)
    if longer:
        return f"{longer}, and has finer timers; neither is in the equations"
    waiting = [
        group.name
        for group in scenario.flows
        if stack(scenario, group).header
        and any(link.loss or isinstance(link.queue, Red) for link in scenario.path(group))
    ]
    return (
        f"the finer timers of {few(waiting)} in ns-2 2.35 are not in the equations"
        if waiting
        else ""
    )


def longer_packets(scenario: Scenario) -> str:
    """To the packets of which flows the TCP of ns-2 2.35 adds headers; empty if there are none.

    It does so for every law but Vegas (tcp.cc: ``useHeaders_``), so a link carries fewer of these
    packets.
    """
    longer = [group for group in scenario.flows if header(scenario, group)]
    names = few([f"{group.name} ({header(scenario, group):g} B)" for group in longer])
    return f"ns-2 2.35 adds headers to the packets of {names}" if longer else ""


def one_recovery(
    scenario: Scenario, taken: str, known: Iterable[str] = (), *, lost: bool = True
) -> Assumption:
    """The assumption that every loss-based law recovers from losses as the model assumes.

    ``known`` names the laws that do so. The assumption fails if packets are lost (``lost``) and
    some flow has another loss-based law. ``taken`` says in words how flows recover in the model,
    for the message that explains why the assumption fails.
    """
    alike = set(known)
    other = [g for g in scenario.flows if g.law not in alike and not g.delay_based]
    if not other or not lost:
        return Assumption("recovery-as-taken", True)
    differ = "; ".join(sorted({_own_recovery(scenario, group) for group in other}))
    return Assumption("recovery-as-taken", False, f"{taken}, whatever the law; {differ}")


def _own_recovery(scenario: Scenario, group: Flow) -> str:
    """How the flows of ``group`` recover from losses, by their law and TCP implementation."""
    law, implementation = find(group.law), stack(scenario, group)
    if implementation.recovery_of(law.recovery) != law.recovery:
        name = implementation.name
        return f"{group.law} repairs several lost packets in a round trip ({name} has SACK)"
    return RECOVERIES.get(group.law, f"{group.law} has its own recovery")


def buffered(scenario: Scenario) -> Assumption:
    """The assumption that the buffer is large enough for the bursts in which senders send.

    The equations spread a window evenly over its round trip.  Real senders send in bursts, so a
    buffer of few packets overflows repeatedly although the link is not fully used.
    """
    least = min(link.buffer for link in scenario.links)
    holds = least >= LEAST_BUFFER
    detail = (
        f"bursts may overflow a buffer of {least:g} packets before the link is full; the equations "
        f"were compared with packets from {LEAST_BUFFER:g} packets on"
    )
    return Assumption("buffer-holds-bursts", holds, "" if holds else detail)


def with_growth(found: Prediction) -> Prediction:
    """Add to a prediction the assumption that windows of user-defined laws exceed one packet.

    The assumption warns of a mistake in such a law: it fails if a flow with the law has a mean
    window near one packet. (The reason may also be that other flows fill the queue.)

    The prediction ``found`` is returned unchanged if no flow has a user-defined law, or if it lacks
    throughputs or mean RTTs.
    """
    scenario = found.scenario
    user_laws = {law.name for law in scenario.own_laws}
    if not user_laws or found.throughput is None or found.rtt_mean is None:
        return found
    with np.errstate(invalid="ignore"):  # no packet: a rate of 0, and no RTT
        # Little's law: window = throughput * RTT
        windows = np.asarray(found.throughput) * np.asarray(found.rtt_mean)
    near_one = [
        f"{member.name} ({window:.2f})"
        for member, window in zip(scenario.members, windows, strict=True)
        if member.flow.law in user_laws and window < LEAST_WINDOW
    ]
    detail = f"mean window near one packet, the least that there is: {', '.join(near_one)}"
    note = Assumption("own-law-grows", not near_one, detail if near_one else "")
    return dataclasses.replace(found, assumptions=(*found.assumptions, note))


def losses_end_growth(scenario: Scenario) -> Assumption:
    """The simulators' assumption that no loss-based window grows for ever.

    It fails for a loss-based flow with unlimited data and without a receiver's window in two cases:

    - No link on its path loses packets (``endless``).
    - Losses do not reduce its window (``_not_cut_at_losses``).
    """
    if detail := endless(scenario):
        return Assumption("losses-end-growth", False, detail)
    not_cut = [
        g.name for g in scenario.flows if g.grows_until_loss and _not_cut_at_losses(scenario, g)
    ]
    detail = (
        f"outside slow start, a fast retransmit does not reduce the window of {few(not_cut)} "
        "(decrease or cut), so other flows may get almost nothing"
    )
    return Assumption("losses-end-growth", not not_cut, detail if not_cut else "")


def endless(scenario: Scenario) -> str:
    """A text if no link on the path of some loss-based flow loses packets, or an empty text.

    The buffers on the path are then infinite, no queue is RED, and there is no random loss.
    (Packets that a link drops on purpose do not count, see ``Link.drops``.)
    """
    if any(
        g.grows_until_loss and all(k.lossless for k in scenario.path(g)) for g in scenario.flows
    ):
        return "an infinite buffer loses nothing, so nothing ends the growth of a loss-based window"
    return ""


def _not_cut_at_losses(scenario: Scenario, group: Flow) -> bool:
    """Whether a flow that repairs a loss by fast retransmit keeps its window as it was, or more.

    A user's function ``cut`` is called for the two senders with which ``register_law`` tests it. If
    it fails, the result is False, because the run may never meet such a sender. An ECN mark halves
    the window of every law that is not described by its ``drift``.
    """
    law = find(group.law)
    if law.recovery == "slow start":
        return False
    if law.cut is not None:
        try:
            return all(_after_loss(law, each) >= each.window for each in TESTED)
        except FieldError:
            return False
    marks = any(isinstance(link.queue, Red) and link.queue.ecn for link in scenario.path(group))
    return group.decrease == 1.0 and not (marks and law.per_ack != "drift")


def _after_loss(law: Law, sender: Source) -> float:
    """The window that the function ``cut`` of a user's law returns for this sender after a loss.

    In the simulators a law's ``update`` has changed the numbers that the law keeps, and
    ``remember`` has stored some at an earlier loss, before ``cut`` reads them. So this function
    calls both first. Raises ``FieldError`` if a function of the law fails.
    """
    numbers = law.first if law.update is None else ask_all(law, "update", law.source(sender))
    if law.remember is not None:
        found = ask_all(law, "remember", law.source(sender, numbers))
        if law.state:
            numbers = found
        else:
            sender = sender._replace(memory=found[0])
    return ask(law, "cut", law.source(sender, numbers))


def whole_thresholds(scenario: Scenario) -> Assumption:
    """The assumption that alpha and beta are whole numbers if Vegas counts in whole packets.

    Vegas in ns-2 and Linux computes its backlog in whole packets and compares it with alpha and
    beta. With alpha = beta = 2.5 the window then grows at a backlog of 2 packets and shrinks at 3.
    So it never stays constant.
    """
    groups = [g for g in scenario.flows if g.keeps_backlog]
    groups = [g for g in groups if not stack(scenario, g).real_numbers]
    texts = [
        f"{g.name} (alpha {g.alpha:g}, beta {g.beta:g}) grows below a backlog of "
        f"{math.ceil(g.alpha)} and shrinks above {math.floor(g.beta)}"
        for g in groups
        if g.alpha % 1 or g.beta % 1
    ]
    detail = (
        f"ns-2 and Linux count the backlog in whole packets: {'; '.join(texts)}" if texts else ""
    )
    return Assumption("whole-thresholds", not texts, detail)


def paper_equation(scenario: Scenario) -> Assumption:
    """The assumption that Vegas computes its backlog as W (RTT - baseRTT)/RTT.

    W is the window. The papers on Vegas use this equation, and ns-2 does. Linux divides by baseRTT
    instead of RTT.
    """
    vegas = [g for g in scenario.flows if g.keeps_backlog]
    linux = any(stack(scenario, g).backlog_over_base for g in vegas)
    detail = "Linux divides by baseRTT; the equations divide by RTT" if linux else ""
    return Assumption("paper-equation", not linux, detail)


def plain_queue(link: Link) -> Assumption:
    """The closed forms' assumption that the queue is first in, first out and drop-tail."""
    holds = isinstance(link.queue, DropTail)
    detail = "" if holds else f"the link's discipline is {link.queue.discipline}"
    return Assumption("fifo-queue", holds, detail)


def services_isolated(scenario: Scenario) -> bool:
    """Whether some link offers Rate-Delay services.

    Such a link has two queues: one for flows that want a high rate, and one for flows that want a
    short delay.
    """
    return any(isinstance(link.queue, RateDelay) for link in scenario.links)
