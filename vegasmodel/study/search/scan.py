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

SCAN = {  # values tried first; with other models SCAN_POINTS
    "rounds": 13,
    "fluid": 33,
    **dict.fromkeys(measurement.ENGINES, 9),
}
SCAN_POINTS = 65
FLAT = 1e-9  # fraction of a distance from the target: a smaller change of it is a rounding error
TURNS = 4  # how often values are added where the quantity turns back (``_turns``); ``rounds``: once


def scan(tried: Tried) -> None:
    """Evaluate the model over the field's range, and near each place where it crosses the target.

    The model crosses the target between two values of the field if its quantity, such as a share,
    is below the target at one of them and above it at the other.
    """
    tried.evaluate(tried.range.values(SCAN.get(tried.model, SCAN_POINTS), tried.whole))
    if tried.model not in measurement.ENGINES:  # where each value takes long
        for _ in range(1 if tried.model == "rounds" or any(tried.halves.values()) else TURNS):
            tried.evaluate(_turns(tried))
    _follow(tried)
    while _settle(tried):
        _follow(tried)


def _turns(tried: Tried) -> Floats:
    """New values to try where the model's quantity comes near the target without crossing it.

    In such a place, the quantity at three neighbouring values lies on the same side of the target.
    At the middle value it is at least as near to the target as at the other two. It is nearer than
    at one of them by more than a rounding error (``FLAT``). The new values lie between the middle
    value and its neighbours, because the quantity may reach the target there.
    """
    x, y = tried.x, tried.y
    new: list[float] = []
    for i in range(1, x.size - 1):
        # the distances from the target at the three values; negative on the other side of it
        a, b, c = np.sign(y[i]) * y[i - 1 : i + 2]
        if np.isfinite([a, b, c]).all() and 0 < b <= min(a, c) and b < (1 - FLAT) * max(a, c):
            for low, high in ((x[i - 1], x[i]), (x[i], x[i + 1])):
                new += np.linspace(low, high, 6)[1:-1].tolist()
    return tried.range.rounded(np.array(new), tried.whole)


def _follow(tried: Tried) -> None:
    """Narrow the interval around each place where the model's quantity crosses the target."""
    if tried.whole:
        _follow_integers(tried)
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
        chance = np.isin(x, tried.x[sides.by_chance(tried)])
        return np.where(chance, 0.0, differences)

    a = np.array([tried.x[i] for i, _ in pairs])
    b = np.array([tried.x[j] for _, j in pairs])
    # the relative width of an interval at which the search ends; finer steps would be noise if the
    # model counts packets or makes random runs
    coarse = tried.model in ("rounds", *measurement.ENGINES) or any(tried.halves.values())
    width = 1e-4 if coarse else 4e-16
    root = elementwise.find_root(
        side,
        (a, b),
        tolerances={"xatol": 0.0, "xrtol": width, "fatol": 0.0, "frtol": 0.0},
        maxiter=100,
    )
    # [3, pair] each root, and the two ends of the last interval around it; a failed search is left
    # out
    found = np.stack([root.x, *root.bracket])
    tried.evaluate(found[:, np.isfinite(root.x)].ravel())


def _follow_integers(tried: Tried) -> None:
    """Search for neighbouring whole numbers between which the quantity crosses the target.

    At first, the tried numbers have gaps between them. Each gap over which the quantity crosses the
    target is narrowed in steps. In each step the model is evaluated at two numbers inside the gap.
    In the first step, interpolation estimates the place of the crossing, and the two numbers are
    the whole numbers beside this place. In later steps, they divide the gap into thirds.
    """
    guessed = False  # whether the first step, with the interpolation, is done
    while gaps := [(a, b) for a, b in sides.crossings(tried) if tried.x[b] - tried.x[a] > 1]:
        ask: list[float] = []
        for left, right in gaps:
            a, b = tried.x[left], tried.x[right]
            if guessed:
                ask += [a + (b - a) / 3, b - (b - a) / 3]
                continue
            # where a straight line through the two results crosses the target, as a part of the gap
            part = tried.y[left] / (tried.y[left] - tried.y[right])
            root = a * (b / a) ** part if tried.range.log else a + (b - a) * part
            ask += [min(max(whole, a + 1), b - 1) for whole in (np.floor(root), np.ceil(root))]
        guessed = True
        tried.evaluate(tried.range.rounded(np.array(ask), whole=True), all_runs=True)


def _settle(tried: Tried) -> bool:
    """Make all runs of ``rounds`` at each value of the field that may be a solution.

    At some values ``rounds`` made only a few runs, because these already showed on which side of
    the target the mean of the quantity lies. A solution needs the mean of all runs. Returns whether
    any value that may be a solution had too few runs.
    """
    if tried.aim.sense == "=":
        ends = [i for pair in sides.met(tried) for i in pair]
        ends += [sides.nearer(tried, *pair) for pair in sides.crossings(tried)]
    else:
        ends = [i for pair in sides.held(tried) for i in pair]
    few = np.array([i for i in dict.fromkeys(ends) if tried.x[i] in tried.rough], np.intp)
    if few.size:
        tried.complete(few)
    return bool(few.size)
