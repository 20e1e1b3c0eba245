"""Says in words what the command ``design`` has found, and what is in doubt.

``design`` searches for the value of one field of a scenario at which a quantity reaches a target.
For example, it finds the buffer at which a flow's share of the throughput is 30 %.  The buffer is
then the field, the share is the quantity, and 30 % is the target.

The texts give the values tried with their units, jumps of the quantity across the target, reasons
to doubt a result, and the reason why no value meets the target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vegasmodel.study.ranges import other_threshold
from vegasmodel.study.scatter import half_interval, run_rates, standard_error
from vegasmodel.study.search import sides
from vegasmodel.study.search.tried import Tried

__all__ = ["doubts", "gaps", "hidden", "idle", "step", "why_none", "with_unit"]

# a fraction of the capacity: if the load is so much higher at another tried value, a note says so
LOAD_DIFFERENCE = 0.1


def with_unit(tried: Tried, value: float) -> str:
    """A value of the searched field as text, with its unit."""
    digits = 12 if tried.whole_numbers else 9
    return f"{value:.{digits}g} {tried.field.unit}".strip()


def step(tried: Tried, left: int, right: int) -> str:
    """A text on how the model's quantity, such as a share, jumps across the target.

    It does so between two neighbouring tried values of the field. ``left`` and ``right`` are the
    indices of these values.
    """

    def at(i: int) -> str:
        """The quantity at the tried value with the index ``i``, and this value, as text."""
        digits = 2 if tried.values[i] in tried.side_only else 6
        figure = tried.target.text(tried.differences[i] + tried.target.value, digits)
        return f"{figure} at {with_unit(tried, tried.values[i])}"

    rising = tried.differences[left] < 0
    side_left, side_right = ("below", "above") if rising else ("above", "below")
    return f"from {at(left)}, {side_left} the target, to {at(right)}, {side_right} it"


def doubts(tried: Tried, model: str, error: float | None, runs: int) -> list[str]:
    """A list with a note if ``runs`` runs are too few to show whether the model meets the target.

    They are too few if the 95 % confidence interval is too wide: half its width is more than
    ``tried.within`` times the target. ``error`` is the standard error of the target's quantity, and
    ``model`` the name of the model for the note.

    The list is empty if the runs suffice, or if ``error`` is ``None``.
    """
    if error is None or half_interval(error, runs) <= tried.within * tried.target.value:
        return []
    half = tried.target.text(half_interval(error, runs), 2)
    return [
        f"doubtful: the 95 % interval of {runs} runs of {model} is {half} to either side, "
        f"more than {100 * tried.within:g} % of the target; a larger `runs` under `[run]` in the "
        "file makes it narrower"
    ]


def idle(tried: Tried, value: float) -> list[str]:
    """A list with a note if the load at a value of the field is low; else an empty list.

    The load (utilization) is low if it is more than ``LOAD_DIFFERENCE`` below the highest load at
    any value tried. With a share, a ratio or Jain's index as the target, such a value may meet the
    target although the flows of the group get little.

    There is no note if the target is a utilization, or if the load is unknown.
    """
    load = tried.loads.get(value)
    if tried.target.kind == "utilization" or load is None:
        return []
    best = max(tried.loads, key=lambda each: tried.loads[each])
    if load > tried.loads[best] - LOAD_DIFFERENCE:
        return []
    text = f"the load of the link is low: {load:.3g} here, but {tried.loads[best]:.3g} at "
    text += f"{best:.4g} {tried.field.unit}".strip()
    if tried.target.kind == "share":
        text += " (a share is one of all delivered bytes; throughput:GROUP is a target in bit/s)"
    return [text]


def hidden(tried: Tried, found: Sequence[float]) -> list[str]:
    """A text for each value of the field at which the scatter of the runs may hide a solution.

    ``found`` are the values of the known solutions. At a hidden solution, the 95 % confidence
    interval of the model's quantity contains the target. Values near a known solution or near a
    jump across the target are left out. Two values are near to each other unless the quantity
    clearly moves away from the target between them.
    """
    half = tried.half_widths
    distances = np.abs(tried.differences)
    known = [*np.flatnonzero(np.isin(tried.values, found)).tolist()]
    known += [i for pair in sides.crossings(tried) for i in pair]
    hidden_at: list[int] = []
    with np.errstate(invalid="ignore"):
        unsure = np.flatnonzero((distances <= half) & (half > 0))
    for i in sorted(unsure.tolist(), key=lambda i: float(distances[i])):
        # the values between this one and each known solution, jump, or hidden solution so far
        between = [slice(min(i, k) + 1, max(i, k)) for k in (*known, *hidden_at)]
        moves_away = [
            np.any(distances[part] - half[part] > distances[i] + half[i]) for part in between
        ]
        if all(moves_away):
            hidden_at.append(i)
    return [
        f"{tried.target.name} is {_answer(tried, i)}: the 95 % interval of these runs contains the "
        "target, so chance may hide a solution there; search with more runs (a larger `runs` under "
        "`[run]` in the file) and in a narrower range around it"
        for i in sorted(hidden_at)
    ]


def why_none(tried: Tried, jumps: list[str]) -> str:
    """Sentences that say why no value in the searched range meets the target.

    No full stop ends the last one. ``jumps`` are texts about places where the model's quantity
    jumps across the target.
    """
    aim, ends = tried.target, (tried.range.low, tried.range.high)
    span = f"{tried.field.name} from {with_unit(tried, ends[0])} to {with_unit(tried, ends[1])}"
    known = tried.differences[np.isfinite(tried.differences)] + aim.value
    if not known.size:
        return f"{tried.model} has no answer at any value of {span}: {_reason(tried)}"
    low, high = (aim.text(float(end)) for end in (known.min(), known.max()))
    first = f"{tried.model} was evaluated at {tried.differences.size} values of {span}"
    if known.size == 1:
        first += f" and has a result at one, with {aim.name} {low}"
    elif np.ptp(known) <= sides.EXACT * abs(known.max()):
        first += f": {aim.name} is {low} and does not depend on it"
    else:
        first += f": {aim.name} goes from {low} to {high}. {_nearest_value(tried)}"
    return ". ".join([first, *jumps, *gaps(tried), *_other_threshold(tried)])


def _other_threshold(tried: Tried) -> list[str]:
    """A text on how to vary alpha and beta together; an empty list if no search needs it.

    No search needs it if the flows have no thresholds, as Reno has none.
    """
    other = other_threshold(tried.scenario, tried.field)
    if other is None or not any(tried.scenario.flows[i].keeps_backlog for i in tried.field.indices):
        return []
    bound = "beta, which is at least" if tried.field.key == "beta" else "alpha, which is at most"
    limit = "alpha" if tried.field.key == "beta" else "beta"
    return [
        f"Only {bound} {limit} ({with_unit(tried, other)}), was varied; to vary both, write "
        "alpha = beta into the file, and solve for alpha"
    ]


def gaps(tried: Tried) -> list[str]:
    """A text on how many tried values have no result, and why; an empty list if all have one."""
    missing = int(np.isnan(tried.differences).sum())
    text = f"{tried.model} has no answer at {missing} of {tried.differences.size} values"
    return [f"{text}: {_reason(tried)}"] if missing else []


def _reason(tried: Tried) -> str:
    """The first reason why the model has no result at a tried value.

    If the model has throughputs at all tried values, the reason is that it lacks the target's
    quantity. For example, no share is known if all throughputs are 0.
    """
    return next(iter(tried.reasons), f"its prediction has no {tried.target.name}")


def _nearest_value(tried: Tried) -> str:
    """Sentences that say how near to the target the model came, if no value meets the target.

    They name the tried value at which the target's quantity, such as a share, is nearest. If the
    95 % confidence interval of the quantity at this value contains the target, they say that
    chance may have hidden a solution. No full stop ends the last one.
    """
    near = int(np.nanargmin(np.abs(tried.differences)))
    text, half = f"The nearest is {_answer(tried, near)}", float(tried.half_widths[near])
    if abs(tried.differences[near]) <= half:
        runs = len(run_rates(tried.predictions.get(float(tried.values[near]))))
        half_text, wanted = tried.target.text(half, 2), tried.target.text(tried.target.value)
        text += (
            f". The 95 % interval of its {runs} runs ({half_text} to either side) contains the "
            f"target {wanted}, so chance may hide a solution. With more runs (a larger `runs` "
            "under `[run]` in the file) the result is more exact; with a larger `within` this "
            "value may count as a solution"
        )
    return text


def _answer(tried: Tried, i: int) -> str:
    """The model's quantity at tried value number ``i``, as text: ``0.38 ± 0.02 at 3 pkt``.

    The number after ``±`` is the standard error.  It is left out if it is unknown.
    """
    error = standard_error(tried.target, tried.predictions.get(float(tried.values[i])))
    text = tried.target.text(tried.differences[i] + tried.target.value)
    text += f" ± {tried.target.text(error, 2)}" if error else ""
    return f"{text} at {with_unit(tried, tried.values[i])}"
