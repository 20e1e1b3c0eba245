"""The solver of the steady state: accuracy, invariants, JAX, flags."""

import subprocess
import sys
from functools import partial

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

from vegasmodel import equilibrium
from vegasmodel.equilibrium import _secular_kernel as kernel
from vegasmodel.equilibrium import _secular_lanes as lanes
from vegasmodel.equilibrium import phase_plane, secular, sensitivity
from vegasmodel.fields.errors import FieldError
from vegasmodel.status import Status
from vegasmodel.testing import invariants

FAMILIES = ("uniform", "magnitudes", "close", "small at top", "cluster", "tiny at top")


def case(rng, family, n):
    alpha, x, c = rng.uniform(0.5, 5.0, n), rng.uniform(0.0, 1.0, n), 10 ** rng.uniform(0, 5)
    if family == "magnitudes":
        alpha = 10 ** rng.uniform(-6, 6, n)
    elif family == "close":
        x = 3.0 * (1 - 1e-13 * rng.random(n))
    elif family == "cluster":
        x = np.repeat(rng.random(2), n)[:n] + 1e-10 * rng.random(n)
    elif family.endswith("at top") and n > 1:
        x[0], alpha[0] = x.max() + 10 ** rng.uniform(-13, 0), 1e-12
        if family == "tiny at top":  # float64 may give the sum of the rates less c the wrong sign
            alpha[0] = 10 ** rng.uniform(-22, -14)
        c = float((alpha[1:] / (x[0] - x[1:])).sum())  # the others fill the link
    return alpha, x, c


def exact_rates(alpha, x, c, gap):
    """Rates to 50 digits.  The sign of rates' sum less capacity on both sides proves the root."""
    with mpmath.workdps(60):
        a, v = [mpmath.mpf(float(t)) for t in alpha], [mpmath.mpf(float(t)) for t in x]
        d, g = [max(v) - t for t in v], mpmath.mpf(float(gap))

        def balance(g):
            return mpmath.fsum(p / (g + q) for p, q in zip(a, d, strict=True)) - mpmath.mpf(c)

        for _ in range(6):
            total = balance(g) + mpmath.mpf(c)
            slope = mpmath.fsum(p / (g + q) ** 2 for p, q in zip(a, d, strict=True))
            g += (total - c) / slope * total / c
        assert (
            balance(g * (1 - mpmath.mpf(10) ** -30)) > 0 > balance(g * (1 + mpmath.mpf(10) ** -30))
        )
        return [p / (g + q) for p, q in zip(a, d, strict=True)]


@pytest.mark.parametrize("family", FAMILIES)
def test_rates_within_8_units_in_the_last_place(family):
    rng = np.random.default_rng(FAMILIES.index(family))
    for n in [1, 2, 3, 5, 8, 13, 20, 40, 100] * 4:
        alpha, x, c = case(rng, family, n)
        state = secular.solve(alpha, x, c)
        assert state.status == 0
        exact = exact_rates(alpha, x, c, state.gap)
        for found, true in zip(state.rates, exact, strict=True):
            assert abs(mpmath.mpf(float(found)) - true) <= 8 * np.spacing(float(true))


def exact_rates_of_linux(alpha, x, c, rtt, gap):
    """Rates to 60 digits, by Newton's method from ``gap``; their sum proves the root."""
    with mpmath.workdps(80):
        alpha, x, rtt = ([mpmath.mpf(float(t)) for t in part] for part in (alpha, x, rtt))
        g, c = mpmath.mpf(float(gap)), mpmath.mpf(float(c))
        for _ in range(8):
            y = [g + max(x) - t for t in x]
            base = [d + t for d, t in zip(rtt, x, strict=True)]
            rates = [a / (u * (1 + u / b)) for a, u, b in zip(alpha, y, base, strict=True)]
            slope = sum(r * (1 / u + 1 / (u + b)) for r, u, b in zip(rates, y, base, strict=True))
            g += (sum(rates) - c) / slope
        assert abs(sum(rates) - c) < c * mpmath.mpf(10) ** -60
        return rates


