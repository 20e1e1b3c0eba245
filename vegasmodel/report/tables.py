"""Prints predictions and measurements as tables, with notes under them, or as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from vegasmodel.fields.errors import in_words
from vegasmodel.fields.lists import few
from vegasmodel.fields.units import format_number, format_time
from vegasmodel.measurement import ENGINES
from vegasmodel.metrics import with_error
from vegasmodel.report.console import (
    column_width,
    console,
    number,
    paragraphs,
    plain,
    stacked,
    table,
    width,
)
from vegasmodel.report.notes import delays, idle, legend, notes, on_keys
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import DropTail, Link, Scenario

if TYPE_CHECKING:
    from vegasmodel.packets.filled import Filled

MAX_GROUP_COLUMNS = 3  # more groups are shown in rows, with a column per model
MAX_GROUP_ROWS = 50  # rows
# width in characters, in tables with a row per group: of the column with the names of the groups,
# of a column of figures, and of a column of throughputs with their standard errors
NAME_WIDTH, FIGURE_WIDTH, ERROR_WIDTH = 16, 12, 16
MAX_LINKS = 20  # links whose figures are shown
MAX_FLOWS = 50  # flows in a table of one model
MAX_PAIRS = 20  # flows of which the partner in the trace is named


def results_json(scenario: Scenario, results: Sequence[Prediction]) -> dict[str, Any]:
    """The document that ``predict``, ``measure`` and ``ratio`` print with ``--json``."""
    entries = [result.to_json() for result in results]
    return {"scenario": scenario.name, "results": entries, **notes_json(scenario)}


def notes_json(scenario: Scenario) -> dict[str, list[str]]:
    """The entry ``notes`` of a JSON document, as a dictionary; empty if there is nothing to say.

    The notes name the keys of the scenario that have no effect, and Vegas flows whose variants
    differ.  Other sentences that are printed under tables are not in the JSON document, because its
    results contain the same facts.
    """
    text = on_keys(scenario)
    return {"notes": text} if text else {}


def print_results(
    scenario: Scenario, results: Sequence[Prediction], *, per_flow: bool = False, hint: str = ""
) -> None:
    """Print one line about the scenario, tables of results, and notes.

    ``results`` are predictions and measurements.  The first table shows the throughput of each
    group (entry ``[[flow]]`` of the scenario) and, for each pair of groups, the ratio of their
    throughputs.  Each group has a column or, if the columns do not fit, a row.  If the ratios of
    all pairs do not fit, a second table has the ratio of each group to the first group.  Further
    tables show the groups' shares, what all flows of a law deliver together, the links if there are
    several, and, with ``per_flow``, the flows.

    The notes name the assumptions that the scenario does not meet, and the models that have no
    prediction.  If neither a model nor a measurement has throughputs, a sentence and the text
    ``hint`` take the place of the tables.
    """
    out = console()
    out.print(plain(headline(scenario)))
    out.print()
    if any(result.applicable for result in results):
        _print_group_tables(scenario, results)
    else:
        out.print(Text(f"None of these models can answer. {hint}".strip()))
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
    paragraphs(legend(scenario, [r for r in results if r.applicable], per_flow=per_flow))
    facts = [*delays(scenario, results), *idle(scenario, results), *on_keys(scenario)]
    paragraphs([*facts, *notes(results)])


def _print_group_tables(scenario: Scenario, results: Sequence[Prediction]) -> None:
    """Print the tables about groups (entries ``[[flow]]``) and laws, in the form that fits.

    If the terminal is too narrow for a column per pair of groups, further tables give only the
    ratios to the first group, and a line says that the JSON document has the others. If it is too
    narrow for a column per group, too, or there are more than ``MAX_GROUP_COLUMNS`` groups, the
    groups are in rows.
    """
    out = console()
    n = len(scenario.flows)
    grids = [results_table(scenario, results, out.width)]
    shares = shares_table(scenario, results)
    grids += [] if shares is None else [shares]
    # a table that lacks no ratio has columns for the model, each group and each pair of groups, and
    # those of Jain's index and the load
    all_columns = 1 + n + n * (n - 1) // 2 + len(_jain_and_load(scenario, results))
    left_out = len(grids[0].columns) < all_columns
    if n > MAX_GROUP_COLUMNS or (n > 1 and any(width(grid) > out.width for grid in grids)):
        left_out, grids = True, by_groups(scenario, results, out.width)
    laws = laws_table(scenario, results)
    grids += [] if laws is None else [laws]
    if left_out:
        grids += ratios_to_first(scenario, results, out.width)
    for i, grid in enumerate(grids):
        if i:
            out.print()
        out.print(grid)
    if left_out:
        what = f"{n} groups and their ratios" if n > MAX_GROUP_ROWS else "ratios of the groups"
        out.print(Text(f"(the JSON output lists all {what})"))


def headline(scenario: Scenario) -> str:
    """One line: the scenario's name, its links (at most three), RTTs and packet size.

    A link has its queue discipline unless it is drop-tail, and its probability of random loss
    unless this is 0.
    """
    links = "; ".join(
        f"{link.name}: {format_number(link.capacity, 6)} pkt/s, buffer {link.buffer:g} pkt"
        f"{_in_bdp(given.buffer)}{_drops(link)}"
        for link, given in zip(scenario.links[:3], scenario._given[0], strict=False)
    )
    more = f" and {len(scenario.links) - 3} more links" if len(scenario.links) > 3 else ""
    rtts = [member.rtt for member in scenario.members]
    trips = " to ".join(dict.fromkeys(map(format_time, (min(rtts), max(rtts)))))
    size = f"packets of {scenario.packet_size:g} B"
    return f"{scenario.name} ({links}{more}; RTT {trips}; {size})"


def _in_bdp(buffer: float | str) -> str:
    """A remark on a buffer that the scenario gives in bandwidth-delay products; else empty."""
    in_bdp = isinstance(buffer, str) and "BDP" in buffer.upper()
    return f" ({buffer} at the mean RTT)" if in_bdp else ""


def _drops(link: Link) -> str:
    """Why the link drops packets other than at a full drop-tail queue; else empty."""
    queue = "" if isinstance(link.queue, DropTail) else f", queue {link.queue.discipline}"
    return queue + (f", random loss {format_number(100 * link.loss)} %" if link.loss else "")


def results_table(scenario: Scenario, results: Sequence[Prediction], width: int) -> Table:
    """A table of throughputs and fairness with a row for each model that has a prediction.

    A group is an entry ``[[flow]]`` of the scenario, which describes one or more flows of one kind.
    The columns are the groups' throughputs, the ratio of each two of these, Jain's index and the
    load.  A group's throughput is the mean over its flows.  The load is the utilization of the
    link.  If there are several links, ``links_table`` shows their loads instead.  If not all ratios
    fit ``width`` characters, the last ones are left out.  The JSON document has them all.
    """
    shown = [result for result in results if result.applicable]
    names = [group.name for group in scenario.flows]
    several = {group.name for group in scenario.flows if group.count > 1}
    # each column is a list: its heading, and then a text for each model
    columns = [["model", *(result.model for result in shown)]]
    last = _jain_and_load(scenario, shown)
    # characters that are left for the columns of groups and ratios
    room = width - sum(column_width(column) for column in (*columns, *last))
    for g in names:
        head = f"{_cut(g)}\n{'mean pkt/s' if g in several else 'pkt/s'}"
        column = [head, *(_rate(result, g) for result in shown)]
        room -= column_width(column)
        columns.append(column)
    for a, b in ((a, b) for i, a in enumerate(names) for b in names[i + 1 :]):
        column = [
            _ratio_heading(a, b),
            *(number(result.ratios.get(f"{a}/{b}")) for result in shown),
        ]
        room -= column_width(column)
        if room < 0:
            break
        columns.append(column)
    heads, *rows = zip(*columns, *last, strict=True)
    return table(heads, rows)


def _jain_and_load(scenario: Scenario, shown: Sequence[Prediction]) -> list[list[str]]:
    """Jain's index of each result and, if there is only one link, the link's load.

    Each of the two is a list of texts: a heading, and then one number per result.
    """
    figures = [["Jain", *(number(result.jain, 3) for result in shown)]]
    if len(scenario.links) == 1:
        figures.append(["load", *(_load(result, 0) for result in shown)])
    return figures


def _load(result: Prediction, link: int) -> str:
    """The utilization of the link with the index ``link`` as text; a dash if it is unknown."""
    return number(None if result.utilization is None else float(result.utilization[link]), 3)


def _rate(result: Prediction, group: str) -> str:
    """The group's mean throughput per flow as text, with its standard error if that is known."""
    value = result.groups.get(group)
    if value is None or not math.isfinite(value):
        return "-"
    return with_error(value, result.groups_se.get(group))


