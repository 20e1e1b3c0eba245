"""Solves for Vegas's steady state on many links with few flows, several links at a time.

The innermost loops run over the links, so that the compiler can use vector instructions. The place
of a link in these loops is called its lane. For each link the solver adds the same terms in the
same order as ``_secular_kernel.find_gap``, so the result is the same to the last bit. This module
is only run as compiled code (``_compiled.py``).

``_secular_kernel.solve_case`` solves some links one by one instead:

- links with Linux flows, or with more than ``CHUNK`` flows;
- links for which this module finds no valid result;
- the last links, if fewer than ``FEWEST`` are left.

Many functions have the same arguments. ``width`` is the number of links that are solved together,
and ``n`` is the number of flows of each link. ``first`` is the number of the first of these links.
The array ``a`` holds the flows' thresholds. The array ``v`` holds the over-estimates of their
propagation delays. Both have the shape [flow, link]. ``c`` holds the capacities of all links. The
tables ``t`` (floats) and ``count`` (integers) hold the state of the iteration, such as the gap
(queueing delay minus largest over-estimate) and the number of steps. Both tables have one column
per link.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vegasmodel.equilibrium._secular_kernel import (
    CHUNK,
    DONE,
    HUGE,
    INVALID,
    PENDING,
    RESIDUAL,
    TINY,
    WIDTH,
    advance,
    distance,
    first_gap,
    prange,
    quotient,
    solve_case,
    two_sum,
)

NOT_LINUX = False  # for the argument ``linux`` of the kernel's functions: flows are not as in Linux
LANES = 64  # links that are solved together
FEWEST = 8  # links; fewer do not fill a vector of the processor
ROUNDS = 12  # most passes of each stage; links that need more are left to ``solve_case``
# Rows of the table ``t`` of floats; names in small letters are those of ``_secular_kernel``:
# - TOP, POLE, TOTAL, MOMENT: the numbers ``top``, ``pole``, ``total`` and ``moment`` of ``survey``;
#   later TOTAL, SLOPE and BEND are the three numbers of ``rough_sums``;
# - FLOOR, CEILING, LOWER, UPPER, G: ``floor`` to ``upper`` and ``g`` of ``advance``;
# - HIGH, LOW: the sum of all rates as two floats, the rounded sum and its error;
# - HEAD, EXCESS: ``head`` and ``f`` of ``advance``.
TOP, POLE, TOTAL, MOMENT, FLOOR, CEILING, LOWER, UPPER, G, SLOPE, BEND, HIGH, LOW = range(13)
HEAD, EXCESS, ROWS = 13, 14, 15
# rows of the table ``count`` of integers: 1 if the next step uses two floats per number, else 0;
# the number of passes so far; the status
EXACT, PASSES, STATUS = range(3)


def copy_flows(alpha: Any, x: Any, first: int, n: int, width: int, a: Any, v: Any) -> None:
    """Copy the flows of ``width`` links into the arrays ``a`` and ``v``, [flow, link].

    Each link has n flows, and ``first`` is the number of the first link. ``a`` receives the flows'
    thresholds, and ``v`` their over-estimates of baseRTT. A flow with the threshold 0 is absent.
    Its over-estimate is replaced by a very low number, so that it is never the largest.
    """
    for k in range(width):
        start = (first + k) * n
        for i in range(n):
            threshold = alpha[start + i]
            a[i, k] = threshold
            v[i, k] = x[start + i] if threshold != 0.0 else -HUGE


def survey_lanes(n: int, width: int, a: Any, v: Any, t: Any) -> None:
    """Write four numbers for each link into the table ``t``, which has one column per link.

    The iteration for the link's queueing delay needs these numbers to begin. Each flow of the link
    has a threshold and an over-estimate of baseRTT. The four numbers, and their rows in ``t``, are:

    - ``TOP``: the largest over-estimate, or NaN if an input is out of range;
    - ``POLE``: the sum of the thresholds of the flows with this over-estimate;
    - ``TOTAL``: the sum of all thresholds;
    - ``MOMENT``: the sum of threshold times over-estimate over all flows.

    ``_secular_kernel.survey`` does this for one link.

    Each of the ``width`` links has ``n`` flows. ``a[i, k]`` is the threshold of flow i of link k,
    and ``v[i, k]`` its over-estimate.
    """
    for k in range(width):
        t[TOP, k], t[POLE, k], t[TOTAL, k], t[MOMENT, k] = -math.inf, 0.0, 0.0, 0.0
    for i in range(n):
        for k in range(width):
            threshold, x_i, top, pole = a[i, k], v[i, k], t[TOP, k], t[POLE, k]
            t[TOTAL, k] += threshold
            t[MOMENT, k] += threshold * x_i
            pole = 0.0 if x_i > top else pole
            top = x_i if x_i > top else top  # a NaN stays
            t[POLE, k] = pole + (threshold if x_i == top else 0.0)
            in_range = (threshold == 0.0) | (threshold >= TINY) & (threshold <= HUGE)
            t[TOP, k] = top if in_range & (abs(x_i) <= HUGE) else math.nan


def rough_sums_lanes(n: int, width: int, a: Any, v: Any, t: Any) -> None:
    """Compute for each link a sum R of rates, and its derivatives in the form -R' and R''/2.

    R is the sum over all flows but those with the largest over-estimate of baseRTT. R' and R'' are
    the derivatives with respect to the gap, the queueing delay minus that over-estimate. All
    results are single floats. They go to the rows ``TOTAL`` (R), ``SLOPE`` (-R') and ``BEND``
    (R''/2) of the table ``t``, which has one column per link. Its rows ``TOP`` and ``G`` have the
    largest over-estimate and the gap. ``_secular_kernel.rough_sums`` does this for one link. Each
    of the ``width`` links has ``n`` flows. ``a[i, k]`` is the threshold of flow i of link k, and
    ``v[i, k]`` its over-estimate.
    """
    for k in range(width):
        t[TOTAL, k], t[SLOPE, k], t[BEND, k] = 0.0, 0.0, 0.0
    for i in range(n):
        for k in range(width):
            d = t[TOP, k] - v[i, k]
            inverse = 1.0 / (t[G, k] + d)
            rate = (a[i, k] if d > 0.0 else 0.0) * inverse
            fall = rate * inverse  # how fast the rate falls as the gap grows
            t[TOTAL, k] += rate
            t[SLOPE, k] += fall
            t[BEND, k] += fall * inverse


def precise_sums_lanes(n: int, width: int, a: Any, v: Any, t: Any) -> None:
    """Compute the sum of all rates for each link, as two floats.

    The two floats are the rounded sum and its error; together they have about twice the digits of
    one float. The function also computes what ``rough_sums_lanes`` does: the sum of the rates
    without the flows with the largest over-estimate of baseRTT, and the derivatives of this sum,
    with one float each. All results go to the table ``t``, which has one column per link: the sum
    of all rates to the rows ``HIGH`` and ``LOW``, the others as in ``rough_sums_lanes``.
    ``_secular_kernel.precise_sums`` does this for one link. Each of the ``width`` links has ``n``
    flows. ``a[i, k]`` is the threshold of flow i of link k, and ``v[i, k]`` its over-estimate.
    """
    for k in range(width):
        t[TOTAL, k], t[SLOPE, k], t[BEND, k] = 0.0, 0.0, 0.0
        t[HIGH, k], t[LOW, k] = 0.0, 0.0
    for i in range(n):
        for k in range(width):
            s, e = distance(t[TOP, k], v[i, k], t[G, k])
            q, q_low, inverse = quotient(a[i, k], s, e)
            t[HIGH, k], error = two_sum(t[HIGH, k], q)
            t[LOW, k] += error + q_low
            rate = q if v[i, k] < t[TOP, k] else 0.0
            fall = rate * inverse
            t[TOTAL, k] += rate
            t[SLOPE, k] += fall
            t[BEND, k] += fall * inverse


def write_rates_lanes(n: int, width: int, a: Any, v: Any, t: Any) -> None:
    """Compute the rates of ``n`` flows and their sum, for ``width`` links at once.

    ``a[i, k]`` holds Vegas's threshold alpha of flow i on link k, and ``v[i, k]`` its over-estimate
    of baseRTT. The rate of the flow replaces alpha in ``a[i, k]``. The table ``t`` has one column
    per link. The function reads from it the gap: the queueing delay minus the largest over-estimate
    of the link's flows. It writes into ``t`` the sum of the rates as two floats: row ``HIGH`` gets
    the rounded sum, and row ``LOW`` the rounding error. ``_secular_kernel.write_rates`` does this
    for one link.
    """
    for k in range(width):
        t[HIGH, k], t[LOW, k] = 0.0, 0.0
    for i in range(n):
        for k in range(width):
            rate = a[i, k] / (t[G, k] + (t[TOP, k] - v[i, k]))
            a[i, k] = rate
            t[HIGH, k], error = two_sum(t[HIGH, k], rate)
            t[LOW, k] += error


def start_iteration(c: Any, first: int, width: int, t: Any, count: Any) -> None:
    """Write into the table ``t`` the gap with which the iteration starts for each link.

    The table has one column per link. A link's gap is the queueing delay minus the largest
    over-estimate of baseRTT of its flows. It goes to the row ``G``. The rows ``FLOOR`` and
    ``LOWER`` both receive a lower bound of the gap at the steady state, and the rows ``CEILING``
    and ``UPPER`` an upper bound. (The iteration will narrow ``LOWER`` and ``UPPER``.) The table
    ``count`` receives the status of each link: PENDING, or INVALID if a number is out of range.
    There are ``width`` links, and ``c[first]`` is the capacity of the first of them.
    """
    for k in range(width):
        t[FLOOR, k], t[CEILING, k], t[G, k] = first_gap(
            NOT_LINUX, c[first + k], t[TOP, k], t[POLE, k], 0.0, t[TOTAL, k], t[MOMENT, k], 0.0
        )
        t[LOWER, k], t[UPPER, k] = t[FLOOR, k], t[CEILING, k]
        sound = (t[TOTAL, k] > 0.0) & (t[TOP, k] >= -HUGE) & (TINY <= c[first + k] <= HUGE)
        count[EXACT, k], count[PASSES, k] = 0, 0
        count[STATUS, k] = PENDING if sound else INVALID


def excess_lanes(c: Any, first: int, width: int, exact: bool, t: Any) -> None:
    """Compute for each link by how much the sum of all rates exceeds the capacity.

    The result goes to the row ``EXCESS`` of the table ``t``, which has one column per link. The
    rate of the flows with the largest over-estimate of baseRTT goes to the row ``HEAD``. If
    ``exact``, ``precise_sums_lanes`` has computed the sum of all rates. If not,
    ``rough_sums_lanes`` has computed the sum without these flows. ``c[first]`` is the capacity of
    the first of the ``width`` links.
    """
    for k in range(width):
        t[HEAD, k] = t[POLE, k] / t[G, k]
        if exact:
            excess, error = two_sum(t[HIGH, k], -c[first + k])
            t[EXCESS, k] = excess + (error + t[LOW, k])
        else:
            t[EXCESS, k] = (t[HEAD, k] - c[first + k]) + t[TOTAL, k]


def step_lanes(c: Any, first: int, n: int, width: int, exact: bool, t: Any, count: Any) -> int:
    """Take the solver's next step for each selected link, as ``advance`` does for one link.

    The solver searches for the queueing delay of each link step by step. It takes the first steps
    with one float per number, and the last steps with two. The caller has just computed the sums of
    the rates for all links with one of these two precisions: with two floats if ``exact`` is true.
    This call selects the links whose next step needs these sums. Returns how many of them need
    another step of the same precision; at 0 the caller goes on to the other precision, or ends.

    ``t`` and ``count`` are tables of floats and of integers, with a column for each of the
    ``width`` links. Each link has ``n`` flows. ``c[first]`` is the capacity of the first link.
    """
    unfinished = 0
    for k in range(width):
        if count[STATUS, k] == PENDING and count[EXACT, k] == exact:
            count[PASSES, k] += 1
            t[G, k], t[LOWER, k], t[UPPER, k], count[EXACT, k], count[STATUS, k] = advance(
                NOT_LINUX, c[first + k], n, t[FLOOR, k], t[CEILING, k], count[PASSES, k],
                t[G, k], t[LOWER, k], t[UPPER, k], exact,
                t[HEAD, k], t[TOTAL, k], t[SLOPE, k], t[BEND, k], t[EXCESS, k],
            )  # fmt: skip
            if count[STATUS, k] == PENDING and count[EXACT, k] == exact:
                unfinished += 1
    return unfinished


def solve_lanes(
    alpha: Any, x: Any, c: Any, first: int, n: int, width: int, rates: Any, floats: Any,
    integers: Any, a: Any, v: Any, t: Any, count: Any,
) -> None:  # fmt: skip
    """Find the steady states of ``width`` links together, from link number ``first`` on.

    Each link has n Vegas flows. A flow with the rate r and the over-estimate ``x`` of baseRTT keeps
    the backlog ``alpha`` = r (queueing delay - x). ``c`` are the capacities. The links are computed
    side by side, so that the processor can use vector instructions. ``rates``, ``floats`` and
    ``integers`` receive the results that ``solve_batch`` describes. ``a``, ``v``, ``t`` and
    ``count`` are scratch space.

    If a link has a number out of range or needs too many passes, its status is not DONE. The caller
    then solves this link again, alone.
    """
    copy_flows(alpha, x, first, n, width, a, v)
    survey_lanes(n, width, a, v, t)
    start_iteration(c, first, width, t, count)
    # the first steps use one float per number; the last steps (``exact``) use the sum of two
    for exact in (False, True):
        for _ in range(ROUNDS):
            if exact:
                precise_sums_lanes(n, width, a, v, t)
            else:
                rough_sums_lanes(n, width, a, v, t)
            excess_lanes(c, first, width, exact, t)
            if step_lanes(c, first, n, width, exact, t, count) == 0:
                break
    write_rates_lanes(n, width, a, v, t)
    for k in range(width):
        case, capacity = first + k, c[first + k]
        for i in range(n):
            rates[case * n + i] = a[i, k]
        excess, error = two_sum(t[HIGH, k], -capacity)  # the sum of the rates minus the capacity
        # the queueing delay, the gap, and the relative error of the sum of the rates
        floats[case, 0], floats[case, 1] = t[TOP, k] + t[G, k], t[G, k]
        floats[case, 2] = (excess + (error + t[LOW, k])) / capacity
        integers[case, 0], integers[case, 1] = count[PASSES, k], count[STATUS, k]


def solve_batch(
    alpha: Any, x: Any, rtt: Any, linux: bool, c: Any, n: int, rates: Any, floats: Any,
    integers: Any,
) -> None:  # fmt: skip
    """Find the steady states of all links, each with n Vegas flows.

    ``alpha``, ``x`` and ``rtt`` are the flows' thresholds, over-estimates of baseRTT and
    propagation delays: first those of the first link, then those of the second, and so on. ``c``
    has one capacity for each link. ``linux`` says whether the flows compute their backlogs as Linux
    does; only then ``rtt`` is used.

    The function writes the flows' rates into ``rates``. For each link it writes the queueing delay,
    the gap and the relative error of the sum of the rates into a row of ``floats``. It writes the
    number of passes over the flows and the status into a row of ``integers``. The gap is the
    queueing delay minus the largest over-estimate of baseRTT.
    """
    m = len(c)
    for block in prange((m + LANES - 1) // LANES):
        first, last = block * LANES, min(m, (block + 1) * LANES)
        width = last - first
        together = width >= FEWEST and n <= CHUNK and not linux
        if together:
            solve_lanes(
                alpha, x, c, first, n, width, rates, floats, integers,
                np.empty((n, LANES)), np.empty((n, LANES)), np.empty((ROWS, LANES)),
                np.empty((3, LANES), dtype=np.int64),
            )  # fmt: skip
        work = np.empty(((n + CHUNK - 1) // CHUNK, WIDTH))
        for k in range(first, last):  # one by one, if there is no valid result yet
            if not (together and integers[k, 1] == DONE and abs(floats[k, 2]) <= RESIDUAL):
                delay, gap, residual, passes, status = solve_case(
                    alpha, x, rtt, linux, c[k], k * n, n, rates, work
                )
                floats[k, 0], floats[k, 1], floats[k, 2] = delay, gap, residual
                integers[k, 0], integers[k, 1] = passes, status
