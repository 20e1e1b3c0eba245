"""Measures the CPU time of a default answer of ``rounds`` beside one run of ns-2, on random cases.

    python -m benchmarks.cost_beside_ns2 [--seed 4711] [--cases 101] [--kind fast ...]

The 16 kinds are those on which an early version was tried: fast links, delayed ACKs, packet sizes,
an RTT ratio of 20, small buffers, RED with 30 flows, random loss, traffic in both directions, start
and stop, Web traffic, parking lots, Rate-Delay services, 100 flows, Tahoe, thresholds, window
limits.  Case i is of kind i modulo 16, drawn by ``default_rng([seed, i])``.

The scenarios give neither the number of runs nor ``send_jitter``.  So ``rounds`` makes as many runs
as it needs, with and without random waits of the senders, to find phase effects (docs/scenario.md).
This is its default answer.  ns-2 runs once.  All times are CPU seconds; the code of ``rounds`` is
compiled before the first case.  For each kind and for all cases, the table has the median and the
largest ratio of the times, ``rounds`` over ns-2; and the median ratio for one run of ``rounds``.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy_networks import chain
from benchmarks.arguments import at_least
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.packets import ns2
from vegasmodel.predictor import predict
from vegasmodel.scenario import (
    DropTail,
    Flow,
    Link,
    Pareto,
    Poisson,
    RateDelay,
    Red,
    Run,
    Scenario,
)

SEED = 4711
CASES = 101
MEDIAN_GOAL, EACH_GOAL = 0.1, 0.5  # of the CPU seconds of one run of ns-2
LOSS_BASED = ("reno", "newreno", "sack")
RUN = Run(duration=200.0, warmup=50.0)
Rng = np.random.Generator


def _link(rng: Rng, low: int = 12, high: int = 80) -> Link:
    """A random drop-tail link, with a buffer from ``low`` to ``high`` packets."""
    return Link(
        capacity=float(np.round(rng.uniform(300.0, 2000.0))), buffer=float(rng.integers(low, high))
    )


def _rtt(rng: Rng, low: float = 0.03, high: float = 0.2) -> float:
    """A random RTT from ``low`` to ``high`` seconds, to a tenth of a millisecond."""
    return float(np.round(rng.uniform(low, high), 4))


def _vegas(rng: Rng, **more: Any) -> Flow:
    """A random Vegas flow; ``more`` has further fields of it."""
    alpha = float(rng.integers(1, 5))
    fields: dict[str, Any] = {"name": "vegas", "alpha": alpha, "beta": alpha, "variant": "ns2"}
    fields |= more
    return Flow("vegas", _rtt(rng), **fields)


def _other(rng: Rng, name: str = "other", **more: Any) -> Flow:
    """A random loss-based flow; ``more`` has further fields of it."""
    fields: dict[str, Any] = {"name": name, "variant": "ns2"} | more
    return Flow(str(rng.choice(LOSS_BASED)), _rtt(rng), **fields)


def _pair(rng: Rng, **more: Any) -> tuple[Flow, ...]:
    """A random Vegas flow and a random loss-based flow."""
    return _vegas(rng, **more), _other(rng, **more)


def fast(rng: Rng) -> Scenario:
    """Fast links: 50 Mbit/s to 1 Gbit/s, RTTs about 10 to 100 ms, a buffer of 1/4 to 1 BDP."""
    capacity = float(np.round(np.exp(rng.uniform(np.log(6250.0), np.log(125000.0)))))
    rtt = _rtt(rng, 0.01, 0.1)
    buffer = float(np.round(max(20.0, rng.uniform(0.25, 1.0) * capacity * rtt)))
    laws = rng.choice(("vegas", *LOSS_BASED), size=2)
    flows = tuple(
        Flow(str(law), _rtt(rng, 0.5 * rtt, 2 * rtt), name=f"f{i}", variant="ns2")
        for i, law in enumerate(laws)
    )
    return Scenario(
        (Link(capacity=capacity, buffer=buffer),), flows, run=Run(duration=20.0, warmup=5.0)
    )


def delayed_acks(rng: Rng) -> Scenario:
    """One Vegas and one loss-based flow, with receivers that delay their ACKs."""
    return Scenario((_link(rng),), _pair(rng, delayed_ack=True), run=RUN)


def sizes(rng: Rng) -> Scenario:
    """One Vegas and one loss-based flow, with packets of different sizes."""
    flows = (_vegas(rng), _other(rng, packet_size=float(rng.choice((250.0, 500.0, 1500.0)))))
    return Scenario((_link(rng),), flows, run=RUN)


def rtt_ratio(rng: Rng) -> Scenario:
    """Two loss-based flows with RTTs of about 10 and 200 ms."""
    law = str(rng.choice(LOSS_BASED))
    flows = tuple(
        Flow(law, rtt, name=name, variant="ns2")
        for name, rtt in (("near", _rtt(rng, 0.009, 0.011)), ("far", _rtt(rng, 0.19, 0.21)))
    )
    return Scenario((_link(rng),), flows, run=RUN)


def small_buffers(rng: Rng) -> Scenario:
    """One Vegas and one loss-based flow at a buffer of 2 to 8 packets."""
    return Scenario((_link(rng, 2, 9),), _pair(rng), run=RUN)


def red(rng: Rng) -> Scenario:
    """15 Vegas and 15 loss-based flows under RED."""
    low = float(rng.integers(5, 20))
    link = Link(
        float(np.round(rng.uniform(1000.0, 3000.0))),
        buffer=100.0,
        queue=Red(min_threshold=low, max_threshold=3 * low),
    )
    return Scenario((link,), (_vegas(rng, count=15), _other(rng, count=15)), run=RUN)


def random_loss(rng: Rng) -> Scenario:
    """One Vegas and one loss-based flow; 0.1 to 2 % of the packets are lost at random."""
    loss = float(np.round(np.exp(rng.uniform(np.log(0.001), np.log(0.02))), 5))
    link = Link(capacity=float(np.round(rng.uniform(300.0, 2000.0))), buffer=40.0, loss=loss)
    return Scenario((link,), _pair(rng), run=RUN)


def two_way(rng: Rng) -> Scenario:
    """A pair of flows in the forward direction, and one flow in reverse."""
    return Scenario((_link(rng),), (*_pair(rng), _other(rng, "back", direction="reverse")), run=RUN)


def start_and_stop(rng: Rng) -> Scenario:
    """Flows that start after the others or stop before them."""
    flows = (
        _vegas(rng),
        _other(rng, start=float(np.round(rng.uniform(10.0, 80.0), 1))),
        _other(rng, "short", stop=float(np.round(rng.uniform(80.0, 180.0), 1))),
    )
    return Scenario((_link(rng),), flows, run=RUN)


def web(rng: Rng) -> Scenario:
    """Two long flows, and short flows of Pareto sizes that arrive at random."""
    short = _other(
        rng,
        "web",
        size=Pareto(float(rng.integers(10, 40)), 1.4),
        arrivals=Poisson(float(np.round(rng.uniform(1.0, 5.0), 2))),
    )
    return Scenario((_link(rng),), (*_pair(rng), short), run=RUN)


def parking_lot(rng: Rng) -> Scenario:
    """One flow over two or three links, and one flow over each link."""
    links = chain(rng, int(rng.integers(2, 4)), DropTail())
    cross = tuple(_other(rng, f"x{i}", path=(link.name,)) for i, link in enumerate(links))
    return Scenario(links, (_vegas(rng), *cross), run=RUN)


def rate_delay(rng: Rng) -> Scenario:
    """Rate-Delay services: NewReno in one class, Vegas in the other."""
    rate, delay = int(rng.integers(2, 16)), int(rng.integers(2, 8))
    capacity = 125.0 * delay
    link = Link(
        capacity=capacity, buffer=float(round(capacity / 4)), queue=RateDelay(delay_buffer=0.1)
    )
    flows = (
        Flow("newreno", 0.1, count=rate, variant="ns2"),
        Flow("vegas", 0.1, count=delay, variant="ns2"),
    )
    return Scenario((link,), flows, run=RUN)


def hundred(rng: Rng) -> Scenario:
    """100 flows, half of them Vegas."""
    link = Link(
        capacity=float(np.round(rng.uniform(2000.0, 6000.0))), buffer=float(rng.integers(100, 400))
    )
    return Scenario((link,), (_vegas(rng, count=50), _other(rng, count=50)), run=RUN)


def tahoe(rng: Rng) -> Scenario:
    """Vegas beside Tahoe."""
    return Scenario((_link(rng),), (_vegas(rng), Flow("tahoe", _rtt(rng), variant="ns2")), run=RUN)


def thresholds(rng: Rng) -> Scenario:
    """Two to five Vegas flows with alpha below beta."""
    flows = []
    for i in range(int(rng.integers(2, 6))):
        alpha = float(rng.integers(1, 5))
        beta = alpha + float(rng.integers(1, 4))
        flows.append(Flow("vegas", _rtt(rng), name=f"v{i}", alpha=alpha, beta=beta, variant="ns2"))
    return Scenario((_link(rng),), tuple(flows), run=RUN)


def window_limits(rng: Rng) -> Scenario:
    """The loss-based flow's window is limited to 8 to 40 packets."""
    return Scenario(
        (_link(rng),), (_vegas(rng), _other(rng, max_window=float(rng.integers(8, 41)))), run=RUN
    )


