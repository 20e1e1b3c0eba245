"""Live runs of ns-3: exact round trips, queues of the stated size, and figure 2's shares."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.packets import ns2_trace, ns3, ns3_script

pytestmark = pytest.mark.ns3

LINK = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
"""
VEGAS = '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\nalpha = 2\nbeta = 4\n'
NEWRENO = '[[flow]]\nlaw = "newreno"\nrtt = "80 ms"\n'
RUN = '[run]\nduration = "20 s"\nwarmup = "10 s"\n'


def test_vegas_alone_fills_the_link_and_knows_its_round_trip() -> None:
    p = ns3.run(vm.Scenario.from_toml(LINK + VEGAS + RUN))
    assert p.model == "ns3"
    assert p.base_rtt[0] == pytest.approx(0.08, abs=1e-6)
    assert p.throughput[0] == pytest.approx(1080, rel=2e-3)
    # Little's law ties the mean RTT to the mean queue.
    assert p.rtt_mean[0] == pytest.approx(0.08 + p.queue_mean[0] / 1080, abs=2e-4)
    assert p.loss_rate[0] == p.retransmits[0] == 0


def test_round_trip_over_two_links_both_ways() -> None:
    links = LINK.replace("[[link]]", '[[link]]\nname = "a"\ndelay = "3 ms"')
    links += '[[link]]\nname = "b"\ncapacity = "700 pkt/s"\ndelay = "5 ms"\n'
    flows = VEGAS.replace("rtt", 'name = "there"\nmax_window = 2\nrtt')
    flows += VEGAS.replace("rtt", 'name = "back"\ndirection = "reverse"\nmax_window = 2\nrtt')
    other = VEGAS.replace("80 ms", "73 ms")  # with one round trip for all it were always second
    flows += other.replace("rtt", 'name = "one"\npath = ["b"]\nmax_window = 2\nrtt')
    p = ns3.run(vm.Scenario.from_toml(links + flows + RUN))
    np.testing.assert_allclose(p.base_rtt, [0.08, 0.08, 0.073], atol=1e-6)


def test_a_full_buffer_holds_what_the_scenario_says_and_drops_the_rest() -> None:
    out = ns3.run_trace(vm.Scenario.from_toml(LINK + NEWRENO + RUN), 2e-3)
    assert out.samples.queue.max() == 20
    dropped = np.unique(out.drops.packet)
    assert 0 < dropped.size <= out.flows.value[1, 0, 1]  # each was sent again


def test_a_connection_begins_with_its_initial_window() -> None:
    """The handshake takes a round trip of 80 ms; then these many packets leave at once."""
    for own, usual in (("", 1), ("initial_window = 7\n", 7)):
        run = '[run]\nduration = "0.15 s"\nwarmup = "0.1 s"\n'
        out = ns3.run_trace(vm.Scenario.from_toml(LINK + NEWRENO + own + run), 0.05)
        assert out.samples.flows[-1, 0, 2] == usual


def test_a_lost_packet_is_sent_again_once() -> None:
    """If a timeout followed each fast retransmission, the whole window would be sent again.

    The senders do not wait, so a retransmission never meets the full queue.
    """
    link = '[[link]]\ncapacity = "250 pkt/s"\nbuffer = "62 pkt"\n'
    run = 'send_jitter = "0 s"\n[run]\nduration = "40 s"\nwarmup = "10 s"\n'
    out = ns3.run_trace(vm.Scenario.from_toml(link + NEWRENO + run), 0.1)
    late = out.samples.time > 5  # slow start's burst is over
    assert out.samples.window[late].min() > 0.4 * out.samples.window[late].max()
    assert out.flows.value[1, 0, 1] == out.drops.packet.size


def test_cubic_cuts_converges_and_returns_as_the_rfc_says() -> None:
    """RFC 9438 4.6, 4.7, (2): a loss cuts W to 0.7 W; one below W_max sets W_max to 0.85 W.

    The cubic function is flat around W_max, K = cbrt((W_max - 0.7 W)/0.4) seconds after the cut.
    """
    link = '[[link]]\ncapacity = "250 pkt/s"\nbuffer = "62 pkt"\n'
    flow = '[[flow]]\nlaw = "cubic"\nrtt = "100 ms"\nsend_jitter = "0 s"\n'
    run = '[run]\nduration = "60 s"\nwarmup = "30 s"\n'
    out = ns3.run_trace(vm.Scenario.from_toml(link + flow + run), 0.05)
    time, window = out.samples.time, out.samples.window[:, 0]
    cuts = np.flatnonzero((window[1:] < 0.8 * window[:-1]) & (time[1:] > 10))
    assert cuts.size > 6
    lost, flat = window[cuts], 0
    for i in range(1, cuts.size - 1):
        assert window[cuts[i] + 1] == pytest.approx(0.7 * lost[i], abs=1)
        if lost[i] < lost[i - 1]:
            highest = np.floor(0.85 * lost[i])
            part = slice(cuts[i] + 1, cuts[i + 1])
            middle = time[part][window[part] == highest].mean() - time[cuts[i]]
            expected = np.cbrt((highest - np.floor(0.7 * lost[i])) / 0.4)
            # recovery takes a round trip, and the window follows its target within another
            assert expected < middle < expected + 2.0 * (0.1 + 62 / 250)
            flat += 1
    assert flat > 2


