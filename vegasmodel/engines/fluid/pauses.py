"""Runs a simulation of ``fluid`` in short pieces, so that Ctrl-C can stop it.

Python cannot react to Ctrl-C while compiled code runs. So the compiled main loops (``march.py``,
``sampled/march.py``) return to Python after each piece, which takes a fraction of a second to
compute. If the user has pressed Ctrl-C, Python then raises ``KeyboardInterrupt`` in the main
thread, and ``threads.check`` raises it in other threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from vegasmodel.status import Status
from vegasmodel.support import progress, threads

__all__ = ["PAUSE", "PAUSED", "running", "whole"]

PAUSE = 1 << 18  # steps and drops in a piece, times the number of flows: a fraction of a second
PAUSED = int(Status.PAUSED)  # a plain integer for Numba


def whole(march: Callable[..., int], *arguments: Any) -> int:
    """Call ``march`` until the simulation ends; returns the code that says why it ended.

    ``march`` takes the ``arguments`` and the length of a piece (``PAUSE``). It returns ``PAUSED``
    when it has only paused. It is then called again with the same ``arguments``; they contain the
    state from which it goes on.
    """
    code = PAUSED
    while code == PAUSED:
        threads.check()
        code = int(march(*arguments, PAUSE))
    return code


def running(clock: Callable[[], float], length: float) -> AbstractContextManager[None]:
    """A context manager that reports a run's progress; ``clock`` gives the seconds simulated."""
    from vegasmodel.support.machine_code import compiling  # the simulator has loaded it

    return progress.running(clock, length, compiling)
