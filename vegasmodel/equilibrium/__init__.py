"""Computes steady states of TCP flows, and tells whether these states are stable.

The functions take numbers and arrays, not scenarios. The modules in ``vegasmodel.adapters`` call
them for a scenario.
"""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