def test_the_same_seed_gives_the_same_run() -> None:
    text = LINK + VEGAS + NEWRENO + RUN + 'start_jitter = "1 s"\nruns = 2\n'
    a, b = (ns3.run(vm.Scenario.from_toml(text), rtts=False) for _ in range(2))
    np.testing.assert_array_equal(a.extra["throughput_runs"], b.extra["throughput_runs"])
    assert np.ptp(a.extra["throughput_runs"], axis=0).max() > 0


def test_ecn_marks_instead_of_dropping() -> None:
    queue = 'queue = { discipline = "red", min_threshold = 5, max_threshold = 15, ecn = %s }\n'
    text = LINK.replace("20 pkt", "60 pkt")
    dropped, marked = (
        ns3.run(vm.Scenario.from_toml(text + queue % ecn + NEWRENO + RUN))
        for ecn in ("false", "true")
    )
    assert dropped.retransmits[0] > marked.retransmits[0]


@pytest.mark.parametrize(("k", "n_rate", "n_delay"), [(1, 1, 3), (2, 2, 2), (1, 3, 1)])
def test_figure_2_serves_the_classes_as_k_to_1_a_flow(k: int, n_rate: int, n_delay: int) -> None:
    """`podlesny` (6), (7) while both queues are occupied, with greedy flows in both classes."""
    queue = f'queue = {{ discipline = "rd", k = {k}, delay_buffer = "50 %" }}\n'
    flows = NEWRENO.replace("rtt", f'name = "r"\ncount = {n_rate}\nrtt')
    flows += NEWRENO.replace("rtt", f'name = "d"\nclass = "delay"\ncount = {n_delay}\nrtt')
    run = '[run]\nduration = "60 s"\nwarmup = "20 s"\nstart_jitter = "1 s"\n'
    s = vm.Scenario.from_toml(LINK.replace("20 pkt", "400 pkt") + queue + flows + run)
    p = ns3.run(s, rtts=False)
    assert p.utilization[0] > 0.99
    assert p.ratios["r/d"] == pytest.approx(k, rel=0.03)


def test_a_run_over_time_is_a_trace() -> None:
    s = vm.Scenario.from_toml(LINK + VEGAS + NEWRENO + RUN)
    trace = ns2_trace.record(s, 0.5, engine="ns3")
    late = trace.edges[1:] > 10 + 1e-6
    measured = ns3.run(s)
    np.testing.assert_array_equal(trace.get("acks")[late].sum(axis=0), measured.acks)


def test_a_wait_delays_each_round_and_loses_nothing() -> None:
    """A window of two leaves together: two packets every T + J/2; the wait is no part of an RTT."""
    flow = VEGAS + 'max_window = 2\nsend_jitter = "40 ms"\n'
    run = '[run]\nduration = "400 s"\nwarmup = "10 s"\n'
    p = ns3.run(vm.Scenario.from_toml(LINK + flow + run))
    assert p.throughput[0] == pytest.approx(2.0 / (0.08 + 0.02), rel=0.02)
    assert p.rtt_mean[0] < 0.082
    assert p.loss_rate[0] == p.retransmits[0] == 0


def test_with_linux_each_packet_waits_below_tcp_and_none_overtakes() -> None:
    """With a window of two, packet k leaves once k - 2 is acknowledged, and arrives after k - 1."""
    flow = VEGAS + 'variant = "linux"\nsend_jitter = "40 ms"\nmax_window = '
    run = '\n[run]\nduration = "400 s"\nwarmup = "10 s"\n'
    rng, times = np.random.default_rng(1), [0.0, 0.0]
    for wait in 0.04 * rng.random(100_000):
        times.append(max(times[-1], times[-2] + 0.08 + wait))
    two = ns3.run(vm.Scenario.from_toml(LINK + flow + "2" + run))
    assert two.throughput[0] == pytest.approx(len(times) / times[-1], rel=0.01)
    assert two.rtt_mean[0] == pytest.approx(2 * times[-1] / len(times), rel=0.01)
    ten = ns3.run(vm.Scenario.from_toml(LINK + flow + "10" + run))
    assert ten.loss_rate[0] == ten.retransmits[0] == 0


def test_random_loss_is_of_data_and_a_finite_flow_ends() -> None:
    text = LINK + "loss = 0.02\n" + NEWRENO + 'size = "2000 pkt"\n'
    p = ns3.run(vm.Scenario.from_toml(text + '[run]\nduration = "60 s"\nwarmup = "0 s"\n'))
    assert p.acks[0] == 2000
    error = 4 * np.sqrt(0.02 * 0.98 / 2000)
    assert p.loss_rate[0] == pytest.approx(0.02, abs=error)


def test_a_crowd_of_short_flows_delivers_all_that_came() -> None:
    """Flows of 20 packets between two hosts, each delivered once; RD counts each as a flow."""
    short = 'size = "20 pkt"\narrivals = { poisson = "5 1/s" }\nstop = "15 s"\n'
    s = vm.Scenario.from_toml(
        LINK + VEGAS + NEWRENO + short + '[run]\nduration = "20 s"\nwarmup = "0 s"\n'
    )
    came = ns3_script.script(s, interval=1.0).count("short ")
    p = ns3.run(s)
    assert 60 < came < 90
    assert 20 * (came - 5) <= p.acks[1] <= 20 * came  # the last ones are cut off at the stop
    assert p.acks.sum() / 20 / s.links[0].capacity == pytest.approx(p.utilization[0], abs=0.02)
