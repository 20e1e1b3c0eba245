"""CUBIC in ``rounds``, which runs ``tcp_cubic.c``: that of Linux 6.1, and for ns-2 that of 2.6."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks.accuracy_cubic import GOAL, case, in_ns3
from tests.fluid.records import sender
from tests.helpers import as_measured, kernel_runs
from vegasmodel.engines.rounds import bictcp
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.laws import grow
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.starts import start_times
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Link, Poisson, Red, Run, Scenario


def cubic(cwnd: float, ssthresh: float, stack: str = "linux") -> Any:
    """Linux's CUBIC before its first ACK."""
    record = sender("cubic", stack, decrease=717.0 / 1024.0, cwnd=cwnd, ssthresh=ssthresh)
    bictcp.reset(record, 0.0)
    return record


def climbs(f: Any, rtt: float, seconds: float) -> None:
    """Advance by this time, with evenly spaced ACKs, a window of them per round trip."""
    now = 0.0
    while now < seconds:
        bictcp.sample(f, rtt, now, f["next"], 1.0)
        bictcp.cong_avoid(f, 1.0, now)
        now += rtt / f["cwnd"]


def test_cubic_of_linux_is_back_at_the_lost_window_after_k() -> None:
    """RFC 9438 (2): K = cbrt(W_max (1 - beta)/C); in Linux it is earlier by the least RTT."""
    f = cubic(100.0, 70.0)
    bictcp.recalc_ssthresh(f, 100.0)
    f["cwnd"] = 70.0
    k, rtt = (100.0 * 0.3 / 0.4) ** (1.0 / 3.0), 0.2
    climbs(f, rtt, 0.5 * k - rtt)  # half way in time: an eighth of the fall is left
    assert abs(f["cwnd"] - (100.0 - 30.0 / 8.0)) <= 2.0
    f = cubic(100.0, 70.0)
    bictcp.recalc_ssthresh(f, 100.0)
    f["cwnd"] = 70.0
    climbs(f, rtt, k - rtt)
    assert 98.0 <= f["cwnd"] <= 100.0
    bictcp.recalc_ssthresh(f, 90.0)  # RFC 9438 4.7: a loss below the last W_max
    assert f["last_max"] == 76.0  # 90 (1024 + 717)/2048, in whole packets


def test_cubic_of_linux_climbs_slowly_after_a_timeout_whose_acks_gave_no_rtt() -> None:
    """tcp_cubic.c: without delay_min and W_max a packet takes 20 ACKs, or Reno's 15/8 windows."""
    f = cubic(4.0, 2.0)
    for k in range(7):
        bictcp.cong_avoid(f, 1.0, 1.0 + 0.1 * k)
    assert f["cwnd"] == 4.0


def test_cubic_of_linux_is_no_slower_than_its_reno() -> None:
    """RFC 9438 4.3: at a short RTT 3 (1 - beta)/(1 + beta) = 0.53 packets a round trip."""
    f = cubic(20.0, 14.0)
    bictcp.recalc_ssthresh(f, 20.0)
    f["cwnd"] = 14.0
    climbs(f, 0.01, 0.1)
    assert 14.0 + 0.53 * 10.0 - 2.0 <= f["cwnd"] <= 14.0 + 0.53 * 10.0 + 1.0


def test_cubic_of_ns2_competes_with_the_reno_of_another_beta() -> None:
    """CUBIC's beta is set to 717/1024 when beta_scale is computed already, from 819/1024 (0.8).

    So RFC 9438 4.3 gives 3 (1 - 0.8)/(1 + 0.8) = 1/3 of a packet a round trip.
    """
    f = cubic(40.0, 28.0, "ns2")
    bictcp.recalc_ssthresh(f, 40.0)
    f["cwnd"] = 28.0
    climbs(f, 0.01, 0.3)
    assert 28.0 + 30.0 / 3.0 - 2.0 <= f["cwnd"] <= 28.0 + 30.0 / 3.0 + 2.0


def test_cubic_of_ns2_sends_upon_the_first_duplicate_acks() -> None:
    """ns-2: 82 packets/s with room for two packets, where SACK has 22 because of its timeouts.

    ``Agent/TCP/Linux`` does not count packets in flight that SACK has reported, in any state.
    """
    scenario = Scenario(
        (Link(1000.0, buffer=2.0),), (Flow("cubic", 0.1, variant="ns2"),), run=Run(120.0, 40.0)
    )
    assert answer(scenario).throughput[0] > 0.5 * 82.0


