"""Helps to test code that uses vegasmodel: draws random scenarios, and checks predictions.

The scenarios come from strategies of the library Hypothesis (``strategies``). The checks are
statements that must hold for every prediction, for example: no link carries more than its capacity
(``invariants``). The import needs Hypothesis, which the optional dependencies ``testing`` include.
"""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

need("testing", "vegasmodel.testing")

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
