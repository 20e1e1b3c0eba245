from vegasmodel.packets import campaign as campaign
from vegasmodel.packets import engine as engine
from vegasmodel.packets import estimate as estimate
from vegasmodel.packets import measured as measured
from vegasmodel.packets import ns2 as ns2
from vegasmodel.packets import ns2_trace as ns2_trace
from vegasmodel.packets import ns3 as ns3
from vegasmodel.packets import reading as reading
from vegasmodel.packets import reference as reference
from vegasmodel.packets import trace as trace
from vegasmodel.packets.engine import EngineFailed as EngineFailed
from vegasmodel.packets.engine import EngineMissing as EngineMissing
from vegasmodel.packets.reading import read as read
from vegasmodel.packets.trace import Trace as Trace
from vegasmodel.packets.trace import TraceError as TraceError

__all__: list[str]

def __dir__() -> list[str]: ...
