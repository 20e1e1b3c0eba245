"""Arrays whose shapes do not fit: one line that names the arguments."""

from typing import Any

import numpy as np
import pytest

import vegasmodel as vm

E = vm.equilibrium
TWO, THREE = np.array([0.5, 0.6]), np.array([0.5, 0.6, 0.7])
FLOW, CURVE = E.heterogeneous.Flows(["reno"], 0.1), E.heterogeneous.droptail(5.0)
BAND = E.bands.equilibria([2.0, 2.0], 4.0, 0.0, 200.0, 0.1)
LOOP = {"rate": TWO, "slope": TWO, "window": TWO, "climb": TWO}
SOURCES = {
    "edge": TWO,
    "over_estimate": TWO,
    "climb": TWO,
    "decrease": TWO,
    "least": TWO,
    "most": TWO,
}
# a call, and the arguments that the error names; the shapes are (2,) and (3,)
MISFITS: list[tuple[Any, str]] = [
    (lambda: E.rates(TWO, THREE, 9.0), "alpha and x"),
    (lambda: E.solve(TWO, 0.1, 9.0, rtt=THREE, variant="linux"), "alpha and rtt"),
    (lambda: E.queueing_delay(np.ones((3, 1)), 0.0, TWO), "alpha and c"),
    (lambda: E.arrivals.arrive(TWO, 9.0, rtt=THREE), "alpha and rtt"),
    (lambda: E.arrivals.arrive(np.ones((3, 1)), TWO), "alpha and capacity"),
    (lambda: E.bands.equilibria(TWO, THREE, 0.0, 9.0), "alpha and beta"),
    (lambda: E.bands.equilibria(TWO, 1.0, 0.0, 9.0, rtt=THREE), "alpha and rtt"),
    (lambda: BAND.backlog(THREE, 0.1), "rates and over_estimate"),
    (lambda: E.minicycle.throughput(TWO, 0.1, THREE), "capacity and buffer"),
    (lambda: E.minicycle.solve(9.0, TWO, 5.0, n_reno=THREE), "rtt and n_reno"),
    (lambda: E.minicycle.solve(9.0, TWO, 5.0, start=THREE), "rtt and start"),
    (lambda: E.minicycle.first_window(9.0, TWO, 5.0, gamma=THREE), "rtt and gamma"),
    (lambda: E.minicycle.threshold(TWO, 0.1, THREE, 0.5), "capacity and alpha"),
    (lambda: E.minicycle.window_alone(TWO, 0.1, THREE), "capacity and alpha"),
    (lambda: E.network.certificate([TWO], 9.0, 1.0, 0.0, THREE, [0.1]), "rates"),
    (lambda: E.network.solve([TWO], 9.0, THREE), "alpha"),
    (lambda: E.heterogeneous.Flows(["reno", "reno"], THREE), "rtt"),
    (lambda: E.phase_plane.reckoned(TWO, THREE, 9.0, 0.1), "windows and over_estimate"),
    (lambda: E.phase_plane.drift(TWO, THREE, 9.0, 0.0, 9.0, 0.1), "windows and lower"),
    (lambda: E.phase_plane.level(1.0, 0, THREE, 9.0, 0.1, TWO, "paper"), "over_estimate"),
    (lambda: E.random_loss.square_root(TWO, THREE), "p and rtt"),
    (lambda: E.random_loss.pftk(TWO, 0.1, THREE), "p and timeout"),
    (lambda: E.random_loss.hold_window(TWO, THREE), "rtt and queueing"),
    (lambda: E.red.simple_pftk(TWO, 0.1, THREE), "p and timeout"),
    (lambda: E.red.Flows([True, False], THREE), "vegas and rtt"),
    (lambda: E.red.Flows(True, TWO, decrease=THREE), "rtt and decrease"),
    (lambda: E.rate_delay.service_rates(TWO, THREE, 9.0), "n_rate and n_delay"),
    (lambda: E.rate_delay.delay_loss(TWO, 0.1, 9.0, THREE), "n_delay and S_D"),
    (lambda: E.rate_delay.split_buffer(TWO, THREE), "buffer and delay_buffer"),
    (lambda: E.rate_delay.needed_delay_buffer(TWO, 1.0, THREE), "n_delay and beta"),
    (lambda: E.sensitivity.own(TWO, THREE, 9.0), "alpha and x"),
    (lambda: E.settling.alone(TWO, THREE, TWO), "windows, trips and backlog"),
    (lambda: E.settling.together(TWO, TWO, THREE), "windows, trips and c"),
    (lambda: E.settling.later(TWO, TWO, THREE), "before, after and trips"),
    (lambda: E.settling.peak(TWO, THREE, 9.0, (TWO, TWO)), "windows and rtt"),
    (lambda: E.settling.peak(TWO, TWO, 9.0, (TWO, THREE)), r"new\[0\] and new\[1\]"),
    (lambda: E.settling.first_peak(TWO, THREE, 9.0), "backlog and rtt"),
    (lambda: E.stability.Loop(THREE, **LOOP), "rtt, rate, slope, window and climb"),
    (
        lambda: E.loop_rest.Sources(THREE, linux=np.array([False, True]), **SOURCES),
        "rtt, edge, over_estimate, linux, climb, decrease, least and most",
    ),
    (lambda: vm.metrics.nrmse(TWO, THREE), "computed and measured"),
    (lambda: vm.metrics.group_means(TWO, [0, 1, 0], ["a", "b"]), "throughput and groups"),
    (lambda: vm.metrics.relative_uncertainty(TWO, THREE, 3), "mean and error"),
]


