"""The five main results with which a paper's chapter of the HTML report opens.

Each row has the printed value and the same value from closed forms, from both simulators and from
ns-2 or ns-3.  The verdict and its cause are those of a record, which compares the printed value
with ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from paper_checks import records
from paper_checks.answers import Answers, value
from paper_checks.boutremans.scenes import CAPACITY, joining
from paper_checks.boutremans.simulations import base_rtts, halves
from paper_checks.boutremans.theory import advantage, harmonic, last_over_middle, printed_rates
from paper_checks.causes import cause
from paper_checks.checks import Check, Found, Record, Value, judge
from paper_checks.devendictis import scenes, validation
from paper_checks.evaluation.scenes import pair
from paper_checks.podlesny.changes import SETTINGS, gain
from paper_checks.runs import NoRun, Runs
from paper_checks.spread import jittered
from paper_checks.tsang.scenes import X2_IN_MS, two_connections
from vegasmodel.metrics import jain

__all__ = ["HEADLINES", "Headline", "Row", "row"]

Compute: TypeAlias = "Callable[[Runs], Found | Value]"  # computes a value from measurements


@dataclass(frozen=True)
class Headline:
    """A main result of a paper, as a value that ns-2, the simulators and closed forms can compute.

    ``item`` is the name of its record, which gives the verdict, and ``says`` describes the value.
    ``compute`` computes it, by default as the record does.  ``printed`` has the paper's value in
    words if it is no number.  ``closed`` gives the value in the column of closed forms if none of
    them can answer the scenario: by the paper's own formula, or ``None``.
    """

    item: str
    says: str
    compute: Compute | None = None
    printed: str | None = None
    closed: Callable[[], Value] | None = None


@dataclass(frozen=True)
class Row:
    """One headline with the value from each source."""

    says: str  # what the value is
    check: Check  # the record, with its verdict
    printed: Value  # by the paper
    closed_form: Value  # by our closed forms
    simulated: Mapping[str, Value]  # by our simulators ``fluid`` and ``rounds``, by name
    packets: Value  # by ns-2, or by our own simulation of single packets
    by: str  # if ``packets`` is by our own simulation: a text that says so, with ns-2's value
    cause: str  # why the verdict is "discrepant" or "erratum", otherwise empty


def row(
    paper: str, headline: Headline, runs: Runs, forms: Answers, simulated: Mapping[str, Answers]
) -> Row:
    """The row of ``headline`` in the report, with ``None`` where a source does not give the value.

    ``runs`` has the stored results of ns-2 and ns-3.  ``forms`` answers in their place with
    predictions of closed forms, and ``simulated`` with those of each simulator.  If the record's
    value is that of our own simulation of single packets (a replay), the row has this value, and
    ns-2's in the text beside it.
    """
    [record] = [record for record in records(paper) if record.item == headline.item]
    check = judge(paper, record, runs)
    compute = headline.compute or record.compute
    assert compute is not None
    # the record, but with the headline's function, for ``value``, which computes its value from
    # predictions of models in place of measurements
    asked = Record(headline.item, record.kind, printed=record.printed, compute=compute)
    closed = value(asked, forms)[0] if headline.closed is None else headline.closed()
    replayed = check.source == "replay"
    return Row(
        says=headline.says,
        check=check,
        printed=check.printed if headline.printed is None else headline.printed,
        closed_form=closed,
        simulated={name: value(asked, answers)[0] for name, answers in simulated.items()},
        packets=check.computed if replayed else _packets(compute, runs),
        by=f"the printed rule, packet by packet; ns-2 2.35: {_short(_packets(compute, runs))}"
        if replayed
        else "",
        cause=_cause(check),
    )


def _packets(compute: Compute, runs: Runs) -> Value:
    """The value by ns-2 or ns-3; ``None`` if a run is missing."""
    try:
        found = compute(runs)
    except NoRun:
        return None
    return found.value if isinstance(found, Found) else found


def _short(entry: Value) -> str:
    """A value as text, a number with three digits."""
    return f"{entry:.3g}" if isinstance(entry, (int, float)) else str(entry)


def _cause(check: Check) -> str:
    """Why the record is discrepant, or the first sentence of the note of an erratum."""
    if check.verdict == "discrepant":
        return cause(check)
    if check.verdict == "erratum":
        return f"{check.note.split('. ')[0]}."
    return ""


def _index(x2: int, alpha: float, beta: float, runs: Runs) -> float:
    """Jain's index of the two Vegas connections of ``tsang``, with thresholds in packets.

    ``x2`` is the delay of the second connection's last link, in ms.
    """
    return jain(runs(two_connections(x2, alpha, beta)).mean)


def _longer_loses(runs: Runs) -> str:
    """A text: in how many cases the second connection of ``tsang`` gets over 1 % less.

    The second one's last link has a delay ``x2``, which makes its path the longer one.  Only cases
    with an ``x2`` of 10 ms or more count.
    """
    rates = [runs(two_connections(x2)).mean for x2 in X2_IN_MS if x2 >= 10]
    lost = sum(bool(first > 1.01 * second) for first, second in rates)
    return f"in {lost} of {len(rates)}"


def _late_over_middle(runs: Runs) -> float:
    """Last source's rate over the median of the earlier ones' rates; the median over the seeds."""
    return float(np.median(last_over_middle(runs(joining(n=20, alpha=1.0, beta=1.0)).throughput)))


def _late_gain(runs: Runs) -> float:
    """Rate of the last source over that of the first; the median over the seeds."""
    return float(np.median(advantage(runs(joining(n=20, alpha=3.0, beta=3.0)).throughput)))


def _late_base_rtt(runs: Runs) -> float:
    """The baseRTT of the last of 20 sources, s."""
    return float(base_rtts(runs(joining(n=20, alpha=3.0, beta=3.0)))[-1])


def _sum(runs: Runs) -> float:
    """The sum of the rates of 20 sources, pkt/s."""
    return float(runs(joining(n=20, alpha=1.0, beta=1.0)).mean.sum())


def _early_over_late(runs: Runs) -> float:
    """Mean rate of the first five of ten sources to arrive, over that of the last five."""
    early, late = halves(alpha=1.0, beta=3.0, noise=0.0, runs=runs)
    return early / late


def _with_higher_thresholds(runs: Runs) -> float:
    """Rate of Reno over that of Vegas with alpha 3 and beta 6; the median over the seeds."""
    found = runs(jittered(pair("reno", "vegas", buffer=15.0, thresholds=(3.0, 6.0))))
    reno, vegas = found.throughput.T  # [source, run]
    return float(np.median(reno / vegas))


# The next four functions are about De Vendictis and Baiocchi.
RTT = 0.08  # s, without queueing; our choice


def _ratio(B: float, runs: Runs) -> float:
    """Vegas's rate over Reno's at a buffer of ``B`` packets."""
    return validation.ratio_at(B, RTT, runs)


def _lost(runs: Runs) -> float:
    """The percentage of Vegas's packets that is lost at a buffer of 20 packets."""
    return 100 * float(runs(scenes.with_room(RTT, 20.0)).loss_rate[0])


