"""Trains of slow start that arrive at RED in ``fluid``.

By hand against ns-2's queue/red.cc, and against runs of ns-2.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.fluid.red_link import arrive, bottleneck, bursting, link_state, train
from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.sampled import drops, random_drops
from vegasmodel.engines.fluid.sampled.records import NEVER, Bottleneck, LinkState, Sender
from vegasmodel.engines.tables import Table, jit
from vegasmodel.predictor import predict
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario


@pytest.mark.parametrize(("packets", "transmissions"), [(60, 30), (90, 60)])
def test_the_queue_grows_by_one_packet_with_each_ack_of_slow_start(
    packets: int, transmissions: int
) -> None:
    """30 ACKs release two packets each, or three if each acknowledges two. The link sends the rest.

    When the next ACK comes, the link has sent all but one of them.
    """
    flows, state = train(packets, transmissions)
    arrive(flows, state, bottleneck(weight=0.002, max_probability=1e-9))
    assert flows["lost"][0] == 0.0
    average = 0.0
    for k in range(packets):
        average += 0.002 * (k * 30.0 / packets - average)
    assert state["red_average"][0] == pytest.approx(average, rel=1e-12)
    assert state["red_waiting"][0] == pytest.approx(30.0)


def test_a_train_of_slow_start_above_the_threshold_passes_at_the_link_s_rate() -> None:
    """red.cc (``enque``): above the upper threshold all are dropped, except at a short queue.

    A packet that finds at most one waiting passes, and so does the next one (``edv_.old``).
    """
    flows, state = train(300.0, 150.0, red_average=20.0)
    arrive(flows, state, bottleneck(weight=1e-9, max_probability=1e-9))
    queue, dropped, old = 0.0, 0, False
    for _ in range(300):
        passes, old = queue <= 1.0 or not old, queue > 1.0
        dropped += not passes
        queue = max(queue + passes - 0.5, 0.0)
    assert flows["lost"][0] == flows["undetected"][0] == dropped
    assert 140 < dropped < 152


def test_the_average_falls_while_the_link_is_idle_between_two_trains() -> None:
    """red.cc (``enque``): a packet that finds an idle link lowers the average first."""
    flows, state = train(0.0, 300.0, red_average=8.0)
    arrive(flows, state, bottleneck(weight=0.002))
    assert state["red_average"][0] == pytest.approx(8.0 * (1.0 - 0.002) ** 300, rel=1e-12)


def test_the_next_train_of_slow_start_begins_when_the_first_packet_of_this_one_returns() -> None:
    """The first packet of the train found an empty queue, although 64 packets follow it at once.

    They wait for up to 0.06 s. The RTT is 0.1 s, and slow start begins at 0 s with one packet.
    """
    link = Link(1000.0, buffer=200.0, queue=Red(60.0, 180.0))
    s = Scenario(
        (link,), (Flow("newreno", 0.1, variant="ns2", send_jitter=0.0),), run=Run(0.85, 0.0)
    )
    window = run(s, 0.001, runs=1).window[:, 0]
    assert window[698] == pytest.approx(64.0, abs=1e-6)
    assert window[750] > 100.0
    assert window[799] == pytest.approx(128.0, abs=1e-6)
    assert window[820] > 140.0


@pytest.mark.parametrize("law", ["reno", "newreno", "sack", "tahoe"])
def test_windows_in_slow_start_grow_in_steps_as_in_ns2(law: str) -> None:
    """1, 2, 4 .. 32 packets: the window doubles while the ACKs of a round trip arrive.

    A link sends the 32 packets in 0.032 s, and the RTT is 0.2 s. The window is the same from the
    last of the ACKs on until the next round trip begins.
    """
    link = Link(1000.0, buffer=200.0, queue=Red(30.0, 100.0))
    s = Scenario((link,), (Flow(law, 0.2, variant="ns2", send_jitter=0.0),), run=Run(1.2, 0.0))
    window = run(s, 0.001, runs=1).window[:, 0]
    for round_trip in range(1, 6):
        calm = window[200 * round_trip + 40 : 200 * round_trip + 190]
        np.testing.assert_allclose(calm, 2.0**round_trip, rtol=1e-6)


@jit
def overflow_then_arrive(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> None:
    """Let the packets of a step arrive at the buffer, and then at RED."""
    drops.overflow(flows, state[0], link, False)
    random_drops.drop_at_random(flows, state[0], link, 0.0, 0.0)


def test_packets_of_vegas_s_slow_start_that_find_no_room_do_not_reach_red() -> None:
    """8 of 10 packets find the buffer full. RED drops those that arrive: the other 2, not all 10.

    RED's average is above its upper threshold, and packets wait.
    """
    flows, state = bursting(0.0), link_state(step=0.05, red_average=50.0, red_waiting=4.0)
    state["red_count"] = 1.0
    flows["active"], flows["in_slow_start"], flows["decides_slow_start"] = True, True, True
    flows["cwnd"], flows["in_flight"], flows["rtt"] = 40.0, 40.0, 1.0
    flows["extra"], flows["arrives"], flows["burst"], flows["interval"] = 10.0, 10.0, 10.0, NEVER
    overflow_then_arrive(flows, state, bottleneck(room=2.0, weight=1e-9))
    assert flows["undetected"][0] == flows["lost"][0] == 10.0


@jit
def overflow(flows: Table[Sender], state: Table[LinkState], link: Bottleneck) -> None:
    """Drop the packets of a step that find the buffer full."""
    drops.overflow(flows, state[0], link, False)


@pytest.mark.parametrize("red", [1, 0])
def test_packets_of_vegas_s_slow_start_that_find_no_room_count_in_red_s_average(red: int) -> None:
    """red.cc (``enque``): the average changes before the limit is tested, and ``count`` becomes 0.

    Each of the 8 packets finds 2 waiting.
    """
    flows, state = bursting(0.0), link_state(red_average=1.0, red_count=9.0, red_passes=0.5)
    flows["active"], flows["in_slow_start"], flows["decides_slow_start"] = True, True, True
    flows["in_flight"], flows["rtt"] = 40.0, 1.0
    flows["extra"], flows["burst"], flows["interval"] = 10.0, 10.0, NEVER
    overflow(flows, state, bottleneck(room=2.0, weight=0.01, red=red))
    average = 1.0
    for _ in range(8 * red):
        average += 0.01 * (2.0 - average)
    assert flows["lost"][0] == 8.0
    assert state["red_average"][0] == pytest.approx(average, rel=1e-12)
    assert (state["red_count"][0], state["red_passes"][0]) == ((0.0, 1.0) if red else (9.0, 0.5))


@pytest.mark.parametrize(
    ("capacity", "rtt", "buffer", "alpha", "rate", "error"),
    [(4665.0, 0.282, 9.0, 3.0, 443.7, 1.4), (1157.0, 0.212, 17.0, 2.0, 784.5, 2.8)],
)
def test_slow_start_of_vegas_overflows_a_small_buffer_at_red_as_in_ns2(
    capacity: float, rtt: float, buffer: float, alpha: float, rate: float, error: float
) -> None:
    """ns-2, 5 runs: ``rate`` and its standard error, in packets/s, while the window still grows.

    A window that doubles to 32 packets brings 16 of them into the queue. RED's average is still
    low, but the buffer holds fewer. Without these losses, ``fluid`` gave 834 and 949 packets/s.
    """
    red = Red(2.0, 6.0, max_probability=0.1, weight=0.002)
    flow = Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2")
    run_ = Run(duration=60.0, warmup=20.0, runs=5, start_jitter=0.5)
    found = run(Scenario((Link(capacity, buffer=buffer, queue=red),), (flow,), run=run_))
    np.testing.assert_allclose(found.throughput, rate, rtol=0.02, atol=2.0 * error)


@pytest.mark.parametrize(
    ("capacity", "rtt", "buffer", "alpha"),
    [(4665.0, 0.282, 9.0, 3.0), (1157.0, 0.212, 17.0, 2.0), (2000.0, 0.15, 25.0, 3.0)],
)
def test_slow_start_of_linux_s_vegas_overflows_a_small_buffer_at_red_as_in_rounds(
    capacity: float, rtt: float, buffer: float, alpha: float
) -> None:
    """Linux's Vegas doubles its window in each round trip, so its slow start sends bursts, too."""
    red = Red(2.0, 6.0, max_probability=0.1, weight=0.002)
    flow = Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="linux")
    timing = Run(duration=60.0, warmup=20.0, runs=5, start_jitter=0.5)
    s = Scenario((Link(capacity, buffer=buffer, queue=red),), (flow,), run=timing)
    found, other = run(s).throughput, predict(s, "rounds").throughput
    np.testing.assert_allclose(found, other, rtol=0.05)


