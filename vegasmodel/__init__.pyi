from vegasmodel import engines as engines
from vegasmodel import equilibrium as equilibrium
from vegasmodel import metrics as metrics
from vegasmodel import packets as packets
from vegasmodel import plots as plots
from vegasmodel import symbolic as symbolic
from vegasmodel import testing as testing
from vegasmodel.adapters.stability import StabilityVerdict as StabilityVerdict
from vegasmodel.adapters.stability import stability as stability
from vegasmodel.comparison import Comparison as Comparison
from vegasmodel.comparison import compare as compare
from vegasmodel.fields.units import FieldError as FieldError
from vegasmodel.laws import register_law as register_law
from vegasmodel.packets.engine import EngineFailed as EngineFailed
from vegasmodel.packets.engine import EngineMissing as EngineMissing
from vegasmodel.packets.trace import Trace as Trace
from vegasmodel.packets.trace import TraceError as TraceError
from vegasmodel.prediction import Assumption as Assumption
from vegasmodel.prediction import LimitCycle as LimitCycle
from vegasmodel.prediction import Prediction as Prediction
from vegasmodel.predictor import MODELS as MODELS
from vegasmodel.predictor import batch as batch
from vegasmodel.predictor import predict as predict
from vegasmodel.predictor import predict_all as predict_all
from vegasmodel.queues import DropTail as DropTail
from vegasmodel.queues import RateDelay as RateDelay
from vegasmodel.queues import Red as Red
from vegasmodel.scenario import Drop as Drop
from vegasmodel.scenario import Flow as Flow
from vegasmodel.scenario import Link as Link
from vegasmodel.scenario import Pareto as Pareto
from vegasmodel.scenario import ParetoArrivals as ParetoArrivals
from vegasmodel.scenario import Poisson as Poisson
from vegasmodel.scenario import Run as Run
from vegasmodel.scenario import Scenario as Scenario
from vegasmodel.scenario import Staggered as Staggered
from vegasmodel.scenario import Uniform as Uniform
from vegasmodel.scenario import load as load
from vegasmodel.simulation import limit_cycle as limit_cycle
from vegasmodel.simulation import simulate as simulate
from vegasmodel.study.basins import Basins as Basins
from vegasmodel.study.basins import basins as basins
from vegasmodel.study.boundary import StabilityBoundary as StabilityBoundary
from vegasmodel.study.boundary import stability_boundary as stability_boundary
from vegasmodel.study.design import Design as Design
from vegasmodel.study.design import Solution as Solution
from vegasmodel.study.design import design as design
from vegasmodel.study.sweep import sweep as sweep
from vegasmodel.study.uncertainty import Sensitivity as Sensitivity
from vegasmodel.study.uncertainty import Uncertainty as Uncertainty
from vegasmodel.study.uncertainty import sensitivity as sensitivity
from vegasmodel.study.uncertainty import uncertainty as uncertainty
from vegasmodel.support.extras import ExtraMissing as ExtraMissing

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...
