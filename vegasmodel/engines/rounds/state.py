"""What the rounds engine knows about flows, queues and packets on their way: flat records.

Numba reads these structured arrays without copies; every count is in packets, every time in
seconds.  A flow lives on a clock of its own, the instants at which its packets reach its first
queue; a queue's clock shows when packets reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vegasmodel.metrics import Floats
from vegasmodel.stacks.stack import Mechanisms
from vegasmodel.support.machine_code import compiled

_Function = TypeVar("_Function", bound=Callable[..., Any])


def jit(function: _Function) -> _Function:
    """Compile, keep the machine code on disk; 1/0 is inf as in NumPy; threads run side by side.

    Arrays belong to the caller and none are made here, so references to them are not counted.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
    return cast(_Function, compiled(function, whole_program=True, **options))


Record = Any  # one element of such an array, read and written by field name
Records = NDArray[Any]

# what a third duplicate ACK starts, by the places of ``laws.law.Recovery``
SCOREBOARD, HOLE_BY_HOLE, ONE_HOLE, SLOW_START = range(4)
DROPTAIL, RED = range(2)
OPEN, RECOVERY = range(2)
DATA, TIMER, START, CONNECTED, REST = range(5)  # what a flow's next event is
EXPIRY, PROBE, REORDERED = range(3)  # what its timer is set for
ROUNDING, ROUNDS, TICKS = 1, 2, 4  # bits of ``without``

_COLUMNS = {"bool": "b1", "float": "f8"}
MECHANISMS = tuple(field.name for field in fields(Mechanisms))
"""Of its stack, where its law has a use for them."""

