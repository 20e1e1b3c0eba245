"""Flows that are active in a part of the measured time, or in none of it.

The windows are limited and the link is fast, so a flow sends window / RTT = 40 pkt/s while it is
active, and everything else is arithmetic.
"""

import dataclasses
import json
import math
from collections.abc import Callable

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.packets import ns2_trace
from vegasmodel.packets.measured import to_prediction

LINK = vm.Link(400, buffer="40 pkt")
WHOLE = vm.Flow("reno", "100 ms", name="whole", max_window=4, send_jitter=0.0)
HALF = vm.Flow("reno", "100 ms", name="half", max_window=4, send_jitter=0.0, start="120 s")
EARLY = vm.Flow("reno", "100 ms", name="early", max_window=4, send_jitter=0.0, stop="10 s")
TIMES = vm.Run(duration="220 s", warmup="20 s")


def _trace(scenario: vm.Scenario) -> vm.Prediction:
    return to_prediction(ns2_trace.record(scenario, 1.0), scenario)


ASKED = {
    "fluid": lambda scenario: vm.predict(scenario, "fluid"),
    "rounds": lambda scenario: vm.predict(scenario, "rounds"),
    "ns2": vm.packets.ns2.run,
    "ns3": vm.packets.ns3.run,
    "trace": _trace,
}


@pytest.fixture(params=ASKED)
def ask(request: pytest.FixtureRequest) -> Callable[[vm.Scenario], vm.Prediction]:
    name = request.param
    engine = {"ns3": vm.packets.ns3, "ns2": vm.packets.ns2, "trace": vm.packets.ns2}.get(name)
    if engine is not None and not engine.available():
        pytest.skip("the simulator is not installed")
    return ASKED[name]


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_shares_count_from_the_start_that_was_drawn(model: str) -> None:
    """Each run draws how much later than 120 s the second flow starts, uniformly up to 90 s."""
    flows = [dataclasses.replace(flow, variant="ns2") for flow in (WHOLE, HALF)]
    times = vm.Run(duration="220 s", warmup="20 s", start_jitter="90 s", runs=40)
    found = vm.predict(vm.Scenario([LINK], flows, run=times), model)
    assert found.throughput == pytest.approx([40.0, 40.0], rel=0.01)  # while it is active
    whole = 200.0 - 70.0**2 / (2.0 * 90.0)  # the first one starts after the warm-up in 7 of 9 runs
    half = 100.0 - 45.0
    error = 90.0 / math.sqrt(12.0 * 40.0)  # of a mean start
    assert found.shares["half"] == pytest.approx(half / (whole + half), abs=2.0 * error / whole)


def test_shares_count_bits_in_the_measured_time(
    ask: Callable[[vm.Scenario], vm.Prediction],
) -> None:
    found = ask(vm.Scenario([LINK], [WHOLE, HALF], run=TIMES))
    assert found.throughput == pytest.approx([40.0, 40.0], rel=0.02)  # while it is active
    assert found.ratios["half/whole"] == pytest.approx(1.0, rel=0.02)
    assert found.shares == {
        "whole": pytest.approx(2 / 3, rel=0.01),
        "half": pytest.approx(1 / 3, rel=0.01),
    }
    assert found.group_bps["half"] == pytest.approx(20 * 8 * 1000, rel=0.02)
    if found.model != "trace":
        assert found.utilization == pytest.approx([60 / 400], rel=0.02)
    assert found.to_dataframe()["share"].to_list() == pytest.approx([2 / 3, 1 / 3], rel=0.01)


def test_a_flow_that_is_never_active_has_no_throughput(
    ask: Callable[[vm.Scenario], vm.Prediction],
) -> None:
    """The simulators of packets gave 0 and the models NaN; a trace was refused."""
    found = ask(vm.Scenario([LINK], [WHOLE, EARLY], run=TIMES))
    assert found.throughput[0] == pytest.approx(40.0, rel=0.02)
    assert math.isnan(found.throughput[1])
    assert found.shares == {"whole": 1.0, "early": 0.0}
    assert found.ratios == {"whole/early": None, "early/whole": None}
    assert found.jain == 1.0
    shown = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [flow["throughput_pps"] for flow in shown["flows"]][1] is None
    vm.testing.invariants.check(found)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_sweep_counts_the_same_bits(model: str) -> None:
    scenario = vm.Scenario([LINK], [WHOLE, HALF], run=TIMES)
    data = vm.sweep(scenario, {"flow.half.start": [20.0, 120.0, 170.0]}, model)
    assert data["share"].sel(flow="half").values == pytest.approx([1 / 2, 1 / 3, 1 / 5], rel=0.01)
    used = np.array([80.0, 60.0, 50.0]) / 400
    assert data["utilization"].isel(link=0).values == pytest.approx(used, rel=0.02)


def test_a_closed_form_counts_the_same_bits() -> None:
    scenario = vm.Scenario([LINK], [WHOLE, HALF], run=TIMES)
    steady = vm.Prediction("some", scenario, np.array([300.0, 100.0]))
    assert steady.shares == {"whole": pytest.approx(6 / 7), "half": pytest.approx(1 / 7)}
    assert steady.utilization == pytest.approx([350 / 400])
    arrays = vm.sweep(_pair(), {"flow.alpha": [1.0]}, "minicycle")
    one = vm.predict(_pair().replace({"flow.alpha": 1.0, "flow.beta": 1.0}), "minicycle")
    vegas, reno = one.throughput
    assert arrays["share"].values[0, 0] == pytest.approx(vegas / (vegas + reno / 2))


def _pair() -> vm.Scenario:
    flows = [
        vm.Flow("vegas", "100 ms", alpha=1, beta=1),
        vm.Flow("reno", "100 ms", start="120 s"),
    ]
    return vm.Scenario([vm.Link(400, buffer="20 pkt")], flows, run=TIMES)


def test_a_flow_that_ends_in_the_warm_up_is_told(
    ask: Callable[[vm.Scenario], vm.Prediction],
) -> None:
    """The fluid has no flows of finite size; 40 pkt/s send 40 kB in the first second."""
    small = dataclasses.replace(WHOLE, name="small", size="40 kB")
    flows = [WHOLE, EARLY, *([] if ask is ASKED["fluid"] else [small])]
    found = ask(vm.Scenario([LINK], flows, run=TIMES))
    (note,) = (a for a in found.assumptions if a.name == "sends-after-warm-up")
    assert note.holds is False
    said = "early stops at 10 s" + ", small has sent all its data" * (len(flows) > 2)
    assert note.detail == f"{said} before averages begin at 20 s (`warmup`)"
    assert list(found.throughput > 0.0) == [True, False, False][: len(flows)]
    whole = ask(vm.Scenario([LINK], [WHOLE, HALF], run=TIMES))
    assert "sends-after-warm-up" not in {a.name for a in whole.assumptions}
