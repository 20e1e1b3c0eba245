"""Records the arguments for which a function of a user's law returned an unusable number.

Users may write their own congestion control laws: functions that say how the window grows, and
what a loss does to it. The simulators call these functions in compiled code, which cannot raise
errors. Instead, each function has a ``Record``. If a call returns an unusable number, such as NaN,
the record stores the arguments of this call. Only the first such call in a run is stored. After the
run the simulator reads the record and raises the error. Several runs may proceed at the same time
on several threads, so a record has one row per thread.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from vegasmodel.fields.errors import FieldError

# Rows of a ``Record``'s table, one for each thread that may run at the same time: 10 000 is the
# greatest number of threads that a user may ask for, and the main thread comes in addition.
ROWS = 10_001


class LawFault(FieldError):  # noqa: N818 - the name says it
    """Raised if a user's congestion control cannot be compiled, or returns an unusable number.

    ``predict`` turns this error into a prediction with ``applicable=False``.
    """

    @classmethod
    def of_error(cls, error: FieldError) -> LawFault:
        """The error as a ``LawFault`` with the same field, value and message."""
        return cls(error.field, error.value, error.allowed, wrong=error.wrong)


class Record:
    """The first fault of a congestion control's function in the present run of each thread.

    A fault is a call with an unusable result, such as NaN. ``table`` [thread, 1 + n] has one row
    per thread. The first entry is the thread's number, or 0 if the row is free. The other ``n``
    entries are the numbers with which the function was called; they are NaN if there is no fault.
    """

    def __init__(self, n: int) -> None:
        self.table = np.zeros((ROWS, 1 + n))
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Begin a run on the present thread, so the fault of its previous run is deleted."""
        with self._lock:
            owners = self.table[:, 0]
            usable = owners == threading.get_ident()  # the row of this thread
            if not usable.any():  # or a free row, or that of a thread that has ended
                alive = [thread.ident for thread in threading.enumerate()]
                usable = ~np.isin(owners, np.array(alive, np.float64))
            row = usable.argmax()
            self.table[row, 1:] = math.nan
            owners[row] = threading.get_ident()

    def fault(self) -> list[float] | None:
        """The arguments of the first call with an unusable result in this thread's run, or None."""
        arguments = self.table[self.table[:, 0] == threading.get_ident(), 1:]
        return None if np.isnan(arguments).all() else arguments[0].tolist()
