"""TCP Vegas: the source keeps between alpha and beta of its own packets in the queue."""

import math

import numpy as np

from vegasmodel.laws.law import Law, Source
from vegasmodel.laws.packets import (
    NEVER,
    SLACK,
    PacketRules,
    Round,
    Window,
    cwnd_packets,
    keeps_up,
)

SUMMED_SINGLY = 32.0  # ACKs of a stretch whose increments are added one by one, at most


# Vegas's rule for its window W (equation (1) of the paper boutremans): W grows by one packet per
# RTT while Diff < alpha, and shrinks by one packet per RTT while Diff > beta. Otherwise W does not
# change. Diff is Vegas's estimate of its backlog, the number of its own packets in the queue:
# Diff = W (RTT - baseRTT)/RTT. Linux divides by baseRTT, not by RTT.
def drift(f: Source) -> float:
    """Change of the window in congestion avoidance, in packets per round trip: 1, 0 or -1.

    It is 1 at a backlog below alpha, -1 at a backlog above beta, and 0 between them.
    """
    if f.backlog < f.alpha:
        return 1.0
    return -1.0 if f.backlog > f.beta else 0.0


def acks_to_change(f: Window) -> float:
    """The number of ACKs after which the window reaches its next whole packet.

    Each ACK adds ``f.growth`` packets, which Vegas decided at the end of the last round trip.  The
    result is ``NEVER`` if the window does not grow.
    """
    if f.growth <= 0.0:
        return NEVER
    acks: float = max(1.0, np.ceil((cwnd_packets(f) + 1.0 - f.cwnd) / f.growth - SLACK))
    return acks


def upon_acks(f: Window, acks: float) -> None:
    """Move the window when ACKs arrive, by the growth per ACK that the last round trip decided."""
    if f.growth == 1.0 and f.ssthresh < 1e9:
        f.growth = 0.0  # slow start is over before the round is
    if f.growth != 0.0 and keeps_up(f, acks):
        add(f, acks)
        if f.growth < 0.0:
            f.cwnd = max(f.cwnd, 2.0)


def add(f: Window, acks: float) -> None:
    """Add the growth per ACK to the window for ``acks`` ACKs.

    ns-2 adds the growth ACK by ACK, so its window may have rounding errors: a sum of W increments
    1/W may stay below 1, and the window then reaches the next packet one ACK later.  For a sender
    with ``plain_sums`` this function, too, adds ACK by ACK, unless there are more than
    ``SUMMED_SINGLY`` ACKs.  In all other cases it adds ``acks`` times the growth at once.
    """
    if not f.plain_sums or acks > SUMMED_SINGLY:
        f.cwnd += acks * f.growth
        return
    for _ in range(int(acks)):
        f.cwnd += f.growth


def upon_round(f: Window, over: Round) -> None:
    """Decide at the end of a round trip how the window moves in the next one.

    ns-2 decides by the mean RTT of the round trip, Linux by the smallest.
    """
    if f.whole_window:
        if over.opens:
            decide_whole(f, over.acked)
        return
    if over.rtt <= 0.0:
        return
    if math.isnan(f.known_base):
        if not f.resets_base:  # the least RTT seen, and only a sample is one
            f.base = min(f.base, over.rtt) if f.rtt_count > 0.0 else f.base
        elif over.rtt < f.base or over.length <= 1.0:
            f.base = over.rtt
    else:
        f.base = f.known_base
    diff = over.outstanding - over.length * f.base / over.rtt
    decide(f, diff, diff if over.exact else np.trunc(diff + 0.5))


