"""Shows the progress of a sweep on standard error: points done, points per second, time left.

Other long studies, such as ``basins``, show their progress in the same way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO

from vegasmodel.support import progress
from vegasmodel.support.progress import PATIENCE

__all__ = ["meter"]

SECONDS_BETWEEN_LINES = 30.0  # where the output is no terminal


@contextmanager
def meter(
    file: IO[str] | None = None, what: str = "points"
) -> Iterator[Callable[[int, int], None]]:
    """Yield a function ``report(done, total)``, by which a sweep reports its progress to the user.

    ``done`` is the number of points computed so far, and ``total`` the number of all points.  In
    the first call, ``done`` is the number of points that an earlier run has computed.  ``what`` is
    what is counted, in words.  The progress is shown in ``file``, by default standard error.  A
    terminal shows one line, which is updated four times a second and removed at the end.  Any other
    file gets a new line at most every ``SECONDS_BETWEEN_LINES`` seconds.
    """
    out = file or sys.stderr
    shown = _live(out, what) if out.isatty() else nullcontext(_Lines(out, what))
    # Single runs have a progress line of their own, which is hidden meanwhile.
    with progress.hidden(), shown as report:
        yield report


@contextmanager
def _live(terminal: IO[str], what: str) -> Iterator[_Lines]:
    """Show the progress in one line of a terminal, which is removed at the end.

    ``what`` is what is counted, such as "points".
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    report = _Lines(None, what)
    with Live(
        console=Console(file=terminal),
        get_renderable=lambda: Text(report.line()),
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield report


class _Lines:
    """Stores the last reported progress of a sweep, and writes it to ``out`` as lines of text.

    If ``out`` is ``None``, the progress is only stored.
    """

    def __init__(self, out: IO[str] | None, what: str) -> None:
        self.out, self.what = out, what
        now = time.monotonic()
        self.began = now  # when this run began to compute
        self.last_line = now  # when the last line was written; before the first line: the start
        self.before: int | None = None  # points that an earlier run has computed
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        """Store that ``done`` of ``total`` points are computed.

        Write this to ``out`` if at least ``SECONDS_BETWEEN_LINES`` seconds have passed since the
        last line (or since the start), unless all points are computed.
        """
        now = time.monotonic()
        if self.before is None:
            self.before, self.began = done, now
        self.done, self.total = done, total
        if self.out is None or now - self.last_line < SECONDS_BETWEEN_LINES or done == total:
            return
        if text := self.line():
            self.last_line = now
            self.out.write(f"vegasmodel: {text}\n")
            self.out.flush()

    def line(self) -> str:
        """The progress as text: points done, points per second, time left.

        It is empty until this run has computed a point and ``PATIENCE`` seconds have passed.
        """
        seconds = time.monotonic() - self.began
        if self.before is None or seconds < PATIENCE or self.done == self.before:
            return ""
        rate = (self.done - self.before) / seconds
        left = (self.total - self.done) / rate
        return f"{self.done} of {self.total} {self.what}, {rate:.3g}/s, {left:.0f} s left"