def test_rates_of_linux_within_8_units_in_the_last_place():
    """The queueing delay is from 1e-8 to 1e15 times the least baseRTT."""
    rng, widest = np.random.default_rng(8), 0.0
    for _ in range(300):
        n = int(rng.integers(1, 6))
        rtt = 10 ** rng.uniform(-3, 0, n)
        x = np.where(rng.random(n) < 0.5, 0.0, 10 ** rng.uniform(-6, 0, n))
        c, times = 10 ** rng.uniform(0, 7), 10 ** rng.uniform(-6, 15)
        alpha = c * times * rtt.max() * (1 + times) * 10 ** rng.uniform(-2, 2, n)
        state = secular.solve(alpha, x, c, rtt=rtt, variant="linux")
        assert state.status == 0
        ratio = float(state.delay / (rtt + x).min())
        if ratio > 1e15:
            continue
        widest = max(widest, ratio)
        exact = exact_rates_of_linux(alpha, x, c, rtt, state.gap)
        for found, true in zip(state.rates, exact, strict=True):
            assert abs(mpmath.mpf(float(found)) - true) <= 8 * np.spacing(float(true))
    assert widest > 1e14


def test_a_failure_is_flagged_and_a_true_one():
    # the gap would need more digits than double-double has: flagged, not wrong
    alpha, x = np.array([1e-80, 1.0, 1.0]), np.array([1.0, 0.5, 0.0])
    state = secular.solve(alpha, x, 3.0)
    assert state.status == Status.ILL_CONDITIONED
    assert np.isnan(state.delay)
    assert np.all(np.isnan(state.rates))
    for bad in ([-1.0, 1.0], [np.nan, 1.0], [0.0, 0.0], [np.inf, 1.0]):
        assert secular.solve(bad, [0.0, 1.0], 1.0).status == Status.INVALID
    for c in (0.0, -1.0, np.nan, np.inf):
        assert secular.solve([1.0, 1.0], [0.0, 1.0], c).status == Status.INVALID
    mixed = secular.solve([[1.0, 1.0], [1.0, np.nan]], 0.0, 1.0)
    assert mixed.status.tolist() == [0, Status.INVALID]
    assert mixed.rates[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("variant", secular.VARIANTS)
def test_a_queueing_delay_is_not_negative(variant):
    """Flows that keep a backlog of 1 while baseRTT is 5 s too small leave most of the link idle."""
    x = np.array([[-5.0, -5.0], [-0.1, -5.0], [-0.01, 0.0]])
    case = {"alpha": np.ones(2), "x": x, "c": 10.0, "rtt": 20.0, "variant": variant}
    plain = secular.solve(**case)
    with jax.enable_x64(True):
        traced = jax.jit(partial(secular.solve, variant=variant))(1.0, x, 10.0, 20.0)
    for state in (plain, traced, secular.solve(**case | {"x": x[0]})):
        idle = np.asarray(state.status) == Status.INVALID
        assert idle.tolist() in ([True, False, False], True)
        for part in (state.delay, state.gap, state.residual):
            np.testing.assert_array_equal(np.isnan(part), idle)
        assert np.isnan(np.asarray(state.rates)[idle]).all()
    invariants.check_rates(plain.rates[1], 10.0)
    assert (np.asarray(plain.delay)[1:] >= 0.0).all()
    known = secular.balance(**case).delay  # that of windows that do not fill the link
    assert known[0] < 0.0
    np.testing.assert_array_equal(known[1:], plain.delay[1:])


def test_misuse_is_a_value_error():
    with pytest.raises(ValueError, match=r"^rtt: missing; the variant linux needs it"):
        secular.rates([1.0], [0.0], 1.0, variant="linux")
    with pytest.raises(ValueError, match="one of paper"):
        secular.rates([1.0], [0.0], 1.0, variant="bsd")
    with pytest.raises(
        FieldError, match=r"^alpha: \[\] is not allowed; one value, or one for each"
    ):
        secular.rates([], [], 1.0)
    with pytest.raises(ValueError, match="shape"):
        secular.rates([1.0, 2.0], [0.0, 0.0, 0.0], 1.0)


def test_compiled_and_interpreted_give_the_same_bits(monkeypatch):
    rng = np.random.default_rng(3)
    for variant in ("paper", "linux"):
        for family in FAMILIES:
            cases = [case(rng, family, 20) for _ in range(lanes.LANES + 10)]
            alpha, x, c = (np.array(part) for part in zip(*cases, strict=True))
            rtt = rng.uniform(0.01, 0.3, alpha.shape)
            alpha[1, 2:5], x[1, 2], x[1, 3], x[1, 4] = 0.0, np.nan, np.inf, 99.0  # absent
            alpha[2], alpha[3, 7], x[4, 8], x[5, 3], c[6] = 0.0, -1.0, np.nan, 1e101, np.inf
            monkeypatch.setattr(secular, "_MIN_COMPILED", 10**9)
            secular._compiled.cache_clear()
            slow = secular.solve(alpha, x, c, rtt, variant)
            monkeypatch.setattr(secular, "_MIN_COMPILED", 0)
            fast = secular.solve(alpha, x, c, rtt, variant)
            assert slow.status[:7].tolist() == [0, 0, *[Status.INVALID] * 5]
            for one, other in zip(slow, fast, strict=True):
                np.testing.assert_array_equal(one, other)


def test_threads_and_chunks_change_no_bit(monkeypatch):
    rng = np.random.default_rng(4)
    alpha, x = rng.uniform(1, 4, 3 * kernel.CHUNK + 5), rng.random(3 * kernel.CHUNK + 5)
    monkeypatch.setattr(secular, "_MIN_COMPILED", 0)
    one = secular.solve(alpha, x, 1e4)
    monkeypatch.setattr(secular, "_MIN_THREADED", 100)
    for one_, other in zip(one, secular.solve(alpha, x, 1e4), strict=True):
        np.testing.assert_array_equal(one_, other)
    assert abs(one.residual) < 1e-15


def test_the_command_line_path_imports_neither_numba_nor_jax():
    code = (
        "import sys, vegasmodel as vm; r = vm.equilibrium.rates([1.0] * 20, [0.0] * 20, 10.0);"
        "assert abs(r.sum() - 10) < 1e-13; assert not {'numba', 'jax', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


flows = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0.1, 50.0), min_size=n, max_size=n),
        st.lists(st.floats(0.0, 0.5), min_size=n, max_size=n),
        st.lists(st.floats(0.001, 0.5), min_size=n, max_size=n),
    )
)
capacity = st.floats(1.0, 1e5)
variants = st.sampled_from(secular.VARIANTS)
quick = settings(deadline=None, max_examples=60, derandomize=True)


