"""The delay integrator against exact solutions, the method of steps, SciPy and jitcdde."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from vegasmodel.engines.delayed.integrator import Event, integrate
from vegasmodel.fields.errors import FieldError


def steps(t):
    """y' = -y(t - 1), y = 1 before 0: sum over k of (-1)^k (t - (k - 1))^k / k!."""
    return sum((-1) ** k * (t - (k - 1)) ** k / math.factorial(k) for k in range(int(t) + 2))


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_method_of_steps(rtol):
    answer = integrate(lambda t, y, z: -z[0], (0, 6), [1.0], [1.0], rtol=rtol, atol=rtol)
    assert answer.success
    grid = np.linspace(0.01, 6, 53)
    np.testing.assert_allclose(answer(grid)[:, 0], [steps(t) for t in grid], atol=20 * rtol)
    # each passage makes the break one derivative smoother, until the method is blind to it
    assert [order for _, order in answer.breaks] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([t for t, _ in answer.breaks], range(5), atol=1e-12)


def test_fifth_order_in_the_step():
    # sin solves y' = -y(t - pi/2): no break anywhere
    errors = []
    for h in (0.4, 0.2, 0.1):
        answer = integrate(
            lambda t, y, z: -z[0], (0, 10), lambda t: np.array([math.sin(t)]), [math.pi / 2],
            rtol=1.0, atol=1.0, max_step=h,
        )  # fmt: skip
        errors.append(np.abs(answer.state[:, 0] - np.sin(answer.time)).max())
    for coarse, fine in itertools.pairwise(errors):
        assert 2**4.5 < coarse / fine < 2**6


def test_error_follows_the_tolerance_with_a_step_longer_than_the_delay():
    # y = exp(-a t) with a = exp(0.01 a): the step reads itself
    a = 1.0
    for _ in range(60):
        a = math.exp(0.01 * a)
    errors = []
    for rtol in (1e-5, 1e-8):
        answer = integrate(
            lambda t, y, z: -z[0], (0, 5), lambda t: np.array([math.exp(-a * t)]), [0.01],
            rtol=rtol, atol=1e-3 * rtol,
        )  # fmt: skip
        assert np.diff(answer.time).max() > 0.05
        errors.append(abs(answer.state[-1, 0] * math.exp(5 * a) - 1))
    assert errors[0] < 1e-3
    assert errors[1] < 1e-6


def test_delay_that_depends_on_the_state():
    # y' = y y(ln y)/t from y(1) = 1: t up to e, then exp(t/e) up to e^2
    answer = integrate(
        lambda t, y, z: y * z[0] / t, (1, 7), [1.0], [lambda t, y, _: t - math.log(y[0])],
        rtol=1e-9, atol=1e-11,
    )  # fmt: skip
    assert answer.breaks[1] == pytest.approx((math.e, 2), abs=1e-9)
    early, late = np.linspace(1, math.e, 20), np.linspace(math.e, 7, 20)
    np.testing.assert_allclose(answer(early)[:, 0], early, rtol=1e-8)
    np.testing.assert_allclose(answer(late)[:, 0], np.exp(late / math.e), rtol=1e-8)


def test_delay_that_asks_the_past():
    # a packet seen at t met the queue at t - 0.5 - y(t - 0.5): y grows by 1/2, so tau = 0.5 + ...
    def lag(t, y, past):
        return 0.5 + past(t - 0.5)[0]

    answer = integrate(
        lambda t, y, z: np.array([0.5]), (0, 2), lambda t: np.array([0.5 * t + 1.0]), [lag]
    )
    reached = integrate(
        lambda t, y, z: np.array([0.5, z[0, 0]]), (0, 2),
        lambda t: np.array([0.5 * t + 1.0, 0.0]), [lag],
    )  # fmt: skip
    assert answer(2.0)[0] == pytest.approx(2.0)
    # z = y(t - 0.5 - (0.5 (t - 0.5) + 1)) = 0.25 t + 0.375, integrated
    assert reached(2.0)[1] == pytest.approx(0.125 * 4 + 0.375 * 2, rel=1e-9)


def test_delay_that_vanishes():
    # the pantograph y' = -y(t/2), y(0) = 1: at the start every step reads itself
    exact = sum(
        (-1) ** k * 2.0 ** (-k * (k - 1) / 2) * 3.0**k / math.factorial(k) for k in range(40)
    )
    answer = integrate(
        lambda t, y, z: -z[0], (0, 3), [1.0], [lambda t, y, _: t / 2], rtol=1e-9, atol=1e-11
    )
    assert answer(3.0)[0] == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6, 1e-8])
