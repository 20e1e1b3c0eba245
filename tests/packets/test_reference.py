"""Stored ns-2 runs: found by the scenario, complete, and equal to what ns-2 gives today."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import measurement
from vegasmodel.packets import reference, trace

CHECKS = Path(__file__).parents[2] / "paper_checks"
SHORT = """
name = "short"
[[link]]
capacity = "250 pkt/s"
buffer = "10 pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
[[flow]]
law = "reno"
rtt = "80 ms"
[run]
duration = "20 s"
warmup = "10 s"
start_jitter = "1 s"
runs = 2
"""


def _stored(scenario: vm.Scenario, model: str) -> tuple[vm.Prediction, float]:
    """The stored runs of the scenario, by ``model``, and the load of the first link."""
    found = reference.lookup(scenario)
    assert found.model == model
    assert found.throughput.shape == (len(scenario.members),)
    return found, float(found.throughput.sum() / scenario.links[0].capacity)


def test_every_stored_run_is_found_and_fits_its_scenario() -> None:
    scenarios = reference.stored()
    assert len(scenarios) >= 9
    for scenario in scenarios:
        found, load = _stored(scenario, "ns2")
        assert 0.5 < load < 1.01
        assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("buffer", [5, 10, 15, 20, 25, 30, 35, 40])
def test_the_demo_has_its_runs(buffer: int) -> None:
    text = (CHECKS / "devendictis" / "figure3.toml").read_text()
    scenario = vm.Scenario.from_toml(text.replace('buffer = "20 pkt"', f'buffer = "{buffer} pkt"'))
    assert scenario.links[0].buffer == buffer
    assert reference.lookup(scenario) is not None
    assert reference.lookup(vm.load(CHECKS / "boutremans" / "arrivals20.toml")) is not None


def test_another_scenario_has_none() -> None:
    assert reference.lookup(vm.Scenario.from_toml(SHORT)) is None


@pytest.mark.ns2
def test_made_found_and_made_again(tmp_path: Path) -> None:
    path = reference.make(tomllib.loads(SHORT), tmp_path)
    scenario = vm.Scenario.from_toml(SHORT.replace('"short"', '"other name"'))
    found = reference.lookup(scenario, tmp_path)
    assert found.extra["stored"] == path.name
    assert np.isnan(found.base_rtt[1])  # Reno has no baseRTT; JSON's null comes back as NaN
    assert reference.check(scenario, tmp_path) == 0.0
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    before = path.read_bytes()
    reference.make(tomllib.loads(SHORT), tmp_path)
    assert path.read_bytes() == before


def test_a_mean_over_runs_is_found_by_the_scenario_that_gives_no_number(tmp_path: Path) -> None:
    table = tomllib.loads(SHORT.replace("runs = 2\n", ""))
    scenario = vm.Scenario.from_dict(table)
    of_three = scenario.replace({"run.runs": 3})
    figures = vm.Prediction("ns2", of_three, np.ones(2), throughput_se=np.array([0.1, 0.2]))
    path = reference.store(table, "ns2", "2.35", figures, tmp_path)
    found = reference.lookup(scenario, tmp_path)
    assert found.scenario == of_three
    assert found.throughput_se.tolist() == [0.1, 0.2]
    assert reference.lookup(of_three, tmp_path) is None
    assert [s.run.runs for s in reference.stored(tmp_path)] == [None]
    assert path.read_text().count('"runs": 3') == 1


@pytest.mark.ns2
def test_several_runs_are_stored_and_made_again(tmp_path: Path) -> None:
    table = tomllib.loads(SHORT.replace("runs = 2\n", ""))
    path = reference.make(table, tmp_path, runs=2)
    scenario = vm.Scenario.from_dict(table)
    assert path.stem == scenario.fingerprint()
    found = reference.lookup(scenario, tmp_path)
    assert found.throughput_se is not None
    assert reference.check(scenario, tmp_path) == 0.0
    with pytest.raises(vm.FieldError, match="--runs"):
        reference.make(tomllib.loads(SHORT), tmp_path, runs=3)


def test_the_example_of_the_readme_has_standard_errors() -> None:
    (found,) = [
        run
        for scenario in reference.stored()
        if scenario.name == "mixed" and scenario.flows[0].send_jitter is None
        for run in [reference.lookup(scenario)]
    ]
    assert found.scenario.run.times >= 3
    assert found.throughput_se is not None


@pytest.mark.ns2
def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = reference.make(tomllib.loads(SHORT), tmp_path)
    path.write_text(path.read_text().replace('"runs": 2', '"runs": 3'))
    with pytest.raises(ValueError, match="damaged"):
        reference.lookup(vm.Scenario.from_toml(SHORT), tmp_path)


def test_a_run_under_another_scenarios_name_is_refused(tmp_path: Path) -> None:
    """The stored run is complete, but it is of another network."""
    table = tomllib.loads(SHORT)
    scenario = vm.Scenario.from_dict(table)
    figures = vm.Prediction("ns2", scenario, np.ones(len(scenario.members)))
    path = reference.store(table, "ns2", "2.35", figures, tmp_path)
    assert reference.lookup(scenario, tmp_path) is not None
    other = vm.Scenario.from_toml(SHORT.replace('"10 pkt"', '"11 pkt"'))
    path.rename(tmp_path / f"{other.fingerprint()}.json")
    with pytest.raises(ValueError, match="of another scenario"):
        reference.lookup(other, tmp_path)


def test_a_place_that_is_not_there() -> None:
    with pytest.raises(vm.FieldError, match="--each"):
        list(reference.variants(tomllib.loads(SHORT), "link.3.buffer=5 pkt"))


def test_variants_of_one_file() -> None:
    table = tomllib.loads(SHORT)
    variants = list(reference.variants(table, "link.0.buffer=5 pkt,7 pkt"))
    assert [v["link"][0]["buffer"] for v in variants] == ["5 pkt", "7 pkt"]
    assert table["link"][0]["buffer"] == "10 pkt"


def test_every_stored_run_of_the_kernel_is_found_and_fits_its_scenario() -> None:
    scenarios = reference.stored(reference.FOLDER / "linux")
    assert len(scenarios) >= 36
    for scenario in scenarios:
        found, load = _stored(scenario, "linux")
        # halving with next to no buffer still fills three quarters of a long pipe
        assert 0.75 < load < 1.01
        known = [member.flow.law == "vegas" for member in scenario.members]
        if any(known):
            assert np.isfinite(found.base_rtt).tolist() == known


def test_of_several_stored_traces_the_first_counts_and_damaged_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = vm.Scenario.from_toml(SHORT)
    (tmp_path / "linux").mkdir()
    monkeypatch.setattr(reference, "FOLDER", tmp_path)

    def store(name: str, rate: float, fingerprint: str) -> None:
        rates = np.full((20, 2), rate)
        times = np.arange(1.0, 21.0)
        made = trace.make(
            "linux", times, ["vegas", "reno"], {"throughput": rates}, scenario=fingerprint
        )
        made.write(tmp_path / "linux" / f"{name}.parquet")

    def found() -> tuple[list[float], dict[str, str]]:
        answer = measurement.find(case, None, None)
        notes = {note.name: note.detail for note in answer.assumptions}
        return answer.throughput.tolist(), notes

    store("a", 50.0, case.replace({"link.buffer": 11.0}).fingerprint())  # another scenario
    store("b", 100.0, case.fingerprint())
    rates, notes = found()
    assert rates == pytest.approx([100.0, 100.0])
    assert not {"one-stored-trace", "stored-runs-intact"} & set(notes)
    store("c", 90.0, case.fingerprint())
    (tmp_path / "linux" / "d.parquet").write_bytes(b"PAR1")
    rates, notes = found()
    assert rates == pytest.approx([100.0, 100.0])
    assert notes["one-stored-trace"] == "b.parquet, c.parquet are all of this scenario"
    assert notes["stored-runs-intact"].startswith("d.parquet cannot be read")