@quick
@given(flows, capacity, variants, st.floats(0.01, 100.0), st.randoms(use_true_random=False))
def test_invariants(case, c, variant, scale, random):
    alpha, x, rtt = (np.array(part) for part in case)
    state = secular.solve(alpha, x, c, rtt, variant)
    assert state.status == 0
    assert state.rates.sum() == pytest.approx(c, rel=1e-13)  # capacity
    assert state.delay > x.max() or state.gap > 0
    order = list(range(alpha.size))
    random.shuffle(order)
    permuted = secular.rates(alpha[order], x[order], c, rtt[order], variant)
    np.testing.assert_allclose(permuted, state.rates[order], rtol=2e-14)
    slower = secular.solve(alpha, x * scale, c / scale, rtt * scale, variant)  # time
    np.testing.assert_allclose(slower.rates, state.rates / scale, rtol=1e-11)
    larger = secular.solve(alpha * scale, x, c * scale, rtt, variant)  # packets
    np.testing.assert_allclose(larger.rates, state.rates * scale, rtol=1e-11)
    # r_i = alpha/(Delta - x_i), or Linux's form, flow by flow
    y = state.gap + (x.max() - x)
    held = state.rates * y * (1 + (y / (rtt + x) if variant == "linux" else 0))
    np.testing.assert_allclose(held, alpha, rtol=1e-14)


