"""Makes a record (``state.Sender``) of each flow that ``rounds`` simulates.

A record contains the flow's parameters and its state. Each short flow that arrives at random has a
record, too.
"""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.rounds.access import is_slow, queues_at_sender
from vegasmodel.engines.rounds.route import BLOCK, Routes
from vegasmodel.engines.rounds.rules import number_of_rules
from vegasmodel.engines.rounds.state import FLOW, MECHANISMS, START
from vegasmodel.engines.rounds.timer import GRAINS, JIFFY
from vegasmodel.laws import Law, find
from vegasmodel.laws.law import FUNCTIONS, Recovery
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Member, Pareto, ParetoArrivals, Poisson, Scenario
from vegasmodel.scenario.placement import (
    access_leg,
    empty_rtt,
    links_where_acks_wait,
    stack,
    to_first_link,
    work,
)
from vegasmodel.stacks import Stack

MAX_ARRIVALS = 200_000  # greatest expected number of short flows of one group
_BYTES = np.dtype((np.void, FLOW.itemsize))  # a record as one block, which is copied faster
_LARGEST = 2.0**53  # packets; the largest size of a flow, as Pareto sizes have no limit
# the kinds of recovery from losses; a record holds the index of one of them
_RECOVERIES: tuple[str, ...] = get_args(Recovery)
# kinds of recovery, in the order in which ``_rank`` sorts the laws other than Vegas
_IN_LINE = ("one hole", "hole by hole", "scoreboard", "slow start")
# Totals in a flow's record: counts of packets, expiries of timers, and what some totals were when
# warm-up ended (``mark_...``), and when the flow stopped or the run ended (``last_...``). They are
# added up over the short flows of a group.
_COUNTS = ("sent", "lost", "retransmits", "acks", "arrived", "delivered", "acks_lost")
_EXPIRIES = ("timeouts", "early_timers")
_MEASURED = ("delivered", "sent", "lost", "retransmits", "rtt_total", "rtt_packets")
_AT_ENDS = tuple(f"{when}_{what}" for when in ("mark", "last") for what in _MEASURED)
_NOT_YET = (  # times that have not come yet, and minima without a sample
    "rtt_min", "min_rtt", "epoch_start", "delay_min", "train_rtt", "deadline", "wait_ends",
    "delack_expires",
)  # fmt: skip
SUMS = (*_COUNTS, *_EXPIRIES, *_AT_ENDS, "mark_beyond", "rtt_total", "rtt_packets")


def mechanisms(law: Law, stack: Stack, record: Any) -> None:
    """Set the fields of a flow's record that depend on its congestion control and implementation.

    ``law`` is the congestion control law, such as Vegas. ``stack`` describes the implementation of
    TCP, such as that of Linux. Mechanisms of the implementation that do not apply to this law are
    switched off. The class ``Sender`` explains each field of the record.
    """
    for name in MECHANISMS:
        record[name] = getattr(stack, name)
    _set_recovery(law, stack, record)
    # the kernel's CUBIC, which Linux and ns-2 have, and the mechanisms of ns-2's agent for it
    bictcp = record["bictcp"] = stack.bictcp and law.is_cubic
    record["hystart"] = stack.hystart and law.is_cubic
    for name, value in stack.cubic_agent if law.is_cubic else ():
        record[name] = value
    # how the law moves the window, and whether it needs the end of a round trip and the baseRTT
    record["once"], record["probes"] = law.once_a_round, law.slow_start == "gamma"
    calls_drift = law.per_ack == "drift" and not bictcp  # ``drift`` moves the window
    record["rounds"] = law.once_a_round or calls_drift
    record["restarts_rounds"] = stack.restarts_rounds and law.keeps_backlog
    record["keeps_base"] = law.delay_based
    record["rules"] = number_of_rules(law)
    if calls_drift:
        from vegasmodel.engines.outside import address

        for name in FUNCTIONS:
            record[f"{name}_at"] = address(law, name)
        record["keeps_numbers"] = len(law.state) > 0
        record["kept"][..., : len(law.state)] = law.first


