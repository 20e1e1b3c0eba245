"""Checks which assumptions of the simulator ``fluid`` hold in a run of a scenario.

For example, ``fluid`` assumes that no flow starves, and that the windows reach their steady state
before the warm-up ends.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import fluid_vegas, own_loop, rest, resting_windows, waits
from vegasmodel.adapters.common import (
    buffered,
    left_out,
    longer_packets,
    losses_end_growth,
    one_recovery,
    whole_thresholds,
)
from vegasmodel.adapters.own_laws import own_growth, own_laws_change, own_laws_repair
from vegasmodel.engines.fluid.continuous import ContinuousRun
from vegasmodel.engines.fluid.methods import papers_only
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import format_time
from vegasmodel.laws import find
from vegasmodel.laws.faults import LawFault
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption, sends_after_warm_up
from vegasmodel.results.scatter import enough_runs, insensitive
from vegasmodel.scenario import DropTail, Flow, Red, Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.scenario.placement import (
    access_ratio,
    first_window,
    left_out_of_laws,
    shut_links,
    stack,
)
from vegasmodel.stacks.stack import Stack

STARVED = 0.01  # of the mean throughput: a flow with less starves
# fraction of the time: if the link idles for longer, bursts of packets matter
IDLE_FOR_BURSTS = 0.1
# fraction of the time: if it idles for longer, CUBIC's cuts matter (``_cubic_at_red``)
IDLE_FOR_CUTS = 0.02
FEW_LOSSES = 3.0  # packets that a sender repairs in few round trips, whatever its recovery
SLOW_GROWTH = 0.1  # part of a window: if it grows by less in a round trip, this matters little
MAX_WAITING = 0.05  # fraction of its time for which a flow may wait for its timer
ACCESS = "bottleneck-is-the-link"  # name of the assumption about access links
DEFAULTS = "defaults-of-the-papers"  # name of the assumption about the settings of ns-2's TCP
# While an access link that is so many times as fast as the bottleneck sends a packet of a burst,
# the bottleneck sends at most a tenth of a packet. So the burst reaches the queue nearly at once.
FAST_ACCESS = 10.0
# assumptions of closed forms that ``fluid`` does not make, because its equations have the feature
IN_EQUATIONS = (
    "window-not-limited",
    "one-ack-a-packet",
    "all-flows-present",
    "fixed-starts",
)


def assumptions(scenario: Scenario, run: ContinuousRun) -> tuple[Assumption, ...]:
    """All assumptions of ``fluid``, and whether each holds in a run of the scenario."""
    means = run.throughput, run.rtt_mean, run.base_rtt, run.kept
    return (
        *(
            _access(scenario, run, a) if a.name == ACCESS else a
            for a in left_out(scenario, random_loss=True)
            if a.name not in (*IN_EQUATIONS, DEFAULTS)
        ),
        *_acks(scenario),
        _recovery(scenario, run.losses),
        losses_end_growth(scenario),
        *_of_equations(scenario),
        waits.short(scenario, run.throughput),
        buffered(scenario),
        own_loop.settles(scenario, *means, lost=bool(run.losses.any())),
        whole_thresholds(scenario),
        rest.together(scenario),
        resting_windows.reached(scenario, *means[:3], run.losses, half_too=True),
        *_of_hosts(scenario, run),
        *_of_chance(scenario, run),
        *_of_own_laws(scenario, run),
        *own_loop.swings_little(scenario, own_loop.moves_of_run(scenario, *means)),
        *own_laws_repair(scenario, run.loss_rate),
        *own_laws_change(scenario, *means),
        _nobody_starves(scenario, run),
        *sends_after_warm_up(scenario, run.throughput),
    )


def _access(scenario: Scenario, run: ContinuousRun, found: Assumption) -> Assumption:
    """The assumption ``found`` about access links, with a test of the bursts that they spread out.

    A sender often sends several packets in a burst, for example when its window grows, or after a
    random wait (``send_jitter``). If the burst reaches a full drop-tail queue all at once, only its
    first packets find free places. A slow access link spreads the burst out, so while it arrives,
    packets leave the queue, and fewer of the burst are lost. The equations lack this. So if several
    flows share a queue at which packets are lost, and an access link is less than ``FAST_ACCESS``
    times as fast as the bottleneck, it is not known whether the assumption holds.

    Random losses (``link.loss``) count, too: the run does not tell which packets were lost at a
    full buffer. So the result may also be "not known" if the buffer is never full.
    """
    overflows = isinstance(scenario.links[0].queue, DropTail) and bool(run.losses.any())
    spread_out = [
        f"{group.name} ({scenario.access_rate(group):g} pkt/s)"
        for group in scenario.flows
        if access_ratio(scenario, group) < FAST_ACCESS
    ]
    if not (found.holds and overflows and spread_out and len(scenario.members) > 1):
        return found
    detail = (
        f"access links spread out the bursts of {few(spread_out)}, so fewer of their packets may "
        "be lost at the full buffer; the simulator rounds has access links"
    )
    return Assumption(ACCESS, None, detail)


def _nobody_starves(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that each flow gets at least the fraction ``STARVED`` of the mean throughput.

    With a window of one or two packets a sender waits for its timer after each loss. If the buffer
    is always full in this model, every packet that such a sender sends may be lost. The queue of a
    real link varies from packet to packet and now and then has room. So some packets get through,
    and the flow gets more than the model says.
    """
    rates = np.nan_to_num(run.throughput, nan=np.inf)
    worst = int(np.argmin(rates))
    starves = bool(rates[worst] < STARVED * np.nanmean(run.throughput))
    detail = (
        f"{scenario.members[worst].name} gets almost nothing: beside a full buffer the equations "
        "do not tell how often a single packet finds room"
    )
    return Assumption("nobody-starves", not starves, detail if starves else "")


