"""Compares the closed form ``red`` with ns-2: random cases of Vegas and Reno flows at a RED queue.

    python -m benchmarks.accuracy_red [--seed 23112026] [--cases 40]

A case has 1 to 10 Vegas flows and 1 to 20 Reno flows of one RTT.  RED drops packets in the
even-numbered cases and marks them (ECN) in the odd-numbered ones.  For both kinds the table has
errors in percent of what ns-2 measured: the mean and the largest error of the mean queue, and of
the laws' rates.  Of the two laws, the one with the larger error counts. ns-2 runs once per case,
for 300 s after a warm-up of 100 s.
"""

import argparse

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.metrics import Floats
from vegasmodel.packets import ns2
from vegasmodel.predictor import predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

SEED = 23112026


def draw(seed: int, number: int) -> Scenario:
    """The random case ``number``; RED marks if this is odd."""
    rng = np.random.default_rng([seed, number])
    alpha, rtt = float(rng.integers(1, 4)), float(np.round(rng.uniform(0.03, 0.15), 4))
    low = float(rng.integers(3, 11))
    queue = Red(min_threshold=low, max_threshold=3.0 * low, ecn=number % 2 == 1)
    link = Link(
        capacity=float(np.round(rng.uniform(300.0, 2000.0))), buffer=20.0 * low, queue=queue
    )
    flows = (
        Flow(
            "vegas",
            rtt,
            name="vegas",
            alpha=alpha,
            beta=alpha,
            variant="ns2",
            count=int(rng.integers(1, 11)),
        ),
        Flow("reno", rtt, name="reno", count=int(rng.integers(1, 21))),
    )
    return Scenario((link,), flows, run=Run(duration=400.0, warmup=100.0, seed=number + 1))


def errors(scenario: Scenario) -> tuple[float, float]:
    """The relative errors of ``red`` against ns-2: of the mean queue, and of the laws' rates.

    The second is the larger of two errors: that of all Vegas flows, and that of all Reno flows.
    """
    predicted, measured = predict(scenario, "red"), ns2.run(scenario)
    vegas = np.array([member.flow.law == "vegas" for member in scenario.members])
    if predicted.queue_mean is None or measured.queue_mean is None:
        raise ValueError(f"no answer: {predicted.reason}")
    queue = float(predicted.queue_mean[0] / measured.queue_mean[0]) - 1.0

    def rates(found: Prediction) -> Floats:
        """The throughput of all Vegas flows and that of all others, [2] pkt/s."""
        throughput = np.asarray(found.throughput)
        return np.array([throughput[vegas].sum(), throughput[~vegas].sum()])

    return abs(queue), float(np.abs(rates(predicted) / rates(measured) - 1.0).max())


def main() -> None:
    """Print a table with the errors of the closed form ``red``, for drops and for marks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=at_least(0), default=SEED)
    parser.add_argument("--cases", type=at_least(2), default=40)
    given = parser.parse_args()
    # [case, quantity] percent: the errors of the mean queue and of the rates. RED drops packets in
    # cases of even number, and marks them in the others (``draw``).
    found = 100.0 * np.array([errors(draw(given.seed, k)) for k in range(given.cases)])
    print("| RED | cases | queue: mean | largest | rates: mean | largest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, some in (("drops", found[::2]), ("marks", found[1::2])):
        mean, largest = some.mean(axis=0), some.max(axis=0)
        cells = f"{mean[0]:.0f} % | {largest[0]:.0f} % | {mean[1]:.0f} % | {largest[1]:.0f} %"
        print(f"| {name} | {len(some)} | {cells} |")


if __name__ == "__main__":
    main()