DEEP = (  # slow start goes far beyond RED's upper threshold: capacity, buffer, RTT, RED
    (1083.0, 263.0, 0.28829, Red(3.4618, 11.1317, 0.2849, weight=0.0016882)),
    (1500.0, 300.0, 0.12, Red(5.0, 15.0, 0.1, weight=0.002)),
    (1500.0, 300.0, 0.12, Red(5.0, 15.0, 0.1, weight=0.002, gentle=True)),
    (2000.0, 400.0, 0.15, Red(10.0, 30.0, 0.1, weight=0.002, gentle=True)),
)


@pytest.mark.parametrize(
    ("place", "laws", "measured", "within"),
    [
        (0, ["reno"], [255.0], 0.2),  # without bursts of slow start: 841
        (0, ["sack"], [429.0], 0.05),  # 513
        (1, ["reno"], [965.0], 0.05),  # 849
        (1, ["vegas", "newreno"], [639.0, 510.0], 0.1),  # 1286 and 8
        (2, ["newreno"], [1022.0], 0.05),  # 14
        (3, ["newreno"], [1326.0], 0.05),  # 7
    ],
)
def test_slow_start_far_beyond_the_thresholds(
    place: int, laws: list[str], measured: list[float], within: float
) -> None:
    """ns-2, means over 10 runs (standard errors at most 52): RED's average follows the bursts.

    In slow start the queue is long in a part of each round trip, even before the windows fill the
    link. ``within`` is a part of the capacity.
    """
    capacity, buffer, rtt, queue = DEEP[place]
    flows = tuple(
        Flow(law, rtt * (1.0 + 0.1 * i), alpha=3.0, beta=3.0, variant="ns2", send_jitter=0.0)
        if law == "vegas"
        else Flow(law, rtt * (1.0 + 0.1 * i), variant="ns2", send_jitter=0.0)
        for i, law in enumerate(laws)
    )
    link = Link(capacity, buffer=buffer, queue=queue)
    s = Scenario((link,), flows, run=Run(40.0, 10.0, runs=10, seed=3, start_jitter=0.5))
    np.testing.assert_allclose(run(s).throughput, measured, atol=within * capacity)


