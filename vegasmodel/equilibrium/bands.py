"""The set of equilibria of Vegas flows on one link, if a window may rest at several backlogs.

Flow i keeps its window if the backlog that it computes lies between two edges, a_i and b_i. Its
rate r_i is the backlog times a factor phi_i. So an equilibrium with the queueing delay Delta
satisfies

    a_i phi_i(Delta) <= r_i <= b_i phi_i(Delta),   sum_i r_i = c                     (11)

where c is the capacity. Delta may differ from equilibrium to equilibrium. The edges and the factor
depend on the TCP implementation (the flow's ``variant``). Let T be the propagation delay of the
flow, and x the over-estimate of T:

* ``paper``: phi = 1/(Delta - x). The edges are alpha and beta.
* ``ns2``: phi is the same. The backlog is rounded, so the edges are alpha - 1/2 and beta + 1/2.
* ``linux``: phi = (T + x)/((Delta - x)(T + Delta)). The backlog is truncated, so the edges are
  alpha and beta + 1.

So with ``ns2`` and ``linux`` there are many equilibria even if alpha = beta. The functions of this
module return the least and the greatest value that a quantity has in the set of equilibria. The
quantities are the queueing delay, the rates, the ratio of two rates and the Jain index.

Source: the paper ``boutremans``, 4.1, (10) and (11).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vegasmodel.equilibrium import secular
from vegasmodel.equilibrium._checks import VARIANTS, numbers, ordered, positive, word
from vegasmodel.equilibrium._jain import jain_range
from vegasmodel.fields import kinds
from vegasmodel.stacks import dead_zone, find

Floats = NDArray[np.float64]
_ROWS = 2_000_000  # numbers in one batch of solves, to bound the memory


def equilibria(
    alpha: ArrayLike,
    beta: ArrayLike,
    over_estimate: ArrayLike,
    capacity: float,
    rtt: ArrayLike | None = None,
    variant: str = "paper",
) -> Band:
    """The set of equilibria of n Vegas flows that keep between alpha and beta packets queued.

    The arguments are, per flow, the thresholds alpha and beta in packets and the over-estimate of
    baseRTT in s; the link's capacity in pkt/s; and, per flow, the propagation delay ``rtt`` in s.
    ``rtt`` is needed for the variant ``linux`` and for the method ``windows`` of the result. Raises
    ``ValueError`` on impossible input.
    """
    word("variant", variant, VARIANTS)
    lower, upper = dead_zone(*ordered(numbers("alpha", alpha), numbers("beta", beta)), variant)
    c = float(positive("capacity", capacity))
    x = numbers("over_estimate", over_estimate, -math.inf)
    d = np.full(1, math.inf) if rtt is None else numbers("rtt", rtt, infinite=True)
    if rtt is None and find(variant).backlog_over_base:
        raise ValueError('variant "linux" needs rtt: its steady state depends on it')
    lower, upper, over, d = np.broadcast_arrays(
        *(np.atleast_1d(v) for v in (lower, upper, np.asarray(x, dtype=np.float64), d))
    )
    if lower.ndim != 1:
        raise ValueError(
            "one set at a time: thresholds, over_estimate and rtt are scalars or have one axis"
        )
    band = Band(lower, upper, over, c, d, variant)
    if not np.all(np.isfinite(band.delay_range)):
        raise ValueError(
            "no equilibrium: thresholds and capacity must be positive, all values finite"
        )
    return band


@kinds.checked
def outer_range(low: Band, high: Band) -> tuple[Floats, Floats]:
    """Bounds of each rate, if each over-estimate of baseRTT lies somewhere between two values.

    ``low`` and ``high`` are the sets of equilibria (``Band``) with the least and with the greatest
    over-estimates. A flow's rate rises with its own over-estimate and falls with those of the
    others. Returns (least [n], greatest [n]), pkt/s.
    """
    least = _one_against(low, low.lower, low.x, high.upper, high.x)
    greatest = _one_against(low, low.upper, high.x, low.lower, low.x)
    return np.diagonal(least).copy(), np.diagonal(greatest).copy()


def _one_against(
    band: Band, own: Floats, own_x: Floats, others: Floats, others_x: Floats
) -> Floats:
    """Rates [n, n] in n equilibria: in equilibrium i (row i) only flow i differs from the others.

    In row i, flow i has the backlog ``own[i]`` in packets and the over-estimate ``own_x[i]`` of
    baseRTT in s. Every other flow j has the backlog ``others[j]`` and the over-estimate
    ``others_x[j]``.
    """
    n = own.size
    out = np.empty((n, n))
    rows = max(1, _ROWS // n)
    for first in range(0, n, rows):
        some = np.arange(first, min(n, first + rows))
        edge, x = np.tile(others, (some.size, 1)), np.tile(others_x, (some.size, 1))
        edge[np.arange(some.size), some] = own[some]
        x[np.arange(some.size), some] = own_x[some]
        out[some] = secular.solve(edge, x, band.c, rtt=band.rtt, variant=band.variant).rates
    return out


@dataclass(frozen=True)
class Band:
    """The set of equilibria of Vegas flows whose backlogs may rest anywhere between two edges.

    ``lower`` and ``upper`` are these edges, in packets, [n].
    """

    lower: Floats
    upper: Floats
    x: Floats
    c: float
    rtt: Floats  # inf where not given
    variant: str

    def _solve(self, edge: Floats) -> secular.Equilibrium:
        return secular.solve(edge, self.x, self.c, rtt=self.rtt, variant=self.variant)

    @functools.cached_property
    def delay_range(self) -> tuple[float, float]:
        """The least and the greatest queueing delay of all equilibria, s.

        The delay is least when all flows are at their lower edges, and greatest when all are at
        their upper ones. Proof: let l and u be the bounds of the rates at a queueing delay, at the
        lower and the upper edges. The capacity c lies between the sum of l and the sum of u, and
        both sums fall as the delay grows. So the delay is least where the sum of l is c, and
        greatest where the sum of u is c.
        """
        return float(self._solve(self.lower).delay), float(self._solve(self.upper).delay)

    @functools.cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """Two matrices: in row i, the rates of all flows when that of flow i is least, or greatest.

        Let l and u be the bounds of the rates at the lower and upper edges of the backlogs.  Then
        r_i is at most u_i, and at most the capacity less the sum of the others' l.  As the queueing
        delay grows, the first limit falls and the second rises.  So r_i is greatest where they
        meet, with flow i at its upper edge and the others at their lower edges.  For the least r_i
        all edges are exchanged.
        """
        x = self.x
        return (
            _one_against(self, self.lower, x, self.upper, x),
            _one_against(self, self.upper, x, self.lower, x),
        )

    @property
    def rate_range(self) -> tuple[Floats, Floats]:
        """The least and the greatest rate of each flow, pkt/s ([n], [n]).

        The ends of the set of equilibria count as part of it, also where an end is open (ns-2,
        Linux).
        """
        least, greatest = self._extremes
        return np.diagonal(least).copy(), np.diagonal(greatest).copy()

    @functools.cached_property
    def ratio_range(self) -> tuple[Floats, Floats]:
        """The least and the greatest ratio of two rates, r_i/r_j ([n, n], [n, n]).

        a and b are the lower and upper edges of the backlogs, phi is a flow's rate per packet of
        backlog (equation (11) of the paper ``boutremans``), and l = a phi, u = b phi are the bounds
        of the rates. All phi fall as the queueing delay Delta grows. Let Delta_1 be the Delta at
        which flow i is at its upper edge and all others are at their lower ones. Let Delta_2 be the
        Delta at which flow j is at its lower edge and all others are at their upper ones.

        - Below Delta_1 the greatest ratio is (c - sum of the others' l)/l_j, which rises.
        - Above Delta_2 it is u_i/(c - sum of the others' u), which falls.
        - Between them it is u_i/l_j = (b_i/a_j) phi_i/phi_j. In the variants ``paper`` and ``ns2``
          this is monotone in Delta, so the maximum is at an end. In the variant ``linux`` it may
          also be in between (``_turns``).
        """
        least, greatest = self._extremes
        with np.errstate(divide="ignore", invalid="ignore"):
            at_1 = np.diagonal(greatest)[:, None] / greatest  # [i, j]
            at_2 = least.T / np.diagonal(least)[None, :]  # [i, j]: rates of row j
        best = np.maximum(at_1, at_2)
        if find(self.variant).backlog_over_base:
            self._turns(best)
        np.fill_diagonal(best, 1.0)
        with np.errstate(divide="ignore"):
            return 1.0 / best.T, best

    def _turns(self, best: Floats) -> None:
        """Raise the greatest ratios ``best`` where u_i/l_j has a maximum inside its interval.

        This is for ``linux``. u, l, phi and the interval Delta_1 .. Delta_2 are those of
        ``ratio_range``. With s = rtt - x and p = -x rtt, 1/phi_k = (Delta^2 + s_k Delta +
        p_k)/base_k, where rtt is the propagation delay, x the over-estimate and base = rtt + x. So
        the derivative of phi_i/phi_j with respect to Delta is 0 where
        (s_i - s_j) Delta^2 + 2 (p_i - p_j) Delta + (p_i s_j - s_i p_j) = 0.
        """
        s, p, base = self.rtt - self.x, -self.x * self.rtt, self.rtt + self.x
        delay = [
            np.asarray(self._solve(np.where(np.eye(s.size, dtype=bool), own, others)).delay)
            for own, others in ((self.upper, self.lower), (self.lower, self.upper))
        ]
        low, high = delay[0][:, None], delay[1][None, :]  # Delta_1 of i, Delta_2 of j
        square, cross = s[:, None] - s, np.outer(p, s) - np.outer(s, p)
        half = p[:, None] - p
        top = np.maximum(self.lower, np.finfo(float).tiny)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = half + np.copysign(np.sqrt(half**2 - square * cross), half)
            for t in (-shift / square, -cross / shift):
                wait = [(t - v) * (t + d) / z for v, d, z in zip(*self._by_axis(base), strict=True)]
                bound = self.upper[:, None] / top[None, :] * (wait[1] / wait[0])
                np.maximum(best, bound, out=best, where=(low < t) & (t < high))

    def _by_axis(self, base: Floats) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """Over-estimates of baseRTT, propagation delays, and their sums, as columns and as rows.

        Their shapes are [n, 1] and [1, n]. So in an [n, n] array of pairs of flows the first axis
        is flow i and the second is flow j.
        """
        x, d, z = ([v[:, None], v[None, :]] for v in (self.x, self.rtt, base))
        return x, d, z

    @functools.cached_property
    def jain_range(self) -> tuple[float, float]:
        """The least and the greatest Jain index over the set of equilibria; proofs in ``_jain.py``.

        The least index can be computed if thresholds and over-estimates of baseRTT put the flows in
        the same order, or for at most ``_jain.MAX_FLOWS`` flows. Otherwise it raises
        ``ValueError``.
        """
        return jain_range(self.lower, self.upper, self.x, self.c, self.rtt, self.variant)

    def backlog(self, rates: ArrayLike, delay: float) -> Floats:
        """The backlog that each flow computes from its rate and RTT, in packets [n].

        It is r_i/phi_i(delay), where phi_i is the rate of flow i per packet of backlog, as in
        equation (11) of the paper ``boutremans``.
        """
        y = delay - self.x
        bend = 1.0 + y / (self.rtt + self.x) if find(self.variant).backlog_over_base else 1.0
        return np.asarray(np.asarray(rates, dtype=np.float64) * y * bend)

    def contains(self, rates: ArrayLike, tolerance: float = 1e-12) -> bool:
        """Whether the rates (pkt/s [n]) are an equilibrium for some queueing delay.

        Each flow can have its rate in an interval of queueing delays. In the variant ``paper`` both
        ends belong to the interval, in the other variants only the lower end does. The intervals of
        all flows must have a common point, and the rates must add up to the capacity. ``tolerance``
        is relative, for rounding.
        """
        r = np.asarray(rates, dtype=np.float64)
        if r.shape != self.x.shape or not np.all(r > 0):
            return False
        if abs(math.fsum(r) - self.c) > tolerance * self.c:
            return False
        low = float(np.max(self.x + self._wait(self.lower / r)))
        high = float(np.min(self.x + self._wait(self.upper / r)))
        slack = tolerance * abs(high)
        return low <= high + slack if find(self.variant).upper_edge_rests else low < high + slack

    def _wait(self, backlog_over_rate: Floats) -> Floats:
        """The queueing delay less a flow's over-estimate, y in s, from its backlog over its rate.

        y solves y (1 + y/base) = backlog/rate.  In ``linux`` base is the flow's baseRTT; in the
        other variants it counts as infinite.
        """
        if not find(self.variant).backlog_over_base:
            return backlog_over_rate
        bend = 4.0 * backlog_over_rate / (self.rtt + self.x)
        return np.asarray(2.0 * backlog_over_rate / (1.0 + np.sqrt(1.0 + bend)))

    def windows(self, limit: int = 1_000_000) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Every equilibrium of whole packets: windows [m, n], rates [m, n] and queueing delays [m].

        The equation numbers are those of the paper ``boutremans``. Windows W determine the queueing
        delay Delta by sum_i W_i/(rtt_i + Delta) = c, which has the form of (6) with -rtt in the
        place of the over-estimates. Equation (10) at the least and the greatest Delta bounds each
        window, and all combinations within these bounds are tried. ns-2 and Linux never go below
        two packets. Raises ``ValueError`` if there are more than ``limit`` combinations.
        """
        if not np.all(np.isfinite(self.rtt)):
            raise ValueError("windows need rtt")
        (first, last), least = self.delay_range, 1 if find(self.variant).upper_edge_rests else 2
        with np.errstate(divide="ignore"):
            low = self._window(self.lower, last)
            high = np.minimum(self._window(self.upper, first), self.c * (self.rtt + last))
        slack = 1e-9  # an edge that is a whole number must not be lost to rounding
        ranges = [
            np.arange(max(least, math.ceil(a - slack)), math.floor(b + slack) + 1)
            for a, b in zip(low, high, strict=True)
        ]
        count = math.prod(len(r) for r in ranges)
        if count > limit:
            raise ValueError(f"{count} combinations of windows, more than limit = {limit}")
        grid = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, self.x.size)
        if count == 0:
            return grid, grid.astype(float), np.empty(0)
        state = secular.solve(grid, -self.rtt, self.c)
        y = state.delay[:, None] - self.x
        bend = 1.0 + y / (self.rtt + self.x) if find(self.variant).backlog_over_base else 1.0
        backlog = state.rates * y * bend
        close = 1e-12 * self.upper
        inside = backlog >= self.lower - close
        inside &= (
            backlog <= self.upper + close
            if find(self.variant).upper_edge_rests
            else backlog < self.upper - close
        )
        good = inside.all(axis=-1) & (state.delay >= 0)
        return grid[good], state.rates[good], state.delay[good]

    def _window(self, edge: Floats, delay: float) -> Floats:
        """The window r (rtt + Delta) of a flow with the backlog ``edge``, both in packets.

        This is equation (10) of the paper ``boutremans``. r is the flow's rate, and Delta is the
        queueing delay ``delay``.
        """
        y = delay - self.x
        bend = 1.0 + y / (self.rtt + self.x) if find(self.variant).backlog_over_base else 1.0
        held = edge * (self.rtt + delay) / (y * bend)
        return np.where(y > 0, held, math.inf)
