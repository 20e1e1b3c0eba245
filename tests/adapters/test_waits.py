"""Tests that models report the waits of senders that change the rates in ns-2."""

import pytest

from vegasmodel import Flow, Link, Prediction, Run, Scenario, predict

RUN = Run(duration="60 s", runs=2)
NS2_FAST = 892.0  # pkt/s in ns-2, with waits of up to 8 ms at 2000 pkt/s


def _holds(found: Prediction) -> bool | None:
    (known,) = (each.holds for each in found.assumptions if each.name == "short-waits")
    return known


def _alone(wait: str | None, **more: object) -> Scenario:
    flow = Flow("vegas", "100 ms", alpha=2, beta=2, send_jitter=wait, **more)
    return Scenario((Link("500 pkt/s"),), (flow,), run=RUN)


CLOSED = ("equilibrium", "bands", "arrivals", "arrivals-bonald", "network")


@pytest.mark.parametrize("model", CLOSED)
@pytest.mark.parametrize(
    ("wait", "ns2", "holds"),
    [(None, 500.0, True), ("4 ms", 500.0, True), ("8 ms", 484.7, True), ("16 ms", 355.9, False)],
)
def test_vegas_alone(model: str, wait: str | None, ns2: float, holds: bool) -> None:
    """A mean wait of 8 ms collects 4 packets, and alpha is 2; ns-2 then leaves the link idle."""
    found = predict(_alone(wait), model)
    assert (abs(found.throughput[0] / ns2 - 1.0) < 0.1) == holds
    assert _holds(found) is holds


def test_long_waits_that_collect_few_packets_are_no_matter() -> None:
    """Waits of up to 60 ms at an RTT of 100 ms: the flow fills a link of 50 pkt/s in ns-2."""
    flow = Flow("vegas", "100 ms", alpha=3, beta=3, send_jitter="60 ms")
    found = predict(Scenario((Link("50 pkt/s"),), (flow,), run=RUN), "equilibrium")
    assert _holds(found) is True


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_fluid_tests_bursts_that_are_short_beside_the_rtt(variant: str) -> None:
    """Waits of up to 8 ms, a twelfth of the RTT, collect 8 packets at 2000 pkt/s."""
    flow = Flow("vegas", "100 ms", alpha=2, beta=2, send_jitter="8 ms", variant=variant)
    case = Scenario((Link("2000 pkt/s"),), (flow,), run=RUN)
    found = predict(case, "fluid")
    assert found.throughput[0] > 1.2 * NS2_FAST
    assert _holds(found) is False
    assert _holds(predict(case.replace({"flow.send_jitter": None}), "fluid")) is True


@pytest.mark.parametrize(("wait", "ns2", "holds"), [(None, 245.0, True), ("30 ms", 144.0, False)])
def test_random_loss(wait: str | None, ns2: float, holds: bool) -> None:
    """At 218 pkt/s, up to 6.5 packets collect in 30 ms."""
    flow = Flow("vegas", "100 ms", alpha=2, beta=2, send_jitter=wait, variant="ns2")
    link = Link("500 pkt/s", buffer=60, loss=0.005)
    found = predict(Scenario((link,), (flow,), run=Run(duration="160 s", runs=4)), "random-loss")
    assert (abs(found.throughput[0] / ns2 - 1.0) < 0.1) == holds
    assert _holds(found) is holds


@pytest.mark.parametrize("model", ["red", "rate-delay", "minicycle"])
def test_beside_loss_based_flows_a_long_wait_counts_as_well(model: str) -> None:
    """A Reno flow that waits for up to 0.3 RTT; the equations do not lengthen its round trip."""
    queue = {
        "red": {"discipline": "red", "min_threshold": 5, "max_threshold": 15},
        "rate-delay": {"discipline": "rd", "k": 2.0},
        "minicycle": {"discipline": "droptail"},
    }[model]
    flows = (Flow("vegas", "100 ms", alpha=2), Flow("reno", "100 ms", send_jitter="30 ms"))
    case = Scenario((Link("500 pkt/s", buffer=60, queue=queue),), flows, run=RUN)
    assert _holds(predict(case, model)) is False
    assert _holds(predict(case.replace({"flow.reno.send_jitter": None}), model)) is True
