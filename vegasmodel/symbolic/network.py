"""Derives the rates of Vegas flows on several links in SymPy.

In the steady state a Vegas flow has the rate r that maximises U(r) - q r. Here U is the flow's
utility, and q is the queueing delay of its path. Tests compare the derived rates with those of the
numeric code (``equilibrium.network``).
"""

from __future__ import annotations

import sympy as sp

from vegasmodel.symbolic.steps import NO_NUMBER, Derivation

# rate, queueing delay of the path, threshold, capacity of a link, queueing delay of a link
r, q, alpha, c, price = sp.symbols("r q alpha c pi", positive=True)
x = sp.Symbol("x", nonnegative=True)  # over-estimate of baseRTT
links, long, cross = sp.symbols("l n_long n_cross", positive=True)  # numbers of links and flows


def stationarity() -> Derivation:
    """The rate r = alpha/(q - x) of a Vegas flow maximises alpha ln r + x r - q r.

    q is the queueing delay of the flow's path, and x the flow's over-estimate of baseRTT. The
    derivative with respect to r is 0 at this rate. The second derivative is negative everywhere, so
    this is a maximum.
    """
    lagrangian = alpha * sp.log(r) + x * r - q * r
    condition = sp.Eq(sp.diff(lagrangian, r), 0)
    curvature = sp.diff(lagrangian, r, 2)
    [rate] = sp.solve(condition, r)
    return Derivation(
        NO_NUMBER,
        "r",
        premises=(condition,),
        derived=sp.simplify(rate),
        printed=alpha / (q - x),
        steps=(curvature,),
    )


def parking_lot() -> Derivation:
    """The rate of a Vegas flow that crosses all l links of a parking lot.

    The links are equal and lie in a row. n_long flows cross all of them. On each link there are
    also n_cross flows that cross only this link. No flow over-estimates its baseRTT.
    """
    rate_long = stationarity().derived.subs({x: 0, q: links * price})
    rate_cross = stationarity().derived.subs({x: 0, q: price})
    full = sp.Eq(long * rate_long + cross * rate_cross, c)  # a link is full
    [link_delay] = sp.solve(full, price)
    derived = sp.factor(sp.simplify(rate_long.subs(price, link_delay)))
    return Derivation(
        NO_NUMBER, "r", premises=(full,), derived=derived, steps=(rate_long, rate_cross, link_delay)
    )
