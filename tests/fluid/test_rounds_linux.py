"""``rounds`` against runs of the Linux kernel whose start times are known."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from tests.fluid.records import sender
from tests.helpers import exact, kernel_runs
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.laws import retransmission_timeout
from vegasmodel.engines.rounds.rules import rule
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import FLOW, OPEN, RECOVERY, SENT
from vegasmodel.engines.rounds.timer import expiry, syn_acknowledged
from vegasmodel.engines.starts import start_times
from vegasmodel.laws.vegas import decide_whole
from vegasmodel.packets import reference
from vegasmodel.scenario import Flow, Link, Run, Scenario, load
from vegasmodel.status import Status

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("drawn", "runs", "mean"), [(False, 122, 0.01), (True, 40, 0.03)])
def test_shares_of_vegas_against_reno_with_known_starts(
    drawn: bool, runs: int, mean: float
) -> None:
    """Buffers of 5 to 60.

    ``drawn``: runs of scripts/kernel/drawn.py, every third with two Reno flows.
    """
    errors = []
    for scenario in kernel_runs():
        chosen = scenario.name.startswith("drawn") is drawn and scenario.run.start_jitter == 0
        if not chosen or {g.law for g in scenario.flows} == {"vegas"}:
            continue
        found, model = reference.lookup(scenario), answer(scenario)
        measured, modelled = (np.asarray(one.throughput) for one in (found, model))
        errors.append(abs(modelled[0] / modelled.sum() - measured[0] / measured.sum()))
    assert len(errors) == runs
    assert np.median(errors) < 0.001
    assert np.mean(errors) < mean
    assert np.sum(np.array(errors) > 0.05) <= 5


SOURCES = (4, 6, 8, 10, 12, 16)


def arrivals() -> list[Scenario]:
    """The kernel's runs in which Vegas sources arrive one after another; fewest sources first."""
    found = (one for one in kernel_runs() if one.name == "vegas_arrivals_1M_200ms")
    return sorted(found, key=lambda one: len(one.members))


@pytest.mark.parametrize("sources", SOURCES)
def test_vegas_sources_that_arrive_one_after_another(sources: int) -> None:
    """Each arrival lengthens the RTT, in all tenfold, so the timer must use the RTT of every ACK.

    The kernel's sources do not time out: each keeps the baseRTT of its arrival, the first one that
    of the empty link, and each later one gets more.
    """
    [scenario] = (one for one in arrivals() if len(one.members) == sources)
    found, out = reference.lookup(scenario), run(scenario)
    span = scenario.run.duration - scenario.run.warmup
    rate = (out.flows["delivered"] - out.flows["mark_delivered"]) / span
    assert np.all(out.flows["timeouts"] == 0.0)
    np.testing.assert_allclose(out.base, found.base_rtt, atol=0.001)
    np.testing.assert_allclose(rate, found.throughput, atol=0.02 * scenario.links[0].capacity)
    np.testing.assert_allclose(rate, found.throughput, rtol=0.06)


def test_the_kernel_was_measured_with_four_to_sixteen_arrivals() -> None:
    assert [len(scenario.members) for scenario in arrivals()] == list(SOURCES)


def test_rack_waits_for_a_quarter_of_the_least_rtt() -> None:
    """One Reno flow on a long path: the third duplicate ACK reveals a loss, not the second.

    Packets are sent 8 ms apart, so the packet of the second duplicate is 16 ms younger than the
    lost one.  A quarter of the handshake's 72.5 ms is more than that; an eighth of the mean RTT of
    120 ms would be less.  In the kernel a packet is lost every 1.032 s, 129 times the service time;
    if the second duplicate revealed it, it would be 128 times.
    """
    flow = exact("reno", 0.08, variant="linux")
    runs = Run(duration=1005.0, warmup=5.0)
    out = run(Scenario((Link(125.0, buffer=5.0),), (flow,), ack_size=66.0, run=runs))
    lost = out.flows["lost"] - out.flows["mark_lost"]
    assert 1000.0 / lost[0] == pytest.approx(1.032, abs=0.002)


def test_vegas_leaves_the_count_of_acks_alone() -> None:
    """Vegas's own decision takes a packet off the window; ACKs counted at 3 packets count at 2."""
    flow = sender(
        "vegas", "linux", alpha=1.0, beta=3.0, cwnd=3.0, ssthresh=2.0, base=0.03, rtt_min=0.24
    )
    for count, window in ((1.0, 3.0), (3.0, 2.0), (1.0, 3.0)):
        flow["rtt_count"] = count
        rule(decide_whole)(flow, 1.0)
        assert flow["cwnd"] == window


