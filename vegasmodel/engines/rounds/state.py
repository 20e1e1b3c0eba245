"""Defines the state of the simulator ``rounds``: senders, receivers, queues and groups of packets.

Each of these has a record in a NumPy array. Counts are in packets, times are in seconds. In names
of fields and in comments, "work" is the sum of the sizes of packets, in units of the scenario's
packet size.

The simulator treats a flow's sender as if it were at the flow's first queue. The delay from the
real sender to this queue is added to the delay of the ACKs. So the times in the flow's record are
those at which packets reach this queue.

Each queue has its own clock, which is behind the clock of the simulation by ``Queue.shift`` seconds
(``travel.py`` says why).
"""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.kept_numbers import KEPT, Kept
from vegasmodel.engines.tables import Table as Table
from vegasmodel.engines.tables import array as array
from vegasmodel.engines.tables import jit as any_index
from vegasmodel.engines.tables import layout
from vegasmodel.metrics import Floats
from vegasmodel.stacks.stack import Mechanisms

# the decorators of ``engines/tables.py``, with the options of this simulator
jit = functools.partial(any_index, negative_indices=False, quick=False, distinct=True)
inlined = functools.partial(jit, forceinline=True)  # for what happens to almost every packet
rare = functools.partial(jit, rare=True)  # for what happens to few packets
apart = functools.partial(jit, apart=True)  # for several callers; not copied into each

# the kinds of recovery after a loss, in the order of ``laws.law.Recovery``
SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = range(4)
DROPTAIL, RED = range(2)  # queue disciplines; Rate-Delay queues are drop-tail, too
# ``rounding.roundings`` makes a table of capacities and delays, with a row for each period between
# two powers of 2; the first period ends at 2^-12 s.
FIRST_BINADE = -12
OPEN, RECOVERY = range(2)  # whether a sender is in a recovery after a loss
# What the next event of a flow is: an interval of sending ends (``DATA``), a timer of the sender
# expires, the flow starts, its TCP handshake ends (``CONNECTED``), or the rest of a burst is due,
# because an event of another flow has interrupted the burst (``REST``).
DATA, TIMER, START, CONNECTED, REST = range(5)
# why a sender's timer expires: the retransmission timeout, or Linux's two earlier timers
RETRANSMIT, TAIL_PROBE, REORDERING = range(3)
# bits of ``Sender.without``, for experiments: backlogs are not rounded, Vegas decides at each ACK,
# timers have no clock ticks
WITHOUT_ROUNDING, WITHOUT_ROUNDS, WITHOUT_TICKS = 1, 2, 4

MECHANISMS = tuple(field.name for field in fields(Mechanisms))
"""The properties of a TCP implementation that are copied into the record of each of its flows."""
ROWS = 512  # rows of the table ``Queue.stock``
# A hole is a range of packets that a receiver misses. The columns of the table of holes are:
FIRST = 0  # number of the hole's first packet
AFTER = 1  # number of the first packet after the hole
SENT_AT = 2  # when its first packet was sent, seconds
BEFORE_AT = 3  # when the packet before it was sent, seconds
KNOWN_LOST = 4  # Linux: 1 if it knows that the packets of the hole are lost, else 0
FORGOTTEN = 4  # ns-2's CUBIC: what it has forgotten behind the hole (``scoreboard.forgotten``)
NOT_RESENT = 5  # number of the hole's first packet that has not been retransmitted
LOST_AGAIN = 6  # 0, or more if its retransmission is lost, too (``repair.retransmission_lost``)
COLUMNS = 7  # number of columns
# The columns of the samples of a flow: the window in packets, the packets sent so far, the RTT in
# seconds with the present queues, the packets delivered so far, the baseRTT in seconds, and the
# packets lost so far.
WINDOW, SENT, RTT, DELIVERED, BASE_RTT, LOST, SAMPLED = range(7)  # ``SAMPLED`` is their number


