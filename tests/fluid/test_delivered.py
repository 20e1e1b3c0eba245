"""The packets that ``fluid`` says were delivered by a given time are those that it counts."""

import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.scenes import reno, scenario, vegas
from vegasmodel.engines.fluid.run import run as by_fluid
from vegasmodel.scenario import Flow, Red
from vegasmodel.testing import invariants

RED = Red(5.0, 15.0, 0.1)


def ns2(law, rtt=0.1, **more):
    return Flow(law=law, rtt=rtt, variant="ns2", **more)


CASES = {
    "windows come to rest": scenario(
        [vegas(), vegas(name="b")], buffer=math.inf, duration=60.0, warmup=20.0
    ),
    "cycles are left out": scenario([vegas(), reno(0.13)]),
    "a flow comes and goes": scenario([vegas(), reno(0.13, start=20.0, stop=130.0)], warmup=50.0),
    "ns-2": scenario([ns2("vegas"), ns2("reno")], duration=60.0, warmup=20.0),
    "ns-2, CUBIC": scenario([ns2("cubic", count=2)], buffer=30.0, duration=100.0, warmup=20.0),
    "random loss": scenario([ns2("vegas")], 20000.0, math.inf, 300.0, 20.0, loss=0.03),
    "RED": scenario([ns2("vegas"), ns2("reno")], duration=60.0, warmup=20.0, queue=RED),
    "a loss while the window drains": scenario(
        [ns2("newreno", count=5)], 100.0, 20.0, 40.0, 10.0, loss=0.1
    ),
    "delayed ACKs, a timer runs": scenario(
        [ns2("vegas", delayed_ack=True), ns2("reno", delayed_ack=True)],
        200.0,
        20.0,
        60.0,
        20.0,
        loss=0.05,
    ),
    "delayed ACKs, all packets in flight are lost": scenario(
        [ns2("reno", count=6, delayed_ack=True)], 1000.0, math.inf, 40.0, 10.0, loss=0.1
    ),
    "RED, papers": scenario([vegas(), reno()], duration=60.0, warmup=20.0, queue=RED),
    "ns-2, a flow comes and goes": scenario(
        [ns2("vegas"), ns2("reno", start=10.0, stop=30.0)], duration=60.0, warmup=20.0
    ),
}
CASES = {name: case.replace({"run.runs": 1}) for name, case in CASES.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_delivered_is_what_the_link_has_carried(case):
    few, many = (vm.simulate(case, "fluid", samples=n) for n in (13, 1201))
    delivered, time = many.delivered.values, many.time.values
    np.testing.assert_allclose(few.delivered, delivered[::100], rtol=1e-9, atol=1e-9)
    total, c = delivered.sum(axis=1), case.links[0].capacity
    assert np.all(delivered[0] == 0.0)
    assert np.diff(delivered, axis=0).min() >= -1e-9
    assert np.diff(total).max() <= c * time[1] * (1.0 + 1e-9)
    # the throughput of a flow is its mean over the time for which it is active
    run, flows = case.run, case.members
    active = [min(m.stop, run.duration) - max(m.start, run.warmup) for m in flows]
    measured = delivered[-1] - delivered[np.searchsorted(time, run.warmup - 1e-9)]
    found = vm.predict(case, "fluid")
    np.testing.assert_allclose(measured / active, found.throughput, rtol=1e-6)
    np.testing.assert_allclose(found.delivered, measured, rtol=1e-6)
    span = run.duration - run.warmup
    bits = 8.0 * case.packet_size * measured / span
    np.testing.assert_allclose(found.delivered_bps, bits, rtol=1e-6)


def test_a_detected_loss_does_not_let_the_link_send_more_than_its_capacity():
    """A loss makes the receiver acknowledge the packet that it holds back, so one more moves."""
    flows = [ns2("reno"), ns2("newreno", delayed_ack=True), ns2("cubic", delayed_ack=True)]
    case = scenario(flows, buffer=30.0, duration=60.0, warmup=20.0).replace({"run.runs": 1})
    data = vm.simulate(case, "fluid", samples=20001)
    total, c = data.delivered.values.sum(axis=1), case.links[0].capacity
    assert data.lost.values[-1, 1:].min() > 10.0
    assert np.diff(total).max() <= c * data.time.values[1] * (1.0 + 1e-9)


def test_packets_that_are_lost_or_wait_at_a_receiver_do_not_lengthen_the_mean_rtt():
    """A full queue adds 64 ms to the RTT of 40 ms. The mean was 137 ms for Vegas."""
    flows = [
        ns2("vegas", rtt=0.04, count=3, delayed_ack=True),
        ns2("cubic", rtt=0.04, count=2, delayed_ack=True),
    ]
    case = scenario(flows, 625.0, 40.0, 60.0, 6.0)
    found = vm.predict(case.replace({"run.runs": 4}), "fluid")
    assert 0.09 < found.rtt_mean.min() < found.rtt_mean.max() < 0.104


def test_delivered_is_a_mean_over_runs():
    case = scenario([vegas(), reno(0.13)], duration=60.0, warmup=20.0)
    found = vm.predict(case.replace({"run.runs": 3, "run.start_jitter": "5 s"}), "fluid")
    assert np.ptp(found.extra["throughput_runs"], axis=0).max() > 0.0
    np.testing.assert_allclose(found.delivered, 40.0 * found.throughput, rtol=1e-9)


def test_a_link_whose_queue_is_never_empty_delivers_its_capacity():
    case = scenario([vegas(), reno(0.13)], buffer=300.0)
    data = vm.simulate(case, "fluid", samples=1201)
    total, queue = data.delivered.values.sum(axis=1), data.queue.values[:, 0]
    busy = (queue[1:] > 1.0) & (queue[:-1] > 1.0)
    assert busy.sum() > 1000
    carried = np.diff(total)[busy]
    np.testing.assert_allclose(carried, case.links[0].capacity * data.time.values[1], rtol=1e-9)


def test_no_mean_rtt_is_below_the_rtt_with_empty_queues():
    """The link idles for 80 % of the time, so even an error of 0.1 % is more than the queue."""
    flows = [ns2("sack", 0.384, name="late", start=3.8), ns2("sack", 0.3945, count=2)]
    case = scenario(flows, 2400.0, 26.0, 60.0, 20.0).replace({"run.runs": 1})
    found = vm.predict(case, "fluid")
    assert found.utilization[0] < 0.2
    invariants.check(found)


def test_the_loss_rate_is_of_the_packets_sent():
    """Each tenth packet is lost; the counts are those of the trajectories after the warm-up."""
    case = scenario([ns2("reno"), ns2("sack")], duration=60.0, warmup=20.0)
    case = case.replace({"link.loss": 0.1, "run.runs": 1})
    found = by_fluid(case, 1.0)
    lost = found.lost[60] - found.lost[20]
    delivered = found.delivered_so_far[60] - found.delivered_so_far[20]
    np.testing.assert_allclose(found.loss_rate, lost / (lost + delivered), rtol=1e-6)
    assert lost.min() > 20.0


def test_a_wait_before_sending_is_no_part_of_the_rtt():
    """Vegas alone keeps 3 packets queued, so its RTT is that of the path and of the queue."""
    case = scenario([ns2("vegas", rtt=0.1, alpha=3.0, beta=3.0, send_jitter=0.02)], 500.0, 60.0)
    found = vm.predict(case.replace({"run.runs": 1}), "fluid")
    assert found.rtt_mean == pytest.approx(0.1 + found.queue_mean / 500.0, rel=1e-3)
    assert found.base_rtt == pytest.approx([0.1], abs=2e-3)