LARGEST_CAPACITY, SMALLEST_CAPACITY = 4320.0, 1080.0  # pkt/s


def _over_capacity(runs: Runs) -> float:
    """Vegas's rate over Reno's at the largest capacity, divided by that at the smallest."""
    large, small = (
        runs(scenes.with_room(RTT, 20.0, mu)).mean for mu in (LARGEST_CAPACITY, SMALLEST_CAPACITY)
    )
    return float(large[0] / large[1] / (small[0] / small[1]))


def _printed_ratio(B: float, mu: float) -> float:
    """Vegas's rate over Reno's by the formulas that the paper prints.

    ``B`` is the buffer in packets, and ``mu`` the capacity in pkt/s.  For small buffers the paper
    has formulas of its own, in appendix A.  It says that they hold up to 5 packets.
    """
    vegas, reno = (
        validation.appendix(RTT, B, "printed") if B <= 5 else scenes.model(RTT, B, "printed", mu)
    )
    return vegas / reno


def _wrongly_marked(runs: Runs) -> float:
    """Rate of one NewReno flow that is marked as Vegas, over that of one that is marked right."""
    return gain(newreno=1, vegas=0, setting=SETTINGS[0], runs=runs)[0]


# s, baseRTT of the 20th source by the formula that the paper prints (Bonald's): its propagation
# delay of 0.2 s, and (alpha/c) 19 S_19 with alpha = 3 packets, the capacity c and S_19 = 1 + .. +
# 1/19
BONALD = 0.2 + 3.0 / CAPACITY * 19 * harmonic(19)

