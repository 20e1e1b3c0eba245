"""Windows of whole packets that decide once a round trip, over one self-clocked link.

The times at which an implementation of TCP decides are part of its law. ns-2's and Linux's Vegas
decide at the end of a round trip, on what they measured in it, and they send whole packets only. So
here the equations (W1) and (W2) of ``windows.py`` become (S1) to (S3). Flow i has the window
``W_i``, the propagation delay ``T_i`` and ``n_i`` packets in flight, of which ``k_i`` are lost. The
link has the capacity ``c`` and the queueing delay ``s``:

    sum_i (n_i - k_i)/(T_i + s) = c,   or s = 0 where that sum is below c               (S1)
    dW_i/dt = m_i/(T_i + s),   m_i = drift of the law                                   (S2)
    n_i = floor(W_i); after a cut each ACK lowers n_i by one until it is floor(W_i)     (S3)

A round trip ends when as many packets have been acknowledged as were in flight at its beginning:
the integral of dt/(T + s) is 1. An ACK reports the queue at the time when its packet was sent, a
round trip ago. A packet that finds the buffer B full, c s > B, is lost. It is the additional packet
that a sender sends when its window reaches the next whole number. So a flow whose window is
constant or falls loses nothing. The sender learns of the loss a round trip later.

A step is a fraction of the shortest round trip. Events within one step are handled in the order of
their times. Their effect on the queue begins at the step's end.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
