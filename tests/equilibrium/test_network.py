"""Networks of Vegas flows: certified optima, the parking lot, one link, redundant links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from vegasmodel.equilibrium import network
from vegasmodel.status import Status

CHECKED = settings(deadline=None, max_examples=25, derandomize=True)


def random_network(seed):
    rng = np.random.default_rng(seed)
    links, flows = int(rng.integers(1, 9)), int(rng.integers(1, 21))
    A = (rng.random((links, flows)) < 0.4).astype(float)
    A[rng.integers(links, size=flows), np.arange(flows)] = 1
    return (
        A,
        10 ** rng.uniform(1, 3, links),
        10 ** rng.uniform(-1, 2, flows),
        (rng.exponential(0.02, flows) * rng.integers(0, 2)),
    )


def assert_certified(found):
    assert found.status == Status.DONE
    assert found.certificate.residual < 1e-10


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_are_certified(seed):
    A, c, alpha, x = random_network(seed)
    found = network.solve(A, c, alpha, x)
    assert_certified(found)
    # the certificate by hand: what each flow keeps queued, and no link over its capacity
    np.testing.assert_allclose(found.rates * (A.T @ found.prices - x), alpha, rtol=1e-10)
    assert np.all(A @ found.rates <= c * (1 + 1e-10))
    assert np.all(found.prices >= 0)


@pytest.mark.parametrize("seed", range(100, 105))
def test_no_other_rates_are_better(seed):
    """Random feasible rates around the answer have a lower objective."""
    A, c, alpha, x = random_network(seed)
    found = network.solve(A, c, alpha, x)
    rng = np.random.default_rng(seed)

    def value(r):
        return alpha @ np.log(r) + x @ r

    for size in (1e-4, 1e-2, 0.3):
        for _ in range(20):
            r = found.rates * np.exp(size * rng.normal(size=alpha.size))
            r /= max(1.0, (A @ r / c).max())
            assert value(r) < value(found.rates) + 1e-9 * (1 + abs(value(found.rates)))


@CHECKED
@given(
    st.lists(st.tuples(st.floats(0.1, 50.0), st.floats(0.0, 0.1)), min_size=1, max_size=8),
    st.floats(10.0, 1e5),
)
def test_one_link_is_the_steady_state_equation(flows, c):
    alpha, x = np.array(flows).T
    found = network.solve(np.ones((1, alpha.size)), c, alpha, x)

    def load(gap):
        return (alpha / (gap + x.max() - x)).sum() - c

    gap = brentq(load, alpha.min() / c / 2, alpha.sum() / c * 2, xtol=1e-18, rtol=1e-15)
    np.testing.assert_allclose(found.rates, alpha / (gap + x.max() - x), rtol=1e-9)
    assert_certified(found)


@pytest.mark.parametrize(("links", "long", "cross"), [(1, 1, 1), (5, 20, 20), (8, 1, 3)])
def test_parking_lot(links, long, cross):
    """Identical links: a flow over all links gets 1/links of the rate of a flow over one link."""
    c = 12_500.0
    found = network.solve(network.parking_lot(links, long, cross), np.full(links, c), 1.0)
    each = c / (links * cross + long)
    np.testing.assert_allclose(found.rates[:long], each, rtol=1e-11)
    np.testing.assert_allclose(found.rates[long:], links * each, rtol=1e-11)
    np.testing.assert_allclose(found.prices, 1 / (links * each), rtol=1e-11)
    assert_certified(found)


def test_redundant_links_have_prices_that_are_not_unique():
    A = np.array([[1.0, 1, 0], [1, 1, 0], [0, 1, 1]])
    found = network.solve(A, [10.0, 10.0, 20.0], [1.0, 2.0, 3.0])
    alone = network.solve(A[1:], [10.0, 20.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.rates, alone.rates, rtol=1e-10)
    assert found.prices[0] + found.prices[1] == pytest.approx(alone.prices[0])
    assert_certified(found)
    # any split of that price proves the same rates
    split = [0.0, alone.prices[0], alone.prices[1]]
    assert network.certificate(A, [10.0, 10.0, 20.0], [1, 2, 3], 0.0, found.rates, split).holds


def test_a_link_that_is_just_full_and_needs_no_price():
    """The second link is exactly full at the rate to which the first link limits the flow."""
    found = network.solve([[1.0], [1.0]], [10.0, 10.0], 1.0)
    assert found.rates[0] == pytest.approx(10.0, rel=1e-12)
    wide = network.solve([[1.0], [1.0]], [10.0, 11.0], 1.0)
    assert wide.prices[1] == 0
    assert_certified(found)
    assert_certified(wide)


@CHECKED
@given(st.integers(0, 10_000), st.randoms(use_true_random=False), st.floats(0.1, 10.0))
def test_order_time_and_packets(seed, random, factor):
    A, c, alpha, x = random_network(seed)
    rates = network.solve(A, c, alpha, x).rates
    flows, links = list(range(A.shape[1])), list(range(A.shape[0]))
    random.shuffle(flows)
    random.shuffle(links)
    other = network.solve(A[links][:, flows], c[links], alpha[flows], x[flows])
    np.testing.assert_allclose(other.rates, rates[flows], rtol=1e-8)
    slower = network.solve(A, c / factor, alpha, x * factor)
    np.testing.assert_allclose(slower.rates * factor, rates, rtol=1e-8)
    larger = network.solve(A, c * factor, alpha * factor, x)  # packets cut into smaller ones
    np.testing.assert_allclose(larger.rates, rates * factor, rtol=1e-8)


@CHECKED
@given(st.integers(0, 10_000), st.floats(1.1, 5.0))
def test_more_alpha_gives_more(seed, factor):
    A, c, alpha, x = random_network(seed)
    before = network.solve(A, c, alpha, x).rates[0]
    alpha = alpha.copy()
    alpha[0] *= factor
    assert network.solve(A, c, alpha, x).rates[0] >= before * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_accuracy_is_newtons(seed, monkeypatch):
    """A start with a relative error of 1e-4 gives the same answer; a useless start is flagged."""
    rough, rng = network._interior_point, np.random.default_rng(seed)
    monkeypatch.setattr(
        network,
        "_interior_point",
        lambda *data: rough(*data) * (1 + 1e-4 * rng.random(len(data[1]))),
    )
    assert_certified(network.solve(*random_network(seed)))


def test_an_answer_that_is_not_proved_is_flagged(monkeypatch):
    monkeypatch.setattr(network, "_polish", lambda A, c, a, x, start: start)
    monkeypatch.setattr(network, "_interior_point", lambda A, c, a, x: 2 * a.sum() / c + x.max())
    assert network.solve(*random_network(1)).status == Status.INACCURATE


@pytest.mark.parametrize("seed", range(10))
def test_wide_ranges(seed):
    """alpha over 12 orders of magnitude, capacities over 6."""
    rng = np.random.default_rng(seed)
    A, *_ = random_network(seed)
    links, flows = A.shape
    found = network.solve(A, 10 ** rng.uniform(0, 6, links), 10 ** rng.uniform(-6, 6, flows))
    assert_certified(found)


def test_the_certificate_finds_what_is_wrong():
    A, c = network.parking_lot(2), [10.0, 10.0]
    found = network.solve(A, c, 1.0)
    check = network.certificate
    assert check(A, c, 1.0, 0.0, found.rates * 1.01, found.prices).primal > 1e-3
    assert check(A, c, 1.0, 0.0, found.rates * 0.99, found.prices).complementarity > 1e-3
    assert check(A, c, 1.0, 0.0, found.rates, found.prices * 1.01).stationarity > 1e-3
    assert check(A, c, 1.0, 0.0, found.rates, -found.prices).dual == 1
    assert not check(A, c, 1.0, 0.0, found.rates * np.nan, found.prices).holds


@pytest.mark.parametrize(
    "arguments",
    [
        ([[1.0, 0.0]], 1.0, 1.0),
        ([[1.0, -1.0]], 1.0, 1.0),
        ([1.0], 1.0, 1.0),
        ([[1.0]], 0.0, 1.0),
        ([[1.0]], 1.0, [1.0, 2.0]),
        ([[1.0]], 1.0, 0.0),
        ([[1.0]], 1.0, 1.0, -0.1),
    ],
)
def test_misuse_is_an_error(arguments):
    with pytest.raises(ValueError, match=r"^\w+: "):
        network.solve(*arguments)
