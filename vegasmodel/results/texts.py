"""Writes predictions as text: one prediction as a line or as a small table.

The functions for parts of such a text, such as a throughput with its error, are also used where
larger tables are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vegasmodel.fields.units import format_number
from vegasmodel.metrics import with_error
from vegasmodel.support.shown import Table

if TYPE_CHECKING:
    from vegasmodel.results.result import Result


def one_line(result: Result) -> str:
    """The line that Python shows for a prediction."""
    if not result.applicable:
        return f"<Prediction {result.model}: no answer, {result.reason}>"
    first = list(result.groups.items())[:6]
    rates = [f"{name} {format_number(rate)}{_ends(result, name)} pkt/s" for name, rate in first]
    more = [f"{len(result.groups) - 6} more"] if len(result.groups) > 6 else []
    broken = len(result.broken)
    text = f"; {broken} assumption{'s' * (broken > 1)} not held" if broken else ""
    return f"<Prediction {result.model}: {', '.join([*rates, *more])}{text}>"


def table(result: Result) -> Table:
    """A table with a row for each group; its title names the assumptions that do not hold."""
    title = f"{result.model} on {result.scenario.name}"
    if not result.applicable:
        return Table(f"{title}: no answer, {result.reason}", [], [])
    broken = [each.name for each in result.broken]
    text = f"{title}; does not hold: {', '.join(broken)}" if broken else title
    text += of_errors([result])
    rows = [
        [
            name,
            shown_rate(result, name),
            format_number(result.group_bps[name] / 1e6),
            _percent(result.shares[name]),
        ]
        for name in result.groups
    ]
    return Table(text, ["group", "pkt/s per flow", "Mbit/s together", "share"], rows)


def over_runs(results: Sequence[Result]) -> str:
    """How many runs the results are means over, as text such as ``3 runs``.

    If the numbers differ, it is ``3 to 5 runs`` for results of a single model. For those of several
    models it names the models, as in ``the runs (fluid 5, rounds 3)``.
    """
    counts = [each.runs for each in results]
    if 1 in counts:  # no mean over runs, so its standard error was given with the result
        return "the runs"
    if len(set(counts)) == 1:
        return f"{counts[0]} runs"
    if len({result.model for result in results}) == 1:
        return f"{min(counts)} to {max(counts)} runs"
    each = [f"{result.model} {n}" for result, n in zip(results, counts, strict=True)]
    return f"the runs ({', '.join(each)})"


def shown_rate(result: Result, group: str) -> str:
    """A group's mean throughput per flow as text, with its standard error and range if known.

    A group is a ``[[flow]]`` table. The text is ``-`` if the group has no throughput.
    """
    if group not in result.groups:
        return "-"
    return with_error(result.groups[group], result.groups_se.get(group)) + _ends(result, group)


def of_errors(results: Sequence[Result]) -> str:
    """The part of a table's title that explains ``±``; empty if no result has a standard error."""
    scattered = [each for each in results if any(each.groups_se.values())]
    return f"; ±: standard error of the mean over {over_runs(scattered)}" if scattered else ""


def _ends(result: Result, group: str) -> str:
    """The range of a group's mean throughput in parentheses, such as `` (143..600)``; or empty."""
    found = mean_range(result, group)
    return f" ({found})" if found else ""


def mean_range(result: Result, group: str) -> str:
    """The range of a group's mean throughput per flow, such as ``143..600``; empty if none.

    A group is a ``[[flow]]`` table. The ends of its range are the means of the ends of its flows'
    ranges.
    """
    if result.throughput_range is None:
        return ""
    rows = [member.flow.name == group for member in result.scenario.members]
    low, high = result.throughput_range[rows].mean(axis=0)
    return f"{format_number(low)}..{format_number(high)}" if low < high else ""


def _percent(value: float | None) -> str:
    """A share in percent as text; ``-`` if it is unknown."""
    return "-" if value is None else f"{100 * value:.1f} %"
