"""Flows that wait for their retransmission timers: ``fluid`` beside ns-2."""

import itertools
from typing import Literal

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.engines.fluid.one_run import begin, march_arguments
from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.sampled import (
    drops,
    march,
    random_drops,
    recovery,
    round_trip,
)
from vegasmodel.engines.fluid.sampled.records import Bottleneck, LinkState, Sender
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.engines.rounds import timer
from vegasmodel.engines.tables import Table, jit
from vegasmodel.scenario import DropTail, Flow, Link, Red, Run, Scenario
from vegasmodel.stacks import STACKS


@jit
def _places(flows: Table[Sender], state: Table[LinkState], link: Bottleneck, often: int) -> float:
    places = 0.0
    for _ in range(often):
        places += drops.free_places(flows[0], state[0], link)
    return places / often


@pytest.mark.parametrize(("free", "wait"), [(0.3, 0.0), (1.6, 0.0), (0.3, 0.5), (0.8, 1.0)])
def test_a_packet_that_comes_at_a_random_time_finds_the_mean_number_of_places_free(
    free: float, wait: float
) -> None:
    """By Little's law, packets that wait at their senders make half their longest wait free.

    ``wait`` is this longest wait, in transmission times. A loss-based flow is beside Vegas, so the
    equations for the queue leave out the waits.
    """
    waits = wait / 100.0
    flows = tuple(Flow(law, 0.1, variant="ns2", send_jitter=waits) for law in ("vegas", "reno"))
    scenario = Scenario((Link(100.0, buffer=20.0),), flows)
    made = senders(scenario)
    state, link = begin(scenario, made, 0), march_arguments(scenario, made)[0]
    state["delay"] = (link.room - free) / link.capacity
    mean = _places(made, state, link, 20000)
    assert mean == pytest.approx(free + 0.5 * wait, abs=0.02)


def _bsd_timeout(rtt: float) -> float:
    """The mean timeout of BSD's integer arithmetic (tcp.cc: ``rtt_update``), in seconds.

    The RTT is constant, but each packet is sent at another time since the last tick of the clock.
    """
    tick, srtt, rttvar, timeouts = 0.1, 0, 0, []
    for sent in np.random.default_rng(1).uniform(0.0, tick, 2000):
        sample = max(int((rtt + sent) / tick), 1)
        if srtt == 0:
            srtt, rttvar = sample << 3, sample << 1
        else:
            error = sample - (srtt >> 3)
            srtt, rttvar = srtt + error, rttvar + abs(error) - (rttvar >> 2)
        timeouts.append((((rttvar << 3) + srtt) >> 3) * tick)
    return float(np.mean(timeouts))


@pytest.mark.parametrize("rtt", [0.03, 0.06, 0.099, 0.105, 0.15, 0.2, 0.3])
def test_the_timeout_is_that_of_bsds_whole_ticks(rtt: float) -> None:
    scenario = Scenario((Link(100.0, buffer=20.0),), (Flow("sack", rtt, variant="ns2"),))
    flows = senders(scenario)
    flows["heard"] = True
    found = recovery.timeout(flows[0], begin(scenario, flows, 0)[0])
    assert found == pytest.approx(_bsd_timeout(flows[0]["rtt"]), abs=0.051)


@pytest.mark.parametrize(
    ("law", "defaults", "rtt", "steady", "longest"),
    [
        ("sack", "papers", 0.15, 0.45, 64.0),
        ("sack", "2.35", 0.15, 0.2, 60.0),  # ticks of 10 ms, and minrto_
        ("sack", "2.35", 0.4, 0.43, 60.0),
        ("cubic", "papers", 0.15, 0.2, 120.0),  # Agent/TCP/Linux: ticks of 1 ms, maxrto_
        ("cubic", "papers", 0.4, 0.403, 120.0),
    ],
)
def test_the_timeouts_are_those_of_the_stack(
    law: str, defaults: Literal["papers", "2.35"], rtt: float, steady: float, longest: float
) -> None:
    """A sender waits for at most ``longest``; CUBIC in ns-2 has timers of its own."""
    times = Run(duration=300.0, warmup=100.0, ns2_defaults=defaults)
    flow = Flow(law, rtt, variant="ns2")
    scenario = Scenario((Link(100.0, buffer=20.0),), (flow,), run=times)
    flows = senders(scenario)
    flows["heard"], flows["timer"] = True, 1000.0
    now = begin(scenario, flows, 0)[0]
    assert recovery.timeout(flows[0], now) == pytest.approx(steady)
    recovery.await_timer(flows[0], now, 1.0, 0.0)
    assert flows[0]["timeout_ends"] == longest