def _acks(scenario: Scenario) -> list[Assumption]:
    """The assumption that the receiver of a Vegas flow acknowledges every packet by itself.

    It can fail only if all flows have the variant ``paper``.  The equations for this variant
    contain delayed ACKs only for loss-based flows: they change Vegas's window by one packet per
    round trip, however many ACKs come.  The equations for the other variants contain delayed ACKs
    for all flows.  The list is empty if the assumption holds.
    """
    delayed = [g.name for g in scenario.flows if g.delayed_ack and g.keeps_backlog]
    if not delayed or not papers_only(scenario):
        return []
    detail = f"delayed ACKs ({few(delayed)}) are not in the equations of Vegas; "
    detail += 'with variant = "ns2" or "linux" the equations contain them'
    return [Assumption("one-ack-a-packet", False, detail)]


def _recovery(scenario: Scenario, losses: Floats) -> Assumption:
    """The assumption that the only effect of a loss is an immediate cut of the window.

    It can fail only if all flows have the variant ``paper``. The equations for this variant cut the
    window at once, but real senders need time to recover. So the assumption fails if a flow with a
    loss-based law loses packets. It also fails if Vegas loses packets at RED, which often drops
    several packets of one window: Vegas then waits for its retransmission timer. The equations for
    the other variants contain the recovery. ``losses`` [n] are the flows' numbers of losses.
    """
    loss_based = np.array([not member.flow.delay_based for member in scenario.members])
    lost = papers_only(scenario) and bool(losses[loss_based].any())
    found = one_recovery(scenario, "a loss only cuts the window", lost=lost)
    hint = 'with variant = "ns2" or "linux" the equations contain this'
    if not found.holds:
        return Assumption(found.name, False, f"{found.detail}; {hint}")
    vegas = np.array([member.flow.keeps_backlog for member in scenario.members])
    red = isinstance(scenario.links[0].queue, Red) and papers_only(scenario)
    if not (red and losses[vegas].any()):
        return found
    detail = (
        "a loss only cuts the window; where RED drops several packets of a window, Vegas waits "
    )
    return Assumption(found.name, False, f"{detail}for its timer; {hint}")


