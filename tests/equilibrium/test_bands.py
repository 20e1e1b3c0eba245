"""The set of equilibria: its extremes, membership, whole windows, and shares measured in Linux."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from vegasmodel.equilibrium import _jain, bands, secular
from vegasmodel.fields.errors import FieldError

# Two flows of Linux 6.1's tcp_vegas on a 250 pkt/s link, in runs that reached equilibrium: alpha,
# beta, true baseRTT in ms; measured are each flow's final baseRTT in ms and its share of the link.
# They come from the sampled kernel runs that the project holds as reference data (run: summary,
# last two thirds).
LINUX_RUNS = {
    "e1a": (3, 3, 40.0, (40.035, 56.210), (0.2222, 0.7778)),
    "e1b": (2, 4, 40.0, (40.033, 56.212), (0.2222, 0.7778)),
    "e1d": (2, 4, 40.0, (40.031, 56.212), (0.3528, 0.6472)),
    "e1h": (10, 10, 40.0, (40.031, 68.212), (0.2452, 0.7548)),
    "e1j1": (3, 3, 320.0, (320.031, 336.205), (0.3820, 0.6180)),
}


def linux_band(run, variant):
    alpha, beta, rtt, base, _ = LINUX_RUNS[run]
    x = (np.array(base) - rtt) / 1e3
    return bands.equilibria(alpha, beta, x, 250.0, rtt=rtt / 1e3, variant=variant)


@pytest.mark.parametrize("run", LINUX_RUNS)
def test_linux_band_contains_the_measured_shares(run):
    low, high = (r / 250.0 for r in linux_band(run, "linux").rate_range)
    share = np.array(LINUX_RUNS[run][4])
    assert np.all(low <= share)
    assert np.all(share <= high)


def test_the_papers_equation_misses_linux_where_the_queue_is_long():
    """Run e1a: the later flow got 0.778 of the link; by the paper's equation it gets 0.653."""
    low, high = (r / 250.0 for r in linux_band("e1a", "paper").rate_range)
    assert low[1] == pytest.approx(0.653, abs=5e-4)
    assert high[1] < 0.66 < LINUX_RUNS["e1a"][4][1] == 0.7778
    low, high = (r / 250.0 for r in linux_band("e1a", "linux").rate_range)
    assert (low[1], high[1]) == (pytest.approx(0.695, abs=5e-4), pytest.approx(0.791, abs=5e-4))


def test_whole_windows_of_linux():
    """Run e1a ended with windows of 4 and 14.

    The kernel's rule, by hand, allows these and 5, 13.
    """
    windows, rates, delay = linux_band("e1a", "linux").windows()
    by_rule = []
    for a, b in itertools.product(range(2, 40), repeat=2):
        rtt = (a + b) / 250.0
        base = np.array(LINUX_RUNS["e1a"][3]) / 1e3
        if all(np.floor(np.array([a, b]) * (rtt - base) / base) == 3):
            by_rule.append([a, b])
    assert windows.tolist() == by_rule == [[4, 14], [5, 13]]
    np.testing.assert_allclose(rates[0] / 250.0, [4 / 18, 14 / 18], rtol=1e-14)
    np.testing.assert_allclose(delay, 18 / 250.0 - 0.040, rtol=1e-12)


def test_whole_windows_by_each_rule():
    rng = np.random.default_rng(2)
    for variant in secular.VARIANTS:
        for _ in range(5):
            rtt, c = np.round(rng.uniform(0.02, 0.06, 2), 4), 200.0
            band = bands.equilibria(1, 3, 0.0, c, rtt=rtt, variant=variant)
            expected = []
            for pair in itertools.product(range(1, 30), repeat=2):
                w = np.array(pair)
                delay = float(secular.balance(w, -rtt, c).delay)
                diff = w * delay / (rtt if variant == "linux" else rtt + delay)
                rest = {
                    "paper": (diff >= 1) & (diff <= 3),
                    "ns2": (np.floor(diff + 0.5) >= 1) & (np.floor(diff + 0.5) <= 3) & (w >= 2),
                    "linux": (np.floor(diff) >= 1) & (np.floor(diff) <= 3) & (w >= 2),
                }[variant]
                if delay > 0 and rest.all():
                    expected.append(list(pair))
            assert band.windows()[0].tolist() == expected
            assert expected
    with pytest.raises(ValueError, match="limit"):
        bands.equilibria(1, 3, 0.0, 1e4, rtt=[0.1] * 6).windows(limit=10)


def test_whole_windows_may_rest_with_an_empty_queue():
    """The baseRTT is too small by 1/16 s, so a window of 8 packets seems to keep one queued."""
    found = bands.equilibria(1.0, 3.0, -1 / 16, 16.0, rtt=0.5).windows()
    windows, rates, delays = (each.ravel().tolist() for each in found)
    assert (windows, rates, delays) == ([8, 9, 10], [16.0] * 3, [0.0, 1 / 16, 2 / 16])


