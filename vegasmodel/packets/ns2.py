"""The packet-level simulator ns-2 as an engine: one ``Scenario`` in, one ``Prediction`` out.

``run`` writes a script, starts ``ns`` in a temporary folder of its own for each seed, reads what
it wrote and averages.  ns-2 comes from Debian's or Ubuntu's package ``ns2``.
"""

from __future__ import annotations

import functools
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vegasmodel.packets import ns2_output, ns2_script, ns2_support
from vegasmodel.packets.ns2_output import Output
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

__all__ = [
    "EngineFailed",
    "EngineMissing",
    "available",
    "default_interval",
    "run",
    "run_trace",
    "version",
]

Floats = NDArray[np.float64]

TIMEOUT = 3600.0  # seconds for one run
MAX_RECORDED = 1_000_000  # packets of a run whose round-trip times are recorded unasked


class EngineMissing(RuntimeError):  # noqa: N818 - the name says it
    """ns-2 is not installed."""


class EngineFailed(RuntimeError):  # noqa: N818 - the name says it
    """ns-2 stopped with an error, or took too long."""


def available() -> bool:
    """Whether the command ``ns`` is there."""
    return shutil.which("ns") is not None


@functools.cache
def version() -> str:
    """ns-2's own version, such as ``2.35``.  Raises ``EngineMissing``, ``EngineFailed``."""
    script = "puts [lindex [ns-version] 0]; exit 0\n"
    return _ns([], Path("/"), 60.0, script).strip() or "unknown"


def run(
    scenario: Scenario,
    *,
    processes: int = 2,
    interval: float | None = None,
    rtts: bool | None = None,
    timeout: float = TIMEOUT,
    scratch: Path | None = None,
) -> Prediction:
    """Simulate ``scenario`` ``run.runs`` times and return means over the runs.

    Per flow: ``throughput``, packets delivered for the first time per second (by cumulative
    ACKs) between warm-up and end, within the time in which the flow is active;
    ``throughput_se``, its standard error over the runs; ACKed packets, retransmissions, dropped
    over sent packets; with ``rtts`` the mean RTT in that time and, for Vegas, baseRTT at its end
    (the smallest RTT of the flow so far).  Per link: mean number of waiting packets, utilisation.

    ``rtts=None`` records round-trip times if that means at most ``MAX_RECORDED`` packets a run.
    ``extra``: ``throughput_runs`` [runs, flows], ``version``, ``drops_links`` [links], and of the
    first run ``time`` [samples], ``window`` [samples, flows], ``queue`` [samples, links], sampled
    every ``interval`` seconds (default: ``default_interval``).  ``scratch``: the folder in which
    each run has its own while it lasts (default: the system's for temporary files).

    ``FieldError``: ns-2 cannot do what a field says; ``EngineMissing``; ``EngineFailed``.
    """
    begun = time.perf_counter()
    ns2_support.check(scenario)
    _binary()
    every = interval or default_interval(scenario)
    recorded = _few_packets(scenario) if rtts is None else rtts

    def one(number: int) -> Output:
        return run_trace(
            scenario, every, number=number, rtts=recorded, timeout=timeout, scratch=scratch
        )

    # Threads are enough: the work is done by the ns processes.
    with ThreadPoolExecutor(max_workers=max(1, processes)) as pool:
        outputs = list(pool.map(one, range(scenario.run.runs)))
    return _prediction(scenario, outputs, time.perf_counter() - begun)


def run_trace(
    scenario: Scenario,
    interval: float,
    *,
    number: int = 0,
    rtts: bool = True,
    timeout: float = TIMEOUT,
    scratch: Path | None = None,
) -> Output:
    """One run (with the seed of run ``number``) in detail.

    Windows and queues sampled every ``interval`` seconds, every dropped data packet with its
    time, link, flow and number, and with ``rtts`` every round-trip time.
    """
    made = ns2_script.script(scenario, number, interval=interval, rtts=rtts)
    n_flows, n_links = len(scenario.members), len(scenario.links)
    with tempfile.TemporaryDirectory(prefix="vegasmodel-", dir=scratch) as name:
        folder = Path(name)
        (folder / "run.tcl").write_text(made.text, encoding="ascii")
        _ns(["run.tcl"], folder, timeout)
        try:
            return ns2_output.read(folder, n_flows, n_links, made.origin, rtts=rtts)
        except (OSError, ValueError, IndexError) as error:
            raise EngineFailed(f"ns-2 wrote nothing usable: {_line(str(error))}") from None


