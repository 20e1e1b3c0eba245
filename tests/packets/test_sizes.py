"""Different packet sizes of trace and scenario: the same bytes as another number of packets."""

import dataclasses
import re

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import measured, ns2_trace
from vegasmodel.packets.completion import complete
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.inspection import inspect
from vegasmodel.packets.trace import make


def scenario(size):
    return vm.Scenario.from_toml(
        f'packet_size = "{size} B"\n[[link]]\ncapacity = "1 Mbit/s"\n'
        '[[flow]]\nlaw = "vegas"\nrtt = "50 ms"\n[[flow]]\nlaw = "reno"\nrtt = "50 ms"\n'
        '[run]\nduration = "10 s"\nwarmup = "2 s"\n'
    )


def trace(**sizes):
    """954 kbit/s in packets of 1500 B: 20 and 59.5 of them a second."""
    rates = np.tile([20.0, 59.5], (10, 1))
    more = {"retransmits": np.ones((10, 2)), "queue": np.full((10, 1), 4.0), "window": rates / 10}
    sizes = {name: [value] * 2 for name, value in sizes.items()}
    return make(
        "pcap",
        np.arange(1.0, 11.0),
        ["vegas", "reno"],
        {"throughput": rates, **more, **sizes},
        links=["bottleneck"],
    )


def sizes(answer):
    return [(a.holds, a.detail) for a in answer.assumptions if a.name == "packet-size"]


@pytest.mark.parametrize("known", [{"packet_size": 1500.0}, {"payload": 1448.0}])
def test_counts_are_converted_by_bytes_and_that_is_said(known):
    answer = measured.to_prediction(trace(**known), scenario(500))
    assert answer.utilization[0] == pytest.approx(0.954)
    np.testing.assert_allclose(answer.throughput, [60.0, 178.5])
    np.testing.assert_allclose(answer.retransmits, [24.0, 24.0])
    np.testing.assert_allclose(answer.queue_mean, [12.0])
    ((holds, detail),) = sizes(answer)
    assert holds is (False if "packet_size" in known else None)
    assert "vegas has 1500 B, not 500 B" in detail


@pytest.mark.parametrize(("size", "told"), [(1500, 0), (1514, 0), (1538, 1), (1460, 1)])
def test_headers_make_no_other_packet(size, told):
    """But a link of 1 Mbit/s sends 86 packets of 1460 B a second, and only 83 of 1500 B."""
    answer = measured.to_prediction(trace(packet_size=1500.0), scenario(size))
    np.testing.assert_allclose(answer.throughput, [20.0, 59.5])
    assert len(sizes(answer)) == told
    for holds, detail in sizes(answer):
        assert holds is False
        assert f"vegas has 1500 B, not {size} B" in detail
        assert "write the trace's size as `packet_size`" in detail


def test_the_headers_of_ns2_are_part_of_the_scenarios_packets():
    """ns-2.35 adds 40 B to the packets of Reno, but not to those of Vegas."""
    case = scenario(1460).replace({"run.ns2_defaults": "2.35", "flow.variant": "ns2"})
    ((_, detail),) = sizes(measured.to_prediction(trace(packet_size=1500.0), case))
    assert "vegas has 1500 B, not 1460 B" in detail
    assert "reno" not in detail


def test_a_load_above_1_may_come_from_the_packet_size():
    """The link carries 90 packets of 1500 B a second; the file says 90 pkt/s, and has 1000 B."""
    case = scenario(1000).replace({"link.capacity": 90.0})
    seen = trace(packet_size=1500.0)
    with pytest.raises(FieldError) as error:
        vm.compare(case, seen, models=["network"])
    assert "this one has 1.32 times what its link can carry" in str(error.value)
    assert "packet_size may be wrong if the capacity is in pkt/s: vegas has 1500 B" in str(
        error.value
    )
    assert vm.compare(case.replace({"packet_size": 1500.0}), seen, models=["network"])
    with pytest.raises(FieldError) as error:
        vm.compare(scenario(1500).replace({"link.capacity": 40.0}), seen, models=["network"])
    assert "packet_size" not in str(error.value)


def test_a_trace_without_sizes_is_taken_as_it_is():
    answer = measured.to_prediction(trace(), scenario(500))
    np.testing.assert_allclose(answer.throughput, [20.0, 59.5])


def test_an_estimated_capacity_is_in_the_scenarios_packets():
    table = {
        "packet_size": "500 B",
        "link": [{"buffer": "20 pkt"}],
        "flow": [{"law": law, "rtt": "50 ms", "alpha": 3} for law in ("vegas", "reno")],
        "run": {"duration": "10 s", "warmup": "2 s"},
    }
    found, (capacity,) = complete(table, trace(packet_size=1500.0))
    assert capacity.key == "link[0].capacity"
    assert found.links[0].capacity == pytest.approx(3 * 79.5)


