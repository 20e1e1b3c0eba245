"""Arrivals at the very instant of a departure, which ns-2 handles in the order of scheduling."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers import as_measured, exact
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.queue import enqueue, room_for
from vegasmodel.engines.rounds.route import routes
from vegasmodel.engines.rounds.run import Simulation
from vegasmodel.engines.rounds.state import LINK, array
from vegasmodel.engines.rounds.stock import count, transmit
from vegasmodel.scenario import Flow, Link, Run, Scenario


@pytest.mark.parametrize(("precedes", "stay"), [(0, 1.0), (1, 0.0)])
def test_who_comes_first_at_a_full_buffer(precedes: int, stay: float) -> None:
    """3 packets wait and the one in transmission leaves now, so work of 3 packets remains."""
    link = np.zeros(1, LINK)
    link["buffer"], link["packets_per_work"], link["queue"] = 3.0, 1.0, 3.0
    link["instant"], link["partner"] = 1e-8, -1
    assert room_for(link[0], 1.0, precedes) == stay
    link["queue"] = 2.9  # it has left for a while: no tie
    assert room_for(link[0], 1.0, precedes) == 1.0
    link["queue"] = 3.1  # it stays for a while
    assert room_for(link[0], 1.0, precedes) == 0.0


@pytest.mark.parametrize(
    ("served", "stay"),
    [(0.5, 0.0), (1.0, 0.0), (1.2, 1.0)],
)
def test_packets_of_several_sizes_in_step_with_a_departure(served: float, stay: float) -> None:
    """Packets of size 1, 1.5 and 1.5 at a buffer of 2: the first one's last bit leaves at 1."""
    link = np.zeros(1, LINK)[0]
    link["buffer"], link["packets_per_work"], link["mixed"] = 2.0, 1.0, 1
    link["instant"], link["partner"] = 1e-8, -1
    enqueue(link, 1.0, 1.0)
    enqueue(link, 2.0, 1.5)
    transmit(link, served)
    link["queue"] -= served
    count(link, link["queue"])
    assert room_for(link, 1.0, 1) == stay
    assert room_for(link, 1.0, 0) == (0.0 if served < 1.0 else 1.0)


def _first_hops(variant: str, *rtts: float) -> NDArray[np.void]:
    link = Link(100.0, buffer=10.0)
    flows = tuple(exact("reno", rtt, name=f"r{rtt}", variant=variant) for rtt in rtts)
    scenario = Scenario((link,), flows, run=Run(duration=10.0, warmup=0.0))
    hops = routes(scenario, list(scenario.members), 0.01).hops
    return hops[hops["data"] == 1]


def test_an_arrival_is_scheduled_when_its_packet_leaves_the_last_hop() -> None:
    """A packet takes 10 ms on the link; the access legs take 7 and 22 ms."""
    assert list(_first_hops("ns2", 0.04, 0.1)["precedes"]) == [0, 1]
    assert list(_first_hops("linux", 0.04, 0.1)["precedes"]) == [0, 0]


def test_of_packets_of_one_instant_that_from_the_longest_leg_was_scheduled_first() -> None:
    assert list(_first_hops("ns2", 0.1, 0.04, 0.07)["lead"]) == [1.0, 0.0, 0.5]
    assert list(_first_hops("linux", 0.1, 0.04, 0.07)["lead"]) == [0.0] * 3


# losses/10 of benchmarks/reference/accuracy.json: RTT, mean and standard error of 20 ns-2 runs
NEWRENO = ((0.1803, 518.96, 21.75), (0.1569, 486.30, 11.43), (0.1457, 962.86, 48.01))


def test_a_stored_ns2_run() -> None:
    """Phases decide: if departures came first, the shares would be off by a quarter."""
    flows = tuple(
        exact("newreno", rtt, name=f"f{i}", variant="ns2") for i, (rtt, _, _) in enumerate(NEWRENO)
    )
    runs = Run(duration=300.0, warmup=100.0, seed=7, start_jitter=0.5)
    prediction = answer(Scenario((Link(2562.0, buffer=57.0),), flows, run=runs))
    _, measured, se = np.array(NEWRENO).T
    assert as_measured(prediction, measured, se)


