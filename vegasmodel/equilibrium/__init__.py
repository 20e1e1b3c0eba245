"""Closed forms and equation solvers. Their arguments are numbers and arrays, not scenarios."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
