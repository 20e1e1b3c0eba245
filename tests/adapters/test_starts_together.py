"""Tests whether Vegas flows that start together measure their baseRTTs in an empty queue."""

import pytest

from vegasmodel import Flow, Link, Prediction, Run, Scenario, predict


def _holds(found: Prediction) -> bool | None:
    return {each.name: each.holds for each in found.assumptions}["queue-empties-at-start"]


@pytest.mark.parametrize("model", ["equilibrium", "network"])
@pytest.mark.parametrize(
    ("capacity", "rtt", "count", "first", "queue", "holds"),
    [
        (250, "50 ms", 2, 6, 4.1, True),
        (500, "100 ms", 2, 24, 4.2, True),
        (500, "100 ms", 2, 30, 8.2, False),
        (20, "120 ms", 6, 1, 15.1, False),
        (100, "100 ms", 24, 1, 61.2, False),
    ],
)
def test_the_first_windows_must_fit_into_a_round_trip(
    model: str, capacity: int, rtt: str, count: int, first: int, queue: float, holds: bool
) -> None:
    """``queue``: the mean queue in ns-2 (means of 3 runs); flows keep 2 packets each by the models.

    In ns-2 the queue is longer as soon as the first windows exceed what the link sends in an RTT.
    """
    flow = Flow("vegas", rtt, count=count, initial_window=first, alpha=2, beta=2, variant="ns2")
    case = Scenario((Link(f"{capacity} pkt/s"),), (flow,), run=Run(duration="60 s", runs=3))
    found = predict(case, model)
    assert found.queue_mean[0] == pytest.approx(2.0 * count)
    assert (abs(found.queue_mean[0] / queue - 1.0) < 0.1) == holds
    assert _holds(found) is holds


def test_each_link_counts_its_own_newcomers() -> None:
    """A link sends 50 packets in an RTT: two first windows of 20 packets fit, three do not."""
    links = (Link("500 pkt/s", name="a"), Link("500 pkt/s", name="b"))
    flow = {"rtt": "100 ms", "initial_window": 20, "alpha": 2, "beta": 2}
    through = Flow("vegas", name="through", path=["a", "b"], **flow)
    one = Flow("vegas", name="one", path=["a"], **flow)
    two = Flow("vegas", name="two", path=["a"], **flow)
    assert _holds(predict(Scenario(links, (through, one)), "network")) is True
    found = predict(Scenario(links, (through, one, two)), "network")
    assert _holds(found) is False
    (broken,) = (each for each in found.broken if each.name == "queue-empties-at-start")
    assert "60 packets, and a sends 50" in broken.detail
