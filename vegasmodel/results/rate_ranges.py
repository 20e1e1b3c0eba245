"""Writes sentences about predictions that give each flow a range of throughputs, not one value.

The closed forms ``bands`` and ``minicycle`` make such predictions if there are several steady
states.
"""

from __future__ import annotations

import numpy as np

from vegasmodel.fields.units import format_number
from vegasmodel.metrics import Floats, student_t
from vegasmodel.results.prediction import Prediction
from vegasmodel.results.texts import mean_range

SHOWN = 6  # groups or flows that a sentence names
# A throughput outside a range by at most this part of the range's end counts as inside: rounding
# alone may bring it there.
ROUNDING = 1e-9


def in_tables(result: Prediction, *, per_flow: bool) -> str:
    """A note below the tables of a prediction that gives ranges of throughputs; otherwise empty.

    The tables show only one throughput of each range.  The note has the range of each group (entry
    ``[[flow]]`` of the scenario).  It also names the option that shows the range of every flow,
    unless the tables have it (``per_flow``).
    """
    ranges = {group: mean_range(result, group) for group in result.groups}
    known = [f"{group} {ends}" for group, ends in ranges.items() if ends]
    if not known:
        return ""
    several = any(group.count > 1 for group in result.scenario.flows)
    what = "mean pkt/s per flow" if several else "pkt/s"
    flows = " `predict --flows` shows the range of each flow." if several and not per_flow else ""
    return (
        f"{result.model} gives ranges, not single rates ({what}): {_listed(known, 'groups')}. Its "
        f"rows above show one point of them.{flows}"
    )


def beside(result: Prediction, measured: Prediction) -> str:
    """A sentence that says whether the measured throughputs lie in the ranges that a model gives.

    A mean measured over several runs also counts as inside if its 95 % confidence interval
    (Student's t) overlaps the range.  The text is empty if the model gives no ranges, or nothing
    was measured.
    """
    span, rates = result.throughput_range, measured.throughput
    if span is None or rates is None or not np.isfinite(rates).any():
        return ""
    low, high = span.T  # the ends of each flow's range, pkt/s
    error: Floats = np.zeros(rates.size)  # half the width of each 95 % interval, pkt/s
    if measured.throughput_se is not None and measured.runs > 1:
        error = student_t(measured.runs - 1) * np.nan_to_num(measured.throughput_se)
    known = np.isfinite(rates)
    inside = (rates >= low * (1.0 - ROUNDING)) & (rates <= high * (1.0 + ROUNDING))
    reaches = (rates + error >= low) & (rates - error <= high)
    outside = np.flatnonzero(known & ~inside & ~reaches)
    subject, model = f"{measured.model}'s pkt/s", result.model
    on_errors = f"the errors of {model} are those of one point in its ranges"
    if outside.size:
        flows = [
            f"{result.names[i]} {format_number(rates[i])} "
            f"({format_number(low[i])}..{format_number(high[i])})"
            for i in outside
        ]
        where = f"outside the range of {model} for {_listed(flows, 'flows')}"
        return f"{subject} are {where}; {on_errors}."
    only_by_chance = int(np.count_nonzero(known & ~inside))
    where = f"inside the ranges of {model} for all {int(known.sum())} flows"
    if only_by_chance:
        where += f", {only_by_chance} of them only by the 95 % interval of {measured.model}"
    return f"{subject} are {where}; {on_errors}."


def _listed(texts: list[str], what: str) -> str:
    """The first ``SHOWN`` texts on groups or flows (``what``), and how many more there are."""
    more = f", and {len(texts) - SHOWN} {what} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