class Sender(Mechanisms):
    """The record of one flow: its parameters and the present state of its sender and receiver.

    The record also says which packets the flow sends next, and when. Two words in the comments on
    its fields: a parcel is a group of packets that travel together (``Parcel``), and a hop is one
    queue on the flow's path (``Hop``).
    """

    # the flow's own parameters
    rtt: float  # round-trip time in the empty network, T
    gap: float  # seconds between packets of a burst where it enters the first queue
    block_delay: float  # seconds by which a SACK block lengthens an ACK's way to the sender
    alpha: float  # thresholds of the backlog, packets
    beta: float
    gamma: float
    decrease: float  # factor on its window at a loss
    max_window: float  # packets
    first_window: float  # window at its start, packets
    syn_in_window: bool  # packet 0 is the SYN: it does not count as delivered
    syn: float  # size of a handshake's packets, in data packets; 0: no handshake
    # The functions that move its window. Those of a user's law are called by their addresses
    # (``engines/outside.py``).
    rules: int  # number of the set of functions (``rules.py``); 0: those at the addresses below
    drift_at: int  # address of ``drift``; 0: no function is called by address
    cut_at: int  # address of ``cut``; 0: a loss multiplies the window by ``decrease``
    remember_at: int  # address of ``remember``; 0: the window at the loss is remembered
    update_at: int  # address of ``update``; 0: no numbers change at the end of a round trip
    keeps_numbers: bool  # its law keeps numbers of its own
    recovery: int  # ``SCOREBOARD``, ``HOLE_BY_HOLE``, ``ONE_HOLE`` or ``SLOW_START``
    once: bool  # its law decides once per round trip, not upon every ACK
    rounds: bool  # its law acts at the end of each round trip
    keeps_base: bool  # its law uses a baseRTT
    scoreboard: bool  # it knows which packets are missing (SACK)
    probes: bool  # a user's law: slow start also ends if the backlog exceeds gamma
    known_base: float  # baseRTT held fixed; NaN: the flow measures it
    jitter: float  # longest random wait before it sends what the window allows, seconds
    queue_wait: float  # longest random wait of each packet below TCP (``waits_in_queue``), seconds
    waits_long: bool  # this wait can exceed a packet's transmission time at the slowest link
    noise: float  # standard deviation of the random part of its delay, seconds
    slack: float  # the most by which this random part may shorten the delay, seconds
    delayed_ack: int  # 1: its receiver acknowledges every second packet
    way: float  # seconds that a packet takes from the sender to the first queue
    start: float  # seconds
    stop: float  # time from which on it sends nothing, seconds
    size: float  # packets that it has to deliver; inf: it never ends
    finished: float  # when the last of them was acknowledged, seconds; NEVER: not yet
    # the sender; packets have the numbers 0, 1, 2, ...
    next: float  # number of the next packet to send; a timeout sets it back
    high: float  # number of the first packet that was never sent
    acked: float  # number of the first packet that is not yet acknowledged
    received: float  # number of the first packet that neither arrived nor is known to be missing
    arrival_sent_at: float  # sending time of the last packet that arrived for the first time
    cwnd: float  # congestion window, packets
    cwnd_cnt: float  # ACKs counted towards the next packet of cwnd (Linux's snd_cwnd_cnt)
    ssthresh: float  # packets
    dupacks: float  # duplicate ACKs in a row
    inflated: float  # packets that fast recovery adds to the window
    pipe: float  # SACK: packets thought to be in the network
    recover_in_flight: float  # the window before the cut, taken as packets in flight (PRR)
    prr_delivered: float  # packets delivered since the cut (PRR)
    prr_out: float  # packets sent since the cut (PRR)
    flight_limit: float  # ns-2's CUBIC: packets allowed in flight after a cut (``limit_flight``)
    latest_sent_at: float  # greatest sending time of the packets that have arrived (Linux)
    phase: int  # ``OPEN`` or ``RECOVERY``
    partial: int  # 1: a partial ACK has come in this recovery (NewReno)
    recover: float  # ``high`` at the last cut of the window
    timed_out: int  # 1: the last cut was at a timeout
    ecn_capable: int  # 1: its packets are marked where others are dropped (ECN)
    marked: int  # 1: an ACK with ECN echo has arrived
    echoed: int  # 1: the last cut was because of an ECN mark
    memory: float  # what the law's ``remember`` returned at the last loss, or the window then
    since: float  # time of that loss; before any loss, the time of the start
    trips: float  # round trips from ``since`` to ``trips_at``, for laws given by ``drift``
    trips_at: float  # time of the last ACK for which ``trips`` was counted
    # laws that act once per round trip (a round), such as Vegas
    round_end: float  # the round ends when this packet is acknowledged
    round_start: float  # time at which the round began
    growth: float  # packets by which each ACK of this round moves the window
    grow_next: int  # Vegas's slow start: 1 in rounds in which the window doubles, else 0
    without: int  # mechanisms that are switched off, a bit each
    base: float  # baseRTT, the least RTT measured, seconds
    rtt_sum: float  # sum of the RTT samples of this round, seconds
    rtt_count: float  # number of these samples
    rtt_min: float  # least of these samples, seconds
    rtt_last: float  # the last RTT, seconds
    rechecks: float  # number of further new ACKs at which it looks for an overdue packet
    deflated: float  # window without the packets that duplicate ACKs have added
    changed: float  # when Vegas last cut its window (with the variants ns2 and paper)
    untimed: float  # packets below this number give no RTT: they were sent at the clock's time 0
    resent: float  # packets below this number may have been sent twice and give no RTT
    places: float  # entries of the array in which ns-2's Vegas stores packets; inf: one per packet
    stale: float  # first packet whose entry in this array still describes an older one
    stale_end: float  # first packet after those
    overdue_factor: float  # factor on the fine timeout; an RTT sample sets it back to 1
    mean_rtt: float  # smoothed RTT, seconds
    rtt_deviation: float  # mean deviation of the RTT from ``mean_rtt`` (gain 1/4), seconds
    # the retransmission timer; BSD keeps its estimates in ticks
    srtt: int  # BSD's smoothed RTT, in eighths of a tick
    rttvar: int  # BSD's mean deviation of the RTT, in quarters of a tick
    rto: float  # retransmission timeout without backoff, seconds
    backoff: float  # factor on the timeout, which doubles at each expiry
    deadline: float  # time at which the timer expires
    boot_time: float  # seconds between the start of the sender's clock and that of the simulation
    timer_kind: int  # what the timer is set for: ``RETRANSMIT``, ``TAIL_PROBE`` or ``REORDERING``
    probed: float  # Linux: no further tail loss probe until all packets below this are acknowledged
    min_rtt: float  # least RTT measured, that of the handshake included, seconds
    timed: float  # number of the packet whose RTT is being measured
    timed_at: float  # when this packet was sent; negative: no packet is being timed
    wait_ends: float  # end of the random wait in progress; NEVER: there is none
    # Linux's CUBIC (``bictcp.py``)
    cnt: float  # number of ACKs per packet of growth
    last_max: float  # W_max, the window at the last loss; 0: no loss is known
    epoch_start: float  # time of the first ACK after the last cut; NEVER: none has come
    origin_point: float  # window at which the cubic curve is flat
    cubic_k: float  # time from the beginning of the epoch to this point (K), 1024ths of a second
    reno_cwnd: float  # window that a Reno flow would have reached since the epoch began
    reno_acks: float  # ACKs counted towards the next packet of this window
    last_cwnd: float  # window at the last computation of ``cnt``
    counted: float  # time of the last computation of ``cnt``
    delay_min: float  # least RTT since the last timeout, seconds
    train_start: float  # HyStart: time at which the present round of ACKs began
    train_last: float  # HyStart: time of the last ACK that followed closely on the one before it
    train_end: float  # HyStart: the round ends when this packet is acknowledged
    train_rtt: float  # HyStart: least RTT in the round, seconds
    train_samples: float  # HyStart: number of RTT samples in the round
    hystart_found: bool  # HyStart has ended slow start
    # a receiver that delays its ACKs
    quick_acks_left: float  # number of further ACKs that are sent without a pause
    delack_packets: float  # number of packets, 0 or 1, whose ACK is being delayed
    duplicate_held: bool  # the ACK of a duplicate is being delayed
    delack_expires: float  # time at which this ACK is sent at the latest
    delack_delay: float  # seconds for which this ACK is delayed at most
    dups_sent: float  # duplicate ACKs sent at once for the packet that is missing now
    dups_for: float  # number of this missing packet
    # a receiver of Linux, which adapts this pause to the gaps between packets
    ack_ticks: float  # ato in clock ticks (icsk_ack.ato); 0: no packet has come
    heard_at: float  # when the last packet came in order, by the sender's clock
    receiver_rtt: float  # seconds: the RTT of the handshake as the receiver measures it
    # the interval of sending that ends at ``time``: in it the flow sends evenly, or not at all
    time: float  # seconds
    event: int  # what happens at its end: ``DATA``, ``TIMER``, ``START``, ``CONNECTED`` or ``REST``
    left_at: float  # time at which the burst under way began to leave
    burst_part: float  # packets of this burst that are simulated together
    late: float  # seconds that the burst's first packet has waited below TCP (``queue_wait``)
    since_queue: float  # work in its first queue when the interval began
    first: float  # sequence number of its first packet
    spread: float  # packets sent evenly over the interval
    burst: float  # packets sent at its end, back to back
    retransmit: float  # number of the packet retransmitted at its end; negative: none
    rate: float  # rate of the packets sent evenly, packets/s
    # its path: the queues that its data cross, then those in which its ACKs meet others' data
    hop: int  # index of its first hop in ``Net.hops``
    hops: int  # number of its hops
    longest_stretch: float  # seconds; no interval lasts longer than 1.5 times this
    transit: int  # number of its parcels on their way to its second and later queues
    awaits_parcels: int  # 1: the sender waits for these parcels
    awaits_since: float  # time since which it waits
    member: int  # index of the scenario's flow to which its results are added
    short_flow: int  # 1: it is one of the short flows of a group
    active: int  # 1: it has started and not ended (counted by Rate-Delay queues)
    acks_lost: float  # ACKs lost in queues on the way back
    first_hole: int  # row of the first hole, a range of missing packets
    holes: int  # row after that of the last hole; 0: there is none
    missing: float  # number of packets in all holes
    owed_loss: float  # synchronised losses: 1 if it must lose a packet because another flow did
    # totals since the start of the run
    sent: float  # data packets, retransmitted ones included
    lost: float  # of these, those that queues have dropped
    retransmits: float  # data packets sent again
    acks: float  # packets whose ACKs reached the sender, packets received twice included
    timeouts: float  # expiries of the retransmission timer
    early_timers: float  # expiries of Linux's other timers (tail loss probe, reordering)
    lone_rtt: float  # greatest RTT of a round trip in which it sent at most one packet, seconds
    arrived: float  # packets of data that have arrived in any order; each counts once
    delivered: float  # packets of ``arrived`` that cumulative ACKs have acknowledged
    rtt_total: float  # sum of the RTTs of the packets acknowledged, also those that give no sample
    rtt_packets: float  # number of these packets
    # ACKs that have been counted already, but arrive only from ``ahead_since`` to ``ahead_until``
    ahead: float  # packets in ``delivered`` that these ACKs acknowledge
    ahead_since: float  # seconds; the present interval of sending begins then
    ahead_until: float  # seconds
    ahead_acks: float  # packets in ``acks`` that belong to these ACKs
    warm: int  # 1: warm-up is over
    mark_delivered: float  # ``delivered`` when warm-up ended; the next five likewise
    mark_sent: float
    mark_lost: float
    mark_retransmits: float
    mark_rtt_total: float
    mark_rtt_packets: float
    mark_beyond: float  # packets that had arrived then behind a missing one (``received_beyond``)
    closed: int  # 1: the flow has stopped, or the run has ended; the next six fields are final
    last_delivered: float  # ``delivered`` at that time; the next five likewise
    last_sent: float
    last_lost: float
    last_retransmits: float
    last_rtt_total: float
    last_rtt_packets: float
    kept: Kept  # the numbers that its law keeps (``Law.state``), and zeros


