"""Losses and timers of ``rounds``: against stored ns-2 runs and by hand."""

import dataclasses
import math

import numba
import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.records import sender
from tests.helpers import exact
from vegasmodel.engines.rounds.acks import add_hole, fill_holes
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.laws import grow, window
from vegasmodel.engines.rounds.losses import _receive
from vegasmodel.engines.rounds.random_drops import draw_next_loss, random_drops
from vegasmodel.engines.rounds.run import Simulation, run
from vegasmodel.engines.rounds.scoreboard import forgotten
from vegasmodel.engines.rounds.state import (
    COLUMNS,
    FLOW,
    LINK,
    LOST_AGAIN,
    NOT_RESENT,
    RECOVERY,
    array,
)
from vegasmodel.engines.rounds.timer import back_off, restart_timer
from vegasmodel.engines.starts import start_times
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

# Capacity, buffer, RED's lower threshold or None, rtt, alpha, number of Vegas sources, the other
# law; ns-2's ratio Vegas : other, a mean over 5 or 20 runs (benchmarks/reference).
NS2_RUNS = {
    "Reno in timeouts": ((1974.0, 18.0, None, 0.0307, 5, 3, "reno"), 597.08 / 173.12),
    "Reno, packets sent twice": ((2131.0, 77.0, None, 0.1989, 5, 1, "reno"), 357.4 / 1637.9),
    "RED, bursts": ((425.0, 100.0, 18.0, 0.0488, 2, 1, "newreno"), 56.60 / 368.35),
    "RED": ((235.0, 100.0, 19.0, 0.1417, 5, 1, "newreno"), 65.50 / 169.44),
}


def _scenario(name: str) -> Scenario:
    capacity, buffer, low, rtt, alpha, count, law = NS2_RUNS[name][0]
    link = Link(capacity, buffer=buffer)
    if low is not None:
        link = dataclasses.replace(link, queue=Red(low, 3.0 * low))
    vegas = exact("vegas", rtt, count=count, alpha=alpha, beta=alpha, variant="ns2")
    runs = Run(duration=300.0, warmup=100.0, seed=3, start_jitter=0.5)
    return Scenario((link,), (vegas, exact(law, rtt, variant="ns2")), run=runs)


@pytest.mark.parametrize("name", NS2_RUNS)
def test_stored_ns2_runs(name: str) -> None:
    prediction = answer(_scenario(name), runs=3)
    ratio = prediction.throughput[:-1].mean() / prediction.throughput[-1]
    assert ratio == pytest.approx(NS2_RUNS[name][1], rel=0.05)


@pytest.mark.parametrize(
    ("capacity", "buffer", "rtt", "measured"),
    [(500.0, 30.0, 0.1, 485.35), (300.0, 8.0, 0.15, 250.62)],
)
def test_sack_alone_recovers_as_in_ns2(
    capacity: float, buffer: float, rtt: float, measured: float
) -> None:
    """ns-2: packets/s from 20 to 120 s.

    tcp-sack1.cc: the ACK that ends a recovery does not enlarge the window, and a partial ACK takes
    two packets off ``pipe_``.
    """
    flow = exact("sack", rtt, variant="ns2")
    flows = run(Scenario((Link(capacity, buffer=buffer),), (flow,), run=Run(120.0, 20.0))).flows
    delivered = flows["delivered"] - flows["mark_delivered"]
    assert delivered[0] / 100.0 == pytest.approx(measured, abs=0.02)


def test_vegas_under_random_loss_as_in_ns2() -> None:
    """ns-2's mean over 5 runs of 600 s: 76.5 +- 1.0 packets/s."""
    vegas = exact("vegas", 0.03, variant="ns2")
    scenario = Scenario((Link(100.0, buffer=20.0, loss=0.05),), (vegas,), run=Run(600.0, 20.0))
    rates = [run(scenario, seed=seed).flows["delivered"][0] / 600.0 for seed in range(1, 6)]
    assert np.mean(rates) == pytest.approx(76.5, abs=3.0)


def test_limited_windows_under_random_loss_as_in_ns2() -> None:
    """A loss halves the part of the window that was used: 81.9 +- 1.3 and 96.8 +- 0.7 in ns-2."""
    reno = exact("reno", 0.1, max_window=12.0, variant="ns2")
    vegas = exact("vegas", 0.1, alpha=3.0, beta=3.0, max_window=12.0, variant="ns2")
    link = Link(300.0, buffer=30.0, loss=0.01)
    scenario = Scenario((link,), (reno, vegas), run=Run(150.0, 50.0, start_jitter=0.5))
    found = answer(scenario, runs=5).throughput
    np.testing.assert_allclose(found, [81.9, 96.8], rtol=0.04)


