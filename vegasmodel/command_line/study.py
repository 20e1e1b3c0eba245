"""The commands ``design``, ``sweep``, ``basins`` and ``map``, for many variants of a scenario.

``design`` finds the value of a field that meets a target. ``sweep`` makes predictions for many
values of some fields, ``basins`` for many random starts. ``map`` draws a ready-made picture.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vegasmodel.command_line import inputs, not_held
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import FieldError, format_time
from vegasmodel.metrics import ENOUGH_PRECISION

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

    from vegasmodel.scenario import Scenario
    from vegasmodel.study.basins import Basins, Outcome

MAX_POINTS_SHOWN = 30  # points of a sweep whose shares are printed
MAX_FLOWS_SHOWN = 5  # flows with a column in that table
MAX_REASONS = 3  # of missing answers
TOO_MANY_POINTS = f"No table is printed for more than {MAX_POINTS_SHOWN} points"
UNSURE = (
    ": the 95 % interval of a flow's mean throughput is wider than 10 % to either side.  "
    "The variable uncertainty tells how wide; a larger run.runs makes it narrower."
)


@click.command()
@inputs.scenario
@click.option(
    "--solve",
    required=True,
    shell_complete=inputs.offer(inputs.fields),
    help="Field to find: link.buffer, flow.NAME.alpha, link.queue.k, ...",
)
@click.option(
    "target",
    "--for",
    required=True,
    help="ratio:a/b=1, share:GROUP=0.3, jain=0.95, delay=20ms or utilization=0.95. "
    "Of several groups, or of all flows of a law: share:A+B=0.3, share:law:LAW=0.3. "
    "Of another link than the first: delay:LINK=20ms, utilization:LINK=0.95.",
)
@inputs.model
@click.option(
    "--verify",
    multiple=True,
    help="Also check each solution with a model, ns2 or ns3; none: not even by rounds.",
)
@click.option(
    "--between", metavar="LOW:HIGH", help="Range of the search. Default: the field's usual range."
)
@click.option(
    "--within",
    default="5 %",
    help="If no value meets the target exactly: the greatest relative error of a solution.",
)
@inputs.laws
@inputs.as_json
def design(
    scenario: Path,
    solve: str,
    target: str,
    model: str,
    verify: tuple[str, ...],
    between: str | None,
    within: str,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Find the value of a field that meets a target.

    A model's predictions decide which values meet the target.  The simulator called rounds then
    checks each solution, unless rounds is the model itself.

    Example: vegasmodel design mixed.toml --solve link.buffer --for share:vegas=0.3 --verify ns2
    """
    from vegasmodel import console
    from vegasmodel.fields.units import parse
    from vegasmodel.study.design import design as solve_for

    near = parse(within, "fraction", field="--within", high=0.5)
    case = inputs.load(scenario, laws)
    others = [] if verify == ("none",) else ["rounds", *verify]
    ends = None if between is None else _ends(between, solve, case)
    found = solve_for(case, solve, target, model, between=ends, verify=others, within=near)
    if json:
        console.print_json({"scenario": case.name, **found.to_json()})
        return
    rows = [
        [
            f"{each.value:.6g} {each.unit}".strip(),
            _with_error(each.achieved, each.achieved_se, found.target_unit),
            *(
                _with_error(each.verified[name], each.verified_se[name], found.target_unit)
                for name in each.verified
            ),
        ]
        for each in found.solutions
    ]
    if rows:
        by = list(found.solutions[0].verified)
        console.console().print(console.stacked([found.field, model, *by], rows, found.target))
    said = [f"{each.value:.6g} {each.unit}: {each.note}." for each in found.solutions if each.note]
    said += [f"No value is found: {found.reason}."] if found.reason else []
    if any(each.achieved_se or any(each.verified_se.values()) for each in found.solutions):
        said.append(console.PLUS_MINUS)
    said += [f"{note}." for note in found.notes]
    if found.solutions:
        low, high = (f"{end:.6g} {found.solutions[0].unit}".strip() for end in found.scanned)
        said.append(
            f"{model} was asked at {found.tried} values of {solve} from {low} to {high}.  Between "
            "them the search may miss solutions; --between LOW:HIGH searches a narrower range."
        )
    console.paragraphs(said)


