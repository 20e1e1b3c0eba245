"""Runs the commands that can write traces: ``simulate`` and ``convert``.

``simulate`` runs a simulator, and can write the windows, rates and queues over time as a trace.
``convert`` reads a trace in any known format, and writes it in the format of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.units import format_time
from vegasmodel.support.exits import Shortfall
from vegasmodel.support.json_numbers import finite

if TYPE_CHECKING:
    import xarray as xr

    from vegasmodel.scenario import Scenario


def _simulators(_: click.Context) -> tuple[str, ...]:
    """The names of the simulators, which the tab key offers."""
    from vegasmodel.simulation import SIMULATORS

    return SIMULATORS


@click.command()
@inputs.scenario
@click.option("--out", type=inputs.FILE, help="Write the trajectories as a trace (.parquet).")
@inputs.plot
@click.option(
    "--samples",
    type=inputs.WHOLE,
    help="Instants, evenly over the duration. Default: 2001, or for a plot two in each of the "
    "shortest round trips.",
)
@click.option(
    "--model",
    default="rounds",
    shell_complete=inputs.offer(_simulators),
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

    No command finds the steady state itself, a fixed point or a cycle.  In Python there is
    vegasmodel.limit_cycle for it.

    Example: vegasmodel simulate mixed.toml --plot windows.png
    """
    from vegasmodel import simulation
    from vegasmodel.fields.rules import Choice, Integer
    from vegasmodel.packets import trajectories
    from vegasmodel.report import console
    from vegasmodel.simulation import SIMULATORS

    inputs.check_picture(plot)
    Choice(SIMULATORS).check(model, "--model")
    if samples is not None:
        Integer(2, 1_000_000).check(samples, "--samples")
    if out is not None:
        console.output_path(out, "--out", (".parquet",))
    case = inputs.load(scenario, laws)
    if samples is None:
        default_samples = simulation.USUAL_SAMPLES
        samples = default_samples if plot is None else simulation.samples_for_cycles(case)
    try:
        data = simulation.simulate(case, model, samples=samples)
    except ValueError as error:
        if isinstance(error, FieldError):
            raise FieldError(str(scenario), case.name, str(error)) from None
        wrong = f"has no answer for {scenario}"
        raise FieldError("--model", model, str(error), wrong=wrong) from None
    if data.attrs["status"] != "done":
        if json:
            # the JSON object has its usual keys: ``where(False)`` makes each number NaN, so null
            _print(data.where(False), [], json=True)
        raise Shortfall(_ended_early(case, data))
    if out is not None:
        trajectories.to_trace(data).write(out)
    if plot is not None:
        from vegasmodel import plots

        plots.save(plots.windows(data), plot)
    _print(data, _not_held(data), json=json)
    if not json:
        console.written(out, plot)


def _not_held(data: xr.Dataset) -> list[str]:
    """A sentence for each assumption of the simulator that does not hold in the scenario."""
    if not data.attrs["left_out"]:
        return []
    names, reasons = data.attrs["left_out"].split(", "), data.attrs["left_out_reasons"].split("\n")
    return [
        f"{data.attrs['model']}: {name} does not hold{f': {why}' if why else ''}."
        for name, why in zip(names, reasons, strict=True)
    ]


def _ended_early(scenario: Scenario, data: xr.Dataset) -> str:
    """One line that says how the simulation failed, with the buffers and the largest window."""
    # ``max`` ignores the NaN at times after the run ended
    largest = data["window"].max("time")
    flow = largest.fillna(0.0).idxmax("flow").item()
    buffers = ", ".join(f"{link.name} {link.buffer:g} packets" for link in scenario.links[:3])
    return (
        f"the simulation ended early: {data.attrs['status']}; buffer of {buffers}; largest window "
        f"{largest.max().item():.0f} packets, of {flow}; a smaller buffer or a max_window helps"
    )


def _print(data: xr.Dataset, not_held: Sequence[str], *, json: bool) -> None:
    """Print means over the second half of a simulation, as a table or, with ``json``, as JSON.

    These are the mean window, rate and RTT of each flow, and the mean queue of each link. The
    sentences ``not_held`` are about the simulator's assumptions that do not hold. They are printed
    below the table; in JSON the names of these assumptions are in ``provenance``.
    """
    from vegasmodel.report import console

    half = data.isel(time=slice(data.sizes["time"] // 2, None))
    means = half.mean("time", skipna=True)
    flows: list[dict[str, Any]] = [
        {
            "name": str(name),
            "window_pkt": finite(means["window"].values[i]),
            "rate_pps": finite(means["rate"].values[i]),
            "rtt_s": finite(means["rtt"].values[i]),
        }
        for i, name in enumerate(data["flow"].values)
    ]
    links: list[dict[str, Any]] = [
        {"name": str(name), "queue_pkt": finite(means["queue"].values[i])}
        for i, name in enumerate(data["link"].values)
    ]
    if json:
        attrs = {key: value for key, value in data.attrs.items() if key != "scenario"}
        scenario = data.attrs["scenario"]
        console.print_json(
            {"scenario": scenario, "provenance": attrs, "flows": flows, "links": links}
        )
        return
    rows = [
        [
            str(f["name"]),
            console.number(f["window_pkt"]),
            console.number(f["rate_pps"]),
            format_time(f["rtt_s"]),
        ]
        for f in flows
    ]
    out = console.console()
    title = f"Second half of one run by {data.attrs['model']}"
    out.print(console.stacked(["flow", "window pkt", "pkt/s", "RTT"], rows, title))
    console.paragraphs(
        [f"Queue at {x['name']}: {console.number(x['queue_pkt'])} packets." for x in links]
    )
    console.paragraphs(not_held)


@click.command()
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
    """Convert a trace of any known format to a trace file.

    TRACE may be output of ns-2, ns-3, ss, iperf3 or tcp_probe, a capture (pcap) or a CSV table.

    Example: vegasmodel convert out.tr --out out.parquet
    """
    from vegasmodel import packets
    from vegasmodel.report import console

    console.output_path(out, "--out", (".parquet",))
    result = packets.read(trace, format)
    result.write(out)
    summary = {"flows": result.flows, "links": result.links, "bins": len(result.edges) - 1}
    if json:
        console.print_json({"trace": str(out), **summary})
    else:
        names = ", ".join(result.flows[:8]) + (" ..." if len(result.flows) > 8 else "")
        text = f"{len(result.flows)} flows ({names}), {summary['bins']} time bins."
        console.paragraphs([text], first=True)
        console.written(out)
