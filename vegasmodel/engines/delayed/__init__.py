"""Contains the simulator ``delayed``: it solves equations for windows with feedback delay.

Feedback delay means that a sender learns of the queue a round trip late. This folder also contains
a general integrator of delay differential equations (``integrator.py``). Tests compare the results
of the simulator with those of this integrator.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
