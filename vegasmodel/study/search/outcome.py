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
    found: dict[int, Solution] = {}  # by the index of the solution in ``tried.x``
    notes = []
    for low, high in sides.met(tried):
        one = _solution(tried, low, high)
        found[int(np.searchsorted(tried.x, one.value))] = one
    steps: dict[int, list[str]] = {}  # jumps past the target, by the nearest value
    for left, right in sides.crossings(tried):
        near = sides.nearer(tried, left, right)
        if abs(tried.y[near]) <= tried.within * tried.aim.value:
            steps.setdefault(near, []).append(texts.step(tried, left, right))
        else:
            notes.append(f"{tried.aim.name} jumps {texts.step(tried, left, right)}")
    found |= {near: _nearest(tried, near, said) for near, said in steps.items()}
    across = set(found)  # solutions so far: the quantity meets the target or jumps across it
    # add values at which the quantity may equal the target, as far as the scatter of runs tells
    for i in np.flatnonzero(sides.by_chance(tried)).tolist():
        note = f"the 95 % interval of its {len(run_rates(tried.predictions.get(tried.x[i])))} runs "
        note += "contains the target"
        found.setdefault(i, dataclasses.replace(_at(tried, i), note=note))
    places = _places(tried, sorted(found))
    return [_merged(tried, found, place, across) for place in places], notes


def intervals(tried: Tried) -> tuple[list[Solution], list[Interval]]:
    """The intervals of tried values of the field that meet a bound such as ``share:vegas>=0.3``.

    Returns the ends of the intervals, and the intervals.
    """
    chance, last = sides.by_chance(tried), tried.x.size - 1
    held = sides.held(tried)
    found = [
        Interval(
            float(tried.x[low]),
            float(tried.x[high]),
            float(tried.x[low - 1]) if low > 0 else None,
            float(tried.x[high + 1]) if high < last else None,
            int(chance[low : high + 1].sum()),
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
    own = tried.field.of(tried.scenario)
    best = min(inside, key=lambda i: (abs(tried.y[i]), tried.x[i]))
    wide = tried.x[high] - tried.x[low] > 1e-3 * abs(tried.x[high])
    if not wide:
        return _at(tried, best)
    kept = [i for i in inside if tried.x[i] == own]
    text = texts.with_unit(tried, tried.x[low]), texts.with_unit(tried, tried.x[high])
    note = f"every value tried from {text[0]} to {text[1]} meets the target"
    ends = (float(tried.x[low]), float(tried.x[high]))
    return dataclasses.replace(_at(tried, kept[0] if kept else best), note=note, interval=ends)


def _at(tried: Tried, i: int) -> Solution:
    """The solution at the tried value of the field with the index ``i``."""
    value = float(tried.x[i])
    return Solution(
        value=value,
        unit=tried.field.unit,
        achieved=float(tried.y[i] + tried.aim.value),  # ``y`` is the quantity minus the target
        exact=bool(sides.exact(tried)[i]),  # whether both are equal, except for rounding errors
        scenario=fields.put(tried.scenario, {tried.field: tried.field.check(value)}),
        achieved_se=standard_error(tried.aim, tried.predictions.get(value)),
        broken=tried.broken.get(value, ()),
        utilization=tried.loads.get(value),
    )


def _nearest(tried: Tried, near: int, steps: list[str]) -> Solution:
    """The solution at the tried value of the field with the index ``near``.

    Between this value and a neighbouring one, or both of its neighbours, the model's quantity, such
    as a share, jumps past the target.  ``steps`` has a text on each such jump, for the solution's
    note.
    """
    what = "no whole number meets it exactly" if tried.whole else "the result changes in steps"
    if tried.half[near] > 0 and not tried.whole:
        what = "the runs scatter"
    note = f"{what}: {tried.aim.name} goes {' and '.join(steps)}"  # "goes from 0.2 at 3 pkt to ..."
    return dataclasses.replace(_at(tried, near), note=note)


def _places(tried: Tried, found: list[int]) -> list[list[int]]:
    """Group the indices of solutions that may be one and the same, because the runs scatter.

    A solution is a tried value of the field. Two solutions are different if the model's quantity,
    such as a share, clearly moves away from the target between them. This is so if, at some tried
    value between them, the whole 95 % interval of the quantity is farther from the target than the
    intervals of both solutions. It is also so if the model gives no result at such a value.
    Otherwise the two may be one and the same.
    """
    # by tried value: the quantity minus the target is ``y``, and its 95 % interval y ± ``half``
    half = tried.half
    places: list[list[int]] = []
    for i in found:
        if places and half[i] > 0:
            before, between = places[-1][-1], slice(places[-1][-1] + 1, i)
            most = max(abs(tried.y[k]) + half[k] for k in (before, i))
            with np.errstate(invalid="ignore"):  # ``y`` is NaN if the model gives no result
                sure = np.isnan(tried.y) | (np.abs(tried.y) - half > most)
            if half[before] > 0 and not sure[between].any():
                places[-1].append(i)
                continue
        places.append([i])
    return places


def _merged(
    tried: Tried, found: dict[int, Solution], place: list[int], across: set[int]
) -> Solution:
    """Merge solutions that may be one and the same; the result has the interval of their values.

    ``place`` has the indices of the group, which ``_places`` has found. The result is the solution
    at which the quantity is nearest to the target. ``across`` has the indices of the solutions at
    which the quantity meets the target or jumps across it. At all other solutions only its 95 %
    interval contains the target. If the group has solutions in ``across``, only these are compared.
    """
    best = min(place, key=lambda i: (i not in across, abs(tried.y[i])))
    if len(place) == 1:
        return found[best]
    ends = (float(tried.x[place[0]]), float(tried.x[place[-1]]))
    first, last = (texts.with_unit(tried, end) for end in ends)
    note = f"{found[best].note}; " if found[best].note else ""
    note += f"the search found {len(place)} solutions"
    note += f", {first} and {last}" if len(place) == 2 else f" from {first} to {last}"
    note += f"; they may be one: {tried.aim.name} is not clearly farther from the target at any "
    note += "value between them"
    return dataclasses.replace(found[best], note=note, interval=ends)