def test_vegas_counts_packets_where_an_ack_speaks_for_two() -> None:
    """tcp_cong_avoid_ai adds ``acked``: a window of 4 grows after two round trips, not four."""
    flow = sender("vegas", "linux", cwnd=4.0, ssthresh=2.0, rtt_count=2.0)
    for window in (4.0, 5.0, 5.0, 5.0, 6.0):
        rule(decide_whole)(flow, 2.0)
        assert flow["cwnd"] == window


def test_acks_counted_at_a_larger_window_add_one_packet() -> None:
    """tcp_cong_avoid_ai: credits that accumulated at a higher window are applied gently.

    3 ACKs are counted, and the window has been cut to 2. The next ACK adds one packet, although 4
    ACKs are enough for two, and begins a new count. The third ACK of this count adds the next one.
    """
    flow = sender("vegas", "linux", cwnd=2.0, ssthresh=2.0, rtt_count=2.0, cwnd_cnt=3.0)
    for window in (3.0, 3.0, 4.0):
        rule(decide_whole)(flow, 1.0)
        assert flow["cwnd"] == window


@pytest.mark.parametrize(
    ("ssthresh", "window", "after"),
    [(10.0, 9.0, 8.0), (100.0, 6.0, 5.0)],  # congestion avoidance, slow start
)
def test_when_vegas_shrinks_its_window_ssthresh_is_below_it(
    ssthresh: float, window: float, after: float
) -> None:
    """tcp_vegas_ssthresh: at most cwnd - 1.

    At twice the baseRTT, an empty path holds 5 of 10 packets. Slow start ends with 5 and one more.
    """
    flow = sender(
        "vegas", "linux", alpha=1.0, beta=3.0, gamma=1.0, rtt_count=3.0, cwnd=10.0,
        ssthresh=ssthresh, base=0.1, rtt_min=0.2,
    )  # fmt: skip
    rule(decide_whole)(flow, 1.0)
    assert (flow["cwnd"], flow["ssthresh"]) == (window, after)


@pytest.mark.parametrize(
    ("stack", "recovery", "second", "ssthresh"),
    [
        ("linux", False, False, 10.0),
        ("linux", True, False, 15.0),
        ("linux", False, True, 15.0),
        ("ns2", True, False, 10.0),
        ("ns2", False, True, 10.0),
    ],
)
def test_linux_cuts_once_if_a_timeout_follows_a_cut(
    stack: str, recovery: bool, second: bool, ssthresh: float
) -> None:
    """tcp_enter_loss keeps ssthresh in a recovery, and at a second timeout in a row; tcp.cc halves.

    The window is 20 packets, and ssthresh is 15.
    """
    flow = sender(
        "reno", stack, cwnd=20.0, ssthresh=15.0, max_window=math.inf, high=20.0, rto=1.0,
        phase=RECOVERY if recovery else OPEN, timed_out=second, backoff=2.0 if second else 1.0,
    )  # fmt: skip
    retransmission_timeout(flow, 5.0)
    assert (flow["cwnd"], flow["ssthresh"]) == (1.0, ssthresh)


def test_the_first_rtt_gives_a_timeout_of_three_rtts() -> None:
    """RFC 6298, 2.2: the handshake takes R, so RTTVAR is R/2, and the timeout R + 4 RTTVAR."""
    f = sender("reno", "linux")
    syn_acknowledged(f, 0.0, 0.3)
    assert f["rto"] == pytest.approx(0.9)
    assert f["min_rtt"] == 0.3


@pytest.mark.parametrize(
    ("name", "error"),
    [("vegas-reno 1/4", 0.01), ("vegas-reno 1/6", 0.01), ("cubic-cubic 1/26", 0.03)],
)
def test_shares_with_measured_starts(name: str, error: float) -> None:
    """Runs of scripts/kernel/jittered.py.

    With delayed ACKs a slow Vegas gets few ACKs, and grows like Reno where they are two.  CUBIC
    measures its least RTT in recoveries, too.
    """
    scenario = next(s for s in kernel_runs() if s.name == name)
    found, rates = reference.lookup(scenario), []
    once = dataclasses.replace(scenario.run, runs=4, start_jitter=0.0)
    for k in range(scenario.run.times):
        flows = tuple(
            dataclasses.replace(group, start=float(start))
            for group, start in zip(scenario.flows, start_times(scenario, k), strict=True)
        )
        rates.append(answer(dataclasses.replace(scenario, flows=flows, run=once)).throughput)
    errors = np.mean(rates, axis=0) - found.throughput
    assert np.abs(errors).max() < error * scenario.links[0].capacity


