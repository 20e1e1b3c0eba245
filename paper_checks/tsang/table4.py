"""Table 4 of Tsang and Chang (indices with alpha = beta), section 3.3, and the missing tables.

x2 is the delay of the longer connection's last link in ms.  ``name`` is the paper's name for a pair
of thresholds, such as "Vegas-1".  R1 is the router before the link that both connections share.
``longer_first`` says whether the longer connection's packet is the first at R1.
"""

from functools import cache, partial

import numpy as np

from paper_checks.checks import Found, Record, from_printed_numbers, rises, rounding
from paper_checks.runs import Runs
from paper_checks.tsang import table3
from paper_checks.tsang.replay import START, replay
from paper_checks.tsang.scenes import BITS_PER_PACKET, X2_IN_MS
from paper_checks.tsang.table3 import FROM_30_S, NOT_10_MS, TEN_S_AFTER_START, rounded

# alpha and beta, packets
THRESHOLDS = {"Vegas-1": (1, 1), "Vegas-2": (2, 2), "Vegas-3": (3, 3), "Vegas1_3": (1, 3)}
# by x2 in ms: Jain's index with each of THRESHOLDS
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
INDICES = np.array(list(TABLE_4.values()))  # [delays, thresholds]
# Section 3.3: least and largest actual rate of the shorter connection, pkt/s
RANGES = {"Vegas-1": (60, 288), "Vegas-2": (90, 125), "Vegas-3": (78, 117)}


# s after the start of the sources: where the averages may begin
BEGINS = (0.01, 1.0, 5.0, 9.0, 10.0, 11.0, 20.0, 30.0)


def index(x2: int, name: str, since: float = TEN_S_AFTER_START, longer_first: bool = True) -> float:
    """Jain's index of the mean rates from ``since`` (s) on, by the packet-by-packet simulation.

    ``x2`` is the delay of the longer connection's last link, ms, and ``name`` the name of the
    thresholds, such as "Vegas-1".  ``longer_first`` says whether the longer connection's first
    packet arrives first at the shared link.
    """
    return table3.index(x2, *THRESHOLDS[name], since=since, longer_first=longer_first)


def _cell(x2: int, name: str, runs: Runs) -> Found:
    """Jain's index of a cell of table 4, by the packet-by-packet simulation.

    The cell is that of the delay ``x2``, ms, and the thresholds ``name``.  The result's detail also
    has the index if averages begin earlier, if the other connection's packet is first at the shared
    link, and by ns-2.
    """
    ns2 = rounded(x2, *THRESHOLDS[name], runs)
    other = index(x2, name, longer_first=False)
    early = index(x2, name, since=BEGINS[0] + START)
    return Found(
        index(x2, name),
        detail=f"If averages begin at the printed 10 ms, {early:.4f}. With the shorter "
        f"connection's packet first {other:.4f}. ns-2 2.35, which rounds the backlog, has "
        f"{ns2:.4f}, from 10 s on as well.",
    )


def cells() -> list[Record]:
    """The records of table 4's cells: Jain's index of the mean rates of two Vegas connections.

    x2 is the delay of the longer connection's last link. R1 is the router before the shared link,
    where the packets of both connections meet.
    """
    return [
        Record(
            f"table 4, x2 = {x2} ms, {name}",
            printed=TABLE_4[x2][i],
            compute=partial(_cell, x2, name),
            tolerance=rounding(0.001),
            note=f"ACKs from 10 s after the start on: {NOT_10_MS} Packet by packet with the rules "
            "of sections 2.1 and 2.2 as printed: the backlog is not rounded. The longer "
            "connection's packet is the first at R1: of the two orders this one gives the table, "
            "and it is the same for all its 52 cells (paper_checks/tsang/replay.py). Tolerance: "
            "rounding of the print.",
            source="replay",
        )
        for x2 in X2_IN_MS
        for i, name in enumerate(THRESHOLDS)
    ]


def _agreeing(since: float, longer_first: bool = True) -> int:
    """Number of cells of table 4 that are reproduced if averages begin at ``since``, s.

    ``longer_first`` says whether the packet of the longer connection is the first at the router R1.
    """
    return sum(
        abs(index(x2, name, since, longer_first) - printed) <= rounding(0.001)
        for x2 in X2_IN_MS
        for name, printed in zip(THRESHOLDS, TABLE_4[x2], strict=True)
    )


