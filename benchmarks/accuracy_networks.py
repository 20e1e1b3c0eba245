"""Measures the errors of ``rounds`` against ns-2 where packets cross several queues.

    python -m benchmarks.accuracy_networks [--cases N] [--kind NAME]

The random cases are of these kinds:

- parking lots of 2 or 3 drop-tail or RED links, with Vegas alone or with Vegas beside Reno;
- Rate-Delay services, with the ratios of flows of the paper ``podlesny``, or with flows of any law
  in both classes;
- traffic in both directions, also with receivers that delay their ACKs;
- flows with different packet sizes.

ns-2 runs 5 times, with random start times of up to 1 s.  The error of a case is the NRMSE of the
groups' mean throughputs.  For each kind the output has the median, the root mean square and the
largest of these errors, the CPU time of a run of ``rounds``, and the elapsed time of a run of ns-2.
"""

import argparse
import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.packets import ns2
from vegasmodel.scenario import DropTail, Flow, Link, RateDelay, Red, Run, Scenario

SEED = 2004
RUN = Run(duration=200.0, warmup=50.0, runs=5, start_jitter=1.0)
Rng = np.random.Generator


def _rtt(rng: Rng, low: float = 0.05, high: float = 0.15) -> float:
    """A random RTT from ``low`` to ``high`` seconds, to a tenth of a millisecond."""
    return float(np.round(rng.uniform(low, high), 4))


def chain(rng: Rng, n: int, queue: DropTail | Red) -> tuple[Link, ...]:
    """``n`` links in a row, each with a random capacity and buffer, and all with this ``queue``."""
    return tuple(
        Link(
            float(np.round(rng.uniform(400.0, 900.0))),
            name=f"l{i}",
            buffer=float(rng.integers(15, 50)),
            delay=0.004,
            queue=queue,
        )
        for i in range(n)
    )


def _lot(rng: Rng, laws: tuple[str, str]) -> Scenario:
    """A parking lot: one group crosses all links, and each link has a group of its own.

    ``laws`` are the congestion control of the first group, and that of all others.
    """
    n, count = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    queue = Red(min_threshold=5.0, max_threshold=15.0) if rng.random() < 0.25 else DropTail()
    links = chain(rng, n, queue)
    long = Flow(
        laws[0], _rtt(rng, 0.08, 0.2), name="long", count=count, variant="ns2", send_jitter=0.0
    )
    cross = tuple(
        Flow(
            laws[1],
            _rtt(rng),
            name=f"x{i}",
            count=count,
            variant="ns2",
            path=(link.name,),
            send_jitter=0.0,
        )
        for i, link in enumerate(links)
    )
    return Scenario(links, (long, *cross), run=RUN)


def parking_vegas(rng: Rng) -> Scenario:
    """A parking lot with Vegas flows only."""
    return _lot(rng, ("vegas", "vegas"))


def parking_mixed(rng: Rng) -> Scenario:
    """A parking lot with Vegas on the long path against Reno, or the other way round."""
    return _lot(rng, ("vegas", "reno") if rng.random() < 0.5 else ("reno", "vegas"))


def rate_delay(rng: Rng) -> Scenario:
    """Rate-Delay services with ratios of flows as in ``podlesny``, at a twentieth of its scale."""
    n_rate, n_delay = int(rng.integers(2, 16)), int(rng.integers(2, 8))
    capacity = 125.0 * n_delay
    link = Link(
        capacity=capacity, buffer=float(round(0.25 * capacity)), queue=RateDelay(delay_buffer=0.1)
    )
    flows = (
        Flow("newreno", 0.1, name="newreno", count=n_rate, variant="ns2", send_jitter=0.0),
        Flow("vegas", 0.1, name="vegas", count=n_delay, variant="ns2", send_jitter=0.0),
    )
    return Scenario((link,), flows, run=RUN)


def both_ways(rng: Rng) -> Scenario:
    """Vegas and Reno in the forward direction; one of them or both also in reverse."""
    link = Link(
        capacity=float(np.round(rng.uniform(300.0, 900.0))), buffer=float(rng.integers(15, 50))
    )
    back = [("vegas",), ("reno",), ("vegas", "reno")][int(rng.integers(3))]
    rtt = _rtt(rng)
    flows = tuple(
        Flow(
            law,
            _rtt(rng, rtt, 1.1 * rtt),
            name=f"{way}-{law}",
            direction=way,
            variant="ns2",
            send_jitter=0.0,
        )
        for way, laws in (("forward", ("vegas", "reno")), ("reverse", back))
        for law in laws
    )
    return Scenario((link,), flows, run=RUN)