@pytest.mark.parametrize("name", ["vegas_vegas_2M_40ms_a10b10", "vegas_vegas_2M_320ms_a3b3"])
def test_two_vegas_with_the_kernels_own_initial_window(name: str) -> None:
    """With 2 packets instead of 10 the shares are 0.755 and 0.618 (test_rounds_protocols)."""
    scenario = load(ROOT / "paper_checks" / "linux" / f"{name}.toml")
    found, model = reference.lookup(scenario), answer(scenario)
    measured, modelled = (np.asarray(one.throughput) for one in (found, model))
    assert modelled / modelled.sum() == pytest.approx(measured / measured.sum(), abs=0.02)
    assert model.base_rtt == pytest.approx(found.base_rtt, abs=1e-3)


def test_a_syn_that_meets_a_full_buffer_is_sent_again_after_a_second() -> None:
    """RFC 6298.  A window of 16 keeps 10 packets on the path and 6 in a queue with room for 6."""
    holder = exact("reno", 0.04, name="holder", max_window=16.0, variant="linux", stop=10.5)
    late = exact("reno", 0.04, name="late", start=10.001, variant="linux")
    for buffer, begins in ((6.0, 11.0), (8.0, 10.05)):
        scenario = Scenario((Link(250.0, buffer=buffer),), (holder, late), run=Run(12.0, 0.0))
        out = run(scenario, samples=1201)
        sent = out.per_flow[:, 1, SENT]
        assert out.times[np.argmax(sent > 0)] == pytest.approx(begins, abs=0.06)


def test_the_handshake_takes_a_place_in_the_buffer() -> None:
    """The handshake's ACK takes one of the 2 free places, so 1 of 10 data packets gets in.

    8 packets are there: a window of 17 less the 9 packets of 4 ms that are on the path for 36 ms.
    """
    holder = exact("reno", 0.04, name="holder", max_window=17.0, variant="linux")
    late = exact("reno", 0.04, name="late", start=10.001, variant="linux")
    scenario = Scenario((Link(250.0, buffer=9.0),), (holder, late), run=Run(10.12, 0.0))
    assert run(scenario).flows["lost"].tolist() == [0.0, 9.0]


@pytest.mark.parametrize("buffer", [5.0, 20.0, 45.0])
def test_which_of_two_acks_due_at_once_is_first_does_not_hang_on_who_started_first(
    buffer: float,
) -> None:
    """RTTs that are whole multiples of the service time: the kernel's shares are 0.55 to 0.83."""
    shares = []
    for starts in ((0.0, 1.0), (1.0, 0.0)):
        flows = [
            exact("reno", rtt, start=start, name=f"{rtt}", variant="linux")
            for rtt, start in zip((0.04, 0.08), starts, strict=True)
        ]
        scenario = Scenario((Link(250.0, buffer=buffer),), tuple(flows), run=Run(140.0, 40.0))
        rates = answer(scenario).throughput
        shares.append(rates[0] / rates.sum())
    assert shares[0] == pytest.approx(shares[1], abs=0.15)
    assert min(shares) > 0.4
    assert max(shares) < 0.85


def test_timers_of_linux_expire_at_ticks() -> None:
    """calc_index: one tick after the one for which it is set; from 64 ticks on every eighth."""
    f, rng = np.zeros(1, FLOW)[0], np.random.default_rng(3)
    late = []
    for now, f["boot_time"] in rng.uniform(0.0, 0.256, (200, 2)):
        for pause, grain in ((0.04, 1), (0.0402, 1), (0.3, 8)):
            ends = (expiry(f, now, pause) + f["boot_time"]) / 0.004
            assert abs(ends - grain * round(ends / grain)) < 1e-6
            assert (
                0.0 < expiry(f, now, pause) - now - np.ceil(pause / 0.004) * 0.004 <= grain * 0.004
            )
        late.append(expiry(f, now, 0.04) - now)
    assert np.ptp(late) > 0.0035  # 40 to 44 ms


def test_a_long_queue_of_packets_with_waits_of_their_own_has_room_in_memory() -> None:
    """Reno stays in slow start, so more than 9000 packets wait; each is moved by itself."""
    flow = Flow("reno", 0.35, variant="linux")  # each packet waits below TCP (``queue_wait``)
    out = run(Scenario((Link(156.0, buffer=math.inf),), (flow,), run=Run(60.0, 20.0)))
    assert out.status == Status.DONE
    assert out.first_queue["queue"] > 9000.0
    rate = (out.flows["delivered"] - out.flows["mark_delivered"]) / 40.0
    assert rate == pytest.approx(156.0, abs=0.1)