class Parcel:
    """Packets of one flow that travel together, and the packets dropped directly behind them."""

    back: float  # when its last packet reaches the next queue, or its last ACK the sender
    first: float  # number of the first packet
    packets: float  # number of packets that travel; the receiver gets them
    lost: float  # number of packets dropped directly behind them
    sent_at: float  # when its last packet set out
    rtt_sum: float  # sum of the times that the packets have travelled so far, seconds
    rtt_min: float  # least of these times, seconds
    marked: int  # 1: one of the packets has an ECN mark
    late: float  # seconds that the sender's random wait below TCP delays its ACK
    silent: float  # number of ``packets`` that no ACK answers (``delayed_ack.py``)
    hop: int  # while it waits at a Rate-Delay link: the hop at which it waits; -1: a handshake's
    work: float  # ... and the size of each packet there, in packets of the scenario


class Group(NamedTuple):
    """Packets of one flow that travel together, as functions pass them on.

    A ring buffer keeps such packets as a ``Parcel``. It has the sum of the times that they have
    travelled, because parcels are joined and divided. Here it is the mean, because a wait adds the
    same time for any number of packets.
    """

    first: float  # number of the first packet
    packets: float  # number of packets
    lost: float  # number of packets directly behind them that were lost at queues so far
    rtt_mean: float  # mean of the times that the packets have travelled so far, seconds
    rtt_min: float  # least of these times, seconds
    marked: int  # 1: one of the packets has an ECN mark
    sent_at: float  # when the last packet was sent


