from vegasmodel.testing import invariants as invariants
from vegasmodel.testing import strategies as strategies

__all__: list[str]

def __dir__() -> list[str]: ...
