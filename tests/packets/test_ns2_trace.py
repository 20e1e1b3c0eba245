"""A run of ns-2 as a trace: the sums over its intervals are the run's own counts."""

from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.packets import ns2, ns2_trace, run_output
from vegasmodel.packets.estimate import estimate
from vegasmodel.packets.measured import to_prediction
from vegasmodel.packets.trace_file import read_parquet

TEXT = """
packet_size = "500 B"
[[link]]
name = "l"
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
[[flow]]
law = "reno"
rtt = "80 ms"
start = "3 s"
[run]
duration = "20 s"
warmup = "10 s"
"""


@pytest.mark.ns2
def test_intervals_add_up(tmp_path: Path) -> None:
    scenario = vm.Scenario.from_toml(TEXT)
    measured = ns2.run(scenario)
    recorded = ns2_trace.record(scenario, 0.5)
    edges = recorded.edges
    np.testing.assert_allclose(edges, np.arange(41) * 0.5, atol=1e-9)
    late = edges[1:] > 10 + 1e-6
    np.testing.assert_array_equal(recorded.get("acks")[late].sum(axis=0), measured.acks)
    np.testing.assert_array_equal(
        recorded.get("retransmits")[late].sum(axis=0), measured.retransmits
    )
    lost = recorded.get("loss")[late].sum(axis=0) / recorded.get("sent")[late].sum(axis=0)
    np.testing.assert_allclose(lost, measured.loss_rate)
    np.testing.assert_allclose(recorded.get("queue")[late].mean(), measured.queue_mean[0])
    assert recorded.get("base_rtt")[-1, 0] == pytest.approx(measured.base_rtt[0])
    assert np.all(recorded.get("rtt_min")[late] <= recorded.get("rtt")[late])
    assert np.isnan(recorded.get("rtt")[:5, 1]).all()  # before its start
    assert recorded.scenario == scenario.fingerprint()
    recorded.write(tmp_path / "run.parquet")
    assert recorded.data.identical(read_parquet(tmp_path / "run.parquet").data)


@pytest.mark.ns2
@pytest.mark.parametrize("law", ["reno", "sack", "cubic"])
def test_the_rtt_of_a_syn_is_left_out_as_it_is_smaller_than_a_data_packet(law: str) -> None:
    """The least RTT is that of the first data packet, which has 40 B of headers beside its 1000 B.

    They take 0.4 ms at the link, and a 200th of this at each of two access links.
    """
    run = vm.Run(duration=20.0, warmup=5.0, ns2_defaults="2.35")
    flow = vm.Flow(law, 0.1, variant="ns2", send_jitter=0.0)
    recorded = ns2_trace.record(vm.Scenario([vm.Link(100.0, buffer=20)], [flow], run=run))
    least = 0.1 + 0.0004 * (1 + 2 / 200)
    assert np.nanmin(recorded.get("rtt_min")) == pytest.approx(least, abs=1e-8)
    assert estimate(recorded).rtt[law].value == pytest.approx(least, abs=1e-8)


@pytest.mark.ns2
def test_an_interval_that_does_not_divide_the_duration() -> None:
    recorded = ns2_trace.record(vm.Scenario.from_toml(TEXT), 7.0)
    np.testing.assert_allclose(recorded.edges, [0, 7, 14, 20])


@pytest.mark.ns2
def test_the_last_packet_of_a_flow_that_ends() -> None:
    """The trace did not tell it, so a flow that ends was averaged over the whole time.

    Reno is done before the end, and Vegas stops at 15 s.  ns-2's own averages are over the time in
    which a flow is active.
    """
    ending = TEXT.replace('law = "vegas"', 'law = "vegas"\nstop = "15 s"')
    ending = ending.replace('start = "3 s"', 'start = "3 s"\nsize = "3 MB"')
    scenario = vm.Scenario.from_toml(ending)
    recorded = ns2_trace.record(scenario, 0.5)
    last = recorded.get("last")
    assert last[0] == 15.0
    busy = recorded.edges[1:][recorded.get("acks")[:, 1] > 0]
    assert busy[-1] < 19.0
    assert busy[-1] - 0.5 < last[1] < busy[-1]
    found = to_prediction(recorded, scenario).throughput
    expected = ns2.run(scenario).throughput
    assert found[1] == pytest.approx(expected[1], rel=1e-9)
    assert found[0] == pytest.approx(expected[0], rel=0.02)  # packets on their way at the stop


@pytest.mark.ns2
def test_a_start_that_start_jitter_delays_is_the_time_of_the_first_packet() -> None:
    """The trace had the start of the scenario, up to ``start_jitter`` too early."""
    scenario = vm.Scenario.from_toml(f'{TEXT}start_jitter = "8 s"\nseed = 3\n')
    recorded = ns2_trace.record(scenario, 0.5)
    drawn = np.random.default_rng([3, 0])
    drawn.integers(1, 2**31 - 1)
    begins = np.array([0.0, 3.0]) + drawn.uniform(0.0, 8.0, 2)
    first = recorded.get("first")
    assert np.all(begins > 1.0)
    assert np.all(first <= begins)
    assert np.all(begins < first + 0.5)


def test_rtts_are_those_of_acks_whose_packets_were_all_sent_once() -> None:
    """Karn's rule, ACK by ACK, for random packets that are sent again and ACKs that skip some."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        again = np.flatnonzero(rng.random(n) < 0.3)
        sent = [(float(k), True, int(k)) for k in range(n)]
        sent += [(k + rng.uniform(0.1, 3.0), True, int(k)) for k in again]
        numbers = np.sort(rng.integers(0, n, int(rng.integers(0, n + 1))))
        acks = [(k + 4.0 + rng.uniform(0.0, 0.5), False, int(k)) for k in numbers]
        events = sorted(sent + acks)
        expected, highest = [], -1
        for time, is_data, number in events:
            if is_data or number <= highest:
                continue
            if not set(range(highest + 1, number + 1)) & set(again.tolist()):
                expected.append((time, time - number))
            highest = number
        times, kinds, numbers = (np.array(column) for column in zip(*events, strict=True))
        found = run_output._rtts_of_flow(kinds, times, numbers, np.full(len(kinds), 1000))
        assert found.time.tolist() == [time for time, _ in expected]
        assert found.rtt == pytest.approx([rtt for _, rtt in expected])
