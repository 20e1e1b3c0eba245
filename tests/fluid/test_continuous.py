"""``fluid`` with continuous windows against the papers' equations, SciPy and its own invariants."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from tests.fluid.scenes import reno, scenario, steady_state, vegas
from vegasmodel.engines.delayed import feedback
from vegasmodel.engines.fluid import continuous, methods
from vegasmodel.engines.fluid.pauses import PAUSE
from vegasmodel.scenario import Drop, DropTail, Flow, Link, Red, Scenario, Staggered, Uniform
from vegasmodel.status import Status


@pytest.mark.parametrize("alpha", [1.0, 3.0, 4.5])
def test_vegas_that_measures_basertt_settles_at_the_steady_state_equation(alpha):
    flows = [vegas(alpha, rtt=Uniform(0.05, 0.25), count=6, start=Staggered(0.0, 30.0))]
    answer = continuous.run(scenario(flows, 300.0, math.inf, 600.0, 400.0))
    rtt = np.array([m.rtt for m in scenario(flows, 300.0, math.inf).members])
    x = answer.base_rtt - rtt
    np.testing.assert_allclose(answer.throughput, steady_state([alpha] * 6, x, 300.0), rtol=1e-6)
    assert answer.status == "done"
    assert x[-1] > x[1] > 0  # the later flow saw a longer queue


def test_base_rtt_follows_the_recursion_of_arrivals_that_find_equilibrium():
    # boutremans 3.1.2: flow i measures the delay of the steady state of flows 1 .. i-1
    n, alpha, c = 5, 2.0, 400.0
    flows = [vegas(alpha, rtt=0.06, count=n, start=Staggered(0.0, 60.0))]
    answer = continuous.run(scenario(flows, c, math.inf))
    expected = [0.0]
    for i in range(1, n):
        x = np.array(expected)
        rates = steady_state([alpha] * i, x, c)
        expected.append(alpha / rates[0] + x[0])
    np.testing.assert_allclose(answer.base_rtt - 0.06, expected, atol=1e-9)


def test_fixed_over_estimates():
    x = np.array([0.0, 0.004, 0.011])
    flows = [vegas(3.0, name=f"v{i}", over_estimate=float(v)) for i, v in enumerate(x)]
    answer = continuous.run(scenario(flows, 500.0, math.inf))
    np.testing.assert_allclose(answer.throughput, steady_state([3.0] * 3, x, 500.0), rtol=1e-9)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    c=st.floats(100, 2000),
    T=st.lists(st.floats(0.02, 0.2), min_size=1, max_size=5),
    alpha=st.floats(1, 5),
    x=st.floats(0, 1),
)
def test_vegas_ends_at_the_steady_state_equation(c, T, alpha, x):
    over = [x * alpha / c * i for i in range(len(T))]
    flows = [vegas(alpha, rtt=rtt, name=f"v{i}", over_estimate=over[i]) for i, rtt in enumerate(T)]
    answer = continuous.run(scenario(flows, c, math.inf, 300.0, 250.0))
    expected = steady_state([alpha] * len(T), over, c)
    np.testing.assert_allclose(answer.throughput, expected, rtol=1e-6)


def test_linux_rests_in_its_own_dead_band_over_base_rtt():
    flows = [vegas(2.0, 4.0, name=n, variant="linux", start=s) for n, s in (("a", 0), ("b", 9))]
    answer = continuous.run(scenario(flows, 300.0, math.inf))
    gap = answer.rtt_mean - answer.base_rtt
    backlog = answer.window[-1] * gap / answer.base_rtt
    assert np.all(backlog >= 2.0 - 1e-9)
    assert np.all(backlog <= 5.0 + 1e-9)


def smooth(width):
    """Vegas and Reno up to the loss; the steps of the law are smoothed over ``width`` packets."""
    c, T, alpha, end = 1080.0, 0.08, 3.0, 3.0

    def rates(_, y):
        s = max(0.0, y.sum() / c - T)
        diff = y[0] * s / (T + s)
        return np.array([np.tanh((alpha - diff) / width), 1.0]) / (T + s)

    # 43.2 packets each, half the pipe: the pipe fills, Vegas stops and gives way
    sol = solve_ivp(rates, (0, end), [40.0, 40.0], method="LSODA", rtol=1e-10, atol=1e-10)
    return sol.y[:, -1]


def test_sliding_is_the_limit_of_ever_steeper_laws():
    from vegasmodel.engines.fluid import march as windows_march

    s = scenario([vegas(), reno()], buffer=math.inf)
    flows = continuous.flows_of(s)
    state, tally = continuous.fresh(flows)
    state.window[:] = 40.0
    state.over_estimate[:] = 0.0
    arrays = windows_march.workspace(*continuous.fresh(flows), 0)
    unsampled = windows_march.samples_at(np.empty(0), flows, state, arrays)
    windows_march.march(
        flows, state, 1080.0, math.inf, 0, 3.0, 0.02, False, False, tally, unsampled, arrays, PAUSE
    )
    smoothed = [smooth(w) for w in (0.4, 0.04, 0.004)]
    errors = [np.abs(y - state.window).max() for y in smoothed]
    assert errors[1] < errors[0] / 4
    # the offset is width artanh(m) (T + s)/s: of first order, so extrapolate it away
    assert 8 < errors[1] / errors[2] < 12
    limit = smoothed[2] + (smoothed[2] - smoothed[1]) / 9
    np.testing.assert_allclose(state.window, limit, rtol=2e-5)


def test_reno_between_losses_agrees_with_scipy():
    c, B = 1000.0, 30.0
    T = np.array([0.05, 0.13])
    s = scenario([reno(T[0], name="a"), reno(T[1], name="b")], c, B, 4.0, 0.0)
    answer = continuous.run(s, sample=0.01, step=0.05)
    cuts = np.flatnonzero(np.diff(answer.queue[:, 0]) < -5)
    i, j = cuts[0] + 1, cuts[1]  # one whole ramp, after the first loss

    def delay(W):
        if (W / T).sum() <= c:
            return 0.0
        return brentq(lambda q: (W / (T + q)).sum() - c, 0.0, 1.0, xtol=1e-15)

    sol = solve_ivp(
        lambda t, W: 1.0 / (T + delay(W)), (answer.time[i], answer.time[j]), answer.window[i],
        rtol=1e-10, atol=1e-10, max_step=0.05,
    )  # fmt: skip
    np.testing.assert_allclose(answer.window[j], sol.y[:, -1], rtol=2e-5)
    assert answer.queue.max() <= B + 1 + 1e-9


@pytest.mark.parametrize("rtts", [(0.08, 0.08), (0.05, 0.13)])
def test_cycles_that_are_left_out_look_like_those_that_are_computed(rtts):
    from vegasmodel.engines.fluid import march as windows_march

    s = scenario([vegas(rtt=rtts[0]), reno(rtts[1])], duration=300.0)
    answer = continuous.run(s, sample=0.37)
    flows, (c, s_max) = continuous.flows_of(s), continuous.limits(s, packets=False)
    state, tally = continuous.fresh(flows)
    arrays = windows_march.workspace(*continuous.fresh(flows), 0)
    samples = windows_march.samples_at(answer.time, flows, state, arrays)
    record = samples.values
    for end in (200.0, 300.0):
        windows_march.march(
            flows, state, c, s_max, 0, end, continuous.STEP, False, False, tally, samples, arrays,
            PAUSE,
        )  # fmt: skip
    assert tally.losses.sum() > 20
    np.testing.assert_allclose(answer.window[1:], record[:2, 1:].T, rtol=1e-6)
    np.testing.assert_allclose(answer.queue[1:, 0], c * record[2, 1:], atol=1e-5)
    np.testing.assert_array_equal(answer.lost[1:], record[3:5, 1:].T)
    np.testing.assert_allclose(answer.delivered_so_far[1:], record[5:, 1:].T, rtol=1e-6)


@settings(deadline=None, max_examples=15, derandomize=True)
@given(c=st.floats(1e3, 1e6), part=st.floats(0.1, 1.0), alpha=st.floats(2, 5))
def test_long_steps_where_the_queue_is_slow_are_as_good_as_short_ones(c, part, alpha):
    case = scenario([vegas(alpha), reno()], c, part * c * 0.08, 600.0, 100.0)
    fine = continuous.run(case, step=0.02)
    np.testing.assert_allclose(continuous.run(case).throughput, fine.throughput, rtol=2e-4)


@pytest.mark.parametrize(
    ("own", "cap", "first"), [(None, 50.0, 1.0), (6.0, 50.0, 6.0), (6.0, 4.0, 4.0)]
)
def test_a_flow_begins_with_its_initial_window(own, cap, first):
    s = scenario([vegas(initial_window=own, max_window=cap)], duration=1.0, warmup=0.5)
    for run in (continuous.run(s, sample=1e-4), feedback.run(s, 10001)):
        assert run.window[1, 0] == pytest.approx(first, rel=0.01)


def test_a_capped_window_gets_its_window_a_round_trip():
    answer = continuous.run(scenario([reno(max_window=20.0)]))
    assert answer.throughput[0] == pytest.approx(20.0 / 0.08, rel=1e-9)
    assert answer.losses[0] == 0


def test_starts_and_stops():
    flows = [vegas(start=5.0, stop=20.0, name="late"), vegas(name="first")]
    answer = continuous.run(scenario(flows, duration=40.0, warmup=0.0), sample=0.5)
    on = (answer.time > 5.0) & (answer.time < 20.0)
    assert np.all(answer.window[on, 0] > 0)
    off = (answer.time < 5.0) | (answer.time > 20.0)
    assert np.all(answer.window[off, 0] == 0)
    # averages are over the time for which a flow is there
    total = answer.throughput[0] * 15.0
    assert total == pytest.approx(np.trapezoid(answer.rate[:, 0], answer.time), rel=0.02)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    c=st.floats(100, 5000),
    T=st.lists(st.floats(0.02, 0.3), min_size=1, max_size=5),
    B=st.floats(3, 200),
    laws=st.integers(0, 31),
    variant=st.sampled_from(["paper", "ns2", "linux"]),
)
def test_invariants(c, T, B, laws, variant):
    flows = [
        vegas(2.0, 3.0, rtt, name=f"f{i}", variant=variant)
        if laws >> i & 1
        else reno(rtt, name=f"f{i}")
        for i, rtt in enumerate(T)
    ]
    answer = continuous.run(scenario(flows, c, B, 30.0, 10.0))
    if answer.status != "done":  # a buffer too small for so many windows: said, not hidden
        assert np.all(np.isnan(answer.throughput))
        return
    for values in (answer.window, answer.rate, answer.rtt, answer.queue):
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
    assert answer.queue.max() <= B + 1 + 1e-9
    assert answer.throughput.sum() <= c * (1 + 1e-12)
    # between samples the rates are what the link carries: all of it where a queue stands
    busy = answer.queue[:, 0] > 1e-6 * c
    np.testing.assert_allclose(answer.rate.sum(1)[busy], c, rtol=1e-2)


@settings(deadline=None, max_examples=15, derandomize=True)
@given(scale=st.floats(0.1, 10.0), rtts=st.tuples(st.floats(0.03, 0.2), st.floats(0.03, 0.2)))
def test_time_scales(scale, rtts):
    def at(k):
        flows = [vegas(rtt=rtts[0] * k), reno(rtts[1] * k)]
        return continuous.run(scenario(flows, 900.0 / k, 25.0, 60.0 * k, 20.0 * k))

    np.testing.assert_allclose(at(scale).throughput * scale, at(1.0).throughput, rtol=1e-6)


def test_an_overflow_that_no_window_can_yield_to_ends_the_run():
    # SACK is cut to its floor, Vegas must not lose: rounding alone left room for it once
    T = 0.00323178390714802
    late = {"start": 0.013907504218123605}
    flows = [
        vegas(1.0, rtt=0.003469748705338071, **late),
        Flow(law="sack", rtt=T),
        vegas(2.0, 4.0, rtt=0.003901980948757574, name="other", **late),
    ]
    case = scenario(flows, 14728.641498197943, 1.0, 0.8344502530874163, 0.2, delay=0.0)
    answer = continuous.run(case, losers="loss-based")
    assert answer.status == Status.STUCK.reason
    assert np.isnan(answer.throughput).all()


def test_what_the_model_has_no_equation_for_is_refused():
    for bad in (
        scenario([vegas()], queue=Red(min_threshold=5.0, max_threshold=15.0)),
        scenario([vegas()], loss=0.01),
        scenario([vegas()], drops=(Drop("vegas", (3,)),)),
        scenario([vegas(direction="reverse")]),
        scenario([vegas(size=30.0)]),
        scenario([vegas(delay_noise=0.01)]),
        scenario([vegas(packet_size=100.0)]),
    ):
        assert continuous.unsupported(bad)
        with pytest.raises(ValueError, match="the continuous fluid does not simulate"):
            continuous.run(bad)
    good = scenario([vegas()], queue=DropTail())
    for options in ({"losers": "nobody"}, {"sample": 0.0}, {"step": 5.0}):
        with pytest.raises(ValueError, match=r"losers|sample|step"):
            continuous.run(good, **options)


def test_the_reason_against_a_scenario_is_a_sentence() -> None:
    links = [Link(100.0, name="a"), Link(100.0, name="b")]
    two = Scenario(links, [Flow("vegas", 0.1, size=30.0)])
    said = "the continuous fluid does not simulate more than one link or flows of finite size"
    assert continuous.unsupported(two) == said
    small = Scenario([Link(100.0)], [Flow("vegas", 0.1, packet_size=100.0)])  # the only size
    said_of_size = "the continuous fluid does not simulate flows whose packet_size is not the"
    assert continuous.unsupported(small) == f"{said_of_size} scenario's"
    named = said.replace("the continuous fluid", "the simulator `fluid`")
    assert methods.unsupported(two) == named
    marks = Link(100.0, buffer=30.0, queue=Red(5.0, 15.0, ecn=True))
    both = Scenario([marks], [Flow("vegas", 0.1, variant="ns2", size=30.0)])
    said = "the simulator `fluid` does not simulate RED that marks packets (ecn) or flows of finite"
    assert methods.unsupported(both) == f"{said} size"