def test_a_trial_state_with_a_negative_delay_is_refused(rtol):
    # tau = u = exp(-20 t) never vanishes, but a long step's trial states are below 0;
    # y' = -y(t - u) exp(-u) keeps y = exp(-t)
    def right(t, y, z):
        return np.array([-20 * y[0], -z[0, 1] * math.exp(-y[0])])

    answer = integrate(
        right, (0, 2), lambda t: np.exp([-20 * t, -t]), [lambda t, y, _: y[0]],
        rtol=rtol, atol=1e-3 * rtol,
    )  # fmt: skip
    assert answer.success
    assert answer.rejected > 0
    assert answer.state[-1, 1] * math.exp(2) == pytest.approx(1, abs=5 * rtol)


@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
def test_a_delay_that_vanishes_for_good_is_told(rtol):
    # tau = 1 - t asks for the future after 1; up to there y' = -y(2 t - 1) from y = 1 before 0
    answer = integrate(lambda t, y, z: -z[0], (0, 3), [1.0], [lambda t, y, _: 1 - t], rtol=rtol)
    assert not answer.success
    assert answer.status.startswith("lags[0] becomes negative at t = ")
    assert answer.time[-1] == pytest.approx(1.0, abs=1e-12)
    assert answer(0.5)[0] == pytest.approx(0.5, rel=10 * rtol)
    assert answer(0.75)[0] == pytest.approx(0.5 - 0.25 + 0.0625, rel=10 * rtol)


def test_an_event_that_makes_a_delay_negative_is_told():
    push = Event(lambda t, y: t - 0.5, 1, lambda t, y: y - 2.0)
    answer = integrate(
        lambda t, y, z: np.zeros(1), (0, 2), [1.0], [lambda t, y, _: y[0]], events=[push]
    )
    assert answer.status.startswith("lags[0] becomes negative at t = 0.5")


