"""Capacity and buffer of links that are seldom busy, and of flows that recover from losses."""

import math

import numpy as np
import pytest

from tests.packets.scenes import of_a_queue
from vegasmodel.packets.busy_times import most_in_any_time
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.trace import make


def half_idle(rate=1000.0, *, longer=1.0, again=(), ended=20.0, resumed=20.0):
    """A link of 1000 pkt/s that is busy for 1 s of 2 s, while packets wait for 10 to 30 ms.

    Waits are ``longer`` by this factor.  A second flow delivers 150 pkt/s up to the time ``ended``,
    and from ``resumed``.  It sends packets ``again`` in these intervals of 10 ms, and delivers
    packets 30 ms later that give no RTT.
    """
    busy = np.arange(2000) % 200 < 100
    wait = longer * np.where(busy, np.random.default_rng(3).uniform(0.01, 0.03, 2000), 0.0)
    rates = np.stack([np.where(busy, rate, 300.0), np.zeros(2000)], axis=1)
    rtts = 0.05 + np.stack([wait, wait], axis=1)
    times = np.arange(2000) / 100
    active = (times < ended) | (times >= resumed)
    rates[:, 1] = np.where(active, 150.0, 0.0)
    rtts[:, 1] = np.where(rates[:, 1] > 0, rtts[:, 1], math.nan)
    rates[[i + 3 for i in again if i + 3 < 2000], 1] = 150.0
    rates[:, 0] -= rates[:, 1]
    figures = {"throughput": rates, "rtt": rtts, "rtt_min": rtts}
    figures["retransmits"] = np.zeros((2000, 2))
    figures["retransmits"][list(again), 1] = 1.0
    return make("pcap", 0.01 * np.arange(1.0, 2001.0), ["a", "b"], figures)


@pytest.mark.parametrize(("ended", "resumed"), [(0.1, 20.0), (0.1, 19.8), (0.04, 20.0)])
def test_a_retransmission_before_a_flow_pauses_or_ends_hides_only_a_short_time(ended, resumed):
    """The rest of the trace, in which the other flow fills the link, did not count.

    The third case is a flow with little to send.
    """
    again = round(100 * ended) + 2
    found = estimate(half_idle(again=[again], ended=ended, resumed=resumed)).capacity
    assert found.value == pytest.approx(1000.0, rel=0.01)
    assert "while RTTs show a queue" in found.how
    assert found.high < 1100.0


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ({"longer": 0.0}, "RTTs show a queue too seldom to tell more"),
        ({"again": range(0, 2000, 3)}, "packets are sent again too often to tell more"),
        ({"rate": 200.0, "longer": 4.0}, "it is no larger while RTTs show a queue"),
    ],
)
def test_the_reason_why_a_capacity_is_a_lower_bound_is_the_true_one(trace, said):
    found = estimate(half_idle(**trace)).capacity
    assert f"throughput of all flows together; {said}: a lower bound" == found.how
    assert found.high == math.inf
    assert found.value <= 1000.0


def test_acks_that_stood_still_and_leap_do_not_raise_a_lower_bound():
    """1000 pkt/s for 20 s; in the last tenth of every odd second the ACK number stands still.

    The 100 packets of this time count in the second behind it, which seemed to have 1100 packets.
    """
    rates = np.full((1000, 1), 1000.0)
    still = np.arange(1000) % 100 >= 95
    rates[still] = 0.0
    leaps = np.arange(1000) % 100 == 0
    rates[leaps & (np.arange(1000) > 0)] = 6000.0
    figures = {"throughput": rates, "rtt": np.full((1000, 1), 0.05)}
    figures["rtt"][still] = math.nan
    figures |= {"rtt_min": figures["rtt"], "retransmits": leaps[:, None].astype(float)}
    found = estimate(make("pcap", 0.02 * np.arange(1.0, 1001.0), ["a"], figures)).capacity
    assert 980.0 < found.value <= 1000.0
    assert "a lower bound" in found.how


def test_flows_that_only_their_windows_limit_do_not_tell_the_capacity():
    """5 packets in an RTT of 20 ms are 250 pkt/s.  The trace's intervals are longer than the RTT.

    The estimate was 250 pkt/s, without a doubt.
    """
    figures = {name: np.full((2000, 1), 0.02) for name in ("rtt", "rtt_min")}
    figures |= {"throughput": np.full((2000, 1), 250.0), "retransmits": np.zeros((2000, 1))}
    found = estimate(make("pcap", 0.03 * np.arange(1.0, 2001.0), ["a"], figures)).capacity
    assert (found.value, found.high) == (pytest.approx(250.0, rel=0.01), math.inf)
    assert "RTTs do not show a queue in nearly all intervals: a lower bound" in found.how


def test_a_link_at_which_packets_seldom_wait_has_a_lower_bound_of_its_capacity():
    """250 pkt/s are sent, and now and then a packet waits.  The estimate was 250 pkt/s."""
    waits = np.where(np.arange(2000) % 40 == 0, 0.5, 0.0)[:, None]
    flow = np.full((2000, 1), 250.0)
    figures = {"served": flow, "throughput": flow, "queue": waits}
    trace = make("ns2", 0.02 * np.arange(1.0, 2001.0), ["a"], figures, links=["l"])
    found = estimate(trace).capacity
    assert (found.value, found.high) == (pytest.approx(250.0, rel=0.01), math.inf)
    assert "a lower bound" in found.how


