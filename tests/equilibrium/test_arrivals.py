"""Order of arrival: the exact recursion, Bonald's form, the limit of many flows, and bands."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from vegasmodel.equilibrium import _arrivals_many, arrivals, bands, secular
from vegasmodel.status import Status


def test_two_flows_stand_in_the_golden_ratio():
    rates = arrivals.arrive([1.0, 1.0], 1.0).rates
    assert rates[1] / rates[0] == pytest.approx((1 + math.sqrt(5)) / 2, rel=1e-15)


def test_recursion_solves_its_equation_for_every_number_of_flows():
    n, alpha, c = 1000, 3.0, 250.0
    state = arrivals.arrive(np.full(n, alpha), c)
    assert state.status == 0
    assert state.x[0] == 0.0
    np.testing.assert_array_equal(state.x[1:], state.delays[:-1])
    for i in range(2, n + 1):  # (6) of the first i flows
        total = math.fsum(alpha / (state.delays[i - 1] - state.x[:i]))
        assert abs(total / c - 1) < 1e-12
        if i % 200 == 0:
            rates = arrivals.arrive(np.full(i, alpha), c).rates
            assert abs(math.fsum(rates) / c - 1) < 1e-12
    assert abs(math.fsum(state.rates) / c - 1) < 1e-12
    assert np.all(np.diff(state.rates) > 0)  # late flows win


@pytest.mark.parametrize(
    "alpha",
    [
        np.full(1200, 3.0),
        np.random.default_rng(4).uniform(0.5, 6.0, 1200),
        np.exp(np.random.default_rng(5).uniform(-5.0, 5.0, 1200)),
        np.repeat([1e3, 1e-2, 1e3], 300),  # digits cancel, then Delta leaps
    ],
    ids=["one threshold", "similar", "over four decades", "leaps"],
)
def test_far_flows_taken_together_change_nothing(alpha, monkeypatch):
    monkeypatch.setattr(arrivals, "MANY_FLOWS", math.inf)  # one by one
    fast, residual = _arrivals_many.delays(alpha, 1e4)
    np.testing.assert_allclose(fast, arrivals.arrive(alpha, 1e4).delays, rtol=1e-14)
    assert abs(residual).max() < 1e-12


def test_thousands_of_arrivals(monkeypatch):
    slow = arrivals.arrive(np.full(300, 3.0), 500.0, rtt=0.1)
    monkeypatch.setattr(arrivals, "MANY_FLOWS", 200)
    fast = arrivals.arrive(np.full(300, 3.0), 500.0, rtt=0.1)
    for one, other in zip(fast[:-1], slow[:-1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert 0 < fast.residual < 1e-12
    # what the series must not be asked for goes the exact way, and is flagged there
    assert arrivals.arrive(np.r_[np.ones(300), math.nan], 500.0).status != 0


def test_a_hundred_thousand_arrivals_solve_their_equation():
    n, alpha, c = 100_000, 3.0, 1e4
    state = arrivals.arrive(np.full(n, alpha), c)
    assert state.status == 0
    for i in np.random.default_rng(1).integers(1, n, 20):
        # (6) of the first i flows, all poles one by one
        assert abs(math.fsum(alpha / (state.delays[i] - state.x[: i + 1])) / c - 1) < 1e-11
    known = arrivals.asymptotes(n, alpha, c)
    assert state.delays[-1] == pytest.approx(known.delay, rel=1 / math.log(n) ** 2)


def test_bonald_breaks_the_papers_own_equation():
    for n in (2, 5, 20, 100):
        x, rates = arrivals.bonald(n, 2.0, 50.0)
        s = [sum(1 / j for j in range(1, i + 1)) for i in range(n + 1)]
        np.testing.assert_allclose(x, [2.0 / 50.0 * i * s[i] for i in range(n)], rtol=1e-13)
        # the paper's own Delta and x give these rates by (5); they fall short of c
        np.testing.assert_allclose(rates, 2.0 / (2.0 / 50.0 * n * s[n] - x), rtol=1e-12)
        assert rates.sum() < 0.9 * 50.0
    assert arrivals.bonald(2, 2.0, 50.0)[1].sum() == pytest.approx(50.0 * 5 / 6, rel=1e-15)
    # figure 2, n = 20: by the printed form the last rate is n S_n/(S_n + 1 - 1/n) times the first
    rates, s = arrivals.bonald(20, 1.0, 1.0)[1], sum(1 / j for j in range(1, 21))
    assert rates[-1] / rates[0] == pytest.approx(20 * s / (s + 1 - 1 / 20), rel=1e-13)


def test_asymptotics_close_in_at_the_stated_order():
    errors = []
    for n in (30, 300, 3000):
        state, known = arrivals.arrive(np.ones(n), 1.0), arrivals.asymptotes(n, 1.0, 1.0)
        log = math.log(n)
        level, stated = state.delays[-1] / n - log, known.delay / n - log
        errors.append(abs(level - stated) * log**2)
        rates = arrivals.bonald(n, 1.0, 1.0)[1]
        bonald = arrivals.asymptotes(n, 1.0, 1.0, "bonald")
        assert 1 / rates[0] == pytest.approx(bonald.delay, rel=2 / n)
        assert rates[-1] == pytest.approx(bonald.last, rel=2 / n)
        assert abs(rates.sum() - bonald.total) < 1 / log**3
        assert state.rates[-1] == pytest.approx(known.last, rel=2 / log**2)
        # how far apart: one alpha/c a flow, less (pi^2/6 - 1)/ln n
        apart = (1 / rates[0] - state.delays[-1]) / n
        assert apart == pytest.approx(1 - arrivals.SECOND_ORDER / log, abs=2 / log**2)
    assert max(errors) < 2.0  # |C - stated| = O(1/ln^2 n)
    with pytest.raises(ValueError, match="one of"):
        arrivals.asymptotes(5, 1.0, 1.0, "other")


def test_any_parameters_per_flow_and_batches():
    rng = np.random.default_rng(1)
    alpha, rtt, c = (
        rng.uniform(1, 5, (4, 6)),
        rng.uniform(0.01, 0.2, (4, 6)),
        rng.uniform(50, 500, 4),
    )
    for variant in secular.VARIANTS:
        batch = arrivals.arrive(alpha, c, rtt=rtt, variant=variant)
        for k in range(4):
            one = arrivals.arrive(alpha[k], c[k], rtt=rtt[k], variant=variant)
            np.testing.assert_array_equal(batch.rates[k], one.rates)
            x = 0.0
            for i in range(6):  # each step is a steady state of the flows so far
                assert one.x[i] == x
                x = secular.queueing_delay(
                    alpha[k, : i + 1], one.x[: i + 1], c[k], rtt[k, : i + 1], variant
                )
        scaled = arrivals.arrive(alpha, c / 3, rtt=rtt * 3, variant=variant)
        np.testing.assert_allclose(scaled.rates * 3, batch.rates, rtol=1e-11)


@pytest.mark.parametrize("variant", secular.VARIANTS)
def test_alpha_equal_beta_is_the_recursion(variant):
    rng = np.random.default_rng(2)
    alpha, rtt = rng.uniform(1, 4, 7), rng.uniform(0.02, 0.2, 7)
    plain = arrivals.arrive(alpha, 300.0, rtt=rtt, variant="paper")
    banded = arrivals.arrive(alpha, 300.0, beta=alpha, rtt=rtt, variant="paper")
    np.testing.assert_allclose(banded.rates, plain.rates, rtol=1e-14)
    # with a dead band of one packet the point lies in the band of its own over-estimates
    point = arrivals.arrive(alpha, 300.0, beta=alpha, rtt=rtt, variant=variant)
    band = bands.equilibria(alpha, alpha, point.x, 300.0, rtt=rtt, variant=variant)
    assert band.contains(point.rates, 1e-9) or variant != "paper"
    low, high = band.rate_range
    assert np.all(point.rates >= low * (1 - 1e-12))
    assert np.all(point.rates <= high * (1 + 1e-12))


def by_the_rule(alpha, beta, c, d, x=None):
    """The arrivals by a differential equation of windows, (1): up below alpha, down above beta."""
    n = len(d)
    w, over = np.zeros(n), np.zeros(n)
    delay = 0.0
    for i in range(n):
        over[i] = delay if x is None else x[i]
        w[i] = 1e-3
        for _ in range(60_000):
            now = slice(0, i + 1)
            total = (w[now] / d[now]).sum()
            delay = 0.0
            if total > c:
                delay = brentq(lambda q: (w[now] / (d[now] + q)).sum() - c, 0.0, 10.0)  # noqa: B023 - called at once
            diff = w[now] * (delay - over[now]) / (d[now] + delay)
            move = np.where(diff < alpha, 1.0, np.where(diff > beta, -1.0, 0.0))
            if not move.any():
                break
            w[now] += 2e-3 * move
        else:
            raise AssertionError("no rest")
    return w / (d + delay), over


@pytest.mark.parametrize("known_base", [True, False])
def test_the_selected_point_is_where_the_rule_goes(known_base):
    d, c, alpha, beta = np.array([0.03, 0.05, 0.04]), 40.0, 1.0, 3.0
    x = np.zeros(3) if known_base else None
    rates, over = by_the_rule(alpha, beta, c, d, x)
    point = arrivals.arrive([alpha] * 3, c, beta=beta, rtt=d, over_estimate=x)
    np.testing.assert_allclose(point.x, over, atol=2e-3)
    np.testing.assert_allclose(point.rates, rates, rtol=0.02)


@pytest.mark.parametrize(("variant", "above"), [("paper", 0.0), ("ns2", 0.5), ("linux", 1.0)])
def test_an_earlier_flow_keeps_its_window_or_rests_at_its_upper_edge(variant, above):
    """Its rate is the smaller one: that of its old window, or that of the backlog beta + above."""
    rng = np.random.default_rng(30245001)
    kept = []
    for _ in range(20):
        alpha, d, c = rng.uniform(1, 4, 4), rng.uniform(0.005, 0.05, 4), rng.uniform(50, 500)
        beta = alpha + rng.uniform(0, 3, 4)
        steps = []
        keys = {"beta": beta, "rtt": d, "variant": variant}
        arrivals.arrive(alpha, c, **keys, each=lambda *step, to=steps: to.append(step))
        for (_, old, _), (x, new, delay) in itertools.pairwise(steps):
            earlier = slice(0, old.size)
            y, base = delay - x[earlier], d[earlier] + x[earlier]
            at_edge = (beta[earlier] + above) / (y * (1 + y / base) if variant == "linux" else y)
            unchanged = old / (d[earlier] + delay)
            kept.extend(unchanged < at_edge)
            rates = new[earlier] / (d[earlier] + delay)
            np.testing.assert_allclose(rates, np.minimum(unchanged, at_edge), rtol=1e-9)
    assert {True, False} <= set(kept)


def test_early_flows_win_without_over_estimation_and_late_ones_with_it():
    """`boutremans` 4.1 and figure 7: 1 Mbit/s, packets of 1000 bytes, d = 0.2 s, ten flows."""
    args = {"beta": 3.0, "rtt": 0.2}
    known = arrivals.arrive(np.ones(10), 125.0, over_estimate=0.0, **args).rates
    assert np.all(np.diff(known) <= 1e-12)  # several may have reached the upper edge
    assert known[0] / known[-1] == pytest.approx(3.0, rel=1e-12)  # beta/alpha
    wider = arrivals.arrive(np.ones(10), 125.0, over_estimate=0.0, beta=5.0, rtt=0.2).rates
    assert wider[0] / wider[-1] > known[0] / known[-1]
    measured = arrivals.arrive(np.ones(10), 125.0, **args).rates
    assert measured[-1] > measured[0]
    single = arrivals.arrive(np.ones(10), 125.0, beta=1.0, rtt=0.2).rates

    def index(r):
        return r.sum() ** 2 / (r.size * (r @ r))

    assert index(single) < index(measured) < 1  # 4.2.2: the two effects compensate in part


def test_bands_need_rtt():
    with pytest.raises(ValueError, match=r"^rtt: missing; "):
        arrivals.arrive([1.0, 1.0], 10.0, beta=3.0)


def test_the_worst_step_of_the_recursion_counts(monkeypatch):
    """The steady state after the second of four arrivals is made wrong, the others are right."""
    right = secular.balance

    def wrong(alpha, *args, **options):
        state = right(alpha, *args, **options)
        if np.shape(alpha)[-1] != 2:
            return state
        return state._replace(residual=-1e-3, status=int(Status.ILL_CONDITIONED))

    assert arrivals.arrive(np.full(4, 3.0), 250.0).status == Status.DONE
    monkeypatch.setattr(arrivals.secular, "balance", wrong)
    found = arrivals.arrive(np.full(4, 3.0), 250.0)
    assert found.residual == pytest.approx(1e-3)
    assert found.status == Status.ILL_CONDITIONED


def test_the_worst_step_of_many_arrivals_counts(monkeypatch):
    right = _arrivals_many.delays

    def wrong(alpha, c):
        delays, residuals = right(alpha, c)
        residuals[1] = -1e-3
        return delays, residuals

    monkeypatch.setattr(arrivals, "MANY_FLOWS", 200)
    monkeypatch.setattr(_arrivals_many, "delays", wrong)
    assert arrivals.arrive(np.full(201, 3.0), 250.0).residual == pytest.approx(1e-3)
