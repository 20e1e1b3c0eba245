"""The fluid model with feedback delay, and a general delay integrator that checks it."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
