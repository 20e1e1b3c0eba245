"""Describes the functions by which a law (a congestion control) changes the window at ACKs.

``PacketRules`` lists these functions. Their first argument, a ``Window``, is the state of the
sender: its window, its RTTs and the properties of its TCP implementation. The simulator ``rounds``,
which sends whole packets, compiles the functions with Numba. The other simulators do not use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

NEVER = 1e300  # a number of ACKs, or a time, that is never reached
SLACK = 1e-9  # packets by which rounding errors may put a window below a whole number


class Window(Protocol):
    """The state of a sender that the functions of a congestion control may read and change.

    Windows are in packets, and times in seconds.
    """

    cwnd: float
    ssthresh: float
    next: float  # sequence number of the first packet not yet sent
    acked: float  # sequence number of the first packet not yet acknowledged
    alpha: float
    beta: float
    gamma: float
    base: float  # least RTT
    known_base: float  # the baseRTT that the scenario gives; NaN: it is measured
    rtt_last: float
    rtt_min: float  # least RTT sample of this round trip
    rtt_count: float  # number of RTT samples in this round trip
    growth: float  # packets by which an ACK moves the window in this round trip
    grow_next: int  # Vegas's slow start: 1 in round trips in which the window doubles, else 0
    cwnd_cnt: float  # ACKs counted towards the next packet
    # properties of the sender's TCP implementation (``stacks.stack``)
    plain_sums: bool
    whole_window: bool
    real_numbers: bool
    resets_base: bool
    overdue_checks: bool


class Round(NamedTuple):
    """What a congestion control's functions may know about the round trip that has just ended."""

    rtt: float  # mean RTT in it, s
    outstanding: float  # packets in flight as it ends
    length: float  # packets sent in it
    no_recovery: bool  # no loss is being repaired
    exact: bool  # True only in an experiment on the effect of rounding: the backlog is not rounded
    acked: float = 1.0  # packets that its last ACK acknowledges


class PacketRules(NamedTuple):
    """The functions by which a congestion control changes the window at ACKs, in ``rounds``.

    There is no function for a loss: a loss multiplies the window by a factor (``Law.decrease``).
    """

    # (sender) -> the number of ACKs until the window reaches the next whole number of packets
    acks_to_change: Callable[[Any], float]
    # (sender, ACKs): called when ACKs of new data arrive, at most ``acks_to_change`` of them
    upon_acks: Callable[[Any, float], None]
    # (sender, round): called at the end of each round trip
    upon_round: Callable[[Any, Round], None]
    # (sender, exact): in an experiment, called at every ACK instead of ``upon_round``
    upon_each: Callable[[Any, bool], None]


def cwnd_packets(f: Window) -> float:
    """The window rounded down to whole packets.

    Rounding errors may put a window just below a whole number. The result is then this whole
    number. But ns-2 would round such a window down to the next smaller whole number. So for ns-2
    (``plain_sums``) this function does the same.
    """
    whole_packets: float = np.floor(f.cwnd if f.plain_sums else f.cwnd + SLACK)
    return whole_packets


def count_acked(f: Window, cnt: float, acked: float) -> None:
    """Let a Linux window grow by a packet per ``cnt`` acknowledged packets; ``acked`` are new.

    The kernel's function is tcp_cong_avoid_ai. Whenever the count of acknowledged packets,
    ``cwnd_cnt``, reaches ``cnt``, the window grows by one packet and the count is reduced by
    ``cnt``. If ``cnt`` has fallen since the last call, the count may already have reached it. Then
    the window grows by one packet, and the count is set to 0 before ``acked`` is added.
    """
    if f.cwnd_cnt >= cnt:  # ``cnt`` was larger at the last call
        f.cwnd_cnt = 0.0
        f.cwnd += 1.0
    f.cwnd_cnt += acked
    more = np.floor(f.cwnd_cnt / cnt)
    f.cwnd_cnt -= more * cnt
    f.cwnd += more


def keeps_up(f: Window, acks: float) -> bool:
    """Whether the ``acks`` ACKs that have just arrived may enlarge the window.

    For Vegas with the variants ``ns2`` and ``paper``, ACKs enlarge the window only if the packets
    in flight nearly fill it: they are at most 2 + ``acks`` packets fewer than the window. For all
    other senders the result is True. Only Vegas with these variants has ``overdue_checks``.
    """
    return not f.overdue_checks or f.cwnd - (f.next - f.acked) <= 2.0 + acks
