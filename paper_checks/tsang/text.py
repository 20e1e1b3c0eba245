"""Sections 1 to 3.2 of Tsang and Chang: definitions and the arithmetic of the network.

Each statement has a record, which compares the printed value with ours.  x2 is the delay of the
second connection's last link in ms.
"""

import numpy as np

from paper_checks.checks import (
    ARITHMETIC,
    Found,
    Record,
    by_theory,
    formula,
    from_printed_numbers,
    rounding,
)
from paper_checks.runs import Runs, largest_swing
from paper_checks.tsang.replay import alone, replay
from paper_checks.tsang.scenes import BITS_PER_PACKET, CAPACITY, X2_IN_MS, base_rtt, two_connections
from vegasmodel.metrics import jain

QUOTED = "Quoted from another paper, whose link rate and delays our copy of the paper lacks."
UNLIMITED = tuple(x2 for x2 in X2_IN_MS if x2 <= 60)  # ms; beyond, the window of 30 is the limit
SHORTEST, AT_30 = 13.211, 71.211  # ms, section 3.1: least RTTs of connection 1, of 2 at x2 = 30 ms
EXPECTED_1 = 2422285  # bit/s, expected rate of connection 1 in table 3


def introduction() -> list[Record]:
    """The records of section 1: Jain's index, and throughput ratios that the paper quotes.

    Our copy of the paper lacks the formula of the index, but states its value in some cases.
    """
    return [
        formula(
            "section 1, index of k of n equal shares",
            printed=[0.5, 0.75, 1.0],
            compute=by_theory([jain([1, 0]), jain([1, 1, 1, 0]), jain([2, 2])]),
            tolerance=1e-12,
            note="k/n for 1 of 2, 3 of 4, 2 of 2: (sum b)^2/(n sum b^2). The formula itself is "
            f"missing from our copy. {ARITHMETIC}",
        ),
        Record(
            "section 1, index 0.9 means 2/3 for one of two",
            printed=0.9,
            compute=by_theory(jain([2, 1])),
            tolerance=1e-12,
            note=f"(2 + 1)^2/(2 (4 + 1)). {ARITHMETIC}",
        ),
        Record(
            "section 1, 300 % between alpha = 1 and beta = 3",
            printed=300,
            compute=from_printed_numbers(_most_between(1.0, 3.0)),
            tolerance=1e-9,
            note="Largest ratio of two rates in the set alpha/Delta <= rate <= beta/Delta, which "
            f"can be no other than beta/alpha. {ARITHMETIC}",
        ),
        Record(
            "section 1, throughput ratios of Vegas and of Reno by delay",
            printed=[1.09, 1.33, 1.35, 37.12],
            blocked=QUOTED,
        ),
        Record(
            "section 1, Reno over Vegas from buffer 4 to 50",
            printed=[0.535, 11.73],
            blocked=QUOTED,
        ),
    ]


def _most_between(alpha: float, beta: float) -> float:
    """Largest ratio, in percent, of two flows' rates with any backlogs from alpha to beta."""
    from vegasmodel.equilibrium import bands

    band = bands.equilibria([alpha, alpha], [beta, beta], [0.0, 0.0], CAPACITY)
    _, most = band.ratio_range
    return 100 * float(most[0, 1])


def _single_window_stays() -> Found:
    """Whether a single source's window does not change after 30 s, at each delay of UNLIMITED."""
    # packets, largest less least window
    swings = [np.ptp([r.window for r in alone(x2).decisions(30.0)]) for x2 in UNLIMITED]
    return Found(max(swings) == 0.0, detail=f"They move by {max(swings):g} packets after 30 s.")


def _one_to_three_packets_wait() -> Found:
    """Whether a single source has 1 to 3 packets more in its window than the empty path holds.

    The empty path holds throughput times baseRTT.  Only whole packets of the window count.
    """
    found = []  # packets, at each delay of UNLIMITED
    for x2 in UNLIMITED:
        source = alone(x2)
        window = float(np.mean([int(r.window) for r in source.decisions(30.0)]))
        found.append(window - source.rate(30.0) * base_rtt(x2))
    return Found(
        min(found) >= 1.0 and max(found) <= 3.0,
        detail=f"{min(found):.2f} to {max(found):.2f} packets.",
    )


