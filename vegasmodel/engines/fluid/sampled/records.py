"""Defines data types of ``sampled``: a sender, the link's state, and the link's constants.

Comments and names of fields use three words as follows:

- A round is a round trip.
- A train consists of the packets that a flow has in flight, if they follow one another closely.
- A block is such a train at a RED queue, for some round trips after a burst (``blocks.py``).
"""

from __future__ import annotations

from typing import NamedTuple

from vegasmodel.engines.kept_numbers import KEPT, Kept
from vegasmodel.engines.tables import jit, layout

SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = range(4)  # in the order of ``laws.law.Recovery``
NEVER = 1e300  # a time that is never reached, seconds
DUPLICATES = 3.0  # duplicate ACKs that tell of a loss
WINDOW_ERROR = 1e-9  # packets: a window so near below a whole number of packets has reached it


class Sender:
    """The parameters and the state of a flow's sender, in seconds and packets."""

    rtt: float  # T: the RTT in the empty network, with the mean wait of its sender
    wait: float  # mean wait of its sender before each packet, a part of ``rtt``
    wait_in_host: float  # mean wait of its sender before each packet, if ``rtt`` leaves it out
    drift: int  # index in ``law.DRIFTS``, or -1 if ``drift_at`` is called
    drift_at: int  # address of the compiled function ``drift`` of a user's law; 0: not a user's law
    cut_at: int  # likewise, for the law's function ``cut``; 0: it has none
    remember_at: int  # likewise, for ``remember``
    update_at: int  # likewise, for ``update``
    keeps_numbers: bool  # its law keeps numbers of its own
    # mechanisms of its stack (``stacks/stack.py``)
    backlog_over_base: bool  # Vegas: the backlog is W (RTT - baseRTT)/baseRTT, not divided by RTT
    real_numbers: bool  # TCP as in the papers: backlogs are not rounded, windows shrink gradually
    whole_window: bool  # Linux: its window is a whole number; it counts ACKs until the window grows
    least_of_round: bool  # Vegas decides by the least RTT of a round, not by the mean
    rack: bool  # Linux: it also detects a lost retransmission, without the timer (RACK)
    doubling: int  # Vegas: in slow start its window doubles in every ``doubling``-th round
    cut_rounds_up: bool  # the window after a cut is rounded up to whole packets
    once_a_round: bool  # its law decides once per round trip
    grows_if_few: bool  # Linux's Vegas: in a round trip of at most two ACKs it counts packets
    acked_at_once: float  # packets that an ACK acknowledges
    samples_train: bool  # it samples the delay, and grows, only while its train passes the queue
    same_rtt: bool  # all RTTs are exactly equal
    in_train: bool  # all RTTs are so alike that its packets follow one another
    in_trains: bool  # RED: in slow start its window grows only while a train of ACKs arrives
    at_red: bool  # the queue is RED, and windows are whole packets
    in_blocks: bool  # RED, two flows, one of them ns-2's Vegas: arrives in blocks (``blocks.py``)
    loses_base: bool  # in blocks, ns-2's Vegas: baseRTT may fall (``short_round.py``)
    in_line: bool  # Linux: the places of all packets of a round trip are known (``line.py``)
    compares: bool  # Linux's CUBIC in line: it compares its window at certain ACKs
    grows_by_acks: bool  # each ACK adds to its window, a real number (``grow_by_acks``)
    recovery: int  # ``SCOREBOARD``, ``HOLE_BY_HOLE``, ``ONE_HOLE`` or ``SLOW_START``
    partial_deflates: bool  # NewReno: partial ACKs deflate its window (RFC 2582, section 3)
    restarts_rounds: bool  # Linux's Vegas: a new round begins at the end of a recovery
    tick: float  # tick of the clock of its timer, seconds; 0: Linux
    timer_slack: float  # seconds by which its timeout exceeds a steady RTT
    longest_rto: float  # its longest timeout, seconds
    most_backoff: float  # largest factor on its timeout
    first_rto: float  # timeout before the first ACK, seconds; 0: a handshake has measured the RTT
    sack_exit_rests: bool  # SACK: the ACK that ends a recovery does not enlarge its window
    halves_in_slow_start: bool  # a cut in slow start at least halves its window
    most_holes: float  # lost packets that a recovery repairs; more of them end in a timeout
    decides_slow_start: bool  # Vegas: in slow start it decides once per round trip
    must_keep_up: bool  # ns-2's Vegas: waits may keep its window from growing (``law.counted``)
    fine_timer: bool  # ns-2's Vegas: it has a second, shorter timeout (``recovery.needed``)
    ends_at_gamma: bool  # a user's law: its slow start also ends at a backlog of ``gamma``
    lower: float  # lower edge of Vegas's dead zone (alpha of a user's law)
    upper: float  # upper edge of Vegas's dead zone (beta of a user's law)
    gamma: float  # backlog above which slow start ends, packets
    drift_factor: float  # factor on the law's drift: 1/2 with delayed ACKs
    steps_down: bool  # its window falls by whole packets, whatever the number of ACKs: ns-2's Vegas
    counts_sent: bool  # its law counts the packets sent in a round trip: ns-2's Vegas, delayed ACKs
    delays_acks: bool  # its receiver acknowledges every second packet
    ack_pause: float  # seconds for which this receiver waits for a second packet
    decrease: float  # factor on its window at a loss, if its law has no function ``cut``
    min_window: float  # packets
    max_window: float  # packets
    holds_at_limit: bool  # ``max_window`` is odd and ACKs are delayed (``growth.held_at_limit``)
    held_alone: float  # packets that then wait at the receiver without a queue; 0: not known
    initial_window: float  # packets
    starts_slowly: bool  # it begins with slow start; not after probes (``probes_base``)
    measures_base: bool  # baseRTT is measured; else ``over_estimate`` stays
    untimed_first: bool  # the packets of its first window give no RTT sample
    start: float  # seconds
    stop: float  # seconds
    number: int  # position of the flow in the scenario
    rank: int  # position among flows that start at once (``senders.rank``)
    # what changes during the simulation
    active: bool  # it has started and not stopped
    cwnd: float  # the window W
    in_flight: float  # the packets in flight, n
    undetected: float  # number of lost packets of which the sender has not heard, k
    lost: float  # packets lost so far
    detection_in: float  # round trips until it hears of its losses; 0: there are none
    hears_in: float  # RED: seconds until it hears of its losses
    recovery_left: float  # round trips that the recovery still takes
    holes: float  # round trips in which this recovery sends lost packets again
    later_delay: float  # queueing delay of the packets sent after the lost one; NEVER: not known
    later_hole: float  # round trips from the second of several losses to the detection of the first
    new_at_end: float  # RED: new packets in flight when this recovery ends
    flight_later: float  # packets in flight in round trip 1 (SACK) or 2 (else) of a recovery
    heard: bool  # an ACK has come
    timeout_ends: float  # time until which it waits for its retransmission timer
    timeouts: float  # number of timeouts so far after more than one loss
    backoff: float  # factor with which an ACK restarts the timer
    timer: float  # factor on the timeout that the timer counts down now
    resends: float  # packets to be sent again after a timeout, and more (``recovery.end_backoff``)
    ignores_duplicates: bool  # after a timeout it counts no duplicate ACKs (``recovery.needed``)
    lost_of_pairs: bool  # slow start lost one of every two packets that an ACK released
    resends_left: float  # packets that Tahoe must still send again, if half of them had arrived
    drain: float  # packets per round trip by which ``in_flight`` falls after a cut
    ssthresh: float  # packets
    in_slow_start: bool
    doubles: int  # slow start of Vegas: 1 if the window doubles in this round
    acks_left: float  # in slow start: ACKs of this round to come; 0 in the first round
    round_drift: float  # packets by which this round moves the window, m
    round_part: float  # part of the present round that is over
    round_lasts: float  # in trains: seconds from the round's first packet to its ACK
    spare_acks: float  # ACKs of its train that come after the one at which the window last grew
    rest: float  # round trips for which its window rests, because too few ACKs were left
    held_back: float  # packets (at most 1) that wait at its receiver for a delayed ACK
    lacks: float  # packets (0 or 1) always held back: a round trip brings this many ACKs less
    place: float  # in line: part of a round trip since the first packet of its train arrived
    silence: float  # in line, RED: round trips from a lost packet's missing ACK to the detection
    rests_for: float  # seconds for which CUBIC does not compare its window
    over_estimate: float  # over-estimate of the propagation delay, x
    untimed: bool  # the ACKs of this round trip give no RTT sample
    delay_sum: float  # sum of the queueing delays of the packets sent in this round
    round_sent: float  # number of these packets
    least_delay: float  # least queueing delay in this round
    burst: float  # packets of this round's burst (slow start, or the end of a recovery)
    next_burst: float  # packets of the burst of the round that begins within this step
    round_delay: float  # queueing delay when this round began
    acked_delay: float  # mean delay (Linux: least) of the last round, as this round's ACKs report
    rounds_at_rest: float  # rounds since the window was last moved by a decision
    memory: float  # what the law's ``remember`` returned at the last loss
    trips: float  # round trips since the last loss; before any loss, since the start
    last_loss: float  # time of the last loss; before any loss, the time of the start
    bunch: float  # packets of its last burst, until their ACKs come (only if the queue is RED)
    bunch_left: float  # round trips until then
    sent_since: float  # packets that it has sent since its last loss
    new_in_flight: float  # RED: new packets in flight when a recovery has filled all holes so far
    new_beyond: float  # RED: packets then outstanding beyond the window (``holes.next_hole``)
    burst_lost: float  # packets of its last burst that RED dropped, until the detection
    # the block that its packets form at RED after a burst (``blocks.py``, ``short_round.py``)
    block: float  # number of its present block; 0: the one that follows the burst
    block_began: float  # time at which the first packet of this block arrives
    block_next: float  # the same of its next block
    block_size: float  # packets in the block
    passed: float  # packets of the block that RED has accepted
    clean: float  # those that it accepted before its first drop in the block; -1: no drop
    first_block: float  # the last block whose losses lie before the end of Vegas's round trip
    lost_before: float  # packets lost in this block and before it
    lost_beyond: float  # packets lost in later blocks
    from_begin: bool  # the losses in later blocks begin with the first packet of a block
    run: float  # successive packets of later blocks that were lost last
    short_round: float  # ACKs in the short round trip that an earlier run leads to; 0: none
    # the train that its packets form at the queue
    arriving: bool  # the train arrives at the queue now
    front: float  # time at which the first packet of the next train arrives
    end: float  # when the last packet of the present train arrives; if none arrives, of the next
    train: float  # packets in the train
    train_rate: float  # packets per second while it arrives
    phase: float  # part of a transmission time from a departure to a packet's arrival
    # the present step
    sent: float  # packets that ACKs release
    window_sent: float  # packets of a whole window that one ACK releases
    at_once: float  # packets of a burst that one ACK releases and that find the buffer not full
    extra: float  # packets sent in addition to one per ACK
    extra_lost: float  # packets sent in addition that found the buffer full
    decided: bool  # its law has decided in this step (``decide_within``)
    in_place: bool  # ``line.line_up`` has set its place
    early_ago: float  # seconds since a train began whose first ACK releases two packets; 0: none
    freed: float  # packets by which this decision has lowered the number in flight
    freed_ago: float  # seconds from the decision to the end of the step
    train_sent: float  # packets of the train that it sends in slow start (``in_trains``)
    arrives: float  # packets of the flow that reach RED in this step, without ``at_once``
    resend_lost: bool  # the packet that it sends again at a loss is lost, too
    interval: float  # seconds per packet of growth while ACKs move the window
    still: float  # seconds at the end of the step in which ACKs do not move it
    growth: float  # growth of the window, packets per second
    growth_before: float  # growth of the window in the step before, packets per second
    delivery_rate: float  # packets delivered per second when the step began
    kept: Kept  # the numbers that its law keeps (``Law.state``), and zeros