@quick
@given(flows, capacity, variants, st.floats(1e-3, 0.1))
def test_own_over_estimate_helps_and_hurts_the_others(case, c, variant, more):
    alpha, x, rtt = (np.array(part) for part in case)
    before = secular.rates(alpha, x, c, rtt, variant)
    x[0] += more
    after = secular.rates(alpha, x, c, rtt, variant)
    slack = 1e-14
    assert after[0] >= before[0] * (1 - slack)
    assert np.all(after[1:] <= before[1:] * (1 + slack))
    if alpha.size > 1 and alpha[0] / alpha[1:].sum() < 10 and c < 1e3:
        assert after[0] > before[0]


@quick
@given(flows, capacity)
def test_reductions(case, c):
    alpha, x, rtt = (np.array(part) for part in case)
    np.testing.assert_allclose(  # x = 0: in proportion to alpha, and Delta = sum alpha/c
        secular.rates(alpha, 0.0, c), c * alpha / alpha.sum(), rtol=1e-14
    )
    assert secular.queueing_delay(alpha, 0.0, c) == pytest.approx(alpha.sum() / c, rel=1e-14)
    assert secular.rates(alpha[:1], x[:1], c)[0] == pytest.approx(c, rel=1e-15)
    np.testing.assert_array_equal(
        secular.rates(alpha, x, c, variant="ns2"), secular.rates(alpha, x, c)
    )
    # a long rtt: dividing by base or by RTT is the same, but for Delta/base
    far = secular.solve(alpha, x, c, rtt * 1e9, "linux")
    change = np.abs(far.rates / secular.rates(alpha, x, c) - 1).max()
    assert change <= 1e-14 + 2 * float(far.delay) / (1e9 * rtt.min())
    padded = secular.rates(np.append(alpha, 0.0), np.append(x, 99.0), c)
    np.testing.assert_array_equal(padded[:-1], secular.rates(alpha, x, c))
    assert padded[-1] == 0.0


def test_shapes_broadcast():
    state = secular.solve(np.ones((4, 1, 3)), np.zeros((5, 3)), np.full((4, 5), 9.0))
    assert state.rates.shape == (4, 5, 3)
    assert state.delay.shape == state.status.shape == (4, 5)
    assert secular.queueing_delay(2.0, np.zeros(3), 9.0) == pytest.approx(6 / 9)
    assert equilibrium.rates is secular.rates


@pytest.mark.parametrize("variant", ["paper", "linux"])
def test_jax_agrees_to_1e_11(variant):
    rng = np.random.default_rng(5)
    with jax.enable_x64(True):
        solve = jax.jit(jax.vmap(lambda *a: secular.solve(*a, variant)))
        for family in FAMILIES:
            cases = [case(rng, family, 20) for _ in range(40)]
            alpha, x, c = (np.array(part) for part in zip(*cases, strict=True))
            rtt = rng.uniform(0.01, 0.3, alpha.shape)
            found = solve(*map(jnp.asarray, (alpha, x, c, rtt)))
            assert isinstance(found.rates, jax.Array)
            assert not np.any(found.status)
            expected = secular.solve(alpha, x, c, rtt, variant)
            np.testing.assert_allclose(found.rates, expected.rates, rtol=1e-11)
            np.testing.assert_allclose(found.delay, expected.delay, rtol=1e-13)
        # the same shapes again, so nothing to compile: one case with a NaN, one padded
        alpha[0, 3], alpha[1, 5], x[1, 5] = np.nan, 0.0, 99.0
        found = solve(*map(jnp.asarray, (alpha, x, c, rtt)))
        assert found.status[:2].tolist() == [Status.INVALID, 0]
        assert np.isnan(found.delay[0])
        assert found.rates[1, 5] == 0.0
        np.testing.assert_allclose(found.rates[1].sum(), c[1], rtol=1e-13)


