"""After any failure: one line, a meaningful exit status, and nothing left behind."""

import errno
import inspect
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.kill_campaign import at_work
from vegasmodel import comparison
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import reference
from vegasmodel.packets.engine import EngineFailed, EngineMissing
from vegasmodel.scenario import Scenario
from vegasmodel.support import children, exits

COMMAND = [sys.executable, "-m", "vegasmodel"]
RATIO = ["ratio", "--capacity", "1080pkt/s", "--buffer", "20pkt", "vegas", "reno"]
LONG = """
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
[run]
duration = "1000000 s"
warmup = "10 s"
runs = 2
"""
FULL = "no space left on device; free some space"
DEAF = """
import hashlib
from vegasmodel.support import children, exits
print("begun", flush=True)
exits.main(lambda: hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1) and 0)
"""


def gone(folder: Path, seconds: float = 10.0) -> bool:
    """Whether a folder is soon empty, with no process at work in it."""
    end = time.monotonic() + seconds
    while (at_work(folder) or any(folder.iterdir())) and time.monotonic() < end:
        time.sleep(0.02)
    return not at_work(folder) and not any(folder.iterdir())


@pytest.mark.ns2
@pytest.mark.parametrize(
    ("number", "status", "line"),
    [
        (signal.SIGINT, 130, "vegasmodel: interrupted\n"),
        (signal.SIGTERM, 143, "vegasmodel: terminated\n"),
        (signal.SIGKILL, -9, ""),
    ],
)
def test_a_signal_ends_the_simulator_too(
    number: signal.Signals, status: int, line: str, tmp_path: Path
) -> None:
    scenario, scratch = tmp_path / "s.toml", tmp_path / "scratch"
    scenario.write_text(LONG)
    scratch.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "measure", str(scenario)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while len(list(scratch.glob("*/result.txt"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(at_work(scratch)) == 2  # both runs
    process.send_signal(number)
    assert process.communicate(timeout=20) == ("", line)
    assert process.returncode == status
    assert gone(scratch)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_does_not_hear_a_signal_is_ended(number: signal.Signals, status: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    begun = time.monotonic()
    process.send_signal(number)
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == status
    assert complaint.count("\n") == 1
    assert time.monotonic() - begun >= exits.GRACE  # it was not heard


SWALLOWED = """
import contextlib, signal, sys
from vegasmodel.command_line import commands

def loads(context):
    with contextlib.suppress(BaseException):
        signal.raise_signal(int(sys.argv[1]))
    raise AttributeError("partially initialized module 'pandas'")

commands._invoke = loads
commands.main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_loading_package_swallows(number: signal.Signals, status: int) -> None:
    """The package then fails in its own way, as pandas does; that is no error of vegasmodel."""
    line = [sys.executable, "-c", SWALLOWED, str(int(number)), "models"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr in ("vegasmodel: interrupted\n", "vegasmodel: terminated\n")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FieldError("alpha", -1, "more"), 2),
        (EngineMissing("ns-2 is not installed"), 2),
        (ModuleNotFoundError("No module named 'jax'", name="jax"), 2),
        (exits.Shortfall("no model is within"), 1),
        (EngineFailed("ns-2 took more than 1 s"), 3),
        (reference.DamagedError("a.json: damaged"), 3),
        (OSError(errno.ENOSPC, "No space left on device"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 3),
        (MemoryError(), 3),
        (ZeroDivisionError("a defect\nof ours \x1b[2J"), 3),
        (SystemExit("no licence"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_is_one_line_and_a_status(
    error: BaseException, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.status_of(error) == status
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("vegasmodel: ")
    assert line.endswith("\n")
    assert line[:-1].isprintable()


def ended(arguments: list[str], **options: object) -> tuple[int, str]:
    """Exit status and error message of a command in a separate process."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **options,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [RATIO, [*RATIO, "--json"], ["--help"]])
def test_an_output_that_nobody_takes(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # the end would find no more to write
    with Path("/dev/full").open("w") as full:
        status, line = ended(arguments, stdout=full)
    assert (status, line) == (3, f"vegasmodel: standard output: {FULL}, or choose another place\n")
    reader, writer = os.pipe()
    os.close(reader)
    status, line = ended(arguments, stdout=writer)
    os.close(writer)
    assert (status, line) == (141, "")  # as of a program that SIGPIPE ends


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("out.parquet", ["convert", str(reference.FOLDER / "linux" / "e1a_2M_40ms_a3b3.parquet")]),
        ("out.png", [*RATIO]),
        ("out.toml", ["new"]),
    ],
)
def test_a_full_disk_is_named_by_the_file_that_was_asked_for(
    name: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file can grow here, as on a full disk; the system's error has no file name."""
    path = tmp_path / name
    option = {".parquet": ["--out"], ".png": ["--plot"], ".toml": []}[path.suffix]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        status = run([*arguments, *option, str(path)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    remedy = "raise the limit (ulimit -f), or choose another place"
    line = f"vegasmodel: {path}: file too large; {remedy}\n"
    assert (status, capsys.readouterr().err) == (3, line)
    assert not list(tmp_path.iterdir())


def test_a_full_temporary_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="No space") as caught, children.workplace() as place:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert exits.status_of(caught.value) == 3
    said = capsys.readouterr().err
    assert said == f"vegasmodel: {place.folder}: {FULL}, or let TMPDIR name another folder\n"


def test_standard_output_closed() -> None:
    quoted = shlex.join([*COMMAND, *RATIO])
    done = subprocess.run(
        ["sh", "-c", f"{quoted} >&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "vegasmodel: standard output is closed\n")


@pytest.mark.parametrize("columns", ["0", "-1", "1e9", "²", "10"])
def test_a_terminal_that_is_hard_to_write_to(columns: str, tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(LONG.replace('law = "vegas"', 'law = "vegas"\nname = "flöw→"'))
    hard = {**os.environ, "COLUMNS": columns, "PYTHONIOENCODING": "ascii"}
    with (tmp_path / "out").open("w") as out:
        assert ended(["predict", str(scenario)], stdout=out, env=hard) == (0, "")
    text = (tmp_path / "out").read_text()
    assert "equilibrium" in text
    assert "fl\\xf6w" in text


def test_a_narrow_terminal_shows_every_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert run(["arrivals", "--n", "2"]) == 0
    out, _ = capsys.readouterr()
    for heading in ("arrival", "x exact", "pkt/s exact", "x Bonald", "pkt/s Bonald"):
        assert heading in out
    assert "…" not in out


def test_names_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(
        "time,flow,cc,cwnd,ssthresh,rtt_us,minrtt_us,bytes_acked,total_retrans,snd_mss\n"
        "0.2,\x1b[31mred\x07,vegas,10,7,50000,40000,0,0,934\n"
        "0.4,\x1b[31mred\x07,vegas,10,7,50000,40000,18680,0,934\n"
    )
    assert run(["convert", str(trace), "--out", str(tmp_path / "o.parquet")]) == 0
    out, _ = capsys.readouterr()
    assert "\\x1b[31mred\\x07" in out
    assert out.replace("\n", "").isprintable()


def test_a_place_where_nobody_can_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run([*RATIO, "--plot", "/proc/none/p.png"]) == 2  # no such folder
    assert run([*RATIO, "--plot", "/proc/p.png"]) == 3
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert run([*RATIO, "--plot", str(tmp_path / "p.png")]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert str(tmp_path) in lines[2]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``paper --html`` into such a folder worked for a minute first; root may write everywhere."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("paper_checks.report.build", "vegasmodel.predictor.predict_all"):
        monkeypatch.setattr(name, work)
    for name in ("vegasmodel.simulation.simulate", "vegasmodel.measurement.run_engine"):
        monkeypatch.setattr(name, work)
    file = tmp_path / "s.toml"
    file.write_text(STORED)
    gone = tmp_path / "gone.html"
    gone.symlink_to(tmp_path / "none" / "r.html")
    for path, line in [
        ("/proc/r.html", ["paper", "--html", "/proc/r.html"]),
        (str(gone), ["paper", "tsang", "--html", str(gone)]),
        ("/proc/p.svg", ["predict", str(file), "--plot", "/proc/p.svg"]),
        ("/proc/p.svg", ["compare", str(file), "--plot", "/proc/p.svg"]),
        ("/proc/t.parquet", ["simulate", str(file), "--out", "/proc/t.parquet"]),
        ("/proc/t.parquet", ["measure", str(file), "--out", "/proc/t.parquet"]),
        ("/proc/m.png", ["map", "starvation", "--out", "/proc/m.png"]),
        ("/proc/t.csv", ["sweep", str(file), "--over", "flow.rtt=1,2", "--csv", "/proc/t.csv"]),
    ]:
        assert run(line) == 3
        said = f"vegasmodel: {path}: cannot be written: no such file or directory\n"
        assert capsys.readouterr() == ("", said)
    assert {entry.name for entry in tmp_path.iterdir()} == {"s.toml", "gone.html"}


STORED = """
[[link]]
capacity = "250 pkt/s"
[[flow]]
law = "vegas"
rtt = "40 ms"
"""


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one stored run, and no simulator."""
    source = min(reference.FOLDER.glob("*.json"), key=lambda path: path.stat().st_size)
    shutil.copy(source, tmp_path)
    (tmp_path / "linux").mkdir()
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    monkeypatch.setattr(inspect.unwrap(reference.lookup), "__defaults__", (tmp_path,))
    monkeypatch.setattr(comparison, "predict_all", lambda scenario, models: [])
    return tmp_path / source.name


def test_a_damaged_stored_run_is_said_and_blocks_no_other(stored: Path) -> None:
    scenario = Scenario.from_dict(json.loads(stored.read_text())["scenario"])
    (stored.parent / "linux" / "x.parquet").write_bytes(b"PAR1 of no use")
    (stored.parent / "0123456789abcdef.json").write_text("{")
    assert comparison.compare(scenario).measured.model == "ns2"
    other = Scenario.from_toml(STORED)
    assert reference.traces(other) == ([], ["x.parquet"])
    for text in ("", "{", "[]", stored.read_text().replace("0", "1")):
        stored.write_text(text)
        with pytest.raises(reference.DamagedError, match="damaged"):
            comparison.compare(scenario)


@pytest.mark.ns2
def test_a_measurement_beside_a_damaged_file_says_so(stored: Path) -> None:
    (stored.parent / "linux" / "x.parquet").write_bytes(b"PAR1 of no use")
    scenario = Scenario.from_toml(STORED + '[run]\nduration = "3 s"\nwarmup = "1 s"\n')
    notes = comparison.compare(scenario).measured.assumptions
    assert [a.detail for a in notes if a.name == "stored-runs-intact"] == [
        "x.parquet cannot be read and may be of this scenario"
    ]