def _set_recovery(law: Law, stack: Stack, record: Any) -> None:
    """Set the fields of a flow's record that say what the sender does after a loss.

    ``law`` is the congestion control law, and ``stack`` the implementation of TCP.
    """
    record["scoreboard"] = stack.always_sack or law.recovery == "scoreboard"
    record["recovery"] = _RECOVERIES.index(stack.recovery_of(law.recovery))
    record["overdue_checks"] = stack.overdue_checks and law.overdue_checks
    record["sack_exit_rests"] = stack.sack_exit_rests and law.recovery == "scoreboard"
    own_cut = law.overdue_checks or law.is_cubic  # ns-2 has other code for cuts of Vegas and CUBIC
    record["halves_in_slow_start"] = stack.halves_in_slow_start and not own_cut
    record["partial_deflates"] = stack.partial_deflates and law.recovery == "hole by hole"
    swells = law.recovery in ("one hole", "hole by hole")  # duplicate ACKs enlarge the window
    record["swells_uncut"] = stack.swells_uncut and swells


def _record(scenario: Scenario, member: Member, record: Any) -> None:
    """Fill in the ``record`` of a flow that starts at time 0, with what does not depend on the run.

    ``records`` adds the start time, the size and the random start of the clock. ``runs`` is the
    flow's TCP implementation.
    """
    group = member.flow
    law, runs = find(group.law), stack(scenario, group)
    for name in _NOT_YET:
        record[name] = NEVER
    mechanisms(law, runs, record)
    record["rtt"] = record["rtt_last"] = record["receiver_rtt"] = empty_rtt(scenario, member)
    for key in ("alpha", "beta", "gamma", "decrease", "max_window"):
        record[key] = getattr(group, key)
    if runs.bictcp and law.is_cubic:
        record["decrease"] = round(1024 * group.decrease) / 1024  # as tcp_cubic.c rounds its beta
    ring = runs.stale_ring and law.overdue_checks  # ns-2's Vegas stores sending times in a ring
    record["places"] = np.floor(group.max_window) if ring else math.inf
    ns2_vegas = group.law in runs.own_packets  # it sends no SYN and cannot use ECN
    record["ecn_capable"] = not ns2_vegas
    _set_handshake(scenario, law, runs, ns2_vegas, record)
    record["delayed_ack"], record["quick_acks_left"] = group.delayed_ack, runs.quick_acks
    # ns-2 acknowledges packet 0 at once (SYN_immediate_ack_)
    if ns2_vegas or _syn_in_window(law, runs):
        record["quick_acks_left"] = max(runs.quick_acks, 1.0)
    _set_base_rtt(member, runs, record)
    _set_first_window(member, law, runs, ns2_vegas, record)
    _set_delays(scenario, member, law, runs, record)
    record["rto"], record["backoff"] = record["first_rto"], 1.0
    record["recover"], record["retransmit"], record["timed_at"] = -1.0, -1.0, -1.0  # none yet
    record["overdue_factor"], record["grow_next"] = 1.0, 1
    record["event"], record["finished"] = START, NEVER
    record["short_flow"] = group.arrivals != "once"


def _set_handshake(scenario: Scenario, law: Law, runs: Stack, ns2_vegas: bool, record: Any) -> None:
    """Write into a flow's record whether it sends a SYN, and how large the SYN is.

    ``law`` is the flow's congestion control, and ``runs`` its TCP implementation. The field ``syn``
    is the size of a SYN that comes before the first window, in data packets. It is 0 if there is
    none: ns-2's Vegas (``ns2_vegas``) sends none, and some SYNs are a part of the first window
    (``_syn_in_window``).
    """
    record["syn_in_window"] = within = _syn_in_window(law, runs)
    if runs.handshake and not ns2_vegas and not within:
        size = scenario.ack_size if runs.syn_is_ack else runs.header
        record["syn"] = size / scenario.packet_size


def _set_base_rtt(member: Member, runs: Stack, record: Any) -> None:
    """Write the baseRTT that a flow has at its start into its record.

    ``runs`` describes the flow's TCP implementation. ``known_base`` is the baseRTT that the
    scenario gives, or NaN if the flow measures it. ``base`` is the baseRTT that the flow uses now.
    If the scenario gives it, Linux's Vegas (``whole_window``) uses it at once. Vegas with the
    variant ``ns2`` or ``paper`` uses it only when a round trip ends (``laws.vegas``).
    """
    group, measured = member.flow, member.flow.measures_base
    record["known_base"] = math.nan if measured else member.rtt + float(group.over_estimate)
    from_start = runs.whole_window and not measured
    record["base"] = record["known_base"] if from_start else NEVER


