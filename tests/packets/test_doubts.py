"""What is doubtful about a trace: units, and flows that have little to send."""

import math

import numpy as np
import pytest

import vegasmodel as vm
from tests.packets.scenes import LINUX, RUNS, kernel_log
from vegasmodel.packets import read
from vegasmodel.packets.activity import idle_flows, windows_a_round_trip
from vegasmodel.packets.inspection import doubts, inspect
from vegasmodel.packets.trace import make


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, None),
        ({"byte": 8}, "8 windows in an RTT, as if bits were taken for bytes"),
        ({"trip": 1e-3}, "0.001 of its window"),
        ({"second": 1e3}, "0.001 of its window"),
        ({"trip": 1e4}, "an RTT of 500 s, as if milliseconds"),
        ({"second": 1e-6}, "Gbit/s, as if bits"),
    ],
)
def test_a_column_in_another_unit_is_doubted(wrong, said, tmp_path):
    (tmp_path / "log.csv").write_bytes(kernel_log(**wrong))
    doubt = inspect(tmp_path / "log.csv")["doubts"].get("usual-units", "")
    assert (said or "") in doubt
    assert bool(doubt) == bool(said)


def test_a_comparison_has_the_doubt_about_units_too(tmp_path, capsys):
    scenario = vm.Scenario(
        [vm.Link(3000.0, buffer=20.0)], [vm.Flow("reno", 0.05, name="a")], run=vm.Run(5.0, 1.0)
    )
    for byte, doubted in ((1, False), (8, True)):
        (tmp_path / "log.csv").write_bytes(kernel_log(byte=byte))
        found = vm.compare(scenario, tmp_path / "log.csv", "network")
        said = {each.name: each.holds for each in found.measured.assumptions}
        assert ("usual-units" in said) is doubted
        assert said.get("usual-units") is None
        found.print_table()
        printed = capsys.readouterr().out
        assert ("trace: usual-units is not known: a delivers 8 windows" in printed) is doubted


@pytest.mark.parametrize("run", RUNS)
def test_a_kernel_delivers_its_window_in_a_round_trip(run):
    """Little's law, on which the doubt stands."""
    trace = read(LINUX / f"{run}.parquet")
    np.testing.assert_allclose(windows_a_round_trip(trace), 1.0, atol=0.1)


def test_intervals_without_a_delivery_raise_no_doubt_of_units(tmp_path):
    """A window of 6 packets in an RTT of 60 ms: 2 packets every 20 ms, in intervals of 4 ms."""
    bursts = np.where(np.arange(500) % 5 == 4, 2 / 0.004, 0.0)[:, None]
    flow = {"throughput": bursts, "rtt": np.full((500, 1), 0.06), "window": np.full((500, 1), 6.0)}
    make("pcap", 0.004 * np.arange(1, 501), ["a"], flow).write(tmp_path / "fine.parquet")
    assert inspect(tmp_path / "fine.parquet")["doubts"] == {}


@pytest.mark.parametrize(
    ("figures", "idle"),
    [
        ({"rate": 0.7, "window": 10.0}, True),  # 0.7 packets a second, 10 in a round trip of 0.1 s
        ({"rate": 10.0, "window": 1.0}, False),  # starved: its window is one packet
        ({"rate": 2.0, "window": 2.0, "retransmits": 0.2}, False),  # it waits for its timer
        ({"rate": 2.0, "window": 2.0, "retransmits": 0.05}, True),  # 0.05 packets a second
        ({"rate": 20.0, "window": 100.0}, False),  # 2 % of the other's packets
        ({"rate": 0.5, "window": math.nan}, True),  # 5 packets in 10 s
        ({"rate": 2.0, "window": math.nan}, False),
        ({"rate": 0.0, "window": 10.0}, True),
        ({"rate": 15.0, "window": 100.0, "payload": 100.0}, True),  # 0.15 % of the other's bytes
    ],
)
def test_flows_that_have_little_to_send(figures, idle):
    """Beside a flow of 1000 pkt/s, which has a window of 100 packets in an RTT of 0.1 s."""
    full = {"rate": 1000.0, "window": 100.0, "retransmits": 20.0, "payload": 1000.0}
    each = {key: np.array([value, figures.get(key, 0.0)]) for key, value in full.items()}
    each["payload"][1] = figures.get("payload", 1000.0)
    rows = {key: np.tile(each[key], (10, 1)) for key in ("window", "retransmits")}
    rows |= {"throughput": np.tile(each["rate"], (10, 1)), "rtt": np.full((10, 2), 0.1)}
    trace = make("linux", np.arange(1.0, 11.0), ["a", "b"], rows | {"payload": each["payload"]})
    assert list(idle_flows(trace)) == ["b"] * idle
    assert doubts(trace).get("no-idle-flows", "").startswith("b delivers") == idle


def two_flows(shared, *, how="segment to its ACK, none across retransmissions"):
    """Two flows of 500 pkt/s behind queues of 0 to 40 packets, with two sawteeth, or one."""
    time = 0.02 * np.arange(1.0, 2001.0)
    one, other = (0.04 * (time / period % 1.0) for period in (1.7, 2.9))
    rtt = np.stack([0.04 + one, 0.07 + (one if shared else other)], axis=1)
    figures = {"rtt": rtt, "throughput": np.full((2000, 2), 500.0)}
    return make("pcap", time, ["a", "b"], figures, provenance={"rtt": how})


def test_flows_whose_rtts_do_not_rise_together_may_not_share_a_queue():
    """The estimated capacity was the sum of those of two links."""
    assert "a and b vary, but not together" in doubts(two_flows(shared=False))["one-queue"]
    assert "one-queue" not in doubts(two_flows(shared=True))
    assert "one-queue" not in doubts(two_flows(shared=False, how="the kernel's smoothed RTT"))


@pytest.mark.parametrize("links", [1, 2])
def test_a_comparison_doubts_that_flows_of_one_link_share_a_queue(links):
    """`compare --trace` did not say what `inspect` does.  With two links there is no doubt."""
    route = [vm.Link(1000.0, buffer=80.0, name=f"l{i}") for i in range(links)]
    flows = [vm.Flow("reno", rtt, name=name) for name, rtt in (("a", 0.04), ("b", 0.07))]
    scenario = vm.Scenario(route, flows, run=vm.Run(duration=40.0, warmup=1.0))
    found = vm.compare(scenario, two_flows(shared=False), "network").measured
    said = {each.name: each for each in found.assumptions}
    assert ("one-queue" in said) is (links == 1)
    if links == 1:
        assert said["one-queue"].holds is None
        assert "a and b vary, but not together" in said["one-queue"].detail