def shares_table(scenario: Scenario, results: Sequence[Prediction]) -> Table | None:
    """A table of the groups' bit rates and shares, with a row for each model that gives bit rates.

    A group is an entry ``[[flow]]`` of the scenario.  The bit rate is that of all flows of a group
    together, in Mbit/s.  The group's share is the part that this bit rate has in the sum over all
    groups.  Returns ``None`` if the scenario has only one flow, or if no model gives bit rates.
    """
    if len(scenario.members) < 2:
        return None
    groups = [group.name for group in scenario.flows]
    heads = [head for g in groups for head in (f"{_cut(g)}\nMbit/s", f"{_cut(g)}\nshare")]
    rows = [
        [result.model, *(cell for g in groups for cell in _rate_and_share(result, g))]
        for result in results
        if result.applicable and result.group_bps
    ]
    title = "Groups, all flows together"
    return table(["model", *heads], rows, title) if rows else None


def laws_table(scenario: Scenario, results: Sequence[Prediction]) -> Table | None:
    """A table with what all flows of each law (congestion control) deliver together.

    It has a row for each law and each model that gives bit rates: the number of flows, the bit
    rate in Mbit/s, the share of all that is delivered and, if there is only one link, the part of
    its capacity. Returns ``None`` if no law has several groups (``[[flow]]`` tables): a group's row
    then has these figures.
    """
    laws = [group.law for group in scenario.flows]
    if len(set(laws)) == len(laws):
        return None
    rows = [
        [
            law,
            str(its["flows"]),
            result.model,
            number(None if its["delivered_bps"] is None else its["delivered_bps"] / 1e6),
            "-" if its["share"] is None else f"{100 * its['share']:.1f} %",
            number(its["utilization"], 3),
        ]
        for law in dict.fromkeys(laws)
        for result in results
        if result.applicable and (its := result.laws.get(law)) is not None
    ]
    heads = ["law", "flows", "model", "Mbit/s", "share", "load"]
    if len(scenario.links) > 1:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(heads, rows, "Laws, all flows together") if rows else None


