"""A long simulation shows its progress on a terminal, and only there."""

import io
import itertools
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import measurement
from vegasmodel.engines import outside
from vegasmodel.engines.delayed import feedback as delayed
from vegasmodel.engines.fluid import continuous, cycle, pauses
from vegasmodel.engines.fluid import run as fluid
from vegasmodel.engines.rounds import answers
from vegasmodel.engines.rounds import batch as rounds_batch
from vegasmodel.engines.rounds import run as rounds
from vegasmodel.packets import ns2, reading
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.status import Status
from vegasmodel.study import meter
from vegasmodel.support import machine_code, progress

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
        work()
    finally:
        over.set()
        watcher.join()
    assert not progress._series
    return [line for line, _ in itertools.groupby(seen)]


def test_a_run_says_how_far_it_is() -> None:
    rounds.run(LONG)  # compiled, or loaded
    seen = watched(lambda: rounds.run(LONG))
    lines = [line for line in seen if line not in ("", "preparing the first run: 9 s")]
    done = [int(re.fullmatch(r"simulated (\d+) of 600 s: 9 s", line)[1]) for line in lines]
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


@pytest.mark.parametrize("model", ["rounds", "red"])
def test_design_says_how_many_scenarios_are_computed(model: str) -> None:
    """They are the scenarios of the search, and those that check its solutions."""
    queue = {"discipline": "red", "min_threshold": 5, "max_threshold": 15}
    links = [vm.Link("1000 pkt/s", buffer="20 pkt", queue=vm.Red(**queue))]
    flows = [vm.Flow("vegas", "60 ms", alpha=3, beta=3), vm.Flow("reno", "60 ms")]
    case = Scenario(links, flows, run=vm.Run(duration="30 s", warmup="10 s", runs=1))
    found = []
    question = (case, "link.queue.max_probability", "share:vegas=0.5", model)
    lines = [x for x in watched(lambda: found.append(vm.design(*question, verify=()))) if x]
    pairs = [re.fullmatch(r"computed (\d+) of (\d+) scenarios: 9 s", line) for line in lines]
    done, of = np.array([(int(p[1]), int(p[2])) for p in pairs if p]).T
    assert len(done) == len(lines)
    assert np.all(np.diff(done) >= 0)
    assert np.any((done > 0) & (done < of))
    assert of[-1] == found[0].tried


def test_the_line_says_why_a_simulator_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder for machine code, the line said that this happens only once."""
    monkeypatch.setattr(machine_code, "_not_cached", [])
    with progress.running(lambda: 0.0, 600.0, lambda: True):
        assert progress.line(5.0) == "compiling, only once after an install: 5 s"
        monkeypatch.setattr(machine_code, "_DiskCache", _nowhere)
        assert machine_code.compiled(_twice)(21) == 42
        said = "again each time, as no folder for the result is writable (NUMBA_CACHE_DIR)"
        assert progress.line(5.0) == f"compiling, {said}: 5 s"


def _nowhere(*_: object) -> None:
    raise RuntimeError("cannot cache function: no locator available")  # Numba's error


def _twice(x: int) -> int:
    return 2 * x


@pytest.mark.parametrize(
    ("compiling", "said"), [(True, "compiling"), (False, "simulated 258 of 600 s")]
)
def test_the_line_says_what_goes_on(compiling: bool, said: str) -> None:
    assert progress.line(5.0) == ""
    with progress.running(lambda: 258.0, 600.0, lambda: compiling):
        assert said in progress.line(5.0)
        assert progress.line(0.5) == ""


def test_the_line_says_that_a_law_of_the_user_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It said "only once after an install", but every process compiles such a law."""
    vm.register_law("adds-two", lambda f: 2.0)
    case = vm.Scenario([vm.Link(400.0, buffer=20.0)], [vm.Flow("adds-two", "80 ms")])
    seen: list[str] = []
    compiled = outside._compiled_with

    def watched(*arguments: Any) -> Any:
        with monkeypatch.context() as during:
            during.setattr(machine_code, "compiling", lambda: True)
            seen.append(progress.line(9.0))
        return compiled(*arguments)

    monkeypatch.setattr(outside, "_compiled_with", watched)
    vm.limit_cycle(case, "fluid")
    assert set(seen) == {"compiling a law of your own, once in each process: 9 s"}


