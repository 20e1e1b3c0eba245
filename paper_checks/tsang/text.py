"""Sections 1 to 3.2 of ``tsang``: definitions and the arithmetic of the network."""

from __future__ import annotations

import numpy as np

from paper_checks.checks import AT_A_POINT, Found, Record, by_print, exactly, rounding
from paper_checks.runs import Runs
from paper_checks.tsang.replay import replay
from paper_checks.tsang.scenes import BITS, CAPACITY, DELAYS, base_rtt, two
from vegasmodel.metrics import jain

QUOTED = "Quoted from another paper, whose link rate and delays are not in our text."


def introduction() -> list[Record]:
    """Jain's index; its formula is missing from our text, its properties are not."""
    return [
        Record(
            "section 1, index of k of n equal shares",
            "equation",
            [0.5, 0.75, 1.0],
            exactly([jain([1, 0]), jain([1, 1, 1, 0]), jain([2, 2])]),
            prints=AT_A_POINT,
            tolerance=1e-12,
            note="k/n for 1 of 2, 3 of 4, 2 of 2: (sum b)^2/(n sum b^2). The formula itself is "
            "missing from our text.",
        ),
        Record(
            "section 1, index 0.9 means 2/3 for one of two",
            "claim",
            0.9,
            exactly(jain([2, 1])),
            tolerance=1e-12,
            note="(2 + 1)^2/(2 (4 + 1)).",
        ),
        Record(
            "section 1, 300 % between alpha = 1 and beta = 3",
            "claim",
            300,
            exactly(_most_between(1.0, 3.0)),
            tolerance=1e-9,
            note="Largest ratio of two rates in the set alpha/Delta <= rate <= beta/Delta.",
        ),
        Record(
            "section 1, throughput ratios of Vegas and of Reno by delay",
            "claim",
            [1.09, 1.33, 1.35, 37.12],
            blocked=QUOTED,
        ),
        Record(
            "section 1, Reno over Vegas from buffer 4 to 50",
            "claim",
            [0.535, 11.73],
            blocked=QUOTED,
        ),
    ]


def _most_between(alpha: float, beta: float) -> float:
    from vegasmodel.equilibrium import bands

    band = bands.equilibria([alpha, alpha], [beta, beta], [0.0, 0.0], CAPACITY)
    _, most = band.ratio_range
    return 100 * float(most[0, 1])


def rules() -> list[Record]:
    """Section 2: what the window rule does."""

    def alone(runs: Runs) -> Found:
        queue = runs(two(1, warmup=30.0)).queue
        return Found(2.0 <= queue <= 6.0, detail=f"{queue:.2f} packets wait on average.")

    def fixed(runs: Runs) -> Found:
        window = runs(two(110, warmup=30.0)).window
        swing = float((window[2] - window[1]).max())
        return Found(swing == 0.0, detail=f"The windows move by {swing:g} packets after 30 s.")

    return [
        Record(
            "section 2.1, window rule: two sources keep 2 alpha to 2 beta packets",
            "equation",
            True,
            alone,
            note="x2 = 1 ms, alpha 1, beta 3; ns-2 2.35, the run as described.",
        ),
        Record(
            "section 2.1, the window converges to a fixed value",
            "claim",
            True,
            fixed,
            note="x2 = 110 ms, alpha 1, beta 3; ns-2 2.35, windows from 30 s on.",
        ),
        Record(
            "section 2.2, rule of Enhanced Vegas",
            "equation",
            [1.0, 1.0, 2.0, 2.0, 3.0, 3.0],
            lambda _: _backlogs(),
            prints=AT_A_POINT,
            tolerance=0.5,
            note="Packets: least and largest mean backlog of the 26 connections from 30 s on, with "
            "alpha = beta = delta of 1, 2 and 3. Packet by packet with the printed rule "
            "(paper_checks/tsang/replay.py). Tolerance: rounding to a whole packet, by which a "
            "window moves.",
            source="replay",
        ),
    ]


def _backlogs() -> list[float]:
    """Least and largest mean backlog of a connection with delta 1, 2, 3, packets."""
    found = []
    for delta in (1.0, 2.0, 3.0):
        means = [
            float(np.mean([(r.expected - r.actual) * c.base / BITS for r in c.late(30.0)]))
            for x2 in DELAYS
            for c in replay(x2, delta, delta)
        ]
        found += [min(means), max(means)]
    return found


