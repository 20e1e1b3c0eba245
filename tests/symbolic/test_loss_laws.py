"""Random loss, RED and networks: derived formulas against print and the numeric models."""

import math

import numpy as np
import pytest
import sympy as sp

from vegasmodel.equilibrium import network as numeric_network
from vegasmodel.equilibrium import random_loss as numeric
from vegasmodel.equilibrium import red as numeric_red
from vegasmodel.fields.errors import FieldError
from vegasmodel.symbolic import network, random_loss, red

HALF = sp.Rational(1, 2)


def test_constants_of_the_square_root_laws():
    periodic = random_loss.square_root_periodic().derived
    chance = random_loss.square_root_random().derived
    [m] = chance.free_symbols - {random_loss.d}
    for decrease in (0.5, 0.75, 0.9):
        point = {random_loss.d: decrease}
        np.testing.assert_allclose(
            numeric.square_root(1.0, 1.0, 1.0, decrease, "periodic"), float(periodic.subs(point))
        )
        point[m] = float(numeric.random_factor(decrease))
        np.testing.assert_allclose(
            numeric.square_root(1.0, 1.0, 1.0, decrease), float(chance.subs(point))
        )


def test_the_product_makes_the_moment_step():
    """Up to d^(2 terms), which vanishes; M(0) = 1, so the function belongs to the distribution."""
    terms = 6
    moment, step = random_loss.moment_product(terms)
    d, s = random_loss.d, random_loss.s
    tail = 1 - d ** (2 * (s + terms))
    assert sp.simplify(step - random_loss.moment_step().derived * tail) == 0
    assert sp.simplify(moment.subs(s, 0)) == 1
    many, _ = random_loss.moment_product(40)
    np.testing.assert_allclose(
        numeric.random_factor(0.5), float(many.subs({d: 0.5, s: 0.5})), rtol=1e-12
    )


@pytest.mark.parametrize("wrong", [0, 1001])
def test_the_product_has_1_to_1000_terms(wrong):
    with pytest.raises(FieldError, match=f"^terms: {wrong} is not allowed"):
        random_loss.moment_product(wrong)


def test_pftk_at_one_half_is_as_printed():
    d, b, p = random_loss.d, random_loss.b, random_loss.p
    window = random_loss.pftk_window()
    for point in ({b: 1, p: 0.01}, {b: 2, p: 0.2}):
        assert abs(window.difference.subs({**point, d: 0.5})) < 1e-12
    limited = random_loss.pftk_limited_rounds()
    gap = sp.simplify(limited.difference.subs(d, HALF))
    assert gap == 0
    assert random_loss.pftk_silence().difference == 0
    assert sp.simplify(sp.expand(random_loss.pftk_timeout_probability().difference)) == 0


@pytest.mark.parametrize("decrease", [0.5, 0.75])
@pytest.mark.parametrize("limit", [math.inf, 8.0])
def test_pftk_numerically(decrease, limit):
    """The rate put together from the derived parts."""
    loss, rtt, timeout, every = 0.01, 0.1, 0.4, 2
    point = {random_loss.p: loss, random_loss.d: decrease, random_loss.b: every}
    window = float(random_loss.pftk_window().derived.subs(point))
    if limit < window:
        window = limit
        rounds = float(
            random_loss.pftk_limited_rounds().derived.subs({**point, random_loss.W_m: limit})
        )
    else:
        rounds = every * (1 - decrease) * window
    chance = random_loss.pftk_timeout_probability().derived
    [q] = chance.free_symbols - {random_loss.w}
    chance = min(1.0, float(chance.subs({q: 1 - loss, random_loss.w: window})))
    silence = float(random_loss.pftk_silence().derived.subs(point)) * timeout
    sent = (1 - loss) / loss + window + chance / (1 - loss)
    rate = sent / (rtt * (rounds + 1) + chance * silence)
    assert numeric.pftk(loss, rtt, timeout, every, limit, decrease) == pytest.approx(
        rate, rel=1e-12
    )


def test_hold_windows_numerically():
    shared, alone = (f.derived for f in random_loss.hold_windows())
    point = {random_loss.RTT: 0.07, random_loss.base: 0.05, random_loss.alpha: 2.0}
    assert numeric.hold_window(0.05, 0.02, 2.0) == pytest.approx(float(shared.subs(point)))
    point = {random_loss.c: 500.0, random_loss.base: 0.05, random_loss.alpha: 2.0}
    assert numeric.hold_window(0.05, 0.0, 2.0, 0.0, 500.0) == pytest.approx(
        float(alone.subs(point))
    )


def test_repair_without_timeout():
    assert random_loss.repaired().difference == 0


@pytest.mark.parametrize(
    ("found", "name"), [(red.spacing_wait(), "wait"), (red.spacing_uniform(), "uniform")]
)
def test_spacing_of_drops(found, name):
    recursion = found.steps[0]
    assert recursion == 0  # the survival used is the one that the rule makes
    for base in (0.02, 0.1, 0.5):
        assert numeric_red.effective(base, name) == pytest.approx(
            float(found.derived.subs(red.p_b, base))
        )


def test_demand_falls_term_by_term():
    *rising, vegas = red.falling()
    for slope in rising:
        assert all(term.is_positive for term in sp.Add.make_args(sp.expand(slope)))
    assert vegas.subs(red.q, red.c * (red.x + red.R_0)).is_negative  # for any q/c > x


def test_networks():
    stationary = network.stationarity()
    assert stationary.difference == 0
    assert stationary.steps[0].is_negative
    derived = network.parking_lot().derived
    rate = derived.subs({network.c: 12_500, network.links: 5, network.long: 20, network.cross: 20})
    found = numeric_network.solve(numeric_network.parking_lot(5, 20, 20), np.full(5, 12_500.0), 1.0)
    assert found.rates[0] == pytest.approx(float(rate), rel=1e-11)