KINDS: dict[str, Callable[[Rng], Scenario]] = {
    f.__name__: f
    for f in (
        fast,
        delayed_acks,
        sizes,
        rtt_ratio,
        small_buffers,
        red,
        random_loss,
        two_way,
        start_and_stop,
        web,
        parking_lot,
        rate_delay,
        hundred,
        tahoe,
        thresholds,
        window_limits,
    )
}


def case(index: int, seed: int = SEED) -> tuple[str, Scenario]:
    """The kind of case ``index`` and its scenario."""
    kind = list(KINDS)[index % len(KINDS)]
    return kind, KINDS[kind](np.random.default_rng([seed, index]))


class Cost(NamedTuple):
    """CPU seconds of a default answer, of one run of ``rounds``, and of one run of ns-2."""

    answer: float
    run: float
    ns2: float
    runs: str  # the answer's text on the number of its runs

    @property
    def ratio(self) -> float:
        """The answer's time over that of ns-2."""
        return self.answer / self.ns2


def cost(scenario: Scenario) -> Cost:
    """The CPU seconds of ``rounds``'s default answer, of one run of it, and of one run of ns-2."""
    began = time.process_time()
    found = predict(scenario, "rounds")
    answered = time.process_time()
    answer(scenario, runs=1)
    once = time.process_time()
    runs = "".join(a.detail for a in found.assumptions if a.name == "enough-runs")
    before = os.times()
    ns2.run(scenario, processes=1, rtts=False)
    after = os.times()
    children = after.children_user + after.children_system
    by_ns2 = children - before.children_user - before.children_system
    return Cost(answered - began, once - answered, by_ns2, runs)


