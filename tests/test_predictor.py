"""Every model answers the same scenario and reports its assumptions; none guesses silently."""

import dataclasses

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import scenario
from tests.homes import HOME, RED, RENO, VEGAS
from vegasmodel.engines.fluid.methods import by_chance
from vegasmodel.predictor import CLOSED_FORMS, MODELS, able, check_models, predict_all


@pytest.mark.parametrize("model", CLOSED_FORMS)
def test_each_model_answers_its_own_scenario(model: str) -> None:
    s = HOME[model]
    p = vm.predict(s, model)
    assert p.model == model
    assert p.applicable, p.reason
    assert np.all(p.throughput > 0)
    assert p.throughput.sum() <= s.links[0].capacity * (1 + 1e-9)
    assert p.assumptions
    assert all(a.detail for a in p.assumptions if a.holds is False), p.assumptions


def _beside_an_idle_link(one: vm.Scenario) -> vm.Scenario:
    """The scenario with a second link, which comes first and which no flow crosses."""
    link = dataclasses.replace(one.links[0], name="crossed")
    flows = tuple(dataclasses.replace(group, path=("crossed",)) for group in one.flows)
    drops = [{"flow": one.members[0].name, "packets": [3]}]
    idle = vm.Link(17.0, buffer=2.0, queue=vm.Red(0.5, 1.5), loss=0.1, drops=drops)
    return dataclasses.replace(one, links=(idle, link), flows=flows)


@pytest.mark.parametrize("model", [*CLOSED_FORMS, "fluid"])
def test_a_link_that_no_flow_crosses_changes_nothing(model: str) -> None:
    one = HOME.get(model, scenario(VEGAS, RENO, buffer="20 pkt"))
    two = _beside_an_idle_link(one)
    alone, beside = vm.predict(one, model), vm.predict(two, model)
    assert beside.scenario is two
    assert beside.throughput is not None
    np.testing.assert_array_equal(beside.throughput, alone.throughput)
    if alone.queue_mean is not None:
        np.testing.assert_array_equal(beside.queue_mean, [0.0, *alone.queue_mean])
    assert beside.utilization == pytest.approx([0.0, *alone.utilization])
    # whether each assumption holds, fails or is unknown
    assert [(a.name, a.holds) for a in beside.assumptions] == [
        (a.name, a.holds) for a in alone.assumptions
    ]


def test_the_model_network_knows_that_a_finite_buffer_suffices_beside_an_idle_link_too() -> None:
    one = scenario({**VEGAS, "variant": "paper", "count": 2}, buffer="60 pkt")
    rows = [
        {a.name: a.holds for a in vm.predict(each, "network").assumptions}
        for each in (one, _beside_an_idle_link(one))
    ]
    assert rows[0] == rows[1]
    assert rows[0]["infinite-buffer"] is True


def test_fluid_simulates_flows_that_all_cross_the_same_of_two_links() -> None:
    one = scenario(VEGAS, RENO, buffer="20 pkt")
    two = _beside_an_idle_link(one)
    alone, beside = (vm.simulate(s, "fluid", samples=11) for s in (one, two))
    np.testing.assert_array_equal(beside.window, alone.window)
    assert beside.link.values.tolist() == ["crossed"]
    cycles = [vm.limit_cycle(s, "fluid", losers="growing") for s in (one, two)]
    assert cycles[0].period == cycles[1].period > 0.0
    assert "fluid" in able(two)


def test_every_model_has_a_home() -> None:
    assert set(HOME) == set(CLOSED_FORMS) == set(MODELS) - {"fluid", "rounds"}


@pytest.mark.parametrize("home", HOME)
def test_a_model_without_an_answer_says_why(home: str) -> None:
    for p in predict_all(HOME[home], CLOSED_FORMS):
        assert p.applicable == (p.throughput is not None)
        if not p.applicable:
            assert p.reason
            assert p.to_json()["flows"][0]["throughput_pps"] is None


def test_fluid_moves_each_start_as_rounds_does() -> None:
    """Three equal flows: who starts when decides, so the runs differ, in both simulators."""
    flow = vm.Flow("vegas", 0.05, count=3, alpha=2.0, beta=2.0, send_jitter=0.0)
    case = vm.Scenario(
        (vm.Link(250.0, buffer=200.0),), (flow,), run=vm.Run(200.0, 100.0, start_jitter=5.0, runs=4)
    )
    shares = []
    for model in ("fluid", "rounds"):
        found = vm.predict(case, model)
        runs = np.asarray(found.extra["throughput_runs"])
        assert runs.shape == (4, 3)
        assert np.ptp(runs, axis=0).min() > 5.0
        np.testing.assert_allclose(runs.mean(axis=0), found.throughput)
        shares.append(np.argsort(runs, axis=1)[:, -1])
    batch = vm.batch([case, case.replace({"run.start_jitter": 0.0})], model="fluid")
    np.testing.assert_allclose(batch[0].throughput, vm.predict(case, "fluid").throughput)
    np.testing.assert_allclose(batch[1].throughput, 250.0 / 3.0, rtol=1e-6)
    # the same starts are drawn, and the last to start gets most
    np.testing.assert_array_equal(shares[0], shares[1])


