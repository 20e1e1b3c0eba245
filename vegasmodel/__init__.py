"""Predicts how TCP Vegas and its rivals share a bottleneck; compares predictions with measurements.

The documentation writes ``import vegasmodel as vm``.  This import is fast, because each module is
loaded only when one of its names is first used.
"""

from vegasmodel.support import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
