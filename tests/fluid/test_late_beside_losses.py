"""A Vegas flow that starts after a loss-based flow: ``fluid`` knows its baseRTT only roughly."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.adapters.resting_windows import network
from vegasmodel.packets import ns2

NAME = "many-packets-queued"


def late(start: float = 2.0) -> vm.Scenario:
    """Vegas starts ``start`` seconds after NewReno; the link holds 12 packets.

    The buffer holds more, so the queue does not become empty after a loss in the steady state.
    """
    flows = [
        vm.Flow("vegas", 0.0434, start=start, variant="ns2", send_jitter=0.0),
        vm.Flow("newreno", 0.0434, variant="ns2", send_jitter=0.0),
    ]
    return vm.Scenario([vm.Link(272.0, buffer=17.0)], flows, run=vm.Run(120.0, 40.0))


@pytest.mark.parametrize(
    ("scenario", "holds"),
    [
        (late(), False),
        (late().replace({"flow.vegas.over_estimate": "0 s"}), True),  # known from the scenario
        (late().replace({"flow.vegas.start": 0.0}), True),  # starts with the other flow
        (late().replace({"flow.rtt": 0.2}), True),  # the queue becomes empty after each loss
        (late().replace({"run.start_jitter": 0.5, "run.runs": 2}), True),  # not tested
    ],
)
def test_fluid_says_if_the_base_rtt_of_a_late_flow_matters(
    scenario: vm.Scenario, holds: bool
) -> None:
    (said,) = [a for a in vm.predict(scenario, "fluid").assumptions if a.name == NAME]
    assert said.holds is holds
    assert holds or "starts late, and losses at that time decide" in said.detail


@pytest.mark.ns2
def test_in_ns2_the_time_of_the_start_then_decides_the_rate() -> None:
    """At 2 s NewReno repairs the losses of its slow start; 6 and 10 s are in its steady state."""
    rates = [
        ns2.run(late(start), rtts=False, processes=1).throughput[0] for start in (2.0, 6.0, 10.0)
    ]
    assert max(rates) > 1.5 * min(rates)


def test_the_base_rtt_with_which_vegas_computes_is_not_the_least_rtt_of_the_samples() -> None:
    """Vegas learns mean RTTs of round trips, so it does not learn of the emptiest queue."""
    scenario = late()
    least = vm.simulate(scenario, "fluid").base_rtt.values[-1, 0]
    assert least < 0.9 * vm.predict(scenario, "fluid").base_rtt[0]


def test_the_delays_at_the_emptiest_and_at_the_fullest_queue() -> None:
    """By hand: capacity 100 packets/s and 100 ms hold 10 packets, the buffer of ns-2 20 more.

    Reno's mean window is 18, so its window is 12 after a loss. With Vegas's 6 packets, 8 of these
    18 packets are then queued, for 80 ms.
    """
    flows = [vm.Flow(law, 0.1, variant="ns2") for law in ("vegas", "reno")]
    scenario = vm.Scenario([vm.Link(100.0, buffer=21.0)], flows)
    found = network(scenario).delays(np.array([6.0, 18.0]), np.array([False, True]))
    assert found == pytest.approx((0.08, 0.2), rel=1e-6)
