"""Records of Boutremans and Le Boudec: figure 2, a premise of section 3.1.2, and section 3.2.1.

The sources arrive one after another.  The premise is that each finds the earlier ones in
equilibrium.  A later source gets more, because it counts the queueing delay that it finds as
propagation delay.
"""

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
    """Figure 2: the last of 20 sources that arrive one by one gets more than the earlier ones.

    A later source over-estimates its propagation delay by the queueing delay that it finds.
    """
    # rates by the formula that the paper prints, and by the exact solution of equation (6)
    both = printed_rates(20), rates(recursion(20))
    over_median = [float(last_over_middle(r)) for r in both]
    over_mean = [float(r[-1] / r[:-1].mean()) for r in both]
    over_first = [float(advantage(r)) for r in both]
    return [
        Record(
            "figure 2, the last connection gets 10 times more than the earlier ones",
            printed=10,
            blocked="It depends on which rate of 'the earlier connections' is meant. By the "
            f"printed rates the last of 20 sources gets {over_median[0]:.1f} times the median of "
            f"the earlier ones, {over_mean[0]:.1f} times their mean and {over_first[0]:.1f} times "
            f"the first's rate; by the exact recursion {over_median[1]:.1f}, {over_mean[1]:.1f} "
            f"and {over_first[1]:.1f}. So the median fits. Our copy lacks the picture.",
            source="print",
            prints=("10 times more bandwidth than the earlier connections",),
        ),
    ]


INTERVALS = (30.0, 60.0, 120.0)  # s, between arrivals in ns-2
NEAR = 0.1  # a ratio is near that by equation (6) if it differs by less than this part of it


def in_ns2(alpha: float, runs: Runs) -> list[Floats]:
    """The last of 20 sources' rate over the first one's, in each run of ns-2.

    The list has an entry for each time between arrivals (``INTERVALS``).  ``alpha`` is Vegas's
    threshold, in packets; beta is equal to it.
    """
    return [advantage(runs(one_by_one(20, alpha, every)).throughput) for every in INTERVALS]


def by_six(alpha: float) -> float:
    """The last of 20 sources' rate over the first one's, by equation (6) with the threshold alpha.

    The equation also gives the queue that each source finds, and so its baseRTT.
    """
    return float(advantage(rates(recursion(20, alpha), alpha)))


def by_rule(alpha: float, step: float, rounded: bool = False) -> Floats:
    """The last of 20 sources' rate over the first one's, by the paper's window rule (1).

    There is a value for each seed.  Each source finds a queue at rest.  ``step`` is by how many
    packets a window changes, and with ``rounded`` the backlog is rounded, as in ns-2.
    """
    return advantage(rule.rates(20, alpha, rule.unhurried(alpha), step, rounded))


def mean_and_error(values: Floats) -> str:
    """The mean and its standard error, as text."""
    return with_error(float(values.mean()), float(standard_error(values)))


def _as_equation_6_says(runs: Runs) -> Found:
    """Whether the last source's rate over the first one's is in ns-2 what equation (6) says.

    It must be so at each alpha (``by_six``), with the slowest of the arrivals that we ran
    (``INTERVALS``).  The result's detail also has the ratio by the paper's window rule (1), with
    steps of a whole and of half a packet.
    """
    # by alpha: for each time between arrivals, the last the longest, the ratio in each run of ns-2
    by_ns2 = {alpha: in_ns2(alpha, runs) for alpha in ALPHAS}
    # by alpha: the ratio by rule (1) for each seed, with steps of a whole and of half a packet
    whole = {alpha: by_rule(alpha, step=1.0) for alpha in ALPHAS}
    half = {alpha: by_rule(alpha, step=0.5) for alpha in ALPHAS}

    def near(ratios: Floats, alpha: float) -> bool:
        """Whether the mean of ``ratios``, of single runs, is near to that by (6)."""
        return bool(abs(ratios.mean() / by_six(alpha) - 1) < NEAR)

    texts = [
        f"alpha {alpha:g}: {', '.join(map(mean_and_error, found))}"
        for alpha, found in by_ns2.items()
    ]
    by_steps = [", ".join(map(mean_and_error, found.values())) for found in (whole, half)]
    return Found(
        all(near(found[-1], alpha) for alpha, found in by_ns2.items()),
        detail=f"By (6) {by_six(3.0):.1f} at any alpha. By ns-2, with an arrival every "
        f"{', '.join(f'{every:g}' for every in INTERVALS)} s: {'; '.join(texts)}. By rule (1) at "
        f"alpha {', '.join(f'{alpha:g}' for alpha in ALPHAS)}: {by_steps[0]} if windows change by "
        f"one packet, {by_steps[1]} if they change by half a packet.",
        missing="(6) assumes that each source keeps a backlog of exactly alpha. How nearly it can "
        "do so decides. By rule (1) with windows that change by half packets the ratios are near "
        "that of (6) at every alpha. By the rule as printed, with whole packets, and in ns-2, "
        "which also rounds the backlog, they are near it at some alphas only."
        if all(near(found, alpha) for alpha, found in half.items())
        else "",
    )


def premise() -> list[Record]:
    """The record of a premise: each source starts when the earlier ones are in equilibrium.

    If they are, equation (6) says which rates the sources get.
    """
    return [
        Record(
            "section 3.1.2, sources that each find an equilibrium get what (6) says",
            compute=_as_equation_6_says,
            note="n = 20, alpha = beta. We compare the last source's rate over the first one's. "
            "Read as: with the slowest arrivals it is within 10 % of that by (6) at each alpha, "
            "where (6) is solved exactly, also for the baseRTTs that arriving sources find. The "
            "paper simulates an arrival every 2 s. In ns-2 with alpha 3 the ratio rises with the "
            "time between arrivals, and exceeds that of (6) in the end, so one alpha and one such "
            "time would show nothing. ns-2 2.35, 10 runs, 60 s each; means with standard errors.",
        )
    ]


def setting() -> list[Record]:
    """The records of figure 1 and section 3.2.1, which describe the simulated network.

    Equation (6) says that the rates add up to the capacity; d is the propagation delay.
    """
    return [
        Record(
            "figure 1, n users keep the one link busy",
            printed=None,
            blocked="A sketch, and a premise of (6), 'if the network capacity is fully utilized', "
            "which nothing could contradict: packets of each source wait in an infinite buffer. "
            "Our copy lacks the picture.",
        ),
        Record(
            "section 3.2.1, the random part of the delay is very small",
            printed=None,
            blocked="The paper states a variance of 90 without a unit. It is the variance of the "
            "number of packets in an M/M/1 queue at 90 % load, so the standard deviation is 9.5 "
            "packets, and the paper does not say how long a packet takes. With 1000 B at 1 Mbit/s "
            "it is 76 ms, more than a third of d; with less than 264 B it is less than a tenth of "
            "d.",
        ),
    ]


RECORDS = (*setting(), *figure_2(), *premise())
