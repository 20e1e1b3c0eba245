"""A long simulation says how far it is, on a terminal and nowhere else."""

from __future__ import annotations

import io
import threading
import time

import pytest

from vegasmodel import progress
from vegasmodel.engines.rounds import run as rounds
from vegasmodel.scenario import Scenario

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
    """)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_another_thread_can_read_how_far_a_run_is() -> None:
    seen: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.extend(done() for done in tuple(progress._runs))
            time.sleep(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        rounds.run(LONG)
    finally:
        over.set()
        watcher.join()
    assert seen == sorted(seen)
    assert any(0.0 < fraction < 1.0 for fraction in seen)
    assert seen[-1] <= 1.0
    assert not progress._runs


@pytest.mark.parametrize(
    ("done", "said"), [(0.0, "compiling"), (0.43, "43 % of this run"), (1.0, "100 %")]
)
def test_the_line_says_what_goes_on(done: float, said: str) -> None:
    assert progress.line(5.0) == ""
    with progress.running(lambda: done):
        assert said in progress.line(5.0)
        assert progress.line(0.5) == ""


def test_a_terminal_shows_it_and_a_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    for file, shows in ((Terminal(), True), (io.StringIO(), False)):
        with progress.shown(file), progress.running(lambda: 0.43):
            time.sleep(0.6)
        assert ("43 %" in file.getvalue()) is shows
