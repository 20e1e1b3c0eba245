"""Capacity, buffer, baseRTT and alpha, estimated from a trace."""

import dataclasses
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import samples
from tests.packets.scenes import LINUX, gappy, kernel_log, of_a_queue
from vegasmodel.packets import capacity, read
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.ns2_trace import record
from vegasmodel.packets.trace import make
from vegasmodel.packets.trajectories import to_trace


@pytest.mark.parametrize(("column", "doubted"), [("minrtt_us", True), ("vegas_baseRTT_us", False)])
def test_an_alpha_by_minrtt_says_that_it_may_be_a_packet_too_high(column, doubted, tmp_path):
    """The kernel's minrtt may be that of the SYN; the window is 10 and RTT / baseRTT is 5 / 4."""
    header, *rows = kernel_log().decode().split("\n")
    text = "\n".join([f"{header},{column}", *(f"{row},40000" for row in rows)])
    (tmp_path / "log.csv").write_text(text)
    trace = read(tmp_path / "log.csv")
    found = estimate(trace, over_base=trace.flows).alpha["a"]
    assert found.value == pytest.approx(2.5)
    assert ("up to a packet too high" in found.how) is doubted


def test_an_alpha_of_a_backlog_that_varies_is_doubtful():
    """A window that rises from 20 to 60 and falls again, as Reno's, and one that rests near 25."""
    times = np.arange(1.0, 401.0)
    saw = 20.0 + 40.0 * (times % 50.0) / 50.0
    windows = np.stack([saw, 25.0 + np.sin(times)], axis=1)
    rtts = np.stack(
        [0.02 * saw / 20.0, np.full(times.size, 0.025)], axis=1
    )  # the link carries 1000
    rtts[0] = 0.02
    trace = make("csv", times, ["saw", "rests"], {"window": windows, "rtt": rtts})
    found = estimate(trace).alpha
    assert found["saw"].value == pytest.approx(20.0, rel=0.05)
    assert "doubtful" in found["saw"].how
    assert "the source may run another law" in found["saw"].how
    assert found["rests"].value == pytest.approx(5.0, rel=0.05)
    assert "doubtful" not in found["rests"].how


@pytest.mark.parametrize("when", [10, 300])
@pytest.mark.parametrize("counted", ["loss", "retransmits"])
def test_an_alpha_of_a_flow_that_loses_packets_in_its_second_half_is_doubtful(counted, when):
    times = np.arange(1.0, 401.0)
    lost = np.zeros((400, 1))
    lost[when] = 1.0
    figures = {"window": np.full((400, 1), 25.0), "rtt": np.full((400, 1), 0.025), counted: lost}
    figures["rtt"][0] = 0.02
    found = estimate(make("ns2", times, ["v"], figures)).alpha["v"]
    assert found.value == pytest.approx(5.0)
    assert ("doubtful, because the flow lost packets" in found.how) is (when == 300)


def test_a_capacity_is_estimated_from_the_time_in_which_all_throughputs_are_known():
    rates = np.tile([600.0, 400.0], (40, 1))
    found = estimate(gappy(rates, slice(None, None, 2))).capacity
    assert (found.low, found.value) == pytest.approx((1000.0,) * 2)
    assert found.high == math.inf
    assert "the capacity may be larger if the link idles, or if the link carries other" in found.how
    assert estimate(gappy(rates, (slice(None), 1))).capacity.value == pytest.approx(600.0)
    rates[:20, 0] = rates[20:, 1] = math.nan
    assert estimate(gappy(rates, slice(0))).capacity is None


@pytest.mark.parametrize(
    ("wait", "known", "high"),
    [(0.0, {"retransmits"}, math.inf), (0.0, set(), math.inf), (0.004, {"retransmits"}, 700.0)],
)
def test_only_rtts_that_show_a_queue_bound_a_capacity_from_above(wait, known, high):
    """A link of unknown capacity carries 700 packets/s; 0.004 s are 2.8 packets of such a link.

    If no packet waits in half of the intervals, the link may idle, and its capacity is unknown. So
    it is if the trace does not tell when packets were sent again.
    """
    rtt = np.full((40, 1), 0.05)
    rtt[1::2] += wait
    rtt[2::2] += 0.004
    figures = {"throughput": np.full((40, 1), 700.0), "rtt": rtt}
    figures |= dict.fromkeys(known, 0.0 * rtt)
    found = estimate(make("csv", np.arange(1.0, 41.0), ["a"], figures)).capacity
    assert found.high == pytest.approx(high)
    assert found.value <= 700.0 * (1 + 1e-9)