@pytest.mark.parametrize("told", ["none", "all", "all but one", "with a SYN"])
def test_a_lower_bound_of_the_capacity_is_none_too_large_if_packets_differ_in_size(told):
    """A link of 500 kB/s is busy from 5 to 15 s, at first with packets of 500 B, then of 1000 B.

    In packets of 500 B its capacity is 1000 pkt/s.  The mean packet in the trace has 769 B. If the
    trace tells the sizes of the link's packets in all intervals, the rate is of packets of 769 B.
    A SYN of 40 B makes the mean of its interval smaller than the smallest full packet.
    """
    rates = np.zeros((20, 2))
    rates[5:8, 0], rates[8:15, 1] = 1000.0, 500.0
    figures = {
        "throughput": rates,
        "served": rates.sum(axis=1, keepdims=True),
        "queue": np.where(rates.sum(axis=1, keepdims=True) > 0, 3.0, 1.0),
        "packet_size": [500.0, 1000.0],
    }
    if told != "none":
        served = np.where(rates[:, :1] > 0, 500.0, 1000.0)
        served[6] = {"all but one": np.nan, "with a SYN": 499.54}.get(told, 500.0)
        figures["served_size"] = served
    seen = make("ns2", np.arange(1.0, 21.0), ["vegas", "reno"], figures, links=["bottleneck"])
    table = {
        "packet_size": "500 B",
        "link": [{"buffer": "20 pkt"}],
        "flow": [
            {"law": "vegas", "rtt": "50 ms", "alpha": 3},
            {"law": "reno", "rtt": "50 ms", "packet_size": "1000 B"},
        ],
        "run": {"duration": "20 s", "warmup": "2 s"},
    }
    found, (capacity,) = complete(table, seen)
    assert capacity.high == np.inf
    smallest = "sizes differ, so each packet counts as the smallest"
    how = smallest if told in ("none", "all but one") else "counted by bytes"
    assert f"a lower bound; {how}" in capacity.how
    assert 990.0 < found.links[0].capacity <= 1000.0


@pytest.mark.ns2
def test_a_lower_bound_of_the_buffer_is_none_too_large_if_packets_differ_in_size() -> None:
    """ns-2's limit is 47 packets, so at most 46 wait behind the one in transmission.

    The packets of SACK have 1500 B, those of Vegas 100 B. For a short time the link sent mostly
    small packets, 284 a second. Its usual number is 190, which counts for the packets that waited.
    """
    sack = vm.Flow("sack", 0.0373, count=2, start=0.0266, variant="ns2", packet_size=1500)
    vegas = {"alpha": 2, "beta": 4, "variant": "ns2", "packet_size": 100}
    flows = [sack, vm.Flow("vegas", 0.0373, count=2, start=1.58, **vegas)]
    case = vm.Scenario([vm.Link(162.0, buffer=47)], flows, run=vm.Run(60.0, 20.0, runs=1))
    seen = ns2_trace.record(case)
    of_flows = seen.data.copy(deep=True)
    for name in ("queue", "served"):  # then the capacity comes from the flows' throughputs
        of_flows[name].values[...] = np.nan
    for each in (seen, dataclasses.replace(seen, data=of_flows)):
        found = estimate(each)
        assert found.capacity.high == np.inf
        assert found.buffer.low < found.buffer.value <= 47.0
        assert "packets of the mean size are counted" in found.buffer.how
        said = re.findall(r"([\d.]+) pkt are a lower bound, because (.*)", found.buffer.how)
        assert [float(number) for number, _ in said] == [float(f"{found.buffer.low:.3g}")]
        assert said[0][1].endswith("packets differ in size")


def test_a_time_with_small_packets_only_does_not_make_the_capacity_a_lower_bound() -> None:
    """A link of 500 kB/s is busy from 1 s on: until 2 s with packets of 500 B, then also of 1000 B.

    In packets of 1000 B its capacity is 500 pkt/s. The estimate was only a lower bound: the
    second of small packets, 1000 pkt/s, seemed to show that the link was partly idle later.
    """
    rates = np.tile([100.0, 450.0], (2000, 1))
    rates[:100], rates[100:200] = 0.0, [1000.0, 0.0]
    sums = rates.sum(axis=1, keepdims=True)
    figures = {"throughput": rates, "served": sums, "queue": np.where(sums > 0, 3.0, 0.0)}
    figures["packet_size"] = [500.0, 1000.0]
    times = 0.01 * np.arange(1.0, 2001.0)
    seen = make("ns2", times, ["vegas", "reno"], figures, links=["bottleneck"])
    flows = [
        {"law": "vegas", "rtt": "50 ms", "alpha": 3, "packet_size": "500 B"},
        {"law": "reno", "rtt": "50 ms"},
    ]
    table = {"packet_size": "1000 B", "link": [{"buffer": "20 pkt"}], "flow": flows}
    found, (capacity,) = complete(table | {"run": {"duration": "20 s", "warmup": "2 s"}}, seen)
    assert "while at least one waits; counted by bytes" in capacity.how
    assert found.links[0].capacity == pytest.approx(500.0, rel=0.002)


