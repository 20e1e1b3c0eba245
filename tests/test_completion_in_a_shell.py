"""A shell completes commands, names of models, fields and the like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vegasmodel.command_line import newfile
from vegasmodel.command_line.commands import run


def test_a_shell_completes_commands() -> None:
    asked = {
        "_VEGASMODEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "vegasmodel ex",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("vegasmodel")], env=os.environ | asked,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["plain,explain"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("predict s.toml --model r", ["rounds", "red", "random-loss", "rate-delay"]),
        ("compare s.toml --model al", ["all"]),
        ("sweep s.toml --model ns", ["ns2", "ns3"]),
        ("simulate s.toml --model d", ["delayed"]),
        ("measure s.toml --engine ns", ["ns2", "ns3"]),
        ("sweep s.toml --engine d", ["dask"]),
        ("basins s.toml --against ns", ["ns2", "ns3"]),
        ("design s.toml --solve flow.vegas.al", ["flow.vegas.alpha"]),
        ("design none.toml --solve flow.vegas.al", []),
        ("sweep s.toml --over link.bu", ["link.buffer="]),
        ("explain mini", ["minicycle"]),
        ("explain baseRTT", ["baseRTT"]),
        ("explain nothing-like-it", []),
        ("explain Mb", ["Mbit/s"]),
        ("explain newr", ["newreno"]),
        ("map st", ["starvation"]),
        ("ratio ve", ["vegas"]),
        ("inspect --format pc", ["pcap"]),
        ("equilibrium --variant li", ["linux"]),
        ("paper ts", ["tsang"]),
    ],
)
def test_a_shell_completes_names(
    typed: str,
    offered: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(newfile.plain("s"))
    asked = {"_VEGASMODEL_COMPLETE": "bash_complete", "COMP_WORDS": f"vegasmodel {typed}"}
    for key, value in {**asked, "COMP_CWORD": str(len(typed.split()))}.items():
        monkeypatch.setenv(key, value)
    assert run() == 0
    out, err = capsys.readouterr()
    assert sorted(out.split()) == sorted(f"plain,{name}" for name in offered)
    assert err == ""
