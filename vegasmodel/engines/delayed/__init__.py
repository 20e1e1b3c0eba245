"""Contains the simulator ``delayed``: it solves equations for windows with feedback delay.

A sender learns of the queue a round trip late. The package also contains a general integrator of
delay differential equations. Tests compare the simulator with this integrator.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
