"""Simulates thousands of scenarios at once with differential equations; it returns averages only.

Scenarios in which windows change continuously are put into arrays and solved together. In these
scenarios every flow has ``variant = "paper"`` (TCP as the papers describe it) and a congestion
control law of this package other than CUBIC. The link is drop-tail without random loss, and no
start time is random. The argument ``engine`` chooses how these scenarios are solved:

* ``threads`` runs compiled code with one thread per core. The averages equal those of single runs
  bit for bit.
* ``jax`` advances all scenarios at the same time with JAX. This is meant for a GPU; on a CPU it is
  slower than ``threads``.

Windows may move in cycles, from one overflow of the buffer to the next. To save time, both engines
skip whole cycles of a scenario when these cycles have become equal.

The engine ``threads`` simulates all other scenarios, for example those with the TCP of ns-2 or
Linux, in separate runs. The engine ``jax`` refuses them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vegasmodel.engines.fluid import methods
from vegasmodel.engines.fluid import run as one_by_one
from vegasmodel.engines.fluid.continuous import (
    LOSERS,
    STEP,
    ContinuousRun,
    check_method,
    flows_of,
    in_packets,
    limits,
    unsupported,
)
from vegasmodel.engines.fluid.records import Batch, Flows, Samples
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import MAX_RUNS, Choice, Integer
from vegasmodel.laws.faults import LawFault
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status
from vegasmodel.support.extras import need
from vegasmodel.support.progress import counting
from vegasmodel.support.threads import pool

ENGINES = ("threads", "jax")  # values of the argument ``engine`` of ``run``
AVERAGES = ("throughput", "rtt_mean", "base_rtt", "losses", "delivered")  # those of each flow
PER_THREAD = 64  # scenarios that a thread takes at a time


@dataclass(frozen=True, eq=False)
class BatchRun:
    """Results of a batch of scenarios, in arrays with one row per scenario.

    The averages cover the time after warmup. A flow's averages leave out the time before its start
    and after its stop. A row has one entry per flow; rows of scenarios with fewer flows than others
    end with NaN. If a scenario fails, its ``ok`` is false and all its averages are NaN.
    """

    throughput: Floats  # [scenario, flow] pkt/s
    rtt_mean: Floats  # [scenario, flow] s, mean over the packets
    base_rtt: Floats  # [scenario, flow] s; NaN if not Vegas
    losses: Floats  # [scenario, flow] as in ``ContinuousRun``
    delivered: Floats  # [scenario, flow] packets
    queue_mean: Floats  # [scenario] packets
    ok: np.ndarray  # [scenario] bool: false if the simulation of the scenario has failed

    def of(self, i: int, flows: int) -> ContinuousRun:
        """The averages of scenario ``i``, which has ``flows`` flows; without curves over time."""
        no_curve, no_queue = np.empty((0, flows)), np.empty((0, 1))
        return ContinuousRun(
            time=np.empty(0), window=no_curve, rate=no_curve, rtt=no_curve, queue=no_queue,
            lost=no_curve, delivered_so_far=no_curve,
            throughput=self.throughput[i, :flows],
            base_rtt=self.base_rtt[i, :flows],
            rtt_mean=self.rtt_mean[i, :flows],
            queue_mean=self.queue_mean[i : i + 1],
            losses=self.losses[i, :flows],
            delivered=self.delivered[i, :flows],
            status="done" if self.ok[i] else "failed",
        )  # fmt: skip


@kinds.checked
def pack(
    scenarios: Sequence[Scenario], *, packets: bool | None = None, trains: bool | None = None
) -> Batch:
    """Put scenarios into arrays, so that they can be simulated together.

    In the simulation of these arrays all windows change continuously, even those of a TCP
    implementation that changes its window once per round trip.

    - ``packets`` says whether the simulation takes into account that windows are whole packets.
      By default it does so if a flow's variant is ns2 or linux.
    - ``trains`` says whether slow start of Vegas sends each window as a train of packets, and
      whether Vegas decides late (``continuous.run``).  By default this is so, as in ``predict``,
      unless ``packets`` is given.

    Raises ``ValueError`` if ``scenarios`` is empty, or if a scenario cannot be simulated in this
    way (``continuous.unsupported``).  The error then gives the index of the scenario.
    """
    if len(scenarios) == 0:
        raise FieldError("scenarios", scenarios, "at least one scenario")
    for i, scenario in enumerate(scenarios):
        reason = unsupported(scenario)
        if reason is not None:
            raise ValueError(f"scenario {i}: {reason}")
    trains = packets is None if trains is None else trains
    most = max(len(scenario.members) for scenario in scenarios)
    rows = []
    for scenario in scenarios:
        flows = flows_of(scenario, in_packets(scenario, packets), trains)
        # all scenarios get as many flows as the largest one; those added never start
        n = flows.rtt.size
        padded = Flows(*(np.pad(column, (0, most - n), mode="edge") for column in flows))
        padded.start[n:] = np.inf
        rows.append(padded)
    links = [limits(scenario, in_packets(scenario, packets)) for scenario in scenarios]
    return Batch(
        Flows(*(np.stack(column) for column in zip(*rows, strict=True))),
        np.array([c for c, _ in links]),
        np.array([s_max for _, s_max in links]),
        np.array([scenario.run.warmup for scenario in scenarios]),
        np.array([scenario.run.duration for scenario in scenarios]),
    )


@kinds.checked
def run(
    scenarios: Sequence[Scenario] | Batch,
    *,
    losers: str | None = None,
    packets: bool | None = None,
    step: float = STEP,
    engine: str = "threads",
    chunk: int | None = None,
    threads: int | None = None,
) -> BatchRun:
    """Simulate all scenarios and return their averages.

    By default each scenario is simulated as in the simulator ``fluid`` (``fluid/run.py``). But if
    ``losers`` or ``packets`` is given, or if ``scenarios`` is the result of ``pack``, all scenarios
    are simulated as in ``continuous.run``: windows change continuously, and random delays of start
    times are ignored. Two properties of a real Vegas are then left out, too: that it sends trains
    of packets in slow start, and that it decides only once per round trip. (For a result of
    ``pack``, the argument ``trains`` of ``pack`` says whether they are left out.)

    - ``losers``, ``packets`` and ``step`` mean the same as in ``continuous.run``.  Scenarios whose
      windows do not change continuously are simulated one by one, and ignore ``step``.
    - ``engine`` is "threads" or "jax". With "jax" all windows have to change continuously, and
      random delays of start times are an error, except in the cases above in which they are
      ignored.
      A step of the engine "jax" may pass the instant at which a Vegas flow's backlog reaches alpha
      or beta. So its results have an error that falls with ``step``; a run with half the ``step``
      shows how large it is.
    - ``threads`` is the number of threads of the engine "threads" (default: one per core).
    - ``chunk`` is the number of scenarios that the engine "jax" simulates together (default: all of
      them on a GPU, 64 on a CPU).

    Without scenarios the result's arrays are empty.  Raises ``ValueError`` for wrong arguments, or
    if a scenario cannot be simulated.  Raises ``ExtraMissing`` if "jax" is asked for and not
    installed.
    """
    # whether all windows change continuously, whatever the scenarios say
    all_continuous = losers is not None or packets is not None or isinstance(scenarios, Batch)
    losers = "growing" if losers is None else losers
    check_method(losers, step)
    Choice(ENGINES).check(engine, "engine")
    for name, value in (("threads", threads), ("chunk", chunk)):
        if value is not None:
            Integer(1, MAX_RUNS).check(value, name)
    if engine == "jax":
        need("jax", "the engine 'jax'")
    if not isinstance(scenarios, Batch):
        if len(scenarios) == 0:
            empty = np.empty((0, 0))
            return BatchRun(empty, empty, empty, empty, empty, np.empty(0), np.empty(0, np.bool_))
        sampled = [
            i
            for i, case in enumerate(scenarios)
            if not (all_continuous or methods.one_run_suffices(case))
        ]
        if sampled and engine == "jax":
            raise ValueError(
                f"scenario {sampled[0]}: the engine 'jax' simulates only windows that change "
                "continuously (variant = 'paper', without random starts); engine = 'threads' "
                "simulates this scenario, and losers = 'growing' makes every window continuous "
                "and leaves start_jitter out"
            )
        if sampled:
            return _mixed(scenarios, sampled, step, threads)
        scenarios = pack(scenarios, packets=packets, trains=not all_continuous)
    if engine == "jax":
        from vegasmodel.engines.fluid import batch_jax

        return BatchRun(*batch_jax.average(scenarios, LOSERS.index(losers), step, chunk))
    return _threads(scenarios, LOSERS.index(losers), step, threads or os.cpu_count() or 1)


def _mixed(
    scenarios: Sequence[Scenario], sampled: list[int], step: float, threads: int | None
) -> BatchRun:
    """Simulate the scenarios with the indices ``sampled`` one by one, all others as one batch.

    Several threads share the scenarios that are simulated one by one.  The results have the order
    of ``scenarios``.  ``step`` is the length of an integration step divided by the shortest RTT at
    that time.
    """
    for i in sampled:
        reason = methods.unsupported(scenarios[i])
        if reason is not None:
            raise ValueError(f"scenario {i}: {reason}")
    n, most = len(scenarios), max(len(scenario.members) for scenario in scenarios)
    rates, rtts, bases, losses, delivered = np.full((len(AVERAGES), n, most), np.nan)
    queue, ok = np.full(n, np.nan), np.ones(n, np.bool_)
    found = BatchRun(rates, rtts, bases, losses, delivered, queue, ok)
    others = [i for i in range(n) if i not in set(sampled)]
    if others:
        batch = run(pack([scenarios[i] for i in others], trains=True), step=step, threads=threads)
        for name in AVERAGES:
            values = getattr(batch, name)
            getattr(found, name)[others, : values.shape[1]] = values
        found.queue_mean[others], found.ok[others] = batch.queue_mean, batch.ok

    def simulate_one(i: int) -> None:
        """Simulate scenario ``i``, and write its averages into ``found``."""
        count.done += 1
        try:
            answer = one_by_one.run(scenarios[i], math.inf)
        except LawFault:
            found.ok[i] = False
            return
        if answer.status != Status.DONE.reason:
            found.ok[i] = False
            return
        for name in AVERAGES:
            getattr(found, name)[i, : answer.throughput.size] = getattr(answer, name)
        found.queue_mean[i] = answer.queue_mean[0]

    import numba  # noqa: F401 - two threads that import it at the same time would fail

    with counting(n, len(others)) as count, pool(threads or os.cpu_count() or 1) as several:
        list(several.map(simulate_one, sampled))
    return found


def _threads(cases: Batch, losers: int, step: float, threads: int) -> BatchRun:
    """Simulate a batch on several threads, each of which takes ``PER_THREAD`` scenarios at a time.

    ``losers`` is the index in ``LOSERS`` of the flows that lose packets at an overflow. ``step`` is
    the length of an integration step divided by the shortest RTT at that time.
    """
    from vegasmodel.engines.fluid.march import average_many

    n, most = cases.flows.rtt.shape
    of_flows, of_link = np.empty((len(AVERAGES), n, most)), np.empty((2, n))
    stopped = np.zeros(1, np.bool_)  # set to True, it makes all threads stop
    no_samples = np.empty(0), np.empty((0, 0))

    def some(first: int) -> None:
        """Simulate ``PER_THREAD`` scenarios from number ``first`` on."""
        end = min(first + PER_THREAD, n)
        unsampled = Samples(*no_samples, np.zeros(1, np.int64), 0, 0)
        average_many(*cases, losers, step, first, end, unsampled, stopped, of_flows, of_link)
        count.done += end - first

    with counting(n) as count, pool(threads) as several:
        try:
            list(several.map(some, range(0, n, PER_THREAD)))
        except BaseException:  # Ctrl-C
            stopped[0] = True
            raise
    rates, rtts, bases, losses, delivered = of_flows
    queue, status = of_link
    return BatchRun(rates, rtts, bases, losses, delivered, queue, status == Status.DONE)
