"""TCP NewReno: in a recovery each partial ACK reveals one more lost packet (RFC 2582).

A partial ACK comes once per round trip, so NewReno repairs one lost packet per round trip.
"""

from vegasmodel.laws.law import Law, Source
from vegasmodel.laws.reno import ONE_A_WINDOW


# dW/dt = 1/RTT, and W -> W/2 at a loss (Jacobson 1988; De Vendictis and Baiocchi, equation (4))
def drift(_: Source) -> float:
    """Growth of the window in congestion avoidance: one packet per round trip."""
    return 1.0


LAW = Law("newreno", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="hole by hole")
