"""The closed form ``random-loss``: RTTs of a flow that is alone on its link."""

from typing import Any

import pytest

from vegasmodel import Flow, Link, Run, Scenario, predict


@pytest.mark.parametrize(
    ("law", "capacity", "rtt", "loss", "buffer", "keys", "there"),
    [
        ("sack", 100, 0.03, 0.003, 60, {}, 0.263),
        ("newreno", 200, 0.05, 0.001, 200, {}, 0.234),
        ("tahoe", 200, 0.05, 0.001, 200, {}, 0.226),
        ("reno", 100, 0.1, 0.002, 100, {}, 0.328),
        ("sack", 300, 0.1, 0.001, 200, {}, 0.161),
        ("sack", 100, 0.05, 0.003, 100, {"max_window": 12}, 0.108),
        ("vegas", 200, 0.05, 0.002, 60, {"alpha": 3, "beta": 3}, 0.063),
        ("sack", 100, 0.03, 0.003, 100, {"delayed_ack": True}, 0.170),
        ("sack", 300, 0.1, 0.01, 60, {}, 0.102),
    ],
)
def test_a_flow_alone_waits_behind_its_own_packets(
    law: str,
    capacity: float,
    rtt: float,
    loss: float,
    buffer: int,
    keys: dict[str, Any],
    there: float,
) -> None:
    """``there``: the mean RTT in ns-2, s, a mean of 2 or 3 runs of 150 or 300 s."""
    link = Link(f"{capacity} pkt/s", buffer=buffer, loss=loss)
    flow = Flow(law, f"{rtt} s", variant="ns2", **keys)
    found = predict(Scenario((link,), (flow,), run=Run(duration="300 s", runs=2)), "random-loss")
    assert not found.broken
    assert found.rtt_mean[0] == pytest.approx(there, rel=0.04)