FLOW = np.dtype(
    [
        *((field.name, _COLUMNS[str(field.type)]) for field in fields(Mechanisms)),
        # the flow's own parameters
        ("rtt", "f8"),  # empty network, T
        ("gap", "f8"),  # seconds that a packet takes over the flow's access link
        ("block", "f8"),  # seconds that one SACK block lengthens an ACK on the link
        ("alpha", "f8"),
        ("beta", "f8"),
        ("gamma", "f8"),
        ("decrease", "f8"),
        ("max_window", "f8"),
        ("first_window", "f8"),
        ("syn", "f8"),  # size of the packets of a handshake, in data packets; 0: none
        # rules called by address (``engines/outside.py``): the window grows and is cut by these
        ("drift_at", "i8"),  # 0: by the engine's own rules
        ("cut_at", "i8"),  # 0: by the factor ``decrease``
        ("remember_at", "i8"),  # 0: the window at the loss
        ("recovery", "i8"),
        ("once", "b1"),  # decides once a round trip, not upon every ACK
        ("rounds", "b1"),  # keeps a clock of round trips
        ("keeps_base", "b1"),  # knows a baseRTT
        ("scoreboard", "b1"),  # knows which packets are missing (SACK)
        ("probes", "b1"),  # slow start ends where more than gamma packets are thought to wait
        ("known_base", "f8"),  # baseRTT held fixed; NaN: the flow measures it
        ("jitter", "f8"),  # seconds that it waits, at most, before it uses an open window
        ("start", "f8"),
        ("stop", "f8"),
        ("size", "f8"),
        # the sender: sequence numbers count packets, each the first one not yet ...
        ("next", "f8"),  # ... sent (falls back after a timeout)
        ("high", "f8"),  # ... ever sent
        ("acked", "f8"),  # ... acknowledged
        ("received", "f8"),  # ... seen by the receiver, holes left aside
        ("received_at", "f8"),  # when the last of those had been sent
        ("cwnd", "f8"),
        ("credit", "f8"),  # Linux's Vegas: ACKs counted towards the next packet (snd_cwnd_cnt)
        ("ssthresh", "f8"),
        ("dups", "f8"),  # duplicate ACKs in a row
        ("inflated", "f8"),  # what fast recovery adds to the window
        ("pipe", "f8"),  # SACK: packets thought to be in the network
        ("flight", "f8"),  # Linux's proportional rate reduction: in flight when it began,
        ("reported", "f8"),  # ... delivered since
        ("released", "f8"),  # ... and sent since
        ("latest", "f8"),  # Linux: when the last packet was sent that is known to have arrived
        ("phase", "i8"),
        ("partial", "i8"),  # NewReno: a partial ACK came in this recovery
        ("recover", "f8"),  # high when the window was last cut
        ("timed_out", "i8"),  # the last cut was a timeout
        ("capable", "i8"),  # its packets are marked where others are dropped (ECN)
        ("marked", "i8"),  # an ACK with ECN echo arrived
        ("echoed", "i8"),  # the last cut answered one
        ("memory", "f8"),  # what ``remember_at`` returned at the last loss
        ("since", "f8"),  # when that was
        # Vegas, once a round
        ("round_end", "f8"),
        ("round_start", "f8"),  # time
        ("growth", "f8"),  # per ACK
        ("grow_next", "i8"),
        ("without", "i8"),  # mechanisms that are switched off, a bit each
        ("base", "f8"),
        ("rtt_sum", "f8"),
        ("rtt_count", "f8"),
        ("rtt_min", "f8"),
        ("rtt_last", "f8"),
        ("worried", "f8"),  # new ACKs upon which it still looks for overdue packets
        ("deflated", "f8"),  # window to fall back to when duplicates have swollen it
        ("changed", "f8"),  # when the window was last cut
        ("resent", "f8"),  # what was sent below has been sent before
        ("untimed", "f8"),  # what was sent below gives no RTT: the sender's clock stood at 0
        ("patience", "f8"),  # factor of the fine timeout since its last sample
        ("smooth", "f8"),  # mean RTT and mean deviation, for Vegas's fine-grained timeout
        ("deviation", "f8"),
        # the retransmission timer, in ticks as BSD kept it
        ("srtt", "i8"),
        ("rttvar", "i8"),
        ("rto", "f8"),
        ("backoff", "f8"),
        ("deadline", "f8"),
        ("boot", "f8"),  # seconds: the phase of the clock's ticks
        ("alarm", "i8"),  # what for: ``EXPIRY``, ``PROBE``, ``REORDERED``
        ("probed", "f8"),  # Linux: behind the last loss probe
        ("least", "f8"),  # least RTT seen, the handshake's included
        ("timed", "f8"),  # the packet that is timed
        ("timed_at", "f8"),  # when it was sent; negative: none is timed
        ("wake", "f8"),  # when the wait is over that runs; NEVER: none does
        # the stretch of sending that ends at ``time``
        ("time", "f8"),
        ("event", "i8"),
        ("left_at", "f8"),  # when the burst under way set out,
        ("some", "f8"),  # ... and so many of its packets are taken at once
        ("since_queue", "f8"),
        ("first", "f8"),  # sequence number of its first packet
        ("spread", "f8"),  # packets sent evenly over it
        ("burst", "f8"),  # packets sent at its end, back to back
        ("again", "f8"),  # the hole retransmitted at its end; negative: none
        ("rate", "f8"),
        # its way: queues that its data cross, then those that its ACKs share with others' data
        ("hop", "i8"),  # index of the first
        ("hops", "i8"),
        ("longest", "f8"),  # seconds that a stretch may last, so that the next queue hears in time
        ("transit", "i8"),  # parcels between its first queue and the ring
        ("asleep", "i8"),  # it waits for them,
        ("slept", "f8"),  # ... since then
        ("member", "i8"),  # of the scenario: which entry of the answer
        ("brief", "i8"),  # one of many short flows of a group
        ("here", "i8"),  # Rate-Delay queues count it as active
        ("acks_lost", "f8"),  # in a queue on the way back
        # ring of packets on their way, and holes
        ("head", "i8"),
        ("count", "i8"),
        ("holes", "i8"),
        ("owes", "f8"),  # a loss taken over from another flow (synchronised losses)
        # totals
        ("sent", "f8"),
        ("lost", "f8"),
        ("retransmits", "f8"),
        ("acks", "f8"),
        ("timeouts", "f8"),
        ("delivered", "f8"),  # for the first time
        ("mark_delivered", "f8"),  # the same counts when warm-up ended
        ("mark_sent", "f8"),
        ("mark_lost", "f8"),
        ("mark_retransmits", "f8"),
        ("mark_acks", "f8"),
        ("rtt_area", "f8"),  # sum of RTT samples since then, and their number
        ("rtt_samples", "f8"),
    ],
    align=True,
)

PARCEL = np.dtype(
    [
        ("back", "f8"),  # when the ACK of its last packet has been answered
        ("first", "f8"),
        ("count", "f8"),  # delivered
        ("lost", "f8"),  # dropped, behind those
        ("sent_at", "f8"),  # when its last packet set out
        ("rtt_sum", "f8"),
        ("rtt_min", "f8"),
        ("marked", "i8"),
    ],
    align=True,
)