def _of_hosts(scenario: Scenario, run: ContinuousRun) -> list[Assumption]:
    """Check the assumption ``whole-stack``: the equations contain all of TCP that counts here.

    The equations of ``fluid`` do not contain all mechanisms of real TCP implementations. The
    assumption fails in four cases, in which such a mechanism changes the throughputs:

    - A flow with the TCP of a real kernel, such as Linux's, loses packets. How soon it sends again
      then depends on the kernel's probes, timers and recovery.
    - A Vegas flow with such a TCP starts later than another flow, or may do so because of
      ``start_jitter``. The burst with which it begins (the handshake and the first window) then
      changes the baseRTT that it measures.
    - A receiver's window limits the recoveries of a Vegas flow (``_limited_recovery``).
    - RED drops packets while ns-2's CUBIC recovers (``_cubic_at_red`` says when this counts).

    The result is a list with this one assumption. The list is empty if no flow has the TCP of a
    real kernel, and the last two cases do not occur.
    """
    members, losses = scenario.members, run.losses
    limited = _limited_recovery(scenario, run) + _cubic_at_red(scenario, run)
    # [flow] whether it has the TCP of a real kernel, which sends tail loss probes
    kernel = np.array([stack(scenario, member.flow).tail_probe for member in members])
    if not kernel.any() and not limited:
        return []
    starts = np.array([member.start for member in members])
    delay_based = np.array([member.flow.delay_based for member in members])
    beside_others = (starts > starts.min()) | (scenario.run.start_jitter > 0 and len(members) > 1)
    burst = kernel & delay_based & beside_others
    texts = [
        *(["the probes, timers and recovery of the flows' TCP"] if losses[kernel].any() else []),
        *(["the burst with which a Vegas flow begins beside others"] if burst.any() else []),
        *limited,
    ]
    detail = f"the equations lack {' and '.join(texts)}" if texts else ""
    return [Assumption("whole-stack", not texts, detail)]


def _limited_recovery(scenario: Scenario, run: ContinuousRun) -> list[str]:
    """A list with a text on the first Vegas flow whose recoveries the receiver's window limits.

    The list is empty if there is no such flow.

    In a recovery without SACK, each duplicate ACK after the third adds a packet to Vegas's window,
    so the window may double. A ``max_window`` below twice the mean window then holds packets back.
    In ns-2 such a ``max_window`` has a second effect: packets may count as sent twice
    (``Stack.stale_ring``, docs/ns2.md).
    """
    windows = np.nan_to_num(run.throughput) * np.nan_to_num(run.rtt_mean, posinf=0.0)
    for member, losses, window in zip(scenario.members, run.losses, windows, strict=True):
        flow, implementation = member.flow, stack(scenario, member.flow)
        # Vegas's own code runs, and not that of Linux: duplicate ACKs add packets to its window
        inflates = find(flow.law).overdue_checks and implementation.overdue_checks
        if inflates and losses > 0.0 and flow.max_window < 2.0 * window:
            return [
                f"the limit of {flow.max_window:g} packets (max_window) on the recoveries of "
                f"{member.name}, whose mean window is {window:.3g}"
            ]
    return []


def _cubic_at_red(scenario: Scenario, run: ContinuousRun) -> list[str]:
    """A list with a text on what the equations lack about ns-2's CUBIC at a RED queue.

    While CUBIC recovers, RED's average is still high and RED goes on dropping. When the recovery
    ends, ns-2's CUBIC forgets which later packets have arrived (tcp-linux.cc: ``ClearScoreBoard``).
    At the next losses it cuts its window again, and retransmits these packets. The equations do not
    contain these cuts. The cuts matter if CUBIC sends most packets and the link is idle at times:
    then no long queue keeps the link busy after a cut. If they do not matter, the list is empty.
    """
    link = scenario.links[0]
    forgets = np.array(
        [
            find(m.flow.law).is_cubic
            and ("clears_scoreboard", True) in stack(scenario, m.flow).cubic_agent
            for m in scenario.members
        ]
    )
    if not (isinstance(link.queue, Red) and run.losses[forgets].any()):
        return []
    sent = np.nan_to_num(run.throughput * active_part(scenario))
    idles = sent.sum() < (1.0 - IDLE_FOR_CUTS) * link.capacity
    matters = idles and sent[forgets].sum() > 0.5 * sent.sum()
    return ["how ns-2's CUBIC sends packets again after a recovery at RED"] if matters else []


def _of_own_laws(scenario: Scenario, run: ContinuousRun) -> list[Assumption]:
    """The assumption that a user-defined law changes its window little in a round trip.

    A sender learns of a loss a round trip late. Until then all windows go on growing. So the number
    of lost packets is about the growth of the windows in a round trip. The equations treat a few
    losses as a single loss, which the sender repairs at once. After many losses a real sender needs
    many round trips to repair them, or waits for its timer.

    The assumption fails if the law's ``drift``, the growth of the window in a round trip, exceeds
    both ``FEW_LOSSES`` packets and the fraction ``SLOW_GROWTH`` of the window. ``drift`` is
    computed for the run's mean window and mean RTT, and for the numbers that the law keeps at the
    end of a run. The assumption is tested only for flows that lose packets. The list is empty if no
    flow has a user-defined law.
    """
    user_laws = {law.name: law for law in scenario.own_laws}
    fast_growing = []
    for i, member in enumerate(scenario.members):
        law = user_laws.get(member.flow.law)
        if law is None or not run.losses[i] > 0 or not run.throughput[i] > 0.0:
            continue
        means = run.throughput, run.rtt_mean, run.base_rtt
        try:
            drift, window = own_growth(scenario, i, *means, run.kept)
        except FieldError as error:
            raise LawFault.of_error(error) from error
        if drift > max(FEW_LOSSES, SLOW_GROWTH * window):
            fast_growing.append(
                f"{member.name} by {drift:.3g} packets a round trip at a window of {window:.3g}"
            )
    named = few(fast_growing, clauses=True)
    detail = f"many packets are lost at an overflow, because a window grows fast: {named}"
    return (
        [Assumption("own-law-grows-slowly", not fast_growing, detail if fast_growing else "")]
        if user_laws
        else []
    )


