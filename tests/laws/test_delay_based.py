"""Delay-based laws of users in ``fluid``: they have no mechanisms of Vegas, as in ``rounds``."""

import pytest

import vegasmodel as vm
from tests.helpers import exact
from vegasmodel.scenario import Link, Run, Scenario


def _additive(f) -> float:
    return 1.0


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
@pytest.mark.parametrize("delayed_ack", [False, True])
@pytest.mark.parametrize("recovery", ["scoreboard", "one hole", "slow start"])
def test_a_law_that_ignores_the_delay_gets_the_same_if_it_is_called_delay_based(
    variant, delayed_ack, recovery
):
    """A gamma of a million packets never ends slow start, so nothing else differs.

    The law that was called delay-based had Vegas's fine timer, cuts, slow start, least window and
    delayed ACKs.
    """
    found = []
    for more in ({}, {"delay_based": True}):
        vm.register_law("own", _additive, recovery=recovery, **more)
        more = {"variant": variant, "delayed_ack": delayed_ack}
        own = exact("own", 0.04, count=3, gamma=1e6, **more)
        flows = (own, exact("newreno", 0.04, **more))
        case = Scenario((Link(500.0, buffer=10.0),), flows, run=Run(duration=60.0, warmup=10.0))
        found.append(vm.predict(case, "fluid").throughput)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_slow_start_ends_at_a_backlog_of_gamma_as_in_rounds(variant):
    """The window after slow start is the one that ``rounds`` has, and not that of a loss."""
    vm.register_law("own", _additive, delay_based=True)
    flow = exact("own", 0.1, variant=variant, gamma=1.0)
    case = Scenario((Link(5000.0, buffer=500.0),), (flow,), run=Run(duration=2.0, warmup=1.0))
    windows = {m: vm.simulate(case, m).window.values[-1, 0] for m in ("fluid", "rounds")}
    assert windows["rounds"] < 200.0  # a loss would come at 1000 packets
    assert windows["fluid"] == pytest.approx(windows["rounds"], rel=0.5)  # it grows by 100 % a step


@pytest.mark.parametrize("variant", ["ns2", "linux"])
@pytest.mark.parametrize("once", [False, True])
def test_the_least_window_is_one_packet(variant, once):
    """Vegas's least window is two packets."""
    vm.register_law("down", lambda _: -1.0, delay_based=True, once_a_round=once)
    case = Scenario((Link(500.0),), (exact("down", 0.1, variant=variant),), run=Run(60.0, 20.0))
    throughput = {m: float(vm.predict(case, m).throughput[0]) for m in ("fluid", "rounds")}
    assert throughput["fluid"] == pytest.approx(throughput["rounds"], rel=0.1)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_simulate_gives_the_base_rtt_of_a_delay_based_law(model):
    """LEDBAT (RFC 6817) holds the queueing delay at its target, which a late flow measures, too."""
    target = 0.025
    vm.register_law(
        "ledbat",
        lambda f: 1.0 - (f.rtt - f.base_rtt) / target,
        delay_based=True,
        slow_start="none",
    )
    flows = (
        exact("ledbat", 0.06, name="first", variant="ns2"),
        exact("ledbat", 0.06, name="late", variant="ns2", start=30.0),
        exact("reno", 0.06, variant="ns2", start=99.0),
    )
    case = Scenario((Link(1000.0, buffer=100.0),), flows, run=Run(duration=100.0, warmup=50.0))
    base = vm.simulate(case, model, samples=1001)["base_rtt"]
    assert base.sel(flow="late", time=slice(0.0, 29.0)).isnull().all()
    assert base.sel(flow="reno").isnull().all()
    measured = base.isel(time=-1)
    assert float(measured.sel(flow="first")) == pytest.approx(0.06, abs=1e-3)
    assert float(measured.sel(flow="late")) == pytest.approx(0.06 + target, abs=2e-3)
