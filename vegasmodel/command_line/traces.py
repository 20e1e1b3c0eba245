"""The commands that can write traces: ``simulate`` and ``convert``.

``simulate`` runs a simulator. ``convert`` reads a trace in any known format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs
from vegasmodel.fields.units import FieldError
from vegasmodel.support import progress
from vegasmodel.support.exits import Shortfall

if TYPE_CHECKING:
    import xarray as xr

    from vegasmodel.scenario import Scenario


@click.command()
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
    if data.attrs["status"] != "done":
        if json:  # null for each figure
            console.print_trajectories(data.where(False), json=True)
        raise Shortfall(_ended_early(case, data))
    if out is not None:
        trajectories.to_trace(data).write(out)
    if plot is not None:
        from vegasmodel import plots

        plots.save(plots.windows(data), plot)
    console.print_trajectories(data, json=json)


def _ended_early(scenario: Scenario, data: xr.Dataset) -> str:
    """One line that says how the simulation failed, with the buffers and the largest window."""
    largest = data["window"].max("time")  # NaN, where the run did not arrive, does not count
    flow = largest.fillna(0.0).idxmax("flow").item()
    buffers = ", ".join(f"{link.name} {link.buffer:g} packets" for link in scenario.links[:3])
    return (
        f"the simulation ended early: {data.attrs['status']}; buffer of {buffers}; largest window "
        f"{largest.max().item():.0f} packets, of {flow}; a smaller buffer or a max_window helps"
    )


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
