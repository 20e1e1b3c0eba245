"""Shows the progress of a long simulation on a terminal, in simulated seconds.

The simulator is compiled code. It writes the simulated time to an array, and another thread reads
the time there.

If a prediction is the mean of several runs, the simulated seconds of all runs are added up. If more
runs turn out to be needed, the total that is shown grows, and the number of runs with it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

PATIENCE = 1.0  # s before anything is shown


class Series:
    """Successive runs of a simulator; the mean of their results is one prediction.

    ``wanted`` is the number of runs that the mean needs.  It grows if more turn out to be needed.
    """

    def __init__(self) -> None:
        self.wanted = 1
        self.length = 0.0  # simulated seconds of the present run, and of those to come
        self.ended = 0  # number of the runs that are over
        self.over = 0.0  # simulated seconds of these
        self.clock: Callable[[], float] | None = None  # of the present run
        self.compiling: Callable[[], bool] = lambda: False

    @property
    def simulated(self) -> float:
        """The number of seconds simulated so far, all runs of the series added up."""
        return self.over + (self.clock() if self.clock else 0.0)

    @property
    def total(self) -> float:
        """The number of seconds to simulate in all needed runs, as far as is known yet."""
        return self.over + max(self.wanted - self.ended, 0) * self.length


_series: list[Series] = []


@contextmanager
def series() -> Iterator[Series]:
    """Report all simulator runs that are started inside the ``with`` block by one progress line.

    This suits several runs whose results are averaged into one prediction.
    """
    made = Series()
    _series.append(made)
    try:
        yield made
    finally:
        _series.remove(made)


@contextmanager
def running(
    clock: Callable[[], float], length: float, compiling: Callable[[], bool]
) -> Iterator[None]:
    """Report the progress of a simulator's run, which lasts as long as the ``with`` block.

    ``clock()`` returns the seconds simulated so far, out of ``length``.  ``compiling()`` returns
    whether Numba is compiling the simulator at this moment.
    """
    if not _series:
        with series(), running(clock, length, compiling):
            yield
        return
    mine = _series[-1]
    mine.clock, mine.length, mine.compiling = clock, length, compiling
    try:
        yield
    finally:
        mine.clock, mine.ended, mine.over = None, mine.ended + 1, mine.over + length


def line(seconds: float) -> str:
    """The text of the progress line.

    ``seconds`` is the real time since the ``with`` block of ``shown`` began.  The text is empty in
    the first second (``PATIENCE``), and while no run is under way.
    """
    if seconds < PATIENCE or not _series:
        return ""
    now = _series[-1]
    if now.compiling():
        return f"compiling, once after an install (about 10 s): {seconds:.0f} s"
    if not now.length:  # the first run is being prepared
        return ""
    runs = f" in {now.wanted} runs" if now.wanted > 1 else ""
    return f"simulated {now.simulated:.0f} of {now.total:.0f} s{runs}: {seconds:.0f} s"


@contextmanager
def shown(file: IO[str] | None = None) -> Iterator[None]:
    """Show the progress of simulations on a terminal while the ``with`` block runs.

    The line is written to ``file`` (default: standard error), but only if ``file`` is a terminal.
    """
    out = file or sys.stderr
    if not out.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    began = time.monotonic()
    with Live(
        console=Console(file=out),
        get_renderable=lambda: Text(line(time.monotonic() - began)),
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield
