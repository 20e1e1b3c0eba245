"""Closed forms and equation solvers, one model per file; functions take and return arrays."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
