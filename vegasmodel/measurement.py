"""Gets a measurement of a scenario: from a trace or stored results, or by a run of ns-2 or ns-3."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vegasmodel.fields import checked, rules
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.scatter import MIN_RUNS, of_means
from vegasmodel.scenario import Run, Scenario
from vegasmodel.support import progress

if TYPE_CHECKING:
    from vegasmodel.packets.trace import Trace

ENGINES = ("ns2", "ns3")  # the packet-level simulators
OVERLOAD = 1.05  # load / capacity; a trace with a greater value is of another scenario


class MeasurementError(FieldError):
    """Raised if ``compare`` has no trace, and ns-2 lacks a feature of the scenario.

    ``lacks`` is the error that says what ns-2 lacks. The message also advises to give a trace, and
    quotes ``trace`` to show how: by default ``trace=FILE``, as one writes it in Python.
    """

    def __init__(self, lacks: FieldError, trace: str = "trace=FILE") -> None:
        self.lacks = lacks
        other = f"give compare a trace ({trace}), or use predict, which needs no measurement"
        super().__init__(lacks.field, lacks.value, f"{lacks.allowed}; {other}", wrong=lacks.wrong)


def run_engine(
    scenario: Scenario, engine: str = "ns2", timeout: float | None = None, *, brief: bool = False
) -> Prediction:
    """Run the packet-level simulator ``engine``, "ns2" or "ns3"; return what it measured.

    The simulator makes as many runs as the scenario states, and the results are means over them.
    ``timeout`` is the time limit of one run, s. The default, ``packets.engine.patience``, is about
    twenty times what such a run usually takes.  With ``brief``, the simulator records no round-trip
    times, and it samples windows and queues only at the start and at the end of the run.

    Raises ``FieldError`` for an unknown engine, for a ``timeout`` that is not positive, or if the
    simulator lacks a feature of the scenario. Raises ``EngineMissing`` if it is not installed.
    """
    rules.Choice(ENGINES).check(engine, "engine")
    from vegasmodel.packets import ns2, ns3
    from vegasmodel.packets.engine import time_limit

    timeout = time_limit(scenario, timeout)
    run = ns3.run if engine == "ns3" else ns2.run
    with progress.series(f"running {engine}"):
        if brief:
            return run(scenario, interval=scenario.run.duration, rtts=False, timeout=timeout)
        return run(scenario, timeout=timeout)


def record_engine(scenario: Scenario, engine: str = "ns2", timeout: float | None = None) -> Trace:
    """Make one run of the packet-level simulator ``engine`` and return its trace.

    ``engine`` is "ns2" or "ns3". The run is stopped after ``timeout`` seconds; the default is
    ``packets.engine.patience``. Raises ``FieldError`` for an unknown engine, or if the simulator
    lacks a feature of the scenario, and ``EngineMissing`` if it is not installed.
    """
    rules.Choice(ENGINES).check(engine, "engine")
    from vegasmodel.packets import ns2_trace

    with progress.series(f"running {engine}"):
        return ns2_trace.record(scenario, engine=engine, timeout=timeout)


def run_often(scenario: Scenario, runs: int | None) -> Scenario:
    """A copy of the scenario that asks for ``runs`` runs; unchanged if ``runs`` is ``None``.

    Raises ``FieldError`` if ``runs`` is out of range.
    """
    if runs is None:
        return scenario
    checked.of(Run, "runs").check(runs, "runs")
    return scenario.replace({"run.runs": runs})


def find(scenario: Scenario, trace: str | Path | Trace | None, timeout: float | None) -> Prediction:
    """The measurement of a scenario: a trace if one is given, else stored results, else a run.

    Without a trace and stored results, ns-2 is run, with the time limit ``timeout``
    (``run_engine``). Raises the same errors as ``compare``.
    """
    if trace is not None:
        return of_trace(read(trace), trace, scenario)
    from vegasmodel.packets import reference

    stored = reference.lookup(scenario)
    if stored is not None:
        return stored
    traces, damaged = reference.traces(scenario)
    try:
        if traces:
            found = _from_traces(traces, scenario)
        else:
            found = run_engine(_with_several_runs(scenario), timeout=timeout)
    except FieldError as error:  # ns-2 lacks a feature of the scenario
        raise MeasurementError(error) from None
    if not damaged:
        return found
    detail = f"{', '.join(damaged)} cannot be read and may be of this scenario"
    assumption = Assumption("stored-runs-intact", False, detail)
    return replace(found, assumptions=(*found.assumptions, assumption))


def _with_several_runs(scenario: Scenario) -> Scenario:
    """The scenario with ``MIN_RUNS`` runs, if runs are random and the scenario gives no number.

    A single run would not show how much the throughputs differ from run to run.
    """
    chance = scenario.by_chance or scenario.random_arrivals
    return run_often(scenario, MIN_RUNS if chance and scenario.run.runs is None else None)


def stored_elsewhere(scenario: Scenario) -> bool:
    """Whether ``compare`` would use a stored measurement that ns-2 did not make.

    The user cannot choose the number of runs of such a measurement.
    """
    from vegasmodel.packets import reference

    stored = reference.lookup(scenario)
    if stored is not None:
        return stored.model not in ENGINES
    return bool(reference.traces(scenario)[0])


def expect_trace(trace: object) -> None:
    """Raise ``FieldError`` unless the argument is a trace or the name of a file."""
    from vegasmodel.packets.trace import Trace

    if not isinstance(trace, (str, os.PathLike, Trace)):
        allowed = (
            "a Trace, which packets.trace.make makes of arrays, or the name of a trace file, such "
            "as a CSV table that DataFrame.to_csv wrote"
        )
        raise FieldError("trace", type(trace).__name__, allowed)


def read(trace: str | Path | Trace) -> Trace:
    """The argument itself if it is a trace; if it is the name of a file, the trace in this file."""
    from vegasmodel import packets

    return packets.read(trace) if isinstance(trace, (str, os.PathLike)) else trace


def of_trace(trace: Trace, path: str | Path | Trace, scenario: Scenario) -> Prediction:
    """The averages over a trace of the scenario, as a ``Prediction``.

    Raises ``FieldError`` if a link of the trace carried more than its capacity in the scenario,
    because the trace must then be of another scenario.  The error names ``path``, the argument that
    the user gave for the trace.
    """
    from vegasmodel.packets import measured

    result = measured.to_prediction(trace, scenario)
    load = result.utilization
    highest = 0.0 if load is None else float(np.nanmax(load, initial=0.0))
    if highest > OVERLOAD:
        carried = f"this one has {highest:.3g} times what its link can carry"
        sizes = [each.detail for each in result.assumptions if each.name == "packet-size"]
        if sizes:
            # the packets of the trace have another size than the scenario's packet_size; a capacity
            # in pkt/s may have been meant in packets of the trace
            carried += f"; packet_size may be wrong if the capacity is in pkt/s: {sizes[0]}"
        shown = str(path) if isinstance(path, (str, os.PathLike)) else type(path).__name__
        raise FieldError("trace", shown, f"a trace of this scenario; {carried}")
    return result


def _from_traces(traces: list[tuple[str, Trace]], scenario: Scenario) -> Prediction:
    """The measurement that a stored trace of this scenario gives.

    If ``traces`` has several, the first one is used. The assumption ``one-stored-trace`` then says
    that there are several.
    """
    from vegasmodel.packets import measured

    result = measured.to_prediction(traces[0][1], scenario)
    if len(traces) == 1:
        return result
    names = ", ".join(name for name, _ in traces)
    several = Assumption("one-stored-trace", False, f"{names} are all of this scenario")
    return replace(result, assumptions=(*result.assumptions, several))


def has_least_rtts(measured: Prediction) -> bool:
    """Whether the measurement's baseRTTs are least RTTs of flows, and not Vegas's own baseRTTs.

    Only the Linux kernel reports Vegas's own baseRTT.
    """
    return measured.model in ENGINES or measured.extra.get("base_rtt") == "least RTT"


def with_enough_runs(measured: Prediction) -> Prediction:
    """Add the assumption ``enough-runs`` to a measurement by ns-2 or ns-3; return the result.

    Any other measurement is returned unchanged. The assumption says that more runs would hardly
    change the measured throughputs.
    """
    if measured.model not in ENGINES or measured.throughput is None:
        return measured
    assumption = _enough_runs(measured.scenario, measured.throughput, measured.throughput_se)
    return replace(measured, assumptions=(*measured.assumptions, assumption))


def _enough_runs(scenario: Scenario, mean: Floats, error: Floats | None) -> Assumption:
    """The assumption ``enough-runs``: that more runs would hardly change the measured throughputs.

    ``mean`` and ``error`` [flows] are the throughputs and their standard errors. The assumption
    holds if no random numbers affect the runs. Otherwise the standard errors over several runs
    decide; after a single run it is not known whether the assumption holds.
    """
    if not scenario.by_chance and not scenario.random_arrivals:
        return Assumption("enough-runs", True, "chance has no part, so all runs are the same")
    if scenario.run.times == 1 or error is None:
        detail = (
            "one run, in which chance has a part; five runs (`--runs 5`, or `runs = 5` in the "
            "file) show how much runs differ"
        )
        return Assumption("enough-runs", None, detail)
    return of_means(scenario, mean, error, scenario.run.times)
