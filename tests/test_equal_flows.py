"""The error of an average over one run, as equal flows show it, and as other starts show it."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.engines.equal_flows import least_error


def sharing(*flows: vm.Flow, **link: float) -> vm.Scenario:
    return vm.Scenario([vm.Link(1140.0, buffer=39.0, **link)], flows, run=vm.Run(200.0, 60.0))


def reno(name: str = "reno", **settings: object) -> vm.Flow:
    return vm.Flow("reno", 0.177, name=name, variant="ns2", **settings)


def test_an_error_covers_an_exchange_of_shares_that_takes_longer_than_the_run() -> None:
    """One of two equal Reno flows gets most for longer than a run, and each may be the one.

    So the scatter of a flow's averages between starts is the error of such an average. A standard
    deviation of eight values may be off by chance, hence the factor 2.
    """
    vegas = vm.Flow("vegas", 0.177, alpha=3, beta=3, variant="ns2", send_jitter=0.0)
    found = vm.limit_cycles(sharing(vegas, reno(count=2)), "rounds", starts=8)
    cycles = [cycle for cycle in found.cycles if cycle is not None]
    assert len(cycles) == 8
    rates, errors = (
        np.array([getattr(c, name) for c in cycles]) for name in ("throughput", "spread")
    )
    between_starts = rates.std(axis=0, ddof=1)
    assert np.all(between_starts < 2.0 * np.sqrt((errors**2).mean(axis=0)))
    assert len(found.outcomes) == 1  # chance decides, so this is one steady state


@pytest.mark.parametrize(("n", "correlation"), [(2, -1.0), (2, 0.0), (3, -0.5), (5, 0.0)])
def test_the_difference_of_equal_flows_bounds_the_error(n: int, correlation: float) -> None:
    """Averages drawn with a known error of 10; its square times (1 - r)(n - 1)/n is expected."""
    scenario = sharing(reno(count=n))
    covariance = 100.0 * (correlation + (1.0 - correlation) * np.eye(n))
    draws = np.random.default_rng(3).multivariate_normal(np.full(n, 300.0), covariance, 1000)
    squares = np.array([least_error(scenario, rates) for rates in draws]) ** 2
    expected = 100.0 * (1.0 - correlation) * (n - 1) / n
    assert expected <= 100.0
    # four standard errors; the relative variance of one square is at most 2
    assert squares.mean() == pytest.approx(expected, rel=4.0 * np.sqrt(2.0 / 1000))


@pytest.mark.parametrize(
    ("flows", "equal"),
    [
        ((reno("a"), reno("b")), True),
        ((reno("a"), reno("b", start=3.0, initial_window=4.0)), True),
        ((reno("a"), reno("b", delayed_ack=True)), False),
        ((reno("a"), reno("b", stop=100.0)), False),
        ((reno("a"), vm.Flow("reno", 0.178, variant="ns2", name="b")), False),
        # without random waits the start may decide for ever
        ((reno("a", send_jitter=0.0), reno("b", send_jitter=0.0)), False),
        # and so may the queue at which a Vegas flow measures its baseRTT
        ((vm.Flow("vegas", 0.177, count=2, variant="ns2"),), False),
        ((vm.Flow("vegas", 0.177, count=2, variant="ns2", over_estimate=0.0),), True),
    ],
)
def test_which_flows_are_equal(flows: tuple[vm.Flow, ...], equal: bool) -> None:
    found = least_error(sharing(*flows), np.array([400.0, 600.0]))
    assert found.tolist() == ([100.0, 100.0] if equal else [0.0, 0.0])


def test_random_starts_alone_make_no_motion_random() -> None:
    quiet = sharing(reno(count=2, send_jitter=0.0)).replace({"run.start_jitter": 1.0})
    assert least_error(quiet, np.array([400.0, 600.0])).tolist() == [0.0, 0.0]
    lossy = quiet.replace({"link.loss": 0.01})
    assert least_error(lossy, np.array([400.0, 600.0])).tolist() == [100.0, 100.0]
