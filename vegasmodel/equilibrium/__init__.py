"""Closed forms and algebraic solvers, one model a file.  Arrays in, arrays out."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
