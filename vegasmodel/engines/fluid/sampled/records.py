"""The records of ``sampled``: a flow's sender, the link's state and the link's constants."""

from __future__ import annotations

from typing import NamedTuple

from vegasmodel.engines.tables import layout

SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = range(4)  # by the places of ``laws.law.Recovery``
NONE, UNTIL_LOSS, GAMMA = range(3)  # slow start, by the places of ``laws.law.SlowStart``
NEVER = 1e300  # seconds
DUPLICATES = 3.0  # duplicate ACKs that tell of a loss
WINDOW_ERROR = 1e-9  # packets: a window so near below a whole number of packets has reached it


class Sender:
    """The record of a flow's sender: its parameters and its state; seconds and packets."""

    rtt: float  # T, empty network
    law: int  # place in ``BUILT_IN``, or -1
    drift_at: int  # addresses of the compiled rules of a law from outside; 0: none
    cut_at: int
    remember_at: int
    # mechanisms of its stack (``stacks/stack.py``)
    backlog_over_base: bool
    real_numbers: bool
    whole_window: bool
    least_of_round: bool
    rack: bool
    doubling: int
    cut_rounds_up: bool  # a law with its own check cuts by whole packets, rounded down
    once_a_round: bool  # decides once a round trip
    recovery: int
    partial_deflates: bool
    slow_start: int
    lower: float  # thresholds of the backlog, after the implementation's rounding
    upper: float
    gamma: float
    drift_factor: float  # 1/2 with delayed ACKs
    decrease: float
    min_window: float
    max_window: float
    initial_window: float
    measures_base: bool  # baseRTT is measured; else ``over_estimate`` stays
    start: float
    stop: float
    # what moves
    active: bool
    cwnd: float  # W
    in_flight: float  # n
    undetected: float  # k: packets lost of which the sender has not heard
    lost: float  # packets lost so far
    detection_in: float  # round trips until it hears of them; 0: nothing to hear
    recovery_left: float  # round trips
    holes: float  # packets that this recovery sends again,
    later_hole: float  # part of a round trip between the second of several losses and their news
    flight_later: float  # packets in flight in the second round trip of a recovery hole by hole
    timeout_ends: float  # time until which it waits for its timer
    timeouts: float  # waits for the timer so far, after several losses
    backoff: float  # factor on the next timeout
    lost_of_pairs: bool  # of two packets that an ACK in slow start released, each time one
    resends_left: float  # packets that it still sends again before it reaches what has arrived
    drain: float  # packets per round trip by which ``in_flight`` falls
    ssthresh: float
    in_slow_start: bool
    doubles: int  # Vegas's slow start: 1 where it doubles in this round
    round_drift: float  # m of this round
    round_part: float  # of the round trip that is over
    over_estimate: float  # x
    delay_sum: float  # integral of s over the packets sent in this round,
    round_sent: float  # ... those packets
    least_delay: float  # ... and the least s
    burst: float  # packets of this round that came in a train, one beyond each ACK's
    next_burst: float  # ... and of the next round, within this step
    round_delay: float  # s when this round began
    acked_delay: float  # mean s (Linux: least) of the round before, which this round's ACKs tell
    rounds_at_rest: float  # rounds since a decision moved the window
    memory: float  # of the law
    last_loss: float  # time
    # the train that its packets form at the queue
    arriving: bool  # it arrives now
    front: float  # time when the next train's first packet arrives,
    end: float  # ... and when the last packet of this one arrives, or of the next
    train: float  # packets in it
    train_rate: float  # packets per second while it arrives
    phase: float  # of a transmission time, from a departure to the arrival of one of its packets
    # in a step
    sent: float  # packets that ACKs let go
    window_sent: float  # packets of a whole window that one ACK let go
    extra: float  # packets that left on top of those that ACKs let go
    extra_lost: float  # ... of which so many found the buffer full
    interval: float  # seconds in which the window grew by a packet while ACKs moved it,
    still: float  # ... and seconds at the end of the step in which they did not
    growth: float  # of the window, packets per second,
    growth_before: float  # ... and in the step before
    delivery_rate: float  # packets per second, when the step began


class LinkState:
    """The link's state: time, queueing delay, RED's state, count of random numbers drawn."""

    time: float  # t, seconds
    delay: float  # s, seconds
    step: float  # length of the step under way, seconds
    red_average: float  # packets
    red_passed: float  # RED: sum of p over the packets since its last drop,
    red_gap: float  # ... and where the next falls
    draws: int  # by chance, so far
    # the trains that arrive now (``trains.py``)
    trains: int
    trains_rate: float  # of all together, packets per second
    trains_variance: float  # of their number of packets, per second
    trains_queue: float  # packets that wait behind trains that have met,
    trains_time: float  # ... at this time
    trains_due: float  # when the next train begins or ends
    loss_gap: float  # random loss: what is left of the sum of -ln(1 - p) until the next


FLOW, LINK_STATE = layout(Sender), layout(LinkState)


class Bottleneck(NamedTuple):
    """The constants of the link: capacity, buffer, random loss and the parameters of RED."""

    capacity: float  # packets per second
    room: float  # packets that can wait
    loss: float  # probability of random loss
    red: int
    min_threshold: float  # of RED's average, packets
    max_threshold: float
    max_probability: float
    weight: float
    gentle: int
    max_wait: float  # of the senders before they use an open window: transmission times, at most
