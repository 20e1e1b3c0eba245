"""Measures whether feedback delay makes the continuous fluid model agree better with ns-2.

With feedback delay, a sender reacts to a change of the queue one round trip later.

    python -m benchmarks.accuracy_feedback [--families NAME ...] [--cases N] [--list]

It uses the drop-tail cases of ``benchmarks.accuracy`` and their stored ns-2 runs.  The error is
that of the throughput ratio of Vegas to loss-based flows, or the NRMSE of the throughputs if all
flows are of one kind.  The table has its mean over ``--cases`` cases of each family.  The models
without and with delay get ns-2's thresholds and the same start times, drawn five times anew; their
throughputs are averaged.  The column "nearer" has the number of cases in which the model with delay
has the smaller error.  The last lines give the CPU seconds of a run of 600 s with 2 flows.
"""

import argparse
import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks.accuracy_cases import CASES, OTHER_DRAWS, SEED, case, with_seed
from benchmarks.accuracy_runs import load
from benchmarks.arguments import at_least
from benchmarks.fluid import cpu, pair
from vegasmodel.engines.delayed import feedback
from vegasmodel.engines.fluid import continuous
from vegasmodel.engines.starts import start_times
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.results.scatter import MIN_RUNS
from vegasmodel.scenario import Scenario

FAMILIES = ("pair", "mixed", "arrivals", "bands", "losses")
Engine = Callable[[Scenario], Floats]  # returns the throughputs
ENGINES: dict[str, Engine] = {
    "plain": lambda s: continuous.run(s).throughput,
    "delayed": lambda s: feedback.run(s, 2).throughput,
}


def one_by_one(scenario: Scenario, k: int) -> Scenario:
    """The scenario with every flow as a group of its own, starting as in the k-th random draw."""
    flows = tuple(
        dataclasses.replace(m.flow, name=f"f{i}", count=1, rtt=m.rtt, start=float(start))
        for i, (m, start) in enumerate(zip(scenario.members, start_times(scenario, k), strict=True))
    )
    run = dataclasses.replace(scenario.run, start_jitter=0.0)  # the starts are drawn already
    return dataclasses.replace(scenario, flows=flows, run=run)


def error(scenario: Scenario, engine: Engine, measured: Floats) -> float:
    """The error of the throughputs of ``engine`` against ``measured``, those of ns-2.

    It is the error of the ratio of Vegas's throughput to that of the loss-based flows.  If all
    flows are of one kind, it is the root mean square error of the throughputs over their mean.
    """
    asked = with_seed(scenario, OTHER_DRAWS)
    model = np.mean([engine(one_by_one(asked, k)) for k in range(MIN_RUNS)], axis=0)
    vegas = np.array([m.flow.law == "vegas" for m in scenario.members])
    if vegas.all() or not vegas.any():
        return float(np.sqrt(np.mean((model - measured) ** 2)) / measured.mean())
    by_model, by_ns2 = (x[vegas].mean() / x[~vegas].mean() for x in (model, measured))
    return float(by_model / by_ns2 - 1.0)


def main() -> None:
    """Print a row of errors for each family, then the time of each model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=at_least(2, CASES), default=CASES)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--list", action="store_true", help="print every case")
    options = parser.parse_args()
    stored = load(SEED)
    print(f"{'family':10s}{'cases':>6s}" + "".join(f"{name:>18s}" for name in ENGINES) + "  nearer")
    for family in options.families:
        errors = []
        for index in range(options.cases):
            measured = np.mean(stored[f"{family}/{index}"]["runs"], axis=0)
            row = [error(case(family, index), engine, measured) for engine in ENGINES.values()]
            errors.append(row)
            if options.list:
                print(f"{family}/{index}" + "".join(f"{e:+18.3f}" for e in row), flush=True)
        table = np.abs(errors)
        means, se = table.mean(axis=0), standard_error(table)
        cells = "".join(f"{m:9.1%} +- {e:5.1%}" for m, e in zip(means, se, strict=True))
        without_delay, with_delay = table.T  # the models' errors in each case
        nearer = int((with_delay < without_delay).sum())  # cases in which delay helps
        print(f"{family:10s}{len(table):6d}{cells}{nearer:6d}", flush=True)
    for name, engine in ENGINES.items():
        print(f"600 s of 2 flows, {name}, CPU s: {cpu(lambda e=engine: e(pair())):.3f}")


if __name__ == "__main__":
    main()