def _all_move_with_equal_thresholds() -> Found:
    """Whether all windows go on changing with equal thresholds, and none with alpha 1, beta 3."""

    def moving(alpha: float, beta: float) -> int:
        """The number of windows that change after 30 s, of two connections at each delay."""
        both = [connection for x2 in X2_IN_MS for connection in replay(x2, alpha, beta)]
        return sum(bool(np.ptp([r.window for r in c.decisions(30.0)])) for c in both)

    equal = [moving(delta, delta) for delta in (1.0, 2.0, 3.0)]
    apart = moving(1.0, 3.0)
    return Found(
        min(equal) == 2 * len(X2_IN_MS) and apart == 0,
        detail=f"With alpha = beta of 1, 2, 3: {', '.join(map(str, equal))} of 26 windows move; "
        f"with alpha 1, beta 3: {apart}.",
    )


def rules() -> list[Record]:
    """The records of section 2: the effects of the window rule."""
    single = (
        "'In the absence of other connections': one source over each of the 8 delays from 1 to 60 "
        "ms, alpha 1, beta 3, from 30 s on, packet by packet with the printed rule "
        "(paper_checks/tsang/replay.py). With longer delays the window of 30 is the limit."
    )
    return [
        Record(
            "section 2.1, the window rule keeps alpha to beta packets in the network",
            "equation",
            compute=lambda _: _one_to_three_packets_wait(),
            note="The text has 'extra bytes', read as packets, the unit of alpha and beta. These "
            "are the whole packets of the window less throughput times the RTT of the empty path. "
            f"{single}",
            source="replay",
        ),
        Record(
            "section 2.1, the window converges to a fixed value",
            compute=lambda _: _single_window_stays(),
            note=single,
            source="replay",
        ),
        Record(
            "section 2.2, rule of Enhanced Vegas: no window stays fixed any more",
            "equation",
            compute=lambda _: _all_move_with_equal_thresholds(),
            note="Section 1: equal thresholds remove the range of backlogs in which a window "
            "stays. We count the windows that move after 30 s, of 2 connections at 13 delays, "
            "packet by packet with the printed rules (paper_checks/tsang/replay.py).",
            source="replay",
        ),
    ]


def _still_after_5_s(runs: Runs) -> Found:
    """Whether no window of both connections moves after 5 s, by ns-2 and by the printed rule.

    It must be so at each delay x2 of the second connection's last link. By the printed rule it must
    also be so whichever connection's first packet arrives first at the shared link.
    """
    # by x2 in ms: how far a window moves, packets
    by_ns2 = {x2: largest_swing(runs(two_connections(x2, warmup=5.0))) for x2 in X2_IN_MS}
    by_rule = {
        x2: max(
            float(np.ptp([r.window for r in connection.decisions(5.0)]))
            for longer_first in (False, True)
            for connection in replay(x2, longer_first=longer_first)
        )
        for x2 in X2_IN_MS
    }
    moving = [[x2 for x2, move in m.items() if move > 0] for m in (by_ns2, by_rule)]
    texts = [f"x2 = {', '.join(map(str, m))} ms" if m else "none" for m in moving]
    return Found(
        not any(moving),
        detail=f"Windows that still move: {texts[0]} by ns-2, {texts[1]} by the printed rule.",
    )


