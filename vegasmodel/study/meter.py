"""How far a sweep is, at what rate, and how long it will take: on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["meter"]

PATIENCE = 1.0  # s before a terminal shows anything
PACE = 30.0  # s between lines where there is no terminal


@contextmanager
def meter(file: IO[str] | None = None) -> Iterator[Callable[[int, int], None]]:
    """What to call with the points done and the points in all."""
    out = file or sys.stderr
    if not out.isatty():
        yield _Lines(out)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    said = _Lines(None)
    with Live(
        console=Console(file=out),
        get_renderable=lambda: Text(said.line()),
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield said


class _Lines:
    """Counts points; says so in lines of its own, if it has somewhere to write."""

    def __init__(self, out: IO[str] | None) -> None:
        self.out = out
        self.began = self.told = time.monotonic()
        self.before: int | None = None  # points that an earlier run has done
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        """So many points are done, of so many."""
        now = time.monotonic()
        if self.before is None:
            self.before, self.began = done, now
        self.done, self.total = done, total
        if self.out is None or now - self.told < PACE or done == total:
            return
        if text := self.line():
            self.told = now
            self.out.write(f"vegasmodel: {text}\n")
            self.out.flush()

    def line(self) -> str:
        """Points done, their rate, the time left; empty while there is nothing to say."""
        seconds = time.monotonic() - self.began
        if self.before is None or seconds < PATIENCE or self.done == self.before:
            return ""
        rate = (self.done - self.before) / seconds
        left = (self.total - self.done) / rate
        return f"{self.done} of {self.total} points, {rate:.3g}/s, {left:.0f} s left"
