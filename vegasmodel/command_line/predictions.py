"""Runs the commands ``ratio``, ``predict``, ``measure`` and ``compare``.

- ``ratio`` prints ratios of throughputs that the models predict. It needs no scenario file.
- ``predict`` prints the models' predictions for a scenario file.
- ``measure`` prints what a packet-level simulator measures.
- ``compare`` prints predictions beside a measurement.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs
from vegasmodel.command_line.uncertain import (
    check_errors,
    print_uncertainty,
    read_errors,
    uncertainties,
)
from vegasmodel.fields.errors import FieldError
from vegasmodel.support.exits import Shortfall

if TYPE_CHECKING:
    from vegasmodel.results.prediction import Prediction
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.requirements import Verdict
    from vegasmodel.study.targets import Target


def _laws(_: click.Context) -> tuple[str, ...]:
    """The names of all laws, which the tab key offers."""
    from vegasmodel import laws

    return laws.names()


@click.command()
@click.argument(
    "flows",
    nargs=-1,
    required=True,
    metavar="LAW[:KEY=VALUE,...]...",
    shell_complete=inputs.offer(_laws),
)
@inputs.capacity
@click.option("--rtt", default="80ms", help="Round-trip time with empty queues.")
@click.option("--buffer", default="inf", help="Packets that can wait at the link.")
@inputs.packet_size
@click.option("--loss", default="0", help="Probability that a data packet is lost at random.")
@inputs.of_models
@inputs.uncertain
@inputs.laws
@inputs.as_json
@inputs.plot
def ratio(
    flows: tuple[str, ...],
    capacity: str,
    rtt: str,
    buffer: str,
    packet_size: str,
    loss: str,
    model: tuple[str, ...],
    uncertain: tuple[str, ...],
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
) -> None:
    """Throughput ratios of flows, without a scenario file.

    The flows share one link.  By default every closed form that can be evaluated gives its ratios;
    --model chooses other models.  A flow is written as LAW[:KEY=VALUE,...].

    Example: vegasmodel ratio --capacity 1080pkt/s --rtt 60ms --buffer 20pkt vegas:alpha=3,beta=3
    reno
    """
    from vegasmodel.command_line.flowspec import scenario_from_options
    from vegasmodel.predictor import choose

    inputs.check_picture(plot)
    names = choose(model)
    errors = read_errors(uncertain, names)
    inputs.register(laws)
    scenario = scenario_from_options(
        flows, capacity=capacity, rtt=rtt, buffer=buffer, packet_size=packet_size, loss=loss
    )
    check_errors(scenario, errors)
    every = _predictions(scenario, names)
    results = _worth_showing(every, model)  # in the JSON document too
    hint = _hint(scenario, results)
    _show(scenario, results, json=json, plot=plot, hint=hint, errors=errors)
    _tell_of_simulators(results, asked=bool(model) or json)
    if not json:
        _tell_why(every, results, model)


@click.command()
@inputs.scenario
@inputs.of_models
@inputs.runs
@inputs.uncertain
@click.option(
    "--require",
    multiple=True,
    metavar="BOUND",
    help="Exit with 1 if a model's prediction misses this bound, in the words of `design --for`: "
    "'share:vegas>=0.25', 'delay<=20ms'. May be repeated.",
)
@inputs.laws
@inputs.as_json
@inputs.plot
@inputs.per_flow
def predict(
    scenario: Path,
    model: tuple[str, ...],
    runs: int | None,
    uncertain: tuple[str, ...],
    require: tuple[str, ...],
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
    flows: bool,
) -> None:
    """What the models predict for a scenario file.

    Each prediction names those of the model's assumptions that the scenario does not meet.

    Example: vegasmodel predict mixed.toml --model minicycle
    """
    from vegasmodel.measurement import run_often
    from vegasmodel.predictor import choose

    inputs.check_picture(plot)
    names = choose(model)
    errors = read_errors(uncertain, names)
    case = run_often(inputs.load(scenario, laws), runs)
    check_errors(case, errors)
    bounds = _bounds(require, case)
    every = _predictions(case, names)
    results = every if json else _worth_showing(every, model)
    hint = _hint(case, results)
    verdicts = _verdicts(bounds, case, results)
    _show(
        case,
        results,
        json=json,
        plot=plot,
        flows=flows,
        hint=hint,
        errors=errors,
        verdicts=verdicts,
    )
    _tell_of_simulators(results, asked=bool(model) or json)
    if not json:
        _tell_why(every, results, model)
    _fall_short(verdicts)


@click.command()
@inputs.scenario
@inputs.engine
@click.option("--out", type=inputs.FILE, help="Write a trace of the first run (.parquet).")
@inputs.engine_runs
@inputs.timeout
@inputs.laws
@inputs.as_json
@inputs.plot
def measure(
    scenario: Path,
    engine: str,
    out: Path | None,
    runs: int | None,
    timeout: str | None,
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
) -> None:
    """Run a packet-level simulator and report what it measured.

    Example: vegasmodel measure mixed.toml --out mixed.parquet
    """
    from vegasmodel.fields import toml_file
    from vegasmodel.measurement import record_engine, run_engine, run_often, with_enough_runs
    from vegasmodel.report.console import output_path, written

    inputs.check_picture(plot)
    longest = _seconds(timeout)
    if out is not None:
        output_path(out, "--out", (".parquet",))
    case = run_often(inputs.load(scenario, laws), runs)
    with toml_file.keys_of(scenario, ("link", "flow", "run")):
        if out is not None:
            record_engine(case, engine, longest).write(out)
        measured = with_enough_runs(run_engine(case, engine, longest))
    _show(case, [measured], json=json, plot=plot, flows=True)
    if out is not None and not json:
        written(out)


@click.command()
@inputs.scenario
@click.option("--trace", type=inputs.FILE, help="Compare with this trace.")
@click.option(
    "--model",
    multiple=True,
    shell_complete=inputs.offer(lambda context: [*inputs.models(context), "all"]),
    help="A model's name, or all; may be repeated. Default: all.",
)
@click.option(
    "--max-error",
    metavar="FRACTION",
    help="Exit with 1 if the best model's throughput NRMSE is larger (0.05 or 5%).",
)
@inputs.engine_runs
@inputs.timeout
@inputs.laws
@inputs.as_json
@inputs.plot
def compare(
    scenario: Path,
    trace: Path | None,
    model: tuple[str, ...],
    max_error: str | None,
    runs: int | None,
    timeout: str | None,
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
) -> None:
    """Compare models, by default all of them, with a measurement.

    Prints each model's results and errors.  The measurement is the given trace.  Without a trace it
    is the stored run of exactly this scenario, or else a new run of ns-2.  With a trace, the file
    may leave out capacity, rtt, buffer and alpha; they are then estimated from the trace.

    Example: vegasmodel compare mixed.toml
    """
    from vegasmodel import comparison
    from vegasmodel.fields import toml_file
    from vegasmodel.measurement import MeasurementError
    from vegasmodel.predictor import choose
    from vegasmodel.report import console

    names = choose(model or ("all",))
    limit = None if max_error is None else _limit(max_error)
    inputs.check_picture(plot)
    longest = _seconds(timeout)
    inputs.register(laws)
    with inputs.no_trace(scenario):
        table = toml_file.read(scenario)
    with toml_file.keys_of(scenario, {*table, "link", "flow", "run"}):
        try:
            result = comparison.compare(table, trace, names, longest, runs=runs)
        except MeasurementError as error:
            raise MeasurementError(error.lacks, "--trace FILE") from None
    if json:
        console.print_json(result.to_json())
    else:
        result.print_table()
    if plot is not None:
        result.plot(plot)
        if not json:
            console.written(plot)
    if limit is not None:
        best_error = result.best_error()
        if best_error is None or best_error > limit:
            best = (
                "no error is known" if best_error is None else f"the best errs by {best_error:.2g}"
            )
            raise Shortfall(f"no model is within --max-error {limit:g}; {best}")


def _bounds(texts: Sequence[str], scenario: Scenario) -> list[Target]:
    """The bounds that the option --require states, such as ``share:vegas>=0.3``.

    They are read before the models run, so that a mistake in them is reported at once.
    """
    if not texts:
        return []
    from vegasmodel.study import requirements

    try:
        return [requirements.read(text, scenario) for text in texts]
    except FieldError as error:
        raise error.of("--require") from None


def _verdicts(
    bounds: Sequence[Target], scenario: Scenario, results: Sequence[Prediction]
) -> list[tuple[Target, list[Verdict]]]:
    """For each bound of --require, whether each prediction meets it."""
    if not bounds:
        return []
    from vegasmodel.study.requirements import checked

    return [(bound, checked(bound, scenario, results)) for bound in bounds]


def _fall_short(verdicts: Sequence[tuple[Target, list[Verdict]]]) -> None:
    """Raise ``Shortfall`` if a bound of --require is missed."""
    if verdicts:
        from vegasmodel.study.requirements import missed

        if lines := [
            line for bound_and_verdicts in verdicts if (line := missed(*bound_and_verdicts))
        ]:
            raise Shortfall("; ".join(lines))


def _predictions(scenario: Scenario, names: Sequence[str]) -> list[Prediction]:
    """The predictions of the models ``names``.

    If a model cannot predict the throughputs, its ``Prediction`` gives the reason instead. One
    reason is that the model needs an optional package that is not installed. But if ``names`` has
    only one model, ``ExtraMissing`` is raised for this reason.
    """
    from vegasmodel.predictor import predict, predict_all

    return predict_all(scenario, names) if len(names) > 1 else [predict(scenario, *names)]


def _worth_showing(results: list[Prediction], asked: Sequence[str]) -> list[Prediction]:
    """The predictions out of ``results`` that a command prints in its tables.

    If the user asked for models by name (``asked``), all are printed.  By default and for ``all``,
    those with throughputs are printed.  Two kinds are printed even without throughputs, so that the
    user reads the reason: predictions of simulators, and of models whose optional package is not
    installed.  If no prediction is left by these rules, all are printed.
    """
    from vegasmodel.predictor import SIMULATED

    if asked and "all" not in asked:
        return results
    shown = [p.applicable or p.model in SIMULATED or "missing" in p.extra for p in results]
    return list(itertools.compress(results, shown)) or results


def _hint(scenario: Scenario, results: Sequence[Prediction]) -> str:
    """A sentence for a scenario without predictions: it names simulators that can simulate it.

    It names them as options, such as ``--model rounds``.  It is empty if one of ``results`` has
    throughputs, or if there is no simulator besides those in ``results``.  It is also empty if a
    congestion control law that the user wrote has failed, because this law would fail in every
    simulator.
    """
    failed = any((result.reason or "").startswith("law ") for result in results)
    if failed or any(result.applicable for result in results):
        return ""
    from vegasmodel.predictor import able

    asked = {result.model for result in results}
    others = [f"--model {name}" for name in able(scenario) if name not in asked]
    return f"Others can: {', '.join(others)}." if others else ""


def _tell_of_simulators(results: Sequence[Prediction], *, asked: bool) -> None:
    """Print how to add the simulators to the closed forms, which are the default.

    Nothing is printed if the user chose models or a JSON document (``asked``).  Nothing is printed
    either if no closed form has throughputs, because ``_hint`` has then named the simulators.
    """
    from vegasmodel.predictor import SIMULATED
    from vegasmodel.report import console

    if not asked and any(result.applicable for result in results):
        simulators = " and ".join(SIMULATED)
        console.paragraphs([f"Closed forms only; --model all adds the simulators {simulators}."])


def _tell_why(
    every: Sequence[Prediction], shown: Sequence[Prediction], asked: Sequence[str]
) -> None:
    """Print why the predictions out of ``every`` that are not ``shown`` have no throughputs.

    There is one line for each reason. Nothing is printed unless the user ``asked`` for all models.
    """
    from vegasmodel.report import console
    from vegasmodel.report.notes import notes

    if "all" in asked:
        console.paragraphs(notes([each for each in every if each not in shown]))


def _limit(text: str) -> float:
    """Read the option ``--max-error``: a part of 1, or percent."""
    from vegasmodel.fields.units import parse

    try:
        return parse(text, "fraction", field="--max-error")
    except FieldError:
        message = 'a fraction such as 0.05 or "5 %", at least 0'
        raise FieldError("--max-error", text, message) from None


def _seconds(timeout: str | None) -> float | None:
    """Read the option ``--timeout``; return it in seconds, or ``None`` if it is not given."""
    from vegasmodel.fields.units import parse

    return None if timeout is None else parse(timeout, "time", field="--timeout", low_open=True)


def _show(
    scenario: Scenario,
    results: Sequence[Prediction],
    *,
    json: bool,
    plot: Path | None,
    flows: bool = False,
    hint: str = "",
    errors: Mapping[str, str] | None = None,
    verdicts: Sequence[tuple[Target, list[Verdict]]] = (),
) -> None:
    """Print the results of a command as tables, or as one JSON document if ``json`` is true.

    ``plot`` is the file for a picture. With ``flows``, the tables have a row for every flow.
    ``hint`` is printed if no result has throughputs. ``errors`` has the standard deviations of
    uncertain fields. For them the output has the standard deviations (sd) of throughput ratios.
    ``verdicts`` says which predictions meet the bounds of --require.
    """
    from vegasmodel.report import console, tables

    found = uncertainties(scenario, results, errors) if errors else []
    if plot is not None:
        from vegasmodel import plots

        if not any(each.applicable for each in results):
            why = "; ".join(f"{each.model}: {each.reason}" for each in results[:3])
            raise FieldError("--plot", str(plot), f"a picture needs an answer ({why})")
        plots.save(plots.throughput_bars(scenario, results), plot)
    warnings = dict.fromkeys(note for bound, _ in verdicts for note in bound.notes(scenario))
    if json:
        document = tables.results_json(scenario, results)
        if errors:
            document["uncertainty"] = [each.to_json() for each in found]
        if verdicts:
            document["requirements"] = [
                verdict.to_json() for _, each in verdicts for verdict in each
            ]
        if warnings:
            document["notes"] = [*document.get("notes", ()), *warnings]
        console.print_json(document)
        return
    tables.print_results(scenario, results, per_flow=flows, hint=hint)
    not_missed = [verdict for _, each in verdicts for verdict in each if verdict.met is not False]
    texts = [
        f"{verdict.bound} is {'met' if verdict.met else 'not known'}: {verdict}."
        for verdict in not_missed
    ]
    console.paragraphs([*texts, *(f"{note}." for note in warnings)])
    for one in found:
        print_uncertainty(one)
    console.written(plot)
