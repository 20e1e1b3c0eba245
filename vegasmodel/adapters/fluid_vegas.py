"""Checks the assumptions of the simulator ``fluid`` about Vegas's backlog and baseRTT.

Vegas keeps a backlog, a number of packets in the queue. It computes this number from its baseRTT,
the least RTT that it has measured. ``fluid`` solves equations and does not simulate single packets.
So backlog and baseRTT in ``fluid`` sometimes differ from those of a real Vegas sender.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.adapters import only_vegas, resting_windows
from vegasmodel.adapters.common import rtts
from vegasmodel.adapters.rest import NOTABLE_CHANGE
from vegasmodel.engines.fluid.continuous import ContinuousRun
from vegasmodel.engines.fluid.late_decisions import LAG, resting_range
from vegasmodel.engines.fluid.methods import all_continuous, papers_only
from vegasmodel.fields.units import format_time
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Red, Scenario
from vegasmodel.scenario.active_time import active_part
from vegasmodel.scenario.placement import link_stack, stack

WIDEST_BAND = 2.0  # greatest over least backlog of a window at rest; from this ratio on, rates err
NEAR_LIMIT = 0.9  # of ``max_window``; above it, the limit may hold a window down at times


def narrow_band(scenario: Scenario) -> Assumption:
    """The assumption that Vegas flows keep nearly equal backlogs.

    They do if the range of backlogs at which a window rests is narrow. The assumption is tested if
    all flows are Vegas flows. Vegas keeps its window at any backlog from alpha to beta. ns-2's
    Vegas rounds its backlog to whole packets, so this range is wider: with alpha = beta = 1 it goes
    from 0.5 to 1.5 packets, and the greatest backlog is 3 times the least. In the equations a
    backlog stays where it first reaches the range. In a real network the packets of a flow follow
    one another closely, as a train. So the queue varies, and the backlog that a flow measures may
    move on within the range.

    The wider the range, the larger is the error of the equations. The assumption fails if the
    greatest backlog is at least twice the least (``WIDEST_BAND``). In most random networks of such
    flows, the throughput of some flow then differs between the simulators ``fluid`` and ``rounds``
    by over 10 % of the mean throughput. (``rounds`` simulates packets.)

    There are three special cases:

    - ACKs are delayed. ns-2's Vegas computes a backlog that is too small by one packet if its
      window is even. If its window is odd, the backlog is right within a fraction of a packet
      (``sampled.law.source_at``). So the range then ends at beta + 3/2 packets.
    - All RTTs are equal. Then trains do not meet, and the backlogs depend on the flows' starts. If
      starts are random, another assumption, ``insensitive-to-starts``, tests whether they matter.
      So for equal RTTs this assumption can fail only if starts are not random.
    - All flows run the Vegas of the papers (variant ``paper``) at a drop-tail link without random
      loss. This Vegas does not round its backlog. Its window follows the queue with a delay of two
      RTTs (``late_decisions.py``). So a window with alpha = beta never rests. It rises and falls
      about a mean, and the backlogs of all flows vary with it. A window with alpha < beta then
      rests only in a part of the range from alpha to beta: its mean backlog must be so far from
      both that the varying backlog passes neither (``resting_range``). The assumption is tested for
      this part of the range, and only if some flows start at the same time: the order of their
      first packets then decides where in this part they rest. If flows start one after another,
      ``fluid`` and ``rounds`` agree well.
    """
    flows = scenario.flows
    equal_rtts = len({m.rtt for m in scenario.members}) == 1
    tested = all(g.keeps_backlog for g in flows) and len(scenario.members) > 1
    tested = tested and not (equal_rtts and scenario.run.start_jitter > 0.0)
    if tested and all_continuous(scenario):
        return _narrow_rests(scenario)
    wide = []
    for g in flows if tested else ():
        implementation = stack(scenario, g)
        low, high = implementation.dead_zone(g.alpha, g.beta)
        # the first special case: with delayed ACKs the backlog may be taken for a packet less
        high += g.delayed_ack and not (implementation.real_numbers or implementation.decides_late)
        if high >= WIDEST_BAND * low:
            wide.append(f"{g.name} rests at a backlog of {low:g} to {high:g} packets")
    detail = "; which of them it keeps depends on bursts of packets, which the equations lack"
    if equal_rtts:
        detail = (
            "; which of them it keeps depends on the starts (try `start_jitter`) and on single "
        )
        detail += "packets, which the equations lack"
    return Assumption("narrow-band", not wide, wide[0] + detail if wide else "")


def _narrow_rests(scenario: Scenario) -> Assumption:
    """The assumption ``narrow-band`` if all flows run the papers' Vegas at a drop-tail link.

    The window of such a flow comes to rest at some backlog of a range. The assumption fails if this
    range is wide for some flow, and if some flows start at the same time.
    """
    members, link = scenario.members, scenario.links[0]
    lower, upper = np.array([(m.flow.alpha, m.flow.beta) for m in members]).T
    # [flow] each: the ends of this range, packets
    low, high = resting_range(lower, upper, rtts(scenario), link.capacity, still=True)
    together = len({m.start for m in members}) < len(members) and scenario.run.start_jitter == 0.0
    wide = np.flatnonzero(high >= WIDEST_BAND * low)
    if not together or wide.size == 0:
        return Assumption("narrow-band", True)
    i = wide[0]
    return Assumption(
        "narrow-band",
        False,
        f"{members[i].flow.name} rests at a backlog of {low[i]:.2g} to {high[i]:.2g} packets; "
        "flows start at the same time, and the order of their first packets decides which of them "
        "it keeps (try `start_jitter`)",
    )


def many_packets(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that the rates hardly change if late flows find a few packets less queued.

    A flow that starts late counts the least queueing delay that it finds as propagation delay. The
    packets of a flow follow one another closely, as a train. If RTTs differ, the trains of
    different flows meet at some times and not at others, so the queue varies. The late flow's
    baseRTT is then that of the shortest queue. The equations contain few of these variations: only
    the trains of slow start (``slow_start.py``), and the rise and fall of windows because Vegas
    decides late (``late_decisions.py``), both only for the variant ``paper``. So the queue that a
    late flow finds may be too long or too short in the equations. ``only_vegas.many_packets`` tests
    whether one packet matters, or root(k) packets if k flows start earlier.

    The assumption is tested if all flows are Vegas flows that lose no packets, all flows send in
    the whole measured time, no ``max_window`` limits them, and starts are not random. If all RTTs
    are equal, trains do not meet. The assumption is then tested only for the variant ``paper``,
    whose windows rise and fall and so move the queue.

    Beside loss-based flows, another test is made (``_base_beside_losses``).
    """
    if not all(group.keeps_backlog for group in scenario.flows):
        return _base_beside_losses(scenario, run)
    members, delay = scenario.members, float(run.queue_mean[0]) / scenario.links[0].capacity
    windows = run.throughput * (rtts(scenario) + delay)
    tested = (
        (len({m.rtt for m in members}) > 1 or all_continuous(scenario))
        and only_vegas.reason_against(scenario) is None
        and not bool(run.losses.any())
        and bool(np.all(active_part(scenario) == 1.0))
        and scenario.run.start_jitter == 0.0
        and bool(np.all(windows < NEAR_LIMIT * np.array([m.flow.max_window for m in members])))
    )
    if not tested:
        return Assumption("many-packets-queued", True)
    over = run.base_rtt - rtts(scenario)
    return only_vegas.many_packets(scenario, over, run.throughput, delay, simulated=True)


