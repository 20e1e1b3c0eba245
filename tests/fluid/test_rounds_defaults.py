"""ns-2 2.35's own defaults: small cases by hand from tcp.cc and tcp-newreno.cc, and ns-2 runs."""

import numpy as np
import pytest

from tests.fluid.records import sender
from tests.helpers import as_measured, exact
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import run
from vegasmodel.engines.rounds.state import SENT
from vegasmodel.engines.rounds.timer import arm, back_off, syn_acknowledged, syn_lost
from vegasmodel.predictor import predict
from vegasmodel.queues import DropTail
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario


def _scenario(law: str, link: Link, rtt: float, size: float, alpha: float = 1.0) -> Scenario:
    vegas = exact("vegas", rtt, alpha=alpha, beta=3.0, variant="ns2")
    runs = Run(duration=300.0, warmup=100.0, seed=7, start_jitter=0.5, ns2_defaults="2.35")
    return Scenario((link,), (vegas, exact(law, rtt, variant="ns2")), run=runs, packet_size=size)


def test_the_first_windows() -> None:
    """1, then 2 and slow start's 1 for Vegas; SYN, 2, 4 for Reno (delay_growth_, windowInit_)."""
    link = Link(1e5, buffer=1e4)
    flows = (exact("vegas", 0.1, variant="ns2"), exact("reno", 0.1, variant="ns2"))
    scenario = Scenario((link,), flows, run=Run(duration=1.0, warmup=0.0, ns2_defaults="2.35"))
    totals = run(scenario, samples=11)
    sent = np.diff(totals.per_flow[:, :, SENT], axis=0)
    assert list(sent[:3, 0]) == [1.0, 1.0, 3.0]
    assert list(sent[:3, 1]) == [0.0, 2.0, 4.0]


def test_headers_take_their_time() -> None:
    """A Reno packet of 500 + 40 bytes at 10 pkt/s takes 8 ms longer than one of 500 bytes."""
    flows = (exact("reno", 0.5, variant="ns2", max_window=1.0),)
    link = Link(10.0, buffer=10.0, queue=DropTail())
    runs = Run(duration=100.0, warmup=10.0, ns2_defaults="2.35")
    found = answer(Scenario((link,), flows, run=runs, packet_size=500.0))
    assert found.rtt_mean[0] == pytest.approx(0.5 + 0.008 * (1.0 + 2.0 / 200.0), abs=1e-6)


def test_the_timer_has_its_floor_before_it_is_backed_off() -> None:
    """rfc2988_: 0.2 s, doubled to 0.4; ticks of 10 ms; at most 60 s (maxrto_)."""
    f = sender("reno", "ns2", "2.35", backoff=1.0)
    syn_acknowledged(f, 0.0, 0.035)  # 3 ticks: srtt 3, deviation 1.5 ticks
    assert f["rto"] == pytest.approx(0.09)
    arm(f, 0.0)
    assert f["deadline"] == pytest.approx(0.2)
    back_off(f)
    arm(f, 0.0)
    assert f["deadline"] == pytest.approx(0.4)
    for _ in range(12):
        back_off(f)
    arm(f, 0.0)
    assert f["deadline"] == pytest.approx(60.0)


# law, link, RTT, packet_size, alpha; mean and standard error of 5 ns-2 runs
STORED = (
    ("newreno", Link(508.0, buffer=52.0), 0.1175, 500.0, 1.0, (48.13, 425.81), (0.02, 0.02)),
    ("sack", Link(793.0, buffer=44.0), 0.0726, 1000.0, 1.0, (100.59, 664.32), (0.09, 0.09)),
    (
        "reno",
        Link(862.0, buffer=100.0, queue=Red(8.0, 24.0)),
        0.0356,
        500.0,
        1.0,
        (242.35, 566.54),
        (0.58, 0.68),
    ),
    (
        "newreno",
        Link(790.0, buffer=100.0, queue=Red(13.0, 39.0)),
        0.0425,
        1000.0,
        3.0,
        (191.35, 573.04),
        (0.27, 0.27),
    ),
)


@pytest.mark.parametrize("case", STORED, ids=lambda case: f"{case[0]} {case[1].queue.discipline}")
def test_ns2_runs(
    case: tuple[str, Link, float, float, float, tuple[float, float], tuple[float, float]],
) -> None:
    """With the defaults of the papers' years the results would be off by 10 to 30 %."""
    law, link, rtt, size, alpha, measured, se = case
    found = answer(_scenario(law, link, rtt, size, alpha))
    assert as_measured(found, measured, se, 0.002 * np.sum(measured))


