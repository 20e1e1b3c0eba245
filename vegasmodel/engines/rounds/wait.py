"""The sender's own wait before it uses a window that has opened (ns-2: ``overhead_``).

A timer begins where the window lets a packet go and none runs yet, and takes a uniform draw up to
``FLOW.jitter`` seconds.  When it is over, all that the window lets out by then goes together.
What a source sends again upon a third duplicate does not wait, nor does what Linux sends in a
recovery, which it paces itself.  Several ACKs that are taken as one stretch send evenly: their
waits even out.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import fresh, room, send
from vegasmodel.engines.rounds.losses import send_in_recovery
from vegasmodel.engines.rounds.state import RECOVERY, Sender, jit
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _ready(f: Sender, holes: Floats, now: float) -> bool:
    """The window lets a packet go that the sender has."""
    mends = f.phase == RECOVERY and f.scoreboard
    free = np.floor(room(f, now) + 1e-9)
    if free < 1.0 or (mends and f.paced_recovery):
        return False
    if mends:
        for k in range(f.holes):
            if max(holes[k, 0], holes[k, 5]) < holes[k, 1] < f.received:
                return True
    return fresh(f, free) >= 1.0


@jit
def begin_wait(f: Sender, holes: Floats, at: float) -> None:
    """If a packet may go at ``at`` and the timer does not run, it begins."""
    if f.wait_ends == NEVER and _ready(f, holes, at):
        f.wait_ends = at + f.jitter * np.random.random()


@jit
def depart(f: Sender, holes: Floats, now: float) -> None:
    """The flow's next stretch is the end of its wait."""
    f.time, f.wait_ends = max(now, f.wait_ends), NEVER
    if not _ready(f, holes, f.time):
        return
    free = np.floor(room(f, f.time) + 1e-9)
    if f.phase == RECOVERY and f.scoreboard:
        send_in_recovery(f, holes, free, 0.0)
    else:
        send(f, free, 0.0)
    if _ready(f, holes, f.time):  # the rest of several holes follows at once
        f.wait_ends = f.time
