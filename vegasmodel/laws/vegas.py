"""TCP Vegas: the source keeps between alpha and beta of its own packets in the queue."""

import math

import numpy as np

from vegasmodel.laws.law import Law
from vegasmodel.laws.packets import (
    NEVER,
    SLACK,
    PacketRules,
    Round,
    Window,
    count_acked,
    cwnd_packets,
    keeps_up,
)
from vegasmodel.laws.source import Source

PART_KEPT = 7.0 / 8.0  # part of its window that Vegas keeps when slow start ends
LEAST_WINDOW = 2.0  # packets, the least window after a reduction
SUMMED_SINGLY = 32.0  # greatest number of ACKs whose increments are added one by one (``add``)


# Vegas's rule for its window W (Boutremans and Le Boudec, equation (1)) is: W grows by one packet
# per RTT while Diff < alpha, and shrinks by one packet per RTT while Diff > beta. Otherwise W does
# not change. Diff = W (RTT - baseRTT)/RTT is Vegas's estimate of its backlog, the number of its own
# packets in the queue. (Linux divides by baseRTT, not by RTT.)
def drift(f: Source) -> float:
    """Change of the window in congestion avoidance, in packets per round trip: 1, 0 or -1.

    It is 1 at a backlog below alpha, -1 at a backlog above beta, and 0 between them.
    """
    if f.backlog < f.alpha:
        return 1.0
    return -1.0 if f.backlog > f.beta else 0.0


def acks_to_change(f: Window) -> float:
    """The number of ACKs after which the window reaches the next whole number of packets.

    Each ACK adds ``f.growth`` packets. If the window does not grow, the result is ``NEVER``, a very
    large number.
    """
    if f.growth <= 0.0:
        return NEVER
    acks: float = max(1.0, np.ceil((cwnd_packets(f) + 1.0 - f.cwnd) / f.growth - SLACK))
    return acks


def upon_acks(f: Window, acks: float) -> None:
    """Change the window by ``f.growth`` packets per ACK when ``acks`` ACKs arrive.

    The window grows only if the packets in flight nearly fill it (``keeps_up``); ``max_window`` may
    prevent this. After slow start has ended, the window does not change until the next round trip
    begins. It never shrinks below two packets.
    """
    if f.growth == 1.0 and f.cwnd >= f.ssthresh:  # as in tcp-vegas.cc
        f.growth = 0.0  # slow start has ended within this round trip
    if f.growth < 0.0 or (f.growth > 0.0 and keeps_up(f, acks)):
        add(f, acks)
        if f.growth < 0.0:
            f.cwnd = max(f.cwnd, LEAST_WINDOW)


def add(f: Window, acks: float) -> None:
    """Add ``f.growth`` packets to the window for each of ``acks`` ACKs.

    ns-2 adds them ACK by ACK, so its window has rounding errors. Because of these errors the window
    may reach the next whole number of packets one ACK late. For ns-2 (``plain_sums``) this function
    makes the same errors: it adds ACK by ACK if there are at most ``SUMMED_SINGLY`` ACKs. In all
    other cases it adds ``acks * f.growth`` at once.
    """
    if not f.plain_sums or acks > SUMMED_SINGLY:
        f.cwnd += acks * f.growth
        return
    for _ in range(int(acks)):
        f.cwnd += f.growth


def upon_round(f: Window, over: Round) -> None:
    """Decide at the end of a round trip how the window changes.

    Linux decides by the smallest RTT of the round trip (``decide_whole``), but not while a loss is
    repaired. ns-2 and the papers' Vegas decide by the mean RTT (``decide``). For these two, this
    function also updates the baseRTT, ``f.base``.
    """
    if f.whole_window:
        if over.no_recovery:
            decide_whole(f, over.acked)
        return
    if over.rtt <= 0.0:
        return
    if math.isnan(f.known_base):  # the flow measures its baseRTT
        if not f.resets_base:  # the least RTT; a round trip without samples does not count
            f.base = min(f.base, over.rtt) if f.rtt_count > 0.0 else f.base
        elif over.rtt < f.base or over.length <= 1.0:  # ns-2: also if only one packet was sent
            f.base = over.rtt
    else:
        f.base = f.known_base
    # The backlog is (expected - actual) baseRTT, as in tcp-vegas.cc. The expected rate is the
    # number of packets in flight over baseRTT, the actual one that of packets sent over the RTT.
    diff = over.outstanding - over.length * f.base / over.rtt
    decide(f, diff, diff if over.exact else np.trunc(diff + 0.5))


