"""Derives the closed forms from their premises in SymPy, to check the package's numeric code."""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

need("symbolic", "vegasmodel.symbolic")

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
