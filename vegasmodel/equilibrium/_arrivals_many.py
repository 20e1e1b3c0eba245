"""Computes the queueing delay after each arrival of a Vegas flow, fast for up to a million flows.

``arrivals.arrive`` uses this module for more than ``arrivals.FAR_FIELD`` flows.

Flows arrive one after another at a link of capacity c. Flow i keeps a backlog of alpha_i packets.
It takes its first RTT for its baseRTT. So it over-estimates its propagation delay by x_i, the
queueing delay just before its arrival. Let Delta_i be the queueing delay after its arrival. Then
the rate of flow j is alpha_j/(Delta_i - x_j), and the rates add up to the capacity:

    sum_{j <= i} alpha_j/(Delta_i - x_j) = c,   where x_j = Delta_{j-1} and Delta_0 = 0.

As a function of Delta_i, term j has a pole at x_j. If all terms are added one by one, n arrivals
cost O(n^2). Here they cost O(n log n), because terms with poles far from Delta_i are added many at
a time (Greengard and Rokhlin 1987), in two ways:

* A cluster is a group of flows that arrived one after another. The poles of their terms lie in an
  interval. If Delta_i is far from this interval, ``NODES`` other terms replace the terms of the
  cluster. The new terms have the same sum up to rounding. Their poles are the interval's Chebyshev
  points.
* Arrivals are processed in blocks. During a block Delta_i usually changes little. So at the start
  of a block all terms with far poles, also those that replace clusters, are added up once, as a
  power series in the change of Delta_i since then. All arrivals of the block use this series. If
  Delta_i changes too much, a new series is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vegasmodel.equilibrium import secular
from vegasmodel.metrics import Floats
from vegasmodel.support.machine_code import compiled

BLOCK = 32  # number of flows of a block, and of the smallest clusters
NODES = 20  # terms that replace a cluster: 5.8^-20 is about two rounding errors
APART = 3.0  # half-widths of a cluster: from this distance of its middle on, NODES terms replace it
TERMS = 28  # number of terms of the power series: 4^-28 is below a rounding error
REACH = 4.0  # R in ``_series``, divided by the greatest change of Delta for which it is used
STEPS = 60  # most steps of Newton's method
LAST, ROUGH = 1e-13, 1e-12  # relative step that ends the method; greatest accepted after STEPS
_POINTS = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)  # Chebyshev's, on -1 .. 1
# the weights of these points in the barycentric formula of Lagrange interpolation
_WEIGHTS = np.sin(np.pi * (np.arange(NODES) + 0.5) / NODES) * (-1.0) ** np.arange(NODES)


def delays(alpha: Floats, c: float) -> tuple[Floats, Floats]:
    """The queueing delay in s after each of n Vegas flows has arrived at a link, and a residual.

    A flow takes the RTT at its arrival for its baseRTT. So it over-estimates the propagation RTT by
    the queueing delay at that time. After each arrival, the rates of the flows so far should add up
    to the capacity c, in pkt/s. The residual is the relative error, (sum of the rates - c)/c.
    ``alpha`` [n] are the flows' thresholds, the backlogs in packets that they keep. Both results
    have shape [n], in order of arrival. If the computation fails at an arrival, they are NaN from
    there on.
    """
    n = alpha.size
    found, residual = np.full(n, np.nan), np.full(n, np.nan)
    # [cluster, pole or weight, node]: terms that replace those of groups of flows (``_gather``)
    clusters = np.empty((2 * (n // BLOCK) + 64, 2, NODES))
    # ``gap`` is the last queueing delay less the arriving flow's over-estimate
    i, gap = 0, float(alpha[0]) / c
    while i < n:
        i, gap = _march(alpha, c, i, gap, found, residual, clusters)
        if i < n:  # digits cancel: the exact solver keeps them
            x = np.concatenate([np.zeros(1), found[:i]])
            state = secular.solve(alpha[: i + 1], x, c)
            if not state.gap > 0.0:
                break
            gap = float(state.gap)
            found[i], residual[i] = x[i] + gap, state.residual
            i += 1
    return found, residual


def _jit(function: Any) -> Any:
    """Compile a function of this module with Numba when it is first called."""
    return compiled(function, whole_program=True, error_model="numpy", nogil=True)


@_jit
def _spread(where: Floats, weight: Floats, nodes: Floats, low: float, high: float) -> None:
    """Replace a sum of many terms by a sum of ``NODES`` terms that is nearly equal.

    The sum is sum_j weight_j/(D - where_j), a function of the queueing delay D. The numbers
    where_j, its poles, lie in the interval from ``low`` to ``high``. The new poles s_k are the
    Chebyshev points of this interval. Their weights are A_k = sum_j weight_j l_k(where_j), where
    l_k is the Lagrange polynomial that is 1 at s_k and 0 at the other points. ``nodes`` receives
    s_k and A_k.

    The two sums are nearly equal for D far from the interval. The relative error is about
    rho^-NODES with rho = a + sqrt(a^2 - 1), where a is the distance of D from the interval's
    middle, divided by half the interval's length.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    part = np.empty(NODES)
    for k in range(NODES):
        nodes[0, k], nodes[1, k] = middle + half * _POINTS[k], 0.0
    for j in range(where.size):
        # barycentric formula: l_k(x) is w_k/(x - s_k), divided by the sum of these over all k
        total, at = 0.0, -1  # ``at``: the new pole at which where_j lies exactly, if there is one
        for k in range(NODES):
            away = where[j] - nodes[0, k]
            if away == 0.0:
                at = k
                break
            part[k] = _WEIGHTS[k] / away
            total += part[k]
        if at >= 0:
            nodes[1, at] += weight[j]
        else:
            for k in range(NODES):
                nodes[1, k] += weight[j] * part[k] / total


