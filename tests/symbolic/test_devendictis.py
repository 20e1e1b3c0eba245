"""`devendictis`: derived formulas against printed ones, and both against the numeric model."""

from functools import cache

import numpy as np
import pytest
import sympy as sp

from vegasmodel.equilibrium import minicycle, minicycle_derived, minicycle_printed
from vegasmodel.symbolic import devendictis as d

formulas = cache(d.formulas)

# The names of all formulas: that of its number, and of the quantity that it gives.
NAMES = (
    *("7 W_V", "section 3 W_R(N)", "10 P_Reno", "12 W_V(a)", "12 W_R(a)", "12 a", "section 3 A_V"),
    *("section 3 Delta_a", "15 delta(i)", "section 3 W_V(i) + W_R(i)", "section 3 Delta_b"),
    *("section 3 B_V", "16 W_V(b)", "16 b", "17 W_V(i)", "section 3 dW_V/dW_R", "8, 10 N"),
    *("section 3 B_th", "appendix A N", "appendix A P_Reno", "appendix A P_Vegas", "appendix A a"),
    "appendix A Delta",
)
CASES = [
    (1080.0, 0.08, 20.0, 3.0, 0.75),
    (400.0, 0.2, 31.0, 2.5, 0.6),
    (5000.0, 0.05, 60.0, 4.0, 0.5),
]


def test_exactly_two_printed_formulas_are_wrong():
    wrong = {(f.number, f.symbol): f.difference for f in formulas() if f.difference != 0}
    assert set(wrong) == {("section 3", "B_V"), ("appendix A", "Delta")}
    assert sp.simplify(wrong["section 3", "B_V"] - d.a * (d.b - d.a)) == 0
    short = -2 * (d.a - 1) * (d.N - d.a) / d.mu
    assert sp.simplify(wrong["appendix A", "Delta"] - short) == 0


def test_every_numbered_equation_from_7_on_is_there():
    """(8), (9), (11), (13), (14) are premises; (4) to (6) are the premises of (7)."""
    numbers = {f.number for f in formulas()}
    assert numbers == {"7", "8, 10", "10", "12", "15", "16", "17", "section 3", "appendix A"}


def test_every_formula_has_a_name_here():
    assert [f"{f.number} {f.symbol}" for f in formulas()] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_difference_is_also_numeric(name):
    """Printed and derived values at a random point, in case ``simplify`` is wrong."""
    [formula] = (f for f in formulas() if f"{f.number} {f.symbol}" == name)
    names = sorted(formula.derived.free_symbols | formula.printed.free_symbols, key=str)
    rng = np.random.default_rng(1)
    point = dict(zip(names, rng.uniform(0.5, 3.0, len(names)), strict=True))
    gap = sp.N((formula.printed - formula.derived).subs(point), 30)
    expected = sp.N(formula.difference.subs(point), 30)
    assert abs(gap - expected) < 1e-12


def chain(kind, mu, T, B, alpha, lam):
    """The paper's steps in order up to b: values of each formula in its ``kind``."""
    value = {d.mu: mu, d.T: T, d.B: B, d.alpha: alpha, d.lam: lam}

    def put(symbol, name):
        [f] = [f for f in formulas() if f.symbol == name and f.number != "appendix A"]
        value[symbol] = float(getattr(f, kind).subs(value))

    [seven] = [f for f in formulas() if f.number == "7"]
    value[d.W_VN] = float(getattr(seven, kind).subs({d.q: B}).subs(value))
    put(d.W_RN, "W_R(N)")
    value[d.W_R1], value[d.W_V1] = value[d.W_RN] / 2, lam * value[d.W_VN]  # (8), (9)
    put(d.N, "N")
    put(d.W_Va, "W_V(a)")
    put(d.W_Ra, "W_R(a)")
    put(d.a, "a")
    put(d.b, "b")
    value[d.W_Rb] = value[d.W_Ra] + value[d.b] - value[d.a]
    for name in ("P_Reno", "A_V", "B_V", "Delta_a", "Delta_b"):
        put(sp.Symbol(name), name)
    return {str(k): v for k, v in value.items()}


@pytest.mark.parametrize("case", CASES)
def test_numeric_model_follows_the_derived_formulas(case):
    x = chain("derived", *case)
    c = minicycle.solve(*case)
    for name, got in (("a", c.a), ("b", c.b), ("N", c.N), ("P_Reno", c.packets_reno)):
        np.testing.assert_allclose(got, x[name], rtol=1e-12)
    np.testing.assert_allclose(c.window_vegas[[0, 1, -1]], [x["W_V1"], x["W_Va"], x["W_VN"]])
    np.testing.assert_allclose(
        c.window_reno[[0, 1, 2, -1]], [x["W_R1"], x["W_Ra"], x["W_Rb"], x["W_RN"]]
    )
    # sums over mini-cycles 1..b, from the model's integrals over 1..b and half of both end terms
    half = (c.window_vegas[0] + c.window_vegas[2]) / 2
    np.testing.assert_allclose(
        np.dot(c.length[:2], (c.window_vegas[:2] + c.window_vegas[1:3]) / 2) + half,
        x["A_V"] + x["B_V"],
    )
    end = (case[0] * case[1] + 2 * (x["b"] - x["a"])) / case[0] / 2
    np.testing.assert_allclose(c.duration[:2].sum() + end, x["Delta_a"] + x["Delta_b"])