def both_ways_delayed(rng: Rng) -> Scenario:
    """Loss-based flows in both directions, one to three each, whose receivers delay their ACKs."""
    link = Link(
        capacity=float(np.round(rng.uniform(300.0, 900.0))), buffer=float(rng.integers(10, 30))
    )
    flows = tuple(
        Flow(
            str(rng.choice(("reno", "newreno", "sack"))),
            _rtt(rng),
            name=f"{way}-{i}",
            direction=way,
            variant="ns2",
            delayed_ack=True,
        )
        for way in ("forward", "reverse")
        for i in range(int(rng.integers(1, 4)))
    )
    return Scenario((link,), flows, run=RUN)


def packet_sizes(rng: Rng) -> Scenario:
    """Vegas and Reno, one of them with packets of another size."""
    sizes = [500.0, None] if rng.random() < 0.5 else [None, 500.0]
    link = Link(
        capacity=float(np.round(rng.uniform(300.0, 900.0))), buffer=float(rng.integers(15, 50))
    )
    rtt = _rtt(rng)
    flows = tuple(
        Flow(law, rtt, name=law, packet_size=size, variant="ns2", send_jitter=0.0)
        for law, size in zip(("vegas", "reno"), sizes, strict=True)
    )
    return Scenario((link,), flows, run=RUN)


def rate_delay_any(rng: Rng) -> Scenario:
    """Rate-Delay services with 2 to 6 groups of flows of any law.

    Most Vegas groups are in the class for low delay, and most other groups in that for throughput.
    In half of the cases senders do not wait at random before they send.
    """
    waits = None if rng.random() < 0.5 else 0.0
    flows = []
    for i in range(int(rng.integers(2, 7))):
        vegas = i == 0 or (i > 1 and rng.random() < 0.4)
        law = "vegas" if vegas else str(rng.choice(("reno", "newreno", "sack", "tahoe")))
        alpha = float(rng.integers(1, 5))
        flow = Flow(
            law,
            _rtt(rng, 0.03, 0.25),
            name=f"{law}{i}",
            count=int(rng.integers(1, 3)),
            variant="ns2",
            send_jitter=waits,
            service="delay" if vegas == (rng.random() < 0.7) else "rate",
        )
        if vegas:
            beta = alpha + float(rng.integers(0, 3))
            flow = dataclasses.replace(flow, alpha=alpha, beta=beta)
        flows.append(flow)
    queue = RateDelay(
        k=float(rng.choice((0.5, 1.0, 2.0))),
        delay_buffer=float(np.round(rng.uniform(0.1, 0.6), 2)),
    )
    capacity = float(np.round(rng.uniform(150.0, 1500.0)))
    link = Link(capacity=capacity, buffer=float(rng.integers(15, 90)), queue=queue)
    return Scenario((link,), tuple(flows), run=RUN)


KINDS: dict[str, Callable[[Rng], Scenario]] = {
    f.__name__: f
    for f in (
        parking_vegas,
        parking_mixed,
        rate_delay,
        both_ways,
        packet_sizes,
        both_ways_delayed,
        rate_delay_any,
    )
}


def error(scenario: Scenario) -> tuple[float, float, float]:
    """The error of ``rounds`` against ns-2, and the times of a run by each.

    The error is the root mean square error of the groups' throughputs over their mean.  The time of
    ``rounds`` is in CPU seconds, that of ns-2 in elapsed seconds.  Both make the same number of
    runs.
    """
    began = time.process_time()
    found = answer(scenario, runs=RUN.runs)
    spent = (time.process_time() - began) / RUN.runs
    measured = ns2.run(scenario, rtts=False)
    names = list(measured.groups)
    model = np.array([found.groups[name] for name in names])
    truth = np.array([measured.groups[name] for name in names])
    nrmse = float(np.sqrt(np.mean((model - truth) ** 2)) / np.mean(truth))
    return nrmse, spent, measured.seconds / RUN.runs


def main() -> None:
    """Print for each kind of network the errors of ``rounds`` against ns-2, and times of runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=at_least(1), default=8, help="cases of each kind")
    parser.add_argument("--kind", choices=tuple(KINDS), action="append")
    options = parser.parse_args()
    answer(parking_vegas(np.random.default_rng(0)), runs=1)  # compiles
    for name in options.kind or KINDS:
        errors, of_rounds, of_ns2 = [], 0.0, 0.0  # seconds of a run, summed over the cases
        for i in range(options.cases):
            rng = np.random.default_rng([SEED, list(KINDS).index(name), i])
            nrmse, spent, spent_by_ns2 = error(KINDS[name](rng))
            errors.append(nrmse)
            of_rounds, of_ns2 = of_rounds + spent, of_ns2 + spent_by_ns2
        rms = math.sqrt(np.mean(np.square(errors)))
        print(
            f"{name:14} median {np.median(errors):.3f}  rms {rms:.3f}  worst {max(errors):.3f}"
            f"  rounds {of_rounds / len(errors):.2f} s, ns-2 {of_ns2 / len(errors):.2f} s (elapsed)"
            f"  [{', '.join(f'{x:.3f}' for x in errors)}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
