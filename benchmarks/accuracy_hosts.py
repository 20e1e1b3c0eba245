"""Measures the simulators' errors against ns-2 for hosts and buffers that the papers do not have.

    python -m benchmarks.accuracy_hosts                          # every kind and family
    python -m benchmarks.accuracy_hosts --kinds small --cases 12 --seed 7 --each

The networks are those of ``benchmarks.accuracy`` with the default ``send_jitter``.  There are five
kinds of cases:

- ``waits`` adds nothing else.
- ``delayed``: receivers delay their ACKs.
- ``noise``: the propagation delay has random noise of 0.1 to 3 ms.
- ``small``: the buffer has 2 to 8 packets.
- ``access``: access links carry from a fifth of the fair share to twice the link's capacity.

ns-2 runs 5 times.  In each run, each flow starts later by a random time of up to 0.5 s.  A model
runs as often, with random numbers of its own.

The error of a model in a case is the NRMSE: the root mean square error of the flows' throughputs,
divided by their mean.  For each kind the table has the mean error over the cases, and the largest.
It also has the part of the error that exceeds twice the standard error of ns-2's mean.  The column
"untold" has the error of a model that does not know what the kind adds, such as delayed ACKs.
"""

import argparse
import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks.accuracy_cases import FAMILIES, OTHER_DRAWS, WITHOUT_WAITS
from benchmarks.arguments import at_least
from vegasmodel.metrics import Floats, nrmse, standard_error
from vegasmodel.packets import ns2
from vegasmodel.predictor import predict
from vegasmodel.scenario import Flow, Run, Scenario

Rng = np.random.Generator
RUN = Run(duration=200.0, warmup=60.0, runs=5, start_jitter=0.5)
SEED, CASES = 1992, 12
MODELS = ("rounds", "fluid")
# families of networks in ``accuracy_cases`` that are run here
RUN_FAMILIES = ("pair", "mixed", "losses", "arrivals", "bands")


def waits(_: Rng, flow: Flow, __: Scenario) -> Flow:
    """The flow with the default random wait of its senders."""
    return dataclasses.replace(flow, send_jitter=None)


def delayed(rng: Rng, flow: Flow, scenario: Scenario) -> Flow:
    """The flow with the default wait, and receivers that delay their ACKs."""
    return dataclasses.replace(waits(rng, flow, scenario), delayed_ack=True)


def noise(rng: Rng, flow: Flow, scenario: Scenario) -> Flow:
    """The flow with the default wait, and random noise on its propagation delay."""
    deviation = float(np.round(np.exp(rng.uniform(np.log(1e-4), np.log(3e-3))), 6))
    return dataclasses.replace(waits(rng, flow, scenario), delay_noise=deviation)


def access(rng: Rng, flow: Flow, scenario: Scenario) -> Flow:
    """The flow with the default wait, and slow access links.

    The links' rate is drawn between a fifth of the flow's fair share and twice the capacity of the
    bottleneck. A packet's transmission time there is at most a quarter of the least RTT.
    """
    capacity, n = scenario.links[0].capacity, len(scenario.members)
    least = max(0.2 * capacity / n, 4.0 / min(m.rtt for m in scenario.members))
    rate = float(np.round(np.exp(rng.uniform(np.log(least), np.log(2.0 * capacity))), 1))
    return dataclasses.replace(waits(rng, flow, scenario), access=rate)


# how a kind changes a flow; ``small`` changes the buffer, too (``case``)
KINDS: dict[str, Callable[[Rng, Flow, Scenario], Flow]] = {
    "waits": waits,
    "delayed": delayed,
    "noise": noise,
    "small": waits,
    "access": access,
}


def case(kind: str, family: str, index: int, seed: int) -> Scenario:
    """The ``index``-th random network of the family, changed to the given kind.

    A family is a set of networks of one kind of flows (``RUN_FAMILIES``).  The kind says what is
    added to such a network, for example delayed ACKs (``KINDS``).  ``seed`` is that of the draw.
    """
    # the first generator draws the network as in ``benchmarks.accuracy``, the second what is added
    key = [seed, WITHOUT_WAITS.index(family), index]
    drawn, rng = FAMILIES[family](np.random.default_rng(key)), np.random.default_rng([*key, 1])
    flows = tuple(KINDS[kind](rng, flow, drawn) for flow in drawn.flows)
    links = drawn.links
    if kind == "small":
        links = (dataclasses.replace(links[0], buffer=float(rng.integers(2, 9))), *links[1:])
    run = drawn.run if family == "arrivals" else RUN
    return dataclasses.replace(drawn, links=links, flows=flows, run=run)


