"""The main commands: they read arguments, call the package and print results.

Data goes to standard output, everything else to standard error.  ``support.exits`` lists the exit
statuses.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import shell_complete

from vegasmodel.command_line import (
    closed_forms,
    inputs,
    scenario_files,
    shell,
    stability,
    study,
)
from vegasmodel.fields.units import FieldError
from vegasmodel.support import exits, extras, progress
from vegasmodel.support.exits import Shortfall

if TYPE_CHECKING:
    from vegasmodel.prediction import Prediction
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.uncertainty import Uncertainty


NAME = "vegasmodel"


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from vegasmodel import __version__

        click.echo(f"vegasmodel {__version__}")
        context.exit()


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--version", is_flag=True, callback=_version, is_eager=True, expose_value=False,
              help="Print the version.")  # fmt: skip
@click.pass_context
def app(context: click.Context) -> None:
    """How TCP Vegas and its rivals share a bottleneck: predicted, simulated, measured."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@app.command()
@click.argument("flows", nargs=-1, required=True, metavar="LAW[:KEY=VALUE,...]...")
@inputs.capacity
@click.option("--rtt", default="80ms", help="Round-trip time with empty queues.")
@click.option("--buffer", default="inf", help="Packets that can wait at the link.")
@inputs.packet_size
@click.option("--loss", default="0", help="Probability that a data packet is lost at random.")
@inputs.of_models
@inputs.uncertain
@inputs.as_json
@inputs.plot
def ratio(
    flows: tuple[str, ...],
    capacity: str,
    rtt: str,
    buffer: str,
    packet_size: str,
    loss: str,
    model: str | None,
    uncertain: tuple[str, ...],
    json: bool,
    plot: Path | None,
) -> None:
    """Throughput ratios of flows, without a scenario file.

    By default every closed form that applies gives its ratios; --model chooses other models.  A
    flow is written as LAW[:KEY=VALUE,...].

    Example: vegasmodel ratio --capacity 1080pkt/s --rtt 60ms --buffer 20pkt vegas:alpha=3,beta=3
    reno
    """
    from vegasmodel.command_line.flowspec import scenario_from_options
    from vegasmodel.predictor import choose

    inputs.check_picture(plot)
    names = choose(model)
    scenario = scenario_from_options(
        flows, capacity=capacity, rtt=rtt, buffer=buffer, packet_size=packet_size, loss=loss
    )
    results = _asked(scenario, names)
    results = _worth_showing(results, names)  # in the JSON document too
    _show(scenario, results, json=json, plot=plot, hint=_hint(names), uncertain=uncertain)


@app.command()
@inputs.scenario
@inputs.of_models
@inputs.uncertain
@inputs.laws
@inputs.as_json
@inputs.plot
@inputs.per_flow
def predict(
    scenario: Path,
    model: str | None,
    uncertain: tuple[str, ...],
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
    flows: bool,
) -> None:
    """What the models predict for a scenario file.

    Each prediction names the assumptions that the scenario breaks.

    Example: vegasmodel predict mixed.toml --model minicycle
    """
    from vegasmodel.predictor import choose

    inputs.check_picture(plot)
    names = choose(model)
    case = inputs.load(scenario, laws)
    results = _asked(case, names)
    if not json:
        results = _worth_showing(results, names)
    hint = _hint(names)
    _show(case, results, json=json, plot=plot, flows=flows, hint=hint, uncertain=uncertain)


def _asked(scenario: Scenario, names: Sequence[str]) -> list[Prediction]:
    """The predictions of the models ``names``.

    If ``names`` has one model, its errors are raised.  If ``names`` has several, a model without an
    answer gives a prediction that says why.
    """
    from vegasmodel.predictor import predict, predict_all

    with progress.shown():
        return predict_all(scenario, names) if len(names) > 1 else [predict(scenario, *names)]


def _worth_showing(results: list[Prediction], names: Sequence[str]) -> list[Prediction]:
    """The predictions to print: of several models, those with an answer.

    Two kinds of model are kept even without an answer, because it is useful to read why they have
    none: simulators, and models whose extra is not installed.  If nothing would be left, all
    predictions are kept.
    """
    from vegasmodel.predictor import SIMULATED

    kept = [p.applicable or p.model in SIMULATED or "missing" in p.extra for p in results]
    return (list(itertools.compress(results, kept)) or results) if len(names) > 1 else results


def _hint(names: Sequence[str]) -> str:
    from vegasmodel.predictor import SIMULATED

    return "" if set(names) & set(SIMULATED) else "A simulator may: --model rounds"


