"""What moves in ``sampled``: a record a flow; and the link."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = 0, 1, 2, 3  # recovery
NONE, UNTIL_LOSS, GAMMA = 0, 1, 2  # slow start
SAME = 1e-9  # packets
TIGHT = 1e-12  # relative tolerance of (S1)

Record = Any  # one element of such an array, read and written by field name
Records = NDArray[Any]
FLOW = np.dtype(
    [
        # what a flow is: times in seconds, windows in packets
        ("rtt", "f8"),  # T, empty network
        ("law", "i8"),  # place in ``BUILT_IN``, or -1
        ("drift_at", "i8"),  # addresses of the compiled rules of a law from outside; 0: none
        ("cut_at", "i8"),
        ("remember_at", "i8"),
        # mechanisms of its stack (``stacks/stack.py``)
        ("backlog_over_base", "b1"),
        ("real_numbers", "b1"),
        ("whole_window", "b1"),
        ("least_of_round", "b1"),
        ("rack", "b1"),
        ("doubling", "i8"),
        ("cut_rounds_up", "b1"),  # a law with its own check cuts by whole packets, rounded down
        ("once", "b1"),  # decides once a round trip
        ("recovery", "i8"),
        ("slow_start", "i8"),
        ("lower", "f8"),  # thresholds of the backlog, after the implementation's rounding
        ("upper", "f8"),
        ("gamma", "f8"),
        ("climb", "f8"),  # factor on the drift: 1/2 with delayed ACKs
        ("decrease", "f8"),
        ("floor", "f8"),
        ("cap", "f8"),
        ("first", "f8"),
        ("measured", "b1"),  # baseRTT is measured; else ``over`` stays
        ("start", "f8"),
        ("stop", "f8"),
        # what moves
        ("on", "b1"),
        ("window", "f8"),  # W
        ("flight", "f8"),  # n
        ("lost", "f8"),  # k: packets lost of which the sender has not heard
        ("gone", "f8"),  # packets lost so far
        ("hear", "f8"),  # round trips until it hears of them; 0: nothing to hear
        ("hold", "f8"),  # round trips of recovery that are left
        ("asleep", "f8"),  # time until which it waits for its timer
        ("backoff", "f8"),  # factor on the next timeout
        ("drain", "f8"),  # packets a round trip by which the flight falls
        ("threshold", "f8"),  # of slow start
        ("slow", "b1"),  # in slow start
        ("even", "i8"),  # Vegas's slow start: 1 where it doubles in this round
        ("drift", "f8"),  # m of this round
        ("part", "f8"),  # of the round trip that is over
        ("over", "f8"),  # x
        ("seen", "f8"),  # integral of s over the packets sent in this round,
        ("sent", "f8"),  # ... those packets
        ("least", "f8"),  # ... and the least s
        ("wide", "f8"),  # window when this round began,
        ("deep", "f8"),  # ... and s
        ("told", "f8"),  # mean s (Linux: least) of the round before, which this round's ACKs tell
        ("still", "f8"),  # rounds since a decision moved the window
        ("memory", "f8"),  # of the law
        ("since", "f8"),  # time of the last loss
        # in a step
        ("grown", "f8"),  # packets that left on top of those that ACKs let go
        ("spilt", "f8"),  # ... of which so many found the buffer full
        ("pace", "f8"),  # of the window, packets a second,
        ("paced", "f8"),  # ... and in the step before
        ("rate", "f8"),  # of delivery when the step began
    ]
)


class Road(NamedTuple):
    """The link."""

    capacity: float
    room: float  # packets that can wait
    loss: float  # probability of random loss
    red: int
    low: float  # RED's thresholds, packets
    high: float
    top: float
    weight: float
    gentle: int
    wait: float  # of the senders before they use an open window: transmission times, at most
