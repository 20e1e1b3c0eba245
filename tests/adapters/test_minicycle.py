"""The closed form ``minicycle`` of a scenario: what it computes, and what it assumes of losses."""

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import scenario
from vegasmodel.adapters import minicycle
from vegasmodel.equilibrium import minicycle as closed
from vegasmodel.report.tables import notes
from vegasmodel.testing import invariants


@pytest.mark.parametrize("beta", [3.0, 6.0])
def test_minicycle_solves_no_cycle_twice(monkeypatch, beta):
    """Earlier the model solved each cycle once more, to say which hypotheses hold in it."""
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
    """This window took most of the time; it counts only if a range of windows is steady."""
    calls = []
    whole = minicycle._starting_window
    monkeypatch.setattr(
        minicycle, "_starting_window", lambda *told: calls.append(1) or whole(*told)
    )
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


def who_loses(**keys):
    """The minicycle's assumptions on who loses packets, and the scenario."""
    vegas = {"law": "vegas", "alpha": 3, "beta": 3, "variant": "ns2"}
    flow = {"send_jitter": "0 s"} | {k: v for k, v in keys.items() if k not in ("queue", "buffer")}
    link = {"buffer": "20 pkt"} | {k: v for k, v in keys.items() if k in ("queue", "buffer")}
    case = scenario(vegas | flow, {"law": "reno"} | flow, run={"duration": "300 s"}, **link)
    found = vm.predict(case, "minicycle").assumptions
    names = ("synchronised-losses", "only-growing-windows-lose")
    return {a.name: a for a in found if a.name in names}, case


@pytest.mark.parametrize("variant", ["ns2", "linux"])
@pytest.mark.parametrize(("buffer", "grows"), [("5 pkt", True), ("20 pkt", False)])
def test_without_waits_only_flows_whose_windows_grow_lose(variant, buffer, grows):
    """Earlier the model said that ``synchronised-losses`` fails, which it does not assume here.

    In ns-2 with a buffer of 5 packets Vegas lost as often as Reno; with one of 20, never.
    """
    named, case = who_loses(variant=variant, buffer=buffer)
    assert list(named) == ["only-growing-windows-lose"]
    assert named["only-growing-windows-lose"].holds
    assert ("loses packets, too" in named["only-growing-windows-lose"].detail) == grows
    vegas, reno = vm.predict(case, "rounds").loss_rate
    assert (vegas > 0.0) == grows
    assert reno > 0.0


def test_the_papers_vegas_keeps_the_papers_assumption_on_losses():
    named, _ = who_loses(variant="paper")
    assert list(named) == ["synchronised-losses"]
    assert named["synchronised-losses"].holds is False  # Vegas no longer grows


@pytest.mark.parametrize(
    ("keys", "holds", "why"),
    [
        ({"send_jitter": "1 ms"}, None, "send_jitter"),
        ({"delay_noise": "0.5 ms"}, None, "delay_noise"),
        ({"delayed_ack": True}, None, "delayed_ack"),
        ({"access": "3240 pkt/s"}, None, "access"),  # three times the link
        ({"queue": {"discipline": "red", "min_threshold": 5, "max_threshold": 15}}, False, "red"),
    ],
)
def test_it_is_told_if_other_flows_may_lose_too(keys, holds, why):
    named, case = who_loses(variant="linux", **keys)
    (found,) = named.values()
    assert (found.name, found.holds) == ("only-growing-windows-lose", holds)
    assert why in found.detail
    said = f"minicycle: {found.name} {'is not known' if holds is None else 'does not hold'}: "
    assert any(line.startswith(said) for line in notes([vm.predict(case, "minicycle")]))


@pytest.mark.parametrize(
    "keys", [{"send_jitter": "1 ms"}, {"delay_noise": "0.5 ms"}, {"access": "3240 pkt/s"}]
)
def test_a_window_that_does_not_grow_may_lose_if_packets_come_early_or_late(keys):
    """In ``rounds``, which knows nothing of the assumption."""
    _, case = who_loses(variant="linux", rtt="60 ms", **keys)
    assert vm.predict(case, "rounds").loss_rate[0] > 0.0


@pytest.mark.parametrize("count", [5, 100])
def test_a_loss_rate_is_a_probability(count):
    """A flow that sends less than a packet in a cycle lost more packets than it sent."""
    flows = (vm.Flow("vegas", "10 ms", count=5), vm.Flow("reno", "10 ms", count=count))
    found = vm.predict(vm.Scenario((vm.Link(1000.0, buffer=0.0),), flows), "minicycle")
    invariants.check(found)
    assert found.loss_rate is not None
    assert all(entry["loss_rate"] is None for entry in found.to_json()["flows"][5:])
    both = {a.name: a.holds for a in found.assumptions}["synchronised-losses"]
    assert both  # Vegas, too, loses packets


def test_a_cut_of_vegas_at_every_loss_gives_it_too_little() -> None:
    """The text on ``synchronised-losses`` says so, for the loss at which Vegas no longer grows."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(60):
        capacity, rtt = rng.uniform(200.0, 5000.0), rng.uniform(0.01, 0.2)
        buffer = rng.uniform(3.0, 1.2 * capacity * rtt)
        case = capacity, rtt, buffer
        notes = {name: detail for name, _, detail in closed.hypotheses(*case, alpha=3.0)}
        cut, _ = closed.throughput(*case, alpha=3.0, losers="both")
        kept, _ = closed.throughput(*case, alpha=3.0, losers="growing")
        if "gives Vegas too little" in notes["synchronised-losses"]:
            seen += 1
            assert kept > cut
    assert seen > 30
