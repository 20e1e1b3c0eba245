"""Simulates senders over one link whose windows are whole packets and change once per round trip.

The Vegas of ns-2 and Linux measures the RTT during a round trip. At the end of the round trip it
decides how its window changes. It sends whole packets only. Flow i has the window W_i, the
propagation delay T_i, and n_i packets in flight as its sender counts them. Of these, k_i are lost,
and the sender has not yet learned of it. The link has the capacity c and the queueing delay s, at
which the rates of the flows add up to c (S1). The window moves by m_i packets per round trip, as
the flow's law decides (S2). There is an exception: when Vegas decides to reduce its window in ns-2,
or to change it in Linux, it does so at once.

    sum_i (n_i - k_i)/(T_i + s) = c,   or s = 0 if this sum is below c at s = 0         (S1)
    dW_i/dt = m_i/(T_i + s)                                                             (S2)
    n_i = floor(W_i); after a cut each ACK lowers n_i by one until it is floor(W_i)     (S3)

A round trip ends when as many packets have been acknowledged as were in flight at its beginning. So
the integral of dt/(T_i + s) over a round trip is 1. An ACK reports the queueing delay at the time
when its packet was sent.

When W_i reaches the next whole number, the sender sends an additional packet. If this packet finds
the buffer full, it is lost. So a flow whose window is constant or falls loses nothing. The sender
learns of the loss a round trip later.

A step is a fraction of the shortest round trip. Events within a step are handled in the order of
their times. Their effect on the queue begins at the end of the step.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
