"""Steady states of Vegas flows alone, as several models compute them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import VEGAS
from vegasmodel.engines.fluid import continuous


def test_the_golden_section_of_two_arrivals() -> None:
    # boutremans (6) with x_2 = Delta_1: last/first = (1 + sqrt 5)/2
    s = scenario({**VEGAS, "count": 2, "start": {"every": "9 s"}})
    for model in ("equilibrium", "arrivals"):
        first, last = vm.predict(s, model).throughput
        assert last / first == pytest.approx((1 + math.sqrt(5)) / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("variant", "alpha", "beta", "kept"),
    [("paper", 2.0, 4.0, 3.0), ("ns2", 0.2, 1.0, 0.75), ("ns2", 2.0, 4.0, 3.0)],
)
def test_a_flow_alone_keeps_the_middle_of_its_dead_zone_queued(
    variant: Any, alpha: float, beta: float, kept: float
) -> None:
    """ns-2's zone is from alpha - 1/2, but not below 0, to beta + 1/2."""
    flow = vm.Flow("vegas", 0.1, variant=variant, alpha=alpha, beta=beta)
    found = vm.predict(vm.Scenario([vm.Link(1000.0)], [flow]), "equilibrium")
    assert found.queue_mean == pytest.approx([kept])


def test_a_linux_flow_alone_computes_the_middle_of_alpha_and_beta_plus_1() -> None:
    """W D/T = 3.5 for alpha 2 and beta 4, with W = c (T + D): 1000 (0.1 + D) D/0.1 = 3.5."""
    flow = vm.Flow("vegas", 0.1, variant="linux", alpha=2.0, beta=4.0)
    found = vm.predict(vm.Scenario([vm.Link(1000.0)], [flow]), "equilibrium")
    delay = (math.sqrt(0.1**2 + 4.0 * 3.5 * 0.1 / 1000.0) - 0.1) / 2.0
    assert found.queue_mean == pytest.approx([1000.0 * delay])


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 5))
def test_the_order_of_groups_does_not_matter(alphas: list[int], shift: int) -> None:
    flows = [
        {"law": "vegas", "name": f"v{i}", "alpha": a, "beta": a + i, "start": f"{3 * i} s"}
        for i, a in enumerate(alphas)
    ]
    turned = flows[shift % len(flows) :] + flows[: shift % len(flows)]
    for model in ("equilibrium", "arrivals", "bands", "network"):
        here, there = (vm.predict(scenario(*order), model) for order in (flows, turned))
        for name in here.groups:
            assert there.groups[name] == pytest.approx(here.groups[name], rel=1e-9)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.floats(0.5, 9), min_size=2, max_size=6), st.floats(0, 0.02))
def test_one_link_of_the_network_is_the_secular_equation(alphas: list[float], x: float) -> None:
    flows = [
        {"law": "vegas", "name": f"v{i}", "alpha": a, "beta": a, "over_estimate": f"{x * i!r} s"}
        for i, a in enumerate(alphas)
    ]
    s = scenario(*flows)
    one, other = vm.predict(s, "network"), vm.predict(s, "equilibrium")
    np.testing.assert_allclose(one.throughput, other.throughput, rtol=1e-9)
    band = vm.predict(s, "bands").throughput_range
    np.testing.assert_allclose(band, other.throughput[:, None] * [1, 1], rtol=1e-9)


def test_a_parking_lot_is_certified() -> None:
    names = [f"L{i}" for i in range(5)]
    s = vm.Scenario.from_dict(
        {
            "link": [{"name": n, "capacity": "12500 pkt/s"} for n in names],
            "flow": [
                {"law": "vegas", "name": "through", "count": 20, "rtt": "200 ms"},
                *(
                    {"law": "vegas", "name": n, "count": 20, "rtt": "60 ms", "path": [n]}
                    for n in names
                ),
            ],
        }
    )
    p = vm.predict(s, "network")
    assert p.extra["kkt_residual"] < 1e-10
    np.testing.assert_allclose(p.utilization, 1.0, rtol=1e-9)
    # five links at one price each: the long flow's backlog is split over five queues
    assert p.groups["L0"] / p.groups["through"] == pytest.approx(5.0, rel=1e-9)
    assert not vm.predict(s, "equilibrium").applicable


