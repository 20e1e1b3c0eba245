"""Simulators of a scenario; each stands alone, and ``vegasmodel.simulation`` chooses by name.

``fluid``: differential equations of continuous windows, a millisecond a scenario.  ``rounds``:
trains of packets through a network of queues; where windows are small it handles every packet.
``delayed``: the fluid's law under feedback delay.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
