"""Tests on multistable cases whether a model and ns-2 agree on how often each outcome occurs.

    python -m benchmarks.accuracy_basins [--cases 4] [--starts 200] [--seed 1] [--model rounds]

A case is a random network.  The random start times of its flows may lead to different steady
states, its outcomes.  A case is multistable if in ns-2 no outcome has nine tenths of the starts or
more.  There are five families of networks.  In each, cases are drawn until ``--cases`` of them are
multistable; the model does not influence this choice.

ns-2 and the model run the same starts, which gives the share of starts with the same outcome.  A
chi-squared test (two samples, 1 %) says whether the model and ns-2 agree on how often each outcome
occurs.  It requires independent samples, so for it the model runs as many other starts.  No two
cases have starts in common.

A case "differs" if its p is below 1 %.  Even if the model agreed with ns-2 everywhere, 0.2 of 20
cases would differ on average, and at least one would in 18 % of campaigns.  So the last lines also
give the probability of so many cases, and the number of cases that differ by Holm's correction.
"""

import argparse
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

import vegasmodel as vm
from benchmarks.arguments import at_least
from vegasmodel.study.agreement import agreement
from vegasmodel.study.basins import Basins, basins

LEVEL = 0.01  # a smaller p means that the model and ns-2 differ
LINK = """
name = "{family}"
packet_size = "500 B"
[[link]]
capacity = "{capacity} pkt/s"
buffer = "{buffer} pkt"
[run]
duration = "100 s"
warmup = "40 s"
"""
FLOW = """
[[flow]]
name = "{name}"
law = "{law}"
variant = "ns2"
rtt = "{rtt} ms"
alpha = {alpha}
beta = {beta}
{wait}
"""
DOES_NOT_WAIT = 'send_jitter = "0 s"'


def flow(name: str, law: str, rtt: int, alpha: int, beta: int, wait: str) -> str:
    """The table of a flow in a scenario file.

    ``wait`` is its line on the random wait of senders: ``DOES_NOT_WAIT``, or empty for the default.
    """
    return FLOW.format(name=name, law=law, rtt=rtt, alpha=alpha, beta=beta, wait=wait)


def draw(family: str, rng: np.random.Generator) -> tuple[str, str]:
    """A random case of the family: a description, and the text of its scenario file.

    ``FAMILIES`` says what each family is for.  A case has two flows, "a" and "b".
    """
    # The numbers of the family "bands", with two Vegas flows; the other families change some.
    capacity, rtt_a = int(rng.integers(150, 400)), int(rng.integers(40, 120))
    alpha = int(rng.integers(1, 4))
    beta, rtt_b = alpha + int(rng.integers(2, 6)), int(rtt_a * rng.uniform(1.2, 2.5))
    buffer, law_a, law_b = 80, "vegas", "vegas"
    if family in ("hold", "threshold"):
        buffer, law_b, rtt_b = int(rng.integers(15, 35)), "reno", rtt_a
    if family == "threshold":
        # Beside Reno, Vegas loses packets in buffers below about alpha (3 - 2 lambda) packets,
        # where lambda is the factor by which a loss multiplies its window.
        beta = alpha
        buffer = int(rng.integers(2, 4)) * alpha + 1
    if family == "whole windows":
        rtt_b = rtt_a
    if family == "phases":
        law_a = law_b = str(rng.choice(("reno", "newreno", "sack")))
        buffer = int(rng.integers(8, 30))
    wait = DOES_NOT_WAIT if family in ("whole windows", "hold", "phases") else ""
    description = (
        f"{law_a} {law_b}, {capacity} pkt/s, buffer {buffer}, {rtt_a} {rtt_b} ms, "
        f"alpha {alpha}, beta {beta}"
    )
    text = LINK.format(family=family, capacity=capacity, buffer=buffer)
    text += flow("a", law_a, rtt_a, alpha, beta, wait) + flow("b", law_b, rtt_b, alpha, beta, wait)
    return description, text


# why the outcome may depend on the starts: two Vegas with whole windows, or with alpha < beta and
# different RTTs; Vegas beside Reno with alpha < beta, or in buffers near the largest in which Vegas
# loses packets; phase effects between two loss-based flows
FAMILIES = ("whole windows", "bands", "hold", "threshold", "phases")


def answer(text: str, model: str, starts: int, seed: int, threads: int) -> Basins:
    """The outcomes by a model or ns-2; the same seed gives both the same starts."""
    case = vm.Scenario.from_toml(text)
    return basins(case, model, starts=starts, seed=seed, tolerance=0.02, threads=threads)


def multistable(measured: Basins) -> bool:
    """Whether a case is multistable: every outcome has less than nine tenths of the starts.

    ``measured`` has the outcomes in ns-2.  Only starts that led to an outcome count
    (``measured.answered``).  ``agreement`` counts the starts that lead to each outcome; it takes
    two models, so here ``measured`` stands for both.
    """
    starts_of_outcomes, _ = agreement(measured, measured).counts
    return bool(starts_of_outcomes.max() < 0.9 * measured.answered)


