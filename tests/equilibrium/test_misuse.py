"""Unknown words, wrong signs and NaN: every public function names the argument in one line."""

import math

import numpy as np
import pytest

from vegasmodel.equilibrium import (
    arrivals,
    bands,
    loss_peaks,
    loss_rounds,
    minicycle,
    network,
    phase_plane,
    random_loss,
    rate_delay,
    red,
    secular,
    sensitivity,
)
from vegasmodel.fields.errors import FieldError

CURVE, FLOWS = red.Curve(5, 15), red.Flows(True, 0.1)
RENO = random_loss.Sender("reno", 0.1)
PLANE = {"windows": [2.0, 3.0], "over_estimate": 0.0, "capacity": 50.0, "rtt": 0.1}
LEVEL = {
    "edge": 1.0,
    "flow": 0,
    "over_estimate": 0.0,
    "capacity": 50.0,
    "rtt": 0.1,
    "delays": [0.01],
    "variant": "paper",
}
GOODPUT = {"loss": 0.1, "rtt": 0.1, "timeout": 0.3}
CYCLE = {"capacity": 1080.0, "rtt": 0.08, "buffer": 20.0}

# function, valid arguments, and changes to them that it must refuse
CASES = [
    (
        secular.solve,
        {"alpha": 1.0, "x": 0.0, "c": 1.0},
        {"variant": "reno", "alpha": "one", "x": object(), "c": {}},
    ),
    (
        arrivals.arrive,
        {"alpha": [1.0], "capacity": 1.0},
        {"variant": "ns3", "alpha": "one", "capacity": {}, "rtt": "1 s", "over_estimate": "no"},
    ),
    (
        arrivals.bonald,
        {"n": 2, "alpha": 1.0, "capacity": 1.0},
        {"n": 0, "alpha": -3.0, "capacity": -5.0},
    ),
    (
        arrivals.asymptotes,
        {"n": 5, "alpha": 1.0, "capacity": 1.0},
        {"n": 1, "alpha": -3.0, "capacity": math.nan, "form": "exakt"},
    ),
    (
        bands.equilibria,
        {"alpha": 1.0, "beta": 3.0, "over_estimate": 0.0, "capacity": 50.0, "rtt": 0.1},
        {"alpha": math.nan, "beta": 0.5, "over_estimate": math.nan, "capacity": -5.0, "rtt": -0.1,
         "variant": "bsd"},
    ),
    (sensitivity.own_printed, {"y": [0.1]}, {"y": [-0.1]}),
    (sensitivity.cross_printed, {"y": [0.1]}, {"y": [math.nan]}),
    (sensitivity.delay_printed, {"y": [0.1]}, {"y": [0.0]}),
    (
        phase_plane.reckoned,
        PLANE,
        {"windows": [-1.0, 1.0], "over_estimate": math.nan, "capacity": -5.0, "rtt": 0.0,
         "variant": "bsd"},
    ),
    (phase_plane.drift, PLANE | {"lower": 1.0, "upper": 3.0}, {"lower": -1.0, "upper": math.nan}),
    (
        phase_plane.level,
        LEVEL,
        {"edge": -1.0, "flow": 2, "capacity": 0.0, "rtt": -1.0, "variant": "x"},
    ),
    (
        network.solve,
        {"routing": [[1.0]], "capacity": 50.0, "alpha": 1.0},
        {"routing": [[-1.0]], "capacity": -5.0, "alpha": -3.0, "over_estimate": -1.0},
    ),
    (network.parking_lot, {"links": 2}, {"links": 0, "long": -1, "cross": 1.5}),
    (
        random_loss.square_root,
        {"p": 0.1, "rtt": 0.1},
        {"p": -0.1, "rtt": 0.0, "b": 0.0, "decrease": 1.1, "losses": "perodic"},
    ),
    (random_loss.random_factor, {"decrease": 0.5}, {"decrease": -0.5}),
    (
        random_loss.pftk,
        {"p": 0.1, "rtt": 0.1, "timeout": 0.3},
        {"timeout": -1.0, "max_window": 0.0, "decrease": 1.0},
    ),
    (random_loss.coarse_timeout, {"rtt": 0.1}, {"rtt": -0.1}),
    (
        random_loss.hold_window,
        {"rtt": 0.1, "queueing": 0.01},
        {"rtt": 0.0, "queueing": -0.1, "alpha": -3.0, "over_estimate": math.nan, "capacity": -5.0},
    ),
    (
        random_loss.Sender,
        {"law": "vegas", "rtt": 0.1},
        {"law": "bbr", "rtt": -1.0, "alpha": -3.0, "max_window": 0.0, "ack_every": 0.0,
         "decrease": 2.0, "timeout": -1.0, "over_estimate": math.inf},
    ),
    (
        random_loss.own_queueing,
        {"flow": RENO, "p": 0.01, "capacity": 100.0},
        {"flow": "reno", "p": 1.1, "capacity": -1.0, "buffer": -1.0},
    ),
    (
        random_loss.throughput,
        {"flow": RENO, "p": 0.1},
        {"p": math.nan, "capacity": -5.0, "buffer": -50.0, "queueing": -1.0, "method": "PFTK"},
    ),
    (
        random_loss.share,
        {"flows": [RENO], "p": 0.1, "capacity": 50.0},
        {"flows": [], "p": 2.0, "capacity": -5.0, "buffer": -50.0, "method": "square root"},
    ),
    (
        loss_peaks.load,
        {"flows": [RENO], "p": 0.1, "capacity": 50.0, "buffer": 5.0},
        {"flows": [], "p": 0.0, "capacity": -5.0, "buffer": -50.0},
    ),
    (
        loss_peaks.slow_start_queue,
        {"flows": [RENO], "p": 0.1, "capacity": 50.0},
        {"flows": [], "p": 0.0, "capacity": -5.0},
    ),
    (
        loss_peaks.recovery_burst,
        {"flows": [RENO], "p": 0.1, "capacity": 50.0},
        {"flows": [], "p": 0.0, "capacity": -5.0},
    ),
    (
        loss_rounds.Source,
        GOODPUT,
        {"loss": -0.1, "rtt": 0.0, "timeout": -1.0, "capacity": -5.0, "hold": 0.0,
         "overflow": math.nan, "ack_every": 0.0},
    ),
    (
        red.Curve,
        {"min_threshold": 5, "max_threshold": 15},
        {"min_threshold": -1, "max_threshold": 5, "max_probability": 0.0, "buffer": -50.0,
         "spacing": "foo"},
    ),
    (
        red.Flows,
        {"vegas": True, "rtt": 0.1},
        {"rtt": -0.1, "alpha": -3.0, "over_estimate": math.nan, "decrease": 1.0, "max_window": 0.0,
         "ack_every": 0.0, "timeout": -1.0},
    ),
    (red.effective, {"base": 0.1}, {"base": 1.5, "spacing": "sometimes"}),
    (
        red.simple_pftk,
        {"p": 0.1, "rtt": 0.1, "timeout": 0.3},
        {"p": 2.0, "rtt": -1.0, "timeout": -1.0, "b": 0.0, "decrease": -1.0},
    ),
    (
        red.demand,
        {"flows": FLOWS, "curve": CURVE, "queue": 1.0, "loss": 0.1, "capacity": 50.0},
        {"queue": -1.0, "loss": -0.1, "capacity": -5.0},
    ),
    (red.equilibria, {"flows": FLOWS, "curve": CURVE, "capacity": 50.0}, {"capacity": math.nan}),
    (
        rate_delay.service_rates,
        {"n_rate": 1, "n_delay": 1, "capacity": 50.0},
        {"n_rate": -1, "n_delay": math.nan, "capacity": -5.0, "k": 0.0},
    ),
    (rate_delay.split_buffer, {"buffer": 50.0}, {"buffer": -50.0, "delay_buffer": 1.5}),
    (rate_delay.rate_utilization, {"rtt": 0.1, "B_R": 1.0, "S_R": 1.0}, {"decrease": 1.0}),
    (
        rate_delay.needed_delay_buffer,
        {"n_delay": 1, "alpha": 1.0, "beta": 3.0},
        {"alpha": -3.0, "beta": 0.5},
    ),
    (
        minicycle.solve,
        CYCLE,
        {"capacity": -5.0, "rtt": math.nan, "buffer": -50.0, "alpha": -3.0, "beta": 0.5,
         "decrease": 0.0, "losers": "growning", "variant": "ns3", "n_vegas": 0, "n_reno": 0.5,
         "response": -1.0},
    ),
    (minicycle.throughput, CYCLE, {"form": "print"}),
    (minicycle.hypotheses, CYCLE, {"max_window": "64 pkt"}),
    (
        minicycle.first_window,
        CYCLE,
        {"gamma": 0.0, "initial": -1.0, "variant": "x", "buffer": math.inf},
    ),
    (
        minicycle.forgotten_after,
        {"decrease": 0.75},
        {"decrease": 0.0, "n_vegas": 0, "n_reno": 0, "part": 1.0},
    ),
    (
        minicycle.window_alone,
        {"capacity": 50.0, "rtt": 0.1, "alpha": 1.0},
        {"capacity": -5.0, "alpha": -3.0, "n_vegas": 0, "variant": "x"},
    ),
]  # fmt: skip
WRONG = [
    pytest.param(function, good, name, value, id=f"{function.__name__}-{name}")
    for function, good, changes in CASES
    for name, value in changes.items()
]