def test_jax_wants_64_bits():
    with pytest.raises(ValueError, match="64-bit"):
        secular.rates(jnp.ones(3), jnp.zeros(3), 1.0)


def test_linux_gradients():
    alpha, x, c = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.01, 0.03]), 100.0
    rtt = np.array([0.05, 0.1, 0.02])
    with jax.enable_x64(True):
        args = tuple(map(jnp.asarray, (alpha, x, c, rtt)))
        every = (0, 1, 2, 3)
        rates = partial(secular.rates, variant="linux")
        both = jax.jit(lambda *a: (jax.jacrev(rates, every)(*a), jax.jacfwd(rates, every)(*a)))
        reverse, forward = jax.tree.map(np.asarray, both(*args))
        curved = jax.jit(jax.hessian(lambda v: secular.queueing_delay(alpha, v, c)))(args[1])
        curved = np.asarray(curved)
    for a, b in zip(reverse, forward, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for k, value in enumerate((alpha, x, np.array(c), rtt)):
        for i in np.ndindex(value.shape):
            step = 1e-6 * (value[i] + 0.01)
            ends = []
            for sign in (1, -1):
                moved = [alpha, x, np.array(c), rtt]
                moved[k] = value.copy()
                moved[k][i] += sign * step
                ends.append(rates(*moved))
            central = (ends[0] - ends[1]) / (2 * step)
            scale = np.abs(reverse[k]).max()
            np.testing.assert_allclose(reverse[k][(..., *i)], central, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(curved.sum(axis=1), 0.0, atol=1e-9 * np.abs(curved).max())


def test_sensitivities_agree_with_autodiff_and_central_differences():
    rng, m, n = np.random.default_rng(11), 1000, 6
    alpha, x = rng.uniform(0.5, 5.0, (m, n)), rng.uniform(0.0, 0.1, (m, n))
    c = 10 ** rng.uniform(0.5, 3.0, m)
    state = secular.solve(alpha, x, c)
    cross = sensitivity.cross(alpha, x, c)
    with jax.enable_x64(True):
        jacobian = jax.jit(jax.vmap(jax.jacrev(lambda v, a, k: secular.rates(a, v, k))))
        auto = jacobian(*map(jnp.asarray, (x, alpha, c))) / state.rates[..., None]
    # relative to the largest entry of the case: some (8) are 1e-9 of it
    scale = np.abs(cross).max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(np.asarray(auto) - cross) / scale) < 1e-11
    np.testing.assert_allclose(auto, cross, rtol=1e-6)
    own = sensitivity.own(alpha, x, c)
    np.testing.assert_allclose(np.diagonal(cross, axis1=1, axis2=2), own, rtol=1e-14)
    y = state.gap[:, None] + (x.max(axis=1, keepdims=True) - x)
    for k in range(n):
        step = 1e-5 * y.min(axis=1)  # of the smallest scale of the case
        up, down = x.copy(), x.copy()
        up[:, k] += step
        down[:, k] -= step
        width = (up[:, k] - down[:, k])[:, None]
        central = (secular.rates(alpha, up, c) - secular.rates(alpha, down, c)) / width
        error = np.abs(central / state.rates - cross[:, :, k]) / scale[:, :, 0]
        assert error.max() < 1e-6
    # (9): r = alpha/(Delta - x) with x held
    moved = alpha / (y * (1 + 1e-5)), alpha / (y * (1 - 1e-5))
    central = (moved[0] - moved[1]) / (2e-5 * y) / state.rates
    np.testing.assert_allclose(sensitivity.delay(alpha, x, c), central, rtol=1e-6)


def exact_derivatives(alpha, x, c, rtt, gap, linux):
    """d(rates) by alpha, x, c and rtt, and d(gap) by x, from 60 digits; ``gap`` is where to start.

    Returns arrays [i, k] (by c: [i]) of dr_i/d(input k), and an array [k] for the gap.
    """
    with mpmath.workdps(60):
        alpha, x, rtt = (list(map(mpmath.mpf, map(float, part))) for part in (alpha, x, rtt))
        g, top, flows = mpmath.mpf(float(gap)), max(x), range(len(x))
        for _ in range(8):
            y = [g + top - over for over in x]
            z = [g + top + trip if linux else mpmath.inf for trip in rtt]
            fall = [a * (1 / u**2 - 1 / v**2) for a, u, v in zip(alpha, y, z, strict=True)]
            total = sum(a * (1 / u - 1 / v) for a, u, v in zip(alpha, y, z, strict=True))
            g += (total - mpmath.mpf(float(c))) / sum(fall)
        one_by_one = (  # dr_k/d(input k) at a fixed delay
            [1 / u - 1 / v for u, v in zip(y, z, strict=True)],
            [a / u**2 for a, u in zip(alpha, y, strict=True)],
            [a / v**2 for a, v in zip(alpha, z, strict=True)],
        )
        by = [
            [[p[k] * ((i == k) - fall[i] / sum(fall)) for k in flows] for i in flows]
            for p in one_by_one
        ]
        by_c = [f / sum(fall) for f in fall]
        of_gap = [one_by_one[1][k] / sum(fall) - (x[k] == top) for k in flows]
        found = (by[0], by[1], by_c, by[2], of_gap)
        return [np.array(part, dtype=np.float64) for part in found]


@pytest.mark.parametrize("variant", ["paper", "linux"])
def test_jax_derivatives_where_one_flow_has_nearly_the_whole_capacity(variant):
    rng, m, n = np.random.default_rng(5), 40, 4
    alpha, x = 10 ** rng.uniform(-2, 2, (m, n)), 10 ** rng.uniform(-7, 0.3, (m, n))
    c, rtt = 10 ** rng.uniform(2, 8.5, m), 10 ** rng.uniform(-3, 0, (m, n))
    with jax.enable_x64(True):

        def one(*case):
            found = secular.solve(*case[:3], rtt=case[3], variant=variant)
            return found.rates, found.gap

        case = tuple(map(jnp.asarray, (alpha, x, c, rtt)))
        gaps = secular.solve(*case[:3], rtt=case[3], variant=variant).gap
        derivatives = jax.jit(jax.vmap(jax.jacfwd(one, (0, 1, 2, 3))))(*case)
        by_rates, by_gap = jax.tree.map(np.asarray, derivatives)
    most = 0.0
    for k in range(m):
        row = (alpha[k], x[k], c[k], rtt[k], gaps[k], variant == "linux")
        *expected, of_gap = exact_derivatives(*row)
        most = max(most, expected[2].max())
        for found, part in zip(by_rates, expected, strict=True):
            np.testing.assert_allclose(found[k], part, rtol=1e-10)
        np.testing.assert_allclose(by_gap[1][k], of_gap, rtol=1e-10)
    assert most > 1.0 - 1e-12  # the weight of that flow


def test_printed_sensitivities():
    rng = np.random.default_rng(12)
    x, c = rng.uniform(0.0, 0.1, (50, 5)), 200.0
    state = secular.solve(3.0, x, c)
    y = state.gap[:, None] + (x.max(axis=1, keepdims=True) - x)
    np.testing.assert_allclose(sensitivity.own_printed(y), sensitivity.own(3.0, x, c), rtol=1e-11)
    np.testing.assert_allclose(sensitivity.delay_printed(y), sensitivity.delay(3.0, x, c))
    off = ~np.eye(5, dtype=bool)
    derived, printed = sensitivity.cross(3.0, x, c)[:, off], sensitivity.cross_printed(y)[:, off]
    assert np.max(np.abs(printed / derived - 1)) > 0.1  # (8) as printed is wrong ...
    even = np.full((1, 5), 0.2)
    np.testing.assert_allclose(  # ... but where all y are equal
        sensitivity.cross_printed(even)[:, off], np.full((1, 20), -1.0), rtol=1e-14
    )


def test_sensitivities_leave_absent_flows_out():
    """alpha = 0 marks padding: whatever its x is, the other flows' results are as without it."""
    alpha, x, c = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.02, 0.01]), 100.0
    for junk in (0.5, -3.0, np.nan, np.inf):
        padded = np.append(alpha, 0.0), np.append(x, junk), c
        for function in (sensitivity.own, sensitivity.cross, sensitivity.delay):
            bare, full = function(alpha, x, c), function(*padded)
            inside = full[:3, :3] if full.ndim == 2 else full[:3]
            np.testing.assert_allclose(inside, bare, rtol=1e-13)
            assert np.all((full[3:] if full.ndim == 2 else full[3]) == 0.0)
    assert np.isnan(sensitivity.own([1.0, np.nan], [0.0, 0.0], 1.0)).all()