@app.command()
@inputs.scenario
@click.option("--out", type=inputs.FILE, help="Write the trajectories as a trace (.parquet).")
@inputs.plot
@click.option(
    "--samples",
    type=int,
    help="Instants, evenly over the duration. Default: 2001, or for a plot two in each of the "
    "shortest round trips.",
)
@click.option(
    "--model",
    default="rounds",
    help="rounds, fluid, or delayed (fluid, with feedback one round trip late).",
)
@inputs.laws
@inputs.as_json
def simulate(
    scenario: Path,
    out: Path | None,
    plot: Path | None,
    samples: int | None,
    model: str,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Trajectories: windows, rates, RTTs and queues over time.

    Example: vegasmodel simulate mixed.toml --plot windows.png
    """
    from vegasmodel import console, simulation, trajectories
    from vegasmodel.fields.rules import Choice, Integer
    from vegasmodel.simulation import SIMULATORS

    inputs.check_picture(plot)
    Choice(SIMULATORS).check(model, "--model")
    if samples is not None:
        Integer(2, 1_000_000).check(samples, "--samples")
    if out is not None:
        console.output_path(out, "--out", (".parquet",))
    case = inputs.load(scenario, laws)
    if samples is None:
        samples = 2001 if plot is None else simulation.samples_for_cycles(case)
    try:
        with progress.shown():
            data = simulation.simulate(case, model, samples=samples)
    except ValueError as error:
        raise FieldError(str(scenario), case.name, str(error)) from None
    if out is not None:
        trajectories.to_trace(data).write(out)
    if plot is not None:
        from vegasmodel import plots

        plots.save(plots.windows(data), plot)
    console.print_trajectories(data, json=json)
    if data.attrs["status"] != "done":
        raise Shortfall(f"the simulation ended early: {data.attrs['status']}")


@app.command()
@inputs.scenario
@click.option("--engine", default="ns2", help="Packet-level simulator: ns2 or ns3.")
@click.option("--out", type=inputs.FILE, help="Write a trace of the first run (.parquet).")
@inputs.runs
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
    """Run the packet-level simulator and report what it measured.

    Example: vegasmodel measure mixed.toml --out mixed.parquet
    """
    from vegasmodel.comparison import record_engine, run_engine, run_often
    from vegasmodel.console import output_path

    inputs.check_picture(plot)
    most = _seconds(timeout)
    if out is not None:
        output_path(out, "--out", (".parquet",))
    case = run_often(inputs.load(scenario, laws), runs)
    if out is not None:
        record_engine(case, engine, most).write(out)
    _show(case, [run_engine(case, engine, most)], json=json, plot=plot, flows=True)


@app.command()
@inputs.scenario
@click.option("--trace", type=inputs.FILE, help="Compare with this trace.")
@click.option(
    "--max-error",
    type=float,
    help="Exit with 1 if the best model's throughput NRMSE is larger (0.05: 5 %).",
)
@inputs.runs
@inputs.timeout
@inputs.laws
@inputs.as_json
@inputs.plot
def compare(
    scenario: Path,
    trace: Path | None,
    max_error: float | None,
    runs: int | None,
    timeout: str | None,
    laws: tuple[Path, ...],
    json: bool,
    plot: Path | None,
) -> None:
    """All models beside a measurement, with their errors.

    The measurement is the given trace.  Without one it is the stored run of exactly this scenario,
    or else a new run of ns-2.  With a trace, the file may leave out capacity, rtt, buffer and
    alpha; they are then estimated from the trace.

    Example: vegasmodel compare mixed.toml
    """
    from vegasmodel import comparison, console
    from vegasmodel.fields import toml_file

    if max_error is not None and not max_error >= 0:
        raise FieldError("--max-error", max_error, "a number, at least 0")
    inputs.check_picture(plot)
    most = _seconds(timeout)
    inputs.register(laws)
    with progress.shown():
        result = comparison.compare(toml_file.read(scenario), trace=trace, timeout=most, runs=runs)
    if json:
        console.print_json(result.to_json())
    else:
        result.print_table()
    if plot is not None:
        result.plot(plot)
    if max_error is not None:
        worst = result.best_error()
        if worst is None or worst > max_error:
            raise Shortfall(
                f"no model is within --max-error {max_error:g}; the best errs by {worst}"
            )


@app.command()
@click.argument("trace", metavar="TRACE", type=inputs.FILE)
@click.option("--out", type=inputs.FILE, required=True, help="Trace file to write (.parquet).")
@inputs.trace_format
@inputs.as_json
def convert(
    trace: Path,
    out: Path,
    format: str,  # noqa: A002 - the option's name
    json: bool,
) -> None:
    """Read a packet trace of any known format into a trace file.

    TRACE may be output of ns-2, ns-3, ss, iperf3 or tcp_probe, a capture (pcap) or a CSV table.

    Example: vegasmodel convert out.tr --out out.parquet
    """
    from vegasmodel import console, packets

    console.output_path(out, "--out", (".parquet",))
    result = packets.read(trace, format)
    result.write(out)
    summary = {"flows": result.flows, "links": result.links, "bins": len(result.edges) - 1}
    if json:
        console.print_json({"trace": str(out), **summary})
    else:
        names = ", ".join(result.flows[:8]) + (" ..." if len(result.flows) > 8 else "")
        console.paragraphs([f"{len(result.flows)} flows ({names}), {summary['bins']} time bins."])


@app.command()
@click.argument("key", required=False, metavar="[PAPER]")
@click.option("--live", is_flag=True, help="Run ns-2 instead of using stored runs.")
@click.option(
    "--html",
    type=inputs.FILE,
    help="Write a report of printed, computed and simulated values; takes minutes.",
)
@click.option(
    "--texts",
    type=inputs.FILE,
    help="Only look up the printed values in this folder of the papers' texts (.txt).",
)
@click.option(
    "--draw",
    type=int,
    help="Print this many items in full, drawn with --seed, for a reader to check.",
)
@click.option("--seed", type=int, default=1, help="Seed of --draw.")
@inputs.as_json
def paper(
    key: str | None,
    live: bool,
    html: Path | None,
    texts: Path | None,
    draw: int | None,
    seed: int,
    json: bool,
) -> None:
    """The papers' printed values beside computed ones.

    Each item has a verdict.  PAPER is tsang, boutremans, evaluation, devendictis or podlesny;
    without it, all five are checked.

    The exit status is 1 if some item is "discrepant": its computed value differs from the printed
    one, and no printing error explains it.

    Example: vegasmodel paper devendictis --html devendictis.html
    """
    extras.need_papers("paper")
    import paper_checks
    from vegasmodel import console
    from vegasmodel.fields.rules import Choice

    if key is not None:
        Choice(paper_checks.PAPERS).check(key, "paper")
    papers = paper_checks.PAPERS if key is None else (key,)
    if texts is not None:
        from paper_checks import texts as look_up

        look_up.show(texts, papers, json)
        return
    if draw is not None:
        from paper_checks import reading

        reading.show(papers, draw, seed, json)
        return
    if html is None:
        checks = paper_checks.run(papers, live=live)
    else:
        extras.need("report", "--html")
        console.output_path(html, "--html", (".html",))
        from paper_checks import report

        checks = report.write(html, papers, live)
    rows = [check.to_json() for check in checks]
    if json:
        console.print_json({"checks": rows})
    else:
        console.print_checks(rows)
    short = sum(row["verdict"] == "discrepant" for row in rows)
    if short:
        raise Shortfall(f"{short} of {len(rows)} items are discrepant")


for command in (
    scenario_files.new,
    scenario_files.inspect,
    scenario_files.explain,
    closed_forms.equilibrium,
    closed_forms.arrivals,
    closed_forms.rd,
    study.design,
    study.sweep,
    study.basins,
    stability.stability,
    study.draw_map,
    shell.completion,
):
    app.add_command(command)


def _seconds(timeout: str | None) -> float | None:
    """The value of ``--timeout`` in seconds."""
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
    uncertain: Sequence[str] = (),
) -> None:
    from vegasmodel import console

    doubts = _doubts(scenario, results, uncertain)
    if plot is not None:
        from vegasmodel import plots

        plots.save(plots.throughput_bars(scenario, results), plot)
    if json:
        more = {"uncertainty": [each.to_json() for each in doubts]} if uncertain else {}
        console.print_json({**console.results_json(scenario, results), **more})
        return
    console.print_results(scenario, results, per_flow=flows, hint=hint)
    for each in doubts:
        rows = [
            [
                name,
                console.number(value),
                console.number(sd),
                console.number(100.0 * sd / value if value else None, 3),
            ]
            for name, (value, sd) in each.ratios.items()
        ]
        console.console().print(console.table([each.model, "ratio", "sd", "sd, %"], rows))
        if not each.smooth:
            console.paragraphs([f"{each.model} has a corner at these values: the sd is rough."])


def _doubts(
    scenario: Scenario, results: Sequence[Prediction], uncertain: Sequence[str]
) -> list[Uncertainty]:
    """The uncertainty of the throughput ratios, for each closed form that has an answer.

    ``uncertain``: how uncertain fields of the scenario are, as texts ``FIELD=ERROR``.
    """
    if not uncertain:
        return []
    from vegasmodel.predictor import CLOSED_FORMS
    from vegasmodel.study.uncertainty import uncertainty

    errors = {}
    for text in uncertain:
        name, equals, error = text.partition("=")
        if not equals:
            raise FieldError("--uncertain", text, "FIELD=ERROR, such as rtt=5%")
        errors[name] = error
    answering = [p.model for p in results if p.applicable and p.model in CLOSED_FORMS]
    return [uncertainty(scenario, model, errors) for model in answering]


def main() -> NoReturn:
    """Run a command and exit with its status, whatever goes wrong."""
    exits.main(run)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; an expected failure prints one line."""
    try:
        if asked := os.environ.get(shell.ASKS):
            return shell_complete(app, {}, NAME, shell.ASKS, asked)
        given = sys.argv[1:] if arguments is None else arguments
        with app.make_context(NAME, list(given)) as context:
            _invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return exits.status_of(error)
    return exits.DONE


def _invoke(context: click.Context) -> None:
    """Run the command.  An error that names an argument of Python then names the option instead."""
    try:
        app.invoke(context)
    except FieldError as error:
        name, comma, rest = error.field.partition(",")
        command = app.commands[str(context.invoked_subcommand)]
        options = {each.name: each for each in command.params if isinstance(each, click.Option)}
        if name not in options:
            raise
        raise error.of(f"{options[name].opts[0]}{comma}{rest}") from None