def test_a_search_for_a_steady_state_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a line even while the simulator is compiled, before any run begins."""
    flows = [vm.Flow(law, "80 ms", variant="ns2", send_jitter=0.0) for law in ("vegas", "reno")]
    case = vm.Scenario([vm.Link(400.0, buffer=20.0)], flows, run=vm.Run(duration=30.0, warmup=10.0))
    seen: list[str] = []
    search = cycle.limit_cycle

    def found(*arguments: Any, **named: Any) -> vm.LimitCycle:
        seen.append(progress.line(9.0))
        with monkeypatch.context() as during:
            during.setattr(machine_code, "compiling", lambda: True)
            seen.append(progress.line(9.0))
        return search(*arguments, **named)

    monkeypatch.setattr(cycle, "limit_cycle", found)
    vm.limit_cycle(case, "fluid")
    assert seen == ["looking for a steady state: 9 s", "compiling, only once after an install: 9 s"]
    assert not progress._series


def test_a_run_that_was_not_foreseen_adds_to_the_total() -> None:
    with progress.series():
        for _ in range(2):
            with progress.running(lambda: 60.0, 100.0, lambda: False):
                pass
        with progress.running(lambda: 60.0, 100.0, lambda: False):
            assert progress.line(5.0) == "simulated 260 of 300 s: 5 s"


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
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
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


# Carries out one statement after another, and says how each of them ended.
STATEMENTS = """
import multiprocessing
import sys
import threading
print("ready", flush=True)
for statement in sys.stdin:
    try:
        exec(compile(statement, "statement", "exec"))
        outcome = "done"
    except KeyboardInterrupt:
        outcome = "stopped"
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    for process in multiprocessing.active_children():
        process.join()
    print(outcome, flush=True)
"""


class Interrupted:
    """A Python process in which one endless call after another is stopped by Ctrl-C.

    ``prepare`` is a program that compiles what the calls need, or loads it.
    """

    def __init__(self, prepare: str) -> None:
        self._program = prepare + STATEMENTS
        self._process: subprocess.Popen[str] | None = None

    def stop(self, call: str) -> None:
        """Begin an endless call, press Ctrl-C, and see that call, threads and processes end."""
        process = self._process = self._process or self._start()
        try:
            process.stdin.write(f"{call}\n")
            process.stdin.flush()
            assert self._reply(1.0) is None
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert self._reply(15.0) == "stopped\n"
        except BaseException:  # the next call gets a new process
            self._kill()
            raise

    def close(self) -> None:
        """End the process; it must not be held up by anything that a call has left behind."""
        if self._process is None:
            return
        try:
            said, error = self._process.communicate(timeout=120.0)
            assert (self._process.returncode, said, error) == (0, "", "")
        finally:
            self._kill()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", self._program]
        started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert started.stdout.readline() == "ready\n"
        return started

    def _reply(self, seconds: float) -> str | None:
        """The next line that the process writes; ``None`` if it writes none for ``seconds``."""
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._process.stdout.readline() if ready else None

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes the pipes
                self._process = None


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
"""


@pytest.fixture(scope="module")
def endless() -> Iterator[Interrupted]:
    interrupted = Interrupted(ENDLESS)
    yield interrupted
    interrupted.close()


@pytest.mark.parametrize(
    "call",
    [
        "predict(scenario)",
        "batch([short] + 4 * [scenario])",
        "basins(scenario, starts=4)",
        "limit_cycles(scenario, 'rounds', starts=4, longest=1e9)",
    ],
)
def test_ctrl_c_stops_a_run_in_python(call: str, endless: Interrupted) -> None:
    endless.stop(f"vm.{call}")


ENDLESS_FLUID = """
import vegasmodel as vm
from vegasmodel.engines.fluid import batch, continuous, run
def case(variant, duration="1e6 s"):
    rtts = [f"{20 + 7.3 * i} ms" for i in range(12)]
    flows = [vm.Flow("reno", rtt, name=f"r{rtt}") for rtt in rtts[1:]]
    vegas = vm.Flow("vegas", "51 ms", alpha=1, beta=3, variant=variant)
    link = vm.Link("10000 pkt/s", buffer="20 pkt")
    return vm.Scenario([link], [vegas, *flows], run=vm.Run(duration=duration))
for variant in ("ns2", "paper"):
    run.run(case(variant, "30 s"))  # compiled, or loaded
batch.run([case("paper", "30 s")])
vm.simulate(case("ns2", "30 s"), "fluid")
vm.simulate(case("ns2", "1 s"), "delayed")
"""


@pytest.fixture(scope="module")
def endless_fluid() -> Iterator[Interrupted]:
    interrupted = Interrupted(ENDLESS_FLUID)
    yield interrupted
    interrupted.close()


@pytest.mark.parametrize(
    "call",
    [
        "vm.predict(case('ns2'), 'fluid')",
        "vm.simulate(case('ns2'), 'fluid')",
        "vm.simulate(case('ns2', '1e5 s'), 'delayed')",
        "continuous.run(case('paper'), step=1e-7)",  # before any cycle ends
        "vm.batch([case('ns2', '30 s')] + 4 * [case('ns2')], 'fluid')",
        "batch.run(4 * [case('paper')], step=1e-7)",
        "batch.run(4 * [case('ns2')])",
        "vm.limit_cycle(case('ns2'), 'fluid', longest=1e9)",
    ],
)
def test_ctrl_c_stops_fluid_in_python(call: str, endless_fluid: Interrupted) -> None:
    endless_fluid.stop(call)


