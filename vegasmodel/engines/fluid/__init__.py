"""Contains the simulator ``fluid``: it solves equations for the windows of senders on one link."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
