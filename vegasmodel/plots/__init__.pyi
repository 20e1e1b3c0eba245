from vegasmodel.plots.dynamics import windows as windows
from vegasmodel.plots.maps import heat as heat
from vegasmodel.plots.regions import convergence_regions as convergence_regions
from vegasmodel.plots.shares import base_rtt_by_arrival as base_rtt_by_arrival
from vegasmodel.plots.shares import class_shares as class_shares
from vegasmodel.plots.shares import rate_by_arrival as rate_by_arrival
from vegasmodel.plots.shares import throughput_bars as throughput_bars
from vegasmodel.plots.shares import throughput_over_buffer as throughput_over_buffer
from vegasmodel.plots.style import curves as curves
from vegasmodel.plots.style import figure as figure
from vegasmodel.plots.style import legend as legend
from vegasmodel.plots.style import save as save
from vegasmodel.plots.style import tidy as tidy
from vegasmodel.plots.sweeps import sweep as sweep
from vegasmodel.plots.verdicts import model_errors as model_errors

__all__: list[str]

def __dir__() -> list[str]: ...