def _begin_of_averages(runs: Runs) -> Found:
    """Find from when on the paper averages for table 4, in s after the start of the sources.

    The paper states 10 ms.  We tried this and the other times in ``BEGINS``.  The result is the
    time with which most cells of the table are reproduced; its detail has their number for each
    time.
    """
    counts = {after: _agreeing(START + after) for after in BEGINS}
    text = ", ".join(
        f"from {after:g} s {count} of {INDICES.size}" for after, count in counts.items()
    )
    other = max(_agreeing(START + after, longer_first=False) for after in BEGINS)
    return Found(
        max(counts, key=lambda after: counts[after]),
        detail=f"Cells of table 4 that agree: {text}. With the shorter connection's packet first "
        f"at most {other}.",
    )


def begin() -> list[Record]:
    """The record of a sentence in section 3.1: "after the simulation has started for 10 ms".

    By this sentence, the averages of table 4 begin at 10 ms. The replay shows that they begin at
    10 s.
    """
    return [
        Record(
            "section 3.1, averages begin 10 ms after the start",
            printed=0.01,
            compute=_begin_of_averages,
            prints=("10 ms",),
            note="In seconds. computed: the beginning of the averages with which most cells of "
            "table 4 agree, of eight that we tried; packet by packet, the longer connection's "
            "packet first at R1.",
            source="replay",
            erratum="10 s are meant: of eight beginnings only this one gives all of table 4.",
        )
    ]


def _column_means(runs: Runs) -> Found:
    """Whether the mean index over the delays is higher with Vegas-2 and Vegas-3 than with others.

    Vegas-2 has alpha = beta = 2, and so on. The others are Vegas-1, and Vegas1_3 with alpha = 1 and
    beta = 3.
    """
    means = {name: float(np.mean([index(x2, name) for x2 in X2_IN_MS])) for name in THRESHOLDS}
    text = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
    fairer, less_fair = ("Vegas-2", "Vegas-3"), ("Vegas-1", "Vegas1_3")
    holds = max(means[name] for name in less_fair) < min(means[name] for name in fairer)
    return Found(holds, detail=f"Means: {text}.")


def _worse_with_one(runs: Runs) -> Found:
    """Whether at some delay Jain's index is lower with Vegas-1 than with Vegas1_3.

    Vegas-1 has alpha = beta = 1, and Vegas1_3 has alpha = 1 and beta = 3.
    """
    cases = [x2 for x2 in X2_IN_MS if index(x2, "Vegas1_3") - index(x2, "Vegas-1") > 0.001]
    return Found(bool(cases), detail=f"At x2 = {', '.join(map(str, cases)) or 'none'} ms.")


@cache
def _range(
    x2: int, name: str, longer: bool = False, longer_first: bool = False
) -> tuple[float, float]:
    """Least and largest actual rate of one connection from 30 s on, pkt/s.

    The actual rate is the one that Vegas computes at each of its decisions.  ``x2`` is the delay of
    the longer connection's last link, ms, and ``name`` the name of the thresholds.  ``longer`` says
    whether the connection is the longer or the shorter one; ``longer_first``, whether the longer
    one's packet is the first at the shared link.
    """
    connections = replay(x2, *THRESHOLDS[name], longer_first=longer_first)
    late = connections[1 if longer else 0].decisions(FROM_30_S)
    rates = [r.actual / BITS_PER_PACKET for r in late]
    return min(rates), max(rates)


@cache
def nearest(but: tuple[str, int] | None = None) -> int:
    """The delay x2, ms, at which the rates come nearest to the ranges that section 3.3 states.

    The section states three ranges with two ends each, but not its delay.  If one of these six
    numbers is to be compared with ours, the delay must not be chosen with its help.  ``but`` names
    this number, which is left out: its thresholds' name, and 0 or 1 for the lower or upper end.
    """

    def miss(x2: int) -> float:
        """Sum of the relative errors of the ranges' ends at the delay ``x2``, without ``but``."""
        return sum(
            abs(_range(x2, name)[end] / ends[end] - 1)
            for name, ends in RANGES.items()
            for end in (0, 1)
            if (name, end) != but
        )

    return min(X2_IN_MS, key=miss)


CASE_NOT_STATED = (
    "Section 3.3 states neither the delay nor whose packet is first at R1, and both matter: if the "
    "shorter connection's packet is first, one delay gives all six figures; if the longer's is, as "
    "in table 4, no delay does."
)


@cache
def as_printed() -> tuple[tuple[int, bool], ...]:
    """The cases (x2, ``longer_first``) that section 3.3 may be about, since it states neither.

    x2 is the delay of the longer connection's last link, ms; ``longer_first`` says whether its
    packet is the first at the shared link.  In these cases the shorter connection's least and
    largest rate with Vegas-1 are within 10 % of the printed ones.
    """
    return tuple(
        (x2, longer_first)
        for longer_first in (False, True)
        for x2 in X2_IN_MS
        if all(
            abs(rate / printed - 1) <= 0.1
            for rate, printed in zip(
                _range(x2, "Vegas-1", longer_first=longer_first), RANGES["Vegas-1"], strict=True
            )
        )
    )