def test_a_run_of_delayed_says_how_far_it_is() -> None:
    case = LONG.replace({"run.duration": 2000.0, "run.start_jitter": 0.0})
    delayed.run(case.replace({"run.duration": 300.0}))  # compiled, or loaded
    lines = [line for line in watched(lambda: delayed.run(case)) if line.startswith("simulated ")]
    done = [int(line.split()[1]) for line in lines]
    assert done == sorted(done)
    assert any(0 < seconds < 2000 for seconds in done)


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_a_run_of_fluid_says_how_far_it_is(variant: str) -> None:
    long = LONG.replace({"flow.reno.variant": variant, "run.start_jitter": 0.0})
    small = {"step": 1e-3} if variant == "paper" else {"runs": 1}
    work = continuous.run if variant == "paper" else fluid.run
    work(long.replace({"run.duration": 300.0}), **small)  # compiled, or loaded
    lines = [line for line in watched(lambda: work(long, **small)) if line]
    done = [int(line.split()[1]) for line in lines if line.startswith("simulated ")]
    assert done == sorted(done)
    assert any(0 < seconds < 600 for seconds in done)


def test_a_batch_says_how_many_scenarios_are_computed() -> None:
    short = [LONG.replace({"run.seed": seed, "run.runs": 1}) for seed in range(1, 6)]
    for call in (lambda: vm.batch(short, "rounds"), lambda: rounds_batch.run(short)):
        lines = [line for line in watched(call) if line.startswith("computed")]
        done = [int(re.fullmatch(r"computed (\d) of 5 scenarios: 9 s", line)[1]) for line in lines]
        assert done == sorted(done)
        assert any(0 < number < 5 for number in done)


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_pauses_change_no_digit_of_fluid(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A usual piece has more steps than the whole run, so the run then never pauses."""
    flows = [
        vm.Flow("vegas", "60 ms", alpha=1, beta=3, variant=variant),
        vm.Flow("reno", "83 ms", count=2),
        vm.Flow("vegas", "40 ms", name="late", start="7 s", stop="30 s", variant=variant),
    ]
    link = vm.Link("1000 pkt/s", buffer="20 pkt")
    case = vm.Scenario([link], flows, run=vm.Run(duration="60 s", warmup="10 s"))
    pieces, said = [], []
    monkeypatch.setattr(pauses.threads, "check", lambda: pieces.append(pauses.PAUSE))
    for pause in (pauses.PAUSE, 64):
        monkeypatch.setattr(pauses, "PAUSE", pause)
        found = fluid.run(case, sample=0.7, runs=1)
        parts = (found.throughput, found.window, found.queue, found.lost, found.rtt_mean)
        said.append([part.tobytes() for part in parts])
    assert said[0] == said[1]
    assert len(pieces) - pieces.count(64) == 2  # up to the end of the warm-up, and of the run
    assert pieces.count(64) > 20


def test_no_two_statuses_are_one() -> None:
    """A solver's status had the number, and so the words, of a paused simulator."""
    assert len(Status.__members__) == len(list(Status))


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


def test_reading_a_trace_and_running_ns_2_show_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both may take minutes, and nothing was said meanwhile."""
    seen: list[str] = []

    def look(*_: object, **__: object) -> None:
        seen.append(progress.line(5.0))

    monkeypatch.setattr(reading, "_read", look)
    monkeypatch.setattr(ns2, "run", look)
    reading.read("folder/run.pcap")
    measurement.run_engine(LONG)
    assert seen == ["reading run.pcap: 5 s", "running ns2: 5 s"]
    assert progress.line(5.0) == ""


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
@pytest.mark.parametrize("command", [False, True])
def test_a_command_without_a_terminal_says_once_that_it_compiles(
    kind: type[io.StringIO], command: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first command in a script printed nothing for a quarter of a minute."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_in_commands", [True] if command else [])
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    file = kind()
    monkeypatch.setattr(sys, "stderr", file)
    for _ in range(2):
        with progress.series() as under_way:
            under_way.compiling = lambda: True
            time.sleep(0.1)
    plain = "vegasmodel: compiling, only once after an install\n"
    assert file.getvalue().count(plain) == (command and kind is io.StringIO)
    if kind is io.StringIO:
        assert file.getvalue() == (plain if command else "")


def test_the_line_about_compiling_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEGASMODEL_PROGRESS", "no")
    monkeypatch.setattr(progress, "_in_commands", [True])
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with progress.series() as under_way:
        under_way.compiling = lambda: True
        time.sleep(0.1)
    assert not file.getvalue()
