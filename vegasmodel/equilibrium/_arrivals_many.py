"""Computes the queueing delay after each arrival of a Vegas flow, fast for up to a million flows.

``arrivals.arrive`` uses this module for more than ``arrivals.MANY_FLOWS`` flows.

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
FAR = 3.0  # NODES terms replace a cluster at this distance of its middle, in half-widths, or more
TERMS = 28  # number of terms of the power series: 4^-28 is below a rounding error
REACH = 4.0  # a power series (``_series``) is used for changes of Delta up to its R over REACH
MAX_STEPS = 60  # most steps of Newton's method for one arrival
CONVERGED = 1e-13  # Newton's method ends when a step is at most this part of the gap
ACCEPTED = 1e-12  # after MAX_STEPS steps; if the last step is larger, the method has failed
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
    delta, residual = np.full(n, np.nan), np.full(n, np.nan)
    # [cluster, pole or weight, node]: terms that replace those of groups of flows
    # (``_write_clusters``)
    clusters = np.empty((2 * (n // BLOCK) + 64, 2, NODES))
    # ``gap`` is the last queueing delay less the arriving flow's over-estimate
    i, gap = 0, float(alpha[0]) / c
    while i < n:
        i, gap = _find_delays(alpha, c, i, gap, delta, residual, clusters)
        if i < n:  # digits cancel: the exact solver keeps them
            x = np.concatenate([np.zeros(1), delta[:i]])
            state = secular.solve(alpha[: i + 1], x, c)
            if not state.gap > 0.0:
                break
            gap = float(state.gap)
            delta[i], residual[i] = x[i] + gap, state.residual
            i += 1
    return delta, residual


def _jit(function: Any) -> Any:
    """Compile a function of this module with Numba when it is first called."""
    return compiled(function, whole_program=True, error_model="numpy", nogil=True)


@_jit
def _pole(delta: Floats, j: int) -> float:
    """The queueing delay x_j just before the arrival of flow j.

    The rate of the flow, alpha_j/(Delta - x_j), has a pole at the delay Delta = x_j. ``delta[i]``
    is the queueing delay after the arrival of flow i. The first flow finds no queue.
    """
    return delta[j - 1] if j else 0.0


@_jit
def _replace_terms(poles: Floats, weights: Floats, nodes: Floats, low: float, high: float) -> None:
    """Replace a sum of many terms by a sum of ``NODES`` terms that is nearly equal.

    The sum is sum_j weight_j/(D - pole_j), a function of the queueing delay D. Its poles lie in the
    interval from ``low`` to ``high``. The new poles s_k are the Chebyshev points of this interval.
    Their weights are A_k = sum_j weight_j l_k(pole_j), where l_k is the Lagrange polynomial that is
    1 at s_k and 0 at the other points. ``nodes`` has two rows, which receive s_k and A_k.

    The two sums are nearly equal for D far from the interval. The relative error is about
    rho^-NODES with rho = a + sqrt(a^2 - 1), where a is the distance of D from the interval's
    middle, divided by half the interval's length.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    new_poles, new_weights, quotient = nodes[0], nodes[1], np.empty(NODES)
    for k in range(NODES):
        new_poles[k], new_weights[k] = middle + half * _POINTS[k], 0.0
    for j in range(poles.size):
        # barycentric formula: l_k(x) is w_k/(x - s_k), divided by the sum of these over all k
        total, exact = 0.0, -1  # ``exact``: the number of the new pole that equals pole j, or -1
        for k in range(NODES):
            distance = poles[j] - new_poles[k]
            if distance == 0.0:
                exact = k
                break
            quotient[k] = _WEIGHTS[k] / distance
            total += quotient[k]
        if exact >= 0:
            new_weights[exact] += weights[j]
        else:
            for k in range(NODES):
                new_weights[k] += weights[j] * quotient[k] / total


@_jit
def _row(level: int, k: int, n_blocks: int) -> int:
    """The row of a cluster in the table of all clusters.

    A cluster of level L consists of 2^L blocks of flows. ``k`` is its number among the clusters of
    its level, and ``n_blocks`` is the number of whole blocks. The table lists the clusters of level
    0 first, then those of level 1, and so on.
    """
    row = k
    for lower_level in range(level):
        row += n_blocks >> lower_level  # number of clusters of this level
    return row