@pytest.mark.parametrize(("function", "good", "name", "value"), WRONG)
def test_a_wrong_argument_is_named(function, good, name, value):
    function(**good)  # what is right is taken
    with pytest.raises(FieldError) as caught:
        function(**good | {name: value})
    assert caught.value.field == name
    assert "\n" not in str(caught.value)


def test_limits_of_the_loss_laws():
    """p -> 0 gives the square-root law or the window limit; p = 1 gives the longest timeout."""
    p = np.array([1e-320, 1e-20, 1e-12])
    free = random_loss.pftk(p, 0.1, 0.3)
    np.testing.assert_allclose(free, math.sqrt(1.5) / (0.1 * np.sqrt(p)), rtol=1e-3)
    np.testing.assert_allclose(random_loss.pftk(p, 0.1, 0.3, max_window=20), 200.0, rtol=1e-9)
    assert random_loss.pftk(1.0, 0.1, 0.3) == pytest.approx(1 / (64 * 0.3))
    assert random_loss.pftk(1 - 1e-9, 0.1, 0.3) == pytest.approx(1 / (64 * 0.3), rel=1e-6)
    assert random_loss.throughput(RENO, 1.0, method="pftk") == 0.0


def test_random_factor_up_to_one():
    """Compared with the product, factor by factor, and with 1/sqrt(1 - d^2) if d is near 1."""
    for d in (0.1, 0.5, 0.75, 0.99, 0.9995):
        k = np.arange(1, 2 + math.ceil(-20 / math.log(d)))
        product = math.sqrt(math.pi) / 2 * np.prod((1 - d ** (2 * k + 1)) / (1 - d ** (2 * k)))
        assert random_loss.random_factor(d) == pytest.approx(product, rel=1e-10)
    near = 1 - 1e-9
    assert random_loss.random_factor(near) == pytest.approx(1 / math.sqrt(2e-9), rel=1e-6)
    assert random_loss.random_factor(1.0) == math.inf
    assert random_loss.random_factor(0.0) == pytest.approx(math.sqrt(math.pi) / 2)


def test_a_target_ratio_of_any_size():
    S_R, S_D = rate_delay.service_rates(3, 2, 100.0, 1e308)
    assert (pytest.approx(100.0), pytest.approx(200 / 3 * 1e-308)) == (S_R, S_D)
    each = rate_delay.flow_rates(3, 2, 100.0, [1e308, 1.0])
    np.testing.assert_allclose(each[0], [100 / 3, 20.0])
    np.testing.assert_allclose(each[1], [100 / 3 * 1e-308, 20.0])
    assert rate_delay.volume_ratio(3, 2, 1e308) < 1e-307


def test_printed_cycle_outside_its_hypothesis_is_no_number():
    """mu T = 20 below B = 100: the printed sums would give Reno -56 pkt/s."""
    vegas, reno = minicycle.throughput(1000, 0.02, [100.0, 10.0], form="printed")
    assert np.isnan([vegas[0], reno[0]]).all()
    assert min(vegas[1], reno[1]) > 0
