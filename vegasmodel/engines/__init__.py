"""Contains the three simulators; ``vegasmodel.simulation`` chooses one of them by its name.

* ``fluid`` solves differential equations for the senders' windows. A run with a few flows takes 0.1
  to 100 ms of computing time.
* ``rounds`` moves groups of packets through a network of queues. If a round trip has few packets,
  each group is a single packet.
* ``delayed`` solves equations like those of ``fluid``, but each sender learns of the queue a round
  trip late.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
