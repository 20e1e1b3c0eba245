"""What the rounds engine knows about flows, links and packets on their way: flat records.

Numba reads these structured arrays without copies; every count is in packets, every time in
seconds.  A flow lives on a clock of its own, the instants at which its packets reach the link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from vegasmodel.machine_code import forget_stale

forget_stale(__file__)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def jit(function: _Function) -> _Function:
    """Compile, keep the machine code on disk; 1/0 is inf as in NumPy."""
    return cast(_Function, numba.njit(cache=True, error_model="numpy")(function))


Record = Any  # one element of such an array, read and written by field name
Records = NDArray[Any]

VEGAS, RENO, NEWRENO, SACK, TAHOE = range(5)
PAPER, NS2, LINUX = range(3)
DROPTAIL, RED = range(2)
OPEN, RECOVERY = range(2)
DATA, TIMER, START, CONNECTED = range(4)  # what a flow's next event is

FLOW = np.dtype(
    [
        # the flow's own parameters
        ("law", "i8"),
        ("variant", "i8"),
        ("rtt", "f8"),  # empty network, T
        ("alpha", "f8"),
        ("beta", "f8"),
        ("gamma", "f8"),
        ("decrease", "f8"),
        ("max_window", "f8"),
        ("first_window", "f8"),
        ("syn", "f8"),  # size of the packets of a handshake, in data packets; 0: none
        ("known_base", "f8"),  # baseRTT held fixed; NaN: the flow measures it
        ("start", "f8"),
        ("stop", "f8"),
        ("size", "f8"),
        # the sender: sequence numbers count packets, each the first one not yet ...
        ("next", "f8"),  # ... sent (falls back after a timeout)
        ("high", "f8"),  # ... ever sent
        ("acked", "f8"),  # ... acknowledged
        ("received", "f8"),  # ... seen by the receiver, holes left aside
        ("cwnd", "f8"),
        ("ssthresh", "f8"),
        ("dups", "f8"),  # duplicate ACKs in a row
        ("inflated", "f8"),  # what fast recovery adds to the window
        ("pipe", "f8"),  # SACK: packets thought to be in the network
        ("mend", "f8"),  # SACK: next hole to retransmit
        ("flight", "f8"),  # Linux's proportional rate reduction: in flight when it began,
        ("reported", "f8"),  # ... delivered since
        ("released", "f8"),  # ... and sent since
        ("phase", "i8"),
        ("recover", "f8"),  # high when the window was last cut
        ("timed_out", "i8"),  # the last cut was a timeout
        ("marked", "i8"),  # an ACK with ECN echo arrived
        # Vegas, once a round
        ("round_end", "f8"),
        ("round_start", "f8"),  # time
        ("growth", "f8"),  # per ACK
        ("grow_next", "i8"),
        ("base", "f8"),
        ("rtt_sum", "f8"),
        ("rtt_count", "f8"),
        ("rtt_min", "f8"),
        ("rtt_last", "f8"),
        ("worried", "f8"),  # partial ACKs upon which it still looks for overdue packets
        ("smooth", "f8"),  # mean RTT and mean deviation, for Vegas's fine-grained timeout
        ("deviation", "f8"),
        # the retransmission timer, in ticks as BSD kept it
        ("srtt", "i8"),
        ("rttvar", "i8"),
        ("rto", "f8"),
        ("backoff", "f8"),
        ("deadline", "f8"),
        ("timed", "f8"),
        ("timed_at", "f8"),
        # the stretch of sending that ends at ``time``
        ("time", "f8"),
        ("event", "i8"),
        ("since", "f8"),
        ("since_queue", "f8"),
        ("first", "f8"),  # sequence number of its first packet
        ("spread", "f8"),  # packets sent evenly over it
        ("burst", "f8"),  # packets sent at its end, back to back
        ("again", "f8"),  # the hole retransmitted at its end; negative: none
        ("rate", "f8"),
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
        ("gentle", "i8"),
        ("now", "f8"),
        ("queue", "f8"),  # packets' worth of work that an arrival finds
        ("excess", "f8"),  # arrivals beyond a full buffer whose losers are not yet picked
        ("rate", "f8"),  # sum of the flows' arrival rates
        ("average", "f8"),  # RED
        ("idle", "f8"),  # RED: seconds without a packet since the last arrival
        ("urge", "f8"),  # RED: sum of drop probabilities since the last drop
        ("next_urge", "f8"),
        ("hazard", "f8"),  # random loss, likewise
        ("next_hazard", "f8"),
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
