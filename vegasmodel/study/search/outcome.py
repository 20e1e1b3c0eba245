"""Makes the result of the command ``design``: solutions, or intervals of values that meet a bound.

``design`` searches for the value of one field of a scenario at which a quantity reaches a target.
For example, it finds the buffer at which a flow's share of the throughput is 30 %.  The buffer is
then the field, the share is the quantity, and 30 % is the target.  The target may also be
a bound, such as a share of at least 30 %.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from vegasmodel.study import fields
from vegasmodel.study.scatter import run_rates, standard_error
from vegasmodel.study.search import sides, texts
from vegasmodel.study.search.tried import Tried
from vegasmodel.study.solutions import Interval, Solution

__all__ = ["intervals", "solutions"]


def solutions(tried: Tried) -> tuple[list[Solution], list[str]]:
    """The tried values of the field that are solutions, in rising order, and notes.

    At a solution the model's quantity, such as a share, equals the target or is near enough to it.
    A note tells of a jump without a solution: at two neighbouring values the quantity lies on
    different sides of the target, but at neither is it near enough.
    """
    found: dict[int, Solution] = {}  # index in ``tried.values`` -> the solution there
    notes = []
    for low, high in sides.met(tried):
        solution = _solution(tried, low, high)
        found[int(np.searchsorted(tried.values, solution.value))] = solution
    jumps: dict[int, list[str]] = {}  # index of a value -> texts on jumps past the target
    for left, right in sides.crossings(tried):
        nearest = sides.nearer(tried, left, right)
        if abs(tried.differences[nearest]) <= tried.within * tried.target.value:
            jumps.setdefault(nearest, []).append(texts.step(tried, left, right))
        else:
            notes.append(f"{tried.target.name} jumps {texts.step(tried, left, right)}")
    found |= {
        nearest: _nearest(tried, nearest, jump_texts) for nearest, jump_texts in jumps.items()
    }
    certain = set(found)  # solutions so far: the quantity meets the target or jumps across it
    # add values at which the quantity may equal the target, as far as the scatter of runs tells
    for i in np.flatnonzero(sides.by_chance(tried)).tolist():
        runs = len(run_rates(tried.predictions.get(tried.values[i])))
        note = f"the 95 % interval of its {runs} runs contains the target"
        found.setdefault(i, dataclasses.replace(_at(tried, i), note=note))
    groups = _groups_of_one(tried, sorted(found))
    return [_merged(tried, found, group, certain) for group in groups], notes


def intervals(tried: Tried) -> tuple[list[Solution], list[Interval]]:
    """The intervals of tried values of the field that meet a bound such as ``share:vegas>=0.3``.

    Returns the ends of the intervals, and the intervals.
    """
    chance, last = sides.by_chance(tried), tried.values.size - 1
    held = sides.held(tried)
    found = [
        Interval(
            low=float(tried.values[low]),
            high=float(tried.values[high]),
            below=float(tried.values[low - 1]) if low > 0 else None,
            above=float(tried.values[high + 1]) if high < last else None,
            unsure=int(chance[low : high + 1].sum()),
        )
        for low, high in held
    ]
    ends = dict.fromkeys(i for pair in held for i in pair)
    return [_at(tried, i) for i in ends], found


def _solution(tried: Tried, low: int, high: int) -> Solution:
    """Make one solution of successive tried values of the field that all meet the target.

    ``low`` and ``high`` are the indices of the first and the last of these values. The solution is
    the value at which the model's quantity, such as a share, is nearest to the target. If the
    values span a wide interval, the solution also has this interval and a note. In this case the
    scenario's own value of the field is the solution, if it is one of the tried values.
    """
    inside = range(low, high + 1)
    scenario_value = tried.field.of(tried.scenario)
    best = min(inside, key=lambda i: (abs(tried.differences[i]), tried.values[i]))
    wide = tried.values[high] - tried.values[low] > 1e-3 * abs(tried.values[high])
    if not wide:
        return _at(tried, best)
    of_scenario = [i for i in inside if tried.values[i] == scenario_value]
    text = texts.with_unit(tried, tried.values[low]), texts.with_unit(tried, tried.values[high])
    note = f"every value tried from {text[0]} to {text[1]} meets the target"
    ends = (float(tried.values[low]), float(tried.values[high]))
    return dataclasses.replace(
        _at(tried, of_scenario[0] if of_scenario else best), note=note, interval=ends
    )


def _at(tried: Tried, i: int) -> Solution:
    """The solution at the tried value of the field with the index ``i``."""
    value = float(tried.values[i])
    return Solution(
        value=value,
        unit=tried.field.unit,
        achieved=float(tried.differences[i] + tried.target.value),
        exact=bool(sides.exact(tried)[i]),  # whether both are equal, except for rounding errors
        scenario=fields.put(tried.scenario, {tried.field: tried.field.check(value)}),
        achieved_se=standard_error(tried.target, tried.predictions.get(value)),
        broken=tried.broken.get(value, ()),
        utilization=tried.loads.get(value),
    )


def _nearest(tried: Tried, index: int, jumps: list[str]) -> Solution:
    """The solution at the tried value of the field with the index ``index``.

    Between this value and a neighbouring one, or both of its neighbours, the model's quantity, such
    as a share, jumps past the target.  ``jumps`` has a text on each such jump, for the solution's
    note.
    """
    what = (
        "no whole number meets it exactly" if tried.whole_numbers else "the result changes in steps"
    )
    if tried.half_widths[index] > 0 and not tried.whole_numbers:
        what = "the runs scatter"
    # such as "...: share:vegas goes from 0.2 at 3 pkt, below the target, to ..."
    note = f"{what}: {tried.target.name} goes {' and '.join(jumps)}"
    return dataclasses.replace(_at(tried, index), note=note)


def _groups_of_one(tried: Tried, found: list[int]) -> list[list[int]]:
    """Group the indices of solutions that may be one and the same, because the runs scatter.

    A solution is a tried value of the field. Two solutions are different if the model's quantity,
    such as a share, clearly moves away from the target between them. This is so if, at some tried
    value between them, the whole 95 % interval of the quantity is farther from the target than the
    intervals of both solutions. It is also so if the model gives no result at such a value.
    Otherwise the two may be one and the same.
    """
    # the 95 % interval of the quantity minus the target is ``tried.differences`` ± ``half_widths``
    half_widths = tried.half_widths
    groups: list[list[int]] = []
    for i in found:
        if groups and half_widths[i] > 0:
            before, between = groups[-1][-1], slice(groups[-1][-1] + 1, i)
            farthest = max(abs(tried.differences[k]) + half_widths[k] for k in (before, i))
            with np.errstate(invalid="ignore"):  # a difference is NaN if the model gives no result
                clearly_away = np.isnan(tried.differences) | (
                    np.abs(tried.differences) - half_widths > farthest
                )
            if half_widths[before] > 0 and not clearly_away[between].any():
                groups[-1].append(i)
                continue
        groups.append([i])
    return groups


def _merged(
    tried: Tried, found: dict[int, Solution], group: list[int], certain: set[int]
) -> Solution:
    """Merge solutions that may be one and the same; the result has the interval of their values.

    ``group`` has the indices of the group, which ``_groups_of_one`` has found. The result is the
    solution at which the quantity is nearest to the target. ``certain`` has the indices of the
    solutions at which the quantity meets the target or jumps across it. At all other solutions only
    its 95 % interval contains the target. If the group has solutions in ``certain``, only these are
    compared.
    """
    best = min(group, key=lambda i: (i not in certain, abs(tried.differences[i])))
    if len(group) == 1:
        return found[best]
    ends = (float(tried.values[group[0]]), float(tried.values[group[-1]]))
    first, last = (texts.with_unit(tried, end) for end in ends)
    note = f"{found[best].note}; " if found[best].note else ""
    note += f"the search found {len(group)} solutions"
    note += f", {first} and {last}" if len(group) == 2 else f" from {first} to {last}"
    note += f"; they may be one: {tried.target.name} is not clearly farther from the target at any "
    note += "value between them"
    return dataclasses.replace(found[best], note=note, interval=ends)
