"""RED in ``fluid``: by hand against ns-2's queue/red.cc, and against runs of ns-2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.sampled import random_drops
from vegasmodel.engines.fluid.sampled.records import (
    FLOW,
    LINK_STATE,
    Bottleneck,
    LinkState,
    Sender,
)
from vegasmodel.engines.tables import Table, jit
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario


def bottleneck(**fields: Any) -> Bottleneck:
    """A link with a queue RED: thresholds of 5 and 15 packets, and a large buffer."""
    red = {"red": 1, "min_threshold": 5.0, "max_threshold": 15.0, "max_probability": 0.1}
    values = {"capacity": 100.0, "room": 1e6, "loss": 0.0, "weight": 0.0, "gentle": 0}
    rest = {"max_wait": 0.0, "meet_at": 0, "drop_at": 0}
    return Bottleneck(**values | red | rest | fields)


def link_state(**fields: float) -> np.ndarray:
    """The state of a link at which RED has not yet dropped a packet."""
    state = np.zeros(1, LINK_STATE)
    for name, value in ({"red_count": -1.0} | fields).items():
        state[name] = value
    return state


@jit
def passed(state: Table[LinkState], link: Bottleneck, queues: Floats) -> int:
    """How many packets RED lets pass before the first that it drops.

    The packets find ``queues`` packets waiting, and RED's average queue is as long.
    """
    for n in range(queues.size):
        state[0].red_average = queues[n]
        if random_drops.dropped(state[0], link, queues[n]):
            return n
    return queues.size


@jit
def burst(flows: Table[Sender], state: Table[LinkState], link: Bottleneck, queue: float) -> float:
    """Let a burst of the first flow arrive; returns how many packets then wait."""
    return random_drops.burst_arrives(flows[0], state[0], link, queue)


def bursting(packets: float) -> np.ndarray:
    """A flow with an RTT of 0.1 s that sends a burst."""
    flows = np.zeros(1, FLOW)
    flows["rtt"], flows["at_once"], flows["in_flight"] = 0.1, packets, packets
    return flows


@pytest.mark.parametrize("last", [7.0, 14.0])
def test_packets_between_two_drops_are_as_red_cc_draws_them(last: float) -> None:
    """modify_p: packet number n is dropped with p/(2 - n p) if 1 <= n p < 2, and passes below.

    The average rises from 7 packets to ``last``, so p rises with n. The packet that first finds p
    above 0 passes, and the count begins with it.
    """
    averages = np.linspace(7.0, last, 200)
    survive, alive = [], 1.0
    for n, average in enumerate(averages, start=1):
        p = 0.1 * (average - 5.0) / 10.0
        fate = 1.0 - p / (2.0 - n * p) if n * p < 2.0 - p else 0.0
        alive *= 1.0 if n * p < 1.0 or n == 1 else fate
        survive.append(alive)
    gaps = [
        passed(link_state(red_gap=gap), bottleneck(), averages)
        for gap in np.random.default_rng(3).random(4000)
    ]
    at = np.arange(5, 105, 10)
    found = np.array([np.mean(np.array(gaps) > n) for n in at])
    np.testing.assert_allclose(found, np.array(survive)[at], atol=4.0 * 0.5 / math.sqrt(4000))


def test_each_packet_of_a_burst_finds_the_ones_before_it_in_the_queue() -> None:
    """Packet number k of a burst finds k - 1 of them waiting, and RED's average follows."""
    state, flows = link_state(), bursting(40.0)
    waits = burst(flows, state, bottleneck(weight=0.002), 3.0)
    average = 0.0
    for k in range(40):
        average += 0.002 * (3.0 + k - average)
    assert waits == 43.0
    assert flows["undetected"][0] == 0.0
    assert state["red_average"][0] == pytest.approx(average, rel=1e-12)


def test_a_burst_that_lifts_the_average_above_the_threshold_loses_its_last_packets() -> None:
    """The average reaches 15 packets within a burst of 200; from then on all packets are lost."""
    flows = bursting(200.0)
    waits = burst(flows, link_state(), bottleneck(weight=0.002, max_probability=1e-9), 0.0)
    average, kept = 0.0, 0.0
    for _ in range(200):
        average += 0.002 * (kept - average)
        kept += average < 15.0
    assert waits == kept
    assert flows["undetected"][0] == 200.0 - kept


@pytest.mark.parametrize(
    ("capacity", "rtt", "threshold", "alpha", "measured"),
    [
        (1128.0, 0.1771, 6.0, 5.0, (610.0, 309.0)),
        (1300.0, 0.1757, 5.0, 4.0, (578.0, 387.0)),
        (1380.0, 0.1907, 5.0, 5.0, (525.0, 459.0)),
    ],
)
def test_vegas_and_newreno_share_a_link_with_red_as_in_ns2(
    capacity: float, rtt: float, threshold: float, alpha: float, measured: tuple[float, float]
) -> None:
    """ns-2, means over 20 runs (standard errors at most 12): in most of them Vegas gets more.

    Both windows together exceed the link by a few packets when RED drops the first one. If senders
    learned of the drops too late, more packets would be lost, and Vegas would wait for its timer.
    """
    flows = (
        Flow("vegas", rtt, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow("newreno", rtt, variant="ns2", send_jitter=0.0),
    )
    link = Link(capacity, buffer=100.0, queue=Red(threshold, 3.0 * threshold))
    s = Scenario((link,), flows, run=Run(300.0, 100.0, runs=20, seed=2, start_jitter=0.5))
    np.testing.assert_allclose(run(s).throughput, measured, atol=0.05 * capacity)