def _of_chance(scenario: Scenario, run: ContinuousRun) -> list[Assumption]:
    """The assumptions of ``fluid`` about random events and about bursts of packets.

    They say, in the order of the list that is returned:

    - Small changes of the scenario do not change the result, and there are enough random runs.
    - The windows fill the link (``_windows_fill_link``).
    - The packets of flows that lose packets arrive evenly spread (``_spread``).
    - If all flows are Vegas flows, their backlogs are nearly equal (``fluid_vegas.narrow_band``).
    - One packet less in the queue that late Vegas flows find hardly matters
      (``fluid_vegas.many_packets``).
    - No Vegas flow with delayed ACKs shares a full queue with loss-based flows without delayed ACKs
      (``fluid_vegas.vegas_acks``).
    - The buffer fills so slowly that Vegas can react before (``fluid_vegas.acts_in_time``).
    - Vegas's baseRTT is not too small. In ns-2 it may be, after a timeout (``docs/ns2.md``).
    - Random losses seldom lead to timeouts.
    """
    rates = run.throughput[None] if run.throughput_runs is None else run.throughput_runs
    chance = run.by_chance or scenario.run.start_jitter > 0.0
    return [
        insensitive(scenario, rates),
        enough_runs(scenario, rates, chance=chance),
        _windows_fill_link(scenario, run),
        _spread(scenario, run),
        fluid_vegas.narrow_band(scenario),
        fluid_vegas.many_packets(scenario, run),
        fluid_vegas.vegas_acks(scenario, run),
        fluid_vegas.acts_in_time(scenario, run),
        fluid_vegas.base_kept(scenario, run),
        _timers(scenario, run),
    ]


