"""Limits of a simulator's time, memory and disk, and of the output that we keep."""

import contextlib
import stat
import time
from pathlib import Path

import pytest

from vegasmodel.command_line.commands import run
from vegasmodel.packets.engine import EngineFailed, execute, few_packets, patience
from vegasmodel.scenario import Flow, Link, Run, Scenario
from vegasmodel.support import children
from vegasmodel.support.children import Budget, workplace


def test_what_a_child_says_is_read_to_its_end_and_kept_in_part() -> None:
    with workplace() as place:
        talk = "head -c 9000000 /dev/zero | tr '\\0' x; echo no >&2"
        said = place.run(["sh", "-c", talk], Budget(60))
    assert (said.status, len(said.out), said.err) == (0, children.MAX_OUTPUT, "no\n")
    assert not place.folder.exists()


def test_input_and_failure() -> None:
    with workplace() as place:
        assert execute("cat", ["cat"], place, 60, given="hello") == "hello"
        with pytest.raises(EngineFailed, match="ns failed: to the point"):
            execute("ns", ["sh", "-c", "echo to the point; exit 1"], place, 60)


def test_budgets_of_file_and_memory() -> None:
    with workplace() as place:
        budget = Budget(60, file=100_000)
        done = place.run(["sh", "-c", "sleep 0.2; head -c 200000 /dev/zero > big"], budget)
        assert done.status != 0
        assert (place.folder / "big").stat().st_size <= 100_000
        code = "import time; time.sleep(0.2); bytes(10**9)"
        done = place.run(["python3", "-c", code], Budget(60, memory=5 * 10**8))
        assert "MemoryError" in done.err


def members(group: int | None) -> list[str]:
    """Processes of a group; a minimal Debian has no ``ps``."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone
            if int(file.read_text().rpartition(")")[2].split()[2]) == group:
                found.append(file.parent.name)
    return found


def test_a_child_that_hangs_is_stopped_with_its_own_children() -> None:
    with workplace() as place:
        begun = time.monotonic()
        with pytest.raises(EngineFailed, match=r"ns took more than 0\.3 s"):
            execute("ns", ["sh", "-c", "sleep 1000 & sleep 1000"], place, 0.3)
        assert time.monotonic() - begun < 30
    end = time.monotonic() + 10
    while members(place.group) and time.monotonic() < end:
        time.sleep(0.02)
    assert members(place.group) == []


def test_an_option_says_how_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "ns"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\ntest $# = 0 && { cat > /dev/null; echo 2.35; exit; }\nsleep 1000\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    scenario = tmp_path / "s.toml"
    scenario.write_text('[[link]]\ncapacity = "9 pkt/s"\n[[flow]]\nlaw = "reno"\nrtt = "1 s"\n')
    for command in ("measure", "compare"):
        monkeypatch.setattr("vegasmodel.comparison.predict_all", lambda scenario, models: [])
        assert run([command, str(scenario), "--timeout", "200 ms"]) == 3
        assert capsys.readouterr().err == "vegasmodel: ns-2 took more than 0.2 s and was stopped\n"
    assert run(["measure", str(scenario), "--timeout", "soon"]) == 2
    assert "--timeout" in capsys.readouterr().err


def test_patience_grows_with_the_work() -> None:
    def case(duration: float) -> Scenario:
        return Scenario((Link(1000.0),), (Flow("reno", 0.08),), run=Run(duration, 1.0))

    assert patience(case(10.0)) == pytest.approx(120.0 + 1.0 + 0.05)
    assert patience(case(1e6)) > 24 * 3600


def test_round_trip_times_are_recorded_for_up_to_a_million_packets() -> None:
    """1000 packets/s for 1000 s; smaller packets and a second link each double their number."""

    def records(duration: float, links: int = 1, packet_size: float = 1000.0) -> bool:
        chain = tuple(Link(1000.0, name=f"l{i}") for i in range(links))
        flows = (Flow("reno", 0.08), Flow("reno", 0.08, name="small", packet_size=packet_size))
        return few_packets(Scenario(chain, flows, run=Run(duration, 1.0), packet_size=1000.0))

    assert records(1000.0)
    assert not records(1001.0)
    assert not records(501.0, links=2)
    assert not records(501.0, packet_size=500.0)
    assert records(500.0, packet_size=500.0)