def row(name: str, costs: list[Cost]) -> str:
    """A line of the table."""
    ratios = [one.ratio for one in costs]
    over = sum(r > EACH_GOAL for r in ratios)
    return (
        f"| {name} | {len(costs)} | {np.median([one.answer for one in costs]):.3f} "
        f"| {np.median([one.ns2 for one in costs]):.2f} "
        f"| {np.median([one.run / one.ns2 for one in costs]):.3f} "
        f"| {np.median(ratios):.3f} | {max(ratios):.3f} | {over} |"
    )


def main() -> None:
    """Print a row of the table for each kind of case, one for all, and whether goals are met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=at_least(0), default=SEED)
    parser.add_argument("--cases", type=at_least(1), default=CASES)
    parser.add_argument("--kind", choices=tuple(KINDS), nargs="+", default=list(KINDS))
    parser.add_argument("--each", action="store_true", help="print each case")
    options = parser.parse_args()
    predict(case(0)[1], "rounds")  # compiles
    costs: dict[str, list[Cost]] = {}
    for i in range(options.cases):
        kind, scenario = case(i, options.seed)
        if kind not in options.kind:
            continue
        of_case = cost(scenario)
        costs.setdefault(kind, []).append(of_case)
        if options.each:
            print(
                f"{i:3d} {kind:14s} {of_case.answer:.3f} s, ns-2 {of_case.ns2:.2f} s: "
                f"{of_case.ratio:.3f}  {of_case.runs}",
                flush=True,
            )
    print_table(costs)


def print_table(costs: dict[str, list[Cost]]) -> None:
    """Print the table, and whether the goals are met; ``costs`` are those of each kind's cases."""
    print(
        "| kind | cases | rounds, CPU s | ns-2, CPU s | one run, ratio | ratio, median | largest "
        "| over a half |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for kind, found in costs.items():
        print(row(kind.replace("_", " "), found))
    every = [of_case for found in costs.values() for of_case in found]
    print(row("all", every))
    ratios = [of_case.ratio for of_case in every]
    met = max(ratios) <= EACH_GOAL and float(np.median(ratios)) <= MEDIAN_GOAL
    print(f"goals: median {MEDIAN_GOAL}, each {EACH_GOAL}: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
