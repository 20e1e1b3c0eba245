"""Shows the progress of a long simulation on a terminal or in Jupyter, in simulated seconds.

The progress is one line of text. The simulator is compiled code, which cannot print. It writes the
simulated time to an array; another thread reads the time there and prints the line.

If a prediction is the mean of several runs, the line shows the simulated seconds of all runs
together, and the total for all runs that are needed. This total grows if the mean turns out to need
more runs. If many scenarios are simulated at once (``counting``), the line shows the number of
scenarios instead.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO

PATIENCE = 1.0  # s: a shorter computation shows no progress
INTERVAL = 0.25  # s between two updates of the line
# the text on how often the simulator is compiled, if its machine code cannot be kept on disk
COMPILED_EACH_TIME = "again each time, as no folder for the result is writable (NUMBA_CACHE_DIR)"
SWITCH = "VEGASMODEL_PROGRESS"  # if this environment variable is "no", nothing is shown


def _compiling() -> bool:
    """Whether Numba is compiling a simulator at this moment; False before Numba is loaded."""
    module = sys.modules.get("vegasmodel.support.machine_code")
    return module is not None and bool(module.compiling())


def _compiling_a_law() -> bool:
    """Whether Numba is compiling a function of a user's law, whose machine code is never kept."""
    module = sys.modules.get("vegasmodel.support.machine_code")
    return module is not None and bool(module.compiling_a_law())


def _kept() -> bool:
    """Whether the machine code of the simulators is kept for the next process."""
    module = sys.modules.get("vegasmodel.support.machine_code")
    return module is None or bool(module.kept())


class Series:
    """Successive runs of a simulator; the mean of their results is one prediction.

    ``wanted`` is the number of runs that the mean needs.  It grows if more turn out to be needed.
    ``doing`` is the text of the progress line before the first run begins.
    """

    def __init__(self, doing: str = "preparing the first run") -> None:
        """Begin with one run wanted, and none begun; ``running`` sets the other attributes."""
        self.doing = doing
        self.wanted = 1
        self.length = 0.0  # simulated seconds of the present run, and of those to come
        self.ended_runs = 0
        self.seconds_before = 0.0  # simulated seconds of the ended runs
        self.clock: Callable[[], float] | None = None  # of the present run
        self.compiling: Callable[[], bool] = _compiling

    @property
    def simulated(self) -> float:
        """The number of seconds simulated so far, all runs of the series added up."""
        return self.seconds_before + (self.clock() if self.clock else 0.0)

    @property
    def total(self) -> float:
        """The number of seconds to simulate in all needed runs, as far as is known yet."""
        # the present run counts even if all wanted runs are over, as a search may make more runs
        present = 0 if self.clock is None else 1
        return self.seconds_before + max(self.wanted - self.ended_runs, present) * self.length


class Count(Series):
    """Counts scenarios that are simulated side by side: ``done`` of ``number`` are finished."""

    def __init__(self, number: int, done: int) -> None:
        super().__init__()
        self.number, self.done = number, done


_in_commands: list[bool] = []  # one entry if this process is a command
_series: list[Series] = []  # of the ``with`` blocks that run now, the innermost last
_hidden: list[bool] = []  # one entry for each ``with hidden()`` block that runs now


@contextmanager
def series(doing: str = "preparing the first run") -> Iterator[Series]:
    """Report all simulator runs that are started inside the ``with`` block by one progress line.

    This suits several runs whose results are averaged into one prediction.  Before the first run
    begins, the line has the text ``doing``, or says that the simulator is being compiled.

    The line is written on standard error, if that is a terminal or the output of a Jupyter
    notebook. Only the main thread has a line, because the lines of several threads would mix.
    """
    made = Series(doing)
    with _with_line(made):
        yield made


@contextmanager
def counting(number: int, done: int = 0) -> Iterator[Count]:
    """Show how many of ``number`` scenarios are finished, while the ``with`` block runs.

    The block gets a ``Count``. Its attribute ``done`` begins at the argument ``done``, and the
    caller increases it by 1 for each scenario that is finished. Simulator runs inside the block, on
    any thread, show no progress line of their own.
    """
    made = Count(number, done)
    with _with_line(made):
        yield made


@contextmanager
def _with_line(made: Series) -> Iterator[None]:
    """Show the line of ``made`` while the ``with`` block runs, unless another line is shown."""
    alone = not _series and threading.current_thread() is threading.main_thread()
    _series.append(made)
    try:
        with _shown_during_block(sys.stderr) if alone else nullcontext():
            yield
    finally:
        _series.remove(made)


