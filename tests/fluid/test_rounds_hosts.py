"""Receivers that delay their ACKs, and noise on the propagation delay.

Values called ns-2's are means of 5 runs of 200 s with starts jittered by up to 0.5 s and the
default wait of the senders (``benchmarks/accuracy_hosts.py``).
"""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.fluid.records import sender
from tests.helpers import as_measured, exact
from vegasmodel.engines.rounds.acks import add_hole, fill_holes
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.delayed_ack import adapt_ato, pause_ended, silent_packets
from vegasmodel.engines.rounds.flows import mechanisms
from vegasmodel.engines.rounds.losses import acks_fill_hole
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import FLOW, PARCEL
from vegasmodel.laws import find
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.stacks import STACKS

T = 0.2
ROOMY = Link(1000.0)


@pytest.mark.parametrize(("variant", "pause"), [("ns2", 0.1), ("linux", 0.2)])
def test_the_ack_of_a_single_packet_waits(variant: str, pause: float) -> None:
    """A window of one packet: one packet per T plus the ACK's delay.

    Linux sends first ACKs at once.  Later it doubles the pause each time, up to 200 ms
    (tcp_delack_timer_handler).
    """
    flow = exact("reno", T, variant=variant, max_window=1.0, delayed_ack=True)
    found = answer(Scenario((ROOMY,), (flow,), run=Run(duration=200.0, warmup=50.0)))
    assert found.throughput[0] == pytest.approx(1.0 / (T + pause), rel=0.01)


def test_linux_adapts_the_pause_of_an_ack() -> None:
    """By hand from tcp_event_data_recv and tcp_delack_timer_handler, in ticks of 4 ms."""
    f = sender("reno", "linux", delayed_ack=True, receiver_rtt=0.05)  # RTO: 0.05 + 0.2 s, 63 ticks

    def after(gap: float) -> float:
        now = float(f["heard_at"]) + gap
        adapt_ato(f, 1.0, now, now)
        return float(f["ack_ticks"])

    assert after(1.002) == 10.0
    for doubled in (20.0, 40.0, 63.0):
        pause_ended(f)
        assert f["ack_ticks"] == doubled
    assert after(0.1) == 31.0 + 25.0
    assert [after(0.008) for _ in range(6)] == [33.0, 21.0, 15.0, 12.0, 11.0, 10.0]
    assert after(0.1) == 10.0  # longer than the pause: no matter
    assert f["quick_acks_left"] == 0.0
    assert after(0.3) == 10.0
    assert f["quick_acks_left"] == 16.0


