"""TCP Tahoe: fast retransmit, then slow start from a window of one packet; no fast recovery."""

from vegasmodel.laws.law import Law
from vegasmodel.laws.reno import ONE_A_WINDOW, drift

LAW = Law("tahoe", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="slow start")
