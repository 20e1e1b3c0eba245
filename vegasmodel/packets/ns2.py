"""The packet-level simulator ns-2 as an engine: one ``Scenario`` in, one ``Prediction`` out.

``run`` writes a script, starts ``ns`` in a temporary folder of its own for each seed, reads what
it wrote and averages.  ns-2 comes from Debian's or Ubuntu's package ``ns2``.
"""

from __future__ import annotations

import functools
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.packets import ns2_output, ns2_script
from vegasmodel.packets.ns2_output import Output
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario

__all__ = ["EngineFailed", "EngineMissing", "available", "run", "run_trace", "version"]

Floats = NDArray[np.float64]

TIMEOUT = 3600.0  # seconds for one run


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
    with tempfile.TemporaryDirectory(prefix="vegasmodel-") as folder:
        return _ns("puts [lindex [ns-version] 0]; exit 0", Path(folder), 60.0).strip() or "unknown"


def run(
    scenario: Scenario,
    *,
    processes: int = 2,
    interval: float | None = None,
    timeout: float = TIMEOUT,
) -> Prediction:
    """Simulate ``scenario`` ``run.runs`` times and return means over the runs.

    Per flow: packets delivered for the first time per second (cumulative ACKs) between warm-up
    and end, within the time in which the flow is active, ``throughput_se`` their standard error
    over the runs; ACKed packets, retransmissions and the part of the sent packets that was
    dropped.  Per link: mean number of waiting packets, utilisation.  ``extra`` holds
    ``throughput_runs`` [runs, flows], ``version``, and of the first run ``time`` [samples],
    ``window`` [samples, flows], ``queue`` [samples, links], sampled every ``interval`` seconds
    (default: 240 samples).

    ``FieldError``: ns-2 cannot do what a field says; ``EngineMissing``; ``EngineFailed``.
    """
    begun = time.perf_counter()
    outputs = _simulate(scenario, processes, interval or scenario.run.duration / 240, timeout)
    figures = [_measure(scenario, output) for output in outputs]
    mean = {key: np.mean([figure[key] for figure in figures], axis=0) for key in figures[0]}
    throughputs = np.array([figure["throughput"] for figure in figures])
    spread = None
    if len(figures) > 1:
        spread = throughputs.std(axis=0, ddof=1) / math.sqrt(len(figures))
    first = outputs[0]
    return Prediction(
        model="ns2",
        scenario=scenario,
        throughput=mean["throughput"],
        throughput_se=spread,
        loss_rate=mean["loss_rate"],
        acks=mean["acks"],
        retransmits=mean["retransmits"],
        queue_mean=mean["queue_mean"],
        utilization_links=mean["utilization"],
        seconds=time.perf_counter() - begun,
        extra={
            "throughput_runs": throughputs,
            "version": version(),
            "time": first.sample_time,
            "window": first.window,
            "queue": first.queue,
        },
    )


def run_trace(
    scenario: Scenario, interval: float, *, number: int = 0, timeout: float = TIMEOUT
) -> Output:
    """One run (seed number ``number``) in detail.

    Windows and queues sampled every ``interval`` seconds, and every dropped data packet with its
    time, link and flow.
    """
    return _one(scenario, number, interval, timeout)


def _simulate(
    scenario: Scenario, processes: int, interval: float, timeout: float
) -> Sequence[Output]:
    ns2_script.check(scenario)
    _binary()

    def one(number: int) -> Output:
        return _one(scenario, number, interval, timeout)

    # Threads are enough: the work is done by the ns processes.
    with ThreadPoolExecutor(max_workers=max(1, processes)) as pool:
        return list(pool.map(one, range(scenario.run.runs)))


def _one(scenario: Scenario, number: int, interval: float, timeout: float) -> Output:
    text = ns2_script.script(scenario, number, interval)
    with tempfile.TemporaryDirectory(prefix="vegasmodel-") as name:
        folder = Path(name)
        _ns(text, folder, timeout)
        try:
            return ns2_output.read(folder, len(scenario.members), len(scenario.links))
        except (OSError, ValueError, IndexError) as error:
            raise EngineFailed(f"ns-2 wrote nothing usable: {_line(str(error))}") from None


def _binary() -> str:
    path = shutil.which("ns")
    if path is None:
        raise EngineMissing("ns-2 is not installed: apt-get install ns2")
    return path


def _ns(text: str, folder: Path, timeout: float) -> str:
    """Run a script in ``folder``; its standard output."""
    (folder / "run.tcl").write_text(text, encoding="ascii")
    try:
        done = subprocess.run(
            [_binary(), "run.tcl"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EngineFailed(f"ns-2 took more than {timeout:g} s and was stopped") from None
    if done.returncode != 0:
        raise EngineFailed(f"ns-2 failed: {_line(done.stderr.decode('ascii', 'replace'))}")
    return done.stdout.decode("ascii", "replace")


def _line(text: str) -> str:
    """The gist of an error message on one line."""
    words = " ".join(text.split())
    return (words[:200] + " ...") if len(words) > 200 else (words or "no message")


def _measure(scenario: Scenario, output: Output) -> dict[str, Any]:
    """Rates and means of one run from its counters."""
    (t0, t1), (c0, c1) = output.flows.time, output.flows.value
    acks, retransmits, sent = (c1 - c0).T
    until = np.fmin(t1, output.finished)
    active = until - t0
    with np.errstate(divide="ignore", invalid="ignore"):
        throughput = np.where(active > 0, acks / active, 0.0)
        lost = np.where(sent > 0, _lost(output, t0, t1) / sent, np.nan)
    (l0, l1), (d0, d1) = output.links.time, output.links.value
    bits = np.array([8 * scenario.packet_size * link.capacity for link in scenario.links])
    return {
        "throughput": throughput,
        "acks": acks,
        "retransmits": retransmits,
        "loss_rate": lost,
        "queue_mean": (d1 - d0)[:, 0] / (l1 - l0),
        "utilization": 8 * (d1 - d0)[:, 3] / (l1 - l0) / bits,
    }


def _lost(output: Output, t0: Floats, t1: Floats) -> Floats:
    """Dropped data packets per flow between its two counts."""
    time, flow = output.drops.time, output.drops.flow
    inside = (time >= t0[flow]) & (time <= t1[flow])
    return np.bincount(flow[inside], minlength=len(t0)).astype(np.float64)