def _windows_fill_link(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that the windows fill the link.

    It is tested only if several flows share a drop-tail queue, and a loss-based one loses packets.
    If the link idles at times, each flow's packets reach the queue as a train: they follow one
    another closely. Packets are dropped when trains of different flows meet. The model knows only
    roughly how many (``engines/fluid/sampled/trains.py``).
    """
    link, members = scenario.links[0], scenario.members
    loss_based = [i for i, m in enumerate(members) if not m.flow.delay_based]
    idle = 1.0 - float(np.nansum(run.throughput * active_part(scenario))) / link.capacity
    lost = bool(run.losses[loss_based].any())
    trains = isinstance(link.queue, DropTail) and len(members) > 1 and lost
    rough = trains and idle > IDLE_FOR_BURSTS
    detail = f"the link idles for {idle:.0%} of the time"
    detail += "; how often bursts of flows meet then is known only roughly" if rough else ""
    return Assumption("windows-fill-the-link", not rough, detail)


def _spread(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that the packets of flows that lose packets arrive evenly spread in time.

    Real senders send in bunches. If RTTs differ, the length of a nearly full queue rises and falls
    with these bunches, and they decide which flow loses packets (Floyd and Jacobson 1992). The
    equations have no bunches. So at a drop-tail queue the assumption fails if flows of different
    RTTs lose packets. It also fails if a delay-based flow loses packets, and not all flows have the
    same RTT.
    """
    members = scenario.members
    losers = [m for m, losses in zip(members, run.losses, strict=True) if losses > 0.0]
    delay_based = [m for m in losers if m.flow.delay_based]
    # the flows whose RTTs are compared, and how the text about them begins
    compared, begin = losers, "of the flows that lose packets, "
    if delay_based and len({m.rtt for m in losers}) == 1:
        compared, begin = list(members), f"{delay_based[0].name} loses packets, and "
    rtts = [m.rtt for m in compared]
    bunches = isinstance(scenario.links[0].queue, DropTail) and len(set(rtts)) > 1
    detail = (
        f"{begin}the longest RTT exceeds the shortest, {format_time(min(rtts))}, by "
        f"{format_time(float(f'{max(rtts) - min(rtts):.3g}'))}; bunches of packets, which the "
        "equations lack, then decide who loses"
        if bunches
        else ""
    )
    return Assumption("packets-spread-evenly", not bunches, detail)


def _timers(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that random losses seldom make a flow wait for its retransmission timer.

    Let p be the loss probability, r the flow's throughput and R its RTT. Its window is W = r R
    packets, and it loses p r packets per second. The probability that a loss leads to a timeout is
    min(1, 3/W). This is an approximation by Padhye, Firoiu, Towsley and Kurose (1998).

    A timeout lasts T seconds (``Stack.steady_timeout``). So for each second in which the flow
    sends, it waits for w = min(1, 3/W) p r T seconds. It therefore waits for the fraction w/(1 + w)
    of its time. The assumption fails if this fraction exceeds ``MAX_WAITING``.
    """
    p = scenario.links[0].loss
    if p == 0.0:
        return Assumption("fast-retransmit", True)
    # a flow that delivers nothing has no RTT; as r is then 0, any number serves for R
    r, R = np.nan_to_num(run.throughput), np.nan_to_num(run.rtt_mean, nan=1.0, posinf=1.0)
    timeout_probability = 3.0 / np.maximum(r * R, 3.0)  # min(1, 3/W)
    T = np.array(
        [
            _timers_of(scenario, member.flow).steady_timeout(rtt)
            for member, rtt in zip(scenario.members, R, strict=True)
        ]
    )
    w = timeout_probability * p * r * T
    waiting = w / (1.0 + w)  # the fraction of its time for which each flow waits
    worst = int(np.argmax(waiting))
    holds = bool(waiting[worst] <= MAX_WAITING)
    detail = (
        f"{scenario.members[worst].name} would wait for its timer for {waiting[worst]:.0%} of its "
        "time; the equations count such waits only roughly, or not at all"
    )
    return Assumption("fast-retransmit", holds, "" if holds else detail)


def _timers_of(scenario: Scenario, flow: Flow) -> Stack:
    """The TCP implementation whose timers the flow has; in ns-2, CUBIC's differ from the others."""
    implementation = stack(scenario, flow)
    return implementation.for_cubic() if find(flow.law).is_cubic else implementation


def _first_windows_fit(scenario: Scenario) -> bool:
    """Whether the path and the buffer have room for the first windows of all flows together.

    If not, flows that start together may overflow the buffer at once. The room is taken to be the
    buffer plus the capacity times the longest round-trip time with empty queues, in packets.
    """
    groups, link = scenario.flows, scenario.links[0]
    first = sum(g.count * first_window(scenario, g) for g in groups)
    return first <= link.capacity * max(m.rtt for m in scenario.members) + link.buffer


def _of_equations(scenario: Scenario) -> list[Assumption]:
    """Check four assumptions on what the equations leave out, or cannot tell.

    - ``whole-laws``: the equations contain all features of the flows' laws. This assumption is
      returned only if it does not hold.
    - ``ns2-passes-packets``: the buffer is large enough for ns-2 to let packets through. This
      assumption is returned only if it does not hold.
    - ``defaults-of-the-papers``: no flow has packets with the headers that ns-2 2.35 adds. (The
      timers of ns-2 2.35 are in the equations.)
    - ``first-windows-fit``: link and buffer can hold the first windows of all flows together, so no
      packet of them is lost.
    """
    lacking, shut_names = left_out_of_laws(scenario), shut_links(scenario)
    longer = longer_packets(scenario)
    shut_text = (
        f"ns-2 drops every packet at {few(shut_names)}, whose buffer is below 2 packets (1 with "
        "RED); so the flows get nothing"
    )
    rows = (  # for each assumption its name, whether it holds, and the detail if it does not
        *([("whole-laws", False, lacking)] if lacking else ()),
        *([("ns2-passes-packets", False, shut_text)] if shut_names else ()),
        (DEFAULTS, not longer, f"{longer}; these headers are not in the equations"),
        (
            "first-windows-fit",
            _first_windows_fit(scenario),
            "the first windows exceed the link and its buffer; their losses are not in the "
            "equations",
        ),
    )
    return [Assumption(name, holds, "" if holds else detail) for name, holds, detail in rows]
