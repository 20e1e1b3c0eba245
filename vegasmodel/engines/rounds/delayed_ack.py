"""Delayed ACKs (RFC 1122 4.2.3.2): the receiver acknowledges two packets by one ACK.

If no second packet comes within a pause, the receiver acknowledges the first one alone. While a
packet is missing, it acknowledges each packet at once. With delayed ACKs, packets leave the sender
in pairs, and a window that grows by some amount at each ACK grows half as fast.
``Sender.delack_packets`` is the number of packets that have arrived and whose ACK still waits. All
times in this module are those at which an ACK reaches the sender.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from vegasmodel.engines.rounds.acks import acknowledge
from vegasmodel.engines.rounds.state import Parcel, Sender, jit
from vegasmodel.laws.packets import NEVER


@jit
def packets_per_ack(f: Sender) -> float:
    """Number of packets that the next ACK acknowledges: two if ACKs are delayed, else one."""
    return 2.0 if f.delayed_ack and f.quick_acks_left <= 0.0 else 1.0


@jit
def delack_expiry(f: Sender) -> float:
    """When the receiver sends a delayed ACK at the latest, if no second packet has arrived."""
    return f.delack_expires if f.delack_packets > 0.0 else NEVER


@jit
def delay_ack(f: Sender, p: Parcel, now: float) -> float:
    """Hold back the ACK of a packet that has arrived; returns when it would have arrived.

    If a second packet follows before the delayed ACK is sent, the RTT sample is that of the second.
    """
    end = acknowledge(f, p, 1.0, now, 0.0)
    f.delack_packets, f.delack_expires = 1.0, end + f.ack_pause
    f.received, f.received_at = f.acked + 1.0, p.sent_at
    return end


@jit
def sample_single(f: Sender, delay: float) -> None:
    """Take the RTT sample of a packet that no second packet followed.

    The receiver held back its ACK for ``delay`` seconds.
    """
    f.rtt_area += delay
    f.rtt_sum += f.rtt_last + delay
    f.rtt_count += 1.0
