"""Basins beside ns-2: on random multistable cases, do as many starts lead to each outcome?

    python -m benchmarks.accuracy_basins [--cases 4] [--starts 200] [--model rounds]

Five families, so many random cases of each.  ns-2 runs every start.  The model runs the same ones,
for the share that lead to the same outcome, and as many others for the chi-squared test (two
samples, 1 %), which asks for independent ones; no two cases have starts in common.  If model and
ns-2 agreed, one case in a hundred would be told apart.  A case where nine starts in ten of ns-2
lead to one outcome does not count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import vegasmodel as vm
from vegasmodel.study.agreement import agreement
from vegasmodel.study.basins import Basins, basins

LEVEL = 0.01
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
STILL = 'send_jitter = "0 s"'


def flow(name: str, law: str, rtt: int, alpha: int, beta: int, wait: str) -> str:
    """A table of a scenario file."""
    return FLOW.format(name=name, law=law, rtt=rtt, alpha=alpha, beta=beta, wait=wait)


def draw(family: str, rng: np.random.Generator) -> tuple[str, str]:
    """A case of the family: what differs, and the scenario file."""
    capacity, rtt = int(rng.integers(150, 400)), int(rng.integers(40, 120))
    alpha = int(rng.integers(1, 4))
    beta, other = alpha + int(rng.integers(2, 6)), int(rtt * rng.uniform(1.2, 2.5))
    buffer, second = 80, "vegas"
    if family in ("hold", "threshold"):
        buffer, second, other = int(rng.integers(15, 35)), "reno", rtt
    if family == "threshold":  # around alpha (3 - 2 lambda), where Vegas begins to lose
        beta = alpha
        buffer = int(rng.integers(2, 4)) * alpha + 1
    if family == "whole windows":
        other = rtt
    laws = ("reno", "newreno", "sack")
    first, wait = "vegas", STILL if family in ("whole windows", "hold", "phases") else ""
    if family == "phases":
        first = second = str(rng.choice(laws))
        buffer = int(rng.integers(8, 30))
    said = (
        f"{first} {second}, {capacity} pkt/s, buffer {buffer}, {rtt} {other} ms, "
        f"alpha {alpha}, beta {beta}"
    )
    text = LINK.format(family=family, capacity=capacity, buffer=buffer)
    text += flow("a", first, rtt, alpha, beta, wait) + flow("b", second, other, alpha, beta, wait)
    return said, text


FAMILIES = ("whole windows", "bands", "hold", "threshold", "phases")


def answer(text: str, model: str, starts: int, seed: int) -> Basins:
    """Starts, first windows and their seeds drawn alike for the model and for ns-2."""
    case = vm.Scenario.from_toml(text)
    return basins(case, model, starts=starts, seed=seed, tolerance=0.02)


def main() -> None:
    """Print a line a case, then how many are told apart."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=4, help="of each family")
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--model", default="rounds")
    options = parser.parse_args()
    rejected, counted, alike = [], [], []
    for family in FAMILIES:
        rng = np.random.default_rng([1, FAMILIES.index(family)])
        for case in range(options.cases):
            said, text = draw(family, rng)
            common = 1000 * FAMILIES.index(family) + 2 * case  # seeds of the starts
            began = time.perf_counter()
            measured = answer(text, "ns2", options.starts, common)
            took = time.perf_counter() - began
            same = agreement(answer(text, options.model, options.starts, common), measured)
            other = agreement(answer(text, options.model, options.starts, common + 1), measured)
            several = same.counts[1].max() < 0.9 * measured.answered
            if several:
                counted.append(said)
                alike.append(same.alike)
                rejected += [said] if other.p < LEVEL else []
            print(
                f"{family:<13} {said}: {len(measured.outcomes)} outcomes in ns-2; "
                f"chi-squared {other.statistic:.1f} on {other.freedom}, p = {other.p:.3g}; "
                f"same start, same outcome {100 * same.alike:.0f} %; {took:.0f} s of ns-2"
                f"{'' if several else '; not multistable'}",
                flush=True,
            )
    print(
        f"{len(counted)} multistable cases of {len(FAMILIES) * options.cases}, {options.starts} "
        f"starts each: {len(rejected)} told apart at {100 * LEVEL:g} %; the same start leads to "
        f"the same outcome in {100 * np.mean(alike):.0f} % of starts"
    )


if __name__ == "__main__":
    main()
