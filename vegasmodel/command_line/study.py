"""The commands that ask a scenario many questions: ``design``, ``sweep``, ``basins``, ``map``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vegasmodel.command_line import inputs
from vegasmodel.command_line.inputs import File, Json, Laws
from vegasmodel.fields.units import FieldError
from vegasmodel.support import progress

if TYPE_CHECKING:
    from vegasmodel.scenario import Scenario
    from vegasmodel.study.basins import Basins, Outcome

Model = Annotated[str, typer.Option(help="A model of predict, or ns2.")]


def design(
    scenario: File,
    solve: Annotated[
        str, typer.Option(help="A field: link.buffer, flow.NAME.alpha, link.queue.k, ...")
    ],
    target: Annotated[
        str,
        typer.Option(
            "--for",
            help="ratio:a/b=1, share:GROUP=0.3, jain=0.95, delay=20ms or utilization=0.95.",
        ),
    ],
    model: Model = "rounds",
    verify: Annotated[
        list[str] | None,
        typer.Option(help="Also run ns2, or another model, on each solution. 'none': nothing."),
    ] = None,
    between: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH", help="Where to look. Default: as is usual.")
    ] = None,
    within: Annotated[
        str, typer.Option(help="How near the nearest value must come where none meets the target.")
    ] = "5 %",
    laws: Laws = None,
    json: Json = False,
) -> None:
    """The value of a field with which a model meets a target: inverse problems.

    Each solution of another model is verified by rounds.

    Example: vegasmodel design mixed.toml --solve link.buffer --for share:vegas=0.3 --verify ns2
    """
    from vegasmodel import console
    from vegasmodel.fields.units import parse
    from vegasmodel.study.design import design as solve_for

    near = parse(within, "fraction", field="--within", high=0.5)
    case = inputs.load(scenario, laws)
    others = [] if verify == ["none"] else ["rounds", *(verify or [])]
    ends = None if between is None else _ends(between, solve, case)
    with progress.shown():
        found = solve_for(case, solve, target, model, between=ends, verify=others, within=near)
    if json:
        console.print_json({"scenario": case.name, **found.to_json()})
        return
    rows = [
        [
            f"{each.value:.6g} {each.unit}".strip(),
            console.number(each.achieved, 6),
            *(console.number(each.verified[name], 6) for name in each.verified),
        ]
        for each in found.solutions
    ]
    if rows:
        by = list(found.solutions[0].verified)
        console.console().print(console.table([found.field, model, *by], rows, found.target))
    said = [f"{each.value:.6g} {each.unit}: {each.note}." for each in found.solutions if each.note]
    said += [f"No value is found: {found.reason}."] if found.reason else []
    console.paragraphs([*said, *(f"{note}." for note in found.notes)])


def _ends(text: str, solve: str, scenario: Scenario) -> tuple[float, float]:
    from vegasmodel.study import fields

    low, colon, high = text.partition(":")
    if not colon:
        raise FieldError("--between", text, "LOW:HIGH, such as 5pkt:100pkt")
    field = fields.find(scenario, solve)
    return float(field.read(low, scenario)), float(field.read(high, scenario))


def sweep(
    scenario: File,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="FIELD=VALUES", help="START:STOP:STEP, a,b,c or, with --draw, LOW..HIGH."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Zarr folder; if it is there, go on with it.")],
    model: Model = "rounds",
    draw: Annotated[
        int | None, typer.Option(help="So many points at random, uniform in the ranges.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random points.")] = 1,
    engine: Annotated[str, typer.Option(help="local, or dask: a cluster computes.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="tcp://... of a Dask cluster. Default: a local one.")
    ] = None,
    laws: Laws = None,
    json: Json = False,
) -> None:
    """A map: any model over a grid of fields, into a labelled Zarr folder (xarray.open_zarr).

    After a kill the same command goes on where it stopped.  A point without an answer is flagged
    in the variable status.

    Example: vegasmodel sweep mixed.toml --over link.buffer=5:60:5 --over flow.rtt=20ms:200ms:20ms
    --model minicycle --out map.zarr
    """
    import os
    import time

    from vegasmodel import console
    from vegasmodel.study.meter import meter
    from vegasmodel.study.points import STATUS
    from vegasmodel.study.sweep import sweep as over_grid

    began = time.monotonic()
    case = inputs.load(scenario, laws)
    first: list[int] = []  # points that were there already

    with meter() as said:

        def progress(done: int, total: int) -> None:
            first.append(done)
            said(done, total)

        data = over_grid(
            case, over, model, out, draw=draw, seed=seed, engine=engine, scheduler=scheduler,
            processes=os.cpu_count() or 1, progress=progress,
        )  # fmt: skip
    seconds = time.monotonic() - began
    status = data["status"].values
    counts = {word: int((status == code).sum()) for code, word in enumerate(STATUS)}
    dims = {str(name): int(size) for name, size in data["status"].sizes.items()}
    if json:
        console.print_json(
            {
                "scenario": case.name,
                "model": model,
                "out": str(out),
                "dims": dims,
                "points": int(status.size),
                "computed": int(status.size) - first[0],
                "status": counts,
                "seconds": seconds,
            }
        )
        return
    sizes = " x ".join(f"{name} {size}" for name, size in dims.items())
    bad = ", ".join(f"{n} {word}" for word, n in counts.items() if n and word != STATUS[0])
    there = f", {first[0]} of them there already" if first[0] else ""
    console.paragraphs(
        [
            f"{out}: {status.size} points ({sizes}){there}; {seconds:.1f} s."
            + (f" {bad}." if bad else "")
        ]
    )


def basins(
    scenario: File,
    model: Model = "rounds",
    starts: Annotated[int, typer.Option(help="How many starts are drawn.")] = 200,
    phase: Annotated[
        str | None,
        typer.Option(help="Each flow starts later by up to this. Default: the longest RTT."),
    ] = None,
    windows: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="First windows; 0..0: the scenario's own."),
    ] = None,
    order: Annotated[bool, typer.Option(help="The flows exchange their start times.")] = False,
    tolerance: Annotated[
        str, typer.Option(help="Throughputs that differ by no more are one outcome.")
    ] = "5 %",
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 1,
    against: Annotated[
        str | None, typer.Option(help="The same starts by another model, or by ns2.")
    ] = None,
    laws: Laws = None,
    json: Json = False,
) -> None:
    """The outcomes that a scenario can have, and the share of starts that lead to each.

    Example: vegasmodel basins band.toml --starts 200 --windows 1..30 --against ns2
    """
    from vegasmodel import console
    from vegasmodel.fields.units import parse
    from vegasmodel.study import basins as study
    from vegasmodel.study.agreement import agreement

    case = inputs.load(scenario, laws)
    models = [model] if against is None else [model, against]
    near = parse(tolerance, "fraction", field="--tolerance", high=1.0)
    wait = None if phase is None else parse(phase, "time", field="--phase")
    first = None if windows is None else _whole_range(windows)
    with progress.shown():
        found = [
            study.basins(
                case, each, starts=starts, seed=seed, phase=wait, windows=first, order=order,
                tolerance=near,
            )
            for each in models
        ]  # fmt: skip
    same = agreement(found[0], found[-1])
    if json:
        document = found[0].to_json()
        document["sets"] = [answer.to_json() for answer, _ in study.sets(case)]
        if against is not None:
            document["against"] = {**found[-1].to_json(), "agreement": same.to_json()}
        console.print_json(document)
        return
    for each in found:
        _show_outcomes(each)
    lines = [f"No answer: {reason}." for each in found for reason in each.reasons[:3]]
    for answer, ends in study.sets(case):
        spans = [
            f"{name} {low:.4g}..{high:.4g}"
            for name, (low, high) in zip(answer.names, ends, strict=True)
        ]
        lines.append(f"The set by {answer.model}, pkt/s: {', '.join(spans[:8])}.")
    if against is not None:
        lines.append(
            f"Shares of starts by {model} and {against}: chi-squared {same.statistic:.4g}, "
            f"{same.freedom} degrees of freedom, p = {same.p:.3g}; {100 * same.alike:.3g} % of the "
            "starts lead to the same outcome by both."
        )
    console.paragraphs(lines)


def _show_outcomes(found: Basins, most: int = 12, flows: int = 3) -> None:
    from vegasmodel import console

    def span(outcome: Outcome, i: int) -> str:
        return f"{outcome.throughput[i]:.4g} ({outcome.low[i]:.4g}..{outcome.high[i]:.4g})"

    names = [member.name for member in found.scenario.members][:flows]
    rows = [
        [f"{100 * each.share:.3g} +- {100 * each.share_se:.2g} %"]
        + [span(each, i) for i in range(len(names))]
        for each in found.outcomes[:most]
    ]
    said = f"{found.model}: {found.answered} starts, {len(found.outcomes)} outcomes, pkt/s"
    console.console().print(console.table(["of the starts", *names], rows, said))


def _whole_range(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not (dots and low.strip().isdecimal() and high.strip().isdecimal()):
        raise FieldError("--windows", text, "LOW..HIGH, whole packets, such as 1..30")
    return int(low), int(high)


def draw_map(
    name: Annotated[str, typer.Argument(help="starvation, buffer-alpha, rtt-bias or linux-order.")],
    out: Annotated[Path, typer.Option(help="The picture (.png, .svg or .pdf).")],
    json: Json = False,
) -> None:
    """A ready map: a question of two fields, as a picture, with how to read it.

    The map starvation runs ns-2.

    Example: vegasmodel map buffer-alpha --out map.png
    """
    import time

    import numpy as np

    from vegasmodel import console
    from vegasmodel.study.maps import find
    from vegasmodel.study.meter import meter
    from vegasmodel.support import extras

    extras.need("plot", "map")
    console.output_path(out, "--out", (".png", ".svg", ".pdf"))
    chosen = find(name)
    began = time.monotonic()
    with meter() as said:
        panels = [panel.values(said) for panel in chosen.panels]
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
    console.paragraphs([f"{out}: {chosen.title}.", *lines, chosen.reading])