@pytest.mark.parametrize("i", range(len(MISFITS)))
def test_shapes_that_do_not_fit_are_named(i: int) -> None:
    """The errors were those of NumPy or JAX, and named no argument."""
    wrong, names = MISFITS[i]
    with pytest.raises(vm.FieldError, match=rf"^{names}: '(shapes?|2 and 3)[^']*[23]"):
        wrong()


def test_shapes_of_jax_arrays_that_do_not_fit_are_named() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        two, three = jax.numpy.array(TWO), jax.numpy.array(THREE)
        for wrong, names in (
            (lambda: E.rates(two, three, 9.0), "alpha and x"),
            (lambda: E.rates(two[:, None], three, jax.numpy.ones((4,))), "alpha, x and c"),
            (lambda: E.rate_delay.service_rates(two, three, 9.0), "n_rate and n_delay"),
            (lambda: jax.jit(E.rates)(two, three, 9.0), "alpha and x"),
        ):
            with pytest.raises(vm.FieldError, match=rf"^{names}: 'shapes .*shapes that broadcast"):
                wrong()


def test_a_row_of_flows_is_no_number() -> None:
    wrong: Any
    for wrong, name in (
        (lambda: E.settling.first_peak(1.0, 0.1, 9.0), "backlog and rtt"),
        (lambda: E.settling.alone([], [], []), "windows, trips and backlog"),
        (lambda: E.hopf.crossings(lambda x, y: None, 1.0, 1.0), "xs"),
        (lambda: E.continuation.follow(lambda x, p: x - p, [], 0.5, (0.0, 1.0)), "x"),
        (lambda: vm.metrics.standard_error(TWO[:1]), "rates"),
        (lambda: E.heterogeneous.equilibria([[1]], 9.0, [[1.0]], FLOW), "curves"),
        (lambda: E.heterogeneous.equilibria([[1]], TWO, [CURVE], FLOW), "capacity"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: 'shape"):
            wrong()
    assert np.array_equal(np.isnan(E.sensitivity.cross_printed(3.0)), [[True]])  # one flow
    assert E.phase_plane.level(1.0, 0, 0.0, 9.0, 0.1, 0.3, "paper").shape == (1, 2)


def test_one_number_is_no_array() -> None:
    e = vm.equilibrium
    wrong: Any
    for wrong, name in (
        (lambda: e.bands.equilibria(2, 4, [0, 0], [100.0, 2]), "capacity"),
        (lambda: e.phase_plane.reckoned([5, 5], 0, [100.0, 200], 0.05), "capacity"),
        (lambda: e.minicycle.hypotheses(1080, 0.06, [20, 30]), "buffer"),
        (lambda: e.minicycle.forgotten_after([0.5, 0.75]), "decrease"),
        (lambda: e.arrivals.bonald(3, [1, 2], 4.0), "alpha"),
        (lambda: e.arrivals.asymptotes(3, [1, 2], 4.0), "alpha"),
        (lambda: e.heterogeneous.droptail([1, 2]), "buffer"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: .* a number"):
            wrong()
    assert e.sensitivity.own_printed(3.0) == 0.0  # one flow: its rate is the capacity