def test_a_sender_whose_retransmission_red_drops_waits_for_its_timer() -> None:
    """As in a trace of ns-2: RED's average is still above its upper threshold, 11.1 packets.

    The sender has SACK, so its recovery could repair all losses. The timer halves ssthresh again.
    """
    capacity, buffer, rtt, queue = DEEP[0]
    link = Link(capacity, buffer=buffer, queue=queue)
    flows = (Flow("sack", rtt, variant="ns2", send_jitter=0.0),)
    s = Scenario((link,), flows, run=Run(40.0, 10.0, runs=3, seed=3, start_jitter=0.5))
    assert run(s).timeouts[0] == 3.0


@pytest.mark.parametrize(
    ("capacity", "rtt", "low", "measured"), [(586.0, 0.1389, 13.0, 10.0), (1000.0, 0.1, 15.0, 98.0)]
)
def test_after_its_slow_start_newreno_repairs_hole_by_hole_as_in_ns2(
    capacity: float, rtt: float, low: float, measured: float
) -> None:
    """ns-2, means over 10 runs from 5 s to 20 s (standard errors 0 and 85): 10 and 98 packets/s.

    NewReno loses more than 200 packets, and repairs one in each round trip. Its third duplicate ACK
    comes when the queue has emptied, so RED lets the first repair pass. If the repair came earlier,
    RED would drop it, and NewReno would wait for its timer: 507 and 861 packets/s.
    """
    flows = (Flow("newreno", rtt, variant="ns2", send_jitter=0.0),)
    link = Link(capacity, buffer=100.0, queue=Red(low, 3.0 * low))
    s = Scenario((link,), flows, run=Run(20.0, 5.0, runs=10, seed=3, start_jitter=0.5))
    assert run(s).throughput[0] == pytest.approx(measured, abs=0.1 * capacity)


