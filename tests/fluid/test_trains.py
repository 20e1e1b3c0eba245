"""Trains of packets that meet at a queue while the windows do not fill the link."""

from typing import Any

import numpy as np
import pytest

from vegasmodel.engines.fluid.one_run import begin, march_arguments
from vegasmodel.engines.fluid.sampled import trains
from vegasmodel.engines.fluid.sampled.records import Bottleneck
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.engines.tables import Table, jit
from vegasmodel.predictor import predict
from vegasmodel.scenario import Flow, Link, Run, Scenario

C, N = 1000.0, 30.0  # pkt/s, packets of each train


@jit
def _pass(flows: Table, state: Table, link: Bottleneck, seconds: float) -> None:
    """Two trains of ``N`` packets arrive at the same time; ``seconds`` go by."""
    now = state[0]
    for i in range(flows.shape[0]):
        flows[i].active, flows[i].in_flight, flows[i].cwnd = True, 30.0, 30.0
        trains.begin_train(flows[i], now, 1000.0)
    trains.count_trains(flows, now, 1000.0)
    now.step = seconds
    trains.meet(flows, now, link, seconds)


def _met(buffer: float, rtts: tuple[float, float]) -> tuple[np.ndarray[Any, Any], Any]:
    flows = tuple(
        Flow("reno", rtt, name=f"f{i}", variant="ns2", send_jitter=0) for i, rtt in enumerate(rtts)
    )
    scenario = Scenario((Link(C, buffer=buffer),), flows)
    table = senders(scenario)
    state = begin(scenario, table, 0)
    link = march_arguments(scenario, table)[0]
    _pass(table, state, link, 0.08)  # less than a round trip
    return table, link


def test_two_trains_that_meet_lose_what_the_buffer_cannot_hold() -> None:
    """Both arrive at the link's rate, so N packets are too many, less those that can wait."""
    flows, link = _met(12.0, (0.1, 0.13))
    assert flows["lost"].sum() == pytest.approx(N - link.room, abs=1.0)


def test_a_meeting_makes_trains_longer() -> None:
    """Without loss 2 N packets leave one after another, so both trains end N/c seconds late."""
    flows, _ = _met(60.0, (0.1, 0.13))
    assert flows["lost"].sum() == 0.0
    np.testing.assert_allclose(flows["end"] - flows["front"], 2.0 * N / C, rtol=1e-9)


@jit
def _fill_and_leave(flows: Table, state: Table, link: Bottleneck) -> None:
    """The two trains of ``_pass`` arrive at a full link; then the link's queue is empty."""
    now = state[0]
    now.delay = 0.005
    _pass(flows, state, link, 0.02)
    now.time, now.delay = 0.02, 0.0
    trains.meet(flows, now, link, 0.012)


def test_a_filled_link_has_the_queue_of_its_windows() -> None:
    """Five packets wait as long as the windows fill the link, however the trains arrive.

    Afterwards the two trains bring 2 C packets a second for 10 ms, so ten packets more. They fit.
    """
    flows = tuple(
        Flow("reno", rtt, name=f"f{i}", variant="ns2", send_jitter=0)
        for i, rtt in enumerate((0.1, 0.13))
    )
    scenario = Scenario((Link(C, buffer=20.0),), flows)
    table = senders(scenario)
    state = begin(scenario, table, 0)
    _fill_and_leave(table, state, march_arguments(scenario, table)[0])
    assert table["lost"].sum() == 0.0


def test_trains_of_equal_rtts_lose_nothing() -> None:
    flows, _ = _met(12.0, (0.1, 0.1))
    assert flows["lost"].sum() == 0.0


@pytest.mark.parametrize(
    ("capacity", "buffer", "wait", "flows", "measured"),
    [
        (2700.0, 18.0, 315e-6, [("tahoe", t) for t in (0.2114, 0.191, 0.1118, 0.2082)], 0.20),
        (2482.0, 23.0, 102e-6, [("newreno", t) for t in (0.1648, 0.2357, 0.2395, 0.1673)], 0.30),
        (1882.0, 12.0, 480e-6, [("newreno", 0.137), ("newreno", 0.0862)], 0.21),
        (2041.0, 13.0, 0.0, [("vegas", 0.1158), ("newreno", 0.0532)], 0.59),
        (2479.0, 47.0, 244e-6, [("sack", 0.1165), ("sack", 0.2173)], 0.86),
        (2000.0, 8.0, 0.0, [("vegas", 0.05), ("vegas", 0.09)], 0.99),
    ],
)
def test_utilization_with_small_buffers(
    capacity: float, buffer: float, wait: float, flows: list[tuple[str, float]], measured: float
) -> None:
    """The measured utilizations are ns-2's, means of five runs.

    They are the networks ``losses-jitter/14`` and ``/16`` of seed 73331, ``/8`` of seed 60481,
    ``crowd/19``, and ``losses-jitter/0`` of seed 73331 (``benchmarks/reference``).  The last one is
    not stored; ns-2 ran twice.
    """
    groups = tuple(
        Flow(law, rtt, name=f"f{i}", alpha=3, beta=6, variant="ns2", send_jitter=wait)
        for i, (law, rtt) in enumerate(flows)
    )
    run = Run(duration=300.0, warmup=100.0, start_jitter=0.5, runs=20)
    found = predict(Scenario((Link(capacity, buffer=buffer),), groups, run=run), "fluid")
    assert found.throughput.sum() / capacity == pytest.approx(measured, abs=0.1)


@pytest.mark.parametrize(
    ("capacity", "buffer", "rtts", "measured"),
    [
        (1000.0, 8.0, [0.05] * 3 + [0.1] * 3, [224.0] * 3 + [51.2] * 3),
        (2000.0, 10.0, [0.04] * 4 + [0.12] * 4, [352.9] * 4 + [53.9] * 4),
    ],
)
def test_flows_of_two_rtts_lose_as_in_ns2_if_several_have_each_of_them(
    capacity: float, buffer: float, rtts: list[float], measured: list[float]
) -> None:
    """Trains of one RTT lose packets, too, while one of another RTT passes between them.

    ``measured``: packets per second in ns-2, means over the flows of an RTT and three runs.
    """
    flows = tuple(Flow("newreno", rtt, name=f"f{i}", variant="ns2") for i, rtt in enumerate(rtts))
    run = Run(duration=160.0, warmup=40.0, start_jitter=0.5, runs=10)
    found = predict(Scenario((Link(capacity, buffer=buffer),), flows, run=run), "fluid").throughput
    error = np.sqrt(np.mean((found - measured) ** 2)) / np.mean(measured)
    assert error < 0.12
