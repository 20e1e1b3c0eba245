"""Figure 2 of Boutremans and Le Boudec by theory, the premise of 3.1.2, and section 3.2.1.

The sources arrive one after another.  The premise is that each finds the earlier ones in
equilibrium.
"""

from __future__ import annotations

from paper_checks.boutremans import rule
from paper_checks.boutremans.scenes import one_by_one
from paper_checks.boutremans.simulations import ALPHAS
from paper_checks.boutremans.theory import (
    advantage,
    last_over_middle,
    printed_rates,
    rates,
    recursion,
)
from paper_checks.checks import Found, Record
from paper_checks.runs import Runs
from vegasmodel.metrics import Floats, standard_error, with_error


def figure_2() -> list[Record]:
    """Figure 2: the rates of 20 sources in order of arrival; the last against the earlier ones."""
    bonald, exact = printed_rates(20), rates(recursion(20))
    middle = [float(last_over_middle(r)) for r in (bonald, exact)]
    mean = [float(r[-1] / r[:-1].mean()) for r in (bonald, exact)]
    first = [float(advantage(r)) for r in (bonald, exact)]
    return [
        Record(
            "figure 2, the last connection gets 10 times more than the earlier ones",
            "figure",
            10,
            blocked="What 'the earlier ones' are decides. By the printed rates the last of 20 "
            f"sources gets {middle[0]:.1f} times the median of the earlier ones, {mean[0]:.1f} "
            f"times their mean and {first[0]:.1f} times the first's rate; by the exact recursion "
            f"{middle[1]:.1f}, {mean[1]:.1f} and {first[1]:.1f}. So the median fits. The picture "
            "is missing from our text.",
            source="print",
            prints=("10 times more bandwidth than the earlier connections",),
        ),
    ]


GAPS = (30.0, 60.0, 120.0)  # s, between arrivals in ns-2
NEAR = 0.1  # as a part of what (6) says


def in_ns2(alpha: float, runs: Runs) -> list[Floats]:
    """The last of 20 sources' rate over the first one's, in each run of ns-2, for each of ``GAPS``.

    ``alpha`` is Vegas's threshold, in packets; beta is equal to it.
    """
    return [advantage(runs(one_by_one(20, alpha, every)).throughput) for every in GAPS]


def by_six(alpha: float) -> float:
    """The last of 20 sources' rate over the first one's, by equation (6) with the threshold alpha.

    The equation also gives the queue that each source finds, and so its baseRTT.
    """
    return float(advantage(rates(recursion(20, alpha), alpha)))


def by_rule(alpha: float, step: float, rounded: bool = False) -> Floats:
    """The last of 20 sources' rate over the first one's, by the paper's rule (1), for each seed.

    Each source finds a queue at rest.  ``step`` and ``rounded`` are those of ``rule.course``.
    """
    return advantage(rule.rates(20, alpha, rule.unhurried(alpha), step, rounded))


def mean_and_error(values: Floats) -> str:
    """The mean and its standard error, as text."""
    return with_error(float(values.mean()), float(standard_error(values)))


def _rested(runs: Runs) -> Found:
    """Whether ns-2 has the ratio of ``by_six`` at each alpha, with the longest of the ``GAPS``."""
    found = {alpha: in_ns2(alpha, runs) for alpha in ALPHAS}
    near = [abs(own[-1].mean() / by_six(alpha) - 1) < NEAR for alpha, own in found.items()]
    texts = [
        f"alpha {alpha:g}: {', '.join(map(mean_and_error, own))}" for alpha, own in found.items()
    ]
    whole, half = ([by_rule(alpha, step) for alpha in ALPHAS] for step in (1.0, 0.5))
    fine = [
        abs(own.mean() / by_six(alpha) - 1) < NEAR for alpha, own in zip(ALPHAS, half, strict=True)
    ]
    by = [", ".join(map(mean_and_error, values)) for values in (whole, half)]
    return Found(
        all(near),
        detail=f"By (6) {by_six(3.0):.1f} at any alpha; ns-2, an arrival every "
        f"{', '.join(f'{every:g}' for every in GAPS)} s: {'; '.join(texts)}. Rule (1) at alpha "
        f"{', '.join(f'{alpha:g}' for alpha in ALPHAS)}: {by[0]} with steps of one packet, {by[1]} "
        "with steps of half a packet.",
        missing="How nearly a source can keep a backlog of alpha itself, which (6) assumes, "
        "decides. By rule (1) with windows that change by half packets the ratios are near that "
        "of (6) at every alpha. By the rule as printed, with whole packets, and in ns-2, which "
        "rounds the backlog too, they are near it at some alphas only."
        if all(fine)
        else "",
    )


def premise() -> list[Record]:
    """The premise "if connection i starts when connections 1, ..., i - 1 are in equilibrium"."""
    return [
        Record(
            "section 3.1.2, sources that each find an equilibrium get what (6) says",
            "claim",
            True,
            _rested,
            note="n = 20, alpha = beta: last rate over first, where the paper simulates an arrival "
            "every 2 s, within 10 % of (6) solved exactly with the baseRTTs of its own recursion, "
            "at each alpha, with the slowest arrivals. In ns-2 with alpha 3 the ratio rises with "
            "the time between arrivals, and passes that of (6), so that one alpha and one time "
            "show nothing. ns-2 2.35, 10 runs, 60 s each; means with standard errors.",
        )
    ]


def setting() -> list[Record]:
    """The records of figure 1 and section 3.2.1, which describe the simulated network."""
    return [
        Record(
            "figure 1, n users keep the one link busy",
            "figure",
            None,
            blocked="A sketch, and a premise of (6), 'if the network capacity is fully utilized'. "
            "With an infinite buffer, in which packets of each source wait, nothing could "
            "contradict it. The picture is missing from our text.",
        ),
        Record(
            "section 3.2.1, the random part of the delay is very small",
            "claim",
            None,
            blocked="The variance has no unit: that of the number in an M/M/1 queue at 90 %, 90, "
            "is a standard deviation of 9.5 packets, and the paper does not say how long a packet "
            "is. With 1000 B at 1 Mbit/s it is 76 ms, more than a third of d; under 264 B less "
            "than a tenth.",
        ),
    ]


RECORDS = (*setting(), *figure_2(), *premise())
