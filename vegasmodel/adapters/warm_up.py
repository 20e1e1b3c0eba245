"""Tests whether windows can reach the steady state within the warm-up, before averages begin.

If they cannot, the averages of a simulation depend on how the flows started.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import NamedTuple

from vegasmodel.adapters import rest
from vegasmodel.equilibrium import settling
from vegasmodel.laws import cubic, find
from vegasmodel.results.assumption import Assumption
from vegasmodel.scenario import DropTail, Flow, Link, Member, Pareto, Red, Scenario
from vegasmodel.scenario.placement import first_window, room, stack
from vegasmodel.stacks import STACKS

NAME = "settles-in-time"  # of the assumption


def settles(scenario: Scenario) -> Assumption:
    """The simulators' assumption that windows reach the steady state within the warm-up.

    Every long-lived flow with a built-in law is tested. Let w be its first window. Let W be the
    window at which it gets its fair share of the capacity, or the receiver's window if that is
    smaller. (If the links of its path give it different shares, the smallest one counts.) Let n be
    the number of the flow's round trips from its start to the end of the warm-up.

    The assumption fails if at least one of these statements is true of some flow:

    - n < log2(W/w). Slow start at most doubles the window per round trip, so it cannot reach W.
    - The flow grows until it loses a packet, and no buffer on its path can be full by the end of
      the warm-up (``_fills_late``).
    - All flows keep the same backlog, as Vegas does, and n < W - s. Here s is the window that slow
      start can reach (``_slow_start_reaches``). From s on, a window grows by a packet per round
      trip.
    - NewReno cannot repair the losses of its slow start by the end of the warm-up. The time that
      this takes is at least ``_first_repair``.
    - A window that a loss has cut cannot grow back by the end of the warm-up. This takes
      ``_time_after_loss``.

    It also fails if short flows bring more packets than a link can send (``_overloaded``).

    If it does not fail, but n < W for some flow, the result is ``None`` (not known): growth by one
    packet per round trip takes up to W round trips.

    For a flow that starts after the warm-up, the tests look at the time until the flow's stop
    instead, and the last two tests are left out. If the assumption does not fail by the remaining
    tests, the result is ``None``.
    """
    if detail := _overloaded(scenario):
        return Assumption(NAME, False, detail)
    user_laws = {law.name for law in scenario.own_laws}
    sharing = Counter[tuple[str, str]]()  # flows by link and direction
    for group in scenario.flows:
        for link in scenario.path(group):
            sharing[link.name, group.direction] += group.count
    uncertain = []
    for member in scenario.members:
        group = member.flow
        if group.law in user_laws or not group.long_lived:
            continue
        start = _start_of(scenario, member, sharing)
        tests = [_doubles_late, _fills_buffer_late, _grows_late]
        if not start.after_warm_up:
            tests += [_repairs_late, _regrows_late]
        for test in tests:
            if detail := test(start):
                return Assumption(NAME, False, detail)
        if start.after_warm_up or start.round_trips < start.window:
            uncertain.append(member.name)
    detail = (
        f"{len(uncertain)} flows may grow for longer than the warm-up, {uncertain[0]} first"
        if uncertain
        else ""
    )
    return Assumption(NAME, None if uncertain else True, detail)


class _Start(NamedTuple):
    """A flow's start, as the tests of ``settles`` need it."""

    scenario: Scenario
    member: Member  # the flow
    bottleneck: Link  # the link of the flow's path on which its fair share is the smallest
    share: float  # this share, in packets of the flow's size per second
    window: float  # with which the flow gets this share; at most the receiver's window, packets
    after_warm_up: bool  # whether the flow starts after the warm-up
    # The time by which the window should be steady, s, and its name. It is the end of the warm-up.
    # If the flow starts later, its start is a part of the averages, and the time is its stop.
    end: float
    end_name: str

    @property
    def seconds(self) -> float:
        """The time that the flow has, s."""
        return self.end - self.member.start

    @property
    def round_trips(self) -> float:
        """The same time in round trips without queueing."""
        return self.seconds / self.member.rtt


