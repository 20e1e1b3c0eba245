"""Table 3 of Tsang and Chang: each cell, and relations between the cells of a row.

Two Vegas connections share a link; R1 is the router before it.  Each row of the table is for one
value of x2, the delay in ms of the last link of connection 2.  For connection 1 this delay is 1 ms.

Vegas computes two rates in each round trip: the expected rate is the data in transit divided by
baseRTT, and the actual rate is the data sent in the round trip divided by its mean RTT.  A row has
both rates of both connections, the ratio of the two actual rates, and Jain's index of these.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from paper_checks.checks import Found, Record, from_printed_numbers, of_runs, rounding
from paper_checks.runs import Runs
from paper_checks.tsang.replay import START, replay
from paper_checks.tsang.scenes import (
    BITS_PER_PACKET,
    CAPACITY,
    FROM_10_MS,
    X2_IN_MS,
    base_rtt,
    two_connections,
)
from vegasmodel.metrics import jain


class Row(NamedTuple):
    """A row of table 3 as it is printed; the rates of connections 1 and 2 are in bit/s."""

    expected_1: float
    actual_1: float
    expected_2: float
    actual_2: float
    ratio: float  # actual_1 over actual_2
    jains_index: float


# by x2 in ms
TABLE_3 = {
    110: Row(2422285, 928571, 642586, 606382, 1.53, 0.965),
    100: Row(2422285, 925824, 591103, 545454, 1.70, 0.931),
    90: Row(2422285, 936107, 610550, 562500, 1.66, 0.941),
    80: Row(2422285, 926507, 636363, 583333, 1.59, 0.953),
    70: Row(2422285, 857142, 724137, 642623, 1.33, 0.980),
    60: Row(2422285, 934407, 644480, 568965, 1.64, 0.945),
    50: Row(2422285, 903420, 686436, 600000, 1.51, 0.962),
    40: Row(2422285, 928996, 670091, 571428, 1.63, 0.946),
    30: Row(2422285, 881562, 731605, 617647, 1.43, 0.970),
    20: Row(2422285, 800000, 990379, 700000, 1.14, 0.996),
    10: Row(2422285, 1000000, 755794, 500000, 2.00, 0.900),
    5: Row(1816713, 750000, 1340183, 750000, 1.00, 1.000),
    1: Row(1816713, 750000, 1816713, 750000, 1.00, 1.000),
}
FROM_30_S = 30.0  # s: the windows have converged, and rates are averaged from here on
TEN_S_AFTER_START = START + 10.0  # s: from here on means for ratio and index are taken
PACKET_TIME = 1 / CAPACITY  # s, transmission of a packet at the shared link

# --- the cells -------------------------------------------------------------------------------

REPLAYED = (
    "Packet by packet with section 2.1's rule as printed: the backlog is not rounded. The shorter "
    "connection's packet is the first at R1: of the two orders this one gives the table, and it is "
    "the same for all its 65 rates and indices (paper_checks/tsang/replay.py)."
)
COLUMNS = ("expected rate 1", "actual rate 1", "expected rate 2", "actual rate 2")
CUT_OFF = 1.0  # bit/s: the print is cut off to whole bit/s, which makes an error of less than this
# Vegas's decisions over which the paper may average; it states no number, and we assume this one
DECISIONS_AVERAGED = 4


@of_runs
def _cell(runs: Runs, x2: int, column: int) -> Found:
    """A rate of table 3 in bit/s; ``runs`` is not used.

    The rate is in the row of the delay ``x2`` (ms); ``column`` is its index in ``COLUMNS``.  Vegas
    computes its rates at each decision, once per round trip.  The value is the mean over the
    decisions from 30 s on.  The paper may average fewer of them.  So the tolerance allows what a
    mean of ``DECISIONS_AVERAGED`` decisions may differ by chance.
    """
    connection, actual = divmod(column, 2)  # columns of each connection: expected, actual rate
    late = replay(x2)[connection].decisions(FROM_30_S)
    rates = np.array([r.actual if actual else r.expected for r in late])
    # two standard errors of a mean of so few decisions
    chance = 2 * float(rates.std()) / DECISIONS_AVERAGED**0.5
    limit = 0.1 * TABLE_3[x2][column]
    return Found(float(rates.mean()), CUT_OFF + min(chance, limit))


def cells() -> list[Record]:
    """The records of table 3's rates of both connections when their windows have converged.

    x2 is the delay of the longer connection's last link. Each connection has an expected and an
    actual rate, which Vegas computes once per round trip.
    """
    return [
        Record(
            f"table 3, x2 = {x2} ms, {name}",
            printed=TABLE_3[x2][i],
            compute=_cell(x2, i),
            note="bit/s. Mean over Vegas's decisions (one per round trip) from 30 s on. "
            f"{REPLAYED} Tolerance: 1 bit/s, as the print is cut off to whole bit/s; plus, where "
            "the rate moves, two standard errors of a mean of four decisions, but at most 10 %. "
            "The paper does not say how many decisions it averages. Where the rate moves, the mean "
            "of four decisions in a row is the print to 1 bit/s at 30, 70, 100 and 110 ms, the "
            "mean of eight at 60 and of ten at 40 ms; at 50, 80 and 90 ms no number up to twelve "
            "gives the print.",
            source="replay",
        )
        for x2 in X2_IN_MS
        for i, name in enumerate(COLUMNS)
    ]


NOT_10_MS = "the print has '10 ms', read as an error (the record of section 3.1)."

# --- ratio and index -------------------------------------------------------------------------


def index(
    x2: int,
    alpha: float = 1.0,
    beta: float = 3.0,
    *,
    since: float = TEN_S_AFTER_START,
    longer_first: bool = False,
    known: bool = False,
) -> float:
    """Jain's index of both connections' mean rates, by our packet-by-packet simulation.

    - ``x2`` is the delay of the last link of connection 2, in ms.
    - ``alpha`` and ``beta`` are Vegas's thresholds, in packets.
    - The means are from ``since`` on (s) to the end of the simulation, at 60 s.
    - Both connections start at the same time. ``longer_first`` says whose first packet is the first
      at the router R1: connection 2's, whose path is longer, if it is True, else connection 1's.
    - If ``known`` is True, both connections use their RTTs with empty queues as baseRTT from the
      start. Otherwise they measure their baseRTTs.
    """
    connections = replay(x2, alpha, beta, longer_first=longer_first, known=known)
    return jain([connection.rate(since) for connection in connections])


def _index(x2: int, runs: Runs) -> Found:
    """Jain's index of a row of table 3, by the packet-by-packet simulation.

    The row is that of the delay ``x2``, ms.  The result's detail also has the index if averages
    begin earlier, if the other connection's packet is first at the shared link, by the printed
    rates, and by ns-2.
    """
    row = TABLE_3[x2]
    by_print = jain([row.actual_1, row.actual_2])
    ns2 = rounded(x2, alpha=1.0, beta=3.0, runs=runs)
    early = index(x2, since=START + 0.01)  # averages from 10 ms after the start on
    return Found(
        index(x2),
        detail=f"If averages begin at the printed 10 ms, {early:.4f}. With the longer connection's "
        f"packet first {index(x2, longer_first=True):.4f}. The printed rates, which are means of "
        f"few decisions, have {by_print:.4f}. ns-2 2.35, which rounds the backlog, "
        f"has {ns2:.4f}, from 10 s on as well.",
    )


def rounded(x2: int, alpha: float, beta: float, runs: Runs) -> float:
    """Jain's index by ns-2, which rounds the backlog to whole packets before it compares it.

    ``x2`` is the delay of the last link of connection 2, in ms, and ``alpha`` and ``beta`` are
    Vegas's thresholds, in packets. The index is that of the mean rates, which are taken from 10 s
    after the start on.
    """
    return float(runs(two_connections(x2, alpha, beta, warmup=TEN_S_AFTER_START - START)).jain[0])


def derived() -> list[Record]:
    """The records of table 3's ratio and index.

    The ratio of the actual rates follows from the printed rates. Jain's index is compared with that
    of our simulation packet by packet. x2 is the delay of the longer connection's last link. In the
    notes, names in capitals such as ``NOT_10_MS`` stand for texts that several records share.
    """
    found = []
    for x2 in X2_IN_MS:
        row = TABLE_3[x2]
        found += [
            Record(
                f"table 3, x2 = {x2} ms, ratio",
                printed=row.ratio,
                compute=from_printed_numbers(row.actual_1 / row.actual_2),
                tolerance=rounding(0.01),
                note="From the printed actual rates. Tolerance: rounding of the print.",
            ),
            Record(
                f"table 3, x2 = {x2} ms, index",
                printed=row.jains_index,
                compute=partial(_index, x2),
                tolerance=rounding(0.001),
                note=f"Jain's index of the mean rates from 10 s after the start on: {NOT_10_MS} "
                f"{REPLAYED} "
                "Tolerance: rounding of the print.",
                source="replay",
            ),
        ]
    return found


# --- what the rates imply --------------------------------------------------------------------


def window_and_base(x2: int) -> tuple[int, float]:
    """Window (packets) and baseRTT (s) of connection 2 that its printed expected rate implies.

    The rate is that of table 3 at the delay ``x2``, ms.  It is W/baseRTT, where the window W is a
    whole number.  A baseRTT cannot be less than the RTT with empty queues.  So W is the smallest
    whole number with which W/rate is at least this RTT.
    """
    rate = TABLE_3[x2].expected_2 / BITS_PER_PACKET
    window = math.ceil(rate * (base_rtt(x2) - 1e-6))  # 1 us: the rate is cut off to 1 bit/s
    return window, window / rate


def _over_estimates() -> Found:
    """Whether the printed expected rates imply no over-estimate of connection 2's baseRTT.

    The result's detail has the over-estimates, in transmission times of a packet: those that the
    print implies, and those in our simulation.
    """
    printed = [(window_and_base(x2)[1] - base_rtt(x2)) / PACKET_TIME for x2 in X2_IN_MS]
    simulated = [(replay(x2)[1].base - base_rtt(x2)) / PACKET_TIME for x2 in X2_IN_MS]
    by_print, by_rule = (", ".join(f"{x:.2f}" for x in xs) for xs in (printed, simulated))
    # by how much the index changes if both connections know their least RTTs
    changes = [abs(index(x2, known=True) - TABLE_3[x2].jains_index) for x2 in X2_IN_MS]
    return Found(
        max(printed) < 0.01,
        detail=f"Over-estimates in packet times, from x2 = 110 ms to 1 ms: {by_print}; in our "
        f"simulation packet by packet {by_rule}. If both connections know their least RTTs, the "
        f"index differs from the printed one in {sum(c > rounding(0.001) for c in changes)} of the "
        f"13 rows, by up to {max(changes):.3f}.",
    )


def backlogs(x2: int) -> tuple[float, float]:
    """Both connections' backlogs by table 3 at the delay ``x2``, ms, in packets.

    A backlog is (expected - actual) baseRTT, with the printed expected and actual rate.  Since
    expected = W/baseRTT, where W is the window, this is W (1 - actual/expected).
    """
    row = TABLE_3[x2]
    W1 = round(row.expected_1 / BITS_PER_PACKET * base_rtt(1))
    W2, _ = window_and_base(x2)
    return W1 * (1 - row.actual_1 / row.expected_1), W2 * (1 - row.actual_2 / row.expected_2)


def _backlogs() -> Found:
    """Whether the backlogs that the printed rates imply are between Vegas's thresholds, 1 and 3.

    The result's detail has those backlogs of connection 2 that would be outside if its baseRTT were
    its least RTT.
    """
    every = [backlog for x2 in X2_IN_MS for backlog in backlogs(x2)]
    by_least_rtt = {
        x2: (row.expected_2 - row.actual_2) / BITS_PER_PACKET * base_rtt(x2)
        for x2, row in TABLE_3.items()
    }
    outside = {x2: backlog for x2, backlog in by_least_rtt.items() if not 1 <= backlog <= 3}
    text = ", ".join(f"{b:.3f} at x2 = {x2} ms" for x2, b in outside.items()) or "none outside"
    return Found(
        all(1 <= b <= 3 for b in every),
        detail=f"Backlogs of the 26 connections from {min(every):.2f} to {max(every):.2f} "
        f"packets. If baseRTT_2 were the least RTT itself, connection 2 would have {text}.",
    )


def implied() -> list[Record]:
    """The records of over-estimates and backlogs that follow from printed rates by section 3.2."""
    return [
        Record(
            "table 1, point 5, free from the impact of an incorrect minimum RTT",
            compute=lambda _: _over_estimates(),
            note="Read as: baseRTT 2 is nowhere over-estimated by 1 % of a packet's time on the "
            "shared link or more; the rounding of the print makes less. The over-estimate follows "
            "from the printed expected rate, which is W/baseRTT with a whole window W.",
            erratum="Table 3's own expected rates imply an over-estimate in 12 of its 13 rows, of "
            "one packet's time in seven, and it has an effect on the index.",
            source="print",
        ),
        Record(
            "section 3.2, alpha <= alpha_i <= beta in each row of table 3",
            "equation",
            compute=from_printed_numbers(_backlogs()),
            note="alpha_i = (expected - actual) baseRTT_i of the printed rates. baseRTT_2 is the "
            "one with which the printed expected rate, W/baseRTT_2, has a whole window W, as in "
            "table 1, point 5.",
        ),
    ]


# --- conclusions -----------------------------------------------------------------------------


def _ratios(longer_first: bool) -> list[float]:
    """Rate of the shorter over that of the longer connection, at each x2 of ``FROM_10_MS``.

    ``longer_first`` says whether the longer one's first packet arrives first at the shared link.
    """
    found = []
    for x2 in FROM_10_MS:
        shorter, longer = replay(x2, longer_first=longer_first)
        found.append(shorter.rate(FROM_30_S) / longer.rate(FROM_30_S))
    return found


def _longer_gets_less(runs: Runs) -> Found:
    """Whether the connection with the longer delay gets less, at each x2 of ``FROM_10_MS``.

    The longer connection's first packet is the second at the shared link, as in table 3. The
    result's detail also has the ratios if it is the first, and the number of cases in ns-2.
    """
    ratios = _ratios(longer_first=False)
    text = ", ".join(f"{r:.2f}" for r in ratios)
    opposite = _ratios(longer_first=True)
    span = f"{min(opposite):.2f} to {max(opposite):.2f}"
    other = f"with the longer's packet first at R1, as in table 4, {span}"
    by_ns2 = [runs(two_connections(x2, warmup=FROM_30_S)).throughput[0] for x2 in FROM_10_MS]
    ns2 = sum(bool(shorter > longer) for shorter, longer in by_ns2)
    return Found(
        min(ratios) > 1,
        detail=f"Shorter over longer, x2 from 110 to 10 ms: {text}; {other}. By ns-2 2.35, which "
        f"rounds the backlog, the longer gets less in {ns2} of the 11 cases.",
    )


def _no_losses(runs: Runs) -> float:
    """Number of packets that ns-2's sources send again in all 13 cases."""
    return float(sum(runs(two_connections(x2)).retransmits.sum() for x2 in X2_IN_MS))


