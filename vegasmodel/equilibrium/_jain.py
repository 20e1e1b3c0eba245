"""Computes the least and the greatest Jain index over the many equilibria of Vegas flows on a link.

There are many equilibria because Vegas keeps its window at any backlog in a range (``bands.py``).
Let Delta be the queueing delay, and x_i the over-estimate of flow i's propagation delay. The gap g
is Delta - max x. The backlog of flow i lies between a_i and b_i packets, and its rate r_i is
phi_i(g) times the backlog:

    l_i = a_i phi_i(g) <= r_i <= u_i = b_i phi_i(g)

In TCP Vegas as published phi_i = 1/(Delta - x_i).

Jain's index of n rates r_i with the sum c is c^2/(n sum r_i^2). So the index is least where the sum
of squares is greatest. At a given gap, the sum of squares is least if the rates are as equal as
their limits l_i and u_i allow. It is greatest if every rate except one is at a limit. So both the
least and the greatest sum are functions of g alone.

The search for the extremum of such a function divides the range of g into intervals.
``_least_squares`` and ``_most_squares`` compute bounds of the function's derivative in an interval.
If the bounds show that the derivative does not change its sign, the extremum is at an end of the
interval. Otherwise the interval is halved, at most ``_HALVINGS`` times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.metrics import Floats
from vegasmodel.stacks import find

Bools = NDArray[np.bool_]
MAX_FLOWS = 10  # greatest number of flows for which ``_families`` tries all sets of flows
_HALVINGS = 50  # most halvings of an interval of the gap
_MAX_TO_HALVE = 20_000  # greatest number of intervals that are halved in one step


@dataclass(frozen=True)
class _Limits:
    """The flows and their link: the arguments of ``jain_range``, which explains them.

    At a given queueing delay, the limits of a flow's backlog give the limits of its rate. ``linux``
    says whether the flows compute their backlogs as Linux does.
    """

    a: Floats  # [n] the least backlogs, packets
    b: Floats  # [n] the greatest backlogs, packets
    x: Floats  # [n] over-estimates of baseRTT, s
    c: float  # capacity, pkt/s
    rtt: Floats  # [n] propagation delays, s
    linux: bool

    def phi(self, g: Floats) -> tuple[Floats, Floats]:
        """The factors phi by which backlogs give rates, and the derivatives of phi times -1.

        The rate of flow i is phi_i times its backlog. With y_i = Delta - x_i, its over-estimate x_i
        and the queueing delay Delta,

            phi_i = 1/y_i,   in Linux phi_i = 1/(y_i (1 + y_i/baseRTT_i)).

        They are computed for m gaps, ``g`` [m]; both results have the shape [m, n]. A gap is Delta
        less the largest x. The derivatives are with respect to the gap.
        """
        y = g[:, None] + (self.x.max() - self.x)
        if not self.linux:
            return 1.0 / y, 1.0 / y**2
        base = self.rtt + self.x
        phi = 1.0 / (y * (1.0 + y / base))
        return phi, phi * (1.0 / y + 1.0 / (y + base))

    def gaps(self, edge: Floats) -> Floats:
        """The gap for each row of ``edge`` [m, n], which holds the n flows' backlogs in packets.

        The gap, in s, is the equilibrium's queueing delay less the flows' largest over-estimate of
        baseRTT. The result has shape [m].
        """
        variant = "linux" if self.linux else "paper"
        state = secular.solve(edge, self.x, self.c, rtt=self.rtt, variant=variant)
        return np.asarray(state.gap)


def jain_range(
    a: Floats, b: Floats, x: Floats, c: float, rtt: Floats, variant: str
) -> tuple[float, float]:
    """The least and greatest Jain index of n Vegas flows, over all equilibria of their link.

    In an equilibrium each flow's backlog lies between its entries of a and b [n], in packets. x [n]
    are the over-estimates of baseRTT in s, c is the capacity in pkt/s, and rtt [n] are the
    propagation delays in s. ``variant`` names the TCP implementation.

    Raises ``ValueError`` if an entry of a is 0, or if there are too many flows for ``_families``.
    The search for the least or the greatest index divides the range of the queueing delay into
    intervals, and halves those that may hold it. Raises ``RuntimeError`` if it must halve more than
    ``_MAX_TO_HALVE`` of them in one step.
    """
    if np.any(a == 0.0):
        raise ValueError(
            "a flow may rest without packets in the queue, and then get almost nothing; so Jain's "
            "index has no least value; a larger alpha gives it one"
        )
    limits, n = _Limits(a, b, x, c, rtt, find(variant).backlog_over_base), x.size
    # Jain's index is (sum r)^2/(n sum r^2), and the rates r add up to the capacity c
    greatest = 1.0 if _can_be_equal(limits) else c * c / (n * _least_squares(limits))
    return c * c / (n * _most_squares(limits)), greatest


def _can_be_equal(limits: _Limits) -> bool:
    """Whether there is an equilibrium in which all n flows have the same rate, c/n."""
    n, variant = limits.x.size, "linux" if limits.linux else "paper"
    # for each flow alone, the queueing delays at which it has the rate c/n with its least and with
    # its greatest backlog; at each delay in between, some allowed backlog gives this rate
    low, high = (
        secular.balance(
            edge[:, None], limits.x[:, None], limits.c / n, limits.rtt[:, None], variant
        ).delay
        for edge in (limits.a, limits.b)
    )
    return bool(low.max() <= high.min())


def _least_squares(limits: _Limits) -> float:
    """The least sum of squared rates over all equilibria; Jain's index is greatest there.

    Flow i's rate r_i lies between l_i = a_i phi_i(g) and u_i = b_i phi_i(g). Here g is the gap, the
    queueing delay less the largest over-estimate of baseRTT. phi_i(g) is the flow's rate per packet
    of backlog, and the backlog lies between a_i and b_i.

    The rates add up to the capacity. At a given gap the sum of squares is least if all rates are as
    near to one common rate, ``level``, as their bounds allow: r_i = clip(level, l_i, u_i). The
    derivative of this least sum (envelope theorem) is

        d(sum r^2)/dg = 2 sum (level - u_i)^+ b_i psi_i - 2 sum (l_i - level)^+ a_i psi_i,

    with psi_i = -dphi_i/dg, and (x)^+ the larger of x and 0.
    """
    extreme_gaps = limits.gaps(np.stack([limits.a, limits.b]))

    def parts(g: Floats) -> tuple[Floats, ...]:
        """At the gaps g: psi_i, (level - u_i)^+ and (l_i - level)^+, three arrays [m, n]."""
        phi, psi = limits.phi(g)
        low, high = limits.a * phi, limits.b * phi
        level = _level(low, high, limits.c)[:, None]
        return psi, np.maximum(level - high, 0.0), np.maximum(low - level, 0.0)

    def unsettled(_: Any, left: Floats, right: Floats) -> Bools:
        """Whether the derivative may have either sign between the gaps ``left`` and ``right``.

        As g grows, psi_i and (l_i - level)^+ fall, and (level - u_i)^+ rises. So the values at the
        two ends give bounds of the two sums in the derivative, ``rise`` and ``fall``.
        """
        psi_left, above_left, below_left = parts(left)
        psi_right, above_right, below_right = parts(right)
        most_rise = (above_right * limits.b * psi_left).sum(-1)
        least_rise = (above_left * limits.b * psi_right).sum(-1)
        most_fall = (below_left * limits.a * psi_left).sum(-1)
        least_fall = (below_right * limits.a * psi_right).sum(-1)
        return np.asarray((least_rise < most_fall) & (most_rise > least_fall))

    def squares(_: Any, g: Floats) -> Floats:
        """The least sum of squared rates at each of the gaps g."""
        phi, _unused = limits.phi(g)
        low, high = limits.a * phi, limits.b * phi
        return np.asarray((np.clip(_level(low, high, limits.c)[:, None], low, high) ** 2).sum(-1))

    return float(
        _values_with_extremum(
            unsettled, squares, np.zeros(1, dtype=int), extreme_gaps[:1], extreme_gaps[1:]
        ).min()
    )


def _level(low: Floats, high: Floats, c: float) -> Floats:
    """The common rate ``level`` for which the rates clip(level, low_i, high_i) add up to c.

    low_i and high_i are the bounds of flow i's rate, and c is the capacity. clip takes the number
    nearest to ``level`` between the bounds. Of all rates within the bounds that add up to c, these
    have the least sum of squares (``_least_squares``). ``low`` and ``high`` have the shape [m, n]:
    n flows in each of m rows. The result has the shape [m].
    """
    out = np.empty(len(low))
    for k, (lows, highs) in enumerate(zip(low, high, strict=True)):
        lowest, highest = np.sort(lows), np.sort(highs)
        # As a function of ``level``, the sum of the rates is linear between the bounds. So it is
        # computed at all bounds. At a level there, i rates are at their upper bounds, the rates
        # from number j on at their lower bounds, and j - i rates at the level itself.
        at_upper = np.concatenate([[0.0], np.cumsum(highest)])
        at_lower = np.concatenate([np.cumsum(lowest[::-1])[::-1], [0.0]])
        levels = np.sort(np.concatenate([lowest, highest]))
        i, j = np.searchsorted(highest, levels), np.searchsorted(lowest, levels, side="right")
        total = at_upper[i] + at_lower[j] + levels * (j - i)
        t = int(np.clip(np.searchsorted(total, c), 1, levels.size - 1))
        rise = total[t] - total[t - 1]
        part = min(max((c - total[t - 1]) / rise, 0.0), 1.0) if rise > 0 else 0.0
        out[k] = levels[t - 1] + part * (levels[t] - levels[t - 1])
    return out


def _most_squares(limits: _Limits) -> float:
    """The greatest sum of squared rates over all equilibria; Jain's index is least there.

    Flow i's rate r_i lies between l_i = a_i phi_i(g) and u_i = b_i phi_i(g). Here g is the gap, the
    queueing delay less the largest over-estimate of baseRTT. phi_i(g) is the flow's rate per packet
    of backlog, and the backlog lies between a_i and b_i.

    The sum of squares is convex in the rates. So at a given gap it is greatest if all rates but one
    are at a bound: u_i for the flows of a set U, l_i for the others. The rate r_j of the one
    remaining flow j is the capacity less all other rates. A set U and a flow j define a family of
    rates, one for each gap from the one at which r_j = l_j to the one at which r_j = u_j. The
    function finds the greatest sum in each family (``_families``), and returns the greatest of
    these. In a family, with psi_i = -dphi_i/dg,

        d(sum r^2)/dg = 2 sum_{at l} (r_j - l_i) a_i psi_i - 2 sum_{U} (u_i - r_j) b_i psi_i.

    The first sum is over the flows with r_i = l_i, the second over U.
    """
    n = limits.x.size
    # for each of the m families: which flows are in U, [m, n], and the number of flow j, [m]
    at_upper, flow_j = _families(limits)
    # At the first gap of a family r_j = l_j. At the last one r_j = u_j, as if flow j were in U.
    upper_or_j = at_upper.copy()
    upper_or_j[np.arange(len(flow_j)), flow_j] = True
    first_gap, last_gap = (
        limits.gaps(np.where(mask, limits.b, limits.a)) for mask in (at_upper, upper_or_j)
    )
    at_lower = ~upper_or_j

    def parts(family: Any, g: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """At the gaps g, in the families with these numbers, four arrays.

        They are the psi_i, the rates at a bound (0 for flow j), r_j, and the backlogs at a bound.
        """
        phi, psi = limits.phi(g)
        edge = np.where(at_upper[family], limits.b, limits.a)
        rates = edge * phi
        rates[np.arange(len(g)), flow_j[family]] = 0.0
        r_j = (limits.c - rates.sum(-1))[:, None]
        return psi, rates, r_j, edge

    def unsettled(family: Any, left: Floats, right: Floats) -> Bools:
        """Whether the derivative may have either sign between the gaps ``left`` and ``right``.

        In each term edge psi_i is positive and falls as g grows. The other factor is r_j - l_i,
        which rises, or u_i - r_j, which falls.
        """
        psi_left, rates_left, j_left, edge = parts(family, left)
        psi_right, rates_right, j_right, _ = parts(family, right)
        # r_j - l_i of the flows at their lower bounds: least at the left end, most at the right
        least_over = np.where(at_lower[family], j_left - rates_left, 0.0)
        most_over = np.where(at_lower[family], j_right - rates_right, 0.0)
        # u_i - r_j of the flows in U: most at the left end, least at the right
        most_under = np.where(at_upper[family], rates_left - j_left, 0.0)
        least_under = np.where(at_upper[family], rates_right - j_right, 0.0)
        # bounds of each flow's term in half the derivative, divided by ``edge``
        most = _upper_bound(most_over, psi_left, psi_right)
        most = most - _lower_bound(least_under, psi_left, psi_right)
        least = _lower_bound(least_over, psi_left, psi_right)
        least = least - _upper_bound(most_under, psi_left, psi_right)
        return np.asarray(((edge * least).sum(-1) < 0) & ((edge * most).sum(-1) > 0))

    def squares(family: Any, g: Floats) -> Floats:
        """The greatest sum of squared rates at the gaps g, in the families with these numbers."""
        _, rates, r_j, _ = parts(family, g)
        return np.asarray((rates**2).sum(-1) + r_j[:, 0] ** 2)

    at_a_time = max(1, 500_000 // n)  # families at a time, to bound the memory
    return max(
        float(
            _values_with_extremum(unsettled, squares, some, first_gap[some], last_gap[some]).max()
        )
        for some in np.array_split(np.arange(len(flow_j)), -(-len(flow_j) // at_a_time))
    )


def _upper_bound(factor: Floats, most: Floats, least: Floats) -> Floats:
    """An upper bound of the product f h, for f at most ``factor`` and h in [least, most].

    ``least`` is at least 0. ``factor`` may be negative.
    """
    return factor * np.where(factor > 0, most, least)


def _lower_bound(factor: Floats, most: Floats, least: Floats) -> Floats:
    """A lower bound of the product f h, for f at least ``factor`` and h in [least, most].

    ``least`` is at least 0. ``factor`` may be negative.
    """
    return factor * np.where(factor > 0, least, most)


def _families(limits: _Limits) -> tuple[Bools, NDArray[np.intp]]:
    """The m families of rates in which ``_most_squares`` looks for the greatest sum of squares.

    A Vegas flow keeps its window if its backlog lies between a lower and an upper limit, the edges.
    Flow i has the rate l_i at the lower edge, and u_i at the upper edge. Its rate r_i lies between
    the two. In each family the backlog of one flow may vary, and all others are at an edge. Returns
    a mask [m, n] of the flows at the upper edge, and the index [m] of the flow whose backlog may
    vary. The other flows are at the lower edge.

    Suppose that one order of the flows sorts both l_i and u_i from large to small, at every
    queueing delay. Then n families are enough: at the greatest sum of squares, the flows at the
    upper edge are the first ones of this order. Proof: let flow i come before flow k, with
    r_i < u_i and r_k > l_k. If r_i >= r_k, moving some rate from k to i raises the sum of squares.
    If r_i < r_k, the two flows can first swap their rates. So these rates do not have the greatest
    sum of squares.

    Without such an order every set of flows at the upper edge is tried. Since there are 2^n sets,
    more than ``MAX_FLOWS`` flows then raise ``ValueError``. The problem is NP-hard: if all
    intervals [l_i, u_i] have the same centre, it is the partition problem.
    """
    n = limits.x.size
    base = limits.rtt + limits.x if limits.linux else limits.x
    # At the backlog e, a flow has the rate e phi (``_Limits.phi``). If y is the queueing delay less
    # x, 1/phi is y + y^2/base in Linux and y otherwise. It falls as x or the base rises. So an
    # order that sorts x, the base and both edges also sorts l_i and u_i.
    order = np.lexsort((base, limits.b, limits.a, limits.x))[::-1]
    if all(np.all(np.diff(v[order]) <= 0) for v in (limits.x, limits.a, limits.b, base)):
        # in family k the first k flows of the order are at the upper edge, the next one may vary
        mask = np.zeros((n, n), dtype=bool)
        mask[:, order] = np.tri(n, k=-1, dtype=bool)
        return mask, order
    if n > MAX_FLOWS:
        raise ValueError(
            f"the least Jain index is computed for at most {MAX_FLOWS} flows if the one with the "
            f"larger thresholds does not always have the larger over-estimate; there are {n} flows"
        )
    pairs = [
        (mask, j)
        for mask in itertools.product([False, True], repeat=n)
        for j in range(n)
        if not mask[j]
    ]
    return np.array([m for m, _ in pairs]), np.array([j for _, j in pairs])


def _values_with_extremum(
    unsettled: Callable[[Any, Floats, Floats], Bools],
    value: Callable[[Any, Floats], Floats],
    family: NDArray[np.intp],
    left: Floats,
    right: Floats,
) -> Floats:
    """Sums of squared rates at many gaps; their extremum over all gaps is among them.

    The gap is the queueing delay less the largest over-estimate of baseRTT. The search begins with
    the intervals of the gap from ``left`` to ``right``. Each interval has an index in ``family``,
    which says how the flows' rates depend on the gap there (``_families``). ``value`` returns the
    sums at given gaps. ``unsettled`` says in which intervals the derivative of the sum may change
    its sign. Only these intervals are halved, at most ``_HALVINGS`` times. In all others the
    extremum is at an end. The result contains the sums at the ends of all intervals.

    Raises ``RuntimeError`` if more than ``_MAX_TO_HALVE`` intervals must be halved at once.
    """
    values = [value(family, left), value(family, right)]
    for _ in range(_HALVINGS):
        to_halve = unsettled(family, left, right) & (right > left)
        # all other intervals are done: their ends are in ``values``
        family, left, right = family[to_halve], left[to_halve], right[to_halve]
        if len(family) == 0:
            break
        if len(family) > _MAX_TO_HALVE:
            raise RuntimeError("the extreme of Jain's index was not found: it changes too little")
        middle = 0.5 * (left + right)
        values.append(value(family, middle))
        family = np.concatenate([family, family])
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return np.concatenate(values)
