"""Runs the packet-level simulator ns-2 on a scenario and returns its averages as a ``Prediction``.

For each seed, ``run`` writes a script, starts ``ns`` in a temporary folder and reads its output.
The result is the average over the seeds. ns-2 is the package ``ns2`` of Debian and Ubuntu.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Collection
from pathlib import Path

from vegasmodel.fields import kinds
from vegasmodel.fields.rules import Integer
from vegasmodel.packets import engine, ns2_script, ns2_support
from vegasmodel.packets.engine import (
    EngineFailed,
    EngineMissing,
    default_interval,
    few_packets,
)
from vegasmodel.packets.run_output import Output
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario, expect
from vegasmodel.support.children import Workplace, workplace

__all__ = [
    "EngineFailed",
    "EngineMissing",
    "available",
    "default_interval",
    "run",
    "run_trace",
    "version",
]


def available() -> bool:
    """Whether ns-2's command ``ns`` is installed."""
    return shutil.which("ns") is not None


@functools.cache
def version() -> str:
    """The version of the installed ns-2, such as ``2.35``.

    Raises ``EngineMissing`` if ns-2 is not installed, and ``EngineFailed`` if it stops with an
    error.
    """
    script = "puts [lindex [ns-version] 0]; exit 0\n"
    with workplace() as place:
        return _ns([], place, 60.0, script).strip() or "unknown"


@kinds.checked
def run(
    scenario: Scenario,
    *,
    processes: int = 2,
    interval: float | None = None,
    rtts: bool | None = None,
    timeout: float | None = None,
    scratch: Path | None = None,
    spaced: bool = True,
    stock: Collection[str] = (),
) -> Prediction:
    """Simulate the scenario in ns-2 and return means over its runs (``run.times`` of them).

    A flow is measured while it is active between the end of the warm-up and the end of the
    scenario.  For each flow the result has

    - ``throughput``: packets per second delivered for the first time (counted by cumulative ACKs);
    - ``throughput_se``: the standard error of ``throughput`` over the runs, if there are several;
    - ``acks`` and ``retransmits``: the numbers of packets acknowledged and retransmitted;
    - ``loss_rate``: dropped packets / sent packets, at most 1;
    - ``rtt_mean``: the mean RTT, s, if RTTs are recorded;
    - ``base_rtt``, for Vegas: the flow's smallest RTT, s, from its start on, if RTTs are recorded.

    For each link the result has the mean number of waiting packets, and the utilization: the part
    of its capacity that delivered data take.  The data of reverse flows do not count, because they
    cross the link the other way.

    ``extra`` has

    - ``version``: the version of ns-2;
    - ``throughput_runs`` [runs, flows]: the throughputs in each run;
    - ``queue_runs`` [runs, links]: the mean numbers of waiting packets in each run;
    - ``drops_links`` [links]: the mean number of packets dropped;
    - ``busy_links`` [links]: the part of the time in which each link transmits in the forward
      direction, retransmissions and the ACKs of reverse flows included;
    - ``time`` [samples], ``window`` [samples, flows] and ``queue`` [samples, links]: samples from
      the first run.

    The arguments are

    - ``processes``: the number of runs that go on at the same time.
    - ``interval``: the time between two samples, s (default: ``default_interval``).
    - ``rtts``: whether RTTs are recorded.  By default they are recorded only if the links can carry
      at most ``engine.MAX_RECORDED`` packets in a run.  RTTs of short flows that arrive at random
      are never recorded.
    - ``timeout``: the time, s, after which a run is stopped (default: ``engine.patience``).
    - ``scratch``: the folder in which each run makes its temporary folder (default: the system's).
    - ``spaced``: whether RED waits for at least 1/p packets from one drop to the next.  RED
      computes the probability p from its average queue.  ``True`` is the default of ns-2 (its
      parameter ``wait_``).  With ``False``, RED may drop two packets in a row, as in the RED that
      Floyd and Jacobson published in 1993.
    - ``stock``: names of ns-2 parameters that keep their default values of ns-2 2.35.  The other
      parameters get the values that ``ns2_defaults.SETS`` lists for the scenario's
      ``run.ns2_defaults``.

    A run may use 16 GiB of memory and write files of at most 16 GiB.

    Raises ``FieldError`` if ns-2 cannot simulate the scenario, ``EngineMissing`` if ns-2 is not
    installed, and ``EngineFailed`` if a run fails.
    """
    expect(scenario)
    ns2_support.check(scenario)
    run_once = functools.partial(
        run_trace,
        scenario,
        engine.sampling_interval(scenario, interval),
        rtts=few_packets(scenario) if rtts is None else rtts,
        timeout=timeout,
        scratch=scratch,
        spaced=spaced,
        stock=stock,
    )
    return engine.run(
        "ns2",
        scenario,
        run_once,
        version=version(),
        assumptions=ns2_support.remarks(scenario),
        processes=processes,
    )


@kinds.checked
def run_trace(
    scenario: Scenario,
    interval: float,
    *,
    number: int = 0,
    rtts: bool = True,
    timeout: float | None = None,
    scratch: Path | None = None,
    spaced: bool = True,
    stock: Collection[str] = (),
) -> Output:
    """Simulate the scenario once, with the seed of run ``number``, and return what ns-2 recorded.

    ns-2 samples windows and queues every ``interval`` seconds.  It records every dropped data
    packet with its time, link, flow and sequence number.  With ``rtts`` it also records round-trip
    times.  ``run`` explains the other arguments and the errors.
    """
    Integer(0, 2**31 - 1).check(number, "number")
    interval = engine.sampling_interval(scenario, interval)
    made = ns2_script.script(
        scenario, number, interval=interval, rtts=rtts, spaced=spaced, stock=stock
    )
    with workplace(scratch) as place:
        (place.folder / "run.tcl").write_text(made.text, encoding="ascii")
        _ns(["run.tcl"], place, engine.time_limit(scenario, timeout))
        return engine.read("ns-2", place.folder, scenario, made.origin, rtts=rtts)


def _binary() -> str:
    """The path of ns-2's command ``ns``; raises ``EngineMissing`` if it is not installed."""
    path = shutil.which("ns")
    if path is None:
        raise EngineMissing("ns-2 is not installed: apt-get install ns2")
    return path


def _ns(arguments: list[str], place: Workplace, timeout: float, given: str = "") -> str:
    """Run ns-2's command ``ns`` in the temporary folder ``place.folder``; return what it prints.

    ``arguments`` are the command's arguments, such as the name of a script.  ``given`` is the text
    on its standard input, and ``timeout`` the longest time that it may take, s.
    """
    return engine.execute("ns-2", [_binary(), *arguments], place, timeout, given)