def each_case(rows: list[str]) -> str:
    """The cases of ``as_printed`` as text, each with its entry of ``rows``."""
    cases = (f"{x2} ms {row}" for (x2, _), row in zip(as_printed(), rows, strict=True))
    return f"{', '.join(cases)}."


CASES = (
    "The paper states neither the delay nor whose packet is first at R1. So we take each case in "
    "which the shorter connection's rate has the printed range, 60 to 288, within 10 %. The note "
    "lists first the cases with the shorter's packet first, then those with the longer's. Packet "
    "by packet with the printed rule."
)


def _end(name: str, end: int, runs: Runs) -> Found:
    """The lower (``end`` 0) or upper end of the range of rates with the thresholds ``name``, pkt/s.

    It is taken at the delay with which the other five ends of the three ranges come nearest to the
    printed ones.  The result is undecided, since the paper states no delay (``CASE_NOT_STATED``).
    """
    x2 = nearest((name, end))
    found = _range(x2, name)[end]
    return Found(
        found, detail=f"That is x2 = {x2} ms, with {found:.0f}.", undecided=CASE_NOT_STATED
    )


def _expected(runs: Runs) -> Found:
    """The longer connection's mean expected rate with Vegas-1, pkt/s, at the delay of ``nearest``.

    Vegas-1 has alpha = beta = 1. The result is undecided, since the paper states no delay
    (``CASE_NOT_STATED``).
    """
    _, longer = replay(nearest(), *THRESHOLDS["Vegas-1"])
    found = float(np.mean([r.expected for r in longer.decisions(FROM_30_S)])) / BITS_PER_PACKET
    return Found(found, detail=f"x2 = {nearest()} ms, with {found:.1f}.", undecided=CASE_NOT_STATED)


def _longer_stays_at_lower_end(runs: Runs) -> Found:
    """Whether the longer connection's actual rate with Vegas-1 stays near the shorter's lowest.

    Vegas-1 has alpha = beta = 1. The range of the longer's rate must be less than 20 % as wide as
    the shorter's.  The lower ends of both must be nearer to each other than that.
    """
    holds, rows = [], []
    for x2, longer_first in as_printed():
        low, high = _range(x2, "Vegas-1", longer=False, longer_first=longer_first)
        longer_low, longer_high = _range(x2, "Vegas-1", longer=True, longer_first=longer_first)
        near = 0.2 * (high - low)
        holds.append(longer_high - longer_low < near and abs(longer_low - low) < near)
        rows.append(f"{low:.0f} to {high:.0f} and {longer_low:.0f} to {longer_high:.0f}")
    return Found(all(holds), detail=each_case(rows))


def _shorter_gets_more(runs: Runs) -> Found:
    """Whether the shorter connection gets more than the longer one in each case of ``as_printed``.

    These are the cases in which its rates with alpha = beta = 1 (Vegas-1) have the range that
    section 3.3 prints.
    """
    pairs = [
        [
            c.rate(TEN_S_AFTER_START)
            for c in replay(x2, *THRESHOLDS["Vegas-1"], longer_first=longer_first)
        ]
        for x2, longer_first in as_printed()
    ]
    text = each_case([f"{shorter:.1f} and {longer:.1f}" for shorter, longer in pairs])
    return Found(all(shorter > longer for shorter, longer in pairs), detail=text)


CURVES = (
    "Packet by packet with the printed rule. The shorter connection's packet is the first at R1, "
    "as in table 3, because with the longer's first, as in table 4, no delay gives all six figures "
    "of the section within 10 %."
)