class LinkState:
    """The state of the link, of RED, of the arriving trains and of the simulation's loop ``march``.

    A train is the packets in flight of one flow, one behind the other.
    """

    time: float  # t, seconds
    delay: float  # s, seconds
    step: float  # length of the step under way, seconds
    in_hosts: float  # seconds that the link needs to send the packets that wait in hosts
    red_average: float  # RED's average queue, packets
    red_waiting: float  # RED: packets that wait in a burst and after it; 0: ``delay`` tells them
    red_part: float  # RED: part of the next packet that has arrived
    red_count: float  # RED: packets since the last drop, or since p rose above 0; -1: p is 0
    red_passes: float  # RED: probability that it would have dropped none of ``red_count`` packets
    red_gap: float  # RED: it drops a packet when ``red_passes`` falls to this random number
    ordered_until: float  # RED: time until which packets arrive block by block (``blocks.py``)
    draws: int  # number of random numbers drawn so far
    drops: int  # drops in this step; to compute one may take as long as a step (``march.march``)
    # the trains that arrive now (``trains.py``)
    recount: bool  # a flow has started or stopped since they were counted
    trains: int  # number of trains that arrive now
    trains_rate: float  # sum of their rates, packets per second
    trains_variance: float  # variance of the number of packets that they bring, per second
    trains_queue: float  # packets that wait because trains meet
    trains_time: float  # time at which ``trains_queue`` was computed
    trains_due: float  # when the next train begins or ends
    loss_gap: float  # random loss: packets until the next loss
    # what ``march`` keeps for its next call
    paused: bool  # it has paused, and the next call goes on
    due: float  # time of the next start or stop
    sampled: int  # number of samples taken so far


@jit
def moving(flow: Sender) -> float:
    """The number of the flow's packets in flight that are neither lost nor held by the receiver."""
    return flow.in_flight - flow.undetected - flow.held_back


FLOW, LINK_STATE = layout(Sender, KEPT), layout(LinkState)  # the NumPy types of these records


class Bottleneck(NamedTuple):
    """The constants of the link: capacity, buffer, random loss and the parameters of RED."""

    capacity: float  # packets per second
    room: float  # packets that can wait
    loss: float  # probability of random loss
    red: int  # 1: the queue is RED
    min_threshold: float  # lower threshold of RED's average queue, packets
    max_threshold: float  # upper threshold of RED's average queue, packets
    max_probability: float  # RED's drop probability at the upper threshold
    weight: float  # weight of one packet in RED's average queue
    gentle: int  # 1: above the upper threshold RED's probability rises gradually
    max_wait: float  # longest random wait of a sender before it sends, in transmission times
    # addresses of compiled functions (``engines.on_demand``); 0: the scenario does not need them
    meet_at: int  # ``trains.meet``
    drop_at: int  # ``random_drops.drop_at_random``
