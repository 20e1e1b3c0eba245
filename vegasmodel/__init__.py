"""Predicts how TCP Vegas and other TCPs share a bottleneck; compares this with measurements.

In the documentation this package has the short name ``vm`` (``import vegasmodel as vm``). The
import is fast, because each module is loaded only when one of its names is first used.
"""

from vegasmodel.support import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
