"""Packet-level data: modules that run ns-2 and ns-3, readers of trace files, and stored runs."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
