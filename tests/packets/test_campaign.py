"""Campaigns of ns-2 runs: killed at any moment and started again, the results are the same."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vegasmodel as vm
from vegasmodel.packets import campaign, reference

TEXT = """
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
duration = "60 s"
warmup = "10 s"
start_jitter = "1 s"
runs = 2
"""
EACH = "link.0.buffer=5 pkt,10 pkt,15 pkt,20 pkt"


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
    for there in range(1, 4):  # killed at random after each of the first three results
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
    file.write_text(TEXT.replace("10 pkt", "10 s"))
    for main, before in ((campaign.main, [str(tmp_path / "out")]), (reference.main, ["make"])):
        for name in (str(file), str(tmp_path / "absent.toml")):
            assert main([*before, name]) == 2
            said = capsys.readouterr()
            assert said.out == ""
            assert said.err.strip().count("\n") == 0