@pytest.mark.parametrize(
    ("alpha", "variant", "least"),
    [(0.2, "ns2", "0.5"), ([0.5, 0.5], "ns2", "0.5"), (0.0, "paper", "0")],
)
def test_flows_that_may_all_rest_with_an_empty_queue(alpha, variant, least):
    said = f"alpha: .* more than {least} for at least one flow: .* the queue may be empty"
    with pytest.raises(FieldError, match=said):
        bands.equilibria(alpha, 1.0, 0.0, 100.0, variant=variant)
    with pytest.raises(FieldError, match=r"alpha: \[\] is not allowed; one value, or one for each"):
        bands.equilibria([], [], 0.0, 100.0)
    assert bands.equilibria([0.2, 1.0], 2.0, 0.0, 100.0, variant="ns2").delay_range[0] == 0.5 / 100


def random_band(rng, variant, *, ordered=False):
    n = int(rng.integers(1, 5))
    alpha = rng.uniform(1.0, 4.0, n)
    beta = alpha + rng.uniform(0.0, 3.0, n)
    if ordered:
        alpha, beta = np.full(n, alpha[0]), np.full(n, beta[0])
    x, rtt = rng.uniform(0.0, 0.05, n), rng.uniform(0.02, 0.2, n)
    rtt = np.full(n, 0.1) if ordered else rtt
    return bands.equilibria(alpha, beta, x, 200.0, rtt=rtt, variant=variant)


def boxes(band, delay):
    y = delay - band.x
    bend = 1 + y / (band.rtt + band.x) if band.variant == "linux" else 1
    return band.lower / (y * bend), band.upper / (y * bend)


def sample(band, rng, count=40):
    """Points of the set: random backlogs at random delays, scaled so that the rates add up to c."""
    out = []
    for delay in rng.uniform(*band.delay_range, count):
        low, high = boxes(band, delay)
        found = linprog(
            rng.normal(size=low.size), A_eq=np.ones((1, low.size)), b_eq=[band.c],
            bounds=list(zip(low, high, strict=True)),
        )  # fmt: skip
        if found.success:
            out.append(found.x)
    return out


@pytest.mark.parametrize("variant", secular.VARIANTS)
@pytest.mark.parametrize("ordered", [False, True])
def test_no_point_of_the_set_lies_beyond_the_extremes(variant, ordered):
    rng = np.random.default_rng([1, ordered])
    for _ in range(6):
        band = random_band(rng, variant, ordered=ordered)
        low, high = band.rate_range
        least, most = band.ratio_range
        unfair, fair = band.jain_range
        points = sample(band, rng)
        assert points or np.ptp(band.delay_range) < 1e-12
        for r in points:
            assert np.all(r >= low * (1 - 1e-7))
            assert np.all(r <= high * (1 + 1e-7))
            ratio = r[:, None] / r
            assert np.all(ratio >= least * (1 - 1e-7))
            assert np.all(ratio <= most * (1 + 1e-7))
            index = r.sum() ** 2 / (r.size * (r @ r))
            assert unfair * (1 - 1e-7) <= index <= fair * (1 + 1e-7)
            assert band.contains(r, 1e-7)
            assert not band.contains(r * 1.001, 1e-7)


