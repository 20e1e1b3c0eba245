"""Where a flow's RTT is spent, what its packets weigh, and who shares a link: all by hand."""

import dataclasses

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.scenario import placement

STOCK = vm.Run("60 s", "20 s", ns2_defaults="2.35")  # loss-based packets have 40 B of headers more
PAIR = vm.Scenario(
    [vm.Link(1000.0, "a", delay=0.002), vm.Link(500.0, "b", delay=0.003)],
    [
        vm.Flow("vegas", 0.1, "v", variant="ns2", access=4000.0),
        vm.Flow("reno", 0.1, "r", variant="ns2", access=4000.0, packet_size=1500.0),
    ],
    packet_size=1000.0,
    ack_size=40.0,
    run=STOCK,
)


def test_the_access_links_have_a_quarter_each_of_what_is_left_of_the_rtt() -> None:
    """Two links of 2 and 3 ms there and back; a packet and its ACK cross four links."""
    per_packet = 1 / 1000 + 1 / 500 + 2 / 4000
    for member, size in zip(PAIR.members, (1.0, 1.5), strict=True):
        left = 0.1 - (size + 0.04) * per_packet - 2 * (0.002 + 0.003)
        assert placement.access_leg(PAIR, member) == pytest.approx(left / 4)
        weight = size + (0.04 if member.name == "r" else 0.0)  # ns-2's Vegas adds no headers
        assert placement.work(PAIR, member.flow) == pytest.approx(weight)
        way = placement.to_first_link(PAIR, member)
        assert way == pytest.approx(left / 4 + weight / 4000)
        more = (weight - size) * per_packet
        assert placement.empty_rtt(PAIR, member) == pytest.approx(0.1 + more)
    old = PAIR.replace({"run.ns2_defaults": "papers"})
    assert [placement.work(old, group) for group in old.flows] == [1.0, 1.5]


def test_the_load_of_a_link_is_that_of_forward_packets_with_their_headers() -> None:
    flows = (*PAIR.flows, vm.Flow("sack", 0.1, "back", variant="ns2", direction="reverse"))
    case = dataclasses.replace(PAIR, flows=flows)
    packets = np.array([1000.0, 500.0, 700.0])
    load = placement.forward_load(case, packets, 10.0)
    assert load == pytest.approx([(1000 + 1.54 * 500) / 10 / c for c in (1000, 500)])
    bare = placement.forward_load(case, packets, 10.0, headers=False)
    assert bare == pytest.approx([(1000 + 1.5 * 500) / 10 / c for c in (1000, 500)])


@pytest.mark.parametrize(
    ("delayed", "window", "rtt", "held"),
    [
        (True, 7.0, 0.2, 0.5),  # ns-2's receiver waits 0.1 s, half of a round trip
        (True, 7.0, 0.05, 1.0),  # at most a round trip
        (True, 7.9, 0.2, 0.5),  # only 7 packets are sent
        (True, 8.0, 0.2, 0.0),  # all ACKs are of two packets
        (True, 8.9, 0.2, 0.0),
        (True, 1.0, 0.2, 1 / 3),  # each packet waits: 0.1 s of the 0.3 s from one to the next
        (True, np.inf, 0.2, 0.0),
        (False, 7.0, 0.2, 0.0),
    ],
)
def test_the_last_packet_of_an_odd_window_waits_at_the_receiver(
    delayed: bool, window: float, rtt: float, held: float
) -> None:
    flow = vm.Flow("reno", rtt, variant="ns2", max_window=window, delayed_ack=delayed)
    case = vm.Scenario([vm.Link(1000.0)], [flow])
    assert placement.held_by_receiver(case, case.members[0]) == pytest.approx(held)


def test_the_classes_share_a_link_by_the_flows_that_are_active() -> None:
    """Weight 2: one flow of R beside one, two, and again one of D; then D has none."""
    queue = vm.RateDelay(k=2.0)
    flows = [
        vm.Flow("reno", 0.1, "r"),
        vm.Flow("vegas", 0.1, "d", stop=40.0),
        vm.Flow("vegas", 0.1, "late", start=10.0, stop=30.0),
        vm.Flow("reno", 0.1, "back", direction="reverse"),
        vm.Flow("reno", 0.1, "web", size=10.0, arrivals=vm.Poisson(1.0)),
    ]
    case = vm.Scenario([vm.Link(1000.0, buffer=100, queue=queue)], flows, run=vm.Run(60, 20))
    shares = list(placement.class_shares(case, case.links[0], "forward"))
    assert shares == [
        (0.0, pytest.approx(2 / 3)), (10.0, pytest.approx(2 / 4)), (30.0, pytest.approx(2 / 3)),
    ]  # fmt: skip
    assert list(placement.class_shares(case, case.links[0], "reverse")) == []
    # the smaller part is 1/3: a round in which it sends a packet of 1000 B has 3000 B
    assert placement.bytes_per_turn(case, case.links[0], "forward") == 1500


@pytest.mark.parametrize(
    ("ack", "delayed", "waits"),
    [(1000.0, False, False), (1001.0, False, True), (2000.0, True, False), (2001.0, True, True)],
)
def test_acks_wait_where_they_come_faster_than_the_link_sends(
    ack: float, delayed: bool, waits: bool
) -> None:
    """Data of 1000 B come at the rate of the slower link, and delayed ACKs half as often."""
    links = [vm.Link(1000.0, "a"), vm.Link(100.0, "b")]
    flow = vm.Flow("reno", 0.5, delayed_ack=delayed)
    case = vm.Scenario(links, [flow], packet_size=1000.0, ack_size=ack)
    found = placement.links_where_acks_wait(case)
    assert found == ([(case.links[1], "forward")] if waits else [])


@pytest.mark.parametrize(
    ("ack", "delayed", "rtts", "waits"),
    [
        (140.0, False, (0.1, 0.2), False),  # 0.14^2 / 2 = 0.0098
        (145.0, False, (0.1, 0.2), True),  # 0.0105
        (145.0, True, (0.1, 0.2), False),  # half as many ACKs
        (205.0, True, (0.1, 0.2), True),
        (205.0, True, (0.1, 0.1), False),  # they come back one after another
    ],
)
def test_large_acks_of_flows_with_other_rtts_meet(
    ack: float, delayed: bool, rtts: tuple[float, float], waits: bool
) -> None:
    """ACKs wait for r^2/2 of a packet's time if each takes the part r; 0.01 is neglected."""
    flows = [vm.Flow("reno", rtt, f"{i}", delayed_ack=delayed) for i, rtt in enumerate(rtts)]
    case = vm.Scenario([vm.Link(1000.0)], flows, packet_size=1000.0, ack_size=ack)
    assert bool(placement.links_where_acks_wait(case)) is waits
