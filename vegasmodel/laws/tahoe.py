"""TCP Tahoe: fast retransmit, then slow start from a window of one packet; no fast recovery."""

from vegasmodel.laws.law import Law, Source
from vegasmodel.laws.reno import ONE_A_WINDOW


# dW/dt = 1/RTT, and W -> W/2 at a loss (Jacobson 1988; De Vendictis and Baiocchi, equation (4))
def drift(_: Source) -> float:
    """Growth of the window in congestion avoidance: one packet per round trip."""
    return 1.0


LAW = Law("tahoe", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="slow start")