def test_without_delays_it_is_an_ordinary_solver():
    def pendulum(t, y, z=None):
        return np.array([y[1], -math.sin(y[0])])

    answer = integrate(pendulum, (0, 20), [2.0, 0.0], rtol=1e-10, atol=1e-12)
    other = solve_ivp(pendulum, (0, 20), [2.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(answer.state[-1], other.y[:, -1], atol=1e-8)


def ball(t, y, z):
    return np.array([y[1], -9.81])


def test_bounces_are_located_to_a_nanosecond():
    bounce = Event(lambda t, y: y[0], -1, lambda t, y: np.array([0.0, -0.9 * y[1]]))
    answer = integrate(ball, (0, 5), [1.0, 0.0], events=[bounce], rtol=1e-8, atol=1e-10)
    first = math.sqrt(2 / 9.81)
    gaps = 2 * first * 0.9 ** np.arange(1, len(answer.events))
    expected = first + np.concatenate([[0.0], np.cumsum(gaps)])
    np.testing.assert_allclose([e.time for e in answer.events], expected, atol=1e-9)
    assert len(answer.events) > 6


def test_events_that_accumulate_are_reported():
    bounce = Event(lambda t, y: y[0], -1, lambda t, y: np.array([0.0, -0.3 * y[1]]))
    answer = integrate(ball, (0, 5), [1.0, 0.0], events=[bounce], rtol=1e-8, atol=1e-10)
    assert not answer.success
    assert "accumulate" in answer.status or "small" in answer.status
    limit = math.sqrt(2 / 9.81) * (1 + 2 * 0.3 / 0.7)
    assert answer.time[-1] == pytest.approx(limit, abs=1e-3)


def test_two_events_in_one_step():
    # y = t in one long step; the parabola's two roots lie inside it
    found = integrate(
        lambda t, y, z: np.array([1.0]), (0, 1), [0.0],
        events=[Event(lambda t, y: (y[0] - 0.4) * (y[0] - 0.6))],
    ).events  # fmt: skip
    np.testing.assert_allclose([e.time for e in found], [0.4, 0.6], atol=1e-9)


def test_simultaneous_and_directed_events():
    answer = integrate(
        lambda t, y, z: np.array([math.cos(t)]), (0, 10), [0.0],
        events=[
            Event(lambda t, y: y[0] - 0.5, 1),
            Event(lambda t, y: 2 * y[0] - 1, 1, lambda t, y: y),
            Event(lambda t, y: t - 8, 0, terminal=True),
        ],
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    assert answer.status == "event"
    assert answer.time[-1] == pytest.approx(8.0, abs=1e-12)
    rising = [math.pi / 6, math.pi / 6 + 2 * math.pi]
    assert [e.event for e in answer.events] == [0, 1, 0, 1, 2]
    times = [e.time for e in answer.events]
    np.testing.assert_allclose(times[:4:2], rising, atol=1e-9)
    np.testing.assert_allclose(times[1:4:2], rising, atol=1e-9)


def test_a_jump_returns_after_the_delay():
    # y' = y(t - 1) from y = 1; at t = 0.5 y is raised by 1. All pieces are polynomials
    push = Event(lambda t, y: t - 0.5, 1, lambda t, y: y + 1.0)
    answer = integrate(lambda t, y, z: z[0], (0, 2), [1.0], [1.0], events=[push])
    assert answer(0.5 - 1e-9)[0] == pytest.approx(1.5)
    assert answer(1.0)[0] == pytest.approx(3.0)
    # on [1, 1.5]: y' = t, on [1.5, 2]: y' = t + 1
    assert answer(1.5)[0] == pytest.approx(3.0 + (1.5**2 - 1) / 2, rel=1e-9)
    expected = 3.0 + (1.5**2 - 1) / 2 + (4 - 1.5**2) / 2 + 0.5
    assert answer(2.0)[0] == pytest.approx(expected, rel=1e-9)
    assert (pytest.approx(1.5), 1) in answer.breaks


def test_start_that_differs_from_history_is_a_jump():
    # y' = y(t - 1), 0 before, 1 at 0
    answer = integrate(lambda t, y, z: z[0], (0, 3), [0.0], [1.0], start=[1.0])
    assert answer.breaks[0] == (0.0, 0)
    np.testing.assert_allclose(answer(np.array([0.5, 1.5, 3.0]))[:, 0], [1, 1.5, 3.5], rtol=1e-9)


def test_only_the_reachable_past_is_kept():
    grid = np.linspace(0, 300, 7)
    options = {"rtol": 1e-5, "sample": grid, "lags": [math.pi / 2]}
    sine = integrate(
        lambda t, y, z: -z[0], (0, 300), lambda t: np.array([math.sin(t)]), keep=2.0, **options
    )
    whole = integrate(lambda t, y, z: -z[0], (0, 300), lambda t: np.array([math.sin(t)]), **options)
    np.testing.assert_array_equal(sine.sample, whole.sample)
    assert len(whole.time) > 400  # far more than what is kept
    assert sine(299.0)[0] == pytest.approx(math.sin(299), abs=1e-2)
    with pytest.raises(ValueError, match=r"^t: "):
        sine(1.0)


def test_two_delays_and_several_components_against_scipy_method_of_steps():
    # on [0, 1] both arguments lie before 0, so SciPy can integrate
    def phi(t):
        return np.array([math.cos(t), math.exp(t)])

    answer = integrate(
        lambda t, y, z: np.array([z[0, 1] - y[0], z[1, 0] * y[1]]), (0, 1), phi, [1.0, 2.5],
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    other = solve_ivp(
        lambda t, y: [phi(t - 1)[1] - y[0], phi(t - 2.5)[0] * y[1]], (0, 1), phi(0),
        rtol=1e-12, atol=1e-13, method="DOP853",
    )  # fmt: skip
    np.testing.assert_allclose(answer.state[-1], other.y[:, -1], rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_jitcdde_on_a_delay_that_depends_on_the_state():
    jitcdde = pytest.importorskip("jitcdde")
    import symengine

    y, t = jitcdde.y, jitcdde.t

    def phi(time):
        return np.array([1.2 * math.exp(-0.2 * time)])

    delayed = y(0, t - 1 - 0.3 * symengine.sin(y(0)))
    system = jitcdde.jitcdde([2 * delayed / (1 + delayed**4) - y(0)], max_delay=2.0, verbose=False)
    system.past_from_function(phi)
    system.set_integration_parameters(rtol=1e-7, atol=1e-9)
    system.generate_lambdas(simplify=False)
    system.initial_discontinuities_handled = True  # its error control shortens the steps there
    times = np.array([1.0, 2.5, 5.0])
    theirs = np.array([system.integrate(time)[0] for time in times])
    ours = integrate(
        lambda t, y, z: 2 * z[0] / (1 + z[0] ** 4) - y, (0, 5), phi,
        [lambda t, y, _: 1 + 0.3 * math.sin(y[0])], rtol=1e-9, atol=1e-11,
    )  # fmt: skip
    np.testing.assert_allclose(ours(times)[:, 0], theirs, rtol=1e-6)


def test_vegas_under_feedback_delay_settles_at_the_steady_state_equation():
    # The round-trip time seen at t holds the queue that its packet met at t - tau, and
    # tau = T + q(t - tau)/c is the delay itself. The law's step is smoothed over eight packets,
    # gentle enough not to oscillate under that delay; at rest its offset is gone, as m = 0.
    c, T, x, alpha = 500.0, np.array([0.06, 0.11]), np.array([0.0, 0.003]), 3.0

    def lag(i):
        def tau(t, y, past):
            return brentq(lambda u: u - T[i] - max(past(t - u)[2], 0.0) / c, T[i], T[i] + 2.0)

        return tau

    def right(t, y, z):
        rtt = T + np.maximum(z[:, 2], 0.0) / c
        diff = y[:2] * (rtt - T - x) / rtt
        inflow = (y[:2] / (T + y[2] / c)).sum() - c
        return np.append(np.tanh((alpha - diff) / 8) / rtt, inflow)

    start = np.array([25.0, 40.0, 15.0])
    answer = integrate(
        right, (0, 60), start, [lag(0), lag(1)], rtol=1e-6, atol=1e-8, keep=5.0, max_step=0.05
    )
    assert answer.success
    delta = brentq(lambda d: (alpha / (d - x)).sum() - c, 0.0031, 1.0, xtol=1e-15)
    rates = answer.state[-1, :2] / (T + delta)
    np.testing.assert_allclose(rates, alpha / (delta - x), rtol=1e-5)
    assert answer.state[-1, 2] == pytest.approx(c * delta, rel=1e-5)


def test_failures_and_misuse():
    blow_up = integrate(lambda t, y, z: y * y, (0, 2), [1.0])
    assert not blow_up.success
    assert blow_up.time[-1] == pytest.approx(1.0, abs=1e-3)
    short = integrate(lambda t, y, z: -y, (0, 1e6), [1.0], max_steps=10)
    assert "more than 10 steps" in short.status
    for options, match in (
        ({"span": (1, 0)}, r"^span: \[1, 0\] is not allowed"),
        ({"start": [1.0, 2.0]}, r"^start: 'shape \(2,\)' is not allowed"),
        ({"rtol": 0.0}, r"^rtol: 0.0 is not allowed; more than 0"),
        ({"lags": [-1.0]}, r"^lags\[0\]: -1.0 is not allowed; a delay from 0"),
    ):
        arguments = {"f": lambda t, y, z: -y, "span": (0, 1), "history": [1.0]} | options
        with pytest.raises(FieldError, match=match):
            integrate(**arguments)


@settings(deadline=None, max_examples=20, derandomize=True)
@given(tau=st.floats(0.05, 2.0), a=st.floats(-1.5, 1.0), scale=st.floats(0.1, 10.0))
def test_scaling_time_scales_the_solution(tau, a, scale):
    def at(k):
        return integrate(
            lambda t, y, z: a * z[0] / k, (0, 3 * k), [1.0], [tau * k], rtol=1e-9, atol=1e-12
        )(3.0 * k)

    np.testing.assert_allclose(at(scale), at(1.0), rtol=1e-6, atol=1e-9)


def test_a_past_shorter_than_the_delay_is_no_answer():
    """keep = 0.5 with a delay of 1: extrapolation of the past would give -6.9e12."""
    with pytest.raises(ValueError, match="keep"):
        integrate(lambda t, y, z: -z[0], (0, 40), [1.0], [1.0], keep=0.5)
    run = integrate(
        lambda t, y, z: -z[0], (0, 40), [1.0], [lambda t, y, past: 1.0], keep=0.5, max_step=0.01
    )
    assert "longer than keep" in run.status
    assert not run.success


def test_samples_in_any_order():
    times = np.array([3.0, 0.5, 9.5, 0.5, 7.0])
    run = integrate(lambda t, y, z: -z[0], (0, 10), [1.0], [1.0], sample=times)
    np.testing.assert_allclose(run.sample, run(times), rtol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        integrate(lambda t, y, z: -z[0], (0, 10), [1.0], [1.0], sample=[1.0, np.nan])
