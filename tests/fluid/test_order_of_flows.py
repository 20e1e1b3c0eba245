"""The order in which a scenario lists its flows does not change their throughputs in ``fluid``."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vegasmodel.engines.fluid.run import run
from vegasmodel.engines.fluid.steady import steady
from vegasmodel.scenario import DropTail, Flow, Link, Red, Run, Scenario
from vegasmodel.stacks import Variant

LAWS = ("vegas", "reno", "newreno", "sack", "tahoe", "cubic")


@st.composite
def orders(draw: st.DrawFn) -> tuple[Scenario, list[int]]:
    """A scenario of 2 to 4 flows, and another order of its flows."""
    variant: Variant = draw(st.sampled_from(("ns2", "linux")))
    capacity, rtts = draw(st.sampled_from((200.0, 900.0))), st.sampled_from((0.03, 0.0304, 0.07))
    waits = draw(st.sampled_from((0.0, 1.0))) / capacity
    n = draw(st.integers(2, 4))
    flows = [
        Flow(
            draw(st.sampled_from(LAWS)),
            draw(rtts),
            name=f"flow {i}",
            start=draw(st.sampled_from((0.0, 0.5))),
            variant=variant,
            send_jitter=waits,
        )
        for i in range(n)
    ]
    red = Red(min_threshold=2.0, max_threshold=6.0)
    queue, loss = draw(st.sampled_from(((DropTail(), 0.0), (red, 0.0), (DropTail(), 0.01))))
    link = Link(capacity, buffer=draw(st.sampled_from((8.0, 25.0))), queue=queue, loss=loss)
    scenario = Scenario((link,), tuple(flows), run=Run(duration=20.0, warmup=5.0, runs=1))
    return scenario, draw(st.permutations(range(n)))


@settings(max_examples=40, deadline=None)
@given(orders())
def test_each_flow_keeps_its_throughput_if_flows_are_listed_in_another_order(
    case: tuple[Scenario, list[int]],
) -> None:
    scenario, order = case
    moved = replace(scenario, flows=tuple(scenario.flows[i] for i in order))
    one, other = run(scenario, 1.0), run(moved, 1.0)
    assert np.array_equal(one.throughput[order], other.throughput)
    assert np.array_equal(one.window[:, order], other.window)
    assert np.array_equal(one.lost[:, order], other.lost)


def test_steady_state_does_not_depend_on_the_order_of_flows_either() -> None:
    flows = (
        Flow("tahoe", 0.1471, variant="ns2", send_jitter=0.0),
        Flow("sack", 0.1471, variant="ns2", send_jitter=0.0),
        Flow("vegas", 0.1471, variant="ns2", send_jitter=0.0),
    )
    scenario = Scenario((Link(114.0, buffer=15.0),), flows)
    one, other = steady(scenario), steady(replace(scenario, flows=flows[::-1]))
    assert one.kind == other.kind
    assert np.array_equal(one.throughput[::-1], other.throughput)
    assert np.array_equal(one.spread[::-1], other.spread)
    assert np.array_equal(one.losses[::-1], other.losses, equal_nan=True)
