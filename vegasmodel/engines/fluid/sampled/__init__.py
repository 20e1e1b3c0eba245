"""Simulates the TCP of ns-2 and Linux, which sends whole packets, in the simulator ``fluid``.

In both implementations Vegas measures RTTs during a round trip. At the end of the round trip Vegas
decides how its window changes.

Flow i has the window W_i and the propagation delay T_i. Its sender counts n_i packets in flight. Of
these packets k_i are lost, but the sender does not know this yet. If the receiver delays its ACKs,
one of the packets may wait at the receiver for its ACK (``queue.hold_back``). Then h_i is 1,
otherwise h_i is 0. The link has the capacity c and the queueing delay s. At this delay the flows'
rates add up to c:

    sum_i (n_i - k_i - h_i)/(T_i + s) = c,   or s = 0 if this sum is below c at s = 0   (S1)

Outside slow start the window moves by m_i packets per round trip, as the flow's law decides:

    dW_i/dt = m_i/(T_i + s)                                                             (S2)

There are five exceptions:

- ns-2's Vegas reduces its window at once, at the end of a round trip.
- Linux's Vegas makes every change of its window at once, at the end of a round trip.
- A window to which each ACK adds m_i/W_i packets, such as Reno's, grows a little more slowly than
  by (S2) (``grow_by_acks``).
- With long random waits the window of ns-2's Vegas grows more slowly (``law.counted``).
- If all RTTs are equal, the packets of a sender, and their ACKs, follow one another as a train. The
  window of ns-2's Vegas then grows only while its ACKs arrive. In this time it grows faster than by
  (S2), so that it still grows by m_i packets per round trip (``queue.train_part``). The package
  simulates this only if some flow is loss-based.

Senders may wait a random time before they send a packet, as in ns-2. If all flows are delay-based,
T_i includes the mean of this wait (``fluid.senders``). The RTT that Vegas measures does not include
the wait. While a sender waits, more ACKs may arrive. If they allow it several packets, it has not
kept up with its window, and the window of ns-2's Vegas then does not grow (``law.counted``).

In this package RTTs count as equal also if they differ by less than the link takes to send a
packet. The packets of all flows then arrive in the same order in every round trip, as they do if
RTTs are equal (``follower``).

The sender sends until floor(W_i) packets are in flight. After a cut of the window it waits until
ACKs have reduced n_i to floor(W_i):

    n_i = floor(W_i); after a cut each ACK lowers n_i by one until it is floor(W_i)     (S3)

After a flow has stopped, its n_i falls to 0 within a round trip (``growth.drain_out``).

A round trip lasts until as many packets have been acknowledged as were in flight at its beginning.
Without losses ACKs arrive at the rate n_i/(T_i + s). So a round trip ends when the integral of
dt/(T_i + s) over it is 1. An ACK reports the queueing delay at the time when its packet was sent.
The ACK that ends a recovery ends a round trip, too (``growth.end_recovery``).

When W_i reaches the next whole number, the sender sends an additional packet. If this packet finds
the buffer full, one packet is lost: this packet, or one of another flow (the module ``loser``). The
sender whose packet is lost learns of it a round trip later. For Linux senders of equal RTTs the
module ``line`` gives the order of the packets at the full queue.

A step is a fraction of the shortest round trip. Events within a step are handled in the order of
their times. Their effect on the queue begins at the end of the step.

The package also simulates some scenarios in which all flows run TCP as in the papers (argument
``smooth``), for example those with RED. In these scenarios windows are real numbers. They change at
every instant by (S2), and a loss cuts them at once.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