def _start_of(scenario: Scenario, member: Member, sharing: Counter[tuple[str, str]]) -> _Start:
    """Describe a flow's start; ``sharing`` counts the flows that cross each link, by direction."""
    group = member.flow
    shares = {
        link: link.capacity / sharing[link.name, group.direction] for link in scenario.path(group)
    }
    bottleneck = min(shares, key=lambda link: shares[link])
    share = shares[bottleneck] * scenario.packet_size / scenario.size_of(group)
    after_warm_up = scenario.run.warmup <= member.start
    return _Start(
        scenario,
        member,
        bottleneck,
        share,
        window=min(share * member.rtt, group.max_window),
        after_warm_up=after_warm_up,
        end=member.stop if after_warm_up else scenario.run.warmup,
        end_name="its stop" if after_warm_up else "the end of the warm-up",
    )


def _doubles_late(start: _Start) -> str:
    """A text if even slow start cannot reach the window of a fair share in time; else ""."""
    member, first = start.member, first_window(start.scenario, start.member.flow)
    if start.round_trips >= math.log2(max(start.window / first, 1.0)):
        return ""
    return (
        f"{member.name} has {start.round_trips:.3g} round trips of {member.rtt:.3g} s until "
        f"{start.end_name}; even slow start, which doubles a window once a round trip, needs "
        f"{math.ceil(math.log2(start.window / first))} to a fair share"
    )


def _fills_buffer_late(start: _Start) -> str:
    """A text if the flow grows until a loss, and no buffer can be full in time; else ""."""
    link = _fills_late(start.scenario, start.member.flow, start.end)
    if link is None:
        return ""
    return (
        f"{start.member.name} grows until it loses a packet; the buffer of {link.name}, "
        f"{link.buffer:.4g} packets, cannot be full by {start.end_name}"
    )


def _grows_late(start: _Start) -> str:
    """A text if growth after slow start, by a packet per round trip, takes too long; else ""."""
    reached = _slow_start_reaches(start.scenario, start.member, start.bottleneck)
    if start.round_trips >= start.window - reached:
        return ""
    return (
        f"slow start of {start.member.name} ends at a window of at most {reached:.4g} packets; "
        f"then it grows by a packet a round trip, and has {start.round_trips:.4g} round trips "
        f"until {start.end_name}; for a fair share it needs {start.window:.4g} packets"
    )


def _repairs_late(start: _Start) -> str:
    """A text if the losses of slow start cannot be repaired within the warm-up; else ""."""
    repair = _first_repair(start)
    if start.seconds >= repair:
        return ""
    return (
        f"the warm-up of {start.member.name} is {start.seconds:.4g} s; its first slow start "
        "overflows the buffer, and it repairs one lost packet a round trip, which takes "
        f"about {repair:.4g} s"
    )


def _regrows_late(start: _Start) -> str:
    """A text if a window that a loss has cut cannot grow back within the warm-up; else ""."""
    regrowth = _time_after_loss(start)
    if start.seconds >= regrowth:
        return ""
    return (
        f"the warm-up of {start.member.name} is {start.seconds:.4g} s; after a loss at a "
        f"fair share its window takes {regrowth:.4g} s to grow back"
    )


def _overloaded(scenario: Scenario) -> str:
    """A text on a link to which short flows bring more packets than it can send; "" if none.

    The number of short flows then grows without end, and there is no steady state. Short flows of
    one ``[[flow]]`` table bring as many packets per second as their arrival rate times their mean
    size.
    """
    offered = defaultdict[tuple[str, str], float](float)
    for group in scenario.flows:
        if isinstance(group.arrivals, str):
            continue
        mean = group.size.mean if isinstance(group.size, Pareto) else group.size
        packets = mean * scenario.size_of(group) / scenario.packet_size
        for link in scenario.path(group):
            offered[link.name, group.direction] += group.count * group.arrivals.rate * packets
    for link in scenario.links:
        most = max(offered[link.name, direction] for direction in ("forward", "reverse"))
        if most >= link.capacity:
            return (
                f"short flows bring {most:.4g} packets per second to {link.name}, which sends "
                f"{link.capacity:.4g}: their number grows without end"
            )
    return ""


