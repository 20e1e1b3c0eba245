"""The command ``design``: its JSON document and its text."""

import json
import re
from pathlib import Path

import pytest

import vegasmodel as vm
from tests.design.scenes import SHORT
from tests.helpers import MIXED
from vegasmodel.command_line.commands import run


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    line = ["design", str(file), "--solve", "link.buffer", "--for", "share:vegas=0.3"]
    line += ["--model", "minicycle", "--verify", "none"]
    assert run([*line, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert (document["schema"], document["status"], document["reason"]) == (1, "one", None)
    (solution,) = document["solutions"]
    assert solution["unit"] == "pkt"
    assert solution["achieved"] == pytest.approx(0.3, rel=1e-6)
    assert solution["verified"] == {}
    assert run(line) == 0
    out, _ = capsys.readouterr()
    assert "link.buffer" in out
    assert max(map(len, out.splitlines())) <= 100
    # 18.6992 packets of 500 B at 1080 packets/s
    assert "The link sends 18.6992 pkt in 17.3 ms (9350 B)." in out
    line[5] = "share:vegas>=0.3"
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["sense"], document["wanted"]) == (">=", 0.3)
    assert document["intervals"] == [
        {"low": 1.0, "high": pytest.approx(18.6992, rel=1e-4), "below": None, "unsure": 0}
        | {"above": document["intervals"][0]["above"]}
    ]
    assert run(line) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "meets the target from 1 pkt (the range's end) to 18.6992 pkt." in out
    assert run([*line[:-4], "--model", "minicycle", "--verify", "none", "--between", "5"]) == 2
    assert run([*line[:4], "--for", "jain=2"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_assumptions_that_do_not_hold_at_a_solution_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A closed form of a drop-tail queue for a RED queue: ``rounds`` gives another share."""
    red = 'queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "15 pkt" }'
    text = MIXED.replace("[[flow]]", f"{red}\n[[flow]]", 1)
    (tmp_path / "red.toml").write_text(text)
    line = ["design", str(tmp_path / "red.toml"), "--solve", "link.buffer", "--for"]
    line += ["share:vegas=0.2", "--model", "minicycle"]
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["solutions"], document["status"]) == ([], "none")
    (solution,) = document["rejected"]  # the check gives Vegas more than twice the target
    assert solution["rejected_by"] == ["rounds"]
    made = vm.Scenario.from_toml(text).replace({"link.buffer": solution["value"]})
    broken = sorted(each.name for each in vm.predict(made, "minicycle").broken)
    assert "fifo-queue" in broken
    assert solution["broken"] == broken
    assert any(", ".join(broken) in note for note in document["notes"])
    assert abs(solution["verified"]["rounds"] - 0.2) > 0.2
    assert "rounds disagrees with minicycle" in solution["note"]
    assert run([*line, "--verify", "none"]) == 0
    assert "assumptions of minicycle do not hold" in " ".join(capsys.readouterr().out.split())


def test_a_delay_is_of_the_link_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = (
        '[[link]]\nname = "a"\ncapacity = "5000 pkt/s"\nbuffer = "20 pkt"\n[[link]]\nname = "b"\n'
    )
    text = MIXED.replace("[[link]]\n", links) + SHORT
    (tmp_path / "two.toml").write_text(text)
    line = ["design", str(tmp_path / "two.toml"), "--solve", "link.b.buffer", "--verify", "none"]
    line += ["--between", "5pkt:60pkt", "--within", "0.2", "--json"]
    assert run([*line, "--for", "delay:b=20ms"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["target_unit"]) == ("delay:b", "s")
    solution = document["solutions"][0]
    made = vm.Scenario.from_toml(text).replace({"link.b.buffer": solution["value"]})
    queue = vm.predict(made, "rounds").queue_mean
    assert queue[1] / made.links[1].capacity == pytest.approx(0.02, rel=0.2)
    assert run([*line, "--for", "delay=20ms"]) == 0
    assert "delay:a goes from" in str(json.loads(capsys.readouterr().out)["reason"])
    assert run([*line, "--for", "utilization:c=0.9"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "utilization:LINK=VALUE with a link of this scenario: a, b" in said


def test_a_delay_has_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.toml"
    path.write_text(MIXED)
    asked = ["design", str(path), "--solve", "link.buffer", "--for", "delay=10ms"]
    assert run([*asked, "--model", "fluid", "--verify", "none"]) == 0
    out = capsys.readouterr().out
    assert re.search(r" pkt +(9|10)(\.\d+)? ms", out)
    assert run([*asked, "--model", "fluid", "--verify", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target_unit"] == "s"


@pytest.mark.parametrize("target", ["share:vegas=0.9", "share:vegas<=0.9"])
def test_a_solved_key_without_effect_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    (tmp_path / "s.toml").write_text(MIXED + SHORT)
    line = ["design", str(tmp_path / "s.toml"), "--solve", "flow.reno.alpha", "--for", target]
    line += ["--model", "minicycle", "--verify", "none"]
    assert run(line) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "reno: alpha has no effect; reno has no thresholds." in out
    assert "write alpha = beta" not in out
