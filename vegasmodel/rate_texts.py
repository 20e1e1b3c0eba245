"""Throughputs as text: with their standard errors, and with their ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vegasmodel.fields.units import format_number

if TYPE_CHECKING:
    from vegasmodel.prediction import Prediction

ROUNDING = 1e-12  # of a mean: a standard error below it is due to rounding


def with_error(value: float, error: float | None) -> str:
    """A number and its standard error as text, such as ``125.3 ± 1.2``.

    ``value`` gets four significant digits (``format_number``), and the error two.  If the error is
    unknown, or 0 but for rounding, the text is the number alone.
    """
    text = format_number(value, 4)
    known = error is not None and math.isfinite(error) and error > ROUNDING * abs(value)
    return f"{text} ± {float(f'{error:.2g}'):g}" if known else text


def over_runs(results: Sequence[Prediction]) -> str:
    """Of how many runs the results are means: ``3 runs``, or ``the runs (fluid 5, rounds 3)``."""
    counts = [each.runs for each in results]
    if 1 in counts:  # a standard error of unknown origin
        return "the runs"
    if len(set(counts)) == 1:
        return f"{counts[0]} runs"
    each = [f"{result.model} {n}" for result, n in zip(results, counts, strict=True)]
    return f"the runs ({', '.join(each)})"


def shown_rate(result: Prediction, group: str) -> str:
    """A group's mean throughput per flow as text, with its standard error and range if known.

    The text is ``-`` if the group has no throughput.
    """
    if group not in result.groups:
        return "-"
    return with_error(result.groups[group], result.groups_se.get(group)) + ends(result, group)


def of_errors(results: Sequence[Prediction]) -> str:
    """The part of a table's title that explains ``±``; empty if no result has a standard error."""
    scattered = [each for each in results if any(each.groups_se.values())]
    return f"; ±: standard error of the mean over {over_runs(scattered)}" if scattered else ""


def ends(result: Prediction, group: str) -> str:
    """The range of a group's mean throughput in parentheses, such as `` (143..600)``; or empty."""
    found = mean_range(result, group)
    return f" ({found})" if found else ""


def mean_range(result: Prediction, group: str) -> str:
    """The range of a group's mean throughput per flow, such as ``143..600``; empty if none.

    Its ends are the means of the ends of the flows' ranges.
    """
    if result.throughput_range is None:
        return ""
    rows = [member.flow.name == group for member in result.scenario.members]
    low, high = result.throughput_range[rows].mean(axis=0)
    return f"{format_number(low)}..{format_number(high)}" if low < high else ""
