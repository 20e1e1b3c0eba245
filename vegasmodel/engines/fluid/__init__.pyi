from vegasmodel.engines.fluid import batch as batch
from vegasmodel.engines.fluid import continuous as continuous
from vegasmodel.engines.fluid import cycle as cycle
from vegasmodel.engines.fluid import run as run

__all__: list[str]

def __dir__() -> list[str]: ...