class Hop:
    """One queue on the path of one flow, with the flow's packets that are on their way to it.

    These packets travel in groups, called parcels (``Parcel``). Some comments use the word work:
    the sum of the sizes of packets, in units of the scenario's packet size.

    A link with Rate-Delay services (Podlesny and Williamson) sends packets of two classes, R (rate)
    and D (delay). For each class there is a hop that belongs to no flow (``stores`` is 1). Its ring
    buffer holds the waiting packets of the class. The events of R's hop are the ends of the link's
    transmissions. The events of D's hop are changes of the classes' shares of the capacity.
    """

    flow: int  # index in ``Net.flows``
    stores: int  # 1: it holds the packets that wait at a Rate-Delay link
    link: int  # index of the queue in ``Net.links``
    data: int  # 1: data of the flow cross the queue; 0: its ACKs
    last: int  # 1: the next stop is the sender
    work: float  # size of one of its packets here, in packets of the scenario
    block: float  # where ACKs cross: size of one SACK block, in the same unit; 0: no SACK
    block_time: float  # ... and seconds that the receiver's access link takes to send it
    # the order of events at one instant (``queue.arrives_first``, ``route._leads``)
    precedes: int  # 1: an arrival comes before a departure, if all packets have the same size
    wire: float  # seconds on the last wire before the queue; 0: departures always come first
    lead: float  # of several events at one instant, the one with the greatest lead comes first
    early: float  # tiny time by which its events are handled earlier because of their lead, seconds
    to_next: float  # seconds from here to the next queue, in the empty network
    ring: int  # index of its ring buffer's first place in ``Net.rings``
    places: int  # how many groups of packets this ring buffer holds
    head: int  # index in it of the first parcel
    count: int  # number of parcels in it
    most: int  # number of places to which it may grow
    latest: float  # when its last parcel arrives at the next stop
    burst_at: float  # noise: when the last burst set out, seconds
    burst_noise: float  # noise: random delay that all packets of this burst but the first have
    # The fields below describe the flow's packets that arrive at this queue. At the first queue of
    # the flow's path the fields are not used. There the flow's record `Sender` describes the
    # packets that arrive.
    idle: int  # 1: nothing is on its way here
    time: float  # end of the present interval of time; the fields below describe its arrivals
    since_queue: float  # work in the queue when the interval began
    rate: float  # rate of the packets that arrive evenly, packets/s
    first: float  # sequence number of the first packet
    spread: float  # packets that arrive evenly over the interval
    burst: float  # packets that arrive at its end, back to back
    silent: float  # number of these packets that no ACK answers (``delayed_ack.py``)
    lost: float  # packets lost earlier on the path, directly behind these
    rtt: float  # mean time that the packets have travelled so far, seconds
    rtt_min: float  # least time that one of them has travelled so far, seconds
    marked: int  # 1: one of the packets has an ECN mark
    sent_at: float  # when the last of the packets set out, seconds
    ends_parcel: int  # 1: the interval is the rest of its parcel; -1: nothing is coming
    blocks: float  # SACK blocks in the ACK at its end; -1: not known yet (``travel._ask_receiver``)