def _set_first_window(member: Member, law: Law, runs: Stack, ns2_vegas: bool, record: Any) -> None:
    """Write the window and the ssthresh with which a flow starts into its record.

    ``runs`` describes the flow's TCP implementation. ``ns2_vegas`` is True for ns-2's Vegas. If
    the scenario gives its baseRTT, it first measures this baseRTT by probes in the empty network.
    So it then starts with 2 packets, without slow start.
    """
    group, measured = member.flow, member.flow.measures_base
    record["first_window"], record["ssthresh"] = runs.first_window, 1e9  # 1e9: above any window
    if runs.receiver_ssthresh:
        record["ssthresh"] = math.floor(min(group.max_window, 1e9))
    if ns2_vegas and runs.probes_base and not measured:
        record["first_window"], record["ssthresh"] = 2.0, 2.0
        record["rtt_sum"], record["rtt_count"] = member.rtt, 1.0  # the probes' RTT sample
    if law.per_ack == "drift" and law.slow_start == "none":  # a user's law without slow start
        record["ssthresh"] = 0.0
    if group.initial_window is not None:
        record["first_window"] = group.initial_window
    # the window is 1 until packet 1, the second packet, is acknowledged
    waits = runs.second_packet_first and ns2_vegas and measured
    record["cwnd"] = 1.0 if waits else record["first_window"]
    if ns2_vegas and runs.untimed_first and measured:
        record["untimed"] = record["cwnd"]


def _set_delays(scenario: Scenario, member: Member, law: Law, runs: Stack, record: Any) -> None:
    """Write the delays of a flow on its access links, and its random delays, into its record.

    ``runs`` describes the flow's TCP implementation: it decides whether the random wait
    ``send_jitter`` comes before a packet's timestamp (``jitter``) or after it (``queue_wait``).
    """
    group = member.flow
    if not is_slow(scenario, group):  # otherwise the queue at the access link makes the gaps
        record["gap"] = work(scenario, group) / scenario.access_rate(group)
    if law.recovery == "scoreboard":
        rates = scenario.path(group)[0].capacity, scenario.access_rate(group)
        record["block_delay"] = sum(BLOCK / scenario.packet_size / rate for rate in rates)
    wait = scenario.jitter(group)
    record["queue_wait" if runs.waits_in_queue else "jitter"] = wait
    record["waits_long"] = wait > scenario.usual_jitter(group)
    # The random delay is on one of the four access wires. This wire has the propagation delay of
    # all four, so that the random part can shorten the delay by as much.
    record["noise"], record["slack"] = group.delay_noise, 4.0 * access_leg(scenario, member)
    way = record["way"] = _to_first_queue(scenario, member)
    # for a start at 0 s; times in the record are those at the first queue, ``way`` seconds later
    record["start"], record["boot_time"] = way, -way


def _to_first_queue(scenario: Scenario, member: Member) -> float:
    """The time in seconds that a data packet takes from the sender to the flow's first queue.

    It is 0 if the first queue is that of the access link (``access.queues_at_sender``).
    """
    return 0.0 if queues_at_sender(scenario, member.flow) else to_first_link(scenario, member)


def _syn_in_window(law: Law, runs: Stack) -> bool:
    """Whether the SYN is part of the first window, so that data leave before it is acknowledged.

    This is so for ns-2's CUBIC with the defaults of ns-2 2.35, because its agent has a window of
    its own (``linux_.snd_cwnd`` in tcp-linux.cc). The window of other agents is 1 until the SYN is
    acknowledged (``delay_growth_`` in tcp.cc). The simulator treats the SYN of ns-2's CUBIC as a
    packet of the usual size that does not count as delivered.
    """
    return runs.handshake and law.is_cubic and len(runs.cubic_agent) > 0


def _sizes(group: Flow, n: int, rng: np.random.Generator) -> Floats:
    """The sizes of ``n`` flows of a group, in packets: random (``Pareto``) or all equal."""
    if isinstance(group.size, Pareto):
        shape = group.size.shape
        least = group.size.mean * (shape - 1.0) / shape  # the smallest size of this distribution
        drawn: Floats = np.minimum(np.ceil(least * (1.0 + rng.pareto(shape, n))), _LARGEST)
        return drawn
    return np.full(n, np.ceil(group.size))  # the last packet may be a part of one