def by_groups(scenario: Scenario, results: Sequence[Prediction], width: int) -> list[Table]:
    """Tables of results for many groups (entries ``[[flow]]``): groups in rows, models in columns.

    The first table shows the mean throughput of each group's flows. Its last rows are Jain's index
    and, if there is only one link, the link's utilization (the row "load").

    The second table shows the bit rate of all flows of a group together, in Mbit/s, and the group's
    share of the sum over all groups.

    If not all models fit ``width`` characters, each table is split into several. At most
    ``MAX_GROUP_ROWS`` groups are shown.
    """
    groups = [group.name for group in scenario.flows][:MAX_GROUP_ROWS]
    shown = [result for result in results if result.applicable]
    tables = []
    with_errors = any(result.groups_se for result in shown)
    for models in _that_fit(shown, width, ERROR_WIDTH if with_errors else FIGURE_WIDTH):
        rows = [[g, *(_rate(r, g) for r in models)] for g in groups]
        rows += _jain_and_load(scenario, models)
        heads = [f"{_cut(r.model, 11)}\npkt/s" for r in models]
        tables.append(table(["group", *heads], rows, "Mean per flow"))
    for models in _that_fit(shown, width, 2 * FIGURE_WIDTH):  # two columns for each model
        rows = [[g, *(cell for r in models for cell in _rate_and_share(r, g))] for g in groups]
        heads = [f"{_cut(r.model, 11)}\n{unit}" for r in models for unit in ("Mbit/s", "share")]
        tables.append(table(["group", *heads], rows, "Groups, all flows together"))
    return tables


