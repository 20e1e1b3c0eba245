"""Campaigns of ns-2 runs: killed at any moment and started again, they give the same results."""

import fcntl
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vegasmodel as vm
from scripts.kill_campaign import EACH, SCENARIO, at_work
from vegasmodel.packets import campaign, reference

TEXT = SCENARIO.format(seconds=60)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.ns2
def test_killed_and_started_again(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TEXT)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    arguments = [str(file), "--each", EACH, "--processes", "2"]
    assert campaign.main([str(whole), *arguments]) == 0
    moments = random.Random(1)
    command = [sys.executable, "-m", "vegasmodel.packets.campaign", str(broken), *arguments]
    for there in (1, 2):  # killed at random after the first and the second result
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while len(list(broken.glob("*.json"))) < there and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.2))
        process.kill()
        process.wait()
        assert len(list(broken.glob("*.json"))) >= there
    assert campaign.main([str(broken), *arguments]) == 0
    assert contents(broken) == contents(whole)
    assert len(contents(whole)) == 4


@pytest.mark.ns2
def test_killed_it_leaves_no_process_and_is_cleared_away(tmp_path: Path) -> None:
    file, folder = tmp_path / "scenario.toml", tmp_path / "runs"
    file.write_text(TEXT.replace('"60 s"', '"1e5 s"'))  # half a minute
    command = [sys.executable, "-m", "vegasmodel.packets.campaign", str(folder), str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while "ns" not in names(at_work(folder)) and time.monotonic() < end:
        time.sleep(0.01)
    there = names(at_work(folder))
    process.kill()
    process.wait()
    assert there == ["ns"]
    end = time.monotonic() + 5
    while at_work(folder) and time.monotonic() < end:
        time.sleep(0.01)
    assert at_work(folder) == []
    assert [path.name for path in folder.iterdir()] == [".work"]
    (folder / ".part-1-0.json").touch()
    file.write_text(TEXT.replace('"60 s"', '"20 s"'))
    assert campaign.main([str(folder), str(file)]) == 0
    assert [path.suffix for path in folder.iterdir()] == [".json"]


def names(processes: list[int]) -> list[str]:
    return [Path(f"/proc/{p}/comm").read_text().strip() for p in processes]


def test_one_campaign_at_a_time_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TEXT)
    (tmp_path / ".part-1-0.json").touch()  # of the campaign that runs
    place = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    assert campaign.main([str(tmp_path), str(file)]) == 2
    os.close(place)
    assert capsys.readouterr().err.strip().endswith("no other campaign is running")
    assert (tmp_path / ".part-1-0.json").exists()
    assert campaign.main([str(file / "below"), str(file)]) == 2
    assert "a usable folder" in capsys.readouterr().err


@pytest.mark.ns2
def test_scenarios_that_differ_in_their_name_only_run_once(tmp_path: Path) -> None:
    table = {"link": [{"capacity": "250 pkt/s"}], "flow": [{"law": "vegas", "rtt": "80 ms"}]}
    table["run"] = {"duration": "5 s", "warmup": "1 s"}
    found = list(campaign.run([table | {"name": "one"}, table | {"name": "two"}], tmp_path))
    assert [scenario.name for scenario, _ in found] == ["one", "two"]
    assert len({path for _, path in found}) == len(list(tmp_path.iterdir())) == 1


@pytest.mark.ns2
def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"link": [{"capacity": "250 pkt/s"}], "flow": [{"law": "vegas", "rtt": "80 ms"}]}
    table["run"] = {"duration": "5 s", "warmup": "1 s"}
    ((scenario, path),) = campaign.run([table], tmp_path)
    assert reference.lookup(scenario, tmp_path) is not None
    monkeypatch.setenv("PATH", "/nonexistent")  # no ns-2: it would fail
    assert [p for _, p in campaign.run([table], tmp_path)] == [path]


def test_a_bad_scenario_stops_everything(tmp_path: Path) -> None:
    with pytest.raises(vm.FieldError, match="capacity"):
        list(campaign.run([{"link": [{"capacity": "1 m"}], "flow": []}], tmp_path))


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TEXT.replace("10 pkt", "10 m"))
    for main, before in ((campaign.main, [str(tmp_path / "out")]), (reference.main, ["make"])):
        for name in (str(file), str(tmp_path / "absent.toml")):
            assert main([*before, name]) == 2
            said = capsys.readouterr()
            assert said.out == ""
            assert said.err.strip().count("\n") == 0