def test_one_bad_row_of_a_linux_batch_leaves_the_others_alone():
    """rtt = 0 and rtt = -x would make a baseRTT of 0."""
    alpha, c = np.ones((4, 2)), np.full(4, 50.0)
    x = np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 0.0], [np.nan, 0.0]])
    rtt = np.array([[0.1, 0.2], [-0.01, 0.1], [0.0, 0.1], [0.1, 0.1]])
    state = secular.solve(alpha, x, c, rtt=rtt, variant="linux")
    assert state.status.tolist() == [Status.DONE, *[Status.INVALID] * 3]
    assert np.isnan(state.rates[1:]).all()
    np.testing.assert_array_equal(
        state.rates[0], secular.rates([1, 1], 0.0, 50.0, [0.1, 0.2], "linux")
    )


@pytest.mark.parametrize("engine", ["interpreted", "lanes", "jax"])
def test_a_status_of_ok_is_right_at_any_magnitude(engine):
    """Compared with bisection at 250 digits: gaps down to 1e-190 s, magnitudes over 99 decades."""
    rng, n = np.random.default_rng(5), 3
    alpha, c = 10.0 ** rng.uniform(-98, -50, (150, n)), 10.0 ** rng.uniform(50, 98, 150)
    x = alpha / c[:, None] * 10.0 ** rng.uniform(-3, 3, (150, n)) * rng.choice([0, 1], (150, n))
    # a gap of 1.7e-152: once "OK" with rates that missed the capacity by 2e-12
    alpha[0] = 6.675792567397491e-60, 2.1753097729447025e-91, 1.6547508132309758e-64
    x[0], c[0] = [0.0, 0.0, 7.441639249019812e-160], 3.933310528419421e92
    wide = 10.0 ** rng.uniform(-60, 60, (2, 150, n))
    inputs = {
        "paper": (alpha, x, c, np.ones((150, n))),
        "linux": (wide[0], np.zeros((150, n)), 10.0 ** rng.uniform(-60, 60, 150), wide[1]),
    }
    for variant, case in inputs.items():
        repeat = 80 if engine == "lanes" else 1
        args = [np.concatenate([v] * repeat) for v in case]
        if engine == "jax":
            with jax.enable_x64(True):
                solve = jax.jit(partial(secular.solve, variant=variant))
                state = solve(*map(jnp.asarray, args))
        else:
            state = secular.solve(*args, variant)
        status, gap = np.asarray(state.status)[:150], np.asarray(state.gap)[:150]
        assert np.isnan(gap[status != Status.DONE]).all()
        good = np.flatnonzero(status == Status.DONE)
        assert good.size > 80
        for k in good:
            assert _is_root(*(v[k] for v in case), gap[k], variant), (variant, k)


