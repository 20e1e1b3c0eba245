"""Gets measurements to compare with models: runs ns-2 and ns-3, reads traces, keeps stored runs."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