def _arrivals(group: Flow, begin: float, stop: float, rng: np.random.Generator) -> Floats:
    """The times in ``[begin, stop)``, in seconds, at which the short flows of a group start.

    If the flows do not arrive at random, the result is the single time ``begin``.
    """
    arrivals = group.arrivals
    if not isinstance(arrivals, (Poisson, ParetoArrivals)):
        return np.array([begin])
    times: list[Floats] = []
    time = begin
    while time < stop:
        n = int(arrivals.rate * (stop - time)) + 16
        if isinstance(arrivals, Poisson):
            gaps = rng.exponential(1.0 / arrivals.rate, n)
        else:  # Pareto gaps of mean 1/rate, of which ``least`` is the shortest
            least = (arrivals.shape - 1.0) / arrivals.shape / arrivals.rate
            gaps = least * (1.0 + rng.pareto(arrivals.shape, n))
        times.append(time + np.cumsum(gaps))
        time = float(times[-1][-1])
    drawn: Floats = np.concatenate(times) if times else np.zeros(0)
    return drawn[drawn < stop]


# (a flow's group, its RTT) -> a record, as one block (``_BYTES``), from which others are copied
Templates = dict[tuple[int, float], NDArray[Any]]


def records(
    scenario: Scenario, starts: Floats | None, seed: int, templates: Templates | None = None
) -> NDArray[Any]:
    """Make the records (``state.Sender``) of all flows of a scenario, for one run.

    A group is the set of flows that one ``[[flow]]`` of the scenario describes. Each short flow
    that arrives at random has a record of its own. If no flow of a group arrives, the group has one
    record, of a flow that never starts. ``starts`` [n_flows] replaces the scenario's start times,
    in seconds. All random values depend on ``seed`` and on the scenario's own seed. ``templates``
    stores the values that flows with the same group and RTT have in common. A later call with the
    same links and flows can use it again to save time.
    """
    # for each flow of the scenario, of which there may be several: a record, start times, sizes
    found, times, sizes, ranks = [], [], [], []
    templates = {} if templates is None else templates
    rng = np.random.default_rng([scenario.run.seed, seed, len(scenario.flows)])
    for i, member in enumerate(scenario.members):
        begin = member.start if starts is None else float(starts[i])
        begins = _arrivals(member.flow, begin, member.stop, rng)
        times.append(begins if len(begins) else np.array([math.inf]))
        sizes.append(_sizes(member.flow, len(times[-1]), rng))
        key = member.group, member.rtt
        if key not in templates:
            record = np.zeros(1, FLOW)
            _record(scenario, member, record)
            templates[key] = record.view(_BYTES)
        found.append(templates[key])
        ranks.append(_rank(find(member.flow.law)))
    counts = [len(begins) for begins in times]
    flows = np.concatenate(found).repeat(counts).view(FLOW)
    flows["member"] = np.arange(len(counts)).repeat(counts)
    flows["stop"] = np.array([member.stop for member in scenario.members]).repeat(counts)
    # A packet takes ``way`` seconds from the sender to the flow's first queue. The times in a
    # record are those at this queue, so each is ``way`` later than at the sender. ``_record`` has
    # already set ``start`` to ``way``, for a start at 0 s.
    flows["stop"] += flows["way"]
    flows["start"] += np.concatenate(times)
    # before the first loss, the time since the last loss counts from the start
    flows["since"] = flows["trips_at"] = flows["start"]
    flows["size"] = np.concatenate(sizes) + flows["syn_in_window"]  # the SYN delivers no data
    flows = _in_order(flows, np.array(ranks).repeat(counts))
    # The clock of each ns-2 agent (boot_time_) and of each host began at a random time of its own.
    # Only the part of a period that has passed matters. ns-2's clock has a period of ``tick``
    # seconds. In Linux, long timers expire only at multiples of ``GRAINS`` jiffies.
    ticks = np.random.default_rng([scenario.run.seed, seed, len(flows), 0])
    period = np.where(flows["timer_wheel"], GRAINS * JIFFY, flows["tick"])
    random = ticks.uniform(0.0, 1.0, len(flows)) * period
    flows["boot_time"] = np.where(flows["clock_from_zero"], flows["boot_time"], random)
    return flows


