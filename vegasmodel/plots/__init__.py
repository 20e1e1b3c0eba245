"""Turns results into figures.

Only the modules in this folder import matplotlib. They are loaded when one of their functions is
first used, so the rest of vegasmodel works without matplotlib.
"""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

__getattr__, __dir__, __all__ = lazy.attach(
    __name__, __file__, before=lambda name: need("plot", name)
)
