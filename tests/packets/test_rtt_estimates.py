"""RTTs without queueing, estimated from a trace: their ranges, and those that are one RTT."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import measurement
from vegasmodel.command_line import newfile
from vegasmodel.packets.estimate import _as_one, estimate
from vegasmodel.packets.estimated import Estimate
from vegasmodel.packets.trace import make
from vegasmodel.scenario import Flow, Link, Run, Scenario

JITTER = 20e-6  # s: what hosts add to an RTT, on average


def measured(rtts, jitter=JITTER, *, seed=1, count=400, busy=0.9):
    """A trace of flows with these RTTs, s, that share a queue of up to 20 packets of 1 ms.

    The queue is empty in the part 1 - ``busy`` of the intervals.  To each RTT the hosts add a
    random time.
    """
    rng = np.random.default_rng(seed)
    queue = 1e-3 * rng.integers(1, 20, count) * (rng.random(count) < busy)
    seen = np.array(rtts) + queue[:, None] + rng.exponential(jitter, (count, len(rtts)))
    rates = np.full((count, len(rtts)), 1000.0 / len(rtts))
    flows = [f"f{i}" for i in range(len(rtts))]
    values = {"throughput": rates, "rtt": seen + 1e-4, "rtt_min": seen}
    values["retransmits"] = np.where(queue == queue.max(), 1.0, 0.0)[:, None] * np.ones(len(rtts))
    laws = dict(zip(flows, ("vegas", "reno"), strict=False))
    return make("pcap", np.arange(1.0, count + 1), flows, values, controls=laws)


@pytest.mark.parametrize("kind", ["exponential", "uniform"])
def test_the_range_of_a_least_rtt_has_the_true_one_in_95_of_100_cases(kind):
    """2000 flows, so chance moves the part by 0.5 % (standard deviation)."""
    rng, shape = np.random.default_rng(7), (200, 2000)
    more = rng.exponential(0.1, shape) if kind == "exponential" else rng.uniform(0, 1, shape)
    flows = [f"f{i}" for i in range(shape[1])]
    trace = make("pcap", np.arange(1.0, shape[0] + 1), flows, {"rtt_min": 0.05 + more})
    found = estimate(trace).base_rtt.values()
    assert 0.935 < np.mean([e.low <= 0.05 + 1e-6 for e in found]) < 0.965
    assert all(e.value <= e.high < e.value + 2e-6 for e in found)


def test_the_range_of_a_sources_own_least_rtt_is_that_of_its_last_two_values():
    """The values are a running minimum: 40.5 ms, then 40.2 ms; 40.2 - 19 * 0.3 = 34.5 ms."""
    own = np.array([[0.0405], [0.0405], [0.0402], [0.0402], [0.0402]])
    (found,) = estimate(make("linux", np.arange(1.0, 6.0), ["a"], {"base_rtt": own})).rtt.values()
    assert (found.low, found.value) == pytest.approx((0.034499, 0.0402))


@pytest.mark.parametrize("seed", range(8))
def test_rtts_that_differ_by_chance_are_written_as_one(seed):
    """``minicycle``, which has one RTT for all flows, then predicts from the file."""
    trace = measured([0.06, 0.06], seed=seed)
    least = trace.known("rtt_min").min(axis=0)
    assert least[0] != least[1]
    text, *_ = newfile.from_trace(trace, "alike")
    lines = [line for line in text.splitlines() if line.startswith("rtt = ")]
    assert len(lines) == 2
    assert len(set(lines)) == 1
    assert "one RTT for 2 flows, as the trace does not tell theirs apart" in lines[0]
    scenario = vm.Scenario.from_toml(text)
    assert scenario.flows[0].rtt == pytest.approx(0.06, abs=2 * JITTER)
    assert vm.predict(scenario, "minicycle").applicable
    table = {"link": [{}], "flow": [{"name": f"f{i}", "law": "reno"} for i in range(2)]}
    first, second = vm.compare(table, trace, []).scenario.members  # keys left out of a file
    assert first.rtt == second.rtt


@pytest.mark.parametrize(
    ("second", "jitter"),
    [(60.5e-3, JITTER), (60.01e-3, 0.0), (90e-3, 1e-3)],
)
def test_rtts_that_a_trace_tells_apart_stay_as_they_are(second, jitter):
    found = estimate(measured([0.06, second], jitter)).rtt
    assert found["f0"].value == pytest.approx(0.06, abs=jitter / 10 + 1e-9)
    assert found["f1"].value == pytest.approx(second, abs=jitter / 10 + 1e-9)
    assert all("one RTT" not in e.how for e in found.values())


@pytest.mark.parametrize(("second", "one"), [(60.9e-3, True), (61.1e-3, False)])
def test_one_rtt_stands_for_rtts_that_differ_by_at_most_a_packet(second, one):
    """The second flow saw its RTT once, and else 15 ms more: the range of its RTT begins at 0.

    The link sends a packet in 1 ms.  The two flows measure their RTTs at different times.
    """
    trace = measured([0.06, second], busy=0.0, jitter=1e-9)
    values = {name: trace.get(name) for name in ("throughput", "rtt", "rtt_min")}
    values["rtt_min"][:, 1] += 0.015
    values["rtt_min"][7, 1] = second
    values["rtt_min"][::2, 1] = values["rtt_min"][1::2, 0] = np.nan
    found = estimate(make("pcap", np.arange(1.0, 401.0), trace.flows, values))
    assert found.base_rtt["f1"].low == 0.0
    assert found.rtt["f0"].value == pytest.approx(0.06, abs=1e-6)
    assert found.rtt["f1"].value == pytest.approx(0.06 if one else second, abs=1e-6)


def test_a_syn_gives_no_rtt_even_if_its_ack_comes_after_the_first_data(tmp_path):
    """The first window of ns-2's Agent/TCP/Linux holds the SYN, of 40 B, and a data packet."""
    events = [  # the SYN's ACK needs 50 ms, and those of data need 52 ms
        "+ 0.000 0 1 tcp 40 ------- 1 0.0 2.0 0 0",
        "+ 0.000 0 1 tcp 1000 ------- 1 0.0 2.0 1 1",
        "r 0.050 1 0 ack 40 ------- 1 2.0 0.0 0 2",
        "r 0.052 1 0 ack 40 ------- 1 2.0 0.0 1 3",
        "+ 0.060 0 1 tcp 1000 ------- 1 0.0 2.0 2 4",
        "r 0.112 1 0 ack 40 ------- 1 2.0 0.0 2 5",
    ]
    path = tmp_path / "linux.tr"
    path.write_text("\n".join(events) + "\n")
    seen = np.asarray(vm.packets.read(path).data["rtt_min"])
    assert np.nanmin(seen) == pytest.approx(0.052)