def _in_order(flows: NDArray[Any], ranks: NDArray[np.int64]) -> NDArray[Any]:
    """Sort the flows' records, so that packets of one instant are handled in the order of ns-2.

    ``ranks`` [record] has the rank of each flow's congestion control (``_rank``).
    """
    # Two packets of different flows may reach a queue at the same instant. ns-2 first handles the
    # one that entered its flow's access link first. If the two flows cross the same links after
    # their access links, this is the packet of the flow with the longer RTT, because the access
    # link of that flow has the longer delay. This simulator handles the two packets in the order in
    # which their flows stand in the array `flows`. So the array is sorted by RTT, the longest
    # first. Flows with the same RTT are sorted by start time. Flows that also have the same start
    # time are sorted as follows:
    # - If their senders do not wait for a random time before they send, the first packets of these
    #   flows arrive at the same instant. ns-2 handles the packets in the order in which the
    #   scenario file lists the flows. So these flows keep the order of the file.
    # - If their senders wait for a random time, packets of these flows do not arrive at the same
    #   instant. To make the results independent of the order of the file, these flows are sorted by
    #   congestion control, alpha, beta and stop time. (One dependence remains: if flows arrive at
    #   random or have random sizes, the order of the file's [[flow]] tables decides which random
    #   numbers each flow gets.)
    waits = (flows["jitter"] > 0.0) | (flows["queue_wait"] > 0.0)
    tie_keys = (flows["stop"], flows["beta"], flows["alpha"], ranks)
    keys = (*(np.where(waits, key, 0.0) for key in tie_keys), flows["start"], -flows["rtt"])
    order = np.lexsort(keys)  # the last key counts first
    return flows.view(_BYTES)[order].view(FLOW)  # records as blocks of bytes are copied faster


def receivers(scenario: Scenario, flows: NDArray[Any], way: Routes) -> NDArray[Any]:
    """Make the records of the flows' receivers (``Net.receivers``), before any packet has arrived.

    They are needed only if ACKs cross a queue; otherwise the result is empty.

    The field ``delayed_ack`` says which ACKs join the queue. If it is set, these are the ACKs that
    the receiver really sends, otherwise one ACK for each packet. To save time it is set only if two
    conditions hold. First, the receiver delays ACKs. Secondly, the number of ACKs in the queue
    matters: data packets cross this queue, too, or ACKs may wait long at some link
    (``links_where_acks_wait``).
    """
    hops = way.hops[way.first[0] :]  # without those of Rate-Delay classes
    data = hops["data"] == 1
    if data.all():
        return np.zeros(0, FLOW)
    # for each hop: whether data cross its queue, and whether the number of the ACKs there matters
    mixed = np.isin(hops["link"], hops["link"][data])
    matters = ~data & (mixed | bool(links_where_acks_wait(scenario)))
    found = np.zeros(len(flows), FLOW)
    delayed = np.isin(np.arange(len(flows)), hops["flow"][matters])
    found["delayed_ack"] = flows["delayed_ack"] & delayed
    found["quick_acks_left"], found["heard_at"] = flows["quick_acks_left"], NEVER
    return found


def _rank(law: Law) -> int:
    """The rank of a congestion control law among flows with equal RTT and start time.

    ``records`` sorts such flows by this rank if their senders wait at random. Vegas has rank 0. The
    rank of any other law depends on how it recovers from losses (``_IN_LINE``).
    """
    return 0 if law.keeps_backlog else 1 + _IN_LINE.index(law.recovery)


def sum_by_member(flows: NDArray[Any], n: int) -> NDArray[Any]:
    """The records at the end of a run, one record for each of the ``n`` flows of the scenario.

    A group of short flows counts as one flow of the scenario. The counts in its record are sums
    over its short flows. Its baseRTT is the least of the short flows' baseRTTs. All other fields
    are those of one short flow.
    """
    if len(flows) == n:
        return flows.view(_BYTES)[np.argsort(flows["member"])].view(FLOW)
    out = np.zeros(n, FLOW)
    out.view(_BYTES)[flows["member"][::-1]] = flows[::-1].view(_BYTES)
    for key in SUMS:
        out[key] = np.bincount(flows["member"], flows[key], n)
    np.minimum.at(out["base"], flows["member"], flows["base"])
    return out
