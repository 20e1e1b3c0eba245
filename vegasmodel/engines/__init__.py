"""Simulators of a scenario; ``vegasmodel.simulation`` chooses one by its name.

``fluid`` solves differential equations of continuous windows, in about a millisecond per scenario.
``rounds`` sends groups of packets through a network of queues; where windows are small it handles
every packet.  ``delayed`` is the fluid with feedback delay.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
