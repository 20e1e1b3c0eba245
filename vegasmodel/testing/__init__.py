"""Random scenarios and checks for tests of code that uses vegasmodel, with the library Hypothesis.

``vegasmodel.testing`` can be imported only if the extra ``testing`` is installed.
"""

from vegasmodel.support import lazy
from vegasmodel.support.extras import need

need("testing", "vegasmodel.testing")

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
