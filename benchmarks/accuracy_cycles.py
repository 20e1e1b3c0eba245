"""Compares ``limit_cycle`` by ``rounds`` with averages over runs that are twenty times as long.

    python -m benchmarks.accuracy_cycles [--cases N] [--seed S]

A random case has one to five sources of any law at a drop-tail buffer, with one RTT or several, in
the variant ns2 or linux.  For each kind of answer the table has the number of cases and the largest
error of a flow's throughput, divided by the capacity.  A case takes about 3 CPU seconds.
"""

import argparse
import math
from dataclasses import replace

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.engines.rounds.cycle import FIRST_TRIPS
from vegasmodel.engines.rounds.run import run
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.simulation import limit_cycle

SEED = 11
LAWS = ("vegas", "reno", "newreno", "sack", "tahoe")
# the long run lasts so many times as long as the first stretch that ``limit_cycle`` simulates
TIMES_AS_LONG = 20
FAR_OFF = 5  # standard errors: answers "neither found" with a larger error are counted


def draw(seed: int, k: int) -> Scenario:
    """Random case number ``k``, from 0 on; a case depends only on ``seed`` and ``k``."""
    rng = np.random.default_rng([seed, k])
    n = int(rng.integers(1, 6))
    variant = ("ns2", "ns2", "linux")[rng.integers(3)]
    laws = [LAWS[rng.integers(5)] for _ in range(n)]
    if rng.random() < 0.3:
        laws = [laws[0]] * n
    # Linux always uses SACK, so reno, newreno and sack are the same there, and it has no Tahoe
    if variant == "linux":
        laws = ["vegas" if law == "vegas" else "reno" for law in laws]

    def rtt() -> float:
        """A random RTT, s."""
        return float(np.round(rng.uniform(0.02, 0.2), 3))

    common = rtt()
    same = rng.random() < 0.5  # whether all flows have the RTT ``common``
    alpha = float(rng.integers(1, 4))
    beta = alpha + float(rng.integers(0, 3))
    flows = []
    for i, law in enumerate(laws):
        own_rtt = common if same else rtt()
        start = float(np.round(rng.uniform(0, 5), 2))
        flow = Flow(law, own_rtt, name=f"{law}-{i}", start=start, variant=variant, send_jitter=0.0)
        flows.append(replace(flow, alpha=alpha, beta=beta) if law == "vegas" else flow)
    capacity = float(np.round(np.exp(rng.uniform(math.log(100.0), math.log(2000.0)))))
    link = Link(capacity=capacity, buffer=float(rng.integers(3, 60)))
    return Scenario((link,), tuple(flows), run=Run(duration=600.0, warmup=200.0))


def long_run(scenario: Scenario) -> Floats:
    """The throughputs in a long run, for comparison with ``limit_cycle``.

    The run is 20 times as long as the first stretch that ``limit_cycle`` simulates, and the first
    twentieth of it does not count.
    """
    last_start = max(flow.start for flow in scenario.flows)
    span = TIMES_AS_LONG * FIRST_TRIPS * max(flow.rtt for flow in scenario.flows)
    flows = tuple(replace(flow, stop=None) for flow in scenario.flows)
    timing = replace(
        scenario.run, duration=last_start + span, warmup=last_start + span / TIMES_AS_LONG
    )
    counted = run(replace(scenario, flows=flows, run=timing)).flows
    # packets delivered after the warm-up, when ``mark_delivered`` was noted
    packets = counted["delivered"] - counted["mark_delivered"]
    rates: Floats = packets / (span - span / TIMES_AS_LONG)
    return rates


def main() -> None:
    """Print how far ``limit_cycle`` is from a long run, for each kind of answer.

    The error in a case is the largest difference of a flow's throughput, as a fraction of the
    capacity.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=at_least(1), default=200)
    parser.add_argument("--seed", type=at_least(0), default=SEED)
    options = parser.parse_args()
    errors: dict[str, list[float]] = {"fixed point": [], "periodic": [], "neither found": []}
    far_off = 0  # answers "neither found" that are off by more than FAR_OFF standard errors
    largest_residual = 0.0  # among the fixed points and periodic motions, packets
    for k in range(options.cases):
        scenario = draw(options.seed, k)
        found, rates = limit_cycle(scenario, "rounds"), long_run(scenario)
        differences = np.abs(found.throughput - rates)
        errors[found.kind].append(float(differences.max()) / scenario.links[0].capacity)
        if found.kind == "neither found":
            far_off += bool(np.any(differences > FAR_OFF * found.spread))
        else:
            largest_residual = max(largest_residual, found.residual)
    print("| kind | cases | median error | 95 of 100 below | largest | beyond 0.005 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind, of_kind in errors.items():
        if of_kind:
            high, beyond = np.quantile(of_kind, 0.95), np.sum(np.array(of_kind) > 0.005)
            print(
                f"| {kind} | {len(of_kind)} | {np.median(of_kind):.5f} | {high:.5f} "
                f"| {max(of_kind):.5f} | {beyond} |"
            )
    print(f"largest residual {largest_residual:.1e} packets")
    print(
        f"neither found: {far_off} of {len(errors['neither found'])} are off by more than "
        f"{FAR_OFF} standard errors"
    )


if __name__ == "__main__":
    main()
