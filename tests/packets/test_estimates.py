"""Capacity, buffer, baseRTT and alpha, estimated from a trace."""

import dataclasses
import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets import samples
from tests.packets.scenes import LINUX, gappy, kernel_log
from vegasmodel.packets import read
from vegasmodel.packets.estimate import estimate
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


def test_a_capacity_is_estimated_from_the_time_in_which_all_throughputs_are_known():
    rates = np.tile([600.0, 400.0], (40, 1))
    found = estimate(gappy(rates, slice(None, None, 2))).capacity
    assert (found.low, found.value, found.high) == pytest.approx((1000.0,) * 3)
    assert estimate(gappy(rates, (slice(None), 1))).capacity.value == pytest.approx(600.0)
    rates[:20, 0] = rates[20:, 1] = math.nan
    assert estimate(gappy(rates, slice(0))).capacity is None


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
    assert "the queue overflowed" in buffer.how


def measured_by_ends(buffer, laws, *, delayed=False, seconds=60.0):
    """What the hosts see of a run in ``rounds`` behind a buffer: no queue of the link."""
    flows = [
        vm.Flow(law, f"{40 + 10 * i} ms", name=f"{law}{i}", variant="linux", delayed_ack=delayed)
        for i, law in enumerate(laws)
    ]
    case = vm.Scenario(
        (vm.Link("1000 pkt/s", buffer=buffer),), tuple(flows), run=vm.Run(seconds, 1.0, runs=1)
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


def test_one_stall_is_no_queue_if_the_trace_tells_no_losses():
    """1000 pkt/s and an RTT of 40 to 50 ms: 10 packets wait at most, and 40 seemed to wait."""
    rtt = 0.045 + 0.005 * np.sin(np.arange(500.0) / 5)[:, None]
    figures = {"throughput": np.full((500, 1), 1000.0), "rtt": rtt}
    trace = make("pcap", 0.02 * np.arange(1.0, 501.0), ["a"], figures)
    for found in (trace, stalled(trace, [3.0])):
        assert estimate(found).buffer.value == pytest.approx(10.0, abs=0.1)


def test_losses_before_the_queue_is_full_give_a_lower_bound_that_says_so():
    """1000 pkt/s; when a packet is lost at random, 0 to 40 packets wait; their median is 20."""
    tops = 0.04 * np.random.default_rng(2).random(100)
    rtt = 0.05 + np.concatenate([np.linspace(0.0, top, 10) for top in tops])[:, None]
    again = (np.arange(1000) % 10 == 0)[:, None]  # the loss is seen in the interval after
    figures = {"throughput": np.full((1000, 1), 1000.0), "rtt": rtt, "retransmits": again}
    found = estimate(make("pcap", 0.02 * np.arange(1.0, 1001.0), ["a"], figures)).buffer
    assert 35 < found.value < 40
    assert "not all of a full queue" in found.how


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
    assert estimate(trace).buffer.value == pytest.approx(buffer)
