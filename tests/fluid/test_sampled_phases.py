"""Which flow loses at a full buffer if RTTs differ: ``fluid`` beside ns-2."""

from __future__ import annotations

import numpy as np
import pytest

from vegasmodel.engines.fluid.run import run
from vegasmodel.scenario import Flow, Link, Run, Scenario


def mix(law: str, n: int, vegas: tuple[int, float], rtt: float, link: Link) -> Scenario:
    """``n`` flows of a law beside some Vegas flows; nobody waits, starts differ by up to 0.5 s."""
    many, alpha = vegas
    flows = (
        Flow("vegas", rtt, count=many, alpha=alpha, beta=alpha, variant="ns2", send_jitter=0.0),
        Flow(law, rtt, count=n, variant="ns2", send_jitter=0.0),
    )
    return Scenario((link,), flows, run=Run(300.0, 100.0, runs=5, start_jitter=0.5))


@pytest.mark.parametrize(
    ("scenario", "measured", "near"),
    [
        (mix("reno", 1, (3, 5.0), 0.0307, Link(1974.0, buffer=18.0)), 173.1, 0.05),
        (mix("reno", 7, (1, 5.0), 0.1512, Link(255.0, buffer=15.0)), 23.8, 0.02),
        (mix("sack", 5, (3, 3.0), 0.1929, Link(813.0, buffer=18.0)), 52.9, 0.05),
    ],
    ids=["Reno", "seven Reno", "five SACK"],
)
def test_a_window_needs_half_an_ack_more_than_a_round_trip_brings(
    scenario: Scenario, measured: float, near: float
) -> None:
    """Small windows: ns-2's packets per second of each flow (drawn networks of the benchmark)."""
    rates = run(scenario).throughput[scenario.flows[0].count :]
    np.testing.assert_allclose(rates, measured, rtol=near)


@pytest.mark.parametrize(
    ("wait", "measured"), [(0.0, (416.0, 635.0)), (0.0005, (709.0, 343.0))], ids=["exact", "waits"]
)
def test_waits_of_half_a_millisecond_turn_the_winner_as_in_ns2(
    wait: float, measured: tuple[float, float]
) -> None:
    """SACK at 43 and 99 ms (docs/accuracy.md, exact senders): ns-2's packets per second."""
    flows = tuple(
        Flow("sack", rtt, name=f"rtt {rtt}", variant="ns2", send_jitter=wait)
        for rtt in (0.043, 0.099)
    )
    times = Run(300.0, 100.0, runs=5, start_jitter=0.5)
    rates = run(Scenario((Link(1065.0, buffer=45.0),), flows, run=times)).throughput
    assert np.argmax(rates) == np.argmax(measured)