def _shown_during_block(file: IO[str] | None) -> AbstractContextManager[None]:
    """What to show on ``file`` during a computation: a progress line, one plain line, or nothing.

    A command whose standard error is no terminal, as in a script, has no progress line. It prints
    one line if a simulator is being compiled, because the user may wonder why nothing happens.
    """
    if file is None:
        return nullcontext()
    if _read_live(file):
        return _progress_line(file)
    plain = _in_commands and not _hidden and not file.isatty() and os.environ.get(SWITCH) != "no"
    return _one_line_on_compiling(file) if plain else nullcontext()


def of_a_command() -> None:
    """Tell this module that the process is a command, and not a program that uses the package."""
    _in_commands.append(True)


@contextmanager
def running(
    clock: Callable[[], float], length: float, compiling: Callable[[], bool]
) -> Iterator[None]:
    """Report the progress of a simulator's run, which lasts as long as the ``with`` block.

    ``clock()`` returns the seconds simulated so far, out of ``length``.  ``compiling()`` returns
    whether Numba is compiling the simulator at this moment.  The run belongs to the innermost
    ``Series``, whose progress line shows it.  If there is none, the run is a series of its own.
    """
    if not _series:
        with series(), running(clock, length, compiling):
            yield
        return
    innermost = _series[-1]
    innermost.clock, innermost.length, innermost.compiling = clock, length, compiling
    try:
        yield
    finally:
        innermost.clock = None  # no run at present
        innermost.ended_runs += 1
        innermost.seconds_before += length


def line(seconds: float) -> str:
    """The present text of the progress line.

    A progress line is shown during a ``with`` block of ``series`` or ``counting``.  ``seconds`` is
    the real time since this block began.  The text is empty in the first second (``PATIENCE``), and
    if there is no such block.
    """
    if seconds < PATIENCE or not _series:
        return ""
    innermost = _series[-1]
    for each in _series:
        if isinstance(each, Count):
            return f"computed {each.done} of {each.number} scenarios: {seconds:.0f} s"
    if innermost.compiling():
        return f"{_compiling_text()}: {seconds:.0f} s"
    if not innermost.length:
        return f"{innermost.doing}: {seconds:.0f} s"
    runs = f" in {innermost.wanted} runs" if innermost.wanted > 1 else ""
    return f"simulated {innermost.simulated:.0f} of {innermost.total:.0f} s{runs}: {seconds:.0f} s"


def _compiling_text() -> str:
    """A text that says how often the simulator, or a user's law, is compiled."""
    if _compiling_a_law():
        return "compiling a law of your own, once in each process"
    return f"compiling, {'only once after an install' if _kept() else COMPILED_EACH_TIME}"


def _read_live(file: IO[str] | None) -> bool:
    """Whether a user reads ``file`` as it is written and has not switched the progress line off."""
    if file is None or _hidden or os.environ.get(SWITCH) == "no":
        return False
    terminal = file.isatty() and os.environ.get("TERM") != "dumb"
    return terminal or type(file).__module__.startswith("ipykernel.")


@contextmanager
def hidden() -> Iterator[None]:
    """Show no progress line in the ``with`` block, because something else is shown there."""
    _hidden.append(True)
    try:
        yield
    finally:
        _hidden.pop()


@contextmanager
def _one_line_on_compiling(file: IO[str]) -> Iterator[None]:
    """Print one line on ``file`` if the ``with`` block compiles for over ``PATIENCE`` seconds.

    The line is printed only once in a process.
    """
    began, ended = time.monotonic(), threading.Event()

    def watch() -> None:
        """Look again and again until something is compiled or the block has ended."""
        while _in_commands and not ended.wait(INTERVAL):
            late = time.monotonic() - began >= PATIENCE
            if late and _series and _series[-1].compiling():
                _in_commands.clear()
                with suppress(OSError, ValueError):  # nobody reads the file
                    file.write(f"vegasmodel: {_compiling_text()}\n")
                    file.flush()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextmanager
def _progress_line(file: IO[str]) -> Iterator[None]:
    """Show the progress line on ``file`` while the ``with`` block runs; erase it at the end."""
    began, ended = time.monotonic(), threading.Event()

    def write() -> None:
        """Print the line again and again until the block has ended; then erase it."""
        before = ""
        while not ended.wait(INTERVAL):
            text = line(time.monotonic() - began)
            if text or before:
                file.write("\r" + text.ljust(len(before)))
                file.flush()
            before = text
        if before:
            file.write("\r" + " " * len(before) + "\r")
            file.flush()

    def attempt() -> None:
        """Call ``write``; if the terminal has gone, end this thread without an error."""
        with suppress(OSError, ValueError):
            write()

    writer = threading.Thread(target=attempt, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
