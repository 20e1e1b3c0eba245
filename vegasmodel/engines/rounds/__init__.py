"""Contains the simulator ``rounds``, which moves packets in groups from queue to queue."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
