"""What RED drops in ``fluid``: by hand against ns-2's queue/red.cc, and against runs of ns-2."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.fluid.red_link import arrive, bottleneck, bursting, link_state, train
from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.sampled import drops, random_drops
from vegasmodel.engines.fluid.sampled.records import FLOW, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit
from vegasmodel.metrics import Floats
from vegasmodel.predictor import predict
from vegasmodel.scenario import DropTail, Flow, Link, Red, Run, Scenario


@jit
def passed(state: Table[LinkState], link: Bottleneck, queues: Floats) -> int:
    """How many packets RED lets pass before the first that it drops.

    The packets find ``queues`` packets waiting, and RED's average queue is as long.
    """
    for n in range(queues.size):
        state[0].red_average = queues[n]
        if random_drops.dropped(state[0], link, queues[n]):
            return n
    return queues.size


@jit
def burst(flows: Table[Sender], state: Table[LinkState], link: Bottleneck, queue: float) -> float:
    """Let a burst of the first flow arrive; returns how many packets then wait."""
    return random_drops.burst_arrives(flows[0], state[0], link, queue)


@pytest.mark.parametrize("last", [7.0, 14.0])
def test_packets_between_two_drops_are_as_red_cc_draws_them(last: float) -> None:
    """modify_p: packet number n is dropped with p/(2 - n p) if 1 <= n p < 2, and passes below.

    The average rises from 7 packets to ``last``, so p rises with n. The packet that first finds p
    above 0 passes, and the count begins with it.
    """
    averages = np.linspace(7.0, last, 200)
    survive, alive = [], 1.0
    for n, average in enumerate(averages, start=1):
        p = 0.1 * (average - 5.0) / 10.0
        fate = 1.0 - p / (2.0 - n * p) if n * p < 2.0 - p else 0.0
        alive *= 1.0 if n * p < 1.0 or n == 1 else fate
        survive.append(alive)
    gaps = [
        passed(link_state(red_gap=gap), bottleneck(), averages)
        for gap in np.random.default_rng(3).random(4000)
    ]
    at = np.arange(5, 105, 10)
    found = np.array([np.mean(np.array(gaps) > n) for n in at])
    np.testing.assert_allclose(found, np.array(survive)[at], atol=4.0 * 0.5 / math.sqrt(4000))


@pytest.mark.parametrize("at", ["empty queue", "full buffer"])
def test_the_count_that_begins_anew_without_a_random_drop_is_as_random_as_the_first(
    at: str,
) -> None:
    """RED's p is 0.05, so packets 20 to 40 of a count may be dropped at random (modify_p).

    A packet that finds an empty queue, or a full buffer, ends the count after packet 25. What RED
    drops later does not depend on the packets before.
    """
    link = bottleneck(room=200.0)
    gaps = []
    for gap in np.random.default_rng(3).random(8000):
        state = link_state(red_gap=gap)
        if passed(state, link, np.full(25, 10.0)) < 25:
            continue
        lost = found(state, link, 10.0, 0.0 if at == "empty queue" else 200.0)
        assert lost == (at == "full buffer")
        gaps.append(passed(state, link, np.full(60, 10.0)))
    p, n = 0.05, np.arange(1, 39)
    late = np.maximum(2.0 - n * p, p)
    alive = np.cumprod(np.where(n * p < 1.0, 1.0, 1.0 - p / late))
    ends = np.array([np.mean(np.array(gaps) > n) for n in range(18, 38)])
    np.testing.assert_allclose(ends, alive[18:], atol=4.0 * 0.5 / math.sqrt(len(gaps)))


@jit
def found(state: Table[LinkState], link: Bottleneck, average: float, queue: float) -> bool:
    """Let a packet arrive that finds ``queue`` packets; returns whether it is dropped."""
    state[0].red_average = average
    return random_drops.dropped(state[0], link, queue)


def test_each_packet_of_a_burst_finds_the_ones_before_it_in_the_queue() -> None:
    """Packet number k of a burst finds k - 1 of them waiting, and RED's average follows."""
    state, flows = link_state(), bursting(40.0)
    waits = burst(flows, state, bottleneck(weight=0.002), 3.0)
    average = 0.0
    for k in range(40):
        average += 0.002 * (3.0 + k - average)
    assert waits == 43.0
    assert flows["undetected"][0] == 0.0
    assert state["red_average"][0] == pytest.approx(average, rel=1e-12)