def test_estimates_of_a_linux_run():
    """250 pkt/s; 40 ms; the later flow's baseRTT was 56; alpha = beta = 3, a backlog in [3, 4)."""
    e = estimate(read(LINUX / "e1a_2M_40ms_a3b3.parquet"))
    assert e.capacity.value == pytest.approx(250, rel=1e-3)
    assert e.base_rtt["1"].value == pytest.approx(0.040, rel=2e-3)
    assert all(3 <= e.alpha[flow].value < 4 for flow in "12")
    assert e.buffer.high == math.inf
    assert "lower bound" in e.buffer.how


def test_estimates_of_an_ns2_run():
    """1.5 Mbit/s, packets of 1000 and 1040 B; with a queue limit of 10, 9 packets wait."""
    e = estimate(read(samples.DATA / "ns2_events.tr"))
    assert e.capacity.low < 1.5e6 / 8 / 1000
    assert e.capacity.high > 1.5e6 / 8 / 1040
    assert e.capacity.high < 1.1 * e.capacity.low
    assert e.buffer.value == 9
    assert "overflowed" in e.buffer.how


def test_estimates_of_a_fixed_window(tmp_path):
    """20 packets in flight at 500 pkt/s and 22 ms: 20 (40 - 22)/40 = 9 of them wait."""
    path = tmp_path / "t.pcap"
    path.write_bytes(samples.pcap(samples.frames(samples.course(2000))))
    e = estimate(read(path))
    (name,) = e.base_rtt
    assert e.capacity.value == pytest.approx(500, rel=0.02)
    assert e.base_rtt[name].value == pytest.approx(0.022, rel=1e-3)
    assert e.alpha[name].value == pytest.approx(9, rel=0.01)


def test_means_of_a_whole_life_bound_the_buffer_from_below():
    """FlowMonitor: 1216 packets were lost, the mean RTT is 110 and 139 ms above the least one."""
    buffer = estimate(read(samples.DATA / "flowmon.xml")).buffer
    assert 225 * 0.138 < buffer.low == buffer.value < 225 * 0.140  # each flow's wait is a bound
    assert buffer.high == math.inf
    assert "packets were lost, but an interval's RTT is not its largest" in buffer.how


def measured_by_ends(buffer, laws, *, delayed=False, seconds=60.0, loss=0.0):
    """What the hosts see of a run in ``rounds`` behind a buffer: no queue of the link."""
    flows = [
        vm.Flow(law, f"{40 + 10 * i} ms", name=f"{law}{i}", variant="linux", delayed_ack=delayed)
        for i, law in enumerate(laws)
    ]
    case = vm.Scenario(
        (vm.Link("1000 pkt/s", buffer=buffer, loss=loss),),
        tuple(flows),
        run=vm.Run(duration=seconds, warmup=1.0, runs=1),
    )
    whole = to_trace(vm.simulate(case, "rounds", samples=1 + round(seconds / 0.02)))
    return dataclasses.replace(
        whole, data=whole.data.drop_vars(["queue", "base_rtt"], errors="ignore")
    )


def stalled(trace, times, wait=0.03):
    """A copy of the trace in which all RTTs at some times, s, are longer by ``wait`` seconds."""
    rtt = np.array(trace.get("rtt"))
    for time in times:
        rtt[np.searchsorted(trace.edges, time) - 1] += wait
    return dataclasses.replace(trace, data=trace.data.assign(rtt=(("time", "flow"), rtt)))


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("laws", [("reno",), ("cubic",), ("newreno", "vegas"), ("sack", "reno")])
@pytest.mark.parametrize("buffer", [12, 40, 90])
def test_a_buffer_is_estimated_from_rtts_before_losses_whatever_stalls(buffer, laws, delayed):
    """Stalls of 30 ms, as hosts and Wi-Fi have them, made a buffer of 12 packets one of 42.

    The packet before a lost one met a queue that was shorter by a packet, or by two if an ACK of
    two packets lets out three.  The RTTs are samples, 20 ms apart, so another packet may be missed.
    """
    trace = measured_by_ends(buffer, laws, delayed=delayed)
    plain = estimate(trace).buffer
    assert buffer - 2 - delayed < plain.value < buffer + 1
    assert "before a loss, median over" in plain.how
    shaken = estimate(stalled(trace, [7.0, 23.0, 41.5])).buffer
    assert shaken.value == pytest.approx(plain.value, abs=1.0)