def test_a_common_rtt_lies_in_the_range_of_each_of_its_flows():
    """In ms: a range from 99.5 has no value in common with one up to 99.4, but both with others."""
    ranges = {"a": (99.0, 99.4, 99.4), "b": (99.1, 99.5, 99.7), "c": (99.5, 99.6, 99.8)}
    ms = {name: [each / 1e3 for each in three] for name, three in ranges.items()}
    found = {n: Estimate(value, low, high, "s", "") for n, (low, value, high) in ms.items()}
    common = _as_one(found, 1e-3)
    assert common["a"] == common["b"]
    assert (common["a"].low, common["a"].value, common["a"].high) == (0.099, 0.0994, 0.0997)
    assert common["c"] == found["c"]


def test_the_range_of_an_rtt_from_means_holds_the_true_one():
    """In each interval 10 packets or more wait, for 1 ms each, so no mean is near the RTT."""
    rng, true = np.random.default_rng(3), np.array([0.04, 0.05])
    means = true + 1e-3 * rng.uniform(10.0, 20.0, (300, 1)) + rng.normal(0.0, 1e-5, (300, 2))
    rates = np.full((300, 2), 500.0)
    trace = make("linux", np.arange(1.0, 301.0), ["a", "b"], {"rtt": means, "throughput": rates})
    for each, rtt in zip(estimate(trace).rtt.values(), true, strict=True):
        assert each.low <= rtt <= each.high
        assert "mean or smoothed" in each.how


@pytest.mark.ns2
def test_the_range_of_an_rtt_from_means_holds_that_of_ns2():
    """Somebody who records means only has no least RTTs; here the queue is hardly ever empty."""
    flows = [Flow("cubic", 0.04, variant="ns2"), Flow("sack", 0.04, variant="ns2")]
    run = measurement.record_engine(Scenario([Link(1000.0, buffer=90)], flows, run=Run(60.0, 20.0)))
    late = run.data["time"].values > 20.0
    values = {name: run.get(name)[late] for name in ("throughput", "rtt")}
    means = make("linux", run.data["time"].values[late], run.flows, values)
    for each in estimate(means).rtt.values():
        assert each.value > 0.045
        assert each.low <= 0.04 <= each.high


@pytest.mark.ns2
def test_the_range_of_an_rtt_holds_the_true_one_if_packets_differ_in_size():
    """CUBIC never meets an empty queue, and has more RTTs in each interval than Vegas."""
    flows = (
        Flow("vegas", 0.033, alpha=2.0, beta=2.0, start=0.283, packet_size=1500.0, variant="ns2"),
        Flow("cubic", 0.033, start=0.838, packet_size=3000.0, variant="ns2"),
    )
    scenario = Scenario((Link(369.0, buffer=15.0),), flows, run=Run(duration=60.0, warmup=20.0))
    for found in estimate(measurement.record_engine(scenario)).rtt.values():
        assert found.low <= 0.033 <= found.high


@pytest.mark.ns2
def test_the_range_of_a_common_rtt_holds_those_of_flows_that_differ():
    """The RTTs differ by less than the time in which the link sends a packet, 15 ms."""
    flows = (
        Flow("sack", 0.0584, count=3, start=0.5, variant="ns2"),
        Flow("tahoe", 0.0494, start=1.0, variant="ns2"),
    )
    scenario = Scenario((Link(67.1, buffer=200.0, loss=0.00876),), flows, run=Run(60.0, 20.0))
    rtts = [member.rtt for member in scenario.members]
    found = list(estimate(measurement.record_engine(scenario)).rtt.values())
    assert any("one RTT" in each.how for each in found)
    for each, rtt in zip(found, rtts, strict=True):
        assert each.low <= rtt <= each.high


@pytest.mark.ns2
def test_acks_that_the_receiver_holds_back_make_no_queue_longer():
    """ns-2's receiver holds an ACK back for up to 100 ms; the queue takes 22/180 s at most."""
    flows = (
        Flow("reno", 0.0707, start=0.0457, variant="ns2"),
        Flow("tahoe", 0.0707, count=4, start=0.186, variant="ns2", delayed_ack=True),
    )
    run = Run(duration=60.0, warmup=20.0, ns2_defaults="2.35")
    scenario = Scenario((Link(180.0, buffer=22.0),), flows, run=run)
    found = estimate(measurement.record_engine(scenario)).buffer
    assert found is not None
    assert found.low <= 22.0
