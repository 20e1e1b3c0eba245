"""Vegas's slow start in the simulator ``fluid``, for windows that change at every instant."""

import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.scenes import scenario, steady_state, vegas
from vegasmodel import simulation
from vegasmodel.engines.fluid import batch, continuous, slow_start
from vegasmodel.scenario import Flow, Link, Run, Scenario, Staggered


def late(rtts, alphas, capacity, every=4.0, duration=120.0):
    """Vegas flows that start one after another, every 4 s."""
    flows = [
        Flow("vegas", rtt, alpha=a, beta=a, variant="paper", start=every * i, name=f"v{i}")
        for i, (rtt, a) in enumerate(zip(rtts, alphas, strict=True))
    ]
    run = Run(duration=duration, warmup=duration / 3, runs=2)
    return Scenario((Link(capacity, buffer=400.0),), tuple(flows), run=run)


@pytest.mark.parametrize(("capacity", "rtt", "left"), [(3000.0, 0.06, 56.0), (900.0, 0.05, 28.0)])
def test_slow_start_ends_by_the_queue_of_its_own_bursts(capacity, rtt, left):
    """A mean packet waits for a quarter of the window W: a backlog of W (W/4)/(B + W/4) packets.

    With B = 180 packets this is 1.4 for W = 32 and 5.2 for W = 64, rounded to 1 and 5, and gamma is
    1. With B = 45 it is 1.2 for W = 16 and 4.8 for W = 32. 7/8 of the window are left.
    """
    s = scenario([vegas(rtt=rtt)], capacity, math.inf, duration=4.0, warmup=1.0)
    found = continuous.run(s, 0.001, trains=True)
    falls = np.flatnonzero(np.diff(found.window[:, 0]) < -1.0)
    assert falls.size == 1
    assert found.window[falls[0] + 1, 0] == pytest.approx(left, abs=0.1)
    trips = (found.time[falls[0] + 1 :] - found.time[falls[0]]) / rtt  # then one packet in each
    grown = found.window[falls[0] + 1 :, 0] - left
    there = found.window[falls[0] + 1 :, 0] < capacity * rtt
    assert grown[there] == pytest.approx(trips[there], abs=0.1)
    rounds = vm.simulate(s.replace({"run.runs": 1}), "rounds", samples=4001)
    windows = rounds.window.values[:, 0]
    fall = int(np.argmin(np.diff(windows)))
    assert windows[fall + 1] == pytest.approx(left, abs=1.0)


@pytest.mark.parametrize("other", [0.03, 0.08, 0.1, 0.17, 0.26])
def test_the_queue_before_a_train_lacks_the_gaps_that_have_come_back(other):
    """Trains of 10 packets arrive every 100 ms. Each lengthens the queue until its gap comes back.

    The other flow alone fills the link, so that its gap is as long as the train.
    """
    c, W, trip = 1000.0, 10.0, 0.1
    p = continuous.flows_of(scenario([vegas(rtt=trip, name="a"), vegas(rtt=other, name="b")], c))
    trains = -trip * np.arange(1, 5000)  # before time 0, when the next one arrives
    length = slow_start.TRAIN_LENGTH * W / c
    came = np.clip(-(trains + other) / length, 0.0, 1.0)  # part of each gap that came before 0
    now = W * (1.0 - came).sum()
    mean = W * other / trip  # a train lengthens the queue for one RTT of the other flow
    windows = np.array([0.0, c * other])
    s = 50.0 / c  # the mean queue is long enough
    p = p._replace(rtt=p.rtt - s)
    found = slow_start.shortest(p, np.array([True, True]), 0, W, windows, s, c)
    assert c * (s - found) == pytest.approx(max(mean - now, 0.0), abs=1e-9)