class Queue:
    """The record of one queue of a link, in one direction: its parameters and its present state.

    A link with Rate-Delay services has two queues in each direction, one for each class of flows.
    In the comments, work is the sum of the sizes of packets, in packets of the scenario's packet
    size.
    """

    capacity: float  # work that it can serve in a second, in packets of the scenario
    buffer: float  # number of packets that can wait
    discipline: int  # ``DROPTAIL`` or ``RED``
    loss_hazard: float  # random loss with probability p: -ln(1 - p)
    min_threshold: float  # RED: thresholds of the average queue, packets
    max_threshold: float
    max_probability: float  # RED: drop probability at the upper threshold
    weight: float  # RED: weight of one packet in the average queue
    ecn: int  # RED, 1: packets are marked instead of dropped
    mark_limit: float  # drop probability above which RED drops packets that it could mark
    gentle: int  # RED, 1: the drop probability rises gradually above the upper threshold
    mixed: int  # 1: packets of several sizes cross it
    packets_per_work: float  # mean number of packets in a packet's worth of work at the link
    largest: float  # ``packets_per_work`` of the largest packets alone
    smallest: float  # ``packets_per_work`` of the smallest packets alone
    leaving: float  # size of the packet that is in transmission or has just left (``stock.py``)
    stock: Floats  # what is at the link, by packet size (``stock.py``)
    oldest: int  # index of the row of ``stock`` at the front of the queue
    rows: int  # number of rows of ``stock`` in use
    whole: float  # number of packets in the rows of whole packets
    fluid_rows: int  # number of the other rows
    packet_rate: float  # arrival rate of the evenly sent packets, packets/s of any size
    partner: int  # Rate-Delay: the queue of the other class; -1: none
    class_weight: float  # k for class R, 1 for class D
    active: float  # number of active flows of the class
    share: float  # part of the capacity that is guaranteed to the class
    store: int  # index of the hop whose ring buffer holds the waiting packets (``turns.py``)
    waiting: float  # number of packets in it
    unsent: float  # work of the class's packet in transmission that is still to be sent
    # how the classes of a Rate-Delay link take turns (``turns.py``)
    class_based: int  # 1: by ns-2's class-based queueing; 0: by figure 2 of the paper
    volume: float  # figure 2: L, the work served in turn
    lag: float  # figure 2: delta L, the work that class D may catch up (in the record of class D)
    turn: int  # class-based: 1 if it is this class's turn (in the record of class R)
    exact_capacity: float  # class-based: the capacity without ns-2's rounding errors
    change: int  # class-based: row of ``Net.shares`` with its next shares (in class D's record)
    round_bytes: float  # class-based: bytes of both classes in one round
    packet_bytes: float  # class-based: the scenario's packet size
    shares_sum: float  # class-based: sum of the shares, 1 but for rounding errors
    credit: float  # class-based: bytes that the class may still send in this round
    idle_limit: float  # class-based: greatest ``mean_idle``, seconds
    mean_idle: float  # class-based: mean pause less that of a class which sends just its share, s
    last_end: float  # class-based: end of its last transmission, seconds
    over_until: float  # class-based: the class counts as over its limit until then, seconds
    held_back: int  # class-based: 1: it has had to wait since it used more than its share
    # class-based: four numbers of both classes together (in class R's record)
    all_limit: float  # their ``idle_limit``
    all_idle: float  # their ``mean_idle``
    all_end: float  # their ``last_end``
    all_until: float  # their ``over_until``
    shift: float  # seconds by which its clock is behind the simulation's
    lateness: float  # longest time by which an arrival was behind this clock; it should be 0
    foreseen: float  # arrival of the last packet of a burst that was simulated in one event
    sampled: int  # number of samples taken
    warm: int  # 1: warm-up is over
    instant: float  # two moments count as one instant if it serves fewer packets between them
    now: float  # time of its clock
    queue: float  # work at the link, that of the packet in transmission included, packets
    handshake_excess: float  # room that a handshake's packet takes in the buffer beyond its work
    handshake_leaves: float  # time at which this packet leaves
    excess: float  # arrivals at the full buffer for which no loser is chosen yet
    overflowed: int  # 1: a packet has found the buffer full
    rate: float  # sum of the rates of evenly arriving work
    even: float  # number of flows whose packets arrive evenly at present
    average: float  # RED's average queue, packets
    idle: float  # RED: seconds without a packet since the last arrival
    early: int  # 1: RED's average is above the lower threshold
    passed: float  # RED: packets since the last drop
    since_loss: float  # random loss: packets that have arrived since the last such loss
    next_loss: float  # random loss: value of this number at which a packet is lost
    arrived: float  # total work that has come to the queue, in packets of the scenario
    lost: float  # total work that was dropped, in the same unit
    served: float  # total work that was sent, in the same unit
    area: float  # the number of waiting packets, integrated over time
    mark_area: float  # ``area`` when warm-up ended
    mark_now: float  # time at which warm-up ended


