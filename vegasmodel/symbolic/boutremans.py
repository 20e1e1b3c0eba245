"""Derives the formulas of Boutremans and Le Boudec on the fairness of TCP Vegas, in SymPy.

Tests compare the derived formulas with the package's numeric code. The command ``vegasmodel paper
--html FILE`` shows the formulas as the paper prints them, and the derived ones where they differ.

The derivations cover equations (3) to (11) of the paper, and the rates of flows that arrive one
after another. Symbols are those of the paper. Windows are in packets, times in seconds.
``derivations()`` lists all derivations.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from vegasmodel.fields import kinds
from vegasmodel.fields.rules import Integer
from vegasmodel.symbolic.steps import NO_NUMBER, Derivation

# alpha and beta are Vegas's thresholds, c is the capacity and d the propagation delay. A flow takes
# d + x for d, so x is its over-estimate. Delta is the queueing delay, W the window, and n the
# number of flows.
alpha, beta, c, d, x, Delta, W, n = sp.symbols("alpha beta c d x Delta W n", positive=True)
MOST_FLOWS = 100  # flows: SymPy's expressions grow with them
# s is a variable of integration, L_n is ln n, and C the constant in the delay n (ln n + C)
s, L, C = sp.symbols("s L_n C", positive=True)


def window() -> Derivation:
    """Equation (4) of Boutremans and Le Boudec: Vegas's window W in the steady state.

    The flow's backlog is Diff = (W/baseRTT - W/RTT) baseRTT by equation (1). Its baseRTT is the
    propagation delay d plus an over-estimate x, equation (2). Its RTT is d plus the queueing delay
    Delta. In the steady state Diff = alpha. This is equation (3). Solved for W, it gives equation
    (4).
    """
    base, rtt = d + x, d + Delta
    diff = (W / base - W / rtt) * base  # (Expected - Actual) baseRTT
    steady = sp.Eq(diff, alpha)
    equation_3 = sp.Eq(W - base / rtt * W, alpha)  # the same, as the paper prints it
    [derived] = sp.solve(steady, W)
    return Derivation(
        "4",
        "cwnd_i",
        premises=(steady,),
        derived=sp.factor(derived),
        printed=alpha * (d + Delta) / (Delta - x),
        steps=(equation_3,),
    )


def rate() -> Derivation:
    """Equation (5) of Boutremans and Le Boudec: Vegas's rate in the steady state.

    The rate is Vegas's window, equation (4), divided by the round-trip time.
    """
    derived = sp.simplify(window().derived / (d + Delta))
    return Derivation(
        "5",
        "rate_i",
        premises=(window().derived, d + Delta),
        derived=derived,
        printed=alpha / (Delta - x),
    )


def rate_linux() -> Derivation:
    """The steady rate of Linux's Vegas, in place of equation (5) of Boutremans and Le Boudec.

    In the steady state Linux's window W satisfies W (RTT - baseRTT)/baseRTT = alpha. The last step
    of the derivation shows that the rate W/RTT is that of equation (5), alpha/(RTT - baseRTT),
    minus alpha/RTT.
    """
    base, rtt = d + x, d + Delta
    steady = sp.Eq(W * (rtt - base) / base, alpha)
    [steady_window] = sp.solve(steady, W)
    derived = sp.factor(steady_window / rtt)
    steps = (steady_window, sp.apart(derived, Delta))
    return Derivation(NO_NUMBER, "rate_i", premises=(steady,), derived=derived, steps=steps)


def upper_edge() -> tuple[Derivation, Derivation]:
    """Vegas's steady window and rate if its backlog is beta: equations (10) and (11).

    Vegas keeps its window at any backlog from alpha to beta, and beta is the upper edge of this
    range. The equations are (4) and (5) with beta in place of alpha. The equation numbers are those
    of Boutremans and Le Boudec.
    """
    W_beta, r_beta = (f.derived.subs(alpha, beta) for f in (window(), rate()))
    return (
        Derivation(
            "10",
            "cwnd_i",
            premises=(window().derived,),
            derived=W_beta,
            printed=beta * (d + Delta) / (Delta - x),
        ),
        Derivation(
            "11", "rate_i", premises=(rate().derived,), derived=r_beta, printed=beta / (Delta - x)
        ),
    )


def no_over_estimate() -> Derivation:
    """The queueing delay, by equation (6), if no flow over-estimates its propagation delay.

    The n flows have the same alpha. This is section 3.1.2 of Boutremans and Le Boudec.
    """
    balance = sp.Eq(n * rate().derived.subs(x, 0), c)
    [derived] = sp.solve(balance, Delta)
    note = (
        "the paper prints the inverse, whose unit is 1/time; the rate c/n, which it gives next, is "
        "right"
    )
    share = rate().derived.subs({x: 0, Delta: derived})
    return Derivation(
        "3.1.2",
        r"\Delta",
        premises=(balance,),
        derived=derived,
        printed=c / (n * alpha),
        note=note,
        steps=(share,),
    )


@kinds.checked
def sensitivities(flows: int = 3) -> tuple[Derivation, Derivation, Derivation]:
    """Equations (7), (8) and (9) of Boutremans and Le Boudec: three derivatives of ln r_1.

    r_1 is the rate of flow 1, and x_i is the amount by which flow i over-estimates its propagation
    delay. All flows have the same alpha. The derivatives are

    - with respect to x_1;
    - with respect to x_2;
    - with respect to the queueing delay Delta, with x_1 fixed.

    In the first two, the change of x_1 or x_2 changes Delta, too: by equation (6) the rates must
    still add up to the capacity. ``flows`` is the number of flows, 2 to ``MOST_FLOWS``. SymPy needs
    two minutes for five flows.
    """
    Integer(2, MOST_FLOWS).check(flows, "flows")
    xs = sp.symbols(f"x1:{flows + 1}", positive=True)
    rates = [rate().derived.subs(x, x_i) for x_i in xs]
    balance = sum(rates) - c  # equation (6): this is 0
    # dDelta/dx_i, by the implicit function theorem
    delay_slopes = tuple(
        sp.simplify(-sp.diff(balance, x_i) / sp.diff(balance, Delta)) for x_i in xs
    )
    y = [Delta - x_i for x_i in xs]

    def rate_slope(k: int) -> Any:
        """The derivative of ln r_1 with respect to flow number k's x, counted from 0."""
        total = sp.diff(rates[0], xs[k]) + sp.diff(rates[0], Delta) * delay_slopes[k]
        return sp.simplify(total / rates[0])

    # the equations as printed, with i = 1 and k = 2
    others = sum(1 / y_j**2 for y_j in y[1:])
    not_k = [y[0], *y[2:]]
    printed_7 = others / (1 + y[0] ** 2 * others) * y[0]
    printed_8 = -1 / (y[0] + sum(y[1] ** 2 * y_j / y_j**2 for y_j in not_k))
    note = "the numerator's Delta - x_j should be Delta - x_i"
    partial = sp.simplify(sp.diff(rates[0], Delta) / rates[0])
    return (
        Derivation(
            "7",
            "rate_i'/rate_i",
            premises=(balance,),
            derived=rate_slope(0),
            printed=printed_7,
            steps=delay_slopes,
        ),
        Derivation(
            "8",
            "rate_i'/rate_i",
            premises=(balance,),
            derived=rate_slope(1),
            printed=printed_8,
            note=note,
            steps=delay_slopes,
        ),
        Derivation("9", "rate_i'/rate_i", premises=(rates[0],), derived=partial, printed=-1 / y[0]),
    )