@pytest.mark.parametrize("case", CASES)
def test_printed_form_follows_the_printed_formulas(case):
    x = chain("printed", *case)
    mu, T, B, alpha, lam = (np.array(v) for v in case)
    vegas, reno, _ = minicycle_printed.equilibrium(mu, T, B, alpha, lam)
    np.testing.assert_allclose(reno, x["P_Reno"], rtol=1e-12)
    steps = np.array(x["N"] - x["b"])
    C_V = minicycle_printed.phase_3_sum(np.array(x["W_Rb"]), steps, mu * T, alpha)
    np.testing.assert_allclose(vegas - C_V, x["A_V"] + x["B_V"], rtol=1e-12)
    [seventeen] = [f for f in formulas() if f.number == "17"]
    point = {str(k): k for k in seventeen.printed.free_symbols}
    at = seventeen.printed.subs({point[k]: v for k, v in x.items() if k in point})
    window = minicycle_printed.vegas_window(np.array(x["W_Rb"] + 7), mu * T, alpha)
    np.testing.assert_allclose(window, float(at.subs(d.i, x["b"] + 7)), rtol=1e-12)


@pytest.mark.parametrize(("kind", "rtol"), [("derived", 1e-12), ("printed", 1e-12)])
def test_appendix_a(kind, rtol):
    mu, T, B, lam = 1080.0, 0.08, 3.0, 0.75
    value = {d.mu: mu, d.T: T, d.B: B, d.lam: lam}
    for name in ("N", "a", "P_Vegas", "P_Reno", "Delta"):
        [f] = [f for f in formulas() if (f.number, f.symbol) == ("appendix A", name)]
        value[sp.Symbol(name, positive=True)] = float(getattr(f, kind).subs(value))
    x = {str(k): v for k, v in value.items()}
    if kind == "derived":
        c = minicycle.solve(mu, T, B, 3.0, lam)
        got = (c.packets_vegas, c.packets_reno, c.period)
    else:
        got = minicycle_printed.appendix_a(*(np.array(v) for v in (mu, T, B, lam)))
    np.testing.assert_allclose(got, [x["P_Vegas"], x["P_Reno"], x["Delta"]], rtol=rtol)


def test_exact_threshold():
    exact = d.buffer_threshold().premises[1].rhs
    for mu, T, alpha, lam in ((1080.0, 0.08, 3.0, 0.75), (100.0, 0.01, 1.0, 0.5)):
        want = float(exact.subs({d.mu: mu, d.T: T, d.alpha: alpha, d.lam: lam}))
        np.testing.assert_allclose(minicycle.threshold(mu, T, alpha, lam), want, rtol=1e-12)


def test_vegas_can_follow_one_reno():
    """-1 < dW_V/dW_R < 0 along (7), for every queue."""
    slope = d.slope_in_queue()
    assert slope.is_negative
    assert sp.factor(slope + 1).is_positive


def test_sums_of_linear_windows_are_integrals_and_half_of_both_ends():
    assert d.trapezoids() == 0


M, B = 86.4, 20.0
VALUES = {
    d.mu: 1080.0, d.T: M / 1080.0, d.B: B, d.A: 5.0, d.h: 4.0, d.lam: 0.7,
    d.n_vegas: 2.0, d.n_reno: 3.0,
}  # fmt: skip


def path(cut=0.7):
    one = [np.array(x) for x in (M, B, 4.0, 5.0 * M, cut, 2.0, 3.0, 0.0)]
    edge = minicycle_derived.Edge(one[2], one[3])
    return minicycle_derived.Path(one[0], one[1], edge, edge, *one[4:], np.array(False))


def test_loss_limited_window_of_several_sources():
    want = float(d.loss_limited().derived.subs(VALUES))
    np.testing.assert_allclose(
        minicycle_derived.loss_limited_window(M, B, 0.7, 2.0, 3.0), want, rtol=1e-12
    )


def test_held_window_solves_the_derived_quadratic():
    for cut in (0.7, 1.0):
        quadratic = d.held().derived.subs(VALUES | {d.lam: cut})
        root = max(float(r) for r in sp.real_roots(sp.nsimplify(quadratic)))
        edge = 4.0 + 5.0 * M / B
        np.testing.assert_allclose(minicycle_derived.held_window(path(cut)), max(4.0 + root, edge))


def test_growth_ends_where_the_derived_quadratic_says():
    c = minicycle.solve(1080.0, 0.08, 30.0, 2.5, 0.6, n_vegas=2, n_reno=2)
    n = float(c.b - c.a)
    at = {d.mu: 1080.0, d.T: 0.08, d.A: 5.0, d.h: 5.0, d.n_vegas: 2.0, d.n_reno: 2.0}
    at |= {d.n: n, d.W_Va: float(2 * c.window_vegas[1])}
    terms = d.meeting().derived.subs(at)
    assert abs(float(terms)) < 1e-9 * 5.0 * M


def test_lag_is_the_derived_one():
    c = minicycle.solve(1080.0, 0.08, 30.0, 3.0, n_reno=2)
    lag = float(c.length[3])
    assert lag > 1
    V, R = float(c.window_vegas[3]), float(2 * c.window_reno[3])
    at = {d.V: V, d.h: 3.0, d.q: V + R - M, d.n_vegas: 1.0, d.n_reno: 2.0}
    np.testing.assert_allclose(lag, float(d.catching_up().derived.subs(at)), rtol=1e-9)


def test_antiderivatives_of_phase_3():
    q0, q1 = 7.0, 18.0
    got = minicycle_derived._following(path(), np.array(q0), np.array(q1))
    for value, completion in zip(got, d.following(), strict=True):
        f = completion.derived.subs(VALUES)
        want = float(f.subs(d.q, q1) - f.subs(d.q, q0))
        np.testing.assert_allclose(value, want, rtol=1e-12, err_msg=completion.symbol)
