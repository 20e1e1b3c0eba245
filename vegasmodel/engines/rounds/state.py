"""The state of the simulator ``rounds``: a record for each flow, queue, and group of packets.

The records are NumPy arrays that compiled code reads without copies. Counts are in packets, times
are in seconds. The times in a flow's record are those at which its packets reach its first queue,
not those at which they leave the sender. Each queue has its own clock, which may be behind the
clock of the simulation by up to ``Queue.shift`` seconds.
"""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vegasmodel.engines.tables import Table as Table
from vegasmodel.engines.tables import array as array
from vegasmodel.engines.tables import jit as any_index
from vegasmodel.engines.tables import layout
from vegasmodel.metrics import Floats
from vegasmodel.stacks.stack import Mechanisms

jit = functools.partial(any_index, negative_indices=False)
inlined = functools.partial(jit, forceinline=True)  # a step that almost every packet takes
rare = functools.partial(jit, rare=True)  # a step that few packets take
apart = functools.partial(jit, apart=True)  # a step of many callers, needed in few scenarios

# what a third duplicate ACK starts, by the places of ``laws.law.Recovery``
SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = range(4)
DROPTAIL, RED = range(2)
OPEN, RECOVERY = range(2)
DATA, TIMER, START, CONNECTED, REST = range(5)  # what a flow's next event is
RETRANSMIT, TAIL_PROBE, REORDERING = range(3)  # what its timer is set for
WITHOUT_ROUNDING, WITHOUT_ROUNDS, WITHOUT_TICKS = 1, 2, 4  # bits of ``without``

MECHANISMS = tuple(field.name for field in fields(Mechanisms))
"""Of its stack, where its law has a use for them."""
ROWS = 512  # of ``Queue.stock``