@pytest.mark.parametrize(("path", "queue"), [(["a", "b"], [4.0, 0.0]), (["b", "a"], [0.0, 4.0])])
def test_of_two_equal_links_in_a_row_the_first_has_the_queue(path, queue) -> None:
    """In ns-2 the first of them has a mean queue of 4.0 packets, and the second of 0.0."""
    links = [vm.Link("200 pkt/s", name=name) for name in ("a", "b")]
    flow = vm.Flow("vegas", "100 ms", count=2, alpha=2, beta=2, path=path)
    p = vm.predict(vm.Scenario(links, [flow]), "network")
    np.testing.assert_allclose(p.queue_mean, queue, atol=1e-6)
    np.testing.assert_allclose(p.rtt_mean, 0.12, rtol=1e-6)  # 4 packets at 200 pkt/s


@pytest.mark.parametrize("every", ["0 s", "60 s"])
def test_the_papers_fluid_settles_at_the_steady_state(every: str) -> None:
    group = {**VEGAS, "count": 4, "start": {"every": every}}
    s = scenario(group, run={"duration": "600 s", "warmup": "400 s"})
    equations, exact = continuous.run(s), vm.predict(s, "equilibrium")
    np.testing.assert_allclose(equations.throughput, exact.throughput, rtol=1e-6)
    np.testing.assert_allclose(equations.base_rtt, exact.base_rtt, rtol=1e-6)


def test_late_flows_find_less_queue_than_the_equations_have() -> None:
    """``fluid`` adds how Vegas's windows move the queue, and so comes nearer to ``rounds``."""
    group = {**VEGAS, "count": 4, "start": {"every": "60 s"}}
    s = scenario(group, run={"duration": "600 s", "warmup": "400 s"})
    rates = {}
    for model in ("rounds", "fluid", "equilibrium"):
        found = vm.predict(s, model).throughput
        assert found is not None
        rates[model] = found
    fluid, exact = (
        np.abs(rates[model] - rates["rounds"]).max() for model in ("fluid", "equilibrium")
    )
    assert fluid < 0.7 * exact


def test_many_arrivals_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from vegasmodel.adapters import only_vegas

    group = {**VEGAS, "alpha": 2, "beta": 2, "count": 60, "start": {"every": "1 s"}}
    s = scenario(group)
    slow = vm.predict(s, "equilibrium")
    monkeypatch.setattr(only_vegas, "MAX_ORDER", 50)
    for model in ("equilibrium", "arrivals"):
        fast = vm.predict(s, model)
        assert fast.applicable
        np.testing.assert_allclose(fast.throughput, slow.throughput, rtol=1e-12)


@pytest.mark.parametrize(
    "more", [{"over_estimate": "0 s"}, {"beta": 3}, {"variant": "ns2"}, {"variant": "linux"}]
)
def test_a_refusal_of_many_arrivals_gives_the_whole_rule(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    from vegasmodel.adapters import only_vegas

    monkeypatch.setattr(only_vegas, "MAX_ORDER", 50)
    group = {**VEGAS, "alpha": 2, "beta": 2, "count": 51, "start": {"every": "1 s"}}
    assert vm.predict(scenario(group), "arrivals").applicable
    reason = vm.predict(scenario(group | more), "arrivals").reason
    rule = "all measure their baseRTT, alpha = beta and the variant is paper"
    assert reason == f"at most 50 flows unless {rule}"


def test_bands_that_reach_below_an_empty_queue_are_none() -> None:
    """In ns-2 the band begins at alpha - 1/2; an earlier version had this wrong."""
    low = scenario({"law": "vegas", "alpha": 0.25, "beta": 0.8, "variant": "ns2"})
    found = vm.predict(low, "bands")
    assert not found.applicable
    assert "queue" in str(found.reason)
