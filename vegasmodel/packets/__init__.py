"""Packet-level evidence: the ns-2 driver, readers of traces, reference runs."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