def _fills_late(scenario: Scenario, group: Flow, end: float) -> Link | None:
    """The link of a flow's path whose buffer fills first, if it cannot be full at the time ``end``.

    A window grows by at most one packet per ACK, and ACKs return at most at the rate of the link.
    So the windows together grow by at most the link's capacity in a second. A queue grows no
    faster, once the first windows have been sent.

    The result is ``None`` if a buffer can be full at that time, if the flow's growth does not end
    with a loss, or if packets may be lost in another way. It is also ``None`` if no buffer on the
    path ever overflows (``losses_end_growth`` is about this), and if short flows arrive at random,
    because each of them brings a first window.
    """
    path, flows = scenario.path(group), scenario.flows
    full_buffer_only = all(link.loses_only_when_full for link in path)
    lasting = all(each.arrivals == "once" for each in flows)
    if not (group.grows_until_loss and full_buffer_only and lasting):
        return None
    rooms = {link: room(scenario, link, group.direction) for link in path}
    link = min(path, key=lambda link: rooms[link] / link.capacity)
    smallest = min(scenario.size_of(each) for each in flows) / scenario.packet_size
    first = sum(g.count * first_window(scenario, g) for g in flows)
    longest_queue = first + link.capacity * end / smallest
    return link if longest_queue < rooms[link] < math.inf else None


def _slow_start_reaches(scenario: Scenario, member: Member, bottleneck: Link) -> float:
    """The greatest window, packets, with which a flow's slow start can end; infinite if not known.

    It is known only if all flows are long-lived and keep the same backlog, no packet waits longer
    than usual before it is sent, and all queues on the path are drop-tail without random loss.
    ``bottleneck`` is the link of the path on which the flow has the least share.

    Slow start ends when the backlog exceeds gamma (``rest.slow_start_ends`` gives the window). The
    last doubling may carry the window to twice this value. An overflow of a buffer can end slow
    start earlier (``settling.slow_start_overflows``). Other flows in the queue make slow start end
    earlier, too.
    """
    group, path = member.flow, scenario.path(member.flow)
    implementation = stack(scenario, group)
    kinds = {(g.keeps_backlog, g.alpha, g.beta, g.over_estimate) for g in scenario.flows}
    lasting = all(g.long_lived for g in scenario.flows)
    short_waits = scenario.jitter(group) <= scenario.usual_jitter(group)
    drop_tail_only = all(link.loses_only_when_full for link in path)
    if not (group.keeps_backlog and len(kinds) == 1 and lasting and short_waits and drop_tail_only):
        return math.inf
    first = first_window(scenario, group)
    if rest.skips_slow_start(group, implementation):
        return max(first, implementation.least_window)
    per_packet = scenario.packet_size / scenario.size_of(group)
    product = bottleneck.capacity * per_packet * member.rtt
    smallest = min(room(scenario, link, group.direction) for link in path)
    overflow = settling.slow_start_overflows(smallest, group.decrease)
    return max(first, min(2.0 * rest.slow_start_ends(group, implementation, product), overflow))


