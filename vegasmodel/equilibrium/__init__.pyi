from vegasmodel.equilibrium import arrivals as arrivals
from vegasmodel.equilibrium import bands as bands
from vegasmodel.equilibrium import continuation as continuation
from vegasmodel.equilibrium import heterogeneous as heterogeneous
from vegasmodel.equilibrium import hopf as hopf
from vegasmodel.equilibrium import loop_rest as loop_rest
from vegasmodel.equilibrium import loss_rounds as loss_rounds
from vegasmodel.equilibrium import minicycle as minicycle
from vegasmodel.equilibrium import minicycle_folds as minicycle_folds
from vegasmodel.equilibrium import network as network
from vegasmodel.equilibrium import phase_plane as phase_plane
from vegasmodel.equilibrium import random_loss as random_loss
from vegasmodel.equilibrium import rate_delay as rate_delay
from vegasmodel.equilibrium import red as red
from vegasmodel.equilibrium import secular as secular
from vegasmodel.equilibrium import sensitivity as sensitivity
from vegasmodel.equilibrium import settling as settling
from vegasmodel.equilibrium import stability as stability
from vegasmodel.equilibrium._solution import Equilibrium as Equilibrium
from vegasmodel.equilibrium.secular import queueing_delay as queueing_delay
from vegasmodel.equilibrium.secular import rates as rates
from vegasmodel.equilibrium.secular import solve as solve

__all__: list[str]

def __dir__() -> list[str]: ...
