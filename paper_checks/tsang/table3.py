"""Table 3 of ``tsang``: each cell, and what the cells of a row say of each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from paper_checks.checks import Found, Record, exactly, rounding
from paper_checks.runs import Runs
from paper_checks.tsang.replay import replay
from paper_checks.tsang.scenes import BITS, CAPACITY, DELAYS, base_rtt, two
from vegasmodel.metrics import jain

# x2 in ms: expected and actual rate of connection 1, of connection 2 (bit/s), ratio, index
TABLE_3 = {
    110: (2422285, 928571, 642586, 606382, 1.53, 0.965),
    100: (2422285, 925824, 591103, 545454, 1.70, 0.931),
    90: (2422285, 936107, 610550, 562500, 1.66, 0.941),
    80: (2422285, 926507, 636363, 583333, 1.59, 0.953),
    70: (2422285, 857142, 724137, 642623, 1.33, 0.980),
    60: (2422285, 934407, 644480, 568965, 1.64, 0.945),
    50: (2422285, 903420, 686436, 600000, 1.51, 0.962),
    40: (2422285, 928996, 670091, 571428, 1.63, 0.946),
    30: (2422285, 881562, 731605, 617647, 1.43, 0.970),
    20: (2422285, 800000, 990379, 700000, 1.14, 0.996),
    10: (2422285, 1000000, 755794, 500000, 2.00, 0.900),
    5: (1816713, 750000, 1340183, 750000, 1.00, 1.000),
    1: (1816713, 750000, 1816713, 750000, 1.00, 1.000),
}
CONVERGED = 30.0  # s: the rates are read from here on
PACKET = 1 / CAPACITY  # s, transmission of a packet at the shared link

# --- the cells -------------------------------------------------------------------------------

# By how much the two printed actual rates of a row miss the full link, at most.
MISS = max(abs(row[1] + row[3] - 1.5e6) / 1.5e6 for row in TABLE_3.values())
COLUMNS = ("expected rate 1", "actual rate 1", "expected rate 2", "actual rate 2")
CUT = 1.0  # bit/s: the print cuts the rest off
FEW = 4  # rounds


def _cell(x2: int, column: int) -> Callable[[Runs], Found]:
    """Mean over the decisions from 30 s on."""

    def compute(runs: Runs) -> Found:
        connection, actual = divmod(column, 2)
        late = replay(x2)[connection].late(CONVERGED)
        rates = np.array([r.actual if actual else r.expected for r in late])
        spread = 2 * float(rates.std()) / FEW**0.5
        limit = 0.1 * TABLE_3[x2][column]
        return Found(float(rates.mean()), CUT + min(spread, limit))

    return compute


def cells() -> list[Record]:
    """Rates of both connections once they have converged."""
    return [
        Record(
            f"table 3, x2 = {x2} ms, {name}",
            "table",
            TABLE_3[x2][i],
            _cell(x2, i),
            note="bit/s. Packet by packet with section 2.1's rule as printed: the backlog is not "
            "rounded (paper_checks/tsang/replay.py). Mean of the decisions from 30 s on. "
            "Tolerance: the print cuts off less than 1 bit/s, and two standard deviations of a "
            "mean of four decisions (four give the print exactly at 30, 100 and 110 ms).",
            replayed=True,
        )
        for x2 in DELAYS
        for i, name in enumerate(COLUMNS)
    ]


def _by_ns2(x2: int, runs: Runs) -> list[float]:
    measured = runs(two(x2, warmup=CONVERGED))
    assert measured.base_rtt is not None
    expected = np.floor(measured.window[0]) / measured.base_rtt  # whole packets are in transit
    return [float(v) for v in BITS * np.column_stack([expected, measured.mean]).ravel()]


def by_ns2() -> list[Record]:
    """The same rows by ns-2 of today, whose agent rounds the backlog."""
    return [
        Record(
            f"table 3, x2 = {x2} ms, the four rates by ns-2 2.35",
            "table",
            list(TABLE_3[x2][:4]),
            partial(_by_ns2, x2),
            tolerance=MISS * min(TABLE_3[x2][:4]),
            note="bit/s from 30 to 60 s: data in transit/baseRTT (expected), ACKs a second "
            f"(actual); sources start at 0. Tolerance: {100 * MISS:.1f} % of the least, by which "
            "the print's own rows miss the full link. ns-2 2.35 rounds the backlog.",
        )
        for x2 in DELAYS
    ]


# --- columns that follow from others ---------------------------------------------------------


def _no_throughput(x2: int) -> str:
    rates = [r.actual for r in replay(x2)[0].late(CONVERGED)]
    over = 100 * ((TABLE_3[x2][1] + TABLE_3[x2][3]) / 1.5e6 - 1)
    if over <= 0:
        return ""
    return (
        f"They are {over:.1f} % more than the link carries. An 'actual rate' is the packets of one "
        "round over their mean RTT, read at a decision, and no throughput: packet by packet "
        f"connection 1's swings from {min(rates):.0f} to {max(rates):.0f} bit/s."
    )


def derived() -> list[Record]:
    """Ratio and index from the rates beside them; the rates against the link."""
    found = []
    for x2 in DELAYS:
        _, first, _, second, ratio, index = TABLE_3[x2]
        right = jain([first, second])
        found += [
            Record(
                f"table 3, x2 = {x2} ms, ratio",
                "table",
                ratio,
                exactly(first / second),
                tolerance=rounding(0.01),
                note="From the printed actual rates. Tolerance: rounding of the print.",
                erratum=f"The rates beside it give {first / second:.3f}.",
            ),
            Record(
                f"table 3, x2 = {x2} ms, index",
                "table",
                index,
                exactly(right),
                tolerance=rounding(0.001),
                note="Jain's index of the printed actual rates. Tolerance: rounding of the print.",
                erratum=f"The rates beside it give {right:.4f}, (b1 + b2)^2/(2 (b1^2 + b2^2)).",
            ),
            Record(
                f"table 3, x2 = {x2} ms, actual rates fit the link",
                "claim",
                True,
                exactly(
                    Found(
                        first + second <= 1.5e6 + 1,
                        detail=f"They add up to {first + second} bit/s of 1500000.",
                    )
                ),
                note="Sum of the two printed actual rates.",
                erratum=_no_throughput(x2),
            ),
        ]
    return found


# --- what the rates imply --------------------------------------------------------------------


def window_and_base(x2: int) -> tuple[int, float]:
    """Window and baseRTT of connection 2 behind its printed expected rate.

    expected = W/baseRTT with a whole W: the least one with baseRTT not under the true delay.
    """
    rate = TABLE_3[x2][2] / BITS
    window = math.ceil(rate * (base_rtt(x2) - 1e-6))
    return window, window / rate


def implied() -> list[Record]:
    """Windows, over-estimates and backlogs behind the printed rates (section 3.2's equations)."""
    found = []
    for x2 in DELAYS:
        expected1, actual1, _, actual2, _, _ = TABLE_3[x2]
        W1 = round(expected1 / BITS * base_rtt(1))
        W2, base2 = window_and_base(x2)
        over = base2 - base_rtt(x2)
        # alpha_i = (expected rate - actual rate) baseRTT_i
        backlogs = (
            W1 * (1 - actual1 / expected1),
            W2 * (1 - actual2 / TABLE_3[x2][2]),
        )
        # Delta_i = RTT_i - d_i with RTT_i = cwnd_i/rate_i
        waits = (W1 * BITS / actual1 - base_rtt(1), W2 * BITS / actual2 - base_rtt(x2))
        found += [
            Record(
                f"table 1, point 5, x2 = {x2} ms: over-estimate of baseRTT 2",
                "table",
                0.0,
                exactly(over / PACKET),
                tolerance=0.01,
                note=f"In packet times of the shared link, from the printed expected rate: window "
                f"{W2}, baseRTT {1e3 * base2:.2f} ms for a true {1e3 * base_rtt(x2):.2f} ms. The "
                "paper says its results are free of a wrong minimum RTT. Tolerance: 1 % of a "
                "packet's time, more than the rounding of the print.",
                erratum="Table 3's own expected rate implies it.",
            ),
            Record(
                f"table 3, x2 = {x2} ms, baseRTT 2 behind the expected rate",
                "table",
                1e3 * base2,
                exactly(1e3 * replay(x2)[1].base),
                tolerance=1e3 * base2 * CUT / TABLE_3[x2][2],
                note=f"ms. printed: window over the printed expected rate, {W2} packets; computed: "
                "packet by packet, as the rates. Tolerance: 1 bit/s of the expected rate.",
                replayed=True,
            ),
            Record(
                f"section 3.2, alpha <= alpha_i <= beta at x2 = {x2} ms",
                "equation",
                True,
                exactly(
                    Found(
                        all(1 <= b <= 3 for b in backlogs),
                        detail=f"Backlogs {backlogs[0]:.2f} and {backlogs[1]:.2f} packets.",
                    )
                ),
                note="alpha_i = (expected - actual) baseRTT_i of the printed rates.",
            ),
            Record(
                f"section 3.2, one queueing delay at x2 = {x2} ms",
                "equation",
                waits[0] / PACKET,
                exactly(waits[1] / PACKET),
                tolerance=1.0,
                note="Delta_i = RTT_i - d_i in packet times, RTT_i = cwnd_i/rate_i of the printed "
                "rates: both wait in one FIFO queue. printed: connection 1, computed: connection "
                "2. Tolerance: one packet.",
            ),
        ]
    return found


# --- conclusions -----------------------------------------------------------------------------


def _ratios(longer_first: bool) -> list[float]:
    found = []
    for x2 in DELAYS[:-2]:
        shorter, longer = replay(x2, longer_first=longer_first)
        found.append(shorter.rate(CONVERGED) / longer.rate(CONVERGED))
    return found


def _losing(ratios: list[float]) -> Found:
    text = ", ".join(f"{r:.2f}" for r in ratios)
    return Found(sum(r > 1 for r in ratios), detail=f"Shorter over longer, 110 to 10 ms: {text}.")


def _losing_by_rule(longer_first: bool, runs: Runs) -> Found:
    return _losing(_ratios(longer_first))


def _losing_in_ns2(runs: Runs) -> Found:
    means = [runs(two(x2, warmup=CONVERGED)).throughput[0] for x2 in DELAYS[:-2]]
    return _losing([first / second for first, second in means])


def _no_losses(runs: Runs) -> float:
    return float(sum(runs(two(x2)).retransmits.sum() for x2 in DELAYS))


def conclusions() -> list[Record]:
    """Section 3.2's reading of table 3, on the print and on ns-2."""
    indices = [TABLE_3[x2][5] for x2 in DELAYS[:-2]]
    return [
        *(
            Record(
                f"section 3.2, cases in which the longer connection loses, {order}",
                "claim",
                11,
                partial(_losing_by_rule, later),
                note="Of the 11 cases with x2 of 10 ms and more, packet by packet with the printed "
                f"rule; {order} at R1, as in {which}.",
                replayed=True,
            )
            for later, order, which in (
                (False, "the shorter's packet first", "table 3"),
                (True, "the longer's packet first", "table 4"),
            )
        ),
        Record(
            "section 3.2, cases in which the longer connection loses, by ns-2 2.35",
            "claim",
            11,
            _losing_in_ns2,
            note="Of the 11 cases with x2 of 10 ms and more; ns-2 rounds the backlog.",
        ),
        Record(
            "section 3.2, no packet is lost",
            "claim",
            0,
            _no_losses,
            note="Retransmissions in the 13 cases. ns-2 2.35, the run as described.",
        ),
        Record(
            "section 3.2, range of the index",
            "claim",
            [0.90, 0.996],
            exactly([min(indices), max(indices)]),
            tolerance=1e-9,
            note="Printed indices for x2 of 10 ms and more.",
        ),
        Record(
            "section 3.2, the bias does not always grow with the delay",
            "claim",
            True,
            exactly(bool(np.any(np.diff([TABLE_3[x2][4] for x2 in DELAYS]) > 0))),
            note="Printed ratios from 110 ms down: some delay has a larger one than the next "
            "longer delay.",
        ),
        Record(
            "section 3.2, worst at x2 = 10 ms with twice the rate",
            "claim",
            [10, 2.0],
            exactly(
                [
                    min(TABLE_3, key=lambda x2: jain([TABLE_3[x2][1], TABLE_3[x2][3]])),
                    TABLE_3[10][1] / TABLE_3[10][3],
                ]
            ),
            tolerance=1e-9,
            note="From the printed rates.",
        ),
    ]


RECORDS = (*cells(), *by_ns2(), *derived(), *implied(), *conclusions())
