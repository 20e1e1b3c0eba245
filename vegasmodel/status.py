"""Defines how a solver or a simulator may end, as numbers with names such as ``DONE``.

``PENDING`` says that the solver or simulator is still at work.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Status"]


class Status(IntEnum):
    """How a solver or a simulator ended; the property ``reason`` says it in words.

    ``PENDING`` says that it has not ended yet. In arrays, a status is stored as its number.

    The result of a solver is valid if the status is ``DONE``.  If it is ``INACCURATE``, there is a
    result, but it does not pass its own check.  With any other status the result is NaN.  There is
    one exception: a solver that follows a branch of equilibria always returns the points that it
    has found.
    """

    PENDING = -1
    DONE = 0
    # solvers of a steady state
    NOT_CONVERGED = 1
    INVALID = 2  # a value is out of its range
    ILL_CONDITIONED = 3  # the inputs are too inexact for the promised number of digits
    UNDEFINED = 4  # there is no such cycle, or its equations were not solved
    INACCURATE = 11
    # a solver that follows a branch of equilibria while a parameter changes
    LEFT_RANGE = 12  # the parameter reached an end of its range
    POINTS_USED_UP = 13  # the branch has as many points as were asked for
    LOST = 14  # no next point of the branch was found
    # the simulator ``fluid``
    OVERFLOW = 5  # the buffer overflowed, and the caller asked to stop there
    STUCK = 6  # the buffer overflows although no window can shrink further
    UNSETTLED = 7  # the windows did not settle
    # the simulator ``rounds``; ``fluid`` has the last three, too
    STALLED = 16  # a sender has data left, but waits for nothing: a fault of the simulator
    NOT_A_NUMBER = 17  # a count is NaN: a fault of the simulator
    FULL_RING = 8  # too many packets are under way for the ring buffers that store them
    TOO_MANY_EVENTS = 9
    FALL = 10  # a congestion window fell by a packet or more, and the caller asked to stop there
    PAUSED = 15  # one call simulates a limited number of events or steps; the next call goes on

    @property
    def reason(self) -> str:
        """Words that say how the solver or the simulator ended."""
        return _REASONS[self]


_REASONS = {  # the texts of the property ``reason``
    Status.PENDING: "it is under way",
    Status.DONE: "done",
    Status.NOT_CONVERGED: "it did not converge",
    Status.INVALID: "a value is out of its range",
    Status.ILL_CONDITIONED: "the inputs are too inexact for the promised number of digits",
    Status.UNDEFINED: "there is no such cycle, or its equations were not solved",
    Status.INACCURATE: "the result does not satisfy the equations well enough",
    Status.LEFT_RANGE: "the parameter reached an end of its range",
    Status.POINTS_USED_UP: "the branch has as many points as were asked for",
    Status.LOST: "no next point of the branch was found",
    Status.OVERFLOW: "it stopped at the first overflow of the buffer, as the caller asked",
    Status.STUCK: "the buffer overflows although no window can shrink further",
    Status.UNSETTLED: "the windows did not settle in the time allowed",
    Status.STALLED: "a sender has data left, but waits for nothing (a fault of the simulator)",
    Status.NOT_A_NUMBER: "a count is not a number (a fault of the simulator)",
    Status.FULL_RING: (
        "more packets are under way than the simulator has room for; a smaller buffer, a smaller "
        "max_window or a shorter run has fewer"
    ),
    Status.TOO_MANY_EVENTS: "too many events",
    Status.FALL: "it stopped at the first fall of a window, as the caller asked",
    Status.PAUSED: "it has paused, to go on at once",
}