@pytest.mark.parametrize(
    ("capacity", "buffer", "window", "there"), [(2000.0, 4.0, 8.0, 37.9), (1000.0, 6.0, 12.0, 48.7)]
)
def test_the_memory_of_ns2s_vegas_is_a_ring_as_long_as_its_largest_window(
    capacity: float, buffer: float, window: float, there: float
) -> None:
    """ns-2's mean of 24 runs, +- 0.9.  A ring of 5000 places gives 54 and 57 in ns-2, too."""
    flow = Flow("vegas", 0.1, variant="ns2", alpha=1.0, beta=1.0, max_window=window)
    link = Link(capacity, buffer=buffer, loss=0.01)
    case = Scenario((link,), (flow,), run=Run(100.0, 20.0, runs=24, start_jitter=0.5))
    assert answer(case).throughput[0] == pytest.approx(there, rel=0.1)


def test_vegas_that_knows_basertt_starts_as_in_ns2() -> None:
    """With a window of 2 and without slow start; it grows by one packet per round trip."""
    vegas = exact("vegas", 0.1, alpha=3.0, beta=3.0, over_estimate=0.0, variant="ns2")
    out = run(Scenario((Link(1000.0),), (vegas,), run=Run(duration=2.0, warmup=1.0)), samples=21)
    assert np.all(np.diff(out.window[2:, 0]) <= 1.0)
    assert out.window[-1, 0] == pytest.approx(2 + 19, abs=1)


def test_ns2_never_times_the_first_packet_of_vegas() -> None:
    """The first packet's RTT is 0.3 s; that of the second, behind another flow's, is 0.39 s."""
    late, early = (exact("vegas", 0.3, name=n, variant="ns2") for n in ("late", "early"))
    scenario = Scenario((Link(10.0),), (late, early), run=Run(duration=0.7, warmup=0.5))
    base = run(scenario, starts=np.array([0.29, 0.0])).base
    np.testing.assert_allclose(base, [0.3, 0.39])


def test_an_ack_delayed_in_vain_counts_for_the_fine_timeout_of_ns2s_vegas() -> None:
    """In 2 s ns-2 delivers 7 packets; it waits for its timer after each loss.

    Some ACKs come after the receiver's pause of 0.1 s. They make the fine timeout so long that the
    first duplicate ACK does not repair the loss. The timeout begins with the first ACK's RTT.
    """
    vegas = exact("vegas", 0.02101, alpha=1.0, beta=1.0, variant="ns2", delayed_ack=True)
    out = answer(Scenario((Link(80.44, buffer=2.0),), (vegas,), run=Run(duration=3.0, warmup=1.0)))
    assert out.throughput[0] * 2.0 == pytest.approx(7.0, abs=2.0)


Counts = tuple[tuple[int, int], tuple[int, int]]
# start times, first windows, phases of the timers' clocks in ns-2 (``boot_time_``, less the time to
# the first link); packets that ns-2's flows send and lose in 60 s, one run
MEET_AT_THE_QUEUE = (
    (
        (0.1031845212544193, 0.04223302602057787),
        (7, 4),
        (0.09887527322423674, 0.08092003798874813),
        ((11426, 2161), (38, 100)),
    ),
    (
        (0.08467445515718222, 0.019943217271623903),
        (11, 15),
        (0.07707789364214207, 0.0699679136580896),
        ((10976, 2494), (53, 76)),
    ),
    (
        (0.07498309217453511, 0.085535470661042),
        (14, 9),
        (0.07136265668695235, 0.08996146925977283),
        ((11272, 2341), (56, 75)),
    ),
)
MEET_ON_THE_WAY_BACK = (
    (
        (0.12030337348989745, 0.08968895444756181),
        (10, 16),
        (0.04576598551267162, 0.0027506704491339073),
        ((5926, 10556), (89, 25)),
    ),
    (
        (0.09449990858486926, 0.14091506614447602),
        (20, 22),
        (0.044099928495195284, 0.0016450289215176536),
        ((6680, 9232), (95, 32)),
    ),
)


