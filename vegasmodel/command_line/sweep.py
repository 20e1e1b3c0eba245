"""Runs the command ``sweep``: it prints predictions for many values of a scenario's keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vegasmodel.command_line import inputs, not_held, sweep_rows
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import format_time
from vegasmodel.metrics import ENOUGH_PRECISION
from vegasmodel.support.exits import Shortfall

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

    from vegasmodel.scenario import Scenario


MAX_POINTS_SHOWN = 30  # points of a sweep whose shares are printed
MAX_FLOWS_SHOWN = 5  # flows with a column of shares in the printed table
MAX_REASONS = 3  # reasons for missing answers that are printed
# a name for --out that ends so is probably meant for a table, not for a Zarr folder
TABLE_ENDINGS = (".csv", ".tsv", ".xlsx", ".json", ".parquet", ".txt")

TOO_MANY_POINTS = f"No table is printed for more than {MAX_POINTS_SHOWN} points"
FEW_RUNS = (  # behind "enough-runs does not hold at N points"
    ": the 95 % interval of a flow's mean throughput is wider than 10 % to either side.  "
    "The variable or column uncertainty tells how wide; more runs (a larger `runs` under `[run]` "
    "in the file) make it narrower."
)
ONE_RUN = (  # for ns-2 or ns-3, whose name is put in
    "{0} made one run at each point. Where chance has a part in a run, for example through "
    "`send_jitter`, it is not known how much runs differ; `runs = 5` under `[run]` in the file "
    "shows it."
)


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
    "--out",
    type=inputs.FILE,
    help="Zarr folder for the results; a sweep in it is continued.",
)
@inputs.model
@click.option("--draw", type=inputs.WHOLE, help="Number of random points, uniform in the ranges.")
@click.option("--seed", type=inputs.WHOLE, help="Seed of --draw. Default: 1.")
@click.option(
    "--engine",
    default="local",
    shell_complete=inputs.offer(lambda _: ("local", "dask")),
    help="local, or dask to compute on a cluster.",
)
@click.option("--scheduler", help="Address tcp://... of a Dask cluster. Default: a local cluster.")
@click.option(
    "--csv",
    type=inputs.FILE,
    help="Table with a row for each point (.csv). Without --out only the table is written.",
)
@inputs.plot
@click.option(
    "--map-of",
    metavar="GROUP",
    help="Group that --plot shows. Default: the first in a map, all in a picture with lines.",
)
@inputs.laws
@inputs.as_json
def sweep(
    scenario: Path,
    over: tuple[str, ...],
    out: Path | None,
    model: str,
    draw: int | None,
    seed: int | None,
    engine: str,
    scheduler: str | None,
    csv: Path | None,
    plot: Path | None,
    map_of: str | None,
    laws: tuple[Path, ...],
    json: bool,
) -> None:
    """Run a model over a grid of fields' values.

    --out writes the results to a Zarr folder. xarray.open_zarr reads it, with labels and units.  If
    the command is interrupted, the same command continues where it stopped.  The variable status of
    the results marks points at which the model predicts nothing.  A share is a part of all bytes
    delivered.  --csv writes a table that spreadsheets read, and --json alone prints every point.
    Give one of the three, or several.  A sweep without --out cannot be continued.  With one field,
    --plot draws a line for each group's share, or for the group that --map-of names.  With two, it
    draws a map of the share of the first group, or of the group that --map-of names.

    Example: vegasmodel sweep mixed.toml --over link.buffer=5:60:5 --over flow.rtt=20ms:200ms:20ms
    --model minicycle --out map.zarr
    """
    import os
    import time

    from vegasmodel.report import console
    from vegasmodel.study.meter import meter
    from vegasmodel.study.sweep import sweep as over_grid

    _check_outputs(out, csv, plot, fields=len(over), draw=draw, json=json)
    began = time.monotonic()
    case = inputs.load(scenario, laws)
    names = [group.name for group in case.flows]
    if seed is not None and draw is None:
        raise FieldError("--seed", seed, "only with --draw")
    if map_of is not None and plot is None:
        raise FieldError("--map-of", map_of, "only with --plot, whose picture it changes")
    if map_of is not None and map_of not in names:
        raise FieldError("--map-of", map_of, f"one of {', '.join(names)}{nearest(map_of, names)}")
    first: list[int] = []  # numbers of points done; the first is that of an earlier sweep

    with meter() as report:

        def progress(done: int, total: int) -> None:
            """Note and report how many points of ``total`` are done."""
            first.append(done)
            report(done, total)

        data = over_grid(
            case, over, model, out, draw=draw, seed=1 if seed is None else seed, engine=engine,
            scheduler=scheduler, processes=os.cpu_count() or 1, progress=progress,
        )  # fmt: skip
    seconds = time.monotonic() - began
    fields = [text.partition("=")[0].strip() for text in over]
    summary = _Summary(
        case, model, out, data, fields, first[0], seconds, only_printed=out is None and csv is None
    )
    if csv is not None:
        sweep_rows.write_csv(csv, data, fields, case)
    if plot is not None and summary.answered:
        from vegasmodel import plots

        plots.save(plots.sweep(data, map_of), plot)
    if json:
        console.print_json(summary.to_json(fields))
    else:
        summary.show(fields, over)
        console.written(csv, plot if summary.answered else None)
    if plot is not None and not summary.answered:
        raise Shortfall(f"{plot} is not drawn: no point of the sweep has an answer")


def _check_outputs(
    out: Path | None,
    csv: Path | None,
    plot: Path | None,
    *,
    fields: int,
    draw: int | None,
    json: bool,
) -> None:
    """Raise ``FieldError`` before the sweep if a result cannot be written to these paths.

    ``fields`` is the number of fields that vary, and ``draw`` the number of random points. A sweep
    of random points, or of more than two fields, has no picture. ``json`` says that a JSON document
    is printed; it has the results if neither a folder nor a table is written.
    """
    from vegasmodel.report import console

    if out is None and csv is None and not json:
        allowed = "the name of a folder; or --csv FILE for a table, or --json to print all points"
        raise FieldError("--out", None, allowed, wrong=MISSING)
    inputs.check_picture(plot)
    if csv is not None:
        console.output_path(csv, "--csv", (".csv",))
    if out is not None and out.suffix.lower() in TABLE_ENDINGS:
        raise FieldError("--out", str(out), "the name of a folder; --csv FILE writes a table")
    if plot is not None and (draw is not None or fields > 2):
        raise FieldError("--plot", str(plot), "a sweep of one or two fields, without --draw")


class _Summary:
    """What the command prints about a sweep.

    A point of the sweep is one choice of the fields' values.

    - ``out``: the folder with the results, or ``None``.
    - ``only_printed``: whether neither this folder nor a table in CSV is written.
    - ``done_before``: how many points an earlier sweep has computed, if this sweep continues it.
    - ``counts``: the number of points by status; ``answered`` is that of points with throughputs,
      and ``points`` that of all.
    - ``dims``: the number of values of each field.
    - ``few_runs``: at how many points too few runs were averaged (``ENOUGH_PRECISION``).
    - ``broken``: for each assumption, at how many points it does not hold.
    - ``notes``: a sentence if ns-2 or ns-3 made one run at each point, and sentences about keys of
      the scenario that have no effect at any point.
    """

    def __init__(
        self,
        case: Scenario,
        model: str,
        out: Path | None,
        data: xr.Dataset,
        fields: Sequence[str],
        done_before: int,
        seconds: float,
        *,
        only_printed: bool,
    ) -> None:
        """Count the points of the sweep ``data`` by their results.

        ``fields`` are the names of the fields that vary. ``done_before`` of the points were
        computed by an earlier sweep, the others in ``seconds``.
        """
        from vegasmodel.measurement import ENGINES
        from vegasmodel.study import no_effect
        from vegasmodel.study.not_held import counted
        from vegasmodel.study.points import STATUS

        self.case, self.model, self.out, self.data = case, model, out, data
        self.done_before, self.seconds, self.only_printed = done_before, seconds, only_printed
        status = data["status"].values
        self.counts = {word: int((status == code).sum()) for code, word in enumerate(STATUS)}
        self.answered, self.points = self.counts[STATUS[0]], int(status.size)
        self.dims = {str(name): int(size) for name, size in data["status"].sizes.items()}
        self.few_runs = int((data["uncertainty"].values > ENOUGH_PRECISION).sum())
        self.broken = counted(data["broken"].values.flat)
        # the number of runs may also be one of the fields that vary
        single = model in ENGINES and case.run.times == 1 and "run.runs" not in data.variables
        self.notes = [ONE_RUN.format(model)] if single and self.answered else []
        self.notes += no_effect.sentences(case, _ends(data, fields))

    def to_json(self, fields: Sequence[str]) -> dict[str, Any]:
        """The document that the command prints with the option ``--json``.

        ``fields`` are the names of the fields that vary. ``rows`` has an entry for each point, if
        they are few enough for a printed table, or if neither a folder nor a table is written. It
        is ``None`` otherwise. JSON has no infinite numbers, so an infinite value of a field is the
        text "inf", as in a scenario file.
        """
        few = self.points <= MAX_POINTS_SHOWN or self.only_printed
        rows = sweep_rows.rows(self.data, fields, self.case) if few else None
        for row in rows or ():
            row["fields"] = {k: "inf" if v == math.inf else v for k, v in row["fields"].items()}
        return {
            "scenario": self.case.name,
            "model": self.model,
            "out": None if self.out is None else str(self.out),
            "dims": self.dims,
            "points": self.points,
            "computed": self.points - self.done_before,
            "status": self.counts,
            "too_few_runs": self.few_runs,
            "broken": self.broken,
            "seconds": self.seconds,
            "rows": rows,
            **({"notes": self.notes} if self.notes else {}),
        }

    def show(self, fields: Sequence[str], over: Sequence[str]) -> None:
        """Print a table of the points, if they are few, and sentences on all of them.

        ``fields`` are the names of the fields that vary. ``over`` are the texts ``FIELD=VALUES`` in
        which the user gave their values. The table has the units of these texts, too.
        """
        from vegasmodel.report import console
        from vegasmodel.study import grid

        few = self.points <= MAX_POINTS_SHOWN
        table = "the table" if self.out is None else self.out
        marks, left_out = None, [f"{TOO_MANY_POINTS}; {table} has their results."]
        # the assumption enough-runs has a mark and a line of its own
        broken = {name: n for name, n in self.broken.items() if name != "enough-runs"}
        if few:
            marks = not_held.letters(broken)
            user_units = grid.units_given(self.case, over)
            points, left_out = _points(self.data, fields, user_units, marks, self.case, self.out)
            console.console().print(points)
        sizes = " x ".join(f"{name} {size}" for name, size in self.dims.items())
        bad = "".join(f" {n} of them: {word}." for word, n in list(self.counts.items())[1:] if n)
        there = f", {self.done_before} of them there already" if self.done_before else ""
        where = "" if self.out is None else f"{self.out}: "
        done = f"{where}{self.points} points ({sizes}){there}; {self.seconds:.1f} s.{bad}"
        point_or_points = "point" if self.few_runs == 1 else "points"
        star = " (*)" if few else ""  # the mark in the table
        doubt = f"enough-runs does not hold at {self.few_runs} {point_or_points}{star}{FEW_RUNS}"
        console.paragraphs(
            [
                *([*left_out, done] if few else [done, *left_out]),
                *_reasons(self.data),
                *([doubt] if self.few_runs else []),
                *self.notes,
                *not_held.sentences(broken, f"{self.answered} points with an answer", marks),
            ],
            first=not few,
        )


def _ends(data: xr.Dataset, fields: Sequence[str]) -> list[dict[str, Any]]:
    """The least values of all varied ``fields``, and the greatest, from the dataset of the sweep.

    Words are in alphabetical order.
    """
    values = {name: data[name].values.ravel().tolist() for name in fields}
    return [{name: end(column) for name, column in values.items()} for end in (min, max)]


def _reasons(data: xr.Dataset) -> list[str]:
    """The most frequent reasons why the model predicts nothing at some points of the sweep."""
    found = Counter(str(text) for text in data["reason"].values.flat if text)
    lines = [
        f"No answer at {n} {'point' if n == 1 else 'points'}: {text}."
        for text, n in found.most_common(MAX_REASONS)
    ]
    n_left_out = len(found) - len(lines)
    subject = "reason is" if n_left_out == 1 else "reasons are"
    left_out = f"{n_left_out} more {subject} in the variable or column reason."
    return [*lines, left_out] if n_left_out else lines


def _points(
    data: xr.Dataset,
    fields: Sequence[str],
    user_units: Mapping[str, tuple[str, float]],
    marks: Mapping[str, str],
    scenario: Scenario,
    out: Path | None,
) -> tuple[Table, list[str]]:
    """A table with a row for each point of a sweep, and sentences on its columns.

    A row has the values of the fields, and a column for each flow's share of all bytes delivered.
    If not all flows fit the table, and some belong to the same group (``[[flow]]`` table), there is
    one column per group instead. At most ``MAX_FLOWS_SHOWN`` columns of shares are shown, and only
    as many as fit the terminal. The shares of a point have a star if too few runs were averaged
    there: the 95 % interval of some flow's mean throughput is wider than 10 % of the mean
    (``ENOUGH_PRECISION``) to either side.

    ``data`` is the dataset of the sweep of ``scenario``, over the ``fields`` with these names.
    ``out`` is the folder that the sweep has written, or ``None``.

    ``user_units`` has the units in which the user gave the fields' values (``grid.units_given``).
    A value has the user's unit beside the field's own.

    ``marks`` has a letter for each assumption that does not hold at some point.  The column
    ``broken`` has the letters of those that do not hold at the row's point. If ``marks`` is empty,
    there is no such column.
    """
    from vegasmodel.report import console

    flows = [str(name) for name in data["flow"].values]
    all_shares = "--out FOLDER writes" if out is None else f"{out} has"
    columns = [(name, [i]) for i, name in enumerate(flows)]
    grid, n_left_out = _shares(data, fields, user_units, marks, columns)
    if not n_left_out or len(flows) == len(scenario.flows):
        return grid, console.left_out(n_left_out, f"{all_shares} all")
    names = [f"{g.name} ({g.count})" if g.count > 1 else g.name for g in scenario.flows]
    groups = list(zip(names, sweep_rows.flow_indices(data, scenario), strict=True))
    grid, n_left_out = _shares(data, fields, user_units, marks, groups)
    about_groups = (
        f"NAME (N): a group of N flows, with the share of all N together. {all_shares} each flow's."
    )
    return grid, [about_groups, *console.left_out(n_left_out, f"{all_shares} all", "group")]


def _shares(
    data: xr.Dataset,
    fields: Sequence[str],
    user_units: Mapping[str, tuple[str, float]],
    marks: Mapping[str, str],
    columns: Sequence[tuple[str, list[int]]],
) -> tuple[Table, int]:
    """The table of shares that ``_points`` returns, and how many of ``columns`` it leaves out.

    An entry of ``columns`` has the column's name and the indices of the flows whose shares the
    column adds up. ``user_units`` has the user's unit of a field, and ``marks`` a letter for each
    assumption that does not hold at some point.
    """
    import numpy as np

    from vegasmodel.report import console

    dims = data["status"].dims
    units = {name: data[name].attrs.get("units", "") for name in fields}
    rows = []
    for place in np.ndindex(data["status"].shape):
        point = data.isel(dict(zip(dims, place, strict=True)))
        # the cells of the row: the values of the fields, then the letters, then the shares
        values = {name: point[name].item() for name in fields}
        cells = [_value(value, units[n], user_units.get(n)) for n, value in values.items()]
        if marks:
            letters = [marks[name] for name in point["broken"].item().split() if name in marks]
            cells.append(" ".join(sorted(letters)) or "-")
        star = "*" if point["uncertainty"].item() > ENOUGH_PRECISION else ""
        shares = [point["share"].values[i].sum() for _, i in columns[:MAX_FLOWS_SHOWN]]
        cells += [f"{100 * x:.1f} %{star}" if math.isfinite(x) else "-" for x in shares]
        rows.append(cells)
    first = _heads(units, user_units) + (["broken"] if marks else [])
    heads = [*first, *(f"{name}\nshare" for name, _ in columns[:MAX_FLOWS_SHOWN])]
    grid, too_wide = console.fitting(heads, rows, len(first) + 1)
    return grid, too_wide + max(len(columns) - MAX_FLOWS_SHOWN, 0)


def _heads(units: Mapping[str, str], user_units: Mapping[str, tuple[str, float]]) -> list[str]:
    """The names of the columns with the fields' values, each with its unit and the user's unit.

    ``units`` maps the names of the fields to their own units. An example is ``link.`` above
    ``buffer, pkt (ms)``. The unit s is left out, because each time in the table has its own unit.
    """
    heads = []
    for name, unit in units.items():
        part, _, key = name.rpartition(".")
        key += f", {unit}" if unit not in ("", "1", "s") else ""
        if name in user_units:
            user_unit, _ = user_units[name]
            key += f" ({user_unit})"
        heads.append(f"{part}.\n{key}" if part else key)
    return heads


def _value(value: str | float, unit: str, user_unit: tuple[str, float] | None) -> str:
    """The value of a field as text for a table; a boolean is true or false, as in TOML.

    ``user_unit`` is the user's unit, as ``grid.units_given`` returns it.  The value in this unit
    stands in parentheses.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    in_user_unit = ""
    if user_unit is not None:
        _, unit_value = user_unit  # of the user's unit, in the field's own unit
        in_user_unit = f" ({value / unit_value:.6g})"
    return format_time(value) if unit == "s" else f"{value:.6g}{in_user_unit}"
