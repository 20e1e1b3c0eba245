"""Windows of whole packets that decide once a round trip, over one self-clocked link.

The times at which an implementation decides are part of its law. ns-2's and Linux's Vegas decide at
the end of a round trip, on what they measured in it, and only whole packets leave.  So here the
fluid of (W1) and (W2) in ``windows.py`` is sampled once a round trip.  With ``n_i`` packets of flow
i in flight and ``k_i`` of them lost,

    sum_i (n_i - k_i)/(T_i + s) = c,   or s = 0 where that sum is below c               (S1)
    dW_i/dt = m_i/(T_i + s),   m_i = drift of the law                                   (S2)
    n_i = floor(W_i); after a cut each ACK lowers n_i by one until it is floor(W_i)     (S3)

A round trip ends when as many packets as were in flight have been acknowledged: integral of dt/(T +
s) = 1. An ACK reports the queue that its packet met when the packet was sent, a round trip ago.
The packet that finds c s > B is lost.  It is the packet that made the whole part of its window
grow, so a flow whose window is constant or falls loses nothing.  The sender learns of the loss a
round trip later.

A step is a fraction of the shortest round trip.  Events within one step count in their order; their
effect on the queue begins at the step's end.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
