"""TCP NewReno: in a recovery each partial ACK reveals one more lost packet (RFC 2582).

A partial ACK comes once per round trip, so NewReno repairs one lost packet per round trip.
"""

from vegasmodel.laws.law import Law
from vegasmodel.laws.reno import ONE_A_WINDOW, drift

LAW = Law("newreno", drift, per_ack="one a window", packets=ONE_A_WINDOW, recovery="hole by hole")
