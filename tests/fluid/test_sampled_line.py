"""Linux's TCP in ``fluid``: the order of packets at a full queue, and round trips of few ACKs."""

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import kernel_runs
from vegasmodel.engines.fluid.sampled import line
from vegasmodel.engines.fluid.sampled.records import LINK_STATE
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.engines.tables import Table, jit
from vegasmodel.packets import reference
from vegasmodel.scenario import Flow, Link, Run, Scenario

CAPACITY = 500.0


def pair(
    laws: str, trip: float, buffer: float, *, delayed: bool = False, runs: int = 6
) -> Scenario:
    """Linux flows of equal RTTs; ``trip`` is the RTT in transmission times of a packet."""
    flows = tuple(
        Flow(law, trip / CAPACITY, name=f"{law} {i}", variant="linux", delayed_ack=delayed)
        for i, law in enumerate(laws.split())
    )
    times = Run(duration=160.0, warmup=40.0, runs=runs, start_jitter=5.0)
    return Scenario((Link(CAPACITY, buffer=buffer),), flows, run=times)


@pytest.mark.parametrize(
    ("laws", "trip", "buffer"),
    [
        ("cubic reno", 30.35, 25.0),
        ("cubic reno", 11.6, 14.0),
        pytest.param(
            "cubic cubic reno",
            15.2,
            9.0,
            marks=pytest.mark.xfail(
                strict=True, reason="fluid: the CUBIC flows get 0.06 to 0.07 of the link too much"
            ),
        ),
        ("vegas vegas reno", 22.7, 12.0),
    ],
)
def test_linux_flows_of_equal_rtts_share_in_fluid_as_in_rounds(
    laws: str, trip: float, buffer: float
) -> None:
    """``rounds`` moves each packet. The first law's share is that of all its flows together.

    24 runs, because the standard error of a share in 6 runs is nearly 0.01.
    """
    scenario = pair(laws, trip, buffer, runs=24)
    alike = [law == laws.split()[0] for law in laws.split()]
    share, exact = (
        vm.predict(scenario, model=model).throughput[alike].sum() / CAPACITY
        for model in ("fluid", "rounds")
    )
    assert share == pytest.approx(exact, abs=0.06)


def test_if_receivers_delay_acks_the_order_of_packets_is_not_known() -> None:
    """An ACK then releases several packets, whether or not a window grows."""
    assert senders(pair("cubic reno", 30.0, 25.0))["in_line"].all()
    assert not senders(pair("cubic reno", 30.0, 25.0, delayed=True))["in_line"].any()


@jit
def _line_up(flows: Table, state: Table, grew: int, c: float) -> None:
    line.line_up(flows, grew, state[0], c, 0.0)


def test_trains_follow_one_another_in_their_order() -> None:
    """Three trains of 10, 20 and 30 packets in a line of 60; the second one has just grown.

    Behind its two newest packets are four more of its train, and then the third train comes.
    """
    flows, state = senders(pair("reno reno reno", 30.0, 29.0)), np.zeros(1, LINK_STATE)
    flows["active"], flows["in_flight"] = True, (10.0, 20.0, 30.0)
    flows["place"], flows["spare_acks"] = (0.6, 0.3, 0.1), 4.0
    state["delay"] = 30.0 / CAPACITY
    _line_up(flows, state, 1, CAPACITY)
    # 15 packets of the second train have passed; 5 follow, then the third train, then the first
    behind = (1.0 - flows["place"] % 1.0) * 60.0 % 60.0
    np.testing.assert_allclose(behind, (35.0, 45.0, 5.0), atol=1e-9)


@jit
def _silence(flows: Table, state: Table, c: float) -> float:
    return line.silence(flows[0], state[0], 0.0, c)


@pytest.mark.parametrize(("at", "packets"), [(6.0, 3.0), (16.0, 3.0), (17.0, 43.5), (19.0, 41.5)])
def test_three_later_packets_or_the_next_train_reveal_a_loss(at: float, packets: float) -> None:
    """tcp_rack_detect_loss: a train of 20 packets in a line of 60 loses packet ``at`` (from 0).

    If fewer than three packets of the train follow, the next train does so, 60 packets after the
    first of this one.
    """
    flows, state = senders(pair("reno reno", 30.0, 29.0)), np.zeros(1, LINK_STATE)
    flows["in_flight"], flows["place"] = 20.0, at / 60.0
    state["delay"] = 30.0 / CAPACITY
    assert _silence(flows, state, CAPACITY) * 60.0 == pytest.approx(packets)


@jit
def _to_comparison(flows: Table, state: Table, c: float) -> float:
    return line.to_comparison(flows[0], state[0], c)


@pytest.mark.parametrize(
    ("at", "rests", "due"), [(5.0, 0.0, 0.0), (5.0, 8.0, 8.0), (5.0, 20.0, 55.0)]
)
def test_cubic_compares_its_window_at_an_ack(at: float, rests: float, due: float) -> None:
    """bictcp_update: ACK ``at`` of 20 has just come, and the window is not compared for a while.

    The unit is the transmission time of a packet. A round trip has 60.
    """
    flows, state = senders(pair("cubic reno", 30.0, 29.0)), np.zeros(1, LINK_STATE)
    flows["in_flight"], flows["place"], flows["rests_for"] = 20.0, at / 60.0, rests / CAPACITY
    state["delay"] = 30.0 / CAPACITY
    assert _to_comparison(flows, state, CAPACITY) * 60.0 == pytest.approx(due, abs=1e-9)


@pytest.mark.parametrize("name", ["vegas-reno 1/4", "vegas-reno 1/6", "vegas-reno 2311/2"])
def test_with_two_acks_a_round_trip_vegas_grows_as_reno_does(name: str) -> None:
    """tcp_vegas_cong_avoid: cntRTT <= 2. Vegas beside Reno in the kernel, at small windows."""
    [scenario] = [s for s in kernel_runs() if s.name == name]
    measured = reference.lookup(scenario)
    assert measured is not None
    share, exact = (
        one.throughput[0] / scenario.links[0].capacity
        for one in (vm.predict(scenario, model="fluid"), measured)
    )
    assert share == pytest.approx(exact, abs=0.02)