def test_where_round_trips_are_whole_service_times() -> None:
    """60 and 36 service times.  ns-2, 5 runs: 55.9 +- 2.7, 510.8 +- 2.0; by exact ties 270, 296."""
    link = Link(600.0, buffer=20.0)
    reno, sack = exact("reno", 0.1, variant="ns2"), exact("sack", 0.06, variant="ns2")
    scenario = Scenario((link,), (reno, sack), run=Run(150.0, 50.0, start_jitter=0.5))
    found = answer(scenario, runs=3).throughput
    np.testing.assert_allclose(found, [55.9, 510.8], rtol=0.15)


# first and second source: law and RTT; mean and standard error of 8 and 16 ns-2 runs
MEET = (
    (("reno", 0.1), ("reno", 0.05), (325.7, 508.3), (2.9, 3.1)),
    (("newreno", 0.1203), ("sack", 0.0603), (265.1, 635.2), (6.5, 5.6)),
)


@pytest.mark.parametrize(("one", "two", "measured", "se"), MEET)
def test_where_acks_and_packets_meet(
    one: tuple[str, float],
    two: tuple[str, float],
    measured: tuple[float, float],
    se: tuple[float, float],
) -> None:
    """The RTTs differ by 50 and 60 service times.

    If ACKs did not wait for each other, the rates would be 400 and 451, 221 and 673.  If a burst
    came all at once, the second pair would be 385 and 530.
    """
    flows = tuple(exact(law, rtt, variant="ns2", name=f"f{rtt}") for law, rtt in (one, two))
    link, span = Link(1000.0, buffer=20.0), Run(duration=300.0, warmup=100.0, start_jitter=0.5)
    found = answer(Scenario((link,), flows, run=span), runs=6)
    assert as_measured(found, measured, se)


def test_round_trips_that_all_but_differ_by_whole_service_times() -> None:
    """The RTTs of the second and the fourth flow differ by 287.00001, which is not a tie.

    No rounding reverses this order.  ns-2's values are from 20 runs.
    """
    laws = (("sack", 0.2473), ("newreno", 0.0439), ("reno", 0.0743), ("reno", 0.1632))
    flows = tuple(exact(law, rtt, variant="ns2", name=f"f{rtt}") for law, rtt in laws)
    link, span = Link(2405.7, buffer=69.0), Run(duration=394.0, warmup=80.0, start_jitter=0.5)
    found = answer(Scenario((link,), flows, run=span), runs=4).throughput
    np.testing.assert_allclose(found, [36.0, 2042.5, 185.4, 47.8], rtol=0.1)


# start times, first windows, phases of the timers' clocks in ns-2 (``boot_time_``, less the time to
# the first link); ns-2's losses in 100 s, one run
SACK_RUNS = (
    ((0.05858328072049819, 0.053343447866482055), (3, 11), (0.051403, 0.057352), (169, 42)),
    ((0.07627411411, 0.03366133164617267), (2, 8), (0.016102, 0.056955), (164, 44)),
    ((0.1413523891790974, 0.12390595903995186), (6, 7), (0.081593, 0.062346), (154, 46)),
)


@pytest.mark.parametrize(("starts", "windows", "clocks", "lost"), SACK_RUNS)
def test_sack_blocks_lengthen_acks_on_the_way_back(
    starts: tuple[float, ...],
    windows: tuple[int, ...],
    clocks: tuple[float, ...],
    lost: tuple[int, ...],
) -> None:
    """Two SACK sources with about 40 timeouts: each loses as many packets as in ns-2."""
    flows = tuple(
        exact("sack", rtt, variant="ns2", name=f"f{rtt}", start=start, initial_window=window)
        for rtt, start, window in zip((0.111, 0.15), starts, windows, strict=True)
    )
    link = Link(152.0, buffer=10.0)
    simulation = Simulation(Scenario((link,), flows, packet_size=500.0, run=Run(100.0, 40.0)))
    sources = array(simulation.net.flows)
    sources["boot_time"] = np.array(clocks)[sources["member"]]
    status, _ = simulation.proceed()
    np.testing.assert_array_equal(simulation.totals(status).flows["lost"], lost)


