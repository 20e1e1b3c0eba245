"""Prints results on the terminal, as tables that fit its width or as one JSON document."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vegasmodel.fields.units import FieldError, format_time, printable
from vegasmodel.prediction import Prediction, active_part, with_error
from vegasmodel.scenario import Scenario
from vegasmodel.support.files import is_special

if TYPE_CHECKING:
    import xarray as xr

    from vegasmodel.completion import Filled

SCHEMA = 1
SIMULATED = ("fluid", "rounds")  # the models whose runs may differ by chance
MAX_GROUP_COLUMNS = 3  # more groups are shown in rows, with a column per model
MAX_GROUP_ROWS = 50  # rows
MAX_LINKS = 20  # links whose figures are shown
IN_PART = "pkt/s: while the flow is active; Mbit/s and share: from warm-up to end."
PLUS_MINUS = "±: the standard error of the mean over the runs."


def console() -> Console:
    """A console of the Python library ``rich`` that prints on standard output.

    It is 80 columns wide if standard output is not a terminal.
    """
    return _Output(highlight=False, markup=False, emoji=False, soft_wrap=False)


class _Output(Console):
    """A console of the library ``rich``; raises ``BrokenPipeError`` if its output is not read.

    This happens, for example, if the output is piped into ``head``, which ends after ten lines.
    ``support.exits`` turns the error into an exit status.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "broken pipe")


def plain(text: str) -> Text:
    """Text that the console prints literally.

    It may contain names that users chose. So nothing in it counts as markup, and control characters
    are replaced by visible escapes.
    """
    return Text("\n".join(printable(line) for line in text.split("\n")))


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output.

    The entry ``schema`` with the version of the format is added.
    """
    sys.stdout.write(json.dumps({"schema": SCHEMA, **document}, allow_nan=False, indent=1) + "\n")


def results_json(scenario: Scenario, results: Sequence[Prediction]) -> dict[str, Any]:
    """The document that ``predict``, ``measure`` and ``ratio`` print with ``--json``."""
    return {"scenario": scenario.name, "results": [result.to_json() for result in results]}


def number(value: float | None, digits: int = 4) -> str:
    """A number as text for a table; a dash if it is unknown or not finite."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.{digits}g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Table:
    """A table for the terminal: the first column is aligned left, the others are aligned right.

    The text of a cell is printed literally, without markup (``plain``).
    """
    grid = Table(
        title=plain(title) if title else None, title_justify="left", box=None, padding=(0, 1)
    )
    for i, name in enumerate(columns):
        left = i == 0
        grid.add_column(
            plain(name),
            justify="left" if left else "right",
            overflow="fold" if left else "ellipsis",
            no_wrap=not left,
        )
    for row in rows:
        grid.add_row(*(plain(cell) for cell in row))
    return grid


def width(grid: Table) -> int:
    """The least width of the table, in characters, at which no cell is cut or wrapped."""
    return sum(_width([str(c.header), *(str(cell) for cell in c.cells)]) for c in grid.columns)


def fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], keep: int, title: str = ""
) -> tuple[Table, int]:
    """A table without those last columns that do not fit the terminal, and their number.

    The first ``keep`` columns are never left out.
    """
    shown = len(columns)
    while True:
        grid = table(columns[:shown], [row[:shown] for row in rows], title)
        if shown <= keep or width(grid) <= console().width:
            return grid, len(columns) - shown
        shown -= 1


def headline(scenario: Scenario) -> str:
    """One line that names the scenario, its links (at most three) and its packet size."""
    links = "; ".join(
        f"{link.name}: {link.capacity:.6g} pkt/s, buffer {link.buffer:g} pkt"
        for link in scenario.links[:3]
    )
    more = f" and {len(scenario.links) - 3} more links" if len(scenario.links) > 3 else ""
    return f"{scenario.name} ({links}{more}; packets of {scenario.packet_size:g} B)"


