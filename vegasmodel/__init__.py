"""vegasmodel: how TCP Vegas and its rivals share a bottleneck.

The documentation imports it as ``vm``.  Submodules load when they are used, so that
``import vegasmodel`` is fast.
"""

from vegasmodel.support import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