@pytest.mark.parametrize(("rise", "ends"), [(0.0119, False), (0.0131, True)])
def test_slow_start_of_linux_ends_when_the_rtt_has_grown_by_an_eighth(
    rise: float, ends: bool
) -> None:
    """tcp_cubic.c: the least of nine samples of a round; between 4 and 16 ms, at 100 ms 12.5."""
    f = cubic(20.0, 1e9)
    f["next"] = 100.0
    bictcp.sample(f, 0.1, 1.0, 1.0, 1.0)
    f["next"] = 200.0
    for k in range(9):
        assert f["ssthresh"] == 1e9
        bictcp.sample(f, 0.1 + rise + 1e-3 * (k == 3), 2.0 + 0.01 * k, 101.0 + k, 1.0)
    assert bool(f["ssthresh"] == 20.0) is ends


@pytest.mark.parametrize(("gap", "ends"), [(0.0025, False), (0.0019, True)])
def test_slow_start_of_linux_ends_by_a_train_of_acks(gap: float, ends: bool) -> None:
    """tcp_cubic.c: ACKs at most 2 ms apart for half of the least RTT plus half a millisecond."""
    f = cubic(40.0, 1e9)
    f["next"] = 100.0
    for k in range(1, 30):
        bictcp.sample(f, 0.1, 1.0 + gap * k, float(k), 1.0)
    assert bool(f["ssthresh"] == 40.0) is ends


# ssthresh in the samples of the stored runs, before the flow's first loss
@pytest.mark.parametrize(
    ("name", "number", "flow", "seconds", "kernel"),
    [
        ("cubic-cubic 1/0", 0, 1, 0.4, 48.0),
        ("cubic-cubic 1/0", 1, 1, 0.4, 48.0),
        ("cubic-vegas 1/0", 0, 0, 1.5, 47.0),
        ("cubic-vegas 1/2", 0, 0, 0.65, 40.0),
    ],
)
def test_slow_start_of_cubic_ends_at_the_window_at_which_the_kernels_did(
    name: str, number: int, flow: int, seconds: float, kernel: float
) -> None:
    scenario = next(one for one in kernel_runs() if one.name == name)
    starts = start_times(scenario, number)
    until = Run(duration=float(starts[flow]) + seconds, warmup=0.0)
    flows = run(dataclasses.replace(scenario, run=until), starts=starts).flows
    assert flows["retransmits"][flow] == 0.0
    assert flows["ssthresh"][flow] == pytest.approx(kernel, abs=1.0)