def _first_repair(start: _Start) -> float:
    """The time in seconds in which NewReno, alone on its path, repairs the losses of slow start.

    In the cases below this time is not known. The result is then 0, so ``settles`` never calls the
    warm-up too short because of it.

    Let T be the flow's RTT with empty queues, n the number of packets that its path holds without a
    queue, and b the number that can wait at its slowest link, the bottleneck. As the flow is alone,
    its fair share is the capacity of this link. In slow start each ACK releases two packets. From
    the first loss until the sender learns of it, n + b ACKs arrive, and for each of them one packet
    is lost. The sender repairs one lost packet per round trip (RFC 6582), so it needs n + b round
    trips. In these it sends hardly anything else, so the queue is empty, and each round trip lasts
    T.

    The window has then been halved from 2 (n + b) to n + b packets. The last ACK of the recovery
    releases all of them at once (RFC 6582, section 3.2, step 3). The buffer holds b of them, the
    others are lost, and their repair takes n further round trips.

    The time is not known in these cases:

    - There are other flows.
    - The flow may end slow start without a loss.
    - The sender does not repair one lost packet per round trip, for example because it uses SACK.
    - A link of the path loses packets also while its buffer is not full (RED, random loss).
    - b < n: slow start may then overflow the buffer before the window fills the path, so fewer
      packets are lost.
    - The receiver delays ACKs, so fewer packets are lost.
    - The sender is NewReno of ns-2 2.35 (``partial_deflates``). At a partial ACK its window keeps
      most of the packets that duplicate ACKs have added to it. So during the recovery it also sends
      new packets.
    - The flow has the variant ``paper``. In the simulator ``fluid`` a loss then cuts the window,
      and there is no recovery.
    """
    scenario, member, bottleneck = start.scenario, start.member, start.bottleneck
    group, path, T = member.flow, scenario.path(member.flow), member.rtt
    implementation = stack(scenario, group)
    one_per_trip = implementation.recovery_of(find(group.law).recovery) == "hole by hole"
    one_per_trip = one_per_trip and not (implementation.partial_deflates or group.delayed_ack)
    one_per_trip = one_per_trip and not STACKS[group.variant].real_numbers  # variant ``paper``
    alone = len(scenario.members) == 1 and group.grows_until_loss
    drop_tail_only = all(link.loses_only_when_full for link in path)
    n = start.share * T
    b = start.share * room(scenario, bottleneck, group.direction) / bottleneck.capacity
    known = alone and one_per_trip and drop_tail_only and n <= b < math.inf
    return (2.0 * n + b) * T if known else 0.0


def _time_after_loss(start: _Start) -> float:
    """The time in seconds that a window needs to grow back after a loss.

    Let W be the window at the loss. The flow gets its fair share r of its bottleneck. At the loss
    this link's queue is full, so it adds the delay Q to the propagation delay T of the path. So
    W = r (T + Q). The loss multiplies W by b (``decrease``). The result is the time from the window
    b W to the window W.

    - If the window w grows by one packet per round trip, its RTT is max(T, w/r). The time is the
      integral of this RTT over w.
    - CUBIC's window grows by the faster of two rules. By the cubic function, with the constant C,
      it reaches W after cbrt((1 - b) W/C) seconds. By the rule that follows Reno, it grows by
      3 (1 - b)/(1 + b) packets per round trip (RFC 9438 4.3).

    Q is the time in which the link sends a full buffer, or RED's highest threshold. If the buffer
    is infinite, or the queue is neither drop-tail nor RED, Q is taken as 0. If packets are lost at
    random with probability p, W is at most sqrt(3/(2p)). This is the mean window at that loss
    probability (Mathis et al. 1997).

    The result is 0 if no packet can be lost, if a loss does not reduce the window, if the receiver
    limits the window to W, or if the law grows in another way.
    """
    member, bottleneck, share = start.member, start.bottleneck, start.share
    group, queue, T = member.flow, bottleneck.queue, member.rtt
    law, b, path = find(group.law), group.decrease, start.scenario.path(group)
    longest = queue.max_threshold if isinstance(queue, Red) else bottleneck.buffer  # packets
    adds_delay = isinstance(queue, DropTail | Red) and math.isfinite(longest)
    Q = longest / bottleneck.capacity if adds_delay else 0.0
    W = share * (T + Q)
    grows = law.per_ack == "one a window" or law.is_cubic
    may_be_cut = b < 1.0 and not all(link.lossless for link in path)
    if not grows or not may_be_cut or group.max_window <= W:
        return 0.0
    p = max(link.loss for link in path)
    W = min(W, math.sqrt(1.5 / p) if p else math.inf)
    no_queue = min(max(share * T, b * W), W)  # the largest window without a queue
    # the integral over w: of T up to the window ``no_queue``, of w/share from there on
    time = T * (no_queue - b * W) + (W**2 - no_queue**2) / (2.0 * share)
    if law.is_cubic:
        # ``time`` is for one packet per round trip, not for 3 (1 - b)/(1 + b) packets
        like_reno = time * (1.0 + b) / (3.0 * (1.0 - b))
        return min(math.cbrt((1.0 - b) * W / cubic.C), like_reno)
    return time
