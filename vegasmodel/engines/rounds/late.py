"""A receiver that delays its ACKs: it answers every second packet, or the first after a while.

RFC 1122 4.2.3.2.  It answers at once what comes out of order, and while anything is missing.  A
window grows upon ACKs, so by half as much a round trip, and what an ACK lets out leaves in pairs.
``Sender.held`` packets have come whose ACK waits; instants are those at which the sender hears of
them.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from vegasmodel.engines.rounds.acks import acknowledge
from vegasmodel.engines.rounds.state import Parcel, Sender, jit
from vegasmodel.laws.packets import NEVER


@jit
def spoken_for(f: Sender) -> float:
    """Packets that the next ACK speaks for."""
    return 2.0 if f.late and f.quick <= 0.0 else 1.0


@jit
def pending(f: Sender) -> float:
    """When an ACK comes whose second packet has not."""
    return f.held_until if f.held > 0.0 else NEVER


@jit
def hold(f: Sender, p: Parcel, now: float) -> float:
    """The packet comes whose ACK waits; returns when.  The second one's RTT is the sample."""
    end = acknowledge(f, p, 1.0, now, 0.0)
    f.held, f.held_until = 1.0, end + f.ack_pause
    f.received, f.received_at = f.acked + 1.0, p.sent_at
    return end


@jit
def sample_single(f: Sender, late: float) -> None:
    """The sample of a packet that stays without a second one, ``late`` seconds after it came."""
    f.rtt_area += late
    f.rtt_sum += f.rtt_last + late
    f.rtt_count += 1.0