def decide(f: Window, diff: float, delta: float) -> None:
    """Decide how far each ACK of the next round trip moves the window, as in ns-2 or the papers.

    ``diff`` is the backlog, and ``delta`` the backlog rounded to whole packets.  ns-2 compares
    ``delta`` with the thresholds.  The papers' Vegas compares ``diff``.
    """
    if f.cwnd < f.ssthresh:  # slow start: doubles every other round
        f.grow_next = 1 - f.grow_next
        if f.grow_next == 0:
            f.growth = 0.0
        elif delta > f.gamma:
            f.ssthresh = 2.0
            f.cwnd = max(f.cwnd - f.cwnd / 8.0, 2.0)
            f.growth = 0.0
        else:
            f.growth = 1.0
    elif f.real_numbers:  # boutremans (1): one packet a round, up or down
        f.growth = 1.0 / f.cwnd if diff < f.alpha else (-1.0 / f.cwnd if diff > f.beta else 0.0)
    elif delta > f.beta:
        f.cwnd = max(f.cwnd - 1.0, 2.0)
        f.growth = 0.0
    else:
        f.growth = 1.0 / f.cwnd if delta < f.alpha else 0.0


def count_acked(f: Window, packets: float, acked: float) -> None:
    """Count ``acked`` packets towards the next packet of the window, as Linux does for Reno.

    ``packets`` is the window.  Whenever the count reaches the window, the window grows by one
    packet and the count begins anew.
    """
    if f.cwnd_cnt >= packets:  # from a larger window
        f.cwnd_cnt = 0.0
        f.cwnd += 1.0
    f.cwnd_cnt += acked
    more = np.floor(f.cwnd_cnt / packets)
    f.cwnd_cnt -= more * packets
    f.cwnd += more


def decide_whole(f: Window, acked: float) -> None:
    """Move the window at the end of a round trip by whole packets, as Linux's Vegas does.

    The decision follows from the smallest RTT of the round trip. In slow start, a backlog above
    gamma ends slow start, and the window shrinks to what the link can carry without a queue. If the
    round trip has at most two RTT samples, the window grows like Reno's instead: then the ``acked``
    packets that the present ACK acknowledges count towards the next packet of the window.
    """
    packets = cwnd_packets(f)
    if f.rtt_count <= 2.0:  # too few samples: like Reno
        if f.cwnd >= f.ssthresh:
            count_acked(f, packets, acked)
        return
    # integers: microseconds, one added so that none is 0; it settles the many ties at rest
    rtt, base = np.floor(f.rtt_min * 1e6 + SLACK) + 1.0, np.floor(f.base * 1e6 + SLACK) + 1.0
    diff = np.floor(packets * (rtt - base) / base)
    if f.cwnd < f.ssthresh:
        if diff > f.gamma:
            f.cwnd = min(packets, np.floor(packets * base / rtt) + 1.0)
            f.ssthresh = max(min(f.ssthresh, f.cwnd - 1.0), 2.0)
    elif diff > f.beta:
        f.cwnd = packets - 1.0
        f.ssthresh = max(min(f.ssthresh, f.cwnd - 1.0), 2.0)
    elif diff < f.alpha:
        f.cwnd = packets + 1.0
    f.cwnd = max(f.cwnd, 2.0)


def upon_each(f: Window, exact: bool) -> None:
    """Decide at every ACK, by the last RTT, by how much each further ACK moves the window.

    The real Vegas of ns-2 decides once per round trip.  Runs with this function instead show how
    much that matters.
    """
    if f.cwnd < f.ssthresh or f.base > 1e9:
        return
    diff = f.cwnd * (1.0 - f.base / f.rtt_last)
    delta = diff if exact else np.trunc(diff + 0.5)
    f.growth = 1.0 / f.cwnd if delta < f.alpha else (-1.0 / f.cwnd if delta > f.beta else 0.0)


LAW = Law(
    "vegas",
    drift,
    0.75,
    per_ack="thresholds",
    packets=PacketRules(acks_to_change, upon_acks, upon_round, upon_each),
    once_a_round=True,
    delay_based=True,
    overdue_checks=True,  # Brakmo and Peterson 1995, 3.1
    slow_start="gamma",
    recovery="hole by hole",
)
