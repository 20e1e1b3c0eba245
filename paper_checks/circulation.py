"""Simulates packets that circulate through one link, where each ACK releases the next packet.

So rates, RTT and queue of sources with given windows are found by counting, without any formula of
the papers.  Records compare the papers' formulas with these counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Circulated", "circulate"]

ROUNDS = 200  # of each packet; the first half settles


@dataclass(frozen=True)
class Circulated:
    """The rates, the RTT and the queue, as means over the second half of the simulated rounds."""

    rates: Sequence[float]  # pkt/s of each source
    RTT: float  # s
    waiting: float  # packets, mean over time


def circulate(windows: Sequence[int], mu: float, T: float) -> Circulated:
    """Simulate sources with fixed ``windows`` (packets) at a link of ``mu`` pkt/s.

    ``T`` is the RTT with an empty queue, s.  It includes the transmission time, as in the paper of
    De Vendictis and Baiocchi.

    Packets are numbered in the order in which they are sent.  All sources have the same delays, so
    packets keep this order for ever.  So with n packets in all windows together, the ACK of packet
    k releases packet k + n, which is of the same source.
    """
    owner = np.repeat(np.arange(len(windows)), windows)  # the source of each of the first n packets
    n = owner.size
    # times at which packet k arrives at the link, and at which its transmission begins, s
    arrive = np.zeros(n * (ROUNDS + 1))
    begin = np.empty(n * ROUNDS)
    free = 0.0  # s, when the link has sent packet k - 1
    for k in range(n * ROUNDS):
        begin[k] = max(arrive[k], free)
        free = begin[k] + 1 / mu
        arrive[k + n] = begin[k] + T  # its ACK releases packet k + n
    late = slice(n * ROUNDS // 2, n * ROUNDS)  # the packets of the second half
    span = float(begin[-1] - begin[late.start - 1])  # s, in which the link sends these packets
    source = np.tile(owner, ROUNDS)[late]
    # RTT: from the arrival of packet k to that of packet k + n, which the ACK of k releases;
    # waiting: by Little's law the mean number of packets is the sum of their waits over the time
    return Circulated(
        rates=[float(np.count_nonzero(source == i)) / span for i in range(len(windows))],
        RTT=float(np.mean(arrive[n:][late] - arrive[:-n][late])),
        waiting=float(np.sum(begin[late] - arrive[:-n][late])) / span,
    )
