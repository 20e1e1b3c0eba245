"""The sender's random wait before it sends the packets that an ACK allows (``overhead_`` in ns-2).

A wait begins when the window allows a packet and no other wait is in progress. Its length is
random, uniform between 0 and ``Sender.jitter`` seconds. At its end the sender sends all packets
that the window then allows. (ns-2's CUBIC sends only one while it reduces its rate.) A fast
retransmit does not wait.

Two other random waits are simulated elsewhere: that of a Linux sender, which takes place below TCP
(``Sender.queue_wait``), and that of a sender whose delay has noise (``Sender.noise_wait``).

If the simulator processes several ACKs together, the packets that they allow do not wait, because
the waits of many ACKs average out. But long waits, during which several ACKs can arrive, do not
average out. For a sender with long waits (``waits_long``) the simulator therefore processes each
ACK separately.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import numpy as np

from vegasmodel.engines.rounds.acks import send, sendable, usable_window
from vegasmodel.engines.rounds.laws import in_cwr, outstanding, window
from vegasmodel.engines.rounds.losses import forgotten, send_in_recovery
from vegasmodel.engines.rounds.state import RECOVERY, Sender, jit
from vegasmodel.laws.packets import NEVER
from vegasmodel.metrics import Floats


@jit
def _halving(f: Sender, now: float) -> bool:
    """Whether ns-2's CUBIC, which halves its rate after a cut, may now send no packet by its window.

    The function ``_free`` then lets it send one packet for each second ACK. The result is False for
    other senders. It is also False if the sender is neither in recovery nor reducing its window, or
    in a recovery without a scoreboard.
    """
    if not f.halves_rate or now >= f.stop:
        return False
    if f.phase == RECOVERY:
        return f.scoreboard and f.pipe >= window(f)
    return in_cwr(f) and usable_window(f, now) < 1.0


@jit
def _free(f: Sender, now: float) -> float:
    """How many packets the sender may send at the end of a wait.

    Usually this is the usable window. While ns-2's CUBIC reduces its rate, it is one packet if an
    ACK has arrived since the last wait, and otherwise none. It is none, too, while as many packets
    are in flight as the window before the cut allowed. If waits are shorter than the time between
    two ACKs, each ACK begins a wait of its own and so allows one packet. In this case CUBIC's rate
    is not halved (tcp-linux.cc: the timer of each wait restores ``next_pkts_in_flight_``).
    """
    if _halving(f, now):
        capped = f.phase == RECOVERY and f.pipe >= f.recover_in_flight
        return 1.0 if f.prr_delivered > f.prr_out and not capped else 0.0
    return np.floor(usable_window(f, now) + 1e-9)


@jit
def _may_send(f: Sender, holes: Floats, free: float) -> bool:
    """Whether the sender has a packet to send, if it may send ``free`` packets."""
    mends = f.phase == RECOVERY and f.scoreboard
    if free < 1.0 or (mends and f.paced_recovery):
        return False
    if mends:
        for k in range(f.holes):
            if max(holes[k, 0], holes[k, 5]) < holes[k, 1] < f.received:
                return True
            if forgotten(f, holes, k) and holes[k, 4] < holes[k + 1, 0]:
                return True
    return sendable(f, free) >= 1.0


@jit
def begin_wait(f: Sender, holes: Floats, at: float) -> None:
    """Begin the sender's random wait at time ``at``.

    No wait begins if one is in progress already, or if no packet may leave.
    """
    if f.wait_ends == NEVER and _may_send(f, holes, _free(f, at)):
        f.wait_ends = at + f.jitter * np.random.random()
        f.flight_limit = outstanding(f) + 1.0 if _halving(f, at) else 0.0


@jit
def end_wait(f: Sender, holes: Floats, now: float) -> None:
    """End the sender's random wait and send the packets that the window now allows.

    If ns-2's CUBIC was reducing its rate when the wait began, ``flight_limit`` is the number of
    packets that were then in flight, plus one. At the end of such a wait the window grows to
    ``flight_limit`` if it is smaller. It does not grow if the packets in flight, less the one just
    sent, are more than the window (tcp-linux.cc: load_to_linux).
    """
    f.time, f.wait_ends = max(now, f.wait_ends), NEVER
    free = _free(f, f.time)
    if not _may_send(f, holes, free):
        return
    if f.phase == RECOVERY and f.scoreboard:
        send_in_recovery(f, holes, free, 0.0)
    else:
        send(f, free, 0.0)
    if f.flight_limit > 0.0:
        f.prr_out = f.prr_delivered
        if outstanding(f) - 1.0 <= window(f):
            f.cwnd = max(f.cwnd, f.flight_limit)
    elif f.phase == RECOVERY and f.scoreboard and _may_send(f, holes, _free(f, f.time)):
        f.wait_ends = f.time  # the rest of several holes follows at once
