"""The sender's random wait before it sends the packets that an ACK allows (``overhead_`` in ns-2).

A wait begins when the window allows a packet and no other wait is in progress. Its length is
random, uniform between 0 and ``Sender.jitter`` seconds. At its end the sender sends all packets
that the window then allows. Two kinds of packets do not wait: a fast retransmit, and packets that
Linux sends during a recovery, because Linux paces them. If the simulator handles several ACKs as
one group, there is no wait, because the waits of many ACKs would average out.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import send, sendable, usable_window
from vegasmodel.engines.rounds.losses import send_in_recovery
from vegasmodel.engines.rounds.state import RECOVERY, Sender, jit
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _may_send(f: Sender, holes: Floats, now: float) -> bool:
    """Whether the window allows a packet to leave and the sender has a packet to send."""
    mends = f.phase == RECOVERY and f.scoreboard
    free = np.floor(usable_window(f, now) + 1e-9)
    if free < 1.0 or (mends and f.paced_recovery):
        return False
    if mends:
        for k in range(f.holes):
            if max(holes[k, 0], holes[k, 5]) < holes[k, 1] < f.received:
                return True
    return sendable(f, free) >= 1.0


@jit
def begin_wait(f: Sender, holes: Floats, at: float) -> None:
    """Begin the sender's random wait at time ``at``.

    No wait begins if one is in progress already, or if no packet may leave.
    """
    if f.wait_ends == NEVER and _may_send(f, holes, at):
        f.wait_ends = at + f.jitter * np.random.random()


@jit
def end_wait(f: Sender, holes: Floats, now: float) -> None:
    """End the sender's random wait and send the packets that the window allows at that time."""
    f.time, f.wait_ends = max(now, f.wait_ends), NEVER
    if not _may_send(f, holes, f.time):
        return
    free = np.floor(usable_window(f, f.time) + 1e-9)
    if f.phase == RECOVERY and f.scoreboard:
        send_in_recovery(f, holes, free, 0.0)
        if _may_send(f, holes, f.time):  # the rest of several holes follows at once
            f.wait_ends = f.time
    else:
        send(f, free, 0.0)
