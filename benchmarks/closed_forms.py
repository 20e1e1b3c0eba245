"""Compares closed forms with the continuous form of ``fluid`` where all their assumptions hold.

    python -m benchmarks.closed_forms [CASES [SEED]]

The scenarios are random, with the variant ``paper`` at one drop-tail link.  They have one to six
Vegas flows that start together or one after another, with alpha = beta or alpha < beta, baseRTTs
measured or given, and any buffer; or they have Vegas beside Reno.  If the prediction of a closed
form says that every assumption holds, its throughputs must agree with those of ``fluid`` within
2 %.  If it gives a range of throughputs, the range must contain those of ``fluid``, or miss them by
at most 2 %.  The exit status is 1 if some prediction does not agree.
"""

import argparse
import collections
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel import predictor
from vegasmodel.engines.fluid import continuous
from vegasmodel.scenario import Scenario

MODELS = ("equilibrium", "bands", "arrivals", "arrivals-bonald", "minicycle", "network")
ACCURATE = 0.02  # largest error that a claim may have


class Claim(NamedTuple):
    """A closed form whose assumptions all hold, and its error against the fluid model."""

    model: str
    scenario: Scenario
    # largest relative error of a flow's throughput; if the closed form gives a range for each flow,
    # its distance from this range
    error: float


def draw(rng: np.random.Generator) -> Scenario:
    """A random scenario for which closed forms are compared with the fluid model.

    It has one Vegas flow and one Reno flow, which have the same RTT and start together; or it has
    one to six Vegas flows with different RTTs, which start together or one after another.  In half
    of the scenarios each Vegas flow has alpha = beta.
    """
    capacity = np.exp(rng.uniform(np.log(100), np.log(5000)))  # pkt/s
    with_reno = rng.random() < 0.3
    two_thresholds = rng.random() < 0.5  # whether beta may be above alpha
    flows: list[dict[str, Any]] = []
    # from the start of one flow to that of the next, in s
    start_interval = 0.0 if with_reno else float(rng.choice([0, 2, 20, 60, 100, 300]))
    rtt = rng.uniform(0.02, 0.3)  # s
    for i in range(1 if with_reno else rng.integers(1, 7)):
        alpha = int(rng.integers(1, 7))
        rtt = rtt if with_reno else rng.uniform(0.02, 0.3)
        beta = alpha + (int(rng.integers(0, 4)) if two_thresholds else 0)
        flow = {"law": "vegas", "name": f"v{i}", "alpha": alpha, "beta": beta}
        flow |= {"rtt": f"{rtt:.6f} s", "start": f"{i * start_interval} s"}
        knows_base_rtt = rng.random() < 0.2  # if not, the flow takes its least RTT as baseRTT
        flows.append(flow | ({"over_estimate": "0 s"} if knows_base_rtt else {}))
    buffer = "inf" if rng.random() < 0.7 else f"{rng.uniform(1, 60):.2f} pkt"
    if with_reno:
        flows.append({"law": "reno", "rtt": f"{rtt:.6f} s"})
        buffer = f"{rng.uniform(0.5, 10):.2f} pkt"
    # the warm-up ends after the last start
    warmup = len(flows) * start_interval + float(rng.choice([20, 100, 400]))
    return Scenario.from_dict(
        {
            "link": [{"capacity": f"{capacity:.3f} pkt/s", "buffer": buffer}],
            "flow": flows,
            "run": {"duration": f"{warmup + 200} s", "warmup": f"{warmup} s"},
        }
    )


# Assumptions on single packets, which the fluid model makes, too: they need not hold
ABOUT_PACKETS = {"buffer-holds-bursts", "many-packets-queued"}


def claims(scenario: Scenario) -> Iterator[Claim]:
    """The closed forms that claim to be right for the scenario: all their assumptions hold.

    Each comes with its error against the fluid model, which runs only if there is such a form.
    """
    reference = None  # the fluid model's throughputs, [flows] pkt/s
    for model in MODELS:
        answer = predictor.predict(scenario, model)
        broken = {a.name for a in answer.assumptions if a.holds is not True}
        if answer.throughput is None or broken - ABOUT_PACKETS:
            continue
        if reference is None:
            run = continuous.run(scenario, sample=scenario.run.duration)
            reference = run.throughput  # NaN if the run ended early
        low, high = answer.throughput, answer.throughput
        if answer.throughput_range is not None:  # the model's result is a range for each flow
            low, high = answer.throughput_range.T
        off = np.maximum(low - reference, reference - high) / reference
        yield Claim(model, scenario, float(np.maximum(off, 0.0).max()))


def gather(cases: int, seed: int) -> list[Claim]:
    """Draw random scenarios until there are ``cases`` claims."""
    rng, found = np.random.default_rng(seed), list[Claim]()
    while len(found) < cases:
        try:
            scenario = draw(rng)
        except ValueError:  # an RTT below the link's own transmission times
            continue
        found += claims(scenario)
    return found


def main() -> int:
    """Print a table; return 0 if all claims are right, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=at_least(1), nargs="?", default=500)
    parser.add_argument("seed", type=at_least(0), nargs="?", default=1)
    given = parser.parse_args()
    cases, seed = given.cases, given.seed
    by_model: dict[str, list[float]] = collections.defaultdict(list)
    for claim in gather(cases, seed):
        by_model[claim.model].append(claim.error)
    print(f"{'model':16}{'claimed':>8}{'worst':>9}{'beyond 2 %':>12}")
    for model, errors in by_model.items():
        bad = sum(not e <= ACCURATE for e in errors)  # NaN is bad, too
        print(f"{model:16}{len(errors):8d}{max(errors):9.2%}{bad:12d}")
    return int(any(not e <= ACCURATE for errors in by_model.values() for e in errors))


if __name__ == "__main__":
    sys.exit(main())
