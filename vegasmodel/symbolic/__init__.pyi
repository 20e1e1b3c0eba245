from vegasmodel.symbolic import boutremans as boutremans
from vegasmodel.symbolic import devendictis as devendictis
from vegasmodel.symbolic import network as network
from vegasmodel.symbolic import podlesny as podlesny
from vegasmodel.symbolic import random_loss as random_loss
from vegasmodel.symbolic import red as red
from vegasmodel.symbolic import steps as steps

__all__: list[str]

def __dir__() -> list[str]: ...