def section_33() -> list[Record]:
    """The records of section 3.3: rates of two Vegas connections with alpha = beta, over time.

    "Vegas-1" has alpha = beta = 1, which the paper calls delta, and so on. For each of three values
    of delta the section states the range of the shorter connection's rate, so six figures in all
    (``RANGES``). It does not state the delay x2 of the longer connection's last link. For each
    figure we take the delay at which the other five are met best (``nearest``). In the notes, names
    in capitals such as ``CASES`` stand for texts that several records share.
    """
    found = [
        Record(
            f"section 3.3, {name}, {end} rate of the shorter connection",
            printed=printed[i],
            compute=partial(_end, name, i),
            tolerance=0.1 * printed[i],
            note=f"pkt/s, actual rates of the decisions from 30 s on. {CURVES} The paper does not "
            "say for which delay. We take the one of 13 that comes nearest to the other five "
            "figures. Tolerance: 10 %, as the figures are read off curves.",
            source="replay",
        )
        for name, printed in RANGES.items()
        for i, end in enumerate(("least", "largest"))
    ]
    return [
        *found,
        Record(
            "section 3.3, Vegas-1, expected rate of the longer connection",
            printed=60,
            compute=_expected,
            tolerance=6.0,
            note="pkt/s, mean from 30 s on at the delay that comes nearest to the six figures. "
            f"{CURVES} Tolerance: 10 %, since the print says 'around'.",
            source="replay",
        ),
        Record(
            "section 3.3, Vegas-1, the longer stays in a narrow range at the shorter's lowest edge",
            compute=_longer_stays_at_lower_end,
            note="Read as: the longer's range is less than a fifth as wide as the shorter's, and "
            "the lower ends of both differ by less than this fifth. The note has the shorter's "
            f"range, then the longer's, in pkt/s from 30 s on. {CASES}",
            source="replay",
        ),
        Record(
            "section 3.3, Vegas-1, the shorter connection gets more on average",
            compute=_shorter_gets_more,
            note=f"pkt/s from 10 s on. {CASES}",
            source="replay",
        ),
        Record(
            "section 3.3, 60 packets per second in bit/s",
            printed=480000,
            compute=from_printed_numbers(60 * BITS_PER_PACKET),
            note="8000 bits a packet.",
        ),
        Record(
            "section 3.3, the larger delta the fairer",
            compute=from_printed_numbers(
                Found(
                    rises(INDICES.mean(axis=0)[:3]),
                    detail="Means: "
                    + ", ".join(f"{m:.4f}" for m in INDICES.mean(axis=0)[:3])
                    + ".",
                )
            ),
            note="Column means of the printed table 4.",
        ),
        Record(
            "abstract, alpha = beta of 2 or 3 resolves the unfairness, 1 does not",
            compute=_column_means,
            note="Read as: the mean index over the 13 delays is higher with 2 and with 3 than with "
            "1, and than with alpha 1, beta 3; packet by packet with the printed rules.",
            source="replay",
        ),
        Record(
            "abstract, alpha = beta = 1 can be worse than 1 and 3",
            compute=_worse_with_one,
            note="Read as: at some delay the index is lower by more than 0.001, a unit of the "
            "table's last digit; packet by packet with the printed rules, as for table 4.",
            source="replay",
        ),
    ]


# --- section 3.4 and the tables whose numbers are lost ---------------------------------------

# the one cell of table 6 that our copy has: bit/s of a Vegas and of a Reno flow, Jain's index
VEGAS_MEAN, RENO_MEAN, INDEX = 67306.0, 47123.0, 0.919


def section_34() -> list[Record]:
    """The records of the one cell of table 6 in our copy of the paper, and of what the copy lacks.

    The cell has the mean rates of Vegas and of Reno flows and Jain's index of all.  We test whether
    these three numbers fit one another.  ``mixes`` has the other records of table 6.
    """
    n, share = 200, 0.1  # flows, and the part of them that is Vegas
    mean = share * VEGAS_MEAN + (1 - share) * RENO_MEAN
    square = share * VEGAS_MEAN**2 + (1 - share) * RENO_MEAN**2
    bound = mean**2 / square  # the index if each flow gets the mean of its law
    return [
        Record(
            "table 6a, 10 % of 200: the index fits the means",
            compute=from_printed_numbers(
                Found(
                    bool(bound >= INDEX),
                    detail=f"The means alone allow at most {bound:.3f}; {INDEX} is printed. They "
                    f"imply a link of at least {n * mean / 1e6:.2f} Mbit/s, not 1.5.",
                )
            ),
            note="For given means of both laws, Jain's index is largest if each flow gets the mean "
            "of its law.",
        ),
        Record(
            "section 3.4, shares of Vegas connections",
            printed=10,
            blocked="The section contradicts itself: its example has 10 % of Vegas, and the shares "
            "that it says it studies are 30, 50 and 70 %. Which of both is wrong cannot be told, "
            "as table 6 is missing from our copy.",
            source="print",
            note="Percent. printed: the share of the example.",
        ),
        Record(
            "table 5",
            printed=None,
            blocked="Its numbers are missing from our copy; the caption is that of table 4.",
        ),
        Record(
            "table 2",
            printed=None,
            blocked="Its text is missing; only the caption is left.",
        ),
    ]


RECORDS = (*begin(), *cells(), *section_33(), *section_34())