@pytest.mark.parametrize("full", [True, False])
def test_long_intervals_tell_the_capacity_if_the_link_sends_as_much_in_most(full):
    """A queue of a packet or more on average may be empty at times: 60 to 90 packets are sent.

    The most of these was the estimate, without a doubt.  A full link of 1000 pkt/s sends 100.
    """
    counts = np.where(np.arange(400) % 8 < 6, 100.0, 70.0)
    counts = counts if full else 60.0 + 30.0 * (np.arange(400) % 40) / 39
    flow = counts[:, None] / 0.1
    figures = {"served": flow, "throughput": flow, "queue": np.full((400, 1), 1.5)}
    trace = make("ns2", 0.1 * np.arange(1.0, 401.0), ["a"], figures, links=["l"])
    found = estimate(trace).capacity
    if full:
        assert (found.value, found.high) == (pytest.approx(1000.0, rel=0.01), found.value)
    else:
        assert found.value <= 900.0
        assert (found.high, "a lower bound" in found.how) == (math.inf, True)


def test_with_acks_on_the_link_long_intervals_give_a_lower_bound() -> None:
    """The link sends 600 data packets/s and 60 ACKs/s in most intervals, and once 900 and 90."""
    data = np.full(60, 600.0)
    data[30] = 900.0
    figures = {
        "served": 1.1 * data[:, None],
        "throughput": data[:, None],
        "queue": np.full((60, 1), 3.0),
    }
    found = estimate(make("ns2", np.arange(1.0, 61.0), ["a"], figures, links=["l"])).capacity
    assert found.high == np.inf
    assert "a lower bound" in found.how


def test_a_full_link_sends_more_small_packets_but_not_more_bytes() -> None:
    """A link of 8 Mbit/s sends packets of 1000 B for 20 s, and then packets of 1040 B for 40 s."""
    sizes = np.where(np.arange(60) < 20, 1000.0, 1040.0)
    rate = 1e6 / sizes
    delivered = np.column_stack([rate * (sizes == 1000.0), rate * (sizes == 1040.0)])
    figures = {
        "served": rate[:, None],
        "served_size": sizes[:, None],
        "throughput": delivered,
        "queue": np.full((60, 1), 3.0),
        "packet_size": [1000.0, 1040.0],
    }
    found = estimate(make("ns2", np.arange(1.0, 61.0), ["a", "b"], figures, links=["l"])).capacity
    mean = 60e6 / rate.sum()  # bytes of a packet
    assert found.value * mean == pytest.approx(1e6, rel=0.005)


def test_a_link_whose_packets_are_unknown_gives_no_warning() -> None:
    figures = {
        "served": np.column_stack([np.full(20, np.nan), np.full(20, 50.0)]),
        "throughput": np.full((20, 1), 50.0),
        "queue": np.column_stack([np.full(20, 9.0), np.full(20, 1.0)]),
    }
    trace = make("ns2", np.arange(1.0, 21.0), ["a"], figures, links=["l", "m"])
    assert estimate(trace).capacity is not None


def test_a_syn_does_not_count_as_a_packet_of_full_size():
    """A link of 1000 pkt/s sends 20 packets and a SYN, of no size, in 20 ms; first 20 packets."""
    packets = np.array([20.0, 0.0, 21.0, 0.0])
    lengths = np.full(4, 0.02)
    starts = np.array([[0.035, 0.08]])
    assert most_in_any_time(packets, lengths, starts) <= 1000.0
    assert most_in_any_time(packets, lengths, np.zeros((0, 2))) == pytest.approx(1000.0)


def test_random_losses_at_a_steady_queue_do_not_tell_the_buffer():
    """A Vegas flow keeps 3 or 4 packets in a queue of any size.  The buffer was 4, exactly."""
    queues = np.resize([3.0, 4.0, 4.0], 60)
    found = estimate(of_a_queue(queues, np.arange(60) % 2))
    assert (found.buffer.value, found.buffer.high) == (4.0, math.inf)
    assert found.loss.value == pytest.approx(30 / 60_030)
    always = estimate(of_a_queue(np.full(60, 4.0), np.arange(60) % 2))
    assert (always.buffer.value, always.buffer.high, always.loss) == (4.0, math.inf, None)
    assert "or so many waited too often, to tell whether the queue was full" in always.buffer.how
    full = estimate(of_a_queue(queues, np.where(queues == 4, 1, 0)))
    assert (full.buffer.value, full.buffer.high, full.loss) == (4.0, 4.0, None)


def test_a_peak_at_which_red_drops_many_packets_is_not_its_buffer():
    """RED drops a quarter of all lost packets at its longest queue, which comes once."""
    queues = np.resize([20.0, 40.0, 60.0, 80.0], 80)
    drops = np.resize([0, 1, 1, 1], 80)
    once = queues.copy()
    once[43] = 119.0
    drops[43] = 30
    found = estimate(of_a_queue(once, drops)).buffer
    assert (found.value, found.high) == (119.0, math.inf)
    again = np.where(queues == 80, 119.0, queues)
    found = estimate(of_a_queue(again, drops)).buffer
    assert (found.value, found.high) == (119.0, 119.0)


def test_losses_of_which_many_came_before_the_queue_was_full_say_so():
    """Two thirds of the losses come at 20 packets, one third at 40.  1000 pkt/s."""
    tops = np.resize([0.02, 0.02, 0.04], 60)
    rtt = 0.05 + np.concatenate([np.linspace(0.0, top, 10) for top in tops])[:, None]
    again = (np.arange(600) % 10 == 9)[:, None]
    figures = {"throughput": np.full((600, 1), 1000.0), "rtt": rtt, "retransmits": again}
    about = {"rtt": "none across retransmissions"}
    trace = make("pcap", 0.02 * np.arange(1.0, 601.0), ["a"], figures, provenance=about)
    found = estimate(trace, capacity_pps=1000.0)
    assert found.buffer.value == pytest.approx(40.0)
    assert "many of which came while the queue was not full" in found.buffer.how
    assert found.loss is None
