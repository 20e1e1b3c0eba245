"""Table 4 of Tsang and Chang (indices with alpha = beta), section 3.3, and the missing tables.

x2 is the delay of the longer connection's last link in ms, ``name`` is the paper's name for a pair
of thresholds, such as "Vegas-1", and ``longer_first`` and ``order`` say whether the longer
connection's packet is the first at R1.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from paper_checks.checks import Found, Record, by_print, rises, rounding
from paper_checks.runs import Runs
from paper_checks.tsang import table3
from paper_checks.tsang.replay import START, replay
from paper_checks.tsang.scenes import BITS, DELAYS
from paper_checks.tsang.table3 import LATE, NOT_10_MS, rounded

VEGAS = {"Vegas-1": (1, 1), "Vegas-2": (2, 2), "Vegas-3": (3, 3), "Vegas1_3": (1, 3)}
TABLE_4 = {
    110: (0.928, 0.998, 0.999, 0.908),
    100: (0.898, 1.000, 1.000, 0.892),
    90: (0.890, 0.999, 1.000, 0.917),
    80: (0.829, 1.000, 1.000, 0.953),
    70: (0.980, 0.999, 1.000, 0.911),
    60: (0.973, 1.000, 1.000, 0.887),
    50: (0.997, 0.998, 1.000, 0.900),
    40: (1.000, 1.000, 1.000, 0.900),
    30: (0.997, 1.000, 0.999, 0.970),
    20: (0.984, 0.999, 0.999, 0.925),
    10: (0.988, 0.999, 0.999, 0.988),
    5: (0.994, 0.999, 1.000, 0.980),
    1: (1.000, 1.000, 1.000, 1.000),
}
ROWS = np.array(list(TABLE_4.values()))
# Section 3.3: range of the shorter connection's actual rate, pkt/s
RANGES = {"Vegas-1": (60, 288), "Vegas-2": (90, 125), "Vegas-3": (78, 117)}


BEGINS = (0.01, 1.0, 5.0, 9.0, 10.0, 11.0, 20.0, 30.0)  # s after the start
SETTLED = 30.0  # s: the rates of section 3.3 are read from here on


def index(x2: int, name: str, since: float = LATE, longer_first: bool = True) -> float:
    """The index of the mean rates from ``since`` on, by the packet-by-packet simulation."""
    return table3.index(x2, *VEGAS[name], since=since, longer_first=longer_first)


def _cell(x2: int, name: str, runs: Runs) -> Found:
    ns2 = rounded(x2, *VEGAS[name], runs)
    other = index(x2, name, longer_first=False)
    early = index(x2, name, since=BEGINS[0] + START)
    return Found(
        index(x2, name),
        detail=f"From the printed 10 ms on {early:.4f}. With the shorter's packet first "
        f"{other:.4f}; ns-2 2.35, which rounds the backlog, {ns2:.4f}, from 10 s on as well.",
    )


def cells() -> list[Record]:
    """The records of table 4's cells: Jain's index of the mean rates."""
    return [
        Record(
            f"table 4, x2 = {x2} ms, {name}",
            "table",
            TABLE_4[x2][i],
            partial(_cell, x2, name),
            tolerance=rounding(0.001),
            note=f"ACKs from 10 s after the start on: {NOT_10_MS} Packet by packet with the rules "
            "of sections 2.1 and 2.2 as printed: the backlog is not rounded; of the two orders "
            "at the start the one that gives the table, one choice for its 52 cells: the longer "
            "connection's packet is the first at R1 (paper_checks/tsang/replay.py). Tolerance: "
            "rounding of the print.",
            source="replay",
        )
        for x2 in DELAYS
        for i, name in enumerate(VEGAS)
    ]


def _agreeing(since: float, longer_first: bool = True) -> int:
    """Number of cells that are reproduced if averages begin at ``since``."""
    pairs = (
        (index(x2, n, since, longer_first), p)
        for x2 in DELAYS
        for n, p in zip(VEGAS, TABLE_4[x2], strict=True)
    )
    return sum(abs(found - printed) <= rounding(0.001) for found, printed in pairs)


def _begin(runs: Runs) -> Found:
    """The start of the averages, s after the start of the sources, that reproduces most cells."""
    counts = {after: _agreeing(START + after) for after in BEGINS}
    text = ", ".join(f"from {after:g} s {count} of {ROWS.size}" for after, count in counts.items())
    other = max(_agreeing(START + after, longer_first=False) for after in BEGINS)
    return Found(
        max(counts, key=lambda after: counts[after]),
        detail=f"Cells of table 4: {text}. With the shorter's packet first at most {other}.",
    )


def begin() -> list[Record]:
    """The records of section 3.1: "after the simulation has started for 10 ms"."""
    return [
        Record(
            "section 3.1, averages begin 10 ms after the start",
            "claim",
            0.01,
            _begin,
            prints=("10 ms",),
            note="In seconds. Table 4 packet by packet, the longer's packet first at R1, averages "
            "from so long after the start on.",
            source="replay",
            erratum="10 s are meant: of eight instants only this one gives all of table 4.",
        )
    ]


def _column_means(runs: Runs) -> Found:
    means = [float(np.mean([index(x2, name) for x2 in DELAYS])) for name in VEGAS]
    text = ", ".join(f"{name} {mean:.4f}" for name, mean in zip(VEGAS, means, strict=True))
    best = means[3] < means[1] and means[3] < means[2] and means[0] < min(means[1], means[2])
    return Found(best, detail=f"Means: {text}.")


def _worse_with_one(runs: Runs) -> Found:
    cases = [x2 for x2 in DELAYS if index(x2, "Vegas1_3") - index(x2, "Vegas-1") > 0.001]
    return Found(bool(cases), detail=f"At x2 = {', '.join(map(str, cases)) or 'none'} ms.")


@cache
def _range(x2: int, name: str, longer: bool = False, order: bool = False) -> tuple[float, float]:
    """Least and largest actual rate, pkt/s, of the longer (if ``longer``) or other connection."""
    late = replay(x2, *VEGAS[name], longer_first=order)[longer].late(SETTLED)
    rates = [r.actual / BITS for r in late]
    return min(rates), max(rates)


@cache
def nearest(but: tuple[str, int] | None = None) -> int:
    """The delay x2, ms, that comes nearest to the ranges that section 3.3 states.

    ``but`` leaves one of their ends out: the name of the thresholds, and 0 or 1 for the lower or
    upper end.
    """

    def miss(x2: int) -> float:
        return sum(
            abs(_range(x2, name)[end] / ends[end] - 1)
            for name, ends in RANGES.items()
            for end in (0, 1)
            if (name, end) != but
        )

    return min(DELAYS, key=miss)


ORDER = (
    "Section 3.3 states neither the delay nor whose packet is first at R1, and they decide: with "
    "the shorter's first one delay has all six figures, with the longer's first, as table 4 has "
    "it, none has."
)


@cache
def as_printed() -> tuple[tuple[int, bool], ...]:
    """Pairs (x2, order) with the shorter connection's stated range with Vegas-1 within 10 %."""
    ends = RANGES["Vegas-1"]
    return tuple(
        (x2, order)
        for order in (False, True)
        for x2 in DELAYS
        if all(
            abs(own / end - 1) <= 0.1
            for own, end in zip(_range(x2, "Vegas-1", order=order), ends, strict=True)
        )
    )


