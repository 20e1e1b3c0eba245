"""Results -> figures.  The only package that knows matplotlib; it loads when a name is used."""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

__getattr__, __dir__, __all__ = lazy.attach(
    __name__, __file__, before=lambda name: need("plot", name)
)
