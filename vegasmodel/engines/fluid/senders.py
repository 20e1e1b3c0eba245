"""Makes the records with which the package ``sampled`` simulates the flows of a scenario.

A record (``sampled.records.Sender``) holds the parameters and the state of a flow's sender.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np

from vegasmodel.engines.fluid.holds import MOST, held_alone
from vegasmodel.engines.fluid.methods import papers_only
from vegasmodel.laws import find, foreign
from vegasmodel.laws.law import FUNCTIONS, Law, Recovery
from vegasmodel.laws.source import MOST_NUMBERS
from vegasmodel.scenario import Flow, Member, Red, Scenario
from vegasmodel.scenario.placement import stack, work
from vegasmodel.stacks import STACKS
from vegasmodel.stacks.stack import Stack

__all__ = ["own_law", "senders"]

MOST_BACKOFF = 64.0  # ns-2's largest factor on a timeout, unless it follows RFC 2988
CHECKS = 2.0  # ACKs after a retransmission, at each of which Vegas may retransmit a further packet
# the kinds of recovery from losses; a record holds the index of one of them
_RECOVERIES: tuple[str, ...] = get_args(Recovery)
_MECHANISMS = (  # fields of ``Stack`` that are copied into a record under the same name
    "backlog_over_base",
    "real_numbers",
    "whole_window",
    "rack",
    "doubling",
    "partial_deflates",
)


def senders(scenario: Scenario) -> np.ndarray:
    """The scenario's flows as records (``sampled.records.Sender``), before any flow has started.

    A sender may wait a random time before it sends a packet (``send_jitter``). During the wait the
    packet counts as in flight, but it is not in the queue. ns-2's Vegas measures its RTT from the
    end of the wait. So these waits make the queue shorter, by half a packet at the default
    ``send_jitter``, and the RTT that Vegas measures, too. There are two cases:

    - If all flows are Vegas, the field ``rtt`` of a record contains the mean wait, which is also in
      the field ``wait``.
    - If any flow is loss-based, ``wait`` is 0 for all flows, and the mean wait is in the field
      ``wait_in_host``. It shortens the delay that Vegas measures (``round_trip.sample_delay``). The
      simulator does not shorten the queue: random waits let some packets find the buffer full
      although the mean queue is shorter. They also decide which flow loses a packet (``loser``).
    """
    from vegasmodel.engines.fluid.sampled.records import FLOW

    flows = np.zeros(len(scenario.members), FLOW)
    smooth = papers_only(scenario)  # windows are real numbers, which change at every instant
    loss_based = not all(group.delay_based for group in scenario.flows)  # some flow is
    rows = [_group(scenario, group) for group in scenario.flows]
    for i, member in enumerate(scenario.members):
        for name, value in rows[member.group].items():
            flows[i][name] = value
        flow = member.flow
        flows[i]["over_estimate"] = math.inf if flow.measures_base else flow.over_estimate
        if not (smooth or stack(scenario, member.flow).waits_in_queue):
            flows[i]["wait_in_host" if loss_based else "wait"] = 0.5 * scenario.jitter(member.flow)
        flows[i]["rtt"] = member.rtt + flows[i]["wait"]
        flows[i]["start"], flows[i]["stop"] = member.start, member.stop
        limit = flow.max_window // 1
        odd = math.isfinite(limit) and limit % 2 == 1
        flows[i]["holds_at_limit"] = odd and flow.delayed_ack and not smooth
        flows[i]["held_alone"] = _held_alone(scenario, member, flows[i])
    flows["number"], flows["rank"] = np.arange(flows.size), rank(scenario)
    _set_order(scenario, flows)
    return flows


def _set_order(scenario: Scenario, flows: np.ndarray) -> None:
    """Set the fields of the senders' records that say how packets stay in order.

    One of them, ``samples_train``, needs an explanation. Once per round trip ns-2's Vegas decides
    how to change its window. It uses the mean queueing delay that its packets met in this round
    trip. The simulator computes this mean in one of two ways:

    - If ``samples_train`` is False, it takes the mean over the whole round trip.
    - If ``samples_train`` is True, it takes the mean over the time in which the sender's packets
      pass the queue. This is better if all RTTs are equal, because the packets of a sender then
      stay together as a train. But it needs short time steps. The simulator makes short steps only
      while the buffer is nearly full, and the buffer seldom fills if all flows are delay-based.

    So ``samples_train`` is True only if packets stay in order (``_keep_order``) and some flow is
    loss-based. In addition, windows must be whole packets.
    """
    smooth = papers_only(scenario)  # windows are real numbers, which change at every instant
    loss_based = not all(group.delay_based for group in scenario.flows)  # some flow is
    flows["same_rtt"] = np.all(flows["rtt"] == flows["rtt"][0])
    flows["in_train"] = together = _keep_order(scenario)
    decides = flows["once_a_round"] & ~flows["whole_window"]  # as ns-2's Vegas does
    flows["samples_train"] = decides & (together and loss_based and not smooth)
    # RED: whether slow start is simulated train by train, whether ns-2's Vegas may measure a far
    # too small baseRTT (``short_round.py``), and whether the order of two flows' packets matters
    # for that (``blocks.py``)
    flows["at_red"] = isinstance(scenario.links[0].queue, Red) and not smooth
    flows["in_trains"] = flows["at_red"] & ~flows["decides_slow_start"]
    resets = [
        member.flow.keeps_backlog and stack(scenario, member.flow).resets_base
        for member in scenario.members
    ]
    possible = flows["at_red"] & (together and flows.size == 2)
    flows["loses_base"] = possible & flows["measures_base"] & np.array(resets)
    flows["in_blocks"] = np.any(flows["loses_base"])
    # Linux: whether ``line.py`` knows the order of the packets; ``compares``: whether CUBIC then
    # grows at those ACKs at which it compares its window with its target
    flows["in_line"] = flows["whole_window"] & _in_line(scenario)
    cubic = [find(member.flow.law).is_cubic for member in scenario.members]
    flows["compares"] = flows["in_line"] & cubic


def _held_alone(scenario: Scenario, member: Member, sender: np.void) -> float:
    """How many packets wait at the receiver, on average, while the window stays at an odd limit.

    This number (``holds.held_alone``) is for an empty queue and for delayed ACKs. ``sender`` is the
    flow's record, in which it is still missing. The result is 0 if the number is not known. It is
    not known, for example, for ns-2's Vegas: this doubles its window in every other round trip of
    slow start, which the module ``holds`` does not simulate.
    """
    limit = member.flow.max_window // 1
    doubles = sender["doubling"] == 1 or not sender["decides_slow_start"]
    known = sender["holds_at_limit"] and sender["starts_slowly"] and doubles
    if not known or not 1.0 < limit <= MOST:
        return 0.0
    runs, first = _runs(scenario, member.flow), float(sender["initial_window"])
    capacity = scenario.links[0].capacity / work(scenario, member.flow)  # in the flow's packets
    return held_alone(runs, member.rtt, limit, first, capacity)


def rank(scenario: Scenario) -> np.ndarray:
    """The positions of the flows in an order that does not depend on the order of the tables.

    First comes the flow with the shortest RTT. Flows of equal RTTs are ordered by the texts of
    their parameters, and flows with the same parameters by their names. The result has shape
    [flow].
    """
    known = [each.name for each in fields(Flow) if each.name != "name"]
    texts = [repr([getattr(group, name) for name in known]) for group in scenario.flows]
    keys = [(each.rtt, texts[each.group], each.name) for each in scenario.members]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.argsort(order)


def _group(scenario: Scenario, group: Flow) -> dict[str, Any]:
    """The fields of ``sampled.records.Sender`` that are the same for all flows of a group.

    They follow from the flows' congestion control (``law``), from their TCP implementation
    (``runs``), and from the keys of their table in the scenario file (``group``).
    """
    runs = _runs(scenario, group)
    law = _law(scenario, group, runs)
    row = (
        _decisions(group, law, runs)
        | _start(group, law, runs)
        | _growth(group, law, runs)
        | _delayed_acks(group, law, runs)
        | _losses(group, law, runs)
        | _timer(scenario, law, runs)
    )
    if foreign((group.law,)):  # a user's law or CUBIC, whose functions are called by address
        from vegasmodel.engines.outside import address

        row |= {f"{name}_at": address(law, name) for name in FUNCTIONS}
        row["keeps_numbers"] = len(law.state) > 0
        row["kept"] = (*law.first, *[0.0] * (MOST_NUMBERS - len(law.state)))
        row["lower"], row["upper"] = group.alpha, group.beta
    return row


def _decisions(group: Flow, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on when the window changes, and on what the sender measures for it.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation.
    """
    from vegasmodel.engines.fluid.sampled.law import DRIFTS

    return {
        **{name: getattr(runs, name) for name in _MECHANISMS},
        "drift": DRIFTS.index(law.drift) if law.drift in DRIFTS else -1,  # -1: called by address
        "once_a_round": law.once_a_round,
        "restarts_rounds": runs.restarts_rounds and law.keeps_backlog,
        "least_of_round": runs.least_of_round and not foreign((group.law,)),  # not a user's law
        "measures_base": group.measures_base,
        "untimed_first": runs.untimed_first and group.law in runs.own_packets,  # ns-2's Vegas
    }


