"""Turns results into figures.

No other part of vegasmodel imports matplotlib; it is loaded at its first use.
"""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

__getattr__, __dir__, __all__ = lazy.attach(
    __name__, __file__, before=lambda name: need("plot", name)
)