@pytest.mark.parametrize("laws", [("reno",), ("cubic",), ("newreno", "vegas")])
@pytest.mark.parametrize("milliseconds", [1.0, 2.0, 4.0])
def test_noise_of_the_rtts_does_not_raise_the_lower_bound_of_a_buffer(laws, milliseconds):
    """1000 pkt/s; without noise the bound is 59 packets.  The largest of all RTTs gave up to 72."""
    trace = measured_by_ends(60, laws)
    rtt = np.array(trace.get("rtt"))
    rtt += np.random.default_rng(1).normal(0.0, milliseconds / 1000, rtt.shape)
    noisy = dataclasses.replace(trace, data=trace.data.assign(rtt=(("time", "flow"), rtt)))
    found = estimate(noisy).buffer
    assert 60.0 - 6.0 * milliseconds < found.low < 60.0
    assert f"{found.low:.3g} pkt are a lower bound, because RTTs vary by noise" in found.how
    plain = estimate(trace).buffer
    assert 58.0 < plain.low <= plain.value < 60.0


def test_a_buffer_counts_the_queue_that_a_late_flow_never_saw_empty():
    """1000 pkt/s and an RTT of 40 ms: 20 packets wait at most, and at least 9 beside the late flow.

    Only the late flow loses packets, each time when the queue is longest.
    """
    queue = np.concatenate([[0.0] * 100, np.tile(np.arange(9.0, 21.0), 40)])
    late = np.arange(queue.size) >= 100
    rtt = 0.04 + queue[:, None] / 1000 + np.stack([0 * queue, np.where(late, 0, np.nan)], axis=1)
    rates = np.where(np.stack([late, late], axis=1), [500.0, 500.0], [100.0, 0.0])
    again = np.stack([0 * queue, (queue == 20) * 1.0], axis=1)
    figures = {"throughput": rates, "rtt": rtt, "rtt_min": rtt, "retransmits": again}
    clean = {"rtt": "none across retransmissions"}
    times = 0.02 * np.arange(1.0, queue.size + 1.0)
    trace = make("pcap", times, ["early", "late"], figures, provenance=clean)
    found = estimate(trace, capacity_pps=1000.0)
    assert found.rtt["late"].value == pytest.approx(0.04)
    assert found.buffer.value == pytest.approx(20.0)


def test_one_stall_is_no_queue_if_the_trace_tells_no_losses():
    """1000 pkt/s and an RTT of 40 to 50 ms: 10 packets wait at most, and 40 seemed to wait."""
    rtt = 0.045 + 0.005 * np.sin(np.arange(500.0) / 5)[:, None]
    figures = {"throughput": np.full((500, 1), 1000.0), "rtt": rtt}
    trace = make("pcap", 0.02 * np.arange(1.0, 501.0), ["a"], figures)
    for found in (trace, stalled(trace, [3.0])):
        assert estimate(found).buffer.value == pytest.approx(10.0, abs=0.1)


@pytest.mark.parametrize(
    ("buffer", "laws", "loss"),
    [(60, ("reno",), 0.005), (60, ("sack", "reno"), 0.01), (100, ("newreno",), 0.002)],
)
def test_random_losses_are_told_from_those_of_a_full_queue_by_the_rtts_before(buffer, laws, loss):
    """At random losses the RTT before is like any other; it is long where a queue overflowed.

    Two standard deviations of the number of losses are a fifth, at 100 losses.
    """
    found = estimate(measured_by_ends(buffer, laws, loss=loss, seconds=100.0))
    assert found.loss.low <= loss <= found.loss.high
    assert found.loss.value == pytest.approx(loss, rel=0.35)
    assert found.buffer.value < buffer
    assert "most of which came while the queue was not full" in found.buffer.how
    assert estimate(measured_by_ends(buffer, laws, seconds=100.0)).loss is None


def test_drops_at_a_full_buffer_of_two_packets_are_not_random() -> None:
    queues = np.resize([2.0, 1.0], 40)
    found = estimate(of_a_queue(queues, np.where(queues == 2, 5, 0)))
    assert (found.buffer.value, found.buffer.high) == (2.0, 2.0)
    assert found.loss is None


def test_few_losses_do_not_tell_that_packets_are_lost_at_random() -> None:
    queues = np.resize([3.0, 9.0, 4.0, 20.0, 5.0], 40)
    few, many = (np.where(np.arange(40) < 3 * n, queues == 4, 0) * 1 for n in (4, 100))
    assert estimate(of_a_queue(queues, few)).loss is None
    assert estimate(of_a_queue(queues, 2 * many)).loss is not None


