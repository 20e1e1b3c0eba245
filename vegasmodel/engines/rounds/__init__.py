"""The event-driven simulator: groups of packets travel through a network of queues."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