@pytest.mark.parametrize(("beyond", "held"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_ack_of_a_retransmission_waits_if_nothing_is_beyond(beyond: float, held: float) -> None:
    """RFC 5681 4.2: an ACK leaves at once if a packet fills a gap; without packets beyond, no gap.

    Packets 10 and 11 are missing; 12 has arrived if ``beyond`` is 1. In ns-2 ``DelAckSink::recv``
    (tcp-sink.cc) delays the ACK if ``seqno == Seqno()`` and not ``seqno < Maxseen()``.
    """
    record, way = np.zeros(1, FLOW), np.zeros(1, PARCEL)
    mechanisms(find("reno"), STACKS["ns2"], record)
    f, p = record.view(np.recarray)[0], way.view(np.recarray)[0]
    f.delayed_ack, f.cwnd, f.ssthresh, f.max_window, f.size = True, 1.0, 2.0, 20.0, 1e9
    f.backoff, f.rto = 1.0, 1.0
    f.acked, f.next, f.high, f.received = 10.0, 11.0, 13.0, 12.0 + beyond
    f.holes, f.missing = 1, 2.0
    holes = np.zeros((4, 6))
    holes[0, :2] = 10.0, 12.0
    p.first, p.packets, p.back = 10.0, 1.0, 5.0
    acks_fill_hole(f, p, holes, 5.0, 0.0)
    assert (f.acked, f.delack_packets) == (11.0 - held, held)
    assert f.delack_expires == (pytest.approx(5.1) if held else 0.0)
    p.first, p.packets = 11.0, 1.0
    acks_fill_hole(f, p, holes, 5.0, 0.0)
    assert (f.acked, f.delack_packets) == (12.0 + beyond, 0.0)  # one ACK for both


def test_the_ack_of_a_duplicate_may_wait_as_in_ns2() -> None:
    """ns-2: 281.2 packets/s, mean of 10 runs; with ACKs of duplicates that leave at once 354.9.

    After a loss Tahoe sends again what has arrived already. If ns-2's receiver has nothing beyond
    such a packet, it takes it for the first of two in order, and answers the next packet at once.
    """
    flow = exact("tahoe", 0.2, variant="ns2", delayed_ack=True)
    link, span = Link(20000.0, buffer=7.0), Run(duration=40.0, warmup=10.0, start_jitter=0.5)
    found = answer(Scenario((link,), (flow,), packet_size=500.0, run=span), runs=4)
    assert found.throughput[0] == pytest.approx(281.2, rel=0.015)


@pytest.mark.parametrize(
    ("late", "rtt", "loss", "most", "there", "se"),
    [
        (True, 0.02, 0.1, 2.0, 22.66, 0.23),
        (False, 0.02, 0.1, 2.0, 26.88, 0.23),
        (True, 0.1, 0.02, 10.0, 46.41, 0.5),
    ],
)
def test_new_packets_at_duplicate_acks_stay_in_the_window_of_the_receiver(
    late: bool, rtt: float, loss: float, most: float, there: float, se: float
) -> None:
    """ns-2 2.35, SACK, means of 10 runs of 400 s: ``t_seqno_ <= highest_ack_ + wnd_`` (send_one).

    Limited transmit (RFC 3042) beyond the receiver's window gave 34.8 packets/s in the first case.
    """
    flow = exact("sack", rtt, variant="ns2", delayed_ack=late, max_window=most)
    span = Run(duration=400.0, warmup=20.0, start_jitter=0.5, ns2_defaults="2.35")
    found = answer(Scenario((Link(800.0, buffer=30.0, loss=loss),), (flow,), run=span), runs=20)
    assert as_measured(found, there, se)


def test_pairs_are_answered_at_once() -> None:
    """With an even window every packet has a partner, so no ACK waits: W packets per T."""
    flow = exact("reno", T, variant="ns2", max_window=10.0, delayed_ack=True)
    found = answer(Scenario((ROOMY,), (flow,), run=Run(duration=60.0, warmup=20.0)))
    # the second of two that leave together comes a packet's time later
    assert found.throughput[0] == pytest.approx(10.0 / (T + 1e-3), rel=0.01)


# numbers and times of packets that reach ns-2's receiver; which of them it does not answer at once
IN_ORDER = ([0, 1, 2, 3, 4], [0.0, 0.01, 0.02, 0.03, 0.04], [0, 1, 0, 1, 0])
LATE_PARTNER = ([0, 1, 2, 3], [0.0, 0.01, 0.12, 0.13], [0, 1, 1, 0])
A_GAP = ([0, 1, 3, 4, 2, 5, 6], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06], [0, 1, 0, 0, 0, 1, 0])
A_DUPLICATE = ([0, 1, 2, 2, 3, 3], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05], [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("numbers", "times", "silent"), [IN_ORDER, LATE_PARTNER, A_GAP, A_DUPLICATE]
)
def test_which_packets_ns2s_receiver_answers(
    numbers: list[int], times: list[float], silent: list[int]
) -> None:
    """``DelAckSink::recv`` (tcp-sink.cc) lets an ACK wait only if its timer does not run.

    It also must have the packet as the last in order, and nothing beyond. The ACK of packet 0 never
    waits (``SYN_immediate_ack_``).
    """
    record, ear = np.zeros(1, FLOW), np.zeros(1, FLOW)
    mechanisms(find("reno"), STACKS["ns2"], record)
    f, r = record.view(np.recarray)[0], ear.view(np.recarray)[0]
    r.quick_acks_left, holes = STACKS["ns2"].quick_acks, np.zeros((4, 6))
    found = []
    for number, at in zip(numbers, times, strict=True):
        if number > r.received:
            add_hole(r, holes, r.received, number - r.received, 0.0)
        found.append(silent_packets(f, r, float(number), 1.0, at))
        fill_holes(r, holes, float(number), 1.0, 0.0)
    assert found == silent


def _both_ways(laws: tuple[str, str], rtts: tuple[float, float], **more: Any) -> tuple[Flow, ...]:
    ways = ("forward", "reverse")
    return tuple(
        Flow(law, rtt, name=way, direction=way, variant="ns2", **more)
        for law, rtt, way in zip(laws, rtts, ways, strict=True)
    )


@pytest.mark.parametrize(("late", "ratio"), [(True, 0.5), (False, 1.0)])
@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("parts", [None, 4])
def test_only_acks_that_are_sent_join_the_queue(
    late: bool, ratio: float, links: int, parts: int | None
) -> None:
    """A receiver that delays ACKs sends one for every second packet (RFC 1122 4.2.3.2).

    Nothing is lost here, and no packet lacks a partner for long. The work that arrives at each
    queue is that of one flow's data, 1 packet each, and of the other flow's ACKs, 0.04 packets.
    """
    flows = _both_ways(("reno", "reno"), (0.1, 0.14), delayed_ack=late, max_window=20.0)
    path = tuple(Link(500.0, f"l{i}", buffer=200.0) for i in range(links))
    out = run(Scenario(path, flows, run=Run(duration=60.0, warmup=20.0)), parts=parts)
    assert np.all(out.flows["lost"] == 0.0)
    for (_, way, _), queue in zip(out.routes.keys, out.routes.links, strict=True):
        data, other = out.flows["sent"][:: 1 if way == "forward" else -1]
        assert (queue["arrived"] - data) / 0.04 == pytest.approx(ratio * other, rel=0.025)


@pytest.mark.parametrize(
    ("capacity", "buffer", "laws", "rtts", "there", "se"),
    [
        (500.0, 10.0, ("newreno", "newreno"), (0.08, 0.11), (266.6, 242.4), (2.5, 2.5)),
        (500.0, 15.0, ("sack", "sack"), (0.1, 0.14), (353.9, 365.9), (1.8, 1.5)),
        (300.0, 10.0, ("reno", "newreno"), (0.06, 0.09), (187.3, 183.0), (1.4, 1.3)),
    ],
)
def test_delayed_acks_among_data_of_the_other_direction(
    capacity: float,
    buffer: float,
    laws: tuple[str, str],
    rtts: tuple[float, float],
    there: tuple[float, float],
    se: tuple[float, float],
) -> None:
    """ns-2: packets/s, means of 20 runs. With an ACK for each packet the sum was 7 to 13 % less."""
    flows = _both_ways(laws, rtts, delayed_ack=True)
    span = Run(duration=200.0, warmup=20.0, start_jitter=1.0)
    found = answer(Scenario((Link(capacity, buffer=buffer),), flows, run=span), runs=20)
    assert as_measured(found, there, se)


@pytest.mark.parametrize(
    ("law", "capacity", "buffer", "rtt", "alpha", "late", "rates", "se"),
    [
        ("reno", 499.0, 16.0, 0.1984, 5.0, (True, True), (252.0, 227.2), 2.6),
        ("tahoe", 1318.0, 80.0, 0.0932, 2.0, (False, True), (106.0, 1162.3), 2.0),
        ("tahoe", 1318.0, 80.0, 0.0932, 2.0, (True, True), (115.5, 1148.9), 2.0),
    ],
)
def test_as_in_ns2(
    law: str,
    capacity: float,
    buffer: float,
    rtt: float,
    alpha: float,
    late: tuple[bool, bool],
    rates: tuple[float, float],
    se: float,
) -> None:
    """Vegas counts one packet fewer as outstanding, and both windows grow half as fast."""
    vegas = Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", delayed_ack=late[0])
    other = Flow(law, rtt, variant="ns2", delayed_ack=late[1])
    span = Run(duration=200.0, warmup=60.0, runs=3, start_jitter=0.5)
    found = answer(Scenario((Link(capacity, buffer=buffer),), (vegas, other), run=span))
    spread = np.hypot(se, np.asarray(found.throughput_se))
    assert np.all(np.abs(found.throughput - np.array(rates)) < 3.0 * spread)
    assert np.all(spread < 8.0)


def test_noise_moves_the_least_rtt_and_not_the_mean() -> None:
    """With a window of one, RTTs are normal, and the least of n is their order statistic."""
    flow = exact("vegas", T, variant="paper", max_window=1.0, delay_noise=0.01)
    found = answer(Scenario((ROOMY,), (flow,), run=Run(duration=400.0, warmup=50.0)), runs=2)
    assert found.throughput[0] == pytest.approx(1.0 / T, rel=0.01)
    assert found.rtt_mean[0] == pytest.approx(T, abs=4.0 * 0.01 / np.sqrt(3500.0))
    assert T - 5.0 * 0.01 < found.base_rtt[0] < T - 2.5 * 0.01  # of about 2000 draws


@pytest.mark.parametrize(
    ("law", "rates", "se"),
    [("newreno", (411.6, 536.3), (6.3, 5.4)), (None, (604.7,), (4.4,))],
)
def test_noise_acts_after_the_wait(law: str | None, rates: tuple[float, ...], se: float) -> None:
    """As in ns-2, in 20 runs of 120 s: noise of 10 ms at 1500 pkt/s brings packets together.

    This happens after the sender's wait.  If it happened before the wait, the packets would share a
    wait and leave as a burst; the total would then be 9 % too high.
    """
    flows = tuple(
        Flow(one, 0.05, name=one, variant="ns2", delay_noise=0.01) for one in ("reno", law) if one
    )
    link, span = Link(1500.0, buffer=30.0), Run(120.0, 40.0, runs=30, start_jitter=0.5)
    found = answer(Scenario((link,), flows, run=span))
    spread = np.hypot(np.array(se), np.asarray(found.throughput_se))
    assert np.all(np.abs(found.throughput - np.array(rates)) < 3.0 * spread)
    assert np.all(spread < 0.02 * np.array(rates))


@pytest.mark.parametrize(("wait", "there", "still"), [(0.0, 347.07, 218), (1e-3, 342.73, 214)])
def test_noise_before_the_queue_moves_vegas_as_in_ns2(
    wait: float, there: float, still: int
) -> None:
    """Noise of 1 ms: what an early packet gains, it loses behind the packets before it.

    ns-2: the median of 24 runs of 40 s in packets/s, and how many of 300 short runs stay at the 14
    packets at which slow start usually ends.
    """
    flow = Flow("vegas", 0.04, variant="ns2", delay_noise=1e-3, send_jitter=wait)
    scenario = Scenario((Link(1000.0, buffer=50.0),), (flow,), run=Run(duration=40.0, warmup=10.0))
    rates = answer(scenario, runs=24).extra["throughput_runs"]
    assert np.median(rates) == pytest.approx(there, rel=0.001)
    short = dataclasses.replace(scenario, run=Run(duration=10.0, warmup=4.0))
    rates = answer(short, runs=100).extra["throughput_runs"]
    assert np.mean(rates < 352.0) == pytest.approx(still / 300.0, abs=0.12)  # 2.5 errors


@pytest.mark.parametrize(
    ("law", "keys"),
    [
        ("vegas", {"delayed_ack": True}),
        ("vegas", {"send_jitter": 2e-3}),
        ("cubic", {"access": 5000.0}),
    ],
)
def test_little_noise_changes_little_where_bursts_of_linux_overlap(
    law: str, keys: dict[str, Any]
) -> None:
    """Noise of 0.1 ms is a tenth of a packet's time at the link, so the rate is that without noise.

    A burst begins before the last packet of the burst before it has left. The rate was 0 in these
    cases, because the delay of such a packet was NaN.
    """
    flow, span = Flow(law, 0.06, variant="linux", **keys), Run(duration=60.0, warmup=20.0, runs=3)
    plain = Scenario((Link(1000.0, buffer=20.0),), (flow,), run=span)
    noisy = dataclasses.replace(plain, flows=(dataclasses.replace(flow, delay_noise=1e-4),))
    rates = [answer(one).throughput[0] for one in (plain, noisy)]
    assert rates[0] > 950.0
    assert rates[1] == pytest.approx(rates[0], rel=0.02)


def test_each_flow_with_noise_has_an_access_link_of_its_own() -> None:
    """Access links carry 600 packets/s each; two flows of ns-2 get 391 and 415 of the link's 1000.

    If the two flows shared an access link, they could not get more than 600 together.
    """
    flow = Flow("reno", 0.08, variant="ns2", count=2, access=600.0, delay_noise=1e-5)
    found = answer(Scenario((Link(1000.0, buffer=30.0),), (flow,), run=Run(120.0, 40.0)), runs=1)
    assert found.throughput.sum() > 700.0
