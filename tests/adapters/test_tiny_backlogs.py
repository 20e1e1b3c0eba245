"""Vegas flows that should keep less than half a packet queued."""

import pytest

import vegasmodel as vm

NAME = "backlogs-of-half-a-packet"


def pair(alpha: float, start: float = 0.0, count: int = 1) -> vm.Scenario:
    """Two or more equal flows, which do not wait before they send."""
    keys = {"alpha": alpha, "beta": alpha, "variant": "paper", "send_jitter": 0.0}
    flows = [
        vm.Flow("vegas", 0.1, name="first", **keys),
        vm.Flow("vegas", 0.1, name="second", start=start, count=count, **keys),
    ]
    return vm.Scenario([vm.Link(150.0)], flows, run=vm.Run(duration=300.0, warmup=150.0))


@pytest.mark.parametrize("model", ["equilibrium", "bands", "network", "fluid"])
@pytest.mark.parametrize(("alpha", "holds"), [(0.34, False), (0.49, False), (0.5, True), (1, True)])
def test_a_model_says_if_no_window_can_keep_so_few_packets(model, alpha, holds):
    found = vm.predict(pair(alpha), model)
    (said,) = [a for a in found.assumptions if a.name == NAME]
    assert said.holds is holds
    assert holds or f"second (beta {alpha})" in said.detail


def test_whole_packets_let_the_start_of_equal_flows_decide():
    """In the equations, a flow that starts late only over-estimates its baseRTT, and gets more.

    Then it keeps a backlog of 0.34 packets by its own count while 0.34 more are queued by the
    other flow. So the shares are in the golden ratio: 0.38 for the first flow, and otherwise 0.5.
    """
    rates = [vm.predict(pair(0.34, at), "rounds").throughput for at in (0.0, 0.1, 0.4, 0.7, 1.0)]
    shares = [first / (first + second) for first, second in rates]
    assert max(shares) > 0.6
    assert min(shares) < 0.3


def test_a_lone_flow_fills_the_link_with_any_threshold():
    alone = vm.Scenario(
        [vm.Link(150.0)],
        [vm.Flow("vegas", 0.1, alpha=0.34, beta=0.34, send_jitter=0.0)],
        run=vm.Run(duration=300.0, warmup=150.0),
    )
    (said,) = [a for a in vm.predict(alone, "equilibrium").assumptions if a.name == NAME]
    assert said.holds
    assert vm.predict(alone, "rounds").throughput[0] == pytest.approx(150.0, rel=0.02)
