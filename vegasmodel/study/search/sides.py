"""Finds the tried values that meet the target, and those between which the quantity crosses it.

For example, ``design`` finds the buffer at which a flow's share of the throughput is 30 %. The
buffer is then the field, the share is the quantity, and 30 % is the target.

The functions return indices of ``Tried.values``, the sorted values that the search has tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.study.search.tried import Tried

__all__ = ["EXACT", "by_chance", "crossings", "exact", "held", "met", "nearer"]

EXACT = 1e-6  # fraction of the target: a quantity that differs by at most this meets the target


def exact(tried: Tried) -> NDArray[np.bool_]:
    """At which tried values of the field the model's quantity, such as a share, meets the target.

    The quantity meets the target if the two differ by at most the fraction ``EXACT`` of the target.
    """
    return np.abs(tried.differences) <= EXACT * tried.target.value


def by_chance(tried: Tried) -> NDArray[np.bool_]:
    """For each tried value of the field, whether the quantity may miss the target only by chance.

    If the runs of a simulator are random, the quantity, such as a share, is their mean.  It may
    then lie above or below the target only by chance.  We say so if two conditions hold: the 95 %
    confidence interval of the mean contains the target, and the mean differs from the target by at
    most the part ``tried.within`` of the target.

    Such a value counts as a solution.  If the target is a bound, such as a share of at least 30 %,
    it counts as a value that may meet the bound.  The result is false where the model has no
    result.  It is also false where there is no interval, because the model is not random or made a
    single run.
    """
    half = tried.half_widths  # half the width of the interval; 0 where there is none
    largest = np.minimum(half, tried.within * tried.target.value)
    with np.errstate(invalid="ignore"):
        # a difference, quantity minus target, is NaN where the model has no result; then the
        # comparison is false
        return np.asarray((half > 0) & (np.abs(tried.differences) <= largest))


def met(tried: Tried) -> list[tuple[int, int]]:
    """The ranges of neighbouring tried values of the field that all meet the target.

    A range is given by the indices of its first and last value.
    """
    return _runs(exact(tried))


def held(tried: Tried) -> list[tuple[int, int]]:
    """The ranges of neighbouring values of the field that meet a bound: ``share:vegas>=0.3``.

    A range is given by the indices of its first and last value.  It is not split at a value that
    may miss the bound only by chance, as the function ``by_chance`` decides.
    """
    slack = EXACT * tried.target.value
    with np.errstate(invalid="ignore"):  # ``tried.differences``, quantity minus target, may be NaN
        meets = (
            tried.differences >= -slack
            if tried.target.sense == ">="
            else tried.differences <= slack
        )
    ranges = []
    for low, high in _runs(meets | by_chance(tried)):
        # a range begins and ends at values that do meet the bound
        inside = low + np.flatnonzero(meets[low : high + 1])
        ranges += [(int(inside[0]), int(inside[-1]))] if inside.size else []
    return ranges


def crossings(tried: Tried) -> list[tuple[int, int]]:
    """The pairs of neighbouring tried values between which the model's quantity crosses the target.

    A pair holds the indices of the two values. At neither of them does the quantity, such as a
    share, meet the target.
    """
    side, close = np.sign(tried.differences), exact(tried)
    across = (side[:-1] * side[1:] < 0) & ~close[:-1] & ~close[1:]
    return [(int(i), int(i) + 1) for i in np.flatnonzero(across)]


def nearer(tried: Tried, left: int, right: int) -> int:
    """The one of two tried values at which the model's quantity is nearer to the target.

    ``left`` and ``right`` are the indices of the two values; one of them is returned.
    """
    return left if abs(tried.differences[left]) <= abs(tried.differences[right]) else right


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The indices of the first and the last entry of each unbroken sequence of true entries."""
    inside = np.concatenate([[False], mask, [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