@pytest.mark.parametrize("law", ["vegas", "reno"])
def test_where_every_packet_is_lost_fluid_says_so(law: str) -> None:
    """The first random loss was drawn again and again, for ever."""
    found = vm.predict(scenario({"law": law, "variant": "ns2"}, loss=1.0), "fluid")
    assert "loses every packet" in str(found.reason)


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_rounds_finds_the_base_rtt_that_packets_see(variant: str) -> None:
    red = {**VEGAS, "variant": variant}
    s = scenario(red, RENO, buffer="20 pkt", queue=RED, run={"duration": "60 s", "warmup": "9 s"})
    assert vm.predict(s, "rounds").base_rtt[0] >= 0.08 * (1 - 1e-9)


def test_which_runs_differ_by_chance() -> None:
    """Senders wait at random by default; the fluid of the papers' law ignores that."""
    flows = [vm.Flow("vegas", "40 ms"), vm.Flow("reno", "40 ms")]
    plain = vm.Scenario([vm.Link(1000, buffer=20)], flows)
    still = plain.replace({"flow.send_jitter": 0})
    red = still.replace({"link.queue": vm.Red(5, 15)})
    sampled = plain.replace({"flow.variant": "ns2"})
    assert [s.by_chance for s in (plain, still, red, sampled)] == [True, False, True, True]
    assert [by_chance(s) for s in (plain, still, red, sampled)] == [False, False, True, True]


def test_no_such_model() -> None:
    with pytest.raises(vm.FieldError, match="did you mean 'minicycle'"):
        vm.predict(HOME["bands"], "minicycel")
    with pytest.raises(vm.FieldError, match=r"vegasmodel\.predict_all\(scenario"):
        vm.predict(HOME["bands"], "all")
    assert [p.model for p in vm.predict_all(HOME["bands"], ["bands", "red"])] == ["bands", "red"]
    assert [p.model for p in vm.predict_all(HOME["bands"], "bands")] == ["bands"]
    assert check_models("all") == list(vm.MODELS)


def test_more_than_a_model_takes_is_a_reason_and_no_error():
    link = '[[link]]\ncapacity = "1000 pkt/s"\n'
    many = vm.Scenario.from_toml(f'{link}[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\ncount = 5000\n')
    assert "4000 flows" in (vm.predict(many, "bands").reason or "")
    start = "start = { every = '1 ms' }\n"
    ordered = f'{link}[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\ncount = 11000\n{start}'
    queue = vm.Scenario.from_toml(ordered)  # alpha < beta
    assert "10000 flows" in (vm.predict(queue, "arrivals").reason or "")
    linux = vm.Scenario.from_toml(f'{ordered}variant = "linux"\n')
    said = "at most 10000 start times, unless no two flows start together"
    assert said in (vm.predict(linux, "equilibrium").reason or "")
    short = 'size = "30 pkt"\narrivals = { poisson = "1e300 1/s" }\n'
    crowd = vm.Scenario.from_toml(f'{link}[[flow]]\nlaw = "reno"\nrtt = "80 ms"\n{short}')
    assert "200000" in (vm.predict(crowd, "rounds").reason or "")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_gives_what_its_scenarios_give_one_by_one(threads: int) -> None:
    cases = [HOME["minicycle"], HOME["bands"], scenario(VEGAS, RENO, buffer="30 pkt")]
    found = vm.batch(iter(cases), "minicycle", threads=threads)
    for case, answer in zip(cases, found, strict=True):
        alone = vm.predict(case, "minicycle")
        assert (answer.applicable, answer.reason) == (alone.applicable, alone.reason)
        np.testing.assert_array_equal(answer.throughput, alone.throughput)
    assert [answer.applicable for answer in found] == [True, False, True]
    assert vm.batch([]) == ()
    for wrong in ({"model": "no"}, {"threads": 0}):
        [(field, value)] = wrong.items()
        for some in (cases, []):
            with pytest.raises(vm.FieldError, match=f"^{field}: '?{value}'? is not allowed"):
                vm.batch(some, **wrong)


def test_a_file_name_is_no_scenario():
    for ask in (vm.predict, vm.simulate, vm.compare):
        with pytest.raises(vm.FieldError, match=r"vegasmodel\.load\(FILE\)"):
            ask("mixed.toml")


@pytest.mark.parametrize(
    ("model", "gone"),
    [("rounds", {"stop": "5 s"}), ("rounds", {"size": 9}), ("fluid", {"stop": 5})],
)
def test_without_a_flow_after_the_warm_up_there_is_no_answer(model, gone) -> None:
    """There is nothing to average; with one flow that goes on, there is."""
    flows = [vm.Flow("vegas", "80 ms", name="gone", **gone), vm.Flow("reno", "80 ms", **gone)]
    scenario = vm.Scenario([vm.Link(300.0, buffer=20)], flows, run=vm.Run("40 s", "20 s"))
    none = vm.predict(scenario, model)
    assert not none.applicable
    assert "no flow sends" in none.reason
    some = dataclasses.replace(scenario, flows=(flows[0], vm.Flow("reno", "80 ms")))
    np.testing.assert_array_equal(np.isnan(vm.predict(some, model).throughput), [True, False])
