"""``rounds`` with paths over several queues: invariants, and cases with a known answer."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import as_measured, exact
from vegasmodel.engines.rounds import batch
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import run
from vegasmodel.equilibrium import rate_delay
from vegasmodel.predictor import predict
from vegasmodel.scenario import (
    DropTail,
    Flow,
    Link,
    Pareto,
    ParetoArrivals,
    Poisson,
    RateDelay,
    Red,
    Run,
    Scenario,
)
from vegasmodel.scenario.placement import links_where_acks_wait

LAWS = ("vegas", "reno", "newreno", "sack", "tahoe")
QUEUES = (
    DropTail(),
    Red(5.0, 15.0),
    Red(5.0, 15.0, ecn=True),
    RateDelay(delay_buffer=0.3),
    RateDelay(k=2.0, delay_buffer=0.5),
)


@st.composite
def networks(draw: st.DrawFn) -> Scenario:
    links = tuple(
        Link(
            draw(st.floats(50.0, 2000.0)),
            name=f"l{i}",
            buffer=float(draw(st.sampled_from((8, 20, 40, math.inf)))),
            queue=draw(st.sampled_from(QUEUES)),
            loss=draw(st.sampled_from((0.0, 0.0, 0.01))),
        )
        for i in range(draw(st.integers(1, 3)))
    )
    names = [link.name for link in links]
    flows = []
    for i in range(draw(st.integers(1, 4))):
        alpha = float(draw(st.integers(1, 4)))
        flows.append(
            Flow(
                draw(st.sampled_from(LAWS)),
                draw(st.floats(0.15, 0.4)),
                name=f"f{i}",
                start=draw(st.floats(0.0, 3.0)),
                alpha=alpha,
                beta=alpha + float(draw(st.integers(0, 2))),
                variant=draw(st.sampled_from(("paper", "ns2", "linux"))),
                path=tuple(draw(st.permutations(names)))[: draw(st.integers(1, len(names)))],
                direction=draw(st.sampled_from(("forward", "forward", "reverse"))),
                packet_size=draw(st.sampled_from((None, None, 300.0, 1500.0))),
                service=draw(st.sampled_from(("rate", "delay"))),
                send_jitter=draw(st.sampled_from((0.0, 0.0, 1e-3, 0.05))),
                delayed_ack=draw(st.booleans()),
            )
        )
    return Scenario(links, tuple(flows), run=Run(duration=15.0, warmup=5.0))


@settings(deadline=None, max_examples=50, derandomize=True)
@given(networks(), st.sampled_from((4, 16)))
def test_packets_are_conserved_at_every_queue(scenario: Scenario, parts: int) -> None:
    out = run(scenario, parts=parts, samples=51)
    assert out.status == 0
    assert np.all(np.isfinite(out.per_flow[..., :4]))
    assert np.all(out.per_flow[..., :4] >= -1e-9)
    assert np.all(np.isfinite(out.queues))
    assert np.all(out.queues >= 0)
    links, hops, flows = out.routes.links, out.routes.hops, out.flows
    assert np.all(links["queue"] >= 0)
    assert np.all(links["rate"] >= -1e-9)
    left = links["served"] + links["queue"] + links["excess"] + links["lost"]
    np.testing.assert_allclose(left, links["arrived"], rtol=1e-9, atol=1e-6)
    assert np.all(out.queues <= links["buffer"] + 1 + 1e-6)
    # nothing arrives in a queue's past
    assert np.all(links["lateness"] <= 1e-9)
    assert np.all(flows["delivered"] + flows["lost"] <= flows["sent"] + 1e-6)
    # sizes and capacities follow the roundings of ns-2's clock, enlarged (``rounding.roundings``)
    assert np.all(links["served"] <= links["capacity"] * 15.0 * (1 + 1e-7))
    lost = links["lost"].sum()
    bytes_of_acks = (scenario.ack_size, scenario.ack_size + 24.0)  # with up to three SACK blocks
    low, high = (b / scenario.packet_size * flows["acks_lost"].sum() for b in bytes_of_acks)
    data = (flows["lost"] * hops["work"][flows["hop"]]).sum()
    assert data + low <= lost * (1 + 1e-7)
    assert lost <= (data + high) * (1 + 1e-7)


def test_a_timer_that_runs_out_while_acks_are_on_their_way_fires_in_time() -> None:
    """Behind a RED queue of 100 pkt/s the RTT becomes longer than the timeout."""
    slow = Link(100.0, "slow", queue=Red(5.0, 15.0, ecn=True))
    links = (Link(900.0, "fast", queue=RateDelay()), slow)
    both, back = ("fast", "slow"), "reverse"
    flows = (
        exact("newreno", 0.18, variant="ns2", path=both, direction=back, packet_size=1500.0),
        exact("reno", 0.3, variant="ns2", start=1.5, path=("fast",), direction=back),
        exact("vegas", 0.19, variant="ns2", path=both, direction=back, service="rate"),
        exact("vegas", 0.2, name="v", variant="linux", path=both[::-1], service="rate"),
    )
    out = run(Scenario(links, flows, run=Run(duration=15.0, warmup=5.0)), parts=4)
    assert out.flows["timeouts"].sum() > 0
    assert np.all(out.routes.links["lateness"] <= 1e-9)


def test_a_sender_whose_data_are_all_acknowledged_sends_nothing_more() -> None:
    """Its retransmission timer does not run any more (RFC 6298, 5.2).

    A long flow fills an infinite buffer, so the RTT of a flow of five packets becomes longer than
    its timer. It probes once, and the ACK of the probe comes when all data are acknowledged.
    """
    flows = (
        exact("sack", 0.276, variant="linux"),
        exact("reno", 0.18, variant="linux", size=5.0, access=1000.0, start=6.0),
    )
    out = run(Scenario((Link(2000.0),), flows, run=Run(duration=40.0, warmup=0.0)))
    short = out.flows[1]
    assert short["finished"] < 30.0
    assert short["early_timers"] == 1
    assert short["timeouts"] == 0
    assert short["sent"] == 6
    assert np.all(out.routes.links["lateness"] <= 1e-9)


def pair(ack_size: float, rtts: tuple[float, float], noise: tuple[float, float]) -> Scenario:
    flows = (
        Flow(law, rtt, variant="ns2", delay_noise=each)
        for law, rtt, each in zip(("vegas", "newreno"), rtts, noise, strict=True)
    )
    link, span = Link(40.0, buffer=6.0, delay=0.001), Run(200.0, 50.0, start_jitter=1.0)
    return Scenario((link,), tuple(flows), ack_size=ack_size, run=span)


def test_large_acks_of_two_flows_wait_for_each_other() -> None:
    """ns-2: 30 runs. Without the waits of ACKs Vegas would get about 12 packets/s."""
    found = answer(pair(1000.0, (0.1, 0.13), (0.0, 0.0)), runs=15)
    assert as_measured(found, [5.73, 32.68], [0.24, 0.24])


@pytest.mark.parametrize(
    ("ack_size", "rtts", "noise", "wait", "notable"),
    [
        (1000.0, (0.1, 0.13), (0.0, 0.0), True, True),
        (1000.0, (0.1, 0.1), (0.0, 0.0), False, False),  # equal delays from the link and back
        (1000.0, (0.1, 0.1), (0.01, 0.0), True, None),  # with noise, all delays are at the sender
        (1000.0, (0.1, 0.13), (0.01, 0.01), False, None),
        (140.0, (0.1, 0.13), (0.0, 0.0), False, False),  # a mean wait of 0.0098 transmission times
        (143.0, (0.1, 0.13), (0.0, 0.0), True, False),
        (440.0, (0.1, 0.13), (0.0, 0.0), True, False),  # a mean wait of 0.097
        (450.0, (0.1, 0.13), (0.0, 0.0), True, True),
    ],
)
def test_where_large_acks_wait(
    ack_size: float,
    rtts: tuple[float, float],
    noise: tuple[float, float],
    wait: bool,
    notable: bool | None,
) -> None:
    """Models without a queue of ACKs tell only of waits of a tenth of a transmission or more."""
    scenario = pair(ack_size, rtts, noise)
    assert bool(links_where_acks_wait(scenario)) is wait
    if notable is not None:  # otherwise fluid has no answer
        told = {one.name: one.holds for one in predict(scenario, "fluid").assumptions}
        assert told["no-queueing-of-acks"] is not notable


def lone() -> Scenario:
    group = exact("reno", 0.1, variant="ns2", path=("a",))
    other = exact("vegas", 0.1, name="v", variant="ns2", path=("a",))
    links = (Link(500.0, "a", buffer=20.0), Link(1e5, "b"))
    return Scenario(links, (group, other), run=Run(duration=60.0, warmup=10.0))


def test_a_link_that_never_fills_changes_nothing() -> None:
    """A fast link after the bottleneck adds only its transmission time, which rtt includes."""
    one = lone()
    flows = tuple(dataclasses.replace(g, path=("a", "b")) for g in one.flows)
    two = dataclasses.replace(one, flows=flows)
    expected, found = (run(s, parts=256).flows["delivered"] for s in (one, two))
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_the_slowest_link_sets_the_rate_wherever_it_is() -> None:
    flow = exact("reno", 0.1, variant="ns2", max_window=60.0)
    rates = (900.0, 300.0, 700.0)
    for order in (rates, rates[::-1]):
        links = tuple(Link(c, name=f"l{i}") for i, c in enumerate(order))
        out = run(Scenario(links, (flow,), run=Run(duration=60.0, warmup=20.0)))
        rate = (out.flows["delivered"] - out.flows["mark_delivered"]) / 40.0
        assert rate == pytest.approx(300.0, rel=1e-3)
        # Little: the window is 60, and 30 of it are on their way
        waits = out.routes.links["area"] - out.routes.links["mark_area"]
        assert waits.sum() / 40.0 == pytest.approx(30.0, abs=1.5)


def test_a_batch_answers_as_one_by_one() -> None:
    """Threads share nothing, not even random numbers.

    A scenario that fails does not affect others.
    """
    lossy = Link(300.0, buffer=20.0, loss=0.02)
    laws = ("reno", "vegas", "sack", "newreno")
    short = Run(duration=20.0, warmup=5.0, start_jitter=0.5)
    cases = [
        Scenario((lossy,), (exact(law, 0.05 + 0.01 * i, variant="ns2"),), run=short)
        for i, law in enumerate(laws * 3)
    ]
    cases[4] = dataclasses.replace(
        cases[4], flows=(exact("reno", 0.1, arrivals=Poisson(50000.0), size=30.0),)
    )
    found = batch.run(cases, threads=4)
    for i, (one, scenario) in enumerate(zip(found, cases, strict=True)):
        alone = answer(scenario)
        assert one.applicable is alone.applicable is (i != 4)
        if i == 4:
            assert "short flows" in str(one.reason)
            continue
        np.testing.assert_array_equal(one.throughput, alone.throughput)
        np.testing.assert_array_equal(one.loss_rate, alone.loss_rate)
    with pytest.raises(ValueError, match="threads"):
        batch.run(cases, threads=0)


def test_short_flows_bring_what_they_carry() -> None:
    """An idle link: lambda flows per second of m packets give lambda m packets per second."""
    poisson = exact("newreno", 0.05, arrivals=Poisson(40.0), size=12.0, variant="ns2")
    tail = exact(
        "vegas",
        0.05,
        name="tail",
        arrivals=ParetoArrivals(40.0, 2.5),
        size=Pareto(12.0, 2.5),
        variant="ns2",
    )
    scenario = Scenario((Link(1e5),), (poisson, tail), run=Run(duration=100.0, warmup=10.0))
    out = run(scenario, samples=3)
    rates = (out.flows["delivered"] - out.flows["mark_delivered"]) / 90.0
    # 3600 flows: 1.7 % of standard deviation by their number, 1.5 % by their sizes
    np.testing.assert_allclose(rates, 480.0, rtol=0.08)
    # the last sample is at the end by the clock of the queue; ACKs have come to the sender since
    more = out.flows["delivered"] - out.delivered[-1]
    assert np.all((more >= 0.0) & (more <= 480.0 * 0.05))


def test_rate_delay_services_share_by_the_numbers_of_flows() -> None:
    """``podlesny`` (5): a class R flow gets k times the rate of a class D flow."""
    for k, n_rate, n_delay in ((1.0, 2, 4), (2.0, 3, 2)):
        link = Link(500.0, buffer=80.0, queue=RateDelay(k=k, delay_buffer=0.3))
        flows = (
            exact("newreno", 0.05, count=n_rate, variant="ns2"),
            exact("vegas", 0.05, count=n_delay, variant="ns2"),
        )
        found = answer(Scenario((link,), flows, run=Run(duration=120.0, warmup=40.0)))
        S_R, S_D = rate_delay.service_rates(n_rate, n_delay, 500.0, k=k)
        assert found.groups["newreno"] == pytest.approx(S_R / n_rate, rel=0.03)
        assert found.groups["vegas"] == pytest.approx(S_D / n_delay, rel=0.03)
        # the delay class waits for its own small buffer at most: podlesny II-C
        bound = rate_delay.delay_bound(24.0 + 1.0, S_D)
        delays = run(found.scenario).flows
        rtts, samples = (
            (delays[f"last_{name}"] - delays[f"mark_{name}"])[n_rate:]
            for name in ("rtt_total", "rtt_packets")
        )
        assert np.all(rtts / samples <= 0.05 + bound)


@pytest.mark.parametrize(
    ("capacity", "buffer", "queue", "laws", "counts"),
    [
        (400.0, 100.0, RateDelay(delay_buffer=0.3), ("vegas", "vegas"), (3, 3)),
        (2500.0, 400.0, RateDelay(delay_buffer=0.3), ("reno", "vegas"), (4, 1)),
        (400.0, 80.0, RateDelay(k=4.0, delay_buffer=0.5), ("vegas", "sack"), (2, 1)),
        (1000.0, 300.0, RateDelay(k=2.0, delay_buffer=0.5), ("newreno", "newreno"), (2, 3)),
    ],
)
def test_littles_law_holds_behind_rate_delay_services(
    capacity: float, buffer: float, queue: RateDelay, laws: tuple[str, str], counts: tuple[int, int]
) -> None:
    """Waiting packets are throughput times waiting time, although the classes delay each other."""
    flows = tuple(
        exact(law, 0.08, name=service, count=n, variant="ns2", service=service)
        for law, n, service in zip(laws, counts, ("rate", "delay"), strict=True)
    )
    found = answer(Scenario((Link(capacity, buffer=buffer, queue=queue),), flows, run=Run(90, 30)))
    waiting = np.sum(found.throughput * (found.rtt_mean - 0.08))
    assert found.queue_mean == pytest.approx(waiting, rel=0.1)


def test_a_delay_buffer_of_two_packets_starves_its_flows() -> None:
    """ns-2 gives class D 3 % of the link, and equation (5) of ``podlesny`` 50 %.

    The second packet of a burst finds the first one waiting for its turn, and is lost.
    """
    flows = tuple(
        exact("newreno", rtt, name=service, count=n, variant="ns2", service=service)
        for rtt, n, service in ((0.05, 1, "rate"), (0.05, 4, "delay"))
    )
    queue = RateDelay(delay_buffer=0.1)
    found = answer(Scenario((Link(400.0, buffer=22.0, queue=queue),), flows, run=Run(120, 40)))
    assert found.groups["delay"] * 4 < 0.1 * 400.0


def test_a_window_may_grow_at_an_infinite_buffer_beside_a_finite_one() -> None:
    """The flows share no link, so each gets what it gets alone: the first one all of its link.

    Its window grows to 100,000 packets. There was room for 65,536 of them.
    """
    links = Link(1000.0, name="endless"), Link(500.0, buffer=20.0, name="short")
    first = exact("reno", 0.1, name="first", path=("endless",), variant="ns2")
    second = exact("reno", 0.1, name="second", path=("short",), variant="ns2")
    found = answer(Scenario(links, (first, second), run=Run(duration=100.0, warmup=25.0)))
    alone = answer(Scenario(links[1:], (second,), run=Run(duration=100.0, warmup=25.0)))
    assert found.throughput == pytest.approx([1000.0, alone.throughput[0]], rel=1e-3)


def test_fast_links_are_resolved_to_who_loses() -> None:
    """Ten SACK sources at 100 Mbit/s: the default resolution agrees with packet by packet.

    Stretches of several packets, 256 per round trip, were 45 % off.
    """
    rng = np.random.default_rng(3)
    flows = tuple(
        exact("sack", float(rng.uniform(0.01, 0.1)), name=f"s{i}", variant="ns2") for i in range(10)
    )
    fast = Scenario((Link(12500.0, buffer=190.0),), flows, run=Run(duration=30.0, warmup=10.0))
    whole = run(fast, parts=12500).flows["delivered"]
    np.testing.assert_allclose(run(fast).flows["delivered"], whole, rtol=0.02)
    assert np.abs(run(fast, parts=256).flows["delivered"] / whole - 1.0).max() > 0.1


@pytest.mark.parametrize(
    ("law", "late", "there"),
    [
        ("reno", False, 501.88),
        ("reno", True, 302.29),
        ("newreno", True, 234.87),
        ("sack", True, 370.5),
        ("cubic", False, 677.86),
        ("cubic", True, 1023.56),
    ],
)
def test_a_small_buffer_holds_no_burst_of_a_fast_link(law: str, late: bool, there: float) -> None:
    """ns-2: packets/s, means of 10 runs, at a buffer of 7 packets and a pipe of 4000.

    In intervals of several packets the bursts were smoothed out: the rates were up to 40 % off, and
    CUBIC's with delayed ACKs by a factor of 2.3. CUBIC without them lost a third of its rate to a
    rule of a later kernel, which computes ``cnt`` at most once per tick of its clock.
    """
    flow = exact(law, 0.2, variant="ns2", delayed_ack=late)
    link, span = Link(20000.0, buffer=7.0), Run(duration=40.0, warmup=10.0, start_jitter=0.5)
    found = answer(Scenario((link,), (flow,), packet_size=500.0, run=span), runs=4)
    assert found.throughput[0] == pytest.approx(there, rel=0.015)


def test_a_record_of_lost_packets_has_room_for_thousands_of_ranges() -> None:
    """ns-2: one run; SACK sends 3000 packets again, every third of its first overflow.

    In a record of 256 ranges all packets between the other ranges counted as lost, too.
    """
    flow = exact("sack", 0.06, variant="ns2", delayed_ack=True)
    found = answer(Scenario((Link(50000.0, buffer=3000.0),), (flow,), run=Run(30.0, 1.0)), runs=1)
    assert found.throughput[0] == pytest.approx(49647.0, rel=0.005)
    assert found.retransmits[0] == pytest.approx(3000.0, abs=3.0)


def test_throughput_counts_cumulative_acks() -> None:
    """ns-2: one run; NewReno sends one of thousands of lost packets again per round trip.

    Cumulative ACKs after warm-up report 11,892 packets, most of which had arrived before. ns-2
    counts packets when cumulative ACKs report them, and ``rounds`` does the same.
    """
    flow = exact("newreno", 0.8053, variant="ns2", delayed_ack=True)
    link, span = Link(14890.8, buffer=4000.0), Run(duration=73.0, warmup=22.0)
    found = answer(Scenario((link,), (flow,), run=span), runs=1)
    assert found.throughput[0] * 51.0 == pytest.approx(11892.0, abs=6.0)


def test_too_many_packets_for_single_ones_are_no_silent_change() -> None:
    flow = exact("reno", 0.1, variant="ns2")
    for buffer, single in ((10000.0, True), (40000.0, False)):
        found = answer(Scenario((Link(2e5, buffer=buffer),), (flow,), run=Run(1.0, 0.5)), runs=1)
        assert {a.name: a.holds for a in found.assumptions}["packets-one-by-one"] is single


def test_single_packets_decide_after_a_fast_overflow() -> None:
    """784 Mbit/s: Vegas's baseRTT falls to a transmission time after the timeout, as in ns-2.

    ns-2 gives Vegas 191 pkt/s in 10 of 10 runs; intervals of two packets gave it some 40,000.
    """
    flows = (
        Flow("vegas", 0.0157, name="vegas", variant="ns2"),
        Flow("newreno", 0.0218, name="other", variant="ns2"),
    )
    fast = Scenario((Link(97954.0, buffer=886.0),), flows, run=Run(duration=20.0, warmup=5.0))
    found = answer(fast, runs=2)
    assert found.throughput[0] < 300.0
    failed = {a.name: a.detail for a in found.assumptions if a.holds is False}
    assert failed["base-rtt-above-propagation"] == (
        "in 2 of 2 runs the baseRTT of vegas fell below the propagation delay; ns-2's Vegas can "
        "measure such a baseRTT after a timeout"
    )


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("jitter", [0.0, None])
def test_a_link_that_no_flow_crosses_changes_nothing(count: int, jitter: float | None) -> None:
    used, slow = Link(1000.0, "used", buffer=30.0), Link(10.0, "slow", buffer=30.0)
    flows = (
        Flow("sack", 0.2, count=count, path=("used",), send_jitter=jitter),
        Flow("vegas", 0.21, variant="ns2", path=("used",), send_jitter=jitter),
    )[:count]
    alone, beside = (
        answer(Scenario(links, flows, run=Run(duration=10.0, warmup=5.0, runs=1)))
        for links in ([used], [slow, used])
    )
    assert alone.throughput.sum() > 100.0  # not the slow link
    np.testing.assert_array_equal(beside.throughput, alone.throughput)
    np.testing.assert_array_equal(beside.rtt_mean, alone.rtt_mean)
    np.testing.assert_array_equal(beside.queue_mean, [0.0, *alone.queue_mean])


@pytest.mark.parametrize("law", ["vegas", "sack"])
def test_flows_whose_acks_meet_a_full_queue_are_named(law: str) -> None:
    """CUBIC fills the buffer that the ACKs of the flow ``back`` cross.

    CUBIC's own ACKs cross the queue of ``back``, which has few packets. Only Vegas has a baseRTT.
    """
    flows = (
        Flow("cubic", 0.02, name="full", variant="ns2"),
        Flow(law, 0.08, name="back", variant="ns2", direction="reverse", max_window=2.0),
    )
    scenario = Scenario((Link(500.0, buffer=30.0),), flows, run=Run(duration=60.0, warmup=20.0))
    found = answer(scenario, runs=1)
    (met,) = (a for a in found.assumptions if a.name == "every-ack-arrives")
    assert met.holds is False
    assert "(back)" in met.detail
    assert ("baseRTT" in met.detail) is (law == "vegas")
    lost = run(scenario).flows
    assert lost["acks_lost"][0] == 0.0 < lost["acks_lost"][1]
