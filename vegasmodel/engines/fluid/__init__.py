"""The light simulator: differential equations of continuous windows over one link."""

from vegasmodel.support import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
