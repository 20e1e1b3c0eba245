"""TCP SACK: ACKs list packets that have arrived, so the sender knows the lost ones (RFC 2018).

Outside recoveries its window grows as Reno's does.
"""

from vegasmodel.laws.law import Law
from vegasmodel.laws.reno import ONE_A_WINDOW, drift

LAW = Law("sack", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="scoreboard")
