"""Runs the packet-level simulator ns-3 on a scenario and returns its averages as a ``Prediction``.

ns-3 is optional. Our program ``ns3.cc`` simulates a scenario with the libraries of ns-3. It is
compiled when it is first needed. For each seed, ``run`` writes the scenario to a text file, starts
the program and reads its output. The result is the average over the seeds.
"""

from __future__ import annotations

import functools
from pathlib import Path

from vegasmodel.fields import kinds
from vegasmodel.fields.rules import Integer
from vegasmodel.packets import engine, ns3_build, ns3_script, ns3_support
from vegasmodel.packets.engine import EngineFailed, EngineMissing
from vegasmodel.packets.run_output import Output
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario, expect
from vegasmodel.support.children import workplace

__all__ = ["EngineFailed", "EngineMissing", "available", "run", "run_trace", "version"]


def available() -> bool:
    """Whether the headers and libraries of the simulator ns-3 are installed."""
    return ns3_build.find() is not None


def version() -> str:
    """The version of the installed ns-3, such as ``3.37``.

    Raises ``EngineMissing`` if ns-3 is not installed.
    """
    found = ns3_build.find()
    if found is None:
        raise EngineMissing(f"ns-3 is not installed: {ns3_build.INSTALL}")
    return found.version


@kinds.checked
def run(
    scenario: Scenario,
    *,
    processes: int = 2,
    interval: float | None = None,
    rtts: bool | None = None,
    timeout: float | None = None,
    scratch: Path | None = None,
) -> Prediction:
    """Simulate ``scenario`` ``run.times`` times in ns-3 and return means over the runs.

    Flows get the same random start times as in ns-2. The result has the same fields as that of
    ``ns2.run``, which explains them. The arguments are

    - ``processes``: the number of runs that go on at the same time.
    - ``interval``: the time between two samples of windows and queues, s (default:
      ``ns2.default_interval``).
    - ``rtts``: whether RTTs are recorded.  By default they are recorded only if the links can carry
      at most ``engine.MAX_RECORDED`` packets in a run.
    - ``timeout``: the time, s, after which a run is stopped (default: ``engine.patience``).
    - ``scratch``: the folder in which each run makes its temporary folder (default: the system's).

    Raises ``FieldError`` if ns-3 cannot simulate the scenario, ``EngineMissing`` if ns-3 or the
    compiler is missing, and ``EngineFailed`` if compiling or a run fails.
    """
    expect(scenario)
    interval = engine.sampling_interval(scenario, interval)
    ns3_script.script(scenario, interval=interval)  # raises FieldError even without ns-3
    ns3_build.program()
    run_once = functools.partial(
        run_trace,
        scenario,
        interval,
        rtts=engine.few_packets(scenario) if rtts is None else rtts,
        timeout=timeout,
        scratch=scratch,
    )
    return engine.run(
        "ns3",
        scenario,
        run_once,
        version=version(),
        assumptions=ns3_support.remarks(scenario),
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
) -> Output:
    """Simulate the scenario once, with the seed of run ``number``, and return what ns-3 recorded.

    ``ns2.run_trace`` explains the result, the arguments and the errors.
    """
    Integer(0, 2**31 - 1).check(number, "number")
    interval = engine.sampling_interval(scenario, interval)
    text = ns3_script.script(scenario, number, interval=interval, rtts=rtts)
    program = str(ns3_build.program())
    with workplace(scratch) as place:
        (place.folder / "run.txt").write_text(text, encoding="ascii")
        engine.execute("ns-3", [program], place, engine.time_limit(scenario, timeout))
        return engine.read("ns-3", place.folder, scenario, rtts=rtts)