HOP = np.dtype(
    [
        ("flow", "i8"),
        ("link", "i8"),
        ("data", "i8"),  # 0: its ACKs cross the queue
        ("last", "i8"),  # the next stop is the sender
        ("work", "f8"),  # of one of its packets, in packets of the scenario
        ("precedes", "i8"),  # its arrivals are taken before a departure of the same instant
        ("ahead", "f8"),  # seconds from here to the next queue, in the empty network
        ("ring", "i8"),  # its parcels lie there in ``Net.rings``,
        ("room", "i8"),  # ... at most so many
        ("latest", "f8"),  # when its last parcel gets there
        # from here on for the second queue on a flow's way and those behind it: the ring of
        # parcels that come, and the stretch of arrivals that ends at ``time``
        ("head", "i8"),
        ("count", "i8"),
        ("idle", "i8"),  # nothing is on its way here
        ("time", "f8"),
        ("since", "f8"),
        ("since_queue", "f8"),
        ("rate", "f8"),
        ("first", "f8"),
        ("spread", "f8"),
        ("burst", "f8"),
        ("lost", "f8"),  # earlier on the way, behind those
        ("rtt", "f8"),  # what the packets have taken so far: mean, and least
        ("least", "f8"),
        ("marked", "i8"),
        ("sent_at", "f8"),
        ("whole", "i8"),  # the stretch is the rest of its parcel
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("capacity", "f8"),
        ("buffer", "f8"),
        ("discipline", "i8"),
        ("loss", "f8"),
        ("min_threshold", "f8"),
        ("max_threshold", "f8"),
        ("max_probability", "f8"),
        ("weight", "f8"),
        ("ecn", "i8"),
        ("mark_limit", "f8"),  # beyond this drop probability marks are not enough
        ("gentle", "i8"),
        ("mixed", "i8"),  # packets of several sizes
        ("crowd", "f8"),  # packets in a packet's worth of work, on average over the queue
        ("largest", "f8"),  # that of the largest packets,
        ("smallest", "f8"),  # ... and of the smallest
        ("stock", "f8", (512, 3)),  # ``rounds_stock``: what waits, by size
        ("oldest", "i8"),
        ("rows", "i8"),
        ("flux", "f8"),  # packets/s that come, of whatever size
        ("partner", "i8"),  # Rate-Delay: the queue of the other class; -1: none
        ("weighs", "f8"),  # k for class R, 1 for class D
        ("active", "f8"),  # flows of the class
        ("share", "f8"),  # of the capacity, when both classes are backlogged
        ("shift", "f8"),  # how far the queue's clock is behind the simulation's
        ("late", "f8"),  # the furthest that an arrival was behind the clock: 0
        ("foreseen", "f8"),  # when the last packet comes of a burst that its event took as a whole
        ("sampled", "i8"),  # instants already kept
        ("warm", "i8"),  # warm-up is over
        ("now", "f8"),
        ("queue", "f8"),  # packets' worth of work that an arrival finds
        ("slim", "f8"),  # what a handshake's packet takes of the buffer, less its work
        ("slim_until", "f8"),  # ... until then
        ("excess", "f8"),  # arrivals beyond a full buffer whose losers are not yet picked
        ("rate", "f8"),  # sum of the flows' arrival rates
        ("average", "f8"),  # RED
        ("idle", "f8"),  # RED: seconds without a packet since the last arrival
        ("early", "i8"),  # RED: the average is above the lower threshold
        ("passed", "f8"),  # RED: packets since the last drop
        ("hazard", "f8"),  # random loss: what the packets since the last one have added up to,
        ("next_hazard", "f8"),  # ... and where the next is lost
        ("arrived", "f8"),
        ("lost", "f8"),
        ("served", "f8"),
        ("area", "f8"),
        ("mark_area", "f8"),
        ("mark_served", "f8"),
        ("mark_now", "f8"),
    ],
    align=True,
)


class Net(NamedTuple):
    """All of a network: what the compiled functions hand on."""

    flows: Records
    hops: Records  # of all flows, each flow's in a row
    links: Records  # queues: one a link and direction, two where it has classes
    rings: Records  # parcels on their way to each hop's queue; a flow's first: ACKs to the flow
    keys: Floats  # [hop] when the hop's next event is, by the simulation's clock
    tree: NDArray[np.int64]  # tournament of these
    parts: int  # at most about so many stretches a flow, queue and round trip
    calm: int  # ... at its first queue while no loss is near


@jit
def around(place: int, ring: Records) -> int:
    """A place in a ring, from one that may have passed its end; a division would take long."""
    return place if place < ring.shape[0] else place - ring.shape[0]