def test_a_burst_that_lifts_the_average_above_the_threshold_loses_its_last_packets() -> None:
    """The average reaches 15 packets within a burst of 200; from then on all packets are lost."""
    flows = bursting(200.0)
    waits = burst(flows, link_state(), bottleneck(weight=0.002, max_probability=1e-9), 0.0)
    average, kept = 0.0, 0.0
    for _ in range(200):
        average += 0.002 * (kept - average)
        kept += average < 15.0
    assert waits == kept
    assert flows["undetected"][0] == 200.0 - kept


@jit
def full(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> float:
    """Let a burst of the first flow arrive at a full queue; returns how many packets are lost."""
    drops.overflow(flows, state[0], link, False)
    random_drops.burst_arrives(flows[0], state[0], link, 0.0)
    return flows[0].undetected


def test_a_burst_at_red_that_fills_the_buffer_loses_only_what_finds_no_room() -> None:
    """100 of 150 packets find room, and each of the others is dropped once, not twice.

    The dropped packets return no ACKs, so they release no packets in the next round trip.
    """
    flows = bursting(150.0)
    flows["active"], flows["extra"], flows["cwnd"] = True, 149.0, 150.0
    assert full(flows, link_state(), bottleneck(room=100.0, min_threshold=90.0)) == 50.0
    assert flows["burst_lost"][0] == 50.0


@pytest.mark.parametrize(
    ("holes", "vegas", "lines_up"),
    [
        ((3.0, 3.0), False, True),
        ((3.0, 1.0), False, True),
        ((1.0, 1.0), False, False),
        ((3.0, 3.0), True, False),  # blocks show which packets Vegas loses behind another's burst
    ],
)
def test_the_burst_of_a_long_recovery_begins_blocks(
    holes: tuple[float, float], *, vegas: bool, lines_up: bool
) -> None:
    """The burst of a short recovery in the same step does not undo them."""
    flows, state = np.zeros(2, FLOW), link_state(step=0.01)
    flows["fine_timer"] = vegas
    flows["active"], flows["in_blocks"], flows["rtt"] = True, True, 0.1
    flows["in_flight"], flows["at_once"], flows["holes"] = 50.0, 20.0, holes
    arrive_while_busy(flows, state, bottleneck(min_threshold=1e6))
    assert (state["ordered_until"][0] > 0.0) == lines_up


@jit
def arrive_while_busy(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> None:
    """Let the packets of a step arrive at RED, at the beginning of which some packets wait."""
    random_drops.drop_at_random(flows, state[0], link, 0.0, 0.1)


@pytest.mark.parametrize(
    ("capacity", "rtt", "threshold", "alpha", "measured"),
    [
        (1128.0, 0.1771, 6.0, 5.0, (610.0, 309.0)),
        (1300.0, 0.1757, 5.0, 4.0, (578.0, 387.0)),
        (1380.0, 0.1907, 5.0, 5.0, (525.0, 459.0)),
    ],
)
def test_vegas_and_newreno_share_a_link_with_red_as_in_ns2(
    capacity: float, rtt: float, threshold: float, alpha: float, measured: tuple[float, float]
) -> None:
    """ns-2, means over 20 runs (standard errors at most 12): in most of them Vegas gets more.

    Both windows together exceed the link by a few packets when RED drops the first one. If senders
    learned of the drops too late, more packets would be lost, and Vegas would wait for its timer.
    """
    flows = (
        Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow("newreno", rtt, variant="ns2", send_jitter=0.0),
    )
    link = Link(capacity, buffer=100.0, queue=Red(threshold, 3.0 * threshold))
    s = Scenario((link,), flows, run=Run(300.0, 100.0, runs=20, seed=2, start_jitter=0.5))
    np.testing.assert_allclose(run(s).throughput, measured, atol=0.05 * capacity)


def test_a_packet_that_red_drops_from_a_long_queue_is_missed_later() -> None:
    """The packets behind it wait, too; their duplicate ACKs report the loss."""
    flows, state = train(1.0, 1.0, red_average=50.0, red_waiting=40.0, red_count=1.0)
    arrive(flows, state, bottleneck(weight=1e-9))
    assert flows["lost"][0] == 1.0
    assert flows["detection_in"][0] == pytest.approx(1.0 + 40.0 / (100.0 * flows["rtt"][0]))


def test_no_packet_follows_the_duplicate_acks_that_report_a_loss() -> None:
    """Three packets have left the queue since, and one still waits. So RED lets the repair pass."""
    lost = []
    for waiting in (4.0, 5.5):
        flows, state = train(0.0, 0.0, red_average=50.0, red_waiting=waiting, red_count=1.0)
        flows["at_red"], flows["in_flight"], flows["cwnd"] = True, 20.0, 20.0
        flows["most_holes"], flows["undetected"], flows["detection_in"] = math.inf, 1.0, 1e-12
        state["step"] = 1e-9
        arrive(flows, state, bottleneck(weight=1e-9))
        lost.append(bool(flows["resend_lost"][0]))
    assert lost == [False, True]


@jit
def swarm(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> float:
    """Let a train arrive of which RED drops every packet; returns how many packets then wait."""
    state[0].delay = 0.8  # 80 packets and those of this step wait, of which none is dropped yet
    random_drops.drop_at_random(flows, state[0], link, 0.0, 0.7)
    return state[0].red_waiting


def test_packets_that_red_drops_in_a_step_do_not_wait_after_it() -> None:
    """90 packets wait, RED drops all 40 that arrive, and the link sends 20. So 70 wait.

    The queueing delay then counts 60 packets. Before the drops it counted 100.
    """
    flows, state = train(40.0, 20.0, red_average=50.0, red_waiting=90.0, red_count=1.0)
    flows["rtt"], flows["in_flight"], flows["in_train"] = 0.1, 110.0, True
    assert swarm(flows, state, bottleneck(weight=0.0)) == pytest.approx(70.0)


@pytest.mark.parametrize("alike", [True, False])
def test_at_red_a_sender_hears_of_a_loss_when_three_later_packets_have_returned(
    *, alike: bool
) -> None:
    """The three packets follow the lost one back to back at equal RTTs, else at the flow's rate."""
    flows, state = train(1.0, 1.0, red_average=50.0, red_waiting=40.0, red_count=1.0)
    flows["at_red"], flows["in_train"], flows["in_flight"] = True, alike, 20.0
    arrive(flows, state, bottleneck(weight=1e-9))
    between = 1.0 / 100.0 if alike else flows["rtt"][0] / 20.0
    assert flows["hears_in"][0] == pytest.approx(flows["rtt"][0] + 40.0 / 100.0 + 3.0 * between)


@pytest.mark.parametrize(
    ("law", "late", "measured"),  # the share of the three Vegas flows in ns-2 2.35, 20 runs
    [("cubic", True, 0.535), ("sack", False, 0.568)],
)
def test_vegas_with_delayed_acks_beside_flows_of_a_longer_rtt(
    law: str, measured: float, *, late: bool
) -> None:
    """The standard errors of ns-2 are 0.005 and 0.007.

    If no packets waited at receivers, and if Vegas did not count one packet less at an odd window,
    Vegas would get 0.63 and 0.66.
    """
    link = Link(2500.0, buffer=200.0, queue=Red(10.0, 60.0, gentle=True))
    flows = (
        Flow("vegas", 0.03, count=3, variant="ns2", delayed_ack=True),
        Flow(law, 0.09, count=2, variant="ns2", delayed_ack=late),
    )
    rates = run(Scenario((link,), flows, run=Run(100.0, 20.0, runs=20)), math.inf).throughput
    assert rates[:3].sum() / 2500.0 == pytest.approx(measured, abs=0.04)


@pytest.mark.parametrize(("law", "measured"), [("cubic", 0.459), ("sack", 0.488)])
def test_vegas_with_delayed_acks_beside_flows_without(law: str, measured: float) -> None:
    """The share of three Vegas flows in ns-2 2.35, 20 runs: standard errors 0.003 and 0.006.

    Their receivers hold back packets, but RED does not drop packets because of this.
    """
    link = Link(2500.0, buffer=200.0, queue=Red(10.0, 60.0, gentle=True))
    flows = (
        Flow("vegas", 0.05, count=3, variant="ns2", delayed_ack=True),
        Flow(law, 0.05, count=2, variant="ns2"),
    )
    found = predict(Scenario((link,), flows, run=Run(100.0, 20.0, runs=20)), "fluid")
    assert found.throughput[:3].sum() / 2500.0 == pytest.approx(measured, abs=0.03)
    [acks] = [a for a in found.assumptions if a.name == "vegas-acks-undelayed"]
    assert acks.holds


def test_no_more_packets_wait_at_red_than_are_in_flight() -> None:
    """Otherwise a queue that no ACK can shorten would keep RED's average high for ever."""
    flows, state = train(2.0, 1.0, red_waiting=40.0)
    flows["in_flight"], flows["undetected"] = 12.0, 7.0
    arrive(flows, state, bottleneck(weight=0.0))
    assert state["red_waiting"][0] == 5.0


@pytest.mark.parametrize(
    ("law", "low", "fails"),
    [("cubic", 3.0, True), ("sack", 3.0, False), ("cubic", 30.0, False)],
)
def test_a_prediction_says_that_it_lacks_how_cubic_repairs_losses_at_red(
    law: str, low: float, *, fails: bool
) -> None:
    """CUBIC gets 370 packets/s in ns-2, mean over six runs, and more than 600 in ``fluid``.

    With a long queue the link is busy in both. SACK gets the same in both within 1 %.
    """
    queue = Red(low, 3.3 * low, 0.14, weight=0.0011, gentle=True)
    link = Link(700.0, buffer=8.0 * low, queue=queue)
    rtt = 0.2 if low < 10.0 else 0.04
    s = Scenario((link,), (Flow(law, rtt, variant="ns2"),), run=Run(90.0, 30.0, runs=6))
    said = [a for a in predict(s, "fluid").broken if a.name == "whole-stack"]
    assert [a.detail for a in said] == fails * [
        "the equations lack how ns-2's CUBIC sends packets again after a recovery at RED"
    ]


def test_at_red_the_papers_vegas_lacks_the_timeouts_of_ns2s() -> None:
    """ns-2, 3 runs: 14,390 packets/s (standard error 38); without timeouts 30,870."""
    red = Red(5.0, 20.0, max_probability=0.1, weight=0.002, gentle=True)
    link, timing = Link(34592.6, buffer=61.0, queue=red), Run(duration=30.0, warmup=10.0)

    def said(variant: str, queue: Red | DropTail = red) -> bool | None:
        flow = Flow("vegas", 0.0106, alpha=6.0, beta=6.0, variant=variant)
        found = predict(Scenario((replace(link, queue=queue),), (flow,), run=timing), "fluid")
        return {a.name: a.holds for a in found.assumptions}["recovery-as-taken"]

    assert said("paper") is False
    assert said("ns2") is True
    assert said("paper", DropTail()) is True


@pytest.mark.parametrize(("new", "early"), [(0.0, False), (2.0, False), (3.0, True)])
def test_new_packets_in_flight_tell_early_of_the_losses_of_a_burst(
    new: float, *, early: bool
) -> None:
    """161803 ``red/8``: ns-2 detects the losses after 1.9 RTTs with 14 such packets, else 2.9.

    The burst fills the buffer. The packets that the ACKs of the new ones release wait behind it.
    One more packet counts as in flight: the one whose ACK has released the burst.
    """
    flows, state = bursting(150.0), link_state(step=0.01, delay=1.5)
    flows["in_flight"] = 150.0 + 1.0 + new
    burst(flows, state, bottleneck(room=100.0, min_threshold=90.0), 0.0)
    heard = flows["detection_in"][0] * (0.1 + 1.5)
    assert (heard == pytest.approx(0.1 + 1.0 + 0.03)) == early
    assert early or heard >= 0.1 + 1.5