def test_linux_waits_an_rtt_and_its_least_deviation() -> None:
    """``tcp_rtt_estimator``: rttvar is at least TCP_RTO_MIN, 200 ms; ``rounds`` has the same."""
    assert STACKS["linux"].steady_timeout(0.05) == pytest.approx(timer.rto_of(0.05, 0.0)) == 0.25


@jit
def _detect(flows: Table[Sender], state: Table[LinkState]) -> None:
    recovery.on_loss(flows[0], state[0], 0.0, 1000.0, False)


@jit
def _hear(flows: Table[Sender], state: Table[LinkState], trips: float) -> None:
    recovery.end_backoff(flows[0], state[0], trips)


def test_the_ack_of_a_packet_sent_once_ends_the_backoff_but_not_the_running_timer() -> None:
    """Two lost packets, a window of one: the third round trip brings the first fresh ACK (Karn).

    As ``timerfix_`` is false, this ACK restarts the timer before it ends the backoff (tcp.cc:
    ``newack``). A round trip in which all packets are lost brings no ACK.
    """
    scenario = Scenario((Link(100.0, buffer=20.0),), (Flow("sack", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    state["time"], flows["in_flight"] = 50.0, 1.0
    flows["timer"] = flows["backoff"] = 8.0
    flows["resends"] = recovery.FRESH + 2.0
    found = []
    for lost in (0.0, 1.0, 0.0, 0.0, 0.0):
        flows["undetected"] = lost
        _hear(flows, state, 1.0)
        found.append((float(flows["backoff"][0]), float(flows["timer"][0])))
    assert found == [(8.0, 8.0), (8.0, 8.0), (8.0, 8.0), (1.0, 8.0), (1.0, 1.0)]


def test_the_second_ack_after_a_timeout_restarts_the_timer_without_backoff() -> None:
    """Two fresh packets are in flight; the ACK of the first ends the backoff."""
    scenario = Scenario((Link(100.0, buffer=20.0),), (Flow("sack", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    state["time"], flows["timer"], flows["backoff"] = 50.0, 8.0, 8.0
    flows["resends"], flows["in_flight"] = recovery.FRESH, 2.0
    _hear(flows, state, 0.5)
    assert (flows[0]["backoff"], flows[0]["timer"]) == (8.0, 8.0)
    _hear(flows, state, 0.5)
    assert (flows[0]["backoff"], flows[0]["timer"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("law", "link", "rtt", "measured"),
    [
        ("sack", Link(1857.0, buffer=76.0, loss=0.25594), 0.0594, 2.76),
        ("sack", Link(919.0, buffer=53.0, loss=0.16145), 0.0332, 11.14),
        ("tahoe", Link(324.0, buffer=26.0, loss=0.10859), 0.0352, 24.29),
        ("reno", Link(1445.0, buffer=47.0, loss=0.12427), 0.126, 8.89),
    ],
)
def test_frequent_random_losses_make_a_flow_wait_as_in_ns2(
    law: str, link: Link, rtt: float, measured: float
) -> None:
    """ns-2's packets per second, the mean of 60 runs; drawn for ``benchmarks.accuracy_loss``."""
    flow = Flow(law, rtt, variant="ns2", send_jitter=0.0)
    rates = run(Scenario((link,), (flow,), run=Run(300.0, 60.0, runs=60))).throughput
    assert rates[0] == pytest.approx(measured, rel=0.18)


@jit
def _few(flows: Table[Sender], state: Table[LinkState], link: Bottleneck, g: float) -> float:
    random_drops.lose_after_timeout(flows[0], state[0], link, g)
    return flows[0].lost


@pytest.mark.parametrize(("lasts", "lost"), [(0.1, 2.0), (0.2, 0.0), (0.07, 2.0)])
def test_packets_after_a_timeout_are_sent_when_their_round_trip_ends(
    lasts: float, lost: float
) -> None:
    """At RED a round trip of slow start lasts as long as its first packet takes (``round_lasts``).

    The link loses every packet. A step of 0.015 s begins when nine tenths of a round trip are over.
    """
    link = Link(1000.0, buffer=60.0, loss=0.5, queue=Red(10.0, 30.0))
    scenario = Scenario((link,), (Flow("newreno", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["in_slow_start"], flows["in_flight"] = True, True, 2.0
    flows["resends"], flows["round_part"], flows["round_lasts"] = 1.0, 0.9, lasts
    state["time"], state["step"] = 50.0, 0.015
    frail = march_arguments(scenario, flows)[0]._replace(loss=1.0)
    assert _few(flows, state, frail, 0.15) == lost


@jit
def _admit(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> None:
    march.admit(flows, state[0], link)


@jit
def _acks(flows: Table[Sender], state: Table[LinkState]) -> None:
    round_trip.on_acks(flows[0], state[0], 0.1, 1000.0, False)


@pytest.mark.parametrize("begins", ["start", "loss"])
def test_a_round_trip_of_slow_start_lasts_until_its_first_packet_returns(begins: str) -> None:
    """50 packets wait at RED when the first packet of the round trip arrives, at 1000 packets/s."""
    link = Link(1000.0, buffer=60.0, queue=Red(10.0, 30.0))
    scenario = Scenario((link,), (Flow("tahoe", 0.1, variant="ns2", send_jitter=0.0),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    state["red_waiting"], state["step"] = 50.0, 0.01
    if begins == "start":
        _admit(flows, state, march_arguments(scenario, flows)[0])
    else:
        flows["active"], flows["cwnd"], flows["in_flight"] = True, 20.0, 20.0
        flows["undetected"], flows["hears_in"], flows["detection_in"] = 1.0, 0.006, 0.06
        _acks(flows, state)
        # the loss was detected 0.006 s after the step began, and 0.004 s of the round trip are over
        assert flows["round_part"][0] == pytest.approx(0.04)
    assert flows["in_slow_start"][0]
    assert flows["round_lasts"][0] == pytest.approx(0.15)


@pytest.mark.parametrize(("law", "backoff"), [("vegas", 4.0), ("newreno", 2.0)])
def test_ns2s_vegas_doubles_its_timeout_when_it_sends_a_packet_again(
    law: str, backoff: float
) -> None:
    """In ns-2 only Vegas does so without a timeout (tcp-vegas.cc: ``reset_rtx_timer(1)``).

    The sender has 20 packets in flight and loses one.
    """
    scenario = Scenario((Link(1000.0, buffer=20.0),), (Flow(law, 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["cwnd"], flows["in_flight"], flows["undetected"] = True, 20.0, 20.0, 1.0
    flows["timer"] = flows["backoff"] = 2.0
    _detect(flows, state)
    assert flows[0]["timeout_ends"] == 0.0
    assert (flows[0]["backoff"], flows[0]["timer"]) == (backoff, backoff)


@pytest.mark.parametrize(("lost", "after"), [(1.0, 1.0), (2.0, 1.0), (3.0, recovery.FRESH)])
def test_vegas_sends_a_fresh_packet_in_a_recovery_only_if_its_window_allows(
    lost: float, after: float
) -> None:
    """tcp-vegas.cc: the window falls from 4 to 3, and grows by one with each duplicate ACK.

    With 2 lost packets there are 2 duplicate ACKs, so 5 packets may be outstanding, and 4 are. The
    ACK of the fresh packet comes at the end of the recovery. With 3 lost packets no fresh packet is
    sent before the end.
    """
    scenario = Scenario((Link(1000.0, buffer=20.0),), (Flow("vegas", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["cwnd"], flows["in_flight"], flows["undetected"] = True, 4.0, 4.0, lost
    flows["in_train"] = False
    _detect(flows, state)
    assert flows[0]["recovery_left"] > 0.0
    assert flows[0]["resends"] == after


def _vegas_after_timeout(before: float, lost: float) -> tuple[np.ndarray, np.ndarray]:
    """Vegas waits for its timer, because it has lost ``lost`` of ``before`` packets."""
    scenario = Scenario((Link(1000.0, buffer=20.0),), (Flow("vegas", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["cwnd"], flows["in_flight"] = True, before, before - lost
    flows["in_train"], flows["timer"] = False, 1.0
    recovery.await_timer(flows[0], state[0], lost, 0.0)
    return flows, state


@pytest.mark.parametrize(("before", "lost"), [(10, 1), (10, 2), (20, 3), (12, 12)])
def test_vegas_sends_two_packets_again_in_each_round_trip(before: int, lost: int) -> None:
    """The first lost packet and the next one (tcp-vegas.cc: ``v_slowstart_`` is 2).

    The mean is over all places that the lost packets may have behind the first one.
    """
    trips = []
    for others in itertools.combinations(range(1, before), lost - 1):
        holes = {0, *others}
        count = 0
        while holes:
            count += 1
            first = min(holes)
            holes -= {first, first + 1}
        trips.append(count)
    flows, _ = _vegas_after_timeout(before, lost)
    assert flows[0]["resends"] - recovery.FRESH == pytest.approx(np.mean(trips), rel=0.005)


def test_vegas_needs_a_round_trip_for_each_lost_packet_after_a_timeout() -> None:
    """Two packets are in flight, but only one of them was lost before."""
    flows, state = _vegas_after_timeout(20.0, 2.0)
    state["time"], flows["in_flight"], flows["resends"] = 50.0, 2.0, recovery.FRESH + 2.0
    for left in (1.0, 0.0):
        _hear(flows, state, 1.0)
        assert flows[0]["resends"] == recovery.FRESH + left


@pytest.mark.parametrize(("again", "lost"), [(3.0, 1.0), (0.0, 2.0)])
def test_the_loss_of_a_packet_that_has_arrived_before_does_no_harm(
    again: float, lost: float
) -> None:
    """The link loses every packet. Vegas sends two: a lost one again, and the one behind it."""
    link = Link(1000.0, buffer=60.0, loss=0.5)
    scenario = Scenario((link,), (Flow("vegas", 0.1, variant="ns2"),))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    flows["active"], flows["in_flight"], flows["timeout_ends"] = True, 2.0, 49.99
    flows["resends"] = recovery.FRESH + again
    state["time"], state["step"] = 50.0, 0.015
    frail = march_arguments(scenario, flows)[0]._replace(loss=1.0)
    assert _few(flows, state, frail, 0.15) == lost


def test_vegas_waits_under_random_loss_as_in_ns2() -> None:
    """ns-2: 159.1 packets per second, the mean of 40 runs, with a standard error of 2.4."""
    flow = Flow("vegas", 0.05, alpha=2.0, beta=4.0, variant="ns2")
    times = Run(duration=300.0, warmup=100.0, start_jitter=0.5, runs=40)
    rates = run(Scenario((Link(1000.0, buffer=60.0, loss=0.03),), (flow,), run=times)).throughput
    assert rates[0] == pytest.approx(159.1, rel=0.1)


def test_a_starved_flow_finds_places_of_the_full_queue_as_in_ns2() -> None:
    """ns-2: the SACK flow beside seven Vegas flows gets 26.7 pkt/s, the mean of 20 runs.

    In 200 s its timer expires about 150 times. The network was drawn for the benchmark.
    """
    flows = (
        Flow("vegas", 0.0548, count=7, alpha=4.0, beta=4.0, variant="ns2", send_jitter=0.00022),
        Flow("sack", 0.0548, variant="ns2", send_jitter=0.00022),
    )
    times = Run(duration=300.0, warmup=100.0, runs=10, start_jitter=0.5)
    rates = run(Scenario((Link(901.0, buffer=17.0),), flows, run=times)).throughput
    assert rates[7] == pytest.approx(26.7, rel=0.1)
    assert np.mean(rates[:7]) == pytest.approx(124.8, rel=0.02)


@jit
def _needed(flows: Table[Sender], state: Table[LinkState]) -> float:
    return recovery.needed(flows[0], state[0], 1000.0)


@pytest.mark.parametrize(("variant", "packets"), [("ns2", 1.0), ("linux", 3.0)])
def test_only_ns2s_vegas_has_a_fine_timer(variant: str, packets: float) -> None:
    """The fine timer has expired at the first duplicate ACK if 10 packets are in flight.

    Linux waits for three packets sent later (``tcp_rack_detect_loss``).
    """
    scenario = Scenario((Link(1000.0, buffer=20.0),), (Flow("vegas", 0.1, variant=variant),))
    flows = senders(scenario)
    flows["in_flight"], flows["in_train"] = 10.0, False
    assert _needed(flows, begin(scenario, flows, 0)) == packets


@pytest.mark.parametrize("queue", [DropTail(), Red(5.0, 15.0)])
def test_a_law_without_slow_start_grows_again_after_a_timeout(queue: DropTail | Red) -> None:
    """The TCP implementation begins a slow start up to ssthresh, as in ``rounds``."""
    vm.register_law("gentle", lambda _: 0.99, slow_start="none", cut=lambda f: 0.5 * f.window)
    flows = [Flow(law, 0.04, variant="ns2") for law in ("gentle", "cubic")]
    link = Link(1000.0, buffer=25.0, queue=queue)
    case = Scenario((link,), tuple(flows), run=Run(duration=60.0, warmup=20.0, runs=1))
    found, other = (vm.predict(case, model).throughput for model in ("fluid", "rounds"))
    np.testing.assert_allclose(found, other, rtol=0.1)
