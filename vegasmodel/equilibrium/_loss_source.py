"""Describes one TCP source on a lossy path, and how its congestion control recovers from losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vegasmodel.equilibrium._checks import count, numbers, positive
from vegasmodel.fields import kinds


@kinds.checked
@dataclass(frozen=True)
class Recovery:
    """How a congestion control recovers from losses, as in ns-2.

    Every sender has a coarse timer, the usual retransmission timer. A timeout doubles it. It stays
    doubled until the sender measures an RTT of a packet that was sent only once. The model assumes
    that this takes three arrivals: the retransmission and the next two packets.

    Vegas also has a fine timer, which lasts 17/16 of an RTT. Suppose that a duplicate ACK arrives
    after the fine timer has expired. Vegas then retransmits at once, even if this is the first or
    the second duplicate ACK. The fine timer does not help if the retransmission is lost.

    The RTT that Vegas measures at the end of a recovery contains the recovery, so it is too long.
    For this reason Vegas does not grow in the next round trip.
    """

    decrease: float = 0.5  # window factor of a fast retransmit
    restarts: bool = False  # slow start after a fast retransmit, too
    one_loss_only: bool = False  # a second loss in the window means a timeout
    fine_timer: bool = False  # fewer than three duplicate ACKs may be enough
    round_per_hole: bool = False  # each further lost packet takes a round trip
    idle_rounds: float = 0.0  # round trips without growth after a recovery
    slow_rounds: int = 1  # slow start enlarges a window only after this many round trips
    backs_off: bool = False  # a fast retransmit doubles the coarse timer, too
    ack_lag: float = 0.5  # the window grows from w to w + 1 packets after w + ack_lag ACKs

    def __post_init__(self) -> None:
        numbers("decrease", self.decrease, high=1.0)
        numbers("idle_rounds", self.idle_rounds)
        count("slow_rounds", self.slow_rounds)
        numbers("ack_lag", self.ack_lag)


LAWS = {
    "tahoe": Recovery(restarts=True),
    "reno": Recovery(one_loss_only=True),
    "newreno": Recovery(round_per_hole=True),
    "sack": Recovery(),
    "vegas": Recovery(
        decrease=0.75,
        fine_timer=True,
        round_per_hole=True,
        idle_rounds=1.0,
        slow_rounds=2,
        backs_off=True,
        ack_lag=0.0,
    ),
}


@kinds.checked
@dataclass(frozen=True)
class Source:
    """One TCP source on a lossy path; times are in seconds, windows in packets.

    - ``loss``: the loss probability of a packet.
    - ``rtt``: the round-trip time, without the delay that the source's own packets cause in the
      queue.
    - ``timeout``: the retransmission timeout.
    - ``capacity``: of the path, pkt/s. If the window exceeds ``capacity`` times ``rtt``, the excess
      packets queue.
    - ``hold``: the window at which growth stops. The receiver or Vegas's backlog threshold sets it.
    - ``overflow``: the window at which the buffer overflows and drops a packet.
    - ``ack_every``: the number of packets per ACK.
    - ``counts_packets``: the window grows by the packets that ACKs acknowledge, as in Linux, and
      not by the ACKs.

    Raises ``FieldError`` for values out of range.
    """

    loss: float
    rtt: float
    timeout: float
    capacity: float = math.inf
    hold: float = math.inf
    overflow: float = math.inf
    ack_every: float = 1.0
    counts_packets: bool = False

    def __post_init__(self) -> None:
        """Check all fields."""
        numbers("loss", self.loss, high=1.0)
        positive("rtt", self.rtt)
        numbers("timeout", self.timeout)
        for name in ("capacity", "hold", "overflow"):
            numbers(name, getattr(self, name), above=True, infinite=True)
        positive("ack_every", self.ack_every)

    @property
    def counted_every(self) -> float:
        """The number of acknowledged packets for which the window W grows by 1/W packets."""
        return 1.0 if self.counts_packets else self.ack_every
