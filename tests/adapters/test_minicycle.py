"""The closed form ``minicycle`` computes nothing twice, and nothing in vain."""

from __future__ import annotations

import pytest

import vegasmodel as vm
from vegasmodel.adapters import minicycle


@pytest.mark.parametrize("beta", [3.0, 6.0])
def test_minicycle_solves_no_cycle_twice(monkeypatch, beta):
    """It solved each once more to say which hypotheses hold in it."""
    solved = []
    whole = minicycle.minicycle.solve
    monkeypatch.setattr(
        minicycle.minicycle, "solve", lambda *a, **k: solved.append(repr((a, k))) or whole(*a, **k)
    )
    flows = (vm.Flow("vegas", 0.08, alpha=3.0, beta=beta), vm.Flow("reno", 0.08))
    assert vm.predict(vm.Scenario((vm.Link(1080.0, buffer=3.0),), flows), "minicycle").applicable
    assert len(solved) == len(set(solved)) > 0


@pytest.mark.parametrize(("beta", "times"), [(3.0, 0), (6.0, 1)])
def test_minicycle_computes_the_first_window_only_where_it_decides(monkeypatch, beta, times):
    """It took most of the time, and has no effect unless a whole range of windows is steady."""
    calls = []
    whole = minicycle._start
    monkeypatch.setattr(minicycle, "_start", lambda *told: calls.append(1) or whole(*told))
    flows = (vm.Flow("vegas", 0.08, alpha=3.0, beta=beta), vm.Flow("reno", 0.08))
    case = vm.Scenario((vm.Link(1080.0, buffer=3.0),), flows)
    (found,) = vm.batch([case], "minicycle")
    assert len(calls) == times
    known = vm.equilibrium.minicycle.solve(1080.0, 0.08, 3.0, 3.0, flows[0].decrease, beta=beta)
    assert found.throughput == pytest.approx([float(known.vegas), float(known.reno)], rel=1e-12)
    other = vm.equilibrium.minicycle.solve(
        1080.0, 0.08, 3.0, 3.0, flows[0].decrease, beta=beta, losers="reno"
    )
    assert bool(other.vegas_range[0] < other.vegas_range[1]) == bool(times)
    assert found.throughput_range[0, 1] == pytest.approx(float(other.vegas_range[1]), rel=1e-12)
