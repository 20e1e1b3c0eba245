from vegasmodel.engines.delayed import feedback as feedback
from vegasmodel.engines.delayed import integrator as integrator

__all__: list[str]

def __dir__() -> list[str]: ...
