"""Computes the flows' shares of all data delivered, and the shares' standard errors over runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.metrics import Floats, delivered

__all__ = ["share_errors", "shares_of"]


def share_errors(
    runs: ArrayLike, bits: ArrayLike | None, groups: NDArray[Any] | None
) -> Floats | float:
    """The standard error of each flow's share of all bytes delivered, by the jackknife, [flow].

    The shares are computed ``n`` times, each time without one of the ``n`` runs.  With ``T_k`` for
    a share without run ``k``, its standard error is (Efron, 1982, equation 3.5)

        se^2 = (n - 1)/n * sum_k (T_k - mean(T))^2

    This error takes into account that one flow gets what the others lose.  The standard errors of
    the throughputs do not show that.

    ``runs`` [run, flow] are the throughputs in pkt/s, and ``bits`` [flow] the bit/s that the flows
    deliver on average, from warm-up to end.  ``groups`` [flow] has the index of each flow's group.
    If it is given, the result is the standard error of the groups' shares, [group].  The result is
    a single NaN without the throughputs of at least two runs.  A flow without a throughput in a run
    delivers nothing in it.
    """
    rates = np.nan_to_num(np.asarray(runs, dtype=np.float64))
    n = len(rates)
    if n < 2 or bits is None:
        return math.nan
    mean = rates.mean(axis=0)
    # A flow's bits per packet, times the fraction of the time in which it is active: with this
    # factor, throughputs become proportional to the bytes delivered.
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = np.where(mean > 0, np.asarray(bits) / mean, 0.0)
    without = shares_of((rates.sum(axis=0) - rates) / (n - 1) * weight)  # T_k, [run, flow]
    if groups is not None:
        without = np.array([np.bincount(groups, each) for each in without])
    error: Floats = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return error


def shares_of(bits: Floats) -> Floats:
    """Each flow's share of all data delivered; ``bits`` [..., flow] are the flows' bit/s."""
    bits = delivered(bits)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = bits / bits.sum(axis=-1, keepdims=True)
    return share