@_jit
def _place(level: int, k: int, leaves: int) -> int:
    """The row of a cluster in the table of all clusters.

    A cluster of level L consists of 2^L blocks of flows. ``k`` is its number among the clusters of
    its level, and ``leaves`` is the number of whole blocks. The table lists the clusters of level 0
    first, then those of level 1, and so on.
    """
    row = k
    for one in range(level):
        row += leaves >> one
    return row


@_jit
def _gather(alpha: Floats, found: Floats, i: int, leaves: int, clusters: Floats) -> None:
    """Write all clusters whose last flow is flow i - 1 into the table ``clusters``.

    A cluster is a group of flows that arrived one after another. It has 2^L blocks of ``BLOCK``
    flows, with L = 0, 1, 2, ... (``_place``). The sum of the rates of its flows is a function of
    the queueing delay D, with the term weight/(D - pole) for each flow. For each cluster the table
    holds the poles and the weights of ``NODES`` other terms, which have nearly the same sum
    (``_spread``). These terms are fewer than the flows, so later arrivals cost less time.

    The number i is a multiple of ``BLOCK``. So the smallest cluster is the block of flows before
    flow i. Each larger one is made from two clusters of half its size. ``found[j]`` is the queueing
    delay after the arrival of flow j. It is also the pole of flow j + 1, which arrives next.
    """
    k = i // BLOCK - 1  # number of the cluster among those of its level
    first = i - BLOCK
    x = np.zeros(BLOCK)  # the poles of the block's flows
    for j in range(BLOCK):
        x[j] = found[first + j - 1] if first + j else 0.0
    _spread(x, alpha[first:i], clusters[_place(0, k, leaves)], x[0], x[-1])
    level = 0
    while k % 2 == 1:
        one, two = clusters[_place(level, k - 1, leaves)], clusters[_place(level, k, leaves)]
        level, k = level + 1, k // 2
        first = i - (BLOCK << level)
        where, weight = np.concatenate((one[0], two[0])), np.concatenate((one[1], two[1]))
        low = found[first - 1] if first else 0.0
        _spread(where, weight, clusters[_place(level, k, leaves)], low, x[-1])


@_jit
def _add(series: Floats, weight: float, away: float, radius: float) -> None:
    """Add the term of one pole to the coefficients of the power series of ``_series``.

    The term is weight/(D - pole) at the queueing delay D. ``away`` is the pole's distance from the
    delay ``ref`` about which the series is expanded, and ``radius`` is R.
    """
    part, ratio = weight / away, radius / away
    for m in range(TERMS):
        series[m] += part
        part *= ratio