def _two_reno_flows(
    link: Link,
    rtts: tuple[float, float],
    starts: tuple[float, float],
    windows: tuple[int, int],
    clocks: tuple[float, float],
    *,
    last_first: bool = False,
) -> Counts:
    """The packets that two flows send and lose in 60 s.

    ``last_first`` reverses ns-2's order of packets that reach the queue at one instant.
    """
    flows = tuple(
        exact("reno", rtt, name=f"f{rtt}", variant="ns2", start=start, initial_window=window)
        for rtt, start, window in zip(rtts, starts, windows, strict=True)
    )
    simulation = Simulation(Scenario((link,), flows, packet_size=500, run=Run(60.0, 1.0)))
    records, hops = array(simulation.net.flows), array(simulation.net.hops)
    records["boot_time"] = np.array(clocks)[records["member"]]
    if last_first:
        hops["lead"] = 1.0 - hops["lead"]
    status, _ = simulation.proceed()
    found = simulation.totals(status).flows
    return tuple(found["sent"]), tuple(found["lost"])


@pytest.mark.parametrize(("starts", "windows", "clocks", "counts"), MEET_AT_THE_QUEUE)
def test_two_reno_flows_send_and_lose_as_many_packets_as_in_ns2(
    starts: tuple[float, float],
    windows: tuple[int, int],
    clocks: tuple[float, float],
    counts: Counts,
) -> None:
    """Packet by packet, where the ticks of both clocks are those of ns-2's run.

    The flows part from ns-2's if, of packets that reach the queue at one instant, that of the
    longer RTT comes last; and without new data upon the third duplicate.
    """
    network = Link(243.0, buffer=15.0), (0.072, 0.127)
    assert _two_reno_flows(*network, starts, windows, clocks) == counts
    assert _two_reno_flows(*network, starts, windows, clocks, last_first=True) != counts


@pytest.mark.parametrize(("starts", "windows", "clocks", "counts"), MEET_ON_THE_WAY_BACK)
def test_after_idle_time_the_acks_of_two_flows_meet_as_in_ns2(
    starts: tuple[float, float],
    windows: tuple[int, int],
    clocks: tuple[float, float],
    counts: Counts,
) -> None:
    """Half the RTTs differ by 12.2 service times, so ACKs would never meet if the link stayed busy.

    If they did not wait for each other, the flows would part from ns-2's.
    """
    network = Link(330.0, buffer=10.0), (0.069, 0.143)
    assert _two_reno_flows(*network, starts, windows, clocks) == counts


def test_what_is_switched_off() -> None:
    """Without rounding the backlog stays at alpha, not half a packet above, so Vegas gets less."""
    scenario = _scenario("RED, bursts")
    full, bare = (run(scenario, without=off).flows["delivered"][0] for off in ((), ("rounding",)))
    assert bare < full
    with pytest.raises(ValueError, match=r"without: .*gravity.* is not allowed"):
        run(scenario, without=("gravity",))


@pytest.mark.parametrize("packets", [7, 14, 49])
def test_the_window_opens_when_ns2s_sum_in_double_precision_does(packets: int) -> None:
    total = float(packets)
    for _ in range(packets):
        total += 1.0 / packets
    growth = 1.0 / packets
    f = sender(
        "vegas", "ns2", cwnd=packets, growth=growth, ssthresh=2.0, next=packets, max_window=np.inf
    )
    grow(f, float(packets), 0.0)
    assert window(f) == int(total)


@pytest.mark.parametrize(("boot_time", "ticks"), [(0.04, 2), (0.06, 3)])
def test_an_agents_clock_ticks_from_a_time_of_its_own(boot_time: float, ticks: int) -> None:
    f = sender("reno", "ns2", backoff=1.0, acked=1.0, boot_time=boot_time)
    restart_timer(f, 0.25)  # sent at 0
    assert f["srtt"] == 8 * ticks


