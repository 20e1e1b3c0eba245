"""Figure 2's router in ns-3: stored measurements against the claims of `podlesny`."""

import numpy as np
import pytest

from paper_checks.podlesny import isolation
from vegasmodel.packets import ns3


@pytest.mark.parametrize("ratio", isolation.RATIOS)
def test_relative_fairness_is_within_a_tenth_of_1(ratio: float) -> None:
    mean, error = isolation.fairness(ratio).index
    assert abs(mean - 1) < 0.1
    assert error < 0.05


@pytest.mark.parametrize("ratio", isolation.RATIOS)
def test_the_queues_stand_in_the_papers_order(ratio: float) -> None:
    rd, red, droptail = (isolation.fairness(ratio, kind).index[0] for kind in isolation.DISCIPLINES)
    assert rd > red > droptail


def test_every_case_is_stored_and_fits_its_link() -> None:
    keys = {f"{engine} {scenario.fingerprint()}" for engine, scenario in isolation.cases()}
    assert keys == set(isolation._file())
    for engine, scenario in isolation.cases():
        found = isolation.stored(engine, scenario)
        counts = np.array([flow.count for flow in scenario.flows])
        link, span = scenario.links[0], scenario.run.duration - scenario.run.warmup
        load = (found.throughput @ counts) / link.capacity
        # what stands behind a loss at the end of warm-up is acknowledged after it
        longest = max(member.rtt for member in scenario.members)
        surplus = (link.buffer / link.capacity + longest) / span
        assert np.all((load > 0.85) & (load < 1 + surplus))
        assert found.throughput.shape == (scenario.run.runs, len(scenario.flows))


@pytest.mark.ns3
def test_a_stored_run_is_what_ns3_does_today() -> None:
    scenario = isolation.pair(1, 3, alone=False)
    old = isolation.stored("ns3", scenario)
    if old.version != ns3.version():
        pytest.skip(f"stored runs are of ns-3 {old.version}")
    new = isolation.measure("ns3", scenario)
    np.testing.assert_allclose(new["throughput"], old.throughput, rtol=1e-8)