def ratios_to_first(scenario: Scenario, results: Sequence[Prediction], width: int) -> list[Table]:
    """Tables of each group's mean throughput divided by that of the first group.

    A group is an entry ``[[flow]]`` of the scenario. Groups are in rows, and models in columns. If
    not all models fit ``width`` characters, there are several tables. At most ``MAX_GROUP_ROWS``
    groups are shown.
    """
    first, *others = [group.name for group in scenario.flows][:MAX_GROUP_ROWS]
    shown = [result for result in results if result.applicable]
    title = f"Ratio to {_cut(first)}"
    return [
        table(
            ["group", *(_cut(result.model, 11) for result in models)],
            [[g, *(number(r.ratios.get(f"{g}/{first}")) for r in models)] for g in others],
            title,
        )
        for models in _that_fit(shown, width, FIGURE_WIDTH)
    ]


def _that_fit(
    results: Sequence[Prediction], width: int, for_each: int
) -> Iterator[Sequence[Prediction]]:
    """Split results into parts, each of which fits a table of ``width`` characters.

    The table has a column with the names of groups, and ``for_each`` characters for each result.
    Each part has at least one result.
    """
    fit = max((width - NAME_WIDTH) // for_each, 1)
    return (results[i : i + fit] for i in range(0, len(results), fit))


def _rate_and_share(result: Prediction, group: str) -> tuple[str, str]:
    """The bit rate of all flows of a group together in Mbit/s, and the group's share, as texts.

    A group is a ``[[flow]]`` table. The share is the part that the group's bit rate has in the sum
    over all groups.
    """
    if not result.group_bps:
        return "-", "-"
    share = result.shares[group]
    return number(result.group_bps[group] / 1e6), "-" if share is None else f"{100 * share:.1f} %"


def _ratio_heading(a: str, b: str) -> str:
    """The heading of a column with the ratio of two groups, on two lines if it is long."""
    return f"{a}/{b}" if len(a) + len(b) < 12 else f"{_cut(a)}\n/{_cut(b)}"


def _cut(name: str, most: int = 10) -> str:
    """A name, cut to at most ``most`` characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def links_table(scenario: Scenario, results: Sequence[Prediction]) -> Table:
    """A table with a row for each link and each model that has a prediction.

    It shows three figures: the link's load (its utilization), its mean queue in packets, and its
    mean queueing delay (the mean queue divided by the capacity).  At most ``MAX_LINKS`` links are
    shown.
    """
    rows = []
    for i, link in enumerate(scenario.links[:MAX_LINKS]):
        for result in (result for result in results if result.applicable):
            queue = math.nan if result.queue_mean is None else float(result.queue_mean[i])
            delay = format_time(queue / link.capacity) if math.isfinite(queue) else "-"
            rows.append([link.name, result.model, _load(result, i), number(queue), delay])
    return table(["link", "model", "load", "queue pkt", "queueing delay"], rows, "Links")


def flow_table(result: Prediction) -> Group:
    """A table of one model's or measurement's results, with one row per flow.

    It shows at most ``MAX_FLOWS`` flows, and says how many more there are. Apart from the
    throughput, a column without any value is left out. The title of a table of ns-2 or ns-3 says
    how many runs there were.
    """
    rows = []
    data = result.to_json()["flows"]
    for flow in data[:MAX_FLOWS]:
        span = flow["throughput_range_pps"]
        rate = flow["throughput_pps"]
        error = flow["throughput_se_pps"]
        rows.append(
            [
                flow["name"],
                "-" if rate is None else with_error(rate, error),
                "-" if span is None else f"{number(span[0])}..{number(span[1])}",
                format_time(flow["base_rtt_s"]),
                format_time(flow["rtt_mean_s"]),
                number(flow["loss_rate"], 2),
                _count(flow["acks"]),
                _count(flow["retransmits"]),
            ]
        )
    if len(data) > MAX_FLOWS:
        rows.append([f"... {len(data) - MAX_FLOWS} more", *[""] * 7])
    columns = ["flow", "pkt/s", "range", "baseRTT", "RTT", "loss", "ACKs", "rexmit"]
    keep = [i for i in range(len(columns)) if i < 2 or any(row[i] not in ("-", "") for row in rows)]
    cells = [[row[i] for i in keep] for row in rows]
    n = result.scenario.run.times
    runs = f"{result.model}, {'one run' if n == 1 else f'mean of {n} runs'}"
    title = runs if result.model in ENGINES else result.model
    return stacked([columns[i] for i in keep], cells, title)


def _count(value: float | None) -> str:
    """A number of packets as text, with three digits below 100, and else as a whole number."""
    return number(value, 3) if value is None or value < 100 else f"{value:.0f}"


def print_pairing(pairs: Sequence[Mapping[str, str]]) -> None:
    """Print which flow of the trace belongs to each flow of the scenario, and how this was decided.

    At most ``MAX_PAIRS`` pairs are named.  Nothing is printed if the paired flows have the same
    names.
    """
    if any(pair["flow"] != pair["trace"] for pair in pairs):
        named = pairs[:MAX_PAIRS]
        lines = [f"{p['flow']} is {p['trace']} of the trace, by {p['by']}." for p in named]
        if len(pairs) > MAX_PAIRS:
            lines.append(f"({len(pairs) - MAX_PAIRS} more; the JSON output lists all)")
        paragraphs(lines, first=True)
        console().print()


def print_estimates(filled: Sequence[Filled]) -> None:
    """Print a table of the keys that the scenario file leaves out, with estimates from a trace.

    ``filled`` has an entry for each such key.  Lines below the table say how each value was
    estimated.  Nothing is printed if ``filled`` is empty.
    """
    if not filled:
        return
    rows = [
        [
            in_words(e.key),
            f"{e.value:.4g} {e.unit}".strip(),
            f"{e.low:.4g}..{e.high:.4g}",
            "-" if e.default is None else f"{e.default:.4g} {e.unit}".strip(),
        ]
        for e in filled
    ]
    columns = ["left out", "estimate", "range", "default"]
    console().print(table(columns, rows, "Estimated from the trace"))
    lines = []
    for how in dict.fromkeys(e.how for e in filled):  # keys estimated in the same way share a line
        keys = "; ".join(in_words(e.key) for e in filled if e.how == how)
        lines.append(f"{keys}: {how}.")
    advice = "If you know one of these values, write it into the file, even if it is the default. "
    advice += "A value in the file is not estimated."
    paragraphs([*lines, advice])
    console().print()


def in_place_of_defaults(filled: Sequence[Filled]) -> list[str]:
    """A sentence that names the estimates that differ from the defaults of their keys.

    It also says how to keep the defaults.  The list is empty if there are no such estimates.
    """
    others = [e for e in filled if e.replaces_default]  # the estimate differs from the default
    if not others:
        return []
    named = few(
        [f"{in_words(e.key)} = {e.value:.4g}, not {e.default:.4g} {e.unit}" for e in others],
        6,
        clauses=True,
    )
    first = others[0]
    where, _, key = in_words(first.key).rpartition(", ")
    kept = f'{key} = "inf"' if first.default == math.inf else f"{key} = {first.default:.4g}"
    return [
        f"The models do not take the defaults of keys that the file leaves out: {named}. These are "
        f"estimates from the trace. To keep a default, write it into the file: {kept} ({where})."
    ]