def results_table(scenario: Scenario, results: Sequence[Prediction], width: int = 80) -> Table:
    """A table of results with a row for each model that has an answer.

    A group is an entry ``[[flow]]`` of the scenario, which describes one or more flows of one kind.
    The columns are the groups' throughputs, the ratios of each two of them, Jain's index and the
    load.  A group's throughput is the mean over its flows.  The load is the utilization of the
    first link.  If not all ratios fit ``width`` characters, the last ones are left out.  The JSON
    document has them all.
    """
    shown = [result for result in results if result.applicable]
    names = [group.name for group in scenario.flows]
    several = {group.name for group in scenario.flows if group.count > 1}
    loads = [None if r.utilization is None else float(r.utilization[0]) for r in shown]
    columns = [["model", *(result.model for result in shown)]]
    last = [
        ["Jain", *(number(result.jain, 3) for result in shown)],
        ["load", *(number(load, 3) for load in loads)],
    ]
    room = width - sum(_width(column) for column in (*columns, *last))
    for g in names:
        head = f"{_short(g)}\n{'pkt/s each' if g in several else 'pkt/s'}"
        column = [head, *(_rate(result, g) for result in shown)]
        room -= _width(column)
        columns.append(column)
    for a, b in ((a, b) for i, a in enumerate(names) for b in names[i + 1 :]):
        column = [_pair(a, b), *(number(result.ratios.get(f"{a}/{b}")) for result in shown)]
        room -= _width(column)
        if room < 0:
            break
        columns.append(column)
    heads, *rows = zip(*columns, *last, strict=True)
    return table(heads, rows)


def _width(column: Sequence[str]) -> int:
    """The width of a table's column in characters, with the space on both sides of the text."""
    return 2 + max(len(line) for cell in column for line in cell.split("\n"))


def _rate(result: Prediction, group: str) -> str:
    """The group's mean throughput per flow as text, with its standard error if that is known."""
    value = result.groups.get(group)
    if value is None or not math.isfinite(value):
        return "-"
    return with_error(value, result.groups_se.get(group))


def shares_table(scenario: Scenario, results: Sequence[Prediction]) -> Table | None:
    """A table with a row for each model that gives bit rates: bit rates and shares of the groups.

    A group is an entry ``[[flow]]`` of the scenario.  The bit rate is that of all flows of a group
    together, in Mbit/s.  The group's share is the part that this bit rate has in the sum over all
    groups.  Returns ``None`` if the scenario has only one flow, or if no model gives bit rates.
    """
    if len(scenario.members) < 2:
        return None
    groups = [group.name for group in scenario.flows]
    heads = [head for g in groups for head in (f"{_short(g)}\nMbit/s", f"{_short(g)}\nshare")]
    rows = [
        [result.model, *(cell for g in groups for cell in _together(result, g))]
        for result in results
        if result.applicable and result.group_bps
    ]
    title = "Groups, all flows together"
    return table(["model", *heads], rows, title) if rows else None