# start of the SACK source; packets that each source loses in ns-2 in 30 s
@pytest.mark.parametrize(("start", "lost"), [(1.3, (115, 58)), (3.3, (104, 49))])
def test_sack_blocks_decide_which_of_two_acks_comes_first(
    start: float, lost: tuple[int, int]
) -> None:
    """8 B take 0.1 us on the receiver's access link, and ACKs often meet on the way back."""
    flows = (
        exact("newreno", 0.063, variant="ns2"),
        exact("sack", 0.1, variant="ns2", start=start),
    )
    link = Link(800.0, buffer=5.0, delay=0.001)
    simulation = Simulation(Scenario((link,), flows, packet_size=500.0, run=Run(30.0, 5.0)))
    status, _ = simulation.proceed()
    sources = simulation.totals(status).flows
    assert np.all(sources["timeouts"] == 0)  # so the clocks of timers do not matter
    np.testing.assert_array_equal(sources["lost"], lost)


def test_acks_of_packets_of_several_sizes_wait_for_each_other() -> None:
    """ns-2: 40 runs.  If ACKs did not wait for each other, the rates would be 54.8, 27.4, 50.9."""
    flows = tuple(
        Flow("reno", rtt, name=f"f{i}", variant="ns2", packet_size=f"{size} B", send_jitter=0.0)
        for i, (rtt, size) in enumerate(((0.08, 1000), (0.1, 1000), (0.08, 500)))
    )
    link, span = Link(400.0, buffer=3.0, delay=0.001), Run(150.0, 40.0, start_jitter=1.0)
    found = answer(Scenario((link,), flows, run=span), runs=12)
    assert as_measured(found, (63.05, 23.76, 54.68), (0.91, 0.27, 0.69))


# capacity, buffer; law, RTT in s and packet size in B of each flow; ns-2's throughputs: 10 runs
SIZES = (
    ("5 Mbit/s", 50, (("reno", 0.04, 1000), ("reno", 0.04, 500)), (535.1, 175.5), (1.7, 3.1)),
    ("5 Mbit/s", 20, (("vegas", 0.04, 1500), ("newreno", 0.04, 500)), (266.2, 451.3), (0.0, 0.0)),
    (
        "2 Mbit/s",
        10,
        (("reno", 0.06, 1500), ("reno", 0.06, 500), ("reno", 0.06, 1000)),
        (114.3, 33.1, 50.2),
        (1.7, 1.9, 1.7),
    ),
)


@pytest.mark.parametrize(("capacity", "buffer", "sources", "measured", "se"), SIZES)
def test_packets_of_several_sizes_in_step(
    capacity: str,
    buffer: int,
    sources: tuple[tuple[str, float, int], ...],
    measured: tuple[float, ...],
    se: tuple[float, ...],
) -> None:
    """Each size has a transmission time that ns-2's clock rounds in its own way."""
    flows = tuple(
        Flow(law, rtt, name=f"f{i}", variant="ns2", packet_size=f"{size} B", send_jitter=0.0)
        for i, (law, rtt, size) in enumerate(sources)
    )
    link = Link(capacity, buffer=float(buffer), delay=0.001)
    found = answer(Scenario((link,), flows, run=Run(100.0, 20.0, start_jitter=0.1)), runs=5)
    assert as_measured(found, measured, se, 0.01 * np.array(measured))


# capacity, packet size in B; law and RTT of the flow over both links, and of one over each link;
# ns-2's throughputs: 10 runs
LOTS = (
    (
        "10 Mbit/s",
        1500,
        0.001,
        (("vegas", 0.06), ("reno", 0.06), ("cubic", 0.06)),
        (167.4, 566.5, 655.0),
        (3.3, 3.6, 3.3),
    ),
    (
        "5 Mbit/s",
        1000,
        0.002,
        (("reno", 0.08), ("reno", 0.08), ("reno", 0.08)),
        (147.7, 356.5, 365.4),
        (2.7, 2.2, 3.5),
    ),
    (
        "5 Mbit/s",
        1500,
        0.002,
        (("reno", 0.06), ("reno", 0.08), ("reno", 0.04)),
        (95.3, 237.4, 248.8),
        (4.0, 4.6, 4.9),
    ),
)