@pytest.mark.parametrize(
    ("capacity", "rtt", "low", "alpha", "part"),
    [
        (818.0, 0.1111, 16.0, 5.0, 0.61),  # before: 0.28
        (531.0, 0.1447, 5.0, 4.0, 0.01),  # 0.43
        (848.0, 0.1875, 16.0, 3.0, 0.02),  # 0.61
        (2811.0, 0.0929, 14.0, 2.0, 0.64),  # 0.29
    ],
)
def test_red_lets_newreno_s_first_repair_pass_in_the_same_networks_as_ns2(
    capacity: float, rtt: float, low: float, alpha: float, part: float
) -> None:
    """NewReno's part of the link from 7 s to 13 s in ns-2, mean over 10 runs.

    In its slow start NewReno loses more than 150 packets. If RED also drops the first packet that
    it sends again, it waits for its timer, and then sends in slow start. Otherwise it repairs one
    loss in each round trip. In ns-2 all 10 runs of a network do the same: the queue and its average
    decide, and they hardly depend on chance.
    """
    flows = (
        Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow("newreno", rtt, variant="ns2", send_jitter=0.0),
    )
    link = Link(capacity, buffer=100.0, queue=Red(low, 3.0 * low))
    s = Scenario((link,), flows, run=Run(13.0, 7.0, runs=10, seed=2, start_jitter=0.5))
    assert run(s).throughput[1] == pytest.approx(part * capacity, abs=0.12 * capacity)


FOUR = Scenario(
    (Link(3000.0, buffer=266.0, queue=Red(30.0, 115.0, 0.12, weight=0.0018, gentle=True)),),
    (Flow("newreno", 0.2, count=4, variant="ns2", send_jitter=0.0),),
    run=Run(duration=60.0, warmup=20.0, runs=10, seed=5, start_jitter=0.5),
)


def test_trains_of_four_flows_in_slow_start_lose_as_many_packets_as_in_ns2() -> None:
    """In the first 4 s ns-2 drops 249 packets, mean over 10 runs.

    When windows grew also while no ACK arrives, they were too large when the first trains met at
    the queue; about 1170 packets were lost.
    """
    seconds = replace(FOUR, run=replace(FOUR.run, duration=4.0, warmup=0.0))
    lost = [
        run(seconds.replace({"run.seed": seed}), 1.0, runs=1).lost[-1].sum() for seed in range(8)
    ]
    assert 249.0 / 1.6 < np.mean(lost) < 249.0 * 1.6


def test_after_slow_start_four_newreno_flows_share_the_link_as_in_ns2() -> None:
    """ns-2: 583 +- 21 packets/s each, mean over 10 runs; with too many losses it was 415.

    NewReno repairs one loss in each round trip, so many losses keep it busy for a long time. There
    are 40 runs of the model, because chance moves the mean over 10 runs by about 15 packets/s.
    """
    assert run(FOUR, runs=40).throughput.mean() == pytest.approx(583.0, rel=0.1)