@pytest.mark.parametrize("sizes", [("1500 B", "1500 B"), ("1500 B", "100 B")])
def test_throughputs_of_two_directions_are_no_capacity(sizes: tuple[str, str]) -> None:
    """The sum was told as the capacity of the link, up to twice as much as it carries."""
    seen = make(
        "pcap", np.arange(1.0, 21.0), ["there", "back"], {"throughput": np.full((20, 2), 90)}
    )
    rows = zip(("there", "back"), ("forward", "reverse"), sizes, strict=True)
    flows = [
        {"law": "reno", "name": name, "rtt": "50 ms", "direction": way, "packet_size": size}
        for name, way, size in rows
    ]
    table = {"packet_size": "1500 B", "link": [{"buffer": "20 pkt"}], "flow": flows}
    with pytest.raises(FieldError, match=r"capacity.*required: the trace cannot tell it"):
        complete(table, seen)
    table["flow"] = [flow | {"direction": "forward", "packet_size": "1500 B"} for flow in flows]
    assert complete(table, seen)[0].links[0].capacity == pytest.approx(180.0)


def small_and_large(rates):
    """A trace of packets of 100 B and of 1500 B, and a scenario without a capacity for it.

    ``rates`` are the throughputs of both flows in each second, pkt/s.
    """
    figures = {"throughput": rates, "packet_size": [100.0, 1500.0]}
    figures["rtt"] = np.full(rates.shape, 0.05)
    figures["retransmits"] = np.zeros(rates.shape)
    table = {
        "packet_size": "1500 B",
        "link": [{"buffer": "20 pkt"}],
        "flow": [
            {"law": "vegas", "rtt": "50 ms", "alpha": 3, "packet_size": "100 B"},
            {"law": "reno", "rtt": "50 ms"},
        ],
        "run": {"duration": f"{len(rates)} s", "warmup": "2 s"},
    }
    return table, make("pcap", 1.0 + np.arange(len(rates)), ["vegas", "reno"], figures)


def test_a_lower_bound_counts_large_packets_by_their_bytes():
    """Of 500 pkt/s nearly all have 1500 B: the link carries at least these bytes."""
    rates = np.tile([1.0, 499.0], (20, 1))
    rates[7:9] = [1.0, 399.0]
    found, (capacity,) = complete(*small_and_large(rates))
    assert "a lower bound; counted by bytes, as packets differ in size" in capacity.how
    assert 488.0 <= found.links[0].capacity <= 500.0


def test_a_lower_bound_from_throughputs_counts_the_bytes_of_each_flow(tmp_path):
    """A link of 750 kB/s is busy in half of the time, with 2500 small and 333 large pkt/s.

    The packets have 100 B and 1500 B, so in packets of 1500 B its capacity is 500 pkt/s. If all
    packets counted as small, the lower bound would be 2833 * 100 / 1500 = 189 pkt/s. All bytes of
    the trace, divided by its length, are 250 pkt/s.
    """
    rates = np.zeros((40, 2))
    rates[10:30] = [2500.0, 1000.0 / 3.0]
    table, seen = small_and_large(rates)
    found, (capacity,) = complete(table, seen)
    assert capacity.high == np.inf
    assert "a lower bound; counted by bytes, as packets differ in size" in capacity.how
    assert 480.0 < found.links[0].capacity <= 500.0
    seen.write(tmp_path / "t.parquet")
    bits = inspect(tmp_path / "t.parquet")["capacity_bps"]
    assert 480.0 < bits / 12000.0 <= 500.0


def test_a_capacity_from_throughputs_is_what_the_busiest_times_carry_in_bytes():
    """The link carries 500 large packets/s, or as many bytes, for 16 s, then 400 for 24 s.

    No RTTs show when packets wait. So the estimate is what the link carries at the busiest times,
    though it may have been idle for some time even then.
    """
    carried = np.where(np.arange(40) < 16, 500.0, 400.0)
    large = np.where(np.arange(40) % 2 == 0, 300.0, 200.0)
    rates = np.column_stack([15.0 * (carried - large), large])  # 15 small ones have 1500 B
    table, _ = small_and_large(rates)
    seen = make(
        "pcap",
        1.0 + np.arange(40),
        ["vegas", "reno"],
        {"throughput": rates, "packet_size": [100.0, 1500.0]},
    )
    found, (capacity,) = complete(table, seen)
    assert found.links[0].capacity == pytest.approx(500.0)
    assert capacity.low <= 500.0 * (1 + 1e-9)
    assert capacity.high == np.inf