def test_acks_that_the_link_also_sends_do_not_raise_its_capacity() -> None:
    """In every tenth interval it sends as many ACKs as packets."""
    served = np.where(np.arange(400) % 10 == 0, 1900.0, 1000.0)[:, None]
    figures = {"queue": np.full((400, 1), 5.0), "queue_max": np.full((400, 1), 5.0)}
    figures |= {"served": served, "throughput": np.full((400, 1), 1000.0)}
    times = 0.01 * np.arange(1.0, 401.0)
    found = estimate(make("ns2", times, ["a"], figures, links=["l"])).capacity
    assert found.value == pytest.approx(served.mean(), rel=0.01)
    assert "a lower bound" not in found.how


def test_drops_at_the_longest_queue_tell_the_buffer_and_others_the_random_losses():
    """One packet in every second interval is lost at random, and 5 in those with a full queue."""
    queues = np.resize([3.0, 9.0, 4.0, 20.0, 5.0], 40)
    at_random = np.where((queues < 10) & (np.arange(40) % 2 == 0), 1, 0)
    found = estimate(of_a_queue(queues, at_random))
    assert (found.buffer.value, found.buffer.high) == (20.0, math.inf)
    assert "packets were lost while fewer waited: a lower bound" in found.buffer.how
    lost = at_random.sum()
    assert found.loss.value == pytest.approx(lost / (40_000 + lost))
    both = estimate(of_a_queue(queues, at_random + np.where(queues == 20, 5, 0)))
    assert (both.buffer.value, both.buffer.high) == (20.0, 20.0)
    assert both.loss.value == pytest.approx(lost / (40_000 + lost))
    full = estimate(of_a_queue(queues, np.where(queues == 20, 5, 0)))
    assert (full.buffer.high, full.loss) == (20.0, None)


def test_retransmissions_without_drops_do_not_tell_that_the_queue_was_full():
    """The packets may have been lost at random or at another link."""
    queues = np.resize([3.0, 9.0, 4.0, 20.0, 5.0], 40)[:, None]
    figures = {"queue": queues, "queue_max": queues, "throughput": np.full((40, 1), 1000.0)}
    figures["retransmits"] = np.where(queues == 20, 5.0, 0.0)
    found = estimate(make("ns2", np.arange(1.0, 41.0), ["a"], figures, links=["l"])).buffer
    assert (found.value, found.high) == (20.0, math.inf)
    assert "the trace shows no drops: a lower bound" in found.how


@pytest.mark.parametrize("loss", [0.0, 0.005])
def test_long_stalls_do_not_count_as_a_queue(loss):
    """A host stops for 0.2 to 0.4 s; its ACKs then come at once.  A queue never stops the link."""
    trace = measured_by_ends(60, ("reno",), loss=loss)
    rates, rtt = np.array(trace.get("throughput")), np.array(trace.get("rtt"))
    for time in np.arange(3.0, 60.0, 4.0):
        first, end = np.searchsorted(trace.edges, [time, time + 0.2 + 0.2 * (time % 8 > 4)]) - 1
        late = rates[first : end + 1].sum(axis=0)
        rates[first:end], rates[end] = 0.0, late
        rtt[end] += trace.edges[end + 1] - trace.edges[first + 1]
        rtt[first:end] = math.nan
    data = trace.data.assign(rtt=(("time", "flow"), rtt), throughput=(("time", "flow"), rates))
    found, plain = (estimate(t).buffer for t in (dataclasses.replace(trace, data=data), trace))
    assert found.value < 61
    assert found.value == pytest.approx(plain.value, rel=0.3)


def half_idle(rng, *, queue=True):
    """A link of 1000 pkt/s that is busy for 1 s of 2 s, while packets wait for up to 30 ms."""
    busy = np.arange(2000) % 200 < 100
    wait = np.where(busy, rng.uniform(0.01, 0.03, 2000), 0.0)[:, None] * queue
    rates = np.where(busy, 1000.0, 300.0)[:, None]
    figures = {"throughput": rates, "rtt": 0.05 + wait, "rtt_min": 0.05 + wait}
    figures["retransmits"] = np.zeros((2000, 1))
    return make("pcap", 0.01 * np.arange(1.0, 2001.0), ["a"], figures)


