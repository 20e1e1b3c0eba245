"""Where windows come to rest between alpha and beta, because Vegas decides late."""

import math

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import simulation
from vegasmodel.engines.fluid import batch, continuous
from vegasmodel.engines.fluid.late_decisions import resting_range
from vegasmodel.scenario import Flow, Link, Run, Scenario


def alone(given, capacity, **more):
    """Vegas flows that start every 4 s, from tuples (rtt, alpha, beta)."""
    flows = [
        Flow("vegas", rtt, alpha=low, beta=high, start=4.0 * i, name=f"v{i}", **more)
        for i, (rtt, low, high) in enumerate(given)
    ]
    return Scenario((Link(capacity, buffer=400.0),), tuple(flows), run=Run(120.0, 40.0, runs=2))


def backlogs(found, scenario):
    """The mean packets that each flow keeps in the queue beyond its over-estimate of baseRTT."""
    delay = float(found.queue_mean[0]) / scenario.links[0].capacity
    over = found.base_rtt - [flow.rtt for flow in scenario.flows]
    return found.throughput * (delay - over)


def test_windows_with_one_threshold_rise_and_fall_by_two_packets_in_eight_round_trips():
    """A flow alone decides two round trips late, so its window is a triangular wave."""
    s = alone([(0.1, 6.0, 6.0)], 600.0, variant="paper").replace({"run.runs": 1})
    found = vm.simulate(s, "rounds", samples=12001)
    window = found.window.values[found.window.time.values > 60.0, 0]
    assert np.ptp(window) == pytest.approx(4.0, abs=1.0)
    ups = np.flatnonzero(np.diff((window > window.mean()).astype(int)) == 1)
    trip = 0.1 + 6.0 / 600.0
    period = (ups[-1] - ups[0]) / (ups.size - 1) * 0.01
    assert period == pytest.approx(8.0 * trip, rel=0.1)


def test_the_range_of_rest_is_narrower_by_the_waves_of_all_windows():
    """At equal RTTs k = 1 and the waves shrink by 7/8: the backlog varies by half their sum."""
    n, others = 4, 3
    lower, upper = np.full(n, 5.0), np.array([5.0, 5.0, 5.0, 15.0])
    upper[:3], lower[3] = 10.0, 5.0
    lower[:3] = 10.0  # all backlogs are 10 in the middle of their ranges
    low, high = resting_range(lower, upper, np.full(n, 0.1), 1000.0)
    room = 7.0 / 8.0 * math.sqrt(others * 2.0**2 + 1.0) / n
    np.testing.assert_allclose(low, [10.0, 10.0, 10.0, 5.0 + room])
    np.testing.assert_allclose(high, [10.0, 10.0, 10.0, 15.0 - room])
    narrow = resting_range(np.array([2.0, 3.0]), np.array([2.0, 4.0]), np.full(2, 0.1), 1000.0)
    np.testing.assert_allclose(narrow, [[2.0, 3.5], [2.0, 3.5]])


@pytest.mark.parametrize(
    ("alpha", "beta", "low", "high"),
    [
        (4.0, 9.0, 4.0 + 2.0 * 80.0 / 86.5 + 0.5, 9.0 - 80.0 / 86.5 - 0.5),
        (4.0, 6.0, 6.0 - 80.0 / 85.0 - 0.5, 6.0 - 80.0 / 85.0 - 0.5),
        (4.0, 5.0, 4.5, 4.5),
    ],
)
def test_the_range_of_rest_of_a_flow_alone(alpha, beta, low, high):
    """With 1000 packets/s the path holds 80 packets, and the middle of the range is queued."""
    found = resting_range(np.array([alpha]), np.array([beta]), np.array([0.08]), 1000.0)
    np.testing.assert_allclose(found, [[low], [high]])


def test_a_flow_alone_passes_alpha_by_what_two_round_trips_and_a_decision_add():
    """The mean over eight capacities, because the window in ``rounds`` has whole packets."""
    above = {"fluid": [], "rounds": []}
    for capacity in np.linspace(700.0, 2500.0, 8):
        s = alone([(0.08, 4.0, 9.0)], float(capacity), variant="paper", send_jitter=0.0)
        for model, found in above.items():
            found.append(float(vm.predict(s, model).queue_mean[0]) - 4.0)
    assert min(above["rounds"]) > 1.5
    np.testing.assert_allclose(above["fluid"], above["rounds"], atol=0.8)
    assert np.mean(above["fluid"]) == pytest.approx(np.mean(above["rounds"]), abs=0.2)