def test_trains_of_equal_rtts_leave_the_queue_as_it_is():
    """``boutremans`` 3.1.2: each flow measures the delay of the steady state of those before it.

    The windows of the i flows before it vary by two packets, and so does the queue with each. In
    a quarter of a period the least value of one wave is 7/16 of this amplitude below the mean.
    """
    n, alpha, c = 5, 2.0, 400.0
    flows = [vegas(alpha, rtt=0.06, count=n, start=Staggered(0.0, 60.0))]
    answer = continuous.run(scenario(flows, c, math.inf), trains=True)
    expected = [0.0]
    for i in range(1, n):
        x = np.array(expected)
        mean = alpha / steady_state([alpha] * i, x, c)[0] + x[0]
        expected.append(max(mean - 2.0 * 7.0 / 16.0 * math.sqrt(i) / c, 0.0))
    np.testing.assert_allclose(answer.base_rtt - 0.06, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("rtts", "alphas", "capacity", "packets"),
    [
        # the first flow has not filled the link when the second one starts
        ((0.0605, 0.1004), (8.0, 5.0), 2985.0, 0.5),
        # the second flow's trains make the queue vary
        ((0.0389, 0.0967), (6.0, 6.0), 691.6, 1.5),
    ],
)
def test_a_late_flow_knows_a_shorter_queue_than_the_mean(rtts, alphas, capacity, packets):
    """By the mean queue the second flow over-estimates its RTT by 8 and by 6 packets."""
    s = late(rtts, alphas, capacity)
    fluid, rounds, mean = vm.predict(s, "fluid"), vm.predict(s, "rounds"), continuous.run(s)
    assert fluid.throughput == pytest.approx(rounds.throughput, rel=0.05)
    assert capacity * (fluid.base_rtt - rounds.base_rtt) == pytest.approx(0.0, abs=packets)
    assert capacity * (mean.base_rtt - rtts)[1] == pytest.approx(alphas[0], abs=0.01)


def test_a_queue_in_which_one_packet_matters_is_told():
    """By ``rounds`` the three flows get 399, 872 and 853 packets/s; the last finds no packets.

    With ten times the thresholds the third flow finds 10 packets too many, which matter less.
    """
    rtts, said = (0.125, 0.063, 0.049), "many-packets-queued"
    few, many = (late(rtts, [k, 2.0 * k, 2.0 * k], 2130.0) for k in (1.0, 10.0))
    fluid, rounds = vm.predict(few, "fluid"), vm.predict(few, "rounds")
    assert np.abs(fluid.throughput - rounds.throughput).max() > 0.1 * rounds.throughput.mean()
    assert [a.name for a in fluid.assumptions if a.holds is False] == [said]
    assert all(a.holds for a in vm.predict(many, "fluid").assumptions if a.name == said)


def test_all_ways_to_simulate_a_scenario_have_the_same_slow_start():
    """One by one, as a batch, and as a steady state; with JAX to the error of its steps."""
    s = late((0.04, 0.1, 0.07), (6.0, 5.0, 4.0), 900.0)
    alone = vm.predict(s, "fluid")
    some = batch.run([s])
    np.testing.assert_allclose(some.throughput[0], alone.throughput, rtol=1e-12)
    np.testing.assert_allclose(some.base_rtt[0], alone.base_rtt, rtol=1e-12)
    cycle = simulation.limit_cycle(s, "fluid")
    np.testing.assert_allclose(cycle.base_rtt, alone.base_rtt, rtol=1e-9)
    np.testing.assert_allclose(cycle.throughput, alone.throughput, rtol=1e-3)
    plain = continuous.run(s).base_rtt
    assert not np.allclose(plain, alone.base_rtt, rtol=1e-4)
    np.testing.assert_allclose(batch.run([s], losers="growing").base_rtt[0], plain, rtol=1e-12)


def shared() -> list[Scenario]:
    """Three scenarios of three flows: the shape of arrays for which both tests of JAX compile."""
    return [late((0.04, 0.1, 0.07), (6.0, 5.0, 4.0), c) for c in (700.0, 900.0, 2500.0)]


def test_jax_has_the_same_slow_start():
    pytest.importorskip("jax")
    cases = shared()
    ours, theirs = batch.run(cases, step=0.1), batch.run(cases, engine="jax", step=0.1)
    np.testing.assert_allclose(theirs.base_rtt, ours.base_rtt, atol=0.1 / 900.0)
    np.testing.assert_allclose(theirs.throughput, ours.throughput, rtol=0.01)


def test_jax_ends_slow_start_at_a_doubling_that_meets_the_greatest_window():
    pytest.importorskip("jax")
    cases = []
    for most in (64.0, 65.0, 100.0):
        flow = Flow("vegas", 0.06, alpha=2, beta=2, variant="paper", max_window=most)
        cases.append(Scenario((Link(3000.0, buffer=400.0),), (flow,), run=Run(20.0, 5.0)))
    ours = batch.run(cases, step=0.1)
    theirs = batch.run([*cases, *shared()], engine="jax", step=0.1, chunk=3)
    np.testing.assert_allclose(theirs.throughput[:3, :1], ours.throughput, rtol=2e-3)