@_jit
def _write_clusters(alpha: Floats, delta: Floats, i: int, n_blocks: int, clusters: Floats) -> None:
    """Write all clusters whose last flow is flow i - 1 into the table ``clusters``.

    A cluster is a group of flows that arrived one after another. It has 2^L blocks of ``BLOCK``
    flows, with L = 0, 1, 2, ... (``_row``). The sum of the rates of its flows is a function of
    the queueing delay D, with the term weight/(D - pole) for each flow. For each cluster the table
    holds the poles and the weights of ``NODES`` other terms, which have nearly the same sum
    (``_replace_terms``). These terms are fewer than the flows, so later arrivals cost less time.

    The number i is a multiple of ``BLOCK``. So the smallest cluster is the block of flows before
    flow i. Each larger one is made from two clusters of half its size. ``delta[j]`` is the queueing
    delay after the arrival of flow j. It is also the pole of flow j + 1, which arrives next
    (``_pole``). ``n_blocks`` is the number of whole blocks of all flows.
    """
    k = i // BLOCK - 1  # number of the cluster among those of its level
    first = i - BLOCK
    x = np.zeros(BLOCK)  # the poles of the block's flows
    for j in range(BLOCK):
        x[j] = _pole(delta, first + j)
    _replace_terms(x, alpha[first:i], clusters[_row(0, k, n_blocks)], x[0], x[-1])
    level = 0
    while k % 2 == 1:  # cluster k of this level, and k - 1 before it, make one of the next level
        left_half = clusters[_row(level, k - 1, n_blocks)]
        right_half = clusters[_row(level, k, n_blocks)]
        # row 0 of a half has its poles, row 1 its weights
        poles = np.concatenate((left_half[0], right_half[0]))
        weights = np.concatenate((left_half[1], right_half[1]))
        level, k = level + 1, k // 2
        first = i - (BLOCK << level)
        low = _pole(delta, first)
        _replace_terms(poles, weights, clusters[_row(level, k, n_blocks)], low, x[-1])


@_jit
def _add_term(series: Floats, weight: float, away: float, radius: float) -> None:
    """Add the term of one pole to the coefficients of the power series of ``_series``.

    The term is weight/(D - pole) at the queueing delay D. ``away`` is the pole's distance from the
    delay ``ref`` about which the series is expanded, and ``radius`` is R.
    """
    part, ratio = weight / away, radius / away
    for m in range(TERMS):
        series[m] += part
        part *= ratio


@_jit
def _level_of_far_cluster(delta: Floats, end: int, ref: float) -> int:
    """The level L of the largest cluster that ends with flow ``end`` - 1 and is far from ``ref``.

    A cluster of level L has 2^L blocks of flows (``_row``). It is far if its ``NODES`` terms may
    replace those of its flows at the queueing delay ``ref`` (``FAR``). The result is -1 if no
    cluster ends with this flow, or if the smallest one is not far. ``delta[j]`` is the queueing
    delay after the arrival of flow j, and the pole of flow j + 1.
    """
    level, flows = -1, BLOCK
    while end % flows == 0 and end >= flows:
        low, high = _pole(delta, end - flows), delta[end - 2]  # the poles lie in low .. high
        if ref - 0.5 * (low + high) < FAR * 0.5 * (high - low):
            break
        level, flows = level + 1, 2 * flows
    return level


