"""Chooses the values that a search tries: some over the whole range, then more near the target.

For example, ``design`` finds the buffer at which a flow's share of the throughput is 30 %. The
buffer is then the field, the share is the quantity, and 30 % is the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel import measurement
from vegasmodel.metrics import Floats
from vegasmodel.study.search import sides
from vegasmodel.study.search.tried import Tried

__all__ = ["scan"]

# how many values are tried first, over the whole range; a model that takes longer gets fewer
FIRST_VALUES = {
    "rounds": 13,
    "fluid": 33,
    **dict.fromkeys(measurement.ENGINES, 9),
}
FIRST_VALUES_OF_OTHERS = 65
# A distance from the target that changes by a smaller fraction has only a rounding error.
ROUNDING = 1e-9
# How often values are added where the quantity turns back before the target (``_values_at_turns``).
# For ``rounds``, and if runs are random, they are added once.
TURN_ROUNDS = 4


def scan(tried: Tried) -> None:
    """Evaluate the model over the field's range, and near each place where it crosses the target.

    The model crosses the target between two values of the field if its quantity, such as a share,
    is below the target at one of them and above it at the other.
    """
    number = FIRST_VALUES.get(tried.model, FIRST_VALUES_OF_OTHERS)
    tried.evaluate(tried.range.values(number, tried.whole_numbers))
    if tried.model not in measurement.ENGINES:  # where each value takes long
        once = tried.model == "rounds" or any(tried.half_width_at.values())
        for _ in range(1 if once else TURN_ROUNDS):
            tried.evaluate(_values_at_turns(tried))
    _narrow_crossings(tried)
    while _complete_runs(tried):
        _narrow_crossings(tried)


def _values_at_turns(tried: Tried) -> Floats:
    """New values to try where the model's quantity comes near the target without crossing it.

    In such a place, the quantity at three neighbouring values lies on the same side of the target.
    At the middle value it is at least as near to the target as at the other two. It is nearer than
    at one of them by more than a rounding error (``ROUNDING``). The new values lie between the
    middle value and its neighbours, because the quantity may reach the target there.
    """
    values, differences = tried.values, tried.differences
    new: list[float] = []
    for i in range(1, values.size - 1):
        # the distances from the target at the three values; negative on the other side of it
        left, middle, right = np.sign(differences[i]) * differences[i - 1 : i + 2]
        finite = np.isfinite([left, middle, right]).all()
        nearest = 0 < middle <= min(left, right) and middle < (1 - ROUNDING) * max(left, right)
        if finite and nearest:
            for low, high in ((values[i - 1], values[i]), (values[i], values[i + 1])):
                new += np.linspace(low, high, 6)[1:-1].tolist()  # four values between them
    return tried.range.rounded(np.array(new), tried.whole_numbers)


def _narrow_crossings(tried: Tried) -> None:
    """Narrow the interval around each place where the model's quantity crosses the target.

    The results are in ``tried``, which keeps all values that are evaluated.
    """
    if tried.whole_numbers:
        _narrow_to_integers(tried)
        return
    # the indices of two neighbouring values; pairs at which chance decides the side are left out
    chance = sides.by_chance(tried)
    pairs = [pair for pair in sides.crossings(tried) if not chance[list(pair)].any()]
    if not pairs:
        return
    from scipy.optimize import elementwise

    def side(x: NDArray[Any]) -> Floats:
        """The model's quantity minus the target, at the values x of the field.

        The result is 0 where chance may put the quantity on either side of the target
        (``by_chance``), so that the root finder stops there.
        """
        differences = tried.evaluate(x)
        chance = np.isin(x, tried.values[sides.by_chance(tried)])
        return np.where(chance, 0.0, differences)

    a = np.array([tried.values[i] for i, _ in pairs])
    b = np.array([tried.values[j] for _, j in pairs])
    # the relative width of an interval at which the search ends: finer steps would be noise if the
    # model counts packets or makes random runs; otherwise it is about the precision of a float
    coarse = tried.model in ("rounds", *measurement.ENGINES) or any(tried.half_width_at.values())
    width = 1e-4 if coarse else 4e-16
    root = elementwise.find_root(
        side,
        (a, b),
        tolerances={"xatol": 0.0, "xrtol": width, "fatol": 0.0, "frtol": 0.0},
        maxiter=100,
    )
    # [3, pair]: each root, and the two ends of the last interval around it. They are evaluated too,
    # except for pairs where the search has found no root.
    found = np.stack([root.x, *root.bracket])
    tried.evaluate(found[:, np.isfinite(root.x)].ravel())


def _narrow_to_integers(tried: Tried) -> None:
    """Search for neighbouring whole numbers between which the quantity crosses the target.

    At first, the tried numbers have gaps between them. Each gap over which the quantity crosses the
    target is narrowed in steps. In each step the model is evaluated at two numbers inside the gap.
    In the first step, interpolation estimates the place of the crossing, and the two numbers are
    the whole numbers beside this place. In later steps, they divide the gap into thirds.
    """
    interpolated = False  # whether the first step, with the interpolation, is done
    while gaps := [
        (a, b) for a, b in sides.crossings(tried) if tried.values[b] - tried.values[a] > 1
    ]:
        to_try: list[float] = []
        for left, right in gaps:
            a, b = tried.values[left], tried.values[right]
            if interpolated:
                to_try += [a + (b - a) / 3, b - (b - a) / 3]
                continue
            # where a straight line through the two results crosses the target, as a part of the gap
            part = tried.differences[left] / (tried.differences[left] - tried.differences[right])
            root = a * (b / a) ** part if tried.range.log else a + (b - a) * part
            to_try += [min(max(whole, a + 1), b - 1) for whole in (np.floor(root), np.ceil(root))]
        interpolated = True
        tried.evaluate(tried.range.rounded(np.array(to_try), whole=True), all_runs=True)


def _complete_runs(tried: Tried) -> bool:
    """Make all runs of ``rounds`` at each value of the field that may be a solution.

    At some values ``rounds`` made only a few runs, because these already showed on which side of
    the target the mean of the quantity lies. A solution needs the mean of all runs. Returns whether
    any value that may be a solution had too few runs.
    """
    if tried.target.sense == "=":
        ends = [i for pair in sides.met(tried) for i in pair]
        ends += [sides.nearer(tried, *pair) for pair in sides.crossings(tried)]
    else:
        ends = [i for pair in sides.held(tried) for i in pair]
    few = np.array([i for i in dict.fromkeys(ends) if tried.values[i] in tried.side_only], np.intp)
    if few.size:
        tried.complete(few)
    return bool(few.size)