def network() -> list[Record]:
    """Section 3.1 and figure 1."""
    rounded = "Tolerance: rounding of the print."
    half = CAPACITY / 2

    def still(runs: Runs) -> Found:
        moves = {
            x2: float(np.ptp(runs(two(x2, warmup=5.0)).window[1:], axis=0).max()) for x2 in DELAYS
        }
        moving = [x2 for x2, move in moves.items() if move > 0]
        text = ", ".join(map(str, moving)) or "none"
        return Found(not moving, detail=f"Windows that still move: x2 = {text} ms.")

    return [
        Record(
            "section 3.1, windows converge in less than 5 s",
            "claim",
            True,
            still,
            note="No window of the 13 cases with alpha 1 and beta 3 moves from 5 to 60 s; ns-2 "
            "2.35, sampled every 0.25 s.",
        ),
        Record(
            "figure 1, least RTT of connection 1",
            "figure",
            13.211,
            exactly(1e3 * base_rtt(1)),
            prints=("13.21",),  # the scan sets the last digit apart
            tolerance=rounding(0.001),
            note="ms; 6 ms and 1040 bytes over 10, 1.5 and 10 Mbit/s (40 B ACKs and 10 Mbit/s are "
            f"inferred). The picture is missing. {rounded}",
        ),
        Record(
            "section 3.1, propagation of connection 2 at x2 = 30 ms",
            "claim",
            64,
            by_print(2.0 * (30 + 2)),
            note="ms; 2 (x2 + 2).",
        ),
        Record(
            "section 3.1, least RTT of connection 2 at x2 = 30 ms",
            "claim",
            71.211,
            exactly(1e3 * base_rtt(30)),
            tolerance=rounding(0.001),
            prints=("71.21",),  # the scan sets the last digit apart
            note=f"ms. {rounded}",
        ),
        Record(
            "section 3.1, least RTTs in packets",
            "claim",
            [2.48, 13.35],
            by_print([CAPACITY * base_rtt(1), CAPACITY * base_rtt(30)]),
            tolerance=rounding(0.01),
            note=f"Packets of the shared link. {rounded}",
        ),
        Record(
            "section 3.1, packets of connection 1 at half the link",
            "claim",
            [2.24, 4.24],
            by_print([half * base_rtt(1) + 1, half * base_rtt(1) + 3]),
            tolerance=rounding(0.01),
            note=f"rate baseRTT + alpha, + beta. {rounded}",
        ),
        Record(
            "section 3.1, packets of connection 2 at half the link",
            "claim",
            [7.67, 9.67],
            by_print([half * base_rtt(30) + 1, half * base_rtt(30) + 3]),
            tolerance=0.01,
            note="rate baseRTT + alpha, + beta: 13.352/2 = 6.676. Tolerance: one unit of the last "
            "digit, for the print halves 13.35, says 'about' and cuts 6.675 off.",
        ),
    ]


def model() -> list[Record]:
    """Section 3.2's equations at alpha_i = 2, d = 80 ms, x = 10 ms, Delta = 30 ms."""
    alpha, d, x, delay = 2.0, 0.08, 0.01, 0.03
    base, rtt = d + x, d + delay
    window = alpha / (1 - base / rtt)  # the fixed point of cwnd - (baseRTT/RTT) cwnd = alpha
    note = "At alpha 2, d 80 ms, x 10 ms, Delta 30 ms; computed from the fixed point of the rule."
    return [
        Record(
            "section 3.2, cwnd_i = alpha_i (d_i + Delta_i)/(Delta_i - x_i)",
            "equation",
            alpha * (d + delay) / (delay - x),
            exactly(window),
            prints=AT_A_POINT,
            tolerance=1e-9,
            note=note,
        ),
        Record(
            "section 3.2, rate_i = alpha_i/(Delta_i - x_i)",
            "equation",
            alpha / (delay - x),
            exactly(window / rtt),
            prints=AT_A_POINT,
            tolerance=1e-9,
            note=note,
        ),
    ]


RECORDS = (*introduction(), *rules(), *network(), *model())