def conclusions() -> list[Record]:
    """The records of what section 3.2 concludes from table 3.

    They are tested on the table's numbers, on our simulation packet by packet, and on ns-2. x2 is
    the delay of the longer connection's last link.
    """
    indices = [TABLE_3[x2].jains_index for x2 in FROM_10_MS]
    ratios = [first / second for first, second in map(backlogs, FROM_10_MS)]
    return [
        Record(
            "section 3.2, the longer connection always loses from x2 = 10 ms on",
            compute=_longer_gets_less,
            note="Throughput from 30 s on in the 11 cases, packet by packet with the printed rule; "
            "the shorter connection's packet is the first at R1, as in table 3.",
            source="replay",
        ),
        Record(
            "section 3.2, no packet is lost",
            printed=0,
            compute=_no_losses,
            note="Retransmissions in the 13 cases. ns-2 2.35, the run as described.",
        ),
        Record(
            "section 3.2, range of the index",
            printed=[0.90, 0.996],
            compute=from_printed_numbers([min(indices), max(indices)]),
            tolerance=1e-9,
            note="Printed indices for x2 of 10 ms and more. Tolerance: rounding of the arithmetic.",
        ),
        Record(
            "section 3.2, the bias does not always grow with the delay",
            compute=from_printed_numbers(
                bool(np.any(np.diff([TABLE_3[x2].ratio for x2 in X2_IN_MS]) > 0))
            ),
            note="Of the printed ratios, one at some delay is larger than that at the next longer "
            "delay.",
        ),
        Record(
            "section 3.2, worst at x2 = 10 ms with twice the rate",
            printed=[10, 2.0],
            compute=from_printed_numbers(
                [
                    min(TABLE_3, key=lambda x2: jain([TABLE_3[x2].actual_1, TABLE_3[x2].actual_2])),
                    TABLE_3[10].actual_1 / TABLE_3[10].actual_2,
                ]
            ),
            tolerance=1e-9,
            prints=("10ms", "twice the rate"),
            note="From the printed rates. Tolerance: rounding of the arithmetic.",
        ),
        Record(
            "section 3.2, one cause is the difference in alpha_i, even when x_i is zero",
            compute=from_printed_numbers(
                Found(
                    min(ratios) > 1,
                    detail=f"alpha_1/alpha_2 from {min(ratios):.2f} to {max(ratios):.2f}.",
                )
            ),
            note="alpha_i = (expected - actual) baseRTT_i of the printed rates, in the 11 cases in "
            "which the longer loses. If x_i = 0, the rates are in the ratio of the alpha_i (the "
            "section's formula of rate_i), so the longer loses by the alpha_i alone.",
        ),
    ]


RECORDS = (*cells(), *derived(), *implied(), *conclusions())
