"""Different packet sizes of trace and scenario: the same bytes as another number of packets."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.fields.units import FieldError
from vegasmodel.packets import measured
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


@pytest.mark.parametrize("size", [1500, 1514, 1538, 1460])
def test_headers_make_no_other_packet(size):
    answer = measured.to_prediction(trace(packet_size=1500.0), scenario(size))
    np.testing.assert_allclose(answer.throughput, [20.0, 59.5])
    assert sizes(answer) == []


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
    from vegasmodel.packets.completion import complete

    found, (capacity,) = complete(table, trace(packet_size=1500.0))
    assert capacity.key == "link[0].capacity"
    assert found.links[0].capacity == pytest.approx(3 * 79.5)
