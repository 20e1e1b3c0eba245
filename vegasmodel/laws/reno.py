"""TCP Reno: fast retransmit, and a fast recovery that repairs only the first loss of a window."""

import math

import numpy as np

from vegasmodel.laws.law import Law
from vegasmodel.laws.packets import SLACK, PacketRules, Round, Window, cwnd_packets
from vegasmodel.laws.source import Source

# Up to this number of ACKs, the increments 1/W are added one by one. For more ACKs an approximation
# is faster. An ACK adds 2 + 1/W^2 to the square of the window, because
# (W + 1/W)^2 = W^2 + 2 + 1/W^2. The approximation is that 1/W^2 is the same for all these ACKs.
ADDED_SINGLY = 8.0


# dW/dt = 1/RTT (Jacobson 1988; De Vendictis and Baiocchi, equation (4))
def drift(_: Source) -> float:
    """By how many packets the window grows in a round trip of congestion avoidance: one."""
    return 1.0


def acks_to_change(f: Window) -> float:
    """The number of ACKs after which the window W reaches the next whole number of packets.

    Each ACK adds 1/W to the window. Linux (``whole_window``) instead counts the acknowledged
    packets, and adds one packet to the window after W of them.
    """
    target = cwnd_packets(f) + 1.0
    square = f.cwnd * f.cwnd
    if f.whole_window:
        acks = (target - f.cwnd) * (target - 1.0)
    else:  # W^2 grows by 2 + 1/W^2 per ACK (see ``ADDED_SINGLY``)
        acks = (target * target - square) / (2.0 + 1.0 / square)
    whole_acks: float = max(1.0, np.ceil(acks - SLACK))
    return whole_acks


def upon_acks(f: Window, acks: float) -> None:
    """Congestion avoidance: let the window W grow when ``acks`` ACKs of new data arrive.

    Each ACK adds 1/W packets to the window. Linux (``whole_window``) adds a packet after W ACKs;
    here these ACKs add equal parts of this packet.
    """
    if f.whole_window:
        f.cwnd += acks / cwnd_packets(f)
    elif acks > ADDED_SINGLY:  # W^2 grows by 2 + 1/W^2 per ACK (see ``ADDED_SINGLY``)
        f.cwnd = math.sqrt(f.cwnd * f.cwnd + acks * (2.0 + 1.0 / (f.cwnd * f.cwnd)))
    else:
        for _ in range(int(acks)):
            f.cwnd += 1.0 / f.cwnd


def upon_round(f: Window, over: Round) -> None:
    """Do nothing at the end of a round trip: Reno's window changes when ACKs arrive."""


def upon_each(f: Window, exact: bool) -> None:
    """Do nothing: ``upon_acks`` has already changed the window."""


# the window grows by one packet for each window of acknowledged packets
ONE_A_WINDOW = PacketRules(acks_to_change, upon_acks, upon_round, upon_each)
LAW = Law("reno", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="one hole")