def _is_root(alpha, x, c, rtt, gap, variant):
    """Whether the sum of rates less the capacity changes sign within 1e-11 of the gap."""
    with mpmath.workdps(250):
        a, v, d = ([mpmath.mpf(float(t)) for t in row] for row in (alpha, x, rtt))
        top = max(v)

        def balance(g):
            total = -mpmath.mpf(float(c))
            for share, over, base in zip(a, v, d, strict=True):
                y = g + top - over
                total += share / (y * (1 + y / (base + over)) if variant == "linux" else y)
            return total

        g = mpmath.mpf(float(gap))
        return balance(g * (1 - mpmath.mpf("1e-11"))) > 0 > balance(g * (1 + mpmath.mpf("1e-11")))


def test_jax_derivatives_of_the_gap_and_of_absent_flows():
    alpha, x, c = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.01, 0.02]), 100.0
    rtt = np.array([0.1, 0.1, 0.05])
    for variant in ("paper", "linux"):
        with jax.enable_x64(True):

            def gap(over, variant=variant):
                return secular.solve(alpha, over, c, rtt=rtt, variant=variant).gap

            here = jnp.array([1.0, 0.0, 3.0])  # absent, but its x counts where it would come back
            rates = partial(secular.rates, x=x, c=c, rtt=rtt, variant=variant)
            both = jax.jit(lambda over, a, r=rates, g=gap: (jax.grad(g)(over), jax.jacfwd(r)(a)))
            slope, column = map(np.asarray, both(jnp.asarray(x), here))
        for i in range(3):
            step = 1e-6 * np.eye(3)[i]
            up, down = (float(secular.solve(alpha, x + e, c, rtt=rtt, variant=variant).gap)
                        for e in (step, -step))  # fmt: skip
            assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-6)
        np.testing.assert_allclose(column.sum(axis=0), 0.0, atol=1e-12 * np.abs(column).max())
        assert column[1, 1] > 0.0  # the rate of a flow that begins to hold packets


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_flow_is_the_same_error_in_jax(shape):
    with (
        jax.enable_x64(True),
        pytest.raises(FieldError, match=r"^(alpha|x): \[.*\] is not allowed; one value, or one"),
    ):
        secular.solve(jnp.ones(shape), jnp.zeros(shape), jnp.ones(shape[:-1]))