class Sender(Mechanisms):
    """The record of a flow: its sender, its receiver, and the packets that it sends next."""

    # the flow's own parameters
    rtt: float  # empty network, T
    gap: float  # seconds that a packet takes over the flow's access link
    block: float  # seconds that one SACK block lengthens an ACK on the link
    alpha: float
    beta: float
    gamma: float
    decrease: float
    max_window: float
    first_window: float
    syn: float  # size of the packets of a handshake, in data packets; 0: none
    # rules called by address (``engines/outside.py``): the window grows and is cut by these
    rules: int  # whose rules move the window: a place in ``rules.py``
    drift_at: int  # 0: none is called by address
    cut_at: int  # 0: by the factor ``decrease``
    remember_at: int  # 0: the window at the loss
    recovery: int
    once: bool  # decides once a round trip, not upon every ACK
    rounds: bool  # keeps a clock of round trips
    keeps_base: bool  # knows a baseRTT
    scoreboard: bool  # knows which packets are missing (SACK)
    probes: bool  # slow start ends where more than gamma packets are thought to wait
    known_base: float  # baseRTT held fixed; NaN: the flow measures it
    jitter: float  # seconds that it waits, at most, before it uses an open window
    queue_wait: float  # ... or each of its packets, at most, below TCP (``waits_in_queue``)
    waits_long: bool  # longer than the slowest link needs to send a packet
    noise: float  # seconds, standard deviation of its propagation delay,
    slack: float  # ... which may not fall below 0: seconds of it
    delayed_ack: int  # its receiver answers every second packet
    start: float
    stop: float
    size: float
    # the sender: sequence numbers count packets, each the first one not yet ...
    next: float  # ... sent (falls back after a timeout)
    high: float  # ... ever sent
    acked: float  # ... acknowledged
    received: float  # ... seen by the receiver, holes left aside
    received_at: float  # when the last of those had been sent
    cwnd: float
    cwnd_cnt: float  # Linux's Vegas: ACKs counted towards the next packet (snd_cwnd_cnt)
    ssthresh: float
    dupacks: float  # duplicate ACKs in a row
    inflated: float  # what fast recovery adds to the window
    pipe: float  # SACK: packets thought to be in the network
    recover_in_flight: float  # Linux's proportional rate reduction: in flight when it began,
    prr_delivered: float  # ... delivered since
    prr_out: float  # ... and sent since
    flight_limit: float  # ns-2's CUBIC: packets it allowed in flight when a wait after a cut began
    latest: float  # Linux: when the last packet was sent that is known to have arrived
    phase: int
    partial: int  # NewReno: a partial ACK came in this recovery
    recover: float  # high when the window was last cut
    timed_out: int  # the last cut was a timeout
    ecn_capable: int  # its packets are marked where others are dropped (ECN)
    marked: int  # an ACK with ECN echo arrived
    echoed: int  # the last cut answered one
    memory: float  # what ``remember_at`` returned at the last loss
    since: float  # when that was
    # Vegas, once a round
    round_end: float
    round_start: float  # time
    growth: float  # per ACK
    grow_next: int
    without: int  # mechanisms that are switched off, a bit each
    base: float
    rtt_sum: float
    rtt_count: float
    rtt_min: float
    rtt_last: float
    rechecks: float  # new ACKs upon which it still looks for overdue packets
    deflated: float  # window to fall back to when duplicates have swollen it
    changed: float  # when the window was last cut
    untimed: float  # what was sent below gives no RTT: the sender's clock stood at 0
    resent: float  # what was sent below has been sent before
    ring: float  # places for packets in its memory; inf: one for each packet
    stale: float  # packets whose places in the ring hold an older packet: from this one on,
    stale_end: float  # ... and before this one
    overdue_factor: float  # factor of the fine timeout since its last sample
    mean_rtt: float  # mean RTT and mean deviation, for Vegas's fine-grained timeout
    rtt_deviation: float
    # the retransmission timer, in ticks as BSD kept it
    srtt: int
    rttvar: int
    rto: float
    backoff: float
    deadline: float
    boot_time: float  # seconds: the phase of the clock's ticks
    timer_kind: int  # what for: ``RETRANSMIT``, ``TAIL_PROBE``, ``REORDERING``
    probed: float  # Linux: behind the last loss probe
    min_rtt: float  # least RTT seen, the handshake's included
    timed: float  # the packet that is timed
    timed_at: float  # when it was sent; negative: none is timed
    wait_ends: float  # when the wait is over that runs; NEVER: none does
    # Linux's CUBIC (``bictcp.py``)
    cnt: float  # ACKs per packet
    last_max: float  # W_max; 0: no loss is known
    epoch_start: float  # when the first ACK after a recovery came; NEVER: none has
    origin_point: float  # window at which the cubic is flat,
    cubic_k: float  # ... so many seconds after the epoch began
    reno_cwnd: float  # of a Reno, counted from the epoch on,
    reno_acks: float  # ... and the ACKs towards its next packet
    last_cwnd: float  # the window of the last count,
    counted: float  # ... and when that was
    delay_min: float  # least RTT seen
    train_start: float  # HyStart: when the round of ACKs began,
    train_last: float  # ... the last ACK that followed the one before it closely,
    train_end: float  # ... the packet that ends the round,
    train_rtt: float  # ... and its least RTT,
    train_samples: float  # ... of so many
    hystart_found: bool  # slow start has ended
    # a receiver that delays its ACKs
    quick_acks_left: float  # so many more ACKs do not wait
    delack_packets: float  # packets whose ACK waits, 0 or 1,
    delack_expires: float  # ... at most until then,
    delack_pause: float  # ... which is so many seconds
    dups_sent: float  # duplicate ACKs that it has sent at once,
    dups_for: float  # ... for this missing packet
    # ... and adapts its pause to the gaps between packets (Linux)
    ack_ticks: float  # ticks of the pause, icsk_ack.ato; 0: no packet has come
    heard_at: float  # when the last packet came in order
    receiver_rtt: float  # seconds: the RTT of the handshake as the receiver measures it
    # the stretch of sending that ends at ``time``
    time: float
    event: int
    left_at: float  # when the burst under way set out,
    burst_part: float  # ... and so many of its packets are taken at once
    late: float  # seconds that its first packet has waited below TCP (``queue_wait``)
    since_queue: float
    first: float  # sequence number of its first packet
    spread: float  # packets sent evenly over it
    burst: float  # packets sent at its end, back to back
    retransmit: float  # the hole retransmitted at its end; negative: none
    rate: float
    # its way: queues that its data cross, then those that its ACKs share with others' data
    hop: int  # index of the first
    hops: int
    longest_stretch: float  # seconds that a stretch may last, so that the next queue hears in time
    transit: int  # parcels between its first queue and the ring
    awaits_parcels: int  # it waits for them,
    awaits_since: float  # ... since then
    member: int  # of the scenario: which entry of the answer
    short_flow: int  # one of many short flows of a group
    active: int  # Rate-Delay queues count it as active
    acks_lost: float  # in a queue on the way back
    # ring of packets on their way, and holes
    head: int
    count: int
    holes: int
    owed_loss: float  # a loss taken over from another flow (synchronised losses)
    # totals
    sent: float
    lost: float
    retransmits: float
    acks: float
    timeouts: float
    early_timers: float  # ... of other timers: Linux's, before the retransmission timer
    delivered: float  # for the first time
    ahead: float  # ... of these, by the ACKs that return between the two times below
    ahead_since: float
    ahead_until: float
    mark_delivered: float  # the same counts when warm-up ended
    mark_sent: float
    mark_lost: float
    mark_retransmits: float
    mark_acks: float
    rtt_area: float  # sum of RTT samples since then, and their number
    rtt_samples: float


