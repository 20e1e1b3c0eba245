"""`podlesny`: derived formulas against printed ones, and both against the numeric model."""

import numpy as np
import pytest
import sympy as sp

from vegasmodel.equilibrium import rate_delay as rd
from vegasmodel.symbolic import podlesny as s

POINT = {s.n_rate: 300, s.n_delay: 100, s.C: 12_500, s.k: 2}


def test_no_formula_is_printed_wrong_and_the_index_has_its_worked_value():
    assert all(f.difference == 0 for f in s.derivations() if f.printed is not None)
    numbers = {s.U_V: 0.24, s.n_delay: 1, s.U_R: 0.74, s.n_rate: 3}
    assert round(float(s.relative_fairness().derived.subs(numbers)), 2) == 0.97


def test_every_equation_of_the_paper_on_services_is_there():
    assert {f.number for f in s.derivations()} >= {"2", "5", "6", "7", "section IV-A"}


def test_services_numerically():
    six, seven = (float(f.derived.subs(POINT)) for f in s.service_rates())
    np.testing.assert_allclose((six, seven), rd.service_rates(300, 100, 12_500, 2), rtol=1e-14)
    np.testing.assert_allclose(
        float(s.volume_ratio().derived.subs(POINT)), rd.volume_ratio(300, 100, 2), rtol=1e-14
    )


@pytest.mark.parametrize("decrease", [0.5, 0.75])
@pytest.mark.parametrize("buffer", [0.0, 20.0])
def test_utilization_numerically(decrease, buffer):
    S, T = 1000.0, 0.1
    derived = s.rate_utilization().derived.subs({s.b: decrease, s.y: 1 + buffer / (S * T)})
    assert rd.rate_utilization(T, buffer, S, decrease) == pytest.approx(float(derived), rel=1e-13)


@pytest.mark.parametrize("decrease", [0.5, 0.75])
def test_loss_of_a_small_buffer_numerically(decrease):
    product = float(s.delay_loss().derived.subs(s.b, decrease))
    window = (800.0 * 0.1 + 5.0) / 10
    loss = rd.delay_loss(10, 0.1, 5.0, 800.0, 1.0, decrease)
    assert loss * window**2 == pytest.approx(product, rel=1e-13)


def test_buffer_and_its_delay_are_inverse():
    derived = s.delay_buffer().derived
    assert sp.simplify(derived - s.S_D * s.d) == 0
    assert rd.buffer_for_delay(0.05, 600.0) == pytest.approx(
        float(derived.subs({s.S_D: 600, s.d: 0.05}))
    )
    # section IV-D: 10 % of 10 Mbit/s for 250 ms is the 31.25 KB of the text, 31 packets of 1 KB
    assert rd.split_buffer(10e6 / 8 * 0.25 / 1000)[1] == 31.0


def test_latex():
    assert s.service_rates()[0].latex.startswith(r"S_R = \frac{")