def default_interval(scenario: Scenario) -> float:
    """Seconds between samples: 240 of a run, fewer with more than 100 flows (each costs 40 us)."""
    samples = min(240, max(24, 24_000 // len(scenario.members)))
    return scenario.run.duration / samples


def _few_packets(scenario: Scenario) -> bool:
    fastest = max(link.capacity for link in scenario.links) * len(scenario.links)
    smallest = min(scenario.size_of(group) for group in scenario.flows) / scenario.packet_size
    return fastest / smallest * scenario.run.duration <= MAX_RECORDED


def _binary() -> str:
    path = shutil.which("ns")
    if path is None:
        raise EngineMissing("ns-2 is not installed: apt-get install ns2")
    return path


@functools.cache
def _dies_with_us() -> bool:
    """Whether the system has a command that lets a child die with its parent (util-linux 2.33)."""
    try:
        probe = ["setpriv", "--pdeathsig", "KILL", "true"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _ns(arguments: list[str], folder: Path, timeout: float, given: str = "") -> str:
    """Run ``ns`` in ``folder`` on a script, or on ``given`` as its input; its standard output."""
    command = [_binary(), *arguments]
    if _dies_with_us():  # a parent that died before the kernel was asked is no longer the parent
        alive = 'test "$PPID" = "$0" && exec "$@"'
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", alive, str(os.getpid()), *command]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            input=given.encode("ascii"),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EngineFailed(f"ns-2 took more than {timeout:g} s and was stopped") from None
    if done.returncode != 0:
        said = done.stderr or done.stdout  # errors of scheduled commands go to standard output
        raise EngineFailed(f"ns-2 failed: {_line(said.decode('ascii', 'replace'))}")
    return done.stdout.decode("ascii", "replace")


def _line(text: str) -> str:
    """The gist of an error message on one line."""
    words = " ".join(text.split())
    return (words[:200] + " ...") if len(words) > 200 else (words or "no message")


def _prediction(scenario: Scenario, outputs: Sequence[Output], seconds: float) -> Prediction:
    """Means over the runs."""
    figures = [_measure(scenario, output) for output in outputs]
    mean = {key: np.mean([figure[key] for figure in figures], axis=0) for key in figures[0]}
    throughputs = np.array([figure["throughput"] for figure in figures])
    spread = None
    if len(figures) > 1:
        spread = throughputs.std(axis=0, ddof=1) / math.sqrt(len(figures))
    first = outputs[0].samples
    return Prediction(
        model="ns2",
        scenario=scenario,
        throughput=mean["throughput"],
        throughput_se=spread,
        base_rtt=mean["base_rtt"],
        rtt_mean=mean["rtt_mean"],
        loss_rate=mean["loss_rate"],
        acks=mean["acks"],
        retransmits=mean["retransmits"],
        queue_mean=mean["queue_mean"],
        utilization_links=mean["utilization"],
        assumptions=ns2_support.remarks(scenario),
        seconds=seconds,
        extra={
            "version": version(),
            "throughput_runs": throughputs,
            "drops_links": mean["drops_links"],
            "time": first.time,
            "window": first.window,
            "queue": first.queue,
        },
    )


def _measure(scenario: Scenario, output: Output) -> dict[str, Floats]:
    """Rates and means of one run from its counters."""
    (t0, t1), (c0, c1) = output.flows.time, output.flows.value
    acks, retransmits, sent = (c1 - c0).T
    active = np.fmin(t1, output.finished) - t0
    dropped, drops_links = _drops(scenario, output)
    with np.errstate(divide="ignore", invalid="ignore"):
        throughput = np.where(active > 0, acks / active, 0.0)
        loss_rate = np.where(sent > 0, dropped / sent, np.nan)
    (l0, l1), (d0, d1) = output.links.time, output.links.value
    bits = np.array([8 * scenario.packet_size * link.capacity for link in scenario.links])
    base_rtt, rtt_mean = _rtts(scenario, output)
    return {
        "throughput": throughput,
        "acks": acks,
        "retransmits": retransmits,
        "loss_rate": loss_rate,
        "base_rtt": base_rtt,
        "rtt_mean": rtt_mean,
        "queue_mean": (d1 - d0)[:, 0] / (l1 - l0),
        "utilization": 8 * (d1 - d0)[:, 2] / (l1 - l0) / bits,
        "drops_links": drops_links,
    }


def _drops(scenario: Scenario, output: Output) -> tuple[Floats, Floats]:
    """Dropped data packets between the counts: per flow [n_flows], and per link [n_links]."""
    (t0, t1), drops = output.flows.time, output.drops
    inside = (drops.time >= t0[drops.flow]) & (drops.time <= t1[drops.flow])
    (l0, l1) = output.links.time
    forward = (drops.time >= l0[drops.link]) & (drops.time <= l1[drops.link]) & (drops.reverse == 0)
    per_flow = np.bincount(drops.flow[inside], minlength=len(scenario.members))
    per_link = np.bincount(drops.link[forward], minlength=len(scenario.links))
    return per_flow.astype(np.float64), per_link.astype(np.float64)


def _rtts(scenario: Scenario, output: Output) -> tuple[Floats, Floats]:
    """``baseRTT`` of each Vegas flow at its end, and each flow's mean RTT; NaN: not known."""
    base, mean = np.full((2, len(scenario.members)), np.nan)
    for f, trips in enumerate(output.round_trips or ()):
        t0, t1 = output.flows.time[:, f]
        inside = (trips.time >= t0) & (trips.time <= t1)
        if inside.any():
            mean[f] = trips.rtt[inside].mean()
        if scenario.members[f].flow.law == "vegas" and trips.rtt.size:
            base[f] = trips.rtt[trips.time <= t1].min(initial=np.inf)
    base[np.isinf(base)] = np.nan
    return base, mean
