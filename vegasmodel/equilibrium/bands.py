"""Computes the ranges of rates and of queueing delay over all equilibria of Vegas flows on a link.

Flow i keeps its window if the backlog that it computes lies between two edges, a_i and b_i. Its
rate r_i is the backlog times a factor phi_i. So an equilibrium with the queueing delay Delta
satisfies

    a_i phi_i(Delta) <= r_i <= b_i phi_i(Delta),   sum_i r_i = c                     (11)

where c is the capacity. Delta may differ from equilibrium to equilibrium. The edges and the factor
depend on the TCP implementation (the flow's ``variant``). Let T be the propagation delay of the
flow, and x the over-estimate of T:

* ``paper``: phi = 1/(Delta - x). The edges are alpha and beta.
* ``ns2``: phi is the same. The backlog is rounded, so the edges are alpha - 1/2 (at least 0) and
  beta + 1/2.
* ``linux``: phi = (T + x)/((Delta - x)(T + Delta)). The backlog is truncated, so the edges are
  alpha and beta + 1.

So with ``ns2`` and ``linux`` there are many equilibria even if alpha = beta. In these two variants
a flow keeps its window at the lower edge and between the edges, but not at the upper edge itself.

The functions of this module return the least and the greatest value that a quantity has in any
equilibrium. The quantities are the queueing delay, the rates, the ratio of two rates and the Jain
index.

Source: Boutremans and Le Boudec (2000), section 4.1, equations (10) and (11).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import (
    VARIANTS,
    count,
    expect_broadcast,
    numbers,
    ordered,
    positive,
    rtt_of,
    some_flow,
    word,
)
from vegasmodel.equilibrium._jain import jain_range
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.metrics import Floats
from vegasmodel.stacks import dead_zone, find

_BATCH = 2_000_000  # numbers in one batch of solves, to bound the memory


@kinds.checked
def equilibria(
    alpha: ArrayLike,
    beta: ArrayLike,
    over_estimate: ArrayLike,
    capacity: float,
    rtt: ArrayLike | None = None,
    variant: str = "paper",
) -> Band:
    """The set of equilibria of n Vegas flows that keep between alpha and beta packets queued.

    Each flow has the thresholds ``alpha`` and ``beta`` in packets, the over-estimate
    ``over_estimate`` of baseRTT in s, and the propagation delay ``rtt`` in s. Each of these four is
    an array [n], or one number for all flows. ``capacity`` is that of the link, in pkt/s. ``rtt``
    may be left out, except in the variant ``linux`` and for the method ``windows`` of the result.
    Raises ``FieldError`` for arguments out of range. One case is that the lower edges of all flows
    are 0 packets: then nothing determines the least queueing delay. Raises ``ValueError`` if there
    is no equilibrium.
    """
    word("variant", variant, VARIANTS)
    expect_broadcast({"alpha": alpha, "beta": beta, "over_estimate": over_estimate, "rtt": rtt})
    lower, upper = dead_zone(*ordered(numbers("alpha", alpha), numbers("beta", beta)), variant)
    c = float(positive("capacity", capacity))
    x = numbers("over_estimate", over_estimate, -math.inf)
    d = np.full(1, math.inf) if rtt is None else numbers("rtt", rtt, infinite=True)
    rtt_of(variant, rtt)
    lower, upper, x, d = np.broadcast_arrays(
        *(np.atleast_1d(v) for v in (lower, upper, np.asarray(x, dtype=np.float64), d))
    )
    some_flow(alpha=alpha, beta=beta, over_estimate=over_estimate, rtt=rtt)
    if lower.ndim != 1:
        shape = f"shape {lower.shape}"
        raise FieldError("alpha, beta, over_estimate and rtt", shape, "numbers, or arrays [n]")
    if not np.any(lower > 0):
        below_alpha = find(variant).below_alpha
        allowed = (
            f"more than {below_alpha:g} for at least one flow: each may rest with a backlog of "
            f"alpha{f' - {below_alpha:g}' if below_alpha else ''}, so the queue may be empty"
        )
        raise FieldError("alpha", alpha, allowed)
    band = Band(lower, upper, x, c, d, variant)
    if not np.all(np.isfinite(band.delay_range)):
        raise ValueError(
            "no equilibrium: the queueing delay is not a finite number of at least 0 seconds"
        )
    return band


@kinds.checked
def outer_range(low: Band, high: Band) -> tuple[Floats, Floats]:
    """Bounds of each rate, if each over-estimate of baseRTT may lie anywhere between two values.

    ``low`` is the set of equilibria in which all over-estimates have their least values. ``high``
    is the set in which all have their greatest values. Returns the least and the greatest rate of
    each flow, pkt/s ([n], [n]).

    A flow's rate is greatest if its own backlog and over-estimate are greatest, and those of the
    others are least. The rate is least if its own are least and those of the others greatest.
    Raises ``FieldError`` if the two sets have different numbers of flows.
    """
    if low.x.size != high.x.size:
        sizes = f"{low.x.size} and {high.x.size} flows"
        raise FieldError("low and high", sizes, "two sets of equilibria of the same flows")
    least = _one_against(low, low.lower, low.x, high.upper, high.x)
    greatest = _one_against(low, low.upper, high.x, low.lower, low.x)
    return np.diagonal(least).copy(), np.diagonal(greatest).copy()


def _one_against(
    band: Band, own: Floats, own_x: Floats, others: Floats, others_x: Floats
) -> Floats:
    """Rates [n, n] of n flows in n equilibria: in row i, flow i differs from all other flows.

    In row i, flow i has the backlog ``own[i]`` in packets and the over-estimate ``own_x[i]`` of
    baseRTT in s. Every other flow j has the backlog ``others[j]`` and the over-estimate
    ``others_x[j]``.
    """
    n = own.size
    out = np.empty((n, n))
    rows = max(1, _BATCH // n)
    for first in range(0, n, rows):
        chunk = np.arange(first, min(n, first + rows))
        edge, x = np.tile(others, (chunk.size, 1)), np.tile(others_x, (chunk.size, 1))
        edge[np.arange(chunk.size), chunk] = own[chunk]
        x[np.arange(chunk.size), chunk] = own_x[chunk]
        out[chunk] = secular.solve(edge, x, band.c, rtt=band.rtt, variant=band.variant).rates
    return out


@dataclass(frozen=True)
class Band:
    """The set of equilibria of n Vegas flows, each of which keeps any backlog between two edges.

    ``lower`` and ``upper`` are these edges, in packets, [n]; they are near alpha and beta. In ns-2
    and Linux a flow cannot keep its backlog at the upper edge itself. So in these variants, an end
    of a range such as ``delay_range`` may be a limit that no equilibrium reaches.
    """

    lower: Floats
    upper: Floats
    x: Floats  # over-estimates of baseRTT, s [n]
    c: float  # capacity, pkt/s
    rtt: Floats  # propagation delays, s [n]; inf where not given
    variant: str

    def _solve(self, edge: Floats) -> secular.Equilibrium:
        """The equilibrium in which the flows have the backlogs ``edge``, in packets, [n]."""
        return secular.solve(edge, self.x, self.c, rtt=self.rtt, variant=self.variant)

    @functools.cached_property
    def delay_range(self) -> tuple[float, float]:
        """The least and the greatest queueing delay of all equilibria, s.

        Vegas keeps a window while its backlog lies between a lower and an upper edge. The delay is
        least when all backlogs are at their lower edges, and greatest when all are at their upper
        edges.

        Proof: At a given delay, let L be the sum of the rates if all backlogs are at their lower
        edges. Let U be this sum if all are at their upper edges. In an equilibrium the capacity c
        lies between L and U. Both L and U fall as the delay grows. So the delay is least where L is
        c, and greatest where U is c.
        """
        return float(self._solve(self.lower).delay), float(self._solve(self.upper).delay)

    @functools.cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """Two matrices of rates: in row i the rate of flow i is least, or greatest.

        Row i holds the rates of all flows in the equilibrium in which flow i has its least rate
        (first matrix) or its greatest rate (second matrix). The rate of flow i is greatest if its
        backlog is at the upper edge and all others are at their lower edges.

        Proof: At a given queueing delay, let u_i be the rate of flow i at its upper edge, and S the
        sum of the others' rates at their lower edges. Then the rate of flow i is at most u_i, and
        at most the capacity minus S. As the delay grows, the first bound falls and the second
        rises. So the rate is greatest where the two bounds are equal. For the least rate, exchange
        lower and upper edges.
        """
        x = self.x
        return (
            _one_against(self, self.lower, x, self.upper, x),
            _one_against(self, self.upper, x, self.lower, x),
        )

    @property
    def rate_range(self) -> tuple[Floats, Floats]:
        """The least and the greatest rate of each flow, pkt/s ([n], [n])."""
        least, greatest = self._extremes
        return np.diagonal(least).copy(), np.diagonal(greatest).copy()

    @functools.cached_property
    def ratio_range(self) -> tuple[Floats, Floats]:
        """The least and the greatest ratio of two rates, r_i/r_j ([n, n], [n, n]).

        A flow keeps its window while its backlog lies between two edges (near alpha and beta). At a
        queueing delay Delta, let l_k be the rate of flow k if its backlog is at the lower edge, and
        u_k its rate at the upper edge. Both fall as Delta grows. The capacity is c. Two values of
        Delta matter:

        - Delta_1: the rates add up to c if flow i is at its upper edge and all others are at their
          lower edges.
        - Delta_2: the rates add up to c if flow j is at its lower edge and all others are at their
          upper edges.

        The greatest ratio r_i/r_j at a given Delta depends on where Delta lies:

        - Below Delta_1 it is (c - sum of the l of all flows but i)/l_j, which rises with Delta.
        - From Delta_1 to Delta_2 it is u_i/l_j.
        - Above Delta_2 it is u_i/(c - sum of the u of all flows but j), which falls with Delta.

        So the maximum lies between Delta_1 and Delta_2. In the variants ``paper`` and ``ns2``
        u_i/l_j is monotone in Delta, so the maximum is at Delta_1 or Delta_2. In the variant
        ``linux`` it may also be in between, where ``_raise_to_inner_maxima`` finds it. The least
        r_i/r_j is the inverse of the greatest r_j/r_i.
        """
        least, greatest = self._extremes
        with np.errstate(divide="ignore", invalid="ignore"):
            # r_i/r_j [i, j] at Delta_1 and at Delta_2. At Delta_1 flow i has its greatest rate: the
            # rates are row i of ``greatest``. At Delta_2 flow j has its least rate: the rates are
            # row j of ``least``.
            at_1 = np.diagonal(greatest)[:, None] / greatest
            at_2 = least.T / np.diagonal(least)[None, :]
        best = np.maximum(at_1, at_2)
        if find(self.variant).backlog_over_base:
            self._raise_to_inner_maxima(best)
        np.fill_diagonal(best, 1.0)
        with np.errstate(divide="ignore"):
            return 1.0 / best.T, best

    def _raise_to_inner_maxima(self, best: Floats) -> None:
        """Find maxima of u_i/l_j between Delta_1 and Delta_2, and raise ``best`` [n, n] to them.

        ``ratio_range`` explains these symbols. At a queueing delay Delta, u_i is the rate of flow i
        at its upper edge, and l_j the rate of flow j at its lower edge. At first ``best`` holds the
        larger of the values of u_i/l_j at Delta_1 and Delta_2. The method is only for ``linux``.

        Let phi_k be the rate of flow k per packet of backlog. Then u_i/l_j is phi_i/phi_j times a
        constant: the upper edge of flow i over the lower edge of flow j. In Linux

            1/phi_k = (Delta^2 + s_k Delta + p_k)/base_k
            s = rtt - x,  p = -x rtt,  base = rtt + x

        Here rtt is the propagation delay of a flow, and x the flow's over-estimate of rtt. The
        derivative of phi_i/phi_j with respect to Delta is 0 where

            (s_i - s_j) Delta^2 + 2 (p_i - p_j) Delta + (p_i s_j - s_i p_j) = 0.

        So the method computes u_i/l_j at the solutions between Delta_1 and Delta_2.
        """
        x, d, base = self.x, self.rtt, self.rtt + self.x
        s, p = d - x, -x * d
        diagonal = np.eye(x.size, dtype=bool)
        delta_1 = np.asarray(self._solve(np.where(diagonal, self.upper, self.lower)).delay)  # [i]
        delta_2 = np.asarray(self._solve(np.where(diagonal, self.lower, self.upper)).delay)  # [j]
        # all pairs of flows [i, j]: the equation is square Delta^2 + 2 half Delta + constant = 0
        square, half = s[:, None] - s, p[:, None] - p
        constant = np.outer(p, s) - np.outer(s, p)
        lower = np.maximum(self.lower, np.finfo(float).tiny)  # so that nothing is divided by 0
        with np.errstate(divide="ignore", invalid="ignore"):
            # the two solutions, without loss of digits to cancellation
            sum_of_two = half + np.copysign(np.sqrt(half**2 - square * constant), half)
            for delta in (-sum_of_two / square, -constant / sum_of_two):
                inverse_phi_i = (delta - x[:, None]) * (delta + d[:, None]) / base[:, None]
                inverse_phi_j = (delta - x) * (delta + d) / base
                ratio = self.upper[:, None] / lower * (inverse_phi_j / inverse_phi_i)
                between = (delta_1[:, None] < delta) & (delta < delta_2)
                np.maximum(best, ratio, out=best, where=between)

    @functools.cached_property
    def jain_range(self) -> tuple[float, float]:
        """The least and the greatest Jain index of all equilibria; proofs are in ``_jain.py``.

        With more than ``_jain.MAX_FLOWS`` flows, the least index can only be computed if one order
        of the flows sorts all of these numbers from small to large: the lower edge, the upper edge,
        the over-estimate of baseRTT and, for ``linux``, baseRTT. Raises ``ValueError`` if these
        flows have no such order, and if a lower edge is 0 packets. Raises ``RuntimeError`` if the
        search must halve too many intervals of the queueing delay at once.
        """
        return jain_range(self.lower, self.upper, self.x, self.c, self.rtt, self.variant)

    @kinds.checked
    def backlog(self, rates: ArrayLike, delay: float) -> Floats:
        """The backlog that each flow computes at the given rates (pkt/s), in packets [n].

        It is r_i/phi_i(delay), where ``delay`` is the queueing delay in s. phi_i is the rate of
        flow i per packet of backlog, as in equation (11) of Boutremans and Le Boudec. Raises
        ``FieldError`` if ``rates`` does not fit the shape [n].
        """
        expect_broadcast({"rates": rates, "over_estimate": self.x})
        return np.asarray(np.asarray(rates, dtype=np.float64) * self._backlog_over_rate(delay))

    @kinds.checked
    def contains(self, rates: ArrayLike, tolerance: float = 1e-12) -> bool:
        """Whether the rates (pkt/s [n]) are an equilibrium at some queueing delay.

        The rates must be positive and add up to the capacity. There must also be a queueing delay
        at which every flow keeps its window, because its backlog lies between two edges (near alpha
        and beta). A backlog may be at its lower edge, but at its upper edge only in the variant
        ``paper``. ``tolerance`` is the relative rounding error that is accepted.
        """
        numbers("tolerance", tolerance)
        r = np.asarray(rates, dtype=np.float64)
        if r.shape != self.x.shape or not np.all(r > 0):
            return False
        if abs(math.fsum(r) - self.c) > tolerance * self.c:
            return False
        # each flow keeps its window at the queueing delays between that at which its backlog is at
        # the lower edge and that at which it is at the upper edge
        low = float(np.max(self.x + self._delay_above_x(self.lower / r)))
        high = float(np.min(self.x + self._delay_above_x(self.upper / r)))
        slack = tolerance * abs(high)
        return low <= high + slack if find(self.variant).upper_edge_rests else low < high + slack

    def _backlog_over_rate(self, delay: float | Floats) -> Floats:
        """The backlog that each flow computes, divided by its rate, in s.

        It is y (1 + y/base), where y is the queueing delay minus the flow's over-estimate of
        baseRTT. In the variant ``linux`` base is the flow's baseRTT. In the other variants base is
        infinite.
        """
        y: Floats = delay - self.x
        over_base = find(self.variant).backlog_over_base
        return y * (1.0 + y / (self.rtt + self.x)) if over_base else y

    def _delay_above_x(self, backlog_over_rate: Floats) -> Floats:
        """The queueing delay minus a flow's over-estimate of baseRTT, in s.

        It is the positive y with y (1 + y/base) = ``backlog_over_rate``, where base is as in
        ``_backlog_over_rate``, whose inverse this is.
        """
        if not find(self.variant).backlog_over_base:
            return backlog_over_rate
        bend = 4.0 * backlog_over_rate / (self.rtt + self.x)
        return np.asarray(2.0 * backlog_over_rate / (1.0 + np.sqrt(1.0 + bend)))

    @kinds.checked
    def windows(self, limit: int = 1_000_000) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Every equilibrium in which all windows are whole packets.

        Returns the windows [m, n], the rates [m, n] in pkt/s and the queueing delays [m] in s of m
        equilibria.

        The method tries combinations of whole windows. The least and the greatest queueing delay of
        all equilibria give bounds for each window, by equation (10) of Boutremans and Le Boudec. A
        window is also at least one packet, in ns-2 and Linux two packets. The windows W_i determine
        the queueing delay Delta: the rates W_i/(rtt_i + Delta) must add up to the capacity. A
        combination is an equilibrium if then Delta is not negative and all backlogs lie between
        their edges, as in ``contains``.

        Raises ``FieldError`` without ``rtt``, and for more than ``limit`` combinations.
        """
        if not np.all(np.isfinite(self.rtt)):
            allowed = "whole windows need it: give it to `equilibria`"
            raise FieldError("rtt", None, allowed, wrong=MISSING)
        limit = count("limit", limit)
        ranges = self._whole_windows()
        combinations = math.prod(max(each.stop - each.start, 0) for each in ranges)
        if combinations > limit:
            allowed = f"at least {combinations}, the number of combinations of windows"
            raise FieldError("limit", limit, allowed)
        grid = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, self.x.size)
        if combinations == 0:
            return grid, grid.astype(float), np.empty(0)
        # the rate W/(rtt + Delta) is that of a flow with the backlog W and the over-estimate -rtt
        state = secular.balance(grid, -self.rtt, self.c)
        backlog = state.rates * self._backlog_over_rate(state.delay[:, None])
        rounding = 1e-12 * self.upper
        inside = backlog >= self.lower - rounding
        inside &= (
            backlog <= self.upper + rounding
            if find(self.variant).upper_edge_rests
            else backlog < self.upper - rounding
        )
        is_equilibrium = inside.all(axis=-1) & (state.delay >= 0)
        return grid[is_equilibrium], state.rates[is_equilibrium], state.delay[is_equilibrium]

    def _whole_windows(self) -> list[range]:
        """For each flow, the whole numbers of packets that its window can have in an equilibrium.

        The flow's backlog then lies between the edges ``lower`` and ``upper``, and the queueing
        delay in ``delay_range``. With a given backlog, the window is smaller at a longer delay.
        """
        least_delay, greatest_delay = self.delay_range
        with np.errstate(divide="ignore"):
            low = self._window(self.lower, greatest_delay)
            high = self._window(self.upper, least_delay)
        high = np.minimum(high, self.c * (self.rtt + greatest_delay))  # at most all the capacity
        least_window = int(find(self.variant).least_window)
        slack = 1e-9  # a bound that is a whole number must not be lost to rounding
        return [
            range(max(least_window, math.ceil(a - slack)), math.floor(b + slack) + 1)
            for a, b in zip(low, high, strict=True)
        ]

    def _window(self, edge: Floats, delay: float) -> Floats:
        """The window of each flow, in packets, if its backlog is ``edge`` packets.

        It is r (rtt + Delta), by equation (10) of Boutremans and Le Boudec. r is the flow's rate,
        and Delta is the queueing delay ``delay`` in s. The window is infinite if Delta is not above
        the flow's over-estimate of baseRTT.
        """
        held = edge * (self.rtt + delay) / self._backlog_over_rate(delay)
        return np.where(delay > self.x, held, math.inf)
