"""The command line: reads arguments, calls the package, prints.  No science here.

Data goes to standard output, everything else to standard error.  Exit statuses: ``exits``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from vegasmodel.command_line import closed_forms, inputs, scenario_files, stability, study
from vegasmodel.command_line.inputs import File, Json, Laws
from vegasmodel.support import exits, extras, progress
from vegasmodel.support.exits import Shortfall

if TYPE_CHECKING:
    from vegasmodel.prediction import Prediction
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.uncertainty import Uncertainty

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Plot = Annotated[Path | None, typer.Option("--plot", help="Write a picture (.png, .svg or .pdf).")]
PerFlow = Annotated[bool, typer.Option("--flows", help="A row for every flow.")]
Uncertain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=ERROR",
        help="Standard deviation of rtt, capacity, over_estimate or a field: rtt=5%, "
        "flow.reno.rtt=2ms.",
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(help="Stop a simulator's run after this time. Default: 20 times the usual."),
]


def _version(asked: bool) -> None:
    if asked:
        from vegasmodel import __version__

        typer.echo(f"vegasmodel {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """How TCP Vegas and its rivals share a bottleneck: predicted, simulated, measured."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def ratio(
    flows: Annotated[
        list[str],
        typer.Argument(metavar="LAW[:KEY=VALUE,...]...", help="vegas:alpha=3,beta=3 reno ..."),
    ],
    capacity: Annotated[str, typer.Option(help='Bottleneck: "1080pkt/s", "1.5 Mbit/s".')],
    rtt: Annotated[str, typer.Option(help="Round-trip time with empty queues.")] = "80ms",
    buffer: Annotated[str, typer.Option(help="Packets that can wait at the link.")] = "inf",
    packet_size: Annotated[str, typer.Option(help="Data packet, headers included.")] = "1000 B",
    loss: Annotated[str, typer.Option(help="Random loss of data packets, probability.")] = "0",
    uncertain: Uncertain = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Throughput ratios that each applicable closed form predicts.  No file needed.

    Example: vegasmodel ratio --capacity 1080pkt/s --rtt 60ms --buffer 20pkt vegas:alpha=3,beta=3
    reno
    """
    from vegasmodel.command_line.flowspec import scenario_from_options
    from vegasmodel.predictor import CLOSED_FORMS, predict_all

    _check_picture(plot)
    scenario = scenario_from_options(
        flows, capacity=capacity, rtt=rtt, buffer=buffer, packet_size=packet_size, loss=loss
    )
    results = predict_all(scenario, CLOSED_FORMS)
    results = [p for p in results if p.applicable] or results  # all reasons, or none
    hint = "A simulator may; it takes a scenario file: vegasmodel predict FILE --model rounds"
    _show(scenario, results, json=json, plot=plot, hint=hint, uncertain=uncertain)


@app.command()
def predict(
    scenario: File,
    model: Annotated[
        str | None,
        typer.Option(help="A model's name, or all. Default: every closed form, no simulator."),
    ] = None,
    uncertain: Uncertain = None,
    laws: Laws = None,
    json: Json = False,
    plot: Plot = None,
    flows: PerFlow = False,
) -> None:
    """What the models say of a scenario file, and which of their assumptions it breaks.

    Example: vegasmodel predict mixed.toml --model minicycle
    """
    from vegasmodel.predictor import SIMULATED, choose, predict_all
    from vegasmodel.predictor import predict as one

    _check_picture(plot)
    names = choose(model)
    case = inputs.load(scenario, laws)
    with progress.shown():
        results = predict_all(case, names) if len(names) > 1 else [one(case, *names)]
    if len(names) > 1 and not json:
        # all reasons, or none but that of a model that could be installed
        results = [p for p in results if p.applicable or "missing" in p.extra] or results
    hint = "" if set(names) & set(SIMULATED) else "A simulator may: --model rounds"
    _show(case, results, json=json, plot=plot, flows=flows, hint=hint, uncertain=uncertain)


@app.command()
def simulate(
    scenario: File,
    out: Annotated[
        Path | None, typer.Option(help="Write the trajectories as a trace (.parquet).")
    ] = None,
    plot: Plot = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Instants, evenly over the duration. Default: 2001, or for a plot two in each of "
            "the shortest round trips."
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="rounds, fluid, or delayed: fluid with feedback a round trip late."),
    ] = "rounds",
    laws: Laws = None,
    json: Json = False,
) -> None:
    """Trajectories: windows, rates, RTTs and queues over time.

    Example: vegasmodel simulate mixed.toml --plot windows.png
    """
    from vegasmodel import console, simulation, trajectories
    from vegasmodel.fields.rules import Choice, Integer
    from vegasmodel.fields.units import FieldError
    from vegasmodel.simulation import SIMULATORS

    _check_picture(plot)
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
def measure(
    scenario: File,
    engine: Annotated[str, typer.Option(help="Packet-level simulator: ns2 or ns3.")] = "ns2",
    out: Annotated[
        Path | None, typer.Option(help="Write the first run over time as a trace (.parquet).")
    ] = None,
    timeout: Timeout = None,
    laws: Laws = None,
    json: Json = False,
    plot: Plot = None,
    flows: PerFlow = True,
) -> None:
    """Run the packet-level simulator and report what it measured.

    Example: vegasmodel measure mixed.toml --out mixed.parquet
    """
    from vegasmodel.comparison import record_engine, run_engine
    from vegasmodel.console import output_path

    _check_picture(plot)
    most = _seconds(timeout)
    if out is not None:
        output_path(out, "--out", (".parquet",))
    case = inputs.load(scenario, laws)
    if out is not None:
        record_engine(case, engine, most).write(out)
    _show(case, [run_engine(case, engine, most)], json=json, plot=plot, flows=flows)


@app.command()
def compare(
    scenario: File,
    trace: Annotated[Path | None, typer.Option(help="Compare with this trace.")] = None,
    max_error: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 if the best model's throughput NRMSE is larger (0.05: 5 %)."
        ),
    ] = None,
    timeout: Timeout = None,
    laws: Laws = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """All models beside a measurement: their errors and the assumptions that break.

    The measurement is the given trace, else the stored run of this very scenario, else ns-2.
    With a trace the file may leave out capacity, rtt, buffer and alpha: they are estimated.

    Example: vegasmodel compare mixed.toml
    """
    from vegasmodel import comparison, console
    from vegasmodel.fields import toml_file
    from vegasmodel.fields.units import FieldError

    if max_error is not None and not max_error >= 0:
        raise FieldError("--max-error", max_error, "a number, at least 0")
    _check_picture(plot)
    most = _seconds(timeout)
    inputs.register(laws)
    with progress.shown():
        result = comparison.compare(toml_file.read(scenario), trace=trace, timeout=most)
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
def convert(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="ns-2, ns-3, pcap, ss, iperf3, tcp_probe, CSV.")
    ],
    out: Annotated[Path, typer.Option(help="Trace file to write (.parquet).")],
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option(help="Found by content unless it is named here.")
    ] = "auto",
    json: Json = False,
) -> None:
    """Read a packet trace of any known format into a trace file.

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
def paper(
    key: Annotated[
        str | None, typer.Argument(help="tsang, boutremans, evaluation, devendictis, podlesny.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Run ns-2 again.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a report: print, models and packets side by side; minutes."),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="Only look up what the records call printed in the texts there (.txt)."),
    ] = None,
    draw: Annotated[
        int | None, typer.Option(help="Print so many records whole, drawn by --seed, to be read.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of --draw.")] = 1,
    json: Json = False,
) -> None:
    """Print what the papers print beside what we compute, with a verdict each.

    Exit status 1 if an item is discrepant: computed honestly, and it differs.

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


app.command()(scenario_files.new)
app.command()(scenario_files.inspect)
app.command()(scenario_files.explain)
app.command()(closed_forms.equilibrium)
app.command()(closed_forms.arrivals)
app.command()(closed_forms.rd)
app.command()(study.design)
app.command()(study.sweep)
app.command()(study.basins)
app.command()(stability.stability)
app.command("map")(study.draw_map)


def _seconds(timeout: str | None) -> float | None:
    """``--timeout``."""
    from vegasmodel.fields.units import parse

    return None if timeout is None else parse(timeout, "time", field="--timeout", low_open=True)


def _check_picture(path: Path | None) -> None:
    """Before any work: a picture can be written there."""
    if path is not None:
        from vegasmodel.console import output_path

        extras.need("plot", "--plot")
        output_path(path, "--plot", (".png", ".svg", ".pdf"))


def _show(
    scenario: Scenario,
    results: Sequence[Prediction],
    *,
    json: bool,
    plot: Path | None,
    flows: bool = False,
    hint: str = "",
    uncertain: Sequence[str] | None = None,
) -> None:
    from vegasmodel import console

    doubts = _doubts(scenario, results, uncertain or ())
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
    """What errors of fields do to the ratios, for each closed form that answers."""
    if not uncertain:
        return []
    from vegasmodel.fields.units import FieldError
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
    """Run a command and leave with its status, whatever goes wrong."""
    exits.main(run)


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit status of a command line; every expected failure is one line."""
    try:
        status: Any = app(args=arguments, prog_name="vegasmodel", standalone_mode=False)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return exits.status_of(error)
    return status if isinstance(status, int) else 0
