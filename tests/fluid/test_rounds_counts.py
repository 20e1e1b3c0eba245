"""The simulator ``rounds`` counts the packets whose ACKs arrive in the measured time, no others.

It moves several packets by one event. So a boundary of the measured time, such as the end of the
warm-up, may fall between the packets of one event.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import exact
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import LOST
from vegasmodel.packets import ns2
from vegasmodel.scenario import Link, Run, Scenario
from vegasmodel.testing import invariants, strategies

ROOMY = ("paper", "ns2")  # in a long queue of Linux each packet takes up memory of its own
RTTS = st.floats(0.12, 0.4)


def endless(drawn: Scenario, rtt: float, warmup: float) -> Scenario:
    """The scenario with one RTT for all flows, and an infinite buffer.

    The queue and the RTTs then grow, and with them the number of packets that one event moves.
    """
    rtts = {f"flow.{group.name}.rtt": rtt for group in drawn.flows}
    return drawn.replace({**rtts, "link.buffer": math.inf, "run.warmup": warmup, "run.runs": 1})


@settings(deadline=None, max_examples=40, derandomize=True)
@given(strategies.scenarios(variants=ROOMY, max_groups=2), RTTS, st.floats(20.0, 40.0))
def test_no_more_packets_are_counted_than_the_link_can_send(
    drawn: Scenario, rtt: float, warmup: float
) -> None:
    """With equal RTTs, ACKs return at the pace of the link, so in T there are ``c T`` of them.

    One packet more for each flow may count, because T may begin and end in the midst of packets.
    """
    scenario = endless(drawn, rtt, warmup)
    most = (len(scenario.members) + 1.0) / (60.0 - warmup)
    found = answer(scenario)
    assert found.throughput.sum() <= scenario.links[0].capacity + most
    invariants.check(found)


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_a_flow_that_is_shorter_than_its_first_window_sends_each_packet_once(variant) -> None:
    """Its first window has room for 8 packets, and it has 5."""
    flow = exact("reno", 0.1, variant=variant, initial_window=8, size=5)
    flows = run(Scenario((Link(100.0, buffer=50.0),), (flow,), run=Run(5.0, 1.0))).flows
    assert [flows[name][0] for name in ("delivered", "high", "lost")] == [5.0, 5.0, 0.0]


@settings(deadline=None, max_examples=20, derandomize=True)
@given(strategies.scenarios(variants=ROOMY, max_groups=1), RTTS)
def test_a_flow_delivers_at_most_what_the_link_can_send(drawn: Scenario, rtt: float) -> None:
    """From each sample to the next, and two packets more, because samples fall within packets."""
    scenario = endless(drawn, rtt, 20.0).replace({f"flow.{drawn.flows[0].name}.count": 1})
    out = run(scenario, samples=601)
    more = np.diff(out.delivered[:, 0])
    assert more.min() >= 0.0
    assert more.max() <= scenario.links[0].capacity * out.times[1] + 2.0


def fast(law: str, count: int) -> Scenario:
    """1 or 2 flows whose queue at a link of 5834 pkt/s grows for as long as they send."""
    flow = exact(law, 0.036, count=count, variant="ns2")
    return Scenario((Link(5834.19),), (flow,), run=Run(duration=60.0, warmup=20.0))


@pytest.mark.parametrize("law", ["reno", "cubic"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_flow_with_a_long_queue_gets_the_capacity(law: str, count: int) -> None:
    """The queue is never empty, so in 40 s the link sends ``40 c`` packets, give or take one."""
    found = answer(fast(law, count)).throughput
    assert found.sum() == pytest.approx(5834.19, abs=(count + 1.0) / 40.0)


def stopping(stop: float, warmup: float) -> Scenario:
    """Reno stops before the run ends, while a long queue of its packets waits."""
    flows = (exact("reno", 0.1, variant="ns2", stop=stop), exact("vegas", 0.1, variant="ns2"))
    return Scenario((Link(500.0),), flows, run=Run(duration=60.0, warmup=warmup))


def test_packets_acknowledged_after_a_flow_has_stopped_do_not_count() -> None:
    """The throughput is a mean over the time in which the flow is active."""
    scenario = stopping(30.0, 20.0)
    found = answer(scenario)
    # Vegas has measured a baseRTT without queue, so it sends next to nothing beside Reno
    assert found.throughput[0] == pytest.approx(500.0, rel=0.01)
    assert found.throughput[0] <= 500.0 + 2.0 / 10.0
    assert found.delivered[0] == pytest.approx(10.0 * found.throughput[0])
    # the packets that Reno had in flight are acknowledged in the 30 s after its stop
    assert run(scenario).flows["delivered"][0] > found.delivered[0] + 1000.0


def test_a_flow_that_stops_in_the_warm_up_has_no_packets() -> None:
    found = answer(stopping(20.0, 25.0))
    assert math.isnan(found.throughput[0])
    assert found.delivered[0] == found.acks[0] == 0.0


@pytest.mark.ns2
def test_a_flow_that_stops_has_the_throughput_of_ns2() -> None:
    scenario = stopping(30.0, 20.0)
    ours, theirs = answer(scenario), ns2.run(scenario)
    np.testing.assert_allclose(ours.throughput, theirs.throughput, atol=0.2)
    assert ours.rtt_mean[0] == pytest.approx(theirs.rtt_mean[0], rel=2e-3)


@pytest.mark.ns2
@pytest.mark.parametrize(
    ("law", "rtt", "more", "run_"),
    [
        ("reno", 0.4, {"max_window": 50.0}, Run(29.93, 0.0)),  # bursts, and pauses between them
        ("reno", 0.4, {"max_window": 50.0}, Run(duration=30.03, warmup=10.01)),
        ("reno", 0.4, {"max_window": 50.0, "stop": 25.07}, Run(duration=30.0, warmup=10.01)),
        ("reno", 0.4, {"max_window": 50.0, "stop": 29.93}, Run(30.0, 10.01)),  # just before the end
        ("reno", 0.4, {}, Run(30.0, 29.95)),  # less than a packet takes to the queue
        ("vegas", 0.25, {}, Run(duration=12.0, warmup=0.0)),
        ("newreno", 0.25, {"size": 700.0}, Run(duration=30.0, warmup=1.0)),
        ("reno", 0.25, {"stop": 7.5}, Run(12.0, 3.0)),  # the queue grows until the flow stops
        ("cubic", 0.1, {"count": 2}, Run(duration=20.0, warmup=5.0)),
    ],
)
def test_as_many_packets_are_counted_as_in_ns2(
    law: str, rtt: float, more: dict[str, float], run_: Run
) -> None:
    """Packets count when their ACKs reach the sender, not later when these release new ones.

    It takes another quarter of an RTT until a new packet reaches the queue.
    """
    flow = exact(law, rtt, variant="ns2", **more)
    scenario = Scenario((Link(397.3),), (flow,), run=run_)
    ours, theirs = answer(scenario), ns2.run(scenario, processes=1)
    np.testing.assert_allclose(ours.acks, theirs.acks, atol=1e-6)
    np.testing.assert_allclose(ours.throughput, theirs.throughput, rtol=1e-6)


@pytest.mark.ns2
@pytest.mark.parametrize("law", ["sack", "tahoe"])
def test_a_packet_that_arrives_twice_is_acknowledged_once(law: str) -> None:
    """In slow start SACK and Tahoe lose many packets, and some arrive again after a timeout."""
    link, flow = Link(397.3, buffer=30.0), exact(law, 0.25, variant="ns2")
    scenario = Scenario((link,), (flow,), run=Run(duration=30.0, warmup=0.0))
    ours, theirs = answer(scenario), ns2.run(scenario, processes=1)
    np.testing.assert_array_equal(ours.retransmits, theirs.retransmits)
    np.testing.assert_allclose(ours.acks, theirs.acks, atol=1e-6)
    np.testing.assert_allclose(ours.delivered, theirs.acks, atol=1e-6)


@pytest.mark.ns2
def test_packets_sent_in_the_warm_up_and_lost_after_it_make_no_loss_rate_above_one() -> None:
    """They wait at the first link. Another flow fills the second link's buffer meanwhile."""
    first = {"initial_window": 60.0, "max_window": 60.0, "stop": 0.8}
    flows = (
        exact("tahoe", 0.2, name="late", variant="ns2", **first),
        exact("reno", 0.1, variant="ns2", start=0.05, initial_window=300.0, path=("second",)),
    )
    links = (Link(100.0, "first"), Link(90.0, "second", buffer=5.0))
    scenario = Scenario(links, flows, run=Run(duration=4.0, warmup=0.3, runs=1))
    late = run(scenario).flows[0]
    assert late["last_lost"] - late["mark_lost"] > late["last_sent"] - late["mark_sent"] > 0.0
    for found in (answer(scenario), ns2.run(scenario, processes=1)):
        invariants.check(found)
        assert found.loss_rate[0] == 1.0


def test_the_last_sample_has_what_happens_at_the_end_of_the_run() -> None:
    """A packet is lost at the instant at which the run ends, 20 s (found by Hypothesis)."""
    link = Link(669.25, buffer=12.0, delay=0.001, loss=0.01)
    both = [
        exact("vegas", rtt, name=name, start=start, alpha=1.0, beta=1.0, variant="linux")
        for name, rtt, start in (("first", 0.1015625, 0.34375), ("second", 0.125, 0.5))
    ]
    flows = tuple(dataclasses.replace(flow, access=400.0) for flow in both)
    out = run(Scenario((link,), flows, run=Run(duration=20.0, warmup=5.0)), parts=1, samples=101)
    np.testing.assert_array_equal(out.per_flow[-1, :, LOST], out.flows["lost"])
