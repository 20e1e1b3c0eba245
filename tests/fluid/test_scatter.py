"""What ``fluid`` says where starts and losses decide, beside what ns-2 measured there."""

from __future__ import annotations

import numpy as np
import pytest

from vegasmodel.engines.fluid.run import begin, senders
from vegasmodel.engines.fluid.sampled.recovery import on_loss
from vegasmodel.engines.tables import Table, jit
from vegasmodel.prediction import Prediction
from vegasmodel.predictor import predict
from vegasmodel.scenario import Flow, Link, Red, Run, Scenario

RANDOM = Run(300.0, 100.0, start_jitter=0.5)


def _held(found: Prediction) -> dict[str, bool | None]:
    return {a.name: a.holds for a in found.assumptions}


def test_a_starving_flow_scatters_as_in_ns2() -> None:
    """Six Vegas keep the buffer full.  In 20 runs of ns-2 the SACK flow got 0.6 +- 0.8 pkt/s."""
    flows = (
        Flow("vegas", 0.0451, count=6, alpha=3, beta=3, variant="ns2", send_jitter=0),
        Flow("sack", 0.0451, variant="ns2", send_jitter=0),
    )
    run = Run(300.0, 100.0, start_jitter=0.5, runs=20)
    found = predict(Scenario((Link(252.0, buffer=20.0),), flows, run=run), "fluid")
    assert found.throughput is not None
    assert found.throughput_se is not None
    assert 0.0 < found.throughput[-1] < 0.6 + 2.0 * 0.8
    assert found.throughput_se[-1] > 0.1 * found.throughput[-1]
    assert _held(found)["insensitive-to-starts"] is False


def test_a_pair_whose_runs_agree_in_ns2_is_insensitive_to_starts() -> None:
    """ns-2's five runs of this pair have a coefficient of variation of 0.0003."""
    flows = (
        Flow("vegas", 0.1382, alpha=5, beta=5, variant="ns2", send_jitter=0),
        Flow("sack", 0.1382, variant="ns2", send_jitter=0),
    )
    found = predict(Scenario((Link(2277.0, buffer=59.0),), flows, run=RANDOM), "fluid")
    held = _held(found)
    assert held["insensitive-to-starts"]
    assert held["enough-runs"]
    assert held["windows-fill-the-link"]
    assert held["base-rtt-above-propagation"]
    assert found.extra["runs"] == 3


def test_runs_follow_where_only_the_losers_are_drawn() -> None:
    """Nothing in the scenario is random, but which of two flows loses is drawn."""
    flows = tuple(
        Flow("sack", rtt, name=f"rtt {rtt}", variant="ns2", send_jitter=0) for rtt in (0.043, 0.099)
    )
    scenario = Scenario((Link(1065.0, buffer=45.0),), flows, run=Run(100.0, 50.0))
    found = predict(scenario, "fluid")
    assert found.extra["runs"] >= 3
    assert found.throughput_se is not None
    assert found.throughput_se.min() > 0.0
    assert predict(scenario.replace({"run.runs": 2}), "fluid").extra["runs"] == 2


def test_trains_that_the_equations_lack_are_reported() -> None:
    """Three Reno flows get 491, 66 and 171 pkt/s in ns-2, 28 % of the link; ``fluid`` more."""
    flows = tuple(
        Flow("reno", rtt, name=f"f{i}", variant="ns2", send_jitter=0.00022)
        for i, rtt in enumerate((0.0793, 0.2265, 0.1639))
    )
    found = predict(Scenario((Link(2623.0, buffer=18.0),), flows, run=RANDOM), "fluid")
    assert found.throughput is not None
    assert found.throughput.sum() > 1.5 * (491 + 66 + 171)
    assert _held(found)["windows-fill-the-link"] is False


def test_red_may_take_the_base_rtt_of_ns2s_vegas() -> None:
    """Vegas gets 11 pkt/s in 18 of 20 runs of ns-2 and 145 in the others (docs/ns2.md)."""
    flows = (
        Flow("vegas", 0.1739, alpha=2, beta=2, variant="ns2", send_jitter=0),
        Flow("newreno", 0.1739, variant="ns2", send_jitter=0),
    )
    link = Link(666.0, buffer=100.0, queue=Red(17.0, 51.0))
    assert not _held(predict(Scenario((link,), flows, run=RANDOM), "fluid"))[
        "base-rtt-above-propagation"
    ]


@jit
def _lose(flows: Table, state: Table) -> None:
    on_loss(flows[0], state[0], False)


@pytest.mark.parametrize(("in_flight", "backoff"), [(2.0, 1.0), (1.0, 8.0)])
def test_an_ack_ends_the_backoff_of_the_timer(in_flight: float, backoff: float) -> None:
    """Karn's rule: the ACK of a packet sent once ends the backoff; without one it remains."""
    flow = Flow("sack", 0.1, variant="ns2", send_jitter=0)
    scenario = Scenario((Link(100.0, buffer=20.0),), (flow,))
    flows = senders(scenario)
    state = begin(scenario, flows, 0)
    sender = flows[0]
    sender["active"], sender["cwnd"], sender["in_flight"] = True, 2.0, in_flight
    sender["undetected"], sender["backoff"], sender["ssthresh"] = 1.0, 8.0, 2.0
    _lose(flows, state)
    assert flows[0]["timeout_ends"] == pytest.approx(backoff * (0.1 + 3 * 0.1))
    assert np.isclose(flows[0]["backoff"], 2.0 * backoff)
