"""Runs the command ``map``, which draws how throughputs depend on two fields of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from vegasmodel.command_line import inputs


def _maps(_: click.Context) -> Iterable[str]:
    """The names of the maps, which the tab key offers."""
    from vegasmodel.study.maps import MAPS

    return MAPS


@click.command("map")
@click.argument("name", metavar="MAP", shell_complete=inputs.offer(_maps))
@click.option(
    "--out", type=inputs.FILE, required=True, help="Picture to write (.png, .svg or .pdf)."
)
@inputs.as_json
def draw_map(
    name: str,
    out: Path,
    json: bool,
) -> None:
    """Draw a map: how throughputs depend on two keys of a scenario.

    The colours show a share or a ratio of throughputs.  MAP is the map's name: starvation,
    buffer-alpha, rtt-bias or linux-order.  A printed paragraph says what the map shows and how to
    read it.  For the map "starvation" the command also runs ns-2.  For a map of your own scenario,
    use the command sweep with --over twice, and --plot.

    Example: vegasmodel map buffer-alpha --out map.png
    """
    import time

    import numpy as np

    from vegasmodel.report import console
    from vegasmodel.study.maps import find
    from vegasmodel.study.meter import meter
    from vegasmodel.support import extras

    extras.need("plot", "map")
    console.output_path(out, "--out", (".png", ".svg", ".pdf"))
    chosen = find(name)
    began = time.monotonic()
    with meter() as report:
        panels = [panel.values(report) for panel in chosen.panels]
    from vegasmodel import plots

    titles, across = zip(*((each.title, each.across) for each in chosen.panels), strict=True)
    drawn = plots.heat(panels, titles, across, title=chosen.title, shown=chosen.shown, up=chosen.up)
    plots.save(drawn, out)
    ends = [
        [float(np.nanmin(panel)), float(np.nanmax(panel)), int(np.isnan(panel).sum())]
        for panel in panels
    ]
    if json:
        console.print_json(
            {
                "map": name,
                "out": str(out),
                "shown": chosen.shown,
                "panels": [
                    {
                        "title": panel.title,
                        "model": panel.model,
                        "over": list(panel.over),
                        "least": low,
                        "greatest": high,
                        "without_answer": gaps,
                    }
                    for panel, (low, high, gaps) in zip(chosen.panels, ends, strict=True)
                ],
                "reading": chosen.reading,
                "seconds": time.monotonic() - began,
            }
        )
        return
    lines = [
        f"{panel.title}: {chosen.shown} {low:.3g} to {high:.3g}"
        + (f"; {gaps} points without an answer." if gaps else ".")
        for panel, (low, high, gaps) in zip(chosen.panels, ends, strict=True)
    ]
    text = [f"{out} is written: {chosen.title}.", *lines, *chosen.reading.split("\n\n")]
    console.paragraphs(text, first=True)
