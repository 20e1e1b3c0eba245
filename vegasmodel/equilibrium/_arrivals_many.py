"""The recursion of ``arrivals.py`` for thousands of flows: far poles as one power series.

Delta_i solves sum_{j <= i} alpha_j/(Delta_i - x_j) = c with x_i = Delta_{i-1}: a sum over all the
earlier flows for each, so the time goes with the square.  But Delta creeps up, and the poles that
it left behind act together.  About ``ref``, for poles at ref - x_j >= R,

    sum alpha_j/(ref + d - x_j) = sum_m (-d/R)^m T_m,   T_m = sum_j alpha_j R^m/(ref - x_j)^(m+1)

whose terms fall as 4^-m while d <= R/4.  So flows arrive in blocks: one series for what is far, the
near poles one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import secular

Floats = NDArray[np.float64]

BLOCK = 128  # arrivals for which a series should do
TERMS = 28  # 4^-28 is below a rounding
REACH = 4.0  # R over the way that Delta goes in a block
STEPS = 60  # of Newton's method
LAST, ROUGH = 4e-16, 1e-12  # relative step that ends it, and one that will do
ORDERS = np.arange(TERMS)


def delays(alpha: Floats, c: float) -> Floats:
    """Delta after each arrival, s [n]; ``alpha`` packets [n], in order; NaN from a failure on."""
    n = alpha.size
    x, found = np.zeros(n), np.full(n, np.nan)
    series, ref, radius, near = np.zeros(TERMS), 0.0, 0.0, 0
    gap = float(alpha[0]) / c
    for i in range(n):
        x[i] = found[i - 1] if i else 0.0
        if i and (i % BLOCK == 0 or (near and REACH * (x[i] + gap - ref) > radius)):
            ref = x[i]
            radius = REACH * 1.5 * (ref - x[max(i - BLOCK, 0)])
            near = int(np.searchsorted(x[:i], ref - radius))
            series = _series(alpha[:near], ref - x[:near], radius)
        first, step = near, np.inf
        away, weight = x[i] - x[first : i + 1], alpha[first : i + 1]
        for _ in range(STEPS):
            if first and REACH * (x[i] + gap - ref) > radius:  # a leap: all poles one by one
                first = 0
                away, weight = x[i] - x[: i + 1], alpha[: i + 1]
            parts = 1.0 / (away + gap)
            rates = weight * parts
            total, slope = float(rates.sum()), float(rates @ parts)
            if first:
                powers = (-(x[i] + gap - ref) / radius) ** ORDERS
                total += float(series @ powers)
                slope += float((series[1:] * ORDERS[1:]) @ powers[:-1]) / radius
            # 1/total is almost a straight line in the gap
            step = (total - c) * total / (c * slope)
            gap = max(gap + step, 0.5 * gap)
            if abs(step) <= LAST * gap:
                break
        if not abs(step) <= ROUGH * gap:  # digits cancel: the exact solver keeps them
            gap = float(secular.solve(alpha[: i + 1], x[: i + 1], c).gap)
            if not gap > 0.0:
                break
        found[i] = x[i] + gap
    return found


def _series(alpha: Floats, away: Floats, radius: float) -> Floats:
    terms = np.empty(TERMS)
    part, ratio = alpha / away, radius / away
    for k in range(TERMS):
        terms[k] = part.sum()
        part *= ratio
    return terms