@pytest.mark.parametrize("variant", secular.VARIANTS)
def test_extremes_are_attained(variant):
    """For each extreme, a search over Delta finds a point of the set close to it."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        band = random_band(rng, variant)
        n, tightest = band.x.size, [np.inf, 0.0]
        ratio = np.zeros((n, n))
        for delay in np.linspace(*band.delay_range, 150):
            low, high = boxes(band, delay)
            for j in range(n):
                for mask in itertools.product([False, True], repeat=n - 1):
                    r = np.where(np.insert(mask, j, False), high, low)
                    r[j] = band.c - (r.sum() - r[j])
                    if low[j] <= r[j] <= high[j]:
                        tightest[0] = min(tightest[0], band.c**2 / (n * (r @ r)))
                        ratio = np.maximum(ratio, r[:, None] / r)
            level = low.min(), high.max()
            for _ in range(60):
                middle = sum(level) / 2
                over = np.clip(middle, low, high).sum() > band.c
                level = (level[0], middle) if over else (middle, level[1])
            r = np.clip(level[0], low, high)
            if abs(r.sum() / band.c - 1) < 1e-9:
                tightest[1] = max(tightest[1], band.c**2 / (n * (r @ r)))
        unfair, fair = band.jain_range
        assert unfair == pytest.approx(tightest[0], rel=0.01)
        assert fair == pytest.approx(tightest[1], rel=1e-3)
        np.testing.assert_allclose(band.ratio_range[1], ratio, rtol=0.03)
        for rows in band._extremes:
            for r in rows:
                assert band.contains(r, 1e-10) or variant != "paper"


def test_the_least_jain_index_may_lie_between_the_ends_of_the_queueing_delay():
    """The third flow alone may vary: its rate is 1500 - 1/(Delta - 0.19) - 200/Delta.

    At Delta = 0.2 s the rates r_i are 100, 1000 and 400 packets/s. There the sum of squares has a
    maximum, because its derivative 2 sum (r_3 - r_i) r_i/(Delta - x_i) is 0 there, and falls.
    """
    band = bands.equilibria([1.0, 200.0, 2.0], [1.0, 200.0, 6.0], [0.19, 0.0, 0.19], 1500.0)
    rates = np.array([100.0, 1000.0, 400.0])
    assert band.contains(rates, 1e-12)
    index = rates.sum() ** 2 / (3.0 * (rates @ rates))
    assert band.jain_range[0] == pytest.approx(index, rel=1e-9)
    at_ends = []
    for delay in band.delay_range:
        r = np.array([1.0 / (delay - 0.19), 200.0 / delay, 0.0])
        r[2] = 1500.0 - r.sum()
        at_ends.append(r.sum() ** 2 / (3.0 * (r @ r)))
    assert min(at_ends) > 1.001 * index


def test_unordered_boxes_of_many_flows_are_refused():
    n = _jain.MAX_FLOWS + 1
    alpha = np.where(np.arange(n) % 2, 1.0, 2.0)
    band = bands.equilibria(alpha, 6.0 - alpha, 0.0, 100.0)
    with pytest.raises(ValueError, match="does not always have the larger"):
        _ = band.jain_range
    many = bands.equilibria(1.0, 3.0, np.linspace(0, 0.1, 60), 100.0)
    unfair, fair = many.jain_range
    assert 1 / 60 < unfair < fair <= 1


flows = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.floats(0.6, 5.0),
        st.floats(0.0, 4.0),
        st.lists(st.floats(0.0, 0.2), min_size=n, max_size=n),
    )
)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(flows, st.floats(10.0, 1e4), st.sampled_from(secular.VARIANTS))
def test_reductions(case, c, variant):
    alpha, wider, x = case
    x = np.array(x)
    single = bands.equilibria(alpha, alpha, x, c, rtt=0.1)
    low, high = single.rate_range
    expected = secular.rates(alpha, x, c)
    np.testing.assert_allclose(low, expected, rtol=1e-13)  # alpha = beta: one point
    np.testing.assert_allclose(high, expected, rtol=1e-13)
    assert single.contains(expected)
    assert single.jain_range[0] == pytest.approx(single.jain_range[1], rel=1e-12)
    band = bands.equilibria(alpha, alpha + wider, x, c, rtt=0.1, variant=variant)
    wide = bands.equilibria(alpha, alpha + wider + 1, x, c, rtt=0.1, variant=variant)
    assert np.all(wide.rate_range[1] >= band.rate_range[1] * (1 - 1e-13))  # a larger set
    assert np.all(wide.rate_range[0] <= band.rate_range[0] * (1 + 1e-13))
    n = x.size
    even = bands.equilibria(alpha, alpha + wider, np.zeros(n), c, rtt=0.1, variant=variant)
    assert even.jain_range[1] == 1.0
    assert even.contains(np.full(n, c / n), 1e-9)
    if n > 1:  # x = 0: the greatest ratio is that of the edges
        edge = even.upper[0] / even.lower[0]
        np.testing.assert_allclose(even.ratio_range[1][0, 1], edge, rtol=1e-12)
    order = np.argsort(x, kind="stable")
    shuffled = bands.equilibria(alpha, alpha + wider, x[order], c, rtt=0.1, variant=variant)
    np.testing.assert_allclose(shuffled.rate_range[1], band.rate_range[1][order], rtol=1e-13)
    np.testing.assert_allclose(shuffled.jain_range, band.jain_range, rtol=1e-12)


def test_misuse():
    with pytest.raises(ValueError, match="at least alpha"):
        bands.equilibria(3, 1, 0.0, 10.0)
    with pytest.raises(ValueError, match=r"^rtt: missing; the variant linux needs it"):
        bands.equilibria(1, 3, 0.0, 10.0, variant="linux")
    with pytest.raises(ValueError, match="one of"):
        bands.equilibria(1, 3, 0.0, 10.0, variant="bsd")
    with pytest.raises(ValueError, match=r"^capacity: "):
        bands.equilibria(1, 3, 0.0, -1.0)
    with pytest.raises(ValueError, match=r"^rtt: missing; whole windows need it"):
        bands.equilibria(1, 3, 0.0, 10.0).windows()