def test_a_capacity_is_the_throughput_while_packets_wait():
    """The throughput was 650 pkt/s in every block of 2 s, so this was the estimate."""
    found = estimate(half_idle(np.random.default_rng(3))).capacity
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(1000.0, rel=0.01)
    assert "while RTTs show a queue" in found.how


def test_a_link_that_is_idle_for_a_part_of_most_intervals_has_a_lower_bound_of_its_capacity():
    """1000 pkt/s; 10 packets come at once every 20 ms, but in every tenth second 20 packets.

    So the mean over the intervals in which a packet waits is 550 pkt/s.
    """
    sent = np.where(np.arange(5000) % 500 < 50, 1000.0, 500.0)[:, None]
    queue = np.full((5000, 1), 5.0)
    figures = {"served": sent, "throughput": sent, "queue": queue}
    trace = make("ns2", 0.02 * np.arange(1.0, 5001.0), ["a"], figures, links=["l"])
    found = estimate(trace).capacity
    assert 950.0 < found.value <= 1000.0
    assert found.high == math.inf
    assert "lower bound" in found.how


def test_a_capacity_is_a_lower_bound_if_packets_seldom_wait():
    found = estimate(half_idle(np.random.default_rng(3), queue=False)).capacity
    assert found.value < 1000.0
    assert found.high == math.inf
    assert "a lower bound" in found.how


def test_rtts_that_vary_without_a_queue_give_no_lower_capacity():
    """Where RTTs are long, 400 pkt/s are delivered; else 1000 pkt/s, for three quarters."""
    slow = np.arange(4000) % 40 < 10
    figures = {name: 0.05 + np.where(slow, 0.1, 0.0)[:, None] for name in ("rtt", "rtt_min")}
    figures["throughput"] = np.where(slow, 400.0, 1000.0)[:, None]
    figures["retransmits"] = np.zeros((4000, 1))
    trace = make("pcap", 0.01 * np.arange(1.0, 4001.0), ["a"], figures)
    assert estimate(trace).capacity.value >= 850.0


def test_losses_before_the_queue_is_full_give_a_lower_bound_that_says_so():
    """1000 pkt/s; when a packet is lost at random, 0 to 40 packets wait; their median is 20."""
    tops = 0.04 * np.random.default_rng(2).random(100)
    rtt = 0.05 + np.concatenate([np.linspace(0.0, top, 10) for top in tops])[:, None]
    again = (np.arange(1000) % 10 == 0)[:, None]  # the loss is seen in the interval after
    figures = {"throughput": np.full((1000, 1), 1000.0), "rtt": rtt, "retransmits": again}
    found = estimate(make("pcap", 0.02 * np.arange(1.0, 1001.0), ["a"], figures)).buffer
    assert 35 < found.value < 40
    assert "most of which came while the queue was not full" in found.how


def test_a_pause_between_transfers_is_no_low_capacity():
    """500 pkt/s for 10 s, nothing for 700 s, and the same again; a fifth of all is mostly idle."""
    rates = np.zeros((720, 1))
    rates[:10] = rates[710:] = 500.0
    trace = make("pcap", np.arange(1.0, 721.0), ["a"], {"throughput": rates})
    assert estimate(trace).capacity.value == pytest.approx(500.0)


def test_waits_of_a_slow_flow_are_no_pauses():
    """A packet every 4 s is all that the link carries: 0.25 pkt/s, not 1 in the other seconds."""
    rates = (np.arange(400) % 4 == 0).astype(float)[:, None]
    trace = make("pcap", np.arange(1.0, 401.0), ["a"], {"throughput": rates})
    assert estimate(trace).capacity.value == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize(("how", "buffer"), [("none across retransmissions", 20.0), ("", 10.0)])
def test_an_interval_with_losses_counts_if_its_rtts_are_of_packets_sent_once(how, buffer):
    """A capture's are; a kernel's may include waits behind a lost packet.  1000 pkt/s, 50 ms."""
    rtt = 0.05 + np.tile([0.0, 0.01, 0.02], 50)[:, None]
    figures = {"throughput": np.full((150, 1), 1000.0), "rtt": rtt}
    figures["retransmits"] = (rtt > 0.065).astype(float)
    trace = make("pcap", np.arange(1.0, 151.0), ["a"], figures, provenance={"rtt": how})
    assert estimate(trace, capacity_pps=1000.0).buffer.value == pytest.approx(buffer)