def decide(f: Window, diff: float, delta: float) -> None:
    """Set ``f.growth``, the change of the window per ACK, for the next round trip.

    Vegas of ns-2 and of the papers decides in this way, and Linux's Vegas by ``decide_whole``.
    ``diff`` is the backlog in packets. ``delta`` is ``diff`` rounded to whole packets, unless a run
    switches the rounding off. In congestion avoidance ns-2 compares ``delta`` with alpha and beta,
    and the papers' Vegas compares ``diff`` with them. If the backlog is above beta, ns-2 reduces
    the window by one packet at once.

    In slow start the window doubles in every other round trip. Before each doubling ``delta`` is
    compared with gamma. If ``delta`` is larger, slow start ends and the window is cut to 7/8 at
    once. No reduction makes the window smaller than two packets.
    """
    if f.cwnd < f.ssthresh:  # slow start: the window doubles in every other round trip
        f.grow_next = 1 - f.grow_next
        if f.grow_next == 0:
            f.growth = 0.0
        elif delta > f.gamma:
            f.ssthresh = 2.0  # so slow start does not begin again
            f.cwnd = max(PART_KEPT * f.cwnd, LEAST_WINDOW)
            f.growth = 0.0
        else:
            f.growth = 1.0
    elif f.real_numbers:  # the papers' Vegas, equation (1) of Boutremans and Le Boudec
        f.growth = 1.0 / f.cwnd if diff < f.alpha else (-1.0 / f.cwnd if diff > f.beta else 0.0)
    elif delta > f.beta:  # ns-2
        f.cwnd = max(f.cwnd - 1.0, LEAST_WINDOW)
        f.growth = 0.0
    else:
        f.growth = 1.0 / f.cwnd if delta < f.alpha else 0.0


def decide_whole(f: Window, acked: float) -> None:
    """Change the window at the end of a round trip by whole packets, as Linux's Vegas does.

    The backlog is W (RTT - baseRTT)/baseRTT, rounded down, where W is the window and RTT the
    smallest RTT of the round trip. In congestion avoidance the window grows by one packet if the
    backlog is below alpha, and shrinks by one if it is above beta.

    In slow start other code lets the window grow at each ACK. Here slow start ends if the backlog
    is above gamma, and nothing else happens. When it ends, the window becomes about W baseRTT/RTT.
    That many packets fill the path without a queue.

    If the round trip has at most two RTT samples, the backlog is not used. In congestion avoidance
    the window then grows as in Reno, by one packet per window of ACKs (``count_acked``). ``acked``
    is the number of packets that the last ACK acknowledges.

    The window never shrinks below two packets. When it shrinks, ssthresh is reduced to the window
    minus 1 if it is larger, but not below 2. So the window is not below ssthresh, and slow start
    does not begin again.
    """
    packets = cwnd_packets(f)
    if f.rtt_count <= 2.0:  # too few samples for Vegas's decision
        if f.cwnd >= f.ssthresh:
            count_acked(f, packets, acked)
        return
    # Linux rounds each RTT down to whole microseconds and adds 1 us, so that no RTT is 0. We do the
    # same, because in the steady state the backlog is often nearly a whole number. Then the
    # rounding of the RTTs decides whether the backlog is above or below a threshold. ``SLACK``: an
    # RTT that lies below a whole number of us only by a rounding error is not rounded down.
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
    """Decide at every ACK, by the last RTT, how much each further ACK changes the window.

    ns-2's Vegas decides only once per round trip (``upon_round``). An experiment calls this
    function instead, to show how much that matters. With ``exact`` the backlog is not rounded. In
    slow start, and while no baseRTT is known, the function does nothing.
    """
    if f.cwnd < f.ssthresh or f.base > 1e9:  # no baseRTT is known: ``f.base`` is ``NEVER``
        return
    diff = f.cwnd * (1.0 - f.base / f.rtt_last)
    delta = diff if exact else np.trunc(diff + 0.5)
    f.growth = 1.0 / f.cwnd if delta < f.alpha else (-1.0 / f.cwnd if delta > f.beta else 0.0)


LAW = Law(
    "vegas",
    drift=drift,
    decrease=0.75,
    per_ack="thresholds",
    packets=PacketRules(acks_to_change, upon_acks, upon_round, upon_each),
    once_a_round=True,
    delay_based=True,
    overdue_checks=True,  # Brakmo and Peterson 1995, 3.1
    slow_start="gamma",
    recovery="hole by hole",
)
