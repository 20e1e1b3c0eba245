"""`boutremans`: derived formulas against printed ones, and both against the numeric model."""

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp

from vegasmodel.equilibrium import arrivals, secular, sensitivity
from vegasmodel.symbolic import boutremans as b

# what the paper says, number -> formulas printed wrong; all others agree
WRONG = {"3.1.2", "8", "6", "-"}


def test_printed_formulas_that_differ_are_the_known_ones():
    printed = [f for f in b.derivations() if f.printed is not None]
    assert {f.number for f in printed if f.difference != 0} == WRONG
    assert {f.number for f in printed} >= {"4", "5", "7", "8", "9", "10", "11", "3.1.2"}


def test_window_by_its_own_step():
    four = b.window()
    assert sp.simplify((four.steps[0].lhs - four.steps[0].rhs).subs(b.W, four.derived)) == 0


def test_steady_state_against_the_solver():
    x, c = [0.01, 0.03, 0.0], 40.0
    state = secular.solve(2.0, x, c)
    five = b.rate().derived
    for v, r in zip(x, state.rates, strict=True):
        value = five.subs({b.alpha: 2, b.Delta: float(state.delay), b.x: v})
        assert float(value) == pytest.approx(r, rel=1e-13)
    state = secular.solve(2.0, x, c, rtt=[0.1, 0.2, 0.05], variant="linux")
    for form in (b.rate_linux().derived, b.rate_linux().steps[1]):
        for v, d, r in zip(x, [0.1, 0.2, 0.05], state.rates, strict=True):
            value = form.subs({b.alpha: 2, b.Delta: float(state.delay), b.x: v, b.d: d})
            assert float(value) == pytest.approx(r, rel=1e-12)


def test_no_over_estimate():
    derived = b.no_over_estimate()
    value = derived.derived.subs({b.n: 5, b.alpha: 2, b.c: 40})
    assert float(value) == pytest.approx(secular.queueing_delay([2.0] * 5, 0.0, 40.0), rel=1e-15)
    assert derived.steps[0] == b.c / b.n


def test_corrected_cross_sensitivity_is_the_derived_one():
    for flows in (2, 3):
        eight = b.sensitivities(flows)[1]
        assert sp.simplify(eight.derived - b.cross_corrected(flows)) == 0


def test_sensitivities_against_the_numeric_forms():
    x, c = [0.01, 0.04, 0.0], 60.0
    delta = float(secular.queueing_delay([2.0] * 3, x, c))
    at = {b.Delta: delta, **dict(zip(sp.symbols("x1:4", positive=True), x, strict=True))}
    seven, eight, nine = b.sensitivities()
    y = delta - np.array(x)
    assert float(seven.derived.subs(at)) == pytest.approx(sensitivity.own(2.0, x, c)[0], rel=1e-11)
    assert float(seven.printed.subs(at)) == pytest.approx(sensitivity.own_printed(y)[0], rel=1e-11)
    cross = sensitivity.cross(2.0, x, c)[0, 1]
    printed = sensitivity.cross_printed(y)[0, 1]
    assert float(eight.derived.subs(at)) == pytest.approx(cross, rel=1e-11)
    assert float(eight.printed.subs(at)) == pytest.approx(printed, rel=1e-11)
    assert abs(printed / cross - 1) > 0.01
    assert float(nine.derived.subs(at)) == pytest.approx(sensitivity.delay(2.0, x, c)[0], rel=1e-11)


@pytest.mark.parametrize(
    ("gaps", "right"),
    [
        ((5.0, 2.5), True),  # n = 2
        ((5.0, 5.0, 5.0, 2.5), True),  # all are equal but that of flow k, the last
        ((5.0, 4.0, 5.0, 5.0), False),
    ],
)
def test_where_the_printed_8_is_right(gaps, right):
    """docs/errata.md: for two flows, and if all gaps but that of flow k are equal."""
    y = np.array(gaps)
    x = 5.0 - y
    c = float(np.sum(1 / y))  # so that Delta is 5
    derived, printed = sensitivity.cross(1.0, x, c)[0, -1], sensitivity.cross_printed(y)[0, -1]
    assert bool(printed == pytest.approx(derived, rel=1e-9)) is right


def test_arrivals():
    ratio = b.two_arrivals().derived
    assert sp.simplify(ratio - (1 + sp.sqrt(5)) / 2) == 0
    rates = arrivals.arrive([3.0, 3.0], 7.0).rates
    assert rates[1] / rates[0] == pytest.approx(float(ratio), rel=1e-14)
    np.testing.assert_allclose(
        arrivals.bonald(6, 2.0, 9.0)[1] / 9.0, [float(r) for r in b.arrivals_bonald(6)], rtol=1e-14
    )
    assert b.bonald_total().printed == sp.Rational(5, 6)


def test_asymptotic_constants():
    integrand = sp.lambdify(b.s, b.bend_integrand(), "mpmath")
    with mpmath.workdps(40):  # the integrand cancels near 0
        integral = mpmath.quad(integrand, [mpmath.mpf(10) ** -15, 0.5, 1])
    assert float(integral) == pytest.approx(float(sp.pi**2 / 6 - 1), rel=1e-10)
    exact, total = b.asymptotic()
    log = np.log(500.0)
    known = arrivals.asymptotes(500, 1.0, 1.0)
    level = log + float(exact.derived.subs(b.L, log))
    assert known.delay == pytest.approx(500 * level, rel=1e-13)
    known = arrivals.asymptotes(500, 1.0, 1.0, "bonald")
    assert known.total == pytest.approx(float(total.derived.subs(b.L, log)), rel=1e-13)


def test_the_errata_have_the_sum_of_bonalds_rates_to_second_order():
    """Equal to the derived sum up to 1/ln^2 n, and near the printed rates of 30 to 3000 flows."""
    text = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
    [formula] = re.findall(r"for many to about c \((.*?\))\)", text)
    names = {"L_n": b.L, "gamma": sp.EulerGamma}
    stated = sp.sympify(formula.replace("ln n", "L_n").replace("^", "**"), locals=names)
    t = sp.symbols("t", positive=True)  # 1/ln n
    left = (stated - b.asymptotic()[1].derived).subs(b.L, 1 / t)
    assert sp.simplify(sp.series(left, t, 0, 3).removeO()) == 0
    for n in (30, 300, 3000):
        log, total = np.log(n), arrivals.bonald(n, 1.0, 1.0)[1].sum()
        assert float(stated.subs(b.L, log)) == pytest.approx(total, abs=log**-3)