def test_packets_without_their_ack_are_those_that_an_ack_waits_for():
    """A link of capacity C may send C T + 1 packets in a time T, and receivers delay ACKs.

    By ACKs of 4 packets and of 1, 3 and at least 1 packets are not acknowledged; what is not known
    counts as 2 packets per ACK.
    """
    rates = np.full((6, 2), 100.0)
    for per_ack, least in (([4.0, 1.0], 5.0), ([4.0, math.nan], 5.0), (None, 3.0)):
        more = {} if per_ack is None else {"packets_per_ack": per_ack}
        assert capacity._unacknowledged(gappy(rates, slice(0), **more)) == least


def test_the_ranges_of_the_thresholds_contain_a_band_of_which_only_an_edge_is_seen() -> None:
    """A rival keeps Vegas with alpha = 1 and beta = 3 at beta: 15 (50 - 40)/50 = 3 packets."""
    from vegasmodel.packets.completion import complete

    figures = {
        "window": np.full((20, 1), 15.0),
        "rtt": np.r_[np.full((1, 1), 0.04), np.full((19, 1), 0.05)],
        "base_rtt": np.full((20, 1), 0.04),
        "throughput": np.full((20, 1), 300.0),
    }
    seen = make("linux", np.arange(1.0, 21.0), ["a"], figures)
    flow = {"law": "vegas", "name": "a", "rtt": "40 ms", "variant": "ns2"}
    table = {"link": [{"capacity": "1000 pkt/s", "buffer": "20 pkt"}], "flow": [flow]}
    found = {each.key: each for each in complete(table, seen)[1]}
    alpha, beta = (found[f"flow[0].{key}"] for key in ("alpha", "beta"))
    assert alpha.value == beta.value == 3.0
    assert alpha.low <= 1.0 <= 3.0 <= alpha.high
    assert beta.low <= 3.0 <= 64.0 <= beta.high
    assert "alpha may be far lower" in alpha.how


@pytest.mark.parametrize(("window", "least"), [(2.4, 1.0), (3.0, 2.0)])
def test_a_window_that_cannot_shrink_does_not_bound_beta_from_below(
    window: float, least: float
) -> None:
    """beta = 1 in ns-2: a backlog of 2.4 (0.2 - 0.04)/0.2 = 1.92 counts as 2, and stays.

    Vegas would make a window of 3 packets smaller, so beta is then at least the backlog of 2.4,
    which counts as 2. An interval's mean window is between two whole numbers.
    """
    from vegasmodel.packets.completion import complete

    figures = {
        "window": np.full((20, 1), window),
        "rtt": np.r_[np.full((1, 1), 0.04), np.full((19, 1), 0.2)],
        "base_rtt": np.full((20, 1), 0.04),
        "throughput": np.full((20, 1), 12.0),
    }
    seen = make("ns2", np.arange(1.0, 21.0), ["a"], figures)
    flow = {"law": "vegas", "name": "a", "rtt": "40 ms", "variant": "ns2"}
    table = {"link": [{"capacity": "100 pkt/s", "buffer": "20 pkt"}], "flow": [flow]}
    beta = {each.key: each for each in complete(table, seen)[1]}["flow[0].beta"]
    assert (beta.value, beta.low, beta.high) == (2.0, least, math.inf)
    assert ("the least of this TCP" in beta.how) == (least == 1.0)


@pytest.mark.ns2
def test_the_range_of_alpha_has_no_end_if_losses_keep_the_backlog_below_it() -> None:
    """Three Vegas flows with alpha = 2 in ns-2, beside SACK, at a buffer of 3 packets."""
    from vegasmodel.packets.completion import complete

    vegas = vm.Flow("vegas", 0.0382, name="v", count=3, alpha=2, beta=2, variant="ns2")
    flows = [vm.Flow("sack", 0.0382, variant="ns2"), vegas]
    case = vm.Scenario([vm.Link(161.0, buffer=3)], flows, run=vm.Run(60.0, 20.0, runs=1))
    seen = record(case)
    table = {"law": "vegas", "name": "v", "count": 3, "rtt": "38.2 ms", "variant": "ns2"}
    sack = {"law": "sack", "rtt": "38.2 ms", "variant": "ns2"}
    link = {"capacity": "161 pkt/s", "buffer": "3 pkt"}
    found = {e.key: e for e in complete({"link": [link], "flow": [sack, table]}, seen)[1]}
    alpha = found["flow[1].alpha"]
    assert alpha.value < 2.0 < alpha.high == math.inf
    assert "alpha may be larger" in alpha.how
    assert "alpha is at most" not in alpha.how