@kinds.checked
def cross_corrected(flows: int = 3) -> Any:
    """Equation (8) of Boutremans and Le Boudec with its printed numerator corrected.

    The equation gives the derivative of ln r_1 with respect to x_2. Here r_1 is the rate of flow 1,
    and x_2 is the amount by which flow 2 over-estimates its propagation delay. As corrected, the
    equation agrees with the second result of ``sensitivities``. ``flows`` is the number of flows.
    """
    Integer(2, MOST_FLOWS).check(flows, "flows")
    y = [Delta - v for v in sp.symbols(f"x1:{flows + 1}", positive=True)]
    return -1 / (y[0] + sum(y[1] ** 2 * y[0] / v**2 for v in (y[0], *y[2:])))


def two_arrivals() -> Derivation:
    """Two flows arrive one after the other: the rate of the second over the rate of the first.

    The first flow finds no queue, so it does not over-estimate its propagation delay. The second
    flow finds a queue, and takes the queueing delay for a part of the propagation delay. By
    equation (6) of Boutremans and Le Boudec the rates add up to the capacity c. Delays are in units
    of alpha/c, where alpha is the threshold of both flows. The paper prints another result, which
    it takes from Bonald.
    """
    # equation (6) for the first flow alone, and for both flows; the second has x = Delta_1
    first = sp.Eq(1 / Delta, 1)
    [Delta_1] = sp.solve(first, Delta)
    second = sp.Eq(1 / Delta + 1 / (Delta - Delta_1), 1)
    Delta_2 = max(sp.solve(second, Delta), key=float)  # at the other root the second rate is < 0
    derived = sp.radsimp(Delta_2 / (Delta_2 - Delta_1))
    bonald = arrivals_bonald(2)
    note = "the printed rates add up to 5c/6, not to c"
    return Derivation(
        "3.1.2",
        "rate_2/rate_1",
        premises=(first, second),
        derived=derived,
        printed=bonald[1] / bonald[0],
        note=note,
        steps=(Delta_1, Delta_2),
    )