@pytest.mark.parametrize(
    ("given", "which", "side"),
    [
        (((0.05, 4.0, 4.0), (0.1, 4.0, 8.0)), 1, "low"),
        (((0.06, 8.0, 8.0), (0.08, 2.0, 6.0)), 1, "low"),
        (((0.06, 2.0, 2.0), (0.08, 8.0, 12.0)), 1, "low"),
        (((0.06, 1.0, 4.0), (0.08, 8.0, 8.0)), 0, "high"),
        (((0.05, 2.0, 5.0), (0.1, 5.0, 8.0)), 1, "low"),
    ],
)
def test_a_window_rests_beyond_its_threshold_by_what_rounds_gives(given, which, side):
    """The window rests above alpha if other flows push its backlog up, else below beta."""
    s = alone(given, 2000.0, variant="paper")
    flow = s.flows[which]
    fluid, rounds = (backlogs(vm.predict(s, m), s)[which] for m in ("fluid", "rounds"))
    beyond = abs(rounds - (flow.alpha if side == "low" else flow.beta))
    assert beyond > 0.4  # at once, fluid would be at the edge
    assert abs(fluid - rounds) < 0.4 * beyond


def test_rates_are_those_of_the_middle_of_a_short_range():
    """By alpha of the second flow the rates would be 801 and 534 packets/s, a quarter too far."""
    s = alone([(0.0406, 3.0, 3.0), (0.075, 2.0, 4.0)], 1335.0, variant="paper")
    fluid, rounds = vm.predict(s, "fluid"), vm.predict(s, "rounds")
    assert fluid.throughput == pytest.approx(rounds.throughput, rel=0.08)
    assert 1.2 * rounds.throughput[0] < 1335.0 * 3.0 / (3.0 + 2.0)
    [band] = [a for a in fluid.assumptions if a.name == "narrow-band"]
    assert band.holds


def test_flows_that_start_together_may_rest_anywhere_in_a_wide_range():
    """The order of their first packets, which the equations lack, decides where they rest."""
    late = alone([(0.0441, 3.0, 11.0), (0.0842, 1.0, 9.0)], 2348.0, variant="paper")
    together = late.replace({"flow.v1.start": 0.0})
    fluid, rounds = vm.predict(together, "fluid"), vm.predict(together, "rounds")
    assert np.abs(fluid.throughput - rounds.throughput).max() > 0.2 * rounds.throughput.mean()
    assert [a.name for a in fluid.assumptions if a.holds is False] == ["narrow-band"]
    [band] = [a for a in vm.predict(late, "fluid").assumptions if a.name == "narrow-band"]
    assert band.holds


def test_backlogs_that_differ_by_the_start_alone_are_told():
    """Nothing moves a window that rests, so the starts decide between 3 and 6 packets, or 8 and 16.

    In ``rounds`` the third kind gets 500 to 580 packets/s, in ``fluid`` 460.
    """
    kinds = (
        (0.096, 2.0, 3.0, 2),
        (0.024, 3.0, 6.0, 3),
        (0.031, 8.0, 16.0, 3),
        (0.117, 4.0, 8.0, 2),
    )
    flows = tuple(
        Flow("vegas", rtt, alpha=low, beta=high, count=n, name=f"v{i}", send_jitter=0.0)
        for i, (rtt, low, high, n) in enumerate(kinds)
    )
    s = Scenario((Link(2881.0, buffer=308.0),), flows, run=Run(duration=110.0, warmup=40.0))
    fluid, rounds = vm.predict(s, "fluid"), vm.predict(s, "rounds")
    assert np.abs(fluid.throughput - rounds.throughput).max() > 0.2 * rounds.throughput.mean()
    assert [a.name for a in fluid.assumptions if a.holds is False] == ["narrow-band"]


