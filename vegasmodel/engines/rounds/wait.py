"""Lets senders wait a random time before they send what an ACK allows (ns-2's ``overhead_``).

A wait begins when the window allows a packet and no other wait is in progress. The length of the
wait is random, uniform between 0 and ``Sender.jitter`` seconds. At the end of the wait the sender
sends all packets that the window then allows. (After a cut of its window, ns-2's CUBIC may send one
packet even if the window is full; see ``acks.limit_flight``.) A fast retransmit does not wait,
except with ns-2's CUBIC.

If the simulator processes several ACKs together, it neglects the waits: the packets that these ACKs
allow leave when the ACKs arrive. So the round trip is too short, on average by half of
``Sender.jitter``. The default of ``Sender.jitter`` is a packet's transmission time at the slowest
link. If the scenario sets longer waits (``waits_long``), the simulator processes each ACK
separately, so that the sender waits at each ACK.

The random wait of a Linux sender, which takes place below TCP, is simulated elsewhere
(``Sender.queue_wait``).

In the functions, ``f`` is the record of a sender, and ``holes`` is the table of the packets that
its receiver misses (``acks.add_hole``).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import limit_flight, send, sendable, whole_usable
from vegasmodel.engines.rounds.laws import outstanding, window
from vegasmodel.engines.rounds.repair import send_in_recovery
from vegasmodel.engines.rounds.scoreboard import forgotten, known_lost
from vegasmodel.engines.rounds.state import FIRST, FORGOTTEN, NOT_RESENT, RECOVERY, Sender, jit
from vegasmodel.engines.rounds.timer import arm
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _may_send(f: Sender, holes: Floats, free: float) -> bool:
    """Whether the sender would send a packet at the end of a random wait.

    ``free`` is the number of packets that it may send. ``holes`` has a row for each range of
    packets that the receiver misses. The result is False for Linux in a recovery, because Linux
    does not wait then.
    """
    sack_recovery = f.phase == RECOVERY and f.scoreboard  # it sends lost packets first
    if free < 1.0 or (sack_recovery and f.paced_recovery):
        return False
    if sack_recovery:
        for k in range(f.first_hole, f.holes):
            # a packet is known to be lost, and not sent again yet
            if max(holes[k, FIRST], holes[k, NOT_RESENT]) < known_lost(f, holes, k):
                return True
            # ns-2's CUBIC has forgotten that a packet has arrived, and will send it again
            if forgotten(f, holes, k) and holes[k, FORGOTTEN] < holes[k + 1, FIRST]:
                return True
    return sendable(f, free) >= 1.0


@jit
def begin_wait(f: Sender, holes: Floats, at: float) -> None:
    """Begin the sender's random wait (``overhead_`` in ns-2) at the time ``at``, in seconds.

    No wait begins if another one is in progress, or if there is no packet to send.
    """
    if f.wait_ends == NEVER and _may_send(f, holes, whole_usable(f, at)):
        f.wait_ends = at + f.jitter * np.random.random()


@jit
def end_wait(f: Sender, holes: Floats, now: float) -> None:
    """End the sender's random wait (``overhead_`` in ns-2) and send what the window now allows.

    After a cut of its window, ns-2's CUBIC may have up to ``flight_limit`` packets in flight
    (``acks.limit_flight``). A wait changes this limit or the window in three steps (save_from_linux
    and load_to_linux in tcp-linux.cc):

    - Before CUBIC sends, it stores the limit or its window, whichever is larger.
    - When it sends, the limit falls (``acks.note_flight``).
    - If the limit is still above the window, CUBIC sets the limit to the stored number, but at most
      to the number of packets in flight. Otherwise the window grows to the stored number, if that
      is larger.

    So after a cut CUBIC sends a packet at every ACK. Without waits it sends one at every second
    ACK.
    """
    f.time, f.wait_ends = max(now, f.wait_ends), NEVER
    stored = max(f.flight_limit, window(f))
    limit_flight(f)
    _send_after_wait(f, holes)
    if f.halves_rate and f.jitter > 0.0:  # ns-2's CUBIC, if its sender waits
        if f.flight_limit > window(f):
            f.flight_limit = min(stored, outstanding(f))
        else:
            f.cwnd = max(f.cwnd, stored)


@jit
def _send_after_wait(f: Sender, holes: Floats) -> None:
    """Send what the window allows at the time ``f.time``, at which a random wait has ended.

    If no packet is in flight, the retransmission timer is set anew for the packet that is sent (RFC
    6298, 5.1; ``output`` in tcp.cc). But ns-2's Vegas lets its timer run on. In a recovery with
    SACK, the sender may have more packets to send (``repair.send_lost_or_wait``). It then waits
    again.
    """
    free = whole_usable(f, f.time)
    if not _may_send(f, holes, free):
        return
    if f.acked >= f.high and not f.overdue_checks:
        arm(f, f.time)
    if f.phase == RECOVERY and f.scoreboard:
        before = f.pipe
        send_in_recovery(f, holes, free, 0.0)
        if _may_send(f, holes, whole_usable(f, f.time)):
            f.wait_ends = f.time + (f.pipe - before) * f.gap
    else:
        send(f, free, 0.0)
