"""All equilibria of delay-based and loss-based flows, against equations written by hand."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from vegasmodel.equilibrium import network
from vegasmodel.equilibrium.heterogeneous import Flows, _Network, droptail, equilibria, red
from vegasmodel.equilibrium.random_loss import square_root
from vegasmodel.equilibrium.red import Curve
from vegasmodel.fields.errors import FieldError

K = float(square_root(1.0, 1.0))  # Reno's rate is K/(R sqrt p)
TRIANGLE = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1]])  # two Vegas flows, Reno over all links


def linear(low, high, top):
    return red(Curve(low, high, top, spacing="independent", gentle=True))


def test_one_link_is_the_one_root_of_a_polynomial():
    # e/s + K/(sqrt(p) (T + s)) = c with p = a (c s - low); t = sqrt(s - low/c), times denominators
    c, e, T, low, a = 500.0, 3.0, 0.08, 10.0, 0.1 / 50.0
    s0, k = low / c, K / math.sqrt(a * c)
    # c t (s0 + t^2)(T + s0 + t^2) = e t (T + s0 + t^2) + k (s0 + t^2)
    coefficients = [c, 0, c * (2 * s0 + T) - e, -k, c * s0 * (T + s0) - e * (T + s0), -k * s0]
    roots = mpmath.polyroots(coefficients, maxsteps=200, extraprec=200)
    (t,) = (r for r in roots if abs(mpmath.im(r)) < 1e-12 and mpmath.re(r) > 0)
    found = equilibria([[1, 1]], c, [linear(low, 60, 0.1)], Flows(["vegas", "reno"], [0.05, T], e))
    assert found.complete
    (one,) = found.found
    assert one.queue[0] == pytest.approx(c * (s0 + float(t) ** 2), rel=1e-10)
    assert one.index == 1
    assert one.stable_without_delay


def test_three_equilibria_of_two_sets_of_full_links():
    # If all links are full, two loads fix the rates: 100, 100 and 20. Vegas's rates fix the sums of
    # its delays, 0.06 s.  So the queue of the first link fixes all others, and Reno's equation
    # determines it.  Or only the first link is full. (A factor near 1 makes Vegas's own losses
    # negligible.)
    T, c, e = 0.2, np.array([220.0, 120.0, 120.0]), 6.0
    curves = [linear(6, 9, 0.05), linear(0, 20, 0.125), linear(0, 20, 0.125)]
    flows = Flows(["vegas", "vegas", "reno"], [0.05, 0.05, T], e, 0.0, [0.9999, 0.9999, 0.5])
    found = equilibria(TRIANGLE, c, curves, flows)

    def reno(s):
        p = sum(np.interp(c[i] * s[i], *curves[i].T) for i in range(3))
        return K / ((T + sum(s)) * math.sqrt(p))

    def all_full(first):
        return reno([first / c[0], *[0.06 - first / c[0]] * 2]) - 20.0

    def first_full(first):
        return reno([first / c[0], 0.0, 0.0]) + 2 * e * c[0] / first - c[0]

    at = np.linspace(1e-6, 0.06 * c[0] - 1e-6, 1000)
    values = np.array([all_full(first) for first in at])
    turns = np.flatnonzero(np.diff(np.sign(values)))
    roots = [brentq(all_full, at[i], at[i + 1], xtol=1e-13) for i in turns]
    roots.append(brentq(first_full, 6.001, 17.9, xtol=1e-13))
    assert e * c[0] / roots[-1] + reno([roots[-1] / c[0], 0.0, 0.0]) < 120.0
    assert len(roots) == 3
    assert found.complete
    known = sorted(found.found, key=lambda one: one.queue[0])
    np.testing.assert_allclose([one.queue[0] for one in known], roots, rtol=1e-9)
    assert [one.index for one in known] == [1, -1, 1]
    assert [one.stable_without_delay for one in known] == [True, False, True]
    assert [int(one.full.sum()) for one in known] == [3, 3, 1]
    assert max(one.residual for one in known) < 1e-9


@st.composite
def networks(draw):
    """One or two links, a flow at each, one over all links, and others; any laws."""
    links = draw(st.integers(1, 2))
    paths = st.lists(st.booleans(), min_size=links, max_size=links).filter(any)
    others = draw(st.lists(paths, max_size=2))
    routing = np.array([*np.eye(links, dtype=bool), np.ones(links, bool), *others]).T
    each = {"min_size": routing.shape[1], "max_size": routing.shape[1]}
    curves = []
    for _ in range(links):
        low, span, top = (10.0 ** draw(moved(*ends)) for ends in ((0, 2), (-1, 1), (-2, -0.5)))
        curves.append(
            droptail(low) if draw(st.booleans()) else red(Curve(low, low * (1 + span), top))
        )
    flows = Flows(
        draw(st.lists(st.sampled_from(["vegas", "vegas-linux", "reno", "cubic"]), **each)),
        draw(st.lists(moved(0.01, 0.3), **each)),
        draw(st.lists(moved(1.0, 20.0), **each)),
    )
    return routing, [10.0 ** draw(moved(2.5, 3.5)) for _ in range(links)], curves, flows


def moved(low, high):
    """A number between two ends, but not a round one.

    If a queue is just at a corner of a price curve, the count of equilibria may be even.
    """
    return st.floats(0.0, 0.99).map(lambda part: low + (high - low) * (part + math.pi / 1000))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(networks())
def test_their_number_is_odd(network):
    """Tang, Wang, Low and Chiang 2007: the number is odd in almost all networks."""
    found = equilibria(*network)
    assert found.complete
    assert found.index_sum == 1
    assert len(found.found) % 2 == 1
    for one in found.found:
        assert one.residual < 1e-9
        assert one.index == 1 or not one.stable_without_delay  # an odd number of growing modes


def test_vegas_alone_is_the_maximum_of_utilities():
    routing = np.array([[1, 1, 0], [1, 0, 1]])
    known = network.solve(routing, [300.0, 200.0], [3.0, 2.0, 4.0], 0.001)
    flows = Flows(["vegas"] * 3, 0.1, [3.0, 2.0, 4.0], 0.001)
    (one,) = equilibria(routing, [300.0, 200.0], [droptail(1e4)] * 2, flows).found
    np.testing.assert_allclose(one.rates, known.rates, rtol=1e-9)
    np.testing.assert_allclose(one.queue, known.prices * [300.0, 200.0], rtol=1e-9)


def test_slopes_of_the_loads():
    curves = [red(Curve(3, 9, 0.1)), droptail(7.0)]
    flows = Flows(["vegas", "vegas-linux", "reno", "cubic"], [0.05, 0.07, 0.1, 0.2], 6.0, 0.001)
    net = _Network(np.array([[1, 1, 1, 1], [1, 0, 1, 1]]), [400.0, 300.0], curves, flows)
    piece, part, h = np.array([[1, 1]]), np.array([[0.4, 0.01]]), 1e-6
    through = net.loads(piece, part)[2][0]
    for k in range(2):
        step = h * part * np.eye(2)[k]
        ends = [net.loads(piece, part + sign * step)[1][0] for sign in (1, -1)]
        np.testing.assert_allclose(through[:, k], (ends[0] - ends[1]) / (2 * step[0, k]), rtol=1e-6)


def test_what_is_out_of_range_is_refused():
    flows = Flows(["vegas"], 0.1)
    with pytest.raises(FieldError, match="law"):
        Flows(["tahoe"], 0.1)
    with pytest.raises(FieldError, match="rtt"):
        Flows(["reno"], 0.0)
    with pytest.raises(ValueError, match="rise from"):
        equilibria([[1]], 100.0, [[(0, 0), (5, 0.1)]], flows)
    with pytest.raises(ValueError, match="2 curves"):
        equilibria([[1], [1]], 100.0, [droptail(5.0)], flows)
    with pytest.raises(FieldError, match=r"^starts: \d+ is not allowed; at most"):
        equilibria(np.ones((12, 1)), 100.0, [droptail(5.0)] * 12, flows)