@kinds.checked
def arrivals_bonald(flows: int) -> tuple[Any, ...]:
    """Bonald's rates of n flows that arrived one by one, as Boutremans and Le Boudec print them.

    They are in section 3.1.2 of the paper. In units of the capacity, flow i has the rate
    1/(n S_n - (i-1) S_{i-1}), where S_i is the harmonic sum 1 + 1/2 + ... + 1/i.
    """
    Integer(1, MOST_FLOWS).check(flows, "flows")
    total = flows * sp.harmonic(flows)
    return tuple(1 / (total - i * sp.harmonic(i)) for i in range(flows))


def bonald_total() -> Derivation:
    """The sum of Bonald's rates (``arrivals_bonald``) of two flows; it should be the capacity.

    The rates are in units of the capacity, so their sum should be 1, but is not.
    """
    rates = arrivals_bonald(2)
    note = "x_i = (alpha/c)(i-1) S_{i-1} does not solve (6)"
    return Derivation(
        "6", r"\sum rate_i/c", premises=rates, derived=sp.Integer(1), printed=sum(rates), note=note
    )


def bend_integrand() -> Any:
    """The function ((1-s) ln(1-s) + s)/s^2; g in ``asymptotic`` is its integral from 0 to 1."""
    return ((1 - s) * sp.log(1 - s) + s) / s**2


def asymptotic() -> tuple[Derivation, Derivation]:
    """Many flows arrive one by one: their queueing delay, and the error of a formula by Bonald.

    Each flow mistakes the queueing delay that it finds for propagation delay. With n flows, the
    delay is about Delta_n = n (ln n + C), in units of alpha/c, where C is a constant. A flow that
    found j flows when it arrived has the rate 1/(Delta_n - Delta_j), in units of the capacity. With
    s = 1 - j/n and A = ln n + C this is 1/n times

        1/(s A - (1-s) ln(1-s)).

    While s is small, it is about 1/(s (A + 1)). The sum of 1/(n s (A + 1)) over the flows is about
    (ln n + gamma)/(A + 1), where gamma is Euler's constant. The sum of the true rates is larger,
    by about g/A^2. Here g is the integral of ``bend_integrand`` from 0 to 1. It is computed as the
    sum of 1/(k^2 (k + 1)) over k = 1, 2, ..., which has the same value. So for large n the sum of
    the rates is about

        (ln n + gamma)/(ln n + C + 1) + g/(ln n + C)^2.

    Both results follow from this formula:

    - The first result is the C, of the form a + b/ln n, with which the rates add up to 1. It lacks
      only terms in 1/ln^2 n and smaller ones.
    - The second result is for the rates that Bonald gives (``arrivals_bonald``). They belong to the
      delay n S_n, where S_n is the harmonic sum 1 + 1/2 + ... + 1/n. For large n this sum is about
      ln n + gamma, so C is gamma. Flows that fill the link have rates that add up to 1. The result
      is the sum of Bonald's rates. It is not 1, and the difference is the error of his formula. As
      a shorter form of this sum, docs/errata.md has 1 - 1/(ln n + gamma + pi^2/6). The two forms
      differ only in terms in 1/ln^3 n and smaller ones.
    """
    k = sp.symbols("k", integer=True, positive=True)
    g = sp.summation(1 / (k**2 * (k + 1)), (k, 1, sp.oo))
    total = (L + sp.EulerGamma) / (L + C + 1) + g / (L + C) ** 2
    # Let C = a + b t with t = 1/ln n. The series of total - 1 in t must begin with t^3. So its
    # coefficients of t and of t^2 must be 0, which gives a and b.
    a, b, t = sp.symbols("a b t")
    series = sp.series((total - 1).subs(C, a + b * t).subs(L, 1 / t), t, 0, 3).removeO()
    conditions = [sp.Eq(sp.expand(series).coeff(t, power), 0) for power in (1, 2)]
    [found] = sp.solve(conditions, [a, b], dict=True)
    note = "Bonald's delay n S_n has C = gamma, so it is too long by about alpha/c for each flow"
    return (
        Derivation(
            NO_NUMBER,
            "C",
            premises=(total,),
            derived=found[a] + found[b] / L,
            printed=sp.EulerGamma,
            note=note,
            steps=(g, *conditions),
        ),
        Derivation(
            NO_NUMBER,
            r"\sum rate_i/c",
            premises=(total,),
            derived=total.subs(C, sp.EulerGamma),
            printed=sp.Integer(1),
            steps=(g,),
        ),
    )


def derivations() -> tuple[Derivation, ...]:
    """All derivations of this module."""
    return (
        window(),
        rate(),
        rate_linux(),
        *upper_edge(),
        no_over_estimate(),
        *sensitivities(),
        two_arrivals(),
        bonald_total(),
        *asymptotic(),
    )