class Receiver:
    """What a receiver with SACK knows about the packets that have arrived.

    The sender's record contains the same facts only after the next ACK has arrived.
    """

    received: float
    received_at: float
    acked: float
    holes: int
    overdue_checks: bool
    block: float  # size of one SACK block, in packets of the scenario; 0: no SACK


class Parcel:
    """Packets of one flow that travel together, and the packets dropped directly behind them."""

    back: float  # when the ACK of its last packet has been answered
    first: float  # the sequence number of the first packet
    count: float  # of packets that travel; the receiver gets them
    lost: float  # of packets that were dropped; their numbers follow those of the others
    sent_at: float  # when its last packet set out
    rtt_sum: float
    rtt_min: float
    marked: int
    late: float  # seconds that the sender's random wait below TCP delays its ACK


class Hop:
    """One queue on the path of one flow, with the flow's packets that are on their way to it."""

    flow: int
    link: int
    data: int  # 0: its ACKs cross the queue
    last: int  # the next stop is the sender
    work: float  # of one of its packets, in packets of the scenario
    precedes: int  # its arrivals are taken before a departure of the same instant
    lead: float  # 0 to 1: of arrivals of one instant, that of the greatest comes first,
    early: float  # ... so many seconds early
    to_next: float  # seconds from here to the next queue, in the empty network
    ring: int  # its parcels lie there in ``Net.rings``,
    room: int  # ... in a circle of so many places,
    most: int  # ... which may grow up to so many
    latest: float  # when its last parcel gets there
    # A flow's packets cross one or more queues. The fields below are used only for the second queue
    # and later ones. They describe two sets of packets: those that are on their way to this queue,
    # in a ring buffer of groups, and those that reach it in the time step that ends at ``time``.
    head: int
    count: int
    idle: int  # nothing is on its way here
    time: float
    since: float
    since_queue: float
    rate: float
    first: float
    spread: float
    burst: float
    lost: float  # earlier on the way, behind those
    rtt: float  # what the packets have taken so far: mean, and least
    min_rtt: float
    marked: int
    sent_at: float
    ends_parcel: int  # the stretch is the rest of its parcel