_STOCK = {"Floats": ("f8", (ROWS, 4))} | KEPT  # the NumPy types of ``Queue.stock`` and ``kept``
_RECORDS = (Sender, Parcel, Hop, Queue)
# the NumPy types of these records
FLOW, PARCEL, HOP, LINK = (layout(record, _STOCK) for record in _RECORDS)


class Net(NamedTuple):
    """The whole simulated network: all records that the compiled functions read and change."""

    flows: Table[Sender]
    hops: Table[Hop]  # the hops of all flows; those of one flow stand together
    links: Table[Queue]  # one queue per link and direction, or two if the link has classes
    copies: Table[Queue]  # of ``links``; ``samples.py`` advances them to the instant of a sample
    rings: Table[Parcel]  # parcels on their way to each hop; at a first hop, ACKs to the flow
    free: NDArray[np.int64]  # one number: the index from which on ``rings`` is not in use
    # What the receivers know, if ACKs cross a queue; otherwise empty. The sender's record has the
    # same facts only after the next ACK has arrived. Times here are by the queue's clock. In use
    # are the fields ``received``, ``acked``, ``first_hole``, ``holes`` and ``missing``, and if
    # ``delayed_ack`` is set also ``delack_packets``, ``delack_expires``, ``quick_acks_left`` and
    # ``heard_at``. Other fields that ``acks`` reads are 0.
    receivers: Table[Sender]
    missing: Floats  # [receiver, hole, column] what the receivers miss (``acks.add_hole``)
    keys: Floats  # [hop] time of the hop's next event, by the simulation's clock
    tree: NDArray[np.int64]  # tournament tree of the hops by their keys; ``tree[1]`` comes next
    shares: Floats  # [change, (queue of class D, time, share of class R)] set by ns-2's script
    # A flow's packets arrive at a queue in intervals, each of which is one event. About so many
    # intervals make up a round trip:
    parts: int  # at most
    calm: int  # at a flow's first queue while no loss is near


@jit
def parcel(rings: Table[Parcel], h: Hop, k: int) -> Parcel:
    """Parcel number ``k`` in the ring buffer of hop ``h``; the first parcel has the number 0.

    ``k`` may be ``h.count``, if the ring buffer is not full: the next parcel is written there.
    """
    place = h.head + k
    return rings[h.ring + (place if place < h.places else place - h.places)]


@jit
def pop(h: Hop) -> None:
    """Remove the first parcel from the ring buffer of hop ``h``."""
    h.head = h.head + 1 if h.head + 1 < h.places else 0
    h.count -= 1