HEADLINES: Mapping[str, tuple[Headline, ...]] = {
    "tsang": (
        Headline(
            "table 3, x2 = 110 ms, index",
            "Jain's index of two Vegas sources with RTTs of 13 and 231 ms, alpha 1, beta 3",
            partial(_index, 110, 1.0, 3.0),
        ),
        Headline(
            "section 3.2, the longer connection always loses from x2 = 10 ms on",
            "in how many of 11 cases the connection with the longer delay gets less, alpha 1, "
            "beta 3",
            _longer_loses,
            printed="always",
        ),
        Headline(
            "table 4, x2 = 80 ms, Vegas-1",
            "Jain's index with RTTs of 13 and 171 ms, alpha = beta = 1",
            partial(_index, 80, 1.0, 1.0),
        ),
        Headline(
            "table 4, x2 = 80 ms, Vegas-3",
            "Jain's index with RTTs of 13 and 171 ms, alpha = beta = 3",
            partial(_index, 80, 3.0, 3.0),
        ),
        Headline(
            "table 6a, 10 % of 200 flows: index",
            "Jain's index of 20 Vegas and 180 Reno flows at a RED queue",
        ),
    ),
    "boutremans": (
        Headline(
            "figure 2, the last connection gets 10 times more than the earlier ones",
            "rate of the last of 20 sources over the median of the others, alpha = beta = 1",
            _late_over_middle,
            closed=lambda: float(last_over_middle(printed_rates(20))),
        ),
        Headline(
            "figure 4, up to 5 times",
            "rate of the last of 20 sources over that of the first, alpha = beta = 3",
            _late_gain,
            printed="up to 5, over all of figure 4",
        ),
        Headline(
            "figure 3b, the theoretical baseRTT is pessimistic",
            "baseRTT of the last of 20 sources, s, alpha = beta = 3",
            _late_base_rtt,
            printed=f"below the theory's {BONALD:.2f}",
        ),
        Headline(
            "section 3.1.2, the printed rates add up to c, n = 20",
            "sum of the rates of 20 sources, pkt/s; closed form: the printed rates",
            _sum,
            closed=lambda: float(printed_rates(20).sum()),
        ),
        Headline(
            "figure 7, early connections get more",
            "rate of the first five over that of the last five of 10 sources with true baseRTTs, "
            "alpha 1, beta 3",
            _early_over_late,
            printed="more than 1",
        ),
    ),
    "evaluation": (
        Headline(
            "table 2, vegas/reno, reno, transmitted",
            "packets that Reno sends beside Vegas in 106 s",
        ),
        Headline(
            "table 3, X = 22 ms, reno",
            "ACKs of a Reno source over those of one with 4 times the RTT",
        ),
        Headline(
            "table 4a, maxthresh 40, ACKs of vegas",
            "ACKs of Vegas beside Reno at a RED queue with thresholds of 3 and 40 packets",
        ),
        Headline(
            "section 3.3.2.1, reno-Vegas cross at buffer",
            "buffer at which Reno and Vegas get the same, packets",
        ),
        Headline(
            "figure 7, alpha 3, beta 6: not biased against Vegas beside Reno",
            "rate of Reno over that of Vegas at a buffer of 15, alpha 3, beta 6",
            _with_higher_thresholds,
            printed="not biased against Vegas",
        ),
    ),
    "devendictis": (
        Headline(
            "section 4, ratio Vegas/Reno at B = 5",
            "rate of Vegas over that of Reno at a buffer of 5, T 80 ms",
            partial(_ratio, 5.0),
            closed=partial(_printed_ratio, 5.0, scenes.MU),
        ),
        Headline(
            "section 4, ratio Vegas/Reno at B = 10",
            "rate of Vegas over that of Reno at a buffer of 10, T 80 ms",
            partial(_ratio, 10.0),
            closed=partial(_printed_ratio, 10.0, scenes.MU),
        ),
        Headline(
            "section 3, hypothesis 5 at B = 20: Vegas loses too",
            "packets that Vegas loses at a buffer of 20, percent",
            _lost,
            printed="more than 0",
            closed=lambda: None,
        ),
        Headline(
            "figure 3, largest error of Vegas",
            "error of the printed formulas for Vegas at a buffer of 30, T 80 ms, percent",
            lambda runs: abs(validation.errors(0, 0.08, runs)[30.0]),
            closed=lambda: None,
        ),
        Headline(
            "figure 4, the model's ratio falls lightly with the capacity",
            "ratio Vegas/Reno at 4320 over that at 1080 pkt/s, buffer 20, T 80 ms",
            _over_capacity,
            printed="a little below 1",
            closed=lambda: (
                _printed_ratio(20.0, LARGEST_CAPACITY) / _printed_ratio(20.0, SMALLEST_CAPACITY)
            ),
        ),
    ),
    "podlesny": (
        Headline("figure 1, NewReno's share", "NewReno's share of a link beside Vegas, percent"),
        Headline(
            "section IV-A, index at ratio 3, by packets",
            "relative fairness of 60 NewReno and 20 Vegas flows with RD",
        ),
        Headline(
            "section IV-A, utilisations at ratio 3, by packets",
            "part of the link that 60 NewReno and 20 Vegas flows use with RD, percent",
        ),
        Headline(
            "section IV-D, index at 10 Mbit/s",
            "relative fairness at 10 Mbit/s with 200 flows and Web traffic",
        ),
        Headline(
            "section V, one NewReno flow marked as Vegas does not improve its performance",
            "rate of one NewReno flow marked as Vegas, over its rate if marked as NewReno",
            _wrongly_marked,
            printed="at most 1",
        ),
    ),
}