def each_case(rows: list[str]) -> str:
    """The cases of ``as_printed`` as text, each with its entry of ``rows``."""
    cases = (f"{x2} ms {row}" for (x2, _), row in zip(as_printed(), rows, strict=True))
    return f"{', '.join(cases)}."


CASES = (
    "The paper states neither the delay nor whose packet is first at R1. So in each case with "
    "which the shorter's rate has the printed range, 60 to 288, within 10 %; first those with the "
    "shorter's packet first, then those with the longer's. Packet by packet with the printed rule."
)


def _end(name: str, end: int, runs: Runs) -> Found:
    """The lower (``end`` 0) or upper end of a range at the delay nearest to the other five ends."""
    x2 = nearest((name, end))
    found = _range(x2, name)[end]
    return Found(found, detail=f"That is x2 = {x2} ms, with {found:.0f}.", undecided=ORDER)


def _expected(runs: Runs) -> Found:
    late = replay(nearest(), *VEGAS["Vegas-1"])[1].late(SETTLED)
    found = float(np.mean([r.expected for r in late])) / BITS
    return Found(found, detail=f"x2 = {nearest()} ms, with {found:.1f}.", undecided=ORDER)


def _at_the_edge(runs: Runs) -> Found:
    """Whether the longer connection's actual rate with Vegas-1 stays near the shorter's lower end.

    Its range must be less than 20 % as wide as the shorter's.
    """
    holds, rows = [], []
    for x2, order in as_printed():
        (least, most), (other, top) = (
            _range(x2, "Vegas-1", longer, order) for longer in (False, True)
        )
        near = 0.2 * (most - least)
        holds.append(top - other < near and abs(other - least) < near)
        rows.append(f"{least:.0f} to {most:.0f} and {other:.0f} to {top:.0f}")
    return Found(all(holds), detail=each_case(rows))


def _shorter_gets_more(runs: Runs) -> Found:
    pairs = [
        [c.rate(LATE) for c in replay(x2, *VEGAS["Vegas-1"], longer_first=order)]
        for x2, order in as_printed()
    ]
    text = each_case([f"{shorter:.1f} and {longer:.1f}" for shorter, longer in pairs])
    return Found(all(shorter > longer for shorter, longer in pairs), detail=text)