def _base_beside_losses(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that the baseRTTs of late Vegas flows beside loss-based flows hardly matter.

    It is tested for Vegas flows that start after a loss-based flow which loses packets. How short
    the queue is that such a Vegas flow finds depends on the losses at its start: which flow loses
    packets in a slow start, how many, and for how long it sends less while it repairs them. The
    equations know this only roughly. So they do not know the over-estimate x of baseRTT. It is at
    least 0. It is at most the queueing delay at the emptiest queue of the steady state
    (``resting_windows.Network.delays``), because the flow measures its RTT there again and again.

    If s is the mean queueing delay, a window W has the backlog W (s - x)/(T + s). So with another
    over-estimate y the same backlog needs the window W (s - x)/(s - y). The throughput changes by
    the same factor. The assumption fails if, for the least or the greatest y, the throughput
    differs by more than ``NOTABLE_CHANGE`` of the mean throughput.

    It is not tested if starts are random, if the queue is not drop-tail, if data packets cross the
    link in both directions, or if all flows have the variant ``paper``.
    """
    name, link, members = "many-packets-queued", scenario.links[0], scenario.members
    tested = (
        isinstance(link.queue, DropTail)
        and len({group.direction for group in scenario.flows}) == 1
        and scenario.run.start_jitter == 0.0
        and not papers_only(scenario)
    )
    loses = np.array([not member.flow.delay_based for member in members]) & (run.losses > 0.0)
    if not (tested and loses.any() and bool(np.nansum(run.throughput) > 0.0)):
        return Assumption(name, True)
    first = min(member.start for member, lost in zip(members, loses, strict=True) if lost)
    mean = float(np.nanmean(run.throughput))  # pkt/s
    windows = np.nan_to_num(run.throughput * run.rtt_mean)
    emptiest, _ = resting_windows.network(scenario).delays(windows, loses)
    for i, member in enumerate(members):
        late = member.flow.keeps_backlog and member.flow.measures_base and member.start > first
        rate, wait = float(run.throughput[i]), float(run.rtt_mean[i]) - member.rtt
        over = float(run.base_rtt[i]) - member.rtt
        if not (late and max(over, emptiest) < wait):
            continue
        for y in (0.0, emptiest):
            changed = rate * (wait - over) / (wait - y)
            if abs(changed - rate) > NOTABLE_CHANGE * mean:
                detail = (
                    f"{member.name} starts late, and losses at that time decide which baseRTT it "
                    f"measures; with {format_time(member.rtt + y)} instead of "
                    f"{format_time(member.rtt + over)} it would get {changed:.4g} pkt/s, not "
                    f"{rate:.4g}"
                )
                return Assumption(name, False, detail)
    return Assumption(name, True)


def vegas_acks(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that no Vegas flow with delayed ACKs shares a full queue with other flows.

    The other flows are loss-based flows without delayed ACKs. The assumption fails if such a flow
    loses packets beside a Vegas flow with delayed ACKs, all RTTs are equal, and the queue is
    drop-tail. With equal RTTs, a flow loses a packet at a full queue if its receiver holds back an
    ACK (``engines/fluid/sampled/queue.py``). The receiver does so if the window is odd. Vegas
    changes its window just before the queue is full. So the equations often do not know whether
    Vegas's window is odd at that time. At a RED queue this matters less, because RED drops packets
    also while the queue is not full.
    """
    delayed = [g.name for g in scenario.flows if g.delayed_ack and g.delay_based]
    prompt = [
        member.name
        for member, losses in zip(scenario.members, run.losses, strict=True)
        if losses > 0.0 and not (member.flow.delayed_ack or member.flow.delay_based)
    ]
    equal_rtts = len({member.rtt for member in scenario.members}) == 1
    drop_tail = isinstance(scenario.links[0].queue, DropTail)
    holds = papers_only(scenario) or not (delayed and prompt and equal_rtts and drop_tail)
    detail = f"{delayed[0]} has delayed ACKs and {prompt[0]} has none" if not holds else ""
    detail += "; how often Vegas then loses packets is known only roughly" if detail else ""
    return Assumption("vegas-acks-undelayed", holds, detail)


def acts_in_time(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that a queue fills so slowly that Vegas can react before it overflows.

    Vegas reacts to the queue two RTTs late (``LAG``): it decides once per round trip, by RTTs of
    packets that were sent in the round trip before (Brakmo and Peterson 1995, 3.2; tcp-vegas.cc:
    ``v_begseq_``). So if its window rises and falls about a mean, it rises for 2 ``LAG`` = 4 RTTs
    (``late_decisions``). If n windows each grow by a packet per RTT, a buffer of B packets fills in
    B/n RTTs. If this is less than 4 RTTs, Vegas's window often still grows when the buffer
    overflows. Whether Vegas then loses a packet depends on the order in which the flows' packets
    arrive within a round trip. The equations do not know this order.

    The assumption can fail only if Vegas flows share a drop-tail queue with loss-based flows that
    lose packets, and not all flows have the variant ``paper``.
    """
    name, link, n = "vegas-acts-in-time", scenario.links[0], len(scenario.members)
    vegas = any(group.keeps_backlog for group in scenario.flows)
    lost = any(
        losses > 0.0 and not member.flow.delay_based
        for member, losses in zip(scenario.members, run.losses, strict=True)
    )
    if not (vegas and lost and isinstance(link.queue, DropTail)) or papers_only(scenario):
        return Assumption(name, True)
    round_trips = link.room(link_stack(scenario)) / n  # in so many the buffer fills
    detail = (
        f"{n} windows that grow by about a packet per round trip fill the buffer in "
        f"{round_trips:.2g} round trips, before Vegas reacts; how often Vegas loses packets then "
        "is known only roughly"
    )
    holds = bool(round_trips >= 2.0 * LAG)
    return Assumption(name, holds, "" if holds else detail)


def base_kept(scenario: Scenario, run: ContinuousRun) -> Assumption:
    """The assumption that no Vegas flow's baseRTT falls below the RTT of the empty path.

    Only ns-2's Vegas can measure so small a baseRTT. It does so after a timeout, if the queue has
    dropped successive packets of the flow (``short_round.py`` says why). A drop-tail queue hardly
    ever does, if all RTTs are equal and each packet is acknowledged. Each departure makes room for
    one packet, and, one RTT later, lets one sender send: one packet, or two if its window grows. So
    when the buffer is full, these packets find room for one. The flow loses at most the second, and
    its next packets come only after the next departure. If RTTs differ, packets of another flow may
    have taken the room.

    So the assumption fails if such a Vegas flow lost several packets and then had a timeout, unless
    the queue is drop-tail without random losses, all RTTs are equal, and no receiver delays ACKs.
    If there was no such timeout, but a Vegas flow lost packets at a RED queue, the result is
    ``None`` (not known).
    """
    members, link = scenario.members, scenario.links[0]
    flows = [member.flow for member in members]
    vegas = np.array([f.keeps_backlog and stack(scenario, f).resets_base for f in flows])
    timeouts = np.zeros(vegas.size) if run.timeouts is None else run.timeouts
    one_rtt = len({member.rtt for member in members}) == 1
    spaced = one_rtt and link.loses_only_when_full and not any(f.delayed_ack for f in flows)
    waited = vegas & (timeouts > 0.0) & (not spaced)
    not_known = vegas & (run.losses > 0.0) & isinstance(link.queue, Red)
    named = [
        m.name
        for m, concerned in zip(scenario.members, waited | not_known, strict=True)
        if concerned
    ]
    if not named:
        return Assumption("base-rtt-above-propagation", True)
    detail = (
        f"{named[0]}{' and others' if len(named) > 1 else ''}: the equations cannot always tell "
        "when ns-2's Vegas measures a far too small baseRTT after a timeout"
    )
    return Assumption("base-rtt-above-propagation", False if waited.any() else None, detail)
