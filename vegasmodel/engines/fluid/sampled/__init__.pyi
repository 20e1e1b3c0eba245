from vegasmodel.engines.fluid.sampled import drops as drops
from vegasmodel.engines.fluid.sampled import growth as growth
from vegasmodel.engines.fluid.sampled import law as law
from vegasmodel.engines.fluid.sampled import march as march
from vegasmodel.engines.fluid.sampled import queue as queue
from vegasmodel.engines.fluid.sampled import records as records
from vegasmodel.engines.fluid.sampled import recovery as recovery
from vegasmodel.engines.fluid.sampled import round_trip as round_trip

__all__: list[str]

def __dir__() -> list[str]: ...
