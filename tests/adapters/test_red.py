"""The closed form ``red``, and the stability at a RED queue."""

from __future__ import annotations

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