@_jit
def _series(
    alpha: Floats, found: Floats, n_far: int, ref: float, radius: float, leaves: int,
    clusters: Floats, series: Floats,
) -> None:  # fmt: skip
    """Compute a power series for the sum of the rates of the first ``n_far`` flows.

    At the queueing delay ref + d these rates add up to

        sum_j alpha_j/(ref + d - x_j) = sum_m (-d/R)^m T_m.

    alpha_j is the threshold of flow j, x_j is its over-estimate of baseRTT, and R is ``radius``.
    The coefficients, T_m = sum_j alpha_j R^m/(ref - x_j)^(m+1), go into ``series``. Each x_j is
    more than R below ``ref``, so the terms of the series fall as 4^-m for d <= R/4.

    To save time, flows that arrived one after another are added as a cluster. ``_gather`` has
    computed ``NODES`` terms that replace the terms of its flows. The farther the x_j of a cluster
    are from ``ref``, the more flows the cluster may have. Flows whose x_j are too near to ``ref``
    are added one by one.
    """
    series[:] = 0.0
    end = n_far  # the flows from ``end`` on have been added
    while end > 0:
        # the level of the largest cluster of flows before ``end`` that is far enough from ``ref``
        size, best = 1, -1
        while end % (BLOCK * size) == 0 and end >= BLOCK * size:
            first = end - BLOCK * size
            low, high = found[first - 1] if first else 0.0, found[end - 2]
            if ref - 0.5 * (low + high) < APART * 0.5 * (high - low):
                break
            best, size = best + 1, 2 * size
        if best < 0:
            end -= 1
            _add(series, alpha[end], ref - (found[end - 1] if end else 0.0), radius)
            continue
        nodes = clusters[_place(best, end // (BLOCK << best) - 1, leaves)]
        for k in range(NODES):
            _add(series, nodes[1, k], ref - nodes[0, k], radius)
        end -= BLOCK << best


@_jit
def _sums(
    alpha: Floats, found: Floats, first: int, i: int, now: float, gap: float
) -> tuple[float, float]:
    """The sum of the rates of the flows ``first`` to ``i``, and its derivative times -1.

    Flow i has just arrived. The queueing delay was ``now`` before it arrived, and is ``now + gap``
    after it. ``found[j]`` is the queueing delay after the arrival of flow j; flow j + 1
    over-estimates its baseRTT by this delay. The derivative is with respect to ``gap``.
    """
    total = alpha[i] / gap
    slope = total / gap
    for j in range(first, i):
        part = 1.0 / (now - (found[j - 1] if j else 0.0) + gap)
        total += alpha[j] * part
        slope += alpha[j] * part * part
    return total, slope


@_jit
def _range_of_series(found: Floats, i: int, ref: float) -> tuple[float, int]:
    """Which flows the next power series contains, and for which queueing delays it is meant.

    The series (``_series``) has the sum of the rates of the first flows, as a function of the
    queueing delay. It is made when flow i arrives, at the queueing delay ``ref``. ``found[j]`` is
    the queueing delay after the arrival of flow j, and the pole of the rate of flow j + 1.

    The series is meant for delays that exceed ``ref`` by up to 1.5 times the growth of the delay
    in the last block of arrivals. Returns R, which is ``REACH`` times this excess, and the number
    of the first flows whose poles lie more than R below ``ref``.
    """
    back = max(i - BLOCK, 0)
    radius = REACH * 1.5 * (ref - (found[back - 1] if back else 0.0))
    if ref > radius:
        return radius, min(int(np.searchsorted(found[:i], ref - radius)) + 1, i)
    return radius, 0


@_jit
def _plus_series(
    series: Floats, d: float, radius: float, total: float, slope: float
) -> tuple[float, float]:
    """Add the power series of ``_series`` at the queueing delay ref + d to a sum of rates.

    ``total`` is the sum of the rates that the series leaves out, and ``slope`` the derivative of
    this sum times -1. The results are the same for all rates. ``radius`` is R.
    """
    power = 1.0
    for m in range(TERMS):
        total += series[m] * power
        if m + 1 < TERMS:
            slope += series[m + 1] * (m + 1) * power / radius
        power *= -d / radius
    return total, slope


@_jit
def _march(
    alpha: Floats, c: float, i: int, gap: float, found: Floats, residual: Floats, clusters: Floats
) -> tuple[int, float]:
    """Find the queueing delay after each arrival of a flow, from flow i on.

    The delay is the one at which the rates of the flows so far add up to the capacity ``c``.
    ``alpha`` are the backlogs in packets that the flows keep. The queueing delays go into
    ``found``, and the relative errors of the sums of the rates into ``residual``. The unknown is
    the gap: the queueing delay less the arriving flow's over-estimate of baseRTT. Newton's method
    begins with the value ``gap``.

    To save time, the rates of the first ``n_far`` flows are not added one by one: a power series
    gives their sum (``_series``). ``clusters`` is the table from which it is computed. A new series
    is made after each block of arrivals, and when the delay is too far from ``ref``, the delay at
    which the series was made.

    The search stops at an arrival if Newton's method does not converge there, because too many
    digits cancel. Returns the index of this arrival, or the number of flows if there is none. The
    second result is the last gap.
    """
    n = alpha.size
    leaves = n // BLOCK  # whole blocks of flows
    series, n_far, ref, radius = np.zeros(TERMS), 0, 0.0, 0.0
    no_series = True
    while i < n:
        now = found[i - 1] if i else 0.0  # the queueing delay before flow i arrives
        if i and i % BLOCK == 0:
            _gather(alpha, found, i, leaves, clusters)
        too_far = n_far > 0 and REACH * (now + gap - ref) > radius
        if i and (no_series or i % BLOCK == 0 or too_far):
            ref, no_series = now, False
            radius, n_far = _range_of_series(found, i, ref)
            _series(alpha, found, n_far, ref, radius, leaves, clusters, series)
        first, step = n_far, np.inf  # the rates of the flows from ``first`` on are added one by one
        total = np.nan
        for _ in range(STEPS):
            d = now + gap - ref
            if first and REACH * d > radius:  # too far for the series: add all rates one by one
                first = 0
            total, slope = _sums(alpha, found, first, i, now, gap)
            if first:
                total, slope = _plus_series(series, d, radius, total, slope)
            # Newton's method for 1/total = 1/c, because 1/total is almost linear in the gap
            step = (total - c) * total / (c * slope)
            gap = max(gap + step, 0.5 * gap)
            if abs(step) <= LAST * gap:
                break
        if not abs(step) <= ROUGH * gap:
            return i, gap
        found[i], residual[i] = now + gap, total / c - 1.0
        i += 1
    return i, gap