@_jit
def _series(
    alpha: Floats, delta: Floats, n_far: int, ref: float, radius: float, n_blocks: int,
    clusters: Floats, series: Floats,
) -> None:  # fmt: skip
    """Compute a power series for the sum of the rates of the first ``n_far`` flows.

    At the queueing delay ref + d these rates add up to

        sum_j alpha_j/(ref + d - x_j) = sum_m (-d/R)^m T_m.

    alpha_j is the threshold of flow j, x_j is its over-estimate of baseRTT, and R is ``radius``.
    The coefficients, T_m = sum_j alpha_j R^m/(ref - x_j)^(m+1), go into ``series``. Each x_j is
    more than R below ``ref``, so the terms of the series fall as 4^-m for d <= R/4.

    To save time, flows that arrived one after another are added as a cluster. ``_write_clusters``
    has computed ``NODES`` terms that replace the terms of its flows. The farther the x_j of a
    cluster are from ``ref``, the more flows the cluster may have. Flows whose x_j are too near to
    ``ref`` are added one by one. ``delta[j]`` is the queueing delay after the arrival of flow j.
    ``clusters`` is the table of all clusters, and ``n_blocks`` the number of whole blocks of flows.
    """
    series[:] = 0.0
    end = n_far  # the flows from ``end`` on have been added
    while end > 0:
        level = _level_of_far_cluster(delta, end, ref)
        if level < 0:
            end -= 1
            _add_term(series, alpha[end], ref - _pole(delta, end), radius)
            continue
        flows = BLOCK << level  # in the cluster
        nodes = clusters[_row(level, end // flows - 1, n_blocks)]
        for k in range(NODES):
            pole, weight = nodes[0, k], nodes[1, k]
            _add_term(series, weight, ref - pole, radius)
        end -= flows


@_jit
def _sums(
    alpha: Floats, delta: Floats, first: int, i: int, now: float, gap: float
) -> tuple[float, float]:
    """The sum of the rates of the flows ``first`` to ``i``, and its derivative times -1.

    Flow i has just arrived. The queueing delay was ``now`` before it arrived, and is ``now + gap``
    after it. ``delta[j]`` is the queueing delay after the arrival of flow j; flow j + 1
    over-estimates its baseRTT by this delay. The derivative is with respect to ``gap``.
    """
    total = alpha[i] / gap
    slope = total / gap
    for j in range(first, i):
        inverse = 1.0 / (now - _pole(delta, j) + gap)
        total += alpha[j] * inverse
        slope += alpha[j] * inverse * inverse
    return total, slope


@_jit
def _range_of_series(delta: Floats, i: int, ref: float) -> tuple[float, int]:
    """Which flows the next power series contains, and for which queueing delays it is meant.

    The series (``_series``) has the sum of the rates of the first flows, as a function of the
    queueing delay. It is made when flow i arrives, at the queueing delay ``ref``. ``delta[j]`` is
    the queueing delay after the arrival of flow j, and the pole of the rate of flow j + 1.

    The series is meant for delays that exceed ``ref`` by up to 1.5 times the growth of the delay
    in the last block of arrivals. Returns R, which is ``REACH`` times this excess, and the number
    of the first flows whose poles lie more than R below ``ref``.
    """
    back = max(i - BLOCK, 0)
    radius = REACH * 1.5 * (ref - _pole(delta, back))
    if ref > radius:
        return radius, min(int(np.searchsorted(delta[:i], ref - radius)) + 1, i)
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
def _find_delays(
    alpha: Floats, c: float, i: int, gap: float, delta: Floats, residual: Floats, clusters: Floats
) -> tuple[int, float]:
    """Find the queueing delay after each arrival of a flow, from flow i on.

    The delay is the one at which the rates of the flows so far add up to the capacity ``c``.
    ``alpha`` are the backlogs in packets that the flows keep. The queueing delays go into
    ``delta``, and the relative errors of the sums of the rates into ``residual``. The unknown is
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
    n_blocks = n // BLOCK  # whole blocks of flows
    series, n_far, ref, radius = np.zeros(TERMS), 0, 0.0, 0.0
    no_series = True
    while i < n:
        delay_before = _pole(delta, i)  # the queueing delay before flow i arrives
        if i and i % BLOCK == 0:
            _write_clusters(alpha, delta, i, n_blocks, clusters)
        too_far = n_far > 0 and REACH * (delay_before + gap - ref) > radius
        if i and (no_series or i % BLOCK == 0 or too_far):
            # make a new series about ``delay_before``
            ref, no_series = delay_before, False
            radius, n_far = _range_of_series(delta, i, ref)
            _series(alpha, delta, n_far, ref, radius, n_blocks, clusters, series)
        first, step = n_far, np.inf  # the rates of the flows from ``first`` on are added one by one
        total = np.nan
        for _ in range(MAX_STEPS):
            d = delay_before + gap - ref
            if first and REACH * d > radius:  # the delay is too far from ``ref`` for the series
                first = 0
            total, slope = _sums(alpha, delta, first, i, delay_before, gap)
            if first:
                total, slope = _plus_series(series, d, radius, total, slope)
            # Newton's method for 1/total = 1/c, because 1/total is almost linear in the gap
            step = (total - c) * total / (c * slope)
            gap = max(gap + step, 0.5 * gap)
            if abs(step) <= CONVERGED * gap:
                break
        if not abs(step) <= ACCEPTED * gap:
            return i, gap
        delta[i], residual[i] = delay_before + gap, total / c - 1.0
        i += 1
    return i, gap
