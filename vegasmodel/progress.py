"""How far a long simulation is: the engine says it, a terminal shows it.

The engine's compiled loop lets other threads run, and its clock stands in an array that they can
read: so nothing is asked of it while it works.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

PATIENCE = 1.0  # s before anything is shown
_runs: list[Callable[[], float]] = []  # what is done of each run under way


@contextmanager
def running(done: Callable[[], float]) -> Iterator[None]:
    """An engine's run; ``done()`` is the fraction simulated, 0 until its code is compiled."""
    _runs.append(done)
    try:
        yield
    finally:
        _runs.remove(done)


def line(seconds: float) -> str:
    """The line to show after so many seconds; empty while there is nothing to say."""
    done = _runs[-1]() if _runs else None
    if seconds < PATIENCE or done is None:
        return ""
    if done == 0.0:
        return f"compiling, once after an install (15 to 45 s): {seconds:.0f} s"
    return f"simulating, {100.0 * done:.0f} % of this run: {seconds:.0f} s"


@contextmanager
def shown(file: IO[str] | None = None) -> Iterator[None]:
    """While the body runs, a line about it on standard error (``file``), if that is a terminal."""
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
