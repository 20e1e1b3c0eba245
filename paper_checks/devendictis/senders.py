"""Section 2 of De Vendictis and Baiocchi: the behaviour of a Vegas and of a Reno source alone.

The records compare what the paper says about slow start and timeouts with ns-2.
"""

import itertools

from paper_checks.checks import Found, Record
from paper_checks.devendictis.scenes import with_limit
from paper_checks.runs import Runs
from paper_checks.senders import doubling, least_after_timeout, windows

SCENARIO = with_limit(0.08, 20.0)  # a Vegas and a Reno source; each record runs one of them alone
ALONE = "A source alone with an RTT of 2 s; ns-2 2.35 with the defaults of its time."


def _growth_in_two_round_trips(runs: Runs) -> Found:
    """By how many packets Vegas's window grows in two round trips of slow start."""
    W = windows(runs, SCENARIO, "vegas", range(2, 9, 2))
    text = ", ".join(f"{w:g}" for w in W)
    steps = [after - before for before, after in itertools.pairwise(W)]
    return Found(steps, detail=f"Windows of every other round trip: {text}.")


def _after_timeout(runs: Runs) -> Found:
    """Reno's least window after all packets in flight were lost.

    The result's detail has Vegas's least window, too.
    """
    reno, vegas = (least_after_timeout(runs, SCENARIO, law) for law in ("reno", "vegas"))
    return Found(reno, detail=f"By ns-2 Vegas's least window is {vegas:g}.")


RECORDS = (
    Record(
        "section 2, Reno's window grows exponentially in slow start",
        printed=[2.0] * 5,
        compute=lambda runs: doubling(runs, SCENARIO, "reno", range(1, 7)),
        prints=("exponential growth",),
        note="One packet for each ACK, so twice the window after a round trip; computed: window "
        f"over that of the round trip before, from the second on. {ALONE}",
    ),
    Record(
        "section 2, Vegas's slow start: one packet every other round trip",
        printed=[1.0] * 3,
        compute=_growth_in_two_round_trips,
        note=f"Packets by which the window grows in two round trips, from the third on. {ALONE}",
        erratum="It doubles every other round trip: in that round trip each of W ACKs adds a "
        "packet, in the next none does, so W becomes 2 W in two round trips, not W + 1. "
        "'podlesny' II-B says so too.",
    ),
    Record(
        "section 2, Reno's window is one packet after a timeout",
        printed=1,
        compute=_after_timeout,
        prints=("one packet size",),
        note="Packets, after all 20 on their way were lost; ns-2 2.35. The paper says so of both; "
        "its footnote leaves the first window of slow start to the implementation.",
    ),
)
