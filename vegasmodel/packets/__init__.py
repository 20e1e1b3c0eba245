"""Gets measurements to compare with models: runs ns-2 or ns-3, reads traces or stored results."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