def test_bsd_estimate_in_ticks() -> None:
    """First sample m: srtt = 8 m, rttvar = 2 m, so the timeout is 3 m ticks.

    Then gains 1/8, 1/4.
    """
    f = sender("reno", "ns2", backoff=4.0, acked=1.0, rto=6.0)
    restart_timer(f, 0.25)  # sent at 0: 2 ticks
    assert f["rto"] == pytest.approx(0.6)
    assert f["backoff"] == 1.0
    assert f["deadline"] == pytest.approx(0.25 + 4 * 6.0)  # set before the sample counts
    f["timed_at"], f["timed"], f["acked"] = 1.03, 1.0, 2.0
    restart_timer(f, 1.48)  # 4 ticks: srtt 16 + 2, rttvar 4 + 2 - 1
    assert f["rto"] == pytest.approx((5 * 8 + 18) // 8 * 0.1)
    for factor in (2.0, 4.0, 8.0, 16.0):
        back_off(f)
        assert f["backoff"] == factor
    assert f["srtt"] == 0  # backed off that far, the mean is forgotten


def test_the_ranges_of_missing_packets_are_those_that_did_not_arrive() -> None:
    """The receiver here is a set of the packets that it misses."""
    rng = np.random.default_rng(12)
    for _ in range(40):
        record, holes = np.zeros(1, FLOW), np.zeros((64, COLUMNS))
        f, missing, end = record[0], set[int](), 0
        while end < 200:
            count = int(rng.integers(1, 6))
            if missing and rng.random() < 0.6:
                first = int(rng.choice(sorted(missing)))
            elif rng.random() < 0.5:
                add_hole(f, holes, float(end), float(count), 0.0)
                missing |= set(range(end, end + count))
                end += count
                continue
            else:
                first = end
            sent = set(range(first, first + count))
            new = fill_holes(f, holes, float(first), float(count), 0.0)
            assert new == len(sent & missing) + max(first + count - end, 0)
            missing, end = missing - sent, max(end, first + count)
            ranges = holes[f["first_hole"] : f["holes"], :2].astype(int)
            assert missing == {n for low, high in ranges for n in range(low, high)}
            assert f["missing"] == len(missing)
            assert f["acked"] == min(missing, default=end)
            assert f["received"] == end


def test_packets_from_inside_a_range_of_missing_packets_divide_it() -> None:
    """The packets of the range that did not arrive stay missing, on both sides."""
    record, holes = np.zeros(1, FLOW), np.zeros((64, COLUMNS))
    add_hole(record[0], holes, 0.0, 10.0, 0.0)
    assert fill_holes(record[0], holes, 4.0, 2.0, 0.0) == 2.0
    assert record["holes"][0] == 2
    assert holes[:2, :2].tolist() == [[0.0, 4.0], [6.0, 10.0]]
    assert (record["missing"][0], record["acked"][0]) == (8.0, 0.0)


def test_packets_that_arrive_inside_a_range_leave_the_forgotten_ones_behind_it() -> None:
    """ns-2's CUBIC has forgotten packets 10 to 19; then 4 and 5 arrive, of the missing 0 to 9."""
    f, holes = sender("cubic", "ns2"), np.zeros((64, COLUMNS))
    add_hole(f, holes, 0.0, 10.0, 0.0)
    fill_holes(f, holes, 10.0, 10.0, 0.0)
    add_hole(f, holes, 20.0, 5.0, 0.0)
    holes[0, 4] = 10.0  # the first forgotten packet
    fill_holes(f, holes, 4.0, 2.0, 0.0)
    assert holes[:3, :2].tolist() == [[0.0, 4.0], [6.0, 10.0], [20.0, 25.0]]
    assert [forgotten(f, holes, k) for k in range(3)] == [False, True, False]


@pytest.mark.parametrize(
    ("arrivals", "found_lost"),
    [
        ([(20.0, 1.0)], [True]),  # a packet that is sent for the first time
        ([(10.0, 4.0), (14.0, 1.0)], [False, True]),  # the fifth later retransmission
    ],
)
def test_which_arrival_tells_ns2s_cubic_that_a_retransmission_is_lost(
    arrivals: list[tuple[float, float]], found_lost: list[bool]
) -> None:
    """scoreboard1.cc: a later first transmission, or GetRtx() + (3 + 1) < acked_rtx_id_.

    Packets 0, 1 and 10 to 15 are missing, and have been sent again in this order. Packets 0 and 1
    are lost again.
    """
    f, holes = sender("cubic", "ns2"), np.zeros((8, COLUMNS))
    for first, missing in ((0.0, 2.0), (10.0, 6.0)):  # of ten packets each
        add_hole(f, holes, first, missing, 0.0)
        fill_holes(f, holes, first + missing, 10.0 - missing, 0.0)
    f["phase"], f["pipe"] = RECOVERY, 12.0
    holes[0, NOT_RESENT], holes[1, NOT_RESENT], holes[0, LOST_AGAIN] = 2.0, 16.0, 1.0
    for (first, packets), lost in zip(arrivals, found_lost, strict=True):
        assert _receive(f, holes, first, packets, 1.0) == packets
        assert (holes[0, NOT_RESENT], f["pipe"]) == ((0.0, 10.0) if lost else (2.0, 12.0))


def test_packets_that_are_lost_twice_are_not_acknowledged() -> None:
    """Six SACK sources begin with 64 packets each; most are lost, and many of these again.

    Each of ns-2's sources gets 56.6 +- 0.7 packets acknowledged in 5 s, the mean of 200 runs
    (``packets.ns2.run(scenario, rtts=False).acks`` with ``warmup`` 0). The means may differ by
    three standard errors of their difference. If a packet from inside a range of missing packets
    made the rest of this range count as received, it would be 83.
    """
    flow = Flow("sack", 0.05, count=6, variant="ns2", initial_window=64.0)
    scenario = Scenario((Link(100.0, buffer=10.0),), (flow,), run=Run(5.0, 2.0, start_jitter=0.5))
    counts = [
        run(scenario, starts=start_times(scenario, k), seed=k + 1).flows["acked"].mean()
        for k in range(100)
    ]
    error = np.hypot(0.7, np.std(counts, ddof=1) / np.sqrt(len(counts)))
    assert np.mean(counts) == pytest.approx(56.6, abs=3.0 * error)
    assert 3.0 * error < 5.0


@numba.njit
def _seed() -> None:
    np.random.seed(1)  # noqa: NPY002 - compiled code draws from it


@pytest.mark.parametrize("packets", [1, 4])
def test_random_loss_hits_each_packet_of_a_group_with_the_same_probability(packets: int) -> None:
    """The number of lost packets of a group is binomial."""
    p, groups = 0.3, 20000
    link = np.zeros(1, LINK)[0]
    link["loss_hazard"] = -math.log1p(-p)
    _seed()
    draw_next_loss(link)
    counts = [random_drops(link, float(packets), 0.0, 1, 0, 0)[0] for _ in range(groups)]
    found = np.bincount(np.array(counts, int), minlength=packets + 1) / groups
    for k in range(packets + 1):
        expected = math.comb(packets, k) * p**k * (1.0 - p) ** (packets - k)
        error = math.sqrt(expected * (1.0 - expected) / groups)
        assert abs(found[k] - expected) < 4.0 * error


def test_packets_from_inside_a_range_count_as_missing_without_a_free_row() -> None:
    record, holes = np.zeros(1, FLOW), np.zeros((2, COLUMNS))
    add_hole(record[0], holes, 0.0, 10.0, 0.0)
    add_hole(record[0], holes, 20.0, 5.0, 0.0)
    assert fill_holes(record[0], holes, 4.0, 2.0, 0.0) == 0.0
    assert holes[:, :2].tolist() == [[0.0, 10.0], [20.0, 25.0]]
    assert record["missing"][0] == 15.0


def test_filling_the_first_of_many_ranges_moves_no_other() -> None:
    """Else the time for a recovery from n losses grows with the square of n."""
    record, holes = np.zeros(1, FLOW), np.zeros((1000, COLUMNS))
    for k in range(1000):
        add_hole(record[0], holes, 2.0 * k, 1.0, 0.0)
    before = holes.copy()
    for k in range(999):
        assert fill_holes(record[0], holes, 2.0 * k, 1.0, 0.0) == 1.0
        assert record["acked"][0] == 2.0 * (k + 1)
    assert np.array_equal(holes, before)


def test_ranges_move_to_the_front_when_the_last_row_is_in_use() -> None:
    record, holes = np.zeros(1, FLOW), np.zeros((4, COLUMNS))
    for first in (0.0, 10.0, 20.0, 30.0):
        add_hole(record[0], holes, first, 5.0, first)
    for first in (0.0, 10.0):
        fill_holes(record[0], holes, first, 5.0, 0.0)
    add_hole(record[0], holes, 40.0, 5.0, 40.0)
    found = holes[record["first_hole"][0] : record["holes"][0]]
    assert found[:, :3].tolist() == [[20.0, 25.0, 20.0], [30.0, 35.0, 30.0], [40.0, 45.0, 40.0]]
    assert (record["acked"][0], record["missing"][0]) == (20.0, 15.0)


@pytest.mark.parametrize(("variant", "same"), [("paper", True), ("ns2", False)])
def test_only_ns2s_vegas_forgets_packets_where_the_receivers_window_is_small(variant, same):
    """Vegas's window has a mean of 11 packets, so no ``max_window`` of 40 or more holds it back.

    ns-2 stores the sending times of packets in a ring of ``max_window`` places (docs/ns2.md).
    """
    flow = vm.Flow("vegas", 0.1, variant=variant, alpha=2, beta=2, send_jitter=0.0)
    link = vm.Link(100.0, buffer=100.0, loss=0.01)
    case = vm.Scenario([link], [flow], run=vm.Run(duration=400.0, warmup=20.0, runs=1))
    small, large = (
        vm.predict(case.replace({"flow.vegas.max_window": most}), "rounds").throughput[0]
        for most in (40, 10_000)
    )
    assert bool(small == large) is same
