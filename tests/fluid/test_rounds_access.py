"""Slow access links in the simulator ``rounds``: queues at the sender and at the receiver."""

import dataclasses

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import as_measured, exact
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.route import routes
from vegasmodel.engines.rounds.run import run
from vegasmodel.scenario import Flow, Link, Run, Scenario

LAWS = ("vegas", "reno", "newreno", "sack", "cubic")
SPAN = Run(duration=60.0, warmup=20.0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("access", [40.0, 260.0, 900.0])
def test_no_flow_gets_more_than_its_access_link_carries(law: str, access: float) -> None:
    """Alone, a flow whose window is not limited gets all of its access link."""
    slow, other = (
        Flow(one, 0.09, variant="ns2", access=rate, name=name)
        for one, rate, name in ((law, access, "slow"), ("reno", None, "other"))
    )
    link = Link(1000.0, buffer=40.0)
    alone = answer(Scenario((link,), (slow,), run=SPAN), runs=1)
    assert alone.throughput == pytest.approx(access, rel=0.002)
    beside = answer(Scenario((link,), (slow, other), run=SPAN), runs=1)
    assert beside.throughput[0] < access * 1.002


@pytest.mark.parametrize("variant", ["ns2", "linux"])
@pytest.mark.parametrize(
    ("window", "rate"), [(12.0, 120.0), (30.0, 300.0), (50.0, 300.0), (99.0, 300.0)]
)
def test_the_window_that_the_path_does_not_hold_waits_at_the_access_link(
    variant: str, window: float, rate: float
) -> None:
    """The rate is the smaller of W/T and the access link's, and the RTT is W over it (Little)."""
    flow = exact("reno", 0.1, variant=variant, access=300.0, max_window=window)
    found = answer(Scenario((Link(1000.0, buffer=40.0),), (flow,), run=Run(40.0, 20.0)))
    assert found.throughput == pytest.approx(rate, rel=1e-3)
    assert found.rtt_mean == pytest.approx(window / rate, rel=0.03)  # headers of Linux: 2.6 %
    assert found.queue_mean == pytest.approx(0.0, abs=1e-6)


def test_packets_of_a_burst_follow_one_another_over_the_access_link() -> None:
    """Packet k of the first 8 has an RTT of T + k/100 s; over a fast link it would be k/1000 s."""
    flow = exact("reno", 0.2, variant="ns2", access=100.0, initial_window=8, size=8)
    out = run(Scenario((Link(1000.0, buffer=40.0),), (flow,), run=Run(duration=5.0, warmup=0.0)))
    took = out.flows["rtt_total"] / out.flows["rtt_packets"]
    assert took == pytest.approx(0.2 + 3.5 / 100.0, abs=1e-9)
    assert out.flows["finished"] == pytest.approx(0.2 + 7.0 / 100.0, abs=1e-9)


def test_what_is_sent_during_a_burst_waits_behind_the_burst() -> None:
    """A burst of 30 packets takes 0.3 s; the ACK of its first packet comes after 0.05 s.

    The RTTs are 0.05, 0.06, ... 0.34 s, and then 0.3 s: 30 packets are served in a round trip.
    """
    flow = exact("reno", 0.05, variant="ns2", access=100.0, initial_window=30, max_window=30)
    out = run(Scenario((Link(1000.0, buffer=40.0),), (flow,), run=Run(duration=1.0, warmup=0.0)))
    rtts = [0.05 + 0.01 * k for k in range(30)] + [0.3] * 66
    assert out.flows["delivered"] == pytest.approx(len(rtts), abs=1.0)
    assert out.flows["rtt_total"] == pytest.approx(sum(rtts), abs=0.3)


def test_the_short_flows_of_a_table_share_an_access_link() -> None:
    """30 flows/s of 8 packets each come, and the access link carries 100 packets/s.

    Over an access link of its own each flow would get through. Timeouts make some packets cross the
    link twice.
    """
    web = exact("reno", 0.2, variant="ns2", access=100.0, size=8, arrivals=vm.Poisson(30.0))
    found = answer(Scenario((Link(5000.0, buffer=500.0),), (web,), run=SPAN), runs=1)
    assert 60.0 < found.throughput[0] < 101.0


def test_flows_of_a_table_have_access_links_of_their_own() -> None:
    flow = Flow("reno", 0.08, variant="ns2", count=3, access=150.0)
    found = answer(Scenario((Link(1000.0, buffer=30.0),), (flow,), run=SPAN), runs=1)
    assert found.throughput == pytest.approx([150.0] * 3, rel=0.002)


@pytest.mark.parametrize("access", [200.0, 420.0, 700.0])
def test_an_access_link_is_like_a_link_that_no_other_flow_crosses(access: float) -> None:
    """Links without a limit, with the capacity and the delay of the access links, do the same."""
    middle, wait = Link(500.0, buffer=20.0, name="middle"), 2e-3
    slow = Flow("reno", 0.09, variant="ns2", access=access, send_jitter=wait)
    fast = Flow("vegas", 0.13, variant="ns2", access=1e9, send_jitter=wait, path=("middle",))
    one = Scenario((middle,), (slow, fast), run=Run(duration=80.0, warmup=20.0))
    leg = (slow.rtt - one.transmission(slow)) / 4.0
    first, last = (Link(access, delay=leg, name=name) for name in ("first", "last"))
    plain = dataclasses.replace(slow, access=1e9, rtt=slow.rtt + 1e-8)
    other = Scenario((first, middle, last), (plain, fast), run=one.run)
    found = [answer(each, runs=40) for each in (one, other)]
    error = np.hypot(*(each.throughput_se for each in found))
    assert np.all(np.abs(found[0].throughput - found[1].throughput) < 3.0 * error + 0.2)
    assert np.all(error < 5.0)


def test_the_order_of_flows_does_not_matter() -> None:
    flows = [
        exact(law, 0.06 + 0.02 * i, variant="ns2", access=access, name=law)
        for i, (law, access) in enumerate([("reno", 150.0), ("vegas", 420.0), ("cubic", None)])
    ]
    found = [
        answer(Scenario((Link(600.0, buffer=25.0),), tuple(flows[i] for i in order), run=SPAN))
        for order in ((0, 1, 2), (2, 0, 1))
    ]
    assert found[0].throughput == pytest.approx(found[1].throughput[[1, 2, 0]], rel=1e-12)


@pytest.mark.parametrize(
    ("times", "jitter", "queues"),
    [(9.9, None, 3), (10.1, None, 1), (1.9, 0.0, 3), (2.1, 0.0, 1), (0.5, 0.0, 3)],
)
def test_access_links_that_are_much_faster_than_the_bottleneck_have_no_queue(
    times: float, jitter: float | None, queues: int
) -> None:
    flow = Flow("reno", 0.1, variant="ns2", access=times * 500.0, send_jitter=jitter)
    scenario = Scenario((Link(500.0, buffer=20.0),), (flow,), run=SPAN)
    assert len(routes(scenario, list(scenario.members), 0.01).keys) == queues


def test_a_window_may_grow_without_limit_in_the_queue_of_an_access_link() -> None:
    """After 600 s in slow start its 180,000 packets were too many for the simulator's memory."""
    flow = exact("reno", 0.05, variant="ns2", access=300.0)
    found = answer(Scenario((Link(1000.0, buffer=50.0),), (flow,), run=Run(600.0, 200.0)))
    assert found.throughput == pytest.approx(300.0, rel=1e-3)


@pytest.mark.parametrize("access", [None, 60.0])
def test_a_syn_is_lost_at_the_full_bottleneck_behind_a_slow_access_link(
    access: float | None,
) -> None:
    """Of the other flow's 21 packets 19 wait and one is in transmission; the buffer is for 20."""
    full = exact("reno", 0.0205, variant="ns2", max_window=21.0, access=1e6)
    late = exact("reno", 0.3, variant="ns2", start=20.0, access=access, name="late", size=5)
    link, span = Link(100.0, buffer=20.0), Run(duration=22.0, warmup=0.0, ns2_defaults="2.35")
    out = run(Scenario((link,), (full, late), run=span))
    assert out.flows["sent"][1] == 0.0
    alone = run(Scenario((link,), (late,), run=span))
    assert alone.flows["sent"][0] == 5.0


@pytest.mark.parametrize(
    ("capacity", "buffer", "flows", "rates", "errors"),
    [
        (
            327.0,
            59.0,
            [("newreno", 0.0679, 98.6), ("sack", 0.0654, 135.7), ("reno", 0.0796, 157.1)],
            (94.53, 124.39, 103.83),
            (0.23, 0.76, 1.03),
        ),
        (
            243.0,
            20.0,
            [("reno", 0.0792, 216.7), ("cubic", 0.0792, None)],
            (118.22, 123.31),
            (1.8,) * 2,
        ),
        (
            1028.0,
            41.0,
            [("cubic", 0.0468, 648.9), ("sack", 0.0348, None)],
            (553.72, 474.0),
            (6.3, 6.3),
        ),
    ],
)
def test_as_in_ns2(
    capacity: float,
    buffer: float,
    flows: list[tuple[str, float, float | None]],
    rates: tuple[float, ...],
    errors: tuple[float, ...],
) -> None:
    """ns-2's means of 40 runs of 90 s with the default waits, and their standard errors."""
    made = tuple(
        Flow(law, rtt, variant="ns2", access=access, name=law) for law, rtt, access in flows
    )
    span = Run(duration=90.0, warmup=30.0, runs=40, start_jitter=0.5)
    found = answer(Scenario((Link(capacity, buffer=buffer),), made, run=span))
    assert as_measured(found, rates, errors)
    spread = np.hypot(np.array(errors), np.asarray(found.throughput_se))
    assert np.all(spread < 0.03 * np.array(rates))
