from vegasmodel.engines.rounds import answers as answers
from vegasmodel.engines.rounds import batch as batch
from vegasmodel.engines.rounds import cycle as cycle
from vegasmodel.engines.rounds import run as run

__all__: list[str]

def __dir__() -> list[str]: ...