def by_groups(scenario: Scenario, results: Sequence[Prediction], width: int = 80) -> list[Table]:
    """Tables of results for many groups (entries ``[[flow]]``): groups in rows, models in columns.

    The first table shows the mean throughput of each group's flows. Its last rows are Jain's index
    and the load, which is the utilization of the first link.

    The second table shows the bit rate of all flows of a group together, in Mbit/s, and the group's
    share of the sum over all groups.

    If not all models fit ``width`` characters, each table is split into several. At most
    ``MAX_GROUP_ROWS`` groups are shown.
    """
    groups = [group.name for group in scenario.flows][:MAX_GROUP_ROWS]
    shown = [result for result in results if result.applicable]
    tables = []
    scattered = any(result.groups_se for result in shown)
    room = max((width - 16) // (16 if scattered else 12), 1)  # the name takes 16
    for some in (shown[i : i + room] for i in range(0, len(shown), room)):
        rows = [[g, *(_rate(r, g) for r in some)] for g in groups]
        rows.append(["Jain", *(number(r.jain, 3) for r in some)])
        loads = [None if r.utilization is None else float(r.utilization[0]) for r in some]
        rows.append(["load", *(number(load, 3) for load in loads)])
        heads = [f"{_short(r.model, 11)}\npkt/s" for r in some]
        tables.append(table(["group", *heads], rows, "Mean per flow"))
    room = max((width - 16) // 12, 1)  # a column of figures takes 12
    for some in (shown[i : i + room // 2] for i in range(0, len(shown), max(room // 2, 1))):
        rows = [[g, *(cell for r in some for cell in _together(r, g))] for g in groups]
        heads = [f"{_short(r.model, 11)}\n{unit}" for r in some for unit in ("Mbit/s", "share")]
        tables.append(table(["group", *heads], rows, "Groups, all flows together"))
    return tables


def _together(result: Prediction, group: str) -> tuple[str, str]:
    """The bit rate of all flows of a group together in Mbit/s, and the group's share, as texts.

    The share is the part that the group's bit rate has in the sum over all groups.
    """
    if not result.group_bps:
        return "-", "-"
    share = result.shares[group]
    return number(result.group_bps[group] / 1e6), "-" if share is None else f"{100 * share:.1f} %"


def _pair(a: str, b: str) -> str:
    return f"{a}/{b}" if len(a) + len(b) < 12 else f"{_short(a)}\n/{_short(b)}"


def _short(name: str, most: int = 10) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def notes(results: Sequence[Prediction]) -> list[str]:
    """Sentences to print under a table of results.

    There is one for each assumption that the scenario does not meet, one for each simulator whose
    single run depends on chance, and one for each model without an answer.  A sentence that is true
    of several models is printed once, with their names.
    """
    lines: dict[str, list[str]] = {}  # each text, with the models that say it
    for result in results:
        if not result.applicable:
            lines.setdefault(f" no answer: {result.reason}.", []).append(result.model)
        for assumption in result.assumptions:
            unsure = assumption.name == "enough-runs" and result.model in SIMULATED
            if assumption.holds is False or (unsure and assumption.holds is None):
                fails = "does not hold" if assumption.holds is False else "is not known"
                detail = f": {assumption.detail}" if assumption.detail else ""
                said = f": {assumption.name} {fails}{detail}."
                lines.setdefault(said, []).append(result.model)
    verb = {True: " have", False: " has"}
    return [
        ", ".join(models) + (verb[len(models) > 1] if said.startswith(" no answer") else "") + said
        for said, models in lines.items()
    ]


def print_pairing(pairs: Sequence[Mapping[str, str]], most: int = 20) -> None:
    """Print which flow of the trace belongs to each flow of the scenario, and how this was decided.

    Nothing is printed if the paired flows have the same names.
    """
    if any(pair["flow"] != pair["trace"] for pair in pairs):
        lines = [f"{p['flow']} is {p['trace']} of the trace, by {p['by']}." for p in pairs[:most]]
        if len(pairs) > most:
            lines.append(f"({len(pairs) - most} more; the JSON output lists all)")
        paragraphs(lines)
        console().print()


def print_estimates(filled: Sequence[Filled]) -> None:
    """Print a table of the keys that the scenario file leaves out, with estimates from a trace.

    Below the table it says how each value was estimated.  Nothing is printed if ``filled`` is
    empty.
    """
    if filled:
        rows = [[e.key, f"{e.value:.4g} {e.unit}", f"{e.low:.4g}..{e.high:.4g}"] for e in filled]
        console().print(table(["left out", "estimate", "range"], rows, "Estimated from the trace"))
        ways = dict.fromkeys(e.how for e in filled)
        paragraphs([f"{', '.join(e.key for e in filled if e.how == way)}: {way}." for way in ways])
        console().print()


def print_results(
    scenario: Scenario, results: Sequence[Prediction], *, per_flow: bool = False, hint: str = ""
) -> None:
    """Print one line about the scenario, tables of results, and notes.

    With ``per_flow``, a table with one row per flow is also printed for each model that has an
    answer.  Several links have a table of their own.  The notes name the assumptions that the
    scenario does not meet, and the models without an answer.

    There is a column for each group, or a row if there are many groups or the columns do not fit.
    If no model has an answer, there are no tables. A sentence says so, and ``hint`` follows it.
    """
    out = console()
    out.print(plain(headline(scenario)))
    out.print()
    n = len(scenario.flows)
    left_out = False
    if not any(result.applicable for result in results):
        out.print(Text(f"No model asked has an answer here. {hint}".strip()))
    else:
        grids = [results_table(scenario, results, out.width)]
        shares = shares_table(scenario, results)
        grids += [] if shares is None else [shares]
        left_out = len(grids[0].columns) < 3 + n + n * (n - 1) // 2
        if n > MAX_GROUP_COLUMNS or (n > 1 and any(width(grid) > out.width for grid in grids)):
            left_out, grids = True, by_groups(scenario, results, out.width)
        for i, grid in enumerate(grids):
            if i:
                out.print()
            out.print(grid)
    if left_out:
        out.print(Text(f"(the JSON output lists all {n} groups and their ratios)"))
    if per_flow:
        for result in results:
            if result.applicable:
                out.print()
                out.print(flow_table(result))
    if len(scenario.links) > 1 and any(result.applicable for result in results):
        out.print()
        out.print(links_table(scenario, results))
        if len(scenario.links) > MAX_LINKS:
            out.print(Text(f"(the JSON output lists all {len(scenario.links)} links)"))
    if len(scenario.members) > 1 and active_part(scenario).min() < 1.0:
        paragraphs([IN_PART])
    if any(_scattered(r, each=per_flow) for r in results if r.applicable):
        paragraphs([PLUS_MINUS])
    paragraphs([*_delays(scenario, results), *notes(results)])


def links_table(scenario: Scenario, results: Sequence[Prediction]) -> Table:
    """A table with a row for each link and each model that has an answer.

    It shows the link's load, which is its utilization, its mean queue in packets, and its mean
    queueing delay, which is the mean queue over the capacity.  At most ``MAX_LINKS`` links are
    shown.
    """
    rows = []
    for i, link in enumerate(scenario.links[:MAX_LINKS]):
        for result in (result for result in results if result.applicable):
            load = None if result.utilization is None else float(result.utilization[i])
            queue = math.nan if result.queue_mean is None else float(result.queue_mean[i])
            delay = format_time(queue / link.capacity) if math.isfinite(queue) else "-"
            rows.append([link.name, result.model, number(load, 3), number(queue), delay])
    return table(["link", "model", "load", "queue pkt", "queueing delay"], rows, "Links")


def _delays(scenario: Scenario, results: Sequence[Prediction]) -> list[str]:
    """A sentence with the mean queueing delays at the link: the mean queue over its capacity.

    For a trace without queues another sentence says how much longer its RTTs are than those of the
    scenario.  The list is empty if no result has a mean queue, or if the scenario has several links
    (``links_table``).
    """
    if len(scenario.links) > 1:
        return []
    (link,) = scenario.links
    queues = [
        (result.model, float(result.queue_mean[0]))
        for result in results
        if result.applicable and result.queue_mean is not None
    ]
    said = [f"{name} {format_time(q / link.capacity)}" for name, q in queues if math.isfinite(q)]
    longer = [
        f"{result.model} has no queue; its mean RTT is {format_time(more)} above the scenario's."
        for result in results
        if result.queue_mean is None and "pairing" in result.extra  # a trace
        if (more := _above_the_rtt(result)) > 0
    ]
    return [f"Mean queueing delay at {link.name}: {', '.join(said)}.", *longer] if said else []


def _above_the_rtt(result: Prediction) -> float:
    """The mean of a packet's RTT less that of its flow with empty queues, s; NaN if unknown."""
    if result.rtt_mean is None or result.delivered is None:
        return math.nan
    members = zip(result.scenario.members, result.rtt_mean, result.delivered, strict=True)
    more = [(float(n), float(rtt - m.rtt)) for m, rtt, n in members if n > 0 and rtt > 0]
    packets = sum(n for n, _ in more)
    return sum(n * seconds for n, seconds in more) / packets if packets else math.nan


def _scattered(result: Prediction, *, each: bool) -> bool:
    """Whether the tables show a standard error above 0 for this result.

    They show the standard errors of the groups' throughputs. With ``each``, they also show those of
    the single flows' throughputs.
    """
    errors = list(result.groups_se.values())
    if each and result.throughput_se is not None:
        errors += list(result.throughput_se)
    return any(error > 0 for error in errors)


def paragraphs(lines: Sequence[str]) -> None:
    """Print each text as a paragraph under a table.

    It is wrapped at the terminal's width, or at 100 characters if the terminal is wider.
    """
    out = console()
    if lines:
        out.print()
    for line in lines:
        wrapped = textwrap.fill(line, width=min(out.width, 100), subsequent_indent="  ")
        out.print(plain(wrapped))


def flow_table(result: Prediction, most: int = 50) -> Table:
    """A table of one model's or measurement's results, with one row per flow.

    It shows at most ``most`` flows, and says how many more there are. Apart from the throughput, a
    column without any value is left out.
    """
    rows = []
    data = result.to_json()["flows"]
    for flow in data[:most]:
        span = flow["throughput_range_pps"]
        rate = flow["throughput_pps"]
        error = flow["throughput_se_pps"]
        rows.append(
            [
                flow["name"],
                "-" if rate is None else with_error(rate, error),
                "-" if span is None else f"{number(span[0])}..{number(span[1])}",
                _time(flow["base_rtt_s"]),
                _time(flow["rtt_mean_s"]),
                number(flow["loss_rate"], 2),
                number(flow["acks"], 8),
                number(flow["retransmits"], 6),
            ]
        )
    if len(data) > most:
        rows.append([f"... {len(data) - most} more", *[""] * 7])
    columns = ["flow", "pkt/s", "range", "baseRTT", "RTT", "loss", "ACKs", "rexmit"]
    keep = [i for i in range(len(columns)) if i < 2 or any(row[i] not in ("-", "") for row in rows)]
    return table([columns[i] for i in keep], [[row[i] for i in keep] for row in rows], result.model)


VERDICTS = ("reproduced", "consistent", "erratum", "discrepant", "blocked")


_AGREE = ("reproduced", "consistent")


def print_checks(checks: Sequence[Mapping[str, Any]], verdicts: Collection[str] = VERDICTS) -> None:
    """Print the values that the papers state beside those that this package computes.

    Each paper has a table with one row per item, such as a figure.  Only items whose verdict is
    among ``verdicts`` are shown.  Notes under the table explain those that are neither "reproduced"
    nor "consistent".  A last table counts all items of each paper by verdict.
    """
    out = console()
    papers = list(dict.fromkeys(check["paper"] for check in checks))
    for name in papers:
        mine = [c for c in checks if c["paper"] == name and c["verdict"] in verdicts]
        if not mine:
            continue
        rows = [
            [str(c["item"]), _brief(c["printed"]), _brief(c["computed"]), str(c["verdict"])]
            for c in mine
        ]
        out.print(table(["item", "printed", "computed", "verdict"], rows, name))
        paragraphs([f"{c['item']}: {c['note']}" for c in mine if c["verdict"] not in _AGREE])
        out.print()
    rows = [
        [
            name,
            *(str(sum(c["paper"] == name and c["verdict"] == v for c in checks)) for v in VERDICTS),
        ]
        for name in papers
    ]
    out.print(table(["paper", *VERDICTS], rows))


def _brief(value: Any) -> str:
    """The text that stands for ``value`` in a table; a text of more than 24 characters is cut."""
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_brief(entry) for entry in value)
    else:
        text = "-" if value is None else str(value)
    return text if len(text) <= 24 else text[:21] + "..."


def print_trajectories(data: xr.Dataset, *, json: bool) -> None:
    """Print means over the second half of a simulation, as a table or, with ``json``, as JSON.

    Printed are the mean window, rate and RTT of each flow, and the mean queue of each link. The
    attribute ``left_out`` of ``data`` names the simulator's assumptions that do not hold in this
    scenario. They are printed below the table; in JSON they are in ``provenance``.
    """
    half = data.isel(time=slice(data.sizes["time"] // 2, None))
    means = half.mean("time", skipna=True)
    flows: list[dict[str, Any]] = [
        {
            "name": str(name),
            "window_pkt": _json_number(means["window"].values[i]),
            "rate_pps": _json_number(means["rate"].values[i]),
            "rtt_s": _json_number(means["rtt"].values[i]),
        }
        for i, name in enumerate(data["flow"].values)
    ]
    links: list[dict[str, Any]] = [
        {"name": str(name), "queue_pkt": _json_number(means["queue"].values[i])}
        for i, name in enumerate(data["link"].values)
    ]
    if json:
        attrs = {key: value for key, value in data.attrs.items() if key != "scenario"}
        scenario = data.attrs["scenario"]
        print_json({"scenario": scenario, "provenance": attrs, "flows": flows, "links": links})
        return
    rows = [
        [
            str(f["name"]),
            number(f["window_pkt"]),
            number(f["rate_pps"]),
            "-" if f["rtt_s"] is None else format_time(f["rtt_s"]),
        ]
        for f in flows
    ]
    out = console()
    title = f"Second half of one run by {data.attrs['model']}"
    out.print(table(["flow", "window pkt", "pkt/s", "RTT"], rows, title))
    paragraphs([f"Queue at {x['name']}: {number(x['queue_pkt'])} packets." for x in links])
    if data.attrs.get("left_out"):
        paragraphs([f"{data.attrs['model']}: {data.attrs['left_out']} does not hold."])


def _json_number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_time(seconds)


def output_path(path: Path, field: str, suffixes: Sequence[str]) -> Path:
    """Check, before a long computation, that its result can be written to ``path``.

    Returns ``path``. Raises ``FieldError`` unless it ends in one of ``suffixes``, its folder exists
    and it is not itself a folder, a device, a pipe or a socket. Raises ``PermissionError`` if the
    user may not write in its folder.
    """
    allowed = f"a path ending in {' or '.join(suffixes)} in a folder that exists"
    try:
        good = path.suffix.lower() in suffixes and path.parent.is_dir() and not path.is_dir()
        special = is_special(path)
    except (OSError, ValueError):
        good = special = False
    if special:
        said = "a plain file or a new name; a device, pipe or socket is not replaced"
        raise FieldError(field, str(path), said)
    if not good:
        raise FieldError(field, str(path), allowed)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "the folder cannot be written", str(path.parent))
    return path