@pytest.mark.parametrize(("capacity", "size", "delay", "sources", "measured", "se"), LOTS)
def test_two_links_in_step(
    capacity: str,
    size: int,
    delay: float,
    sources: tuple[tuple[str, float], ...],
    measured: tuple[float, ...],
    se: tuple[float, ...],
) -> None:
    """The order of scheduling, the rounded times and ACKs that meet count at each of the links."""
    links = tuple(Link(capacity, name=f"l{j}", buffer=10.0, delay=delay) for j in range(2))
    paths = (("l0", "l1"), ("l0",), ("l1",))
    flows = tuple(
        Flow(law, rtt, name=f"f{i}", variant="ns2", send_jitter=0.0, path=paths[i])
        for i, (law, rtt) in enumerate(sources)
    )
    run = Run(duration=100.0, warmup=20.0, start_jitter=0.1)
    found = answer(Scenario(links, flows, packet_size=float(size), run=run), runs=5)
    assert as_measured(found, measured, se)


def test_the_first_second_is_in_step_too() -> None:
    """ns-2's clock rounds the times of the first second more finely than those of the next.

    Both sources start at 0, and the run is not random.  ns-2's windows stay as they are after 2 s.
    With the rounding of later times throughout, the rates would be 225.7 and 440.9.
    """
    flows = (
        Flow("vegas", 0.05, name="far", variant="ns2", alpha=2.0, beta=2.0, send_jitter=0.0),
        Flow("vegas", 0.02, name="near", variant="ns2", alpha=2.0, beta=4.0, send_jitter=0.0),
    )
    link = Link("8 Mbit/s", buffer="2 BDP", delay=0.001)
    scenario = Scenario((link,), flows, packet_size=1500.0, run=Run(duration=100.0, warmup=10.0))
    np.testing.assert_allclose(answer(scenario).throughput, [261.6, 405.1], rtol=0.005)


@pytest.mark.parametrize(
    ("capacity", "rtt", "groups", "measured"),
    [
        (217.7, 0.1, [("vegas", 4, 2, 6), ("vegas", 1, 1, 3)], [70.7, 38.1, 38.1, 38.2, 32.7]),
        (217.7, 0.1, [("vegas", 1, 1, 3), ("vegas", 4, 2, 6)], [48.4, 42.3, 42.4, 42.4, 42.4]),
        (578.017, 0.05, [("newreno", 3, 1, 3), ("vegas", 3, 3, 7)], [68.7] * 3 + [124.0] * 3),
    ],
)  # fmt: skip
def test_flows_that_start_at_the_same_instant_have_the_order_of_the_file(
    capacity: float,
    rtt: float,
    groups: list[tuple[str, int, int, int]],
    measured: list[float],
) -> None:
    """``measured`` is one run of ns-2 2.35 each."""
    flows = tuple(
        exact(law, rtt, name=law + str(low), variant="ns2", count=count, alpha=low, beta=high)
        for law, count, low, high in groups
    )
    s = Scenario((Link(capacity, buffer=40.0),), flows, run=Run(duration=120.0, warmup=40.0))
    assert answer(s).throughput == pytest.approx(measured, rel=0.005)


def test_the_order_of_the_file_does_not_matter_if_senders_wait() -> None:
    flows = [
        Flow(law, 0.1, name=f"{law}{low}", variant="ns2", alpha=low, beta=2.0 * low)
        for law, low in (("vegas", 2.0), ("newreno", 1.0), ("vegas", 1.0))
    ]
    found = [
        answer(Scenario((Link(217.7, buffer=60.0),), tuple(some), run=Run(60.0, 20.0)))
        for some in (flows, flows[::-1])
    ]
    assert found[0].throughput == pytest.approx(found[1].throughput[::-1], rel=1e-12)
