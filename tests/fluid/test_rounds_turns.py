"""Rate-Delay services in ``rounds``, whose two classes send their packets in turn."""

import numpy as np
import pytest

from tests.helpers import exact
from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.cycle import steady
from vegasmodel.engines.rounds.run import run
from vegasmodel.scenario import Link, RateDelay, Run, Scenario

# capacity, buffer, k, part of class D; laws and RTTs; duration; packets that ns-2's flows lose (in
# two runs with different seeds alike)
PACKET_BY_PACKET = (
    (
        (505.37, 50.0, 1.0, 0.35),
        (("vegas", 0.195), ("vegas", 0.0684), ("sack", 0.1528), ("newreno", 0.1465)),
        60.0,
        (2, 3, 24, 105),
    ),
    (
        (513.37, 45.0, 1.0, 0.35),
        (("vegas", 0.1802), ("vegas", 0.0774), ("reno", 0.166)),
        60.0,
        (0, 0, 63),
    ),
    ((554.37, 57.0, 1.0, 0.44), (("vegas", 0.1733), ("sack", 0.1414)), 60.0, (0, 45)),
    (
        (375.37, 69.0, 2.0, 0.35),
        (("vegas", 0.0758), ("sack", 0.1426), ("newreno", 0.1331)),
        6.0,
        (0, 30, 56),
    ),
    (
        (419.37, 55.0, 1.0, 0.42),
        (("vegas", 0.055), ("newreno", 0.151), ("newreno", 0.1608)),
        30.0,
        (1, 57, 46),
    ),
)


@pytest.mark.parametrize(("link", "flows", "duration", "lost"), PACKET_BY_PACKET)
def test_each_flow_loses_as_many_packets_as_in_ns2(
    link: tuple[float, float, float, float],
    flows: tuple[tuple[str, float], ...],
    duration: float,
    lost: tuple[int, ...],
) -> None:
    """ns-2's class-based queueing, packet by packet, with its rounding errors.

    The numbers differ if the classes are served at every moment in proportion to their shares, if a
    class may not use what the other one leaves over, or if a class keeps its turn over idle times.
    """
    capacity, buffer, k, part = link
    queue = RateDelay(k=k, delay_buffer=part)
    senders = tuple(exact(law, rtt, name=f"f{rtt}", variant="ns2") for law, rtt in flows)
    scenario = Scenario(
        (Link(capacity, buffer=buffer, queue=queue),), senders, run=Run(duration, 0.0)
    )
    assert tuple(run(scenario).flows["lost"]) == lost


THREE_VEGAS = (("vegas", 0.1487, 3.0), ("vegas", 0.1792, 5.0), ("vegas", 0.0764, 2.0))


def test_three_vegas_flows_share_a_delay_buffer_below_their_alphas() -> None:
    """The queue of class D holds 3 packets, and the flows would keep 10 there.

    ns-2 gives 14.9 ± 0.7, 43.9 ± 1.6, 48.9 ± 1.9 and 109.3 ± 1.2 packets/s (30 runs).  A fluid
    service of the classes gave 1, 1, 200 and 67.
    """
    flows = tuple(
        exact(law, rtt, name=f"v{alpha}", alpha=alpha, beta=alpha, variant="ns2")
        for law, rtt, alpha in THREE_VEGAS
    )
    sack = exact("sack", 0.1833, count=2, variant="ns2")
    link = Link(336.0, buffer=40.0, queue=RateDelay(delay_buffer=0.1))
    runs = Run(duration=150.0, warmup=50.0, runs=16, start_jitter=1.0)
    found = answer(Scenario((link,), (*flows, sack), run=runs))
    rates = list(found.groups.values())
    np.testing.assert_allclose(rates, (14.9, 43.9, 48.9, 109.3), rtol=0.2)


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_a_packet_waits_at_most_until_the_one_in_transmission_has_left(variant: str) -> None:
    """Class D sends one packet a round trip, far less than its share, so it is always next."""
    full = exact("vegas", 0.0837, name="full", alpha=5.0, beta=5.0, service="rate", variant=variant)
    light = exact("vegas", 0.1, name="light", max_window=1.0, service="delay", variant=variant)
    link = Link(200.0, buffer=100.0, queue=RateDelay(delay_buffer=0.5))
    found = answer(Scenario((link,), (full, light), run=Run(duration=100.0, warmup=20.0)))
    assert found.throughput.sum() == pytest.approx(200.0, rel=0.01)
    assert 0.05 / 200.0 < found.rtt_mean[1] - 0.1 < 1.0 / 200.0


@pytest.mark.parametrize("k", [1.0, 3.0])
def test_the_papers_scheduler_gives_the_shares_of_equation_5(k: float) -> None:
    """Figure 2 of ``podlesny``: both classes have packets waiting at all times."""
    flows = tuple(
        exact("vegas", 0.08, name=name, count=n, alpha=6.0, beta=6.0, service=name)
        for name, n in (("rate", 2), ("delay", 3))
    )
    link = Link(600.0, buffer=400.0, queue=RateDelay(k=k, delay_buffer=0.5))
    found = answer(Scenario((link,), flows, run=Run(duration=100.0, warmup=40.0)))
    assert found.groups["rate"] / found.groups["delay"] == pytest.approx(k, rel=0.01)


def test_a_steady_state_at_a_rate_delay_link_repeats_itself() -> None:
    """The waiting packets and the turns of the classes belong to the state."""
    flows = (exact("vegas", 0.1733, variant="ns2"), exact("sack", 0.1414, variant="ns2"))
    link = Link(554.37, buffer=57.0, queue=RateDelay(delay_buffer=0.44))
    scenario = Scenario((link,), flows, run=Run(duration=400.0, warmup=100.0))
    found = steady(scenario)
    np.testing.assert_allclose(found.throughput, answer(scenario).throughput, rtol=0.01)