@pytest.mark.parametrize(("first", "after"), [(8, 28), (11, 19), (12, 21), (16, 28), (20, 35)])
def test_the_burst_of_a_first_window_does_not_end_slow_start(first: int, after: int) -> None:
    """ns-2 2.35 doubled each of these windows before it left slow start and cut it to 7/8."""
    flow = exact("vegas", 0.115, alpha=1, beta=4, variant="ns2", initial_window=first)
    link, runs = Link(355.0, buffer=80.0), Run(duration=1.0, warmup=0.5)
    window = run(Scenario((link,), (flow,), run=runs, packet_size=500.0), samples=201)
    seen = window.window[:, 0]
    top = int(np.argmax(seen))
    assert seen[top] in (2 * first, 4 * first)
    assert seen[top:].min() == after


# law, whether ACKs are delayed, packets; when the flow is done in ns-2, seconds
DONE = (
    ("vegas", False, 11, 0.2016),
    ("vegas", True, 1, 0.0400),
    ("vegas", True, 11, 0.4408),
    ("cubic", False, 1, 0.0401),
    ("cubic", False, 11, 0.1234),
    ("cubic", True, 11, 0.2626),
    ("cubic", True, 100, 0.3786),
)


@pytest.mark.parametrize(("law", "delayed", "size", "done"), DONE)
def test_the_first_packet_of_a_short_flow(law: str, delayed: bool, size: int, done: float) -> None:
    """Vegas sends no SYN, CUBIC's window counts it, and the receiver answers packet 0 at once."""
    flow = Flow(
        law,
        0.04,
        variant="ns2",
        size=float(size),
        delayed_ack=delayed,
        send_jitter=0.0,
    )
    runs = Run(duration=20.0, warmup=0.0, ns2_defaults="2.35")
    found = answer(Scenario((Link("10 Mbit/s", buffer=100.0, delay=0.001),), (flow,), run=runs))
    assert size / found.throughput[0] == pytest.approx(done, abs=1e-3)


def test_after_a_lost_syn_the_first_window_is_one_packet() -> None:
    """RFC 5681 3.1; the SYN is sent again after 3 s, then after 6 s (RFC 2988 2.1 and 5.5)."""
    f = sender("reno", "ns2", "2.35", backoff=1.0, cwnd=2.0, ssthresh=20.0)
    f["rto"] = f["first_rto"]
    assert [syn_lost(f), syn_lost(f)] == [3.0, 6.0]
    assert (f["cwnd"], f["ssthresh"]) == (1.0, 2.0)  # bugfix_ss_


def test_a_lost_syn_is_no_packet_of_data() -> None:
    """Forty CUBIC flows of 10 packets; the link loses a fifth of all packets, SYNs too."""
    flow = Flow("cubic", 0.04, count=40, variant="ns2", size=10.0)
    runs = Run(duration=300.0, warmup=0.0, ns2_defaults="2.35")
    totals = run(Scenario((Link(1000.0, buffer=100.0, loss=0.2),), (flow,), run=runs))
    assert totals.flows["delivered"].max() == 10.0


@pytest.mark.parametrize(
    ("variant", "queue", "buffer", "named"),
    [
        ("ns2", DropTail(), 0.0, True),
        ("ns2", DropTail(), 1.9, True),
        ("ns2", DropTail(), 2.0, False),
        ("ns2", Red(5.0, 15.0), 0.0, True),
        ("ns2", Red(5.0, 15.0), 1.0, False),
        ("paper", DropTail(), 0.0, False),
        ("linux", DropTail(), 0.0, False),
    ],
)
def test_a_buffer_that_shuts_the_link_in_ns2_is_named(
    variant: str, queue: DropTail | Red, buffer: float, *, named: bool
) -> None:
    """drop-tail.cc drops a packet if length + 1 >= limit, so with a limit of 1 every packet."""
    link = Link(1000.0, buffer=buffer, queue=queue)
    scenario = Scenario((link,), (exact("vegas", 0.1, variant=variant),), run=Run(10.0, 5.0))
    found = answer(scenario)
    assert found.applicable
    assert ("ns2-passes-packets" in [a.name for a in found.broken]) is named
    by_equations = predict(scenario, "fluid")  # it said 0 packets/s without this reason
    assert ("ns2-passes-packets" in [a.name for a in by_equations.broken]) is named