def _with_error(figure: float | None, error: float | None, unit: str) -> str:
    from vegasmodel import console

    if figure is not None and unit == "s":
        return format_time(figure)  # a delay; it has no standard error
    shown = console.number(figure, 6)
    return f"{shown} ± {console.number(error, 2)}" if error else shown


def _ends(text: str, solve: str, scenario: Scenario) -> tuple[float, float]:
    from vegasmodel.study import fields

    low, colon, high = text.partition(":")
    if not colon:
        raise FieldError("--between", text, "LOW:HIGH, such as 5pkt:100pkt")
    field = fields.find(scenario, solve, "solve")
    try:
        return float(field.read(low, scenario)), float(field.read(high, scenario))
    except FieldError as error:
        raise error.of("--between") from None


@click.command()
@inputs.scenario
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="FIELD=VALUES",
    shell_complete=inputs.offer(lambda context: [f"{name}=" for name in inputs.fields(context)]),
    help="START:STOP:STEP, a,b,c or, with --draw, LOW..HIGH.",
)
@click.option(
    "--out", type=inputs.FILE, required=True, help="Zarr folder; a sweep in it is continued."
)
@inputs.model
@click.option("--draw", type=int, help="Number of random points, uniform in the ranges.")
@click.option("--seed", type=int, default=1, help="Seed of the random points.")
@click.option(
    "--engine",
    default="local",
    shell_complete=inputs.offer(lambda _: ("local", "dask")),
    help="local, or dask to compute on a cluster.",
)
@click.option("--scheduler", help="Address tcp://... of a Dask cluster. Default: a local cluster.")
@inputs.plot
@click.option("--map-of", metavar="GROUP", help="Group of the map of --plot. Default: the first.")
@inputs.laws
@inputs.as_json
def sweep(
    scenario: Path,
    over: tuple[str, ...],
    out: Path,
    model: str,
    draw: int | None,
    seed: int,
    engine: str,
    scheduler: str | None,
    plot: Path | None,
    map_of: str | None,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Run a model over a grid of fields' values.

    The results are written to a Zarr folder. xarray.open_zarr reads it, with labels and units.  If
    the command is interrupted, the same command continues where it stopped.  The variable status of
    the results marks points without an answer.  A share is a part of all bytes delivered.  With one
    field, --plot draws a line for each flow's share.  With two, it draws a map of the share of the
    first group, or of the group that --map-of names.

    Example: vegasmodel sweep mixed.toml --over link.buffer=5:60:5 --over flow.rtt=20ms:200ms:20ms
    --model minicycle --out map.zarr
    """
    import os
    import time

    from vegasmodel import console
    from vegasmodel.study.meter import meter
    from vegasmodel.study.not_held import counted
    from vegasmodel.study.points import STATUS
    from vegasmodel.study.sweep import sweep as over_grid

    inputs.check_picture(plot)
    if plot is not None and (draw is not None or len(over) > 2):
        raise FieldError("--plot", str(plot), "a sweep of one or two fields, without --draw")
    began = time.monotonic()
    case = inputs.load(scenario, laws)
    names = [group.name for group in case.flows]
    if map_of is not None and (plot is None or len(over) != 2 or map_of not in names):
        allowed = f"with --plot and two fields, one of {', '.join(names)}"
        raise FieldError("--map-of", map_of, f"{allowed}{nearest(map_of, names)}")
    first: list[int] = []  # numbers of points done; the first is that of an earlier sweep

    with meter() as said:

        def progress(done: int, total: int) -> None:
            first.append(done)
            said(done, total)

        data = over_grid(
            case, over, model, out, draw=draw, seed=seed, engine=engine, scheduler=scheduler,
            processes=os.cpu_count() or 1, progress=progress,
        )  # fmt: skip
    seconds = time.monotonic() - began
    if plot is not None:
        from vegasmodel import plots

        plots.save(plots.sweep(data, map_of), plot)
    status = data["status"].values
    counts = {word: int((status == code).sum()) for code, word in enumerate(STATUS)}
    dims = {str(name): int(size) for name, size in data["status"].sizes.items()}
    unsure = int((data["uncertainty"].values > ENOUGH_PRECISION).sum())
    broken = counted(data["broken"].values.flat)
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
                "too_few_runs": unsure,
                "broken": broken,
                "seconds": seconds,
            }
        )
        return
    broken.pop("enough-runs", None)  # it has a mark and a line of its own
    marks = None
    left: list[str] = []  # sentences on what the table leaves out
    few = status.size <= MAX_POINTS_SHOWN
    star = " (*)" if few else ""  # the mark in the table
    at = "point" if unsure == 1 else "points"
    if few:
        marks = not_held.letters(broken)
        grid, left = _points(data, [text.partition("=")[0] for text in over], marks, case, out)
        console.console().print(grid)
    sizes = " x ".join(f"{name} {size}" for name, size in dims.items())
    bad = "".join(f" {n} of them: {word}." for word, n in counts.items() if n and word != STATUS[0])
    there = f", {first[0]} of them there already" if first[0] else ""
    console.paragraphs(
        [
            *left,
            f"{out}: {status.size} points ({sizes}){there}; {seconds:.1f} s.{bad}",
            *([] if few else [f"{TOO_MANY_POINTS}; {out} has their results."]),
            *_reasons(data),
            *([f"enough-runs does not hold at {unsure} {at}{star}{UNSURE}"] if unsure else []),
            *not_held.said(broken, f"{counts[STATUS[0]]} points with an answer", marks),
        ]
    )


def _reasons(data: xr.Dataset) -> list[str]:
    """The most frequent reasons for missing answers in a sweep, a sentence for each."""
    found = Counter(str(said) for said in data["reason"].values.flat if said)
    lines = [
        f"No answer at {n} {'point' if n == 1 else 'points'}: {said}."
        for said, n in found.most_common(MAX_REASONS)
    ]
    more = len(found) - len(lines)
    left = f"{more} more {'reason is' if more == 1 else 'reasons are'} in the variable reason."
    return [*lines, left] if more else lines


def _points(
    data: xr.Dataset,
    fields: Sequence[str],
    marks: Mapping[str, str],
    scenario: Scenario,
    out: Path,
) -> tuple[Table, list[str]]:
    """A table with a row for each point of a sweep, and sentences on its columns.

    A row has the values of the fields, and the flows' shares of all bytes delivered. If not all
    flows fit the table, and some are of one group, the columns are the groups. At most the first
    ``MAX_FLOWS_SHOWN`` are shown, and only as many as fit the terminal. The shares of a point have
    a star if too few runs were averaged there: the 95 % interval of some flow's mean throughput is
    wider than 10 % of the mean (``ENOUGH_PRECISION``) to either side.

    ``marks`` has a letter for each assumption that does not hold somewhere.  The column ``broken``
    has the letters of those that do not hold at a point; without letters there is no such column.
    """
    flows = [str(name) for name in data["flow"].values]
    grid, more = _shares(data, fields, marks, [(name, [i]) for i, name in enumerate(flows)])
    if not more or len(flows) == len(scenario.flows):
        return grid, _left_out(more, f"{out} has all")
    groups: list[tuple[str, list[int]]] = []
    for g, group in enumerate(scenario.flows):
        places = [i for i, member in enumerate(scenario.members) if member.group == g]
        name = f"{group.name} ({group.count})" if group.count > 1 else group.name
        groups.append((name, places))
    grid, more = _shares(data, fields, marks, groups)
    together = f"NAME (N) is a group of N flows; its share is that of all of them.  {out} has each."
    return grid, [together, *_left_out(more, f"{out} has all", "group")]


def _shares(
    data: xr.Dataset,
    fields: Sequence[str],
    marks: Mapping[str, str],
    columns: Sequence[tuple[str, list[int]]],
) -> tuple[Table, int]:
    """The table of ``_points`` with these columns, and how many of them it leaves out.

    A column has a name and the numbers of the flows whose shares are added up.
    """
    import numpy as np

    from vegasmodel import console

    dims = data["status"].dims
    units = {name: data[name].attrs.get("units", "") for name in fields}
    rows = []
    for place in np.ndindex(data["status"].shape):
        point = data.isel(dict(zip(dims, place, strict=True)))
        at = {name: point[name].item() for name in fields}
        where = [_value(v, units[n]) for n, v in at.items()]
        shares = [point["share"].values[i].sum() for _, i in columns[:MAX_FLOWS_SHOWN]]
        mark = "*" if point["uncertainty"].item() > ENOUGH_PRECISION else ""
        shown = [f"{100 * x:.1f} %{mark}" if math.isfinite(x) else "-" for x in shares]
        letters = [marks[name] for name in point["broken"].item().split() if name in marks]
        rows.append([*where, *([" ".join(sorted(letters)) or "-"] if marks else []), *shown])
    heads = []
    for name, unit in units.items():
        part, _, key = name.rpartition(".")
        key += f", {unit}" if unit not in ("", "1", "s") else ""
        heads.append(f"{part}.\n{key}" if part else key)
    first = [*heads, "broken"] if marks else heads
    heads = [*first, *(f"{name}\nshare" for name, _ in columns[:MAX_FLOWS_SHOWN])]
    grid, narrow = console.fitting(heads, rows, len(first) + 1)
    return grid, narrow + max(len(columns) - MAX_FLOWS_SHOWN, 0)


def _left_out(number: int, where: str, what: str = "flow") -> list[str]:
    """A sentence on the number of flows or groups that a table leaves out; ``where`` has them."""
    are = f"{what} is" if number == 1 else f"{what}s are"
    return [f"{number} more {are} not in the table; {where}."] if number else []


def _value(value: str | float, unit: str) -> str:
    """The value of a field as text for a table; true and false as in a scenario file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    return format_time(value) if unit == "s" else f"{value:.6g}"


@click.command()
@inputs.scenario
@inputs.model
@click.option("--starts", type=int, default=200, help="Number of random starts.")
@click.option("--phase", help="Longest extra wait before a start. Default: the longest RTT.")
@click.option(
    "--windows",
    metavar="LOW..HIGH",
    help="Range of the first windows; 0..0: the scenario's windows.",
)
@click.option("--order", is_flag=True, help="Also exchange the flows' start times at random.")
@click.option(
    "--tolerance", default="5 %", help="Throughputs that differ by at most this are one outcome."
)
@click.option("--seed", type=int, default=1, help="Seed of the random starts.")
@click.option(
    "--against",
    shell_complete=inputs.offer(
        lambda context: [*inputs.models(context), *inputs.engines(context)]
    ),
    help="Another model, ns2 or ns3, to run from the same starts.",
)
@inputs.laws
@inputs.as_json
def basins(
    scenario: Path,
    model: str,
    starts: int,
    phase: str | None,
    windows: str | None,
    order: bool,
    tolerance: str,
    seed: int,
    against: str | None,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """The possible outcomes of a scenario.

    Simulates the scenario from many random starts (start times and first windows).  Two starts have
    the same outcome if each flow gets nearly the same throughput after both (--tolerance).  For
    each outcome, prints the share of the starts that lead to it, with its standard error and its
    95 % interval (Wilson).

    Example: vegasmodel basins band.toml --starts 200 --windows 1..30 --against ns2
    """
    from vegasmodel import console
    from vegasmodel.fields.units import parse
    from vegasmodel.same_case import other_vegas
    from vegasmodel.study import basins as study
    from vegasmodel.study.agreement import agreement
    from vegasmodel.study.meter import meter
    from vegasmodel.study.models import check_model, ready

    case = inputs.load(scenario, laws)
    models = [model] if against is None else [model, against]
    if against is not None:
        check_model(against, "--against")
    ready(*models)
    near = parse(tolerance, "fraction", field="--tolerance", high=1.0)
    wait = None if phase is None else parse(phase, "time", field="--phase")
    first = None if windows is None else _whole_range(windows)
    with meter(what="starts") as said:
        found: list[Basins] = []

        def progress(done: int, total: int) -> None:
            said(len(found) * total + done, len(models) * total)

        progress(0, starts)
        for each in models:
            outcomes = study.basins(
                case, each, starts=starts, seed=seed, phase=wait, windows=first, order=order,
                tolerance=near, progress=progress,
            )  # fmt: skip
            found.append(outcomes)
    same = agreement(found[0], found[-1])
    if json:
        document = found[0].to_json()
        document["sets"] = [answer.to_json() for answer, _ in study.sets(case)]
        if against is not None:
            document["against"] = {**found[-1].to_json(), "agreement": same.to_json()}
        console.print_json(document)
        return
    for one in found:
        _show_outcomes(one)
    lines = [f"No answer: {reason}." for each in found for reason in each.reasons[:3]]
    for one in found:
        lines += not_held.said(one.broken, f"{one.answered} starts with {one.model}")
    for answer, ends in study.sets(case):
        spans = [
            f"{name} {low:.4g}..{high:.4g}"
            for name, (low, high) in zip(answer.names, ends, strict=True)
        ]
        lines.append(f"The set by {answer.model}, pkt/s: {', '.join(spans[:8])}.")
        if answer.broken:
            names = ", ".join(each.name for each in answer.broken)
            lines.append(f"These assumptions behind the set do not hold: {names}.")
    if against is not None and math.isnan(same.p):
        none = " and ".join(each.model for each in found if not each.answered)
        lines.append(f"Shares of starts are not compared: no answer by {none}.")
    elif against is not None:
        lines.append(
            f"Shares of starts by {model} and {against}: chi-squared {same.statistic:.4g}, "
            f"{same.freedom} degrees of freedom, p = {same.p:.3g}; {100 * same.alike:.3g} % of the "
            "starts lead to the same outcome by both."
        )
    lines += [f"{note}." for note in other_vegas(case, models)]
    console.paragraphs(lines)


def _show_outcomes(found: Basins, most: int = 12, flows: int = 3) -> None:
    from vegasmodel import console

    def span(outcome: Outcome, i: int) -> str:
        return f"{outcome.throughput[i]:.4g} ({outcome.low[i]:.4g}..{outcome.high[i]:.4g})"

    names = [member.name for member in found.scenario.members]
    rows = [
        [
            f"{100 * each.share:.3g} ± {100 * each.share_se:.2g}",
            f"{100 * each.interval[0]:.3g}..{100 * each.interval[1]:.3g}",
        ]
        + [span(each, i) for i in range(len(names[:flows]))]
        for each in found.outcomes[:most]
    ]
    said = f"{found.model}: {found.answered} starts, outcomes: {len(found.outcomes)}, pkt/s"
    heads = ["% of starts", "95 % interval", *names[:flows]]
    grid, narrow = console.fitting(heads, rows, 3, said)
    console.console().print(grid)
    rest = found.outcomes[most:]
    lines = []
    if rest:
        part = 100 * sum(each.share for each in rest)
        lines.append(f"And {len(rest)} more, {part:.3g} % of the starts; --json lists all.")
    lines += _left_out(narrow + len(names[flows:]), "--json lists all")
    console.paragraphs(lines)


def _whole_range(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not (dots and low.strip().isdecimal() and high.strip().isdecimal()):
        raise FieldError("--windows", text, "LOW..HIGH, whole packets, such as 1..30")
    return int(low), int(high)


def _maps(_: click.Context) -> Iterable[str]:
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
    """Draw a ready-made map over two fields of a scenario.

    The map shows a share or a ratio of throughputs.  MAP is starvation, buffer-alpha, rtt-bias or
    linux-order.  A printed paragraph says how to read the picture.  The map starvation runs ns-2.

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
    console.paragraphs([f"{out}: {chosen.title}.", *lines, *chosen.reading.split("\n\n")])
