"""The simulator ``rounds``: groups of packets travel from queue to queue, event by event."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
