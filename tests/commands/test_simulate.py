"""The commands ``simulate`` and ``convert``, also if the simulation fails."""

import json
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from tests.commands.scenes import document
from vegasmodel.command_line.commands import run


def test_a_simulation_that_ends_early(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vegasmodel import simulation
    from vegasmodel.engines.rounds import answers
    from vegasmodel.results.prediction import Prediction

    path = tmp_path / "s.toml"
    path.write_text('[[link]]\ncapacity = "9 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "1 s"\n')
    broken = {"status": "too many events"}
    monkeypatch.setattr(
        answers, "answer", lambda s, **_: Prediction("rounds", s, np.full(1, np.nan), extra=broken)
    )
    (result,) = document(capsys, ["predict", str(path), "--model", "rounds", "--json"])["results"]
    assert result["reason"] == "the simulation ended early: too many events"
    assert not result["applicable"]
    real = simulation.simulate
    monkeypatch.setattr(
        simulation, "simulate", lambda *a, **k: real(a[0], "fluid").assign_attrs(broken)
    )
    assert run(["simulate", str(path)]) == 1
    assert "too many events" in capsys.readouterr().err


BLOATED = """
[[link]]
capacity = "1080 pkt/s"
buffer = "1e5 pkt"
[[flow]]
law = "vegas"
variant = "linux"
rtt = "60 ms"
[[flow]]
law = "reno"
rtt = "60 ms"
[run]
duration = "200 s"
"""


def test_a_simulation_that_fails_shows_no_numbers_and_writes_no_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vegasmodel.engines.rounds import run as rounds

    path, trace, picture = tmp_path / "s.toml", tmp_path / "t.parquet", tmp_path / "p.png"
    path.write_text(BLOATED)
    monkeypatch.setattr(rounds, "_RING", 2**12)
    monkeypatch.setattr(rounds, "_PARCELS", 2**12)
    data = vm.simulate(vm.load(path))
    assert data["rate"].min() >= 0.0  # NaN after the failure
    assert np.isnan(data["window"].values[-1]).all()
    asked = ["simulate", str(path), "--out", str(trace), "--plot", str(picture)]
    assert run(asked) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "buffer of bottleneck 100000 packets; largest window " in err
    assert "of reno" in err
    assert run([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert "more packets are under way" in found["provenance"]["status"]
    assert {f["rate_pps"] for f in found["flows"]} == {None}
    assert list(tmp_path.iterdir()) == [path]


def test_a_simulator_that_lacks_a_feature_is_named_by_its_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The error showed the scenario's name as a value that is not allowed."""
    path = tmp_path / "s.toml"
    links = "".join(f'[[link]]\nname = "{n}"\ncapacity = "9 pkt/s"\n' for n in "ab")
    path.write_text(f'{links}[[flow]]\nlaw = "reno"\nrtt = "1 s"\n')
    assert run(["simulate", str(path), "--model", "delayed"]) == 2
    said = f"vegasmodel: --model: 'delayed' has no answer for {path}; the simulator `delayed` does "
    assert capsys.readouterr().err == f"{said}not simulate more than one link\n"


def test_a_huge_buffer_has_room_for_its_packets() -> None:
    scenario = vm.Scenario.from_toml(BLOATED)
    assert vm.simulate(scenario).attrs["status"] == "done"


def test_simulate_convert_and_read_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        '[[link]]\ncapacity = "250 pkt/s"\n[[flow]]\nlaw = "vegas"\nrtt = "40 ms"\ncount = 2\n'
        '[run]\nduration = "20 s"\nwarmup = "5 s"\n'
    )
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    picture = tmp_path / "p.png"
    doc = document(
        capsys,
        ["simulate", str(scenario), "--out", str(first), "--plot", str(picture), "--json"],
    )
    assert [f["name"] for f in doc["flows"]] == ["vegas[0]", "vegas[1]"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    late = document(capsys, ["simulate", str(scenario), "--model", "delayed", "--json"])
    assert late["provenance"]["model"] == "delayed"
    with scenario.open("a") as file:
        file.write('[[flow]]\nlaw = "tahoe"\nrtt = "40 ms"\n')
    assert run(["simulate", str(scenario), "--model", "fluid"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "fluid: losses-end-growth does not hold: " in said  # the buffer is infinite
    doc = document(capsys, ["convert", str(first), "--out", str(second), "--json"])
    assert doc["flows"] == ["vegas[0]", "vegas[1]"]
    from vegasmodel import packets

    assert packets.read(first).data.identical(packets.read(second).data)


def test_simulate_says_for_which_flow_an_assumption_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``simulate`` named only the assumption; ``predict`` names the flow, too."""
    path = tmp_path / "slow.toml"
    flows = [vm.Flow("reno", "50 ms", access="800 kbit/s", name="modem"), vm.Flow("vegas", "50 ms")]
    path.write_text(vm.Scenario([vm.Link("1 Mbit/s", buffer=20)], flows).to_toml())
    for command in ("simulate", "predict"):
        assert run([command, str(path), "--model", "fluid"]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "fluid: bottleneck-is-the-link does not hold: slow access links are left out" in out
        assert "a flow may get more than its own carries: modem (" in out
        assert run([command, str(path), "--model", "rounds"]) == 0
        assert "bottleneck-is-the-link" not in capsys.readouterr().out
