"""RED's spacing of drops, and the signs on which the uniqueness of its fixed point rests."""

from __future__ import annotations

import sympy as sp

from vegasmodel.symbolic.steps import Derivation, Expr

p_b, p, b, K, T_0, R, R_0 = sp.symbols("p_b p b K T_0 R R_0", positive=True)
q, x, alpha, c = sp.symbols("q x alpha c", positive=True)
m = sp.Symbol("m", integer=True, positive=True)  # 1/p_b
n, j = sp.symbols("n j", integer=True, positive=True)


def spacing_wait() -> Derivation:
    """Drops per packet with ``wait_``: none before packet m, then p_b / (2 - n p_b) at packet n.

    P(packets m .. m + j - 1 pass) telescopes to 1 - j/m: the gap is uniform on m .. 2m - 1.
    """
    pass_one = sp.simplify(1 - (1 / m) / (2 - (m + j - 1) / m))  # the j-th packet that is at risk
    pass_all = 1 - j / m
    recursion = sp.simplify(pass_all / pass_all.subs(j, j - 1) - pass_one)
    gap = sp.simplify(m + sp.summation(pass_all, (j, 1, m - 1)))
    derived = sp.simplify((1 / gap).subs(m, 1 / p_b))
    return Derivation("-", "p", (pass_one,), (recursion, gap), derived)


def spacing_uniform() -> Derivation:
    """The same without ``wait_``: p_b / (1 - n p_b) at packet n, the gap is uniform on 1 .. m-1."""
    pass_one = sp.simplify(1 - (1 / m) / (1 - n / m))
    pass_all = (m - 1 - n) / (m - 1)
    recursion = sp.simplify(pass_all / pass_all.subs(n, n - 1) - pass_one)
    gap = sp.simplify(sp.summation(1 - n / (m - 1), (n, 0, m - 2)))
    derived = sp.simplify((1 / gap).subs(m, 1 / p_b))
    return Derivation("-", "p", (pass_one,), (recursion, gap), derived)


def spacing_from_zero() -> Derivation:
    """Floyd and Jacobson's count, 0 at the first packet after a drop: uniform on 1 .. m."""
    gap = sp.simplify(sp.summation(1 - n / m, (n, 0, m - 1)))
    return Derivation("-", "p", (), (gap,), sp.simplify((1 / gap).subs(m, 1 / p_b)))


def falling() -> tuple[Expr, ...]:
    """Derivatives whose signs prove that the demand falls; the first three > 0, the last < 0.

    1/rate of the short PFTK form is R sqrt(b p)/K + T_0 stalls(p), R = R_0 + q/c, T_0 likewise:
    in q, and in p below and above the point where the minimum changes; and Vegas's rate in q.
    """
    smooth = (R_0 + q / c) * sp.sqrt(b * p) / K
    stalls = p * (1 + 32 * p**2)
    small = smooth + (T_0 + q / c) * 3 * sp.sqrt(3 * b * p / 8) * stalls
    large = smooth + (T_0 + q / c) * stalls
    vegas = alpha / (q / c - x)
    return sp.diff(small, q), sp.diff(small, p), sp.diff(large, p), sp.diff(vegas, q)
