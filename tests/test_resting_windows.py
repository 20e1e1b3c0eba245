"""Vegas flows whose backlog stays between alpha and beta beside loss-based flows."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.adapters.resting_windows import network, rests_with_half
from vegasmodel.packets import ns2

NAME = "thresholds-reached"


def case(alpha: int, beta: int, buffer: float = 67.0, rival: str = "reno") -> vm.Scenario:
    flows = [
        vm.Flow("vegas", 0.05, alpha=alpha, beta=beta, start=0.5, variant="ns2"),
        vm.Flow(rival, 0.05, variant="ns2"),
    ]
    return vm.Scenario([vm.Link(1000.0, buffer=buffer)], flows, run=vm.Run(120.0, 40.0))


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize(
    ("alpha", "beta", "holds"),
    [(2, 60, False), (1, 3, True), (3, 3, True), (2, 10, True)],
)
def test_a_simulator_says_if_the_thresholds_never_move_the_window(model, alpha, beta, holds):
    (said,) = [a for a in vm.predict(case(alpha, beta), model).assumptions if a.name == NAME]
    assert said.holds is holds
    assert holds or f"(alpha {alpha}, beta {beta})" in said.detail


@pytest.mark.ns2
def test_in_ns2_the_start_then_decides_the_rates():
    """Vegas starts later by up to a round trip, and finds nearly the same queue."""
    starts = (0.505, 0.51, 0.52, 0.53, 0.54)
    shares = {}
    for beta in (3, 60):
        scenario = case(1 if beta == 3 else 2, beta)
        runs = [
            ns2.run(scenario.replace({"flow.vegas.start": at}), rtts=False, processes=1).throughput
            for at in starts
        ]
        shares[beta] = np.array([run[0] / np.sum(run) for run in runs])
    assert np.ptp(shares[60]) > 0.05 * shares[60].mean()
    assert np.ptp(shares[3]) < 0.01 * shares[3].mean()


def two_rests() -> vm.Scenario:
    """Two Vegas flows start together. Their backlogs stay within a packet of beta, or do not."""
    flows = [
        vm.Flow("vegas", 0.0457, count=2, alpha=3, beta=10, variant="ns2", send_jitter=0.0),
        vm.Flow("sack", 0.0457, start=2.0, variant="ns2", send_jitter=0.0),
    ]
    return vm.Scenario([vm.Link(228.0, buffer=25.0)], flows, run=vm.Run(120.0, 40.0))


def test_fluid_says_if_half_of_the_window_would_rest_too():
    (said,) = [a for a in vm.predict(two_rests(), "fluid").assumptions if a.name == NAME]
    assert said.holds is False
    assert "would rest with any window from" in said.detail


@pytest.mark.ns2
def test_in_ns2_two_equal_flows_then_rest_at_very_different_windows():
    first, second, _ = ns2.run(two_rests(), rtts=False, processes=1).throughput
    assert max(first, second) > 1.5 * min(first, second)


def small_windows(alpha: float, beta: float) -> vm.Scenario:
    """Capacity 100 packets/s, 100 ms: 10 packets are under way, and the buffer of ns-2 holds 20."""
    flows = [
        vm.Flow("vegas", 0.1, alpha=alpha, beta=beta, variant="ns2"),
        vm.Flow("reno", 0.1, variant="ns2"),
    ]
    return vm.Scenario([vm.Link(100.0, buffer=21.0)], flows)


@pytest.mark.parametrize(
    ("alpha", "beta", "largest"),
    [
        (2, 7, 10.0),  # half of it has the backlog 5 * 15/35 = 2.14
        (2, 6, None),  # the largest window is 9, and its half, 4, has the backlog 4 * 14/34 = 1.65
        (3, 7, None),  # half of 10 again, but 2.14 is below alpha
        (1, 3, None),  # the window of 6 has a backlog of 4 at the full buffer, above 3.5
    ],
)
def test_the_largest_window_at_rest_and_its_half(alpha, beta, largest):
    """By hand: a sum of 30 packets fills the buffer, with a delay of 200 ms.

    Vegas has 6 of them and Reno 24, on average 18. After a loss Reno has 12, and 8 of the 18
    packets are queued. So Vegas's backlog is from 6 * 8/18 = 2.67 to 6 * 20/30 = 4 packets. The
    largest window is beta * 30/20, rounded down. With w packets of Vegas, Reno has 30 - w at the
    overflow and half of that after it. So (30 + w)/2 packets are then under way, of which
    (10 + w)/2 are queued, and the least backlog is w (10 + w)/(30 + w).
    """
    found = rests_with_half(
        small_windows(alpha, beta),
        np.array([6.0, 18.0]),
        np.array([0.1, np.nan]),
        np.array([False, True]),
    )
    assert np.isnan(found[1])
    if largest is None:
        assert np.isnan(found[0])
    else:
        assert found[0] == pytest.approx(largest, rel=1e-6)


def test_the_backlog_at_the_emptiest_and_at_the_fullest_queue():
    """By hand: capacity 1000 packets/s and 50 ms hold 50 packets, the buffer of ns-2 66 more.

    Reno's window has a mean of 60, so it falls from 80 to 40. With Vegas's 30 packets, 20 of the 70
    packets are then queued, for 20 ms. At the full buffer 66 ms are queued.
    """
    windows, base = np.array([30.0, 60.0]), np.array([0.05, np.nan])
    least, most = network(case(2, 60)).backlogs(windows, base, np.array([False, True]))
    assert least[0] == pytest.approx(30.0 * 20.0 / 70.0, rel=1e-6)
    assert most[0] == pytest.approx(30.0 * 66.0 / 116.0, rel=1e-6)


def test_linux_divides_the_backlog_by_the_base_rtt():
    """The queues are those above, and ``tcp_vegas.c`` has diff = W (RTT - baseRTT)/baseRTT."""
    windows, base = np.array([30.0, 60.0]), np.array([0.05, 0.05])
    linux = case(2, 60).replace({"flow.vegas.variant": "linux"})
    least, most = network(linux).backlogs(windows, base, np.array([False, True]))
    assert least[0] == pytest.approx(30.0 * 20.0 / 50.0, rel=1e-6)
    assert most[0] == pytest.approx(30.0 * 66.0 / 50.0, rel=1e-6)


def test_the_emptiest_queue_follows_the_decrease_that_the_user_gave():
    """Reno's window of mean 60 falls to 2 0.8/1.8 60 = 53.3, so 83.3 - 50 packets are queued."""
    windows, base = np.array([30.0, 60.0]), np.array([0.05, np.nan])
    gentle = case(2, 60).replace({"flow.reno.decrease": 0.8})
    least, _ = network(gentle).backlogs(windows, base, np.array([False, True]))
    queued = 30.0 + 2.0 * 0.8 / 1.8 * 60.0 - 50.0
    assert least[0] == pytest.approx(30.0 * queued / (50.0 + queued), rel=1e-6)


