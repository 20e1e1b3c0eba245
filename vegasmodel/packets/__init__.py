"""Packet-level evidence: drivers of the simulators ns-2 and ns-3, trace readers, stored runs."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
