"""Runs of ns-2: each feature compared with a calculation by hand."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.packets import ns2, ns2_support, run_output

pytestmark = pytest.mark.ns2

HEAD = 'packet_size = "500 B"\n'
LINK = '[[link]]\nname = "l"\ncapacity = "1080 pkt/s"\nbuffer = "20 pkt"\n'
VEGAS = '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\n'
RENO = '[[flow]]\nlaw = "reno"\nrtt = "80 ms"\n'
RUN = '[run]\nduration = "20 s"\nwarmup = "10 s"\n'


def run(text: str) -> vm.Prediction:
    return ns2.run(vm.Scenario.from_toml(HEAD + text))


@pytest.mark.parametrize(
    ("access", "size", "delay"),
    [("10 Mbit/s", 500, "1 ms"), ("5 Mbit/s", 1500, "20 ms"), ("900 Mbit/s", 40, "0 s")],
)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_lone_packets_take_exactly_the_rtt(
    access: str, size: int, delay: str, direction: str
) -> None:
    link = LINK + f'delay = "{delay}"\n'
    flow = f'{RENO}access = "{access}"\npacket_size = "{size} B"\nmax_window = 2\n'
    vegas = f'{VEGAS}access = "{access}"\npacket_size = "{size} B"\ndirection = "{direction}"\n'
    first = ns2.run_trace(vm.Scenario.from_toml(HEAD + link + flow + RUN), 1.0).round_trips
    assert first[0].rtt[0] == pytest.approx(0.08, abs=1e-6)
    assert run(link + vegas + RUN).base_rtt[0] == pytest.approx(0.08, abs=1e-6)


@pytest.mark.parametrize(("buffer", "passes"), [(0, False), (1, False), (2, True)])
def test_a_limit_below_two_packets_shuts_the_link(
    monkeypatch: pytest.MonkeyPatch, buffer: int, *, passes: bool
) -> None:
    """The reason why a scenario with such a buffer is refused."""
    monkeypatch.setattr(ns2_support, "_link", lambda *_: None)
    link = LINK.replace("20 pkt", f"{buffer} pkt")
    p = run(link + RENO + RUN.replace('warmup = "10 s"', 'warmup = "0 s"'))
    assert bool(p.throughput[0] > 0) is passes


def test_rtt_over_several_links_in_any_order() -> None:
    links = "".join(
        f'[[link]]\nname = "{n}"\ncapacity = "{c} pkt/s"\ndelay = "{d} ms"\n'
        for n, c, d in (("a", 500, 3), ("b", 1000, 5), ("c", 700, 0))
    )
    flows = '[[flow]]\nlaw = "vegas"\nname = "all"\nrtt = "100 ms"\n'
    flows += '[[flow]]\nlaw = "vegas"\nname = "two"\nrtt = "60 ms"\npath = ["c", "a"]\n'
    flows += '[[flow]]\nlaw = "vegas"\nname = "one"\nrtt = "50 ms"\npath = ["b"]\n'
    flows = flows.replace("rtt", 'send_jitter = "0 s"\nrtt')
    p = run(links + flows.replace('path = ["b"]', 'path = ["b"]\nstart = "1 s"') + RUN)
    assert p.base_rtt[:2] == pytest.approx([0.1, 0.06], abs=1e-6)
    a, b, c = p.throughput
    assert a + b == pytest.approx(500, rel=0.01)  # link "a" is full
    assert a + c == pytest.approx(1000, rel=0.01)
    np.testing.assert_allclose(p.utilization[:2], 1.0, atol=0.01)


def test_a_link_may_carry_more_bytes_than_32_bits_count() -> None:
    link = LINK.replace("1080 pkt/s", "1000 pkt/s").replace("20 pkt", "200 pkt")
    text = link + RENO + '[run]\nduration = "100 s"\nwarmup = "10 s"\n'
    p = ns2.run(vm.Scenario.from_toml('packet_size = "60 kB"\n' + text))  # 5.4 GB in all
    assert p.utilization[0] == pytest.approx(p.throughput[0] / 1000, rel=0.01)
    assert p.utilization[0] == pytest.approx(1.0, rel=0.01)


def test_the_load_counts_delivered_data_as_in_the_models() -> None:
    """Earlier the load of ns-2 counted ACKs of reverse flows, too, and that of models did not.

    The run is long, because the flows' shares vary from one run of 10 s to another by 2 %.
    """
    both = VEGAS + VEGAS.replace("[[flow]]", '[[flow]]\nname = "back"\ndirection = "reverse"')
    text = LINK.replace("20", "200") + both + RUN.replace("20 s", "200 s")
    p = run(text)
    ahead, back = p.throughput / 1080
    s = vm.Scenario.from_toml(HEAD + text)
    assert p.utilization[0] == pytest.approx(ahead, rel=1e-3)
    assert p.utilization[0] == pytest.approx(vm.predict(s, "rounds").utilization[0], rel=0.02)
    assert p.extra["busy_links"][0] == pytest.approx(ahead + back * s.ack_size / 500, abs=5e-3)
    assert back * s.ack_size / 500 > 0.02


def test_the_load_counts_headers_but_no_retransmissions() -> None:
    lossy = LINK + 'loss = 0.05\n[[flow]]\nlaw = "sack"\nrtt = "40 ms"\n'
    p = run(lossy + RUN + 'ns2_defaults = "2.35"\n')
    assert p.utilization[0] == pytest.approx(p.throughput[0] * 540 / 500 / 1080, rel=1e-3)
    again = p.retransmits[0] / p.acks[0]
    assert again > 0.04
    # a lost packet never reaches the queue, and its retransmission is delivered
    assert p.extra["busy_links"][0] == pytest.approx(p.utilization[0], rel=0.03)


def test_vegas_alone_fills_the_link_with_alpha_to_beta_waiting() -> None:
    p = run(LINK + VEGAS + RUN)
    assert p.throughput[0] == pytest.approx(1080, rel=1e-3)
    assert 0.5 <= p.queue_mean[0] <= 3.5
    # Little's law ties the mean RTT to the mean queue.
    assert p.rtt_mean[0] == pytest.approx(0.08 + p.queue_mean[0] / 1080, abs=2e-4)
    assert p.loss_rate[0] == p.retransmits[0] == 0


@pytest.mark.parametrize("law", ["vegas", "newreno", "sack"])
def test_the_mean_rtt_has_no_wait_for_a_retransmission(law: str) -> None:
    """With a buffer of 2 packets at most one waits, so an RTT has at most 2 transmissions more."""
    flows = f'[[flow]]\nlaw = "{law}"\nrtt = "60 ms"\n{RENO}'
    p = run(LINK.replace("20 pkt", "2 pkt") + flows + RUN)
    assert np.all(p.retransmits > 10)
    assert np.all((p.rtt_mean >= [0.06, 0.08]) & (p.rtt_mean <= [0.06 + 2 / 1080, 0.08 + 2 / 1080]))


def test_an_ack_that_acknowledges_a_retransmission_gives_no_rtt() -> None:
    """Packet 1 is lost and sent again at 0.5 s; its ACK acknowledges packets 2 and 3, too."""
    sent = [(0.0, 0), (0.1, 1), (0.2, 2), (0.3, 3), (0.5, 1), (0.8, 4)]
    acks = [(0.2, 0), (0.4, 0), (0.45, 0), (0.75, 3), (0.95, 4)]
    rows = sorted([(t, n, True) for t, n in sent] + [(t, n, False) for t, n in acks])
    time, number, is_data = (np.array(column) for column in zip(*rows, strict=True))
    trips = run_output._rtts_of_flow(is_data, time, number, np.full(time.size, 1000))
    np.testing.assert_allclose(trips.time, [0.2, 0.95])
    np.testing.assert_allclose(trips.rtt, [0.2, 0.15])


@pytest.mark.parametrize("law", ["reno", "newreno", "sack", "tahoe"])
def test_loss_based_laws_lose_and_retransmit(law: str) -> None:
    p = run(LINK + f'[[flow]]\nlaw = "{law}"\nrtt = "40 ms"\n' + RUN)
    assert 600 < p.throughput[0] < 1080.5
    assert p.retransmits[0] > 0
    assert p.loss_rate[0] > 0
    assert math.isnan(p.base_rtt[0])


@pytest.mark.parametrize(
    ("queue", "waiting"),
    [
        ('{ discipline = "droptail" }', 19),  # ns-2's DropTail limit counts the one in service
        ('{ discipline = "red", min_threshold = 90, max_threshold = 99 }', 20),
    ],
)
def test_what_a_full_buffer_holds(queue: str, waiting: int) -> None:
    run = '[run]\nduration = "2 s"\nwarmup = "0 s"\n'
    s = vm.Scenario.from_toml(HEAD + LINK + f"queue = {queue}\n" + RENO + run)
    assert ns2.run_trace(s, 2e-4).samples.queue.max() == waiting


def test_forced_drops_hit_the_first_transmission_of_each() -> None:
    link = LINK + 'drops = [{ flow = "reno", packets = [100, 101, 300] }]\n'
    s = vm.Scenario.from_toml(HEAD + link + RENO + "max_window = 15\n" + RUN)
    out = ns2.run_trace(s, 1.0)
    assert out.drops.packet.tolist() == [100, 101, 300]
    assert out.flows.value[1, 0, 1] >= 3  # all were sent again


def test_random_loss_is_of_data_packets_only() -> None:
    p = run(LINK + "loss = 0.02\n" + RENO + '[run]\nduration = "60 s"\nwarmup = "0 s"\nruns = 4\n')
    sent = p.acks[0] + p.retransmits[0]
    error = 4 * math.sqrt(0.02 * 0.98 / (4 * sent))
    assert p.loss_rate[0] == pytest.approx(0.02, abs=error)
    assert p.throughput_se[0] > 0


def test_ecn_marks_instead_of_dropping() -> None:
    queue = 'queue = { discipline = "red", min_threshold = 5, max_threshold = 15, ecn = %s }\n'
    dropped, marked = (run(LINK + queue % e + RENO + RUN) for e in ("false", "true"))
    assert dropped.retransmits[0] > 0
    assert marked.retransmits[0] == 0
    assert marked.throughput[0] > dropped.throughput[0]


RATE_DELAY = """
packet_size = "1000 B"
[[link]]
capacity = "10 Mbit/s"
buffer = "100 pkt"
queue = { discipline = "rd", k = %g, delay_buffer = 0.4 }
[[flow]]
law = "vegas"
count = 5
rtt = "50 ms"
[[flow]]
law = "newreno"
count = 5
rtt = "50 ms"
[[flow]]
name = "late"
law = "newreno"
count = 15
rtt = "50 ms"
start = "10 s"
[run]
duration = "30 s"
warmup = "15 s"
start_jitter = "1 s"
"""


@pytest.mark.parametrize("k", [1, 3])
def test_rate_delay_shares_follow_the_flows(k: float) -> None:
    groups = ns2.run(vm.Scenario.from_toml(RATE_DELAY % k)).groups
    # podlesny (6), (7) with n_R = 20, n_D = 5: C k/(n_D + k n_R) and C/(n_D + k n_R) a flow
    assert groups["vegas"] == pytest.approx(1250 / (5 + 20 * k), rel=0.03)
    both = (5 * groups["newreno"] + 15 * groups["late"]) / 20
    assert both == pytest.approx(1250 * k / (5 + 20 * k), rel=0.03)


def test_a_class_with_a_small_buffer_gets_its_share() -> None:
    """The delay class waits in 3 places; in a longer round it would run dry in its turn."""
    link = vm.Link(capacity=120.0, buffer=33.0, queue=vm.RateDelay(delay_buffer=3 / 33))
    flows = (
        vm.Flow("newreno", 0.1, count=7, service="rate", variant="ns2"),
        vm.Flow("vegas", 0.08, count=2, service="delay", variant="ns2"),
    )
    run = vm.Run(duration=150.0, warmup=50.0)
    found = ns2.run(vm.Scenario((link,), flows, run=run)).throughput
    assert found[7:].sum() == pytest.approx(120.0 * 2 / 9, rel=0.02)


def test_base_rtt_measured_beforehand() -> None:
    text = '[[link]]\ncapacity = "250 pkt/s"\n' + VEGAS.replace("80", "200")
    text += 'alpha = 3\nbeta = 3\ncount = 3\nstart = { first = "0 s", every = "15 s" }\n%s'
    text += '[run]\nduration = "100 s"\nwarmup = "60 s"\n'
    measured, exact = run(text % ""), run(text % 'over_estimate = "0 s"\n')
    np.testing.assert_allclose(exact.base_rtt, 0.2, atol=1e-6)
    assert measured.base_rtt[2] > measured.base_rtt[1] + 1e-3 > 0.2
    # boutremans section 3: over-estimation favours the late; exact, rates lie within the band
    # of ns-2's rounding, 2.5 to 3.5 packets each.
    assert measured.throughput[2] / measured.throughput[0] > 1.5
    assert exact.throughput.max() / exact.throughput.min() < 3.5 / 2.5


def test_delay_noise_keeps_order_and_mean() -> None:
    flow = RENO + 'max_window = 2\ndelay_noise = "3 ms"\n'
    s = vm.Scenario.from_toml(HEAD + LINK + flow + '[run]\nduration = "100 s"\nwarmup = "0 s"\n')
    out = ns2.run_trace(s, 1.0)
    rtt = out.round_trips[0].rtt
    assert out.flows.value[1, 0, 1] == 0  # no reordering: nothing was sent twice
    assert rtt.std() == pytest.approx(0.003, rel=0.3)
    assert rtt.mean() == pytest.approx(0.08, abs=0.003)


def test_finite_flow_is_counted_while_it_lives() -> None:
    p = run(LINK + RENO + 'size = "100 pkt"\nstart = "12 s"\n' + RUN)
    assert p.acks[0] == 100
    assert p.throughput[0] > 100  # packets over its own second or less, not over the window
    stock = run(
        LINK + RENO + 'size = "100 pkt"\nstart = "12 s"\n' + RUN + 'ns2_defaults = "2.35"\n'
    )
    assert stock.acks[0] == 100  # the SYN is no data


def test_short_flows_deliver_what_arrives() -> None:
    flow = RENO + 'size = "5 pkt"\narrivals = { poisson = "20 1/s" }\n'
    p = run(LINK + flow + '[run]\nduration = "60 s"\nwarmup = "10 s"\n')
    assert p.throughput[0] == pytest.approx(100, abs=4 * 5 * math.sqrt(20 * 50) / 50)


def test_delayed_acks_halve_the_acks_not_the_data() -> None:
    s = vm.Scenario.from_toml(HEAD + LINK + RENO + "max_window = 8\ndelayed_ack = true\n" + RUN)
    out = ns2.run_trace(s, 1.0)
    data = out.flows.value[1, 0, 0]
    assert 0.45 * data < out.round_trips[0].time.size < 0.6 * data


def test_stop_ends_the_flow() -> None:
    p = run(LINK + RENO + VEGAS + 'stop = "12 s"\n' + RUN)
    assert 0 < p.acks[1] <= 2 * 1080
    assert p.throughput[1] == pytest.approx(p.acks[1] / 2)


def test_seeds_differ_and_repeat() -> None:
    text = LINK + RENO + "count = 2\n" + RUN + 'runs = 3\nstart_jitter = "1 s"\nseed = 7\n'
    one, two = run(text), run(text)
    np.testing.assert_array_equal(one.extra["throughput_runs"], two.extra["throughput_runs"])
    runs = one.extra["throughput_runs"]
    assert len({tuple(row) for row in runs.tolist()}) == 3
    np.testing.assert_allclose(one.throughput_se, runs.std(axis=0, ddof=1) / math.sqrt(3))


def test_evil_names_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = "'''[exec touch x] $env(HOME) ; exec touch x; \" { } `touch x`'''"
    link, flow = LINK.replace('"l"', evil), f"{RENO}name = {evil}\npath = [{evil}]\n"
    s = vm.Scenario.from_toml(f"name = {evil}\n{HEAD}{link}{flow}{RUN}")
    assert ns2.run(s).throughput[0] > 0
    assert list(tmp_path.iterdir()) == []


def test_failures_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = vm.Scenario.from_toml(
        HEAD + LINK + VEGAS + '[run]\nduration = "100000 s"\nwarmup = "1 s"\n'
    )
    with pytest.raises(ns2.EngineFailed, match=r"took more than 0\.2 s"):
        ns2.run(s, timeout=0.2)
    fake = tmp_path / "ns"
    fake.write_text("#!/bin/sh\necho 'line one\nline two' >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(shutil.which('sh') or '/bin/sh').parent}")
    with pytest.raises(ns2.EngineFailed, match=r"^ns-2 failed: line one line two$"):
        ns2.run(s)


@pytest.mark.parametrize("law", ["reno", "cubic"])
def test_max_window_limits_the_initial_window_too(law: str) -> None:
    """Five packets in each round trip of 80 ms do not queue at a link of 1080 packets/s."""
    keys = f'law = "{law}"\nrtt = "80 ms"\nmax_window = 5\ninitial_window = 10\n'
    p = run(LINK + "[[flow]]\n" + keys + 'send_jitter = "0 s"\n' + RUN)
    assert p.throughput[0] == pytest.approx(5 / 0.08, rel=0.01)
