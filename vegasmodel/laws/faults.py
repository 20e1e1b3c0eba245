"""Keeps the faults of laws: what a law's function saw when it returned an unusable number.

The simulators call a law's functions in compiled code, which cannot raise errors. A function writes
its first fault into its record, and the simulator looks there after its run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_records: list[NDArray[np.float64]] = []
_lock = threading.Lock()
_answers = 0  # number of answers that are being computed


def record(size: int) -> NDArray[np.float64]:
    """A new record of ``size`` numbers for a law's function; all are NaN (no fault yet)."""
    _records.append(np.full(size, np.nan))
    return _records[-1]


@contextmanager
def judged_anew() -> Iterator[None]:
    """Compute an answer in this context, so that faults in earlier answers do not count.

    The records are cleared when the context begins. They are not cleared while another answer is
    being computed on another thread, because they may hold a fault of that answer.
    """
    global _answers  # noqa: PLW0603 - a count of this process
    with _lock:
        if _answers == 0:
            for each in _records:
                each[:] = np.nan
        _answers += 1
    try:
        yield
    finally:
        with _lock:
            _answers -= 1
