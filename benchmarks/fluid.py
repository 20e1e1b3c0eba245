"""Compares the speed of the simulator ``fluid`` with that of other programs.

    python benchmarks/fluid.py [--quick]

The other programs are the simulator ``rounds``, ns-2 (if it is installed), and a program in this
file that makes Euler steps of 0.01 ms over Python lists. Times are CPU seconds of a second call,
when the code is compiled; other work on the machine hardly changes them. The speed of a batch is
the simulated time of all its flows, in flow-seconds, divided by the CPU time per core; the next
line has the speed by wall time. Some lines end with our goal for their value.
"""

import argparse
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vegasmodel.engines.fluid import batch, continuous
from vegasmodel.engines.fluid.records import Batch
from vegasmodel.engines.rounds import run as rounds
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.simulation import limit_cycle


def pair(
    capacity: float = 1080.0,
    rtt: float = 0.08,
    buffer: float = 20.0,
    alpha: float = 3.0,
    duration: float = 600.0,
) -> Scenario:
    """A scenario with one Vegas and one Reno source, which share a drop-tail link.

    ``capacity`` is in pkt/s, ``rtt`` and ``duration`` in s, ``buffer`` and Vegas's single threshold
    ``alpha`` in packets.
    """
    vegas = Flow(law="vegas", rtt=rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0)
    return Scenario(
        links=(Link(capacity=capacity, buffer=buffer),),
        flows=(vegas, Flow(law="reno", rtt=rtt, send_jitter=0.0)),
        packet_size=500.0,
        run=Run(duration=duration, warmup=duration / 3),
    )


def drawn(n: int, seed: int = 1) -> list[Scenario]:
    """``n`` random cases (``pair``) in the ranges of ``benchmarks.accuracy_cases``."""
    rng = np.random.default_rng(seed)
    return [
        pair(
            capacity=float(np.exp(rng.uniform(np.log(200), np.log(3000)))),
            rtt=float(rng.uniform(0.03, 0.2)),
            buffer=float(rng.integers(12, 81)),
            alpha=float(rng.integers(2, 6)),
        )
        for _ in range(n)
    ]


def cpu(work: Callable[[], Any], repeats: int = 5) -> float:
    """The least CPU seconds of ``repeats`` calls of ``work``, after a first call that compiles."""
    work()
    best = np.inf
    for _ in range(repeats):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return float(best)


def euler(seconds: float, h: float = 1e-5) -> list[float]:
    """Integrate a Vegas and a Reno source by Euler steps of ``h`` seconds over Python lists.

    This is the simplest program for the same equations, to which the fluid model's speed is
    compared.  The result has the packets that each source has sent.
    """
    c, rtt, alpha = 1080.0, 0.08, 3.0  # pkt/s, s, packets
    full = 21.0  # the queue in packets at which Reno loses a packet and halves its window
    windows, queue, done = [10.0, 10.0], 0.0, [0.0, 0.0]  # done: packets sent by each source
    for _ in range(round(seconds / h)):
        trip = rtt + queue / c  # the RTT with queueing
        rates = [w / trip for w in windows]
        backlog = windows[0] * (trip - rtt) / trip  # Vegas's, packets
        slopes = [(1.0 if backlog < alpha else -1.0) / trip, 1.0 / trip]  # of the windows, pkt/s
        windows = [w + h * slope for w, slope in zip(windows, slopes, strict=True)]
        done = [d + h * rate for d, rate in zip(done, rates, strict=True)]
        queue = max(0.0, queue + h * (sum(rates) - c))
        if queue >= full:
            windows[1], queue = windows[1] / 2, full
    return done


def row(name: str, value: str, goal: str = "") -> None:
    """Print a line with a value and its goal."""
    print(f"{name:<62} {value:>24}   {goal}")


def single() -> float:
    """Time one scenario in several ways; return the CPU seconds of a run by ``fluid``.

    The ways are a run by ``fluid`` and by ``rounds``, the search for the limit cycle by both, and
    fixed Euler steps over Python lists.
    """
    scenario = pair()
    took = cpu(lambda: continuous.run(scenario))
    row("600 s of 2 flows, continuous, CPU s", f"{took:.4f}", "goal 0.1")
    row("  by rounds, CPU s", f"{cpu(lambda: rounds.run(scenario)):.4f}", "goal 0.1")
    for model in ("fluid", "rounds"):
        spent = cpu(lambda by=model: limit_cycle(scenario, by))
        row(f"limit cycle of 2 flows, {model}, CPU ms", f"{1e3 * spent:.2f}", "goal 10")
    short = 0.2
    rival = cpu(lambda: euler(short), 1) * 600.0 / short
    row("Euler steps of 0.01 ms over Python lists, 600 s, CPU s", f"{rival:.0f}")
    row("  times faster than that", f"{rival / took:.0f}", "goal 1000")
    return took