def _without_feature(scenario: Scenario) -> Scenario:
    """The scenario without the feature of its kind; small buffers stay."""
    flows = tuple(
        dataclasses.replace(flow, delayed_ack=False, delay_noise=0.0, access=None)
        for flow in scenario.flows
    )
    return dataclasses.replace(scenario, flows=flows)


def _throughputs(scenario: Scenario, model: str) -> Floats | None:
    """The model's throughputs, with start times of its own; ``None`` if it has no answer."""
    return predict(scenario.replace({"run.seed": OTHER_DRAWS}), model).throughput


def judge(scenario: Scenario) -> tuple[dict[str, float], float]:
    """Each model's errors against ns-2, and twice the standard error of ns-2's mean.

    Both are relative to the mean throughput.  The errors are by the model's name, and also by the
    name with ", untold": the model then does not know the feature that the kind of case adds.
    """
    measured = ns2.run(scenario, rtts=False)
    runs = np.asarray(measured.extra["throughput_runs"])
    mean = runs.mean(axis=0)
    se = standard_error(runs)
    found = {}
    untold = _without_feature(scenario)
    for model in MODELS:
        for name, asked in ((model, scenario), (f"{model}, untold", untold)):
            if name != model and untold == scenario:
                continue
            rates = _throughputs(asked, model)
            found[name] = np.nan if rates is None else float(nrmse(rates, mean))
    return found, 2.0 * float(np.sqrt(np.mean(se**2)) / mean.mean())


def main() -> None:
    """Print the errors of each model against ns-2, for each kind of case and family of networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", choices=tuple(KINDS), nargs="*", default=tuple(KINDS))
    parser.add_argument("--families", choices=RUN_FAMILIES, nargs="*", default=RUN_FAMILIES)
    parser.add_argument(
        "--cases", type=at_least(1), default=CASES, help="cases of each kind and family"
    )
    parser.add_argument("--seed", type=at_least(0), default=SEED)
    parser.add_argument(
        "--runs", type=at_least(2), help="runs of ns-2, and of each model, for every case"
    )
    parser.add_argument("--each", action="store_true", help="print every case")
    options = parser.parse_args()
    print(f"{'kind, family':20}{'model':18}{'cases':>6}{'mean':>8}{'worst':>8}{'beyond 2 se':>12}")
    for kind in options.kinds:
        for family in options.families:
            for name, pairs in judge_all(kind, family, options).items():
                print(row(f"{kind}, {family}", name, pairs), flush=True)


def judge_all(
    kind: str, family: str, options: argparse.Namespace
) -> dict[str, list[tuple[float, float]]]:
    """The errors of each model in all cases of a kind and a family, by the names of ``judge``.

    For each case there are two: the error, and the part of it beyond twice the standard error of
    ns-2's mean.  ``options`` are those of the command line.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for index in range(options.cases):
        scenario = case(kind, family, index, options.seed)
        if options.runs:
            scenario = scenario.replace({"run.runs": options.runs})
        errors, two_se = judge(scenario)
        if options.each:
            said = ", ".join(f"{name} {error:.1%}" for name, error in errors.items())
            print(f"  {kind} {family}/{index}: {said}; 2 se {two_se:.1%}", flush=True)
        for name, error in errors.items():
            found.setdefault(name, []).append((error, max(error - two_se, 0.0)))
    return found


def row(title: str, name: str, pairs: list[tuple[float, float]]) -> str:
    """A row of the table: the errors of the model ``name``.

    ``title`` names the kind and the family of the cases. ``pairs`` has the two errors of each case
    (``judge_all``).
    """
    known = np.array([pair for pair in pairs if np.isfinite(pair[0])])
    if not known.size:
        return f"{title:20}{name:18}{0:6}  no answer"
    errors, beyond_two_se = known.T
    mean, worst, beyond = errors.mean(), errors.max(), beyond_two_se.mean()
    return f"{title:20}{name:18}{len(known):6}{mean:8.1%}{worst:8.1%}{beyond:12.1%}"


if __name__ == "__main__":
    main()