@pytest.mark.parametrize(
    ("window", "kernel"), [(1, 1388), (4, 2203), (9, 2889), (21, 3832), (1000, 13897)]
)
def test_the_cube_root_of_the_kernel_is_not_exact(window: int, kernel: int) -> None:
    """K in 1024ths of a second, by the kernel's C code (cubic_root in tcp_cubic.c)."""
    assert bictcp.cubic_root(2**40 // 410 * window) == kernel


class Kernel(NamedTuple):
    """The constants of a kernel's tcp_cubic.c."""

    hz: int
    ahead: int  # ticks of delay_min, which the target looks ahead
    beta_scale: int
    delayed_ack: int  # in 16ths
    least: int  # value of cnt
    late: bool  # growth at the ACK after ``cnt``


def windows(kernel: Kernel, cwnd: int, last_max: int, times: Floats) -> Iterator[int]:
    """The window after the ACK at each of the ``times``, as bictcp_update computes it."""
    ack_cnt = cnt = cwnd_cnt = last_cwnd = last_time = 0
    reno, epoch = cwnd, None
    k = bictcp.cubic_root(2**40 // 410 * (last_max - cwnd))
    for now in times:
        ticks = int(now * kernel.hz)
        ack_cnt += 1
        if last_cwnd != cwnd or ticks - last_time > kernel.hz // 32:
            if epoch is None or ticks != last_time:
                epoch = ticks if epoch is None else epoch
                last_cwnd, last_time = cwnd, ticks
                t = (ticks - epoch + kernel.ahead << 10) // kernel.hz
                target = last_max + (1 if t >= k else -1) * (410 * abs(k - t) ** 3 >> 40)
                cnt = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
            per = cwnd * kernel.beta_scale >> 3
            while ack_cnt > per:
                ack_cnt, reno = ack_cnt - per, reno + 1
            if reno > cwnd:
                cnt = min(cnt, cwnd // (reno - cwnd))
            cnt = max(16 * cnt // kernel.delayed_ack, kernel.least)
        grows = cwnd_cnt >= cnt
        if grows:
            cwnd_cnt, cwnd = 0, cwnd + 1
        if not (grows and kernel.late):
            cwnd_cnt += 1
        if not kernel.late:
            cwnd, cwnd_cnt = cwnd + cwnd_cnt // cnt, cwnd_cnt % cnt
        yield cwnd


@pytest.mark.parametrize(
    ("stack", "kernel", "window"),
    [
        ("linux", Kernel(250, 14, 15, 16, 2, late=False), 9),  # Linux 6.1
        ("ns2", Kernel(1000, 0, 23, 31, 1, late=True), 10),  # 2.6; delay_min needs timestamps
    ],
)
def test_cubic_grows_at_the_acks_of_the_kernel(stack: str, kernel: Kernel, window: int) -> None:
    """tcp_cubic.c in whole numbers, over ACKs every 5 ms after a loss at a window of 13."""
    f = cubic(window, 9.0, stack)
    f["last_max"] = 13.0
    if kernel.ahead:
        f["delay_min"] = 0.0534
    times = 1.0011 + 0.005 * np.arange(120)
    for now, expected in zip(times, windows(kernel, window, 13, times), strict=True):
        grow(f, 1.0, now)
        assert f["cwnd"] == expected, now
    assert expected > 12


def test_after_a_timeout_cubic_of_ns2_grows_by_a_packet_in_50_acks() -> None:
    """bictcp_update of Linux 2.6: ``cnt = 50`` while ``loss_cwnd`` is 0; then 50 * 16 / 31 = 25.

    Linux 6.1 has at most 20 instead. With ``bictcp_cong_avoid`` the window grows at the ACK after.
    """
    f = cubic(10, 9.0, "ns2")
    f["last_max"] = 0.0
    windows = []
    for now in 1.0011 + 0.0001 * np.arange(53):
        grow(f, 1.0, now)
        windows.append(float(f["cwnd"]))
    assert windows == [10.0] * 25 + [11.0] * 26 + [12.0] * 2


@pytest.mark.parametrize(
    ("capacity", "rtt", "loss", "there"),
    [(875.0, 0.035, 0.00786, 320.4), (856.0, 0.052, 0.05537, 66.6), (1382.0, 0.152, 0.03663, 32.8)],
)
def test_cubic_loses_packets_at_random_as_in_ns2(
    capacity: float, rtt: float, loss: float, there: float
) -> None:
    """Rates of ns-2, pkt/s: means of five runs of 300 s (``benchmarks/accuracy_loss.py``)."""
    flow = Flow("cubic", rtt, variant="ns2", send_jitter=0.0)
    scenario = Scenario((Link(capacity, buffer=60.0, loss=loss),), (flow,), run=Run(300.0, 60.0))
    assert answer(scenario).throughput[0] == pytest.approx(there, rel=0.12)


@pytest.mark.parametrize(("ecn", "there"), [(False, 854.0), (True, 823.0)])
def test_cubic_of_ns2_halves_its_rate_under_red(ecn: bool, there: float) -> None:
    """Rates of ns-2, pkt/s: means of three runs.  A sudden pause would let the queue drain sooner.

    Then RED would drop less, and CUBIC would get 940 packets/s.
    """
    flow = Flow("cubic", 0.15, variant="ns2", send_jitter=0.0)
    link = Link(1000.0, buffer=100.0, queue=Red(10.0, 30.0, ecn=ecn))
    scenario = Scenario((link,), (flow,), run=Run(300.0, 40.0, runs=3, start_jitter=0.3))
    assert answer(scenario).throughput[0] == pytest.approx(there, rel=0.06)


@pytest.mark.parametrize(
    ("rtt", "wait", "there"), [(0.15, 0.0015, (1318, 19)), (0.05, 0.003, (957, 10))]
)
def test_cubic_of_ns2_that_waits_does_not_halve_its_rate(
    rtt: float, wait: float, there: tuple[float, float]
) -> None:
    """ns-2's mean of eight runs, and its standard error.

    If the sender paused until its window had room again, it would get 870 and 1220 packets/s.
    """
    flow = Flow("cubic", rtt, variant="ns2", send_jitter=wait)
    run = Run(duration=100.0, warmup=20.0, runs=8, start_jitter=0.5)
    found = answer(Scenario((Link(1676.0, buffer=6.0),), (flow,), run=run)).throughput[0]
    assert found == pytest.approx(there[0], rel=0.06, abs=3.0 * there[1])


def test_cubic_of_ns2_grows_only_at_acks_that_find_its_window_full() -> None:
    """ns-2's source sends 47.5 +- 1.6 packets again in 25 s, the mean of 24 runs.

    It waits for up to two transmission times before it sends, so some ACKs arrive while it waits.
    If these ACKs grew the window, too, slow start would lose more packets: 72 would be sent again.
    """
    flow = Flow("cubic", 0.05, variant="ns2", send_jitter=0.02)
    times = Run(duration=25.0, warmup=5.0, start_jitter=0.5)
    scenario = Scenario((Link(100.0, buffer=15.0),), (flow,), run=times)
    again = [
        run(scenario, starts=start_times(scenario, k), seed=k + 1).flows["retransmits"].sum()
        for k in range(8)
    ]
    assert np.mean(again) == pytest.approx(47.5, rel=0.12)


def test_cubic_that_waits_sends_at_each_ack_with_sack_blocks() -> None:
    """ns-2's means of 10 runs: CUBIC of a long RTT beside Vegas; CUBIC's loss rate is 0.00152.

    The blocks delay each ACK of a recovery alike, by less than the wait.  If the waits counted from
    the delayed ACKs, but ended by the time at which the next ACK is due without its blocks, some
    ACKs would come during a wait and release nothing.  CUBIC would then leave room in the buffer
    during its recovery, would lose less, and Vegas would get 99 packets/s.
    """
    flows = (
        Flow("vegas", 0.008, name="near", variant="ns2", alpha=1.0, beta=3.0),
        Flow("cubic", 0.4, name="far", variant="ns2"),
    )
    scenario = Scenario((Link(1200.0, buffer=100.0),), flows, run=Run(duration=120.0, warmup=40.0))
    found = answer(scenario, runs=20)
    spread = np.hypot((8.9, 10.3), np.asarray(found.throughput_se))
    assert np.all(np.abs(found.throughput - np.array((205.1, 977.1))) < 3.0 * spread)
    assert np.all(spread < 15.0)
    assert found.loss_rate[1] == pytest.approx(0.00152, rel=0.15)


def test_windows_of_cubic_stay_whole_with_the_defaults_of_ns2_2_35() -> None:
    """ns-2's mean of 24 runs is 36.4 packets/s; with windows that are no whole numbers, 28."""
    flow = Flow("cubic", 0.1, variant="ns2")
    link = Link(1000.0, buffer=100.0, loss=0.06)
    run = Run(duration=100.0, warmup=20.0, runs=16, start_jitter=0.5, ns2_defaults="2.35")
    found = answer(Scenario((link,), (flow,), run=run)).throughput[0]
    assert found == pytest.approx(36.4, rel=0.15)


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_short_cubic_flows_that_arrive_at_random_deliver_what_arrives(variant: str) -> None:
    """ns-2's mean of eight runs is 99.7 +- 2.1 packets/s."""
    flow = Flow("cubic", 0.05, variant=variant, size=20.0, arrivals=Poisson(5.0))
    case = Scenario((Link(1000.0, buffer=20.0),), (flow,), run=Run(100.0, 20.0, runs=8))
    assert answer(case).throughput[0] == pytest.approx(99.7, rel=0.08)


# ns-2's rates of the first 20 cases of CUBIC against CUBIC: python -m benchmarks.accuracy_cubic
CUBICS = [
    (114, 133),
    (189, 283),
    (783, 834),
    (144, 147),
    (448, 497),
    (811, 817),
    (395, 535),
    (181, 179),
    (136, 155),
    (745, 908),
    (135, 140),
    (166, 216),
    (619, 564),
    (1158, 1215),
    (439, 552),
    (843, 822),
    (160, 323),
    (140, 186),
    (564, 767),
    (150, 217),
]


def test_two_cubics_share_by_rounds_as_in_ns2_on_average() -> None:
    """Which of the two gets more hangs on each loss, so single cases err by up to 0.12."""
    errors = []
    for k, measured in enumerate(CUBICS):
        rates = answer(case("cubic", k, waits=False)).throughput
        errors.append(rates[0] / rates.sum() - measured[0] / sum(measured))
    assert np.mean(np.abs(errors)) < GOAL
    assert abs(np.mean(errors)) < 2.0 * np.std(errors) / np.sqrt(len(errors))


# ns-2's rates of the fifth case against each law: python -m benchmarks.accuracy_cubic
@pytest.mark.parametrize(
    ("law", "measured"),
    [("reno", (362, 109)), ("sack", (370, 100)), ("vegas", (900, 271))],
)
def test_cubic_takes_by_rounds_the_share_that_it_takes_in_ns2(
    law: str, measured: tuple[int, int]
) -> None:
    rates = answer(case(law, 4, waits=False)).throughput
    assert abs(rates[0] / rates.sum() - measured[0] / sum(measured)) < GOAL


def test_cubic_takes_from_vegas_by_rounds_what_it_takes_in_ns3() -> None:
    """The fifth case: python -m benchmarks.accuracy_cubic --engine ns3 --against vegas."""
    rates = answer(in_ns3(case("vegas", 4))).throughput
    assert abs(rates[0] / rates.sum() - 818 / (818 + 319)) < GOAL


@pytest.mark.parametrize(
    ("rtt", "measured", "se"), [(0.1, 665.61, 0.10), (0.2, 468.1, 5.8)], ids=["100 ms", "200 ms"]
)
def test_cubic_alone_under_red(rtt: float, measured: float, se: float) -> None:
    """ns-2's throughput: 10 runs.

    RED drops packets during a whole round trip, so a second recovery follows the first one. At its
    beginning more than a window is in flight, and ns-2's CUBIC sends nothing at first. After 200 ms
    more than three ranges of packets have arrived, and it sends most of them again.
    """
    link = Link("10 Mbit/s", buffer=50.0, delay=0.001, queue=Red(5.0, 15.0))
    flow = Flow("cubic", rtt)
    run = Run(duration=240.0, warmup=50.0, start_jitter=1.0)
    found = answer(Scenario((link,), (flow,), packet_size=1500.0, run=run), runs=6)
    assert as_measured(found, measured, se, 0.01 * measured)


def test_cubic_counts_lost_packets_by_their_places_as_in_ns2() -> None:
    """scoreboard1.cc: a packet is lost if SACK reports one that comes four places after it.

    Packets that reach the queue, that it drops, and that the sources send again in 40 s of ns-2.
    """
    flows = tuple(
        Flow(law, 0.01, variant="ns2", delayed_ack=True, send_jitter=0.0)
        for law in ("sack", "cubic")
    )
    found = run(Scenario((Link(1000.0, buffer=5.0),), flows, run=Run(40.0, 1.0))).flows
    assert tuple(found["sent"]) == (19512.0, 18506.0)
    assert tuple(found["lost"]) == tuple(found["retransmits"]) == (236.0, 234.0)


def test_cubic_waits_for_a_timeout_if_nothing_tells_that_a_retransmission_is_lost() -> None:
    """ns-2's four sources send 1330 packets again in 60 s, the mean of 4 runs.

    If a sender knew at once that its only packet is lost again, they would send 2433 again.
    """
    flow = Flow("cubic", 0.0146, count=4, variant="ns2")
    scenario = Scenario((Link(116.8, buffer=2.0),), (flow,), run=Run(60.0, 20.0, start_jitter=0.5))
    again = [
        run(scenario, starts=start_times(scenario, k), seed=k + 1).flows["retransmits"].sum()
        for k in range(4)
    ]
    assert np.mean(again) == pytest.approx(1330.0, rel=0.12)


def test_cubic_beside_reno_has_the_cycle_of_ns2() -> None:
    """ns-2: 91.1 and 158.7 packets/s, 259 and 211 packets sent again from 40 to 120 s."""
    flows = tuple(Flow(law, 0.02, variant="ns2", send_jitter=0.0) for law in ("reno", "cubic"))
    found = answer(Scenario((Link(250.0, buffer=10.0),), flows, run=Run(120.0, 40.0)), runs=1)
    assert found.throughput == pytest.approx([91.1, 158.7], rel=0.01)
    assert found.retransmits == pytest.approx([259.0, 211.0], abs=5.0)


def test_cubic_beside_sack_with_late_acks_and_random_waits_gets_its_part_of_ns2() -> None:
    """ns-2: 0.20 +- 0.02 of 976 packets/s for SACK, the mean of 5 runs of 120 s."""
    flows = tuple(Flow(law, 0.01, variant="ns2", delayed_ack=True) for law in ("sack", "cubic"))
    found = answer(Scenario((Link(1000.0, buffer=5.0),), flows, run=Run(120.0, 40.0)), runs=5)
    assert found.throughput.sum() == pytest.approx(976.0, rel=0.01)
    assert found.throughput[0] / found.throughput.sum() == pytest.approx(0.20, abs=0.06)


def test_a_window_limit_ends_the_growth_of_ns2s_cubic() -> None:
    """ns-2's cwnd is then one packet above the limit, so a loss lowers it below the limit.

    ns-2's throughput is 192.4 +- 0.6 packets/s, the mean of 10 runs.
    """
    flow = Flow("cubic", 0.1, variant="ns2", max_window=20)
    link = Link(1000.0, loss=0.001)
    case = Scenario((link,), (flow,), run=Run(duration=150.0, warmup=50.0, runs=10))
    found = answer(case).throughput
    assert found[0] == pytest.approx(192.4, rel=0.01)