def test_a_list_beside_a_jax_array_is_an_array():
    """An earlier version warned before it checked the shapes."""
    with (
        jax.enable_x64(True),
        pytest.raises(FieldError, match=r"^(alpha|x): \[.*\] is not allowed; one value, or one"),
    ):
        secular.solve([], jnp.zeros(0), 1.0)


def test_a_flow_without_window_takes_no_part_in_the_plane_of_windows() -> None:
    """60 packets alone: 60/(0.1 + s) = 500 pkt/s gives s = 20 ms, and a backlog of 10 packets."""
    backlog, delay = phase_plane.reckoned([0.0, 60.0], 0.0, 500.0, 0.1)
    np.testing.assert_allclose(backlog, [0.0, 10.0], rtol=1e-12)
    assert delay == pytest.approx(0.02, rel=1e-12)
    assert list(phase_plane.drift([0.0, 60.0], 3.0, 3.0, 0.0, 500.0, 0.1)) == [1, -1]


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_no_flow_is_an_error_also_inside_jit(shape: tuple[int, ...]) -> None:
    rates = jax.jit(lambda alpha: equilibrium.rates(alpha, 0.0, 100.0))
    with jax.enable_x64(True), pytest.raises(FieldError, match=r"^alpha: \[.*\] is not allowed"):
        rates(jnp.zeros(shape))
