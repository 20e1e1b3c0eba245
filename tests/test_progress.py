"""A long simulation shows its progress on a terminal, and only there."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

from vegasmodel.engines.rounds import answers
from vegasmodel.engines.rounds import run as rounds
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.study import meter
from vegasmodel.support import progress

LONG = Scenario.from_toml("""
    [[link]]
    capacity = "1000 pkt/s"
    buffer = "20 pkt"
    [[flow]]
    law = "reno"
    rtt = "20 ms"
    count = 8
    [run]
    duration = "600 s"
    warmup = "200 s"
    start_jitter = "1 s"
    """)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(work: object) -> list[str]:
    """The lines that a terminal would show while ``work`` runs, requested continuously."""
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.append(progress.line(9.0))
            time.sleep(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        work()  # type: ignore[operator]
    finally:
        over.set()
        watcher.join()
    assert not progress._series
    return [line for line, _ in itertools.groupby(seen)]


def test_a_run_says_how_far_it_is() -> None:
    rounds.run(LONG)  # compiled, or loaded
    lines = [line for line in watched(lambda: rounds.run(LONG)) if line]
    done = [int(re.fullmatch(r"simulated (\d+) of 600 s: 9 s", line)[1]) for line in lines]  # type: ignore[index]
    assert done == sorted(done)
    assert any(0 < seconds < 600 for seconds in done)


def test_the_number_never_falls_over_the_runs_of_an_answer() -> None:
    """Even if the number of runs grows during the answer, and later runs are shorter."""
    found: list[Prediction] = []
    lines = watched(lambda: found.append(answers.answer(LONG)))
    pairs = [re.search(r"simulated (\d+) of (\d+) s", line) for line in lines]
    done, of = np.array([(int(p[1]), int(p[2])) for p in pairs if p]).T
    lengths = found[0].extra["durations"]
    assert len(lengths) >= 3
    assert np.all(np.diff(done) >= 0)
    assert np.all(done <= of)
    assert sum(lengths[:-1]) < done[-1] <= of[-1] == sum(lengths)


@pytest.mark.parametrize(
    ("compiling", "said"), [(True, "compiling"), (False, "simulated 258 of 600 s")]
)
def test_the_line_says_what_goes_on(compiling: bool, said: str) -> None:
    assert progress.line(5.0) == ""
    with progress.running(lambda: 258.0, 600.0, lambda: compiling):
        assert said in progress.line(5.0)
        assert progress.line(0.5) == ""


def test_a_total_that_grows_is_explained_by_the_number_of_runs() -> None:
    with progress.series() as several:
        assert progress.line(5.0) == "preparing the first run: 5 s"  # not "0 of 0 s"
        with progress.running(lambda: 100.0, 200.0, lambda: False):
            several.wanted = 3
            assert progress.line(5.0) == "simulated 100 of 600 s in 3 runs: 5 s"
            several.wanted = 5
            assert progress.line(5.0) == "simulated 100 of 1000 s in 5 runs: 5 s"


KEPT = """
import sys
import time
from vegasmodel.support import machine_code
def slow(x):
    return x + 1
said = []
machine_code._listener.on_start = lambda event: said.append(machine_code.compiling)
machine_code.compiled(slow)(1.0)
print(len(said))
"""


def test_code_that_is_kept_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text(KEPT, encoding="utf-8")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = [
        subprocess.run(
            [sys.executable, str(tmp_path / "kept.py")],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert int(counts[0]) > 0
    assert counts[1] == "0"


class Notebook(io.StringIO):
    """As the streams of Jupyter, which are no terminals."""


Notebook.__module__ = "ipykernel.iostream"


def told(file: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a run that takes 0.5 s writes on standard error."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PACE", 0.01)
    monkeypatch.setattr(sys, "stderr", file)
    with progress.running(lambda: 43.0, 100.0, lambda: False):
        time.sleep(0.5)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "shows"), [(Terminal, True), (Notebook, True), (io.StringIO, False)]
)
def test_a_terminal_and_jupyter_show_it_and_a_file_does_not(
    kind: type[io.StringIO], shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    said = told(kind(), monkeypatch)
    assert ("\rsimulated 43 of 100 s" in said) is shows
    assert not said or said.split("\r")[-2].isspace()  # the line is removed at the end


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert told(Terminal(), monkeypatch) != ""
    monkeypatch.setenv("VEGASMODEL_PROGRESS", "no")
    assert told(Terminal(), monkeypatch) == ""


def test_a_sweep_has_one_line_and_not_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with meter.meter(io.StringIO()):
        assert told(Terminal(), monkeypatch) == ""
    assert told(Terminal(), monkeypatch) != ""


def test_only_the_main_thread_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    beside = threading.Thread(target=told, args=(file, monkeypatch))
    beside.start()
    beside.join()
    assert file.getvalue() == ""


ENDLESS = """
import vegasmodel as vm
from vegasmodel.engines.rounds import run
scenario = vm.Scenario(
    [vm.Link("1000 pkt/s", buffer="20 pkt")],
    [vm.Flow("reno", "20 ms", count=8)],
    run=vm.Run(duration="1e6 s"),
)
run.run(scenario.replace({"run.duration": 100.0}))  # compiled, or loaded
short = scenario.replace({"run.duration": 30.0})
print("ready", flush=True)
"""


@pytest.mark.parametrize(
    "call",
    [
        "predict(scenario)",
        "batch([short] + 4 * [scenario])",
        "basins(scenario, starts=4)",
        "limit_cycles(scenario, 'rounds', starts=4, longest=1e9)",
    ],
)
def test_ctrl_c_stops_a_run_in_python(call: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{ENDLESS}vm.{call}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=15.0)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert said.endswith("KeyboardInterrupt\n")


def test_a_sweep_has_a_line_only_when_there_is_something_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first point takes half a minute of compilation, so no speed is known before."""
    now = 0.0
    monkeypatch.setattr(meter, "time", types.SimpleNamespace(monotonic=lambda: now))
    out = io.StringIO()
    with meter.meter(out) as say:
        now = 31.0
        say(0, 10)
        assert out.getvalue() == ""
        now = 41.0
        say(5, 10)
    assert out.getvalue() == "vegasmodel: 5 of 10 points, 0.5/s, 10 s left\n"
    with meter.meter(out, "starts") as say:
        say(0, 10)
        now = 81.0
        say(2, 10)
    assert out.getvalue().endswith("vegasmodel: 2 of 10 starts, 0.05/s, 160 s left\n")