def batches(n: int) -> float:
    """Time ``fluid`` on a batch of ``n`` scenarios of two flows, compiled by Numba and by JAX.

    The speed is the simulated time of all flows (flow-seconds) per second of CPU time, for all
    cores together.  The result is that of Numba's code, which runs in threads.
    """
    cores = os.cpu_count() or 1
    cases = batch.pack(drawn(n))
    work = 2.0 * float(cases.duration.sum())  # flow-seconds
    batch.run(batch.pack(drawn(4)))  # compiles
    begun, wall = time.process_time(), time.perf_counter()
    run = batch.run(cases)
    spent, wall = time.process_time() - begun, time.perf_counter() - wall
    rate = work * cores / spent
    row(f"{n} two-flow scenarios, threads, flow-s/s by CPU time", f"{rate:,.0f}",
        f"goal 1,000,000 on 2 cores (here {cores})")  # fmt: skip
    row("  by wall time", f"{work / wall:,.0f}", f"failed: {int((~run.ok).sum())}")
    jax_rate(cases, run.throughput)
    return rate


def jax_rate(cases: Batch, expected: np.ndarray) -> None:
    """Time the batch ``cases`` by the JAX engine, on JAX's default device.

    ``expected`` has the throughputs by the other engine, [scenarios, flows] pkt/s.  The last line
    printed says by how much JAX's differ.
    """
    import jax

    n, cores = cases.duration.size, os.cpu_count() or 1
    batch.run(batch.pack(drawn(64)), engine="jax")
    begun, wall = time.process_time(), time.perf_counter()
    found = batch.run(cases, engine="jax")
    spent, wall = time.process_time() - begun, time.perf_counter() - wall
    work = 2.0 * float(cases.duration.sum())
    row(f"{n} of them, jax on {jax.default_backend()}, flow-s/s by CPU time",
        f"{work * cores / spent:,.0f}", f"goal 1,000,000 on 2 cores (here {cores})")  # fmt: skip
    row("  by wall time", f"{work / wall:,.0f}", f"failed: {int((~found.ok).sum())}")
    off = np.abs(found.throughput / expected - 1.0).max(axis=1)
    row("  throughput beside the threads', median, 99th percentile",
        f"{np.median(off):.1e}, {np.quantile(off, 0.99):.1e}")  # fmt: skip


def sizes(quick: bool) -> None:
    """Time 5,000 round trips of 100 ms at capacities from 1 Mbit/s to 100 Gbit/s.

    The buffer is 0.3 of the bandwidth-delay product. If ns-2 is installed, it is timed, too, up to
    100 Mbit/s, or at 1 Mbit/s only if ``quick``.
    """
    costs: dict[str, list[float]] = {"continuous": [], "by rounds": [], "ns-2": []}
    for k, megabits in enumerate((1, 10, 100, 1_000, 10_000, 100_000)):
        capacity = megabits * 1e6 / 8 / 500  # pkt/s, of 500 bytes each
        rtt = 0.1
        scenario = pair(capacity, rtt, buffer=0.3 * capacity * rtt, duration=500.0)
        costs["continuous"].append(cpu(lambda s=scenario: continuous.run(s), 9))
        costs["by rounds"].append(cpu(lambda s=scenario: rounds.run(s), 3))
        if shutil.which("ns") and megabits <= (1 if quick else 100):
            costs["ns-2"].append(by_ns2([scenario]))
        texts = [f"{name} {spent[k]:.4g}" for name, spent in costs.items() if k < len(spent)]
        row(f"5,000 round trips at {megabits:>7,} Mbit/s, CPU s", ", ".join(texts))
    for name, spent in costs.items():
        if spent:
            ratio = max(spent) / min(spent)
            goal = "" if name == "ns-2" else "goal 2"
            row(f"  largest over smallest, {name}", f"{ratio:.2f}", goal)


def by_ns2(scenarios: list[Scenario]) -> float:
    """The CPU seconds of ns-2 on these scenarios, including the reading of its output."""
    from vegasmodel.packets import ns2 as engine

    begun = os.times()
    for scenario in scenarios:
        engine.run(scenario, rtts=False)
    return sum(os.times()[:4]) - sum(begun[:4])


def ns2(rate: float, n: int) -> None:
    """Time ns-2 on the first ``n`` scenarios of the batch and compare with the batch's ``rate``."""
    if shutil.which("ns") is None:
        row("ns-2", "not installed", "apt-get install ns2")
        return
    spent = by_ns2(drawn(n))
    of_ns2 = 1200.0 * n * (os.cpu_count() or 1) / spent  # a scenario has two flows for 600 s
    row(f"ns-2 on {n} of the batch's scenarios, flow-s/s by CPU time", f"{of_ns2:,.0f}")
    row("  the batch over ns-2", f"{rate / of_ns2:.0f}", "goal 100")


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a batch of 500 instead of 10,000")
    quick = parser.parse_args().quick
    single()
    rate = batches(500 if quick else 10_000)
    sizes(quick)
    ns2(rate, 2)


if __name__ == "__main__":
    main()