def test_the_backlog_at_an_access_link_counts_too():
    """By hand: Vegas's own link sends 400 packets/s, so it sends a window of 30 packets in 75 ms.

    After a loss Reno has 40 packets, and gets the other 600 packets/s with an RTT of 40/600 s. This
    RTT is below 75 ms, so packets of Vegas wait at its own link: 30 - 400 * 0.05 = 10 packets. At
    the full buffer the RTT is 116 ms, and none wait there.
    """
    windows, base = np.array([30.0, 60.0]), np.array([0.05, np.nan])
    slow = case(2, 60).replace({"flow.vegas.access": 400.0})
    least, most = network(slow).backlogs(windows, base, np.array([False, True]))
    assert least[0] == pytest.approx(10.0, rel=1e-6)
    assert most[0] == pytest.approx(30.0 * 66.0 / 116.0, rel=1e-6)


def behind_access_link(start: float) -> vm.Scenario:
    """A Vegas flow whose own link sends 200 packets/s starts after Reno."""
    flows = [
        vm.Flow("vegas", 0.05, alpha=2, beta=60, start=start, variant="ns2", access=200.0),
        vm.Flow("reno", 0.05, variant="ns2"),
    ]
    return vm.Scenario([vm.Link(1000.0, buffer=71.0)], flows, run=vm.Run(120.0, 40.0))


def test_rounds_says_if_only_an_access_link_keeps_the_backlog_above_alpha():
    (said,) = [
        a for a in vm.predict(behind_access_link(3.7), "rounds").assumptions if a.name == NAME
    ]
    assert said.holds is False


@pytest.mark.ns2
def test_in_ns2_the_start_decides_behind_an_access_link_too():
    rates = [
        ns2.run(behind_access_link(start), rtts=False, processes=1).throughput[0]
        for start in (1.3, 3.7)
    ]
    assert max(rates) > 1.5 * min(rates)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_the_direction_of_all_flows_does_not_matter(direction):
    turned = case(2, 60).replace({"flow.direction": direction})
    (said,) = [a for a in vm.predict(turned, "rounds").assumptions if a.name == NAME]
    assert said.holds is False


def test_a_link_of_half_packets_is_a_link_of_twice_as_many_packets():
    """All flows send packets of 500 B. The scenario's packet size is only a unit of capacities."""
    windows, base = np.array([30.0, 60.0]), np.array([0.05, np.nan])
    given = case(2, 60)
    halves = given.replace({"flow.packet_size": "500 B", "link.capacity": 500.0})
    whole = given.replace({"packet_size": "500 B"})
    loses = np.array([False, True])
    for half, full in zip(
        network(halves).backlogs(windows, base, loses),
        network(whole).backlogs(windows, base, loses),
        strict=True,
    ):
        assert half[0] == pytest.approx(full[0], rel=1e-6)


def test_with_noise_on_the_delay_it_is_not_known_if_thresholds_are_reached():
    noisy = case(2, 60).replace({"flow.delay_noise": 0.01})
    (said,) = [a for a in vm.predict(noisy, "rounds").assumptions if a.name == NAME]
    assert said.holds is None
    assert "delay_noise" in said.detail