CURVES = (
    "Packet by packet with the printed rule, the shorter connection's packet first at R1, as in "
    "table 3: with the longer's first, as in table 4, no delay has all six figures within 10 %."
)


def section_33() -> list[Record]:
    """The records of section 3.3's rates and conclusions."""
    found = [
        Record(
            f"section 3.3, {name}, {end} rate of the shorter connection",
            "claim",
            printed[i],
            partial(_end, name, i),
            tolerance=0.1 * printed[i],
            note=f"pkt/s, actual rates of the decisions from 30 s on. {CURVES} The paper does not "
            "say for which delay: the one of 13 that is nearest to the other five figures. "
            "Tolerance: 10 %, as the figures are read off curves.",
            source="replay",
        )
        for name, printed in RANGES.items()
        for i, end in enumerate(("least", "largest"))
    ]
    return [
        *found,
        Record(
            "section 3.3, Vegas-1, expected rate of the longer connection",
            "claim",
            60,
            _expected,
            tolerance=6.0,
            note=f"pkt/s, mean from 30 s on at the delay nearest to the six figures. {CURVES} "
            "Tolerance: 10 %, 'around'.",
            source="replay",
        ),
        Record(
            "section 3.3, Vegas-1, the longer stays in a narrow range at the shorter's lowest edge",
            "claim",
            True,
            _at_the_edge,
            note="Read as a range of less than a fifth of the shorter's, which begins less than "
            f"that from the shorter's lower end; pkt/s from 30 s on. {CASES}",
            source="replay",
        ),
        Record(
            "section 3.3, Vegas-1, the shorter connection gets more on average",
            "claim",
            True,
            _shorter_gets_more,
            note=f"pkt/s from 10 s on. {CASES}",
            source="replay",
        ),
        Record(
            "section 3.3, 60 packets per second in bit/s",
            "claim",
            480000,
            by_print(60 * BITS),
            note="8000 bits a packet.",
        ),
        Record(
            "section 3.3, the larger delta the fairer",
            "claim",
            True,
            by_print(
                Found(
                    rises(ROWS.mean(axis=0)[:3]),
                    detail="Means: " + ", ".join(f"{m:.4f}" for m in ROWS.mean(axis=0)[:3]) + ".",
                )
            ),
            note="Column means of the printed table 4.",
        ),
        Record(
            "abstract, alpha = beta of 2 or 3 resolves the unfairness, 1 does not",
            "claim",
            True,
            _column_means,
            note="Read as a mean index over the 13 delays higher with 2 and with 3 than with 1 and "
            "than with alpha 1, beta 3; packet by packet with the printed rules.",
            source="replay",
        ),
        Record(
            "abstract, alpha = beta = 1 can be worse than 1 and 3",
            "claim",
            True,
            _worse_with_one,
            note="Some delay with an index lower by more than 0.001, the table's last digit; "
            "packet by packet with the printed rules, started and averaged as for table 4.",
            source="replay",
        ),
    ]


# --- section 3.4 and the tables whose numbers are lost ---------------------------------------

VEGAS_MEAN, RENO_MEAN, INDEX = 67306.0, 47123.0, 0.919


def section_34() -> list[Record]:
    """The records of what the one cell of table 6 in our text implies; ``mixes`` runs the table."""
    n, share = 200, 0.1
    mean = share * VEGAS_MEAN + (1 - share) * RENO_MEAN
    square = share * VEGAS_MEAN**2 + (1 - share) * RENO_MEAN**2
    bound = mean**2 / square
    return [
        Record(
            "table 6a, 10 % of 200: the index fits the means",
            "table",
            True,
            by_print(
                Found(
                    bool(bound >= INDEX),
                    detail=f"The means alone allow at most {bound:.3f}; {INDEX} is printed. They "
                    f"imply a link of at least {n * mean / 1e6:.2f} Mbit/s, not 1.5.",
                )
            ),
            note="Jain's index is largest where every flow of a group gets its mean.",
        ),
        Record(
            "section 3.4, shares of Vegas connections",
            "claim",
            10,
            blocked="The section contradicts itself, and which statement is the slip cannot be "
            "told, for table 6 is missing from our text: its example has 10 % of Vegas, and the "
            "shares that it says it studies are 30, 50 and 70 %.",
            source="print",
            note="Percent. printed: the share of the example.",
        ),
        Record(
            "table 5",
            "table",
            None,
            blocked="Its numbers are missing from our text; the caption is that of table 4.",
        ),
        Record("table 2", "table", None, blocked="Its text is missing; only the caption is left."),
    ]


RECORDS = (*begin(), *cells(), *section_33(), *section_34())