def seed_of_starts(seed: int, family: int, number: int) -> int:
    """The seed of the random starts of a case, which ns-2 and the model both run.

    ``seed`` is that of all cases, ``family`` the position of the case's family in ``FAMILIES``, and
    ``number`` counts the cases of the family that were drawn before it.  The result is even.  No
    two cases have the same seed as long as ``number`` is below 500.
    """
    # ``basins`` allows seeds below 2**31.  The remainder of an even number by 2**31 is even, too.
    return ((seed * len(FAMILIES) + family) * 1000 + 2 * number) % 2**31


class Case(NamedTuple):
    """A multistable case, and its outcomes in ns-2."""

    number: int  # how many cases of the family were drawn before it
    description: str
    text: str  # of the scenario file
    # The random starts in ns-2 were drawn with this seed. The next seed is for the model's other
    # starts, so no other case has it.
    seed: int
    measured: Basins  # the outcomes in ns-2


def multistable_cases(family: str, options: argparse.Namespace) -> Iterator[Case]:
    """Draw cases of a family, until ``options.cases`` of them are multistable; yield these."""
    number_of_family = FAMILIES.index(family)
    rng = np.random.default_rng([options.seed, number_of_family])
    found = 0
    for number in itertools.count():
        description, text = draw(family, rng)
        seed = seed_of_starts(options.seed, number_of_family, number)
        measured = answer(text, "ns2", options.starts, seed, options.threads)
        if multistable(measured):
            yield Case(
                number=number, description=description, text=text, seed=seed, measured=measured
            )
            found += 1
            if found == options.cases:
                return


def compared(case: Case, model: str, threads: int) -> tuple[float, float]:
    """Compare the model with ns-2 on one case and print a line.

    Returns p of the chi-squared test, and the share of starts that lead to the same outcome in
    both.
    """
    measured, starts = case.measured, len(case.measured.starts)
    same = agreement(answer(case.text, model, starts, case.seed, threads), measured)
    # with other starts, since the test needs independent samples
    other = agreement(answer(case.text, model, starts, case.seed + 1, threads), measured)
    print(
        f"{measured.scenario.name:<13} {case.description}: {len(measured.outcomes)} outcomes in "
        "ns-2; "
        f"chi-squared {other.statistic:.1f} on {other.freedom}, p = {other.p:.3g}; "
        f"same start, same outcome {100 * same.alike:.0f} %",
        flush=True,
    )
    return other.p, same.alike


def verdict(p: list[float]) -> str:
    """A text: how many cases differ between the model and ns-2, and whether that may be chance.

    ``p`` has the p-value of each case's test.  Among many cases, some p are small by chance.  So
    the text has the probability of so many small ones, and how many cases differ by Holm's
    correction for several tests.
    """
    differ = sum(each < LEVEL for each in p)
    chance = binom.sf(differ - 1, len(p), LEVEL)
    by_holm = 0  # smallest p first, each tested at 1 % / (number of p not tested yet)
    while by_holm < len(p) and sorted(p)[by_holm] < LEVEL / (len(p) - by_holm):
        by_holm += 1
    return (
        f"{differ} differ at a level of {100 * LEVEL:g} % for each case (by chance "
        f"{LEVEL * len(p):.2g} on average, as many or more in {100 * chance:.3g} % of campaigns); "
        f"{by_holm} at a level of {100 * LEVEL:g} % for all cases together (Holm)"
    )


def main() -> None:
    """Print whether model and ns-2 agree in each random network, then in how many they do not."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--cases", type=at_least(1), default=4, help="multistable cases of each family"
    )
    parser.add_argument("--starts", type=at_least(1), default=200)
    parser.add_argument("--seed", type=at_least(0), default=1)
    parser.add_argument("--model", default="rounds", choices=("rounds", "fluid"))
    parser.add_argument(
        "--family", choices=FAMILIES, help="this family only; default: all families"
    )
    parser.add_argument("--threads", type=at_least(1), default=1, help="runs at a time")
    options = parser.parse_args()
    results: list[tuple[float, float]] = []  # of each multistable case, as ``compared`` returns it
    drawn = 0  # cases of all families
    for family in FAMILIES if options.family is None else (options.family,):
        for case in multistable_cases(family, options):
            results.append(compared(case, options.model, options.threads))
        drawn += case.number + 1
    print(
        f"{len(results)} multistable cases ({drawn - len(results)} others drawn), "
        f"{options.starts} starts each: "
        f"{verdict([p for p, _ in results])}; the same start leads to the same outcome in "
        f"{100 * np.mean([alike for _, alike in results]):.0f} % of starts"
    )


if __name__ == "__main__":
    main()
