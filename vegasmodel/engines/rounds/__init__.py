"""The event-driven simulator: trains of packets through a network of queues."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
