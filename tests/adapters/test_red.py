"""The closed form ``red``, and the stability at a RED queue."""

from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME, RED, RENO, VEGAS
from vegasmodel.predictor import predict_all


@pytest.mark.parametrize(
    ("flow", "link", "why"),
    [
        ({"decrease": 1.0}, {"queue": RED}, "a loss does not reduce the window of vegas"),
        ({}, {"queue": RED, "buffer": "0 pkt"}, "no packet can wait"),
    ],
)
def test_red_without_a_mean_queue_leaves_the_other_models_their_answers(
    flow: dict[str, Any], link: dict[str, Any], why: str
) -> None:
    """``predict_all`` raised an error that named no field of the file."""
    case = scenario({**VEGAS, **flow}, RENO, **{"buffer": "20 pkt", **link})
    red, other = predict_all(case, ["red", "minicycle"])
    assert why in str(red.reason)
    assert other.applicable
    marks = {**link, "queue": {**RED, "ecn": True}, "buffer": "20 pkt"}
    assert vm.predict(scenario({**VEGAS, **flow}, RENO, **marks), "red").applicable


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_red_knows_that_linux_grows_by_packets_and_ns2_by_acks(variant: str) -> None:
    plain = HOME["red"].replace({"flow.reno.variant": variant, "flow.vegas.variant": variant})
    late = plain.replace({"flow.reno.delayed_ack": True})
    rates = [vm.predict(case, "red").throughput for case in (plain, late)]
    assert np.allclose(*rates, rtol=1e-9) == (variant == "linux")


@pytest.mark.parametrize(("variant", "backlog"), [("paper", 3.0), ("ns2", 3.0), ("linux", 3.5)])
def test_red_takes_the_middle_of_the_band_in_which_a_window_rests(
    variant: str, backlog: float
) -> None:
    """With alpha 2 and beta 4 a window of Linux rests from 2 packets up to, not with, 5."""
    queue = {**RED, "min_threshold": "20 pkt", "max_threshold": "40 pkt"}
    flow = {"law": "vegas", "alpha": 2, "beta": 4, "variant": variant, "count": 2}
    found = vm.predict(scenario(flow, buffer="60 pkt", queue=queue), "red")
    assert found.queue_mean == pytest.approx([2.0 * backlog])


@pytest.mark.parametrize(
    ("flow", "loss", "why"),
    [
        (RENO, 1.0, "loses every packet"),
        # ns-2 rounds the backlog, so with alpha = 0.5 a window holds while nothing waits
        ({**VEGAS, "alpha": 0.5, "variant": "ns2"}, 0.0, "without a packet in the queue"),
    ],
)
def test_where_nothing_can_rest_stability_says_so(
    flow: dict[str, Any], loss: float, why: str
) -> None:
    found = vm.stability(scenario(flow, buffer="20 pkt", queue=RED, loss=loss))
    assert not found.applicable
    assert why in str(found.reason)


def shared_by_twelve(**link: float) -> vm.Scenario:
    """12 Reno flows at a RED queue whose predicted mean is 23 packets if nothing else limits it."""
    start = vm.scenario.Staggered(0.0, 0.7)
    flow = vm.Flow("reno", "100 ms", count=12, variant="paper", start=start)
    queue = vm.Red(15.0, 60.0, 0.2)
    return vm.Scenario([vm.Link(600.0, queue=queue, **link)], [flow], run=vm.Run(300.0, 100.0))


# The mean queues in ns-2 2.35 below are means of 10 runs:
#     vm.packets.ns2.run(case.replace({"run.runs": 10}), rtts=False).queue_mean


@pytest.mark.parametrize(("buffer", "measured"), [(23.0, 9.4), (30.0, None), (60.0, 21.9)])
def test_a_buffer_with_little_room_beyond_the_mean_queue_is_told(
    buffer: float, measured: float | None
) -> None:
    """``measured``: the mean queue in ns-2. Bursts find a small buffer full."""
    said = vm.predict(shared_by_twelve(buffer=buffer), "red")
    [row] = [a for a in said.assumptions if a.name == "buffer-holds-bursts"]
    assert row.holds is (buffer == 60.0)
    if measured is not None:
        near = said.queue_mean[0] == pytest.approx(measured, rel=0.1)
        assert bool(near) is row.holds


def test_a_window_limit_near_the_share_shortens_the_queue() -> None:
    """In ns-2 the mean queue is 18.7 packets; without the limit it is 22.0."""
    case = shared_by_twelve(buffer=200.0)
    [free] = vm.predict(case, "red").queue_mean
    [near] = vm.predict(case.replace({"flow.max_window": 8.0}), "red").queue_mean
    assert free == pytest.approx(22.0, rel=0.06)
    assert near == pytest.approx(18.7, rel=0.06)


@pytest.mark.parametrize(
    ("count", "rtt", "capacity", "thresholds", "weight", "measured"),
    [
        (1, "88 ms", 318.0, (17.0, 68.0), 0.005, 14.7),  # falls below min_threshold
        (1, "76 ms", 310.0, (12.0, 48.0), 0.005, 11.7),
        (8, "101 ms", 497.0, (13.0, 26.0), 0.002, 18.8),  # one of many cuts hardly shows
        (1, "88 ms", 318.0, (17.0, 68.0), 0.0001, 18.4),  # RED's average hardly follows the queue
    ],
)
def test_a_cut_that_moves_the_average_past_a_threshold_is_told(
    count: int,
    rtt: str,
    capacity: float,
    thresholds: tuple[float, float],
    weight: float,
    measured: float,
) -> None:
    """``measured``: the mean queue in ns-2. ``red`` gave no alarm."""
    queue = vm.Red(*thresholds, 0.05, weight=weight)
    flow = vm.Flow("reno", rtt, count=count, variant="paper")
    case = vm.Scenario([vm.Link(capacity, buffer=200.0, queue=queue)], [flow])
    said = vm.predict(case, "red")
    [row] = [a for a in said.assumptions if a.name == "average-within-thresholds"]
    assert row.holds is bool(said.queue_mean[0] < 1.1 * measured)
    assert bool(row.detail) is not row.holds
    if not row.holds:
        assert f"beyond {thresholds[0]:g} packets" in row.detail


def test_the_average_varies_as_a_sawtooth_through_reds_filter() -> None:
    """A Reno window varies by a third of its mean, the average by less: by hand."""
    queue = vm.Red(17.0, 68.0, 0.05, weight=0.005)
    flow = vm.Flow("reno", "88 ms", variant="paper")
    said = vm.predict(vm.Scenario([vm.Link(318.0, buffer=200.0, queue=queue)], [flow]), "red")
    window = 318.0 * 0.088 + float(said.queue_mean[0])  # all that is in flight
    turn = 2.0 * np.pi * float(said.loss_rate[0]) / -np.log(1.0 - 0.005)
    swing = window / 3.0 / np.sqrt(1.0 + turn**2)
    [row] = [a for a in said.assumptions if a.name == "average-within-thresholds"]
    assert f"varies by about {swing:.2g} pkt" in row.detail