class Queue:
    """One queue of a link in one direction.

    A link with Rate-Delay services has two queues in each direction, one for each class.
    """

    capacity: float
    buffer: float
    seat: float  # packets in transmission: 1, or a class's part of the link's time
    discipline: int
    loss_hazard: float  # of a packet at random loss p: -ln(1 - p)
    min_threshold: float
    max_threshold: float
    max_probability: float
    weight: float
    ecn: int
    mark_limit: float  # beyond this drop probability marks are not enough
    gentle: int
    mixed: int  # packets of several sizes
    packets_per_work: float  # packets in a packet's worth of work, on average over the queue
    largest: float  # that of the largest packets,
    smallest: float  # ... and of the smallest
    stock: Floats  # ``stock.py``: what waits, by size
    oldest: int
    rows: int
    whole: float  # packets in rows of whole packets,
    fluid_rows: int  # ... and the number of the other rows
    packet_rate: float  # packets/s that come, of whatever size
    partner: int  # Rate-Delay: the queue of the other class; -1: none
    class_weight: float  # k for class R, 1 for class D
    active: float  # flows of the class
    share: float  # of the capacity, when both classes are backlogged
    memory: float  # seconds that ``recent`` is an average over: the longest RTT of the empty path
    recent: float  # packets/s that came lately and were not lost,
    counted: float  # ... and how many had come
    noted: float  # ... when it was last updated
    shift: float  # how far the queue's clock is behind the simulation's
    lateness: float  # the furthest that an arrival was behind the clock: 0
    foreseen: float  # when the last packet comes of a burst that its event took as a whole
    sampled: int  # instants already kept
    warm: int  # warm-up is over
    instant: float  # packets: what it serves meanwhile counts as one instant
    now: float
    queue: float  # packets' worth of work that an arrival finds
    handshake_excess: float  # what a handshake's packet takes of the buffer, less its work
    handshake_leaves: float  # ... until then
    excess: float  # arrivals beyond a full buffer whose losers are not yet picked
    rate: float  # sum of the flows' arrival rates
    even: float  # flows whose packets arrive evenly, at these rates
    average: float  # RED
    idle: float  # RED: seconds without a packet since the last arrival
    early: int  # RED: the average is above the lower threshold
    passed: float  # RED: packets since the last drop
    hazard: float  # random loss: what the packets since the last one have added up to,
    next_hazard: float  # ... and where the next is lost
    arrived: float
    lost: float
    served: float
    area: float  # the number of waiting packets, integrated over time
    mark_area: float
    mark_now: float


_STOCK = {"Floats": ("f8", (ROWS, 4))}
_RECORDS = (Sender, Receiver, Parcel, Hop, Queue)
FLOW, RECEIVER, PARCEL, HOP, LINK = (layout(record, _STOCK) for record in _RECORDS)


class Net(NamedTuple):
    """The whole simulated network: all records that the compiled functions read and change."""

    flows: Table[Sender]
    hops: Table[Hop]  # of all flows, each flow's in a row
    links: Table[Queue]  # queues: one a link and direction, two where it has classes
    rings: Table[
        Parcel
    ]  # parcels on their way to each hop's queue; a flow's first: ACKs to the flow
    free: NDArray[np.int64]  # of one number: from there on ``rings`` are not in use
    receivers: Table[Receiver]  # of all flows, or none if no queue holds ACKs
    missing: Floats  # [receiver, hole, column] what they miss, as the senders' holes
    keys: Floats  # [hop] when the hop's next event is, by the simulation's clock
    tree: NDArray[np.int64]  # tournament of these
    parts: int  # at most about so many stretches a flow, queue and round trip
    calm: int  # ... at its first queue while no loss is near


@jit
def around(place: int, ring: Table[Parcel]) -> int:
    """The index of a record in a ring buffer; at the buffer's end the indices begin again at 0.

    ``place`` is less than twice the length of the buffer. A comparison and a subtraction are faster
    than the operator ``%``.
    """
    return place if place < ring.shape[0] else place - ring.shape[0]
