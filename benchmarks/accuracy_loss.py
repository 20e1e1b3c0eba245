"""Measures the models' errors against ns-2 on links that lose packets at random.

    python -m benchmarks.accuracy_loss

Each case has one flow, which is alone on its link. The congestion control law is drawn at random,
and so are the capacity (300 to 3000 pkt/s), the RTT (30 to 200 ms), the buffer (20 to 80 packets)
and the loss probability. There are eight cases for each range of the loss probability.

The error is |model/ns-2 - 1|, where both are mean throughputs. The benchmark runs ns-2 5 times for
300 s. If packets are lost often, single timeouts of up to 64 s make the throughput of a run
uncertain. So from a loss probability of 3 % on, ns-2 and the simulators run 40 times.

The column "unreported" has the largest error of a prediction that reports no broken assumption.
Assumptions on the number of runs and on the start times do not count. ``random-loss`` makes no
prediction for CUBIC.
"""

from typing import NamedTuple

import numpy as np

from vegasmodel.packets import ns2
from vegasmodel.predictor import predict
from vegasmodel.scenario import LAWS, Flow, Link, Run, Scenario

SEED = 1997
# ranges of the loss probability
BANDS = ((0.0003, 0.001), (0.001, 0.003), (0.003, 0.01), (0.01, 0.03), (0.03, 0.1), (0.1, 0.3))
CASES = 8  # in each range
OFTEN, MANY_RUNS = 0.03, 40  # from this loss on there are so many runs
MODELS = ("rounds", "fluid", "random-loss")
CHANCE = ("insensitive-to-starts", "enough-runs")  # assumptions that do not count


def case(band: int, index: int) -> Scenario:
    """The ``index``-th case of a band of loss probabilities."""
    rng = np.random.default_rng([SEED, band, index])
    law = str(rng.choice(LAWS))
    capacity = float(np.round(np.exp(rng.uniform(np.log(300), np.log(3000)))))
    rtt, buffer = float(np.round(rng.uniform(0.03, 0.2), 4)), float(rng.integers(20, 81))
    low, high = np.log(BANDS[band])
    loss = float(np.round(np.exp(rng.uniform(low, high)), 5))
    alpha = float(rng.integers(1, 6))
    flow = Flow(law, rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0)
    return Scenario(
        (Link(capacity=capacity, buffer=buffer, loss=loss),),
        (flow,),
        run=Run(duration=300.0, warmup=60.0),
    )


class Error(NamedTuple):
    """The error of a model in a case, and whether the model reports a broken assumption."""

    size: float  # |model/ns-2 - 1|
    reported: bool  # whether an assumption does not hold, other than those in ``CHANCE``


def errors(scenario: Scenario) -> dict[str, Error]:
    """The error of each model, by its name; models without a prediction are left out."""
    often = float(scenario.links[0].loss) >= OFTEN
    measured = ns2.run(scenario.replace({"run.runs": MANY_RUNS if often else 5})).throughput
    scenario = scenario.replace({"run.runs": MANY_RUNS}) if often else scenario
    found = {}
    for model in MODELS:
        answer = predict(scenario, model)
        if answer.throughput is None or measured is None:
            continue
        error = abs(float(answer.throughput[0] / measured[0]) - 1.0)
        failed = {a.name for a in answer.assumptions if a.holds is False} - set(CHANCE)
        found[model] = Error(error, bool(failed))
        print(
            f"{scenario.flows[0].law} {scenario.links[0].loss}: ns2 {measured[0]:.4g}, "
            f"{model} {answer.throughput[0]:.4g} {' '.join(sorted(failed))}",
            flush=True,
        )
    return found


def main() -> None:
    """Print the models' errors against ns-2 in each case, then a table by range of loss."""
    rows = []
    for band, (low, high) in enumerate(BANDS):
        some = [errors(case(band, index)) for index in range(CASES)]
        row = f"| {100 * low:g} to {100 * high:g} % |"
        for model in MODELS:
            known = [of_case[model] for of_case in some if model in of_case]
            sizes = np.array([error.size for error in known])
            unreported = [error.size for error in known if not error.reported]
            largest = f"{max(unreported):.2f}" if unreported else "none"
            row += f" {sizes.mean():.2f} ({sizes.max():.2f}) | {largest} |"
        rows.append(row)
    print("\n| loss |" + "".join(f" `{model}` | unreported |" for model in MODELS))
    print("| --- |" + " ---: | ---: |" * len(MODELS))
    print("\n".join(rows))


if __name__ == "__main__":
    main()