def test_late_flows_of_equal_rtts_report_that_a_packet_matters():
    """In ``rounds`` the waves of the windows let late flows find almost no queue."""
    few, many = (alone([(0.08, a, a)] * 6, 1000.0, variant="paper") for a in (2.0, 30.0))
    fluid, rounds = vm.predict(few, "fluid"), vm.predict(few, "rounds")
    assert np.abs(fluid.throughput - rounds.throughput).max() > 0.3 * rounds.throughput.mean()
    assert [a.name for a in fluid.assumptions if a.holds is False] == ["many-packets-queued"]
    assert all(a.holds for a in vm.predict(many, "fluid").assumptions if a.name[:5] == "many-")


def test_all_ways_to_simulate_a_scenario_have_the_same_late_decisions():
    s = alone([(0.04, 3.0, 3.0), (0.075, 2.0, 7.0), (0.06, 4.0, 5.0)], 1335.0, variant="paper")
    one = vm.predict(s, "fluid")
    np.testing.assert_allclose(batch.run([s]).throughput[0], one.throughput, rtol=1e-12)
    np.testing.assert_allclose(
        simulation.limit_cycle(s, "fluid").throughput, one.throughput, rtol=1e-3
    )
    plain = continuous.run(s).throughput
    assert np.abs(plain - one.throughput).max() > 0.05 * one.throughput.mean()
    np.testing.assert_allclose(batch.run([s], losers="growing").throughput[0], plain, rtol=1e-12)


def test_vegas_beside_a_loss_based_flow_keeps_its_thresholds():
    """There the overflows move the queue, far more than the windows of Vegas do."""
    s = alone([(0.04, 3.0, 3.0), (0.075, 2.0, 7.0)], 1335.0, variant="paper")
    mixed = Scenario(s.links, (*s.flows, Flow("reno", 0.05, variant="paper")), run=s.run)
    flows = continuous.flows_of(mixed, trains=True)
    np.testing.assert_array_equal(flows.lower, [3.0, 2.0, math.inf])
    np.testing.assert_array_equal(flows.upper, [3.0, 7.0, math.inf])


def test_late_flows_find_less_queue_because_the_windows_of_earlier_flows_move():
    """At equal RTTs each earlier wave of two packets has a depth of 7/16 in a quarter period."""
    given = [(0.06, 6.0, 6.0), (0.06, 6.0, 6.0), (0.06, 6.0, 6.0), (0.06, 3.0, 8.0)]
    s = alone(given, 1000.0, variant="paper")
    less = 1000.0 * continuous.flows_of(s, trains=True).less_found
    np.testing.assert_allclose(less, 2.0 * 7.0 / 16.0 * np.sqrt([0.0, 1.0, 2.0, 3.0]))
    wide = alone([(0.06, 3.0, 8.0), (0.06, 6.0, 6.0)], 1000.0, variant="paper")
    np.testing.assert_array_equal(continuous.flows_of(wide, trains=True).less_found, 0.0)
    assert not continuous.flows_of(s).less_found.any()
    swapped = continuous.flows_of(s, trains=True, starts=np.array([12.0, 8.0, 4.0, 0.0]))
    np.testing.assert_allclose(
        1000.0 * swapped.less_found, 2.0 * 7.0 / 16.0 * np.sqrt([2.0, 1.0, 0.0, 0.0])
    )


def test_arrivals_of_equal_flows_are_nearer_to_rounds_than_by_the_mean_queue():
    s = alone([(0.06, 3.0, 3.0)] * 4, 1000.0, variant="paper")
    fluid, rounds = vm.predict(s, "fluid"), vm.predict(s, "rounds")
    mean = continuous.run(s)
    near = np.abs(fluid.base_rtt - rounds.base_rtt).sum()
    assert near < 0.7 * np.abs(mean.base_rtt - rounds.base_rtt).sum()


def test_a_window_at_its_limit_does_not_move_the_queue_that_late_flows_find():
    """65 packets on a link that holds 60: the queue is constant at 5 packets, half of alpha."""
    s = alone([(0.06, 10.0, 10.0), (0.06, 3.0, 3.0)], 1000.0, variant="paper")
    limited = s.replace({"flow.v0.max_window": 65.0, "flow.v1.start": 8.0})
    assert continuous.flows_of(s, trains=True).less_found[1] > 0.0
    np.testing.assert_array_equal(continuous.flows_of(limited, trains=True).less_found, 0.0)
    fluid, rounds = vm.predict(limited, "fluid"), vm.predict(limited, "rounds")
    np.testing.assert_allclose(fluid.base_rtt[1], rounds.base_rtt[1], atol=0.1e-3)