def _start(group: Flow, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on the first window and on slow start.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. If the scenario
    gives the baseRTT of ns-2's Vegas, the sender first measures this baseRTT by probes in the empty
    network. It then begins with its least window, and without slow start.
    """
    in_agent = group.law in runs.own_packets  # ns-2's Vegas
    probed = in_agent and runs.probes_base and not group.measures_base
    first_window = runs.least_window if probed else runs.first_window
    return {
        "initial_window": group.initial_window or first_window,
        "starts_slowly": law.slow_start != "none" and not probed,
        "decides_slow_start": law.keeps_backlog,
        "ends_at_gamma": law.slow_start == "gamma" and not law.keeps_backlog,
        "gamma": group.gamma,
    }


def _growth(group: Flow, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on how the window grows and shrinks without losses.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation.
    """
    delayed = _acks_matter(group, law, runs)
    lower, upper = runs.dead_zone(group.alpha, group.beta)
    # If an ACK acknowledges two packets, ns-2's Vegas counts one packet less as outstanding when it
    # decides. So the backlog that it computes is one packet below the true one.
    if delayed and not runs.decides_late:
        lower, upper = lower + 1.0, upper + 1.0
    return {
        "lower": lower,
        # ns-2's and Linux's Vegas reduce the window at this edge itself, too
        "upper": upper if runs.upper_edge_rests else np.nextafter(upper, 0.0),
        "steps_down": law.keeps_backlog,
        "must_keep_up": runs.overdue_checks and law.overdue_checks,
        "grows_if_few": runs.whole_window and law.keeps_backlog,
        "grows_by_acks": _grows_by_acks(law, runs),
        # delayed ACKs halve the growth, unless the window grows by the packets acknowledged
        "drift_factor": 0.5 if delayed and not runs.counts_packets else 1.0,
        "min_window": runs.least_window if law.keeps_backlog else 1.0,
        "max_window": group.max_window,
    }


def _delayed_acks(group: Flow, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on delayed ACKs; ``law`` and ``runs`` as in ``_acks_matter``."""
    counts_acks = _acks_matter(group, law, runs) and law.keeps_backlog
    return {
        "delays_acks": group.delayed_ack and not runs.real_numbers,
        "ack_pause": runs.ack_pause,
        "acked_at_once": 2.0 if group.delayed_ack else 1.0,
        "counts_sent": counts_acks and not runs.decides_late,
    }


def _acks_matter(group: Flow, law: Law, runs: Stack) -> bool:
    """Whether the receivers delay ACKs, and this changes how the window grows.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. Delayed ACKs do
    not matter for Vegas as in the papers, which counts round trips, not ACKs.
    """
    return group.delayed_ack and not (law.keeps_backlog and runs.real_numbers)


def _losses(group: Flow, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on what a sender does after losses.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation.
    """
    own_cut = law.overdue_checks or law.is_cubic or law.cut is not None
    return {
        "recovery": _RECOVERIES.index(runs.recovery_of(law.recovery)),
        "most_holes": _most_holes(law, runs),
        "sack_exit_rests": runs.sack_exit_rests and law.recovery == "scoreboard",
        "decrease": group.decrease,
        "cut_rounds_up": law.overdue_checks and runs.overdue_checks and not runs.real_numbers,
        "halves_in_slow_start": runs.halves_in_slow_start and not own_cut,
    }


def _timer(scenario: Scenario, law: Law, runs: Stack) -> dict[str, Any]:
    """The fields of a record on the retransmission timer.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. The field
    ``first_rto`` is 0 after a handshake, which has measured the RTT, and in TCP as in the papers.
    """
    timers = runs.for_cubic() if law.is_cubic else runs
    return {
        "first_rto": 0.0 if papers_only(scenario) or runs.handshake else timers.first_rto,
        "tick": 0.0 if timers.timestamps else timers.tick,
        "timer_slack": timers.timer_slack,
        "longest_rto": timers.longest_rto,
        "most_backoff": math.inf if timers.floor_before_backoff else MOST_BACKOFF,
        "fine_timer": runs.overdue_checks and law.overdue_checks,
    }


def _runs(scenario: Scenario, group: Flow) -> Stack:
    """The TCP implementation that the flows of ``group`` have in the simulator ``fluid``."""
    return STACKS[group.variant] if papers_only(scenario) else stack(scenario, group)


def own_law(scenario: Scenario, group: Flow) -> Law:
    """The congestion control law of ``group``, for the TCP implementation that its flows have."""
    return _law(scenario, group, _runs(scenario, group))


def _law(scenario: Scenario, group: Flow, runs: Stack) -> Law:
    """The congestion control law of ``group``, for senders with the TCP implementation ``runs``.

    If this implementation has a CUBIC of its own, the growth of CUBIC's window (the law's function
    ``drift``) is that of this implementation.
    """
    law = find(group.law)
    if law.kernel_drift is None or not runs.bictcp:
        return law
    arguments = runs.reno_windows, runs.whole_window, _in_line(scenario)
    return replace(law, drift=law.kernel_drift(*arguments))


def _keep_order(scenario: Scenario) -> bool:
    """Whether all flows' packets arrive at the queue in the same order in every round trip.

    Packets leave the link one transmission time apart. Their ACKs release new packets, which arrive
    at the queue after the RTTs of their flows. So they arrive in the same order if all RTTs are
    equal, or if they differ by less than one transmission time.
    """
    rtts = [member.rtt for member in scenario.members]
    return (max(rtts) - min(rtts)) * scenario.links[0].capacity < 1.0


def _in_line(scenario: Scenario) -> bool:
    """Whether ``line.py`` knows in which order the packets of Linux senders arrive at a full queue.

    All of this must hold:

    - The packets of all flows stay in order (``_keep_order``).
    - No receiver delays ACKs. A delayed ACK would release several packets.
    - Some flow is loss-based. Otherwise the queue seldom fills.
    - There is no random loss and no RED. They drop packets although the queue is not full. While a
      sender repairs these losses, its packets do not stay together, so their order is not known.
    """
    flows, link = scenario.flows, scenario.links[0]
    loss_based = not all(group.delay_based for group in flows)  # some flow is
    other_drops = link.loss > 0.0 or isinstance(link.queue, Red)
    delayed_acks = any(group.delayed_ack for group in flows)
    return loss_based and _keep_order(scenario) and not (other_drops or delayed_acks)


def _grows_by_acks(law: Law, runs: Stack) -> bool:
    """Whether each ACK adds a part of a packet to the window.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. The result is
    False in three cases:

    - Vegas and some other laws change the window only once per round trip.
    - Linux and ns-2's CUBIC count ACKs, and then let the window grow by a whole packet.
    - TCP as in the papers lets the window grow at every instant.
    """
    whole = runs.whole_window or (law.is_cubic and len(runs.cubic_agent) > 0)
    return not (law.once_a_round or whole or runs.real_numbers)


def _most_holes(law: Law, runs: Stack) -> float:
    """How many lost packets a recovery can repair; if there are more, a timeout follows.

    Reno repairs the first lost packet only. ns-2's Vegas repairs three: one at the fast retransmit,
    and one at each of the next two ACKs of new data (``CHECKS``). At each of these ACKs it
    retransmits a packet that was sent longer ago than Vegas's fine timeout (tcp-vegas.cc:
    ``v_worried_``; Brakmo and Peterson 1995, 3.1). All other flows can repair any number of losses.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation.
    """
    if runs.recovery_of(law.recovery) == "one hole":
        return 1.0
    checks = law.overdue_checks and runs.overdue_checks and not runs.real_numbers
    return 1.0 + CHECKS if checks else math.inf
