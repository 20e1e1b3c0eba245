from vegasmodel.engines import delayed as delayed
from vegasmodel.engines import fluid as fluid
from vegasmodel.engines import rounds as rounds

__all__: list[str]

def __dir__() -> list[str]: ...