def network() -> list[Record]:
    """The records of section 3.1 and figure 1, which describe the network of two connections.

    x2 is the delay of the last link of connection 2 in ms; that of connection 1 has 1 ms.
    """
    rounded = "Tolerance: rounding of the print."

    return [
        Record(
            "section 3.1, windows converge in less than 5 s",
            compute=_still_after_5_s,
            note="No window of the 13 cases with alpha 1 and beta 3 moves from 5 to 60 s; by ns-2 "
            "2.35, sampled every 0.25 s, and packet by packet with the printed rule, whichever "
            "connection's packet is the first at R1 (paper_checks/tsang/replay.py).",
        ),
        Record(
            "figure 1, least RTT of connection 1",
            printed=SHORTEST,
            compute=from_printed_numbers(1e3 * 4 * BITS_PER_PACKET / EXPECTED_1),
            prints=("13.21",),  # the scan sets the last digit apart
            tolerance=rounding(0.001),
            note="ms, printed in section 3.1; computed: a window of 4 packets divided by table 3's "
            "expected rate 1. It is also 6 ms of propagation and the transmissions of 1040 bytes "
            "at 10, 1.5 and 10 Mbit/s, but we inferred these 10 Mbit/s (and ACKs of 40 B) from "
            f"it. Our copy of the paper lacks the picture. {rounded}",
        ),
        Record(
            "section 3.1, propagation of connection 2 at x2 = 30 ms",
            printed=64,
            compute=from_printed_numbers(2.0 * (30 + 2)),
            note="ms; 2 (x2 + 2).",
        ),
        Record(
            "section 3.1, least RTT of connection 2 at x2 = 30 ms",
            printed=AT_30,
            compute=from_printed_numbers(SHORTEST + 64 - 6),
            tolerance=rounding(0.001),
            prints=("71.21",),  # the scan sets the last digit apart
            note=f"ms; 13.211 with a propagation of 64 in place of 6. {rounded}",
        ),
        Record(
            "section 3.1, least RTTs in packets",
            printed=[2.48, 13.35],
            compute=from_printed_numbers([CAPACITY * 1e-3 * SHORTEST, CAPACITY * 1e-3 * AT_30]),
            tolerance=rounding(0.01),
            note=f"13.211 and 71.211 ms times the shared link's 187.5 packets a second. {rounded}",
        ),
        Record(
            "section 3.1, packets of connection 1 at half the link",
            printed=[2.24, 4.24],
            compute=from_printed_numbers([2.48 / 2 + 1, 2.48 / 2 + 3]),
            tolerance=rounding(0.01),
            note=f"Half of 2.48, plus alpha or beta. {rounded}",
        ),
        Record(
            "section 3.1, packets of connection 2 at half the link",
            printed=[7.67, 9.67],
            compute=from_printed_numbers([13.35 / 2 + 1, 13.35 / 2 + 3]),
            tolerance=rounding(0.01),
            note=f"Half of 13.35, plus alpha or beta; the print cuts 7.675 off to 7.67. {rounded}",
        ),
    ]


def model() -> list[Record]:
    """The records of section 3.2's equations for the windows and rates at equilibrium.

    Source i has the threshold alpha_i and the propagation delay d_i, which it over-estimates by
    x_i; Delta_i is its queueing delay. We evaluate the equations at alpha_i = 2, d_i = 80 ms, x_i =
    10 ms and Delta_i = 30 ms.
    """
    alpha, d, x, delay = 2.0, 0.08, 0.01, 0.03
    base, rtt = d + x, d + delay
    # the window stays where the backlog is alpha: cwnd - (baseRTT/RTT) cwnd = alpha
    window = alpha / (1 - base / rtt)
    note = (
        "At alpha 2, d 80 ms, x 10 ms, Delta 30 ms; computed from the fixed point of the rule. "
        f"{ARITHMETIC}"
    )
    return [
        formula(
            "section 3.2, cwnd_i = alpha_i (d_i + Delta_i)/(Delta_i - x_i)",
            printed=alpha * (d + delay) / (delay - x),
            compute=by_theory(window),
            tolerance=1e-9,
            note=note,
        ),
        formula(
            "section 3.2, rate_i = alpha_i/(Delta_i - x_i)",
            printed=alpha / (delay - x),
            compute=by_theory(window / rtt),
            tolerance=1e-9,
            note=note,
        ),
    ]


RECORDS = (*introduction(), *rules(), *network(), *model())
