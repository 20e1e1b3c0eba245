"""Starts the simulator ns-2 or ns-3, reads its output, and averages the results of several runs."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import MAX_RUNS, MAX_SAMPLES, Integer, Quantity
from vegasmodel.metrics import Floats, known_mean, loss_rates, standard_error
from vegasmodel.packets import run_output
from vegasmodel.packets.run_output import Output
from vegasmodel.results.assumption import Assumption, sends_after_warm_up
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Link, Scenario
from vegasmodel.scenario.placement import forward_load
from vegasmodel.support import children
from vegasmodel.support.children import Budget, Workplace

__all__ = ["EngineFailed", "EngineMissing", "default_interval", "patience"]


MAX_RECORDED = 1_000_000  # packets of a run whose RTTs are recorded by default
UNLIMITED = 1_000_000_000  # packets; the simulators keep limits in 32 bits


class EngineMissing(RuntimeError):  # noqa: N818 - an error even without "Error" in its name
    """Raised if the simulator, ns-2 or ns-3, is not installed."""


class EngineFailed(RuntimeError):  # noqa: N818 - an error even without "Error" in its name
    """Raised if the simulator, ns-2 or ns-3, stopped with an error or took too long."""


@kinds.checked
def default_interval(scenario: Scenario) -> float:
    """The time between two samples of windows and queues, s, if the user gives none.

    It is a 240th of the run's duration.  With more than 100 flows it is longer, up to a 24th of the
    duration, because sampling every flow takes time.
    """
    samples = min(240, max(24, 24_000 // len(scenario.members)))
    return scenario.run.duration / samples


def sampling_interval(scenario: Scenario, interval: float | None) -> float:
    """The time between two samples, s: ``interval``, or ``default_interval`` if it is ``None``.

    Raises ``FieldError`` unless ``interval`` is positive and gives at most ``MAX_SAMPLES`` samples.
    """
    if interval is None:
        return default_interval(scenario)
    Quantity("time", low_open=True).check(interval, "interval")
    Quantity("time", low=scenario.run.duration / MAX_SAMPLES).check(interval, "interval")
    return interval


def check_queue(link: Link, where: str, known: Collection[str], engine: str) -> None:
    """Raise ``FieldError`` if a simulator does not have the link's queue discipline.

    ``known`` has the names of the disciplines that the simulator has.  The error also names the
    simulator, ``engine``, and the link's place in the scenario, ``where``.
    """
    name = link.queue.discipline
    if name not in known:
        raise FieldError(f"{where}.queue", name, f"one of {', '.join(known)} in {engine}")


def queue_limits(link: Link) -> tuple[int, ...]:
    """How many packets each queue of a link can hold (``Discipline.limits``).

    A Rate-Delay link has two queues: the first is for flows that want a high rate, the second for
    flows that want a low delay.  Any other link has one.  An infinite buffer counts as
    ``UNLIMITED`` packets.
    """
    return tuple(int(limit) for limit in link.queue.limits(min(link.buffer, UNLIMITED)))


@kinds.checked
def patience(scenario: Scenario) -> float:
    """The wall-clock time, s, after which a run is stopped if the user sets no ``timeout``.

    It is 120 s, plus 0.1 ms for each packet that the links can carry, plus 50 ms for each flow.  In
    long runs it is about twenty times the time that a simulator usually takes.
    """
    return 120.0 + 1e-4 * _packets(scenario) + 0.05 * len(scenario.members)


def time_limit(scenario: Scenario, timeout: float | None) -> float:
    """The wall-clock time, s, after which a run is stopped.

    It is ``timeout`` if that is given, else ``patience(scenario)``.  Raises ``FieldError`` if
    ``timeout`` is not positive.
    """
    if timeout is None:
        return patience(scenario)
    Quantity("time", low_open=True, infinite=True).check(timeout, "timeout")
    return timeout


def few_packets(scenario: Scenario) -> bool:
    """Whether a run is so short that round-trip times are recorded by default.

    This is so if the links can carry at most ``MAX_RECORDED`` data packets during the run.
    """
    return _packets(scenario) <= MAX_RECORDED


def _packets(scenario: Scenario) -> float:
    """An upper bound on the number of data packets that all links together carry in one direction.

    It would be reached if, during the whole run, every link were as fast as the fastest one and
    carried the smallest packets.
    """
    fastest = max(link.capacity for link in scenario.links) * len(scenario.links)
    smallest = min(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    return fastest / smallest * scenario.run.duration


def window_limit(scenario: Scenario, f: int) -> int:
    """The receiver's window, in packets, that the simulator gets for flow number f.

    The simulators need a finite window.  If the scenario sets none (``max_window``), the result is
    four times the number of packets that fit on the flow's path: the bandwidth-delay product of the
    slowest link plus all finite buffers.  But it is at least 20,000 and at most 1,000,000 packets.
    """
    member = scenario.members[f]
    group = member.flow
    if math.isfinite(group.max_window):
        return int(group.max_window)
    path = scenario.path(group)
    slowest = min(link.capacity for link in path) * scenario.packet_size / scenario.size_of(group)
    buffers = sum(link.buffer for link in path if not link.never_full)
    return max(20_000, min(1_000_000, math.ceil(4 * (slowest * member.rtt + buffers))))


def run(
    model: str,
    scenario: Scenario,
    run_once: Callable[..., Output],
    *,
    version: str,
    assumptions: tuple[Assumption, ...],
    processes: int,
) -> Prediction:
    """Simulate all runs of a scenario in ns-2 or ns-3; return means over the runs.

    The function ``run_once`` simulates a single run: ``run_once(number=n)`` returns the output of
    run number n. At most ``processes`` runs go on at the same time. ``model`` is the name of the
    simulator and ``version`` its version. ``assumptions`` become a part of the result. ``ns2.run``
    explains the result. Raises ``FieldError`` if ``processes`` is out of range, and the errors of
    ``run_once``.
    """
    Integer(1, MAX_RUNS).check(processes, "processes")
    begun = time.perf_counter()
    # threads are enough: the simulator's processes do the work
    with ThreadPoolExecutor(max_workers=processes) as pool, children.interruptible():
        outputs = list(pool.map(lambda number: run_once(number=number), range(scenario.run.times)))
    figures = [_measure(scenario, output) for output in outputs]
    mean = {key: np.mean([figure[key] for figure in figures], axis=0) for key in figures[0]}
    throughputs = np.array([figure["throughput"] for figure in figures])
    first, means = outputs[0].samples, known_mean(throughputs)
    span = scenario.run.duration - scenario.run.warmup
    return Prediction(
        model,
        scenario,
        throughput=means,
        throughput_se=standard_error(throughputs) if len(figures) > 1 else None,
        base_rtt=mean["base_rtt"],
        rtt_mean=mean["rtt_mean"],
        loss_rate=mean["loss_rate"],
        acks=mean["acks"],
        retransmits=mean["retransmits"],
        delivered=mean["acks"],
        queue_mean=mean["queue_mean"],
        # in ns-3 a packet's size (packet_size) includes its headers
        utilization_links=forward_load(scenario, mean["acks"], span, headers=model == "ns2"),
        assumptions=(*assumptions, *sends_after_warm_up(scenario, means)),
        seconds=time.perf_counter() - begun,
        extra={
            "version": version,
            "throughput_runs": throughputs,
            "queue_runs": np.array([figure["queue_mean"] for figure in figures]),
            "drops_links": mean["drops_links"],
            "busy_links": mean["busy_links"],
            "time": first.time,
            "window": first.window,
            "queue": first.queue,
        },
    )


def read(name: str, folder: Path, scenario: Scenario, origin: float = 0.0, *, rtts: bool) -> Output:
    """Read the files that a run of the simulator ``name`` wrote into ``folder``.

    ``origin`` is the time, s, on the simulator's clock at which the scenario begins.  ``rtts`` says
    whether the simulator recorded round-trip times.  Raises ``EngineFailed`` if a file is missing
    or incomplete.
    """
    n_flows, n_links = len(scenario.members), len(scenario.links)
    try:
        return run_output.read(folder, n_flows, n_links, origin, rtts=rtts)
    except (OSError, ValueError, IndexError) as error:
        raise EngineFailed(f"{name} wrote nothing usable: {one_line(str(error))}") from None


def execute(
    name: str, command: Sequence[str], place: Workplace, timeout: float, given: str = ""
) -> str:
    """Run ``command``, which starts the simulator ``name``; return what it prints.

    The command runs in the temporary folder ``place.folder`` and reads the text ``given`` from its
    standard input.  If this Python process ends, the simulator ends, too.  Raises ``EngineFailed``
    if the simulator fails or takes more than ``timeout`` seconds.
    """
    try:
        done = place.run(command, Budget(timeout), given=given)
    except subprocess.TimeoutExpired:
        raise EngineFailed(f"{name} took more than {timeout:g} s and was stopped") from None
    if done.status != 0:
        why = done.err or done.out  # ns-2's scheduled commands report errors on standard output
        if os.strerror(errno.ENOSPC).lower() in why.lower():
            why = f"{place.folder} is on a full disk; free some space, or let TMPDIR name a folder"
        raise EngineFailed(f"{name} failed: {one_line(why)}")
    return done.out


def one_line(text: str) -> str:
    """Put an error message on one line, and cut it after 200 characters."""
    words = " ".join(text.split())
    return (words[:200] + " ...") if len(words) > 200 else (words or "no message")


def _measure(scenario: Scenario, output: Output) -> dict[str, Floats]:
    """Compute throughputs, loss rates, RTTs and other results of one run from its output.

    Most results have one value per flow.  Only ``queue_mean``, ``busy_links`` and ``drops_links``
    have one value per link.
    """
    # of each flow: begin and end of the measurement, s, and its counters at these times
    (begin, end), (at_begin, at_end) = output.flows.time, output.flows.value
    acks, retransmits, sent = (at_end - at_begin).T
    active = np.fmin(end, output.finished) - begin  # a finite flow is active until it is done
    dropped, drops_links = _drops(scenario, output)
    with np.errstate(divide="ignore", invalid="ignore"):
        throughput = np.where(active > 0, acks / active, np.nan)
    # The same of each link. ``waited`` is the integral of the queue's length over time, in packets
    # times seconds.
    (link_begin, link_end), (at_begin, at_end) = output.links.time, output.links.value
    waited, _, sent_bytes = (at_end - at_begin).T
    bits = np.array([8 * scenario.packet_size * link.capacity for link in scenario.links])
    base_rtt, rtt_mean = _rtts(scenario, output)
    return {
        "throughput": throughput,
        "acks": acks,
        "retransmits": retransmits,
        "loss_rate": loss_rates(dropped, sent),
        "base_rtt": base_rtt,
        "rtt_mean": rtt_mean,
        "queue_mean": waited / (link_end - link_begin),
        "busy_links": 8 * sent_bytes / (link_end - link_begin) / bits,
        "drops_links": drops_links,
    }


def _drops(scenario: Scenario, output: Output) -> tuple[Floats, Floats]:
    """Count the dropped data packets of each flow [n_flows] and at each link [n_links].

    For a flow, drops are counted while the flow is active between the end of the warm-up and the
    end of the run.  For a link, they are counted from the end of the warm-up to the end of the run,
    in the link's forward direction only.
    """
    drops = output.drops
    begin, end = output.flows.time[:, drops.flow]  # of the measurement of the drop's flow, s
    of_flows = (drops.time >= begin) & (drops.time <= end)
    begin, end = output.links.time[:, drops.link]  # of the measurement of the drop's link, s
    of_links = (drops.time >= begin) & (drops.time <= end) & (drops.reverse == 0)
    per_flow = np.bincount(drops.flow[of_flows], minlength=len(scenario.members))
    per_link = np.bincount(drops.link[of_links], minlength=len(scenario.links))
    return per_flow.astype(np.float64), per_link.astype(np.float64)


def _rtts(scenario: Scenario, output: Output) -> tuple[Floats, Floats]:
    """The baseRTT of each Vegas flow and the mean RTT of each flow, s: both [n_flows].

    The mean RTT is over the part of the run after the warm-up in which the flow is active.  The
    baseRTT is the flow's smallest RTT until the end of that part; it is NaN for flows that are not
    Vegas.  Both are NaN if the run did not record RTTs.
    """
    base, mean = np.full((2, len(scenario.members)), np.nan)
    for f, trips in enumerate(output.round_trips or ()):
        begin, end = output.flows.time[:, f]  # of the flow's measurement, s
        inside = (trips.time >= begin) & (trips.time <= end)
        if inside.any():
            mean[f] = trips.rtt[inside].mean()
        if scenario.members[f].flow.law == "vegas" and trips.rtt.size:
            base[f] = trips.rtt[trips.time <= end].min(initial=np.inf)
    base[np.isinf(base)] = np.nan
    return base, mean
